"""Standard errors, intervals, replicates and tables of second-order effects (math [59]).

What `std_error`, `vcov`, `confint`, `confband`, `bootstrap`, `tidy`, `glance` and `summary` do with
what `ale2` returned. The model is not asked again: the second differences of the rows are kept with
the surface.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from scipy import stats
from statsmodels.iolib.summary import Summary
from statsmodels.iolib.table import SimpleTable
from statsmodels.iolib.tableformatting import fmt_2cols, fmt_params

from rhale_stats import meaning
from rhale_stats.arrays import resample
from rhale_stats.arrays import second_order as kernel
from rhale_stats.arrays.intervals import around, largest_deviation, score_quantile, student
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.by_part import with_notes
from rhale_stats.draws import Drawn, Resampling
from rhale_stats.identity import OF_ESTIMATE, estimate_fingerprint, row_labels
from rhale_stats.schema import OUTPUT, OUTPUT_UNITS, kept_interval, of_part, with_units
from rhale_stats.surface_data import pair_name
from rhale_stats.validate import check_choice

METHODS = ("normal", "percentile", "basic")
IN_CELLS, AT_EDGES = ("bin_a", "bin_b"), ("edge_a", "edge_b")
# Draws at once: so many numbers of weights.
CHUNK = 1 << 23
# Corners that a covariance may have: its square is 50 MB.
MOST_EDGES = 2500
# Points of the surface that a printed summary shows.
SHOWN = 10
SOURCE = "rows"


class Rows(NamedTuple):
    """The rows behind a surface, with the grid that they lie in."""

    used: NDArray[np.bool_]
    a: kernel.Axis
    b: kernel.Axis
    place_a: IntArray
    place_b: IntArray
    cell: IntArray
    delta: FloatArray
    weight: FloatArray
    frequency: bool
    cells: kernel.Cells

    @classmethod
    def of(cls, surface: xr.Dataset) -> Rows:
        """Raise ``ValueError`` unless the rows are those that the surface was made from."""
        needed = ("second_difference", "cell_a", "cell_b")
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
        a, b = (
            kernel.Axis(
                surface.sizes[f"edge_{side}"], levels=surface.attrs[f"kind_{side}"] == "categorical"
            )
            for side in "ab"
        )
        used = surface["cell_a"].values >= 0
        place_a, place_b = (surface[f"cell_{side}"].values[used].astype(np.int64) for side in "ab")
        delta = surface["second_difference"].transpose("obs", "side_a", "side_b").values[used]
        weight = np.ones(int(used.sum()))
        frequency = surface.attrs["weight_kind"] == "frequency"
        if "weight" in surface:
            weight = surface["weight"].values[used]
        cell = kernel.members(a, b, place_a, place_b)
        cells = kernel.cells(a, b, cell, np.nan_to_num(delta), weight, frequency=frequency)
        if not np.array_equal(cells.n_obs, surface["n_obs"].values):
            raise ValueError(
                f"surface must have the rows that it was made from; its cells count "
                f"{int(surface['n_obs'].sum())} second differences, and its rows have "
                f"{int(cells.n_obs.sum())}. Select rows of X before ale2."
            )
        return cls(
            used, a, b, place_a, place_b, cell, np.nan_to_num(delta), weight, frequency, cells
        )

    def arrays(self) -> tuple[IntArray, IntArray, IntArray, FloatArray, FloatArray]:
        """Places, cells, second differences and weights, as formulas take them."""
        return self.place_a, self.place_b, self.cell, self.delta, self.weight

    def cell_covariance(self) -> FloatArray:
        """Of the cells' means, (cell, cell)."""
        rows = (self.cell, self.delta, self.weight)
        return kernel.cell_covariance(self.cells, *rows, frequency=self.frequency)

    def influence(self, surface: xr.Dataset) -> kernel.Influence:
        """What every row does to the surface."""
        fill = kernel.filling(self.cells.supported)
        table = kernel.table(self.a, self.b, self.place_a, self.place_b, self.weight)
        mean = kernel.filled(fill, self.cells.mean)
        found = kernel.surface(self.a, self.b, mean, table)
        centred = str(surface.attrs["centering"]) == "ale"
        return kernel.Influence(self.a, self.b, fill, table, found, self.cells, centred)


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


