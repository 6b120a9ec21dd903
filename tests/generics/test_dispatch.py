"""Every result takes the functions that are said to be for it, on every kind of model and data.

What comes of them is whole: it has its labels, its numbers are known, and a file gives it back.
That arguments stay as they were, `tests.fuzz` sees of every public function.
"""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import rhale_stats as rs
from rhale_stats.generics.dispatch import METHODS
from rhale_stats.schema import kinds
from rhale_stats.schema.kinds import H_STATISTICS, PROFILE, SURFACE
from tests.helpers import assert_a_file_holds, in_turn

N_ROWS = 80
RNG = np.random.default_rng(11)
X = pd.DataFrame(
    {
        "a": RNG.normal(size=N_ROWS),
        "b": RNG.uniform(size=N_ROWS),
        "k": pd.Categorical(RNG.choice(["u", "v", "w"], N_ROWS)),
    }
)
GAPS = X.assign(a=X["a"].mask(RNG.random(N_ROWS) < 0.2))
EFFECT_VERBS = (
    *("std_error", "confint", "confband", "bootstrap", "compare", "compare_methods", "predict"),
    *("tidy", "glance", "summary", "vcov", "wald_test", "hypotheses", "equivalence_test"),
    "effect_sizes",
    *("plots.effect", "plots.effects", "to_datatree"),
)
# What asks for the rows of an effect on an axis.
ROW_VERBS = ("check_unbiased", "debias", "jump_check", "rebin", "mae", "regions")


def number(X):
    a, k = X["a"].fillna(2.0), X["k"].astype(object).map({"u": 0.0, "v": 1.0, "w": -1.0})
    return (a * (1 + X["b"]) + a**2 * k.astype(float)).to_numpy()


class ThreeClasses:
    """A classifier of three classes that depend on all columns."""

    classes_ = np.array(["lo", "mid", "hi"])

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def predict_proba(self, X):
        eta = number(X)
        odds = np.exp(np.column_stack([-eta, np.zeros_like(eta), eta / 2]))
        return odds / odds.sum(axis=1, keepdims=True)


OF = {
    "a number": (number, X, {}),
    "classes": (ThreeClasses(), X, {}),
    "survey weights": (number, X, {"weights": RNG.exponential(size=N_ROWS)}),
    "repeated rows": (
        number,
        X,
        {"weights": RNG.integers(1, 4, N_ROWS), "weight_kind": "frequency"},
    ),
    "rows without a value, left out": (number, GAPS, {"missing": "drop"}),
    "rows without a value, in a bin": (number, GAPS, {"missing": "bin"}),
}


def _ale(model, X, **options):
    local = rs.ale_local_effects(model, X, bins=rs.QuantileBins(6), **options)
    return local, rs.ale_from_local(local, bins=rs.QuantileBins(6))


def _same(function, **fixed):
    def make(model, X, **options):
        found = function(model, X, **fixed, **options)
        return found, found

    return make


def _pdp(model, X, **options):
    return rs.ice(model, X, n_grid=6, **options), rs.pdp(model, X, n_grid=6, **options)


def _surface(model, X, **options):
    # No second difference reaches a number that is not there.
    if options.get("missing") == "bin":
        options["missing"] = "drop"
    found = rs.ale2(model, X, ("a", "k"), bins=rs.QuantileBins(4), **options)
    return found, found


def _rhale(model, X, **options):
    local = rs.local_effects(model, X, features=["a", "b"], **options)
    return local, rs.rhale(local, bins=rs.EqualWidthBins(4))


def _lines(model, X, **options):
    """Linear bins that other rows chose, where features have the same rows."""
    local = rs.local_effects(model, X, features=["a", "b"], **options)
    honest = "missing" not in options
    return local, rs.rhale(local, bins=rs.AdaptiveBins(10, min_obs=5), honest=honest, rng=0)


MAKERS = {
    "rhale": ((*EFFECT_VERBS, *ROW_VERBS), _rhale),
    "rhale, honest lines": (("confint", "confband", "bootstrap", "check_unbiased"), _lines),
    "ale": (EFFECT_VERBS, _ale),
    "pdp": (PROFILE.verbs, _pdp),
    "ice": (PROFILE.verbs, _same(rs.ice, n_grid=6)),
    "m_plot": (PROFILE.verbs, _same(rs.m_plot, bins=rs.QuantileBins(4))),
    "shap_dependence": (
        PROFILE.verbs,
        _same(rs.shap_dependence, n_grid=6, background=5),
    ),
    "ale2": (SURFACE.verbs, _surface),
    "h_statistic": (
        H_STATISTICS.verbs,
        lambda model, X, **options: (
            *(None,),
            rs.h_statistic(model, X, n_rows=40, rng=0, keep_answers=True, **options),
        ),
    ),
}


