"""Regions by partial dependence, for comparison (math [40])."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike

from rhale_stats.arguments.checks import check_finite
from rhale_stats.models.differences import no_differences
from rhale_stats.models.options import ModelOptions
from rhale_stats.models.outputs import Model
from rhale_stats.regional.comparisons import CurveProblem, RegionalInputs, finished, rows_of_nodes
from rhale_stats.regional.search import SplitSearch
from rhale_stats.regional.shap import SQUARED
from rhale_stats.regional.trees import tree_of
from rhale_stats.regional.work import work_of
from rhale_stats.schema.validation import refuse_fields, validated


@validated
def regional_pdp(
    model: Model,
    X: Any,
    feature: str | int,
    *,
    conditioning: pd.DataFrame | ArrayLike | None = None,
    n_grid: int = 30,
    search: SplitSearch = SplitSearch(),
    options: ModelOptions = ModelOptions(),
    rng: np.random.Generator | int | None = None,
    progress: bool = True,
    **fields: Any,
) -> xr.Dataset:
    """Regions in which the ICE curves of a feature are more similar in shape.

    The model is evaluated for every row at every grid point, also for combinations that cannot
    occur.

    Parameters
    ----------
    model, X, options
        As in `local_effects`; the output is one, and no value is missing.
    feature : str or int
        Whose effect, by name or number.
    conditioning : table, or array_like of shape (n_rows, n_columns), optional
        Columns to split by, as in `regions`; by default all other columns of ``X``.
    n_grid : int, default 30
        Points from the least to the largest value of the feature, at equal distances; its distinct
        values where these are no more.
    search, rng
        As in `regions`, without ``min_share``. With ``test="permutation"`` any rows exchange their
        conditioning values, not only neighbours along the feature: an ICE curve does not depend on
        where its row is.
    progress : bool, default True
        Show a progress bar if it takes more than two seconds.

    Returns
    -------
    Dataset
        A tree as `regions` gives it. ``loss`` is the mean along the grid of the variance (ddof 1)
        of the ICE curves, each of which has mean 0 along the grid (math [40]). With ``curve``
        (node, grid), the mean of these curves over the rows of each node (PDP, math [41]), their
        standard deviation ``curve_std``, and ``grid_value`` (grid). The attributes ``model_calls``
        and ``model_rows`` give the number of calls of the model and of its rows in total:
        ``n_grid`` times the rows of ``X``.

    Raises
    ------
    ValueError, KeyError, TypeError, ModelError
        As `local_effects` and `regions`.

    Notes
    -----
    The curves are held in memory: 8 bytes per row and grid point.

    References
    ----------
    Goldstein, Kapelner, Bleich and Pitkin (2015); Herbinger, Bischl and Casalicchio (2023),
    section 4.

    Examples
    --------
    >>> import rhale_stats as rs
    >>> example = rs.simulate.TwoRegimes()
    >>> X = example.sample(500, rng=0)
    >>> tree = rs.regional_pdp(example.model, X, "x1")
    >>> tree[["rule", "n_obs", "loss"]].reset_coords(drop=True).to_dataframe().round(2)
              rule  n_obs  loss
    node
    0     all rows    500  3.19
    1       x3 ≤ 0    253  0.00
    2       x3 > 0    247  0.00
    >>> tree.attrs["model_calls"], tree.attrs["model_rows"]
    (4, 16250)
    """
    refuse_fields(search, ("min_share",), "ICE curves have no bins")
    inputs = RegionalInputs.from_arguments(X, feature, conditioning, options)
    # Curves take the place of local effects.
    local = inputs.local(no_differences("none"))
    work = work_of(local, None, replace(search, min_share=0.0), "index", None, rng)
    quotients = inputs.sample.quotients(model, single=True)
    grid = np.unique(inputs.x)
    if len(grid) > n_grid:
        grid = np.linspace(grid[0], grid[-1], n_grid)
    curves, problem = np.full((len(inputs.x), len(grid)), np.nan), None
    if inputs.varies:
        with quotients.counted(len(inputs.x) * len(grid), "ICE curves", progress=progress):
            each, rounding = quotients.curves(inputs.position, grid)
        curves, error = each[..., 0], float(rounding[0])
        curves -= curves.mean(axis=1, keepdims=True)
        check_finite(
            curves.sum(axis=1),
            "ICE curves",
            inputs.name,
            "See what the model returns at these rows along the grid.",
        )
        problem = CurveProblem(
            work.rows.x[0],
            curves if work.present.all() else curves[work.present],
            work.rows.weight,
            work.rows.frequency,
            error,
            work.min_obs,
        )
    tree = tree_of(work, 0, inputs.conditioning, problem, SQUARED)
    nodes = rows_of_nodes(tree)
    curve = np.empty((len(nodes), len(grid)))
    spread = np.empty_like(curve)
    for number, rows in enumerate(nodes):
        curve[number], spread[number] = inputs.mean_and_std(curves[rows], rows)
    out = finished(tree, "regional_pdp", "centred ICE", grid, curve, spread, quotients)
    del out.attrs["min_share"]
    return out
