"""Opposite groups: one wide bin or twenty (RHALE, Eq. 1, Figures 1 and 2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from rhale_stats.bins.rule import BinRule
from rhale_stats.bins.rules import EqualWidthBins, OptimalBins
from rhale_stats.diagnostics.checks import jump_check
from rhale_stats.effects.rhale import rhale
from rhale_stats.simulate import OppositeGroups
from studies import tools
from studies.report import mean_table
from studies.runner import Options, Output, Scenario, Study
from studies.tools import holds, pm, share

RULES: dict[str, BinRule] = {
    "RHALE, as in the paper": OptimalBins(min_obs=10, discount=0.5),
    "RHALE, default": OptimalBins(),
    "K = 20": EqualWidthBins(20),
    "K = 5": EqualWidthBins(5),
    "K = 1": EqualWidthBins(1),
}
JUMP_BINS = 5
LEVEL = 0.05


def study(options: Options) -> Study:
    """The study for these options."""
    sizes = (100,) if options.quick else (100, 1000)
    return Study(
        name="example-1",
        title="An average effect of zero made of two opposite effects",
        source="RHALE, Eq. 1, Figures 1 and 2",
        claim="With N = 100, K = 20 equal-width bins give significant errors in the effect of x2 "
        "and in its heterogeneity, whose truth is 0 and 5. RHALE makes a single bin and estimates "
        "both well. The heterogeneity of x3 is zero, which confirms that x3 is not related to the "
        "output.",
        scenarios=tuple(Scenario(f"N = {n}", {"n": n}) for n in sizes),
        coords={"rule": list(RULES)},
        outputs={
            **tools.SCORES,
            "x3_effect": Output((), "largest |effect| of x3 in any bin"),
            "x3_heterogeneity": Output((), "largest heterogeneity of x3 in any bin"),
            "x3_missed": Output((), "whether jump_check finds what the derivative of x3 misses"),
            "x1_missed": Output((), "whether it finds anything for x1, which is linear"),
        },
        replicate=replicate,
        n_replicates=3 if options.quick else 500,
        tables=tables,
        findings=findings,
        figure=figure,
    )


def replicate(
    parameters: Mapping[str, Any], rng: np.random.Generator, _context: Any
) -> dict[str, Any]:
    """One sample: every rule for x2, the derivative and the jumps of x3."""
    example = OppositeGroups()
    X = example.sample(parameters["n"], rng)
    scores = tools.scored_rules(tools.local_of(example, X, "x2"), example.truth, RULES)
    both = tools.local_of(example, X, None)
    effect = rhale(both, bins=EqualWidthBins(JUMP_BINS), weighting="rows")
    found = jump_check(effect, both, example.model, X)
    small = found["jump_pvalue_adjusted"] < LEVEL
    return {
        **scores,
        "x3_effect": float(np.abs(effect["effect"].sel(feature="x3")).max()),
        "x3_heterogeneity": float(effect["heterogeneity"].sel(feature="x3").max()),
        "x3_missed": float(small.sel(feature="x3").any()),
        "x1_missed": float(small.sel(feature="x1").any()),
    }


def tables(results: xr.Dataset) -> list[tuple[str, pd.DataFrame]]:
    """x2 by rule; x3."""
    x3 = ["x3_effect", "x3_heterogeneity", "x3_missed", "x1_missed"]
    return [
        (
            "Effect of x2, by both kinds of metric",
            mean_table(results, list(tools.SCORES), ["rule"]),
        ),
        (f"x3: its derivative, and jump_check in {JUMP_BINS} bins", mean_table(results, x3)),
    ]


def findings(results: xr.Dataset) -> list[str]:
    """Does it hold."""
    one = results.isel(scenario=0)
    paper, twenty = one.sel(rule="RHALE, as in the paper"), one.sel(rule="K = 20")
    unknown = np.isnan(twenty["L_sigma"])
    known = twenty.isel(replicate=np.flatnonzero(~unknown))
    single = (paper["n_bins"] == 1).mean() > 0.9
    closer = known.sizes["replicate"] and paper["L_mu"].mean() < known["L_mu"].mean()
    default = one.sel(rule="RHALE, default")
    return [
        f"{holds(closer)}: with N = 100 the error of the effect of x2 is {pm(paper['L_mu'])} for "
        f"RHALE as in the paper and {pm(known['L_mu'])} for K = 20, that of the heterogeneity "
        f"{pm(paper['L_sigma'])} and {pm(known['L_sigma'])}; along the axis "
        f"{pm(paper['ISE_mu'])} and {pm(known['ISE_mu'])}. K = 20 leaves a bin with one row or "
        f"none in {share(unknown)} of runs. In these runs the heterogeneity is not known, and the "
        "means for K = 20 are over the other runs.",
        f"{holds(single)}: that RHALE makes a single bin. It does in {share(paper['n_bins'] == 1)} "
        f"of runs ({pm(paper['n_bins'])} bins on average), and with the default discount 0.2 and "
        f"N/20 rows a bin in {share(default['n_bins'] == 1)} ({pm(default['n_bins'])} bins). The "
        "additional bins are due to noise.",
        "Does not hold: that x3 is not related to the output. Its derivative is 0 and so is its "
        f"heterogeneity, but f jumps by 10 x2 where x3 is 0. jump_check detects this in "
        f"{share(one['x3_missed'])} of runs (and a jump in x1, which has none, in "
        f"{share(one['x1_missed'])}).",
    ]


def figure(results: xr.Dataset) -> Figure:
    """Errors by rule, one dot a run."""
    one = results.isel(scenario=0)
    fig, axes = tools.panels(1, 3)
    for ax, name in zip(axes[0], ("ISE_mu", "ISE_sigma", "n_bins"), strict=True):
        for at, rule in enumerate(RULES):
            values = one[name].sel(rule=rule).dropna("replicate").values
            if not len(values):
                continue
            shift = np.linspace(-0.25, 0.25, len(values))
            ax.plot(values, at + shift, ".", color=tools.RHALE_COLOUR, markersize=2, alpha=0.5)
            ax.plot(values.mean(), at, "k|", markersize=14)
        ax.set(xlabel=name, yticks=range(len(RULES)), yticklabels=list(RULES))
        ax.invert_yaxis()
    for ax in axes[0, 1:]:
        ax.set_yticklabels([])
    return fig
