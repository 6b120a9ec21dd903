"""Shared by all tests: read-only data, no stray figures, and no silent skips in CI."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from zlib import crc32

# Tests run one to a processor, so that more threads would only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Nor are there more processes than a test asks for: to start some takes seconds.
os.environ.setdefault("LOKY_MAX_CPU_COUNT", "1")
# What shap compiles takes 6 s in every process, and is used on a few hundred rows.
os.environ.setdefault("NUMBA_DISABLE_JIT", "1")

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest

from rhale_stats.schema import validation


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """Files and tests that are named run in this process: to start others takes longer."""
    return 0 if all(".py" in argument for argument in config.args) else None


def pytest_collection_finish(session):
    """What is imported stays: looking for garbage in it took a tenth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


@pytest.fixture(autouse=True)
def close_figures():
    """No figure outlives its test."""
    yield
    plt.close("all")


# Tests of what functions work with: they see results with all that follows from them.
OF_THE_INSIDE = (
    *("bins", "diagnostics", "drawing", "effects", "generics", "inference", "local", "regional"),
    *("ensembles", "simulate"),
)
validation.INSIDE += [str(Path(__file__).parent / name) + os.sep for name in OF_THE_INSIDE]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """What is drawn without a seed is drawn alike in every run: a test's name is its seed."""
    seed, fresh = crc32(item.nodeid.encode()), np.random.default_rng
    source = fresh(seed)

    def seeded(seed=None):
        return fresh(source.integers(2**63) if seed is None else seed)

    np.random.default_rng = seeded
    np.random.seed(seed)  # noqa: NPY002 (what models of other libraries draw from)
    try:
        return (yield)
    finally:
        np.random.default_rng = fresh


@pytest.fixture
def rng():
    """A seeded generator."""
    return np.random.default_rng(20231)


# A reason that is no fault of CI.
NO_GPU = "no GPU that torch can use"
# Libraries that are compared have an environment of their own in CI; alibi cannot be in it.
PEERS = "is not installed: extra peers"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """In CI a library that is missing is a failure: a skipped test proves nothing."""
    outcome = yield
    report = outcome.get_result()
    if (
        os.environ.get("RHALE_STATS_CI") == "1"
        and report.skipped
        and not hasattr(report, "wasxfail")
    ):
        reason = report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longrepr
        if NO_GPU in str(reason):
            return
        if PEERS in str(reason) and (
            os.environ.get("RHALE_STATS_PEERS") != "1" or "alibi" in str(reason)
        ):
            return
        report.outcome = "failed"
        report.longrepr = f"Skipped in CI, where everything is installed: {reason}"
