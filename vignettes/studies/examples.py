"""Effects for studies of rules for bins, and comparison of a rule with equal-width bins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from rhale_stats.bins.rule import BinRule
from rhale_stats.simulate import Marginal, PiecewiseLinear, Simulator
from rhale_stats.simulate.scores import mae
from rhale_stats.simulate.simulator import TURNS, FloatArray, Function
from studies.runner import Output
from studies.tools import SCORES, local_of, quiet_rhale

SD = 0.5**0.5
# The five pieces of math [51].
PIECES = PiecewiseLinear()
JUMP_AT = 0.613
ALONG_THE_AXIS = ("ISE_mu", "ISE_sigma", "curve_mean_error")
OUTPUTS: dict[str, Output] = {name: SCORES[name] for name in (*ALONG_THE_AXIS, "n_bins")}
FIXED = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 70, 100)
QUICK_FIXED = (1, 5, 20)


class Shape(NamedTuple):
    """mu(z), and where it is not smooth."""

    mean: Function
    breaks: tuple[float, ...] = ()


SHAPES = {
    "constant": Shape(np.ones_like),
    "line": Shape(lambda z: 9 * z),
    "five pieces": Shape(
        lambda z: z + np.array(PIECES.slopes)[np.searchsorted(PIECES.breaks, z, side="right")],
        PIECES.breaks,
    ),
    "sine": Shape(lambda z: 6 * np.sin(4 * np.pi * z) + z),
    "slow sine": Shape(lambda z: 2 * np.sin(2 * np.pi * z)),
    "jump": Shape(lambda z: 2 * np.sin(2 * np.pi * z) + 3 * (z > JUMP_AT), (JUMP_AT,)),
}
# Of mean 0 and variance 1.
NOISES: dict[str, Callable[[np.random.Generator, int], FloatArray]] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "two-point": lambda rng, n: rng.choice([-1.0, 1.0], size=n),
    "t3": lambda rng, n: rng.standard_t(3, size=n) / np.sqrt(3),
}
SPREADS: dict[str, Function] = {
    "none": np.zeros_like,
    "same": lambda z: np.full(np.shape(z), SD),
    "growing": lambda z: 0.2 + 2 * z,
}
# Shares, means and standard deviations of the clusters; the rest is uniform.
CLUSTERS = ((0.5, 0.25, 0.05), (0.4, 0.8, 0.03))


@dataclass(frozen=True)
class Example(Simulator):
    """Local effects mu(x1) + sigma(x1) x2 of x1 on [0, 1], where x2 is noise of variance 1.

    Parameters
    ----------
    shape, noise, spread : str
        Of mu, the noise and sigma: keys of `SHAPES`, `NOISES` and `SPREADS`.
    clustered : bool
        If True, most rows lie near two places; otherwise x1 is uniform.
    """

    shape: str
    noise: str = "normal"
    spread: str = "same"
    clustered: bool = False
    columns: ClassVar[tuple[str, ...]] = ("x1", "x2")

    def _derivatives(self, *x: FloatArray) -> tuple[ArrayLike, ...]:
        x1, x2 = x
        # The effect of the noise itself is not studied.
        return SHAPES[self.shape].mean(x1) + SPREADS[self.spread](x1) * x2, np.nan

    def _draw(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, ...]:
        x1 = rng.uniform(size=n)
        if self.clustered:
            x1 = _clustered(x1, rng.uniform(size=n))
        return x1, NOISES[self.noise](rng, n)

    def _marginals(self) -> dict[str, Marginal]:
        mean, breaks = SHAPES[self.shape]
        spread = SPREADS[self.spread]
        turns: list[float] = []
        if self.clustered:
            turns = [at for _, middle, sd in CLUSTERS for at in middle + TURNS * sd]
        return {
            "x1": Marginal(
                mean,
                lambda z: spread(z) ** 2,
                _clustered_cdf if self.clustered else lambda z: np.clip(z, 0.0, 1.0),
                np.array([0.0, 1.0, *breaks, *turns]),
            )
        }


def _clustered(u: FloatArray, which: FloatArray) -> FloatArray:
    """Uniform numbers turned into places in the clusters, each a normal cut off at 0 and 1."""
    x, begin = u.copy(), 0.0
    for share, middle, sd in CLUSTERS:
        low, high = ndtr((np.array([0.0, 1.0]) - middle) / sd)
        here = (begin <= which) & (which < begin + share)
        x[here] = middle + sd * ndtri(low + u[here] * (high - low))
        begin += share
    return np.clip(x, 0.0, 1.0)


def _clustered_cdf(z: FloatArray) -> FloatArray:
    z = np.clip(z, 0.0, 1.0)
    total = (1 - sum(share for share, _, _ in CLUSTERS)) * z
    for share, middle, sd in CLUSTERS:
        low, high = ndtr((np.array([0.0, 1.0]) - middle) / sd)
        total = total + share * (ndtr((z - middle) / sd) - low) / (high - low)
    return np.asarray(total)


# The first four are those of math [22].
EXAMPLES = {
    "five pieces": Example("five pieces"),
    "line": Example("line"),
    "sine": Example("sine"),
    "constant": Example("constant"),
    "jump": Example("jump"),
    "clustered x": Example("slow sine", clustered=True),
    "t3 noise": Example("five pieces", noise="t3"),
    "growing spread": Example("five pieces", spread="growing"),
}


def scored_along(
    example: Example, n: int, rng: np.random.Generator, rules: Mapping[str, BinRule]
) -> dict[str, list[float]]:
    """Scores along the axis of rules on the same ``n`` rows; NaN where a bin has no estimate."""
    local = local_of(example, example.sample(n, rng))
    effects = [
        quiet_rhale(local, rule, has_spread=False, centering="integral") for rule in rules.values()
    ]
    truth = example.truth(effects[0])  # its cells serve all rules: the axis is the same
    scores = [mae(effect, truth) for effect in effects]
    return {
        **{name: [float(score[name][0]) for score in scores] for name in ALONG_THE_AXIS},
        "n_bins": [float(effect["n_bins"][0]) for effect in effects],
    }


def oracle(scores: xr.DataArray) -> str:
    """The number of equal-width bins with the smallest mean (rule, replicate), over all runs.

    One that left a bin without estimate in some run has no mean.
    """
    fixed = [rule for rule in scores["rule"].values if str(rule).startswith("K = ")]
    means = scores.sel(rule=fixed).mean("replicate", skipna=False).values
    return str(fixed[int(np.nanargmin(means))])


def ratio_of_means(ours: ArrayLike, theirs: ArrayLike) -> tuple[float, float]:
    """Ratio of the means of paired runs and its standard error, by the delta method."""
    a, b = (np.asarray(values, dtype=np.float64) for values in (ours, theirs))
    ratio = float(a.mean() / b.mean())
    if len(a) < 2:
        return ratio, np.nan
    return ratio, float((a - ratio * b).std(ddof=1) / np.sqrt(len(a)) / b.mean())


def against_oracle(
    results: xr.Dataset, rules: Sequence[str], scores: Sequence[str] = ALONG_THE_AXIS
) -> pd.DataFrame:
    """Means of rules over that of the best number of equal-width bins, a line a score."""
    lines = []
    for scenario in results["scenario"].values:
        for score in scores:
            values = results[score].sel(scenario=scenario)
            best = oracle(values)
            line: dict[str, str | float] = {
                "scenario": str(scenario),
                "score": score,
                "oracle": best,
            }
            for rule in rules:
                ratio, error = ratio_of_means(values.sel(rule=rule), values.sel(rule=best))
                line |= {rule: ratio, f"{rule}_mcse": error}
            lines.append(line)
    return pd.DataFrame(lines)
