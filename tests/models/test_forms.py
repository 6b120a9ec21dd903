"""Tables of all libraries: the same numbers, and the model gets the form that the user has."""

from __future__ import annotations

import datetime as dt

import hypothesis.extra.numpy as hnp
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import rhale_stats as rs
from rhale_stats.models import forms
from rhale_stats.models.forms import n_rows_of, plain_answer, read
from tests.helpers import in_turn

N = 300


def frame():
    """Two numbers, a whole number, and text."""
    rng = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "a": rng.uniform(-1, 1, N),
            "b": rng.normal(size=N),
            "k": rng.integers(0, 4, N),
            "g": rng.choice(["u", "v", "w"], N),
        }
    )


def as_polars(df):
    pl = pytest.importorskip("polars", reason="polars is not installed")
    return pl.DataFrame({name: df[name].tolist() for name in df})


def as_lazy(df):
    return as_polars(df).lazy()


def as_arrow(df):
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    return pa.table({name: df[name].tolist() for name in df})


def as_dict(df):
    return {name: df[name].to_numpy(dtype=object if name == "g" else None) for name in df}


def as_lists(df):
    return {name: df[name].tolist() for name in df}


def as_dataset(df):
    return xr.Dataset({name: ("row", column) for name, column in as_dict(df).items()})


def as_structured(df):
    kinds = [("a", float), ("b", float), ("k", int), ("g", "U1")]
    out = np.empty(len(df), dtype=kinds)
    for name, _ in kinds:
        out[name] = df[name]
    return out


FORMS = {
    "polars": (as_polars, "DataFrame", "polars"),
    "lazy": (as_lazy, "DataFrame", "polars"),
    "arrow": (as_arrow, "Table", "pyarrow"),
    "dict": (as_dict, "dict", "builtins"),
    "lists": (as_lists, "dict", "builtins"),
    "dataset": (as_dataset, "Dataset", "xarray"),
    "structured": (as_structured, "ndarray", "numpy"),
}
every_form = pytest.mark.parametrize("form", FORMS)


class Model:
    """A function of columns that remembers what it was given."""

    def __init__(self):
        self.kinds, self.types = set(), set()

    def __call__(self, X):
        self.kinds.add((type(X).__name__, type(X).__module__.partition(".")[0]))
        a, b, k, g = (np.asarray(X[name]) for name in "abkg")
        self.types.add((k.dtype.kind, type(g.tolist()[0])))
        return np.sin(a) * (g == "u") + a * b + 0.1 * k


CALLS = {
    "local_effects": lambda m, X: rs.local_effects(m, X, features=["a", "b"]),
    "rhale": lambda m, X: rs.rhale(rs.local_effects(m, X, features=["a", "b"])),
    "ale": lambda m, X: rs.ale(m, X, features=["a", "k", "g"]),
    "pdp": lambda m, X: rs.pdp(m, X, features=["a", "k", "g"], n_grid=5),
    "ice": lambda m, X: rs.ice(m, X, features=["a"], n_grid=3),
    "ale2": lambda m, X: rs.ale2(m, X, ("a", "g")),
    "h_statistic": lambda m, X: rs.h_statistic(m, X, features=["a", "b"], n_rows=30, rng=0),
    "m_plot": lambda m, X: rs.m_plot(m, X, features=["a"]),
    "over_models": lambda m, X: rs.over_models([m, m], X, features="a", method="ale", n_jobs=1),
    "groups": lambda m, X: rs.std_error(
        *(lambda local: (rs.rhale(local), local))(rs.local_effects(m, X, features=["a"])),
        groups=np.arange(N) // 3,
    ),
}


@pytest.mark.parametrize(("form", "call"), in_turn(FORMS, CALLS, 2))
def test_every_form_gives_the_numbers_of_pandas(form, call):
    make, kind, library = FORMS[form]
    asked, expected = Model(), Model()
    found, same = CALLS[call](asked, make(frame())), CALLS[call](expected, frame())
    if call == "over_models":  # models are known by where they are in memory
        same, found = (one.drop_attrs(deep=False) for one in (same, found))
    assert asked.kinds == {(kind, library)}
    assert expected.kinds == {("DataFrame", "pandas")}
    xr.testing.assert_equal(
        found.drop_vars("obs", errors="ignore"), same.drop_vars("obs", errors="ignore")
    )


