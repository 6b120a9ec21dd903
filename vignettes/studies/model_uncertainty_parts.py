"""What the error of a curve is made of: bias and variance of the model, and of the estimate.

Heiß, Bögel, Bischl and Casalicchio (2026), *Analyzing Error Sources in Global Feature Effect
Estimation*, arXiv 2603.15057. The effect of a fitted model in the population of rows is computed
on rows of a Sobol sequence.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from scipy.stats import qmc

from rhale_stats.arrays.moments import FloatArray
from rhale_stats.bins.rules import EqualWidthBins, QuantileBins
from rhale_stats.effects.ale import ale
from rhale_stats.effects.rhale import quiet_rhale
from rhale_stats.local.local_effects import local_effects
from rhale_stats.models.probes import JumpWarning
from rhale_stats.profiles.pdp import pdp
from studies.model_uncertainty_models import (
    DECOMPOSED,
    JUMPS,
    draw_polynomial,
    learned,
    polynomial,
)

GRID = np.linspace(-0.8, 0.8, 9)
KINDS = ("PDP", "ALE", "RHALE")
STRATEGIES = ("training rows", "held-out rows", "cross-validation")
N_FOLDS = 5
# Intervals of ALE, with 6 of 60 held-out rows in each.
ALE_BINS, FINE_BINS = 10, 40
PARTS = ("model bias²", "estimation bias²", "model variance", "estimation variance", "MSE")


def truth() -> FloatArray:
    """The curve of x1, 0 on average over the grid; PDP and ALE agree for independent features."""
    return _centred(polynomial(GRID, np.zeros(1)))


def _centred(curve: FloatArray) -> FloatArray:
    return np.asarray(curve - curve.mean())


def population() -> FloatArray:
    """Rows that represent the population."""
    return np.asarray(2 * qmc.Sobol(3, scramble=True, rng=0).random(2**11) - 1)


def _pdp(model: Any, X: FloatArray) -> FloatArray:
    profile = pdp(model, X, features=0, grid=GRID, progress=False)
    return _centred(profile["curve"].isel(feature=0).values)


def _along(effect: xr.Dataset) -> FloatArray:
    row = effect.isel(feature=0)
    at, curve = row["edge_value"].values, row["curve"].values
    there = np.isfinite(at) & np.isfinite(curve)
    return _centred(np.interp(GRID, at[there], curve[there]))


def _ale(model: Any, X: FloatArray, n_bins: int = ALE_BINS) -> FloatArray:
    return _along(ale(model, X, features=0, bins=QuantileBins(n_bins), progress=False))


def _ale_of_population(model: Any, X: FloatArray) -> FloatArray:
    return _along(ale(model, X, features=0, bins=EqualWidthBins(FINE_BINS), progress=False))


def _rhale(model: Any, X: FloatArray, jumps: bool) -> FloatArray:
    """With its own bins; slopes across cells where the model has steps."""
    how = "finite_difference" if jumps else "central_difference"
    with warnings.catch_warnings():
        # Derivatives of a network are wanted, however steep it is between two rows.
        warnings.simplefilter("ignore", JumpWarning)
        local = local_effects(model, X, features=0, method=how, progress=False)
    effect = quiet_rhale(local)
    # The curve at the edges of its cells, which are finer than the bins.
    row = effect.isel(feature=0)
    at, curve = row["edge_value"].values, row["curve"].values
    there = np.isfinite(at) & np.isfinite(curve)
    return _centred(np.interp(GRID, at[there], curve[there]))


def estimated(model: Any, X: FloatArray, jumps: bool) -> FloatArray:
    """Curves (kind, grid) on these rows."""
    return np.stack([_pdp(model, X), _ale(model, X), _rhale(model, X, jumps)])


def in_population(model: Any, X: FloatArray) -> FloatArray:
    """The same for the population, where RHALE and ALE are one."""
    of_ale = _ale_of_population(model, X)
    return np.stack([_pdp(model, X), of_ale, of_ale])


def curves(name: str, n: int, rng: np.random.Generator) -> dict[str, FloatArray]:
    """Curves (strategy, kind, grid) by estimate, and those of the same models in the population."""
    make, jumps, everyone = DECOMPOSED[name], name in JUMPS, population()
    table = draw_polynomial(n, rng)
    folds = np.array_split(rng.permutation(n), N_FOLDS)
    models, found = [], []
    for held_out in folds:
        model = learned(make, np.delete(table, held_out, axis=0))
        models.append(in_population(model, everyone))
        found.append(estimated(model, table[held_out, :-1], jumps))
        if len(models) == 1:
            seen = estimated(model, np.delete(table, held_out, axis=0)[:, :-1], jumps)
    return {
        "estimated": np.stack([seen, found[0], np.mean(found, axis=0)]),
        "in_population": np.stack([models[0], models[0], np.mean(models, axis=0)]),
    }


def parts(estimate: FloatArray, of_models: FloatArray) -> FloatArray:
    """The parts of the mean squared error of curves (replicate, grid), means over the grid.

    Squares of biases are unbiased: without the part of the Monte-Carlo error.
    """
    error, n = estimate - of_models, len(estimate)
    variances = [values.var(axis=0, ddof=1) for values in (of_models, error)]
    biases = [of_models.mean(axis=0) - truth(), error.mean(axis=0)]
    squares = [bias**2 - variance / n for bias, variance in zip(biases, variances, strict=True)]
    mse = ((estimate - truth()) ** 2).mean(axis=0)
    return np.array([np.mean(one) for one in (*squares, *variances, mse)])


def with_error(statistic: Callable[..., FloatArray], *values: FloatArray) -> tuple[Any, Any]:
    """A statistic of replicates and its jackknife error."""
    n = len(values[0])
    left_out = np.stack(
        [statistic(*(np.delete(each, k, axis=0) for each in values)) for k in range(n)]
    )
    return statistic(*values), np.sqrt((n - 1) * left_out.var(axis=0))


def parts_table(results: xr.Dataset) -> pd.DataFrame:
    """A line a learner, curve and strategy."""
    lines = []
    for k in np.flatnonzero(results["block"].values == "parts"):
        one = results.isel(scenario=k)
        there = one["estimated"].notnull().all(("strategy", "kind", "grid")).values
        if there.sum() < 3:
            continue
        for kind in KINDS:
            for strategy in STRATEGIES:
                both = [
                    one[name].sel(strategy=strategy, kind=kind).values[there]
                    for name in ("estimated", "in_population")
                ]
                value, error = with_error(parts, *both)
                lines.append(
                    {
                        "model": str(one["model"].values),
                        "N": int(one["n"]),
                        "curve": kind,
                        "rows": strategy,
                        **dict(zip(PARTS, value, strict=True)),
                        **{f"{part} ±": e for part, e in zip(PARTS, error, strict=True)},
                    }
                )
    return pd.DataFrame(lines)
