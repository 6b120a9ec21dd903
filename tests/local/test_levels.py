"""ALE of categorical features: orders, effects, their errors, and what goes with them."""

import builtins
import warnings
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import rhale_stats as rs
from rhale_stats.arguments.progress import progress_bar
from rhale_stats.local import levels as levels_module
from rhale_stats.local.levels import split_features
from rhale_stats.models import differences
from rhale_stats.models.adapters.adapter import ModelColumns
from rhale_stats.models.table import as_table

LEVELS = ["a", "b", "c", "d"]
CONSTANTS = dict(zip(LEVELS, [0.0, 1.0, 3.0, -1.0], strict=True))
SLOPES = dict(zip(LEVELS, [1.0, 2.0, -1.0, 0.5], strict=True))
SHARES = [0.4, 0.3, 0.2, 0.1]


def table(n=400, seed=0, shares=SHARES):
    rng = np.random.default_rng(seed)
    c = rng.choice(LEVELS, n, p=shares)
    c[:4] = LEVELS
    # Other columns depend on the level: the rows of two levels differ.
    x = rng.normal(size=n) + pd.Series(c).map(CONSTANTS).to_numpy() / 2
    frame = pd.DataFrame({"x": x, "c": pd.Categorical(c), "b": rng.random(n) > 0.3})
    return frame


def model(frame):
    c = frame["c"].astype(str)
    return c.map(CONSTANTS).to_numpy() + c.map(SLOPES).to_numpy() * frame["x"].to_numpy()


def ale_c(frame=None, f=model, **more):
    frame = table() if frame is None else frame
    return rs.ale(f, frame, features="c", **{"order": LEVELS, **more})


def brute(frame, order, f=model):
    """Differences over the rows of both levels, level by level."""
    out = []
    for low, high in pairwise(order):
        rows = frame[frame["c"].isin([low, high])]
        upper, lower = (
            rows.assign(c=pd.Categorical([level] * len(rows), frame["c"].cat.categories))
            for level in (high, low)
        )
        out.append(f(upper) - f(lower))
    return out


# --- effects -------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [LEVELS, ["d", "a", "c", "b"]])
def test_effects_are_differences_over_the_rows_of_both_levels(order):
    frame = table()
    effect = ale_c(frame, order=order).sel(feature="c")
    parts = brute(frame, order)
    np.testing.assert_allclose(effect["effect"], [part.mean() for part in parts], rtol=1e-12)
    np.testing.assert_allclose(
        effect["heterogeneity"], [part.std(ddof=1) for part in parts], rtol=1e-12
    )
    assert effect["n_obs"].values.tolist() == [len(part) for part in parts]
    assert effect["level"].values.tolist() == order
    assert effect["order"] == "given"
    share = frame["c"].value_counts(normalize=True)[order].to_numpy()
    np.testing.assert_allclose(effect["level_share"], share)
    assert effect["n_level"].values.tolist() == frame["c"].value_counts()[order].tolist()
    assert abs(share @ effect["curve"].values) < 1e-14
    np.testing.assert_allclose(np.diff(effect["curve"]), effect["effect"], rtol=1e-12)


def test_closed_form_of_constants_and_slopes():
    """f = u_l + v_l x: a step is the difference of u plus that of v times the mean of x."""
    frame = table()
    effect = ale_c(frame).sel(feature="c")
    for j, (low, high) in enumerate(pairwise(LEVELS)):
        x = frame["x"][frame["c"].isin([low, high])]
        slope = SLOPES[high] - SLOPES[low]
        expected = CONSTANTS[high] - CONSTANTS[low] + slope * x.mean()
        assert effect["effect"].values[j] == pytest.approx(expected, abs=1e-12)
        assert effect["heterogeneity"].values[j] == pytest.approx(abs(slope) * x.std(), abs=1e-12)


@pytest.mark.thorough
@pytest.mark.parametrize("centering", ["mean", "start", "integral"])
def test_centering(centering):
    effect = ale_c(centering=centering).rhale.in_bins().sel(feature="c")
    curve, share = effect["curve"].values, effect["level_share"].values
    at = {"mean": share @ curve, "start": curve[0], "integral": curve.mean()}[centering]
    assert abs(at) < 1e-14
    start = ale_c(centering="start").sel(feature="c")["curve"].values
    np.testing.assert_allclose(curve + float(effect["curve_offset"]), start, atol=1e-13)


def test_zero_and_one_as_levels_are_as_numbers():
    frame = table().assign(b=lambda t: t["b"].astype(float))

    def f(t):
        return t["b"] * (1 + t["x"]) + t["x"]

    number = rs.ale(f, frame[["x", "b"]], features="b", bins=rs.EqualWidthBins(1))
    level = rs.ale(f, frame[["x", "b"]], features="b", categorical="b")
    assert level["feature_kind"] == "ordinal"
    assert level["level"].values.tolist() == [["0", "1"]]
    a, b = rs.std_error(number), rs.std_error(level)
    for name in (
        *("effect", "heterogeneity", "curve", "average_effect", "heterogeneity_output"),
        *("n_obs", "effect_se", "heterogeneity_se", "average_effect_se"),
    ):
        np.testing.assert_allclose(b[name], a[name], rtol=1e-10, err_msg=name)
    # The divisor n - 1 in the part that is shared by effect and place, too.
    np.testing.assert_allclose(b["curve_se"], a["curve_se"], rtol=2e-3)


@pytest.mark.thorough
def test_equivariance():
    a, b = 3.0, -2.0
    frame = table()
    one = rs.std_error(ale_c(frame))
    two = rs.std_error(ale_c(frame, f=lambda t: a + b * model(t)))
    for name in ("effect", "curve"):
        np.testing.assert_allclose(two[name], b * one[name], rtol=1e-10, atol=1e-12)
    for name in ("heterogeneity", "effect_se", "curve_se", "average_effect_se"):
        np.testing.assert_allclose(two[name], abs(b) * one[name], rtol=1e-9)
    # Reversed levels turn the steps round and leave the curve.
    three = rs.std_error(ale_c(frame, order=LEVELS[::-1]))
    np.testing.assert_allclose(three["curve"].values[0], one["curve"].values[0][::-1], rtol=1e-12)
    np.testing.assert_allclose(three["curve_se"].values[0], one["curve_se"].values[0][::-1])
    # Neither does the order of the rows matter.
    four = ale_c(frame.sample(frac=1, random_state=0))
    np.testing.assert_allclose(four["curve_cov"], one["curve_cov"], rtol=1e-10)


