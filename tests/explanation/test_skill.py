"""Skill on new rows: equal to scikit-learn's scores, with intervals by influences."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import special, stats
from sklearn.metrics import r2_score, roc_auc_score

import rhale_stats as rs
from rhale_stats.explanation.outcome import skill_of

RNG = np.random.default_rng(0)
N = 400
SHARE = np.full(N, 1 / N)


def fits(y, predicted, fold, kind):
    """One repeat of predictions without the row's fold."""
    return SimpleNamespace(
        observed=y,
        held_out=predicted[None],
        folds=fold[None],
        kind=kind,
        sample=SimpleNamespace(share=SHARE, frequency=False),
    )


def test_r_squared_is_that_of_scikit_learn_with_one_mean():
    y = RNG.normal(size=N)
    predicted, fold = 0.8 * y + 0.3 * RNG.normal(size=N), np.arange(N) % 2
    # Both folds have the mean 0: the mean of the other fold is that of all.
    y[fold == 0] -= y[fold == 0].mean()
    y[fold == 1] -= y[fold == 1].mean()
    found = skill_of(fits(y, predicted, fold, "numbers"), None, 0.95)
    assert found["skill"] == pytest.approx(r2_score(y, predicted))
    assert found["skill_loss_value"] == pytest.approx(np.abs(y - predicted).mean())


def test_auc_is_that_of_scikit_learn_by_fold():
    y = RNG.integers(0, 2, N).astype(float)
    predicted = np.round(np.clip(0.3 * y + RNG.uniform(0, 0.7, N), 0, 1), 1)  # with ties
    fold = np.arange(N) % 4
    found = skill_of(fits(y, predicted, fold, "class"), None, 0.95)
    by_fold = [roc_auc_score(y[fold == k], predicted[fold == k]) for k in range(4)]
    assert found["skill"] == pytest.approx(np.mean(by_fold))
    assert found["predicts"] == ("yes" if found["skill_low"] > 0.5 else "no")


def test_auc_of_these_rows_is_by_their_weights():
    """It counted all rows alike, beside a log loss by weights."""
    rng = np.random.default_rng(1)
    X, weights = rng.normal(size=(200, 2)), rng.integers(1, 6, 200)
    y = (X[:, 0] + rng.normal(size=200) > 0).astype(float)

    def model(X):
        return special.expit(X[:, 0] + X[:, 1])

    found = rs.explain(
        model, X, y, weights=weights, outcome=False, budget=None, rng=0, progress=False
    )
    expected = roc_auc_score(y, model(X), sample_weight=weights)
    assert found.attrs["auc"] == pytest.approx(expected)
    assert found.attrs["auc"] != pytest.approx(roc_auc_score(y, model(X)))


def test_the_interval_has_the_error_of_the_delta_method():
    """One repeat: half-width t · root(n/(n-1)-free sum of squared influences · (1 + K/(K-1)))."""
    y, fold = RNG.normal(size=N), np.arange(N) % 5
    predicted = 0.5 * y + RNG.normal(size=N)
    found = skill_of(fits(y, predicted, fold, "numbers"), None, 0.9)
    sums = np.bincount(fold, y)
    base = (y - ((y.sum() - sums) / (N - np.bincount(fold)))[fold]) ** 2
    error = (y - predicted) ** 2
    ratio = error.mean() / base.mean()
    spread = np.sqrt(np.sum(((error - ratio * base) / base.mean() / N) ** 2) * (1 + 5 / 4))
    half = stats.t.ppf(0.95, N - 1) * spread
    assert found["skill"] - found["skill_low"] == pytest.approx(half)


def test_groups_are_units():
    y, fold = np.repeat(RNG.normal(size=N // 2), 2), np.repeat(np.arange(N // 2) % 5, 2)
    predicted = y + np.repeat(RNG.normal(size=N // 2), 2)
    rows = skill_of(fits(y, predicted, fold, "numbers"), None, 0.95)
    groups = np.repeat(np.arange(N // 2), 2)
    grouped = skill_of(fits(y, predicted, fold, "numbers"), groups, 0.95)
    half, of_rows = [found["skill"] - found["skill_low"] for found in (grouped, rows)]
    ratio = half / of_rows
    assert ratio == pytest.approx(np.sqrt(2), rel=0.01)
    assert rows["predicts"] == ("yes" if rows["skill_low"] > 0 else "no")
