"""Pictures of an explanation, and of several outputs of one model."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from numpy.typing import NDArray

from rhale_stats.answers.numbers import AnswerLine, lines_of, listed
from rhale_stats.answers.printed import rows_cell
from rhale_stats.answers.sentences import answers_in, outputs_in, threshold_of
from rhale_stats.answers.sentences import units_of as shown_units
from rhale_stats.arguments.checks import check_choice
from rhale_stats.drawing.canvas import (
    AVERAGE,
    HETEROGENEITY,
    LABEL_LENGTH,
    REFERENCE,
    UNCERTAINTY,
    as_array,
    date_axis,
    entitle,
    feature_label,
    one_panel,
    output_label,
    several_panels,
)
from rhale_stats.drawing.curve import draw_curves
from rhale_stats.drawing.legend import OBSERVED, OURS, PREDICTED, draw_legend, grid_of_panels
from rhale_stats.drawing.profile import plot_profile_outputs
from rhale_stats.effects.intervals import with_own_intervals
from rhale_stats.profiles.data import check_profile
from rhale_stats.schema.checks import check_effect
from rhale_stats.schema.dimensions import OUTPUT
from rhale_stats.schema.feature_result import one_feature
from rhale_stats.schema.features import feature_names, feature_position, units_of, with_units
from rhale_stats.schema.kinds import PROFILE
from rhale_stats.schema.validation import validated


@validated
def plot_outputs(
    effect: xr.Dataset,
    feature: str | int,
    *,
    n_columns: int = 3,
    ax: Axes | Sequence[Axes] | NDArray[np.object_] | None = None,
    spread: str = "none",
) -> NDArray[np.object_]:
    """Effect of one feature on every output of a model: one panel per output, with one y scale.

    Parameters
    ----------
    effect : Dataset
        What `rhale`, `ale`, `pdp`, `ice`, `m_plot` or `shap_dependence` returned, or what
        `std_error`, `confint` or `confband` made from it, with the dimension ``output``.
    feature : str or int
        Name or number of the feature.
    n_columns : int, default 3
        Number of panels per line of a new figure.
    ax : Axes, or sequence of them, optional
        One Axes per output. By default those of a new figure.
    spread : {"none", "band"}, default "none"
        Whether to draw the heterogeneity as a band around the curves, as in the paper.

    Returns
    -------
    ndarray of shape (n_outputs,)
        The Axes, one per output.

    Raises
    ------
    KeyError
        Unknown feature.
    TypeError
        ``effect`` is another kind of object, or ``ax`` is not Axes.
    ValueError
        ``effect`` has one output only; wrong number of Axes; ``n_columns`` below 1.

    Notes
    -----
    Every panel is drawn like the upper panel of `plots.effect`, or like `plots.profile`; the notes
    there explain it.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    >>> def both(X):
    ...     return np.column_stack([X[:, 0] ** 2, X[:, 0] * X[:, 1]])
    >>> panels = rs.plots.outputs(rs.rhale(rs.local_effects(both, X)), "x0")
    >>> [panel.get_title() for panel in panels]
    ['output 0', 'output 1']
    """
    check_choice("spread", spread, ("none", "band"))
    if OUTPUT not in getattr(effect, "dims", ()):
        result = check_profile(effect) if PROFILE.holds(effect) else check_effect(effect)
        raise ValueError(
            f"effect must have the dimension output, of several classes or targets; this one is "
            f"of {result.attrs.get('output_name', 'one output')!r} alone. Use plots.effect."
        )
    if PROFILE.holds(effect):
        return plot_profile_outputs(effect, feature, n_columns=n_columns, ax=ax)
    parts = [
        with_own_intervals(check_effect(effect.isel({OUTPUT: number})))
        for number in range(effect.sizes[OUTPUT])
    ]
    rows = [one_feature(part, feature) for part in parts]
    new_figure = ax is None
    with several_panels(
        "ax", ax, len(rows), "one an output", lambda: grid_of_panels(len(rows), n_columns)
    ) as panels:
        name = feature_names(effect)[feature_position(effect, feature)]
        for panel, part in zip(panels, parts, strict=True):
            entitle(panel, str(part.attrs["output_name"]))
            panel.set_xlabel(feature_label(effect, name), parse_math=False)
            date_axis(panel, units_of(effect, name))
            if not new_figure:
                panel.set_ylabel(output_label(part), parse_math=False)
        draw_curves(panels, rows, "effect" if new_figure else "", spread)
        draw_legend(panels)
    return as_array(panels)


# --- pictures of an explanation -------------------------------------------------------------------


# Features of a figure: a line each, or a panel each.
MAX_LINES, MAX_PANELS = 20, 12
# Labels of the marks.
IN_DATA, IN_MODEL = "in the data", "in the model"


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
    >>> found = rs.explain(lambda X: 2 * X[:, 0] + X[:, 1] * X[:, 2], X, rng=0, progress=False)
    >>> panel = rs.plots.summary(found)
    >>> panel.get_yticklabels()[0].get_text().split("\n")[0]
    'x0'
    """
    if several := outputs_in(tree):
        most = max(answers_in(part).sizes["feature"] for part in several.values())
        height = _height(min(most, MAX_LINES))
        with several_panels(
            *("ax", ax, len(several), "one an output"),
            lambda: grid_of_panels(len(several), 2, panel=(5.4, height), sharey=False),
        ) as panels:
            for panel, (label, part) in zip(panels, several.items(), strict=True):
                plot_summary(part, ax=panel)
                panel.set_title(label, loc="left", parse_math=False)
        return as_array(panels)
    answers = answers_in(tree)
    lines, delta = lines_of(answers), threshold_of(answers.attrs)
    shown = lines[:MAX_LINES]
    with one_panel(ax, (7.2, _height(len(shown)))) as panel:
        panel.axvspan(-delta, delta, color=REFERENCE, alpha=0.25, linewidth=0, zorder=0.2, gid=OURS)
        panel.axvline(0, color=REFERENCE, linewidth=0.6, zorder=0.5, gid=OURS)
        _draw_changes(panel, shown, f"{100 * float(tree.attrs['level']):g} % interval")
        panel.set_yticks(np.arange(len(shown)), [_named(line) for line in shown], parse_math=False)
        panel.set_ylim(len(shown) - 0.4, -0.6)
        for place, line in enumerate(shown):
            panel.annotate(
                _rows_text(line),
                (1.02, place),
                xycoords=("axes fraction", "data"),
                va="center",
                fontsize="small",
                color=HETEROGENEITY,
                parse_math=False,
            )
        output = str(answers.attrs.get("output_name", "output"))
        about = f"change of {output} between the two values"
        units = shown_units(answers.attrs).strip()
        texts = [with_units(about, units)]
        if others := lines[MAX_LINES:]:
            names = [textwrap.shorten(line.label, LABEL_LENGTH, placeholder="…") for line in others]
            texts.append(f"({len(others)} smaller ones are not drawn: {listed(names)})")
        below = "\n".join(textwrap.fill(text, 2 * LABEL_LENGTH) for text in texts)
        panel.set_xlabel(below, parse_math=False)
        draw_legend([panel])
    return panel


