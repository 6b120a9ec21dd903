"""Trees that are read answer as the model does when it is asked, and others are asked."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import sklearn.ensemble as en
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import linear_model
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
)
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import rhale_stats as rs
from rhale_stats.models import reading, trees
from rhale_stats.models.adapters import trees as readers
from rhale_stats.models.differences import DifferenceQuotients
from rhale_stats.models.table import as_table
from rhale_stats.models.trees import LeafTable, LeafTree, Trees
from tests.helpers import in_turn

N = 160
# Libraries that sum in single precision.
SINGLE = 2e-6


# --- by hand --------------------------------------------------------------------------------------


def two_splits(**options):
    """Input 0 up to 1: the leaf 10; else input 1 up to 2: 20; else 40. Missing values go left."""
    tree = LeafTree(
        feature=np.array([0, -1, 1, -1, -1]),
        threshold=np.array([1.0, 0, 2, 0, 0]),
        left=np.array([1, -1, 3, -1, -1]),
        right=np.array([2, -1, 4, -1, -1]),
        missing_left=np.array([True, True, True, True, True]),
        value=np.array([[0.0], [10], [0], [20], [40]]),
    )
    leaf = LeafTree(
        *(np.array([number]) for number in (-1, 0.0, -1, -1, 0)), value=np.array([[0.5]])
    )
    return LeafTable(Trees([tree, leaf], np.array([100.0]), np.asarray, **options))


def sums(table, *rows, **moved):
    """At rows, by their inputs, and at versions of one input."""
    versions = {int(name[1]): table.intervals(int(name[1]), x) for name, x in moved.items()}
    read = table.rows(np.transpose(rows))
    return (table.sums(read, versions)[0] if moved else read.totals.T) - 100.5


def test_leaves_by_hand():
    table, nan = two_splits(), np.nan
    assert_array_equal(sums(table, [0, 2, 2, nan], [5.0, 2, 3, 3])[:, 0], [10, 20, 40, 10])
    moving = sums(table, [0.0, 2], [2.0, 3], x0=np.array([nan, 1, np.nextafter(1, 2), np.inf]))
    assert_array_equal(moving, [[10, 10, 20, 20], [10, 10, 40, 40]])
    assert_array_equal(sums(table, [0.0, 2], [3.0, 3], x1=np.array([2.0])), [[10], [20]])


def test_a_library_that_sends_a_threshold_to_the_right():
    moving = sums(two_splits(strict=True), [2.0], [5.0], x0=np.array([np.nextafter(1, 0), 1.0]))
    assert_array_equal(moving, [[10, 40]])


def test_each_row_has_a_choice_of_versions():
    table = two_splits()
    rows = table.rows(np.array([[0.0, 2], [0, 3]]))
    versions = {0: table.intervals(0, np.array([0.0, 2, 5]))}
    choice = np.array([[0, 1], [2, 0]])
    for times in (1, 3):  # a few places, which are looked up one by one, and many
        sums = table.sums(rows, versions, np.tile(choice, times))[0] - 100.5
        assert_array_equal(sums, np.tile([[10, 20], [40, 10]], times))


def test_both_inputs_move():
    table = two_splits()
    rows = table.rows(np.zeros((1, 2)))
    versions = {
        n: table.intervals(n, np.array(x)) for n, x in enumerate([[0, 2.0, 2], [3, 2.0, 3]])
    }
    assert_array_equal(table.sums(rows, versions)[0] - 100.5, [[10, 20, 40]])


@pytest.mark.parametrize("right", [False, True])
def test_categories_by_hand(right):
    tree = LeafTree(
        *(np.array(of_node) for of_node in ([0, -1, -1], [0.0] * 3, [1, -1, -1], [2, -1, -1])),
        missing_left=np.array([False, False, False]),
        value=np.array([[0.0], [1], [2]]),
        codes={0: (np.array([1, 3]), not right)},
    )
    table = LeafTable(Trees([tree], np.zeros(1), np.asarray))
    codes = np.array([0.0, 1, 2, 3, 4, 99, -1, np.nan])
    listed, missing = np.isin(codes, [1, 3]), np.isnan(codes)
    expected = np.where(missing | (listed == right), 2, 1)
    assert_array_equal(table.rows(codes[:, None]).totals[0], expected)


# --- libraries ------------------------------------------------------------------------------------


def sample(rng, *, missing=False, categories=False, n=N):
    """Rows with ties, by choice with missing values and with codes of categories."""
    X = np.round(rng.normal(size=(n, 4)), 1)
    if categories:
        X[:, 3] = rng.integers(0, 8, n)
    y = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + (X[:, 3] % 3 == 1) + rng.normal(size=n) / 9
    if missing:
        X[rng.random(X.shape) < 0.1] = np.nan
    return X, y, rng.uniform(0.1, 2, n)


def three(y):
    return np.digitize(y, [-0.5, 0.5])


def xgb(kind, outcome=lambda y: y, **options):
    def fit(X, y, w, categories):
        library = pytest.importorskip("xgboost")
        levels = {"enable_categorical": True, "feature_types": ["q"] * 3 + ["c"]}
        some = options | (levels if categories else {})
        model = getattr(library, kind)(n_estimators=10, n_jobs=1, **some)
        return model.fit(X, outcome(y), sample_weight=w)

    return fit


def lgb(kind, outcome=lambda y: y, **options):
    def fit(X, y, w, categories):
        library = pytest.importorskip("lightgbm")
        some = {"verbose": -1, "min_child_samples": 5, "n_jobs": 1} | options
        model = getattr(library, kind)(n_estimators=8, **some)
        with_levels = {"categorical_feature": [3]} if categories else {}
        return model.fit(X, outcome(y), sample_weight=w, **with_levels)

    return fit


def cat(kind, outcome=lambda y: y, **options):
    def fit(X, y, w, _):
        library = pytest.importorskip("catboost")
        some = {"iterations": 8, "depth": 4, "verbose": 0, "allow_writing_files": False} | options
        return getattr(library, kind)(**some).fit(X, outcome(y), sample_weight=w)

    return fit


def skl(model, outcome=lambda y: y):
    return lambda X, y, w, _: model.fit(X, outcome(y), sample_weight=w)


def hist(kind, outcome=lambda y: y, **options):
    def fit(X, y, w, categories):
        made = getattr(en, f"HistGradientBoosting{kind}")
        levels = [3] if categories else None
        return made(max_iter=8, categorical_features=levels, **options).fit(X, outcome(y), w)

    return fit


# With categories and missing values; the others of scikit-learn take no categories.
BOOSTED = {
    "hist": hist("Regressor"),
    "hist, large leaves": hist("Regressor", max_leaf_nodes=None, min_samples_leaf=1),
    "hist, stopped early": hist("Regressor", early_stopping=True),
    "hist, poisson": hist("Regressor", np.abs, loss="poisson"),
    "hist, classes": hist("Classifier", lambda y: y > 0),
    "hist, three classes": hist("Classifier", three),
    "xgboost": xgb("XGBRegressor"),
    "xgboost, deep": xgb("XGBRegressor", max_depth=9, max_cat_to_onehot=1),
    "xgboost, base score": xgb("XGBRegressor", base_score=3.7, grow_policy="lossguide"),
    "xgboost, dart": xgb("XGBRegressor", booster="dart", rate_drop=0.3),
    "xgboost, forest": xgb("XGBRFRegressor"),
    "xgboost, poisson": xgb("XGBRegressor", np.abs, objective="count:poisson"),
    "xgboost, classes": xgb("XGBClassifier", lambda y: (y > 0) * 1),
    "xgboost, three classes": xgb("XGBClassifier", three),
    "lightgbm": lgb("LGBMRegressor"),
    "lightgbm, many leaves": lgb("LGBMRegressor", num_leaves=90, min_child_samples=1),
    "lightgbm, categories one by one": lgb("LGBMRegressor", max_cat_to_onehot=1, cat_smooth=1),
    "lightgbm, no missing values": lgb("LGBMRegressor", use_missing=False),
    "lightgbm, dart": lgb("LGBMRegressor", boosting_type="dart"),
    "lightgbm, forest": lgb("LGBMRegressor", boosting_type="rf", bagging_freq=1, subsample=0.7),
    "lightgbm, roots": lgb("LGBMRegressor", reg_sqrt=True),
    "lightgbm, gamma": lgb("LGBMRegressor", lambda y: np.abs(y) + 0.1, objective="gamma"),
    "lightgbm, classes": lgb("LGBMClassifier", lambda y: y > 0),
    "lightgbm, three classes": lgb("LGBMClassifier", three),
    "lightgbm, one against all": lgb("LGBMClassifier", three, objective="multiclassova"),
}
OTHERS = {
    "tree": skl(DecisionTreeRegressor(max_depth=6)),
    "a leaf": skl(DecisionTreeRegressor(min_samples_leaf=200)),
    "tree, classes": skl(DecisionTreeClassifier(max_depth=6), three),
    "forest": skl(en.RandomForestRegressor(5)),
    "forest, classes": skl(en.RandomForestClassifier(5, max_depth=5), lambda y: y > 0),
    "extra trees": skl(en.ExtraTreesRegressor(5, max_depth=6)),
    "extra trees, classes": skl(en.ExtraTreesClassifier(5, max_depth=6), three),
    "catboost": cat("CatBoostRegressor"),
    "catboost, missing above": cat("CatBoostRegressor", nan_mode="Max"),
    "catboost, classes": cat("CatBoostClassifier", lambda y: y > 0),
    "catboost, three classes": cat("CatBoostClassifier", three),
}
NO_GAPS = {
    "boosting": skl(en.GradientBoostingRegressor(n_estimators=20)),
    "boosting, from zero": skl(en.GradientBoostingRegressor(n_estimators=20, init="zero")),
    "boosting, classes": skl(
        en.GradientBoostingClassifier(n_estimators=9, loss="exponential"), lambda y: y > 0
    ),
    "boosting, three classes": skl(en.GradientBoostingClassifier(n_estimators=9), three),
}
LINEAR = {
    "linear": skl(linear_model.LinearRegression()),
    "ridge, two outputs": skl(linear_model.Ridge(), lambda y: np.column_stack([y, y**2])),
    "robust": skl(linear_model.RANSACRegressor(random_state=0)),
    "logit": skl(linear_model.LogisticRegression(), lambda y: y > 0),
    "logit, three classes": skl(linear_model.LogisticRegression(), three),
    "support vectors": skl(LinearSVC(), lambda y: y > 0),
}
CASES = [
    # Each library's models take gaps and levels together and apart, in turn.
    *((name, gaps, (gaps + turn) % 2) for turn, name in enumerate(BOOSTED) for gaps in (0, 1)),
    *((name, gaps, 0) for name in OTHERS for gaps in (0, 1)),
    *((name, 0, 0) for name in (*NO_GAPS, *LINEAR)),
]


def asked_and_read(model, table, scale="response"):
    """The model, once asked for every row, and once read."""
    both = [DifferenceQuotients(model, as_table(table), None, scale) for _ in range(2)]
    both[0]._readings.append(None)
    for quotients in both:
        quotients.at_rows()
    return both


@pytest.mark.parametrize(("name", "gaps", "levels"), CASES)
@pytest.mark.filterwarnings("ignore")
def test_leaves_answer_as_the_model(name, gaps, levels, rng, monkeypatch):
    """At values of the rows, beyond them, and at thresholds and the numbers beside these."""
    monkeypatch.setattr(reading, "READ_ROWS", 1)
    monkeypatch.setattr("rhale_stats.models.differences.READ_ROWS", 1)
    monkeypatch.setattr(trees, "ROWS", 70)
    monkeypatch.setattr(trees, "CACHED_ROWS", 30)
    monkeypatch.setattr(trees, "CELLS", 4000)
    X, y, w = sample(rng, missing=bool(gaps), categories=bool(levels))
    model = (BOOSTED | OTHERS | NO_GAPS | LINEAR)[name](X, y, w, levels)
    scales = ["response"]
    if hasattr(model, "decision_function"):
        scales.append("decision")
    for scale in scales:
        asked, read = asked_and_read(model, X, scale)
        assert read.reading is not None
        cuts = getattr(read.reading._terms, "_cuts", [])
        for position in range(4):
            points = np.unique(X[:, position][~np.isnan(X[:, position])])
            if not (levels and position == 3):
                some = rng.permutation(cuts[position] if position < len(cuts) else [])[:9]
                some = some[np.isfinite(some)]
                beside = [np.nextafter(some, side) for side in (-np.inf, np.inf)]
                ends = [points[0] - 9, 1e9 if len(cuts) else 9]
                points = np.concatenate([points[::7], some, *beside, ends])
            if gaps:
                points = np.append(points, np.nan)
            versions = [rng.choice(points, N) for _ in range(2)]
            expected, curves = (q.curves(position, points)[0] for q in (asked, read))
            atol = np.abs(expected).max() * (SINGLE if "xgboost" in name else 1e-12)
            assert_allclose(curves, expected, atol=atol, rtol=0)
            expected, values = (np.stack(q.evaluate(position, versions)[0]) for q in (asked, read))
            assert_allclose(values, expected, atol=atol, rtol=0)
        assert asked.outputs.n_read == 0
        assert read.outputs.n_rows < 3 * N  # no row for a version


def test_an_early_end_of_the_fit(rng):
    lightgbm, xgboost = pytest.importorskip("lightgbm"), pytest.importorskip("xgboost")
    X, y, _ = sample(rng, n=300)
    parts = X[:200], y[:200]
    held_out = [(X[200:], y[200:])]
    models = [
        xgboost.XGBRegressor(n_estimators=200, learning_rate=0.9, early_stopping_rounds=2).fit(
            *parts, eval_set=held_out, verbose=False
        ),
        lightgbm.train(
            {"learning_rate": 0.9, "verbose": -1},
            lightgbm.Dataset(*parts),
            200,
            [lightgbm.Dataset(*held_out[0])],
            callbacks=[lightgbm.early_stopping(2, verbose=False)],
        ),
    ]
    for model in models:
        asked, read = asked_and_read(model, X)
        assert read.reading is not None
        grid = np.linspace(-2, 2, 30)
        assert_allclose(read.curves(0, grid)[0], asked.curves(0, grid)[0], atol=1e-5)


def test_the_best_model_of_a_search_is_read(rng):
    X, y, _ = sample(rng)
    model = en.HistGradientBoostingRegressor(max_iter=9)
    search = GridSearchCV(model, {"max_depth": [2, 3]}, cv=2).fit(X, y)
    asked, read = asked_and_read(search, X)
    assert read.reading is not None
    grid = np.linspace(-2, 2, 30)
    assert_allclose(read.curves(0, grid)[0], asked.curves(0, grid)[0], atol=1e-12)
    assert read.outputs.n_read == 30 * N


def prepared():
    """Every kind of step, one that drops a column among them, and columns used twice."""
    income = make_pipeline(FunctionTransformer(np.log1p), SplineTransformer(4))
    return ColumnTransformer(
        [
            ("age", make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), ["age"]),
            ("city", OneHotEncoder(handle_unknown="ignore"), ["city", "size"]),
            ("income", income, ["income"]),
            ("parts", KBinsDiscretizer(3, encode="onehot"), ["income"]),
            ("steps", KBinsDiscretizer(4, encode="ordinal"), ["rooms"]),
            ("gone", "drop", ["id"]),
        ],
        remainder="passthrough",
        sparse_threshold=0,
    )


PIPELINES = {
    "forest": (en.RandomForestRegressor(9, max_depth=6), "response"),
    "histograms": (en.HistGradientBoostingRegressor(max_iter=9), "response"),
    "ridge": (linear_model.Ridge(), "response"),
    "logit": (linear_model.LogisticRegression(max_iter=2000), "decision"),
    "classes": (en.GradientBoostingClassifier(n_estimators=9), "response"),
}


FORMS = ["as it is", "another order, transformed target, best of a search"]


@pytest.mark.parametrize(("name", "form"), [*in_turn(PIPELINES, FORMS), ("ridge", FORMS[1])])
@pytest.mark.filterwarnings("ignore")
def test_pipelines_are_read_through_their_steps(name, form, rng, monkeypatch):
    """At all values of all columns, also of levels that one row has, and that the model lacks."""
    monkeypatch.setattr(reading, "READ_ROWS", 1)
    monkeypatch.setattr("rhale_stats.models.differences.READ_ROWS", 1)
    n = 400
    X = pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
            "city": np.append(["one row only"], rng.choice(["a", "b", "c"], n - 1)),
            "income": rng.lognormal(size=n),
            "rooms": rng.integers(1, 9, n),
            "size": rng.choice(["S", "L"], n),
            "id": np.arange(n),
            "rest": rng.normal(size=n),
        }
    )
    y = X["age"].fillna(1) + (X["city"] == "b") * X["income"] + X["rooms"] * X["rest"]
    (last, scale), plain = PIPELINES[name], form == "as it is"
    is_classifier = hasattr(last, "classes_") or hasattr(last, "predict_proba")
    model = make_pipeline(prepared(), clone(last))
    if is_classifier:
        y = y > y.median()
    elif not plain:
        model = TransformedTargetRegressor(model, func=np.arcsinh, inverse_func=np.sinh)
        model = GridSearchCV(model, {"regressor__columntransformer__steps__n_bins": [3, 4]}, cv=2)
    model.fit(X, y)
    rows = X if plain else X[X.columns[::-1]].assign(beside=0.0)
    rows.loc[3, "city"] = "unknown"
    asked, read = asked_and_read(model, rows, scale)
    assert read.reading is not None
    for position, column in enumerate(rows.columns):
        points = rows[column].drop_duplicates().to_numpy()
        if column not in ("age", "city", "size"):
            points = np.append(points, [points.max() + 1])
        versions = [rng.choice(points, n) for _ in range(2)]
        expected, values = (np.stack(q.evaluate(position, versions)[0]) for q in (asked, read))
        assert_allclose(values, expected, atol=1e-12 * np.abs(expected).max(), rtol=0)
    assert read.outputs.n_read == 2 * n * len(rows.columns)


def test_a_step_that_keeps_its_columns_elsewhere_is_asked(rng, monkeypatch):
    X, y, _ = sample(rng)
    model = make_pipeline(StandardScaler(), linear_model.Ridge()).fit(X, y)
    assert asked_and_read(model, X)[1].reading is not None
    monkeypatch.delattr("sklearn.base.OneToOneFeatureMixin.get_feature_names_out")
    assert asked_and_read(model, X)[1].reading is None


@pytest.mark.thorough
def test_boosters_take_columns_by_name(rng):
    lightgbm, xgboost = pytest.importorskip("lightgbm"), pytest.importorskip("xgboost")
    X, y, _ = sample(rng)
    fit = pd.DataFrame(X, columns=["a", "b b", "c", "d"])
    table = fit[["d", "b b", "a", "c"]].assign(more=1.0)
    boosters = [
        xgboost.train({"max_depth": 3}, xgboost.DMatrix(fit, y), 9),
        lightgbm.train({"verbose": -1}, lightgbm.Dataset(fit, y), 9),
    ]
    for booster in boosters:
        asked, read = asked_and_read(booster, table)
        assert read.reading is not None
        grid = np.linspace(-2, 2, 30)
        for position in range(5):
            expected = asked.curves(position, grid)[0]
            assert_allclose(read.curves(position, grid)[0], expected, atol=1e-5)
        assert np.ptp(expected) > 0  # of other rows
        assert_array_equal(np.ptp(read.curves(4, grid)[0], axis=1), 0)


def test_names_that_differ_by_a_space_are_two_columns(rng):
    X, y, _ = sample(rng)
    X = pd.DataFrame(X, columns=["a", "b c", "b_c", "d"])
    asked, read = asked_and_read(en.HistGradientBoostingRegressor(max_iter=9).fit(X, y), X)
    assert read.reading is not None
    grid = np.linspace(-2, 2, 30)
    for position in range(4):
        expected = asked.curves(position, grid)[0]
        assert_allclose(read.curves(position, grid)[0], expected, atol=1e-12)


def test_categories_of_pandas_by_the_numbers_of_the_fit(rng):
    lightgbm = pytest.importorskip("lightgbm")
    X, y, _ = sample(rng, categories=True)
    levels = pd.Categorical.from_codes(X[:, 3].astype(int), list("hgfedcba"))
    fit = pd.DataFrame({"x": X[:, 0], "level": levels})
    model = lightgbm.LGBMRegressor(verbose=-1, min_child_samples=5).fit(fit, y + X[:, 3])
    table = fit.assign(level=pd.Categorical(levels.astype(str)))  # other numbers, the same levels
    asked, read = asked_and_read(model, table)
    assert read.reading is not None
    values = pd.Categorical(list("abcdefgh") * 2, categories=list("abcdefgh"))
    assert_allclose(read.curves(1, values)[0], asked.curves(1, values)[0], atol=1e-12)


def test_a_table_of_single_precision(rng):
    X, y, _ = sample(rng)
    model = en.HistGradientBoostingRegressor(max_iter=9).fit(X, y)
    asked, read = asked_and_read(model, (X / 3).astype(np.float32))
    versions = [np.roll(np.linspace(-1, 1, N), 9 * number) / 3 for number in range(27)]
    expected, stored = asked.evaluate(0, versions)
    values, stored_too = read.evaluate(0, versions)
    assert read.outputs.n_read == 27 * N
    assert_allclose(values, expected, atol=1e-12)
    assert_array_equal(stored_too, stored)


# --- models that are asked ------------------------------------------------------------------------


class Doubled(en.HistGradientBoostingRegressor):
    """Answers otherwise than its trees."""

    def predict(self, X):
        return 2 * super().predict(X)


UNREAD = {
    "inherited": skl(Doubled(max_iter=5)),
    "columns that mix": lambda X, y, *_: make_pipeline(
        PolynomialFeatures(), en.GradientBoostingRegressor(n_estimators=5)
    ).fit(X, y),
    "a function of a user": lambda X, y, *_: make_pipeline(
        FunctionTransformer(lambda x: x**2), linear_model.Ridge()
    ).fit(X, y),
    "values filled from other columns": lambda X, y, *_: make_pipeline(
        KNNImputer(), linear_model.Ridge()
    ).fit(X, y),
    "from another model": skl(
        en.GradientBoostingRegressor(n_estimators=5, init=linear_model.LinearRegression())
    ),
    "linear leaves": lgb("LGBMRegressor", linear_tree=True),
    "zeros for missing": lgb("LGBMRegressor", zero_as_missing=True),
    "a number for missing values": xgb("XGBRegressor", missing=0.0),
    "linear boosting": xgb("XGBRegressor", booster="gblinear"),
    "quantiles": xgb("XGBRegressor", objective="reg:quantileerror", quantile_alpha=0.3),
    "leaves of vectors": xgb(
        "XGBRegressor", lambda y: np.column_stack([y, -y]), multi_strategy="multi_output_tree"
    ),
    "trees that are not symmetric": cat("CatBoostRegressor", grow_policy="Lossguide"),
    "exponents": cat("CatBoostRegressor", np.abs, loss_function="Poisson"),
}


@pytest.mark.parametrize("name", UNREAD)
@pytest.mark.filterwarnings("ignore")
def test_others_are_asked(name, rng):
    X, y, w = sample(rng)
    model = UNREAD[name](X, y, w, 0)
    asked, read = asked_and_read(model, X)
    assert read.reading is None
    grid = np.linspace(-1, 1, 20)
    assert_array_equal(read.curves(0, grid)[0], asked.curves(0, grid)[0])
    assert rs.pdp(model, X, features=0, progress=False).attrs["answers_from"] == "predictions"


def wrong_values(tree):
    return tree.value + 1e-3


def other_threshold(tree):
    return tree.threshold + 0.3


@pytest.mark.parametrize(
    ("part", "wrong"), [("value", wrong_values), ("threshold", other_threshold)]
)
def test_a_reading_that_disagrees_is_not_used(part, wrong, rng, monkeypatch):
    X, y, _ = sample(rng)
    model = en.HistGradientBoostingRegressor(max_iter=9).fit(X, y)
    forest = readers.trees_of(model, "predict")
    for tree in forest.trees:
        object.__setattr__(tree, part, wrong(tree))
    monkeypatch.setattr(reading, "trees_of", lambda *_: forest)
    assert asked_and_read(model, X)[1].reading is None


def test_a_model_that_refuses_values_says_so(rng):
    """A missing value in a row that is not compared, and versions that are refused."""
    X, y, _ = sample(rng)
    model = en.GradientBoostingRegressor(n_estimators=5).fit(X, y)
    gap = np.vstack([np.repeat(X, 30, axis=0), np.full((1, 4), np.nan)])
    read = DifferenceQuotients(model, as_table(gap))
    assert read.reading is None
    with pytest.raises(rs.ModelError, match="Input X contains NaN"):
        read.curves(0, np.array([0.0]))


def test_large_forests_are_asked(rng, monkeypatch):
    X, y, _ = sample(rng)
    monkeypatch.setattr(reading, "MAX_BYTES", 1000)
    assert asked_and_read(en.RandomForestRegressor(5).fit(X, y), X)[1].reading is None


# --- what users call ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def boosted():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 4))
    y = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2])
    return en.HistGradientBoostingRegressor(max_iter=30).fit(X, y), X


CALLS = {
    "pdp": lambda model, X: rs.pdp(model, X, progress=False),
    "pdp of a pair": lambda model, X: rs.pdp(model, X, [("x0", "x1")], n_grid=9, progress=False),
    "ice": lambda model, X: rs.ice(model, X, "x2", n_grid=9, progress=False),
    "ale": lambda model, X: rs.ale_local_effects(model, X, progress=False),
}


@pytest.mark.parametrize("name", CALLS)
def test_results_are_those_of_predictions(name, boosted):
    model, X = boosted
    read, asked = CALLS[name](model, X), CALLS[name](model.predict, X)
    assert read.attrs["answers_from"] == "leaves of its trees"
    assert asked.attrs["answers_from"] == "predictions"
    for variable in read.data_vars:
        assert_allclose(read[variable], asked[variable], atol=1e-9, err_msg=variable)
    if "model_rows" in read.attrs:
        assert read.attrs["model_rows"] < len(X)


def test_coefficients_of_a_linear_model(rng):
    X = rng.normal(size=(3000, 3))
    model = linear_model.LinearRegression().fit(X, X @ [1.0, 2, 3])
    read, asked = (rs.pdp(one, X, progress=False) for one in (model, model.predict))
    assert read.attrs["answers_from"] == "its coefficients"
    assert_allclose(read["curve"], asked["curve"], atol=1e-12)


@pytest.mark.parametrize(
    "model", [linear_model.LogisticRegression(), en.HistGradientBoostingClassifier(max_iter=9)]
)
def test_a_model_of_one_column(model, rng):
    """With which nothing is left of a row as the column moves."""
    x = rng.normal(size=(300, 1))
    asked, read = asked_and_read(model.fit(x, three(x[:, 0])), x)
    grid = np.linspace(-2, 2, 30)
    expected, curves = (q.curves(0, grid)[0] for q in (asked, read))
    assert read.outputs.n_read == 9000
    assert_allclose(curves, expected, atol=1e-12)


def test_a_printed_table_says_that_leaves_were_read(boosted):
    model, X = boosted
    text = str(rs.summary(rs.pdp(model, X, "x0", progress=False)))
    assert "1453, and leaves of its trees read" in text
    assert "leaves" not in str(rs.summary(rs.pdp(model.predict, X, "x0", progress=False)))


def test_few_rows_are_asked_for(boosted):
    model, X = boosted
    local = rs.ale_local_effects(model, X[:500], progress=False)
    assert local.attrs["answers_from"] == "predictions"
