"""Blocks of cells from whose means residuals of groups are taken."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import rhale_stats as rs
from rhale_stats.arrays.skewness import Skewness
from rhale_stats.effects.cluster_robust import (
    GROUPS_OF_BLOCK,
    Clusters,
    Grouped,
    _effect_overlap,
    _skewness,
    blocks,
    centres,
    check_n_groups,
    effect_influences,
    group_errors,
)
from rhale_stats.schema.feature_result import one_feature
from tests.bins.test_adaptive import Lines
from tests.helpers import changed, local_of


def test_blocks_have_enough_groups_and_stay_in_their_bin():
    """Every cell has a group of its own; what is left at the end of a bin is joined."""
    most = GROUPS_OF_BLOCK
    n_cells = [2 * most + 1, most - 1, most + 1]
    of_bin = np.repeat([0, 1, 2], n_cells)
    cells = SimpleNamespace(bin=of_bin, n_bins=lambda: 3)
    every = np.arange(len(of_bin))
    expected = [0] * most + [1] * (most + 1) + [2] * (most - 1) + [3] * (most + 1)
    # Two rows a cell, in any order.
    rows = np.random.default_rng(0).permutation(np.repeat(every, 2))
    # A block that was joined leaves its number out.
    found = blocks(cells, rows, rows)
    assert np.unique(found, return_inverse=True)[1].tolist() == expected
    # Groups that are in all cells are counted once: a block for each bin.
    same = blocks(cells, np.repeat(every, 2), np.tile([0, 1], len(every)))
    assert np.unique(same, return_inverse=True)[1].tolist() == of_bin.tolist()
    # Bins that are cells are their own blocks.
    alone = SimpleNamespace(bin=np.arange(4), n_bins=lambda: 4)
    assert blocks(alone, np.arange(4), np.zeros(4, int)).tolist() == [0, 1, 2, 3]


def test_centres_of_residuals_are_means_of_blocks():
    """By weight; of a block of one cell its own mean; cells without rows count nothing."""
    nan = np.nan
    pieces = SimpleNamespace(mean=np.array([1.0, 3, nan, 5, 7]))
    block, weight = np.array([0, 0, 0, 1, 2]), np.array([1.0, 3, 0, 2, 4])
    found = centres(pieces, block, weight)
    assert_allclose(found, [2.5, 2.5, 2.5, 5, 7])


def test_two_groups_at_least():
    assert check_n_groups(np.array([0, 1, 0])) == 2
    for codes in (np.zeros(3, dtype=int), np.zeros(0, dtype=int)):
        with pytest.raises(ValueError, match=rf"two different groups; got {min(len(codes), 1)}\."):
            check_n_groups(codes)


def test_overlap_of_effects_is_that_of_their_cells():
    """By what each cell adds to a variance; without any spread, as if all rows had one."""
    overlap = np.array([[0.5, 0.1, 0.2], [0.1, 0.25, 0.3], [0.2, 0.3, 0.125]])
    found = Grouped(None, np.pad(overlap, (0, 1), constant_values=9.0))
    level, n = np.array([0.25, 0.75, 1.0]), np.array([4.0, 2.0, 5.0])
    cells = SimpleNamespace(
        effect_parts=np.array([3.0, 1.0, 0.0]), bin=np.array([0, 0, 1]), loading=(level, None),
        n_effective=n, n_bins=2,
    )  # fmt: skip
    shares = np.array([[0.75, 0.25, 0], [0, 0, 1]])
    fit = SimpleNamespace(cells=cells)
    assert_allclose(_effect_overlap(found, fit), shares @ overlap @ shares.T)
    cells.effect_parts = np.array([0.0, np.nan, 0.0])
    alike = level**2 / n
    shares = np.array([[*alike[:2] / alike[:2].sum(), 0], [0, 0, 1]])
    assert_allclose(_effect_overlap(found, fit), shares @ overlap @ shares.T)
    cells.n_effective = np.array([4.0, 0.0, 5.0])
    assert_allclose(_effect_overlap(found, fit)[0, 0], overlap[0, 0])


@pytest.mark.parametrize("linear", [False, True])
def test_errors_of_groups_by_their_influences(linear):
    """Bins by their rows: sums of squares of corrected influences, and of products."""
    rng = np.random.default_rng(2)
    x = np.sort(rng.uniform(0, 2, 60))[:, None]
    x[[0, -1], 0] = 0, 2
    group = rng.integers(12, size=60)
    local = local_of(x, np.where(x < 1, 1, 4 * x - 3) + rng.normal(size=x.shape) / 2)
    rule = Lines((0.0, 1, 2), (False, linear))
    effect = rs.rhale(local, bins=rule, weighting="rows", centering="start")
    clusters = Clusters.of_effect(local, effect, group)
    row = one_feature(effect, 0)
    own = clusters.bin_influences(row)
    found = group_errors(row, row.fit, clusters)
    mean, slope, variance = (getattr(own.sums, name).toarray() for name in
                             ("mean", "slope", "variance"))  # fmt: skip
    middle = np.array([0.5, 1.5])
    moved = mean + slope * (middle - row.x_mean)
    assert_allclose(found["effect_cov"], moved.T @ moved, atol=1e-14)
    assert_allclose(found["effect_se"] ** 2, np.sum(moved**2, axis=0))
    spread = row["heterogeneity"].values
    se = np.sqrt(np.sum(variance**2, axis=0)) / (2 * spread)
    assert_allclose(found["heterogeneity_se"], se)
    # A line has its bend inside a bin only, so that steps are widths times effects.
    curve = np.hstack([np.zeros((12, 1)), np.cumsum(moved, axis=1)])
    assert_allclose(found["curve_cov"], curve.T @ curve, atol=1e-12)
    assert_allclose(found["curve_se"], found["curve_se_start"], atol=1e-12)
    assert found["average_effect_se"] == np.sqrt(np.sum(own.sums.average**2))
    if linear:
        assert_allclose(found["slope_cov"], slope.T @ slope, atol=1e-14)
        assert_allclose(found["slope_se"] ** 2, np.sum(slope**2, axis=0))
        assert_allclose(found["effect_slope_cov"], moved.T @ slope, atol=1e-14)
        assert_allclose(found["curve_slope_cov"], curve.T @ slope, atol=1e-12)
        assert_allclose(found["slope_df"], own.degrees())
    assert_allclose(found["heterogeneity_df"], own.degrees())
    assert_allclose(found["effect_df"], own.degrees())
    # At its start the curve has no error: the degrees are those of the average.
    assert found["curve_df"][0] == found["average_effect_df"]
    same = changed(row, heterogeneity=("bin", [0.0, spread[1]]))
    assert group_errors(same, same.fit, clusters)["heterogeneity_se"][0] == 0


def test_skewness_of_groups_along_the_axis():
    """The places of the rows add to the variance of a centred curve, and not to its skewness."""
    rng = np.random.default_rng(2)
    x = np.sort(rng.uniform(0, 2, 200))[:, None]
    group = rng.integers(40, size=200)
    local = local_of(x, 3 * (x > 1) + rng.exponential(size=x.shape))
    effect = rs.rhale(local, bins=rs.GivenBins([0, 1, 2]))
    clusters = Clusters.of_effect(local, effect, group)
    row = one_feature(effect, 0)
    fit = row.fit
    own, found = clusters.bin_influences(row), clusters.influences(row)
    of_effect = effect_influences(found.sums, fit.cells).toarray()
    skewness = Skewness.of_groups(of_effect, own.degrees(), clusters.sums(row).levels.sign(row))
    assert skewness is not None
    result = _skewness(row, fit, clusters, own, found)
    assert_allclose(result["effect_skewness"], skewness.of_means())
    at = fit.loadings(fit.pieces.edges)
    within, total = (
        np.sum(found.sums.of_curve(at, population=places) ** 2, axis=0) for places in (False, True)
    )
    bins = (fit.cells.bin == np.arange(2)[:, None]).astype(float)
    level = at.level @ bins.T
    expected = skewness.of_sums(level, within) * np.minimum(within / total, 1) ** 1.5
    assert_allclose(result["curve_skewness"], expected)
    share = fit.cells.pieces.share
    rows = found.sums.mean @ share
    part = np.sum(rows**2) / np.sum(found.sums.average**2)
    average = skewness.of_sums(bins @ share, np.array(np.sum(rows**2)))
    assert_allclose(result["average_effect_skewness"], average * min(part, 1) ** 1.5)


@pytest.mark.filterwarnings("ignore:Gaps", "ignore:Bins without rows", "ignore:groups are few")
class TestGaps:
    """A stretch without rows in the middle of the range of a feature."""

    EDGES = (0.0, 1, 2, 3, 50, 51, 52)

    @pytest.fixture
    def rows(self):
        """Values on both sides of a gap, local effects that groups share, and the groups."""
        rng = np.random.default_rng(5)
        x = np.concatenate([rng.uniform(0, 3, 320), rng.uniform(50, 52, 200)])
        group = rng.integers(0, 30, len(x))
        return x, np.sin(x) + rng.normal(size=30)[group] + rng.normal(size=len(x)), group

    @staticmethod
    def errors(x, g, group, edges, **options):
        local = rs.local_effects(None, x[:, None], jacobian=g[:, None])
        effect = rs.rhale(local, bins=rs.GivenBins({"x0": list(edges)}), **options)
        return local, rs.std_error(effect, local, groups=group)

    def test_every_side_has_the_errors_of_its_rows(self, rows):
        options = {"weighting": "rows", "centering": "start"}
        _, both = self.errors(*rows, self.EDGES, **options)
        for side, bins in ((rows[0] < 10, slice(0, 3)), (rows[0] > 10, slice(4, 6))):
            edges = self.EDGES[bins.start : bins.stop + 1]
            _, alone = self.errors(*[values[side] for values in rows], edges, **options)
            for name in ("effect_se", "effect_df", "heterogeneity_se"):
                assert_allclose(both[name][0, bins], alone[name][0], rtol=1e-9, err_msg=name)
            if bins.start == 0:  # the curve is that of the side with most rows
                assert_allclose(both["curve_se"][0, :4], alone["curve_se"][0], atol=1e-12)
        gap = both.isel(feature=0)
        assert np.isnan(gap["effect_se"].values[3])
        assert np.isnan(gap["curve_se"].values[4:]).all()

    def test_errors_are_those_of_drawn_groups(self, rows):
        """Of 2,000 draws a standard deviation has an error of 2 %."""
        local, effect = self.errors(*rows, self.EDGES)
        boot = rs.bootstrap(local, effect, groups=rows[2], n_resamples=2000, rng=0)
        drawn = boot["effect"].std(("chain", "draw")).values[0]
        has_rows = np.arange(6) != 3
        assert_allclose(effect["effect_se"].values[0, has_rows], drawn[has_rows], rtol=0.12)
        ends = rs.confint(effect, boot)["effect_ci"].values[0]
        assert np.isfinite(ends[has_rows]).all()

    def test_tests_and_bands_leave_the_gap_out(self, rows):
        x, g, group = rows
        _, effect = self.errors(x, g, group, self.EDGES)
        for null in ("zero", "constant"):
            test = rs.wald_test(effect, null)
            assert test["reason"].item() == ""
            assert test["p_value"].item() < 0.05
        _, none = self.errors(x, g - np.sin(x), group, self.EDGES)
        assert rs.wald_test(none, "constant")["p_value"].item() > 0.05
        band = rs.confband(effect, rng=0)
        assert np.isfinite(band["effect_band"].values[0, [0, 1, 2, 4, 5]]).all()
        few = self.errors(x, g, group % 6, self.EDGES)[1]
        assert np.isfinite(few["zero_pvalue"].item())