def test_pyale_agrees():
    pyale = pytest.importorskip("PyALE._src.ALE_1D")
    frame = table()[["x", "c"]]
    ordered = frame.assign(c=pd.Categorical(frame["c"], LEVELS, ordered=True))

    def encode(columns):
        return pd.get_dummies(columns["c"]).reindex(columns=LEVELS, fill_value=0).astype(float)

    class Model:
        def predict(self, coded):
            constants, slopes = (
                coded[LEVELS] @ np.array([values[level] for level in LEVELS])
                for values in (CONSTANTS, SLOPES)
            )
            return (constants + slopes * coded["x"]).to_numpy()

    theirs = pyale.aleplot_1D_categorical(
        ordered, Model(), "c", encode, ["x", *LEVELS], include_CI=False
    )
    ours = ale_c(frame).sel(feature="c")
    assert theirs.index.tolist() == LEVELS
    np.testing.assert_allclose(ours["curve"], theirs["eff"], rtol=1e-10, atol=1e-12)


def test_similarity_agrees_with_pyale():
    lib = pytest.importorskip("PyALE._src.lib")
    frame = table(2000)[["x", "c"]].astype({"c": str})
    theirs = lib.order_groups(frame, "c").index.tolist()
    found = rs.ale(model, frame, features="c")["level"].values[0].tolist()
    assert found in (theirs, theirs[::-1])
    assert found.index("a") < 2


# --- weights and missing values ------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("order", ["similarity", LEVELS])
@pytest.mark.parametrize("centering", ["mean", "integral"])
def test_frequencies_are_repeated_rows(order, centering):
    frame = table(120)
    times = np.random.default_rng(1).integers(0, 4, len(frame))
    times[:4] = 1
    written = frame.loc[np.repeat(frame.index, times)].reset_index(drop=True)
    options = {"order": order, "centering": centering}
    one = rs.std_error(ale_c(frame, weights=times, weight_kind="frequency", **options))
    two = rs.std_error(ale_c(written, **options))
    for name in two.data_vars:
        if name != "local_effect_error":
            np.testing.assert_allclose(one[name], two[name], rtol=1e-9, atol=1e-12, err_msg=name)
    assert one["level"].values.tolist() == two["level"].values.tolist()


@pytest.mark.thorough
def test_rows_of_weight_0_are_absent_and_equal_weights_are_none():
    frame = table()
    weight = np.ones(len(frame))
    weight[frame["c"] == "d"] = 0
    with pytest.warns(UserWarning, match=r"Levels without rows are left out: 'c' \(1\)"):
        one = rs.std_error(ale_c(frame, weights=weight, order=LEVELS[:3]))
    rest = frame[frame["c"] != "d"].astype({"c": str})
    two = rs.std_error(ale_c(rest, order=LEVELS[:3]))
    for name in ("effect", "curve", "curve_se", "n_level", "curve_cov"):
        np.testing.assert_allclose(one[name], two[name], rtol=1e-10)
    three = ale_c(frame, weights=np.full(len(frame), 7.0))
    np.testing.assert_allclose(three["curve_cov"], ale_c(frame)["curve_cov"])


@pytest.mark.thorough
def test_missing_values():
    frame = table().astype({"c": object})
    frame.loc[[3, 7], "c"] = None

    def f(t):
        return np.nan_to_num(model(t))

    with pytest.raises(ValueError, match=r"'c' must have a level in every row; got 2 missing in"):
        rs.ale(f, frame, features="c", missing="raise")
    with pytest.warns(UserWarning, match="left out, of 400: effects of 'c': 2 rows"):
        found = rs.ale(f, frame, features="c")
    assert found["n_missing"].item() == 2
    found = rs.ale(f, frame, features=["x", "c"], missing="drop", bins=rs.EqualWidthBins(3))
    assert found["n_missing"].sel(feature="c") == 2
    rest = frame.dropna()
    whole = rs.ale(f, rest, features="c", order=found["level"].values[1].tolist()[:4])
    np.testing.assert_allclose(
        found["curve"].sel(feature="c").values[:4], whole["curve"].values[0], rtol=1e-12
    )
    local = rs.ale_local_effects(
        f, frame, features=["x", "c"], missing="drop", bins=rs.EqualWidthBins(3)
    )
    effect = rs.ale_from_local(local, bins=rs.EqualWidthBins(3))
    boot = rs.bootstrap(local, effect, n_resamples=40, rng=0)
    assert np.isfinite(boot["curve"].sel(feature="c").isel(bin_edge=slice(4))).all()


def gaps(n=300, seed=3):
    """A table with missing values in columns of every kind, and one without."""
    rng = np.random.default_rng(seed)
    frame = table(n, seed)
    c = frame["c"].astype(object).where(rng.random(n) > 0.2, None)
    b = frame["b"].astype(object).where(rng.random(n) > 0.3, None)
    return pd.DataFrame(
        {
            "x": frame["x"],
            "category": pd.Categorical(c, LEVELS),
            "string": c.astype("string"),
            "object": c,
            "boolean": b.astype("boolean"),
            "flag": b,
            "number": c.map(CONSTANTS).astype(float),
        }
    )


COLUMNS = ["category", "string", "object", "boolean", "flag", "number"]


@pytest.mark.thorough
@pytest.mark.parametrize("column", COLUMNS)
def test_missing_as_a_level_is_a_level_of_that_name(column):
    """Written out as text, the same table has the same effects; the model gets the gap itself."""
    frame = gaps()
    texts = frame[column].map(lambda value: "a gap" if pd.isna(value) else str(value))

    def by_text(t):
        height = t["t"].map({text: i**2 for i, text in enumerate(sorted(set(texts)))})
        return height.to_numpy() * (1 + t["x"].to_numpy())

    def f(t):
        assert t[column].dtype == frame[column].dtype
        gone = t[column].isna()
        assert set(map(type, t[column][gone])) <= set(
            map(type, frame[column][frame[column].isna()])
        )
        named = t[column].map(lambda value: "a gap" if pd.isna(value) else str(value))
        return by_text(pd.DataFrame({"t": named, "x": t["x"]}))

    found = rs.ale(f, frame, features=column, categorical=column, missing="bin", order="as_is")
    level = found["level"].sel(feature=column).values.tolist()
    assert level[-1] == "missing"
    assert found["n_missing"].item() == frame[column].isna().sum() == found["n_level"].values[0, -1]
    order = [*sorted(set(texts) - {"a gap"}, key=lambda t: float(t) if column == "number" else t)]
    plain = pd.DataFrame({"t": texts, "x": frame["x"]})
    other = rs.ale(by_text, plain, features="t", order=[*order, "a gap"])
    for name in ("effect", "heterogeneity", "curve", "curve_cov", "level_share"):
        np.testing.assert_array_equal(found[name].values, other[name].values)


def missing_model(frame):
    c = frame["c"].astype(object).where(frame["c"].notna(), "d")
    return c.map(CONSTANTS).to_numpy(float) + 2 * frame["c"].isna().to_numpy() * frame["x"]


