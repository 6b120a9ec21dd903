"""H-statistics with numbers that are easy to follow, whatever model they could be of."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

NAN = np.nan


def square(ab, ac, bc):
    """What three pairs have, as a square of features."""
    return np.array([[NAN, ab, ac], [ab, NAN, bc], [ac, bc, NAN]])


@pytest.fixture
def known():
    """Three features, in 12 of 20 rows; standard errors are a tenth, of 7.5 degrees of freedom."""
    pair = ("feature", "feature_other")
    values = {
        "h2": ((), 0.5),
        "h": ((), 2.0),
        "h2_overall": (("feature",), np.array([0.2, 0.4, 0.1])),
        "h_overall": (("feature",), np.array([1.0, 2.0, 3.0])),
        "h2_pairwise": (pair, square(0.3, 0.6, 0.1)),
        "h_pairwise": (pair, square(1.5, 0.5, 2.5)),
    }
    data = {}
    for name, (dims, value) in values.items():
        units = "1" if name.startswith("h2") else "output"
        data[name] = (dims, value, {"long_name": f"long name of {name}", "units": units})
        about = {"long_name": "error", "units": units, "source": "rows", "target": "the same"}
        data[f"{name}_se"] = (dims, np.multiply(value, 0.1), about)
    attrs = {
        "method": "H-statistics",
        "h_kind": "pdp",
        "normalize": 1,
        "n_features": 3,
        "n_rows": 12,
        "n_rows_total": 20,
        "n_rows_missing": 0,
        "row_seed": 7,
        "weight_kind": "none",
        "n_model_calls": 5,
        "n_model_rows": 888,
        "n_pairs_left_out": 0,
        "n_groups": 9,
        "groups_df": 7.5,
        "output_name": "price",
        "output_units": "EUR",
    }
    names = ["a", "b", "c"]
    return xr.Dataset(data, {"feature": names, "feature_other": names}, attrs)


@pytest.fixture
def difference():
    """Two H-statistics compared: 14 differences, 0.1, 0.2 and so on; their p-values go down."""
    made, number = {}, 0
    pair = ("feature", "feature_other")
    for suffix, dims, n in (("", (), 1), ("_overall", ("feature",), 3), ("_pairwise", pair, 3)):
        for stem in ("h2", "h"):
            each = np.arange(number + 1, number + n + 1) / 10
            number += n
            value = {1: each[0], 3: each}[n] if not dims[1:] else square(*each)
            name = f"{stem}{suffix}"
            made[f"{name}_difference"] = dims, value
            made[f"{name}_difference_se"] = dims, value / 10
            made[f"{name}_p_value"] = dims, (1.5 - value) / 10
            made[f"{name}_p_value_adjusted"] = dims, (1.5 - value) / 5
            ends = np.stack([value - 0.01, value + 0.02], axis=-1)
            made[f"{name}_difference_ci"] = (*dims, "ci_bound"), ends, {"ci_prob": 0.9}
    attrs = {
        "method": "difference of H-statistics",
        "output_name": "price",
        "output_units": "EUR",
        "source": "pairs of rows",
        "adjust": "holm",
    }
    names = ["a", "b", "c"]
    return xr.Dataset(made, {"feature": names, "feature_other": names}, attrs)
