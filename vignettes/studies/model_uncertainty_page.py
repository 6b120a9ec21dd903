"""The tables of the study of model uncertainty, and its page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from rhale_stats.arrays.moments import FloatArray
from studies.model_uncertainty_models import CURVE, EFFECT, PROCESS_WORDS, SPREAD
from studies.model_uncertainty_parts import PARTS, parts_table
from studies.model_uncertainty_ways import COSTS, WAYS
from studies.tools import holds
from studies.validity_table import COVERAGE, markdown

TARGETS = {"effect": EFFECT, "curve": CURVE, "heterogeneity": SPREAD}
BAND = "curve band"
OVERFITTING = ("overfitting forest", "overfitting network")


def rates(results: xr.Dataset, target_of: Callable[[str, str], FloatArray]) -> pd.DataFrame:
    """Coverage in per cent with its Monte-Carlo error: a line a scenario, way and target.

    ``of_mean`` is the coverage of the mean estimate of all samples in place of the truth, and
    ``width`` the mean standard error that the intervals take, over the spread of the estimates.
    """
    lines = []
    for k, block in enumerate(results["block"].values):
        if block not in ("formula", "learner"):
            continue
        one = results.isel(scenario=k)
        model = str(one["model"].values)
        facts = {"block": str(block), "model": model, "n": int(one["n"])}
        truth = target_of(str(block), model)
        for way in WAYS:
            own = one.sel(way=way)
            low, high, estimate = (
                own[name].transpose("replicate", "place").values
                for name in ("low", "high", "estimate")
            )
            drawn = np.isfinite(estimate).any(axis=1)
            if not drawn.any():
                continue
            low, high, estimate = low[drawn], high[drawn], estimate[drawn]
            for target, at in TARGETS.items():
                ends, around = (low[:, at], high[:, at]), estimate[:, at]
                mean, error = _covered(*ends, truth[at])
                half = np.mean((ends[1] - ends[0]) / 2 / 1.96, axis=0)
                lines.append(
                    {
                        **facts,
                        "way": way,
                        "target": target,
                        "percent": mean,
                        "error": error,
                        "of_mean": _covered(*ends, np.nanmean(around, axis=0))[0],
                        "width": np.mean(half / np.nanstd(around, axis=0, ddof=1)),
                        "seconds": float(own["seconds"].median()),
                    }
                )
            held = own["band"].values
            held = held[np.isfinite(held)]
            if len(held):
                lines.append(
                    {
                        **facts,
                        "way": way,
                        "target": BAND,
                        "percent": 100 * held.mean(),
                        "error": _error_of(held),
                    }
                )
    return pd.DataFrame(lines)


def _covered(low: FloatArray, high: FloatArray, truth: FloatArray) -> tuple[float, float]:
    """Share in per cent, and its error: samples are independent, and points of one are not."""
    share = np.mean((low <= truth) & (truth <= high), axis=1)
    return 100 * float(share.mean()), _error_of(share)


def _error_of(share: FloatArray) -> float:
    if len(share) < 2 or share.std() == 0:
        return 100 / len(share)  # the error of a single miss
    return 100 * float(share.std(ddof=1) / np.sqrt(len(share)))


def _text(rate: Any) -> str:
    said = f"{rate.percent:.1f} ± {rate.error:.1f}"
    return said if rate.percent + 2 * rate.error >= COVERAGE[0] else f"**{said}**"


def formula_table(found: pd.DataFrame) -> pd.DataFrame:
    """Models with parameters: a line a model, number of rows and source of the error."""
    own = found[found["block"] == "formula"]
    lines = []
    for (model, n, way), rows in own.groupby(["model", "n", "way"], sort=False):
        line = {"model": PROCESS_WORDS[str(model)], "N": n, "error holds": way}
        by_target = {one.target: _text(one) for one in rows.itertuples()}
        lines.append(line | {name: by_target.get(name, "") for name in (*TARGETS, BAND)})
    return pd.DataFrame(lines)


def learner_table(found: pd.DataFrame) -> pd.DataFrame:
    """Models without parameters: coverage of the truth and of the mean estimate, and time."""
    own = found[found["block"] == "learner"]
    lines = []
    for (model, n, way), rows in own.groupby(["model", "n", "way"], sort=False):
        line: dict[str, Any] = {"model": model, "N": n, "interval by": way}
        by_target = {one.target: one for one in rows.itertuples()}
        line |= {name: _text(by_target[name]) for name in (*TARGETS, BAND) if name in by_target}
        for name in ("effect", "curve"):
            line[f"{name}: mean estimate"] = f"{by_target[name].of_mean:.0f}"
        line["error / sd of curves"] = f"{by_target['curve'].width:.2f}"
        line["seconds"] = f"{by_target['curve'].seconds:.2g}"
        lines.append(line)
    return pd.DataFrame(lines)


def cost_table(results: xr.Dataset) -> pd.DataFrame:
    """Seconds."""
    cost = results["cost"].median(("scenario", "replicate")).values
    said = [f"{value:.2g}" for value in cost]
    return pd.DataFrame({"what": COSTS, "seconds": said})


def decomposition_table(results: xr.Dataset, as_text: bool = True) -> pd.DataFrame:
    """The parts of the mean squared error, times 1,000 in a table for readers."""
    table = parts_table(results)
    if not as_text or not len(table):
        return table
    out = table[["model", "N", "curve", "rows"]].copy()
    for part in PARTS:
        pairs = zip(1000 * table[part], 1000 * table[f"{part} ±"], strict=True)
        out[part] = [f"{value:.1f} ± {error:.1f}" for value, error in pairs]
    return out


def parts_findings(results: xr.Dataset) -> list[str]:
    """What Heiß et al. found, and whether it is so here."""
    table = parts_table(results)
    if "boosted trees" not in table.get("model", pd.Series()).values:
        return []  # the quick study has one model
    by = table.set_index(["rows", "model", "N", "curve"])
    train, held_out, crossed = (
        by.xs(name, level="rows") for name in ("training rows", "held-out rows", "cross-validation")
    )
    better = train["MSE"] < held_out["MSE"]
    share = (train["estimation bias²"] / train["MSE"]).clip(lower=0)
    largest: Any = share.idxmax()
    error = train["estimation bias² ±"] / train["MSE"]
    above = share - 2 * error > 0.05
    lines = [
        "The next lines are findings of Heiß et al. (2026), and whether they hold here.",
        f"{holds(better.mean() > 0.5)}: more rows matter more than held-out rows: curves of the "
        f"training rows have the smaller error in {better.sum()} of {len(better)} cases.",
        f"{holds(not above.any())}: the bias that training rows add to the estimate is negligible: "
        f"its square is above 5 % of the mean squared error, by more than two Monte-Carlo errors, "
        f"in {above.sum()} of {len(above)} cases. The largest share is {100 * share.max():.0f} ± "
        f"{100 * error[largest]:.0f} % ({largest[0]}, N = {largest[1]}, {largest[2]}).",
        _grows(train, held_out),
    ]
    ratio = crossed["model variance"] / train["model variance"]
    known = [name for name in OVERFITTING if name in ratio.index.get_level_values("model")]
    if known:
        own = ratio.loc[known]
        others = ratio.drop(index=known, level="model")
        lines.append(
            f"{holds((own < 1).all())}: cross-validation reduces the variance of the model if it "
            f"overfits: to {_range(own)} of that of one model, and to {_range(others)} for the "
            f"other models."
        )
    return lines


def _grows(train: Any, held_out: Any) -> str:
    """Estimation variance of a quarter of the rows over that of all, by kind of curve."""
    ratio = held_out["estimation variance"] - train["estimation variance"]
    more = ratio.xs("ALE", level="curve") > ratio.xs("PDP", level="curve")
    return (
        f"{holds(more.mean() > 0.5)}: ALE is the more sensitive to the number of rows: from the "
        f"training rows to a quarter of them, its estimation variance grows by more than that of "
        f"PDP in {more.sum()} of {len(more)} cases."
    )


def _range(values: pd.Series) -> str:
    return f"{100 * values.min():.0f} to {100 * values.max():.0f} %"


INTRODUCTION = """This page says how well the effect of the *true process* is known if the model was
fitted to the same rows. The page [validity](validity.md) is about the other question: how well the
effect of a given model is known. The command at the end computed every number by simulation.

