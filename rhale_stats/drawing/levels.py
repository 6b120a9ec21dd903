"""Plots of categorical features: a bar for every level, and its number of rows."""

from __future__ import annotations

import textwrap
from typing import NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from rhale_stats.arrays.moments import FloatArray
from rhale_stats.drawing.canvas import UNCERTAINTY_LIGHT
from rhale_stats.schema.levels import level_names

BAR_WIDTH = 0.7
LEVEL_FILL, SHARE_FILL = "#d9d9d9", "#c3ddec"
# Names of levels that are too long are broken into lines, and rotated if still too long.
NAME_LENGTH, TURNED = 14, 30


class Ends(NamedTuple):
    """An interval at every level, (lower or upper, level), and its entry in the legend.

    ``rows`` is the interval of the rows alone, where the other holds the model too.
    """

    ends: FloatArray
    label: str
    rows: Ends | None = None


def draw_levels(
    panel: Axes,
    row: xr.Dataset,
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


def draw_shares(panel: Axes, row: xr.Dataset) -> None:
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


def name_levels(panel: Axes, row: xr.Dataset) -> None:
    """Write the names of the levels along the x axis."""
    names = level_names(row)
    panel.set_xlim(-0.6, len(names) - 0.4)
    total = sum(min(len(name), NAME_LENGTH) + 2 for name in names)
    crowded = total * 5 > panel.get_window_extent().width * 72 / panel.figure.dpi
    texts = [name if crowded else textwrap.fill(name, NAME_LENGTH) for name in names]
    panel.set_xticks(range(len(names)), texts, parse_math=False)
    if crowded:
        panel.tick_params(axis="x", labelrotation=TURNED)
        for text in panel.get_xticklabels():
            text.set_horizontalalignment("right")
            text.set_rotation_mode("anchor")
