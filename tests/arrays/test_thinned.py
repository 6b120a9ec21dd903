"""Places of many rows, summarised."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rhale_stats.arrays import binning as kernel
from tests.helpers import frozen


def test_places_of_chunks():
    assert kernel.most_of_chunk(1) == 1 << 20
    assert kernel.most_of_chunk(4) == 1 << 18
    assert kernel.most_of_chunk(10**6) == 1000
    x, weight = kernel.together([(np.ones(2), None), (np.zeros(1), None)])
    assert_array_equal(x, [1, 1, 0])
    assert weight is None
    x, weight = kernel.together([(np.ones(2), None), (np.zeros(1), np.full(1, 3.0))])
    assert_array_equal(weight, [1, 1, 3])


def test_few_values_are_sorted_only():
    x, weight = frozen([3.0, 1.0, 2.0]), frozen([30.0, 10.0, 20.0])
    assert_array_equal(kernel.thinned(x, None, 3)[0], [1, 2, 3])
    assert kernel.thinned(x, None, 3)[1] is None
    assert_array_equal(kernel.thinned(x, weight, 3), [[1, 2, 3], [10, 20, 30]])


@pytest.mark.parametrize("weighted", [False, True])
def test_ranks_stay_where_they_are(rng, weighted):
    n, most = 20_000, 1000
    x = frozen(np.concatenate([rng.normal(size=n // 2), 50 + rng.normal(size=n // 2)]))
    own = frozen(rng.uniform(0.5, 1.5, n)) if weighted else None
    w = np.ones(n) if own is None else own
    kept, weight = kernel.thinned(x, own, most)
    assert len(kept) <= 1.5 * most
    assert (np.diff(kept) > 0).all()
    assert_allclose(weight.sum(), w.sum())
    order = np.argsort(x)
    below = np.cumsum(w[order])[np.searchsorted(x[order], kept, side="right") - 1]
    assert_allclose(np.cumsum(weight), below)
    # Half of the values that are asked for are evenly spaced in their ranks.
    assert weight.max() <= np.ceil((n - 1) / (most / 2 - 1)) * w.max()
    # The outermost rows, and both ends of the gap.
    ordered = x[order]
    assert_array_equal(kept[:50], ordered[:50])
    assert_array_equal(kept[-50:], ordered[-50:])
    assert np.isin(ordered[[n // 2 - 1, n // 2]], kept).all()
    widest = np.argsort(np.diff(ordered))[-most // 8 :]
    assert np.isin(ordered[np.concatenate([widest, widest + 1])], kept).all()
