"""Debiased effects of one feature on the outcome, with their influences (math [114]).

Chernozhukov, Newey and Singh (2022), *Econometrica* 90, for the estimator; the representer is made
of a dictionary by ridge regression. The part of the learner follows the jackknife of cross-fitting
(math [83]).

The dictionary holds functions of the columns: of the feature itself the hats at the edges of its
bins, or indicators of its levels; of every other column hats or indicators; and products of a few
hats of the feature with the other columns. Each function comes with its change from the lower to
the upper edge of a bin.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rhale_stats.arrays.delta import summed
from rhale_stats.arrays.members import jackknife_factor
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.schema.curves import interpolation

# Hats of another column and of the feature in products; most values that have indicators.
HATS, COARSE, MAX_INDICATORS = 6, 3, 8
# With so many rows, and rows a column, by weight, other columns have hats in their tails too, and
# are hats in products. Hats of a bin go by the cube root of the rows over `PART_ROWS`.
LARGE, COLUMN_ROWS, PART_ROWS = 2_000, 400, 450
TAILS = (0.01, 0.05)


@dataclass(frozen=True)
class Entries:
    """Which rows take part in which bins.

    A row on an edge between two bins takes part in both, and one at an inner level in the steps to
    both of its neighbours. One beyond the outermost edges, or without a value, takes part in none.
    Levels are at 0, 1, ...
    """

    row: IntArray
    bin: IntArray
    weight: FloatArray
    edges: FloatArray
    x: FloatArray
    levels: bool

    @property
    def n_bins(self) -> int:
        """Number of bins or steps."""
        return len(self.edges) - 1

    @property
    def width(self) -> FloatArray:
        """Widths of the bins."""
        return np.diff(self.edges)

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Rows that take part."""
        return np.asarray((self.x >= self.edges[0]) & (self.x <= self.edges[-1]))


def entries_of(x: FloatArray, edges: FloatArray, *, levels: bool) -> Entries:
    """Rows by bins; NaN is a row without a value."""
    n_bins = len(edges) - 1
    rows = np.flatnonzero((x >= edges[0]) & (x <= edges[-1]))
    bin_of_row = np.clip(np.searchsorted(edges, x[rows], side="right") - 1, 0, n_bins)
    right = bin_of_row < n_bins
    left = (x[rows] == edges[bin_of_row]) & (bin_of_row > 0)
    weight = np.where(right & left & (not levels), 0.5, 1.0)
    return Entries(
        np.concatenate([rows[right], rows[left]]),
        np.concatenate([bin_of_row[right], bin_of_row[left] - 1]),
        np.concatenate([weight[right], weight[left]]),
        edges,
        x,
        levels,
    )


def effective_rows(weight: FloatArray, counts: FloatArray) -> float:
    """Kish's number of rows; where weights are ``counts`` of repeated rows, that of all of them."""
    # Of equal weights the number of rows, up to rounding, which would decide on numbers of bins.
    return round(float(weight.sum() ** 2 / np.sum(weight**2 / counts)), 6)


def refined(edges: FloatArray, n_effective: float) -> FloatArray:
    """Edges of the bins and between them more at equal distances, as many as the rows allow."""
    n_parts = max(int(np.cbrt(n_effective / PART_ROWS)), 1)
    steps = np.diff(edges)[:, None] * np.arange(n_parts) / n_parts
    return np.append((edges[:-1, None] + steps).ravel(), edges[-1])


def indicators(x: FloatArray, values: FloatArray) -> FloatArray:
    """1 at each of the values but the first."""
    return np.asarray(x[:, None] == values[1:], dtype=np.float64)


def hats(x: FloatArray, edges: FloatArray) -> FloatArray:
    """Piecewise linear functions, 1 at one edge and 0 at the others, but for the first edge."""
    return interpolation(edges, x)[:, 1:]


def basis(
    x: FloatArray, n_hats: int = HATS, few: int = MAX_INDICATORS, *, tails: bool = False
) -> FloatArray:
    """Functions of one column: hats at equal counts, or indicators of few values, and of NaN.

    ``tails``: there are further hats where 1 and 5 % of the rows are farther out.
    """
    finite = np.isfinite(x)
    values = np.unique(x[finite])
    parts = [] if finite.all() else [(~finite).astype(np.float64)[:, None]]
    if 1 < len(values) <= few:
        parts.append(indicators(x, values))
    elif len(values) > 1:
        shares = np.linspace(0, 1, n_hats + 1)
        if tails:
            shares = np.sort(np.r_[shares, TAILS, 1 - np.array(TAILS)])
        edges = np.unique(np.quantile(x[finite], shares))
        parts.append(np.nan_to_num(hats(x, edges)))
    return np.column_stack(parts) if parts else np.zeros((len(x), 0))


