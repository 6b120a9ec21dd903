"""H-statistics as pandas frames: a line a feature and a pair, or one line in all."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from rhale_stats.h_statistics import OTHER
from rhale_stats.schema import feature_names

# What a line of `tidy` is of.
OVERALL, PAIR = "overall", "pair"


def tidy(found: xr.Dataset) -> pd.DataFrame:
    """A line a feature, then a line a pair."""
    names = feature_names(found)
    frames = [
        pd.DataFrame({"term": names, "kind": OVERALL}).assign(
            h2=found["h2_overall"].values, h=found["h_overall"].values
        )
    ]
    if "h2_pairwise" in found:
        others = found[OTHER].values.astype(str).tolist()
        # A pair once, whichever features are left.
        pairs = {
            frozenset((a, b)): (j, k)
            for j, a in reversed(list(enumerate(names)))
            for k, b in reversed(list(enumerate(others)))
            if a != b
        }
        at = np.array(sorted(pairs.values()), dtype=np.int64).reshape(-1, 2).T
        h2, h = (
            found[name].transpose("feature", OTHER).values[at[0], at[1]]
            for name in ("h2_pairwise", "h_pairwise")
        )
        terms = [f"{names[j]}:{others[k]}" for j, k in at.T]
        frames.append(pd.DataFrame({"term": terms, "kind": PAIR, "h2": h2, "h": h}))
    return pd.concat(frames, ignore_index=True)


def glance(found: xr.Dataset) -> pd.DataFrame:
    """One line: all interactions, and what they were computed from."""
    attrs = found.attrs
    line = {
        "h2": found["h2"].item(),
        "h": found["h"].item(),
        "kind": attrs["h_kind"],
        "n_features": found.sizes["feature"],
        **{name: attrs[name] for name in ("n_rows", "n_rows_total", "n_model_calls")},
        "n_model_rows": attrs["n_model_rows"],
    }
    return pd.DataFrame([line])
