"""Rules as text, and the edges that a rule may use, by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import rhale_stats as rs
from rhale_stats.arrays.moments import Moments
from rhale_stats.bins.description import (
    cells_of,
    describe,
    for_share_of_rows,
    is_ours,
    rule_of,
    starts_of,
)
from rhale_stats.bins.rule import BinRule, Candidates, Column

X = np.array([1.0, 2.0, 4.0, 7.0, 9.0])
# Cells of unequal width, of which the first begins at 1 and not at 0.
CELLS = np.array([1.0, 2.0, 3.0, 5.0, 9.0])


def column(cells=CELLS):
    return Column("speed", X, 1.0, 9.0, None, cells)


def edges_of(rule, cells=CELLS):
    return np.asarray(cells_of(rule, column(cells)).edges)


class TestCells:
    """The finest cells that a rule may use."""

    def test_those_of_the_rule_without_slopes(self):
        assert_allclose(edges_of(rs.EqualWidthBins(4), None), [1, 3, 5, 7, 9])
        assert_allclose(edges_of(rs.GivenBins([0, 5, 10]), None), [0, 5, 10])

    @pytest.mark.parametrize("kind", [rs.AdaptiveBins, rs.OptimalBins, rs.GreedyBins])
    def test_rules_that_search_join_the_cells_of_slopes(self, kind):
        assert_allclose(edges_of(kind(max_bins=3)), CELLS)

    def test_edges_move_to_the_nearest_of_cells(self):
        """From 11/3 and 19/3 to 3 and 5; the ends stay."""
        assert_allclose(edges_of(rs.EqualWidthBins(3)), [1, 3, 5, 9])
        # From 5 to itself, and two that move to one edge are one.
        assert_allclose(edges_of(rs.EqualWidthBins(2)), [1, 5, 9])
        assert_allclose(edges_of(rs.EqualWidthBins(8)), [1, 2, 3, 5, 9])
        assert_allclose(edges_of(rs.EqualWidthBins(1)), [1, 9])

    def test_given_edges_among_the_cells(self):
        assert_allclose(edges_of(rs.GivenBins([1, 3, 9])), [1, 3, 9])
        # Up to rounding, relative to the range of the cells; beyond them, no matter how far.
        assert_allclose(edges_of(rs.GivenBins([0, 2 + 1e-9, 5 - 1e-9, 20])), [1, 2, 5, 9])
        assert_allclose(edges_of(rs.GivenBins([1 + 1e-9, 5, 9 - 1e-9])), [1, 5, 9])
        assert edges_of(rs.GivenBins([0, 2 + 1e-9, 20]))[1] == 2
        assert edges_of(rs.GivenBins([1 + 1e-9, 9])).tolist() == [1, 9]

    def test_other_given_edges_are_refused(self):
        for edges, at, nearest in [
            ([1, 2, 4.5, 9], "4.5", "5"),
            ([1, 2 + 1e-7, 9], "2", "2"),
            ([1, 2 - 1e-7, 9], "2", "2"),
            ([1, 2.9, 8.5, 9], "2.9", "3"),
            ([2, 5, 9], "2", "2"),
            ([1, 5, 5.5], "5.5", "5"),
            ([1 + 1e-7, 5, 9], "1", "1"),
            # The tolerance is 1e-9 of the range, which is 8 here.
            ([1, 2 + 8.5e-9, 9], "2", "2"),
            ([1 + 8.5e-9, 5, 9], "1", "1"),
        ]:
            text = f"{at} is none of these 5 edges, and the nearest is {nearest}[.] Take"
            with pytest.raises(ValueError, match=f"of feature 'speed' were taken; {text}"):
                edges_of(rs.GivenBins(edges))
        for edges in ([1, 2 + 7.5e-9, 9], [1 + 7.5e-9, 9], [1, 9 - 7.5e-9]):
            assert edges_of(rs.GivenBins(edges))[0] == 1

    def test_edges_that_end_inside_are_refused(self):
        with pytest.raises(ValueError, match="edges must be among those of the cells"):
            edges_of(rs.GivenBins([1, 5]))

    def test_rules_of_ones_own_return_an_axis(self):
        class Own:
            def cells(self, column):
                return column.x

        with pytest.raises(TypeError, match="returns an axis .* that of Own returned"):
            cells_of(Own(), column())


def moments(n_problems=3, n_cells=12, n=20, seed=1):
    """Cells with a step in the middle, other noise in every problem, and a line in the second."""
    rng = np.random.default_rng(seed)
    g = (
        rng.normal(size=(n_problems, n_cells, n))
        + 8.0 * (np.arange(n_cells) >= n_cells // 2)[:, None]
    )
    x = (np.arange(n_cells)[:, None] + rng.uniform(size=(n_problems, n_cells, n))) / n_cells
    g[1] += 60 * x[1]
    mean, x_mean = g.mean(axis=-1), x.mean(axis=-1)
    away, off = x - x_mean[..., None], g - mean[..., None]
    rows = np.full(mean.shape, float(n))
    lines = (away**2).sum(-1), (away * off).sum(-1)
    return Moments(rows, rows, rows, mean, (off**2).sum(-1), x_mean, *lines)


class TestStarts:
    """Bins of many problems at once are those of each alone."""

    facts = {  # noqa: RUF012
        "name": "x", "resolution": 0.0, "gaps": None, "equal": True, "edges": np.linspace(0, 1, 13)
    }  # fmt: skip

    @pytest.mark.parametrize("kind", [rs.EqualWidthBins, rs.QuantileBins])
    def test_every_cell_is_a_bin(self, kind):
        starts, linear = starts_of(kind(12), moments(), **self.facts)
        assert starts.shape == (3, 12)
        assert starts.all()
        assert linear is None

    @pytest.mark.parametrize("low", [0.0, 5.0])
    def test_those_of_each_problem(self, low):
        rules = [
            rs.OptimalBins(max_bins=12, min_obs=20),
            rs.AdaptiveBins(max_bins=12, refine=False),
            rs.AdaptiveBins(max_bins=12, degree=0, refine=False),
            rs.GreedyBins(max_bins=12),
        ]
        unequal = np.concatenate([np.linspace(0, 0.2, 12), [1.0]]) + low
        for rule in rules:
            for edges in (None, unequal):
                self.check(rule, low, edges)

    def check(self, rule, low, edges):
        cells = moments()
        lines = getattr(rule, "degree", 0) == 1
        at = np.linspace(low, low + 1, 13) if edges is None else edges
        facts = self.facts | {"edges": at, "equal": edges is None}
        starts, linear = starts_of(rule, cells, **facts)
        assert (linear is not None) == lines
        for number in range(3):
            one = Moments(*(part[number] for part in cells))
            alone = Candidates("x", one, low, low + 1.0, 0.0, edges)
            (partition,) = rule.choose([alone])
            assert np.flatnonzero(starts[number]).tolist() == partition.starts.tolist()
            if lines:
                found = linear[number]
                assert found[partition.starts].tolist() == partition.linear.tolist()
                assert found.sum() == partition.linear.sum()
                assert found.any() == (number == 1)

    def test_resolution_and_widths_count_where_all_is_alike(self):
        """Differences below the numerical error make no bins."""
        cells = moments()
        facts = self.facts | {"resolution": 100.0}
        starts, _ = starts_of(rs.OptimalBins(max_bins=12, min_obs=20), cells, **facts)
        assert (starts.sum(axis=1) == 1).all()


RULES = [
    rs.AdaptiveBins(),
    rs.AdaptiveBins(max_bins=30, degree=0, penalty=3.5, min_obs=25, refine=False),
    rs.BestEqualWidthBins(max_bins=7, min_obs=4, discount=0.0),
    rs.EqualWidthBins(3),
    rs.GreedyBins(factor=1.5, ddof=0),
    rs.OptimalBins(),
    rs.OptimalBins(min_obs=30),
    rs.QuantileBins(5),
]


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_a_rule_from_its_text_is_the_rule(rule):
    assert rule_of(*describe(rule)) == rule


def test_given_bins_cannot_be_applied_again():
    with pytest.raises(ValueError, match="bins must be of a rule that can be applied again"):
        rule_of(*describe(rs.GivenBins([0, 1])))
    name, text = describe(rs.GivenBins({"a": [0, 0.123456789], "b": [1, 2, 3]}))
    assert (name, text) == ("GivenBins", "edges={a: [0, 0.123457], b: [1, 2, 3]}")


def test_rules_of_ours():
    class Own(rs.EqualWidthBins):
        pass

    assert is_ours(rs.GivenBins([0, 1]))
    assert is_ours(rs.AdaptiveBins())
    assert not is_ours(Own(2))
    assert isinstance(Own(2), BinRule)


def test_rows_that_count_for_a_share_need_fewer():
    rule = rs.GreedyBins(min_obs=10, factor=1.5)
    assert for_share_of_rows(rule, 0.36) == rs.GreedyBins(min_obs=4, factor=1.5)
    assert for_share_of_rows(rule, 0.01) == rs.GreedyBins(min_obs=1, factor=1.5)
    for other in (rs.EqualWidthBins(3), rs.OptimalBins()):
        assert for_share_of_rows(other, 0.1) is other
