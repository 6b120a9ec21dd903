"""What two curves of one model share."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose
from scipy import stats

import rhale_stats as rs
from rhale_stats.effects.comparison import (
    CurveReference,
    _parameter_covariance,
    common_reference,
    directions_at,
    points_of,
)
from tests.helpers import changed, local_of, row_of


def test_parameters_in_the_variance_of_a_difference(rng):
    """By the errors of both curves: those of rows are known, all products with others are not."""
    moved = list(rng.normal(size=(2, 2, 3, 4)))  # curve, part, point, direction
    (a, rows_a), (b, rows_b) = moved
    # The same rows: the square of the difference of the whole less that of the rows.
    whole, rows = a + rows_a - b - rows_b, rows_a - rows_b
    found = _parameter_covariance(moved, paired=True)
    assert_allclose(found, whole @ whole.T - rows @ rows.T)
    # Other rows: the products of both curves, less those of their rows.
    shared = (a + rows_a) @ (b + rows_b).T - rows_a @ rows_b.T
    found = _parameter_covariance(moved, paired=False)
    assert_allclose(found, -shared - shared.T)


class TestReference:
    """A mean over places that is subtracted from values at points."""

    places, weight = np.array([0.0, 1.0, 2.0]), np.array([1.0, 2.0, 5.0])
    known = np.array([True, True, False])

    def contrast(self, n):
        """What `less` does, as a matrix: places that are not known do not count."""
        return np.hstack([np.eye(n), np.tile([-1 / 3, -2 / 3, 0], (n, 1))])

    def test_means_over_known_places(self, rng):
        curve = rng.normal(size=5)
        found = CurveReference(self.places, self.weight).less(curve, self.known)
        assert_allclose(found, self.contrast(2) @ curve)

    def test_covariance_is_that_of_the_contrasts(self, rng):
        root = rng.normal(size=(5, 5))
        contrast = self.contrast(2)
        found = CurveReference(self.places, self.weight).covariance(root @ root.T, self.known)
        assert_allclose(found, contrast @ root @ root.T @ contrast.T)

    def test_nothing_is_subtracted_without_places(self, rng):
        none, curve, root = CurveReference(np.zeros(0), np.zeros(0)), *rng.normal(size=(2, 3))
        covariance = np.outer(root, root)
        assert_allclose(none.less(curve, np.zeros(0, dtype=bool)), curve)
        assert_allclose(none.covariance(covariance, np.zeros(0, dtype=bool)), covariance)


def fit(edges, cells=None, slope=None, centering="mean", x_mean=None, share=None, level_share=None):
    """A curve with edges of bins, and finer cells where it turns."""
    edges = np.array(edges, dtype=float)
    cells = edges if cells is None else np.array(cells, dtype=float)
    n = max(len(cells) - 1, 0)
    pieces = SimpleNamespace(
        edges=cells,
        slope=np.zeros(n) if slope is None else np.array(slope),
        x_mean=(cells[:-1] + cells[1:]) / 2 if x_mean is None else np.array(x_mean),
        share=np.full(n, 1 / max(n, 1)) if share is None else np.array(share),
    )
    return SimpleNamespace(edges=edges, pieces=pieces, centering=centering, level_share=level_share)


def points(*fits):
    return points_of(tuple(one.edges for one in fits), fits)


class TestPoints:
    """Where two curves are compared."""

    def test_edges_of_both_in_their_common_range(self):
        assert points(fit([0, 2, 5]), fit([1, 2, 3, 9])).tolist() == [1, 2, 3, 5]

    @pytest.mark.parametrize("edges", [[5, 6], [7, 8]])
    def test_none_without_a_common_range(self, edges):
        assert points(fit([0, 2, 5]), fit(edges)).shape == (0,)

    @pytest.mark.parametrize(
        ("edges", "expected"), [([0, 9], [3, 3.5, 4, 4.5, 5]), ([0, 4, 9], [3, 4, 5])]
    )
    def test_beyond_a_gap_there_is_no_curve(self, edges, expected):
        """Curves are compared up to the gap, whether an edge of a bin is before it or not."""
        assert points(fit(edges, cells=[3, 4, 5]), fit(edges)).tolist() == expected

    def test_quarters_where_one_is_bent(self):
        """By a slope, or by cells that end inside; a cell's edge at that of a bin bends nothing."""
        straight = fit([0, 4, 8])
        line = fit([0, 4, 8], slope=[0.0, 1.0])
        assert points(straight, line).tolist() == [0, 4, 5, 6, 7, 8]
        cells = fit([0, 4, 8], cells=[0, 1, 4, 8])
        assert points(cells, straight).tolist() == [0, 1, 2, 3, 4, 8]


