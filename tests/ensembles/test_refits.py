"""Refits: closed forms, other people's errors, streams, failures."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LinearRegression

import rhale_stats as rs
from rhale_stats import parallel
from rhale_stats.arrays.binning import bin_index
from rhale_stats.ensembles import refits
from rhale_stats.ensembles.labelled import error_of
from rhale_stats.ensembles.refits import RefitTable
from rhale_stats.schema.feature_result import one_feature


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


@pytest.mark.thorough
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


@pytest.mark.thorough
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


@pytest.mark.slow
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
    # What is 0 but for rounding differs in it: sums in another process may be of other blocks.
    xr.testing.assert_allclose(one, two, rtol=1e-12, atol=1e-12)
    assert one.attrs == two.attrs
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


@pytest.mark.thorough
def test_fits_that_fail_are_counted(tmp_path):
    data = pd.DataFrame(line(), columns=["x", "y"]).assign(number=np.arange(200))
    with pytest.warns(UserWarning, match=r"of 80 fits failed .*: RuntimeError: the first row"):
        boot = rs.bootstrap_refit(sometimes, data, n_resamples=80, n_jobs=1, n_grid=3, rng=1)
    failed = boot["failed"]
    # 1 - 1/e = 63 %, with an error of 5 %.
    assert 0.45 < failed.mean() < 0.8
    assert_array_equal(np.isnan(boot["average_effect"]).all("feature"), failed)
    assert_array_equal(np.isnan(boot["effect"]).all(("feature", "grid")), failed)
    assert boot.attrs["first_failure"] == "RuntimeError: the first row again"
    assert boot.attrs["n_failed"] == failed.sum()
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
    with pytest.raises(TypeError, match=r"got LinearRegression\. Of a model: rhale\(model, X\)\.$"):
        rs.bootstrap_refit(lambda rows: LinearRegression(), data, n_resamples=4, n_jobs=1)
    with pytest.raises(ValueError, match="n_jobs must be a number of processes, .*; got 0"):
        rs.bootstrap_refit(least_squares, data, n_resamples=4, n_jobs=0)
    with pytest.raises(ValueError, match="groups must have one entry for each of 200 rows"):
        rs.bootstrap_refit(least_squares, data, n_resamples=4, groups=[1, 2])


# --- samples -------------------------------------------------------------------------------------

GROUPS = np.repeat(np.arange(30), [1, 2, 3] * 10)
# Groups 0 to 19 are in one stratum, the others in two of five each.
STRATA = np.where(GROUPS < 20, "a", np.where(GROUPS < 25, "b", "c"))


def test_samples_of_groups_within_strata():
    table, rng = (
        RefitTable.read(np.arange(60.0)[:, None], GROUPS, STRATA),
        np.random.default_rng(0),
    )
    sizes = np.bincount(GROUPS)
    for _ in range(20):
        rows = table.drawn(None, rng)
        drawn = np.bincount(GROUPS[rows], minlength=30) / sizes
        assert_array_equal(drawn, np.round(drawn))
        assert [drawn[:20].sum(), drawn[20:25].sum(), drawn[25:].sum()] == [20, 5, 5]
        rows = table.drawn(table.subsample_sizes(0.5), rng)
        drawn = np.bincount(GROUPS[rows], minlength=30) / sizes
        assert set(drawn) == {0.0, 1.0}
        assert [drawn[:20].sum(), drawn[20:25].sum(), drawn[25:].sum()] == [10, 2, 2]
        assert (np.diff(rows) > 0).all()


def test_folds_are_of_groups_within_strata():
    table, rng = (
        RefitTable.read(np.arange(60.0)[:, None], GROUPS, STRATA),
        np.random.default_rng(0),
    )
    folds = table.folds(5, rng)
    assert_array_equal(np.sort(np.concatenate(folds)), np.arange(60))
    held_out = [np.unique(GROUPS[rows]) for rows in folds]
    assert_array_equal(np.sort(np.concatenate(held_out)), np.arange(30))
    for groups in held_out:
        assert_array_equal(np.histogram(groups, [0, 20, 25, 30])[0], [4, 1, 1])


def test_strata_are_kept_by_every_sample():
    """Means of strata that are constant do not vary."""
    data = np.column_stack([np.repeat([0.0, 1.0], [30, 70]), np.arange(100.0)])
    seen = []

    def fit(rows):
        seen.append(rows[:, 0].mean())
        return rs.rhale(rs.local_effects(lambda X: X[:, 0], rows[:, 1:]), bins=rs.EqualWidthBins(1))

    options = {"n_resamples": 4, "n_jobs": 1, "rng": 0, "n_grid": 3}
    boot = rs.bootstrap_refit(fit, data, strata=data[:, 0], **options)
    assert_allclose(seen, 0.7)
    assert boot.attrs["n_strata"] == 2
    rs.bootstrap_refit(fit, data, strata=data[:, 0], scheme="subsampling", **options)
    assert_allclose(seen, 0.7, atol=0.01)


@pytest.mark.slow
def test_subsamples_have_the_error_of_statsmodels_after_rescaling():
    data = line(400)
    fit = sm.OLS(data[:, 1], sm.add_constant(data[:, 0])).fit(cov_type="HC0")
    for share in (None, 0.3):
        boot = rs.bootstrap_refit(
            least_squares,
            data,
            n_resamples=60,
            scheme="subsampling",
            sample_size=share,
            n_jobs=1,
            n_grid=3,
            rng=1,
        )
        m = round(400 * (share or 0.632))
        assert boot.attrs["n_units_drawn"] == m
        assert boot.attrs["variance_factor"] == pytest.approx(m / (400 - m))
        found = error_of(boot, "average_effect")
        # 1 / sqrt(2 * 60) = 9 % of Monte-Carlo error, three times.
        assert np.sqrt(found.variance[0]) == pytest.approx(fit.bse[1], rel=0.27)
        # A straight line has the same local effect everywhere.
        assert_allclose(found.rows, 0, atol=1e-20)
        assert_allclose(found.model, found.variance)


@pytest.mark.slow
def test_errors_of_refits_add_up_and_are_those_of_rows_for_a_model_as_given():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))

    def fit(rows):
        local = rs.local_effects(
            lambda X: X[:, 0] * X[:, 1],
            rows,
            features=0,
            method="jacobian",
            jacobian=rows[:, [1, 0]],
        )
        return rs.rhale(local, bins=rs.EqualWidthBins(1))

    effect = rs.std_error(fit(X))
    for options in ({}, {"scheme": "subsampling", "sample_size": 0.5}):
        boot = rs.bootstrap_refit(fit, X, n_resamples=60, n_jobs=1, n_grid=5, rng=0, **options)
        found = error_of(boot, "average_effect")
        # A mean over replicates, each with an error of some 10 %.
        assert np.sqrt(found.rows[0]) == pytest.approx(effect["average_effect_se"].item(), rel=0.03)
        # 9 % of Monte-Carlo error of a standard deviation of 60, three times.
        assert np.sqrt(found.variance[0]) == pytest.approx(np.sqrt(found.rows[0]), rel=0.27)
        assert found.model[0] == max(found.variance[0] - found.rows[0], 0)


@pytest.mark.thorough
def test_errors_by_rows_are_those_of_std_error():
    """At the edges those of the effect itself; between them those by groups are interpolated."""
    X = np.random.default_rng(0).normal(size=(200, 2))

    def fit(rows, errors="none"):
        local = rs.local_effects(lambda X: X[:, 0] ** 2 * X[:, 1], rows, features=0)
        effect = rs.rhale(local, bins=rs.EqualWidthBins(4))
        if errors == "none":
            return effect
        groups = np.arange(200) if errors == "groups" else None
        return rs.std_error(effect, local, groups=groups)

    options = {"n_resamples": 2, "chains": 1, "n_jobs": 1, "rng": 0}
    boots = {
        errors: rs.bootstrap_refit(partial(fit, errors=errors), X, **options)
        for errors in ("none", "rows", "groups")
    }
    first = X[np.random.default_rng(0).spawn(2)[0].integers(200, size=200)]
    expected = {errors: one_feature(fit(first, errors), 0) for errors in ("rows", "groups")}
    for errors, boot in boots.items():
        effect = expected["groups" if errors == "groups" else "rows"]
        grid, made = boot["grid_value"].values[0], boot.isel(chain=0, draw=0, feature=0)
        inside = np.isfinite(made["curve"].values)
        k = bin_index(effect.bin_edges, grid[inside])
        for name in ("effect", "heterogeneity"):
            found = made[f"{name}_se_rows"].values[inside]
            assert_allclose(found, effect[f"{name}_se"].values[k], rtol=1e-9)
        assert made["average_effect_se_rows"].item() == effect["average_effect_se"].item()
        found, known = made["curve_se_rows"].values[inside], effect["curve_se"].notnull().values
        between = np.interp(grid[inside], effect.edges[known], effect["curve_se"].values[known])
        if errors == "groups":
            assert_allclose(found, between, rtol=1e-9)
        else:
            assert_allclose(found, effect.fit.variance(grid[inside]) ** 0.5, rtol=1e-9)
            # What is between two edges varies less than the errors of both say.
            assert (found <= between * (1 + 1e-9)).all()


def test_refits_of_partial_dependence():
    data = pd.DataFrame(line(), columns=["x", "y"])

    def fit(rows):
        slope, start = np.polyfit(rows["x"], rows["y"], 1)
        return rs.pdp(lambda X: start + slope * X["x"].to_numpy(), rows[["x"]], n_grid=5)

    boot = rs.bootstrap_refit(fit, data, n_resamples=8, n_jobs=1, rng=0)
    assert boot.attrs["effect_method"] == "pdp"
    assert not {"effect", "heterogeneity", "average_effect"} & set(boot.variables)
    whole = fit(data)
    assert_array_equal(boot["grid_value"], whole["grid_value"])
    assert_allclose(boot["curve_estimate"], whole["curve"])
    # Straight lines, whatever the grid of the sample; NaN beyond its ends.
    bends = boot["curve"].isel(grid=slice(1, -1)).interp(grid=[0, 1, 2]).notnull()
    assert bends.all()
    slopes = boot["curve"].diff("grid") / np.diff(whole["grid_value"].values)
    inner = slopes.isel(grid=[1, 2])
    assert_allclose(inner.isel(grid=0), inner.isel(grid=1))
    assert (boot["curve_se_rows"] > 0).any()


def test_errors_by_rows_of_profiles_hold_no_parameters():
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b", "noise"])
    data["y"] = data["a"] * data["b"] + data["a"] + data["noise"]

    def fit(rows, parameters):
        results = smf.ols("y ~ a * b", rows).fit()
        X = rows[["a", "b"]]
        curves = rs.ice(results, X, features="a", kind="centered", progress=False)
        return rs.std_error(curves, curves, model=results, X=X) if parameters else curves

    with_parameters, alone = [
        rs.bootstrap_refit(partial(fit, parameters=held), data, n_resamples=2, n_jobs=1, rng=0)
        for held in (True, False)
    ]
    assert_allclose(with_parameters["curve_se_rows"], alone["curve_se_rows"], rtol=1e-9)


def test_samples_that_cannot_be_drawn():
    data = line(20)
    with pytest.raises(ValueError, match=r"sample_size must be left out .*; got 0\.5"):
        rs.bootstrap_refit(least_squares, data, sample_size=0.5)
    with pytest.raises(ValueError, match="scheme must be one of .*; got 'jackknife'"):
        rs.bootstrap_refit(least_squares, data, scheme="jackknife")
    options = {"n_resamples": 4, "scheme": "subsampling", "n_jobs": 1}
    with pytest.raises(ValueError, match="sample_size must lie strictly between 0 and 1; got 1"):
        rs.bootstrap_refit(least_squares, data, sample_size=1, **options)
    with pytest.raises(ValueError, match="sample_size must leave out some of the 20 rows"):
        rs.bootstrap_refit(least_squares, data, sample_size=0.99, **options)
    with pytest.raises(ValueError, match="strata must hold whole groups"):
        rs.bootstrap_refit(
            least_squares, data, groups=np.arange(20) // 2, strata=np.arange(20) % 2, **options
        )
    with pytest.raises(ValueError, match="strata must have one entry for each of 20 rows of data"):
        rs.bootstrap_refit(least_squares, data, strata=[1, 2], **options)
