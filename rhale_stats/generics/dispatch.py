"""Find the function that does the work of a generic function for one kind of result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

import xarray as xr

from rhale_stats.schema.kinds import (
    AVERAGES,
    EFFECT,
    ENSEMBLE,
    EXPLANATION,
    H_DIFFERENCE,
    H_STATISTICS,
    INTERACTIONS,
    LOCAL,
    PROFILE,
    REPLICATES,
    SIZES,
    SURFACE,
    SURFACE_DIFFERENCE,
    TEST,
    TREE,
    Kind,
    kind_of,
)

# Kind of result -> name of a generic function -> module and function that do it for that kind, and
# are imported when they are first asked.
METHODS: Mapping[Kind, Mapping[str, str]] = {
    EFFECT: {
        "std_error": "effects.errors:std_error",
        "vcov": "effects.errors:vcov",
        "confint": "effects.intervals:confint",
        "confband": "effects.intervals:confband",
        "bootstrap": "effects.replicates:bootstrap",
        "wald_test": "effects.hypotheses:wald_test",
        "hypotheses": "effects.hypotheses:for_hypotheses",
        "compare": "effects.comparison:compare",
        "predict": "effects.values:predict",
        "effect_sizes": "effects.sizes:effect_sizes",
        "tidy": "effects.tables:tidy",
        "glance": "effects.tables:glance",
        "summary": "effects.printed:summary",
        "show": "effects.printed:effect_page",
    },
    SIZES: {
        "tidy": "effects.tables:tidy_sizes",
        "summary": "effects.tables:sizes_summary",
    },
    AVERAGES: {
        "confint": "margins.tables:confint",
        "vcov": "margins.tables:vcov",
        "hypotheses": "margins.tables:estimates",
        "tidy": "margins.tables:tidy",
        "summary": "margins.tables:summary",
        "show": "margins.tables:page",
    },
    PROFILE: {
        "std_error": "profiles.inference:std_error",
        "vcov": "profiles.inference:vcov",
        "hypotheses": "profiles.inference:for_hypotheses",
        "confint": "profiles.inference:confint",
        "confband": "profiles.inference:confband",
        "bootstrap": "profiles.inference:bootstrap",
        "compare": "profiles.inference:compare",
        "predict": "profiles.tables:predict",
        "tidy": "profiles.tables:tidy",
        "glance": "profiles.tables:glance",
        "summary": "profiles.tables:summary",
        "show": "profiles.tables:profile_page",
    },
    SURFACE: {
        "std_error": "surfaces.inference:std_error",
        "vcov": "surfaces.inference:vcov",
        "hypotheses": "surfaces.tables:for_hypotheses",
        "confint": "surfaces.inference:confint",
        "confband": "surfaces.inference:confband",
        "bootstrap": "surfaces.inference:bootstrap",
        "wald_test": "surfaces.comparison:wald_test",
        "compare": "surfaces.comparison:compare",
        "predict": "surfaces.labelled:predict",
        "tidy": "surfaces.tables:tidy",
        "glance": "surfaces.tables:glance",
        "summary": "surfaces.tables:summary",
        "show": "surfaces.tables:surface_page",
    },
    SURFACE_DIFFERENCE: {
        "tidy": "surfaces.comparison:tidy",
        "glance": "inference.tests:glance",
        "summary": "inference.tests:summary",
        "show": "inference.tests:test_page",
    },
    H_STATISTICS: {
        "std_error": "h_statistics.inference:std_error",
        "confint": "h_statistics.inference:confint",
        "bootstrap": "h_statistics.inference:bootstrap",
        "compare": "h_statistics.inference:compare",
        "tidy": "h_statistics.tables:tidy",
        "glance": "h_statistics.tables:glance",
        "summary": "h_statistics.tables:summary",
        "show": "h_statistics.tables:h_statistics_page",
    },
    H_DIFFERENCE: {
        "tidy": "h_statistics.tables:tidy_difference",
        "summary": "h_statistics.tables:difference_summary",
        "show": "h_statistics.tables:difference_page",
    },
    TREE: {
        "tidy": "regional.tables:tidy_trees",
        "glance": "regional.tables:glance_trees",
        "summary": "regional.tables:trees_summary",
        "show": "regional.tables:trees_page",
    },
    INTERACTIONS: {
        "tidy": "regional.tables:tidy_interactions",
        "summary": "regional.tables:interactions_summary",
        "show": "regional.tables:interactions_page",
    },
    ENSEMBLE: {
        "std_error": "ensembles.intervals:std_error",
        "vcov": "ensembles.intervals:vcov",
        "hypotheses": "ensembles.intervals:for_hypotheses",
        "confint": "ensembles.intervals:confint",
        "confband": "ensembles.intervals:confband",
        "wald_test": "ensembles.intervals:wald_test",
        "compare": "ensembles.intervals:compare",
        "predict": "ensembles.tables:predict",
        "effect_sizes": "ensembles.tables:effect_sizes",
        "tidy": "ensembles.tables:tidy",
        "glance": "ensembles.tables:glance",
        "summary": "ensembles.tables:summary",
        "show": "ensembles.tables:ensemble_page",
    },
    TEST: {
        "tidy": "inference.tests:tidy",
        "glance": "inference.tests:glance",
        "summary": "inference.tests:summary",
        "show": "inference.tests:test_page",
    },
    REPLICATES: {
        "show": "inference.tests:replicates_page",
    },
    LOCAL: {
        "show": "local.labelled:local_page",
    },
    EXPLANATION: {
        "tidy": "answers.printed:tidy",
        "summary": "answers.printed:summary",
        "show": "answers.printed:show",
    },
}


def method(verb: str, result: object, parameter: str = "effect") -> Callable[..., Any]:
    """The function of the package for this kind of result.

    Raises
    ------
    ValueError
        The generic function does not take results of this kind; the message lists what does.
    TypeError
        Not a Dataset. The function for effects in bins raises it and says what was expected.
    """
    kind = kind_of(result) or EFFECT
    methods = METHODS.get(kind, {})
    if verb in methods:
        return function_of(kind, verb)
    if kind in (LOCAL, REPLICATES) or not (isinstance(result, xr.Dataset) or kind is EXPLANATION):
        return function_of(EFFECT, verb)
    *makers, last = [other.maker for other, by in METHODS.items() if verb in by]
    makers_text = f"{', '.join(makers)} or {last}" if makers else last
    raise ValueError(
        f"{parameter} must be the Dataset that {makers_text} returns; got {kind.name}, "
        f"which {kind.maker} returned. Functions that take it: {', '.join(kind.verbs)}."
    )


@cache
def function_of(kind: Kind, verb: str) -> Callable[..., Any]:
    """The function that does the work for a kind which the table has."""
    module, name = METHODS[kind][verb].split(":")
    function: Callable[..., Any] = getattr(import_module(f"rhale_stats.{module}"), name)
    return function
