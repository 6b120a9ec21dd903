"""What every profile is given: grids, counts of rows, calls of the model, labels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import rhale_stats as rs
from rhale_stats.arrays.binning import quantile_edges
from rhale_stats.models import differences
from rhale_stats.models.options import ModelOptions
from rhale_stats.profiles import inputs as module
from tests.helpers import Counting, rows_of_probe

N = 20
RNG = np.random.default_rng(1)
X = pd.DataFrame({"a": RNG.normal(size=N), "i": np.arange(N) % 7, "k": ["u", "v"] * 10, "one": 2.5})
W = np.arange(N) % 4.0


def f(X):
    return X["a"] * X["i"] + (X["k"] == "u") + X["one"]


def two(X):
    return np.column_stack([f(X), X["a"] ** 2])


def test_points_and_levels_are_labelled():
    table = X.copy()
    table.attrs["units"] = {"a": "mg"}
    found = rs.pdp(f, table, grid={"a": [-1.0, 0.5, 1.0]})
    assert found["feature"].values.tolist() == ["a", "i", "k", "one"]
    kinds = ["continuous", "discrete", "nominal", "constant"]
    assert found["feature_kind"].values.tolist() == kinds
    assert found["feature_units"].values.tolist() == ["mg", "", "", ""]
    assert found["n_grid"].values.tolist() == [3, 7, 2, 0]
    assert found["grid"].values.tolist() == list(range(7))
    points = np.full((4, 7), np.nan)
    points[0, :3], points[1], points[2, :2] = [-1, 0.5, 1], np.arange(7), [0, 1]
    np.testing.assert_array_equal(found["grid_value"], points)
    levels = np.full((4, 7), "")
    levels[2, :2] = ["u", "v"]
    np.testing.assert_array_equal(found["level"], levels)
    np.testing.assert_array_equal(found["curve"].notnull(), np.isfinite(points))
    cov = np.isfinite(points)[:, :, None] & np.isfinite(points)[:, None]
    np.testing.assert_array_equal(found["curve_cov"].notnull(), cov)
    # Where there is no point there are no rows.
    share = found["weight_share"].values
    np.testing.assert_array_equal(share[~np.isfinite(points)], 0)
    np.testing.assert_allclose(share.sum(axis=1), [1, 1, 1, 0])
    assert "level" not in rs.pdp(f, X, features=["a", "i"], n_grid=3)
    assert "n_missing" not in found


@pytest.mark.thorough
@pytest.mark.parametrize("make", [rs.pdp, rs.ice, rs.m_plot])
@pytest.mark.parametrize("kind", [None, "precision", "frequency"])
def test_rows_are_counted(make, kind):
    gaps = X.assign(a=X["a"].where(np.arange(N) > 4))
    given = {} if kind is None else {"weights": W, "weight_kind": kind}
    w = np.ones(N) if kind is None else W
    found = make(lambda X: f(X.fillna({"a": 0.0})), gaps, missing="drop", **given)
    there = (w > 0) & gaps["a"].notna().to_numpy()
    used = w > 0
    if kind == "precision":
        n_obs = [there.sum(), used.sum()]
        n_effective = [w[one].sum() ** 2 / np.sum(w[one] ** 2) for one in (there, used)]
        n_missing = (used & ~there).sum()
    else:
        n_obs = n_effective = [w[there].sum(), w[used].sum()]
        n_missing = w[~there].sum()
    assert found["n_missing"].values.tolist() == [n_missing, 0, 0, 0]
    counted, effective = found["n_obs"], found["n_effective"]
    if make is rs.m_plot:
        counted = counted.sum("grid")
        assert found["n_obs"].dims == ("feature", "grid")
    else:
        np.testing.assert_allclose(effective, [n_effective[0], *[n_effective[1]] * 3])
    varying = slice(3) if make is rs.m_plot else slice(4)
    np.testing.assert_array_equal(counted[varying], [n_obs[0], *[n_obs[1]] * 3][varying])
    assert counted.dtype == np.int64
    assert found.attrs["n_rows"] == used.sum()
    if make is rs.pdp:
        assert "x" not in found
        return
    np.testing.assert_array_equal(found["x"][0], gaps["a"][used])
    np.testing.assert_array_equal(found["x"][2], np.arange(N)[used] % 2)
    if kind is None:
        assert "weight" not in found
        return
    largest = W.max() if kind == "precision" else 1
    np.testing.assert_array_equal(found["weight"], W[used] / largest)
    words = {"precision": "precision weight, the largest 1", "frequency": "frequency weight"}
    assert found["weight"].attrs["long_name"] == words[kind]
    np.testing.assert_array_equal(found["obs"], np.flatnonzero(used))


def test_points_of_numbers(monkeypatch):
    x = np.array([0.0, 1.0, 1.0, 2.0, 4.0, 8.0])
    table = np.column_stack([x, x])

    def points(weights=None, **how):
        found = rs.pdp(lambda X: X[:, 0], table, features=0, weights=weights, **how)
        return found["grid_value"].values[0]

    # As many points as distinct values: these.
    for kind in ("quantile", "equal_width"):
        np.testing.assert_array_equal(points(n_grid=5, grid_kind=kind), [0, 1, 2, 4, 8])
    np.testing.assert_array_equal(points(n_grid=4, grid_kind="equal_width"), np.linspace(0, 8, 4))
    np.testing.assert_array_equal(points(n_grid=4), quantile_edges(x, 3, None))
    w = np.array([5.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    np.testing.assert_array_equal(points(w, n_grid=4), quantile_edges(x, 3, w))
    assert not np.array_equal(points(w, n_grid=4), points(n_grid=4))
    # Rows of weight 0 have no place.
    np.testing.assert_array_equal(points(1.0 * (x < 8), n_grid=9), [0, 1, 2, 4])


@pytest.mark.parametrize("dtype", ["int64", "Int64", "float64"])
def test_whole_numbers_stay_whole_where_their_column_has_them(dtype):
    seen = []

    def model(X):
        seen.append(X["i"].dtype)
        return X["a"] + X["i"].astype(float)

    table = X[["a", "i"]].astype({"i": dtype})
    rs.pdp(model, table, features="i", grid=[1, 3])
    rs.pdp(model, table, features="i", n_grid=3)
    assert set(map(str, seen)) == {dtype}
    if dtype == "float64":
        found = rs.pdp(model, table, features="i", grid=[1.5, 3])
        np.testing.assert_allclose(found["curve"].diff("grid"), [[1.5]])


@pytest.mark.thorough
def test_small_features_are_asked_for_together(monkeypatch):
    """As many features in a call as there is room for: 60, 140 and 40 rows, and none."""

    def calls(most, **options):
        monkeypatch.setattr(module, "MAX_CALL_ROWS", most)
        model = Counting(f)
        found = rs.pdp(model, X, grid={"a": [0.0, 1.0, 2.0]}, **options)
        assert found.attrs["model_calls"] == len(model.rows)
        assert found.attrs["model_rows"] == sum(model.rows)
        probe, rows = model.rows[:3], model.rows[3:]
        assert (probe, sum(rows)) == (rows_of_probe(len(X)), 240)
        return rows, found

    whole = calls(240)
    assert whole[0] == [240]
    cases = {239: [200, 40], 200: [200, 40], 199: [60, 180], 180: [60, 180], 179: [60, 140, 40]}
    for most, rows in cases.items():
        found = calls(most)
        assert found[0] == rows
        np.testing.assert_array_equal(found[1]["curve"], whole[1]["curve"])
    # No more than a batch.
    assert calls(240, batch_rows=200)[0] == [200, 40]


@pytest.mark.thorough
def test_blocks_have_the_rows_that_there_is_room_for(monkeypatch):
    """Four arrays of curves of 8 bytes a point; at least one row, and no more than a batch."""
    given = module.ProfileInputs.used(X, ["a"], ModelOptions())
    (axis,) = given.axes(None, 5, "quantile")
    asked = given.quotients(f)
    whole = np.concatenate([curves for _, curves, _ in given.curves(asked, axis)], axis=1)
    at = X.assign(a=axis.grid[3])
    np.testing.assert_allclose(whole[0, :, 3], f(at))
    one = 4 * 8 * 5
    cases = [(7 * one, 99, 7), (8 * one - 1, 99, 7), (8 * one, 99, 8), (1, 99, 1), (8 * one, 6, 6)]
    for room, batch, size in cases:
        monkeypatch.setattr(differences, "BATCH_BYTES", room)
        monkeypatch.setattr(differences, "BATCH_ROWS", batch)
        found = list(given.curves(asked, axis))
        ends = [(rows.start, rows.stop) for rows, _, _ in found]
        assert ends == [(first, min(first + size, N)) for first in range(0, N, size)]
        for rows, curves, _ in found:
            np.testing.assert_allclose(curves, whole[:, rows])


@pytest.mark.parametrize("together", [0, 10_000])
@pytest.mark.parametrize("output", [0, 1])
@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_outputs_that_are_not_finite_are_counted_by_rows(monkeypatch, together, output, value):
    monkeypatch.setattr(module, "MAX_CALL_ROWS", together)

    def bad(X):
        out = two(X)
        out[(X["a"] > 0.9).to_numpy() & (X["i"] == 3).to_numpy(), output] = value
        return out

    # Of the three rows that have the 3, whatever is said of the points of a.
    table = X.assign(a=np.linspace(-1, 0, N))
    n = int((X["i"] == 3).sum())
    first = ", ".join(map(str, np.flatnonzero(X["i"] == 3)[:3]))
    with pytest.raises(
        ValueError, match=f"ICE curves of feature 'a'.*got {n} .* in 20 rows .*{first}"
    ):
        rs.pdp(bad, table, features=["i", "a"], grid={"i": [0, 1], "a": [0.0, 1.0]})


def test_outputs_at_missing_values_must_be_finite():
    gaps = X.assign(a=X["a"].where(np.arange(N) > 4))

    def bad(X):
        out = two(X.fillna({"a": 1.0}))
        out[(X["a"].isna() & (X["i"] == 6)).to_numpy(), 1] = np.nan
        return out

    n = int((X["i"] == 6).sum())
    said = f"Outputs at missing values of feature 'a' must be finite; got {n} NaN in {N} rows"
    with pytest.raises(ValueError, match=said):
        rs.pdp(bad, gaps, features="a", missing="bin", grid=[0.0, 1.0])


@pytest.mark.thorough
def test_several_outputs_beside_constants():
    found = rs.pdp(two, X[["one", "a"]].assign(i=1, k="u"), features=["one", "a"], n_grid=3)
    assert found["curve"].dims == ("output", "feature", "grid")
    for name in ("curve", "importance", "curve_offset", "curve_std", "curve_se"):
        assert found[name].sel(feature="one").isnull().all(), name
        assert found[name].sel(feature="a").notnull().all(), name
    np.testing.assert_array_equal(found["output_error"].sel(feature="one"), [0, 0])
    assert found["output_error"].sel(feature="a").values.min() > 0
    alone = rs.pdp(two, X.assign(a=1.0), features="a")
    assert alone.sizes["grid"] == 1
    assert alone["curve"].isnull().all()
    for make in (rs.m_plot, rs.ice):
        assert make(two, X.assign(a=1.0), features="a")["curve"].isnull().all()
    none = rs.shap_dependence(None, X.assign(a=1.0), features="a", shap_values=np.arange(20.0))
    assert none["curve"].isnull().all()
    assert none["smoothing"].isnull().all()


def test_columns_that_have_a_profile():
    many = X.assign(key=[f"n{at}" for at in range(N)], z=1j * np.arange(N))
    with pytest.warns(
        UserWarning, match=r"^Left out: 'key' \(more than one level for every two rows\); 'z' "
    ):
        found = rs.pdp(f, many, n_grid=2)
    assert found["feature"].values.tolist() == list(X.columns)
    with pytest.raises(TypeError, match="X must have a column with an effect; got 'key'"):
        rs.pdp(lambda X: np.zeros(len(X)), many[["key"]])
    with pytest.raises(TypeError, match="column 'z' holds lists, records or complex"):
        rs.pdp(f, many, features=["a", "z"])
    assert rs.pdp(f, many, features=["key"])["n_grid"].item() == N
    # Two rows for every level are enough.
    half = X.assign(key=[f"n{at // 2}" for at in range(N)])
    assert "key" in rs.pdp(f, half, n_grid=2)["feature"]


def test_grids_of_a_users_own():
    with pytest.raises(KeyError, match="grid must be one of 'a', 'i', 'k', 'one', or a number"):
        rs.pdp(f, X, features=["a", "i"], grid={"a": [0, 1], "k": ["u"], "b": [1]})
    with pytest.raises(ValueError, match="grid must map names to points .* one array for 'a', 'i'"):
        rs.pdp(f, X, features=["a", "i"], grid=[0.0, 1.0])
    one = rs.pdp(f, X, features=["a"], grid=[0.0, 1.0])
    np.testing.assert_array_equal(one["grid_value"], [[0, 1]])
    turned = rs.pdp(f, X, features="k", grid=["v", "u"])
    assert turned["level"].values.tolist() == [["v", "u"]]
    np.testing.assert_allclose(turned["curve"].diff("grid"), [[1.0]])


# --- few points -----------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("make", [rs.ice, rs.m_plot])
def test_a_category_of_one_level_has_one_point(make):
    """The curve there is the mean output, with the error of a mean."""
    table = X.assign(k="u")
    centred = {"centering": "none"} if make is rs.m_plot else {}
    found = make(f, table, features="k", **centred)
    y = f(table)
    assert found.sizes["grid"] == 1
    assert found["curve"].item() == pytest.approx(y.mean())
    assert found["curve_se"].item() == pytest.approx(y.std(ddof=1) / np.sqrt(N))
    assert found["weight_share"].item() == 1
    assert found["importance"].item() == pytest.approx(0, abs=1e-12)
    boot = rs.bootstrap(found, n_resamples=400, rng=0)["curve"]
    assert float(boot.std()) == pytest.approx(y.std() / np.sqrt(N), rel=0.15)
    groups = np.arange(N) // 2
    grouped = rs.std_error(found, groups=groups)["curve_se"].item()
    pairs = y.groupby(groups).mean()
    assert grouped == pytest.approx(pairs.std(ddof=1) / np.sqrt(N / 2))
    other = make(lambda X: f(X) + X["a"], table, features="k", **centred)
    compared = rs.compare(found, other, paired=(found, other), rng=0)
    assert compared["difference"].item() == pytest.approx(-X["a"].mean())
    assert compared["difference_se"].item() == pytest.approx(X["a"].std() / np.sqrt(N))
    assert float(rs.predict(found, "u", "k")) == found["curve"].item()


def test_derivatives_need_two_points_or_none():
    table = X[["a", "one"]]
    slopes = rs.ice(lambda X: X["a"] ** 2 + X["one"], table, kind="derivative", grid={"a": [0, 1]})
    np.testing.assert_allclose(slopes["curve"].sel(feature="a"), [1, 1])
    assert slopes["curve"].sel(feature="one").isnull().all()
    text = pd.DataFrame({"k": X["k"], "t": X["k"]})
    with pytest.raises(TypeError, match="X must have a column of numbers for derivatives"):
        rs.ice(lambda X: np.zeros(len(X)), text, kind="derivative")
    # By default columns without slopes are left out.
    assert rs.ice(f, X, kind="derivative", n_grid=3)["feature"].values.tolist() == ["a", "i", "one"]


@pytest.mark.parametrize("make", ["pdp", "ice", "m_plot", "shap"])
def test_constants_and_levels_have_nothing_beside_the_curve(make):
    """With missing values as rows: numbers that have some, and features that do not or cannot."""
    gaps = X.assign(a=X["a"].where(np.arange(N) > 4), k=X["k"].where(np.arange(N) > 2))

    def full(X):
        return f(X.fillna({"a": 0.0, "k": "u"}))

    if make == "shap":
        phi = np.column_stack([full(gaps)] * 4)
        found = rs.shap_dependence(None, gaps, shap_values=phi, missing="bin", n_grid=3)
    else:
        found = getattr(rs, make)(full, gaps, missing="bin")
    for name in ("missing_curve", "missing_curve_se"):
        assert found[name].notnull().values.tolist()[0]
        absent = found[name].isnull().sel(feature=["i", "one"])
        assert absent.all()
    assert found["n_missing"].values.tolist() == [5, 0, 3, 0]
    assert found["curve"].sel(feature="one").isnull().all()
    levels = found["level"].sel(feature="k").values.tolist()
    assert levels[:3] == ["u", "v", "missing"]
