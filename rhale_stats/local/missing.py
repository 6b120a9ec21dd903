"""The effect of a missing value."""

from __future__ import annotations

import numpy as np

from rhale_stats.arrays.moments import FloatArray, need_squares
from rhale_stats.models.differences import DifferenceQuotients
from rhale_stats.models.sample import Sample


def effect_of_missing(
    sample: Sample, quotients: DifferenceQuotients, position: int, x: FloatArray
) -> dict[str, FloatArray]:
    """Effect of a missing value against the median of the others, in the rows that miss it."""
    gone, weight = np.isnan(x), sample.weight
    w = np.ones(len(x)) if weight is None else weight
    reference = np.quantile(
        x[~gone], 0.5, method="inverted_cdf", weights=w[~gone] if weight is not None else None
    )
    there = np.full(gone.sum(), reference)
    change, _ = quotients.take(gone).between(
        position, *quotients.table.in_column_type(position, gone, there)
    )
    w = w[gone]
    total, squares = w.sum(), (w if sample.frequency else w**2).sum()
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = w @ change / total
        spread = np.sqrt(w @ (change - mean) ** 2 / (total - squares / total))
        standard_error = spread * np.sqrt(squares) / total
        if need_squares(w, frequency=sample.frequency):
            # A sandwich, math [26].
            left = 1 - 2 * (w**3).sum() / (total * squares) + squares / total**2
            standard_error = np.sqrt(w**2 @ (change - mean) ** 2 / left) / total
    return {
        "missing_effect": mean,
        "missing_effect_se": standard_error,
        "missing_spread": spread,
        "missing_reference": np.full_like(mean, reference),
    }
