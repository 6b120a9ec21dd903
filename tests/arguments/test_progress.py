"""Every function that may take long has a progress bar, made in one way."""

import inspect

import numpy as np
import pandas as pd
import pytest
from tqdm import tqdm

import rhale_stats as rs
from rhale_stats.arguments import progress
from tests.helpers import public_functions

N = 60
X = pd.DataFrame(np.random.default_rng(0).normal(size=(N, 3)), columns=list("abc"))


def model(table):
    return table["a"] * table["b"] + table["c"] ** 2


LINE = rs.Parametric(lambda params, table: params[0] * model(table), params=[1.0], cov=[[0.1]])
LOCAL = rs.local_effects(model, X)
EFFECT = rs.rhale(LOCAL)


def fit(data):
    return rs.rhale(rs.local_effects(model, data, progress=False))


def members(data):
    slope = float(data["a"].mean())
    return lambda table: table["a"] * slope + table["b"]


def estimate(fitted, data):
    return rs.ale(fitted, data, bins=rs.QuantileBins(3), progress=False)


# How each is called, what its bar says, and of what it counts.
BARS = {
    "ale": (lambda **more: rs.ale(model, X, **more), "local effects", "feature"),
    "ale2": (lambda **more: rs.ale2(model, X, ("a", "b"), **more), "second-order ALE", "batch"),
    "ale_local_effects": (
        lambda **more: rs.ale_local_effects(model, X, **more), "local effects", "feature",
    ),
    "all_regions": (lambda **more: rs.all_regions(LOCAL, rng=0, **more), "regions", "feature"),
    "bootstrap": (
        lambda **more: rs.bootstrap(LOCAL, EFFECT, n_resamples=8, rng=0, **more),
        "bootstrap", "replicate",
    ),
    "bootstrap_refit": (
        lambda **more: rs.bootstrap_refit(fit, X, n_resamples=4, n_jobs=1, rng=0, **more),
        "bootstrap", "fit",
    ),
    "cross_effects": (
        lambda **more: rs.cross_effects(
            members, estimate, X, n_folds=2, n_repeats=2, n_jobs=1, rng=0, **more
        ),
        "cross-fitting", "fit",
    ),
    "explain": (
        lambda **more: rs.explain(model, X, rng=0, budget=None, **more), "explain", "step",
    ),
    "folds": (lambda **more: rs.folds(LOCAL, n_folds=2, rng=0, **more), "folds", "fold"),
    "h_statistic": (
        lambda **more: rs.h_statistic(model, X, n_pairs=1, rng=0, **more), "H-statistics", "term",
    ),
    "ice": (lambda **more: rs.ice(model, X, **more), "ICE", "feature"),
    "interaction_matrix": (
        lambda **more: rs.interaction_matrix(LOCAL, n_permutations=9, rng=0, **more),
        "interactions", "feature",
    ),
    "local_effects": (
        lambda **more: rs.local_effects(model, X, **more), "local effects", "feature",
    ),
    "m_plot": (lambda **more: rs.m_plot(model, X, **more), "M-plot", "row"),
    "outcome_effects": (
        lambda **more: rs.outcome_effects(
            lambda X, y: model, X, np.arange(float(len(X))), n_folds=2, rng=0, **more
        ),
        "cross-fitting", "fit",
    ),
    "over_models": (
        lambda **more: rs.over_models([model, model], X, n_jobs=1, **more), "models", "model",
    ),
    "pdp": (lambda **more: rs.pdp(model, X, **more), "partial dependence", "feature"),
    "regional_ale": (
        lambda **more: rs.regional_ale(model, X, "a", rng=0, **more), "local effects", "row",
    ),
    "regional_pdp": (
        lambda **more: rs.regional_pdp(model, X, "a", rng=0, **more), "ICE curves", "row",
    ),
    "regional_shap": (
        lambda **more: rs.regional_shap(model, X, "a", background=3, rng=0, **more),
        "Shapley values", "row",
    ),
    "shap_dependence": (
        lambda **more: rs.shap_dependence(model, X, background=3, rng=0, **more),
        "Shapley values", "row",
    ),
    "sizes_by_chance": (
        lambda **more: rs.sizes_by_chance(fit, X, n_resamples=2, n_jobs=1, rng=0, **more),
        "sizes by chance", "fit",
    ),
    "std_error": (
        lambda **more: rs.std_error(EFFECT, LOCAL, model=LINE, X=X, **more), "parameters, a", "row",
    ),
}  # fmt: skip


def test_these_are_all_functions_with_a_bar():
    with_bar = {
        name
        for name, function in public_functions().items()
        if "progress" in inspect.signature(function).parameters and name != "simulate.study"
    }
    assert with_bar == set(BARS)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", BARS)
@pytest.mark.slow
def test_there_is_none_where_none_is_wanted(name, monkeypatch, capsys):
    monkeypatch.setattr(progress, "PROGRESS_DELAY", 0.0)
    BARS[name][0](progress=False)
    assert not capsys.readouterr().err


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["ale", "regional_pdp", "shap_dependence", "h_statistic"])
def test_there_is_none_in_short_work(name, capsys):
    BARS[name][0]()
    assert not capsys.readouterr().err.strip()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", BARS)
def test_a_bar_says_what_is_counted_and_how_fast_and_ends_at_its_end(name, monkeypatch, capsys):
    call, what, unit = BARS[name]
    ends = []

    class Noted(tqdm):
        def close(self):
            if not self.disable:
                ends.append((self.n, self.total))
            super().close()

    monkeypatch.setattr(progress, "tqdm", Noted)
    monkeypatch.setattr(progress, "PROGRESS_DELAY", 0.0)
    call()
    said = capsys.readouterr().err
    assert f"{what}:" in said
    assert f"{unit}/s" in said or f"s/{unit}" in said
    assert ends
    assert all(n == total for n, total in ends)
