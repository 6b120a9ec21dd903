"""Theorem 1 from the data: bias of the heterogeneity, its estimate, its test, chosen bins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from rhale_stats.bins.rule import BinRule
from rhale_stats.bins.rules import EqualWidthBins, GivenBins, OptimalBins
from rhale_stats.diagnostics.checks import check_unbiased
from rhale_stats.inference.meaning import BIASED, LARGE
from rhale_stats.simulate import PiecewiseLinear, Quadratic, Simulator, Toy
from studies import tools
from studies.report import mean_table
from studies.runner import Options, Output, Scenario, Study
from studies.tools import holds, only, pm

N_BINS = (1, 2, 3, 5, 10, 20)
EXAMPLES: dict[str, Simulator] = {
    "toy [47]": Toy(),
    "piecewise [51]": PiecewiseLinear(sd=0.5),
    "quadratic [51]": Quadratic(sd=0.4),
    "note 003 [52]": PiecewiseLinear.independent(),
}
# Rules whose edges are chosen on the rows, and one whose edges are not.
PAPER, CODE, WILD = "paper's default", "authors' settings", "100 cells, 5 rows, no discount"
CHOSEN: dict[str, BinRule] = {
    PAPER: OptimalBins(),
    CODE: OptimalBins(max_bins=20, min_obs=10, discount=0.3, ddof=0),
    WILD: OptimalBins(max_bins=100, min_obs=5, discount=0.0),
    "K = 20, not chosen": EqualWidthBins(20),
}


def study(options: Options) -> Study:
    """The study for these options."""
    return Study(
        name="unbiasedness",
        title="Bias of the heterogeneity: detection, test and correction",
        source="RHALE, Theorem 1; math [12] to [16]",
        claim="The variance of the local effects in a bin estimates sigma² + bin error: it is "
        "unbiased for the heterogeneity only where the bin error is 0. The paper shows it where "
        "the truth is known.",
        scenarios=tuple(Scenario(name, {"example": name, "n": 500}) for name in EXAMPLES),
        coords={"n_bins": N_BINS, "rule": list(CHOSEN)},
        outputs={
            "variance": Output(("n_bins",), "variance in the bins, mean over bins"),
            "expected": Output(("n_bins",), "sigma² + bin error, mean over bins"),
            "within": Output(("n_bins",), "squared heterogeneity within, mean over bins"),
            "bin_error": Output(("n_bins",), "estimated bin error, mean over bins"),
            "true_bin_error": Output(("n_bins",), "bin error, mean over bins"),
            "tested": Output(("n_bins",), "bins with a test", "bins"),
            "flagged": Output(("n_bins",), "bins called biased", "bins"),
            "optimism": Output(("rule",), "mean of variance / (sigma² + bin error), chosen here"),
            "optimism_honest": Output(
                ("rule",), "the same where edges are chosen on other rows (honest)"
            ),
        },
        replicate=replicate,
        n_replicates=3 if options.quick else 2000,
        tables=tables,
        findings=findings,
        figure=figure,
        rows={"Fixed bins": "n_bins in (1, 20)", "The test": "n_bins in (1, 20)"},
    )


def replicate(
    parameters: Mapping[str, Any], rng: np.random.Generator, _context: Any
) -> dict[str, Any]:
    """One sample: fixed bins over the population's axis, and bins chosen on the rows."""
    example = EXAMPLES[parameters["example"]]
    local = tools.local_of(example, example.sample(parameters["n"], rng))
    high = 100.0 if parameters["example"].startswith("note") else 1.0
    fixed = []
    for n_bins in N_BINS:
        effect = tools.quiet_rhale(local, GivenBins(np.linspace(0, high, n_bins + 1)))
        check, truth = check_unbiased(local, effect, rng=rng), example.truth(effect)
        sigma2, error = only(truth, "heterogeneity") ** 2, only(truth, "bin_error")
        fixed.append(
            {
                "variance": np.mean(only(effect, "heterogeneity") ** 2),
                "expected": np.mean(sigma2 + error),
                "within": np.mean(only(check, "heterogeneity_within") ** 2),
                "bin_error": np.mean(only(check, "bin_error")),
                "true_bin_error": np.mean(error),
                "tested": np.isfinite(only(check, "bin_error_pvalue")).sum(),
                "flagged": np.isin(check["verdict"], [BIASED, LARGE]).sum(),
            }
        )
    seeds = rng.integers(2**32, size=len(CHOSEN))
    chosen = [tools.quiet_rhale(local, rule, has_spread=False) for rule in CHOSEN.values()]
    honest = [
        tools.quiet_rhale(local, rule, has_spread=False, honest=True, rng=int(seed))
        for rule, seed in zip(CHOSEN.values(), seeds, strict=True)
    ]
    return {
        **tools.by_name(fixed),
        "optimism": [_optimism(example, effect) for effect in chosen],
        "optimism_honest": [_optimism(example, effect) for effect in honest],
    }


