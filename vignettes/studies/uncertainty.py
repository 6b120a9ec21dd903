"""Curve with its heterogeneity, and the loss against the number of bins (note of July 2021)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from rhale_stats.bins.rules import GivenBins
from rhale_stats.schema.in_bins import in_bins
from rhale_stats.simulate import Toy
from studies import tools
from studies.report import mean_table
from studies.runner import Options, Output, Scenario, Study
from studies.tools import holds, only, pm

# Bins of the curves of Figure 1, and the numbers of bins of Figure 2.
CURVE_BINS = 20
N_BINS = (1, 2, 5, 10, 20, 40, 80)
# "At least 25 points per bin": what the vertical lines of Figure 2 mark.
ENOUGH = 25
UNAVOIDABLE = 0.4


def study(options: Options) -> Study:
    """The study for these options."""
    curves = [
        Scenario(f"variance {v}", {"n": 1000, "variance": v, "panel": "curve"})
        for v in (0.01, 0.1, 1.0)
    ]
    sizes = (100, 1000) if options.quick else (100, 1000, 10_000)
    losses = [Scenario(f"N = {n}", {"n": n, "variance": 0.1, "panel": "loss"}) for n in sizes]
    return Study(
        name="uncertainty",
        title="Heterogeneity of a global effect and the number of bins",
        source="note of July 2021, Figures 1 and 2",
        claim="The average effect is the same whatever the variance of x2 given x1; the spread "
        "shows the heterogeneity, which the average hides. The accumulated variance of the bins "
        "has the unavoidable 0.4 as its lower bound: narrower bins add less to it, but have fewer "
        "rows, and then the estimate is poor.",
        scenarios=(*curves, *losses),
        coords={"edge": range(CURVE_BINS + 1), "n_bins": N_BINS},
        outputs={
            "curve": Output(("edge",), "zero-start curve"),
            "curve_std_sum": Output(("edge",), "spread of the curve"),
            "loss": Output(("n_bins",), "accumulated variance, ddof 1"),
            "loss_ddof0": Output(("n_bins",), "accumulated variance, ddof 0, as in the note"),
            "error": Output(("n_bins",), "mean |variance of a bin - truth|"),
        },
        replicate=replicate,
        n_replicates=3 if options.quick else 400,
        tables=tables,
        findings=findings,
        figure=figure,
        rows={"Figure 2": "n_bins in (1, 5, 20, 80)"},
    )


def replicate(
    parameters: Mapping[str, Any], rng: np.random.Generator, _context: Any
) -> dict[str, Any]:
    """One sample, in every number of bins. What a bin of one row has as its variance is NaN."""
    toy = Toy(variance=parameters["variance"])
    local = tools.local_of(toy, toy.sample(parameters["n"], rng))
    curve = tools.quiet_rhale(
        local, GivenBins(np.linspace(0, 1, CURVE_BINS + 1)), centering="start"
    )
    by_bins = []
    for n_bins in N_BINS:
        effect = tools.quiet_rhale(
            local, GivenBins(np.linspace(0, 1, n_bins + 1)), has_spread=False
        )
        variance, n = only(effect, "heterogeneity") ** 2, only(effect, "n_obs")
        by_bins.append(
            {
                "loss": np.mean(variance),
                "loss_ddof0": np.mean(variance * (n - 1) / n) if n.min() else np.nan,
                "error": np.mean(np.abs(variance - 4 * parameters["variance"])),
            }
        )
    return {
        "curve": only(in_bins(curve), "curve"),
        "curve_std_sum": only(in_bins(curve), "curve_std_sum"),
        **tools.by_name(by_bins),
    }


def _split(results: xr.Dataset) -> tuple[xr.Dataset, xr.Dataset]:
    is_curve = results["panel"].values == "curve"
    return results.isel(scenario=is_curve), results.isel(scenario=~is_curve)


def tables(results: xr.Dataset) -> list[tuple[str, pd.DataFrame]]:
    """The curves' right ends, and the loss by number of bins."""
    curves, losses = _split(results)
    ends = curves.isel(edge=-1)[["curve", "curve_std_sum", "done"]]
    right = mean_table(ends, ["curve", "curve_std_sum"])
    right["true_curve"] = 2.0
    right["true_spread"] = 2 * np.sqrt(curves["variance"].values)
    loss = mean_table(losses, ["loss", "loss_ddof0", "error"], by=["n_bins"])
    loss.insert(4, "expected", UNAVOIDABLE + 1 / (3 * loss["n_bins"] ** 2))
    return [
        ("Figure 1: the curve at its right end, 20 bins", right),
        ("Figure 2: accumulated variance of the bins", loss),
    ]


