"""Drawing of the rows: rugs, points, density, colours, and the distribution in each bin."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import Normalize
from numpy.typing import ArrayLike, NDArray

from rhale_stats.arguments.checks import check_finite
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.drawing import frame
from rhale_stats.drawing.curve import draw_pieces
from rhale_stats.drawing.frame import HETEROGENEITY, HETEROGENEITY_FILL, sns
from rhale_stats.effects.provenance import check_no_other_model
from rhale_stats.local.rows import own_columns
from rhale_stats.schema.dimensions import LEFT
from rhale_stats.schema.feature_result import FeatureResult
from rhale_stats.schema.features import feature_names

# Levels with a colour of their own; shades of numbers, dark to light, also in grey.
MAX_LEVELS, SHADES = 4, "viridis"
OTHERS = "others"
MISSING_COLOUR = (0.6, 0.6, 0.6, 1.0)


class RowColours(NamedTuple):
    """Colours (row, 4), and what says what they mean: levels, or the ends of a scale."""

    colours: NDArray[np.float64]
    name: str
    levels: dict[str, Any]
    ends: tuple[float, float] | None

    def explain(self, panel: Axes) -> None:
        """Add entries of the legend, or a scale beside the panel."""
        for level, colour in self.levels.items():
            label = f"{self.name} {level}".strip()
            panel.plot([], [], color=colour, linewidth=2, label=label, gid=frame.OURS)
        if self.ends is not None:
            scale = ScalarMappable(Normalize(*self.ends), SHADES)
            panel.figure.colorbar(scale, ax=panel, label=self.name)


def coloured(hue: ArrayLike, n_rows: int) -> RowColours:
    """Colours of rows by a column: a Series with its name, or an array."""
    array = np.asarray(hue)
    if array.shape != (n_rows,):
        raise ValueError(
            f"hue must have one value for each of the {n_rows} rows; got shape {array.shape}."
        )
    values = hue if isinstance(hue, pd.Series) else pd.Series(array)
    name = "" if values.name is None else str(values.name)
    number = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    if number and values.nunique() > MAX_LEVELS:
        x = values.to_numpy(dtype=float, na_value=np.nan)
        ends = (float(np.nanmin(x)), float(np.nanmax(x)))
        shades = sns.color_palette(SHADES, as_cmap=True)(Normalize(*ends)(np.nan_to_num(x)))
        shades[np.isnan(x)] = MISSING_COLOUR
        return RowColours(np.asarray(shades), name, {}, ends)
    # The most frequent levels have a colour of their own.
    text = values.astype(object).where(values.notna(), "missing").map(str)
    by_frequency = list(text.value_counts().index)
    with_colour = sorted(
        by_frequency if len(by_frequency) <= MAX_LEVELS else by_frequency[: MAX_LEVELS - 1]
    )
    palette = [(*colour, 1.0) for colour in sns.color_palette("colorblind", MAX_LEVELS)]
    levels: dict[str, Any] = dict(zip(with_colour, palette, strict=False))
    if len(by_frequency) > MAX_LEVELS:
        levels[OTHERS] = MISSING_COLOUR
    colours = np.array([levels.get(level, MISSING_COLOUR) for level in text])
    return RowColours(colours, name and f"{name}:", levels, None)


# --- the distribution of the local effects in each bin --------------------------------------------


# Number of points of a violin, and the share of its bin's width that it takes.
VIOLIN_POINTS = 512
VIOLIN_WIDTH = 0.33
# Shares of the rows: the ends of a bar, and the median within it.
SHARES = (0.1, 0.5, 0.9)
# Widest of these bars, as a share of the axis.
BAR_OF_AXIS = 0.03
# Tails that would stretch a panel by this factor are cut off, down to the central part.
LONG_TAILS = 2.0
CENTRAL_PART = 0.99


class RowsInBins(NamedTuple):
    """Rows of one feature, with the bins that they are in."""

    x: FloatArray
    local_effect: FloatArray
    weight: FloatArray
    frequency: bool
    bin: IntArray


def draw_violins(panel: Axes, rows: RowsInBins, row: FeatureResult) -> None:
    """Draw the distribution of the local effects in every bin as a violin."""
    edges, slope = row.bin_edges, row.slopes
    width = np.diff(edges)
    middle = edges[:-1] + width / 2
    # Without removing the slope a violin would be long where rows differ only in x.
    away = rows.x - middle[rows.bin]
    moved, error = rows.local_effect - slope[rows.bin] * away, frame.error_text(row)
    outlines: list[FloatArray] = []
    flat: list[FloatArray] = []
    for position in np.unique(rows.bin):
        inside = rows.bin == position
        value, density = _violin(moved[inside], rows.weight[inside], rows.frequency, error)
        reach = VIOLIN_WIDTH * width[position] / 2 * density
        side, other = [
            np.column_stack([middle[position] + step, value + slope[position] * step])
            for step in (-reach, reach)
        ]
        outline = np.concatenate([side, other[::-1]])
        (outlines if len(value) > 1 else flat).append(outline)
    room = width.min() / np.ptp(edges) * frame.width_of(panel)
    line = float(np.clip(0.05 * room, 0.15, 0.5))
    how: dict[str, Any] = {"linewidths": line, "zorder": 1}
    # Before the violins the limits are those of the bins.
    bins = panel.get_ylim()
    if outlines:
        fill, edge = HETEROGENEITY_FILL, HETEROGENEITY
        shapes = PolyCollection(outlines, facecolors=fill, edgecolors=edge, **how)
        frame.add(panel, shapes, frame.VIOLIN)
    if flat:
        frame.add(panel, LineCollection(flat, colors=HETEROGENEITY, **how))
    panel.set_autoscaley_on(True)
    panel.autoscale_view(scalex=False)
    shorten_tails(panel, rows, bins)
    panel.set_ylim(panel.get_ylim())


def shorten_tails(panel: Axes, rows: RowsInBins, bins: tuple[float, float]) -> None:
    """Cut long tails of local effects off the panel, and write the share of rows that is hidden.

    A few rows at a hundred times the usual distance from the mean would make the bins invisible.
    The panel always contains the bins and the central part of the local effects.
    """
    g, weight = rows.local_effect, rows.weight
    tail = (1 - CENTRAL_PART) / 2
    ends = np.quantile(g, [tail, 1 - tail], method="inverted_cdf", weights=weight)
    bottom, top = min(bins[0], ends[0]), max(bins[1], ends[1])
    margin = 0.05 * (top - bottom)
    if np.diff(panel.get_ylim())[0] < LONG_TAILS * (top - bottom):
        return
    panel.set_ylim(bottom - margin, top + margin)
    outside = (g < bottom - margin) | (g > top + margin)
    share = float(weight[outside].sum() / weight.sum())
    if share:
        frame.note(panel, f"{100 * share:.2g} % of local effects off the scale")


def _violin(
    g: FloatArray, weight: FloatArray, frequency: bool, error: float
) -> tuple[FloatArray, FloatArray]:
    """Local effects from min to max, and their Gaussian kernel density over its maximum.

    Rows are moved to the nearest of these points, to which the kernel is applied. Effects that are
    equal up to the ``error`` are one point.
    """
    low, high = float(g.min()), float(g.max())
    if high - low <= max(error, 16 * float(np.spacing(max(abs(low), abs(high))))):
        return np.array([low]), np.ones(1)
    step = (high - low) / (VIOLIN_POINTS - 1)
    point = np.clip(np.rint((g - low) / step).astype(np.intp), 0, VIOLIN_POINTS - 1)
    total = weight.sum()
    share = np.bincount(point, weight, VIOLIN_POINTS) / total
    # math [6]: a frequency weight is so many rows.
    n_effective = total**2 / (total if frequency else weight @ weight)
    distance = np.arange(1 - VIOLIN_POINTS, VIOLIN_POINTS)
    kernel = np.exp(-0.5 * (distance / _silverman(share, n_effective)) ** 2)
    density = np.convolve(share, kernel, "valid")
    return np.linspace(low, high, VIOLIN_POINTS), density / density.max()


def _silverman(share: FloatArray, n_effective: float) -> float:
    """Silverman's rule of thumb in steps of the grid, on which a step is the least."""
    steps = np.arange(len(share))
    spread = float(np.sqrt(np.sum(share * (steps - np.sum(share * steps)) ** 2)))
    lower, upper = np.searchsorted(np.cumsum(share), [0.25, 0.75])
    robust = float(upper - lower) / 1.34
    if robust > 0:  # otherwise half of the rows share one value
        spread = min(spread, robust)
    return max(float(0.9 * spread * n_effective**-0.2), 1.0)


