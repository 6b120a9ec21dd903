"""Which features get derivatives and which slopes across cells, and what is refused."""

from __future__ import annotations

import importlib
import warnings
from itertools import count, pairwise

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import rhale_stats as rs
from rhale_stats.arrays import local_effects as kernel
from rhale_stats.arrays import probes as sums
from tests.helpers import in_turn

CENTRAL, FINITE = "central_difference", "finite_difference"
FLOAT32, FLOAT16 = (float(np.finfo(one).eps) for one in (np.float32, np.float16))


@pytest.fixture(scope="module")
def X():
    values = np.random.default_rng(5).normal(size=(3000, 2))
    values.setflags(write=False)
    return values


def methods(model, X, **arguments):
    """Methods of the features, and the local effects; a warning is no error here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rs.JumpWarning)
        local = rs.local_effects(model, X, **arguments)
    return local["local_effect_method"].values.tolist(), local


def edges_of(local, column):
    """Of the cells of one feature."""
    edges = local["cell_value"].values[column]
    return edges[~np.isnan(edges)]


def cells_of(edges, x):
    return np.clip(np.searchsorted(edges, x, side="right") - 1, 0, len(edges) - 2)


def ale_gain(model, X, column, edges):
    """Range of the ALE curve on given bins, and its right end, by plain loops."""
    k = cells_of(edges, X[:, column])
    upper, lower = X.copy(), X.copy()
    upper[:, column], lower[:, column] = edges[k + 1], edges[k]
    change = model(upper) - model(lower)
    curve = np.cumsum([0.0, *(change[k == b].mean() for b in range(len(edges) - 1))])
    return np.ptp(curve), curve[-1]


def own_gain(local, column):
    """The same from local effects: means in cells, times their widths."""
    x, g = local["x"].values[:, column], local["local_effect"].values[:, column]
    edges = edges_of(local, column)
    k = cells_of(edges, x)
    steps = [g[k == b].mean() * (edges[b + 1] - edges[b]) for b in range(len(edges) - 1)]
    curve = np.cumsum([0.0, *steps])
    return np.ptp(curve), curve[-1]


# --- what is smooth, and what jumps -------------------------------------------------------------


SMOOTH = {
    "line": lambda z: 3 * z,
    "steep": lambda z: np.tanh(20 * z),
    "very steep": lambda z: np.tanh(300 * z),
    "swings": lambda z: np.sin(30 * z),
    "explodes": lambda z: np.exp(5 * z),
    "kink": np.abs,
    "50 kinks": lambda z: np.maximum(z[:, None] - np.linspace(-2, 2, 50), 0).sum(axis=1),
    "flat but for a ramp": lambda z: np.clip(10 * (z - 1), 0, 1),
    "logistic": lambda z: 1 / (1 + np.exp(-z)),
    "no effect": np.zeros_like,
    "jump of 1e-5": lambda z: z + 1e-5 * (z > 0.1),
    "small on a large level": lambda z: 1e6 + np.sin(z),
}
JUMPS = {
    "step": lambda z: 10.0 * (z > 0.3117),
    "step at an end": lambda z: z + (z > 2.9),
    "step on a parabola": lambda z: z**2 + 0.3 * (z > 1.9),
    "step on swings": lambda z: np.sin(30 * z) + 0.1 * (z > 0.3),
    "step on a steep curve": lambda z: np.tanh(20 * z) + 0.1 * (z > -0.7),
    "stairs": lambda z: np.floor(3 * z),
    "line with teeth": lambda z: z - np.floor(4 * z),
    "rounded": lambda z: np.round(np.sin(z), 2),
    "table of 500": lambda z: np.sin(np.floor(100 * z) / 100),
    "narrower than any cell": lambda z: np.tanh(1e8 * z),
    "line and steps": lambda z: z + 0.02 * np.floor(7 * z),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("interaction", [False, True])
def test_what_is_continuous_gets_derivatives(X, name, interaction):
    def model(X):
        return SMOOTH[name](X[:, 0]) * (X[:, 1] if interaction else 1)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        local = rs.local_effects(model, X)
    assert local["local_effect_method"].values.tolist() == [CENTRAL, CENTRAL]
    assert "cell_value" not in local


@pytest.mark.thorough
@pytest.mark.parametrize("name", JUMPS)
@pytest.mark.parametrize("interaction", [False, True])
def test_what_jumps_gets_slopes_that_gain_what_ale_gains(X, name, interaction):
    """users.md 1: and the other feature keeps its derivative, where it is smooth in it."""

    def model(X):
        return JUMPS[name](X[:, 0]) * (1 + X[:, 1] ** 2 if interaction else 1) + 0.5 * X[:, 1]

    with pytest.warns(rs.JumpWarning, match="The output jumps with 'x0' .derivatives miss"):
        local = rs.local_effects(model, X)
    assert local["local_effect_method"].values.tolist() == [FINITE, CENTRAL]
    edges = edges_of(local, 0)
    assert len(edges) == 41
    assert_allclose(own_gain(local, 0), ale_gain(model, X, 0, edges), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["parabola", "cube", "logarithm"])
@pytest.mark.parametrize("tail", ["Cauchy", "log-normal"])
def test_heavy_tails_are_no_jumps_and_hide_none(name, tail):
    rng = np.random.default_rng(3)
    x = rng.standard_cauchy(4000) if tail == "Cauchy" else np.exp(2 * rng.normal(size=4000))
    f = {"parabola": np.square, "cube": lambda z: z**3, "logarithm": lambda z: np.log1p(z**2)}[name]
    assert methods(lambda X: f(X[:, 0]), x[:, None])[0] == [CENTRAL]
    at = np.median(x)
    assert methods(lambda X: f(X[:, 0]) + np.ptp(f(x[:100])) * (X[:, 0] > at), x[:, None])[0] == [
        FINITE
    ]


def test_a_step_that_only_some_rows_have_is_seen(X):
    found, _ = methods(lambda X: X[:, 0] ** 2 + 2 * ((X[:, 0] > 0.9) & (X[:, 1] > 1)), X)
    assert found == [FINITE, FINITE]


def test_a_step_between_the_rows_that_are_looked_at_is_seen():
    """The windows of the rows cover the axis, whatever is drawn."""
    x = np.sort(np.random.default_rng(0).uniform(size=100_000))
    for at in (0.0003, 0.31173, 0.99993):
        assert methods(lambda X, at=at: X[:, 0] + (X[:, 0] > at), x[:, None])[0] == [FINITE]


def test_one_output_that_jumps_is_enough(X):
    found, local = methods(lambda X: np.column_stack([X[:, 0] ** 2, X[:, 0] > 0]) + X[:, [1]], X)
    assert found == [FINITE, CENTRAL]
    assert local["cell_value"].dims == ("feature", "cell_edge")


def test_how_densely_rows_lie_makes_no_jump():
    """Half of the rows at 0, the others from 4 on, and a hinge in between: kinks, no jump."""
    rng = np.random.default_rng(0)
    x = np.where(rng.random(2000) < 0.5, 0.0, rng.uniform(4, 7, 2000))[:, None]

    def model(X):
        return np.maximum(X[:, 0] - 2, 0) - 3 * np.maximum(X[:, 0] - 3.5, 0)

    for few in (x, x[:30]):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            local = rs.local_effects(model, few)
        assert local["local_effect_method"].values.tolist() == [CENTRAL]
        assert_allclose(local["local_effect"][:, 0], np.where(few[:, 0] > 0, -2, 0), atol=1e-9)
        assert methods(lambda X: model(X) + (X[:, 0] > 3), few)[0] == [FINITE]


def few_rows(seed):
    """30 rows, of which the second column has a point mass; an outcome and two classes."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=30), rng.exponential(size=30), rng.uniform(0, 9, 30)])
    X[rng.random(30) < 0.4, 1] = 0.0
    y = np.sin(2 * X[:, 0]) + X[:, 0] * X[:, 1] + X[:, 2] / 3 + 0.3 * rng.normal(size=30)
    return X, y, (y > np.median(y)).astype(int)


