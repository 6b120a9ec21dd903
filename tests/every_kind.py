"""Results of every kind, of a small table whose names, levels, labels and units are given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

import rhale_stats as rs

N_ROWS = 120


def table(
    names: Sequence[str] = ("a", "b", "city"),
    levels: Sequence[str] = ("u", "v", "w"),
    text: str = "",
) -> pd.DataFrame:
    """Two numbers and one column of levels; ``text`` stands in units, labels and the output."""
    rng = np.random.default_rng(0)
    columns = [rng.exponential(size=N_ROWS), rng.uniform(-1, 1, N_ROWS), rng.choice(levels, N_ROWS)]
    X = pd.DataFrame(dict(zip(names, columns, strict=True)))
    if text:
        X.attrs = {"output_name": f"output {text}", "output_units": f"kg {text}"}
        X.attrs["units"] = dict.fromkeys(names, f"cm {text}")
        X.attrs["labels"] = dict.fromkeys(names, f"label {text}")
    return X


def model(X: pd.DataFrame) -> Any:
    """Smooth in the numbers, with an interaction; the level decides about a step."""
    one, two = X.iloc[:, 0].to_numpy(), X.iloc[:, 1].to_numpy()
    return np.sin(one) + 2 * one * two + 1.5 * (X.iloc[:, 2].to_numpy() > "u")


def results(X: pd.DataFrame) -> dict[str, Any]:
    """Results by what made them, all kinds of them."""
    a, b, _ = X.columns
    options = {"features": [a, b]}
    made: dict[str, Any] = {}
    made["local_effects"] = local = rs.local_effects(model, X, **options)
    made["rhale"] = effect = rs.rhale(local)
    made["std_error"] = errors = rs.confint(rs.std_error(effect))
    made["check_unbiased"] = rs.check_unbiased(local, effect)
    made["jump_check"] = rs.jump_check(model, local, effect, X)
    made["ale"] = rs.std_error(rs.ale(model, X))
    made["ale_two_outputs"] = rs.ale(lambda X: np.column_stack([model(X), -model(X)]), X)
    made["pdp"] = rs.confint(rs.std_error(rs.pdp(model, X)))
    made["ice"] = rs.ice(model, X, features=[a])
    made["m_plot"] = rs.m_plot(model, X)
    numbers = X[[a, b]]
    made["shap_dependence"] = rs.shap_dependence(None, numbers, shap_values=numbers.to_numpy() ** 2)
    made["ale2"] = surface = rs.std_error(rs.ale2(model, X, (a, b), bins=rs.EqualWidthBins(3)))
    made["h_statistic"] = h = rs.h_statistic(model, X, n_rows=40, rng=0)
    made["regions"] = tree = rs.regions(local, a, conditioning=X, max_depth=1, test=None)
    made["regional_rhale"] = rs.regional_rhale(local, tree)
    made["regional_pdp"] = rs.regional_pdp(model, X, a, max_depth=1, test=None)
    made["interaction_matrix"] = rs.interaction_matrix(
        local, conditioning=X, n_permutations=9, rng=0
    )
    made["bootstrap"] = rs.bootstrap(local, effect, n_resamples=8, rng=0)
    made["over_models"] = rs.over_models([model, lambda X: 2 * model(X)], X, n_jobs=1, **options)
    made["wald_test"] = rs.wald_test(errors)
    made["equivalence_test"] = rs.equivalence_test(errors, delta=1.0)
    made["compare"] = rs.compare(errors, rs.std_error(rs.dale(local, n_bins=3)), rng=0)
    made["compare_surfaces"] = rs.compare(surface, surface)
    made["compare_h"] = rs.compare(h, h)
    made["effect_sizes"] = rs.effect_sizes(errors)
    made["averages"] = rs.averages(
        rs.Parametric(lambda p, X: model(X) * p[0], [1.0], [[0.01]]), X, **options
    )
    made["explain"] = rs.explain(model, X, rng=0, progress=False, budget=None)
    return made
