"""Drawing of the curve of one feature, or of its levels, with intervals, bands and axis limits."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.patches import StepPatch

from rhale_stats.answers.numbers import axis_texts
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.drawing.canvas import (
    AVERAGE,
    HETEROGENEITY,
    HETEROGENEITY_FILL,
    REFERENCE,
    UNCERTAINTY,
    UNCERTAINTY_LIGHT,
    cut_within,
    draw_area,
    draw_ends,
    draw_missing,
    draw_spread,
)
from rhale_stats.drawing.legend import (
    AT_LEVEL,
    BAND,
    BIN,
    BIN_BAND,
    BIN_INTERVAL,
    BIN_ROWS,
    BIN_SPREAD,
    CURVE,
    CURVE_BAND,
    CURVE_INTERVAL,
    ERRORS_SHOWN,
    GIVEN,
    LEGEND_WIDTH,
    MISSING,
    OURS,
    OWN_SPREAD,
    ROWS_INTERVAL,
    error_text,
    say_constant,
)
from rhale_stats.inference.notes import with_rows_alone
from rhale_stats.printing import text as meaning
from rhale_stats.schema.feature_result import FeatureResult, has_moments
from rhale_stats.schema.levels import level_names

BAR_WIDTH = 0.7
LEVEL_FILL, SHARE_FILL = "#d9d9d9", "#c3ddec"
# Bars of the histogram of the rows, their colour, and the height of the largest in panels.
N_BARS, ROWS_FILL, HEIGHT = 40, "#c3ddec", 0.09
# Bins of less than this share of the axis are narrow.
NARROW_BIN = 0.1
# Points of the outline of an interval along a bin.
POINTS_OF_AREA = 9
# Percentiles of the rows between which panels reach, and the least part of an axis to leave out.
INNER, MIN_CUT = (1.0, 99.0), 0.02
# A panel is paler at bars of fewer rows that are also fewer than this share of what is usual.
PALE, FEW_ROWS, FEW_OF_USUAL = 0.55, 10, 0.25
# Names of levels that are too long are broken into lines, and rotated if still too long.
NAME_LENGTH, TURNED = 14, 30
# Longest name where they are turned; points that a name needs beside others, upright and aslant.
LONGEST_NAME, UPRIGHT, ASLANT = 22, 9.0, 22.0


# The zero of a curve that goes without saying.
USUAL_ZERO = "curve centred at its mean over the population"


class Ends(NamedTuple):
    """An interval at every level, (lower or upper, level), and its entry in the legend.

    ``rows`` is the interval of the rows alone, where the other holds the model too.
    """

    ends: FloatArray
    label: str
    rows: Ends | None = None


def draw_levels(
    panel: Axes,
    row: FeatureResult,
    interval: Ends | None,
    band: Ends | None,
    *,
    label: str,
    line: str,
    uncertainty: str,
    mark: str,
) -> None:
    """Draw the curve over levels as bars with whiskers; ``mark`` is the gid of these artists."""
    number, curve = row["edge_value"].values, row["curve"].values
    panel.axhline(0, color=line, linewidth=0.8, zorder=2, gid=mark)
    panel.bar(
        number, curve, BAR_WIDTH, color=LEVEL_FILL, edgecolor=line, linewidth=0.8, label=label
    )
    # The wider of two intervals is thinner, so that both are visible.
    rows = None if interval is None else interval.rows
    whole = uncertainty if rows is None else UNCERTAINTY_LIGHT
    for ends, width, cap, colour in (
        (band, 0.8, 5.0, uncertainty),
        (interval, 2.0, 0.0, whole),
        (rows, 2.0, 0.0, uncertainty),
    ):
        if ends is not None:
            panel.errorbar(
                number,
                curve,
                np.abs(ends.ends - curve),
                fmt="none",
                ecolor=colour,
                elinewidth=width,
                capsize=cap,
                label=ends.label,
                zorder=3,
            )
    name_levels(panel, row)


def draw_shares(panel: Axes, row: FeatureResult) -> None:
    """Draw the share of the rows at every level, with their number."""
    number, share = row["edge_value"].values, row["level_share"].values
    panel.bar(number, 100 * share, BAR_WIDTH, color=SHARE_FILL, linewidth=0)
    for place, height, n in zip(number, share, row["n_level"].values, strict=True):
        panel.annotate(
            f"{n:,}",
            (place, 100 * height),
            (0, 1.5),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize="x-small",
        )
    panel.set_ylim(0, 118 * share.max())
    weighted = not np.allclose(share, row["n_level"].values / row["n_level"].values.sum())
    panel.set_ylabel("weight [%]" if weighted else "rows [%]")
    name_levels(panel, row)


def name_levels(panel: Axes, row: FeatureResult) -> None:
    """Write the names of the levels along the x axis."""
    names = level_names(row)
    panel.set_xlim(-0.6, len(names) - 0.4)
    total = sum(min(len(name), NAME_LENGTH) + 2 for name in names)
    width = panel.get_window_extent().width * 72 / panel.figure.dpi
    if total * 5 <= width:
        texts = [textwrap.fill(name, NAME_LENGTH) for name in names]
        panel.set_xticks(range(len(names)), texts, parse_math=False)
        return
    # Of names that do not fit side by side, not even upright, some are left out.
    room = width / len(names)
    shown = range(0, len(names), int(np.ceil(UPRIGHT / room)))
    texts = [cut_within(names[number], LONGEST_NAME) for number in shown]
    panel.set_xticks(shown, texts, parse_math=False)
    steep = room < ASLANT
    panel.tick_params(axis="x", labelrotation=90 if steep else TURNED)
    for text in panel.get_xticklabels():
        text.set_horizontalalignment("right")
        text.set_verticalalignment("center" if steep else "top")
        text.set_rotation_mode("anchor")


# --- common axis limits of panels -----------------------------------------------------------------


# Minimum range of the axis of shares of replicates, so that rare edges look rare.
EDGE_SHARE = 0.2


def keep_noise_small(upper: Axes, lower: Axes, row: FeatureResult) -> None:
    """Enlarge the y scale so that rounding in the local effects does not look like an effect."""
    slope = ERRORS_SHOWN * error_text(row)
    enlarge(upper, slope * np.ptp(row["edge_value"].values))
    enlarge(lower, slope)


def enlarge(panel: Axes, least: float) -> None:
    """Enlarge the y scale to at least this length."""
    bottom, top = panel.get_ylim()
    if top - bottom < least:
        middle = (bottom + top) / 2
        panel.set_ylim(middle - least / 2, middle + least / 2)


def draw_curves(
    panels: Sequence[Axes],
    rows: Sequence[FeatureResult],
    label: str = "",
    spread: str = "none",
    percentiles: tuple[float, float] = INNER,
) -> None:
    """A curve in every panel, all on one scale; ``label`` is that of the y axes of a figure."""
    limits = common_limits(rows, spread, percentiles)
    for panel, row in zip(panels, rows, strict=True):
        if row.sizes["bin"]:
            draw_curve(panel, row, spread)
            keep_to_rows([panel], row, percentiles)
            draw_histogram(panel, row)
        else:
            say_constant(panel)
        if limits is not None:
            panel.set_ylim(*limits)
    if label:
        size = panels[0].yaxis.label.get_fontsize()
        panels[0].figure.supylabel(label, fontsize=size, parse_math=False)


def axis_ends(row: FeatureResult, percentiles: tuple[float, float]) -> FloatArray:
    """Ends of the axis of one feature: percentiles of its rows; of levels, all of it.

    Little that would be left out is not: it gives no room to the rest.
    """
    whole = row["edge_value"].values[[0, -1]]
    inner = quantiles_of(row, np.array(percentiles) / 100)
    if inner is None:
        return whole
    return np.where(np.abs(whole - inner) > MIN_CUT * np.ptp(whole), inner, whole)


def keep_to_rows(
    panels: Sequence[Axes], row: FeatureResult, percentiles: tuple[float, float]
) -> None:
    """Let panels reach between percentiles of the rows, paler where few rows are.

    A few distant rows would leave no room for the others. The first panel says how far they go.
    """
    if row.is_categorical:
        return
    whole, ends = row["edge_value"].values[[0, -1]], axis_ends(row, percentiles)
    margin, stretches = 0.02 * np.ptp(ends) * np.array([-1, 1]), _few_rows(row, ends)
    for panel in panels:
        panel.set_xlim(*np.where(ends == whole, ends + margin, ends))
        for stretch in stretches:
            panel.axvspan(*stretch, zorder=6, gid=OURS, color="white", alpha=PALE, linewidth=0)
    units = str(row["feature_units"].values) if "feature_units" in row else ""
    texts = axis_texts(whole, units)
    how: dict[str, Any] = {"va": "top", "fontsize": "x-small", "zorder": 7, "gid": OURS}
    how["transform"] = panels[0].transAxes
    if ends[0] != whole[0]:
        panels[0].text(0, 1, f"← from {texts[0]}", ha="left", **how)
    if ends[1] != whole[1]:
        panels[0].text(1, 1, f"to {texts[1]} →", ha="right", **how)


def _few_rows(row: FeatureResult, ends: FloatArray) -> list[FloatArray]:
    """Stretches of the axis in which few rows are: for their number and beside the others."""
    total = _rows_below(row)
    if total is None:
        return []
    places, below = total
    bars = np.linspace(ends[0], ends[1], N_BARS + 1)
    share = np.diff(np.interp(bars, places, below)) / below[-1]
    # With the neighbours of each: single bars do not stand out.
    share = np.convolve(np.pad(share, 1, mode="edge"), np.ones(3) / 3, mode="valid")
    n_rows = float(row["n_obs"].values.sum())
    few = (share * n_rows < FEW_ROWS) & (share < FEW_OF_USUAL / N_BARS)
    turns = np.flatnonzero(np.diff(few, prepend=False, append=False))
    return list(bars[turns].reshape(-1, 2))


def draw_histogram(panel: Axes, row: FeatureResult) -> None:
    """A histogram of the rows above the axis; of levels none.

    Within cells, and where there are none within bins, rows count as evenly spread on either side
    of their mean.
    """
    total = _rows_below(row)
    if total is None:
        return
    edges, below = total
    left, right = np.clip(panel.get_xlim(), edges[0], edges[-1])
    at_edges = np.linspace(left, right, N_BARS + 1)
    share = np.diff(np.interp(at_edges, edges, below))
    height, place = HEIGHT * share / share.max(), panel.get_xaxis_transform()
    how: dict[str, Any] = {"fill": True, "color": ROWS_FILL, "linewidth": 0, "zorder": 0.3}
    panel.add_patch(StepPatch(height, at_edges, transform=place, gid=OURS, **how))


def _rows_below(row: FeatureResult) -> tuple[FloatArray, FloatArray] | None:
    """Places along the axis, and the share of the rows below each; None where not known."""
    if row.is_categorical:
        return None
    name, edges = "cell_share", row.cell_edges
    if not len(edges):
        name, edges = "weight_share", row["edge_value"].values
    if name not in row or not len(edges):
        return None
    left, right = edges[:-1], edges[1:]
    share = np.nan_to_num(row[name].values[: len(left)])
    below = np.append(0.0, np.cumsum(share))
    if not below[-1] > 0:
        return None
    mean = row.curve_cells.pieces.x_mean if has_moments(row) else (left + right) / 2
    mean = np.where((mean > left) & (mean < right), mean, (left + right) / 2)
    # The parts of a cell on both sides of its mean are those that have this mean.
    below_mean = below[:-1] + share * (right - mean) / (right - left)
    places = np.column_stack([left, mean]).ravel()
    shares = np.column_stack([below[:-1], below_mean]).ravel()
    return np.append(places, edges[-1]), np.append(shares, below[-1])


def quantiles_of(row: FeatureResult, shares: FloatArray) -> FloatArray | None:
    """Quantiles of the rows along the axis of one feature; None of levels, and where not known."""
    total = _rows_below(row)
    return None if total is None else np.interp(shares * total[1][-1], total[1], total[0])


def common_limits(
    rows: Sequence[FeatureResult],
    spread_as: str,
    percentiles: tuple[float, float] = (0.0, 100.0),
) -> tuple[float, float] | None:
    """Limits that contain every curve with its bands and intervals; None without any curve."""
    ends = [0.0]
    for row in rows:
        if not row.sizes["bin"]:
            continue
        x, curve, spread, *about = curve_drawn(row)
        missing = missing_mark(row)
        wide = spread_as == "band" and not row.is_categorical
        drawn = [
            curve,
            *([curve - spread, curve + spread] if wide else []),
            *[part for part in about if part is not None],
        ]
        sight = axis_ends(row, percentiles)
        in_sight = (x >= sight[0]) & (x <= sight[1])
        ends.extend(() if missing is None else missing[np.isfinite(missing)])
        for part in np.concatenate([np.atleast_2d(each) for each in drawn]):
            at_ends = np.interp(sight, x, part)
            ends.extend(each for each in (*part[in_sight], *at_ends) if np.isfinite(each))
    return _with_room(ends)


def bin_limits(
    row: FeatureResult, percentiles: tuple[float, float], *, bars: bool
) -> tuple[float, float] | None:
    """Limits that contain 0 and the effects of the bins in sight with what is drawn about them."""
    low, high = axis_ends(row, percentiles)
    in_sight = (row["bin_right"].values > low) & (row["bin_left"].values < high)
    effect, ends = row["effect"].values, [0.0]
    ends.extend(bin_lines(row)[in_sight[np.isfinite(effect)], :, 1].ravel())
    sides = [side * row["heterogeneity"].values for side in (-1, 1)] if bars else []
    about = [effect + side for side in sides]
    about += [ends_of(row[name]) for name in ("effect_ci", "effect_band") if name in row]
    for part in about:
        in_bins = part[..., in_sight]
        ends.extend(in_bins[np.isfinite(in_bins)])
    return _with_room(ends)


def _with_room(ends: Sequence[float]) -> tuple[float, float] | None:
    """Limits with some room about the least and the largest of numbers; None if they are equal."""
    low, high = min(ends), max(ends)
    if low == high:
        return None
    return low - 0.05 * (high - low), high + 0.05 * (high - low)


# --- drawing of the curve of one feature with its intervals and bands -----------------------------


# Number of straight pieces by which a curve in a linear bin is drawn.
PARABOLA_PIECES = 32


def draw_pieces(panel: Axes, row: FeatureResult, line: float) -> None:
    """Draw the effect of every bin, with plus and minus its heterogeneity."""
    has_spread = draw_own_spread(panel, row, opacity=0.22, linewidths=line)
    ends = bin_lines(row, narrow=0.0)
    _draw_lines(panel, ends, linewidth=1.8)
    if has_spread:
        return
    heterogeneity = row["heterogeneity"].values[row["effect"].notnull().values]
    finite = np.isfinite(heterogeneity)
    spread = np.zeros((finite.sum(), 2, 2))  # (bin, end, coordinate), as the ends
    spread[:, :, 1] = heterogeneity[finite, None]
    below, above = ends[finite] - spread, ends[finite] + spread
    band = PolyCollection(
        list(np.concatenate([below, above[:, ::-1]], axis=1)),
        facecolors=to_rgba(HETEROGENEITY, 0.22),
        edgecolors=HETEROGENEITY,
        linewidths=line,
        zorder=3,
    )
    if finite.any():
        band.set_label(BIN_SPREAD)
        panel.add_collection(band)
    panel.autoscale_view(scalex=False)


def draw_own_spread(panel: Axes, row: FeatureResult, *, opacity: float, linewidths: float) -> bool:
    """Draw plus and minus the spread, between its own edges and those of the bins, if it has any.

    Say whether it has.
    """
    pieces = row.spread_pieces()
    if pieces is None:
        return False
    finite = np.isfinite(pieces.effect).all(axis=1) & np.isfinite(pieces.spread)
    x = np.column_stack([pieces.edges[:-1], pieces.edges[1:]])
    spread = pieces.spread[:, None]
    below, above = [
        np.stack([x, pieces.effect + side * spread], axis=-1)[finite] for side in (-1, 1)
    ]
    area = PolyCollection(
        list(np.concatenate([below, above[:, ::-1]], axis=1)),
        facecolors=to_rgba(HETEROGENEITY, opacity),
        edgecolors=HETEROGENEITY,
        linewidths=linewidths,
        zorder=3,
    )
    area.set_label(OWN_SPREAD)
    panel.add_collection(area)
    panel.autoscale_view(scalex=False)
    return True


def bin_lines(row: FeatureResult, narrow: float = NARROW_BIN) -> FloatArray:
    """Lines of the effects that are known, (bin, end, coordinate).

    They are level in bins that are narrower than this share of the axis.
    """
    bins = np.flatnonzero(row["effect"].notnull().values)
    left, right, mean = [row[name].values[bins] for name in ("bin_left", "bin_right", "effect")]
    is_narrow = right - left < narrow * np.ptp(row["edge_value"].values)
    return np.stack(
        [
            np.column_stack([x, np.where(is_narrow, mean, row.effect_at(x, bins))])
            for x in (left, right)
        ],
        axis=1,
    )


def _draw_lines(panel: Axes, ends: FloatArray, linewidth: float) -> None:
    """Draw a line for every effect that is known."""
    lines = LineCollection(
        list(ends), colors=AVERAGE, linewidths=linewidth, capstyle="butt", zorder=4
    )
    lines.set_label(BIN)
    panel.add_collection(lines)


class _DrawnCurve(NamedTuple):
    """A curve along its axis, with the half-width of its heterogeneity, interval and band.

    Pointwise interval and simultaneous band are (end, x); ``rows`` is the interval of the rows
    alone, where ``interval`` holds the model too.
    """

    x: FloatArray
    value: FloatArray
    spread: FloatArray
    interval: FloatArray | None
    band: FloatArray | None
    rows: FloatArray | None


def curve_drawn(row: FeatureResult) -> _DrawnCurve:
    """The curve at the edges of its bins and cells, and in linear bins between them."""
    edge, curve = row["edge_value"].values, row.curve
    ends, bent = curve.edges, np.flatnonzero(curve.slope)
    within = [np.linspace(ends[k], ends[k + 1], PARABOLA_PIECES + 1) for k in bent]
    # The spread bends at the edges of its own bins.
    spread_edges = row["spread_edge_value"].values if "spread_edge_value" in row else edge
    x = np.unique(np.concatenate([edge, ends, spread_edges, *within]))
    value = curve.evaluate(x)

    parts = with_rows_alone(row.dataset)

    def along(at_edges: FloatArray) -> FloatArray:
        return np.asarray(np.interp(x, edge, at_edges))

    def between(name: str) -> FloatArray:
        if not row.has_cells or f"cell_{name}" not in parts:
            return np.stack(
                [value + along(end - row["curve"].values) for end in ends_of(parts[name])]
            )
        cells, finite = row["cell_value"].values, np.isfinite(row["cell_curve"].values)
        return np.stack(
            [
                np.interp(x, cells[finite], end[finite], left=np.nan, right=np.nan)
                for end in ends_of(parts[f"cell_{name}"])
            ]
        )

    # With constant residual spread in a bin the band widens linearly, sloped or not. For a
    # standard error it is a stand-in: what a curve is at the edges does not tell it in between.
    spread = row.accumulated_spread(x)
    names = ("curve_ci", "curve_band", "curve_ci_rows")
    interval, band, rows = [between(name) if name in parts else None for name in names]
    return _DrawnCurve(x, value, spread, interval, band, rows)


# Ends of intervals, as a result holds them.
Interval: TypeAlias = xr.Variable | xr.DataArray


def ends_of(interval: Interval) -> FloatArray:
    """Lower and upper ends, (end, ...)."""
    return np.asarray(interval.transpose("ci_bound", ...).values, dtype=np.float64)


def draw_curve(panel: Axes, row: FeatureResult, spread_as: str = "band") -> None:
    """Draw the curve of one feature with its interval and band, and its spread if it is a band."""
    x, curve, spread, interval, band, rows = curve_drawn(row)
    if row.is_categorical:
        whiskers = band_of = None
        if interval is not None:
            of_rows = None if rows is None else Ends(rows, rows_label(row["curve_ci"]))
            whiskers = Ends(interval, _interval_label(row["curve_ci"]), of_rows)
        if band is not None:
            band_of = Ends(band, f"{_percent(row['curve_band'])} {CURVE_BAND}")
        colours = {"line": AVERAGE, "uncertainty": UNCERTAINTY}
        draw_levels(panel, row, whiskers, band_of, label=AT_LEVEL, mark=OURS, **colours)
        return
    panel.axhline(0, color=REFERENCE, linewidth=0.6, zorder=0.5, gid=OURS)
    panel.plot(x, curve, color=AVERAGE, linewidth=1.4, zorder=3, label=CURVE)
    if spread_as == "band":
        draw_spread(panel, x, curve, spread, label=BAND)
    if interval is not None and rows is not None:
        draw_area(panel, x, interval, _interval_label(row["curve_ci"]))
        draw_area(panel, x, rows, rows_label(row["curve_ci"]), dark=True)
    elif interval is not None:
        draw_interval(panel, x, interval, row["curve_ci"])
    if band is not None:
        draw_band(panel, x, band, row["curve_band"])
    _draw_missing(panel, row)


def missing_mark(row: FeatureResult) -> FloatArray | None:
    """Lower end, estimate and upper end for the rows without a value."""
    if "missing_curve" not in row or np.isnan(row["missing_curve"]):
        return None
    half = 0.0
    if "missing_effect_ci" in row:
        half = float(np.nan_to_num(np.ptp(row["missing_effect_ci"].values) / 2))
    return np.asarray(float(row["missing_curve"]) + half * np.array([-1.0, 0.0, 1.0]))


def _draw_missing(panel: Axes, row: FeatureResult) -> None:
    """Draw the rows without a value beside the axis, on which they have no place."""
    ends = missing_mark(row)
    if ends is None:
        return
    last = float(row["edge_value"].values[-1])
    draw_missing(panel, last, float(ends[1]), float(ends[2] - ends[1]), MISSING)


def _interval_label(interval: Interval) -> str:
    """What an interval is; of a curve whose zero is another than its mean, the zero too."""
    target = str(interval.attrs.get("target", "curve")).partition(", math")[0]
    source = source_suffix(str(interval.attrs.get("source", "rows")))
    zero = "" if target.startswith(USUAL_ZERO) else f": {target}"
    text = f"{_percent(interval)} {CURVE_INTERVAL}{source}{zero}"
    return textwrap.fill(text, LEGEND_WIDTH)


def source_suffix(source: str) -> str:
    """Suffix of a label for an interval: what it includes."""
    return f", {source}" if meaning.holds_model(source) else GIVEN


def rows_label(interval: Interval, text: str = ROWS_INTERVAL) -> str:
    """Label for the part of an interval that is due to the rows."""
    return f"{_percent(interval)} {text}"


def draw_interval(panel: Axes, x: FloatArray, ends: FloatArray, interval: Interval) -> None:
    """Draw the pointwise interval, dashed; it depends on the centring of the curve."""
    _shade(panel, x, ends)
    draw_ends(panel, x, ends, _interval_label(interval), linewidth=1.0, linestyle=(0, (4, 2)))


def draw_band(panel: Axes, x: FloatArray, ends: FloatArray, band: Interval) -> None:
    """Draw the simultaneous band as thin lines."""
    _shade(panel, x, ends)
    draw_ends(panel, x, ends, f"{_percent(band)} {CURVE_BAND}", linewidth=0.7)


def _shade(panel: Axes, x: FloatArray, ends: FloatArray) -> None:
    """Shade what lies between two ends; where both a band and an interval are, it is darker."""
    panel.fill_between(x, *ends, color=UNCERTAINTY_LIGHT, alpha=0.35, linewidth=0, zorder=1.5)


def _percent(interval: Interval) -> str:
    """Level of an interval in per cent, as text."""
    return f"{100 * float(interval.attrs['ci_prob']):g} %" if "ci_prob" in interval.attrs else "? %"


def draw_bins(panel: Axes, row: FeatureResult, *, bars: bool = False) -> None:
    """Draw the effect of every bin, the slope of the curve along it, with its intervals as areas.

    In a narrow bin the line is level: how the slope changes there cannot be read. With ``bars``
    from zero on, and with plus and minus the heterogeneity, as in the paper.
    """
    panel.axhline(0, color=REFERENCE, linewidth=0.6, zorder=0.5, gid=OURS)
    if bars:
        width, middle = row["bin_right"].values - row["bin_left"].values, row.middle
        mean, spread = row["effect"].values, row["heterogeneity"].values
        panel.bar(middle, mean, width, color=LEVEL_FILL, zorder=1)
        how: dict[str, Any] = {"fmt": "none", "ecolor": HETEROGENEITY, "elinewidth": 1.0}
        panel.errorbar(middle, mean, spread, capsize=2.0, zorder=3, label=BIN_SPREAD, **how)
    ends = bin_lines(row)
    _draw_lines(panel, ends, linewidth=1.6)
    bins = with_rows_alone(row.dataset.isel(bin=row["effect"].notnull().values))
    for name, colour, text in (
        ("effect_ci", UNCERTAINTY_LIGHT, BIN_INTERVAL),
        ("effect_ci_rows", UNCERTAINTY, BIN_ROWS),
    ):
        if name in bins:
            areas = PolyCollection(
                _interval_areas(bins, name, ends),
                facecolors=to_rgba(colour, 0.6),
                linewidths=0,
                zorder=2,
            )
            areas.set_label(f"{_percent(bins['effect_ci'])} {text}")
            panel.add_collection(areas)
    if "effect_band" in bins:
        shift = ends_of(bins["effect_band"]) - bins["effect"].values
        bounds = np.concatenate([ends + np.array([0, 1]) * by[:, None, None] for by in shift])
        band = LineCollection(list(bounds), colors=UNCERTAINTY, linewidths=0.7)
        band.set(zorder=2.5, label=f"{_percent(bins['effect_band'])} {BIN_BAND}")
        panel.add_collection(band)
    panel.autoscale_view(scalex=False)


def _interval_areas(bins: xr.Dataset, name: str, ends: FloatArray) -> list[FloatArray]:
    """Outlines of the intervals of bins, about the lines between ``ends``, (bin, end, coordinate).

    In a linear bin the error of its slope adds to that of its middle, as for any line.
    """
    place = np.linspace(-1, 1, POINTS_OF_AREA)
    (left, first), (right, last) = ends.transpose(1, 2, 0)
    half_width = (right - left) / 2
    x = (left + right)[:, None] / 2 + half_width[:, None] * place
    line = (first + last)[:, None] / 2 + (last - first)[:, None] / 2 * place
    below, above = ends_of(bins[name]) - bins["effect"].values
    se, slope_se = [
        bins[each].values if each in bins else 0.0 for each in ("effect_se", "slope_se")
    ]
    with np.errstate(invalid="ignore", divide="ignore"):
        by_slope = np.nan_to_num(np.asarray(slope_se) / se * half_width, posinf=0.0)
    by_slope = np.where(first == last, 0.0, by_slope)
    wider = np.sqrt(1 + (by_slope[:, None] * place) ** 2)
    outlines = [
        np.concatenate([np.column_stack([a, b + c * w]), np.column_stack([a, b + d * w])[::-1]])
        for a, b, c, d, w in zip(x, line, below, above, wider, strict=True)
    ]
    return [outline for outline in outlines if np.isfinite(outline).all()]


def draw_heterogeneity(panel: Axes, row: FeatureResult, percentiles: tuple[float, float]) -> None:
    """Draw how much the rows differ along the axis: their standard deviation, from zero on."""
    pieces = row.spread_pieces()
    if pieces is None:
        edges = np.append(row["bin_left"].values, row["bin_right"].values[-1:])
        spread = row["heterogeneity"].values
    else:
        edges, spread = pieces.edges, pieces.spread
    how: dict[str, Any] = {"fill": True, "facecolor": HETEROGENEITY_FILL, "zorder": 2}
    strip = StepPatch(np.nan_to_num(spread), edges, edgecolor=HETEROGENEITY, linewidth=0.8, **how)
    panel.add_patch(strip)
    low, high = axis_ends(row, percentiles)
    in_sight = spread[(edges[1:] > low) & (edges[:-1] < high) & np.isfinite(spread)]
    # What is nothing beside the effects shall look like it.
    least = max(ERRORS_SHOWN * error_text(row), 0.1 * np.nanmax(np.abs(row["effect"].values)))
    panel.set_ylim(0, 1.1 * max(in_sight.max(initial=0.0), least) or 1.0)


def bar(ends: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Middle and half length of error bars; the interval need not contain the estimate."""
    return ends.mean(axis=0), np.diff(ends, axis=0)[0] / 2
