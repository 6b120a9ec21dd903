"""One explanation of all outputs of a model, such as the classes of a classifier."""

import re

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from sklearn.linear_model import LogisticRegression

import rhale_stats as rs

CLASSES = ["high", "low/none", "middle"]
OPTIONS = {
    "progress": False,
    "rng": 0,
    "budget": None,
    "outcome": False,
    "features": ["a", "b"],
}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(250, 3)), columns=list("abc"))
    score = X["a"] + 0.5 * X["b"] + rng.normal(0, 0.5, 250)
    y = np.array(CLASSES)[np.where(score > 0.6, 0, np.where(score < -0.6, 1, 2))]
    return LogisticRegression().fit(X, y), X, y


@pytest.fixture(scope="module")
def explained(data):
    return rs.explain(*data, **OPTIONS)


@pytest.fixture(scope="module")
def some(data):
    """One feature of two of the outputs: files of all of them take long."""
    model, X, y = data
    return rs.explain(model, X, y, output=["middle", "high"], **OPTIONS | {"features": "a"})


@pytest.mark.thorough
def test_every_output_is_explained_as_by_itself(data, explained):
    assert list(explained.children) == ["effect", "high", "low none", "middle"]
    # Of the first, and of the last, which all that the others draw could move.
    for name, label in (("high", "high"), ("middle", "middle")):
        alone = rs.explain(*data, output=label, **OPTIONS)
        for group in alone.children:
            xr.testing.assert_identical(
                explained[f"{name}/{group}"].to_dataset().drop_attrs(),
                alone[group].to_dataset().drop_attrs(),
            )
    effect = explained["effect"].to_dataset()
    assert effect["output"].values.tolist() == CLASSES
    np.testing.assert_array_equal(
        effect["curve"].sel(output="high"), explained["high/effect/curve"]
    )


def test_tables_and_texts_have_all_of_them(explained):
    table = explained.tidy()
    assert table["output"].tolist() == np.repeat(CLASSES, 2).tolist()
    text = str(explained)
    places = [text.index(f"── {label} ") for label in CLASSES]
    assert places == sorted(places)
    assert text.count("as methods of this result") == 1
    assert max(map(len, text.splitlines())) <= 100
    words = str(rs.summary(explained, "a"))
    assert [words.count(f"── {label} ") for label in CLASSES] == [1, 1, 1]
    assert repr(explained["high"]).startswith("What moves probability of high")
    with pytest.raises(ValueError, match=r"Take one: tree\['high'\]"):
        rs.plots.outcome(explained)
    with pytest.raises(ValueError, match="this one is of high, low/none, middle"):
        _ = explained.answers


def test_pictures_have_all_of_them(explained):
    panels = rs.plot(explained)
    assert [panel.get_title(loc="left") for panel in panels] == CLASSES
    assert len(rs.plot(explained, "a")) == len(explained.plot("a")) == 3
    plt.close("all")


def test_one_report_has_all_of_them(explained, tmp_path):
    html = explained.report(tmp_path / "all.html").read_text(encoding="utf-8")
    names = re.findall(r'\sid="([^"]+)"', html)
    assert len(names) == len(set(names))
    references = re.findall(r'(?:href="#|aria-labelledby="|aria-describedby=")([^"]+)"', html)
    assert {name for reference in references for name in reference.split()} <= set(names)
    assert html.count('<details class="output"') == 3
    for label in CLASSES:
        assert f">{label}</strong>" in html
    assert explained._repr_html_().count('class="rs-repr"') == 3


@pytest.mark.thorough
def test_files_are_read_again(some, tmp_path):
    some.to_netcdf(tmp_path / "some.nc")
    with xr.open_datatree(tmp_path / "some.nc") as tree:
        tree.load()
    pd.testing.assert_frame_equal(rs.tidy(tree), some.tidy())
    assert str(rs.summary(tree)) == str(some)
    pages = [rs.report(one, tmp_path / f"{n}.html") for n, one in enumerate((tree, some))]
    assert pages[0].read_text("utf-8") == pages[1].read_text("utf-8")


def test_some_outputs_and_outputs_that_are_no_classes(data, some):
    _, X, _ = data
    assert list(some.children)[1:] == ["middle", "high"]

    def two(rows):
        return np.column_stack([rows["a"], rows["b"] * rows["c"]])

    both = rs.explain(two, X, **OPTIONS)
    assert both.tidy()["output"].unique().tolist() == ["0", "1"]
    with pytest.raises(ValueError, match="no classifier where y is given"):
        rs.explain(two, X, np.arange(len(X)), **OPTIONS)


@pytest.mark.thorough
def test_all_are_of_the_same_rows(data):
    model, X, _ = data
    found = rs.explain(model, X, features="a", progress=False, budget="60s")
    assert len({found[name].attrs["seed"] for name in list(found.children)[1:]}) == 1
