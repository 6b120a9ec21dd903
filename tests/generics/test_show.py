"""`show` leads with the answer of every kind of result, as text and as HTML."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import rhale_stats as rs
from rhale_stats.effects.sizes import importances
from rhale_stats.generics.tables import MAX_HTML
from rhale_stats.printing import text as pages
from tests.generics.test_dispatch import MAKERS, OF
from tests.helpers import in_turn

RNG = np.random.default_rng(5)
BAD_NAME = "<script>alert('x')</script>"


def two_features(n_rows=300, n_features=2, names=None):
    X = np.random.default_rng(1).uniform(-1, 1, (n_rows, n_features))
    jacobian = np.tile(np.arange(n_features, 0.0, -1.0), (n_rows, 1)) + X
    if names is not None:
        X = pd.DataFrame(X, columns=names)
    return rs.local_effects(None, X, jacobian=jacobian)


class Balanced(HTMLParser):
    """All tags are closed in order; what they are."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen = [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in ("input", "br", "path", "use", "hr"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in ("input", "br", "path", "use", "hr"):
            assert self.open.pop() == tag


def check_page(result):
    """Words of a terminal's width; HTML that is whole, small, and has the Dataset in it."""
    answer = rs.show(result)
    text, html = str(answer), answer._repr_html_()
    assert max(map(len, answer.head.lines)) <= pages.WIDTH
    assert "nan" not in text.lower().split()
    assert len(html.encode()) <= 2 * MAX_HTML
    seen = Balanced(html).seen
    assert seen[0] == ("div", {"class": "rhale-stats"})
    assert "details" in [tag for tag, _ in seen]
    assert text.split()[0] in html
    return text


def results_of(local, result, model, table, options):
    """What can be made of a result: its errors, intervals, tests, replicates."""
    apart = () if local is None or local is result else (local,)
    out = [result, rs.bootstrap(*apart, result, n_resamples=8, rng=0, progress=False)]
    try:
        out.append(rs.confint(rs.std_error(result)))
        out.append(rs.compare(rs.std_error(result), rs.std_error(result), rng=0))
        out += [rs.wald_test(result), rs.effect_sizes(result), rs.effect_sizes(result, out[1])]
    except ValueError:  # what is not for this result
        pass
    return [*out, *([local] if local is not None else [])]


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:Bins without rows")
@pytest.mark.parametrize(
    ("name", "of"),
    [
        *((name, "a number") for name in MAKERS),
        # `test_every_result_takes_what_is_for_it` shows all of them, too.
        *(pytest.param(*pair, marks=pytest.mark.slow) for pair in in_turn(MAKERS, list(OF)[1:], 2)),
    ],
)
def test_every_result_is_shown(name, of):
    if name == "shap_dependence":
        pytest.importorskip("shap", reason="needs the library shap")
    model, table, options = OF[of]
    local, result = MAKERS[name][1](model, table, **options)
    for one in results_of(local, result, model, table, options):
        before = one.copy(deep=True)
        text = check_page(one)
        xr.testing.assert_identical(one, before)
        assert repr(one.rhale) == text


def test_regions_interactions_and_others_are_shown():
    local = two_features(n_features=3)
    effect = rs.rhale(local, bins=rs.EqualWidthBins(3))
    trees = rs.all_regions(local, n_permutations=19, rng=0)
    tree = rs.regions(local, "x0")
    found = rs.interaction_matrix(local, n_permutations=9, rng=0)
    others = (
        rs.simulate.mae(effect, effect),
        rs.folds(local, bins=rs.EqualWidthBins(3), rng=0, progress=False),
        rs.check_unbiased(local, effect, rng=0),
        rs.compare_methods([effect, effect], "x0", names=["one", "other"]),
    )
    titles = [
        check_page(one).splitlines()[0].strip()
        for one in (trees, tree, found, rs.regional_rhale(local, tree), *others)
    ]
    assert titles[:3] == [
        "Regions: effects on output",
        "Regions: effect of x0 on output",
        "Interactions: effects on output, split by other columns",
    ]
    assert titles[4].startswith("Mae")


