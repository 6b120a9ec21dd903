"""Curves in one picture: colours and panels by any dimension of a result, or by several results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import ArrayLike, NDArray

from rhale_stats.arguments.checks import check_choice
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.drawing import frame
from rhale_stats.drawing.curve import Interval, curve_drawn, ends_of, interval_label, name_levels
from rhale_stats.drawing.frame import GivenAxes, Panels, sns
from rhale_stats.effects.comparison import relative_to
from rhale_stats.effects.intervals import with_own_intervals
from rhale_stats.effects.rhale import rhale
from rhale_stats.profiles.data import check_profile, levels_in
from rhale_stats.profiles.inference import confint, one_relative
from rhale_stats.schema.checks import check_effect
from rhale_stats.schema.dimensions import OUTPUT, REGION
from rhale_stats.schema.feature_result import Result, one_feature
from rhale_stats.schema.features import (
    feature_names,
    feature_position,
    label_of,
    positions_of,
    units_in,
    with_units,
)
from rhale_stats.schema.kinds import LOCAL, PROFILE
from rhale_stats.schema.levels import level_names
from rhale_stats.schema.validation import validated

FEATURE, EFFECT = "feature", "effect"
DIMENSIONS = (FEATURE, OUTPUT, REGION, EFFECT)
# More lines in one panel cannot be told apart; more than four have their names, unless longer, at
# their ends.
MAX_LINES, MAX_ENTRIES, LONGEST_AT_END = 10, 4, 24
# A curve without points: places, values, ends of intervals, levels.
NO_POINTS: tuple[Any, ...] = (np.zeros(0), np.zeros(0), np.zeros((2, 0)), [])
# Distance of names at the ends of lines, as a share of the height.
APART = 0.07


@validated
def plot_curves(
    effects: xr.Dataset | Mapping[str, xr.Dataset],
    features: str | int | Sequence[str | int] | None = None,
    *,
    by: ArrayLike | None = None,
    hue: str | None = None,
    col: str | None = None,
    row: str | None = None,
    reference: Mapping[str, Any] | None = None,
    intervals: bool = True,
    n_columns: int = 3,
    ax: Axes | Sequence[Axes] | NDArray[np.object_] | None = None,
) -> NDArray[np.object_]:
    """Curves of several features, outputs, regions or results, in colours and in panels.

    Every curve is drawn with its interval; all panels have one y scale. Where curves are to be
    compared, `compare` tests their difference: intervals of two curves that overlap are no test.

    Parameters
    ----------
    effects : Dataset, or mapping of them
        What `rhale`, `ale`, `std_error`, `confint` or a profile such as `pdp` returned; or several
        of them by a name each, of other rows, models or methods: the dimension "effect". Of local
        effects the effects by `rhale`.
    features : name, number, or sequence of them, optional
        Features to draw; by default all.
    by : name, or array_like of shape (n_rows,), optional
        With local effects: another column, as in `rhale`. The rows of every level have effects of
        their own, of more than 10 numbers those up to the median and those above it; at most 10
        levels. A Series gives its name, and is aligned by its labels.
    hue, col, row : {"feature", "output", "region", "effect"}, optional
        Dimensions that colours, columns and rows of panels are for. By default colours are for
        results, regions or outputs, whichever there are, and columns for features. A dimension of
        more than one entry must be named if the defaults do not reach for it.
    reference : mapping, optional
        Values by the names of features: their curves are differences from the value there.
    intervals : bool, default True
        Draw pointwise intervals, those of `confint` where it was called.
    n_columns : int, default 3
        Panels per line, where ``row`` is not given.
    ax : Axes, or sequence of them, optional
        One a panel, line by line. By default those of a new figure.

    Returns
    -------
    ndarray of shape (n_panels,)
        The Axes, line by line.

    %(raises)s
    ValueError
        A dimension twice, or one that is not there; more than 10 curves in a panel; a feature that
        is an axis in one result and has levels in another; ``by`` without local effects, or of
        other rows; another number of Axes than panels.

    Notes
    -----
    The panels are those of seaborn's ``FacetGrid`` over the tidy table of all curves. Up to four
    colours are explained in a legend, more by names at the right ends of the curves, or in the
    legend where these are long.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> model = lambda X: X[:, 0] ** 2 * (1 + X[:, 1])
    >>> by = {"RHALE": rs.rhale(rs.local_effects(model, X)), "PDP": rs.pdp(model, X)}
    >>> panels = rs.plots.curves(by)
    >>> [panel.get_title() for panel in panels]
    ['x0', 'x1']
    """
    each: dict[str, object] = {"": effects}
    if not isinstance(effects, xr.Dataset) and isinstance(effects, Mapping):
        each = {str(name): effect for name, effect in effects.items()}
    if by is not None and not LOCAL.holds(effects):
        raise ValueError(
            "by needs local effects, whose rows it divides: plots.curves(local, by=column). Of "
            "results divide the rows yourself: plots.curves({'a': ..., 'b': ...})."
        )
    if isinstance(effects, xr.Dataset) and LOCAL.holds(effects):
        each = {"": rhale(effects, by=by)}
    if not each:
        raise ValueError("effects must hold at least one result; got none.")
    reference = frame.reference_of(reference)
    curves = [
        curve
        for name, effect in each.items()
        for curve in _curves(name, effect, features, reference)
    ]
    if not intervals:
        curves = [curve._replace(ends=np.full_like(curve.ends, np.nan)) for curve in curves]
    return _drawn(curves, _dimensions(curves, {"hue": hue, "col": col, "row": row}), n_columns, ax)


class _Curve(NamedTuple):
    """The curve of one feature: its entry of each dimension, and its points with their interval."""

    place: dict[str, str]
    data: Result
    x: FloatArray
    value: FloatArray
    ends: FloatArray
    levels: list[str]


def _curves(name: str, effect: object, features: Any, reference: Mapping[str, Any]) -> list[_Curve]:
    """All curves of a result: one a feature, output and region."""
    if isinstance(effect, xr.Dataset):
        for dim in (OUTPUT, REGION):
            if dim in effect.dims:
                labels = effect[dim].values if dim in effect.coords else range(effect.sizes[dim])
                if dim == REGION and "region_rule" in effect.coords:
                    labels = effect["region_rule"].values
                return [
                    curve._replace(place={**curve.place, dim: str(label)})
                    for number, label in enumerate(labels)
                    for curve in _curves(name, effect.isel({dim: number}), features, reference)
                ]
    profile = PROFILE.holds(effect)
    if profile:
        whole = check_profile(effect, "effects")
        whole = whole if "curve_ci" in whole else confint(whole, None, 0.95, None)
    else:
        whole = check_effect(effect, "effects")
    names = feature_names(whole)
    for feature in reference:
        feature_position(whole, feature)
    curves = []
    for position in positions_of(features, names):
        value = reference.get(names[position])
        place = {FEATURE: label_of(whole, names[position]), EFFECT: name, OUTPUT: "", REGION: ""}
        if profile:
            data = one_relative(whole, names[position], value)
            x, y = data["grid_value"].values, data["curve"].values
            curves.append(_Curve(place, data, x, y, ends_of(data["curve_ci"]), levels_in(data)))
            continue
        single = with_own_intervals(whole.isel(feature=[position]))
        row = one_feature(single if value is None else relative_to(single, value), 0)
        points = NO_POINTS
        if row.sizes["bin"]:
            x, y, _, interval, *_ = curve_drawn(row)
            ends = np.full((2, len(x)), np.nan) if interval is None else interval.ends
            points = x, y, ends, level_names(row) if row.is_categorical else []
        curves.append(_Curve(place, row, *points))
    return curves


def _dimensions(curves: list[_Curve], named: dict[str, str | None]) -> dict[str, str]:
    """Which dimension colours, columns and rows are for."""
    several = [dim for dim in DIMENSIONS if len({curve.place[dim] for curve in curves}) > 1]
    roles = {key: dim for key, dim in named.items() if dim is not None}
    for key, dim in roles.items():
        check_choice(key, dim, DIMENSIONS)
        if list(roles.values()).count(dim) > 1:
            raise ValueError(
                f"{key} must be a dimension of its own; {dim!r} is named twice. Name each once."
            )
    rest = [dim for dim in several if dim not in roles.values()]
    for key, choices in (("col", (FEATURE,)), ("hue", (EFFECT, REGION, OUTPUT)), ("col", several)):
        candidates = [dim for dim in choices if dim in rest]
        if candidates and key not in roles:
            roles[key] = candidates[0]
            rest.remove(candidates[0])
    if rest:
        raise ValueError(
            f"hue, col and row must reach for all dimensions of more than one entry; "
            f"{', '.join(map(repr, rest))} is left. Name it, or select one entry of it."
        )
    n_lines = len({curve.place[roles["hue"]] for curve in curves}) if "hue" in roles else 1
    if n_lines > MAX_LINES:
        raise ValueError(
            f"hue must have at most {MAX_LINES} entries, which can be told apart; "
            f"{roles['hue']!r} has {n_lines}. Make panels of them: col={roles['hue']!r}."
        )
    return roles


def _drawn(curves: list[_Curve], by: Mapping[str, str], n_columns: int, ax: GivenAxes) -> Panels:
    order = {dim: list(dict.fromkeys(curve.place[dim] for curve in curves)) for dim in by.values()}
    hues = order[by["hue"]] if "hue" in by else [""]
    colours = dict(zip(hues, sns.color_palette("colorblind", len(hues)), strict=True))
    if len(hues) == 1:
        colours = dict.fromkeys(hues, (0.0, 0.0, 0.0))
    lines, columns = [order[by[key]] if key in by else [None] for key in ("row", "col")]
    attrs = curves[0].data.attrs
    name = "the outputs" if OUTPUT in by.values() else str(attrs.get("output_name", "output"))
    label = frame.upright(f"effect on {name}", str(attrs.get("output_units", "")))

    def made() -> Any:
        # Empty panels, with one scale for what they have in common.
        how: dict[str, Any] = {key: by[key] for key in ("col", "row") if key in by}
        if "row" not in by and len(columns) > n_columns:
            how["col_wrap"] = n_columns
        how["sharex"] = FEATURE not in (by.get("col"), by.get("row"))
        places = pd.DataFrame([curve.place for curve in curves])
        grid = sns.FacetGrid(places, sharey=True, height=2.4, aspect=1.25, despine=True, **how)
        grid.set_titles("")
        return grid.axes

    n_panels = len(lines) * len(columns)
    with frame.several_panels(ax, n_panels, "one a panel", made, legend=False) as panels:
        for panel, entries in zip(panels, product(lines, columns), strict=True):
            shown = curves
            for key, entry in zip(("row", "col"), entries, strict=True):
                if entry is not None:
                    shown = [curve for curve in shown if curve.place[by[key]] == entry]
            _draw(panel, shown, by.get("hue"), colours)
            frame.entitle(panel, ", ".join(filter(None, entries)))
            panel.set_ylabel("")
        figure = panels[0].figure
        if ax is None:
            figure.supylabel(label, fontsize="medium", parse_math=False)
            figure.set_layout_engine("constrained")
        else:
            frame.name_axes(panels[0], y=label)
        handles = _interval_marks(curves)
        at_ends = len(hues) > MAX_ENTRIES and max(map(len, hues)) <= LONGEST_AT_END
        if at_ends:
            _name_lines(panels[-1])
        elif len(hues) > 1:
            drawn = frame.handles_in(panels)
            handles = {entry: drawn[entry] for entry in hues if entry in drawn} | handles
        if handles:
            legend = frame.figure_legend(figure, handles, handles, MAX_ENTRIES)
            if ax is None:
                height = legend.get_window_extent().height / figure.dpi
                figure.set_figheight(figure.get_figheight() + height)
    return panels


def _interval_marks(curves: list[_Curve]) -> dict[str, Any]:
    """Marks of the intervals, by what these are: areas along an axis, lines of levels alone."""
    drawn = [curve for curve in curves if np.isfinite(curve.ends).any()]
    mark: Any = Patch(color=frame.UNCERTAINTY_LIGHT, linewidth=0)
    if all(curve.levels for curve in drawn):
        mark = Line2D([], [], color=frame.UNCERTAINTY, linewidth=1.2)
    return {_interval_text(curve.data["curve_ci"]): mark for curve in drawn}


def _interval_text(interval: Interval) -> str:
    source = frame.source_suffix(str(interval.attrs.get("source", "rows")))
    return interval_label(interval, f"{frame.CURVE_INTERVAL}{source}")


def _draw(panel: Axes, curves: list[_Curve], hue: str | None, colours: Mapping[str, Any]) -> None:
    """The curves of one panel, and the name of their axis."""
    frame.draw_zero(panel, gid=None)
    curves = [curve for curve in curves if len(curve.x)]
    levels = list(dict.fromkeys(level for curve in curves for level in curve.levels))
    if levels and not all(curve.levels for curve in curves):
        raise ValueError(
            f"features must be an axis, or have levels, in all effects; "
            f"{curves[0].place[FEATURE]!r} has both. Leave it out, or give one of them bins."
        )
    for number, (name, colour) in enumerate(colours.items()):
        how = {"color": colour, "label": name or None, "zorder": 3}
        shown = [curve[2:] for curve in curves if hue is None or curve.place[hue] == name]
        for x, value, ends, own_levels in shown or [NO_POINTS]:  # the legend has all colours
            if not levels:
                panel.plot(x, value, linewidth=1.4, **how)
                frame.draw_between(panel, x, ends, color=colour, alpha=0.2, zorder=2)
                continue
            place = np.array([levels.index(level) for level in own_levels])
            place = place + (number - (len(colours) - 1) / 2) * 0.6 / len(colours)
            panel.plot(place, value, "o", markersize=4, **how)
            panel.vlines(place, *ends, color=colour, linewidth=1.2, zorder=2)
    if levels:
        name_levels(panel, levels)
    if curves:
        data, units = curves[0].data, units_in(curves[0].data)
        text = with_units(curves[0].place[FEATURE], units)
        if "reference" in data.attrs:
            text += f", relative to {str(data.attrs['reference']).rpartition(' = ')[2]}"
        frame.name_axes(panel, text)
        frame.date_axis(panel, units)


def _name_lines(panel: Axes) -> None:
    """Names at the right ends of lines, moved apart where they would touch."""
    low, high = panel.get_ylim()
    lines = [line for line in panel.lines if not str(line.get_label()).startswith("_")]
    ends = [float(np.asarray(line.get_ydata(), dtype=np.float64)[-1]) for line in lines]
    least = APART * (high - low)
    placed = -np.inf
    for number in np.argsort(ends):
        placed = max(ends[number], placed + least)
        how: dict[str, Any] = {"xycoords": panel.get_yaxis_transform(), "annotation_clip": False}
        name, colour = str(lines[number].get_label()), lines[number].get_color()
        frame.beside(panel, name, 1.02, placed, color=colour, parse_math=False, **how)