def with_gaps(n=400):
    frame = table(n).astype({"c": object})
    frame.loc[frame["c"] == "d", "c"] = None
    return frame.astype({"c": "category"})


@pytest.mark.thorough
def test_places_of_the_missing_level():
    frame = with_gaps()

    def levels(**more):
        found = rs.ale(missing_model, frame, features="c", missing="bin", **more)
        return found["level"].values[0].tolist()

    assert levels(order="as_is") == ["a", "b", "c", "missing"]
    assert levels(order=["c", "a", "b"]) == ["c", "a", "b", "missing"]
    assert levels(order=["c", "missing", "a", "b"]) == ["c", "missing", "a", "b"]
    # By the other columns, and by the output, it lies where its rows do: they were level d.
    plain = frame.assign(c=frame["c"].astype(object).fillna("d"))
    for order in ("similarity", "target"):
        whole = rs.ale(model, plain, features="c", order=order, target=frame["x"])
        named = ["missing" if one == "d" else one for one in whole["level"].values[0]]
        assert levels(order=order, target=frame["x"]) == named
    with pytest.raises(ValueError, match="'d' is not among the levels with rows"):
        levels(order=["a", "b", "c", "d"])


@pytest.mark.thorough
def test_missing_level_with_weights_and_replicates():
    frame = with_gaps()
    times = np.random.default_rng(0).integers(0, 4, len(frame))
    options = {"missing": "bin", "features": ["x", "c"], "bins": rs.EqualWidthBins(3)}
    counted = rs.ale(
        missing_model,
        frame,
        weights=times,
        weight_kind="frequency",
        order={"c": "as_is"},
        **options,
    )
    repeated = rs.ale(
        missing_model, frame.loc[np.repeat(frame.index, times)], order={"c": "as_is"}, **options
    )
    for name in ("effect", "heterogeneity", "curve", "curve_cov", "n_obs", "n_level"):
        np.testing.assert_allclose(
            counted[name].sel(feature="c"), repeated[name].sel(feature="c"), rtol=1e-9, atol=1e-13
        )
    local = rs.ale_local_effects(missing_model, frame, **options)
    effect = rs.std_error(rs.ale_from_local(local, bins=rs.EqualWidthBins(3)))
    boot = rs.bootstrap(local, effect, n_resamples=2000, rng=0)
    spread = boot["curve"].std(("chain", "draw")).sel(feature="c")
    # A standard deviation of 2000 draws is known to 1.6 %; the rest is of order 1 / n.
    np.testing.assert_allclose(spread, effect["curve_se"].sel(feature="c"), rtol=0.09)
    assert "missing" in rs.tidy(effect)[["level_from", "level_to"]].to_numpy()
    # No row of weight has a gap: there is no such level.
    weights = frame["c"].notna().astype(float)
    none = rs.ale(missing_model, frame, features="c", missing="bin", weights=weights, order="as_is")
    assert none["level"].values[0].tolist() == ["a", "b", "c"]


def test_bad_missing_levels():
    frame = with_gaps()
    frame["c"] = frame["c"].cat.rename_categories({"b": "missing"})
    with pytest.raises(ValueError, match=r"must not hold 'missing' with.*Rename it, or use"):
        rs.ale(missing_model, frame, features="c", missing="bin")
    # Without gaps the name is free.
    rest = frame.dropna().reset_index(drop=True)
    assert "missing" in rs.ale(lambda t: t["x"], rest, features="c", missing="bin")["level"].values
    gone = frame.assign(c=pd.Series([None] * len(frame), dtype=object))
    with pytest.raises(ValueError, match="must have values of feature 'c'; all 400 are missing"):
        rs.ale(missing_model, gone, features="c", missing="bin")


# --- the model and its outputs -------------------------------------------------------------------


@pytest.mark.thorough
def test_the_model_gets_columns_as_they_are_and_is_asked_three_times_a_row(monkeypatch):
    frame = table(300)
    asked = []

    def f(t):
        assert t["c"].dtype == frame["c"].dtype
        assert t["b"].dtype == frame["b"].dtype
        asked.append(len(t))
        return model(t) * (1 + t["b"].to_numpy())

    whole = rs.ale(f, frame, features=["c", "b"], order={"c": LEVELS})
    middle = int(frame["c"].isin(["b", "c"]).sum())
    # Three calls at the end see whether the model answers the same each time.
    assert sum(asked) == (2 * 300 + middle) + 2 * 300 + (300 + 300 + 150)
    monkeypatch.setattr(differences, "BATCH_ROWS", 64)
    asked.clear()
    parts = rs.ale(f, frame, features=["c", "b"], order={"c": LEVELS})
    assert max(asked[:-3]) == 64
    np.testing.assert_array_equal(parts["curve_cov"], whole["curve_cov"])


@pytest.mark.thorough
def test_several_outputs():
    frame = table()

    def two(t):
        return np.column_stack([model(t), -2 * model(t)])

    effect = rs.std_error(rs.ale(two, frame, features=["x", "c"], bins=rs.EqualWidthBins(3)))
    assert effect["curve"].dims[0] == "output"
    one = rs.std_error(rs.ale(model, frame, features=["x", "c"], bins=rs.EqualWidthBins(3)))
    for name in ("curve_se", "effect_se", "heterogeneity"):
        np.testing.assert_allclose(effect[name][0], one[name], rtol=1e-9, err_msg=name)
        np.testing.assert_allclose(effect[name][1], 2 * one[name], rtol=1e-9, err_msg=name)
    with pytest.raises(ValueError, match="target must be given where the model has several outp"):
        rs.ale(two, frame, features="c", order="target")


def test_a_model_that_raises_is_named_with_its_levels():
    with pytest.raises(rs.ModelError, match=r"KeyError for feature 'c'.* in b, c, d, a.*no model"):
        ale_c(f=lambda t: t["x"] if len(t) <= 400 else (_ for _ in ()).throw(KeyError("no model")))


def test_an_array_with_codes():
    X = np.column_stack([np.arange(30) % 3, np.linspace(0, 1, 30)])
    effect = rs.ale(lambda X: X[:, 0] ** 2, X, features=0, categorical=0)
    assert effect["level"].values.tolist() == [["0", "1", "2"]]
    np.testing.assert_allclose(effect["effect"], [[1, 3]])


@pytest.mark.thorough
def test_what_is_taken_by_default():
    frame = table(60).assign(key=[f"k{i}" for i in range(60)], month=np.arange(60) % 12)
    with pytest.warns(UserWarning, match="Left out") as warned:
        effect = rs.ale(model, frame, bins=rs.EqualWidthBins(2))
    assert effect["feature"].values.tolist() == ["x", "c", "b", "month"]
    assert effect["feature_kind"].values.tolist()[1:] == ["nominal", "boolean", "ordinal"]
    texts = [str(one.message) for one in warned]
    assert any("'key' (more than one level for every two rows)" in text for text in texts)
    mixed = rs.ale(model, frame, features=["c", "x"], bins=rs.EqualWidthBins(2))
    assert mixed["feature"].values.tolist() == ["c", "x"]


