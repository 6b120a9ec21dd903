"""Drawing of the rows: rugs, points and density."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from numpy.typing import NDArray

from rhale_stats.arguments.checks import check_finite
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.drawing.canvas import REFERENCE, new_panels
from rhale_stats.drawing.curve import draw_pieces
from rhale_stats.drawing.legend import error_text
from rhale_stats.drawing.limits import enlarge
from rhale_stats.drawing.marks import (
    DENSITY,
    EDGES,
    ERRORS_SHOWN,
    OURS,
    POINTS,
    POINTS_DRAWN,
    WEIGHED,
)
from rhale_stats.drawing.violins import RowsInBins, say_off_scale, shorten_tails
from rhale_stats.effects.provenance import check_no_other_model
from rhale_stats.local.rows import own_columns
from rhale_stats.schema.dimensions import LEFT
from rhale_stats.schema.features import feature_names

# The rug's grid is finer than print resolution. More ticks than this would merge.
RUG_POSITIONS = 2000
RUG_TICKS = 400
RUG_CELLS = 200
RUG_HEIGHT = 0.03  # of the panel: less than the margin below the data
DENSITY_CELLS = 80  # along the axis
# Area of a point in points squared: the usual one, and the largest one with weights.
POINT_AREA, LARGEST_POINT = (2.5, 14.0), 100.0


def draw_rows(panel: Axes, rows: RowsInBins, row: xr.Dataset) -> None:
    """Draw rows as points or density, edges, and the bin effects with their band."""
    edges = row["edge_value"].values
    span = np.ptp(edges)
    room = np.diff(edges).min() / span * panel.get_window_extent().width * 72 / panel.figure.dpi
    panel.set_xlim(edges[0] - 0.02 * span, edges[-1] + 0.02 * span)
    draw_pieces(panel, row, np.clip(0.05 * room, 0.2, 0.8))
    bins = panel.get_ylim()
    many = len(rows.x) > POINTS_DRAWN
    if many:
        panel.update_datalim(np.column_stack([rows.x, rows.local_effect]))
    else:
        _draw_points(panel, rows)
    panel.autoscale_view(scalex=False)
    off_scale = shorten_tails(panel, rows, bins)
    if off_scale:
        say_off_scale(panel, off_scale)
    enlarge(panel, ERRORS_SHOWN * error_text(row))
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
    """Draw rows in hexagonal cells; square-root shading keeps thin tails visible."""
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


def rows_of(local: xr.Dataset, row: xr.Dataset) -> RowsInBins | None:
    """Rows of ``local`` in the bins of ``row``; None for a constant feature."""
    name = str(row["feature"].values)
    if name not in feature_names(local):
        raise KeyError(
            f"local must hold the feature {name!r}; it holds "
            f"{', '.join(map(repr, feature_names(local)))}. Pass the local effects that effect "
            f"was made from."
        )
    if not row.sizes["bin"]:
        return None
    made_from = own_columns(local, [name])[name]
    rows, position = made_from
    method = str(local["local_effect_method"].sel(feature=name).values)
    if LEFT in local and method != "finite_difference":
        # Their halves stand for the axis around them; a picture has the rows where they are.
        rows, position = own_columns(local.drop_vars(LEFT), [name])[name]
    x, g = rows.x[position], rows.local_effect[position]
    weight = np.ones(len(x)) if rows.weight is None else rows.weight
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
    check_no_other_model(row, *made_from)
    return RowsInBins(x, g, weight, rows.frequency, bin_index(edges, x))


def pair() -> list[Axes]:
    """A new figure of two panels with a common horizontal axis."""
    return list(new_panels(2, 1, (7.0, 6.0), sharex=True)[:, 0])


def draw_rug(panel: Axes, rows: RowsInBins, edges: FloatArray) -> None:
    """Draw where the rows are: ticks, or cells if ticks would merge, darker for more rows."""
    low, span = edges[0], np.ptp(edges)
    place = (rows.x - low) / span
    tick = np.rint(place * RUG_POSITIONS).astype(np.intp)
    weight = np.bincount(tick, rows.weight, RUG_POSITIONS + 1)
    rug: LineCollection | PolyCollection
    if np.count_nonzero(weight) <= RUG_TICKS:
        ticks = low + span * np.flatnonzero(weight) / RUG_POSITIONS
        rug = LineCollection(
            [[(x, 0), (x, RUG_HEIGHT)] for x in ticks], colors=_shades(weight), linewidths=0.6
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
    """Greys of occupied cells; the square root keeps thin tails visible beside a peak."""
    share = weight[weight > 0] / weight.max()
    return [str(0.9 - 0.7 * root) for root in np.sqrt(share)]
