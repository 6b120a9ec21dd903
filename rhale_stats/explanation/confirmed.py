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
from rhale_stats.explanation.request import ExplainRequest
from rhale_stats.outcome.cross_fitting import CrossFits
from rhale_stats.outcome.dictionary import basis

# Values at which the feature is held for v; hats of the feature itself, of v, of other columns, and
# of each of two columns in pairs. A column with no more values than hats, or 12, has indicators.
N_VALUES, FINE, OF_AVERAGE, HATS, COARSE, MAX_INDICATORS = 10, 20, 5, 8, 3, 12
# Ridge of the dictionary, a share of its mean square; columns of pairs, a share of the rows.
RIDGE, PAIRS = 1e-3, 1 / 3
# One-sided size of the test: the dictionary leaves a small bias to the side of an interaction
# (.2 to .6 standard errors, math [115]).
SIZE = 0.01


def confirmed(fits: CrossFits, request: ExplainRequest, names: list[str]) -> FloatArray:
    """P-values of no interaction, one for each of the features."""
    columns = fits.columns
    score = np.zeros((len(names), len(fits.observed)))
    for fold, models in zip(fits.folds, fits.models, strict=True):
        for number, model in enumerate(models):
            rows = np.flatnonzero(fold == number)
            weight = request.share[rows] / request.share[rows].sum()
            inside = {name: x[rows] for name, x in columns.items()}
            bases = {name: (_basis(x, HATS), _basis(x, COARSE)) for name, x in inside.items()}
            for line, name in zip(score, names, strict=True):
                if name not in columns:
                    continue
                fitted, average = _predictions(model, rows, request, name, columns[name])
                parts = [_basis(inside[name], FINE), average[:, None], _basis(average, OF_AVERAGE)]
                parts += _of_others(bases, name, len(rows))
                h = _unexplained(fitted - average, parts, weight)
                size = np.sqrt(weight @ h**2)
                if size > 0:
                    line[rows] += h * (fits.observed[rows] - fitted + h) / size
    score *= request.share
    if request.groups is not None:
        score = np.stack([np.bincount(request.groups, line) for line in score])
    spread = np.sqrt((score**2).sum(axis=1))
    ratio = np.divide(score.sum(axis=1), spread, out=np.zeros(len(names)), where=spread > 0)
    return np.asarray(stats.t.sf(ratio, max(score.shape[1] - 1, 1)))


def _basis(x: FloatArray, n_hats: int) -> FloatArray:
    """Hats, or indicators where there are no more values than hats."""
    return basis(x, n_hats, max(min(n_hats, MAX_INDICATORS), 2))


def _predictions(
    model: Any, rows: IntArray, request: ExplainRequest, name: str, x: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """What the model says of rows, and its mean over usual values of the feature."""
    position = request.table.names.index(name)
    values = request.table.series(position).array
    finite_rows = np.flatnonzero(np.isfinite(x))
    ranked = finite_rows[np.argsort(x[finite_rows], kind="stable")]
    usual = ranked[((np.arange(N_VALUES) + 0.5) / N_VALUES * len(ranked)).astype(int)]
    versions = [values.take(np.full(len(rows), row)) for row in usual]
    answers = request.sample.quotients(model, probe=False).take(rows)
    outputs = answers.evaluate(position, [*versions, values.take(rows)])[0]
    *curves, fitted = (np.asarray(output[:, 0], dtype=np.float64) for output in outputs)
    return fitted, np.mean(curves, axis=0)


def _of_others(
    bases: dict[str, tuple[FloatArray, FloatArray]], name: str, n_rows: int
) -> list[FloatArray]:
    """Functions of the other columns, and products of two of them while there are rows enough."""
    others = [pair for other, pair in bases.items() if other != name]
    parts, left = [alone for alone, _ in others], PAIRS * n_rows
    for (_, first), (_, second) in combinations(others, 2):
        left -= first.shape[1] * second.shape[1]
        if left < 0:
            break
        parts.append((first[:, :, None] * second[:, None, :]).reshape(n_rows, -1))
    return parts


def _unexplained(values: FloatArray, parts: list[FloatArray], weight: FloatArray) -> FloatArray:
    """Residual of the ridge regression on all parts; 0 where it is rounding."""
    functions = np.column_stack(parts)
    functions = functions - weight @ functions
    deviation = np.sqrt(weight @ functions**2)
    varies = deviation > 0
    functions = np.column_stack([np.ones(len(values)), functions[:, varies] / deviation[varies]])
    gram = functions.T @ (weight[:, None] * functions)
    gram[np.diag_indices(len(gram))] += RIDGE * np.trace(gram) / len(gram)
    rest = values - functions @ np.linalg.solve(gram, functions.T @ (weight * values))
    return rest if weight @ rest**2 > 1e-18 * (weight @ values**2) else np.zeros(len(values))