# --- orders --------------------------------------------------------------------------------------


def test_own_orders():
    frame = table()
    ordered = frame.assign(c=pd.Categorical(frame["c"], ["d", "b", "a", "c"], ordered=True))
    effect = rs.ale(model, ordered, features=["c", "b"])
    assert effect["level"].values[:, :4].tolist() == [
        ["d", "b", "a", "c"],
        ["False", "True", "", ""],
    ]
    assert effect["order"].values.tolist() == ["as_is", "as_is"]
    text = frame.astype({"c": str})
    assert rs.ale(model, text, features="c", order="as_is")["level"].values.tolist() == [LEVELS]
    both = rs.ale(model, frame, features=["c", "b"], order={"b": [True, False]})
    assert both["level"].values[1, :2].tolist() == ["True", "False"]
    assert both["order"].values.tolist() == ["similarity", "given"]


def test_similar_levels_are_neighbours_whatever_their_names():
    rng = np.random.default_rng(0)
    code = rng.integers(0, 5, 3000)
    names = np.array(["q", "e", "z", "a", "m"])
    frame = pd.DataFrame({"c": names[code], "x": code + rng.normal(size=3000)})
    frame["other"] = np.where(rng.random(3000) < code / 5, "u", "v")
    found = rs.ale(lambda t: t["x"].to_numpy(), frame, features="c")["level"].values[0]
    # "a" is the first in as-is order and lies on the left.
    assert found.tolist() == ["m", "a", "z", "e", "q"]


@pytest.mark.thorough
@pytest.mark.parametrize("order", ["target", "james_stein", "glmm", "m_estimate"])
def test_encoders_sort_by_the_target(order):
    pytest.importorskip("category_encoders")
    frame = table(1000)
    y = frame["c"].astype(str).map(CONSTANTS).to_numpy() + np.linspace(-0.1, 0.1, 1000)
    found = ale_c(frame, order=order, target=y)
    assert found["level"].values[0].tolist() == ["d", "a", "b", "c"]
    assert found["order"].values.tolist() == [order]


def test_the_model_is_the_target_by_default_and_frequencies_count():
    pytest.importorskip("category_encoders")
    frame = table(300)

    def f(t):
        return t["c"].astype(str).map(CONSTANTS).to_numpy()

    assert ale_c(frame, f=f, order="target")["level"].values[0].tolist() == ["d", "a", "b", "c"]
    # Two rows of "a" make it the largest when they count a hundred times.
    y = f(frame).copy()
    rows = np.flatnonzero(frame["c"] == "a")[:2]
    y[rows] = 10
    times = np.ones(300, dtype=int)
    times[rows] = 1000
    found = ale_c(frame, order="target", target=y, weights=times, weight_kind="frequency")
    assert found["level"].values[0].tolist() == ["d", "b", "c", "a"]
    with pytest.raises(ValueError, match="order='target' does not accept precision weights"):
        ale_c(frame, order="target", weights=times)


def test_woe_needs_two_values():
    pytest.importorskip("category_encoders")
    frame = table(1000)
    y = frame["c"].astype(str).map(CONSTANTS).to_numpy() + np.random.default_rng(0).normal(
        size=1000
    )
    found = ale_c(frame, order="woe", target=y > 0.8)
    assert found["level"].values[0].tolist() == ["d", "a", "b", "c"]
    with pytest.raises(ValueError, match="'woe' needs a target of two values; target has 1000"):
        ale_c(frame, order="woe", target=y)


def test_without_the_encoders(monkeypatch):
    real = builtins.__import__

    def none(name, *rest):
        if name == "category_encoders":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", none)
    with pytest.raises(ImportError, match=r"needs the library category_encoders.*\[categorical\]"):
        ale_c(order="target")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": "best"}, "order must be one of 'as_is', .*; got 'best'"),
        ({"order": ["a", "b", "c"]}, "hold each of its levels once, .*; 'd' is left out"),
        ({"order": [*LEVELS, "e"]}, "'e' is not among the levels with rows"),
        ({"order": [*LEVELS, "a"]}, "'a' is named twice"),
        ({"order": "target", "target": [1.0]}, r"target must hold .*\(400,\); got shape \(1,\)"),
        ({"missing": "leave"}, "missing must be one of 'raise', 'drop', 'bin'; got 'leave'"),
    ],
)
def test_bad_orders(options, message):
    if options.get("order") == "target":
        pytest.importorskip("category_encoders")
    with pytest.raises(ValueError, match=message):
        ale_c(**options)


def test_bad_features():
    frame = table()
    one = frame[frame["c"] == "a"].astype({"c": str})
    # Users: a constant category raised where it was named, a constant number never did.
    for effect in (rs.ale(model, one, bins=rs.EqualWidthBins(2)), ale_c(one, order="as_is")):
        effect = rs.std_error(effect)
        assert effect["feature_kind"].sel(feature="c") == "constant"
        assert effect["n_bins"].sel(feature="c") == 0
        assert np.isnan(effect["curve"].sel(feature="c")).all()
    with pytest.raises(ValueError, match="order must map features to levels .* 'c', 'b'"):
        rs.ale(model, frame, order=LEVELS)
    with pytest.raises(KeyError, match="order must map categorical features, 'c'; got 'x'"):
        ale_c(frame, order={"x": "as_is"})
    with pytest.raises(ValueError, match="order is for categorical features; got 'target'"):
        rs.ale(model, frame, features="x", order="target")
    with pytest.raises(ValueError, match="Differences of feature 'c' must be finite; got"):
        ale_c(frame, f=lambda t: np.where(t["c"] == "b", np.inf, 0.0))
    with pytest.raises(KeyError, match="features must be one of"):
        rs.ale(model, frame, features="nobody")


def test_what_needs_an_axis_refuses_levels():
    frame = table()
    local = rs.ale_local_effects(model, frame, bins=rs.EqualWidthBins(3))
    effect = rs.ale_from_local(local, bins=rs.EqualWidthBins(3))
    for call in (
        lambda: rs.rhale(local),
        lambda: rs.check_unbiased(local, effect, rng=0),
        lambda: rs.jump_check(model, local, effect),
        lambda: rs.regions(local, "x"),
        lambda: rs.plots.bins(effect, local, "c"),
        lambda: rs.bootstrap(local, effect, rebin=True),
        lambda: rs.bootstrap(local, effect, studentize=True),
    ):
        with pytest.raises(ValueError, match="needs features with an axis; got 'c'"):
            call()
    # Those with an axis are as they would be alone.
    numbers = local.sel(feature=["x"])
    alone = rs.local_effects(
        model, frame, features="x", method="finite_difference", bins=rs.EqualWidthBins(3)
    )
    np.testing.assert_array_equal(numbers["local_effect"], alone["local_effect"])
    assert rs.check_unbiased(numbers, effect.sel(feature=["x"]), rng=0)["verdict"].size == 3


