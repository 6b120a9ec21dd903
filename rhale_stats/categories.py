"""Effects of categorical features: levels, their order, and steps from one to the next (math [46]).

A step's effect is the mean difference of the output between two neighbouring levels, over the rows
of both. Effects add up to a curve over levels, as those of bins do along an axis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike
from tqdm import tqdm

from rhale_stats import models, probes
from rhale_stats.arrays import accumulate
from rhale_stats.arrays import categories as kernel
from rhale_stats.arrays import moments as sums
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.by_part import by_feature, each_part
from rhale_stats.effects import (
    CENTERINGS,
    FACTS,
    PROGRESS_DELAY,
    columns,
    effects_of,
    labelled,
    own_columns,
)
from rhale_stats.identity import as_attribute, with_joint_fingerprints
from rhale_stats.parallel import ignoring
from rhale_stats.schema import (
    MISSING_LEVEL,
    OUTPUT,
    Estimates,
    check_local,
    feature_names,
    level_text,
    position_of,
    variable,
)
from rhale_stats.validate import aligned, check_choice, check_finite, first_rows, warn

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

DIFFERENCES = {
    "difference_up": "change of the output from the row's level to the next",
    "difference_down": "change of the output to the row's level from the one before",
}
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
    table: models.Table,
    features: str | int | Sequence[str | int] | None,
    categorical: str | int | Sequence[str | int] | None,
) -> tuple[list[str], list[int], list[int]]:
    """Names of the features in their order, columns with an axis, and those with levels.

    By default all columns but numeric ones that are discrete, which a warning names.
    """
    named = _positions(table, categorical, "categorical") if categorical is not None else []
    if features is not None:
        chosen = _positions(table, features, "features")
        chosen += [p for p in named if p not in chosen]
    else:
        chosen = list(range(len(table.names)))
        numeric = [p for p in chosen if p not in named and table.is_numeric(p)]
        discrete = [p for p in numeric if table.is_discrete(p)]
        if discrete:
            columns = ", ".join(repr(table.names[p]) for p in discrete)
            warn(
                f"Left out: {columns} (discrete numbers). Name them in categorical= to take their "
                f"values as levels, or in features= to take them as numbers."
            )
            chosen = [p for p in chosen if p not in discrete]
    levels = [p for p in chosen if p in named or not table.is_numeric(p)]
    if features is None:
        # An identifier has as many levels as rows; that is no category.
        keys = [p for p in levels if p not in named and table.is_key(p)]
        if keys:
            columns = ", ".join(repr(table.names[p]) for p in keys)
            warn(
                f"Left out: {columns} (more than one level for every two rows). Name them in "
                f"features= to take them all the same."
            )
            chosen, levels = ([p for p in one if p not in keys] for one in (chosen, levels))
    if not chosen:
        raise TypeError(
            "X must have a column of continuous numbers or of levels; got none. Name discrete "
            "columns in categorical= or features=."
        )
    axes = [p for p in chosen if p not in levels]
    return [table.names[p] for p in chosen], axes, levels


def _positions(
    table: models.Table, asked: str | int | Sequence[str | int], parameter: str
) -> list[int]:
    several = [asked] if isinstance(asked, str | int | np.integer) else list(asked)
    positions = [position_of(one, table.names) for one in several]
    if not positions:
        raise ValueError(f"{parameter} must name at least one column; got none.")
    if len(set(positions)) < len(positions):
        repeated = next(p for p in positions if positions.count(p) > 1)
        raise ValueError(f"{parameter} must be distinct; got {table.names[repeated]!r} twice.")
    return positions


class _Levels(NamedTuple):
    """One column as numbers of its levels, -1 where a value is missing or its row has no weight.

    ``first`` is a row of each level: the model gets levels as the column itself holds them.
    ``with_missing`` says whether one of them is of the rows without a value.
    """

    name: str
    kind: str
    code: IntArray
    texts: list[str]
    first: IntArray
    n_unused: int
    with_missing: bool

    def ordered(self, order: IntArray) -> _Levels:
        """The same with levels in another order."""
        number = np.empty(len(order) + 1, dtype=np.int64)
        number[order], number[-1] = np.arange(len(order)), -1
        texts = [self.texts[at] for at in order]
        return self._replace(code=number[self.code], texts=texts, first=self.first[order])


def _levels(table: models.Table, position: int, weight: FloatArray | None, missing: str) -> _Levels:
    """Levels that occur, in their own order: that of an ordered column, else sorted.

    With ``missing="bin"`` rows without a value are a level, the last.
    """
    name, series = table.names[position], table.series(position)
    gone = series.isna().to_numpy()
    if gone.any() and missing == "raise":
        raise ValueError(
            f"X of feature {name!r} must have a level in every row; got {int(gone.sum())} missing "
            f"in {table.n_rows} rows (first rows: {first_rows(gone)}). Make them a level of their "
            f"own, missing='bin', or leave these rows out, missing='drop'."
        )
    weightless = np.zeros(len(gone), dtype=np.bool_) if weight is None else weight == 0
    if (gone | weightless).all():
        raise ValueError(
            f"X must have values of feature {name!r}; all {len(gone)} are missing. Leave the "
            f"feature out: features=[...]."
        )
    kind, n_unused = "nominal", 0
    if isinstance(series.dtype, pd.CategoricalDtype):
        code, values = series.cat.codes.to_numpy(dtype=np.int64), series.cat.categories
        n_unused = len(values) - len(np.unique(code[~(gone | weightless)]))
        kind = "ordinal" if series.cat.ordered else kind
    else:
        code, values = pd.factorize(series, sort=True)
        if pd.api.types.is_bool_dtype(series.dtype) or set(values) <= {True, False}:
            kind = "ordinal" if table.is_numeric(position) else "boolean"
        elif table.is_numeric(position):
            kind = "ordinal"
    names = [level_text(value) for value in values]
    binned = missing == "bin" and bool(gone.any())
    if binned:
        if MISSING_LEVEL in names:
            raise ValueError(
                f"Levels of feature {name!r} must not hold {MISSING_LEVEL!r} with missing='bin', "
                f"which names rows without a value so; got a level of that name. Rename it, or use "
                f"missing='drop'."
            )
        code, names = np.where(gone, len(values), code), [*names, MISSING_LEVEL]
    absent = weightless if binned else gone | weightless
    occurs, first, own = np.unique(code[~absent], return_index=True, return_inverse=True)
    out = np.full(len(code), -1)
    out[~absent] = own
    texts = [names[at] for at in occurs]
    if len(set(texts)) < len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        raise ValueError(
            f"Levels of feature {name!r} must differ as text; two of them read {twice!r}. Convert "
            f"the column to text."
        )
    at_first = np.flatnonzero(~absent)[first]
    return _Levels(
        name, kind, out, texts, at_first, n_unused, binned and texts[-1] == MISSING_LEVEL
    )


# --- orders --------------------------------------------------------------------------------------


def _order_of(order: Orders, levels: Sequence[_Levels]) -> dict[str, Order]:
    """The order that every feature is to have, checked as far as it can be without data."""
    names = [one.name for one in levels]
    asked: dict[str, Order]
    if isinstance(order, Mapping):
        unknown = [str(name) for name in order if str(name) not in names]
        if unknown:
            raise KeyError(
                f"order must map categorical features, {', '.join(map(repr, names))}; got "
                f"{', '.join(map(repr, unknown))}."
            )
        asked = {str(name): one for name, one in order.items()}
    elif isinstance(order, str):
        # Levels that have an order of their own keep it; a name that is no order is refused below.
        asked = {one.name: order for one in levels if one.kind == "nominal" or order not in ORDERS}
    elif len(names) == 1:
        asked = {names[0]: order}
    else:
        raise ValueError(
            f"order must map features to levels where there are several; got one list for "
            f"{', '.join(map(repr, names))}. Use order={{{names[0]!r}: [...]}}."
        )
    for one in asked.values():
        if isinstance(one, str) and one not in ORDERS:
            raise ValueError(
                f"order must be one of {', '.join(map(repr, ORDERS))}, a list of levels, or a "
                f"mapping from features to these; got {one!r}."
            )
    return {
        one.name: asked.get(one.name, "similarity" if one.kind == "nominal" else "as_is")
        for one in levels
    }


def _given(asked: Sequence[Any], levels: _Levels) -> IntArray:
    """Levels in the order of a list, which must have all of them once, but may leave missing."""
    texts = [level_text(one) for one in asked]
    if levels.with_missing and MISSING_LEVEL not in texts:
        texts.append(MISSING_LEVEL)
    unknown = [text for text in texts if text not in levels.texts]
    absent = [text for text in levels.texts if text not in texts]
    twice = [text for text in dict.fromkeys(texts) if texts.count(text) > 1]
    for found, what in (
        (unknown, "not among the levels with rows"),
        (absent, "left out"),
        (twice, "named twice"),
    ):
        if found:
            raise ValueError(
                f"order of feature {levels.name!r} must hold each of its levels once, "
                f"{', '.join(map(repr, levels.texts))}; {', '.join(map(repr, found))} "
                f"{'is' if len(found) == 1 else 'are'} {what}."
            )
    return np.array([levels.texts.index(text) for text in texts])


def _by_similarity(
    table: models.Table, position: int, levels: _Levels, weight: FloatArray
) -> IntArray:
    """Classical scaling of the distances between what else is in the rows (Apley and Zhu 2020)."""
    there = levels.code >= 0
    code, w, n_levels = levels.code[there], weight[there], len(levels.texts)
    distance = np.zeros((n_levels, n_levels))
    for other in range(len(table.names)):
        if other == position:
            continue
        if table.is_numeric(other):
            distance += kernel.ks_distance(table.column(other)[there], code, w, n_levels)
        else:
            number, values = pd.factorize(table.series(other)[there])
            number = np.where(number < 0, len(values), number)
            distance += kernel.share_distance(number, len(values) + 1, code, w, n_levels)
    return kernel.line_order(distance)


def _by_encoding(order: str, levels: _Levels, y: FloatArray, counts: IntArray | None) -> IntArray:
    """Levels by what an encoder makes of them; ties stay as they are."""
    try:
        import category_encoders
    except ImportError as error:
        raise ImportError(
            f"order={order!r} needs the library category_encoders. Install it: "
            f"pip install 'rhale-stats[categorical]'; or use order='similarity'."
        ) from error
    there = levels.code >= 0
    code, y = levels.code[there], y[there]
    if order == "woe":
        values = np.unique(y)
        if len(values) != 2:
            raise ValueError(
                f"order='woe' needs a target of two values; target has {len(values)}. Use "
                f"order='target', or pass a binary target=."
            )
        y = (y == values[1]).astype(np.float64)
    if counts is not None:
        code, y = np.repeat(code, counts[there]), np.repeat(y, counts[there])
    # Text that is not a number, so that no encoder takes it for one.
    frame = pd.DataFrame({"level": pd.Series([f"level {one}" for one in code], dtype=object)})
    encoder = getattr(category_encoders, ENCODERS[order])(cols=["level"])
    # Its own, about an option of pandas that it sets.
    with ignoring(Warning, ".*no_silent_downcasting"):
        encoder.fit(frame, pd.Series(y, name="target"))
        encoded = encoder.transform(frame)["level"].to_numpy(dtype=np.float64)
    _, first = np.unique(code, return_index=True)
    found = encoded[first]
    if not np.isfinite(found).all():
        raise ValueError(
            f"order={order!r} of feature {levels.name!r} must give numbers; the encoder made "
            f"{found.tolist()}. Use another order."
        )
    # What differs by rounding is a tie.
    scale = max(float(np.ptp(found)), float(np.abs(found).max()))
    place = np.round(found / scale, 12) if scale > 0 else found
    return np.asarray(np.argsort(place, kind="stable"))


# --- local effects -------------------------------------------------------------------------------


def level_effects(
    model: models.Model,
    X: Any,
    *,
    positions: Sequence[int],
    order: Orders = "similarity",
    target: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    weight_kind: str = "precision",
    output: models.OutputLabels = None,
    scale: str = "response",
    missing: str = "raise",
    progress: bool = True,
) -> xr.Dataset:
    """Differences of the output between neighbouring levels, row by row.

    As `local_effects` returns it, and ``difference_up``, ``difference_down`` (obs, feature), NaN
    at the last and at the first level. ``x`` is the number of the level, ``local_effect`` the mean
    of the differences of the row. Coordinates ``level`` (feature, edge), ``n_levels``,
    ``n_levels_unused`` and ``order`` (feature).
    """
    table = models.as_table(X)
    weight = table.weights(weights, weight_kind)
    found = [_levels(table, position, weight, missing) for position in positions]
    orders = _order_of(order, found)
    quotients = models.DifferenceQuotients(model, table, output, scale)
    encoded = [one.name for one in found if len(one.texts) > 1 and _is_encoded(orders[one.name])]
    y, counts = None, None
    if encoded:
        if weight is not None and weight_kind != "frequency" and np.ptp(weight[weight > 0]) > 0:
            raise ValueError(
                f"order={orders[encoded[0]]!r} takes no precision weights: the encoders of "
                f"category_encoders know of none. Use order='similarity', or a list of levels."
            )
        counted = weight is not None and weight_kind == "frequency"
        counts = weight.astype(np.int64) if weight is not None and counted else None
        y = _target(target, quotients, table, positions[0])
    base = np.ones(table.n_rows) if weight is None else weight
    ordered = []
    for position, one in zip(positions, found, strict=True):
        asked = orders[one.name]
        if not isinstance(asked, str):
            at = _given(asked, one)
        elif len(one.texts) < 3 and not _is_encoded(asked):
            at = np.arange(len(one.texts))
        elif asked == "similarity":
            at = _by_similarity(table, position, one, base)
        elif _is_encoded(asked) and len(one.texts) > 1:
            assert y is not None
            at = _by_encoding(asked, one, y, counts)
        else:
            at = np.arange(len(one.texts))
        ordered.append(one.ordered(at))
    bar = tqdm(
        list(zip(positions, ordered, strict=True)),
        "local effects",
        unit="feature",
        disable=not progress,
        delay=PROGRESS_DELAY,
    )
    parts = [_differences(quotients, position, one) for position, one in bar]
    probes.check_answers(quotients)
    _warn_of_unused(ordered)
    x = np.array([np.where(one.code < 0, np.nan, one.code) for one in ordered]).T
    return _labelled(X, table, positions, x, parts, weight, weight_kind, quotients, ordered, orders)


def _is_encoded(order: Order) -> bool:
    return isinstance(order, str) and order in ENCODERS


def _target(
    target: ArrayLike | None,
    quotients: models.DifferenceQuotients,
    table: models.Table,
    position: int,
) -> FloatArray:
    """Outcomes to encode levels by; by default the model's own output."""
    if target is None:
        rows = np.arange(table.n_rows)
        answer, _ = quotients.versions(position, rows, table.series(position).array)
        if answer.shape[1] > 1:
            raise ValueError(
                f"target must be given where the model has several outputs, here "
                f"{', '.join(map(str, quotients.outputs.labels))}. Pass target=, or choose one: "
                f"output=..."
            )
        check_finite(answer[:, 0], "Output", table.names[position], "See what the model returns.")
        return np.asarray(answer[:, 0])
    y: FloatArray = np.asarray(aligned(target, table.index, "target"), dtype=np.float64)
    if y.shape != (table.n_rows,) or not np.isfinite(y).all():
        what = f"shape {y.shape}" if y.shape != (table.n_rows,) else "values that are not finite"
        raise ValueError(
            f"target must hold one finite number a row, shape ({table.n_rows},); got {what}."
        )
    return y


