"""Heat maps of surfaces: second-order effects, and partial dependence on two features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from rhale_stats.drawing import frame
from rhale_stats.drawing.frame import sns
from rhale_stats.drawing.rows import SHADES
from rhale_stats.profiles.data import pair_of
from rhale_stats.schema.checks import check_dataset
from rhale_stats.schema.curves import interpolation
from rhale_stats.schema.dimensions import with_part_facts
from rhale_stats.schema.features import label_of, with_units
from rhale_stats.schema.kinds import SURFACE
from rhale_stats.schema.validation import validated
from rhale_stats.surfaces.ale2 import is_categorical, is_used, places_of

# Colours of the output below, at and above the sum of both main effects.
DIVERGING = LinearSegmentedColormap.from_list(
    "second order",
    [frame.HETEROGENEITY, frame.HETEROGENEITY_FILL, "white", "#f6cfb3", frame.OTHER],
)
# Hatching of cells without rows, and colour where the surface is unknown.
HATCH, UNKNOWN = "////", "0.92"
# Rows of the rug along each axis at most.
RUG_ROWS = 400
CONTOURS = 6
# Points along a numeric feature.
FINE = 301


@validated
def plot_surface(surface: xr.Dataset, ax: Axes | None = None, *, contour: bool = False) -> Axes:
    """Heat map of the interaction of two features, hatched where there are no rows.

    The colour scale is symmetric about 0. Between edges of numeric features the surface is
    interpolated; levels are drawn as stripes. Cells without rows are hatched: the surface there was
    filled, or comes from neighbouring levels. Ticks along the axes are values of rows (at most 400,
    evenly spaced in the table). Corners without an adjacent cell with rows are grey. For a
    comparison of two surfaces the plot shows their difference. It is hatched where not both have
    rows, with dots on corners where 0 is outside the simultaneous band.

    Parameters
    ----------
    surface : Dataset
        What `ale2`, `std_error`, `confint`, or `compare` of two of them, returned, of one output.
    ax : Axes, optional
        By default that of a new figure. The colour bar takes a part of it.
    contour : bool, default False
        Draw labelled lines of equal height; for two numeric features only.

    %(Axes returned; raises)s
    ValueError
        ``surface`` is not a result of `ale2`, or has several outputs; ``contour`` with a
        categorical feature.

    References
    ----------
    Apley and Zhu (2020), Figure 5.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> surface = rs.ale2(lambda X: X[:, 0] * X[:, 1], X, (0, 1), bins=rs.EqualWidthBins(5))
    >>> rs.plots.surface(surface).get_xlabel()
    'x0'
    """
    check_dataset(surface, "surface", "ale2(model, X, features)")
    compared = {"difference", "edge_a"} <= set(surface.variables)
    if not (SURFACE.holds(surface) or compared) or "chain" in surface.dims:
        raise ValueError(
            f"surface must be the Dataset that ale2(model, X, features) returns; this one has "
            f"{', '.join(map(str, surface.data_vars))} over {', '.join(map(str, surface.dims))}."
        )
    frame.check_one_output(surface, "surface")
    surface = with_part_facts(surface)
    if contour and any(is_categorical(surface, side) for side in "ab"):
        raise ValueError("contour must be False with a categorical feature: levels have no height.")
    with frame.one_panel(ax, (5.6, 4.4), despined=False, legend=False) as panel:
        empty = _draw_surface(panel, surface, contour=contour)
        for side, axis in zip("ab", (panel.xaxis, panel.yaxis), strict=True):
            name = str(surface.attrs[f"feature_{side}"])
            label = with_units(label_of(surface, name), surface.attrs[f"units_{side}"])
            axis.set_label_text(label, parse_math=False)
        share = f"{int(empty.sum())} of {empty.size} fields"
        rows, without = ("rows of both", "not in both") if compared else ("rows", "no rows")
        note = f"hatched: {without} ({share})" if empty.any() else f"{rows} in all fields"
        title = f"Second-order effect on {surface.attrs['output_name']}"
        if compared:
            level = surface["difference_band"].attrs["ci_prob"]
            title = f"{title}: a less b, p {frame.pvalue_text(float(surface['p_value'].squeeze()))}"
            note += f"; dots: 0 outside the {100 * level:.3g} % band"
        frame.name_axes(panel, title=f"{title}\n{note}", fontsize="medium")
    return panel


def draw_pair(panel: Axes, row: xr.Dataset) -> None:
    """Two-way partial dependence as a map: one pair of features of a profile."""
    pair = pair_of(row)
    shape = [len(points) for _, points in pair]
    data: dict[str, Any] = {"surface": (("edge_a", "edge_b"), row["curve"].values.reshape(shape))}
    facts = dict(row.attrs)
    for side, (_, points) in zip("ab", pair, strict=True):
        data[f"edge_{side}"] = (f"edge_{side}", points)
        facts[f"kind_{side}"] = "categorical" if points.dtype.kind == "U" else "numeric"
    data["second_difference_error"] = ((), float(np.nan_to_num(row["output_error"].values)))
    surface = xr.Dataset(data, attrs=facts)
    surface["surface"].attrs["long_name"] = frame.output_label(row)
    _draw_surface(panel, surface, contour=False)
    for (name, _), axis in zip(pair, (panel.xaxis, panel.yaxis), strict=True):
        axis.set_label_text(name, parse_math=False)


def _draw_surface(panel: Axes, surface: xr.Dataset, *, contour: bool) -> NDArray[np.bool_]:
    """Draw the map; return where it is hatched."""
    name = "surface" if "surface" in surface else "difference"
    values = surface[name].values
    least = frame.ERRORS_SHOWN * float(surface["second_difference_error"])
    limit = max(float(np.nanmax(np.abs(values))), least) or 1.0
    colours: dict[str, Any] = {"cmap": DIVERGING, "vmin": -limit, "vmax": limit}
    if surface.attrs.get("centering") == "none":
        colours = {"cmap": SHADES}
    bounds, centres, along, sides = zip(*[_axis(surface, side) for side in "ab"], strict=True)
    panel.set_facecolor(UNKNOWN)
    a, b = [interpolation(*axis) for axis in zip(centres, along, strict=True)]
    fine = a @ np.nan_to_num(values) @ b.T
    # Cells beside an unknown corner are unknown.
    fine[a @ np.where(np.isnan(values), 0.0, 1.0) @ b.T < 1 - 1e-9] = np.nan
    mesh = panel.pcolormesh(sides[0], sides[1], fine.T, rasterized=True, **colours)
    if contour:
        how: dict[str, Any] = {"levels": CONTOURS, "colors": "0.25", "linewidths": 0.7}
        lines = panel.contour(along[0], along[1], fine.T, **how)
        panel.clabel(lines, fontsize="x-small")
    empty = np.zeros((len(bounds[0]) - 1, len(bounds[1]) - 1), dtype=bool)
    if "x_a" in surface:
        empty = _empty(surface, bounds)
        _draw_rug(panel, surface)
    elif name == "difference":
        empty = _unshared(surface)
        _draw_dots(panel, surface, centres)
    _hatch(panel, empty, bounds)
    for side, letter, centre in zip("ab", "xy", centres, strict=True):
        if is_categorical(surface, side):
            labels = [str(level) for level in surface[f"edge_{side}"].values]
            getattr(panel, f"set_{letter}ticks")(centre, labels, parse_math=False)
    panel.set_xlim(bounds[0][0], bounds[0][-1])
    panel.set_ylim(bounds[1][0], bounds[1][-1])
    units = str(surface.attrs["output_units"])
    bar = panel.figure.colorbar(mesh, ax=panel)
    bar.set_label(with_units(str(surface[name].attrs["long_name"]), units))
    bar.outline.set_visible(False)
    return empty


def _axis(surface: xr.Dataset, side: str) -> tuple[NDArray[np.float64], ...]:
    """Ends of the cells or stripes along an axis, and its edges or levels; the same of the mesh.

    Levels are stripes; between the edges of a numeric feature the mesh is fine.
    """
    edges = surface[f"edge_{side}"].values
    if is_categorical(surface, side):
        levels = np.arange(float(len(edges)))
        ends = np.arange(len(levels) + 1.0) - 0.5
        return ends, levels, levels, ends
    points = np.union1d(np.linspace(edges[0], edges[-1], FINE), edges)
    ends = np.concatenate([[points[0]], (points[:-1] + points[1:]) / 2, [points[-1]]])
    return edges, edges, points, ends


def _hatch(panel: Axes, empty: NDArray[np.bool_], bounds: Sequence[NDArray[np.float64]]) -> None:
    """Hatch places without rows."""
    how: dict[str, Any] = {"fill": False, "hatch": HATCH, "linewidth": 0, "edgecolor": "0.55"}
    for k, m in zip(*np.nonzero(empty), strict=True):
        corner = (bounds[0][k], bounds[1][m])
        width, height = bounds[0][k + 1] - corner[0], bounds[1][m + 1] - corner[1]
        panel.add_patch(Rectangle(corner, width, height, **how))


def _empty(surface: xr.Dataset, bounds: Sequence[NDArray[np.float64]]) -> NDArray[np.bool_]:
    """Cells without rows, by the bins and levels of the rows themselves."""
    occupied = np.zeros([len(bound) - 1 for bound in bounds], dtype=bool)
    occupied[places_of(surface, "a"), places_of(surface, "b")] = True
    return np.asarray(~occupied)


def _unshared(comparison: xr.Dataset) -> NDArray[np.bool_]:
    """Where not both surfaces have rows, in a cell or beside a level."""
    shared = comparison["supported"].values == 1
    for axis, side in enumerate("ab"):
        # No cell is at the last edge: a level is beside its own and the one before.
        if is_categorical(comparison, side):
            shared = shared | np.roll(shared, 1, axis)
        else:
            shared = np.delete(shared, -1, axis)
    return np.asarray(~shared)


def _draw_dots(panel: Axes, comparison: xr.Dataset, centres: Sequence[NDArray[np.float64]]) -> None:
    """Draw dots on corners where 0 is outside the band."""
    band = comparison["difference_band"].values
    with np.errstate(invalid="ignore"):
        outside = np.nonzero((band[..., 0] > 0) | (band[..., 1] < 0))
    x, y = centres[0][outside[0]], centres[1][outside[1]]
    panel.scatter(x, y, s=9, color="0.15", zorder=4, clip_on=False)


def _draw_rug(panel: Axes, surface: xr.Dataset) -> None:
    """Draw values of rows along the axes of numeric features."""
    used = np.flatnonzero(is_used(surface))
    used = used[:: len(used) // RUG_ROWS + 1]
    for side, axis in zip("ab", "xy", strict=True):
        if not is_categorical(surface, side):
            values = {axis: surface[f"x_{side}"].values[used]}
            sns.rugplot(**values, ax=panel, height=0.02, color="0.2", alpha=0.5, linewidth=0.5)
