"""Sizes and bounds of the test of splits: ``python vignettes/studies split_sizes 1000``.

These are the figures of math [39]: how often the root is split at 5 % though the mean of the local
effects depends on no column, whatever the drop, and how small the bound of the p-value gets.
"""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import xarray as xr

from rhale_stats.arrays import regions as search
from rhale_stats.local.local_effects import local_effects
from rhale_stats.regional.regions import regions
from rhale_stats.regional.search import SplitSearch, tried_of, work_of
from studies.validity_rows import region_rows

CASES = (
    ("binary, sd 6 and 1, share .08", 300),
    ("binary, sd 6 and 1, share .15", 100),
    ("spread by exp(a), log-normal", 300),
    ("binary by z", 300),
    ("log-normal", 300),
    ("clustered, ICC .7", 100),
    ("clustered, ICC .2", 300),
)
N_SAMPLES, BOUNDS = 400, (1e-3, 1e-5, 1e-6, 1e-8)
SETTINGS = SplitSearch(max_depth=1, min_drop=0.0, n_permutations=99)


def bound(local: xr.Dataset, columns: pd.DataFrame, rng: np.random.Generator) -> float:
    """Bound of the p-value of the best split of all rows."""
    work = work_of(local, None, SETTINGS, "index", None, rng)
    problem = work.problem(0)
    assert problem is not None, "the feature varies"
    node = problem.node(work.search, SETTINGS.min_share)
    tried = tried_of(work.conditioning(columns, "x0"), node, SETTINGS, {})
    test = node.test()
    degrees = np.concatenate(test.of_splits(test.degrees, tried), axis=1)
    return search.at_most(float(test.largest(tried).max()), degrees[degrees > -np.inf])


def main(n_samples: int, first: int) -> None:
    """Print a line a case, from the case of this number on."""
    for number, (case, n) in list(enumerate(CASES))[first:]:
        rng = np.random.default_rng(number)
        split, bounds = [], []
        for _ in range(n_samples):
            z, drawn = region_rows(case, n, rng)
            local = local_effects(None, z[:, None], jacobian=drawn.effect[:, None])
            tree = regions(
                local,
                0,
                conditioning=drawn.columns,
                search=SETTINGS,
                groups=drawn.groups,
                rng=rng,
            )
            split.append(tree.sizes["node"] > 1)
            if drawn.groups is None:
                bounds.append(bound(local, drawn.columns, rng))
        size = np.mean(split)
        error = np.sqrt(size * (1 - size) / n_samples)
        text = f"{case}, N = {n}: split in {100 * size:.1f} ({100 * error:.1f}) %"
        if bounds:
            shares = [100 * np.mean(np.array(bounds) < one) for one in BOUNDS]
            said = [f"{one:g}: {share:.1f} %" for one, share in zip(BOUNDS, shares, strict=True)]
            text += f"; bound below {', '.join(said)}; smallest {min(bounds):.1e}"
        print(text, flush=True)


if __name__ == "__main__":
    given = [int(one) for one in sys.argv[1:3]]
    main(*given, *(N_SAMPLES, 0)[len(given) :])
