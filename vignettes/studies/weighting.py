"""Averages along the axis and averages over the rows, for the curve and for effects of bins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy import stats

from rhale_stats.bins.adaptive import AdaptiveBins
from rhale_stats.bins.rule import BinRule
from rhale_stats.bins.rules import OptimalBins, QuantileBins
from rhale_stats.generics.uncertainty import confband, confint, std_error
from rhale_stats.local.local_effects import local_effects
from rhale_stats.schema.feature_result import FeatureResult, one_feature
from studies import tools
from studies.report import mean_table
from studies.runner import Options, Output, Scenario, Study
from studies.tools import holds

Values = NDArray[np.float64]

SPREAD = 1.0
# There are few rows beyond the inner 99 %, and no claim is made there.
INNER = (0.005, 0.995)
# Points at which populations, and scores along the axis, are taken.
POPULATION, POINTS = 20_001, 199
LEVEL = 0.95
# Samples of one replicate, as columns of one table: all of them by the default, the first one by
# the other estimators, whose errors differ by more.
SAMPLES, OF_OTHERS = 10, 1
BAND_DRAWS = 1000
# Estimators that the tables have one by one, with their bands.
BANDED = ["default", "optimal, rows"]
# Beyond its inner 99 % of rows the log-normal has few rows on a long axis.
LIGHT_TAILS = ("uniform", "normal", "exponential", "gapped")
CLAIMED = (0.93, 0.97)
# A share misses the claim where it does so by this many Monte-Carlo standard errors; of bands that
# hold or do not, where a binomial test of this size says so.
ERRORS = 3.0
SIZE = float(stats.norm.sf(ERRORS))

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
    sizes = (300,) if options.quick else (200, 300, 1000, 10_000)
    places = ("exponential",) if options.quick else tuple(PLACES)
    effects = ("smooth", "stepped") if options.quick else tuple(EFFECTS)
    settings = list(product(places, effects, sizes))
    if not options.quick:
        # At the end: seeds go by position.
        settings += product(places, effects, (100_000,))
    return Study(
        name="weighting",
        title="Averages along the axis or over the rows, and rules for bins",
        source="RHALE, Eq. 5 (mean over rows), and Theorem 1 (average along the axis)",
        claim="The paper takes the mean over the rows of a bin for the average effect in it, and "
        "accumulates it to the curve. The two averages agree where rows are uniform in the bin.",
        scenarios=tuple(
            Scenario(f"{place}, {effect}, N = {n}", {"place": place, "effect": effect, "n": n})
            for place, effect, n in settings
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
                ("estimator",), "share of samples whose band holds it at all edges of cells"
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
        n_replicates=2 if options.quick else 20,
        tables=tables,
        findings=findings,
        figure=figure,
        rows={
            "Coverage of the default": "N in (200, 100000)",
            "Coverage of 95 %": "",
            "Errors along": "",
            "Summed up": "N in (200, 100000)",
        },
    )


_truths: dict[tuple[str, str], Truth] = {}


def replicate(
    parameters: Mapping[str, Any], rng: np.random.Generator, _context: Any
) -> dict[str, Any]:
    """Means over samples, by every estimator. NaN where none has an edge among the inner rows."""
    place, effect = str(parameters["place"]), str(parameters["effect"])
    if (place, effect) not in _truths:
        _truths[place, effect] = Truth.of(place, effect)
    truth, mu = _truths[place, effect], EFFECTS[effect]
    shape = parameters["n"], SAMPLES
    x = np.asarray(PLACES[place](rng.uniform(size=shape)), dtype=np.float64)
    g = mu(x) + SPREAD * rng.normal(size=shape)
    found: dict[str, list[float]] = {}
    for estimator, (rule, weighting) in ESTIMATORS.items():
        n_samples = SAMPLES if estimator == "default" else OF_OTHERS
        local = local_effects(None, x[:, :n_samples], jacobian=g[:, :n_samples])
        made = confint(std_error(tools.quiet_rhale(local, rule, weighting=weighting)))
        if estimator in BANDED:
            made = confband(made, n_draws=BAND_DRAWS, rng=rng)
        samples = pd.DataFrame(
            [scores(one_feature(made, sample), truth, place, mu) for sample in range(n_samples)]
        )
        for name, value in samples.mean().items():
            found.setdefault(str(name), []).append(float(value))
    return {name: np.array(values) for name, values in found.items()}


def scores(
    row: FeatureResult, truth: Truth, place: str, mu: Callable[[Values], Any]
) -> dict[str, float]:
    """Scores of one estimate within the inner 99 % of the rows, where it has a curve."""
    population = np.asarray(PLACES[place]((np.arange(POPULATION) + 0.5) / POPULATION))
    low, high = (float(PLACES[place](np.array([p]))[0]) for p in INNER)
    curve, fit = row.curve, row.fit
    known = curve.edges[np.isfinite(curve.values)]
    start, end = float(known[0]), float(known[-1])

    def true(z: Values) -> Values:
        return truth.at(z, population, start, end)

    def inside(z: Values) -> NDArray[np.bool_]:
        return (z >= low) & (z <= high)

    edges = row.bin_edges
    at = inside(edges) & np.isfinite(row.at_bins("curve"))
    everywhere = fit.pieces.edges
    fine = everywhere[inside(everywhere)]
    half = stats.t.ppf((1 + LEVEL) / 2, fit.curve_degrees(fine)) * np.sqrt(fit.variance(fine))
    average = np.diff(true(edges)) / np.diff(edges)
    z = population[:: POPULATION // POINTS]
    z = z[inside(z) & (z >= start) & (z <= end)]
    k = np.searchsorted(edges[1:-1], z, side="right")

    def held(name: str, value: Values, where: NDArray[np.bool_]) -> Values:
        ends = row.at_bins(name) if len(value) == len(edges) else row[name].values
        ends = ends[np.isfinite(ends).all(axis=1)] if len(ends) > len(value) else ends
        return ((ends[:, 0] <= value) & (value <= ends[:, 1]))[where].astype(np.float64)

    on_curve = np.array([np.nan])
    if "curve_band" in row:
        on_curve = held("curve_band", true(everywhere), inside(everywhere))
    return {
        "curve_covered": _mean(np.abs(curve.evaluate(fine) - true(fine)) <= half),
        "edges_covered": _mean(held("curve_ci", true(edges), at)),
        "band_covered": on_curve.min(initial=1.0) if len(on_curve) else np.nan,
        "effect_covered": _mean(held("effect_ci", average, at[1:] & at[:-1])),
        "curve_error": _root(curve.evaluate(z) - true(z)),
        "effect_error": _root(row.effect_at(z, k) - mu(z)),
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
    own = results.sel(estimator=BANDED)
    return [
        ("Coverage of the default by place and number of rows", by_place(results)),
        ("Coverage of 95 % intervals and bands", mean_table(own, covered, ["estimator"])),
        ("Errors along the axis", mean_table(own, errors, ["estimator"])),
        ("Summed up over places and effects", summed_up(results)),
    ]


def by_place(results: xr.Dataset) -> pd.DataFrame:
    """Coverage of the curve and of bands over all effects, with Monte-Carlo standard errors."""
    own = results.sel(estimator="default")
    lines = []
    for place, n in dict.fromkeys(zip(own["place"].values, own["n"].values, strict=True)):
        at = (own["place"].values == place) & (own["n"].values == n)
        line: dict[str, Any] = {"place": str(place), "N": int(n)}
        for score in ("curve_covered", "edges_covered", "band_covered", "effect_covered"):
            line |= {score: share_of(own[score].values[at])[0]}
            line |= {f"{score}_mcse": share_of(own[score].values[at])[1]}
        lines.append(line)
    return pd.DataFrame(lines)


def share_of(runs: Values) -> tuple[float, float]:
    """Mean of shares over runs, and its standard error; the nominal one of shares all alike."""
    runs = runs[np.isfinite(runs)]
    if len(runs) < 2:
        return _mean(runs), float("nan")
    least = np.sqrt(LEVEL * (1 - LEVEL) / SAMPLES) if runs.std() == 0 else 0.0
    return float(runs.mean()), float(max(runs.std(ddof=1), least) / np.sqrt(len(runs)))


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


class Coverage(NamedTuple):
    """Shares of all scenarios of the default with so many rows, and their standard errors.

    The variance of a run is pooled over the scenarios: that of a few runs of one is hardly known.
    """

    scenario: NDArray[np.str_]
    share: Values
    error: Values
    n_samples: Values
    counted: bool

    @classmethod
    def of(
        cls,
        results: xr.Dataset,
        score: str,
        places: Sequence[str],
        least: int,
        most: float = np.inf,
    ) -> Self:
        """Of the scenarios with features at these places and so many rows."""
        n = results["n"].values
        at = np.isin(results["place"].values, places) & (n >= least) & (n <= most)
        own = results.isel(scenario=at).sel(estimator="default")
        runs = own[score].transpose("scenario", "replicate").values
        variance = np.mean([np.nanvar(line, ddof=1) for line in runs]) if len(runs) else np.nan
        n_runs = np.isfinite(runs).sum(axis=1)
        error = np.sqrt(variance / n_runs)
        share = np.array([_mean(line[np.isfinite(line)]) for line in runs])
        names = own["scenario"].values.astype(str)
        return cls(names, share, error, SAMPLES * n_runs, score == "band_covered")

    def overall(self) -> str:
        """Their mean, with its standard error."""
        error = np.sqrt(np.sum(self.error**2)) / len(self.error)
        return f"{100 * self.share.mean():.1f} ± {100 * error:.1f} %"

    def outside(self) -> NDArray[np.bool_]:
        """Scenarios that miss the claim by more than chance."""
        low, high = CLAIMED
        if self.counted:
            held = np.rint(self.share * self.n_samples)
            few = stats.binom.cdf(held, self.n_samples, low) < SIZE
            return np.asarray(few | (stats.binom.sf(held - 1, self.n_samples, high) < SIZE))
        below = self.share + ERRORS * self.error < low
        return np.asarray(below | (self.share - ERRORS * self.error > high))

    def at(self, number: int) -> str:
        """One of them in words."""
        share, error = 100 * self.share[number], 100 * self.error[number]
        return f"{share:.1f} ± {error:.1f} % ({self.scenario[number]})"


def findings(results: xr.Dataset) -> list[str]:
    """Does it hold."""
    lines = [
        f"A run has {SAMPLES} samples by the default and {OF_OTHERS} of these by the other "
        f"estimators. Numbers after ± are Monte-Carlo standard errors, with the variance of a run "
        f"pooled over scenarios."
    ]
    for score, what in (("curve_covered", "intervals of the curve"), ("band_covered", "bands")):
        light = Coverage.of(results, score, LIGHT_TAILS, 300)
        out, of_all = light.outside(), f"{len(light.share)} scenarios"
        inside = CLAIMED[0] <= light.share.mean() <= CLAIMED[1] and not out.any()
        lines.append(
            f"{holds(inside)}: {what} at default settings cover the true curve at the edges of "
            f"its cells in 93 to 97 % of cases with 300 rows or more and light tails (uniform, "
            f"normal, exponential, gapped), within the inner 99 % of rows. Over {of_all} "
            f"{light.overall()}; smallest {light.at(int(light.share.argmin()))}, largest "
            f"{light.at(int(light.share.argmax()))}. Outside 93 to 97 % by more than "
            f"chance ({ERRORS:.0f} standard errors, or a binomial test of that size): "
            + (", ".join(light.at(int(k)) for k in np.flatnonzero(out)) or "none")
            + "."
        )
        for where, rest in (
            ("log-normal rows, N >= 300", Coverage.of(results, score, ["log-normal"], 300)),
            ("light tails, N = 200", Coverage.of(results, score, LIGHT_TAILS, 200, 200)),
        ):
            if len(rest.share):
                lines.append(
                    f"The same {what} with {where}: {rest.overall()}; smallest "
                    f"{rest.at(int(rest.share.argmin()))}."
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
    fig, axes = tools.panels(1, 2)
    styles = {"default": (tools.RHALE_COLOUR, "s"), "optimal, rows": (tools.FIXED_COLOUR, "o")}
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
