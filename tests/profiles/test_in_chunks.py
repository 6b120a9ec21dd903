"""Partial dependence of tables in chunks."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import rhale_stats as rs
from tests.helpers import in_turn, rows_of_probe

dask = pytest.importorskip("dask", reason="dask is not installed")
da = pytest.importorskip("dask.array", reason="dask is not installed")
dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
N = 600
RNG = np.random.default_rng(0)
X = pd.DataFrame(
    {
        "a": RNG.normal(size=N),
        "k": RNG.integers(0, 5, N),
        "b": RNG.exponential(size=N),
        "one": np.ones(N),
    }
)
PRECISION = np.where(np.arange(N) < 20, 0.0, RNG.exponential(size=N))
COUNTS = RNG.integers(0, 4, N).astype(float)


def model(X):
    """Two outputs, one far from zero."""
    a, k, b = (np.asarray(X[name], dtype=float) for name in ("a", "k", "b"))
    return np.stack([a**2 * b + 1e6 + k, np.sin(a) + k * a], axis=1)


def in_parts(table, ends):
    """A dask DataFrame with partitions that end there, some without rows."""
    ends = [0, *ends, len(table)]
    parts = [table.iloc[a:b] for a, b in itertools.pairwise(ends)]
    with dask.config.set({"dataframe.convert-string": False}):
        return dd.from_map(lambda at: parts[at], range(len(parts)), meta=table.iloc[:0])


def alike(chunked, whole):
    """The same variables with their facts, up to the order of sums; the probe's rounding apart."""
    assert list(chunked) == list(whole)
    for name in whole.variables:
        assert chunked[name].attrs == whole[name].attrs
        assert chunked[name].dims == whole[name].dims
    facts = [
        {name: fact for name, fact in one.attrs.items() if not name.startswith("model_")}
        for one in (chunked, whole)
    ]
    assert facts[0] == facts[1]
    bare = [one.drop_vars("output_error") for one in (chunked, whole)]
    xr.testing.assert_allclose(*bare, rtol=1e-9, atol=1e-9)


CENTERINGS = ("mean", "start", "integral", "none")
WEIGHTS = {
    "no weights": {},
    "precision": {"weights": PRECISION, "weight_kind": "precision"},
    "frequency": {"weights": COUNTS, "weight_kind": "frequency"},
}
GRIDS = {
    "quantiles": {},
    "equal": {"n_grid": 7, "grid_kind": "equal_width"},
    "own": {"grid": {"a": [-3.0, 0.0, 1.0], "k": [1, 3], "one": [0.0, 1.0, 2.0]}},
}


@pytest.mark.thorough
@pytest.mark.parametrize(("centering", "weights"), in_turn(CENTERINGS, WEIGHTS))
def test_the_numbers_of_memory(centering, weights):
    """Every centring with all weights, and each of them with all grids."""
    turn = CENTERINGS.index(centering) + list(WEIGHTS).index(weights)
    options = {"centering": centering, **WEIGHTS[weights], **list(GRIDS.values())[turn % 3]}
    alike(
        rs.pdp(model, in_parts(X, [100, 100, 333]), **options),
        rs.pdp(model, X, **options),
    )


@pytest.mark.thorough
@settings(deadline=None, max_examples=10)
@given(st.lists(st.integers(0, N), max_size=6).map(sorted), st.booleans())
def test_random_chunks(ends, weighted):
    options = {"weights": PRECISION} if weighted else {}
    found = rs.pdp(model, in_parts(X, ends), n_grid=6, **options)
    alike(found, rs.pdp(model, X, n_grid=6, **options))


@pytest.mark.thorough
def test_arrays_weights_and_files_in_chunks(tmp_path):
    values = X[["a", "b"]].to_numpy()

    def of_array(X):
        return X[:, 0] * X[:, 1]

    whole = rs.pdp(of_array, values, weights=PRECISION)
    weights = da.from_array(PRECISION, chunks=177)
    alike(rs.pdp(of_array, da.from_array(values, chunks=(250, 1)), weights=weights), whole)
    few = da.from_array(PRECISION, chunks=10)  # all of the first chunks are zero
    alike(rs.pdp(of_array, da.from_array(values, chunks=(10, 2)), weights=few), whole)
    X.to_parquet(tmp_path / "rows.parquet")
    alike(rs.pdp(model, tmp_path / "rows.parquet", n_grid=5), rs.pdp(model, X, n_grid=5))


