"""What is drawn is what the Dataset says: artists' data, labels, limits, and bad input."""

from __future__ import annotations

import warnings
from itertools import pairwise

import arviz
import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
import xarray as xr
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.patches import StepPatch
from scipy import stats

import rhale_stats as rs
from rhale_stats.drawing import bins as plots_bins
from rhale_stats.drawing import curve as plots_curve
from rhale_stats.drawing import frame
from rhale_stats.drawing import frame as plots_marks
from rhale_stats.drawing import rows as plots_rows
from rhale_stats.drawing.bins import plot_bias, plot_bins, plot_edges
from rhale_stats.drawing.effects import plot_effect, plot_effects
from rhale_stats.drawing.estimates import plot_compare, plot_forest
from rhale_stats.local.rows import estimation_rows
from rhale_stats.schema.feature_result import one_feature
from tests.helpers import labelled, without_spread


def model(table):
    return 3 * np.sin(6 * table["x0"]) + 2 * table["x0"] * table["x1"] + table["x2"]


def frozen(dataset):
    """Read-only: what is shared by the tests of this file stays as it is."""
    for variable in dataset.variables.values():
        variable.values.flags.writeable = False
    return dataset


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(20231)
    frame = pd.DataFrame(rng.uniform(0, 1, (300, 3)), columns=["x0", "x1", "x2"])
    frame["flat"] = 7.0
    frame.attrs = {
        "units": {"x0": "mg", "flat": "km"},
        "output_name": "pressure",
        "output_units": "mmHg",
    }
    return frame


@pytest.fixture(scope="module")
def local(table):
    return frozen(rs.local_effects(model, table, features=["x0", "x1", "x2", "flat"]))


@pytest.fixture(scope="module")
def effect(local):
    """Means over rows: the curve is straight in a bin. Without spread in bins of its own."""
    return frozen(without_spread(rs.rhale(local, bins=rs.EqualWidthBins(6), weighting="rows")))


