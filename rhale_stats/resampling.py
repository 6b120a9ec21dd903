"""Bootstrap, refits and folds: how much estimates vary, seen by making them again (math [28]-[30]).

With bins fixed a replicate is a weight for every row and its estimates are weighted moments: the
model is never asked again. All features and all statistics share the weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from tqdm import tqdm

from rhale_stats.arrays import accumulate, categories, influence, resample
from rhale_stats.arrays import cells as kernel
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.bins import DEFAULT_BINS, BinRule, for_share_of_rows, rule_of
from rhale_stats.by_part import each_part, own_rows
from rhale_stats.curves import Fine, curve_of, fine_of, has_cells, pieces_of
from rhale_stats.draws import GRID, Drawn, Resampling, check_resamples, in_chains
from rhale_stats.effects import (
    PROGRESS_DELAY,
    Rows,
    check_same_rows,
    columns,
    is_used_row,
    quiet_rhale,
)
from rhale_stats.identity import (
    check_same_output,
    row_labels,
)
from rhale_stats.inference import at_edges, fit_of, level_sums, on_effects
from rhale_stats.models import as_array
from rhale_stats.parallel import cpus, one_blas_thread
from rhale_stats.schema import (
    EFFECT_VARIABLES,
    Estimates,
    check_effect,
    check_local,
    effect_at,
    feature_names,
    feature_position,
    is_categorical,
    one_feature,
    refuse_categorical,
    software,
    stacked,
    variable,
)
from rhale_stats.seeds import seeded
from rhale_stats.sizes import SIZES
from rhale_stats.validate import check_count, checked, row_codes, warn

# Weights of this many bytes are held at once, by all threads together.
CHUNK_BYTES = 1 << 28
# So many replicates at once: more gain nothing, unless rows are few, up to so many weights.
CHUNK_DRAWS = 32
CHUNK_WEIGHTS = 1 << 17
PER_BIN = ("effect", "heterogeneity", "slope", "effect_se", "heterogeneity_se")
PER_EDGE = ("curve", "curve_se")
TOTALS = ("average_effect", "heterogeneity_index", "heterogeneity_output", *SIZES)


def bootstrap(local: xr.Dataset, effect: xr.Dataset | None, asked: Resampling) -> Drawn:
    """`bootstrap` of effects in bins, which are held, or chosen again on every sample."""
    local, effect = check_local(local), check_effect(effect)
    check_same_output(local, effect, ("local", "effect"))
    if "debiased" in effect.attrs:
        raise ValueError("effect must be what rhale or std_error returned; this one is debiased.")
    if asked.rebin or asked.studentize:
        refuse_categorical(effect, "bootstrap with rebin or studentize")
    used = is_used_row(local, effect)
    rows = columns(local.isel(obs=used))
    if asked.rebin and rows.frequency and rows.weight is not None:
        raise ValueError(
            "rebin must be False with frequency weights: a row that is drawn twice would count "
            "once. Repeat the rows instead, or take weight_kind='precision'."
        )
    for name in feature_names(effect):
        row = one_feature(effect, name)
        if row.sizes["bin"]:
            check_same_rows(row, rows, feature_position(local, name))
    counts = rows.weight if rows.frequency else None
    units = asked.units(rows.n_rows, counts, used, row_labels(local))
    if asked.rebin:
        replicates = _rebinned(local.isel(obs=used), effect, units, asked)
        return Drawn(replicates, units, effect, {"bins": "chosen again in every replicate"})
    return Drawn(_fixed(rows, local, effect, units, asked), units, effect, {"bins": "fixed"})


class _Feature(NamedTuple):
    """One feature with its rows in order, ready to be weighted.

    ``terms`` are those of its bins, ``of_cells`` those of the cells of its curve where there are
    any; ``cells`` are the bins themselves where there are none.
    """

    row: xr.Dataset
    pieces: accumulate.Pieces
    cells: Fine
    terms: resample.Terms
    of_cells: resample.Terms | None = None
    # Of a feature with levels: rows by their level.
    at_levels: resample.Terms | None = None


def _fixed(
    rows: Rows,
    local: xr.Dataset,
    effect: xr.Dataset,
    units: resample.Units,
    asked: Resampling,
) -> xr.Dataset:
    """Replicates in the bins of ``effect``, over (draw, feature, ...)."""
    scheme, seeds, studentize = asked.scheme, asked.seeds, asked.studentize
    linear = "slope" in effect and bool((effect["slope"] != 0).any())
    if studentize and linear and "cell_effect" not in effect:
        raise ValueError(
            "studentize must be False with linear bins and weighting='rows', whose replicates have "
            "no standard errors. "
            "Use confint(effect, boot, method='bca')."
        )
    centering = str(effect.attrs["centering"])
    features: list[_Feature | None] = []
    for number, name in enumerate(feature_names(effect)):
        row = one_feature(effect, number)
        position = feature_position(local, name)
        if not row.sizes["bin"]:
            features.append(None)
            continue
        x, g = rows.x[position], rows.local_effect[position]
        pieces = pieces_of(row)
        if is_categorical(row):
            features.append(_feature_of_levels(row, pieces, rows, position))
            continue
        k = bin_index(row["edge_value"].values, x)
        made = resample.terms(
            pieces, k, x, g, rows.weight, frequency=rows.frequency, standard_errors=studentize
        )
        cells, of_cells = fine_of(row), None
        if has_cells(row):
            k = bin_index(cells.pieces.edges, x)
            of_cells = resample.terms(
                cells.pieces, k, x, g, rows.weight, frequency=rows.frequency,
                standard_errors=studentize,
            )  # fmt: skip
        features.append(_Feature(row, pieces, cells, made, of_cells))
    names = [*PER_BIN, *PER_EDGE, *TOTALS, "average_effect_se", "curve_mean", "n_empty"]
    if not studentize:
        names = [name for name in names if not name.endswith("_se")]
    if "slope" not in effect:
        names.remove("slope")
    sizes = {"feature": len(features), **{dim: effect.sizes[dim] for dim in ("bin", "edge")}}
    out = {
        name: np.full((len(seeds), *(sizes[dim] for dim in EFFECT_VARIABLES[name][0])), np.nan)
        for name in names
    }

    def chunk(first: int) -> int:
        streams = seeds[first : first + size]
        weight = resample.weights_of(scheme, units, streams, rows.n_rows)
        for position, feature in enumerate(features):
            if feature is None:
                continue
            found = _replicates(feature, weight, centering, studentize)
            for name, values in found.items():
                if name in out:
                    at = (slice(first, first + len(streams)), position)
                    out[name][at + tuple(slice(n) for n in values.shape[1:])] = values
        return len(streams)

    threads = cpus()
    # Threads come before draws: of these there are as many as one product of matrices likes.
    threads = int(np.clip(CHUNK_BYTES // (16 * rows.n_rows * resample.BLOCK), 1, threads))
    size = CHUNK_BYTES // (16 * rows.n_rows * threads)
    most = max(CHUNK_DRAWS, CHUNK_WEIGHTS // rows.n_rows // CHUNK_DRAWS * CHUNK_DRAWS)
    size = int(np.clip(size // resample.BLOCK * resample.BLOCK, resample.BLOCK, most))
    firsts = range(0, len(seeds), size)
    # Small products on threads of ours: more threads in each of them would stand in their way.
    with (
        one_blas_thread,
        ThreadPoolExecutor(threads) as pool,
        _bar(len(seeds), progress=asked.progress) as bar,
    ):
        for done in pool.map(chunk, firsts):
            bar.update(done)
    coords = {name: effect.coords[name] for name in effect.coords if name != "line_moment"}
    return xr.Dataset(
        {
            name: (
                ("draw", *EFFECT_VARIABLES[name][0]),
                values,
                {
                    "long_name": EFFECT_VARIABLES[name][1],
                    "units": EFFECT_VARIABLES[name][2],
                },
            )
            for name, values in out.items()
        },
        coords,
    ).assign(_accelerations(rows, local, effect, units))


def _feature_of_levels(
    row: xr.Dataset, pieces: accumulate.Pieces, rows: Rows, position: int
) -> _Feature:
    """A feature with levels: its rows in order of steps, twice where they are in two."""
    assert rows.sides is not None
    code, weight = rows.x[position].astype(np.int64), rows.weight
    of = categories.steps(code, *rows.sides[position], row.sizes["edge"])

    def ordered(k: IntArray, row_of: IntArray, g: FloatArray, bins: accumulate.Pieces) -> Any:
        w = None if weight is None else weight[row_of]
        place = code[row_of].astype(np.float64)
        made = resample.terms(bins, k, place, g, w, frequency=rows.frequency, standard_errors=False)
        return made._replace(order=row_of[made.order])

    none = np.zeros(row.sizes["edge"])
    levels = accumulate.Pieces(none, none, none, none, none, none)
    at_levels = ordered(code, np.arange(rows.n_rows), np.zeros(rows.n_rows), levels)
    made = ordered(of.step, of.row, of.difference, pieces)
    return _Feature(row, pieces, fine_of(row), made, at_levels=at_levels)


def _level_replicates(
    feature: _Feature, at_levels: resample.Terms, weight: FloatArray, centering: str
) -> dict[str, FloatArray]:
    """Estimates of one feature with levels, (draw, ...)."""
    found = resample.replicates(
        feature.pieces, resample.replicate_sums(feature.terms, weight), "start"
    )
    sums = resample.replicate_sums(at_levels, weight)
    own, squares = sums[..., 0], sums[..., 1]
    share = own / own.sum(axis=1, keepdims=True)
    curve, _ = categories.curve(found.effect, share, centering)
    curve[np.isnan(curve).any(axis=1)] = np.nan
    spread = np.sqrt(found.variance)
    n = own.sum(axis=1) ** 2 / squares.sum(axis=1)
    in_steps = own[:, :-1] + own[:, 1:]
    return {
        "effect": found.effect,
        "slope": 0.0 * found.effect,
        "heterogeneity": spread,
        "curve": curve,
        "average_effect": np.nansum(in_steps * found.mean, axis=1) / in_steps.sum(axis=1),
        "heterogeneity_index": np.nansum(found.residual, axis=1),
        "heterogeneity_output": categories.heterogeneity_output(found.variance, in_steps, share, n),
        "n_empty": np.isnan(found.effect).sum(axis=1).astype(np.float64),
        "curve_mean": np.sum(share * curve, axis=1),
        **dict(zip(SIZES, categories.sizes(curve, share), strict=True)),
    }


def _replicates(
    feature: _Feature, weight: FloatArray, centering: str, studentize: bool
) -> dict[str, FloatArray]:
    """Estimates of one feature under every column of weights, (draw, ...)."""
    if feature.at_levels is not None:
        return _level_replicates(feature, feature.at_levels, weight, centering)
    n_bins, cells = len(feature.pieces.mean), feature.cells
    bin_edges = feature.pieces.edges
    sums = resample.replicate_sums(feature.terms, weight)
    found = resample.replicates(feature.pieces, sums, centering, places=not studentize)
    on_cells, of_cells = found, feature.terms
    if feature.of_cells is not None:
        of_cells = feature.of_cells
        sums = resample.replicate_sums(of_cells, weight)
        on_cells = resample.replicates(cells.pieces, sums, centering, keep=cells.variance)
    on_curve, pieces = on_cells, cells.pieces
    if (cells.here.start, cells.here.stop) != (0, len(cells.bin)):
        pieces = pieces.stretch(cells.here)
        keep = None if feature.of_cells is None else cells.variance[cells.here]
        on_curve = resample.replicates(pieces, sums[:, cells.here], centering, keep=keep)
    # Edges of bins on the stretch that has a curve, and which of its cells' edges they are.
    there = (bin_edges >= pieces.edges[0]) & (bin_edges <= pieces.edges[-1])
    unknown = np.isnan(found.effect)
    at = np.searchsorted(pieces.edges, bin_edges[there])
    curve = np.full((len(sums), n_bins + 1), np.nan)
    curve[:, there] = on_curve.curve[:, at]
    width = np.diff(bin_edges)
    level, _ = cells.loading
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.sqrt(found.variance)
        effect = found.effect
        if feature.of_cells is not None:
            effect = kernel.effects(on_cells.mean, level, cells.bin)
            effect = np.where(unknown, np.nan, effect)
        out = {
            "effect": effect,
            "slope": np.where(feature.pieces.slope != 0, found.slope, 0.0 * found.effect),
            "heterogeneity": spread,
            "curve": curve,
            "average_effect": np.nansum(found.share * found.mean, axis=1),
            "heterogeneity_index": np.nansum(width * found.residual, axis=1),
            "heterogeneity_output": _output(found),
            "n_empty": unknown.sum(axis=1).astype(np.float64),
            "curve_mean": on_curve.mean_of_curve(pieces.edges),
            **on_curve.sizes(pieces.edges)._asdict(),
        }
        if studentize and found.fourth_moment is not None:
            noise = np.where(level > 0, level**2 * on_cells.variance / on_cells.n_effective, 0.0)
            starts = np.flatnonzero(np.diff(cells.bin, prepend=-1))
            out["effect_se"] = np.sqrt(np.add.reduceat(noise, starts, axis=1))
            out["heterogeneity_se"] = accumulate.heterogeneity_se(
                found.variance, found.fourth_moment, found.n_effective
            )
            curve_se = np.full_like(curve, np.nan)
            curve_se[:, there] = on_curve.curve_se(pieces.edges, centering)[:, at]
            out["curve_se"] = curve_se
            out["average_effect_se"] = found.average_effect_se()
    return out


def _output(found: resample.Replicates) -> FloatArray:
    """heterogeneity_output of every replicate, math [10]."""
    n_together = 1 / np.nansum(found.share**2 / found.n_effective, axis=1)
    mean = np.nansum(found.share * found.x_mean, axis=1, keepdims=True)
    spread = np.nansum(found.share * (found.x_moments[0] + (found.x_mean - mean) ** 2), axis=1)
    known = np.isfinite(found.variance)
    share = np.where(known, found.share, 0.0)
    squares = np.sum(share * np.where(known, found.variance, 0.0), axis=1) / share.sum(axis=1)
    return np.asarray(np.sqrt(spread * n_together / (n_together - 1) * squares))


def _accelerations(
    rows: Rows, local: xr.Dataset, effect: xr.Dataset, units: resample.Units
) -> dict[str, Any]:
    """Accelerations for "bca": sum psi^3 / (6 (sum psi^2)^(3/2)), by the influence of each unit."""
    unit = np.arange(rows.n_rows) if units.unit is None else units.unit
    n_units = int(unit.max()) + 1
    # A unit that stands for several moves what so many would, each its share.
    size = np.ones(n_units) if units.size is None else units.size
    found: list[Estimates] = []
    for number, name in enumerate(feature_names(effect)):
        row = one_feature(effect, number)
        names = ("effect", "heterogeneity", "curve")
        if not row.sizes["bin"]:
            found.append({f"{name}_acceleration": np.nan for name in names})
            continue
        position = feature_position(local, name)
        if is_categorical(row):
            sums = level_sums(row, rows, position, unit, n_units)
            at = fit_of(row).loadings(row["edge_value"].values)
            moved = sums.of_curve(at, population=str(row.attrs["centering"]) == "mean")
            powers = [
                np.sum(moved**power / size[:, None] ** (power - 1), axis=0) for power in (2, 3)
            ]
            found.append(
                {
                    "effect_acceleration": _acceleration(*_powers(sums.mean, size)),
                    "heterogeneity_acceleration": _acceleration(*_powers(sums.variance, size)),
                    "curve_acceleration": _acceleration(*powers),
                }
            )
            continue
        x, g = rows.x[position], rows.local_effect[position]
        fit, weight = fit_of(row), rows.weight
        every, curve = fit.cells.pieces, curve_of(row).at(fit.cells.pieces.edges)
        k = bin_index(every.edges, x)
        sums = influence.row_sums(every, curve, k, x, g, weight, unit, n_units)
        of_effect, of_variance = on_effects(sums, fit.cells), sums.variance
        if has_cells(row):
            bins = pieces_of(row)
            at_bins = bin_index(bins.edges, x)
            of_variance = influence.row_sums(
                bins, np.zeros(len(bins.edges)), at_bins, x, g, weight, unit, n_units
            ).variance
        here, centering, pieces = fit.cells.here, fit.centering, fit.pieces
        if len(every.share) != here.stop - here.start:
            inside = (k >= here.start) & (k < here.stop)
            k, x, g = k[inside] - here.start, x[inside], g[inside]
            weight = None if weight is None else weight[inside]
            sums = influence.row_sums(pieces, fit.curve, k, x, g, weight, unit[inside], n_units)
        at = fit.loadings(fit.edges)
        second, third = np.zeros((2, len(fit.edges)))
        for begin in range(0, n_units, influence.BLOCK_ROWS):
            part = slice(begin, begin + influence.BLOCK_ROWS)
            moved = sums.of_curve(at, population=centering == "mean", rows=part)
            one = size[part, None]
            second += np.sum(moved**2 / one, axis=0)
            third += np.sum(moved**3 / one**2, axis=0)
        curve = at_edges(_acceleration(second, third), fit)
        found.append(
            {
                "effect_acceleration": _acceleration(*_powers(of_effect, size)),
                "heterogeneity_acceleration": _acceleration(*_powers(of_variance, size)),
                "curve_acceleration": curve,
            }
        )
    return {
        name: variable(name, values) for name, values in stacked(found, effect.sizes["bin"]).items()
    }


def _powers(table: Any, size: FloatArray) -> tuple[FloatArray, FloatArray]:
    return table.power(2).T @ (1 / size), table.power(3).T @ (1 / size**2)


def _acceleration(second: FloatArray, third: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(second > 0, third / (6 * second**1.5), 0.0)


def _rebinned(
    local: xr.Dataset,
    effect: xr.Dataset,
    units: resample.Units,
    asked: Resampling,
) -> xr.Dataset:
    """Replicates with edges of their own, on a grid of each feature, over (draw, feature, ...)."""
    scheme, seeds, n_grid = asked.scheme, asked.seeds, asked.n_grid
    check_count("n_grid", n_grid, 2)
    rule = rule_of(str(effect.attrs["bin_rule"]), str(effect.attrs["bin_parameters"]))
    centering = str(effect.attrs["centering"])
    weighting = str(effect.attrs.get("weighting", "rows"))
    names = feature_names(effect)
    local = local.isel(feature=[feature_position(local, name) for name in names])
    grid = _grid(effect, n_grid)
    base = local["weight"].values if "weight" in local else np.ones(local.sizes["obs"])
    shape = (len(seeds), len(names), n_grid)
    out = {name: np.full(shape, np.nan) for name in ("effect", "heterogeneity", "curve")}
    n_bins = np.zeros(shape[:2])
    hits = np.zeros((len(seeds), len(names), n_grid - 1), dtype=bool)

    def replicate(draw: int) -> None:
        weight = base * resample.draw_weights(scheme, units, seeds[draw])
        sample = local.assign(weight=("obs", weight)).assign_attrs(weight_kind="precision")
        own_rule = for_share_of_rows(rule, _n_effective(weight) / _n_effective(base))
        made = _on_grid(sample, own_rule, centering, weighting, grid)
        n_bins[draw] = made.pop("n_bins")
        hits[draw] = made.pop("hits")
        for name, values in made.items():
            out[name][draw] = values

    with (
        ThreadPoolExecutor(cpus()) as pool,
        _bar(len(seeds), progress=asked.progress) as bar,
    ):
        for _ in pool.map(replicate, range(len(seeds))):
            bar.update(1)
    described = {name: EFFECT_VARIABLES[name][1:] for name in out}
    return xr.Dataset(
        {
            **{
                name: (
                    ("draw", "feature", "grid"),
                    values,
                    {"long_name": described[name][0], "units": described[name][1]},
                )
                for name, values in out.items()
            },
            "n_bins": (
                ("draw", "feature"),
                n_bins,
                {"long_name": "number of bins", "units": "bins"},
            ),
            "edge_frequency": (
                ("feature", "grid_cell"),
                hits.mean(axis=0),
                {"long_name": "share of replicates with an edge in the cell", "units": "1"},
            ),
        },
        {
            "feature": effect["feature"].variable,
            "feature_kind": effect["feature_kind"].variable,
            "feature_units": effect["feature_units"].variable,
            "grid_value": (("feature", "grid"), grid, {"long_name": "point of the grid"}),
        },
    )


def _n_effective(weight: FloatArray) -> float:
    """Kish's number of rows: with rows drawn again about half of them."""
    return float(weight.sum() ** 2 / np.sum(weight**2))