*What is covered.* Samples are drawn from a process with a known regression function. The model is
fitted to each of them. The coverage is the share of the nominal 95 % intervals that contain the
effect of the regression function in the same bins: the effects of 5 bins, the curve at their 6
edges, the heterogeneity, and the whole curve for a band. The number after ± is the Monte-Carlo
standard error. A rate in **bold** is more than two of them below 93 %.

*Processes.* Features are independent and uniform on (−1, 1). The effect of x1 is studied.
"""

SAID = {
    "Models with parameters": "`std_error(effect, local, model=results, X=X, uncertainty=...)`, "
    "`confint` and `confband`. Rows: the model is taken as given, so that its error is missing. "
    "Parameters: the rows are held fixed, as by Stata's `margins`; the interval is then one of the "
    "mean over these rows, not over the population. Both: the default. For the misspecified model "
    "the target is the effect of the best approximation in the population.",
    "Trees and a network": "Gradient boosting of 50 trees of depth 2, a forest of 30 trees with 5 "
    "rows a leaf, and a network of 8 units. The regression function is sin(2 x1) + x1 x2, with "
    "noise of variance 1. Effects are those of `ale`; `std_error` by rows, `bootstrap_refit` with "
    "40 refits, and `cross_effects` with 5 folds and 2 repeats. Such models are biased: a step is "
    'no sine. Intervals hold the variance and not the bias. Therefore the columns "mean estimate" '
    "have the coverage, in per cent, of the mean estimate over all samples. The mean "
    "standard error is also compared with the standard deviation of the curve between samples. "
    "Seconds are CPU time, fits included for refits and cross-fitting.",
    "Cost": "Errors of one feature with 10,000 rows: the delta method, and 100 refits of the same "
    "model (10 were timed). The large table has 100,000 rows and a logit with 20 parameters.",
    "Parts of the error": "The error of a curve is divided as by Heiß, Bögel, Bischl and "
    "Casalicchio (2026, arXiv 2603.15057). *Model*: the effect of the fitted model in the "
    "population against the true effect. *Estimation*: the estimate from a sample of rows against "
    "the effect of the same model in the population. Each has a squared bias and a variance over "
    "samples, and both are means over 9 points of the axis, times 1,000. The mean squared error "
    "also has the products of the two biases and of the two errors, so the parts do not add up to "
    "it exactly. Squared biases are without their Monte-Carlo error, and can therefore be "
    "negative. The true function is x1 + x1² + x1 x2 + x2/2, with noise of variance 1. Four fifths "
    "of the N rows are for training and one fifth is held out; cross-validation is the mean of the "
    "curves of 5 models on the rows that each has not seen. PDP is taken at the points, ALE in 10 "
    "intervals, RHALE with its own settings.",
}


# Lines that the page has; the command prints all.
ROWS = {
    "Models with parameters": "N == 300",
    "Parts of the error": "N == 300 and curve == 'ALE'",
}


def page(tables: Sequence[tuple[str, pd.DataFrame]], findings: Sequence[str]) -> str:
    """Findings and the main lines of the tables, for readers."""
    lines = "\n".join(f"- {sentence}" for sentence in findings)
    parts = [INTRODUCTION.strip(), "## Findings", lines]
    for title, table in tables:
        if len(table):
            own = table.query(ROWS[title]) if title in ROWS else table
            parts += [f"## {title}", SAID[title], markdown(own)]
    return "\n\n".join(parts)
