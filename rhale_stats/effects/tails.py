"""Whether tails of local effects are too heavy for intervals of their spread (math [64])."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rhale_stats.printing.text import number_text
from rhale_stats.schema.features import feature_names, feature_position, is_grouped

# Kurtosis beyond which nominal 95 % intervals of the heterogeneity cover less than about 90 % with
# 100 rows; 3 for normal effects.
HEAVY = 4.5


def kurtosis(effect: xr.Dataset) -> np.ndarray:
    """Kurtosis of the local effects about the fits of their bins, all bins together, (feature,).

    NaN where no bin has a spread.
    """
    spread, fourth, n = (
        effect.variables[name].values for name in ("heterogeneity", "fourth_moment", "n_effective")
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        own = fourth / spread**4
    known = np.isfinite(own) & (spread > 0) & (n >= 4)
    rows = np.where(known, n, 0.0)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.sum(np.where(known, own, 0.0) * rows, axis=-1) / rows.sum(axis=-1))


def tail_notes(effect: xr.Dataset, feature: str | int | None) -> list[str]:
    """Note on features whose tails make intervals of the heterogeneity too short."""
    if "fourth_moment" not in effect or "heterogeneity_se" not in effect:
        return []
    names, found = feature_names(effect), kurtosis(effect)
    at = range(len(names)) if feature is None else [feature_position(effect, feature)]
    said = [f"{names[one]} ({number_text(found[one])})" for one in at if found[one] > HEAVY]
    if not said:
        return []
    # Errors by groups and by parameters have no skewness.
    none = is_grouped(effect) or "parameters" in effect.attrs
    others = "" if none else "; those of effects and curves allow for skewness"
    return [
        f"Local effects have heavy tails (kurtosis, 3 for normal ones): {', '.join(said)}. "
        f"Intervals of heterog. are too short there, see docs/validity.md{others}."
    ]