class TestCommonZero:
    """What the centring of both curves means on their common range."""

    def common(self, *fits, z=(1.0, 2.0, 4.0), marks=("", ""), n=(30.0, 10.0)):
        rows = tuple(
            row_of(
                xr.Dataset({"n_obs": ("bin", [one])}, {"feature": "x", "feature_kind": "numeric"})
            )
            for one in n
        )
        return common_reference(rows, fits, np.array(z))

    def test_starts(self):
        a, b, c = (fit(edges, centering="start") for edges in ([1, 4], [1, 2, 4], [0, 4]))
        assert not len(self.common(a, b).places)
        found = self.common(a, c)
        assert (found.places.tolist(), found.weight.tolist()) == ([1], [1])

    def test_integrals_by_trapezes(self):
        a, b, c = (fit(edges, centering="integral") for edges in ([1, 4], [1, 2, 4], [0, 4]))
        assert not len(self.common(a, b).places)
        found = self.common(a, c)
        assert found.places.tolist() == [1, 2, 4]
        assert found.weight.tolist() == [0.5, 1.5, 1]
        # The other end, too.
        assert len(self.common(a, fit([1, 5], centering="integral")).places)

    def test_means_over_the_rows_of_both(self):
        """Within the range of both, by numbers of rows; cells without rows have no place."""
        a = fit([0, 2, 4, 6], share=[0.25, 0.75, 0.0])
        b = fit([1, 4, 8], share=[0.5, 0.5])
        found = self.common(a, b)
        assert found.places.tolist() == [1, 3, 2.5]
        assert found.weight.tolist() == [7.5, 22.5, 5]
        assert not len(self.common(a, a).places)

    def test_other_shares_at_the_same_places(self):
        a, b = (fit([0, 2, 4], share=share) for share in ([0.25, 0.75], [0.5, 0.5]))
        found = self.common(a, b)
        assert found.places.tolist() == [1, 3, 1, 3]
        assert found.weight.tolist() == [7.5, 22.5, 5, 5]

    def test_no_rows_within_the_range_of_both(self):
        a, b = fit([0, 4], x_mean=[0.5]), fit([1, 9], x_mean=[8.0])
        found = self.common(a, b)
        assert (found.places.tolist(), found.weight.tolist()) == ([1], [1])

    def test_levels_have_their_shares(self):
        a, b = (fit([0, 1, 2], level_share=np.array(one)) for one in ([0.5, 0.25, 0.25], [0, 0, 1]))
        found = self.common(a, b, z=(0.0, 1.0, 2.0))
        assert found.places.tolist() == [0, 1, 2] * 2
        assert found.weight.tolist() == [15, 7.5, 7.5, 0, 0, 10]


@pytest.mark.parametrize("known", [(True, True), (True, False), (False, False)])
def test_only_known_rows_are_the_same(known):
    """Other places of the same rows have one zero, if the checksums of both say so."""
    marks = ["11111111-22222222" if one else "" for one in known]
    rows = tuple(
        row_of(xr.Dataset(
            {"n_obs": ("bin", [9.0])}, {"feature": "x", "feature_kind": "numeric"},
            {"row_fingerprint": f'{{"x": "{mark}"}}'} if mark else {},
        ))
        for mark in marks
    )  # fmt: skip
    fits = fit([0, 2, 4], share=[0.25, 0.75]), fit([0, 4], share=[1.0])
    found = common_reference(rows, fits, np.array([0.0, 2, 4]))
    assert (len(found.places) == 0) == all(known)


def test_directions_between_edges():
    """On the lines between edges, less the bends of bins with slopes, by part and direction."""
    rng = np.random.default_rng(0)
    curve, slope = rng.normal(size=(3, 2, 4)), rng.normal(size=(2, 2, 4))
    row = row_of(
        xr.Dataset(
            {
                "curve_directions": (("edge", "part", "component"), curve),
                "slope_directions": (("bin", "part", "component"), slope),
                "slope": ("bin", [0.0, 2.0]),
            },
            {"edge_value": ("edge", [0.0, 1.0, 3.0])},
        )
    )
    fit = SimpleNamespace(
        pieces=SimpleNamespace(edges=np.array([0.0, 1, 3])),
        cells=SimpleNamespace(edge_stretch=slice(0, 3)),
    )
    found = directions_at(row, fit, np.array([0.5, 1.0, 2.0]))
    assert found.shape == (2, 3, 4)
    # At .5 of a bin of width 1 a slope bends by 1 / 8, in the middle of one of width 2 by 1 / 2.
    assert_allclose(found[:, 0], (curve[0] + curve[1]) / 2 - slope[0] / 8)
    assert_allclose(found[:, 1], curve[1])
    assert_allclose(found[:, 2], (curve[1] + curve[2]) / 2 - slope[1] / 2)
    straight = directions_at(changed(row, slope=0 * row["slope"]), fit, np.array([0.5, 2.0]))
    assert_allclose(straight[:, 0], (curve[0] + curve[1]) / 2)


def test_the_difference_of_two_curves_by_hand():
    """Independent rows, from their starts: variances add, with the degrees of Welch."""
    rng = np.random.default_rng(0)
    x = [rng.uniform(0, 2, (n, 1)) for n in (30, 50)]
    for one in x:
        one[:2, 0] = 0, 2
    g = [1 + rng.normal(size=x[0].shape), 2 + 3 * rng.normal(size=x[1].shape)]
    effects = [
        rs.rhale(local_of(*one), bins=rs.GivenBins([0, 1, 2]), weighting="rows", centering="start")
        for one in zip(x, g, strict=True)
    ]
    found = rs.compare(*effects, level=0.9, rng=0)
    steps = []
    for at, own in zip(x, g, strict=True):
        parts = [own[at < 1], own[at >= 1]]
        steps.append([(p.mean(), p.var(ddof=1) / len(p), len(p) - 1) for p in parts])
    (a, b) = steps
    assert_allclose(found["grid_value"][0], [0, 1, 2])
    expected = np.cumsum([0.0, *(one[0] - other[0] for one, other in zip(a, b, strict=True))])
    assert_allclose(found["difference"][0], expected, atol=1e-12)
    square = np.cumsum([0.0, *(one[1] + other[1] for one, other in zip(a, b, strict=True))])
    assert_allclose(found["difference_se"][0], np.sqrt(square), atol=1e-12)
    (_, v, n), (_, w, m) = a[0], b[0]
    half = stats.t.ppf(0.95, (v + w) ** 2 / (v**2 / n + w**2 / m)) * np.sqrt(v + w)
    ends = [expected[1] - half, expected[1] + half]
    assert_allclose(found["difference_ci"].values[0, 1], ends, rtol=1e-9)
