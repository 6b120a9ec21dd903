"""The curve is accumulated from fine cells: by hand, by pandas, by simulation (math [7], [12])."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose, assert_array_equal

import rhale_stats as rs
from rhale_stats.arrays.cells import CELL_ROWS, MOST_CELLS
from rhale_stats.schema import one_feature

N = 600
RULES = [
    rs.EqualWidthBins(1),
    rs.EqualWidthBins(7),
    rs.QuantileBins(4),
    rs.AdaptiveBins(),
    rs.OptimalBins(),
    rs.GreedyBins(),
    rs.BestEqualWidthBins(20),
]
by_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{type(rule).__name__}")


def rows(n=N, seed=0):
    """Rows that crowd on the left; effects 6 x with noise that grows."""
    rng = np.random.default_rng(seed)
    x = rng.beta(0.7, 2, (n, 1))
    return x, 6 * x + (1 + x) * rng.standard_gamma(2, (n, 1))


def local_of(x, g, **options):
    return rs.local_effects(None, x, jacobian=g, features=0, **options)


def cells_of(effect, x, g, weight=None):
    """The cells as a table, by pandas: width, bin, share in the bin, n, mean, sum of squares."""
    row = one_feature(effect, 0)
    at, edges = row["cell_value"].values, row["edge_value"].values
    cell = np.clip(np.searchsorted(at, x.ravel(), side="right") - 1, 0, len(at) - 2)
    w = np.ones(len(x)) if weight is None else weight
    table = pd.DataFrame({"cell": cell, "w": w, "wg": w * g.ravel(), "w2": w**2})
    table = table.groupby("cell").sum().reindex(range(len(at) - 1), fill_value=0)
    table["mean"] = table["wg"] / table["w"]
    squares = w * (g.ravel() - table["mean"].values[cell]) ** 2
    table["squares"] = np.bincount(cell, squares, len(table))
    table["width"] = np.diff(at)
    table["bin"] = np.searchsorted(edges[1:-1], at[:-1], side="right")
    table["level"] = table["width"] / table.groupby("bin")["width"].transform("sum")
    return table, cell


def in_bins(cells, values):
    return values.groupby(cells["bin"]).sum().values


@by_rule
def test_cells_nest_in_the_bins(rule):
    x, g = rows()
    effect = rs.rhale(local_of(x, g), bins=rule)
    row = one_feature(effect, 0)
    cells, _ = cells_of(effect, x, g)
    assert np.isin(row["edge_value"].values, row["cell_value"].values).all()
    assert (np.diff(row["cell_value"].values) > 0).all()
    counts = cells["w"].values
    assert counts.sum() == N
    assert counts.min() >= 1
    # A bin holds as many as its rows, rounded, and at least one.
    expected = [max(np.rint(n / CELL_ROWS), 1) for n in row["n_obs"].values]
    assert_array_equal(cells["bin"].value_counts(sort=False).sort_index(), expected)
    several = cells.groupby("bin")["w"]
    assert ((several.max() - several.min()) <= 1).all()


def test_as_many_cells_as_are_useful():
    for n, expected in ((10, 1), (30, 2), (CELL_ROWS * MOST_CELLS * 2, MOST_CELLS)):
        x = np.random.default_rng(0).uniform(size=(n, 1))
        effect = rs.rhale(local_of(x, x), bins=rs.EqualWidthBins(1))
        assert effect.sizes["cell"] == expected


@by_rule
@pytest.mark.parametrize("weights", [False, True])
def test_estimates_by_pandas(rule, weights):
    x, g = rows()
    w = np.random.default_rng(1).uniform(0.5, 2, N) if weights else None
    options = {} if w is None else {"weights": w}
    effect = rs.std_error(rs.rhale(local_of(x, g, **options), bins=rule, centering="start"))
    row = one_feature(effect, 0)
    cells, _ = cells_of(effect, x, g, w)
    assert_allclose(row["cell_effect"], cells["mean"], rtol=1e-11)
    assert_allclose(row["cell_share"], cells["w"] / cells["w"].sum(), rtol=1e-12)
    assert_allclose(row["effect"], in_bins(cells, cells["level"] * cells["mean"]), rtol=1e-11)
    assert_allclose(
        row["effect_rows"], in_bins(cells, cells["wg"]) / in_bins(cells, cells["w"]), rtol=1e-11
    )
    ends = np.concatenate([[0], np.cumsum(cells["mean"] * cells["width"])])
    at = np.searchsorted(row["cell_value"].values, row["edge_value"].values)
    assert_allclose(row["curve"], ends[at], rtol=1e-11, atol=1e-13)
    # Variances of means, math [6] and [24]; every cell has rows enough here.
    n = cells["w"] ** 2 / cells["w2"]
    assert n.min() > 2
    variance = cells["squares"] / (cells["w"] - cells["w2"] / cells["w"])
    noise = variance / n
    assert_allclose(row["cell_heterogeneity"] ** 2, variance, rtol=1e-10)
    expected = np.sqrt(in_bins(cells, cells["level"] ** 2 * noise))
    assert_allclose(row["effect_se"], expected, rtol=1e-10)
    spread = np.sqrt(np.concatenate([[0], np.cumsum(cells["width"] ** 2 * noise)]))
    assert_allclose(row["curve_se"], spread[at], rtol=1e-10, atol=1e-13)


@by_rule
@pytest.mark.parametrize("centering", ["mean", "start", "integral"])
def test_effects_times_widths_are_the_curve(rule, centering):
    effect = rs.rhale(local_of(*rows()), bins=rule, centering=centering)
    row = one_feature(effect, 0)
    width = np.diff(row["edge_value"].values)
    assert_allclose(row["effect"] * width, np.diff(row["curve"]), rtol=1e-11, atol=1e-13)
    at_rows = rs.predict(effect, rows()[0].ravel(), 0).values
    fine = rs.predict(effect, np.linspace(*row["edge_value"].values[[0, -1]], 200_001), 0).values
    start = row["curve"].values[0]
    assert {"mean": at_rows.mean(), "start": start, "integral": fine.mean()}[
        centering
    ] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("weighting", ["axis", "rows"])
def test_the_curve_does_not_depend_on_the_bins(weighting):
    """By derivatives cells move with the edges of bins, by less than a cell."""
    x, g = rows(3000)
    local = local_of(x, g)
    z = np.linspace(*np.quantile(x, [0, 0.99]), 50)
    effects = [
        rs.std_error(rs.rhale(local, bins=rule, centering="start", weighting=weighting))
        for rule in RULES
    ]
    curves = np.array([rs.predict(effect, z, 0).values for effect in effects])
    noise = rs.rhale(local, bins=RULES[0], centering="start")
    error = rs.std_error(noise)["curve_se"].values[0, -1]
    apart = np.ptp(curves, axis=0).max()
    assert (apart < 0.2 * error) == (weighting == "axis")


@by_rule
def test_slopes_across_cells_have_one_curve(rule):
    """Whatever the bins, to the last digits: bins are unions of these cells."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 2))

    def model(X):
        return np.floor(3 * X[:, 0]) * X[:, 1] + X[:, 0]

    local = rs.local_effects(model, X, features=0, method="finite_difference")
    first = rs.rhale(local, bins=rs.EqualWidthBins(1))
    effect = rs.rhale(local, bins=rule)
    assert_array_equal(effect["cell_value"], first["cell_value"])
    z = np.linspace(*first["edge_value"].values[0], 101)
    assert_allclose(
        rs.predict(effect, z, 0), rs.predict(first, z, 0), rtol=1e-10, atol=1e-12
    )
    own = local["cell_value"].values
    assert_array_equal(effect["cell_value"], own)


