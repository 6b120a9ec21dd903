"""Threads, processes, and what of the whole process they leave as it was (code.md B10)."""

from __future__ import annotations

import os
import threading
import time
import warnings

import numpy as np
import pytest
import threadpoolctl
import xarray as xr

import rhale_stats as rs
from rhale_stats import parallel


def together(*jobs):
    """All at once on threads of their own; the first error is raised."""
    errors = []

    def caught(job):
        try:
            job()
        except BaseException as error:  # shown below
            errors.append(error)

    threads = [threading.Thread(target=caught, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def blas_threads():
    return [one["num_threads"] for one in threadpoolctl.threadpool_info()]


def overlapping(manager):
    """A enters, B enters, A leaves, B leaves."""
    first_in, second_in, first_out = (threading.Event() for _ in range(3))

    def first():
        with manager():
            first_in.set()
            # A manager that lets in one at a time never sees the second here.
            second_in.wait(0.2)
        first_out.set()

    def second():
        first_in.wait()
        with manager():
            second_in.set()
            first_out.wait(0.2)

    together(first, second)


def test_blas_threads_come_back_after_overlapping_limits():
    with threadpoolctl.threadpool_limits(2):
        before = blas_threads()
        overlapping(lambda: parallel.one_blas_thread)
        with parallel.one_blas_thread:
            assert set(blas_threads()) == {1}
        assert blas_threads() == before


def test_blas_threads_come_back_after_concurrent_bootstraps():
    X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    local = rs.local_effects(lambda X: 2 * X[:, 0] + 4 * X[:, 0] * X[:, 1], X)
    effect = rs.rhale(local, bins=rs.EqualWidthBins(8))

    def drawn(n, wait):
        def job():
            time.sleep(wait)
            rs.bootstrap(local, effect, n_resamples=n, rng=0, progress=False)

        return job

    with threadpoolctl.threadpool_limits(2):
        before = blas_threads()
        together(drawn(800, 0), drawn(2400, 0.05))
        assert blas_threads() == before


def test_filters_of_warnings_come_back_after_concurrent_calls():
    before = list(warnings.filters)
    overlapping(lambda: parallel.ignoring(UserWarning, "of no interest"))
    assert warnings.filters == before


def test_the_state_of_numpy_comes_back_after_concurrent_calls():
    before = np.random.get_state()[1].copy()  # noqa: NPY002

    def disturbed():
        np.random.seed(1)  # noqa: NPY002

    def job():
        with parallel.numpy_state_kept():
            disturbed()
            time.sleep(0.02)
            disturbed()

    together(job, job, job)
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


def test_shapley_values_of_two_threads_are_those_of_one():
    X = np.random.default_rng(0).normal(size=(30, 12))

    def model(rows):
        return rows[:, 0] * rows[:, 1] + rows[:, 2:].sum(axis=1)

    # So many columns that permutations are drawn.
    def values():
        return rs.shap_dependence(model, X, features=[0], rng=3, background=10)

    alone = values()
    found = []
    together(*[lambda: found.append(values())] * 3)
    for one in found:
        xr.testing.assert_identical(one.drop_attrs(deep=False), alone.drop_attrs(deep=False))


def test_replicates_filter_no_warnings_of_others(monkeypatch):
    """Replicates have bins without rows; nobody else's warnings are touched for that."""
    X = np.random.default_rng(0).uniform(-1, 1, (40, 1))
    local = rs.local_effects(lambda X: X[:, 0] ** 2, X, features=0)
    effect = rs.rhale(local, bins=rs.EqualWidthBins(6))

    messages, filterwarnings = [], warnings.filterwarnings

    def noted(action, message="", *others, **more):
        messages.append(message)
        filterwarnings(action, message, *others, **more)

    with monkeypatch.context() as patch:
        patch.setattr(warnings, "filterwarnings", noted)
        with_gaps = rs.bootstrap(local, effect, n_resamples=40, rebin=True, rng=0, progress=False)
    assert not [message for message in messages if "Bins" in message]
    assert with_gaps["effect"].isnull().any()


def test_cpus_are_those_that_this_process_may_use():
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("this system has no affinity")
    everything = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(everything)})
        assert parallel.cpus() == 1
    finally:
        os.sched_setaffinity(0, everything)
    assert 1 <= parallel.cpus() <= len(everything)


def test_refits_by_a_lambda_in_two_processes():
    """users.md: Can't pickle local object."""
    rng = np.random.default_rng(0)
    x = rng.uniform(size=100)
    data = np.column_stack([x, 3 * x + rng.normal(size=100)])

    def effect_of(rows, bins):
        slope = np.polyfit(rows[:, 0], rows[:, 1], 1)[0]
        local = rs.local_effects(lambda X: slope * X[:, 0], rows[:, :1], features=0)
        return rs.rhale(local, bins=bins)

    bins = rs.EqualWidthBins(1)
    options = {"n_resamples": 4, "n_grid": 3, "rng": 1, "progress": False}
    one, two = (
        rs.bootstrap_refit(lambda rows: effect_of(rows, bins), data, jobs=jobs, **options)
        for jobs in (1, 2)
    )
    xr.testing.assert_identical(one, two)
    assert float(two["failed"].sum()) == 0
