"""Uncertainty of the parameters of a fitted model in effects, with the bins held (math [80]).

Every estimate is a function of the local effects, and these of the parameters. `RowSums` holds
what a direction of the parameters does to the means and slopes of bins, in place of what a group of
rows does; all estimates follow from it as they do for groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike
from scipy import sparse

from rhale_stats.arrays import accumulate, categories, influence
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.influence import RowSums
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.effects.clusters import Clusters, on_effects
from rhale_stats.effects.fit import (
    Fit,
    at_edges,
    bin_degrees,
    curve_degrees,
    features_of,
    group_degrees,
    group_overlap,
    has_covariance,
    noise_in_the_middle,
    row_degrees,
    spread_degrees,
)
from rhale_stats.effects.targets import SKEWNESS, SOURCE
from rhale_stats.local.parameters import Derivatives
from rhale_stats.local.rows import is_used_row
from rhale_stats.models.parametric import Fitted
from rhale_stats.schema.curves import cell_sizes, has_cells, pieces_of
from rhale_stats.schema.features import slopes
from rhale_stats.schema.levels import is_categorical
from rhale_stats.schema.stacking import Estimates, stacked
from rhale_stats.schema.variables import variable


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
        """Of bins along an axis: estimates are linear in local effects, variances nearly so."""
        k, n_bins = bin_index(pieces.edges, x), len(pieces.mean)
        w = np.ones(len(x)) if weight is None else weight
        d = x - pieces.x_mean[k]
        r = g - pieces.mean[k] - pieces.slope[k] * d
        share = w / np.bincount(k, w, n_bins)[k]
        linear = pieces.slope != 0
        tilt = np.where(linear, 1 / np.where(linear, pieces.x_variance, 1.0), 0.0)[k]
        square = _of_squares(share * r, k, n_effective, 1 + linear)
        tables = (_table(values, k, n_bins) for values in (share, share * d * tilt, square))
        return cls(*tables, w / w.sum())

    @classmethod
    def of_steps(
        cls,
        of: categories.Steps,
        mean: FloatArray,
        weight: FloatArray | None,
        n_effective: FloatArray,
    ) -> Weights:
        """Of steps between levels: their pairs of a row and a step take the place of rows."""
        k, n_bins = of.step, len(mean)
        w = np.ones(len(k)) if weight is None else weight[of.row]
        share = w / np.bincount(k, w, n_bins)[k]
        square = _of_squares(share * (of.difference - mean[k]), k, n_effective, 1)
        tables = (_table(values, k, n_bins) for values in (share, np.zeros(len(k)), square))
        return cls(*tables, w / w.sum())

    def applied(self, rows: IntArray | slice, change: FloatArray) -> list[FloatArray]:
        """What a change of the local effects of some rows does, by direction first."""
        three = [(part[:, rows] @ change).T for part in self[:3]]
        return [*three, self.average[rows] @ change]


def _of_squares(
    residual: FloatArray, k: IntArray, n_effective: FloatArray, n_parameters: Any
) -> FloatArray:
    """Weights of changes in variances over the degrees of freedom; 0 in a bin that has none."""
    with np.errstate(invalid="ignore", divide="ignore"):
        kept = (1 - n_parameters / n_effective)[k]
        return np.where(kept > 0, 2 * residual / kept, 0.0)


def _table(values: FloatArray, k: IntArray, n_bins: int) -> sparse.csr_array:
    at = (k, np.arange(len(k)))
    return sparse.csr_array(sparse.coo_array((values, at), (n_bins, len(k))))


def sums_of_directions(
    row: xr.Dataset, fit: Fit, clusters: Clusters, derivatives: Derivatives
) -> tuple[RowSums, RowSums]:
    """What every direction does to the cells of one feature, and to its bins."""
    name = str(row["feature"].values)
    numbers = np.flatnonzero(is_used_row(clusters.local, row))
    if is_categorical(row):
        own = _of_levels(row, clusters, derivatives.steps(name, numbers))
        return own, own
    columns = (*clusters.columns(row), clusters.rows.weight)
    of_bins = Weights.of(pieces_of(row), *columns, row["n_effective"].values)
    of_cells = Weights.of(fit.cells.pieces, *columns, fit.cells.n_effective)
    totals: list[list[FloatArray]] = []
    begin = 0
    for part, change in derivatives.slopes(name, numbers):
        here = slice(begin, begin + len(part))
        totals.append([*of_cells.applied(here, change), *of_bins.applied(here, change)])
        begin += len(part)
    summed = [np.sum(one, axis=0) for one in zip(*totals, strict=True)]
    return _row_sums(summed[:4]), _row_sums(summed[4:])


def _of_levels(
    row: xr.Dataset,
    clusters: Clusters,
    changes: Iterable[tuple[IntArray, FloatArray, FloatArray]],
) -> RowSums:
    position, rows = clusters.position(row), clusters.rows
    assert rows.sides is not None
    n_levels, code = row.sizes["edge"], rows.x[position].astype(np.int64)
    of = categories.steps(code, *rows.sides[position], n_levels)
    weights = Weights.of_steps(of, row["effect"].values, rows.weight, row["n_effective"].values)
    up, down = (np.concatenate(one) for one in zip(*(both for _, *both in changes), strict=True))
    change = categories.steps(code, up, down, n_levels).difference
    return _row_sums(weights.applied(slice(None), change))


def _row_sums(parts: Sequence[FloatArray]) -> RowSums:
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
    """A fitted model with the rows of its effects, and which uncertainty is wanted.

    ``influence`` is that of the rows on the directions of the parameters, where it is known.
    """

    derivatives: Derivatives
    clusters: Clusters
    uncertainty: str
    influence: FloatArray | None

    @classmethod
    def of(
        cls, effect: xr.Dataset, local: xr.Dataset, groups: ArrayLike | None, fitted: Fitted
    ) -> Asked:
        """Without groups every row is a group of its own."""
        codes = np.arange(local.sizes["obs"]) if groups is None else groups
        derivatives, both = Derivatives.of(fitted, local), fitted.uncertainty == "both"
        return cls(
            derivatives,
            Clusters.of(local, effect, codes),
            fitted.uncertainty,
            derivatives.influence() if both else None,
        )

    def source(self, rows: str) -> str:
        """The source of a standard error, in words."""
        return "parameters" if self.uncertainty == "parameters" else f"{rows} and parameters"


def with_parameters(
    effect: xr.Dataset, local: xr.Dataset, groups: ArrayLike | None, fitted: Fitted
) -> xr.Dataset:
    """An effect with standard errors of its rows gets those that hold the parameters."""
    asked = Asked.of(effect, local, groups, fitted)
    rows = [of_feature(*one, asked) for one in features_of(effect)]
    found = stacked(rows, effect.sizes["bin"], **cell_sizes(effect))
    out = effect.drop_vars([name for name in SKEWNESS if name in effect])
    made = {}
    for name, values in found.items():
        se = f"{name.partition('_se')[0].removesuffix('_cov').removesuffix('_df')}_se"
        own = effect[se].attrs if se in effect else {}
        about = {"target": own.get("target", ""), "kind": "delta method, math [80]"}
        source = str(own.get("source", SOURCE))
        part = {"_se_rows": source, "_se_model": "parameters"}
        ends = [text for end, text in part.items() if name.endswith(end)]
        about["source"] = ends[0] if ends else asked.source(source)
        made[name] = variable(name, values, **about)
    return out.assign(made).assign_attrs(parameters=_how(asked))


def _how(asked: Asked) -> str:
    if asked.uncertainty == "parameters":
        return "rows held fixed"
    if asked.influence is None:
        return "variances of rows and parameters added"
    return "influences of every row on estimates and parameters added"


def without_parts(effect: xr.Dataset) -> xr.Dataset:
    """The effect without what errors by parameters left behind."""
    if "parameters" not in effect.attrs:
        return effect
    parts = [name for name in effect.data_vars if str(name).endswith(("_se_rows", "_se_model"))]
    out = effect.drop_vars(parts)
    del out.attrs["parameters"]
    return out


def of_feature(row: xr.Dataset, fit: Fit | None, asked: Asked) -> Estimates:
    """Standard errors, covariances and degrees of freedom of one feature, by name."""
    if fit is None:
        return {}
    model = on_estimates(*sums_of_directions(row, fit, asked.clusters, asked.derivatives), row, fit)
    rows = rows_of(row, fit)
    alone = added(dict.fromkeys(rows, 0.0), model, None, np.eye(len(model.effect)))
    total = alone
    if asked.influence is not None:
        total = _unconditional(row, fit, asked, model, rows)
    elif asked.uncertainty == "both":
        total = {name: rows[name] + alone[name] for name in rows}
    return _stored(row, fit, (rows, alone, total), asked)


def _unconditional(
    row: xr.Dataset, fit: Fit, asked: Asked, model: Estimated, rows: dict[str, FloatArray]
) -> dict[str, FloatArray]:
    """With the influences of every row on estimates and parameters added up first."""
    clusters, n_parameters = asked.clusters, len(asked.derivatives.model.params)
    assert asked.influence is not None
    used = np.flatnonzero(is_used_row(clusters.local, row))
    by_group = np.zeros((clusters.n_groups, asked.influence.shape[1]))
    np.add.at(by_group, clusters.group, asked.influence[used])
    own = clusters.of_bins(row)
    of_cells = own if is_categorical(row) else clusters.influences(row, fit.cells)
    sums = (contracted(each.sums, by_group) for each in (of_cells, own))
    n_groups = clusters.n_groups
    factor = n_groups / (n_groups - 1)
    if n_groups == len(used):
        factor = n_groups / (n_groups - n_parameters)
    return added(rows, model, on_estimates(*sums, row, fit), factor * by_group.T @ by_group)


def rows_of(row: xr.Dataset, fit: Fit) -> dict[str, FloatArray]:
    """Covariances from the rows alone, of the result as it is."""
    stored = has_covariance(row)
    n_bins = row.sizes["bin"]

    def of(name: str, otherwise: FloatArray) -> FloatArray:
        known = f"{name}_cov" in row and stored
        return np.asarray(row[f"{name}_cov"].values) if known else otherwise

    none = np.zeros((n_bins, n_bins))
    slope, shared = none, none
    if "slope" in row and not is_categorical(row):
        noise = noise_in_the_middle(row)
        slope, shared = np.diag(noise.slope), np.diag(noise.covariance)
    everywhere = slice(fit.cells.here.start, fit.cells.here.stop + 1)
    cells = of("cell_curve", np.zeros(0)) if has_cells(row) else np.zeros(0)
    curve = of("curve", np.zeros(0))
    return {
        "effect": of("effect", np.diag(row["effect_se"].values ** 2)),
        "slope": of("slope", slope),
        "effect_slope": of("effect_slope", shared),
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
    parts: tuple[dict[str, FloatArray], dict[str, FloatArray], dict[str, FloatArray]],
    asked: Asked,
) -> Estimates:
    """Standard errors, their parts, degrees of freedom and covariances, at all bins and edges.

    ``parts`` are covariances of rows, of parameters, and of what was asked for.
    """
    degrees, of_model = _degrees_of_rows(row, fit), asked.derivatives.model.degrees
    total, both = parts[2], asked.uncertainty == "both"
    out: dict[str, FloatArray | float] = {}
    for key, name in NAMES.items():
        if (key == "slope" and "slope" not in row) or (key == "cell_curve" and not has_cells(row)):
            continue
        three = [np.maximum(_diagonal(one[key]), 0.0) for one in parts]
        of_rows = three[0] if both else np.zeros_like(three[0])
        together = _satterthwaite((of_rows, degrees[key]), (three[1], of_model))
        for end, values in zip(("se_rows", "se_model", "se"), np.sqrt(three), strict=True):
            out[f"{name}_{end}"] = _placed(values, key, fit)
        out[f"{name}_df"] = _placed(together, key, fit)
    out["curve_se_start"] = at_edges(np.sqrt(np.maximum(total["start"], 0.0)), fit)
    out["effect_overlap"] = _overlap(row, parts, of_model, both=both)
    return out | _covariances(row, fit, total)


def _overlap(
    row: xr.Dataset,
    parts: Sequence[dict[str, FloatArray]],
    of_model: float,
    *,
    both: bool,
) -> FloatArray:
    """What the variances of two effects have in common: all of the model's, and the rows'."""
    rows, model = (np.maximum(_diagonal(one["effect"]), 0.0) for one in parts[:2])
    rows = rows if both else np.zeros_like(rows)
    of_rows = np.diag(1 / bin_degrees(row))
    if has_covariance(row) and "n_groups" in row.attrs:
        of_rows = group_overlap(row)
    whole = np.where(rows + model > 0, rows + model, 1.0)
    share, own = rows / whole, model / whole
    return np.asarray(np.outer(share, share) * of_rows + np.outer(own, own) / of_model)


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
    if key == "average":
        return values[0]
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
        "slope": group_degrees(row, "slope") if "slope_df" in row else in_bins,
        "heterogeneity": in_bins,
        "curve": curve_degrees(row, fit, fit.edges),
        "cell_curve": curve_degrees(row, fit, fit.pieces.edges),
        "average": np.atleast_1d(row_degrees(row)),
    }


def _satterthwaite(*parts: tuple[FloatArray, FloatArray | float]) -> FloatArray:
    """Degrees of freedom of a sum of variances, each with its own."""
    total = np.sum([variance for variance, _ in parts], axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        own = np.sum(
            [np.where(variance > 0, variance**2 / degrees, 0.0) for variance, degrees in parts],
            axis=0,
        )
        return np.asarray(np.where(own > 0, total**2 / own, np.inf))
