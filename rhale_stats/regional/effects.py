"""RHALE in each region."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from rhale_stats.bins.description import rule_of
from rhale_stats.bins.rule import BinRule
from rhale_stats.effects.rhale import rhale
from rhale_stats.local.chunks import cached
from rhale_stats.regional.trees import check_rows_of_tree, check_tree
from rhale_stats.schema.checks import check_local
from rhale_stats.schema.dimensions import ROWS
from rhale_stats.schema.features import feature_names, feature_position
from rhale_stats.schema.padding import stack
from rhale_stats.schema.validation import validated


def positions_in(local: xr.Dataset, features: str | int | Sequence[str | int] | None) -> list[int]:
    """Features by name or number, one or several; all by default."""
    if features is None:
        return list(range(len(feature_names(local))))
    # NumPy's whole numbers are no sequences either.
    names = [features] if isinstance(features, str | int | np.integer) else [*features]
    positions = [feature_position(local, name) for name in names]
    if not positions:
        raise ValueError("features must name at least one feature; got none.")
    if len(set(positions)) < len(positions):
        raise ValueError(f"features must be distinct; got {names!r}.")
    return positions


@validated
def regional_rhale(
    local: xr.Dataset,
    tree: xr.Dataset,
    *,
    bins: BinRule | None = None,
    centering: str = "mean",
    weighting: str = "axis",
) -> xr.Dataset:
    """RHALE effects in every region of a tree, with a dimension ``region``.

    Parameters
    ----------
    local : Dataset
        What the tree was made from.
    tree : Dataset
        What `regions` returned, of one feature.
    bins : bin rule, optional
        By default that of the tree; `OptimalBins` if it has none, as that of `regional_pdp`.
    centering, weighting
        As in `rhale`; "mean" is the mean over the rows of the region.

    Returns
    -------
    Dataset
        As `rhale` for the one feature, with the first dimension ``region``. ``region_rule`` and
        ``region_node`` (region) describe each region, and ``region_of_row`` (obs) is the region of
        each row. The axis of a region is the range of its rows. `std_error`, `confint`, `confband`,
        `bootstrap`, `check_unbiased`, `tidy`, `summary` and the other functions of effects work
        region by region; ``effect.isel(region=0)`` is an ordinary effect of the rows of that
        region.

    Raises
    ------
    ValueError
        ``local`` has other rows than the tree; the bin rule of the tree cannot be reconstructed.
    TypeError
        ``tree`` is not a tree of regions.

    Notes
    -----
    Unless the tree is honest, the same rows choose the regions and estimate their effects. The
    heterogeneity in the regions is then biased downwards, and the differences between regions are
    biased upwards.

    Examples
    --------
    >>> import rhale_stats as rs
    >>> example = rs.simulate.TwoRegimes()
    >>> local = rs.local_effects(None, example.sample(500, rng=0), jacobian=example.jacobian)
    >>> effect = rs.regional_rhale(local, rs.regions(local, "x1"))
    >>> effect["average_effect"].to_series().round(2).to_dict()
    {(0, 'x1'): -3.0, (1, 'x1'): 3.0}
    """
    local, tree = check_local(local, in_chunks=True), check_tree(tree)
    name = str(tree["feature"].values)
    check_rows_of_tree(local, tree)
    if bins is None and "bin_rule" in tree.attrs:
        bins = rule_of(str(tree.attrs["bin_rule"]), str(tree.attrs["bin_parameters"]))
    feature_local = local.isel(feature=[feature_position(local, name)])
    region_of_row = tree[ROWS].values
    leaves = tree.isel(node=np.flatnonzero(tree["region"].values >= 0))
    with cached(feature_local) as same:
        effects = [
            rhale(
                same.isel(obs=np.flatnonzero(region_of_row == number)),
                bins=bins,
                centering=centering,
                weighting=weighting,
            )
            for number in leaves["region"].values
        ]
    out = stack(effects, "region")
    about = {"long_name": "region of the rows"}
    return out.assign({ROWS: tree[ROWS]}).assign_coords(
        region=("region", leaves["region"].values, about),
        region_rule=("region", leaves["rule"].values, {"long_name": "what the rows have"}),
        region_node=("region", leaves["node"].values, {"long_name": "node of the tree"}),
        obs=local["obs"],
    )
