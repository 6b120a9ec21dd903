"""Observed and predicted outcomes along every feature, and how much the model needs each."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy import stats

from rhale_stats.arrays.binning import bin_index, quantile_edges
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.explanation.budget import Budget
from rhale_stats.explanation.described import described
from rhale_stats.explanation.request import PERMUTED, Request
from rhale_stats.inference.adjustment import adjusted
from rhale_stats.models.levels import levels_of
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


def outcome_of(asked: Request, level: float, budget: Budget, rng: np.random.Generator) -> Outcome:
    """Of the outcomes that were given."""
    observed, kind = observed_of(asked)
    facts = _fit(asked, observed, kind)
    places = [_places(asked, name) for name in asked.features]
    width = max(len(one.left) for one in places)
    along = [_along(asked, observed, one, level) for one in places]

    def padded(values: list[Any], fill: Any) -> NDArray[Any]:
        out = np.full((len(values), width, *np.shape(values[0])[1:]), fill)
        for at, one in enumerate(values):
            out[at, : len(one)] = one
        return out

    pvalue = adjusted(padded([one["pvalue"] for one in along], np.nan).ravel(), "holm")
    dims = ("feature", "place")
    found: dict[str, tuple[tuple[str, ...], NDArray[Any]]] = {
        name: (dims, padded([one[name] for one in along], np.nan))
        for name in ("n_obs", "observed", "predicted", "residual")
    }
    found["residual_ci"] = (
        (*dims, "ci_bound"),
        padded([one["residual_ci"] for one in along], np.nan),
    )
    found["residual_pvalue_adjusted"] = (dims, pvalue.reshape(len(along), width))
    importance, ends = _permuted(asked, observed, kind, level, budget, rng)
    found["permutation_importance"] = (("feature",), importance)
    found["permutation_importance_ci"] = (("feature", "ci_bound"), ends)
    found |= _calibration(asked, observed, level)
    longest = max((len(text) for one in places for text in one.text), default=0)
    coords = {
        "feature": asked.features,
        "ci_bound": ["lower", "upper"],
        "place_left": (dims, padded([one.left for one in places], np.nan)),
        "place_right": (dims, padded([one.right for one in places], np.nan)),
        "place_level": (
            dims,
            _texts(places, width, longest),
        ),
    }
    loss = SQUARES if kind == "numbers" else "1"
    dataset = described(xr.Dataset(found, coords), permutation_importance=loss)
    return Outcome(dataset.assign_attrs(facts), facts)


def _texts(places: list[_Places], width: int, longest: int) -> NDArray[np.str_]:
    """Levels as text; empty for places on an axis and beyond the last."""
    out = np.full((len(places), width), "", dtype=f"<U{max(longest, 1)}")
    for at, one in enumerate(places):
        out[at, : len(one.text)] = one.text
    return out


def observed_of(asked: Request) -> tuple[FloatArray, str]:
    """Outcomes as numbers, and whether they are "numbers" or a "class" whose probability is asked.

    Without names of classes, outcomes of 0 and 1 with predictions between them are a class.
    """
    y, scale = np.asarray(asked.y), asked.options.scale
    if scale != "response":
        raise ValueError(
            f"y must be None with scale={scale!r}; got {len(y)} outcomes, which have no values on "
            f"this scale. Leave y out, or take scale='response'."
        )
    return outcome_numbers(y, class_of(asked.model, asked.output_label), asked.predicted)


def row_losses(observed: FloatArray, predicted: FloatArray, kind: str) -> FloatArray:
    """Loss of each row: squared error, or the logarithm of the probability."""
    if kind == "class":
        p = np.clip(predicted, TINY, 1 - TINY)
        return np.asarray(-(observed * np.log(p) + (1 - observed) * np.log1p(-p)))
    return np.asarray((observed - predicted) ** 2)


def _fit(asked: Request, observed: FloatArray, kind: str) -> dict[str, float | str]:
    """How the predictions agree with the outcomes."""
    share, predicted = asked.share, asked.predicted
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
    asked: Request, observed: FloatArray, level: float
) -> dict[str, tuple[tuple[str, ...], NDArray[Any]]]:
    """Observed and predicted by tenths of the predictions."""
    predicted = asked.predicted
    n_groups = int(np.clip(len(predicted) // PLACE_ROWS, 1, N_TENTHS))
    edges = quantile_edges(predicted, n_groups, None)
    if len(edges) == 1:  # a constant model
        edges = np.repeat(edges, 2)
    number = bin_index(edges, predicted)
    own = _along(asked, observed, _Places(number, edges[:-1], edges[1:], []), level)
    names = ("n_obs", "observed", "predicted", "residual")
    found: dict[str, tuple[tuple[str, ...], NDArray[Any]]] = {
        f"tenth_{name}": (("tenth",), own[name]) for name in names
    }
    found["tenth_residual_ci"] = (("tenth", "ci_bound"), own["residual_ci"])
    found["tenth_left"] = (("tenth",), edges[:-1])
    found["tenth_right"] = (("tenth",), edges[1:])
    return found


class _Places(NamedTuple):
    number: IntArray
    left: FloatArray
    right: FloatArray
    text: list[str]


def _places(asked: Request, name: str) -> _Places:
    """Where rows are along a feature: its levels, or places of about equal numbers of rows."""
    position = asked.table.names.index(name)
    if name in asked.levels:
        levels = levels_of(asked.sample, position)
        at = np.arange(float(len(levels.texts)))
        return _Places(levels.code.astype(np.int64), at, at, list(levels.texts))
    x = asked.table.column(position)
    there = ~np.isnan(x)
    n_places = int(np.clip(there.sum() // PLACE_ROWS, 1, N_PLACES))
    edges = quantile_edges(x[there], n_places, None)
    number = np.full(len(x), -1, dtype=np.int64)
    number[there] = bin_index(edges, x[there])
    return _Places(number, edges[:-1], edges[1:], [""] * (len(edges) - 1))


def _along(
    asked: Request, observed: FloatArray, places: _Places, level: float
) -> dict[str, FloatArray]:
    """Weighted means by place, with errors of the residual, by groups where there are some."""
    n = len(places.left)
    there = places.number >= 0
    number, share = places.number[there], asked.share[there]
    total = np.bincount(number, share, n)
    safe = np.where(total > 0, total, 1.0)

    def mean(values: FloatArray) -> FloatArray:
        means: FloatArray = np.bincount(number, share * values[there], n) / safe
        return np.where(total > 0, means, np.nan)

    residual = observed - asked.predicted
    average = mean(residual)
    influence = share * (residual[there] - average[number]) / safe[number]
    if asked.groups is None:
        square, units = np.bincount(number, influence**2, n), np.bincount(number, minlength=n)
    else:
        key = number * (asked.groups.max() + 1) + asked.groups[there]
        pairs, code = np.unique(key, return_inverse=True)
        place = pairs // (asked.groups.max() + 1)
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
        "predicted": mean(asked.predicted),
        "residual": average,
        "residual_ci": np.stack([average - half, average + half], axis=-1),
        "pvalue": np.asarray(pvalue),
    }


def _permuted(
    asked: Request,
    observed: FloatArray,
    kind: str,
    level: float,
    budget: Budget,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Increase of the mean loss as each column is permuted, with intervals [110]."""
    n = asked.table.n_rows
    rows = np.arange(n) if n <= PERMUTED_ROWS else np.sort(rng.choice(n, PERMUTED_ROWS, False))
    model = asked.sample.asked(asked.model, probe=False).at(rows)
    share = asked.share[rows] / asked.share[rows].sum()
    before = row_losses(observed[rows], asked.predicted[rows], kind)
    groups = None if asked.groups is None else np.unique(asked.groups[rows], return_inverse=True)[1]
    found, ends = [], []
    for at, name in enumerate(asked.features):
        if budget.left == 0 and at:
            budget.cut.append(f"{', '.join(asked.features[at:])} were not permuted")
            break
        position = asked.table.names.index(name)
        values = model.table.series(position).array
        columns = [values[rng.permutation(len(rows))] for _ in range(PERMUTED)]
        outputs, _ = model.evaluate(position, columns)
        losses = np.stack(
            [row_losses(observed[rows], one[:, 0].astype(np.float64), kind) for one in outputs]
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
        found.append(mean)
        ends.append([mean - half, mean + half])
    missing = len(asked.features) - len(found)
    return (
        np.array(found + [np.nan] * missing),
        np.array(ends + [[np.nan, np.nan]] * missing),
    )
