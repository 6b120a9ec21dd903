"""Modules of PyTorch: in evaluation mode while they are asked, with automatic gradients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rhale_stats.models.adapters.adapter import Adapter, numbers

# Rows in one call of the module: memory is bounded by what its layers need for so many.
BATCH_ROWS = 1 << 14


def adapter(module: Any) -> Adapter:
    """A module as functions of rows, on its own device and in its own precision."""

    def predict(rows: Any) -> NDArray[Any]:
        with evaluated(module):
            parts = [_array(_number(module(part), module)) for part in _batches(module, rows)]
        return np.concatenate(parts)

    return Adapter(predict, partial(_derivatives, module))


@contextmanager
def evaluated(module: Any) -> Iterator[None]:
    """Evaluation mode; modes, buffers and states of random numbers are put back afterwards."""
    import torch

    modes = [(submodule, submodule.training) for submodule in module.modules()]
    buffers = [(buffer, buffer.detach().clone()) for buffer in module.buffers()]
    devices = [torch.cuda.current_device()] if torch.cuda.is_initialized() else []
    try:
        with torch.random.fork_rng(devices=devices), torch.no_grad():
            module.eval()
            yield
    finally:
        with torch.no_grad():
            for buffer, before in buffers:
                if not torch.equal(buffer, before):
                    buffer.copy_(before)
        for submodule, training in modes:
            # Not train(), which some modules override and which changes those inside as well.
            submodule.training = training


def _batches(module: Any, rows: Any) -> Iterator[Any]:
    """Rows as tensors of the module's device and type."""
    import torch

    values = numbers(rows, "torch")
    tensors = chain(module.parameters(), module.buffers())
    reference = next((tensor for tensor in tensors if tensor.is_floating_point()), None)
    dtype, device = (
        (torch.get_default_dtype(), None)
        if reference is None
        else (reference.dtype, reference.device)
    )
    for begin in range(0, len(values), BATCH_ROWS):
        part = torch.from_numpy(np.ascontiguousarray(values[begin : begin + BATCH_ROWS]))
        yield part.to(device=device, dtype=dtype)


def _number(answer: Any, module: Any) -> Any:
    import torch

    if not isinstance(answer, torch.Tensor):
        raise TypeError(
            f"model must return a tensor; {type(module).__name__} returns "
            f"{type(answer).__name__}. Pass a function that chooses one, as in "
            f"lambda X: model(X)[0]."
        )
    return answer


def _array(tensor: Any) -> NDArray[Any]:
    tensor = tensor.detach().cpu()
    # NumPy has no bfloat16.
    return np.asarray(tensor.float().numpy() if tensor.element_size() < 4 else tensor.numpy())


def _derivatives(module: Any, rows: Any, columns: Sequence[int]) -> NDArray[Any]:
    """Derivatives with respect to columns, (row, output, column).

    Outputs are differentiated one after the other, summed over the rows of a batch: a row's output
    depends on this row only, which `check_answers` has seen.
    """
    import torch

    plain = getattr(module, "_orig_mod", module)  # of torch.compile
    parts = []
    with evaluated(plain), torch.enable_grad():
        for part in _batches(plain, rows):
            part.requires_grad_(True)
            answer = _number(plain(part), plain)
            totals = list(answer.reshape(len(part), -1).sum(dim=0))
            gradients = [_backward(total, part, again=total is not totals[-1]) for total in totals]
            parts.append(
                np.stack([_array(gradient[:, list(columns)]) for gradient in gradients], axis=1)
            )
    return np.concatenate(parts)


def _backward(total: Any, part: Any, *, again: bool) -> Any:
    """Derivatives of one output, 0 where it does not depend on the rows."""
    import torch

    if not total.requires_grad:
        return torch.zeros_like(part)
    (gradient,) = torch.autograd.grad(total, part, retain_graph=again, allow_unused=True)
    return torch.zeros_like(part) if gradient is None else gradient