def given(x, local_effect, edges, weight=None, kind="precision", centering="mean"):
    """Local effects of one feature as they are given, and their effect in given bins."""
    x = np.asarray(x, dtype=float)
    local = rs.local_effects(
        None,
        x[:, None],
        jacobian=np.asarray(local_effect, dtype=float)[:, None],
        features=0,
        weights=weight,
        weight_kind=kind,
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Bins without rows")
        warnings.filterwarnings("ignore", "Gaps without rows")
        rule = rs.GivenBins(edges)
        effect = rs.rhale(local, bins=rule, centering=centering, weighting="rows")
        return local, without_spread(effect)


def dashed(ax):
    return [line for line in ax.lines if line.get_linestyle() == "--"]


def outlines(ax):
    """Vertices of the plots_rows."""
    return [path.vertices for path in labelled(ax, "local effects").get_paths()]


def rug_of(local, effect):
    """The rug of one feature, as pictures of regions have it."""
    row, panel = one_feature(effect, 0), plt.figure().add_subplot()
    rows = plots_rows.rows_of(local, row)
    plots_rows.draw_rug(panel, rows, row["edge_value"].values)
    return rug(panel)


def rug(ax):
    (artist,) = [collection for collection in ax.collections if collection.get_gid() == "rug"]
    return artist


def bars(container):
    """Lower and upper ends of error bars, (bar, end), and where they stand."""
    (collection,) = container.lines[2]
    segments = np.array([segment for segment in collection.get_segments() if len(segment)])
    return segments[:, 0, 0], segments[:, :, 1]


def areas(collection):
    """Bins of intervals, (bin, end), and their lower and upper ends in the middle, (bin, end)."""
    n = plots_curve.POINTS_OF_AREA
    outlines = np.array([path.vertices[: 2 * n] for path in collection.get_paths()])
    return outlines[:, [0, n - 1], 0], outlines[:, [n // 2, n + n // 2], 1]


# ---------------------------------------------------------------------------------- upper panel


@pytest.mark.thorough
def test_curve_is_drawn_through_its_edges(effect):
    upper, *_ = plot_effect(effect, "x0")
    row = effect.sel(feature="x0")
    line = labelled(upper, plots_marks.CURVE)
    np.testing.assert_array_equal(line.get_xdata(), row["edge_value"])
    np.testing.assert_array_equal(line.get_ydata(), row["curve"])


@pytest.mark.thorough
def test_curve_of_averages_along_the_axis_is_drawn_through_its_cells(local):
    effect = rs.rhale(local, bins=rs.EqualWidthBins(3))
    upper, *_ = plot_effect(effect, "x0")
    row = effect.sel(feature="x0")
    x, curve = labelled(upper, plots_marks.CURVE).get_data()
    np.testing.assert_allclose(curve, rs.predict(effect, x, "x0"), rtol=1e-12, atol=1e-12)
    assert set(row["edge_value"].values) <= set(x)
    assert len(x) > 4
    at_edges = np.isin(x, row["edge_value"].values)
    known = rs.confint(effect)["curve_ci"].sel(feature="x0")
    drawn = np.array([line.get_ydata() for line in dashed(upper)])
    np.testing.assert_allclose(drawn[:, at_edges], known.T, rtol=1e-9)


@pytest.mark.thorough
def test_band_is_plus_and_minus_the_comonotone_spread(effect):
    assert plots_marks.BAND not in plot_effect(effect, "x0")[0].get_legend_handles_labels()[1]
    upper, *_ = plot_effect(effect, "x0", style="paper")
    row = effect.rhale.in_bins().sel(feature="x0")
    (path,) = labelled(upper, plots_marks.BAND).get_paths()
    drawn = {tuple(vertex) for vertex in path.vertices}
    for sign in (-1, 1):
        bound = row["curve"] + sign * row["curve_std_sum"]
        assert set(zip(row["edge_value"].values, bound.values, strict=True)) <= drawn


@pytest.mark.thorough
def test_pictures_and_tables_show_the_same_intervals_in_small_bins():
    """code.md B6: four rows a bin, where 1.96 standard errors are half of Student's t."""
    rng = np.random.default_rng(0)
    x, g = np.linspace(0, 1, 24), rng.normal(0, 3, 24)
    _, effect = given(x, g, np.linspace(0, 1, 7))
    upper, lower, *_ = plot_effect(effect, 0)
    table = rs.tidy(effect)
    _, ends = areas(labelled(lower, "95 %"))
    np.testing.assert_allclose(ends, table[["conf_low", "conf_high"]], rtol=1e-12)
    known = rs.confint(effect)
    drawn = [line.get_ydata() for line in dashed(upper)]
    np.testing.assert_allclose(drawn, known["curve_ci"][0].T, rtol=1e-9)
    half = np.diff(known["curve_ci"][0])[:, 0] / 2
    assert (half > 2 * known["curve_se"].values[0]).all()
    line = rs.glance(effect).iloc[0]
    panel = plot_forest(effect)
    spans = TestForest().spans(panel)
    np.testing.assert_allclose(spans, [[line["conf_low"], line["conf_high"]]], rtol=1e-12)


@pytest.mark.thorough
def test_missing_standard_errors_are_added(effect):
    upper, lower, *_ = plot_effect(effect, "x0")
    again, below, *_ = plot_effect(rs.std_error(effect), "x0")
    for mine, theirs in zip(dashed(upper), dashed(again), strict=True):
        np.testing.assert_array_equal(mine.get_ydata(), theirs.get_ydata())
    np.testing.assert_array_equal(
        areas(labelled(lower, "95 %"))[1], areas(labelled(below, "95 %"))[1]
    )


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("centering", "target"),
    [
        ("mean", ""),
        ("start", ": zero-start curve"),
        ("integral", ": curve centred at its mean over the axis"),
    ],
)
def test_interval_names_its_target(local, centering, target):
    upper, *_ = plot_effect(rs.rhale(local, centering=centering), "x0")
    label = labelled(upper, "95 %").get_label().replace("\n", " ")
    assert label == f"95 % interval, pointwise, model as given{target}"


# ---------------------------------------------------------------------------------- lower panel


def test_bins_span_their_edges_at_their_effect(effect):
    _, lower, *_ = plot_effect(effect, "x0")
    row = effect.sel(feature="x0")
    segments = np.array(labelled(lower, plots_marks.BIN).get_segments())
    np.testing.assert_array_equal(segments[:, 0, 0], row["bin_left"])
    np.testing.assert_array_equal(segments[:, 1, 0], row["bin_right"])
    np.testing.assert_array_equal(segments[:, :, 1], np.repeat(row["effect"].values[:, None], 2, 1))


@pytest.mark.thorough
def test_areas_are_intervals_and_bars_the_heterogeneity(effect):
    effect = rs.std_error(effect)
    row = effect.sel(feature="x0")
    bins = np.column_stack([row["bin_left"], row["bin_right"]])
    half = stats.t.ppf(0.975, row["n_obs"] - 1) * row["effect_se"]
    expected = np.column_stack([row["effect"] - half, row["effect"] + half])
    for style in ("curve", "paper"):
        _, lower, *_ = plot_effect(effect, "x0", style=style)
        places, ends = areas(labelled(lower, "95 %"))
        np.testing.assert_allclose(places, bins, rtol=1e-12)
        np.testing.assert_allclose(ends, expected, rtol=1e-12)  # two routes to one quantile
    middle, ends = bars(labelled(lower, "± heterogeneity"))
    np.testing.assert_array_equal(middle, bins.mean(axis=1))
    half = row["heterogeneity"]
    np.testing.assert_allclose(ends.T, [row["effect"] - half, row["effect"] + half], rtol=1e-12)
    heights = [patch.get_height() for patch in lower.patches if not patch.get_gid()]
    np.testing.assert_allclose(heights[:6], row["effect"])


@pytest.mark.thorough
@pytest.mark.parametrize("bins", [rs.EqualWidthBins(6), None])
def test_the_effect_of_a_bin_is_the_slope_of_the_curve_above(local, bins):
    effect = rs.rhale(local, bins=bins)
    upper, lower, _ = plot_effect(effect, "x0")
    x, curve = labelled(upper, plots_marks.CURVE).get_data()
    for (left, first), (right, last) in labelled(lower, plots_marks.BIN).get_segments():
        rise = np.diff(np.interp([left, right], x, curve))[0]
        np.testing.assert_allclose(rise, (first + last) / 2 * (right - left), rtol=1e-9, atol=1e-9)


@pytest.mark.thorough
def test_the_strip_is_how_much_rows_differ(local, effect):
    (strip,) = plot_effect(effect, "x0")[2].patches
    heights, edges, _ = strip.get_data()
    row = effect.sel(feature="x0")
    np.testing.assert_array_equal(heights, row["heterogeneity"])
    np.testing.assert_array_equal(edges, row["edge_value"])
    default = rs.rhale(local)
    panel = plot_effect(default, "x0")[2]
    heights, edges, _ = panel.patches[0].get_data()
    held = default.sel(feature="x0")
    n_cells = int(held["spread"].notnull().sum())
    # `spread` is that to the right of an edge.
    places = np.searchsorted(edges, held["edge_value"].values[:n_cells], "right") - 1
    np.testing.assert_allclose(heights[places], held["spread"].values[:n_cells])
    assert panel.get_ylim()[0] == 0
    # A spread that is little beside the effects looks like it.
    assert panel.get_ylim()[1] == pytest.approx(0.11 * np.abs(held["effect"]).max())


@pytest.mark.thorough
@pytest.mark.parametrize("weighted", [False, True])
def test_bars_of_the_rows_reach_from_10_to_90_percent(rng, weighted):
    x, g = rng.uniform(0, 1, 300), rng.lognormal(size=300)
    weight = rng.uniform(0.2, 2, 300) if weighted else np.ones(300)
    local, effect = given(x, g, [0, 0.5, 1], weight=weight)
    _, lower, _ = plot_effect(effect, 0, local)
    drawn = labelled(lower, plots_marks.BARS)
    for patch, inside in zip(drawn, (x < 0.5, x >= 0.5), strict=True):
        order = np.argsort(g[inside])
        share = np.cumsum(weight[inside][order]) / weight[inside].sum()
        low, high = g[inside][order][np.searchsorted(share, [0.1, 0.9])]
        assert patch.get_y() == low
        assert patch.get_y() + patch.get_height() == pytest.approx(high)
        assert patch.get_width() == pytest.approx(0.03, rel=0.05)
    bottom, top = lower.get_ylim()
    assert bottom <= min(patch.get_y() for patch in drawn)
    assert top >= max(patch.get_y() + patch.get_height() for patch in drawn)


@pytest.mark.thorough
def test_zero_is_always_in_sight():
    local, effect = given(np.linspace(0, 1, 50), np.linspace(100, 101, 50), [0, 0.5, 1])
    _, lower, *_ = plot_effect(effect, 0, local, violins=True)
    bottom, top = lower.get_ylim()
    assert bottom < 0 < top
    assert any(np.all(np.asarray(line.get_ydata()) == 0) for line in lower.lines)


@pytest.mark.thorough
def test_a_histogram_of_the_rows_over_their_inner_98_percent(rng):
    x = np.append(rng.uniform(0, 1, 1000), 4.0)
    _, effect = given(x, 3 * x, list(np.linspace(0, 4, 41)))
    panels = plot_effect(effect, 0)
    (of_rows,) = [patch for patch in panels[0].patches if isinstance(patch, StepPatch)]
    heights, edges, _ = of_rows.get_data()
    shares = np.histogram(x, edges)[0] / len(x)
    # Rows of a cell count as evenly spread on either side of their mean.
    np.testing.assert_allclose(heights / heights.sum(), shares, atol=0.02)
    for panel in panels:
        assert panel.get_xlim()[1] == pytest.approx(np.quantile(x, 0.99), abs=0.1)
        assert panel.get_xlim()[0] < 0
    assert [text.get_text() for text in panels[0].texts] == ["to 4 →"]
    x, curve = labelled(panels[0], plots_marks.CURVE).get_data()
    at_ends = np.interp(panels[0].get_xlim(), x, curve)
    assert panels[0].get_ylim()[0] < at_ends.min() < at_ends.max() < panels[0].get_ylim()[1]
    # The scale is that of what is in sight: 3 x at the last row would be 12.
    assert panels[1].get_ylim()[1] < 4
    panels = plot_effect(effect, 0, percentiles=(0, 100))
    assert panels[0].get_xlim()[1] > 4
    assert not panels[0].texts
    assert panels[1].get_ylim()[1] > 11


@pytest.mark.thorough
def test_a_picture_is_paler_where_few_rows_are(rng):
    x = np.concatenate([rng.uniform(0, 1, 500), rng.uniform(2, 3, 500), [1.4]])
    _, effect = given(x, 3 * x, list(np.linspace(0, 3, 31)))
    for panel in plot_effect(effect, 0):
        pale = [patch for patch in panel.patches if patch.get_alpha() == plots_curve.PALE]
        assert pale
        reach = np.array([patch.get_bbox().intervalx for patch in pale])
        assert reach[0, 0] == pytest.approx(1, abs=0.15)
        assert reach[-1, 1] == pytest.approx(2, abs=0.15)
    even = plot_effect(given(x[:500], x[:500], [x[:500].min(), x[:500].max()])[1], 0)
    assert not [patch for patch in even[0].patches if patch.get_alpha()]


def test_the_inner_rows_end_within_a_wide_bin(rng):
    """The last bin holds 3 % of the rows, most of them near its left end."""
    x = np.sort(rng.lognormal(1, 0.8, 5000))
    rule = rs.GivenBins([x[0], 1, 3, np.quantile(x, 0.97), x[-1]])
    effect = rs.ale(lambda X: 3 * X[:, 0], x[:, None], bins=rule)
    inner, last = np.quantile(x, 0.99), x[-1] - np.quantile(x, 0.97)
    assert x[-1] > 3 * inner
    _, end = plot_effect(effect, 0)[0].get_xlim()
    assert end == pytest.approx(inner, abs=0.1 * last)


# ------------------------------------------------------------------------------- violins and rug


def test_violins_reach_from_smallest_to_largest_local_effect(local, effect):
    _, lower, *_ = plot_effect(effect, "x0", local, violins=True)
    row, rows = effect.sel(feature="x0"), local.sel(feature="x0")
    # Another route to the bins: pandas, left-closed, the last bin closed by an edge beyond it.
    cuts = row["edge_value"].values.copy()
    cuts[-1] = np.inf
    bins = pd.cut(rows["x"].values, cuts, right=False, labels=False)
    ends = pd.Series(rows["local_effect"].values).groupby(bins).agg(["min", "max"])
    drawn = outlines(lower)
    assert len(drawn) == 6
    for vertices, (low, high) in zip(drawn, ends.to_numpy(), strict=True):
        assert vertices[:, 1].min() == low
        assert vertices[:, 1].max() == high


def test_violins_stand_in_the_middle_of_their_bins(local, effect):
    _, lower, *_ = plot_effect(effect, "x0", local, violins=True)
    row = effect.sel(feature="x0")
    for vertices, left, right in zip(
        outlines(lower), row["bin_left"].values, row["bin_right"].values, strict=True
    ):
        low, high = vertices[:, 0].min(), vertices[:, 0].max()
        assert left < low < high < right
        assert (low + high) / 2 == pytest.approx((left + right) / 2)
        assert high - low == pytest.approx(plots_rows.VIOLIN_WIDTH * (right - left))


def density_of(ax):
    """Half width of the first violin over its maximum, and where."""
    vertices = outlines(ax)[0][: 2 * plots_rows.VIOLIN_POINTS]
    side, other = np.split(vertices, 2)
    half = (other[::-1, 0] - side[:, 0]) / 2
    return side[:, 1], half / half.max()


@pytest.mark.thorough
@pytest.mark.parametrize("weighted", [False, True])
def test_violin_is_the_kernel_density_of_scipy(rng, weighted):
    x, g = rng.uniform(0, 1, 400), rng.standard_t(4, 400)
    weight = rng.uniform(0.2, 2, 400) if weighted else np.ones(400)
    local, effect = given(x, g, [0, 1], weight=weight)
    _, lower, *_ = plot_effect(effect, 0, local, violins=True)
    at, density = density_of(lower)
    share = weight / weight.sum()
    order = np.argsort(g)
    lower_quartile, upper_quartile = np.interp([0.25, 0.75], np.cumsum(share[order]), g[order])
    spread = min(
        np.sqrt(np.sum(share * (g - share @ g) ** 2)), (upper_quartile - lower_quartile) / 1.34
    )
    bandwidth = 0.9 * spread * (1 / np.sum(share**2)) ** -0.2
    factor = bandwidth / np.sqrt(np.cov(g, aweights=weight))
    expected = stats.gaussian_kde(g, bw_method=factor, weights=weight)(at)
    # Rows and quartiles move by up to half a step of the grid, a tenth of the bandwidth here.
    np.testing.assert_allclose(density, expected / expected.max(), atol=0.02)


def test_two_groups_make_two_bumps(rng):
    """RHALE, Eq. 1: local effects of x2 are 5 and -5, with nothing at their mean."""
    x = rng.uniform(-1, 1, 400)
    local, effect = given(x, rng.choice([-5.0, 5.0], 400), [-1, 1])
    _, lower, *_ = plot_effect(effect, 0, local, violins=True)
    at, density = density_of(lower)
    assert density[0] > 0.7
    assert density[-1] > 0.7
    assert density[np.abs(at) < 1].max() < 0.05


@pytest.mark.thorough
def test_rows_on_an_edge_belong_to_the_bin_on_their_right():
    x = np.array([0.0, 0.1, 0.5, 0.6, 1.0])
    local, effect = given(x, [1.0, 2.0, 10.0, 11.0, 12.0], [0, 0.5, 1])
    _, lower, *_ = plot_effect(effect, 0, local, violins=True)
    extents = [(v[:, 1].min(), v[:, 1].max()) for v in outlines(lower)]
    assert extents == [(1.0, 2.0), (10.0, 12.0)]


@pytest.mark.thorough
def test_frequency_weights_draw_as_repeated_rows(rng):
    x, g = rng.uniform(0, 1, 60), rng.normal(0, 1, 60)
    count = rng.integers(0, 4, 60)
    edges = [x[count > 0].min(), 0.5, x[count > 0].max()]
    inside = count > 0
    weighted = given(x[inside], g[inside], edges, weight=count[inside], kind="frequency")
    repeated = given(np.repeat(x, count), np.repeat(g, count), edges)
    drawn = [
        plot_effect(effect, 0, local, violins=True)[1] for local, effect in (weighted, repeated)
    ]
    for mine, theirs in zip(outlines(drawn[0]), outlines(drawn[1]), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12)  # sums in another order
    np.testing.assert_allclose(
        rug_of(*weighted).get_colors(), rug_of(*repeated).get_colors(), rtol=1e-12
    )


@pytest.mark.thorough
@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_scale_of_precision_weights_changes_nothing(rng, scale):
    x, g, weight = rng.uniform(0, 1, 60), rng.normal(0, 1, 60), rng.uniform(0.5, 2, 60)
    local, effect = given(x, g, [0, 0.5, 1], weight=weight)
    drawn = outlines(plot_effect(effect, 0, local, violins=True)[1])
    scaled = local.assign(weight=scale * local["weight"])
    for mine, theirs in zip(
        outlines(plot_effect(effect, 0, scaled, violins=True)[1]), drawn, strict=True
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12)  # rounding of weights


def test_rows_of_weight_zero_are_not_drawn():
    x, g = np.linspace(0, 1, 21), np.linspace(0, 2, 21)
    weight = np.ones(21)
    weight[[3, 20]] = 0
    local, effect = given(x, np.where(weight > 0, g, 1e6), [0, 1], weight=weight)
    _, lower, *_ = plot_effect(effect, 0, local, violins=True)
    (violin,) = outlines(lower)
    assert violin[:, 1].max() == g[19]
    assert len(rug_of(estimation_rows(local, effect), effect).get_segments()) == 19


def test_bin_without_spread_is_a_line():
    local, effect = given([0, 0.2, 0.6, 0.8], [3.0, 3.0, 1.0, 2.0], [0, 0.5, 1])
    _, lower, *_ = plot_effect(effect, 0, local, violins=True)
    assert len(outlines(lower)) == 1
    lines = [
        collection.get_segments()[0]
        for collection in lower.collections
        if isinstance(collection, LineCollection)
        and collection.get_gid() is None
        and len(collection.get_segments()) == 1
    ]
    middle, half = 0.25, plots_rows.VIOLIN_WIDTH * 0.25
    np.testing.assert_allclose(lines, [[[middle - half, 3], [middle + half, 3]]])


@pytest.mark.thorough
def test_rounding_is_no_spread(table):
    """A linear feature by differences: its violins are lines."""
    local = rs.local_effects(lambda t: 3 * t["x1"] + t["x0"] ** 2, table, features=["x1"])
    assert np.ptp(local["local_effect"].values) > 0
    _, lower, *_ = plot_effect(rs.rhale(local), "x1", local, violins=True)
    assert plots_marks.VIOLIN not in lower.get_legend_handles_labels()[1]


def test_rounding_is_no_effect(table):
    """The axes of a feature without any effect are not scaled to its noise."""
    local = rs.local_effects(
        lambda t: np.sin(t["x0"]) ** 2 + np.cos(t["x0"]) ** 2, table, features=["x0"]
    )
    noise = np.abs(local["local_effect"].values).max()
    assert noise > 0
    effect = rs.rhale(local)
    for panel in (*plot_effect(effect, "x0", local, violins=True), *plot_bins(effect, local, "x0")):
        assert np.diff(panel.get_ylim()) > 10 * noise


def test_rug_has_a_tick_at_every_row():
    x = np.array([0.0, 0.013, 0.4, 0.41, 1.0])
    local, effect = given(x, x, [0, 1])
    ticks = rug_of(local, effect)
    # Positions are rounded to a grid finer than print shows.
    drawn = [segment[0, 0] for segment in ticks.get_segments()]
    np.testing.assert_allclose(drawn, x, atol=0.5 / plots_rows.RUG_POSITIONS)
    assert {tuple(segment[:, 1]) for segment in ticks.get_segments()} == {
        (0, plots_rows.RUG_HEIGHT)
    }


def test_rug_is_darkest_where_most_rows_are():
    x = np.concatenate([np.zeros(50), [0.5], np.full(9, 1.0)])
    local, effect = given(x, x, [0, 1])
    shade = rug_of(local, effect).get_colors()[:, 0]
    assert shade[0] < shade[2] < shade[1] < 1


def test_rug_of_many_rows_is_a_strip_over_every_one(rng):
    x = np.concatenate([rng.normal(0, 1, 3000), [9.0]])
    local, effect = given(x, x, [x.min(), x.max()])
    strip = rug_of(local, effect)
    assert isinstance(strip, PolyCollection)
    cells = np.array([path.vertices[[0, 1], 0] for path in strip.get_paths()])
    covered = (x[:, None] >= cells[:, 0] - 1e-9) & (x[:, None] <= cells[:, 1] + 1e-9)
    assert covered.any(axis=1).all()
    counts = np.histogram(x, plots_rows.RUG_CELLS)[0]
    assert len(cells) == np.count_nonzero(counts)
    assert np.argmin(strip.get_facecolor()[:, 0]) == np.argmax(counts[counts > 0])


@pytest.mark.thorough
def test_long_tails_leave_the_bins_to_be_seen_and_are_told_of(rng):
    x, g = rng.uniform(0, 1, 1000), rng.normal(1, 0.2, 1000)
    g[:3] = 20
    local, effect = given(x, g, [0, 0.5, 1])
    _, lower, *_ = plot_effect(effect, 0, local, violins=True)
    assert max(vertices[:, 1].max() for vertices in outlines(lower)) == 20
    bottom, top = lower.get_ylim()
    assert top < 10
    assert [text.get_text() for text in lower.texts] == ["0.4 % of local effects off the scale"]
    assert bottom < 0 < float(effect["effect"].max()) < top


@pytest.mark.thorough
def test_tails_are_long_by_weight(rng):
    """What is left outside is a small share of the weight, not of the rows."""
    x, g = rng.uniform(0, 1, 1000), rng.normal(1, 0.2, 1000)
    g[:3] = 20
    local, effect = given(x, g, [0, 0.5, 1], weight=np.where(g == 20, 10.0, 1.0))
    _, lower, *_ = plot_effect(effect, 0, local, violins=True)
    assert not lower.texts
    assert lower.get_ylim()[1] > 20


@pytest.mark.thorough
def test_every_violin_is_in_sight_otherwise(local, effect):
    _, lower, *_ = plot_effect(effect, "x0", local, violins=True)
    bottom, top = lower.get_ylim()
    drawn = np.concatenate(outlines(lower))[:, 1]
    assert bottom < drawn.min() < drawn.max() < top
    assert not lower.texts


# ------------------------------------------------------------------------------ labels and style


@pytest.mark.thorough
def test_labels_carry_names_and_units(effect):
    upper, lower, strip = plot_effect(effect, "x0")
    assert upper.get_ylabel() == "effect on pressure [mmHg]"
    assert lower.get_ylabel() == "d pressure / d x0\n[mmHg per mg]"
    assert [panel.get_xlabel() for panel in (upper, lower, strip)] == ["", "", "x0 [mg]"]


@pytest.mark.thorough
def test_unknown_units_leave_no_brackets(table):
    bare = table.copy()
    bare.attrs = {}
    effect = rs.rhale(rs.local_effects(model, bare, features=["x0"]))
    upper, lower, strip = plot_effect(effect, "x0")
    assert upper.get_ylabel() == "effect on output"
    assert lower.get_ylabel() == "d output / d x0"
    assert strip.get_xlabel() == "x0"
    (panel,) = plot_effects(effect)
    assert panel.get_xlabel() == ""


def test_units_of_the_slope_need_both(effect):
    assert plot_effect(effect, "x1")[1].get_ylabel() == "d pressure / d x1"


@pytest.mark.thorough
def test_long_labels_of_the_y_axis_break_before_their_unit_first(effect):
    label = plot_effect(effect.assign_attrs(output_name="arterial pressure"), "x0")[0].get_ylabel()
    assert label == "effect on arterial pressure\n[mmHg]"
    effect = effect.assign_attrs(output_name="mean arterial blood pressure of patients")
    lower = plot_effect(effect, "x0")[1]
    assert lower.get_ylabel() == (
        "d mean arterial blood pressure\nof patients / d x0\n[mmHg per mg]"
    )


@pytest.mark.thorough
def test_names_are_text_and_no_formulas():
    table = pd.DataFrame({"cost$_{$x": np.linspace(0, 1, 50)})
    table.attrs = {
        "units": {"cost$_{$x": "$ per $1000"},
        "output_name": "out$^$put",
        "output_units": "$_$",
    }
    effect = rs.rhale(rs.local_effects(None, table, jacobian=np.ones((50, 1))))
    for axes in (plot_effect(effect, 0), plot_effects(effect)):
        axes[0].figure.draw_without_rendering()  # as formulas these do not parse


def test_shapes_tell_average_heterogeneity_and_uncertainty_apart_in_greyscale(local, effect):
    upper, lower, *_ = plot_effect(effect, "x0", local, style="paper")
    assert labelled(upper, plots_marks.CURVE).get_linestyle() == "-"
    assert len(dashed(upper)) == 2
    fill = labelled(upper, "± heterogeneity").get_facecolor()[0]
    grey = np.array([0.299, 0.587, 0.114])
    assert grey @ fill[:3] > 0.7  # light
    for line in (*dashed(upper), labelled(upper, plots_marks.CURVE)):
        assert grey @ to_rgb(line.get_color()) < 0.5  # dark on it
    assert len(labelled(lower, "± heterogeneity").lines[1]) == 2  # caps
    assert grey @ labelled(lower, "95 %").get_facecolor()[0][:3] > 0.6


def legend_of(figure):
    """Labels of the one legend of a figure, which lies within it and above its panels."""
    figure.draw_without_rendering()
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1
    assert all(panel.get_legend() is None for panel in figure.axes)
    assert all(box.y0 > panel.get_window_extent().y1 for panel in figure.axes)
    return [text.get_text() for text in legend.get_texts()]


@pytest.mark.thorough
def test_features_side_by_side_share_a_legend(local, effect):
    figure, axes = plt.subplots(2, 3, figsize=(10, 6), layout="constrained")
    axes[0, 2].plot([0, 1], [0, 1], label="something else")
    plot_effect(effect, "x0", ax=axes[:, 0])
    assert len(legend_of(figure)) == 2
    plot_effect(effect, "x1", local, ax=axes[:, 1], style="paper")
    labels = legend_of(figure)
    assert len(labels) == 4
    assert plots_marks.BOTH[plots_marks.BIN_SPREAD] in labels


@pytest.mark.thorough
def test_legend_keeps_what_a_user_drew_in_our_panels(effect):
    figure, axes = plt.subplots(2, layout="constrained")
    axes[0].plot([0, 1], [0, 1], label="truth")
    plot_effect(effect, "x0", ax=axes)
    assert legend_of(figure)[-1] == "truth"


@pytest.mark.thorough
def test_legend_of_a_narrow_figure_has_fewer_columns(effect):
    figure, axes = plt.subplots(2, figsize=(4.5, 6), layout="constrained")
    plot_effect(effect, "x0", ax=axes)
    assert len(legend_of(figure)) == 2


# --------------------------------------------------------------------------------------- axes


@pytest.mark.thorough
@pytest.mark.parametrize("shape", ["array", "column", "list"])
def test_given_axes_are_drawn_in_and_returned(local, effect, shape):
    figure, pair = plt.subplots(2, 1)
    passed = {"array": pair, "column": pair[:, None], "list": list(pair)}[shape]
    returned = plot_effect(effect, "x0", local, ax=passed)
    assert returned.shape == (2,)
    assert returned[0] is pair[0]
    assert returned[1] is pair[1]
    assert pair[0].get_xlim() == pair[1].get_xlim()
    assert plt.get_fignums() == [figure.number]
    assert len(figure.axes) == 2


@pytest.mark.thorough
def test_given_axes_of_a_subfigure(effect):
    figure = plt.figure(layout="constrained")
    left, right = figure.subfigures(1, 2)
    plot_effect(effect, "x0", ax=left.subplots(2))
    plot_effects(effect, ["x0"], ax=[right.subplots()])
    figure.draw_without_rendering()
    assert len(right.legends) == 1


def test_a_new_figure_is_made_otherwise(effect):
    returned = plot_effect(effect, "x0")
    assert returned.dtype == object
    assert len(plt.get_fignums()) == 1
    assert returned[0].figure is returned[1].figure
    assert returned[0].get_xlim() == returned[1].get_xlim()


@pytest.mark.thorough
def test_feature_by_number(effect):
    assert plot_effect(effect, 1)[2].get_xlabel() == "x1"
    assert plot_effect(effect, -1)[2].get_xlabel() == "flat [km]"


# ------------------------------------------------------------------------- what cannot be drawn


def test_constant_feature_says_so(local, effect):
    axes = plot_effect(effect, "flat", local)
    for ax in axes:
        assert [text.get_text() for text in ax.texts] == [plots_marks.CONSTANT]
        assert not ax.lines
        assert not ax.collections
    assert not axes[0].figure.legends
    assert axes[2].get_xlabel() == "flat [km]"


@pytest.mark.thorough
def test_empty_bin_leaves_a_gap():
    x = np.array([0.0, 0.1, 0.2, 0.7, 0.8, 1.0])
    local, effect = given(x, [1.0, 2, 3, 4, 5, 6], [0, 0.25, 0.5, 1], centering="start")
    upper, lower, *_ = plot_effect(effect, 0, local, violins=True)
    np.testing.assert_array_equal(
        np.isnan(labelled(upper, plots_marks.CURVE).get_ydata()), [False, False, True, True]
    )
    drawn = labelled(lower, plots_marks.BIN).get_segments()
    assert [segment[:, 0].tolist() for segment in drawn] == [[0, 0.25], [0.5, 1]]
    assert len(outlines(lower)) == 2
    upper.figure.draw_without_rendering()


@pytest.mark.thorough
def test_bin_of_one_row_has_an_effect_and_no_bars():
    local, effect = given([0.0, 0.6, 0.8, 1.0], [1.0, 2, 3, 4], [0, 0.5, 1])
    _, lower, *_ = plot_effect(effect, 0, local, violins=True)
    assert len(labelled(lower, plots_marks.BIN).get_segments()) == 2
    assert areas(labelled(lower, "95 %"))[0].tolist() == [[0.5, 1]]
    lower.figure.draw_without_rendering()


@pytest.mark.thorough
@pytest.mark.parametrize("factor", [1e-6, 1e9])
def test_scale_and_offset_change_only_the_axes(rng, factor):
    x, g = rng.uniform(0, 1, 200), rng.normal(0, 1, 200)
    drawn = []
    for a, offset in ((1.0, 0.0), (factor, 1.7e9)):
        scaled = offset + 100 * x
        local, effect = given(scaled, a * g, [scaled.min(), scaled.max()])
        ax = plot_effect(effect, 0, local, violins=True)[1]
        ax.figure.draw_without_rendering()
        drawn.append(density_of(ax))
    np.testing.assert_allclose(drawn[1][0] / factor, drawn[0][0], rtol=1e-9)
    # Widths are differences of time stamps: their last place is 2e-7, a violin 100 wide.
    np.testing.assert_allclose(drawn[1][1], drawn[0][1], atol=1e-8)


# ------------------------------------------------------------------------------ picture of bins


def test_bins_are_drawn_with_their_rows(local, effect):
    (panel,) = plot_bins(effect, local, "x0")
    row, rows = effect.sel(feature="x0"), local.sel(feature="x0")
    points = labelled(panel, plots_marks.POINTS)
    np.testing.assert_array_equal(
        points.get_offsets(), np.column_stack([rows["x"], rows["local_effect"]])
    )
    assert len(set(points.get_sizes())) == 1
    lines = np.array(labelled(panel, plots_marks.EDGES).get_segments())
    np.testing.assert_array_equal(
        lines[:, :, 0], np.repeat(row["edge_value"].values[:, None], 2, 1)
    )
    np.testing.assert_array_equal(lines[:, :, 1], [[0, 1]] * 7)  # of the panel's height
    pieces = np.array(labelled(panel, plots_marks.BIN).get_segments())
    np.testing.assert_array_equal(pieces[:, 0, 0], row["bin_left"])
    np.testing.assert_array_equal(pieces[:, 1, 0], row["bin_right"])
    np.testing.assert_array_equal(pieces[:, :, 1], np.repeat(row["effect"].values[:, None], 2, 1))
    band = [path.vertices[:4] for path in labelled(panel, plots_marks.BIN_SPREAD).get_paths()]
    low, high = row["effect"] - row["heterogeneity"], row["effect"] + row["heterogeneity"]
    for corners, *box in zip(band, row["bin_left"], row["bin_right"], low, high, strict=True):
        a, b, bottom, top = (float(side) for side in box)
        np.testing.assert_array_equal(corners, [(a, bottom), (b, bottom), (b, top), (a, top)])


def test_every_row_is_in_sight_of_its_bins(local, effect):
    (panel,) = plot_bins(effect, local, "x0")
    bottom, top = panel.get_ylim()
    g = local["local_effect"].sel(feature="x0")
    assert bottom < g.min() < g.max() < top
    assert not panel.texts


@pytest.mark.thorough
def test_labels_of_bins_carry_names_and_units(local, effect):
    (panel,) = plot_bins(effect, local, "x0")
    assert panel.get_xlabel() == "x0 [mg]"
    assert panel.get_ylabel() == "d pressure / d x0\n[mmHg per mg]"
    assert legend_of(panel.figure) == [
        plots_marks.BIN, plots_marks.BIN_SPREAD, plots_marks.POINTS, plots_marks.EDGES
    ]  # fmt: skip
    none = ("feature", np.full(4, ""))
    bare = effect.assign_coords(feature_units=none).assign_attrs(output_units="")
    (panel,) = plot_bins(bare, local, "x0")
    assert (panel.get_xlabel(), panel.get_ylabel()) == ("x0", "d pressure / d x0")


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["precision", "frequency"])
def test_points_are_as_large_as_their_weight(rng, kind):
    x, g, weight = rng.uniform(0, 1, 60), rng.normal(0, 1, 60), rng.integers(0, 5, 60)
    inside = x[weight > 0]
    local, effect = given(x, g, [inside.min(), 0.5, inside.max()], weight=weight, kind=kind)
    (panel,) = plot_bins(effect, local, 0)
    points = labelled(panel, plots_marks.WEIGHED)
    np.testing.assert_array_equal(points.get_offsets()[:, 0], inside)
    sizes = points.get_sizes()
    np.testing.assert_allclose(sizes / sizes.max(), weight[weight > 0] / 4, rtol=1e-12)


def test_the_largest_point_has_a_largest_size(rng):
    x = rng.uniform(0, 1, 500)
    weight = np.where(np.arange(500) == 7, 1e6, 1.0)
    local, effect = given(x, x, [x.min(), x.max()], weight=weight)
    points = labelled(plot_bins(effect, local, 0)[0], plots_marks.WEIGHED)
    assert points.get_sizes().max() == pytest.approx(plots_rows.LARGEST_POINT)


def cells_of(panel):
    """Middles and greys of the hexagons of a density."""
    cells = labelled(panel, plots_marks.DENSITY)
    return np.asarray(cells.get_offsets()), cells.get_facecolor()[:, 0]


@pytest.mark.thorough
def test_many_rows_are_a_density_over_every_one(rng):
    n = plots_marks.POINTS_DRAWN + 1
    x = np.concatenate([rng.uniform(0, 1, n - 1), [2.0]])
    g = np.concatenate([rng.normal(0, 0.3, n - 1), [1.0]])
    local, effect = given(x, g, [x.min(), 1, 2])
    (panel,) = plot_bins(effect, local, 0)
    assert plots_marks.POINTS not in panel.get_legend_handles_labels()[1]
    middles, _ = cells_of(panel)
    across = np.ptp(x) / plots_rows.DENSITY_CELLS
    steps = np.unique(np.round(np.diff(np.unique(middles[:, 1])), 9))
    distance = np.abs(x[:, None] - middles[:, 0]) / across
    height = np.abs(g[:, None] - middles[:, 1]) / (2 * steps.min())
    # A hexagon reaches half a cell to the sides and two thirds of one up and down.
    covered = (distance <= 0.5 + 1e-9) & (height <= 2 / 3 + 1e-9)
    assert covered.any(axis=1).all()
    assert panel.get_ylim()[0] < g.min() < g.max() < panel.get_ylim()[1]
    panel.figure.draw_without_rendering()
    (same,) = plot_bins(effect, local.isel(obs=slice(n - 1)), 0)
    assert len(labelled(same, plots_marks.POINTS).get_offsets()) == n - 1


@pytest.mark.thorough
@pytest.mark.parametrize("offset", [0.0, 1.7e9])
def test_density_is_darkest_where_most_weight_is(rng, offset):
    n = plots_marks.POINTS_DRAWN + 200
    x = np.concatenate([rng.uniform(0, 100, n - 100), np.full(100, 25.0)]) + offset
    g = rng.normal(0, 1, n)
    g[-100:] = 3
    weight = np.where(np.arange(n) == 0, 500.0, 1.0)
    x[0], g[0] = 75 + offset, -3
    for weights, at in ((None, (25, 3)), (weight, (75, -3))):
        local, effect = given(x, g, [x.min(), x.max()], weight=weights)
        middles, grey = cells_of(plot_bins(effect, local, 0)[0])
        darkest = middles[np.argmin(grey)] - (offset, 0)
        np.testing.assert_allclose(darkest, at, atol=1)  # half a cell


@pytest.mark.parametrize("n", [1000, 10_000])
def test_long_tails_leave_bins_to_be_seen_among_their_rows(rng, n):
    x, g = rng.uniform(0, 1, n), rng.normal(1, 0.2, n)
    g[: n // 500] = 20
    local, effect = given(x, g, [0, 0.5, 1])
    (panel,) = plot_bins(effect, local, 0)
    assert panel.get_ylim()[1] < 10
    assert [text.get_text() for text in panel.texts] == ["0.2 % of local effects off the scale"]


@pytest.mark.thorough
def test_the_loss_of_every_number_of_bins_is_drawn(local):
    effect = rs.rhale(local, bins=rs.BestEqualWidthBins(max_bins=40, min_obs=5))
    row = effect.sel(feature="x0")
    panels = plot_bins(effect, local, "x0")
    assert panels.shape == (2,)
    loss = panels[1]
    allowed = np.isfinite(row["bin_loss"].values)
    assert 0 < allowed.sum() < 40
    line = labelled(loss, plots_marks.LOSS)
    np.testing.assert_array_equal(line.get_xdata(), row["n_bins_tried"][allowed])
    np.testing.assert_array_equal(line.get_ydata(), row["bin_loss"][allowed])
    mark = labelled(loss, plots_marks.CHOSEN)
    chosen = int(row["n_bins"])
    assert mark.get_label() == f"chosen: {chosen}"
    assert mark.get_xdata() == [chosen]
    assert mark.get_ydata() == row["bin_loss"].values[chosen - 1]
    assert mark.get_ydata() == line.get_ydata().min()
    (note,) = loss.texts
    assert note.get_text() == f"{40 - allowed.sum()} of 40 numbers of bins leave too few rows"
    assert loss.get_xlabel() == "number of bins"
    assert loss.get_ylabel() == "loss [mmHg]"
    assert len(labelled(panels[0], plots_marks.EDGES).get_segments()) == chosen + 1


@pytest.mark.thorough
@pytest.mark.parametrize("max_bins", [1, 3])
def test_few_numbers_of_bins_to_choose_from(local, max_bins):
    effect = rs.rhale(local, bins=rs.BestEqualWidthBins(max_bins))
    panels = plot_bins(effect, local, "x0")
    panels[0].figure.draw_without_rendering()
    assert not panels[1].texts
    assert len(labelled(panels[1], plots_marks.LOSS).get_xdata()) == max_bins
    shown = [text.get_text() for text in panels[1].get_xticklabels()]
    assert "1" in shown


def test_honest_bins_are_drawn_with_the_rows_of_the_estimate(local):
    effect = rs.rhale(local, bins=rs.EqualWidthBins(3), honest=True, rng=1, weighting="rows")
    points = labelled(plot_bins(effect, local, "x0")[0], plots_marks.POINTS).get_offsets()
    assert len(points) == 150
    inside = points[points[:, 0] < float(effect["bin_right"].sel(feature="x0")[0]), 1]
    assert inside.mean() == pytest.approx(float(effect["effect"].sel(feature="x0")[0]))


@pytest.mark.thorough
def test_bins_without_rows_and_of_one_row():
    x = np.array([0.0, 0.1, 0.2, 0.6, 0.8, 0.9, 1.0])
    local, effect = given(x, [1.0, 2, 3, 9, 4, 5, 6], [0, 0.25, 0.5, 0.75, 1])
    (panel,) = plot_bins(effect, local, 0)
    assert len(labelled(panel, plots_marks.EDGES).get_segments()) == 5
    pieces = [segment[:, 0].tolist() for segment in labelled(panel, plots_marks.BIN).get_segments()]
    assert pieces == [[0, 0.25], [0.5, 0.75], [0.75, 1]]
    assert len(labelled(panel, plots_marks.BIN_SPREAD).get_paths()) == 2
    panel.figure.draw_without_rendering()


@pytest.mark.parametrize("rule", [rs.OptimalBins(), rs.BestEqualWidthBins()])
def test_a_constant_feature_has_no_bins_to_draw(local, rule):
    panels = plot_bins(rs.rhale(local, bins=rule), local, "flat")
    for panel in panels:
        assert [text.get_text() for text in panel.texts] == [plots_marks.CONSTANT]
        assert not panel.lines
        assert not panel.collections
    assert panels[0].get_xlabel() == "flat [km]"
    assert not panels[0].figure.legends


def test_bins_are_drawn_in_given_axes(local, effect):
    figure, pair = plt.subplots(2)
    assert plot_bins(effect, local, "x0", pair[0])[0] is pair[0]
    assert plot_bins(effect, local, "x1", [pair[1]])[0] is pair[1]
    assert len(figure.legends) == 1
    searched = rs.rhale(local, bins=rs.BestEqualWidthBins())
    figure, pair = plt.subplots(1, 2)
    assert list(plot_bins(searched, local, 0, pair)) == list(pair)
    assert len(plt.get_fignums()) == 2


def test_axes_that_are_not_as_many_as_there_is_to_draw(local, effect):
    figure, pair = plt.subplots(2)
    with pytest.raises(ValueError, match="ax must be 1 matplotlib Axes, one; got 2"):
        plot_bins(effect, local, "x0", pair)
    with pytest.raises(TypeError, match="ax must be 1 .*; got Figure"):
        plot_bins(effect, local, "x0", figure)
    searched = rs.rhale(local, bins=rs.BestEqualWidthBins())
    with pytest.raises(ValueError, match=r"2 matplotlib Axes, for bins and for loss; got 1\."):
        plot_bins(searched, local, "x0", pair[0])


def test_bins_of_something_else(local, effect):
    with pytest.raises(TypeError, match=r"Dataset that local_effects\(model, X\) .*; got NoneType"):
        plot_bins(effect, None, "x0")
    with pytest.raises(ValueError, match="got local effects, which local_effects"):
        plot_bins(local, local, "x0")
    with pytest.raises(KeyError, match="or a number from 0 to 3; got 'age'"):
        plot_bins(effect, local, "age")
    with pytest.raises(KeyError, match="must hold the feature 'x0'; it holds 'x1'"):
        plot_bins(effect, local.sel(feature=["x1"]), "x0")
    with pytest.raises(ValueError, match="got 300 of 300 rows outside"):
        plot_bins(effect, local.assign(x=local["x"] + 9), "x0")
    assert plt.get_fignums() == []


# ---------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize("function", [plot_effect, plot_effects])
def test_unknown_feature(effect, function):
    with pytest.raises(KeyError, match="or a number from 0 to 3; got 'age'"):
        function(effect, "age")
    assert plt.get_fignums() == []


@pytest.mark.parametrize("function", [plot_effect, plot_effects])
def test_something_else_than_an_effect(local, function):
    with pytest.raises(ValueError, match="got local effects, which local_effects"):
        function(local, "x0")
    with pytest.raises(TypeError, match="got DataFrame"):
        function(pd.DataFrame(), "x0")


def test_something_else_than_local_effects(effect):
    with pytest.raises(TypeError, match=r"Dataset that local_effects\(model, X\) .*; got ndarray"):
        plot_effect(effect, "x0", np.zeros(3))


def test_local_without_the_feature(local, effect):
    with pytest.raises(KeyError, match="must hold the feature 'x0'; it holds 'x1', 'x2'"):
        plot_effect(effect, "x0", local.sel(feature=["x1", "x2"]))


def test_local_with_rows_outside_the_bins(local, effect):
    values = local["x"].values.copy()
    values[:2, 0] = 5, -5
    moved = local.assign(x=(("obs", "feature"), values))
    with pytest.raises(ValueError, match="got 2 of 300 rows outside"):
        plot_effect(effect, "x0", moved)


def test_local_without_rows(local, effect):
    with pytest.raises(ValueError, match="local must have at least one row.*; got none"):
        plot_effect(effect, "x0", local.isel(obs=slice(0)))


@pytest.mark.parametrize("name", ["x", "local_effect"])
def test_local_with_missing_values(local, effect, name):
    values = local[name].values.copy()
    values[7, 0] = np.nan
    with pytest.raises(ValueError, match=r"feature 'x0' must be finite; got 1 NaN .*rows: 7"):
        plot_effect(effect, "x0", local.assign({name: (("obs", "feature"), values)}))


def test_ax_that_is_no_pair(effect):
    figure, axes = plt.subplots(4)
    assert len(plot_effect(effect, "x0", ax=axes[0])) == 1  # the curve alone
    with pytest.raises(ValueError, match=r"ax must be 3 .* from above; got 4\."):
        plot_effect(effect, "x0", ax=axes)
    with pytest.raises(TypeError, match="got str among them"):
        plot_effect(effect, "x0", ax=[axes[0], "lower"])
    with pytest.raises(ValueError, match="got the same one twice"):
        plot_effect(effect, "x0", ax=[axes[0], axes[0]])
    assert plt.get_fignums() == [figure.number]
    assert not axes[1].lines


def test_axes_that_are_not_one_a_feature(effect):
    _, axes = plt.subplots(2)
    with pytest.raises(ValueError, match=r"ax must be 4 .* one a feature; got 2\."):
        plot_effects(effect, ax=axes)


def test_no_features(effect):
    with pytest.raises(ValueError, match="at least one feature; got none"):
        plot_effects(effect, [])


@pytest.mark.parametrize(("n_columns", "error"), [(0, ValueError), (1.5, TypeError)])
def test_impossible_columns(effect, n_columns, error):
    with pytest.raises(error, match=f"n_columns .*; got {n_columns}"):
        plot_effects(effect, n_columns=n_columns)


# ---------------------------------------------------------------------------------- plots.effects


@pytest.mark.thorough
def test_all_features_are_drawn_the_largest_first(effect):
    panels = plot_effects(effect)
    assert panels.shape == (4,)
    sizes = rs.effect_sizes(effect)["importance"].to_series().fillna(0)
    names = [panel.get_title() for panel in panels]
    assert names == list(sizes.sort_values(ascending=False).index)
    assert names != list(sizes.index)
    axes = plt.subplots(4)[1]
    in_order = plot_effects(effect, ax=axes)
    assert [panel.get_title() for panel in in_order] == list(sizes.index)
    for panel, name in zip(panels[:3], names[:3], strict=True):
        row = effect.sel(feature=name)
        line = labelled(panel, plots_marks.CURVE)
        np.testing.assert_array_equal(line.get_xdata(), row["edge_value"])
        np.testing.assert_array_equal(line.get_ydata(), row["curve"])
        assert len(dashed(panel)) == 2
    assert [panel.get_xlabel() for panel in in_order] == ["[mg]", "", "", "[km]"]
    assert panels[0].figure.get_supylabel() == "effect on pressure [mmHg]"


@pytest.mark.thorough
def test_features_of_different_numbers_of_bins(local):
    effect = without_spread(rs.rhale(local, bins=rs.OptimalBins(), weighting="rows"))
    assert len(set(effect["n_bins"].values)) > 2
    for panel, n_bins in zip(plot_effects(effect)[:3], effect["n_bins"].values, strict=False):
        assert len(labelled(panel, plots_marks.CURVE).get_xdata()) == n_bins + 1


@pytest.mark.thorough
def test_chosen_features(effect):
    panels = plot_effects(effect, ["x2", 0])
    assert [panel.get_title() for panel in panels] == ["x2", "x0"]
    assert [panel.get_title() for panel in plot_effects(effect, "x1")] == ["x1"]


@pytest.mark.thorough
@pytest.mark.parametrize("own", [True, False])
def test_one_scale_holds_everything(effect, own):
    effect = rs.std_error(effect)
    axes = None if own else plt.subplots(4)[1]
    panels = plot_effects(effect, ax=axes, spread="band")
    limits = {panel.get_ylim() for panel in panels}
    assert len(limits) == 1
    ((bottom, top),) = limits
    at_bins = effect.rhale.in_bins()
    for half in (at_bins["curve_std_sum"], 1.96 * at_bins["curve_se"]):
        assert bottom < float((at_bins["curve"] - half).min())
        assert top > float((at_bins["curve"] + half).max())


def test_scale_holds_intervals_that_are_wider_than_the_band(rng):
    """At its left end, where this curve is highest, the band is narrow and the interval is not."""
    x = rng.uniform(0, 1, 20)
    _, effect = given(x, rng.normal(-5, 1, 20), [x.min(), x.max()])
    (panel,) = plot_effects(effect)
    assert max(line.get_ydata().max() for line in dashed(panel)) < panel.get_ylim()[1]


@pytest.mark.thorough
def test_unused_panels_are_removed_and_columns_kept(effect):
    panels = plot_effects(effect, n_columns=3)
    assert len(panels[0].figure.axes) == 4
    assert panels[0].get_subplotspec().get_geometry()[:2] == (2, 3)
    assert plot_effects(effect, n_columns=9)[0].get_subplotspec().get_geometry()[:2] == (1, 4)


def test_constant_feature_gets_the_text(effect):
    *others, flat = plot_effects(effect)
    assert [text.get_text() for text in flat.texts] == [plots_marks.CONSTANT]
    assert not flat.lines
    assert all(not panel.texts for panel in others)
    (alone,) = plot_effects(effect, "flat")
    assert not alone.figure.legends


@pytest.mark.thorough
@pytest.mark.parametrize("n_columns", [1, 2, 3])
def test_one_legend_for_all_features(effect, n_columns):
    labels = legend_of(plot_effects(effect, n_columns=n_columns)[0].figure)
    assert labels[0] == plots_marks.CURVE
    assert len(labels) == 2
    wide = legend_of(plot_effects(effect, n_columns=n_columns, spread="band")[0].figure)
    assert [label for label in wide if label not in labels] == [plots_marks.BAND]


@pytest.mark.thorough
def test_given_panels_are_drawn_in_and_returned(effect):
    figure, axes = plt.subplots(2, 2)
    panels = plot_effects(effect, ax=axes)
    assert list(panels) == list(axes.flat)
    assert plt.get_fignums() == [figure.number]
    assert {panel.get_ylabel() for panel in panels} == {"effect on pressure [mmHg]"}
    assert len(figure.legends) == 1


class TestLinearBins:
    """Bins in which the effect is a line, and the curve a parabola."""

    @pytest.fixture(scope="class")
    @staticmethod
    def local():
        """x0: falling until 0.6, constant from there; x1: one line."""
        rng = np.random.default_rng(20232)
        x = rng.uniform(0, 1, (600, 2))
        mean = np.column_stack([np.where(x[:, 0] < 0.6, 9 - 20 * x[:, 0], 8), 9 * x[:, 1] - 3])
        return rs.local_effects(None, x, jacobian=mean + rng.normal(0, 0.4, (600, 2)))

    @pytest.fixture(scope="class")
    @staticmethod
    def effect(local):
        effect = rs.rhale(local, bins=rs.AdaptiveBins(), weighting="rows")
        return rs.std_error(without_spread(effect))

    @pytest.fixture
    def row(self, effect):
        row = one_feature(effect, 0)
        assert (row["slope"].values != 0).tolist() == [True, False]
        return row

    @staticmethod
    def ends(row):
        """Effect at the left and at the right edge of every bin, (bin, end)."""
        rise = row["slope"].values * (row["bin_right"] - row["bin_left"]).values / 2
        return row["effect"].values[:, None] + rise[:, None] * [-1, 1]

    @pytest.mark.thorough
    def test_curve_is_a_parabola_with_its_band_and_interval(self, effect, row):
        for upper in (
            plot_effect(effect, 0, style="paper")[0],
            plot_effects(effect, spread="band")[0],
        ):
            line = labelled(upper, plots_marks.CURVE)
            x, curve = line.get_data()
            np.testing.assert_array_equal(curve, rs.predict(effect, x, 0))
            edge = row["edge_value"].values
            assert set(edge) <= set(x)
            # Nothing is added where the bin is constant.
            assert ((x > edge[1]) & (x < edge[2])).sum() == 0
            assert ((x > edge[0]) & (x < edge[1])).sum() == plots_curve.PARABOLA_PIECES - 1
            at_edges = np.diff(rs.confint(effect)["curve_ci"][0])[:, 0] / 2
            half = np.interp(x, edge, at_edges[: len(edge)])
            drawn = [line.get_ydata() for line in dashed(upper)]
            np.testing.assert_allclose(drawn, [curve - half, curve + half], rtol=1e-12, atol=1e-12)
            spread = np.interp(x, edge, row.curve_spreads[1])
            (path,) = labelled(upper, plots_marks.BAND).get_paths()
            vertices = {tuple(vertex) for vertex in path.vertices}
            for bound in (curve - spread, curve + spread):
                assert set(zip(x, bound, strict=True)) <= vertices

    @pytest.mark.thorough
    def test_slopes_have_intervals_that_are_wider_at_the_ends(self, effect, row):
        effect = rs.std_error(effect)
        _, lower, *_ = plot_effect(effect, 0)
        segments = np.array(labelled(lower, plots_marks.BIN).get_segments())
        np.testing.assert_array_equal(
            segments[:, :, 0], np.column_stack([row["bin_left"], row["bin_right"]])
        )
        np.testing.assert_allclose(segments[:, :, 1], self.ends(row), rtol=1e-12)
        area = labelled(lower, "95 %")
        known = rs.confint(effect)["effect_ci"][0]
        np.testing.assert_allclose(areas(area)[1], known[: len(segments)], rtol=1e-9)
        # At an end the variances of the middle and of the slope are added.
        left = np.array([path.vertices[[0, 17], 1] for path in area.get_paths()])
        own = effect.isel(feature=0, bin=slice(len(segments)))
        away = (own["bin_right"] - own["bin_left"]) / 2
        se = np.sqrt(own["effect_se"] ** 2 + (own["slope_se"].fillna(0) * away) ** 2)
        half = np.diff(known[: len(segments)])[:, 0] / 2 * (se / own["effect_se"])
        np.testing.assert_allclose(np.diff(left)[:, 0] / 2, half, rtol=1e-9)
        assert (half > 1.3 * np.diff(known[: len(segments)])[:, 0] / 2).any()

    def test_pieces_among_their_rows_have_a_sloped_band(self, local, effect, row):
        (panel,) = plot_bins(effect, local, 0)
        segments = np.array(labelled(panel, plots_marks.BIN).get_segments())
        np.testing.assert_allclose(segments[:, :, 1], self.ends(row), rtol=1e-12)
        spread = row["heterogeneity"].values
        corners = [
            path.vertices[:4] for path in labelled(panel, plots_marks.BIN_SPREAD).get_paths()
        ]
        for k, box in enumerate(corners):
            np.testing.assert_array_equal(box[[0, 1]][:, 0], segments[k, :, 0])
            np.testing.assert_allclose(box[[0, 1]][:, 1], segments[k, :, 1] - spread[k])
            np.testing.assert_allclose(box[[3, 2]][:, 1], segments[k, :, 1] + spread[k])

    @pytest.mark.thorough
    def test_violins_hold_residuals_and_follow_the_line(self, local, effect, row):
        _, lower, *_ = plot_effect(effect, 0, local, violins=True)
        x, g = (local[name].values[:, 0] for name in ("x", "local_effect"))
        linear, constant = outlines(lower)
        left, right = (float(row[name][0]) for name in ("bin_left", "bin_right"))
        middle, slope = (left + right) / 2, float(row["slope"][0])
        level = (g - slope * (x - middle))[x < right]
        unsheared = linear[:, 1] - slope * (linear[:, 0] - middle)
        assert unsheared.min() == pytest.approx(level.min())
        assert unsheared.max() == pytest.approx(level.max())
        assert np.ptp(linear[:, 0]) == pytest.approx(plots_rows.VIOLIN_WIDTH * (right - left))
        assert constant[:, 1].min() == g[x >= right].min()
        assert constant[:, 1].max() == g[x >= right].max()

    @pytest.mark.thorough
    @pytest.mark.parametrize("with_rows", [False, True])
    def test_limits_hold_pieces_and_parabolas(self, local, effect, with_rows):
        """The highest point of a parabola lies between edges."""
        panels = plot_effects(effect)
        row = one_feature(effect, 0)
        peak = rs.predict(effect, np.linspace(*row["edge_value"].values[:2], 999), 0).max()
        assert peak > row["curve"][:2].max()
        assert panels[0].get_ylim() == panels[1].get_ylim()
        assert panels[0].get_ylim()[1] > peak
        for feature in (0, 1):
            upper, lower, *_ = plot_effect(effect, feature, local if with_rows else None)
            row = one_feature(effect, feature)
            bottom, top = lower.get_ylim()
            assert bottom < self.ends(row).min() < self.ends(row).max() < top
            drawn = labelled(upper, plots_marks.CURVE).get_ydata()
            assert upper.get_ylim()[0] < drawn.min() < drawn.max() < upper.get_ylim()[1]

    @pytest.mark.thorough
    def test_slopes_of_zero_draw_what_constant_bins_draw(self, local):
        constant = rs.rhale(local, bins=rs.EqualWidthBins(5))
        zero = constant.assign(slope=xr.zeros_like(constant["effect"]))
        for axes in zip(
            plot_effect(constant, 0, local, violins=True),
            plot_effect(zero, 0, local, violins=True),
            strict=True,
        ):
            mine, theirs = (
                [line.get_xydata() for line in ax.lines]
                + [p.vertices for c in ax.collections for p in c.get_paths()]
                for ax in axes
            )
            for one, other in zip(mine, theirs, strict=True):
                np.testing.assert_array_equal(one, other)

    @pytest.mark.thorough
    def test_a_rule_without_losses_has_one_panel(self, local, effect):
        (panel,) = plot_bins(effect, local, 1)
        assert len(labelled(panel, plots_marks.EDGES).get_segments()) == 2
        panel.figure.draw_without_rendering()

    def test_bias_of_linear_bins_is_about_the_line(self, local, effect):
        check = rs.check_unbiased(local, effect, rng=0)
        ax = plot_bias(check, 1)
        (total,) = labelled(ax, "their sum").get_segments()
        assert total[0, 1] == pytest.approx(float(effect["heterogeneity"][1, 0]) ** 2)
        assert total[0, 1] < 0.1 * local["local_effect"].values[:, 1].var()


class TestBias:
    """The stack of heterogeneity and bin error."""

    @pytest.fixture(scope="class")
    @staticmethod
    def check(local, effect):
        return frozen(rs.check_unbiased(local, effect, rng=0))

    def test_bars_are_the_parts_of_the_variance(self, check):
        ax = plot_bias(check, "x0")
        row = check.sel(feature="x0")
        within = row["heterogeneity_within"].values ** 2
        filled, hatched = labelled(ax, "heterogeneity within"), labelled(ax, "bin error")
        assert [bar.get_height() for bar in filled] == pytest.approx(within)
        assert [bar.get_x() for bar in filled] == pytest.approx(row["bin_left"].values)
        assert [bar.get_y() for bar in hatched] == pytest.approx(within)
        assert [bar.get_height() for bar in hatched] == pytest.approx(
            np.maximum(row["bin_error"].values, 0)
        )
        total = [segment[0, 1] for segment in labelled(ax, "their sum").get_segments()]
        assert total == pytest.approx(row["heterogeneity"].values ** 2)
        assert ax.get_xlabel() == "x0 [mg]"

    def test_whiskers_are_the_standard_error(self, check):
        ax = plot_bias(check, 0)
        row = check.isel(feature=0)
        _, _, (bars,) = labelled(ax, "± its standard error")
        for k, segment in enumerate(bars.get_segments()):
            se = float(row["bin_error_se"][k])
            assert np.diff(segment[:, 1]) == pytest.approx(2 * se)

    def test_marks_are_the_verdicts(self, check):
        marks = {"biased upwards": "*", "bias larger than standard error": "**"}
        marks["too few rows"] = "×"
        changed = check.copy(deep=True)
        phrases = ["fine", *marks, "fine", "biased upwards"]
        changed["verdict"][0] = phrases
        ax = plot_bias(changed, "x0")
        middle = (changed["bin_left"] + changed["bin_right"]).values[0] / 2
        drawn = {round(text.xy[0], 9): text.get_text() for text in ax.texts}
        expected = {
            round(middle[k], 9): marks[phrase]
            for k, phrase in enumerate(phrases)
            if phrase in marks
        }
        assert drawn == expected

    def test_negative_bin_error_lies_inside_the_bar(self, check):
        changed = check.copy(deep=True)
        changed["heterogeneity"][0, 2] = 0.9 * changed["heterogeneity_within"][0, 2]
        ax = plot_bias(changed, "x0")
        assert labelled(ax, "bin error")[2].get_height() == 0

    def test_own_axes_and_constant_feature(self, check):
        _, ax = plt.subplots()
        assert plot_bias(check, "flat", ax) is ax
        assert "constant feature" in ax.texts[0].get_text()

    def test_bad_input(self, check, effect):
        with pytest.raises(ValueError, match="this one has no verdict"):
            plot_bias(effect, "x0")
        with pytest.raises(KeyError, match="got 'x9'"):
            plot_bias(check, "x9")
        with pytest.raises(TypeError, match="got str"):
            plot_bias(check, "x0", "axes")
        with pytest.raises(TypeError, match="check must be the Dataset .* got int"):
            plot_bias(3, "x0")

    @pytest.mark.thorough
    def test_honest_effects_show_the_rows_of_the_estimate(self, local):
        honest = rs.rhale(local.sel(feature=["x0"]), bins=rs.EqualWidthBins(3), honest=True, rng=0)
        _, lower, *_ = plot_effect(honest, "x0", local, violins=True)
        drawn = np.concatenate(
            [
                path.vertices[:, 1]
                for c in lower.collections
                for path in c.get_paths()
                if len(path) > 100
            ]
        )
        g = estimation_rows(local, honest)["local_effect"].sel(feature="x0").values
        assert drawn.min() == pytest.approx(g.min())
        assert drawn.max() == pytest.approx(g.max())


def thin(ax):
    """Both ends of a simultaneous band, (end, x)."""
    width = labelled(
        ax, f"{ax_level(ax, plots_marks.CURVE_BAND)} {plots_marks.CURVE_BAND}"
    ).get_linewidth()
    return np.array(
        [
            line.get_ydata()
            for line in ax.lines
            if line.get_color() == frame.UNCERTAINTY
            and line.get_linestyle() == "-"
            and line.get_linewidth() == width
        ]
    )


def ax_level(ax, text):
    """Level that the label of an interval or band begins with."""
    (level,) = [
        label.removesuffix(text).strip()
        for label in ax.get_legend_handles_labels()[1]
        if label.endswith(text)
    ]
    return level


class TestIntervalsAndBands:
    """What `confint` and `confband` added takes the place of standard errors, or joins them."""

    @pytest.fixture(scope="class")
    @staticmethod
    def known(effect):
        return rs.confband(rs.confint(effect, level=0.8), level=0.9, n_draws=500, rng=0)

    def test_curve_has_its_interval_and_its_band(self, known):
        row = known.sel(feature="x0")
        for panel in (plot_effect(known, "x0")[0], plot_effects(known)[0]):
            drawn = [line.get_ydata() for line in dashed(panel)]
            np.testing.assert_allclose(drawn, row["curve_ci"].T, rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(thin(panel), row["curve_band"].T, rtol=1e-12, atol=1e-12)
            labels = [label.replace("\n", " ") for label in panel.get_legend_handles_labels()[1]]
            assert labels[-2:] == [
                "80 % interval, pointwise, model as given",
                "90 % band of the same, simultaneous over the axis",
            ]

    @pytest.mark.thorough
    def test_bins_have_their_interval_and_their_band(self, known):
        _, lower, *_ = plot_effect(known, "x0")
        row = known.sel(feature="x0")
        bins = np.column_stack([row["bin_left"], row["bin_right"]])
        places, ends = areas(labelled(lower, "80 % interval of"))
        np.testing.assert_allclose(places, bins, rtol=1e-12)
        np.testing.assert_allclose(ends, row["effect_ci"], rtol=1e-12, atol=1e-12)
        band = np.array(labelled(lower, "90 % band").get_segments())
        np.testing.assert_array_equal(band[:, :, 0], np.tile(bins, (2, 1)))
        np.testing.assert_allclose(band[:, 0, 1], row["effect_band"].T.values.ravel(), rtol=1e-12)

    @pytest.mark.thorough
    def test_a_band_alone_joins_intervals_of_standard_errors(self, effect):
        panel = plot_effect(rs.confband(effect, n_draws=500, rng=0), "x0")[0]
        row = rs.confint(effect).sel(feature="x0")
        drawn = [line.get_ydata() for line in dashed(panel)]
        np.testing.assert_allclose(drawn, row["curve_ci"].T, rtol=1e-12)
        assert len(thin(panel)) == 2

    @pytest.mark.thorough
    def test_three_marks_differ_without_colour(self, known):
        panel = plot_effect(known, "x0", style="paper")[0]
        assert len(dashed(panel)) == len(thin(panel)) == 2
        assert len(labelled(panel, plots_marks.BAND).get_paths()) == 1
        band = labelled(panel, "90 % band")
        assert band.get_linewidth() <= 0.5 * labelled(panel, plots_marks.CURVE).get_linewidth()

    @pytest.mark.thorough
    def test_intervals_that_do_not_hold_the_estimate(self, known):
        """As bootstrap intervals may: nothing is reflected, nothing raised."""
        moved = known.assign(
            curve_ci=known["curve_ci"] + 3, effect_ci=known["effect_ci"] + 50
        ).assign_coords(ci_bound=["lower", "upper"])
        for name in ("curve_ci", "effect_ci"):
            moved[name].attrs = known[name].attrs
        upper, lower, *_ = plot_effect(moved, "x0")
        row = moved.sel(feature="x0")
        drawn = [line.get_ydata() for line in dashed(upper)]
        np.testing.assert_allclose(drawn, row["curve_ci"].T, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(areas(labelled(lower, "80 %"))[1], row["effect_ci"], rtol=1e-12)

    @pytest.mark.thorough
    @pytest.mark.parametrize("name", ["curve_ci", "curve_band"])
    def test_one_scale_holds_them(self, known, name):
        wide = known.assign({name: known[name].copy(data=50 * known[name].values)})
        bottom, top = plot_effects(wide)[0].get_ylim()
        assert bottom < wide[name].min()
        assert top > wide[name].max()

    def test_half_widths_are_straight_in_linear_bins(self, rng):
        x = rng.uniform(0, 1, (300, 1))
        g = 20 * x - 4 + rng.normal(0, 0.4, (300, 1))
        local = rs.local_effects(None, x, jacobian=g)
        effect = rs.rhale(local, bins=rs.AdaptiveBins(), weighting="rows")
        known = rs.confband(rs.confint(effect), n_draws=500, rng=0)
        row = one_feature(known, 0)
        assert (row["slope"].values != 0).all()
        panel = plot_effect(known, 0)[0]
        at, curve = labelled(panel, plots_marks.CURVE).get_data()
        for name, drawn in (
            ("curve_ci", [line.get_ydata() for line in dashed(panel)]),
            ("curve_band", thin(panel)),
        ):
            for end, line in zip(row[name].values.T, drawn, strict=True):
                half = np.interp(at, row["edge_value"], end - row["curve"].values)
                np.testing.assert_allclose(line, curve + half, rtol=1e-12, atol=1e-12)

    @pytest.mark.thorough
    def test_legend_names_everything(self, local, known):
        upper, *_ = plot_effect(known, "x0", local)
        assert [label.replace("\n", " ") for label in legend_of(upper.figure)] == [
            "average effect",
            "80 % interval, pointwise, model as given",
            "90 % band of the same, simultaneous over the axis",
            "10, 50, 90 % of the rows in the bin",
        ]
        upper, *_ = plot_effect(known, "x0", style="paper")
        assert "± heterogeneity\n(comonotone)" in legend_of(upper.figure)

    @pytest.mark.thorough
    def test_constant_feature_and_empty_bins(self, known):
        for panel in plot_effect(known, "flat"):
            assert not panel.lines
        x = np.array([0.0, 0.1, 0.2, 0.7, 0.8, 1.0])
        _, gap = given(x, [1.0, 2, 3, 4, 5, 6], [0, 0.25, 0.5, 1], centering="start")
        upper, lower, *_ = plot_effect(rs.confband(gap, n_draws=500, rng=0), 0)
        bins = [[0, 0.25], [0.5, 1]]
        assert areas(labelled(lower, "95 % interval"))[0].tolist() == bins
        band = np.array(labelled(lower, "95 % band").get_segments())
        assert band[:, :, 0].tolist() == [*bins, *bins]
        assert np.isnan(thin(upper)).any(axis=0).tolist() == [False, False, True, True]
        upper.figure.draw_without_rendering()


@pytest.fixture(scope="module")
def boot(local, effect):
    return rs.bootstrap(local, effect, n_resamples=40, rng=0, progress=False)


class TestForest:
    """One number a feature."""

    @staticmethod
    def points(ax):
        line = labelled(ax, plots_marks.ESTIMATE)
        return np.column_stack(line.get_data())

    @staticmethod
    def spans(ax):
        (collection,) = next(
            handle
            for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
            if plots_marks.EACH in label
        ).lines[2]
        return np.array([segment[:, 0] for segment in collection.get_segments() if len(segment)])

    @staticmethod
    def names(ax):
        return [label.get_text() for label in ax.get_yticklabels()]

    def order(self, values):
        """Names of features, the largest first; the constant one last."""
        size = np.abs(values.sel(feature=["x0", "x1", "x2"]))
        return [str(name) for name in size.sortby(-size)["feature"].values]

    @pytest.mark.thorough
    def test_largest_above_with_intervals_of_standard_errors(self, effect):
        panel = plot_forest(effect, level=0.9)
        effect = rs.std_error(effect)
        order = self.order(effect["average_effect"])
        names = self.names(panel)
        assert [name.split(" ")[0] for name in names] == [*order, "flat"]
        assert panel.get_ylim()[0] > panel.get_ylim()[1]
        row = effect.sel(feature=order)
        np.testing.assert_array_equal(self.points(panel)[:3, 0], row["average_effect"])
        expected = stats.t.interval(0.9, 299, row["average_effect"], row["average_effect_se"])
        np.testing.assert_allclose(self.spans(panel), np.transpose(expected), rtol=1e-12)
        assert (
            "90 % interval of each feature:\nstandard errors, Student's t, model as given"
            in legend_of(panel.figure)
        )
        assert [text.get_text() for text in panel.texts] == ["no value"]
        assert panel.texts[0].xy[1] == 3

    @pytest.mark.thorough
    def test_intervals_that_are_there_come_first(self, effect):
        known = rs.confint(effect, level=0.8)
        panel = plot_forest(known, level=0.8)
        expected = known["average_effect_ci"].sel(feature=self.order(known["average_effect"]))
        np.testing.assert_allclose(self.spans(panel), expected, rtol=1e-12)
        assert any("Student" in label for label in legend_of(panel.figure))
        # Of another level: those of standard errors.
        plain = self.spans(plot_forest(effect))
        np.testing.assert_array_equal(self.spans(plot_forest(known)), plain)

    def test_sizes_with_their_intervals(self, effect, boot):
        sizes = rs.effect_sizes(effect, boot, level=0.9)
        panel = plot_forest(sizes, "importance", level=0.9)
        row = sizes.sel(feature=self.order(sizes["importance"]))
        np.testing.assert_array_equal(self.points(panel)[:3, 0], row["importance"])
        np.testing.assert_allclose(self.spans(panel), row["importance_ci"], rtol=1e-12)
        with pytest.raises(ValueError, match=r"level must be 0\.9, .* 'importance' .*; got 0\.95"):
            plot_forest(sizes, "importance")

    def test_replicates_with_their_chains(self, boot):
        panel = plot_forest(boot, "importance", level=0.8)
        draws = boot["importance"].stack(replicate=("chain", "draw"))
        order = self.order(draws.median("replicate"))
        expected = draws.sel(feature=order).quantile([0.1, 0.9], "replicate").T
        np.testing.assert_allclose(self.spans(panel), expected, rtol=1e-12)
        middle = labelled(panel, plots_marks.REPLICATES).get_xdata()
        np.testing.assert_allclose(middle[:3], draws.sel(feature=order).median("replicate"))
        marks = np.column_stack(labelled(panel, plots_marks.CHAIN).get_data()).reshape(4, 4, 2)
        chains = boot["importance"].sel(feature=order).median("draw").T
        np.testing.assert_allclose(marks[:3, :, 0], chains)
        assert np.isnan(marks[3, :, 0]).all()
        assert plots_marks.CHAIN not in legend_of(plot_forest(boot.isel(chain=[0]), "aled").figure)

    @pytest.mark.thorough
    def test_units_are_those_of_the_numbers(self, effect, boot):
        panel = plot_forest(boot, "heterogeneity_output")
        assert (
            panel.get_xlabel()
            == "heterogeneity times the standard deviation of the feature\n[mmHg]"
        )
        panel = plot_forest(effect)
        assert panel.get_xlabel() == "average effect over the rows"
        assert "x0 [mmHg per mg]" in self.names(panel)
        assert "x1" in self.names(panel)
        same = effect.assign_coords(feature_units=("feature", ["m"] * 4))
        assert plot_forest(same).get_xlabel() == "average effect over the rows [mmHg per m]"

    def test_given_axes(self, effect):
        _, ax = plt.subplots()
        assert plot_forest(effect, ax=ax) is ax
        with pytest.raises(TypeError, match="ax must be 1 .*; got str"):
            plot_forest(effect, ax="axes")

    def test_numbers_without_an_interval(self, effect):
        with pytest.raises(ValueError, match="'heterogeneity_output' without one. Call confint"):
            plot_forest(effect, "heterogeneity_output")
        with pytest.raises(ValueError, match="'average_effect' without one"):
            plot_forest(effect.drop_vars("moments"))
        with pytest.raises(ValueError, match="'aled' without one"):
            plot_forest(rs.effect_sizes(effect), "aled")

    def test_something_else(self, effect, boot):
        with pytest.raises(
            ValueError, match="'importance' is not in it. Variables with .*: average_effect"
        ):
            plot_forest(effect, "importance")
        with pytest.raises(ValueError, match="'curve' is over feature, edge"):
            plot_forest(effect, "curve")
        with pytest.raises(ValueError, match="'effect' is over .*bin.*: average_effect, "):
            plot_forest(boot, "effect")
        with pytest.raises(TypeError, match="effect must be a Dataset .*; got DataFrame"):
            plot_forest(pd.DataFrame())
        with pytest.raises(ValueError, match="level"):
            plot_forest(effect, level=95)
        assert plt.get_fignums() == []


class TestEdges:
    """Edges that replicates chose."""

    @pytest.fixture(scope="class")
    @staticmethod
    def rebinned(local):
        return rs.bootstrap(
            local, rs.rhale(local), n_resamples=20, rebin=True, n_grid=21, rng=0, progress=False
        )

    def test_bars_are_the_shares_of_replicates(self, rebinned):
        edges, number = plot_edges(rebinned, "x0")
        row = rebinned.sel(feature="x0")
        (steps,) = edges.patches
        heights, grid, _ = steps.get_data()
        np.testing.assert_array_equal(heights, row["edge_frequency"])
        np.testing.assert_array_equal(grid, row["grid_value"])
        assert edges.get_xlabel() == "x0 [mg]"
        values, count = np.unique(row["n_bins"], return_counts=True)
        middle = [bar.get_x() + bar.get_width() / 2 for bar in number.patches]
        np.testing.assert_allclose(middle, values)
        np.testing.assert_allclose([bar.get_height() for bar in number.patches], count / 20)
        assert [text.get_text() for text in number.texts] == ["20 replicates"]

    def test_one_bin_always(self, rebinned):
        n_bins, frequency = rebinned["n_bins"].copy(), rebinned["edge_frequency"].copy()
        n_bins[...], frequency[...] = 1.0, 0.0
        edges, number = plot_edges(rebinned.assign(n_bins=n_bins, edge_frequency=frequency), 0)
        assert [text.get_text() for text in edges.texts] == [plots_marks.ONE_BIN]
        assert [bar.get_height() for bar in number.patches] == [1.0]
        assert edges.get_ylim()[1] >= plots_bins.EDGE_SHARE

    def test_constant_feature_and_given_axes(self, rebinned):
        _, pair = plt.subplots(1, 2)
        assert list(plot_edges(rebinned, "flat", pair)) == list(pair)
        for panel in pair:
            assert [text.get_text() for text in panel.texts] == [plots_marks.CONSTANT]
            assert not panel.patches

    def test_fixed_bins_have_no_edges_to_show(self, boot, rebinned):
        with pytest.raises(ValueError, match=r"fixed or not counted.*rebin=True\)"):
            plot_edges(boot, "x0")
        with pytest.raises(TypeError, match="boot must be the Dataset .*; got NoneType"):
            plot_edges(None, "x0")
        with pytest.raises(KeyError, match="got 'age'"):
            plot_edges(rebinned, "age")
        _, axes = plt.subplots(3)
        with pytest.raises(ValueError, match="for edges and for number of bins; got 3"):
            plot_edges(rebinned, "x0", axes)


class TestCompare:
    """Differences of curves."""

    @pytest.fixture
    def comparison(self, effect):
        table = pd.DataFrame(
            np.random.default_rng(5).uniform(0, 1, (200, 3)), columns=["x0", "x1", "x2"]
        ).assign(flat=7.0)
        other = rs.local_effects(model, table, features=["x0", "x1", "x2", "flat"])
        return rs.compare(
            effect, rs.rhale(other, bins=rs.EqualWidthBins(3)), level=0.9, n_draws=500, rng=0
        )

    @pytest.mark.thorough
    def test_difference_has_its_interval_and_its_band(self, comparison):
        panel = plot_compare(comparison, "x0")
        row = comparison.sel(feature="x0")
        row = row.isel(grid=row["grid_value"].notnull().values)
        line = labelled(panel, plots_marks.DIFFERENCE)
        np.testing.assert_array_equal(line.get_xdata(), row["grid_value"])
        np.testing.assert_array_equal(line.get_ydata(), row["difference"])
        drawn = [end.get_ydata() for end in dashed(panel)]
        np.testing.assert_array_equal(drawn, row["difference_ci"].T)
        np.testing.assert_array_equal(thin(panel), row["difference_band"].T)
        assert any(np.all(np.asarray(line.get_ydata()) == 0) for line in panel.lines)
        assert panel.get_xlabel() == "x0 [mg]"
        assert panel.get_ylabel().startswith("effect on pressure: a less b")
        assert [label.replace("\n", " ") for label in legend_of(panel.figure)] == [
            "a less b",
            "90 % interval, pointwise, model as given: difference of the curves",
            "90 % band of the same, simultaneous over the axis",
        ]

    @pytest.mark.parametrize(
        ("p", "adjust", "said"),
        [
            (0.25, "none", "p = 0.25"),
            (0.0123, "none", "p = 0.012"),
            (1e-5, "holm", "p < 0.001, adjusted (holm) < 0.001"),
            (0.03, "fdr_bh", "p = 0.030, adjusted (fdr_bh) 0.030"),
        ],
    )
    def test_the_test_is_told(self, comparison, p, adjust, said):
        for name in ("p_value", "p_value_adjusted"):
            comparison[name][:] = p
        comparison.attrs["adjust"] = adjust
        (note,) = plot_compare(comparison, 0).texts
        assert note.get_text() == f"no difference between the curves: {said}"

    def test_feature_without_a_common_range_and_given_axes(self, comparison):
        """A constant one."""
        _, ax = plt.subplots()
        assert plot_compare(comparison, "flat", ax) is ax
        assert [text.get_text() for text in ax.texts] == [plots_marks.NO_RANGE]

    def test_something_else(self, comparison, effect):
        with pytest.raises(ValueError, match="got effects in bins, which rhale"):
            plot_compare(effect, "x0")
        with pytest.raises(ValueError, match="this one has no feature, difference"):
            plot_compare(xr.Dataset(), "x0")
        with pytest.raises(TypeError, match="got int"):
            plot_compare(3, "x0")
        with pytest.raises(KeyError, match="got 'age'"):
            plot_compare(comparison, "age")


@pytest.mark.thorough
def test_pictures_leave_the_style_alone(local, effect, boot):
    """And their arguments: see `tests.fuzz`."""
    before = dict(mpl.rcParams)
    plot_effect(rs.confband(rs.confint(effect), n_draws=500, rng=0), "x0", local)
    plot_effects(effect)
    plot_bins(effect, local, "x0")
    plot_forest(boot, "aled")
    plot_compare(rs.compare(effect, effect, rng=0), "x0")
    assert dict(mpl.rcParams) == before


class TestArviZ:
    """Replicates are read by ArviZ as they are."""

    def test_summary(self, boot):
        numbers = boot[["average_effect", "importance"]].sel(feature=["x0", "x1"])
        table = arviz.summary(numbers)
        for name in numbers.data_vars:
            for feature in ("x0", "x1"):
                mean = float(numbers[name].sel(feature=feature).mean())
                found = float(table.loc[f"{name}[{feature}]", "mean"])
                assert found == pytest.approx(mean, rel=0.1, abs=0.01)  # as it rounds them

    @pytest.mark.thorough
    def test_all_of_them(self, table):
        """users.md: "Missing core dims"; what has no replicates is a coordinate."""
        model = lambda X: X["x0"] * X["x1"] + X["x0"] ** 2  # noqa: E731
        X = table[["x0", "x1"]]
        local = rs.local_effects(model, X)
        effect = rs.rhale(local, bins=rs.EqualWidthBins(3))
        curves = rs.ice(model, X, n_grid=4)

        def fit(rows):
            return rs.rhale(rs.local_effects(model, rows), bins=rs.EqualWidthBins(2))

        options = {"n_resamples": 16, "rng": 0, "progress": False}
        boots = {
            "fixed": rs.bootstrap(local, effect, **options),
            "rebin": rs.bootstrap(local, effect, rebin=True, n_grid=5, **options),
            "profile": rs.bootstrap(curves, curves, **options),
            "refit": rs.bootstrap_refit(fit, X, n_grid=5, n_jobs=1, **options),
        }
        for name, boot in boots.items():
            with warnings.catch_warnings():
                # Replicates of what is known exactly do not vary.
                warnings.simplefilter("ignore", RuntimeWarning)
                # ArviZ 1 takes no coordinates over two dimensions.
                means = arviz.summary(boot.reset_coords(drop=True), round_to="none")["mean"]
            for variable, draws in boot.data_vars.items():
                expected = draws.mean(("chain", "draw"), skipna=False).values.ravel()
                rows = [row for row in means.index if str(row).partition("[")[0] == variable]
                np.testing.assert_allclose(means[rows], expected, rtol=1e-9, err_msg=name)
        assert boots["refit"]["curve_estimate"].notnull().all()

    @pytest.mark.thorough
    def test_forest(self, boot):
        arviz.plot_forest(boot[["average_effect"]].sel(feature=["x0", "x1"]))
        labels = [text.get_text() for text in plt.gcf().findobj(mpl.text.Text)]
        for feature in ("x0", "x1"):
            assert any(feature in label for label in labels), labels


def test_many_features_are_the_most_important(rng):
    """users.md: 200 features were 67 lines of panels."""
    X, weight = rng.normal(size=(60, 26)), rng.permutation(26) + 1.0
    local = rs.local_effects(None, X, jacobian=np.tile(weight, (60, 1)))
    effect = rs.rhale(local, bins=rs.EqualWidthBins(1))
    order = np.argsort(-rs.effect_sizes(effect)["importance"].values)
    names = effect["feature"].values
    panels = plot_effects(effect)
    assert [panel.get_title() for panel in panels] == names[order[:24]].tolist()
    note = panels[0].figure.get_supxlabel()
    assert note == ("the 24 most important of 26 features; features= or max_features= draws others")
    panels = plot_effects(effect, max_features=2)
    assert [panel.get_title() for panel in panels] == names[order[:2]].tolist()
    # As many as are asked for by name, or have Axes.
    few = effect.isel(feature=slice(3))
    assert len(plot_effects(few, list(names[:3]), max_features=2)) == 3
    _, axes = plt.subplots(3)
    assert len(plot_effects(few, ax=axes, max_features=2)) == 3
    panels = plot_effects(few, max_features=3)
    assert {panel.get_title() for panel in panels} == {*names[:3]}
    assert panels[0].figure.get_supxlabel() == ""
    bare = rs.rhale(local, bins=rs.EqualWidthBins(1))
    assert len(plot_effects(bare, max_features=3)) == 3
    with pytest.raises(ValueError, match="max_features must be .*got 0"):
        plot_effects(effect, max_features=0)
    profile = rs.pdp(lambda X: X @ weight, X, n_grid=3)
    largest = names[np.argsort(-profile["importance"].values)[:2]]
    panels = plot_effects(profile, max_features=2)
    assert [panel.get_xlabel() for panel in panels] == largest.tolist()
    assert "2 most important of 26" in panels[0].figure.get_supxlabel()


@pytest.mark.thorough
def test_a_forest_has_no_average_over_levels_without_an_order(rng):
    """users.md 4."""
    X = pd.DataFrame({"x": rng.uniform(size=90), "k": pd.Categorical(rng.choice(list("pqr"), 90))})
    levels = {"p": 0.0, "q": 4.0, "r": 1.0}
    effect = rs.ale(lambda X: X["x"] + X["k"].map(levels).astype(float), X)
    for what in ("average_effect", "heterogeneity_output"):
        shown = effect if what == "average_effect" else rs.effect_sizes(effect, _boot_of(effect, X))
        panel = plot_forest(shown, what)
        assert [label.get_text() for label in panel.get_yticklabels()] == ["x", "k"]
        assert [text.get_text() for text in panel.texts] == ["levels without an order"]
    assert not plot_forest(rs.effect_sizes(effect, _boot_of(effect, X)), "importance").texts


def _boot_of(effect, X):
    levels = {"p": 0.0, "q": 4.0, "r": 1.0}
    local = rs.ale_local_effects(lambda X: X["x"] + X["k"].map(levels).astype(float), X)
    return rs.bootstrap(local, effect, n_resamples=20, rng=0, progress=False)


@pytest.mark.thorough
def test_the_interval_beside_the_axis_is_that_of_confint():
    """code.md B6: of five rows without a value, Student's t has four degrees of freedom."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.uniform(size=60), "z": rng.normal(size=60)})
    X.loc[:4, "x"] = np.nan
    local = rs.local_effects(
        lambda X: np.where(X["x"].isna(), X["z"], X["x"]), X, features="x", missing="bin"
    )
    effect = rs.std_error(rs.rhale(local))
    known = rs.confint(effect)
    se, value = float(effect["missing_effect_se"][0]), float(effect["missing_effect"][0])
    expected = stats.t.interval(0.95, 4, value, se)
    np.testing.assert_allclose(known["missing_effect_ci"][0], expected)
    assert "Student" in known["missing_effect_ci"].attrs["method"]
    upper, *_ = plot_effect(effect, "x")
    (line,) = [line for line in upper.lines if np.all(np.asarray(line.get_xdata()) == 1.03)][:1]
    moved = float(effect["missing_curve"][0]) - value
    np.testing.assert_allclose(line.get_ydata(), np.array(expected) + moved)
    # Replicates of the rows say nothing of it.
    boot = rs.bootstrap(local, effect, n_resamples=20, rng=0, progress=False)
    np.testing.assert_allclose(rs.confint(effect, boot)["missing_effect_ci"][0], expected)


# ---------------------------------------------------------------- rows and parameters of a model


class TestParts:
    """Where an interval holds the parameters: light all of it, dark the part of the rows."""

    @pytest.fixture(scope="class", name="fitted")
    @staticmethod
    def _fitted():
        rng = np.random.default_rng(4)
        X = pd.DataFrame({"a": rng.uniform(-1, 1, 250), "b": rng.normal(size=250)})
        X["g"] = pd.Categorical(rng.choice(list("uvw"), 250))
        line = X["a"] + 0.5 * X["a"] * X["b"] + (X["g"] == "v")
        y = rng.binomial(1, 1 / (1 + np.exp(-line)))
        return smf.logit("y ~ a * b + g", X.assign(y=y)).fit(disp=0), X

    @pytest.fixture(scope="class", name="held")
    @staticmethod
    def _held(fitted):
        model, X = fitted
        local = rs.local_effects(model, X, features=["a", "b"])
        effect = rs.rhale(local, bins=rs.EqualWidthBins(3))
        return frozen(rs.std_error(effect, local, model=model, X=X))

    @staticmethod
    def area(panel, label):
        (path,) = labelled(panel, label).get_paths()
        return {tuple(vertex) for vertex in path.vertices.round(9)}

    @staticmethod
    def vertices(x, ends):
        return {(at, end) for both in np.transpose(ends) for at, end in zip(x, both, strict=True)}

    @classmethod
    def at_edges(cls, row, se):
        """Ends of intervals at the edges of cells, where they are not interpolated."""
        student = stats.t.ppf(0.975, row["curve_df"].values)
        half = student * row[f"curve_{se}"].values
        ends = np.column_stack([row["curve"] - half, row["curve"] + half])
        return cls.vertices(row.edges.round(9), ends.round(9))

    @pytest.mark.thorough
    def test_areas_end_where_the_numbers_say(self, held):
        upper, *_ = plot_effect(held, "a")
        row = one_feature(held, "a")
        for label, se in (("95 % interval, pointwise", "se"), ("95 % interval, rows", "se_rows")):
            assert self.at_edges(row, se) <= self.area(upper, label)
        drawn = [line.get_ydata() for line in dashed(upper)]
        for at, end in zip(("min", "max"), np.array(drawn), strict=True):
            assert (
                getattr(end, at)() == getattr(rs.confint(held)["curve_ci"].sel(feature="a"), at)()
            )

    def test_bars_of_the_bins_and_their_part(self, held):
        _, lower, *_ = plot_effect(held, "b")
        row = one_feature(held, "b")
        student = stats.t.ppf(0.975, row["effect_df"].values)
        for label, se in (("95 % interval of the", "se"), ("95 % interval in the", "se_rows")):
            _, ends = areas(labelled(lower, label))
            half = student * row[f"effect_{se}"].values
            expected = np.column_stack([row["effect"] - half, row["effect"] + half])
            np.testing.assert_allclose(ends, expected, rtol=1e-9)
        colours = [
            labelled(lower, label).get_facecolor()[0][:3]
            for label in ("95 % interval of the", "95 % interval in the")
        ]
        assert [tuple(one) for one in colours] == [
            to_rgb(frame.UNCERTAINTY_LIGHT),
            to_rgb(frame.UNCERTAINTY),
        ]

    @pytest.mark.thorough
    def test_the_legend_says_what_each_is(self, held):
        upper, *_ = plot_effect(held, "a")
        texts = [text.replace("\n", " ") for text in legend_of(upper.figure)]
        whole = "95 % interval, pointwise, rows and parameters"
        assert sum(text.startswith(whole) for text in texts) == 1
        assert "95 % interval, rows alone, model as given" in texts
        assert "95 % interval in the bin, rows alone" not in texts
        assert len(texts) == 3
        assert sum("model as given" in text for text in texts) == 1

    @pytest.mark.thorough
    @pytest.mark.parametrize("uncertainty", ["rows", "parameters"])
    def test_errors_of_one_source_have_no_parts(self, fitted, held, uncertainty):
        model, X = fitted
        local = rs.local_effects(model, X, features=["a", "b"])
        effect = rs.std_error(
            rs.rhale(local, bins=rs.EqualWidthBins(3)),
            *(local,),
            model=model,
            X=X,
            uncertainty=uncertainty,
        )
        upper, lower, *_ = plot_effect(effect, "a")
        labels = upper.get_legend_handles_labels()[1] + lower.get_legend_handles_labels()[1]
        said = " ".join(labels).replace("\n", " ")
        assert "rows alone" not in said
        expected = "pointwise, " + ("model as given" if uncertainty == "rows" else "parameters")
        assert expected in said
        assert len(dashed(upper)) == 2

    @pytest.mark.thorough
    def test_panels_of_all_features_hold_both_parts(self, held):
        panels = plot_effects(held)
        low, high = panels[0].get_ylim()
        for panel, name in zip(panels, ("a", "b"), strict=True):
            row = one_feature(held, name)
            assert self.at_edges(row, "se_rows") <= self.area(panel, "95 % interval, rows")
            ends = self.area(panel, "95 % interval, pointwise")
            assert low < min(end for _, end in ends) < max(end for _, end in ends) < high

    def test_levels_have_both_whiskers(self, fitted):
        model, X = fitted
        local = rs.ale_local_effects(model, X, features="g")
        effect = rs.std_error(rs.ale_from_local(local), local, model=model, X=X)
        upper, *_ = plot_effect(effect, "g")
        row = one_feature(effect, 0)
        student = stats.t.ppf(0.975, row["curve_df"].values)
        for label, se in (("95 % interval, pointwise", "se"), ("95 % interval, rows", "se_rows")):
            _, ends = bars(labelled(upper, label))
            half = student * row[f"curve_{se}"].values
            expected = np.column_stack([row["curve"] - half, row["curve"] + half])
            np.testing.assert_allclose(ends, expected, rtol=1e-9)

    @pytest.mark.thorough
    def test_forest(self, held):
        panel = plot_forest(held, level=0.9)
        student = stats.t.ppf(0.95, held["average_effect_df"].values)
        order = np.argsort(-np.abs(held["average_effect"].values))
        for label, se in (("90 % interval of each", "se"), ("90 % interval, rows", "se_rows")):
            (collection,) = labelled(panel, label).lines[2]
            spans = np.array([segment[:, 0] for segment in collection.get_segments()])
            middle = held["average_effect"].values
            half = student * held[f"average_effect_{se}"].values
            expected = np.column_stack([middle - half, middle + half])[order]
            np.testing.assert_allclose(spans, expected, rtol=1e-9)
        assert (
            "90 % interval, rows alone:\nstandard errors, Student's t, model as given"
            in legend_of(panel.figure)
        )

    def test_intervals_by_replicates_are_of_their_own_source(self, fitted, held):
        model, X = fitted
        local = rs.local_effects(model, X, features=["a", "b"])
        boot = rs.bootstrap(local, held, n_resamples=100, rng=0)
        upper, lower, *_ = plot_effect(rs.confint(held, boot), "a")
        labels = upper.get_legend_handles_labels()[1] + lower.get_legend_handles_labels()[1]
        assert not [label for label in labels if "rows alone" in label]


def test_names_without_a_font_are_said(monkeypatch):
    """One line says what to install; with a font there is nothing to say."""
    X = pd.DataFrame(np.random.default_rng(0).uniform(0, 1, (100, 1)), columns=["温度"])
    effect = rs.rhale(lambda X: X["温度"] ** 2, X)
    monkeypatch.setattr(plots_marks, "eastern_fonts", lambda: ())
    with pytest.warns(UserWarning, match="Install Noto Sans CJK"):
        plot_effect(effect, 0)
    monkeypatch.setattr(plots_marks, "eastern_fonts", lambda: ("Noto Sans CJK JP",))
    plot_effect(effect, 0)


def test_long_names_stay_apart():
    """Titles in lines no wider than their panels; of 40 levels as many names as fit, cut within."""
    rng = np.random.default_rng(0)
    names = [f"the number of something rather specific of region {k}" for k in range(3)]
    X = pd.DataFrame(rng.normal(size=(400, 3)), columns=names)
    X["level"] = pd.Categorical(
        [f"department {k} of public works" for k in rng.integers(0, 40, 400)]
    )
    effect = rs.rhale(lambda X: X[names[0]] + X["level"].cat.codes, X, categorical=["level"])
    panels = plot_effects(effect)
    panels[0].figure.draw_without_rendering()
    boxes = [panel.title.get_window_extent() for panel in panels[:3]]
    assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])
    _, lower, *_ = plot_effect(effect, "level")
    lower.figure.draw_without_rendering()
    labels = lower.get_xticklabels()
    assert len(labels) == 40
    assert labels[0].get_text().startswith("department")
    assert "…" in labels[0].get_text()
    heights = [label.get_window_extent() for label in labels]
    assert not any(a.overlaps(b) for a, b in pairwise(heights))
    assert {label.get_rotation() for label in labels} == {90.0}


@pytest.mark.parametrize(("n_levels", "rotation"), [(2, 0.0), (8, 30.0), (40, 90.0)])
def test_long_names_of_the_levels_of_profiles_are_turned_and_cut(n_levels, rotation):
    code = np.arange(400) % n_levels
    X = pd.DataFrame({"level": [f"department {k} of public works" for k in code]})
    panel = rs.plot(rs.ice(lambda X: X["level"].str.len(), X), "level")
    panel.figure.draw_without_rendering()
    labels = panel.get_xticklabels()
    assert {label.get_rotation() for label in labels} == {rotation}
    assert (
        labels[0].get_text()
        == {
            0.0: "department 0\nof public\nworks\n50 %",
            30.0: "department …blic works, 12 %",
            90.0: "department …blic works, 2 %",
        }[rotation]
    )
    if rotation != 30:
        extents = [label.get_window_extent() for label in labels]
        assert not any(a.overlaps(b) for a, b in pairwise(extents))
