"""Models whose effects are known exactly: the examples of the papers, with their parameters open.

Every simulator has ``model(X)``, ``jacobian(X)``, ``sample(n, rng)`` and ``truth(effect)``. The
last is in the schema of an estimate, on the estimate's own bins, so that tests, studies and users
score alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, ndtr

from rhale_stats.bins import EqualWidthBins
from rhale_stats.curves import curve_of
from rhale_stats.effects import local_effects, rhale
from rhale_stats.models import Model
from rhale_stats.schema import (
    check_effect,
    feature_names,
    one_feature,
    slopes,
    software,
    stacked,
    variable,
)
from rhale_stats.seeds import source_of
from rhale_stats.validate import check_count, checked

FloatArray: TypeAlias = NDArray[np.float64]
Function: TypeAlias = Callable[[FloatArray], FloatArray]

# Gauss-Legendre nodes on every smooth piece: exact for polynomials of degree 63.
NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(32)
# The same on pieces of a narrow cell: of degree 7.
CELL_NODES, CELL_WEIGHTS = np.polynomial.legendre.leggauss(4)
# Where a normal distribution function turns, in standard deviations from its middle; beyond the
# last it is 0 or 1 in double precision.
TURNS = np.array([-9.0, -6.0, -4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 9.0])
TRUE_VALUES = (
    "effect",
    "heterogeneity",
    "bin_error",
    "curve",
    "cell_effect",
    "cell_heterogeneity",
    "cell_value",
)
# Cells of a truth along the axis.
CELLS = 2000


@dataclass(frozen=True)
class Marginal:
    """What is known of one feature: its distribution, and its local effects given its value.

    ``mean`` and ``variance`` are mu(z) and sigma^2(z), the moments of the local effects at a value
    of the feature; ``cdf`` is the feature's distribution function. Between neighbouring
    ``breaks`` all of them are smooth.
    """

    mean: Function
    variance: Function
    cdf: Function
    breaks: FloatArray


class Simulator:
    """A model and the distribution of its features; the examples are its subclasses."""

    columns: ClassVar[tuple[str, ...]]

    def model(self, X: Any) -> FloatArray:
        """Output of the model.

        Parameters
        ----------
        X : DataFrame or array_like of shape (n_rows, n_columns)
            All columns, in the order of ``columns``.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        return self._output(*np.asarray(X, dtype=np.float64).T)

    def jacobian(self, X: Any) -> FloatArray:
        """Derivatives of the output with respect to every column.

        Parameters
        ----------
        X : DataFrame or array_like of shape (n_rows, n_columns)
            All columns, in the order of ``columns``.

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
        """
        columns = np.asarray(X, dtype=np.float64).T
        derivatives = self._derivatives(*columns)
        return np.column_stack([np.broadcast_to(d, columns[0].shape) for d in derivatives])

    def sample(self, n: int, rng: np.random.Generator | int | None = None) -> pd.DataFrame:
        """``n`` independent rows.

        Parameters
        ----------
        n : int
            Number of rows, at least 1.
        rng : Generator, int or None
            Source of randomness, or its seed. None draws anew; ``attrs["seed"]`` of the table
            reproduces it (-1 with a Generator).

        Returns
        -------
        DataFrame
            One column a feature.

        Raises
        ------
        ValueError
            ``n`` below 1.
        """
        check_count("n", n, 1)
        generator, seed = source_of(rng)
        drawn = self._draw(n, generator)
        table = pd.DataFrame(dict(zip(self.columns, drawn, strict=True)))
        table.attrs["seed"] = seed
        return table

    def truth(self, effect: xr.Dataset) -> xr.Dataset:
        """Exact values of what ``effect`` estimates, on its own bins.

        Parameters
        ----------
        effect : Dataset
            What `rhale` made of rows of this simulator.

        Returns
        -------
        Dataset
            Over (feature, bin): ``effect`` mu(a, b), ``heterogeneity`` sigma(a, b) and
            ``bin_error``, math [12], for a feature that is uniform within the bin; where a rule
            makes linear bins ``slope``, and in these the bin error is that of the best line. Over
            (feature, edge): ``curve``, centred as that of ``effect`` is, over the stretch on
            which that is known: at its first edge, at its mean over the population in it, or at
            its mean over the axis. Over (feature, cell), 2000 equal cells along the axis:
            ``cell_effect`` and ``cell_heterogeneity``, between the ``cell_value`` of (feature,
            cell_edge), by which `mae` compares along the axis. Coordinates as in ``effect``.

        Raises
        ------
        KeyError
            A feature whose truth has no closed form; the message lists those that have.
        """
        effect = check_effect(effect)
        known = self._marginals()
        rows = []
        for name in feature_names(effect):
            if name not in known:
                raise KeyError(
                    f"effect must hold features whose truth is known, for {type(self).__name__} "
                    f"{', '.join(map(repr, known))}; got {name!r}. Select them: "
                    f"effect.sel(feature=[...])."
                )
            row = one_feature(effect, name)
            centering = str(effect.attrs["centering"])
            linear = slopes(row) != 0 if "slope" in row else None
            curve = curve_of(row)
            there = curve.edges[np.isfinite(curve.values)]
            rows.append(_truth(known[name], row["edge_value"].values, linear, there, centering))
        arrays = stacked(rows, effect.sizes["bin"], cell=CELLS, cell_edge=CELLS + 1)
        cell_value = arrays.pop("cell_value")
        return xr.Dataset(
            {name: variable(name, array) for name, array in arrays.items()},
            {
                **effect.drop_dims(["line_moment", "cell", "cell_edge"], errors="ignore").coords,
                "cell_value": variable("cell_value", cell_value),
            },
            {
                "method": "truth",
                "simulator": repr(self),
                "centering": effect.attrs["centering"],
                "software": software(),
            },
        )

    def _output(self, *x: FloatArray) -> FloatArray:
        raise NotImplementedError

    def _derivatives(self, *x: FloatArray) -> tuple[ArrayLike, ...]:
        raise NotImplementedError

    def _draw(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, ...]:
        raise NotImplementedError

    def _marginals(self) -> dict[str, Marginal]:
        """Features whose truth is known in closed form."""
        raise NotImplementedError


