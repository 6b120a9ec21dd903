"""Pictures of an explanation draw its numbers."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from sklearn.linear_model import LinearRegression

import rhale_stats as rs
from rhale_stats.drawing import estimates, frame
from tests.explanation.explained import explained as explained
from tests.helpers import labelled


@pytest.mark.thorough
def test_changes_are_those_of_the_answers(explained):
    """In their order, where hardly anything matters shaded, changes of the model by circles."""
    panel, answers = rs.plots.summary(explained), explained.answers
    changes = answers["usual_change"].fillna(answers["range"])
    marks = labelled(panel, estimates.IN_MODEL)
    np.testing.assert_array_equal(marks.get_xdata(), changes)
    assert marks.get_markerfacecolor() == "white"
    names = [tick.get_text().split("\n")[0] for tick in panel.get_yticklabels()]
    assert names == answers["label"].values.tolist()
    (grey,) = (patch for patch in panel.patches if patch.get_gid() == frame.OURS)
    assert grey.get_x() == -explained.attrs["delta"]
    beside = [text.get_text() for text in panel.texts]
    assert any(text.startswith("rows differ by ") for text in beside)
    segments = panel.collections[0].get_segments()
    known = np.isfinite(answers["usual_change_ci"]).all("ci_bound").values
    ends = np.array([[start[0], end[0]] for start, end in segments])
    np.testing.assert_allclose(ends[known], answers["usual_change_ci"].values[known])


@pytest.mark.thorough
def test_changes_in_the_data_have_the_intervals(rng):
    X = pd.DataFrame(rng.normal(size=(300, 2)), columns=["a", "b"])
    X.attrs["units"] = {"a": "kg"}
    y = pd.Series(X["a"] + rng.normal(size=300), name="cost")
    found = rs.explain(LinearRegression().fit(X, y), X, y, rng=0, progress=False)
    panel, answers = rs.plots.summary(found), found.answers
    dots = labelled(panel, estimates.IN_DATA)
    np.testing.assert_array_equal(dots.get_xdata(), answers["in_data_change"])
    ends = np.array([[a[0], b[0]] for a, b in panel.collections[0].get_segments()])
    np.testing.assert_allclose(ends, answers["in_data_ci"])
    assert panel.get_xlabel() == "change of cost between the two values"


def test_many_features_are_named_below():
    X = np.random.default_rng(0).normal(size=(80, 30))
    found = rs.explain(lambda X: X @ np.linspace(1, 1.2, 30), X, rng=0, progress=False)
    panel = rs.plots.summary(found)
    assert len(panel.get_yticklabels()) == 20
    assert "(10 smaller ones are not drawn: " in panel.get_xlabel()


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
    line = labelled(panels[0], frame.PREDICTED)
    np.testing.assert_array_equal(line.get_ydata(), own["predicted"][known])
    dots = labelled(panels[0], frame.OBSERVED)
    np.testing.assert_array_equal(dots.lines[0].get_ydata(), own["observed"][known])
    ends = np.array([segment[:, 1] for segment in dots.lines[2][0].get_segments()])
    width = np.ptp(own["residual_ci"].transpose("place", "ci_bound").values, axis=1)[known]
    np.testing.assert_allclose(np.diff(ends)[:, 0], width)
    assert [tick.get_text() for tick in panels[1].get_xticklabels()] == ["a", "b", "c"]
    assert panels[0].get_ylabel() == "weight [kg]"


@pytest.mark.thorough
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
