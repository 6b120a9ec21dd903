"""Code shared by regions of ALE, partial dependence and Shapley values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike

from rhale_stats.arrays import regions as search
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.bins.description import describe
from rhale_stats.bins.fixed import GivenBins
from rhale_stats.effects.rhale import quiet_rhale
from rhale_stats.local.labelled import labelled
from rhale_stats.models.chosen import positions_of
from rhale_stats.models.differences import DifferenceQuotients, Differences
from rhale_stats.models.options import ModelOptions
from rhale_stats.models.sample import Sample
from rhale_stats.models.table import check_column
from rhale_stats.regional.losses import Node
from rhale_stats.regional.trees import tree_of
from rhale_stats.regional.work import Work
from rhale_stats.schema.dimensions import ROWS
from rhale_stats.schema.features import one_feature
from rhale_stats.schema.validation import refuse_fields
from rhale_stats.schema.variables import GRID_VALUE, software

# --- what the three have in common ----------------------------------------------------------------


@dataclass(frozen=True)
class RegionalInputs:
    """One feature of a table, checked, and what its regions may be made of."""

    sample: Sample
    x: FloatArray
    conditioning: pd.DataFrame | ArrayLike

    @classmethod
    def from_arguments(
        cls,
        X: Any,
        feature: str | int,
        conditioning: pd.DataFrame | ArrayLike | None,
        options: ModelOptions,
    ) -> RegionalInputs:
        """Check the arguments and read the columns."""
        refuse_fields(options, ("missing",), "regions are made of all rows")
        sample = Sample.from_table(X, options)
        table = sample.table
        sample = sample.of_columns(positions_of(table, [feature]))
        (position,) = sample.positions
        x = check_column(table, position)
        if conditioning is None:
            if len(table.names) == 1:
                raise ValueError(
                    f"conditioning must be given: X holds no column besides "
                    f"{table.names[position]!r}. Pass a DataFrame with a row for each row of X."
                )
            conditioning = table.data
        return cls(sample, x, conditioning)

    @property
    def position(self) -> int:
        """Number of the column."""
        return self.sample.positions[0]

    @property
    def name(self) -> str:
        """Of the feature."""
        return self.sample.names[0]

    @property
    def varies(self) -> bool:
        """Whether there is an effect to be found."""
        return bool(self.x.min() < self.x.max())

    def local(
        self, differences: Differences, quotients: DifferenceQuotients | None = None
    ) -> xr.Dataset:
        """Numbers of all rows as local effects of the feature."""
        return labelled(self.sample, self.x[:, None], [differences], quotients)

    def mean_and_std(self, values: FloatArray, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        """Of every column of values of some rows, math [5] and [6]."""
        weight = self.sample.weight_at(rows)
        w = np.ones(len(rows)) if weight is None else weight
        total = w.sum()
        mean = w @ values / total
        counted = weight is None or self.sample.frequency
        degrees = total - (1 if counted else w @ w / total)
        squares = w @ (values - mean) ** 2
        return mean, np.sqrt(squares / degrees if degrees > 0 else np.full_like(squares, np.nan))


def binned_tree(
    work: Work, inputs: RegionalInputs, loss: str, units: str
) -> tuple[xr.Dataset, FloatArray]:
    """The tree, and the edges of its bins."""
    problem = work.problem(0, loss)
    tree = tree_of(work, 0, inputs.conditioning, problem, units)
    rule_name, parameters = describe(work.rule)
    # Of a constant feature no bin has an effect.
    edges = inputs.x[0] + np.array([0.0, 1.0])
    if problem is not None:
        edges = problem.edges
    return tree.assign_attrs(bin_rule=rule_name, bin_parameters=parameters), edges


def rows_of_nodes(tree: xr.Dataset) -> list[IntArray]:
    """Numbers of the rows of every node."""
    region, parent = tree["region"].values, tree["parent"].values
    inside = tree[ROWS].values == np.where(region >= 0, region, -2)[:, None]
    for number in range(len(region) - 1, 0, -1):
        inside[parent[number]] |= inside[number]
    return [np.flatnonzero(rows) for rows in inside]


def curves_of_regions(
    local: xr.Dataset, tree: xr.Dataset, edges: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The ALE curve and its spread at the edges, (node, edge): of the rows of every node."""
    nodes = rows_of_nodes(tree)
    curves = {
        name: np.full((len(nodes), len(edges)), np.nan) for name in ("curve", "curve_std_sum")
    }
    for number, rows in enumerate(nodes):
        effect = quiet_rhale(
            local.isel(obs=rows), bins=GivenBins(edges), weighting="rows", has_spread=False
        )
        # The rows of a node may reach over a part of the bins.
        row = one_feature(effect, 0)
        begin = row["edge_value"].values[:1]
        first = int(np.argmin(np.abs(edges - begin))) if len(begin) else 0
        for name, values in curves.items():
            values[number, first : first + row[name].size] = row[name].values
    return curves["curve"], curves["curve_std_sum"]


