"""Pictures of effects: one feature with its bins (the paper's Figure 3b), or all features.

Averages are black, heterogeneity is blue and filled, uncertainty is orange: pointwise dashed or
thick, simultaneous in thin lines. In greyscale the shapes tell them apart.
"""

from __future__ import annotations

import re
import textwrap
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter
from numpy.typing import NDArray

from rhale_stats import meaning
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.by_part import has_gaps
from rhale_stats.category_plots import Ends, draw_levels, draw_shares
from rhale_stats.curves import curve_of, has_cells
from rhale_stats.effects import check_no_other_model, columns, estimation_rows
from rhale_stats.inference import confint, draws_of
from rhale_stats.kinds import PROFILE
from rhale_stats.plot_tools import AVERAGE as AVERAGE
from rhale_stats.plot_tools import HETEROGENEITY as HETEROGENEITY
from rhale_stats.plot_tools import HETEROGENEITY_FILL as HETEROGENEITY_FILL
from rhale_stats.plot_tools import LABEL_LENGTH, draw_missing, upright
from rhale_stats.plot_tools import REFERENCE as REFERENCE
from rhale_stats.plot_tools import UNCERTAINTY as UNCERTAINTY
from rhale_stats.plot_tools import as_array as as_array
from rhale_stats.plot_tools import given_axes as given_axes
from rhale_stats.plot_tools import output_label as output_label
from rhale_stats.plot_tools import style as style
from rhale_stats.profile_data import check_profile
from rhale_stats.profile_plots import plot_profile, plot_profiles
from rhale_stats.schema import (
    EFFECT_VARIABLES,
    check_effect,
    check_local,
    check_one_part,
    effect_at,
    feature_names,
    feature_position,
    in_order,
    is_categorical,
    one_feature,
    refuse_categorical,
    slopes,
    units_of,
    with_units,
)
from rhale_stats.sizes import sizes_of
from rhale_stats.unbiasedness import BIASED, LARGE, TOO_FEW
from rhale_stats.validate import check_count, check_finite, check_level, checked

# Level of the intervals of `confint` where an effect comes without.
LEVEL = 0.95
# So many features are drawn together, the largest.
MOST_FEATURES = 24

# A curve in a linear bin is drawn as so many straight pieces.
PARABOLA_PIECES = 32
# A violin is drawn through so many points, and takes this share of its bin's width.
VIOLIN_POINTS = 512
VIOLIN_WIDTH = 0.9
# Tails that stretch a panel by so much are left outside it, except for the central part.
LONG_TAILS = 2.0
CENTRAL_PART = 0.99
# The rug's grid: finer than print shows. With more ticks than this they would merge.
RUG_POSITIONS = 2000
RUG_TICKS = 400
RUG_CELLS = 200
RUG_HEIGHT = 0.03  # of the panel: less than the margin below the data
# Entries of the legend, down its columns, all of two lines so that its rows are level.
CURVE, BIN = "average effect,\naccumulated", "average effect\nin the bin"
MISSING = "rows without a value,\nwith their interval"
BAND, BIN_SPREAD = "± heterogeneity\n(comonotone)", "± heterogeneity\nin the bin"
AT_LEVEL = "average effect\nat the level"
# Behind what is of the rows alone.
GIVEN = ", model as given"
# Behind their level.
CURVE_INTERVAL, BIN_INTERVAL = "interval, pointwise", "interval of the\naverage in the bin"
CURVE_BAND, BIN_BAND = (
    "band of the same,\nsimultaneous over the axis",
    "band of the bins,\nall at once",
)
VIOLIN = "local effects\nin the bin"
# Those of the picture of bins. With more rows than this points would merge; cells show them.
POINTS, WEIGHED, DENSITY = (
    "local effects",
    "local effects,\nthe larger the more weight",
    "local effects,\ndarker where more rows",
)
EDGES = "edges of bins"
LOSS, CHOSEN = "loss", "chosen:"
POINTS_DRAWN = 3000
DENSITY_CELLS = 80  # along the axis
# Area of a point, in points squared: of the usual one, and of the one with most weight at most.
POINT_AREA, LARGEST_POINT = (2.5, 14.0), 100.0
# Numbers a feature that depend on the order of its levels, and what stands in their place.
OF_THE_ORDER = ("average_effect", "heterogeneity_index", "heterogeneity_output")
NO_VALUE, UNORDERED = "no value", "levels without an order"
# Those of the pictures of sizes and of differences.
ESTIMATE, REPLICATES, CHAIN = "estimate", "median of the replicates", "median of a chain"
EACH = "interval of each feature:"
DIFFERENCE = "a less b"
# Those of the picture of bias, and its marks.
WITHIN, BIN_ERROR = "heterogeneity within,\nsquared", "bin error"
TOTAL, BIN_ERROR_SE = "their sum, the variance\nabout the effect", "± its standard error"
MARKS = {BIASED: "*", LARGE: "**", TOO_FEW: "×"}
LEGEND = (
    *(CURVE, AT_LEVEL, BIN, BAND, BIN_SPREAD),
    *(DIFFERENCE, CURVE_INTERVAL, BIN_INTERVAL, CURVE_BAND, BIN_BAND, VIOLIN),
    *(TOTAL, WITHIN, BIN_ERROR, BIN_ERROR_SE),
    *(POINTS, EDGES, LOSS, CHOSEN),
    *(MISSING,),
    *(ESTIMATE, REPLICATES, EACH, CHAIN),
)
LEGEND_WIDTH = 40
# Marks what is ours in a figure that others may draw in too.
OURS = "rhale_stats"
# A panel shows at least so many times the numerical error, so that it never enlarges noise.
ERRORS_SHOWN = 20

CONSTANT = "constant feature:\nno effect to show"
NO_RANGE = "no range that both curves have:\nno difference to show"
ONE_BIN = "one bin in\nevery replicate"
# The axis of shares of replicates shows at least so much, so that rare edges look rare.
EDGE_SHARE = 0.2


@checked
def plot_effect(
    effect: xr.Dataset,
    feature: str | int,
    local: xr.Dataset | None = None,
    ax: Sequence[Axes] | NDArray[np.object_] | None = None,
) -> NDArray[np.object_]:
    """Effect of one feature: its curve above, its bins below.

    The upper panel shows the curve with a band of plus and minus its heterogeneity and, dashed, a
    pointwise 95 % interval. The lower panel shows the effect of every bin with plus and minus its
    heterogeneity and, as a thicker bar, a 95 % interval; with ``local`` also a violin of the local
    effects in every bin, and a rug of the feature's values. In a linear bin the effect is a sloped
    line, with its bars in the middle. What `confint` or `confband` added is
    drawn as they made it: other intervals in place of these, and simultaneous bands, as thin lines
    along the curve and thin ends of the bars.

    Parameters
    ----------
    effect : Dataset
        What `rhale`, `std_error`, `confint` or `confband` returned, or a profile such as `pdp`,
        which `plot_profile` draws. `confint` adds its intervals where they are missing; where
        it cannot there are none.
    feature : str or int
        Name or number of the feature.
    local : Dataset, optional
        The local effects that ``effect`` was made from. All rows of the estimate are drawn, by
        their weights where they have any.
    ax : pair of Axes, optional
        The upper and the lower panel. By default those of a new figure.

    Returns
    -------
    ndarray of shape (2,)
        The upper and the lower Axes.

    Raises
    ------
    KeyError
        Unknown feature, or one that ``local`` does not have.
    TypeError
        ``effect`` or ``local`` is something else, or ``ax`` is no pair of Axes.
    ValueError
        Another number of Axes than two, or rows of ``local`` that lie in no bin.

    Notes
    -----
    The band is ``curve_std_sum``, the spread of the output when every row keeps its place in all
    bins (comonotone). It says how much the rows differ and does not shrink with their number; the
    intervals and bands of the average do. Of these a pointwise one holds the curve at a given point
    in 95 % of samples, a simultaneous one all of the curve at once.

    Between edges half-widths are straight lines. For the heterogeneity this is exact. Where the bin
    is constant, intervals of standard errors are never too narrow between the edges, because a
    standard error is convex where the curve is linear. In a linear bin they may be, by t
    ``slope_se`` width^2 / 8 at most, where t is the quantile of `confint`.

    A violin is a kernel density estimate from the smallest to the largest local effect of its
    bin, with Silverman's bandwidth, scaled to the bin's width: its area means nothing. Where long
    tails would hide the bins, the panel shows the central 99 % of the local effects, and a note
    says how many are off the scale. The rug is darker where there are more rows, and becomes a
    strip where its ticks would merge.

    In a linear bin the violin is that of the residuals, whose spread is the heterogeneity, and
    follows the line: every local effect is moved along the slope to the middle of the bin.

    Of a categorical feature the upper panel has a bar for every level, with the interval and band
    as whiskers, and the lower one the share of its rows, with their number; ``local`` adds nothing.

    With ``missing="bin"`` a mark beside the axis shows the rows without a value: the curve at the
    median plus the effect of a missing value, with the interval of that effect.

    A bin without rows leaves a gap. A figure has one legend, above its panels; in one of your own
    ``layout="constrained"`` makes room for it.

    References
    ----------
    Gkolemis, Dalamagas, Ntoutsi and Diou (2023), *RHALE: Robust and Heterogeneity-aware
    Accumulated Local Effects*, Figure 3b.

    Silverman (1986), *Density Estimation for Statistics and Data Analysis*, Eq. 3.31.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> local = rs.local_effects(lambda X: 2 * X[:, 0] + 4 * X[:, 0] * X[:, 1], X)
    >>> upper, lower = rs.plot_effect(rs.rhale(local), "x0", local)
    >>> upper.get_ylabel(), lower.get_ylabel()
    ('effect on output', 'd output / d x0')
    """
    if PROFILE.holds(effect):
        return plot_profile(effect, feature, ax)
    effect = check_effect(effect)
    # The others are not drawn.
    effect = with_intervals(effect.isel(feature=[feature_position(effect, feature)]))
    row = one_feature(effect, 0)
    rows = None
    if local is not None:
        rows = rows_of(estimation_rows(check_local(local), effect), row)
    own = ax is None
    panels = None if ax is None else given_axes("ax", ax, 2, "an upper and a lower one")
    if is_categorical(row):
        return _plot_levels(effect, row, panels)
    with style(own=own):
        if panels is None:
            panels = _pair()
        upper, lower = panels
        _label_axes(upper, lower, effect, row)
        if not row.sizes["bin"]:
            for panel in panels:
                say_constant(panel)
                panel.tick_params(left=False, labelleft=False)
            return as_array(panels)
        draw_curve(upper, row)
        _draw_bins(lower, row)
        upper.set_xlim(lower.get_xlim())
        if rows is not None:
            _draw_violins(lower, rows, row)
        _keep_noise_small(upper, lower, row)
        if rows is not None:
            draw_rug(lower, rows, row["edge_value"].values)
        draw_legend(panels)
    return as_array(panels)


