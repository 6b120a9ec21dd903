"""Whether rows kept from the fits confirm that a feature's effect differs between rows.

Let f be a model fitted without a fold, and v(x) its average over usual values of the feature j, the
other columns as they are. f − v is what the feature adds, h what of it no function of x_j and of
the other columns explains: the residual on a dictionary of these, over the rows of the fold. If
the outcome has no interaction with the feature, E[h (y − f + h)] = 0, and f of other rows knows
nothing of y (math [115]).
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from scipy import stats

from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.explanation.request import Request
from rhale_stats.models.levels import levels_of

# Values at which the feature is held for v, hats of the feature itself, of other columns, and of
# each of two columns in pairs; most levels that a column stands for.
N_VALUES, FINE, HATS, COARSE, MAX_LEVELS = 10, 20, 8, 3, 12
# Ridge of the dictionary, a share of its mean square; columns of pairs, a share of the rows.
RIDGE, PAIRS = 1e-3, 1 / 3
# One-sided size of the test: the dictionary leaves a small bias to the side of an interaction
# (.2 to .6 standard errors in the simulations of docs/validity.md).
SIZE = 0.01


def confirmed(folds: Any, observed: FloatArray, asked: Request, names: list[str]) -> FloatArray:
    """P-values of no interaction, one for each of the features, the most moving first.

    ``folds`` are for each repeat the fold of each row and the models, one for each fold, which did
    not see its rows.
    """
    columns = {name: _coded(asked, name) for name in asked.features}
    score = np.zeros((len(names), len(observed)))
    for fold, models in folds:
        for number, model in enumerate(models):
            rows = np.flatnonzero(fold == number)
            for at, name in enumerate(names):
                score[at, rows] += _scores(model, rows, observed[rows], asked, columns, name)
    score *= asked.share
    if asked.groups is not None:
        score = np.stack([np.bincount(asked.groups, own) for own in score])
    spread = np.sqrt((score**2).sum(axis=1))
    ratio = np.divide(score.sum(axis=1), spread, out=np.zeros(len(names)), where=spread > 0)
    return np.asarray(stats.t.sf(ratio, max(score.shape[1] - 1, 1)))


def _scores(
    model: Any,
    rows: IntArray,
    observed: FloatArray,
    asked: Request,
    columns: dict[str, FloatArray],
    name: str,
) -> FloatArray:
    """h (y − f + h) of rows that the model did not see, in units in which h has mean square 1."""
    position = asked.table.names.index(name)
    answers = asked.sample.asked(model, probe=False).at(rows)
    values = asked.table.series(position).array
    known = np.flatnonzero(np.isfinite(columns[name]))
    ranked = known[np.argsort(columns[name][known], kind="stable")]
    usual = ranked[((np.arange(N_VALUES) + 0.5) / N_VALUES * len(ranked)).astype(int)]
    held = [values.take(np.full(len(rows), at)) for at in usual]
    outputs = answers.evaluate(position, [*held, values.take(rows)])[0]
    *curves, fitted = (np.asarray(output[:, 0], dtype=np.float64) for output in outputs)
    average = np.mean(curves, axis=0)
    own = {other: column[rows] for other, column in columns.items()}
    parts = [_basis(own[name], FINE), average[:, None], _basis(average, 5)]
    others = [other for other in own if other != name]
    parts += [_basis(own[other], HATS) for other in others]
    coarse = [_basis(own[other], COARSE) for other in others]
    left = PAIRS * len(rows)
    for one, two in combinations(coarse, 2):
        left -= one.shape[1] * two.shape[1]
        if left < 0:
            break
        parts.append((one[:, :, None] * two[:, None, :]).reshape(len(rows), -1))
    weight = np.sqrt(asked.share[rows] / asked.share[rows].sum())
    dictionary = np.column_stack(parts)
    dictionary = dictionary - weight**2 @ dictionary
    scale = np.sqrt(weight**2 @ dictionary**2)
    dictionary = np.column_stack([np.ones(len(rows)), dictionary[:, scale > 0] / scale[scale > 0]])
    dictionary *= weight[:, None]
    target = weight * (fitted - average)
    gram = dictionary.T @ dictionary
    gram[np.diag_indices(len(gram))] += RIDGE * np.trace(gram) / len(gram)
    rest = target - dictionary @ np.linalg.solve(gram, dictionary.T @ target)
    size = np.sqrt(rest @ rest)
    # Rounding of predictions is no interaction.
    if not size > 1e-9 * np.sqrt(target @ target):
        return np.zeros(len(rows))
    h = rest / weight
    return np.asarray(h * (observed - fitted + h) / size)


def _coded(asked: Request, name: str) -> FloatArray:
    """A column as numbers, NaN without a value: its own, or those of its levels by their means."""
    position = asked.table.names.index(name)
    if name not in asked.levels or name in asked.discrete:
        return np.asarray(asked.table.column(position), dtype=np.float64)
    code = levels_of(asked.sample, position).code
    return np.where(code >= 0, code, np.nan).astype(np.float64)


def _basis(x: FloatArray, n_cells: int) -> FloatArray:
    """Hats at edges of equal counts, or indicators of values where these are few."""
    known = np.isfinite(x)
    distinct = np.unique(x[known])
    parts = [] if known.all() else [(~known).astype(np.float64)[:, None]]
    if len(distinct) <= max(min(n_cells, MAX_LEVELS), 2):
        parts.append((x[:, None] == distinct[1:]).astype(np.float64))
    else:
        edges = np.unique(np.quantile(x[known], np.linspace(0, 1, n_cells + 1)))
        hats = [np.interp(x, edges, hat) for hat in np.eye(len(edges))[1:]]
        parts.append(np.nan_to_num(np.column_stack(hats)))
    return np.column_stack(parts)
