"""Local effects of categorical features: differences between levels, and their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike

from rhale_stats.arguments.checks import check_finite
from rhale_stats.arguments.progress import progress_bar
from rhale_stats.arguments.rows import aligned
from rhale_stats.arguments.words import listed, warn
from rhale_stats.arrays import categories as kernel
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.local.labelled import labelled
from rhale_stats.models.adapters.adapter import ModelColumns
from rhale_stats.models.differences import (
    DifferenceQuotients,
    Differences,
    Steps,
    answered,
    no_differences,
)
from rhale_stats.models.outputs import Model
from rhale_stats.models.sample import Levels, Sample, columns_and_levels, in_order, levels_of
from rhale_stats.models.table import Table, Versions
from rhale_stats.parallel import ignoring
from rhale_stats.schema.dimensions import OUTPUT
from rhale_stats.schema.features import by_name
from rhale_stats.schema.variables import variable

# Encoders of `category_encoders`, by the order that they make.
ENCODERS = {
    "target": "TargetEncoder",
    "james_stein": "JamesSteinEncoder",
    "glmm": "GLMMEncoder",
    "m_estimate": "MEstimateEncoder",
    "woe": "WOEEncoder",
}
ORDERS = ("as_is", "similarity", *ENCODERS)
# An order by name, levels in order, or one of these for each feature.
Order: TypeAlias = str | Sequence[Any]
Orders: TypeAlias = Order | Mapping[str, Order]


def order_of(order: Orders, levels: Sequence[Levels], columns: Sequence[str]) -> dict[str, Order]:
    """The order that was asked for each feature, checked as far as possible without data.

    ``known`` are the names of all columns.
    """
    names = [levels_of_feature.name for levels_of_feature in levels]
    orders: dict[str, Order]
    if isinstance(order, Mapping):
        orders = by_name(order, columns, "order")
        unknown = [name for name in orders if name not in names]
        if unknown:
            raise KeyError(
                f"order must map categorical features, {listed(names)}; got {listed(unknown)}."
            )
    elif isinstance(order, str):
        # Levels with an order of their own keep it; an unknown name of an order is refused below.
        orders = {
            levels_of_feature.name: order
            for levels_of_feature in levels
            if levels_of_feature.kind == "nominal" or order not in ORDERS
        }
    elif len(names) == 1:
        orders = {names[0]: order}
    else:
        raise ValueError(
            f"order must map features to levels where there are several; got one list for "
            f"{', '.join(map(repr, names))}. Use order={{{names[0]!r}: [...]}}."
        )
    for levels_of_feature in orders.values():
        if isinstance(levels_of_feature, str) and levels_of_feature not in ORDERS:
            raise ValueError(
                f"order must be one of {', '.join(map(repr, ORDERS))}, a list of levels, or a "
                f"mapping from features to these; got {levels_of_feature!r}."
            )
    return {
        levels_of_feature.name: orders.get(
            levels_of_feature.name, "similarity" if levels_of_feature.kind == "nominal" else "as_is"
        )
        for levels_of_feature in levels
    }


def by_similarity(table: Table, position: int, levels: Levels, weight: FloatArray) -> IntArray:
    """Classical scaling of the distances between what else is in the rows (Apley and Zhu 2020)."""
    has_level = levels.code >= 0
    code, w, n_levels = levels.code[has_level], weight[has_level], len(levels.texts)
    distance = np.zeros((n_levels, n_levels))
    for other in range(len(table.names)):
        if other == position:
            continue
        if table.is_numeric(other):
            distance += kernel.ks_distance(table.column(other)[has_level], code, w, n_levels)
        else:
            number, values = pd.factorize(table.series(other)[has_level])
            number = np.where(number < 0, len(values), number)
            distance += kernel.share_distance(number, len(values) + 1, code, w, n_levels)
    return kernel.line_order(distance)


def by_encoding(order: str, levels: Levels, y: FloatArray, counts: IntArray | None) -> IntArray:
    """Levels sorted by the values of an encoder; ties keep their order."""
    try:
        import category_encoders
    except ImportError as error:
        raise ImportError(
            f"order={order!r} needs the library category_encoders. Install it: "
            f"pip install 'rhale-stats[categorical]'; or use order='similarity'."
        ) from error
    has_level = levels.code >= 0
    code, y = levels.code[has_level], y[has_level]
    if order == "woe":
        values = np.unique(y)
        if len(values) != 2:
            raise ValueError(
                f"order='woe' needs a target of two values; target has {len(values)}. Use "
                f"order='target', or pass a binary target=."
            )
        y = (y == values[1]).astype(np.float64)
    if counts is not None:
        code, y = np.repeat(code, counts[has_level]), np.repeat(y, counts[has_level])
    # Text that no encoder reads as a number.
    frame = pd.DataFrame(
        {"level": pd.Series([f"level {number_of_level}" for number_of_level in code], dtype=object)}
    )
    encoder = getattr(category_encoders, ENCODERS[order])(cols=["level"])
    # Ignored: its own warning about an option of pandas that it sets.
    with ignoring(Warning, ".*no_silent_downcasting"):
        encoder.fit(frame, pd.Series(y, name="target"))
        encoded = encoder.transform(frame)["level"].to_numpy(dtype=np.float64)
    _, first = np.unique(code, return_index=True)
    codes = encoded[first]
    if not np.isfinite(codes).all():
        raise ValueError(
            f"order={order!r} of feature {levels.name!r} must give numbers; the encoder made "
            f"{codes.tolist()}. Use another order."
        )
    # Values that differ by rounding only are ties.
    scale = max(float(np.ptp(codes)), float(np.abs(codes).max()))
    place = np.round(codes / scale, 12) if scale > 0 else codes
    return np.asarray(np.argsort(place, kind="stable"))


def is_encoded(order: Order) -> bool:
    """Whether an order is made by an encoder, which needs a target."""
    return isinstance(order, str) and order in ENCODERS


def target_of_order(
    target: ArrayLike | None,
    quotients: DifferenceQuotients,
    table: Table,
    position: int,
) -> FloatArray:
    """Outcomes to encode levels by; by default the model's own output."""
    if target is None:
        rows = np.arange(table.n_rows)
        answer = quotients.versions(position, rows, table.series(position).array)
        if answer.shape[1] > 1:
            raise ValueError(
                f"target must be given where the model has several outputs, here "
                f"{', '.join(map(str, quotients.outputs.labels))}. Pass target=, or choose one: "
                f"output=..."
            )
        check_finite(answer[:, 0], "Output", table.names[position], "See what the model returns.")
        return np.asarray(answer[:, 0], dtype=np.float64)
    y: FloatArray = np.asarray(aligned(target, table.index, "target"), dtype=np.float64)
    if y.shape != (table.n_rows,) or not np.isfinite(y).all():
        what = f"shape {y.shape}" if y.shape != (table.n_rows,) else "values that are not finite"
        raise ValueError(
            f"target must hold one finite number a row, shape ({table.n_rows},); got {what}."
        )
    return y