def _optimism(example: Simulator, effect: xr.Dataset) -> float:
    """Mean over the axis of the variance in the bins, over that of what it estimates.

    Bins of the honest half with one row have no variance: they are left out of both.
    """
    truth = example.truth(effect)
    width = only(effect, "bin_right") - only(effect, "bin_left")
    variance = only(effect, "heterogeneity") ** 2
    known = np.isfinite(variance)
    expected = only(truth, "heterogeneity") ** 2 + only(truth, "bin_error")
    return float(np.sum((variance * width)[known]) / np.sum((expected * width)[known]))


def tables(results: xr.Dataset) -> list[tuple[str, pd.DataFrame]]:
    """Fixed bins, the test, chosen bins."""
    parts = ["variance", "expected", "within", "bin_error", "true_bin_error"]
    return [
        ("Fixed bins: what the variance is made of", mean_table(results, parts, ["n_bins"])),
        (
            "The test of no bin error (Holm over the bins, 5 %)",
            mean_table(results, ["tested", "flagged"], ["n_bins"]),
        ),
        (
            "Chosen bins: variance over what it estimates, 1 if unbiased",
            mean_table(results, ["optimism", "optimism_honest"], ["rule"]),
        ),
    ]


def findings(results: xr.Dataset) -> list[str]:
    """Does it hold."""

    def worst(estimate: xr.DataArray, truth: xr.DataArray) -> float:
        error = estimate - truth
        return float(tools.score(error).where(error.notnull().all("replicate")).max())

    variance = worst(results["variance"], results["expected"])
    toy = results.sel(scenario="toy [47]")
    estimated = worst(toy["bin_error"], toy["true_bin_error"])
    piecewise = results.sel(scenario="piecewise [51]")
    chosen, honest = piecewise["optimism"], piecewise["optimism_honest"]
    fixed = "K = 20, not chosen"
    coarse = piecewise.sel(n_bins=5)
    return [
        f"{holds(variance < 4)}: in fixed bins the variance estimates sigma² + bin error. Over all "
        f"functions and numbers of bins the largest deviation of a mean from it is {variance:.1f} "
        "Monte-Carlo standard errors.",
        "Differences of neighbours estimate the bin error without the truth: for the toy, the "
        f"largest deviation of a mean of bin_error from it is {estimated:.1f} Monte-Carlo standard "
        "errors. Each jump J of the effect inside a bin lowers the estimate by J²/(2(n - 1)): "
        "piecewise linear, K = 5, "
        f"{pm(coarse['bin_error'], 4)} against {pm(coarse['true_bin_error'], 4)}.",
        f"The test finds it: piecewise linear, K = 5, {pm(coarse['flagged'])} of 5 bins are called "
        "biased; one of them contains jumps, in the others the effect only rises by 0.2.",
        "Bins chosen on the same rows make the variance too small: piecewise linear, "
        + "; ".join(
            f"{rule}: {pm(chosen.sel(rule=rule))} of what it estimates, honest "
            f"{pm(honest.sel(rule=rule))}"
            for rule in CHOSEN
            if rule != fixed
        )
        + f"; {fixed}: {pm(chosen.sel(rule=fixed))}.",
    ]


def figure(results: xr.Dataset) -> Figure:
    """Variance, its parts and the truth against the number of bins."""
    fig, axes = tools.panels(1, results.sizes["scenario"])
    for ax, name in zip(axes[0], results["scenario"].values, strict=True):
        one = results.sel(scenario=name)
        tools.with_error(
            ax, N_BINS, one["variance"], color=tools.FIXED_COLOUR, fmt="o", label="variance"
        )
        tools.with_error(
            ax, N_BINS, one["within"], color=tools.RHALE_COLOUR, fmt="s", label="within"
        )
        expected, error = (
            one[what].mean("replicate").values for what in ("expected", "true_bin_error")
        )
        style = {"color": tools.TRUTH_COLOUR, "linewidth": 0.8}
        ax.plot(N_BINS, expected, **style, label="sigma² + bin error")
        ax.plot(N_BINS, expected - error, **style, linestyle=":", label="sigma²")
        ax.set(xscale="log", yscale="log", xlabel="equal-width bins", title=str(name))
    axes[0, 0].legend(frameon=False, fontsize="small")
    return fig
