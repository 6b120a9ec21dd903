"""Bins with a linear bin error, beside regressions of their rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import rhale_stats as rs
from rhale_stats.inference.meaning import linear_bin_error
from tests.helpers import local_of

EDGES = np.array([0, 1, 2, 3, 4])
# Rows of the bins: the last has too few for a test.
ROWS = (40, 12, 30, 9)


def _rows(slopes, seed=0):
    """Bins with these slopes of the effect."""
    rng = np.random.default_rng(seed)
    x = np.concatenate([k + rng.uniform(0, 1, n) for k, n in enumerate(ROWS)])
    x[[0, -1]] = 0, 4
    k = np.minimum(x.astype(int), 3)
    return x, k, np.array(slopes)[k] * x + rng.normal(size=len(x))


def _of(x, g):
    local = local_of(x[:, None], g[:, None])
    return rs.std_error(rs.rhale(local, bins=rs.GivenBins(EDGES), weighting="rows"))


def test_p_values_are_those_of_regressions_adjusted_by_holm():
    """The largest of the adjusted p-values that is significant, from both sides."""
    x, k, g = _rows([4.0, 3.0, 0.0, 9.0])
    effect = _of(x, g)
    effect["heterogeneity_se"] = 0 * effect["heterogeneity_se"]
    pvalue = [stats.linregress(x[k == b], g[k == b]).pvalue for b in range(3)]
    # Three bins are tested.
    ranks = np.argsort(np.argsort(pvalue))
    adjusted = np.array(pvalue) * (3 - ranks)
    for b in (0, 1):
        above, below = adjusted[b] * (1 + 1e-9), adjusted[b] * (1 - 1e-9)
        assert linear_bin_error(effect, significance=above).values[0, b]
        assert not linear_bin_error(effect, significance=below).values[0, b]
    found = linear_bin_error(effect, significance=1.1)
    assert found.values[0].tolist() == [True, True, False, False]
    assert (found.dims, found.dtype) == (("feature", "bin"), bool)


@pytest.mark.parametrize("factor", [1 - 1e-9, 1 + 1e-9])
def test_only_a_bias_above_the_standard_error_counts(factor):
    x, k, g = _rows([4.0, 3.0, 0.0, 9.0])
    effect = _of(x, g)
    own = x[k == 0], g[k == 0]
    n, fit = ROWS[0], stats.linregress(*own)
    residual = own[1] - fit.intercept - fit.slope * own[0]
    line = fit.slope**2 * np.var(own[0]) - np.sum(residual**2) / (n - 2) / n
    spread = np.std(own[1], ddof=1)
    bias = spread - np.sqrt(spread**2 - line)
    effect["heterogeneity_se"][0, 0] = bias / factor
    assert linear_bin_error(effect, significance=0.05).values[0, 0] == (factor > 1)


def test_numerical_errors_are_no_bias():
    """A spread that is as small as the error of the local effects; a constant feature."""
    x, _, _ = _rows([0.0] * 4)
    g = 1 + 1e-15 * x
    X = np.column_stack([x, np.ones(len(x))])
    local = local_of(X, np.column_stack([g, g]))
    effect = rs.std_error(rs.rhale(local, bins=rs.GivenBins({"x0": EDGES, "x1": EDGES})))
    assert not linear_bin_error(effect, significance=1.1).any()
