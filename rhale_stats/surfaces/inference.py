"""Standard errors, intervals, bands and replicates of surfaces (math [59]), and their rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from rhale_stats.arguments.rows import row_codes
from rhale_stats.arrays import intervals
from rhale_stats.arrays import second_order as kernel
from rhale_stats.arrays.moments import FloatArray, IntArray, need_squares
from rhale_stats.bins.rule import BinRule
from rhale_stats.bins.rules import GivenBins
from rhale_stats.inference.draws import Replication, Resampling, check_boot, labelled_draws
from rhale_stats.inference.estimate import (
    Joint,
    chosen_method,
    covariance_array,
    estimate_of,
    independent_quantiles,
    joint_quantiles,
    with_bands,
    with_intervals,
    with_replicates,
)
from rhale_stats.inference.parameters import (
    KIND,
    ROWS_FIXED,
    Directions,
    check_model,
    options_of,
    sources,
    without_parameters,
)
from rhale_stats.models.parametric import Fitted
from rhale_stats.schema.dimensions import OUTPUT, with_part_facts
from rhale_stats.schema.identity import OF_ESTIMATE, estimate_fingerprint, model_facts, row_labels
from rhale_stats.schema.kinds import SURFACE
from rhale_stats.schema.levels import MISSING_LEVEL
from rhale_stats.schema.variables import variable
from rhale_stats.surfaces.ale2 import (
    ale2,
    at_edges,
    is_categorical,
    is_used,
    n_cells,
    pair_name,
    places_of,
)

ESTIMATES = ("second_effect", "surface")


def with_parameters(
    surface: xr.Dataset, fitted: Fitted, degrees: dict[str, FloatArray]
) -> xr.Dataset:
    """A surface with standard errors of its rows gets those that hold the parameters.

    ``degrees`` are those of freedom of the errors by rows, by estimate. The variances of rows and
    of parameters are added.
    """
    frequency = str(surface.attrs["weight_kind"]) == "frequency"
    facts = surface.attrs | model_facts(surface)
    # Variances are added: what a row does to the parameters is not asked for.
    directions = Directions.from_fit(fitted, facts, frequency=frequency)._replace(influence=None)
    changes = _changes(surface, directions)
    made: dict[str, Any] = {}
    for name in ESTIMATES:
        change = changes[name].values
        check_model(change[-1], surface[name].values, name.replace("_", " "))
        estimable = directions.model.estimable(change[:-1].reshape(len(change) - 1, -1))
        change = estimable.reshape(-1, *change.shape[1:])
        rows, model = surface[f"{name}_se"], np.sum(change**2, axis=0)
        model = np.where(rows.isnull(), np.nan, model)
        of_rows = rows.values**2
        counted = np.zeros_like(of_rows) if directions.uncertainty == "parameters" else of_rows
        parts = {
            "se_rows": rows.values,
            "se_model": np.sqrt(model),
            "se": np.sqrt(counted + model),
            "df": intervals.satterthwaite(
                (np.nan_to_num(counted), degrees[name]),
                (np.nan_to_num(model), directions.model.degrees),
            ),
        }
        source_of_end = sources(directions, str(rows.attrs["source"]))
        of_table = ("long_name", "units")
        facts_of_error = {key: fact for key, fact in rows.attrs.items() if key not in of_table}
        for end, values in parts.items():
            about = facts_of_error | {"source": source_of_end[end], "kind": KIND}
            made[f"{name}_{end}"] = variable(f"{name}_{end}", values, SURFACE, **about)
        made[f"{name}_change"] = variable(f"{name}_change", change, SURFACE)
    return surface.assign(made).assign_attrs(directions.facts())


def _changes(surface: xr.Dataset, directions: Directions) -> xr.Dataset:
    """The surface of every direction, and at the end that of the model, over (output, ...)."""
    attrs, names = surface.attrs, (surface.attrs["feature_a"], surface.attrs["feature_b"])
    rules: list[BinRule] = []
    order: dict[str, list[str]] = {}
    missing = "drop" if attrs["n_rows_missing"] else "raise"
    for side, name in zip("ab", names, strict=True):
        edges = surface[f"edge_{side}"].values
        if is_categorical(surface, side):
            order[name] = edges.tolist()
            missing = "bin" if MISSING_LEVEL in order[name] else missing
            rules.append(GivenBins([0.0, 1.0]))
        else:
            rules.append(GivenBins(edges))
    table = directions.changes.table
    if table.n_rows != surface.sizes["obs"]:
        raise ValueError(
            f"X must hold the rows of the surface; got {table.n_rows} rows for "
            f"{surface.sizes['obs']}. Pass the table that ale2 was given."
        )
    changed = ale2(
        directions.changes.ask,
        table.data,
        names,
        bins=(rules[0], rules[1]),
        order=order or "as_is",
        centering=str(attrs["centering"]),
        options=options_of(surface, missing),
        progress=False,
    )
    return changed if OUTPUT in changed.dims else changed.expand_dims(OUTPUT)


# --- the rows behind a surface --------------------------------------------------------------------


# Numbers of the groups of all rows, where standard errors are of groups; -1 of a row that is left
# out.
GROUP = "group"


class SurfaceRows(NamedTuple):
    """The rows behind a surface that are ``used``, and their moments in cells.

    ``influence`` is what every row does to the surface, and ``sums`` what every ``group`` does
    where standard errors are of groups.
    """

    used: NDArray[np.bool_]
    arrays: kernel.PairRows
    cells: kernel.SurfaceCells
    influence: kernel.Influence
    group: IntArray | None = None
    sums: kernel.GroupSums | None = None

    @classmethod
    def from_surface(cls, surface: xr.Dataset) -> SurfaceRows:
        """Raise ``ValueError`` unless the rows are those that the surface was made from."""
        needed = ("second_difference", "x_a", "x_b")
        absent = [name for name in needed if name not in surface]
        if absent:
            raise ValueError(
                f"surface must be the Dataset that ale2(model, X, features) returns, with its "
                f"rows; this one has no {', '.join(absent)}."
            )
        if "chain" in surface.dims:
            raise ValueError(
                "surface must be what ale2 or std_error returned; this one holds replicates."
            )
        a, b = [
            kernel.Axis(surface.sizes[f"edge_{side}"], levels=is_categorical(surface, side))
            for side in "ab"
        ]
        used = is_used(surface)
        delta = surface["second_difference"].transpose("obs", "side").values[used]
        delta = delta.reshape(-1, len(a.sides), len(b.sides))
        frequency = surface.attrs["weight_kind"] == "frequency"
        weight = np.ones(int(used.sum()))
        if "weight" in surface:
            weight = surface["weight"].values[used]
        places = places_of(surface, "a"), places_of(surface, "b")
        rows = kernel.PairRows.from_places(
            (a, b), places, np.nan_to_num(delta), weight, frequency=frequency
        )
        cells = rows.cells()
        if not np.array_equal(at_edges(cells.n_obs, 0), surface["n_obs"].values):
            raise ValueError(
                f"surface must have the rows that it was made from; its cells count "
                f"{int(surface['n_obs'].sum())} second differences, and its rows have "
                f"{int(cells.n_obs.sum())}. Select rows of X before ale2."
            )
        centred = str(surface.attrs["centering"]) == "ale"
        influence = kernel.Influence.from_rows(rows, cells, centred=centred)
        if GROUP not in surface.coords:
            return cls(used, rows, cells, influence)
        group = np.unique(surface[GROUP].values[used], return_inverse=True)[1]
        return cls(used, rows, cells, influence, group, kernel.group_sums(influence, rows, group))

    def noise_factors(self) -> Iterator[FloatArray]:
        """Blocks whose products add up to the covariance of the surface."""
        if self.sums is not None:
            return kernel.group_noise_factors(self.influence, self.sums)
        return kernel.noise_factors(self.influence, self.arrays)

    def cell_covariance(self) -> FloatArray:
        """Of the cells' means, (cell, cell)."""
        if self.sums is not None:
            return self.sums.covariance()
        return kernel.cell_covariance(self.cells, self.arrays)