def bootstrap(surface: xr.Dataset, effect: object, asked: Resampling) -> Drawn:
    """`bootstrap` of a surface, which has its rows with it."""
    asked.refuse_choices_of_bins()
    if effect is not None:
        raise ValueError(
            "bootstrap of a surface of ale2 takes the surface alone: bootstrap(surface)."
        )
    rows = Rows.of(surface)
    counts = rows.weight if rows.frequency else None
    units = asked.units(len(rows.weight), counts, rows.used, row_labels(surface))
    drawn = replicates(surface, rows, asked.scheme, units, asked.seeds)
    of_estimate = estimate_fingerprint(surface, ["second_effect"])
    return Drawn(drawn, units, surface, {"bins": "fixed", OF_ESTIMATE: of_estimate})


def replicates(
    surface: xr.Dataset,
    rows: Rows,
    scheme: str,
    units: resample.Units,
    seeds: Sequence[np.random.Generator],
) -> xr.Dataset:
    """Replicates along ``draw`` of everything that `ale2` estimates, math [29]."""
    influence = rows.influence(surface)
    size = int(np.clip(CHUNK // len(rows.weight), 1, 64))
    parts = []
    for begin in range(0, len(seeds), size):
        drawn = resample.weights_of(scheme, units, seeds[begin : begin + size], len(rows.weight))
        parts.append(kernel.replicates(influence, *rows.arrays(), drawn))
    mean, at_edges, n_filled = (np.concatenate(one) for one in zip(*parts, strict=True))
    at_edges = np.where(surface["surface"].notnull().values, at_edges, np.nan)
    kept = ("second_effect", "surface")
    coords = {
        name: one
        for name, one in surface.coords.items()
        if {"obs", "side_a", "side_b"}.isdisjoint(one.dims)
    }
    return xr.Dataset(
        {
            **{
                name: (("draw", *dims), values, dict(surface[name].attrs))
                for name, dims, values in zip(
                    kept, (IN_CELLS, AT_EDGES), (mean, at_edges), strict=True
                )
            },
            "n_filled": (
                "draw",
                n_filled,
                {"long_name": "empty cells of the replicate", "units": "cells"},
            ),
        },
        coords,
    )


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


def tidy(surface: xr.Dataset, level: float) -> pd.DataFrame:
    """`tidy` of a surface: a line a cell with rows."""
    surface = with_std_error(of_part(surface))
    at_a, at_b = np.nonzero(surface["supported"].values)
    frame = pd.DataFrame({"term": pair_name(surface), "bin_a": at_a})
    frame["bin_b"] = at_b
    for side, at in (("a", at_a), ("b", at_b)):
        if f"level_{side}" in surface.coords:
            levels = surface[f"level_{side}"].values
            frame[f"level_{side}"], frame[f"level_{side}_next"] = levels[at], levels[at + 1]
        else:
            for end in ("left", "right"):
                frame[f"bin_{end}_{side}"] = surface[f"bin_{end}_{side}"].values[at]
    estimate, se, n = (
        surface[name].values[at_a, at_b] for name in ("second_effect", "effect_se", "n_effective")
    )
    ends = kept_interval(surface, "second_effect", level)
    in_cells = around(estimate, student(level, n - 1) * se) if ends is None else ends[at_a, at_b]
    tested = {}
    if meaning.holds_model(str(surface["effect_se"].attrs["source"])):
        with np.errstate(invalid="ignore", divide="ignore"):
            statistic = np.where(se > rounding(surface), estimate / se, np.nan)
        tested = {"statistic": statistic, "p_value": 2 * stats.t.sf(np.abs(statistic), n - 1)}
    return frame.assign(
        n_obs=surface["n_obs"].values[at_a, at_b],
        estimate=estimate,
        std_error=se,
        **tested,
        conf_low=in_cells[:, 0],
        conf_high=in_cells[:, 1],
        heterogeneity=surface["heterogeneity"].values[at_a, at_b],
    )


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


def glance(surface: xr.Dataset, _level: float) -> pd.DataFrame:
    """`glance` of a surface: one line."""
    surface = with_std_error(of_part(surface))
    attrs, values, se = surface.attrs, surface["surface"].values, surface["surface_se"].values
    # What is 0 up to rounding is not many standard errors from it, however small these are.
    least = rounding(surface)
    shown = (np.abs(values) > least) & (se > 0)
    z = np.divide(np.abs(values), se, where=shown, out=np.zeros(values.shape))
    return pd.DataFrame(
        {
            "term": pair_name(surface),
            "feature_a": attrs["feature_a"],
            "feature_b": attrs["feature_b"],
            "n_obs": attrs["n_rows"],
            "n_cells": surface["n_obs"].size,
            "n_empty": attrs["n_empty"],
            "size": size(surface),
            "surface_max": float(np.nanmax(np.abs(values))),
            "z_max": float(z.max()),
        },
        index=[0],
    )


def rounding(surface: xr.Dataset) -> float:
    """What rounding of second differences may add up to in the sum of all cells."""
    return float(surface["second_difference_error"]) * float(np.sqrt(surface["n_obs"].size))


def summary(surface: xr.Dataset, _feature: object, level: float) -> Summary:
    """`summary` of a surface: its size, its cells, and where it is farthest from 0."""
    surface = of_part(surface)
    found = confint(surface, None, level, "normal")
    attrs, values = found.attrs, found["surface"].values
    chosen = sorted(farthest_corners(found, SHOWN))
    tail = (1 - level) / 2
    heads = ["surface", "std err", f"[{tail:.3g}", f"{1 - tail:.3g}]"]
    lines = [
        [
            f"{one:.4g}"
            for one in (
                values[at],
                found["surface_se"].values[at],
                *found["surface_ci"].values[at],
            )
        ]
        for at in chosen
    ]
    stubs = [corner_name(found, at) for at in chosen]
    output = with_units(attrs["output_name"], attrs["output_units"])
    title = f"Second-order ALE: {attrs['feature_a']} and {attrs['feature_b']} on {output}"
    n_cells = found["n_obs"].size
    facts = [
        ["Rows:", str(attrs["n_rows"]), "Cells:", str(n_cells)],
        ["Weights:", attrs["weight_kind"], "without rows:", str(attrs["n_empty"])],
        ["Centring:", attrs["centering"], "Spread over rows:", f"{size(surface):.4g}"],
        [
            *("Uncertainty:", meaning.uncertainty(str(found["surface_se"].attrs["source"]))),
            *("", ""),
        ],
    ]
    notes = []
    if attrs["n_filled"]:
        share = attrs["n_filled"] / n_cells
        notes.append(
            f"{attrs['n_filled']} of {n_cells} cells ({100 * share:.0f} %) have no rows. There the "
            f"surface takes the second difference of the nearest cell."
        )
    n_borrowed = int(found["surface_se"].attrs["n_borrowed"])
    if n_borrowed:
        notes.append(
            f"{n_borrowed} cells have one row. Their variance is taken from the other cells."
        )
    method = found["surface_ci"].attrs["method"].removeprefix("standard errors, ")
    notes += [
        f"Standard errors treat the model and the cells as fixed. Intervals: pointwise, {method}.",
        f"The table has the {len(chosen)} corners of cells where the surface is farthest from 0.",
        "Spread over rows: the standard deviation of the surface, in units of the output.",
        f"Bins of {attrs['feature_a']}: {attrs['bins_a']}. Bins of {attrs['feature_b']}: "
        f"{attrs['bins_b']}.",
    ]
    body = SimpleTable(lines, heads, stubs, txt_fmt=fmt_params)
    width = len(body.as_text().partition("\n")[0]) - 9
    widths = [max(len(text) for text in column) for column in zip(*facts, strict=True)]
    room = max(width - sum(widths), 0)
    widths[1], widths[3] = widths[1] + room // 2, widths[3] + room - room // 2
    form = {"data_fmts": ["%s"], "data_aligns": "lrlr", "colsep": "   ", "colwidths": widths}
    head = SimpleTable(facts, title=title, txt_fmt=fmt_2cols | form)
    return with_notes([head, body], notes)


def farthest_corners(surface: xr.Dataset, most: int) -> list[tuple[int, int]]:
    """Places of the corners of cells where the surface is farthest from 0, the farthest first."""
    size = np.abs(surface["surface"].values)
    order = np.argsort(-np.nan_to_num(size).ravel(), kind="stable")[:most]
    places = zip(*(axis.tolist() for axis in np.unravel_index(order, size.shape)), strict=True)
    return [(a, b) for a, b in places if not np.isnan(size[a, b])]


def corner_name(surface: xr.Dataset, at: tuple[int, int]) -> str:
    """Where a corner of cells is, in words."""
    return ", ".join(
        f"{surface.attrs[f'feature_{side}']} = {_edge(surface, side, number)}"
        for side, number in zip("ab", at, strict=True)
    )


def _edge(surface: xr.Dataset, side: str, number: int) -> str:
    if f"level_{side}" in surface.coords:
        return str(surface[f"level_{side}"].values[number])
    return f"{surface[f'edge_value_{side}'].values[number]:.4g}"