@pytest.mark.thorough
@every_form
def test_types_of_columns_stay(form):
    model = Model()
    X = FORMS[form][0](frame())
    rs.ale(model, X, features=["a"])
    assert {kind for kind, _ in model.types} == {"i"}
    assert all(issubclass(text, str) for _, text in model.types)


@every_form
def test_input_is_not_changed_by_a_model_that_writes(form):
    X = FORMS[form][0](frame())
    before = read(X)[0].copy()

    def rude(rows):
        out = np.array(rows["a"]) * 2.0
        if isinstance(rows, dict):
            rows["a"] = rows["a"][:1]
        elif isinstance(rows, np.ndarray):
            rows["a"] = 0
        elif isinstance(rows, xr.Dataset):
            rows["a"][:] = 0
        return out

    effect = rs.ale(rude, X, features=["a"])
    assert effect["effect"].values[0, 0] == pytest.approx(2)
    pd.testing.assert_frame_equal(read(X)[0], before)


@pytest.mark.thorough
@every_form
def test_conditioning_in_every_form(form):
    local = rs.local_effects(Model(), frame(), features=["a"])
    columns = frame()[["b", "g"]]
    keep = {
        "polars": lambda X: X.select("b", "g"),
        "lazy": lambda X: X.select("b", "g"),
        "arrow": lambda X: X.select(["b", "g"]),
    }
    made = FORMS[form][0](frame())
    given_form = keep.get(form, lambda X: None)(made)
    if given_form is None:
        given_form = (
            {name: made[name] for name in ("b", "g")}
            if isinstance(made, dict)
            else made[["b", "g"]]
        )
    found = rs.regions(local, "a", conditioning=given_form, rng=0)
    xr.testing.assert_identical(found, rs.regions(local, "a", conditioning=columns, rng=0))


@every_form
@pytest.mark.slow
def test_refits_get_the_form_of_the_data(form):
    kinds = set()

    def fit(data):
        kinds.add((type(data).__name__, type(data).__module__.partition(".")[0]))
        slope = np.polyfit(np.asarray(data["a"]), np.asarray(data["b"]), 1)[0]
        return rs.rhale(rs.local_effects(lambda X: slope * np.asarray(X["a"]), data, features="a"))

    made = rs.bootstrap_refit(fit, FORMS[form][0](frame()), n_resamples=12, n_jobs=1, rng=0)
    same = rs.bootstrap_refit(fit, frame(), n_resamples=12, n_jobs=1, rng=0)
    assert kinds == {FORMS[form][1:], ("DataFrame", "pandas")}
    np.testing.assert_array_equal(made["effect"].values, same["effect"].values)


def test_jacobian_gets_and_answers_in_the_form_of_the_table():
    pl = pytest.importorskip("polars", reason="polars is not installed")

    def jacobian(X):
        assert isinstance(X, pl.DataFrame)
        return X.select(a=2 * pl.col("a"), b=pl.lit(1.0))

    X = pl.DataFrame({"a": np.linspace(0, 1, 50), "b": np.linspace(1, 3, 50) ** 2})
    local = rs.local_effects(None, X, jacobian=jacobian)
    np.testing.assert_array_equal(local["local_effect"].values[:, 0], 2 * np.linspace(0, 1, 50))


# --- answers --------------------------------------------------------------------------------------


def answers():
    pl = pytest.importorskip("polars", reason="polars is not installed")
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    values = np.array([1.0, 2.0])
    return {
        "polars": pl.Series("y", values),
        "arrow": pa.chunked_array([values]),
        "array": pa.array(values),
        "xarray": xr.DataArray(values, dims="row"),
        "numpy": values,
    }


@pytest.mark.parametrize("library", ["polars", "arrow", "array", "xarray", "numpy"])
def test_one_output_in_every_form(library):
    np.testing.assert_array_equal(np.asarray(plain_answer(answers()[library])), [1.0, 2.0])


def test_several_outputs_keep_their_names():
    pl = pytest.importorskip("polars", reason="polars is not installed")
    columns = {"low": [1.0, 2.0], "high": [3.0, 4.0]}
    tables = [
        pl.DataFrame(columns),
        pl.DataFrame(columns).lazy(),
        pl.DataFrame(columns).to_arrow(),
        columns,
        xr.Dataset({name: ("row", one) for name, one in columns.items()}),
        xr.DataArray(
            np.array([[1.0, 3], [2, 4]]), coords={"out": ["low", "high"]}, dims=["r", "out"]
        ),
    ]
    for table in tables:
        pd.testing.assert_frame_equal(
            plain_answer(table), pd.DataFrame(columns), check_column_type=False
        )


