"""Local effects as a labelled Dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from rhale_stats.arguments.checks import check_size
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.models.differences import DifferenceQuotients, Differences
from rhale_stats.models.table import Table
from rhale_stats.schema.dimensions import OUTPUT, with_outputs
from rhale_stats.schema.identity import row_coordinate
from rhale_stats.schema.variables import EFFECT_UNITS, X_UNITS, software, unit_mapping, variable

# Forms of a table: of arrays, of names, of numbers in place of names.
ARRAY, FRAME, NUMBERED_FRAME = "array", "DataFrame", "DataFrame with numbered columns"


def labelled(
    X: Any,
    table: Table,
    positions: Sequence[int],
    x: FloatArray,
    found: Sequence[Differences],
    weight: FloatArray | None,
    *,
    weight_kind: str,
    quotients: DifferenceQuotients | None = None,
    absent: Mapping[int, Mapping[str, FloatArray]] | None = None,
) -> xr.Dataset:
    """Local effects of some columns, at the rows that have a value, as `local_effects` returns."""
    names = [table.names[position] for position in positions]
    attrs = getattr(X, "attrs", {})
    units = unit_mapping(attrs)
    outputs = None if quotients is None else quotients.outputs
    labels = [] if outputs is None else outputs.labels
    n_outputs = max(len(labels), 1)
    effect = np.full((n_outputs, len(positions), table.n_rows), np.nan)
    error = np.zeros((n_outputs, len(positions)))
    missing, absent = np.isnan(x), absent or {}
    for column, one in enumerate(found):
        if len(one.local_effect):
            _check_sizes(names[column], x[~missing[:, column], column], one.local_effect)
            effect[:, column, ~missing[:, column]] = one.local_effect.T
            error[:, column] = one.error
    coordinates: dict[str, Any] = {
        "feature": ("feature", np.array(names), {"long_name": "feature"}),
        "feature_kind": (
            "feature",
            np.array([table.kind(p) for p in positions]),
        ),
        "feature_units": ("feature", np.array([units.get(name, "") for name in names])),
        "local_effect_method": (
            "feature",
            np.array([one.method for one in found]),
            {"long_name": "how local effects were taken"},
        ),
        "feature_column": (
            "feature",
            np.array(positions),
            {"long_name": "number of the column in the table"},
        ),
    }
    coordinates["obs"] = row_coordinate(X, table.n_rows)
    data: dict[str, Any] = {
        "x": (("obs", "feature"), x, {"long_name": "value of the feature", "units": X_UNITS}),
        "local_effect": (
            (OUTPUT, "obs", "feature"),
            effect.transpose(0, 2, 1),
            {"long_name": "local effect", "units": EFFECT_UNITS},
        ),
        "local_effect_error": ((OUTPUT, "feature"), *variable("local_effect_error", error)[1:]),
    }
    most = max((len(one.edges) for one in found if one.edges is not None), default=0)
    if most:
        edges = np.full((len(positions), most), np.nan)
        for column, one in enumerate(found):
            if one.edges is not None:
                edges[column, : len(one.edges)] = one.edges
        data["cell_value"] = variable("cell_value", edges)
    if missing.any():
        data["n_missing"] = variable("n_missing", missing.sum(axis=0))
    for name in next(iter(absent.values()), {}):
        values = np.full((n_outputs, len(positions)), np.nan)
        for column, of_missing in absent.items():
            values[:, column] = of_missing[name]
        data[name] = ((OUTPUT, "feature"), *variable(name, values)[1:])
    if weight is not None:
        data["weight"] = ("obs", weight, {"long_name": f"{weight_kind} weight", "units": "1"})
    out = xr.Dataset(
        data,
        coordinates,
        {
            "scale": "" if outputs is None else outputs.scale,
            "output_label": "" if outputs is None else outputs.label,
            "answer_precision": max(one.precision for one in found),
            "weight_kind": weight_kind if weight is not None else "none",
            "output_name": str(attrs.get("output_name", "output")),
            "output_units": str(attrs.get("output_units", "")),
            "n_rows": table.n_rows,
            "n_columns": len(table.names),
            "table": _form(table),
            "software": software(),
        },
    )
    return with_outputs(out, labels, [] if outputs is None else outputs.names)


def _check_sizes(name: str, x: FloatArray, local_effect: FloatArray) -> None:
    """Raise ``ValueError`` where powers of local effects, or of curves, are no numbers, or 0."""
    size = float(np.abs(local_effect).max())
    check_size(size, f"Local effects of feature {name!r}", "Take other units for the output.")
    advice = "Take other units for the output or the feature."
    check_size(size * float(np.ptp(x)), f"The range of the curve of feature {name!r}", advice)


def _form(table: Table) -> str:
    """What the model takes, as far as its labels are known."""
    if isinstance(table.data, np.ndarray):
        return ARRAY
    if all(isinstance(label, str) for label in table.data.columns):
        return FRAME
    if all(isinstance(label, int | np.integer) for label in table.data.columns):
        return NUMBERED_FRAME
    return "DataFrame with labels of its own"
