"""The picture of a result of any kind, or of several results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from rhale_stats.answers.sentences import outputs_in
from rhale_stats.arguments.checks import check_percentiles
from rhale_stats.arguments.words import shown
from rhale_stats.drawing import frame
from rhale_stats.drawing.frame import GivenAxes, Panels
from rhale_stats.drawing.profile import keep_to_rows_of
from rhale_stats.margins.tables import is_compared
from rhale_stats.schema import kinds
from rhale_stats.schema.calls import public
from rhale_stats.schema.checks import check_local
from rhale_stats.schema.dimensions import OUTPUT, REGION
from rhale_stats.schema.features import feature_names, feature_position
from rhale_stats.schema.validation import validated

# Kind of result -> the functions that draw all of it, and one feature of it; empty where there is
# none.
PICTURES: Mapping[kinds.Kind, tuple[str, str]] = {
    **dict.fromkeys((kinds.EFFECT, kinds.ENSEMBLE), ("plots.effects", "plots.effect")),
    kinds.PROFILE: ("plots.effects", "plots.profile"),
    kinds.EXPLANATION: ("plots.summary", "plots.effect"),
    **dict.fromkeys((kinds.SURFACE, kinds.SURFACE_DIFFERENCE), ("plots.surface", "")),
    kinds.H_STATISTICS: ("plots.h_statistics", ""),
    kinds.INTERACTIONS: ("plots.interactions", ""),
    kinds.TREE: ("plots.tree", ""),
    kinds.TEST: ("plots.forest", "plots.compare"),
    kinds.REPLICATES: ("plots.forest", "plots.edges"),
    **dict.fromkeys((kinds.SIZES, kinds.AVERAGES), ("plots.forest", "")),
}
# What the forest plot of a kind is of; of others the average effects.
FOREST = {kinds.TEST: "size", kinds.SIZES: "importance", kinds.AVERAGES: "average"}
CURVES = (kinds.EFFECT, kinds.PROFILE, kinds.ENSEMBLE)


@validated
def plot(
    result: Any,
    features: str | int | Sequence[str | int] | None = None,
    local: xr.Dataset | None = None,
    ax: Any = None,
    *,
    percentiles: tuple[float, float] | None = None,
    **options: Any,
) -> Any:
    """Picture of a result: of all of its features, of some, or of one.

    Parameters
    ----------
    result : Dataset, Explanation, or several Datasets
        What any function of the package returned. Effects are drawn by `plots.effects`, one feature
        by `plots.effect` (of profiles `plots.profile`), those of groups of rows (``by=``) by
        `plots.curves`, several outputs by `plots.outputs`, others by the function of their name;
        replicates, sizes, averages and tests by `plots.forest`. Local effects are drawn as their
        effects by `rhale`. A list of effects and profiles has a line of panels for each, with the
        features side by side; a mapping of names to them has their curves in the same panels
        (`plots.curves`).
    features : name, number, or sequence of them, optional
        One feature, or some of them. By default all.
    local, **options
        As in the function that draws.
    ax : Axes, or sequence of them, optional
        As in the function that draws. In a single Axes several panels are drawn within its bounds.
    percentiles : pair of float, optional
        Between which percentiles of the rows the axes of features reach, from 0 to 100, or shares
        of the rows as (0.05, 0.95). By default those of effects reach over the inner 98 %, and
        others over all that is known.

    Returns
    -------
    Axes, or ndarray of them
        As the function that draws returns them; of a list (n_results, n_features).

    Raises
    ------
    ValueError
        Results of which there is no picture, or none of one feature.
    TypeError
        ``result`` is no result of this package; options that the function does not have.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> model = lambda X: 2 * X[:, 0] + 4 * X[:, 0] * X[:, 1]
    >>> effect = rs.rhale(model, X)
    >>> [panel.get_title() for panel in rs.plot(effect)]
    ['x0', 'x1']
    >>> len(rs.plot(effect, "x0"))
    3
    >>> rs.plot([rs.pdp(model, X), rs.ice(model, X), effect], ["x0", "x1"]).shape
    (3, 2)
    """
    named = {key: value for key, value in (("local", local), ("ax", ax)) if value is not None}
    if isinstance(result, Mapping) and not isinstance(result, xr.Dataset | xr.DataTree):
        panels = public("plots.curves")(result, features, **named, **options)
        return _within(panels, list(result.values()), percentiles)
    if isinstance(result, list | tuple) and len(result):
        return _lines(result, features, ax, percentiles, options)
    kind = kinds.kind_of(result)
    if kind is None:
        raise TypeError(
            f"result must be what a function of rhale_stats returned, or a list of such results; "
            f"got {shown(result)}."
        )
    if kind is kinds.LOCAL:
        local, kind = result, kinds.EFFECT
        result = public("rhale")(local)
        named["local"] = local
    single = isinstance(features, str | int | np.integer)
    name, chosen = _picture(result, kind, features, single=single)
    if name != "plots.effect" and "local" in named:
        check_local(named["local"])
        del named["local"]  # rows are drawn of one feature only
    if name == "plots.forest":
        options = {"what": FOREST.get(kind, "average_effect"), **options}
    if kind is kinds.AVERAGES:
        result = _in_lines(public("confint")(result))
    if kind is kinds.TEST and name == "plots.forest" and "difference" in result:
        return _differences(result, ax, options)
    if name == "plots.forest" and options["what"] not in result:
        other = "plots.edges(result, feature)" if kind is kinds.REPLICATES else "tidy(result)"
        raise ValueError(
            f"result must have {options['what']!r} to be drawn; this one has no such estimates: "
            f"{other}."
        )
    if kind is kinds.EFFECT and name in PICTURES[kind] and percentiles is not None:
        options, percentiles = {"percentiles": percentiles, **options}, None
    panels = public(name)(result, **chosen, **named, **options)
    return _within(panels, [result], percentiles)


def _picture(
    result: Any, kind: kinds.Kind, features: Any, *, single: bool
) -> tuple[str, dict[str, Any]]:
    """The function that draws the features of a result, and what it is told of them."""
    whole, of_one = PICTURES.get(kind, ("", ""))
    if not whole:
        raise ValueError(f"result must be of a kind with a picture; got {kind.name}: tidy(result).")
    dims = getattr(result, "dims", ())
    if kind is kinds.EXPLANATION and single and outputs_in(result):
        return "plots.outputs", {"feature": features}
    if kind in CURVES and REGION in dims:
        return "plots.curves", {"features": features}
    if kind in CURVES and OUTPUT in dims:
        one_feature_at = ("plots.outputs", {"feature": features})
        return one_feature_at if single else ("plots.curves", {"features": features})
    if features is None:
        return whole, {}
    if not of_one:
        raise ValueError(f"features must be left out: the picture of {kind.name} is by {whole}.")
    if single:
        return of_one, {"feature": features}
    if kind not in (*CURVES, kinds.EXPLANATION):
        raise ValueError(f"features must be one feature for {kind.name}, as in plot(result, 'a').")
    return "plots.effects", {"features": features}


def _in_lines(averages: xr.Dataset) -> xr.Dataset:
    """Averages as features of a forest plot, also those of several groups of rows."""
    averages = averages.isel(term=is_compared(averages))
    if "by" not in averages.dims:
        return averages.rename(term="feature")
    by, terms = averages["by"].attrs["long_name"], averages["term"].values
    names = [f"{term}, {by} = {level}" for term in terms for level in averages["by"].values]
    lines = averages.drop_dims(["term_other", "by_other"]).drop_vars(["term", "by"])
    return lines.stack(feature=("term", "by"), create_index=False).assign_coords(feature=names)


def _differences(comparison: xr.Dataset, ax: GivenAxes, options: Mapping[str, Any]) -> Panels:
    """A comparison of curves: one panel a feature."""
    options = {name: value for name, value in options.items() if name != "what"}
    names, n_columns = feature_names(comparison), int(options.pop("n_columns", 2))
    made = partial(frame.grid_of_panels, len(names), n_columns, panel=(3.4, 2.6))
    with frame.several_panels(ax, len(names), "one a feature", made, legend=False) as panels:
        for number, (panel, name) in enumerate(zip(panels, names, strict=True)):
            public("plots.compare")(comparison, name, ax=panel, **options)
            for text in panel.texts:  # the hypothesis is the same in all panels
                text.set_text(text.get_text().rpartition("between the curves: ")[2])
            if number % n_columns:
                panel.set_ylabel("")
    return panels


def _lines(
    results: Sequence[Any],
    features: Any,
    ax: Any,
    percentiles: tuple[float, float] | None,
    options: Mapping[str, Any],
) -> Any:
    """Several results of the same features: a line of panels each."""
    for result in results:
        kind = kinds.kind_of(result)
        if kind not in CURVES or {OUTPUT, REGION} & {*result.dims}:
            raise TypeError(
                f"result must be a list of effects and profiles of one output; got "
                f"{kind.name if kind else shown(result)} among them. Draw it alone, or select an "
                f"output or a region."
            )
    names = features if features is not None else feature_names(results[0])
    names = [names] if isinstance(names, str | int | np.integer) else list(names)
    for result in results:
        for name in names:
            feature_position(result, name)
    shape = (len(results), len(names))
    size = (2.4 * len(names) + 0.6, 2.1 * len(results) + 0.6)
    n_panels, which = len(results) * len(names), "one a result and feature"
    made = partial(frame.new_panels, *shape, size)
    with frame.several_panels(ax, n_panels, which, made, legend=False) as flat:
        panels = np.reshape(flat, shape)
        for line, result in zip(panels, results, strict=True):
            single = "plots.profile" if kinds.PROFILE.holds(result) else "plots.effect"
            for panel, name in zip(line, names, strict=True):
                public(single)(result, name, ax=panel, **options)
                frame.name_axes(panel, frame.feature_label(result, name))
            _within(line, [result], percentiles, names)
        _label_lines(panels, [str(result.attrs.get("method", "")) for result in results])
    return panels


def _label_lines(panels: Panels, methods: Sequence[str]) -> None:
    """Names of the methods at the left, as papers write them; one scale a line, and one legend."""
    for line, method in zip(panels, methods, strict=True):
        title = "M-plot" if method == "m_plot" else method.replace("_", " ").upper()
        low, high = zip(*[panel.get_ylim() for panel in line], strict=True)
        for number, panel in enumerate(line):
            panel.set_ylim(min(low), max(high))
            panel.tick_params(labelleft=not number)
            frame.name_axes(panel, y="" if number else title, title="")
            if panel.get_legend() is not None:
                panel.get_legend().remove()
    for earlier in panels[0, 0].figure.legends:
        earlier.remove()
    frame.legend_as_drawn([*panels.flat], min(panels.shape[1], 3))


def _within(
    panels: Any,
    results: Sequence[Any],
    percentiles: tuple[float, float] | None,
    names: Sequence[Any] | None = None,
) -> Any:
    """Panels whose axes reach between percentiles of the rows of their feature."""
    if percentiles is None:
        return panels
    bounds = check_percentiles(percentiles)
    results = [
        result["effect"].to_dataset() if kinds.EXPLANATION.holds(result) else result
        for result in results
    ]
    curves = [result for result in results if kinds.kind_of(result) in CURVES[:2]]
    if not curves:
        raise ValueError(
            "percentiles must be left out but for effects and profiles, which have the axes of "
            "features."
        )
    each = [panels] if isinstance(panels, Axes) else list(np.ravel(panels))
    for number, panel in enumerate(each):
        label = " ".join((panel.get_title() or panel.get_xlabel()).split())
        for result in curves:
            features = feature_names(result)
            labelled = (name for name in features if label == name or label.startswith(f"{name} ["))
            name = next(labelled, None) if names is None else names[number]
            if name is not None:
                keep_to_rows_of([panel], result, [name], bounds)
    return panels
