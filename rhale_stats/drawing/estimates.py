"""One line a feature: forest plot, summary of an explanation; differences and outcomes along it."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from numpy.typing import NDArray

from rhale_stats.answers import sentences
from rhale_stats.answers.printed import rows_cell
from rhale_stats.answers.sentences import AnswerLine, lines_of, listed
from rhale_stats.arguments.times import unit_word
from rhale_stats.drawing import curve, frame
from rhale_stats.effects.sizes import ForestData, forest_data
from rhale_stats.ensembles.tables import one_number
from rhale_stats.printing.text import cut_within, in_lines, output_text
from rhale_stats.schema.checks import check_dataset, check_variables
from rhale_stats.schema.dimensions import check_one_part
from rhale_stats.schema.features import (
    feature_names,
    feature_position,
    label_of,
    positions_of,
    units_of,
    with_units,
)
from rhale_stats.schema.kinds import ENSEMBLE
from rhale_stats.schema.validation import validated
from rhale_stats.schema.variables import EFFECT_VARIABLES


@validated
def plot_forest(
    effect: xr.Dataset,
    what: str = "average_effect",
    *,
    level: float = frame.LEVEL,
    ax: Axes | None = None,
) -> Axes:
    """Forest plot: one number per feature with its interval, the largest at the top.

    Parameters
    ----------
    effect : Dataset
        What `rhale`, `std_error` or `confint` returned; what `effect_sizes` returned; or what
        `bootstrap`, `bootstrap_refit`, `cross_effects` or `over_models` returned.
    what : str, default "average_effect"
        Name of a variable with one number per feature: ``average_effect``, ``importance``,
        ``aled``, ``heterogeneity_output``, ...
    level : float, default 0.95
        Confidence level. Intervals that ``effect`` already has are drawn if they have this level.
    ax : Axes, optional
        By default that of a new figure.

    %(Axes returned; raises)s
    ValueError
        ``what`` is not in ``effect``, does not have one number per feature, or has no interval of
        this level; ``level`` outside (0, 1).

    Notes
    -----
    Intervals are those of `confint`: those in ``effect`` if they have this level, otherwise new
    ones. Where they hold the parameters of the model they are light, and dark within them the
    interval of the rows alone. From replicates they are quantiles over all chains, and the estimate
    is the median; faint marks below are the medians of the single chains, which agree if there are
    enough replicates. Replicates of a size that cannot be negative are biased upwards
    (`effect_sizes` gives corrected intervals).

    Features are sorted by absolute value. Effects per unit of a feature can be compared only if the
    features have the same unit; different units are printed beside the names. Features without a
    value are at the bottom: constant features and, for average effects, features whose levels have
    no order of their own.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> panel = rs.plots.forest(rs.rhale(lambda X: 2 * X[:, 0] + 4 * X[:, 0] * X[:, 1], X))
    >>> [label.get_text() for label in panel.get_yticklabels()]
    ['x0', 'x1']
    """
    if ENSEMBLE.holds(effect):
        effect = one_number(effect, what, level)
    forest = forest_data(effect, what, level)
    with frame.one_panel(ax, (6.0, 1.3 + 0.32 * len(forest.order))) as panel:
        null = effect.coords.get("null", xr.zeros_like(forest.variable))
        _draw_forest(panel, forest, level, null=float((null == 1).all()))
        _label(panel, effect, forest)
    return panel


def _label(panel: Axes, effect: xr.Dataset, forest: ForestData) -> None:
    """Names of the features, and below them what the numbers are; units beside what has one."""
    what, about = str(forest.variable.name), forest.variable.attrs
    _, long_name, template = EFFECT_VARIABLES.get(what, ((), what, ""))
    axis_label, template = str(about.get("long_name", long_name)), str(about.get("units", template))
    features, output_units = feature_names(effect), str(effect.attrs.get("output_units", ""))
    names = [label_of(effect, name) for name in features]
    units = [_filled(template, output_units, units_of(effect, name)) for name in features]
    if len(set(units)) == 1:
        axis_label = with_units(axis_label, units[0])
    else:
        names = [with_units(name, unit) for name, unit in zip(names, units, strict=True)]
    wrapped = (in_lines(names[number], frame.LABEL_LENGTH) for number in forest.order)
    labels = ["\n".join(lines) for lines in wrapped]
    panel.set_yticks(np.arange(len(names)), labels, parse_math=False)
    panel.set_ylim(len(names) - 0.4, -0.6)
    frame.name_axes(panel, textwrap.fill(axis_label, 2 * frame.LABEL_LENGTH))


def _filled(template: str, output_units: str, feature_units: str) -> str:
    """Units from their description in the schema; empty where they are not known."""
    for part, unit in (("output units", output_units), ("feature unit", unit_word(feature_units))):
        if part in template:
            if not unit:
                return ""
            template = template.replace(part, unit)
    return "" if template == "1" else template


def _draw_forest(panel: Axes, forest: ForestData, level: float, null: float = 0.0) -> None:
    place = np.arange(len(forest.order), dtype=np.float64)
    panel.axvline(null, color=frame.REFERENCE, linewidth=0.6, zorder=0.5, gid=frame.OURS)
    source, percent = frame.source_suffix(forest.source), f"{100 * level:g} %"
    whole = frame.UNCERTAINTY if forest.rows is None else frame.UNCERTAINTY_LIGHT
    for ends, colour, zorder, text in (
        (forest.interval, whole, 2.0, f"{frame.EACH}\n{forest.method}{source}"),
        (forest.rows, frame.UNCERTAINTY, 2.1, f"{frame.ROWS_EACH}\n{forest.method}{frame.GIVEN}"),
    ):
        if ends is not None:
            # The interval need not contain the estimate.
            middle, half = ends.mean(axis=0), np.diff(ends, axis=0)[0] / 2
            how: dict[str, Any] = {"xerr": half, "ecolor": colour, "zorder": zorder}
            frame.draw_whiskers(panel, middle, place, None, 2.2, label=f"{percent} {text}", **how)
    label = frame.ESTIMATE
    if forest.chains is not None:
        label, below = frame.REPLICATES, np.repeat(place + 0.25, len(forest.chains))
        how = {"color": frame.REFERENCE, "markersize": 5, "zorder": 1, "label": frame.CHAIN}
        panel.plot(forest.chains.T.ravel(), below, "|", **how)
    how = {"color": frame.AVERAGE, "markersize": 4, "zorder": 3, "label": label}
    panel.plot(forest.point, place, "o", **how)
    for number in np.flatnonzero(np.isnan(forest.point)):
        text = frame.UNORDERED if forest.unordered[number] else frame.NO_VALUE
        frame.beside(panel, text, 0.5, place[number], ha="center", color="0.4")


DRAWN = ("feature", "difference", "difference_ci", "difference_band", "grid_value", "p_value")


@validated
def plot_compare(comparison: xr.Dataset, feature: str | int, ax: Axes | None = None) -> Axes:
    """Difference of two curves with its pointwise interval, its band and its p-value.

    Parameters
    ----------
    comparison : Dataset
        What `compare` returned.
    %(one feature in one panel)s
    ValueError
        ``comparison`` is not a difference of curves.

    Notes
    -----
    Dashed lines are pointwise intervals, thin lines a simultaneous band. Where zero is outside the
    band, the curves differ. Between the points of the comparison the lines are straight; in linear
    bins the error is one sixteenth of the deviation of the difference from the chord of the bin.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> effects = []
    >>> for seed in (2, 3):
    ...     X = np.random.default_rng(seed).uniform(-1, 1, (500, 2))
    ...     local = rs.local_effects(lambda X: 2 * X[:, 0] + 4 * X[:, 0] * X[:, 1], X)
    ...     effects.append(rs.rhale(local, bins=rs.EqualWidthBins(5)))
    >>> rs.plots.compare(rs.compare(*effects, rng=0), "x0").texts[0].get_text()
    'no difference between the curves: p = 0.85, adjusted (holm) 1.00'
    """
    check_dataset(comparison, "comparison", "compare(a, b)")
    if "edge_a" in comparison.dims:
        raise ValueError(
            "comparison must be of curves here; this one is of two surfaces. Draw it with "
            "plots.surface(comparison)."
        )
    check_variables(comparison, "comparison", DRAWN, "compare(a, b)")
    check_one_part(comparison, "comparison")
    row = comparison.isel(feature=feature_position(comparison, feature))
    row = row.isel(grid=row["grid_value"].notnull().values)
    with frame.one_panel(ax, (7.0, 3.6)) as panel:
        frame.name_feature(panel, comparison, str(row["feature"].values))
        frame.name_axes(panel, y=frame.output_label(comparison, ": a less b"))
        if row.sizes["grid"]:
            _draw_difference(panel, row)
        else:
            frame.say_empty([panel], frame.NO_RANGE)
    return panel


def _draw_difference(panel: Axes, row: xr.Dataset) -> None:
    x, difference = row["grid_value"].values, row["difference"].values
    frame.draw_zero(panel, linewidth=0.8)
    line: dict[str, Any] = {"color": frame.AVERAGE, "linewidth": 1.4, "zorder": 3}
    panel.plot(x, difference, label=frame.DIFFERENCE, **line)
    interval, band = row["difference_ci"], row["difference_band"]
    pointwise = curve.Ends(curve.ends_of(interval), curve.interval_label(interval))
    text = curve.interval_label(band, frame.CURVE_BAND)
    simultaneous = curve.Ends(curve.ends_of(band), text)
    curve.draw_uncertainty(panel, x, pointwise, simultaneous)
    panel.margins(x=0.02)
    if interval.attrs.get("ci_kind", "confidence") != "confidence":
        return  # draws and models have no p-value
    null = row.attrs.get("null", "no difference between the curves")
    text = f"{null}: p {frame.pvalue_text(float(row['p_value']))}"
    adjust = str(row.attrs.get("adjust", "none"))
    if adjust != "none" and "p_value_adjusted" in row:
        adjusted = frame.pvalue_text(float(row["p_value_adjusted"])).lstrip("= ")
        text += f", adjusted ({adjust}) {adjusted}"
    frame.note(panel, text)


# Features of a figure: a line each, or a panel each.
MAX_LINES, MAX_PANELS = 20, 12
# Labels of the marks.
IN_DATA, IN_MODEL = "in the data", "in the model"
# What stands beside a line in place of what rows differ by.
ROWS_DIFFER = {
    **dict.fromkeys(("hardly", "?"), ""),
    "yes": "rows differ",
    "model only": "rows differ in the model only",
}


@validated
def plot_summary(
    tree: xr.DataTree, ax: Axes | Sequence[Axes] | NDArray[np.object_] | None = None
) -> Axes | NDArray[np.object_]:
    r"""How far each feature moves the outcome and the model between its usual values.

    One line a feature, the largest first. A dot with its interval is the change of the outcome, as
    far as it is in the data; a circle is the change of the model's average prediction. Where the
    two are apart, the model has not learnt what the data hold, or more than that. In the grey
    stretch a change hardly matters. Beside the lines: by what rows differ.

    Parameters
    ----------
    tree : DataTree
        What `explain` returned.
    ax : Axes, or sequence of them, optional
        By default those of a new figure; of several outputs one each.

    Returns
    -------
    Axes, or ndarray of them

    Raises
    ------
    TypeError, ValueError
        ``tree`` is no explanation, or ``ax`` is not an Axes.

    Notes
    -----
    Changes are between two values of the feature, those with 10 % and 90 % of the rows below them,
    with the other columns held fixed; of a feature with levels, between the lowest and the highest.
    All are in units of the output, so that they compare. Intervals in the data hold the sampling of
    the rows and the learner (math [114]); without outcomes, those of the model hold the rows. Of
    more than 20 features a line names the others.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 3))
    >>> tree = rs.explain(lambda X: 2 * X[:, 0] + X[:, 1] * X[:, 2], X, rng=0, progress=False)
    >>> panel = rs.plots.summary(tree)
    >>> panel.get_yticklabels()[0].get_text().split("\n")[0]
    'x0'
    """
    if several := sentences.outputs_in(tree):
        most = max(sentences.answers_in(part).sizes["feature"] for part in several.values())
        size: dict[str, Any] = {"panel": (5.4, _height(min(most, MAX_LINES))), "sharey": False}
        made = partial(frame.grid_of_panels, len(several), 2, **size)
        with frame.several_panels(ax, len(several), "one an output", made, legend=False) as panels:
            for panel, (label, part) in zip(panels, several.items(), strict=True):
                plot_summary(part, ax=panel)
                frame.name_axes(panel, title=label, loc="left")
        return panels
    answers = sentences.answers_in(tree)
    lines, delta = lines_of(answers), sentences.threshold_of(answers.attrs)
    shown = lines[:MAX_LINES]
    with frame.one_panel(ax, (7.2, _height(len(shown)))) as panel:
        grey: dict[str, Any] = {"color": frame.REFERENCE, "gid": frame.OURS}
        panel.axvspan(-delta, delta, alpha=0.25, linewidth=0, zorder=0.2, **grey)
        panel.axvline(0, linewidth=0.6, zorder=0.5, **grey)
        _draw_changes(panel, shown, f"{100 * float(tree.attrs['level']):g} % interval")
        panel.set_yticks(np.arange(len(shown)), [_named(line) for line in shown], parse_math=False)
        panel.set_ylim(len(shown) - 0.4, -0.6)
        for place, cell in enumerate(map(rows_cell, shown)):
            how: dict[str, Any] = {"color": frame.HETEROGENEITY, "parse_math": False}
            frame.beside(panel, ROWS_DIFFER.get(cell, f"rows differ {cell}"), 1.02, place, **how)
        output = str(answers.attrs.get("output_name", "output"))
        about = f"change of {output} between the two values"
        texts = [with_units(about, sentences.units_of(answers.attrs).strip())]
        if others := lines[MAX_LINES:]:
            texts.append(
                f"({len(others)} smaller ones are not drawn: {listed(list(map(_short, others)))})"
            )
        below = [textwrap.fill(text, 2 * frame.LABEL_LENGTH) for text in texts]
        frame.name_axes(panel, "\n".join(below))
    return panel


def _short(line: AnswerLine) -> str:
    return cut_within(line.label, frame.LABEL_LENGTH)


def _named(line: AnswerLine) -> str:
    """A feature with the two values between which it moves."""
    name = _short(line)
    return f"{name}\n{line.usual_from} → {line.usual_to}" if line.usual_to else name


def _height(n_lines: int) -> float:
    return 1.5 + 0.36 * n_lines


def _draw_changes(panel: Axes, lines: Sequence[AnswerLine], interval: str) -> None:
    """Changes in the data with their intervals, and in the model; of the model alone, its own."""
    place = np.arange(len(lines), dtype=np.float64)
    model = np.array([line.usual_change for line in lines])
    model = np.where(np.isfinite(model), model, [line.range for line in lines])
    data = np.array([line.in_data_change for line in lines])
    has_data = bool(np.isfinite(data).any())
    values, name = (data, "in_data_ci") if has_data else (model, "usual_change_ci")
    ends = np.array([getattr(line, name) for line in lines])
    for x, label, fill in ((model, IN_MODEL, "white"), (data, IN_DATA, frame.AVERAGE)):
        if np.isfinite(x).any():
            how: dict[str, Any] = {"color": frame.AVERAGE, "markerfacecolor": fill, "markersize": 5}
            panel.plot(x, place, "o", label=label, zorder=3, **how)
    reach = np.stack([values - ends[:, 0], ends[:, 1] - values])
    reach = np.where(np.isfinite(reach), np.maximum(reach, 0.0), 0.0)
    frame.draw_whiskers(panel, values, place, None, 2.2, xerr=reach, zorder=2, label=interval)


@validated
def plot_outcome(
    tree: xr.DataTree,
    features: str | int | Sequence[str | int] | None = None,
    *,
    n_columns: int = 3,
    ax: Axes | Sequence[Axes] | NDArray[np.object_] | None = None,
) -> NDArray[np.object_]:
    """Observed and predicted outcomes along features: where the model is off.

    Dots are means of the outcomes in places of about equal numbers of rows, with the interval of
    observed less predicted; lines are means of the predictions.

    Parameters
    ----------
    tree : DataTree
        What `explain` returned, given the outcomes ``y``.
    features : name, number, or sequence of them, optional
        Features to draw, in this order. By default those that move the output most, at most 12.
    %(n_columns)s
    ax : Axes, or sequence of them, optional
        One a feature. By default those of a new figure.

    Returns
    -------
    ndarray of shape (n_features,)
        The Axes.

    Raises
    ------
    %(unknown feature)s
    TypeError, ValueError
        ``tree`` is no explanation with outcomes; another number of Axes.

    Notes
    -----
    Outcomes are not averages of the curve: they hold what other features do at these rows. Compare
    dots with the line, not with `plots.effect`.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (500, 2))
    >>> y = 2 * X[:, 0] + rng.normal(size=500)
    >>> tree = rs.explain(lambda X: 2 * X[:, 0], X, y, features=[0, 1], rng=0, progress=False)
    >>> panels = rs.plots.outcome(tree)
    >>> [panel.get_title() for panel in panels]
    ['x0', 'x1']
    """
    answers = sentences.answers_in(tree)
    if "outcome" not in tree.children:
        raise ValueError("tree must hold outcomes: explain(model, X, y). Got one without y.")
    every = feature_names(answers)
    numbers = positions_of(every[:MAX_PANELS] if features is None else features, every)
    names = [every[number] for number in numbers]
    if not names:
        raise ValueError("features must name at least one feature; got none.")
    outcome, effect = tree["outcome"].to_dataset(), tree["effect"].to_dataset()
    contents = []
    for name, number in zip(names, numbers, strict=True):
        units = units_of(effect, name)
        draw = partial(_draw_outcome, places=outcome.sel(feature=name))
        x = with_units("", units).strip()
        contents.append(frame.Content(draw, str(answers["label"].values[number]), x, units))
    panels = frame.draw_grid(contents, n_columns, ax, "one a feature")
    frame.name_axes(panels[0], y=output_text(answers))
    return panels


def _draw_outcome(panel: Axes, places: xr.Dataset) -> None:
    """One feature: places on its axis, or its levels."""
    present = np.isfinite(places["place_left"].values)
    places = places.isel(place=present)
    levels = places["place_level"].values
    x = (places["place_left"].values + places["place_right"].values) / 2
    observed, predicted = places["observed"].values, places["predicted"].values
    low, high = places["residual_ci"].transpose("ci_bound", "place").values
    residual = places["residual"].values
    reach = np.nan_to_num([residual - low, high - residual])
    line: dict[str, Any] = {"color": frame.HETEROGENEITY, "linewidth": 1.4, "markersize": 6}
    line |= {"alpha": 0.8, "zorder": 2, "gid": frame.OURS, "label": frame.PREDICTED}
    panel.plot(x, predicted, "D" if levels.any() else "-", **line)
    dots: dict[str, Any] = {"color": frame.AVERAGE, "markersize": 3.5, "label": frame.OBSERVED}
    dots |= {"ecolor": frame.UNCERTAINTY, "elinewidth": 1.0, "zorder": 3}
    panel.errorbar(x, observed, yerr=reach, fmt="o", **dots)
    if levels.any():
        panel.set_xticks(x, levels, parse_math=False)
        panel.margins(x=0.15)
