"""Local effects of tables in chunks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import rhale_stats as rs
from rhale_stats.local import in_chunks as module

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
delayed = dask.delayed


def model(X):
    """Smooth, with a text column."""
    return X["a"] ** 2 + X["a"] * X["b"] + np.sin(X["c"]) + (X["s"] == "u") * X["a"]


@pytest.fixture(scope="module")
def frame():
    """Three features and a text."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(1000, 3)), columns=list("abc"))
    X["s"] = rng.choice(["u", "v"], 1000)
    X.attrs["units"] = {"a": "mg"}
    return X


def alike(chunked, whole):
    """Local effects up to rounding of steps, and the same facts."""
    np.testing.assert_allclose(
        chunked["local_effect"].values, whole["local_effect"].values, rtol=1e-7, atol=1e-8
    )
    np.testing.assert_array_equal(chunked["x"].values, whole["x"].values)
    assert chunked.attrs == whole.attrs
    for name in ("feature", "feature_kind", "local_effect_method", "feature_column"):
        xr.testing.assert_identical(chunked[name], whole[name])


@pytest.fixture
def chunked_frame(frame):
    """The table in four partitions."""
    with dask.config.set({"dataframe.convert-string": False}):
        return dd.from_pandas(frame, npartitions=4)


@pytest.mark.thorough
def test_a_dask_frame(frame, chunked_frame):
    with pytest.warns(UserWarning, match="Left out: 's'"):
        whole = rs.local_effects(model, frame)
    with pytest.warns(UserWarning, match="Left out: 's'"):
        found = rs.local_effects(model, chunked_frame)
    assert found["local_effect"].chunks is not None
    assert found.sizes["obs"] == 1000
    alike(found.compute(), whole)
    effect = rs.std_error(rs.rhale(found))
    expected = rs.std_error(rs.rhale(whole))
    xr.testing.assert_allclose(effect["curve"], expected["curve"], atol=1e-7)
    xr.testing.assert_allclose(effect["curve_se"], expected["curve_se"], atol=1e-7)


@pytest.mark.thorough
def test_parquet_files(frame, tmp_path):
    for number in range(3):
        frame.iloc[number * 400 : number * 400 + 400].to_parquet(tmp_path / f"part{number}.parquet")
    whole = rs.local_effects(model, frame, features=["a", "c"])
    for path in (str(tmp_path / "*.parquet"), tmp_path):
        found = rs.local_effects(model, path, features=["a", "c"])
        alike(found.compute(), whole)


def test_only_columns_of_the_model_are_read(frame, tmp_path):
    linear = pytest.importorskip("sklearn.linear_model").LinearRegression()
    linear.fit(frame[["a", "c"]], frame["b"])
    frame.to_parquet(tmp_path / "all.parquet")
    found = rs.local_effects(linear, tmp_path / "all.parquet")
    assert list(found["feature"].values) == ["a", "c"]
    assert found.attrs["n_columns"] == 2
    alike(found.compute(), rs.local_effects(linear, frame[["a", "c"]]))


@pytest.mark.thorough
def test_arrays_chunked_xarray_and_several_outputs(frame):
    X = frame[["a", "b", "c"]].to_numpy()

    def both(X):
        return np.column_stack([X[:, 0] ** 2, X[:, 1] * X[:, 2]])

    whole = rs.local_effects(both, X)
    blocks = da.from_array(X, chunks=(300, 2))
    labelled = xr.DataArray(X, dims=("row", "column")).chunk(row=333)
    for table in (blocks, labelled):
        found = rs.local_effects(both, table)
        assert found["local_effect"].dims == ("output", "obs", "feature")
        alike(found.compute(), whole)
        xr.testing.assert_allclose(rs.rhale(found)["effect"], rs.rhale(whole)["effect"], atol=1e-7)


def test_slopes_have_cells_that_reach_the_ends(frame):
    X = frame[["a", "b"]].to_numpy(copy=True)
    X[:50, 1] = 0.25

    def steps(X):
        return np.floor(3 * X[:, 0]) + (X[:, 1] > 0)

    with pytest.warns(rs.JumpWarning):
        found = rs.local_effects(steps, da.from_array(X, chunks=(251, 2)))
    cells = found["cell_value"].values
    np.testing.assert_array_equal(np.nanmin(cells, axis=1), X.min(axis=0))
    np.testing.assert_array_equal(np.nanmax(cells, axis=1), X.max(axis=0))
    effect, same = rs.rhale(found), rs.rhale(found.compute())
    xr.testing.assert_allclose(effect, same, rtol=1e-9, atol=1e-10)


