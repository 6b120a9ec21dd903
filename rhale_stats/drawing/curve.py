"""Drawing of the curve of one feature, or of its levels, with intervals, bands and axis limits."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.patches import StepPatch

from rhale_stats.answers.sentences import axis_texts
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.drawing import frame
from rhale_stats.drawing.frame import HETEROGENEITY, HETEROGENEITY_FILL, UNCERTAINTY
from rhale_stats.inference.notes import with_rows_alone
from rhale_stats.printing.text import cut_within, in_lines
from rhale_stats.schema.feature_result import FeatureResult, has_moments
from rhale_stats.schema.features import units_in
from rhale_stats.schema.layout import MOMENTS
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
PALE, PALE_ROWS, PALE_SHARE = 0.55, 10, 0.25
# Names of levels that are too long are broken into lines, and rotated if still too long.
NAME_LENGTH, TURNED = 14, 30
# Longest name where they are turned; points that a name needs beside others, upright and aslant.
LONGEST_NAME, UPRIGHT, ASLANT = 22, 9.0, 22.0
# The zero of a curve that goes without saying.
USUAL_ZERO = "curve centred at its mean over the population"
# Number of straight pieces by which a curve in a linear bin is drawn.
PARABOLA_PIECES = 32
# Ends of intervals, as a result holds them.
Interval: TypeAlias = xr.Variable | xr.DataArray


class Ends(NamedTuple):
    """An interval or a band along a curve, (lower or upper, x), and its entry in the legend."""

    ends: FloatArray
    label: str


class DrawnCurve(NamedTuple):
    """A curve along its axis, with the half-width of its heterogeneity, interval and band.

    ``rows`` is the interval of the rows alone, where ``interval`` holds the model too.
    """

    x: FloatArray
    value: FloatArray
    spread: FloatArray
    interval: Ends | None
    band: Ends | None
    rows: Ends | None


def curve_drawn(row: FeatureResult) -> DrawnCurve:
    """The curve at the edges of its bins and cells, and in linear bins between them."""
    edge, curve = row.bin_edges, row.curve
    ends, bent = curve.edges, np.flatnonzero(curve.slope)
    within = [np.linspace(ends[k], ends[k + 1], PARABOLA_PIECES + 1) for k in bent]
    # The spread bends at the edges of its own bins.
    x = np.unique(np.concatenate([edge, ends, row.spread_edges, *within]))
    value = curve.evaluate(x)
    parts = with_rows_alone(row.dataset) if "curve_se_rows" in row else row

    def interpolated(name: str, words: str = "") -> Ends | None:
        if name not in parts:
            return None
        values, ends = row["curve"].values, ends_of(parts[name])
        text = interval_label(row[name.removesuffix("_rows")], words)
        is_drawn = np.isfinite(values) & np.isfinite(ends).all(axis=0)
        if not is_drawn.any():
            return Ends(np.full((2, len(x)), np.nan), text)
        # Of replicates intervals are known at the edges of bins alone.
        places, shifts = row.edges[is_drawn], (ends - values)[:, is_drawn]
        return Ends(np.stack([value + np.interp(x, places, shift) for shift in shifts]), text)

    # With constant residual spread in a bin the band widens linearly, sloped or not. For a
    # standard error it is a stand-in: what a curve is at the edges does not tell it in between.
    spread = row.accumulated_spread(x)
    interval, band = interpolated("curve_ci"), interpolated("curve_band", frame.CURVE_BAND)
    rows = interpolated("curve_ci_rows", frame.ROWS_INTERVAL)
    return DrawnCurve(x, value, spread, interval, band, rows)


def draw_curve(panel: Axes, row: FeatureResult, spread_as: str = "band") -> None:
    """Draw the curve of one feature with its interval and band, and its spread if it is a band."""
    drawn = curve_drawn(row)
    if row.is_categorical:
        _draw_levels(panel, row, drawn)
        return
    frame.draw_zero(panel)
    x, curve = drawn.x, drawn.value
    panel.plot(x, curve, color=frame.AVERAGE, linewidth=1.4, zorder=3, label=frame.CURVE)
    if spread_as == "band":
        about = (curve - drawn.spread, curve + drawn.spread)
        frame.draw_between(panel, x, about, frame.BAND, color=HETEROGENEITY_FILL, zorder=1)
    draw_uncertainty(panel, x, drawn.interval, drawn.band, drawn.rows)
    missing = missing_mark(row)
    if missing is not None:  # such rows have no place on the axis
        last = float(row.bin_edges[-1])
        _, value, end = map(float, missing)
        frame.draw_missing(panel, last, value, end - value, frame.MISSING)


def draw_uncertainty(
    panel: Axes, x: FloatArray, interval: Ends | None, band: Ends | None, rows: Ends | None = None
) -> None:
    """Draw the pointwise interval, dashed, and the simultaneous band, as thin lines.

    Where both are, what lies between their ends is darker. An interval that holds the model is an
    area, and that of the rows a dark one within it.
    """
    if interval is not None and rows is not None:
        frame.draw_area(panel, x, *interval)
        frame.draw_area(panel, x, *rows, dark=True)
        interval = None
    for ends, how in (
        (interval, {"linewidth": 1.0, "linestyle": frame.DASHES}),
        (band, {"linewidth": 0.7}),
    ):
        if ends is None:
            continue
        light: dict[str, Any] = {"color": frame.UNCERTAINTY_LIGHT, "alpha": 0.35, "zorder": 1.5}
        frame.draw_between(panel, x, ends.ends, **light)
        frame.draw_ends(panel, x, *ends, **how)


def missing_mark(row: FeatureResult) -> FloatArray | None:
    """Lower end, estimate and upper end for the rows without a value."""
    if "missing_curve" not in row or np.isnan(row["missing_curve"]):
        return None
    half = 0.0
    if "missing_effect_ci" in row:
        half = float(np.nan_to_num(np.ptp(row["missing_effect_ci"].values) / 2))
    return np.asarray(float(row["missing_curve"]) + half * np.array([-1.0, 0.0, 1.0]))


def ends_of(interval: Interval) -> FloatArray:
    """Lower and upper ends, (end, ...)."""
    return np.asarray(interval.transpose("ci_bound", ...).values, dtype=np.float64)


def interval_label(interval: Interval, words: str = "") -> str:
    """The level of an interval or band with the ``words``; without them what an interval is.

    That of a curve whose zero is another than its mean says the zero too.
    """
    if words:
        return f"{frame.level_text(interval)} {words}"
    target = str(interval.attrs.get("target", "curve")).partition(", math")[0]
    source = frame.source_suffix(str(interval.attrs.get("source", "rows")))
    zero = "" if target.startswith(USUAL_ZERO) else f": {target}"
    text = f"{frame.level_text(interval)} {frame.CURVE_INTERVAL}{source}{zero}"
    return textwrap.fill(text, frame.LEGEND_WIDTH)


def _draw_levels(panel: Axes, row: FeatureResult, drawn: DrawnCurve) -> None:
    """Draw the curve over levels as bars with whiskers."""
    number, curve = row.edges, row["curve"].values
    frame.draw_zero(panel, color=frame.AVERAGE, linewidth=0.8, zorder=2)
    outline: dict[str, Any] = {"edgecolor": frame.AVERAGE, "linewidth": 0.8}
    panel.bar(number, curve, BAR_WIDTH, color=LEVEL_FILL, label=frame.AT_LEVEL, **outline)
    # The wider of two intervals is thinner, so that both are visible.
    whole = UNCERTAINTY if drawn.rows is None else frame.UNCERTAINTY_LIGHT
    for ends, width, cap, colour in (
        (drawn.band, 0.8, 5.0, UNCERTAINTY),
        (drawn.interval, 2.0, 0.0, whole),
        (drawn.rows, 2.0, 0.0, UNCERTAINTY),
    ):
        if ends is not None:
            how = {"ecolor": colour, "capsize": cap, "label": ends.label, "zorder": 3}
            frame.draw_whiskers(panel, number, curve, np.abs(ends.ends - curve), width, **how)
    name_levels(panel, level_names(row))


def draw_shares(panel: Axes, row: FeatureResult) -> None:
    """Draw the share of the rows at every level, with their number."""
    number, share = row.bin_edges, row["level_share"].values
    panel.bar(number, 100 * share, BAR_WIDTH, color=SHARE_FILL, linewidth=0)
    for place, height, n in zip(number, share, row["n_level"].values, strict=True):
        frame.mark(panel, f"{n:,}", (place, 100 * height), 0, 1.5, fontsize="x-small")
    panel.set_ylim(0, 118 * share.max())
    weighted = not np.allclose(share, row["n_level"].values / row["n_level"].values.sum())
    panel.set_ylabel("weight [%]" if weighted else "rows [%]")
    name_levels(panel, level_names(row))


def name_levels(panel: Axes, names: Sequence[str], below: Sequence[str] = ()) -> None:
    """Write the names of the levels along the x axis, and something short below each."""
    panel.set_xlim(-0.6, len(names) - 0.4)
    below = below or [""] * len(names)
    both = list(zip(names, below, strict=True))
    total = sum(max(min(len(name), NAME_LENGTH), len(more)) + 2 for name, more in both)
    width = frame.width_of(panel)
    if total * 5 <= width:
        texts = ["\n".join([*in_lines(name, NAME_LENGTH), more]).rstrip() for name, more in both]
        panel.set_xticks(range(len(names)), texts, parse_math=False)
        return
    # Of names that do not fit side by side, not even upright, some are left out.
    room = width / len(names)
    shown = range(0, len(names), int(np.ceil(UPRIGHT / room)))
    cut = [(cut_within(names[number], LONGEST_NAME), below[number]) for number in shown]
    texts = [", ".join(filter(None, pair)) for pair in cut]
    panel.set_xticks(shown, texts, parse_math=False)
    steep = room < ASLANT
    panel.tick_params(axis="x", labelrotation=90 if steep else TURNED)
    for text in panel.get_xticklabels():
        text.set_horizontalalignment("right")
        text.set_verticalalignment("center" if steep else "top")
        text.set_rotation_mode("anchor")


# --- axis limits ----------------------------------------------------------------------------------


def axis_ends(row: FeatureResult, percentiles: tuple[float, float]) -> FloatArray:
    """Ends of the axis of one feature: percentiles of its rows; of levels, all of it.

    Little that would be left out is not: it gives no room to the rest.
    """
    whole = row.bin_edges[[0, -1]]
    inner = quantiles_of(row, np.array(percentiles) / 100)
    if inner is None:
        return whole
    return np.where(np.abs(whole - inner) > MIN_CUT * np.ptp(whole), inner, whole)


def keep_to_rows(
    panels: Iterable[Axes], row: FeatureResult, percentiles: tuple[float, float]
) -> None:
    """Let panels reach between percentiles of the rows, paler where few rows are.

    A few distant rows would leave no room for the others. The first panel says how far they go.
    """
    if row.is_categorical:
        return
    first, *_ = panels = list(panels)
    whole, ends = row.bin_edges[[0, -1]], axis_ends(row, percentiles)
    margin, stretches = 0.02 * np.ptp(ends) * np.array([-1, 1]), _few_rows(row, ends)
    pale: dict[str, Any] = {"color": "white", "alpha": PALE, "linewidth": 0}
    for panel in panels:
        panel.set_xlim(*np.where(ends == whole, ends + margin, ends))
        for stretch in stretches:
            panel.axvspan(*stretch, zorder=6, gid=frame.OURS, **pale)
    texts = axis_texts(whole, units_in(row))
    how: dict[str, Any] = {"va": "top", "fontsize": "x-small", "zorder": 7, "gid": frame.OURS}
    how["transform"] = first.transAxes
    if ends[0] != whole[0]:
        first.text(0, 1, f"← from {texts[0]}", ha="left", **how)
    if ends[1] != whole[1]:
        first.text(1, 1, f"to {texts[1]} →", ha="right", **how)


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
        ends.extend(() if missing is None else missing)
        wide = spread_as == "band" and not row.is_categorical
        lines = [curve, *([curve - spread, curve + spread] if wide else [])]
        lines += [end for part in about if part is not None for end in part.ends]
        sight = axis_ends(row, percentiles)
        in_sight = (x >= sight[0]) & (x <= sight[1])
        for line in lines:
            ends.extend([*line[in_sight], *np.interp(sight, x, line)])
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
        ends.extend(part[..., in_sight].ravel())
    return _with_room(ends)


def _with_room(ends: Sequence[float]) -> tuple[float, float] | None:
    """Limits with some room about the known ones of some numbers; None if these are equal."""
    finite = [end for end in ends if np.isfinite(end)]
    low, high = min(finite), max(finite)
    return None if low == high else (low - 0.05 * (high - low), high + 0.05 * (high - low))


# --- where the rows are ---------------------------------------------------------------------------


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
    few = (share * n_rows < PALE_ROWS) & (share < PALE_SHARE / N_BARS)
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
    panel.add_patch(StepPatch(height, at_edges, transform=place, gid=frame.OURS, **how))


def _rows_below(row: FeatureResult) -> tuple[FloatArray, FloatArray] | None:
    """Places along the axis, and the share of the rows below each; None where not known."""
    if row.is_categorical:
        return None
    edges = row.edges
    if MOMENTS not in row or not len(edges):
        return None
    left, right = edges[:-1], edges[1:]
    share = np.nan_to_num(row.cell_share)
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


# --- effects of bins ------------------------------------------------------------------------------


def bin_lines(row: FeatureResult, narrow: float = NARROW_BIN) -> FloatArray:
    """Lines of the effects that are known, (bin, end, coordinate).

    They are level in bins that are narrower than this share of the axis.
    """
    bins = np.flatnonzero(row["effect"].notnull().values)
    left, right, mean = [row[name].values[bins] for name in ("bin_left", "bin_right", "effect")]
    is_narrow = right - left < narrow * np.ptp(row.bin_edges)
    return np.stack(
        [
            np.column_stack([x, np.where(is_narrow, mean, row.effect_at(x, bins))])
            for x in (left, right)
        ],
        axis=1,
    )


def _draw_lines(panel: Axes, ends: FloatArray, linewidth: float) -> None:
    how: dict[str, Any] = {"colors": frame.AVERAGE, "capstyle": "butt", "zorder": 4}
    frame.add(panel, LineCollection(list(ends), linewidths=linewidth, **how), frame.BIN)


def draw_pieces(panel: Axes, row: FeatureResult, line: float) -> None:
    """Draw the effect of every bin, with plus and minus its heterogeneity.

    The heterogeneity may have bins of its own: then it is drawn between their edges, too.
    """
    ends, label = bin_lines(row, narrow=0.0), frame.BIN_SPREAD
    spread = row["heterogeneity"].values[row["effect"].notnull().values]
    _draw_lines(panel, ends, linewidth=1.8)
    pieces = row.spread_pieces()
    if pieces is not None:
        x = np.column_stack([pieces.edges[:-1], pieces.edges[1:]])
        ends, label = np.stack([x, pieces.effect], axis=-1), frame.OWN_SPREAD
        spread = pieces.spread
    finite = np.isfinite(ends).all(axis=(1, 2)) & np.isfinite(spread)
    if finite.any():
        reach = spread[finite, None, None] * np.array([0, 1])
        below, above = ends[finite] - reach, ends[finite] + reach
        how: dict[str, Any] = {"facecolors": to_rgba(HETEROGENEITY, 0.22), "zorder": 3}
        how |= {"edgecolors": HETEROGENEITY, "linewidths": line}
        outlines = list(np.concatenate([below, above[:, ::-1]], axis=1))
        frame.add(panel, PolyCollection(outlines, **how), label)
    panel.autoscale_view(scalex=False)


def draw_bins(panel: Axes, row: FeatureResult, *, bars: bool = False) -> None:
    """Draw the effect of every bin, the slope of the curve along it, with its intervals as areas.

    In a narrow bin the line is level: how the slope changes there cannot be read. With ``bars``
    from zero on, and with plus and minus the heterogeneity, as in the paper.
    """
    frame.draw_zero(panel)
    if bars:
        width, middle = row["bin_right"].values - row["bin_left"].values, row.middle
        mean, spread = row["effect"].values, row["heterogeneity"].values
        panel.bar(middle, mean, width, color=LEVEL_FILL, zorder=1)
        how: dict[str, Any] = {"ecolor": HETEROGENEITY, "capsize": 2.0, "zorder": 3}
        frame.draw_whiskers(panel, middle, mean, spread, 1.0, label=frame.BIN_SPREAD, **how)
    ends = bin_lines(row)
    _draw_lines(panel, ends, linewidth=1.6)
    bins = with_rows_alone(row.dataset.isel(bin=row["effect"].notnull().values))
    for name, colour, text in (
        ("effect_ci", frame.UNCERTAINTY_LIGHT, frame.BIN_INTERVAL),
        ("effect_ci_rows", UNCERTAINTY, frame.BIN_ROWS),
    ):
        if name in bins:
            outlines, fill = _interval_areas(bins, name, ends), to_rgba(colour, 0.6)
            areas = PolyCollection(outlines, facecolors=fill, linewidths=0, zorder=2)
            frame.add(panel, areas, f"{frame.level_text(bins['effect_ci'])} {text}")
    if "effect_band" in bins:
        shift = ends_of(bins["effect_band"]) - bins["effect"].values
        bounds = np.concatenate([ends + np.array([0, 1]) * by[:, None, None] for by in shift])
        band = LineCollection(list(bounds), colors=UNCERTAINTY, linewidths=0.7, zorder=2.5)
        frame.add(panel, band, f"{frame.level_text(bins['effect_band'])} {frame.BIN_BAND}")
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
    se, slope_se = [
        bins[each].values if each in bins else 0.0 for each in ("effect_se", "slope_se")
    ]
    with np.errstate(invalid="ignore", divide="ignore"):
        by_slope = np.nan_to_num(np.asarray(slope_se) / se * half_width, posinf=0.0)
    by_slope = np.where(first == last, 0.0, by_slope)
    wider = np.sqrt(1 + (by_slope[:, None] * place) ** 2)
    shifts = ends_of(bins[name]) - bins["effect"].values
    below, above = [np.stack([x, line + shift[:, None] * wider], axis=-1) for shift in shifts]
    outlines = np.concatenate([below, above[:, ::-1]], axis=1)
    return list(outlines[np.isfinite(outlines).all(axis=(1, 2))])


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
    largest = np.nanmax(np.abs(row["effect"].values))
    least = max(frame.ERRORS_SHOWN * frame.error_text(row), 0.1 * largest)
    panel.set_ylim(0, 1.1 * max(in_sight.max(initial=0.0), least) or 1.0)
