"""Outcomes along every feature, and which effects of an explanation are in the data."""

from __future__ import annotations

from itertools import combinations
from textwrap import shorten
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy import special

from rhale_stats.answers.sentences import NO, NOT_EXAMINED, NOT_SHOWN, YES
from rhale_stats.arrays import intervals
from rhale_stats.arrays.binning import bin_index, quantile_edges
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.effects.intervals import confint
from rhale_stats.explanation.described import described
from rhale_stats.explanation.request import PERMUTED, Budget, ExplainRequest
from rhale_stats.generics.hypotheses import wald_test
from rhale_stats.generics.uncertainty import confband
from rhale_stats.inference.adjustment import adjusted
from rhale_stats.models.differences import DifferenceQuotients
from rhale_stats.models.sample import levels_of
from rhale_stats.outcome.cross_fitting import (
    CrossFits,
    NotRefittable,
    TooLong,
    class_of,
    cross_fit,
    outcome_numbers,
)
from rhale_stats.outcome.debiasing import basis
from rhale_stats.outcome.outcome_effects import effects_of
from rhale_stats.schema.feature_result import FeatureResult, one_feature
from rhale_stats.schema.padding import padded
from rhale_stats.schema.variables import dataset_of

# Places along a feature, and groups of rows by their prediction, of at least so many rows; rows
# whose columns are permuted.
N_PLACES, N_TENTHS, PLACE_ROWS, PERMUTED_ROWS = 20, 10, 30, 5000
TINY = 1e-12
SQUARES = "(output units)^2"


def outcome_of(
    request: ExplainRequest, level: float, budget: Budget, rng: np.random.Generator
) -> xr.Dataset:
    """Observed and predicted by place; facts of the fit as attributes."""
    observed, kind = observed_of(request)
    facts = _fit(request, observed, kind)
    places = [_places(request, name) for name in request.features]
    along = [_along(request, observed, place, level) for place in places]
    every = {name: padded([summary[name] for summary in along]) for name in along[0]}
    pvalue = every.pop("pvalue")
    every["residual_pvalue_adjusted"] = adjusted(pvalue.ravel(), "holm").reshape(pvalue.shape)
    dims = ("feature", "place")
    variables: dict[str, tuple[tuple[str, ...], NDArray[Any]]] = {
        name: ((*dims, "ci_bound")[: values.ndim], values) for name, values in every.items()
    }
    importance, ends = _permuted(request, observed, kind, level, budget, rng)
    variables["permutation_importance"] = (("feature",), importance)
    variables["permutation_importance_ci"] = (("feature", "ci_bound"), ends)
    variables |= _calibration(request, observed, level)
    levels = padded([place.text for place in places], missing="", dtype=object)
    coords = {
        "feature": ("feature", request.features),
        "ci_bound": ("ci_bound", ["lower", "upper"]),
        "place_left": (dims, padded([place.left for place in places])),
        "place_right": (dims, padded([place.right for place in places])),
        "place_level": (dims, levels.astype(str)),
    }
    loss = SQUARES if kind == "numbers" else "1"
    return described(dataset_of(variables, coords, facts), permutation_importance=loss)


def observed_of(request: ExplainRequest) -> tuple[FloatArray, str]:
    """Outcomes as numbers, and whether they are "numbers" or a "class" whose probability is asked.

    Without names of classes, outcomes of 0 and 1 with predictions between them are a class.
    """
    y, scale = np.asarray(request.y), request.options.scale
    if scale != "response":
        raise ValueError(
            f"y must be None with scale={scale!r}; got {len(y)} outcomes, which have no values on "
            f"this scale. Leave y out, or take scale='response'."
        )
    return outcome_numbers(y, class_of(request.model, request.output_label), request.predicted)


def row_losses(observed: FloatArray, predicted: FloatArray, kind: str) -> FloatArray:
    """Loss of each row: squared error, or the logarithm of the probability."""
    if kind == "class":
        p = np.clip(predicted, TINY, 1 - TINY)
        return np.asarray(-(observed * np.log(p) + (1 - observed) * np.log1p(-p)))
    return np.asarray((observed - predicted) ** 2)


