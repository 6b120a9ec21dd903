"""Plots of profiles, and of the curves of several methods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from numpy.typing import ArrayLike

from rhale_stats.arguments.rows import evenly
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.drawing import frame
from rhale_stats.drawing.curve import ends_of, name_levels, quantiles_of
from rhale_stats.drawing.frame import GivenAxes, Panels, sns
from rhale_stats.drawing.heat_maps import draw_pair
from rhale_stats.drawing.rows import RowColours, coloured
from rhale_stats.inference.notes import is_of_both, with_rows_alone
from rhale_stats.printing.text import holds_model, source_of
from rhale_stats.profiles.data import check_profile, is_nominal, one_profile, pair_of
from rhale_stats.profiles.inference import one_relative
from rhale_stats.schema.feature_result import one_feature
from rhale_stats.schema.features import (
    feature_names,
    feature_position,
    label_of,
    units_in,
    with_units,
)
from rhale_stats.schema.kinds import PROFILE
from rhale_stats.schema.validation import validated

LINES = ("-", (0, (6, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)), (0, (3, 1, 1, 1, 1, 1)))


@validated
def plot_methods(comparison: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Curves of one feature by several methods, in one panel.

    Every method has its own colour and line style. A light band is plus and minus one standard
    error, where it is known. Levels of a category are groups of bars, with plus and minus
    the standard error as whiskers, and the share of their rows below their names.

    Parameters
    ----------
    comparison : Dataset
        What `compare_methods` returned.
    ax : Axes, optional
        By default that of a new figure.

    %(Axes returned; raises)s
    ValueError
        ``comparison`` is not a result of `compare_methods`.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    >>> model = lambda X: X[:, 0] * X[:, 1]
    >>> both = rs.compare_methods([rs.pdp(model, X), rs.m_plot(model, X)], "x0")
    >>> [text.get_text() for text in rs.plots.methods(both).get_legend().get_texts()]
    ['Partial dependence', 'M-plot']
    """
    if not isinstance(comparison, xr.Dataset):
        raise TypeError(
            f"comparison must be what compare_methods returned; got {type(comparison).__name__}."
        )
    if comparison.attrs.get("method") != "comparison of methods":
        raise ValueError(
            f"comparison must be what compare_methods returned; this one holds "
            f"{', '.join(str(name) for name in comparison.data_vars)}."
        )
    attrs, n_methods = comparison.attrs, comparison.sizes["effect_method"]
    x, nominal = comparison["grid_value"].values, "level" in comparison.coords
    with frame.one_panel(ax, (6.4, 4.0), legend=False) as panel:
        name = with_units(str(attrs["feature"]), str(attrs["feature_units"]))
        frame.name_axes(panel, name, frame.output_label(comparison))
        frame.draw_zero(panel, gid=None)
        last = max(np.flatnonzero(comparison["curve_se"].notnull().any("grid")), default=-1)
        for number, colour in enumerate(sns.color_palette("colorblind", n_methods)):
            row = comparison.isel(effect_method=number)
            curve, se = row["curve"].values, row["curve_se"].values
            name, how = str(row["effect_method"].values), {"color": colour}
            if nominal:
                width = 0.8 / n_methods
                places = x + width * (number - (n_methods - 1) / 2)
                panel.bar(places, curve, 0.9 * width, alpha=0.8, label=name, **how)
                label = STANDARD_ERROR if number == last else None
                dark: dict[str, Any] = {"ecolor": frame.AVERAGE, "capsize": 2, "label": label}
                frame.draw_whiskers(panel, places, curve, se, 1.4, **dark)
                continue
            frame.draw_between(panel, x, (curve - se, curve + se), alpha=0.25, **how)
            dashes = LINES[number % len(LINES)]
            panel.plot(x, curve, linestyle=dashes, linewidth=1.8, label=name, **how)
        if nominal:
            name_levels(panel, comparison["level"].values.tolist(), shares(comparison))
        else:
            draw_shares(panel, x, comparison["weight_share"].values)
        draw_panel_legend(panel)
    return panel


# Maximum numbers of ICE curves and of points drawn; more would merge.
CURVES_DRAWN, POINTS_DRAWN = 200, 3000
ROWS = "0.55"
CURVE = {
    "pdp": "partial dependence",
    "ice": "mean of the ICE curves",
    "m_plot": "mean output in the bin",
    "shap_dependence": "spline through Shapley values",
}
SPREAD = "± spread"
NO_VALUE = "without a value"
STANDARD_ERROR = "± standard error"


