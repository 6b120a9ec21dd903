"""Statistics of the local effects in a bin, each with its formula and its public function.

`rhale` is the function of the mean. It has formulas of its own: of moments, which give standard
errors, tests and sizes without replicates. A statistic of this table has replicates only.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from rhale_stats.arrays.moments import FloatArray
from rhale_stats.effects.in_bins import Statistic
from rhale_stats.schema.checks import statistic_name


def _mean(g: FloatArray, weight: FloatArray) -> FloatArray:
    """math [5]."""
    return np.asarray(g @ weight / weight.sum(axis=0))


STATISTICS: dict[str, Statistic] = {
    one.name: one
    for one in (Statistic("mean", "mean of the local effects in the bin, math [5]", _mean),)
}


def statistic_of(effect: xr.Dataset) -> Statistic:
    """The statistic that effects in bins are of; ``ValueError`` where its formula is not here."""
    name = statistic_name(effect)
    if name not in STATISTICS:
        raise ValueError(
            f"effect must be of a statistic that has a formula here, {' or '.join(STATISTICS)}; "
            f"got {name!r}. Without its formula there are no replicates."
        )
    return STATISTICS[name]