@pytest.mark.parametrize("bins", [rs.AdaptiveBins(), rs.BestEqualWidthBins(), rs.OptimalBins()])
def test_beside_features_with_any_rule_for_bins(bins):
    frame = table(500)

    def f(t):
        return model(t) + 5 * t["x"].to_numpy() ** 2

    local = rs.ale_local_effects(f, frame, features=["c", "x", "b"], bins=bins, order={"c": LEVELS})
    effect = rs.confband(rs.confint(rs.ale_from_local(local, bins=bins)), n_draws=500, rng=0)
    alone = ale_c(frame, f=f)
    for name in ("curve", "curve_cov"):
        cut = effect[name].sel(feature=["c"])
        np.testing.assert_array_equal(
            cut.isel({dim: slice(4) for dim in cut.dims[1:]}), alone[name], err_msg=name
        )
    x = effect.sel(feature="x")
    assert np.isfinite(x["curve_ci"][: int(x["n_bins"]) + 1]).all()
    # The step of "b" is 1 in every row, which is no question of chance.
    assert np.isfinite(rs.wald_test(effect)["p_value"]).values.tolist() == [True, True, False]
    boot = rs.bootstrap(local, effect, n_resamples=20, rng=0)
    assert np.isfinite(rs.confint(effect, boot)["curve_ci"].sel(feature="c")[:4]).all()
    # Fewer levels than the others have.
    part = rs.ale_from_local(local.sel(feature=["b"]))
    assert part["level"].values.tolist() == [["False", "True"]]


# --- errors --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def both():
    frame = table(600)
    local = rs.ale_local_effects(model, frame, bins=rs.EqualWidthBins(3), order={"c": LEVELS})
    return local, rs.std_error(rs.ale_from_local(local, bins=rs.EqualWidthBins(3)))


@pytest.mark.thorough
def test_numbers_are_not_touched_by_levels_beside_them(both):
    local, effect = both
    alone = rs.local_effects(
        model, table(600), features="x", method="finite_difference", bins=rs.EqualWidthBins(3)
    )
    expected = rs.std_error(rs.rhale(alone, bins=rs.EqualWidthBins(3)))
    for name in expected.data_vars:
        np.testing.assert_array_equal(
            np.ravel(effect[name].sel(feature="x"))[: expected[name].size],
            np.ravel(expected[name]),
            err_msg=name,
        )
    np.testing.assert_array_equal(rs.vcov(effect, "x"), rs.vcov(expected, "x"))
    tests = [rs.wald_test(one, adjust="none").sel(feature="x") for one in (effect, expected)]
    assert tests[0]["p_value"] == tests[1]["p_value"]
    bands = [
        rs.confband(rs.confint(one), n_draws=500, rng=0).sel(feature="x")
        for one in (effect, expected)
    ]
    np.testing.assert_array_equal(bands[0]["curve_ci"][:4], bands[1]["curve_ci"])
    weights = [
        rs.bootstrap(*pair, n_resamples=20, rng=3)["curve"].sel(feature="x").values[..., :4]
        for pair in ((local, effect), (alone, expected))
    ]
    np.testing.assert_array_equal(*weights)


def test_standard_errors_are_those_of_the_covariances(both):
    _, effect = both
    row = effect.sel(feature="c")
    for of, name, n in (("curve", "curve", 4), ("effect", "effect", 3)):
        cov = rs.vcov(effect, "c", of=of)
        np.testing.assert_allclose(np.sqrt(np.diagonal(cov)), row[f"{name}_se"].values[:n])
    n, spread = row["n_obs"].values[:3], row["heterogeneity"].values[:3]
    np.testing.assert_allclose(row["effect_se"].values[:3], spread / np.sqrt(n), rtol=1e-12)
    cov = rs.vcov(effect, "c", of="effect").values
    # The first and the last step share no row; neighbours do.
    assert cov[0, 2] == 0
    assert cov[0, 1] != 0
    # Zero-start: from the effects alone.
    start = np.tri(4, 3, -1) @ cov @ np.tri(4, 3, -1).T
    np.testing.assert_allclose(row["curve_se_start"].values[:4] ** 2, np.diagonal(start))


@pytest.mark.thorough
def test_bootstrap_agrees_with_standard_errors(both):
    local, effect = both
    boot = rs.bootstrap(local, effect, n_resamples=2000, rng=0)
    for name in ("effect", "heterogeneity", "curve", "average_effect"):
        found = boot[name].std(("chain", "draw")).sel(feature=["c", "b"])
        # A standard deviation of 2000 draws is known to 1.6 %; the rest is of order 1 / n.
        np.testing.assert_allclose(found, effect[f"{name}_se"].sel(feature=["c", "b"]), rtol=0.09)
    for method in ("percentile", "basic", "bca"):
        interval = rs.confint(effect, boot, method=method)["curve_ci"].sel(feature="c")
        normal = rs.confint(effect)["curve_ci"].sel(feature="c")
        width = (interval.diff("ci_bound") / normal.diff("ci_bound")).values[:4]
        np.testing.assert_allclose(width, 1, atol=0.15)
    sizes = rs.effect_sizes(effect, boot, y=model(table(600))).sel(feature="c")
    curve, share = (effect[name].sel(feature="c").values[:4] for name in ("curve", "level_share"))
    assert float(sizes["aled"]) == pytest.approx(share @ np.abs(curve))
    assert float(sizes["importance"]) == pytest.approx(np.sqrt(share @ curve**2))
    assert float(sizes["aler_max"]) == pytest.approx(curve.max())
    assert (sizes["naled_ci"][0] < sizes["naled"]) & (sizes["naled"] < sizes["naled_ci"][1])


def test_a_replicate_is_the_estimate_of_rows_drawn_so_often(both):
    local, _ = both
    levels = local.sel(feature=["c"])
    effect = rs.ale_from_local(levels)
    boot = rs.bootstrap(levels, effect, n_resamples=1, chains=1, rng=5)
    stream = np.random.default_rng(5).spawn(1)[0]
    times = np.bincount(stream.integers(600, size=600), minlength=600)
    weighted = levels.assign(weight=("obs", times.astype(float))).assign_attrs(
        weight_kind="frequency"
    )
    expected = rs.ale_from_local(weighted).rhale.in_bins()
    for name in (
        *("effect", "heterogeneity", "curve", "average_effect", "heterogeneity_output"),
        "heterogeneity_index",
    ):
        np.testing.assert_allclose(
            boot[name][0, 0], expected[name], rtol=1e-9, atol=1e-12, err_msg=name
        )


