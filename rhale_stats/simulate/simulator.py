"""The parts of a simulator: a model, a distribution of rows, and true effects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from rhale_stats.arguments.checks import check_count
from rhale_stats.arguments.seeds import source_of
from rhale_stats.bins.rules import EqualWidthBins
from rhale_stats.effects.rhale import rhale
from rhale_stats.local.local_effects import local_effects
from rhale_stats.models.outputs import Model
from rhale_stats.schema.checks import check_effect
from rhale_stats.schema.feature_result import FeatureResult, one_feature
from rhale_stats.schema.features import feature_names
from rhale_stats.schema.kinds import EFFECT
from rhale_stats.schema.padding import pad_features
from rhale_stats.schema.validation import validated
from rhale_stats.schema.variables import software, variable

FloatArray: TypeAlias = NDArray[np.float64]
Function: TypeAlias = Callable[[FloatArray], FloatArray]
# Number of Gauss-Legendre nodes on every smooth piece: exact for polynomials of degree 63.
NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(32)
# The same on pieces of a narrow cell: exact for degree 7.
CELL_NODES, CELL_WEIGHTS = np.polynomial.legendre.leggauss(4)
# Where a normal distribution function turns, in standard deviations from its middle; beyond the
# last it is 0 or 1 in double precision.
TURNS = np.array([-9.0, -6.0, -4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 9.0])
TRUE_VALUES = (
    *("effect", "heterogeneity", "bin_error", "curve"),
    *("cell_effect", "cell_heterogeneity", "cell_value"),
)
# Cells of a truth along the axis.
CELLS = 2000


@dataclass(frozen=True)
class Marginal:
    """The truth of one feature: its distribution, and its local effects given its value.

    ``mean`` and ``variance`` are mu(z) and sigma^2(z), the moments of the local effects at a value
    of the feature; ``cdf`` is the feature's distribution function. Between neighbouring
    ``breaks``, among them the ends of the distribution, all of them are smooth.
    """

    mean: Function
    variance: Function
    cdf: Function
    breaks: FloatArray


def truth_of(marginal: Marginal, row: FeatureResult) -> dict[str, FloatArray | float]:
    """Truth of one feature: on the bins of its effect, and its curve at the edges of the cells."""
    edges = row.bin_edges
    linear = row.slopes != 0 if "slope" in row else None
    if not len(edges):
        return dict.fromkeys((*TRUE_VALUES, *(() if linear is None else ("slope",))), np.nan)
    effect, variance, bin_error, slope = _bin_truths(marginal, edges, linear)
    steps = _bin_truths(marginal, row.edges, None)[0] * np.diff(row.edges)
    curve = np.concatenate([[0.0], np.cumsum(steps)])
    # Between the points at which the estimate has a curve.
    start, *_, end = map(float, row.curve.edges[np.isfinite(row.curve.values)])
    level = _mean_of_curve(marginal, start, end, str(row.attrs["centering"]))
    if start > edges[0]:
        to_start, *_ = _bin_truths(marginal, np.array([edges[0], start]), None)
        level += float(to_start[0] * (start - edges[0]))
    # So narrow that they represent points.
    cells = np.linspace(edges[0], edges[-1], CELLS + 1)
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


def _mean_of_curve(marginal: Marginal, start: float, end: float, centering: str) -> float:
    """Mean of the integral of mu from ``start``, over what the centring averages.

    Integration by parts: mu(z) is weighted by the share of what lies to the right of z.
    """
    if centering in ("start", repr(start)):
        return 0.0
    if centering not in ("mean", "integral"):
        along = _Pieces(np.array([start, float(centering)]), marginal.breaks)
        return float(along.integral(marginal.mean(along.nodes))[0])
    cdf = marginal.cdf if centering == "mean" else lambda z: (z - start) / (end - start)
    share = cdf(np.array([start, end]))
    pieces = _Pieces(np.array([start, end]), marginal.breaks)
    values = marginal.mean(pieces.nodes) * (share[1] - cdf(pieces.nodes))
    return float(pieces.integral(values)[0] / (share[1] - share[0]))


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


@validated
def dense_truth(
    model: Model,
    jacobian: Any,
    X: Any,
    n_bins: int = 1000,
    *,
    features: str | int | Sequence[str | int] | None = None,
    centering: str = "mean",
) -> xr.Dataset:
    r"""An approximate truth for any model: effects of very many rows in very many equal bins.

    Parameters
    ----------
    model : callable, object with ``predict``, or statsmodels results
        As in `local_effects`; may be None if ``jacobian`` is given.
    jacobian : callable, array_like of shape (n_rows, n_columns), or None
        As in `local_effects`; None takes central differences.
    X : table, or array_like of shape (n_rows, n_columns)
        Rows: very many, such as a million.
    n_bins : int, default 1000
        Number of bins. Narrower bins have less bin error, and more noise in each estimate.
    features : name, number, or sequence of them, optional
        As in `local_effects`.
    centering : {"mean", "start", "integral"}, default "mean"
        As in `rhale`. `mae` uses the centring of the effect for both, whatever this is.

    Returns
    -------
    Dataset
        Effects as `rhale` returns them with `EqualWidthBins`, without the moments for standard
        errors, and with ``effect_se`` (math [24]), the remaining Monte-Carlo error. `mae` accepts
        it as a truth.

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
    >>> truth = rs.simulate.dense_truth(example.model, example.jacobian, X, 100, features="x1")
    >>> truth["heterogeneity"].mean().round(2).item()
    0.5
    """
    local = local_effects(model, X, jacobian=jacobian, features=features)
    truth = rhale(local, bins=EqualWidthBins(n_bins), centering=centering, weighting="rows")
    noise = truth["heterogeneity"] / np.sqrt(truth["n_obs"].where(truth["n_obs"] > 0))
    dims, by_rows = tuple(map(str, noise.dims)), {"source": "rows", "kind": "central limit theorem"}
    truth["effect_se"] = variable("effect_se", noise.values, EFFECT, dims, **by_rows)
    truth.attrs["method"] = "dense truth"
    return truth


class Simulator:
    """A model and the distribution of its features; the examples are its subclasses.

    For a process of your own, write a subclass with the names of the columns and four methods. They
    get one array for each column:

    - ``_output(*x)``: the output of the model;
    - ``_derivatives(*x)``: its derivatives by every column, needed by ``jacobian`` alone;
    - ``_draw(n, rng)``: n values of every column;
    - ``_marginals()``: a `Marginal` for every feature whose truth is known, needed by ``truth``
      alone.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> class Growth(rs.simulate.Simulator):
    ...     columns = ("t", "u")
    ...
    ...     def _output(self, t, u):
    ...         return t**2 * (1 + u)
    ...
    ...     def _derivatives(self, t, u):
    ...         return 2 * t * (1 + u), t**2
    ...
    ...     def _draw(self, n, rng):
    ...         return rng.uniform(size=n), rng.normal(size=n)
    ...
    ...     def _marginals(self):
    ...         # Of dY/dt = 2 t (1 + u) at a value of t: mean, variance; distribution of t; ends.
    ...         mean, variance = lambda t: 2 * t, lambda t: (2 * t) ** 2
    ...         cdf, ends = lambda t: np.clip(t, 0, 1), np.array([0.0, 1.0])
    ...         return {"t": rs.simulate.Marginal(mean, variance, cdf, ends)}
    >>> growth = Growth()
    >>> X = growth.sample(500, rng=0)
    >>> local = rs.local_effects(growth.model, X, features="t")
    >>> effect = rs.rhale(local, bins=rs.GivenBins([0, 0.5, 1]))
    >>> growth.truth(effect)["effect"].values.round(3)
    array([[0.5, 1.5]])
    """

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
            Source of random numbers, or its seed. None gives new numbers in every call; the
            attribute ``seed`` of the table, given as ``rng``, reproduces them (-1 with a
            Generator).

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
        """Exact effects, heterogeneity, bin errors and curves on the bins of ``effect``.

        Parameters
        ----------
        effect : Dataset
            Result of `rhale` for rows of this simulator.

        Returns
        -------
        Dataset
            Over (feature, bin): ``effect`` mu(a, b), ``heterogeneity`` sigma(a, b) and
            ``bin_error`` of math [12], that is, averages along the axis. If the rule makes linear
            bins there is also ``slope``, and the bin error of a linear bin is the distance from the
            best line. Over (feature, edge): ``curve``, with the centring of ``effect`` (first edge,
            mean over the population, or mean over the axis), on the stretch where the curve of
            ``effect`` is known. Over (feature, cell), for 2000 equal cells along the axis:
            ``cell_effect`` and ``cell_heterogeneity``, which `mae` needs. ``cell_value`` (feature,
            cell_edge) are the edges of these cells. Coordinates are those of ``effect``.

        Raises
        ------
        KeyError
            A feature whose truth has no closed form. The message lists the features that have one.

        Notes
        -----
        ``heterogeneity`` of the truth is not what ``heterogeneity`` of `rhale` estimates in a wide
        bin of constant effect: the estimate contains the bin error (math [12]) and weighs by rows,
        the truth does neither. Compare it in narrow bins, or with ``heterogeneity_within`` of
        `check_unbiased` where rows are spread evenly.
        """
        effect = check_effect(effect)
        marginals = self._marginals()
        rows = []
        for name in feature_names(effect):
            if name not in marginals:
                raise KeyError(
                    f"effect must hold features whose truth is known, for {type(self).__name__} "
                    f"{', '.join(map(repr, marginals))}; got {name!r}. Select them: "
                    f"effect.sel(feature=[...])."
                )
            rows.append(truth_of(marginals[name], one_feature(effect, name)))
        arrays = pad_features(rows, effect.sizes, cell=CELLS, cell_edge=CELLS + 1)
        variables: dict[str, Any] = {name: variable(name, array) for name, array in arrays.items()}
        cell_value = variables.pop("cell_value")
        others = ["moment", "square_moment", "weight_product"]
        return xr.Dataset(
            {**variables, "n_bins": effect["n_bins"].variable},
            {**effect.drop_dims(others, errors="ignore").coords, "cell_value": cell_value},
            {
                "method": "truth",
                "simulator": repr(self),
                "centering": effect.attrs["centering"],
                "software": software(),
            },
        )

    def _output(self, *args: Any, **kwargs: Any) -> FloatArray:
        raise NotImplementedError(_missing(self, "_output"))

    def _derivatives(self, *args: Any, **kwargs: Any) -> tuple[ArrayLike, ...]:
        raise NotImplementedError(_missing(self, "_derivatives"))

    def _draw(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, ...]:
        raise NotImplementedError(_missing(self, "_draw"))

    def _marginals(self) -> dict[str, Marginal]:
        """Features whose truth is known in closed form."""
        raise NotImplementedError(_missing(self, "_marginals"))


def _missing(simulator: Simulator, method: str) -> str:
    """Which method a subclass lacks."""
    return (
        f"{type(simulator).__name__} must define the method {method}; it has none. See "
        f"help(rhale_stats.simulate.Simulator)."
    )