# --- round trips ----------------------------------------------------------------------------------


def polars_of_all_types():
    pl = pytest.importorskip("polars", reason="polars is not installed")
    return pl.DataFrame(
        {
            "i8": pl.Series([1, None, 3], dtype=pl.Int8),
            "u16": pl.Series([1, 2, 3], dtype=pl.UInt16),
            "f32": pl.Series([1.5, None, 3], dtype=pl.Float32),
            "f64": pl.Series([1.5, float("nan"), 3]),
            "bool": [True, None, False],
            "text": ["x", None, "y"],
            "cat": pl.Series(["x", None, "y"], dtype=pl.Categorical),
            "enum": pl.Series(["lo", "hi", None], dtype=pl.Enum(["lo", "hi"])),
            "date": [dt.date(2024, 2, 29), None, dt.date(1960, 1, 1)],
            "time": [dt.datetime(2024, 2, 29, 12, 30, 1, 5), None, dt.datetime(1960, 1, 1)],
            "zone": pl.Series(
                [dt.datetime(2024, 7, 1), None, dt.datetime(2024, 1, 1)]
            ).dt.replace_time_zone("Europe/Berlin"),
            "span": [dt.timedelta(hours=5), None, dt.timedelta(days=2)],
        }
    )


def test_polars_comes_back_with_its_types_and_missing_values():
    X = polars_of_all_types()
    data, form = read(X)
    back = form.give(data)
    assert back.schema == X.schema
    assert back.equals(X)
    assert form.days == {8}
    assert data.isna().sum().tolist() == [1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
    assert data["enum"].cat.ordered


def test_arrow_comes_back_with_its_types_and_missing_values():
    X = polars_of_all_types().to_arrow()
    data, form = read(X)
    back = form.give(data)
    assert back.column_names == X.column_names
    for name in X.column_names:
        found, own = (pd.Series(one[name].to_pylist(), dtype=object) for one in (back, X))
        pd.testing.assert_series_equal(found, own)


@settings(max_examples=15, deadline=None)
@given(
    st.lists(
        hnp.arrays(st.sampled_from([np.float64, np.float32, np.int64, np.bool_]), 5),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from(["polars", "arrow", "dict", "dataset", "structured"]),
)
def test_numbers_come_back_as_they_were(columns, library):
    named = {f"c{number}": column for number, column in enumerate(columns)}
    if library == "dict":
        X = named
    elif library == "dataset":
        X = xr.Dataset({name: ("row", one) for name, one in named.items()})
    elif library == "structured":
        X = np.empty(5, dtype=[(name, one.dtype) for name, one in named.items()])
        for name, one in named.items():
            X[name] = one
    else:
        module = pytest.importorskip(
            {"arrow": "pyarrow"}.get(library, library), reason=f"{library} is not installed"
        )
        X = module.table(named) if library == "arrow" else module.DataFrame(named)
    data, form = read(X)
    back = form.give(data)
    for name, one in named.items():
        found = np.asarray(back[name])
        assert found.dtype == one.dtype
        np.testing.assert_array_equal(found, one)
    assert library == "structured" or type(back) is type(X)
    assert n_rows_of(back) == 5


def test_units_and_labels_of_a_dataset():
    X = xr.Dataset(
        {
            "a": ("id", np.linspace(0, 1, 40), {"units": "m"}),
            "b": ("id", np.linspace(0, 2, 40) ** 2),
        },
        {"id": [f"row{k}" for k in range(40)]},
        {"output_name": "rent", "output_units": "EUR"},
    )
    weights = pd.Series(np.arange(40.0), X["id"].values)[::-1]
    local = rs.local_effects(lambda X: X["a"] * X["b"], X, weights=weights)
    assert local["feature_units"].values.tolist() == ["m", ""]
    assert local.attrs["output_units"] == "EUR"
    assert local["obs"].values.tolist() == X["id"].values.tolist()
    np.testing.assert_array_equal(local["weight"].values, np.arange(40.0))


def test_data_array_of_rows_and_columns():
    values = np.random.default_rng(0).uniform(size=(60, 2))
    X = xr.DataArray(values, dims=["row", "column"], coords={"column": ["a", "b"]})
    kinds = set()

    def model(X):
        kinds.add(type(X))
        return X.sel(column="a") * X.sel(column="b")

    local = rs.local_effects(model, X)
    same = rs.local_effects(lambda X: X["a"] * X["b"], pd.DataFrame(values, columns=["a", "b"]))
    assert kinds == {xr.DataArray}
    np.testing.assert_array_equal(local["local_effect"].values, same["local_effect"].values)
    assert local["feature"].values.tolist() == ["a", "b"]


# --- models that know the form of their fit -------------------------------------------------------


@pytest.mark.thorough
@every_form
def test_scikit_learn_gets_the_columns_of_its_fit_in_their_order(form):
    linear_model = pytest.importorskip(
        "sklearn.linear_model", reason="scikit-learn is not installed"
    )
    df = frame()
    model = linear_model.LinearRegression().fit(df[["b", "a"]], 2 * df["a"] - df["b"])
    with pytest.warns(UserWarning, match="not given to it: 'k', 'g'"):
        effect = rs.ale(model, FORMS[form][0](df), features=["a", "b"])
    np.testing.assert_allclose(effect["average_effect"].values, [2, -1])


def test_scikit_learn_fitted_without_names_gets_an_array():
    linear_model = pytest.importorskip(
        "sklearn.linear_model", reason="scikit-learn is not installed"
    )
    df = frame()[["a", "b"]]
    model = linear_model.LinearRegression().fit(df.to_numpy(), 2 * df["a"] - df["b"])
    effect = rs.ale(model, as_dict_of(df), features=["a", "b"])
    np.testing.assert_allclose(effect["average_effect"].values, [2, -1])


def as_dict_of(df):
    return {name: df[name].to_numpy() for name in df}


@pytest.mark.thorough
def test_a_formula_reads_its_columns_from_every_form():
    import statsmodels.formula.api as smf

    df = frame()
    results = smf.ols("b ~ a + C(g)", df).fit()
    found = rs.ale(results, as_polars(df), features=["a", "g"])
    xr.testing.assert_identical(found, rs.ale(results, df, features=["a", "g"]))


@pytest.mark.parametrize("made", [as_polars, as_arrow, as_dataset, as_dict])
def test_a_formula_with_text_in_other_forms(made):
    smf = pytest.importorskip("statsmodels.formula.api", reason="statsmodels is not installed")
    df = frame()
    results = smf.ols("b ~ a * g", df).fit()
    X, y = df[["a", "g"]], df["b"].to_numpy()
    for ask in (
        lambda X: rs.local_effects(results, X, "a")["local_effect"],
        lambda X: rs.averages(results, X)["average"],
        lambda X: rs.outcome_effects(results, X, y, rng=0, progress=False)["curve"],
    ):
        np.testing.assert_allclose(ask(made(X)).values, ask(X).values, rtol=1e-9, atol=1e-12)


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ({"a": [1.0, 2], "b": [1.0]}, ValueError, "'a' has 2, 'b' has 1. Shorten or fill"),
        ({"a": np.zeros((3, 2))}, TypeError, r"column 'a' must hold one plain value.*\(3, 2\)"),
        ({}, ValueError, "at least one column; got an empty dict"),
        (
            xr.Dataset({"a": ("r", [1.0]), "b": (("r", "c"), [[1.0]])}),
            ValueError,
            "'a' over r, 'b' over r × c",
        ),
        (np.zeros(3, dtype=[("a", float, 2)]), TypeError, "column 'a'.*field type"),
        (xr.DataArray(np.zeros(3), dims="row"), ValueError, "the DataArray has row"),
        (
            {"a": pd.Series([1.0, 2], [0, 1]), "b": pd.Series([1.0, 2], [1, 0])},
            ValueError,
            "index; that of 'b' differs",
        ),
    ],
)
def test_what_is_no_table_is_refused(X, error, message):
    with pytest.raises(error, match=f"X .*{message}"):
        rs.local_effects(lambda X: np.zeros(3), X)


