"""Regions by other effects than RHALE, for comparison: ALE, PDP and Shapley values (math [40]).

The candidates, the tree and its tests are those of `regions`; what differs is the loss, and how
often the model is asked for it. `regions` never asks it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike

from rhale_stats import models
from rhale_stats.arrays import regions as search
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.bins import EqualWidthBins, GivenBins, describe
from rhale_stats.effects import difference_edges, labelled, quiet_rhale
from rhale_stats.region_search import LOSSES, Node, Settings
from rhale_stats.regional import Work, tree_of, work_of
from rhale_stats.schema import ROWS, X_UNITS, one_feature, software
from rhale_stats.seeds import source_of
from rhale_stats.shapley import BACKGROUND, given_column, shapley_values
from rhale_stats.validate import check_choice, check_count, check_finite, checked

# Units of losses in the output itself.
SQUARED = "(output units)^2"


@checked
def regional_ale(
    model: models.Model,
    X: Any,
    feature: str | int,
    *,
    conditioning: pd.DataFrame | ArrayLike | None = None,
    n_bins: int = 20,
    weights: ArrayLike | None = None,
    weight_kind: str = "precision",
    max_depth: int = 2,
    min_obs: int | None = None,
    min_drop: float = 0.1,
    min_share: float = 0.05,
    n_thresholds: int = 20,
    thresholds: str = "quantile",
    loss: str = "index",
    test: str | None = None,
    level: float = 0.05,
    n_permutations: int = 199,
    honest_fraction: float = 0.5,
    rng: np.random.Generator | int | None = None,
) -> xr.Dataset:
    """Regions in which the ALE effect of a feature is less heterogeneous.

    The model is asked once, for every row at both ends of its bin.

    Parameters
    ----------
    model, X, weights, weight_kind
        As in `local_effects`.
    feature : str or int
        Whose effect, by name or number.
    conditioning : DataFrame or array_like of shape (n_rows, n_columns), optional
        Columns to split by, as in `regions`; by default all other columns of ``X``.
    n_bins : int, default 20
        Equal bins along the feature, the same in all nodes. Local effects are the slopes across
        them (math [2]).
    max_depth, min_obs, min_drop, min_share, n_thresholds, thresholds, loss, test, level, \
    n_permutations, honest_fraction, rng
        As in `regions`.

    Returns
    -------
    Dataset
        A tree as `regions` gives it, with ``curve`` (node, grid), the ALE curve (math [43]) of the
        rows of each node at the edges of the bins, ``grid_value`` (grid); mean 0 over these rows,
        NaN beyond a bin without rows. ``curve_std`` is the spread that adds up from bin to bin
        (math [9]). ``model_calls`` and ``model_rows`` in the attributes say how often the model
        was asked, and for how many rows in all.

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
    (1, 1000)
    """
    check_count("n_bins", n_bins, 1)
    settings = Settings(
        max_depth, min_drop, min_share, n_thresholds, thresholds, test, level, n_permutations
    )
    given = _Given.of(X, feature, conditioning, weights, weight_kind)
    quotients, bins = (
        models.DifferenceQuotients(model, given.table, single=True),
        EqualWidthBins(n_bins),
    )
    found = models.no_differences("finite_difference")
    if given.varies:
        edges = difference_edges(bins, given.name, given.x, given.weight)
        found = quotients.finite(given.position, edges)
    local = given.local(found, quotients)
    work = work_of(local, bins, settings, loss, min_obs, honest_fraction, None, rng)
    tree, edges = _binned_tree(work, given, loss, LOSSES[loss])
    curve, spread = _curves(local, tree, edges)
    return _finished(tree, "regional_ale", loss, edges, curve, spread, quotients)


@checked
def regional_pdp(
    model: models.Model,
    X: Any,
    feature: str | int,
    *,
    conditioning: pd.DataFrame | ArrayLike | None = None,
    n_grid: int = 30,
    weights: ArrayLike | None = None,
    weight_kind: str = "precision",
    max_depth: int = 2,
    min_obs: int | None = None,
    min_drop: float = 0.1,
    n_thresholds: int = 20,
    thresholds: str = "quantile",
    test: str | None = None,
    level: float = 0.05,
    n_permutations: int = 199,
    honest_fraction: float = 0.5,
    rng: np.random.Generator | int | None = None,
) -> xr.Dataset:
    """Regions in which the ICE curves of a feature run more alike.

    The model is asked for every row at every point of the grid, also where no row could be.

    Parameters
    ----------
    model, X, weights, weight_kind
        As in `local_effects`.
    feature : str or int
        Whose effect, by name or number.
    conditioning : DataFrame or array_like of shape (n_rows, n_columns), optional
        Columns to split by, as in `regions`; by default all other columns of ``X``.
    n_grid : int, default 30
        Points from the least to the largest value of the feature, at equal distances; its distinct
        values where these are no more.
    max_depth, min_obs, min_drop, n_thresholds, thresholds, level, n_permutations, \
    honest_fraction, rng
        As in `regions`.
    test : {None, "permutation", "honest"}
        As in `regions`, but for which rows exchange their conditioning values: any, not only
        neighbours along the feature. An ICE curve does not depend on where its row is.

    Returns
    -------
    Dataset
        A tree as `regions` gives it. ``loss`` is the mean along the grid of the variance (ddof 1)
        of the ICE curves, each of which has mean 0 along the grid (math [40]). With ``curve``
        (node, grid), the mean of these curves over the rows of each node (PDP, math [41]), their
        standard deviation ``curve_std``, and ``grid_value`` (grid). ``model_calls`` and
        ``model_rows`` in the attributes say how often the model was asked, and for how many rows
        in all: ``n_grid`` times those of ``X``.

    Raises
    ------
    ValueError, KeyError, TypeError, ModelError
        As `local_effects` and `regions`.

    Notes
    -----
    The curves are in memory, 8 bytes a row and point of the grid. The model gets some 10^5 rows at
    once, or those of ``X`` if they are more.

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
    (1, 15000)
    """
    check_count("n_grid", n_grid, 2)
    settings = Settings(
        max_depth, min_drop, 0.0, n_thresholds, thresholds, test, level, n_permutations
    )
    given = _Given.of(X, feature, conditioning, weights, weight_kind)
    # Curves take the place of local effects, of which there are none.
    local = given.local(models.no_differences("none"))
    work = work_of(local, None, settings, "index", min_obs, honest_fraction, None, rng)
    quotients = models.DifferenceQuotients(model, given.table, single=True)
    grid = np.unique(given.x)
    if len(grid) > n_grid:
        grid = np.linspace(grid[0], grid[-1], n_grid)
    curves, problem = np.full((given.table.n_rows, len(grid)), np.nan), None
    if given.varies:
        each, rounding = quotients.curves(given.position, grid)
        curves, error = each[..., 0], float(rounding[0])
        curves -= curves.mean(axis=1, keepdims=True)
        check_finite(
            curves.sum(axis=1),
            "ICE curves",
            given.name,
            "See what the model returns at these rows along the grid.",
        )
        problem = _Curves(
            work.rows.x[0],
            curves if work.present.all() else curves[work.present],
            work.rows.weight,
            work.rows.frequency,
            error,
            work.min_obs,
        )
    tree = tree_of(work, 0, given.conditioning, problem, SQUARED)
    nodes = _rows_of_nodes(tree)
    curve = np.empty((len(nodes), len(grid)))
    spread = np.empty_like(curve)
    for number, at in enumerate(nodes):
        weight = None if given.weight is None else given.weight[at]
        curve[number], spread[number] = _mean_and_std(
            curves[at], weight, frequency=weight_kind == "frequency"
        )
    out = _finished(tree, "regional_pdp", "centred ICE", grid, curve, spread, quotients)
    del out.attrs["min_share"]
    return out


@checked
def regional_shap(
    model: models.Model,
    X: Any,
    feature: str | int,
    *,
    shap_values: Any = None,
    background: int | pd.DataFrame | ArrayLike = BACKGROUND,
    conditioning: pd.DataFrame | ArrayLike | None = None,
    n_bins: int = 20,
    weights: ArrayLike | None = None,
    weight_kind: str = "precision",
    max_depth: int = 2,
    min_obs: int | None = None,
    min_drop: float = 0.1,
    min_share: float = 0.05,
    n_thresholds: int = 20,
    thresholds: str = "quantile",
    test: str | None = None,
    level: float = 0.05,
    n_permutations: int = 199,
    honest_fraction: float = 0.5,
    rng: np.random.Generator | int | None = None,
) -> xr.Dataset:
    """Regions in which the Shapley values of a feature depend on that feature alone, or more so.

    Parameters
    ----------
    model, X, weights, weight_kind
        As in `local_effects`. The model may be None when ``shap_values`` are given.
    feature : str or int
        Whose Shapley values, by name or number.
    shap_values : array_like of shape (n_rows,) or (n_rows, n_columns), or Explanation, optional
        Shapley values of the feature or of all columns of ``X``, or what an explainer of the
        library shap returned. By default they are computed with that library: exactly up to 10
        columns, by permutations beyond. This is slow: the model is asked for each row some
        2^(number of columns) times the number of background rows.
    background : int, DataFrame or array_like, default 100
        Rows over which columns that are left out are averaged, or how many rows of ``X`` to draw.
    conditioning : DataFrame or array_like of shape (n_rows, n_columns), optional
        Columns to split by, as in `regions`; by default all other columns of ``X``.
    n_bins : int, default 20
        Equal bins along the feature, the same in all nodes.
    max_depth, min_obs, min_drop, min_share, n_thresholds, thresholds, test, level, \
    n_permutations, honest_fraction, rng
        As in `regions`. ``rng`` also draws the background.

    Returns
    -------
    Dataset
        A tree as `regions` gives it. ``loss`` is the mean over the rows of the variance (ddof 1)
        of the Shapley values in bins of the feature (math [45], with bins in place of a spline).
        With ``curve`` (node, grid), the mean of the Shapley values of the rows of each node in
        each bin, their standard deviation ``curve_std``, both NaN where there are none, and
        ``grid_value`` (grid), the middles of the bins. ``model_calls`` and ``model_rows`` in the
        attributes say how often the model was asked, and for how many rows in all, ``shapley`` how
        the values were computed.

    Raises
    ------
    ImportError
        The library shap is needed, and is not there.
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
    check_count("n_bins", n_bins, 1)
    settings = Settings(
        max_depth, min_drop, min_share, n_thresholds, thresholds, test, level, n_permutations
    )
    given = _Given.of(X, feature, conditioning, weights, weight_kind)
    generator, seed = source_of(rng)
    asked, how = None, "given"
    if shap_values is None:
        asked = models.DifferenceQuotients(model, given.table, single=True)
        each, how = shapley_values(asked, background, generator, "regional_shap")
        values = np.ascontiguousarray(each[:, given.position, 0])
    else:
        values = given_column(shap_values, given.table, given.position)
    local = given.local(models.Differences(values[:, None], np.zeros(1), "shapley"))
    rule = EqualWidthBins(n_bins)
    work = work_of(local, rule, settings, "index", min_obs, honest_fraction, None, generator)
    tree, edges = _binned_tree(work, given, "variance", SQUARED)
    curve, spread = _means_in_bins(tree, given, values, edges)
    middles = (edges[:-1] + edges[1:]) / 2
    out = _finished(tree, "regional_shap", "Shapley values", middles, curve, spread, asked)
    drawn = asked is not None or test is not None
    return out.assign_attrs(shapley=how, **({"seed": seed} if drawn else {}))


