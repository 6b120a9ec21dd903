"""Effects from local effects in chunks of rows."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import rhale_stats as rs
from rhale_stats.arrays import binning as arrays_thinned
from rhale_stats.arrays.binning import thinned
from rhale_stats.local.chunks import ChunkedRows
from rhale_stats.local.rows import columns
from rhale_stats.schema import validation
from tests.helpers import local_of
from tests.local.made import KINDS, WEIGHT, G, X, weighted

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
ALIKE = {"rtol": 1e-9, "atol": 1e-10}  # of numbers of size 1; chunks are summed in another order


def model(X):
    """Interactions, a jump, and a spread that moves."""
    return X[:, 0] ** 2 + X[:, 0] * X[:, 1] + np.sin(X[:, 2]) * (1 + X[:, 1]) + (X[:, 1] > 0.5)


@pytest.fixture(scope="module")
def table():
    """Three features, one of them skewed."""
    X = np.random.default_rng(3).normal(size=(1500, 3))
    X[:, 2] = np.exp(X[:, 2])
    return X


LOCAL_KINDS = ["none", "frequency", "precision", "equal", "finite_difference"]


@pytest.fixture(scope="module", params=LOCAL_KINDS)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def local(kind, table):
    """Local effects in memory."""
    with pytest.warns(rs.JumpWarning) if kind != "finite_difference" else nullcontext():
        if kind == "finite_difference":
            return rs.local_effects(model, table, method="finite_difference")
        if kind == "none":
            return rs.local_effects(model, table)
        if kind == "precision":
            weights = np.random.default_rng(5).gamma(2, 3, len(table))
            weights[::50] = 0
            return rs.local_effects(model, table, weights=weights)
        if kind == "equal":
            return rs.local_effects(model, table, weights=np.full(len(table), 0.3))
        weights = np.random.default_rng(4).integers(0, 4, len(table)).astype(float)
        return rs.local_effects(model, table, weights=weights, weight_kind="frequency")


def same(chunked, whole):
    """The same variables, attributes and checksums."""
    xr.testing.assert_allclose(chunked, whole, **ALIKE)
    assert chunked.attrs == whole.attrs
    assert list(chunked.variables) == list(whole.variables)


OPTIONS = [
    {"weighting": "rows"},
    {"bins": rs.QuantileBins(8)},
    {"bins": rs.OptimalBins(), "centering": "integral"},
    {"bins": rs.EqualWidthBins(3)},
]


@pytest.mark.thorough
def test_chunks_give_the_numbers_of_all_rows(kind, local):
    """With defaults, and with one of the options in turn."""
    parts, turn = local.chunk(obs=211), LOCAL_KINDS.index(kind)
    for options in ({}, OPTIONS[turn % len(OPTIONS)]):
        same(rs.rhale(parts, **options), rs.rhale(local, **options))


@pytest.mark.thorough
def test_errors_intervals_and_bands_follow(local):
    few = {"bins": rs.EqualWidthBins(4), "weighting": "rows"}
    effect, whole = rs.rhale(local.chunk(obs=400), **few), rs.rhale(local, **few)
    for function in (rs.std_error, rs.confint, lambda one: rs.confband(one, rng=0)):
        same(function(effect), function(whole))
    tests = rs.wald_test(effect), rs.wald_test(whole)
    xr.testing.assert_allclose(*tests, **ALIKE)
    # Checksums know the rows: what needs them takes those in memory.
    assert "bin_error" in rs.check_unbiased(local, effect, rng=0)


@pytest.mark.thorough
@settings(max_examples=5, deadline=None)
@given(st.lists(st.integers(0, 200), min_size=0, max_size=6), st.integers(0, 2**32 - 1))
def test_any_chunks_in_any_order_give_the_same(cuts, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 2))
    whole = rs.local_effects(lambda X: X[:, 0] * X[:, 1] + X[:, 1] ** 2, X, progress=False)
    at = np.unique([0, *cuts, 200])
    sizes = np.diff(at)
    order = rng.permutation(len(sizes))
    rows = np.concatenate([np.arange(at[k], at[k + 1]) for k in order])
    # A chunk without rows in between.
    lengths = (*(int(sizes[k]) for k in order[:1]), 0, *(int(sizes[k]) for k in order[1:]))
    shuffled = whole.isel(obs=rows).drop_vars("obs")
    parts = shuffled.copy()
    for name in ("x", "local_effect"):
        blocks = np.split(shuffled[name].values, np.cumsum(lengths)[:-1])
        parts[name] = (
            ("obs", "feature"),
            da.concatenate(
                [da.from_array(block) for block in blocks], allow_unknown_chunksizes=True
            ),
        )
    found, expected = rs.std_error(rs.rhale(parts)), rs.std_error(rs.rhale(whole))
    xr.testing.assert_allclose(found, expected, **ALIKE)
    assert found.attrs["row_fingerprint"] == rs.rhale(shuffled).attrs["row_fingerprint"]


HONEST_OPTIONS = [
    {"weighting": "rows", "bins": rs.OptimalBins()},
    {"bins": rs.QuantileBins(8), "honest_fraction": 0.3},
]


@pytest.mark.thorough
def test_honest_bins_of_chunks_are_those_of_all_rows(kind, local):
    """With one of the options in turn, and with defaults."""
    turn = LOCAL_KINDS.index(kind)
    for options in (HONEST_OPTIONS[turn % 2], {}):
        found, whole = (
            rs.std_error(rs.rhale(rows, honest=True, rng=5, **options))
            for rows in (local.chunk(obs=211), local)
        )
        same(found, whole)
    groups = np.arange(local.sizes["obs"]) % 60
    by_groups = [rs.std_error(whole, one, groups=groups) for one in (local.chunk(obs=400), local)]
    same(*by_groups)
    # Functions that need rows find those of the estimates.
    same(*(rs.check_unbiased(one, found, rng=0) for one in (local.chunk(obs=400), local)))
    if local.attrs["weight_kind"] == "precision":
        return  # a bootstrap is refused
    boot = rs.bootstrap(local.chunk(obs=400), found, scheme="poisson", n_resamples=100, rng=0)
    drawn = boot["average_effect"]
    away = drawn.mean(["chain", "draw"]) - found["average_effect"]
    assert (abs(away) < 0.5 * drawn.std(["chain", "draw"])).all()


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::UserWarning")  # of honest bins that have no rows
@settings(max_examples=6, deadline=None)
@given(st.lists(st.integers(1, 299), max_size=6), st.integers(0, 2**32 - 1))
def test_honest_rows_do_not_depend_on_the_chunks(cuts, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 2))
    local = rs.local_effects(lambda X: X[:, 0] * X[:, 1] + X[:, 1] ** 2, X, progress=False)
    sizes = tuple(int(size) for size in np.diff(np.unique([0, *cuts, 300])))
    parts = local.copy()
    for name in ("x", "local_effect"):
        block = da.from_array(local[name].values, chunks=(sizes, 2))
        parts[name] = (("obs", "feature"), block, local[name].attrs)
    found, whole = (rs.rhale(one, honest=True, rng=seed) for one in (parts, local))
    xr.testing.assert_allclose(found, whole, **ALIKE)
    assert found.attrs == whole.attrs


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::UserWarning")  # of jumps and gaps in some samples
@settings(max_examples=6, deadline=None)
@given(
    st.lists(st.integers(1, 299), max_size=6),
    st.integers(0, 2**32 - 1),
    st.sampled_from(["axis", "rows"]),
    st.sampled_from([0.0, 0.3, 0.7]),
)
def test_precision_weights_of_any_chunks(cuts, seed, weighting, unequal):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 2))

    def skewed(X):
        """Local effects whose skewness is clear."""
        return np.exp(2 * X[:, 1]) * X[:, 0] + X[:, 0] ** 2

    weights = 7 * np.exp(unequal * rng.normal(size=300)) * (rng.uniform(size=300) > 0.05)
    local = rs.local_effects(skewed, X, weights=weights, progress=False)
    sizes = tuple(int(size) for size in np.diff(np.unique([0, *cuts, 300])))
    parts = local.copy()
    for name in ("x", "local_effect", "weight"):
        block = da.from_array(local[name].values, chunks=(sizes, 2)[: local[name].ndim])
        parts[name] = (local[name].dims, block, local[name].attrs)
    found, whole = (
        rs.confint(rs.std_error(rs.rhale(one, weighting=weighting))) for one in (parts, local)
    )
    xr.testing.assert_allclose(found, whole, **ALIKE)
    assert found.attrs == whole.attrs
    assert ("skewness_sign" in whole) == (unequal > 0)


@pytest.mark.filterwarnings("ignore::rhale_stats.JumpWarning")
def test_of_many_weighted_rows_some_decide_on_the_skewness(monkeypatch):
    monkeypatch.setattr(arrays_thinned, "MAX_PLACES", 1000)
    monkeypatch.setattr(arrays_thinned, "MIN_PLACES", 100)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 2))
    weights = rng.gamma(2, size=20_000)
    local = rs.local_effects(lambda X: np.exp(2 * X[:, 1]) * X[:, 0], X, weights=weights)
    bins = {"bins": rs.EqualWidthBins(5), "weighting": "rows"}
    found, whole = rs.rhale(local.chunk(obs=2000), **bins), rs.rhale(local, **bins)
    # The sign of the second is that of a sample, which need not be clear.
    assert found["skewness_sign"][0] == whole["skewness_sign"][0] == 1
    found, whole = (one.drop_vars("skewness_sign") for one in (found, whole))
    xr.testing.assert_allclose(found, whole, **ALIKE)


@pytest.mark.thorough
def test_many_rows_are_summarised(table, monkeypatch):
    monkeypatch.setattr(arrays_thinned, "MAX_PLACES", 600)
    monkeypatch.setattr(arrays_thinned, "MIN_PLACES", 100)
    local = rs.local_effects(lambda X: X[:, 0] ** 3 + X[:, 1] * X[:, 2], table)
    found, whole = rs.rhale(local.chunk(obs=250)), rs.rhale(local)
    # Edges of bins and cells are between places that the summary has: they move by a few rows.
    assert np.abs(found["n_bins"] - whole["n_bins"]).max() <= 2
    z = np.quantile(np.asarray(table)[:, 0], np.linspace(0.01, 0.99, 50))
    at = [rs.predict(one, z, 0).values for one in (found, whole)]
    assert np.abs(at[0] - at[1]).max() < 0.05 * np.std(at[1])


def test_a_summary_moves_ranks_by_a_known_share():
    x = np.random.default_rng(0).standard_cauchy(20_000)
    kept, weight = thinned(x, None, 400)
    assert weight.sum() == len(x)
    assert len(kept) < 800
    ranks = np.searchsorted(kept, np.sort(x), side="right")
    below = np.concatenate([[0.0], np.cumsum(weight)])[ranks]
    assert np.abs(below - np.arange(1, len(x) + 1)).max() <= 2 / 400 * len(x)
    few, none = thinned(x[:50], None, 400)
    assert none is None
    np.testing.assert_array_equal(few, np.sort(x[:50]))
    # Frequency weights are those of repeated rows.
    counts = np.random.default_rng(1).integers(1, 4, len(x)).astype(float)
    assert thinned(x, counts, 400)[1].sum() == counts.sum()


@pytest.mark.thorough
def test_each_chunk_is_read_once_a_pass(table):
    calls = []

    def counted(block):
        calls.append(len(block))
        return block

    local = rs.local_effects(lambda X: X[:, 0] ** 3 + X[:, 1] * X[:, 2], table)
    parts = local.chunk(obs=500)
    parts["local_effect"] = parts["local_effect"].copy(
        data=parts["local_effect"].data.map_blocks(counted, dtype=float, meta=np.zeros((0, 0)))
    )
    with dask.config.set(scheduler="sync"):
        rs.rhale(parts)
        assert calls == [500] * 3  # one reading of three chunks
        calls.clear()
        rs.rhale(parts, weighting="rows", bins=rs.EqualWidthBins(4))
        assert calls == [500] * 3


@pytest.mark.parametrize("limit", [("MAX_ROWS", 1499), ("MAX_VALUES", 4499)])
def test_what_needs_all_rows_is_refused_where_there_are_too_many(table, monkeypatch, limit):
    monkeypatch.setattr(validation, *limit)
    local = rs.local_effects(lambda X: X[:, 0] * X[:, 1], table)
    parts, effect = local.chunk(obs=500), rs.rhale(local)
    for function in (
        lambda: rs.augment(parts, effect),
        lambda: rs.folds(parts),
    ):
        with pytest.raises(ValueError, match=r"local must be in memory here, or have at most"):
            function()
    weighted = rs.local_effects(lambda X: X[:, 0] * X[:, 1], table, weights=1 + table[:, 2])
    of_weighted = rs.rhale(weighted)
    with pytest.raises(ValueError, match="got precision weights"):
        rs.bootstrap(weighted.chunk(obs=500), of_weighted, scheme="poisson")
    gaps = table.copy()
    gaps[3, 0] = np.nan
    dropped = rs.local_effects(
        lambda X: np.nan_to_num(X[:, 0]) * X[:, 1],
        gaps,
        missing="drop",
        method="central_difference",
    )
    with pytest.raises(ValueError, match="in every row here where it is in chunks; got missing"):
        rs.regions(dropped.chunk(obs=500), "x1")
    with pytest.raises(ValueError, match="honest must be False where features have different rows"):
        rs.rhale(dropped.chunk(obs=500), honest=True)


def split(local):
    columns = pd.DataFrame({"by": np.arange(1500) % 5, "or": np.arange(1500) % 7})
    return rs.regions(local, "x0", conditioning=columns, n_permutations=19, rng=0)


VERBS = {
    "std_error": lambda local, effect: rs.std_error(effect, local, groups=np.arange(1500) // 3),
    "bootstrap": lambda local, effect: rs.bootstrap(
        local, effect, n_resamples=3, rng=0, scheme="poisson"
    ),
    "compare": lambda local, effect: rs.compare(
        effect, rs.rhale(local, bins=rs.EqualWidthBins(3)), paired=(local, local), rng=0
    ),
    "wald_test": lambda local, effect: rs.wald_test(effect, "homogeneous", local=local),
    "hypotheses": lambda local, effect: rs.hypotheses(effect, "b1 = 0", local=local),
    "check_unbiased": lambda local, effect: rs.check_unbiased(effect, local, rng=0),
    "augment": lambda local, effect: rs.augment(effect, local).to_xarray(),
    "folds": lambda local, effect: rs.folds(local, rng=0),
    "regions": lambda local, effect: split(local),
    "regional_rhale": lambda local, effect: rs.regional_rhale(local, split(local)),
}


@pytest.fixture(scope="module", params=["plain", "honest", "ties", "honest ties", "some"])
def beside(request, table):
    """Local effects and their effect. Rows with ties count half in two cells."""
    X = table.copy()
    if "ties" in request.param:
        X[:, 1] = np.round(X[:, 1])
    if request.param == "some":
        X[::7, 1] = np.nan

    def product(X):
        return X[:, 0] * np.nan_to_num(X[:, 1]) + X[:, 2]

    weights = np.random.default_rng(6).integers(0, 3, 1500)
    options = {"weights": weights, "weight_kind": "frequency"}
    missing = "drop" if request.param == "some" else "raise"
    local = rs.local_effects(product, X, ["x0", "x1", "x2"], missing=missing, **options)
    return local, rs.rhale(local, honest="honest" in request.param, rng=1)


@pytest.mark.filterwarnings("ignore:a and b:UserWarning")
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_the_numbers_of_rows_in_memory(beside, verb):
    local, effect = beside
    expected, result = [VERBS[verb](rows, effect) for rows in (local, local.chunk(obs=400))]
    # Accelerations of the bootstrap are sums over single rows.
    of_rows = {name for name in expected.variables if str(name).endswith("_acceleration")}
    assert set(result.variables) | of_rows == set(expected.variables)
    for name in result.variables:
        variable = expected.variables[name]
        if variable.dtype.kind == "f":
            values = variable.values[np.isfinite(variable.values)]
            scale = 1e-9 * max(np.max(np.abs(values), initial=0.0), 1.0)
            np.testing.assert_allclose(
                result[name].values, variable.values, 1e-9, scale, err_msg=str(name)
            )
        else:
            np.testing.assert_array_equal(result[name].values, variable.values, err_msg=str(name))


def test_values_that_are_not_finite_are_refused_by_name(table):
    local = rs.local_effects(lambda X: X[:, 0] * X[:, 1], table)
    bad = local.copy(deep=True)
    bad["x"].values[7, 1] = np.inf
    with pytest.raises(ValueError, match="'x1' must be finite; got 1 NaN or inf in 1500 rows"):
        rs.rhale(bad.chunk(obs=500))
    bad = local.copy(deep=True)
    bad["local_effect"].values[7, 1] = np.nan
    with pytest.raises(ValueError, match="Local effects of feature 'x1' must be finite"):
        rs.rhale(bad.chunk(obs=500))


# --- rows of chunks -------------------------------------------------------------------------------

SIZES = [(12,), (5, 0, 7), (1, 2, 9), (4, 4, 4)]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_chunks_know_the_same_of_their_rows(kind, sizes):
    local = weighted(kind)
    found, whole = ChunkedRows(local.chunk(obs=sizes), precise=True), columns(local)
    assert found.names == ["x0", "x1"]
    assert found.lengths == sizes
    for name in ("n_rows", "size", "unequal", "largest"):
        assert getattr(found, name) == getattr(whole, name), name
    # Without precision weights, frequency weights or none of them are dropped.
    assert found.frequency == (kind == "frequency")
    for at, name in enumerate(found.names):
        assert found.ends(at, name) == whole.ends(at, name)
        place, own = found.places(at), whole.places(at)
        order = np.argsort(own.x)
        np.testing.assert_array_equal(place.x[np.argsort(place.x)], own.x[order])
        if own.weight is None:
            assert place.weight is None
        else:
            np.testing.assert_allclose(place.weight[np.argsort(place.x)], own.weight[order])
            assert place.frequency == own.frequency
    assert found.fingerprints(found.names) == {}
    every = found.chosen(np.arange(12), "rows")
    np.testing.assert_array_equal(every.rows, np.arange(12))
    np.testing.assert_array_equal(every.x, X)
    np.testing.assert_array_equal(every.local_effect, G)
    some = found.chosen(np.where(np.arange(12) % 5 == 0, np.arange(12), -1), "rows")
    np.testing.assert_array_equal(some.rows, [0, 5, 10])
    np.testing.assert_array_equal(some.x, X[::5])
    if kind == "none":
        assert some.weight is None
    else:
        np.testing.assert_array_equal(some.weight, local["weight"].values[::5])
    # All rows have been read, so that their checksums are known.
    assert found.fingerprints(found.names) == whole.fingerprints(found.names)
    assert found.fingerprint(1) == whole.fingerprint(1)


@pytest.mark.parametrize("kind", KINDS)
def test_functions_of_chunks_get_their_rows_with_weight(kind):
    local = weighted(kind)
    found, whole = ChunkedRows(local.chunk(obs=(5, 0, 7)), precise=True), columns(local)
    there = WEIGHT > 0 if kind not in ("none", "ones") else np.full(12, True)

    def sums(rows, beside):
        w = np.ones(rows.n_rows) if rows.weight is None else rows.weight
        return np.array([w @ rows.local_effect[1], w @ rows.x[0], np.sum(beside), rows.n_rows])

    def added(parts):
        return np.sum(parts, axis=0)

    w = np.ones(there.sum()) if whole.weight is None else whole.weight
    beside = np.arange(12.0)
    merged = found.merged(sums, added, "rows", beside=np.split(beside, [5, 5]))
    expected = [w @ G[there, 1], w @ X[there, 0], beside[there].sum(), there.sum()]
    np.testing.assert_allclose(merged, expected)
    plain = found.merged(sums, added, "rows", beside=[1.0, 2.0, 4.0], progress=False)
    np.testing.assert_allclose(plain[[0, 1, 3]], np.array(expected)[[0, 1, 3]])
    assert plain[2] == 5  # a chunk without rows is not asked
    assert found.fingerprints(found.names) == whole.fingerprints(found.names)


def test_values_that_are_not_finite_are_counted_over_chunks():
    local = weighted("precision").copy(deep=True)
    local["x"][[0, 1, 7, 11], 1] = np.inf
    found = ChunkedRows(local.chunk(obs=4), precise=True)
    found.ends(0, "x0")
    # The first of the four rows has no weight.
    with pytest.raises(ValueError, match="'x1' must be finite; got 3 NaN or inf in 10 rows"):
        found.ends(1, "x1")
    none = weighted("precision").assign(weight=("obs", np.zeros(12)))
    with pytest.raises(ValueError, match="local must have rows of positive weight; got none"):
        _ = ChunkedRows(none.chunk(obs=4), precise=True).n_rows
    with pytest.raises(ValueError, match="weights must be frequency weights here"):
        ChunkedRows(weighted("precision").chunk(obs=4))
    ChunkedRows(weighted("frequency").chunk(obs=4))


@pytest.mark.parametrize("other", [1.0, 7.0])
def test_equal_weights_of_chunks_differ_between_them(other):
    """The weights of each chunk are equal, and those of all are not, unless both are the same."""
    weights = np.repeat([1.0, other], 6)
    local = local_of(X, G, weights=weights)
    found = ChunkedRows(local.chunk(obs=6), precise=True)
    assert found.unequal == (other != 1)
    assert found.largest == other
    assert (found.places(0).weight is None) == (other == 1)
