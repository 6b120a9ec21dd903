"""What the package claims, each as a function of samples of a process: covered or rejected.

A function here gets a process, random numbers and a number of samples, and returns by claim, for
every sample, the share of the points whose interval holds the target, whether a band does, or
whether a test rejects at 5 %. What is missing is not covered, and not rejected.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import xarray as xr

from rhale_stats.bins.adaptive import AdaptiveBins
from rhale_stats.bins.rules import GivenBins
from rhale_stats.effects.hypotheses import equivalence_test
from rhale_stats.effects.rhale import quiet_rhale
from rhale_stats.effects.tables import tail_notes
from rhale_stats.generics.hypotheses import compare, wald_test
from rhale_stats.generics.uncertainty import bootstrap, confband, confint, std_error
from rhale_stats.h_statistics.statistic import h_statistic
from rhale_stats.profiles.dependence import m_plot, shap_dependence
from rhale_stats.profiles.pdp import ice, pdp
from rhale_stats.schema.in_bins import in_bins
from rhale_stats.surfaces.ale2 import ale2
from studies.validity_processes import FloatArray, Process, Sample

Found: TypeAlias = dict[str, FloatArray]
Claim: TypeAlias = Callable[[Process, np.random.Generator, int], Found]

LEVEL = 0.05
BAND_DRAWS, RESAMPLES = 500, 400
GRID = np.linspace(-1, 1, 21)
METHODS = ("percentile", "bca", "studentized")
# A rule that makes one bin: a line, where the effect changes.
ONE_LINE = AdaptiveBins(penalty=1e4)
# Bins along either feature of a surface.
SURFACE_BINS = 4


def covered(interval: FloatArray, truth: FloatArray) -> FloatArray:
    """Share of the intervals (sample, point, 2) that hold their targets, NaN for no point."""
    low, high = interval[..., 0], interval[..., 1]
    there = np.broadcast_to(np.isfinite(truth), low.shape)
    hit = (low <= truth) & (truth <= high) & there
    return np.asarray(hit.sum(axis=-1) / there.sum(axis=-1))


def held(band: FloatArray, truth: FloatArray) -> FloatArray:
    """Whether a band holds its targets at all points."""
    return np.asarray(covered(band, truth) == 1, dtype=np.float64)


def rejected(test: xr.Dataset) -> FloatArray:
    """Whether a test of every feature rejects."""
    return np.asarray(test["p_value"].values <= LEVEL, dtype=np.float64)


def with_errors(effect: xr.Dataset, local: xr.Dataset, sample: Sample) -> xr.Dataset:
    """Standard errors, by groups where rows have groups."""
    if sample.groups is None:
        return std_error(effect)
    return std_error(effect, local, groups=sample.groups)


def fitted(
    process: Process, sample: Sample, mean: float | None = None
) -> tuple[xr.Dataset, xr.Dataset]:
    """Local effects and RHALE in the fixed bins, with standard errors."""
    local = process.local(sample, mean)
    return local, with_errors(quiet_rhale(local, process.rule()), local, sample)


def effects(process: Process, rng: np.random.Generator, n_samples: int) -> Found:
    """Intervals and bands of RHALE in fixed bins."""
    _, effect = fitted(process, process.draw(rng, n_samples))
    found = held_by(process, confint(effect), confband(effect, n_draws=BAND_DRAWS, rng=rng))
    said = [float(bool(tail_notes(effect.isel(feature=[k])))) for k in range(n_samples)]
    return found | {"note": np.array(said)}


def held_by(process: Process, found: xr.Dataset, banded: xr.Dataset) -> Found:
    """Intervals and bands of an effect in fixed bins against the truth."""
    truth = process.truth(process.edges())
    of_cells = process.curve(found["edge_value"].values)
    average = found["average_effect_ci"].values[:, None]
    return {
        "effect": covered(found["effect_ci"].values, truth.effect),
        "curve": covered(in_bins(found)["curve_ci"].values, truth.curve),
        "cell curve": covered(found["curve_ci"].values, of_cells),
        "average effect": covered(average, np.array(truth.average)),
        "heterogeneity": covered(found["heterogeneity_ci"].values, truth.heterogeneity),
        "effect band": held(banded["effect_band"].values, truth.effect),
        "curve band": held(banded["curve_band"].values, of_cells),
    }


def slope(process: Process, rng: np.random.Generator, n_samples: int) -> Found:
    """The slope of a linear bin: by least squares along the population."""
    sample = process.draw(rng, n_samples)
    local = process.local(sample)
    effect = confint(with_errors(quiet_rhale(local, ONE_LINE), local, sample))
    z, mu = process.grid, process.mu(process.grid)
    means = [process.mean(values) for values in (z, mu, z * mu, z * z)]
    truth = (means[2] - means[0] * means[1]) / (means[3] - means[0] ** 2)
    return {"slope": covered(effect["slope_ci"].values[:, :1], np.array(truth))}


def tests(process: Process, rng: np.random.Generator, n_samples: int) -> Found:
    """Tests of effects that are zero, constant, or as large as delta in one bin."""
    sample = process.draw(rng, n_samples)
    found: Found = {}
    for null, mean in (("zero", 0.0), ("constant", 1.0)):
        _, effect = fitted(process, sample, mean)
        found[f"wald_test {null}, box"] = rejected(wald_test(effect, null, method="box"))
        few = effect.isel(feature=slice(0, (n_samples + 1) // 2))
        found[f"wald_test {null}, wald"] = rejected(wald_test(few, null, method="wald"))
        if null == "zero":  # of effects that are constant 0, which neither rise nor fall
            for sign in ("increasing", "decreasing"):
                found[f"wald_test {sign}"] = rejected(wald_test(effect, sign))
    found["equivalence_test"] = rejected(equivalence_test(at_delta(process, sample), 1.0))
    return found


def at_delta(process: Process, sample: Sample) -> xr.Dataset:
    """RHALE with standard errors of an effect that is 0, but 1 in the last bin."""
    last = sample.x >= process.edges()[-2]
    spread = process.sigma(sample.x) * sample.noise
    local = process.local(sample, 0.0)
    local = local.assign(local_effect=(("obs", "feature"), last + spread))
    return with_errors(quiet_rhale(local, process.rule()), local, sample)


def comparisons(process: Process, rng: np.random.Generator, n_samples: int) -> Found:
    """Two curves that are equal: of other rows, and of another model for the same rows."""
    sample = process.draw(rng, n_samples)
    local, effect = fitted(process, sample)
    other = process.draw(rng, n_samples)
    _, apart = fitted(process, other)
    pair = sample._replace(noise=(sample.noise + other.noise) / np.sqrt(2))
    local_pair, of_pair = fitted(process, pair)
    independent = compare(effect, apart, n_draws=BAND_DRAWS, rng=rng)
    paired = compare(
        effect,
        of_pair,
        paired=(local, local_pair),
        groups=sample.groups,
        n_draws=BAND_DRAWS,
        rng=rng,
    )
    return {"compare, independent": rejected(independent), "compare, paired": rejected(paired)}


def homogeneous(process: Process, rng: np.random.Generator, n_samples: int) -> Found:
    """An additive model: the effect changes along z, and all rows have the same."""
    sample = process.draw(rng, n_samples)
    sample = sample._replace(noise=np.zeros_like(sample.noise))
    local, effect = fitted(process, sample)
    return {"wald_test homogeneous": rejected(wald_test(effect, "homogeneous", local=local))}


def bootstraps(process: Process, rng: np.random.Generator, n_samples: int) -> Found:
    """Bootstrap intervals of effects, curve, heterogeneity and its index."""
    sample = process.draw(rng, n_samples)
    local = process.local(sample)
    effect = quiet_rhale(local, process.rule())
    # Standard errors by groups have no studentised replicates.
    grouped = sample.groups is not None
    made: dict[str, Any] = {"n_resamples": RESAMPLES, "rng": rng, "progress": False}
    boot = bootstrap(local, std_error(effect), groups=sample.groups, studentize=not grouped, **made)
    truth = process.truth(process.edges())
    index = np.sum(truth.heterogeneity**2 * np.diff(process.edges()))
    found: Found = {}
    for method in METHODS[:2] if grouped else METHODS:
        of = confint(with_errors(effect, local, sample), boot, method=method)
        found |= {
            f"bootstrap effect, {method}": covered(of["effect_ci"].values, truth.effect),
            f"bootstrap curve, {method}": covered(in_bins(of)["curve_ci"].values, truth.curve),
            f"bootstrap heterogeneity, {method}": covered(
                of["heterogeneity_ci"].values, truth.heterogeneity
            ),
        }
        if method != METHODS[2]:
            interval = of["heterogeneity_index_ci"].values[:, None]
            found[f"bootstrap index, {method}"] = covered(interval, np.array(index))
    return found


class Table(NamedTuple):
    """A table of z and noise with the options of its weights, and the groups of its rows."""

    given: dict[str, Any]
    groups: Any

    def errors(self, result: xr.Dataset, rows: xr.Dataset | None = None) -> xr.Dataset:
        """Standard errors, by groups where rows have groups; ``rows`` hold those of a profile."""
        return std_error(result, rows if self.groups is not None else None, groups=self.groups)


def _tables(process: Process, rng: np.random.Generator, n_samples: int) -> list[Table]:
    """One a sample."""
    out = []
    for _ in range(n_samples):
        sample = process.draw(rng, 1)
        table = np.column_stack([sample.x, sample.noise])
        weights = {} if sample.weight is None else {"weights": sample.weight}
        out.append(Table({"X": table, **weights}, sample.groups))
    return out


def profiles(process: Process, rng: np.random.Generator, n_samples: int) -> Found:
    """Partial dependence, ICE, M-plots and SHAP dependence."""
    edges = process.edges()
    curve = process.integral(process.mu, process.grid)
    on_grid = np.interp(process.grid, GRID, process.integral(process.mu, GRID))
    truth = process.integral(process.mu, GRID) - process.mean(on_grid)
    in_bins = np.array([process.mean(curve, *ends) for ends in pairwise(edges)])
    in_bins -= process.mean(curve)
    shapley = process.curve(GRID)
    found: dict[str, list[FloatArray]] = {}

    def add(name: str, hit: FloatArray) -> None:
        found.setdefault(name, []).append(hit)

    for table in _tables(process, rng, n_samples):
        of: dict[str, Any] = table.given
        grid: dict[str, Any] = {"features": [0], "grid": GRID, "progress": False}
        curves = ice(process.model, **of, **grid)
        partial = table.errors(pdp(process.model, **of, **grid), curves)
        banded = confband(partial, n_draws=BAND_DRAWS, rng=rng)
        add("pdp", covered(confint(partial)["curve_ci"].values, truth))
        add("pdp band", held(banded["curve_band"].values, truth))
        of_rows = confint(table.errors(curves))
        add("ice", covered(of_rows["curve_ci"].values, process.integral(process.mu, GRID)))
        means = table.errors(m_plot(process.model, features=[0], bins=GivenBins(edges), **of))
        add("m_plot", covered(confint(means)["curve_ci"].values, in_bins))
        z, noise = of["X"].T
        phi = process.curve(z) + noise * process.integral_of_spread(z) / 2
        smooth = shap_dependence(None, shap_values=phi, features=[0], grid=GRID, **of)
        add("shap_dependence", covered(confint(table.errors(smooth))["curve_ci"].values, shapley))
    return {name: np.concatenate(hits) for name, hits in found.items()}


def surfaces(process: Process, rng: np.random.Generator, n_samples: int) -> Found:
    """The surface of z times t in cells, an effect whose rows differ, and no interaction."""
    edges = np.linspace(-1, 1, SURFACE_BINS + 1)
    truth = np.outer(np.diff(edges), np.diff(edges))
    # Of independent uniform features: their product has no main effects.
    product = np.outer(edges, edges)
    found: dict[str, list[float]] = {}

    def add(name: str, hit: FloatArray) -> None:
        found.setdefault(name, []).append(float(hit))

    for table in _tables(process, rng, n_samples):
        x = table.given["X"]
        t = rng.uniform(-1, 1, len(x))
        asked = {**table.given, "X": np.column_stack([x[:, 0], t, x[:, 1]])}

        def made(level: float, asked: dict[str, Any] = asked, table: Table = table) -> xr.Dataset:
            return table.errors(product_surface(edges, level, **asked))

        surface = confint(made(1.0))
        band = confband(surface, n_draws=BAND_DRAWS, rng=rng)["surface_band"].values
        cells, whole = surface["second_effect_ci"][:-1, :-1].values, surface["surface_ci"].values
        add("ale2 cells", covered(cells.reshape(-1, 2), truth.ravel()))
        add("ale2 surface", covered(whole.reshape(-1, 2), product.ravel()))
        add("ale2 band", held(band.reshape(-1, 2), product.ravel()))
        add("wald_test of a surface", rejected(wald_test(made(0.0))).ravel()[0])
    return {name: np.array(hits) for name, hits in found.items()}


def product_surface(edges: FloatArray, level: float, **asked: Any) -> xr.Dataset:
    """ALE of the product of the first two features, times a level and the third."""
    return ale2(
        lambda table: table[:, 0] * table[:, 1] * (level + table[:, 2]),
        features=(0, 1),
        bins=GivenBins(edges),
        progress=False,
        **asked,
    )


def h_statistics(process: Process, rng: np.random.Generator, n_samples: int) -> Found:
    """H-statistics of x1 + x2 + x1 x2 / 2, both features distributed as the noise."""
    found: dict[str, list[float]] = {"h_statistic pair": [], "h_statistic overall": []}
    # All variances are 1, so that the product is 1/4 of the 9/4 of the output.
    truth = np.array(1 / 9)
    for _ in range(n_samples):
        table = process.noises(rng, (process.n, 2))
        of = h_statistic(_with_product, table, rng=rng, progress=False)
        intervals = confint(of)
        pair = intervals["h2_pairwise_ci"].values[0, 1:2]
        found["h_statistic pair"].append(float(covered(pair, truth)))
        overall = intervals["h2_overall_ci"].values
        found["h_statistic overall"].append(float(covered(overall, truth)))
    return {name: np.array(hits) for name, hits in found.items()}


def _with_product(table: FloatArray) -> FloatArray:
    return np.asarray(table[:, 0] + table[:, 1] + table[:, 0] * table[:, 1] / 2)


BLOCKS: dict[str, Claim] = {
    "effects": effects,
    "slope": slope,
    "tests": tests,
    "comparisons": comparisons,
    "homogeneous": homogeneous,
    "bootstraps": bootstraps,
    "profiles": profiles,
    "surfaces": surfaces,
    "h": h_statistics,
}