@dataclass(frozen=True)
class Toy(Simulator):
    """f = b0 + b1 x1 + b2 x2 + b3 x1 x2, with x2 around x1 (math [47], note of July 2021).

    Parameters
    ----------
    b0, b1, b2, b3 : float
        Coefficients.
    variance : float, default 0.1
        Of x2 given x1.
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

    def _output(self, *x: FloatArray) -> FloatArray:
        x1, x2 = x
        return self.b0 + self.b1 * x1 + self.b2 * x2 + self.b3 * x1 * x2

    def _derivatives(self, *x: FloatArray) -> tuple[ArrayLike, ...]:
        x1, x2 = x
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
    """f = 0.2 x1 - 5 x2 + 10 x2 1{x3 > 0} on (-1, 1)^3 (math [48], Eq. 1 of the paper).

    The effect of x2 is 0 on average and 5 in spread. The derivative with respect to x3 is 0,
    although f jumps there.

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

    def _output(self, *x: FloatArray) -> FloatArray:
        x1, x2, x3 = x
        return 0.2 * x1 - 5 * x2 + 10 * x2 * (x3 > 0)

    def _derivatives(self, *x: FloatArray) -> tuple[ArrayLike, ...]:
        return 0.2, np.where(x[2] > 0, 5.0, -5.0), 0.0

    def _draw(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, ...]:
        return tuple(rng.uniform(-1, 1, size=(3, n)))

    def _marginals(self) -> dict[str, Marginal]:
        known = {"x1": (0.2, 0.0), "x2": (0.0, 25.0), "x3": (0.0, 0.0)}
        return {
            name: _uniform(-1, 1, _constant(mean), _constant(variance))
            for name, (mean, variance) in known.items()
        }


