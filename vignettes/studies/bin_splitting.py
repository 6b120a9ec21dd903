"""RHALE against every number of equal-width bins (RHALE, section 4.2, Figures 7 and 8)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from rhale_stats.bins.rule import BinRule
from rhale_stats.bins.rules import OptimalBins
from rhale_stats.simulate import PiecewiseLinear, Quadratic, Simulator, dense_truth
from rhale_stats.simulate.scores import mae
from studies import tools
from studies.report import mean_table
from studies.runner import Options, Output, Scenario, Study
from studies.tools import holds, only, pm

RHALE = "RHALE"
SETTINGS = ("code", "text")
# What the paper's text says, and what the authors' code does.
CODE = {"n": 502, "piecewise_sd": 0.5, "quadratic_sd": 0.4}
TEXT = {"n": 500, "piecewise_sd": 0.5**0.5, "quadratic_sd": 0.5**0.5}
CODE_RULE = OptimalBins(max_bins=20, min_obs=10, discount=0.3, ddof=0)
TEXT_RULE = OptimalBins(min_obs=25)
# The dense truth of the paper, made once for each function.
DENSE_ROWS, DENSE_BINS = 1_000_000, 1000
QUICK_ROWS = 100_000
# A break of the piecewise function that no grid of equal cells meets.
MOVED_BREAKS = (0.213, 0.387, 0.437, 0.512)
COMPARED = ("L_mu", "L_sigma", "ISE_mu", "ISE_sigma", "curve_mean_error")
FUNCTIONS = ("piecewise linear", "non-linear", "piecewise linear, other breaks")


def study(options: Options) -> Study:
    """The study for these options; the settings are those of the text unless told otherwise."""
    settings = options.settings or "text"
    if settings not in SETTINGS:
        raise ValueError(
            f"settings must be one of {', '.join(map(repr, SETTINGS))}; got {settings!r}."
        )
    # Positions are seeds: the paper's two functions first.
    names = FUNCTIONS[:2] if options.quick else FUNCTIONS
    return Study(
        name="bin-splitting",
        title="RHALE compared with every number of equal-width bins",
        source=f"RHALE, section 4.2, Figures 7 and 8, settings of the {settings}",
        claim="On the piecewise linear function RHALE is better than any number of equal-width "
        "bins in L_mu and in L_sigma; on the non-linear one it is (almost) optimal in both.",
        scenarios=tuple(
            Scenario(name, {"function": name, "settings_of": settings}) for name in names
        ),
        coords={"rule": [RHALE, *tools.fixed_rules(_n_bins(options))]},
        outputs={
            **tools.SCORES,
            "L_sigma_ddof0": Output(("rule",), "L_sigma of the deviation with divisor n"),
            "L_rho": Output(("rule",), "mean over bins of the root of the bin error, exact"),
            "L_rho_dense": Output(("rule",), "L_rho of the dense truth, its noise included"),
        },
        replicate=replicate,
        n_replicates=2 if options.quick else 100,
        tables=tables,
        findings=findings,
        figure=figure,
        rows=dict.fromkeys(FUNCTIONS, ""),
        prepare=prepare,
        takes=("settings",),
    )


def _n_bins(options: Options) -> tuple[int, ...]:
    return (1, 2, 5, 10, 20, 50) if options.quick else tuple(range(1, 101))


def example(name: str, settings: str) -> Simulator:
    """The function of that name with the spread of those settings."""
    chosen = CODE if settings == "code" else TEXT
    if name == "non-linear":
        return Quadratic(sd=chosen["quadratic_sd"])
    if name == "piecewise linear":
        return PiecewiseLinear(sd=chosen["piecewise_sd"])
    return PiecewiseLinear(sd=chosen["piecewise_sd"], breaks=MOVED_BREAKS)


def prepare(options: Options) -> dict[str, Any]:
    """Dense truths of the functions, and the rules to compare."""
    settings = options.settings or "text"
    rows = QUICK_ROWS if options.quick else DENSE_ROWS
    truths = {}
    for seed, name in enumerate(FUNCTIONS[:2] if options.quick else FUNCTIONS):
        simulator = example(name, settings)
        X = simulator.sample(rows, rng=seed)
        dense = dense_truth(None, simulator.jacobian, X, DENSE_BINS, features="x1")
        # With the noise of its means, as the authors have it.
        truths[name] = dense.drop_vars("effect_se")
    rules: dict[str, BinRule] = {
        RHALE: CODE_RULE if settings == "code" else TEXT_RULE,
        **tools.fixed_rules(_n_bins(options)),
    }
    return {"truths": truths, "rules": rules}


def sample(simulator: Simulator, settings: str, rng: np.random.Generator) -> pd.DataFrame:
    """The paper's rows; the authors' code adds one at each end of the axis."""
    n = int((CODE if settings == "code" else TEXT)["n"])
    X = simulator.sample(n, rng)
    if settings == "code":
        X.loc[X.index[:2], "x2"] += np.array([0.0, 1.0]) - X["x1"].to_numpy()[:2]
        X.loc[X.index[:2], "x1"] = [0.0, 1.0]
    return X


def replicate(
    parameters: Mapping[str, Any], rng: np.random.Generator, context: Mapping[str, Any]
) -> dict[str, Any]:
    """One sample, every rule on the same rows. NaN where a bin has one row or none."""
    settings, name = parameters["settings_of"], parameters["function"]
    simulator = example(name, settings)
    local = tools.local_of(simulator, sample(simulator, settings, rng))
    found = []
    for rule in context["rules"].values():
        effect = tools.quiet_rhale(local, rule, has_spread=False)
        truth = simulator.truth(effect)
        n = only(effect, "n_obs")
        with np.errstate(invalid="ignore", divide="ignore"):
            spread = only(effect, "heterogeneity") * np.sqrt((n - 1) / n)
        found.append(
            {
                **tools.scored(effect, truth),
                "L_sigma_ddof0": np.mean(np.abs(only(truth, "heterogeneity") - spread)),
                "L_rho": np.mean(np.sqrt(only(truth, "bin_error"))),
                "L_rho_dense": float(mae(effect, context["truths"][name])["L_rho"][0]),
            }
        )
    return tools.by_name(found)


def tables(results: xr.Dataset) -> list[tuple[str, pd.DataFrame]]:
    """One table a function: both kinds of metric, all rules."""
    every = [*tools.SCORES, "L_sigma_ddof0", "L_rho", "L_rho_dense"]
    every.remove("n_bins")
    out = [
        (
            "RHALE against the best number of equal-width bins",
            tools.against_fixed(results, COMPARED),
        )
    ]
    for k, name in enumerate(results["scenario"].values):
        table = mean_table(results.isel(scenario=[k]), every, ["rule"]).drop(columns="scenario")
        table.insert(1, "n_bins", results["n_bins"].isel(scenario=k).mean("replicate").values)
        out.append((str(name), table))
    return out


def findings(results: xr.Dataset) -> list[str]:
    """Does it hold, by both kinds of metric."""
    table = tools.against_fixed(results, COMPARED)
    words = []
    for name in results["scenario"].values:
        lines = table[table["scenario"] == name].set_index("score")
        better, ratio = lines["better"], lines["RHALE"] / lines["best_mean"]
        theirs = ["L_mu", "L_sigma"]
        if name == "non-linear":
            claim = f"{name}, RHALE within a tenth of the best K in L_mu and L_sigma"
            kept = ratio[theirs].max() <= 1.1
        else:
            claim = f"{name}, RHALE better than any K in L_mu and L_sigma"
            kept = better[theirs].sum() == 0
        words.append(
            f"{holds(kept)}: {claim}. RHALE over the best K, and numbers of bins that are better "
            f"than RHALE: "
            + ", ".join(f"{ratio[s]:.2f} in {s} ({better[s]})" for s in COMPARED)
            + f"; of {lines['compared'].max()} numbers of bins. RHALE makes "
            f"{pm(results['n_bins'].sel(scenario=name, rule=RHALE))} bins."
        )
    missing = results["L_sigma"].isnull().sum("replicate").max("scenario")
    first = [str(rule) for rule in results["rule"].values[(missing > 0).values]]
    return [
        *words,
        "L_mu and L_sigma compare every rule on its own bins. They do not include the bin error, "
        "and favour coarse bins. ISE and the errors of the curve include it.",
        "All breaks of the paper's function are multiples of 1/20, the grid of the code's RHALE: "
        "with breaks moved off the grid it loses this advantage.",
        f"Numbers of bins that leave a bin with one row or none in some run, from {first[0]} on, "
        "count as failed: they have no mean over all runs. The mean over the other runs is in the "
        "columns _valid."
        if first
        else "No number of bins failed.",
        "The paper's figures use standard deviations with divisor n. L_sigma_ddof0 is computed "
        "from ours times the root of (n - 1) / n, bin by bin. L_rho_dense includes the noise of "
        "the dense truth, as in the paper. L_rho is exact.",
    ]


def figure(results: xr.Dataset) -> Figure:
    """Figures 7 and 8 with the metrics of both kinds."""
    shown = ("L_mu", "L_sigma", "L_rho", "ISE_mu", "ISE_sigma")
    fig, axes = tools.panels(results.sizes["scenario"], len(shown))
    for row, name in zip(axes, results["scenario"].values, strict=True):
        one = results.sel(scenario=name)
        for ax, score in zip(row, shown, strict=True):
            tools.draw_against_fixed(ax, one[score], ".")
        row[0].set_ylabel(f"{name}\n(line: RHALE)")
    return fig