def test_jacobian_and_weights(frame):
    X = frame[["a", "b"]].to_numpy()
    counts = np.random.default_rng(1).integers(0, 3, 1000).astype(float)

    def jacobian(X):
        return np.column_stack([2 * X[:, 0] * X[:, 1], X[:, 0] ** 2])

    def counted(weights):
        return {"jacobian": jacobian, "weights": weights, "weight_kind": "frequency"}

    whole = rs.local_effects(None, X, **counted(counts))
    blocks = da.from_array(X, chunks=(300, 2))
    for weights in (counts, da.from_array(counts, chunks=300), pd.Series(counts)):
        found = rs.local_effects(None, blocks, **counted(weights))
        xr.testing.assert_allclose(rs.rhale(found), rs.rhale(whole), rtol=1e-9, atol=1e-10)
    with pytest.raises(ValueError, match="weights must hold one number a row"):
        rs.local_effects(None, blocks, **counted(da.ones(7)))
    with pytest.raises(ValueError, match="jacobian must be a function of X where X is in chunks"):
        rs.local_effects(None, blocks, jacobian=jacobian(X))


def test_what_chunks_do_not_have_is_refused(frame, chunked_frame):
    X = da.from_array(frame[["a", "b"]].to_numpy(), chunks=(300, 2))
    with pytest.raises(ValueError, match="missing must be 'raise' or 'drop' where X is in chunks"):
        rs.local_effects(lambda X: X[:, 0], X, missing="bin")
    with pytest.raises(TypeError, match=r"X must be in memory here; got dask Array"):
        rs.ale2(lambda X: X[:, 0], X, features=[0, 1])
    with pytest.raises(TypeError, match=r"X must be in memory here; got dask DataFrame"):
        rs.m_plot(model, chunked_frame)
    with pytest.raises(TypeError, match="got 'x.parquet' of type str. Read the file"):
        rs.ice(model, "x.parquet")
    bins = rs.GivenBins([-1.0, 0, 1])
    with pytest.raises(ValueError, match="or take the rows of X between them first"):
        rs.rhale(model, chunked_frame, "a", bins=bins)
    within = chunked_frame[chunked_frame["a"].between(-1, 1)]
    assert "n_beyond" not in rs.rhale(model, within, "a", bins=bins)
    gaps = frame.copy()
    gaps.loc[701, "b"] = np.nan
    with pytest.raises(ValueError, match=r"'b' must be finite; got 1 "):
        rs.local_effects(model, dd.from_pandas(gaps, npartitions=5), features=["b"])
    constant = np.zeros((100_000, 1))
    constant[77_777] = 1.0
    with pytest.raises(ValueError, match="must vary among the 5000 rows of the sample"):
        rs.local_effects(
            lambda X: X[:, 0], da.from_array(constant, chunks=(25_000, 1)), features=[0]
        )
    with pytest.raises(ValueError, match="X must have at least one row; got none"):
        rs.local_effects(lambda X: X[:, 0], da.zeros((0, 2)))


@pytest.mark.filterwarnings("ignore::rhale_stats.JumpWarning")
@settings(max_examples=4, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(
    st.lists(st.integers(1, 299), max_size=6),
    st.integers(0, 2**32 - 1),
    st.sampled_from(["central_difference", "finite_difference"]),
    st.sampled_from(["none", "frequency", "precision"]),
)
def test_missing_values_are_left_out_of_their_features(cuts, seed, method, kind):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 3))
    X[rng.uniform(size=300) < 0.2, 0] = np.nan
    X[200:230, 1] = np.nan

    def model(X):
        filled = np.nan_to_num(X, nan=0.5)
        # No feature without a spread: the skewness of rounding is another in chunks.
        return filled[:, 0] ** 2 * filled[:, 2] + np.sin(filled[:, 1] + filled[:, 2])

    more = {"missing": "drop", "method": method, "progress": False}
    if kind != "none":
        weights = rng.integers(0, 3, 300).astype(float)
        more |= {"weights": weights, "weight_kind": kind}
    sizes = tuple(int(size) for size in np.diff(np.unique([0, 200, 230, *cuts, 300])))
    whole = rs.local_effects(model, X, **more)
    parts = rs.local_effects(model, da.from_array(X, chunks=(sizes, 3)), **more)
    np.testing.assert_array_equal(parts["n_missing"], whole["n_missing"])
    # That of a sample, whatever the weights.
    parts, whole = (
        one.assign({f"local_effect_{what}": 0.0 * one["n_missing"] for what in ("error", "bias")})
        for one in (parts, whole)
    )
    expected = whole.drop_vars("obs")
    xr.testing.assert_allclose(parts.compute(), expected, rtol=1e-9)
    found, expected = (
        rs.confint(rs.std_error(rs.rhale(one, bins=rs.QuantileBins(5)))) for one in (parts, whole)
    )
    xr.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)
    assert found.attrs["row_fingerprint"] == expected.attrs["row_fingerprint"]


