"""Every public function that computes something, called once each on any model and table.

A new function is a line in `CALLS`, or has its reason in `APART`; the properties of
`test_properties` are then held for it, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

import rhale_stats as rs

N_ROWS = 240
# Not called: what draws, what is no function of data, and what other tests hold.
APART = {
    **dict.fromkeys(["plot", "plots"], "pictures, in tests/drawing"),
    **dict.fromkeys(
        [name for name in rs.__all__ if isinstance(getattr(rs, name), type)],
        "an option, a rule or an error, used by functions",
    ),
    "adapters": "a list of libraries",
    "outcome_effects": "it fits learners; in tests/outcome",
    "simulate": "a module; its models are in tests/simulate",
    "sklearn": "a module; in tests/test_sklearn",
    "datagrid": "a table of rows, in tests/margins",
    "check_jacobian": "takes derivatives, in tests/models",
    "report": "writes a file, in tests/reporting",
    "show": "returns text",
    "summary": "returns text",
    "to_datatree": "a tree of other results",
}


def table(seed: int = 0) -> pd.DataFrame:
    """Two skewed columns that depend on each other, and one that does not."""
    rng = np.random.default_rng(seed)
    a = rng.gamma(2.0, 0.5, N_ROWS)
    columns = {"a": a, "b": 0.5 * a + rng.normal(0, 0.7, N_ROWS), "c": rng.uniform(-1, 1, N_ROWS)}
    return pd.DataFrame(columns)


def rounded(seed: int = 0) -> pd.DataFrame:
    """The same with few values of two columns, which are edges of cells."""
    X = table(seed)
    return X.assign(b=np.round(X["b"], 1), c=np.round(20 * X["c"]) / 20)


def model(X: pd.DataFrame) -> Any:
    """Smooth, with interactions, and with skewed local effects."""
    return np.exp(0.4 * X["a"] + 0.3 * X["b"]) * (1 + 0.5 * X["c"]) + np.sin(X["b"])


@dataclass
class Given:
    """A model with its table, and the results that other calls start from."""

    model: Callable[[pd.DataFrame], Any]
    X: pd.DataFrame
    weights: Any = None
    weight_kind: str = "frequency"

    @property
    def weighted(self) -> dict[str, Any]:
        """Arguments of weights: numbers of repeated rows, if there are any."""
        if self.weights is None:
            return {}
        return {"weights": self.weights, "weight_kind": self.weight_kind}

    def fit(self, rows: pd.DataFrame) -> Callable[[pd.DataFrame], Any]:
        """A model of these rows, whose only parameter is a share."""
        answers = np.asarray(self.model(rows))
        share = float(np.mean(answers > np.mean(answers)))
        return lambda X: self.model(X) * (1 + share)

    def fitted(self, rows: pd.DataFrame) -> xr.Dataset:
        """The effects of such a model on its own rows."""
        return rs.rhale(
            rs.local_effects(self.fit(rows), rows, features="a", method="central_difference")
        )

    @cached_property
    def local(self) -> xr.Dataset:
        return rs.local_effects(self.model, self.X, progress=False, **self.weighted)

    @cached_property
    def effect(self) -> xr.Dataset:
        return rs.rhale(self.local)

    @cached_property
    def errors(self) -> xr.Dataset:
        return rs.std_error(self.effect)

    @cached_property
    def boot(self) -> xr.Dataset:
        return rs.bootstrap(self.local, self.effect, n_resamples=16, rng=0)

    @cached_property
    def tree(self) -> xr.Dataset:
        return rs.regions(self.local, "a", conditioning=self.X, max_depth=1, test=None)


def _local_units(given: Given) -> float:
    """A part of the range of the predictions over that of ``a``: a bound for effects."""
    return float(np.ptp(given.model(given.X)) / np.ptp(given.X["a"]) / 16)


# Function: its call, and what the result does not depend on ("order" of the rows, "weights" that
# repeat rows). Calls that draw at random depend on the order.
CALLS: Mapping[str, tuple[Callable[[Given], Any], set[str]]] = {
    "local_effects": (lambda g: g.local, set()),
    "ale_local_effects": (
        lambda g: rs.ale_local_effects(g.model, g.X, **g.weighted),
        set(),
    ),
    "rhale": (lambda g: g.effect, {"order", "weights"}),
    "ale": (lambda g: rs.std_error(rs.ale(g.model, g.X, **g.weighted)), {"order", "weights"}),
    "ale_from_local": (
        lambda g: rs.ale_from_local(rs.ale_local_effects(g.model, g.X, **g.weighted)),
        {"order", "weights"},
    ),
    "dale": (lambda g: rs.std_error(rs.dale(g.local)), {"order", "weights"}),
    "merge": (
        lambda g: rs.merge([rs.rhale(g.local, bins=rs.EqualWidthBins(3), weighting="rows")] * 2),
        {"order", "weights"},
    ),
    "std_error": (lambda g: g.errors, {"order", "weights"}),
    "confint": (lambda g: rs.confint(g.errors), {"order", "weights"}),
    "confband": (lambda g: rs.confband(g.errors, rng=0), {"order", "weights"}),
    "vcov": (lambda g: rs.vcov(g.errors, "a"), {"order", "weights"}),
    "wald_test": (lambda g: rs.wald_test(g.errors), {"order", "weights"}),
    "equivalence_test": (
        lambda g: rs.equivalence_test(g.errors, delta=_local_units(g)),
        {"order", "weights"},
    ),
    "effect_sizes": (lambda g: rs.effect_sizes(g.errors), {"order", "weights"}),
    "check_unbiased": (lambda g: rs.check_unbiased(g.local, g.effect), {"order", "weights"}),
    "debias": (
        lambda g: rs.debias(g.effect, rs.check_unbiased(g.local, g.effect)),
        {"order", "weights"},
    ),
    "jump_check": (
        lambda g: rs.jump_check(g.model, g.local, g.effect, g.X),
        {"order", "weights"},
    ),
    "folds": (lambda g: rs.folds(g.local, n_folds=3, rng=0), set()),
    "bootstrap": (lambda g: g.boot, set()),
    "bootstrap_refit": (
        lambda g: rs.bootstrap_refit(g.fitted, g.X, n_resamples=4, n_jobs=1, rng=0),
        set(),
    ),
    "cross_effects": (
        lambda g: rs.cross_effects(
            g.fit, lambda f, rows: rs.ale(f, rows), g.X, n_folds=2, n_repeats=2, n_jobs=1, rng=0
        ),
        set(),
    ),
    "over_models": (
        lambda g: rs.over_models([g.model, lambda X: g.model(X) * 1.125], g.X, n_jobs=1),
        {"order"},
    ),
    "sizes_by_chance": (
        lambda g: rs.sizes_by_chance(g.fitted, g.X, features="a", n_resamples=2, n_jobs=1, rng=0),
        set(),
    ),
    "pdp": (lambda g: rs.std_error(rs.pdp(g.model, g.X, **g.weighted)), {"order", "weights"}),
    "ice": (lambda g: rs.ice(g.model, g.X, **g.weighted), set()),
    "m_plot": (
        lambda g: rs.std_error(rs.m_plot(g.model, g.X, **g.weighted)),
        {"order", "weights"},
    ),
    "shap_dependence": (
        lambda g: rs.shap_dependence(g.model, g.X.iloc[:40], background=5, rng=0),
        set(),
    ),
    "averages": (
        lambda g: rs.averages(
            rs.Parametric(lambda p, X: g.model(X) * p[0], [1.0], [[0.01]]), g.X, **g.weighted
        ),
        {"order", "weights"},
    ),
    "pool": (
        lambda g: rs.pool([rs.pdp(g.model, g.X, **g.weighted), rs.pdp(g.model, g.X, **g.weighted)]),
        {"order", "weights"},
    ),
    "hypotheses": (
        lambda g: rs.hypotheses(g.errors, "sequential", feature="a"),
        {"order", "weights"},
    ),
    "compare_methods": (
        lambda g: rs.compare_methods([rs.ale(g.model, g.X), rs.pdp(g.model, g.X)], "a"),
        {"order"},
    ),
    "compare": (
        lambda g: rs.compare(g.errors, rs.std_error(rs.dale(g.local)), rng=0),
        {"order", "weights"},
    ),
    "ale2": (
        lambda g: rs.std_error(rs.ale2(g.model, g.X, ("a", "b"), **g.weighted)),
        {"order", "weights"},
    ),
    "h_statistic": (lambda g: rs.h_statistic(g.model, g.X, n_rows=60, rng=0), set()),
    "interaction_matrix": (
        lambda g: rs.interaction_matrix(g.local, conditioning=g.X, n_permutations=9, rng=0),
        set(),
    ),
    "regions": (lambda g: g.tree, {"order"}),
    "all_regions": (
        lambda g: rs.all_regions(g.local, conditioning=g.X, max_depth=1, test=None),
        {"order"},
    ),
    "regional_rhale": (lambda g: rs.regional_rhale(g.local, g.tree), {"order"}),
    "regional_ale": (
        lambda g: rs.regional_ale(g.model, g.X, "a", max_depth=1, test=None),
        {"order"},
    ),
    "regional_pdp": (
        lambda g: rs.regional_pdp(g.model, g.X, "a", max_depth=1, test=None),
        {"order"},
    ),
    "regional_shap": (
        lambda g: rs.regional_shap(
            g.model, g.X.iloc[:40], "a", background=5, max_depth=1, test=None, rng=0
        ),
        set(),
    ),
    "assign": (lambda g: rs.assign(g.tree, g.X), set()),
    "augment": (lambda g: rs.augment(g.local, g.effect), set()),
    "predict": (
        lambda g: rs.predict(
            g.effect, g.X["a"].min() + np.ptp(g.X["a"]) * np.array([0.25, 0.5]), "a"
        ),
        {"order", "weights"},
    ),
    "tidy": (lambda g: rs.tidy(g.errors), {"order", "weights"}),
    "glance": (lambda g: rs.glance(g.errors), {"order", "weights"}),
    "explain": (
        lambda g: (
            rs.explain(
                g.model, g.X, features=["a", "b"], rng=0, progress=False, budget=None
            ).answers
        ),
        set(),
    ),
    "simulate.mae": (
        lambda g: rs.simulate.mae(g.effect, rs.rhale(g.local, bins=rs.EqualWidthBins(12))),
        {"order"},
    ),
}

# Why results of these are not compared when the columns come in another order.
DRAWN_BY_COLUMN = "draws for one column after the other, so that each gets other random numbers"
NOT_BY_NAME = {
    "compare": DRAWN_BY_COLUMN,
    "confband": DRAWN_BY_COLUMN,
    "explain": DRAWN_BY_COLUMN,
    "regional_shap": "Shapley values, which are slow, are compared in shap_dependence",
}


def _even_grid(given: Given) -> dict[str, Any]:
    """Points at equal distances from the least to the largest value of each feature."""
    return {name: np.linspace(given.X[name].min(), given.X[name].max(), 7) for name in given.X}


# The factor of each variable where all features run the other way. Bins are such that a mirrored
# feature has the mirrored ones: the cells of weighting="axis" and the quantiles of a default grid
# have not.
MIRRORED: Mapping[str, tuple[Callable[[Given], Any], dict[str, int]]] = {
    "rhale": (
        lambda g: rs.rhale(g.local, bins=rs.EqualWidthBins(5), weighting="rows"),
        {"effect": -1, "heterogeneity": 1, "curve": 1, "edge_value": -1, "n_obs": 1},
    ),
    "std_error": (
        lambda g: rs.std_error(rs.rhale(g.local, bins=rs.EqualWidthBins(5), weighting="rows")),
        {"effect": -1, "effect_se": 1, "curve": 1, "curve_se": 1, "average_effect": -1},
    ),
    "confint": (
        lambda g: rs.confint(
            rs.std_error(rs.rhale(g.local, bins=rs.EqualWidthBins(5), weighting="rows"))
        ),
        {"curve": 1, "curve_ci": 1, "average_effect": -1},
    ),
    "dale": (
        lambda g: rs.dale(g.local, n_bins=5),
        {"effect": -1, "heterogeneity": 1, "curve": 1, "edge_value": -1},
    ),
    "ale": (
        lambda g: rs.std_error(rs.ale(g.model, g.X, bins=rs.EqualWidthBins(5))),
        {"effect": -1, "effect_se": 1, "curve": 1, "curve_se": 1, "edge_value": -1},
    ),
    "effect_sizes": (
        lambda g: rs.effect_sizes(rs.rhale(g.local, bins=rs.EqualWidthBins(5), weighting="rows")),
        {"importance": 1},
    ),
    "pdp": (
        lambda g: rs.std_error(rs.pdp(g.model, g.X, grid=_even_grid(g))),
        {"curve": 1, "curve_se": 1, "grid_value": -1, "importance": 1},
    ),
    "local_effects": (lambda g: g.local, {"local_effect": -1}),
}

# Calls that take a dask table in place of the table in memory.
CHUNKED: Mapping[str, Callable[[Given, Any], Any]] = {
    "rhale": lambda g, X: rs.rhale(
        rs.local_effects(g.model, X), bins=rs.EqualWidthBins(5)
    ).compute(),
    "ale": lambda g, X: rs.ale(g.model, X, bins=rs.EqualWidthBins(5)).compute(),
    "pdp": lambda g, X: rs.pdp(g.model, X).compute(),
}
