"""Functions of JAX: compiled or not, in the precision that they compute in."""

from __future__ import annotations

import gc

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xarray as xr

import rhale_stats as rs
from rhale_stats.models.adapters import jax as jax_adapter
from tests.helpers import daily

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

# Older versions have it in another place.
enable_x64 = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64

X = np.random.default_rng(0).normal(size=(300, 3))
WEIGHT = np.random.default_rng(1).normal(size=(3, 8))


def weight():
    """New in each call: JAX 0.12 takes an array of NumPy in the precision of its first use."""
    return jnp.array(WEIGHT.tolist())


def function(rows):
    return jnp.tanh(rows @ weight()).sum(axis=1) * rows[:, 0]


def several(rows):
    return jnp.tanh(rows @ weight())[:, :2]


@pytest.mark.thorough
@pytest.mark.parametrize(("model", "compiled"), [(function, True), (several, False)])
def test_gradient_in_double_precision(model, compiled):
    with enable_x64(True):
        model = jax.jit(model) if compiled else model
        exact = rs.local_effects(model, X)
        near = rs.local_effects(model, X, method="central_difference")
    assert set(exact["local_effect_method"].values) == {"gradient"}
    off = np.abs(exact["local_effect"] - near["local_effect"])
    assert np.quantile(off, 0.97) < 1e-8 * np.abs(near["local_effect"]).max()


@pytest.mark.thorough
def test_single_precision_is_said():
    with enable_x64(False):  # marginaleffects turns it on for the whole process
        local = rs.local_effects(jax.jit(function), X)
    assert local.attrs["answer_precision"] >= np.finfo(np.float32).eps
    with enable_x64(True):
        exact = rs.local_effects(jax.jit(function), X)
    np.testing.assert_allclose(local["local_effect"], exact["local_effect"], atol=1e-4)


@pytest.mark.thorough
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


@pytest.mark.thorough
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


# --- functions of columns -------------------------------------------------------------------------

TABLE = pd.DataFrame(X, columns=["c", "a", "b"]).assign(
    k=np.arange(300) % 7, city=np.where(X[:, 0] > 0, "x", "y")
)
FORMS = {
    "pandas": lambda frame: frame,
    "nullable": lambda frame: frame.convert_dtypes(),
    "arrow types": lambda frame: frame.convert_dtypes(dtype_backend="pyarrow"),
    "dict": lambda frame: {name: frame[name].to_numpy() for name in frame},
    "polars": lambda frame: pl.from_pandas(frame),
    "arrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "xarray": lambda frame: xr.Dataset.from_dataframe(frame),
}


def of_columns(columns):
    return jnp.sin(columns["a"]) * columns["b"] + columns["c"] * columns["k"]


def in_order(columns):
    """Reads columns by their order in the table, which is not that of their names."""
    first, second, third, *_ = columns.values()
    return jnp.tanh(first) * second + 2 * third


def of_an_array(rows):
    return jnp.tanh(rows[:, :3] @ weight())[:, 0] * rows[:, 1]


FUNCTIONS = [
    *((of_columns, False), (of_columns, True), (of_an_array, False), (of_an_array, True)),
    (in_order, False),  # JAX itself sorts the columns of a compiled function by name
]
# Every day each form and each function; with the slow tests all pairs.
PAIRS = [
    (form, *FUNCTIONS[(number + shift) % len(FUNCTIONS)])
    for shift in range(len(FUNCTIONS))
    for number, form in enumerate(FORMS)
]


@pytest.mark.parametrize(("form", "function", "compiled"), daily(PAIRS, len(FORMS)))
def test_functions_of_an_array_or_of_columns_take_every_table(form, compiled, function):
    names = ["c", "a", "b", "k"] if function is not of_columns else list(TABLE)
    table = TABLE[names]
    with enable_x64(True):
        model = jax.jit(function) if compiled else function
        local = rs.local_effects(model, FORMS[form](table), features=["a", "b", "c"])
    c, a, b, k = (TABLE[name].to_numpy(dtype=float) for name in "cabk")
    if function is of_columns:
        expected = np.column_stack([np.cos(a) * b, np.sin(a), k])
    elif function is in_order:
        expected = np.column_stack([np.tanh(c), 2 + 0 * b, a / np.cosh(c) ** 2])
    else:
        inside = np.tanh(X @ WEIGHT[:, 0])
        expected = WEIGHT[[1, 2, 0], 0] * ((1 - inside**2) * a)[:, None]
        expected[:, 0] += inside
    assert set(local["local_effect_method"].values) == {"gradient"}
    np.testing.assert_allclose(local["local_effect"], expected, atol=1e-12)


