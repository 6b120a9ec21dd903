"""Pictures of second-order effects: a surface as a heat map, and H-statistics as bars and a table.

On a surface orange is more than the two main effects add up to, and blue is less.
"""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import Rectangle
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray

from rhale_stats.h_statistic_tables import WHOLE
from rhale_stats.kinds import SURFACE
from rhale_stats.plots import (
    ERRORS_SHOWN,
    HETEROGENEITY,
    HETEROGENEITY_FILL,
    UNCERTAINTY,
    as_array,
    given_axes,
    pvalue_text,
    style,
)
from rhale_stats.schema import of_part, with_units
from rhale_stats.validate import checked

# Less than the sum of both main effects, as much, more.
DIVERGING = LinearSegmentedColormap.from_list(
    "second order", [HETEROGENEITY, HETEROGENEITY_FILL, "white", "#f6cfb3", UNCERTAINTY]
)
# Over cells without rows, and where nothing is known.
HATCH, UNKNOWN = "////", "0.92"
# Rows of the rug along each axis at most.
RUG_ROWS = 400
CONTOURS = 6
# In place of a share of more than the whole, and its colour.
OVER, DARK = "> 100 %", "#01324f"
ALL = "rows in all fields"
# Points along a numeric feature.
FINE = 301


@checked
def plot_surface(surface: xr.Dataset, ax: Axes | None = None, *, contour: bool = False) -> Axes:
    """Heat map of a second-order effect, hatched where there are no rows.

    Colours have the same limits above and below 0. Between edges of numeric features the surface
    is interpolated; levels are stripes. Cells without rows are hatched: the surface there was
    filled, or comes from neighbouring levels. Ticks along the axes are values of rows, at most 400
    of them at equal steps of the table. Corners of no cell with rows are grey. Of two surfaces that
    were compared the picture is their difference, hatched where not both have rows, with dots on
    corners where 0 is outside its simultaneous band.

    Parameters
    ----------
    surface : Dataset
        What `ale2`, `std_error`, `confint`, or `compare` of two of them, returned, of one output.
    ax : Axes, optional
        By default that of a new figure. The scale of colours takes a part of it.
    contour : bool, default False
        Draw lines of equal height, labelled; of two numeric features only.

    Returns
    -------
    Axes

    Raises
    ------
    TypeError
        ``surface`` is no Dataset, or ``ax`` no Axes.
    ValueError
        ``surface`` is not of `ale2`, or of several outputs; ``contour`` with categories.

    References
    ----------
    Apley and Zhu (2020), Figure 5.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> surface = rs.ale2(lambda X: X[:, 0] * X[:, 1], X, (0, 1), bins=rs.EqualWidthBins(5))
    >>> rs.plot_surface(surface).get_xlabel()
    'x0'
    """
    if not isinstance(surface, xr.Dataset):
        raise TypeError(
            f"surface must be the Dataset that ale2(model, X, features) returns; got "
            f"{type(surface).__name__}."
        )
    compared = {"difference", "edge_a"} <= set(surface.variables)
    if not (SURFACE.holds(surface) or compared) or "chain" in surface.dims:
        raise ValueError(
            f"surface must be the Dataset that ale2(model, X, features) returns; this one has "
            f"{', '.join(map(str, surface.data_vars))} over {', '.join(map(str, surface.dims))}."
        )
    if "output" in surface.dims:
        raise ValueError(
            f"surface must be of one output; this one is of {surface.sizes['output']}. Select one: "
            f"surface.isel(output=0)."
        )
    surface = of_part(surface)
    categorical = [f"level_{side}" in surface.coords for side in "ab"]
    if contour and any(categorical):
        raise ValueError("contour must be False with a categorical feature: levels have no height.")
    panels = None if ax is None else given_axes("ax", [ax], 1, "one")
    with style(own=ax is None):
        if panels is None:
            _, panel = plt.subplots(figsize=(5.6, 4.4), layout="constrained")
        else:
            panel = panels[0]
        empty = _draw_surface(panel, surface, contour=contour)
        for side, axis in zip("ab", (panel.xaxis, panel.yaxis), strict=True):
            label = with_units(surface.attrs[f"feature_{side}"], surface.attrs[f"units_{side}"])
            axis.set_label_text(label, parse_math=False)
        share = f"{int(empty.sum())} of {empty.size} fields"
        there = ("not in both", "rows of both in all fields") if compared else ("no rows", ALL)
        note = f"hatched: {there[0]} ({share})" if empty.any() else there[1]
        title = f"Second-order effect on {surface.attrs['output_name']}"
        if compared:
            level = surface["difference_band"].attrs["ci_prob"]
            title = f"{title}: a less b, p {pvalue_text(float(surface['p_value'].squeeze()))}"
            note += f"; dots: 0 outside the {100 * level:.3g} % band"
        panel.set_title(f"{title}\n{note}", parse_math=False, fontsize="medium")
    return panel


