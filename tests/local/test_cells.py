"""The curve is accumulated from fine cells: by hand, by pandas, by simulation (math [7], [12])."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal

import rhale_stats as rs
from rhale_stats.arrays.cells import CELL_ROWS, MAX_CELLS, MAX_WIDTH, MIN_ROWS
from rhale_stats.arrays.pooled_variance import MIN_OWN_ROWS
from rhale_stats.effects.fit import includes_choice
from rhale_stats.local.rows import cell_edges, difference_edges
from rhale_stats.schema.feature_result import one_feature
from tests.helpers import unpacked

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
    at, edges = row.edges, row.bin_edges
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


@pytest.mark.thorough
@by_rule
def test_cells_nest_in_the_bins(rule):
    x, g = rows()
    effect = rs.rhale(local_of(x, g), bins=rule)
    row = one_feature(effect, 0)
    cells, _ = cells_of(effect, x, g)
    assert np.isin(row.bin_edges, row.edges).all()
    assert (np.diff(row.edges) > 0).all()
    counts = cells["w"].values
    assert counts.sum() == N
    assert counts.min() >= 1
    # A bin has as many as its rows, rounded, and more where these are sparse.
    of_bins = cells["bin"].value_counts(sort=False).sort_index()
    assert (of_bins >= np.maximum(np.rint(row["n_obs"].values / CELL_ROWS), 1)).all()
    low, high = np.quantile(x, [0.01, 0.99])
    wide = cells["width"].values > MAX_WIDTH * (high - low) * 1.02
    assert wide.any()
    assert (counts[wide] < 2 * MIN_ROWS).all()


def test_as_many_cells_as_are_useful():
    for n, expected in ((5, 1), (CELL_ROWS * MAX_CELLS * 2, MAX_CELLS)):
        x = np.random.default_rng(0).uniform(size=(n, 1))
        effect = rs.rhale(local_of(x, x), bins=rs.EqualWidthBins(1))
        assert effect.sizes["edge"] == expected + 1


@pytest.mark.thorough
@by_rule
@pytest.mark.parametrize("weights", [False, True])
def test_estimates_by_pandas(rule, weights):
    x, g = rows()
    w = np.random.default_rng(1).uniform(0.5, 2, N) if weights else None
    options = {} if w is None else {"weights": w}
    effect = rs.std_error(rs.rhale(local_of(x, g, **options), bins=rule, centering="start"))
    row = one_feature(unpacked(effect), 0)
    cells, _ = cells_of(effect, x, g, w)
    assert_allclose(row["cell_effect"][:-1], cells["mean"], rtol=1e-11)
    assert_allclose(row["cell_share"][:-1], cells["w"] / cells["w"].sum(), rtol=1e-12)
    assert_allclose(row["effect"], in_bins(cells, cells["level"] * cells["mean"]), rtol=1e-11)
    assert_allclose(
        row["effect_rows"], in_bins(cells, cells["wg"]) / in_bins(cells, cells["w"]), rtol=1e-11
    )
    ends = np.concatenate([[0], np.cumsum(cells["mean"] * cells["width"])])
    assert_allclose(row["curve"], ends, rtol=1e-11, atol=1e-13)
    # Variances of means, math [6] and [24]; few rows take theirs together with their neighbours.
    n = (cells["w"] ** 2 / cells["w2"]).values
    variance = row["cell_heterogeneity"].values[:-1] ** 2
    own = (cells["squares"] / (cells["w"] - cells["w2"] / cells["w"])).values
    assert_allclose(variance[n >= MIN_OWN_ROWS], own[n >= MIN_OWN_ROWS], rtol=1e-10)
    # Errors by precision weights are sandwiches, which tests/effects/test_errors.py compares.
    noise = (row["cell_robust_variance"].values[:-1] if weights else variance) / n
    expected = np.sqrt(in_bins(cells, cells["level"] ** 2 * noise))
    # The choice of edges adds to it: tests/effects/test_chosen_edges.py.
    assert (row["effect_se"].values >= expected * (1 - 1e-10)).all()
    if not includes_choice(effect):
        assert_allclose(row["effect_se"], expected, rtol=1e-10)
    spread = np.sqrt(np.concatenate([[0], np.cumsum(cells["width"] ** 2 * noise)]))
    assert_allclose(row["curve_se"], spread, rtol=1e-10, atol=1e-13)


@pytest.mark.thorough
@by_rule
@pytest.mark.parametrize("centering", ["mean", "start", "integral"])
def test_effects_times_widths_are_the_curve(rule, centering):
    effect = rs.rhale(local_of(*rows()), bins=rule, centering=centering)
    row = one_feature(effect, 0)
    width = np.diff(row.bin_edges)
    assert_allclose(row["effect"] * width, np.diff(row.at_bins("curve")), rtol=1e-11, atol=1e-13)
    at_rows = rs.predict(effect, rows()[0].ravel(), 0).values
    at = row.edges
    at_cells = rs.predict(effect, at, 0).values
    area = np.sum(np.diff(at) * (at_cells[1:] + at_cells[:-1]) / 2)
    zero = {"mean": at_rows.mean(), "start": row["curve"].values[0], "integral": area}[centering]
    assert zero == pytest.approx(0, abs=1e-12)


@pytest.mark.thorough
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


@pytest.mark.thorough
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
    assert_array_equal(effect["edge_value"], first["edge_value"])
    z = np.linspace(*first["edge_value"].values[0, [0, -1]], 101)
    assert_allclose(rs.predict(effect, z, 0), rs.predict(first, z, 0), rtol=1e-10, atol=1e-12)
    own = local["cell_value"].values
    assert_array_equal(effect["edge_value"], own)


def test_edges_of_slopes_are_values_where_these_are_few_and_repeated():
    """At most 100 of three rows on average, whatever the rule that joins cells."""
    for n, least, rule in ((100, 3, None), (8, 3, rs.OptimalBins(7)), (8, 6, rs.AdaptiveBins(7))):
        x = np.repeat(np.arange(float(n)), least)
        assert_array_equal(difference_edges(rule, "x", x, None), np.arange(float(n)))
        if least == 3:
            assert len(difference_edges(rule, "x", x[1:], None)) < n
    assert_array_equal(difference_edges(None, "x", np.array([3.0, 3, 3, 7, 7, 7]), None), [3, 7])
    for x, most in ((np.repeat(np.arange(101.0), 5), 40), (np.repeat(np.arange(40.0), 2), 8)):
        edges = difference_edges(None, "x", x, None)
        assert len(edges) == most + 1
        counts = np.histogram(x, edges)[0]
        assert counts.max() - counts.min() <= 10
        assert (edges[0], edges[-1]) == (0, x.max())
        assert (np.diff(edges) > 0).all()


def test_edges_of_slopes_are_of_the_rows_with_weight():
    x = np.repeat([0.0, 1.0, 2.0, 50.0], [10, 10, 10, 5])
    weight = np.where(x == 50, 0.0, 3.0)
    assert_array_equal(difference_edges(None, "x", x, weight), [0, 1, 2])
    alone = np.where(x == 1, 2.0, 0.0)
    assert_array_equal(difference_edges(None, "x", x, alone), [1])
    for counted in (False, True):
        equal = difference_edges(rs.EqualWidthBins(4), "x", x, weight, counted=counted)
        assert_allclose(equal, [0, 0.5, 1, 1.5, 2], atol=1e-13)
    # A level with one row of weight 5 has five rows where weights count rows.
    few = np.array([0.0, 1.0, 2.0])
    counts = np.array([5.0, 6.0, 7.0])
    assert_array_equal(difference_edges(None, "x", few, counts, counted=True), few)
    many = np.arange(60.0)
    for counted, n_cells in ((False, 6), (True, 12)):
        weights = np.where(np.arange(60) % 2, 1.0, 3.0)
        edges = difference_edges(None, "x", many, weights, counted=counted)
        assert len(edges) == n_cells + 1
        shares = np.histogram(many, edges, weights=weights)[0] / 120
        assert_allclose(shares, 1 / n_cells, atol=0.04)
    # Equal weights are none.
    plain = difference_edges(None, "x", many, None)
    assert_array_equal(difference_edges(None, "x", many, np.full(60, 0.3)), plain)


def test_edges_of_slopes_by_feature():
    edges = np.array([[0.0, 1.0, 2.0], [np.nan] * 3, [5.0, 7.0, np.nan]])
    local = xr.Dataset(
        {"cell_value": (("cell_edge", "feature"), edges.T)}, {"feature": ["a", "b", "c"]}
    )
    first, none, last = cell_edges(local)
    assert none is None
    assert_array_equal(first, [0, 1, 2])
    assert_array_equal(last, [5, 7])
    assert cell_edges(local.drop_vars("cell_value")) == [None] * 3


@pytest.mark.thorough
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
        "edge_value": 1024.0,
    }.items():
        assert_allclose(shuffled[name], plain[name], rtol=1e-9, atol=1e-12, err_msg=name)
        assert_allclose(other[name], unit * plain[name], rtol=1e-9, atol=1e-9, err_msg=name)


def test_mirror_of_the_axis():
    """100 cells of 15 rows each, from the left as from the right."""
    rng = np.random.default_rng(0)
    x, g = rng.uniform(size=(1500, 1)), rng.normal(size=(1500, 1))
    plain, mirrored = (
        rs.std_error(rs.rhale(local, bins=rs.EqualWidthBins(1)))
        for local in (local_of(x, g), local_of(-x, -g))
    )
    assert plain.sizes["edge"] == 101
    assert_allclose(mirrored["edge_value"], -plain["edge_value"].values[:, ::-1], rtol=1e-12)
    assert_allclose(mirrored["curve"], plain["curve"].values[:, ::-1], rtol=1e-10)
    assert_allclose(mirrored["curve_se"], plain["curve_se"].values[:, ::-1], rtol=1e-10)


def test_a_cell_of_one_row_takes_its_variance_together():
    """18, 13 and one row: of the second cell 12 degrees of freedom, of a difference 2/3."""
    x = np.concatenate([np.linspace(0, 0.9, 31), [0.95]])[:, None]
    g = np.random.default_rng(0).normal(size=(32, 1))
    # Slopes across cells that one row is alone in.
    local = local_of(x, g).assign(cell_value=(("feature", "cell_edge"), [[0, 0.53, 0.93, 0.95]]))
    effect = rs.std_error(rs.rhale(local, bins=rs.GivenBins([0, 0.95])))
    cells, _ = cells_of(effect, x, g)
    assert cells["w"].tolist() == [18, 13, 1]
    apart = 2 / 3 * (cells["mean"][2] - cells["mean"][1]) ** 2 / (1 / 13 + 1)
    together = (cells["squares"][1] + apart) / (12 + 2 / 3)
    own = cells["squares"][:2] / (cells["w"][:2] - 1)
    variance = np.append(own, together)
    assert_allclose(
        unpacked(effect)["cell_heterogeneity"].values[0, :-1] ** 2, variance, rtol=1e-12
    )
    expected = np.sqrt(np.sum(cells["level"] ** 2 * variance / cells["w"]))
    assert effect["effect_se"].values[0, 0] == pytest.approx(expected)


@pytest.mark.thorough
def test_bootstrap_agrees_where_rows_crowd():
    """2000 replicates: a standard deviation errs by 1 / sqrt(4000) = 1.6 %."""
    local = local_of(*rows(1500))
    effect = rs.std_error(rs.rhale(local, bins=rs.GivenBins([0, 0.2, 0.5, 1]), centering="start"))
    boot = rs.bootstrap(local, effect, n_resamples=2000, rng=4)
    for name, among in (("effect", slice(2)), ("curve", slice(1, 3))):
        of_bins = effect.rhale.in_bins()[f"{name}_se"].rename(
            {"edge": "bin_edge"} if name == "curve" else {}
        )
        ratio = boot[name].std(("chain", "draw"), ddof=1) / of_bins
        # Cells of 15 rows: 1 / 15 of a variance for what their numbers of rows vary, at most. In
        # the last bin they have so few that either way has another estimate of the variance.
        assert_allclose(ratio[0, among], 1, atol=0.035 + 4 * 0.016, err_msg=name)


def test_a_gap_inside_a_bin():
    """The curve is that of the heavier side, and the effect that of the part with rows."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(0, 1, 400), rng.uniform(3, 4, 100)])[:, None]
    g = 2 * x + rng.normal(size=x.shape)
    with pytest.warns(UserWarning, match=r"Gaps without rows: 'x0' \(from 0\.99.* to 3\.0"):
        effect = rs.rhale(local_of(x, g), bins=rs.GivenBins([0, 0.5, 4]), centering="start")
    cells, _ = cells_of(effect, x, g)
    empty = cells["w"] == 0
    assert empty.sum() == 1
    assert cells["width"][empty].item() > 1.9
    second = cells[(cells["bin"] == 1) & ~empty]
    expected = np.average(second["mean"], weights=second["width"])
    assert effect["effect"].values[0, 1] == pytest.approx(expected)
    first = cells[cells["bin"] == 0]
    rise = np.sum(first["mean"] * first["width"])
    at_bins = effect.rhale.in_bins()["curve"].values[0]
    assert_allclose(at_bins, [0, rise, np.nan], rtol=1e-12)
    before = effect["edge_value"].values[0, cells.index[empty][0]]
    assert np.isfinite(rs.predict(effect, [0.1, before], 0)).all()
    assert np.isnan(rs.predict(effect, [2.0, 3.5], 0)).all()