def test_nested_columns_have_no_effect_and_reach_the_model():
    pl = pytest.importorskip("polars", reason="polars is not installed")
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    b = np.linspace(0, 1, 20)
    lists = {"a": [[1, 2]] * 20, "s": [{"u": 3}] * 20, "b": b}

    def model(X):
        nested = [X["a"][0], X["s"][0]]
        nested = [one.as_py() if hasattr(one, "as_py") else one for one in nested]
        assert (list(nested[0]), dict(nested[1])) == ([1, 2], {"u": 3})
        return 3 * np.asarray(X["b"])

    for X in (pl.DataFrame(lists), pa.table(lists), pd.DataFrame(lists)):
        for verb in (rs.ale, rs.pdp, rs.local_effects):
            with pytest.warns(UserWarning, match="Left out: 'a'"):
                assert verb(model, X)["feature"].values.tolist() == ["b"]
        with pytest.raises(TypeError, match="column 'a' holds lists, records or complex"):
            rs.ale(model, X, features="a")


def test_missing_values_of_every_library_go_through_missing():
    X = polars_of_all_types().select("i8", "f32")
    X = type(X)({name: X[name].to_list() * 20 for name in X.columns})
    with pytest.raises(ValueError, match="f32"):
        rs.ale(lambda X: X["i8"].fill_null(0).to_numpy(), X, features="f32", missing="raise")
    effect = rs.ale(lambda X: X["f32"].fill_null(0).to_numpy(), X, features="f32", missing="drop")
    assert effect["n_missing"].item() == 20