def _draw_surface(panel: Axes, surface: xr.Dataset, *, contour: bool) -> NDArray[np.bool_]:
    """The map; returns where it is hatched."""
    name = "surface" if "surface" in surface else "difference"
    values = surface[name].values
    least = ERRORS_SHOWN * float(surface["second_difference_error"])
    limit = max(float(np.nanmax(np.abs(values))), least) or 1.0
    bounds, centres = zip(*(_bounds(surface, side) for side in "ab"), strict=True)
    panel.set_facecolor(UNKNOWN)
    numeric = [f"level_{side}" not in surface.coords for side in "ab"]
    # A fine grid shows what lies between edges of numbers; levels are stripes.
    along = [
        np.union1d(np.linspace(centre[0], centre[-1], FINE), centre)
        if smooth
        else np.arange(len(centre), dtype=np.float64)
        for smooth, centre in zip(numeric, centres, strict=True)
    ]
    at = [
        np.array([np.interp(points, centre, unit) for unit in np.eye(len(centre))])
        for centre, points in zip(centres, along, strict=True)
    ]
    # Corners that are not known make unknown what lies beside them.
    known = np.where(np.isnan(values), 0.0, 1.0)
    fine = at[0].T @ np.nan_to_num(values) @ at[1]
    fine[at[0].T @ known @ at[1] < 1 - 1e-9] = np.nan
    sides = [
        np.concatenate([[points[0]], (points[:-1] + points[1:]) / 2, [points[-1]]])
        if smooth
        else bound
        for smooth, points, bound in zip(numeric, along, bounds, strict=True)
    ]
    mesh = panel.pcolormesh(
        sides[0], sides[1], fine.T, cmap=DIVERGING, vmin=-limit, vmax=limit, rasterized=True
    )
    if contour:
        lines = panel.contour(
            along[0], along[1], fine.T, levels=CONTOURS, colors="0.25", linewidths=0.7
        )
        panel.clabel(lines, fontsize="x-small")
    if name == "surface":
        empty = _empty(surface, bounds)
        _draw_rug(panel, surface)
    else:
        empty = _unshared(surface)
        _draw_dots(panel, surface, centres)
    _hatch(panel, empty, bounds)
    for side, letter, centre in zip("ab", "xy", centres, strict=True):
        if f"level_{side}" in surface.coords:
            labels = [str(level) for level in surface[f"level_{side}"].values]
            getattr(panel, f"set_{letter}ticks")(centre, labels, parse_math=False)
    panel.set_xlim(bounds[0][0], bounds[0][-1])
    panel.set_ylim(bounds[1][0], bounds[1][-1])
    units = str(surface.attrs["output_units"])
    colours = panel.figure.colorbar(mesh, ax=panel)
    colours.set_label(with_units(str(surface[name].attrs["long_name"]), units))
    colours.outline.set_visible(False)
    return empty


