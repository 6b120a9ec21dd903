"""Forest plot: one line per feature with estimate and interval."""

from __future__ import annotations

import textwrap
import warnings
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
import xarray as xr
from matplotlib.axes import Axes

from rhale_stats.arguments.checks import check_level
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.effects.intervals import confint
from rhale_stats.inference import meaning
from rhale_stats.inference.draws import draws_of
from rhale_stats.plots.canvas import (
    AVERAGE,
    LABEL_LENGTH,
    REFERENCE,
    UNCERTAINTY,
    given_axes,
    style,
)
from rhale_stats.plots.curve import bar, ends_of, given
from rhale_stats.plots.legend import draw_legend
from rhale_stats.plots.marks import (
    CHAIN,
    EACH,
    ESTIMATE,
    LEVEL,
    NO_VALUE,
    OF_THE_ORDER,
    OURS,
    REPLICATES,
    UNORDERED,
)
from rhale_stats.schema.door import checked
from rhale_stats.schema.features import feature_names, units_of, with_units
from rhale_stats.schema.variables import EFFECT_VARIABLES, in_order


@checked
def plot_forest(
    effect: xr.Dataset,
    what: str = "average_effect",
    *,
    level: float = LEVEL,
    ax: Axes | None = None,
) -> Axes:
    """Forest plot: one number per feature with its interval, the largest at the top.

    Parameters
    ----------
    effect : Dataset
        What `rhale`, `std_error` or `confint` returned; what `effect_sizes` returned; or what
        `bootstrap` or `bootstrap_refit` returned.
    what : str, default "average_effect"
        Name of a variable with one number per feature: ``average_effect``, ``importance``,
        ``aled``, ``heterogeneity_output``, ...
    level : float, default 0.95
        Confidence level. Intervals that ``effect`` already has are drawn if they have this level.
    ax : Axes, optional
        By default that of a new figure.

    Returns
    -------
    Axes

    Raises
    ------
    TypeError
        ``effect`` is not a Dataset, or ``ax`` is not an Axes.
    ValueError
        ``what`` is not in ``effect``, does not have one number per feature, or has no interval of
        this level; ``level`` outside (0, 1).

    Notes
    -----
    Intervals are those of `confint`: those in ``effect`` if they have this level, otherwise new
    ones. From replicates they are quantiles over all chains, and the estimate is the median; faint
    marks below are the medians of the single chains, which agree if there are enough replicates.
    Replicates of a size that cannot be negative are biased upwards (`effect_sizes` gives corrected
    intervals).

    Features are sorted by absolute value. Effects per unit of a feature can be compared only if the
    features have the same unit; different units are printed beside the names. Features without a
    value are at the bottom: constant features and, for average effects, features whose levels have
    no order of their own.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> local = rs.local_effects(lambda X: 2 * X[:, 0] + 4 * X[:, 0] * X[:, 1], X)
    >>> panel = rs.plot_forest(rs.rhale(local))
    >>> [label.get_text() for label in panel.get_yticklabels()]
    ['x0', 'x1']
    """
    check_level(level)
    forest = _forest(effect, what, level)
    panels = None if ax is None else given_axes("ax", [ax], 1, "one")
    with style(own=ax is None):
        if panels is None:
            height = 1.3 + 0.32 * len(forest.names)
            figure, panel = plt.subplots(figsize=(6.0, height), layout="constrained")
            sns.despine(fig=figure)
        else:
            panel = panels[0]
        _draw_forest(panel, forest)
        draw_legend([panel])
    return panel


class _Forest(NamedTuple):
    """Numbers with their intervals (end, feature), and from replicates (chain, feature).

    Features are sorted. ``nothing`` says why a feature has no number, and ``made`` how the
    intervals were made.
    """

    names: list[str]
    point: FloatArray
    interval: FloatArray
    chains: FloatArray | None
    nothing: list[str]
    axis_label: str
    level: float
    made: str


def _forest(effect: object, what: str, level: float) -> _Forest:
    """Estimates and intervals to be drawn, from an effect, sizes or replicates."""
    if not isinstance(effect, xr.Dataset):
        raise TypeError(
            f"effect must be a Dataset that rhale, effect_sizes or bootstrap returned; got "
            f"{type(effect).__name__}."
        )
    effect = in_order(effect)
    if f"{what}_ci" not in effect and "fourth_moment" in effect:
        effect = confint(effect, level=level)
    values = _per_feature(effect, what)
    chains = None
    if "draw" in values.dims:
        draws = draws_of(effect, what)
        with warnings.catch_warnings():
            # A constant feature has no replicates.
            warnings.filterwarnings("ignore", "All-NaN slice", RuntimeWarning)
            low, middle, high = np.nanquantile(
                draws, [(1 - level) / 2, 0.5, (1 + level) / 2], axis=0
            )
            if values.sizes["chain"] > 1:
                of_chains = values.transpose("chain", "draw", "feature").values
                chains = np.nanmedian(of_chains, axis=1)
        made = f"quantiles of the replicates{given(effect)}"
        point, interval = middle, np.stack([low, high])
    else:
        point = np.asarray(values.values, dtype=np.float64)
        interval, made = _interval_of(effect, what, level)
    if "feature_kind" in effect.coords:
        point = np.where(effect["feature_kind"].values == "constant", np.nan, point)
    unordered = meaning.is_unordered(effect) & (what in OF_THE_ORDER)
    point = np.where(unordered, np.nan, point)
    interval = np.where(np.isnan(point), np.nan, interval)
    order = np.argsort(-np.abs(point), kind="stable")  # NaN comes last
    names, axis_label = _forest_labels(effect, values, what)
    return _Forest(
        [names[position] for position in order],
        point[order],
        interval[:, order],
        None if chains is None else np.where(unordered, np.nan, chains)[:, order],
        [UNORDERED if unordered[position] else NO_VALUE for position in order],
        axis_label,
        level,
        made,
    )


