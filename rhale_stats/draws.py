"""What every bootstrap shares: what is drawn, in which chains, and of which estimates it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from rhale_stats.arrays import resample
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.validate import check_count, row_codes

# Points of the grid on which replicates with bins of their own are compared.
GRID = 101


class Resampling(NamedTuple):
    """What a user asked of `bootstrap`, with a stream of random numbers for every replicate."""

    scheme: str
    groups: ArrayLike | None
    strata: ArrayLike | None
    seeds: Sequence[np.random.Generator]
    rebin: bool
    studentize: bool
    n_grid: int
    progress: bool

    def refuse_choices_of_bins(self) -> None:
        """Raise ``ValueError`` for what results without bins that could be chosen do not have."""
        if self.rebin or self.studentize:
            raise ValueError(
                "rebin and studentize must be False for profiles, surfaces and H-statistics: they "
                "have no bins to choose, and their replicates have no standard errors."
            )

    def units(
        self,
        n_rows: int,
        counts: FloatArray | None,
        used: NDArray[np.bool_],
        labels: NDArray[Any] | None,
    ) -> resample.Units:
        """What is drawn of so many rows, each of which counts so often.

        ``groups`` and ``strata`` are of all rows, which have these labels; ``used`` are those that
        the estimates were made from.
        """
        group, stratum = (
            None if given is None else row_codes(given, labels, used, name)
            for given, name in ((self.groups, "groups"), (self.strata, "strata"))
        )
        n_units = n_rows if group is None else int(group.max()) + 1
        members = [np.arange(n_units)]
        if stratum is not None:
            of_unit = stratum
            if group is not None:
                of_unit = np.empty(n_units, dtype=np.int64)
                of_unit[group] = stratum
                if not np.array_equal(of_unit[group], stratum):
                    raise ValueError(
                        "strata must hold whole groups; some group has rows in two strata."
                    )
            members = [np.flatnonzero(of_unit == code) for code in range(int(stratum.max()) + 1)]
        return resample.Units(group, members, counts if group is None else None)


class Drawn(NamedTuple):
    """Replicates along ``draw``, what was drawn, the result they are of, and facts of their own."""

    replicates: xr.Dataset
    units: resample.Units
    effect: xr.Dataset
    facts: Mapping[str, str]


def check_resamples(n_resamples: int, chains: int) -> None:
    """Raise ``ValueError`` unless the chains are of one length."""
    for name, value in (("n_resamples", n_resamples), ("chains", chains)):
        check_count(name, value, 1)
    if n_resamples % chains:
        raise ValueError(
            f"n_resamples must be a multiple of chains; got {n_resamples} and {chains}. Take "
            f"{n_resamples + chains - n_resamples % chains}."
        )


def in_chains(draws: xr.Dataset, chains: int) -> xr.Dataset:
    """Replicates along ``draw`` as (chain, draw); what has no replicates becomes a coordinate.

    ArviZ takes every variable for draws.
    """
    draws = draws.set_coords([name for name in draws.data_vars if "draw" not in draws[name].dims])
    per_chain = draws.sizes["draw"] // chains
    number = np.arange(draws.sizes["draw"])
    index = pd.MultiIndex.from_arrays(
        [number // per_chain, number % per_chain], names=("chain", "draw_in_chain")
    )
    coords = xr.Coordinates.from_pandas_multiindex(index, "draw")
    out = draws.assign_coords(coords).unstack("draw").rename(draw_in_chain="draw")
    return out.transpose("chain", "draw", ...)