# --- what the three have in common ----------------------------------------------------------------


@dataclass(frozen=True)
class _Given:
    """One feature of a table, checked, and what its regions may be made of."""

    X: Any
    table: models.Table
    position: int
    x: FloatArray
    weight: FloatArray | None
    weight_kind: str
    conditioning: pd.DataFrame | ArrayLike

    @classmethod
    def of(
        cls,
        X: Any,
        feature: str | int,
        conditioning: pd.DataFrame | ArrayLike | None,
        weights: ArrayLike | None,
        weight_kind: str,
    ) -> _Given:
        table = models.as_table(X)
        (position,) = models.positions_of(table, [feature])
        check_choice("weight_kind", weight_kind, ("precision", "frequency"))
        weight = table.weights(weights, weight_kind)
        x = models.check_column(table, position)
        if conditioning is None:
            if len(table.names) == 1:
                raise ValueError(
                    f"conditioning must be given: X holds no column besides "
                    f"{table.names[position]!r}. Pass a DataFrame with a row for each row of X."
                )
            conditioning = table.data
        return cls(X, table, position, x, weight, weight_kind, conditioning)

    @property
    def name(self) -> str:
        """Of the feature."""
        return self.table.names[self.position]

    @property
    def varies(self) -> bool:
        """Whether there is an effect to be found."""
        return bool(self.x.min() < self.x.max())

    def local(
        self, found: models.Differences, quotients: models.DifferenceQuotients | None = None
    ) -> xr.Dataset:
        """Numbers of all rows as local effects of the feature."""
        return labelled(
            self.X,
            self.table,
            [self.position],
            self.x[:, None],
            [found],
            self.weight,
            weight_kind=self.weight_kind,
            quotients=quotients,
        )


