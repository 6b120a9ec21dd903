"""A profile with numbers that are easy to follow, whatever model it could be of."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

NAN = np.nan


@pytest.fixture
def known():
    """A number at three points, a category of two levels and a constant, of 10 rows."""
    curve = np.array([[-1.0, 0.5, 2.0], [0.25, -0.75, NAN], [NAN] * 3])
    se = np.array([[0.1, 0.2, 0.4], [0.05, 0.08, NAN], [NAN] * 3])
    points, square = ("feature", "grid"), ("feature", "grid", "grid_other")
    about = {"source": "rows", "target": "curve"}
    covariance = np.stack([np.diag(one**2) for one in se])
    share = np.array([[0.25, 0.5, 0.25], [0.4, 0.6, NAN], [NAN] * 3])
    data = {
        "curve": (points, curve, {"estimator": "mean of the ICE curves, math [41]"}),
        "curve_se": (points, se, about),
        "curve_cov": (square, covariance, about),
        "curve_std": (points, 10 * se),
        "curve_offset": ("feature", [7.0, 8.0, NAN]),
        "weight_share": (points, share),
        "importance": ("feature", [1.5, 3.0, NAN]),
        "heterogeneity_output": ("feature", [0.9, 0.6, NAN]),
        "n_obs": ("feature", [10, 9, 10]),
        "n_effective": ("feature", [10.0, 9.0, 10.0]),
    }
    levels = np.array([["", "", ""], ["u", "v", ""], ["", "", ""]])
    coords = {
        "feature": ["a", "k", "one"],
        "feature_kind": ("feature", ["continuous", "nominal", "constant"]),
        "feature_units": ("feature", ["mg", "", ""]),
        "n_grid": ("feature", [3, 2, 0]),
        "grid_value": (points, [[1.0, 2.5, 4.0], [0.0, 1.0, NAN], [NAN] * 3]),
        "level": (points, levels),
    }
    attrs = {
        "method": "pdp",
        "centering": "mean",
        "weight_kind": "none",
        "output_name": "price",
        "output_units": "EUR",
        "n_rows": 10,
        "model_rows": 50,
    }
    return xr.Dataset(data, coords, attrs)
