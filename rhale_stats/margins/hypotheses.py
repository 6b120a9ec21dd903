"""Combinations of estimates as a result, which is printed and tabulated as averages are."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from rhale_stats.arguments.checks import is_number
from rhale_stats.arguments.words import shown
from rhale_stats.inference.adjustment import adjusted
from rhale_stats.inference.combinations import (
    Estimates,
    combined,
    equivalence_pvalues,
    joint_test,
)
from rhale_stats.inference.estimate import student
from rhale_stats.margins.tables import HYPOTHESES
from rhale_stats.schema.kinds import AVERAGES
from rhale_stats.schema.variables import variable

KEPT = ("weight_kind", "output_name", "output_units", "output_label", "n_groups", "software")


def labelled_combinations(
    result: xr.Dataset, estimates: Estimates, hypothesis: Any, margin: Any, adjust: str
) -> xr.Dataset:
    """The combinations that ``hypothesis`` names, with their errors, P and a test of all."""
    combinations = combined(estimates, hypothesis)
    joint = joint_test(combinations)
    se = np.sqrt(np.maximum(np.diagonal(combinations.covariance), 0.0))
    p_values = student(combinations.values, se, combinations.degrees)["p_value"]
    numbers = {
        "average": combinations.values,
        "average_se": se,
        "average_df": combinations.degrees,
        "average_cov": combinations.covariance,
        "p_value_adjusted": adjusted(p_values, adjust),
    }
    if margin is not None:
        numbers["p_equivalence"] = equivalence_pvalues(combinations, *_margin(margin))
    facts = {"source": estimates.source, "target": "function of estimates"}
    data = {name: variable(name, values, AVERAGES, **facts) for name, values in numbers.items()}
    n_terms = len(combinations.texts)
    coords: dict[str, Any] = {
        name: ("term", np.array(values))
        for name, values in {
            "term": combinations.texts,
            "of": combinations.texts,
            "kind": ["hypothesis"] * n_terms,
            "contrast": [""] * n_terms,
            "null": [0.0] * n_terms,
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
        "adjust": adjust,
        **{f"joint_{name}": value for name, value in joint._asdict().items()},
    }
    attrs.setdefault("weight_kind", "none")
    if margin is not None:
        attrs["margin"] = list(_margin(margin))
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