def _binned_tree(work: Work, given: _Given, loss: str, units: str) -> tuple[xr.Dataset, FloatArray]:
    """The tree, and the edges of its bins."""
    problem = work.problem(0, loss)
    tree = tree_of(work, 0, given.conditioning, problem, units)
    rule_name, parameters = describe(work.rule)
    # Of a constant feature no bin has an effect.
    edges = given.x[0] + np.array([0.0, 1.0])
    if problem is not None:
        edges = problem.edges
    return tree.assign_attrs(bin_rule=rule_name, bin_parameters=parameters), edges


def _rows_of_nodes(tree: xr.Dataset) -> list[IntArray]:
    """Numbers of the rows of every node."""
    region, parent = tree["region"].values, tree["parent"].values
    inside = tree[ROWS].values == np.where(region >= 0, region, -2)[:, None]
    for number in range(len(region) - 1, 0, -1):
        inside[parent[number]] |= inside[number]
    return [np.flatnonzero(rows) for rows in inside]


def _means_in_bins(
    tree: xr.Dataset, given: _Given, values: FloatArray, edges: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of values in bins, (node, bin): of the rows of every node."""
    cell, nodes = bin_index(edges, given.x), _rows_of_nodes(tree)
    mean = np.full((len(nodes), len(edges) - 1), np.nan)
    spread = np.full_like(mean, np.nan)
    for number, at in enumerate(nodes if given.varies else ()):
        for k in np.unique(cell[at]):
            rows = at[cell[at] == k]
            weight = None if given.weight is None else given.weight[rows]
            mean[number, k], spread[number, k] = _mean_and_std(
                values[rows], weight, frequency=given.weight_kind == "frequency"
            )
    return mean, spread


def _curves(
    local: xr.Dataset, tree: xr.Dataset, edges: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The ALE curve and its spread at the edges, (node, edge): of the rows of every node."""
    nodes = _rows_of_nodes(tree)
    found = {name: np.full((len(nodes), len(edges)), np.nan) for name in ("curve", "curve_std_sum")}
    for number, at in enumerate(nodes):
        effect = quiet_rhale(
            local.isel(obs=at), bins=GivenBins(edges), weighting="rows", std_error_moments=False
        )
        # The rows of a node may reach over a part of the bins.
        row = one_feature(effect, 0)
        begin = row["edge_value"].values[:1]
        first = int(np.argmin(np.abs(edges - begin))) if len(begin) else 0
        for name, values in found.items():
            values[number, first : first + row[name].size] = row[name].values
    return found["curve"], found["curve_std_sum"]


def _finished(
    tree: xr.Dataset,
    method: str,
    loss_kind: str,
    grid: FloatArray,
    curve: FloatArray,
    spread: FloatArray,
    asked: models.DifferenceQuotients | None,
) -> xr.Dataset:
    """The tree with the effect in every node, and with what it cost."""
    if asked is not None:
        asked.check_size()
    dims = ("node", "grid")
    return tree.assign(
        curve=(dims, curve, {"long_name": "effect", "units": "output units"}),
        curve_std=(dims, spread, {"long_name": "its spread", "units": "output units"}),
    ).assign_coords(
        grid=("grid", np.arange(len(grid)), {"long_name": "point of the grid"}),
        grid_value=("grid", grid, {"long_name": "value of the feature", "units": X_UNITS}),
    ).assign_attrs(
        method=method,
        loss_kind=loss_kind,
        model_calls=0 if asked is None else asked.n_calls,
        model_rows=0 if asked is None else asked.n_rows,
        software=software(),
    )  # fmt: skip


# --- partial dependence ---------------------------------------------------------------------------


@dataclass(frozen=True)
class _Curves:
    """One feature's ICE curves, and what the loss of a set of them is."""

    x: FloatArray
    curves: FloatArray
    weight: FloatArray | None
    frequency: bool
    error: float
    min_obs: float

    @property
    def block(self) -> int:
        """All rows may exchange their conditioning values."""
        return len(self.x)

    @property
    def least_rows(self) -> float:
        """Effective rows that a region must have."""
        return max(self.min_obs, 2.0) * (1 - 1e-12)

    def node(self, at: IntArray, min_share: float) -> Node[search.Curves]:  # noqa: ARG002
        """The node with the rows ``at``: all that differs between its curves is left in it."""
        weight = None if self.weight is None else self.weight[at]
        rows = search.curves_of(self.curves[at], weight, frequency=self.frequency)
        sums = rows.table(np.zeros(len(at), dtype=np.int64), 1)
        loss, total = float(search.curve_loss(sums)[0]), float(rows.total_weight(sums)[0])
        n_obs = total if self.frequency else float(len(at))
        return Node(at, rows, n_obs, total, loss, loss > (4 * self.error) ** 2, self.error)

    def held(self, node: Node[search.Curves]) -> _Curves:  # noqa: ARG002
        """The same: there are no bins."""
        return self

    def losses(self, sums: FloatArray, rows: search.Curves, exact: float) -> FloatArray:  # noqa: ARG002
        """Losses of many sets of rows."""
        return search.curve_loss(sums)


def _mean_and_std(
    values: FloatArray, weight: FloatArray | None, *, frequency: bool
) -> tuple[FloatArray, FloatArray]:
    """Of every column, math [5] and [6]."""
    w = np.ones(len(values)) if weight is None else weight
    total = w.sum()
    mean = w @ values / total
    degrees = total - (1 if weight is None or frequency else w @ w / total)
    squares = w @ (values - mean) ** 2
    return mean, np.sqrt(squares / degrees if degrees > 0 else np.full_like(squares, np.nan))
