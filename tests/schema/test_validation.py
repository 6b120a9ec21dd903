"""Options of functions: given as an object, or field by field."""

from __future__ import annotations

import inspect
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import rhale_stats as rs
from rhale_stats.schema.validation import Options
from tests.helpers import public_functions

PACKAGE = Path(rs.__file__).parent
FUNCTIONS = public_functions()
EXAMPLE = rs.simulate.TwoRegimes()
X = EXAMPLE.sample(200, rng=0)
GAPS = X.mask(X["x1"] > 0.9)
COUNTS = {"weights": np.arange(200) % 3}
BINS = rs.QuantileBins(3)
LOCAL = rs.local_effects(None, X, jacobian=EXAMPLE.jacobian)


def two_outputs(X):
    return np.column_stack([X["x1"], X["x1"] * X["x3"]])


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "arguments", "group", "fields"),
    [
        ("regions", (LOCAL, "x1"), "search", {"max_depth": 1, "min_obs": 30}),
        ("all_regions", (LOCAL,), "search", {"test": "honest", "n_permutations": 19}),
        ("interaction_matrix", (LOCAL,), "search", {"thresholds": "exact", "n_permutations": 0}),
        ("regional_ale", (EXAMPLE.model, X, "x1"), "search", {"max_depth": 1}),
        ("regional_pdp", (EXAMPLE.model, X, "x1"), "search", {"test": None}),
        ("regional_shap", (None, X, "x1"), "search", {"min_drop": 0.99}),
        ("regional_ale", (EXAMPLE.model, X, "x1"), "options", {"weights": np.arange(200)}),
        ("pdp", (two_outputs, X), "options", {"output": 1, "weights": np.arange(200)}),
        ("ice", (two_outputs, X), "options", {"output": [1]}),
        ("m_plot", (two_outputs, X), "options", {"output": 0}),
        ("shap_dependence", (None, X), "options", {"weights": np.arange(200)}),
        ("shap_dependence", (EXAMPLE.model, X), "shapley", {"background": 3}),
        ("ale", (two_outputs, X), "options", {"weight_kind": "frequency"} | COUNTS),
        ("ale2", (two_outputs, X, ("x1", "x3")), "options", {"output": 0} | COUNTS),
        ("ale_local_effects", (two_outputs, GAPS), "options", {"missing": "drop"}),
        ("local_effects", (two_outputs, GAPS), "options", {"missing": "drop", "output": 1}),
        ("h_statistic", (two_outputs, GAPS), "options", {"missing": "drop", "output": 1}),
        ("h_statistic", (two_outputs, X), "estimator", {"kind": "ale", "bins": BINS}),
        ("bootstrap", (LOCAL, rs.rhale(LOCAL)), "resampling", {"chains": 2, "rebin": True}),
    ],
)
def test_fields_by_themselves_are_the_object(name, arguments, group, fields):
    function = getattr(rs, name)
    parameters = inspect.signature(function).parameters
    asked = {"shap_values": X * np.sign(X["x3"].to_numpy())[:, None], "rng": 0, "n_resamples": 4}
    known = [*parameters, *(["shap_values"] if "shapley" in parameters else [])]
    more = {key: value for key, value in asked.items() if key in known}
    if group == "shapley":
        del more["shap_values"]
    by_object = function(*arguments, **{group: type(parameters[group].default)(**fields)}, **more)
    assert by_object.identical(function(*arguments, **fields, **more))
    if "missing" in fields:
        with pytest.raises(ValueError, match="missing='drop'"):
            function(*arguments, missing="raise", **more)
    else:
        assert not by_object.identical(function(*arguments, **more))


def test_fields_by_themselves_and_in_the_object_are_refused():
    with pytest.raises(TypeError, match=r"regions\(\) got max_depth beside search=, which"):
        rs.regions(LOCAL, "x1", max_depth=1, search=rs.SplitSearch(min_obs=20))


