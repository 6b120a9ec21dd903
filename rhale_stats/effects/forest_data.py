"""One number a feature with its interval, the largest first."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arrays.moments import FloatArray
from rhale_stats.effects.intervals import confint
from rhale_stats.inference import meaning
from rhale_stats.inference.draws import draws_of
from rhale_stats.inference.parts import ROWS, with_rows_alone
from rhale_stats.schema.feature_result import has_moments
from rhale_stats.schema.variables import in_order

# What depends on the order of levels, and says nothing where that is arbitrary.
OF_THE_ORDER = ("average_effect", "heterogeneity_index", "heterogeneity_output")


class ForestData(NamedTuple):
    """Numbers (feature,) with intervals (end, feature), and from replicates (chain, feature).

    ``variable`` is what they are of, and ``order`` the places of features in it. ``unordered`` are
    features without a number because their levels have no order. ``method`` and ``source`` say how
    the intervals are made, and of what. ``rows`` are those of the rows alone, where the intervals
    hold the model too.
    """

    variable: xr.DataArray
    order: NDArray[np.intp]
    point: FloatArray
    interval: FloatArray
    chains: FloatArray | None
    unordered: NDArray[np.bool_]
    method: str
    source: str
    rows: FloatArray | None


def forest_data(result: object, what: str, level: float) -> ForestData:
    """Numbers of an effect, of its sizes, or of replicates, whoever made them."""
    if not isinstance(result, xr.Dataset):
        raise TypeError(
            f"effect must be a Dataset that rhale, effect_sizes or bootstrap returned; got "
            f"{type(result).__name__}."
        )
    effect = in_order(result)
    if f"{what}_ci" not in effect and has_moments(effect):
        effect = confint(effect, level=level)
    values, chains, rows = _per_feature(effect, what), None, None
    if "draw" in values.dims:
        method, source = "quantiles of the replicates", str(effect.attrs.get("source", "rows"))
        point, interval, chains = _replicate_quantiles(effect, what, level)
    else:
        point = np.asarray(values.values, dtype=np.float64)
        stored, of_rows = _interval_of(effect, what, level)
        if of_rows is not None:
            rows = np.asarray(of_rows.transpose("ci_bound", ...).values, dtype=np.float64)
        interval = np.asarray(stored.transpose("ci_bound", ...).values, dtype=np.float64)
        method = str(stored.attrs.get("method", "confidence interval"))
        source = str(stored.attrs.get("source", "rows"))
    if "feature_kind" in effect.coords:
        point = np.where(effect["feature_kind"].values == "constant", np.nan, point)
    unordered = meaning.is_unordered(effect) & (what in OF_THE_ORDER)
    point = np.where(unordered, np.nan, point)
    interval = np.where(np.isnan(point), np.nan, interval)
    rows = None if rows is None else np.where(np.isnan(point), np.nan, rows)
    order = np.argsort(-np.abs(point), kind="stable")  # NaN comes last
    if chains is not None:
        chains = np.where(unordered, np.nan, chains)[:, order]
    rows = None if rows is None else rows[:, order]
    return ForestData(
        *(values, order, point[order], interval[:, order], chains, unordered[order]),
        *(method, source, rows),
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
        with_intervals = [
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
            f"{', '.join(with_intervals) or 'none'}. Sizes are in effect_sizes(effect, boot)."
        )
    return effect[what]


def _replicate_quantiles(
    boot: xr.Dataset, what: str, level: float
) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Medians and outer quantiles over all chains, and of several chains the median of each."""
    with warnings.catch_warnings():
        # A constant feature has no replicates.
        warnings.filterwarnings("ignore", "All-NaN slice", RuntimeWarning)
        shares = [(1 - level) / 2, 0.5, (1 + level) / 2]
        low, middle, high = np.nanquantile(draws_of(boot, what), shares, axis=0)
        chains = None
        if boot.sizes["chain"] > 1:
            of_chains = boot[what].transpose("chain", "draw", "feature").values
            chains = np.nanmedian(of_chains, axis=1)
    return middle, np.stack([low, high]), chains


def _interval_of(
    effect: xr.Dataset, what: str, level: float
) -> tuple[xr.DataArray, xr.DataArray | None]:
    """Interval that a Dataset has, or that `confint` makes at this level; and of the rows alone."""

    def both(dataset: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray | None]:
        return dataset[f"{what}_ci"], with_rows_alone(dataset).get(f"{what}{ROWS}")

    if f"{what}_ci" not in effect:
        raise ValueError(
            f"what must have an interval; effect holds {what!r} without one. Call confint(effect), "
            f"or draw boot = bootstrap(local, effect), or effect_sizes(effect, boot)."
        )
    stored = effect[f"{what}_ci"]
    other = float(stored.attrs.get("ci_prob", np.nan))
    if not np.isclose(other, level) and has_moments(effect):
        remade = confint(effect, level=level)
        if np.isclose(remade[f"{what}_ci"].attrs["ci_prob"], level):
            return both(remade)
    if not np.isclose(other, level):
        raise ValueError(
            f"level must be {other:g}, that of the intervals of {what!r} in effect; got {level:g}. "
            f"Make them again with that level, or draw the bootstrap itself."
        )
    return both(effect)