# --- drawing of the rows --------------------------------------------------------------------------


# The rug's grid is finer than print resolution. More ticks than this would merge.
RUG_POSITIONS = 2000
RUG_TICKS = 400
RUG_CELLS = 200
RUG_HEIGHT = 0.03  # of the panel: less than the margin below the data
DENSITY_CELLS = 80  # along the axis
# Area of a point in points squared: the usual one, and the largest one with weights.
POINT_AREA, LARGEST_POINT = (2.5, 14.0), 100.0


def draw_rows(panel: Axes, rows: RowsInBins, row: FeatureResult) -> None:
    """Draw rows as points or density, edges, and the bin effects with their band."""
    edges = row.bin_edges
    span = np.ptp(edges)
    room = np.diff(edges).min() / span * frame.width_of(panel)
    panel.set_xlim(edges[0] - 0.02 * span, edges[-1] + 0.02 * span)
    draw_pieces(panel, row, np.clip(0.05 * room, 0.2, 0.8))
    bins = panel.get_ylim()
    many = len(rows.x) > frame.POINTS_DRAWN
    if many:
        panel.update_datalim(np.column_stack([rows.x, rows.local_effect]))
    else:
        usual = float(np.clip(4000 / len(rows.x), *POINT_AREA))
        share = rows.weight / rows.weight.mean()
        area = share * min(usual, LARGEST_POINT / share.max())
        label = frame.WEIGHED if (share != share[0]).any() else frame.POINTS
        dots: dict[str, Any] = {"color": "0.25", "alpha": 0.6, "linewidths": 0, "zorder": 3.5}
        panel.scatter(rows.x, rows.local_effect, s=area, label=label, **dots)
    panel.autoscale_view(scalex=False)
    shorten_tails(panel, rows, bins)
    frame.enlarge(panel, frame.ERRORS_SHOWN * frame.error_text(row))
    if many:
        limits = panel.get_ylim()
        _draw_density(panel, rows)
        panel.set_ylim(limits)
    how: dict[str, Any] = {"colors": frame.REFERENCE, "linewidth": np.clip(0.05 * room, 0.2, 0.7)}
    how |= {"transform": panel.get_xaxis_transform(), "zorder": 2.2, "gid": frame.OURS}
    panel.vlines(edges, 0, 1, label=frame.EDGES, **how)


