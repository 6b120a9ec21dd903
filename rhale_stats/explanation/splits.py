"""Where effects differ between rows: trees, their regions, and the two sides of the first split."""

from __future__ import annotations

import time
import warnings
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from rhale_stats.arrays.accumulate import Pieces
from rhale_stats.arrays.intervals import N_DRAWS
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.bins.rules import OptimalBins, QuantileBins
from rhale_stats.effects.comparison import contrast
from rhale_stats.effects.intervals import confint
from rhale_stats.effects.rhale import quiet_rhale
from rhale_stats.explanation.curves import FeatureCurves, n_bins_of, with_errors
from rhale_stats.explanation.request import Budget, ExplainRequest
from rhale_stats.generics.hypotheses import compared
from rhale_stats.local.local_effects import local_effects
from rhale_stats.models.parametric import ROW_NUMBER
from rhale_stats.parallel import one_blas_thread
from rhale_stats.regional.regions import effects_of_regions, labelled_matrix
from rhale_stats.regional.search import SplitSearch, work_of
from rhale_stats.regional.trees import labelled_tree
from rhale_stats.schema.dimensions import REGION, with_part_facts
from rhale_stats.schema.feature_result import one_feature
from rhale_stats.schema.features import feature_names
from rhale_stats.schema.padding import concat_features
from rhale_stats.schema.variables import dataset_of, selected, with_variables

# Size of all tests of first splits together, and permutations for each: a p-value can be half the
# level of one test.
LEVEL, FINER, MAX_PERMUTATIONS = 0.05, 2, 1999
MAX_DEPTH = 2
# Features by whose splits the time of all is measured, where there are more.
TIMED = 20
# Why two sides are not compared.
NOT_COMPARED = ("must overlap", "groups")
INTERVALS = ("effect_ci", "curve_ci", "effect_se", "curve_se")
# Shares of the rows below the two values between which effects of the sides are compared.
USUAL = (0.1, 0.9)


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
    rows_of_sides, difference, between, has_errors = _sides(tree), None, None, True
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
    if len(inside) and np.ptp(usual := np.quantile(inside, USUAL, method="nearest")) > 0:
        places = usual
    if not low < high:
        return None
    return places, *contrast(effects[0], effects[1], places, level)


def _sides(tree: xr.Dataset) -> list[IntArray]:
    """Rows of the two sides of the first split."""
    parent, region = tree["parent"].values, tree["region"].values
    # Of every node the one below the root that it comes from.
    side = np.arange(len(parent))
    while (deeper := parent[side] > 0).any():
        side[deeper] = parent[side[deeper]]
    leaves = np.flatnonzero(region >= 0)
    of_region = np.empty(len(leaves), dtype=np.int64)
    of_region[region[leaves]] = side[leaves]
    which = of_region[tree["region_of_row"].values]
    return [np.flatnonzero(which == node) for node in np.flatnonzero(parent == 0)]
