"""Which rows of two effects are pairs, and what is refused."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import rhale_stats as rs
from rhale_stats.effects.comparison import (
    _check_rows_of_pairs,
    _groups_of_bins,
    _multiplicity,
    pairs_of,
)
from tests.helpers import local_of

N = 40
RNG = np.random.default_rng(5)
X = RNG.uniform(0, 1, (N, 2))
G = RNG.normal(size=(2, N, 2)) + 1
BINS = rs.GivenBins([0, 0.5, 1])


def _both(x=(X, X), **options):
    local = [local_of(x[at], G[at][: len(x[at])], **options) for at in (0, 1)]
    return tuple(rs.rhale(one, bins=BINS) for one in local), tuple(local)


NAMES = ["x0", "x1"]


def test_pairs_are_the_rows():
    effects, local = _both()
    found = pairs_of(effects, local, None, NAMES)
    assert (found.grouped, found.source) == (False, "pairs of rows")
    assert_array_equal(found.repeats, np.ones(N))
    for side, g in zip(found.sides["x1"], G, strict=True):
        assert_array_equal(side.group, np.arange(N))
        assert side.n_groups == N
        assert_array_equal(side.rows.local_effect[0], g[:, 1])


@pytest.mark.thorough
def test_frequencies_count_pairs():
    counts = RNG.integers(1, 4, N).astype(float)
    effects, local = _both(weights=counts, weight_kind="frequency")
    assert_array_equal(pairs_of(effects, local, None, NAMES).repeats, counts)
    assert_array_equal(_multiplicity(_both(weights=counts)[1]), np.ones(N))
    other = counts.copy()
    other[7] += 1
    changed = local_of(X, G[1], weights=other, weight_kind="frequency")
    message = rf"got {counts[7]:g} and {other[7]:g} in row 7\. Use weights of kind 'precision'"
    with pytest.raises(ValueError, match=message):
        _multiplicity((local[0], changed))
    none = local_of(X, G[1])
    first = int(np.flatnonzero(counts != 1)[0])
    with pytest.raises(ValueError, match=rf"got {counts[first]:g} and 1 in row {first}"):
        _multiplicity((local[0], none))


def test_two_groups_are_enough():
    effects, local = _both()
    groups = np.where(np.arange(N) < 15, "b", "a")
    found = pairs_of(effects, local, groups, NAMES)
    assert (found.grouped, found.source) == (True, "pairs of rows in 2 groups")
    assert_array_equal(found.repeats, [1, 1])
    assert_array_equal(found.sides["x0"][0].group, np.where(np.arange(N) < 15, 1, 0))
    with pytest.raises(ValueError, match=r"at least two different groups; got 1\."):
        pairs_of(effects, local, np.zeros(N), NAMES)


@pytest.mark.thorough
def test_rows_of_one_side_only():
    """Honest effects use other halves: groups are those of rows that either uses."""
    _, local = _both()
    made = [rs.rhale(one, bins=BINS, honest=True, honest_fraction=0.5, rng=at)
            for at, one in enumerate(local)]  # fmt: skip
    found = pairs_of(tuple(made), local, np.arange(N) % 4, NAMES)
    for side, effect in zip(found.sides["x0"], made, strict=True):
        assert len(side.group) == effect.attrs["n_rows"] == N // 2
    # The groups that rows have, not numbers of rows.
    for side, one in zip(found.sides["x0"], local, strict=True):
        where = [np.flatnonzero(one["x"].values[:, 0] == value)[0] for value in side.rows.x[0]]
        assert_array_equal(side.group, np.array(where) % 4)


def test_what_is_no_pair():
    effects, local = _both()
    for bad in (local[0], (local[0],), None):
        with pytest.raises(TypeError, match="paired must be two Datasets, .*; got "):
            pairs_of(effects, bad, None, NAMES)
    short = local_of(X[:30], G[1][:30])
    with pytest.raises(ValueError, match=r"of the same rows; got 40 and 30 rows\."):
        pairs_of(effects, (local[0], short), None, NAMES)
    grouped = rs.std_error(effects[1], local[1], groups=np.arange(N) // 2)
    with pytest.raises(ValueError, match="groups must be given where a or b has standard errors"):
        pairs_of((effects[0], grouped), local, None, NAMES)
    for at, one in enumerate(("a", "b")):
        swapped = list(local)
        swapped[at] = local[1 - at]
        message = rf"paired\[{at}\] must be the Dataset that {one} was made from"
        with pytest.raises(ValueError, match=message):
            pairs_of(effects, tuple(swapped), None, NAMES)


def test_rows_have_the_same_names_and_a_value_in_common():
    """Some features may change between two measurements, but not all of them."""
    one_changed = X.copy()
    one_changed[:, 0] = X[::-1, 0]
    effects, local = _both((X, one_changed))
    assert pairs_of(effects, local, None, NAMES).sides["x0"][0].n_groups == N
    # Values that are missing in both are the same.
    gaps = [one.copy(deep=True) for one in local]
    for one in gaps:
        one["x"][3, 1] = np.nan
    _check_rows_of_pairs(tuple(gaps))
    effects, local = _both((X, X[::-1].copy()))
    with pytest.raises(ValueError, match="all of their features have different values"):
        pairs_of(effects, local, None, NAMES)
    effects, local = _both()
    named = local[1].assign_coords(obs=local[1]["obs"].values[::-1])
    with pytest.raises(ValueError, match=r"different names \(coordinate obs\)"):
        pairs_of(effects, (local[0], named), None, NAMES)


@pytest.mark.thorough
def test_a_difference_of_means_in_a_bin():
    """From the start, at the edges: variances of the differences of pairs in the bins."""
    effects = tuple(
        rs.rhale(local_of(X, g), bins=BINS, weighting="rows", centering="start") for g in G
    )
    found = rs.compare(*effects, paired=(local_of(X, G[0]), local_of(X, G[1])))
    z = found["grid_value"].values[0]
    edges = effects[0]["edge_value"].values[0]
    assert_allclose(z[np.isfinite(z)], edges)
    inside = X[:, 0] < 0.5
    steps, variance = [0.0], [0.0]
    for there, width in zip((inside, ~inside), np.diff(edges), strict=True):
        d = (G[0] - G[1])[there, 0]
        steps.append(steps[-1] + width * d.mean())
        variance.append(variance[-1] + width**2 * d.var(ddof=1) / len(d))
    assert_allclose(found["difference"].values[0][:3], steps, atol=1e-12)
    assert_allclose(found["difference_se"].values[0][:3], np.sqrt(variance), atol=1e-12)


def test_groups_with_rows_in_the_bin_of_every_cell():
    """Cells of a bin have those of the bin; levels those of each step."""
    table = np.array([[1.0, 0, 0, 2], [0, 3, 0, 0], [0, 4, 0, 0.5]])
    sums = SimpleNamespace(
        mean=sparse.csr_array(table), n_groups=lambda: np.count_nonzero(table, axis=0)
    )
    cells = SimpleNamespace(bin=np.array([0, 0, 0, 1, 1]), stretch=slice(1, 5))
    fit = SimpleNamespace(of_levels=None, cells=cells)
    # The second and third cell of the first bin: groups 0, 1 and 2 in either; then two groups.
    assert _groups_of_bins(sums, fit).tolist() == [3, 3, 2, 2]
    fit.of_levels = np.zeros((5, 5))
    assert _groups_of_bins(sums, fit).tolist() == [1, 2, 0, 2]


def interacting(X):
    return np.sin(X["k"]) * (X["z"] + 2)


def changed_model(X):
    return 1.5 * interacting(X) + 0.2 * X["k"] * X["z"]


def numbered(n=900, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"k": rng.integers(0, 6, n) / 2, "z": rng.normal(1, 1, n)})


def test_pairs_of_a_feature_whose_values_are_edges():
    """Each step by all rows at both of its ends; a row moves both steps beside it."""
    X = numbered()
    both = [
        rs.local_effects(f, X, features="k", progress=False) for f in (interacting, changed_model)
    ]
    effects = [rs.rhale(local, centering="start") for local in both]
    found = rs.compare(*effects, paired=tuple(both), rng=0)
    values, at = np.unique(X["k"], return_inverse=True)
    moved, curve = np.zeros((len(X), len(values))), np.zeros(len(values))
    for j in range(len(values) - 1):
        high, low = (X.assign(k=value) for value in (values[j + 1], values[j]))
        step = [(f(high) - f(low)).to_numpy() for f in (interacting, changed_model)]
        rows = (at == j) | (at == j + 1)
        own = (step[0] - step[1])[rows]
        curve[j + 1 :] += own.mean()
        moved[np.ix_(rows, np.arange(len(values)) > j)] += (own - own.mean())[:, None] / len(own)
    z = found["grid_value"].values[0]
    is_edge = np.isin(z, values)
    assert is_edge.sum() == len(values)
    assert_allclose(found["difference"].values[0][is_edge], curve, atol=1e-9)
    expected = np.sqrt(np.sum(moved**2, axis=0))
    # Rows at the ends have a second half, with the mean of their step; and leverage is corrected.
    assert_allclose(found["difference_se"].values[0][is_edge], expected, rtol=0.06)
    grouped = rs.compare(*effects, paired=tuple(both), groups=np.arange(len(X)), rng=0)
    assert_allclose(grouped["difference_se"], found["difference_se"], rtol=0.02)


@pytest.mark.thorough
def test_pairs_without_values_are_left_out_of_their_feature():
    X = numbered().assign(k=lambda X: X["k"] + X["z"] / 8)
    X.loc[::7, "k"] = np.nan
    options = {"features": "k", "missing": "drop", "progress": False}
    results = []
    for rows in (X, X.dropna()):
        both = [rs.local_effects(f, rows, **options) for f in (interacting, changed_model)]
        effects = [rs.rhale(local) for local in both]
        results.append(rs.compare(*effects, paired=tuple(both), rng=0))
    whole, some = [result.dropna("grid") for result in results]
    for name in ("difference", "difference_se", "difference_band", "p_value"):
        assert_allclose(whole[name], some[name], rtol=1e-9)
