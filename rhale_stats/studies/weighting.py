"""What the curve and the effects of a bin should be averages over: the axis, or the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy import stats

from rhale_stats.bins.adaptive import AdaptiveBins
from rhale_stats.bins.fixed import QuantileBins
from rhale_stats.bins.rule import BinRule
from rhale_stats.bins.searched import OptimalBins
from rhale_stats.effects.fit import fit_of
from rhale_stats.generics.errors import std_error
from rhale_stats.generics.intervals import confband, confint
from rhale_stats.local.local_effects import local_effects
from rhale_stats.schema.curves import curve_of
from rhale_stats.schema.features import effect_at, one_feature
from rhale_stats.studies.report import mean_table
from rhale_stats.studies.runner import Options, Output, Scenario, Study
from rhale_stats.studies.tools import (
    FIXED_COLOUR,
    RHALE_COLOUR,
    holds,
    no_variants,
    panels,
    quiet_rhale,
)

Values = NDArray[np.float64]

SPREAD = 1.0
# Rows beyond the inner 99 % are few: there no claim is made.
INNER = (0.005, 0.995)
# Points at which populations, and scores along the axis, are taken.
POPULATION, POINTS = 20_001, 199
LEVEL = 0.95

ESTIMATORS: dict[str, tuple[BinRule, str]] = {
    "default": (AdaptiveBins(), "axis"),
    "adaptive, rows": (AdaptiveBins(), "rows"),
    "optimal": (OptimalBins(), "axis"),
    "optimal, rows": (OptimalBins(), "rows"),
    "20 quantiles": (QuantileBins(20), "axis"),
}


def _of_two(p: Values) -> Values:
    """Quantiles of two uniform halves, on [0, 1] and [2, 3]."""
    return np.where(p < 0.5, 2 * p, 1 + 2 * p)


PLACES: dict[str, Callable[[Values], Any]] = {
    "uniform": lambda p: p,
    "normal": stats.norm.ppf,
    "exponential": stats.expon.ppf,
    "log-normal": stats.lognorm(0.8).ppf,
    "gapped": _of_two,
}
EFFECTS: dict[str, Callable[[Values], Any]] = {
    "smooth": lambda z: np.sin(3 * z) + z / 2,
    "stepped": lambda z: 2.0 * (z > 0.6),
    "steep": lambda z: 10 / np.cosh(np.clip(10 * (z - 0.5), -300, 300)) ** 2,
    "flat": lambda z: 0 * z,
}


class Truth(NamedTuple):
    """The population of one feature, and its curve."""

    z: Values
    curve: Values
    running: Values

    @classmethod
    def of(cls, place: str, effect: str) -> Truth:
        """By the trapezoidal rule on a grid fine enough for all effects of the study."""
        p = (np.arange(POPULATION) + 0.5) / POPULATION
        z = np.asarray(PLACES[place](p), dtype=np.float64)
        # Samples reach a little beyond.
        ends = np.asarray(PLACES[place](np.array([1e-9, 1 - 1e-9])))
        grid = np.unique(np.concatenate([z, np.linspace(ends[0], ends[1], 200_001), [0.6]]))
        middle = (grid[1:] + grid[:-1]) / 2
        # Simpson's rule, but for the step, which no piece holds.
        mu = EFFECTS[effect]
        area = (mu(grid[1:] - 1e-12) + 4 * mu(middle) + mu(grid[:-1] + 1e-12)) / 6
        curve = np.concatenate([[0.0], np.cumsum(area * np.diff(grid))])
        at_rows = np.interp(z, grid, curve)
        return cls(grid, curve, np.concatenate([[0.0], np.cumsum(at_rows)]))

    def at(self, z: Values, rows: Values, low: float, high: float) -> Values:
        """The curve at ``z``, 0 on average over the population between two places."""
        first, last = np.searchsorted(rows, [low, high])
        mean = (self.running[last] - self.running[first]) / (last - first)
        return np.asarray(np.interp(z, self.z, self.curve) - mean)


def study(options: Options) -> Study:
    """The study for these options."""
    no_variants(options)
    sizes = (300,) if options.quick else (200, 300, 1000, 10_000)
    places = ("exponential",) if options.quick else tuple(PLACES)
    effects = ("smooth", "stepped") if options.quick else tuple(EFFECTS)
    return Study(
        name="weighting",
        title="Averages along the axis or over the rows, and rules for bins",
        source="RHALE, Eq. 5 (mean over rows), and Theorem 1 (average along the axis)",
        claim="The paper takes the mean over the rows of a bin for the average effect in it, and "
        "accumulates it to the curve. The two averages agree where rows are uniform in the bin.",
        scenarios=tuple(
            Scenario(f"{place}, {effect}, N = {n}", {"place": place, "effect": effect, "n": n})
            for place in places
            for effect in effects
            for n in sizes
        ),
        coords={"estimator": list(ESTIMATORS)},
        outputs={
            "curve_covered": Output(
                ("estimator",), "share of the edges of cells whose interval holds the true curve"
            ),
            "edges_covered": Output(
                ("estimator",), "share of the edges of bins whose interval holds the true curve"
            ),
            "band_covered": Output(
                ("estimator",), "whether the band holds it at all edges of bins"
            ),
            "effect_covered": Output(
                ("estimator",), "share of the bins whose interval holds the average of mu(z)"
            ),
            "curve_error": Output(("estimator",), "root mean square error of the curve"),
            "effect_error": Output(("estimator",), "the same of the effect, for mu(z)"),
            "spread_error": Output(("estimator",), "the same of the heterogeneity"),
            "n_bins": Output(("estimator",), "number of bins", "bins"),
        },
        replicate=replicate,
        n_replicates=2 if options.quick else 100,
        tables=tables,
        findings=findings,
        figure=figure,
    )


_truths: dict[tuple[str, str], Truth] = {}


def replicate(
    parameters: Mapping[str, Any], rng: np.random.Generator, _context: Any
) -> dict[str, Any]:
    """One sample, by every estimator. NaN where no edge lies among the inner 99 % of rows."""
    place, effect = str(parameters["place"]), str(parameters["effect"])
    if (place, effect) not in _truths:
        _truths[place, effect] = Truth.of(place, effect)
    truth, mu = _truths[place, effect], EFFECTS[effect]
    x = np.asarray(PLACES[place](rng.uniform(size=parameters["n"])), dtype=np.float64)
    g = mu(x) + SPREAD * rng.normal(size=len(x))
    local = local_effects(None, x[:, None], jacobian=g[:, None], features=0)
    found: dict[str, list[float]] = {}
    for rule, weighting in ESTIMATORS.values():
        made = quiet_rhale(local, rule, weighting=weighting)
        row = one_feature(confband(confint(std_error(made)), n_draws=2000, rng=rng), 0)
        for name, value in scores(row, truth, place, mu).items():
            found.setdefault(name, []).append(value)
    return {name: np.array(values) for name, values in found.items()}


def scores(
    row: xr.Dataset, truth: Truth, place: str, mu: Callable[[Values], Any]
) -> dict[str, float]:
    """How one estimate does within the inner 99 % of the rows, where it has a curve."""
    population = np.asarray(PLACES[place]((np.arange(POPULATION) + 0.5) / POPULATION))
    low, high = (float(PLACES[place](np.array([p]))[0]) for p in INNER)
    curve, fit = curve_of(row), fit_of(row)
    known = curve.edges[np.isfinite(curve.values)]
    start, end = float(known[0]), float(known[-1])

    def true(z: Values) -> Values:
        return truth.at(z, population, start, end)

    def inside(z: Values) -> NDArray[np.bool_]:
        return (z >= low) & (z <= high)

    edges = row["edge_value"].values
    at = inside(edges) & np.isfinite(row["curve"].values)
    fine = fit.pieces.edges[inside(fit.pieces.edges)]
    half = stats.t.ppf((1 + LEVEL) / 2, fit.curve_degrees(fine)) * np.sqrt(fit.variance(fine))
    average = np.diff(true(edges)) / np.diff(edges)
    z = population[:: POPULATION // POINTS]
    z = z[inside(z) & (z >= start) & (z <= end)]
    k = np.searchsorted(edges[1:-1], z, side="right")

    def held(name: str, value: Values, where: NDArray[np.bool_]) -> Values:
        ends = row[name].values
        return ((ends[:, 0] <= value) & (value <= ends[:, 1]))[where].astype(np.float64)

    on_curve = held("curve_band", true(edges), at)
    return {
        "curve_covered": _mean(np.abs(curve.at(fine) - true(fine)) <= half),
        "edges_covered": _mean(held("curve_ci", true(edges), at)),
        "band_covered": float(on_curve.all()) if len(on_curve) else np.nan,
        "effect_covered": _mean(held("effect_ci", average, at[1:] & at[:-1])),
        "curve_error": _root(curve.at(z) - true(z)),
        "effect_error": _root(effect_at(row, z, k) - mu(z)),
        "spread_error": _root(row["heterogeneity"].values[k] - SPREAD),
        "n_bins": float(row.sizes["bin"]),
    }


def _mean(values: NDArray[Any]) -> float:
    return float(np.mean(values)) if len(values) else float("nan")


def _root(error: Values) -> float:
    return float(np.sqrt(np.mean(error**2))) if len(error) else float("nan")


def tables(results: xr.Dataset) -> list[tuple[str, pd.DataFrame]]:
    """Coverage and errors, by scenario and estimator; runs without an inner edge left out."""
    covered = ["curve_covered", "edges_covered", "band_covered", "effect_covered"]
    errors = ["curve_error", "effect_error", "spread_error", "n_bins"]
    own = results.sel(estimator=["default", "optimal, rows"])
    return [
        ("Coverage of 95 % intervals and bands", mean_table(own, covered, ["estimator"])),
        ("Errors along the axis", mean_table(own, errors, ["estimator"])),
        ("Summed up over places and effects", summed_up(results)),
    ]


def summed_up(results: xr.Dataset) -> pd.DataFrame:
    """Means over scenarios of a size, by estimator; errors relative to those of the default."""
    lines = []
    sizes = results["n"].values
    for n in np.unique(sizes):
        some = results.isel(scenario=sizes == n)
        base = some.sel(estimator="default")
        for name in results["estimator"].values:
            one = some.sel(estimator=name)
            line: dict[str, Any] = {"N": int(n), "estimator": str(name)}
            for score in ("curve_covered", "edges_covered", "band_covered", "effect_covered"):
                line[score] = float(one[score].mean())
            for score in ("curve_error", "effect_error", "spread_error"):
                ratio = one[score].mean("replicate") / base[score].mean("replicate")
                line[f"{score}_ratio"] = float(np.exp(np.log(ratio).mean()))
            line["n_bins"] = float(one["n_bins"].mean())
            lines.append(line)
    return pd.DataFrame(lines)


def worst(results: xr.Dataset, score: str, *, least_rows: int = 300) -> tuple[float, float, str]:
    """Smallest and largest share over scenarios with so many rows, and where it is smallest."""
    some = results.isel(scenario=results["n"].values >= least_rows)
    shares = some[score].sel(estimator="default").mean("replicate").values
    where = some["scenario"].values[int(np.nanargmin(shares))]
    return float(np.nanmin(shares)), float(np.nanmax(shares)), str(where)


def findings(results: xr.Dataset) -> list[str]:
    """Does it hold."""
    lines = []
    for score, what in (("curve_covered", "intervals of the curve"), ("band_covered", "bands")):
        low, high, where = worst(results, score)
        of_all = results[score].sel(estimator="default")
        of_all = of_all.isel(scenario=results["n"].values >= 300)
        runs = int(of_all.sizes["replicate"])
        error = 100 * np.sqrt(0.05 * 0.95 / runs)
        overall = float(of_all.mean())
        within = 0.93 <= overall <= 0.97
        within &= 0.93 - 2.5 * error / 100 <= low and high <= 0.97 + 2.5 * error / 100
        lines.append(
            f"{holds(within)}: {what} at default settings cover the true curve in 93 to 97 % of "
            f"cases with 300 rows or more. {100 * overall:.1f} % over all scenarios; smallest "
            f"{100 * low:.1f} % ({where}), largest {100 * high:.1f} %, where one scenario has a "
            f"Monte-Carlo standard error of up to {error:.1f} %."
        )
    paper = results["curve_error"].sel(estimator="optimal, rows").mean("replicate")
    ratio = paper / results["curve_error"].sel(estimator="default").mean("replicate")
    lines.append(
        f"The error of the curve by the paper's bins and means over rows is "
        f"{float(ratio.min()):.2f} to {float(ratio.max()):.0f} times that of the default, "
        f"{float(ratio.median()):.2f} times in the median scenario."
    )
    for score, what in (("effect_error", "effect"), ("spread_error", "heterogeneity")):
        other = results[score].sel(estimator="optimal").mean("replicate")
        ratio = other / results[score].sel(estimator="default").mean("replicate")
        lines.append(
            f"With averages along the axis, the error of the {what} along the axis by OptimalBins "
            f"is {float(ratio.min()):.2f} to {float(ratio.max()):.1f} times that by AdaptiveBins, "
            f"{float(ratio.median()):.2f} times in the median scenario: the default rule."
        )
    return lines


def figure(results: xr.Dataset) -> Figure:
    """Coverage of the curve and its error, the default against means over rows."""
    fig, axes = panels(1, 2)
    styles = {"default": (RHALE_COLOUR, "s"), "optimal, rows": (FIXED_COLOUR, "o")}
    for score, ax in zip(("curve_covered", "curve_error"), axes.flat, strict=True):
        for name, (colour, marker) in styles.items():
            means = results[score].sel(estimator=name).mean("replicate")
            n = results["n"].values * np.exp(0.05 * (name == "default"))
            ax.plot(n, means, marker, color=colour, markersize=3, alpha=0.7, label=name)
        ax.set(xscale="log", xlabel="rows")
    axes[0, 0].axhspan(0.93, 0.97, color="0.9", zorder=0)
    axes[0, 0].set_ylabel("coverage of the curve")
    axes[0, 1].set(ylabel="root mean square error of the curve", yscale="log")
    axes[0, 0].legend(frameon=False, fontsize="small")
    return fig
