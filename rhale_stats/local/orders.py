"""The order of levels: as given, by similarity, by an encoding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from rhale_stats.arguments.checks import check_finite
from rhale_stats.arguments.rows import aligned
from rhale_stats.arguments.words import listed
from rhale_stats.arrays import categories as kernel
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.models.differences import DifferenceQuotients
from rhale_stats.models.levels import Levels
from rhale_stats.models.table import Table
from rhale_stats.parallel import ignoring
from rhale_stats.schema.features import by_name

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
