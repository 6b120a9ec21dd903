"""Choice of the default of AdaptiveBins: how often noise is cut, and errors of effects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import NDArray

from rhale_stats.arrays.adaptive import Penalties
from rhale_stats.bins.adaptive import AdaptiveBins
from rhale_stats.bins.rule import BinRule
from rhale_stats.local.local_effects import local_effects
from studies import tools
from studies.examples import (
    EXAMPLES,
    FIXED,
    QUICK_FIXED,
    Example,
    oracle,
    ratio_of_means,
    scored_along,
)
from studies.runner import Options, Output, Scenario, Study
from studies.tools import holds

# Noise around a constant effect, and the largest share of runs that may have more than one bin.
NOISES = {
    "normal": (Example("constant"), 0.05),
    "two-point": (Example("constant", noise="two-point"), 0.05),
    "t3": (Example("constant", noise="t3"), 0.10),
    "growing sd": (Example("constant", spread="growing"), np.nan),
}
SIZES, QUICK_SIZES = (60, 200, 1000, 10_000), (60, 1000)
EFFECTS = ("five pieces", "line", "sine", "constant", "jump", "clustered x")
EFFECT_SIZES = (500, 5000)
JUDGED = ("ISE_mu", "ISE_sigma")
# A replicate is so many samples without an effect for the default, so many for the others.
SAMPLES, QUICK_SAMPLES = (20, 4), (2, 1)
PENALTIES = ("2", "4", "2 ln K", "2 ln N", "2 ln K + 2 ln N")
# Each with those before it.
REMEDIES = ("no remedy", "refined edges", "pruning")
DEFAULT = "2 ln K, pruning"
PARAMETERS = {
    "2": "2 ln K, pruning, parameter 2",
    "4": DEFAULT,
    "lambda": "2 ln K, pruning, parameter lambda",
}
TICKS = (0, 5, 10, 20, 50, 100)
COLOURS = ("#0173b2", "#029e73", "#d55e00", "#cc78bc", "0.3")


@dataclass(frozen=True)
class Variant(AdaptiveBins):
    """`AdaptiveBins` with another risk."""

    risk: Penalties | None = None

    def _penalties(self) -> Penalties:
        return super()._penalties() if self.risk is None else self.risk


def variants(n: int) -> dict[str, BinRule]:
    """The rules that were tried on ``n`` rows, the default among them."""
    log_k, log_n = np.log(AdaptiveBins().max_bins), np.log(n)
    values = dict(
        zip(PENALTIES, (2.0, 4.0, 2 * log_k, 2 * log_n, 2 * log_k + 2 * log_n), strict=True)
    )
    risks = {
        f"{penalty}, {remedy}": Penalties(
            edge=value,
            split=value + 2 if steps >= 2 else -np.inf,
            refine=steps >= 1,
        )
        for penalty, value in values.items()
        for steps, remedy in enumerate(REMEDIES)
    }
    default = risks[DEFAULT]
    risks[PARAMETERS["2"]] = default._replace(parameter=2.0)
    risks[PARAMETERS["lambda"]] = default._replace(parameter=default.edge)
    return {name: Variant(risk=risk) for name, risk in risks.items()}


def study(options: Options) -> Study:
    """The study for these options."""
    quick = options.quick
    # Positions are seeds.
    noises = [
        Scenario(f"{noise} noise, N = {n}", {"kind": "no effect", "example": noise, "n": n})
        for noise in NOISES
        for n in (QUICK_SIZES if quick else SIZES)
    ]
    effects = [
        Scenario(f"{name}, N = {n}", {"kind": "effect", "example": name, "n": n})
        for n in (EFFECT_SIZES[:1] if quick else EFFECT_SIZES)
        for name in EFFECTS
    ]
    return Study(
        name="penalty",
        title="Penalty for an additional edge of AdaptiveBins",
        source="math [22]; the claims are this package's own",
        claim="By default AdaptiveBins has a penalty of 2 ln K for an edge, with K cells of the "
        "grid, and of 4 for each parameter of a bin. It takes the noise around a bin, refines the "
        "edges and prunes them. A constant effect with noise is then split in less than 5 % of "
        "samples, and in less than 10 % if the noise has heavy tails (t with 3 degrees of "
        "freedom), whatever the number of rows. Of the penalties tried that keep within "
        "these limits, none gives an effect closer to mu(z).",
        scenarios=(*noises, *effects),
        coords={"rule": [*variants(SIZES[0]), *tools.fixed_rules(QUICK_FIXED if quick else FIXED)]},
        outputs={
            "split": Output(("rule",), "share of samples without effect with more than one bin"),
            **{name: tools.SCORES[name] for name in JUDGED},
        },
        replicate=replicate,
        n_replicates=2 if quick else 50,
        tables=tables,
        findings=findings,
        figure=figure,
        rows={
            "Every rule": "rule.str.contains('pruning')",
            **{f"{noise} noise": "" for noise in NOISES},
            **{f"{score} over": "" for score in JUDGED},
        },
        printed_only=("Remedies", "Penalties"),
        prepare=lambda given: given.quick,
    )


def replicate(
    parameters: Mapping[str, Any], rng: np.random.Generator, quick: bool
) -> dict[str, Any]:
    """Several samples without effect, or one with; outputs of other scenarios are NaN."""
    n = parameters["n"]
    rules, fixed = variants(n), tools.fixed_rules(QUICK_FIXED if quick else FIXED)
    out: dict[str, Any] = dict.fromkeys(("split", *JUDGED), np.full(len(rules | fixed), np.nan))
    if parameters["kind"] == "effect":
        scores = scored_along(EXAMPLES[parameters["example"]], n, rng, rules | fixed)
        return out | {name: scores[name] for name in JUDGED}
    example, _ = NOISES[parameters["example"]]
    shares = _shares(example, n, rng, rules, *(QUICK_SAMPLES if quick else SAMPLES))
    return out | {"split": [*shares, *[np.nan] * len(fixed)]}


def _shares(
    example: Example,
    n: int,
    rng: np.random.Generator,
    rules: Mapping[str, BinRule],
    samples: int,
    fewer: int,
) -> list[float]:
    """Share of samples that a rule cuts; rules other than the default get only ``fewer``."""
    drawn = example.sample(n * samples, rng)
    # Samples are the features of one table: rules look at each by itself.
    shape = (n, samples)
    x, effect = drawn["x1"].to_numpy(), example.jacobian(drawn)[:, 0]
    local = local_effects(None, x.reshape(shape), jacobian=lambda _: effect.reshape(shape))
    shares = []
    for name, rule in rules.items():
        seen = local if name == DEFAULT else local.isel(feature=slice(fewer))
        cut = tools.quiet_rhale(seen, rule, has_spread=False)["n_bins"] > 1
        shares.append(float(cut.mean()))
    return shares


# What came out -----------------------------------------------------------------------------------


def _rules_tried(results: xr.Dataset) -> list[str]:
    return [str(rule) for rule in results["rule"].values if not str(rule).startswith("K = ")]


def false_splits(results: xr.Dataset) -> pd.DataFrame:
    """Percent of samples without effect that are cut, a line for every noise, N and rule."""
    split = 100 * tools.where(results, "kind", "no effect")["split"].sel(rule=_rules_tried(results))
    found = {"percent": split.mean("replicate"), "mcse": tools.standard_error(split)}
    table = xr.Dataset(found).to_dataframe()
    table = table.reset_index().rename(columns={"example": "noise", "n": "N"})
    return table[["noise", "N", "rule", "percent", "mcse"]]


def over_oracle(results: xr.Dataset) -> pd.DataFrame:
    """Mean scores over those of the best number of equal-width bins."""
    one = tools.where(results, "kind", "effect")
    lines = []
    for at, (example, n) in enumerate(zip(one["example"].values, one["n"].values, strict=True)):
        for score in JUDGED:
            values = one[score].isel(scenario=at)
            best = values.sel(rule=oracle(values))
            for rule in _rules_tried(results):
                ratio, error = ratio_of_means(values.sel(rule=rule), best)
                lines.append(
                    {
                        "effect": str(example),
                        "N": int(n),
                        "score": score,
                        "rule": rule,
                        "ratio": ratio,
                        "mcse": error,
                    }
                )
    return pd.DataFrame(lines)


def over_default(results: xr.Dataset, rule: str, score: str) -> tuple[float, float]:
    """Geometric mean over effects and N of the means over those of the default, and its error."""
    values = tools.where(results, "kind", "effect")[score]
    ours, default = (values.sel(rule=name).values for name in (rule, DEFAULT))
    ratio, error = np.array([ratio_of_means(*pair) for pair in zip(ours, default, strict=True)]).T
    mean = float(np.exp(np.log(ratio).mean()))
    return mean, mean * float(np.sqrt(np.sum((error / ratio) ** 2))) / len(ratio)


def _wide(table: pd.DataFrame, over: str, value: str) -> pd.DataFrame:
    """Rules down, ``over`` across, each value followed by its error."""
    wide = table.pivot(index="rule", columns=over, values=[value, "mcse"])
    order = {"rule": table["rule"].unique(), over: table[over].unique()}
    columns = {}
    for at in order[over]:
        columns[f"N = {at}" if over == "N" else str(at)] = wide[value, at]
        columns[f"mcse_{at}"] = wide["mcse", at]
    return pd.DataFrame(columns).loc[order["rule"]].reset_index()


def by_default(splits: pd.DataFrame) -> pd.DataFrame:
    """False splits of the default, with what was aimed at."""
    table = splits[splits["rule"] == DEFAULT].drop(columns="rule").reset_index(drop=True)
    table["below"] = [100 * NOISES[noise][1] for noise in table["noise"]]
    kept = np.where(table["percent"] < table["below"], "yes", "no")
    return table.assign(holds=np.where(table["below"].isna(), "", kept))


def summary(results: xr.Dataset) -> pd.DataFrame:
    """Every rule in a line: the largest share of false splits by noise, and how far from effects.

    Ratios are to the best number of equal-width bins: their geometric mean over effects and N,
    and the largest.
    """
    splits, ratios = false_splits(results), over_oracle(results)
    table = splits.groupby(["rule", "noise"])["percent"].max().unstack()[list(NOISES)]
    for score in JUDGED:
        ratio = ratios[ratios["score"] == score].groupby("rule")["ratio"]
        table[f"{score}_mean"] = ratio.agg(lambda values: np.exp(np.log(values).mean()))
        table[f"{score}_max"] = ratio.max()
    kept = [table[noise] < 100 * least for noise, (_, least) in NOISES.items() if least > 0]
    table["splits_kept"] = np.where(np.logical_and.reduce(kept), "yes", "no")
    return table.loc[_rules_tried(results)].reset_index()


def tables(results: xr.Dataset) -> list[tuple[str, pd.DataFrame]]:
    """The default, a line a rule, and everything."""
    splits, ratios = false_splits(results), over_oracle(results)
    default, others = QUICK_SAMPLES if results.attrs["quick"] else SAMPLES
    runs = results.sizes["replicate"]
    return [
        (
            f"The default: percent of {default * runs} samples without effect with several bins",
            by_default(splits),
        ),
        (
            "Every rule: largest percent of false splits over N; ratios to the best number of "
            "equal-width bins over effects and N",
            summary(results),
        ),
        *(
            (
                f"{noise} noise: percent of {others * runs} samples with more than one bin "
                f"({default * runs} for {DEFAULT})",
                _wide(splits[splits["noise"] == noise], "N", "percent"),
            )
            for noise in NOISES
        ),
        *(
            (
                f"{score} over that of the best number of equal-width bins, N = {n}",
                _wide(ratios[(ratios["score"] == score) & (ratios["N"] == n)], "effect", "ratio"),
            )
            for n in ratios["N"].unique()
            for score in JUDGED
        ),
    ]


def findings(results: xr.Dataset) -> list[str]:
    """Why this default."""
    default = by_default(false_splits(results))
    rules = summary(results).set_index("rule")
    every = [f"{penalty}, pruning" for penalty in PENALTIES]
    words = []
    for noise, (_, least) in NOISES.items():
        lines = default[default["noise"] == noise]
        worst = lines.iloc[int(lines["percent"].argmax())]
        most = f"{worst['percent']:.1f} ± {worst['mcse']:.1g} %, with N = {worst['N']}"
        words.append(
            f"{noise} noise, its spread growing from 0.2 to 2.2 along the axis, is cut in at most "
            f"{most}; no bound was set."
            if np.isnan(least)
            else f"{holds((lines['percent'] < 100 * least).all())}: {noise} noise is cut in less "
            f"than {100 * least:.0f} % of samples; at most in {most}."
        )
    words.append(
        "Remedies, each with those before it, penalty 2 ln K; largest share of cut samples over N, "
        "normal, two-point, t3 noise, and geometric mean of ISE_mu over the best number of "
        "equal-width bins: " + "; ".join(_said(rules, f"2 ln K, {r}", r) for r in REMEDIES) + "."
    )
    words.append(
        "Penalties with all remedies, the same: "
        + "; ".join(_said(rules, f"{penalty}, pruning", penalty) for penalty in PENALTIES)
        + "."
    )
    kept = rules[(rules["splits_kept"] == "yes") & rules.index.isin([*every, *PARAMETERS.values()])]
    others = [rule for rule in kept.index if rule != DEFAULT]
    against = {rule: [over_default(results, rule, score) for score in JUDGED] for rule in others}
    closest = DEFAULT in kept.index and all(mean[0] >= 1 for mean, _ in against.values())
    words.append(
        f"{holds(closest)}: of the rules with all remedies that keep within the bounds on false "
        "splits, the default is the closest to mu(z). ISE_mu and ISE_sigma of the others over "
        "those of the default, geometric means over effects and N: "
        + "; ".join(
            f"{rule} " + " and ".join(f"{mean:.3f} ± {error:.1g}" for mean, error in pair)
            for rule, pair in against.items()
        )
        + ". The largest ISE_mu over the best number of equal-width bins: "
        + "; ".join(f"{rule} {kept.loc[rule, 'ISE_mu_max']:.2f}" for rule in kept.index)
        + "."
    )
    words.append(
        "Penalties of a parameter, with 2 ln K for an edge and all remedies, the same: "
        + "; ".join(_said(rules, rule, value) for value, rule in PARAMETERS.items())
        + "."
    )
    jump = [name for name in results["scenario"].values if str(name).startswith("jump")]
    words.append(
        "A jump between edges of the coarse grid: ISE_mu with refined edges over that without, "
        + "; ".join(
            "{:.2f} ± {:.1g}".format(
                *ratio_of_means(
                    *(
                        results["ISE_mu"].sel(scenario=name, rule=f"2 ln K, {remedy}")
                        for remedy in ("refined edges", "no remedy")
                    )
                )
            )
            + f" on {name}"
            for name in jump
        )
        + "."
    )
    return words


def _said(rules: pd.DataFrame, rule: str, name: str) -> str:
    line = rules.loc[rule]
    shares = ", ".join(f"{line[noise]:.1f}" for noise in ("normal", "two-point", "t3"))
    return f"{name} {shares} %, {line['ISE_mu_mean']:.2f}"


def figure(results: xr.Dataset) -> Figure:
    """False splits against N by remedy and by penalty; distance from effects by penalty."""
    splits, ratios = false_splits(results), over_oracle(results)
    fig, axes = tools.panels(3, len(NOISES), sharey="row")
    by_remedy = {remedy: f"2 ln K, {remedy}" for remedy in REMEDIES}
    by_penalty = {penalty: f"{penalty}, pruning" for penalty in PENALTIES}
    for row, shown in zip(axes, (by_remedy, by_penalty), strict=False):
        for ax, (noise, (_, least)) in zip(row, NOISES.items(), strict=True):
            for (name, rule), colour in zip(shown.items(), COLOURS, strict=False):
                lines = splits[(splits["noise"] == noise) & (splits["rule"] == rule)]
                _draw(ax, lines["N"].to_numpy(), lines, "percent", name, colour)
            ax.axhline(100 * least, color="0.4", linestyle=":", linewidth=0.8)
            ax.set(title=f"{noise} noise", xlabel="N", xscale="log", ylim=(-1, 105))
            # The shares that matter are small.
            ax.set_yscale("symlog", linthresh=10)
            ax.set_yticks(TICKS, map(str, TICKS))
    axes[0, 0].set_ylabel("samples cut, %, by remedy\n(2 ln K; each with those before it)")
    axes[1, 0].set_ylabel("samples cut, %, by penalty\n(all remedies)")
    panels_of = [(score, n) for score in JUDGED for n in ratios["N"].unique()]
    for ax in axes[2, len(panels_of) :]:
        ax.set_axis_off()
    for ax, (score, n) in zip(axes[2], panels_of, strict=False):
        at = np.arange(len(EFFECTS))
        for shift, (name, rule), colour in zip(
            np.linspace(-0.25, 0.25, len(PENALTIES)), by_penalty.items(), COLOURS, strict=True
        ):
            chosen = (ratios["score"] == score) & (ratios["N"] == n) & (ratios["rule"] == rule)
            lines = ratios[chosen].set_index("effect").loc[list(EFFECTS)]
            _draw(ax, at + shift, lines, "ratio", name, colour, linestyle="none")
        ax.axhline(1, color="0.4", linewidth=0.8)
        ax.set(title=f"{score}, N = {n}", yscale="log")
        ax.set_xticks(at, EFFECTS, rotation=45, ha="right")
    axes[2, 0].set_ylabel("over the best number of bins\n(all remedies)")
    for row in axes[:2]:
        row[-1].legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    return fig


def _draw(
    ax: Any,
    x: NDArray[Any],
    lines: pd.DataFrame,
    value: str,
    name: str,
    colour: str,
    **style: str,
) -> None:
    ax.errorbar(
        x,
        lines[value],
        lines["mcse"],
        color=colour,
        label=name,
        marker="o",
        markersize=3,
        linewidth=0.8,
        **style,
    )