def _bounds(surface: xr.Dataset, side: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ends of the stripes along an axis, and where its edges or levels are."""
    if f"level_{side}" in surface.coords:
        centres = np.arange(surface.sizes[f"edge_{side}"], dtype=np.float64)
        return np.arange(len(centres) + 1, dtype=np.float64) - 0.5, centres
    edges = surface[f"edge_value_{side}"].values
    return np.asarray(edges), np.asarray(edges)


def _hatch(panel: Axes, empty: NDArray[np.bool_], bounds: Sequence[NDArray[np.float64]]) -> None:
    """Marks on places without rows."""
    for k, m in zip(*np.nonzero(empty), strict=True):
        corner = (bounds[0][k], bounds[1][m])
        width, height = bounds[0][k + 1] - corner[0], bounds[1][m + 1] - corner[1]
        panel.add_patch(
            Rectangle(corner, width, height, fill=False, hatch=HATCH, linewidth=0, edgecolor="0.55")
        )


def _empty(surface: xr.Dataset, bounds: Sequence[NDArray[np.float64]]) -> NDArray[np.bool_]:
    """Where no rows are, by the bins and levels that they have themselves."""
    used = surface["cell_a"].values >= 0
    there = np.zeros([len(bound) - 1 for bound in bounds], dtype=bool)
    there[surface["cell_a"].values[used], surface["cell_b"].values[used]] = True
    return np.asarray(~there)


def _unshared(comparison: xr.Dataset) -> NDArray[np.bool_]:
    """Where not both surfaces have rows, in a cell or beside a level."""
    there = comparison["supported"].values == 1
    for axis, side in enumerate("ab"):
        if f"level_{side}" in comparison.coords:
            first, last = (np.zeros_like(there.take([0], axis)) for _ in range(2))
            below = np.concatenate([first, there], axis)
            there = below | np.concatenate([there, last], axis)
    return np.asarray(~there)


def _draw_dots(panel: Axes, comparison: xr.Dataset, centres: Sequence[NDArray[np.float64]]) -> None:
    """On corners where 0 is outside the band."""
    band = comparison["difference_band"].values
    with np.errstate(invalid="ignore"):
        outside = np.nonzero((band[..., 0] > 0) | (band[..., 1] < 0))
    panel.scatter(
        centres[0][outside[0]], centres[1][outside[1]], s=9, color="0.15", zorder=4, clip_on=False
    )


def _draw_rug(panel: Axes, surface: xr.Dataset) -> None:
    """Values of rows along the axes of numeric features."""
    used = np.flatnonzero(surface["cell_a"].values >= 0)
    used = used[:: len(used) // RUG_ROWS + 1]
    for side, axis in zip("ab", "xy", strict=True):
        if f"x_{side}" in surface:
            sns.rugplot(
                **{axis: surface[f"x_{side}"].values[used]},
                ax=panel, height=0.02, color="0.2", alpha=0.5, linewidth=0.5,
            )  # fmt: skip


@checked
def plot_h_statistics(
    found: xr.Dataset, axes: Sequence[Axes] | NDArray[np.object_] | None = None
) -> NDArray[np.object_]:
    """H-statistics: bars of the features, and a heat map of the pairs.

    Shown are shares of variances, or with ``h_statistic(..., normalize=False)`` sizes in units of
    the output. Features are in the order of their bars. Shares of pairs are of different variances,
    so that a large one can be a share of little; sizes can be compared. Where the joint effect of a
    pair varies less than its interaction, because main effects offset this, there is no share: the
    field says "> 100 %" and is dark, beyond the end of the scale. A bar ends in an arrow at 100 %.

    Parameters
    ----------
    found : Dataset
        What `h_statistic`, `std_error` or `confint` returned, of one output. Lines on the bars are
        the intervals of `confint`, or where it was not called standard errors.
    axes : sequence of Axes, optional
        Two, of the bars and of the pairs; without pairs one. By default those of a new figure.

    Returns
    -------
    ndarray of shape (n_panels,)
        The Axes.

    Raises
    ------
    TypeError
        ``found`` is no Dataset, or ``axes`` are no Axes.
    ValueError
        ``found`` is something else, or of several outputs, or another number of Axes.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> found = rs.h_statistic(lambda X: X[:, 0] + X[:, 1] * X[:, 2], X)
    >>> panels = rs.plot_h_statistics(found)
    >>> [text.get_text() for text in panels[0].get_yticklabels()]
    ['x1', 'x2', 'x0']
    """
    maker = "h_statistic(model, X)"
    if not isinstance(found, xr.Dataset):
        raise TypeError(
            f"found must be the Dataset that {maker} returns; got {type(found).__name__}."
        )
    if "h2_overall" not in found:
        raise ValueError(
            f"found must be the Dataset that {maker} returns; this one has "
            f"{', '.join(map(str, found.data_vars))}."
        )
    if "output" in found.dims:
        raise ValueError(
            f"found must be of one output; this one is of {found.sizes['output']}. Select one: "
            f"found.isel(output=0)."
        )
    found = of_part(found)
    pairs = "h2_pairwise" in found
    panels = None
    if axes is not None:
        panels = given_axes("axes", axes, 1 + pairs, "bars, then pairs" if pairs else "bars")
    shares = bool(found.attrs["normalize"])
    stem = "h2" if shares else "h"
    # Two that interact with each other only differ by rounding.
    sizes = found[f"{stem}_overall"].values
    order = np.argsort(-np.round(sizes / (sizes.max() or 1.0), 9), kind="stable")
    found = found.isel(feature=order)
    if pairs:
        found = found.isel(feature_other=order)
    n = found.sizes["feature"]
    with style(own=axes is None):
        if panels is None:
            width, height = (4.0, 1.0 + 0.42 * n) if not pairs else (6.0 + 0.62 * n, 1.6 + 0.5 * n)
            _, made = plt.subplots(
                1, 1 + pairs, figsize=(width, max(height, 2.6)), squeeze=False, layout="constrained"
            )
            panels = list(made.flat)
            sns.despine(ax=panels[0])
        _draw_bars(panels[0], found, stem, shares=shares)
        if pairs:
            _draw_pairs(panels[1], found, stem, shares=shares)
    return as_array(panels)


def _size_label(found: xr.Dataset) -> str:
    return with_units("size of the interaction", str(found.attrs["output_units"]))


def _draw_bars(panel: Axes, found: xr.Dataset, stem: str, *, shares: bool) -> None:
    names = list(map(str, found["feature"].values))
    places = np.arange(len(names))
    name = f"{stem}_overall"
    values = found[name].values
    above = shares & (values > WHOLE)
    values = np.where(above, 1.0, values)
    panel.barh(places, values, color=HETEROGENEITY, height=0.7)
    for place in places[above]:
        panel.annotate(
            OVER,
            (1.0, place),
            (4, 0),
            textcoords="offset points",
            va="center",
            fontsize="small",
            annotation_clip=False,
        )
    label = ""
    if f"{name}_ci" in found:
        ends = found[f"{name}_ci"]
        off = np.abs(ends.transpose("ci_bound", "feature").values - values)
        label = f"lines: {ends.attrs['ci_prob']:.0%} intervals (model as given)"
    elif f"{name}_se" in found:
        off, label = found[f"{name}_se"].values, "lines: standard errors (model as given)"
    if label:
        off = np.where(above, np.nan, off)
        panel.errorbar(values, places, xerr=off, fmt="none", ecolor=UNCERTAINTY, lw=1.4, capsize=2)
    panel.set_yticks(places, names, parse_math=False)
    panel.invert_yaxis()
    panel.tick_params(left=False)
    panel.set_xlim(0, None if np.any(found[f"{stem}_overall"].values > 0) else 1)
    if shares:
        panel.xaxis.set_major_formatter(PercentFormatter(1.0))
    what = "share of the variance of the output" if shares else _size_label(found)
    panel.set_xlabel(f"{what}\n{label}" if label else what)
    total = float(found[stem])
    text = _share(total) if shares else f"{total:.3g}"
    title = f"Interactions with all others\nall interactions: {text}"
    panel.set_title(title, parse_math=False, fontsize="medium")


def _draw_pairs(panel: Axes, found: xr.Dataset, stem: str, *, shares: bool) -> None:
    values = found[f"{stem}_pairwise"].values
    names = list(map(str, found["feature"].values))
    texts = [
        ["" if np.isnan(one) else _share(one) if shares else f"{one:.2g}" for one in line]
        for line in values
    ]
    over = bool(shares and np.nanmax(values, initial=0.0) > WHOLE)
    colours = sns.light_palette(HETEROGENEITY, as_cmap=True)
    colours = colours.with_extremes(over=DARK)
    # Each pair once: below the diagonal.
    hidden = np.isnan(values) | np.triu(np.ones(values.shape, dtype=bool))
    scale = {"label": "share of the variance of the pair" if shares else _size_label(found)}
    sns.heatmap(
        values,
        vmin=0,
        vmax=1 if shares or np.isnan(values).all() else None,
        cmap=colours,
        annot=np.array(texts),
        fmt="",
        mask=hidden,
        linewidths=1.0,
        cbar_kws={
            **scale,
            **({"format": PercentFormatter(1.0)} if shares else {}),
            "extend": "max" if over else "neither",
        },
        ax=panel,
    )
    places = np.arange(len(names)) + 0.5
    turned = max(map(len, names)) > 8
    panel.set_yticks(places, names, rotation=0, parse_math=False)
    panel.set_xticks(
        places, names, rotation=30 if turned else 0, ha="right" if turned else "center",
        parse_math=False,
    )  # fmt: skip
    panel.tick_params(left=False, bottom=False)
    attrs = found.attrs
    kind = "partial dependence" if attrs["h_kind"] == "pdp" else "accumulated local effects"
    rows = f"{attrs['n_rows']} of {attrs['n_rows_total']} rows"
    panel.set_title(f"Interactions of pairs\n{kind}, {rows}", parse_math=False, fontsize="medium")
    if over:
        panel.set_xlabel(f"{OVER}: the joint effect varies less\nthan the interaction in it")


def _share(value: float) -> str:
    """A share of a variance; of more than the whole there is none."""
    return OVER if value > WHOLE else f"{100 * value:.3g} %"
