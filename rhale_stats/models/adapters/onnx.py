"""Models in the ONNX format, as a session of onnxruntime: columns by the names of the inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rhale_stats.models.adapters.adapter import Adapter, in_order, numbers

# Types of tensors that a column of a table can become.
TYPES: dict[str, Any] = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
    "tensor(string)": np.str_,
}
FLOATING = ("tensor(float)", "tensor(double)")


def adapter(session: Any) -> Adapter:
    """A session: one input for all columns, or one a column; of classifiers the probabilities."""
    inputs, output = session.get_inputs(), _output(session)
    unknown = [tensor.type for tensor in inputs if tensor.type not in TYPES]
    if unknown:
        raise TypeError(
            f"model must take tensors of {', '.join(TYPES)} where it is an ONNX model; got "
            f"{', '.join(unknown)}."
        )
    by_name = len(inputs) > 1 or inputs[0].shape[-1:] == [1]
    names = [tensor.name for tensor in inputs] if by_name else None

    def predict(rows: Any) -> Any:
        if names is None:
            (only,) = inputs
            tensors = {only.name: numbers(rows, "ONNX").astype(TYPES[only.type])}
        else:
            tensors = _columns(in_order(rows, names, "ONNX"), inputs)
        return _answer(session.run([output.name], tensors)[0])

    return Adapter(predict, features=names)


def _columns(rows: Any, inputs: Any) -> dict[str, Any]:
    """A column for each input, of the type and shape that it takes."""
    columns = {}
    for position, tensor in enumerate(inputs):
        column = rows.iloc[:, position] if isinstance(rows, pd.DataFrame) else rows[:, position]
        values: NDArray[Any] = np.asarray(column).astype(TYPES[tensor.type])
        if tensor.type == "tensor(string)":
            values = values.astype(object)
        columns[tensor.name] = values[:, None] if len(tensor.shape) == 2 else values
    return columns


def _output(session: Any) -> Any:
    """The output with numbers: the prediction, or the probabilities beside labels."""
    fit = [
        output
        for output in session.get_outputs()
        if output.type in FLOATING or output.type.startswith("seq(map(")
    ]
    if not fit:
        types = ", ".join(output.type for output in session.get_outputs())
        raise TypeError(
            f"model must answer with numbers where it is an ONNX model; its outputs are {types}. "
            f"Export a classifier with its probabilities."
        )
    return next((output for output in fit if "prob" in output.name.lower()), fit[0])


def _answer(answer: Any) -> Any:
    """Numbers (rows) or (rows, outputs); some converters give a dict of probabilities a row."""
    if isinstance(answer, list):
        return np.array([list(probabilities.values()) for probabilities in answer])
    return answer[:, 0] if answer.ndim == 2 and answer.shape[1] == 1 else answer