def _named(line: AnswerLine) -> str:
    """A feature with the two values between which it moves."""
    name = textwrap.shorten(line.label, LABEL_LENGTH, placeholder="…")
    return f"{name}\n{line.usual_from} → {line.usual_to}" if line.usual_to else name


def _rows_text(line: AnswerLine) -> str:
    """By what the effects of rows differ, in words; empty where they hardly do."""
    cell = rows_cell(line)
    if cell in ("hardly", "?"):
        return ""
    words = {"yes": "", "model only": " in the model only"}
    return f"rows differ{words.get(cell, f' {cell}')}"


def _height(n_lines: int) -> float:
    return 1.5 + 0.36 * n_lines


def _draw_changes(panel: Axes, lines: Sequence[AnswerLine], interval: str) -> None:
    """Changes in the data with their intervals, and in the model; of the model alone, its own."""
    place = np.arange(len(lines), dtype=np.float64)
    model = np.array([_first_known(line.usual_change, line.range) for line in lines])
    data = np.array([line.in_data_change for line in lines])
    has_data = bool(np.isfinite(data).any())
    values, name = (data, "in_data_ci") if has_data else (model, "usual_change_ci")
    ends = np.array([getattr(line, name) for line in lines])
    for x, label, fill in ((model, IN_MODEL, "white"), (data, IN_DATA, AVERAGE)):
        if np.isfinite(x).any():
            how: dict[str, Any] = {"color": AVERAGE, "markerfacecolor": fill, "markersize": 5}
            panel.plot(x, place, "o", label=label, zorder=3, **how)
    reach = np.stack([values - ends[:, 0], ends[:, 1] - values])
    reach = np.where(np.isfinite(reach), np.maximum(reach, 0.0), 0.0)
    panel.errorbar(
        values, place, xerr=reach, fmt="none", ecolor=UNCERTAINTY, elinewidth=2.2, zorder=2,
        label=interval,
    )  # fmt: skip