@dataclass(frozen=True)
class RunningExample(Simulator):
    """f = sin(2 pi x1)(1{x1 < 0} - 2 1{x3 < 0}) + x1 x2 + x2 (math [49], Eq. 5 of the paper).

    Parameters
    ----------
    noise : float, default 0.01
        Standard deviation of x3 around x1. (The paper prints mean 0; its figures need x1.)
    sd : float, default 2
        Standard deviation of x2. x1 is uniform on (-0.5, 0) in five rows of six, else on (0, 0.5).
    """

    noise: float = 0.01
    sd: float = 2.0
    columns: ClassVar[tuple[str, ...]] = ("x1", "x2", "x3")

    def _output(self, *x: FloatArray) -> FloatArray:
        x1, x2, x3 = x
        return np.sin(2 * np.pi * x1) * ((x1 < 0) - 2.0 * (x3 < 0)) + x1 * x2 + x2

    def _derivatives(self, *x: FloatArray) -> tuple[ArrayLike, ...]:
        x1, x2, x3 = x
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

    def _output(self, *x: FloatArray) -> FloatArray:
        x1, x2, x3 = x
        total = x1 + x2
        ridge = np.where(total <= 0.5, total, np.where(total < 1, 1 - total, 0.0))
        return self.alpha * x1 * x3 + ridge

    def _derivatives(self, *x: FloatArray) -> tuple[ArrayLike, ...]:
        x1, x2, x3 = x
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
        Standard deviation of x2 given x1 (the authors' code has 0.5).
    slopes, breaks : tuple of float
        Slopes, and the values of x1 between them.
    high : float, default 1
        x1 lies on [0, high].
    follow : float, default 1
        The mean of x2 given x1 is ``follow * x1``; 0 makes them independent.
    dense_until, dense_share : float, default 1
        This share of the rows is uniform below ``dense_until``, the rest above it.

    Notes
    -----
    For x1: mu(z) = a(z) + follow z, with a the slopes, and sigma = sd. The paper's text forgets
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
        """Pieces on [0, 100] with an independent x2 of standard deviation 4 (math [52]).

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
        """Closed on the left, as bins are."""
        piece = np.searchsorted(self.breaks, x1, side="right")
        return np.array(self.slopes, dtype=np.float64)[piece]

    def _output(self, *x: FloatArray) -> FloatArray:
        x1, x2 = x
        starts = np.array([0.0, *self.breaks])
        level = np.concatenate([[0.0], np.cumsum(self.slopes[:-1] * np.diff(starts))])
        piece = np.searchsorted(self.breaks, x1, side="right")
        return np.asarray(level[piece] + self._slope(x1) * (x1 - starts[piece]) + x1 * x2)

    def _derivatives(self, *x: FloatArray) -> tuple[ArrayLike, ...]:
        x1, x2 = x
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

    def _output(self, *x: FloatArray) -> FloatArray:
        x1, x2 = x
        return 4 * x1**2 + x2**2 + x1 * x2

    def _derivatives(self, *x: FloatArray) -> tuple[ArrayLike, ...]:
        x1, x2 = x
        return 8 * x1 + x2, 2 * x2 + x1

    def _draw(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, ...]:
        x1 = rng.uniform(size=n)
        return x1, x1 + self.sd * rng.normal(size=n)

    def _marginals(self) -> dict[str, Marginal]:
        return {"x1": _uniform(0, 1, lambda z: 9 * z, _constant(self.sd**2))}


@dataclass(frozen=True)
class TwoRegimes(Simulator):
    """y = 3 x1 1{x3 > 0} - 3 x1 1{x3 <= 0} + x3 (math [53], RegionalRHALE, section 3.2).

    Parameters
    ----------
    correlated : bool, default False
        Whether x3 is x1 itself, which leaves no heterogeneity; else x1, x2, x3 are independent
        and uniform on (-1, 1). The output does not depend on x2.
    """

    correlated: bool = False
    columns: ClassVar[tuple[str, ...]] = ("x1", "x2", "x3")

    def _output(self, *x: FloatArray) -> FloatArray:
        x1, _, x3 = x
        return np.where(x3 > 0, 3 * x1, -3 * x1) + x3

    def _derivatives(self, *x: FloatArray) -> tuple[ArrayLike, ...]:
        return np.where(x[2] > 0, 3.0, -3.0), 0.0, 1.0

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
    """y = x1 x2 with x2 around x1, the vendor's example (math [54]).

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

    def _output(self, *x: FloatArray) -> FloatArray:
        return x[0] * x[1]

    def _derivatives(self, *x: FloatArray) -> tuple[ArrayLike, ...]:
        return x[1], x[0]

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


def _truth(
    marginal: Marginal,
    edges: FloatArray,
    linear: NDArray[np.bool_] | None,
    known: FloatArray,
    centering: str,
) -> dict[str, FloatArray | float]:
    """Truth of one feature; ``known`` are places at which the estimate has a curve."""
    if not len(edges):
        return dict.fromkeys((*TRUE_VALUES, *(() if linear is None else ("slope",))), np.nan)
    effect, variance, bin_error, slope = _bin_truths(marginal, edges, linear)
    curve = np.concatenate([[0.0], np.cumsum(effect * np.diff(edges))])
    start, end = float(known[0]), float(known[-1])
    to_start = (
        _bin_truths(marginal, np.array([edges[0], start]), None)[0] if start > edges[0] else 0.0
    )
    level = float(np.sum(to_start * (start - edges[0])))
    level += _mean_of_curve(marginal, start, end, centering)
    cells = _cell_edges(edges)
    narrow = _Pieces(cells, marginal.breaks, CELL_NODES, CELL_WEIGHTS)
    width = np.diff(cells)
    return {
        "effect": effect,
        "heterogeneity": np.sqrt(variance),
        "bin_error": bin_error,
        **({} if linear is None else {"slope": slope}),
        "curve": curve - level,
        "cell_effect": narrow.integral(marginal.mean(narrow.nodes)) / width,
        "cell_heterogeneity": np.sqrt(narrow.integral(marginal.variance(narrow.nodes)) / width),
        "cell_value": cells,
    }


def _cell_edges(edges: FloatArray) -> FloatArray:
    """Edges of equal cells, narrow enough to stand for points."""
    return np.linspace(edges[0], edges[-1], CELLS + 1)


def _mean_of_curve(marginal: Marginal, start: float, end: float, centering: str) -> float:
    """Mean of the integral of mu from ``start``, over what the centring averages.

    By parts: mu counts as often as there is something on its right.
    """
    if centering == "start":
        return 0.0
    cdf = marginal.cdf if centering == "mean" else lambda z: (z - start) / (end - start)
    share = cdf(np.array([start, end]))
    pieces = _Pieces(np.array([start, end]), marginal.breaks)

    def to_the_right(z: FloatArray) -> FloatArray:
        return np.asarray(marginal.mean(z) * (share[1] - cdf(z)))

    return float(pieces.integral(to_the_right(pieces.nodes))[0] / (share[1] - share[0]))


def _bin_truths(
    marginal: Marginal, edges: FloatArray, linear: NDArray[np.bool_] | None
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """math [12]: mu(a, b), sigma^2(a, b) and the bin error of every bin; slope of linear ones."""
    pieces, width = _Pieces(edges, marginal.breaks), np.diff(edges)
    values = marginal.mean(pieces.nodes)
    mean = pieces.integral(values) / width
    variance = pieces.integral(marginal.variance(pieces.nodes)) / width
    rho = values - np.repeat(mean, pieces.per_bin)[:, None]
    slope = np.zeros(len(width))
    if linear is not None and linear.any():
        middle = (edges[:-1] + edges[1:]) / 2
        away = pieces.nodes - np.repeat(middle, pieces.per_bin)[:, None]
        slope = np.where(linear, 12 * pieces.integral(rho * away) / width**3, 0.0)
        rho = rho - np.repeat(slope, pieces.per_bin)[:, None] * away
    return mean, variance, pieces.integral(rho**2) / width, slope


class _Pieces:
    """Gauss-Legendre nodes on the pieces that breaks make of bins, and integrals over bins."""

    def __init__(
        self,
        edges: FloatArray,
        breaks: FloatArray,
        nodes: FloatArray = NODES,
        weights: FloatArray = NODE_WEIGHTS,
    ) -> None:
        inside = breaks[(breaks > edges[0]) & (breaks < edges[-1])]
        ends = np.union1d(edges, inside)
        self.starts = np.searchsorted(ends, edges[:-1])
        self.per_bin = np.diff(np.append(self.starts, len(ends) - 1))
        self.half = np.diff(ends)[:, None] / 2
        self.nodes = ends[:-1, None] + self.half * (1 + nodes)
        self.weights = weights

    def integral(self, values: FloatArray) -> FloatArray:
        """Integral over every bin of a function with these values at the nodes."""
        pieces = np.sum(self.half * self.weights * values, axis=1)
        return np.add.reduceat(pieces, self.starts)


@checked
def dense_truth(
    model: Model,
    jacobian: Any,
    X: Any,
    n_bins: int = 1000,
    *,
    features: str | int | Sequence[str | int] | None = None,
    centering: str = "mean",
) -> xr.Dataset:
    r"""A truth for any model: effects of very many rows in very many bins of one width.

    Parameters
    ----------
    model : callable, object with ``predict``, or statsmodels results
        As in `local_effects`; may be None where ``jacobian`` is given.
    jacobian : callable, array_like of shape (n_rows, n_columns), or None
        As in `local_effects`; None takes central differences.
    X : DataFrame or array_like of shape (n_rows, n_columns)
        Rows, a million or so.
    n_bins : int, default 1000
        Number of bins: the narrower, the less bin error, and the more noise in each.
    features : name, number, or sequence of them, optional
        As in `local_effects`.
    centering : {"mean", "start", "integral"}, default "mean"
        As in `rhale`; `mae` centres the truth as the effect, whatever this is.

    Returns
    -------
    Dataset
        As `rhale` returns it with `EqualWidthBins`, without the moments of standard errors, and
        with ``effect_se`` (math [24]), the noise that is left in it. `mae` takes it as a truth.

    Raises
    ------
    ValueError
        As `local_effects` and `rhale`.

    References
    ----------
    Gkolemis et al. (2023), *RHALE*, section 4.2: 10^6 rows and 1000 bins.

    Examples
    --------
    >>> import rhale_stats as rs
    >>> example = rs.simulate.Quadratic(sd=0.5)
    >>> X = example.sample(100_000, rng=0)
    >>> truth = rs.dense_truth(example.model, example.jacobian, X, 100, features="x1")
    >>> truth["heterogeneity"].mean().round(2).item()
    0.5
    """
    local = local_effects(model, X, jacobian=jacobian, features=features)
    truth = rhale(
        local,
        bins=EqualWidthBins(n_bins),
        centering=centering,
        weighting="rows",
        std_error_moments=False,
    )
    noise = truth["heterogeneity"] / np.sqrt(truth["n_effective"].where(truth["n_obs"] > 0))
    _, values, facts = variable(
        "effect_se", noise.values, source="rows", kind="central limit theorem"
    )
    # The dimensions of several outputs too.
    truth["effect_se"] = noise.dims, values, facts
    truth.attrs["method"] = "dense truth"
    return truth
