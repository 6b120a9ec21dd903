"""Sums by group and unit give the influences that the rows give."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rhale_stats.arrays import leverage
from rhale_stats.arrays.accumulate import Pieces
from rhale_stats.effects import cluster_robust as module
from rhale_stats.effects.cluster_robust import UnitSums
from rhale_stats.local.rows import Rows
from tests.arrays.row_influences import row_sums

N = 60
RNG = np.random.default_rng(3)
EDGES = np.array([0.0, 1, 2.5, 3])
X = RNG.uniform(0, 3, N)
K = np.searchsorted(EDGES[1:-1], X, side="right")
G = 2 * X + RNG.normal(size=N)
GROUP = RNG.integers(0, 7, N)
WEIGHT = RNG.integers(1, 4, N).astype(float)
SLOPE = np.array([0.0, 1.7, -0.4])
CURVE = np.array([0.5, 1.0, -2.0, 0.25])


def _pieces(w):
    mean, x_mean = (np.array([np.average(v[b == K], weights=w[b == K]) for b in range(3)])
                    for v in (G, X))  # fmt: skip
    x_variance = np.bincount(K, w * (X - x_mean[K]) ** 2) / np.bincount(K, w)
    return Pieces(EDGES, mean, SLOPE, x_mean, x_variance, np.bincount(K, w) / w.sum())


def _sums(rows=slice(None), weight=WEIGHT, *, frequency=False):
    w = np.ones(N) if weight is None else weight
    own = None if weight is None else weight[rows]
    part = Rows([X[rows]], [G[rows]], own, frequency, len(X[rows]))
    return UnitSums.of_rows(_pieces(w), part, 0, GROUP[rows], 7)


def _same(one, other):
    for name, values in one._asdict().items():
        assert_allclose(values, getattr(other, name), rtol=1e-12, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("kind", ["none", "precision", "frequency"])
def test_sums_by_hand(kind):
    weight, frequency = None if kind == "none" else WEIGHT, kind == "frequency"
    w = np.ones(N) if weight is None else weight
    found, pieces = _sums(weight=weight, frequency=frequency), _pieces(w)
    d = X - pieces.x_mean[K]
    r = G - pieces.mean[K] - SLOPE[K] * d
    pairs = sorted({*zip(GROUP.tolist(), K.tolist(), strict=True)})
    assert list(zip(found.group.tolist(), found.unit.tolist(), strict=True)) == pairs
    assert (found.n_groups, found.n_units) == (7, 3)
    square = w**2 if kind == "precision" else w
    for name, values in {"weight": w, "square": square, "d": w * d, "dd": w * d**2, "r": w * r,
                         "dr": w * d * r, "rr": w * r**2}.items():  # fmt: skip
        expected = [values[(group == GROUP) & (unit == K)].sum() for group, unit in pairs]
        assert_allclose(getattr(found, name), expected, atol=1e-12, err_msg=name)
    assert_allclose(found.total(found.weight), np.bincount(K, w))


@pytest.mark.parametrize("frequency", [False, True])
def test_a_table_of_pairs_is_as_a_sorted_list(frequency, monkeypatch):
    dense = _sums(frequency=frequency)
    monkeypatch.setattr(module, "MIN_DENSE", 0)
    monkeypatch.setattr(module, "DENSE", 0)
    _same(dense, _sums(frequency=frequency))


def test_rows_that_are_groups_of_their_own(monkeypatch):
    def found():
        rows = Rows([X], [G], WEIGHT, False, N)
        return UnitSums.of_rows(_pieces(WEIGHT), rows, 0, np.arange(N), N)

    dense = found()
    monkeypatch.setattr(module, "MIN_DENSE", 0)
    monkeypatch.setattr(module, "DENSE", 0)
    _same(dense, found())
    assert_array_equal(found().unit, K)


def test_parts_of_rows_have_the_sums_of_all():
    parts = [_sums(slice(0, 11)), _sums(slice(11, 40)), _sums(slice(40, N))]
    _same(UnitSums.merged(parts), _sums())
    alone = _sums()
    assert UnitSums.merged([alone]) is alone


@pytest.mark.parametrize("weighted", [False, True])
def test_influences_are_those_of_the_rows(weighted):
    """As `row_sums` adds them up by group."""
    weight = WEIGHT if weighted else None
    w = np.ones(N) if weight is None else weight
    pieces, sums = _pieces(w), _sums(weight=weight)
    found = sums.row_sums(pieces, CURVE)
    expected = row_sums(pieces, CURVE, K, X, G, weight, GROUP, 7)
    for name in ("mean", "slope", "variance"):
        own, other = (getattr(one, name).toarray() for one in (found, expected))
        assert_allclose(own, other, atol=1e-12, err_msg=name)
    assert_allclose(found.places, expected.places, atol=1e-12)
    assert_allclose(found.average, expected.average, atol=1e-12)


def test_residuals_about_other_means():
    pieces, centre = _pieces(WEIGHT), np.array([1.0, -2, 9])
    moved = _sums().about(pieces, centre)
    other = pieces._replace(mean=centre)
    _same(moved, UnitSums.of_rows(other, Rows([X], [G], WEIGHT, False, N), 0, GROUP, 7))


def test_lines_are_those_of_the_rows():
    pieces, sums = _pieces(WEIGHT), _sums()
    found, sd = sums.lines(pieces), np.sqrt(pieces.x_variance[K])
    assert isinstance(found, leverage.Lines)
    z, share = (X - pieces.x_mean[K]) / sd, WEIGHT / np.bincount(K, WEIGHT)[K]
    for table, values in ((found.shared, share * z), (found.slope, share * z**2)):
        expected = np.zeros((7, 3))
        np.add.at(expected, (GROUP, K), np.where(SLOPE[K] != 0, values, 0))
        assert_allclose(table.toarray(), expected, atol=1e-12)
    assert_array_equal(found.sd, [0, *np.sqrt(pieces.x_variance[1:])])
    assert sums.lines(pieces._replace(slope=np.zeros(3))) is None
    # A group that represents several has equal parts of the lines for each.
    repeats = np.arange(1.0, 8)
    each = sums.lines(pieces, repeats)
    assert_allclose(each.slope.toarray(), found.slope.toarray() / repeats[:, None])