@validated
def plot_profile(
    profile: xr.Dataset,
    feature: str | int,
    ax: Axes | None = None,
    *,
    hue: str | ArrayLike | None = None,
    reference: Any = None,
) -> Axes:
    """Curve of one feature of a profile, with spread, standard errors and the rows.

    For a result of `ice` the ICE curves are drawn behind the mean curve; for SHAP dependence the
    Shapley values. Ticks along the axis show where the rows are, darker where there are more.
    Categories are drawn as bars with the share of their rows, and pairs of features as a map.

    Parameters
    ----------
    profile : Dataset
        What `pdp`, `ice`, `m_plot` or `shap_dependence` returned, or `confint` or `confband` made
        of it.
    feature : str or int
        Name or number.
    ax : Axes, optional
        By default those of a new figure.
    hue : str, or array_like of shape (n_rows,), optional
        Another column, by which the ICE curves or Shapley values are coloured: numbers by shades,
        up to four levels (the most frequent) by a colour each. A Series gives its name; a text is
        the name of another feature of the profile.
    reference : number or level, optional
        A value of the feature. The curve, and with `ice` every single curve, is drawn as the
        difference from its value there, with errors of that difference.

    %(Axes returned; raises)s
    %(unknown feature)s
    ValueError
        ``profile`` is not a profile, or has several outputs; ``hue`` has another number of rows, or
        there are no rows to colour.

    Notes
    -----
    The filled band is plus and minus ``curve_std``, the spread between rows. Dashed lines are plus
    and minus one standard error, or the interval of `confint`; thin lines are the band of
    `confband`. They treat the model as given, unless `std_error` was given the model: the light
    area is then the standard error or interval, and the dark area within it that of the rows
    alone. With ``missing="bin"`` the mark beside the axis is ``missing_curve``, with its standard
    error. At most 200 ICE curves (of rows evenly spaced in the table) and at most 3000 points are
    drawn; the legend says so.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    >>> found = rs.ice(lambda X: X[:, 0] * X[:, 1], X, kind="centered", centering="mean")
    >>> panel = rs.plots.profile(found, "x0")
    >>> [text.get_text() for text in panel.get_legend().get_texts()][0]
    'ICE curves, 200 of 300'
    """
    profile = check_profile(profile)
    row = checked_reference(profile, feature, reference)
    by = None
    if hue is not None:
        values = _values(hue, profile)
        if is_nominal(row) or not {"ice", "shap_value"} & set(map(str, row.data_vars)):
            raise ValueError(
                "hue colours ICE curves and Shapley values along an axis; the profile has none. "
                "Make it with ice or shap_dependence, or leave hue out."
            )
        by = coloured(values, row.sizes["obs"])
    with frame.one_panel(ax, (6.4, 4.0), legend=False) as panel:
        _label(panel, row)
        _draw(panel, row, by)
        if row.sizes["grid"] and not pair_of(row):
            draw_panel_legend(panel)
    return panel


def _values(hue: str | ArrayLike, profile: xr.Dataset) -> ArrayLike:
    """A column of the rows, given or named as one of the features of the profile."""
    if not isinstance(hue, str):
        return hue
    if "x" not in profile or hue not in feature_names(profile):
        raise TypeError(
            f"hue must be an array with one entry a row, or another feature of a result of ice or "
            f"shap_dependence; got the text {hue!r}. Pass the column: hue=X[{hue!r}]."
        )
    row = profile.isel(feature=feature_position(profile, hue))
    values = pd.Series(row["x"].values, name=hue)
    if not is_nominal(row):
        return values
    return values.map(dict(enumerate(row["level"].values))).rename(hue)


def checked_reference(profile: xr.Dataset, feature: str | int, reference: Any) -> xr.Dataset:
    """One feature, relative to a value; refused where the difference means nothing."""
    if reference is not None and profile.attrs["method"] == "shap_dependence":
        raise ValueError(
            "reference must be None for shap_dependence, whose points are Shapley values and not "
            "outputs. Take pdp, ice or ale."
        )
    return one_relative(profile, feature, reference)


def keep_to_rows_of(
    panels: Iterable[Axes],
    result: xr.Dataset,
    features: Sequence[str | int],
    percentiles: tuple[float, float],
) -> None:
    """Let panels of features of a profile, or of effects, reach between percentiles of the rows."""
    shares = np.array(percentiles) / 100
    for panel, feature in zip(panels, features, strict=True):
        ends = None
        if not PROFILE.holds(result):
            ends = quantiles_of(one_feature(result, feature), shares)
        elif not is_nominal(row := one_profile(result, feature)) and row.sizes["grid"]:
            share = row["weight_share"].values
            ends = np.interp(shares, np.cumsum(share) - share / 2, row["grid_value"].values)
        if ends is not None and ends[0] < ends[1]:
            panel.set_xlim(*ends)


