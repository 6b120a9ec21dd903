"""The command `bench`: how fast this machine is, beside other libraries that are installed."""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import math
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from rhale_stats.bins.fixed import QuantileBins
from rhale_stats.bins.searched import OptimalBins
from rhale_stats.cli.versions import version_of
from rhale_stats.effects.ale import ale
from rhale_stats.effects.rhale import rhale
from rhale_stats.local.local_effects import local_effects
from rhale_stats.profiles.pdp import pdp

# Bins and points of all tasks.
N_BINS = 40


class Smooth:
    """A cheap model: what takes time is the library."""

    def predict(self, X: pd.DataFrame) -> Any:
        """A smooth function with an interaction."""
        first, second, third = (X[name].to_numpy() for name in ("x0", "x1", "x2"))
        return np.sin(3 * first) + second * third + first**2


class Task(NamedTuple):
    """What is timed: in this package, and in a peer, None if it is not installed."""

    name: str
    ours: Callable[[], object]
    peer: str
    theirs: Callable[[], object] | None


def bench_job(arguments: argparse.Namespace) -> dict[str, Any]:
    """Time some tasks, and the same by other libraries that are installed."""
    X = _rows(arguments.rows, arguments.features, arguments.seed)
    lines = []
    print(
        f"{arguments.rows:,} rows, {arguments.features} features, {N_BINS} bins or points, the "
        f"least of {arguments.runs} runs.\n"
    )
    print(f"{'task':<34}{'rhale_stats':>12}  {'peer':<22}{'its time':>12}{'ratio':>8}")
    for task in _tasks(X):
        seconds = _seconds(task.ours, arguments.runs)
        theirs = None if task.theirs is None else _tried(task.theirs, arguments.runs)
        lines.append(
            {
                "task": task.name,
                "seconds": seconds,
                "peer": task.peer,
                "peer_version": version_of(task.peer),
                "peer_seconds": theirs,
            }
        )
        print(_shown(task, seconds, theirs))
    print(
        "\nratio: time of the peer over that of this package. Only the partial dependence here has "
        "standard errors."
    )
    return {"rows": arguments.rows, "features": arguments.features, "tasks": lines}


def _shown(task: Task, seconds: float, theirs: float | None) -> str:
    peer = f"{task.peer} {version_of(task.peer) or ''}".strip()
    if theirs is None or math.isnan(theirs):
        why = "not installed" if theirs is None else "failed"
        return f"{task.name:<34}{1e3 * seconds:>9.1f} ms  {peer:<22}{why:>20}"
    return (
        f"{task.name:<34}{1e3 * seconds:>9.1f} ms  {peer:<22}{1e3 * theirs:>9.1f} ms"
        f"{theirs / seconds:>7.1f}x"
    )


def _rows(n_rows: int, n_features: int, seed: int) -> pd.DataFrame:
    values = np.random.default_rng(seed).uniform(-1, 1, (n_rows, n_features))
    return pd.DataFrame(values, columns=[f"x{number}" for number in range(n_features)])


def _tasks(X: pd.DataFrame) -> Iterator[Task]:
    """The tasks, each with its data made before it is timed."""
    jacobian = np.zeros(X.shape)
    jacobian[:, 0] = 3 * np.cos(3 * X["x0"]) + 2 * X["x0"]
    jacobian[:, 1], jacobian[:, 2] = X["x2"], X["x1"]
    local = local_effects(None, X, jacobian=jacobian, features=list(map(str, X)), progress=False)
    rule = OptimalBins(max_bins=N_BINS)
    yield Task(
        "RHALE, the paper's bins",
        lambda: rhale(local, bins=rule, weighting="rows", std_error_moments=False),
        "effector",
        _of_effector(X, jacobian) if version_of("effector") else None,
    )
    yield Task(
        "ALE, all features",
        lambda: ale(Smooth(), X, bins=QuantileBins(N_BINS), progress=False),
        "PyALE",
        _of_pyale(X) if version_of("PyALE") else None,
    )
    grid = np.linspace(-0.99, 0.99, N_BINS)
    yield Task(
        "partial dependence, one feature",
        lambda: pdp(Smooth(), X, features="x0", grid={"x0": grid}, progress=False),
        "scikit-learn",
        _of_sklearn(X, grid) if version_of("scikit-learn") else None,
    )


def _of_effector(X: pd.DataFrame, jacobian: Any) -> Callable[[], object]:
    import effector

    rule = effector.axis_partitioning.DynamicProgramming(
        max_nof_bins=N_BINS, min_points_per_bin=len(X) // 20, discount=0.2
    )
    values = X.to_numpy()

    def fit() -> None:
        effect = effector.RHALE(
            values, lambda rows: rows[:, 0], data_effect=jacobian, nof_instances="all"
        )
        effect.fit("all", binning_method=rule)

    return fit


def _of_pyale(X: pd.DataFrame) -> Callable[[], object]:
    import PyALE

    def fit() -> None:
        for name in X:
            PyALE.ale(X, Smooth(), [str(name)], grid_size=N_BINS, include_CI=False, plot=False)

    return fit


def _of_sklearn(X: pd.DataFrame, grid: Any) -> Callable[[], object]:
    from sklearn.base import BaseEstimator, RegressorMixin
    from sklearn.inspection import partial_dependence

    class Estimator(RegressorMixin, BaseEstimator):  # type: ignore[misc]
        def fit(self, _X: Any, _y: Any = None) -> Estimator:
            self.fitted_ = True
            return self

        def predict(self, X: Any) -> Any:
            return np.asarray(Smooth().predict(X))

    return lambda: partial_dependence(
        Estimator().fit(X), X, ["x0"], custom_values={"x0": grid}, method="brute", kind="both"
    )


def _tried(function: Callable[[], object], runs: int) -> float:
    """The least time of some runs of another library; NaN if it fails."""
    try:
        return _seconds(function, runs)
    except Exception:
        return float("nan")


def _seconds(function: Callable[[], object], runs: int) -> float:
    """The least time of some runs; what the libraries print is not shown."""
    best = np.inf
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        logging.disable()
        for _ in range(runs):
            start = time.perf_counter()
            with contextlib.redirect_stdout(io.StringIO()):
                function()
            best = min(best, time.perf_counter() - start)
    logging.disable(logging.NOTSET)
    return float(best)