@pytest.mark.thorough
@pytest.mark.parametrize("library", ["polars", "arrow"])
def test_weights_and_groups_of_every_library(library):
    X, w = frame(), np.arange(1.0, N + 1)
    names = np.array([f"g{k // 3}" for k in range(N)])
    made = {"polars": as_polars, "arrow": as_arrow}[library](pd.DataFrame({"w": w, "g": names}))
    local = rs.local_effects(Model(), X, features=["a"], weights=made["w"])
    same = rs.local_effects(Model(), X, features=["a"], weights=w)
    xr.testing.assert_identical(local, same)
    effect = rs.rhale(local)
    xr.testing.assert_identical(
        rs.std_error(effect, local, groups=made["g"]), rs.std_error(effect, local, groups=names)
    )


def test_pandas_weights_of_a_table_without_labels_go_by_position():
    weights = pd.Series(np.arange(1.0, N + 1), index=np.arange(N)[::-1])
    local = rs.local_effects(Model(), as_polars(frame()), features=["a"], weights=weights)
    np.testing.assert_array_equal(local["weight"].values, weights.to_numpy())


def test_pipelines_that_take_columns_by_name_get_all_of_them():
    compose = pytest.importorskip("sklearn.compose", reason="scikit-learn is not installed")
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import make_pipeline

    df = frame()
    columns = compose.make_column_transformer(("passthrough", ["b", "a"]))
    model = make_pipeline(columns, LinearRegression()).fit(df, 2 * df["a"] - df["b"])
    effect = rs.ale(model, as_polars(df.assign(other=1.0)), features=["a", "b"])
    np.testing.assert_allclose(effect["average_effect"].values, [2, -1])


@pytest.mark.filterwarnings("ignore:Rows with missing values.*effects of 'b'")
def test_missing_numbers_of_polars_and_arrow_are_nan_for_scikit_learn():
    from sklearn import compose, ensemble, preprocessing
    from sklearn.pipeline import make_pipeline

    df = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 2)), columns=["a", "b"])
    df["city"], y = np.where(df["a"] > 0, "u", "v"), df["a"] + df["b"]
    df.loc[::10, "b"] = np.nan
    whole = preprocessing.OneHotEncoder()
    columns = compose.make_column_transformer((whole, ["city"]), remainder="passthrough")
    model = make_pipeline(columns, ensemble.HistGradientBoostingRegressor(max_iter=5)).fit(df, y)
    array = df[["a", "b"]].to_numpy()
    of_array = ensemble.HistGradientBoostingRegressor(max_iter=5).fit(array, y)
    gaps = df.assign(b=df["b"].astype(object).where(df["b"].notna(), None))
    for made in (as_polars, as_arrow):
        for verb, feature in ((rs.pdp, "a"), (rs.ale, None)):
            found = verb(model, made(gaps), feature)
            np.testing.assert_allclose(found["curve"], verb(model, df, feature)["curve"])
        found, expected = rs.pdp(of_array, made(gaps[["a", "b"]]), 0), rs.pdp(of_array, array, 0)
        np.testing.assert_allclose(found["curve"], expected["curve"])


@pytest.mark.parametrize("verb", [rs.ale, rs.pdp, rs.ice])
def test_sparse_columns_of_pandas_stay_sparse(verb):
    dense = pd.get_dummies(frame(), columns=["g"])
    table = pd.get_dummies(frame(), columns=["g"], sparse=True)
    table["k"] = table["k"].astype(pd.SparseDtype("int64"))

    def model(X):
        types.add(X.dtypes["g_u"])
        return X["a"] * np.asarray(X["g_u"]) + np.asarray(X["k"]) ** 2

    types = set()
    found = verb(model, table)
    assert types == {pd.SparseDtype(bool, False)}
    np.testing.assert_allclose(found["curve"], verb(model, dense)["curve"], atol=1e-12)


