"""The examples of the papers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, ndtr

from rhale_stats.simulate.simulator import TURNS, FloatArray, Function, Marginal, Simulator


@dataclass(frozen=True)
class Toy(Simulator):
    """Two correlated features: f = b0 + b1 x1 + b2 x2 + b3 x1 x2 (math [47], note of July 2021).

    Parameters
    ----------
    b0, b1, b2, b3 : float
        Coefficients.
    variance : float, default 0.1
        Variance of x2 given x1.
    shape : pair of float, default (1, 1)
        x1 has a beta distribution on [0, 1] with these parameters; (1, 1) is uniform.

    Notes
    -----
    For x1: mu(z) = b1 + b3 z, sigma^2 = b3^2 variance, and the bin error is b3^2 width^2 / 12.

    Examples
    --------
    >>> import rhale_stats as rs
    >>> toy = rs.simulate.Toy()
    >>> X = toy.sample(500, rng=0)
    >>> local = rs.local_effects(toy.model, X, jacobian=toy.jacobian, features="x1")
    >>> effect = rs.rhale(local, bins=rs.GivenBins([0, 0.5, 1]))
    >>> toy.truth(effect)["bin_error"].values.round(4)
    array([[0.0833, 0.0833]])
    """

    b0: float = 0.0
    b1: float = 1.0
    b2: float = 1.0
    b3: float = 2.0
    variance: float = 0.1
    shape: tuple[float, float] = (1.0, 1.0)
    columns: ClassVar[tuple[str, ...]] = ("x1", "x2")

    def _output(self, x1: FloatArray, x2: FloatArray) -> FloatArray:
        return self.b0 + self.b1 * x1 + self.b2 * x2 + self.b3 * x1 * x2

    def _derivatives(self, x1: FloatArray, x2: FloatArray) -> tuple[ArrayLike, ...]:
        return self.b1 + self.b3 * x2, self.b2 + self.b3 * x1

    def _draw(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, ...]:
        x1 = rng.uniform(size=n) if self.shape == (1.0, 1.0) else rng.beta(*self.shape, size=n)
        return x1, x1 + np.sqrt(self.variance) * rng.normal(size=n)

    def _marginals(self) -> dict[str, Marginal]:
        return {
            "x1": Marginal(
                lambda z: self.b1 + self.b3 * z,
                _constant(self.b3**2 * self.variance),
                lambda z: betainc(*self.shape, np.clip(z, 0.0, 1.0)),
                np.array([0.0, 1.0]),
            )
        }


@dataclass(frozen=True)
class OppositeGroups(Simulator):
    """Two groups with opposite effects: f = 0.2 x1 - 5 x2 + 10 x2 1{x3 > 0} (math [48], Eq. 1).

    x1, x2 and x3 are uniform on (-1, 1). The effect of x2 has mean 0 and standard deviation 5. The
    derivative with respect to x3 is 0, although f jumps there.

    Examples
    --------
    >>> import rhale_stats as rs
    >>> example = rs.simulate.OppositeGroups()
    >>> X = example.sample(100, rng=0)
    >>> effect = rs.rhale(rs.local_effects(None, X, jacobian=example.jacobian))
    >>> example.truth(effect)["heterogeneity"].max("bin").values
    array([0., 5., 0.])
    """

    columns: ClassVar[tuple[str, ...]] = ("x1", "x2", "x3")

    def _output(self, x1: FloatArray, x2: FloatArray, x3: FloatArray) -> FloatArray:
        return 0.2 * x1 - 5 * x2 + 10 * x2 * (x3 > 0)

    def _derivatives(
        self, _x1: FloatArray, _x2: FloatArray, x3: FloatArray
    ) -> tuple[ArrayLike, ...]:
        return 0.2, np.where(x3 > 0, 5.0, -5.0), 0.0

    def _draw(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, ...]:
        return tuple(rng.uniform(-1, 1, size=(3, n)))

    def _marginals(self) -> dict[str, Marginal]:
        return {
            "x1": _uniform(-1, 1, _constant(0.2), _constant(0.0)),
            "x2": _uniform(-1, 1, _constant(0.0), _constant(25.0)),
            "x3": _uniform(-1, 1, _constant(0.0), _constant(0.0)),
        }


@dataclass(frozen=True)
class RunningExample(Simulator):
    """Eq. 5 of the paper: f = sin(2 pi x1)(1{x1 < 0} - 2 1{x3 < 0}) + x1 x2 + x2 (math [49]).

    Parameters
    ----------
    noise : float, default 0.01
        Standard deviation of x3 about its mean x1. (The paper prints mean 0; its figures need x1.)
    sd : float, default 2
        Standard deviation of x2. x1 is uniform on (-0.5, 0) with probability 5/6, and on (0, 0.5)
        otherwise.
    """

    noise: float = 0.01
    sd: float = 2.0
    columns: ClassVar[tuple[str, ...]] = ("x1", "x2", "x3")

    def _output(self, x1: FloatArray, x2: FloatArray, x3: FloatArray) -> FloatArray:
        return np.sin(2 * np.pi * x1) * ((x1 < 0) - 2.0 * (x3 < 0)) + x1 * x2 + x2

    def _derivatives(self, x1: FloatArray, x2: FloatArray, x3: FloatArray) -> tuple[ArrayLike, ...]:
        return _wave_slope(x1) * ((x1 < 0) - 2.0 * (x3 < 0)) + x2, x1 + 1, 0.0

    def _draw(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, ...]:
        x1 = rng.uniform(0, 0.5, size=n) * np.where(rng.uniform(size=n) < 5 / 6, -1, 1)
        return x1, self.sd * rng.normal(size=n), x1 + self.noise * rng.normal(size=n)

    def _marginals(self) -> dict[str, Marginal]:
        def positive(z: FloatArray) -> FloatArray:
            return np.asarray(ndtr(z / self.noise))

        x1 = Marginal(
            lambda z: _wave_slope(z) * ((z < 0) - 2 * positive(-z)),
            lambda z: self.sd**2 + 4 * _wave_slope(z) ** 2 * positive(-z) * positive(z),
            lambda z: np.where(z < 0, (z + 0.5) * 5 / 3, (5 + 2 * z) / 6),
            TURNS * self.noise,
        )
        # x1 + 1, where x1 has mean -1/6 and mean square 1/12.
        x2 = _normal(self.sd, _constant(5 / 6), _constant(1 / 12 - 1 / 36))
        return {"x1": x1, "x2": x2}


def _wave_slope(z: FloatArray) -> FloatArray:
    return 2 * np.pi * np.cos(2 * np.pi * z)


@dataclass(frozen=True)
class Ridge(Simulator):
    """A ridge in x1 + x2, with x2 around x1, and alpha x1 x3 (math [50], Eq. 17 of the paper).

    Parameters
    ----------
    alpha : float, default 0
        Weight of the interaction; 0 is the paper's case a.
    noise : float, default 0.01
        Standard deviation of x2 around x1, above 0. x1 is uniform on [0, 1], x3 normal with
        standard deviation 0.5.
    """

    alpha: float = 0.0
    noise: float = 0.01
    columns: ClassVar[tuple[str, ...]] = ("x1", "x2", "x3")

    def _output(self, x1: FloatArray, x2: FloatArray, x3: FloatArray) -> FloatArray:
        total = x1 + x2
        ridge = np.where(total <= 0.5, total, np.where(total < 1, 1 - total, 0.0))
        return self.alpha * x1 * x3 + ridge

    def _derivatives(self, x1: FloatArray, x2: FloatArray, x3: FloatArray) -> tuple[ArrayLike, ...]:
        total = x1 + x2
        slope = np.where(total <= 0.5, 1.0, np.where(total < 1, -1.0, 0.0))
        return self.alpha * x3 + slope, slope, self.alpha * x1

    def _draw(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, ...]:
        x1 = rng.uniform(size=n)
        return x1, x1 + self.noise * rng.normal(size=n), 0.5 * rng.normal(size=n)

    def _marginals(self) -> dict[str, Marginal]:
        def below(level: float, z: FloatArray) -> FloatArray:
            return np.asarray(ndtr((level - 2 * z) / self.noise))

        def mean(z: FloatArray) -> FloatArray:
            return 2 * below(0.5, z) - below(1.0, z)

        def variance(z: FloatArray) -> FloatArray:
            return self.alpha**2 / 4 + below(1.0, z) - mean(z) ** 2

        turns = TURNS * self.noise / 2
        x3 = _normal(0.5, _constant(self.alpha / 2), _constant(self.alpha**2 / 12))
        return {"x1": _uniform(0, 1, mean, variance, [*(0.25 + turns), *(0.5 + turns)]), "x3": x3}


@dataclass(frozen=True)
class PiecewiseLinear(Simulator):
    """A continuous function of x1 with given slopes, plus x1 x2 (math [51] and [52]).

    The defaults are section 4.2 of the paper. ``PiecewiseLinear.independent()`` is the example of
    the note of June 2021.

    Parameters
    ----------
    sd : float, default sqrt(0.5)
        Standard deviation of x2 given x1. It is 0.5 in the authors' code.
    slopes, breaks : tuple of float
        Slopes, and the values of x1 between them.
    high : float, default 1
        x1 lies on [0, high].
    follow : float, default 1
        The mean of x2 given x1 is ``follow * x1``. With 0 the two are independent.
    dense_until, dense_share : float, default 1
        The share ``dense_share`` of the rows is uniform below ``dense_until``, and the others above
        it.

    Notes
    -----
    For x1: mu(z) = a(z) + follow z, with a the slopes, and sigma = sd. The paper's text leaves out
    E[x2 | x1] = x1.
    """

    sd: float = 0.5**0.5
    slopes: tuple[float, ...] = (2.0, -2.0, 5.0, -10.0, 0.5)
    breaks: tuple[float, ...] = (0.2, 0.4, 0.45, 0.5)
    high: float = 1.0
    follow: float = 1.0
    dense_until: float = 1.0
    dense_share: float = 1.0
    columns: ClassVar[tuple[str, ...]] = ("x1", "x2")

    def __post_init__(self) -> None:
        if len(self.slopes) != len(self.breaks) + 1:
            raise ValueError(
                f"slopes must be one more than breaks; got {len(self.slopes)} slopes and "
                f"{len(self.breaks)} breaks."
            )

    @classmethod
    def independent(
        cls,
        slopes: tuple[float, ...] = (0.3, 7.0, -1.5, 0.0, -5.0),
        breaks: tuple[float, ...] = (20.0, 40.0, 60.0, 80.0),
        *,
        dense_until: float = 100.0,
        dense_share: float = 1.0,
    ) -> PiecewiseLinear:
        """The example on [0, 100] with an independent x2 of standard deviation 4 (math [52]).

        Parameters
        ----------
        slopes, breaks : tuple of float
            The defaults are section 2 of the note. Section 4 has pieces of length 20, 20 and 60,
            and does not state their slopes.
        dense_until, dense_share : float
            As above; in section 4 rows are sparse beyond 40.

        Returns
        -------
        PiecewiseLinear
        """
        return cls(4.0, slopes, breaks, 100.0, 0.0, dense_until, dense_share)

    def _slope(self, x1: FloatArray) -> FloatArray:
        """Slope at each x1; pieces are closed on the left, as bins are."""
        piece = np.searchsorted(self.breaks, x1, side="right")
        return np.array(self.slopes, dtype=np.float64)[piece]

    def _output(self, x1: FloatArray, x2: FloatArray) -> FloatArray:
        starts = np.array([0.0, *self.breaks])
        level = np.concatenate([[0.0], np.cumsum(self.slopes[:-1] * np.diff(starts))])
        piece = np.searchsorted(self.breaks, x1, side="right")
        return np.asarray(level[piece] + self._slope(x1) * (x1 - starts[piece]) + x1 * x2)

    def _derivatives(self, x1: FloatArray, x2: FloatArray) -> tuple[ArrayLike, ...]:
        return self._slope(x1) + x2, x1

    def _draw(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, ...]:
        u = rng.uniform(size=n)
        dense = rng.uniform(size=n) < self.dense_share
        sparse = self.dense_until + u * (self.high - self.dense_until)
        x1 = np.where(dense, u * self.dense_until, sparse)
        return x1, self.follow * x1 + self.sd * rng.normal(size=n)

    def _marginals(self) -> dict[str, Marginal]:
        ends, shares = [0.0, self.dense_until, self.high], [0.0, self.dense_share, 1.0]
        return {
            "x1": Marginal(
                lambda z: self._slope(z) + self.follow * z,
                _constant(self.sd**2),
                lambda z: np.interp(z, ends, shares),
                np.array([*self.breaks, self.dense_until]),
            )
        }


@dataclass(frozen=True)
class Quadratic(Simulator):
    """f = 4 x1^2 + x2^2 + x1 x2, with x2 around x1 (math [51], section 4.2 of the paper).

    Parameters
    ----------
    sd : float, default sqrt(0.5)
        Standard deviation of x2 around x1 (the authors' code has 0.4); x1 is uniform on [0, 1].

    Notes
    -----
    For x1: mu(z) = 9 z, sigma = sd, and the bin error is 81 width^2 / 12.
    """

    sd: float = 0.5**0.5
    columns: ClassVar[tuple[str, ...]] = ("x1", "x2")

    def _output(self, x1: FloatArray, x2: FloatArray) -> FloatArray:
        return 4 * x1**2 + x2**2 + x1 * x2

    def _derivatives(self, x1: FloatArray, x2: FloatArray) -> tuple[ArrayLike, ...]:
        return 8 * x1 + x2, 2 * x2 + x1

    def _draw(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, ...]:
        x1 = rng.uniform(size=n)
        return x1, x1 + self.sd * rng.normal(size=n)

    def _marginals(self) -> dict[str, Marginal]:
        return {"x1": _uniform(0, 1, lambda z: 9 * z, _constant(self.sd**2))}


@dataclass(frozen=True)
class TwoRegimes(Simulator):
    """Two regions with opposite slopes: y = 3 x1 1{x3 > 0} - 3 x1 1{x3 <= 0} + x3 (math [53]).

    Parameters
    ----------
    correlated : bool, default False
        If True, x3 is x1, and there is no heterogeneity. If False, x1, x2, x3 are independent and
        uniform on (-1, 1). The output does not depend on x2.
    """

    correlated: bool = False
    columns: ClassVar[tuple[str, ...]] = ("x1", "x2", "x3")

    def _output(self, x1: FloatArray, _x2: FloatArray, x3: FloatArray) -> FloatArray:
        return np.where(x3 > 0, 3 * x1, -3 * x1) + x3

    def _derivatives(
        self, _x1: FloatArray, _x2: FloatArray, x3: FloatArray
    ) -> tuple[ArrayLike, ...]:
        return np.where(x3 > 0, 3.0, -3.0), 0.0, 1.0

    def _draw(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, ...]:
        x1, x2, x3 = rng.uniform(-1, 1, size=(3, n))
        return x1, x2, x1 if self.correlated else x3

    def _marginals(self) -> dict[str, Marginal]:
        x1 = _uniform(-1, 1, _constant(0.0), _constant(9.0))
        if self.correlated:
            x1 = _uniform(-1, 1, lambda z: np.where(z > 0, 3.0, -3.0), _constant(0.0), [0.0])
        return {
            "x1": x1,
            "x2": _uniform(-1, 1, _constant(0.0), _constant(0.0)),
            "x3": _uniform(-1, 1, _constant(1.0), _constant(0.0)),
        }


@dataclass(frozen=True)
class Product(Simulator):
    """A product of two correlated features: y = x1 x2, the vendor's example (math [54]).

    Parameters
    ----------
    sd : float, default 0.5
        Standard deviation of x2 around x1, which is uniform on (-5, 5).

    Notes
    -----
    For x1: mu(z) = z, sigma = sd.
    """

    sd: float = 0.5
    columns: ClassVar[tuple[str, ...]] = ("x1", "x2")

    def _output(self, x1: FloatArray, x2: FloatArray) -> FloatArray:
        return x1 * x2

    def _derivatives(self, x1: FloatArray, x2: FloatArray) -> tuple[ArrayLike, ...]:
        return x2, x1

    def _draw(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, ...]:
        x1 = rng.uniform(-5, 5, size=n)
        return x1, x1 + self.sd * rng.normal(size=n)

    def _marginals(self) -> dict[str, Marginal]:
        return {"x1": _uniform(-5, 5, lambda z: z, _constant(self.sd**2))}


def _constant(value: float) -> Function:
    return lambda z: np.full(np.shape(z), float(value))


def _uniform(
    low: float, high: float, mean: Function, variance: Function, breaks: ArrayLike = ()
) -> Marginal:
    def cdf(z: FloatArray) -> FloatArray:
        return np.clip((z - low) / (high - low), 0.0, 1.0)

    return Marginal(mean, variance, cdf, np.array([low, high, *np.ravel(breaks)], dtype=float))


def _normal(sd: float, mean: Function, variance: Function) -> Marginal:
    def cdf(z: FloatArray) -> FloatArray:
        return np.asarray(ndtr(z / sd))

    return Marginal(mean, variance, cdf, TURNS * sd)