def factors(x: FloatArray, *, large: bool) -> FloatArray:
    """Functions of one column for products: it, or with many rows hats, or few indicators."""
    finite = np.isfinite(x)
    values = np.unique(x[finite])
    if large or len(values) <= COARSE + 1:
        return basis(np.where(finite, x, values[0] if len(values) else 0.0), COARSE, COARSE + 1)
    mean, deviation = x[finite].mean(), x[finite].std()
    return np.where(finite, (x - mean) / deviation, 0.0)[:, None]


def functions_of(
    columns: dict[str, FloatArray], n_effective: float
) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Functions of every column, and those of it in products, as many as the rows allow."""
    large = n_effective >= max(LARGE, COLUMN_ROWS * len(columns))
    return {name: (basis(x, tails=large), factors(x, large=large)) for name, x in columns.items()}


def dictionary_of(
    entries: Entries, others: list[FloatArray], products: list[FloatArray], n_effective: float
) -> tuple[FloatArray, FloatArray]:
    """Values of the functions for one feature, (row, function); change per unit (entry, function).

    The change is that of the first functions: those behind them are of other columns and do not
    change with the feature.
    """
    x, edges, n_bins = entries.x, entries.edges, entries.n_bins
    # Rows beyond the edges have a constant of their own at each end: else those of the outermost
    # bins would be corrected by what the learner has wrong beyond them.
    filled = np.where(entries.inside, x, edges[0])
    if entries.levels:
        main_values, of_edges = indicators(filled, edges), indicators(edges, edges)
    else:
        knots = refined(edges, n_effective)
        main_values, of_edges = hats(filled, knots), hats(edges, knots)
    step = np.diff(of_edges, axis=0) / entries.width[:, None]
    outside = [~np.isfinite(x), x < edges[0], x > edges[-1]]
    if entries.levels and n_bins > COARSE:
        coarse = (edges - edges.mean())[:, None] / max(edges.std(), 1e-12)
        coarse_values = coarse[np.searchsorted(edges, filled)]
    elif entries.levels:
        coarse, coarse_values = of_edges, main_values
    else:
        few = edges[np.unique(np.round(np.linspace(0, n_bins, COARSE + 1)).astype(int))]
        coarse, coarse_values = hats(edges, few), hats(filled, few)
    coarse_step = np.diff(coarse, axis=0) / entries.width[:, None]
    values, change = [main_values], [step[entries.bin]]
    for other in products:
        pairs = coarse_values[:, :, None] * other[:, None, :]
        moved = coarse_step[entries.bin][:, :, None] * other[entries.row][:, None, :]
        values.append(pairs.reshape(len(x), -1))
        change.append(moved.reshape(len(entries.row), -1))
    still = [*others, *(rows.astype(np.float64)[:, None] for rows in outside if rows.any())]
    return np.column_stack([*values, *still]), np.column_stack(change)


# --- debiased effects -----------------------------------------------------------------------------

# Ridge of the dictionary, a share of the mean square of its functions: at most so much, and so much
# by the number of rows, for its bias to vanish with many.
MAX_RIDGE, RIDGE_ROWS = 0.01, 10
# Leverages are held below this.
MAX_LEVERAGE = 0.9


@dataclass(frozen=True)
class DebiasedEffects:
    """Effects per bin, their influences, and what the learner adds.

    ``influence`` and ``learner`` are (unit, bin): the error of the effects is the sum of the
    influences over units, rows or groups. ``learner`` are sums of squares of what two learners
    differ by, (repeat × fold, bin), and ``noise`` the covariance that rows alone give these.
    """

    effect: FloatArray
    influence: FloatArray
    learner: FloatArray
    noise: FloatArray
    n_folds: int
    representer: FloatArray

    def learner_variance(self, loadings: FloatArray) -> FloatArray:
        """Variance by the learner of linear functions of the effects, (function, bin) -> function.

        (K − 1)² / K times the mean of half the squared difference of two learners on a fold, less
        what the rows of the fold make of it; at least 0.
        """
        square = (self.learner @ loadings.T) ** 2
        noise = np.einsum("fk,jkl,fl->jf", loadings, self.noise, loadings)
        factor = jackknife_factor(self.n_folds)
        return np.asarray(np.maximum(factor * 0.5 * (square - noise).mean(axis=0), 0.0))


@dataclass(frozen=True)
class FoldAnswers:
    """What the models of a repeat say: changes per unit at entries, and residuals of rows.

    ``change`` is by the model that did not see the row, ``other_change`` and ``other_residual`` by
    the model of the next fold.
    """

    fold: IntArray
    change: FloatArray
    other_change: FloatArray
    residual: FloatArray
    other_residual: FloatArray


def debiased(
    entries: Entries,
    dictionary: tuple[FloatArray, FloatArray],
    answers: list[FoldAnswers],
    share: FloatArray,
    counts: FloatArray,
    groups: IntArray | None,
) -> DebiasedEffects:
    """The estimate of math [114]; ``share`` are weights of the rows that sum to 1.

    A row represents ``counts`` independent rows. Each has an equal part of its influence, so that
    their sum of squares is that of the influence divided by the square root of the count.
    """
    n, n_bins, row, bins = len(share), entries.n_bins, entries.row, entries.bin
    weight = entries.weight * share[row]
    total = np.bincount(bins, weight, n_bins)
    part = weight / total[bins]  # of an entry in the mean of its bin

    def on_rows(values: FloatArray) -> FloatArray:
        """Sums over the entries of every row and bin, (row, bin)."""
        sums = np.asarray(np.bincount(row * n_bins + bins, values, n * n_bins), np.float64)
        return sums.reshape(n, n_bins)

    values, change = dictionary
    functions = np.column_stack([np.ones(n), values])
    moving = slice(1, 1 + change.shape[1])
    # Functions in units of their deviation: the ridge treats them alike, and no constant.
    mean = share @ functions[:, 1:]
    deviation = np.sqrt(share @ (functions[:, 1:] - mean) ** 2)
    deviation[~(deviation > 1e-12)] = np.inf
    functions[:, 1:] = (functions[:, 1:] - mean) / deviation
    change = change / deviation[: moving.stop - 1]
    gram = functions.T @ (share[:, None] * functions)
    ridge = min(MAX_RIDGE, RIDGE_ROWS / effective_rows(share, counts))
    gram[np.diag_indices(len(gram))] += np.r_[0.0, np.full(len(gram) - 1, ridge)] + 1e-12
    means = sparse.csr_array((part, (bins, np.arange(len(row)))), (n_bins, len(row))) @ change
    inverse = np.linalg.inv(gram)
    by_inverse = functions @ inverse
    representer = by_inverse[:, moving] @ means.T  # (row, bin)
    # The leverage is that of one of the rows, and by groups of all that a row represents.
    of_one = counts if groups is None else 1.0
    leverage = share / of_one * np.einsum("ij,ij->i", by_inverse, functions)
    keep = 1 - np.minimum(leverage, MAX_LEVERAGE)
    effects, influences, learners, noises = [], [], [], []
    for answer in answers:
        left = inverse @ (functions.T @ (share * answer.residual))
        value = answer.change + change @ left[moving]
        effect = np.bincount(bins, part * value, n_bins)
        rest = answer.residual - functions @ left
        influence = (share * rest / keep)[:, None] * representer
        influence += on_rows(part * (value - effect[bins]))
        effects.append(effect)
        influences.append(influence)
        differ = (share * (answer.residual - answer.other_residual))[:, None] * representer
        differ += on_rows(part * (answer.change - answer.other_change))
        for number in range(int(answer.fold.max()) + 1):
            rows = answer.fold == number
            # Means over the rows of the fold, as sums over all rows are those of the sample.
            size = float(share[rows].sum())
            some, root = differ[rows] / size, np.sqrt(counts[rows])
            if groups is not None:
                code = np.unique(groups[rows], return_inverse=True)[1]
                some = summed(some, code)
                root = np.ones(len(some))
            n_units = root @ root
            learners.append(some.sum(axis=0))
            apart = some / root[:, None] - np.outer(root, learners[-1] / n_units)
            noises.append(apart.T @ apart * n_units / max(n_units - 1, 1))
    influence = np.mean(influences, axis=0)
    if groups is not None:
        influence = summed(influence, groups)
    else:
        influence = influence / np.sqrt(counts)[:, None]
    return DebiasedEffects(
        np.mean(effects, axis=0),
        influence,
        np.array(learners),
        np.array(noises),
        int(answers[0].fold.max()) + 1,
        representer,
    )