def models_of_few_rows():
    """Models of scikit-learn: whether they jump, whether they are classifiers."""
    learn = pytest.importorskip("sklearn")
    for name in ("ensemble", "gaussian_process", "kernel_ridge", "linear_model", "neighbors"):
        importlib.import_module(f"sklearn.{name}")
    for name in ("neural_network", "pipeline", "preprocessing", "svm", "tree"):
        importlib.import_module(f"sklearn.{name}")
    scaled = lambda *steps: learn.pipeline.make_pipeline(  # noqa: E731
        learn.preprocessing.StandardScaler(), *steps
    )
    spline, ridge = learn.preprocessing.SplineTransformer, learn.linear_model.Ridge
    kernel = learn.gaussian_process.kernels.RBF() + learn.gaussian_process.kernels.WhiteKernel()
    seeded = {"random_state": 0}
    options = {"max_iter": 60, **seeded}
    return {
        "perceptron": (scaled(learn.neural_network.MLPRegressor(**options)), False, False),
        "classifier": (scaled(learn.neural_network.MLPClassifier(**options)), False, True),
        "Gaussian process": (
            scaled(learn.gaussian_process.GaussianProcessRegressor(kernel)),
            *(False, False),
        ),
        "support vectors": (scaled(learn.svm.SVR(C=100, gamma=2)), False, False),
        "kernel ridge": (scaled(learn.kernel_ridge.KernelRidge(kernel="rbf")), False, False),
        "logistic": (learn.linear_model.LogisticRegression(C=1e4, max_iter=999), False, True),
        "spline": (learn.pipeline.make_pipeline(spline(5), ridge()), False, False),
        "broken lines": (learn.pipeline.make_pipeline(spline(5, degree=1), ridge()), False, False),
        "tree": (learn.tree.DecisionTreeRegressor(max_depth=5, **seeded), True, False),
        "forest": (learn.ensemble.RandomForestClassifier(20, **seeded), True, True),
        "boosting": (
            learn.ensemble.GradientBoostingRegressor(n_estimators=30, **seeded),
            *(True, False),
        ),
        "neighbours": (scaled(learn.neighbors.KNeighborsRegressor(5)), True, False),
    }


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(3))
def test_smooth_models_of_few_rows_keep_derivatives_and_trees_get_slopes(seed):
    X, y, classes = few_rows(seed)
    for name, (model, jumps, classifies) in models_of_few_rows().items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, classes if classifies else y)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = rs.local_effects(model, X)["local_effect_method"].values
        said = [one for one in caught if issubclass(one.category, rs.JumpWarning)]
        assert bool(said) == jumps, name
        assert jumps or (found != FINITE).all(), (name, found)
        for at in np.flatnonzero(found != FINITE) if jumps else ():
            # Of no effect at all: a tree need not use every column.
            curves = rs.ice(model, X, features=[at], grid=np.unique(X[:, at]))["ice"]
            assert np.ptp(curves, axis=-1).max() == 0, name


