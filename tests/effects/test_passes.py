"""One feature after the other, with sorted rows and pieces of them: the numbers of all at once."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose

import rhale_stats as rs
from rhale_stats.arrays import binning
from rhale_stats.arrays.moments import Moments
from rhale_stats.bins.rule import Column
from rhale_stats.effects import rhale as module
from rhale_stats.effects.estimates import Cells
from rhale_stats.effects.passes import chosen_bins
from rhale_stats.local import rows

N = 4000
CALLS = {
    "default": {},
    "the paper": {"bins": rs.OptimalBins(), "weighting": "rows"},
    "quantiles": {"bins": rs.QuantileBins(9)},
    "lines over rows": {"weighting": "rows"},
    "no moments": {"std_error_moments": False},
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


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("weights", ["none", "frequency", "precision"])
def test_one_by_one_is_as_together(monkeypatch, call, weights):
    local = {
        "none": lambda: local_effects(),
        "frequency": lambda: local_effects(lambda rng: rng.integers(0, 4, N), "frequency"),
        "precision": lambda: local_effects(lambda rng: rng.exponential(size=N)),
    }[weights]()
    monkeypatch.setattr(module, "ONE_BY_ONE_FROM", N + 1)
    monkeypatch.setattr(rows, "PIECES_FROM", N + 1)
    expected = rs.rhale(local, **CALLS[call])
    monkeypatch.setattr(module, "ONE_BY_ONE_FROM", 1)
    assert_same(rs.rhale(local, **CALLS[call]), expected)
    monkeypatch.setattr(rows, "PIECES_FROM", 1)
    assert_same(rs.rhale(local, **CALLS[call]), expected)


def test_threads_do_not_share_columns(monkeypatch):
    local = local_effects()
    monkeypatch.setattr(module, "ONE_BY_ONE_FROM", 1)
    expected = rs.rhale(local)
    monkeypatch.setattr(module, "THREADS_FROM", 1)
    monkeypatch.setattr(module, "cpus", lambda: 3)
    xr.testing.assert_identical(rs.rhale(local), expected)


def test_a_rule_of_a_users_own_gets_all_features_at_once(monkeypatch):
    from dataclasses import dataclass

    seen = []

    @dataclass(frozen=True)
    class Own(rs.OptimalBins):
        def choose(self, candidates):
            seen.append(len(candidates))
            return super().choose(candidates)

    monkeypatch.setattr(module, "ONE_BY_ONE_FROM", 1)
    rs.rhale(local_effects(), bins=Own())
    # A feature with ties has rows of its own: halves of those on edges.
    assert seen == [2, 1]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["x", "local_effect"])
def test_messages_have_the_numbers_of_the_rows_as_given(monkeypatch, name, bad):
    monkeypatch.setattr(module, "ONE_BY_ONE_FROM", 1)
    local = local_effects()
    values = local[name].values.copy()
    values[[17, 3100], 1] = bad
    with pytest.raises(ValueError, match=r"first rows: 17, 3100"):
        rs.rhale(local.assign({name: (local[name].dims, values)}))


@pytest.mark.parametrize("call", CALLS)
def test_chunks_one_by_one_are_as_together(monkeypatch, call):
    pytest.importorskip("dask.array", reason="dask is not installed")
    local = local_effects().chunk({"obs": 1500})
    monkeypatch.setattr(module, "ONE_BY_ONE_FROM", N + 1)
    expected = rs.rhale(local, **CALLS[call])
    monkeypatch.setattr(module, "ONE_BY_ONE_FROM", 1)
    assert_same(rs.rhale(local, **CALLS[call]), expected)


def test_held_bins_are_taken_and_put_one_by_one(monkeypatch):
    monkeypatch.setattr(module, "ONE_BY_ONE_FROM", 1)
    local, held = local_effects(), {}
    first = module.quiet_rhale(local, held=held)
    assert set(held) == {"x0", "x1", "x2"}
    other = module.quiet_rhale(local.assign(local_effect=-local["local_effect"]), held=held)
    xr.testing.assert_equal(other["edge_value"], first["edge_value"])


def test_rules_get_the_edges_of_cells_that_slopes_are_across():
    """Or of other cells of unequal width; not for a constant. The resolution is the error."""
    edges = np.array([0.0, 1, 4])
    ones = np.ones(2)
    moments = Moments(ones, ones, ones, np.array([1.0, 3]), ones, np.array([0.5, 2]))
    axis = binning.variable_axis(edges)
    seen = []

    class Rule:
        def choose(self, candidates):
            seen.extend(candidates)
            return [f"bins of {one.name}" for one in candidates]

    def cells(name, own):
        column = Column(name, np.zeros(0), 0.0, 4.0, None, own)
        return Cells(column, axis, moments, None)

    flat = Cells(Column("flat", np.zeros(0), 1.0, 1.0, None), None, None, None)
    features = [cells("across", edges), flat, cells("own", None)]
    found = chosen_bins(Rule(), features, np.array([0.25, 0.0, 0.5]))
    assert found == {0: "bins of across", 2: "bins of own"}
    assert seen[0].edges.tolist() == edges.tolist()
    assert seen[1].edges.tolist() == edges.tolist()
    assert not seen[0].gaps.any()
    assert [one.resolution for one in seen] == [0.25, 0.5]
    assert [(one.low, one.high) for one in seen] == [(0, 4)] * 2
