"""Curves by colours and panels: which curve is where, and bad input."""

from __future__ import annotations

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import rhale_stats as rs

RNG = np.random.default_rng(4)
X = pd.DataFrame(
    {
        "dose": RNG.gamma(2, 3, 400),
        "age": RNG.uniform(20, 80, 400),
        "k": RNG.choice(list("abc"), 400),
    }
)
X.attrs = {"units": {"dose": "mg"}, "labels": {"age": "age at entry"}}


def model(X):
    return (X["dose"] * (X["age"] - 50) / 60 + X["k"].map({"a": 0, "b": 1, "c": 3})).to_numpy()


def line_of(panel, label):
    (found,) = [one for one in panel.lines if one.get_label() == label]
    return found.get_xdata(), found.get_ydata()


@pytest.mark.thorough
def test_curves_of_two_results_in_colours():
    young = X["age"] < 50
    by = {"young": rs.ale(model, X[young]), "old": rs.ale(model, X[~young])}
    panels = rs.plots.curves(by)
    assert [panel.get_title() for panel in panels] == ["dose", "age at entry", "k"]
    assert panels[0].get_xlabel() == "dose [mg]"
    for name, effect in by.items():
        x, y = line_of(panels[0], name)
        assert_allclose(y, rs.predict(effect, x, "dose"), rtol=1e-9, atol=1e-9)
        marks = line_of(panels[2], name)[1]
        assert_allclose(marks, effect["curve"].sel(feature="k").values[: len(marks)])
    texts = [text.get_text() for text in panels[0].figure.legends[0].get_texts()]
    assert texts[:2] == ["young", "old"]


def test_dimensions_of_one_result():
    def outputs(X):
        return np.column_stack([model(X) * (j + 1) for j in range(5)])

    effect = rs.ale(outputs, X, features=["dose", "age"])
    panels = rs.plots.curves(effect)
    assert len(panels) == 2
    # More than four have their names at the ends of the lines.
    (legend,) = panels[0].figure.legends
    assert len(legend.get_texts()) == 1
    names = [t for t in panels[-1].texts if t.get_text() in "01234"]
    assert len(names) == 5
    low = sorted(float(one.xy[1]) for one in names)
    assert min(np.diff(low)) >= 0.069 * np.ptp(panels[-1].get_ylim())
    one = rs.plots.curves(effect, "dose", col="output", n_columns=2)
    assert [panel.get_title() for panel in one] == list("01234")
    both = rs.plots.curves(effect, row="output", col="feature", intervals=False)
    assert len(both) == 10
    assert not [band for panel in both for band in panel.collections if len(band.get_paths())
                and np.isfinite(band.get_paths()[0].vertices).all()]  # fmt: skip


def test_profiles_beside_effects_and_a_reference():
    by = {"ALE": rs.ale(model, X), "PDP": rs.pdp(model, X)}
    panels = rs.plots.curves(by, "dose", reference={"dose": 5.0})
    for name in by:
        x, y = line_of(panels[0], name)
        assert np.interp(5.0, x, y) == pytest.approx(0, abs=1e-9)
    assert panels[0].get_xlabel() == "dose [mg], relative to 5"


def test_bad_input():
    effect = rs.ale(model, X)
    with pytest.raises(ValueError, match="'feature' is named twice"):
        rs.plots.curves(effect, hue="feature", col="feature")
    with pytest.raises(ValueError, match="hue must be one of"):
        rs.plots.curves(effect, hue="dose")
    with pytest.raises(TypeError, match=r"reference must be a mapping of features to values"):
        rs.plots.curves(effect, reference=3)
    with pytest.raises(ValueError, match="effects must hold at least one result"):
        rs.plots.curves({})
    with pytest.raises(ValueError, match="hue must have at most 10 entries"):
        rs.plots.curves({str(k): effect for k in range(11)})
    with pytest.raises(KeyError, match="unknown"):
        rs.plots.curves(effect, reference={"unknown": 3})
    outputs = rs.ale(lambda X: np.column_stack([model(X)] * 2), X)
    with pytest.raises(ValueError, match="'output' is left"):
        rs.plots.curves({"a": outputs, "b": outputs})


def test_a_feature_is_an_axis_or_has_levels():
    numbers = X.assign(k=X["k"].map({"a": 0.0, "b": 1.0, "c": 2.0}))
    of_levels = rs.ale(model, X, features="k")
    of_axis = rs.rhale(rs.local_effects(lambda X: X["k"] ** 2 + X["dose"], numbers, features="k"))
    with pytest.raises(ValueError, match="'k' has both"):
        rs.plots.curves({"a": of_levels, "b": of_axis})


@pytest.mark.thorough
def test_names_of_columns_are_text():
    strange = X.rename(columns={"dose": "cost [$] x_1"})
    effect = rs.rhale(rs.local_effects(lambda X: X.iloc[:, 0] ** 2, strange, features=[0, 1]))
    with mpl.rc_context({"text.usetex": False}):
        panels = rs.plots.curves(effect)
        panels[0].figure.draw_without_rendering()
    assert panels[0].get_title() == "cost [$] x_1"


def test_by_another_column():
    """Each part of the rows has an effect of its own; numbers are cut at their median."""
    from rhale_stats.effects.rhale import quiet_rhale

    local = rs.local_effects(model, X, features=["dose"], method="finite_difference")
    (panel,) = rs.plots.curves(local, by=X["k"])
    names = [line.get_label() for line in panel.lines if not line.get_label().startswith("_")]
    assert names == ["k = a", "k = b", "k = c"]
    for level in "abc":
        own = quiet_rhale(local.isel(obs=np.flatnonzero(X["k"] == level)))
        x, y = line_of(panel, f"k = {level}")
        assert_allclose(y, rs.predict(own, x, "dose"), rtol=1e-9, atol=1e-9)
    # A Series goes by its labels.
    mixed = X["age"].sample(frac=1, random_state=0)
    (halves,) = rs.plots.curves(local, by=mixed)
    texts = [text.get_text() for text in halves.figure.legends[0].get_texts()]
    assert [text[:5] for text in texts[:2]] == ["age ≤", "age >"]
    with pytest.raises(ValueError, match="by needs local effects"):
        rs.plots.curves(rs.rhale(local), by=X["k"])
    with pytest.raises(ValueError, match="by must have 2 to 10 levels"):
        rs.plots.curves(local, by=np.arange(400).astype(str))
    with pytest.raises(KeyError, match="by must be one of 'dose'"):
        rs.plots.curves(local, by="k")


def test_axes_of_ones_own():
    effect = rs.ale(model, X)
    axes = plt.subplots(1, 3, layout="constrained")[1]
    panels = rs.plots.curves(effect, ax=axes)
    assert list(panels) == list(axes)
    assert panels[0].get_ylabel() == "effect on output"
    alone = plt.figure().add_subplot()
    assert rs.plots.curves(effect, "dose", ax=alone)[0] is alone
    assert rs.plots.effects(effect, "dose", ax=alone)[0] is alone
    assert len(rs.plots.curves(effect, ax=alone)) == 3
    with pytest.raises(ValueError, match="ax must be 3 matplotlib Axes, one a panel; got 1"):
        rs.plots.curves(effect, ax=[alone])