def _fit(request: ExplainRequest, observed: FloatArray, kind: str) -> dict[str, float | str]:
    """How the predictions agree with the outcomes."""
    share, predicted = request.share, request.predicted
    error = observed - predicted
    facts: dict[str, float | str] = {
        "loss": "log loss" if kind == "class" else "squared error",
        "loss_value": float(share @ row_losses(observed, predicted, kind)),
        "bias": float(-(share @ error)),
    }
    # What rounding leaves of a model without bias.
    if abs(float(facts["bias"])) <= 1e-12 * float(share @ np.abs(observed)):
        facts["bias"] = 0.0
    mean_square = float(share @ error**2)
    if kind == "class":
        auc, _ = _auc(observed, predicted, np.zeros(len(observed), np.int64), share)
        return facts | {"log_loss": facts["loss_value"], "brier": mean_square, "auc": auc}
    variance = float(share @ (observed - share @ observed) ** 2)
    return facts | {
        "r2": 1 - mean_square / variance if variance > 0 else np.nan,
        "mae": float(share @ np.abs(error)),
        "n_below": int((predicted < observed.min()).sum()),
        "n_above": int((predicted > observed.max()).sum()),
        "y_min": float(observed.min()),
        "y_max": float(observed.max()),
    }


def _calibration(
    request: ExplainRequest, observed: FloatArray, level: float
) -> dict[str, tuple[tuple[str, ...], NDArray[Any]]]:
    """Observed and predicted by tenths of the predictions."""
    tenths = _of_axis(request.predicted, N_TENTHS, request.counts)
    by_tenth = _along(request, observed, tenths, level)
    by_tenth |= {"left": tenths.left, "right": tenths.right}
    return {
        f"tenth_{name}": (("tenth", "ci_bound")[: values.ndim], values)
        for name, values in by_tenth.items()
        if name != "pvalue"
    }


class _Places(NamedTuple):
    number: IntArray
    left: FloatArray
    right: FloatArray
    text: list[str]


def _places(request: ExplainRequest, name: str) -> _Places:
    """Where rows are along a feature: its levels, or places of about equal numbers of rows."""
    position = request.table.names.index(name)
    if name in request.levels:
        levels = levels_of(request, position)
        positions = np.arange(float(len(levels.texts)))
        return _Places(levels.code.astype(np.int64), positions, positions, list(levels.texts))
    return _of_axis(request.table.column(position), N_PLACES, request.counts)