# --- standard errors ------------------------------------------------------------------------------


METHODS = ("normal", "percentile", "basic")
# Corners that a covariance may have: its square is 50 MB.
MAX_EDGES = 2500
SOURCE = "rows"
# Ends of the names of variables that errors by parameters or by groups leave behind.
LEFT_BEHIND = ("_se_rows", "_se_model", "_df", "_change", "_ci", "_band")
SKEWNESS = ("second_effect_skewness", "surface_skewness")
CELL_TARGET = "mean second difference in the cell"
SURFACE_TARGET = (
    "surface of these cells over the population, math [58]; empty ones filled as they are"
)


def std_error(
    surface: xr.Dataset,
    _local: xr.Dataset | None = None,
    groups: ArrayLike | None = None,
    fitted: Fitted | None = None,
) -> xr.Dataset:
    """`std_error` of a surface: ``second_effect_se`` in cells, ``surface_se`` at edges [59]."""
    if "parameters" in surface.attrs or "second_effect_df" in surface:
        surface = without_parameters(surface, LEFT_BEHIND)
    surface = _with_groups(surface, groups).drop_vars(SKEWNESS, errors="ignore")
    rows = SurfaceRows.from_surface(surface)
    variance, n_borrowed = kernel.surface_variance(rows.influence, rows.noise_factors())
    source = SOURCE
    if rows.sums is None:
        values = _by_rows(rows, variance)
    else:
        # math [98]: the degrees of freedom do not follow from the rows alone, and are kept.
        shape = rows.cells.mean.shape
        values = {
            "second_effect_se": at_edges(np.sqrt(rows.sums.variance).reshape(shape)),
            "second_effect_df": at_edges(rows.sums.degrees().reshape(shape), 0),
            "surface_df": kernel.group_surface_degrees(rows.influence, rows.sums, variance),
        }
        n_borrowed, n_groups = int(rows.sums.alone.sum()), int(surface[GROUP].max()) + 1
        surface, source = surface.assign_attrs(n_groups=n_groups), f"rows in {n_groups} groups"
    values["surface_se"] = np.where(surface["surface"].notnull(), np.sqrt(variance), np.nan)
    facts = {"source": source, "kind": "central limit theorem"}
    about: dict[str, dict[str, Any]] = {
        **{name: {} for name in SKEWNESS},
        "second_effect_se": {"target": CELL_TARGET, **facts},
        "surface_se": {**facts, "target": SURFACE_TARGET, "n_borrowed": n_borrowed},
    }
    out = surface.assign(
        {
            name: variable(name, array, SURFACE, **about.get(name, facts))
            for name, array in values.items()
        }
    )
    if fitted is None or fitted.uncertainty == "rows":
        return out
    degrees = {"second_effect": cell_degrees(out), "surface": corner_degrees(out, rows, variance)}
    out = with_part_facts(out).drop_vars(SKEWNESS, errors="ignore")
    return with_parameters(out, fitted, degrees)