# A root that is not split, or was not tested, has neither; the M-plot's curve no standard error.
MAY_BE_UNKNOWN = {
    *(("regions", "threshold"), ("regions", "pvalue"), ("regions", "loss_drop")),
    ("comparison of methods", "curve_se"),
    # Of an explanation: what there is only where rows differ, and where a shape turns.
    *((None, name) for name in ("turns", "apart", "apart_ci", "split_drop", "split_pvalue")),
    # And where the model is off.
    *((None, name) for name in ("residual_pvalue_adjusted", "fit_bias", "fit_bias_ci")),
    *(("interaction matrix", name) for name in ("pvalue", "pvalue_adjusted")),
}


# The same in tables of trees, and whatever only inner nodes or only leaves have.
UNTESTED = ["parent", "loss_drop", "best_drop", "p_value", "region"]
UNTESTED += ["fit_bias", "fit_bias_low", "fit_bias_high"]


def _whole(result, folder=None):
    """Labels and units, no infinity, numbers that are known; and a netCDF file holds all of it."""
    if isinstance(result, xr.DataTree):
        for node in result.subtree:
            _whole(node.to_dataset())
        return
    for array in result.variables.values():
        assert array.dtype.kind in "biufUSMm", array
    for name, array in result.data_vars.items():
        assert array.attrs["long_name"], name
        if array.dtype.kind == "f":
            assert "units" in array.attrs, name
            # An interval by inversion of a test may have no upper end.
            ends = {"ci_bound": 0} if name in ("heterogeneity_ci", "spread_ci") else {}
            # Infinite degrees of freedom are those of a normal distribution.
            assert str(name).endswith("_df") or not np.isinf(array.isel(ends)).any(), name
            known = array.notnull().any() or (result.attrs.get("method"), name) in MAY_BE_UNKNOWN
            assert known, name
    for attributes in (result.attrs, *(array.attrs for array in result.variables.values())):
        for key, value in attributes.items():
            assert isinstance(value, str | int | float) or np.ndim(value) == 1, key
    if folder is not None:
        assert_a_file_holds(result, folder)


def _known(found, folder):
    """What a function makes of a result: numbers that are known, in tables, texts and pictures."""
    if isinstance(found, xr.Dataset):
        _whole(found, folder)
    elif isinstance(found, xr.DataArray):
        assert np.isfinite(found).all()
    elif isinstance(found, pd.DataFrame):
        numbers = found.select_dtypes("number")
        assert len(found)
        assert not np.isinf(numbers).any(axis=None)
        assert numbers.drop(columns=UNTESTED, errors="ignore").notna().any().all()
        # Only levels without an order have no average over them.
        unknown = numbers.filter(["estimate"]).isna().any(axis=1)
        assert not unknown.any() or set(found["term"][unknown]) == {"k"}
    elif isinstance(found, xr.DataTree):
        assert any(node.has_data for node in found.subtree)
    elif isinstance(found, str):
        assert not re.search(r"\b(nan|inf)\b", str(found), re.IGNORECASE)
    else:
        for panel in np.ravel(found):
            drawn = [*panel.lines, *panel.collections, *panel.patches]
            assert drawn
            assert np.isfinite([*panel.get_xlim(), *panel.get_ylim()]).all()
            for line in panel.lines:
                assert np.isfinite(np.asarray(line.get_ydata(), dtype=float)).any()


def _one(result):
    """Of several outputs the first."""
    return result.isel(output=0) if "output" in result.dims else result


def _bootstrap(local, result):
    """What has its rows with it comes alone."""
    apart = () if local is None or local is result else (local,)
    return rs.bootstrap(*apart, result, n_resamples=20, rng=0, progress=False)


def _regions(local):
    """Trees of every kind of test, and what is made of them."""
    some = {"conditioning": X, "n_permutations": 19, "bins": rs.EqualWidthBins(3), "rng": 0}
    trees = [
        rs.regions(_one(local), "a", test=test, **some) for test in (None, "permutation", "honest")
    ]
    found = rs.interaction_matrix(_one(local), n_permutations=19, rng=0, progress=False)
    return [*trees, rs.regional_rhale(_one(local), trees[0], bins=rs.EqualWidthBins(2)), found]