@by_rule
def test_frequencies_are_repeated_rows(rule):
    x, g = rows(300)
    times = np.random.default_rng(2).integers(1, 4, 300)
    again = np.repeat(np.arange(300), times)
    edges = rs.rhale(local_of(x[again], g[again]), bins=rule)["edge_value"].values[0]
    found, expected = (
        rs.std_error(rs.rhale(local, bins=rs.GivenBins(edges)))
        for local in (
            local_of(x, g, weights=times, weight_kind="frequency"),
            local_of(x[again], g[again]),
        )
    )
    assert_allclose(found["cell_value"], expected["cell_value"], rtol=1e-12)
    for name in ("effect", "effect_se", "curve", "curve_se", "cell_effect", "cell_heterogeneity"):
        assert_allclose(found[name], expected[name], rtol=1e-9, atol=1e-12, err_msg=name)


@by_rule
def test_order_and_units_do_not_matter(rule):
    x, g = rows()
    order = np.random.default_rng(3).permutation(N)
    plain = rs.std_error(rs.rhale(local_of(x, g), bins=rule))
    shuffled = rs.std_error(rs.rhale(local_of(x[order], g[order]), bins=rule))
    # Powers of two change no digit.
    other = rs.std_error(rs.rhale(local_of(1024 * x, -8 * g), bins=rule))
    for name, unit in {
        "effect": -8.0,
        "effect_se": 8.0,
        "curve": -8 * 1024.0,
        "curve_se": 8 * 1024.0,
        "cell_value": 1024.0,
        "cell_effect": -8.0,
    }.items():
        assert_allclose(shuffled[name], plain[name], rtol=1e-9, atol=1e-12, err_msg=name)
        assert_allclose(other[name], unit * plain[name], rtol=1e-9, atol=1e-9, err_msg=name)