def _plot_levels(
    effect: xr.Dataset, row: xr.Dataset, panels: list[Axes] | None
) -> NDArray[np.object_]:
    """Bars of the levels above, of their rows below."""
    with style(own=panels is None):
        if panels is None:
            panels = _column([3.6, 1.6])
        upper, lower = panels
        upper.set_ylabel(output_label(effect), parse_math=False)
        lower.set_xlabel(str(row["feature"].values), parse_math=False)
        draw_curve(upper, row)
        draw_shares(lower, row)
        draw_legend(panels)
    return as_array(panels)


@checked
def plot_effects(
    effect: xr.Dataset,
    features: str | int | Sequence[str | int] | None = None,
    *,
    n_columns: int = 3,
    max_features: int = MOST_FEATURES,
    axes: Sequence[Axes] | NDArray[np.object_] | None = None,
) -> NDArray[np.object_]:
    """Curves of all features on a grid, with one y scale.

    Every panel shows the curve with a band of plus and minus its heterogeneity, dashed a pointwise
    95 % interval and, thin, the simultaneous band of `confband`, as the upper panel of
    `plot_effect`, whose notes say what they mean.

    Parameters
    ----------
    effect : Dataset
        What `rhale`, `std_error`, `confint` or `confband` returned, or a profile such as `pdp`,
        which `plot_profile` draws. `confint` adds its intervals where they are missing; where
        it cannot there are none.
    features : name, number, or sequence of them, optional
        Features to draw, in this order. By default all, or the ``max_features`` largest.
    n_columns : int, default 3
        Panels a line of a new figure.
    max_features : int, default 24
        Where ``features`` are not named and there are more of them, those with the largest
        importance are drawn, the largest first: the standard deviation of the curve over the rows.
        A note on the figure says so.
    axes : sequence of Axes, optional
        One a feature. By default those of a new figure.

    Returns
    -------
    ndarray of shape (n_features,)
        The Axes, one a feature.

    Raises
    ------
    KeyError
        Unknown feature.
    TypeError
        ``effect`` is something else, or ``axes`` are no Axes.
    ValueError
        Another number of Axes than of features, no feature, ``n_columns`` or ``max_features`` below
        1.

    References
    ----------
    Gkolemis, Dalamagas, Ntoutsi and Diou (2023), *RHALE: Robust and Heterogeneity-aware
    Accumulated Local Effects*, Figure 3b (upper panel).

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> local = rs.local_effects(lambda X: 2 * X[:, 0] + 4 * X[:, 0] * X[:, 1], X)
    >>> panels = rs.plot_effects(rs.rhale(local))
    >>> [panel.get_title() for panel in panels]
    ['x0', 'x1']
    """
    check_count("n_columns", n_columns, 1)
    check_count("max_features", max_features, 1)
    profile = PROFILE.holds(effect)
    effect = check_profile(effect) if profile else check_effect(effect)
    limited = features is None and axes is None and effect.sizes["feature"] > max_features
    if limited:
        features = _largest(effect, max_features)
    if profile:
        drawn = plot_profiles(effect, features, n_columns=n_columns, axes=axes)
        if limited:
            _say_limited(drawn, effect)
        return drawn
    if features is None:
        features = feature_names(effect)
    elif isinstance(features, str | int | np.integer):
        features = [features]
    positions = [feature_position(effect, feature) for feature in features]
    if not positions:
        raise ValueError("features must name at least one feature; got none.")
    shown = with_intervals(effect.isel(feature=positions))
    rows = [one_feature(shown, number) for number in range(len(positions))]
    panels = None
    if axes is not None:
        panels = given_axes("axes", axes, len(rows), "one a feature")
    own = panels is None
    with style(own=own):
        if panels is None:
            panels = grid_of_panels(len(rows), min(n_columns, len(rows)))
        limits = common_limits(rows)
        for panel, row, position in zip(panels, rows, positions, strict=True):
            panel.set_title(str(row["feature"].values), parse_math=False)
            units = units_of(effect, position)
            panel.set_xlabel(f"[{units}]" if units else "", parse_math=False)
            if not own:
                panel.set_ylabel(output_label(effect), parse_math=False)
            if row.sizes["bin"]:
                draw_curve(panel, row)
            else:
                say_constant(panel)
            if limits is not None:
                panel.set_ylim(*limits)
        if own:
            size = panels[0].yaxis.label.get_fontsize()
            panels[0].figure.supylabel(output_label(effect), fontsize=size, parse_math=False)
        if limited:
            _say_limited(panels, effect)
        draw_legend(panels)
    return as_array(panels)


def _largest(effect: xr.Dataset, most: int) -> list[str]:
    """Features whose curves vary most over the rows; without moments, over their edges."""
    if "importance" in effect:
        size = effect["importance"].values
    else:
        rows = [one_feature(effect, number) for number in range(effect.sizes["feature"])]
        size = np.array(
            [
                sizes_of(row)["importance"] if "x_variance" in row else float(row["curve"].std())
                for row in rows
            ]
        )
    order = np.argsort(-np.nan_to_num(size, nan=-1.0), kind="stable")
    return [feature_names(effect)[position] for position in order[:most]]


def _say_limited(panels: Sequence[Axes] | NDArray[np.object_], effect: xr.Dataset) -> None:
    """Below a figure, that not all features are drawn."""
    panels[0].figure.supxlabel(
        f"the {len(panels)} most important of {effect.sizes['feature']} features (max_features)",
        fontsize="small",
    )


