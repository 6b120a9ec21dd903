"""Functions of JAX: rows in calls of few sizes, gradients by reverse differentiation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary, ref

import numpy as np
from numpy.typing import NDArray

from rhale_stats.models.adapters.adapter import Adapter, numbers

# Rows in one call of the function: what stays in the cache of a processor, or keeps a GPU busy.
BATCH_ROWS, ACCELERATED_ROWS = 1 << 13, 1 << 17
# Compiled derivatives of compiled functions that are still in use.
COMPILED: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def adapter(function: Any) -> Adapter:
    """A function of arrays of rows, (row, column), compiled once for every size of a call."""
    import jax

    compiled, backward = jax.jit(function), COMPILED.get(function)
    if backward is None and type(function).__name__ == "PjitFunction":
        # What it takes from outside is fixed already, so that its derivative may be kept. A weak
        # reference: a strong one would keep the function in use.
        backward = jax.jit(_backward(_held(ref(function))), static_argnums=1)
        COMPILED[function] = backward
    elif backward is None:
        # Made anew: another value of what a plain function takes from outside would not be seen.
        backward = jax.jit(_backward(function), static_argnums=1)
    return Adapter(
        lambda rows: _in_batches(lambda part: compiled(part), rows),
        lambda rows, columns: _in_batches(
            lambda part: _of_columns(backward, compiled, part, columns), rows
        ),
    )


def _held(reference: ref[Any]) -> Callable[[Any], Any]:
    def of(rows: Any) -> Any:
        function = reference()
        assert function is not None, "used by those who hold the function only"
        return function(rows)

    return of


def _backward(function: Callable[[Any], Any]) -> Callable[[Any, int], Any]:
    def of_output(rows: Any, output: int) -> Any:
        """Derivatives of one output: a row's output depends on this row only."""
        import jax

        def total(rows: Any) -> Any:
            answer = function(rows)
            return (answer if answer.ndim == 1 else answer[:, output]).sum()

        return jax.grad(total)(rows)

    return of_output


def _of_columns(
    backward: Callable[[Any, int], Any],
    compiled: Callable[[Any], Any],
    part: Any,
    columns: Sequence[int],
) -> NDArray[Any]:
    import jax

    shape = jax.eval_shape(compiled, part).shape
    n_outputs = 1 if len(shape) == 1 else shape[1]
    found = [np.asarray(backward(part, output))[:, list(columns)] for output in range(n_outputs)]
    return np.stack(found, axis=1)


def _in_batches(of: Callable[[Any], Any], rows: Any) -> NDArray[Any]:
    """Answers for batches, filled up to a power of two with copies of the last row.

    Every other number of rows would be compiled anew.
    """
    import jax
    import jax.numpy as jnp

    most = BATCH_ROWS if jax.default_backend() == "cpu" else ACCELERATED_ROWS
    values, parts = numbers(rows, "jax"), []
    for begin in range(0, len(values), most):
        part = values[begin : begin + most]
        size = 1 << (len(part) - 1).bit_length()
        whole = np.concatenate([part, np.repeat(part[-1:], size - len(part), axis=0)])
        parts.append(np.asarray(of(jnp.asarray(whole)))[: len(part)])
    return np.concatenate(parts)