def test_groups(both):
    local, effect = both
    plain = rs.ale_from_local(local, bins=rs.EqualWidthBins(3))
    own = rs.std_error(plain, local, groups=np.arange(600))
    for name in ("effect_se", "curve_se", "curve_se_start", "average_effect_se"):
        np.testing.assert_allclose(own[name], effect[name], rtol=0.02)
    # Every row twice, in one group: the error of the rows once.
    twice = local.isel(obs=np.repeat(np.arange(600), 2))
    doubled = rs.ale_from_local(twice, bins=rs.EqualWidthBins(3))
    pairs = rs.std_error(doubled, twice, groups=np.repeat(np.arange(600), 2))
    np.testing.assert_allclose(
        pairs["curve_se"].sel(feature="c"), effect["curve_se"].sel(feature="c"), rtol=0.01
    )
    assert (rs.wald_test(pairs)["p_value"].sel(feature="c") < 0.05).all()
    xr.testing.assert_identical(rs.std_error(pairs), pairs)
    # Errors of single rows need covariances of levels that those by groups have replaced.
    with pytest.raises(ValueError, match="this one holds covariances by groups"):
        rs.std_error(pairs, twice)


def test_comparisons(both):
    local, effect = both
    same = rs.compare(effect, effect, paired=(local, local), rng=0)
    assert (same["statistic"] == 0).all()
    other = rs.ale_local_effects(
        lambda t: 1.5 * model(t), table(600), bins=rs.EqualWidthBins(3), order={"c": LEVELS}
    )
    b = rs.ale_from_local(other, bins=rs.EqualWidthBins(3))
    found = rs.compare(b, effect, paired=(other, local), rng=0).sel(feature="c")
    # Half of the curve, exactly: so is its error.
    np.testing.assert_allclose(
        found["difference"].values[:4], effect["curve"].sel(feature="c").values[:4] / 2, rtol=1e-9
    )
    np.testing.assert_allclose(
        found["difference_se"].values[:4],
        effect["curve_se"].sel(feature="c").values[:4] / 2,
        rtol=0.02,
    )
    apart = rs.compare(rs.std_error(b), effect, rng=0).sel(feature="c")
    expected = np.hypot(1.5, 1) * effect["curve_se"].sel(feature="c").values[:4]
    np.testing.assert_allclose(apart["difference_se"].values[:4], expected, rtol=1e-9)
    turned = ale_c(table(600), order=LEVELS[::-1])
    with pytest.raises(ValueError, match="same levels of feature 'c' in the same order"):
        rs.compare(effect, turned)


@pytest.mark.thorough
def test_tests_of_levels(both):
    _, effect = both
    found = rs.wald_test(effect, method="wald").sel(feature="c")
    assert found["df"] == 3
    assert found["p_value"] < 1e-6
    found = rs.wald_test(effect).sel(feature="c")
    assert 1 <= found["df"] <= 3
    assert found["p_value"] < 1e-6
    # Steps between levels in an order that is not their own have no reason to be equal.
    alike = rs.wald_test(effect, "constant").sel(feature="c")
    assert np.isnan(alike["p_value"])
    assert "no order of their own" in str(alike["reason"].values)
    X = table(600).assign(c=lambda X: X["c"].astype(pd.CategoricalDtype(LEVELS, ordered=True)))
    found = rs.wald_test(ale_c(X), "constant", method="wald")
    assert found.sel(feature="c")["df"] == 2
    assert 1 <= rs.wald_test(ale_c(X), "constant").sel(feature="c")["df"] <= 2
    assert rs.wald_test(effect, "homogeneous").sel(feature="c")["p_value"] == 0
    assert rs.equivalence_test(effect, 100.0).sel(feature="c")["p_value"] < 1e-6


def coverage(centering, n_runs, n=150):
    """Runs in which intervals of every level, and the band of all, hold the truth."""
    shares = np.array(SHARES)
    mean = np.array([CONSTANTS[one] / 2 for one in LEVELS])
    u, v = (np.array([values[one] for one in LEVELS]) for values in (CONSTANTS, SLOPES))
    weight = shares[:-1] + shares[1:]
    x = (shares[:-1] * mean[:-1] + shares[1:] * mean[1:]) / weight
    start = np.append(0, np.cumsum(np.diff(u) + np.diff(v) * x))
    truth = start - (shares @ start if centering == "mean" else start.mean())
    held, banded = np.zeros((n_runs, 4)), np.zeros(n_runs)
    for run in range(n_runs):
        effect = ale_c(table(n, seed=run + 1), centering=centering)
        found = rs.confband(rs.confint(effect), n_draws=2000, rng=0).isel(feature=0)
        for name, out in (("curve_ci", held), ("curve_band", banded)):
            ends = found[name].values
            inside = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
            out[run] = inside if name == "curve_ci" else inside.all()
    return held.mean(axis=0), banded.mean()


@pytest.mark.slow
@pytest.mark.parametrize("centering", ["mean", "integral"])
def test_coverage(centering):
    """Nominal 95 %, 90 samples of 150 rows, 15 at the rarest level: Monte-Carlo error 2.3 %."""
    held, banded = coverage(centering, 90)
    assert (np.abs(held - 0.95) < 3.5 * np.sqrt(0.05 * 0.95 / 90)).all(), held
    assert abs(banded - 0.95) < 3.5 * np.sqrt(0.05 * 0.95 / 90), banded


@pytest.mark.slow
def test_size_of_the_wald_test():
    """Steps without an effect on average: 5 % of 150 samples, Monte-Carlo error 1.8 %."""
    rng = np.random.default_rng(0)
    rejected = []
    for _ in range(150):
        frame = pd.DataFrame({"c": rng.choice(LEVELS, 150, p=SHARES), "x": rng.normal(size=150)})
        effect = ale_c(frame, f=lambda t: t["c"].map(SLOPES).to_numpy() * t["x"].to_numpy())
        rejected.append(float(rs.wald_test(effect)["p_value"][0]) < 0.05)
    assert abs(np.mean(rejected) - 0.05) < 3.5 * np.sqrt(0.05 * 0.95 / 150), np.mean(rejected)


# --- tables, pictures, files ---------------------------------------------------------------------