def lines_of(result, most=10):
    """Names of lines with the numbers behind them."""
    table = rs.show(result, max_features=most).head.tables[1]
    return dict(zip(table.stubs, table.lines, strict=True))


@pytest.mark.thorough
def test_features_lead_by_importance_with_the_numbers_of_the_other_functions():
    local = two_features(n_features=30)
    effect = rs.confint(rs.rhale(local, bins=rs.EqualWidthBins(3)))
    text, lines = check_page(effect), lines_of(effect)
    sizes = rs.effect_sizes(effect)["importance"].to_pandas().sort_values(ascending=False)
    assert list(lines) == sizes.index[:10].tolist()
    assert "10 of 30 lines, the most important." in text
    table = rs.glance(effect).set_index("term")
    table["range"] = table["curve_max"] - table["curve_min"]
    columns = ["estimate", "std_error", "conf_low", "conf_high", "heterogeneity"]
    for name, (_, *numbers) in lines.items():
        row = table.loc[name, [*columns, "heterogeneity_output", "range"]]
        assert numbers == [f"{one:.4g}" for one in row]
    assert len(lines_of(effect, 3)) == 3
    assert "rows (model as given)" in text


@pytest.mark.filterwarnings("ignore:Bins without rows", "ignore:Gaps without rows")
@pytest.mark.parametrize(
    ("bins", "weighting"),
    in_turn([rs.AdaptiveBins(), rs.EqualWidthBins(12), rs.QuantileBins(4)], ["axis", "rows"]),
    ids=repr,
)
def test_importances_are_those_of_effect_sizes(bins, weighting):
    x = np.column_stack([RNG.normal(size=400), RNG.choice([-3.0, 0.0, 3.0], 400), np.ones(400)])
    x[:, 1] += RNG.uniform(0, 0.3, 400)
    g = np.column_stack([x[:, 0] ** 2 - 1, np.sign(x[:, 1]) + x[:, 1], np.ones(400)])
    local = rs.local_effects(None, x, jacobian=g)
    effect = rs.rhale(local, bins=bins, weighting=weighting)
    np.testing.assert_allclose(
        importances(effect), rs.effect_sizes(effect)["importance"], rtol=1e-12
    )
    assert "constant" in str(rs.show(effect))


@pytest.mark.thorough
def test_what_is_zero_up_to_rounding_is_zero_and_last():
    x = RNG.uniform(-1, 1, (200, 3))
    local = rs.local_effects(lambda X: 1e3 + X[:, 1] / 3 + (X[:, 0] - X[:, 0]), x)
    rounding = 1e-13 * RNG.normal(size=200)
    local["local_effect"][:, 0] = rounding
    effect = rs.rhale(local, bins=rs.EqualWidthBins(3))
    lines = lines_of(effect)
    assert next(iter(lines)) == "x1"
    assert np.ptp(effect["curve"].values[0]) > 0
    assert rs.glance(effect)["curve_max"].tolist()[0] == 0
    assert lines["x0"][-2:] == ["0", "0"]


@pytest.mark.thorough
def test_labels_are_escaped_cut_and_kept_on_their_line():
    names = [BAD_NAME, "two\nlines\x1b[31m", "a" * 70]
    local = two_features(n_features=3, names=names)
    for result in (local, rs.rhale(local, bins=rs.EqualWidthBins(3)), rs.regions(local, BAD_NAME)):
        text = check_page(result)
        html = rs.show(result)._repr_html_()
        assert "<script" not in html
        assert "\x1b" not in text
        stubs = [stub for table in rs.show(result).head.tables for stub in table.stubs]
        assert max(map(len, stubs)) <= pages.LONGEST_NAME


