"""Pictures of effects: one feature with its bins (the paper's Figure 3b), or all features.

Averages are black, heterogeneity is blue and filled, uncertainty is orange and dashed or thick: in
greyscale the shapes tell them apart.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter
from numpy.typing import NDArray
from scipy.special import ndtri

from rhale_stats.arrays.accumulate import curve_at
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.effects import estimation_rows
from rhale_stats.inference import std_error
from rhale_stats.schema import (
    check_effect,
    check_local,
    effect_at,
    feature_names,
    feature_position,
    one_feature,
    slopes,
    units_of,
    with_units,
)
from rhale_stats.unbiasedness import BIASED, LARGE, TOO_FEW
from rhale_stats.validate import check_count, check_finite

# Half width of a pointwise 95 % interval, in standard errors.
HALF_WIDTH_95 = float(ndtri(0.975))

AVERAGE = "black"
HETEROGENEITY = "#0173b2"
HETEROGENEITY_FILL = "#c3ddec"
UNCERTAINTY = "#d55e00"
REFERENCE = "0.6"

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
# Longer labels of a y axis are broken, before their unit first of all.
LABEL_LENGTH = 30
# Entries of the legend, down its columns, all of two lines so that its rows are level.
CURVE, BIN = "average effect,\naccumulated", "average effect\nin the bin"
BAND, BIN_SPREAD = "± heterogeneity\n(comonotone)", "± heterogeneity\nin the bin"
CURVE_INTERVAL, BIN_INTERVAL = (
    "95 % interval, pointwise:",
    "95 % interval of the\naverage in the bin",
)
VIOLIN = "local effects\nin the bin"
# Those of the picture of bins. With more rows than this points would merge; cells show them.
POINTS, WEIGHED, DENSITY = (
    "local effects",
    "local effects,\nthe larger the more weight",
    "local effects,\nthe darker the more",
)
EDGES = "edges of bins"
LOSS, CHOSEN = "loss", "chosen:"
POINTS_DRAWN = 3000
DENSITY_CELLS = 80  # along the axis
# Area of a point, in points squared: of the usual one, and of the one with most weight at most.
POINT_AREA, LARGEST_POINT = (2.5, 14.0), 100.0
# Those of the picture of bias, and its marks.
WITHIN, BIN_ERROR = "heterogeneity within,\nsquared", "bin error"
TOTAL, BIN_ERROR_SE = "their sum, the variance\nabout the effect", "± its standard error"
MARKS = {BIASED: "*", LARGE: "**", TOO_FEW: "×"}
LEGEND = (
    *(CURVE, BIN, BAND, BIN_SPREAD, CURVE_INTERVAL, BIN_INTERVAL, VIOLIN),
    *(TOTAL, WITHIN, BIN_ERROR, BIN_ERROR_SE),
    *(POINTS, EDGES, LOSS, CHOSEN),
)
LEGEND_WIDTH = 40
# Marks what is ours in a figure that others may draw in too.
OURS = "rhale_stats"
# A panel shows at least so many times the numerical error, so that it never enlarges noise.
ERRORS_SHOWN = 20

CONSTANT = "constant feature:\nno effect to show"


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
    effects in every bin, and a rug of the feature's values. In a linear bin the curve is a parabola
    and the effect a sloped line, with its bars in the middle.

    Parameters
    ----------
    effect : Dataset
        What `rhale` or `std_error` returned. Intervals need ``curve_se``; where it is missing
        `std_error` adds it, and where that is impossible there are no intervals.
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
    interval does. Between edges their half-widths are straight lines. For the band this is exact;
    the interval is never too narrow by it where the bin is constant, because a standard error is
    convex where the curve is linear. In a linear bin it is an interpolation, and may be too narrow
    between the edges, by 1.96 ``slope_se`` width^2 / 8 at most.

    A violin is a kernel density estimate from the smallest to the largest local effect of its
    bin, with Silverman's bandwidth, scaled to the bin's width: its area means nothing. Where the
    longest tails would leave nothing to see of the bins, the panel holds the central 99 % of the
    local effects, and a note says how many are off the scale. The rug is the darker the more
    rows there are, and becomes a strip where its ticks would merge.

    In a linear bin the violin is that of the residuals, whose spread is the heterogeneity, and
    follows the line: every local effect is moved along the slope to the middle of the bin.

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
    effect = _with_standard_errors(check_effect(effect))
    row = one_feature(effect, feature)
    rows = None
    if local is not None:
        rows = _rows(estimation_rows(check_local(local), effect), row)
    own = ax is None
    panels = None if ax is None else _given_axes("ax", ax, 2, "an upper and a lower one")
    with _style(own=own):
        if panels is None:
            panels = _pair()
        upper, lower = panels
        _label_axes(upper, lower, effect, row)
        if not row.sizes["bin"]:
            for panel in panels:
                _say_constant(panel)
                panel.tick_params(left=False, labelleft=False)
            return _array(panels)
        _draw_curve(upper, row)
        _draw_bins(lower, row)
        upper.set_xlim(lower.get_xlim())
        if rows is not None:
            _draw_violins(lower, rows, row)
        _keep_noise_small(upper, lower, row)
        if rows is not None:
            _draw_rug(lower, rows, row["edge_value"].values)
        _legend(panels)
    return _array(panels)


def plot_effects(
    effect: xr.Dataset,
    features: str | int | Sequence[str | int] | None = None,
    *,
    n_columns: int = 3,
    axes: Sequence[Axes] | NDArray[np.object_] | None = None,
) -> NDArray[np.object_]:
    """Curves of all features on a grid, with one y scale.

    Every panel shows the curve with a band of plus and minus its heterogeneity and, dashed, a
    pointwise 95 % interval, as the upper panel of `plot_effect`, whose notes say what they mean.

    Parameters
    ----------
    effect : Dataset
        What `rhale` or `std_error` returned. Intervals need ``curve_se``; where it is missing
        `std_error` adds it, and where that is impossible there are no intervals.
    features : name, number, or sequence of them, optional
        Features to draw, in this order. By default all.
    n_columns : int, default 3
        Panels a line of a new figure.
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
        Another number of Axes than of features, no feature, ``n_columns`` below 1.

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
    effect = _with_standard_errors(check_effect(effect))
    check_count("n_columns", n_columns, 1)
    if features is None:
        features = feature_names(effect)
    elif isinstance(features, str | int | np.integer):
        features = [features]
    positions = [feature_position(effect, feature) for feature in features]
    if not positions:
        raise ValueError("features must name at least one feature; got none.")
    rows = [one_feature(effect, position) for position in positions]
    panels = None
    if axes is not None:
        panels = _given_axes("axes", axes, len(rows), "one a feature")
    own = panels is None
    with _style(own=own):
        if panels is None:
            panels = _grid(len(rows), min(n_columns, len(rows)))
        limits = _common_limits(rows)
        for panel, row, position in zip(panels, rows, positions, strict=True):
            panel.set_title(str(row["feature"].values), parse_math=False)
            units = units_of(effect, position)
            panel.set_xlabel(f"[{units}]" if units else "", parse_math=False)
            if not own:
                panel.set_ylabel(_output_label(effect), parse_math=False)
            if row.sizes["bin"]:
                _draw_curve(panel, row)
            else:
                _say_constant(panel)
            if limits is not None:
                panel.set_ylim(*limits)
        if own:
            size = panels[0].yaxis.label.get_fontsize()
            panels[0].figure.supylabel(_output_label(effect), fontsize=size, parse_math=False)
        _legend(panels)
    return _array(panels)


