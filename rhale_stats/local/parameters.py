"""Derivatives of local effects by the parameters of a fitted model, row by row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arguments.progress import progress_bar
from rhale_stats.arrays import local_effects as kernel
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.local.levels import DIFFERENCES, differences
from rhale_stats.local.rows import cell_edges
from rhale_stats.models.differences import DifferenceQuotients
from rhale_stats.models.outputs import Outputs
from rhale_stats.models.parametric import ROW_NUMBER, Fitted, ParameterChanges, Parametric
from rhale_stats.models.table import Table, as_table
from rhale_stats.schema.dimensions import AT_MEAN, OUTPUT
from rhale_stats.schema.features import feature_names, feature_position, methods_of
from rhale_stats.schema.levels import CATEGORICAL

# Rows times versions of the model in one call, 64 MB an array.
BATCH_ANSWERS = 1 << 23
# Local effects of the model and of its versions differ by no more, relative to the largest.
TOLERANCE = 1e-3


class Derivatives(NamedTuple):
    """Asks a model at parameters around its estimates, at the rows of its local effects."""

    model: Parametric
    quotients: DifferenceQuotients
    changes: ParameterChanges
    table: Table
    local: xr.Dataset
    progress: bool

    @classmethod
    def from_model(cls, fitted: Fitted, local: xr.Dataset) -> Derivatives:
        """Raise ``ValueError`` unless ``X`` are the rows of ``local``, numbered by it."""
        model, table = fitted.model, as_table(fitted.X)
        _check_rows(table, local)
        scale = str(local.attrs.get("scale") or "response")
        changes = ParameterChanges.from_model(model, table, _output(model, table, local), scale)
        quotients = DifferenceQuotients(changes.ask, changes.table)
        return cls(model, quotients, changes, table, local, fitted.progress)

    def slopes(self, name: str, rows: IntArray) -> Iterator[tuple[IntArray, FloatArray]]:
        """Rows, by their numbers in ``local``, and change of their local effects by direction."""
        if AT_MEAN not in self.local:
            yield from self._slopes(name, rows)
            return
        # Some halves have the mean of all rows of their cell.
        changes = np.concatenate([change for _, change in self._slopes(name, rows)])
        local = self.local.isel(feature=feature_position(self.local, name), obs=rows)
        edges = local["cell_value"].values
        weight = local["weight"].values if "weight" in local else None
        at_mean = local[AT_MEAN].values
        kernel.move_to_means(changes, edges[np.isfinite(edges)], local["x"].values, at_mean, weight)
        yield rows, changes

    def _slopes(self, name: str, rows: IntArray) -> Iterator[tuple[IntArray, FloatArray]]:
        number = feature_position(self.local, name)
        column, edges = int(self.local["feature_column"][number]), cell_edges(self.local)[number]
        # Derivatives at few values are interpolated between them, and keep only deviations.
        interpolated = methods_of(self.local)[number] != "finite_difference" and edges is not None
        if interpolated:
            edges = None
        stored, x = [
            self.local[variable_name].values[:, number] for variable_name in ("local_effect", "x")
        ]
        halves = self.local[AT_MEAN].values if AT_MEAN in self.local else None
        around = _Around.from_values(x)
        # Both differences have it, and 1 % of the rows have more.
        rounding = 4 * float(np.nan_to_num(self.local["local_effect_error"].values[number]))
        for part, quotients in self._parts(name, rows, 4):
            x = self.local["x"].values[part, number]
            ends = kernel.cell_ends(edges, x)[::-1] if edges is not None else around.ends(x)
            (upper, lower), arguments = quotients.evaluate(column, ends)
            change = upper - lower
            with np.errstate(invalid="ignore", divide="ignore"):
                change /= (arguments[0] - arguments[1])[:, None]
            is_half = np.zeros(len(part), bool) if halves is None else halves[part]
            if not interpolated:
                _check_model(change[~is_half, -1], stored[part][~is_half], name, rounding=rounding)
            yield part, change[:, :-1]

    def steps(self, name: str, rows: IntArray) -> Iterator[tuple[IntArray, FloatArray, FloatArray]]:
        """The same of features with levels: changes of the differences up and down."""
        number = feature_position(self.local, name)
        column, code = int(self.local["feature_column"][number]), self.local["x"].values[:, number]
        values = self._values_of_levels(column, code, int(self.local["n_levels"][number]))
        stored = [self.local[side].values[:, number] for side in DIFFERENCES]
        for part, quotients in self._parts(name, rows, 3):
            both = differences(quotients, column, code[part].astype(np.int64), values)[:2]
            for again, side_stored in zip(both, stored, strict=True):
                present = np.isfinite(side_stored[part])
                _check_model(again[present, -1], side_stored[part][present], name)
            yield part, both[0][:, :-1], both[1][:, :-1]

    def _values_of_levels(self, column: int, code: FloatArray, n_levels: int) -> Any:
        """The level of every number, as the column itself holds it."""
        has_level = np.flatnonzero(np.isfinite(code))
        numbers, first = np.unique(code[has_level].astype(np.int64), return_index=True)
        if len(numbers) < n_levels:
            name = self.changes.table.names[column]
            raise ValueError(
                f"local must have rows of all {n_levels} levels of {name!r} with model=; got rows "
                f"of {len(numbers)}. Pass the local effects of all rows."
            )
        rows = self.local[ROW_NUMBER].values[has_level[first]]
        return self.changes.table.series(column).array[rows]

    def _parts(
        self, name: str, rows: IntArray, versions: int
    ) -> Iterator[tuple[IntArray, DifferenceQuotients]]:
        """Numbers of some rows, and the model at these, in blocks that fit in memory."""
        size = max(BATCH_ANSWERS // (versions * (self.changes.n_directions + 1)), 1)
        what = f"parameters, {name}"
        with progress_bar(len(rows), what, "row", progress=self.progress, scale=True) as bar:
            for begin in range(0, len(rows), size):
                part = rows[begin : begin + size]
                yield part, self.quotients.take(self.local[ROW_NUMBER].values[part])
                bar.update(len(part))


class _Around(NamedTuple):
    """Scale and range of a feature, by which values beside it are chosen, whatever the block."""

    scale: float
    low: float
    high: float

    @classmethod
    def from_values(cls, x: FloatArray) -> _Around:
        """Of all values, of which some may be missing."""
        x = x[~np.isnan(x)]
        return cls(kernel.robust_scale(x), float(x.min()), float(x.max()))

    def ends(self, x: FloatArray) -> Sequence[FloatArray]:
        """Values above and below every value, for derivatives (math [1])."""
        step = kernel.step_at(x, self.scale, float(np.finfo(np.float64).eps))
        return kernel.central_arguments(x, step, self.low, self.high)


def _output(model: Parametric, table: Table, local: xr.Dataset) -> int:
    """Number of the output that the local effects are of."""
    label = str(local[OUTPUT].values) if OUTPUT in local.coords else local.attrs["output_label"]
    outputs = Outputs(model.as_model, table)
    outputs(outputs.table.take(np.arange(min(2, table.n_rows))).copied())
    labels = [str(name_of_output) for name_of_output in outputs.labels]
    if label and label not in labels:
        raise ValueError(
            f"model must have the output {label!r} that local is of; it has {', '.join(labels)}."
        )
    return labels.index(label) if label else 0


def _check_rows(table: Table, local: xr.Dataset) -> None:
    numbers = local[ROW_NUMBER].values
    for number, name in enumerate(feature_names(local)):
        column, x = int(local["feature_column"][number]), local["x"].values[:, number]
        if str(local["feature_kind"].values[number]) in CATEGORICAL:
            continue  # levels are numbered in an order of their own
        present = ~np.isnan(x)
        x_of_table: NDArray[Any] = np.asarray(table.column(column), dtype=np.float64)[numbers]
        # Halves of rows on edges are just left of them.
        if not ((x_of_table == x) | (np.nextafter(x_of_table, -np.inf) == x))[present].all():
            raise ValueError(
                f"X must hold the rows of local, in their order; values of {name!r} differ. Pass "
                f"the table that local was made from."
            )


def _check_model(
    middle: FloatArray, stored: FloatArray, name: str, *, rounding: float = 0.0
) -> None:
    """Raise ``ValueError`` where the model has other local effects than those that are known."""
    size = max(float(np.abs(stored).max(initial=0.0)), float(np.abs(middle).max(initial=0.0)))
    if np.abs(middle - stored).max(initial=0.0) > max(TOLERANCE * size, rounding):
        raise ValueError(
            f"model must be the one that local was made from; its local effects of {name!r} differ."
        )
