"""Names, levels, labels and units are never elements of HTML, whatever shows them."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

import rhale_stats as rs
from tests.every_kind import results, table

NAMES = ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "'><svg onload=alert(1)>")
LEVELS = ("</script><script>alert(2)</script>", "</style><b onclick=alert(2)>", '"><iframe src=x>')
TEXT = "<i onfocus=alert(3)>"


class Live(HTMLParser):
    """Elements and attributes that only a payload brings."""

    def __init__(self, html):
        super().__init__()
        self.found, self.texts = [], 0
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        names = dict(attrs)
        live = tag in ("img", "iframe", "b", "i") or any(name[:2] == "on" for name in names)
        if live or (tag == "script" and names.get("type") != "application/json"):
            self.found.append((tag, names))

    def handle_data(self, data):
        self.texts += "alert(" in data


@pytest.fixture(scope="module")
def made():
    return results(table(NAMES, LEVELS, TEXT))


def shown_forms(result):
    """Everything about a result that a notebook may show as HTML."""
    yield "itself", result
    for name in ("show", "summary", "tidy", "glance"):
        try:
            found = getattr(rs, name)(result)
        except (ValueError, TypeError):
            continue
        yield name, found
        yield from ((f"table of {name}", one) for one in getattr(found, "tables", []))


def test_no_payload_lives_in_what_a_notebook_shows(made):
    n_texts = 0
    for kind, result in made.items():
        for form, found in shown_forms(result):
            if hasattr(found, "_repr_html_"):
                page = Live(found._repr_html_())
                assert page.found == [], (kind, form)
                n_texts += page.texts
    # The payloads are there, as texts that are read.
    assert n_texts > 100


def test_no_payload_lives_in_a_report(made, tmp_path):
    path = rs.report(made["explain"], tmp_path / "report.html")
    page = Live(path.read_text(encoding="utf-8"))
    assert page.found == []
    assert page.texts > 3


def test_text_of_a_summary_is_not_escaped(made):
    assert TEXT in str(rs.summary(made["rhale"]))
    assert NAMES[0] in rs.summary(made["std_error"]).as_csv()
