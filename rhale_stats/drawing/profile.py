"""Plots of profiles, and of the curves of several methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from numpy.typing import ArrayLike, NDArray

from rhale_stats.arrays.moments import FloatArray
from rhale_stats.drawing.canvas import (
    AVERAGE,
    HETEROGENEITY_FILL,
    REFERENCE,
    UNCERTAINTY,
    UNCERTAINTY_LIGHT,
    as_array,
    date_axis,
    draw_area,
    draw_ends,
    draw_missing,
    draw_spread,
    feature_label,
    one_panel,
    output_label,
    several_panels,
    upright,
)
from rhale_stats.drawing.curve import enlarge
from rhale_stats.drawing.legend import CONSTANT, ERRORS_SHOWN, grid_of_panels, say
from rhale_stats.drawing.rows import RowColours, coloured
from rhale_stats.drawing.surface import draw_pair
from rhale_stats.inference.notes import is_of_both, with_rows_alone
from rhale_stats.printing.text import holds_model
from rhale_stats.profiles.data import check_profile, is_nominal, one_profile, pair_of
from rhale_stats.profiles.inference import one_relative
from rhale_stats.schema.dimensions import OUTPUT
from rhale_stats.schema.features import feature_names, feature_position, units_of, with_units
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

    Returns
    -------
    Axes
        The Axes with the curves.

    Raises
    ------
    TypeError, ValueError
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
    with one_panel(ax, (6.4, 4.0)) as panel:
        attrs = comparison.attrs
        panel.set_xlabel(
            with_units(str(attrs["feature"]), str(attrs["feature_units"])), parse_math=False
        )
        panel.set_ylabel(output_label(comparison), parse_math=False)
        panel.axhline(0, color=REFERENCE, linewidth=0.6, zorder=0.5)
        colours = sns.color_palette("colorblind", comparison.sizes["effect_method"])
        x, nominal = comparison["grid_value"].values, "level" in comparison.coords
        with_errors = np.flatnonzero(comparison["curve_se"].notnull().any("grid"))
        for number, colour in enumerate(colours):
            row = comparison.isel(effect_method=number)
            curve, se = row["curve"].values, row["curve_se"].values
            name = str(row["effect_method"].values)
            if nominal:
                width = 0.8 / len(colours)
                positions = x + width * (number - (len(colours) - 1) / 2)
                panel.bar(positions, curve, 0.9 * width, color=colour, alpha=0.8, label=name)
                panel.errorbar(
                    positions,
                    curve,
                    se,
                    fmt="none",
                    ecolor=AVERAGE,
                    elinewidth=1.4,
                    capsize=2,
                    label=STANDARD_ERROR if number == max(with_errors, default=-1) else None,
                )
                continue
            panel.fill_between(x, curve - se, curve + se, color=colour, alpha=0.25, linewidth=0)
            panel.plot(
                x,
                curve,
                color=colour,
                linestyle=LINES[number % len(LINES)],
                linewidth=1.8,
                label=name,
            )
        if nominal:
            panel.set_xticks(x, levels(comparison), parse_math=False)
        else:
            draw_shares(panel, x, comparison["weight_share"].values)
        legend(panel)
    return panel


# --- plots of profiles ----------------------------------------------------------------------------


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

    Returns
    -------
    Axes

    Raises
    ------
    KeyError
        Unknown feature.
    TypeError, ValueError
        ``profile`` is not a profile, or has several outputs; ``hue`` has another number of rows, or
        there are no rows to colour.

    Notes
    -----
    The filled band is plus and minus ``curve_std``, the spread between rows. Dashed lines are plus
    and minus one standard error, or the interval of `confint`; thin lines are the band of
    `confband`. They treat the model as given, unless `std_error` was given the model: the light
    area is then the standard error or interval, and the dark area within it that of the rows
    alone. With
    ``missing="bin"`` the mark beside the axis is ``missing_curve``, with its standard error. At
    most 200 ICE curves (of rows evenly spaced in the table) and at most 3000 points are drawn; the
    legend says so.

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
    row = _checked_reference(profile, feature, reference)
    with one_panel(ax, (6.4, 4.0)) as panel:
        _label(panel, profile, row)
        _draw(panel, profile, row, None if hue is None else _coloured(_values(hue, profile), row))
        if row.sizes["grid"] and not pair_of(row):
            legend(panel)
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


def _coloured(hue: ArrayLike, row: xr.Dataset) -> RowColours:
    """Colours of the rows of ICE curves or Shapley values."""
    if is_nominal(row) or not {"ice", "shap_value"} & set(map(str, row.data_vars)):
        raise ValueError(
            "hue colours ICE curves and Shapley values along an axis; the profile has none. Make "
            "it with ice or shap_dependence, or leave hue out."
        )
    return coloured(hue, row.sizes["obs"])


def _checked_reference(profile: xr.Dataset, feature: str | int, reference: Any) -> xr.Dataset:
    """One feature, relative to a value; refused where the difference means nothing."""
    if reference is not None and profile.attrs["method"] == "shap_dependence":
        raise ValueError(
            "reference must be None for shap_dependence, whose points are Shapley values and not "
            "outputs. Take pdp, ice or ale."
        )
    return one_relative(profile, feature, reference)


def plot_profiles(
    profile: xr.Dataset,
    positions: Sequence[int],
    n_columns: int,
    ax: Axes | Sequence[Axes] | NDArray[np.object_] | None,
    reference: Mapping[str, Any],
) -> NDArray[np.object_]:
    """Several features of a profile, each drawn as by `plots.profile`, with one y scale."""
    names = feature_names(profile)
    shown = [
        (profile, _checked_reference(profile, position, reference.get(names[position])))
        for position in positions
    ]
    return _panels(shown, n_columns, ax, "one a feature")


def grid_quantiles(row: xr.Dataset, shares: FloatArray) -> FloatArray | None:
    """Quantiles of the rows of one feature; None of levels, and of a constant feature."""
    if is_nominal(row) or not row.sizes["grid"]:
        return None
    share = row["weight_share"].values
    return np.asarray(np.interp(shares, np.cumsum(share) - share / 2, row["grid_value"].values))


def keep_to_rows_of(
    panels: NDArray[np.object_],
    profile: xr.Dataset,
    features: Sequence[str | int],
    percentiles: tuple[float, float],
) -> None:
    """Let the panels of a profile reach between these percentiles of the rows."""
    for panel, feature in zip(panels, features, strict=True):
        ends = grid_quantiles(one_profile(profile, feature), np.array(percentiles) / 100)
        if ends is not None and ends[0] < ends[1]:
            panel.set_xlim(*ends)


def plot_profile_outputs(
    profile: xr.Dataset,
    feature: str | int,
    *,
    n_columns: int = 3,
    ax: Axes | Sequence[Axes] | NDArray[np.object_] | None = None,
) -> NDArray[np.object_]:
    """One feature of a profile of several outputs: one panel per output, with one y scale."""
    parts = [
        check_profile(profile.isel({OUTPUT: number})) for number in range(profile.sizes[OUTPUT])
    ]
    shown = [(part, one_profile(part, feature)) for part in parts]
    panels = _panels(shown, n_columns, ax, "one an output")
    for panel, part in zip(panels, parts, strict=True):
        panel.set_title(str(part.attrs["output_name"]), parse_math=False)
        if panel.get_ylabel():
            panel.set_ylabel("mean output" if part.attrs["centering"] == "none" else "effect")
    return panels


def _panels(
    shown: list[tuple[xr.Dataset, xr.Dataset]],
    n_columns: int,
    ax: Axes | Sequence[Axes] | NDArray[np.object_] | None,
    what: str,
) -> NDArray[np.object_]:
    """Draw profiles, each in a panel; a new figure gets one y scale and one legend."""
    n, one_scale = len(shown), not any(pair_of(row) for _, row in shown)
    with several_panels(
        "ax",
        ax,
        n,
        what,
        lambda: grid_of_panels(n, n_columns, panel=(2.6, 2.3), room=0.8, sharey=one_scale),
    ) as panels:
        width = min(n_columns, n)
        for number, (panel, (profile, row)) in enumerate(zip(panels, shown, strict=True)):
            _label(panel, profile, row)
            if ax is None and number % width and one_scale:
                panel.set_ylabel("")
            _draw(panel, profile, row)
        if ax is None and not all(pair_of(row) for _, row in shown):
            handles: dict[str, Any] = {}
            for panel in panels:
                for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
                    handles.setdefault(label, handle)
            panels[0].figure.legend(
                list(handles.values()),
                list(handles),
                loc="outside upper center",
                ncols=3,
                frameon=False,
                fontsize="small",
            )
    return as_array(panels)


def _label(panel: Axes, profile: xr.Dataset, row: xr.Dataset) -> None:
    name = str(row["feature"].values)
    units = units_of(profile, name)
    panel.set_xlabel(feature_label(profile, name), parse_math=False)
    date_axis(panel, units)
    output, output_units = [str(profile.attrs[key]) for key in ("output_name", "output_units")]
    label = output_label(row)
    if "reference" in row.attrs:
        panel.set_ylabel(label, parse_math=False)
        return
    if profile.attrs.get("ice_kind") == "derivative":
        per = f"{output_units} per {units}" if units and output_units else ""
        label = upright(f"d {output} / d {name}", per)
    elif profile.attrs["centering"] == "none" and profile.attrs["method"] != "shap_dependence":
        label = upright(f"mean of {output}", output_units)
    panel.set_ylabel(label, parse_math=False)


def _draw(panel: Axes, profile: xr.Dataset, row: xr.Dataset, by: RowColours | None = None) -> None:
    if not row.sizes["grid"]:
        say(panel, CONSTANT)
        panel.set_xticks([])
        return
    if pair_of(row):
        draw_pair(panel, row)
        return
    if profile.attrs["centering"] != "none" or "reference" in row.attrs:
        panel.axhline(0, color=REFERENCE, linewidth=0.6, zorder=0.5)
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
            draw_missing(panel, last, float(row["missing_curve"]), se, NO_VALUE)
        draw_shares(panel, row["grid_value"].values, row["weight_share"].values)
    error = float(np.nan_to_num(row["output_error"].values)) if "output_error" in row else 0.0
    enlarge(panel, ERRORS_SHOWN * error)


def legend(panel: Axes) -> None:
    """Draw the legend above the panel, outside the data."""
    panel.legend(
        frameon=False, fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2
    )


def _some(n_rows: int, most: int) -> NDArray[np.intp]:
    """Numbers of rows at equal distances in the table."""
    return np.unique(np.linspace(0, n_rows - 1, min(n_rows, most)).round().astype(np.intp))


def _count(what: str, n_drawn: int, n_rows: int) -> str:
    return what if n_drawn == n_rows else f"{what}, {n_drawn} of {n_rows}"


def _draw_rows(panel: Axes, row: xr.Dataset, by: RowColours | None) -> None:
    """ICE curves, or Shapley values."""
    if "ice" in row:
        curves = row["ice"].transpose("obs", "grid").values
        complete = ~np.isnan(curves).any(axis=1)
        curves = curves[complete]
        drawn = _some(len(curves), CURVES_DRAWN)
        x = row["grid_value"].values
        lines = LineCollection(
            [np.column_stack([x, curve]) for curve in curves[drawn]],
            colors=ROWS if by is None else by.colours[complete][drawn],
            linewidths=0.5 if by is None else 0.8,
            alpha=0.5 if by is None else 0.8,
            zorder=0.8,
            label=_count("ICE curves", len(drawn), len(curves)),
        )
        panel.add_collection(lines)
        panel.autoscale_view()
    if "shap_value" in row:
        x, phi = row["x"].values, row["shap_value"].values - float(row["curve_offset"])
        drawn = _some(len(x), POINTS_DRAWN)
        panel.scatter(
            x[drawn],
            phi[drawn],
            s=5,
            color=ROWS if by is None else by.colours[drawn],
            alpha=0.5 if by is None else 0.9,
            linewidths=0,
            zorder=1.5,
            label=_count("Shapley values", len(drawn), len(x)),
        )


def _draw_curve(panel: Axes, row: xr.Dataset, *, spread: bool = True) -> None:
    x, curve, width = [row[name].values for name in ("grid_value", "curve", "curve_std")]
    if spread and np.isfinite(width).any():  # it would cover colours
        draw_spread(panel, x, curve, width, alpha=0.7, label=SPREAD)
    panel.plot(x, curve, color=AVERAGE, linewidth=1.6, zorder=3, label=_name(row))
    rows = _rows_alone(row)
    for number, (ends, label, dashes) in enumerate(_errors(row)):
        if rows is not None and not number:
            draw_area(panel, x, ends, label)
            draw_area(panel, x, *rows, dark=True)
        else:
            draw_ends(panel, x, ends, label, linewidth=0.9, linestyle=dashes, zorder=2.5)


def _name(row: xr.Dataset) -> str:
    """Name of the curve; one output has the attributes of the whole result."""
    text = CURVE[str(row.attrs["method"])]
    return "mean derivative" if row.attrs.get("ice_kind") == "derivative" else text


def _errors(row: xr.Dataset) -> list[tuple[FloatArray, str, object]]:
    """Ends of the curve's interval or band, (end, grid), with label and line style."""
    out: list[tuple[FloatArray, str, object]] = []
    if "curve_ci" in row:
        level = 100 * float(row["curve_ci"].attrs["ci_prob"])
        ends = row["curve_ci"].transpose("ci_bound", "grid").values
        label = f"{level:g} % interval, pointwise{_model(row['curve_ci'])}"
        out.append((ends, label, (0, (4, 2))))
    elif "curve_se" in row:
        curve, se = row["curve"].values, row["curve_se"].values
        label = f"{STANDARD_ERROR}{_model(row['curve_se'])}"
        out.append((np.stack([curve - se, curve + se]), label, (0, (4, 2))))
    if "curve_band" in row:
        level = 100 * float(row["curve_band"].attrs["ci_prob"])
        ends = row["curve_band"].transpose("ci_bound", "grid").values
        out.append((ends, f"{level:g} % band, simultaneous{_model(row['curve_band'])}", "-"))
    return out


