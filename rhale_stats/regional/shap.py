"""Regions by Shapley values, for comparison (math [40])."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike

from rhale_stats.arguments.seeds import source_of
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.bins.fixed import EqualWidthBins
from rhale_stats.models.differences import Differences
from rhale_stats.models.options import ModelOptions
from rhale_stats.models.outputs import Model
from rhale_stats.models.shapley import ShapleyOptions, given_column, shapley_values
from rhale_stats.regional.comparisons import RegionalInputs, binned_tree, finished, rows_of_nodes
from rhale_stats.regional.search import SplitSearch
from rhale_stats.regional.work import work_of
from rhale_stats.schema.validation import validated

# Units of losses in the output itself.
SQUARED = "(output units)^2"


@validated
def regional_shap(
    model: Model,
    X: Any,
    feature: str | int,
    *,
    shapley: ShapleyOptions = ShapleyOptions(),
    conditioning: pd.DataFrame | ArrayLike | None = None,
    n_bins: int = 20,
    search: SplitSearch = SplitSearch(),
    options: ModelOptions = ModelOptions(),
    rng: np.random.Generator | int | None = None,
    progress: bool = True,
    **fields: Any,
) -> xr.Dataset:
    """Regions in which the Shapley values of a feature depend less on other features.

    Parameters
    ----------
    model, X, options
        As in `local_effects`; the output is one, and no value is missing. The model may be None
        when ``shap_values`` are given.
    feature : str or int
        Whose Shapley values, by name or number.
    shapley : ShapleyOptions, optional
        As in `shap_dependence`.
    conditioning : table, or array_like of shape (n_rows, n_columns), optional
        Columns to split by, as in `regions`; by default all other columns of ``X``.
    n_bins : int, default 20
        Equal bins along the feature, the same in all nodes.
    search, rng
        As in `regions`. ``rng`` also draws the background.
    progress : bool, default True
        Show a progress bar if it takes more than two seconds.

    Returns
    -------
    Dataset
        A tree as `regions` gives it. ``loss`` is the mean over the rows of the variance (ddof 1)
        of the Shapley values in bins of the feature (math [45], with bins in place of a spline).
        With ``curve`` (node, grid), the mean of the Shapley values of the rows of each node in
        each bin, their standard deviation ``curve_std``, both NaN in bins without rows, and
        ``grid_value`` (grid), the middles of the bins. The attributes ``model_calls`` and
        ``model_rows`` give the number of calls of the model and of its rows in total; ``shapley``
        says how the values were computed, and ``shap_value_error`` is the root mean square of their
        Monte-Carlo standard errors if they were sampled.

    Raises
    ------
    ImportError
        The library shap is needed and not installed.
    ValueError, KeyError, TypeError, ModelError
        As `local_effects` and `regions`.

    References
    ----------
    Lundberg and Lee (2017); Herbinger, Bischl and Casalicchio (2023), section 4.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = rs.simulate.TwoRegimes().sample(500, rng=0)
    >>> phi = 1.5 * X["x1"] * np.sign(X["x3"])  # half of the interaction, whose mean is 0
    >>> tree = rs.regional_shap(None, X, "x1", shap_values=phi)
    >>> tree[["rule", "n_obs", "loss"]].reset_coords(drop=True).to_dataframe().round(2)
              rule  n_obs  loss
    node
    0     all rows    500  0.77
    1       x3 ≤ 0    253  0.00
    2       x3 > 0    247  0.00
    """
    inputs = RegionalInputs.from_arguments(X, feature, conditioning, options)
    generator, seed = source_of(rng)
    quotients, how, error = None, "given", None
    shap_values = shapley.shap_values
    if shap_values is None:
        quotients = inputs.sample.quotients(model, single=True)
        estimate = shapley_values(
            model, quotients, shapley, generator, "regional_shap", progress=progress
        )
        how = estimate.how
        values = np.ascontiguousarray(estimate.values[:, inputs.position, 0])
        if estimate.error is not None:
            error = float(np.sqrt(np.mean(estimate.error[:, inputs.position, 0] ** 2)))
    else:
        values = given_column(shap_values, inputs.sample.table, inputs.position)
    local = inputs.local(Differences(values[:, None], np.zeros(1), "shapley"))
    rule = EqualWidthBins(n_bins)
    work = work_of(local, rule, search, "index", None, generator)
    tree, edges = binned_tree(work, inputs, "variance", SQUARED)
    curve, spread = _means_in_bins(tree, inputs, values, edges)
    middles = (edges[:-1] + edges[1:]) / 2
    out = finished(tree, "regional_shap", "Shapley values", middles, curve, spread, quotients)
    drawn = quotients is not None or search.test is not None
    sampled = {} if error is None else {"shap_value_error": error}
    return out.assign_attrs(shapley=how, **sampled, **({"seed": seed} if drawn else {}))


def _means_in_bins(
    tree: xr.Dataset, inputs: RegionalInputs, values: FloatArray, edges: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of values in bins, (node, bin): of the rows of every node."""
    cell, nodes = bin_index(edges, inputs.x), rows_of_nodes(tree)
    mean = np.full((len(nodes), len(edges) - 1), np.nan)
    spread = np.full_like(mean, np.nan)
    for number, node_rows in enumerate(nodes if inputs.varies else ()):
        for k in np.unique(cell[node_rows]):
            rows = node_rows[cell[node_rows] == k]
            mean[number, k], spread[number, k] = inputs.mean_and_std(values[rows], rows)
    return mean, spread