def test_several_outputs_are_shown_one_after_the_other_and_not_all_of_many():
    x = RNG.uniform(-1, 1, (60, 2))
    model = lambda X: np.column_stack([X[:, 0] * k for k in range(1, 8)])  # noqa: E731
    effect = rs.rhale(rs.local_effects(model, x), bins=rs.EqualWidthBins(2))
    text = check_page(effect)
    titles = [line.strip() for line in text.splitlines() if "RHALE" in line]
    assert titles == [f"RHALE: effects on output {number}" for number in range(4)]
    assert "3 more outputs: show(result.isel(output=slice(4, None)))" in text


def test_what_is_no_result_is_refused_by_show_and_printed_by_the_accessor():
    plain = xr.Dataset({"a": ("t", [1.0])})
    with pytest.raises(ValueError, match="result must be a Dataset that .* has the variables a"):
        rs.show(plain)
    with pytest.raises(TypeError, match="result must be a Dataset .*; got 3"):
        rs.show(3)
    assert repr(plain.rhale) == repr(plain)
    assert "xr-wrap" in plain.rhale._repr_html_()
    part = rs.rhale(two_features()).drop_vars("feature_kind")
    assert "Rhale on output" in repr(part.rhale)  # what can be said of any result
    assert "RHALE: effects on output" in repr(rs.rhale(two_features()).isel(feature=0).rhale)


@pytest.mark.thorough
def test_the_dataset_prints_its_answer_first():
    effect = rs.confband(rs.confint(rs.rhale(two_features())), n_draws=100, rng=0)
    first = ["effect", "effect_se", "heterogeneity", "curve", "curve_se", "average_effect"]
    assert list(effect.data_vars)[:6] == first
    printed = repr(effect).partition("Data variables")[2]
    assert [line.split()[0] for line in printed.splitlines()[1:7]] == first
    surface = rs.ale2(lambda X: X[:, 0] * X[:, 1], RNG.uniform(size=(50, 2)), (0, 1))
    assert next(iter(surface.data_vars)) == "surface"


class Printer:
    def __init__(self):
        self.said = ""

    def text(self, text):
        self.said += text


class Formatter(dict):
    def for_type(self, kind, function):
        self[kind] = function


class Shell:
    """What `load_ipython_extension` touches of IPython."""

    def __init__(self):
        self.display_formatter = self
        self.formatters = {"text/plain": Formatter(), "text/html": Formatter()}


def test_ipython_shows_results_and_leaves_other_datasets_alone():
    shell, plain = Shell(), xr.Dataset({"a": ("t", [1.0])})
    effect = rs.rhale(two_features())
    rs.load_ipython_extension(shell)
    text, html = (shell.formatters[kind][xr.Dataset] for kind in ("text/plain", "text/html"))
    for dataset, expected in ((effect, str(rs.show(effect))), (plain, repr(plain))):
        printer = Printer()
        text(dataset, printer, False)
        assert printer.said == expected
    assert html(effect).startswith('<div class="rhale-stats">')
    assert "rhale-stats" not in html(plain)
    rs.unload_ipython_extension(shell)
    rs.unload_ipython_extension(shell)
    assert shell.formatters == {"text/plain": {}, "text/html": {}}


def test_methods_that_are_not_there_are_answered():
    effect = rs.rhale(two_features())
    for name, said in {
        "sumary": "Did you mean summary",
        "report": r"help\(rs.report\)",
        "plots.effect": r"Call rhale_stats.plots.effect\(effect",
        "coef": r"Did you mean tidy\(effect\)",
    }.items():
        with pytest.raises(AttributeError, match=said):
            getattr(effect.rhale, name)
    with pytest.raises(AttributeError, match="is one variable of a result. Take the Dataset"):
        effect["curve"].rhale.summary()
    assert "Take the Dataset" in repr(effect["curve"].rhale)
    assert not hasattr(effect["curve"].rhale, "_repr_html_")
    assert not hasattr(effect.rhale, "_ipython_display_")
    with pytest.raises(TypeError, match="got DataArray. Take the Dataset, not one of its variab"):
        rs.summary(effect["curve"])
