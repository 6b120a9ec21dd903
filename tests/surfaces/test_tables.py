"""Printed surfaces: t and P where the standard errors hold the parameters of a model."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from scipy import stats

import rhale_stats as rs
from rhale_stats.surfaces.inference import rounding


@pytest.fixture(scope="module", name="surfaces")
def _surfaces():
    rng = np.random.default_rng(9)
    X = pd.DataFrame(rng.uniform(-1, 1, (200, 2)), columns=["a", "b"])
    y = rng.poisson(np.exp(X["a"] + X["a"] * X["b"]))
    model = smf.poisson("y ~ a * b", X.assign(y=y)).fit(disp=0)
    surface = rs.ale2(model, X, ("a", "b"), bins=rs.EqualWidthBins(2))
    return rs.std_error(surface), rs.std_error(surface, model=model, X=X)


def test_corners_are_tested_with_the_model_only(surfaces):
    rows, both = surfaces
    for text in (rs.summary(rows).as_text(), repr(rs.show(rows))):
        assert "model as given" in text
        assert " P " not in text
    text = rs.summary(both).as_text()
    assert "model as given" not in text
    assert "treat the cells as fixed" in text
    t = both["surface"] / both["surface_se"]
    p = 2 * stats.t.sf(np.abs(t), both["surface_df"])
    lines = [line.split() for line in text.splitlines() if line.startswith("a = ")]
    # "a = -0.9884, b = 0.02 estimate ..."
    printed = np.array([[float(one) for one in line[6:]] for line in lines])
    order = np.argsort(t.values.ravel())
    np.testing.assert_allclose(sorted(printed[:, 2]), t.values.ravel()[order], rtol=1e-3, atol=6e-4)
    np.testing.assert_allclose(printed[np.argsort(printed[:, 2]), 3], p.ravel()[order], atol=6e-4)
    assert "rows and parameters" in repr(rs.show(both))


# --- every column and every word ------------------------------------------------------------------


def cells(line):
    """Words of a line that stand two spaces or more apart."""
    return [word.strip() for word in line.split("  ") if word.strip()]


@pytest.fixture(name="grid")
def _grid():
    """Two features in 3 by 2 cells; one cell has one row, one has none."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.uniform(-1, 1, (40, 3)), columns=["a", "b", "c"])
    X = X[~((X["a"] > 0.2) & (X["b"] > 0))].reset_index(drop=True)
    X.loc[len(X)] = [-0.9, 0.5, 0.1]
    X = X[~((X["a"] < -0.5) & (X["b"] > 0)) | (X.index == len(X) - 1)]
    X["k"] = np.where(X["c"] > 0, "v", "u")
    bins = (rs.GivenBins([-1.0, -0.5, 0.2, 1.0]), rs.GivenBins([-1.0, 0.0, 1.0]))
    return X, rs.ale2(lambda X: X["a"] * X["b"] * (1 + X["c"]) ** 2, X, ("a", "b"), bins=bins)


@pytest.mark.parametrize("level", [0.95, 0.8])
def test_a_line_for_every_cell_with_rows(grid, level):
    X, surface = grid
    a = np.searchsorted([-0.5, 0.2], X["a"], side="right")
    b = np.searchsorted([0.0], X["b"], side="right")
    edges = np.array([-1.0, -0.5, 0.2, 1.0]), np.array([-1.0, 0.0, 1.0])
    width = np.diff(edges[0])[a] * np.diff(edges[1])[b]
    delta = pd.Series(width * (1 + X["c"].to_numpy()) ** 2)
    groups = delta.groupby([a, b])
    at = np.array(list(groups.groups))
    n, mean, sd = (one.to_numpy() for one in (groups.size(), groups.mean(), groups.std()))
    assert len(at) == 5
    assert 1 in n
    table = rs.tidy(surface, level=level)
    names = [
        "term",
        "bin_a",
        "bin_b",
        *(f"bin_{end}_{s}" for s in "ab" for end in ("left", "right")),
    ]
    assert table.columns.tolist() == [
        *names,
        *("n_obs", "estimate", "std_error", "conf_low", "conf_high", "heterogeneity"),
    ]
    assert (table["term"] == "a:b").all()
    np.testing.assert_array_equal(table[["bin_a", "bin_b"]], at)
    for number, side in enumerate("ab"):
        np.testing.assert_array_equal(table[f"bin_left_{side}"], edges[number][at[:, number]])
        np.testing.assert_array_equal(table[f"bin_right_{side}"], edges[number][at[:, number] + 1])
    np.testing.assert_array_equal(table["n_obs"], n)
    np.testing.assert_allclose(table["estimate"], mean)
    np.testing.assert_allclose(table["std_error"], sd / np.sqrt(n))
    np.testing.assert_allclose(table["heterogeneity"], sd)
    assert table["conf_low"].isna().tolist() == (n == 1).tolist()
    known = rs.confint(surface, level=level)["second_effect_ci"].values[at[:, 0], at[:, 1]]
    np.testing.assert_allclose(table[["conf_low", "conf_high"]], known)
    # Wider at a higher level, on both sides of the estimate.
    assert (table["conf_low"] < table["estimate"])[n > 1].all()


