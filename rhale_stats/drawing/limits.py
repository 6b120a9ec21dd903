"""Common axis limits of panels, and curves in such panels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from rhale_stats.arrays.moments import FloatArray
from rhale_stats.drawing.curve import curve_drawn, draw_curve, missing_mark
from rhale_stats.drawing.legend import error_text, say_constant
from rhale_stats.drawing.marks import ERRORS_SHOWN, OURS
from rhale_stats.schema.levels import is_categorical
from rhale_stats.schema.moments import cell_count, has_cells

# Minimum range of the axis of shares of replicates, so that rare edges look rare.
EDGE_SHARE = 0.2


def keep_noise_small(upper: Axes, lower: Axes, row: xr.Dataset) -> None:
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
    panels: Sequence[Axes], rows: list[xr.Dataset], label: str = "", spread: str = "none"
) -> None:
    """A curve in every panel, all on one scale; ``label`` is that of the y axes of a figure."""
    limits = common_limits(rows, spread)
    for panel, row in zip(panels, rows, strict=True):
        if row.sizes["bin"]:
            draw_curve(panel, row, spread)
            draw_deciles(panel, row)
        else:
            say_constant(panel)
        if limits is not None:
            panel.set_ylim(*limits)
    if label:
        size = panels[0].yaxis.label.get_fontsize()
        panels[0].figure.supylabel(label, fontsize=size, parse_math=False)


def draw_deciles(panel: Axes, row: xr.Dataset) -> None:
    """Ticks above the axis at the deciles of the rows, the median longer; of levels none.

    Within cells, and where there are none within bins, rows count as evenly spread.
    """
    deciles = quantiles_of(row, np.arange(0.1, 0.95, 0.1))
    if deciles is None:
        return
    height = np.where(np.arange(9) == 4, 0.045, 0.025)
    ticks = panel.vlines(
        deciles, 0, height, colors="0.35", linewidths=0.8, transform=panel.get_xaxis_transform()
    )
    ticks.set_gid(OURS)


def quantiles_of(row: xr.Dataset, shares: FloatArray) -> FloatArray | None:
    """Quantiles of the rows along the axis of one feature; None of levels, and where not known."""
    if is_categorical(row):
        return None
    name, edges = ("cell_share", "cell_value") if has_cells(row) else ("weight_share", "edge_value")
    if name not in row:
        return None
    n = cell_count(row) if has_cells(row) else row.sizes["bin"]
    total = np.append(0.0, np.cumsum(np.nan_to_num(row[name].values[:n])))
    if not total[-1] > 0:
        return None
    return np.asarray(np.interp(shares * total[-1], total, row[edges].values[: n + 1]))


def common_limits(rows: list[xr.Dataset], spread_as: str) -> tuple[float, float] | None:
    """Limits that contain every curve with its bands and intervals; None without any curve."""
    ends = [0.0]
    for row in rows:
        if not row.sizes["bin"]:
            continue
        _, curve, spread, *about = curve_drawn(row)
        missing = missing_mark(row)
        wide = spread_as == "band" and not is_categorical(row)
        drawn = [
            *([] if missing is None else [missing]),
            curve,
            *([curve - spread, curve + spread] if wide else []),
            *(part for part in about if part is not None),
        ]
        for part in drawn:
            ends.extend(part[~np.isnan(part)])
    low, high = min(ends), max(ends)
    if low == high:
        return None
    return low - 0.05 * (high - low), high + 0.05 * (high - low)