def test_libraries_of_numpy_get_its_types():
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    frame = pd.DataFrame(
        {
            "whole": [1, 2, 3],
            "gap": [1, None, 3],
            "real": [0.5, None, 2.0],
            "yes": [True, False, True],
            "text": ["u", "v", None],
            "level": pd.Categorical(["u", "v", "u"]),
        },
        index=[5, 3, 4],
    )
    arrow = frame.astype({"gap": "Int64"}).convert_dtypes(dtype_backend="pyarrow")
    arrow["level"] = arrow["text"].fillna("w").astype("category")
    arrow["kept"] = np.arange(3.0)
    found = forms.in_numpy_types(arrow)
    assert [str(dtype) for dtype in found.dtypes[:4]] == ["int64", "float64", "float64", "bool"]
    assert found["level"].cat.categories.tolist() == ["u", "v", "w"]
    assert found["level"].tolist() == ["u", "v", "w"]
    assert not any(isinstance(dtype, pd.ArrowDtype) for dtype in found.dtypes)
    pd.testing.assert_frame_equal(found[["gap", "real"]], frame[["gap", "real"]].astype(float))
    assert found["text"].isna().tolist() == [False, False, True]
    assert forms.in_numpy_types(frame) is frame


@pytest.mark.thorough
@pytest.mark.parametrize("native", [False, True])
def test_lightgbm_takes_columns_of_arrow_types(native):
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=200), "k": rng.integers(0, 50, 200)})
    model = lightgbm.LGBMRegressor(n_estimators=5, verbose=-1).fit(table, table["a"] * table["k"])
    model = model.booster_ if native else model
    arrow = table.convert_dtypes(dtype_backend="pyarrow")
    found, expected = (rs.ale(model, one)["curve"] for one in (arrow, table))
    xr.testing.assert_identical(found, expected)


def test_an_array_for_a_model_that_was_fitted_to_names_warns_once():
    from sklearn.linear_model import LinearRegression

    X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["a", "b"])
    model = LinearRegression().fit(X, 2 * X["a"] - X["b"])
    for verb in (rs.local_effects, rs.ale, rs.pdp):
        with pytest.warns(UserWarning, match="order of the fit") as warned:
            found = verb(model, X.to_numpy())
        assert [str(one.message) for one in warned] == [
            "X has no names of columns; they are taken in the order of the fit: 'a', 'b'."
        ]
    assert found["feature"].values.tolist() == ["x0", "x1"]


@pytest.mark.filterwarnings("ignore:Columns that the model was not", "ignore::FutureWarning")
@pytest.mark.parametrize("kind", ["interface", "booster", "search", "voting"])
def test_lightgbm_finds_columns_with_spaces_in_their_names(kind, rng, tmp_path):
    from sklearn.ensemble import VotingRegressor
    from sklearn.model_selection import GridSearchCV

    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    X = pd.DataFrame(rng.normal(size=(300, 3)), columns=["body mass", "flow", "a b c"])
    y = 3 * X["body mass"] + X["flow"] ** 2
    learner, ask = lightgbm.LGBMRegressor(n_estimators=20, verbose=-1), {}
    if kind == "booster":
        model = lightgbm.train({"verbose": -1}, lightgbm.Dataset(X, y), 20)
        ask = {"features": list(X.columns)}
    elif kind == "search":
        model = GridSearchCV(learner, {"num_leaves": [7]}, cv=2).fit(X, y)
    else:
        model = (VotingRegressor([("one", learner)]) if kind == "voting" else learner).fit(X, y)
    plain = X.set_axis([name.replace(" ", "_") for name in X.columns], axis=1)
    # In another order, with a column that the model does not know.
    table = X[["flow", "a b c", "body mass"]].assign(id=np.arange(300) % 7 / 7)
    for function in (rs.ale, rs.pdp):
        expected = function(model, plain)
        found = function(model, table, **ask).sel(feature=list(X.columns))
        np.testing.assert_allclose(found["curve"], expected["curve"], rtol=1e-12, atol=1e-12)
        if kind != "booster":
            assert "id" not in found["feature"]
    if kind == "interface":
        pytest.importorskip("dask.dataframe", reason="dask is not installed")
        table.to_parquet(tmp_path / "rows.parquet")
        found = rs.ale(model, str(tmp_path / "rows.parquet"))
        assert sorted(found["feature"].values) == sorted(X.columns)