def _rows_alone(row: xr.Dataset) -> tuple[FloatArray, str] | None:
    """Ends of the first of the errors by the rows alone, and its label, where it holds the model.

    None where that is all it holds.
    """
    if "curve_ci" in row:
        row = with_rows_alone(row)
        if "curve_ci_rows" not in row:
            return None
        level = 100 * float(row["curve_ci"].attrs["ci_prob"])
        ends = row["curve_ci_rows"].transpose("ci_bound", "grid").values
        return ends, f"{level:g} % interval, rows alone"
    has_rows_alone = "curve_se_rows" in row and is_of_both(
        str(row["curve_se"].attrs.get("source", ""))
    )
    if not has_rows_alone:
        return None
    curve, se = row["curve"].values, row["curve_se_rows"].values
    return np.stack([curve - se, curve + se]), f"{STANDARD_ERROR}, rows alone"


def _model(error: xr.DataArray) -> str:
    """Suffix of a label for an error that holds the parameters of the model."""
    source = str(error.attrs.get("source", "rows"))
    return f", {source}" if holds_model(source) else ""


def draw_shares(panel: Axes, x: FloatArray, share: FloatArray) -> None:
    """Draw where the rows are: a tick per grid point, darker for more rows."""
    shade = 0.9 - 0.7 * np.sqrt(share / share.max())
    panel.vlines(
        x,
        0,
        0.025,
        colors=[str(grey) for grey in shade],
        linewidths=1.2,
        transform=panel.get_xaxis_transform(),
        zorder=2,
    )


