"""`report`: one HTML file, by its text, and in a browser."""

from __future__ import annotations

import io
import json
import re
from base64 import b64encode
from hashlib import sha256
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import rhale_stats as rs
from rhale_stats.reporting.pictures import fair
from tests.explanation.explained import EVIL, mixed, table
from tests.reporting.browser import Browser, axe

FORMULA = '=HYPERLINK("http://evil.example","x")'


class Elements(HTMLParser):
    """Elements of a page with their attributes, and the texts of some."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in ("meta", "link", "br", "path", "rect", "circle"):
            self.open.append(tag)
        self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, tag):
        if tag in self.open:
            while self.open.pop() != tag:
                pass

    def handle_data(self, data):
        for tag in set(self.open):
            self.texts[tag][-1] += data

    def all(self, tag):
        return [attrs for name, attrs in self.found if name == tag]


@pytest.fixture(scope="session")
def path(explained, tmp_path_factory):
    return rs.report(explained, tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture(scope="session")
def html(path):
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def page(html):
    return Elements(html)


# --- what it says ---------------------------------------------------------------------------------


@pytest.mark.thorough
def test_every_section_is_a_question(page):
    assert page.texts["h1"] == ["What moves weight"]
    assert page.texts["h2"] == [
        "Main points",
        "Can the model be trusted on these rows?",
        "Which features matter?",
        "How does each feature act?",
        "Which features act together?",
        "How sure are these numbers?",
        "Settings and data",
    ]


def test_it_says_what_the_print_says(explained, page):
    points = [line[2:] for line in repr(explained).splitlines() if line.startswith("* ")]
    text = " ".join(page.texts["main"][0].split()).replace("−", "-")
    for point in points:
        assert point.split(":")[0] in text
    assert "turned" in page.texts["h3"][0]
    assert any("takes away 100 %" in one for one in page.texts["li"])


@pytest.mark.thorough
def test_without_outcomes_nothing_is_said_of_trust(tmp_path):
    found = rs.explain(mixed, table(100), progress=False)
    html = rs.report(found, tmp_path / "a.html").read_text(encoding="utf-8")
    assert "trusted" not in html
    assert "Whether the model was fitted to these rows was not stated" in html


def test_numbers_are_inside(page, explained):
    links = {one["download"]: one["href"] for one in page.all("a") if "download" in one}
    report = json.loads(unquote(links["report.json"].split(",", 1)[1]))
    assert set(report["features"]) == set(explained.answers["feature"].values)
    line = report["features"]["line"]
    effect = explained["effect"].sel(feature="line")
    np.testing.assert_allclose(line["effect"], effect["curve"].dropna("edge"))
    head, *rows = unquote(links["features.csv"].split(",", 1)[1]).splitlines()
    assert head.lstrip("\ufeff").split(",")[:3] == ["feature", "label", "units"]
    assert len(rows) == 6
    values = unquote(links["line.csv"].split(",", 1)[1]).splitlines()
    assert len(values) == 1 + len(line["effect"])


@pytest.mark.thorough
def test_a_saved_explanation_gives_the_same_report(explained, html, tmp_path):
    explained.to_netcdf(tmp_path / "tree.nc")
    again = xr.open_datatree(tmp_path / "tree.nc").load()
    assert rs.report(again, tmp_path / "again.html").read_text(encoding="utf-8") == html


@pytest.fixture(scope="module")
def chances(tmp_path_factory):
    """Probabilities of rare cases and their report as text; the model is too high above 0."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.uniform(-1, 1, 900)})
    y = (rng.uniform(size=900) < 0.02).astype(int)
    tree = rs.explain(lambda X: 0.02 + 0.3 * np.maximum(X["a"], 0), X, y, rng=0, progress=False)
    page = Elements(
        rs.report(tree, tmp_path_factory.mktemp("report") / "r.html").read_text("utf-8")
    )
    return tree, page, " ".join(page.texts["main"][0].split())


def test_percentage_points_are_named(chances):
    tree, page, text = chances
    points = "[percentage points]"
    heads = ["prediction", "mean predicted", "mean observed", "change in the model", "effect"]
    assert {f"{head} {points}" for head in heads} <= set(page.texts["th"])
    for part in (
        "percentage points, mean of predicted less observed",
        "percentage points, 5 % of the standard deviation",
        "percentage points: hardly matters",
        f"moves the predictions {points}: on average",
        "a: rises; effect in percentage points",
        "1 of 1 feature matters on average.",
    ):
        assert part in text
    # The largest residual is that of the highest predictions.
    largest = 100 * np.abs(tree["outcome"]["residual"].values).max()
    (off,) = re.findall(r"The model is off between \S+ and \S+ by −([\d.]+)", text)
    assert float(off) == pytest.approx(largest, rel=0.01)