def _by_rows(rows: SurfaceRows, variance: FloatArray) -> dict[str, FloatArray]:
    """math [59]: errors in cells where rows are independent, with skewness if weights are equal.

    ``variance`` is that of the surface at edges (edge, edge).
    """
    cells, values = rows.cells, {}
    if need_squares(rows.arrays.weight, frequency=rows.arrays.frequency):
        second_effect_se = kernel.weighted_error(cells, rows.arrays)
    else:
        with np.errstate(invalid="ignore", divide="ignore"):
            second_effect_se = cells.spread() / np.sqrt(cells.n_effective())
        skewness = kernel.cell_skewness(cells, rows.arrays)
        if skewness is not None:
            of_means = at_edges(skewness.of_means().reshape(cells.mean.shape))
            of_surface = kernel.surface_skewness(rows.influence, skewness, variance)
            values = dict(zip(SKEWNESS, (of_means, of_surface), strict=True))
    return values | {"second_effect_se": at_edges(second_effect_se)}


def _with_groups(surface: xr.Dataset, groups: ArrayLike | None) -> xr.Dataset:
    """The surface with the groups of its rows, or without those of an earlier call."""
    surface = surface.drop_vars([GROUP], errors="ignore")
    surface.attrs.pop("n_groups", None)
    if groups is None:
        return surface
    if n_cells(surface) > MAX_EDGES:
        raise ValueError(
            f"surface must have at most {MAX_EDGES} cells for errors by groups; this one has "
            f"{n_cells(surface)}. Use fewer bins, or bootstrap(surface, groups=...)."
        )
    used = is_used(surface)
    code = row_codes(groups, row_labels(surface), used, "groups", "rows of the surface")
    if code.max(initial=-1) < 1:
        raise ValueError("groups must hold at least two different groups; got 1.")
    group_of_row = np.full(len(used), -1, dtype=np.int64)
    group_of_row[used] = code
    about = {"long_name": "number of the row's group", "units": "1"}
    return surface.assign_coords({GROUP: ("obs", group_of_row, about)})


