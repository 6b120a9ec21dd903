"""Coverage of intervals and bands, and sizes and power of tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from rhale_stats.bins.adaptive import AdaptiveBins
from rhale_stats.bins.rule import BinRule
from rhale_stats.bins.rules import GivenBins, OptimalBins
from rhale_stats.effects.hypotheses import equivalence_test
from rhale_stats.generics.hypotheses import compare, wald_test
from rhale_stats.generics.uncertainty import bootstrap, confband, confint, std_error
from rhale_stats.local.local_effects import local_effects
from rhale_stats.schema.feature_result import one_feature
from rhale_stats.schema.in_bins import in_bins
from rhale_stats.simulate import OppositeGroups, PiecewiseLinear
from studies.runner import Options, Output, Scenario, Study
from studies.tools import holds, mean_and_mcse, panels, quiet_rhale

FloatArray: TypeAlias = NDArray[np.float64]

LEVEL = 0.95
NORMAL = 1.959963984540054
# Aims in percent, by target; the limits are a little wider for chosen bins.
WANTED = (93.0, 97.0)
WANTED_SPREAD = (91.0, 98.0)
WANTED_CHOSEN = (92.0, 98.0)
PIECEWISE = PiecewiseLinear()

EFFECT, START, MEAN, SPREAD = "bin effect", "zero-start curve", "centred curve", "heterogeneity"
WHOLE = {
    EFFECT: "all bin effects",
    START: "whole zero-start curve",
    MEAN: "whole centred curve",
}
ALONG, TRUE_CURVE = "effect along the axis", "true curve"
TARGETS = (EFFECT, START, MEAN, *WHOLE.values(), SPREAD, ALONG, TRUE_CURVE)
CI, BAND, PLAIN = "standard errors", "simultaneous band", "± 1.96 se"
WRONG = "zero-start se"
SCHEMES = ("multinomial", "bayesian", "poisson")
INTERVALS = ("percentile", "basic", "bca", "studentized")
BOOT = (*(f"{scheme}, percentile" for scheme in SCHEMES), *INTERVALS[1:])
RULES: dict[str, BinRule] = {"OptimalBins": OptimalBins(), "AdaptiveBins": AdaptiveBins()}
WAYS = ("same rows", "honest", "rebin")
CHOSEN = tuple(f"{rule}, {way}" for rule in RULES for way in WAYS)
METHODS = (CI, BAND, PLAIN, WRONG, *BOOT, *CHOSEN)
# Besides the mean over all bins or edges: at so large a part of them.
PLACES = {"all": np.nan, "0": 0.0, "1/4": 0.25, "1/2": 0.5, "3/4": 0.75, "1": 1.0}
TESTS = (
    "wald, zero",
    "wald, constant",
    "compare, independent",
    "compare, paired",
    "equivalence, one bin",
    "equivalence, all bins",
)
# Squared distance from the null in squared standard errors, and for equivalence the distance of
# the effect from delta in standard errors.
ALTERNATIVES = {"null": (0.0, 0.0), "near": (6.0, 2.0), "far": (15.0, 3.0)}
LEVELS = (0.01, 0.05, 0.10)
# A size is taken to be wrong this many Monte-Carlo errors from the level.
WRONG_SIZE = 3.0
DELTA = 1.0
GRID = 21
BAND_DRAWS = 2000
TICKS = (70, 80, 90, 93, 95, 97, 100)


@dataclass(frozen=True)
class Amount:
    """Samples in a replicate by kind of scenario, and replicates of a bootstrap."""

    fixed: int = 50
    bands: int = 50
    small: int = 10
    spread: int = 50
    boot: int = 50
    boot_other: int = 25
    chosen: int = 12
    rebin: int = 1
    tests: int = 25
    alternatives: int = 4
    resamples: int = 500
    resamples_rebin: int = 200

    def samples(self, kind: str, case: str, n: int, n_bins: int) -> int:
        """Samples in a replicate: of bootstraps fewer where points are many, or not judged."""
        other = kind == "boot" and (case == "t3" or (n, n_bins) != (200, LARGE_BINS[200]))
        return int(getattr(self, "boot_other" if other else kind))


QUICK = Amount(2, 2, 2, 2, 2, 2, 2, 1, 2, 2, 20, 8)


class Truth(NamedTuple):
    """Targets in given bins, (sample, bin) or (sample, edge); one row counts for all samples."""

    effect: FloatArray
    spread: FloatArray
    start: FloatArray
    mean: FloatArray


class Case(NamedTuple):
    """Rows of many samples, and the constant mean and spread of their local effects."""

    draw: Callable[[np.random.Generator, tuple[int, int]], tuple[FloatArray, FloatArray]]
    low: float
    mean: float
    spread: float


def _interaction(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[FloatArray, FloatArray]:
    x1, x2 = rng.uniform(-1, 1, (2, *shape))
    return x1, 2 + 4 * x2


def _two_point(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[FloatArray, FloatArray]:
    example = OppositeGroups()
    drawn = example.sample(shape[0] * shape[1], rng)
    return drawn["x2"].to_numpy().reshape(shape), example.jacobian(drawn)[:, 1].reshape(shape)


def _piecewise(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[FloatArray, FloatArray]:
    drawn = PIECEWISE.sample(shape[0] * shape[1], rng)
    return drawn["x1"].to_numpy().reshape(shape), PIECEWISE.jacobian(drawn)[:, 0].reshape(shape)


def _t3(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[FloatArray, FloatArray]:
    return rng.uniform(-1, 1, shape), 1 + rng.standard_t(3, shape)


def _normal(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[FloatArray, FloatArray]:
    return rng.uniform(-1, 1, shape), 1 + rng.normal(size=shape)


CASES = {
    "interaction": Case(_interaction, -1.0, 2.0, 4 / 3**0.5),
    "two-point": Case(_two_point, -1.0, 0.0, 5.0),
    "piecewise": Case(_piecewise, 0.0, np.nan, np.nan),
    "t3": Case(_t3, -1.0, 1.0, 3**0.5),
    "normal": Case(_normal, -1.0, 1.0, 1.0),
}
SPREAD_CASES = ("normal", "two-point", "t3")
FIXED_CASES = ("interaction", "two-point", "piecewise", "t3")
# Rows, and bins of 40 and 50 rows on average: fewer than 25 in one of a thousand bins at most.
LARGE_BINS = {200: 5, 1000: 20}
SMALL_BINS = {200: 20, 1000: 100}


def study(options: Options) -> Study:
    """The study for these options."""
    # Positions are seeds.
    scenarios = _scenarios()
    if options.quick:
        scenarios = [one for one in scenarios if _is_quick(one.parameters)]
    return Study(
        name="coverage",
        title="Coverage of intervals and bands, size and power of tests",
        source="math [24] to [32]; the claims are this package's own",
        claim="At a nominal 95 %, with fixed bins of at least 25 rows, intervals of bin effects, "
        "of the zero-start and of the population-centred curve cover 93 to 97 % at every point, "
        "by standard errors and by every bootstrap, and simultaneous bands cover the whole "
        "curve as often. Intervals of the heterogeneity cover 91 to 98 % from 50 rows on, for "
        "normal and for two-valued local effects. If bins are chosen on the same rows, honest "
        "edges or edges chosen again in every replicate restore 92 to 98 %. Tests hold their size "
        "at 1, 5 and 10 %.",
        scenarios=tuple(scenarios),
        coords={
            "target": TARGETS,
            "method": METHODS,
            "place": tuple(PLACES),
            "test": TESTS,
            "alternative": tuple(ALTERNATIVES),
            "level": LEVELS,
        },
        outputs={
            "covered": Output(
                ("target", "method", "place"), "share of intervals that hold their target"
            ),
            "missing": Output(("target", "method"), "share of intervals that are not known"),
            "rejected": Output(("test", "alternative", "level"), "share of tests that reject"),
            "n_bins": Output(("method",), "number of chosen bins", "bins"),
        },
        replicate=replicate,
        n_replicates=2 if options.quick else 40,
        tables=tables,
        findings=findings,
        figure=figure,
        rows={
            "Judged lines": "not method.str.contains('bayesian|poisson')",
            **{heading: "" for kind, heading in HEADINGS.items() if kind != "spread"},
            HEADINGS["spread"]: f"method == '{CI}'",
            "Number of chosen bins": "",
            "Tests": "level == 5 and scenario.str.contains('N = 200')",
        },
        printed_only=(
            *(f"Holds: {what}" for what in ("by ", "simultaneous", *TESTS)),
            "For contrast",
            *(f"{rule}, same rows at points" for rule in RULES),
            *("Bootstrap in bins", "Heavy tails", "Bins of 10 rows", "Heterogeneity by bootstrap"),
            *("AdaptiveBins, same rows", "Alternatives"),
            *(f"Does not hold: 92 to 98 % {rule}, rebin" for rule in RULES),
        ),
        prepare=lambda given: QUICK if given.quick else Amount(),
    )


def _scenarios() -> list[Scenario]:
    def one(kind: str, case: str, n: int, n_bins: int) -> Scenario:
        said = f", {n_bins} bins" if n_bins else ""
        return Scenario(
            f"{kind}, {case}, N = {n}{said}",
            {"kind": kind, "case": case, "n": n, "n_bins_given": n_bins},
        )

    return [
        *(one("fixed", case, n, k) for case in FIXED_CASES for n, k in LARGE_BINS.items()),
        *(one("small", case, 200, SMALL_BINS[200]) for case in FIXED_CASES),
        *(one("small", case, 1000, SMALL_BINS[1000]) for case in ("interaction", "t3")),
        *(one("spread", case, n, 1) for case in SPREAD_CASES for n in (50, 200)),
        *(one("boot", "interaction", n, k) for n, k in LARGE_BINS.items()),
        *(one("boot", case, 200, 5) for case in FIXED_CASES[1:]),
        one("boot", "interaction", 200, SMALL_BINS[200]),
        *(one("chosen", "piecewise", n, 0) for n in LARGE_BINS),
        one("rebin", "piecewise", 1000, 0),
        *(one("tests", "normal", n, k) for n, k in LARGE_BINS.items()),
        one("tests", "t3", 200, 5),
    ]


def _is_quick(parameters: Mapping[str, Any]) -> bool:
    few = parameters["n"] <= 200 and parameters["case"] not in ("two-point", "t3")
    return few or parameters["kind"] == "rebin"


def replicate(
    parameters: Mapping[str, Any], rng: np.random.Generator, amount: Amount
) -> dict[str, Any]:
    """Several samples; outputs that do not belong to the scenario are NaN."""
    hits = Hits()
    {
        "fixed": _fixed,
        "small": _fixed,
        "spread": _spread,
        "boot": _boot,
        "chosen": _chosen,
        "rebin": _rebin,
        "tests": _tests,
    }[parameters["kind"]](parameters, rng, amount, hits)
    return {
        "covered": hits.covered,
        "missing": hits.missing,
        "rejected": hits.rejected,
        "n_bins": hits.n_bins,
    }


class Hits:
    """The counts of a replicate."""

    def __init__(self) -> None:
        size = (len(TARGETS), len(METHODS))
        self.covered = np.full((*size, len(PLACES)), np.nan)
        self.missing = np.full(size, np.nan)
        self.rejected = np.full((len(TESTS), len(ALTERNATIVES), len(LEVELS)), np.nan)
        self.n_bins = np.full(len(METHODS), np.nan)

    def add(self, target: str, method: str, interval: FloatArray, truth: FloatArray) -> None:
        """Intervals (sample, point, 2) and their targets, NaN where there is no point."""
        truth = np.broadcast_to(truth, interval.shape[:2])
        there = np.isfinite(truth)
        low, high = interval[..., 0], interval[..., 1]
        hit = (low <= truth) & (truth <= high)
        at = TARGETS.index(target), METHODS.index(method)
        self.missing[at] = np.isnan(low + high)[there].mean()
        shares = []
        for number in range(len(truth)):
            known = hit[number, there[number]].astype(np.float64)
            where = [round(share * (len(known) - 1)) for share in list(PLACES.values())[1:]]
            shares.append([known.mean(), *known[where]])
        self.covered[at] = np.mean(shares, axis=0)

    def add_whole(self, target: str, method: str, band: FloatArray, truth: FloatArray) -> None:
        """Bands (sample, point, 2), which hold all points or do not."""
        truth = np.broadcast_to(truth, band.shape[:2])
        out = np.isfinite(truth) & ~((band[..., 0] <= truth) & (truth <= band[..., 1]))
        at = TARGETS.index(target), METHODS.index(method)
        self.covered[(*at, 0)] = 1 - out.any(axis=1).mean()
        self.missing[at] = (np.isnan(band).any(axis=-1) & np.isfinite(truth)).any(axis=1).mean()

    def add_test(self, test: str, alternative: int, pvalue: FloatArray) -> None:
        """P-values of the samples."""
        self.rejected[TESTS.index(test), alternative] = [
            float(np.mean(pvalue <= level)) for level in LEVELS
        ]


# Samples and their truths -------------------------------------------------------------------------


def _local(x: FloatArray, g: FloatArray) -> xr.Dataset:
    """Every sample is a feature of one Dataset."""
    return local_effects(None, x, jacobian=g, features=list(range(x.shape[1])))


def _edges(case: str, n_bins: int) -> FloatArray:
    return np.linspace(CASES[case].low, 1.0, n_bins + 1)


def curve_of(edges: FloatArray, effect: FloatArray, slope: FloatArray) -> tuple[FloatArray, float]:
    """Zero-start curve of bins at their edges, and its mean where rows are uniform."""
    width = np.diff(edges)
    curve = np.concatenate([[0.0], np.cumsum(effect * width)])
    integral = np.sum(width * (curve[1:] + curve[:-1]) / 2 - slope * width**3 / 12)
    return curve, float(integral / (edges[-1] - edges[0]))


def _as_x1(effect: xr.Dataset, sample: int) -> xr.Dataset:
    """One sample under the name by which the simulator knows it."""
    return effect.isel(feature=[sample]).assign_coords(feature=["x1"])


def _piecewise_truth(effect: xr.Dataset, sample: int) -> tuple[Truth, FloatArray]:
    """Targets in the bins of one sample, and the true curve at its edges."""
    n_bins = int(effect["n_bins"][sample])
    truth = in_bins(PIECEWISE.truth(_as_x1(effect, sample))).isel(feature=0)

    def values(name: str, length: int) -> FloatArray:
        if name not in truth:
            return np.zeros(length)
        return np.asarray(truth[name].values[:length], dtype=np.float64)

    mean, slope = values("effect", n_bins), values("slope", n_bins)
    variance = values("heterogeneity", n_bins) ** 2 + values("bin_error", n_bins)
    edges = one_feature(effect, sample).bin_edges
    curve, level = curve_of(edges, mean, slope)
    return Truth(mean, np.sqrt(variance), curve, curve - level), values("curve", n_bins + 1)


def _fixed_truth(case: str, effect: xr.Dataset) -> Truth:
    """Targets in bins that all samples share."""
    if case == "piecewise":
        return _piecewise_truth(effect, 0)[0]
    edges, of = one_feature(effect, 0).bin_edges, CASES[case]
    n_bins = len(edges) - 1
    mean = np.full(n_bins, of.mean)
    curve, level = curve_of(edges, mean, np.zeros(n_bins))
    return Truth(mean, np.full(n_bins, of.spread), curve, curve - level)


def _around(effect: xr.Dataset, name: str, se: str, quantile: float = NORMAL) -> FloatArray:
    half = quantile * effect[se].values
    return np.stack([effect[name].values - half, effect[name].values + half], axis=-1)


# The kinds of scenario ---------------------------------------------------------------------------


def _fixed(
    parameters: Mapping[str, Any], rng: np.random.Generator, amount: Amount, hits: Hits
) -> None:
    """Intervals and bands by standard errors, in fixed bins."""
    case = parameters["case"]
    n, n_bins = parameters["n"], parameters["n_bins_given"]
    n_samples = amount.samples(parameters["kind"], case, n, n_bins)
    local = _local(*CASES[case].draw(rng, (n, n_samples)))
    rule = GivenBins(_edges(case, n_bins))
    for centering, target in (("mean", MEAN), ("start", START)):
        effect = confint(quiet_rhale(local, rule, centering=centering))
        truth = _fixed_truth(case, effect)
        curve = truth.start if target == START else truth.mean
        # The zero-start curve is 0 at its start, and that is no estimate.
        later = slice(1 if target == START else 0, None)
        few = effect.isel(feature=slice(amount.bands))
        banded = in_bins(confband(few, n_draws=BAND_DRAWS, rng=rng))
        effect = in_bins(effect)
        hits.add(target, CI, effect["curve_ci"].values[:, later], curve[later])
        hits.add_whole(WHOLE[target], BAND, banded["curve_band"].values, curve)
        hits.add_whole(WHOLE[target], CI, effect["curve_ci"].values, curve)
        if target == START:
            continue
        hits.add(EFFECT, CI, effect["effect_ci"].values, truth.effect)
        hits.add(EFFECT, PLAIN, _around(effect, "effect", "effect_se"), truth.effect)
        hits.add_whole(WHOLE[EFFECT], BAND, banded["effect_band"].values, truth.effect)
        hits.add_whole(WHOLE[EFFECT], CI, effect["effect_ci"].values, truth.effect)
        hits.add(MEAN, PLAIN, _around(effect, "curve", "curve_se"), curve)
        hits.add(MEAN, WRONG, _around(effect, "curve", "curve_se_start"), curve)
        _add_spread(hits, effect, truth.spread)


def _add_spread(hits: Hits, effect: xr.Dataset, truth: FloatArray) -> None:
    hits.add(SPREAD, CI, effect["heterogeneity_ci"].values, truth)
    hits.add(SPREAD, PLAIN, _around(effect, "heterogeneity", "heterogeneity_se"), truth)


def _spread(
    parameters: Mapping[str, Any], rng: np.random.Generator, amount: Amount, hits: Hits
) -> None:
    """The heterogeneity of one bin of so many rows."""
    case = parameters["case"]
    local = _local(*CASES[case].draw(rng, (parameters["n"], amount.spread)))
    effect = confint(quiet_rhale(local, GivenBins(_edges(case, 1))))
    _add_spread(hits, effect, np.array([CASES[case].spread]))


def _boot(
    parameters: Mapping[str, Any], rng: np.random.Generator, amount: Amount, hits: Hits
) -> None:
    """Intervals by every bootstrap, in fixed bins."""
    case, n, n_bins = parameters["case"], parameters["n"], parameters["n_bins_given"]
    local = _local(*CASES[case].draw(rng, (n, amount.samples("boot", case, n, n_bins))))
    rule = GivenBins(_edges(case, n_bins))
    effect = std_error(quiet_rhale(local, rule))
    start = std_error(quiet_rhale(local, rule, centering="start"))
    truth = _fixed_truth(case, effect)

    def replicates(of: xr.Dataset, scheme: str) -> xr.Dataset:
        return bootstrap(
            local,
            of,
            n_resamples=amount.resamples,
            scheme=scheme,
            studentize=scheme == SCHEMES[0],
            rng=rng,
            progress=False,
        )

    for scheme in SCHEMES:
        classic = scheme == SCHEMES[0]
        boot = replicates(effect, scheme)
        # The same rows make the same replicates of the zero-start curve: those less their start.
        shifted = boot.assign(curve=boot["curve"] - boot["curve"].isel(bin_edge=0))
        shifted.attrs["centering"] = "start"
        boot_start = replicates(start, scheme) if classic else shifted
        for way in INTERVALS if classic else INTERVALS[:1]:
            method = f"{scheme}, {way}" if way == INTERVALS[0] else way
            found = in_bins(confint(effect, boot, method=way))
            hits.add(EFFECT, method, found["effect_ci"].values, truth.effect)
            hits.add(SPREAD, method, found["heterogeneity_ci"].values, truth.spread)
            hits.add(MEAN, method, found["curve_ci"].values, truth.mean)
            found = in_bins(confint(start, boot_start, method=way))
            hits.add(START, method, found["curve_ci"].values[:, 1:], truth.start[1:])


def _chosen(
    parameters: Mapping[str, Any], rng: np.random.Generator, amount: Amount, hits: Hits
) -> None:
    """Bins chosen on the rows, or on others: their own targets, and the true curve."""
    local = _local(*_piecewise(rng, (parameters["n"], amount.chosen)))
    for name, rule in RULES.items():
        for way in WAYS[:2]:
            honest: dict[str, Any] = (
                {"honest": True, "rng": int(rng.integers(2**32))} if way == "honest" else {}
            )
            effect = confint(quiet_rhale(local, rule, **honest))
            shape = effect.sizes["feature"], effect.sizes["bin"] + 1
            truths = {target: np.full(shape, np.nan) for target in (MEAN, EFFECT, SPREAD, ALONG)}
            for sample in range(shape[0]):
                own, true_curve = _piecewise_truth(effect, sample)
                n = len(own.effect)
                truths[EFFECT][sample, :n] = own.effect
                truths[SPREAD][sample, :n] = own.spread
                truths[MEAN][sample, : n + 1] = own.mean
                truths[ALONG][sample, : n + 1] = true_curve
            method = f"{name}, {way}"
            hits.add(EFFECT, method, effect["effect_ci"].values, truths[EFFECT][:, :-1])
            hits.add(SPREAD, method, effect["heterogeneity_ci"].values, truths[SPREAD][:, :-1])
            at_edges = in_bins(effect)["curve_ci"].values
            hits.add(MEAN, method, at_edges, truths[MEAN])
            hits.add(TRUE_CURVE, method, at_edges, truths[ALONG])
            hits.n_bins[METHODS.index(method)] = float(effect["n_bins"].mean())


def _along(edges: FloatArray, z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """mu(z) and the true curve, centred over the range of the edges."""
    # E[x2 | x1] = x1, so that this row has the mean local effect, and this one its integral.
    mean = PIECEWISE.jacobian(np.column_stack([z, z]))[:, 0]
    fine = np.linspace(edges[0], edges[-1], 2001)
    level = PIECEWISE.model(np.column_stack([fine, fine / 2])).mean()
    return mean, PIECEWISE.model(np.column_stack([z, z / 2])) - level


def _rebin(
    parameters: Mapping[str, Any], rng: np.random.Generator, amount: Amount, hits: Hits
) -> None:
    """Edges chosen again in every replicate, against what is true at points of the axis."""
    local = _local(*_piecewise(rng, (parameters["n"], amount.rebin)))
    for name, rule in RULES.items():
        effect = confint(quiet_rhale(local, rule))
        boot = bootstrap(
            local,
            effect,
            n_resamples=amount.resamples_rebin,
            rebin=True,
            n_grid=GRID,
            rng=rng,
            progress=False,
        )
        grid = boot["grid_value"].values
        tails = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
        ends = boot[["effect", "curve"]].quantile(tails, ("chain", "draw"))
        ends = ends.transpose("feature", "grid", "quantile")
        truth, plain = np.empty((2, *grid.shape)), np.empty((2, *grid.shape, 2))
        for sample, z in enumerate(grid):
            n = int(effect["n_bins"][sample])
            row = one_feature(effect, sample)
            edges, ends_at_edges = row.bin_edges, row.at_bins("curve_ci")
            truth[:, sample] = _along(edges, z)
            k = np.clip(np.searchsorted(edges, z, side="right") - 1, 0, n - 1)
            # In a linear bin the interval is that of its middle: moved along the line.
            away = z - (edges[k] + edges[k + 1]) / 2
            slope = effect["slope"].values[sample, k] if "slope" in effect else np.zeros(len(z))
            plain[0, sample] = effect["effect_ci"].values[sample, k] + (slope * away)[:, None]
            for end in range(2):
                plain[1, sample, :, end] = np.interp(z, edges, ends_at_edges[:, end])
        for number, (variable, target) in enumerate((("effect", ALONG), ("curve", TRUE_CURVE))):
            hits.add(target, f"{name}, rebin", ends[variable].values, truth[number])
            hits.add(target, f"{name}, same rows", plain[number], truth[number])
        hits.n_bins[METHODS.index(f"{name}, same rows")] = float(effect["n_bins"].mean())
        hits.n_bins[METHODS.index(f"{name}, rebin")] = float(boot["n_bins"].mean())


def _tests(
    parameters: Mapping[str, Any], rng: np.random.Generator, amount: Amount, hits: Hits
) -> None:
    """Every test under its null and two alternatives."""
    n, n_bins, case = parameters["n"], parameters["n_bins_given"], CASES[parameters["case"]]
    edges = np.linspace(-1, 1, n_bins + 1)
    rule = GivenBins(edges)

    def fitted(x: FloatArray, g: FloatArray) -> tuple[xr.Dataset, xr.Dataset]:
        local = _local(x, g)
        return local, std_error(quiet_rhale(local, rule))

    for number, (distance, errors) in enumerate(ALTERNATIVES.values()):
        shape = (n, amount.alternatives if number else amount.tests)

        def drawn(shape: tuple[int, int] = shape) -> tuple[FloatArray, FloatArray]:
            """Places, and noise of mean 0 and variance 1."""
            x, g = case.draw(rng, shape)
            return x, (g - case.mean) / case.spread

        shift = float(np.sqrt(distance / n))
        x, noise = drawn()
        _, effect = fitted(x, noise + shift)
        hits.add_test(TESTS[0], number, wald_test(effect, "zero", method="wald")["p_value"].values)
        # x has mean 0 and variance 1/3.
        local_a, a = fitted(x, 2 + noise + shift * 3**0.5 * x)
        hits.add_test(TESTS[1], number, wald_test(a, "constant", method="wald")["p_value"].values)
        # Without a shift both curves are the same; with it they differ by the slope 2 or 1 shifts.
        other_x, other = drawn()
        _, b = fitted(other_x, 2 + other + shift * (1 + 2**0.5) * 3**0.5 * other_x)
        found = compare(a, b, n_draws=BAND_DRAWS, rng=rng)
        hits.add_test(TESTS[2], number, found["p_value"].values)
        # The same rows: noise of correlation 1/2, so that differences have variance 1.
        pair = noise / 2 + drawn()[1] * 0.75**0.5
        local_b, b = fitted(x, 2 + pair + 2 * shift * 3**0.5 * x)
        found = compare(a, b, paired=(local_a, local_b), n_draws=BAND_DRAWS, rng=rng)
        hits.add_test(TESTS[3], number, found["p_value"].values)
        least = DELTA - errors / np.sqrt(n / n_bins)
        level = np.where(x >= edges[-2], least, 0.0)
        for test, mean in ((TESTS[4], level), (TESTS[5], np.full(shape, least))):
            _, effect = fitted(x, noise + mean)
            hits.add_test(test, number, equivalence_test(effect, DELTA)["p_value"].values)


# What came out -----------------------------------------------------------------------------------


def _amount(results: xr.Dataset) -> Amount:
    return QUICK if results.attrs["quick"] else Amount()


def wanted(kind: str, case: str, rows: float, target: str, method: str) -> tuple[float, float]:
    """Aims in percent; NaN for a line that is only reported."""
    one_target = target in (EFFECT, START, MEAN)
    if kind in ("fixed", "boot") and rows >= 25 and case != "t3":
        if one_target and (method == CI or method in BOOT):
            return WANTED
        if target in WHOLE.values() and method == BAND:
            return WANTED
    if kind == "spread" and method == CI and case in ("normal", "two-point"):
        return WANTED_SPREAD
    if kind == "chosen" and method.endswith(WAYS[1]) and one_target:
        return WANTED_CHOSEN
    if kind == "rebin" and method.endswith(WAYS[2]):
        return WANTED_CHOSEN
    return (np.nan, np.nan)


def coverage(results: xr.Dataset) -> pd.DataFrame:
    """A line for all that was asked: percent covered on average, and at the places that differ."""
    amount, n_runs, lines = _amount(results), results.sizes["replicate"], []
    covered = (
        100 * results["covered"].transpose("scenario", "target", "method", "place", ...).values
    )
    missing = 100 * results["missing"].transpose("scenario", "target", "method", ...).values
    for at, target, method in np.argwhere(np.isfinite(covered[:, :, :, 0]).any(axis=-1)):
        one = results.isel(scenario=at)
        kind, case = str(one["kind"].values), str(one["case"].values)
        n, n_bins = int(one["n"]), int(one["n_bins_given"])
        samples = amount.samples(kind, case, n, n_bins)
        if METHODS[method] == BAND:
            samples = min(samples, amount.bands)
        values = covered[at, target, method]
        mean, error = mean_and_mcse(values[0])
        places = values[1:].mean(axis=1)
        rows = n / n_bins if n_bins else np.inf
        low, high = wanted(kind, case, rows, TARGETS[target], METHODS[method])
        lines.append(
            {
                "scenario": str(one["scenario"].values),
                "kind": kind,
                "case": case,
                "target": TARGETS[target],
                "method": METHODS[method],
                "runs": n_runs * samples,
                "percent": mean,
                "mcse": error,
                "lowest": float(places.min()),
                "highest": float(places.max()),
                "missing": float(missing[at, target, method].mean()),
                "at_least": low,
                "at_most": high,
                "holds": _verdict(mean, low, high),
            }
        )
    return pd.DataFrame(lines)


def _verdict(mean: float, low: float, high: float) -> str:
    return "" if np.isnan(low) else "yes" if low <= mean <= high else "no"


def sizes(results: xr.Dataset) -> pd.DataFrame:
    """Percent rejected under the null, a line a test and level; power beside it."""
    chosen = results.isel(scenario=np.flatnonzero(results["kind"].values == "tests"))
    amount, lines = _amount(results), []
    runs = amount.tests * results.sizes["replicate"]
    for scenario in chosen["scenario"].values:
        for test in TESTS:
            for level in LEVELS:
                share = chosen["rejected"].sel(scenario=scenario, test=test, level=level)
                size, error = mean_and_mcse(100 * share.sel(alternative="null"))
                # That of a binomial share of this level.
                least = 100 * np.sqrt(level * (1 - level) / runs)
                away = (size - 100 * level) / least
                bounded = test == TESTS[5]
                verdict = "too often" if away > WRONG_SIZE else "yes"
                if away < -WRONG_SIZE and not bounded:
                    verdict = "too seldom"
                powers: dict[str, float] = {}
                for name in list(ALTERNATIVES)[1:]:
                    power, power_error = mean_and_mcse(100 * share.sel(alternative=name))
                    powers |= {name: power, f"{name}_mcse": power_error}
                lines.append(
                    {
                        "scenario": str(scenario),
                        "test": test,
                        "level": 100 * level,
                        "size": size,
                        "mcse": error,
                        "holds": verdict,
                        **powers,
                    }
                )
    return pd.DataFrame(lines)


HEADINGS = {
    "fixed": "Fixed bins of 40 or 50 rows: standard errors",
    "boot": "Fixed bins: bootstrap",
    "small": "Fixed bins of 10 rows on average",
    "spread": "Heterogeneity of N rows in one bin, where it is by inversion of a test",
    "chosen": "Bins chosen on the rows: targets of these bins, and the true curve at their edges",
    "rebin": "Edges chosen again in every replicate: what is true at points of the axis",
}


def tables(results: xr.Dataset) -> list[tuple[str, pd.DataFrame]]:
    """Judged lines first; then everything, by kind of scenario."""
    every, tested = coverage(results), sizes(results)
    judged = every[every["holds"] != ""]
    order = [target for target in TARGETS if target in set(judged["target"])]
    summary = judged.groupby(["kind", "target", "method"], sort=False)["percent"]
    table = summary.agg(["size", "min", "max"]).reset_index()
    table = table.rename(columns={"size": "scenarios", "min": "least", "max": "most"})
    kept = judged.assign(kept=judged["holds"] == "yes").groupby(
        ["kind", "target", "method"], sort=False
    )["kept"]
    table["held"] = kept.sum().to_numpy()
    table = table.iloc[np.argsort([order.index(t) for t in table["target"]], kind="stable")]
    chosen = results[["n_bins"]].isel(
        scenario=np.flatnonzero(np.isin(results["kind"].values, ["chosen", "rebin"]))
    )
    bins = chosen["n_bins"].mean("replicate").to_dataframe()["n_bins"].dropna().reset_index()
    return [
        ("Judged lines: percent covered over scenarios", table.reset_index(drop=True)),
        *(
            (
                f"{heading}: percent covered at a nominal 95 %",
                every[every["kind"] == kind].drop(columns=["kind", "case"]).reset_index(drop=True),
            )
            for kind, heading in HEADINGS.items()
            if (every["kind"] == kind).any()
        ),
        ("Number of chosen bins, mean over samples", bins),
        ("Tests: percent rejected under the null and under two alternatives", tested),
    ]


def _said(line: Any) -> str:
    return f"{line['percent']:.1f} ± {line['mcse']:.1g} % ({line['scenario']})"


def _judged(lines: pd.DataFrame, what: str) -> str:
    """One target: how many lines hold, the extremes, and every miss."""
    if lines.empty:
        return ""
    bad = lines[lines["holds"] != "yes"]
    low, high = lines["at_least"].iloc[0], lines["at_most"].iloc[0]
    text = (
        f"{holds(bad.empty)}: {what} within {low:.0f} to {high:.0f} % in {len(lines) - len(bad)} "
        f"of {len(lines)} lines, {lines['percent'].min():.1f} to {lines['percent'].max():.1f} %."
    )
    if len(bad):
        text += " Outside: " + "; ".join(
            f"{line['target']} by {line['method']} {_said(line)}, "
            f"{_distance(line['percent'], low, high)}"
            for _, line in bad.iterrows()
        )
        text += "."
    places = lines[lines["holds"] == "yes"].copy()
    # Error of one place: that of a share of the runs.
    error = 100 * np.sqrt(LEVEL * (1 - LEVEL) / places["runs"])
    beyond = np.maximum(low - places["lowest"], places["highest"] - high).fillna(-1.0)
    some = places[beyond > 2 * error]
    if (beyond > 0).any():
        text += (
            f" At single places of the axis {int((beyond > 0).sum())} of the lines that hold go "
            f"beyond these bounds, {len(some)} by more than two Monte-Carlo errors of a place"
        )
        text += (
            ": "
            + "; ".join(
                f"{line['target']} by {line['method']} {line['lowest']:.1f} to "
                f"{line['highest']:.1f} % ({line['scenario']})"
                for _, line in some.iterrows()
            )
            if len(some)
            else ""
        ) + "."
    return text


def _distance(percent: float, low: float, high: float) -> str:
    if np.isnan(percent):
        return "unknown: a run failed"
    return f"{low - percent:.2g} too few" if percent < low else f"{percent - high:.2g} too many"


def _range(lines: pd.DataFrame) -> str:
    """Extremes of some lines."""
    if lines.empty:
        return "not asked"
    low, high = (lines.loc[lines["percent"].agg(f"idx{end}")] for end in ("min", "max"))
    if len(lines) == 1:
        return _said(low)
    return " to ".join(f"{end['percent']:.1f} ± {end['mcse']:.1g}" for end in (low, high)) + " %"


def findings(results: xr.Dataset) -> list[str]:
    """Every aim, whether it is met or by how much it is missed; then the other results."""
    every, tested = coverage(results), sizes(results)
    judged = every[every["holds"] != ""]

    def of(table: pd.DataFrame, **values: str | Sequence[str]) -> pd.DataFrame:
        for name, value in values.items():
            table = table[table[name].isin([value] if isinstance(value, str) else list(value))]
        return table

    points = [EFFECT, START, MEAN]
    words = [
        *(
            _judged(
                of(judged, kind="fixed", target=target),
                f"by standard errors the {target} is covered",
            )
            for target in points
        ),
        *(
            _judged(of(judged, kind="fixed", target=whole), f"simultaneous bands, {whole}:")
            for whole in WHOLE.values()
        ),
        *(
            _judged(
                of(judged, kind="boot", method=method),
                f"by bootstrap, {method}, all three are covered",
            )
            for method in BOOT
        ),
    ]
    fixed, small = of(every, kind="fixed"), of(every, kind="small")
    wrong = of(fixed, target=MEAN, method=WRONG)
    pointwise = of(fixed, target=list(WHOLE.values()), method=CI)
    words += [
        f"For contrast: the zero-start standard error around the centred curve covers "
        f"{wrong['lowest'].min():.1f} % at its worst place; pointwise intervals cover all of "
        f"a curve or all bins in {_range(pointwise)}.",
        "Heavy tails (t with 3 degrees of freedom): "
        + "; ".join(
            f"{target} {_range(of(fixed, case='t3', target=target, method=method))}"
            for target, method in (*((t, CI) for t in points), *((w, BAND) for w in WHOLE.values()))
        )
        + f"; by bootstrap {_range(of(every, kind='boot', case='t3', target=points))}; their "
        f"heterogeneity {_range(of(every, case='t3', target=SPREAD, method=CI))}: the fourth "
        "moment that its error depends on is infinite.",
        "Bins of 10 rows: "
        + "; ".join(
            f"{target} {_range(of(small, target=target, method=method))}"
            for target, method in (
                *((t, CI) for t in points),
                *((w, BAND) for w in WHOLE.values()),
                (SPREAD, CI),
            )
        )
        + f". With the normal quantile the bin effect has "
        f"{_range(of(small, target=EFFECT, method=PLAIN))}. A bin of fewer than two rows has no "
        "standard error; nor has a centred curve with such a bin, or a zero-start curve beyond it. "
        "Missing intervals count as not covered, and are at most "
        f"{small['missing'].max():.1f} % of intervals.",
    ]
    tiny = every[(every["kind"] == "boot") & every["scenario"].str.contains("20 bins")]
    tiny = tiny[tiny["scenario"].str.contains("N = 200,")]
    if len(tiny):
        words.append(
            "Bootstrap in bins of 10 rows: "
            + "; ".join(
                f"{method} {_percents(of(tiny, method=method, target=points))}" for method in BOOT
            )
            + " (bin effect, zero-start curve, centred curve)."
        )
    boot = of(every, kind="boot", target=SPREAD)
    boot = boot[~boot["scenario"].str.contains("N = 200, 20 bins")]
    if len(boot):
        words.append(
            "Heterogeneity by bootstrap, in bins of 40 or 50 rows: "
            + "; ".join(f"{method} {_range(of(boot, method=method))}" for method in BOOT)
            + ". The spread of two values is largest if both are equally frequent. In that case "
            "hardly any replicate has a larger spread than the sample."
        )
    spread = of(every, kind="spread")
    plain, inverted = (of(spread, method=method) for method in (PLAIN, CI))
    words += [
        _judged(of(judged, kind="spread"), "the heterogeneity is covered"),
        "For contrast the plain sigma ± 1.96 se: "
        + "; ".join(_said(line) for _, line in plain.iterrows())
        + ". The interval by inversion of a test: "
        + "; ".join(_said(line) for _, line in inverted.iterrows())
        + ".",
    ]
    for rule in RULES:
        for kind, ways in (("chosen", WAYS[:2]), ("rebin", (WAYS[0], WAYS[2]))):
            for way in ways:
                lines = of(every, kind=kind, method=f"{rule}, {way}")
                if lines.empty:
                    continue
                known = lines[lines["holds"] != ""]
                where = "" if kind == "chosen" else " at points of the axis"
                text = f"{rule}, {way}{where}: " + "; ".join(
                    f"{line['target']} {_said(line)}"
                    + _known(line)
                    + (f", {line['lowest']:.0f} at its worst place" if kind == "rebin" else "")
                    for _, line in lines.iterrows()
                )
                if len(known):
                    low, high = WANTED_CHOSEN
                    text = (
                        f"{holds((known['holds'] == 'yes').all())}: {low:.0f} to {high:.0f} % "
                        + text
                    )
                words.append(text + ".")
    for test in TESTS:
        lines = tested[tested["test"] == test]
        bad = lines[lines["holds"] != "yes"]
        at_5 = lines[lines["level"] == 5]
        words.append(
            f"{holds(bad.empty)}: {test} holds its size"
            + (" as a bound" if test == TESTS[5] else "")
            + f" within {WRONG_SIZE:g} Monte-Carlo errors in {len(lines) - len(bad)} "
            f"of {len(lines)} lines. At 5 % it rejects "
            + "; ".join(
                f"{line['size']:.1f} ± {line['mcse']:.1g} % ({line['scenario']}), power "
                f"{line['near']:.0f} and {line['far']:.0f} %"
                for _, line in at_5.iterrows()
            )
            + "."
            + (
                " Not held: "
                + "; ".join(
                    f"{line['size']:.1f} ± {line['mcse']:.1g} % at {line['level']:.0f} %, "
                    f"{line['holds']} ({line['scenario']})"
                    for _, line in bad.iterrows()
                )
                + "."
                if len(bad)
                else ""
            )
        )
    words.append(
        "Bins of the honest half may hold fewer than two rows; the curve then has no standard "
        "error. A chosen bin that extends over a break of the effect holds a few rows with another "
        "slope: its heterogeneity depends on how many were drawn."
    )
    words.append(
        "Alternatives: squared distances from the null of 6 and 15 squared standard errors; for "
        "equivalence the effect is 2 and 3 standard errors inside delta, in one bin or in all. The "
        "error of curves of different rows also includes the error of their centring. "
        "If all bins are at delta, all of them must pass by chance: the size is then far below the "
        "level, which is only an upper bound."
    )
    return [word for word in words if word]


def _known(line: Any) -> str:
    """Coverage of the known intervals, if many are not known."""
    if not line["missing"] > 1:
        return ""
    return (
        f", of which {line['missing']:.0f} % have no interval and the others "
        f"{100 * line['percent'] / (100 - line['missing']):.1f} %"
    )


def _percents(lines: pd.DataFrame) -> str:
    return ", ".join(f"{percent:.1f}" for percent in lines["percent"]) + " %"


PANELS: tuple[tuple[str, Sequence[str], Sequence[str]], ...] = (
    ("fixed bins, standard errors", ("fixed", "small"), (EFFECT, START, MEAN)),
    ("fixed bins, simultaneous bands", ("fixed", "small"), tuple(WHOLE.values())),
    ("fixed bins, bootstrap", ("boot",), (EFFECT, START, MEAN)),
    ("heterogeneity", ("spread",), (SPREAD,)),
    ("bins chosen on the rows", ("chosen",), (EFFECT, MEAN, SPREAD, TRUE_CURVE)),
    ("points of the axis", ("rebin",), (ALONG, TRUE_CURVE)),
)
COLOURS = ("#0173b2", "#d55e00", "#029e73", "#cc78bc")


def figure(results: xr.Dataset) -> Figure:
    """Coverage by target and method, a dot a scenario, whiskers of two Monte-Carlo errors.

    Rows of fixed bins are case, N, number of bins; the shade is what is aimed at. Of bootstraps
    those scenarios are shown that are judged.
    """
    every = coverage(results)
    fig, axes = panels(2, 3)
    for ax, (title, kinds, targets) in zip(axes.ravel(), PANELS, strict=True):
        lines = every[every["kind"].isin(kinds) & every["target"].isin(targets)]
        band = title.endswith("bands")
        if kinds[0] == "fixed":
            lines = lines[lines["method"] == (BAND if band else CI)]
            lines = lines.assign(row=lines["scenario"].map(_short))
        elif kinds[0] == "spread":
            lines = lines.assign(row=lines["scenario"].map(_short))
        else:
            if kinds[0] == "boot":
                lines = lines[lines["holds"] != ""]
            lines = lines.assign(row=lines["method"])
        by = "method" if kinds[0] == "spread" else "target"
        _draw(ax, lines, by, targets if by == "target" else (CI, PLAIN))
        wide = WANTED_SPREAD if kinds[0] == "spread" else WANTED
        ax.axvspan(*(WANTED_CHOSEN if kinds[0] in ("chosen", "rebin") else wide), color="0.92")
        ax.axvline(100 * LEVEL, color="0.4", linewidth=0.8)
        ax.set(title=title, xlabel="covered, %")
    fig.set_size_inches(13, 9.5)
    return fig


def _short(scenario: str) -> str:
    """Without the kind, and shorter."""
    return scenario.partition(", ")[2].replace("N = ", "").replace(" bins", "")


def _draw(ax: Axes, lines: pd.DataFrame, by: str, values: Sequence[str]) -> None:
    rows = list(dict.fromkeys(lines["row"]))
    for number, (value, colour) in enumerate(zip(values, COLOURS, strict=False)):
        own = lines[lines[by] == value]
        at = -np.array([rows.index(row) for row in own["row"]], dtype=np.float64)
        ax.errorbar(
            own["percent"],
            at - 0.18 * (number - (len(values) - 1) / 2),
            xerr=2 * own["mcse"],
            fmt="o",
            color=colour,
            markersize=3,
            linewidth=0.8,
            label="inverted test" if by == "method" and value == CI else value,
        )
    ax.set_yticks(-np.arange(len(rows)), rows)
    least = float(np.nanmin(lines["percent"])) if len(lines) else 90.0
    ax.set_xlim(max(min(least - 3, 88), 0), 100.5)
    ax.legend(frameon=False, fontsize="x-small", loc="best")
