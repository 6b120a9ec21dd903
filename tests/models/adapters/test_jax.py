"""Functions of JAX: compiled or not, in the precision that they compute in."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import xarray as xr

import rhale_stats as rs
from rhale_stats.models.adapters import jax as jax_adapter

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

# Older versions have it in another place.
enable_x64 = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64

X = np.random.default_rng(0).normal(size=(300, 3))
WEIGHT = np.random.default_rng(1).normal(size=(3, 8))


def function(rows):
    return jnp.tanh(rows @ WEIGHT).sum(axis=1) * rows[:, 0]


def several(rows):
    return jnp.tanh(rows @ WEIGHT)[:, :2]


@pytest.mark.parametrize("model", [function, several])
@pytest.mark.parametrize("compiled", [False, True])
def test_gradient_in_double_precision(model, compiled):
    with enable_x64(True):
        model = jax.jit(model) if compiled else model
        exact = rs.local_effects(model, X)
        near = rs.local_effects(model, X, method="central_difference")
    assert set(exact["local_effect_method"].values) == {"gradient"}
    off = np.abs(exact["local_effect"] - near["local_effect"])
    assert np.quantile(off, 0.97) < 1e-8 * np.abs(near["local_effect"]).max()


def test_single_precision_is_said():
    local = rs.local_effects(jax.jit(function), X)
    assert local.attrs["answer_precision"] >= np.finfo(np.float32).eps
    with enable_x64(True):
        exact = rs.local_effects(jax.jit(function), X)
    np.testing.assert_allclose(local["local_effect"], exact["local_effect"], atol=1e-4)


def test_few_sizes_are_compiled():
    shapes = []

    @jax.jit
    def model(rows):
        shapes.append(rows.shape)  # once for every size
        return jnp.sin(rows).sum(axis=1)

    rs.local_effects(model, X)
    sizes = {shape[0] for shape in shapes}
    assert all(size & (size - 1) == 0 for size in sizes)
    assert len(sizes) < 8


def test_what_a_plain_function_takes_from_outside_may_change():
    """As it does when a network is trained on: nothing compiled before is used."""
    weight = jnp.ones(3)

    def model(rows):
        return jnp.tanh(rows @ weight)

    for weight in (jnp.ones(3), jnp.array([2.0, 0.0, 0.0])):  # read by the model
        found = rs.local_effects(model, X, method="gradient")["local_effect"].values
        inside = 1 - np.tanh(X @ np.asarray(weight)) ** 2
        np.testing.assert_allclose(found, inside[:, None] * np.asarray(weight), atol=1e-4)


def test_derivatives_of_compiled_functions_are_compiled_once_and_let_go():
    times = []

    def plain(rows):
        times.append(len(rows))  # once each time it is compiled
        return jnp.sin(rows).sum(axis=1)

    model = jax.jit(plain)
    first = rs.local_effects(model, X)
    known, kept = len(times), len(jax_adapter.COMPILED)
    second = rs.local_effects(model, X)
    assert len(times) == known
    xr.testing.assert_identical(first, second)
    del model
    gc.collect()
    assert len(jax_adapter.COMPILED) < kept


def test_functions_that_take_arrays_of_numpy_too_are_left_to_numpy():
    with enable_x64(False):
        local = rs.local_effects(lambda X: X[:, 0] ** 2 + X[:, 1], X)
    assert set(local["local_effect_method"].values) == {"central_difference"}
    assert local.attrs["answer_precision"] < 1e-15
