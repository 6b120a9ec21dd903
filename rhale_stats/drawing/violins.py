"""The distribution of the local effects in each bin."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from numpy.typing import NDArray

from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.drawing.canvas import HETEROGENEITY, HETEROGENEITY_FILL
from rhale_stats.drawing.legend import error_text, note
from rhale_stats.drawing.marks import VIOLIN
from rhale_stats.schema.features import slopes

# Number of points of a violin, and the share of its bin's width that it takes.
VIOLIN_POINTS = 512
VIOLIN_WIDTH = 0.9
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


def draw_violins(panel: Axes, rows: RowsInBins, row: xr.Dataset) -> None:
    """Draw the distribution of the local effects in every bin as a violin."""
    edges, slope = row["edge_value"].values, slopes(row)
    width = np.diff(edges)
    middle = edges[:-1] + width / 2
    # Without removing the slope a violin would be long where rows differ only in x.
    away = rows.x - middle[rows.bin]
    moved = rows._replace(local_effect=rows.local_effect - slope[rows.bin] * away)
    violins = _violins(moved, len(width), error_text(row))
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
    off_scale = shorten_tails(panel, rows, bins)
    if off_scale:
        say_off_scale(panel, off_scale)


def say_off_scale(panel: Axes, share: float) -> None:
    """Write the share of local effects that lie outside the panel on it."""
    note(panel, f"{100 * share:.2g} % of local effects off the scale")


def shorten_tails(panel: Axes, rows: RowsInBins, bins: tuple[float, float]) -> float:
    """Cut long tails of local effects off the panel; return the share of rows that is hidden.

    A few rows at a hundred times the usual distance from the mean would make the bins invisible.
    The panel always contains the bins and the central part of the local effects.
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

    Rows are moved to the nearest grid point, and the kernel is applied to the grid: one pass over
    the rows, whatever their number.
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
    steps = np.arange(len(share))
    spread = float(np.sqrt(np.sum(share * (steps - np.sum(share * steps)) ** 2)))
    lower, upper = np.searchsorted(np.cumsum(share), [0.25, 0.75])
    robust = float(upper - lower) / 1.34
    if robust > 0:  # otherwise half of the rows share one value
        spread = min(spread, robust)
    return max(float(0.9 * spread * n_effective**-0.2), 1.0)