@pytest.mark.parametrize("n", [20, 32, 60])
def test_local_effects_of_statsmodels_are_exact_and_average_to_the_margins(n):
    """`get_margeff` and `averages`; by exact derivatives, however few rows there are."""
    smf = pytest.importorskip("statsmodels.formula.api")
    sm = importlib.import_module("statsmodels.api")
    rng = np.random.default_rng(n)
    data = pd.DataFrame({"x": rng.normal(size=n), "z": rng.exponential(size=n)})
    data["b"] = (rng.random(n) < 1 / (1 + np.exp(-data["x"]))).astype(int)
    data["k"], data["m"] = rng.poisson(np.exp(0.3 * data["x"])), rng.integers(0, 3, n)
    data["years"] = rng.uniform(1, 2, n)
    fits = {
        "logit": smf.logit("b ~ x + z", data).fit(disp=0),
        "probit": smf.probit("b ~ x + z", data).fit(disp=0),
        "Poisson": smf.poisson("k ~ x + z", data).fit(disp=0),
        "multinomial": smf.mnlogit("m ~ x + z", data).fit(disp=0),
        "table": sm.Logit(data["b"], sm.add_constant(data[["x", "z"]])).fit(disp=0),
        "OLS": smf.ols("k ~ x * z + I(x**2)", data).fit(),
        "GLM": smf.glm(
            "k ~ cr(x, df=3, constraints='center') + z",
            data,
            family=sm.families.Poisson(),
            exposure=data["years"],
        ).fit(),
    }
    for name, fit in fits.items():
        X = fit.model.data.orig_exog if name == "table" else data[["x", "z", "years"]]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            local = rs.local_effects(fit, X, features=["x", "z"])
            if name == "logit":
                odds = rs.local_effects(fit, X, features=["x", "z"], scale="logit")
                expected = np.tile(fit.params[["x", "z"]], (n, 1))
                assert_allclose(odds["local_effect"], expected, rtol=1e-9)
        assert (local["local_effect_method"] == "gradient").all(), name
        mean = local["local_effect"].mean("obs").values
        averages = rs.averages(fit, X, features=["x", "z"])["average"].values[..., 1:]
        assert_allclose(mean, averages, rtol=2e-5, atol=1e-9, err_msg=name)
        if name not in ("OLS", "GLM"):
            margins = np.asarray(fit.get_margeff().margeff)
            assert_allclose(mean, margins.T if name == "multinomial" else margins, atol=1e-10)


def test_few_rows_and_ties():
    for n in (2, 3, 5, 12, 30):
        x = np.linspace(0, 1, n)[:, None]
        assert methods(lambda X: X[:, 0] ** 2, x)[0] == [CENTRAL]
    assert methods(lambda X: 1.0 * (X[:, 0] > 0.5), x)[0] == [FINITE]
    hours = np.repeat(np.arange(24.0), 30)[:, None]
    # Derivatives at few values do not say what is between them (math [2]).
    assert methods(lambda X: np.sin(X[:, 0] / 4), hours)[0] == [FINITE]
    assert methods(lambda X: 1.0 * (X[:, 0] > 12.5), hours)[0] == [FINITE]
    assert methods(lambda X: 1.0 * (X[:, 0] >= 12), hours)[0] == [FINITE]