@pytest.mark.thorough
def test_what_follows_is_that_of_memory():
    chunked, whole = (rs.pdp(model, one, n_grid=6) for one in (in_parts(X, [200]), X))
    found, expected = (rs.confint(one)["curve_ci"] for one in (chunked, whole))
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-9, atol=1e-9)
    assert "importance" in str(rs.summary(chunked, level=0.9))


def test_what_chunks_do_not_have_is_refused():
    table = X.assign(text="u")
    frame = in_parts(table, [200])
    with pytest.warns(UserWarning, match=r"Left out: 'text' \(no numbers; X is in chunks\)"):
        assert rs.pdp(model, frame, n_grid=3)["feature"].values.tolist() == list(X.columns)
    with pytest.raises(TypeError, match="column 'text' holds levels, which need all rows"):
        rs.pdp(model, frame, features=["text"])
    with pytest.raises(ValueError, match="missing must be 'raise' where X is in chunks"):
        rs.pdp(model, frame, missing="drop")
    gaps = X.assign(a=X["a"].where(X.index != 300))
    with pytest.raises(ValueError, match=r"'a' must be finite; got 1 NaN or inf in 600 rows"):
        rs.pdp(model, in_parts(gaps, [200]), features=["a"])
    with pytest.raises(ValueError, match="weights must (not all be zero|be positive in some row)"):
        rs.pdp(model, frame, features=["a"], grid=[0.0, 1.0], weights=da.zeros(N))
    with pytest.raises(ValueError, match="weights must hold one number a row"):
        rs.pdp(model, frame, features=["a"], weights=da.ones(N - 1))
    with pytest.raises(TypeError, match="must have a column of numbers where it is in chunks"):
        rs.pdp(model, frame[["text"]])


def test_every_chunk_is_asked_for_once():
    """Counts of rows, of calls and of rows of the model; the rounding is the largest of all."""
    asked = []

    def counting(X):
        asked.append(len(X))
        return model(X)

    frame = in_parts(X, [200, 200, 450])
    found = rs.pdp(counting, frame, features=["a", "k", "one"], grid={"a": [0.0, 1.0]})
    assert found.attrs["n_rows"] == N
    assert found.attrs["model_rows"] == sum(asked)
    assert found.attrs["model_calls"] == len(asked)
    # The sample, of so few rows all, at the first point of both; then two points of a and five of
    # k, chunk by chunk. One chunk has no rows.
    assert asked[:5] == [*rows_of_probe(N), N, N]
    assert sum(asked[3:]) == 2 * N + 7 * N
    assert len(asked) == 3 + 2 + 2 * 3
    small = rs.pdp(lambda X: 0 * X["a"] + 1e-9 * X["k"], frame, features=["a", "k"], n_grid=3)
    whole = rs.pdp(lambda X: 0 * X["a"] + 1e-9 * X["k"], X, features=["a", "k"], n_grid=3)
    np.testing.assert_allclose(small["output_error"], whole["output_error"], rtol=1e-6, atol=1e-30)


@pytest.mark.thorough
@pytest.mark.parametrize(("n_grid", "kind"), in_turn([4, 5, 6], ["quantile", "equal_width"]))
def test_as_many_points_as_values(n_grid, kind):
    options = {"features": ["k", "b"], "n_grid": n_grid, "grid_kind": kind}
    found = rs.pdp(model, in_parts(X, [200]), **options)
    np.testing.assert_allclose(found["grid_value"], rs.pdp(model, X, **options)["grid_value"])


def test_features_without_a_curve_in_chunks():
    frame = in_parts(X, [200])
    found = rs.pdp(model, frame, features=["one"])
    assert found["curve"].isnull().all()
    assert found["n_obs"].item() == N
    assert found["weight_share"].sum() == 0
    assert not found["output_error"].any()
    weights = {"weights": np.where(np.arange(N) < 200, 0.0, 1.0)}
    alike(rs.pdp(model, frame, n_grid=3, **weights), rs.pdp(model, X, n_grid=3, **weights))
    with pytest.raises(ValueError, match="grid_kind must be one of"):
        rs.pdp(model, frame, grid_kind="log")
    with pytest.raises(ValueError, match="missing must be 'raise' where X is in chunks; got 'bin'"):
        rs.pdp(model, frame, missing="bin")
