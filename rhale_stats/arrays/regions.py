"""Regional search, math [37] to [39]: losses of all splits of a node, from one table per column.

Rows enter once: a table over (cell of the conditioning column, cell of the feature) of sums of the
local effects. Running sums along the first give both children of every candidate split. The rule
for bins then handles all of them as problems of one size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special

from rhale_stats.arrays.moments import (
    BLOCK_ROWS,
    FloatArray,
    IntArray,
    Moments,
    merge,
    variance,
)

# Largest number of cells of a conditioning column that are in memory at once.
BLOCK_CODES = 256


class NodeRows(NamedTuple):
    """Rows of a node: their cell of the feature, and their distance from its centre.

    ``effect`` is the local effect less ``centre[cell]``; ``place`` the feature's value less
    ``x_centre[cell]``, only for rules that make lines. Weights as in `moments.Moments`.
    """

    cell: NDArray[np.integer]
    effect: FloatArray
    weight: FloatArray | None
    frequency: bool
    centre: FloatArray
    place: FloatArray | None = None
    x_centre: FloatArray | None = None

    def take(self, rows: IntArray) -> NodeRows:
        """These rows, about the same centres."""
        return self._replace(
            cell=self.cell[rows],
            effect=self.effect[rows],
            weight=None if self.weight is None else self.weight[rows],
            place=None if self.place is None else self.place[rows],
        )

    @property
    def counts(self) -> FloatArray | None:
        """How often a row occurs, where weights say that."""
        return self.weight if self.frequency else None

    @property
    def counted(self) -> bool:
        """Whether a sum of weights is a number of rows (no precision weights)."""
        return self.weight is None or self.frequency

    def table(self, codes: NDArray[np.integer], n_codes: int) -> FloatArray:
        """Sums over the rows of every (code, cell), about the centres: (sum, code, cell).

        The sums are of w, w g, w g^2; with precision weights also of 1 and w^2; for lines also of w
        x, w x^2, w x g.
        """
        n_cells = len(self.centre)
        precise = self.weight is not None and not self.frequency
        n_sums = 3 + 2 * precise + 3 * (self.place is not None)
        out = np.zeros((n_sums, n_codes * n_cells))
        for begin in range(0, len(codes), BLOCK_ROWS):
            block = slice(begin, begin + BLOCK_ROWS)
            entry = codes[block].astype(np.intp)
            entry *= n_cells
            entry += self.cell[block]
            g = self.effect[block]
            w = None if self.weight is None else self.weight[block]
            wg = g if w is None else w * g
            columns = [w, wg, wg * g]
            if w is not None and precise:
                columns += [None, w * w]
            if self.place is not None:
                x = self.place[block]
                wx = x if w is None else w * x
                columns += [wx, wx * x, wx * g]
            for total, column in zip(out, columns, strict=True):
                total += np.bincount(entry, column, len(total))
        return out.reshape(n_sums, n_codes, n_cells)

    def total_weight(self, sums: FloatArray) -> FloatArray:
        """Weight of the rows of every problem, (sum, ..., cell) -> (...,)."""
        return np.asarray(sums[0].sum(axis=-1))

    def effective_rows(self, sums: FloatArray) -> FloatArray:
        """Kish's number of the rows of every problem."""
        weight = np.asarray(sums[0].sum(axis=-1))
        if self.counted:
            return weight
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.nan_to_num(weight**2 / sums[4].sum(axis=-1)))

    def moments(self, sums: FloatArray) -> Moments:
        """Moments of the cells of every problem, (..., cell)."""
        weight, g, gg = sums[:3]
        n_obs, weight_sq = (weight, weight) if self.counted else (sums[3], sums[4])
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = g / weight
            m2 = np.where(weight > 0, np.maximum(gg - g * mean, 0.0), 0.0)
            cells = Moments(n_obs, weight, weight_sq, self.centre + mean, m2, np.zeros_like(mean))
            if self.x_centre is not None:
                x, xx, xg = sums[-3:]
                away = x / weight
                cells = cells._replace(
                    x_mean=self.x_centre + away,
                    x_m2=np.where(weight > 0, np.maximum(xx - x * away, 0.0), 0.0),
                    xg=np.where(weight > 0, xg - x * mean, 0.0),
                )
        return cells

    def in_bins(self, starts: NDArray[np.bool_]) -> NodeRows:
        """The rows with bins, of which these cells are the first, as their cells; without lines."""
        bins = (np.cumsum(starts) - 1)[self.cell]
        values = self.centre[self.cell] + self.effect
        centre = means(bins, values, self.weight, int(starts.sum()))
        return NodeRows(bins, values - centre[bins], self.weight, self.frequency, centre)

    def apart(self, unit: IntArray) -> NodeRows:
        """Rows about the means of their cells, whose units have errors as large as if unadjusted.

        A unit with the share s of the weight of a cell moves the mean of the cell towards itself:
        the mean of its distances is divided by (1 - s)^(1/2), as CR2 does (math [72]).
        """
        effect = _unadjusted(self.effect[:, None], self.cell, unit, self.weight)[:, 0]
        return self._replace(effect=effect)

    def flipped(self, sign: FloatArray) -> NodeRows:
        """Rows whose distances from the centres have these signs."""
        return self._replace(effect=sign * self.effect)


