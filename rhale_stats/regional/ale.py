"""Regions by ALE, for comparison (math [40])."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike

from rhale_stats.arrays import local_effects as kernel
from rhale_stats.bins.fixed import EqualWidthBins
from rhale_stats.local.cells import difference_edges
from rhale_stats.models.differences import no_differences
from rhale_stats.models.options import ModelOptions
from rhale_stats.models.outputs import Model
from rhale_stats.regional.comparisons import (
    RegionalInputs,
    binned_tree,
    curves_of_regions,
    finished,
)
from rhale_stats.regional.losses import LOSSES
from rhale_stats.regional.search import SplitSearch
from rhale_stats.regional.work import work_of
from rhale_stats.schema.validation import validated


@validated
def regional_ale(
    model: Model,
    X: Any,
    feature: str | int,
    *,
    conditioning: pd.DataFrame | ArrayLike | None = None,
    n_bins: int = 20,
    loss: str = "index",
    search: SplitSearch = SplitSearch(),
    options: ModelOptions = ModelOptions(),
    rng: np.random.Generator | int | None = None,
    progress: bool = True,
    **fields: Any,
) -> xr.Dataset:
    """Regions in which the ALE effect of a feature is less heterogeneous.

    The model is evaluated once, for every row at both ends of its bin.

    Parameters
    ----------
    model, X, options
        As in `local_effects`; the output is one, and no value is missing.
    feature : str or int
        Whose effect, by name or number.
    conditioning : table, or array_like of shape (n_rows, n_columns), optional
        Columns to split by, as in `regions`; by default all other columns of ``X``.
    n_bins : int, default 20
        Equal bins along the feature, the same in all nodes. Local effects are the slopes across
        them (math [2]).
    loss, search, rng
        As in `regions`.
    progress : bool, default True
        Show a progress bar if it takes more than two seconds.

    Returns
    -------
    Dataset
        A tree as `regions` gives it, with ``curve`` (node, grid), the ALE curve (math [43]) of the
        rows of each node at the edges of the bins, ``grid_value`` (grid); mean 0 over these rows,
        NaN beyond a bin without rows. ``curve_std`` is the comonotone spread, summed from bin to
        bin (math [9]). The attributes ``model_calls`` and ``model_rows`` give the number of calls
        of the model and of its rows in total.

    Raises
    ------
    ValueError, KeyError, TypeError, ModelError
        As `local_effects` and `regions`.

    References
    ----------
    Apley and Zhu (2020); Herbinger, Bischl and Casalicchio (2023), section 4.

    Examples
    --------
    >>> import rhale_stats as rs
    >>> example = rs.simulate.TwoRegimes()
    >>> X = example.sample(500, rng=0)
    >>> tree = rs.regional_ale(example.model, X, "x1")
    >>> tree[["rule", "n_obs", "loss"]].reset_coords(drop=True).to_dataframe().round(2)
              rule  n_obs   loss
    node
    0     all rows    500  18.11
    1       x3 ≤ 0    253   0.00
    2       x3 > 0    247   0.00
    >>> tree.attrs["model_calls"], tree.attrs["model_rows"]
    (4, 2250)
    """
    inputs = RegionalInputs.from_arguments(X, feature, conditioning, options)
    quotients, bins = inputs.sample.quotients(model, single=True), EqualWidthBins(n_bins)
    differences = no_differences("finite_difference")
    if inputs.varies:
        edges = difference_edges(bins, inputs.name, inputs.x, inputs.sample.weight)
        with quotients.counted(2 * len(inputs.x), "local effects", progress=progress):
            inputs = replace(inputs, x=kernel.on_both_sides(edges, inputs.x))
            differences = quotients.finite(inputs.position, edges, inputs.x)
    local = inputs.local(differences, quotients)
    work = work_of(local, bins, search, loss, None, rng)
    tree, edges = binned_tree(work, inputs, loss, LOSSES[loss])
    curve, spread = curves_of_regions(local, tree, edges)
    return finished(tree, "regional_ale", loss, edges, curve, spread, quotients)
