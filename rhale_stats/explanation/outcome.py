"""Observed and predicted outcomes along every feature, and how much the model needs each."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy import stats

from rhale_stats.arrays.binning import bin_index, quantile_edges
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.explanation.described import described
from rhale_stats.explanation.request import PERMUTED, ExplainRequest
from rhale_stats.explanation.settings import Budget
from rhale_stats.inference.adjustment import adjusted
from rhale_stats.models.sample import levels_of
from rhale_stats.outcome.cross_fitting import class_of, outcome_numbers

# Places along a feature, and groups of rows by their prediction, of at least so many rows; rows
# whose columns are permuted.
N_PLACES, N_TENTHS, PLACE_ROWS, PERMUTED_ROWS = 20, 10, 30, 5000
TINY = 1e-12
SQUARES = "(output units)^2"


class Outcome(NamedTuple):
    """Observed and predicted by place, and facts of the fit as attributes."""

    dataset: xr.Dataset
    facts: dict[str, float | str]


def outcome_of(
    request: ExplainRequest, level: float, budget: Budget, rng: np.random.Generator
) -> Outcome:
    """Of the outcomes that were given."""
    observed, kind = observed_of(request)
    facts = _fit(request, observed, kind)
    places = [_places(request, name) for name in request.features]
    width = max(len(place.left) for place in places)
    along = [_along(request, observed, place, level) for place in places]

    def padded(values: list[Any], fill: Any) -> NDArray[Any]:
        out = np.full((len(values), width, *np.shape(values[0])[1:]), fill)
        for position, row in enumerate(values):
            out[position, : len(row)] = row
        return out

    pvalue = adjusted(padded([summary["pvalue"] for summary in along], np.nan).ravel(), "holm")
    dims = ("feature", "place")
    variables: dict[str, tuple[tuple[str, ...], NDArray[Any]]] = {
        name: (dims, padded([summary[name] for summary in along], np.nan))
        for name in ("n_obs", "observed", "predicted", "residual")
    }
    variables["residual_ci"] = (
        (*dims, "ci_bound"),
        padded([summary["residual_ci"] for summary in along], np.nan),
    )
    variables["residual_pvalue_adjusted"] = (dims, pvalue.reshape(len(along), width))
    importance, ends = _permuted(request, observed, kind, level, budget, rng)
    variables["permutation_importance"] = (("feature",), importance)
    variables["permutation_importance_ci"] = (("feature", "ci_bound"), ends)
    variables |= _calibration(request, observed, level)
    longest = max((len(text) for place in places for text in place.text), default=0)
    coords = {
        "feature": request.features,
        "ci_bound": ["lower", "upper"],
        "place_left": (dims, padded([place.left for place in places], np.nan)),
        "place_right": (dims, padded([place.right for place in places], np.nan)),
        "place_level": (
            dims,
            _texts(places, width, longest),
        ),
    }
    loss = SQUARES if kind == "numbers" else "1"
    dataset = described(xr.Dataset(variables, coords), permutation_importance=loss)
    return Outcome(dataset.assign_attrs(facts), facts)


def _texts(places: list[_Places], width: int, longest: int) -> NDArray[np.str_]:
    """Levels as text; empty for places on an axis and beyond the last."""
    out = np.full((len(places), width), "", dtype=f"<U{max(longest, 1)}")
    for position, place in enumerate(places):
        out[position, : len(place.text)] = place.text
    return out


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
    if kind == "class":
        facts["log_loss"] = facts["loss_value"]
        facts["brier"] = float(share @ error**2)
        facts["auc"] = _auc(observed, predicted)
        return facts
    variance = float(share @ (observed - share @ observed) ** 2)
    facts["r2"] = 1 - float(share @ error**2) / variance if variance > 0 else np.nan
    facts["mae"] = float(share @ np.abs(error))
    facts["n_below"] = int((predicted < observed.min()).sum())
    facts["n_above"] = int((predicted > observed.max()).sum())
    facts["y_min"], facts["y_max"] = float(observed.min()), float(observed.max())
    return facts


def _auc(observed: FloatArray, predicted: FloatArray) -> float:
    """Share of pairs of rows of both classes in the right order, ties as half."""
    positive = observed == 1
    n, m = int(positive.sum()), int((~positive).sum())
    if not n or not m:
        return float("nan")
    rank = stats.rankdata(predicted)
    return float((rank[positive].sum() - n * (n + 1) / 2) / (n * m))


def _calibration(
    request: ExplainRequest, observed: FloatArray, level: float
) -> dict[str, tuple[tuple[str, ...], NDArray[Any]]]:
    """Observed and predicted by tenths of the predictions."""
    predicted = request.predicted
    n_groups = int(np.clip(len(predicted) // PLACE_ROWS, 1, N_TENTHS))
    edges = quantile_edges(predicted, n_groups, None)
    if len(edges) == 1:  # a constant model
        edges = np.repeat(edges, 2)
    number = bin_index(edges, predicted)
    summary = _along(request, observed, _Places(number, edges[:-1], edges[1:], []), level)
    names = ("n_obs", "observed", "predicted", "residual")
    variables: dict[str, tuple[tuple[str, ...], NDArray[Any]]] = {
        f"tenth_{name}": (("tenth",), summary[name]) for name in names
    }
    variables["tenth_residual_ci"] = (("tenth", "ci_bound"), summary["residual_ci"])
    variables["tenth_left"] = (("tenth",), edges[:-1])
    variables["tenth_right"] = (("tenth",), edges[1:])
    return variables


class _Places(NamedTuple):
    number: IntArray
    left: FloatArray
    right: FloatArray
    text: list[str]


def _places(request: ExplainRequest, name: str) -> _Places:
    """Where rows are along a feature: its levels, or places of about equal numbers of rows."""
    position = request.table.names.index(name)
    if name in request.levels:
        levels = levels_of(request.sample, position)
        positions = np.arange(float(len(levels.texts)))
        return _Places(levels.code.astype(np.int64), positions, positions, list(levels.texts))
    x = request.table.column(position)
    present = ~np.isnan(x)
    n_places = int(np.clip(present.sum() // PLACE_ROWS, 1, N_PLACES))
    edges = quantile_edges(x[present], n_places, None)
    number = np.full(len(x), -1, dtype=np.int64)
    number[present] = bin_index(edges, x[present])
    return _Places(number, edges[:-1], edges[1:], [""] * (len(edges) - 1))


def _along(
    request: ExplainRequest, observed: FloatArray, places: _Places, level: float
) -> dict[str, FloatArray]:
    """Weighted means by place, with errors of the residual, by groups where there are some."""
    n = len(places.left)
    inside = places.number >= 0
    number, share = places.number[inside], request.share[inside]
    total = np.bincount(number, share, n)
    safe = np.where(total > 0, total, 1.0)

    def mean(values: FloatArray) -> FloatArray:
        means: FloatArray = np.bincount(number, share * values[inside], n) / safe
        return np.where(total > 0, means, np.nan)

    residual = observed - request.predicted
    average = mean(residual)
    influence = share * (residual[inside] - average[number]) / safe[number]
    if request.groups is None:
        square, units = np.bincount(number, influence**2, n), np.bincount(number, minlength=n)
    else:
        key = number * (request.groups.max() + 1) + request.groups[inside]
        pairs, code = np.unique(key, return_inverse=True)
        place = pairs // (request.groups.max() + 1)
        square = np.bincount(place, np.bincount(code, influence) ** 2, n)
        units = np.bincount(place, minlength=n)
    with np.errstate(invalid="ignore", divide="ignore"):
        se = np.sqrt(square * units / (units - 1))
        se[units < 2] = np.nan
        half = stats.t.ppf((1 + level) / 2, np.maximum(units - 1, 1)) * se
        pvalue = 2 * stats.t.sf(np.abs(average) / se, np.maximum(units - 1, 1))
    return {
        "n_obs": np.bincount(number, minlength=n).astype(np.float64),
        "observed": mean(observed),
        "predicted": mean(request.predicted),
        "residual": average,
        "residual_ci": np.stack([average - half, average + half], axis=-1),
        "pvalue": np.asarray(pvalue),
    }


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
    model = request.sample.quotients(request.model, probe=False).take(rows)
    share = request.share[rows] / request.share[rows].sum()
    before = row_losses(observed[rows], request.predicted[rows], kind)
    groups = (
        None if request.groups is None else np.unique(request.groups[rows], return_inverse=True)[1]
    )
    increases, ends = [], []
    for number, name in enumerate(request.features):
        if budget.left == 0 and number:
            budget.cut.append(f"{', '.join(request.features[number:])} were not permuted")
            break
        position = request.table.names.index(name)
        values = model.table.series(position).array
        columns = [values[rng.permutation(len(rows))] for _ in range(PERMUTED)]
        outputs, _ = model.evaluate(position, columns)
        losses = np.stack(
            [
                row_losses(observed[rows], output[:, 0].astype(np.float64), kind)
                for output in outputs
            ]
        )
        increase = losses.mean(axis=0) - before
        mean = float(share @ increase)
        influence = share * (increase - mean)
        if groups is not None:
            influence = np.bincount(groups, influence)
        units = len(influence)
        # Rows, and the finite number of permutations.
        variance = units / max(units - 1, 1) * float(influence @ influence)
        variance += float((losses @ share).var(ddof=1)) / PERMUTED
        half = stats.t.ppf((1 + level) / 2, max(units - 1, 1)) * np.sqrt(variance)
        increases.append(mean)
        ends.append([mean - half, mean + half])
    missing = len(request.features) - len(increases)
    return (
        np.array(increases + [np.nan] * missing),
        np.array(ends + [[np.nan, np.nan]] * missing),
    )