def means(
    cell: NDArray[np.integer], values: FloatArray, weight: FloatArray | None, n_cells: int
) -> FloatArray:
    """Mean of the values in every cell, 0 in empty cells; a centre for precision."""
    total, first = np.zeros((2, n_cells))
    for begin in range(0, len(values), BLOCK_ROWS):
        block = slice(begin, begin + BLOCK_ROWS)
        codes, w = cell[block].astype(np.intp), None if weight is None else weight[block]
        total += np.bincount(codes, w, n_cells)
        first += np.bincount(codes, values[block] if w is None else w * values[block], n_cells)
    return first / np.where(total > 0, total, 1.0)


def away(values: FloatArray, centre: FloatArray, cell: NDArray[np.integer]) -> FloatArray:
    """Distance of every value from the centre of its cell."""
    out = np.empty(len(values))
    for begin in range(0, len(values), BLOCK_ROWS):
        block = slice(begin, begin + BLOCK_ROWS)
        np.subtract(values[block], centre[cell[block]], out=out[block])
    return out


class NodeCurves(NamedTuple):
    """Rows of a node that are curves along a grid, less their mean: every row is in every cell.

    ``columns`` of a row: 1, its precision weight (else 1), the sum of squares of its curve, and
    the curve. ``weight`` is that of its sums. Methods are those of `NodeRows`.
    """

    columns: FloatArray
    weight: FloatArray | None

    @classmethod
    def from_curves(
        cls, values: FloatArray, weight: FloatArray | None, *, frequency: bool
    ) -> NodeCurves:
        """Rows of a node from their curves, (row, grid)."""
        precision = np.ones(len(values)) if weight is None or frequency else weight
        return cls._of(precision, values - np.average(values, axis=0, weights=weight), weight)

    @classmethod
    def _of(cls, precision: FloatArray, away: FloatArray, weight: FloatArray | None) -> NodeCurves:
        squares = np.einsum("ij,ij->i", away, away)
        return cls(np.column_stack([np.ones(len(away)), precision, squares, away]), weight)

    @property
    def counts(self) -> FloatArray | None:
        """The weights if they are frequency weights."""
        return None if (self.columns[:, 1] != 1).any() else self.weight

    def take(self, rows: IntArray) -> NodeCurves:
        """These rows."""
        return NodeCurves(self.columns[rows], None if self.weight is None else self.weight[rows])

    def table(self, codes: NDArray[np.integer], n_codes: int) -> FloatArray:
        """Weighted sums of the columns over the rows of every code, (1, code, column)."""
        n_rows = len(codes)
        values = np.ones(n_rows) if self.weight is None else self.weight
        member = sparse.csr_array((values, codes, np.arange(n_rows + 1)), shape=(n_rows, n_codes))
        return np.asarray(member.T @ self.columns)[None]

    def total_weight(self, sums: FloatArray) -> FloatArray:
        """Weight of the rows of every problem, (1, ..., column) -> (...,)."""
        return np.asarray(sums[0, ..., 0])

    def effective_rows(self, sums: FloatArray) -> FloatArray:
        """Kish's number of the rows of every problem."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.nan_to_num(sums[0, ..., 0] ** 2 / sums[0, ..., 1]))

    def apart(self, unit: IntArray) -> NodeCurves:
        """Curves whose units have errors as large as if unadjusted; all are in one cell."""
        cell = np.zeros(len(unit), dtype=np.intp)
        away = _unadjusted(self.columns[:, 3:], cell, unit, self.weight)
        return self._of(self.columns[:, 1], away, self.weight)

    def flipped(self, sign: FloatArray) -> NodeCurves:
        """Curves whose distances from their mean have these signs."""
        return self._of(self.columns[:, 1], sign[:, None] * self.columns[:, 3:], self.weight)


# Rows of a node. Splits need only their sums by code, (sum, code, cell).
RowsOfNode: TypeAlias = NodeRows | NodeCurves


def _unadjusted(
    away: FloatArray, cell: NDArray[np.integer], unit: IntArray, weight: FloatArray | None
) -> FloatArray:
    """Distances (row, column) from the means of cells, corrected for the leverage of units."""
    w = np.ones(len(away)) if weight is None else weight
    n_units = int(unit.max()) + 1
    _, pair = np.unique(cell.astype(np.intp) * n_units + unit, return_inverse=True)
    by_pair = sparse.csr_array((w, (pair, np.arange(len(w)))), shape=(int(pair.max()) + 1, len(w)))
    total = np.bincount(pair, w)
    share = total[pair] / np.bincount(cell, w)[cell]
    mean = np.asarray(by_pair @ away)[pair] / np.where(total > 0, total, 1.0)[pair, None]
    # The only unit of a cell is at the mean, and stays there.
    with np.errstate(divide="ignore"):
        more = np.where(share < 1 - 1e-9, 1 / np.sqrt(1 - share) - 1, 0.0)
    return np.asarray(away + more[:, None] * mean)


class Children(NamedTuple):
    """Splits from ``first`` on: sums of the rows on both sides, (sum, side, split, cell)."""

    first: int
    sides: FloatArray


def threshold_children(
    codes: NDArray[np.integer], n_codes: int, rows: RowsOfNode, n_draws: int = 1
) -> Iterable[Children]:
    """Both sides of every threshold: split k has the codes up to k on its left.

    Right sides are summed separately, because differences would lose digits. Many codes are handled
    in blocks, to limit memory. ``rows`` may be those of several draws one behind the other, which
    have the same codes: splits are those of each in turn.
    """
    if n_codes > BLOCK_CODES:
        assert n_draws == 1, "many codes are handled one draw after the other"
        return _blocks_of_thresholds(codes, n_codes, rows)
    sums = _of_draws(codes, n_codes, rows, n_draws)
    n_sums, _, _, n_cells = sums.shape
    sides = np.empty((n_sums, 2, n_draws, n_codes - 1, n_cells))
    np.cumsum(sums[:, :, :-1], axis=2, out=sides[:, 0])
    np.cumsum(sums[:, :, :0:-1], axis=2, out=sides[:, 1, :, ::-1])
    return (Children(0, sides.reshape(n_sums, 2, -1, n_cells)),)


def _blocks_of_thresholds(
    codes: NDArray[np.integer], n_codes: int, rows: RowsOfNode
) -> Iterator[Children]:
    """Both sides of every threshold, a block of codes at a time."""
    block = codes // BLOCK_CODES
    n_blocks = -(-n_codes // BLOCK_CODES)
    of_blocks = rows.table(block, n_blocks)
    before = np.cumsum(of_blocks, axis=1) - of_blocks
    after = _from_the_right(of_blocks)
    order = np.argsort(block, kind="stable")
    bounds = np.searchsorted(block[order], np.arange(n_blocks + 1))
    for number in range(n_blocks):
        members = order[bounds[number] : bounds[number + 1]]
        first = number * BLOCK_CODES
        n_here = min(BLOCK_CODES, n_codes - first)
        sums = rows.take(members).table(codes[members] - first, n_here)
        left = np.cumsum(sums, axis=1) + before[:, number, None]
        right = np.zeros_like(sums)
        right[:, :-1] = _from_the_right(sums)[:, 1:]
        if number + 1 < n_blocks:
            right += after[:, number + 1, None]
        # The last code is not a threshold.
        n_splits = min(n_here, n_codes - 1 - first)
        yield Children(first, np.stack([left, right], axis=1)[:, :, :n_splits])


def _from_the_right(sums: FloatArray) -> FloatArray:
    """Sums over each code and all after it."""
    return np.asarray(np.cumsum(sums[:, ::-1], axis=1)[:, ::-1])


def _of_draws(
    codes: NDArray[np.integer], n_codes: int, rows: RowsOfNode, n_draws: int
) -> FloatArray:
    """Sums over the rows of every code in every draw, (sum, draw, code, cell)."""
    if n_draws > 1:
        first = n_codes * np.arange(n_draws, dtype=np.int32)
        codes = (first[:, None] + codes).ravel()
    sums = rows.table(codes, n_draws * n_codes)
    return sums.reshape(len(sums), n_draws, n_codes, -1)


def subset_children(
    codes: NDArray[np.integer], subsets: NDArray[np.bool_], rows: RowsOfNode, n_draws: int = 1
) -> tuple[Children]:
    """Both sides of every subset of codes, (split, code)."""
    sums = _of_draws(codes, subsets.shape[1], rows, n_draws)
    sides = np.stack([side.astype(np.float64) @ sums for side in (subsets, ~subsets)], axis=1)
    return (Children(0, sides.reshape(len(sums), 2, -1, sums.shape[-1])),)


def one_against_rest(n_levels: int) -> NDArray[np.bool_]:
    """Each level against all others; for two levels, one of them is enough."""
    return np.eye(n_levels, dtype=bool)[: n_levels if n_levels > 2 else 1]


def all_subsets(n_levels: int) -> NDArray[np.bool_]:
    """All 2^(n - 1) - 1 divisions of the levels into two sets, those of few levels first."""
    subsets = []
    for size in range(1, n_levels // 2 + 1):
        for members in combinations(range(n_levels), size):
            if 2 * size < n_levels or 0 in members:  # of two halves, the one with the first level
                inside = np.zeros(n_levels, dtype=bool)
                inside[list(members)] = True
                subsets.append(inside)
    return np.array(subsets)


def loss(
    cells: Moments,
    width: FloatArray,
    starts: NDArray[np.bool_],
    linear: NDArray[np.bool_] | None,
    *,
    kind: str,
    ddof: int,
) -> FloatArray:
    """Heterogeneity left in the bins of every problem, math [10] with unbiased variances.

    "index": sum of width * variance. "output": root of the mean variance over the rows (times the
    standard deviation of the feature it is in units of the output). "variance": the mean variance
    itself. Bins with too few rows for a variance count as the average of the others. NaN if no bin
    has a variance.

    Parameters
    ----------
    cells : Moments
        Of shape (problems, cells).
    width : ndarray of shape (cells,)
    starts, linear : ndarray of shape (problems, cells)
        Which cells begin a bin, and whether that bin is linear.
    kind : {"index", "output", "variance"}
    ddof : int
        Of a constant bin.
    """
    n_problems, n_cells = starts.shape
    begin = np.flatnonzero(starts)
    bins = merge(cells.each(np.ravel), begin)
    spread = variance(bins, ddof)
    if bins.x_m2 is not None and bins.xg is not None and linear is not None:
        with np.errstate(invalid="ignore", divide="ignore"):
            residual = bins._replace(m2=np.maximum(bins.m2 - bins.xg**2 / bins.x_m2, 0.0))
        spread = np.where(linear.ravel()[begin], variance(residual, ddof + 1), spread)
    share = np.add.reduceat(np.tile(width, n_problems), begin) if kind == "index" else bins.weight
    finite = np.isfinite(spread)
    first = np.flatnonzero(begin % n_cells == 0)
    total = np.add.reduceat(np.where(finite, share * spread, 0.0), first)
    over = np.add.reduceat(np.where(finite, share, 0.0), first)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = total / over
    if kind == "variance":
        return np.asarray(mean)
    return np.asarray(mean * width.sum() if kind == "index" else np.sqrt(mean))


def curve_loss(sums: FloatArray) -> FloatArray:
    """Mean along the grid of the variance of the curves (math [40]), ddof 1 as in math [6].

    (1, ..., column) -> (...,); NaN for fewer than two rows.
    """
    weight, weight_sq, squares, curve = np.split(sums[0], [1, 2, 3], axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        within = squares[..., 0] - (curve**2 / weight).sum(axis=-1)
        degrees = (weight - weight_sq / weight)[..., 0]
        return np.where(degrees > 0, np.maximum(within, 0.0) / degrees / curve.shape[-1], np.nan)


# --- statistics of splits -------------------------------------------------------------------------


def studentised(
    rows: NodeRows, sums: FloatArray, width: FloatArray | None, rounding: float
) -> FloatArray:
    """Drop of the variance within bins by every split, over its expectation (math [39]).

    The squared difference of the means of both sides over its variance, with one variance for each
    side: sum a c (mean_L - mean_R)^2 / sum a c (s_L^2 / n_L + s_R^2 / n_R), c = W_L W_R / W. Of one
    bin this is the square of Welch's t.

    Parameters
    ----------
    rows : NodeRows
        Of the node, whose cells are its bins.
    sums : ndarray of shape (sum, side, split, bin)
    width : ndarray of shape (bin,) or None
        With widths a bin counts as in the index, a = width / W; without, a = 1.
    rounding : float
        Standard deviation below which local effects are only rounded.
    """
    sides = rows.moments(sums)
    with np.errstate(invalid="ignore", divide="ignore"):
        share, of_mean = _shares(sides, width)
        noise = (_variance_or_pooled(sides) * of_mean).sum(axis=0)
        floor = (rounding**2 * of_mean).sum(axis=0)
        squared = (sides.mean[0] - sides.mean[1]) ** 2
    usable = np.isfinite(share) & np.isfinite(noise) & np.isfinite(squared) & (share > 0)
    drop = np.where(usable, share * squared, 0.0).sum(axis=1)
    expected = np.where(usable, share * np.maximum(noise, floor), 0.0).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(drop > 0, drop / expected, 0.0)


def studentised_degrees(rows: NodeRows, sums: FloatArray, width: FloatArray | None) -> FloatArray:
    """Satterthwaite's degrees of freedom of the denominator of `studentised`, (split,).

    A bin without a variance of its own takes that of its side, and all of its degrees.
    """
    sides = rows.moments(sums)
    with np.errstate(invalid="ignore", divide="ignore"):
        share, of_mean = _shares(sides, width)
        part = share * _variance_or_pooled(sides) * of_mean
        part = np.where(np.isfinite(part), part, 0.0)
        degrees = np.where(sides.weight > 0, sides.weight**2 / sides.weight_sq - 1, 0.0)
        together = np.maximum(degrees.sum(axis=-1, keepdims=True), 0.0)
        degrees = np.where(degrees > 1e-12, degrees, together)
        squares = np.where(part > 0, part**2 / degrees, 0.0).sum(axis=(0, 2))
        # Without any variance nothing is estimated.
        return np.where(squares > 0, part.sum(axis=(0, 2)) ** 2 / squares, np.inf)


def _shares(sides: Moments, width: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """What every bin counts, (split, bin); and variances of means by those of rows, by side."""
    total = sides.weight.sum(axis=0)
    share = sides.weight[0] * sides.weight[1] / total
    share = share if width is None else share * width / total
    return share, sides.weight_sq / sides.weight**2


def _variance_or_pooled(bins: Moments) -> FloatArray:
    """Variances of the bins (math [6]); a bin without one has that of all bins together."""
    single = variance(bins, 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        degrees = np.where(bins.weight > 0, bins.weight - bins.weight_sq / bins.weight, 0.0)
        pooled = bins.m2.sum(axis=-1) / np.maximum(degrees.sum(axis=-1), 0.0)
    return np.where(np.isfinite(single), single, pooled[..., None])


def studentised_curves(sums: FloatArray) -> FloatArray:
    """`studentised` of curves, (1, side, split, column); squares are summed along the grid."""
    with np.errstate(invalid="ignore", divide="ignore"):
        means = sums[0, ..., 3:] / sums[0, ..., :1]
        squared = np.mean((means[0] - means[1]) ** 2, axis=1)
        noise = (curve_loss(sums) * sums[0, ..., 1] / sums[0, ..., 0] ** 2).sum(axis=0)
        return np.asarray(np.nan_to_num(squared / noise, nan=0.0, posinf=np.inf))


def degrees_of_curves(sums: FloatArray) -> FloatArray:
    """`studentised_degrees` of curves (Welch)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        parts = curve_loss(sums) * sums[0, ..., 1] / sums[0, ..., 0] ** 2
        degrees = sums[0, ..., 0] ** 2 / sums[0, ..., 1] - 1
        combined = parts.sum(axis=0) ** 2 / (parts**2 / degrees).sum(axis=0)
    return np.where(np.isnan(combined), np.inf, combined)


def at_most(largest: float, degrees: FloatArray) -> float:
    """Bound of the probability that some split has such a statistic by chance (math [39]).

    For normal errors no sum of squares with expectation 1 has a longer tail than the square of one
    normal variable (Szekely and Bakirov 2003); the probabilities of all splits are added up.
    """
    return float(np.minimum(np.sum(2 * special.stdtr(degrees, -np.sqrt(largest))), 1.0))


def shuffled(n_rows: int, block: int, rng: np.random.Generator) -> IntArray:
    """Rows in random order within blocks of so many neighbours; the last block may be smaller."""
    whole = n_rows // block * block
    inside = rng.permuted(np.arange(whole).reshape(-1, block), axis=1).ravel()
    return np.concatenate([inside, whole + rng.permutation(n_rows - whole)])
