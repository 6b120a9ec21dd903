"""`plot`: a picture of every kind of result, and of several results."""

import warnings
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import seaborn as sns
import statsmodels.formula.api as smf
from matplotlib.axes import Axes
from matplotlib.text import Text

import rhale_stats as rs
from rhale_stats.drawing.frame import STYLE

N = 200


LONG, AREA = "neighbourhood_of_the_property", "living_area_in_m2"


@pytest.fixture(scope="module")
def regions():
    """Local effects and a tree whose rules are long."""
    rng = np.random.default_rng(0)
    places = rng.choice(["Old town", "Harbour", "Riverside", "North hill"], 800)
    X = pd.DataFrame({"x": rng.uniform(-1, 1, 800), AREA: rng.uniform(30, 300, 800), LONG: places})

    def model(X):
        slope = np.where(X[AREA] > 150, 3, -1) * np.where(
            X[LONG].isin(["Harbour", "Old town"]), 2, 1
        )
        return (X["x"] * slope).to_numpy()

    local = rs.local_effects(model, X, features=["x"])
    return local, rs.regions(local, "x", conditioning=X)


@pytest.fixture(scope="module")
def results():
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(N, 3)), columns=list("abc"))

    def model(rows):
        return (rows["a"] * rows["b"] + rows["c"] ** 2).to_numpy()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        local = rs.local_effects(model, X)
        effect = rs.std_error(rs.rhale(local))
        fitted = smf.ols("y ~ a * b + c", X.assign(y=model(X) + rng.normal(size=N))).fit()

        def two(rows):
            return np.column_stack([model(rows), rows["a"]])

        return {
            "X": X,
            "local": local,
            "effect": effect,
            "profile": rs.pdp(model, X, n_grid=20),
            "curves": rs.ice(model, X, n_grid=20),
            "ale": rs.ale(model, X, bins=20),
            "outputs": rs.ale(two, X, bins=5),
            "test": rs.wald_test(effect),
            "comparison": rs.compare(effect, rs.rhale(model, X.iloc[::2]), rng=0),
            "averages": rs.averages(fitted, X),
            "boot": rs.bootstrap(local, effect, n_resamples=20, rng=0),
        }


KINDS = ("local", "effect", "profile", "curves", "ale", "outputs", "test", "comparison")


@pytest.mark.parametrize("name", [*KINDS, "averages", "boot"])
def test_every_kind_has_a_picture(results, name):
    panels = np.ravel(rs.plot(results[name]))
    assert all(isinstance(panel, Axes) for panel in panels)
    assert any(panel.lines or panel.collections for panel in panels)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["effect", "profile", "curves", "ale", "local"])
def test_some_features_and_one(results, name):
    panels = rs.plot(results[name], ["c", "a"])
    assert len(panels) == 2
    assert rs.plot(results[name], "c") is not None
    assert len(rs.plot(results[name], features=["c", "a", "b"])) == 3
    assert rs.plot(results[name], feature="a") is not None


def test_several_results_are_lines_of_panels(results):
    some = [results[name] for name in ("profile", "curves", "ale")]
    panels = rs.plot(some, ["a", "c"])
    assert panels.shape == (3, 2)
    assert [panel.get_ylabel() for panel in panels[:, 0]] == ["PDP", "ICE", "ALE"]
    assert [panel.get_xlabel() for panel in panels[0]] == ["a", "c"]
    # A line has one scale, and the picture one legend.
    for line in panels:
        assert line[0].get_ylim() == line[1].get_ylim()
    assert len(panels[0, 0].figure.legends) == 1
    drawn = max((line for line in panels[0, 1].lines), key=lambda line: len(line.get_xdata()))
    np.testing.assert_allclose(drawn.get_ydata(), results["profile"]["curve"].sel(feature="c"))
    assert rs.plot(tuple(some)).shape == (3, 3)
    with pytest.raises(KeyError, match="nothing"):
        rs.plot(some, "nothing")
    with pytest.raises(TypeError, match="effects and profiles of one output"):
        rs.plot([results["effect"], results["test"]])


