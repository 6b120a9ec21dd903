"""Standard errors, intervals and bands of surfaces (math [59])."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from rhale_stats.arguments.checks import check_choice
from rhale_stats.arrays import second_order as kernel
from rhale_stats.arrays.intervals import around, largest_deviation, score_quantile, student
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.schema.dimensions import OUTPUT, of_part
from rhale_stats.schema.variables import OUTPUT_UNITS
from rhale_stats.surfaces.labelled import AT_EDGES, IN_CELLS
from rhale_stats.surfaces.rows import Rows
from rhale_stats.surfaces.values import pair_name

METHODS = ("normal", "percentile", "basic")
# Corners that a covariance may have: its square is 50 MB.
MOST_EDGES = 2500
SOURCE = "rows"


def std_error(
    surface: xr.Dataset, _local: xr.Dataset | None = None, groups: object = None
) -> xr.Dataset:
    """`std_error` of a surface: ``effect_se`` in cells, ``surface_se`` at edges, math [59]."""
    if groups is not None:
        raise ValueError(
            "groups must be None for a surface of ale2. Use bootstrap(surface, groups=...)."
        )
    rows = Rows.of(surface)
    cells = rows.cells
    with np.errstate(invalid="ignore", divide="ignore"):
        effect_se = cells.spread() / np.sqrt(cells.n_effective())
    variance, n_borrowed = kernel.surface_variance(
        rows.influence(surface), *rows.arrays(), frequency=rows.frequency
    )
    surface_se = np.where(surface["surface"].notnull(), np.sqrt(variance), np.nan)
    facts = {"units": OUTPUT_UNITS, "source": SOURCE, "kind": "central limit theorem"}
    return surface.assign(
        effect_se=(
            IN_CELLS,
            effect_se,
            {
                "long_name": "standard error of the mean second difference",
                "target": "mean second difference in the cell",
                **facts,
            },
        ),
        surface_se=(
            AT_EDGES,
            surface_se,
            {
                "long_name": "standard error of the second-order effect",
                "target": "surface of these cells over the population, math [58]; empty ones "
                "filled as they are",
                "n_borrowed": n_borrowed,
                **facts,
            },
        ),
    )


class Noise(NamedTuple):
    """Covariance of the surface (edges of both, edges of both), degrees of freedom (edge, edge)."""

    covariance: FloatArray
    degrees: FloatArray


def noise_of(surface: xr.Dataset, rows: Rows) -> Noise:
    """Raise ``ValueError`` where the covariance would be too large to hold."""
    size = surface["surface"].size
    if size > MOST_EDGES:
        raise ValueError(
            f"surface must have at most {MOST_EDGES} corners for a covariance of them; this one "
            f"has {size}. Use fewer bins; std_error, confint and bootstrap take it as it is."
        )
    influence = rows.influence(surface)
    covariance = kernel.surface_covariance(influence, *rows.arrays(), frequency=rows.frequency)
    variance = np.diagonal(covariance).reshape(surface["surface"].shape)
    return Noise(covariance, kernel.surface_degrees(influence, variance))


def vcov(surface: xr.Dataset, feature: object, of: str) -> xr.DataArray:
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
    surface = with_std_error(of_part(surface))
    rows = Rows.of(surface)
    if of == "curve":
        dims, se = AT_EDGES, surface["surface_se"]
        what, values = "surface", noise_of(surface, rows).covariance
        unknown = surface["surface"].isnull().values.ravel()
        values[unknown] = values[:, unknown] = np.nan
    else:
        dims, se = IN_CELLS, surface["effect_se"]
        what, values = "mean second differences", rows.cell_covariance()
    others = tuple(f"{dim}_other" for dim in dims)
    axes = {
        name: surface[dim].values
        for dim, other in zip(dims, others, strict=True)
        for name in (dim, other)
    }
    return xr.DataArray(
        values.reshape(se.shape * 2),
        axes,
        (*dims, *others),
        "covariance",
        {
            "long_name": f"covariance of the {what}",
            "target": se.attrs["target"],
            "source": se.attrs["source"],
            "feature": pair_name(surface),
        },
    )


def confband(surface: xr.Dataset, level: float, n_draws: int, rng: object) -> xr.Dataset:
    """`confband` of a surface: ``surface_band`` and ``second_effect_band``, math [59]."""
    surface = with_std_error(of_part(surface))
    rows = Rows.of(surface)
    noise = noise_of(surface, rows)
    of_edges, of_cells = np.random.default_rng(rng).spawn(2)  # type: ignore[arg-type]
    known = surface["surface"].notnull().values.ravel()
    own = noise.covariance[np.ix_(known, known)]
    score = largest_deviation(own, level, np.inf, n_draws, of_edges)
    at_edges = score_quantile(score, noise.degrees) * surface["surface_se"].values
    degrees = np.maximum(surface["n_effective"].values - 1, 0.0)
    tested = surface["effect_se"].notnull().values
    if not (rows.a.levels or rows.b.levels):
        # Cells are independent: each to the root of the level.
        quantile = student(level ** (1 / max(int(tested.sum()), 1)), degrees)
    else:
        there = tested.ravel()
        own = rows.cell_covariance()[np.ix_(there, there)]
        score = largest_deviation(own, level, np.inf, n_draws, of_cells)
        quantile = np.where(tested, score_quantile(score, degrees), np.nan)
    in_cells = quantile * surface["effect_se"].values
    out: dict[str, Any] = {}
    for name, dims, half, se in (
        ("surface", AT_EDGES, at_edges, "surface_se"),
        ("second_effect", IN_CELLS, in_cells, "effect_se"),
    ):
        out[f"{name}_band"] = (
            (*dims, "ci_bound"),
            around(surface[name].values, half),
            {
                "long_name": f"simultaneous band of {surface[name].attrs['long_name']}",
                "units": OUTPUT_UNITS,
                "target": surface[se].attrs["target"],
                "source": SOURCE,
                "method": "largest standardised error of a normal surface",
                "kind": "simultaneous over the axes",
                "ci_prob": level,
                "ci_kind": "confidence",
            },
        )
    return surface.assign(out).assign_coords(ci_bound=("ci_bound", ["lower", "upper"]))


def with_std_error(surface: xr.Dataset) -> xr.Dataset:
    """With standard errors, made where they are missing."""
    return surface if "surface_se" in surface else std_error(surface)


def confint(
    surface: xr.Dataset, boot: xr.Dataset | None, level: float, method: str | None
) -> xr.Dataset:
    """`confint` of a surface: ``second_effect_ci`` and ``surface_ci``, pointwise."""
    chosen = ("normal" if boot is None else "percentile") if method is None else method
    check_choice("method", chosen, METHODS)
    surface = with_std_error(surface)
    out: dict[str, Any] = {}
    for name, dims, se in (
        ("second_effect", IN_CELLS, "effect_se"),
        ("surface", AT_EDGES, "surface_se"),
    ):
        estimate = surface[name].values
        if chosen == "normal":
            degrees = surface["n_effective"].values - 1
            if name == "surface":
                influence = Rows.of(surface).influence(surface)
                degrees = kernel.surface_degrees(influence, surface[se].values ** 2)
            ends = around(estimate, student(level, degrees) * surface[se].values)
            how = "standard errors, Student's t"
        else:
            ends = _quantiles(surface, boot, name, level)
            if chosen == "basic":
                ends = 2 * estimate[..., None] - ends[..., ::-1]
            how = f"bootstrap, {chosen}"
        out[f"{name}_ci"] = (
            (*dims, "ci_bound"),
            ends,
            {
                "long_name": f"confidence interval of {surface[name].attrs['long_name']}",
                "units": OUTPUT_UNITS,
                "target": surface[se].attrs["target"],
                "source": SOURCE if boot is None else str(boot.attrs["source"]),
                "method": how,
                "kind": "pointwise",
                "ci_prob": level,
                "ci_kind": "confidence",
            },
        )
    return surface.assign(out).assign_coords(ci_bound=("ci_bound", ["lower", "upper"]))


def _quantiles(surface: xr.Dataset, boot: object, name: str, level: float) -> FloatArray:
    """Outer quantiles of the replicates, (..., bound); of those that have an estimate."""
    if not isinstance(boot, xr.Dataset) or "chain" not in boot.dims or name not in boot:
        raise ValueError(
            "boot must be what bootstrap(surface) returned, for intervals from replicates."
        )
    dims = surface[name].dims
    sizes = [[of.sizes.get(str(dim), 0) for dim in dims] for of in (boot, surface)]
    if sizes[0] != sizes[1]:
        raise ValueError(
            f"boot must be of the cells of the surface; its {name} has {sizes[0]} values, and that "
            f"of the surface {sizes[1]}."
        )
    tail = (1 - level) / 2
    values = boot[name].transpose("chain", "draw", *dims).values
    values = values.reshape(-1, *values.shape[2:])
    ends = np.full((*values.shape[1:], 2), np.nan)
    for at in np.ndindex(values.shape[1:]):
        here = values[(slice(None), *at)]
        here = here[~np.isnan(here)]
        if len(here):
            # The quantile at p is that at place (B + 1) p, and at most an extreme.
            ends[at] = np.quantile(here, [tail, 1 - tail], method="weibull")
    return ends


def size(surface: xr.Dataset) -> float:
    """Standard deviation over the rows of the surface at their values, math [61]."""
    rows = Rows.of(surface)
    places = {"a": rows.place_a, "b": rows.place_b}
    fraction: dict[str, FloatArray | None] = {}
    for side, place in places.items():
        fraction[side] = None
        if f"x_{side}" in surface:
            edges = surface[f"edge_value_{side}"].values
            x = surface[f"x_{side}"].values[rows.used]
            fraction[side] = (x - edges[place]) / np.diff(edges)[place]
    at = kernel.surface_at_values(
        surface["surface"].values, rows.place_a, rows.place_b, fraction["a"], fraction["b"]
    )
    mean = np.average(at, weights=rows.weight)
    return float(np.sqrt(np.average((at - mean) ** 2, weights=rows.weight)))


def rounding(surface: xr.Dataset) -> float:
    """What rounding of second differences may add up to in the sum of all cells."""
    return float(surface["second_difference_error"]) * float(np.sqrt(surface["n_obs"].size))
