"""The rows of local effects: weights, honest halves, columns and cells of features, sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arguments.checks import MAX_SIZE, check_finite
from rhale_stats.arrays import binning
from rhale_stats.arrays.binning import sorting
from rhale_stats.arrays.local_effects import are_repeated
from rhale_stats.arrays.moments import FloatArray, need_squares
from rhale_stats.bins.description import has_fact
from rhale_stats.bins.rule import BinRule, Column
from rhale_stats.bins.rules import GivenBins, QuantileBins
from rhale_stats.parallel import in_threads
from rhale_stats.schema.dimensions import ROWS
from rhale_stats.schema.feature_result import Result
from rhale_stats.schema.features import feature_names, feature_position
from rhale_stats.schema.identity import as_attribute, fingerprint
from rhale_stats.schema.parts import choosing_rows, features_by_rows, has_own_rows

# Cells that finite differences are taken across by default: so many at most and at least, and so
# many rows in each.
MAX_CELLS, MIN_CELLS, ROWS_OF_A_CELL = 40, 5, 10
# Cells go from each value to the next where a feature has ties and so many values at most.
MAX_VALUES, ROWS_OF_A_STEP = 100, 5
# Bins of ALE by default.
ALE_BINS = QuantileBins(MAX_CELLS)


def difference_edges(
    rule: BinRule | None,
    name: str,
    x: FloatArray,
    weight: FloatArray | None,
    *,
    counted: bool = False,
) -> FloatArray:
    """Edges of the cells that slopes are taken across, math [2].

    Cells are those of the rule, of the rows with weight. A rule that joins cells gets cells that
    adapt to the rows, and so do none and the default of ALE: from each value to the next where
    there are at most 100 values of three rows or more on average, else cells of equal numbers of
    rows, with 10 or more; ``max_bins`` of the rule at most, and 40 without one.
    """
    counts = None if weight is None or (weight == weight.max()).all() else weight[weight > 0]
    x_with_weight, repeats = with_weight(x, weight, counted)
    low, high = float(x_with_weight.min()), float(x_with_weight.max())
    if low == high:
        return np.array([low])
    if rule is None or rule is ALE_BINS or has_fact(rule, "joins_cells"):
        values = repeated_values(x_with_weight, repeats)
        if values is not None:
            return values
        if rule is ALE_BINS:
            return _of_rule(rule, Column(name, x_with_weight, low, high, counts))
        most = getattr(rule, "max_bins", MAX_CELLS)
        n_rows = len(x_with_weight) if repeats is None else repeats.sum()
        n_cells = int(min(max(n_rows // ROWS_OF_A_CELL, MIN_CELLS), most))
        edges = binning.quantile_edges(x_with_weight, n_cells, counts)
        return np.concatenate([[low], edges[(edges > low) & (edges < high)], [high]])
    edges = _of_rule(rule, Column(name, x_with_weight, low, high, counts))
    cells = rule.cells_of(name) if isinstance(rule, GivenBins) else None
    return edges if cells is None else np.union1d(edges, cells)


def with_weight(
    x: FloatArray, weight: FloatArray | None, is_frequency: bool
) -> tuple[FloatArray, FloatArray | None]:
    """Values of the rows with weight, and how often each occurs where weights say that."""
    if weight is None:
        return x, None
    return x[weight > 0], weight[weight > 0] if is_frequency else None


def _of_rule(rule: BinRule, column: Column) -> FloatArray:
    axis = rule.cells(column)
    return binning.bin_edges(axis, np.arange(len(axis)), column.low, column.high)


def repeated_values(x: FloatArray, counts: FloatArray | None) -> FloatArray | None:
    """Edges at the distinct values, where these are few and repeated; None where they are not.

    Between two edges, and on them, are 5 rows or more, so that cells of some of the rows have rows.
    """
    if len(np.unique(x[: 2 * MAX_VALUES])) > MAX_VALUES:
        return None
    values, of_row = np.unique(x, return_inverse=True)
    if len(values) > MAX_VALUES or not are_repeated(x, counts):
        return None
    n_rows, chosen = np.bincount(of_row, counts), [0]
    for number in range(1, len(values) - 1):
        if min(n_rows[chosen[-1] : number + 1].sum(), n_rows[number:].sum()) >= ROWS_OF_A_STEP:
            chosen.append(number)
    return values[[*chosen, len(values) - 1]] if len(values) > 1 else values


def cell_edges(local: xr.Dataset) -> list[FloatArray | None]:
    """Edges of the cells of finite differences, by feature; None if derivatives were taken."""
    if "cell_value" not in local.variables:
        return [None] * local.sizes["feature"]
    table = local.variables["cell_value"].transpose("feature", "cell_edge").values
    edges_of_features = [edges[np.isfinite(edges)] for edges in table]
    return [edges if len(edges) else None for edges in edges_of_features]


# --- sums over rows -------------------------------------------------------------------------------


class Reduction(NamedTuple):
    """A function of one chunk of rows, and one that combines the answers of several, in order.

    The first may have more arguments, which are given beside the rows.
    """

    map: Callable[..., Any]
    combine: Callable[[Sequence[Any]], Any]


class SortedValues(NamedTuple):
    """Values of one feature with their weights, sorted or not; None if each counts as one row.

    For many rows in chunks these are a summary [97]: some values, with the weight of the rows
    between them.
    """

    x: FloatArray
    weight: FloatArray | None
    frequency: bool
    ordered: bool = False


class Source(Protocol):
    """All rows of the local effects, in memory or in chunks."""

    @property
    def n_rows(self) -> int:
        """Number of rows of positive weight."""

    @property
    def size(self) -> int:
        """Number of local effects."""

    @property
    def unequal(self) -> bool:
        """Whether rows have precision weights that differ."""

    @property
    def largest(self) -> float:
        """Largest precision weight as it was given; weights are divided by it."""

    @property
    def most_rows(self) -> int:
        """Most rows of a chunk that are taken where an answer is made of rows themselves."""

    def ends(self, position: int, name: str) -> tuple[float, float]:
        """Smallest and largest value of a feature; refused where values are not finite."""

    def places(self, position: int) -> SortedValues:
        """Where the rows of a feature are on its axis."""

    def reduced(
        self, plan: Callable[[Source, int], Reduction | None], positions: Sequence[int], /
    ) -> list[Any]:
        """The answers of the reductions of these features, None without one.

        ``plan`` gives the reduction of a feature from the places of its rows, in whose order the
        rows come.
        """

    def fingerprints(self, names: Sequence[str], threads: int, /) -> dict[str, str]:
        """The attribute of an effect that tells what every feature of it was made from."""


def unequal(weight: FloatArray | None, *, frequency: bool) -> bool:
    """Whether there are precision weights that differ."""
    return weight is not None and need_squares(weight, frequency=frequency)


# --- the rows of local effects --------------------------------------------------------------------


SELECT_ROWS = "Select the rows first: local.isel(obs=...)."
# With fewer values than this, threads cost more time than they save.
THREADS_FROM = 200_000


def is_sized(g: FloatArray) -> bool:
    """Whether local effects are finite, with finite powers."""
    # One sum tells it nearly always, and is faster than a maximum and a minimum.
    return bool(np.einsum("i,i->", g, g) <= MAX_SIZE**2 or max(g.max(), -g.min()) <= MAX_SIZE)


def estimation_rows(local: xr.Dataset, effect: xr.Dataset) -> xr.Dataset:
    """The rows of ``local`` on which ``effect`` was estimated: with honest bins, not all."""
    used = is_estimation_row(local, effect)
    return local if used.all() else local.isel(obs=used)


def is_estimation_row(local: xr.Dataset, effect: Result) -> NDArray[np.bool_]:
    """Which rows of ``local`` the effect was estimated on. Shape (n_obs,)."""
    n_obs = local.sizes["obs"]
    if ROWS in effect and "region" in effect.coords:
        region_of_row = effect[ROWS].values
        if len(region_of_row) != n_obs:
            raise ValueError(
                f"local must have the rows that the regions were made from; got {n_obs} rows and "
                f"regions of {len(region_of_row)}."
            )
        return np.asarray(region_of_row == effect["region"].values)
    if "honest_seed" not in effect.attrs:
        return np.ones(n_obs, dtype=bool)
    fraction, seed = [effect.attrs[name] for name in ("honest_fraction", "honest_seed")]
    return ~choosing_rows(local, float(fraction), int(seed))


def is_used_row(local: xr.Dataset, effect: Result) -> NDArray[np.bool_]:
    """Which of these rows have positive weight, (n_obs,)."""
    used = is_estimation_row(local, effect)
    return used & (local["weight"].values > 0) if "weight" in local else used


class Rows(NamedTuple):
    """Contiguous columns of the local effects, one a feature; rows of weight 0 are gone."""

    x: list[FloatArray]
    local_effect: list[FloatArray]
    weight: FloatArray | None
    frequency: bool
    n_rows: int
    # Differences to the next level and from the one before, where features have levels.
    sides: list[tuple[FloatArray, FloatArray]] | None = None
    # Edges of the cells that slopes were taken across, by feature.
    cells: Sequence[FloatArray | None] = ()
    # Whether they are sorted by the one feature that they have.
    ordered: bool = False
    # The precision weight that the others were divided by.
    largest: float = 1.0

    @property
    def size(self) -> int:
        """Number of local effects."""
        return self.n_rows * len(self.x)

    @property
    def unequal(self) -> bool:
        """Whether rows have precision weights that differ."""
        return unequal(self.weight, frequency=self.frequency)

    @property
    def most_rows(self) -> int:
        """All rows: they are in memory."""
        return self.n_rows

    def ends(self, position: int, name: str) -> tuple[float, float]:
        """Smallest and largest value of a feature; refused where values are not finite."""
        x = self.x[position]
        low, high = (x[0], x[-1]) if self.ordered else (float(x.min()), float(x.max()))
        if not np.isfinite([low, high]).all():
            check_finite(x, "x", name, SELECT_ROWS)
        return float(low), float(high)

    def places(self, position: int) -> SortedValues:
        """Where the rows of a feature are on its axis."""
        return SortedValues(self.x[position], self.weight, self.frequency, self.ordered)

    def reduced(
        self,
        plan: Callable[[Source, int], Reduction | None],
        positions: Sequence[int],
    ) -> list[Any]:
        """The answers of the reductions of these features, None without one."""
        # New columns for every feature would take longer than to fill them.
        sorted_columns, answers = self._columns_to_sort(), []
        for position in positions:
            rows = self._sorted_by(position, sorted_columns)
            reduction = plan(rows, position)
            answers.append(None if reduction is None else reduction.map(rows))
        return answers

    def in_order(self, position: int) -> Rows:
        """Rows with their values and local effects of one feature only, in the order of values."""
        return self if self.ordered else self._sorted_by(position, self._columns_to_sort())

    def _columns_to_sort(self) -> FloatArray:
        """Room for values, local effects and row numbers of one feature, and for weights."""
        return np.empty((3 if self.weight is None else 4, self.n_rows))

    def _sorted_by(self, position: int, columns: FloatArray) -> Rows:
        """Rows with their values and local effects of one feature only, sorted, in ``columns``.

        They are not sorted where a value is refused: the message has the numbers of its rows.
        """
        x, g, numbers, *of_weight = columns
        order = sorting(self.x[position], (x, numbers.view(np.int64)))
        if not (np.isfinite(x[[0, -1]]).all() and is_sized(self.local_effect[position])):
            return self
        self.local_effect[position].take(order, out=g, mode="clip")
        weight = None
        if self.weight is not None:
            weight = self.weight.take(order, out=of_weight[0], mode="clip")
        of_x, of_g = [[np.zeros(0)] * len(self.x) for _ in range(2)]
        of_x[position], of_g[position] = x, g
        return self._replace(
            x=of_x,
            local_effect=of_g,
            weight=weight,
            sides=None,
            ordered=True,
        )

    def fingerprint(self, position: int) -> str:
        """Checksum of the rows and of the local effects of one feature."""
        sides = () if self.sides is None else self.sides[position]
        # Features with an axis have no differences up and down.
        known_sides = [side for side in sides if not np.isnan(side).all()]
        return fingerprint(self.x[position], self.weight, self.local_effect[position], *known_sides)

    def fingerprints(self, names: Sequence[str], threads: int = 1) -> dict[str, str]:
        """The attribute of an effect that tells what every feature of it was made from."""
        checksums = in_threads(self.fingerprint, range(len(names)), threads)
        return as_attribute(dict(zip(names, checksums, strict=True)))


def columns(local: xr.Dataset) -> Rows:
    """Columns of the local effects; weights scaled to 1 at most and dropped where all are equal."""
    x, g = [
        local.variables[name].transpose("obs", "feature").values for name in ("x", "local_effect")
    ]
    if not len(x):
        raise ValueError("local must have at least one row; got none.")
    sides = [
        local.variables[name].transpose("obs", "feature").values
        for name in ("difference_up", "difference_down")
        if name in local
    ]
    weight: FloatArray | None = None
    largest = 1.0
    frequency = local.attrs.get("weight_kind") == "frequency"
    if "weight" in local:
        weight = np.ascontiguousarray(local["weight"].values, dtype=np.float64)
        present = weight > 0
        if not present.all():
            x, g, weight = x[present], g[present], weight[present]
            sides = [side[present] for side in sides]
        if not len(x):
            raise ValueError("local must have rows of positive weight; got none among these rows.")
        if not frequency:
            largest = float(weight.max())
            weight = weight / largest
        if (weight == 1).all():
            weight = None

    def contiguous(table: NDArray[Any]) -> list[FloatArray]:
        return [
            np.ascontiguousarray(table[:, column], dtype=np.float64)
            for column in range(table.shape[1])
        ]

    both = list(zip(*map(contiguous, sides), strict=True)) if sides else None
    facts = len(x), both, cell_edges(local)
    return Rows(contiguous(x), contiguous(g), weight, frequency, *facts, largest=largest)


def own_columns(
    local: xr.Dataset, names: Sequence[str], effect: xr.Dataset | None = None
) -> dict[str, tuple[Rows, int]]:
    """Rows that have a value of a feature, with its number among their columns, by its name.

    With an ``effect`` they are those of which it was estimated.
    """
    if effect is not None and ROWS in effect:
        local, effect = estimation_rows(local, effect), None
    parts = [local]
    if has_own_rows(local):
        parts = [group.select(local, local) for group in features_by_rows(local)]
    if effect is not None:
        # Halves of rows are made of all rows, before these are split.
        parts = [estimation_rows(part, effect) for part in parts]
    rows_of_feature: dict[str, tuple[Rows, int]] = {}
    for part in parts:
        rows = columns(part)
        rows_of_feature |= {name: (rows, number) for number, name in enumerate(feature_names(part))}
    return {
        name: rows_of_feature[feature_names(local)[feature_position(local, name)]] for name in names
    }
