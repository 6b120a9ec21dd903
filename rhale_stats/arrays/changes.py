"""Changes of single rows along an axis, in windows of neighbouring bins (math [112])."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rhale_stats.arrays.moments import FloatArray, IntArray

# Quantiles of single rows: middle half, middle 80 %, median.
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)
MAX_WINDOWS = 24


class Changes(NamedTuple):
    """Windows (window,), quantiles of rows (window, share) and their mean, per unit of x."""

    left: FloatArray
    right: FloatArray
    n_rows: IntArray
    quantiles: FloatArray
    mean: FloatArray


def changes_of_rows(
    edges: FloatArray,
    number: IntArray,
    g: FloatArray,
    weight: FloatArray | None = None,
    most: int = MAX_WINDOWS,
) -> Changes:
    """Distribution of local effects ``g`` of rows in the bins ``number``, by window.

    A row of bin k counts with its share of the bin's weight times the width of the bin, so that the
    mean times the width of the window is the step of the curve across it [112]. Bins without rows
    take no part.
    """
    weight = np.ones(len(g)) if weight is None else weight
    in_bin = np.bincount(number, weight, minlength=len(edges) - 1)
    windows = windows_of(edges, most)
    window = np.searchsorted(windows, number, side="right") - 1
    width = np.diff(edges)
    share = weight * np.where(in_bin > 0, width / np.where(in_bin > 0, in_bin, 1), 0)[number]
    n_windows = len(windows) - 1
    quantiles = np.full((n_windows, len(SHARES)), np.nan)
    mean, n_rows = np.full(n_windows, np.nan), np.zeros(n_windows, dtype=np.int64)
    for place in range(n_windows):
        inside = (window == place) & (share > 0)
        n_rows[place] = inside.sum()
        if n_rows[place]:
            quantiles[place] = np.quantile(
                g[inside], SHARES, weights=share[inside], method="inverted_cdf"
            )
            mean[place] = share[inside] @ g[inside] / share[inside].sum()
    return Changes(edges[windows[:-1]], edges[windows[1:]], n_rows, quantiles, mean)


def windows_of(edges: FloatArray, most: int) -> IntArray:
    """Numbers of the edges of at most ``most`` windows, by joining the narrowest neighbours."""
    places = list(range(len(edges)))
    while len(places) - 1 > most:
        edge = edges[places]
        del places[int(np.argmin(edge[2:] - edge[:-2])) + 1]
    return np.array(places)


def round_step(length: float) -> float:
    """A change of x to speak of: a tenth of an axis or less, as 1 or 5 times a power of ten."""
    if not length > 0:
        return 1.0
    power = 10.0 ** np.floor(np.log10(length / 10))
    return float(5 * power if 5 * power <= length / 10 * (1 + 1e-9) else power)
