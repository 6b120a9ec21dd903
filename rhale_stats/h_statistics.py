"""How much of a model's output is interaction: Friedman and Popescu's H² (math [60] and [61])."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike
from tqdm import tqdm

from rhale_stats import models
from rhale_stats.arrays import second_order as kernel
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.bins import BinRule, QuantileBins, describe
from rhale_stats.effects import PROGRESS_DELAY, seed_of
from rhale_stats.schema import OUTPUT, OUTPUT_UNITS, position_of, software, stack, with_outputs
from rhale_stats.second_order import (
    FeatureAxis,
    Grid,
    Order,
    axis_of,
    check_rules,
    order_of,
    second_differences,
)
from rhale_stats.validate import as_weights, check_choice, check_count, check_finite

METHOD = "H-statistics"
KINDS = ("pdp", "ale")
PDP_ROWS = 500
ALE_BINS = QuantileBins(10)
OTHER = "feature_other"
# A numerator below so much of what rounding does to the output is 0.
ROUNDINGS = 8.0


def h_statistic(
    model: models.Model,
    X: Any,
    *,
    features: Sequence[str | int] | None = None,
    pairwise: bool = True,
    kind: str = "pdp",
    n_rows: int | str | None = "auto",
    bins: BinRule | None = None,
    order: Order = "as_is",
    weights: ArrayLike | None = None,
    weight_kind: str = "precision",
    output: models.OutputLabels = None,
    scale: str = "response",
    normalize: bool = True,
    rng: np.random.Generator | int | None = None,
    progress: bool = True,
) -> xr.Dataset:
    r"""H-statistics: how much of the output is interaction, in all, by feature and by pair.

    Parameters
    ----------
    model, X, weights, weight_kind, output, scale
        As in `local_effects`. ``X`` must have no missing values in ``features``.
    features : sequence of str or int, optional
        Columns to look at, two at least; by default all, of numbers or not.
    pairwise : bool, default True
        Look at all pairs, too. With kind "pdp" a pair costs n² rows of the model.
    kind : {"pdp", "ale"}, default "pdp"
        From partial dependences, as Friedman and Popescu do (math [60]); or from accumulated local
        effects of first and second order (math [61]), which never leave the data, and cost a few
        times n rows a pair.
    n_rows : int, None or "auto"
        Rows that are used, drawn at random from all, without their weights; None for all. "auto"
        is 500 with "pdp" and all with "ale". ``n_rows``, ``n_rows_total`` and ``row_seed`` in the
        attributes say what was done.
    bins : bin rule, optional
        For numeric features with kind "ale"; 10 quantiles by default. Not for "pdp".
    order : "as_is", sequence, or mapping
        Levels of categorical features with kind "ale", as in `ale2`.
    normalize : bool, default True
        Whether `plot_h_statistics` shows the shares or the sizes; both are in the result.
    rng : Generator, int or None
        Source of the rows that are drawn, or its seed.
    progress : bool, default True
        Show a bar on work over two seconds.

    Returns
    -------
    Dataset
        ``h2``: share of the variance of the output that the main effects of ``features`` leave.
        ``h2_overall`` (feature): share that the feature and all others by themselves leave.
        ``h2_pairwise`` (feature, feature_other): share of the variance of the joint effect that
        both main effects leave, symmetric, NaN in the diagonal. ``h``, ``h_overall`` and
        ``h_pairwise`` are the square roots of the numerators, in units of the output: they compare
        between pairs, as shares do not. What is no more than rounding is 0; a share of a variance
        of 0 is 0. Attributes ``n_model_calls`` and ``n_model_rows`` say what it cost. With
        several outputs there is ``output`` in front.

    Raises
    ------
    ValueError
        Fewer than two features, or one twice, missing values in them, unusable weights, output
        that is not finite, ``bins`` with "pdp".
    KeyError
        Unknown feature or output.
    ModelError
        The model raised, or returned something else than numbers for every row.

    Notes
    -----
    Partial dependences combine values that may never occur together; where features go together,
    H² then tells of the model where there are no data. It is also large for a pair with next to no
    main effects: look at ``h_pairwise``. Sampling makes shares from "ale" too large where cells
    have few rows: the noise of their means counts as interaction.

    "pdp" is what R's hstats computes: a partial dependence is the mean over the rows used, and is
    taken at these rows. Its ``h2_overall`` needs one pass of n² rows a feature, since the same
    answers average to the feature's partial dependence and to that of all others.

    References
    ----------
    Friedman and Popescu (2008), *Predictive learning via rule ensembles*, Annals of Applied
    Statistics 2, 916-954, Eq. 44 to 46. Mayer, *hstats*, R package. Apley and Zhu (2020), Eq. 17,
    for "ale".

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).normal(size=(400, 3))
    >>> found = rs.h_statistic(lambda X: X[:, 0] + X[:, 1] + X[:, 0] * X[:, 1], X, n_rows=None)
    >>> found["h2_overall"].round(2).values
    array([0.28, 0.28, 0.  ])
    """
    table = models.as_table(X)
    check_choice("kind", kind, KINDS)
    check_choice("weight_kind", weight_kind, ("precision", "frequency"))
    if kind == "pdp" and (bins is not None or order != "as_is"):
        raise ValueError(
            "bins and order are for kind='ale'; partial dependences have none. Leave them out."
        )
    positions = _positions(table, features)
    weight = None if weights is None else as_weights(weights, table.n_rows, weight_kind)
    for position in positions:
        _check_complete(table, position)
    rows, seed = _rows_used(n_rows, kind, table.n_rows, weight, rng)
    w = np.ones(len(rows)) if weight is None else weight[rows]
    chosen = models.Table(
        table.data.iloc[rows] if isinstance(table.data, pd.DataFrame) else table.data[rows],
        table.names,
    )
    quotients = models.DifferenceQuotients(model, chosen, output, scale)
    pairs = list(combinations(range(len(positions)), 2)) if pairwise or kind == "ale" else []
    bar = tqdm(
        total=len(pairs) + (len(positions) if kind == "pdp" else 0),
        desc="H-statistics",
        disable=not progress,
        delay=PROGRESS_DELAY,
    )
    rule = ALE_BINS if bins is None else check_rules(bins)[0]
    with bar:
        if kind == "pdp":
            found = _from_partial_dependence(quotients, positions, pairs, w, bar)
        else:
            found = _from_ale(
                quotients, positions, pairs, w, rule, order, bar,
                frequency=weight_kind == "frequency" and weight is not None,
            )  # fmt: skip
    names = [table.names[position] for position in positions]
    out = stack(
        [_dataset(found, names, number, pairwise) for number in range(found.total.shape[-1])],
        OUTPUT,
    )
    attrs = getattr(X, "attrs", {})
    out.attrs |= {
        "method": METHOD,
        "h_kind": kind,
        "estimator": "math [60]" if kind == "pdp" else "math [61]",
        "normalize": int(normalize),
        "n_rows": len(rows),
        "n_rows_total": table.n_rows,
        "row_seed": seed,
        "weight_kind": weight_kind if weight is not None else "none",
        "n_model_calls": quotients.n_calls,
        "n_model_rows": quotients.n_rows,
        "output_name": str(attrs.get("output_name", "output")),
        "output_units": str(attrs.get("output_units", "")),
        "software": software(),
    }
    if kind == "ale":
        out.attrs |= {"bin_rule": describe(rule)[0], "bin_parameters": describe(rule)[1]}
    return with_outputs(out, quotients.outputs.labels, quotients.outputs.names)


class _Found(NamedTuple):
    """Numerators and denominators, squares of the output; last axis outputs.

    ``total`` () and ``overall`` (feature,) share ``variance`` ().
    """

    total: FloatArray
    overall: FloatArray
    variance: FloatArray
    pairs: list[tuple[int, int]]
    pair: FloatArray
    joint: FloatArray
    least: FloatArray


def _dataset(found: _Found, names: list[str], number: int, pairwise: bool) -> xr.Dataset:
    """Statistics of one output."""
    n, least = len(names), found.least[number]

    def of(upper: FloatArray, lower: FloatArray) -> tuple[FloatArray, FloatArray]:
        upper = np.where(upper > least, upper, 0.0)
        return np.divide(upper, lower, out=np.zeros(upper.shape), where=upper > 0), np.sqrt(upper)

    variance = found.variance[number]
    statistics: dict[str, tuple[tuple[str, ...], tuple[FloatArray, FloatArray], str]] = {
        "": ((), of(found.total[number], variance), "all interactions"),
        "_overall": (
            ("feature",),
            of(found.overall[:, number], np.broadcast_to(variance, n)),
            "interactions of the feature",
        ),
    }
    if pairwise:
        tables = np.full((2, n, n), np.nan)
        for j, k in found.pairs:
            at = found.pairs.index((j, k))
            tables[:, j, k] = of(found.pair[at, number], found.joint[at, number])
            tables[:, k, j] = tables[:, j, k]
        both = (tables[0], tables[1])
        statistics["_pairwise"] = (("feature", OTHER), both, "interaction of the pair")
    data = {}
    for suffix, (dims, (share, size), what) in statistics.items():
        data[f"h2{suffix}"] = (
            dims, share, {"long_name": f"H², share of the variance by {what}", "units": "1"},
        )  # fmt: skip
        data[f"h{suffix}"] = (
            dims, size, {"long_name": f"size of {what}", "units": OUTPUT_UNITS},
        )  # fmt: skip
    coords = {"feature": ("feature", np.array(names), {"long_name": "feature"})}
    if pairwise:
        coords[OTHER] = (OTHER, np.array(names), {"long_name": "other feature"})
    return xr.Dataset(data, coords)


def _centred(values: FloatArray, w: FloatArray) -> FloatArray:
    """Without the weighted mean over the rows, the first axis."""
    return values - np.average(values, axis=0, weights=w)


def _mean_square(values: FloatArray, w: FloatArray) -> FloatArray:
    return np.asarray(np.average(values**2, axis=0, weights=w))


# --- partial dependence ---------------------------------------------------------------------------


def _from_partial_dependence(
    quotients: models.DifferenceQuotients,
    positions: list[int],
    pairs: list[tuple[int, int]],
    w: FloatArray,
    bar: tqdm[Any],
) -> _Found:
    """math [60]."""
    prediction = _predictions(quotients)
    largest = np.abs(prediction).max(axis=0)
    own, others = [], []
    for position in positions:
        at_value, at_rest = _partial_dependence(quotients, (position,), w)
        own.append(_centred(at_value, w))
        others.append(_centred(at_rest, w))
        bar.update()
    whole = _centred(prediction, w)
    pair, joint = [], []
    for j, k in pairs:
        together = _centred(_partial_dependence(quotients, (positions[j], positions[k]), w)[0], w)
        pair.append(_mean_square(together - own[j] - own[k], w))
        joint.append(_mean_square(together, w))
        bar.update()
    n_outputs = prediction.shape[1]
    return _Found(
        _mean_square(whole - np.sum(own, axis=0), w),
        np.array([_mean_square(whole - f - g, w) for f, g in zip(own, others, strict=True)]),
        _mean_square(whole, w),
        pairs,
        np.reshape(pair, (-1, n_outputs)),
        np.reshape(joint, (-1, n_outputs)),
        _least(quotients, largest, prediction),
    )


def _least(
    quotients: models.DifferenceQuotients, largest: FloatArray, answer: FloatArray
) -> FloatArray:
    """Squares of the output that rounding alone may make."""
    precision = max(quotients.precision, _precision(answer))
    return np.asarray((ROUNDINGS * precision * largest) ** 2)


def _precision(answer: FloatArray) -> float:
    return float(np.finfo(answer.dtype).eps)


def _partial_dependence(
    quotients: models.DifferenceQuotients, positions: tuple[int, ...], w: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Partial dependence of some columns, and of all the others, at the rows: (row, output) each.

    The answer for values of row i in row k is averaged over k for the one, and over i for the
    other. Values that repeat are asked for once.
    """
    table = quotients.table
    frame = pd.DataFrame({p: _codes(table, p) for p in positions})
    grouped = frame.groupby(list(positions), sort=False)
    group = grouped.ngroup().to_numpy()
    example = np.unique(group, return_index=True)[1]
    mass = np.bincount(group, w)
    n, share = table.n_rows, w / w.sum()
    together = max(1, models.BATCH_ROWS // n)
    own, rest = [], 0.0
    for begin in range(0, len(example), together):
        part = example[begin : begin + together]
        rows = _copies(table, positions, part)
        try:
            answer = quotients.ask(rows)
        except (models.ModelError, models.UnknownOutputError):
            raise
        except Exception as error:
            names = " and ".join(repr(table.names[p]) for p in positions)
            raise models.ModelError(
                f"model raised {type(error).__name__} for {names}, called with {len(rows)} rows: "
                f"{len(part)} versions of {n} rows: {error}"
            ) from error
        _check_answers(answer)
        answer = answer.astype(np.float64, copy=False).reshape(len(part), n, -1)
        own.append(np.einsum("k,ikc->ic", share, answer))
        rest = rest + np.einsum("i,ikc->kc", mass[begin : begin + together], answer)
    return np.concatenate(own)[group], np.asarray(rest) / w.sum()


def _codes(table: models.Table, position: int) -> IntArray:
    if isinstance(table.data, np.ndarray):
        return pd.factorize(table.data[:, position])[0]
    return pd.factorize(table.data.iloc[:, position])[0]


def _copies(table: models.Table, positions: tuple[int, ...], rows: IntArray) -> Any:
    """The table once for each of ``rows``, with their values in these columns."""
    n = table.n_rows
    background, given = np.tile(np.arange(n), len(rows)), np.repeat(rows, n)
    if isinstance(table.data, np.ndarray):
        stack = table.data[background]
        for position in positions:
            stack[:, position] = table.data[given, position]
        return stack
    frame = table.data.iloc[background].reset_index(drop=True)
    for position in positions:
        own = table.data.iloc[:, position].array.take(given)
        frame[table.data.columns[position]] = models.as_column(own)
    return frame


def _predictions(quotients: models.DifferenceQuotients) -> FloatArray:
    """The model's answer at the rows."""
    try:
        answer = quotients.ask(quotients.table.data)
    except (models.ModelError, models.UnknownOutputError):
        raise
    except Exception as error:
        raise models.ModelError(
            f"model raised {type(error).__name__} on all {quotients.table.n_rows} rows used of X: "
            f"{error}"
        ) from error
    _check_answers(answer)
    return answer.astype(np.float64)


def _check_answers(answer: FloatArray) -> None:
    """Refuse what cannot be averaged."""
    bad = ~np.isfinite(answer)
    if bad.any():
        raise ValueError(
            f"The model must return finite numbers; got {int(bad.sum())} that are not, for "
            f"{len(answer)} rows. See what it returns for combinations of values that do not occur "
            f"in X, or take kind='ale'."
        )


# --- accumulated local effects --------------------------------------------------------------------


def _from_ale(
    quotients: models.DifferenceQuotients,
    positions: list[int],
    pairs: list[tuple[int, int]],
    w: FloatArray,
    rule: BinRule,
    order: Order,
    bar: tqdm[Any],
    *,
    frequency: bool,
) -> _Found:
    """math [61]."""
    table = quotients.table
    prediction = _predictions(quotients)
    n_outputs = prediction.shape[1]
    axes: list[FeatureAxis | None] = []
    main = []
    for position in positions:
        axis = None
        if _codes(table, position).max() > 0:
            axis = axis_of(table, position, rule, order_of(order, table, position), w)
        axes.append(axis)
        main.append(_main_effect(quotients, position, axis, w, n_outputs))
    interactions = np.zeros((len(positions), *prediction.shape))
    every = np.zeros(prediction.shape)
    pair, joint = [], []
    for j, k in pairs:
        a, b = axes[j], axes[k]
        second = np.zeros(prediction.shape)
        if a is not None and b is not None:
            delta, _ = second_differences(
                quotients, (positions[j], positions[k]), (a, b), progress=False
            )
            grid = Grid(a, b, w, frequency=frequency)
            for number in range(n_outputs):
                found = grid.surface(grid.cells(delta[..., number]))
                second[:, number] = kernel.surface_at_values(
                    found.pure, a.place, b.place, a.fraction, b.fraction
                )
            second = _centred(second, w)
        pair.append(_mean_square(second, w))
        joint.append(_mean_square(_centred(main[j] + main[k] + second, w), w))
        interactions[[j, k]] += second
        every += second
        bar.update()
    return _Found(
        _mean_square(every, w),
        np.array([_mean_square(one, w) for one in interactions]),
        _mean_square(_centred(prediction, w), w),
        pairs,
        np.reshape(pair, (-1, n_outputs)),
        np.reshape(joint, (-1, n_outputs)),
        _least(quotients, np.abs(prediction).max(axis=0), prediction),
    )


def _main_effect(
    quotients: models.DifferenceQuotients,
    position: int,
    axis: FeatureAxis | None,
    w: FloatArray,
    n_outputs: int,
) -> FloatArray:
    """First-order ALE at the rows, in the bins of the second order: (row, output)."""
    n = quotients.table.n_rows
    if axis is None:
        return np.zeros((n, n_outputs))
    along = axis.axis
    sums = np.zeros((along.n_bins, n_outputs))
    mass = np.zeros(along.n_bins)
    for number, side in enumerate(along.sides):
        lower, upper = axis.versions[number : number + 2]
        change, _ = quotients.between(position, lower, upper)
        check_finite(
            change.sum(axis=1), "Differences", axis.name, "See what the model returns there."
        )
        step = axis.place + side
        inside = (step >= 0) & (step < along.n_bins)
        np.add.at(sums, step[inside], w[inside, None] * change[inside])
        mass += np.bincount(step[inside], w[inside], along.n_bins)
    steps = np.divide(sums, mass[:, None], out=np.zeros(sums.shape), where=mass[:, None] > 0)
    curve = kernel.from_zero(steps.T).T
    return _centred(kernel.at_values(curve, axis.place, axis.fraction), w)


# --- arguments ------------------------------------------------------------------------------------


def _positions(table: models.Table, features: Sequence[str | int] | None) -> list[int]:
    if features is None:
        positions = list(range(len(table.names)))
    elif isinstance(features, str | int | np.integer):
        raise TypeError(f"features must be a sequence of two columns or more; got {features!r}.")
    else:
        positions = [position_of(feature, table.names) for feature in features]
    if len(set(positions)) < len(positions):
        raise ValueError(f"features must be distinct; got {features!r}.")
    if len(positions) < 2:
        raise ValueError(
            f"features must be at least two, for something to interact; got {len(positions)}."
        )
    return positions


def _check_complete(table: models.Table, position: int) -> None:
    if table.is_numeric(position):
        models.check_column(table, position)
        return
    gaps = pd.isna(table.data.iloc[:, position])  # type: ignore[union-attr]
    if gaps.any():
        raise ValueError(
            f"X of feature {table.names[position]!r} must have a level in every row; got "
            f"{int(gaps.sum())} missing in {table.n_rows} rows. Drop or impute these rows."
        )


def _rows_used(
    n_rows: int | str | None,
    kind: str,
    n: int,
    weight: FloatArray | None,
    rng: np.random.Generator | int | None,
) -> tuple[IntArray, int]:
    """Rows of positive weight, or a sample of them, and the seed that it was drawn with (or -1)."""
    present = np.arange(n) if weight is None else np.flatnonzero(weight > 0)
    if isinstance(n_rows, str):
        check_choice("n_rows", n_rows, ("auto",))
        n_rows = PDP_ROWS if kind == "pdp" else None
    if n_rows is None:
        return present, -1
    check_count("n_rows", n_rows, 2)
    if n_rows >= len(present):
        return present, -1
    seed = seed_of(rng)
    drawn = np.random.default_rng(seed).choice(len(present), n_rows, replace=False)
    return present[np.sort(drawn)], seed