def test_tables(both):
    local, effect = both
    lines = rs.tidy(effect)
    c = lines[lines["term"] == "c"]
    assert c["level_from"].tolist() == LEVELS[:-1]
    assert c["level_to"].tolist() == LEVELS[1:]
    assert lines[lines["term"] == "x"]["level_from"].tolist() == [""] * 3
    text = str(rs.summary(effect, "c"))
    assert "a → b" in text
    assert "Levels" in text
    assert "Level order: as given" in text
    assert rs.glance(effect)["kind"].tolist() == ["continuous", "nominal", "boolean"]
    assert "nan" not in str(rs.summary(effect))
    rows = rs.augment(local, effect)
    assert rows["c"].tolist() == table(600)["c"].tolist()
    assert rows["c.bin"].isna().all()
    expected = effect["curve"].sel(feature="c").values[[LEVELS.index(one) for one in rows["c"]]]
    np.testing.assert_array_equal(rows["c.curve"], expected)


def test_predict(both):
    _, effect = both
    curve = effect["curve"].sel(feature="c").values
    found = rs.predict(effect, ["d", "a"], "c")
    assert found.values.tolist() == [curve[3], curve[0]]
    assert found["x"].values.tolist() == ["d", "a"]
    assert rs.predict(effect, [True], "b").item() == effect["curve"].sel(feature="b").values[1]
    with pytest.raises(ValueError, match="x must hold levels of feature 'c', .*; got 'e'"):
        rs.predict(effect, ["e"], "c")


@pytest.mark.thorough
def test_pictures(both):
    _, effect = both
    upper, lower = rs.plots.effect(rs.confband(rs.confint(effect), n_draws=500, rng=0), "c")
    bars = upper.containers[0]
    np.testing.assert_allclose(
        [bar.get_height() for bar in bars], effect["curve"].sel(feature="c").values[:4]
    )
    assert [text.get_text() for text in lower.get_xticklabels()] == LEVELS
    heights = [bar.get_height() for bar in lower.patches]
    np.testing.assert_allclose(heights, 100 * effect["level_share"].sel(feature="c").values[:4])
    # A whisker is the interval.
    ends = upper.containers[-1].lines[2][0].get_segments()[0][:, 1]
    np.testing.assert_allclose(ends, rs.confint(effect)["curve_ci"].sel(feature="c").values[0])
    panels = rs.plots.effects(effect)
    assert len(panels) == 3
    plt.figure().canvas.draw()
    with pytest.raises(ValueError, match="ax must be 2"):
        rs.plots.effect(effect, "c", ax=[upper])


@pytest.mark.thorough
def test_categorical_columns_are_taken_beside_features():
    """users.md: an error where a union was meant."""
    frame = table().assign(k=np.arange(len(table())) % 3)
    options = {"bins": rs.EqualWidthBins(2)}
    found = rs.ale(model, frame, features=["x"], categorical="k", **options)
    assert found["feature"].values.tolist() == ["x", "k"]
    both = rs.ale(model, frame, features=["x", "k"], categorical="k", **options)
    xr.testing.assert_identical(found, both)


@pytest.mark.thorough
def test_a_single_category_alone_is_a_constant():
    frame = table()[["x", "b"]].assign(c="a")
    for options in ({"features": "c"}, {"categorical": "c"}):
        found = rs.ale(model_of_x, frame, bins=rs.EqualWidthBins(2), **options)
        assert found["feature_kind"].sel(feature="c") == "constant"
        rs.summary(rs.std_error(found))


def model_of_x(frame):
    return frame["x"].to_numpy()


# --- which columns have levels --------------------------------------------------------------------


def split(known=None, features=None, categorical=None, frame=None):
    """Names of features, of those with an axis, and of those with levels."""
    if frame is None:
        frame = pd.DataFrame(
            {
                "x": np.linspace(0, 1, 24),
                "month": np.arange(24) % 6,
                "k": list("uvw") * 8,
                "key": [f"id {at}" for at in range(24)],
            }
        )
    names, axes, levels = split_features(as_table(frame), features, categorical, known)
    of = list(frame.columns)
    return names, [of[at] for at in axes], [of[at] for at in levels]


def test_columns_with_levels_by_what_is_asked_for():
    with pytest.warns(UserWarning, match="'key' .more than one level for every two rows"):
        assert split() == (["x", "month", "k"], ["x"], ["month", "k"])
    named = (["key", "month"], ["month"], ["key"])
    assert split(features=["key", "month"]) == named
    assert split(features="x", categorical="month") == (["x", "month"], ["x"], ["month"])
    both = split(features=["month", "x"], categorical=["month", "k"])
    assert both == (["month", "x", "k"], ["x"], ["month", "k"])
    with pytest.warns(UserWarning, match="'key'"):
        found = split(categorical=["month", "x"])
    assert found == (["x", "month", "k"], [], ["x", "month", "k"])
    found = split(categorical="key")
    assert found == (["x", "month", "k", "key"], ["x"], ["month", "k", "key"])
    assert split(frame=pd.DataFrame({"month": np.arange(24) % 6}))[2] == ["month"]


def test_columns_with_levels_by_what_the_model_knows():
    known = ModelColumns(["x", "month", "key"])
    with pytest.warns(UserWarning, match="Left out"):
        assert split(known) == (["x", "month"], ["x"], ["month"])
    used = known._replace(levels=["month", "key"])
    assert split(used) == (["x", "month", "key"], ["x"], ["month", "key"])
    with pytest.warns(UserWarning, match="'key'"):
        found = split(known._replace(discrete=True))
    assert found == (["x", "month"], ["x", "month"], [])
    # Columns that are named come beside those that the model knows.
    with pytest.warns(UserWarning, match="'key'"):
        found = split(known._replace(discrete=True), categorical="k")
    assert found == (["x", "month", "k"], ["x", "month"], ["k"])
    assert split(known, features=["k"]) == (["k"], [], ["k"])


# --- differences row by row -----------------------------------------------------------------------


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("batch_rows", [None, 5])
def test_differences_of_every_row_by_hand(missing, batch_rows):
    """f = u_l + v_l x, and twice as much: up to the next level, and from the one before."""
    frame = table(40)[["c", "x"]].astype({"c": object})
    if missing:
        frame.loc[[5, 9], "c"] = None
        frame.loc[[5, 9], "x"] = 1e6

    def two(t):
        y = model(t.assign(c=t["c"].fillna("a")))
        return np.column_stack([y, 2 * y])

    order = ["c", "a", "d", "b"]
    options = {"features": "c", "order": order, "missing": "drop", "batch_rows": batch_rows}
    local = rs.ale_local_effects(two, frame, **options)
    number = np.array([order.index(one) if one in order else -1 for one in frame["c"]])
    u, v = (np.array([values[one] for one in order]) for values in (CONSTANTS, SLOPES))
    height = u + v * frame["x"].to_numpy()[:, None]
    up, down, mean = (np.full(40, np.nan) for _ in range(3))
    for row, at in enumerate(number):
        if at < 0:
            continue
        if at < 3:
            up[row] = height[row, at + 1] - height[row, at]
        if at > 0:
            down[row] = height[row, at] - height[row, at - 1]
        mean[row] = np.nanmean([up[row], down[row]])
    for name, own in (("difference_up", up), ("difference_down", down), ("local_effect", mean)):
        assert local[name].dims == ("output", "obs", "feature")
        np.testing.assert_allclose(local[name][:, :, 0], [own, 2 * own], rtol=1e-9, atol=1e-12)
    x = np.where(number < 0, np.nan, number)
    np.testing.assert_array_equal(local["x"].values[:, 0], x)
    assert local["level"].values.tolist() == [order]
    assert (local["n_levels"].item(), local["n_levels_unused"].item()) == (4, 0)
    assert ("n_missing" in local) == missing
    # Rounding of a difference: 8 eps times the largest output.
    largest = np.abs(height[number >= 0]).max()
    assert local["local_effect_error"].values[0, 0] <= 8 * np.finfo(float).eps * largest
    assert local["local_effect_error"].values[0, 0] > np.finfo(float).eps * largest / 4


