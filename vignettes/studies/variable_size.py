"""Equal-width bins against bins of any width (note of June 2021, Figures 5 to 7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from rhale_stats.bins.rule import BinRule
from rhale_stats.bins.rules import BestEqualWidthBins, OptimalBins, QuantileBins
from rhale_stats.generics.values import predict
from rhale_stats.simulate import PiecewiseLinear
from studies import tools
from studies.report import mean_table
from studies.runner import Options, Output, Scenario, Study
from studies.tools import holds, pm, share

# The note does not state its slopes, nor how sparse the sparse part is. These are ours: with them
# four equal-width bins are allowed, and five are not, as in the note.
SLOPES, BREAKS = (10.0, -6.0, 1.0), (20.0, 40.0)
DENSE_UNTIL, DENSE_SHARE, N = 40.0, 0.82, 150
MIN_OBS = 10
RULES: dict[str, BinRule] = {
    "best fixed K": BestEqualWidthBins(min_obs=MIN_OBS),
    "RHALE": OptimalBins(min_obs=MIN_OBS),
    "RHALE, discount 0.5": OptimalBins(min_obs=MIN_OBS, discount=0.5),
    "quantiles, K = 5": QuantileBins(5),
}
GRID = 101


def example() -> PiecewiseLinear:
    """Three pieces of length 20, 20 and 60, rows sparse beyond 40."""
    return PiecewiseLinear.independent(
        SLOPES, BREAKS, dense_until=DENSE_UNTIL, dense_share=DENSE_SHARE
    )


def study(options: Options) -> Study:
    """The study for these options."""
    sizes = (N,) if options.quick else (N, 10 * N)
    return Study(
        name="variable-size",
        title="Bins of variable width",
        source="note of June 2021, section 4, Figures 5 to 7",
        claim="Three linear pieces of length 20, 20 and 60, with rows sparse beyond 40. Among "
        "equal-width bins with at least 10 rows, K = 4 is the best, and too coarse. Bins of "
        "different widths are five, and almost perfect.",
        scenarios=tuple(Scenario(f"N = {n}", {"n": n}) for n in sizes),
        coords={"rule": list(RULES), "grid": np.linspace(0, 100, GRID).tolist()},
        outputs={**tools.SCORES, "curve": Output(("rule", "grid"), "curve")},
        replicate=replicate,
        n_replicates=3 if options.quick else 500,
        tables=lambda results: [
            ("Both kinds of metric", mean_table(results, list(tools.SCORES), ["rule"]))
        ],
        findings=findings,
        figure=figure,
    )


def replicate(
    parameters: Mapping[str, Any], rng: np.random.Generator, _context: Any
) -> dict[str, Any]:
    """One sample, every rule on the same rows."""
    simulator = example()
    local = tools.local_of(simulator, simulator.sample(parameters["n"], rng))
    found = []
    for rule in RULES.values():
        effect = tools.quiet_rhale(local, rule, has_spread=False, centering="integral")
        curve = predict(effect, np.linspace(0, 100, GRID), "x1").values
        found.append({**tools.scored(effect, simulator.truth(effect)), "curve": curve})
    return tools.by_name(found)


def findings(results: xr.Dataset) -> list[str]:
    """Does it hold."""
    words = []
    for scenario in results["scenario"].values:
        one = results.sel(scenario=scenario)
        fixed, ours = one.sel(rule="best fixed K"), one.sel(rule="RHALE")
        modal = int(fixed["n_bins"].to_series().mode()[0])
        better = fixed["curve_mean_error"] > ours["curve_mean_error"]
        gain = ours[["ISE_mu", "curve_mean_error"]].mean("replicate") - fixed[
            ["ISE_mu", "curve_mean_error"]
        ].mean("replicate")
        closer = max(float(gain[name]) for name in gain) < 0
        words.append(
            f"{holds(closer)} with {scenario}: that bins of different widths are better. The best "
            f"fixed K is {modal} most often ({share(fixed['n_bins'] == modal)}); RHALE makes "
            f"{pm(ours['n_bins'])} bins. Along the axis RHALE is {_ratio(fixed, ours, 'ISE_mu')} "
            f"as far from mu(z) and {_ratio(fixed, ours, 'ISE_sigma')} from sigma(z); its curve is "
            f"closer in {share(better)} of runs ({pm(ours['curve_mean_error'])} against "
            f"{pm(fixed['curve_mean_error'])})."
        )
    first = results.isel(scenario=0)
    return [
        *words,
        "With enough rows for five equal-width bins, both breaks, at 20 and 40, are edges of "
        "these bins. RHALE with 10 rows a bin splits noise as well.",
        "Scores on each rule's own bins differ less with the smaller N: L_mu is "
        f"{pm(first['L_mu'].sel(rule='best fixed K'))} for the best fixed K and "
        f"{pm(first['L_mu'].sel(rule='RHALE'))} for RHALE.",
        "The slopes and the number of rows are ours: the note states neither.",
    ]


def _ratio(fixed: xr.Dataset, ours: xr.Dataset, name: str) -> str:
    return f"{float(ours[name].mean() / fixed[name].mean()):.2f} times"


def figure(results: xr.Dataset) -> Figure:
    """The curves of twenty runs and the truth, by method."""
    fig, axes = tools.panels(1, len(RULES), sharey=True)
    z = results["grid"].values
    true = np.interp(z, [0, *BREAKS, 100], np.cumsum([0, 200, -120, 60]))
    true -= np.trapezoid(true, z) / 100
    one = results.isel(scenario=0, replicate=slice(0, 20))
    for ax, rule in zip(axes[0], RULES, strict=True):
        ax.plot(z, one["curve"].sel(rule=rule).T, color="#0173b2", linewidth=0.5, alpha=0.6)
        ax.plot(z, true, color="black", linestyle=":", linewidth=1.5)
        ax.set(title=rule, xlabel="x1")
    axes[0, 0].set_ylabel("curve (dotted: truth)")
    return fig
