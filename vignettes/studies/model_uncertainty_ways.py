"""Intervals of one sample by every way of the study of model uncertainty, and what they cost."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from rhale_stats.arrays.moments import FloatArray
from rhale_stats.effects.ale import ale
from rhale_stats.effects.rhale import quiet_rhale
from rhale_stats.ensembles.refits import bootstrap_refit, cross_effects
from rhale_stats.generics.uncertainty import confband, confint, std_error
from rhale_stats.local.local_effects import local_effects
from rhale_stats.schema.in_bins import in_bins
from studies.model_uncertainty_models import (
    CURVE,
    LEARNERS,
    N_BINS,
    PLACES,
    PROCESSES,
    RULE,
    draw_wave,
    learned,
)

DELTA = ("rows", "parameters", "both")
REFITS = ("refits, percentile", "refits, normal")
CROSSED = "cross-fitting"
WAYS = (*DELTA, *REFITS, CROSSED)
BAND_DRAWS = 2000
# Edges are the even points of the grid of refits, and middles of bins the odd ones.
GRID = 2 * N_BINS + 1


class Sample(NamedTuple):
    """Estimates and intervals by way and place, bands of the curve by way, and seconds by way."""

    estimate: FloatArray
    low: FloatArray
    high: FloatArray
    band: FloatArray
    seconds: FloatArray

    @classmethod
    def empty(cls) -> Sample:
        """Nothing known."""
        size, band = (len(WAYS), len(PLACES)), (len(WAYS), N_BINS + 1, 2)
        estimate, low, high = (np.full(size, np.nan) for _ in range(3))
        return cls(estimate, low, high, np.full(band, np.nan), np.full(len(WAYS), np.nan))

    def put(self, way: str, found: Mapping[str, FloatArray], seconds: float) -> None:
        """Store what one way found: an estimate and ends at the places, and a band."""
        k = WAYS.index(way)
        self.estimate[k], self.seconds[k] = found["estimate"], seconds
        self.low[k], self.high[k] = found["ends"].T
        if "band" in found:
            self.band[k] = found["band"]


def of_bins(effect: xr.Dataset) -> dict[str, FloatArray]:
    """Estimates and intervals of an effect in the fixed bins."""
    row = in_bins(effect).isel(feature=0)
    names = ("effect", "curve", "heterogeneity")
    found = {
        "estimate": np.concatenate([row[name].values for name in names]),
        "ends": np.concatenate([row[f"{name}_ci"].values for name in names]),
    }
    if "curve_band" in row:
        found["band"] = row["curve_band"].values
    return found


def on_grid(ensemble: xr.Dataset) -> dict[str, FloatArray]:
    """The same from effects on a grid of edges and middles of the bins."""
    row = ensemble.isel(feature=0)
    at = {"effect": slice(1, None, 2), "curve": slice(0, None, 2)}
    at["heterogeneity"] = at["effect"]
    found = {
        "estimate": np.concatenate(
            [row[f"{name}_estimate"].values[points] for name, points in at.items()]
        ),
        "ends": np.concatenate([row[f"{name}_ci"].values[points] for name, points in at.items()]),
    }
    if "curve_band" in row:
        found["band"] = row["curve_band"].values[at["curve"]]
    return found


def of_formula(name: str, n: int, rng: np.random.Generator) -> Sample:
    """The delta method: rows, parameters, both."""
    process, sample = PROCESSES[name], Sample.empty()
    table = process.draw(n, rng)
    fitted, X = process.fit(table), table[["x1", "x2"]]
    local = local_effects(fitted, X, features="x1", progress=False)
    effect = quiet_rhale(local, RULE)
    groups = table["group"] if process.robust == "cluster" else None
    for way in DELTA:
        start = process_time()
        found = std_error(effect, local, groups=groups, model=fitted, X=X, uncertainty=way)
        spent = process_time() - start
        found = confint(found)
        if way != "parameters":
            found = confband(found, n_draws=BAND_DRAWS, rng=rng)
        sample.put(way, of_bins(found), spent)
    return sample


def of_learner(name: str, n: int, n_resamples: int, rng: np.random.Generator) -> Sample:
    """Rows alone, refits and cross-fitting of ALE."""
    sample, table = Sample.empty(), draw_wave(n, rng)

    def fit(rows: FloatArray) -> Any:
        return learned(LEARNERS[name], rows)

    start = process_time()
    effect = std_error(_ale(fit(table), table))
    spent = process_time() - start
    sample.put("rows", of_bins(confband(confint(effect), n_draws=BAND_DRAWS, rng=rng)), spent)
    asked: dict[str, Any] = {"n_grid": GRID, "n_jobs": 1, "progress": False, "rng": rng}
    start = process_time()
    refits = bootstrap_refit(
        lambda rows: _ale(fit(rows), rows), table, n_resamples=n_resamples, **asked
    )
    spent = process_time() - start
    refits = confband(refits, n_draws=BAND_DRAWS, rng=rng)
    for way in REFITS:
        sample.put(way, on_grid(confint(refits, method=way.split(", ")[1])), spent)
    start = process_time()
    crossed = cross_effects(fit, _ale, table, n_repeats=2, **asked)
    spent = process_time() - start
    crossed = confband(confint(crossed), n_draws=BAND_DRAWS, rng=rng)
    sample.put(CROSSED, on_grid(crossed), spent)
    return sample


def _ale(model: Any, table: FloatArray) -> xr.Dataset:
    """ALE of the first column in the fixed bins, by differences: right for steps as well."""
    return ale(model, table[:, :-1], features=0, bins=RULE, progress=False)


def hits(sample: Sample, truth: FloatArray) -> dict[str, FloatArray]:
    """Whether intervals hold the truth (way, place), and bands the whole curve (way)."""
    known = np.isfinite(sample.low)
    inside = (sample.low <= truth) & (truth <= sample.high)
    curve = truth[CURVE]
    held = (sample.band[..., 0] <= curve) & (curve <= sample.band[..., 1])
    any_band = np.isfinite(sample.band).any(axis=(1, 2))
    return {
        "covered": np.where(known, inside, np.nan),
        "band": np.where(any_band, held.all(axis=1), np.nan),
    }


# What it costs -----------------------------------------------------------------------------------

N_COST, LARGE, COLUMNS = 10_000, 100_000, 20


def costs(quick: bool) -> dict[str, float]:
    """Seconds of the delta method and of 100 refits, and of a large table."""
    n, few = (500, 2) if quick else (N_COST, 10)
    found: dict[str, float] = {}
    for name in ("least squares", "Poisson"):
        process = PROCESSES[name]
        table = process.draw(n, np.random.default_rng(0))
        fitted, X = process.fit(table), table[["x1", "x2"]]
        local = local_effects(fitted, X, features="x1", progress=False)
        effect = quiet_rhale(local, RULE)

        def refitted(rows: Any, process: Any = process) -> xr.Dataset:
            own = local_effects(process.fit(rows), rows[["x1", "x2"]], features="x1")
            return quiet_rhale(own, RULE)

        delta = [_of_delta(effect, local, fitted, X) for _ in range(3)]
        start = perf_counter()
        bootstrap_refit(refitted, table, n_resamples=few, chains=1, n_jobs=1, progress=False, rng=0)
        refits = perf_counter() - start
        found[f"{name}: delta method"] = min(delta)
        # The estimate from all rows is one more refit.
        found[f"{name}: 100 refits"] = refits / (few + 1) * 100
    found["10^5 rows, 20 parameters"] = _large(5000 if quick else LARGE)
    return found


def _of_delta(effect: xr.Dataset, local: xr.Dataset, fitted: Any, X: Any) -> float:
    start = perf_counter()
    std_error(effect, local, model=fitted, X=X)
    return perf_counter() - start


def _large(n: int) -> float:
    """Seconds of the errors of one feature of a logit with 20 parameters."""
    import statsmodels.api as sm

    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(n), rng.uniform(-1, 1, (n, COLUMNS - 1))])
    y = rng.uniform(size=n) < 1 / (1 + np.exp(-X[:, 1] - X[:, 2]))
    fitted = sm.GLM(y.astype(float), X, family=sm.families.Binomial()).fit()
    local = local_effects(fitted, X, features=1, progress=False)
    effect = quiet_rhale(local, RULE)
    return _of_delta(effect, local, fitted, X)


COSTS = (
    *("least squares: delta method", "least squares: 100 refits"),
    *("Poisson: delta method", "Poisson: 100 refits"),
    "10^5 rows, 20 parameters",
)
