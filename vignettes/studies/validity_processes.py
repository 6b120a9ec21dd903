"""Processes whose truth is known, for the study of validity.

A row has the local effect ``mu(z) + sigma(z) e`` with noise e of mean 0 and variance 1 that does
not depend on z; it is the derivative of ``F(z) + e A(z)``, with F and A the integrals of mu and
sigma. All targets are integrals over z, by the trapezoidal rule on a fine grid.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy import stats

from rhale_stats.bins.rules import GivenBins
from rhale_stats.local.local_effects import local_effects

FloatArray: TypeAlias = NDArray[np.float64]
# Points of the grid of z on which targets are integrated.
FINE = 4001
# Rows of large noise have this weight; they are drawn as much less often.
HEAVY, LARGE = 5.0, 1.0
ICC = 0.5
# The largest group has this many times the rows of the smallest one.
UNEQUAL = 10.0


def _normal(rng: np.random.Generator, size: int, _shape: float) -> FloatArray:
    return rng.normal(size=size)


def _log_normal(rng: np.random.Generator, size: int, sd: float) -> FloatArray:
    of_e = np.exp(sd**2 / 2)
    return np.asarray((rng.lognormal(0, sd, size) - of_e) / (of_e * np.sqrt(np.expm1(sd**2))))


def _two_point(rng: np.random.Generator, size: int, share: float) -> FloatArray:
    drawn = rng.uniform(size=size) < share
    return np.asarray((drawn - share) / np.sqrt(share * (1 - share)))


def _t(rng: np.random.Generator, size: int, df: float) -> FloatArray:
    return np.asarray(rng.standard_t(df, size) * np.sqrt((df - 2) / df))


def _gamma(rng: np.random.Generator, size: int, shape: float) -> FloatArray:
    return np.asarray((rng.gamma(shape, size=size) - shape) / np.sqrt(shape))


NOISES: dict[str, Callable[[np.random.Generator, int, float], FloatArray]] = {
    "normal": _normal,
    "log-normal": _log_normal,
    "two-point": _two_point,
    "t": _t,
    "gamma": _gamma,
}


class Sample(NamedTuple):
    """Rows of many samples, (row, sample); weights and groups are those of all samples."""

    x: FloatArray
    noise: FloatArray
    weight: FloatArray | None
    groups: NDArray[np.int64] | None


class Truth(NamedTuple):
    """Targets in bins and at their edges."""

    effect: FloatArray
    heterogeneity: FloatArray
    curve: FloatArray
    average: float


@dataclass(frozen=True)
class Process:
    """A process, from the parameters of a scenario.

    ``a`` and ``b`` are those of the beta density of z on (-1, 1); ``link`` is "identity", or "log",
    where the spread is proportional to the mean.
    """

    noise: str = "normal"
    shape: float = 0.0
    a: float = 1.0
    b: float = 1.0
    link: str = "identity"
    n_groups: int = 0
    weighted: int = 0
    n: int = 300
    n_bins: int = 10
    grid: FloatArray = field(default_factory=lambda: np.linspace(-1, 1, FINE), repr=False)

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> Process:
        """From all parameters of a scenario, of which it takes its own."""
        return cls(**{name: parameters[name] for name in cls.parameters()})

    @classmethod
    def parameters(cls) -> list[str]:
        """Names of the parameters of a process."""
        return [name for name in cls.__dataclass_fields__ if name != "grid"]

    def mu(self, z: FloatArray) -> FloatArray:
        """Mean of the local effects."""
        return np.exp(0.8 * z) if self.link == "log" else np.sin(2 * z) + z / 2

    def sigma(self, z: FloatArray) -> FloatArray:
        """Their standard deviation."""
        return 0.6 * np.exp(0.8 * z) if self.link == "log" else 0.3 + 0.7 * np.abs(z)

    def edges(self) -> FloatArray:
        """Edges of the fixed bins: quantiles of the population."""
        share = np.linspace(0, 1, self.n_bins + 1)
        return np.asarray(2 * stats.beta.ppf(share, self.a, self.b) - 1)

    def rule(self) -> GivenBins:
        """The fixed bins."""
        return GivenBins(self.edges())

    def integral(self, of: Callable[[FloatArray], FloatArray], z: FloatArray) -> FloatArray:
        """Integral from -1 to z."""
        values = of(self.grid)
        steps = (values[1:] + values[:-1]) / 2 * np.diff(self.grid)
        return np.asarray(np.interp(z, self.grid, np.concatenate([[0.0], np.cumsum(steps)])))

    def mean(self, values: FloatArray, low: float = -1.0, high: float = 1.0) -> float:
        """Mean over the population between two places of values on the grid."""
        ends = stats.beta.cdf((np.array([low, high]) + 1) / 2, self.a, self.b)
        share = ends[0] + (ends[1] - ends[0]) * (np.arange(FINE) + 0.5) / FINE
        z = 2 * stats.beta.ppf(share, self.a, self.b) - 1
        return float(np.mean(np.interp(z, self.grid, values)))

    def curve(self, z: FloatArray) -> FloatArray:
        """The curve, 0 on average over the population."""
        mean = self.mean(self.integral(self.mu, self.grid))
        return np.asarray(self.integral(self.mu, z) - mean)

    def truth(self, edges: FloatArray) -> Truth:
        """Targets in bins between these edges."""
        mu, squares = self.mu(self.grid), self.sigma(self.grid) ** 2
        variance = []
        for low, high in pairwise(edges):
            level = self.mean(mu, low, high)
            variance.append(self.mean(squares + (mu - level) ** 2, low, high))
        curve = self.curve(edges)
        effect = np.diff(curve) / np.diff(edges)
        return Truth(effect, np.sqrt(variance), curve, self.mean(mu))

    def draw(self, rng: np.random.Generator, n_samples: int) -> Sample:
        """Rows of independent samples; they have their weights and groups in common."""
        size = (self.n, n_samples)
        x = 2 * rng.beta(self.a, self.b, size) - 1
        if self.n_groups:
            groups = unequal_groups(self.n, self.n_groups)
            shared = self.noises(rng, (self.n_groups, n_samples))[groups]
            noise = np.sqrt(ICC) * shared + np.sqrt(1 - ICC) * self.noises(rng, size)
            return Sample(x, noise, None, groups)
        if not self.weighted:
            return Sample(x, self.noises(rng, size), None, None)
        pool = self.noises(rng, (40 * self.n, n_samples))
        large = np.abs(pool) > LARGE
        share = large.mean()
        heavy = rng.uniform(size=self.n) < share / (share + (1 - share) * HEAVY)
        noise = np.empty(size)
        for column in range(n_samples):
            for kind in (False, True):
                own = pool[large[:, column] == kind, column]
                noise[heavy == kind, column] = own[: np.sum(heavy == kind)]
        return Sample(x, noise, np.where(heavy, HEAVY, 1.0), None)

    def noises(self, rng: np.random.Generator, size: tuple[int, int]) -> FloatArray:
        """Noise of mean 0 and variance 1, without weights and groups."""
        return NOISES[self.noise](rng, size[0] * size[1], self.shape).reshape(size)

    def effects(self, sample: Sample, mean: float | None = None) -> FloatArray:
        """Local effects; about a constant ``mean``, if one is given."""
        level = self.mu(sample.x) if mean is None else mean
        return np.asarray(level + self.sigma(sample.x) * sample.noise)

    def local(self, sample: Sample, mean: float | None = None) -> xr.Dataset:
        """Every sample as a feature of one Dataset of local effects."""
        g, features = self.effects(sample, mean), list(range(sample.x.shape[1]))
        return local_effects(None, sample.x, jacobian=g, features=features, weights=sample.weight)

    def model(self, table: FloatArray) -> FloatArray:
        """Output for columns z and noise, of which z has these local effects."""
        z, noise = np.asarray(table).T[:2]
        return np.asarray(self.integral(self.mu, z) + noise * self.integral_of_spread(z))

    def integral_of_spread(self, z: FloatArray) -> FloatArray:
        """Integral of sigma, from 0 on."""
        return self.integral(self.sigma, z) - self.integral(self.sigma, np.zeros(1))


def unequal_groups(n: int, n_groups: int) -> NDArray[np.int64]:
    """Groups of rows, the largest `UNEQUAL` times the smallest, at least one row each."""
    share = UNEQUAL ** np.linspace(0, 1, n_groups)
    ends = np.cumsum(share) / share.sum() * (n - n_groups)
    sizes = 1 + np.diff(np.rint(ends), prepend=0).astype(np.int64)
    return np.repeat(np.arange(n_groups), sizes)


# Seed of the processes that are drawn at random, and their number.
DRAWN_SEED, N_DRAWN = 20, 10


def drawn_processes() -> list[dict[str, Any]]:
    """Parameters of ten processes of one family: skewness, tails, densities, groups, links."""
    rng = np.random.default_rng(DRAWN_SEED)
    found = []
    for _ in range(N_DRAWN):
        noise = str(rng.choice(["log-normal", "two-point", "t", "gamma"]))
        low, high = {
            "log-normal": (0.3, 1.0),
            "two-point": (0.1, 0.5),
            "t": (3.0, 10.0),
            "gamma": (0.5, 8.0),
        }[noise]
        n_bins, n_groups = int(rng.integers(3, 13)), int(rng.choice([0, 0, 25, 60]))
        found.append(
            {
                "noise": noise,
                "shape": round(float(rng.uniform(low, high)), 2),
                "a": round(float(rng.uniform(0.7, 3)), 2),
                "b": round(float(rng.uniform(0.7, 3)), 2),
                "link": str(rng.choice(["identity", "log"])),
                "n_groups": n_groups,
                "weighted": 0 if n_groups else int(rng.choice([0, 0, 1])),
                "n": n_bins * int(rng.choice([30, 60, 120])),
                "n_bins": n_bins,
            }
        )
    return found
