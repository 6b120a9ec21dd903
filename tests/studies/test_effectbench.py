"""EffectBench: its frozen truths are what formulas and brute force say, and it runs."""

import numpy as np
import pytest
import xarray as xr

from effectbench import __main__ as bench
from effectbench.adapters import rhale_stats, scikit_learn
from effectbench.processes import FILE, PROCESSES, SHARES, truth_of, truths


def test_the_file_holds_the_truths():
    xr.testing.assert_allclose(xr.load_dataset(FILE), truths(), rtol=1e-12)
    assert len(PROCESSES) == 60


@pytest.mark.parametrize("number", [5, 16, 25, 41, 56])
def test_truths_by_brute_force(number, rng):
    """Means of many rows: of derivatives near a place, and of predictions at it."""
    process, n = PROCESSES[number], 400_000
    X, truth = process.rows(n, rng), truth_of(process)
    order = np.argsort(X["x1"].values)
    derivative = process.gradient(X)[order, 0]
    for place in (5, 24, 40):
        near = slice(int(SHARES[place] * n) - 2000, int(SHARES[place] * n) + 2000)
        # Four standard errors of a standard deviation of 0 and 1, with what it moves within.
        spread = np.std(derivative[near] - process.gradient(X.assign(x2=-1.0))[order, 0][near])
        assert spread == pytest.approx(truth["heterogeneity"][place], abs=0.03)
    values = [process.model(X.assign(x1=x)).mean() for x in truth["x1"][[5, 24, 40]]]
    np.testing.assert_allclose(np.diff(values), np.diff(truth["pdp"][[5, 24, 40]]), atol=0.02)


def test_it_runs(monkeypatch, capsys):
    monkeypatch.setattr(bench, "PROCESSES", PROCESSES[:2])
    each = {name: bench.scores(adapter, 300)
            for name, adapter in (("ours", rhale_stats), ("sklearn", scikit_learn))}  # fmt: skip
    table = bench.table(each)
    assert table.loc["ours", ["ale", "pdp", "heterogeneity"]].max() < 0.1
    assert table.loc["ours", "split"] == 1
    assert np.isnan(table.loc["sklearn", "ale"])


def test_a_curve_apart_is_seen():
    truth = np.sin(SHARES)
    assert bench.distance(truth + 3, truth, "ale") == pytest.approx(0)
    assert bench.distance(2 * truth, truth, "ale") == pytest.approx(1)
    assert bench.distance(truth + 3, truth, "heterogeneity") == pytest.approx(3)