def test_gradients_of_several_outputs_of_columns():
    def model(columns):
        return jnp.stack([columns["a"] ** 2, columns["a"] * columns["k"]], axis=1)

    with enable_x64(True):
        local = rs.local_effects(model, TABLE[["c", "k", "a"]], features=["a", "k"])
    a, k = TABLE["a"].to_numpy(), TABLE["k"].to_numpy()
    np.testing.assert_allclose(local["local_effect"].sel(feature="a"), [2 * a, k], atol=1e-12)
    # A column with few whole numbers has slopes between neighbours.
    assert local["local_effect_method"].values.tolist() == ["gradient", "finite_difference"]


@pytest.mark.thorough
def test_whole_numbers_of_columns_stay_whole():
    """As an embedding needs them."""
    table = jnp.array([0.0, 1.0, 4.0, 9.0, 16.0, 25.0, 36.0])

    def model(columns):
        return table[columns["k"]] * columns["a"]

    local = rs.local_effects(jax.jit(model), TABLE[["a", "k"]], features="a")
    assert local["local_effect_method"].item() == "gradient"
    np.testing.assert_allclose(local["local_effect"][:, 0], TABLE["k"] ** 2, atol=1e-5)


@pytest.mark.thorough
def test_pdp_ale_and_explanations_of_functions_of_columns():
    frame = TABLE[["a", "b", "c", "k"]]

    def of_numpy(frame):
        a, b, c, k = (frame[name].to_numpy() for name in "abck")
        return np.sin(a) * b + c * k

    with enable_x64(True):
        for estimate in (
            rs.pdp,
            rs.ale,
            lambda m, X, **more: rs.explain(m, X, rng=0, **more)["effect"],
        ):
            found, expected = (
                estimate(model, frame, features=["a", "b"]) for model in (of_columns, of_numpy)
            )
            np.testing.assert_allclose(found["curve"], expected["curve"], atol=1e-6)


@pytest.mark.thorough
def test_a_function_that_cannot_be_followed_keeps_its_differences():
    """Its rows are pandas until it makes an array of JAX of them."""

    def model(frame):
        return jnp.sin(jnp.asarray(frame[["a", "b"]].to_numpy())).sum(axis=1)

    with enable_x64(True):
        local = rs.local_effects(model, TABLE[["c", "a", "b"]], features=["a", "b"])
    assert set(local["local_effect_method"].values) == {"central_difference"}
    same = rs.local_effects(
        lambda frame: np.sin(frame[["a", "b"]].to_numpy()).sum(axis=1), TABLE[["c", "a", "b"]]
    )["local_effect"].sel(feature=["a", "b"])
    np.testing.assert_allclose(local["local_effect"], same, atol=1e-9)


def test_a_function_with_another_answer_for_an_array_keeps_its_differences():
    def model(rows):
        if isinstance(rows, pd.DataFrame):
            return jnp.asarray(rows.to_numpy()[:, 0]) ** 2
        return rows[:, 1]

    with enable_x64(True):
        local = rs.local_effects(model, TABLE[["a", "b"]])
    assert local["local_effect_method"].values.tolist() == ["central_difference"] * 2
    np.testing.assert_allclose(local["local_effect"][:, 0], 2 * TABLE["a"], atol=1e-5)


def test_an_error_is_that_of_the_function_in_its_own_form():
    def model(rows):
        raise ZeroDivisionError("of its own")

    with pytest.raises(rs.ModelError, match="ZeroDivisionError .* of its own"):
        rs.local_effects(model, TABLE[["a", "b"]])
    with pytest.raises(rs.ModelError, match="KeyError .*'z'"):
        rs.local_effects(lambda columns: jnp.sin(columns["z"]), TABLE[["a", "b"]])


@pytest.mark.parametrize(("model", "compiled"), [(function, False), (several, True)])
def test_chunks_have_the_gradient_of_the_whole_table(model, compiled):
    da = pytest.importorskip("dask.array")
    model = jax.jit(model) if compiled else model
    whole = rs.local_effects(model, X)
    chunks = rs.local_effects(model, da.from_array(X, chunks=(170, 3)))
    assert set(chunks["local_effect_method"].values) == {"gradient"}
    np.testing.assert_allclose(chunks["local_effect"], whole["local_effect"], atol=1e-6)


def test_an_error_of_another_function_is_not_hidden():
    """JAX is there, and could follow the function with a dict of columns."""

    def model(X):
        if len(X) > 30:
            raise RuntimeError("no")
        return X["a"] * 2

    X = pd.DataFrame({"a": np.linspace(0, 1, 50), "b": 1.0})
    with pytest.raises(rs.ModelError, match="no"):
        rs.pdp(model, X, features="a", progress=False)
