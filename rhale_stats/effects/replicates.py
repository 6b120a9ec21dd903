"""Bootstrap of effects in bins that are held fixed, or chosen again (math [28] to [30])."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arguments.progress import progress_bar
from rhale_stats.arrays import accumulate, categories, influence, resample
from rhale_stats.arrays import cells as kernel
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.bins.description import for_share_of_rows, rule_of
from rhale_stats.bins.rule import BinRule
from rhale_stats.effects.cluster_robust import (
    Clusters,
    degrees_of_groups,
    effect_influences,
)
from rhale_stats.effects.delta_method import row_influences
from rhale_stats.effects.errors import values_at
from rhale_stats.effects.provenance import check_same_chunks, check_same_rows
from rhale_stats.effects.rhale import quiet_rhale
from rhale_stats.effects.sizes import SIZES
from rhale_stats.inference.draws import (
    CHUNK_BYTES,
    CHUNK_DRAWS,
    CHUNK_WEIGHTS,
    Replication,
    Resampling,
)
from rhale_stats.local.chunks import ChunkedRows
from rhale_stats.local.rows import Rows, columns, estimation_rows, is_used_row
from rhale_stats.parallel import cpus, in_threads, one_blas_thread
from rhale_stats.schema.checks import check_effect, check_local, is_chunked
from rhale_stats.schema.curves import CurveErrors
from rhale_stats.schema.dimensions import HALF_OF
from rhale_stats.schema.feature_result import FeatureResult, each_feature, one_feature
from rhale_stats.schema.features import feature_names, feature_position
from rhale_stats.schema.identity import check_same_output, row_labels
from rhale_stats.schema.kinds import EFFECT, LOCAL, REPLICATES
from rhale_stats.schema.levels import refuse_categorical
from rhale_stats.schema.padding import pad_features
from rhale_stats.schema.variables import EFFECT_VARIABLES, GRID_VALUE, counted, variable


def with_chosen_bins(
    local: xr.Dataset, effect: xr.Dataset, units: resample.ResampledUnits, request: Resampling
) -> xr.Dataset:
    """Replicates with edges of their own, on a grid of each feature, over (draw, feature, ...)."""
    rule = rule_of(str(effect.attrs["bin_rule"]), str(effect.attrs["bin_parameters"]))
    centering = str(effect.attrs["centering"])
    weighting = str(effect.attrs.get("weighting", "rows"))
    names = feature_names(effect)
    local = local.isel(feature=[feature_position(local, name) for name in names])
    grid = common_grid(effect, request.n_grid)
    base = local["weight"].values if "weight" in local else np.ones(local.sizes["obs"])

    def replicate(draw: int) -> dict[str, NDArray[Any]]:
        weight = base * resample.draw_weights(request.scheme, units, request.seeds[draw])
        sample = local.assign(weight=("obs", weight)).assign_attrs(weight_kind="precision")
        own_rule = for_share_of_rows(rule, _n_effective(weight) / _n_effective(base))
        return _rebinned_replicate(sample, own_rule, centering, weighting, grid)

    n_draws = len(request.seeds)
    with progress_bar(n_draws, "bootstrap", "replicate", progress=request.progress) as bar:
        made = in_threads(replicate, range(n_draws), cpus(), lambda _: bar.update(1))
    out = {name: np.stack([estimates[name] for estimates in made]) for name in made[0]}
    n_bins, hits = out.pop("n_bins"), out.pop("hits")
    on_grid = ("draw", "feature", "grid")
    return xr.Dataset(
        {
            **{name: variable(name, values, EFFECT, on_grid) for name, values in out.items()},
            "n_bins": variable("n_bins", n_bins, EFFECT, on_grid[:2]),
            "edge_frequency": variable("edge_frequency", hits.mean(axis=0), REPLICATES),
        },
        {
            "feature": effect["feature"].variable,
            "feature_kind": effect["feature_kind"].variable,
            "feature_units": effect["feature_units"].variable,
            "grid_value": (("feature", "grid"), grid, GRID_VALUE),
        },
    )


def _n_effective(weight: FloatArray) -> float:
    """Kish's effective number of rows; about half of all rows in a bootstrap sample."""
    return float(weight.sum() ** 2 / np.sum(weight**2))


