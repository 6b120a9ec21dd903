"""Combinations of estimates as a result, which is printed and tabulated as averages are."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from rhale_stats.arguments.checks import is_number
from rhale_stats.arguments.words import shown
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.inference.adjustment import adjusted
from rhale_stats.inference.combinations import (
    Combinations,
    Estimates,
    combined,
    equivalence_pvalues,
    joint_test,
    located,
)
from rhale_stats.inference.estimate import BOUNDS, Facts, interval, student
from rhale_stats.margins.tables import HYPOTHESES, INVERTED, LOCATION
from rhale_stats.schema.kinds import AVERAGES
from rhale_stats.schema.variables import variable

KEPT = (
    *("weight_kind", "output_name", "output_units", "output_label", "n_groups"),
    *("effective_units", "software"),
)


def labelled_combinations(
    result: xr.Dataset, estimates: Estimates, hypothesis: Any, margin: Any, adjust: str
) -> xr.Dataset:
    """The combinations that ``hypothesis`` names, with their errors, P and a test of all."""
    combinations = combined(estimates, hypothesis)
    p_values = student(
        combinations.values, np.sqrt(_variances(combinations)), combinations.degrees
    )["p_value"]
    out = _labelled(result, estimates, combinations, "hypothesis", 0.0)
    out = out.assign(p_value_adjusted=_variable("p_value_adjusted", adjusted(p_values, adjust)))
    out.attrs |= {
        f"joint_{name}": part for name, part in joint_test(combinations)._asdict().items()
    }
    out.attrs["adjust"] = adjust
    if margin is None:
        return out
    low, high = _margin(margin)
    p_values = equivalence_pvalues(combinations, low, high)
    out = out.assign(p_equivalence=_variable("p_equivalence", p_values))
    return out.assign_attrs(margin=[low, high])


def labelled_locations(
    result: xr.Dataset, estimates: Estimates, kind: str, level: float
) -> xr.Dataset:
    """Places of maxima, minima or zeros, with intervals by inversion of tests (math [119])."""
    places, ends = located(estimates, kind, level)
    out = _labelled(result, estimates, places, LOCATION, np.nan)
    facts = Facts(("term",), "place on the axis", "feature units", "place", estimates.source)
    return out.assign(average_ci=interval(facts, ends, level, INVERTED)).assign_coords(BOUNDS)


def _variances(combinations: Combinations) -> FloatArray:
    return np.maximum(np.diagonal(combinations.covariance), 0.0)


def _variable(name: str, values: FloatArray, **facts: str) -> Any:
    return variable(name, values, AVERAGES, **facts)


def _labelled(
    result: xr.Dataset, estimates: Estimates, combinations: Combinations, kind: str, null: float
) -> xr.Dataset:
    """Combinations with their errors, as averages have them."""
    numbers = {
        "average": combinations.values,
        "average_se": np.sqrt(_variances(combinations)),
        "average_df": combinations.degrees,
        "average_cov": combinations.covariance,
    }
    facts = {"source": estimates.source, "target": "function of estimates"}
    data = {name: _variable(name, values, **facts) for name, values in numbers.items()}
    n_terms = len(combinations.texts)
    coords: dict[str, Any] = {
        name: ("term", np.array(values))
        for name, values in {
            "term": combinations.texts,
            "of": combinations.texts,
            "kind": [kind] * n_terms,
            "contrast": [""] * n_terms,
            "null": [null] * n_terms,
        }.items()
    }
    coords["term_other"] = ("term_other", np.array(combinations.texts))
    attrs: dict[str, Any] = {name: result.attrs[name] for name in KEPT if name in result.attrs}
    attrs |= {
        "method": HYPOTHESES,
        "about": estimates.what,
        "n_rows": int(result.attrs.get("n_rows", 0)),
        "by": "",
        "parameters": f"of {estimates.source}",
    }
    attrs.setdefault("weight_kind", "none")
    return xr.Dataset(data, coords, attrs)


def _margin(margin: Any) -> tuple[float, float]:
    """Both ends of what counts as no difference."""
    if is_number(margin) and 0 < margin < np.inf:
        return -float(margin), float(margin)
    if isinstance(margin, tuple | list) and len(margin) == 2 and all(map(is_number, margin)):
        low, high = map(float, margin)
        if low < high:
            return low, high
    raise ValueError(
        f"margin must be a positive number, or a pair (low, high); got {shown(margin)}."
    )
