"""Variances of bin effects where edges were chosen on the same rows (math [24])."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rhale_stats.arrays.chosen_edges import Along, added_variance
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.effects.fit import CurveErrors
from rhale_stats.schema.curves import pieces_of
from rhale_stats.schema.moments import has_cells

# Rules that place every edge by the local effects.
PLACED = ("AdaptiveBins", "OptimalBins")


def includes_choice(effect: xr.Dataset) -> bool:
    """Whether standard errors of bin effects include the choice of edges."""
    searched = effect.attrs["bin_rule"] in PLACED and "honest_seed" not in effect.attrs
    return searched and "cell_effect" in effect


def effect_variance(row: xr.Dataset, fit: CurveErrors) -> FloatArray:
    """Variances of the effects of one feature's bins, about the targets of these bins."""
    cells = fit.cells
    variance = cells.effect_variance()
    if not includes_choice(row) or not has_cells(row):
        return variance
    pieces, bins = cells.pieces, pieces_of(row)
    along = Along.from_cells(pieces.edges, pieces.mean, cells.noise.mean, cells.n_effective)
    ends = np.stack([bins.edges[:-1], bins.edges[1:]])
    at_edges = bins.mean + bins.slope * (ends - bins.x_mean)
    return np.asarray(variance + added_variance(along, cells.bin, at_edges, bins.slope))
