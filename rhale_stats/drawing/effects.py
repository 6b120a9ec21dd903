"""Plots of one feature (the paper's Figure 3b), of all features, and of several models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from numpy.typing import NDArray

from rhale_stats.arguments.checks import check_choice, check_percentiles
from rhale_stats.arguments.words import shown as shortly
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.drawing.bins import column
from rhale_stats.drawing.canvas import (
    AVERAGE,
    HETEROGENEITY,
    REFERENCE,
    UNCERTAINTY,
    as_array,
    date_axis,
    draw_ends,
    entitle,
    flat_axes,
    given_axes,
    output_label,
    refuse_reference,
    several_panels,
)
from rhale_stats.drawing.curve import (
    INNER,
    bin_limits,
    common_limits,
    draw_bins,
    draw_curve,
    draw_curves,
    draw_heterogeneity,
    draw_histogram,
    draw_shares,
    ends_of,
    keep_noise_small,
    keep_to_rows,
)
from rhale_stats.drawing.legend import (
    LEVEL,
    OURS,
    draw_legend,
    grid_of_panels,
    label_axes,
    label_bins,
    say_constant,
    say_empty,
    say_limited,
)
from rhale_stats.drawing.profile import keep_to_rows_of, plot_profile, plot_profiles
from rhale_stats.drawing.rows import draw_row_bars, draw_violins, rows_of
from rhale_stats.effects.comparison import relative_to
from rhale_stats.effects.intervals import with_own_intervals
from rhale_stats.effects.sizes import largest
from rhale_stats.ensembles.intervals import WORDS, confint
from rhale_stats.ensembles.labelled import (
    Row,
    centre_of,
    check_ensemble,
    estimated,
    one_row,
    size_of,
)
from rhale_stats.local.rows import estimation_rows
from rhale_stats.profiles.data import check_profile
from rhale_stats.schema.checks import check_effect, check_local
from rhale_stats.schema.feature_result import FeatureResult, one_feature
from rhale_stats.schema.features import (
    feature_names,
    feature_position,
    label_of,
    position_of,
    units_of,
    with_units,
)
from rhale_stats.schema.kinds import ENSEMBLE, PROFILE
from rhale_stats.schema.validation import validated

ESTIMATE, OF_EFFECT = "estimate:\ncurve", "estimate:\neffect"
TOTAL, OF_ROWS = "± standard error:\nmodels and rows", "± standard error:\nrows alone"
SPREAD = "± heterogeneity\nof the rows"
# Opacity of the error of models and rows, and of that of the rows.
LIGHT, DARK = 0.25, 0.6


class _EnsembleCurve(NamedTuple):
    """One estimate of one feature along its grid: value, errors, interval and band."""

    z: FloatArray
    value: FloatArray
    total: FloatArray
    rows: FloatArray | None
    interval: xr.DataArray
    band: xr.DataArray | None


def plot_ensemble(
    ensemble: xr.Dataset,
    feature: str | int,
    ax: Axes | Sequence[Axes] | NDArray[np.object_] | None,
) -> NDArray[np.object_]:
    """One feature of several models: the curve above, the effect below if there is one."""
    ensemble = _prepared(ensemble)
    row = one_row(ensemble, feature)
    lower = "effect" in estimated(ensemble) and not row.levels
    n, heights = (2, [3.6, 1.9]) if lower else (1, [3.6])
    which = "an upper and a lower one" if lower else "one"
    with several_panels("ax", ax, n, which, lambda: column(heights)) as panels:
        first, last = panels[0], panels[-1]
        first.set_ylabel(output_label(ensemble), parse_math=False)
        if lower:
            label_bins(last, ensemble, row.dataset.isel(feature=0))
        last.set_xlabel(with_units(row.name, units_of(ensemble, row.name)), parse_math=False)
        date_axis(last, units_of(ensemble, row.name))
        if not len(row.z):
            for panel in panels:
                say_constant(panel)
            return as_array(panels)
        _draw(first, row, "curve")
        if lower:
            _draw(last, row, "effect")
            first.set_xlim(last.get_xlim())
        draw_legend(panels)
    return as_array(panels)


def plot_ensembles(
    ensemble: xr.Dataset,
    features: Any,
    n_columns: int,
    most: int,
    ax: Axes | Sequence[Axes] | NDArray[np.object_] | None,
) -> NDArray[np.object_]:
    """Curves of several features, a panel each, on one scale in a figure of our own."""
    ensemble = _prepared(ensemble)
    chosen = _chosen(ensemble, features, most, limited=ax is None)
    rows = [one_row(ensemble, feature) for feature in chosen]
    new_figure = ax is None
    with several_panels(
        "ax", ax, len(rows), "one a feature", lambda: grid_of_panels(len(rows), n_columns)
    ) as panels:
        for panel, row in zip(panels, rows, strict=True):
            entitle(panel, row.name)
            units = units_of(ensemble, row.name)
            panel.set_xlabel(with_units("", units).strip(), parse_math=False)
            date_axis(panel, units)
            if not new_figure:
                panel.set_ylabel(output_label(ensemble), parse_math=False)
            if len(row.z):
                _draw(panel, row, "curve")
            else:
                say_constant(panel)
        if new_figure:
            size = panels[0].yaxis.label.get_fontsize()
            label = output_label(ensemble)
            panels[0].figure.supylabel(label, fontsize=size, parse_math=False)
            if features is None and len(rows) < ensemble.sizes["feature"]:
                say_limited(panels, ensemble.sizes["feature"])
        draw_legend(panels)
    return as_array(panels)


def _prepared(ensemble: xr.Dataset) -> xr.Dataset:
    """With intervals, which are made if there are none."""
    ensemble = check_ensemble(ensemble)
    return ensemble if "curve_ci" in ensemble else confint(ensemble, None, LEVEL, None)


def _chosen(ensemble: xr.Dataset, features: Any, most: int, *, limited: bool) -> list[Any]:
    """The features to draw; by default all, or those of largest importance."""
    names = feature_names(ensemble)
    if features is None:
        order = np.argsort(-np.nan_to_num(size_of(ensemble)), kind="stable")
        some = limited and len(names) > most
        return [names[position] for position in order[:most]] if some else list(names)
    chosen = [features] if isinstance(features, str | int | np.integer) else list(features)
    if not chosen:
        raise ValueError("features must name at least one feature; got none.")
    return chosen


def _drawn(row: Row, name: str) -> _EnsembleCurve:
    dataset = row.dataset

    def values(key: str) -> FloatArray | None:
        return np.asarray(dataset[key].values[0]) if key in dataset else None

    total = values(f"{name}_se")
    assert total is not None, "intervals come with standard errors"
    band = dataset[f"{name}_band"].isel(feature=0) if f"{name}_band" in dataset else None
    return _EnsembleCurve(
        row.z,
        centre_of(dataset, name)[0],
        total,
        values(f"{name}_se_rows"),
        dataset[f"{name}_ci"].isel(feature=0),
        band,
    )


def _draw(panel: Axes, row: Row, name: str) -> None:
    """Draw one estimate with its errors; levels as points with whiskers."""
    drawn = _drawn(row, name)
    panel.axhline(0, color=REFERENCE, linewidth=0.6, zorder=0.5, gid=OURS)
    if row.levels:
        _draw_levels_of_models(panel, drawn, row.levels)
        return
    if name == "effect":
        spread = centre_of(row.dataset, "heterogeneity")[0]
        low, high = drawn.value - spread, drawn.value + spread
        how: dict[str, Any] = {"color": HETEROGENEITY, "alpha": 0.15, "linewidth": 0}
        panel.fill_between(drawn.z, low, high, zorder=1, label=SPREAD, **how)
    for half, opacity, label in (
        (drawn.total, LIGHT, TOTAL if drawn.rows is not None else TOTAL.partition(":")[0]),
        (drawn.rows, DARK, OF_ROWS),
    ):
        if half is not None:
            low, high = drawn.value - half, drawn.value + half
            how = {"color": UNCERTAINTY, "alpha": opacity, "linewidth": 0, "zorder": 2}
            panel.fill_between(drawn.z, low, high, label=label, **how)
    text = ESTIMATE if name == "curve" else OF_EFFECT
    panel.plot(drawn.z, drawn.value, color=AVERAGE, linewidth=1.4, zorder=4, label=text)
    dashes = {"linewidth": 1.0, "linestyle": (0, (4, 2)), "zorder": 3}
    draw_ends(panel, drawn.z, ends_of(drawn.interval), _said(drawn.interval), **dashes)
    if drawn.band is not None:
        text = f"{_percent(drawn.band)} band,\nsimultaneous over the axis"
        draw_ends(panel, drawn.z, ends_of(drawn.band), text, linewidth=0.7, zorder=3)


def _draw_levels_of_models(panel: Axes, drawn: _EnsembleCurve, levels: list[str]) -> None:
    """Points at the levels: thick whiskers of the rows, thin ones of models and rows, interval."""
    low, high = ends_of(drawn.interval)
    middle, half = (low + high) / 2, (high - low) / 2
    for place, value, error, width, label in (
        (drawn.z + 0.12, middle, half, 1.0, _said(drawn.interval)),
        (drawn.z, drawn.value, drawn.total, 2.0, TOTAL),
        (drawn.z, drawn.value, drawn.rows, 5.0, OF_ROWS),
    ):
        if error is not None:
            alpha = {2.0: LIGHT + 0.2, 5.0: DARK}.get(width, 1.0)
            how: dict[str, Any] = {
                "fmt": "none",
                "ecolor": UNCERTAINTY,
                "elinewidth": width,
                "alpha": alpha,
            }
            panel.errorbar(place, value, error, label=label, zorder=2, **how)
    panel.plot(
        drawn.z, drawn.value, "o", color=AVERAGE, markersize=4, zorder=4, label=ESTIMATE, gid=OURS
    )
    panel.set_xticks(drawn.z, levels, parse_math=False)
    panel.margins(x=0.1)


def _percent(interval: xr.DataArray) -> str:
    return f"{100 * float(interval.attrs['ci_prob']):g} %"


def _said(interval: xr.DataArray) -> str:
    """The interval in words, for the legend."""
    words = WORDS.get(str(interval.attrs.get("ci_kind")), "spread of the models")
    return f"{_percent(interval)} {words},\npointwise"


# --- plot of one feature --------------------------------------------------------------------------


@validated
def plot_effect(
    effect: xr.Dataset,
    feature: str | int | None = None,
    local: xr.Dataset | None = None,
    ax: Axes | Sequence[Axes] | NDArray[np.object_] | None = None,
    *,
    style: str = "curve",
    violins: bool = False,
    percentiles: tuple[float, float] = INNER,
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

    Raises
    ------
    KeyError
        Unknown feature, or a feature that ``local`` does not have.
    TypeError
        ``effect`` or ``local`` is another kind of object, or ``ax`` is not Axes.
    ValueError
        Another number of Axes, or rows of ``local`` that lie in no bin; another ``style``; a
        ``reference`` where there is no curve, or of effects of several models.

    Notes
    -----
    The paper's band is the spread of the output if every row keeps its rank all along the axis
    (comonotone, math [9]): the ``spread``, accumulated. It measures how much the rows differ and
    does not shrink with their number. The intervals and confidence bands of the average do shrink.
    It is 0 where the axis begins and grows from there, and can be wider than the range of the
    output: it is easily taken for uncertainty, and is no default for that reason. Nor are curves of
    10 and 90 % of the rows, which would assume the same: of trees, whose rows take turns at steps,
    they are far apart where all rows have one curve. A pointwise interval contains the curve at a
    given point in 95 % of samples; a simultaneous band contains the whole curve in 95 % of samples.

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
    names = (
        feature_names(effect)
        if feature is None and "feature" in getattr(effect, "dims", ())
        else []
    )
    if len(names) == 1:
        feature = names[0]
    if feature is None or (isinstance(ax, Axes) and not PROFILE.holds(effect)):
        spread = "band" if style == "paper" else "none"
        if feature is not None and reference is not None:
            reference = {feature_names(effect)[feature_position(effect, feature)]: reference}
        return plot_effects(
            effect, feature, ax=ax, spread=spread, percentiles=percentiles, reference=reference
        )
    if ENSEMBLE.holds(effect):
        refuse_reference(reference)
        _refuse_percentiles(percentiles)
        return plot_ensemble(effect, feature, ax)
    if PROFILE.holds(effect):
        only = None if ax is None else given_axes("ax", ax, 1, "one for a profile")[0]
        drawn = as_array([plot_profile(effect, feature, only, reference=reference)])
        if percentiles != INNER:
            keep_to_rows_of(drawn, effect, [feature], percentiles)
        return drawn
    effect = check_effect(effect)
    # The others are not drawn.
    effect = with_own_intervals(effect.isel(feature=[feature_position(effect, feature)]))
    if reference is not None:
        effect = relative_to(effect, reference)
    row = one_feature(effect, 0)
    rows = None
    if local is not None:
        rows = rows_of(estimation_rows(local, effect), row)
    levels, paper = row.is_categorical, style == "paper"
    is_pair = isinstance(ax, list | tuple | np.ndarray) and len(flat_axes(ax)) == 2
    n_panels = 2 if levels or paper or is_pair else 3
    heights = [3.6, 1.6] if levels else [3.1, 2.1, 1.2][:n_panels]
    with several_panels(
        *("ax", ax, n_panels, "from above"),
        lambda: column(heights, sharex=not levels),
    ) as panels:
        upper, lower = panels[:2]
        if levels:
            _draw_levels(upper, lower, effect, row)
            return as_array(panels)
        label_axes(panels, effect, row)
        if not row.sizes["bin"]:
            say_empty(panels)
            return as_array(panels)
        draw_curve(upper, row, "band" if paper and reference is None else "none")
        draw_bins(lower, row, bars=paper)
        limits = [
            common_limits([row], "band" if paper else "none", percentiles),
            bin_limits(row, percentiles, bars=paper),
        ]
        for panel, ends in zip(panels, limits, strict=False):
            if ends is not None:
                panel.set_ylim(*ends)
        if rows is not None and (violins or paper):
            draw_violins(lower, rows, row)
        elif rows is not None:
            draw_row_bars(lower, rows, row)
        keep_noise_small(upper, lower, row)
        if n_panels == 3:
            draw_heterogeneity(panels[2], row, percentiles)
        keep_to_rows(panels, row, percentiles)
        draw_histogram(upper, row)
        draw_legend(panels)
    return as_array(panels)


def _draw_levels(upper: Axes, lower: Axes, effect: xr.Dataset, row: FeatureResult) -> None:
    """Bars of the levels above, of their rows below."""
    upper.set_ylabel(output_label(effect), parse_math=False)
    lower.set_xlabel(label_of(row, row.name), parse_math=False)
    draw_curve(upper, row)
    draw_shares(lower, row)
    upper.tick_params(labelbottom=False)
    draw_legend([upper, lower])


# --- plot of all features -------------------------------------------------------------------------


# Maximum number of features drawn together.
MAX_FEATURES = 24


@validated
def plot_effects(
    effect: xr.Dataset,
    features: str | int | Sequence[str | int] | None = None,
    *,
    n_columns: int = 3,
    max_features: int = MAX_FEATURES,
    ax: Axes | Sequence[Axes] | NDArray[np.object_] | None = None,
    spread: str = "none",
    percentiles: tuple[float, float] = INNER,
    reference: Mapping[str, Any] | None = None,
) -> NDArray[np.object_]:
    """Curves of all features, one panel each, with one y scale.

    Every panel shows the curve, a pointwise 95 % interval (dashed; with the parameters of the model
    light, and dark within it that of the rows) and the simultaneous band of `confband` (thin), as
    in the upper panel of `plots.effect`, whose notes explain them. Bars above the axes are a
    histogram of the rows; panels are paler where few of them are.

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
    n_columns : int, default 3
        Number of panels per line of a new figure.
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

    Raises
    ------
    KeyError
        Unknown feature.
    TypeError
        ``effect`` is another kind of object, or ``ax`` is not Axes.
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
    >>> local = rs.local_effects(lambda X: 2 * X[:, 0] + 4 * X[:, 0] * X[:, 1], X)
    >>> panels = rs.plots.effects(rs.rhale(local))
    >>> [panel.get_title() for panel in panels]
    ['x0', 'x1']
    """
    check_choice("spread", spread, ("none", "band"))
    percentiles = check_percentiles(percentiles)
    if reference is not None and not isinstance(reference, Mapping):
        raise TypeError(
            f"reference must be a mapping of features to values, as in {{'dose': 4}}; got "
            f"{shortly(reference)}."
        )
    reference = dict(reference or {})
    if ENSEMBLE.holds(effect):
        refuse_reference(reference or None)
        _refuse_percentiles(percentiles)
        return plot_ensembles(effect, features, n_columns, max_features, ax)
    profile = PROFILE.holds(effect)
    effect = check_profile(effect) if profile else check_effect(effect)
    limited = features is None and ax is None and effect.sizes["feature"] > max_features
    if features is None:
        features = feature_names(effect) if ax is not None else largest(effect, max_features)
    elif isinstance(features, str | int | np.integer):
        features = [features]
    positions = [feature_position(effect, feature) for feature in features]
    if not positions:
        raise ValueError("features must name at least one feature; got none.")
    names = feature_names(effect)
    for name in reference:
        position_of(name, names, "reference")
    if profile:
        drawn = plot_profiles(effect, positions, n_columns, ax, reference)
        if percentiles != INNER:
            keep_to_rows_of(drawn, effect, positions, percentiles)
        if limited:
            say_limited(drawn, effect.sizes["feature"])
        return drawn
    shown = with_own_intervals(effect.isel(feature=positions))
    rows = [
        _relative(shown, number, reference.get(names[position]))
        for number, position in enumerate(positions)
    ]
    new_figure = ax is None
    with several_panels(
        "ax", ax, len(rows), "one a feature", lambda: grid_of_panels(len(rows), n_columns)
    ) as panels:
        for panel, row, position in zip(panels, rows, positions, strict=True):
            entitle(panel, _title(row))
            units = units_of(effect, position)
            panel.set_xlabel(with_units("", units).strip(), parse_math=False)
            date_axis(panel, units)
            if not new_figure and (panel is panels[0] or not isinstance(ax, Axes)):
                panel.set_ylabel(output_label(effect), parse_math=False)
        label = output_label(effect) if new_figure else ""
        draw_curves(panels, rows, label, spread, percentiles)
        if limited:
            say_limited(panels, effect.sizes["feature"])
        draw_legend(panels)
    return as_array(panels)


def _refuse_percentiles(percentiles: tuple[float, float]) -> None:
    """Raise ``ValueError`` where percentiles are asked of effects of several models."""
    if percentiles != INNER:
        raise ValueError(
            f"percentiles must be left out for effects of several models, whose rows differ; got "
            f"{percentiles!r}."
        )


def _relative(effect: xr.Dataset, number: int, value: Any) -> FeatureResult:
    """One feature, relative to a value of it where one is given."""
    if value is None:
        return one_feature(effect, number)
    return one_feature(relative_to(effect.isel(feature=[number]), value), 0)


def _title(row: FeatureResult) -> str:
    """The name of the feature, with what its curve is relative to."""
    name = label_of(row, row.name)
    if "reference" not in row.attrs:
        return name
    return f"{name}, from {str(row.attrs['reference']).rpartition(' = ')[2]}"