def test_central_differences_asked_for_are_taken_with_a_warning_where_the_output_jumps(X):
    def model(X):
        return X[:, 0] + np.floor(X[:, 0]) + X[:, 1]

    with pytest.warns(rs.JumpWarning, match="'x0' .*method='central_difference' does not detect"):
        local = rs.local_effects(model, X, method=CENTRAL)
    assert local["local_effect_method"].values.tolist() == [CENTRAL, CENTRAL]
    with pytest.raises(ValueError, match="must have a useful derivative; for feature 'x0'"):
        rs.local_effects(lambda X: np.floor(X[:, 0]), X, method=CENTRAL)


def test_the_rows_looked_at_have_a_value_and_weight(X):
    gaps = X.copy()
    gaps[::2, 0] = np.nan
    found, _ = methods(lambda X: (np.nan_to_num(X[:, 0]) > 0) + X[:, 1], gaps, missing="drop")
    assert found == [FINITE, CENTRAL]
    # The step is where no row has weight.
    weight = (X[:, 0] < 1).astype(float)
    found, _ = methods(lambda X: 1.0 * (X[:, 0] > 1.5), X[:, :1], weights=weight)
    assert found == [CENTRAL]


def test_the_cost_of_a_probe():
    x = np.random.default_rng(0).normal(size=(100_000, 1))
    asked = []

    def model(X):
        asked.append(len(X))
        return np.sin(30 * X[:, 0]) + 0.1 * (X[:, 0] > 0.3)

    methods(model, x)
    assert sum(asked) <= 2 * 100_000 * 1.05


# --- models -------------------------------------------------------------------------------------


def jumping_models():
    """Untrained models of scikit-learn and of libraries that happen to be there."""
    ensemble = pytest.importorskip("sklearn.ensemble")
    linear = importlib.import_module("sklearn.linear_model")
    pipeline = importlib.import_module("sklearn.pipeline")
    neighbors = importlib.import_module("sklearn.neighbors")
    scaler = importlib.import_module("sklearn.preprocessing").StandardScaler
    forest = ensemble.RandomForestRegressor(20, random_state=0)
    boosted = ensemble.HistGradientBoostingRegressor(max_iter=30, random_state=0)
    ridge = ("ridge", linear.Ridge())
    found = {
        "forest": forest,
        "histogram boosting": boosted,
        "nearest neighbours": pipeline.make_pipeline(scaler(), neighbors.KNeighborsRegressor(7)),
        "blend": ensemble.VotingRegressor([ridge, ("forest", forest)]),
        "blend, little of a forest": ensemble.VotingRegressor(
            [ridge, ("forest", forest)], weights=[0.97, 0.03]
        ),
        "stacking": ensemble.StackingRegressor([ridge, ("boosted", boosted)], cv=3),
    }
    libraries = {
        "xgboost": lambda its: {
            f"xgboost {how}": its.XGBRegressor(n_estimators=30, tree_method=how, n_jobs=1)
            for how in ("hist", "exact", "approx")
        },
        "lightgbm": lambda its: {
            f"lightgbm linear={how}": its.LGBMRegressor(
                n_estimators=30, linear_tree=how, verbose=-1, n_jobs=1
            )
            for how in (False, True)
        },
        "catboost": lambda its: {
            "catboost": its.CatBoostRegressor(
                iterations=30, verbose=0, allow_writing_files=False, thread_count=1
            )
        },
    }
    for name, build in libraries.items():
        if importlib.util.find_spec(name):
            found |= build(importlib.import_module(name))
    return found


@pytest.mark.slow
def test_trees_neighbours_and_blends_get_slopes_that_gain_what_ale_gains():
    """users.md 1, with models as they are by default."""
    models = jumping_models()
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.normal(size=1500), rng.beta(2, 5, 1500), rng.integers(0, 24, 1500)])
    y = np.sin(2 * X[:, 0]) + X[:, 0] * X[:, 1] + 0.1 * np.abs(X[:, 2] - 12)
    for name, model in models.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)
            found, local = methods(model, X)
            assert found == [FINITE] * 3, name
            for column in range(3):
                theirs = ale_gain(model.predict, X, column, edges_of(local, column))
                assert_allclose(own_gain(local, column), theirs, rtol=1e-4, atol=1e-6, err_msg=name)


