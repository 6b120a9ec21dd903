"""The spread in bins of its own, against the best of all equal widths."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import NDArray

from rhale_stats.bins.rules import EqualWidthBins
from rhale_stats.effects.rhale import quiet_rhale
from rhale_stats.generics.uncertainty import confint
from rhale_stats.generics.values import predict
from rhale_stats.local.local_effects import local_effects
from rhale_stats.schema.feature_result import one_feature
from studies.report import mean_table
from studies.runner import Options, Output, Scenario, Study
from studies.tools import (
    FIXED_COLOUR,
    RHALE_COLOUR,
    holds,
    panels,
)

MOST_BINS, N_POINTS = 40, 2001
Array = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Array]


class Process(NamedTuple):
    """Draws of x, mu(z), sigma(z), and draws of the errors, of variance 1."""

    draw_x: Draw
    mu: Callable[[Array], Array]
    sigma: Callable[[Array], Array]
    draw_error: Draw

    def local(self, rng: np.random.Generator, n: int) -> tuple[xr.Dataset, Array, Array]:
        """Local effects of some rows, their places, and what they have besides mu."""
        x = self.draw_x(rng, n)
        residual = self.sigma(x) * self.draw_error(rng, n)
        slopes = self.mu(x) + residual
        return local_effects(None, x[:, None], jacobian=slopes[:, None], features=0), x, residual


def _uniform(rng: np.random.Generator, n: int) -> Array:
    return rng.uniform(size=n)


def normal(rng: np.random.Generator, n: int) -> Array:
    """Standard normal errors."""
    return rng.normal(size=n)


def skewed(rng: np.random.Generator, n: int) -> Array:
    """Log-normal errors of mean 0 and variance 1."""
    return np.asarray((np.exp(rng.normal(size=n)) - np.exp(0.5)) / np.sqrt((math.e - 1) * math.e))


def _zero(z: Array) -> Array:
    return 0 * z


def _grows(z: Array) -> Array:
    return 0.2 + 2 * z


def _exponential(z: Array) -> Array:
    return np.exp(2 * z) / 2


def _one(z: Array) -> Array:
    return 1 + 0 * z


PROCESSES = {
    "flat mu, sigma 0.2 + 2z": Process(_uniform, _zero, _grows, normal),
    "flat mu, sigma 2|2z - 1|": Process(_uniform, _zero, lambda z: 2 * np.abs(2 * z - 1), normal),
    "flat mu, sigma jumps": Process(_uniform, _zero, lambda z: np.where(z < 0.5, 0.3, 2.0), normal),
    "mu = sigma = exp(2z)/2": Process(_uniform, _exponential, _exponential, normal),
    "sine mu and sigma": Process(
        *(_uniform, lambda z: 3 * np.sin(6 * z)),
        *(lambda z: 1 + 0.8 * np.sin(9 * z), normal),
    ),
    "linear mu, sigma has a spike": Process(
        *(_uniform, lambda z: 2 * z),
        *(lambda z: 0.5 + 2 * (np.abs(z - 0.6) < 0.07), normal),
    ),
    "linear mu, constant sigma": Process(_uniform, lambda z: 9 * z, lambda z: 0.5 + 0 * z, normal),
    "sine mu, constant sigma": Process(
        *(_uniform, lambda z: 3 * np.sin(9 * z)),
        *(lambda z: 0.5 + 0 * z, normal),
    ),
    "log-normal x": Process(
        *(lambda rng, n: np.exp(0.7 * rng.normal(size=n)), np.log1p),
        *(lambda z: 0.3 + 0.5 * z, normal),
    ),
    "exponential x": Process(
        *(lambda rng, n: rng.exponential(size=n), lambda z: z),
        *(lambda z: 1 / (0.5 + z), normal),
    ),
    "normal x, mu z^2": Process(normal, lambda z: z**2, lambda z: 0.5 + 0.5 * z**2, normal),
    "skewed, sigma 0.2 + 2z": Process(_uniform, _zero, _grows, skewed),
    "skewed, constant sigma": Process(_uniform, _zero, _one, skewed),
}


def study(options: Options) -> Study:
    """The study for these options."""
    sizes = (300,) if options.quick else (300, 3000)
    return Study(
        name="spread",
        title="The spread in bins of its own",
        source="math [66]",
        claim="The integrated squared error of the spread is at most four times that of the best "
        "number of equal widths, around the true mean; its intervals cover the truth.",
        scenarios=tuple(
            Scenario(f"{name}, N = {n}", {"process": name, "n": n})
            for n in sizes
            for name in PROCESSES
        ),
        coords={"n_equal": range(1, MOST_BINS + 1)},
        outputs={
            "ise_equal": Output(("n_equal",), "integrated squared error, equal widths"),
            "ise_bins": Output((), "the same of the heterogeneity in the bins of the effect"),
            "ise_spread": Output((), "the same of the spread"),
            "ise_given": Output((), "the same of the spread, where the effect has 5 equal bins"),
            "n_spread_bins": Output((), "bins of the spread"),
            "covered": Output((), "share of its 95 % intervals that hold the truth"),
            "covered_honest": Output((), "the same with honest bins"),
        },
        replicate=replicate,
        n_replicates=3 if options.quick else 100,
        tables=tables,
        findings=findings,
        figure=figure,
        rows={
            "Integrated squared": "scenario.str.endswith('N = 3000')",
            "Coverage": "scenario.str.endswith('N = 300')",
        },
    )


def replicate(
    parameters: Mapping[str, Any], rng: np.random.Generator, _context: Any
) -> dict[str, Any]:
    """One sample, its spread by default and with five given bins, and that of equal widths."""
    process = PROCESSES[parameters["process"]]
    local, x, residual = process.local(rng, parameters["n"])
    z = np.linspace(x.min(), x.max(), N_POINTS)
    truth = process.sigma(z)

    def ise(values: Array) -> float:
        return float(np.mean((values - truth) ** 2) * (z[-1] - z[0]))

    def of_spread(effect: xr.Dataset) -> float:
        return ise(predict(effect, z, 0, what="heterogeneity").values)

    effect = confint(quiet_rhale(local))
    honest = confint(quiet_rhale(local, honest=True, rng=rng))
    row = one_feature(effect, 0)
    inner = row.bin_edges[1:-1]
    of_bins = effect["heterogeneity"].values[0, np.searchsorted(inner, z, side="right")]
    return {
        "ise_equal": [ise(_equal_widths(x, residual, z, k + 1)) for k in range(MOST_BINS)],
        "ise_bins": ise(of_bins),
        "ise_spread": of_spread(effect),
        "ise_given": of_spread(quiet_rhale(local, EqualWidthBins(5))),
        "n_spread_bins": len(row.spread_starts),
        "covered": _covered(effect, x, process.sigma),
        "covered_honest": _covered(honest, x, process.sigma),
    }


def _equal_widths(x: Array, residual: Array, z: Array, n_bins: int) -> Array:
    """Root mean squares about the true mean in equal widths; of all rows where a bin has none."""
    inner = np.linspace(x.min(), x.max(), n_bins + 1)[1:-1]
    k = np.searchsorted(inner, x, side="right")
    n, squares = np.bincount(k, minlength=n_bins), np.bincount(k, residual**2, n_bins)
    spread = np.sqrt(np.where(n > 0, squares / np.maximum(n, 1), np.mean(residual**2)))
    return np.asarray(spread[np.searchsorted(inner, z, side="right")])


def _covered(effect: xr.Dataset, x: Array, sigma: Callable[[Array], Array]) -> float:
    """Share of the intervals that hold the root mean square of sigma over the rows of the bin."""
    row = one_feature(effect, 0)
    edges, ends = row.spread_edges, row["spread_ci"].values[row.spread_starts]
    k = np.searchsorted(edges[1:-1], x, side="right")
    n = np.bincount(k, minlength=len(ends))
    true = np.sqrt(np.bincount(k, sigma(x) ** 2, len(ends)) / np.maximum(n, 1))
    return float(np.mean((ends[:, 0] <= true) & (true <= ends[:, 1])))


def best_of(results: xr.Dataset) -> xr.DataArray:
    """Smallest mean error of all numbers of equal widths, by scenario."""
    return results["ise_equal"].mean("replicate").min("n_equal")


def tables(results: xr.Dataset) -> list[tuple[str, pd.DataFrame]]:
    """Errors over those of the best equal widths, and coverage."""
    best, names = best_of(results), ["ise_bins", "ise_spread", "ise_given"]
    ratios = results.assign({name: results[name] / best for name in names})
    return [
        (
            "Integrated squared errors of sigma over the smallest of 1 to 40 equal widths",
            mean_table(ratios, [*names, "n_spread_bins"]),
        ),
        ("Coverage of 95 % intervals", mean_table(results, ["covered", "covered_honest"])),
    ]


def findings(results: xr.Dataset) -> list[str]:
    """Does it hold."""
    best = best_of(results)
    by_name = {
        name: (results[name].mean("replicate") / best).values
        for name in ("ise_bins", "ise_spread", "ise_given")
    }
    largest = by_name["ise_spread"].max()
    normal = np.array(["skewed" not in str(name) for name in results["scenario"].values])
    shares = {
        name: results[name].mean("replicate").values[normal]
        for name in ("covered", "covered_honest")
    }
    return [
        f"{holds(largest <= 4)}: the error of the spread is at most {largest:.1f} times that of "
        f"the best equal widths, and that of the heterogeneity in the bins of the effect up to "
        f"{by_name['ise_bins'].max():.0f} times.",
        f"Where the effect has five given bins, the error of the spread is at most "
        f"{by_name['ise_given'].max():.1f} times that of the best equal widths.",
        f"With normal errors, 95 % intervals cover {100 * shares['covered'].min():.0f} to "
        f"{100 * shares['covered'].max():.0f} %, and {100 * shares['covered_honest'].min():.0f} to "
        f"{100 * shares['covered_honest'].max():.0f} % with honest bins.",
    ]


def figure(results: xr.Dataset) -> Figure:
    """Errors over those of the best equal widths."""
    fig, axes = panels(1, 1)
    (ax,) = axes.flat
    best, at = best_of(results), np.arange(results.sizes["scenario"])
    for name, colour, label in (
        ("ise_bins", FIXED_COLOUR, "in the bins of the effect"),
        ("ise_spread", RHALE_COLOUR, "in bins of its own"),
    ):
        ax.plot(results[name].mean("replicate") / best, at, "o", color=colour, label=label)
    ax.axvline(4, color="0.7", linewidth=0.6)
    ax.set(xscale="log", xlabel="error of the spread over that of the best equal widths")
    ax.set_yticks(at, [str(one) for one in results["scenario"].values], fontsize="small")
    ax.legend(frameon=False, fontsize="small")
    return fig
