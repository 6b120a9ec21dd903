"""Regions: how often the search finds splits in noise, and a split that exists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import NDArray

from rhale_stats.bins.rules import OptimalBins
from rhale_stats.local.local_effects import local_effects
from rhale_stats.regional.regions import regional_rhale, regions
from rhale_stats.simulate import TwoRegimes
from studies.runner import Options, Output, Scenario, Study
from studies.tools import holds, panels, quiet_rhale, share, where

LEVEL, MIN_DROP, MIN_SHARE = 0.05, 0.1, 0.05
# Of these permutations one may be as good as the data: the size is exact, and a search in noise
# takes three or four of them. With more, power grows a little.
N_PERMUTATIONS = 19
N_CONDITIONING = 9
# Any split that lowers the loss, without a test; one that lowers it by min_drop, which is the
# default; the same with variances of divisor n; permutations alone, and beside min_drop; and
# honest splits, alone and beside min_drop.
WAYS = (
    "any drop",
    "default",
    "default, ddof 0",
    "permutation",
    "permutation, min_drop 0.1",
    "honest",
    "honest, min_drop 0.1",
)
TESTED = ("permutation", "permutation, min_drop 0.1", "honest", "honest, min_drop 0.1")
EXACT = ("permutation", "honest")
ROWS = (300, 3000)
QUICK_ROWS = (300,)
TWO_REGIMES_ROWS = 500
# Grid of OptimalBins: its default, and a coarse one, with which a search takes a tenth of the time.
FINE, COARSE = 100, 20
# Where effects do not change along the axis there is nothing for bins to follow.
FEW = 10
# Local effects without regions: their expectation given the feature, and the noise around it.
NO_REGIONS = {
    "additive": ("waves", "none", "independent"),
    "noise": ("constant", "normal", "independent"),
    "noise, correlated columns": ("constant", "normal", "correlated"),
    "noise, columns follow the feature": ("waves", "normal", "following"),
    "noise with t3 tails": ("constant", "t3", "independent"),
    "noise that grows along the axis": ("waves", "growing", "independent"),
}
FULL = ("additive", "noise")
# Half the distance between the effects of two groups, beside noise with sd 1.
STEPS = (3.0, 1.0, 0.5, 0.3, 0.2)


def study(options: Options) -> Study:
    """The study for these options."""
    # Positions are seeds.
    scenarios = [
        Scenario(
            f"{name}, N = {n}",
            {
                "kind": "no regions",
                "data": name,
                "n": n,
                "max_bins": FINE if name in FULL and not options.quick else COARSE,
                "step": np.nan,
            },
        )
        for n in (QUICK_ROWS if options.quick else ROWS)
        for name in NO_REGIONS
    ]
    scenarios += [
        Scenario(
            f"[53], {name}",
            {
                "kind": "two regimes",
                "data": name,
                "n": TWO_REGIMES_ROWS,
                "max_bins": FINE,
                "step": 3.0,
            },
        )
        for name in ("uncorrelated", "correlated")
    ]
    scenarios += [
        Scenario(
            f"{name} column, step {step:g}",
            {
                "kind": "regions",
                "data": name,
                "n": TWO_REGIMES_ROWS,
                "max_bins": FEW,
                "step": step,
            },
        )
        for name, steps in (("uniform", STEPS), ("log-normal", STEPS[:2]))
        for step in (steps[:2] if options.quick else steps)
    ]
    return Study(
        name="regions",
        title="Regions: type I error and power of the search",
        source="math [37] to [39] and [53]; RegionalRHALE, section 3.2; the claims are this "
        "package's own",
        claim="Without a test, splits are found where nothing conditions an effect, above all with "
        f"few rows. With test='permutation' that happens in {100 * LEVEL:.0f} % of samples of "
        "noise, whatever the noise, and the dependence of the columns on each other and on the "
        "feature, and in no more where the model is additive; with test='honest' in no more. "
        "The two regimes of [53] are found, at 0 and with nothing left, in at least 95 % of "
        "samples; none where the columns coincide; and in at least 95 % as well under noise with "
        "sd 1, also where the column has a log-normal distribution and is cut at its median.",
        scenarios=tuple(scenarios),
        coords={"way": WAYS},
        outputs={
            "split": Output(("way",), "whether the root was split"),
            "found": Output(("way",), "whether the root was split on the right column, near"),
            "drop": Output((), "relative drop of the loss by the best split"),
            "cut_error": Output((), "distance of the best cut from the right one, share of rows"),
            "left": Output((), "largest heterogeneity of a region"),
            "effect_error": Output((), "largest error of the average effect of a region"),
        },
        replicate=replicate,
        n_replicates=4 if options.quick else 500,
        tables=tables,
        findings=findings,
        figure=figure,
        rows={"The same for the exact tests": "", "No regions: relative drop": ""},
        printed_only=("With variances of divisor n", "Holds: effects of", "Smaller steps"),
    )


# One sample ---------------------------------------------------------------------------------------


def without_regions(
    name: str, n: int, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A feature with its conditioning columns, and local effects that no column conditions."""
    shape, noise, dependence = NO_REGIONS[name]
    x = rng.uniform(-1, 1, size=(n, 1 + N_CONDITIONING))
    if dependence == "correlated":
        x[:, 1:] = x[:, [1]] + 0.5 * x[:, 1:]
    if dependence == "following":
        x[:, 1:] = x[:, [0]] + x[:, 1:]
    z = x[:, 0]
    effect = np.cos(3 * z) + z if shape == "waves" else np.full(n, 3.0)
    if noise == "t3":
        effect = effect + rng.standard_t(3, size=n)
    elif noise != "none":
        effect = effect + rng.normal(size=n) * (1.0 if noise == "normal" else 1.2 + z)
    return x, effect