@checked
def plot_bins(
    effect: xr.Dataset,
    local: xr.Dataset,
    feature: str | int,
    ax: Axes | Sequence[Axes] | NDArray[np.object_] | None = None,
) -> NDArray[np.object_]:
    """Local effects of the rows against the feature, with its bins and what they estimate.

    Vertical lines are the edges. The other lines are the effect of every bin, sloped where it is
    linear, with a band of plus and minus its heterogeneity. Where bins fit well, points lie on both
    sides of their line all along it. Where numbers of bins were compared, a second panel shows the
    loss of each, with the chosen one.

    Parameters
    ----------
    effect : Dataset
        What `rhale` returned.
    local : Dataset
        The local effects that ``effect`` was made from. With honest bins the rows of the estimate
        are drawn, not those that chose the edges.
    feature : str or int
        Name or number of the feature.
    ax : Axes or pair of Axes, optional
        One; or two, for bins and loss, where ``effect`` has a ``bin_loss``. By default those of a
        new figure.

    Returns
    -------
    ndarray of shape (1,) or (2,)
        The Axes.

    Raises
    ------
    KeyError
        Unknown feature, or one that ``local`` does not have.
    TypeError
        ``effect`` or ``local`` is something else, or ``ax`` are no Axes.
    ValueError
        Another number of Axes, or rows of ``local`` that lie in no bin.

    Notes
    -----
    Every row is drawn. Up to 3000 are points, whose area is the weight where rows have weights;
    more are hexagonal cells, darker where they hold more rows or weight. Where long tails would
    hide the bins, the panel shows the central 99 % of the local effects, and a note says how many
    are off the scale. A bin without rows has edges only, one of a single row no band.

    Numbers of bins that were not allowed, because a bin had too few rows, have no loss; a note says
    how many there are.

    References
    ----------
    Gkolemis et al. (2023), *RHALE*, Eq. 10 and 11; note of June 2021, *Idea in bullets*, section 3.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> local = rs.local_effects(lambda X: X[:, 0] ** 3 + X[:, 0] * X[:, 1], X)
    >>> (panel,) = rs.plot_bins(rs.rhale(local), local, "x0")
    >>> panel.get_ylabel()
    'd output / d x0'
    >>> bins, loss = rs.plot_bins(rs.rhale(local, bins=rs.BestEqualWidthBins()), local, "x0")
    >>> loss.get_xlabel()
    'number of bins'
    """
    row = one_feature(check_effect(effect), feature)
    refuse_categorical(row, "plot_bins")
    rows = rows_of(estimation_rows(check_local(local), effect), row)
    n_panels = 2 if "bin_loss" in effect else 1
    panels = None
    if ax is not None:
        which = "for bins and for loss" if n_panels == 2 else "one"
        panels = given_axes("ax", [ax] if isinstance(ax, Axes) else ax, n_panels, which)
    with style(own=ax is None):
        if panels is None:
            panels = _column([3.6, 2.4][:n_panels])
        _label_bins(panels[0], effect, row)
        if n_panels == 2:
            panels[1].set_xlabel("number of bins")
            units = str(effect.attrs.get("output_units", ""))
            panels[1].set_ylabel(upright("loss", units), parse_math=False)
        if rows is None:
            for panel in panels:
                say_constant(panel)
                panel.tick_params(left=False, labelleft=False)
            return as_array(panels)
        _draw_rows(panels[0], rows, row)
        if n_panels == 2:
            _draw_loss(panels[1], row)
        draw_legend(panels)
    return as_array(panels)


def _column(heights: list[float]) -> list[Axes]:
    figure, panels = plt.subplots(
        len(heights),
        figsize=(7.0, sum(heights)),
        height_ratios=heights,
        squeeze=False,
        layout="constrained",
    )
    sns.despine(fig=figure)
    return list(panels[:, 0])


def _draw_rows(panel: Axes, rows: RowsInBins, row: xr.Dataset) -> None:
    """Rows as points or density, edges, and the piecewise mean with its band."""
    edges = row["edge_value"].values
    span = np.ptp(edges)
    room = np.diff(edges).min() / span * panel.get_window_extent().width * 72 / panel.figure.dpi
    panel.set_xlim(edges[0] - 0.02 * span, edges[-1] + 0.02 * span)
    _draw_pieces(panel, row, np.clip(0.05 * room, 0.2, 0.8))
    bins = panel.get_ylim()
    many = len(rows.x) > POINTS_DRAWN
    if many:
        panel.update_datalim(np.column_stack([rows.x, rows.local_effect]))
    else:
        _draw_points(panel, rows)
    panel.autoscale_view(scalex=False)
    off_scale = _shorten_tails(panel, rows, bins)
    if off_scale:
        _say_off_scale(panel, off_scale)
    _enlarge(panel, ERRORS_SHOWN * _error(row))
    if many:
        limits = panel.get_ylim()
        _draw_density(panel, rows)
        panel.set_ylim(limits)
    lines = panel.vlines(
        edges,
        0,
        1,
        transform=panel.get_xaxis_transform(),
        colors=REFERENCE,
        linewidth=np.clip(0.05 * room, 0.2, 0.7),
        zorder=2.2,
        label=EDGES,
    )
    lines.set_gid(OURS)


def _draw_pieces(panel: Axes, row: xr.Dataset, line: float) -> None:
    """The effect of every bin, and plus and minus its heterogeneity."""
    row = row.isel(bin=row["effect"].notnull().values)
    ends = _draw_averages(panel, row, linewidth=1.8)
    known = row["heterogeneity"].notnull().values
    spread = np.zeros((known.sum(), 2, 2))  # (bin, end, coordinate), as the ends
    spread[:, :, 1] = row["heterogeneity"].values[known, None]
    below, above = ends[known] - spread, ends[known] + spread
    band = PolyCollection(
        list(np.concatenate([below, above[:, ::-1]], axis=1)),
        facecolors=to_rgba(HETEROGENEITY, 0.22),
        edgecolors=HETEROGENEITY,
        linewidths=line,
        zorder=3,
    )
    if known.any():
        band.set_label(BIN_SPREAD)
        panel.add_collection(band)
    panel.autoscale_view(scalex=False)


def _draw_averages(panel: Axes, row: xr.Dataset, linewidth: float) -> FloatArray:
    """A line for the effect of every bin; its ends, (bin, end, coordinate)."""
    bins = np.arange(row.sizes["bin"])
    ends = np.stack(
        [
            np.column_stack([row[end].values, effect_at(row, row[end].values, bins)])
            for end in ("bin_left", "bin_right")
        ],
        axis=1,
    )
    lines = LineCollection(
        list(ends), colors=AVERAGE, linewidths=linewidth, capstyle="butt", zorder=4, label=BIN
    )
    panel.add_collection(lines)
    return ends


def _draw_points(panel: Axes, rows: RowsInBins) -> None:
    usual = float(np.clip(4000 / len(rows.x), *POINT_AREA))
    share = rows.weight / rows.weight.mean()
    weighed = bool((share != share[0]).any())
    panel.scatter(
        rows.x,
        rows.local_effect,
        s=share * min(usual, LARGEST_POINT / share.max()),
        color="0.25",
        alpha=0.6,
        linewidths=0,
        zorder=3.5,
        label=WEIGHED if weighed else POINTS,
    )


def _draw_density(panel: Axes, rows: RowsInBins) -> None:
    """Rows in hexagonal cells over the panel; the square root keeps thin tails visible."""
    box = panel.get_window_extent()
    low, high = rows.x.min(), rows.x.max()
    n_high = max(int(DENSITY_CELLS * box.height / box.width / np.sqrt(3)), 2)
    cells = panel.hexbin(
        rows.x,
        rows.local_effect,
        rows.weight,
        reduce_C_function=np.sum,
        gridsize=(DENSITY_CELLS, n_high),
        extent=(low, high, *panel.get_ylim()),
        linewidths=0.1,
        zorder=2,
    )
    weight = np.asarray(cells.get_array())
    cells.set_array(None)
    cells.set_facecolor(_shades(weight))
    cells.set_edgecolor("face")
    cells.set_label(DENSITY)


def _draw_loss(panel: Axes, row: xr.Dataset) -> None:
    """The loss of every number of bins that was allowed, and the chosen one."""
    tried, loss = row["n_bins_tried"].values, row["bin_loss"].values
    allowed = np.isfinite(loss)
    panel.plot(
        tried[allowed],
        loss[allowed],
        color=HETEROGENEITY,
        marker="o",
        markersize=3,
        linewidth=0.8,
        label=f"{LOSS} of so many bins",
        gid=OURS,
    )
    # Few bins differ most: from 1 to 2 as much of the axis as from 50 to 100.
    panel.set_xscale("log")
    panel.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    panel.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    panel.xaxis.set_minor_formatter(NullFormatter())
    chosen = int(row["n_bins"])
    panel.plot(
        [chosen],
        loss[tried == chosen],
        color=AVERAGE,
        marker="D",
        markersize=6,
        linestyle="none",
        zorder=3,
        label=f"{CHOSEN} {chosen}",
    )
    if not allowed.all():
        _note(panel, f"{(~allowed).sum()} of {len(tried)} numbers of bins leave too few rows")