def _on_grid(
    local: xr.Dataset, rule: BinRule, centering: str, weighting: str, grid: FloatArray
) -> dict[str, NDArray[Any]]:
    """One replicate with edges of its own, evaluated on the grids of the features."""
    kept = local.isel(obs=local["weight"].values > 0)
    effect = quiet_rhale(
        kept, bins=rule, centering=centering, weighting=weighting, std_error_moments=False
    )
    shape = grid.shape
    out: dict[str, NDArray[Any]] = _evaluated(effect, grid)
    out["hits"] = np.zeros((shape[0], shape[1] - 1), dtype=bool)
    out["n_bins"] = effect["n_bins"].values.astype(np.float64)
    for number in np.flatnonzero(effect["n_bins"].values):
        inner = one_feature(effect, int(number))["edge_value"].values[1:-1]
        out["hits"][number, bin_index(grid[number], inner)] = True
    return out


def _grid(effect: xr.Dataset, n_grid: int) -> FloatArray:
    """Points along the axis of every feature, (feature, grid); NaN for a constant one."""
    grid = np.full((effect.sizes["feature"], n_grid), np.nan)
    for number in np.flatnonzero(effect["n_bins"].values):
        edges = one_feature(effect, int(number))["edge_value"].values
        grid[number] = np.linspace(edges[0], edges[-1], n_grid)
    return grid