def _of_axis(x: FloatArray, most: int, counts: FloatArray | None) -> _Places:
    """Places of about equal numbers of rows, at most so many; rows without a value are in none."""
    present = ~np.isnan(x)
    counts = None if counts is None else counts[present]
    n_rows = present.sum() if counts is None else counts.sum()
    edges = quantile_edges(x[present], int(np.clip(n_rows // PLACE_ROWS, 1, most)), counts)
    if len(edges) == 1:  # a constant model
        edges = np.repeat(edges, 2)
    number = np.full(len(x), -1, dtype=np.int64)
    number[present] = bin_index(edges, x[present])
    return _Places(number, edges[:-1], edges[1:], [""] * (len(edges) - 1))


def _along(
    request: ExplainRequest, observed: FloatArray, places: _Places, level: float
) -> dict[str, FloatArray]:
    """Weighted means by place, with intervals of the residual, by groups where there are some.

    Where outcomes are 0 or 1, and rows are independent and count equally, the interval is Clopper
    and Pearson's of the observed share, less the mean prediction as given. Else it is Student's t,
    of the spread of the residuals. It would not hold the spread of outcomes that are all 0 or all 1
    in a place: there it is Clopper and Pearson's in any case, of as many rows as there are groups,
    or (sum of weights)² / sum of their squares.
    """
    n = len(places.left)
    inside = places.number >= 0
    number, share = places.number[inside], request.share[inside]
    counts = np.ones(len(number)) if request.counts is None else request.counts[inside]
    total = np.bincount(number, share, n)
    safe = np.where(total > 0, total, 1.0)

    def mean(values: FloatArray) -> FloatArray:
        means: FloatArray = np.bincount(number, share * values[inside], n) / safe
        return np.where(total > 0, means, np.nan)

    residual = observed - request.predicted
    average = mean(residual)
    influence = share * (residual[inside] - average[number]) / safe[number]
    if request.groups is None:
        square = np.bincount(number, _of_units(influence, None, counts)[0] ** 2, n)
        units = np.bincount(number, counts, n)
    else:
        key = number * (request.groups.max() + 1) + request.groups[inside]
        pairs, code = np.unique(key, return_inverse=True)
        place = pairs // (request.groups.max() + 1)
        square = np.bincount(place, np.bincount(code, influence) ** 2, n)
        units = np.bincount(place, minlength=n)
    with np.errstate(invalid="ignore", divide="ignore"):
        se = np.sqrt(square * units / (units - 1))
        se[units < 2] = np.nan
        half = intervals.student(level, np.maximum(units - 1, 1)) * se
        pvalue = 2 * special.stdtr(np.maximum(units - 1, 1), -(np.abs(average) / se))
    ends = intervals.around(average, half)
    predicted, n_obs = mean(request.predicted), np.bincount(number, counts, n)
    if np.isin(observed, (0, 1)).all():
        # Rounding leaves a share of all rows beside 1.
        event_share = np.round(mean(observed), 12)
        exact, n_rows = np.isin(event_share, (0, 1)), units.astype(float)
        if request.groups is None:
            squares = np.bincount(number, _of_units(share, None, counts)[0] ** 2, n)
            n_rows = total**2 / np.where(total > 0, squares, np.nan)
            exact |= np.isclose(n_rows, n_obs)
        shifted = intervals.of_share(event_share, n_rows, level) - predicted[:, None]
        ends = np.where(exact[:, None], shifted, ends)
        of_share = intervals.share_pvalue(event_share, n_rows, predicted)
        pvalue = np.where(exact, of_share, pvalue)
    return {
        "n_obs": n_obs,
        "observed": mean(observed),
        "predicted": predicted,
        "residual": average,
        "residual_ci": ends,
        "pvalue": np.asarray(pvalue),
    }


def _of_units(
    influence: FloatArray, groups: IntArray | None, counts: FloatArray | None
) -> tuple[FloatArray, float]:
    """Influences of units, whose squares sum to a variance, and the number of units.

    Units are groups or rows; one that counts n times is n rows.
    """
    if groups is not None:
        return np.asarray(np.bincount(groups, influence), float), float(groups.max() + 1)
    if counts is not None:
        return influence / np.sqrt(np.where(counts > 0, counts, 1)), float(counts.sum())
    return influence, float(len(influence))


def _permuted(
    request: ExplainRequest,
    observed: FloatArray,
    kind: str,
    level: float,
    budget: Budget,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Increase of the mean loss as each column is permuted, with intervals [110]."""
    n = request.table.n_rows
    rows = np.arange(n) if n <= PERMUTED_ROWS else np.sort(rng.choice(n, PERMUTED_ROWS, False))
    model = request.quotients(request.model, probe=False).take(rows)
    share = request.share[rows] / request.share[rows].sum()
    before = row_losses(observed[rows], request.predicted[rows], kind)
    groups, counts = request.groups, request.counts
    if groups is not None:
        groups = np.unique(groups[rows], return_inverse=True)[1]
    counts = None if counts is None else counts[rows]
    n_features = len(request.features)
    increases, ends = np.full(n_features, np.nan), np.full((n_features, 2), np.nan)
    for number, name in enumerate(request.features):
        if budget.left == 0 and number:
            budget.cut.append(f"{', '.join(request.features[number:])} were not permuted")
            break
        position = request.table.names.index(name)
        values = model.table.series(position).array
        columns = [values[rng.permutation(len(rows))] for _ in range(PERMUTED)]
        outputs, _ = model.evaluate(position, columns)
        predicted = np.stack([output[:, 0].astype(np.float64) for output in outputs])
        losses = row_losses(observed[rows], predicted, kind)
        increase = losses.mean(axis=0) - before
        mean = float(share @ increase)
        influence, units = _of_units(share * (increase - mean), groups, counts)
        # Rows, and the finite number of permutations.
        variance = units / max(units - 1, 1) * float(influence @ influence)
        variance += float((losses @ share).var(ddof=1)) / PERMUTED
        half = intervals.student(level, max(units - 1, 1)) * np.sqrt(variance)
        increases[number], ends[number] = mean, (mean - half, mean + half)
    return increases, ends


# --- effects in the data: on rows kept from refits of the model -----------------------------------


# Seconds that the fits may take where nobody asked for them.
MAX_SECONDS = 30.0
# Size of the tests of no effect; two tests of a feature have half of it each.
TEST_SIZE = 0.05
# Letters of the reason why a refit failed.
MAX_REASON = 200
# Effective rows, or groups, below which nothing is examined.
MIN_UNITS = 50


class Examination(NamedTuple):
    """Models without each fold, their skill as attributes, and the effects on the outcome.

    ``examined`` is "yes", or why effects were not estimated. Then there is no ``effect``, and the
    model without the first fold alone, if it was fitted.
    """

    examined: str
    fits: CrossFits | None = None
    skill: dict[str, float | str] | None = None
    effect: xr.Dataset | None = None


def examine(
    request: ExplainRequest, outcome: bool | str, level: float, rng: np.random.Generator
) -> Examination:
    """The effects on the outcome, or why they were not examined."""
    if outcome is False:
        return Examination("outcome=False")
    if request.y is None:
        return Examination("no outcomes were given; explain(model, X, y) takes them")
    n_units = request.n_effective if request.groups is None else float(request.groups.max() + 1)
    if outcome == "auto" and n_units < MIN_UNITS:
        return Examination(
            f"there are fewer than {MIN_UNITS} rows or groups; outcome=True asks for it"
        )
    seconds = MAX_SECONDS if outcome == "auto" else np.inf
    try:
        fits = cross_fit(
            request.model,
            request,
            request.y,
            groups=request.groups,
            rng=rng,
            progress=False,
            most_seconds=seconds,
        )
    except TooLong as error:
        skill = skill_of(error.first, request.groups, level)
        return Examination(f"{error}; outcome=True does them", error.first, skill)
    except NotRefittable:
        if outcome is True:
            raise
        return Examination(
            "the model cannot be fitted again; give the estimator, or a function of X and y to "
            "outcome_effects"
        )
    except Exception as error:
        if outcome is True:
            raise
        cause: BaseException = error
        # Libraries wrap what went wrong in advice of their own, which hides it.
        while cause.__cause__ is not None:
            cause = cause.__cause__
        message = shorten(str(cause), MAX_REASON, placeholder=" …")
        return Examination(f"a refit failed ({type(cause).__name__}: {message})")
    skill = skill_of(fits, request.groups, level)
    positions = {name: request.table.names.index(name) for name in request.features}
    usable = [name for name in request.features if _is_usable(request, name)]
    effect = effects_of(
        fits, [positions[name] for name in usable], [positions[name] for name in request.levels]
    )
    effect = confband(confint(effect, level=level), level=level, rng=rng)
    return Examination("yes", fits, skill, effect)


def _is_usable(request: ExplainRequest, name: str) -> bool:
    """Whether a feature has few enough levels for its steps to be estimated."""
    series = request.table.series(request.table.names.index(name))
    n_values = series.nunique()
    return n_values > 1 and (name not in request.levels or n_values <= len(series) / 20)


def facts_in_data(
    examined: Examination, rows_differ: list[str], request: ExplainRequest, delta: float
) -> list[dict[str, Any]]:
    """The facts of every feature: in the data or not, by how much, and whether rows differ."""
    words = {"in_data": NOT_EXAMINED, "differs_in_data": NOT_EXAMINED}
    (_, fits, skill, effect), features = examined, request.features
    if effect is None or fits is None or skill is None:
        return [words for _ in features]
    numbers = {"in_data_change": np.nan, "in_data_ci": [np.nan, np.nan], "in_data_p": np.nan}
    tests = wald_test(effect)["p_value"].values
    change = effect["usual_difference"].values
    ends = effect["usual_difference_ci"].transpose("feature", "ci_bound").values
    of_change = effect["usual_difference_pvalue"].values
    # Of any shape or of the usual change: half of the size for each.
    pvalue = np.where(np.isfinite(of_change), np.minimum(2 * np.fmin(tests, of_change), 1.0), tests)
    # Where the model predicts nothing, only what stands against all features together is shown.
    judged = pvalue if skill["predicts"] == "yes" else adjusted(pvalue, "holm")
    out: dict[str, dict[str, Any]] = {name: {**words, **numbers} for name in features}
    for position, name in enumerate(map(str, effect["feature"].values)):
        word = NOT_SHOWN
        if judged[position] <= TEST_SIZE:
            word = YES
        elif _largest_importance(one_feature(effect, position)) < delta:
            word = NO
        out[name] |= {
            "in_data": word,
            "in_data_change": change[position],
            "in_data_ci": ends[position],
            "in_data_p": pvalue[position],
        }
    differ = [name for name, verdict in zip(features, rows_differ, strict=True) if verdict == YES]
    if differ and len(features) > 1:
        for name, value in zip(differ, confirmed(fits, request, differ), strict=True):
            out[name]["differs_in_data"] = YES if value <= SIZE else NOT_SHOWN
    return [out[name] for name in features]


def _largest_importance(row: FeatureResult) -> float:
    """The largest standard deviation over the rows of a curve within the band; NaN is unknown."""
    band = np.abs(row["curve_band"].values).max(axis=1)
    if row.is_categorical:
        share, mean_square = row["level_share"].values, band**2
    else:
        share = np.nan_to_num(row.weight_share)
        mean_square = (band[:-1] ** 2 + band[:-1] * band[1:] + band[1:] ** 2) / 3
    occupied = share > 0
    return float(np.sqrt(np.sum(share[occupied] * mean_square[occupied])))


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
    for fold, models in zip(fits.folds, fits.models_at_rows, strict=True):
        for number, (rows_of_model, model) in enumerate(models):
            held_out = fold[rows_of_model] == number
            rows, at_rows = rows_of_model[held_out], model.take(held_out)
            weight = request.share[rows] / request.share[rows].sum()
            inside = {name: x[rows] for name, x in columns.items()}
            bases = {name: (_basis(x, HATS), _basis(x, COARSE)) for name, x in inside.items()}
            for line, name in zip(score, names, strict=True):
                if name not in columns:
                    continue
                fitted, average = _predictions(at_rows, rows, request, name, columns[name])
                parts = [_basis(inside[name], FINE), average[:, None], _basis(average, OF_AVERAGE)]
                parts += _of_others(bases, name, len(rows))
                h = _unexplained(fitted - average, parts, weight)
                size = np.sqrt(weight @ h**2)
                if size > 0:
                    line[rows] += h * (fits.observed[rows] - fitted + h) / size
    score *= request.share
    of_units = [_of_units(line, request.groups, request.counts) for line in score]
    spread, n_units = np.sqrt([each @ each for each, _ in of_units]), of_units[0][1]
    ratio = np.divide(score.sum(axis=1), spread, out=np.zeros(len(names)), where=spread > 0)
    return np.asarray(special.stdtr(max(n_units - 1, 1), -ratio))


def _basis(x: FloatArray, n_hats: int) -> FloatArray:
    """Hats, or indicators where there are no more values than hats."""
    return basis(x, n_hats, max(min(n_hats, MAX_INDICATORS), 2))


def _predictions(
    model: DifferenceQuotients, rows: IntArray, request: ExplainRequest, name: str, x: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """What the model says of rows, and its mean over usual values of the feature."""
    position = request.table.names.index(name)
    values = request.table.series(position).array
    finite_rows = np.flatnonzero(np.isfinite(x))
    ranked = finite_rows[np.argsort(x[finite_rows], kind="stable")]
    usual = ranked[((np.arange(N_VALUES) + 0.5) / N_VALUES * len(ranked)).astype(int)]
    versions = [values.take(np.full(len(rows), row)) for row in usual]
    outputs = model.evaluate(position, [*versions, values.take(rows)])[0]
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


def skill_of(fits: CrossFits, groups: IntArray | None, level: float) -> dict[str, float | str]:
    """R² or AUC of predictions by models without the row's fold.

    With its interval and a mean loss, as attributes of an explanation; the model ``predicts`` if
    the interval is above no skill.

    The variance is that of the influences of rows, or of groups, times 1 + K / (K − 1) for K folds:
    models of two folds have most of their rows in common (Nadeau and Bengio 2003). Rows without a
    prediction, where there is one fold, are those of its fit: then it is 1 + tested / fitted.
    """
    observed, held_out, fold, share = fits.observed, fits.held_out, fits.folds, fits.sample.share
    seen = np.isfinite(held_out[0])
    if fits.kind == "class":
        skill, loss = _auc, row_losses(observed, held_out, fits.kind)
        name, no_skill, loss_name = "AUC", 0.5, "log loss"
    else:
        skill, loss = _r_squared, np.abs(observed - held_out)
        name, no_skill, loss_name = "R²", 0.0, "mean absolute error"
    repeats = zip(held_out, fold, strict=True)
    values, influences = zip(*[skill(observed, *each, share) for each in repeats], strict=True)
    value, influence = float(np.mean(values)), np.mean(influences, axis=0)
    counts = fits.sample.weight if fits.sample.frequency else None
    influence, n_units = _of_units(influence, groups, counts)
    n_folds = int(fold.max()) + 1
    more = n_folds / (n_folds - 1) if seen.all() else seen.mean() / (1 - seen.mean())
    variance = float(influence @ influence) * (1 + more)
    half = float(intervals.student(level, max(n_units - 1, 1))) * np.sqrt(variance)
    return {
        "skill_name": name,
        "skill": value,
        "skill_low": value - half,
        "skill_high": min(value + half, 1.0),
        "skill_loss": loss_name,
        "skill_loss_value": float((loss[:, seen] @ share[seen]).mean() / share[seen].sum()),
        "predicts": "yes" if value - half > no_skill else "no",
    }


def _r_squared(
    observed: FloatArray, predicted: FloatArray, fold: IntArray, share: FloatArray
) -> tuple[float, FloatArray]:
    """R² against the mean of the other folds, and each row's part of its error."""
    weight = np.bincount(fold, share)
    total = np.bincount(fold, share * observed)
    baseline = (total.sum() - total) / (weight.sum() - weight)
    share = np.where(np.isnan(predicted), 0.0, share)
    error, base = np.nan_to_num(observed - predicted) ** 2, (observed - baseline[fold]) ** 2
    scale = float(share @ base)
    if not scale > 0:
        return float("nan"), np.full(len(observed), np.nan)
    ratio = float(share @ error) / scale
    return 1 - ratio, -share * (error - ratio * base) / scale


def _auc(
    observed: FloatArray, predicted: FloatArray, fold: IntArray, share: FloatArray
) -> tuple[float, FloatArray]:
    """Mean of the folds' AUC, and each row's part of its error (DeLong et al. 1988)."""
    value, influence, total = 0.0, np.zeros(len(observed)), 0.0
    for number in range(int(fold.max()) + 1):
        rows = np.flatnonzero(fold == number)
        positive = observed[rows] == 1
        if positive.all() or not positive.any() or np.isnan(predicted[rows]).any():
            continue
        weight = share[rows]
        positive_weight, other = weight * positive, weight * ~positive
        # Share of the other class below, ties as half.
        placed = np.where(
            positive,
            _below(predicted[rows], other) / other.sum(),
            1 - _below(predicted[rows], positive_weight) / positive_weight.sum(),
        )
        class_share = weight / np.where(positive, positive_weight.sum(), other.sum())
        auc, part = float(class_share[positive] @ placed[positive]), float(weight.sum())
        value, total = value + part * auc, total + part
        influence[rows] = part * class_share * (placed - auc)
    if not total:
        return float("nan"), np.full(len(observed), np.nan)
    return value / total, influence / total


def _below(values: FloatArray, weight: FloatArray) -> FloatArray:
    """Weight of the rows with a smaller value, equal ones as half."""
    _, code = np.unique(values, return_inverse=True)
    value_weight = np.bincount(code, weight)
    return np.asarray((np.cumsum(value_weight) - value_weight / 2)[code])
