"""The grid of a feature, and its moments: in memory, on threads, in chunks."""

from __future__ import annotations

from itertools import cycle

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose

import rhale_stats as rs
from rhale_stats.bins.rule import Column
from rhale_stats.effects import rhale as module
from rhale_stats.effects.estimates import grid_of, moments_on
from rhale_stats.local.rows import columns

N = 4000
CALLS = {
    "default": {},
    "the paper": {"bins": rs.OptimalBins(), "weighting": "rows"},
    "quantiles": {"bins": rs.QuantileBins(9)},
    "lines over rows": {"weighting": "rows"},
    "best number": {"bins": rs.BestEqualWidthBins(12)},
}


def local_effects(weights=None, weight_kind="precision"):
    rng = np.random.default_rng(5)
    X = np.stack(
        [rng.uniform(size=N), rng.lognormal(size=N), rng.integers(0, 6, N), np.full(N, 2.0)], axis=1
    )
    jacobian = np.sin(4 * X) + rng.normal(size=X.shape) * (1 + X)
    given = {} if weights is None else {"weights": weights(rng), "weight_kind": weight_kind}
    return rs.local_effects(None, X, jacobian=jacobian, features=[0, 1, 2, 3], **given)


def assert_same(one: xr.Dataset, other: xr.Dataset):
    assert one.attrs == other.attrs
    assert set(one.variables) == set(other.variables)
    for name in one.variables:
        if one[name].dtype.kind != "f":
            assert (one[name].values == other[name].values).all(), name
            continue
        a, b = one[name].values, other[name].values
        # Sums of odd powers cancel: by the largest value.
        scale = max(1e-11 * np.abs(b[np.isfinite(b)]).max(initial=0.0), 1e-14)
        assert_allclose(a, b, rtol=1e-9, atol=scale, err_msg=name)


@pytest.mark.parametrize(
    ("call", "weights"), list(zip(CALLS, cycle(["none", "frequency", "precision"]), strict=False))
)
def test_chunks_and_threads_change_nothing(monkeypatch, call, weights):
    local = {
        "none": lambda: local_effects(),
        "frequency": lambda: local_effects(lambda rng: rng.integers(0, 4, N), "frequency"),
        "precision": lambda: local_effects(lambda rng: rng.exponential(size=N)),
    }[weights]()
    expected = rs.rhale(local, **CALLS[call])
    monkeypatch.setattr(module, "THREADS_FROM", 1)
    monkeypatch.setattr(module, "cpus", lambda: 3)
    xr.testing.assert_identical(rs.rhale(local, **CALLS[call]), expected)
    pytest.importorskip("dask.array", reason="dask is not installed")
    assert_same(rs.rhale(local.chunk({"obs": 1500}), **CALLS[call]), expected)


def test_a_rule_of_a_users_own_gets_all_features_at_once():
    from dataclasses import dataclass

    seen = []

    @dataclass(frozen=True)
    class Own(rs.OptimalBins):
        def choose(self, candidates):
            seen.append(len(candidates))
            return super().choose(candidates)

    rs.rhale(local_effects(), bins=Own())
    # A feature with ties has rows of its own: halves of those on edges.
    assert seen == [2, 1]


def test_a_rule_may_give_lines_to_some_features_alone():
    from dataclasses import dataclass

    from rhale_stats.bins.rule import Partition

    @dataclass(frozen=True)
    class Own:
        def cells(self, column):
            return rs.QuantileBins(4).cells(column)

        def choose(self, candidates):
            lines = [None, np.array([True, False]), np.array([True, True])]
            starts = np.array([0, 2])
            return [Partition(starts, lines[int(each.name[1:])]) for each in candidates]

    x = np.random.default_rng(0).normal(size=(500, 3))
    effect = rs.rhale(rs.local_effects(None, x, jacobian=2 * x), bins=Own())
    np.testing.assert_allclose(effect["slope"], [[0, 0], [2, 0], [2, 2]], atol=1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["x", "local_effect"])
def test_messages_have_the_numbers_of_the_rows_as_given(name, bad):
    local = local_effects()
    values = local[name].values.copy()
    values[[17, 3100], 1] = bad
    with pytest.raises(ValueError, match=r"first rows: 17, 3100"):
        rs.rhale(local.assign({name: (local[name].dims, values)}))


def test_held_bins_are_taken_and_put():
    local, held = local_effects(), {}
    first = module.quiet_rhale(local, cache=held)
    assert set(held) == {"x0", "x1", "x2"}
    other = module.quiet_rhale(local.assign(local_effect=-local["local_effect"]), cache=held)
    xr.testing.assert_equal(other["edge_value"], first["edge_value"])


def test_rules_get_the_edges_of_cells_that_slopes_are_across():
    """Or of other cells of unequal width; none of equal cells. The resolution is the error."""
    x, g = np.array([0.5, 1.0, 2.0, 3.0]), np.array([1.0, 3, 3, 5])
    places = columns(rs.local_effects(None, x[:, None], jacobian=g[:, None]))
    slopes_across = np.array([0.0, 1, 4])
    for rule, across, edges in (
        (rs.OptimalBins(), slopes_across, [0, 1, 4]),
        (rs.QuantileBins(2), None, [0.5, 1, 3]),
        (rs.EqualWidthBins(5), None, None),
    ):
        grid = grid_of(rule, places, 0, "x0", (0.5, 3.0), across)
        moments = moments_on(grid, 0, unequal=False).map(places).cells
        found = grid.candidates(moments, 0.25)
        assert (None if found.edges is None else found.edges.tolist()) == edges
        assert found.resolution == 0.25
        assert found.gaps.tolist() == (found.moments.weight == 0).tolist()
        assert found.moments.n_obs.sum() == 4
    assert isinstance(grid_of(rule, places, 0, "x0", (1.0, 1.0), None), Column)