def test_features_and_parts_that_are_open(explained, tmp_path):
    def opened(**options):
        path = rs.report(explained, tmp_path / "r.html", overwrite=True, **options)
        page = Elements(path.read_text(encoding="utf-8"))
        parts = [one for one in page.all("details") if one.get("class") == "feature"]
        return len(parts), sum("open" in one for one in parts), page

    assert opened()[:2] == (6, 4)
    assert opened(open_features=0)[:2] == (6, 0)
    assert opened(features="line")[:2] == (1, 1)
    assert opened(features=["line", "city"], open_features=1)[:2] == (2, 1)
    n, n_open, page = opened(print=True, title="A <title>")
    assert (n, n_open) == (6, 6)
    assert all("open" in one for one in page.all("details"))
    assert page.texts["title"] == page.texts["h1"] == ["A <title>"]


def test_all_features_are_in_the_table(explained, tmp_path):
    path = rs.report(explained, tmp_path / "r.html", features="line")
    text = path.read_text(encoding="utf-8")
    assert "No pictures are shown of 5 features: turned, g" in text
    for name in explained.answers["feature"].values:
        assert f">{name}<" in text or f"<code>{name}</code>" in text


# --- text from data -------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def evil(tmp_path_factory):
    """Names and levels that would be markup, formulas or control characters."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            EVIL: rng.choice([FORMULA, "a & b", '"><svg onload=alert(1)>', "{{ 7 * 7 }}"], 200),
            "'; --": rng.normal(size=200),
            "nul\x00l": rng.normal(size=200),
        }
    )
    X.attrs = {"output_name": "<b>out</b>", "output_units": "<i>", "units": {"'; --": "</svg>"}}
    names = list(X.columns)
    found = rs.explain(
        lambda X: X[names[1]] + (X[EVIL] == FORMULA) + X[names[2]] ** 2, X, progress=False
    )
    return rs.report(found, tmp_path_factory.mktemp("evil") / "report.html")


@pytest.mark.thorough
def test_names_are_text(evil):
    html = evil.read_text(encoding="utf-8")
    page = Elements(html)
    assert not page.all("script")
    assert not page.all("b")
    assert not [one for _, one in page.found if any(key.startswith("on") for key in one)]
    assert len(page.all("svg")) == html.count("</svg>")
    assert "{{ 7 * 7 }}" in html
    assert "\x00" not in html


def test_cells_are_no_formulas(evil):
    page = Elements(evil.read_text(encoding="utf-8"))
    links = [one["href"] for one in page.all("a") if "download" in one]
    tables = [unquote(one.split(",", 1)[1]) for one in links if one.startswith("data:text/csv")]
    assert tables
    for text in tables:
        for cell in re.findall(r'(?:^|,)"?([=+@-][^,\n]*)', text, re.MULTILINE):
            float(cell)  # a number


@pytest.mark.parametrize("name", ["html", "evil"])
def test_nothing_is_loaded_or_run(name, request):
    found = request.getfixturevalue(name)
    html = found if name == "html" else found.read_text(encoding="utf-8")
    page = Elements(html)
    assert not page.all("script") + page.all("img") + page.all("iframe")
    addresses = [one.get("href") or one.get("src") or "" for _, one in page.found]
    assert not [one for one in addresses if one and not one.startswith(("#", "data:"))]
    policy = next(
        one["content"]
        for one in page.all("meta")
        if one.get("http-equiv", "").startswith("Content")
    )
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy


# --- interactive ----------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def interactive(explained, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    return rs.report(explained, folder / "interactive.html", interactive=True)


@pytest.fixture(scope="session")
def classes(tmp_path_factory):
    """Three outputs, whose readers choose one."""
    rng = np.random.default_rng(2)
    X = pd.DataFrame({"a": rng.uniform(-1, 1, 300), "b": rng.normal(size=300)})
    tree = rs.explain(
        lambda X: np.column_stack([X["a"], X["b"], X["a"] * X["b"]]),
        *(X,),
        output=[0, 1, 2],
        progress=False,
        rng=0,
    )
    return rs.report(tree, tmp_path_factory.mktemp("report") / "c.html", interactive=True)


def test_only_its_own_script_runs(interactive, html):
    text = interactive.read_text(encoding="utf-8")
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = b64encode(sha256(script.encode()).digest()).decode()
    head = unescape(text.partition("<style>")[0])
    assert f"script-src 'sha256-{digest}';" in head
    assert "unsafe" not in head
    assert interactive.stat().st_size < len(html.encode()) + 20_000


def test_rows_are_counted_at_every_place(explained, page):
    """Those of every level, and all of them along an axis."""
    links = {one["download"]: one["href"] for one in page.all("a") if "download" in one}
    n_rows = explained.attrs["n_rows"]
    for name in explained.answers["feature"].values:
        text = unquote(links[f"{name}.csv"].split(",", 1)[1]).lstrip("\ufeff")
        counts = pd.read_csv(io.StringIO(text))["Rows"]
        # Of an axis they are rounded.
        assert counts.sum() == pytest.approx(n_rows, abs=len(counts) / 2), name


# --- tables ---------------------------------------------------------------------------------------


def test_tables_as_csv_and_latex(explained, page, tmp_path):
    folder = tmp_path / "tables"
    rs.report(explained, tmp_path / "r.html", tables=folder)
    names = {path.stem for path in folder.glob("*.csv")}
    assert names == {path.stem for path in folder.glob("*.tex")}
    features = explained.answers["feature"].values
    assert {"features", *features} <= names
    assert len(names) >= len(features) + 3
    frame = pd.read_csv(folder / "features.csv", index_col="feature")
    expected = explained.answers["importance"].to_series()
    np.testing.assert_allclose(frame["importance"], expected[frame.index])
    values = pd.read_csv(folder / "line.csv")
    effect = explained["effect"].sel(feature="line")["curve"].dropna("edge")
    np.testing.assert_allclose(values["effect [kg]"], effect)
    tex = (folder / "features.tex").read_text(encoding="utf-8")
    assert tex.count("\\\\") == 1 + len(features)
    assert "\\toprule" in tex
    for character in "\u2212%_#":
        assert not re.search(rf"(?<!\\){character}", tex), character
    with pytest.raises(FileExistsError, match="tables must be a folder without files of these"):
        rs.report(explained, tmp_path / "again.html", tables=folder)
    assert not (tmp_path / "again.html").exists()
    rs.report(explained, tmp_path / "again.html", tables=folder, overwrite=True)


def test_names_that_are_one_as_files_lose_no_table(tmp_path):
    X = pd.DataFrame(
        np.random.default_rng(0).uniform(-1, 1, (200, 3)), columns=["a b", "a_b", "A b"]
    )
    tree = rs.explain(lambda X: X["a b"] + 2 * X["a_b"] + 3 * X["A b"], X, progress=False)
    rs.report(tree, tmp_path / "r.html", tables=tmp_path / "tables")
    files = sorted(path.stem.lower() for path in (tmp_path / "tables").glob("*_b*.csv"))
    assert files == ["a_b", "a_b-2", "a_b-3"]


def test_a_wide_band_does_not_flatten_the_rest():
    """A scale holds what is about its numbers up to their range beyond."""
    scale = fair([0.0, 1.0], [-50.0, 3.0, np.nan], 100, 0)
    room = 0.02 * 3  # at both ends
    assert (scale.low, scale.high) == pytest.approx((-1.0 - room, 2.0 + room))
    assert fair([0.0, 1.0], [-0.2, 1.1], 100, 0).low == pytest.approx(-0.2 - 0.02 * 1.3)


def test_the_largest_effects_stand_before_the_first_table(html):
    pictures = html.partition('id="which"')[2].partition("<table")[0]
    assert re.findall(r'id="(f-\d+-first)-caption"', pictures) == [f"f-{k}-first" for k in range(3)]


def test_long_numbers_have_room(tmp_path):
    """Of effects of 100,000s the first digits were beyond the left edge of the picture."""
    X = pd.DataFrame(np.random.default_rng(0).uniform(30, 200, (300, 2)), columns=["area", "g"])
    tree = rs.explain(
        lambda X: 2000 * X["area"] * np.where(X["g"] > 100, 1, -1), X, rng=0, progress=False
    )
    html = rs.report(tree, tmp_path / "a.html").read_text(encoding="utf-8")
    kinds = set()
    for kind, picture in re.findall(r'<svg class="pic (\w+)"(.*?)</svg>', html, re.DOTALL):
        kinds.add(kind)
        for x, text in re.findall(r'<text class="end" x="([\d.-]+)"[^>]*>([^<]*)<', picture):
            # A digit is up to 8.3 pixels wide, a minus 11.
            assert float(x) >= 8.3 * len(re.sub("[,−]", "", text)) + 11 * text.count("−"), text
    assert kinds == {"wide", "narrow", "panel"}


# --- structure ------------------------------------------------------------------------------------


def test_ids_are_unique_and_found(page):
    ids = [one["id"] for _, one in page.found if "id" in one]
    assert len(ids) == len(set(ids))
    links = {one["href"][1:] for one in page.all("a") if one["href"].startswith("#")}
    named = {
        key
        for _, one in page.found
        for name in ("aria-labelledby", "aria-describedby")
        for key in (one.get(name) or "").split()
    }
    assert links | named <= set(ids)


def test_headings_skip_no_level(page):
    levels = [int(tag[1]) for tag, _ in page.found if re.fullmatch(r"h[1-6]", tag)]
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_tables_and_pictures_have_names(page):
    assert len(page.all("caption")) == len(page.all("table"))
    assert all(one.get("scope") in ("col", "row") for one in page.all("th"))
    pictures = [one for one in page.all("svg") if one.get("role") == "img"]
    assert len(pictures) >= 14
    assert all(one["aria-labelledby"] and one["aria-describedby"] for one in pictures)
    assert next(iter(page.all("html")))["lang"] == "en"


def test_texts_for_those_who_do_not_see_hold_numbers(html, explained):
    text = re.search(r'id="f-0-picture-alt">([^<]*)<', html).group(1)
    effect = explained["effect"].sel(feature="turned")
    assert "from −0.99" in text or "from −1" in text
    assert text.endswith("All values are in the table below.")
    assert text.count(":") >= 8
    assert float(effect["curve"].isel(edge=0)) < 10


# --- size and privacy -----------------------------------------------------------------------------


def test_levels_that_few_rows_have_are_not_named(tmp_path):
    X = table(300)
    X.loc[:2, "city"] = "Smallville"
    found = rs.explain(lambda X: mixed(X) + 9 * (X["city"] == "Smallville"), X, progress=False)
    assert "Smallville" in repr(rs.summary(found, "city"))
    html = rs.report(found, tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Smallville" not in html
    assert "a level that few rows have" in html
    assert "Levels with fewer than 5 rows are not shown: 1." in html


@pytest.mark.thorough
def test_many_features_keep_to_a_size(explained_many, tmp_path):
    path = rs.report(explained_many, tmp_path / "r.html")
    page = Elements(path.read_text(encoding="utf-8"))
    assert len([one for one in page.all("details") if one.get("class") == "feature"]) == 30
    assert path.stat().st_size < 1e6


# --- arguments ------------------------------------------------------------------------------------


def test_files_are_not_replaced_unasked(explained, tmp_path):
    path = tmp_path / "r.html"
    path.write_text("mine")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        rs.report(explained, path)
    assert path.read_text() == "mine"
    rs.report(explained, str(path), overwrite=True)
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert [one.name for one in tmp_path.iterdir()] == ["r.html"]
    assert rs.report(explained, tmp_path / "report") == tmp_path / "report"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"path": "nowhere/r.html"}, FileNotFoundError, "path must be in a folder that exists"),
        ({"path": "."}, IsADirectoryError, "path must be a file"),
        ({"path": 3}, TypeError, "path must be the path of a file"),
        ({"path": "a.pdf"}, ValueError, "path must end in .html; got 'a.pdf'. Name it 'a.html'"),
        ({"features": "nothing"}, KeyError, "nothing"),
        ({"lang": "xx"}, ValueError, "lang must be one of 'en'"),
        ({"open_features": -1}, ValueError, "open_features must"),
        ({"open_features": 1.5}, TypeError, "open_features must"),
        ({"print": 1}, TypeError, "print must be True or False"),
        ({"overwrite": "no"}, TypeError, "overwrite must be True or False"),
        ({"title": 3}, TypeError, "title must"),
        ({"tree": xr.DataTree()}, ValueError, "tree must be what explain"),
        ({"tree": 3}, TypeError, "tree must be"),
    ],
)
def test_bad_arguments(explained, tmp_path, options, error, message):
    arguments = {"tree": explained, "path": tmp_path / "r.html", **options}
    with pytest.raises(error, match=message):
        rs.report(**arguments)
    assert not list(tmp_path.iterdir())


# --- in a browser ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser():
    found = Browser()
    yield found
    found.close()


@pytest.fixture
def loaded(browser, path):
    browser.look(1400, "light")
    browser.open(path)
    return browser


def problems(browser):
    """Errors of the console and requests of the network, but that of the page itself."""
    out = []
    for event in browser.events:
        method, facts = event.get("method", ""), event.get("params", {})
        if method == "Runtime.exceptionThrown" or (
            method == "Log.entryAdded" and facts["entry"]["level"] in ("error", "warning")
        ):
            out.append(facts)
        if method == "Network.requestWillBeSent":
            address = facts["request"]["url"]
            if not address.startswith(("file:", "data:")):
                out.append(address)
    return out


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 768, 1400])
@pytest.mark.parametrize("name", ["path", "evil"])
def test_the_page_in_a_browser(browser, name, width, scheme, request):
    """No console message, request or script; nothing wider than the screen; axe finds nothing."""
    browser.look(width, scheme)
    browser.open(request.getfixturevalue(name))
    browser.script("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert browser.script("document.scripts.length") == 0
    assert not problems(browser)
    wide = browser.script("document.documentElement.scrollWidth")
    assert wide <= width
    browser.script(axe())
    found = browser.script(
        "axe.run().then(found => found.violations.map("
        "one => [one.id, one.impact, one.nodes.map(node => node.html.slice(0, 200))]))"
    )
    assert not found


@pytest.mark.slow
@pytest.mark.parametrize("width", [360, 768, 1400])
@pytest.mark.parametrize("name", ["interactive", "classes"])
def test_the_interactive_page_in_a_browser(browser, name, width, request):
    browser.look(width, "light")
    browser.open(request.getfixturevalue(name))
    assert browser.script("document.documentElement.scrollWidth") <= width
    browser.script("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert browser.script("document.documentElement.scrollWidth") <= width
    browser.script(axe())
    found = browser.script(
        "axe.run().then(found => found.violations.map("
        "one => [one.id, one.impact, one.nodes.map(node => node.html.slice(0, 200))]))"
    )
    assert not found
    assert not problems(browser)


@pytest.mark.slow
def test_readers_choose_and_read(browser, interactive, classes):
    browser.look(1400, "light")
    browser.open(interactive)
    choose = """(select, value) => {
      select.value = value; select.dispatchEvent(new Event("change")); }"""
    visible = "[...document.querySelectorAll('details.feature')].filter(one => !one.hidden).length"
    n_features = browser.script(visible)
    assert n_features > 3
    browser.script(f"({choose})(document.querySelector('select.features'), '2')")
    assert browser.script(visible) == 1
    assert browser.script("document.querySelectorAll('details.feature')[2].open")
    browser.script(f"({choose})(document.querySelector('select.features'), '')")
    assert browser.script(visible) == n_features
    # The place under the pointer: a tenth from the left end of the axis, then at its right end.
    told = "document.querySelector('.reader output').textContent"
    move = """share => {
      const svg = document.querySelector("svg.wide[data-places]");
      const places = svg.dataset.places.split(" ").map(Number), box = svg.getBoundingClientRect();
      const at = places[0] + share * (places.at(-1) - places[0]);
      svg.dispatchEvent(new PointerEvent("pointermove", {clientY: box.top + 20,
        clientX: box.left + at * box.width / svg.viewBox.baseVal.width})); }"""
    texts = []
    for share in (0.1, 1):
        browser.script(f"({move})({share})")
        texts.append(browser.script(told))
    assert texts[0] != texts[1]
    line = browser.script(
        "[...document.querySelector('.feature details table tbody tr:last-child').children]"
        ".map(cell => cell.textContent)"
    )
    assert all(value in texts[1] for value in line)
    assert "Rows: " in texts[1]
    # One group alone.
    browser.script(f"({choose})(document.querySelector('.reader select'), '0')")
    lines = browser.script(
        "[...document.querySelector('.feature .body').querySelectorAll('svg.wide .group')]"
        ".map(one => [one.getAttribute('class'), one.getAttribute('visibility')])"
    )
    assert {tuple(one) for one in lines} >= {("group g0", "visible"), ("group g1", "hidden")}
    browser.open(classes)
    browser.script(f"({choose})(document.querySelector('select.outputs'), '1')")
    hidden = browser.script(
        "[...document.querySelectorAll('details.output')].map(one => one.hidden)"
    )
    assert hidden == [True, False, True]


@pytest.mark.slow
def test_letters_of_pictures_can_be_read(loaded):
    """At least 11 pixels high at every width."""
    for width in (360, 768, 1400):
        loaded.look(width, "light")
        sizes = loaded.script(
            "[...document.querySelectorAll('svg.pic')]"
            ".filter(one => one.getBoundingClientRect().width)"
            ".map(one => one.getBoundingClientRect().width / one.viewBox.baseVal.width * 13)"
        )
        assert min(sizes) >= 11, width


@pytest.mark.slow
def test_texts_of_pictures_do_not_overlap(loaded):
    code = """
    [...document.querySelectorAll('svg.pic')].flatMap(svg => {
      const boxes = [...svg.querySelectorAll('text')].map(one => [one.textContent,
        one.getBoundingClientRect()]);
      const out = [];
      for (let i = 0; i < boxes.length; i++) for (let j = 0; j < i; j++) {
        const [a, b] = [boxes[i][1], boxes[j][1]];
        if (a.width && Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
            Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3)
          out.push([boxes[i][0], boxes[j][0]]);
      }
      return out;
    })"""
    for width in (360, 1400):
        loaded.look(width, "light")
        loaded.script("document.querySelectorAll('details').forEach(one => one.open = true)")
        assert loaded.script(code) == []


@pytest.mark.slow
def test_the_keyboard_goes_through_in_order_and_opens_parts(loaded):
    focus = (
        "(() => { const one = document.activeElement; return [one.tagName, "
        "one.textContent.trim().slice(0, 40), one.getBoundingClientRect().top + scrollY] })()"
    )
    loaded.press("Tab")
    assert loaded.script(focus)[:2] == ["A", "Skip to the main points"]
    seen = []
    for _ in range(60):
        loaded.press("Tab")
        seen.append(loaded.script(focus))
    assert [tag for tag, _, _ in seen[:7]] == ["A"] * 7
    # From the last the key goes to the first again.
    once = [tag for tag, _, _ in seen].index("BODY")
    assert once > 25
    tops = [top for _, _, top in seen[:once]]
    assert all(after >= before - 40 for before, after in pairwise(tops))
    loaded.script("document.querySelectorAll('details.feature > summary')[4].focus()")
    closed = "document.querySelectorAll('details.feature')[4].open"
    assert not loaded.script(closed)
    loaded.press("Enter")
    assert loaded.script(closed)
    loaded.press(" ")
    assert not loaded.script(closed)


@pytest.mark.slow
def test_every_part_is_printed(loaded, tmp_path):
    """As long as a report whose parts are open from the start, to a page."""
    closed = loaded.pdf()
    loaded.script("document.querySelectorAll('details').forEach(one => one.open = true)")
    opened = loaded.pdf()
    pages = [len(re.findall(rb"/Type\s*/Page\b", one)) for one in (closed, opened)]
    assert pages[0] >= pages[1] - 1 > 3


@pytest.mark.slow
def test_a_notebook_shows_the_answer_once(browser, explained, tmp_path):
    for theme in ("true", "false"):
        path = tmp_path / f"{theme}.html"
        path.write_text(
            f"<!doctype html><html lang=en data-jp-theme-light={theme}><title>n</title>"
            f"<body><main><h1>n</h1>{explained._repr_html_()}</main></body></html>",
            encoding="utf-8",
        )
        browser.open(path)
        assert (
            browser.script("getComputedStyle(document.querySelector('.rs-text')).display") == "none"
        )
        assert (
            browser.script("document.querySelector('.rs-body').getBoundingClientRect().height")
            > 400
        )
        assert not problems(browser)


def test_dates_have_no_unit(tmp_path):
    X = pd.DataFrame({"day": pd.date_range("2024-01-01", periods=120)})
    first = pd.Timestamp("2024-01-01")
    explained = rs.explain(lambda X: (X["day"] - first).dt.days.to_numpy(float), X, rng=0)
    explained.report(tmp_path / "dates.html")
    assert "since 1970" not in (tmp_path / "dates.html").read_text("utf-8")