def _evaluated(effect: xr.Dataset, grid: FloatArray) -> dict[str, FloatArray]:
    """Effect, heterogeneity and curve at points of (feature, grid); NaN outside the bins."""
    out = {name: np.full(grid.shape, np.nan) for name in ("effect", "heterogeneity", "curve")}
    # Selecting a feature takes its time with every variable that there is.
    needed = (*out, "slope", "cell_effect", "cell_curve", "cell_value")
    effect = effect[[name for name in needed if name in effect]]
    for number in np.flatnonzero(effect["n_bins"].values):
        row, z = one_feature(effect, int(number)), grid[number]
        edges = row["edge_value"].values
        inside = (z >= edges[0]) & (z <= edges[-1])
        k = bin_index(edges, z)
        out["effect"][number] = np.where(inside, effect_at(row, z, k), np.nan)
        out["heterogeneity"][number] = np.where(inside, row["heterogeneity"].values[k], np.nan)
        out["curve"][number] = curve_of(row).at(z)
    return out


def _bar(total: int, what: str = "bootstrap", *, progress: bool) -> tqdm[Any]:
    return tqdm(total=total, desc=what, delay=PROGRESS_DELAY, disable=not progress, leave=False)


@checked
@seeded
def bootstrap_refit(
    fit: Callable[[Any], xr.Dataset],
    data: Any,
    *,
    n_resamples: int = 100,
    chains: int = 4,
    groups: ArrayLike | None = None,
    n_grid: int = GRID,
    jobs: int | None = None,
    rng: np.random.Generator | int | None = None,
    progress: bool = True,
) -> xr.Dataset:
    r"""Bootstrap with the model fitted again to every replicate of the rows (math [30]).

    Parameters
    ----------
    fit : callable
        Takes a table of rows like ``data`` and returns an effect: it fits the model, takes local
        effects and makes `rhale` of them. It runs in other processes; any function will do, a
        lambda as well.
    data : DataFrame, or array_like of shape (n_rows, n_columns)
        All that ``fit`` needs, outcomes included.
    n_resamples : int, default 100
        Replicates of all chains together, a multiple of ``chains``.
    chains : int, default 4
        Independent streams.
    groups : array_like of shape (n_rows,), optional
        Rows of one group are drawn together.
    n_grid : int, default 101
        Points of the grid on which the curves are compared, over the range of the estimate.
    jobs : int, optional
        Processes; by default as many as there are CPUs for this process.
    rng : Generator, int or None
        Source of the rows, or its seed, as in `bootstrap`. Every replicate has a stream of its own.
    progress : bool, default True
        Show a bar where it takes long.

    Returns
    -------
    Dataset
        As `bootstrap` with ``rebin=True``: ``effect``, ``heterogeneity`` and ``curve`` over (chain,
        draw, feature, grid), ``average_effect`` over (chain, draw, feature), and the estimate from
        all rows, ``effect_estimate``, ``heterogeneity_estimate``, ``curve_estimate`` over (feature,
        grid). ``source`` is "refit". A replicate whose fit raised is NaN, ``failed`` (chain, draw)
        is 1 and the first reason is in the attributes.

    Raises
    ------
    ValueError
        ``n_resamples`` is no multiple of ``chains``; every fit failed; ``fit`` returned effects of
        other features.
    TypeError
        ``fit`` returned something else than an effect.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(200, 1))
    >>> data = np.column_stack([X, 3 * X + rng.normal(size=X.shape)])
    >>> def fit(rows):
    ...     slope = np.polyfit(rows[:, 0], rows[:, 1], 1)[0]
    ...     local = rs.local_effects(lambda X: slope * X[:, 0], rows[:, :1], features=0)
    ...     return rs.rhale(local, centering="start")
    >>> boot = rs.bootstrap_refit(fit, data, n_resamples=100, jobs=1, rng=0)
    >>> float(boot["average_effect"].std().round(2))  # least squares says 0.24
    0.23
    """
    check_resamples(n_resamples, chains)
    check_count("n_grid", n_grid, 2)
    table = data if isinstance(data, pd.DataFrame) else as_array(data, "data must hold")
    n_rows = len(table)
    group = None
    if groups is not None:
        labels = table.index.to_numpy() if isinstance(table, pd.DataFrame) else None
        group = row_codes(groups, labels, np.ones(n_rows, dtype=bool), "groups", "rows of data")
    whole = check_effect(fit(table), "what fit returns", "rhale(local)")
    names = feature_names(whole)
    grid = _grid(whole, n_grid)
    refit = _Refit(fit, table, group, grid, tuple(names))
    streams = np.random.default_rng(rng).spawn(n_resamples)
    if jobs is not None:
        check_count("jobs", jobs, 1)
    # More processes than replicates would only be started and ended.
    jobs = min(jobs or cpus(), n_resamples)
    found: list[dict[str, NDArray[Any]] | str] = []
    with _bar(n_resamples, progress=progress) as bar:
        for one in _mapped(refit, streams, jobs):
            found.append(one)
            bar.update(1)
    reasons = [one for one in found if isinstance(one, str)]
    if len(reasons) == len(found):
        raise ValueError(f"fit must work on resampled rows; all {len(found)} failed: {reasons[0]}")
    shape = {"effect": grid.shape, "heterogeneity": grid.shape, "curve": grid.shape}
    variables = {}
    for name in (*shape, "average_effect"):
        size = shape.get(name, (len(names),))
        values = np.stack(
            [np.full(size, np.nan) if isinstance(one, str) else one[name] for one in found]
        )
        dims = ("draw", "feature", "grid")[: values.ndim]
        _, long_name, units = EFFECT_VARIABLES[name]
        variables[name] = (dims, values, {"long_name": long_name, "units": units})
    estimate = _evaluated(whole, grid)
    for name in shape:
        variables[f"{name}_estimate"] = (
            ("feature", "grid"),
            estimate[name],
            {**variables[name][2], "long_name": f"{variables[name][2]['long_name']}, all rows"},
        )
    failed = np.array([isinstance(one, str) for one in found], dtype=np.float64)
    variables["failed"] = (("draw",), failed, {"long_name": "the fit raised", "units": "1"})
    out = xr.Dataset(
        variables,
        {
            "feature": whole["feature"].variable,
            "feature_kind": whole["feature_kind"].variable,
            "feature_units": whole["feature_units"].variable,
            "grid_value": (("feature", "grid"), grid, {"long_name": "point of the grid"}),
        },
        {
            **whole.attrs,
            "method": "bootstrap",
            "scheme": "multinomial",
            "n_resamples": n_resamples,
            "source": "refit" if groups is None else "refit, groups of rows",
            "model": "fitted again in every replicate",
            "bins": "chosen again in every replicate",
            "first_failure": reasons[0] if reasons else "",
            "software": software(),
        },
    )
    return in_chains(out, chains)