VERBS = {
    "std_error": lambda local, result: rs.std_error(result),
    "confint": lambda local, result: rs.confint(rs.std_error(result)),
    "confband": lambda local, result: rs.confband(rs.std_error(result), n_draws=100, rng=0),
    "bootstrap": lambda local, result: [
        (boot := _bootstrap(local, result)),
        rs.confint(result, boot, method="percentile"),
    ],
    "rebin": lambda local, result: rs.bootstrap(
        local, rs.rhale(local), n_resamples=8, rebin=True, n_grid=5, rng=0, progress=False
    ),
    "check_unbiased": lambda local, result: rs.check_unbiased(local, result, rng=0),
    "debias": lambda local, result: rs.debias(result, rs.check_unbiased(local, result, rng=0)),
    "jump_check": lambda local, result: rs.jump_check(
        lambda X: number(X.assign(k="u")), *_rhale(lambda X: number(X.assign(k="u")), X), X
    ),
    "mae": lambda local, result: rs.simulate.mae(*[_one(result)] * 2),
    "regions": lambda local, result: _regions(local),
    "compare": lambda local, result: rs.compare(rs.std_error(result), rs.std_error(result), rng=0),
    "compare_methods": lambda local, result: rs.compare_methods(
        [_one(result), _one(result)], "a", names=["one", "other"]
    ),
    "predict": lambda local, result: (
        rs.predict(result, ([0.0, 0.3], ["u", "v"]))
        if result.attrs["method"] == "second-order ALE"
        else rs.predict(result, [0.0, 0.3], "a")
    ),
    "tidy": lambda local, result: rs.tidy(result),
    "glance": lambda local, result: rs.glance(result),
    "summary": lambda local, result: rs.summary(result).as_text(),
    "vcov": lambda local, result: (
        rs.vcov(rs.std_error(_one(result)))
        if result.attrs["method"] == "second-order ALE"
        else rs.vcov(rs.std_error(_one(result)), "a")
    ),
    "wald_test": lambda local, result: rs.wald_test(result),
    "hypotheses": lambda local, result: rs.hypotheses(
        _one(result), feature="a" if "feature" in result.dims else None
    ),
    "equivalence_test": lambda local, result: rs.equivalence_test(result, 1.0),
    "effect_sizes": lambda local, result: rs.effect_sizes(result),
    "plots.effect": lambda local, result: rs.plots.effect(_one(result), "a"),
    "plots.effects": lambda local, result: rs.plots.effects(_one(result)),
    "plots.profile": lambda local, result: rs.plots.profile(_one(result), "a"),
    "plots.surface": lambda local, result: rs.plots.surface(_one(result)),
    "plots.h_statistics": lambda local, result: rs.plots.h_statistics(_one(result)),
    "show": lambda local, result: str(rs.show(result)),
    "to_datatree": lambda local, result: rs.to_datatree(local, result),
}


# A number is for every day. Of the others, classes come with every result, as they have one more
# dimension; and each result has one kind of weights and one of gaps, in turn.
WEIGHTS_AND_GAPS = [
    *("survey weights", "rows without a value, left out"),
    *("repeated rows", "rows without a value, in a bin"),
]
EACH = [
    *((name, "a number") for name in MAKERS),
    *(
        pytest.param(*case, marks=pytest.mark.slow)
        for case in [
            *((name, "classes") for name in MAKERS),
            *in_turn(MAKERS, WEIGHTS_AND_GAPS, times=2),
        ]
    ),
]


@pytest.mark.filterwarnings("ignore:Bins without rows")
@pytest.mark.parametrize(("name", "data"), EACH)
def test_every_result_takes_what_is_for_it(name, data, tmp_path):
    if name == "shap_dependence":
        pytest.importorskip("shap", reason="needs the library shap")
    verbs, make = MAKERS[name]
    model, table, options = OF[data]
    local, result = make(model, table, **options)
    _whole(result, tmp_path)
    if local is not None and local is not result:
        _whole(local, tmp_path)
    for verb in verbs:
        # Pictures take a second each, and know of weights only what the result holds; searches ask
        # no more of rows that count.
        if (verb.startswith("plot") or verb in ROW_VERBS) and options:
            continue
        if (name, verb) == ("shap_dependence", "wald_test"):
            with pytest.raises(ValueError, match="effect must not be of shap_dependence"):
                VERBS[verb](local, result)
            continue
        found = VERBS[verb](local, result)
        for one in found if isinstance(found, list) else [found]:
            # Files of what functions make of a result take longest: the other kinds have them.
            _known(one, None if data == "a number" else tmp_path)


@pytest.mark.parametrize(
    "name", [name for name in MAKERS if not name.startswith("rhale") and name != "ale"]
)
def test_what_is_for_another_result_says_what_is_for_this(name):
    if name == "shap_dependence":
        pytest.importorskip("shap", reason="needs the library shap")
    verbs, make = MAKERS[name]
    _, result = make(*OF["a number"][:2])
    for verb in EFFECT_VERBS:
        if verb in verbs:
            continue
        with pytest.raises(
            (TypeError, ValueError),
            match=rf"which .* returned. Functions that take it: .*{verbs[-2]}",
        ):
            VERBS[verb](result, result)


