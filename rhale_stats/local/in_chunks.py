"""Local effects of tables in chunks: decided on a sample, computed when they are needed."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from rhale_stats.arguments.checks import check_finite
from rhale_stats.arrays import local_effects as kernel
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.bins.rule import BinRule
from rhale_stats.chunks import array_of
from rhale_stats.local.chunks import WAITING
from rhale_stats.local.rows import cell_edges, difference_edges
from rhale_stats.models.chunked import Glance, places_of, weights_of_rows
from rhale_stats.models.differences import DifferenceQuotients, Differences
from rhale_stats.models.options import ModelOptions
from rhale_stats.models.probes import gradient_columns, jacobian_columns
from rhale_stats.models.table import Table, as_table
from rhale_stats.schema.dimensions import OUTPUT
from rhale_stats.schema.features import feature_names, methods_of
from rhale_stats.schema.variables import variable

# Rows of a chunk for which the model is asked at a time.
BATCH_ROWS = 1 << 17


@dataclass(frozen=True)
class LocalMethod:
    """How local effects of one feature are taken at any row.

    ``scale`` is that of the steps of central differences, ``edges`` are those of the cells that
    slopes are taken across, if they are; ``tied`` says that values repeat (math [2]).
    """

    position: int
    method: str
    low: float
    high: float
    scale: float
    edges: FloatArray | None
    tied: bool

    def places(self, x: FloatArray) -> FloatArray:
        """Values of rows; with ties, half of the rows on an edge are in the cell to the left."""
        return x if self.edges is None or not self.tied else kernel.on_both_sides(self.edges, x)


@dataclass(frozen=True)
class Plan:
    """Local effects of a model, for any chunk of its table."""

    model: Any
    jacobian: Any
    options: ModelOptions
    precision: float
    offset: float
    n_outputs: int
    ways: Sequence[LocalMethod]

    def values(self, chunk: Any) -> FloatArray:
        """Values of the features, (row, feature)."""
        x = np.empty((len(chunk), len(self.ways)))
        if len(chunk):
            table = as_table(chunk)
            for column, way in enumerate(self.ways):
                x[:, column] = way.places(table.column(way.position))
        return x

    def effects(self, chunk: Any) -> FloatArray:
        """Local effects, (output, row, feature); NaN of a constant feature."""
        values = np.full((self.n_outputs, len(chunk), len(self.ways)), np.nan)
        for begin in range(0, len(chunk), BATCH_ROWS):
            rows = np.arange(begin, min(begin + BATCH_ROWS, len(chunk)))
            table, quotients = as_table(chunk).take(rows), None
            if any(way.method != "jacobian" for way in self.ways):
                output, scale = self.options.output, self.options.scale
                batch_rows = self.options.batch_rows
                quotients = DifferenceQuotients(
                    self.model, table, output, scale, batch_rows=batch_rows
                )
                quotients.outputs.precision, quotients.outputs.offset = self.precision, self.offset
            exact = [way.position for way in self.ways if way.method == "gradient"]
            gradients: dict[int, Differences] = {}
            if exact and quotients is not None:
                # The first answer shows how many outputs there are, and a function of JAX.
                quotients.take(np.arange(1)).at_rows()
                gradients = gradient_columns(quotients, exact, required=True)
            for column, way in enumerate(self.ways):
                if way.low < way.high:
                    gradient = gradients.get(way.position)
                    effects = self._of_feature(table, quotients, way, gradient)
                    values[:, rows[0] : rows[-1] + 1, column] = effects.T
        return values

    def _of_feature(
        self,
        table: Table,
        quotients: DifferenceQuotients | None,
        way: LocalMethod,
        differences: Differences | None,
    ) -> FloatArray:
        name, x = table.names[way.position], table.column(way.position)
        present = ~np.isnan(x)
        if not present.any():
            return np.full((len(x), self.n_outputs), np.nan)
        if quotients is not None and not present.all():
            quotients = quotients.take(present)
        x = x[present]
        if differences is not None:
            differences = differences.take(present)  # by the gradient of the model
        elif way.method == "jacobian":
            differences = jacobian_columns(self.jacobian, table, [way.position])[way.position].take(
                present
            )
        elif way.edges is not None:
            assert quotients is not None
            differences = quotients.finite(way.position, way.edges, way.places(x))
        else:
            assert quotients is not None
            step = kernel.step_at(x, way.scale, self.precision * self.offset)
            arguments = kernel.central_arguments(x, step, way.low, way.high)
            differences = quotients.quotient(
                *quotients.evaluate(way.position, arguments), way.method
            )
        each = differences.local_effect
        advice = "See what the model returns at these rows."
        check_finite(each.sum(axis=1), "Local effects", name, advice)
        if present.all():
            return each
        out = np.full((len(present), each.shape[1]), np.nan)
        out[present] = each
        return out


def check_in_chunks(
    jacobian: Any, options: ModelOptions, percentiles: tuple[float, float] | None = None
) -> None:
    """Raise ``ValueError`` for what is not known of a table in chunks."""
    if percentiles is not None:
        raise ValueError(
            f"percentiles must be left out where X is in chunks; got {percentiles!r}. Take "
            f"GivenBins(edges) of the inner rows of a sample, and rows within them."
        )
    if jacobian is not None and not callable(jacobian):
        raise ValueError(
            "jacobian must be a function of X where X is in chunks; got derivatives of all rows."
        )
    if options.missing == "bin":
        raise ValueError(
            f"missing must be 'raise' or 'drop' where X is in chunks; got {options.missing!r}. "
            f"Take the effect of missing values from a sample of the rows."
        )


def in_chunks(
    of_sample: xr.Dataset,
    chunks: Sequence[Any],
    seen: Glance,
    model: Any,
    jacobian: Any,
    bins: BinRule | None,
    options: ModelOptions,
) -> xr.Dataset:
    """Local effects of all chunks by the methods of those of a sample, computed when needed."""
    weights = None
    if options.weights is not None:
        weights = weights_of_rows(options.weights, seen.lengths, options.weight_kind)
    slopes = [
        int(position)
        for position, own_edges in zip(
            of_sample["feature_column"].values, cell_edges(of_sample), strict=True
        )
        if own_edges is not None
    ]
    places = places_of(chunks, seen.lengths, slopes, weights) if slopes else {}
    counted = options.weights is None or options.weight_kind == "frequency"
    dropped = options.missing == "drop"
    ways = _ways(of_sample, seen, bins, places, counted=counted, dropped=dropped)
    effect = of_sample["local_effect"]
    plan = Plan(
        model,
        jacobian,
        options,
        float(of_sample.attrs["answer_precision"]),
        float(of_sample.attrs["answer_offset"]),
        effect.sizes.get(OUTPUT, 1),
        ways,
    )
    x, effects = _arrays(chunks, seen.lengths, plan)
    data: dict[str, Any] = {
        "x": (("obs", "feature"), x, of_sample["x"].attrs),
        "local_effect": (
            effect.dims,
            effects if OUTPUT in effect.dims else effects[0],
            effect.attrs,
        ),
    }
    edges = [way.edges for way in ways]
    if any(own_edges is not None for own_edges in edges):
        most = max(len(own_edges) for own_edges in edges if own_edges is not None)
        table = np.full((len(ways), most), np.nan)
        for number, own_edges in enumerate(edges):
            table[number, : 0 if own_edges is None else len(own_edges)] = own_edges
        data["cell_value"] = variable("cell_value", table)
    n_missing = seen.n_missing[[way.position for way in ways]]
    if n_missing.any():
        data["n_missing"] = variable("n_missing", n_missing)
    facts: dict[str, Any] = {"n_rows": sum(seen.lengths)}
    if weights is not None:
        kind = options.weight_kind
        data["weight"] = ("obs", weights, {"long_name": f"{kind} weight", "units": "1"})
        facts["weight_kind"] = kind
    rest = of_sample.drop_dims([name for name in ("obs", "cell_edge") if name in of_sample.dims])
    return rest.assign(data).assign_attrs(facts)


def _ways(
    of_sample: xr.Dataset,
    seen: Glance,
    bins: BinRule | None,
    places: Mapping[int, tuple[FloatArray, FloatArray | None]],
    *,
    counted: bool,
    dropped: bool,
) -> list[LocalMethod]:
    """How local effects are taken, with the ends of all rows, and cells by their ``places``."""
    ways, table = [], as_table(seen.sample)
    names, methods, edges_of_features = (
        feature_names(of_sample),
        methods_of(of_sample),
        cell_edges(of_sample),
    )
    for number, position in enumerate(of_sample["feature_column"].values):
        x, name = of_sample["x"].values[:, number], names[number]
        x = x[~np.isnan(x)]
        low, high = float(seen.low[position]), float(seen.high[position])
        n_bad = int(seen.n_bad[position]) - (int(seen.n_missing[position]) if dropped else 0)
        if n_bad:
            raise ValueError(
                f"X of feature {name!r} must be finite; got {n_bad} "
                f"{'inf' if dropped else 'NaN or inf'} in {sum(seen.lengths)} rows. Drop these "
                "rows before the call."
            )
        if x.min() == x.max() and low < high:
            raise ValueError(
                f"X of feature {name!r} must vary among the {len(x)} rows of the sample on which "
                f"steps are decided; it varies elsewhere, from {low:.6g} to {high:.6g}. Shuffle "
                f"the rows, or leave the feature out: features=[...]."
            )
        edges, tied = None, False
        if edges_of_features[number] is not None:
            values, weight = places[position]
            tied = kernel.are_repeated(values, weight if counted else None)
            edges = difference_edges(bins, name, *places[position], counted=counted)
            edges = table.whole(position, edges)
        scale = kernel.robust_scale(x)
        ways.append(LocalMethod(int(position), methods[number], low, high, scale, edges, tied))
    return ways


def _arrays(chunks: Sequence[Any], lengths: Sequence[int], plan: Plan) -> tuple[Any, Any]:
    """Values (row, feature) and local effects (output, row, feature), as dask arrays."""
    from dask.delayed import delayed

    # The plan, with the model, is one node of the graph.
    token, features = uuid.uuid4().hex, len(plan.ways)
    shared = delayed(plan, name=f"{WAITING}{token}", traverse=False)

    def tasks(function: Any) -> list[Any]:
        return [(function, shared.key, chunk.key) for chunk in chunks]

    waiting = [shared, *chunks]
    return (
        array_of(f"x-{token}", tasks(Plan.values), lengths, (features,), delayed=waiting),
        array_of(
            f"local_effects-{token}",
            tasks(Plan.effects),
            lengths,
            (plan.n_outputs, features),
            axis=1,
            delayed=waiting,
        ),
    )
