"""Bins with more rows on one side: the open question of the note of July 2021."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.special import betainc

from rhale_stats.bins.rules import GivenBins
from rhale_stats.diagnostics.checks import check_unbiased
from rhale_stats.generics.uncertainty import std_error
from rhale_stats.simulate import Toy
from studies import tools
from studies.report import mean_table
from studies.runner import Options, Output, Scenario, Study
from studies.tools import holds, only, pm, share

N_BINS = 5
SHAPES = {"uniform": (1.0, 1.0), "beta(2, 2)": (2.0, 2.0), "beta(1, 2)": (1.0, 2.0)}
# 95 % of a normal distribution.
HALF_WIDTH = 1.96


def study(options: Options) -> Study:
    """The study for these options."""
    sizes = (500,) if options.quick else (500, 5000)
    return Study(
        name="density",
        title="Bias where the density of rows varies within a bin",
        source="note of July 2021, after Eq. 8: 'check what happens otherwise'",
        claim="The approximation of the bin effect and of its uncertainty is unbiased only if the "
        "points are uniformly distributed in the bin. What happens otherwise is left open.",
        scenarios=tuple(
            Scenario(f"{name}, N = {n}", {"a": a, "b": b, "n": n})
            for n in sizes
            for name, (a, b) in SHAPES.items()
        ),
        coords={"bin": range(N_BINS)},
        outputs={
            "error": Output(("bin",), "effect - truth"),
            "predicted": Output(("bin",), "density_bias, the estimate of its mean"),
            "corrected": Output(("bin",), "effect - density_bias - truth"),
            "covered": Output(("bin",), "whether effect ± 1.96 se holds the truth"),
            "covered_corrected": Output(
                ("bin",), "whether (effect - density_bias) ± 1.96 se of it does"
            ),
            "curve_error": Output((), "largest error of the zero-start curve at an edge"),
            "curve_error_corrected": Output((), "the same with corrected effects"),
            "bin_error_ratio": Output((), "estimated bin error over that of uniform rows"),
            "within_ratio": Output((), "squared heterogeneity within over sigma²"),
        },
        replicate=replicate,
        n_replicates=3 if options.quick else 2000,
        tables=tables,
        findings=findings,
        figure=figure,
        rows={"Bias of the effect": "bin in (0, 2, 4) and scenario.str.endswith('N = 5000')"},
    )


def replicate(
    parameters: Mapping[str, Any], rng: np.random.Generator, _context: Any
) -> dict[str, Any]:
    """One sample in five bins of [0, 1]. The effect is 1 + 2 z. NaN where a bin is empty."""
    toy = Toy(shape=(parameters["a"], parameters["b"]))
    local = tools.local_of(toy, toy.sample(parameters["n"], rng))
    effect = tools.quiet_rhale(local, GivenBins(np.linspace(0, 1, N_BINS + 1)), centering="start")
    check, truth = std_error(check_unbiased(local, effect, rng=rng)), toy.truth(effect)
    error = only(effect, "effect") - only(truth, "effect")
    bias, n = only(check, "density_bias"), only(check, "n_obs")
    # Of a line at the midpoint: the noise of the mean, and that of the slope.
    se = np.sqrt(only(check, "heterogeneity_within") ** 2 / n + only(check, "density_bias_se") ** 2)
    ratio = only(check, "bin_error") / only(truth, "bin_error")
    within = (only(check, "heterogeneity_within") / only(truth, "heterogeneity")) ** 2
    return {
        "error": error,
        "predicted": bias,
        "corrected": error - bias,
        "covered": np.abs(error) <= HALF_WIDTH * only(check, "effect_se"),
        "covered_corrected": np.abs(error - bias) <= HALF_WIDTH * se,
        "curve_error": float(np.abs(np.cumsum(error / N_BINS)).max()),
        "curve_error_corrected": float(np.abs(np.cumsum((error - bias) / N_BINS)).max()),
        "bin_error_ratio": float(np.mean(ratio)),
        "within_ratio": float(np.mean(within)),
    }


def expected_bias(a: float, b: float) -> NDArray[np.float64]:
    """2 (E[z | bin] - midpoint) for z ~ beta(a, b), exactly: the effect is 1 + 2 z."""
    edges = np.linspace(0, 1, N_BINS + 1)
    mean = a / (a + b) * np.diff(betainc(a + 1, b, edges)) / np.diff(betainc(a, b, edges))
    # Rounding of what is 0 would be printed with all its digits.
    return np.round(2 * (mean - (edges[:-1] + edges[1:]) / 2), 12)


def tables(results: xr.Dataset) -> list[tuple[str, pd.DataFrame]]:
    """By bin, and over all."""
    names = ["error", "predicted", "corrected", "covered", "covered_corrected"]
    by_bin = mean_table(results, names, ["bin"])
    shapes = zip(results["a"].values, results["b"].values, strict=True)
    by_bin.insert(4, "exact_bias", np.concatenate([expected_bias(a, b) for a, b in shapes]))
    overall = ["curve_error", "curve_error_corrected", "bin_error_ratio", "within_ratio"]
    return [
        ("Bias of the effect by bin, before and after correction", by_bin),
        ("The curve, and the parts of the variance", mean_table(results, overall)),
    ]


def findings(results: xr.Dataset) -> list[str]:
    """Does it hold."""
    bias, left = tools.score(results["error"]), tools.score(results["corrected"])
    uniform = results["a"].values * results["b"].values == 1
    last = results.isel(scenario=-1)
    crowded = results.isel(scenario=~uniform)
    return [
        f"{holds(bias.isel(scenario=uniform).max() < 4 < bias.isel(scenario=~uniform).max())}: "
        "the bin effect is unbiased where rows are uniform (largest bias "
        f"{float(bias.isel(scenario=uniform).max()):.1f} Monte-Carlo standard errors) and not "
        f"otherwise ({float(bias.isel(scenario=~uniform).max()):.0f}).",
        "Where rows are not uniform, the bin effect is weighted by their density. density_bias "
        "predicts "
        "the resulting bias, and subtracting it leaves at most "
        f"{float(left.max()):.1f} Monte-Carlo standard errors (the effect is a line here, for "
        "which the correction is exact).",
        f"{last['scenario'].item()}: ± 1.96 se covers the truth of the bin in "
        f"{share(last['covered'])} of cases, after correction in "
        f"{share(last['covered_corrected'])}; the largest error of the curve falls from "
        f"{pm(last['curve_error'])} to {pm(last['curve_error_corrected'])}.",
        "The heterogeneity is not affected where sigma is constant: squared heterogeneity within "
        f"over sigma² is {pm(crowded['within_ratio'])} where rows are not uniform. The bin error "
        f"there is {pm(crowded['bin_error_ratio'])} times that of uniform rows.",
    ]


def figure(results: xr.Dataset) -> Figure:
    """Bias by bin, before and after correction, with the exact one."""
    n_columns = len(SHAPES)
    fig, axes = tools.panels(results.sizes["scenario"] // n_columns, n_columns, sharey=True)
    k = np.arange(N_BINS)
    for ax, scenario in zip(axes.flat, results["scenario"].values, strict=True):
        one = results.sel(scenario=scenario)
        tools.with_error(
            ax, k - 0.1, one["error"], color=tools.FIXED_COLOUR, fmt="o", label="effect"
        )
        tools.with_error(
            ax, k + 0.1, one["corrected"], color=tools.RHALE_COLOUR, fmt="s", label="corrected"
        )
        exact = expected_bias(float(one["a"]), float(one["b"]))
        ax.plot(k, exact, "k_", markersize=12, label="exact bias")
        ax.axhline(0, color="0.7", linewidth=0.6)
        ax.set(title=str(scenario), xlabel="bin", xticks=k)
    for row in axes:
        row[0].set_ylabel("bias of the effect")
    axes[0, 0].legend(frameon=False, fontsize="small")
    return fig