def plot_bins(
    effect: xr.Dataset,
    local: xr.Dataset,
    feature: str | int,
    ax: Axes | Sequence[Axes] | NDArray[np.object_] | None = None,
) -> NDArray[np.object_]:
    """Local effects of the rows against the feature, with its bins and what they estimate.

    Vertical lines are the edges, the others the effect of every bin, sloped where it is linear,
    with a band of plus and minus its heterogeneity. Bins that fit have points on both sides of
    their line all along. Where numbers of bins were compared, a second panel shows the loss of
    each, with the chosen one.

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
    more are hexagonal cells, the darker the more rows or weight they hold. Where the longest tails
    would leave nothing to see of the bins, the panel holds the central 99 % of the local effects,
    and a note says how many are off the scale. A bin without rows has edges only, one of a single
    row no band.

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
    rows = _rows(estimation_rows(check_local(local), effect), row)
    n_panels = 2 if "bin_loss" in effect else 1
    panels = None
    if ax is not None:
        which = "for bins and for loss" if n_panels == 2 else "one"
        panels = _given_axes("ax", [ax] if isinstance(ax, Axes) else ax, n_panels, which)
    with _style(own=ax is None):
        if panels is None:
            panels = _column([3.6, 2.4][:n_panels])
        _label_bins(panels[0], effect, row)
        if n_panels == 2:
            panels[1].set_xlabel("number of bins")
            units = str(effect.attrs.get("output_units", ""))
            panels[1].set_ylabel(_upright("loss", units), parse_math=False)
        if rows is None:
            for panel in panels:
                _say_constant(panel)
                panel.tick_params(left=False, labelleft=False)
            return _array(panels)
        _draw_rows(panels[0], rows, row)
        if n_panels == 2:
            _draw_loss(panels[1], row)
        _legend(panels)
    return _array(panels)


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


def _draw_rows(panel: Axes, rows: _Rows, row: xr.Dataset) -> None:
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


def _draw_points(panel: Axes, rows: _Rows) -> None:
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


def _draw_density(panel: Axes, rows: _Rows) -> None:
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
    panels = None if ax is None else _given_axes("ax", [ax], 1, "one")
    with _style(own=ax is None):
        if panels is None:
            figure, panel = plt.subplots(figsize=(7.0, 3.6), layout="constrained")
            sns.despine(fig=figure)
        else:
            panel = panels[0]
        name = str(row["feature"].values)
        panel.set_xlabel(with_units(name, units_of(check, name)), parse_math=False)
        panel.set_ylabel("variance of local effects")
        if not row.sizes["bin"]:
            _say_constant(panel)
            panel.tick_params(left=False, labelleft=False)
            return panel
        _draw_bias(panel, row)
        _legend([panel])
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


class _Rows(NamedTuple):
    """Rows of one feature, with the bins that they are in."""

    x: FloatArray
    local_effect: FloatArray
    weight: FloatArray
    frequency: bool
    bin: IntArray


def _with_standard_errors(effect: xr.Dataset) -> xr.Dataset:
    if "curve_se" in effect or "fourth_moment" not in effect:
        return effect
    return std_error(effect)


def _rows(local: xr.Dataset, row: xr.Dataset) -> _Rows | None:
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
    column = local.isel(feature=feature_position(local, name))
    x, g = (np.asarray(column[name].values, dtype=np.float64) for name in ("x", "local_effect"))
    frequency = local.attrs.get("weight_kind") == "frequency"
    weight = np.ones(len(x))
    if "weight" in local:
        weight = np.asarray(local["weight"].values, dtype=np.float64)
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
    return _Rows(x, g, weight, frequency, bin_index(edges, x))


def _given_axes(
    parameter: str,
    given: Sequence[Axes] | NDArray[np.object_],
    n_axes: int,
    which: str,
) -> list[Axes]:
    """The Axes that a user passed, as a list; raise unless there are ``n_axes`` of them."""
    advice = f"Make them with plt.subplots({n_axes}, layout='constrained')."
    expected = f"{parameter} must be {n_axes} matplotlib Axes, {which}"
    if not isinstance(given, Sequence | np.ndarray):
        raise TypeError(f"{expected}; got {type(given).__name__}. {advice}")
    panels: list[Axes] = list(np.ravel(np.asarray(given, dtype=object)))
    for panel in panels:
        if not isinstance(panel, Axes):
            raise TypeError(f"{expected}; got {type(panel).__name__} among them. {advice}")
    if len(panels) != n_axes:
        raise ValueError(f"{expected}; got {len(panels)}. {advice}")
    if len({id(panel) for panel in panels}) < n_axes:
        raise ValueError(f"{expected}; got the same one twice. {advice}")
    return panels


def _array(panels: Sequence[Axes] | NDArray[np.object_]) -> NDArray[np.object_]:
    array = np.empty(len(panels), dtype=object)
    array[:] = list(panels)
    return array


def _style(*, own: bool) -> AbstractContextManager[object]:
    """Style of our own figures, which ends with the drawing; Axes of the user's keep the user's."""
    stack = ExitStack()
    if own:
        stack.enter_context(sns.axes_style("ticks"))
        stack.enter_context(sns.plotting_context("paper"))
    return stack


def _pair() -> list[Axes]:
    figure, panels = plt.subplots(2, 1, sharex=True, figsize=(7.0, 6.0), layout="constrained")
    sns.despine(fig=figure)
    return list(panels)


def _grid(n_panels: int, n_columns: int) -> list[Axes]:
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


def _upright(text: str, units: str) -> str:
    """Label of a y axis, which has less room than an x axis."""
    if len(text) + len(units) <= LABEL_LENGTH:
        return with_units(text, units)
    lines = [text, f"[{units}]"] if units else [text]
    return "\n".join(textwrap.fill(line, LABEL_LENGTH) for line in lines)


def _output_label(effect: xr.Dataset) -> str:
    name = effect.attrs.get("output_name", "output")
    return _upright(f"effect on {name}", str(effect.attrs.get("output_units", "")))


def _label_axes(upper: Axes, lower: Axes, effect: xr.Dataset, row: xr.Dataset) -> None:
    # A name such as "cost [$]" is text, not a formula.
    upper.set_ylabel(_output_label(effect), parse_math=False)
    _label_bins(lower, effect, row)


def _label_bins(panel: Axes, effect: xr.Dataset, row: xr.Dataset) -> None:
    name = str(row["feature"].values)
    units = units_of(effect, name)
    output_units = str(effect.attrs.get("output_units", ""))
    slope = f"d {effect.attrs.get('output_name', 'output')} / d {name}"
    per = f"{output_units} per {units}" if units and output_units else ""
    panel.set_ylabel(_upright(slope, per), parse_math=False)
    panel.set_xlabel(with_units(name, units), parse_math=False)


def _say(panel: Axes, text: str) -> None:
    panel.text(0.5, 0.5, text, transform=panel.transAxes, ha="center", va="center")


def _say_constant(panel: Axes) -> None:
    _say(panel, CONSTANT)
    # By their looks only: the ticks themselves may be those of other panels too.
    panel.tick_params(bottom=False, labelbottom=False)


class _Curve(NamedTuple):
    """A curve along its axis, with the half-widths of its band and, where known, its interval."""

    x: FloatArray
    value: FloatArray
    spread: FloatArray
    interval: FloatArray | None


def _curve(row: xr.Dataset) -> _Curve:
    """The curve at its edges, and in linear bins between them."""
    edge, slope = row["edge_value"].values, slopes(row)
    within = [np.linspace(edge[k], edge[k + 1], PARABOLA_PIECES + 1) for k in np.flatnonzero(slope)]
    x = np.unique(np.concatenate([edge, *within]))
    # Residuals of one spread all along a bin make the band grow linearly, sloped or not. For a
    # standard error it is a stand-in: what a curve is at the edges does not tell it in between.
    spread = np.interp(x, edge, row["curve_std_sum"].values)
    interval = None
    if "curve_se" in row:
        interval = HALF_WIDTH_95 * np.interp(x, edge, row["curve_se"].values)
    return _Curve(x, curve_at(edge, row["curve"].values, slope, x), spread, interval)


def _draw_curve(panel: Axes, row: xr.Dataset) -> None:
    x, curve, spread, interval = _curve(row)
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
        for bound, label in ((curve - interval, _interval_label(row)), (curve + interval, None)):
            panel.plot(
                x,
                bound,
                color=UNCERTAINTY,
                linewidth=1.0,
                linestyle=(0, (4, 2)),
                zorder=2,
                label=label,
            )


def _interval_label(row: xr.Dataset) -> str:
    """What the interval is of: curves that are centred differently have different ones."""
    target = str(row["curve_se"].attrs.get("target", "curve")).partition(", math")[0]
    return textwrap.fill(f"{CURVE_INTERVAL} {target}", LEGEND_WIDTH)


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
    if "effect_se" in row:
        panel.errorbar(
            middle,
            mean,
            yerr=HALF_WIDTH_95 * row["effect_se"].values,
            fmt="none",
            ecolor=UNCERTAINTY,
            elinewidth=np.clip(0.3 * room, 1.4, 3.0),
            capsize=0,
            zorder=5,
            label=BIN_INTERVAL,
        )


def _draw_violins(panel: Axes, rows: _Rows, row: xr.Dataset) -> None:
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


def _shorten_tails(panel: Axes, rows: _Rows, bins: tuple[float, float]) -> float:
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


def _violins(rows: _Rows, n_bins: int, error: float) -> _Violins:
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


def _draw_rug(panel: Axes, rows: _Rows, edges: FloatArray) -> None:
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


def _common_limits(rows: list[xr.Dataset]) -> tuple[float, float] | None:
    """Limits that hold every curve with its band and its interval; None without any curve."""
    ends = [0.0]
    for row in rows:
        if not row.sizes["bin"]:
            continue
        _, curve, spread, interval = _curve(row)
        reach = np.nan_to_num(spread)
        if interval is not None:
            reach = np.maximum(reach, np.nan_to_num(interval))
        for end in (curve - reach, curve + reach):
            ends.extend(end[~np.isnan(end)])
    low, high = min(ends), max(ends)
    if low == high:
        return None
    return low - 0.05 * (high - low), high + 0.05 * (high - low)


def _legend(panels: list[Axes]) -> None:
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
        for n_columns in (4, 2, 1):
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
    places = [place for place, begin in enumerate(LEGEND) if label.startswith(begin)]
    return places[0] if places else len(LEGEND)
