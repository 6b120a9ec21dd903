"""Plots of one feature (the paper's Figure 3b), of all features, of outputs, of several models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from numpy.typing import NDArray

from rhale_stats.arguments.checks import check_choice, check_percentiles
from rhale_stats.drawing import curve, frame, profile
from rhale_stats.drawing.frame import UNCERTAINTY, Content, GivenAxes, Panels
from rhale_stats.drawing.rows import draw_row_bars, draw_violins, rows_of
from rhale_stats.effects.comparison import relative_to
from rhale_stats.effects.intervals import with_own_intervals
from rhale_stats.effects.sizes import largest
from rhale_stats.ensembles import labelled
from rhale_stats.ensembles.intervals import WORDS, confint
from rhale_stats.profiles.data import check_profile, one_profile
from rhale_stats.schema.checks import check_effect, check_local
from rhale_stats.schema.dimensions import OUTPUT
from rhale_stats.schema.feature_result import FeatureResult, one_feature
from rhale_stats.schema.features import (
    feature_names,
    feature_position,
    label_of,
    position_of,
    positions_of,
    units_of,
    with_units,
)
from rhale_stats.schema.kinds import ENSEMBLE, PROFILE
from rhale_stats.schema.validation import validated

# Maximum number of features drawn together.
MAX_FEATURES = 24


@validated
def plot_effect(
    effect: xr.Dataset,
    feature: str | int | None = None,
    local: xr.Dataset | None = None,
    ax: Axes | Sequence[Axes] | NDArray[np.object_] | None = None,
    *,
    style: str = "curve",
    violins: bool = False,
    percentiles: tuple[float, float] = curve.INNER,
    reference: Any = None,
) -> NDArray[np.object_]:
    """Effect of one feature: its curve, its effect per unit, and how much rows differ.

    Black and grey are about the average and how sure it is; colour is about rows. The upper panel
    shows the curve and, dashed, a pointwise 95 % interval. The panel below shows the slope of that
    very curve: the effect of every bin, with a 95 % interval as an area; by its width it is the
    change of the curve over the bin. The strip at the bottom is the heterogeneity, the standard
    deviation of the rows' effects at a place (``spread``). If `confint` was called, its intervals
    replace these. If `confband` was called, simultaneous bands are drawn as thin lines.

    Parameters
    ----------
    effect : Dataset
        What `rhale`, `std_error`, `confint` or `confband` returned; a profile such as `pdp`, which
        `plots.profile` draws; or effects of several models. Intervals that are missing are added by
        `confint` where they can be computed. Of an explanation its effects are drawn.
    feature : str or int, optional
        Name or number of the feature. Without it, where there are several, all are drawn as by
        `plots.effects`.
    local : Dataset, optional
        The local effects that ``effect`` was made from. Then 10, 50 and 90 % of the rows used for
        estimation, with their weights if there are any, are drawn as a bar in every bin.
    ax : Axes, or two or three of them, optional
        The panels; without a third there is no strip. In a single one the curve alone is drawn, as
        by `plots.effects`. By default those of a new figure.
    style : {"curve", "paper"}, default "curve"
        "paper" is Figure 3b of the paper: a band of plus and minus the accumulated heterogeneity
        around the curve; bars of the bins with plus and minus their heterogeneity, and violins if
        ``local`` is given.
    violins : bool, default False
        Whether ``local`` is drawn as a violin in every bin.
    percentiles : pair of float, default (1, 99)
        Between which percentiles of the rows the axis reaches; (0, 100) for all of it. A profile
        has its whole grid if they are left out.
    reference : number or level, optional
        A value of the feature. The curve is drawn as the difference from its value there, with
        intervals of that difference; the spread is not drawn as a band.

    Returns
    -------
    ndarray of shape (3,)
        The Axes from above: curve, effect, heterogeneity. Two of levels, of effects of several
        models and of the paper's style; one, or one a feature, where only curves are drawn.

    %(raises; local)s
    ValueError
        Another number of Axes, or rows of ``local`` that lie in no bin; another ``style``; a
        ``reference`` where there is no curve, or of effects of several models.

    Notes
    -----
    The paper's band is the ``spread``, accumulated: the spread of the output if every row keeps its
    rank all along the axis (comonotone, math [9]). It measures how much the rows differ and does
    not shrink with their number, as intervals and confidence bands of the average do. It is 0 where
    the axis begins and grows from there, and can be wider than the range of the output: it is
    easily taken for uncertainty, and is no default for that reason. Nor are curves of 10 and 90 %
    of the rows, which would assume the same: of trees, whose rows take turns at steps, they are far
    apart where all rows have one curve.

    The bars above the axis of the curve are a histogram of the rows, as far as the counts of cells
    tell it. The axis reaches over the inner 98 % of the rows; small numbers say how far it goes on.
    All is paler where there are few rows, fewer than 10 in a fortieth of the axis.

    If `std_error` was given the model, the intervals hold its parameters, too. They are then drawn
    light, and dark within them the intervals of the rows alone, with the same quantile: lengths
    compare as ``curve_se`` and ``curve_se_rows``. The simultaneous band holds both.

    Between edges the half-widths are interpolated linearly. For the heterogeneity this is exact. In
    a constant bin, intervals from standard errors are never too narrow between the edges, because
    the standard error is a convex function where the curve is linear. In a linear bin they can be
    too narrow, by at most t ``slope_se`` width^2 / 8, where t is the quantile of `confint`.

    A violin is a kernel density estimate from the smallest to the largest local effect of its
    bin, with Silverman's bandwidth, a third of the bin wide: its area has no meaning. If long
    tails would hide the bins, the panel shows the central 99 % of the local effects, and a note
    gives the share off the scale. In a linear bin violins and bars show the residuals about the
    line: every local effect is moved along the slope to the middle of the bin.

    For a categorical feature the upper panel has a bar for every level, with the interval and band
    as whiskers. The lower panel shows the share and number of rows at every level; ``local`` is not
    used.

    With ``missing="bin"`` a mark beside the axis shows the rows without a value: the curve at the
    median plus the effect of a missing value, with the interval of that effect.

    For effects of several models (`over_models`, `bootstrap_refit`, `cross_effects`) the light area
    is plus and minus one standard error, the dark area within it the part of the rows. Both panels
    are over the points of the grid; profiles have the upper panel only.

    A bin without rows leaves a gap. A figure has one legend, above its panels; in one of your own
    ``layout="constrained"`` makes room for it.

    References
    ----------
    Gkolemis, Dalamagas, Ntoutsi and Diou (2023), *RHALE: Robust and Heterogeneity-aware
    Accumulated Local Effects*, Figure 3b.

    Silverman (1986), *Density Estimation for Statistics and Data Analysis*, Eq. 3.31.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> local = rs.local_effects(lambda X: 2 * X[:, 0] + 4 * X[:, 0] * X[:, 1], X)
    >>> curve, slope, strip = rs.plots.effect(rs.rhale(local), "x0", local)
    >>> curve.get_ylabel(), slope.get_ylabel()
    ('effect on output', 'd output / d x0')
    """
    check_choice("style", style, ("curve", "paper"))
    percentiles = check_percentiles(percentiles)
    local = None if local is None else check_local(local)
    if feature is None and "feature" in getattr(effect, "dims", ()):
        names = feature_names(effect)
        feature = names[0] if len(names) == 1 else None
    paper = style == "paper"
    if feature is None or (isinstance(ax, Axes) and not PROFILE.holds(effect)):
        if feature is not None and reference is not None:
            reference = {feature_names(effect)[feature_position(effect, feature)]: reference}
        options: dict[str, Any] = {"percentiles": percentiles, "reference": reference}
        return plot_effects(effect, feature, ax=ax, spread="band" if paper else "none", **options)
    if ENSEMBLE.holds(effect):
        _refuse_of_models(reference, percentiles)
        return _plot_ensemble(effect, feature, ax)
    if PROFILE.holds(effect):
        only = None if ax is None else frame.given_axes(ax, 1, "one for a profile")[0]
        panel = profile.plot_profile(effect, feature, only, reference=reference)
        drawn = np.array([panel], dtype=object)
        if percentiles != curve.INNER:
            profile.keep_to_rows_of(drawn, effect, [feature], percentiles)
        return drawn
    effect = check_effect(effect)
    # The others are not drawn.
    effect = with_own_intervals(effect.isel(feature=[feature_position(effect, feature)]))
    if reference is not None:
        effect = relative_to(effect, reference)
    row = one_feature(effect, 0)
    rows = None if local is None else rows_of(local, row, effect)
    levels = row.is_categorical
    is_pair = isinstance(ax, list | tuple | np.ndarray) and len(frame.flat_axes(ax)) == 2
    n_panels = 2 if levels or paper or is_pair else 3
    heights = [3.6, 1.6] if levels else [3.1, 2.1, 1.2][:n_panels]
    made = partial(frame.column, heights, sharex=not levels)
    with frame.several_panels(ax, n_panels, "from above", made) as panels:
        upper, lower = panels[:2]
        frame.name_axes(upper, y=frame.output_label(effect))
        if levels:
            frame.name_axes(lower, label_of(row, row.name))
            curve.draw_curve(upper, row)
            curve.draw_shares(lower, row)
            upper.tick_params(labelbottom=False)
            return panels
        frame.name_bins(lower, effect, row)
        if n_panels == 3:
            lower.set_xlabel("")
            name = frame.feature_label(effect, row.name)
            frame.name_axes(panels[2], name, "rows differ\n(SD)")
        if not row.sizes["bin"]:
            frame.say_empty(panels)
            return panels
        curve.draw_curve(upper, row, "band" if paper and reference is None else "none")
        curve.draw_bins(lower, row, bars=paper)
        limits = (
            curve.common_limits([row], "band" if paper else "none", percentiles),
            curve.bin_limits(row, percentiles, bars=paper),
        )
        for panel, ends in zip((upper, lower), limits, strict=True):
            if ends is not None:
                panel.set_ylim(*ends)
        if rows is not None:
            (draw_violins if violins or paper else draw_row_bars)(lower, rows, row)
        # Rounding in the local effects shall not look like an effect.
        slope = frame.ERRORS_SHOWN * frame.error_text(row)
        frame.enlarge(upper, slope * np.ptp(row.bin_edges))
        frame.enlarge(lower, slope)
        if n_panels == 3:
            curve.draw_heterogeneity(panels[2], row, percentiles)
        curve.keep_to_rows(panels, row, percentiles)
        curve.draw_histogram(upper, row)
    return panels


@validated
def plot_effects(
    effect: xr.Dataset,
    features: str | int | Sequence[str | int] | None = None,
    *,
    n_columns: int = 3,
    max_features: int = MAX_FEATURES,
    ax: Axes | Sequence[Axes] | NDArray[np.object_] | None = None,
    spread: str = "none",
    percentiles: tuple[float, float] = curve.INNER,
    reference: Mapping[str, Any] | None = None,
) -> NDArray[np.object_]:
    """Curves of all features, one panel each, with one y scale.

    Every panel is drawn like the upper panel of `plots.effect`, whose notes explain it.

    Parameters
    ----------
    effect : Dataset
        What `rhale`, `std_error`, `confint` or `confband` returned; a profile such as `pdp`, which
        `plots.profile` draws; or effects of several models. Intervals that are missing are added by
        `confint` where they can be computed.
    features : name, number, or sequence of them, optional
        Features to draw, in this order. By default all, or the ``max_features`` largest, those with
        the largest importance (the standard deviation of the curve over the rows) first; in the
        order of the result if ``ax`` is given.
    %(n_columns)s
    max_features : int, default 24
        Most features that are drawn if ``features`` is not given. A note on the figure says how
        many there are.
    ax : Axes, or sequence of them, optional
        One Axes per feature. By default those of a new figure.
    spread : {"none", "band"}, default "none"
        Whether to draw the heterogeneity as a band around the curves, as in the paper;
        `plots.effect` and `plots.summary` have it beside them.
    percentiles : pair of float, default (1, 99)
        Between which percentiles of the rows axes reach; (0, 100) for all of them. Profiles have
        their whole grid if they are left out.
    reference : mapping, optional
        Values by the names of features. Their curves are drawn as differences from the value
        there, with intervals of these differences; the titles say so.

    Returns
    -------
    ndarray of shape (n_features,)
        The Axes, one per feature.

    %(raises)s
    ValueError
        The number of Axes is not that of the features; no feature; ``n_columns`` or
        ``max_features`` below 1.

    References
    ----------
    Gkolemis, Dalamagas, Ntoutsi and Diou (2023), *RHALE: Robust and Heterogeneity-aware
    Accumulated Local Effects*, Figure 3b (upper panel).

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> panels = rs.plots.effects(rs.rhale(lambda X: 2 * X[:, 0] + 4 * X[:, 0] * X[:, 1], X))
    >>> [panel.get_title() for panel in panels]
    ['x0', 'x1']
    """
    check_choice("spread", spread, ("none", "band"))
    percentiles = check_percentiles(percentiles)
    reference = frame.reference_of(reference)
    is_profile, of_models = PROFILE.holds(effect), ENSEMBLE.holds(effect)
    if of_models:
        _refuse_of_models(reference or None, percentiles)
        effect = _with_intervals(effect)
    else:
        effect = check_profile(effect) if is_profile else check_effect(effect)
    names = feature_names(effect)
    limited = features is None and ax is None and len(names) > max_features
    if features is None and ax is None and of_models:
        order = np.argsort(-np.nan_to_num(labelled.size_of(effect)), kind="stable")
        features = [names[position] for position in order[:max_features]]
    elif features is None and ax is None:
        features = largest(effect, max_features)
    positions = positions_of(features, names)
    if not positions:
        raise ValueError("features must name at least one feature; got none.")
    for name in reference:
        position_of(name, names, "reference")
    if is_profile:
        relative = [
            profile.checked_reference(effect, position, reference.get(names[position]))
            for position in positions
        ]
        drawn = profile.draw_profiles(relative, n_columns, ax, "one a feature")
        if percentiles != curve.INNER:
            profile.keep_to_rows_of(drawn, effect, positions, percentiles)
        if limited:
            frame.say_limited(drawn, len(names))
        return drawn
    label = frame.output_label(effect)
    if of_models:
        models = [labelled.one_row(effect, position) for position in positions]
        draw = [partial(_draw_ensemble, row=row, name="curve") for row in models]
        titles = [label_of(effect, row.name) for row in models]
    else:
        shown = with_own_intervals(effect.isel(feature=positions))
        single = [shown.isel(feature=[number]) for number in range(len(positions))]
        values = [reference.get(names[position]) for position in positions]
        rows = [
            one_feature(each if value is None else relative_to(each, value), 0)
            for each, value in zip(single, values, strict=True)
        ]
        draw = _drawing(rows, spread, percentiles)
        titles = [_title(row) for row in rows]
    units = [units_of(effect, names[position]) for position in positions]
    contents = [
        Content(each, title, with_units("", unit).strip(), unit, label)
        for each, title, unit in zip(draw, titles, units, strict=True)
    ]
    of_features = len(names) if limited else 0
    return frame.draw_grid(
        contents, n_columns, ax, "one a feature", y=label, of_features=of_features
    )


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
    %(feature)s
    %(n_columns)s
    ax : Axes, or sequence of them, optional
        One Axes per output. By default those of a new figure.
    spread : {"none", "band"}, default "none"
        Whether to draw the heterogeneity as a band around the curves, as in the paper.

    Returns
    -------
    ndarray of shape (n_outputs,)
        The Axes, one per output.

    %(raises)s
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
    is_profile = PROFILE.holds(effect)
    if OUTPUT not in getattr(effect, "dims", ()):
        result = check_profile(effect) if is_profile else check_effect(effect)
        raise ValueError(
            f"effect must have the dimension output, of several classes or targets; this one is "
            f"of {result.attrs.get('output_name', 'one output')!r} alone. Use plots.effect."
        )
    each = [effect.isel({OUTPUT: number}) for number in range(effect.sizes[OUTPUT])]
    if is_profile:
        curves = [one_profile(check_profile(part), feature) for part in each]
        panels = profile.draw_profiles(curves, n_columns, ax, "one an output")
        for panel, row in zip(panels, curves, strict=True):
            frame.name_axes(panel, title=str(row.attrs["output_name"]))
            if panel.get_ylabel():
                panel.set_ylabel("mean output" if row.attrs["centering"] == "none" else "effect")
        return panels
    parts = [with_own_intervals(check_effect(part)) for part in each]
    name = feature_names(effect)[feature_position(effect, feature)]
    x, units = frame.feature_label(effect, name), units_of(effect, name)
    draw = _drawing([one_feature(part, feature) for part in parts], spread, curve.INNER)
    contents = [
        Content(draw_row, str(part.attrs["output_name"]), x, units, frame.output_label(part))
        for draw_row, part in zip(draw, parts, strict=True)
    ]
    return frame.draw_grid(contents, n_columns, ax, "one an output", y="effect")


def _drawing(
    rows: Sequence[FeatureResult], spread: str, percentiles: tuple[float, float]
) -> list[partial[None]]:
    """What draws the curve of each row in a panel, all on one scale."""
    limits = curve.common_limits(rows, spread, percentiles)

    def draw(panel: Axes, row: FeatureResult) -> None:
        if row.sizes["bin"]:
            curve.draw_curve(panel, row, spread)
            curve.keep_to_rows([panel], row, percentiles)
            curve.draw_histogram(panel, row)
        else:
            frame.say_constant(panel)
        if limits is not None:
            panel.set_ylim(*limits)

    return [partial(draw, row=row) for row in rows]


def _title(row: FeatureResult) -> str:
    """The name of the feature, with what its curve is relative to."""
    name = label_of(row, row.name)
    if "reference" not in row.attrs:
        return name
    return f"{name}, from {str(row.attrs['reference']).rpartition(' = ')[2]}"


# --- effects of several models --------------------------------------------------------------------


ESTIMATES = {"curve": "estimate:\ncurve", "effect": "estimate:\neffect"}
TOTAL, OF_ROWS = "± standard error:\nmodels and rows", "± standard error:\nrows alone"
SPREAD = "± heterogeneity\nof the rows"
# Opacity of the error of models and rows, and of that of the rows.
LIGHT, DARK = 0.25, 0.6


def _refuse_of_models(reference: object, percentiles: tuple[float, float]) -> None:
    """Raise ``ValueError`` where effects of several models are asked for what they do not have."""
    if reference is not None:
        raise ValueError(
            "reference must be None for effects of several models, whose errors are those of the "
            "centred curves. Leave it out."
        )
    if percentiles != curve.INNER:
        raise ValueError(
            f"percentiles must be left out for effects of several models, whose rows differ; got "
            f"{percentiles!r}."
        )


def _with_intervals(ensemble: xr.Dataset) -> xr.Dataset:
    """With intervals, which are made if there are none."""
    ensemble = labelled.check_ensemble(ensemble)
    return ensemble if "curve_ci" in ensemble else confint(ensemble, None, frame.LEVEL, None)


def _plot_ensemble(ensemble: xr.Dataset, feature: str | int, ax: GivenAxes) -> Panels:
    """One feature of several models: the curve above, the effect below if there is one."""
    ensemble = _with_intervals(ensemble)
    row = labelled.one_row(ensemble, feature)
    lower = "effect" in labelled.estimated(ensemble) and not row.levels
    heights = [3.6, 1.9] if lower else [3.6]
    which = "an upper and a lower one" if lower else "one"
    made = partial(frame.column, heights)
    with frame.several_panels(ax, len(heights), which, made) as panels:
        first, last = panels[0], panels[-1]
        frame.name_axes(first, y=frame.output_label(ensemble))
        if lower:
            frame.name_bins(last, ensemble, row.dataset.isel(feature=0))
        frame.name_feature(last, ensemble, row.name)
        _draw_ensemble(first, row, "curve")
        if lower:
            _draw_ensemble(last, row, "effect")
            first.set_xlim(last.get_xlim())
    return panels


def _draw_ensemble(panel: Axes, row: labelled.Row, name: str) -> None:
    """Draw one estimate with its errors; levels as points with whiskers."""
    z, dataset = row.z, row.dataset
    if not len(z):
        frame.say_constant(panel)
        return
    value = labelled.centre_of(dataset, name)[0]
    total, of_rows = [
        dataset[key].values[0] if key in dataset else None
        for key in (f"{name}_se", f"{name}_se_rows")
    ]
    interval = dataset[f"{name}_ci"].isel(feature=0)
    ends = curve.ends_of(interval)
    words = WORDS.get(str(interval.attrs.get("ci_kind")), "spread of the models")
    text = f"{frame.level_text(interval)} {words},\npointwise"
    frame.draw_zero(panel)
    label = TOTAL if of_rows is not None or row.levels else TOTAL.partition(":")[0]
    errors = ((total, LIGHT, 2.0, label), (of_rows, DARK, 5.0, OF_ROWS))
    if row.levels:
        # Thick whiskers of the rows, thin ones of models and rows, and beside them the interval.
        middle, half = ends.mean(axis=0), np.diff(ends, axis=0)[0] / 2
        frame.draw_whiskers(panel, z + 0.12, middle, half, 1.0, label=text, zorder=2)
        for error, opacity, width, label in errors:
            if error is not None:
                look = {"alpha": opacity + 0.2 if error is total else opacity, "label": label}
                frame.draw_whiskers(panel, z, value, error, width, zorder=2, **look)
        how: dict[str, Any] = {"color": frame.AVERAGE, "markersize": 4, "zorder": 4}
        panel.plot(z, value, "o", label=ESTIMATES[name], gid=frame.OURS, **how)
        curve.name_levels(panel, row.levels)
        return
    if name == "effect":
        spread = labelled.centre_of(dataset, "heterogeneity")[0]
        how = {"color": frame.HETEROGENEITY, "alpha": 0.15, "zorder": 1}
        frame.draw_between(panel, z, (value - spread, value + spread), SPREAD, **how)
    for error, opacity, _, label in errors:
        if error is not None:
            how = {"color": UNCERTAINTY, "alpha": opacity, "zorder": 2}
            frame.draw_between(panel, z, (value - error, value + error), label, **how)
    panel.plot(z, value, color=frame.AVERAGE, linewidth=1.4, zorder=4, label=ESTIMATES[name])
    dashed: dict[str, Any] = {"linewidth": 1.0, "linestyle": frame.DASHES, "zorder": 3}
    frame.draw_ends(panel, z, ends, text, **dashed)
    if f"{name}_band" in dataset:
        band = dataset[f"{name}_band"].isel(feature=0)
        text = f"{frame.level_text(band)} band,\nsimultaneous over the axis"
        frame.draw_ends(panel, z, curve.ends_of(band), text, linewidth=0.7, zorder=3)
