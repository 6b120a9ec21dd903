"""Rows of local effects in chunks, read into memory: all of them, or some where they are many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.local.chunks import ChunkedRows
from rhale_stats.local.rows import Rows

# Of more rows so many are read: as many as places are kept of, 16 MB a feature.
MOST_ROWS = 1 << 20


class Sampled(NamedTuple):
    """Some rows of local effects in memory.

    ``rows`` are their numbers among all, ``every`` says whether they are all of positive weight.
    ``source`` are all rows.
    """

    local: xr.Dataset
    rows: IntArray
    every: bool
    source: ChunkedRows

    @property
    def facts(self) -> dict[str, int]:
        """What a result says, as an attribute, if it comes from some of the rows."""
        return {} if self.every else {"n_rows_read": len(self.rows)}


def sampled(local: xr.Dataset, what: str) -> Sampled:
    """Rows of positive weight: all, or one drawn from each of `MOST_ROWS` stretches of them.

    The draws are the same in every call, whatever the chunks. A progress bar counts chunks of
    ``what``.
    """
    source = ChunkedRows(local)
    n_rows = sum(source.lengths)
    number, every = np.arange(n_rows), n_rows <= MOST_ROWS
    if not every:
        first = np.arange(MOST_ROWS + 1) * n_rows // MOST_ROWS
        at = np.random.default_rng(0).integers(first[:-1], first[1:])
        number = np.full(n_rows, -1)
        number[at] = at
    beside = np.split(number, np.cumsum(source.lengths)[:-1])
    found = source.merged(_chosen, _together, what, beside=beside, of_rows=True)
    if not len(found.rows):
        raise ValueError("local must have rows of positive weight among those that are read.")
    names = [name for name in ("x", "local_effect", "weight") if name in local]
    rest = local.drop_vars(names).isel(obs=found.rows)
    data: dict[str, Any] = {
        "x": (("obs", "feature"), found.x, local["x"].attrs),
        "local_effect": (("obs", "feature"), found.local_effect, local["local_effect"].attrs),
    }
    if "weight" in local:
        weight = np.ones(len(found.rows)) if found.weight is None else found.weight
        data["weight"] = ("obs", weight, local["weight"].attrs)
    return Sampled(rest.assign(data), found.rows, every, source)


class _Chosen(NamedTuple):
    """Chosen rows: their numbers, values and local effects (row, feature), and weights."""

    rows: IntArray
    x: FloatArray
    local_effect: FloatArray
    weight: FloatArray | None


def _chosen(rows: Rows, number: IntArray) -> _Chosen:
    """Those rows of a chunk that have a number, which is not below 0."""
    at = np.flatnonzero(number >= 0)
    x, g = (np.column_stack([column[at] for column in one]) for one in (rows.x, rows.local_effect))
    return _Chosen(number[at], x, g, None if rows.weight is None else rows.weight[at])


def _together(chunks: Sequence[_Chosen]) -> _Chosen:
    rows, x, g, weights = zip(*chunks, strict=True)
    weight = None if weights[0] is None else np.concatenate(weights)
    return _Chosen(np.concatenate(rows), np.concatenate(x), np.concatenate(g), weight)
