"""Options of functions: given as an object, or field by field."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import rhale_stats as rs
from rhale_stats.schema.door import Options

FUNCTIONS = sorted(name for name in rs.__all__ if inspect.isfunction(getattr(rs, name)))
EXAMPLE = rs.simulate.TwoRegimes()
X = EXAMPLE.sample(200, rng=0)
LOCAL = rs.local_effects(None, X, jacobian=EXAMPLE.jacobian)


@pytest.mark.parametrize(
    ("name", "arguments", "group", "fields"),
    [
        ("regions", (LOCAL, "x1"), "search", {"max_depth": 1, "min_obs": 30}),
        ("all_regions", (LOCAL,), "search", {"test": "honest", "n_permutations": 19}),
        ("interaction_matrix", (LOCAL,), "search", {"thresholds": "exact", "n_permutations": 0}),
        ("regional_ale", (EXAMPLE.model, X, "x1"), "search", {"max_depth": 1}),
        ("regional_pdp", (EXAMPLE.model, X, "x1"), "search", {"test": "permutation"}),
        ("regional_shap", (None, X, "x1"), "search", {"min_drop": 0.5}),
    ],
)
def test_fields_by_themselves_are_the_object(name, arguments, group, fields):
    function = getattr(rs, name)
    more = {"shap_values": X["x1"] * np.sign(X["x3"])} if name == "regional_shap" else {}
    if "rng" in inspect.signature(function).parameters:
        more["rng"] = 0
    kind = type(inspect.signature(function).parameters[group].default)
    by_object = function(*arguments, **{group: kind(**fields)}, **more)
    assert by_object.identical(function(*arguments, **fields, **more))
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
    parameters = inspect.signature(getattr(rs, name)).parameters.values()
    options = [one for one in parameters if isinstance(one.default, Options)]
    last = list(parameters)[-1]
    assert not options or (last.kind is last.VAR_KEYWORD and last.annotation == "Any")