def _first_known(*values: float) -> float:
    return next((value for value in values if np.isfinite(value)), np.nan)


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
    n_columns : int, default 3
        Panels per line of a new figure.
    ax : Axes, or sequence of them, optional
        One a feature. By default those of a new figure.

    Returns
    -------
    ndarray of shape (n_features,)
        The Axes.

    Raises
    ------
    KeyError
        Unknown feature.
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
    >>> found = rs.explain(lambda X: 2 * X[:, 0], X, y, features=[0, 1], rng=0, progress=False)
    >>> panels = rs.plots.outcome(found)
    >>> [panel.get_title() for panel in panels]
    ['x0', 'x1']
    """
    answers = answers_in(tree)
    if "outcome" not in tree.children:
        raise ValueError("tree must hold outcomes: explain(model, X, y). Got one without y.")
    if features is None:
        features = [str(feature) for feature in answers["feature"].values[:MAX_PANELS]]
    selection: Any = features
    chosen = [selection] if np.ndim(selection) == 0 else list(selection)
    numbers = [feature_position(answers, feature) for feature in chosen]
    names = [str(answers["feature"].values[number]) for number in numbers]
    if not names:
        raise ValueError("features must name at least one feature; got none.")
    outcome, effect = tree["outcome"].to_dataset(), tree["effect"].to_dataset()
    with several_panels(
        "ax", ax, len(names), "one a feature", lambda: grid_of_panels(len(names), n_columns)
    ) as panels:
        for panel, name, number in zip(panels, names, numbers, strict=True):
            entitle(panel, str(answers["label"].values[number]))
            units = units_of(effect, name)
            panel.set_xlabel(with_units("", units).strip(), parse_math=False)
            _draw_outcome(panel, outcome.sel(feature=name))
            date_axis(panel, units)
        text = with_units(str(answers.attrs["output_name"]), str(answers.attrs["output_units"]))
        panels[0].set_ylabel(text, parse_math=False)
        draw_legend(panels)
    return as_array(panels)


def _draw_outcome(panel: Axes, places: xr.Dataset) -> None:
    """One feature: places on its axis, or its levels."""
    present = np.isfinite(places["place_left"].values)
    places = places.isel(place=present)
    levels = places["place_level"].values
    x = (places["place_left"].values + places["place_right"].values) / 2
    observed, predicted = places["observed"].values, places["predicted"].values
    low, high = places["residual_ci"].transpose("ci_bound", "place").values
    half = np.nan_to_num((high - low) / 2)
    style = "D" if levels.any() else "-"
    panel.plot(
        x, predicted, style, color=HETEROGENEITY, linewidth=1.4, markersize=6, alpha=0.8,
        label=PREDICTED, gid=OURS, zorder=2,
    )  # fmt: skip
    panel.errorbar(
        x, observed, yerr=half, fmt="o", color=AVERAGE, ecolor=UNCERTAINTY, markersize=3.5,
        elinewidth=1.0, label=OBSERVED, zorder=3,
    )  # fmt: skip
    if levels.any():
        panel.set_xticks(x, levels, parse_math=False)
        panel.margins(x=0.15)
