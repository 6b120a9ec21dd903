"""Work on chunks of rows by dask, in processes of a cluster."""

from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import rhale_stats as rs
from rhale_stats.chunks import all_see, array_of, of_all
from rhale_stats.local import chunks as module
from rhale_stats.local.chunks import cached

pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
delayed = pytest.importorskip("dask.delayed").delayed
distributed = pytest.importorskip("distributed")


def test_results_merge_in_the_order_of_the_chunks():
    chunks = [(number,) for number in range(50)]
    found = of_all(chunks, lambda number: str(number) if number % 7 else None, " ".join)
    assert found == " ".join(str(number) for number in range(50) if number % 7)
    assert of_all(chunks[:1], lambda _: None, len) is None


def test_a_progress_bar_counts_chunks(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    of_all([(number,) for number in range(5)], lambda number: number, sum, "numbers", delay=0.0)
    assert "numbers: 100%" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("axis", [0, 1])
def test_blocks_of_an_array_are_one_node_each(axis):
    two = delayed(2.0)
    shapes = [(n, 3) if axis == 0 else (3, n) for n in (2, 1, 0)]
    blocks = [np.ones(shapes[0]), *((np.full, shape, two.key) for shape in shapes[1:])]
    found = array_of("blocks", blocks, [2, 1, 0], (3,), axis, [two])
    assert len(dict(found.dask)) == len(blocks) + 1
    expected = np.concatenate([np.full(shapes[0], 1.0), np.full(shapes[1], 2.0)], axis)
    computed = found.compute(scheduler="sync")
    assert computed.dtype == found.dtype == np.float64
    np.testing.assert_array_equal(computed, expected)


def test_the_package_does_not_import_dask():
    code = (
        "import sys, rhale_stats as rs; rs.rhale, rs.local_effects, rs.merge; "
        "print('dask' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "False"


@pytest.mark.slow
def test_the_page_of_large_tables_prints_what_it_shows():
    page = (Path(__file__).parents[1] / "docs" / "larger-than-memory.md").read_text("utf-8")
    names: dict[str, object] = {}
    found = re.findall(r"^```(python|text)\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    for (language, code), (_, shown) in zip(found[::2], found[1::2], strict=True):
        assert language == "python"
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "larger-than-memory.md", "exec"), names)
        assert printed.getvalue() == shown


def slow_model(X):
    """Takes a while, so that a worker can be killed meanwhile."""
    import time

    time.sleep(0.02)
    return X[:, 0] ** 2 + X[:, 0] * X[:, 1]


def killing(model, path):
    """The model, which kills the first process that asks it and is not this one."""
    here = os.getpid()

    def lethal(X):
        if os.getpid() != here:
            try:
                os.close(os.open(path, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return model(X)
            os.kill(os.getpid(), signal.SIGKILL)
        return model(X)

    return lethal


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_killed_worker_costs_time_and_not_the_result(tmp_path, monkeypatch):
    X = np.random.default_rng(0).normal(size=(6000, 2))
    blocks = da.from_array(X, chunks=(600, 2))
    expected = rs.std_error(rs.rhale(rs.local_effects(slow_model, blocks)))

    def found(model):
        return rs.std_error(rs.rhale(rs.local_effects(model, blocks)))

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        # In memory here; then on the disk; then with the workers, as if they saw other disks.
        for way in ("memory", "disk", "workers"):
            if way == "disk":
                monkeypatch.setattr(module, "MAX_IN_MEMORY", 0)
            if way == "workers":
                monkeypatch.setattr(module, "all_see", lambda *_: False)
            xr.testing.assert_identical(found(slow_model), expected)
            before = set(cluster.scheduler.workers)
            xr.testing.assert_identical(found(killing(slow_model, str(tmp_path / way))), expected)
            assert (tmp_path / way).exists()
            assert set(cluster.scheduler.workers) != before
        # Chunks that a worker has kept are computed again by another one.
        local = rs.local_effects(slow_model, blocks)
        with cached(local) as same:
            client.gather(client.compute(same["local_effect"].data.sum()))
            one = next(iter(client.run(os.getpid).values()))
            os.kill(one, signal.SIGKILL)
            xr.testing.assert_identical(rs.std_error(rs.rhale(same)), expected)


@pytest.mark.slow
def test_workers_of_one_machine_see_its_folders_and_others_do_not(tmp_path):
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        assert all_see(client, tmp_path)
        blind = {"tcp://elsewhere": False}
        client.run = lambda function, name: client.__class__.run(client, function, name) | blind
        assert not all_see(client, tmp_path)