def _draw_density(panel: Axes, rows: RowsInBins) -> None:
    """Draw rows in hexagonal cells; square-root shading keeps thin tails visible."""
    box = panel.get_window_extent()
    low, high = rows.x.min(), rows.x.max()
    n_high = max(int(DENSITY_CELLS * box.height / box.width / np.sqrt(3)), 2)
    grid: dict[str, Any] = {"gridsize": (DENSITY_CELLS, n_high), "reduce_C_function": np.sum}
    grid |= {"extent": (low, high, *panel.get_ylim()), "linewidths": 0.1, "zorder": 2}
    cells = panel.hexbin(rows.x, rows.local_effect, rows.weight, **grid)
    weight = np.asarray(cells.get_array())
    cells.set_array(None)
    cells.set_facecolor(_shades(weight))
    cells.set_edgecolor("face")
    cells.set_label(frame.DENSITY)


def rows_of(
    local: xr.Dataset, row: FeatureResult, effect: xr.Dataset | None = None
) -> RowsInBins | None:
    """Rows of ``local`` in the bins of ``row``; None for a constant feature.

    With the ``effect`` that ``row`` is of, they are those of which it was estimated.
    """
    if (name := row.name) not in feature_names(local):
        raise KeyError(
            f"local must hold the feature {name!r}; it holds "
            f"{', '.join(map(repr, feature_names(local)))}. Pass the local effects that effect "
            f"was made from."
        )
    if not row.sizes["bin"]:
        return None
    made_from = own_columns(local, [name], effect)[name]
    rows, position = made_from
    method = str(local["local_effect_method"].sel(feature=name).values)
    if LEFT in local and method != "finite_difference":
        # Their halves stand for the axis around them; a picture has the rows where they are.
        rows, position = own_columns(local.drop_vars(LEFT), [name], effect)[name]
    x, g = rows.x[position], rows.local_effect[position]
    weight = np.ones(len(x)) if rows.weight is None else rows.weight
    edges = row.bin_edges
    for values, what in ((x, "x"), (g, "Local effects")):
        check_finite(values, what, name, "Select the rows first: local.isel(obs=...).")
    outside = int(((x < edges[0]) | (x > edges[-1])).sum())
    if outside:
        raise ValueError(
            f"local must hold rows in the bins of effect, from {edges[0]:.6g} to {edges[-1]:.6g} "
            f"for feature {name!r}; got {outside} of {len(x)} rows outside. Pass the local effects "
            f"that effect was made from, or select the rows first: local.isel(obs=...)."
        )
    check_no_other_model(row, *made_from)
    return RowsInBins(x, g, weight, rows.frequency, bin_index(edges, x))