@checked
def plot_bias(check: xr.Dataset, feature: str | int, ax: Axes | None = None) -> Axes:
    """What the variance of the local effects is made of, bin by bin: heterogeneity and bin error.

    The filled part of a bin is the squared heterogeneity within, the hatched part above it the
    bin error, the line their sum, sigma2_star: the variance about the effect in the bin, in a
    linear bin about its line. A whisker is the sum plus and minus the standard error of the bin
    error. A star marks bins that the test calls biased, two stars those whose bias exceeds the
    standard error of the heterogeneity, a cross those with too few rows to test.

    Parameters
    ----------
    check : Dataset
        What `check_unbiased` returned.
    feature : str or int
        Name or number of the feature.
    ax : Axes, optional
        By default that of a new figure.

    Returns
    -------
    Axes

    Raises
    ------
    KeyError
        Unknown feature.
    TypeError
        ``check`` is no Dataset, or ``ax`` no Axes.
    ValueError
        ``check`` holds no check.

    Notes
    -----
    Where chance makes the estimated bin error negative, the line lies inside the filled part.

    References
    ----------
    Gkolemis et al. (2023), *RHALE*, Theorem 1.

    Examples
    --------
    >>> import rhale_stats as rs
    >>> example = rs.simulate.Quadratic()
    >>> X = example.sample(2000, rng=0)
    >>> local = rs.local_effects(None, X, jacobian=example.jacobian, features="x1")
    >>> check = rs.check_unbiased(local, rs.rhale(local, bins=rs.EqualWidthBins(4)))
    >>> rs.plot_bias(check, "x1").get_xlabel()
    'x1'
    """
    check = check_effect(check, "check", "check_unbiased(local, effect)")
    if "verdict" not in check:
        raise ValueError(
            "check must be what check_unbiased(local, effect) returned; this one has no verdict."
        )
    row = one_feature(check, feature)
    panels = None if ax is None else given_axes("ax", [ax], 1, "one")
    with style(own=ax is None):
        if panels is None:
            figure, panel = plt.subplots(figsize=(7.0, 3.6), layout="constrained")
            sns.despine(fig=figure)
        else:
            panel = panels[0]
        name = str(row["feature"].values)
        panel.set_xlabel(with_units(name, units_of(check, name)), parse_math=False)
        panel.set_ylabel("variance of local effects")
        if not row.sizes["bin"]:
            say_constant(panel)
            panel.tick_params(left=False, labelleft=False)
            return panel
        _draw_bias(panel, row)
        draw_legend([panel])
    return panel


def _draw_bias(panel: Axes, row: xr.Dataset) -> None:
    left, right = row["bin_left"].values, row["bin_right"].values
    width, middle = right - left, (left + right) / 2
    within, total = row["heterogeneity_within"].values ** 2, row["sigma2_star"].values
    se = row["bin_error_se"].values
    panel.bar(
        left,
        within,
        width,
        align="edge",
        color=HETEROGENEITY_FILL,
        edgecolor="white",
        linewidth=0.5,
        label=WITHIN,
    )
    panel.bar(
        left,
        np.maximum(total - within, 0.0),
        width,
        bottom=within,
        align="edge",
        facecolor="none",
        edgecolor=UNCERTAINTY,
        hatch="////",
        linewidth=0,
        label=BIN_ERROR,
    )
    lines = panel.hlines(total, left, right, color=AVERAGE, linewidth=1.4, label=TOTAL)
    lines.set_gid(OURS)
    panel.errorbar(
        middle,
        total,
        se,
        fmt="none",
        ecolor=UNCERTAINTY,
        elinewidth=1.2,
        capsize=2,
        label=BIN_ERROR_SE,
    )
    panel.axhline(0, color=REFERENCE, linewidth=0.6, zorder=0.5, gid=OURS)
    top = np.fmax(np.fmax(total + np.nan_to_num(se), within), 0.0)
    verdict = row["verdict"].values
    for phrase, mark in MARKS.items():
        for k in np.flatnonzero(verdict == phrase):
            panel.annotate(
                mark,
                (middle[k], np.nan_to_num(top[k])),
                (0, 2),
                textcoords="offset points",
                ha="center",
                va="bottom",
                fontsize="small",
            )
    panel.set_xlim(left[0] - 0.02 * (right[-1] - left[0]), right[-1] + 0.02 * (right[-1] - left[0]))
    panel.margins(y=0.12)


@checked
def plot_forest(
    effect: xr.Dataset,
    what: str = "average_effect",
    *,
    level: float = LEVEL,
    ax: Axes | None = None,
) -> Axes:
    """One number a feature with its interval, the largest above.

    Parameters
    ----------
    effect : Dataset
        What `rhale`, `std_error` or `confint` returned; what `effect_sizes` returned; or what
        `bootstrap` or `bootstrap_refit` returned.
    what : str, default "average_effect"
        A number that every feature has: ``average_effect``, ``importance``, ``aled``,
        ``heterogeneity_output``, ...
    level : float, default 0.95
        Of the intervals. Those that ``effect`` has are drawn where their level is this.
    ax : Axes, optional
        By default that of a new figure.

    Returns
    -------
    Axes

    Raises
    ------
    TypeError
        ``effect`` is no Dataset, or ``ax`` no Axes.
    ValueError
        ``what`` is not there, is no number a feature, or has no interval of this level; ``level``
        outside (0, 1).

    Notes
    -----
    Intervals are those of `confint`: its own where ``effect`` has them at this level. From
    replicates they are quantiles over all chains, around the median; faint marks below are the
    medians of the single chains, which agree where there are enough replicates. Replicates of a
    size that cannot be negative lie too high (see `effect_sizes`, whose intervals are corrected for
    that).

    Features are sorted by absolute value. Effects per unit of a feature can be compared only where
    features have one unit; other units stand beside the names. Features without a value are below
    all others: constant ones, and in averages those whose levels have no order of their own.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> local = rs.local_effects(lambda X: 2 * X[:, 0] + 4 * X[:, 0] * X[:, 1], X)
    >>> panel = rs.plot_forest(rs.rhale(local))
    >>> [label.get_text() for label in panel.get_yticklabels()]
    ['x0', 'x1']
    """
    check_level(level)
    forest = _forest(effect, what, level)
    panels = None if ax is None else given_axes("ax", [ax], 1, "one")
    with style(own=ax is None):
        if panels is None:
            height = 1.3 + 0.32 * len(forest.names)
            figure, panel = plt.subplots(figsize=(6.0, height), layout="constrained")
            sns.despine(fig=figure)
        else:
            panel = panels[0]
        _draw_forest(panel, forest)
        draw_legend([panel])
    return panel


class _Forest(NamedTuple):
    """Numbers with their intervals (end, feature), and from replicates (chain, feature).

    Features are sorted. ``nothing`` says why a feature has no number, where it has none, and
    ``made`` of what the intervals are.
    """

    names: list[str]
    point: FloatArray
    interval: FloatArray
    chains: FloatArray | None
    nothing: list[str]
    axis_label: str
    level: float
    made: str


def _forest(effect: object, what: str, level: float) -> _Forest:
    """What is drawn of a number a feature, whoever made it."""
    if not isinstance(effect, xr.Dataset):
        raise TypeError(
            f"effect must be a Dataset that rhale, effect_sizes or bootstrap returned; got "
            f"{type(effect).__name__}."
        )
    effect = in_order(effect)
    if f"{what}_ci" not in effect and "fourth_moment" in effect:
        effect = confint(effect, level=level)
    values = _per_feature(effect, what)
    chains = None
    if "draw" in values.dims:
        draws = draws_of(effect, what)
        with warnings.catch_warnings():
            # A constant feature has no replicates.
            warnings.filterwarnings("ignore", "All-NaN slice", RuntimeWarning)
            low, middle, high = np.nanquantile(
                draws, [(1 - level) / 2, 0.5, (1 + level) / 2], axis=0
            )
            if values.sizes["chain"] > 1:
                of_chains = values.transpose("chain", "draw", "feature").values
                chains = np.nanmedian(of_chains, axis=1)
        made = f"quantiles of the replicates{_given(effect)}"
        point, interval = middle, np.stack([low, high])
    else:
        point = np.asarray(values.values, dtype=np.float64)
        interval, made = _interval_of(effect, what, level)
    if "feature_kind" in effect.coords:
        point = np.where(effect["feature_kind"].values == "constant", np.nan, point)
    unordered = meaning.is_unordered(effect) & (what in OF_THE_ORDER)
    point = np.where(unordered, np.nan, point)
    interval = np.where(np.isnan(point), np.nan, interval)
    order = np.argsort(-np.abs(point), kind="stable")  # NaN comes last
    names, axis_label = _forest_labels(effect, values, what)
    return _Forest(
        [names[position] for position in order],
        point[order],
        interval[:, order],
        None if chains is None else np.where(unordered, np.nan, chains)[:, order],
        [UNORDERED if unordered[position] else NO_VALUE for position in order],
        axis_label,
        level,
        made,
    )


def _per_feature(effect: xr.Dataset, what: str) -> xr.DataArray:
    """One variable, over (feature) or (chain, draw, feature); ``ValueError`` for another."""
    allowed = [{"feature"}, {"chain", "draw", "feature"}]
    numbers = [
        str(name)
        for name, array in effect.data_vars.items()
        if set(array.dims) in allowed and array.dtype.kind == "f"
    ]
    if what not in numbers:
        there = [
            name
            for name in numbers
            if "draw" in effect[name].dims or f"{name}_ci" in effect or f"{name}_se" in effect
        ]
        missing = (
            "is over " + ", ".join(map(str, effect[what].dims)) if what in effect else "is not"
        )
        raise ValueError(
            f"what must be a number a feature that effect holds; {what!r} {missing}"
            f"{'' if what in effect else ' in it'}. With intervals it holds "
            f"{', '.join(there) or 'none'}. Sizes are in effect_sizes(effect, boot)."
        )
    return effect[what]


