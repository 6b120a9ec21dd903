"""P-values of several features, adjusted for their number."""

from __future__ import annotations

import numpy as np

from rhale_stats.arrays.moments import FloatArray

ADJUSTMENTS = (
    "holm",
    "bonferroni",
    "sidak",
    "holm-sidak",
    "simes-hochberg",
    "hommel",
    "fdr_bh",
    "fdr_by",
    "none",
)


def adjusted(pvalues: FloatArray, method: str) -> FloatArray:
    """P-values adjusted for their number; NaN does not count."""
    out = np.array(pvalues)
    tested = np.isfinite(out)
    if method == "none" or not tested.any():
        return out
    if method == "holm":
        # statsmodels takes half a second to import, and a tenth for each of these calls.
        order = np.argsort(out[tested])
        scaled = out[tested][order] * np.arange(len(order), 0, -1)
        values = np.empty(len(order))
        values[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
        out[tested] = values
    else:
        from statsmodels.stats.multitest import multipletests

        # Some take the logarithm of 1 less a p-value of 1.
        with np.errstate(divide="ignore"):
            out[tested] = multipletests(out[tested], method=method)[1]
    return out