def test_mirror_of_the_axis():
    """20 cells of 15 rows each, from the left as from the right."""
    x, g = rows(300)
    plain, mirrored = (
        rs.std_error(rs.rhale(local, bins=rs.EqualWidthBins(1)))
        for local in (local_of(x, g), local_of(-x, -g))
    )
    assert plain.sizes["cell"] == 20
    assert_allclose(mirrored["cell_value"], -plain["cell_value"].values[:, ::-1], rtol=1e-12)
    assert_allclose(mirrored["curve"], plain["curve"].values[:, ::-1], rtol=1e-10)
    assert_allclose(mirrored["curve_se"], plain["curve_se"].values[:, ::-1], rtol=1e-10)


def test_a_cell_of_one_row_has_the_variance_of_its_bin():
    """Edges of 31 rows and of one: the single row is as noisy as the others of its bin."""
    x = np.concatenate([np.linspace(0, 0.9, 31), [0.95]])[:, None]
    g = np.random.default_rng(0).normal(size=(32, 1))
    local = local_of(x, g)
    effect = rs.std_error(rs.rhale(local, bins=rs.GivenBins([0, 0.93, 1])))
    assert np.isnan(effect["effect_se"].values[0, 1])  # a bin of one row has no noise known
    # Slopes across cells that one row is alone in.
    many = local.assign(cell_value=(("feature", "cell_edge"), [[0, 0.5, 0.93, 0.95]]))
    effect = rs.std_error(rs.rhale(many, bins=rs.GivenBins([0, 0.95])))
    cells, _ = cells_of(effect, x, g)
    assert cells["w"].tolist() == [18, 13, 1]
    pooled = cells["squares"].sum() / (17 + 12)
    assert effect["cell_heterogeneity"].values[0, 2] == pytest.approx(np.sqrt(pooled))
    own = cells["squares"] / (cells["w"] - 1)
    noise = np.append(own[:2] / cells["w"][:2], pooled)
    expected = np.sqrt(np.sum(cells["level"] ** 2 * noise))
    assert effect["effect_se"].values[0, 0] == pytest.approx(expected)


