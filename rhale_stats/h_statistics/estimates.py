"""H-statistics from partial dependence, and from accumulated local effects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from tqdm import tqdm

from rhale_stats.arguments.checks import check_finite
from rhale_stats.arrays import h_statistics as arrays
from rhale_stats.arrays import second_order as kernel
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.bins.rule import BinRule
from rhale_stats.models.differences import DifferenceQuotients
from rhale_stats.models.sample import Sample
from rhale_stats.models.table import Table, as_column
from rhale_stats.schema.features import feature_coordinate, feature_names
from rhale_stats.schema.kinds import H_STATISTICS
from rhale_stats.schema.variables import variable
from rhale_stats.surfaces.ale2 import (
    FeatureAxis,
    Order,
    axis_of,
    order_of,
    rows_of,
    second_differences,
)

# Answers, or differences, of all terms are held for the standard errors up to so many bytes, and
# influences of rows are kept in the result up to so many.
HELD_BYTES, KEPT_BYTES = 1 << 30, 1 << 26


# --- partial dependence ---------------------------------------------------------------------------


def from_partial_dependence(
    quotients: DifferenceQuotients,
    sample: Sample,
    pairs: list[tuple[int, int]],
    bar: tqdm[Any],
    *,
    keep_answers: bool,
) -> InteractionSquares:
    """math [60], and [62] where the answers of all features can be held; rows have weights."""
    positions, share = sample.positions, sample.share
    prediction, least = predictions(quotients)
    n_rows, n_outputs = prediction.shape
    in_memory = (len(positions) + 1) * n_rows**2 * n_outputs * 8 <= HELD_BYTES or keep_answers

    def dependence(*columns: int) -> tuple[FloatArray, FloatArray, list[arrays.Answers]]:
        partial = _partial_dependence(quotients, columns, share, keep=in_memory)
        bar.update()
        return partial

    curves, rests, of_features = zip(*map(dependence, positions), strict=True)
    joint, influences, of_pairs = [], [], []
    for j, k in pairs:
        at_values, _, answers = dependence(positions[j], positions[k])
        joint.append(at_values)
        influences.append(
            [
                arrays.pdp_pair_influences(*three, share)
                for three in zip(answers, of_features[j], of_features[k], strict=True)
            ]
        )
        if keep_answers:
            of_pairs.append(answers)
    squares = []
    for number in range(n_outputs if in_memory else 0):
        answers = [of_feature[number] for of_feature in of_features]
        of_all = arrays.pdp_influences(prediction[:, number], answers, share)
        each = np.reshape([of_pair[number] for of_pair in influences], (-1, 2, n_rows))
        squares.append(arrays.VarianceShares(*of_all, each[:, 0], each[:, 1]))
    return InteractionSquares(
        arrays.pdp_squares(prediction, curves, rests, pairs, joint, share[:, None]),
        pairs,
        least,
        squares or None,
        (list(of_features), of_pairs) if keep_answers else None,
    )


def _partial_dependence(
    quotients: DifferenceQuotients, positions: tuple[int, ...], share: FloatArray, *, keep: bool
) -> tuple[FloatArray, FloatArray, list[arrays.Answers]]:
    """Partial dependence of some columns, and of all the others, at the rows: (row, output) each.

    The answer for values of row i in row k is averaged over k for the one, and over i for the
    other. Values that repeat are asked for once. The answers of every output come with them where
    they are to be kept.
    """
    table = quotients.table
    frame = pd.DataFrame({p: codes(table, p) for p in positions})
    grouped = frame.groupby(list(positions), sort=False)
    group = grouped.ngroup().to_numpy().astype(np.int64)
    example = np.unique(group, return_index=True)[1]
    mass, n = np.bincount(group, share), table.n_rows
    together = max(1, quotients.block_rows // n)
    at_values, rest, kept_answers = [], 0.0, []
    for begin in range(0, len(example), together):
        part = example[begin : begin + together]
        source = np.repeat(part, n)
        rows = with_columns_of(
            table, np.tile(np.arange(n), len(part)), dict.fromkeys(positions, source)
        )
        names = " and ".join(repr(table.names[p]) for p in positions)
        answer = quotients.ask_named(
            rows, f"for {names}, called with {len(rows)} rows: {len(part)} versions of {n} rows"
        )
        _check_answers(answer)
        answer = answer.astype(np.float64, copy=False).reshape(len(part), n, -1)
        at_values.append(np.einsum("k,ikc->ic", share, answer))
        rest = rest + np.einsum("i,ikc->kc", mass[begin : begin + together], answer)
        if keep:
            kept_answers.append(answer)
    answers = []
    if keep:
        whole = np.moveaxis(np.concatenate(kept_answers), -1, 0)
        answers = [arrays.Answers(np.ascontiguousarray(output), group) for output in whole]
    return np.concatenate(at_values)[group], np.asarray(rest), answers


def codes(table: Table, position: int) -> IntArray:
    """Number of the distinct value that each row has in a column."""
    # A missing value is a value of its own: there are none, but for missing="bin".
    return pd.factorize(table.series(position), use_na_sentinel=False)[0]


def with_columns_of(table: Table, rows: IntArray, sources: Mapping[int, IntArray]) -> Any:
    """These rows of a table, with some columns as other rows have them, by their positions."""
    if isinstance(table.data, np.ndarray):
        stack = table.data[rows]
        for position, source in sources.items():
            stack[:, position] = table.data[source, position]
        return stack
    frame = table.data.iloc[rows].reset_index(drop=True)
    for position, source in sources.items():
        column_values = table.data.iloc[:, position].array.take(source)
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


# --- H-statistics from accumulated local effects --------------------------------------------------


def from_ale(
    quotients: DifferenceQuotients,
    sample: Sample,
    pairs: list[tuple[int, int]],
    rule: BinRule,
    order: Order,
    bar: tqdm[Any],
) -> InteractionSquares:
    """math [61], and [62] where second differences of all pairs can be held; rows have weights."""
    table, w, share = sample.table, np.asarray(sample.weight), sample.share
    # A constant feature has no bins.
    axes = [
        axis_of(sample, position, rule, order_of(order, table, position))
        if codes(table, position).max()
        else None
        for position in sample.positions
    ]
    prediction, least = predictions(quotients)
    shape, n_outputs = prediction.shape, prediction.shape[1]
    effects = [_main_effect(quotients, axis, w, n_outputs) for axis in axes]
    main, curves = zip(*effects, strict=True)
    sides = [0 if axis is None else len(axis.axis.sides) for axis in axes]
    n_sides = sum(sides[j] * sides[k] for j, k in pairs)
    # With a difference there is the number of its cell.
    in_memory = 2 * n_sides * prediction.size * 8 <= HELD_BYTES
    second: list[FloatArray] = []
    seconds_with_rows: list[list[arrays.Pair]] = []
    for j, k in pairs:
        at_rows: FloatArray = np.zeros(shape)
        with_rows: list[arrays.Pair] = []
        a, b = axes[j], axes[k]
        if a is not None and b is not None:
            delta, _ = second_differences(quotients, (a, b), progress=False)
            rows = rows_of((a, b), delta, w, frequency=sample.frequency)
            for number in range(shape[1]):
                of_output = rows._replace(delta=rows.delta[..., number])
                influence = kernel.Influence.from_rows(of_output, of_output.cells())
                at_rows[:, number] = kernel.surface_at_values(
                    influence.surface.pure, a.place, b.place, a.fraction, b.fraction
                )
                if in_memory:
                    weights = [curves[feature][0].interpolation for feature in (j, k)]
                    with_rows.append(arrays.Pair(influence, of_output, *weights))
        second.append(arrays.centred(at_rows, share[:, None]))
        seconds_with_rows.append(with_rows)
        bar.update()
    row_values = _at_rows(prediction, main, second, pairs, share[:, None])
    influences = None
    if in_memory:
        influences = [
            _ale_influences(
                row_values.of_output(number),
                pairs,
                [of_outputs[number] if of_outputs else None for of_outputs in curves],
                [pair[number] if pair else None for pair in seconds_with_rows],
                w,
            )
            for number in range(n_outputs)
        ]
    return InteractionSquares(row_values.mean_squares(share[:, None]), pairs, least, influences)


def _at_rows(
    prediction: FloatArray,
    main: Sequence[FloatArray],
    second: list[FloatArray],
    pairs: list[tuple[int, int]],
    share: FloatArray,
) -> arrays.VarianceShares:
    """What is squared at the rows, (..., row, output)."""
    every = np.zeros(prediction.shape)
    overall = np.zeros((len(main), *every.shape))
    joint = []
    for (j, k), effect in zip(pairs, second, strict=True):
        joint.append(arrays.centred(main[j] + main[k] + effect, share))
        overall[[j, k]] += effect
        every += effect
    whole = arrays.centred(prediction, share)
    return arrays.VarianceShares(every, overall, whole, np.array(second), np.array(joint))


def _ale_influences(
    row_values: arrays.VarianceShares,
    pairs: list[tuple[int, int]],
    curves: Sequence[arrays.Curve | None],
    seconds: Sequence[arrays.Pair | None],
    w: FloatArray,
) -> arrays.VarianceShares:
    """math [62] of one output: (..., row)."""
    whole, share = row_values.variance, w / w.sum()

    def of_mean_square(values: FloatArray, by: FloatArray) -> FloatArray:
        # By a unit of weight; a share is that much of the total.
        return arrays.of_mean_square(values, w.sum() * by, share)

    moved = np.zeros(len(whole))
    moved_overall = np.zeros(row_values.overall.shape)
    of_pair, of_joint = [], []
    for (j, k), second, pair_values, joint in zip(
        pairs, seconds, row_values.pair, row_values.joint, strict=True
    ):
        by_pair, by_joint = np.zeros((2, len(whole)))
        if second is not None:
            squared = [pair_values, joint, *row_values.overall[[j, k]], row_values.total]
            weighted = share[:, None] * np.stack(squared, axis=1)
            by_pair, by_joint, by_j, by_k, by_all = second.moved(weighted).T
            moved_overall[j] += by_j
            moved_overall[k] += by_k
            moved += by_all
        for curve in (curves[j], curves[k]):
            by_joint = by_joint + (0.0 if curve is None else curve.moved(share * joint))
        of_pair.append(of_mean_square(pair_values, by_pair))
        of_joint.append(of_mean_square(joint, by_joint))
    return arrays.VarianceShares(
        of_mean_square(row_values.total, moved),
        np.array(list(map(of_mean_square, row_values.overall, moved_overall))),
        of_mean_square(whole, np.zeros(len(whole))),
        np.array(of_pair),
        np.array(of_joint),
    )


def _main_effect(
    quotients: DifferenceQuotients, axis: FeatureAxis | None, w: FloatArray, n_outputs: int
) -> tuple[FloatArray, list[arrays.Curve]]:
    """First-order ALE in the bins of the second order at the rows, (row, output), and its curves.

    There is one curve an output, with its rows, and none of a constant feature.
    """
    if axis is None:
        return np.zeros((quotients.table.n_rows, n_outputs)), []
    along = axis.axis
    sums = np.zeros((along.n_bins, n_outputs))
    mass = np.zeros(along.n_bins)
    changes = []
    for number, side in enumerate(along.sides):
        lower, upper = axis.versions[number : number + 2]
        change, _ = quotients.between(axis.position, lower, upper)
        check_finite(
            change.sum(axis=1), "Differences", axis.name, "See what the model returns there."
        )
        changes.append(change)
        step = axis.place + side
        inside = (step >= 0) & (step < along.n_bins)
        np.add.at(sums, step[inside], w[inside, None] * change[inside])
        mass += np.bincount(step[inside], w[inside], along.n_bins)
    steps = np.divide(sums, mass[:, None], out=np.zeros(sums.shape), where=mass[:, None] > 0)
    curve = kernel.from_zero(steps.T).T
    change = np.stack(changes, axis=1)
    interpolation = arrays.interpolation(along.n_edges, axis.place, axis.fraction)
    curves = [
        arrays.Curve(along, axis.place, change[..., number], steps[:, number], mass, interpolation)
        for number in range(n_outputs)
    ]
    at_rows = kernel.at_values(curve, axis.place, axis.fraction)
    return arrays.centred(at_rows, (w / w.sum())[:, None]), curves


METHOD = "H-statistics"
KINDS = ("pdp", "ale")
OTHER = "feature_other"
# A numerator below so much of what rounding does to the output is 0.
ROUNDINGS = 8.0
STEMS, PAIRS = ("h2", "h"), "_pairwise"
STATISTICS = ("h2", "h2_overall", "h2_pairwise", "h", "h_overall", "h_pairwise")
SOURCE = "rows"


class InteractionSquares(NamedTuple):
    """Numerators and denominators, squares of the output; last axis outputs.

    ``influences`` has those of every output, each with a last axis of rows; ``answers`` has the
    answers for features and for pairs, a list of outputs each.
    """

    shares: arrays.VarianceShares
    pairs: list[tuple[int, int]]
    least: FloatArray
    influences: list[arrays.VarianceShares] | None
    answers: tuple[list[list[arrays.Answers]], list[list[arrays.Answers]]] | None = None


def dataset(
    squares: InteractionSquares, sample: Sample, number: int, *, pairwise: bool, keep: bool
) -> xr.Dataset:
    """Statistics of one output; influences of the rows of the sample are part of it if ``keep``."""
    names = sample.names
    n, least, shares = len(names), squares.least[number], squares.shares.of_output(number)
    data: dict[str, Any] = {
        name: variable(name, values, H_STATISTICS)
        for name, values in statistics(shares, squares.pairs * pairwise, n, least).items()
    }
    coords: dict[str, Any] = {"feature": feature_coordinate(names)}
    if pairwise:
        coords[OTHER] = (OTHER, np.array(names), {"long_name": "other feature"})
    data["h_error"] = variable("h_error", float(np.sqrt(least)), H_STATISTICS)
    out = xr.Dataset(data, coords)
    if squares.influences is not None:
        out = _with_influences(out, squares, sample, number, keep=keep)
    if squares.answers is None:
        return out
    features, pairs = [
        np.array([outputs[number].values[outputs[number].version] for outputs in terms])
        for terms in squares.answers
    ]
    out["answers"] = variable("answers", features, H_STATISTICS)
    if not pairwise:
        return out
    out["answers_pair"] = variable("answers_pair", pairs, H_STATISTICS)
    first, second = np.array(names)[np.array(squares.pairs).T]
    return out.assign_coords(pair_feature=("pair", first), pair_other=("pair", second))


def _with_influences(
    out: xr.Dataset, squares: InteractionSquares, sample: Sample, number: int, *, keep: bool
) -> xr.Dataset:
    """math [62]: standard errors of one output, and the influences of its rows where kept."""
    assert squares.influences is not None
    least, n, w = squares.least[number], len(out["feature"]), np.asarray(sample.weight)
    shares = numerators(squares.shares.of_output(number))
    for suffix, moved_parts in numerators(squares.influences[number]).items():
        if f"h2{suffix}" not in out:
            continue
        upper, lower = shares[suffix]
        # What is rounding does not move.
        upper = np.where(upper > least, upper, 0.0)
        influences = arrays.ratio_and_root(upper, lower, *moved_parts)
        for stem, influence in zip(STEMS, influences, strict=True):
            name = f"{stem}{suffix}"
            place = partial(placed, pairs=squares.pairs, n=n) if suffix == PAIRS else np.asarray
            moved = arrays.moved_by_rows(influence, w, frequency=sample.frequency)
            errors = place(np.sqrt(np.sum(moved**2, axis=-1)))
            out[f"{name}_se"] = se_variable(out[name], errors, SOURCE)
            if keep:
                about = {
                    "long_name": f"influence of the row on {out[name].attrs['long_name']}",
                    "units": out[name].attrs["units"],
                }
                out[f"{name}_influence"] = ((*out[name].dims, "obs"), place(influence), about)
    return out


def numerators(shares: arrays.VarianceShares) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Numerators and denominators of statistics, or their influences, by the end of the names."""
    variance = np.broadcast_to(shares.variance, np.shape(shares.overall))
    return {
        "": (shares.total, shares.variance),
        "_overall": (shares.overall, variance),
        PAIRS: (shares.pair, shares.joint),
    }


