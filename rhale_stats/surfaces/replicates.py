"""Bootstrap of surfaces (math [29])."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from rhale_stats.arrays import resample
from rhale_stats.arrays import second_order as kernel
from rhale_stats.inference.draws import Drawn, Resampling
from rhale_stats.schema.identity import OF_ESTIMATE, estimate_fingerprint, row_labels
from rhale_stats.surfaces.labelled import AT_EDGES, IN_CELLS
from rhale_stats.surfaces.rows import Rows

# Draws at once: so many numbers of weights.
CHUNK = 1 << 23


def bootstrap(surface: xr.Dataset, effect: object, asked: Resampling) -> Drawn:
    """`bootstrap` of a surface, which has its rows with it."""
    asked.refuse_choices_of_bins()
    if effect is not None:
        raise ValueError(
            "bootstrap of a surface of ale2 takes the surface alone: bootstrap(surface)."
        )
    rows = Rows.of(surface)
    counts = rows.weight if rows.frequency else None
    units = asked.units(len(rows.weight), counts, rows.used, row_labels(surface))
    drawn = replicates(surface, rows, asked.scheme, units, asked.seeds)
    of_estimate = estimate_fingerprint(surface, ["second_effect"])
    return Drawn(drawn, units, surface, {"bins": "fixed", OF_ESTIMATE: of_estimate})


def replicates(
    surface: xr.Dataset,
    rows: Rows,
    scheme: str,
    units: resample.Units,
    seeds: Sequence[np.random.Generator],
) -> xr.Dataset:
    """Replicates along ``draw`` of everything that `ale2` estimates, math [29]."""
    influence = rows.influence(surface)
    size = int(np.clip(CHUNK // len(rows.weight), 1, 64))
    parts = []
    for begin in range(0, len(seeds), size):
        drawn = resample.weights_of(scheme, units, seeds[begin : begin + size], len(rows.weight))
        parts.append(kernel.replicates(influence, *rows.arrays(), drawn))
    mean, at_edges, n_filled = (np.concatenate(one) for one in zip(*parts, strict=True))
    at_edges = np.where(surface["surface"].notnull().values, at_edges, np.nan)
    kept = ("second_effect", "surface")
    coords = {
        name: one
        for name, one in surface.coords.items()
        if {"obs", "side_a", "side_b"}.isdisjoint(one.dims)
    }
    return xr.Dataset(
        {
            **{
                name: (("draw", *dims), values, dict(surface[name].attrs))
                for name, dims, values in zip(
                    kept, (IN_CELLS, AT_EDGES), (mean, at_edges), strict=True
                )
            },
            "n_filled": (
                "draw",
                n_filled,
                {"long_name": "empty cells of the replicate", "units": "cells"},
            ),
        },
        coords,
    )