def finished(
    tree: xr.Dataset,
    method: str,
    loss_kind: str,
    grid: FloatArray,
    curve: FloatArray,
    spread: FloatArray,
    quotients: DifferenceQuotients | None,
) -> xr.Dataset:
    """The tree with the effect in every node, and with what it cost."""
    if quotients is not None:
        quotients.check_size()
    dims = ("node", "grid")
    return tree.assign(
        curve=(dims, curve, {"long_name": "effect", "units": "output units"}),
        curve_std=(dims, spread, {"long_name": "its spread", "units": "output units"}),
    ).assign_coords(
        grid=("grid", np.arange(len(grid)), {"long_name": "point of the grid"}),
        grid_value=("grid", grid, GRID_VALUE),
    ).assign_attrs(
        method=method,
        loss_kind=loss_kind,
        model_calls=0 if quotients is None else quotients.n_calls,
        model_rows=0 if quotients is None else quotients.n_rows,
        software=software(),
    )  # fmt: skip


# --- partial dependence ---------------------------------------------------------------------------


@dataclass(frozen=True)
class CurveProblem:
    """One feature's ICE curves, and what the loss of a set of them is."""

    x: FloatArray
    curves: FloatArray
    weight: FloatArray | None
    frequency: bool
    error: float
    min_obs: float

    @property
    def block(self) -> int:
        """Block size: all rows may exchange their conditioning values."""
        return len(self.x)

    @property
    def least_rows(self) -> float:
        """Effective rows that a region must have."""
        return max(self.min_obs, 2.0) * (1 - 1e-12)

    def node(self, row_numbers: IntArray, min_share: float) -> Node[search.NodeCurves]:  # noqa: ARG002
        """The node with these rows: all that differs between its curves is left in it."""
        weight = None if self.weight is None else self.weight[row_numbers]
        rows = search.curves_of(self.curves[row_numbers], weight, frequency=self.frequency)
        sums = rows.table(np.zeros(len(row_numbers), dtype=np.int64), 1)
        loss, total = float(search.curve_loss(sums)[0]), float(rows.total_weight(sums)[0])
        n_obs = total if self.frequency else float(len(row_numbers))
        return Node(row_numbers, rows, n_obs, total, loss, loss > (4 * self.error) ** 2, self.error)

    def with_bins_of(self, node: Node[search.NodeCurves]) -> CurveProblem:  # noqa: ARG002
        """The same: there are no bins."""
        return self

    def statistics(
        self,
        children: search.Children,
        rows: search.NodeCurves,  # noqa: ARG002
        node: Node[search.NodeCurves],  # noqa: ARG002
    ) -> FloatArray:
        """Studentised drops by many splits: (split,)."""
        return search.studentised_curves(children.left, children.right)

    def degrees(
        self,
        children: search.Children,
        rows: search.NodeCurves,  # noqa: ARG002
        node: Node[search.NodeCurves],  # noqa: ARG002
    ) -> FloatArray:
        """Degrees of freedom of the variances in these, (split,)."""
        return search.degrees_of_curves(children.left, children.right)

    def coarse(self, node: Node[search.NodeCurves]) -> tuple[CurveProblem, Node[search.NodeCurves]]:
        """The same: there are no bins."""
        return self, node

    def apart(self, node: Node[search.NodeCurves], unit: IntArray) -> search.NodeCurves:
        """Curves of a node about their mean, corrected for the leverage of units."""
        return search.apart_curves(node.rows, unit)

    def flipped(self, rows: search.NodeCurves, sign: FloatArray) -> search.NodeCurves:
        """The same with distances that have these signs."""
        return search.flipped_curves(rows, sign)

    def losses(self, sums: FloatArray, rows: search.NodeCurves, exact: float) -> FloatArray:  # noqa: ARG002
        """Losses of many sets of rows."""
        return search.curve_loss(sums)