def _draw_levels(panel: Axes, row: xr.Dataset) -> None:
    """Draw bars of the levels, with the share of their rows below their names."""
    x, curve = row["grid_value"].values, row["curve"].values
    panel.bar(x, curve, width=0.7, color=HETEROGENEITY_FILL, zorder=1, label=_name(row))
    if row["curve_std"].notnull().any():
        panel.errorbar(
            x - 0.12,
            curve,
            row["curve_std"].values,
            fmt="none",
            ecolor=ROWS,
            elinewidth=1.2,
            zorder=2,
            label=SPREAD,
        )
    rows, errors = (
        _rows_alone(row),
        [(number, *error[:2]) for number, error in enumerate(_errors(row))],
    )
    if rows is not None:
        errors.insert(1, (0, *rows))
    for place, (number, ends, label) in enumerate(errors):
        panel.errorbar(
            x + 0.12 * (number + 1),
            curve,
            np.abs(ends - curve),
            fmt="none",
            ecolor=UNCERTAINTY if rows is None or place else UNCERTAINTY_LIGHT,
            elinewidth=1.4 if rows is None or number else 2.2,
            capsize=3 if number else 0,
            zorder=2.5,
            label=label,
        )
    panel.set_xticks(x, levels(row), parse_math=False)


def levels(row: xr.Dataset) -> list[str]:
    """Names of the levels with the share of their rows."""
    return [
        f"{level}\n{100 * share:.0f} %"
        for level, share in zip(row["level"].values, row["weight_share"].values, strict=True)
    ]
