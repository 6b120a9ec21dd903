"""Average curves of an explanation, what is reliable, how rows differ, and where: splits."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arguments.words import warn
from rhale_stats.arrays.accumulate import Pieces
from rhale_stats.arrays.answers import Spread, inner_range, spread_of_rows
from rhale_stats.arrays.binning import quantile_edges
from rhale_stats.arrays.intervals import N_DRAWS
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.bins.rules import GivenBins, OptimalBins, QuantileBins
from rhale_stats.diagnostics.checks import check_unbiased
from rhale_stats.effects.ale import ale_from_local
from rhale_stats.effects.comparison import contrast
from rhale_stats.effects.errors import with_std_error
from rhale_stats.effects.fit import Feature, features_of
from rhale_stats.effects.intervals import confband_of, confint, confint_of
from rhale_stats.effects.rhale import quiet_rhale
from rhale_stats.explanation.request import Budget, ExplainRequest
from rhale_stats.generics.hypotheses import compared
from rhale_stats.generics.uncertainty import std_error
from rhale_stats.local.ale import ale_local_effects
from rhale_stats.local.local_effects import local_effects
from rhale_stats.local.rows import MAX_CELLS, repeated_values
from rhale_stats.models.parametric import ROW_NUMBER, has_parameters
from rhale_stats.models.table import check_column
from rhale_stats.outcome.outcome_effects import USUAL
from rhale_stats.parallel import one_blas_thread
from rhale_stats.profiles.pdp import ice
from rhale_stats.regional.regions import effects_of_regions, labelled_matrix
from rhale_stats.regional.search import SplitSearch, work_of
from rhale_stats.regional.trees import labelled_tree, rows_of_nodes
from rhale_stats.schema.dimensions import REGION, with_part_facts
from rhale_stats.schema.feature_result import FeatureResult, one_feature
from rhale_stats.schema.features import feature_names
from rhale_stats.schema.padding import concat_features, padded
from rhale_stats.schema.variables import dataset_of, selected, with_variables

# Rows that a bin of a feature with an axis has at least, where there are so many; fewest bins.
BIN_ROWS, MIN_BINS = 30, 5
# Effective rows from which on a tenth of them are more than those of a small bin.
MANY_ROWS = 120
# Effective rows below which a bin is called small. A bin wider than this share of the axis is
# halved while both halves have as many rows; where its rows lie far from its middle nevertheless,
# it says nothing of the shape in it.
SMALL_ROWS, WIDE, CROWDED, MOSTLY_WIDTH = 10, 0.1, 1 / 6, 0.05
YES, SMALL, UNKNOWN, GAP = "yes", "few rows", "shape not known", "gap"


class FeatureCurves(NamedTuple):
    """Local effects and the effects made of them, with all that is known of their error.

    ``features`` are those of the effect, with what their errors are made of.
    """

    local: xr.Dataset
    effect: xr.Dataset
    features: list[Feature]
    check: xr.Dataset | None

    @property
    def has_parameters(self) -> bool:
        """Whether the intervals hold the parameters of the model; what cannot is left out."""
        return "parameters" in self.effect.attrs


def n_bins_of(n_effective: float) -> int:
    """Bins of a feature with an axis: 40 where each has 30 rows, else fewer."""
    return int(np.clip(n_effective // BIN_ROWS, MIN_BINS, MAX_CELLS))


def _moved_to(edges: FloatArray, places: Sequence[float]) -> FloatArray:
    """Edges, the nearest inner ones at ``places``: a curve is not interpolated there."""
    for place in places:
        movable = np.flatnonzero(~np.isin(edges[1:-1], places)) + 1
        if place in edges or not edges[0] < place < edges[-1]:
            continue
        if len(movable):
            edges = edges.copy()
            edges[movable[np.abs(edges[movable] - place).argmin()]] = place
        else:
            edges = np.append(edges, place)
        edges = np.sort(edges)
    return edges


def _edges(request: ExplainRequest, name: str) -> tuple[FloatArray, FloatArray | None]:
    """Edges at quantiles; the wide bins where rows are rare are halved as far as rows allow.

    Also the values of a feature that goes from each value to the next.
    """
    position = request.table.names.index(name)
    column = check_column(request.table, position, missing="drop")
    present = ~np.isnan(column)
    order = np.argsort(column[present], kind="stable")
    x = column[present][order]
    counts = request.counts
    if counts is not None:
        counts = counts[present][order]
    edges = quantile_edges(x, n_bins_of(request.n_effective), counts)
    if request.n_effective >= MANY_ROWS:
        edges = _moved_to(edges, inner_range(column, request.share, USUAL))
    # Rows below each sorted value, as often as they count.
    below = np.arange(len(x) + 1) if counts is None else np.append(0, np.cumsum(counts))
    widest, number = WIDE * (x[-1] - x[0]), 0
    while number < len(edges) - 1:
        begin, end = below[np.searchsorted(x, edges[number : number + 2])]
        if edges[number + 1] - edges[number] > widest and end - begin >= 2 * SMALL_ROWS:
            middle = x[np.searchsorted(below, (begin + end) // 2, side="right") - 1]
            if edges[number] < middle < edges[number + 1]:
                edges = np.insert(edges, number + 1, middle)
                continue
        number += 1
    values, whole = repeated_values(x, counts), request.table.whole
    return whole(position, edges), None if values is None else whole(position, values)


def curves_of(request: ExplainRequest, level: float, seed: int) -> FeatureCurves:
    """Effects of all features, with errors, intervals and bands."""
    grids = {name: _edges(request, name) for name in request.axes}
    edges = {name: of_feature for name, (of_feature, _) in grids.items() if len(of_feature) > 1}
    cells = {name: cell for name, (_, cell) in grids.items() if name in edges and cell is not None}
    rule = GivenBins(edges or [0.0, 1.0], cells or None)
    local = ale_local_effects(
        request.model,
        request.X,
        bins=rule,
        features=request.features,
        categorical=request.levels or None,
        options=request.options,
        progress=False,
    )
    effect = ale_from_local(local, bins=rule)
    model = has_parameters(request.model)
    try:
        effect = with_errors(request, effect, local, model=model)
    except (TypeError, ValueError) as error:
        if not model:
            raise
        warn(f"Intervals take the parameters of the model as given. {error}")
        effect = with_errors(request, effect, local, model=False)
    effect = confint_of(with_std_error(effect), level)
    effect = confband_of(effect, level, N_DRAWS, seed).assign_attrs(seed=seed)
    axes, check = request.axes, None
    if axes:
        axis_effect, axis_local = effect, local
        if axes != request.features:
            axis_effect, axis_local = effect.sel(feature=axes), local.sel(feature=axes)
        # Of features with an axis alone there is no covariance of levels.
        empty = [name for name, values in axis_effect.items() if pd.isna(values.values).all()]
        check = check_unbiased(axis_local, axis_effect.drop_vars(empty), rng=seed)
    return FeatureCurves(local, effect, features_of(effect), check)


def with_errors(
    request: ExplainRequest, effect: xr.Dataset, local: xr.Dataset, *, model: bool
) -> xr.Dataset:
    """With standard errors by groups, and with ``model`` of its parameters (math [80]).

    Those of single rows are made by `confint`, in the same pass. Local effects of some rows have
    the numbers of these.
    """
    groups = request.groups
    if model:
        return std_error(
            effect, local, groups=groups, model=request.parametric, X=request.X, progress=False
        )
    if groups is None:
        return effect
    if ROW_NUMBER in local.coords:
        groups = groups[local[ROW_NUMBER].values]
    return std_error(effect, local, groups=groups, progress=False)


def with_reliable(curves: FeatureCurves, profile: xr.Dataset, delta: float) -> FeatureCurves:
    """With ``reliable``, what is known of the curve in each bin; ``profile`` are ICE curves.

    In a wide bin whose rows crowd at one end the shape of the curve is not known. It is not missed
    where the average of the ICE curves is straight there up to ``delta``.
    """
    effect = curves.effect
    n_grid, grid, curve = [
        profile.variables[name].values for name in ("n_grid", "grid_value", "curve")
    ]
    rows = [
        _of_feature(row, _bends(row, grid[k, : n_grid[k]], curve[k, : n_grid[k]]) > delta)
        for k, (row, _) in enumerate(curves.features)
    ]
    out = padded(rows, (effect.sizes["bin"],), missing="", dtype=f"<U{len(UNKNOWN)}")
    facts = {"long_name": "whether the curve is known in the bin", "units": ""}
    reliable = {"reliable": (("feature", "bin"), out, facts)}
    return curves._replace(effect=with_variables(effect, reliable))


def _bends(row: FeatureResult, grid: FloatArray, curve: FloatArray) -> FloatArray:
    """Largest distance of the average ICE curve from a straight line in each bin of an axis."""
    if row.is_categorical or not row.sizes["bin"]:
        return np.zeros(row.sizes["bin"])
    edges = row.bin_edges
    ends = np.interp(edges, grid, curve)
    away = np.abs(curve - np.interp(grid, edges, ends))
    number = np.clip(np.searchsorted(edges, grid, side="right") - 1, 0, len(edges) - 2)
    out = np.full(len(edges) - 1, np.inf)  # nothing is known of a bin without a point
    for bin_number in np.unique(number):
        out[bin_number] = away[number == bin_number].max()
    return out


def _of_feature(row: FeatureResult, bent: NDArray[np.bool_]) -> NDArray[np.str_]:
    n_effective = row.n_effective
    out = np.where(n_effective < SMALL_ROWS, SMALL, YES).astype(f"<U{len(UNKNOWN)}")
    out[n_effective == 0] = GAP
    if row.is_categorical or not len(out):
        return out
    edges = row.bin_edges
    width, middle = np.diff(edges), (edges[:-1] + edges[1:]) / 2
    away = np.abs(row.x_mean - middle)
    share, axis = row.weight_share, width / (edges[-1] - edges[0])
    # A wide bin that hardly any rows are in is mostly width.
    out[(axis > WIDE) & (share < MOSTLY_WIDTH * axis) & (n_effective > 0)] = SMALL
    crowded = (width > WIDE * (edges[-1] - edges[0])) & (away > CROWDED * width)
    out[crowded & bent & (n_effective > 0)] = UNKNOWN
    return out


# Rows whose own curves are made, and points of each.
N_CURVES, N_POINTS = 300, 40


class RowSpread(NamedTuple):
    """The ICE curves without the single curves, and the spread of every feature."""

    profile: xr.Dataset
    spread: FloatArray
    interval: FloatArray
    n_rows: int


def row_spread(
    request: ExplainRequest, level: float, budget: Budget, rng: np.random.Generator
) -> RowSpread:
    """ICE curves of some rows, drawn at random, of all features."""
    per_row = N_POINTS * len(request.features)
    n_curves = budget.curves(min(N_CURVES, request.table.n_rows), per_row, request.row_seconds)
    X, options, rows = request.some(n_curves, rng)
    profile = ice(
        request.model, X, request.features, n_grid=N_POINTS, options=options, progress=False
    )
    weight = None if request.weight is None else request.weight[rows]
    group = None if request.groups is None else request.groups[rows]
    variables = profile.variables
    of_rows = variables["ice"].transpose("feature", "obs", "grid").values
    columns = [variables[name].values for name in ("x", "grid_value", "weight_share", "n_grid")]
    spreads: list[Spread] = []
    for every_curve, x, grid, grid_share, n_grid in zip(of_rows, *columns, strict=True):
        curves, share = every_curve[:, :n_grid], grid_share[:n_grid]
        complete = ~np.isnan(curves).any(axis=1)
        if not (n_grid > 1 and complete.sum() > 1):
            spreads.append(Spread(0.0, 0.0, 0.0))
            continue
        # Where rows lie among the points of the grid, as numbers between theirs.
        place = np.interp(np.nan_to_num(x[complete]), grid[:n_grid], np.arange(float(n_grid)))
        spreads.append(
            spread_of_rows(
                np.array(curves[complete]),
                share / share.sum(),
                place,
                None if weight is None else weight[complete],
                None if group is None else np.unique(group[complete], return_inverse=True)[1],
                level,
                frequency=request.frequency,
            )
        )
    without_rows = profile.drop_vars(["ice", "x", "obs", "curve_cov"], errors="ignore")
    return RowSpread(
        without_rows,
        np.array([spread.spread for spread in spreads]),
        np.array([[spread.lower, spread.upper] for spread in spreads]),
        len(rows),
    )


# Size of all tests of first splits together, and permutations for each: a p-value can be half the
# level of one test.
LEVEL, FINER, MAX_PERMUTATIONS = 0.05, 2, 1999
MAX_DEPTH = 2
# Features by whose splits the time of all is measured, where there are more.
TIMED = 20
# Why two sides are not compared.
NOT_COMPARED = ("must overlap", "groups")
INTERVALS = ("effect_ci", "curve_ci", "effect_se", "curve_se")


class Split(NamedTuple):
    """The tree of a feature whose rows were split, its regions, and the two sides of it."""

    tree: xr.Dataset
    effect: xr.Dataset
    difference: xr.Dataset | None
    # Two places, and by how much more the output changes between them in the first side than in the
    # other, with the ends of its interval.
    contrast: tuple[FloatArray, float, float, float] | None


class Splits(NamedTuple):
    """What was found of splits: of every feature tested the facts of its first split."""

    accepted: dict[str, Split]
    # Of every feature that was tested: column, rule, drop, p-value times the number of tests.
    first: dict[str, tuple[str, str, float, float]]
    matrix: xr.Dataset | None
    n_permutations: int


NO_SPLITS = Splits({}, {}, None, 0)


def splits_of(
    request: ExplainRequest,
    curves: FeatureCurves,
    candidates: list[str],
    level: float,
    budget: Budget,
    rng: np.random.Generator,
) -> Splits:
    """Splits of the rows of the features named, of those for which one can be looked for."""
    local = local_of_axes(request, curves)
    frame = request.frame()
    if local is None or not set(frame.columns) - {feature_names(local)[0]}:
        return NO_SPLITS
    names = feature_names(local)
    matrix, averages = _matrix(local, frame, names, candidates, budget)
    searched = [name for name in candidates if name in names]
    n_tests = len(searched)
    search = SplitSearch(
        max_depth=MAX_DEPTH,
        level=LEVEL / max(n_tests, 1),
        # So many that each test can reject at its level.
        n_permutations=int(np.clip(FINER * n_tests / LEVEL, 199, MAX_PERMUTATIONS)),
    )
    local = local.assign_coords({ROW_NUMBER: ("obs", np.arange(request.table.n_rows))})
    has_value = ~np.isnan(local.variables["x"].transpose("feature", "obs").values)
    divided, first = {}, {}
    for number, name in enumerate(searched):
        stream = int(rng.integers(2**53))
        # The time of one tree is known after the first.
        if number and budget.left < budget.used * 0.1:
            budget.cut.append(f"splits were not looked for in {', '.join(searched[number:])}")
            break
        position = names.index(name)
        rows = np.flatnonzero(has_value[position])
        feature_local = local.isel(feature=[position], obs=rows)
        group = None if request.groups is None else request.groups[rows]
        work = work_of(feature_local, None, search, "index", None, stream, group)
        if name in averages:
            work = work._replace(average=averages[name])
        else:
            (work,) = work.of_features([0])
        tree = labelled_tree(work, 0, frame.iloc[rows])
        pvalue = min(float(tree["pvalue"][0]) * n_tests, 1.0)
        first[name] = "", "", float(tree["best_drop"][0]), pvalue
        if tree.sizes["node"] > 1:
            column, rule = (str(tree[key].values[1]) for key in ("condition_feature", "rule"))
            first[name] = column, rule, float(tree["loss_drop"][0]), pvalue
            divided[name] = feature_local, tree, stream
    with one_blas_thread:
        accepted = {
            name: _split(request, *each, level, model=curves.has_parameters)
            for name, each in divided.items()
        }
    return Splits(accepted, first, matrix, search.n_permutations)


def _matrix(
    local: xr.Dataset, frame: pd.DataFrame, names: list[str], first: list[str], budget: Budget
) -> tuple[xr.Dataset | None, dict[str, Pieces | None]]:
    """Splits of features by every column; of some, those named ``first`` before others.

    Also the average effects that local effects are distances from, which are those of the trees.
    """

    def matrix_of(some: list[str]) -> tuple[xr.Dataset, dict[str, Pieces | None]]:
        positions = [position for position, name in enumerate(names) if name in some]
        search = SplitSearch(n_permutations=1, test=None)
        work = work_of(local.isel(feature=positions), None, search, "index", None, 0)
        matrix, works = labelled_matrix(work, frame, 0, "holm", progress=False)
        return matrix, {names[k]: work.average for k, work in zip(positions, works, strict=True)}

    if len(names) > TIMED and np.isfinite(budget.total):
        chosen = [*(name for name in first if name in names), *names]
        chosen, begun = list(dict.fromkeys(chosen)), time.perf_counter()
        few = matrix_of(chosen[:TIMED])
        n_kept = budget.pairs(len(names), (time.perf_counter() - begun) / TIMED)
        return matrix_of(chosen[:n_kept]) if n_kept > TIMED else few
    return matrix_of(names) if names else (None, {})


def local_of_axes(request: ExplainRequest, curves: FeatureCurves) -> xr.Dataset | None:
    """Local effects with an axis: discrete numbers have one as well, their values are its cells."""
    parts = [curves.local.sel(feature=request.axes)] if request.axes else []
    if request.discrete:
        parts.append(
            local_effects(
                request.model,
                request.X,
                features=request.discrete,
                method="finite_difference",
                bins=QuantileBins(n_bins_of(request.table.n_rows)),
                options=request.options,
                progress=False,
            )
        )
    if not parts:
        return None
    order = [name for name in request.features if name in request.axes + request.discrete]
    return concat_features(parts, order)


def _split(
    request: ExplainRequest,
    local: xr.Dataset,
    tree: xr.Dataset,
    seed: int,
    level: float,
    *,
    model: bool,
) -> Split:
    """All of a split, with errors of what those of the average curves hold."""
    nodes = zip(rows_of_nodes(tree), tree["parent"].values, strict=True)
    rows_of_sides = [rows for rows, parent in nodes if parent == 0]
    difference, between, has_errors = None, None, True
    with warnings.catch_warnings():
        # Gaps among the rows of a region are seen in its curve.
        warnings.simplefilter("ignore")
        effect = effects_of_regions(local, tree, partial(quiet_rhale, bins=OptimalBins()))
        try:
            effect = with_errors(request, effect, local, model=model)
        except ValueError:
            # A region of few groups: no interval is better than one of independent rows.
            has_errors = False
        try:
            if len(rows_of_sides) == 2:
                sides = [local.isel(obs=rows) for rows in rows_of_sides]
                rule, both = QuantileBins(n_bins_of(min(map(len, rows_of_sides)))), []
                for side in sides:
                    both.append(with_errors(request, quiet_rhale(side, rule), side, model=model))
                options = None, None, level, N_DRAWS, seed, "holm"
                difference = compared(*both, *options).assign_attrs(seed=seed)
                between = _contrast(both, sides, level)
        except ValueError as error:
            # No value in common, or by groups gaps between the rows of a side, or few groups.
            if not any(reason in str(error) for reason in NOT_COMPARED):
                raise
    effect = _with_intervals(effect, level)
    if not has_errors:
        effect = effect.assign({name: effect[name] * np.nan for name in INTERVALS})
    return Split(tree, effect, difference, between)


def _with_intervals(effect: xr.Dataset, level: float) -> xr.Dataset:
    """One feature in all regions with its errors and intervals, made as those of features are.

    Each region at a time would take as long as all of them.
    """
    data: dict[str, xr.Variable] = {}
    for key, variable in effect.variables.items():
        # What differs between regions, such as the number of groups, differs between features.
        name = str(key).replace(REGION, "feature", 1) if key in effect.coords else str(key)
        if variable.dims == ("feature",):
            values = np.repeat(variable.values, effect.sizes[REGION])
            data[name] = xr.Variable("feature", values, variable.attrs)
        elif key != REGION:
            part = variable.isel(feature=0) if "feature" in variable.dims else variable
            dims = [str(dim).replace(REGION, "feature") for dim in part.dims]
            data[name] = xr.Variable(dims, part.values, part.attrs)
    coords = {name: data.pop(name) for name in list(data) if name not in effect.data_vars}
    attrs = with_part_facts(selected(effect, {REGION: 0})).attrs
    made = confint(dataset_of(data, coords, attrs), level=level)
    added = {
        str(name): xr.Variable((REGION, *new.dims), new.values[:, None], new.attrs)
        for name, new in made.variables.items()
        if name not in effect.variables and name in made.data_vars
    }
    return with_variables(effect, added, made[["ci_bound"]])


def _contrast(
    effects: list[xr.Dataset], sides: list[xr.Dataset], level: float
) -> tuple[FloatArray, float, float, float] | None:
    """Between usual values of the rows in the range of both sides, or else between its ends.

    The places depend on the rows alone, so that the interval is that of one number.
    """
    ends = [one_feature(effect, 0).edges[[0, -1]] for effect in effects]
    low, high = max(first for first, _ in ends), min(last for _, last in ends)
    every = np.concatenate([side.variables["x"].values.ravel() for side in sides])
    inside = every[(every >= low) & (every <= high)]
    places = np.array([low, high])
    if len(inside) and np.ptp(usual := np.percentile(inside, USUAL, method="nearest")) > 0:
        places = usual
    if not low < high:
        return None
    return places, *contrast(effects[0], effects[1], places, level)
