"""Samples and folds of a user's table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from rhale_stats.ensembles.refits import RefitTable

FRAME = pd.DataFrame({"a": [1, 2, 3, 4], "k": list("uvuv")}, index=list("wxyz"))
FRAME.attrs["units"] = {"a": "mg"}
# Groups out of order: 0 has the rows 1 and 4, 1 has 0, 2 has 2, 3 and 5.
GROUPS = np.array([1, 0, 2, 2, 0, 2])


def test_rows_are_taken_with_types_and_attributes():
    table = RefitTable.read(FRAME, None, None)
    found = table.take(np.array([2, 0, 2]))
    pd.testing.assert_frame_equal(found, pd.DataFrame({"a": [3, 1, 3], "k": list("uuu")}))
    assert found.attrs == FRAME.attrs
    pd.testing.assert_frame_equal(table.whole, FRAME)
    array = RefitTable.read(np.arange(6.0).reshape(3, 2), None, None)
    assert_array_equal(array.take(np.array([2, 0])), [[4, 5], [0, 1]])
    whole = array.whole
    whole[:] = 0
    assert array.data.any()


def test_units_are_rows_or_groups():
    assert RefitTable.read(FRAME, None, None).n_units == 4
    by_groups = RefitTable.read(np.zeros((6, 1)), GROUPS, None)
    assert by_groups.n_units == 3
    assert_array_equal(by_groups.rows_of(np.array([2, 0, 2])), [2, 3, 5, 1, 4, 2, 3, 5])
    assert_array_equal(RefitTable.read(FRAME, None, None).rows_of(np.array([3, 3, 0])), [3, 3, 0])
    by_index = RefitTable.read(FRAME, pd.Series([0, 0, 1, 1], index=list("zyxw")), None)
    assert_array_equal(by_index.rows_of(np.array([0])), [2, 3])


def test_samples_are_of_the_units_of_each_stratum():
    table = RefitTable.read(np.zeros((10, 1)), None, np.repeat([0, 1], [3, 7]))
    rng = np.random.default_rng(0)
    seen = np.array([np.bincount(table.drawn(None, rng), minlength=10) for _ in range(400)])
    assert_array_equal(seen[:, :3].sum(axis=1), 3)
    assert_array_equal(seen[:, 3:].sum(axis=1), 7)
    # A row is drawn once on average, with a variance of 1 - 1 / n: four errors.
    assert np.abs(seen.mean(axis=0) - 1).max() < 4 / np.sqrt(400)
    sizes = [1, 4]
    seen = np.array([table.drawn(sizes, rng) for _ in range(200)])
    assert (np.diff(seen, axis=1) > 0).all()
    assert ((seen < 3).sum(axis=1) == 1).all()
    assert set(seen.ravel()) == set(range(10))


def test_folds_take_every_unit_in_turn():
    table = RefitTable.read(np.zeros((6, 1)), GROUPS, None)
    folds = table.folds(2, np.random.default_rng(0))
    order = np.random.default_rng(0).permutation(3)
    expected = [np.sort(np.flatnonzero(np.isin(GROUPS, order[first::2]))) for first in range(2)]
    for found, own in zip(folds, expected, strict=True):
        assert_array_equal(found, own)


@pytest.mark.parametrize(
    ("share", "sizes"), [(0.5, [2, 4, 1]), (0.05, [1, 1, 1]), (0.9, [4, 7, 1]), (0.632, [3, 5, 1])]
)
def test_sizes_of_subsamples(share, sizes):
    """At least one of every stratum, and no more than it has."""
    table = RefitTable.read(np.zeros((13, 1)), None, np.repeat([0, 1, 2], [4, 8, 1]))
    assert table.subsample_sizes(share) == sizes
    alone = RefitTable.read(np.zeros((3, 1)), None, np.arange(3))
    with pytest.raises(ValueError, match="some of the 3 rows or groups; a share of 0.5 of every"):
        alone.subsample_sizes(0.5)
