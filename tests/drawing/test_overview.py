"""Pictures of an explanation draw its numbers."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

import rhale_stats as rs
from rhale_stats.drawing import legend
from tests.explanation.explained import explained as explained
from tests.helpers import labelled


def points(panel):
    (line,) = (one for one in panel.lines if one.get_marker() == "o")
    return line.get_data()


def test_points_are_the_sizes(explained):
    panel = rs.plots.summary(explained)
    x, y = points(panel)
    np.testing.assert_array_equal(x, explained.answers["importance"])
    np.testing.assert_array_equal(y, explained.answers["row_spread"])
    delta = explained.attrs["delta"]
    grey = [line for line in panel.lines if line.get_gid() == legend.OURS]
    assert next(np.unique(line.get_xdata())[0] for line in grey) == delta
    names = {text.get_text() for text in panel.texts}
    assert {"The line", "turned"} <= names


def test_intervals_are_those_of_the_answers(explained):
    panel = rs.plots.summary(explained)
    across, along = (one.get_segments() for one in panel.collections[:2])
    ends = np.array([[start[0], end[0]] for start, end in across])
    np.testing.assert_allclose(ends, explained.answers["importance_ci"])
    ends = np.array([[start[1], end[1]] for start, end in along])
    np.testing.assert_allclose(ends, explained.answers["row_spread_ci"])


def test_names_cover_neither_each_other_nor_points():
    X = np.random.default_rng(0).normal(size=(200, 30))
    found = rs.explain(lambda X: X @ np.linspace(1, 1.2, 30), X, rng=0, progress=False)
    panel = rs.plots.summary(found)
    panel.figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in panel.texts[1:]]
    assert 1 <= len(boxes) <= 14
    assert not any(one.overlaps(two) for k, one in enumerate(boxes) for two in boxes[:k])


def test_a_given_panel_is_drawn_in(explained):
    _, panel = plt.subplots()
    assert rs.plots.summary(explained, panel) is panel
    _, panel = plt.figure().subfigures(1, 2)[1].subplots(1, 2)
    assert rs.plots.summary(explained, panel) is panel


def test_observed_and_predicted(explained):
    panels = rs.plots.outcome(explained, ["line", "city"])
    assert [panel.get_title() for panel in panels] == ["The line", "city"]
    own = explained["outcome"].to_dataset().sel(feature="line")
    known = np.isfinite(own["place_left"])
    line = labelled(panels[0], legend.PREDICTED)
    np.testing.assert_array_equal(line.get_ydata(), own["predicted"][known])
    dots = labelled(panels[0], legend.OBSERVED)
    np.testing.assert_array_equal(dots.lines[0].get_ydata(), own["observed"][known])
    ends = np.array([segment[:, 1] for segment in dots.lines[2][0].get_segments()])
    width = np.ptp(own["residual_ci"].transpose("place", "ci_bound").values, axis=1)[known]
    np.testing.assert_allclose(np.diff(ends)[:, 0], width)
    assert [tick.get_text() for tick in panels[1].get_xticklabels()] == ["a", "b", "c"]
    assert panels[0].get_ylabel() == "weight [kg]"


def test_all_features_by_default(explained):
    assert len(rs.plots.outcome(explained)) == 6


@pytest.mark.parametrize("function", [rs.plots.summary, rs.plots.outcome])
def test_other_trees_are_refused(function, explained):
    with pytest.raises(ValueError, match="tree must be what explain"):
        function(xr.DataTree())
    with pytest.raises(TypeError, match="tree must be the DataTree"):
        function(explained["effect"].to_dataset())


def test_without_outcomes_there_is_nothing_to_observe(explained):
    found = rs.Explanation.from_dict(
        {node.path: node.to_dataset() for node in explained.subtree if node.name != "outcome"}
    )
    with pytest.raises(ValueError, match="tree must hold outcomes"):
        rs.plots.outcome(found)
    with pytest.raises(KeyError, match="nothing"):
        rs.plots.outcome(explained, "nothing")
    with pytest.raises(ValueError, match="at least one feature"):
        rs.plots.outcome(explained, [])