@pytest.mark.thorough
def test_features_of_several_numbers_of_levels(monkeypatch):
    frame = table(60).assign(one="z", k=list("uv") * 30)
    shown = []

    def bar(n, what, unit, *, progress):
        shown.append((n, what, unit, progress))
        return progress_bar(n, what, unit, progress=False)

    monkeypatch.setattr(levels_module, "progress_bar", bar)
    options = {"features": ["c", "one", "k", "b"], "order": "as_is", "progress": True}
    local = rs.ale_local_effects(model, frame, **options)
    assert shown == [(4, "local effects", "feature", True)]
    assert local["level"].values.tolist() == [
        LEVELS,
        ["z", "", "", ""],
        ["u", "v", "", ""],
        ["False", "True", "", ""],
    ]
    assert local["n_levels"].values.tolist() == [4, 1, 2, 2]
    assert local["local_effect"].sel(feature="one").isnull().all()
    assert local["order"].values.tolist() == ["as_is"] * 4
    # Few rows of a call at a time give the same.
    for batch_rows in (50, 361, 540):
        some = rs.ale_local_effects(model, frame, batch_rows=batch_rows, **options)
        xr.testing.assert_identical(some, local)


def test_levels_without_rows_are_counted():
    frame = table(60)
    frame["c"] = frame["c"].cat.add_categories(["e", "f"])
    weight = np.where(frame["c"] == "d", 0.0, 1.0)
    frame.loc[3, "b"] = not frame["b"][3]
    with pytest.warns(UserWarning, match=r"Levels without rows are left out: 'c' \(3\)\.$"):
        local = rs.ale_local_effects(model, frame, features=["b", "c"], weights=weight)
    assert local["n_levels_unused"].values.tolist() == [0, 3]
    assert "n_missing" not in local
    # Rows of weight 0 have no level, and are not asked for.
    gone = weight == 0
    assert np.isnan(local["x"].sel(feature="c").values[gone]).all()
    assert np.isnan(local["local_effect"].sel(feature="c").values[gone]).all()


@pytest.mark.thorough
def test_two_levels_keep_their_order_unless_they_are_encoded():
    pytest.importorskip("category_encoders")
    frame = table(40)[["x"]].assign(k=list("uv") * 20, three=list("uvwv") * 10)
    y = np.where(frame["k"] == "u", 5.0, 1.0)

    def levels(features, order):
        found = rs.ale_local_effects(model_of_x, frame, features=features, order=order, target=y)
        return found["level"].values[0].tolist()

    assert levels("k", "similarity") == ["u", "v"]
    assert levels("k", "target") == ["v", "u"]
    assert levels("three", "as_is") == ["u", "v", "w"]
    assert levels("three", "target") == ["v", "u", "w"]


def test_one_level_needs_no_target():
    frame = table(20)[["x"]].assign(k="u")
    two = lambda t: np.column_stack([t["x"], t["x"]])  # noqa: E731
    local = rs.ale_local_effects(two, frame, features="k", order="target")
    assert local["n_levels"].item() == 1
    assert local["local_effect"].isnull().all()
    np.testing.assert_array_equal(local["local_effect_error"], np.zeros((2, 1)))


def test_equal_precision_weights_are_none_for_encoders():
    pytest.importorskip("category_encoders")
    frame = table(40)
    weights = np.where(np.arange(40) == 30, 0.0, 3.0)
    found = ale_c(frame, order="target", target=frame["x"], weights=weights)
    plain = ale_c(frame.drop(30), order="target", target=frame["x"].drop(30))
    assert found["level"].values.tolist() == plain["level"].values.tolist()
    # Weights that differ by less than 1 differ.
    with pytest.raises(ValueError, match="does not accept precision weights"):
        ale_c(frame, order="target", target=frame["x"], weights=1 + np.arange(40) / 100)


@pytest.mark.parametrize("row", [0, 3])
def test_differences_that_are_not_finite_are_refused_at_either_end(row):
    """At the first level up, at the last level down; of rows that have no level, never."""
    frame = table(40)
    number = frame["c"].astype(str).map({one: at for at, one in enumerate(LEVELS)})
    here = (number == row).to_numpy()

    def f(t):
        other = t["c"].astype(str).map({one: at for at, one in enumerate(LEVELS)}).to_numpy()
        far = np.isin(t["x"].to_numpy(), frame["x"].to_numpy()[here]) & (other != row)
        return np.where(far, np.inf, 1.0)

    with pytest.raises(ValueError, match="Differences of feature 'c' must be finite"):
        ale_c(frame, f=f)
    gone = frame.assign(c=frame["c"].astype(object).where(~here, None))
    rest = [one for one in LEVELS if one != LEVELS[row]]
    found = rs.ale_local_effects(f, gone, features="c", order=rest, missing="drop")
    assert found["n_missing"].item() == here.sum()


def test_rounding_is_by_the_largest_output_of_either_sign():
    """8 eps |f|, of an output that is negative."""
    frame = pd.DataFrame({"c": pd.Categorical(LEVELS * 5)})
    f = lambda t: -t["c"].astype(str).map({"a": 1.0, "b": 3, "c": 7, "d": 2})  # noqa: E731
    local = rs.ale_local_effects(f, frame, features="c", order=LEVELS)
    expected = 8 * np.finfo(float).eps * 7 * 1.0
    assert local["local_effect_error"].item() == pytest.approx(expected)


def test_columns_that_are_named_are_not_left_out():
    """Only those that are in neither list."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=90), "b": list("xyz") * 30, "c": list("uv") * 45})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        effect = rs.rhale(lambda X: X["a"] + (X["b"] == "x"), X, categorical=["b", "c"])
    assert effect["feature"].values.tolist() == ["a", "b", "c"]
    with pytest.warns(UserWarning, match=r"Left out: 'c'\. Name columns"):
        rs.rhale(lambda X: X["a"] + (X["b"] == "x"), X, categorical="b")