def _differences(
    quotients: models.DifferenceQuotients, position: int, levels: _Levels
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Differences up and down, (row, output), and what rounding may add to one.

    A row at an end has one neighbour: its own level takes the place of the other, so that only
    rows in the middle are asked for a third time.
    """
    there, last = np.flatnonzero(levels.code >= 0), len(levels.texts) - 1
    if last < 1:
        none = np.full((len(levels.code), 1), np.nan)
        return none, none, np.zeros(1)
    code = levels.code[there]
    middle = (code > 0) & (code < last)
    rows = np.concatenate([there, there, there[middle]])
    to = np.concatenate([np.minimum(code + 1, last), np.maximum(code - 1, 0), code[middle]])
    values = quotients.table.series(position).array[levels.first[to]]
    answer, error = quotients.versions(position, rows, values)
    above, below, between = np.split(answer, [len(there), 2 * len(there)])
    own = np.where((code == 0)[:, None], below, above)
    own[middle] = between
    up, down = np.full((2, len(levels.code), answer.shape[1]), np.nan)
    up[there[code < last]] = (above - own)[code < last]
    down[there[code > 0]] = (own - below)[code > 0]
    for difference, some in ((up, code < last), (down, code > 0)):
        check_finite(
            difference[there[some]].sum(axis=1),
            "Differences",
            levels.name,
            "See what the model returns at these rows.",
        )
    return up, down, error


def _warn_of_unused(found: Sequence[_Levels]) -> None:
    unused = [f"{one.name!r} ({one.n_unused})" for one in found if one.n_unused]
    if unused:
        warn(f"Levels without rows are left out: {', '.join(unused)}.")


def _mean_of_known(up: FloatArray, down: FloatArray) -> FloatArray:
    """Mean of both differences, or the one that there is at the first and the last level."""
    both = np.where(np.isnan(up), down, up) + np.where(np.isnan(down), up, down)
    return np.asarray(both / 2)


def _labelled(
    X: Any,
    table: models.Table,
    positions: Sequence[int],
    x: FloatArray,
    parts: Sequence[tuple[FloatArray, FloatArray, FloatArray]],
    weight: FloatArray | None,
    weight_kind: str,
    quotients: models.DifferenceQuotients,
    levels: Sequence[_Levels],
    orders: Mapping[str, Order],
) -> xr.Dataset:
    """The Dataset of `level_effects`."""
    present = ~np.isnan(x)
    effects = [
        models.Differences(_mean_of_known(up, down)[there], error, "finite_difference")
        if len(one.texts) > 1
        else models.no_differences("finite_difference")
        for one, (up, down, error), there in zip(levels, parts, present.T, strict=True)
    ]
    out = labelled(
        X,
        table,
        positions,
        x,
        effects,
        weight,
        weight_kind=weight_kind,
        quotients=quotients,
    )
    gone = np.array([int(table.series(position).isna().sum()) for position in positions])
    if "n_missing" in out:
        # Rows without weight are not missing; they do not count at all.
        out = out.drop_vars("n_missing")
    if gone.any():
        out = out.assign(n_missing=variable("n_missing", gone))
    n_outputs = out.sizes.get(OUTPUT, 1)
    shape = (n_outputs, len(positions), table.n_rows)
    for side, (name, long_name) in enumerate(DIFFERENCES.items()):
        values = np.full(shape, np.nan)
        for column, part in enumerate(parts):
            values[:, column] = part[side].T
        turned = values.transpose(0, 2, 1)
        several = OUTPUT in out.dims
        out[name] = (
            (OUTPUT, "obs", "feature") if several else ("obs", "feature"),
            turned if several else turned[0],
            {"long_name": long_name, "units": "output units"},
        )
    most = max(len(one.texts) for one in levels)
    texts = np.array([one.texts + [""] * (most - len(one.texts)) for one in levels])
    names = [orders[one.name] for one in levels]
    return out.assign_coords(
        feature_kind=("feature", np.array([one.kind for one in levels])),
        level=(("feature", "edge"), texts, {"long_name": "level, in order"}),
        n_levels=(
            "feature",
            np.array([len(one.texts) for one in levels]),
            {"long_name": "levels with rows"},
        ),
        n_levels_unused=(
            "feature",
            np.array([one.n_unused for one in levels]),
            {"long_name": "levels without rows, left out"},
        ),
        order=(
            "feature",
            np.array([name if isinstance(name, str) else "given" for name in names]),
            {"long_name": "how the levels were ordered"},
        ),
    )


# --- effects -------------------------------------------------------------------------------------


@each_part
def level_ale(local: xr.Dataset, *, centering: str = "mean") -> xr.Dataset:
    """Effects of the steps between levels, their curve, and the covariance of both.

    As `rhale` returns it: ``bin`` is a step, ``edge`` a level. Beside that ``level_share``,
    ``n_level`` and ``n_level_effective`` (feature, edge), ``effect_cov`` (feature, bin, bin_other)
    and ``curve_cov`` (feature, edge, edge_other), ``average_effect_se`` (feature).
    """
    local = check_local(local)
    check_choice("centering", centering, CENTERINGS)
    rows = [_estimates(local.isel(feature=[at]), centering) for at in range(local.sizes["feature"])]
    names = next((tuple(row) for row in rows if row), ESTIMATES)
    weighted = local["weight"].values > 0 if "weight" in local else np.ones(local.sizes["obs"])
    effect = effects_of(
        local,
        rows,
        names,
        FACTS | LEVEL_FACTS,
        method="ale",
        rule=("levels", ""),
        centering=centering,
        n_rows=int(np.sum(weighted > 0)),
        handed_on=("n_missing",),
    )
    stepped = [name for name, row in zip(feature_names(local), rows, strict=True) if row]
    own = own_columns(local, stepped).items()
    effect.attrs |= as_attribute({name: its.fingerprint(at) for name, (its, at) in own})
    most, level = effect.sizes["edge"], local["level"].values
    # Some features of many may have fewer levels than the others.
    level = np.pad(level[:, :most], ((0, 0), (0, max(most - level.shape[1], 0))))
    return effect.assign_coords(
        {
            "level": (("feature", "edge"), level, local["level"].attrs),
            **{name: local[name].variable for name in LABELS if name != "level"},
        }
    )


ESTIMATES = (
    *("effect", "heterogeneity", "n_obs", "n_effective", "weight_share", "x_mean", "edge_value"),
    *("curve", "curve_std", "curve_std_sum", "curve_offset", "average_effect"),
    *("heterogeneity_index", "heterogeneity_output"),
    *("third_moment", "fourth_moment", "x_variance", "x_covariance"),
    *("average_effect_se", "effect_cov", "curve_cov"),
    *("level_share", "n_level", "n_level_effective"),
)


def _estimates(local: xr.Dataset, centering: str) -> Estimates:
    """Everything of one feature, by name; nothing of a single level."""
    n_levels = int(local["n_levels"].item())
    if n_levels < 2:
        return {}
    found = columns(local.isel(obs=local["x"].values[:, 0] >= 0))
    assert found.sides is not None
    code, (up, down), weight = found.x[0].astype(np.int64), found.sides[0], found.weight
    n_steps = n_levels - 1
    steps = kernel.steps(code, up, down, n_levels)
    bins, third, fourth = kernel.step_moments(
        steps, code, weight, n_steps, frequency=found.frequency
    )
    w = np.ones(found.n_rows) if weight is None else weight
    total = np.bincount(code, w, n_levels)
    squares = total if found.frequency else np.bincount(code, w**2, n_levels)
    share = total / w.sum()
    n_level = total if found.frequency else np.bincount(code, minlength=n_levels)
    heterogeneity, ones = kernel.spread_of(bins), np.ones(n_steps)
    curve, offset = kernel.curve(bins.mean, share, centering)
    moved = kernel.row_sums(steps, code, curve, weight, np.arange(found.n_rows), found.n_rows)
    size = w if found.frequency else np.ones(found.n_rows)
    at = kernel.loadings(share, np.arange(n_levels, dtype=np.float64), centering)
    n, everything = (
        sums.n_effective(bins),
        kernel.n_effective_of(weight, found.n_rows, frequency=found.frequency),
    )
    covariances = kernel.covariances(moved, at, size, n, population=centering == "mean")
    return {
        "effect": bins.mean,
        "heterogeneity": heterogeneity,
        "n_obs": bins.n_obs,
        "n_effective": n,
        "weight_share": bins.weight / w.sum(),
        "x_mean": bins.x_mean,
        "edge_value": np.arange(n_levels, dtype=np.float64),
        "curve": curve,
        "curve_std": accumulate.curve_std(heterogeneity, ones),
        "curve_std_sum": accumulate.curve_std_sum(heterogeneity, ones),
        "curve_offset": float(offset),
        "average_effect": float(np.average(bins.mean, weights=bins.weight)),
        "heterogeneity_index": accumulate.heterogeneity_index(bins.m2, bins.weight, ones),
        "heterogeneity_output": float(
            kernel.heterogeneity_output(heterogeneity**2, bins.weight, share, everything)
        ),
        "third_moment": third,
        "fourth_moment": fourth,
        # Levels have no places between them.
        "x_variance": np.full(n_steps, np.nan),
        "x_covariance": np.full(n_steps, np.nan),
        "average_effect_se": kernel.average_se(moved, size, everything),
        "effect_cov": covariances.effect,
        "curve_cov": covariances.curve,
        "level_share": share,
        "n_level": n_level,
        # Nothing of a level without rows, which a selection may leave behind.
        "n_level_effective": total**2 / np.where(squares > 0, squares, 1.0),
    }


# --- with numeric features -----------------------------------------------------------------------


def joined(parts: Sequence[xr.Dataset], names: Sequence[str]) -> xr.Dataset:
    """Local effects, or effects, of features with an axis and of others with levels as one."""
    if len(parts) == 1:
        return parts[0]
    weight = parts[0].get("weight")
    obs = parts[0].coords.get("obs")
    # One description for both: that of the features with an axis.
    parts = with_joint_fingerprints(parts)
    attrs = {**parts[1].attrs, **parts[0].attrs}
    out = by_feature(
        [part.drop_vars("weight", errors="ignore").assign_attrs(attrs) for part in parts], names
    )
    front = [dim for dim in (OUTPUT, "obs") if dim in out.dims]
    out = out.transpose(*front, ...)
    out = out if obs is None else out.assign_coords(obs=obs)
    return out if weight is None else out.assign(weight=weight)