def test_names_of_results_are_curves_in_the_same_panels(results):
    panels = rs.plot({"PDP": results["profile"], "ALE": results["ale"]})
    assert [panel.get_title() for panel in panels] == ["a", "b", "c"]
    texts = [text.get_text() for text in panels[0].figure.legends[0].get_texts()]
    assert texts[:2] == ["PDP", "ALE"]


def test_one_axes_holds_all_panels(results):
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4))
    panels = rs.plot(results["effect"], ax=right)
    assert len(panels) == 3
    outer = right.get_position()
    for panel in panels:
        inner = panel.get_position()
        assert inner.x0 >= outer.x0 - 1e-9
        assert inner.x1 <= outer.x1 + 1e-9
    assert not right.axison
    assert left.axison
    free = figure.add_axes((0.1, 0.1, 0.3, 0.3))
    assert len(rs.plot(results["profile"], ax=free)) == 3
    assert len(rs.plot(results["comparison"], ax=plt.figure().add_subplot())) == 3


@pytest.mark.parametrize(
    ("name", "percentiles"), [("effect", (0.1, 0.9)), ("profile", (10, 90)), ("ale", (0.1, 0.9))]
)
def test_axes_reach_between_percentiles(results, name, percentiles):
    x = results["X"]["c"]
    panels = rs.plot(results[name], list("abc"), percentiles=percentiles)
    low, high = panels[2].get_xlim()
    np.testing.assert_allclose([low, high], np.quantile(x, [0.1, 0.9]), atol=0.2)
    assert panels[2].get_xlim() != rs.plot(results[name], list("abc"))[2].get_xlim()
    for panel in np.ravel(rs.plot(results[name], "c", percentiles=percentiles)):
        np.testing.assert_allclose(panel.get_xlim(), [low, high])
    lines = rs.plot([results[name]], "c", percentiles=percentiles)
    np.testing.assert_allclose(lines[0, 0].get_xlim(), [low, high])
    names = list("abc")
    several = rs.plots.effects(results[name], names, percentiles=percentiles)
    for panel in (rs.plots.effect(results[name], "c", percentiles=percentiles)[0], several[2]):
        np.testing.assert_allclose(panel.get_xlim(), [low, high])


def test_percentiles_of_several_models_are_refused(results):
    models = rs.over_models(lambda slope, X: slope * X["c"], results["X"], draws=[1.0, 2.0])
    for draw in (rs.plots.effects, rs.plots.effect):
        with pytest.raises(ValueError, match="percentiles must be left out"):
            draw(models, "c", percentiles=(5, 95))


def test_curves_are_coloured_by_another_feature(results):
    panel = rs.plot(results["curves"], "a", hue="b")
    assert any(axes.get_ylabel() == "b" for axes in panel.figure.axes)
    with pytest.raises(TypeError, match=r"Pass the column: hue=X\['z'\]"):
        rs.plot(results["curves"], "a", hue="z")


def test_what_has_no_picture(results):
    with pytest.raises(ValueError, match="features must be one feature"):
        rs.plot(results["comparison"], ["a", "b"])
    with pytest.raises(ValueError, match="features must be left out"):
        rs.plot(results["averages"], "a")
    with pytest.raises(ValueError, match="percentiles must be left out"):
        rs.plot(results["boot"], percentiles=(0.05, 0.95))
    with pytest.raises(TypeError, match="or a list of such results"):
        rs.plot(3)


def test_results_without_estimates_to_draw_say_what_to_do(results):
    with pytest.raises(ValueError, match=r"'size' to be drawn.*tidy\(result\)"):
        rs.plot(rs.equivalence_test(results["effect"], delta=1.0))


def test_the_style_is_that_of_seaborn():
    """But for the colours of images, which every picture names."""
    expected = {**sns.axes_style("ticks"), **sns.plotting_context("paper")}
    assert set(STYLE) == set(expected)
    assert {name for name in expected if STYLE[name] != expected[name]} == {"image.cmap"}