class _Refit(NamedTuple):
    """All that a replicate of a fit needs but for its stream."""

    fit: Callable[[Any], xr.Dataset]
    table: Any
    group: IntArray | None
    grid: FloatArray
    names: tuple[str, ...]

    def __call__(self, stream: np.random.Generator) -> dict[str, NDArray[Any]] | str:
        """Values on the grid, or why there are none."""
        n_rows = len(self.table)
        if self.group is None:
            rows = stream.integers(n_rows, size=n_rows)
        else:
            n_groups = int(self.group.max()) + 1
            members = np.split(
                np.argsort(self.group, kind="stable"), np.bincount(self.group).cumsum()[:-1]
            )
            rows = np.concatenate([members[g] for g in stream.integers(n_groups, size=n_groups)])
        if isinstance(self.table, pd.DataFrame):
            sample = self.table.iloc[rows].reset_index(drop=True)
            sample.attrs = self.table.attrs
        else:
            sample = self.table[rows]
        try:
            effect = self.fit(sample)
        except Exception as error:  # a fit may fail on some resamples, in any way
            return f"{type(error).__name__}: {error}"
        effect = check_effect(effect, "what fit returns", "rhale(local)")
        if tuple(feature_names(effect)) != self.names:
            raise ValueError(
                f"fit must return the same features for all rows and for resampled ones; got "
                f"{', '.join(self.names)} for all, {', '.join(feature_names(effect))} for some."
            )
        return {
            **_evaluated(effect, self.grid),
            "average_effect": np.asarray(effect["average_effect"].values),
        }