def test_infinite_values_are_no_missing_ones():
    X = np.random.default_rng(0).normal(size=(100, 2))
    X[3, 0], X[4, 0] = np.nan, np.inf
    with pytest.raises(ValueError, match="'x0' must be finite; got 1 inf"):
        rs.local_effects(
            lambda X: np.nan_to_num(X[:, 0], posinf=0.0) + X[:, 1],
            da.from_array(X, chunks=(40, 2)),
            missing="drop",
            features=["x0"],
        )


# --- chunk by chunk -------------------------------------------------------------------------------

ROWS = np.random.default_rng(5).uniform(-1, 1, (60, 3))


def smooth(X):
    return X[:, 0] ** 2 * X[:, 1] + np.exp(X[:, 2])


def derivatives_of(X, columns):
    each = [2 * X[:, 0] * X[:, 1], X[:, 0] ** 2, np.exp(X[:, 2])]
    return np.column_stack([each[at] for at in columns])


@pytest.mark.parametrize("batch", [1, 7, 25, 1 << 17])
def test_batches_of_rows_give_the_same(monkeypatch, batch):
    monkeypatch.setattr(module, "BATCH_ROWS", batch)
    blocks = da.from_array(ROWS, chunks=((25, 0, 34, 1), 3))
    by_gradient = rs.Adapter(smooth, gradient=derivatives_of)
    for model_, method, tolerance in (
        (by_gradient, "gradient", 0.0),
        (smooth, "central_difference", 1e-9),
        (smooth, "finite_difference", 1e-9),
    ):
        options = {"method": method, "features": [2, 0], "progress": False}
        found = rs.local_effects(model_, blocks, **options).compute()
        whole = rs.local_effects(model_, ROWS, **options)
        assert found["local_effect_method"].values.tolist() == [method] * 2
        np.testing.assert_array_equal(found["x"], ROWS[:, [2, 0]])
        np.testing.assert_allclose(
            found["local_effect"], whole["local_effect"], rtol=tolerance, atol=tolerance
        )
        assert found.attrs == whole.attrs
        if method == "gradient":
            np.testing.assert_array_equal(found["local_effect"], derivatives_of(ROWS, [2, 0]))


def test_features_of_several_ways_beside_each_other():
    """By derivatives, by slopes across few and many cells, and a constant one; with gaps."""
    X = np.column_stack([ROWS, np.arange(60.0) % 4, np.full(60, 3.0)])
    X[25:33, 1] = np.nan

    def jumping(X):
        return smooth(np.nan_to_num(X)) + np.floor(4 * X[:, 0]) + X[:, 3] ** 2

    options = {"features": list(range(5)), "missing": "drop", "progress": False}
    with pytest.warns(rs.JumpWarning):
        whole = rs.local_effects(jumping, X, **options)
    with pytest.warns(rs.JumpWarning):
        found = rs.local_effects(jumping, da.from_array(X, chunks=((25, 8, 27), 5)), **options)
    methods = ["finite_difference", "central_difference", "central_difference"]
    assert found["local_effect_method"].values.tolist()[:3] == methods
    np.testing.assert_array_equal(found["n_missing"], [0, 8, 0, 0, 0])
    np.testing.assert_array_equal(found["cell_value"], whole["cell_value"])
    assert found["cell_value"].notnull().sum("cell_edge").values[1:].tolist() == [0, 0, 4, 0]
    found = found.compute()
    # With ties, rows on an edge are whole in the cell to the left or to the right.
    left = found["x"] < X
    assert left.sum("obs").values.tolist() == [0, 0, 0, 15, 0]
    own = whole["local_effect"].where(~left, whole["local_effect_left"])
    np.testing.assert_allclose(found["local_effect"], own, rtol=1e-9, atol=1e-9, equal_nan=True)
    assert found["local_effect"][25:33, 1].isnull().all()
    assert found["local_effect"][:, 4].isnull().all()
    assert found.attrs["n_rows"] == 60


