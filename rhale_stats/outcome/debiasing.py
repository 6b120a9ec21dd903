"""Debiased effects of one feature on the outcome, with their influences (math [114]).

Chernozhukov, Newey and Singh (2022), *Econometrica* 90, for the estimator; the representer is made
of a dictionary by ridge regression. The part of the learner follows the jackknife of cross-fitting
(math [83]).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.outcome.dictionary import Dictionary, Entries

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

    @property
    def rows_covariance(self) -> FloatArray:
        """Covariance of the effects by the sampling of rows or groups, (bin, bin)."""
        n = len(self.influence)
        return np.asarray(self.influence.T @ self.influence * (n / max(n - 1, 1)))

    def learner_variance(self, loadings: FloatArray) -> FloatArray:
        """Variance by the learner of linear functions of the effects, (function, bin) -> function.

        (K − 1)² / K times the mean of half the squared difference of two learners on a fold, less
        what the rows of the fold make of it; at least 0.
        """
        square = (self.learner @ loadings.T) ** 2
        noise = np.einsum("fk,jkl,fl->jf", loadings, self.noise, loadings)
        factor = (self.n_folds - 1) ** 2 / self.n_folds
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
    dictionary: Dictionary,
    answers: list[FoldAnswers],
    share: FloatArray,
    groups: IntArray | None,
) -> DebiasedEffects:
    """The estimate of math [114]; ``share`` are weights of the rows that sum to 1."""
    n, n_bins, row, bins = len(share), entries.n_bins, entries.row, entries.bin
    weight = entries.weight * share[row]
    total = np.bincount(bins, weight, n_bins)
    part = weight / total[bins]  # of an entry in the mean of its bin
    in_bin = np.zeros((len(row), n_bins))
    in_bin[np.arange(len(row)), bins] = part
    functions = np.column_stack([np.ones(n), dictionary.values])
    change = np.column_stack([np.zeros(len(row)), dictionary.change])
    # Functions in units of their deviation: the ridge treats them alike, and no constant.
    mean = share @ functions[:, 1:]
    deviation = np.sqrt(share @ (functions[:, 1:] - mean) ** 2)
    deviation[~(deviation > 1e-12)] = np.inf
    functions[:, 1:] = (functions[:, 1:] - mean) / deviation
    change[:, 1:] /= deviation
    gram = functions.T @ (share[:, None] * functions)
    # By the effective number of rows, 1 / Σ share².
    ridge = min(MAX_RIDGE, RIDGE_ROWS * float(np.sum(share**2)))
    gram[np.diag_indices(len(gram))] += np.r_[0.0, np.full(len(gram) - 1, ridge)] + 1e-12
    means = in_bin.T @ change  # (bin, function)
    inverse = np.linalg.inv(gram)
    representer = functions @ inverse @ means.T  # (row, bin)
    leverage = share * np.einsum("ij,jk,ik->i", functions, inverse, functions)
    keep = 1 - np.minimum(leverage, MAX_LEVERAGE)
    effects, influences, learners, noises = [], [], [], []
    for answer in answers:
        left = inverse @ (functions.T @ (share * answer.residual))
        value = answer.change + change @ left
        effect = np.bincount(bins, part * value, n_bins)
        rest = answer.residual - functions @ left
        influence = (share * rest / keep)[:, None] * representer
        row_part = in_bin * (value - effect[bins])[:, None]
        np.add.at(influence, row, row_part)
        effects.append(effect)
        influences.append(influence)
        differ = (share * (answer.residual - answer.other_residual))[:, None] * representer
        np.add.at(differ, row, in_bin * (answer.change - answer.other_change)[:, None])
        for number in range(int(answer.fold.max()) + 1):
            rows = answer.fold == number
            # Means over the rows of the fold, as sums over all rows are those of the sample.
            size = float(share[rows].sum())
            some = differ[rows] / size
            if groups is not None:
                code = np.unique(groups[rows], return_inverse=True)[1]
                some = np.stack([np.bincount(code, column) for column in some.T], axis=1)
            centre = some.mean(axis=0)
            n_units = len(some)
            learners.append(some.sum(axis=0))
            spread = (some - centre).T @ (some - centre)
            noises.append(spread * n_units / max(n_units - 1, 1))
    influence = np.mean(influences, axis=0)
    if groups is not None:
        influence = np.stack([np.bincount(groups, column) for column in influence.T], axis=1)
    return DebiasedEffects(
        np.mean(effects, axis=0),
        influence,
        np.array(learners),
        np.array(noises),
        int(answers[0].fold.max()) + 1,
        representer,
    )
