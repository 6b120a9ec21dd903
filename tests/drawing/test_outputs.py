"""Panels of outputs, and rows without a value beside the axis."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import rhale_stats as rs


@pytest.fixture
def effect():
    X = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    local = rs.local_effects(lambda X: np.column_stack([X[:, 0] ** 2, X[:, 0] * X[:, 1]]), X)
    return rs.rhale(local, bins=rs.EqualWidthBins(6), weighting="rows")


@pytest.mark.thorough
def test_a_panel_an_output_on_one_scale(effect):
    panels = rs.plots.outputs(effect, "x0")
    assert [panel.get_title() for panel in panels] == ["output 0", "output 1"]
    assert panels[0].get_ylim() == panels[1].get_ylim()
    for number, panel in enumerate(panels):
        line = next(line for line in panel.lines if line.get_label().startswith("average effect"))
        one = effect.isel(output=number)
        x, curve = line.get_data()
        np.testing.assert_allclose(curve, rs.predict(one, x, "x0"), rtol=1e-12, atol=1e-12)
        assert set(one["edge_value"].sel(feature="x0").values) <= set(x)


def test_profiles_of_several_outputs():
    X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    profile = rs.ice(lambda X: np.column_stack([X[:, 0] ** 2, X[:, 0] * X[:, 1]]), X, n_grid=9)
    panels = rs.plots.outputs(profile, "x0", n_columns=1)
    assert [panel.get_title() for panel in panels] == ["output 0", "output 1"]
    assert panels[0].get_ylim() == panels[1].get_ylim()
    for number, panel in enumerate(panels):
        line = next(one for one in panel.lines if one.get_label() == "mean of the ICE curves")
        np.testing.assert_array_equal(
            line.get_ydata(), profile["curve"].isel(output=number).sel(feature="x0")
        )
    with pytest.raises(ValueError, match="effect must have the dimension output"):
        rs.plots.outputs(profile.isel(output=0), "x0")
    with pytest.raises(KeyError, match="feature must be one of 'x0', 'x1'"):
        rs.plots.outputs(profile, "x7")


def test_bad_input(effect):
    with pytest.raises(ValueError, match="effect must have the dimension output"):
        rs.plots.outputs(effect.isel(output=0), "x0")
    with pytest.raises(KeyError, match="feature must be one of 'x0', 'x1'"):
        rs.plots.outputs(effect, "x7")
    with pytest.raises(ValueError, match="one an output; got 1"):
        rs.plots.outputs(effect, "x0", ax=[plt.subplots()[1]])


def test_rows_without_a_value_stand_beside_the_axis():
    X = pd.DataFrame(np.random.default_rng(1).uniform(-1, 1, (500, 2)), columns=["a", "b"])
    X.loc[::4, "b"] = np.nan
    local = rs.local_effects(
        lambda X: X["a"] * X["b"].fillna(4.0) + X["b"].fillna(4.0), X, missing="bin"
    )
    effect = rs.rhale(local, bins=rs.EqualWidthBins(5))
    upper, *_ = rs.plots.effect(effect, "b", local)
    label = "rows without a value,\nwith their interval"
    (point,) = [line for line in upper.lines if line.get_label() == label]
    assert point.get_ydata() == effect["missing_curve"].sel(feature="b").item()
    assert upper.get_ylim()[1] > point.get_ydata()[0] > upper.get_ylim()[0]
    a, b = rs.plots.effects(effect, ["a", "b"])
    assert label not in [line.get_label() for line in a.lines]
    assert label in [line.get_label() for line in b.lines]
    assert a.get_ylim()[1] > effect["missing_curve"].max()
