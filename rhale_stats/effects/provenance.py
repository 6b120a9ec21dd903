"""Checks that effects and local effects belong to the same rows and model."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arguments.checks import check_finite
from rhale_stats.arrays import binning
from rhale_stats.local.chunks import ChunkedRows
from rhale_stats.local.rows import SELECT_ROWS, Rows, own_columns
from rhale_stats.schema.dimensions import ROWS
from rhale_stats.schema.feature_result import FeatureResult, one_feature
from rhale_stats.schema.features import feature_names
from rhale_stats.schema.identity import check_same_output, fingerprint_of, same_rows


def check_same_rows(
    row: FeatureResult, rows: Rows, position: int, parameter: str = "local", result: str = "effect"
) -> None:
    """Raise ``ValueError`` unless the effect of one feature was made from these local effects."""
    expected = fingerprint_of(row)
    actual = rows.fingerprint(position) if expected else ""
    if expected and actual == expected:
        return
    name = row.name
    maker = f"{parameter} must be the Dataset that {result} was made from; "
    check_finite(rows.local_effect[position], "Local effects", name, SELECT_ROWS)
    have_same_rows = bool(expected) and same_rows(actual, expected)
    if not have_same_rows:
        _check_counts(row, rows, position, parameter, maker)
    if expected and not have_same_rows:
        raise ValueError(
            f"{maker}the values of feature {name!r}, the weights or the order of its rows differ. "
            f"Pass that Dataset."
        )
    if expected or not _same_means(row, rows, position):
        raise ValueError(
            f"{maker}it has the same rows, but its local effects of feature {name!r} come from "
            f"another model, output or scale. Pass that Dataset."
        )


def check_same_chunks(rows: ChunkedRows, local: xr.Dataset, effect: xr.Dataset) -> None:
    """Raise ``ValueError`` unless the effect was made from these rows."""
    of_rows = effect.assign_attrs(rows.fingerprints(feature_names(local)))
    for name in feature_names(effect):
        expected, actual = [fingerprint_of(one_feature(x, name)) for x in (effect, of_rows)]
        if not expected or actual == expected:
            continue
        what = f"the values of feature {name!r}, the weights or the order of its rows differ"
        if same_rows(actual, expected):
            what = (
                f"it has the same rows, but its local effects of feature {name!r} come from "
                f"another model, output or scale"
            )
        raise ValueError(
            f"local must be the Dataset that effect was made from; {what}. Pass that Dataset."
        )


def check_same_model(local: xr.Dataset, effect: xr.Dataset) -> None:
    """Raise ``ValueError`` where the rows of the effect have other local effects; new rows pass."""
    check_same_output(local, effect, ("local", "effect"))
    if ROWS in effect and effect.sizes["obs"] != local.sizes["obs"]:
        return
    names = feature_names(effect)
    columns = own_columns(local, names, effect)
    for name in names:
        check_no_other_model(one_feature(effect, name), *columns[name])


def check_no_other_model(row: FeatureResult, rows: Rows, position: int) -> None:
    """Raise ``ValueError`` where the rows of the effect have other local effects."""
    expected = fingerprint_of(row)
    if expected and row.sizes["bin"] and same_rows(rows.fingerprint(position), expected):
        check_same_rows(row, rows, position)


def _check_counts(
    row: FeatureResult, rows: Rows, position: int, parameter: str, maker: str
) -> None:
    """Raise ``ValueError`` unless these rows have the numbers and weights in ``effect``."""
    x, edges, name = rows.x[position], row.bin_edges, row.name
    if row.is_categorical:
        code = x.astype(np.int64)
        total = np.bincount(code, rows.weight, len(edges))
        counts = total if rows.frequency else np.bincount(code, minlength=len(edges))
        if (
            rows.sides is None
            or not np.array_equal(counts, row["n_level"].values)
            or not np.allclose(total / total.sum(), row["level_share"].values, rtol=1e-9, atol=0)
        ):
            raise ValueError(
                f"{maker}the rows or weights of the levels of feature {name!r} differ. Pass that "
                f"Dataset."
            )
        return
    inside = bool(((x >= edges[0]) & (x <= edges[-1])).all())
    k = binning.bin_index(edges, x)
    weight: NDArray[Any] = np.bincount(k, rows.weight, len(edges) - 1)
    counted = weight if rows.frequency else np.bincount(k, minlength=len(edges) - 1)
    if not inside or not np.array_equal(counted, row["n_obs"].values):
        raise ValueError(
            f"{maker}the bins of feature {name!r} have {int(row['n_obs'].sum())} rows in effect; "
            f"the {len(x)} rows of {parameter} give them other numbers of rows. Pass that Dataset, "
            f"or make the effect of this one with bins=GivenBins(edges)."
        )
    actual, expected = weight / weight.sum(), row.weight_share
    # Sums differ by rounding; one weight of 10^6 that is 1 % larger is more.
    if not np.allclose(actual, expected, rtol=1e-9, atol=0):
        worst = int(np.argmax(np.abs(actual - expected)))
        raise ValueError(
            f"{parameter} must have the weights that effect was made with; bin {worst} of feature "
            f"{name!r} has {expected[worst]:.4g} of the weight in effect and {actual[worst]:.4g} "
            f"in {parameter}. Pass the Dataset that effect was made from."
        )


def _same_means(row: FeatureResult, rows: Rows, position: int) -> bool:
    """Whether bins have these means: all that effects without a fingerprint say of their rows."""
    x, g, n_bins = rows.x[position], rows.local_effect[position], row.sizes["bin"]
    w = np.ones(rows.n_rows) if rows.weight is None else rows.weight
    if row.is_categorical:
        assert rows.sides is not None, "checked with the counts"
        code, (up, down) = x.astype(np.int64), rows.sides[position]
        total, weight = np.zeros(n_bins), np.zeros(n_bins)
        for step, change in ((code, up), (code - 1, down)):
            has_step = (step >= 0) & (step < n_bins)
            total += np.bincount(step[has_step], (w * change)[has_step], n_bins)
            weight += np.bincount(step[has_step], w[has_step], n_bins)
    else:
        k = binning.bin_index(row.bin_edges, x)
        total = np.bincount(k, w * g, n_bins).astype(np.float64)
        weight = np.bincount(k, w, n_bins).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = total / weight
    size = float(np.abs(g).max(initial=0.0))
    return bool(np.allclose(mean, row.bin_means, rtol=0, atol=1e-9 * size, equal_nan=True))
