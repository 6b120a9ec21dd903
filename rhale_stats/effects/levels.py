"""Effects of categorical features: the steps from one level to the next (math [46])."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rhale_stats.arrays import accumulate
from rhale_stats.arrays import categories as kernel
from rhale_stats.arrays import moments as sums
from rhale_stats.arrays.cell_moments import POWERS, CellMoments
from rhale_stats.arrays.moments import FloatArray, Moments
from rhale_stats.effects.labelled import FACTS, Method, effects_of
from rhale_stats.effects.rhale import CENTERINGS
from rhale_stats.local.levels import LABELS, LEVEL_FACTS
from rhale_stats.local.rows import columns, own_columns
from rhale_stats.schema.checks import check_local
from rhale_stats.schema.features import feature_names
from rhale_stats.schema.identity import as_attribute
from rhale_stats.schema.padding import Estimates
from rhale_stats.schema.parts import over_outputs

# --- effects -------------------------------------------------------------------------------------


@over_outputs
def level_ale(local: xr.Dataset, *, centering: str = "mean") -> xr.Dataset:
    """Effects of the steps between levels, their curve, and the covariance of both.

    As `rhale` returns it: ``bin`` is a step, ``edge`` a level. Also ``level_share``,
    ``n_level`` and ``n_level_effective`` (feature, edge), ``effect_cov`` (feature, bin, bin_other)
    and ``curve_cov`` (feature, edge, edge_other), ``average_effect_se`` (feature).
    """
    local = check_local(local)
    if centering not in CENTERINGS:
        raise ValueError(
            f"centering must be {' or '.join(map(repr, CENTERINGS))} for features with levels, "
            f"such as {feature_names(local)[0]!r}; got {centering}. Name the others in features=."
        )
    rows = [_estimates(local.isel(feature=[k]), centering) for k in range(local.sizes["feature"])]
    names = next((tuple(row) for row in rows if row), ESTIMATES)
    weighted = local["weight"].values > 0 if "weight" in local else np.ones(local.sizes["obs"])
    effect = effects_of(
        local,
        rows,
        names,
        FACTS | LEVEL_FACTS,
        Method(
            "ale", ("levels", ""), centering, int(np.sum(weighted > 0)), ("n_missing", "n_beyond")
        ),
    )
    stepped = [name for name, row in zip(feature_names(local), rows, strict=True) if row]
    columns_of = own_columns(local, stepped).items()
    effect.attrs |= as_attribute({name: its.fingerprint(k) for name, (its, k) in columns_of})
    max_levels, level = effect.sizes["edge"], local["level"].values
    # Some features of many may have fewer levels than the others.
    level = np.pad(level[:, :max_levels], ((0, 0), (0, max(max_levels - level.shape[1], 0))))
    return effect.assign_coords(
        {
            "level": (("feature", "edge"), level, local["level"].attrs),
            **{name: local[name].variable for name in LABELS if name != "level"},
        }
    )


ESTIMATES = (
    *("effect", "heterogeneity", "n_obs", "n_effective", "weight_share", "x_mean", "edge_value"),
    *("curve", "curve_std", "curve_std_sum", "curve_offset", "average_effect"),
    *("heterogeneity_index", "heterogeneity_output"),
    "moments",
    *("average_effect_se", "effect_cov", "curve_cov"),
    *("level_share", "n_level", "n_level_effective"),
)


def _check_occupied(local: xr.Dataset, total: FloatArray) -> None:
    """Raise ``ValueError`` where two neighbouring levels have no rows: their step is not known."""
    empty = np.flatnonzero((total[:-1] == 0) & (total[1:] == 0))
    if len(empty):
        name = feature_names(local)[0]
        raise ValueError(
            f"local must have rows at one of any two neighbouring levels; feature {name!r} has "
            f"none at levels {empty[0]} and {empty[0] + 1}. Select other rows, or make local "
            f"effects of these rows alone: ale_local_effects(model, X.iloc[rows], ...)."
        )


def _estimates(local: xr.Dataset, centering: str) -> Estimates:
    """Everything of one feature, by name; nothing of a single level."""
    n_levels = int(local["n_levels"].item())
    if n_levels < 2:
        return {}
    rows = columns(local.isel(obs=local["x"].values[:, 0] >= 0))
    assert rows.sides is not None
    code, (up, down), weight = rows.x[0].astype(np.int64), rows.sides[0], rows.weight
    n_steps = n_levels - 1
    _check_occupied(local, np.bincount(code, weight, n_levels).astype(np.float64))
    steps = kernel.steps(code, up, down, n_levels)
    bins, third, fourth = kernel.step_moments(
        steps, code, weight, n_steps, frequency=rows.frequency
    )
    w = np.ones(rows.n_rows) if weight is None else weight
    total = np.bincount(code, w, n_levels)
    squares = total if rows.frequency else np.bincount(code, w**2, n_levels)
    share = total / w.sum()
    n_level = total if rows.frequency else np.bincount(code, minlength=n_levels)
    heterogeneity, ones = kernel.spread_of(bins), np.ones(n_steps)
    curve, offset = kernel.curve(bins.mean, share, centering)
    influences = kernel.row_sums(steps, code, curve, weight, np.arange(rows.n_rows), rows.n_rows)
    size = w if rows.frequency else np.ones(rows.n_rows)
    loadings = kernel.loadings(share, np.arange(n_levels, dtype=np.float64), centering)
    n, everything = (
        sums.n_effective(bins),
        kernel.n_effective_of(weight, rows.n_rows, frequency=rows.frequency),
    )
    covariances = kernel.covariances(influences, loadings, size, n, population=centering == "mean")
    return {
        "effect": bins.mean,
        "heterogeneity": heterogeneity,
        "n_obs": bins.n_obs,
        "n_effective": n,
        "weight_share": bins.weight / w.sum(),
        "x_mean": bins.x_mean,
        "edge_value": np.arange(n_levels, dtype=np.float64),
        "curve": curve,
        "curve_std": accumulate.curve_std(heterogeneity, ones),
        "curve_std_sum": accumulate.curve_std_sum(heterogeneity, ones),
        "curve_offset": float(offset),
        "average_effect": float(np.average(bins.mean, weights=bins.weight)),
        "heterogeneity_index": accumulate.heterogeneity_index(bins.m2, bins.weight, ones),
        "heterogeneity_output": float(
            kernel.heterogeneity_output(heterogeneity**2, bins.weight, share, everything)
        ),
        "moments": _moments(bins, third, fourth),
        "average_effect_se": kernel.average_se(influences, size, everything),
        "effect_cov": covariances.effect,
        "curve_cov": covariances.curve,
        "level_share": share,
        "n_level": n_level,
        # A level without rows, as after a selection, gets no estimate.
        "n_level_effective": total**2 / np.where(squares > 0, squares, 1.0),
    }


def _moments(steps: Moments, third: FloatArray, fourth: FloatArray) -> FloatArray:
    """Moments of the steps, (step, moment); between levels there are no values to have a spread."""
    heads = steps.n_obs, steps.weight, steps.weight_sq, steps.x_mean, steps.mean
    products = {(0, 2): steps.m2, (0, 3): steps.weight * third, (0, 4): steps.weight * fourth}
    unknown = {power: np.full(len(third), np.nan) for power in POWERS if power[0]}
    return CellMoments.of_products(heads, products | unknown).table.T
