"""M-plots and Shapley values of rows without a value, by their definitions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import rhale_stats as rs
from rhale_stats.profiles.rows import in_bins
from tests.helpers import in_turn, rows_of_probe

N = 30
RNG = np.random.default_rng(6)
X = pd.DataFrame({"a": RNG.uniform(0, 3, N), "b": RNG.normal(size=N)})
X.loc[:4, "a"] = np.nan
# No row in the third of four bins.
X["a"] = X["a"].where(~X["a"].between(1.8, 2.4), 0.5)
EDGES = np.array([0.0, 0.9, 1.8, 2.4, 3.0])
COUNTS = np.arange(N) % 3 + 1.0
CENTERINGS = ["mean", "start", "integral", "none"]


def f(X):
    return np.column_stack([X["b"] ** 2 + X["a"].fillna(5.0), X["b"] - 3])


def constant(centering, x, share):
    """Weights of the points in the constant: by rows, the first, by trapezoids, or none."""
    if centering == "mean":
        return share
    if centering == "start":
        return np.eye(len(x))[0]
    if centering == "integral":
        return np.array([np.trapezoid(unit, x) for unit in np.eye(len(x))]) / np.ptp(x)
    return np.zeros(len(x))


@pytest.mark.parametrize("centering", CENTERINGS)
@pytest.mark.parametrize("frequency", [False, True])
def test_bins_and_what_is_beside_them(centering, frequency):
    given = {"weights": COUNTS, "weight_kind": "frequency"} if frequency else {}
    found = rs.m_plot(f, X, features="a", bins=rs.GivenBins(EDGES), centering=centering,
                      missing="bin", **given).isel(feature=0)  # fmt: skip
    rows = X.loc[X.index.repeat(COUNTS.astype(int))] if frequency else X
    y, gone = f(rows), rows["a"].isna().to_numpy()
    cell = np.digitize(rows["a"], EDGES[1:-1])
    for output in range(2):
        one, values = found.isel(output=output), y[:, output]
        each = [values[~gone & (cell == k)] for k in range(4)]
        n = np.array([len(own) for own in each])
        assert n[2] == 0
        there = n > 0
        mean, variance = (
            np.array([of(own) for own in np.array(each, dtype=object)[there]])
            for of in (np.mean, lambda own: own.var(ddof=1))
        )
        x = np.array([rows["a"][~gone & (cell == k)].mean() for k in range(4) if n[k]])
        share = n[there] / n.sum()
        centre = constant(centering, x, share)
        offset = centre @ mean
        np.testing.assert_allclose(one["curve"][there], mean - offset, atol=1e-12)
        assert np.isnan(one["curve"][2])
        np.testing.assert_allclose(one["curve_offset"], offset, atol=1e-12)
        np.testing.assert_allclose(one["curve_std"][there], np.sqrt(variance))
        np.testing.assert_array_equal(found["n_obs"], n)
        np.testing.assert_array_equal(found["n_effective"], n)
        np.testing.assert_allclose(found["weight_share"], n / n.sum())
        np.testing.assert_allclose(found["grid_value"][there], x)
        np.testing.assert_allclose(one["heterogeneity_output"], np.sqrt(share @ variance))
        importance = np.sqrt(share @ (mean - share @ mean) ** 2)
        np.testing.assert_allclose(one["importance"], importance)
        # Errors of the means of independent bins, and of the constant.
        if centering != "mean":
            apart = np.eye(3) - centre
            covariance = apart @ np.diag(variance / n[there]) @ apart.T
            np.testing.assert_allclose(
                one["curve_cov"].values[np.ix_(there, there)], covariance, atol=1e-12
            )
        np.testing.assert_allclose(
            one["curve_se"][there], np.sqrt(np.diagonal(one["curve_cov"])[there]), atol=1e-12
        )
        beside = values[gone].mean() - offset
        np.testing.assert_allclose(one["missing_curve"], beside, atol=1e-12)
        error = centre**2 @ (variance / n[there])
        if centering == "mean":
            error = values[~gone].var(ddof=1) / n.sum()
        own = values[gone].var(ddof=1) / gone.sum()
        np.testing.assert_allclose(one["missing_curve_se"], np.sqrt(own + error))
    np.testing.assert_array_equal(found["bin_left"], EDGES[:-1])
    np.testing.assert_array_equal(found["bin_right"], EDGES[1:])
    np.testing.assert_array_equal(found["output_value"], f(X).T)
    assert found.attrs["model_rows"] == N + sum(rows_of_probe(int(X.notna().all(axis=1).sum())))
    assert found.attrs["bin_rule"] == "GivenBins"


def test_features_without_gaps_have_nothing_beside():
    found = rs.m_plot(f, X.assign(c=1.0), features=["a", "b", "c"], missing="bin",
                      bins=rs.QuantileBins(3))  # fmt: skip
    known = found["missing_curve"].notnull()
    assert known.sel(feature="a").all()
    assert not known.sel(feature=["b", "c"]).any()
    assert found["curve"].sel(feature="c").isnull().all()
    assert found["n_grid"].values.tolist() == [3, 3, 0]
    one = rs.m_plot(f, X, features="b", missing="bin", output=1)
    assert "missing_curve" not in one
    assert one["output_value"].dims == ("obs",)
    assert one.sizes["grid"] == N - 1  # by default 40 bins, where there are so many values


def test_bins_of_a_column():
    x = np.array([0.0, 1.0, 2.0, 3.0])
    cell, edges = in_bins(rs.EqualWidthBins(3), "a", x, None)
    np.testing.assert_allclose(edges, [0, 1, 2, 3])
    np.testing.assert_array_equal(cell, [0, 1, 2, 2])
    cell, edges = in_bins(rs.EqualWidthBins(3), "a", np.full(4, 7.0), None)
    assert len(edges) == 0
    assert cell.shape == (4,)


@pytest.mark.parametrize(("frequency", "centering"), in_turn([False, True], CENTERINGS))
def test_shapley_values_of_rows_without_a_value(centering, frequency):
    """The levels of a category have means: their errors, and those beside them, are closed."""
    given = {"weights": COUNTS, "weight_kind": "frequency"} if frequency else {}
    phi = f(X)[:, 0]
    found = rs.shap_dependence(None, X, features="a", shap_values=phi, missing="bin",
                               grid=[0.5, 1.0, 2.0], centering=centering, **given)  # fmt: skip
    times = COUNTS.astype(int) if frequency else np.ones(N, dtype=int)
    gone = X["a"].isna().to_numpy()
    values = np.repeat(phi[gone], times[gone])
    offset = float(found["curve_offset"][0])
    assert found["missing_curve"].item() == pytest.approx(values.mean() - offset)
    own = values.var(ddof=1) / len(values)
    if centering == "none":
        assert offset == 0
        assert found["missing_curve_se"].item() == pytest.approx(np.sqrt(own))
    else:
        assert found["missing_curve_se"].item() > np.sqrt(own)
    if centering == "start":
        plain = rs.shap_dependence(None, X, features="a", shap_values=phi, missing="drop",
                                   grid=[0.5, 1.0, 2.0], centering="none", **given)  # fmt: skip
        error = float(plain["curve_se"][0, 0]) ** 2
        assert found["missing_curve_se"].item() == pytest.approx(np.sqrt(own + error), rel=1e-6)
        assert offset == pytest.approx(float(plain["curve"][0, 0]))
    assert found["n_obs"].item() == times[~gone].sum()
    assert found["n_missing"].item() == times[gone].sum()
    none = rs.shap_dependence(None, X, features="b", shap_values=phi, missing="bin", n_grid=3)
    assert "missing_curve" not in none


@pytest.mark.thorough
def test_facts_of_shapley_values():
    found = rs.shap_dependence(None, X.fillna(1.0), features=["b", "a"], n_grid=4,
                               shap_values=f(X), grid_kind="equal_width")  # fmt: skip
    assert found.attrs["shapley"] == "given"
    assert found.attrs["n_background"] == 0
    assert found.attrs["grid_kind"] == "equal_width"
    assert "seed" not in found.attrs
    # Columns of the values are those of the table, in whatever order features are named.
    np.testing.assert_array_equal(found["shap_value"], f(X).T[::-1])
    assert "shap_value_error" not in found
    assert found.attrs["model_calls"] == found.attrs["model_rows"] == 0
    few = X[5:12]
    line = rs.shap_dependence(lambda X: 2 * X["a"] + X["b"], few, n_grid=3, rng=3, background=7,
                              progress=False)  # fmt: skip
    assert line.attrs["n_background"] == 7
    assert line.attrs["seed"] == 3
    assert line.attrs["model_rows"] > 0
    exact = 2 * few["a"]
    np.testing.assert_allclose(line["shap_value"][0].diff("obs"), np.diff(exact), atol=1e-9)
    given = rs.shap_dependence(lambda X: X["a"] + X["b"], few, n_grid=3, background=few[:5],
                               progress=False)  # fmt: skip
    assert given.attrs["n_background"] == 5