def test_networks_splines_and_hinges_get_derivatives():
    network = pytest.importorskip("sklearn.neural_network").MLPRegressor
    linear = importlib.import_module("sklearn.linear_model")
    pipeline = importlib.import_module("sklearn.pipeline")
    preprocessing = importlib.import_module("sklearn.preprocessing")
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.normal(size=800), rng.exponential(size=800)])
    y = np.sin(2 * X[:, 0]) + X[:, 0] * X[:, 1]
    models = [
        network(hidden_layer_sizes=(30, 10), max_iter=80, random_state=0),
        network(hidden_layer_sizes=(20,), activation="tanh", max_iter=80, random_state=0),
        pipeline.make_pipeline(preprocessing.SplineTransformer(6, degree=3), linear.Ridge()),
        pipeline.make_pipeline(preprocessing.SplineTransformer(9, degree=1), linear.Ridge()),
        pipeline.make_pipeline(preprocessing.PolynomialFeatures(3), linear.Ridge()),
    ]
    for model in models:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Stochastic Optimizer")
            model.fit(X, y)
        assert rs.local_effects(model, X)["local_effect_method"].values.tolist() == ["gradient"] * 2
        for single in (np.float32, np.float64):
            answers = lambda X, m=model, t=single: m.predict(X).astype(t)  # noqa: E731
            assert methods(answers, X)[0] == [CENTRAL] * 2


# --- answers that are not to be had -------------------------------------------------------------


@pytest.mark.parametrize("size", [1e-12, 1e-6, 1.0])
def test_a_model_that_answers_at_random_is_refused(X, rng, size):
    """reliability.md 9."""

    def model(X):
        return X[:, 0] + size * rng.normal(size=len(X))

    with pytest.raises(rs.ModelError, match="the same answer for the same rows.*evaluation mode"):
        rs.local_effects(model, X)
    with pytest.raises(rs.ModelError, match="the same answer for the same rows.*evaluation mode"):
        rs.ale(model, X)


def test_a_torch_network_in_training_mode_is_refused(X):
    torch = pytest.importorskip("torch")
    layers = [torch.nn.Linear(2, 8), torch.nn.ReLU(), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1)]
    network = torch.nn.Sequential(*layers).double()

    def model(X):
        return network(torch.from_numpy(np.array(X)))

    with pytest.raises(rs.ModelError, match="evaluation mode"):
        rs.local_effects(model, X)
    network.eval()
    # Answers that hold a gradient, of shape (rows, 1), are taken as they are.
    assert methods(model, X)[0] == [CENTRAL] * 2


def test_a_model_that_looks_at_the_other_rows_is_refused(X):
    with pytest.raises(rs.ModelError, match="row by row; its answer .* depends on the other rows"):
        rs.local_effects(lambda X: X[:, 0] / X[:, 0].std(), X)


def test_sums_in_another_order_are_no_randomness(X, rng):
    calls = []

    def model(X):
        calls.append(len(X))
        return X[:, 0] * (1 + np.finfo(float).eps * (len(calls) % 2))

    assert methods(model, X)[0] == [CENTRAL] * 2


# --- precision ----------------------------------------------------------------------------------


PRECISIONS = {
    "single": (lambda y: y.astype(np.float32), FLOAT32, FLOAT32),
    "single, as double": (lambda y: y.astype(np.float32).astype(float), FLOAT32, FLOAT32),
    "single, scaled in double": (lambda y: 1.7 + 3 * y.astype(np.float32).astype(float), 0.3, 3),
    "half": (lambda y: y.astype(np.float16), FLOAT16, FLOAT16),
    "half, as double": (lambda y: y.astype(np.float16).astype(float), FLOAT16, FLOAT16),
    "double": (lambda y: y, np.finfo(float).eps, np.finfo(float).eps),
}


@pytest.mark.parametrize("name", PRECISIONS)
def test_precision_of_the_answers_is_found_and_derivatives_are_within_their_error(X, name):
    """code.md B5, and the last of 1c: a model that computes in single precision."""
    rounded, least, most = PRECISIONS[name]
    if most == 3:
        least, most = 0.1 * FLOAT32, 3 * FLOAT32
    found, local = methods(lambda X: rounded(np.sin(2 * X[:, 0]) + X[:, 1] ** 2), X)
    assert found == [CENTRAL] * 2
    assert least <= local.attrs["answer_precision"] <= most
    exact = np.column_stack([2 * np.cos(2 * X[:, 0]), 2 * X[:, 1]])
    scale = 3 if "scaled" in name else 1
    off = np.abs(local["local_effect"].values - scale * exact)
    error = local["local_effect_error"].values
    assert (np.quantile(off, 0.97, axis=0) <= error).all()
    # Not so large that nothing would be left.
    assert (error <= 200 * np.quantile(off, 0.97, axis=0) + 1e-12).all()


