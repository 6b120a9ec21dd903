"""Derivatives of local effects by the parameters of a fitted model, row by row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.local.cells import cell_edges
from rhale_stats.models.differences import DifferenceQuotients
from rhale_stats.models.outputs import Outputs
from rhale_stats.models.parametric import Parametric, Versions, parametric
from rhale_stats.models.table import Table, as_table
from rhale_stats.schema.features import feature_names, feature_position

# Rows times versions of the model in one call, 64 MB an array.
BATCH_ANSWERS = 1 << 23
# Local effects of the model and of its versions differ by no more, relative to the largest.
TOLERANCE = 1e-3


class Derivatives(NamedTuple):
    """Asks a model at parameters around its estimates, at the rows of its local effects."""

    model: Parametric
    quotients: DifferenceQuotients
    versions: Versions
    local: xr.Dataset

    @classmethod
    def of(cls, model: Any, X: Any, local: xr.Dataset) -> Derivatives:
        """Raise ``ValueError`` unless ``X`` are the rows of ``local``."""
        fitted, table = parametric(model), as_table(X)
        _check_rows(table, local)
        scale = str(local.attrs.get("scale") or "response")
        versions = Versions.of(fitted, table, _output(fitted, table, local), scale)
        return cls(fitted, DifferenceQuotients(versions.ask, versions.table), versions, local)

    def blocks(self, name: str, rows: IntArray) -> Iterator[tuple[IntArray, FloatArray]]:
        """Numbers of rows, and change of their local effects with every direction."""
        at = feature_position(self.local, name)
        column, edges = int(self.local["feature_column"][at]), cell_edges(self.local)[at]
        known = self.local["local_effect"].values[:, at]
        size = max(BATCH_ANSWERS // (4 * max(self.versions.n_directions, 1)), 1)
        for begin in range(0, len(rows), size):
            part = rows[begin : begin + size]
            quotients = self.quotients.at(part)
            found = quotients.central(column) if edges is None else quotients.finite(column, edges)
            _check_model(found.local_effect, known[part], name)
            yield part, self.versions.derivatives(found.local_effect)

    def influence(self) -> FloatArray | None:
        """Influence of every row on the directions, (row, direction); None if these rows have none.

        The rows must be those of the fit, in their order.
        """
        own = self.model.influence
        if own is None or len(own) != self.versions.table.n_rows:
            return None
        return np.asarray(own @ np.linalg.pinv(self.model.directions()))


def _output(model: Parametric, table: Table, local: xr.Dataset) -> int:
    """Number of the output that the local effects are of."""
    label = str(local.attrs.get("output_label", ""))
    outputs = Outputs(model, table, label or None)
    few = Table(outputs.table.take(np.arange(min(2, table.n_rows))).data, table.names)
    outputs(few.copied())
    return outputs.numbers[0]


def _check_rows(table: Table, local: xr.Dataset) -> None:
    n_obs = local.sizes["obs"]
    if table.n_rows != n_obs:
        raise ValueError(
            f"X must hold the rows of local; got {table.n_rows} rows for {n_obs}. Pass the table "
            f"that local was made from, or the same rows of it."
        )
    for at, name in enumerate(feature_names(local)):
        column, x = int(local["feature_column"][at]), local["x"].values[:, at]
        there = ~np.isnan(x)
        own: NDArray[Any] = np.asarray(table.take(there).column(column), dtype=np.float64)
        if not np.array_equal(own, x[there]):
            raise ValueError(
                f"X must hold the rows of local, in their order; values of {name!r} differ. Pass "
                f"the table that local was made from."
            )


def _check_model(versions: FloatArray, known: FloatArray, name: str) -> None:
    """Raise ``ValueError`` where versions of the model lie around other local effects."""
    middle = versions.mean(axis=1)
    size = max(float(np.abs(known).max(initial=0.0)), float(np.abs(middle).max(initial=0.0)))
    if versions.shape[1] and np.abs(middle - known).max(initial=0.0) > TOLERANCE * size:
        raise ValueError(
            f"model must be the one that local was made from; its local effects of {name!r} differ."
        )