def _interval_of(effect: xr.Dataset, what: str, level: float) -> tuple[FloatArray, str]:
    """Interval that a Dataset has, or that `confint` makes at this level, and how it was made."""
    other = None
    if f"{what}_ci" in effect:
        other = float(effect[f"{what}_ci"].attrs.get("ci_prob", np.nan))
        if not np.isclose(other, level) and "fourth_moment" in effect:
            again = confint(effect, level=level)
            if f"{what}_ci" in again and np.isclose(again[f"{what}_ci"].attrs["ci_prob"], level):
                effect, other = again, level
        if np.isclose(other, level):
            found = effect[f"{what}_ci"]
            how = str(found.attrs.get("method", "confidence interval"))
            return _ends(found), how + _given(found)
        raise ValueError(
            f"level must be {other:g}, that of the intervals of {what!r} in effect; got {level:g}. "
            f"Make them again with that level, or draw the bootstrap itself."
        )
    raise ValueError(
        f"what must have an interval; effect holds {what!r} without one. Call confint(effect), or "
        f"draw boot = bootstrap(local, effect), or effect_sizes(effect, boot)."
    )


def _forest_labels(effect: xr.Dataset, values: xr.DataArray, what: str) -> tuple[list[str], str]:
    """Names of features and label of the axis; units beside the names where they differ."""
    names = feature_names(effect)
    _, long_name, template = EFFECT_VARIABLES.get(what, ((), what, ""))
    long_name = str(values.attrs.get("long_name", long_name))
    template = str(values.attrs.get("units", template))
    output_units = str(effect.attrs.get("output_units", ""))
    units = [_filled(template, output_units, units_of(effect, name)) for name in names]
    if len(set(units)) == 1:
        return names, with_units(long_name, units[0])
    return [with_units(name, unit) for name, unit in zip(names, units, strict=True)], long_name


def _filled(template: str, output_units: str, feature_units: str) -> str:
    """Units from their description in the schema; empty where they are not known."""
    for part, unit in (("output units", output_units), ("feature unit", feature_units)):
        if part in template:
            if not unit:
                return ""
            template = template.replace(part, unit)
    return "" if template == "1" else template


def _draw_forest(panel: Axes, forest: _Forest) -> None:
    place = np.arange(len(forest.names), dtype=np.float64)
    middle, half = _bar(forest.interval)
    panel.axvline(0, color=REFERENCE, linewidth=0.6, zorder=0.5, gid=OURS)
    panel.errorbar(
        middle,
        place,
        xerr=half,
        fmt="none",
        ecolor=UNCERTAINTY,
        elinewidth=2.2,
        zorder=2,
        label=f"{100 * forest.level:g} % {EACH}\n{forest.made}",
    )
    if forest.chains is not None:
        panel.plot(
            forest.chains.T.ravel(),
            np.repeat(place + 0.25, len(forest.chains)),
            color=REFERENCE,
            marker="|",
            markersize=5,
            linestyle="none",
            zorder=1,
            label=CHAIN,
        )
    panel.plot(
        forest.point,
        place,
        color=AVERAGE,
        marker="o",
        markersize=4,
        linestyle="none",
        zorder=3,
        label=ESTIMATE if forest.chains is None else REPLICATES,
    )
    for number in np.flatnonzero(np.isnan(forest.point)):
        panel.annotate(
            forest.nothing[number],
            (0.5, place[number]),
            xycoords=("axes fraction", "data"),
            ha="center",
            va="center",
            fontsize="small",
            color="0.4",
        )
    labels = [textwrap.fill(name, LABEL_LENGTH) for name in forest.names]
    panel.set_yticks(place, labels, parse_math=False)
    panel.set_ylim(len(place) - 0.4, -0.6)
    panel.set_xlabel(textwrap.fill(forest.axis_label, 2 * LABEL_LENGTH), parse_math=False)


@checked
def plot_edges(
    boot: xr.Dataset,
    feature: str | int,
    ax: Sequence[Axes] | NDArray[np.object_] | None = None,
) -> NDArray[np.object_]:
    """How well the edges of one feature are known: where replicates put them, and how many.

    The first panel shows, for every cell of the grid, the share of replicates with an edge in it;
    the second how many replicates have so many bins. Edges that the data determine well are narrow
    peaks near 1.

    Parameters
    ----------
    boot : Dataset
        What `bootstrap` returned with ``rebin=True``.
    feature : str or int
        Name or number of the feature.
    ax : pair of Axes, optional
        One for the edges, one for the number of bins. By default those of a new figure.

    Returns
    -------
    ndarray of shape (2,)
        The Axes.

    Raises
    ------
    KeyError
        Unknown feature.
    TypeError
        ``boot`` is no Dataset, or ``ax`` is no pair of Axes.
    ValueError
        ``boot`` has fixed bins, or another number of Axes than two.

    Notes
    -----
    The ends of the axis do not count as edges here. Finer grids have lower bars, since each cell
    holds an edge of fewer replicates.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> x = np.random.default_rng(0).uniform(-1, 1, (500, 1))
    >>> local = rs.local_effects(lambda X: np.abs(X[:, 0]), x)
    >>> boot = rs.bootstrap(local, rs.rhale(local), n_resamples=40, rebin=True, rng=0)
    >>> edges, number = rs.plot_edges(boot, "x0")
    >>> edges.get_xlabel(), number.get_xlabel()
    ('x0', 'number of bins')
    """
    _check_result(boot, "boot", "bootstrap(local, effect, rebin=True)")
    if not {"edge_frequency", "n_bins"} <= set(boot.variables) or "draw" not in boot["n_bins"].dims:
        raise ValueError(
            "boot must have edges that were chosen again in every replicate; in this one they are "
            "fixed or not counted. Make it with bootstrap(local, effect, rebin=True)."
        )
    row = boot.isel(feature=feature_position(boot, feature))
    panels = None if ax is None else given_axes("ax", ax, 2, "for edges and for number of bins")
    with style(own=ax is None):
        if panels is None:
            figure, pair = plt.subplots(
                1, 2, figsize=(7.0, 2.8), width_ratios=[2.2, 1], layout="constrained"
            )
            sns.despine(fig=figure)
            panels = list(pair)
        edges, number = panels
        name = str(row["feature"].values)
        edges.set_xlabel(with_units(name, units_of(boot, name)), parse_math=False)
        edges.set_ylabel("share of replicates\nwith an edge in the cell")
        number.set_xlabel("number of bins")
        number.set_ylabel("share of replicates")
        grid = row["grid_value"].values
        if np.isnan(grid).all():
            for panel in panels:
                say_constant(panel)
                panel.tick_params(left=False, labelleft=False)
            return as_array(panels)
        _draw_edges(edges, grid, row["edge_frequency"].values)
        _draw_numbers(number, row["n_bins"].values.ravel())
    return as_array(panels)


def _draw_edges(panel: Axes, grid: FloatArray, frequency: FloatArray) -> None:
    panel.stairs(frequency, grid, fill=True, color=UNCERTAINTY, linewidth=0)
    highest = float(frequency.max())
    if not highest:
        _say(panel, ONE_BIN)
    panel.set_ylim(0, min(1.1 * max(highest, EDGE_SHARE), 1.0))
    panel.margins(x=0.02)


def _draw_numbers(panel: Axes, n_bins: FloatArray) -> None:
    number, count = np.unique(n_bins[np.isfinite(n_bins)], return_counts=True)
    panel.bar(number, count / count.sum(), 0.8, color=UNCERTAINTY)
    panel.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    _note(panel, f"{count.sum()} replicates")