@pytest.mark.parametrize("kind", ["frequency", "precision"])
def test_weights_are_labelled(kind):
    weights = np.arange(60.0) % 3
    blocks = da.from_array(ROWS, chunks=(20, 3))
    options = {"weights": weights, "weight_kind": kind, "method": "finite_difference"}
    found = rs.local_effects(smooth, blocks, **options)
    whole = rs.local_effects(smooth, ROWS, **options)
    assert found["weight"].attrs == {"long_name": f"{kind} weight", "units": "1"}
    assert found.attrs["weight_kind"] == kind
    np.testing.assert_array_equal(found["weight"], weights)
    # Cells are those of the rows with weight, counted by their frequencies.
    np.testing.assert_allclose(found["cell_value"], whole["cell_value"], rtol=1e-12)


def test_derivatives_of_some_columns_are_taken():
    found = rs.local_effects(
        None, da.from_array(ROWS, chunks=(25, 3)), jacobian=lambda X: derivatives_of(X, [0, 1, 2])
    )
    np.testing.assert_array_equal(found["local_effect"], derivatives_of(ROWS, [0, 1, 2]))
    broken = rs.local_effects(
        None,
        da.from_array(ROWS, chunks=(25, 3)),
        jacobian=lambda X: np.where(ROWS[40, 1] == X, np.inf, X),
        features=[0, 2],
    )
    np.testing.assert_array_equal(broken["local_effect"], ROWS[:, [0, 2]])


# --- columns of chunks ----------------------------------------------------------------------------


def test_chunks_are_put_into_the_order_of_the_table():
    """A model that knows columns by their order alone gets those of the table in every chunk."""
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(90, 2)), columns=["a", "b"])

    def model(rows):
        return np.asarray(rows) @ [5.0, 1.0]

    parts = [delayed(X[:30]), delayed(X.loc[30:59, ["b", "a"]]), delayed(X[60:].assign(z=0.0))]
    frame = dd.from_delayed(parts, meta=X[:0], verify_meta=False)
    for verb in (rs.ale, rs.pdp):
        found, whole = verb(model, frame), verb(model, X)
        np.testing.assert_allclose(found["curve"], whole["curve"], atol=1e-12)
    effect = rs.rhale(rs.local_effects(model, frame))
    np.testing.assert_allclose(rs.glance(effect)["estimate"], [5, 1])
    lacking = dd.from_delayed([parts[0], delayed(X[30:][["b"]])], meta=X[:0], verify_meta=False)
    for verb in (rs.local_effects, rs.ale, rs.pdp):
        with pytest.raises(ValueError, match="same columns in all chunks; chunk 1 lacks 'a'"):
            verb(model, lacking)


def test_a_table_in_chunks_with_a_column_x_is_no_local_effects():
    X = xr.Dataset({"x": ("row", np.arange(9.0)), "z": ("row", np.ones(9))})
    with pytest.raises(TypeError, match="got a Dataset in chunks"):
        rs.rhale(lambda rows: rows["x"], X.chunk(row=3))


def test_standard_errors_of_rows_in_chunks_need_no_local_effects():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(90, 2)), columns=["a", "b"])
    local = rs.local_effects(lambda rows: rows["a"] * rows["b"], dd.from_pandas(X, npartitions=3))
    effect = rs.rhale(local)
    xr.testing.assert_identical(rs.std_error(effect, local), rs.std_error(effect))


def test_a_refusal_does_not_number_the_rows_of_a_sample():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(12_000, 2)), columns=["a", "b"])
    frame = dd.from_pandas(X, npartitions=3)
    with pytest.raises(ValueError, match=r"^(?!.*first rows).*Found in a sample of \d+ rows of X"):
        rs.local_effects(lambda rows: rows["a"].where(rows["a"] < 1), frame)
