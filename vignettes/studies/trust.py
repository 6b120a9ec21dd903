"""Can the plot be trusted: standard errors and constraint 1 (note of June 2021, Figures 1 to 3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from rhale_stats.bins.rules import GivenBins
from rhale_stats.diagnostics.checks import check_unbiased
from rhale_stats.generics.uncertainty import std_error
from rhale_stats.inference.meaning import BIASED, LARGE
from rhale_stats.schema.in_bins import in_bins
from rhale_stats.schema.padding import padded
from rhale_stats.simulate import PiecewiseLinear
from rhale_stats.simulate.scores import mae
from studies import tools
from studies.report import mean_table
from studies.runner import Options, Output, Scenario, Study
from studies.tools import holds, only, pm, share

N_BINS = (3, 5, 20, 100)
HIGH = 100.0


def study(options: Options) -> Study:
    """The study for these options."""
    return Study(
        name="trust",
        title="Standard errors with too few and too many bins",
        source="note of June 2021, section 2, Figures 1 to 3",
        claim="K = 3 is too coarse, K = 5 matches the function, K = 20 and 100 are noisy with 100 "
        "rows. With 10,000 rows the standard error gives accurate regions for K = 5, 20 and 100, "
        "and misleads for K = 3, where bins mix slopes (constraint 1). Unfortunately, it says, "
        "we cannot know when this is the case.",
        scenarios=tuple(Scenario(f"N = {n}", {"n": n}) for n in (100, 10_000)),
        coords={"n_bins": N_BINS, "bin": range(max(N_BINS)), "edge": range(max(N_BINS) + 1)},
        outputs={
            "n_empty": Output(("n_bins",), "bins without rows", "bins"),
            "smallest": Output(("n_bins",), "rows in the smallest bin", "rows"),
            "curve_max_error": Output(("n_bins",), "largest distance of the curves"),
            "ISE_mu": Output(("n_bins",), "mean along the axis of |mu(z) - effect|"),
            "covered_edges": Output(
                ("n_bins",), "share of edges where curve ± 2 standard errors holds the true curve"
            ),
            "covered_axis": Output(
                ("n_bins",), "share of the axis where it does, straight between edges"
            ),
            "half_width": Output(("n_bins",), "two standard errors of the curve, mean over edges"),
            "any_flagged": Output(("n_bins",), "whether any bin is called biased"),
            "flagged": Output(("n_bins", "bin"), "whether a bin is called biased"),
            "curve": Output(("n_bins", "edge"), "curve"),
            "curve_se": Output(("n_bins", "edge"), "standard error of the curve"),
        },
        replicate=replicate,
        n_replicates=3 if options.quick else 1000,
        tables=tables,
        findings=findings,
        figure=figure,
    )


def replicate(
    parameters: Mapping[str, Any], rng: np.random.Generator, _context: Any
) -> dict[str, Any]:
    """One sample, in every number of bins on [0, 100]."""
    example = PiecewiseLinear.independent()
    local = tools.local_of(example, example.sample(parameters["n"], rng))
    return tools.by_name([_one(example, local, n_bins) for n_bins in N_BINS])


def _one(example: PiecewiseLinear, local: xr.Dataset, n_bins: int) -> dict[str, Any]:
    effect = tools.quiet_rhale(local, GivenBins(np.linspace(0, HIGH, n_bins + 1)))
    check = in_bins(std_error(check_unbiased(local, effect, rng=0)))
    truth = example.truth(effect)
    scores = mae(effect, truth)
    curve, se, n_obs = (only(check, name) for name in ("curve", "curve_se", "n_obs"))
    # NaN unless the curve has no gap and all of its standard errors are known.
    complete = 1.0 if np.isfinite(se).all() else np.nan
    edges, cells = only(check, "edge_value"), only(truth, "cell_value")
    at_edges = only(in_bins(truth), "curve")
    true = at_edges[0] + np.append(0.0, np.cumsum(only(truth, "cell_effect") * np.diff(cells)))
    miss = np.abs(np.interp(cells, edges, curve) - true) > 2 * np.interp(cells, edges, se)
    flagged = np.isin(check["verdict"].values[0], [BIASED, LARGE]).astype(float)
    return {
        "n_empty": float(np.sum(n_obs == 0)),
        "smallest": float(n_obs.min()),
        "curve_max_error": float(scores["curve_max_error"][0]),
        "ISE_mu": float(scores["ISE_mu"][0]),
        "covered_edges": complete * float(np.mean(np.abs(curve - at_edges) <= 2 * se)),
        "covered_axis": complete * float(1 - miss.mean()),
        "half_width": complete * float(np.mean(2 * se)),
        "any_flagged": float(flagged.any()),
        "flagged": padded([flagged], [max(N_BINS)])[0],
        "curve": padded([curve], [max(N_BINS) + 1])[0],
        "curve_se": padded([se], [max(N_BINS) + 1])[0],
    }


def tables(results: xr.Dataset) -> list[tuple[str, pd.DataFrame]]:
    """Accuracy and coverage, what the test says, and the bins of K = 3."""
    accuracy = ["curve_max_error", "ISE_mu", "half_width", "covered_edges", "covered_axis"]
    mixed = results["flagged"].sel(n_bins=3).isel(bin=slice(0, 3))
    rows = mixed.mean("replicate").to_dataframe("share flagged").reset_index()
    return [
        (
            "Accuracy, and coverage of ± 2 standard errors",
            mean_table(results, accuracy, ["n_bins"]),
        ),
        (
            "Rows in the bins, and whether the test calls any bin biased (Holm, 5 %)",
            mean_table(results, ["n_empty", "smallest", "any_flagged"], ["n_bins"]),
        ),
        (
            "Constraint 1: the bins of K = 3, all of which mix slopes",
            rows[["scenario", "bin", "share flagged"]],
        ),
    ]


def findings(results: xr.Dataset) -> list[str]:
    """Does it hold."""
    few, many = results.isel(scenario=0), results.isel(scenario=1)
    all_three = (many["flagged"].sel(n_bins=3).isel(bin=slice(0, 3)) == 1).all("bin")
    names = (3, 5, 20, 100)
    covered = ", ".join(f"K = {k}: {pm(many['covered_axis'].sel(n_bins=k))}" for k in names)
    flagged = ", ".join(f"{share(many['any_flagged'].sel(n_bins=k) == 1)}" for k in names[1:])
    axis = many["covered_axis"].mean("replicate")
    flags = many["any_flagged"].mean("replicate")
    seen = all_three.mean() >= 0.95 and flags.sel(n_bins=5) <= 0.1
    return [
        f"{holds(axis.sel(n_bins=3) < 0.5 and axis.sel(n_bins=[5, 20, 100]).min() > 0.85)}: with "
        "10,000 rows the share of the axis on which curve ± 2 standard errors covers the truth is "
        f"{covered}. The interval of K = 3 is misleading. At the edges of its bins it "
        f"covers the truth in {pm(many['covered_edges'].sel(n_bins=3))} of cases.",
        f"{holds(not seen)}: that we cannot know about constraint 1. The test of no bin error "
        f"calls all three bins of K = 3 biased in {share(all_three)} of runs with 10,000 rows, "
        f"and some bin of K = 5, 20, 100, none of which mixes slopes, in {flagged} (level 5 %).",
        "With 100 rows it calls some bin of K = 3 biased in "
        f"{share(few['any_flagged'].sel(n_bins=3) == 1)} of runs, and some bin of K = 5 in "
        f"{share(few['any_flagged'].sel(n_bins=5) == 1)}.",
        "With 100 rows and K = 100, "
        f"{pm(few['n_empty'].sel(n_bins=100))} bins have no row: the curve over the whole axis "
        "cannot be estimated, and none is given.",
    ]


def figure(results: xr.Dataset) -> Figure:
    """Figures 2 and 3: curves of the first run with ± 2 standard errors."""
    fig, axes = tools.panels(2, len(N_BINS), sharey="row")
    truth = np.array([[0, 20, 40, 60, 80, 100], [0, 6, 146, 116, 116, 16]], dtype=float)
    for row, scenario in zip(axes, results["scenario"].values, strict=True):
        for ax, k in zip(row, N_BINS, strict=True):
            one = results.sel(scenario=scenario, n_bins=k).isel(replicate=0, edge=slice(0, k + 1))
            edges = np.linspace(0, HIGH, k + 1)
            curve, se = one["curve"].values, one["curve_se"].values
            ax.fill_between(edges, curve - 2 * se, curve + 2 * se, color="#f3cfb3", linewidth=0)
            ax.plot(edges, curve, color=tools.FIXED_COLOUR, linewidth=1.2)
            # The truth, centred at its mean over a uniform feature.
            mean = np.trapezoid(truth[1], truth[0]) / HIGH
            ax.plot(truth[0], truth[1] - mean, color="black", linestyle=":", linewidth=1.2)
            for b in np.flatnonzero(one["flagged"].values[:k] == 1):
                ax.axvspan(edges[b], edges[b + 1], ymax=0.04, color=tools.RHALE_COLOUR, linewidth=0)
            ax.set(title=f"K = {k}, {scenario}", xlabel="x1")
        row[0].set_ylabel("curve ± 2 standard errors\n(dotted: truth)")
    return fig