@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_slopes_of_a_model_in_single_precision_hold_its_rounding(offset):
    """code.md B5: an additive, linear model is not heterogeneous."""
    X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    local = rs.ale_local_effects(
        lambda X: (3 * X[:, 0] + X[:, 1] + offset).astype(np.float32), X, bins=rs.EqualWidthBins(40)
    )
    spread = local["local_effect"].std("obs")
    assert (spread < local["local_effect_error"]).all()


def test_a_jacobian_in_single_precision_holds_its_rounding():
    """code.md B5: as a callable, an array, and as double."""
    X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    x = X[:, 1].astype(np.float32)
    three = (x * np.float32(0.1) + np.float32(0.3)) * np.float32(10) - x
    given = np.column_stack([three, 1 + 0 * x])
    for jacobian in (
        given,
        given.astype(float),
        lambda X: given,
        pd.DataFrame(given).set_axis(["x0", "x1"], axis=1),
    ):
        local = rs.local_effects(None, X, jacobian=jacobian)
        assert local["local_effect_error"].values[0] > np.ptp(three)
        assert local.attrs["answer_precision"] == FLOAT32
        assert local.attrs["scale"] == ""


def test_noise_is_no_jump_and_a_jump_no_noise():
    """Split points of boosted trees are values of the data: half the step sees the same jump."""
    x = np.sort(np.random.default_rng(2).normal(size=1000))
    level = np.random.default_rng(3).normal(size=1001)
    found, local = methods(lambda X: level[np.searchsorted(x, X[:, 0], side="right")], x[:, None])
    assert found == [FINITE]
    assert local.attrs["answer_precision"] == np.finfo(float).eps


# --- a Jacobian beside the model ----------------------------------------------------------------


def staircase(X):
    return np.floor(X[:, 0])


def bowl(X):
    return X[:, 0] ** 2 + X[:, 0] * X[:, 1]


def bowl_jacobian(X):
    return np.column_stack([2 * X[:, 0] + X[:, 1], X[:, 0]])


def test_a_jacobian_that_agrees_is_taken(X):
    local = rs.local_effects(bowl, X, jacobian=bowl_jacobian)
    assert local["local_effect_method"].values.tolist() == ["jacobian"] * 2
    assert_array_equal(local["local_effect"], bowl_jacobian(X))
    check = rs.check_jacobian(bowl, bowl_jacobian, X)
    assert check["agrees"].values.tolist() == [True, True]
    assert (check["deviation"] < 1e-6).all()


@pytest.mark.parametrize("type_", [np.float32, np.float16])
def test_a_jacobian_in_coarser_precision_agrees(X, type_):
    single = lambda X: bowl(X).astype(type_)  # noqa: E731
    check = rs.check_jacobian(single, lambda X: bowl_jacobian(X).astype(type_), X)
    assert check["agrees"].values.tolist() == [True, True]


