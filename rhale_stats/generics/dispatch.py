"""Find the function that does the work of a generic function for one kind of result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import xarray as xr

from rhale_stats.answers import methods as answers_methods
from rhale_stats.effects import methods as effects_methods
from rhale_stats.ensembles import methods as ensembles_methods
from rhale_stats.h_statistics import methods as h_statistics_methods
from rhale_stats.inference import methods as inference_methods
from rhale_stats.local import methods as local_methods
from rhale_stats.margins import methods as averages_methods
from rhale_stats.profiles import methods as profiles_methods
from rhale_stats.regional import methods as regional_methods
from rhale_stats.schema.kinds import EFFECT, EXPLANATION, LOCAL, REPLICATES, Methods, kind_of
from rhale_stats.surfaces import methods as surfaces_methods

# Kind of result -> name of a generic function -> the function of the package for that kind.
METHODS: Methods = {
    **effects_methods.METHODS,
    **averages_methods.METHODS,
    **profiles_methods.METHODS,
    **surfaces_methods.METHODS,
    **h_statistics_methods.METHODS,
    **regional_methods.METHODS,
    **ensembles_methods.METHODS,
    **inference_methods.METHODS,
    **local_methods.METHODS,
    **answers_methods.METHODS,
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
        return methods[verb]
    if kind in (LOCAL, REPLICATES) or not (isinstance(result, xr.Dataset) or kind is EXPLANATION):
        return METHODS[EFFECT][verb]
    *makers, last = (other.maker for other, by in METHODS.items() if verb in by)
    taken = f"{', '.join(makers)} or {last}" if makers else last
    raise ValueError(
        f"{parameter} must be the Dataset that {taken} returns; got {kind.name}, "
        f"which {kind.maker} returned. Functions that take it: {', '.join(kind.verbs)}."
    )
