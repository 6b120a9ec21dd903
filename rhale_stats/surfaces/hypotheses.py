"""Tests of no interaction (math [59])."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arrays import second_order as kernel
from rhale_stats.inference import meaning
from rhale_stats.inference.results import Size, labelled_test
from rhale_stats.schema.dimensions import with_part_facts
from rhale_stats.schema.features import resolution
from rhale_stats.schema.variables import OUTPUT_UNITS
from rhale_stats.surfaces.inference import GROUP, SurfaceRows
from rhale_stats.surfaces.values import pair_name

NULLS = {
    "zero": "no interaction on average: all mean second differences are 0",
    "homogeneous": "all rows have one second difference in a cell",
}
SIZES = {
    "zero": Size(
        "root mean square interaction in the cells, without the part of noise", OUTPUT_UNITS
    ),
    "homogeneous": Size("standard deviation of second differences in the cells", OUTPUT_UNITS),
}
ADDITIVE = "the second differences are 0 up to their numerical error"


def of_pair(surface: xr.Dataset) -> xr.Dataset:
    """The two features as one, as tests of features are labelled."""
    surface = with_part_facts(surface)
    attrs = surface.attrs
    facts = {
        "bin_rule": f"{attrs['bins_a']} by {attrs['bins_b'].removesuffix('()').split('(')[0]}",
        "bin_parameters": attrs["bins_b"].partition("(")[2].removesuffix(")"),
        **{key: attrs[key] for key in ("output_name", "output_units", "n_rows")},
    }
    name = pair_name(surface)
    coords = {"feature": ("feature", [name]), "feature_kind": ("feature", ["pair"])}
    return xr.Dataset(None, coords, facts)


def wald(surface: xr.Dataset, null: str) -> dict[str, NDArray[Any]]:
    """`wald_test` of a surface: statistic, degrees of freedom, p-value, reason; of one pair."""
    from scipy import stats

    if null not in NULLS:
        raise ValueError(
            f"null must be one of {', '.join(map(repr, NULLS))} for a surface; got {null!r}. "
            f"Second differences of cells of different widths have no reason to be equal."
        )
    surface = with_part_facts(surface)
    if null == "zero" and "parameters" in surface.attrs:
        raise ValueError(
            "effect must be a surface without the parameters of the model for null='zero', which "
            "is a test of signs of rows. With parameters use confband(surface): it holds 0 "
            "everywhere without an interaction. Or drop them: std_error(surface)."
        )
    rows = SurfaceRows.from_surface(surface)
    cells, error = rows.cells, float(surface["second_difference_error"])
    mean, spread = cells.mean.ravel(), cells.spread().ravel()
    least = resolution(mean[cells.supported.ravel()], error)
    if null == "homogeneous":
        has_variance = np.isfinite(spread)
        largest = float(spread[has_variance].max(initial=0.0)) / least
        tested = (largest, float(has_variance.sum()), 1.0 if largest <= 1 else 0.0, "")
    else:
        # What is 0 up to rounding is 0.
        delta = np.where(np.abs(rows.delta) <= least, 0.0, rows.delta)
        statistic, df = kernel.sign_test(
            len(mean), rows.cell, delta, rows.weight, rows.group, frequency=rows.frequency
        )
        tested = (statistic, df, float(stats.chi2.sf(statistic, df)), "")
        if df <= 0:
            # One row per cell: its sign carries no information.
            reason = meaning.NO_ROWS if (delta != 0).any() else ADDITIVE
            tested = (float("nan"), 0.0, float("nan"), reason)
    variance, n = spread**2, rows.cells.n_effective().ravel()
    if rows.group is not None:
        variance = n * rows.group_sums(rows.influence(surface)).variance
    has_variance = np.isfinite(variance) & np.isfinite(spread) & (n > 0)
    square = float(
        np.sum((n * spread**2 if null == "homogeneous" else n * mean**2 - variance)[has_variance])
    )
    total = n[has_variance].sum()
    size = float(np.sqrt(max(square / total, 0.0))) if total > 0 else float("nan")
    return {
        name: np.array([value])
        for name, value in zip(
            ("statistic", "df", "p_value", "reason", "size"), (*tested, size), strict=True
        )
    }


def wald_test(
    surface: xr.Dataset, null: str, method: str, adjust: str, local: xr.Dataset | None
) -> xr.Dataset:
    """`wald_test` of a surface: whether there is an interaction at all."""
    if method != "box":
        raise ValueError(f"method must be 'box' for a surface; got {method!r}.")
    if local is not None:
        raise ValueError(
            f"local must be None, except with null 'homogeneous' of effects in bins; got local "
            f"with null {null!r} of a surface. Leave it out."
        )
    return labelled_test(
        of_pair(surface),
        wald(surface, null),
        adjust,
        null=NULLS[null],
        source=str(surface["surface_se"].attrs["source"]) if GROUP in surface.coords else "rows",
        test=f"wald_test, null {null!r}",
        size=SIZES[null],
    )