def draw_profiles(rows: Sequence[xr.Dataset], n_columns: int, ax: GivenAxes, what: str) -> Panels:
    """Profiles as `plots.profile` draws them, with one y scale and legend in a new figure."""
    n, one_scale = len(rows), not any(map(pair_of, rows))
    size: dict[str, Any] = {"panel": (2.6, 2.3), "room": 0.8, "sharey": one_scale}
    made = partial(frame.grid_of_panels, n, n_columns, **size)
    with frame.several_panels(ax, n, what, made, legend=False) as panels:
        width = min(n_columns, n)
        for number, (panel, row) in enumerate(zip(panels, rows, strict=True)):
            _label(panel, row)
            if ax is None and number % width and one_scale:
                panel.set_ylabel("")
            _draw(panel, row)
        if ax is None and not all(map(pair_of, rows)):
            frame.legend_as_drawn(list(panels), 3)
    return panels


def _label(panel: Axes, row: xr.Dataset) -> None:
    name, units = str(row["feature"].values), units_in(row)
    frame.name_axes(panel, with_units(label_of(row, name), units))
    frame.date_axis(panel, units)
    label, attrs = frame.output_label(row), row.attrs
    not_centred = attrs["centering"] == "none" and attrs["method"] != "shap_dependence"
    if "reference" not in attrs and attrs.get("ice_kind") == "derivative":
        label = frame.slope_label(row, name, units)
    elif "reference" not in attrs and not_centred:
        label = frame.upright(f"mean of {attrs['output_name']}", str(attrs["output_units"]))
    frame.name_axes(panel, y=label)


def _draw(panel: Axes, row: xr.Dataset, by: RowColours | None = None) -> None:
    if not row.sizes["grid"]:
        frame.say(panel, frame.CONSTANT)
        panel.set_xticks([])
        return
    if pair_of(row):
        draw_pair(panel, row)
        return
    if row.attrs["centering"] != "none" or "reference" in row.attrs:
        frame.draw_zero(panel, gid=None)
    if is_nominal(row):
        _draw_levels(panel, row)
    else:
        _draw_rows(panel, row, by)
        if by is not None:
            by.explain(panel)
        _draw_curve(panel, row, spread=by is None)
        if "missing_curve" in row and row["missing_curve"].notnull():
            se = float(np.nan_to_num(row["missing_curve_se"].values))
            last = float(row["grid_value"].values[-1])
            frame.draw_missing(panel, last, float(row["missing_curve"]), se, NO_VALUE)
        draw_shares(panel, row["grid_value"].values, row["weight_share"].values)
    error = float(np.nan_to_num(row["output_error"].values)) if "output_error" in row else 0.0
    frame.enlarge(panel, frame.ERRORS_SHOWN * error)


def draw_panel_legend(panel: Axes) -> None:
    """Draw the legend above the panel, outside the data."""
    place: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}
    panel.legend(frameon=False, fontsize="small", ncols=2, **place)


def _count(what: str, n_drawn: int, n_rows: int) -> str:
    return what if n_drawn == n_rows else f"{what}, {n_drawn} of {n_rows}"


def _draw_rows(panel: Axes, row: xr.Dataset, by: RowColours | None) -> None:
    """ICE curves, or Shapley values."""
    if "ice" in row:
        curves = row["ice"].transpose("obs", "grid").values
        complete = ~np.isnan(curves).any(axis=1)
        curves = curves[complete]
        drawn = evenly(len(curves), CURVES_DRAWN)
        x = row["grid_value"].values
        look: dict[str, Any] = {"colors": ROWS, "linewidths": 0.5, "alpha": 0.5}
        if by is not None:
            look = {"colors": by.colours[complete][drawn], "linewidths": 0.8, "alpha": 0.8}
        points = [np.column_stack([x, curve]) for curve in curves[drawn]]
        lines = LineCollection(points, zorder=0.8, **look)
        frame.add(panel, lines, _count("ICE curves", len(drawn), len(curves)))
        panel.autoscale_view()
    if "shap_value" in row:
        x, phi = row["x"].values, row["shap_value"].values - float(row["curve_offset"])
        drawn = evenly(len(x), POINTS_DRAWN)
        how: dict[str, Any] = {"color": ROWS, "alpha": 0.5}
        if by is not None:
            how = {"color": by.colours[drawn], "alpha": 0.9}
        label = _count("Shapley values", len(drawn), len(x))
        panel.scatter(x[drawn], phi[drawn], s=5, linewidths=0, zorder=1.5, label=label, **how)


