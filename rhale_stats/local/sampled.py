"""Rows of local effects in chunks, read into memory: all of them, or some where they are many."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from rhale_stats.arrays.moments import IntArray
from rhale_stats.local.chunks import ChunkedRows

# Of more rows so many are read: as many as places are kept of, 16 MB a feature.
MAX_ROWS = 1 << 20


class Sampled(NamedTuple):
    """Some rows of local effects in memory.

    ``rows`` are their numbers among all, ``every`` says whether they are all. ``source`` are all
    rows.
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
    """All rows, or one drawn from each of `MAX_ROWS` stretches of them.

    The draws are the same in every call, whatever the chunks. A progress bar counts chunks of
    ``what``.
    """
    source = ChunkedRows(local, precise=True)
    n_rows = sum(source.lengths)
    number, every = np.arange(n_rows), n_rows <= MAX_ROWS
    if not every:
        first = np.arange(MAX_ROWS + 1) * n_rows // MAX_ROWS
        drawn = np.random.default_rng(0).integers(first[:-1], first[1:])
        number = np.full(n_rows, -1)
        number[drawn] = drawn
    chosen = source.chosen(number, what)
    names = [name for name in ("x", "local_effect", "weight") if name in local]
    rest = local.drop_vars(names).isel(obs=chosen.rows, missing_dims="ignore")
    dims = ("obs", "feature")
    data: dict[str, Any] = {
        "x": (dims, chosen.x, local["x"].attrs),
        "local_effect": (dims, chosen.local_effect, local["local_effect"].attrs),
    }
    if chosen.weight is not None:
        data["weight"] = ("obs", chosen.weight, local["weight"].attrs)
    return Sampled(rest.assign(data), chosen.rows, every, source)
