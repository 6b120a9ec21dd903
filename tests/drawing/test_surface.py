"""Pictures of surfaces and H-statistics: what they show, and whose Axes they take."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.patches import Rectangle

import rhale_stats as rs
from tests.helpers import as_of_a_file


@pytest.fixture
def frame(rng):
    n = 400
    out = pd.DataFrame(rng.normal(size=(n, 2)), columns=["u", "v"])
    out["v"] += 2 * out["u"]
    out["town"] = rng.choice(["N", "S_x$", "W"], n)
    out["flag"] = (out["town"] == "N") & (rng.random(n) < 0.4)
    out.attrs = {"units": {"u": "years"}, "output_name": "rent", "output_units": "EUR"}
    return out


def f(X):
    return X["u"] * X["v"] + X["u"] * (X["town"] == "N") + X["flag"] * (X["town"] == "W")


def test_surface_of_numbers(frame):
    surface = rs.ale2(f, frame, ("u", "v"), bins=rs.QuantileBins(6))
    panel = rs.plots.surface(surface, contour=True)
    assert panel.get_xlabel() == "u [years]"
    assert panel.get_ylabel() == "v"
    mesh = panel.collections[0]
    low, high = mesh.get_clim()
    assert -low == high == pytest.approx(float(np.abs(surface["surface"]).max()))
    hatched = [patch for patch in panel.patches if isinstance(patch, Rectangle)]
    assert len(hatched) == surface.attrs["n_empty"] > 0
    assert f"hatched: no rows ({len(hatched)} of 36 fields)" in panel.get_title()
    assert panel.get_xlim() == tuple(surface["edge_a"].values[[0, -1]])


@pytest.mark.thorough
def test_surface_of_levels(frame):
    surface = rs.ale2(f, frame, ("town", "flag"))
    panel = rs.plots.surface(surface)
    assert [text.get_text() for text in panel.get_xticklabels()] == ["N", "S_x$", "W"]
    assert [text.get_text() for text in panel.get_yticklabels()] == ["False", "True"]
    colours = panel.collections[0].get_array().reshape(2, 3)
    np.testing.assert_allclose(colours, surface["surface"].values.T)
    # No flag in two of the towns.
    assert len(panel.patches) == 2
    mixed = rs.plots.surface(rs.ale2(f, frame, ("u", "town")))
    assert mixed.get_ylim() == (-0.5, 2.5)


@pytest.mark.thorough
def test_rounding_is_white(frame):
    surface = rs.ale2(lambda X: X["u"] + X["v"], frame, ("u", "v"))
    _, high = rs.plots.surface(surface).collections[0].get_clim()
    assert high > 10 * float(np.abs(surface["surface"]).max())


def test_axes_of_the_user(frame):
    surface = rs.ale2(f, frame, ("u", "town"))
    _, own = plt.subplots()
    assert rs.plots.surface(surface, own) is own


def test_bad_surfaces(frame):
    surface = rs.ale2(f, frame, ("u", "town"))
    with pytest.raises(ValueError, match="contour must be False"):
        rs.plots.surface(surface, contour=True)
    with pytest.raises(TypeError, match="got int"):
        rs.plots.surface(3)
    with pytest.raises(ValueError, match="this one has"):
        rs.plots.surface(surface.drop_vars("surface"))
    both = rs.ale2(lambda X: np.column_stack([f(X), f(X)]), frame, ("u", "v"))
    with pytest.raises(ValueError, match="this one is of 2"):
        rs.plots.surface(both)
    assert rs.plots.surface(both.isel(output=1)).get_xlabel() == "u [years]"


@pytest.mark.parametrize("normalize", [True, False])
def test_h_statistics(frame, normalize):
    found = rs.h_statistic(f, frame, kind="ale", normalize=normalize)
    bars, pairs = rs.plots.h_statistics(found)
    stem = "h2" if normalize else "h"
    heights = [patch.get_width() for patch in bars.patches]
    np.testing.assert_allclose(heights, np.sort(found[f"{stem}_overall"])[::-1])
    names = [text.get_text() for text in bars.get_yticklabels()]
    assert names == [text.get_text() for text in pairs.get_yticklabels()]
    assert len([text for text in pairs.texts if text.get_text()]) == 6
    assert "400 of 400 rows" in pairs.get_title()
    assert ("share" if normalize else "EUR") in bars.get_xlabel()


def test_h_statistics_without_pairs_and_on_given_axes(frame):
    found = rs.h_statistic(f, frame, n_rows=30, pairwise=False, rng=0)
    assert len(rs.plots.h_statistics(found)) == 1
    with_pairs = rs.h_statistic(f, frame, n_rows=30, rng=0)
    _, own = plt.subplots(1, 2)
    assert list(rs.plots.h_statistics(with_pairs, own)) == list(own)
    with pytest.raises(ValueError, match="2 matplotlib Axes, bars, then pairs; got 1"):
        rs.plots.h_statistics(with_pairs, own[:1])
    with pytest.raises(ValueError, match="this one has no h2_overall"):
        rs.plots.h_statistics(as_of_a_file(found.drop_vars("h2_overall")))
    with pytest.raises(TypeError, match="got NoneType"):
        rs.plots.h_statistics(None)


def test_a_share_of_more_than_the_whole_is_drawn_so(rng):
    """users.md 5: 227 % on an axis that ends at 100."""
    X = rng.normal(size=(100, 3))
    X[:, 1] = 0.95 * X[:, 0] + 0.3 * X[:, 1]

    def model(X):
        return X[:, 0] * X[:, 1] - (X[:, 0] ** 2 + X[:, 1] ** 2) / 2 + 0.1 * X[:, 1] * X[:, 2]

    found = rs.h_statistic(model, X)
    assert float(found["h2_pairwise"][0, 1]) > 1.5
    bars, pairs = rs.plots.h_statistics(found)
    texts = [text.get_text() for text in pairs.texts]
    assert texts.count("> 100 %") == 1
    assert not any(text.startswith("2") and text.endswith("%") for text in texts)
    (colours,) = [panel for panel in bars.figure.axes if panel not in (bars, pairs)]
    assert colours.get_ylim() == (0.0, 1.0)
    assert pairs.collections[0].colorbar.extend == "max"
    assert "the joint effect varies less" in pairs.get_xlabel()
    assert bars.get_xlim()[1] <= 1.1
    above = int((found["h2_overall"] > 1).sum())
    assert [text.get_text() for text in bars.texts].count("> 100 %") == above
    small = rs.h_statistic(lambda X: X[:, 0] * X[:, 2] + X[:, 0], X)
    _, pairs = rs.plots.h_statistics(small)
    assert pairs.collections[0].colorbar.extend == "neither"
    assert pairs.get_xlabel() == ""
