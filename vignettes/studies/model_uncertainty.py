"""How well effects of models that were fitted to the same rows are known: coverage and cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from studies.model_uncertainty_models import (
    DECOMPOSED,
    LEARNERS,
    PLACES,
    PROCESSES,
    targets,
    wave_slope,
)
from studies.model_uncertainty_page import (
    cost_table,
    decomposition_table,
    formula_table,
    learner_table,
    page,
    parts_findings,
    rates,
)
from studies.model_uncertainty_parts import GRID, KINDS, STRATEGIES, curves
from studies.model_uncertainty_ways import (
    COSTS,
    DELTA,
    WAYS,
    Sample,
    costs,
    hits,
    of_formula,
    of_learner,
)
from studies.runner import Options, Output, Scenario, Study
from studies.tools import holds, panels

ROWS = (300, 2000)
PARTS_ROWS = (300, 1500)
RESAMPLES, QUICK_RESAMPLES = 40, 8
# Share of the replicates in which what is slow is done.
SHARE = {"formula": 1.0, "learner": 0.35, "parts": 0.5, "cost": 1.0}


def study(options: Options) -> Study:
    """The study for these options."""
    at = ("way", "place")
    of_curves = ("strategy", "kind", "grid")
    return Study(
        name="model-uncertainty",
        title="How well effects of fitted models are known",
        source="math [80] to [84]; Heiß et al. (2026), arXiv 2603.15057",
        claim="If the model was fitted to the rows, intervals of the true effect need the error of "
        "its parameters: nominal 95 % intervals by both cover 93 to 97 %.",
        # Positions are seeds.
        scenarios=tuple(_scenarios(options.quick)),
        coords={
            "way": WAYS,
            "place": PLACES,
            "strategy": STRATEGIES,
            "kind": KINDS,
            "grid": GRID.round(3).tolist(),
            "what": COSTS,
        },
        outputs={
            "estimate": Output(at, "estimate in a bin or at an edge"),
            "low": Output(at, "lower end of its interval"),
            "high": Output(at, "upper end of its interval"),
            "band": Output(("way",), "1 if the band holds the true curve at all edges"),
            "seconds": Output(("way",), "CPU time of the errors", "s"),
            "estimated": Output(of_curves, "curve, estimated"),
            "in_population": Output(of_curves, "curve of the same models in the population"),
            "cost": Output(("what",), "time of the errors, alone on the machine", "s"),
        },
        replicate=replicate,
        n_replicates=3 if options.quick else 120,
        tables=tables,
        findings=findings,
        figure=figure,
        prepare=lambda given: costs(given.quick),
        page=page_of,
    )


def _scenarios(quick: bool) -> list[Scenario]:
    found = []
    # The quick study has the first or the last of each.
    formulas, learners, decomposed = list(PROCESSES), list(LEARNERS), list(DECOMPOSED)
    if quick:
        formulas, learners, decomposed = formulas[-1:], learners[:1], decomposed[-1:]
    for n in ROWS[:1] if quick else ROWS:
        found += [_scenario("formula", model, n) for model in formulas]
    few = QUICK_RESAMPLES if quick else RESAMPLES
    found += [_scenario("learner", model, 300, few) for model in learners]
    for n in PARTS_ROWS[:1] if quick else PARTS_ROWS:
        found += [_scenario("parts", model, n) for model in decomposed]
    found.append(_scenario("cost", "", 0))
    return [
        Scenario(one.name, {**one.parameters, "share": 1.0 if quick else one.parameters["share"]})
        for one in found
    ]


def _scenario(block: str, model: str, n: int, n_resamples: int = 0) -> Scenario:
    name = f"{block}: {model}, N = {n}" if model else block
    return Scenario(
        name,
        {
            "block": block,
            "model": model,
            "n": n,
            "n_resamples": n_resamples,
            "share": SHARE[block],
        },
    )


def replicate(
    parameters: Mapping[str, Any], rng: np.random.Generator, spent: Mapping[str, float]
) -> dict[str, Any]:
    """One sample; NaN where it is not drawn, and for what other blocks measure."""
    block, model, n = (parameters[name] for name in ("block", "model", "n"))
    of_curves = np.full((len(STRATEGIES), len(KINDS), len(GRID)), np.nan)
    sample, cost = Sample.empty(), np.full(len(COSTS), np.nan)
    found = {"estimated": of_curves, "in_population": of_curves}
    truth = np.full(len(PLACES), np.nan)
    drawn = rng.uniform() < float(parameters["share"])
    if drawn and block == "formula":
        sample, truth = of_formula(str(model), int(n), rng), target_of(block, str(model))
    elif drawn and block == "learner":
        sample = of_learner(str(model), int(n), int(parameters["n_resamples"]), rng)
        truth = target_of(block, str(model))
    elif drawn and block == "parts":
        found = curves(str(model), int(n), rng)
    elif block == "cost":
        cost = np.array([spent[name] for name in COSTS])
    return {
        **found,
        "estimate": sample.estimate,
        "low": sample.low,
        "high": sample.high,
        "band": hits(sample, truth)["band"],
        "seconds": sample.seconds,
        "cost": cost,
    }


def target_of(block: str, model: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """True effects of a scenario, in the order of `PLACES`."""
    return targets(wave_slope if block == "learner" else PROCESSES[model].slope)


# What came out -----------------------------------------------------------------------------------


def tables(results: xr.Dataset) -> list[tuple[str, pd.DataFrame]]:
    """All tables of the page."""
    found = rates(results, target_of)
    every = [
        ("Models with parameters", formula_table(found)),
        ("Trees and a network", learner_table(found)),
        ("Cost", cost_table(results)),
        ("Parts of the error", decomposition_table(results)),
    ]
    return [(title, table) for title, table in every if len(table)]


def page_of(results: xr.Dataset) -> str:
    """The page, for readers."""
    return page(tables(results), findings(results))


def findings(results: xr.Dataset) -> list[str]:
    """How many rates are as claimed, what it costs, and what Heiß et al. found as well."""
    found = rates(results, target_of)
    of_formulas = found[found["block"] == "formula"]
    lines = []
    for way, words in (
        ("both", "Rows and parameters"),
        ("parameters", "Parameters alone"),
        ("rows", "Rows alone, model as given"),
    ):
        own = of_formulas[of_formulas["way"] == way]
        good = own["percent"] + 2 * own["error"] >= 93
        said = (
            f"{words}: {good.sum()} of {len(own)} rates for models with parameters are at most two "
            f"Monte-Carlo errors below 93 %; they are {own['percent'].min():.0f} to "
            f"{own['percent'].max():.0f} %."
        )
        lines.append(f"{holds(good.all())}: {said}" if way == "both" else said)
    of_learners = found[(found["block"] == "learner") & (found["target"] != "curve band")]
    for way in WAYS:
        own = of_learners[of_learners["way"] == way]
        if way not in DELTA[1:] and len(own):
            lines.append(
                f"Trees and network, {way}: {own['percent'].min():.0f} to "
                f"{own['percent'].max():.0f} % of the intervals hold the true value, "
                f"{own['of_mean'].min():.0f} to {own['of_mean'].max():.0f} % the mean estimate."
            )
    return [*lines, *_of_costs(results), *parts_findings(results)]


def _of_costs(results: xr.Dataset) -> list[str]:
    cost = dict(zip(COSTS, results["cost"].median(("scenario", "replicate")).values, strict=True))
    models = sorted({name.split(":")[0] for name in COSTS if ":" in name})
    share = max(cost[f"{name}: delta method"] / cost[f"{name}: 100 refits"] for name in models)
    large = cost["10^5 rows, 20 parameters"]
    return [
        f"{holds(share <= 0.1)}: the delta method takes at most {100 * share:.1f} % of the time of "
        f"100 refits.",
        f"{holds(large <= 3)}: errors of one feature of a large table with 20 parameters take "
        f"{large:.2g} s.",
    ]


def figure(results: xr.Dataset) -> Figure:
    """Coverage of the curve by way, and the parts of the error."""
    found = rates(results, target_of)
    fig, axes = panels(1, 2)
    ax = axes[0, 0]
    shown = found[found["target"] == "curve"].copy()
    shown["line"] = shown["model"] + ", N = " + shown["n"].astype(str)
    lines = list(dict.fromkeys(shown["line"]))
    for way in WAYS:
        own = shown[shown["way"] == way]
        y = [-lines.index(line) for line in own["line"]]
        ax.errorbar(own["percent"], y, xerr=own["error"], fmt="o", markersize=3, label=way)
    ax.set_yticks(-np.arange(len(lines)), lines)
    ax.axvspan(93, 97, color="0.9", zorder=0)
    ax.set(xlabel="intervals of the curve that hold the true curve, %")
    ax.legend(frameon=False, fontsize="x-small")
    parts = decomposition_table(results, as_text=False)
    if len(parts):
        _draw_parts(axes[0, 1], parts)
    fig.set_size_inches(12, 6)
    return fig


def _draw_parts(ax: Any, table: pd.DataFrame) -> None:
    table = table[(table["N"] == table["N"].min()) & (table["curve"] == "ALE")]
    names = (table["model"] + ", " + table["rows"]).tolist()
    left = np.zeros(len(table))
    for part in ("model bias²", "estimation bias²", "model variance", "estimation variance"):
        width = np.maximum(table[part].to_numpy(), 0.0)
        ax.barh(-np.arange(len(table)), width, left=left, label=part)
        left += width
    ax.set_yticks(-np.arange(len(table)), names)
    ax.set(xlabel=f"mean squared error of ALE, N = {table['N'].min()}")
    ax.legend(frameon=False, fontsize="x-small")
