"""Pictures of an explanation, and of several outputs of one model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.transforms import Bbox
from numpy.typing import NDArray

from rhale_stats.answers.numbers import AnswerLine, lines_of
from rhale_stats.answers.sentences import answers_in, outputs_in
from rhale_stats.arguments.checks import check_choice
from rhale_stats.drawing.canvas import (
    AVERAGE,
    HETEROGENEITY,
    REFERENCE,
    UNCERTAINTY,
    as_array,
    date_axis,
    feature_label,
    one_panel,
    output_label,
    several_panels,
    upright,
)
from rhale_stats.drawing.curve import draw_curves
from rhale_stats.drawing.legend import OBSERVED, OURS, PREDICTED, draw_legend, grid_of_panels, note
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
            panel.set_title(str(part.attrs["output_name"]), parse_math=False)
            panel.set_xlabel(feature_label(effect, name), parse_math=False)
            date_axis(panel, units_of(effect, name))
            if not new_figure:
                panel.set_ylabel(output_label(part), parse_math=False)
        draw_curves(panels, rows, "effect" if new_figure else "", spread)
        draw_legend(panels)
    return as_array(panels)


# --- pictures of an explanation -------------------------------------------------------------------


# Names are written beside so many points, those that move the output most; features in a figure.
MAX_NAMES, MAX_PANELS = 14, 12
# Half the width of a point, in pixels.
DOT = 3.0


@validated
def plot_summary(
    tree: xr.DataTree, ax: Axes | Sequence[Axes] | NDArray[np.object_] | None = None
) -> Axes | NDArray[np.object_]:
    """Importance against the spread between rows, one point a feature: where to look first.

    Far to the right are features whose average curve moves the output, far up those that act
    differently from row to row. A feature that is up and left is hidden by averages. Within the
    grey lines a feature hardly matters.

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
    Both sizes are standard deviations in units of the output (math [32], [108]), with the intervals
    of `explain`. At most 14 names are written, of those that move the output most.

    References
    ----------
    The plot of importance against heterogeneity of `effector`, with intervals.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 3))
    >>> found = rs.explain(lambda X: 2 * X[:, 0] + X[:, 1] * X[:, 2], X, rng=0, progress=False)
    >>> panel = rs.plots.summary(found)
    >>> [text.get_text() for text in panel.texts][1:2]
    ['x0']
    """
    if several := outputs_in(tree):
        size = (3.8, 3.4)
        with several_panels(
            *("ax", ax, len(several), "one an output"),
            lambda: grid_of_panels(len(several), 3, panel=size, sharey=False),
        ) as panels:
            for panel, (label, part) in zip(panels, several.items(), strict=True):
                plot_summary(part, ax=panel)
                panel.set_title(label, loc="left", parse_math=False)
        return as_array(panels)
    answers = answers_in(tree)
    lines, delta = lines_of(answers), float(answers.attrs["delta"])
    with one_panel(ax, (6.0, 4.6)) as panel:
        for line in (panel.axvline, panel.axhline):
            line(delta, color=REFERENCE, linewidth=0.8, zorder=0.5, gid=OURS)
        x = np.array([answer.importance for answer in lines])
        y = np.array([answer.row_spread for answer in lines])
        panel.errorbar(
            x,
            y,
            xerr=_reach(lines, "importance"),
            yerr=_reach(lines, "row_spread"),
            fmt="none",
            ecolor=UNCERTAINTY,
            elinewidth=1.0,
            zorder=2,
        )
        panel.plot(x, y, "o", color=AVERAGE, markersize=5, zorder=3)
        panel.set_xlim(left=0)
        panel.set_ylim(bottom=0)
        units = str(answers.attrs.get("output_units", ""))
        panel.set_xlabel(with_units("on average: SD of the curve over the rows", units))
        panel.set_ylabel(upright("single rows: SD of their curves", units))
        note(panel, f"grey lines: {float(tree.attrs['matters']):.0%} of the SD of the predictions")
        _write_names(panel, lines, x, y)
    return panel


def _reach(lines: list[AnswerLine], name: str) -> NDArray[np.float64]:
    """How far intervals reach below and above; nothing where an end is not known."""
    value = np.array([getattr(line, name) for line in lines])
    low, high = np.array([getattr(line, f"{name}_ci") for line in lines]).T
    reach = np.stack([value - low, high - value])
    return np.where(np.isfinite(reach), np.maximum(reach, 0.0), 0.0)


def _write_names(panel: Axes, lines: list[AnswerLine], x: Any, y: Any) -> None:
    """Names beside their points, where they cover no other name."""
    figure = panel.figure.figure  # the whole one, where the panel is in a subfigure
    figure.draw_without_rendering()
    # Neither other names nor the points.
    places = panel.transData.transform(np.column_stack([x, y]))
    boxes: list[Any] = [Bbox([place - DOT, place + DOT]) for place in places]
    sides = ((5, 4, "left", "bottom"), (5, -4, "left", "top"), (-5, 4, "right", "bottom"))
    for line, at_x, at_y in list(zip(lines, x, y, strict=True))[:MAX_NAMES]:
        for right, up, across, along in (*sides, (-5, -4, "right", "top")):
            text = panel.annotate(
                line.label,
                (at_x, at_y),
                (right, up),
                textcoords="offset points",
                ha=across,
                va=along,
                fontsize="small",
                parse_math=False,
            )
            box = text.get_window_extent()
            inside = panel.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1
            if inside and not any(box.overlaps(other) for other in boxes):
                boxes.append(box)
                break
            text.remove()


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
            panel.set_title(str(answers["label"].values[number]), parse_math=False)
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