def statistics(
    shares: arrays.VarianceShares, pairs: list[tuple[int, int]], n: int, least: float
) -> dict[str, FloatArray]:
    """All statistics by name; of pairs, if there are any, as a square of ``n`` features."""
    out: dict[str, FloatArray] = {}
    for suffix, (upper, lower) in numerators(shares).items():
        if suffix == PAIRS and not pairs:
            continue
        upper = np.where(upper > least, upper, 0.0)
        where = (upper > 0) & (lower > 0)
        share = np.divide(upper, lower, out=np.zeros(upper.shape), where=where)
        for stem, values in zip(STEMS, (share, np.sqrt(upper)), strict=True):
            out[f"{stem}{suffix}"] = placed(values, pairs, n) if suffix == PAIRS else values
    return out


def placed(values: FloatArray, pairs: list[tuple[int, int]], n: int) -> FloatArray:
    """What is known of pairs, as a square of features."""
    square = np.full((n, n, *values.shape[1:]), np.nan)
    j, k = np.array(pairs).T
    square[j, k] = square[k, j] = values
    return square


def se_variable(
    statistic: xr.DataArray,
    values: FloatArray,
    source: str,
    kind: str = "infinitesimal jackknife, math [62]",
) -> tuple[tuple[Any, ...], FloatArray, dict[str, str]]:
    """Standard errors as a variable."""
    about = {
        "long_name": f"standard error of {statistic.attrs['long_name']}",
        "units": str(statistic.attrs["units"]),
        "source": source,
        "kind": kind,
        "target": "the same over the population of rows",
    }
    return statistic.dims, values, about


def pairs_of(result: xr.Dataset) -> tuple[NDArray[np.int64], list[str]]:
    """Places of the pairs, each once, whichever features are left: (2, pair); and their names.

    Without those that were not estimated.
    """
    names, others = feature_names(result), result[OTHER].values.astype(str).tolist()
    name = next(name for name in ("h_pairwise", "h_pairwise_difference") if name in result)
    values = result[name].transpose("feature", OTHER, ...).values
    present = ~np.isnan(values.reshape(*values.shape[:2], -1)).all(axis=-1)
    pairs = {
        frozenset((a, b)): (j, k)
        for j, a in reversed(list(enumerate(names)))
        for k, b in reversed(list(enumerate(others)))
        if a != b and present[j, k]
    }
    positions = np.array(sorted(pairs.values()), dtype=np.int64).reshape(-1, 2).T
    return positions, [f"{names[j]}:{others[k]}" for j, k in positions.T]
