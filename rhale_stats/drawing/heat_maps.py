"""Heat maps: H-statistics, columns that condition each effect, and surfaces of two features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import Rectangle
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray

from rhale_stats.arrays.moments import FloatArray
from rhale_stats.drawing import frame
from rhale_stats.drawing.frame import HETEROGENEITY, sns, source_suffix
from rhale_stats.drawing.rows import SHADES
from rhale_stats.h_statistics.tables import WHOLE
from rhale_stats.profiles.data import pair_of
from rhale_stats.regional.tables import loss_text
from rhale_stats.schema.checks import check_dataset, check_variables
from rhale_stats.schema.curves import interpolation
from rhale_stats.schema.dimensions import check_one_part, with_part_facts
from rhale_stats.schema.features import label_of, with_units
from rhale_stats.schema.kinds import SURFACE
from rhale_stats.schema.validation import validated
from rhale_stats.surfaces.ale2 import is_categorical, is_used, places_of

# Maximum number of features drawn.
MAX_FEATURES = 24
# Text for a share above 100 %, and its colour.
OVER, DARK = "> 100 %", "#01324f"


@validated
def plot_h_statistics(
    statistics: xr.Dataset,
    ax: Axes | Sequence[Axes] | NDArray[np.object_] | None = None,
    *,
    max_features: int = MAX_FEATURES,
) -> NDArray[np.object_]:
    """H-statistics: bars of the features, and a heat map of the pairs.

    The plot shows shares of variances or, after ``h_statistic(..., normalize=False)``, sizes in
    units of the output. Features are ordered by the length of their bars. Shares of different pairs
    refer to different variances, so that a large share can be small in absolute terms; sizes can be
    compared. If the joint effect of a pair varies less than its interaction, because main effects
    offset the interaction, the share is not defined: the cell shows "> 100 %" and is dark, beyond
    the end of the scale. A bar ends in an arrow at 100 %.

    Parameters
    ----------
    statistics : Dataset
        What `h_statistic`, `std_error` or `confint` returned, of one output. Lines on the bars are
        the intervals of `confint`; if it was not called, plus and minus one standard error.
    ax : Axes, or sequence of them, optional
        Two Axes, for the bars and for the pairs; one if there are no pairs. By default those of a
        new figure.
    max_features : int, default 24
        If there are more features, those with the longest bars are drawn. The title says so.

    Returns
    -------
    ndarray of shape (n_panels,)
        The Axes.

    Raises
    ------
    TypeError
        ``statistics`` is not a Dataset, or ``ax`` is not Axes.
    ValueError
        ``statistics`` is another kind of result or has several outputs, or the number of Axes is
        wrong.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> statistics = rs.h_statistic(lambda X: X[:, 0] + X[:, 1] * X[:, 2], X)
    >>> panels = rs.plots.h_statistics(statistics)
    >>> [text.get_text() for text in panels[0].get_yticklabels()]
    ['x1', 'x2', 'x0']
    """
    check_variables(statistics, "statistics", ("h2_overall",), "h_statistic(model, X)")
    check_one_part(statistics, "statistics")
    statistics = with_part_facts(statistics)
    pairs = "h2_pairwise" in statistics
    shares = bool(statistics.attrs["normalize"])
    stem = "h2" if shares else "h"
    # Two features that interact only with each other differ only by rounding.
    sizes = statistics[f"{stem}_overall"].values
    order = np.argsort(-np.round(sizes / (sizes.max() or 1.0), 9), kind="stable")
    n_features, order = len(order), order[:max_features]
    statistics = statistics.isel(feature=order)
    if pairs:
        statistics = statistics.isel(feature_other=order)
    which = "bars, then pairs" if pairs else "bars"
    made = partial(_panels, statistics.sizes["feature"], pairs=pairs)
    with frame.several_panels(ax, 1 + pairs, which, made, legend=False) as panels:
        _draw_bars(panels[0], statistics, stem, shares=shares, n_features=n_features)
        if pairs:
            _draw_pairs(panels[1], statistics, stem, shares=shares)
    return panels


def _panels(n: int, *, pairs: bool) -> NDArray[np.object_]:
    """Panels of a new figure for so many features, and for their pairs."""
    width, height = (4.0, 1.0 + 0.42 * n) if not pairs else (6.0 + 0.62 * n, 1.6 + 0.5 * n)
    size = (width, max(height, 2.6))
    panels = frame.new_panels(1, 1 + pairs, size, despined=False)
    sns.despine(ax=panels[0, 0])
    return panels


def _size_label(result: xr.Dataset) -> str:
    return with_units("size of the interaction", str(result.attrs["output_units"]))


def _draw_bars(
    panel: Axes, result: xr.Dataset, stem: str, *, shares: bool, n_features: int
) -> None:
    names = [label_of(result, str(feature)) for feature in result["feature"].values]
    places = np.arange(len(names))
    name = f"{stem}_overall"
    values = result[name].values
    above = shares & (values > WHOLE)
    values = np.where(above, 1.0, values)
    panel.barh(places, values, color=HETEROGENEITY, height=0.7)
    for place in places[above]:
        how: dict[str, Any] = {"ha": "left", "va": "center", "annotation_clip": False}
        frame.mark(panel, OVER, (1.0, place), 4, 0, **how)
    label = ""
    if f"{name}_ci" in result:
        ends = result[f"{name}_ci"]
        off = np.abs(ends.transpose("ci_bound", "feature").values - values)
        label = f"lines: {ends.attrs['ci_prob']:.0%} intervals{_included(ends)}"
    elif f"{name}_se" in result:
        errors = result[f"{name}_se"]
        off, label = errors.values, f"lines: standard errors{_included(errors)}"
    if label:
        off = np.where(above, np.nan, off)
        frame.draw_whiskers(panel, values, places, None, 1.4, xerr=off, capsize=2)
    panel.set_yticks(places, names, parse_math=False)
    panel.invert_yaxis()
    panel.tick_params(left=False)
    panel.set_xlim(0, None if np.any(result[f"{stem}_overall"].values > 0) else 1)
    if shares:
        panel.xaxis.set_major_formatter(PercentFormatter(1.0))
    what = "share of the variance of the output" if shares else _size_label(result)
    panel.set_xlabel(f"{what}\n{label}" if label else what)
    total = float(result[stem])
    text = _share(total) if shares else f"{total:.3g}"
    title = f"Interactions with all others\nall interactions: {text}"
    if len(names) < n_features:
        title += f"\n{len(names)} of {n_features} features (max_features)"
    frame.name_axes(panel, title=title, fontsize="medium")


def _included(errors: xr.DataArray) -> str:
    return f" ({source_suffix(str(errors.attrs.get('source', 'rows'))).removeprefix(', ')})"


def _draw_pairs(panel: Axes, result: xr.Dataset, stem: str, *, shares: bool) -> None:
    values = result[f"{stem}_pairwise"].values
    names = [label_of(result, str(feature)) for feature in result["feature"].values]
    texts = [
        ["" if np.isnan(value) else _share(value) if shares else f"{value:.2g}" for value in line]
        for line in values
    ]
    over = bool(shares and np.nanmax(values, initial=0.0) > WHOLE)
    colours = sns.light_palette(HETEROGENEITY, as_cmap=True)
    colours = colours.with_extremes(over=DARK)
    # Each pair once: below the diagonal.
    hidden = np.isnan(values) | np.triu(np.ones(values.shape, dtype=bool))
    bar: dict[str, Any] = {"label": _size_label(result)}
    if shares:
        bar = {"label": "share of the variance of the pair", "format": PercentFormatter(1.0)}
    how: dict[str, Any] = {"mask": hidden, "vmax": 1 if shares or np.isnan(values).all() else None}
    _heatmap(panel, values, texts, colours, {**bar, "extend": "max" if over else "neither"}, **how)
    _name_cells(panel, names, names)
    attrs = result.attrs
    kind = "partial dependence" if attrs["h_kind"] == "pdp" else "accumulated local effects"
    rows = f"{attrs['n_rows']} of {attrs['n_rows_total']} rows"
    frame.name_axes(panel, title=f"Interactions of pairs\n{kind}, {rows}", fontsize="medium")
    if over:
        frame.name_axes(panel, f"{OVER}: the joint effect varies less\nthan the interaction in it")


def _heatmap(
    panel: Axes, values: FloatArray, texts: Any, colours: Any, bar: Mapping[str, Any], **how: Any
) -> None:
    """A map of shares or sizes from 0 on, with their texts, and a colour bar."""
    how |= {"annot": np.array(texts), "fmt": "", "linewidths": 1.0, "cbar_kws": bar}
    sns.heatmap(values, vmin=0, cmap=colours, ax=panel, **how)


def _name_cells(panel: Axes, lines: Sequence[str], columns: Sequence[str]) -> None:
    """Names of the lines and columns of a map; long ones of columns are turned."""
    panel.set_yticks(np.arange(len(lines)) + 0.5, lines, rotation=0, parse_math=False)
    turned = max(map(len, columns), default=0) > 8
    how: dict[str, Any] = {"rotation": 30, "ha": "right"} if turned else {"rotation": 0}
    panel.set_xticks(np.arange(len(columns)) + 0.5, columns, parse_math=False, **how)
    panel.tick_params(left=False, bottom=False)


def _share(value: float) -> str:
    """A share of a variance as text; a share above 100 % is not a number."""
    return OVER if value > WHOLE else f"{100 * value:.3g} %"


# Mark of pairs without an allowed split; the pair of a feature with itself stays empty.
NOT_ALLOWED = "–"


@validated
def plot_interactions(
    interactions: xr.Dataset, ax: Axes | None = None, *, level: float = 0.05
) -> Axes:
    """Heat map of interactions: how much of each feature's loss the best split by a column removes.

    Each line is a feature, with its loss beside the name; if the loss is near 0, even a large share
    is unimportant. A star marks drops whose adjusted p-value is at most ``level``. The cell of a
    feature with itself is empty; a dash marks pairs without a split that leaves enough rows on both
    sides.

    Parameters
    ----------
    interactions : Dataset
        What `interaction_matrix` returned.
    ax : Axes, optional
        By default that of a new figure. The colour bar takes a part of it.
    level : float, default 0.05
        Significance level of the stars.

    %(Axes returned; raises)s
    ValueError
        ``interactions`` is not an interaction matrix; ``level`` outside (0, 1).

    Examples
    --------
    >>> import rhale_stats as rs
    >>> example = rs.simulate.TwoRegimes()
    >>> local = rs.local_effects(None, example.sample(500, rng=0), jacobian=example.jacobian)
    >>> panel = rs.plots.interactions(rs.interaction_matrix(local, n_permutations=0))
    >>> [text.get_text() for text in panel.texts]
    ['0 %', '95 %', '0 %', '0 %', '0 %', '0 %']
    """
    needed, maker = ("loss_drop", "conditioning"), "interaction_matrix(local)"
    check_variables(interactions, "interactions", needed, maker)
    drop, pvalue = interactions["loss_drop"].values, interactions["pvalue_adjusted"].values
    n_lines, n_columns = drop.shape
    size = (max(0.75 * n_columns + 2.8, 4.5), max(0.5 * n_lines + 1.5, 2.6))
    with frame.one_panel(ax, size, despined=False, legend=False) as panel:
        _draw_drops(panel, interactions, pvalue <= level)
        tested = bool(np.isfinite(pvalue).any())
        if tested:
            adjust = interactions["pvalue_adjusted"].attrs.get("adjust", "none")
            how = "" if adjust == "none" else f", adjusted ({adjust})"
            test = f"* p ≤ {level:g}{how}; {interactions.attrs['n_permutations']} permutations"
        else:
            test = "no test was made"
        title = f"Interactions in the effects on {interactions.attrs.get('output_name', 'output')}"
        frame.name_axes(panel, title=f"{title}\n{test}", fontsize="medium")
    return panel


def _draw_drops(panel: Axes, matrix: xr.Dataset, marked: NDArray[np.bool_]) -> None:
    drop = matrix["loss_drop"].values
    names, columns = [list(map(str, matrix[dim].values)) for dim in ("feature", "conditioning")]
    marks = np.where(marked, "*", "")
    texts = [
        [f"{100 * share:.0f} %{mark}" for share, mark in zip(*pair, strict=True)]
        for pair in zip(drop, marks, strict=True)
    ]
    colours = sns.light_palette(HETEROGENEITY, as_cmap=True)
    bar = {"label": "drop of the loss by the best split", "format": PercentFormatter(1.0)}
    _heatmap(panel, drop, texts, colours, bar, mask=np.isnan(drop), vmax=1)
    for row, column in zip(*np.nonzero(np.isnan(drop)), strict=True):
        if names[row] != columns[column]:
            panel.text(column + 0.5, row + 0.5, NOT_ALLOWED, ha="center", va="center", color="0.4")
    losses = [loss_text(loss) for loss in matrix["loss"].values]
    labels = [
        f"{name}\n{f'loss {loss}' if loss else 'constant'}"
        for name, loss in zip(names, losses, strict=True)
    ]
    _name_cells(panel, labels, columns)
    frame.name_axes(panel, "split by", "effect of")


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
    check_one_part(surface, "surface")
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
    """Draw the map, with dots where 0 is outside the band; return where it is hatched."""
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
    how: dict[str, Any]
    if contour:
        how = {"levels": CONTOURS, "colors": "0.25", "linewidths": 0.7}
        lines = panel.contour(along[0], along[1], fine.T, **how)
        panel.clabel(lines, fontsize="x-small")
    empty = np.zeros((len(bounds[0]) - 1, len(bounds[1]) - 1), dtype=bool)
    if "x_a" in surface:
        empty[:] = True
        empty[places_of(surface, "a"), places_of(surface, "b")] = False
        _draw_rug(panel, surface)
    elif name == "difference":
        empty = _unshared(surface)
        low, high = surface["difference_band"].values.transpose(2, 0, 1)
        with np.errstate(invalid="ignore"):
            outside = np.nonzero((low > 0) | (high < 0))
        x, y = centres[0][outside[0]], centres[1][outside[1]]
        panel.scatter(x, y, s=9, color="0.15", zorder=4, clip_on=False)
    how = {"fill": False, "hatch": HATCH, "linewidth": 0, "edgecolor": "0.55"}
    for k, m in zip(*np.nonzero(empty), strict=True):
        corner = (bounds[0][k], bounds[1][m])
        width, height = bounds[0][k + 1] - corner[0], bounds[1][m + 1] - corner[1]
        panel.add_patch(Rectangle(corner, width, height, **how))
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


def _draw_rug(panel: Axes, surface: xr.Dataset) -> None:
    """Draw values of rows along the axes of numeric features."""
    used = np.flatnonzero(is_used(surface))
    used = used[:: len(used) // RUG_ROWS + 1]
    for side, axis in zip("ab", "xy", strict=True):
        if not is_categorical(surface, side):
            values = {axis: surface[f"x_{side}"].values[used]}
            sns.rugplot(**values, ax=panel, height=0.02, color="0.2", alpha=0.5, linewidth=0.5)