def _rebinned_replicate(
    local: xr.Dataset, rule: BinRule, centering: str, weighting: str, grid: FloatArray
) -> dict[str, NDArray[Any]]:
    """One replicate with edges of its own, evaluated on the grids of the features."""
    drawn = local.isel(obs=local["weight"].values > 0)
    effect = quiet_rhale(
        drawn, bins=rule, centering=centering, weighting=weighting, has_spread=False
    )
    shape = grid.shape
    out: dict[str, NDArray[Any]] = evaluated(effect, grid)
    out["hits"] = np.zeros((shape[0], shape[1] - 1), dtype=bool)
    out["n_bins"] = effect["n_bins"].values.astype(np.float64)
    for number in np.flatnonzero(effect["n_bins"].values):
        inner = one_feature(effect, int(number)).bin_edges[1:-1]
        out["hits"][number, bin_index(grid[number], inner)] = True
    return out


def common_grid(effect: xr.Dataset, n_grid: int) -> FloatArray:
    """Points along the axis of every feature, (feature, grid); NaN for a constant one."""
    grid = np.full((effect.sizes["feature"], n_grid), np.nan)
    for number in np.flatnonzero(effect["n_bins"].values):
        edges = one_feature(effect, int(number)).bin_edges
        grid[number] = np.linspace(edges[0], edges[-1], n_grid)
    return grid


def evaluated(effect: xr.Dataset, grid: FloatArray) -> dict[str, FloatArray]:
    """Effect, heterogeneity and curve at points of (feature, grid); NaN outside the bins."""
    out = {name: np.full(grid.shape, np.nan) for name in ("effect", "heterogeneity", "curve")}
    for number in np.flatnonzero(effect["n_bins"].values):
        for name, values in values_at(one_feature(effect, int(number)), grid[number]).items():
            out[name][number] = values
    return out


# --- bootstrap of effects in bins that are held fixed ---------------------------------------------


PER_BIN = ("effect", "heterogeneity", "slope", "effect_se", "heterogeneity_se")
PER_EDGE = ("curve", "curve_se")
TOTALS = ("average_effect", "heterogeneity_index", "heterogeneity_output", *SIZES)


def in_memory(local: xr.Dataset, effect: xr.Dataset | None, request: Resampling) -> Replication:
    """`bootstrap` of effects in bins, which are held, or chosen again on every sample."""
    local, effect = check_local(local), check_effect(effect)
    check_same_output(local, effect, ("local", "effect"))
    if "debiased" in effect.attrs:
        raise ValueError("effect must be what rhale or std_error returned; this one is debiased.")
    if request.rebin or request.studentize:
        refuse_categorical(effect, "bootstrap with rebin or studentize")
    used = is_used_row(local, effect)
    rows = columns(local.isel(obs=used))
    halves = HALF_OF in local and rows.weight is not None and rows.weight.max() <= 1
    if request.rebin and rows.frequency and rows.weight is not None and not halves:
        raise ValueError(
            "rebin must be False with frequency weights: a row that is drawn twice would count "
            "once. Repeat the rows instead, or take weight_kind='precision'."
        )
    for row in each_feature(effect):
        if row.sizes["bin"]:
            check_same_rows(row, rows, feature_position(local, row.name))
    counts = rows.weight if rows.frequency else None
    if halves and request.groups is None:
        # Both halves of a row are drawn together.
        request = request._replace(groups=local[HALF_OF].values)
    units = request.units(rows.n_rows, counts, used, row_labels(local))
    if request.rebin:
        replicates = with_chosen_bins(local.isel(obs=used), effect, units, request)
        return Replication(replicates, units, effect, {"bins": "chosen again in every replicate"})
    replicates = in_fixed_bins(rows, local, effect, units, request)
    return Replication(replicates, units, effect, {"bins": "fixed"})


class FeatureTerms(NamedTuple):
    """One feature with its rows in order, ready to be weighted.

    ``terms`` are those of the cells of its curve, which are its bins where it has no others, or of
    its steps between levels. ``bins`` are those of its bins, where sums over cells do not tell
    enough of them, and ``levels`` of the rows by their level.
    """

    row: FeatureResult
    terms: resample.Terms
    bins: resample.Terms | None = None
    levels: resample.Terms | None = None


