"""Regions by ALE, partial dependence and Shapley values, for comparison (math [40])."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike

from rhale_stats.arguments.checks import check_finite
from rhale_stats.arguments.seeds import source_of
from rhale_stats.arrays import local_effects as kernel
from rhale_stats.arrays import profiles
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.bins.rules import EqualWidthBins, GivenBins
from rhale_stats.effects.rhale import quiet_rhale
from rhale_stats.local.labelled import labelled
from rhale_stats.local.rows import difference_edges
from rhale_stats.models.differences import DifferenceQuotients, Differences, no_differences
from rhale_stats.models.options import ModelOptions
from rhale_stats.models.outputs import Model
from rhale_stats.models.sample import Sample, positions_of
from rhale_stats.models.shapley import ShapleyOptions, given_column, shapley_values
from rhale_stats.models.table import check_column
from rhale_stats.regional.losses import LOSSES, CurveProblem
from rhale_stats.regional.search import SplitSearch, Work, work_of
from rhale_stats.regional.trees import rows_of_nodes, tree_of
from rhale_stats.schema.feature_result import one_feature
from rhale_stats.schema.validation import refuse_fields, validated
from rhale_stats.schema.variables import GRID_VALUE

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
    %(conditioning)s
    n_bins : int, default 20
        Equal bins along the feature, the same in all nodes.
    search, rng
        As in `regions`. ``rng`` also draws the background.
    %(progress)s

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
    sample, x, conditioning = _inputs(X, feature, conditioning, options)
    (position,) = sample.positions
    generator, seed = source_of(rng)
    quotients, facts = None, dict[str, Any](shapley="given")
    shap_values = shapley.shap_values
    if shap_values is None:
        quotients = sample.quotients(model, single=True)
        estimate = shapley_values(
            model, quotients, shapley, generator, "regional_shap", progress=progress
        )
        facts["shapley"] = estimate.how
        values = np.ascontiguousarray(estimate.values[:, position, 0])
        if estimate.error is not None:
            errors = estimate.error[:, position, 0]
            facts["shap_value_error"] = float(np.sqrt(np.mean(errors**2)))
    else:
        values = given_column(shap_values, sample.table, position)
    differences = Differences(values[:, None], np.zeros(1), "shapley")
    local = labelled(sample, x[:, None], [differences])
    rule = EqualWidthBins(n_bins)
    work = work_of(local, rule, search, "index", None, generator)._replace(loss="variance")
    tree, edges = _binned_tree(work, x, conditioning, SQUARED)
    middles, cell = (edges[:-1] + edges[1:]) / 2, bin_index(edges, x)

    def means(rows: IntArray) -> FloatArray:
        if not np.ptp(x):
            return np.full((2, len(middles)), np.nan)
        weight = sample.weight_at(rows)
        in_bins = profiles.bin_means(
            values[rows], cell[rows], len(middles), weight, frequency=sample.frequency
        )
        return np.stack([in_bins.mean, np.sqrt(in_bins.variance)])

    out = finished(tree, "regional_shap", "Shapley values", middles, means, quotients)
    if quotients is not None or search.test is not None:
        facts["seed"] = seed
    return out.assign_attrs(facts)


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
    model, X, feature, conditioning, search, options, rng, progress
        As in `regional_shap`, without ``min_share``. With ``test="permutation"`` any rows exchange
        their conditioning values, not only neighbours along the feature: an ICE curve does not
        depend on where its row is.
    n_grid : int, default 30
        Points from the least to the largest value of the feature, at equal distances; its distinct
        values where these are no more.

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
    sample, x, conditioning = _inputs(X, feature, conditioning, options)
    # Curves take the place of local effects.
    local = labelled(sample, x[:, None], [no_differences("none")])
    work = work_of(local, None, replace(search, min_share=0.0), "index", None, rng)
    quotients = sample.quotients(model, single=True)
    grid = np.unique(x)
    if len(grid) > n_grid:
        grid = np.linspace(grid[0], grid[-1], n_grid)
    curves, problem = np.full((len(x), len(grid)), np.nan), None
    if np.ptp(x):
        with quotients.counted(len(x) * len(grid), "ICE curves", progress=progress):
            each, rounding = quotients.curves(sample.positions[0], grid)
        curves, error = each[..., 0], float(rounding[0])
        curves -= curves.mean(axis=1, keepdims=True)
        check_finite(
            curves.sum(axis=1),
            "ICE curves",
            sample.names[0],
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
    tree = tree_of(work, 0, conditioning, problem, SQUARED)

    def mean(rows: IntArray) -> FloatArray:
        moments = profiles.sample(curves[rows], sample.weight_at(rows), frequency=sample.frequency)
        return np.stack([moments.mean, np.sqrt(np.diagonal(moments.covariance))])

    out = finished(tree, "regional_pdp", "centred ICE", grid, mean, quotients)
    for fact in ("min_share", "bin_rule", "bin_parameters"):
        del out.attrs[fact]
    return out


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
    model, X, feature, conditioning, search, options, rng, progress
        As in `regional_shap`.
    n_bins : int, default 20
        Equal bins along the feature, the same in all nodes. Local effects are the slopes across
        them (math [2]).
    loss
        As in `regions`.

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
    sample, x, conditioning = _inputs(X, feature, conditioning, options)
    quotients, bins = sample.quotients(model, single=True), EqualWidthBins(n_bins)
    differences = no_differences("finite_difference")
    if np.ptp(x):
        edges = difference_edges(bins, sample.names[0], x, sample.weight)
        with quotients.counted(2 * len(x), "local effects", progress=progress):
            x = kernel.on_both_sides(edges, x)
            differences = quotients.finite(sample.positions[0], edges, x)
    local = labelled(sample, x[:, None], [differences], quotients)
    work = work_of(local, bins, search, loss, None, rng)
    tree, edges = _binned_tree(work, x, conditioning, LOSSES[loss])

    def curve(rows: IntArray) -> FloatArray:
        """NaN beyond the bins that the rows reach."""
        some, bins = local.isel(obs=rows), GivenBins(edges)
        row = one_feature(quiet_rhale(some, bins=bins, weighting="rows", has_spread=False), 0)
        begin = row.bin_edges[:1]
        first = int(np.argmin(np.abs(edges - begin))) if len(begin) else 0
        out = np.full((2, len(edges)), np.nan)
        for values, of_bins in zip(out, (row.at_bins("curve"), row.curve_spreads[1]), strict=True):
            values[first : first + len(of_bins)] = of_bins
        return out

    return finished(tree, "regional_ale", loss, edges, curve, quotients)


# --- what the three have in common ----------------------------------------------------------------


def _inputs(
    X: Any, feature: str | int, conditioning: Any, options: ModelOptions
) -> tuple[Sample, FloatArray, Any]:
    """One feature of a table and its values, checked, and what its regions may be made of."""
    refuse_fields(options, ("missing",), "regions are made of all rows")
    sample = Sample.from_table(X, options)
    table = sample.table
    sample = sample.of_columns(positions_of(table, [feature]))
    (position,) = sample.positions
    x = check_column(table, position)
    if conditioning is None:
        if len(table.names) == 1:
            raise ValueError(
                f"conditioning must be given: X holds no column besides {table.names[position]!r}. "
                f"Pass a DataFrame with a row for each row of X."
            )
        conditioning = table.data
    return sample, x, conditioning


def _binned_tree(
    work: Work, x: FloatArray, conditioning: Any, units: str
) -> tuple[xr.Dataset, FloatArray]:
    """The tree, and the edges of its bins."""
    problem = work.problem(0)
    tree = tree_of(work, 0, conditioning, problem, units)
    # Of a constant feature no bin has an effect.
    return tree, x[0] + np.array([0.0, 1.0]) if problem is None else problem.edges


def finished(
    tree: xr.Dataset,
    method: str,
    loss_kind: str,
    grid: FloatArray,
    curve_of: Callable[[IntArray], FloatArray],
    quotients: DifferenceQuotients | None,
) -> xr.Dataset:
    """The tree with what it cost, and the effect and its spread, (2, point), of every node."""
    n_calls = n_rows = 0
    curve, spread = np.stack([curve_of(rows) for rows in rows_of_nodes(tree)], axis=1)
    if quotients is not None:
        quotients.check_size()
        n_calls, n_rows = quotients.outputs.n_calls, quotients.outputs.n_rows
    dims, facts = ("node", "grid"), {"method": method, "loss_kind": loss_kind}
    return (
        tree.assign(
            curve=(dims, curve, {"long_name": "effect", "units": "output units"}),
            curve_std=(dims, spread, {"long_name": "its spread", "units": "output units"}),
            grid=("grid", np.arange(len(grid)), {"long_name": "point of the grid"}),
            grid_value=("grid", grid, GRID_VALUE),
        )
        .set_coords("grid_value")
        .assign_attrs(**facts, model_calls=n_calls, model_rows=n_rows)
    )