def _draw_curve(panel: Axes, row: xr.Dataset, *, spread: bool = True) -> None:
    x, curve, width = [row[name].values for name in ("grid_value", "curve", "curve_std")]
    if spread and np.isfinite(width).any():  # it would cover colours
        how: dict[str, Any] = {"color": frame.HETEROGENEITY_FILL, "alpha": 0.7, "zorder": 1}
        frame.draw_between(panel, x, (curve - width, curve + width), SPREAD, **how)
    panel.plot(x, curve, color=frame.AVERAGE, linewidth=1.6, zorder=3, label=_name(row))
    for error in _errors(row):
        if error.part:
            frame.draw_area(panel, x, error.ends, error.label, dark=error.part == "rows")
        else:
            dashes: Any = "-" if error.is_band else frame.DASHES
            how = {"linewidth": 0.9, "linestyle": dashes, "zorder": 2.5}
            frame.draw_ends(panel, x, error.ends, error.label, **how)


def _name(row: xr.Dataset) -> str:
    """Name of the curve; one output has the attributes of the whole result."""
    text = CURVE[str(row.attrs["method"])]
    return "mean derivative" if row.attrs.get("ice_kind") == "derivative" else text


class _Error(NamedTuple):
    """Ends of the interval or band of a curve, (end, grid), and its entry in the legend.

    Of an interval that holds the model, ``part`` is "whole", and "rows" of that of the rows alone.
    """

    ends: FloatArray
    label: str
    part: str = ""
    is_band: bool = False


def _errors(row: xr.Dataset) -> Iterator[_Error]:
    """The interval, or else plus and minus the standard error; that of the rows alone; the band."""
    curve, name, text, more = row["curve"].values, "curve_se", STANDARD_ERROR, ""
    parts, by_rows = row, "curve_se_rows" in row and is_of_both(source_of(row, "curve"))
    if "curve_ci" in row:
        name, text, more = (
            "curve_ci",
            f"{frame.level_text(row['curve_ci'])} interval",
            ", pointwise",
        )
        parts = with_rows_alone(row)
        by_rows = "curve_ci_rows" in parts

    def error(name: str, text: str, part: str = "", *, is_band: bool = False) -> _Error:
        se, source = parts[name].values, str(parts[name].attrs.get("source", "rows"))
        ends = np.stack([curve - se, curve + se]) if "_se" in name else ends_of(parts[name])
        told = part != "rows" and holds_model(source)
        return _Error(ends, f"{text}, {source}" if told else text, part, is_band)

    if name in row:
        yield error(name, text + more, "whole" if by_rows else "")
    if by_rows:
        yield error(f"{name}_rows", f"{text}, rows alone", "rows")
    if "curve_band" in row:
        text = f"{frame.level_text(row['curve_band'])} band, simultaneous"
        yield error("curve_band", text, is_band=True)


def draw_shares(panel: Axes, x: FloatArray, share: FloatArray) -> None:
    """Draw where the rows are: a tick per grid point, darker for more rows."""
    shades = [str(grey) for grey in 0.9 - 0.7 * np.sqrt(share / share.max())]
    place = panel.get_xaxis_transform()
    panel.vlines(x, 0, 0.025, colors=shades, linewidths=1.2, transform=place, zorder=2)


def _draw_levels(panel: Axes, row: xr.Dataset) -> None:
    """Draw bars of the levels, with the share of their rows below their names."""
    x, curve = row["grid_value"].values, row["curve"].values
    fill = frame.HETEROGENEITY_FILL
    panel.bar(x, curve, width=0.7, color=fill, zorder=1, label=_name(row))
    if row["curve_std"].notnull().any():
        how: dict[str, Any] = {"ecolor": ROWS, "zorder": 2, "label": SPREAD}
        frame.draw_whiskers(panel, x - 0.12, curve, row["curve_std"].values, 1.2, **how)
    for error in _errors(row):
        how = {"capsize": 3 if error.is_band else 0, "zorder": 2.5, "label": error.label}
        how["ecolor"] = frame.UNCERTAINTY_LIGHT if error.part == "whole" else frame.UNCERTAINTY
        place, width = x + (0.24 if error.is_band else 0.12), 2.2 if error.part else 1.4
        frame.draw_whiskers(panel, place, curve, np.abs(error.ends - curve), width, **how)
    name_levels(panel, row["level"].values.tolist(), shares(row))


def shares(row: xr.Dataset) -> list[str]:
    """Shares of the rows at the levels."""
    return [f"{100 * share:.0f} %" for share in row["weight_share"].values]
