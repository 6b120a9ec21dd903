"""How many equal-width bins: the note's loss against K (note of June 2021, Figure 4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from rhale_stats.bins.rules import BestEqualWidthBins, EqualWidthBins
from rhale_stats.simulate import PiecewiseLinear
from rhale_stats.simulate.scores import mae
from studies import tools
from studies.report import mean_table
from studies.runner import Options, Output, Scenario, Study
from studies.tools import holds, only, pm, share

MAX_BINS = 50
# What the note finds best, for every number of rows.
BEST = {50: 3, 100: 5, 1000: 5, 10_000: 5}


def study(options: Options) -> Study:
    """The study for these options."""
    sizes = (50, 100, 1000) if options.quick else (50, 100, 1000, 10_000)
    return Study(
        name="best-k",
        title="The best number of equal-width bins",
        source="note of June 2021, section 3, Figure 4",
        claim="Minimising the accumulated standard deviation, with at least 10 rows a bin, is a "
        "good indicator of the most accurate plot. For N = 50 the loss can be evaluated up to 4 "
        "bins, and 3 is best; for N = 100 up to 7, and 5 is best; for N = 1000 and 10,000, 5 is "
        "best, and multiples of 5 are good.",
        scenarios=tuple(Scenario(f"N = {n}", {"n": n}) for n in sizes),
        coords={"n_bins_tried": range(1, MAX_BINS + 1)},
        outputs={
            "loss": Output(("n_bins_tried",), "loss of the note; NaN where a bin is too small"),
            "chosen": Output((), "number of bins chosen", "bins"),
            "largest": Output((), "largest number of bins that is allowed", "bins"),
            "oracle": Output(
                (), "number of bins with the smallest ISE_mu, of those allowed", "bins"
            ),
            "ISE_mu": Output((), "ISE_mu of the number chosen"),
            "ISE_mu_oracle": Output((), "smallest ISE_mu of those allowed"),
        },
        replicate=replicate,
        n_replicates=3 if options.quick else 400,
        tables=tables,
        findings=findings,
        figure=figure,
    )


def replicate(
    parameters: Mapping[str, Any], rng: np.random.Generator, _context: Any
) -> dict[str, Any]:
    """One sample; the oracle knows the truth and tries every number of bins that is allowed."""
    example = PiecewiseLinear.independent()
    local = tools.local_of(example, example.sample(parameters["n"], rng))
    effect = tools.quiet_rhale(local, BestEqualWidthBins(MAX_BINS), has_spread=False)
    loss = np.where(np.isfinite(only(effect, "bin_loss")), only(effect, "bin_loss"), np.nan)
    errors = np.full(MAX_BINS, np.inf)
    truth = example.truth(effect)  # its cells serve every number of bins
    for k in np.flatnonzero(np.isfinite(loss)):
        fixed = tools.quiet_rhale(local, EqualWidthBins(int(k) + 1), has_spread=False)
        errors[k] = float(mae(fixed, truth)["ISE_mu"][0])
    chosen = int(effect["n_bins"][0])
    return {
        "loss": loss,
        "chosen": chosen,
        "largest": 1 + int(np.flatnonzero(np.isfinite(loss)).max()),
        "oracle": 1 + int(np.argmin(errors)),
        "ISE_mu": errors[chosen - 1],
        "ISE_mu_oracle": errors.min(),
    }


def tables(results: xr.Dataset) -> list[tuple[str, pd.DataFrame]]:
    """What is chosen, and how often each number of bins."""
    outputs = ["chosen", "largest", "oracle", "ISE_mu", "ISE_mu_oracle"]
    counts = {
        str(scenario): results["chosen"].sel(scenario=scenario).to_series().value_counts()
        for scenario in results["scenario"].values
    }
    runs = results.sizes["replicate"]
    frequency = pd.DataFrame(counts).fillna(0).div(runs).mul(100).sort_index().T
    frequency.columns = [f"K = {int(k)}" for k in frequency.columns]
    return [
        ("Number of bins chosen", mean_table(results, outputs)),
        (f"How often, percent of {runs} runs", frequency),
    ]


def findings(results: xr.Dataset) -> list[str]:
    """Does it hold."""
    words = []
    for scenario, n in zip(results["scenario"].values, results["n"].values, strict=True):
        one = results.sel(scenario=scenario)
        modal = int(one["chosen"].to_series().mode()[0])
        theirs = BEST[int(n)]
        words.append(
            f"{holds(modal == theirs)}: {scenario}, K = {theirs} is best. It is chosen in "
            f"{share(one['chosen'] == theirs)} of runs, K = {modal} most often "
            f"({share(one['chosen'] == modal)}); up to {int(one['largest'].median())} bins are "
            f"allowed (median over runs). ISE_mu is {pm(one['ISE_mu'])}, against "
            f"{pm(one['ISE_mu_oracle'])} for the best K that is allowed."
        )
    last = results.isel(scenario=-1)
    return [
        *words,
        f"{holds((last['chosen'] % 5 == 0).mean() > 0.95)}: multiples of 5 are good. They are "
        f"chosen in {share(last['chosen'] % 5 == 0)} of runs with {last['scenario'].item()}, and "
        "in the figure their loss is smaller than that of neighbouring K. With few rows the choice "
        "differs between samples, which a picture of one sample cannot show.",
    ]


def figure(results: xr.Dataset) -> Figure:
    """Figure 4: the loss against K, mean over the runs in which K is allowed."""
    fig, axes = tools.panels(1, results.sizes["scenario"])
    for ax, scenario in zip(axes[0], results["scenario"].values, strict=True):
        one = results.sel(scenario=scenario)
        tools.with_error(ax, one["n_bins_tried"], one["loss"], color=tools.FIXED_COLOUR, marker="o")
        chosen = one["chosen"].to_series().mode()[0]
        ax.axvline(chosen, color="0.6", linestyle="--", linewidth=0.8)
        ax.set(title=str(scenario), xlabel="bins (dashed: chosen most often)")
    axes[0, 0].set_ylabel("loss")
    return fig
