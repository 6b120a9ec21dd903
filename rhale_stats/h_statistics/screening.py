"""Which of many pairs of features interact: a cheap size of the interaction of each."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from rhale_stats.arguments.progress import progress_bar
from rhale_stats.arguments.seeds import number_of
from rhale_stats.arguments.words import shown, warn
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.models.chosen import columns_named
from rhale_stats.models.differences import DifferenceQuotients
from rhale_stats.models.sample import Sample
from rhale_stats.models.table import Table, as_column

# Pairs that are estimated by default: all of 10 features.
MAX_PAIRS = 45
# Pairs of rows that each pair of features is looked at in, and rows of the model in all, at most.
SCREEN_ROWS, SCREEN_CALLS, MIN_ROWS = 200, 4_000_000, 20


def screened(
    quotients: DifferenceQuotients,
    positions: Sequence[int],
    w: FloatArray,
    rng: np.random.Generator,
    *,
    progress: bool,
) -> tuple[FloatArray, int]:
    """math [90]: superset importance of all pairs, (feature, feature, output), and rows it is of.

    Its root is in units of the output; NaN on the diagonal.
    """
    n_features = len(positions)
    pairs = list(combinations(range(n_features), 2))
    n_rows = int(np.clip(SCREEN_CALLS // len(pairs), MIN_ROWS, SCREEN_ROWS))
    rows, others = rng.choice(len(w), (2, n_rows), p=w / w.sum())
    # A pair of a feature with itself is that feature alone.
    single = [(number, number) for number in range(n_features)]
    bar = progress_bar(len(single) + len(pairs), "screening of pairs", "pair", progress=progress)
    with bar:
        unchanged = _answers(quotients, [()], rows, others)[0]
        alone = _in_calls(quotients, positions, single, rows, others, bar)
        both = _in_calls(quotients, positions, pairs, rows, others, bar)
    size = np.full((n_features, n_features, unchanged.shape[1]), np.nan)
    for (j, k), together in zip(pairs, both, strict=True):
        change = unchanged - alone[j] - alone[k] + together
        size[j, k] = size[k, j] = np.sqrt(np.mean(change**2, axis=0)) / 2
    return size, n_rows


def largest_pairs(size: FloatArray, spread: FloatArray, n_pairs: int) -> list[tuple[int, int]]:
    """So many pairs of the largest size, summed over outputs in units of their spread."""
    shares = np.sum((size / np.where(spread > 0, spread, 1.0)) ** 2, axis=-1)
    pairs = list(combinations(range(len(size)), 2))
    order = np.argsort([-shares[pair] for pair in pairs], kind="stable")
    return [pairs[position] for position in sorted(order[:n_pairs].tolist())]


def _in_calls(
    quotients: DifferenceQuotients,
    positions: Sequence[int],
    pairs: list[tuple[int, int]],
    rows: IntArray,
    others: IntArray,
    bar: tqdm[Any],
) -> list[FloatArray]:
    """Answers for all pairs, (row, output) each, as many pairs in a call as it has room for."""
    together, answers = max(1, quotients.block_rows // len(rows)), []
    for begin in range(0, len(pairs), together):
        some = [tuple({positions[j], positions[k]}) for j, k in pairs[begin : begin + together]]
        answers += list(_answers(quotients, some, rows, others))
        bar.update(len(some))
    return answers


def _answers(
    quotients: DifferenceQuotients,
    replaced: Sequence[tuple[int, ...]],
    rows: IntArray,
    others: IntArray,
) -> FloatArray:
    """The output at rows whose columns are those of others, (set of columns, row, output)."""
    stack = _hybrids(quotients.table, replaced, rows, others)
    answer = quotients.ask_named(
        stack, f"for {len(replaced)} pairs of features, called with {len(stack)} rows"
    )
    return answer.astype(np.float64, copy=False).reshape(len(replaced), len(rows), -1)


def _hybrids(
    table: Table, replaced: Sequence[tuple[int, ...]], rows: IntArray, others: IntArray
) -> Any:
    """The rows once for each set of columns, which come from other rows."""
    whole = np.tile(rows, len(replaced))
    source: dict[int, IntArray] = {}
    for number, columns in enumerate(replaced):
        part = slice(number * len(rows), (number + 1) * len(rows))
        for column in columns:
            source.setdefault(column, whole.copy())[part] = others
    if isinstance(table.data, np.ndarray):
        stack = table.data[whole]
        for column, source_rows in source.items():
            stack[:, column] = table.data[source_rows, column]
        return stack
    frame = table.data.iloc[whole].reset_index(drop=True)
    for column, source_rows in source.items():
        frame[table.data.columns[column]] = as_column(
            table.data.iloc[:, column].array.take(source_rows)
        )
    return frame


class FeaturePairs(NamedTuple):
    """Pairs to estimate, how many are left out, and the sizes that decided, with their seed."""

    pairs: list[tuple[int, int]]
    left_out: int = 0
    size: FloatArray | None = None
    seed: int = -1


def pairs_to_estimate(
    quotients: DifferenceQuotients,
    sample: Sample,
    choice: tuple[Any, int | str | None],
    w: FloatArray,
    rng: np.random.Generator | int | None,
    *,
    progress: bool,
) -> FeaturePairs:
    """All pairs, those that were named, or those that interact most; ``choice``: pairs, n_pairs."""
    named_pairs, n_pairs = choice
    positions = list(sample.positions)
    every = list(combinations(range(len(positions)), 2))
    if named_pairs is not None:
        named = [_named_pair(sample, pair) for pair in named_pairs]
        pairs = sorted(set(named))
        if not pairs:
            raise ValueError("pairs must name at least one pair of features; got none.")
        return FeaturePairs(pairs, len(every) - len(pairs))
    most = MAX_PAIRS if isinstance(n_pairs, str) else n_pairs
    if most is None or len(every) <= most:
        return FeaturePairs(every)
    seed = number_of(rng)
    generator = np.random.default_rng([seed, 1])  # not the draws of the rows
    size, n_rows = screened(quotients, positions, w, generator, progress=progress)
    spread = np.nanmax(size, axis=(0, 1))
    if len(spread) > 1:
        spread = quotients.at_rows("rows used of X").std(axis=0)
    left_out = len(every) - most
    if isinstance(n_pairs, str):
        warn(
            f"Left out: {left_out} of {len(every)} pairs, which interact least by a look at "
            f"{n_rows} rows (h_screening). Use n_pairs=None for all, or n_pairs= for more."
        )
    return FeaturePairs(largest_pairs(size, spread, most), left_out, size, seed)


def _named_pair(sample: Sample, pair: Any) -> tuple[int, int]:
    """Places of a pair among the features."""
    if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
        raise TypeError(f"pairs must hold pairs of features; got {shown(pair)}.")
    places = []
    for position in columns_named(sample.table, list(pair), "pairs"):
        if position not in sample.positions:
            raise ValueError(
                f"pairs must be of features, {', '.join(sample.names)}; got "
                f"{sample.table.names[position]!r}."
            )
        places.append(list(sample.positions).index(position))
    return min(places), max(places)