@checked
def plot_compare(comparison: xr.Dataset, feature: str | int, ax: Axes | None = None) -> Axes:
    """Difference of two curves with its pointwise interval, its band, and the test of none.

    Parameters
    ----------
    comparison : Dataset
        What `compare` returned.
    feature : str or int
        Name or number of the feature.
    ax : Axes, optional
        By default that of a new figure.

    Returns
    -------
    Axes

    Raises
    ------
    KeyError
        Unknown feature.
    TypeError
        ``comparison`` is no Dataset, or ``ax`` no Axes.
    ValueError
        ``comparison`` holds no difference of curves.

    Notes
    -----
    Dashed lines are pointwise intervals, thin lines a simultaneous band: where zero is outside the
    band the curves differ. Between the points of the comparison lines are straight; in linear bins
    they miss a sixteenth of the bulge of the difference.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> effects = []
    >>> for seed in (2, 3):
    ...     X = np.random.default_rng(seed).uniform(-1, 1, (500, 2))
    ...     local = rs.local_effects(lambda X: 2 * X[:, 0] + 4 * X[:, 0] * X[:, 1], X)
    ...     effects.append(rs.rhale(local, bins=rs.EqualWidthBins(5)))
    >>> rs.plot_compare(rs.compare(*effects, rng=0), "x0").texts[0].get_text()
    'no difference between the curves: p = 0.57, adjusted (holm) 1.00'
    """
    _check_result(comparison, "comparison", "compare(a, b)")
    if "edge_a" in comparison.dims:
        raise ValueError(
            "comparison must be of curves here; this one is of two surfaces. Draw it with "
            "plot_surface(comparison)."
        )
    missing = [
        name
        for name in ("difference", "difference_ci", "difference_band", "grid_value", "p_value")
        if name not in comparison
    ]
    if missing:
        raise ValueError(
            f"comparison must be the Dataset that compare(a, b) returns; this one has no "
            f"{', '.join(missing)}."
        )
    check_one_part(comparison, "comparison")
    row = comparison.isel(feature=feature_position(comparison, feature))
    row = row.isel(grid=row["grid_value"].notnull().values)
    panels = None if ax is None else given_axes("ax", [ax], 1, "one")
    with style(own=ax is None):
        if panels is None:
            figure, panel = plt.subplots(figsize=(7.0, 3.6), layout="constrained")
            sns.despine(fig=figure)
        else:
            panel = panels[0]
        name = str(row["feature"].values)
        panel.set_xlabel(with_units(name, units_of(comparison, name)), parse_math=False)
        label = f"effect on {comparison.attrs.get('output_name', 'output')}: a less b"
        output_units = str(comparison.attrs.get("output_units", ""))
        panel.set_ylabel(upright(label, output_units), parse_math=False)
        if not row.sizes["grid"]:
            say_constant(panel, NO_RANGE)
            panel.tick_params(left=False, labelleft=False)
            return panel
        _draw_difference(panel, row)
        draw_legend([panel])
    return panel


def _draw_difference(panel: Axes, row: xr.Dataset) -> None:
    x = row["grid_value"].values
    panel.axhline(0, color=REFERENCE, linewidth=0.8, zorder=0.5, gid=OURS)
    panel.plot(
        x, row["difference"].values, color=AVERAGE, linewidth=1.4, zorder=3, label=DIFFERENCE
    )
    _draw_interval(panel, x, _ends(row["difference_ci"]), row["difference_ci"])
    _draw_band(panel, x, _ends(row["difference_band"]), row["difference_band"])
    panel.margins(x=0.02)
    null = row.attrs.get("null", "no difference between the curves")
    text = f"{null}: p {pvalue_text(float(row['p_value']))}"
    adjust = str(row.attrs.get("adjust", "none"))
    if adjust != "none" and "p_value_adjusted" in row:
        text += f", adjusted ({adjust}) {pvalue_text(float(row['p_value_adjusted'])).lstrip('= ')}"
    _note(panel, text)


def pvalue_text(value: float) -> str:
    """A p-value with the sign before it: = 0.42, < 0.001."""
    if np.isnan(value):
        return "unknown"
    if value < 0.001:
        return "< 0.001"
    return f"= {value:.3f}" if value < 0.1 else f"= {value:.2f}"


def _check_result(dataset: object, parameter: str, maker: str) -> None:
    """Raise ``TypeError`` or ``ValueError`` unless this is a Dataset of features."""
    if not isinstance(dataset, xr.Dataset):
        raise TypeError(
            f"{parameter} must be the Dataset that {maker} returns; got {type(dataset).__name__}."
        )
    if "feature" not in dataset.coords:
        raise ValueError(
            f"{parameter} must be the Dataset that {maker} returns; this one has no features."
        )


class RowsInBins(NamedTuple):
    """Rows of one feature, with the bins that they are in."""

    x: FloatArray
    local_effect: FloatArray
    weight: FloatArray
    frequency: bool
    bin: IntArray


def with_intervals(effect: xr.Dataset, level: float = LEVEL) -> xr.Dataset:
    """The effect with its intervals, or those of `confint` where it has what they are made of."""
    if "curve_ci" in effect or "fourth_moment" not in effect:
        return effect
    return confint(effect, level=level)


def rows_of(local: xr.Dataset, row: xr.Dataset) -> RowsInBins | None:
    """Rows of ``local`` as the bins of ``row`` divide them; None for a constant feature."""
    name = str(row["feature"].values)
    if name not in feature_names(local):
        raise KeyError(
            f"local must hold the feature {name!r}; it holds "
            f"{', '.join(map(repr, feature_names(local)))}. Pass the local effects that effect "
            f"was made from."
        )
    if not row.sizes["bin"]:
        return None
    at, there = feature_position(local, name), np.ones(local.sizes["obs"], dtype=bool)
    if has_gaps(local):
        there = local["x"].isel(feature=at).notnull().values
    column = local.isel(feature=at, obs=there)
    x, g = (np.asarray(column[name].values, dtype=np.float64) for name in ("x", "local_effect"))
    frequency = local.attrs.get("weight_kind") == "frequency"
    weight = np.ones(len(x))
    if "weight" in local:
        weight = np.asarray(column["weight"].values, dtype=np.float64)
        present = weight > 0
        x, g, weight = x[present], g[present], weight[present]
    if not len(x):
        raise ValueError("local must have at least one row, and one of positive weight; got none.")
    if not frequency:
        weight = weight / weight.max()  # their squares stay within range
    edges = row["edge_value"].values
    for values, what in ((x, "x"), (g, "Local effects")):
        check_finite(values, what, name, "Select the rows first: local.isel(obs=...).")
    outside = int(((x < edges[0]) | (x > edges[-1])).sum())
    if outside:
        raise ValueError(
            f"local must hold rows in the bins of effect, from {edges[0]:.6g} to {edges[-1]:.6g} "
            f"for feature {name!r}; got {outside} of {len(x)} rows outside. Pass the local effects "
            f"that effect was made from, or select the rows first: local.isel(obs=...)."
        )
    check_no_other_model(row, columns(local.isel(feature=[at], obs=there)), 0)
    return RowsInBins(x, g, weight, frequency, bin_index(edges, x))


def _pair() -> list[Axes]:
    figure, panels = plt.subplots(2, 1, sharex=True, figsize=(7.0, 6.0), layout="constrained")
    sns.despine(fig=figure)
    return list(panels)


