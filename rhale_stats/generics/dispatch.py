"""Find the function that does the work of a generic function for one kind of result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

import xarray as xr

from rhale_stats.schema import kinds

# Kind of result -> modules -> the generic functions that each of them does for that kind, and where
# it is called otherwise, the name of its function there.
MODULES: Mapping[kinds.Kind, Mapping[str, str]] = {
    kinds.EFFECT: {
        "effects.errors": "std_error vcov",
        "effects.intervals": "confint confband",
        "effects.replicates": "bootstrap",
        "effects.hypotheses": "wald_test hypotheses=for_hypotheses",
        "effects.comparison": "compare",
        "effects.values": "predict",
        "effects.sizes": "effect_sizes",
        "effects.tables": "tidy glance summary",
    },
    kinds.SIZES: {"effects.tables": "tidy=tidy_sizes summary=sizes_summary"},
    kinds.AVERAGES: {
        "margins.tables": "confint vcov hypotheses=estimates tidy summary",
    },
    kinds.PROFILE: {
        "profiles.inference": (
            "std_error vcov hypotheses=for_hypotheses confint confband bootstrap wald_test compare"
        ),
        "profiles.tables": "predict tidy glance summary",
    },
    kinds.SURFACE: {
        "surfaces.inference": "std_error vcov confint confband bootstrap",
        "surfaces.tables": "hypotheses=for_hypotheses tidy glance summary",
        "surfaces.comparison": "wald_test compare",
        "surfaces.ale2": "predict",
    },
    kinds.SURFACE_DIFFERENCE: {
        "surfaces.comparison": "tidy",
        "inference.tests": "glance summary",
    },
    kinds.H_STATISTICS: {
        "h_statistics.inference": "std_error confint bootstrap compare",
        "h_statistics.tables": "tidy glance summary",
    },
    kinds.H_DIFFERENCE: {
        "h_statistics.tables": "tidy=tidy_difference summary=difference_summary",
    },
    kinds.TREE: {
        "regional.tables": "tidy=tidy_trees glance=glance_trees summary=trees_summary "
        "show=first_trees",
    },
    kinds.INTERACTIONS: {
        "regional.tables": "tidy=tidy_interactions summary=interactions_summary "
        "show=first_interactions",
    },
    kinds.ENSEMBLE: {
        "ensembles.intervals": (
            "std_error vcov hypotheses=for_hypotheses confint confband wald_test compare"
        ),
        "ensembles.tables": "predict effect_sizes tidy glance summary",
    },
    kinds.TEST: {"inference.tests": "tidy glance summary"},
    kinds.REPLICATES: {"inference.tests": "summary=replicates_summary"},
    kinds.LOCAL: {"local.labelled": "summary=local_summary"},
    kinds.EXPLANATION: {"answers.printed": "tidy summary show"},
}
# Kind of result -> name of a generic function -> module and function that do it for that kind, and
# are imported when they are first asked.
METHODS: Mapping[kinds.Kind, Mapping[str, str]] = {
    kind: {
        verb: f"{module}:{function or verb}"
        for module, verbs in modules.items()
        for verb, _, function in (name.partition("=") for name in verbs.split())
    }
    for kind, modules in MODULES.items()
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
    kind = kinds.kind_of(result) or kinds.EFFECT
    methods = METHODS.get(kind, {})
    if verb in methods:
        return function_of(kind, verb)
    is_result = isinstance(result, xr.Dataset) or kind is kinds.EXPLANATION
    if kind in (kinds.LOCAL, kinds.REPLICATES) or not is_result:
        return function_of(kinds.EFFECT, verb)
    *makers, last = [other.maker for other, by in METHODS.items() if verb in by]
    makers_text = f"{', '.join(makers)} or {last}" if makers else last
    raise ValueError(
        f"{parameter} must be the Dataset that {makers_text} returns; got {kind.name}, "
        f"which {kind.maker} returned. Functions that take it: {', '.join(kind.verbs)}."
    )


@cache
def function_of(kind: kinds.Kind, verb: str) -> Callable[..., Any]:
    """The function that does the work for a kind which the table has."""
    module, name = METHODS[kind][verb].split(":")
    function: Callable[..., Any] = getattr(import_module(f"rhale_stats.{module}"), name)
    return function
