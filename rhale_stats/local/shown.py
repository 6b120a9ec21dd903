"""The page that shows local effects."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.printing.pages import Page, largest_first, output, rows_text, table_of
from rhale_stats.printing.text import number_text
from rhale_stats.schema.features import feature_names, method_text
from rhale_stats.schema.levels import CATEGORICAL


def local_page(local: xr.Dataset, most: int) -> Page:
    """The page that shows local effects: facts, and a table with one line for each feature."""
    names = feature_names(local)
    kind = local["feature_kind"].values.astype(str)
    values, x = [local[name].transpose("feature", "obs").values for name in ("local_effect", "x")]
    is_finite = np.isfinite(values)
    n = is_finite.sum(axis=1)
    some = np.maximum(n, 1)
    filled = np.where(is_finite, values, 0.0)
    mean = np.where(n > 0, filled.sum(axis=1) / some, np.nan)
    spread = np.sqrt((np.where(is_finite, values - mean[:, None], 0.0) ** 2).sum(axis=1) / some)
    strength = np.sqrt((filled**2).sum(axis=1) / some) * _spread(x, kind)
    order = largest_first(np.where(n > 0, strength, np.nan))[:most]
    lines = [
        [
            names[position],
            kind[position],
            str(n[position]),
            *map(number_text, (strength[position], mean[position], spread[position])),
        ]
        for position in order
    ]
    return Page(
        f"Local effects on {output(local)}",
        (f"{rows_text(local)}; {method_text(local)}",),
        (
            table_of(
                ["", "kind", "rows", "strength", "mean", "std dev"],
                lines,
                len(names),
                "features",
                "strength: root mean square of the local effects times the standard deviation of "
                "the feature; for levels, root mean square of the differences.",
            ),
        ),
        "rhale(local)",
    )


def _spread(x: NDArray[np.float64], kind: NDArray[np.str_]) -> NDArray[np.float64]:
    """Standard deviation of every feature; 1 for levels, which are one step apart."""
    is_finite = np.isfinite(x)
    n = np.maximum(is_finite.sum(axis=1), 1)
    mean = np.where(is_finite, x, 0.0).sum(axis=1) / n
    variance = (np.where(is_finite, x - mean[:, None], 0.0) ** 2).sum(axis=1) / n
    return np.where(np.isin(kind, CATEGORICAL), 1.0, np.sqrt(variance))
