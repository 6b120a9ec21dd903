"""Threads, processes, and what of the whole process they leave as it was (code.md B10)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest
import threadpoolctl
import xarray as xr

import rhale_stats as rs
from rhale_stats import parallel
from tests import commands
from tests.helpers import daily


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


@pytest.mark.slow
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


@pytest.mark.slow
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


def test_cpus_are_those_that_this_process_may_use(monkeypatch):
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("this system has no affinity")
    monkeypatch.delenv("LOKY_MAX_CPU_COUNT")
    everything = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(everything)})
        assert parallel.cpus() == 1
    finally:
        os.sched_setaffinity(0, everything)
    assert 1 <= parallel.cpus() <= len(everything)
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    assert parallel.cpus() == 1


# --- threads and processes -----------------------------------------------------------------------

WAYS = pytest.mark.parametrize("run", [parallel.in_threads, parallel.in_processes])
NUMBERS = pytest.mark.parametrize("n", [1, 2])


def squared(i):
    # Later items are done sooner.
    time.sleep(0.01 * (5 - i))
    return i**2


@pytest.mark.parametrize(
    ("run", "n"), [(run, n) for run in (parallel.in_threads, parallel.in_processes) for n in (1, 2)]
)
def test_results_are_in_order(run, n):
    told = []
    found = run(squared, range(6), n, told.append)
    assert found == told == [0, 1, 4, 9, 16, 25]


@WAYS
@NUMBERS
@pytest.mark.slow
def test_an_error_keeps_its_type_and_ends_the_work(run, n, tmp_path):
    def one(i):
        (tmp_path / str(i)).touch()
        if i == 2:
            raise LookupError("the third")
        time.sleep(0.1)

    with pytest.raises(LookupError, match="the third"):
        run(one, range(40), n)
    assert len(list(tmp_path.iterdir())) < 20


@pytest.mark.parametrize(
    ("n_jobs", "most", "n"), [(None, 9, 1), (1, 9, 1), (3, 9, 3), (3, 2, 2), (-1, 99, 0)]
)
def test_numbers_of_processes_are_those_of_joblib(n_jobs, most, n):
    assert parallel.n_processes(n_jobs, most) == (n or parallel.cpus())


@pytest.mark.slow
def test_processes_share_the_cpus_and_keep_the_order(monkeypatch):
    monkeypatch.setattr(parallel, "cpus", lambda: 6)

    def threads(i):
        from rhale_stats.parallel import cpus

        time.sleep(0.01 * (8 - i))
        return i, cpus(), os.environ["OMP_NUM_THREADS"], os.getpid()

    names = (*parallel.THREAD_VARIABLES, "LOKY_MAX_CPU_COUNT")
    before, told = [os.environ.get(name) for name in names], []
    found = parallel.in_processes(threads, range(8), 2, told.append)
    assert found == told
    assert [number for number, *_ in found] == list(range(8))
    # joblib counts no more CPUs than there are.
    assert {(min(n, 3), text) for _, n, text, _ in found} == {(min(3, os.cpu_count()), "3")}
    assert os.getpid() not in {pid for *_, pid in found}
    assert [os.environ.get(name) for name in names] == before


@NUMBERS
@pytest.mark.slow
def test_warnings_of_processes_are_shown_once(n):
    def one(i):
        warnings.warn("of every item", UserWarning, stacklevel=1)
        warnings.warn("hidden here", FutureWarning, stacklevel=1)
        return i

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        warnings.simplefilter("ignore", FutureWarning)
        parallel.in_processes(one, range(8), n)
    assert [str(warning.message) for warning in caught] == ["of every item"]
    # The line is kept; of the file, cloudpickle 3.1.3 and newer keep nothing in closures.
    assert caught[0].lineno == one.__code__.co_firstlineno + 1
    assert caught[0].filename in {__file__, "<dynamic-code>"}


class Odd(Warning):
    def __init__(self, *, wanted):
        super().__init__(f"wants {wanted}")


def test_a_warning_that_text_does_not_make():
    with pytest.warns(UserWarning, match="Odd: wants keywords"):
        parallel._warn_again(("wants keywords", Odd, "file.py", 1), {})


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="Windows has no such signals")
@pytest.mark.parametrize("how", daily(["killed", "interrupted"]))
@pytest.mark.slow
def test_processes_end_with_their_parent(tmp_path, how):
    """Ctrl-C reaches all processes of a terminal; a killed parent says nothing at all."""
    script = tmp_path / "script.py"
    script.write_text(f"""
import os, signal, time
from pathlib import Path
from rhale_stats.parallel import in_processes

# A shell may have started the tests with Ctrl-C ignored, as it does in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)

def long(i):
    (Path({str(tmp_path)!r}) / f"{{os.getpid()}}.pid").touch()
    time.sleep(120)

in_processes(long, range(4), 2)
""")
    parent = subprocess.Popen(
        [sys.executable, str(script)], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    commands.until(lambda: len(list(tmp_path.glob("*.pid"))) == 2, parent)
    start = time.monotonic()
    if how == "killed":
        parent.kill()
    else:
        os.killpg(parent.pid, signal.SIGINT)
    parent.wait(30)
    pids = [file.stem for file in tmp_path.glob("*.pid")]
    commands.until(lambda: not any(commands.is_alive(pid) for pid in pids))
    assert time.monotonic() - start < 30
    with parent.stderr as stream:
        error = stream.read()
    if how == "interrupted":
        assert parent.returncode in (1, -signal.SIGINT)
        assert error.count("KeyboardInterrupt") == 1