class Errors(NamedTuple):
    """Estimates, ravelled, with the covariance of their errors and its degrees of freedom."""

    values: FloatArray
    covariance: FloatArray
    degrees: FloatArray


def errors_of(surface: xr.Dataset, rows: SurfaceRows, name: str) -> Errors:
    """Those of the ``surface`` at corners, or of the means in cells, ``second_effect``.

    Raises ``ValueError`` where the covariance of corners would be too large to hold.
    """
    values = surface[name].values
    if name == "second_effect":
        in_cells = rows.cell_covariance().reshape(rows.cells.mean.shape * 2)
        covariance, degrees = at_edges(in_cells).reshape([values.size] * 2), cell_degrees(surface)
    else:
        if values.size > MAX_EDGES:
            raise ValueError(
                f"surface must have at most {MAX_EDGES} corners for a covariance of them; this one "
                f"has {values.size}. Use fewer bins; std_error, confint and bootstrap take it as "
                f"it is."
            )
        covariance = kernel.surface_covariance(rows.influence, rows.noise_factors())
        variance = np.diagonal(covariance).reshape(values.shape)
        degrees = corner_degrees(surface, rows, variance)
    if f"{name}_change" in surface:
        change = surface[f"{name}_change"].values.reshape(-1, values.size)
        if surface.attrs["parameters"] == ROWS_FIXED:
            covariance = np.where(np.isnan(covariance), np.nan, 0.0)
        covariance = covariance + change.T @ change
    return Errors(values.ravel(), covariance, degrees.ravel())


def corner_degrees(surface: xr.Dataset, rows: SurfaceRows, variance: FloatArray) -> FloatArray:
    """Degrees of freedom of the surface, of which its rows have this variance (edge, edge)."""
    if "surface_df" in surface:
        return np.asarray(surface["surface_df"].values)
    return kernel.surface_degrees(rows.influence, variance)


def cell_degrees(surface: xr.Dataset) -> FloatArray:
    """Degrees of freedom of the means of the cells."""
    if "second_effect_df" in surface:
        return np.asarray(surface["second_effect_df"].values)
    return np.asarray(np.maximum(surface["n_effective"].values - 1, 0.0))


def vcov(surface: xr.Dataset, feature: object, estimand: str) -> xr.DataArray:
    """`vcov` of a surface: over pairs of corners, or pairs of cells."""
    if feature is not None:
        raise ValueError(
            f"feature must be left out for a surface, which is of two; got {feature!r}."
        )
    if OUTPUT in surface.dims:
        raise ValueError(
            f"effect must be of one output here; this one is of {surface.sizes[OUTPUT]}. Select "
            f"one: effect.isel(output=0)."
        )
    surface = with_std_error(with_part_facts(surface))
    name, long_name = ("second_effect", "mean second differences")
    if estimand == "curve":
        name = long_name = "surface"
    estimate = estimate_of(surface, name, long_name=long_name)
    covariance = errors_of(surface, SurfaceRows.from_surface(surface), name).covariance
    unknown = np.isnan(estimate.values.ravel())
    covariance[unknown] = covariance[:, unknown] = np.nan
    axes = {dim: surface[dim].values for dim in estimate.facts.dims}
    covariance = covariance.reshape(estimate.values.shape * 2)
    return covariance_array(covariance, axes, estimate.facts, pair_name(surface))


def with_std_error(surface: xr.Dataset) -> xr.Dataset:
    """With standard errors, made where they are missing."""
    return surface if "surface_se" in surface else std_error(surface)


def confband(surface: xr.Dataset, level: float, n_draws: int, rng: object) -> xr.Dataset:
    """`confband` of a surface: ``surface_band`` and ``second_effect_band``, math [59]."""
    surface = with_std_error(with_part_facts(surface))
    rows = SurfaceRows.from_surface(surface)
    streams = np.random.default_rng(rng).spawn(2)  # type: ignore[arg-type]
    linked = rows.arrays.a.levels or rows.arrays.b.levels or "second_effect_change" in surface
    quantiles = {}
    for name, stream in zip(("surface", "second_effect"), streams, strict=True):
        if name == "second_effect" and not linked:
            # The means of different cells are of different rows.
            se, degrees = surface["second_effect_se"].values, cell_degrees(surface)
            quantiles[name] = independent_quantiles(se, degrees, level)
            continue
        estimated = errors_of(surface, rows, name)
        has_error = surface[f"{name}_se"].notnull().values.ravel()
        joint = Joint(estimated.covariance[np.ix_(has_error, has_error)], np.inf)
        degrees = estimated.degrees.reshape(surface[name].shape)
        quantiles[name] = joint_quantiles(joint, degrees, level, n_draws, stream)
    estimates = {name: estimate_of(surface, name) for name in ESTIMATES}
    return with_bands(surface, estimates, quantiles, level, "surface")


