"""Processes with a known regression function, and the models that are fitted to them.

Features are independent and uniform on (-1, 1). Targets are those of ``x1`` in fixed bins: the
regression function of the process, or, where the model is misspecified, its best approximation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
import statsmodels.formula.api as smf
from scipy.special import expit
from statsmodels.genmod import families

from rhale_stats.arrays.moments import FloatArray
from rhale_stats.bins.rules import GivenBins

EDGES = np.linspace(-1, 1, 6)
RULE = GivenBins(EDGES)
N_BINS = len(EDGES) - 1
# A target in every bin, or at every edge.
PLACES = (
    *(f"effect {k + 1}" for k in range(N_BINS)),
    *(f"curve {k + 1}" for k in range(N_BINS + 1)),
    *(f"heterogeneity {k + 1}" for k in range(N_BINS)),
)
EFFECT, CURVE, SPREAD = slice(0, N_BINS), slice(N_BINS, 2 * N_BINS + 1), slice(2 * N_BINS + 1, None)
# Nodes of a quadrature in every bin, and along the other feature.
NODES, WEIGHTS = np.polynomial.legendre.leggauss(30)
# Dispersion of the negative binomial outcomes; spread of the groups beside noise of 1.
DISPERSION, OF_GROUPS = 1.0, 0.7

Function: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True)
class Process:
    """A table (x1, x2, y), the model that is fitted to it, and the derivative that it estimates.

    ``slope`` is the derivative of the target with respect to x1. ``outcome`` draws y. ``robust`` is
    the covariance of the parameters; with "cluster" rows come in groups, which share x2.
    """

    formula: str
    slope: Function
    outcome: Callable[[FloatArray, FloatArray, np.random.Generator], FloatArray]
    family: Any = None
    robust: str = "nonrobust"

    def draw(self, n: int, rng: np.random.Generator) -> pd.DataFrame:
        """Rows; with groups a column ``group``, of 40 groups, or 100 of 2,000 rows."""
        x1 = rng.uniform(-1, 1, n)
        if self.robust != "cluster":
            x2 = rng.uniform(-1, 1, n)
            return pd.DataFrame({"x1": x1, "x2": x2, "y": self.outcome(x1, x2, rng)})
        n_groups = 40 if n < 1000 else 100
        group = np.arange(n) % n_groups
        x2 = rng.uniform(-1, 1, n_groups)[group]
        y = self.outcome(x1, x2, rng) + OF_GROUPS * rng.normal(size=n_groups)[group]
        return pd.DataFrame({"x1": x1, "x2": x2, "y": y, "group": group})

    def fit(self, table: pd.DataFrame) -> Any:
        """Results of statsmodels."""
        given: dict[str, Any] = {"cov_type": self.robust}
        if self.robust == "cluster":
            given["cov_kwds"] = {"groups": table["group"].to_numpy()}
        if self.family is None:
            return smf.ols(self.formula, table).fit(**given)
        return smf.glm(self.formula, table, family=self.family).fit(**given)


def targets(slope: Function) -> FloatArray:
    """Effects, curve and heterogeneity of x1, in the order of `PLACES`, by quadrature."""
    centre, half = (EDGES[1:] + EDGES[:-1]) / 2, np.diff(EDGES) / 2
    z = centre[:, None] + half[:, None] * NODES
    g = slope(z[..., None], NODES)
    mean = g @ WEIGHTS / 2
    effect = mean @ WEIGHTS / 2
    squares = ((g - effect[:, None, None]) ** 2) @ WEIGHTS / 2 @ WEIGHTS / 2
    start = np.concatenate([[0.0], np.cumsum(effect * 2 * half)])
    # The curve of all z, for its mean over the population: integrals from the left edge of the bin.
    share = np.array([_up_to(mean_of_bin) for mean_of_bin in mean])
    inside = start[:-1] + half * (share @ WEIGHTS / 2)
    curve = start - np.average(inside, weights=half)
    return np.concatenate([effect, curve, np.sqrt(squares)])


def _up_to(values: FloatArray) -> FloatArray:
    """Integrals from -1 to each node, of values at the nodes."""
    legendre = np.polynomial.legendre.Legendre.fit(NODES, values, len(NODES) - 1, domain=[-1, 1])
    integral = legendre.integ(lbnd=-1)
    return np.asarray(integral(NODES))


def _mean_of(link: Callable[[FloatArray], FloatArray], c: tuple[float, ...]) -> Function:
    """The mean response, by the coefficients of 1, x1, x2 and their product."""
    return lambda x1, x2: link(c[0] + c[1] * x1 + c[2] * x2 + c[3] * x1 * x2)


LOGIT, LOG = (0.3, 1.0, 0.5, 1.2), (0.5, 0.6, 0.4, 0.5)


def _logit_slope(x1: FloatArray, x2: FloatArray) -> FloatArray:
    p = _mean_of(expit, LOGIT)(x1, x2)
    return np.asarray(p * (1 - p) * (LOGIT[1] + LOGIT[3] * x2))


def _log_slope(x1: FloatArray, x2: FloatArray) -> FloatArray:
    return np.asarray(_mean_of(np.exp, LOG)(x1, x2) * (LOG[1] + LOG[3] * x2))


def _counts(x1: FloatArray, x2: FloatArray, rng: np.random.Generator) -> FloatArray:
    return rng.poisson(_mean_of(np.exp, LOG)(x1, x2)).astype(np.float64)


def _overdispersed(x1: FloatArray, x2: FloatArray, rng: np.random.Generator) -> FloatArray:
    shape = 1 / DISPERSION
    mean = _mean_of(np.exp, LOG)(x1, x2) * rng.gamma(shape, 1 / shape, len(x1))
    return rng.poisson(mean).astype(np.float64)


def _binary(x1: FloatArray, x2: FloatArray, rng: np.random.Generator) -> FloatArray:
    return (rng.uniform(size=len(x1)) < _mean_of(expit, LOGIT)(x1, x2)).astype(np.float64)


def bent(x1: FloatArray, x2: FloatArray) -> FloatArray:
    """A regression function that is not of the form of the model fitted to it."""
    return np.asarray(np.exp(1.2 * x1) * (1 + x2))


def _projection() -> FloatArray:
    """Coefficients of 1, x1, x2, x1 x2 in the best linear approximation of `bent`."""
    x1, x2 = np.meshgrid(NODES, NODES, indexing="ij")
    weights = np.outer(WEIGHTS, WEIGHTS).ravel() / 4
    columns = np.column_stack([np.ones(x1.size), x1.ravel(), x2.ravel(), (x1 * x2).ravel()])
    # Orthogonal under independent uniform features.
    squares = weights @ columns**2
    return np.asarray((columns * weights[:, None]).T @ bent(x1, x2).ravel() / squares)


def _bent_outcome(x1: FloatArray, x2: FloatArray, rng: np.random.Generator) -> FloatArray:
    return np.asarray(bent(x1, x2) + (0.3 + np.abs(x1)) * rng.normal(size=len(x1)))


def _bent_slope(x1: FloatArray, x2: FloatArray) -> FloatArray:
    best = _projection()
    return np.asarray(best[1] + best[3] * x2 + 0 * x1)


def polynomial(x1: FloatArray, x2: FloatArray) -> FloatArray:
    """The regression function of least squares with polynomial terms."""
    return np.asarray(x1 + x1**2 + x2 / 2 + x1 * x2)


def _polynomial_slope(x1: FloatArray, x2: FloatArray) -> FloatArray:
    return np.asarray(1 + 2 * x1 + x2)


def _polynomial_outcome(x1: FloatArray, x2: FloatArray, rng: np.random.Generator) -> FloatArray:
    return np.asarray(polynomial(x1, x2) + rng.normal(size=len(x1)))


_POLYNOMIAL, _CROSSED = "y ~ x1 + I(x1 ** 2) + x2 + x1:x2", "y ~ x1 * x2"
PROCESSES: dict[str, Process] = {
    "least squares": Process(_POLYNOMIAL, _polynomial_slope, _polynomial_outcome),
    "logit": Process(_CROSSED, _logit_slope, _binary, families.Binomial()),
    "Poisson": Process(_CROSSED, _log_slope, _counts, families.Poisson()),
    "Poisson, overdispersed": Process(
        _CROSSED, _log_slope, _overdispersed, families.Poisson(), "HC0"
    ),
    "misspecified": Process(_CROSSED, _bent_slope, _bent_outcome, robust="HC1"),
    "clustered": Process(_POLYNOMIAL, _polynomial_slope, _polynomial_outcome, robust="cluster"),
}
PROCESS_WORDS = {
    "least squares": "OLS with x1² and x1 x2, well specified",
    "logit": "logit with interaction",
    "Poisson": "Poisson with interaction",
    "Poisson, overdispersed": "Poisson with interaction, HC0, of negative binomial counts",
    "misspecified": "OLS, HC1, of exp(1.2 x1)(1 + x2) with unequal variances; best approximation",
    "clustered": "OLS with x1² and x1 x2, clusters that share x2 and a part of the noise",
}


class Rows(NamedTuple):
    """Features and outcome of models that are no formulas."""

    X: FloatArray
    y: FloatArray

    @classmethod
    def of(cls, table: FloatArray) -> Rows:
        """From one table, the outcome last."""
        return cls(table[:, :-1], table[:, -1])


def wave(X: FloatArray) -> FloatArray:
    """The regression function that trees and networks learn; the third column is noise."""
    return np.asarray(np.sin(2 * X[:, 0]) + X[:, 0] * X[:, 1])


def wave_slope(x1: FloatArray, x2: FloatArray) -> FloatArray:
    """Its derivative with respect to x1."""
    return np.asarray(2 * np.cos(2 * x1) + x2)


def draw_wave(n: int, rng: np.random.Generator) -> FloatArray:
    """Three features and an outcome, with noise of variance 1."""
    X = rng.uniform(-1, 1, (n, 3))
    return np.column_stack([X, wave(X) + rng.normal(size=n)])


def draw_polynomial(n: int, rng: np.random.Generator) -> FloatArray:
    """The process of least squares, with a third column of noise."""
    X = rng.uniform(-1, 1, (n, 3))
    return np.column_stack([X, polynomial(X[:, 0], X[:, 1]) + rng.normal(size=n)])


def _boosted() -> Any:
    from sklearn.ensemble import GradientBoostingRegressor

    return GradientBoostingRegressor(n_estimators=50, max_depth=2, random_state=0)


def _forest() -> Any:
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(n_estimators=30, min_samples_leaf=5, random_state=0)


def _deep_forest() -> Any:
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(n_estimators=30, max_features=1.0, random_state=0)


def _network() -> Any:
    return _of_units(8, 1.0, 200)


def _large_network() -> Any:
    return _of_units(40, 0.0, 400)


def _of_units(units: int, penalty: float, iterations: int) -> Any:
    from sklearn.neural_network import MLPRegressor

    return MLPRegressor(
        hidden_layer_sizes=(units,),
        activation="tanh",
        solver="lbfgs",
        alpha=penalty,
        max_iter=iterations,
        random_state=0,
    )


def _terms() -> Any:
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures

    return make_pipeline(PolynomialFeatures(2, include_bias=False), LinearRegression())


# Learners of the intervals, and those of the decomposition; the first of each is well behaved.
LEARNERS: dict[str, Callable[[], Any]] = {
    "boosted trees": _boosted,
    "random forest": _forest,
    "network": _network,
}
DECOMPOSED: dict[str, Callable[[], Any]] = {
    "least squares": _terms,
    "boosted trees": _boosted,
    "overfitting forest": _deep_forest,
    "overfitting network": _large_network,
}
JUMPS = ("boosted trees", "random forest", "overfitting forest")


def learned(make: Callable[[], Any], table: FloatArray) -> Any:
    """A model fitted to a table; a network that has not converged is taken as it is."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning

    rows = Rows.of(table)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return make().fit(rows.X, rows.y)