def two_groups(
    name: str, step: float, n: int, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """The same, where the third column separates effects of +-step at its median, with noise."""
    x = rng.uniform(-1, 1, size=(n, 1 + N_CONDITIONING))
    median = 0.0
    if name == "log-normal":
        x[:, 3], median = rng.lognormal(0.0, 1.5, size=n), 1.0
    effect = np.where(x[:, 3] > median, step, -step) + rng.normal(size=n)
    return x, effect, median


def replicate(parameters: Mapping[str, Any], rng: np.random.Generator, _: Any) -> dict[str, Any]:
    """One sample, by all ways; outputs of other scenarios are NaN."""
    if parameters["kind"] == "two regimes":
        return _two_regimes(parameters, rng)
    n, name, cut = parameters["n"], parameters["data"], np.nan
    if parameters["kind"] == "no regions":
        x, effect = without_regions(name, n, rng)
    else:
        x, effect, cut = two_groups(name, parameters["step"], n, rng)
    table = pd.DataFrame(x, columns=[f"x{column}" for column in range(x.shape[1])])
    jacobian = np.column_stack([effect, np.zeros((n, N_CONDITIONING))])
    local = local_effects(None, table, jacobian=jacobian)
    rule = OptimalBins(parameters["max_bins"])
    common: dict[str, Any] = {
        "max_depth": 1,
        "level": LEVEL,
        "n_permutations": N_PERMUTATIONS,
        "bins": rule,
        "rng": rng,
    }
    # Every split that lowers the loss is tested; the drop shows which ones min_drop would refuse.
    everything = {"min_drop": 0.0, "min_share": 0.0, **common}
    tested = regions(local, "x0", test="permutation", **everything)
    seed = int(rng.integers(2**31))
    honest = regions(local, "x0", test="honest", **everything | {"rng": seed})
    biased = {**common, "bins": OptimalBins(parameters["max_bins"], ddof=0)}
    ddof_0 = regions(local, "x0", test=None, min_drop=MIN_DROP, min_share=MIN_SHARE, **biased)
    drop = float(tested["best_drop"][0])
    enough = drop >= MIN_DROP and _mixed(local, tested)
    passed, passed_honest = tested.sizes["node"] > 1, honest.sizes["node"] > 1
    default = {**common, "min_drop": MIN_DROP, "min_share": MIN_SHARE, "rng": seed}
    honest_default = passed_honest and (
        regions(local, "x0", test="honest", **default).sizes["node"] > 1
    )
    split = [
        drop >= 0,
        enough,
        ddof_0.sizes["node"] > 1,
        passed,
        passed and enough,
        passed_honest,
        honest_default,
    ]
    right, distance = _right(str(tested["best"][0].values), x[:, 3], cut)
    right_0, _ = _right(str(ddof_0["best"][0].values), x[:, 3], cut)
    right_honest, _ = _right(str(honest["best"][0].values), x[:, 3], cut)
    near = [right] * 2 + [right_0] + [right] * 2 + [right_honest] * 2
    return {
        "split": split,
        "found": np.logical_and(split, near) if np.isfinite(cut) else np.full(len(WAYS), np.nan),
        "drop": drop,
        "cut_error": distance,
        "left": np.nan,
        "effect_error": np.nan,
    }


def _mixed(local: xr.Dataset, tree: xr.Dataset) -> bool:
    """Whether bins leave enough of the variance for a split to be looked for by default."""
    effect = local["local_effect"].values[:, 0]
    span = float(np.ptp(local["x"].values[:, 0]))
    return bool(float(tree["loss"][0]) >= MIN_SHARE * span * effect.var(ddof=1))


def _right(
    best: str, column: NDArray[np.float64], cut: float, within: float = 0.05
) -> tuple[bool, float]:
    """Whether a split is on the column x3 with a twentieth of the rows at most beyond the cut."""
    name, _, number = best.partition(" ≤ ")
    if name != "x3" or not np.isfinite(cut):
        return False, np.nan
    distance = abs(float(np.mean(column <= float(number)) - np.mean(column <= cut)))
    return distance <= within, distance


def _two_regimes(parameters: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """math [53] as it stands, by default settings but for the test."""
    example = TwoRegimes(correlated=parameters["data"] == "correlated")
    X = example.sample(parameters["n"], rng)
    local = local_effects(None, X, jacobian=example.jacobian)
    rule = OptimalBins(parameters["max_bins"])
    tree = regions(local, "x1", bins=rule, test=None)
    was_split = tree.sizes["node"] > 1
    right, distance, left, error = False, np.nan, np.nan, np.nan
    if was_split:
        # One step between thresholds is a 21st of the rows.
        right, distance = _right(str(tree["best"][0].values), X["x3"].to_numpy(), 0.0, 1 / 21)
        effect = regional_rhale(local, tree, bins=rule, weighting="rows")
        right = right and tree.sizes["node"] == 3
        left = float(effect["heterogeneity"].max())
        known = 3 * np.sign(np.arange(effect.sizes["region"]) - 0.5)
        error = float(np.abs(effect["average_effect"].values[:, 0] - known).max())
    elif parameters["data"] == "correlated":
        effect = quiet_rhale(local.sel(feature=["x1"]), rule, has_spread=False)
        middle = (effect["bin_left"] + effect["bin_right"]).values[0] / 2
        # In the bin across 0 the effect is mixed by what the bin is wide.
        inside = ~((effect["bin_left"].values[0] < 0) & (effect["bin_right"].values[0] > 0))
        known = 3 * np.sign(middle)
        error = float(np.nanmax(np.abs(effect["effect"].values[0] - known)[inside]))
    default = WAYS.index("default")
    split, found = np.full(len(WAYS), np.nan), np.full(len(WAYS), np.nan)
    split[default], found[default] = was_split, right
    return {
        "split": split,
        "found": found,
        "drop": float(tree["best_drop"][0]),
        "cut_error": distance,
        "left": left,
        "effect_error": error,
    }


# What came out ------------------------------------------------------------------------------------


def shares(results: xr.Dataset, output: str) -> pd.DataFrame:
    """Percent of samples, a line a scenario, ways across, and the largest Monte-Carlo error."""
    values = results[output].transpose("scenario", "way", "replicate").values
    p, n = values.mean(axis=2), values.shape[2]
    table = pd.DataFrame(100 * p, columns=WAYS)
    table.insert(0, "scenario", results["scenario"].values)
    table.insert(1, "cells", results["max_bins"].values)
    table["mcse_at_most"] = 100 * np.sqrt(p * (1 - p) / n).max(axis=1)
    return table


def sizes(results: xr.Dataset) -> pd.DataFrame:
    """Each exact test in each scenario without regions: does its size include the level."""
    null = where(results, "kind", "no regions")
    lines = []
    for way in EXACT:
        for at, name in enumerate(null["scenario"].values):
            p = float(null["split"].sel(way=way).isel(scenario=at).mean())
            error = np.sqrt(LEVEL * (1 - LEVEL) / null.sizes["replicate"])
            lines.append(
                {
                    "way": way,
                    "scenario": str(name),
                    "percent": 100 * p,
                    "mcse": 100 * error,
                    "z": (p - LEVEL) / error,
                }
            )
    return pd.DataFrame(lines)


def tables(results: xr.Dataset) -> list[tuple[str, pd.DataFrame]]:
    """False splits, true splits, and the two regimes as they stand."""
    null, power = where(results, "kind", "no regions"), where(results, "kind", "regions")
    regimes = where(results, "kind", "two regimes")
    drops = null["drop"].transpose("scenario", "replicate")
    quantiles = np.quantile(np.nan_to_num(drops.values), (0.5, 0.9, 0.99), axis=1)
    by_chance = pd.DataFrame(
        {
            "scenario": null["scenario"].values,
            **dict(zip(("median", "90 %", "99 %"), quantiles, strict=True)),
        }
    )
    found = shares(power, "found")
    found.insert(2, "true_drop", [1 - (1 / (1 + s**2)) for s in power["step"].values])
    found.insert(3, "best_drop", power["drop"].mean("replicate").values)
    default = regimes.sel(way="default")
    settled = pd.DataFrame(
        {
            "scenario": regimes["scenario"].values,
            "split_percent": 100 * default["split"].mean("replicate").values,
            "right_percent": 100 * default["found"].mean("replicate").values,
            "largest_cut_error": default["cut_error"].max("replicate").values,
            "largest_heterogeneity_left": default["left"].max("replicate").values,
            "largest_effect_error": default["effect_error"].max("replicate").values,
        }
    )
    return [
        ("No regions: percent of samples whose root is split", shares(null, "split")),
        ("The same for the exact tests, in standard errors from the level", sizes(results)),
        ("No regions: relative drop of the loss by the best split", by_chance),
        (
            f"Two groups at +-step, N = {TWO_REGIMES_ROWS}, noise with sd 1: percent of samples "
            "split where they should be, a twentieth of the rows at most on the wrong side",
            found,
        ),
        ("[53] without noise, default settings", settled),
    ]


def findings(results: xr.Dataset) -> list[str]:
    """Sizes, rates without a test, power."""
    null, power = where(results, "kind", "no regions"), where(results, "kind", "regions")
    table, exact = shares(null, "split").set_index("scenario"), sizes(results)
    words = []
    for way in EXACT:
        # Of an additive model nothing, or bin error alone, is left to split.
        additive = exact["scenario"].str.startswith("additive")
        lines = exact[(exact["way"] == way) & ~additive]
        never = exact.loc[(exact["way"] == way) & additive, "percent"].max()
        z = lines["z"].abs()
        worst = lines.iloc[int(z.to_numpy().argmax())]
        # A drop below 0 on the rows that judge is refused whatever its p-value.
        at_most = way == "honest"
        kept = (lines["z"] < 3).all() if at_most else (z < 3).all()
        words.append(
            f"{holds(kept)}: with test={way!r} and nothing else noise is split in "
            f"{100 * LEVEL:.0f} % of samples{', or in fewer' * at_most}, within three Monte-Carlo "
            f"errors: "
            f"{lines['percent'].min():.3g} to {lines['percent'].max():.3g} % "
            f"(± {lines['mcse'].iloc[0]:.1g}); the farthest from the level is {worst['scenario']}, "
            f"{worst['percent']:.3g} %. Additive models are split in at most {never:.3g} %."
        )
    for test in EXACT:
        rates = table[f"{test}, min_drop 0.1"]
        words.append(
            f"With min_drop {MIN_DROP:g} and min_share {MIN_SHARE:g} as well, the defaults, "
            f"test={test!r} splits in {rates.min():.3g} to {rates.max():.3g} %."
        )
    said = "; ".join(f"{name} {row['default']:.3g} %" for name, row in table.iterrows())
    words.append(f"Without a test, default settings, the root is split in: {said}.")
    said = "; ".join(f"{name} {row['default, ddof 0']:.3g} %" for name, row in table.iterrows())
    words.append(
        f"With variances of divisor n (OptimalBins(ddof=0)), which favour small regions: {said}. "
        f"Without a test and without min_drop it is split in {table['any drop'].min():.3g} % of "
        "samples at least."
    )
    words.extend(_said_of_regimes(where(results, "kind", "two regimes").sel(way="default")))
    for name in ("uniform", "log-normal"):
        own = where(power, "data", name)
        strong = where(own, "step", STEPS[0]).isel(scenario=0)
        hits = strong["found"].sel(way="permutation, min_drop 0.1")
        words.append(
            f"{holds(float(hits.mean()) >= 0.95)}: effects of ±{STEPS[0]:g} under noise with sd 1, "
            f"split at the median of a {name} column, are found there in {share(hits)} of samples "
            f"with test='permutation', in {share(strong['found'].sel(way='default'))} without a "
            f"test, in {share(strong['found'].sel(way='honest, min_drop 0.1'))} with test='honest'."
        )
    own = where(power, "data", "uniform")
    words.append(
        "Smaller steps, uniform column, found by permutation alone, by default settings with "
        "test='permutation', and by honest splits alone: "
        + "; ".join(
            f"±{float(step):g} (drop {step**2 / (1 + step**2):.2f}) "
            + ", ".join(
                f"{100 * float(own['found'].sel(way=way).isel(scenario=at).mean()):.3g} %"
                for way in ("permutation", "permutation, min_drop 0.1", "honest")
            )
            for at, step in enumerate(own["step"].values)
        )
        + "."
    )
    return words


def _said_of_regimes(default: xr.Dataset) -> list[str]:
    free, tied = (default.isel(scenario=at) for at in range(2))
    cleared = (free["found"] == 1) & (free["left"] < 1e-12) & (free["effect_error"] < 1e-12)
    whole = (tied["split"] == 0) & (tied["effect_error"] < 1e-12)
    return [
        f"{holds(float(cleared.mean()) >= 0.95)}: [53], uncorrelated: one split, on x3 within a "
        f"step between thresholds of 0, and effects of ±3 without heterogeneity in both regions, "
        f"in {share(cleared)} of samples.",
        f"{holds(float(whole.mean()) >= 0.95)}: [53], correlated: no split, and an effect of "
        f"3 sign(z) in every bin that does not reach across 0, in {share(whole)} of samples.",
    ]


def figure(results: xr.Dataset) -> Figure:
    """False splits by way and N; drops that chance makes; power against the step."""
    null, power = where(results, "kind", "no regions"), where(results, "kind", "regions")
    fig, axes = panels(1, 3, gridspec_kw={"width_ratios": (1.6, 1, 1)})
    fig.set_size_inches(14, 4)
    ax = axes[0, 0]
    shown = ("default", "default, ddof 0", *TESTED)
    colours = ("#0173b2", "#56b4e9", "#d55e00", "#e6a06a", "#029e73", "#7fcdb4")
    at = np.arange(null.sizes["scenario"])
    for shift, way, colour in zip(np.linspace(-0.3, 0.3, len(shown)), shown, colours, strict=True):
        p = null["split"].sel(way=way).mean("replicate").values
        error = np.sqrt(p * (1 - p) / null.sizes["replicate"])
        ax.errorbar(
            100 * p, at + shift, xerr=100 * error, fmt="o", ms=3, lw=0.8, color=colour, label=way
        )
    ax.axvline(100 * LEVEL, color="0.4", linestyle=":", linewidth=0.8)
    ax.set_xscale("symlog", linthresh=10)
    ax.set_xticks((0, 5, 10, 30, 100), ("0", "5", "10", "30", "100"))
    ax.minorticks_off()
    ax.set_yticks(at, null["scenario"].values)
    ax.invert_yaxis()
    ax.set(title="No regions", xlabel="samples split, %", xlim=(-1, 110))
    ax = axes[0, 1]
    for n, line in zip(null["n"].values, null["drop"].values, strict=True):
        values = np.sort(np.nan_to_num(line))
        colour = "#d55e00" if n == ROWS[-1] else "#0173b2"
        ax.plot(values, np.linspace(0, 100, len(values)), color=colour, lw=0.8)
    ax.axvline(MIN_DROP, color="0.4", linestyle=":", linewidth=0.8)
    ax.set(
        title="No regions (300 blue, 3000 orange)",
        xlabel="relative drop by the best split",
        ylabel="samples, %",
    )
    ax = axes[0, 2]
    own = where(power, "data", "uniform")
    order = np.argsort(own["step"].values)
    for way, colour in zip(shown, colours, strict=True):
        p = own["found"].sel(way=way).mean("replicate").values[order]
        ax.plot(own["step"].values[order], 100 * p, "o-", ms=3, lw=0.8, color=colour, label=way)
    ax.set(
        title="Two groups under noise",
        xlabel="step: effects are ±step, noise has sd 1",
        ylabel="found, %",
        xscale="log",
    )
    ax.set_xticks(STEPS, [f"{step:g}" for step in STEPS])
    ax.minorticks_off()
    ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    return fig
