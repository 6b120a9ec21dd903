"""Notes and a table of the spread in bins of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from rhale_stats.arrays.moments import FloatArray
from rhale_stats.effects.spread import spread_estimate
from rhale_stats.inference.estimate import by_errors, kept_interval
from rhale_stats.printing.text import interval_labels, number_text
from rhale_stats.schema.features import feature_names, feature_position, units_in

if TYPE_CHECKING:
    from statsmodels.iolib.table import SimpleTable

# Largest spread over the smallest one in a bin of the effect, from which a note says so.
NOTABLE = 1.5
# Least share of a bin, or of a bin of the spread, that both have in common, for that note.
OVERLAP = 0.05
# Most lines of the table of the spread.
MAX_LINES = 20


def within_bins(row: xr.Dataset) -> FloatArray:
    """Smallest and largest spread in every bin of the effect of one feature, (end, bin)."""
    return _within(*(row[name].values for name in ("edge_value", "spread_edge_value", "spread")))


def _within(edges: FloatArray, spread_edges: FloatArray, spread: FloatArray) -> FloatArray:
    """Lowest and highest spread, by ``spread_edges``, in the bins between ``edges``.

    A bin of the spread that only a twentieth of the bin, or less, belongs to does not count there.
    """
    left, right = edges[:-1, None], edges[1:, None]
    if len(spread_edges) < 2:
        return np.full((2, len(left)), np.nan)
    shared = np.minimum(right, spread_edges[1:]) - np.maximum(left, spread_edges[:-1])
    counts = shared > OVERLAP * np.minimum(right - left, np.diff(spread_edges))
    low, high = (np.where(counts, spread, end) for end in (np.inf, -np.inf))
    return np.stack([low.min(axis=1), high.max(axis=1)])


def spread_notes(effect: xr.Dataset, feature: str | int | None) -> list[str]:
    """Note on features whose spread changes within bins of the effect."""
    if "spread" not in effect:
        return []
    names, texts = feature_names(effect), []
    # Arrays, because the selection of a feature takes a millisecond.
    values = {name: effect.variables[name].values for name in _OF_NOTES}
    for position in range(len(names)) if feature is None else [feature_position(effect, feature)]:
        n_bins, n_own = int(values["n_bins"][position]), int(values["n_spread_bins"][position])
        if n_own < 2:
            continue
        spread = values["spread"][position, :n_own]
        edges = values["edge_value"][position, : n_bins + 1]
        low, high = _within(edges, values["spread_edge_value"][position, : n_own + 1], spread)
        if (high > NOTABLE * low).any():
            ends = f"{number_text(np.nanmin(spread))} to {number_text(np.nanmax(spread))}"
            texts.append(f"{names[position]} ({ends} in {n_own} bins of the spread)")
    if not texts:
        return []
    note = f"The spread of the local effects changes within bins of {', '.join(texts)}"
    if feature is not None:
        return [f"{note}. heterog. is its average over a bin."]
    return [f"{note}. See summary(effect, {texts[0].partition(' (')[0]!r})."]


_OF_NOTES = ("n_bins", "n_spread_bins", "edge_value", "spread", "spread_edge_value")


def spread_table(row: xr.Dataset, level: float) -> SimpleTable | None:
    """The spread of one feature in bins of its own, where it has several, and not very many."""
    from statsmodels.iolib.table import SimpleTable
    from statsmodels.iolib.tableformatting import fmt_params

    if "spread_se" not in row or not 1 < row.sizes["spread_bin"] <= MAX_LINES:
        return None
    (estimate,) = spread_estimate(row.expand_dims("feature")).values()
    ends = kept_interval(row, "spread", level)
    ends = by_errors(estimate, level)[0][0] if ends is None else ends
    tail = (1 - level) / 2
    heads = ["rows", "spread", "std err", f"[{tail:.3g}", f"{1 - tail:.3g}]"]
    columns = (row["spread"].values, row["spread_se"].values, ends[:, 0], ends[:, 1])
    lines = [
        [f"{n}", *(number_text(float(value)) for value in values)]
        for n, *values in zip(row["spread_n_obs"].values, *columns, strict=True)
    ]
    labels = interval_labels(row["spread_edge_value"].values, units_in(row))
    return SimpleTable(lines, heads, labels, "Spread, in bins of its own", txt_fmt=fmt_params)