@by_rule
def test_groups_are_those_of_statsmodels(rule):
    """Cells as dummies: an effect is a contrast of their means."""
    x, g = rows()
    group = np.random.default_rng(4).integers(0, 40, N)
    effect = rs.std_error(local_effect := rs.rhale(local_of(x, g), bins=rule), local_of(x, g),
                          groups=group)
    cells, cell = cells_of(local_effect, x, g)
    design = (cell[:, None] == np.arange(len(cells))).astype(float)
    fit = sm.OLS(g.ravel(), design).fit(
        cov_type="cluster", cov_kwds={"groups": group, "use_correction": False}
    )
    loading = np.where(
        cells["bin"].values == np.arange(effect.sizes["bin"])[:, None], cells["level"].values, 0.0
    )
    expected = np.sqrt(np.diag(loading @ fit.cov_params() @ loading.T))
    ratio = effect["effect_se"].values[0] / expected
    # One factor for small samples, near sqrt(G / (G - 1)).
    assert_allclose(ratio, ratio[0], rtol=1e-9)
    assert 1 <= ratio[0] < 1.05


def test_bootstrap_agrees_where_rows_crowd():
    """2000 replicates: a standard deviation errs by 1 / sqrt(4000) = 1.6 %."""
    local = local_of(*rows(1500))
    effect = rs.std_error(rs.rhale(local, bins=rs.EqualWidthBins(3), centering="mean"))
    boot = rs.bootstrap(local, effect, n_resamples=2000, rng=4)
    for name in ("effect", "curve"):
        ratio = boot[name].std(("chain", "draw"), ddof=1) / effect[f"{name}_se"]
        # Cells of 15 rows: 1 / 15 of a variance for what their numbers of rows vary, at most.
        assert_allclose(ratio, 1, atol=0.035 + 4 * 0.016, err_msg=name)


def test_the_curve_by_rows_is_biased_where_rows_crowd_and_by_cells_not():
    """mu(z) = 6 z in one bin: the curve ends at 3, and by rows at 6 times the mean of x."""
    ends = {"axis": [], "rows": []}
    for seed in range(40):
        x, g = rows(400, seed)
        local = local_of(x, g - 2 * (1 + x))  # less the mean of the noise
        low, high = x.min(), x.max()
        for weighting, found in ends.items():
            effect = rs.rhale(
                local, bins=rs.EqualWidthBins(1), centering="start", weighting=weighting
            )
            found.append(effect["curve"].values[0, -1] - 3 * (high**2 - low**2))
    error = np.std(ends["axis"], ddof=1) / np.sqrt(40)
    assert abs(np.mean(ends["axis"])) < 3.5 * error
    assert np.mean(ends["rows"]) < -1


@pytest.mark.parametrize("centering", ["mean", "start", "integral"])
def test_a_gap_inside_a_bin(centering):
    """The curve is that of the heavier side alone, and the effect that of the part with rows."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(0, 1, 400), rng.uniform(3, 4, 100)])[:, None]
    g = 2 * x + rng.normal(size=x.shape)
    local, heavier = local_of(x, g), local_of(x[:400], g[:400])
    with pytest.warns(UserWarning, match=r"No rows inside a bin: 'x0' \(from 0\.99.* to 3\.0"):
        effect = rs.rhale(local, bins=rs.GivenBins([0, 0.5, 4]), centering=centering)
    cells, _ = cells_of(effect, x, g)
    empty = cells["w"] == 0
    assert empty.sum() == 1
    assert cells["width"][empty].item() > 1.9
    second = cells[(cells["bin"] == 1) & ~empty]
    expected = np.average(second["mean"], weights=second["width"])
    assert effect["effect"].values[0, 1] == pytest.approx(expected)
    assert np.isnan(effect["curve"].values[0, 2])
    last = cells.index[empty][0]
    end = effect["cell_value"].values[0, last]
    alone = rs.rhale(heavier, bins=rs.GivenBins([0, 0.5, end]), centering=centering)
    assert rs.predict(effect, 0.4, 0).item() == pytest.approx(rs.predict(alone, 0.4, 0).item())
    assert np.isnan(rs.predict(effect, [2.0, 3.5], 0)).all()
