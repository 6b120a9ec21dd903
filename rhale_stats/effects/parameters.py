"""Uncertainty of the parameters of a fitted model in effects, with the bins held (math [80]).

Every estimate is a function of the local effects, and these of the parameters. `RowSums` holds
what a direction of the parameters does to the means and slopes of bins, in place of what a group of
rows does; all estimates follow from it as they do for groups.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from scipy import sparse

from rhale_stats.arrays import accumulate, influence
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.influence import RowSums
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.effects.clusters import Clusters, on_effects
from rhale_stats.effects.fit import (
    Fit,
    at_cells,
    at_edges,
    bin_degrees,
    has_covariance,
    noise_in_the_middle,
    row_degrees,
    spread_degrees,
)
from rhale_stats.local.rows import is_used_row
from rhale_stats.local.versions import Derivatives
from rhale_stats.schema.curves import has_cells, pieces_of
from rhale_stats.schema.features import slopes
from rhale_stats.schema.stacking import Estimates


class Weights(NamedTuple):
    """Weight of every row in means, slopes and variances, sparse (bin, row); and in the average."""

    mean: sparse.csr_array
    slope: sparse.csr_array
    variance: sparse.csr_array
    average: FloatArray

    @classmethod
    def of(
        cls,
        pieces: accumulate.Pieces,
        x: FloatArray,
        g: FloatArray,
        weight: FloatArray | None,
        n_effective: FloatArray,
    ) -> Weights:
        """Estimates are linear in the local effects, and variances are so to first order."""
        k, n_bins = bin_index(pieces.edges, x), len(pieces.mean)
        w = np.ones(len(x)) if weight is None else weight
        d = x - pieces.x_mean[k]
        r = g - pieces.mean[k] - pieces.slope[k] * d
        share = w / np.bincount(k, w, n_bins)[k]
        linear = (pieces.slope != 0)[k]
        with np.errstate(invalid="ignore", divide="ignore"):
            kept = 1 - (1 + (pieces.slope != 0)) / n_effective
            tilt = np.where(linear, share * d / np.where(linear, pieces.x_variance[k], 1.0), 0.0)
            square = np.where(kept[k] > 0, 2 * share * r / kept[k], 0.0)

        def table(values: FloatArray) -> sparse.csr_array:
            at = (k, np.arange(len(k)))
            return sparse.csr_array(sparse.coo_array((values, at), (n_bins, len(k))))

        return cls(table(share), table(tilt), table(square), w / w.sum())

    def applied(self, rows: IntArray, change: FloatArray) -> list[FloatArray]:
        """What a change of the local effects of some rows does, by direction first."""
        three = [(part[:, rows] @ change).T for part in self[:3]]
        return [*three, self.average[rows] @ change]


def sums_of_directions(
    row: xr.Dataset,
    fit: Fit,
    columns: tuple[FloatArray, FloatArray, FloatArray | None],
    numbers: IntArray,
    derivatives: Derivatives,
) -> tuple[RowSums, RowSums]:
    """What every direction does to the cells of one feature, and to its bins.

    ``columns`` are values, local effects and weights of the rows, whose numbers in the table are
    ``numbers``.
    """
    x, g, weight = columns
    of_bins = Weights.of(pieces_of(row), x, g, weight, row["n_effective"].values)
    of_cells = Weights.of(fit.cells.pieces, x, g, weight, fit.cells.n_effective)
    totals: list[list[FloatArray]] = []
    begin = 0
    for part, change in derivatives.blocks(str(row["feature"].values), numbers):
        here = np.arange(begin, begin + len(part))
        totals.append([*of_cells.applied(here, change), *of_bins.applied(here, change)])
        begin += len(part)
    summed = [np.sum(one, axis=0) for one in zip(*totals, strict=True)]
    return _row_sums(summed[:4]), _row_sums(summed[4:])


def _row_sums(parts: list[FloatArray]) -> RowSums:
    mean, slope, variance = (sparse.csr_array(part) for part in parts[:3])
    # The rows and their places do not change with the parameters.
    return RowSums(mean, slope, variance, np.zeros(mean.shape[0]), parts[3])


def contracted(sums: RowSums, factor: FloatArray) -> RowSums:
    """Sums over rows of their influences times ``factor`` (row, direction)."""
    mean, slope, variance = (
        sparse.csr_array((part.T @ factor).T) for part in (sums.mean, sums.slope, sums.variance)
    )
    return RowSums(mean, slope, variance, sums.places @ factor, sums.average @ factor)


class Estimated(NamedTuple):
    """Changes of all estimates of one feature, (direction, estimate)."""

    effect: FloatArray
    slope: FloatArray
    heterogeneity: FloatArray
    cell_curve: FloatArray
    curve: FloatArray
    start: FloatArray
    average: FloatArray


def on_estimates(sums: RowSums, own: RowSums, row: xr.Dataset, fit: Fit) -> Estimated:
    """From changes of cells and bins to those of effects and curves."""
    everywhere = fit.pieces.edges
    here = sums._replace(mean=sums.mean[:, fit.cells.here], slope=sums.slope[:, fit.cells.here])
    population = fit.centering == "mean"
    cell_curve = here.of_curve(fit.loadings(everywhere), population=population)
    start = here.of_curve(influence.loadings(fit.pieces, fit.edges, "start"), population=False)
    spread = row["heterogeneity"].values
    with np.errstate(invalid="ignore", divide="ignore"):
        of_spread = np.where(spread > 0, own.variance.toarray() / (2 * spread), 0.0)
    slope = np.where(slopes(row) != 0, own.slope.toarray(), 0.0)
    return Estimated(
        on_effects(sums, fit.cells).toarray(),
        slope,
        of_spread,
        cell_curve,
        cell_curve[:, np.searchsorted(everywhere, fit.edges)],
        start,
        sums.average[:, None],
    )


# --- together with the rows -----------------------------------------------------------------------


class Parts(NamedTuple):
    """Covariances of all estimates of one feature, by name: of the rows, and of the parameters.

    ``total`` is what was asked for. Of heterogeneity, the zero-start curve and the average only
    variances.
    """

    rows: dict[str, FloatArray]
    model: dict[str, FloatArray]
    total: dict[str, FloatArray]


# Pairs of estimates whose covariance is stored.
PAIRS = {
    "effect": ("effect", "effect"),
    "slope": ("slope", "slope"),
    "effect_slope": ("effect", "slope"),
    "curve_slope": ("curve", "slope"),
    "curve": ("curve", "curve"),
    "cell_curve": ("cell_curve", "cell_curve"),
}
ALONE = ("heterogeneity", "start", "average")


def products(left: Estimated, right: Estimated) -> dict[str, FloatArray]:
    """Sums over directions of products, by pair; of those alone, of each with itself."""
    out = {
        name: getattr(left, one).T @ getattr(right, other) for name, (one, other) in PAIRS.items()
    }
    return out | {
        name: np.sum(getattr(left, name) * getattr(right, name), axis=0) for name in ALONE
    }


def added(
    rows: dict[str, FloatArray], model: Estimated, shared: Estimated | None, spread: FloatArray
) -> dict[str, FloatArray]:
    """Covariances of rows and parameters together.

    ``shared`` are the products of the influences of rows with the directions, and ``spread`` the
    sums of squares of the influences on the directions, (direction, direction).
    """
    spread_model = Estimated(*(spread @ one for one in model))
    total = products(model, spread_model)
    if shared is not None:
        one, other = products(model, shared), products(shared, model)
        total = {name: total[name] + one[name] + other[name] for name in total}
    return {name: np.asarray(rows[name] + total[name]) for name in rows}


SOURCES = {"parameters": "parameters of the model", "both": "rows and parameters of the model"}
# What a standard error by parameters is stored with, by the name of the estimate.
NAMES = {
    "effect": "effect",
    "slope": "slope",
    "heterogeneity": "heterogeneity",
    "curve": "curve",
    "cell_curve": "cell_curve",
    "average": "average_effect",
}


class Asked(NamedTuple):
    """A fitted model with the rows of its effects, and which uncertainty is wanted."""

    derivatives: Derivatives
    clusters: Clusters
    uncertainty: str

    @classmethod
    def of(
        cls, model: Any, X: Any, local: xr.Dataset, effect: xr.Dataset, groups: Any, wanted: str
    ) -> Asked:
        """Without groups every row is a group of its own."""
        codes = np.arange(local.sizes["obs"]) if groups is None else groups
        clusters = Clusters.of(local, effect, codes)
        return cls(Derivatives.of(model, X, local), clusters, wanted)


def of_feature(row: xr.Dataset, fit: Fit, asked: Asked) -> Estimates:
    """Standard errors, covariances and degrees of freedom of one feature, by name."""
    clusters, derivatives = asked.clusters, asked.derivatives
    numbers = np.flatnonzero(is_used_row(clusters.local, row))
    columns = (*clusters.columns(row), clusters.rows.weight)
    model = on_estimates(*sums_of_directions(row, fit, columns, numbers, derivatives), row, fit)
    rows = rows_of(row, fit)
    alone = added(dict.fromkeys(rows, 0.0), model, None, np.eye(len(model.effect)))
    total = alone
    if asked.uncertainty == "both":
        influence_of_rows = derivatives.influence()
        if influence_of_rows is None:
            total = {name: rows[name] + alone[name] for name in rows}
        else:
            total = _unconditional(row, fit, asked, model, rows, influence_of_rows)
    return _stored(row, fit, rows, alone, total, derivatives.model.degrees, asked)


def _unconditional(
    row: xr.Dataset,
    fit: Fit,
    asked: Asked,
    model: Estimated,
    rows: dict[str, FloatArray],
    own: FloatArray,
) -> dict[str, FloatArray]:
    """With the influences of every row on estimates and parameters added up first."""
    clusters = asked.clusters
    numbers = np.flatnonzero(is_used_row(clusters.local, row))
    by_group = np.zeros((clusters.n_groups, own.shape[1]))
    np.add.at(by_group, clusters.group, own[numbers])
    of_cells = clusters.influences(row, fit.cells)
    shared = on_estimates(
        contracted(of_cells, by_group), contracted(clusters.of_bins(row), by_group), row, fit
    )
    n_groups, n_parameters = clusters.n_groups, len(asked.derivatives.model.params)
    factor = n_groups / (n_groups - 1)
    if n_groups == len(numbers):
        factor = n_groups / (n_groups - n_parameters)
    return added(rows, model, shared, factor * by_group.T @ by_group)


def rows_of(row: xr.Dataset, fit: Fit) -> dict[str, FloatArray]:
    """Covariances from the rows alone, of the result as it is."""
    stored = has_covariance(row)
    n_bins, n_edges = row.sizes["bin"], len(fit.edges)
    noise = noise_in_the_middle(row)

    def of(name: str, otherwise: FloatArray) -> FloatArray:
        known = f"{name}_cov" in row and stored
        return np.asarray(row[f"{name}_cov"].values) if known else otherwise

    none = np.zeros((n_bins, n_bins))
    everywhere = slice(fit.cells.here.start, fit.cells.here.stop + 1)
    cells = of("cell_curve", np.zeros(0)) if has_cells(row) else np.zeros(0)
    curve = of("curve", np.zeros(0))
    return {
        "effect": of("effect", np.diag(row["effect_se"].values ** 2)),
        "slope": of("slope", np.diag(noise.slope) if "slope" in row else none),
        "effect_slope": of("effect_slope", np.diag(noise.covariance) if "slope" in row else none),
        "curve_slope": of("curve_slope", np.zeros((fit.n_bins + 1, n_bins)))[fit.there],
        "curve": curve[fit.there, fit.there] if curve.size else fit.covariance(fit.edges),
        "cell_curve": cells[everywhere, everywhere]
        if cells.size
        else fit.covariance(fit.pieces.edges),
        "heterogeneity": row["heterogeneity_se"].values ** 2,
        "start": (row["curve_se_start"].values ** 2)[fit.there],
        "average": np.atleast_1d(float(row["average_effect_se"]) ** 2),
    }


def _stored(
    row: xr.Dataset,
    fit: Fit,
    rows: dict[str, FloatArray],
    model: dict[str, FloatArray],
    total: dict[str, FloatArray],
    degrees_of_model: float,
    uncertainty: str,
) -> Estimates:
    """Standard errors, their parts, degrees of freedom and covariances, at all bins and edges."""
    degrees = _degrees_of_rows(row, fit)
    out: dict[str, FloatArray | float] = {}
    for key, name in NAMES.items():
        if (name == "slope" and "slope" not in row) or (name == "cell_curve" and not has_cells(row)):
            continue
        parts = [np.maximum(_diagonal(one[key]), 0.0) for one in (rows, model, total)]
        own = degrees[key] if uncertainty == "both" else np.inf
        of_rows = parts[0] if uncertainty == "both" else np.zeros_like(parts[0])
        together = _satterthwaite((of_rows, own), (parts[1], degrees_of_model))
        ends = ("se_rows", "se_model", "se")
        for end, values in zip(ends, np.sqrt(parts), strict=True):
            out[f"{name}_{end}"] = _placed(values, key, fit)
        out[f"{name}_df"] = _placed(together, key, fit)
    out["curve_se_start"] = at_edges(np.sqrt(np.maximum(total["start"], 0.0)), fit)
    return out | _covariances(row, fit, total)


def _covariances(row: xr.Dataset, fit: Fit, total: dict[str, FloatArray]) -> Estimates:
    out: dict[str, FloatArray | float] = {"effect_cov": total["effect"]}
    out["curve_cov"] = _placed(_placed(total["curve"], "curve", fit).T, "curve", fit)
    if has_cells(row):
        cells = _placed(total["cell_curve"], "cell_curve", fit)
        out["cell_curve_cov"] = _placed(cells.T, "cell_curve", fit)
    if "slope" in row:
        out["slope_cov"], out["effect_slope_cov"] = total["slope"], total["effect_slope"]
        out["curve_slope_cov"] = _placed(total["curve_slope"], "curve", fit)
    return out


def _diagonal(values: FloatArray) -> FloatArray:
    return np.diagonal(values) if values.ndim == 2 else values


def _placed(values: FloatArray, key: str, fit: Fit) -> FloatArray:
    """Along all edges, where values are on the stretch with a curve."""
    if key not in ("curve", "cell_curve"):
        return values
    size = fit.n_bins + 1 if key == "curve" else len(fit.cells.bin) + 1
    first = fit.there.start if key == "curve" else fit.cells.here.start
    out = np.full((size, *values.shape[1:]), np.nan)
    out[first : first + len(values)] = values
    return out


def _degrees_of_rows(row: xr.Dataset, fit: Fit) -> dict[str, FloatArray]:
    in_bins = spread_degrees(row)
    return {
        "effect": bin_degrees(row, fit.cells),
        "slope": in_bins,
        "heterogeneity": in_bins,
        "curve": fit.curve_degrees(fit.edges),
        "cell_curve": fit.curve_degrees(fit.pieces.edges),
        "average": np.atleast_1d(row_degrees(row)),
    }


def _satterthwaite(*parts: tuple[FloatArray, FloatArray | float]) -> FloatArray:
    """Degrees of freedom of a sum of variances, each with its own."""
    total = np.sum([variance for variance, _ in parts], axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        own = np.sum(
            [np.where(variance > 0, variance**2 / degrees, 0.0) for variance, degrees in parts], axis=0
        )
        return np.asarray(np.where(own > 0, total**2 / own, np.inf))
