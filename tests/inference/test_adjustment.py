"""P-values adjusted for their number, against the definitions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rhale_stats.inference.adjustment import ADJUSTMENTS, adjusted

# In no order, one of them twice, one unknown.
PVALUES = np.array([0.03, 0.001, np.nan, 0.4, 0.03, 0.012, 1.0])
KNOWN = np.isfinite(PVALUES)
N = int(KNOWN.sum())


def _as_given(p):
    return p


def _holm(p):
    """The largest of (n - j + 1) p_(j) over the p-values up to this one, at most 1."""
    each = [max((N - j) * q for j, q in enumerate(sorted(p)) if q <= value) for value in p]
    return np.minimum(each, 1)


def _hochberg(p):
    """The smallest of (n - j + 1) p_(j) over the p-values from this one on."""
    each = [min((N - j) * q for j, q in enumerate(sorted(p)) if q >= value) for value in p]
    return np.minimum(each, 1)


def _fdr(p, factor=1.0):
    each = [min(factor * N / (j + 1) * q for j, q in enumerate(sorted(p)) if q >= x) for x in p]
    return np.minimum(each, 1)


DEFINED = {
    "none": _as_given,
    "bonferroni": lambda p: np.minimum(N * p, 1),
    "sidak": lambda p: 1 - (1 - p) ** N,
    "holm": _holm,
    "simes-hochberg": _hochberg,
    "fdr_bh": _fdr,
    "fdr_by": lambda p: _fdr(p, np.sum(1 / np.arange(1, N + 1))),
}


@pytest.mark.parametrize("method", DEFINED)
def test_adjusted_by_the_definition(method):
    given = PVALUES.copy()
    found = adjusted(given, method)
    assert_allclose(found[KNOWN], DEFINED[method](PVALUES[KNOWN]), rtol=1e-12)
    assert np.isnan(found[~KNOWN]).all()
    np.testing.assert_array_equal(given, PVALUES)


@pytest.mark.thorough
@pytest.mark.parametrize("method", ADJUSTMENTS)
def test_one_feature_is_not_adjusted_and_none_stays_unknown(method):
    assert_allclose(adjusted(np.array([0.2]), method), [0.2])
    assert np.isnan(adjusted(np.full(2, np.nan), method)).all()
