"""Tests of no difference between two profiles."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from rhale_stats import profile_inference
from rhale_stats.schema import feature_names
from rhale_stats.tests_of import CONSTANT, difference_of, labelled_differences, no_difference


def compare(
    a: xr.Dataset,
    b: xr.Dataset,
    paired: tuple[xr.Dataset, xr.Dataset] | None,
    groups: object,
    level: float,
    n_draws: int,
    rng: Any,
    adjust: str,
) -> xr.Dataset:
    """`compare` of two profiles on one grid, which may be paired by their ICE curves."""
    a, b = profile_inference.with_errors(a, "a"), profile_inference.with_errors(b, "b")
    for name in ("centering", "method"):
        kinds = [str(one.attrs[name]).replace("ice", "pdp") for one in (a, b)]
        if kinds[0] != kinds[1]:
            raise ValueError(
                f"a and b must have the same {name}; got {kinds[0]!r} and {kinds[1]!r}. Make both "
                f"with the same."
            )
    if groups is not None:
        raise ValueError("groups must be None for profiles, whose rows are independent.")
    names = [name for name in feature_names(a) if name in feature_names(b)]
    if not names:
        raise ValueError(
            f"a and b must have a feature in common; got {', '.join(feature_names(a))} and "
            f"{', '.join(feature_names(b))}."
        )
    a, b = a.sel(feature=names), b.sel(feature=names)
    pairs = None if paired is None else profile_inference.check_pairs(paired, (a, b))
    found = []
    for name, stream in zip(names, np.random.default_rng(rng).spawn(len(names)), strict=True):
        one = profile_inference.compared(a, b, name, pairs)
        found.append(
            difference_of(one.grid, one.values, one.covariance, one.degrees, level, n_draws, stream)
            if len(one.grid)
            else no_difference(CONSTANT)
        )
    source = "rows against rows, independent" if pairs is None else "pairs of rows"
    return labelled_differences(found, a, b, names, source, level, adjust)