def in_fixed_bins(
    rows: Rows,
    local: xr.Dataset,
    effect: xr.Dataset,
    units: resample.ResampledUnits,
    request: Resampling,
) -> xr.Dataset:
    """Replicates in the bins of ``effect``, over (draw, feature, ...)."""
    linear = "slope" in effect and bool((effect["slope"] != 0).any())
    if request.studentize and linear and effect.attrs.get("weighting") != "axis":
        raise ValueError(
            "studentize must be False with linear bins and weighting='rows', whose replicates have "
            "no standard errors. "
            "Use confint(effect, boot, method='bca')."
        )
    centering = str(effect.attrs["centering"])
    features = _features(rows, local, effect, studentize=request.studentize)
    out = nothing(effect, len(request.seeds), studentize=request.studentize)
    threads, chunk_draws = _shared_out(rows.n_rows)

    def fill(first: int) -> int:
        streams = request.seeds[first : first + chunk_draws]
        weight = resample.counts_of(request.scheme, units, streams, rows.n_rows)
        draws = slice(first, first + len(streams))
        for position, feature in enumerate(features):
            if feature is None:
                continue
            _fill(out, draws, position, _replicates(feature, weight, centering, request.studentize))
        return len(streams)

    # Small products on threads of ours: more threads in each of them would stand in their way.
    firsts = range(0, len(request.seeds), chunk_draws)
    shown = progress_bar(len(request.seeds), "bootstrap", "replicate", progress=request.progress)
    with one_blas_thread, shown as bar:
        in_threads(fill, firsts, threads, bar.update)
    labelled = labelled_replicates(out, effect)
    return labelled.assign(accelerations(rows, local, effect, units))


