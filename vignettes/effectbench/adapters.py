"""What packages say of one process: an adapter is a function of the process, its rows and places.

It returns by name what the package estimates of x1 at the places: "ale", "pdp", "heterogeneity",
"interval" (2, place) of the ALE, and "split_by", the column by which rows differ, "" where none is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from effectbench.processes import Process, Values

Estimate = dict[str, Any]
Adapter = Callable[[Process, pd.DataFrame, Values], Estimate]


def rhale_stats(process: Process, X: pd.DataFrame, places: Values) -> Estimate:
    """This package, by its defaults: ALE, partial dependence, spread and regions of RHALE."""
    import rhale_stats as rs

    effect = rs.confint(rs.ale(process.model, X, ["x1"]))
    curve = rs.predict(effect, places, "x1").values
    ale = effect.sel(feature="x1").dropna("edge", subset=["curve"])
    away = (ale["curve_ci"] - ale["curve"]).transpose("ci_bound", "edge").values
    local = rs.local_effects(process.model, X, jacobian=process.gradient(X))
    rhale = rs.rhale(local, "x1").sel(feature="x1").dropna("edge", subset=["edge_value"])
    cell = np.searchsorted(rhale["edge_value"].values, places, side="right") - 1
    tree = rs.regions(local, "x1", conditioning=X, rng=0)
    return {
        "ale": curve,
        "interval": curve + [np.interp(places, ale["edge_value"].values, end) for end in away],
        "pdp": rs.predict(rs.pdp(process.model, X, ["x1"]), places, "x1").values,
        "heterogeneity": rhale["spread"].values[np.clip(cell, 0, rhale.sizes["edge"] - 2)],
        "split_by": str(tree["condition_feature"].values[1]) if tree.sizes["node"] > 1 else "",
    }


def effector(process: Process, X: pd.DataFrame, places: Values) -> Estimate:
    """The library of RHALE's authors, by its defaults; regions are those of RHALE."""
    import effector as package

    data = X.to_numpy()
    rhale = package.RHALE(data, process.model, model_jac=process.gradient)
    found = rhale.find_regions(0)
    columns = [str(leaf.rule) for leaf in found.leaves] if len(found.leaves) > 1 else []
    return {
        "ale": package.ALE(data, process.model).eval(0, places),
        "pdp": package.PDP(data, process.model).eval(0, places),
        "heterogeneity": np.sqrt(rhale.eval_heter(0, places)),
        "split_by": next((f"x{k + 1}" for k in (1, 2) for rule in columns if f"x_{k}" in rule), ""),
    }


def pyale(process: Process, X: pd.DataFrame, places: Values) -> Estimate:
    """PyALE with its intervals and 50 cells."""
    from PyALE import ale

    class Model:
        def predict(self, table: Any) -> Values:
            return process.model(table)

    how = {"feature_type": "continuous", "include_CI": True, "plot": False, "grid_size": 50}
    found = ale(X, Model(), ["x1"], **how)
    columns = ("eff", "lowerCI_95%", "upperCI_95%")
    at = found.index.to_numpy()
    curve, low, high = [np.interp(places, at, found[name].to_numpy()) for name in columns]
    return {"ale": curve, "interval": np.array([low, high])}


def scikit_learn(process: Process, X: pd.DataFrame, places: Values) -> Estimate:
    """scikit-learn: partial dependence on its grid of 100 places, over all rows."""
    from sklearn.base import BaseEstimator, RegressorMixin
    from sklearn.inspection import partial_dependence

    class Model(RegressorMixin, BaseEstimator):
        def fit(self, *_: Any) -> Model:
            return self

        def __sklearn_is_fitted__(self) -> bool:
            return True

        def predict(self, table: Any) -> Values:
            return process.model(table)

    found = partial_dependence(Model(), X, ["x1"], percentiles=(0, 1))
    return {"pdp": np.interp(places, found["grid_values"][0], found["average"][0])}


ADAPTERS: dict[str, Adapter] = {
    "rhale_stats": rhale_stats,
    "effector": effector,
    "PyALE": pyale,
    "scikit-learn": scikit_learn,
}