@pytest.mark.parametrize("kind", [None, "precision", "frequency"])
def test_correlation_of_average_and_slope_by_pandas(kind):
    x, g = rows(3000)
    g = g + 20 * np.abs(x - 0.4)  # two lines
    weight = None
    if kind is not None:
        weight = np.random.default_rng(1).integers(1, 4, len(x)).astype(float)
    options = {} if kind is None else {"weights": weight, "weight_kind": kind}
    effect = rs.rhale(local_of(x, g, **options))
    row = one_feature(effect, 0)
    assert (row["slope"].values != 0).sum() > 1
    cells, cell = cells_of(effect, x, g, weight)
    w = np.ones(len(x)) if weight is None else weight
    frame = pd.DataFrame({"x": x[:, 0], "g": g[:, 0], "w": w, "bin": cells["bin"].values[cell]})
    frame["factor"] = (cells["level"] / cells["w"]).values[cell]
    for k, own in frame.groupby("bin"):
        d = own["x"] - np.average(own["x"], weights=own["w"])
        r = own["g"] - np.average(own["g"], weights=own["w"]) - row["slope"].values[k] * d
        squared = own["w"] if kind == "frequency" else own["w"] ** 2
        tilt = (squared * d**2 * r**2).sum()
        level = (squared * own["factor"] ** 2 * r**2).sum()
        expected = (squared * own["factor"] * d * r**2).sum() / np.sqrt(level * tilt)
        expected *= row["slope"].values[k] != 0
        assert_allclose(row.effect_slope_correlation[k], expected, rtol=0, atol=1e-11)
