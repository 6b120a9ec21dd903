"""Tests of the effects of refitted models (math [87])."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rhale_stats.arrays import intervals
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.ensembles.intervals import largest_of, with_errors
from rhale_stats.ensembles.labelled import (
    FOLDS,
    Origin,
    centre_of,
    check_ensemble,
    estimated,
    joint_of,
    mapped,
    members_of,
    names_of,
    one_row,
    origin_of,
)
from rhale_stats.ensembles.variances import deviations, error_of
from rhale_stats.inference.results import CONSTANT, labelled_test
from rhale_stats.schema.features import feature_names

NULLS = {
    "zero": "the effect is zero everywhere",
    "constant": "the effect is the same everywhere, so that the curve is a straight line",
}
# Draws of the largest error of means over folds, and their seed: a test has no rng.
N_DRAWS, SEED = 20_000, 0
# Parts of the axis whose mean effects are tested.
N_PARTS = 5
NO_ERROR = "one point of the grid has no standard error, or there is none to compare"


def wald_test(
    ensemble: xr.Dataset, null: str, method: str, adjust: str, local: object
) -> xr.Dataset:
    """`wald_test` by the largest standardised effect along the grid."""
    ensemble = with_errors(check_ensemble(ensemble))
    origin = origin_of(ensemble)
    if not origin.is_tested:
        raise ValueError(
            f"effect must hold refits or folds for a test; this one holds {origin.kind}, which "
            f"have no distribution under a null hypothesis. Use confband(effect) and see where its "
            f"band excludes 0."
        )
    if null not in NULLS:
        raise ValueError(
            f"null must be one of 'zero', 'constant' for results of several models; got {null!r}. "
            f"Heterogeneity is of the rows: wald_test(rhale(local), 'homogeneous')."
        )
    if method != "box" or local is not None:
        raise ValueError(
            "method and local must be left out for results of several models, whose statistic is "
            "the largest effect over its standard error."
        )
    if "effect" not in estimated(ensemble):
        raise ValueError(
            "effect must hold effects for a test; profiles of several models have curves only. "
            "Use confband(effect)."
        )
    names = feature_names(ensemble)
    tests = [_tested(ensemble, name, null, origin) for name in names]
    statistic, p_value, reason = zip(*tests, strict=True)
    return labelled_test(
        names_of(ensemble),
        {
            "statistic": np.array(statistic),
            "p_value": np.array(p_value),
            "reason": np.array(reason),
        },
        adjust,
        null=NULLS[null],
        source=origin.source,
        test="largest standardised effect along the axis",
    )


def _tested(ensemble: xr.Dataset, name: str, null: str, origin: Origin) -> tuple[float, float, str]:
    """Statistic, p-value, and why there is none, of one feature."""
    row = one_row(ensemble, name)
    if not len(row.z):
        return np.nan, np.nan, CONSTANT
    # Over the points that all members reach.
    values = members_of(row.dataset, "effect")[:, 0]
    sound = np.isfinite(values).any(axis=1)
    common = np.isfinite(values[sound]).all(axis=0)
    if not common.any():
        return np.nan, np.nan, NO_ERROR
    # Effects at single points are too noisy to tell: means over parts of the axis.
    parts = np.array_split(np.flatnonzero(common), min(N_PARTS, int(common.sum())))
    weight = np.array([np.isin(np.arange(len(row.z)), part) / len(part) for part in parts])
    if null == "constant":
        weight = weight - common / common.sum()
    moved = mapped(row, "effect", weight)
    error = error_of(moved, "effect")
    return largest_test(moved, np.sqrt(error.variance[0]), np.asarray(error.degrees)[0], origin)


def largest_test(
    ensemble: xr.Dataset, se: FloatArray, degrees: FloatArray, origin: Origin
) -> tuple[float, float, str]:
    """The largest |effect| of one feature over its standard error, compared with its distribution.

    Of refits that is the distribution of the members about their mean; of folds that of correlated
    errors with Student's degrees. Up to rounding there is nothing to test.
    """
    centre = centre_of(ensemble, "effect")[0]
    least = 1e-9 * float(np.nanmax(np.abs(centre), initial=0.0))
    used = np.isfinite(centre) & (se > least)
    if not used.any():
        return np.nan, np.nan, NO_ERROR
    scaled = np.abs(centre[used]) / se[used]
    statistic = float(scaled.max())
    if origin.kind != FOLDS:
        largest = largest_of(members_of(ensemble, "effect")[:, 0][:, used])
        largest = largest[np.isfinite(largest)]
        return statistic, float((1 + np.sum(largest >= statistic)) / (1 + len(largest))), ""
    joint = joint_of(deviations(ensemble, "effect")[:, 0][:, used], se[used], degrees[used])
    score = float(intervals.normal_score(scaled, degrees[used]).max())
    rng = np.random.default_rng(SEED)
    p_value = intervals.largest_deviation_pvalue(
        joint.covariance, score, joint.degrees, N_DRAWS, rng
    )
    return statistic, p_value, ""