def findings(results: xr.Dataset) -> list[str]:
    """Does it hold."""
    curves, losses = _split(results)
    end, spread = curves["curve"].isel(edge=-1), curves["curve_std_sum"].isel(edge=-1)
    words = [
        f"{pm(spread.isel(scenario=k))} for variance {v:g} (truth {2 * np.sqrt(v):.3g})"
        for k, v in enumerate(curves["variance"].values)
    ]
    gap = losses["loss"].mean("replicate") - UNAVOIDABLE - 1 / (3 * losses["n_bins"] ** 2)
    gap = gap / tools.standard_error(losses["loss"])
    large = losses.isel(scenario=-1)
    error = large["error"].mean("replicate")
    best = N_BINS[int(np.argmin(error.values))]
    densest = N_BINS[-1]
    dense = losses.isel(scenario=1).sel(n_bins=densest)
    unknown = int(losses["loss"].isel(scenario=0).sel(n_bins=20).isnull().sum())
    distance = tools.score(end - 2)
    return [
        f"{holds(distance.max() < 4)}: the average curve ends at "
        + ", ".join(pm(end.isel(scenario=k)) for k in range(len(words)))
        + " (truth 2) for the three variances, and its spread at "
        + "; ".join(words)
        + ".",
        f"{holds(np.abs(gap).max() < 4)}: the expected loss is 0.4 + 1/(3 K²). With divisor n - 1 "
        f"the largest deviation of a mean from it is {float(np.abs(gap).max()):.1f} Monte-Carlo "
        "standard errors, whatever N, if all bins have at least two rows.",
        "Holds in part: with few rows in a bin the loss is noisy, not biased. The loss falls below "
        f"the lower bound only because of the note's divisor n: {dense['scenario'].item()}, K = "
        f"{densest} "
        f"gives {pm(dense['loss_ddof0'])} with it and {pm(dense['loss'])} with n - 1.",
        f"With N = 100 and K = 20 some bin has one row or none in {unknown} of "
        f"{results.sizes['replicate']} runs, and its variance is not known.",
        f"With {large['scenario'].item()}, the variance of a bin is closest to the truth with "
        f"K = {best} of the numbers tried: an error of {pm(large['error'].sel(n_bins=best))}.",
    ]


def figure(results: xr.Dataset) -> Figure:
    """Figure 1 above, Figure 2 below."""
    curves, losses = _split(results)
    fig, axes = tools.panels(2, 3)
    z = np.linspace(0, 1, CURVE_BINS + 1)
    for ax, k in zip(axes[0], range(curves.sizes["scenario"]), strict=True):
        mean = curves["curve"].isel(scenario=k).mean("replicate").values
        spread = curves["curve_std_sum"].isel(scenario=k).mean("replicate").values
        ax.fill_between(z, mean - spread, mean + spread, color="#c3ddec", linewidth=0)
        ax.plot(z, mean, color="black", linewidth=1.2)
        ax.plot(z, z + z**2, color=tools.RHALE_COLOUR, linestyle=":", linewidth=1.5)
        ax.set(title=f"$\\sigma_2^2$ = {curves['variance'].values[k]:g}", xlabel="x1", ylim=(-2, 5))
    axes[0, 0].set_ylabel("curve ± heterogeneity\n(dotted: truth)")
    for ax in axes[1, losses.sizes["scenario"] :]:
        ax.remove()
    for ax, k in zip(axes[1], range(losses.sizes["scenario"]), strict=False):
        one = losses.isel(scenario=k)
        tools.with_error(
            ax, N_BINS, one["loss"], color=tools.FIXED_COLOUR, marker="o", label="ddof 1"
        )
        tools.with_error(
            ax, N_BINS, one["loss_ddof0"], color=tools.RHALE_COLOUR, marker="x", label="ddof 0"
        )
        grid = np.linspace(1, N_BINS[-1], 500)
        ax.plot(
            grid, 0.4 + 1 / (3 * grid**2), color=tools.TRUTH_COLOUR, linewidth=0.8, label="expected"
        )
        ax.axhline(UNAVOIDABLE, color="0.7", linewidth=0.6)
        most = int(one["n"]) / ENOUGH
        if most < N_BINS[-1]:
            ax.axvline(most, color="0.7", linestyle="--", linewidth=0.8)
        ax.set(xscale="log", xlabel="bins", title=f"N = {int(one['n'])}", ylim=(0.2, 0.8))
    axes[1, 0].set_ylabel("accumulated variance")
    axes[1, 0].legend(frameon=False, fontsize="small")
    return fig
