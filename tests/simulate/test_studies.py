"""`simulate.study` beside numbers known in closed form, and what it does when things go wrong."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from scipy import stats

import rhale_stats as rs
from rhale_stats.files import LockedError, locked

study = rs.simulate.study
QUIET = {"n_jobs": 1, "progress": False, "rng": 0}


def exponential(n, rng):
    return rng.exponential(size=n)


def mean_of(x):
    error = x.std(ddof=1) / np.sqrt(len(x))
    half = stats.t.ppf(0.975, len(x) - 1) * error
    return {"mean": x.mean(), "mean_se": error, "mean_ci": (x.mean() - half, x.mean() + half)}


@pytest.mark.thorough
def test_statistics_are_those_of_the_samples():
    found = study(exponential, mean_of, {"mean": 1.0}, [10, 40], 300, **QUIET)
    assert found.sizes == {"n": 2, "statistic": 6, "replicate": 300}
    for size in (10, 40):
        means = found["mean_estimate"].sel(n=size).values
        of = found["mean"].sel(n=size)
        assert float(of.sel(statistic="bias")) == pytest.approx(means.mean() - 1)
        assert float(of.sel(statistic="std")) == pytest.approx(means.std(ddof=1))
        assert float(of.sel(statistic="rmse")) == pytest.approx(np.sqrt(np.mean((means - 1) ** 2)))
        mcse = found["mean_mcse"].sel(n=size)
        assert float(mcse.sel(statistic="bias")) == pytest.approx(means.std(ddof=1) / 300**0.5)
        share = float(of.sel(statistic="coverage"))
        binomial = np.sqrt(share * (1 - share) / 299)
        assert float(mcse.sel(statistic="coverage")) == pytest.approx(binomial)
        # In closed form: the mean has the standard deviation 1/√n.
        error = float(mcse.sel(statistic="std"))
        assert abs(float(of.sel(statistic="std")) - size**-0.5) < 4 * error
        error = float(mcse.sel(statistic="mean_se"))
        assert abs(float(of.sel(statistic="mean_se")) - size**-0.5) < 4 * error
    # Student's intervals of skewed means cover too seldom, least with few rows.
    covered = found["mean"].sel(statistic="coverage").values
    assert covered[0] < 0.93
    assert covered[0] < covered[1]


@pytest.mark.slow
def test_monte_carlo_errors_are_how_much_studies_vary():
    studies = [
        study(exponential, mean_of, {"mean": 1.0}, 20, 30, **{**QUIET, "rng": seed})
        for seed in range(50)
    ]
    together = xr.concat(studies, "study").isel(n=0)
    ratio = together["mean_mcse"].mean("study") / together["mean"].std("study", ddof=1)
    # A standard deviation of 50 studies has an error of 10 %; three of them.
    assert (abs(ratio - 1) < 0.3).all(), ratio.values


@pytest.mark.thorough
def test_samples_depend_on_seed_size_and_number_only():
    few = study(exponential, np.mean, 1.0, 10, 5, **QUIET)
    more = study(exponential, np.mean, 1.0, [10, 20], 8, **QUIET)
    xr.testing.assert_equal(
        few["estimate_estimate"], more["estimate_estimate"].sel(n=[10], replicate=slice(4))
    )
    again = study(exponential, np.mean, 1.0, 10, 5, n_jobs=1, progress=False)
    assert again.attrs["seed"] != few.attrs["seed"]
    assert not again["estimate"].equals(few["estimate"])


@pytest.mark.slow
def test_processes_give_the_same_numbers():
    one = study(exponential, mean_of, {"mean": 1.0}, 10, 20, **QUIET)
    two = study(exponential, mean_of, {"mean": 1.0}, 10, 20, **{**QUIET, "n_jobs": 2})
    xr.testing.assert_identical(one, two)


def test_a_file_is_continued(tmp_path):
    drawn = []

    def draw(n, rng):
        drawn.append(n)
        return rng.normal(size=n)

    path = tmp_path / "study.nc"
    study(draw, mean_of, {"mean": 0.0}, 10, 5, path=path, **QUIET)
    found = study(draw, mean_of, {"mean": 0.0}, [10, 20], 6, path=path, n_jobs=1, progress=False)
    assert drawn == [10] * 6 + [20] * 6
    whole = study(draw, mean_of, {"mean": 0.0}, [10, 20], 6, **QUIET)
    xr.testing.assert_equal(found, whole)
    with pytest.raises(ValueError, match=r"rng must be the seed of .*study.nc, 0; got 1"):
        study(draw, mean_of, {"mean": 0.0}, 10, 5, path=path, **{**QUIET, "rng": 1})


def test_failures_are_counted_and_left_out():
    def fragile(x):
        if x[0] > 1:
            raise ZeroDivisionError("no")
        return x.mean()

    with pytest.warns(
        UserWarning, match="of 40 replicates failed; the first: ZeroDivisionError: no"
    ):
        found = study(exponential, fragile, 1.0, 5, 40, **QUIET)
    failed = found["failure"].values[0] != ""
    estimates = found["estimate_estimate"].values[0]
    assert np.isnan(estimates[failed]).all()
    bias = float(found["estimate"].sel(statistic="bias").item())
    assert bias == pytest.approx(estimates[~failed].mean() - 1)
    with pytest.raises(ValueError, match="all 3 failed: .*no truth|all 3 failed: KeyError"):
        study(exponential, lambda x: {}["no truth"], 1.0, 5, 3, **QUIET)


def test_effects_of_the_package_with_the_truth_of_a_simulator():
    example = rs.simulate.Toy()

    def estimate(X):
        local = rs.local_effects(None, X, jacobian=example.jacobian, features="x1")
        return rs.confint(rs.rhale(local, bins=rs.GivenBins([0, 0.5, 1])))

    found = study(example.sample, estimate, lambda X, e: example.truth(e), 100, 40, **QUIET)
    assert found["effect"].dims == ("n", "statistic", "feature", "bin")
    bias = found["effect"].sel(statistic="bias")
    assert (abs(bias) < 4 * found["effect_mcse"].sel(statistic="bias")).all()
    assert (found["effect"].sel(statistic="coverage") > 0.8).all()
    assert {"heterogeneity", "curve"} <= set(found)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"draw": 1}, TypeError, "draw must be a function; got 1"),
        ({"estimate": None}, TypeError, "estimate must be a function; got None"),
        ({"n": [10, 0]}, ValueError, "n must be at least 1; got 0"),
        ({"replicates": 0}, ValueError, "replicates must be at least 1; got 0"),
        ({"truth": {"median": 1}}, ValueError, "truth must have the name and the shape"),
        ({"estimate": lambda x: xr.DataArray(x[x > 1], dims="row")}, ValueError, "the same labels"),
    ],
)
def test_what_cannot_be(change, error, message):
    arguments = {
        "draw": exponential, "estimate": np.mean, "truth": 1.0, "n": 10, "replicates": 3, **change,
    }  # fmt: skip
    with pytest.raises(error, match=message):
        study(**arguments, **QUIET)


def test_a_file_that_another_process_writes_is_refused(tmp_path):
    path = tmp_path / "study.nc"
    with locked(path), pytest.raises(LockedError, match=r"study\.nc"):
        study(exponential, mean_of, {"mean": 1.0}, 10, 5, path=path, **QUIET)


def test_a_first_sample_that_fails_does_not_end_the_study(tmp_path):
    calls = []

    def fragile(x):
        calls.append(len(x))
        if len(calls) == 1:
            raise ZeroDivisionError("no")
        return x.mean()

    with pytest.warns(UserWarning, match="1 of 4 replicates failed"):
        found = study(exponential, fragile, 1.0, 5, 4, path=tmp_path / "study.nc", **QUIET)
    assert (found["failure"].values[0] != "").tolist() == [True, False, False, False]
