"""One convention of randomness: what ``rng`` may be, and the seed that a result keeps."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, cast

import numpy as np
import xarray as xr

from rhale_stats.arguments.checks import check_rng

P = ParamSpec("P")
# Seeds that are drawn: netCDF and every double hold them exactly.
SEEDS = 2**53
# The seed in results of a Generator, which has no number.
NO_SEED = -1


def source_of(rng: np.random.Generator | int | None) -> tuple[np.random.Generator, int]:
    """A Generator, and the seed that makes it again; with None a new seed is drawn."""
    check_rng("rng", rng)
    if isinstance(rng, np.random.Generator):
        return rng, NO_SEED
    if rng is None:
        rng = seed_of(rng)
    return np.random.default_rng(rng), int(rng)


def number_of(rng: np.random.Generator | int | None) -> int:
    """A seed for one drawing: the one that was given, or one that is drawn."""
    generator, seed = source_of(rng)
    return seed_of(generator) if seed == NO_SEED else seed


def seed_of(rng: np.random.Generator | int | None) -> int:
    """A number that reproduces what is drawn next, to be kept with the result."""
    generator = np.random.default_rng() if rng is None else source_of(rng)[0]
    return int(generator.integers(SEEDS))


def seeded(function: Callable[P, xr.Dataset]) -> Callable[P, xr.Dataset]:
    """Let a function have a Generator as ``rng``, and keep the seed of it in its result."""

    @wraps(function)
    def with_seed(*args: P.args, **kwargs: P.kwargs) -> xr.Dataset:
        generator, seed = source_of(cast(Any, kwargs.get("rng")))
        call: Callable[..., xr.Dataset] = function
        return call(*args, **{**kwargs, "rng": generator}).assign_attrs(seed=seed)

    return with_seed