@pytest.mark.parametrize(("scale", "shift"), [(1e5, 0.0), (1e-4, 0.0), (1e3, 1e6), (1.0, 2000.0)])
def test_numbers_of_ticks_do_not_touch(scale, shift):
    x = shift + scale * np.random.default_rng(0).lognormal(size=(300, 7))
    effect = rs.rhale(lambda X: (X - shift).sum(axis=1) / scale, x)
    assert_ticks_are_apart(rs.plot(effect))


def assert_ticks_are_apart(panels):
    panels[0].figure.draw_without_rendering()
    for panel in panels:
        low, high = panel.get_xlim()
        boxes = [
            tick.label1.get_window_extent()
            for tick in panel.xaxis.get_major_ticks()
            if low <= tick.get_loc() <= high
        ]
        assert len(boxes) >= 2
        assert all(a.x1 + 1 < b.x0 for a, b in pairwise(boxes))


def test_numbers_do_not_touch_where_a_text_stands_beside_the_panel():
    X = pd.DataFrame(np.random.default_rng(0).uniform(0, 1, (300, 2)), columns=[LONG, AREA])
    found = rs.explain(lambda X: 3e5 * X[LONG] * (2 * X[AREA] - 0.5), X, rng=0, progress=False)
    assert_ticks_are_apart([found.plot()])


def assert_legend_fits(panels):
    figure = panels[0].figure
    figure.draw_without_rendering()
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.width
    assert all(panel.get_window_extent().y1 < box.y0 for panel in panels)
    return [text.get_text() for text in legend.get_texts()]


def test_legends_are_no_wider_than_the_figure(regions):
    local, tree = regions
    texts = assert_legend_fits(rs.plot(rs.regional_rhale(local, tree)))
    assert len(texts) == 5
    assert all("\nneighbourhood_of_the_property" in text for text in texts[:4])
    many = {f"{LONG} = {k}": rs.pdp(lambda X: X[:, 0], np.eye(9)[:, :2]) for k in range(6)}
    assert len(assert_legend_fits(rs.plot(many))) == 7


@pytest.mark.parametrize("columns", ["xk", "kx"])
def test_the_legend_has_the_marks_of_curves_and_of_levels(columns):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=200), "k": rng.choice(list("ab"), 200)})[[*columns]]
    profile = rs.pdp(lambda X: X["x"] * (X["k"] == "a") + (X["k"] == "a"), X)
    texts = assert_legend_fits(rs.plot(profile, list(columns)))
    names = {"± spread", "partial dependence", "± standard error"}
    assert set(texts) == names | {f"{name}, of levels" for name in names}


def test_legends_say_which_interval_is_drawn(results, regions):
    local, tree = regions
    effect = rs.confint(results["ale"], level=0.9)
    for result in (results["outputs"], {"a": effect, "b": effect}, rs.regional_rhale(local, tree)):
        level = 90 if isinstance(result, dict) else 95
        *_, last = assert_legend_fits(rs.plot(result))
        assert " ".join(last.split()) == f"{level} % interval, pointwise, model as given"


def test_names_are_broken_at_their_parts(regions):
    local, tree = regions
    titles = [panel.get_title() for panel in rs.plots.regions(tree, rs.regional_rhale(local, tree))]
    boxes = rs.plot(tree).findobj(Text)
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(80, 3)), columns=[LONG, AREA, 2 * LONG])
    titles += [panel.get_title() for panel in rs.plot(rs.ale(lambda X: X.sum(axis=1), X))]
    found = [text for text in [*titles, *(box.get_text() for box in boxes)] if "neigh" in text]
    assert len(found) > 6
    assert all("neighbourhood_of_the_\nproperty" in text for text in found)
    # Names that are too long for a line are cut.
    panel = rs.plots.summary(rs.explain(lambda X: X.sum(axis=1), X, rng=0, progress=False))
    assert any("neighbourhood_o…" in tick.get_text() for tick in panel.get_yticklabels())
