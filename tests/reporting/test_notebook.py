"""An explanation in a notebook."""

import pytest

from tests.reporting.test_report import Elements


@pytest.mark.thorough
def test_it_is_small_and_says_what_the_print_says(explained):
    html = explained._repr_html_()
    assert len(html.encode()) < 60_000
    page = Elements(html)
    assert page.texts["pre"][0].strip() == repr(explained).strip()
    assert len(page.all("table")) == 1
    assert len(page.all("svg")) >= 5


def test_it_is_shown_once_where_styles_are_not(explained):
    body = next(
        one for one in Elements(explained._repr_html_()).all("div") if one["class"] == "rs-body"
    )
    assert body["style"] == "display:none"


@pytest.mark.thorough
def test_its_style_touches_nothing_else(explained):
    style = Elements(explained._repr_html_()).texts["style"][0]
    for rule in style.split("\n")[:3]:
        assert ".rs-repr {" in rule
    assert style.count(".rs-repr {\n") == 1


@pytest.mark.thorough
def test_many_features_are_cut(explained_many):
    page = Elements(explained_many._repr_html_())
    assert "The first 14 features" in page.texts["caption"][0]


def test_groups_below_show_what_xarray_shows(explained):
    assert "xr-" in explained["effect"]._repr_html_()
