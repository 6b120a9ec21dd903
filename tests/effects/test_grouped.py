"""What groups of rows hold, by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rhale_stats.arrays import accumulate, influence
from rhale_stats.effects.cluster_robust import (
    Grouped,
    GroupWeights,
    _noise_or_equal,
    _place_variance,
)


def test_the_mean_of_a_curve_at_levels_varies_with_their_shares():
    """By n rows drawn independently: the variance of the curve over the rows by n."""
    rng = np.random.default_rng(0)
    curve, count = np.array([5.0, 7.0, 4.0]), np.array([2, 5, 3])
    over_rows = np.repeat(curve, count)
    fit = SimpleNamespace(
        places=None,
        level_share=count / 10,
        curve=curve,
        cells=SimpleNamespace(n_effective=np.array([7.0, 10.0])),
    )
    assert _place_variance(fit) == pytest.approx(over_rows.var() / 10)
    fit.cells.n_effective = np.array([0.5])
    assert _place_variance(fit) == pytest.approx(over_rows.var())
    fit.places = influence.OwnPlaces(0.3, rng.normal(size=2), rng.normal(size=2))
    assert _place_variance(fit) == 0.3


def test_noise_is_that_of_the_cells_or_of_equal_variances():
    n = np.array([4.0, 0.0, 5.0, 9.0])
    cells = SimpleNamespace(n_effective=n, stretch=slice(0, 3))
    some = accumulate.Noise(np.array([0.5, np.nan, 0.0]), np.ones(3), np.ones(3))
    fit = SimpleNamespace(noise=some, cells=cells)
    assert _noise_or_equal(fit).mean.tolist() == [0.5, 0, 0]
    fit.noise = some._replace(mean=np.array([0.0, np.nan, 0.0]))
    found = _noise_or_equal(fit)
    assert_allclose(found.mean, [1 / 4, 0, 1 / 5])
    assert not found.covariance.any()
    assert not found.slope.any()


def test_degrees_of_units_are_the_inverse_of_their_overlap():
    """The last row and column are of all rows together."""
    overlap = np.array([[0.5, 0.1, 0.2], [0.1, 0.25, 0.3], [0.2, 0.3, 0.125]])
    found = Grouped(None, overlap)
    assert_allclose(found.unit_overlap(), [[0.5, 0.1], [0.1, 0.25]])
    assert_allclose(found.degrees(), [2, 4])


class TestGroupWeights:
    """Weights by group and unit."""

    unit, group = np.array([0, 1, 1, 0, 1]), np.array([0, 0, 1, 1, 1])
    weight = np.array([1.0, 2.0, 3.0, 4.0, 5.0])

    def held(self):
        return GroupWeights(self.unit, self.group, 2, self.weight, self.weight**2, None)

    def test_sums(self):
        found = self.held()
        table = found.table(self.weight, self.unit, 2).toarray()
        assert table.tolist() == [[1, 2], [4, 8]]
        shares = found.shares(self.unit, 2)
        # Shares of the weight of a unit, and of its squares.
        squares = found.table(found.square, self.unit, 2).toarray()
        assert squares.tolist() == [[1, 4], [16, 34]]
        assert shares.weight.shape == (2, 2)
        assert found.total_shares().weight.shape == (2, 1)