def mean_of_known(up: FloatArray, down: FloatArray) -> FloatArray:
    """Mean of both differences; at the first and the last level, the only difference."""
    both = np.where(np.isnan(up), down, up) + np.where(np.isnan(down), up, down)
    return np.asarray(both / 2)


# --- local effects of categorical features --------------------------------------------------------


DIFFERENCES = {
    "difference_up": "change of the output from the row's level to the next",
    "difference_down": "change of the output to the row's level from the one before",
}
# Differences up and down, (row, output), and their rounding.
_Sides: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]
# Coordinates that features with levels have.
LABELS = ("level", "n_levels", "n_levels_unused", "order")
LEVEL_FACTS: dict[str, dict[str, str | int | float]] = {
    "effect": {"estimator": "mean difference over the rows of both levels, math [46]"},
    "heterogeneity": {"estimator": "standard deviation of the differences, math [6]", "ddof": 1},
    "effect_cov": {"source": "rows", "kind": "central limit theorem, rows in two steps"},
    "curve_cov": {"source": "rows", "kind": "central limit theorem, rows in two steps"},
    "average_effect_se": {"source": "rows", "kind": "central limit theorem, rows in two steps"},
}


def split_features(
    table: Table,
    features: str | int | Sequence[str | int] | None,
    categorical: str | int | Sequence[str | int] | None,
    model_columns: ModelColumns | None = None,
) -> tuple[list[str], list[int], list[int]]:
    """Names of the features in their order, columns with an axis, and those with levels.

    ``known`` are the columns that the model uses.
    """
    chosen, levels = columns_and_levels(table, features, categorical, model_columns)
    axes = [p for p in chosen if p not in levels]
    return [table.names[p] for p in chosen], axes, levels


# --- local effects -------------------------------------------------------------------------------