@pytest.mark.thorough
def test_gradients_of_a_network_of_many_kinks_in_single_precision_agree():
    """Steps are a hundredth of the scale there, and meet kinks of one unit or another."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    first, second = (rng.normal(size=shape).astype(np.float32) for shape in ((3, 300), (300, 300)))
    last = rng.normal(size=300).astype(np.float32)

    def layers(X):
        one = np.maximum(X.astype(np.float32) @ first, 0)
        return one, np.maximum(one @ second, 0)

    def network(X):
        return layers(X)[1] @ last

    def jacobian(X):
        one, two = layers(X)
        return (((two > 0) * last) @ second.T * (one > 0)) @ first.T

    assert rs.check_jacobian(network, jacobian, X)["agrees"].all()
    local = rs.local_effects(network, X, jacobian=jacobian)
    assert local["local_effect_method"].values.tolist() == ["jacobian"] * 3
    assert rs.local_effects(network, X)["local_effect_method"].values.tolist() == [CENTRAL] * 3
    off = rs.check_jacobian(network, lambda X: 1.05 * jacobian(X), X)
    assert not off["agrees"].any()


@pytest.mark.parametrize("wrong", [1.05, -1.0, 0.0])
def test_a_jacobian_of_another_function_is_refused(X, wrong):
    def jacobian(X):
        return bowl_jacobian(X) * [1, wrong]

    with pytest.raises(ValueError, match="jacobian must agree with the model; .* for 'x1' .by "):
        rs.local_effects(bowl, X, jacobian=jacobian)
    check = rs.check_jacobian(bowl, jacobian, X)
    assert check["agrees"].values.tolist() == [True, False]
    assert_allclose(check["deviation"][1], abs(1 - wrong), rtol=1e-3)


def test_gradients_that_miss_jumps_do_not_agree_and_give_way_to_slopes(X):
    """As those of trees, which are zero."""

    def model(X):
        return bowl(X) + 5 * (X[:, 1] > 0.5)

    check = rs.check_jacobian(model, bowl_jacobian, X)
    assert check["agrees"].values.tolist() == [True, False]
    assert check["jumps"].values.tolist() == [False, True]
    assert check["missed"].values[1] > 0.3
    with pytest.warns(rs.JumpWarning, match="The output jumps with 'x1'"):
        local = rs.local_effects(model, X, jacobian=bowl_jacobian)
    assert local["local_effect_method"].values.tolist() == ["jacobian", FINITE]
    with pytest.warns(rs.JumpWarning, match="method='jacobian' does not detect them"):
        local = rs.local_effects(model, X, jacobian=bowl_jacobian, method="jacobian")
    assert local["local_effect_method"].values.tolist() == ["jacobian"] * 2
    with pytest.raises(ValueError, match="must have a useful derivative; for feature 'x0'"):
        rs.local_effects(staircase, X, jacobian=np.zeros(X.shape), method="jacobian")


def test_a_jacobian_is_of_one_output(X):
    two = lambda X: np.column_stack([bowl(X), -bowl(X)])  # noqa: E731
    with pytest.raises(ValueError, match="output must name the output of jacobian"):
        rs.check_jacobian(two, bowl_jacobian, X)
    assert rs.check_jacobian(two, bowl_jacobian, X, output=0)["agrees"].all()
    assert not rs.check_jacobian(two, bowl_jacobian, X, output=1)["agrees"].any()


# --- formulas -----------------------------------------------------------------------------------


def test_windows_cover_the_axis_and_reach_the_next_values():
    x = np.sort(np.r_[np.repeat(3.0, 50), np.random.default_rng(0).normal(size=200), 40.0])
    left, right = sums.windows(x)
    assert (left <= x).all()
    assert (right >= x).all()
    assert (left < right).all()
    for low, high in pairwise(x):
        assert ((left <= low) & (right >= high)).any()
    left, right = sums.windows(np.repeat([0.0, 1.0, 2.0, 5.0], 100))
    assert left[::100].tolist() == [0, 0, 1, 2]
    assert right[::100].tolist() == [1, 2, 5, 5]


def test_the_whole_change_of_an_output_that_swings_is_that_of_its_curve():
    """Windows of twice the step: everything is counted twice, up to what the ends leave."""
    x = np.linspace(0, 1, 2001)
    left, right = np.maximum(x - 5e-4, 0), np.minimum(x + 5e-4, 1)

    def change(of):
        return (of(right) - of(left))[:, None]

    rising = change(np.exp)
    assert_allclose(sums.whole_change(x, left, right, rising), rising.sum(), rtol=1e-12)
    fast = change(lambda z: np.sin(200 * np.pi * z))
    width = (right - left).sum()
    assert_allclose(sums.whole_change(x, left, right, fast), sums.SWINGS * width * 2, rtol=0.03)


def test_systematic_samples_hold_what_is_large():
    size = np.ones(1000)
    size[[7, 500]] = 100
    drawn = sums.sampled(size, 20)
    assert {7, 500} <= set(drawn.tolist())
    assert len(sums.sampled(np.zeros(5), 20)) == 0


@pytest.mark.thorough
@pytest.mark.parametrize("piece", range(16))
def test_the_piece_that_jumps_stands_out_from_a_curve_and_a_kink_does_not(piece):
    z = np.linspace(0, 0.01, 17)
    curve = np.diff(np.exp(z))[None]
    at = piece * 0.01 / 16 + 1e-4
    jump = np.diff(np.exp(z) + 0.3 * (z > at))[None]
    found, size = sums.jump_of(jump)
    assert found.tolist() == [piece]
    assert_allclose(size, 0.3, rtol=0.01)
    assert sums.jump_of(curve)[1] < 1e-4 * np.abs(curve).sum()
    if 1 < piece < 14:
        assert_allclose(sums.jump_of(np.diff(np.maximum(z - at, 0))[None])[1], 0, atol=1e-15)


def test_noise_makes_no_jump():
    noise = np.random.default_rng(0).normal(size=(2000, 16))
    assert np.mean(sums.jump_of(noise)[1] > 0) < 0.05


@pytest.mark.parametrize("scale", [1e-300, 1e-155, 1.0, 1e155, 1e300])
def test_steps_of_any_scale(scale):
    """reliability.md 18: no square of x underflows or overflows."""
    z = np.random.default_rng(0).normal(size=500)
    assert_allclose(kernel.robust_scale(z * scale) / scale, kernel.robust_scale(z), rtol=1e-12)
    step = kernel.central_step(z * scale, FLOAT32)
    assert_allclose(step / scale, kernel.central_step(z, FLOAT32), rtol=1e-12)


def test_the_scale_is_robust():
    rng = np.random.default_rng(0)
    x = rng.normal(size=20_000)
    assert_allclose(kernel.robust_scale(x), 1, rtol=0.03)
    coded = np.r_[x, 999999.0, -1e300]
    assert_allclose(kernel.robust_scale(coded), kernel.robust_scale(x), rtol=1e-3)
    zeros = np.r_[np.zeros(30_000), np.abs(x), 999999.0]
    assert 0.3 < kernel.robust_scale(zeros) < 1.5
    assert kernel.robust_scale(np.ones(5)) == 0


@pytest.mark.parametrize("type_", [np.float16, np.float32, np.float64])
def test_the_type_that_holds_numbers(type_):
    values = np.random.default_rng(0).normal(size=(300, 2)).astype(type_)
    for held in (values, values.astype(np.float64)):
        assert kernel.precision_held(held) == np.finfo(type_).eps
    # Whole numbers and halves say nothing.
    assert kernel.precision_held(np.arange(100) / 2) == np.finfo(np.float64).eps


# --- the same question by every function ----------------------------------------------------------

PROBED_BY = {
    "ale": lambda model, X: rs.ale(model, X),
    "pdp": lambda model, X: rs.pdp(model, X),
    "ice": lambda model, X: rs.ice(model, X),
    "m_plot": lambda model, X: rs.m_plot(model, X),
    "h_statistic": lambda model, X: rs.h_statistic(model, X),
    "ale2": lambda model, X: rs.ale2(model, X, (0, 1)),
    "shap_dependence": lambda model, X: rs.shap_dependence(model, X, rng=0, progress=False),
    "regional_pdp": lambda model, X: rs.regional_pdp(model, X, 0, progress=False),
}


@pytest.mark.parametrize("verb", PROBED_BY)
def test_every_function_refuses_models_whose_answers_differ(verb):
    X = np.random.default_rng(0).normal(size=(60, 2))
    noise, calls = np.random.default_rng(1), count()
    with pytest.raises(rs.ModelError, match="must give the same answer for the same rows"):
        PROBED_BY[verb](lambda rows: rows[:, 0] + noise.normal(size=len(rows)), X)
    with pytest.raises(rs.ModelError, match="must give the same answer for the same rows"):
        PROBED_BY[verb](lambda rows: rows[:, 0] + next(calls), X)
    with pytest.raises(rs.ModelError, match="must answer row by row"):
        PROBED_BY[verb](lambda rows: rows[:, 0] - rows[:, 0].mean(), X)
    with pytest.raises(rs.ModelError, match="must return numbers; got dtype timedelta64"):
        PROBED_BY[verb](lambda rows: pd.to_timedelta(rows[:, 0], unit="s"), X)


@pytest.mark.parametrize(("verb", "form"), in_turn(PROBED_BY, ["array", "DataFrame", "polars"]))
def test_answers_with_labels_go_by_the_rows_that_were_given(verb, form):
    pl = pytest.importorskip("polars", reason="polars is not installed")
    values = np.random.default_rng(0).normal(size=(40, 2))
    X = {"array": values, "DataFrame": pd.DataFrame(values, columns=["a", "b"])}.get(form)
    X = pl.DataFrame({"a": values[:, 0], "b": values[:, 1]}) if X is None else X

    def plain(rows):
        rows = np.asarray(rows)
        return rows[:, 0] * rows[:, 1]

    def shuffled(rows):
        index = getattr(rows, "index", None)
        return pd.Series(plain(rows), index=index).sort_values()

    found, expected = (PROBED_BY[verb](model, X) for model in (shuffled, plain))
    name = next(one for one in ("curve", "surface", "h2_overall") if one in expected)
    np.testing.assert_allclose(found[name], expected[name], atol=1e-12)


@pytest.mark.thorough
def test_a_model_that_writes_into_its_input_does_not_change_shapley_values():
    X = np.random.default_rng(0).normal(size=(60, 2))

    def writes(rows):
        rows *= 2
        return rows[:, 0] / 2

    found = rs.shap_dependence(writes, X, rng=0, progress=False)
    expected = rs.shap_dependence(lambda rows: rows[:, 0] + 0, X, rng=0, progress=False)
    np.testing.assert_allclose(found["importance"], expected["importance"])