def _refits(table):
    """Refits of a model that is always the same."""
    return rs.bootstrap_refit(
        lambda rows: rs.ale(number, rows), table, n_resamples=4, n_grid=5, n_jobs=1, rng=0
    )


def _results():
    """A result of every kind, by the name of its kind."""
    model, table, _ = OF["a number"]
    local, effect = _rhale(model, table)
    surface = _surface(model, table)[1]
    h = rs.h_statistic(model, table, n_rows=40, rng=0, keep_answers=True)
    return {
        kinds.LOCAL: local,
        kinds.EFFECT: effect,
        kinds.REPLICATES: rs.bootstrap(local, effect, n_resamples=4, rng=0, rebin=True),
        kinds.ENSEMBLE: _refits(table),
        kinds.PROFILE: rs.pdp(model, table, n_grid=6),
        kinds.SURFACE: surface,
        kinds.SURFACE_DIFFERENCE: rs.compare(surface, surface, rng=0),
        kinds.H_STATISTICS: h,
        kinds.H_DIFFERENCE: rs.compare(h, h),
        kinds.TREE: rs.regions(local, "a", conditioning=table[["b", "k"]]),
        kinds.INTERACTIONS: rs.interaction_matrix(local, n_permutations=19, rng=0, progress=False),
        kinds.TEST: rs.wald_test(effect),
        kinds.SIZES: rs.effect_sizes(effect),
        kinds.EXPLANATION: rs.explain(model, table, model(table), rng=0, progress=False),
        kinds.AVERAGES: rs.averages(rs.Parametric(lambda b, X: b * X["a"], [2.0], [[1.0]]), table),
    }


@pytest.fixture(scope="module")
def results():
    return _results()


# What generic functions are called with besides the result.
CALLS = {
    "std_error": rs.std_error,
    "vcov": lambda result: rs.vcov(
        result, None if kinds.SURFACE.holds(result) or kinds.AVERAGES.holds(result) else "a"
    ),
    "confint": rs.confint,
    "confband": lambda result: rs.confband(result, n_draws=100, rng=0),
    "wald_test": rs.wald_test,
    "hypotheses": lambda result: rs.hypotheses(
        result,
        feature="a" if "feature" in result.dims else None,
    ),
    "compare": lambda result: rs.compare(result, result, rng=0),
    "predict": lambda result: (
        rs.predict(result, ([0.0, 0.3], ["u", "v"]))
        if kinds.SURFACE.holds(result)
        else rs.predict(result, [0.0, 0.3], "a")
    ),
    "tidy": rs.tidy,
    "glance": rs.glance,
    "summary": rs.summary,
    "effect_sizes": rs.effect_sizes,
}


def test_every_kind_has_a_result_here(results):
    assert set(results) == set(kinds.KINDS)


@pytest.mark.parametrize("kind", kinds.KINDS, ids=lambda kind: kind.name)
def test_every_result_is_of_its_kind_and_whole(kind, results, tmp_path):
    assert kinds.kind_of(results[kind]) is kind
    _whole(results[kind], tmp_path)


@pytest.mark.parametrize(
    # Replicates are a second argument.
    "kind",
    [kind for kind in METHODS if kind is not kinds.REPLICATES],
    ids=lambda kind: kind.name,
)
def test_what_a_kind_is_said_to_be_for_is_in_the_table(kind):
    # What has no page of its own is shown as a table of numbers.
    generic = {*CALLS, "bootstrap"}
    assert set(METHODS[kind]) - {"show"} == generic & set(kind.verbs)
    assert "show" in kind.verbs


@pytest.mark.parametrize("verb", CALLS)
@pytest.mark.parametrize("kind", METHODS, ids=lambda kind: kind.name)
def test_generic_functions_take_what_is_in_the_table_and_refuse_the_rest(
    kind, verb, results, tmp_path
):
    if verb in METHODS[kind]:
        found = CALLS[verb](results[kind])
        found = found.as_text() if verb == "summary" else found
        _known(found, tmp_path)
    else:
        with pytest.raises((TypeError, ValueError), match=r"must (be|have)"):
            CALLS[verb](results[kind])


def test_errors_by_groups_stay_until_there_are_rows_for_others():
    X = np.random.default_rng(0).normal(size=(300, 2))
    local = rs.local_effects(lambda X: X[:, 0] ** 2 + X[:, 1], X)
    grouped = rs.std_error(rs.rhale(local), local, groups=np.arange(300) // 5)
    xr.testing.assert_identical(rs.std_error(grouped), grouped)
    assert rs.confint(rs.std_error(grouped)).attrs["n_groups"] == 60
    plain = rs.std_error(grouped, local)
    xr.testing.assert_identical(plain["effect_se"], rs.std_error(rs.rhale(local))["effect_se"])
    assert "n_groups" not in plain.attrs
