"""Rules that do not look at the local effects: edges given as numbers or as results."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import rhale_stats as rs
from rhale_stats.bins.rule import Column

COLUMN = Column("speed", np.array([1.0, 2.0, 4.0, 7.0, 9.0]), 1.0, 9.0, None)


class TestEdgesOfEffects:
    """Edges, and cells of curves, of the features of a result."""

    local = rs.local_effects(
        lambda X: X[:, 0] ** 2 + X[:, 1],
        np.column_stack([np.linspace(0, 5, 200), np.linspace(1, 2, 200), np.ones(200)]),
    )
    effect = rs.rhale(local, bins=rs.GivenBins({"x0": [0, 1, 5], "x1": [1, 2], "x2": [0, 2]}))

    def test_unknown_edges_are_left_out(self):
        by_rows = rs.rhale(self.local, bins=rs.GivenBins(self.effect), weighting="rows")
        rule = rs.GivenBins(by_rows)
        assert rule.edges == {"x0": (0, 1, 5), "x1": (1, 2)}
        assert rule.cells_of("x0") is None

    def test_cells_of_the_result_or_those_given(self):
        rule = rs.GivenBins(self.effect)
        assert_array_equal(rule.cells_of("x0"), self.effect["edge_value"][0].dropna("edge"))
        assert len(rule.cells_of("x0")) > 10
        assert rule.cells_of("x2") is None
        assert rs.GivenBins(self.effect, [0, 3, 4]).cells_of("x2").tolist() == [0, 3, 4]
        assert rs.GivenBins(self.effect, {"x1": [0, 3]}).cells_of("x0") is None

    @pytest.mark.parametrize("lacks", ["edge_value", "feature"])
    def test_results_without_bins_of_features_are_refused(self, lacks):
        other = self.effect.drop_vars("edge_value") if lacks == "edge_value" else None
        other = self.effect.isel(feature=0) if other is None else other
        with pytest.raises(ValueError, match="a Dataset without bins of its features"):
            rs.GivenBins(other)


def test_given_edges_reach_over_all_rows_and_may_end_at_them():
    rule = rs.GivenBins([1, 2, 9])
    assert np.asarray(rule.cells(COLUMN).edges).tolist() == [1, 2, 9]
    with pytest.raises(ValueError, match=r"cover \[2, 9\] and 1 of 5 rows lie outside"):
        rs.GivenBins([2, 9]).cells(COLUMN)
    with pytest.raises(ValueError, match=r"cover \[2, 8\] and 2 of 5 rows lie outside"):
        rs.GivenBins([2, 8]).cells(COLUMN)