def draw_row_bars(panel: Axes, rows: RowsInBins, row: FeatureResult) -> None:
    """Draw 10 to 90 % of the rows as a bar in every bin, and their median.

    They are residuals about the effect: in a linear bin rows differ by their places, too.
    """
    left, right, mean = [row[name].values for name in ("bin_left", "bin_right", "effect")]
    middle = (left + right) / 2
    width = np.minimum(VIOLIN_WIDTH * (right - left), BAR_OF_AXIS * np.ptp(row.bin_edges))
    away = rows.local_effect - row.slopes[rows.bin] * (rows.x - middle[rows.bin])
    quantiles = np.full((len(SHARES), len(mean)), np.nan)
    for position in np.unique(rows.bin):
        inside = rows.bin == position
        quantiles[:, position] = np.quantile(
            away[inside], SHARES, method="inverted_cdf", weights=rows.weight[inside]
        )
    low, median, high = quantiles
    limits = [*panel.get_ylim(), np.nanmin(low), np.nanmax(high)]
    how: dict[str, Any] = {"color": HETEROGENEITY_FILL, "zorder": 1, "label": frame.BARS}
    panel.bar(middle, high - low, width, low, **how)
    at_median: dict[str, Any] = {"colors": HETEROGENEITY, "linewidth": 0.8, "zorder": 1.1}
    panel.hlines(median, middle - width / 2, middle + width / 2, **at_median)
    panel.set_ylim(min(limits), max(limits))


def draw_rug(panel: Axes, rows: RowsInBins, edges: FloatArray) -> None:
    """Draw where the rows are: ticks, or cells if ticks would merge, darker for more rows."""
    low, span = edges[0], np.ptp(edges)
    place = (rows.x - low) / span
    tick = np.rint(place * RUG_POSITIONS).astype(np.intp)
    weight = np.bincount(tick, rows.weight, RUG_POSITIONS + 1)
    how: dict[str, Any] = {"transform": panel.get_xaxis_transform(), "gid": "rug"}
    if np.count_nonzero(weight) <= RUG_TICKS:
        ticks = low + span * np.flatnonzero(weight) / RUG_POSITIONS
        panel.vlines(ticks, 0, RUG_HEIGHT, colors=_shades(weight), linewidths=0.6, **how)
        return
    cell = np.minimum((place * RUG_CELLS).astype(np.intp), RUG_CELLS - 1)
    weight = np.bincount(cell, rows.weight, RUG_CELLS)
    left = low + span * np.flatnonzero(weight) / RUG_CELLS
    outlines = [
        [(a, 0), (b, 0), (b, RUG_HEIGHT), (a, RUG_HEIGHT)]
        for a, b in zip(left, left + span / RUG_CELLS, strict=True)
    ]
    how |= {"facecolors": _shades(weight), "edgecolors": "face", "linewidths": 0.1}
    panel.add_collection(PolyCollection(outlines, **how))


def _shades(weight: NDArray[Any]) -> list[str]:
    """Greys of occupied cells; the square root keeps thin tails visible beside a peak."""
    share = weight[weight > 0] / weight.max()
    return [str(0.9 - 0.7 * root) for root in np.sqrt(share)]
