"""Refits: closed forms, other people's errors, streams, failures."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal

import rhale_stats as rs
from rhale_stats import parallel
from rhale_stats.ensembles import refits


def least_squares(rows):
    """Effect of a fitted line, which is additive."""
    rows = np.asarray(rows)
    slope = np.polyfit(rows[:, 0], rows[:, 1], 1)[0]
    local = rs.local_effects(lambda X: slope * X[:, 0], rows[:, :1], features=0)
    return rs.rhale(local, bins=rs.EqualWidthBins(1), centering="start")


def sometimes(rows):
    """Fails on resamples that drew the first row: on about 63 of 100, and not on all rows."""
    if rows["number"].nunique() < len(rows) and (rows["number"] == 0).any():
        raise RuntimeError("the first row again")
    return least_squares(rows[["x", "y"]])


def line(n=200, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=n)
    return np.column_stack([x, 3 * x + rng.normal(size=n)])


def test_refits_of_least_squares_have_the_error_of_statsmodels():
    data = line()
    fit = sm.OLS(data[:, 1], sm.add_constant(data[:, 0])).fit(cov_type="HC0")
    boot = rs.bootstrap_refit(least_squares, data, n_resamples=100, n_jobs=1, n_grid=3, rng=1)
    spread = boot["average_effect"].std(ddof=1).item()
    # 1 / sqrt(200) = 7 % of Monte-Carlo error, three times.
    assert spread == pytest.approx(fit.bse[1], rel=0.21)
    assert boot["average_effect"].mean().item() == pytest.approx(
        fit.params[1], abs=3 * fit.bse[1] / np.sqrt(100)
    )
    assert_allclose(boot["effect_estimate"], fit.params[1], rtol=1e-9)
    assert_allclose(boot["curve_estimate"].values[0, -1], fit.params[1] * np.ptp(data[:, 0]))
    assert boot.attrs["source"] == "refits"
    assert "fitted again" in boot.attrs["model"]
    # The very same model has no width by rows alone.
    local = rs.local_effects(None, data[:, :1], jacobian=np.full((200, 1), 3.0), features=0)
    rows = rs.bootstrap(local, rs.rhale(local, bins=rs.EqualWidthBins(1)), n_resamples=8, rng=0)
    assert np.ptp(rows["average_effect"].values) < 1e-12
    assert rows.attrs["source"] == "rows"


def test_refits_of_groups():
    """Every row three times: as wide as with one of each."""
    data = line(100)
    thrice = np.repeat(data, 3, axis=0)
    options = {"n_resamples": 12, "n_jobs": 1, "n_grid": 3, "rng": 1}
    once = rs.bootstrap_refit(least_squares, data, **options)
    found = rs.bootstrap_refit(
        least_squares, thrice, groups=np.repeat(np.arange(100), 3), **options
    )
    assert_allclose(found["average_effect"], once["average_effect"], rtol=1e-9)
    assert found.attrs["source"] == "refits, groups of rows"


class Counted(pd.DataFrame):
    """A table that knows how often it was sent to another process."""

    sent = 0

    def __reduce__(self):
        Counted.sent += 1
        return pd.DataFrame, (self.to_numpy(),)


def test_refits_by_a_closure_in_two_processes_to_which_the_table_is_sent_once():
    """users.md: Can't pickle local object."""
    data, options = Counted(line()), {"n_resamples": 8, "n_grid": 3, "rng": 1}
    bins, slope_of = rs.EqualWidthBins(1), lambda rows: np.polyfit(rows[:, 0], rows[:, 1], 1)[0]

    # By nothing of this module: the processes would import all that it imports.
    def closure(rows):
        rows = np.asarray(rows)
        slope = slope_of(rows)
        local = rs.local_effects(lambda X: slope * X[:, 0], rows[:, :1], features=0)
        return rs.rhale(local, bins=bins)

    one = rs.bootstrap_refit(closure, data, **options)
    Counted.sent = 0
    two = rs.bootstrap_refit(closure, data, n_jobs=2, **options)
    assert 1 <= Counted.sent <= 2
    xr.testing.assert_identical(one, two)
    assert float(one["failed"].sum()) == 0


def test_jobs_is_the_former_name_of_n_jobs(monkeypatch):
    asked = []

    def here(function, items, processes, done):
        asked.append(processes)
        return parallel.in_processes(function, items, 1, done)

    monkeypatch.setattr(refits, "in_processes", here)
    with pytest.warns(FutureWarning, match="use n_jobs"):
        rs.bootstrap_refit(least_squares, line(), n_resamples=4, jobs=3)
    assert asked == [3]


def test_fits_that_fail_are_counted(tmp_path):
    data = pd.DataFrame(line(), columns=["x", "y"]).assign(number=np.arange(200))
    boot = rs.bootstrap_refit(sometimes, data, n_resamples=80, n_jobs=1, n_grid=3, rng=1)
    failed = boot["failed"]
    # 1 - 1/e = 63 %, with an error of 5 %.
    assert 0.45 < failed.mean() < 0.8
    assert_array_equal(np.isnan(boot["average_effect"]).all("feature"), failed)
    assert_array_equal(np.isnan(boot["effect"]).all(("feature", "grid")), failed)
    assert boot.attrs["first_failure"] == "RuntimeError: the first row again"
    boot.to_netcdf(tmp_path / "boot.nc", engine="h5netcdf")
    with xr.open_dataset(tmp_path / "boot.nc", engine="h5netcdf") as back:
        xr.testing.assert_identical(back.load(), boot)


def test_unusable_fits():
    data, calls = line(), []

    def broken(rows):
        calls.append(1)
        if len(calls) > 1:
            raise RuntimeError("no luck")
        return least_squares(rows)

    with pytest.raises(ValueError, match="all 4 failed: RuntimeError: no luck"):
        rs.bootstrap_refit(broken, data, n_resamples=4, n_jobs=1)

    def renamed(rows):
        calls.append(1)
        effect = least_squares(rows)
        return effect if len(calls) == 1 else effect.assign_coords(feature=["other"])

    calls.clear()
    with pytest.raises(ValueError, match="same features .*; got x0 for all, other for some"):
        rs.bootstrap_refit(renamed, data, n_resamples=4, n_jobs=1)
    with pytest.raises(TypeError, match="what fit returns must be .*; got ndarray"):
        rs.bootstrap_refit(lambda rows: rows, data, n_resamples=4, n_jobs=1)
    with pytest.raises(ValueError, match="n_jobs must be a number of processes, .*; got 0"):
        rs.bootstrap_refit(least_squares, data, n_resamples=4, n_jobs=0)
    with pytest.raises(ValueError, match="groups must have one entry for each of 200 rows"):
        rs.bootstrap_refit(least_squares, data, n_resamples=4, groups=[1, 2])
