"""Whether tails of local effects, or weights, make intervals too short (math [92], [93])."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rhale_stats.printing.text import number_text
from rhale_stats.schema.features import (
    feature_names,
    feature_position,
    one_feature,
    resolution,
)
from rhale_stats.schema.moments import has_moments, in_bins

# Kurtosis of heavy tails; 3 for normal effects.
HEAVY = 4.5
# Rows a bin from which on intervals hold under skewness, and under weights without it.
ENOUGH, FEW = 30, 10
# Rows a bin from which on bands of effects hold where a value is rare: a bin may hold none of it.
ENOUGH_OF_BANDS = 100


def kurtosis(effect: xr.Dataset) -> np.ndarray:
    """Kurtosis of the local effects about the fits of their bins, all bins together, (feature,).

    NaN where no bin has a spread beyond the numerical error of the local effects.
    """
    spread, n = (effect.variables[name].values for name in ("heterogeneity", "n_effective"))
    features = [one_feature(effect, name) for name in feature_names(effect)]
    (fourth,) = in_bins(features, ["fourth_moment"], effect.sizes["bin"])
    with np.errstate(invalid="ignore", divide="ignore"):
        own = fourth / spread**4
    known = np.isfinite(own) & (spread > _numerical(effect)) & (n >= 4)
    rows = np.where(known, n, 0.0)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.sum(np.where(known, own, 0.0) * rows, axis=-1) / rows.sum(axis=-1))


def _numerical(effect: xr.Dataset) -> np.ndarray:
    """Numerical errors of local effects, (feature, 1)."""
    errors, means = (effect.variables[name].values for name in ("local_effect_error", "effect"))
    pairs = zip(means, np.ravel(errors), strict=True)
    return np.array([[resolution(mean, float(error))] for mean, error in pairs])


def tail_notes(effect: xr.Dataset, feature: str | int | None) -> list[str]:
    """Notes on features whose tails or weights make intervals too short."""
    if not has_moments(effect) or "heterogeneity_se" not in effect:
        return []
    names = feature_names(effect)
    at = list(range(len(names))) if feature is None else [feature_position(effect, feature)]
    return _of_tails(effect, names, at) + _of_weights(effect, names, at)


def _of_tails(effect: xr.Dataset, names: list[str], at: list[int]) -> list[str]:
    found = kurtosis(effect)
    heavy = [one for one in at if found[one] > HEAVY]
    said = [f"{names[one]} ({number_text(found[one])})" for one in heavy]
    if not said:
        return []
    # Those by parameters are as wide as the error of the model says.
    short = (
        "are too short there"
        if "parameters" in effect.attrs
        else f"allow for it, but are too short with fewer than {ENOUGH} rows a bin or 3 bins"
    )
    # Errors by parameters alone have no skewness.
    others = ""
    if "effect_skewness" in effect:
        rows = effect["n_effective"].values[heavy]
        rows = rows[(rows > 0).sum(axis=-1) > 1]
        short_bands = bool(((rows > 0) & (rows < ENOUGH_OF_BANDS)).any())
        others = "; those of effects and curves allow for skewness" + (
            f", but bands of effects are too narrow with fewer than {ENOUGH_OF_BANDS} rows a bin"
            if short_bands
            else ""
        )
    return [
        f"Local effects have heavy tails (kurtosis, 3 for normal ones): {', '.join(said)}. "
        f"Intervals of heterog. {short}, see docs/validity.md{others}."
    ]


def _of_weights(effect: xr.Dataset, names: list[str], at: list[int]) -> list[str]:
    """Features in whose bins a few rows of large precision weight decide on the errors."""
    if "error_rows" not in effect or "skewness_sign" not in effect:
        return []
    rows, sign = (effect.variables[name].values for name in ("error_rows", "skewness_sign"))
    said = []
    for one in at:
        of_bins = rows[one][np.isfinite(rows[one]) & (rows[one] > 0)]
        enough = FEW if sign[one] == 0 else ENOUGH
        if len(of_bins) and np.median(of_bins) < enough:
            said.append(f"{names[one]} ({np.median(of_bins):.0f})")
    if not said:
        return []
    return [
        f"Few rows of large weight decide on the standard errors (effective rows in half of the "
        f"bins at most): {', '.join(said)}. Intervals are too short and tests reject too often if "
        f"weights depend on local effects, see docs/validity.md."
    ]
