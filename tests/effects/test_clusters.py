"""Blocks of cells from whose means residuals of groups are taken."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from rhale_stats.effects.clusters import GROUPS_OF_BLOCK, blocks


def test_blocks_have_enough_groups_and_stay_in_their_bin():
    """Every cell has a group of its own; what is left at the end of a bin is joined."""
    most = GROUPS_OF_BLOCK
    n_cells = [2 * most + 1, most - 1, most + 1]
    of_bin = np.repeat([0, 1, 2], n_cells)
    cells = SimpleNamespace(bin=of_bin, n_bins=lambda: 3)
    every = np.arange(len(of_bin))
    expected = [0] * most + [1] * (most + 1) + [2] * (most - 1) + [3] * (most + 1)
    # Two rows a cell, in any order.
    rows = np.random.default_rng(0).permutation(np.repeat(every, 2))
    # A block that was joined leaves its number out.
    found = blocks(cells, rows, rows)
    assert np.unique(found, return_inverse=True)[1].tolist() == expected
    # Groups that are in all cells are counted once: a block for each bin.
    same = blocks(cells, np.repeat(every, 2), np.tile([0, 1], len(every)))
    assert np.unique(same, return_inverse=True)[1].tolist() == of_bin.tolist()
    # Bins that are cells are their own blocks.
    alone = SimpleNamespace(bin=np.arange(4), n_bins=lambda: 4)
    assert blocks(alone, np.arange(4), np.zeros(4, int)).tolist() == [0, 1, 2, 3]
