"""Local effects as a labelled Dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arguments.checks import check_size
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.models.differences import DifferenceQuotients, Differences
from rhale_stats.models.forms import PANDAS
from rhale_stats.models.table import Table
from rhale_stats.printing.text import (
    number_text,
    output_text,
    rows_text,
)
from rhale_stats.schema.dimensions import LEFT, OUTPUT, with_outputs
from rhale_stats.schema.features import feature_coordinate, feature_names, method_text
from rhale_stats.schema.levels import CATEGORICAL
from rhale_stats.schema.notes import PrintedTable, Summary
from rhale_stats.schema.variables import EFFECT_UNITS, X_UNITS, dataset_of, variable

if TYPE_CHECKING:
    from rhale_stats.models.sample import Sample


# Forms of a table: of arrays, of names, of numbers in place of names.
ARRAY, FRAME, NUMBERED_FRAME = "array", "DataFrame", "DataFrame with numbered columns"


def labelled(
    sample: Sample,
    x: FloatArray,
    differences: list[Differences],
    quotients: DifferenceQuotients | None = None,
    absent: Mapping[int, Mapping[str, FloatArray]] | None = None,
    beyond: NDArray[np.bool_] | None = None,
) -> xr.Dataset:
    """Local effects of some columns, at the rows that have a value, as `local_effects` returns.

    ``absent`` are the effects of missing values, by name, for columns that have any, and ``beyond``
    which of the values that are NaN lie beyond the axis. The local effects in ``differences``
    are given up one by one, so that they are held once.
    """
    outputs = None if quotients is None else quotients.outputs
    labels = [] if outputs is None else outputs.labels
    n_outputs = max(len(labels), 1)
    data = _values(sample, x, differences, n_outputs)
    weight = sample.weight
    data |= _of_missing(x, absent or {}, n_outputs, beyond, sample.multiplicity)
    if weight is not None:
        long_name = f"{sample.options.weight_kind} weight"
        data["weight"] = ("obs", weight, {"long_name": long_name, "units": "1"})
    facts = {
        "scale": "" if outputs is None else outputs.scale,
        "output_label": "" if outputs is None else outputs.label,
        "answer_precision": max(difference.precision for difference in differences),
        "answer_range": 0.0 if outputs is None else outputs.range,
        "answer_offset": 1.0 if outputs is None else outputs.offset,
        **({} if outputs is None else {"answers_from": outputs.answers_from}),
        **sample.facts,
        "n_rows": sample.table.n_rows,
        "n_columns": len(sample.table.names),
        "table": _form(sample.table),
    }
    local = dataset_of(data, _coordinates(sample, differences), facts)
    return with_outputs(local, labels, [] if outputs is None else outputs.names)


def _values(
    sample: Sample, x: FloatArray, differences: list[Differences], n_outputs: int
) -> dict[str, Any]:
    """Values of the features, their local effects, the error of these, and their cells."""
    n_features, names = len(sample.positions), sample.names
    effect = np.empty((n_outputs, n_features, sample.table.n_rows))
    error = np.zeros((n_outputs, n_features))
    bias = np.zeros((n_outputs, n_features))
    tied = any(of_feature.left is not None for of_feature in differences)
    left = np.full_like(effect, np.nan) if tied else None
    for column, difference in enumerate(differences):
        present = ~np.isnan(x[:, column])
        if not len(difference.local_effect):
            effect[:, column] = np.nan
            continue
        _check_sizes(names[column], x[present, column], difference.local_effect)
        effect[:, column, ~present] = np.nan
        effect[:, column, present] = difference.local_effect.T
        error[:, column] = difference.error
        if difference.bias is not None:
            bias[:, column] = difference.bias
        if left is not None and difference.left is not None:
            left[:, column, present] = difference.left.T
        differences[column] = replace(
            difference, local_effect=difference.local_effect[:0], left=None
        )
    data: dict[str, Any] = {
        "x": (("obs", "feature"), x, {"long_name": "value of the feature", "units": X_UNITS}),
        "local_effect": (
            (OUTPUT, "obs", "feature"),
            effect.transpose(0, 2, 1),
            {"long_name": "local effect", "units": EFFECT_UNITS},
        ),
        "local_effect_error": ((OUTPUT, "feature"), *variable("local_effect_error", error)[1:]),
        "local_effect_bias": ((OUTPUT, "feature"), *variable("local_effect_bias", bias)[1:]),
    }
    if left is not None:
        values = left.transpose(0, 2, 1)
        data[LEFT] = ((OUTPUT, "obs", "feature"), *variable(LEFT, values)[1:])
    cells = {
        column: of_feature.edges
        for column, of_feature in enumerate(differences)
        if of_feature.edges is not None
    }
    most = max(map(len, cells.values()), default=0)
    if most:
        cell_value = np.full((n_features, most), np.nan)
        for column, edges in cells.items():
            cell_value[column, : len(edges)] = edges
        data["cell_value"] = variable("cell_value", cell_value)
    return data


def _of_missing(
    x: FloatArray,
    absent: Mapping[int, Mapping[str, FloatArray]],
    n_outputs: int,
    beyond: NDArray[np.bool_] | None,
    counts: FloatArray,
) -> dict[str, Any]:
    """Number of the missing values of every feature, and their effects."""
    data: dict[str, Any] = {}
    missing = np.isnan(x).sum(axis=0)
    if beyond is not None and beyond.any():
        data["n_beyond"] = variable("n_beyond", (counts @ beyond).astype(np.int64))
        missing = missing - beyond.sum(axis=0)
    if missing.any() or "n_beyond" in data:
        data["n_missing"] = variable("n_missing", missing)
    for name in next(iter(absent.values()), {}):
        values = np.full((n_outputs, x.shape[1]), np.nan)
        for column, effects in absent.items():
            values[:, column] = effects[name]
        data[name] = ((OUTPUT, "feature"), *variable(name, values)[1:])
    return data


def _coordinates(sample: Sample, differences: Sequence[Differences]) -> dict[str, Any]:
    """Coordinates of the features, and labels of the rows."""
    table, positions, names = sample.table, sample.positions, sample.names
    units = sample.units
    return {
        "feature": feature_coordinate(names),
        "feature_kind": ("feature", np.array([table.kind(position) for position in positions])),
        "feature_units": ("feature", np.array([units.get(name, "") for name in names])),
        "local_effect_method": (
            "feature",
            np.array([difference.method for difference in differences]),
            {"long_name": "how local effects were taken"},
        ),
        "feature_column": (
            "feature",
            np.array(positions),
            {"long_name": "number of the column in the table"},
        ),
        "obs": sample.obs,
    }


def _check_sizes(name: str, x: FloatArray, local_effect: FloatArray) -> None:
    """Raise ``ValueError`` where powers of local effects, or of curves, are no numbers, or 0."""
    size = float(np.abs(local_effect).max())
    check_size(size, f"Local effects of feature {name!r}", "Take other units for the output.")
    advice = "Take other units for the output or the feature."
    check_size(size * float(np.ptp(x)), f"The range of the curve of feature {name!r}", advice)


def _form(table: Table) -> str:
    """The form of the input of the model, as far as its labels are known."""
    if isinstance(table.data, np.ndarray):
        return ARRAY
    if table.form is not PANDAS:
        return table.form.name
    if all(isinstance(label, str) for label in table.data.columns):
        return FRAME
    if all(isinstance(label, int | np.integer) for label in table.data.columns):
        return NUMBERED_FRAME
    return "DataFrame with labels of its own"


def local_summary(local: xr.Dataset, _feature: object, _level: float) -> Summary:
    """Local effects: a line a feature."""
    names = feature_names(local)
    kind = local["feature_kind"].values.astype(str)
    values, x = [local[name].transpose("feature", "obs").values for name in ("local_effect", "x")]
    is_finite = np.isfinite(values)
    n = is_finite.sum(axis=1)
    some = np.maximum(n, 1)
    filled = np.where(is_finite, values, 0.0)
    mean = np.where(n > 0, filled.sum(axis=1) / some, np.nan)
    spread = np.sqrt((np.where(is_finite, values - mean[:, None], 0.0) ** 2).sum(axis=1) / some)
    strength = np.sqrt((filled**2).sum(axis=1) / some) * _spread(x, kind)
    lines = [
        [kind[k], str(n[k]), *map(number_text, (strength[k], mean[k], spread[k]))]
        for k in range(len(names))
    ]
    heads = ["kind", "rows", "strength", "mean", "std dev"]
    title = f"Local effects on {output_text(local)}"
    sizes = np.where(n > 0, strength, np.nan)
    table = PrintedTable(lines, heads, names, title, sizes=sizes.copy)
    words = (
        f"{rows_text(local)}; {method_text(local)}",
        "strength: root mean square of the local effects times the standard deviation of the "
        "feature; for levels, root mean square of the differences.",
    )
    return Summary([table], [], words)


def _spread(x: NDArray[np.float64], kind: NDArray[np.str_]) -> NDArray[np.float64]:
    """Standard deviation of every feature; 1 for levels, which are one step apart."""
    is_finite = np.isfinite(x)
    n = np.maximum(is_finite.sum(axis=1), 1)
    mean = np.where(is_finite, x, 0.0).sum(axis=1) / n
    variance = (np.where(is_finite, x - mean[:, None], 0.0) ** 2).sum(axis=1) / n
    return np.where(np.isin(kind, CATEGORICAL), 1.0, np.sqrt(variance))
