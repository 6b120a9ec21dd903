"""Standard errors by the parameters of the model, and how estimates change with these (math [80]).

Every estimate is a function of the local effects, and these of the parameters. `RowSums` holds
what a direction of the parameters does to the means and slopes of bins, in place of what a group of
rows does; all estimates follow from it as they do for groups.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from scipy import sparse

from rhale_stats.arguments.survey import GroupsOrDesign
from rhale_stats.arrays import accumulate, categories, delta, influence, intervals
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.influence import RowSums
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.effects.anova_test import RIGID
from rhale_stats.effects.cluster_robust import Clusters, effect_influences
from rhale_stats.effects.fit import (
    SKEWNESS,
    SOURCE,
    average_degrees,
    bin_degrees,
    curve_covariance,
    curve_degrees,
    features_of,
    group_degrees,
    group_overlap,
    noise_in_the_middle,
    spread_degrees,
)
from rhale_stats.effects.spread import weights_of_rows
from rhale_stats.inference.parameters import (
    KIND,
    how_added,
    known_influence,
    source_of_both,
    without_parameters,
)
from rhale_stats.local.parameters import Derivatives
from rhale_stats.local.rows import is_used_row
from rhale_stats.models.parametric import ROW_NUMBER, Fitted
from rhale_stats.schema.curves import CurveErrors
from rhale_stats.schema.feature_result import FeatureResult
from rhale_stats.schema.features import is_grouped
from rhale_stats.schema.padding import Estimates, pad_features
from rhale_stats.schema.parts import row_numbers
from rhale_stats.schema.variables import variable


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

    ``spread`` is (direction, stretch of the spread), empty where it is not known.
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
        Weights.of_rows(row.pieces, *columns, row.n_effective),
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
    if row.has_spread:
        spread = clusters.spread_sums(row).influences(row.spread)
        if clusters.design is not None:
            spread = clusters.design.units_of_clusters(spread)
    numbers = row_numbers(clusters.local)[is_used_row(clusters.local, row)]
    if clusters.design is None and clusters.n_groups == len(np.unique(numbers)):
        return Influences(*row_influences(row, fit, clusters), spread)
    of_bins = clusters.bin_influences(row)
    cells = of_bins if row.is_categorical else clusters.influences(row)
    return Influences(cells.sums, of_bins.sums, spread)


def row_influences(
    row: FeatureResult, fit: CurveErrors, clusters: Clusters
) -> tuple[RowSums, RowSums]:
    """Influences of rows, summed in groups, without corrections for their shares."""
    if row.is_categorical:
        steps = clusters.level_sums(row)
        return steps, steps
    sums, pieces = clusters.sums(row), fit.cells.pieces
    cells = sums.cells.row_sums(pieces, row.curve.evaluate(pieces.edges))
    if not row.has_cells:
        return cells, cells
    return cells, sums.bins.row_sums(row.pieces, row.curve.evaluate(row.pieces.edges))


def _spread_weights(row: FeatureResult, clusters: Clusters) -> sparse.csr_array:
    if row.has_spread:
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
    n_levels, code = len(row.edges), rows.x[position].astype(np.int64)
    steps = categories.steps(code, *rows.sides[position], n_levels)
    weights = Weights.of_steps(steps, row["effect"].values, rows.weight, row.n_effective)
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
    curve: FloatArray
    start: FloatArray
    average_effect: FloatArray
    spread: FloatArray


def estimate_changes(influences: Influences, row: FeatureResult, fit: CurveErrors) -> Gradients:
    """Gradients of effects and curves, from those of cells and bins."""
    sums, of_bins = influences.cells, influences.bins
    edges = fit.pieces.edges
    on_curve = sums.within(fit.cells.stretch)
    curve = on_curve.of_curve(fit.loadings(edges), population=fit.centering == "mean")
    start = on_curve.of_curve(influence.loadings(fit.pieces, edges, "start"), population=False)
    spread = row["heterogeneity"].values
    with np.errstate(invalid="ignore", divide="ignore"):
        of_spread = np.where(spread > 0, of_bins.variance.toarray() / (2 * spread), 0.0)
    slope = np.where(row.slopes != 0, of_bins.slope.toarray(), 0.0)
    return Gradients(
        effect_influences(sums, fit.cells).toarray(),
        slope,
        of_spread,
        curve,
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
}
ALONE = ("heterogeneity", "start", "average_effect", "spread")


def products(left: Gradients, right: Gradients) -> dict[str, FloatArray]:
    """Sums over directions of products, by pair; of those alone, of each with itself."""
    out = {name: getattr(left, a).T @ getattr(right, b) for name, (a, b) in PAIRS.items()}
    return out | {
        name: np.sum(getattr(left, name) * getattr(right, name), axis=0) for name in ALONE
    }


def added(
    rows: dict[str, FloatArray], model: Gradients, shared: Gradients, squares: FloatArray
) -> dict[str, FloatArray]:
    """Covariances of rows and parameters together.

    ``shared`` are the products of the influences of rows with the directions, and ``squares`` the
    sums of squares of the influences on the directions, (direction, direction).
    """
    alone = products(model, Gradients(*[squares @ influences for influences in model]))
    left, right = products(model, shared), products(shared, model)
    return {name: rows[name] + alone[name] + left[name] + right[name] for name in rows}


# Estimates that have standard errors by parameters, if the result has them.
NAMES = ("effect", "slope", "heterogeneity", "curve", "average_effect", "spread")


class ErrorRequest(NamedTuple):
    """A fitted model with the rows of its effects, and which uncertainty is wanted.

    ``influence`` is that of the rows of the fit on the directions of the parameters, where it is
    known.
    """

    fitted: Fitted
    derivatives: Derivatives
    clusters: Clusters
    influence: FloatArray | None

    @classmethod
    def from_fit(
        cls, effect: xr.Dataset, local: xr.Dataset, groups: GroupsOrDesign | None, fitted: Fitted
    ) -> ErrorRequest:
        """The model and the groups of the rows: without groups every row is one of its own."""
        codes = row_numbers(local) if groups is None else groups
        clusters, both = Clusters.of_effect(local, effect, codes), fitted.uncertainty == "both"
        # What a repeated row does is not the sum of what its copies do, but of groups of them.
        has_influence = groups is not None or not fitted.frequency
        influence = fitted.influence_of_rows() if both and has_influence else None
        if clusters.design is not None:
            if not both:
                raise ValueError(
                    f"uncertainty must be 'both' or 'rows' with the design of a survey; got "
                    f"{fitted.uncertainty!r}. averages has the parameters alone."
                )
            known_influence(influence)
        return cls(fitted, Derivatives.from_model(fitted, local), clusters, influence)

    @property
    def most_degrees(self) -> float:
        """Most degrees of freedom of variances that are sums over groups."""
        by_groups = self.influence is not None and self.fitted.codes is not None
        return self.clusters.n_groups - 1.0 if by_groups and not self.fitted.as_fitted else np.inf


def with_parameters(
    effect: xr.Dataset, local: xr.Dataset, groups: GroupsOrDesign | None, fitted: Fitted
) -> xr.Dataset:
    """An effect with standard errors of its rows gets those that hold the parameters."""
    request = ErrorRequest.from_fit(effect, local, groups, fitted)
    rows = [feature_errors(*feature, request) for feature in features_of(effect)]
    directions = len(fitted.model.directions())
    results = pad_features(rows, effect.sizes, part=2, component=directions)
    skewed = [name for name in SKEWNESS if name in effect]
    out = effect.drop_vars(skewed)
    if fitted.uncertainty == "both":
        out = out.assign({name: _diluted(effect[name], results) for name in skewed})
    variables = {}
    for name, values in results.items():
        se = re.sub("_(se.*|cov|df|directions)$", "", name) + "_se"
        attrs = effect[se].attrs if se in effect else {}
        rows_source = str(attrs.get("source", SOURCE))
        parts = {"rows": rows_source, "model": "parameters"}
        whole = source_of_both(fitted.uncertainty, rows_source)
        source = parts.get(name.rpartition("_se_")[2], whole)
        facts = {"target": attrs.get("target", ""), "kind": KIND, "source": source}
        variables[name] = variable(name, values, **facts)
    mark = fitted.model.fingerprint()
    if fitted.model.design is not None:  # what is not estimable has no value either
        stems = [name for name in NAMES if name in out]
        of_model = {stem: variables[f"{stem}_se_model"][1] for stem in stems}
        out = out.assign({stem: out[stem].where(~np.isnan(of_model[stem])) for stem in stems})
        out.attrs |= fitted.model.facts()
    how = how_added(fitted.uncertainty, request.influence)
    return out.assign(variables).assign_attrs(parameters=how, fitted_model=mark)


def _diluted(skewness: xr.DataArray, results: Mapping[str, FloatArray]) -> xr.DataArray:
    """Skewness of errors of rows, to which those of parameters are added, which have none."""
    name = str(skewness.name).removesuffix("_skewness")
    rows, total = results[f"{name}_se_rows"], results[f"{name}_se"]
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(total > 0, np.minimum(rows / total, 1.0), 0.0)
    return skewness.copy(data=skewness.values * share**3)


def without_parts(effect: xr.Dataset) -> xr.Dataset:
    """The effect without what errors by parameters left behind."""
    if "parameters" not in effect.attrs:
        return effect
    return without_parameters(effect, ("_se_rows", "_se_model", "_directions", "spread_df"))


def feature_errors(row: FeatureResult, fit: CurveErrors | None, request: ErrorRequest) -> Estimates:
    """Standard errors, covariances and degrees of freedom of one feature, by name."""
    if fit is None:
        return {}
    model = estimate_changes(
        direction_influences(row, fit, request.clusters, request.derivatives), row, fit
    )
    model = Gradients(*map(request.derivatives.model.estimable, model))
    rows = row_covariances(row, fit)
    alone = products(model, model)
    total, shared, squares = alone, None, np.eye(len(model.effect))
    if request.influence is not None:
        shared, squares = _unconditional(row, fit, request)
        total = added(rows, model, shared, squares)
    elif request.fitted.uncertainty == "both":
        total = {name: rows[name] + alone[name] for name in rows}
    directions = _directions(row, fit, model, shared, squares)
    return {**_stored(row, fit, (rows, alone, total), request), **directions}


def _unconditional(
    row: FeatureResult, fit: CurveErrors, request: ErrorRequest
) -> tuple[Gradients, FloatArray]:
    """Products of the influences of groups of rows: on estimates and directions, and on these.

    Rows of the fit that the effect is not of move the parameters alone, as their groups do.
    """
    clusters, influence = request.clusters, request.influence
    assert influence is not None, "asked where it is known"
    if clusters.design is not None:
        of_fit = clusters.design.units_of_table(influence)
        units = group_influences(row, fit, clusters).contracted(of_fit)
        return estimate_changes(units, row, fit), of_fit.T @ of_fit
    numbers = request.derivatives.local[ROW_NUMBER].values
    # A row counts once, also where it has two halves.
    used, first = np.unique(numbers[is_used_row(clusters.local, row)], return_index=True)
    factor = request.fitted.row_factor()
    influence = delta.corrected(influence, clusters.n_groups, len(used), factor)
    by_group = np.zeros((clusters.n_groups, influence.shape[1]))
    np.add.at(by_group, clusters.group[first], influence[used])
    shared = estimate_changes(group_influences(row, fit, clusters).contracted(by_group), row, fit)
    if request.fitted.as_fitted:
        return shared, np.eye(influence.shape[1])
    codes = request.fitted.codes
    every = influence if codes is None else delta.summed(influence, codes)
    return shared, every.T @ every


def _directions(
    row: FeatureResult,
    fit: CurveErrors,
    model: Gradients,
    shared: Gradients | None,
    squares: FloatArray,
) -> dict[str, FloatArray]:
    """What errors have in common with those of other effects of the model (`shared_with`).

    Along a direction: what the parameters do to the curve, and what rows do to both. Directions
    are such that the parameters' errors along them are independent, each of variance 1.
    """
    values, vectors = np.linalg.eigh(squares)
    values = np.where(values > RIGID * values[-1], values, np.inf)
    root = (vectors * np.where(np.isfinite(values), np.sqrt(values), 0.0)) @ vectors.T
    inverse = (vectors / np.sqrt(values)) @ vectors.T
    keys = ("curve",) if row.has_cells else ("curve", "slope")
    out: dict[str, FloatArray] = {}
    for key in keys:
        changes = root @ getattr(model, key)
        rows = np.zeros_like(changes) if shared is None else inverse @ getattr(shared, key)
        # (estimate, part, direction), with the estimate along all edges.
        out[f"{key}_directions"] = _placed(
            np.stack([changes, rows]).transpose(2, 0, 1), key, row, fit
        )
    return out


def row_covariances(row: FeatureResult, fit: CurveErrors) -> dict[str, FloatArray]:
    """Covariances from the rows alone, of the result as it is."""

    def stored(name: str) -> FloatArray | None:
        is_stored = row.has_covariance and name in row
        return np.asarray(row[name].values) if is_stored else None

    def of_bins(name: str, variances: FloatArray) -> FloatArray:
        """Without a stored covariance bins are independent of each other."""
        covariance = stored(name)
        return np.diag(variances) if covariance is None else covariance

    none, edges = np.zeros(row.sizes["bin"]), fit.pieces.edges
    noise = accumulate.Noise(none, none, none)
    if "slope" in row and not row.is_categorical:
        noise = noise_in_the_middle(row)
    with_slope = stored("curve_slope_cov")
    return {
        "effect": row.effect_cov if row.has_covariance else np.diag(row["effect_se"].values ** 2),
        "slope": of_bins("slope_cov", noise.slope),
        "effect_slope": of_bins("effect_slope_cov", noise.covariance),
        "curve_slope": np.zeros((len(edges), len(none)))
        if with_slope is None
        else with_slope[fit.cells.edge_stretch],
        "curve": curve_covariance(row, fit, edges),
        "heterogeneity": row["heterogeneity_se"].values ** 2,
        "start": (row["curve_se_start"].values ** 2)[fit.cells.edge_stretch],
        "average_effect": np.atleast_1d(float(row["average_effect_se"]) ** 2),
        "spread": row["spread_se"].values[row.spread_starts] ** 2
        if row.has_spread
        else np.zeros(0),
    }


def _stored(
    row: FeatureResult,
    fit: CurveErrors,
    parts: tuple[dict[str, FloatArray], dict[str, FloatArray], dict[str, FloatArray]],
    request: ErrorRequest,
) -> Estimates:
    """Standard errors, their parts, degrees of freedom and covariances, at all bins and edges.

    ``parts`` are covariances of rows, of parameters, and of what was asked for.
    """
    degrees, most = _degrees_of_rows(row, fit), request.most_degrees
    of_model = min(request.derivatives.model.degrees, most)
    total, both = parts[2], request.fitted.uncertainty == "both"
    out: dict[str, FloatArray | float] = {}
    for name in NAMES:
        if name not in row:
            continue
        variances = [np.maximum(_diagonal(part[name]), 0.0) for part in parts]
        of_rows = variances[0] if both else np.zeros_like(variances[0])
        together = intervals.satterthwaite((of_rows, degrees[name]), (variances[1], of_model))
        together = np.minimum(together, most)
        for end, values in zip(("se_rows", "se_model", "se"), np.sqrt(variances), strict=True):
            out[f"{name}_{end}"] = _placed(values, name, row, fit)
        out[f"{name}_df"] = _placed(together, name, row, fit)
    out["curve_se_start"] = fit.cells.at_edges(np.sqrt(np.maximum(total["start"], 0.0)))
    out["effect_overlap"] = _overlap(row, parts, of_model, both=both)
    return {**out, **_covariances(row, fit, total)}


def _overlap(
    row: FeatureResult, parts: Sequence[dict[str, FloatArray]], of_model: float, *, both: bool
) -> FloatArray:
    """What the variances of two effects have in common: all of the model's, and the rows'."""
    rows, model = (np.maximum(_diagonal(part["effect"]), 0.0) for part in parts[:2])
    rows = rows if both else np.zeros_like(rows)
    # A bin of one row has no degree of freedom, and no standard error.
    degrees = bin_degrees(row)
    of_rows = np.diag(np.divide(1.0, degrees, out=np.zeros(len(degrees)), where=degrees > 0))
    if row.has_covariance and "n_groups" in row.attrs:
        of_rows = group_overlap(row)
    total = np.where(rows + model > 0, rows + model, 1.0)
    a, b = rows / total, model / total
    return np.asarray(np.outer(a, a) * of_rows + np.outer(b, b) / of_model)


def _covariances(row: FeatureResult, fit: CurveErrors, total: dict[str, FloatArray]) -> Estimates:
    out: dict[str, FloatArray | float] = {"effect_cov": total["effect"]}
    at_edges = fit.cells.at_edges
    out["curve_cov"] = at_edges(at_edges(total["curve"]).T)
    if "slope" in row:
        out["slope_cov"], out["effect_slope_cov"] = total["slope"], total["effect_slope"]
        out["curve_slope_cov"] = at_edges(total["curve_slope"])
    return out


def _diagonal(values: FloatArray) -> FloatArray:
    return np.diagonal(values) if values.ndim == 2 else values


def _placed(values: FloatArray, key: str, row: FeatureResult, fit: CurveErrors) -> FloatArray:
    """Along all edges, where values are on the stretch with a curve, or in those of the spread."""
    if key == "average_effect":
        return np.asarray(values[0])
    if key == "curve":
        return fit.cells.at_edges(values)
    return row.in_cells(values) if key == "spread" else values


def _degrees_of_rows(row: FeatureResult, fit: CurveErrors) -> dict[str, FloatArray]:
    in_bins = spread_degrees(row)
    return {
        "effect": bin_degrees(row),
        "slope": group_degrees(row, "slope") if "slope_df" in row else in_bins,
        "heterogeneity": in_bins,
        "curve": curve_degrees(row, fit, fit.pieces.edges),
        "average_effect": average_degrees(row.together)[[row.position]],
        "spread": _degrees_of_spread(row),
    }


def _degrees_of_spread(row: FeatureResult) -> FloatArray:
    if not row.has_spread:
        return np.zeros(0)
    degrees = row.spread_sums.degrees
    return np.full(len(degrees), row.attrs["n_groups"] - 1.0) if is_grouped(row) else degrees