def level_effects(
    sample: Sample,
    model: Model,
    *,
    order: Orders = "similarity",
    target: ArrayLike | None = None,
    progress: bool = True,
) -> xr.Dataset:
    """Differences of the output between neighbouring levels, row by row.

    As `local_effects` returns it, and ``difference_up``, ``difference_down`` (obs, feature), NaN
    at the last and at the first level. ``x`` is the number of the level, ``local_effect`` the mean
    of the differences of the row. Coordinates ``level`` (feature, edge), ``n_levels``,
    ``n_levels_unused`` and ``order`` (feature).
    """
    positions = sample.positions
    unordered = [levels_of(sample, position) for position in positions]
    orders = order_of(order, unordered, sample.table.names)
    quotients = sample.quotients(model)
    levels = _ordered(sample, unordered, orders, target, quotients)
    parts: list[_Sides] = []
    # At most three versions of a row for a feature.
    together = max(1, quotients.batch_rows // (3 * sample.table.n_rows))
    with progress_bar(len(levels), "local effects", "feature", progress=progress) as bar:
        for begin in range(0, len(levels), together):
            some = range(begin, min(begin + together, len(levels)))
            steps = {
                number: _differences(quotients, positions[number], levels[number])
                for number in some
            }
            answers = answered(quotients, steps)
            parts += [answers[number] for number in some]
            bar.update(len(some))
    _warn_of_unused(levels)
    local = _labelled(sample, parts, levels, quotients)
    names = [orders[levels_of_feature.name] for levels_of_feature in levels]
    texts = np.array([name if isinstance(name, str) else "given" for name in names])
    return local.assign_coords(
        order=("feature", texts, {"long_name": "how the levels were ordered"})
    )


def _ordered(
    sample: Sample,
    unordered: Sequence[Levels],
    orders: Mapping[str, Order],
    target: ArrayLike | None,
    quotients: DifferenceQuotients,
) -> list[Levels]:
    """The levels of every feature in its order."""
    table, positions, weight = sample.table, sample.positions, sample.weight
    encoded = [
        levels_of_feature.name
        for levels_of_feature in unordered
        if len(levels_of_feature.texts) > 1 and is_encoded(orders[levels_of_feature.name])
    ]
    y, counts = None, None
    if encoded:
        counts = _counts(sample, orders[encoded[0]])
        y = target_of_order(target, quotients, table, positions[0])
    base = np.ones(table.n_rows) if weight is None else weight
    ordered = []
    for position, levels_of_feature in zip(positions, unordered, strict=True):
        order = orders[levels_of_feature.name]
        if not isinstance(order, str):
            ordered.append(in_order(order, levels_of_feature))
            continue
        if len(levels_of_feature.texts) < 3 and not is_encoded(order):
            positions_of_levels = np.arange(len(levels_of_feature.texts))
        elif order == "similarity":
            positions_of_levels = by_similarity(table, position, levels_of_feature, base)
        elif is_encoded(order) and len(levels_of_feature.texts) > 1:
            assert y is not None
            positions_of_levels = by_encoding(order, levels_of_feature, y, counts)
        else:
            positions_of_levels = np.arange(len(levels_of_feature.texts))
        ordered.append(levels_of_feature.ordered(positions_of_levels))
    return ordered


def _counts(sample: Sample, order: Order) -> IntArray | None:
    """How often every row counts for an encoder, which takes no precision weights."""
    weight = sample.weight
    if weight is None:
        return None
    if sample.frequency:
        return weight.astype(np.int64)
    if np.ptp(weight[weight > 0]) > 0:
        raise ValueError(
            f"order={order!r} does not accept precision weights: the encoders of "
            f"category_encoders have none. Use order='similarity', or a list of levels."
        )
    return None


def _differences(quotients: DifferenceQuotients, position: int, levels: Levels) -> Steps[_Sides]:
    """Differences up and down, (row, output), and what rounding may add to one.

    A row at an end has one neighbour: its own level takes the place of the other, so that only
    rows in the middle are asked for a third time.
    """
    values = quotients.table.series(position).array[levels.first]
    up, down, error = yield from _sides(quotients, position, levels.code, values)
    last = len(levels.texts) - 1
    for difference, some in ((up, levels.code < last), (down, levels.code > 0)):
        check_finite(
            difference[some & (levels.code >= 0)].sum(axis=1),
            "Differences",
            levels.name,
            "See what the model returns at these rows.",
        )
    return up, down, error


def differences(
    quotients: DifferenceQuotients, position: int, all_codes: IntArray, values: Any
) -> _Sides:
    """The same, given the number of every row's level and the value of every level."""
    return answered(quotients, {0: _sides(quotients, position, all_codes, values)})[0]


def _sides(
    quotients: DifferenceQuotients, position: int, all_codes: IntArray, values: Any
) -> Steps[_Sides]:
    has_level, last = np.flatnonzero(all_codes >= 0), len(values) - 1
    if last < 1:
        none = np.full((len(all_codes), 1), np.nan)
        return none, none, np.zeros(1)
    code = all_codes[has_level]
    middle = (code > 0) & (code < last)
    rows = np.concatenate([has_level, has_level, has_level[middle]])
    to = np.concatenate([np.minimum(code + 1, last), np.maximum(code - 1, 0), code[middle]])
    (answer,), _ = yield Versions(position, [values[to]], rows)
    answer = answer.astype(np.float64, copy=False)
    error = quotients.rounding(np.abs(answer).max(axis=0)[None])
    above, below, between = np.split(answer, [len(has_level), 2 * len(has_level)])
    own_answer = np.where((code == 0)[:, None], below, above)
    own_answer[middle] = between
    up, down = np.full((2, len(all_codes), answer.shape[1]), np.nan)
    up[has_level[code < last]] = (above - own_answer)[code < last]
    down[has_level[code > 0]] = (own_answer - below)[code > 0]
    return up, down, error


def _warn_of_unused(levels: Sequence[Levels]) -> None:
    unused = [
        f"{levels_of_feature.name!r} ({len(levels_of_feature.unused)})"
        for levels_of_feature in levels
        if levels_of_feature.unused
    ]
    if unused:
        warn(f"Levels without rows are left out: {', '.join(unused)}.")


def _labelled(
    sample: Sample,
    parts: Sequence[_Sides],
    levels: Sequence[Levels],
    quotients: DifferenceQuotients,
) -> xr.Dataset:
    """The Dataset of `level_effects`, but for the names of the orders."""
    table, positions = sample.table, sample.positions
    x = np.array(
        [
            np.where(levels_of_feature.code < 0, np.nan, levels_of_feature.code)
            for levels_of_feature in levels
        ]
    ).T
    effects = [
        Differences(mean_of_known(up, down)[present], error, "finite_difference")
        if len(levels_of_feature.texts) > 1
        else no_differences("finite_difference")
        for levels_of_feature, (up, down, error), present in zip(
            levels, parts, ~np.isnan(x).T, strict=True
        )
    ]
    local = labelled(sample, x, effects, quotients)
    n_missing = np.array([int(table.series(position).isna().sum()) for position in positions])
    if "n_missing" in local:
        # Rows of weight 0 are left out; they do not count as missing.
        local = local.drop_vars("n_missing")
    if n_missing.any():
        local = local.assign(n_missing=variable("n_missing", n_missing))
    for side, (name, long_name) in enumerate(DIFFERENCES.items()):
        dims, values = _of_rows([part[side] for part in parts], local)
        local[name] = (dims, values, {"long_name": long_name, "units": "output units"})
    return local.assign_coords(_level_coordinates(levels))


def _of_rows(
    differences: Sequence[FloatArray], local: xr.Dataset
) -> tuple[tuple[str, ...], FloatArray]:
    """Differences of all features, each (obs, output), over the dims of ``local_effect``."""
    n_rows, n_outputs = local.sizes["obs"], local.sizes.get(OUTPUT, 1)
    values = np.full((n_outputs, len(differences), n_rows), np.nan)
    for column, difference in enumerate(differences):
        values[:, column] = difference.T
    turned = values.transpose(0, 2, 1)
    if OUTPUT in local.dims:
        return (OUTPUT, "obs", "feature"), turned
    return ("obs", "feature"), turned[0]


def _level_coordinates(levels: Sequence[Levels]) -> dict[str, Any]:
    most = max(len(levels_of_feature.texts) for levels_of_feature in levels)
    texts = np.array(
        [
            levels_of_feature.texts + [""] * (most - len(levels_of_feature.texts))
            for levels_of_feature in levels
        ]
    )
    return {
        "feature_kind": (
            "feature",
            np.array([levels_of_feature.kind for levels_of_feature in levels]),
        ),
        "level": (("feature", "edge"), texts, {"long_name": "level, in order"}),
        "n_levels": (
            "feature",
            np.array([len(levels_of_feature.texts) for levels_of_feature in levels]),
            {"long_name": "levels with rows"},
        ),
        "n_levels_unused": (
            "feature",
            np.array([len(levels_of_feature.unused) for levels_of_feature in levels]),
            {"long_name": "levels without rows, left out"},
        ),
    }
