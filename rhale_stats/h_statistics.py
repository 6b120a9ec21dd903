"""How much of a model's output is interaction: Friedman and Popescu's H² (math [60] to [62])."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from tqdm import tqdm

from rhale_stats import models
from rhale_stats.arrays import h_statistics as arrays
from rhale_stats.arrays import second_order as kernel
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.bins import BinRule, QuantileBins, describe
from rhale_stats.effects import MISSING, PROGRESS_DELAY
from rhale_stats.identity import row_coordinate
from rhale_stats.schema import (
    OUTPUT,
    OUTPUT_UNITS,
    position_of,
    software,
    stack,
    with_outputs,
)
from rhale_stats.second_order import (
    FeatureAxis,
    Grid,
    Order,
    axis_of,
    check_rules,
    order_of,
    second_differences,
)
from rhale_stats.seeds import number_of
from rhale_stats.validate import (
    check_choice,
    check_count,
    check_finite,
    checked,
    first_rows,
)

METHOD = "H-statistics"
KINDS = ("pdp", "ale")
PDP_ROWS = 500
# More take gigabytes, and millions of rows of the model a pair.
MOST_PDP_ROWS = 5000
ALE_BINS = QuantileBins(10)
OTHER = "feature_other"
# A numerator below so much of what rounding does to the output is 0.
ROUNDINGS = 8.0
STATISTICS = ("h2", "h2_overall", "h2_pairwise", "h", "h_overall", "h_pairwise")
# Answers, or differences, of all terms are held for the standard errors up to so many bytes, and
# influences of rows are kept in the result up to so many.
HELD_BYTES, KEPT_BYTES = 1 << 30, 1 << 26
SOURCE = "rows"


@checked
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
    missing: str = "raise",
    keep_answers: bool = False,
    rng: np.random.Generator | int | None = None,
    progress: bool = True,
) -> xr.Dataset:
    r"""H-statistics: how much of the output is interaction, in all, by feature and by pair.

    Parameters
    ----------
    model, X, weights, weight_kind, output, scale
        As in `local_effects`.
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
        is 500 with "pdp" and all with "ale". With "pdp" 5000 at most, since memory and time grow
        with their square. ``n_rows``, ``n_rows_total`` and ``row_seed`` in the
        attributes say what was done.
    bins : bin rule, optional
        For numeric features with kind "ale"; 10 quantiles by default. Not for "pdp".
    order : "as_is", sequence, or mapping
        Levels of categorical features with kind "ale", as in `ale2`.
    normalize : bool, default True
        Whether `plot_h_statistics` shows the shares or the sizes; both are in the result.
    missing : {"raise", "drop", "bin"}, default "raise"
        Rows without a value in one of ``features``: refused; left out, and counted in the attribute
        ``n_rows_missing``; or, with "bin", used. A missing value is then a value like any other,
        which the model must take; with kind "ale" a level, and so not of numeric features.
    keep_answers : bool, default False
        Keep the answers of the model, for `bootstrap`: 8 n² bytes a feature, a pair and an output,
        in all 110 MB for 10 features, 45 pairs and 500 rows. With kind "pdp" only.
    rng : Generator, int or None
        Source of the rows that are drawn, or its seed; ``row_seed`` reproduces them.
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

        Of each of these a standard error, ``h2_se``, ``h2_overall_se`` and so on, over the rows as
        drawn from a population, and over (..., obs) the influence of every row, ``h2_influence``
        and so on, from which `std_error` with ``groups`` and `compare` work. Influences above
        64 MiB in all are not kept, and where more than 1 GiB of answers (or of second differences)
        would have to be held for them, there are no standard errors; the attribute ``influence``
        says so. ``row`` (obs) is the number of the row in ``X``, ``weight`` (obs) its weight where
        given. With ``keep_answers`` also ``answers`` (feature, obs, obs_background), the output
        with the feature of row obs and all else of row obs_background, and ``answers_pair`` (pair,
        obs, obs_background) with the names ``pair_feature`` and ``pair_other``.

    Raises
    ------
    ValueError
        Fewer than two features, or one twice, missing values in them, unusable weights, output
        that is not finite, ``bins`` with "pdp", ``keep_answers`` with "ale".
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

    Standard errors are those of the infinitesimal jackknife (math [62]), the model and the bins of
    "ale" being taken as they are. Intervals of `confint` are on the log scale. In simulations with
    closed forms 95 % intervals from "pdp" held the value of the population in 87 to 97 % of samples
    of 200 rows, and in 90 to 96 % of samples of 500; the lower figures are of products of normal
    features, whose squares have heavy tails. Intervals say how large an interaction is, not whether
    there is one: where H² is 0 in the population and sampling makes it positive, as in a pair that
    only interacts through a third feature, its bias is upwards, of order 1/n, and no interval holds
    0. A statistic that is 0 by rounding has standard error 0: no rows make an additive model
    interact. From "ale" it was 91 to 96 % with 500 rows and more, but about 80 % where two features
    have correlation 0.7: which cells have rows, and how the others are filled, is not in it.

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
    check_choice("missing", missing, MISSING)
    if kind == "ale" and keep_answers:
        raise ValueError(
            "keep_answers must be False with kind='ale', which has no answers for pairs of rows; "
            "got True. Standard errors come with the result all the same."
        )
    if kind == "pdp" and not (bins is None and isinstance(order, str) and order == "as_is"):
        raise ValueError(
            "bins and order are for kind='ale'; partial dependences have none. Leave them out."
        )
    positions = _positions(table, features)
    weight = table.weights(weights, weight_kind)
    present = np.ones(table.n_rows, dtype=bool) if weight is None else weight > 0
    gaps = _gaps(table, positions, missing, kind, order, present)
    left = np.flatnonzero(present & ~gaps)
    if not len(left):
        raise ValueError(
            f"X must have rows with values of all features; got none of {int(present.sum())}. Look "
            f"at fewer features, or take missing='bin'."
        )
    rows, seed = _rows_used(n_rows, kind, left, rng)
    w = np.ones(len(rows)) if weight is None else weight[rows]
    quotients = models.DifferenceQuotients(model, table, output, scale).at(rows)
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
            found = _from_partial_dependence(
                quotients, positions, pairs, w, bar, keep_answers=keep_answers
            )
        else:
            found = _from_ale(
                quotients, positions, pairs, w, rule, order, bar,
                frequency=weight_kind == "frequency" and weight is not None,
            )  # fmt: skip
    names = [table.names[position] for position in positions]
    frequency = weight_kind == "frequency" and weight is not None
    n_outputs = found.total.shape[-1]
    n_kept = 2 * (1 + len(names) + len(names) ** 2 * pairwise) * len(rows) * n_outputs * 8
    kept = found.influences is not None and n_kept <= KEPT_BYTES
    out = stack(
        [
            _dataset(found, names, number, pairwise, w, frequency=frequency, kept=kept)
            for number in range(n_outputs)
        ],
        OUTPUT,
    )
    dim, labels, about = row_coordinate(X, table.n_rows)
    out = out.assign_coords(
        obs=(dim, labels[rows], about),
        row=("obs", rows, {"long_name": "number of the row", "units": "1"}),
    )
    if weight is not None:
        out["weight"] = ("obs", w, {"long_name": "row weight", "units": "1"})
    attrs = getattr(X, "attrs", {})
    out.attrs |= {
        "method": METHOD,
        "h_kind": kind,
        "estimator": "math [60]" if kind == "pdp" else "math [61]",
        "normalize": int(normalize),
        "n_features": len(names),
        "n_rows": len(rows),
        "n_rows_total": table.n_rows,
        "n_rows_missing": int((gaps & present).sum()),
        "missing": missing,
        "row_seed": seed,
        "table_hash": _fingerprint(table, positions),
        "influence": "kept"
        if kept
        else f"not kept: more than {KEPT_BYTES >> 20} MiB"
        if found.influences is not None
        else f"none: more than {HELD_BYTES >> 20} MiB to hold",
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

    ``total`` () and ``overall`` (feature,) share ``variance`` (). ``influences`` has those of every
    output, each with a last axis of rows; ``answers`` those of features and of pairs, (row, row of
    the others, output) each.
    """

    total: FloatArray
    overall: FloatArray
    variance: FloatArray
    pairs: list[tuple[int, int]]
    pair: FloatArray
    joint: FloatArray
    least: FloatArray
    influences: list[arrays.Squares] | None
    answers: tuple[list[FloatArray], list[FloatArray]] | None = None


def _dataset(
    found: _Found,
    names: list[str],
    number: int,
    pairwise: bool,
    w: FloatArray,
    *,
    frequency: bool,
    kept: bool,
) -> xr.Dataset:
    """Statistics of one output."""
    n, least = len(names), found.least[number]

    def of(upper: FloatArray, lower: FloatArray) -> tuple[FloatArray, FloatArray]:
        upper = np.where(upper > least, upper, 0.0)
        share = np.divide(upper, lower, out=np.zeros(upper.shape), where=(upper > 0) & (lower > 0))
        return share, np.sqrt(upper)

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
    data: dict[str, Any] = {}
    for suffix, (dims, (share, size), what) in statistics.items():
        data[f"h2{suffix}"] = (
            dims, share, {"long_name": f"H², share of the variance by {what}", "units": "1"},
        )  # fmt: skip
        data[f"h{suffix}"] = (
            dims, size, {"long_name": f"size of {what}", "units": OUTPUT_UNITS},
        )  # fmt: skip
    coords: dict[str, Any] = {"feature": ("feature", np.array(names), {"long_name": "feature"})}
    if pairwise:
        coords[OTHER] = (OTHER, np.array(names), {"long_name": "other feature"})
    data["h_error"] = (
        (), float(np.sqrt(least)),
        {"long_name": "size that rounding alone may make", "units": OUTPUT_UNITS},
    )  # fmt: skip
    out = xr.Dataset(data, coords)
    if found.influences is not None:
        out = _with_influences(out, found, number, w, frequency=frequency, kept=kept)
    if found.answers is None:
        return out
    units = {"units": OUTPUT_UNITS}
    text = "output with the feature of the row and all else of the other row"
    of_rows = ("obs", "obs_background")
    features, pairs = (np.array([one[..., number] for one in each]) for each in found.answers)
    out["answers"] = (("feature", *of_rows), features, {"long_name": text, **units})
    if not pairwise:
        return out
    out["answers_pair"] = (
        ("pair", *of_rows), pairs, {"long_name": text.replace("feature", "pair"), **units},
    )  # fmt: skip
    first, second = np.array(names)[np.array(found.pairs).T]
    return out.assign_coords(pair_feature=("pair", first), pair_other=("pair", second))


def _with_influences(
    out: xr.Dataset,
    found: _Found,
    number: int,
    w: FloatArray,
    *,
    frequency: bool,
    kept: bool,
) -> xr.Dataset:
    """math [62]: standard errors of one output, and the influences of its rows where kept."""
    assert found.influences is not None
    of, least = found.influences[number], found.least[number]

    def both(upper: FloatArray, lower: FloatArray, *given: FloatArray) -> tuple[FloatArray, ...]:
        # What is rounding does not move.
        return arrays.ratio_and_root(np.where(upper > least, upper, 0.0), lower, *given)

    variance = found.variance[number]
    n = len(out["feature"])
    found_of = {
        "": both(found.total[number], variance, of.total, of.variance),
        "_overall": both(
            found.overall[:, number], np.broadcast_to(variance, n), of.overall, of.variance
        ),
    }
    if "h2_pairwise" in out:
        square = np.full((2, n, n, len(w)), np.nan)
        j, k = np.array(found.pairs).T
        pair = both(found.pair[:, number], found.joint[:, number], of.pair, of.joint)
        square[:, j, k] = square[:, k, j] = pair
        found_of["_pairwise"] = (square[0], square[1])
    for suffix, influences in found_of.items():
        for stem, influence in zip(("h2", "h"), influences, strict=True):
            name = f"{stem}{suffix}"
            moved = arrays.moved_by_rows(influence, w, frequency=frequency)
            out[f"{name}_se"] = se_variable(out[name], np.sqrt(np.sum(moved**2, axis=-1)), SOURCE)
            if kept:
                out[f"{name}_influence"] = (
                    (*out[name].dims, "obs"),
                    influence,
                    {
                        "long_name": f"influence of the row on {out[name].attrs['long_name']}",
                        "units": out[name].attrs["units"],
                    },
                )
    return out


def se_variable(
    of: xr.DataArray, values: FloatArray, source: str
) -> tuple[tuple[Any, ...], FloatArray, dict[str, str]]:
    """Standard errors as a variable."""
    return (
        of.dims,
        values,
        {
            "long_name": f"standard error of {of.attrs['long_name']}",
            "units": str(of.attrs["units"]),
            "source": source,
            "kind": "infinitesimal jackknife, math [62]",
            "target": "the same over the population of rows",
        },
    )


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
    *,
    keep_answers: bool,
) -> _Found:
    """math [60], and [62] where the answers of all features can be held."""
    prediction, least = _predictions(quotients)
    n_rows, n_outputs = prediction.shape
    held = (len(positions) + 1) * n_rows**2 * n_outputs * 8 <= HELD_BYTES or keep_answers
    own, others, of_features = [], [], []
    for position in positions:
        at_value, at_rest, answers = _partial_dependence(quotients, (position,), w, held=held)
        own.append(_centred(at_value, w))
        others.append(_centred(at_rest, w))
        of_features.append(answers)
        bar.update()
    whole = _centred(prediction, w)
    share = w / w.sum()
    pair, joint, influences, of_pairs = [], [], [], []
    for j, k in pairs:
        both = (positions[j], positions[k])
        at_values, _, answers = _partial_dependence(quotients, both, w, held=held)
        together = _centred(at_values, w)
        pair.append(_mean_square(together - own[j] - own[k], w))
        joint.append(_mean_square(together, w))
        influences.append(
            [
                arrays.pdp_pair_influences(*three, share)
                for three in zip(answers, of_features[j], of_features[k], strict=True)
            ]
        )
        if keep_answers:
            of_pairs.append(answers)
        bar.update()
    found = []
    for number in range(n_outputs if held else 0):
        answers = [of[number] for of in of_features]
        of_all = arrays.pdp_influences(prediction[:, number], answers, share)
        each = np.reshape([one[number] for one in influences], (-1, 2, n_rows))
        found.append(arrays.Squares(*of_all, each[:, 0], each[:, 1]))
    kept = None
    if keep_answers:
        kept = (
            [np.stack([one.values[one.version] for one in of], axis=-1) for of in of_features],
            [np.stack([one.values[one.version] for one in of], axis=-1) for of in of_pairs],
        )
    return _Found(
        _mean_square(whole - np.sum(own, axis=0), w),
        np.array([_mean_square(whole - f - g, w) for f, g in zip(own, others, strict=True)]),
        _mean_square(whole, w),
        pairs,
        np.reshape(pair, (-1, n_outputs)),
        np.reshape(joint, (-1, n_outputs)),
        least,
        found or None,
        kept,
    )


def _partial_dependence(
    quotients: models.DifferenceQuotients,
    positions: tuple[int, ...],
    w: FloatArray,
    *,
    held: bool,
) -> tuple[FloatArray, FloatArray, list[arrays.Answers]]:
    """Partial dependence of some columns, and of all the others, at the rows: (row, output) each.

    The answer for values of row i in row k is averaged over k for the one, and over i for the
    other. Values that repeat are asked for once. The answers of every output come with them where
    they are ``held``.
    """
    table = quotients.table
    frame = pd.DataFrame({p: _codes(table, p) for p in positions})
    grouped = frame.groupby(list(positions), sort=False)
    group = grouped.ngroup().to_numpy().astype(np.int64)
    example = np.unique(group, return_index=True)[1]
    mass = np.bincount(group, w)
    n, share = table.n_rows, w / w.sum()
    together = max(1, models.BATCH_ROWS // n)
    own, rest, kept = [], 0.0, []
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
        if held:
            kept.append(answer)
    answers = []
    if held:
        whole = np.moveaxis(np.concatenate(kept), -1, 0)
        answers = [arrays.Answers(np.ascontiguousarray(one), group) for one in whole]
    return np.concatenate(own)[group], np.asarray(rest) / w.sum(), answers


def _codes(table: models.Table, position: int) -> IntArray:
    # A missing value is a value of its own: there are none, but for missing="bin".
    return pd.factorize(table.series(position), use_na_sentinel=False)[0]


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


def _predictions(quotients: models.DifferenceQuotients) -> tuple[FloatArray, FloatArray]:
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
    """math [61], and [62] where the second differences of all pairs can be held."""
    table = quotients.table
    prediction, least = _predictions(quotients)
    n_rows, n_outputs = prediction.shape
    axes: list[FeatureAxis | None] = []
    main, curves = [], []
    for position in positions:
        axis = None
        if _codes(table, position).max() > 0:
            axis = axis_of(table, position, rule, order_of(order, table, position), w)
        axes.append(axis)
        at_rows, curve = _main_effect(quotients, position, axis, w, n_outputs)
        main.append(at_rows)
        curves.append(curve)
    interactions = np.zeros((len(positions), *prediction.shape))
    every = np.zeros(prediction.shape)
    pair, joint = [], []
    seconds: list[list[arrays.Pair]] = []
    n_sides = sum(
        len(a.axis.sides) * len(b.axis.sides)
        for a, b in ((axes[j], axes[k]) for j, k in pairs)
        if a is not None and b is not None
    )
    # With a difference there is the number of its cell.
    held = 2 * n_sides * n_rows * n_outputs * 8 <= HELD_BYTES
    for j, k in pairs:
        a, b = axes[j], axes[k]
        second = np.zeros(prediction.shape)
        seconds.append([])
        if a is not None and b is not None:
            delta, _ = second_differences(
                quotients, (positions[j], positions[k]), (a, b), progress=False
            )
            grid = Grid(a, b, w, frequency=frequency)
            for number in range(n_outputs):
                cells = grid.cells(delta[..., number])
                found = grid.surface(cells)
                second[:, number] = kernel.surface_at_values(
                    found.pure, a.place, b.place, a.fraction, b.fraction
                )
                if held:
                    fill = kernel.filling(cells.supported)
                    of = kernel.Influence(*grid.axes, fill, grid.table, found, cells, centred=True)
                    places = a.place, b.place
                    at = curves[j][0].at, curves[k][0].at
                    seconds[-1].append(arrays.Pair(of, *places, grid.cell, delta[..., number], *at))
            second = _centred(second, w)
        pair.append(second)
        joint.append(_centred(main[j] + main[k] + second, w))
        interactions[[j, k]] += second
        every += second
        bar.update()
    share = w / w.sum()
    whole = _centred(prediction, w)
    influences = None
    if held:
        influences = [
            _ale_influences(
                _AtRows(
                    *(np.array(one)[..., number] for one in (every, interactions, pair, joint))
                ),
                whole[:, number],
                pairs,
                [curve[number] if curve else None for curve in curves],
                [second[number] if second else None for second in seconds],
                share,
                float(w.sum()),
            )
            for number in range(n_outputs)
        ]
    return _Found(
        _mean_square(every, w),
        np.array([_mean_square(one, w) for one in interactions]),
        _mean_square(whole, w),
        pairs,
        np.array([_mean_square(one, w) for one in pair]),
        np.array([_mean_square(one, w) for one in joint]),
        least,
        influences,
    )


class _AtRows(NamedTuple):
    """Values at the rows of what is squared: last axis rows."""

    every: FloatArray
    overall: FloatArray
    pair: FloatArray
    joint: FloatArray


def _ale_influences(
    at: _AtRows,
    whole: FloatArray,
    pairs: list[tuple[int, int]],
    curves: Sequence[arrays.Curve | None],
    seconds: Sequence[arrays.Pair | None],
    share: FloatArray,
    total_weight: float,
) -> arrays.Squares:
    """math [62] of one output: (..., row)."""
    moved = np.zeros(len(whole))
    moved_overall = np.zeros(at.overall.shape)
    of_pair, of_joint = [], []
    for (j, k), second, own, joint in zip(pairs, seconds, at.pair, at.joint, strict=True):
        by_pair, by_joint = np.zeros((2, len(whole)))
        if second is not None:
            e = np.stack([own, joint, at.overall[j], at.overall[k], at.every], axis=1)
            by_pair, by_joint, by_j, by_k, by_all = second.moved(share[:, None] * e).T
            moved_overall[j] += by_j
            moved_overall[k] += by_k
            moved += by_all
        for curve in (curves[j], curves[k]):
            by_joint = by_joint + (0.0 if curve is None else curve.moved(share * joint))
        # By a unit of weight; a share is that much of the total.
        of_pair.append(arrays.of_mean_square(own, total_weight * by_pair, share))
        of_joint.append(arrays.of_mean_square(joint, total_weight * by_joint, share))
    return arrays.Squares(
        arrays.of_mean_square(at.every, total_weight * moved, share),
        np.array(
            [
                arrays.of_mean_square(e, total_weight * by, share)
                for e, by in zip(at.overall, moved_overall, strict=True)
            ]
        ),
        arrays.of_mean_square(whole, np.zeros(len(whole)), share),
        np.array(of_pair),
        np.array(of_joint),
    )


def _main_effect(
    quotients: models.DifferenceQuotients,
    position: int,
    axis: FeatureAxis | None,
    w: FloatArray,
    n_outputs: int,
) -> tuple[FloatArray, list[arrays.Curve]]:
    """First-order ALE at the rows, in the bins of the second order: (row, output).

    Beside it the curve of every output with its rows.
    """
    n = quotients.table.n_rows
    if axis is None:
        return np.zeros((n, n_outputs)), []
    along = axis.axis
    sums = np.zeros((along.n_bins, n_outputs))
    mass = np.zeros(along.n_bins)
    changes = []
    for number, side in enumerate(along.sides):
        lower, upper = axis.versions[number : number + 2]
        change, _ = quotients.between(position, lower, upper)
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
    change, at = (
        np.stack(changes, axis=1),
        arrays.interpolation(along.n_edges, axis.place, axis.fraction),
    )
    curves = [
        arrays.Curve(along, axis.place, change[..., number], steps[:, number], mass, at)
        for number in range(n_outputs)
    ]
    return _centred(kernel.at_values(curve, axis.place, axis.fraction), w), curves


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


def _gaps(
    table: models.Table,
    positions: list[int],
    missing: str,
    kind: str,
    order: Order,
    present: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """Rows to leave out for want of a value; refused where that was not said."""
    gaps = np.zeros(table.n_rows, dtype=bool)
    some = table.take(present)
    for position in positions:
        name = table.names[position]
        if table.is_numeric(position):
            kept = "raise" if missing == "raise" else "drop"
            without = np.isnan(models.check_column(some, position, missing=kept))
        else:
            without = some.series(position).isna().to_numpy()
        if without.any() and missing == "raise":
            raise ValueError(
                f"X of feature {name!r} must have a level in every row; got {int(without.sum())} "
                f"missing in {some.n_rows} rows (first rows: {first_rows(without)}). Drop or "
                f"impute these rows, or leave them out: missing='drop'."
            )
        numeric = kind == "ale" and order_of(order, table, position) is None
        if without.any() and missing == "bin" and numeric:
            raise ValueError(
                f"missing must not be 'bin' for numeric features with kind='ale': a missing value "
                f"has no place along {name!r}, which has {int(without.sum())} in {some.n_rows} "
                f"rows. Use missing='drop', or kind='pdp'."
            )
        if missing == "drop":
            gaps[present] |= without
    return gaps


def _fingerprint(table: models.Table, positions: list[int]) -> str:
    """What tells tables apart, in whatever order features are named.

    `compare` pairs the rows of one table only.
    """
    digest = hashlib.blake2b(digest_size=16)
    for position in sorted(positions, key=lambda position: table.names[position]):
        column = (
            pd.Series(table.column(position))
            if table.is_numeric(position)
            else table.series(position).astype(str)
        )
        digest.update(pd.util.hash_pandas_object(column, index=False).to_numpy().tobytes())
    return digest.hexdigest()


def _rows_used(
    n_rows: int | str | None,
    kind: str,
    present: IntArray,
    rng: np.random.Generator | int | None,
) -> tuple[IntArray, int]:
    """All rows there are, or a sample of them, and the seed that it was drawn with (or -1)."""
    if isinstance(n_rows, str):
        check_choice("n_rows", n_rows, ("auto",))
        n_rows = PDP_ROWS if kind == "pdp" else None
    if n_rows is not None:
        check_count("n_rows", n_rows, 2)
    used = len(present) if n_rows is None else min(n_rows, len(present))
    if kind == "pdp" and used > MOST_PDP_ROWS:
        raise ValueError(
            f"n_rows must leave at most {MOST_PDP_ROWS} rows with kind='pdp', which asks the model "
            f"for n² rows a pair and holds as many answers; got n_rows={n_rows} of {len(present)} "
            f"rows. Use n_rows={PDP_ROWS}, or kind='ale'."
        )
    if n_rows is None:
        return present, -1
    if n_rows >= len(present):
        return present, -1
    seed = number_of(rng)
    drawn = np.random.default_rng(seed).choice(len(present), n_rows, replace=False)
    return present[np.sort(drawn)], seed