# What replicates of a worker process share, set when it starts: tables may be large.
_REFIT: _Refit | None = None


def _start(refit: _Refit) -> None:
    global _REFIT
    _REFIT = refit


def _run(stream: np.random.Generator) -> dict[str, NDArray[Any]] | str:
    assert _REFIT is not None, "a worker starts with its task"
    return _REFIT(stream)


def _mapped(
    refit: _Refit, streams: Sequence[np.random.Generator], jobs: int
) -> Iterator[dict[str, NDArray[Any]] | str]:
    """Results in order, from so many processes."""
    if jobs == 1:
        yield from (refit(stream) for stream in streams)
        return
    # The executor behind joblib, which takes lambdas too; joblib itself would send the table with
    # every replicate. Imported late: it takes a tenth of a second.
    from joblib.externals.loky import ProcessPoolExecutor

    with ProcessPoolExecutor(jobs, initializer=_start, initargs=(refit,)) as pool:
        yield from pool.map(_run, streams, chunksize=max(1, len(streams) // (8 * jobs)))


@checked
@seeded
@each_part
@own_rows
def folds(
    local: xr.Dataset,
    *,
    bins: BinRule | None = None,
    n_folds: int = 5,
    n_repeats: int = 1,
    centering: str = "mean",
    weighting: str = "axis",
    n_grid: int = GRID,
    rng: np.random.Generator | int | None = None,
    progress: bool = True,
) -> xr.Dataset:
    r"""Estimates on folds of the rows, and the standard error that their spread gives (math [28]).

    Parameters
    ----------
    local : Dataset
        What `local_effects` returned.
    bins, centering, weighting
        As in `rhale`; bins are chosen in every fold by itself.
    n_folds : int, default 5
        Folds, at least 2, of about equal numbers of rows.
    n_repeats : int, default 1
        Times that the rows are dealt out again.
    n_grid : int, default 101
        Points of the grid on which the folds are compared, over the range of all rows.
    rng : Generator, int or None
        Source of the folds, or its seed, as in `bootstrap`.
    progress : bool, default True
        Show a bar where it takes long.

    Returns
    -------
    Dataset
        ``effect``, ``heterogeneity`` and ``curve`` over (repeat, fold, feature, grid) at
        ``grid_value``; their means over repeats and folds ``effect_mean`` and so on, and ``_se``
        over (feature, grid): standard deviation over folds, divided by the root of their number,
        averaged over repeats. Beyond the range of a fold's rows it is NaN, and so is the result.

    Raises
    ------
    ValueError
        Fewer rows than folds, or fewer rows in a fold than the rule needs.

    Warns
    -----
    UserWarning
        Some folds have bins without rows; once, with their number.

    Notes
    -----
    The folds' estimates have J times the variance of that of all rows; their mean has the bias
    of a J-th of the rows. With few folds the standard error is itself uncertain, by about
    1 / sqrt(2 (J - 1)) of itself.

    References
    ----------
    Note of June 2021, *Idea in bullets*, section 1.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> local = rs.local_effects(lambda X: 2 * X[:, 0] + 4 * X[:, 0] * X[:, 1], X)
    >>> found = rs.folds(local, bins=rs.EqualWidthBins(1), n_repeats=20, rng=0)
    >>> found["effect_se"].isel(grid=50).round(1).values
    array([0.1, 0.1])
    """
    local = check_local(local)
    check_count("n_folds", n_folds, 2)
    check_count("n_repeats", n_repeats, 1)
    check_count("n_grid", n_grid, 2)
    if "weight" in local:
        local = local.isel(obs=local["weight"].values > 0)
    n_obs = local.sizes["obs"]
    if n_obs < n_folds:
        raise ValueError(
            f"n_folds must not exceed the number of rows; got {n_folds} for {n_obs} rows of "
            f"{', '.join(map(repr, feature_names(local)))}."
        )
    rule: BinRule = DEFAULT_BINS if bins is None else bins
    x = local["x"].transpose("feature", "obs").values
    grid = np.linspace(x.min(axis=1), x.max(axis=1), n_grid).T
    generator = np.random.default_rng(rng)
    names = ("effect", "heterogeneity", "curve")
    out = {name: np.full((n_repeats, n_folds, *grid.shape), np.nan) for name in names}
    n_gaps = 0
    with _bar(n_repeats * n_folds, "folds", progress=progress) as bar:
        for repeat in range(n_repeats):
            order = generator.permutation(n_obs)
            for fold, rows in enumerate(np.array_split(order, n_folds)):
                part = local.isel(obs=np.sort(rows))
                effect = quiet_rhale(
                    part, rule, centering=centering, weighting=weighting, std_error_moments=False
                )
                beyond = effect["bin"].values >= effect["n_bins"].values[:, None]
                n_gaps += bool(((effect["n_obs"].values == 0) & ~beyond).any())
                for name, values in _evaluated(effect, grid).items():
                    out[name][repeat, fold] = values
                bar.update(1)
    if n_gaps:
        warn(
            f"Bins without rows in {n_gaps} of {n_repeats * n_folds} folds: estimates are NaN "
            f"there, and so are their means over folds. Use fewer bins, or fewer folds."
        )
    variables: dict[str, Any] = {}
    for name, values in out.items():
        _, long_name, units = EFFECT_VARIABLES[name]
        about = {"long_name": long_name, "units": units}
        variables[name] = (("repeat", "fold", "feature", "grid"), values, about)
        variables[f"{name}_mean"] = (
            ("feature", "grid"),
            values.mean(axis=(0, 1)),
            {**about, "long_name": f"{long_name}, mean over folds"},
        )
        variables[f"{name}_se"] = (
            ("feature", "grid"),
            (values.std(axis=1, ddof=1) / np.sqrt(n_folds)).mean(axis=0),
            {**about, "long_name": f"standard error of {long_name}", "source": "rows"},
        )
    return xr.Dataset(
        variables,
        {
            "feature": local["feature"],
            "grid_value": (("feature", "grid"), grid, {"long_name": "point of the grid"}),
        },
        {
            "method": "folds",
            "n_folds": n_folds,
            "n_repeats": n_repeats,
            "centering": centering,
            "bin_rule": type(rule).__name__,
            "output_name": local.attrs.get("output_name", "output"),
            "output_units": local.attrs.get("output_units", ""),
            "software": software(),
        },
    )
