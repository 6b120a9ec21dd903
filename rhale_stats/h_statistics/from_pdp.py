"""H-statistics from partial dependence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from rhale_stats.arrays import h_statistics as arrays
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.h_statistics.labelled import ROUNDINGS, InteractionSquares, centred, mean_square
from rhale_stats.models.differences import DifferenceQuotients
from rhale_stats.models.table import Table, as_column

# Answers, or differences, of all terms are held for the standard errors up to so many bytes, and
# influences of rows are kept in the result up to so many.
HELD_BYTES, KEPT_BYTES = 1 << 30, 1 << 26


# --- partial dependence ---------------------------------------------------------------------------


def from_partial_dependence(
    quotients: DifferenceQuotients,
    positions: list[int],
    pairs: list[tuple[int, int]],
    w: FloatArray,
    bar: tqdm[Any],
    *,
    keep_answers: bool,
) -> InteractionSquares:
    """math [60], and [62] where the answers of all features can be held."""
    prediction, least = predictions(quotients)
    n_rows, n_outputs = prediction.shape
    in_memory = (len(positions) + 1) * n_rows**2 * n_outputs * 8 <= HELD_BYTES or keep_answers
    main, others, of_features = [], [], []
    for position in positions:
        at_value, at_rest, answers = _partial_dependence(
            quotients, (position,), w, in_memory=in_memory
        )
        main.append(centred(at_value, w))
        others.append(centred(at_rest, w))
        of_features.append(answers)
        bar.update()
    whole = centred(prediction, w)
    share = w / w.sum()
    pair, joint, influences, of_pairs = [], [], [], []
    for j, k in pairs:
        both = (positions[j], positions[k])
        at_values, _, answers = _partial_dependence(quotients, both, w, in_memory=in_memory)
        together = centred(at_values, w)
        pair.append(mean_square(together - main[j] - main[k], w))
        joint.append(mean_square(together, w))
        influences.append(
            [
                arrays.pdp_pair_influences(*three, share)
                for three in zip(answers, of_features[j], of_features[k], strict=True)
            ]
        )
        if keep_answers:
            of_pairs.append(answers)
        bar.update()
    squares = []
    for number in range(n_outputs if in_memory else 0):
        answers = [feature_answers[number] for feature_answers in of_features]
        of_all = arrays.pdp_influences(prediction[:, number], answers, share)
        each = np.reshape(
            [pair_influences[number] for pair_influences in influences], (-1, 2, n_rows)
        )
        squares.append(arrays.VarianceShares(*of_all, each[:, 0], each[:, 1]))
    kept_answers = None
    if keep_answers:
        kept_answers = (
            [
                np.stack([answer.values[answer.version] for answer in feature_answers], axis=-1)
                for feature_answers in of_features
            ],
            [
                np.stack([answer.values[answer.version] for answer in pair_answers], axis=-1)
                for pair_answers in of_pairs
            ],
        )
    return InteractionSquares(
        mean_square(whole - np.sum(main, axis=0), w),
        np.array([mean_square(whole - f - g, w) for f, g in zip(main, others, strict=True)]),
        mean_square(whole, w),
        pairs,
        np.reshape(pair, (-1, n_outputs)),
        np.reshape(joint, (-1, n_outputs)),
        least,
        squares or None,
        kept_answers,
    )


def _partial_dependence(
    quotients: DifferenceQuotients,
    positions: tuple[int, ...],
    w: FloatArray,
    *,
    in_memory: bool,
) -> tuple[FloatArray, FloatArray, list[arrays.Answers]]:
    """Partial dependence of some columns, and of all the others, at the rows: (row, output) each.

    The answer for values of row i in row k is averaged over k for the one, and over i for the
    other. Values that repeat are asked for once. The answers of every output come with them where
    they are kept ``in_memory``.
    """
    table = quotients.table
    frame = pd.DataFrame({p: codes(table, p) for p in positions})
    grouped = frame.groupby(list(positions), sort=False)
    group = grouped.ngroup().to_numpy().astype(np.int64)
    example = np.unique(group, return_index=True)[1]
    mass = np.bincount(group, w)
    n, share = table.n_rows, w / w.sum()
    together = max(1, quotients.block_rows // n)
    at_values, rest, kept_answers = [], 0.0, []
    for begin in range(0, len(example), together):
        part = example[begin : begin + together]
        rows = _copies(table, positions, part)
        names = " and ".join(repr(table.names[p]) for p in positions)
        answer = quotients.ask_named(
            rows, f"for {names}, called with {len(rows)} rows: {len(part)} versions of {n} rows"
        )
        _check_answers(answer)
        answer = answer.astype(np.float64, copy=False).reshape(len(part), n, -1)
        at_values.append(np.einsum("k,ikc->ic", share, answer))
        rest = rest + np.einsum("i,ikc->kc", mass[begin : begin + together], answer)
        if in_memory:
            kept_answers.append(answer)
    answers = []
    if in_memory:
        whole = np.moveaxis(np.concatenate(kept_answers), -1, 0)
        answers = [arrays.Answers(np.ascontiguousarray(output), group) for output in whole]
    return np.concatenate(at_values)[group], np.asarray(rest) / w.sum(), answers


def codes(table: Table, position: int) -> IntArray:
    """Number of the distinct value that each row has in a column."""
    # A missing value is a value of its own: there are none, but for missing="bin".
    return pd.factorize(table.series(position), use_na_sentinel=False)[0]


def _copies(table: Table, positions: tuple[int, ...], rows: IntArray) -> Any:
    """The table once for each of ``rows``, with their values in these columns."""
    n = table.n_rows
    background, source_rows = np.tile(np.arange(n), len(rows)), np.repeat(rows, n)
    if isinstance(table.data, np.ndarray):
        stack = table.data[background]
        for position in positions:
            stack[:, position] = table.data[source_rows, position]
        return stack
    frame = table.data.iloc[background].reset_index(drop=True)
    for position in positions:
        column_values = table.data.iloc[:, position].array.take(source_rows)
        frame[table.data.columns[position]] = as_column(column_values)
    return frame


def predictions(quotients: DifferenceQuotients) -> tuple[FloatArray, FloatArray]:
    """The model's answer at the rows, and squares of it that rounding alone may make."""
    answer = quotients.at_rows("rows used of X")
    quotients.check_size()
    _check_answers(answer)
    prediction = answer.astype(np.float64, copy=False)
    rounding = ROUNDINGS * quotients.precision * np.abs(prediction).max(axis=0)
    return prediction, np.asarray(rounding**2)


def _check_answers(answer: FloatArray) -> None:
    """Refuse what cannot be averaged."""
    bad = ~np.isfinite(answer)
    if bad.any():
        raise ValueError(
            f"The model must return finite numbers; got {int(bad.sum())} that are not, for "
            f"{len(answer)} rows. See what it returns for combinations of values that do not occur "
            f"in X, or take kind='ale'."
        )
