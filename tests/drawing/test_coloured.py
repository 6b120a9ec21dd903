"""Rows coloured by another column."""

import numpy as np
import pandas as pd
import pytest

import rhale_stats as rs
from rhale_stats.drawing.rows import MISSING_COLOUR, coloured


def profile(kind=rs.ice, **options):
    X = np.random.default_rng(0).uniform(-1, 1, (60, 2))
    return X, kind(lambda X: X[:, 0] * X[:, 1], X, features=[0], progress=False, **options)


def test_numbers_are_shades_in_their_order():
    found = coloured(pd.Series([0.0, 5, 10, 2, 7, np.nan], name="age"), 6)
    grey = found.colours[:5, :3] @ [0.299, 0.587, 0.114]
    assert np.argsort(grey).tolist() == [0, 3, 1, 4, 2]
    assert found.ends == (0, 10)
    assert tuple(found.colours[5]) == MISSING_COLOUR


def test_few_levels_have_a_colour_each_and_rare_ones_share_one():
    found = coloured(["a", "b", "a", "c", "d", "e", "a", "b", "c"], 9)
    assert list(found.levels) == ["a", "b", "c", "others"]
    assert tuple(found.colours[4]) == tuple(found.colours[5]) == MISSING_COLOUR
    assert coloured([True, False], 2).levels.keys() == {"True", "False"}


def test_curves_have_the_colours_of_their_rows():
    X, ice = profile()
    panel = rs.plots.profile(ice, "x0", hue=pd.Series(X[:, 1], name="x1"))
    (lines,) = (one for one in panel.collections if len(one.get_segments()) == 60)
    np.testing.assert_allclose(lines.get_colors()[:, :3], coloured(X[:, 1], 60).colours[:, :3])
    scale = panel.figure.axes[1]
    assert scale.get_ylabel() == "x1"
    panel = rs.plots.profile(
        ice, "x0", hue=pd.Series(np.where(X[:, 1] > 0, "men", "women"), name="s")
    )
    texts = [text.get_text() for text in panel.get_legend().get_texts()]
    assert {"s: men", "s: women"} <= set(texts)
    assert "± spread" not in texts


def test_points_of_shapley_values_have_colours():
    X, found = profile(rs.shap_dependence, background=5, rng=0)
    panel = rs.plots.profile(found, "x0", hue=X[:, 1])
    (points,) = (one for one in panel.collections if len(one.get_offsets()) == 60)
    assert len(np.unique(points.get_facecolors(), axis=0)) > 30


def test_what_cannot_be_coloured():
    X, ice = profile()
    with pytest.raises(ValueError, match="hue must have one value for each of the 60 rows"):
        rs.plots.profile(ice, "x0", hue=X[:5, 1])
    pdp = rs.pdp(lambda X: X[:, 0], X)
    with pytest.raises(ValueError, match="hue colours ICE curves and Shapley values"):
        rs.plots.profile(pdp, "x0", hue=X[:, 1])