def test_summary_line_by_line(grid):
    _, surface = grid
    found = rs.confint(surface, level=0.9)
    printed = rs.summary(surface, level=0.9)
    head, body = (one.as_text().splitlines() for one in printed.tables)
    assert head[0].strip() == "Second-order ALE: a and b on output"
    words = [word for line in head[1:] for word in cells(line) if not set(line) <= {"=", "-"}]
    facts = dict(zip(words[::2], words[1::2], strict=True))
    size = rs.glance(surface)["size"].item()
    n_rows = surface.attrs["n_rows"]
    assert facts == {
        "Rows:": str(n_rows),
        "Cells:": "6",
        "Weights:": "none",
        "without rows:": "1",
        "Centring:": "ale",
        "Spread over rows:": f"{size:.4g}",
        "Uncertainty:": "rows (model as given)",
    }
    # Four columns of facts, three gaps of three: no wider than needed.
    assert len(head[0]) == 12 + 21 + 17 + len(f"{size:.4g}") + 9
    lines = [cells(line) for line in body if not set(line) <= {"=", "-"}]
    assert lines[0] == ["surface", "std err", "[0.05", "0.95]"]
    values = found["surface"].values
    order = np.argsort(-np.abs(np.nan_to_num(values)).ravel(), kind="stable")[:10]
    places = sorted(zip(*np.unravel_index(order, values.shape), strict=True))
    places = [at for at in places if not np.isnan(values[at])]
    edges = [-1.0, -0.5, 0.2, 1.0], [-1.0, 0.0, 1.0]
    assert lines[1:] == [
        [
            f"a = {edges[0][j]:.4g}, b = {edges[1][k]:.4g}",
            f"{values[j, k]:.4g}",
            f"{found['surface_se'].values[j, k]:.4g}",
            *(f"{one:.4g}" for one in found["surface_ci"].values[j, k]),
        ]
        for j, k in places
    ]
    method = found["surface_ci"].attrs["method"].removeprefix("standard errors, ")
    assert printed.notes == [
        "1 of 6 cells (17 %) have no rows. There the surface takes the second difference of the "
        "nearest cell.",
        "1 cells have one row. Their variance is taken from the other cells.",
        f"Standard errors treat the model and the cells as fixed. Intervals: pointwise, {method}.",
        f"The table has the {len(places)} corners of cells where the surface is farthest from 0.",
        "Spread over rows: the standard deviation of the surface, in units of the output.",
        f"Bins of a: {surface.attrs['bins_a']}. Bins of b: {surface.attrs['bins_b']}.",
    ]


def test_a_surface_without_empty_cells(grid):
    full = rs.ale2(lambda X: X["a"] * X["b"], grid[0], ("a", "b"), bins=rs.QuantileBins(2))
    assert full.attrs["n_empty"] == 0
    assert "have no rows" not in rs.summary(full).as_text()


def test_one_line_for_a_surface(grid):
    X, surface = grid
    found = rs.std_error(surface)
    values, se = found["surface"].values, found["surface_se"].values
    line = rs.glance(surface)
    at_rows = rs.predict(surface, X)
    assert line.iloc[0].to_dict() == {
        "term": "a:b",
        "feature_a": "a",
        "feature_b": "b",
        "n_obs": len(X),
        "n_cells": 6,
        "n_empty": 1,
        "size": pytest.approx(float(at_rows.std())),
        "surface_max": np.nanmax(np.abs(values)),
        "z_max": pytest.approx(np.nanmax(np.abs(values[se > 0]) / se[se > 0])),
    }


def test_lines_of_levels_and_their_neighbours(grid):
    X = grid[0].assign(m=np.resize(["x", "y", "z"], len(grid[0])))
    found = rs.ale2(lambda X: X["c"] * (X["k"] == "u") * (X["m"] == "y"), X, ("k", "m"))
    table = rs.tidy(found)
    names = ["level_a", "level_a_next", "level_b", "level_b_next"]
    assert table.columns.tolist()[3:7] == names
    assert table[names].values.tolist() == [["u", "v", "x", "y"], ["u", "v", "y", "z"]]
    assert rs.summary(found).tables[1].as_text().count("k = u, m = ") == 3


def test_what_is_0_up_to_rounding_has_no_statistic(grid):
    found = rs.std_error(grid[1])
    # Of both signs, whose p-values are those of their size.
    found["second_effect"][0] *= -1
    least = rounding(found)
    known = np.isfinite(found["second_effect_se"].values)
    for part in (1.0, 1.01, 1e13):
        held = found.copy(deep=True)
        for name in ("second_effect_se", "surface_se"):
            held[name][:] = np.where(found[name].isnull(), np.nan, part * least)
            held[name].attrs["source"] = "refits"
        table = rs.tidy(held)
        t = held["second_effect"].values / held["second_effect_se"].values
        there = found["n_obs"].values > 0
        expected = np.where(known & (part > 1), t, np.nan)[there]
        np.testing.assert_allclose(table["statistic"], expected)
        degrees = found["n_obs"].values[there] - 1
        p = 2 * stats.t.sf(np.abs(expected), np.maximum(degrees, 0))
        np.testing.assert_allclose(table["p_value"], p)
        lines = rs.summary(held).tables[1]
        assert lines.heads[:4] == ["surface", "std err", "t", "P"]
        assert all(
            (line[2:4] == ["", ""]) == (part == 1) for line in lines.lines if line[1] != "nan"
        )
    assert (table["statistic"] < 0).any()
    assert table["p_value"].min() > 1e-6


@pytest.mark.parametrize("long", [1, 7])
def test_facts_are_as_wide_as_the_lines(grid, long):
    X, _ = grid
    names = {"a": "a" * 4 * long, "b": "b" * long}
    found = rs.ale2(lambda X: X.iloc[:, 0] * X.iloc[:, 1], X.rename(columns=names),
                    tuple(names.values()), bins=rs.QuantileBins(2))  # fmt: skip
    head, body = (one.as_text().splitlines() for one in rs.summary(found).tables)
    assert len(set(map(len, [*head, *body]))) == 1
