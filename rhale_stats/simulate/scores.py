"""Distance of an estimate from a truth: the paper's scores, and scores along the axis."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import xarray as xr

from rhale_stats.arguments.words import shown
from rhale_stats.arrays import overlap
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.schema.checks import check_curves, check_effect
from rhale_stats.schema.feature_result import FeatureResult, each_feature, one_feature
from rhale_stats.schema.features import feature_names, position_of
from rhale_stats.schema.layout import MOMENTS
from rhale_stats.schema.parts import over_outputs
from rhale_stats.schema.validation import validated
from rhale_stats.schema.variables import EFFECT_UNITS, OUTPUT_UNITS, software

T = TypeVar("T", xr.Dataset, xr.DataArray)
# An exact truth has cells; another one is an effect of many rows.
CELL_EFFECT = "cell_effect"
# Name -> (long_name, units).
SCORES = {
    "L_mu": ("mean over bins of |mu - effect|", EFFECT_UNITS),
    "L_sigma": ("mean over bins of |sigma - heterogeneity|", EFFECT_UNITS),
    "L_rho": ("mean over bins of the root of the bin error", EFFECT_UNITS),
    "ISE_mu": ("mean along the axis of |mu(z) - effect|", EFFECT_UNITS),
    "ISE_sigma": ("mean along the axis of |sigma(z) - heterogeneity|", EFFECT_UNITS),
    "curve_max_error": ("largest distance of the curves along the axis", OUTPUT_UNITS),
    "curve_mean_error": ("mean distance of the curves along the axis", OUTPUT_UNITS),
    "n_missing": ("bins without an estimate", "bins"),
}


@validated
@over_outputs
def mae(effect: xr.Dataset, truth: xr.Dataset) -> xr.Dataset:
    r"""Errors of an effect against a known truth: the paper's scores, and scores along the axis.

    Parameters
    ----------
    effect : Dataset
        Result of `rhale`. With a further dimension ``replicate``, each replicate is scored.
    truth : Dataset
        ``simulator.truth(effect)``, or the result of `dense_truth`: effects in bins that are so
        narrow that they can replace the truth. It has the dimension ``replicate`` if the truth
        differs between replicates.

    Returns
    -------
    Dataset
        Scores over (feature), and over ``replicate`` if ``effect`` has it. On the bins of the
        effect, math [34]: ``L_mu`` and ``L_sigma`` (paper, Eq. 18 and 19), the mean absolute errors
        of effect and heterogeneity, and ``L_rho``, the mean root of the true bin error, that is, of
        the variation of the true effect within bins (in linear bins, about the best line). Along
        the axis, math [35]: ``ISE_mu`` and ``ISE_sigma``, mean absolute errors of effect and
        heterogeneity (not squared errors, in spite of the names), and ``curve_max_error`` and
        ``curve_mean_error``. ``n_missing`` counts bins without an estimate of effect or
        heterogeneity; scores that need such a bin are NaN. All scores of a constant feature are
        NaN.

    Raises
    ------
    KeyError
        A feature of ``effect`` is not in ``truth``.
    ValueError
        The truth does not cover the bins of ``effect``.
    TypeError
        ``effect`` or ``truth`` is not a Dataset.

    Notes
    -----
    A dense truth is averaged over each bin, with cells weighted by their overlap (math [33]); the
    heterogeneity is averaged as a variance. A dense truth has Monte-Carlo noise, which increases
    the bin error. This part is subtracted. Drop ``effect_se`` from the truth to keep it in, as the
    authors do.

    References
    ----------
    Gkolemis et al. (2023), *RHALE*, Eq. 18 and 19.

    Examples
    --------
    >>> import rhale_stats as rs
    >>> example = rs.simulate.Quadratic(sd=0.5)
    >>> X = example.sample(500, rng=0)
    >>> local = rs.local_effects(None, X, jacobian=example.jacobian, features="x1")
    >>> effects = [rs.rhale(local, bins=rs.EqualWidthBins(k)) for k in (2, 20)]
    >>> scores = [rs.simulate.mae(effect, example.truth(effect)) for effect in effects]
    >>> [round(float(score["L_mu"][0]), 2) for score in scores]  # two bins look better ...
    [0.03, 0.08]
    >>> [round(float(score["ISE_mu"][0]), 2) for score in scores]  # ... and are not
    [1.12, 0.13]
    """
    effect = check_effect(effect)
    truth = check_curves(truth, "truth", "simulator.truth(effect) or dense_truth")
    if "replicate" in effect.dims:
        each = []
        for number in range(effect.sizes["replicate"]):
            true = truth.isel(replicate=number) if "replicate" in truth.dims else truth
            each.append(mae(effect.isel(replicate=number), true))
        return xr.concat(each, effect["replicate"])
    true_names, scores = feature_names(truth), []
    for row in each_feature(effect):
        true_row = one_feature(truth, position_of(row.name, true_names))
        scores.append(_scores(row, true_row) if row.sizes["bin"] else dict.fromkeys(SCORES, np.nan))
    variables = {
        name: ("feature", [score[name] for score in scores], {"long_name": what, "units": units})
        for name, (what, units) in SCORES.items()
    }
    return xr.Dataset(
        variables,
        {"feature": effect["feature"].variable},
        {
            "method": "mae",
            "truth": str(truth.attrs.get("method", "unknown")),
            "bin_rule": str(effect.attrs.get("bin_rule", "unknown")),
            "software": software(),
        },
    )


@validated
def mcse(samples: T, dim: str = "replicate") -> T:
    """Monte-Carlo standard error of the mean over ``dim``: standard deviation / sqrt(number).

    Parameters
    ----------
    samples : Dataset or DataArray
        Independent replicates along ``dim``.
    dim : str, default "replicate"
        The dimension of replicates.

    Returns
    -------
    Dataset or DataArray
        Standard errors without ``dim``, and without variables that do not have it. They are NaN if
        a replicate is NaN, because the mean over the other replicates is another quantity.

    Raises
    ------
    ValueError
        ``samples`` does not have this dimension, or has fewer than two replicates.

    Examples
    --------
    >>> import xarray as xr
    >>> import rhale_stats as rs
    >>> float(rs.simulate.mcse(xr.DataArray([1.0, 2.0, 3.0, 6.0], dims="replicate")).round(4))
    1.0801
    """
    if not isinstance(samples, xr.Dataset | xr.DataArray):
        raise TypeError(f"samples must be a Dataset or a DataArray; got {shown(samples)}.")
    if dim not in samples.dims:
        raise ValueError(
            f"dim must be a dimension of samples, one of "
            f"{', '.join(repr(str(d)) for d in samples.dims) or 'none'}; got {dim!r}."
        )
    if isinstance(samples, xr.Dataset):
        samples = samples[[name for name in samples.data_vars if dim in samples[name].dims]]
    n = samples.sizes[dim]
    if n < 2:
        raise ValueError(f"samples must hold at least two replicates along {dim!r}; got {n}.")
    out: T = samples.std(dim, ddof=1, skipna=False) / np.sqrt(n)
    return out


def _scores(row: FeatureResult, truth: FeatureResult) -> dict[str, float]:
    """All scores of one feature."""
    edges = row.bin_edges
    cells = _cells(truth, edges)
    slope = row.slopes
    own_bins = (
        "bin_error" in truth
        and np.array_equal(truth.bin_edges, edges)
        and np.array_equal(truth.slopes != 0, slope != 0)
    )
    if own_bins:
        names = ("effect", "heterogeneity", "bin_error")
        mean, sigma, error = (truth[name].values for name in names)
    else:
        mean, variance, error = overlap.over_bins(cells, edges, slope != 0)
        sigma = np.sqrt(variance)
    effect, spread = row["effect"].values, row["heterogeneity"].values
    # The curve has kinks at the edges of its own cells, and may be known on some of them only.
    bends = row.curve.edges
    bends = bends[(bends > edges[0]) & (bends < edges[-1])]
    grid = overlap.union_grid(cells.edges, np.union1d(edges, bends))
    largest, average = overlap.curve_distance(
        grid, _true_curve(row, truth, cells, grid), row.curve.evaluate(grid)
    )
    return {
        "L_mu": float(np.mean(np.abs(mean - effect))),
        "L_sigma": float(np.mean(np.abs(sigma - spread))),
        "L_rho": float(np.mean(np.sqrt(np.maximum(error, 0.0)))),
        "ISE_mu": overlap.step_distance(cells.edges, cells.mean, edges, effect, slope),
        "ISE_sigma": overlap.step_distance(cells.edges, np.sqrt(cells.variance), edges, spread),
        "curve_max_error": largest,
        "curve_mean_error": average,
        "n_missing": float(np.sum(np.isnan(effect) | np.isnan(spread))),
    }


def _cells(truth: FeatureResult, edges: FloatArray) -> overlap.TrueCells:
    """The truth along the axis: its cells, or the narrow bins of a dense truth."""
    name = str(truth["feature"].values)
    if CELL_EFFECT in truth:
        places = truth["cell_value"].values
        mean, sigma = (truth[what].values for what in (CELL_EFFECT, "cell_heterogeneity"))
        noise, share = np.zeros((2, len(mean)))
    else:
        if truth.slopes.any():
            raise ValueError(
                f"truth must be constant in its bins; for feature {name!r} it has linear ones. "
                f"Make it with many equal-width bins, as dense_truth does."
            )
        places, share = truth.bin_edges, truth.weight_share
        mean, sigma = (truth[what].values for what in ("effect", "heterogeneity"))
        noise = np.zeros(len(mean))
        if "effect_se" in truth:
            noise = truth["effect_se"].values ** 2
    if not len(places):
        raise ValueError(f"truth must vary in feature {name!r}; there it is constant.")
    # Rows of a sample may lie a little outside the range of the rows of a dense truth.
    margin = float(np.diff(places).max())
    if edges[0] < places[0] - margin or edges[-1] > places[-1] + margin:
        raise ValueError(
            f"truth must reach over the bins of effect; for feature {name!r} it covers "
            f"[{places[0]:.6g}, {places[-1]:.6g}] and they [{edges[0]:.6g}, {edges[-1]:.6g}]. Make "
            f"the truth from rows with a wider range."
        )
    # Cells without rows outside the bins, as in the tails, are not needed.
    needed = slice(
        max(int(np.searchsorted(places, edges[0], side="right")) - 1, 0),
        min(int(np.searchsorted(places, edges[-1], side="left")), len(mean)),
    )
    reach = places[needed.start : needed.stop + 1].copy()
    reach[0], reach[-1] = min(reach[0], edges[0]), max(reach[-1], edges[-1])
    return overlap.TrueCells(reach, mean[needed], sigma[needed] ** 2, noise[needed], share[needed])


def _true_curve(
    row: FeatureResult, truth: FeatureResult, cells: overlap.TrueCells, grid: FloatArray
) -> FloatArray:
    """The true curve at grid points, with the centring of the effect."""
    curve = overlap.accumulated_at(cells, grid)
    edges = row.bin_edges
    own_curve = row.curve
    finite_edges = own_curve.edges[np.isfinite(own_curve.values)]
    start, end = finite_edges[0], finite_edges[-1]
    centering = str(row.attrs["centering"])
    if CELL_EFFECT in truth:
        bin_edges = truth.bin_edges
        whole = (bin_edges[0], bin_edges[-1]) == (edges[0], edges[-1]) == (start, end)
        same = whole or np.array_equal(bin_edges, edges)
        if same and truth.attrs["centering"] == centering:
            return np.asarray(curve + float(truth["curve"].values[0]))
    inside = (grid >= start) & (grid <= end)
    if centering == "start":
        return np.asarray(curve - curve[inside][0])
    weight = np.diff(grid[inside])
    if centering == "mean":
        if MOMENTS not in truth:
            raise ValueError(
                f"truth must be that of the bins of effect for a curve centred at its mean; for "
                f"feature {str(row['feature'].values)!r} it has another axis or centring. Pass "
                f"simulator.truth(effect)."
            )
        weight = overlap.mass_between(cells.edges, cells.share, grid[inside])
        if not weight.sum() > 0:  # no rows of the truth where the curve is known
            return np.full(len(grid), np.nan)
    middle = (curve[inside][1:] + curve[inside][:-1]) / 2
    return np.asarray(curve - np.sum(weight * middle) / weight.sum())