@pytest.mark.parametrize("value", [None, {"max_depth": 1}, rs.SplitSearch, rs.EqualWidthBins(2)])
def test_another_object_is_refused(value):
    with pytest.raises(TypeError, match=r"search must be a SplitSearch, as in .*; got "):
        rs.regions(LOCAL, "x1", search=value)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: rs.regions(LOCAL, "x1", max_dept=1),
            r"regions\(\) .*'max_dept'. Did .*'max_depth'",
        ),
        (lambda: rs.rhale(LOCAL, centring="mean"), r"rhale\(\) .*'centring'. Did .*'centering'"),
        (lambda: rs.rhale(LOCAL, fields=1), r"rhale\(\) got an unexpected .* 'fields'"),
        (lambda: rs.regions(LOCAL, "x1", fields=1), r"regions\(\) got an unexpected .* 'fields'"),
    ],
)
def test_unknown_keywords_are_refused_with_names_that_are_near(call, said):
    with pytest.raises(TypeError, match=said):
        call()


@pytest.mark.parametrize(
    ("field", "value", "error", "said"),
    [
        ("max_depth", -1, ValueError, "max_depth must be at least 0; got -1"),
        ("thresholds", "all", ValueError, "thresholds must be one of .*; got 'all'"),
        ("min_share", 1.0, ValueError, r"min_share must lie in \[0, 1\)"),
        ("level", "x", TypeError, "level must be a number; got 'x'"),
    ],
)
def test_an_object_checks_its_fields_as_the_function_does(field, value, error, said):
    for call in (rs.SplitSearch, lambda **fields: rs.regions(LOCAL, "x1", **fields)):
        with pytest.raises(error, match=said):
            call(**{field: value})


@pytest.mark.parametrize("name", FUNCTIONS)
def test_type_checkers_accept_fields_by_themselves(name):
    parameters = inspect.signature(FUNCTIONS[name]).parameters.values()
    options = [one for one in parameters if isinstance(one.default, Options)]
    last = list(parameters)[-1:]
    assert not options or (last[0].kind is last[0].VAR_KEYWORD and last[0].annotation == "Any")


@pytest.mark.parametrize("field", ["scale", "weight_kind", "missing"])
def test_choices_of_options_are_checked_before_there_is_a_model(field):
    with pytest.raises(ValueError, match=f"{field} must be one of .*; got 'x'"):
        rs.ModelOptions(**{field: "x"})


def test_options_with_weights_are_not_compared():
    """They are arrays, which compare row by row."""
    weights = np.ones(3)
    assert rs.ModelOptions(weights=weights) != rs.ModelOptions(weights=weights)
    assert rs.SplitSearch(max_depth=1) == rs.SplitSearch(max_depth=1)


# --- what stands in for a model, an outcome, a result ---------------------------------------------


class Proxy:
    """Answers any attribute."""

    def __getattr__(self, name):
        return lambda *_: None

    def predict(self, rows):
        return 3 * np.asarray(rows)[:, 0]


def test_a_proxy_with_every_attribute_is_used_by_its_predict():
    local = rs.local_effects(Proxy(), X)
    np.testing.assert_allclose(local["local_effect"].values[:, 0], 3)
    with pytest.raises(rs.ModelError):
        rs.pdp(Mock(), X)


def test_an_outcome_may_be_a_table_of_one_column():
    y = np.asarray(X)[:, 0]
    given = [pd.DataFrame({"cost": y}), y[:, None], pd.Series(y, name="cost")]
    quick = {"rng": 0, "progress": False}
    found = [rs.explain(lambda rows: np.asarray(rows)[:, 0], X, one, **quick) for one in given]
    assert [one.attrs["output_name"] for one in found] == ["cost", "output", "cost"]
    with pytest.raises(ValueError, match=r"y must have one entry .* got shape"):
        rs.explain(lambda rows: np.asarray(rows)[:, 0], X, np.column_stack([y, y]), progress=False)


@pytest.mark.parametrize(
    "verb", ["confint", "confband", "std_error", "wald_test", "effect_sizes", "plots.effects"]
)
def test_results_put_together_by_xarray_are_refused_in_words(verb):
    effect = rs.rhale(LOCAL)
    both = xr.concat([effect, effect], "sample", coords="different", compat="equals", join="outer")
    with pytest.raises(ValueError, match="must be one result; this one has the dimension 'sample'"):
        FUNCTIONS[verb](both)


@pytest.mark.parametrize("verb", ["summary", "show", "tidy", "glance"])
def test_those_that_only_show_take_them(verb):
    effect = rs.rhale(LOCAL)
    both = xr.concat([effect, effect], "sample", coords="different", compat="equals", join="outer")
    assert len(str(getattr(rs, verb)(both))) > len(str(getattr(rs, verb)(effect)))
