"""Functions of several studies: fits without warnings, numbers as text, figures in one style."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from rhale_stats.bins.rule import BinRule
from rhale_stats.bins.rules import EqualWidthBins
from rhale_stats.effects import rhale
from rhale_stats.local.local_effects import local_effects
from rhale_stats.simulate import Simulator, scores
from studies.runner import Output

# Scores that most studies take, of every rule for bins: both kinds of metric, math [34] and [35].
SCORES = {
    **{
        name: Output(("rule",), scores.SCORES[name][0])
        for name in ("L_mu", "L_sigma", "ISE_mu", "ISE_sigma", "curve_mean_error")
    },
    "n_bins": Output(("rule",), "number of bins", "bins"),
}
RHALE_COLOUR, FIXED_COLOUR, TRUTH_COLOUR = "#d55e00", "#0173b2", "0.4"


def local_of(example: Simulator, X: pd.DataFrame, features: str | None = "x1") -> xr.Dataset:
    """Local effects by the simulator's own derivatives."""
    return local_effects(None, X, jacobian=example.jacobian, features=features)


def quiet_rhale(
    local: xr.Dataset, bins: BinRule, *, weighting: str = "rows", **arguments: Any
) -> xr.Dataset:
    """`rhale` where bins without rows are expected, by means over rows as the documents have it."""
    return rhale.quiet_rhale(local, bins, weighting=weighting, **arguments)


def only(effect: xr.Dataset, name: str) -> NDArray[np.float64]:
    """Values of the one feature of a Dataset."""
    return np.asarray(effect[name].isel(feature=0).values, dtype=np.float64)


def scored(effect: xr.Dataset, truth: xr.Dataset) -> dict[str, float]:
    """The scores of `SCORES` for the one feature of an effect."""
    found = scores.mae(effect, truth)
    return {
        **{name: float(found[name][0]) for name in SCORES if name != "n_bins"},
        "n_bins": float(effect["n_bins"][0]),
    }


def by_name(found: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Outputs of one rule, or number of bins, after the other as lists along these."""
    return {name: [one[name] for one in found] for name in found[0]}


def scored_rules(
    local: xr.Dataset, truth_of: Callable[[xr.Dataset], xr.Dataset], rules: Mapping[str, BinRule]
) -> dict[str, list[float]]:
    """Scores of several rules on the same rows, lists along ``rule``; NaN where a rule fails."""
    effects = [quiet_rhale(local, rule, has_spread=False) for rule in rules.values()]
    return by_name([scored(effect, truth_of(effect)) for effect in effects])


def fixed_rules(n_bins: Sequence[int]) -> dict[str, BinRule]:
    """Equal-width bins, by name."""
    return {f"K = {n}": EqualWidthBins(n) for n in n_bins}


def where(results: xr.Dataset, name: str, value: object) -> xr.Dataset:
    """Scenarios of which a parameter has this value."""
    return results.isel(scenario=np.flatnonzero(results[name].values == value))


def against_fixed(results: xr.Dataset, scores: Sequence[str]) -> pd.DataFrame:
    """RHALE beside the numbers of equal-width bins for which no run failed, a line a score.

    ``results`` has RHALE first along ``rule``, then the numbers of bins. ``better`` counts the
    numbers of bins with a smaller mean than RHALE, of ``compared``.
    """
    lines = []
    for scenario in results["scenario"].values:
        for score in scores:
            values = results[score].sel(scenario=scenario).transpose("rule", "replicate")
            known = np.flatnonzero(values.notnull().all("replicate"))
            ours, fixed = values.isel(rule=0), values.isel(rule=known[known > 0])
            means = fixed.mean("replicate").values
            best = int(np.argmin(means))
            (mean, error), (least, least_error) = mean_and_mcse(ours), mean_and_mcse(fixed[best])
            lines.append(
                {
                    "scenario": str(scenario),
                    "score": score,
                    "RHALE": mean,
                    "RHALE_mcse": error,
                    "best": str(fixed["rule"].values[best]),
                    "best_mean": least,
                    "best_mcse": least_error,
                    "better": int((means < mean).sum()),
                    "compared": len(means),
                }
            )
    return pd.DataFrame(lines)


def draw_against_fixed(ax: Axes, scores: xr.DataArray, fmt: str) -> None:
    """Means of one score against the number of equal-width bins, and RHALE's as a line."""
    fixed = scores.isel(rule=slice(1, None))
    known = fixed.notnull().all("replicate").values
    k = np.array([int(str(rule).removeprefix("K = ")) for rule in fixed["rule"].values])
    with_error(ax, k[known], fixed.isel(rule=known), fmt=fmt, color=FIXED_COLOUR)
    ax.axhline(float(scores.isel(rule=0).mean()), color=RHALE_COLOUR, linewidth=1.2)
    ax.set(title=str(scores.name), xlabel="equal-width bins", ylim=(0, None))


def mean_and_mcse(values: xr.DataArray | NDArray[np.float64]) -> tuple[float, float]:
    """Mean of all values and its Monte-Carlo standard error; NaN where one is NaN."""
    array = np.ravel(np.asarray(values, dtype=np.float64))
    if len(array) < 2:
        return float(array.mean()), float("nan")
    return float(array.mean()), float(array.std(ddof=1) / np.sqrt(len(array)))


def standard_error(values: xr.DataArray) -> xr.DataArray:
    """Monte-Carlo standard error of the mean over replicates; NaN of a single one."""
    error: xr.DataArray = values.std("replicate", ddof=1) / np.sqrt(values.sizes["replicate"])
    return error


def score(error: xr.DataArray) -> xr.DataArray:
    """Size of the mean of errors over replicates, in Monte-Carlo standard errors."""
    size: xr.DataArray = abs(error.mean("replicate")) / standard_error(error)
    return size


def pm(values: xr.DataArray | NDArray[np.float64], digits: int = 3) -> str:
    """Mean ± Monte-Carlo standard error, as text."""
    if not np.size(values):
        return "unknown"
    mean, error = mean_and_mcse(values)
    if np.isnan(error):
        return f"{mean:.{digits}g}"
    return f"{mean:.{digits}g} ± {error:.1g}"


def share(hits: xr.DataArray | NDArray[np.bool_]) -> str:
    """Share of runs in percent with its Monte-Carlo standard error, as text."""
    array = np.ravel(np.asarray(hits, dtype=np.float64))
    p = float(array.mean())
    return f"{100 * p:.3g} ± {100 * np.sqrt(p * (1 - p) / len(array)):.1g} %"


def holds(condition: object) -> str:
    """First words of a finding, decided by the numbers of this run."""
    return "Holds" if bool(condition) else "Does not hold"


def panels(n_rows: int, n_columns: int, **arguments: Any) -> tuple[Figure, NDArray[Any]]:
    """A figure in the style of the package."""
    with sns.axes_style("ticks"), sns.plotting_context("paper"):
        figure, axes = plt.subplots(
            n_rows,
            n_columns,
            figsize=(3.2 * n_columns + 0.4, 2.6 * n_rows + 0.3),
            layout="constrained",
            squeeze=False,
            **arguments,
        )
    sns.despine(figure)
    return figure, axes


def with_error(ax: Axes, x: Any, values: xr.DataArray, **style: Any) -> None:
    """Means over replicates against ``x`` with whiskers of one Monte-Carlo standard error."""
    error = standard_error(values)
    ax.errorbar(x, values.mean("replicate"), error, **{"markersize": 3, "linewidth": 0.8, **style})