def confint(
    surface: xr.Dataset, boot: xr.Dataset | None, level: float, method: str | None
) -> xr.Dataset:
    """`confint` of a surface: ``second_effect_ci`` and ``surface_ci``, pointwise."""
    chosen = chosen_method(method, boot, METHODS)
    surface = with_std_error(surface)
    if chosen == "normal":
        rows = SurfaceRows.from_surface(surface)
        of_corners = corner_degrees(surface, rows, surface["surface_se"].values ** 2)
        degrees = {"second_effect": cell_degrees(surface), "surface": of_corners}
        estimates = {name: estimate_of(surface, name, degrees[name]) for name in ESTIMATES}
    else:
        boot = check_boot(surface, boot, ["second_effect"], "bootstrap(surface)", chosen)
        estimates = with_replicates({name: estimate_of(surface, name) for name in ESTIMATES}, boot)
    return with_intervals(surface, estimates, level, chosen)


def size(surface: xr.Dataset) -> float:
    """Standard deviation over the rows of the surface at their values, math [61]."""
    used, rows, *_ = SurfaceRows.from_surface(surface)

    def fraction(side: str, place: IntArray) -> FloatArray | None:
        if is_categorical(surface, side):
            return None
        edges, x = surface[f"edge_{side}"].values, surface[f"x_{side}"].values[used]
        return np.asarray((x - edges[place]) / np.diff(edges)[place])

    a, b = rows.place_a, rows.place_b
    at_rows = kernel.surface_at_values(
        surface["surface"].values, a, b, fraction("a", a), fraction("b", b)
    )
    mean = np.average(at_rows, weights=rows.weight)
    return float(np.sqrt(np.average((at_rows - mean) ** 2, weights=rows.weight)))


def rounding(surface: xr.Dataset) -> float:
    """What rounding of second differences may add up to in the sum of all cells."""
    return float(surface["second_difference_error"]) * float(np.sqrt(n_cells(surface)))


# Draws at once: so many numbers of weights.
CHUNK = 1 << 23


def bootstrap(surface: xr.Dataset, effect: object, resampling: Resampling) -> Replication:
    """`bootstrap` of a surface, which has its rows with it."""
    resampling.refuse_choices_of_bins()
    if effect is not None:
        raise ValueError(
            "bootstrap of a surface of ale2 takes the surface alone: bootstrap(surface)."
        )
    rows = SurfaceRows.from_surface(surface)
    weight = rows.arrays.weight
    counts = weight if rows.arrays.frequency else None
    units = resampling.units(len(weight), counts, rows.used, row_labels(surface))
    drawn = replicates(surface, rows, resampling.weights(units, len(weight), CHUNK))
    of_estimate = estimate_fingerprint(surface, ["second_effect"])
    return Replication(drawn, units, surface, {"bins": "fixed", OF_ESTIMATE: of_estimate})


def replicates(surface: xr.Dataset, rows: SurfaceRows, weights: Iterable[FloatArray]) -> xr.Dataset:
    """Replicates along ``draw`` of everything that `ale2` estimates, math [29]."""
    parts = [kernel.replicates(rows.influence, rows.arrays, drawn) for drawn in weights]
    in_cells, corners, n_filled = map(np.concatenate, zip(*parts, strict=True))
    mean = np.full(corners.shape, np.nan)
    mean[:, :-1, :-1] = in_cells
    corners = np.where(surface["surface"].notnull().values, corners, np.nan)
    drawn_estimates = {"second_effect": mean, "surface": corners}
    about = {"long_name": "empty cells of the replicate", "units": "cells"}
    out = labelled_draws(surface, drawn_estimates, ("obs", "side"))
    return out.assign(n_filled=("draw", n_filled, about))