def _shared_out(n_rows: int) -> tuple[int, int]:
    """Number of threads, and of draws that one of them makes at a time."""
    # Threads come before draws: of these there are as many as one product of matrices likes.
    threads = int(np.clip(CHUNK_BYTES // (16 * n_rows * resample.BLOCK), 1, cpus()))
    draws = CHUNK_BYTES // (16 * n_rows * threads)
    limit = max(CHUNK_DRAWS, CHUNK_WEIGHTS // n_rows // CHUNK_DRAWS * CHUNK_DRAWS)
    return threads, int(np.clip(draws // resample.BLOCK * resample.BLOCK, resample.BLOCK, limit))


def nothing(effect: xr.Dataset, n_draws: int, *, studentize: bool) -> dict[str, FloatArray]:
    """NaN for every estimate of a replicate, (draw, feature, ...), by name."""
    names = [*PER_BIN, *PER_EDGE, *TOTALS, "average_effect_se", "curve_mean", "n_empty"]
    if not studentize:
        names = [name for name in names if not name.endswith("_se")]
    if "slope" not in effect:
        names.remove("slope")
    sizes = {**effect.sizes, "edge": effect.sizes["bin"] + 1}
    return {
        name: np.full((n_draws, *[sizes[dim] for dim in EFFECT_VARIABLES[name][0]]), np.nan)
        for name in names
    }


def _fill(
    out: dict[str, FloatArray], draws: slice, position: int, estimates: dict[str, FloatArray]
) -> None:
    """Put some draws of one feature, (draw, ...), in their place."""
    for name, values in estimates.items():
        if name in out:
            place: tuple[int | slice, ...] = (draws, position, *map(slice, values.shape[1:]))
            out[name][place] = values


def labelled_replicates(replicates: dict[str, FloatArray], effect: xr.Dataset) -> xr.Dataset:
    """Replicates over draws, features, and bins or the edges of these."""
    data = {}
    for name, values in replicates.items():
        data[name] = variable(name, values, EFFECT, ("draw", *_over_bins(name)))
    coords = {
        name: coord.variable
        for name, coord in effect.coords.items()
        if {*coord.dims} <= {"feature", "bin"}
    }
    bins = {
        "n_bins": effect["n_bins"].variable,
        "bin_edge": counted("bin_edge", effect.sizes["bin"] + 1, "edge of a bin"),
    }
    return xr.Dataset(data, coords | bins)


def _over_bins(name: str) -> tuple[str, ...]:
    """Dimensions of a variable of replicates, which have no curve between the edges of bins."""
    return tuple("bin_edge" if dim == "edge" else dim for dim in EFFECT_VARIABLES[name][0])


def _features(
    rows: Rows, local: xr.Dataset, effect: xr.Dataset, *, studentize: bool
) -> list[FeatureTerms | None]:
    """Rows of all features, ready to be weighted; None for a constant one."""
    features: list[FeatureTerms | None] = []
    for row in each_feature(effect):
        position = feature_position(local, row.name)
        if not row.sizes["bin"]:
            features.append(None)
        elif row.is_categorical:
            features.append(_feature_of_levels(row, rows, position))
        else:
            ordered = partial(_terms, row, rows, position, studentize=studentize)
            bins = ordered(row.pieces) if row.has_cells and studentize else None
            features.append(FeatureTerms(row, ordered(row.curve_cells.pieces), bins))
    return features


def _terms(
    row: FeatureResult, rows: Rows, position: int, pieces: accumulate.Pieces, *, studentize: bool
) -> resample.Terms:
    """Rows of a feature with an axis, in order of pieces of it."""
    x, g = rows.x[position], rows.local_effect[position]
    return resample.terms(
        *(pieces, bin_index(pieces.edges, x), x, g, rows.weight),
        frequency=rows.frequency,
        standard_errors=studentize,
        places=bool(row.slopes.any()) and not studentize,
    )


def _feature_of_levels(row: FeatureResult, rows: Rows, position: int) -> FeatureTerms:
    """A feature with levels: its rows in order of steps, twice where they are in two."""
    assert rows.sides is not None
    code, weight = rows.x[position].astype(np.int64), rows.weight
    steps = categories.steps(code, *rows.sides[position], len(row.edges))

    def ordered(k: IntArray, row_of: IntArray, g: FloatArray, bins: accumulate.Pieces) -> Any:
        w = None if weight is None else weight[row_of]
        place = code[row_of].astype(np.float64)
        out = resample.terms(bins, k, place, g, w, frequency=rows.frequency, standard_errors=False)
        return out._replace(order=row_of[out.order])

    none = np.zeros(len(row.edges))
    levels = accumulate.Pieces(none, none, none, none, none, none)
    at_levels = ordered(code, np.arange(rows.n_rows), np.zeros(rows.n_rows), levels)
    terms = ordered(steps.step, steps.row, steps.difference, row.pieces)
    return FeatureTerms(row, terms, levels=at_levels)


def _level_replicates(
    feature: FeatureTerms, at_levels: resample.Terms, weight: resample.Weights, centering: str
) -> dict[str, FloatArray]:
    """Estimates of one feature with levels, (draw, ...)."""
    sums = resample.replicate_sums(feature.terms, weight)
    steps = resample.replicates(feature.row.pieces, sums, "start")
    sums = resample.replicate_sums(at_levels, weight)
    weights, squares = sums[..., 0], sums[..., 1]
    share = weights / weights.sum(axis=1, keepdims=True)
    curve, _ = categories.curve(steps.effect, share, centering)
    curve[np.isnan(curve).any(axis=1)] = np.nan
    n = weights.sum(axis=1) ** 2 / squares.sum(axis=1)
    in_steps = weights[:, :-1] + weights[:, 1:]
    return {
        "effect": steps.effect,
        "slope": 0.0 * steps.effect,
        "heterogeneity": np.sqrt(steps.variance),
        "curve": curve,
        "average_effect": np.nansum(in_steps * steps.mean, axis=1) / in_steps.sum(axis=1),
        "heterogeneity_index": np.nansum(steps.residual, axis=1),
        "heterogeneity_output": categories.heterogeneity_output(steps.variance, in_steps, share, n),
        "n_empty": np.isnan(steps.effect).sum(axis=1).astype(np.float64),
        "curve_mean": np.sum(share * curve, axis=1),
        **dict(zip(SIZES, categories.sizes(curve, share), strict=True)),
    }


def _replicates(
    feature: FeatureTerms, weight: resample.Weights, centering: str, studentize: bool
) -> dict[str, FloatArray]:
    """Estimates of one feature under every column of weights, (draw, ...)."""
    if feature.levels is not None:
        return _level_replicates(feature, feature.levels, weight, centering)
    row, sums = feature.row, resample.replicate_sums(feature.terms, weight)
    if feature.bins is None:
        sums, of_bins = of_cells_and_bins(row, sums)
    else:
        of_bins = resample.replicate_sums(feature.bins, weight)
    return estimates_from_sums(row, sums, of_bins, centering, studentize=studentize)


def estimates_from_sums(
    row: FeatureResult,
    sums: FloatArray,
    of_bins: FloatArray,
    centering: str,
    *,
    studentize: bool = False,
) -> dict[str, FloatArray]:
    """Estimates of one feature from sums over its cells and its bins, (draw, ...)."""
    n_bins, cells, in_cells = row.sizes["bin"], row.curve_cells, row.has_cells
    bin_edges = row.pieces.edges
    bins = resample.replicates(row.pieces, of_bins, centering, places=not studentize)
    on_cells = bins
    if in_cells:
        on_cells = resample.replicates(cells.pieces, sums, centering, keep=cells.variance)
    on_curve, pieces = on_cells, cells.pieces
    if (cells.stretch.start, cells.stretch.stop) != (0, len(cells.bin)):
        pieces = pieces.stretch(cells.stretch)
        keep = None if not in_cells else cells.variance[cells.stretch]
        on_curve = resample.replicates(pieces, sums[:, cells.stretch], centering, keep=keep)
    # Edges of bins on the stretch that has a curve, and which of its cells' edges they are.
    on_stretch = (bin_edges >= pieces.edges[0]) & (bin_edges <= pieces.edges[-1])
    unknown = np.isnan(bins.effect)
    positions = np.searchsorted(pieces.edges, bin_edges[on_stretch])
    curve = np.full((len(sums), n_bins + 1), np.nan)
    curve[:, on_stretch] = on_curve.curve[:, positions]
    width = np.diff(bin_edges)
    level, _ = cells.loading
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.sqrt(bins.variance)
        effect = bins.effect
        if in_cells:
            effect = kernel.effects(on_cells.mean, level, cells.bin)
            effect = np.where(unknown, np.nan, effect)
        out = {
            "effect": effect,
            "slope": np.where(row.slopes != 0, bins.slope, 0.0 * bins.effect),
            "heterogeneity": spread,
            "curve": curve,
            "average_effect": np.nansum(bins.share * bins.mean, axis=1),
            "heterogeneity_index": np.nansum(width * bins.residual, axis=1),
            "heterogeneity_output": _output(bins),
            "n_empty": unknown.sum(axis=1).astype(np.float64),
            "curve_mean": on_curve.mean_of_curve(pieces.edges),
            **on_curve.sizes(pieces.edges)._asdict(),
        }
        if studentize and bins.fourth_moment is not None:
            noise = np.where(
                level > 0, level**2 * on_cells.error_variance / on_cells.n_effective, 0.0
            )
            starts = np.flatnonzero(np.diff(cells.bin, prepend=-1))
            out["effect_se"] = np.sqrt(np.add.reduceat(noise, starts, axis=1))
            out["heterogeneity_se"] = bins.heterogeneity_se()
            curve_se = np.full_like(curve, np.nan)
            curve_se[:, on_stretch] = on_curve.curve_se(pieces.edges, centering)[:, positions]
            out["curve_se"] = curve_se
            out["average_effect_se"] = bins.average_effect_se()
    return out


def of_cells_and_bins(row: FeatureResult, sums: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Sums over the cells of the curve, and over the bins that they make up or are."""
    if not row.has_cells:
        return sums, sums
    cells = row.curve_cells
    of_bins = resample.of_unions(sums, cells.pieces, row.pieces, cells.bin)
    return sums[..., : resample.SUMS], of_bins


def _output(bins: resample.BinReplicates) -> FloatArray:
    """heterogeneity_output of every replicate, math [10]."""
    share, usable = bins.share, np.isfinite(bins.variance)
    n_together = 1 / np.nansum(share**2 / bins.n_effective, axis=1)
    mean = np.nansum(share * bins.x_mean, axis=1, keepdims=True)
    spread = np.nansum(share * (bins.x_moments[0] + (bins.x_mean - mean) ** 2), axis=1)
    share, variance = [np.where(usable, values, 0.0) for values in (share, bins.variance)]
    squares = np.sum(share * variance, axis=1) / share.sum(axis=1)
    return np.asarray(np.sqrt(spread * n_together / (n_together - 1) * squares))


# Units whose influences are in memory at once, near the processor.
UNITS = 1 << 11
ACCELERATIONS = ("effect_acceleration", "heterogeneity_acceleration", "curve_acceleration")


def accelerations(
    rows: Rows, local: xr.Dataset, effect: xr.Dataset, units: resample.ResampledUnits
) -> dict[str, Any]:
    """Accelerations of all features: sum psi^3 / (6 (sum psi^2)^(3/2)) over the units."""
    unit = np.arange(rows.n_rows) if units.unit is None else units.unit
    # A unit with frequency k represents k rows, each with 1/k of its influence.
    size = np.ones(int(unit.max()) + 1) if units.size is None else units.size
    estimates: list[dict[str, Any]] = []
    for row in each_feature(effect):
        if not row.sizes["bin"]:
            estimates.append(dict.fromkeys(ACCELERATIONS, np.nan))
            continue
        clusters = Clusters(rows, local, unit, len(size))
        values = _accelerations(row, clusters, size)
        estimates.append(dict(zip(ACCELERATIONS, values, strict=True)))
        if units.unit is not None:
            estimates[-1] |= degrees_of_groups(row, row.fit, clusters)
            estimates[-1]["curve_df"] = estimates[-1]["curve_df"][row.bin_edge_numbers]
    arrays = pad_features(estimates, {"bin": effect.sizes["bin"], "edge": effect.sizes["bin"] + 1})
    return {
        name: variable(name, values, EFFECT, _over_bins(name)) for name, values in arrays.items()
    }


def _accelerations(
    row: FeatureResult, clusters: Clusters, size: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Accelerations of the effect, the heterogeneity and the curve of one feature."""
    fit, every = row.fit, row.curve_cells.pieces
    cells, bins = row_influences(row, fit, clusters)
    on_curve, stretch = cells, fit.cells.stretch
    if not row.is_categorical and len(every.share) != stretch.stop - stretch.start:
        # The curve is known only on a stretch of the axis: use the rows there.
        on_curve = clusters.curve_sums(row, fit, fit.pieces).row_sums(fit.pieces, fit.curve)
    return (
        _acceleration(*_powers(effect_influences(cells, fit.cells), size)),
        _acceleration(*_powers(bins.variance, size)),
        _curve_accelerations(row, fit, on_curve, size),
    )


def _curve_accelerations(
    row: FeatureResult, fit: CurveErrors, sums: influence.RowSums, size: FloatArray
) -> FloatArray:
    """Accelerations of the curve at the edges of the bins, a block of units at a time."""
    edges = row.bin_edges
    on_stretch = (edges >= fit.pieces.edges[0]) & (edges <= fit.pieces.edges[-1])
    loadings = fit.loadings(edges[on_stretch])
    second, third = np.zeros((2, int(on_stretch.sum())))
    for begin in range(0, len(size), UNITS):
        block = slice(begin, begin + UNITS)
        influences = sums.of_curve(loadings, population=fit.centering == "mean", rows=block)
        share, square = 1 / size[block], influences * influences
        second += share @ square
        square *= influences
        third += share**2 @ square
    out = np.full(len(edges), np.nan)
    out[on_stretch] = _acceleration(second, third)
    return out


def _powers(table: Any, size: FloatArray) -> tuple[FloatArray, FloatArray]:
    square = table.multiply(table)
    # Products: general powers take several times as long.
    return square.T @ (1 / size), square.multiply(table).T @ (1 / size**2)


def _acceleration(second: FloatArray, third: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(second > 0, third / (6 * second**1.5), 0.0)


# --- rows in memory or in chunks ------------------------------------------------------------------


# Bytes of the sums of one chunk, of which a few are held at a time.
MAX_BYTES = 1 << 30
# Draws of which weights are made at a time.
DRAWS = 32


def bootstrap(local: xr.Dataset, effect: xr.Dataset | None, request: Resampling) -> Replication:
    """`bootstrap` of effects in bins, of rows in memory or in chunks."""
    chunked = LOCAL.holds(local) and is_chunked(local)
    if not chunked:
        return in_memory(local, effect, request)
    local = check_local(local, in_chunks=True)
    effect = check_effect(effect)
    check_same_output(local, effect, ("local", "effect"))
    _check_asked(effect, request)
    local = estimation_rows(local, effect)
    rows = ChunkedRows(local)
    used = [row for row in each_feature(effect) if row.sizes["bin"]]
    n_draws, n_cells = len(request.seeds), sum(len(row.curve_cells.bin) for row in used)
    n_bytes = 8 * n_draws * (resample.SUMS + 2) * n_cells
    if n_bytes > MAX_BYTES:
        raise ValueError(
            f"n_resamples must be fewer where local effects are in chunks: sums of {n_draws} "
            f"replicates of {len(used)} features need {n_bytes / 2**30:.1f} GiB a chunk. Take "
            f"{max(int(n_draws * MAX_BYTES / n_bytes), 2)}, or some of the features."
        )
    seed = int(request.seeds[0].integers(2**63))
    positions = [feature_position(local, row.name) for row in used]
    of_chunk = _Sums(used, positions, seed, n_draws)
    numbers = range(len(rows.lengths))
    merged = rows.merged(of_chunk, _added, "bootstrap", beside=numbers, progress=request.progress)
    check_same_chunks(rows, local, effect)
    centering = str(effect.attrs["centering"])
    out = nothing(effect, n_draws, studentize=False)
    for row, sums in zip(used, merged, strict=True):
        estimates = estimates_from_sums(row, *of_cells_and_bins(row, sums), centering)
        _fill(out, slice(None), row.position, estimates)
    counted = float(np.nansum(used[0].n_effective)) if used else rows.n_rows
    units = resample.ResampledUnits(None, [np.zeros(1, dtype=np.int64)], np.array([counted]))
    return Replication(labelled_replicates(out, effect), units, effect, {"bins": "fixed"})


def _check_asked(effect: xr.Dataset, request: Resampling) -> None:
    """Raise ``ValueError`` for what needs all rows at once."""
    refuse_categorical(effect, "bootstrap of local effects in chunks")
    refused = {
        "scheme must be 'poisson', which draws every row by itself": request.scheme != "poisson",
        "groups must be None": request.groups is not None,
        "strata must be None": request.strata is not None,
        "rebin must be False": request.rebin,
        "studentize must be False": request.studentize,
    }
    for text, is_refused in refused.items():
        if is_refused:
            raise ValueError(
                f"{text} where local effects are in chunks. Or use local.compute(), or the rows of "
                f"a sample."
            )
    if "debiased" in effect.attrs:
        raise ValueError(
            "effect must be of means, as rhale or std_error returned it, where local effects are "
            "in chunks."
        )


def _added(chunks: Sequence[list[FloatArray]]) -> list[FloatArray]:
    return [np.sum(each, axis=0) for each in zip(*chunks, strict=True)]


@dataclass(frozen=True)
class _Sums:
    """Sums of one chunk of rows over cells, for all replicates: (draw, cell, product) a feature.

    Every row is drawn a Poisson number of times, by a random stream of the chunk.
    """

    features: Sequence[FeatureResult]
    positions: Sequence[int]
    seed: int
    n_draws: int

    def __call__(self, rows: Rows, number: int) -> list[FloatArray]:
        rng = np.random.default_rng(np.random.SeedSequence([self.seed, number]))
        terms_of_features = [
            _terms(row, rows, position, row.curve_cells.pieces, studentize=False)
            for row, position in zip(self.features, self.positions, strict=True)
        ]
        units = resample.ResampledUnits(None, [np.arange(rows.n_rows)], rows.weight)
        parts: list[list[FloatArray]] = [[] for _ in terms_of_features]
        with one_blas_thread:
            for begin in range(0, self.n_draws, DRAWS):
                n = min(DRAWS, self.n_draws - begin)
                weight = resample.counts_of("poisson", units, [rng] * n, rows.n_rows)
                for part, terms in zip(parts, terms_of_features, strict=True):
                    part.append(resample.replicate_sums(terms, weight))
        return [np.concatenate(part) for part in parts]
