"""Rules that do not look at the local effects: edges given as numbers or as results."""

import numpy as np
import pytest
import xarray as xr

import rhale_stats as rs
from rhale_stats.bins.rule import Column

COLUMN = Column("speed", np.array([1.0, 2.0, 4.0, 7.0, 9.0]), 1.0, 9.0, None)


class TestEdgesOfEffects:
    """Edges, and cells of curves, of the features of a result."""

    nan = np.nan
    effect = xr.Dataset(
        coords={
            "feature": ["a", "b", "c"],
            "edge_value": (("edge", "feature"), [[0, 1, 5], [1, 2, nan], [4, nan, nan]]),
        }
    )

    def test_unknown_edges_are_left_out(self):
        rule = rs.GivenBins(self.effect)
        assert rule.edges == {"a": (0, 1, 4), "b": (1, 2)}
        assert rule.cells_of("a") is None

    def test_cells_of_the_result_or_those_given(self):
        known = self.effect.assign_coords(
            cell_value=(("feature", "cell"), [[0, 2, 4], [1, 2, np.nan], [5, np.nan, np.nan]])
        )
        rule = rs.GivenBins(known)
        assert rule.cells_of("a").tolist() == [0, 2, 4]
        assert rule.cells_of("b").tolist() == [1, 2]
        assert rule.cells_of("c") is None
        assert rs.GivenBins(known, [0, 3, 4]).cells_of("c").tolist() == [0, 3, 4]
        assert rs.GivenBins(known, {"b": [0, 3]}).cells_of("a") is None

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
