"""How well a learner predicts rows that it did not see, with an interval (math [116])."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats

from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.explanation.outcome import row_losses


class Skill(NamedTuple):
    """R² or AUC on rows kept from the fit, with its interval, and a mean loss.

    ``none`` is the value of a model without skill.
    """

    name: str
    value: float
    low: float
    high: float
    none: float
    loss_name: str
    loss: float

    @property
    def attributes(self) -> dict[str, float | str]:
        """As attributes of an explanation; the model predicts if the interval is above no skill."""
        return {
            "skill_name": self.name,
            "skill": self.value,
            "skill_low": self.low,
            "skill_high": self.high,
            "skill_loss": self.loss_name,
            "skill_loss_value": self.loss,
            "predicts": "yes" if self.low > self.none else "no",
        }


def skill_of(
    observed: FloatArray,
    held_out: FloatArray,
    fold: IntArray,
    kind: str,
    share: FloatArray,
    groups: IntArray | None,
    level: float,
) -> Skill:
    """Skill of predictions (repeat, row) by models without the row's fold (repeat, row).

    The variance is that of the influences of rows, or of groups, times 1 + K / (K − 1) for K folds:
    models of two folds have most of their rows in common (Nadeau and Bengio 2003). Rows without a
    prediction, where there is one fold, are those of its fit: then it is 1 + tested / fitted.
    """
    seen = np.isfinite(held_out[0])
    repeats = list(zip(held_out, fold, strict=True))
    if kind == "class":
        parts = [_auc(observed, *repeat, share) for repeat in repeats]
        loss = row_losses(observed, held_out, kind)
        name, none, loss_name = "AUC", 0.5, "log loss"
    else:
        parts = [_r_squared(observed, *repeat, share) for repeat in repeats]
        loss = np.abs(observed - held_out)
        name, none, loss_name = "R²", 0.0, "mean absolute error"
    value = float(np.mean([part[0] for part in parts]))
    influence = np.mean([part[1] for part in parts], axis=0)
    if groups is not None:
        influence = np.bincount(groups, influence)
    n_folds, n_units = int(fold.max()) + 1, len(influence)
    more = n_folds / (n_folds - 1) if seen.all() else seen.mean() / (1 - seen.mean())
    variance = float(influence @ influence) * (1 + more)
    half = float(stats.t.ppf((1 + level) / 2, max(n_units - 1, 1))) * np.sqrt(variance)
    mean_loss = float((loss[:, seen] @ share[seen]).mean() / share[seen].sum())
    return Skill(name, value, value - half, min(value + half, 1.0), none, loss_name, mean_loss)


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
        class_share = np.where(
            positive, positive_weight / positive_weight.sum(), other / other.sum()
        )
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