def _per_feature(effect: xr.Dataset, what: str) -> xr.DataArray:
    """One variable over (feature) or (chain, draw, feature); else ``ValueError``."""
    allowed = [{"feature"}, {"chain", "draw", "feature"}]
    numbers = [
        str(name)
        for name, array in effect.data_vars.items()
        if set(array.dims) in allowed and array.dtype.kind == "f"
    ]
    if what not in numbers:
        there = [
            name
            for name in numbers
            if "draw" in effect[name].dims or f"{name}_ci" in effect or f"{name}_se" in effect
        ]
        missing = (
            "is over " + ", ".join(map(str, effect[what].dims)) if what in effect else "is not"
        )
        raise ValueError(
            f"what must name a variable of effect with one number per feature; {what!r} {missing}"
            f"{'' if what in effect else ' in it'}. Variables with intervals: "
            f"{', '.join(there) or 'none'}. Sizes are in effect_sizes(effect, boot)."
        )
    return effect[what]


def _interval_of(effect: xr.Dataset, what: str, level: float) -> tuple[FloatArray, str]:
    """The interval in a Dataset, or one by `confint` at this level, and its method."""
    other = None
    if f"{what}_ci" in effect:
        other = float(effect[f"{what}_ci"].attrs.get("ci_prob", np.nan))
        if not np.isclose(other, level) and "fourth_moment" in effect:
            again = confint(effect, level=level)
            if f"{what}_ci" in again and np.isclose(again[f"{what}_ci"].attrs["ci_prob"], level):
                effect, other = again, level
        if np.isclose(other, level):
            found = effect[f"{what}_ci"]
            how = str(found.attrs.get("method", "confidence interval"))
            return ends_of(found), how + given(found)
        raise ValueError(
            f"level must be {other:g}, that of the intervals of {what!r} in effect; got {level:g}. "
            f"Make them again with that level, or draw the bootstrap itself."
        )
    raise ValueError(
        f"what must have an interval; effect holds {what!r} without one. Call confint(effect), or "
        f"draw boot = bootstrap(local, effect), or effect_sizes(effect, boot)."
    )


def _forest_labels(effect: xr.Dataset, values: xr.DataArray, what: str) -> tuple[list[str], str]:
    """Names of features and label of the axis; units beside the names where they differ."""
    names = feature_names(effect)
    _, long_name, template = EFFECT_VARIABLES.get(what, ((), what, ""))
    long_name = str(values.attrs.get("long_name", long_name))
    template = str(values.attrs.get("units", template))
    output_units = str(effect.attrs.get("output_units", ""))
    units = [_filled(template, output_units, units_of(effect, name)) for name in names]
    if len(set(units)) == 1:
        return names, with_units(long_name, units[0])
    return [with_units(name, unit) for name, unit in zip(names, units, strict=True)], long_name


def _filled(template: str, output_units: str, feature_units: str) -> str:
    """Units from their description in the schema; empty where they are not known."""
    for part, unit in (("output units", output_units), ("feature unit", feature_units)):
        if part in template:
            if not unit:
                return ""
            template = template.replace(part, unit)
    return "" if template == "1" else template


def _draw_forest(panel: Axes, forest: _Forest) -> None:
    place = np.arange(len(forest.names), dtype=np.float64)
    middle, half = bar(forest.interval)
    panel.axvline(0, color=REFERENCE, linewidth=0.6, zorder=0.5, gid=OURS)
    panel.errorbar(
        middle,
        place,
        xerr=half,
        fmt="none",
        ecolor=UNCERTAINTY,
        elinewidth=2.2,
        zorder=2,
        label=f"{100 * forest.level:g} % {EACH}\n{forest.made}",
    )
    if forest.chains is not None:
        panel.plot(
            forest.chains.T.ravel(),
            np.repeat(place + 0.25, len(forest.chains)),
            color=REFERENCE,
            marker="|",
            markersize=5,
            linestyle="none",
            zorder=1,
            label=CHAIN,
        )
    panel.plot(
        forest.point,
        place,
        color=AVERAGE,
        marker="o",
        markersize=4,
        linestyle="none",
        zorder=3,
        label=ESTIMATE if forest.chains is None else REPLICATES,
    )
    for number in np.flatnonzero(np.isnan(forest.point)):
        panel.annotate(
            forest.nothing[number],
            (0.5, place[number]),
            xycoords=("axes fraction", "data"),
            ha="center",
            va="center",
            fontsize="small",
            color="0.4",
        )
    labels = [textwrap.fill(name, LABEL_LENGTH) for name in forest.names]
    panel.set_yticks(place, labels, parse_math=False)
    panel.set_ylim(len(place) - 0.4, -0.6)
    panel.set_xlabel(textwrap.fill(forest.axis_label, 2 * LABEL_LENGTH), parse_math=False)
