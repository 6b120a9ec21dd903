"""Functions of JAX: rows in calls of few sizes, gradients by reverse differentiation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary, ref

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rhale_stats.models.adapters.adapter import Adapter, is_real, numbers

# Rows in one call of the function: what stays in the cache of a processor, or keeps a GPU busy.
BATCH_ROWS, ACCELERATED_ROWS = 1 << 13, 1 << 17
# Compiled derivatives of compiled functions that are still in use.
COMPILED: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
# A plain function is one of these arguments if its answers differ by no more than this share.
SAME_ANSWER = 1e-3


def adapter(function: Any) -> Adapter:
    """A function of arrays (row, column) or of a dict of columns, compiled for each size of a call.

    What it takes is seen from the first rows: an array if it can be called with one.
    """
    import jax

    plain = _Plain(function)
    compiled, backward = jax.jit(plain if plain.orders else function), COMPILED.get(function)
    if backward is None and type(function).__name__ == "PjitFunction":
        # What it takes from outside is fixed already, so that its derivative may be kept. A weak
        # reference: a strong one would keep the function in use.
        backward = jax.jit(_backward(_held(ref(function))), static_argnums=2)
        COMPILED[function] = backward
    elif backward is None:
        # Made anew: another value of what a plain function takes from outside would not be seen.
        backward = jax.jit(_backward(plain), static_argnums=2)

    def predict(rows: Any) -> NDArray[Any]:
        return _in_batches(compiled, plain.argument(rows))

    def gradient(rows: Any, columns: Sequence[int]) -> NDArray[Any]:
        argument = plain.argument(rows)
        if isinstance(argument, dict):
            columns = [rows.columns[column] for column in columns]
            # Whole numbers have no derivatives.
            argument |= {name: argument[name].astype(np.float64) for name in columns}
        return _in_batches(lambda part: _derivatives(backward, compiled, part, columns), argument)

    return Adapter(predict, gradient)


def adapter_like(function: Any, rows: Any, answer: Any) -> Adapter | None:
    """The adapter of a plain function, if with it the function answers these rows in this way.

    ``answer`` is None where the function raised for rows in their own form.
    """
    import jax

    made = adapter(function)
    try:
        predictions = np.asarray(made.predict(rows))
        # Another function may have raised for a reason of its own, which the user must see.
        if answer is None and not isinstance(
            function(_Plain(function).argument(rows[:1])), jax.Array
        ):
            return None
    except Exception:  # JAX cannot follow it, or it takes neither an array nor columns
        return None
    if answer is not None:
        expected = np.asarray(answer)
        size = np.abs(expected).max(initial=0)
        if (
            predictions.shape != expected.shape
            or np.abs(predictions - expected).max(initial=0) > SAME_ANSWER * size
        ):
            return None
    return made


class _Plain:
    """A function, and which argument it takes; columns in the order that they have in the table.

    A compiled function gets columns sorted by name, as JAX gives them to every compiled function.
    """

    def __init__(self, function: Any) -> None:
        self.function = function
        self.of_columns: bool | None = None
        self.orders = type(function).__name__ != "PjitFunction"
        self.names: list[Any] = []

    def __call__(self, argument: Any) -> Any:
        if isinstance(argument, dict):
            argument = {name: argument[name] for name in self.names}
        return self.function(argument)

    def argument(self, rows: Any) -> Any:
        """The rows as the function takes them."""
        import jax

        if isinstance(rows, np.ndarray):
            return numbers(rows, "jax")
        if self.of_columns is None:
            self.of_columns = False
            self.names = list(rows.columns)
            some = rows.iloc[:1]
            try:
                jax.eval_shape(self.function, numbers(some, "jax"))
            except Exception as error:
                columns = _columns(some)
                self.names = list(columns)
                try:
                    jax.eval_shape(self, columns)
                except Exception:
                    raise error from None
                self.of_columns = True
        return _columns(rows) if self.of_columns else numbers(rows, "jax")


def _columns(rows: pd.DataFrame) -> dict[Any, NDArray[Any]]:
    """Columns of numbers and of truth values as arrays; JAX has no others."""
    out = {}
    for position, name in enumerate(rows.columns):
        column = rows.iloc[:, position]
        if not is_real(column.dtype):
            continue
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        if not column.isna().any():
            if pd.api.types.is_bool_dtype(column.dtype):
                values = values.astype(bool)
            elif pd.api.types.is_integer_dtype(column.dtype) and np.abs(values).max() < 2**31:
                # Larger ones do not fit into the integers of JAX.
                values = values.astype(np.int64)
        out[name] = values
    return out


def _held(reference: ref[Any]) -> Callable[[Any], Any]:
    def call(rows: Any) -> Any:
        function = reference()
        assert function is not None, "used by those who hold the function only"
        return function(rows)

    return call


def _backward(function: Callable[[Any], Any]) -> Callable[[Any, Any, int], Any]:
    def of_output(rows: Any, others: Any, output: int) -> Any:
        """Derivatives of one output: a row's output depends on this row only."""
        import jax

        def total(rows: Any) -> Any:
            answer = function(others | rows if isinstance(rows, dict) else rows)
            return (answer if answer.ndim == 1 else answer[:, output]).sum()

        return jax.grad(total)(rows)

    return of_output


def _derivatives(
    backward: Callable[[Any, Any, int], Any],
    compiled: Callable[[Any], Any],
    part: Any,
    columns: Sequence[Any],
) -> NDArray[Any]:
    """(row, output, column), of columns by number, or by name where the function takes names."""
    import jax

    by_name = isinstance(part, dict)
    some = {name: part[name] for name in columns} if by_name else part
    others = {name: part[name] for name in part if name not in some} if by_name else None
    derivatives = []
    for output in range(math.prod(jax.eval_shape(compiled, part).shape[1:])):
        each = backward(some, others, output)
        if by_name:
            derivatives.append(np.stack([np.asarray(each[name]) for name in columns], axis=1))
        else:
            derivatives.append(np.asarray(each)[:, list(columns)])
    return np.stack(derivatives, axis=1)


def _in_batches(function: Callable[[Any], Any], argument: Any) -> NDArray[Any]:
    """Answers for batches, filled up to a power of two with copies of the last row.

    Every other number of rows would be compiled anew.
    """
    import jax

    most = BATCH_ROWS if jax.default_backend() == "cpu" else ACCELERATED_ROWS
    n_rows = len(next(iter(argument.values()))) if isinstance(argument, dict) else len(argument)
    parts = []
    for begin in range(0, n_rows, most):
        rows = slice(begin, min(begin + most, n_rows))
        part = jax.tree.map(lambda values, rows=rows: _filled(values[rows]), argument)
        parts.append(np.asarray(function(part))[: rows.stop - rows.start])
    return np.concatenate(parts)


def _filled(values: NDArray[Any]) -> Any:
    import jax.numpy as jnp

    more = (1 << (len(values) - 1).bit_length()) - len(values)
    return jnp.asarray(np.concatenate([values, np.repeat(values[-1:], more, axis=0)]))