def grid_of_panels(n_panels: int, n_columns: int) -> list[Axes]:
    """Panels of a new figure, line by line."""
    n_lines = -(-n_panels // n_columns)
    figure, grid = plt.subplots(
        n_lines,
        n_columns,
        sharey=True,
        squeeze=False,
        figsize=(2.4 * n_columns + 0.6, 2.1 * n_lines + (0.6 if n_columns > 2 else 1.1)),
        layout="constrained",
    )
    sns.despine(fig=figure)
    panels = list(grid.flat)
    for unused in panels[n_panels:]:
        unused.remove()
    return panels[:n_panels]


def _label_axes(upper: Axes, lower: Axes, effect: xr.Dataset, row: xr.Dataset) -> None:
    # A name such as "cost [$]" is text, not a formula.
    upper.set_ylabel(output_label(effect), parse_math=False)
    _label_bins(lower, effect, row)


def _label_bins(panel: Axes, effect: xr.Dataset, row: xr.Dataset) -> None:
    name = str(row["feature"].values)
    units = units_of(effect, name)
    output_units = str(effect.attrs.get("output_units", ""))
    slope = f"d {effect.attrs.get('output_name', 'output')} / d {name}"
    per = f"{output_units} per {units}" if units and output_units else ""
    panel.set_ylabel(upright(slope, per), parse_math=False)
    panel.set_xlabel(with_units(name, units), parse_math=False)


def _say(panel: Axes, text: str) -> None:
    panel.text(0.5, 0.5, text, transform=panel.transAxes, ha="center", va="center")


def say_constant(panel: Axes, text: str = CONSTANT) -> None:
    """In place of a curve, that there is none."""
    _say(panel, text)
    # By their looks only: the ticks themselves may be those of other panels too.
    panel.tick_params(bottom=False, labelbottom=False)


class _Curve(NamedTuple):
    """A curve along its axis, with the half-width of its heterogeneity and what is known of it.

    Pointwise interval and simultaneous band are (end, x).
    """

    x: FloatArray
    value: FloatArray
    spread: FloatArray
    interval: FloatArray | None
    band: FloatArray | None


def _curve(row: xr.Dataset) -> _Curve:
    """The curve at the edges of its bins and cells, and in linear bins between them."""
    edge, curve = row["edge_value"].values, curve_of(row)
    ends, bent = curve.edges, np.flatnonzero(curve.slope)
    within = [np.linspace(ends[k], ends[k + 1], PARABOLA_PIECES + 1) for k in bent]
    x = np.unique(np.concatenate([edge, ends, *within]))
    value = curve.at(x)

    def along(at_edges: FloatArray) -> FloatArray:
        return np.asarray(np.interp(x, edge, at_edges))

    def between(name: str) -> FloatArray:
        if not has_cells(row) or f"cell_{name}" not in row:
            return np.stack([value + along(end - row["curve"].values) for end in _ends(row[name])])
        cells, known = row["cell_value"].values, np.isfinite(row["cell_curve"].values)
        return np.stack(
            [
                np.interp(x, cells[known], end[known], left=np.nan, right=np.nan)
                for end in _ends(row[f"cell_{name}"])
            ]
        )

    # Residuals of one spread all along a bin make the band grow linearly, sloped or not. For a
    # standard error it is a stand-in: what a curve is at the edges does not tell it in between.
    spread = along(row["curve_std_sum"].values)
    interval = band = None
    if "curve_ci" in row:
        interval = between("curve_ci")
    if "curve_band" in row:
        band = between("curve_band")
    return _Curve(x, value, spread, interval, band)


def _ends(interval: xr.DataArray) -> FloatArray:
    """Lower and upper ends, (end, ...)."""
    return np.asarray(interval.transpose("ci_bound", ...).values, dtype=np.float64)


def draw_curve(panel: Axes, row: xr.Dataset) -> None:
    """The curve of one feature with its heterogeneity, and what is known of its errors."""
    x, curve, spread, interval, band = _curve(row)
    if is_categorical(row):
        whiskers = band_of = None
        if interval is not None:
            whiskers = Ends(interval, _interval_label(row["curve_ci"]))
        if band is not None:
            band_of = Ends(band, f"{_percent(row['curve_band'])} {CURVE_BAND}")
        colours = {"line": AVERAGE, "uncertainty": UNCERTAINTY}
        draw_levels(panel, row, whiskers, band_of, label=AT_LEVEL, mark=OURS, **colours)
        return
    panel.axhline(0, color=REFERENCE, linewidth=0.6, zorder=0.5, gid=OURS)
    panel.plot(x, curve, color=AVERAGE, linewidth=1.4, zorder=3, label=CURVE)
    panel.fill_between(
        x,
        curve - spread,
        curve + spread,
        color=HETEROGENEITY_FILL,
        linewidth=0,
        zorder=1,
        label=BAND,
    )
    if interval is not None:
        _draw_interval(panel, x, interval, row["curve_ci"])
    if band is not None:
        _draw_band(panel, x, band, row["curve_band"])
    _draw_missing(panel, row)


def _missing(row: xr.Dataset) -> FloatArray | None:
    """Ends of the interval of rows without a value, their middle between them."""
    if "missing_curve" not in row or np.isnan(row["missing_curve"]):
        return None
    half = 0.0
    if "missing_effect_ci" in row:
        half = float(np.nan_to_num(np.ptp(row["missing_effect_ci"].values) / 2))
    return np.asarray(float(row["missing_curve"]) + half * np.array([-1.0, 0.0, 1.0]))


def _draw_missing(panel: Axes, row: xr.Dataset) -> None:
    """Rows without a value, beside the axis that they have no place on."""
    ends = _missing(row)
    if ends is None:
        return
    last = float(row["edge_value"].values[-1])
    draw_missing(panel, last, float(ends[1]), float(ends[2] - ends[1]), MISSING)


def _interval_label(of: xr.DataArray) -> str:
    target = str(of.attrs.get("target", "curve")).partition(", math")[0]
    text = f"{_percent(of)} {CURVE_INTERVAL}{_given(of)}: {target}"
    return textwrap.fill(text, LEGEND_WIDTH)


def _given(of: xr.DataArray | xr.Dataset) -> str:
    """Behind an interval that is of the rows alone, that it is."""
    return "" if meaning.holds_model(str(of.attrs.get("source", "rows"))) else GIVEN


def _draw_interval(panel: Axes, x: FloatArray, ends: FloatArray, of: xr.DataArray) -> None:
    """Pointwise: dashed. Curves that are centred differently have different ones."""
    label = _interval_label(of)
    for end, text in zip(ends, (label, None), strict=True):
        panel.plot(
            x,
            end,
            color=UNCERTAINTY,
            linewidth=1.0,
            linestyle=(0, (4, 2)),
            zorder=2,
            label=text,
        )


def _draw_band(panel: Axes, x: FloatArray, ends: FloatArray, of: xr.DataArray) -> None:
    """Simultaneous: thin lines."""
    for end, text in zip(ends, (f"{_percent(of)} {CURVE_BAND}", None), strict=True):
        panel.plot(x, end, color=UNCERTAINTY, linewidth=0.7, zorder=2, label=text)


def _percent(of: xr.DataArray) -> str:
    """Level of an interval."""
    return f"{100 * float(of.attrs['ci_prob']):g} %" if "ci_prob" in of.attrs else "? %"


def _draw_bins(panel: Axes, row: xr.Dataset) -> None:
    edges = row["edge_value"].values
    span = np.ptp(edges)
    panel.set_xlim(edges[0] - 0.02 * span, edges[-1] + 0.02 * span)
    row = row.isel(bin=row["effect"].notnull().values)
    left, right = row["bin_left"].values, row["bin_right"].values
    mean, middle = row["effect"].values, (left + right) / 2
    panel.axhline(0, color=REFERENCE, linewidth=0.6, zorder=0.5, gid=OURS)
    # Bars keep out of each other's way: at most this many points wide.
    gap = np.diff(middle).min() if len(middle) > 1 else span
    room = gap / span * panel.get_window_extent().width * 72 / panel.figure.dpi
    _draw_averages(panel, row, linewidth=1.6)
    panel.errorbar(
        middle,
        mean,
        yerr=row["heterogeneity"].values,
        fmt="none",
        ecolor=HETEROGENEITY,
        elinewidth=np.clip(0.1 * room, 0.5, 1.0),
        capthick=np.clip(0.1 * room, 0.5, 1.0),
        capsize=np.clip(0.25 * room, 0.8, 4.0),
        zorder=3,
        label=BIN_SPREAD,
    )
    thick = np.clip(0.3 * room, 1.4, 3.0)
    if "effect_ci" in row:
        panel.errorbar(
            middle,
            *_bar(_ends(row["effect_ci"])),
            fmt="none",
            ecolor=UNCERTAINTY,
            elinewidth=thick,
            capsize=0,
            zorder=5,
            label=f"{_percent(row['effect_ci'])} {BIN_INTERVAL}",
        )
    if "effect_band" in row:
        panel.errorbar(
            middle,
            *_bar(_ends(row["effect_band"])),
            fmt="none",
            ecolor=UNCERTAINTY,
            elinewidth=0.3 * thick,
            capthick=0.3 * thick,
            capsize=thick,
            zorder=4.5,
            label=f"{_percent(row['effect_band'])} {BIN_BAND}",
        )


def _bar(ends: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Middle and half length of error bars from end to end, which need not hold the estimate."""
    return ends.mean(axis=0), np.diff(ends, axis=0)[0] / 2


def _draw_violins(panel: Axes, rows: RowsInBins, row: xr.Dataset) -> None:
    edges, slope = row["edge_value"].values, slopes(row)
    width = np.diff(edges)
    middle = edges[:-1] + width / 2
    # With the slope in it a violin would be long where rows differ in x only.
    away = rows.x - middle[rows.bin]
    moved = rows._replace(local_effect=rows.local_effect - slope[rows.bin] * away)
    violins = _violins(moved, len(width), _error(row))
    outlines: list[FloatArray] = []
    flat: list[FloatArray] = []
    for position in np.flatnonzero(violins.occupied):
        half = VIOLIN_WIDTH * width[position] / 2
        value, reach = violins.value[position], half * violins.density[position]
        if violins.flat[position]:
            value, reach = value[:1], np.array([half])
        side, other = (
            np.column_stack([middle[position] + step, value + slope[position] * step])
            for step in (-reach, reach)
        )
        outline = np.concatenate([side, other[::-1]])
        (flat if violins.flat[position] else outlines).append(outline)
    room = width.min() / np.ptp(edges) * panel.get_window_extent().width * 72 / panel.figure.dpi
    line = float(np.clip(0.05 * room, 0.15, 0.5))
    shapes = PolyCollection(
        outlines,
        facecolors=HETEROGENEITY_FILL,
        edgecolors=HETEROGENEITY,
        linewidths=line,
        zorder=1,
    )
    # Before the violins the limits are those of the bins.
    bins = panel.get_ylim()
    if outlines:
        shapes.set_label(VIOLIN)
        panel.add_collection(shapes)
    if flat:
        panel.add_collection(LineCollection(flat, colors=HETEROGENEITY, linewidths=line, zorder=1))
    panel.autoscale_view(scalex=False)
    off_scale = _shorten_tails(panel, rows, bins)
    if off_scale:
        _say_off_scale(panel, off_scale)


def _say_off_scale(panel: Axes, share: float) -> None:
    _note(panel, f"{100 * share:.2g} % of local effects off the scale")


def _note(panel: Axes, text: str) -> None:
    """A remark above the right end of a panel."""
    panel.text(1, 1.01, text, transform=panel.transAxes, ha="right", va="bottom", fontsize="small")


def _shorten_tails(panel: Axes, rows: RowsInBins, bins: tuple[float, float]) -> float:
    """Leave long tails of local effects outside the panel; the share of rows that this hides.

    A few rows a hundred times as far from the mean as the rest would leave nothing to see of the
    bins. The panel always holds the bins and the central part of the local effects.
    """
    g, weight = rows.local_effect, rows.weight
    tail = (1 - CENTRAL_PART) / 2
    ends = np.quantile(g, [tail, 1 - tail], method="inverted_cdf", weights=weight)
    bottom, top = min(bins[0], ends[0]), max(bins[1], ends[1])
    margin = 0.05 * (top - bottom)
    if np.diff(panel.get_ylim())[0] < LONG_TAILS * (top - bottom):
        return 0.0
    panel.set_ylim(bottom - margin, top + margin)
    outside = (g < bottom - margin) | (g > top + margin)
    return float(weight[outside].sum() / weight.sum())


class _Violins(NamedTuple):
    """Outlines of the violins: local effects and their density over its maximum, (bin, point)."""

    value: FloatArray
    density: FloatArray
    occupied: NDArray[np.bool_]
    flat: NDArray[np.bool_]


def _violins(rows: RowsInBins, n_bins: int, error: float) -> _Violins:
    """Gaussian kernel density of the local effects of every bin, on a grid from min to max.

    Rows go to the nearest point of the grid and the kernel over the points: one pass over the
    rows, whatever their number.
    """
    g, weight, bin_ = rows.local_effect, rows.weight, rows.bin
    low, high = np.full(n_bins, np.inf), np.full(n_bins, -np.inf)
    np.minimum.at(low, bin_, g)
    np.maximum.at(high, bin_, g)
    occupied = low <= high
    low, high = np.where(occupied, low, 0.0), np.where(occupied, high, 0.0)
    span = high - low
    resolution = np.maximum(error, 16 * np.spacing(np.maximum(np.abs(low), np.abs(high))))
    flat = span <= resolution
    step = np.where(flat, 1.0, span / (VIOLIN_POINTS - 1))
    point = np.rint((g - low[bin_]) / step[bin_]).astype(np.intp)
    np.clip(point, 0, VIOLIN_POINTS - 1, out=point)
    point += VIOLIN_POINTS * bin_
    mass = np.bincount(point, weight, n_bins * VIOLIN_POINTS).reshape(n_bins, VIOLIN_POINTS)

    total = np.bincount(bin_, weight, n_bins)
    # math [6]: a frequency weight is so many rows.
    square = total if rows.frequency else np.bincount(bin_, weight**2, n_bins)
    with np.errstate(invalid="ignore", divide="ignore"):
        n_effective = total**2 / square
        share = mass / total[:, None]
    distance = np.arange(1 - VIOLIN_POINTS, VIOLIN_POINTS)
    density = np.zeros((n_bins, VIOLIN_POINTS))
    for position in np.flatnonzero(occupied):
        bandwidth = _silverman(share[position], n_effective[position])
        kernel = np.exp(-0.5 * (distance / bandwidth) ** 2)
        density[position] = np.convolve(share[position], kernel, "valid")
        density[position] /= density[position].max()
    value = np.linspace(low, high, VIOLIN_POINTS, axis=-1)
    return _Violins(value, density, occupied, flat)


def _silverman(share: FloatArray, n_effective: float) -> float:
    """Silverman's rule of thumb in steps of the grid, on which a step is the least."""
    at = np.arange(len(share))
    spread = float(np.sqrt(np.sum(share * (at - np.sum(share * at)) ** 2)))
    lower, upper = np.searchsorted(np.cumsum(share), [0.25, 0.75])
    robust = float(upper - lower) / 1.34
    if robust > 0:  # else half the rows have one value
        spread = min(spread, robust)
    return max(float(0.9 * spread * n_effective**-0.2), 1.0)


def draw_rug(panel: Axes, rows: RowsInBins, edges: FloatArray) -> None:
    """Where the rows are: ticks, or cells where ticks would merge, the darker the more rows."""
    low, span = edges[0], np.ptp(edges)
    place = (rows.x - low) / span
    tick = np.rint(place * RUG_POSITIONS).astype(np.intp)
    weight = np.bincount(tick, rows.weight, RUG_POSITIONS + 1)
    rug: LineCollection | PolyCollection
    if np.count_nonzero(weight) <= RUG_TICKS:
        at = low + span * np.flatnonzero(weight) / RUG_POSITIONS
        rug = LineCollection(
            [[(x, 0), (x, RUG_HEIGHT)] for x in at], colors=_shades(weight), linewidths=0.6
        )
    else:
        cell = np.minimum((place * RUG_CELLS).astype(np.intp), RUG_CELLS - 1)
        weight = np.bincount(cell, rows.weight, RUG_CELLS)
        left = low + span * np.flatnonzero(weight) / RUG_CELLS
        right = left + span / RUG_CELLS
        rug = PolyCollection(
            [
                [(a, 0), (b, 0), (b, RUG_HEIGHT), (a, RUG_HEIGHT)]
                for a, b in zip(left, right, strict=True)
            ],
            facecolors=_shades(weight),
            edgecolors="face",
            linewidths=0.1,
        )
    rug.set_transform(panel.get_xaxis_transform())
    rug.set_gid("rug")
    panel.add_collection(rug)


def _shades(weight: NDArray[Any]) -> list[str]:
    """Greys of what is occupied; the square root keeps thin tails visible beside a peak."""
    share = weight[weight > 0] / weight.max()
    return [str(0.9 - 0.7 * root) for root in np.sqrt(share)]


def _error(row: xr.Dataset) -> float:
    """Numerical error of a local effect: 0 where nothing is known about it."""
    if "local_effect_error" not in row:
        return 0.0
    return float(np.nan_to_num(row["local_effect_error"].values))


def _keep_noise_small(upper: Axes, lower: Axes, row: xr.Dataset) -> None:
    """A scale on which rounding in the local effects does not look like an effect."""
    slope = ERRORS_SHOWN * _error(row)
    _enlarge(upper, slope * np.ptp(row["edge_value"].values))
    _enlarge(lower, slope)


def _enlarge(panel: Axes, least: float) -> None:
    """A y scale of at least this length."""
    bottom, top = panel.get_ylim()
    if top - bottom < least:
        middle = (bottom + top) / 2
        panel.set_ylim(middle - least / 2, middle + least / 2)


def common_limits(rows: list[xr.Dataset]) -> tuple[float, float] | None:
    """Limits that hold every curve with all that is drawn about it; None without any curve."""
    ends = [0.0]
    for row in rows:
        if not row.sizes["bin"]:
            continue
        _, curve, spread, *about = _curve(row)
        missing = _missing(row)
        drawn = [
            *([] if missing is None else [missing]),
            curve,
            *([] if is_categorical(row) else [curve - spread, curve + spread]),
            *(part for part in about if part is not None),
        ]
        for part in drawn:
            ends.extend(part[~np.isnan(part)])
    low, high = min(ends), max(ends)
    if low == high:
        return None
    return low - 0.05 * (high - low), high + 0.05 * (high - low)


def draw_legend(panels: list[Axes]) -> None:
    """One legend above all panels of a figure, where no data are, whoever made the figure."""
    for figure in {panel.figure: None for panel in panels}:
        handles = {
            label: handle
            for panel in figure.axes
            if any(artist.get_gid() == OURS for artist in panel.get_children())
            for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)
        }
        if not handles:
            continue
        for earlier in [legend for legend in figure.legends if legend.get_gid() == OURS]:
            earlier.remove()
        # What is in the curve stands above its counterpart in the bins.
        labels = sorted(handles, key=_order)
        # Only a constrained layout makes room outside the panels.
        constrained = isinstance(figure.get_layout_engine(), ConstrainedLayoutEngine)
        for n_columns in (4, 3, 2, 1):
            legend = figure.legend(
                [handles[label] for label in labels],
                labels,
                loc="outside upper center" if constrained else "upper center",
                ncols=n_columns,
                frameon=False,
                fontsize="small",
                handlelength=1.8,
                columnspacing=1.5,
            )
            legend.set_gid(OURS)
            if legend.get_window_extent().width <= figure.bbox.width or n_columns == 1:
                break
            legend.remove()


def _order(label: str) -> int:
    """Place in the legend: that of the first entry of `LEGEND` that it begins with."""
    label = re.sub(r"^[\d.]+ % ", "", label)
    places = [place for place, begin in enumerate(LEGEND) if label.startswith(begin)]
    return places[0] if places else len(LEGEND)
