"""What directions of a model's parameters do to the estimates of one feature (math [80]).

Every estimate is a function of the local effects, and these of the parameters. `RowSums` holds
what a direction of the parameters does to the means and slopes of bins, in place of what a group of
rows does; all estimates follow from it as they do for groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rhale_stats.arrays import accumulate, categories, influence
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.influence import RowSums
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.effects.clusters import Clusters, effect_influences, level_sums
from rhale_stats.effects.spread import weights_of_rows
from rhale_stats.local.parameters import Derivatives
from rhale_stats.local.rows import is_used_row, row_numbers
from rhale_stats.schema.curves import CurveErrors
from rhale_stats.schema.feature_result import FeatureResult


class Weights(NamedTuple):
    """Weight of every row in means, slopes and variances, sparse (bin, row); and in the average."""

    mean: sparse.csr_array
    slope: sparse.csr_array
    variance: sparse.csr_array
    average: FloatArray

    @classmethod
    def of_rows(
        cls,
        pieces: accumulate.Pieces,
        x: FloatArray,
        g: FloatArray,
        weight: FloatArray | None,
        n_effective: FloatArray,
    ) -> Weights:
        """Weights of rows in bins along an axis: estimates are linear in local effects."""
        k, n_bins = bin_index(pieces.edges, x), len(pieces.mean)
        w = np.ones(len(x)) if weight is None else weight
        d = x - pieces.x_mean[k]
        r = g - pieces.mean[k] - pieces.slope[k] * d
        share = w / np.bincount(k, w, n_bins)[k]
        linear = pieces.slope != 0
        tilt = np.where(linear, 1 / np.where(linear, pieces.x_variance, 1.0), 0.0)[k]
        square = _square_weights(share * r, k, n_effective, 1 + linear)
        return cls.placed((share, share * d * tilt, square), k, n_bins, w)

    @classmethod
    def of_steps(
        cls,
        steps: categories.Steps,
        mean: FloatArray,
        weight: FloatArray | None,
        n_effective: FloatArray,
    ) -> Weights:
        """Weights of the pairs of a row and a step between levels, which take the place of rows."""
        k, n_bins = steps.step, len(mean)
        w = np.ones(len(k)) if weight is None else weight[steps.row]
        share = w / np.bincount(k, w, n_bins)[k]
        square = _square_weights(share * (steps.difference - mean[k]), k, n_effective, 1)
        return cls.placed((share, np.zeros(len(k)), square), k, n_bins, w)

    @classmethod
    def placed(
        cls, of_rows: tuple[FloatArray, ...], k: IntArray, n_bins: int, w: FloatArray
    ) -> Weights:
        """Values of rows in the places of their bins."""
        index, shape = (k, np.arange(len(k))), (n_bins, len(k))
        mean, slope, variance = [
            sparse.csr_array(sparse.coo_array((values, index), shape)) for values in of_rows
        ]
        return cls(mean, slope, variance, w / w.sum())

    def applied(self, rows: slice, change: FloatArray) -> list[FloatArray]:
        """What a change of the local effects of some rows does, by direction first."""
        parts = [_changes(part, rows, change) for part in (self.mean, self.slope, self.variance)]
        return [*parts, self.average[rows] @ change]


def _square_weights(
    residual: FloatArray, k: IntArray, n_effective: FloatArray, n_parameters: Any
) -> FloatArray:
    """Weights of changes in variances over the degrees of freedom; 0 in a bin that has none."""
    with np.errstate(invalid="ignore", divide="ignore"):
        remainder = (1 - n_parameters / n_effective)[k]
        return np.where(remainder > 0, 2 * residual / remainder, 0.0)


class Influences(NamedTuple):
    """What directions, or groups of rows, do to one feature: to its cells, bins, and spread.

    ``spread`` is (direction, spread_bin), empty where the spread has no bins of its own.
    """

    cells: RowSums
    bins: RowSums
    spread: FloatArray

    def contracted(self, factor: FloatArray) -> Influences:
        """Sums over rows of their influences times ``factor`` (row, direction)."""
        return Influences(
            _contracted(self.cells, factor), _contracted(self.bins, factor), factor.T @ self.spread
        )


def direction_influences(
    row: FeatureResult, fit: CurveErrors, clusters: Clusters, derivatives: Derivatives
) -> Influences:
    """What every direction of the parameters does."""
    name = row.name
    numbers = np.flatnonzero(is_used_row(clusters.local, row))
    if row.is_categorical:
        sums = _level_influences(row, clusters, derivatives.steps(name, numbers))
        return Influences(sums, sums, np.zeros((len(sums.average), 0)))
    columns = (*clusters.columns(row), clusters.rows.weight)
    weights = (
        Weights.of_rows(fit.cells.pieces, *columns, fit.cells.n_effective),
        Weights.of_rows(row.pieces, *columns, row["n_effective"].values),
    )
    of_spread = _spread_weights(row, clusters)
    totals: list[list[FloatArray]] = []
    begin = 0
    for part, change in derivatives.slopes(name, numbers):
        block = slice(begin, begin + len(part))
        both = [values for kind in weights for values in kind.applied(block, change)]
        totals.append([*both, _changes(of_spread, block, change)])
        begin += len(part)
    summed = [np.sum(parts, axis=0) for parts in zip(*totals, strict=True)]
    return Influences(_row_sums(summed[:4]), _row_sums(summed[4:8]), summed[8])


def group_influences(row: FeatureResult, fit: CurveErrors, clusters: Clusters) -> Influences:
    """Influences of the groups of rows."""
    spread = np.zeros((clusters.n_groups, 0))
    if row.sizes.get("spread_bin"):
        spread = clusters.spread_sums(row).influences(row["spread"].values)
        if clusters.design is not None:
            spread = clusters.design.units_of_clusters(spread)
    numbers = row_numbers(clusters.local)[is_used_row(clusters.local, row)]
    if clusters.design is None and clusters.n_groups == len(np.unique(numbers)):
        return Influences(*row_influences(row, fit, clusters), spread)
    of_bins = clusters.bin_influences(row)
    cells = of_bins if row.is_categorical else clusters.influences(row, fit.cells)
    return Influences(cells.sums, of_bins.sums, spread)


def row_influences(
    row: FeatureResult, fit: CurveErrors, clusters: Clusters
) -> tuple[RowSums, RowSums]:
    """Influences of rows, summed in groups, without corrections for their shares."""
    group, n_groups = clusters.group, clusters.n_groups
    if row.is_categorical:
        steps = level_sums(row, clusters.rows, clusters.position(row), group, n_groups)
        return steps, steps
    (x, g), weight, curve = clusters.columns(row), clusters.rows.weight, row.curve

    def sums(pieces: accumulate.Pieces) -> RowSums:
        k, at_edges = bin_index(pieces.edges, x), curve.evaluate(pieces.edges)
        return influence.row_sums(pieces, at_edges, k, x, g, weight, group, n_groups)

    return sums(fit.cells.pieces), sums(row.pieces)


def _spread_weights(row: FeatureResult, clusters: Clusters) -> sparse.csr_array:
    if row.sizes.get("spread_bin"):
        return weights_of_rows(row, clusters.rows, clusters.position(row))
    return sparse.csr_array(np.zeros((0, clusters.rows.n_rows)))


def _changes(weights: sparse.csr_array, rows: slice, change: FloatArray) -> FloatArray:
    """What a change (row, direction) of some rows does, by direction first."""
    some: Any = weights[:, rows]
    return np.asarray((some @ change).T)


def _level_influences(
    row: FeatureResult,
    clusters: Clusters,
    changes: Iterable[tuple[IntArray, FloatArray, FloatArray]],
) -> RowSums:
    position, rows = clusters.position(row), clusters.rows
    assert rows.sides is not None
    n_levels, code = row.sizes["edge"], rows.x[position].astype(np.int64)
    steps = categories.steps(code, *rows.sides[position], n_levels)
    weights = Weights.of_steps(steps, row["effect"].values, rows.weight, row["n_effective"].values)
    up, down = map(np.concatenate, zip(*[both for _, *both in changes], strict=True))
    change = categories.steps(code, up, down, n_levels).difference
    return _row_sums(weights.applied(slice(0, len(change)), change))


def _row_sums(parts: Sequence[FloatArray]) -> RowSums:
    mean, slope, variance = [sparse.csr_array(part) for part in parts[:3]]
    # The rows and their places do not change with the parameters.
    return RowSums(mean, slope, variance, np.zeros(mean.shape[0]), parts[3])


def _contracted(sums: RowSums, factor: FloatArray) -> RowSums:
    """Sums over rows of their influences times ``factor`` (row, direction)."""
    mean, slope, variance = [
        sparse.csr_array((part.T @ factor).T) for part in (sums.mean, sums.slope, sums.variance)
    ]
    return RowSums(mean, slope, variance, sums.places @ factor, sums.average @ factor)


class Gradients(NamedTuple):
    """Gradients of all estimates of one feature, (direction, estimate)."""

    effect: FloatArray
    slope: FloatArray
    heterogeneity: FloatArray
    cell_curve: FloatArray
    curve: FloatArray
    start: FloatArray
    average: FloatArray
    spread: FloatArray


def estimate_changes(influences: Influences, row: FeatureResult, fit: CurveErrors) -> Gradients:
    """Gradients of effects and curves, from those of cells and bins."""
    sums, of_bins = influences.cells, influences.bins
    cell_edges = fit.pieces.edges
    stretch = fit.cells.stretch
    on_curve = sums._replace(mean=sums.mean[:, stretch], slope=sums.slope[:, stretch])
    population = fit.centering == "mean"
    cell_curve = on_curve.of_curve(fit.loadings(cell_edges), population=population)
    start = on_curve.of_curve(influence.loadings(fit.pieces, fit.edges, "start"), population=False)
    spread = row["heterogeneity"].values
    with np.errstate(invalid="ignore", divide="ignore"):
        of_spread = np.where(spread > 0, of_bins.variance.toarray() / (2 * spread), 0.0)
    slope = np.where(row.slopes != 0, of_bins.slope.toarray(), 0.0)
    return Gradients(
        effect_influences(sums, fit.cells).toarray(),
        slope,
        of_spread,
        cell_curve,
        cell_curve[:, np.searchsorted(cell_edges, fit.edges)],
        start,
        sums.average[:, None],
        influences.spread,
    )


# --- together with the rows -----------------------------------------------------------------------


# Pairs of estimates whose covariance is stored.
PAIRS = {
    "effect": ("effect", "effect"),
    "slope": ("slope", "slope"),
    "effect_slope": ("effect", "slope"),
    "curve_slope": ("curve", "slope"),
    "curve": ("curve", "curve"),
    "cell_curve": ("cell_curve", "cell_curve"),
}
ALONE = ("heterogeneity", "start", "average", "spread")


def products(left: Gradients, right: Gradients) -> dict[str, FloatArray]:
    """Sums over directions of products, by pair; of those alone, of each with itself."""
    out = {name: getattr(left, a).T @ getattr(right, b) for name, (a, b) in PAIRS.items()}
    return out | {
        name: np.sum(getattr(left, name) * getattr(right, name), axis=0) for name in ALONE
    }


def added(
    rows: dict[str, FloatArray], model: Gradients, shared: Gradients | None, squares: FloatArray
) -> dict[str, FloatArray]:
    """Covariances of rows and parameters together.

    ``shared`` are the products of the influences of rows with the directions, and ``squares`` the
    sums of squares of the influences on the directions, (direction, direction).
    """
    total = products(model, Gradients(*[squares @ influences for influences in model]))
    if shared is not None:
        left, right = products(model, shared), products(shared, model)
        total = {name: total[name] + left[name] + right[name] for name in total}
    return {name: np.asarray(rows[name] + total[name]) for name in rows}
