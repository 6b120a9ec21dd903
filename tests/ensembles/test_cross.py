"""Cross-fitting: held-out rows, by hand, beside least squares, coverage."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import rhale_stats as rs
from rhale_stats.ensembles.labelled import error_of
from rhale_stats.ensembles.refits import RefitTable
from rhale_stats.schema import validation

QUIET = {"n_jobs": 1, "progress": False, "rng": 0}
FEATURES = ["a", "b"]


def table(n=150, seed=0, interaction=1.0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 2)), columns=FEATURES)
    mean = X["a"] + 2 * X["b"] + interaction * X["a"] * X["b"]
    return X.assign(y=mean + rng.normal(size=n), row=np.arange(float(n)))


def fit(train):
    """Least squares with an interaction."""
    a, b = train["a"].to_numpy(), train["b"].to_numpy()
    design = np.column_stack([np.ones(len(a)), a, b, a * b])
    return np.linalg.lstsq(design, train["y"].to_numpy(), rcond=None)[0]


def estimate(coefficients, rows):
    """The effect of ``a`` in one bin: its coefficient, and the mean of the interaction."""
    slope = coefficients[1] + coefficients[3] * rows["b"].to_numpy()
    jacobian = np.column_stack([slope, np.zeros(len(rows))])
    local = rs.local_effects(None, rows[FEATURES], jacobian=jacobian, features="a", progress=False)
    return rs.rhale(local, bins=rs.EqualWidthBins(1), weighting="rows")


@pytest.mark.thorough
def test_members_are_of_rows_that_the_model_has_not_seen():
    data, seen = table(53), []

    def fit_seen(train):
        return set(train["row"])

    def estimate_seen(model, rows):
        seen.append((model, set(rows["row"])))
        return estimate([0.0, 1.0, 0.0, 1.0], rows)

    found = rs.cross_effects(fit_seen, estimate_seen, data, n_folds=4, n_repeats=2, **QUIET)
    # All rows first, for the grid; then own rows, and those of the fold before.
    assert seen[0] == (set(data["row"]), set(data["row"]))
    own, other = seen[1::2], seen[2::2]
    assert len(own) == len(other) == 8
    for model, rows in own:
        assert model == set(data["row"]) - rows
    for repeat in (own[:4], own[4:]):
        assert_array_equal(np.sort(np.concatenate([list(rows) for _, rows in repeat])), data["row"])
    # The model of a fold, on the rows of the fold before it in the ring.
    before = [own[number][1] for number in (3, 0, 1, 2, 7, 4, 5, 6)]
    assert [rows for _, rows in other] == before
    assert_array_equal(found["n_held_out"].values.ravel(), [len(rows) for _, rows in own])
    assert_array_equal(found["n_held_out"] + found["n_train"], 53)
    # Every model says the same of the same rows.
    assert_allclose(found["average_effect_other_model"], found["average_effect"])
    assert_allclose(error_of(found, "average_effect").model, 0)


@pytest.mark.thorough
def test_estimate_and_error_by_hand():
    data = table()
    found = rs.cross_effects(fit, estimate, data, n_folds=4, n_repeats=3, **QUIET)
    values, weight = found["average_effect"].values[..., 0], found["n_held_out"].values
    assert_allclose(found["average_effect_estimate"], (values * weight).sum() / weight.sum())
    other = found["average_effect_other_model"].values[..., 0]
    rows = (found["average_effect_se_rows"].values ** 2).mean() / 4
    model = 9 / 4 * ((values - other) ** 2).mean() / 2
    error = error_of(found, "average_effect")
    assert_allclose(error.rows, rows)
    assert_allclose(error.model, model)
    assert_allclose(error.variance, rows + model)
    degrees = (rows + model) ** 2 / (rows**2 / 149 + model**2 / (3 * 8 / 3))
    assert_allclose(error.degrees, degrees)


@pytest.mark.thorough
def test_the_corrected_variance_by_hand():
    data = table()
    found = rs.cross_effects(
        fit, estimate, data, n_folds=3, n_repeats=2, variance="nadeau-bengio", **QUIET
    )
    assert not [name for name in found.variables if str(name).endswith("_other_model")]
    error = error_of(found, "average_effect")
    variance = found["average_effect"].values.var(ddof=1)
    assert_allclose(error.variance, (1 / 6 + 1 / 2) * variance)
    assert_allclose(error.degrees, 5)
    assert_allclose(error.rows, (found["average_effect_se_rows"] ** 2).mean() / 3)
    # The same folds as with the other variance.
    other = rs.cross_effects(fit, estimate, data, n_folds=3, n_repeats=2, **QUIET)
    assert_array_equal(found["curve"], other["curve"])


@pytest.mark.thorough
def test_errors_are_those_of_least_squares():
    """Without an interaction all of the error is the model's."""
    data = table(400, interaction=0.0)

    def additive(train):
        a, b = sm.OLS(train["y"], sm.add_constant(train[FEATURES])).fit().params[FEATURES]
        return [0.0, a, b, 0.0]

    whole = sm.OLS(data["y"], sm.add_constant(data[FEATURES])).fit(cov_type="HC0")
    found = rs.cross_effects(additive, estimate, data, n_folds=5, n_repeats=8, **QUIET)
    error = error_of(found, "average_effect")
    assert_allclose(error.rows, 0, atol=1e-20)
    assert_allclose(error.degrees, 8 * 10 / 3)
    # 1 / sqrt(2 * 8 * 10 / 3) = 14 % of Monte-Carlo error, twice.
    assert np.sqrt(error.variance[0]) == pytest.approx(whole.bse["a"], rel=0.28)
    expected = pytest.approx(whole.params["a"], abs=0.2 * whole.bse["a"])
    assert found["average_effect_estimate"].item() == expected


@pytest.mark.slow
def test_the_same_seed_gives_the_same_whatever_the_processes(tmp_path, monkeypatch):
    # As in the other processes, where nothing is set for these tests.
    monkeypatch.setattr(validation, "INSIDE", validation.INSIDE[:1])
    # By nothing of this module: the processes would import all that it imports.
    data = np.random.default_rng(0).normal(size=(40, 2))
    bins, line = rs.EqualWidthBins(1), np.polyfit
    options = {"n_folds": 3, "n_repeats": 2, "n_grid": 3, "rng": 1, "progress": False}

    def fit_line(train):
        return line(train[:, 0], train[:, 1], 1)[0]

    def of_line(slope, rows):
        return rs.rhale(rs.local_effects(lambda X: slope * X[:, 0], rows[:, :1]), bins=bins)

    one = rs.cross_effects(fit_line, of_line, data, n_jobs=1, **options)
    xr.testing.assert_identical(one, rs.cross_effects(fit_line, of_line, data, n_jobs=2, **options))
    assert one.attrs["seed"] == 1
    one.to_netcdf(tmp_path / "one.nc", engine="h5netcdf")
    with xr.open_dataset(tmp_path / "one.nc", engine="h5netcdf") as back:
        xr.testing.assert_identical(back.load(), one)


def test_groups_and_strata_are_held_out_evenly():
    data = table(90)
    groups, strata, held_out = np.arange(90) // 3, np.arange(90) // 45, []

    def noted(model, rows):
        held_out.append(rows["row"].to_numpy().astype(int))
        return estimate(model, rows)

    found = rs.cross_effects(
        fit,
        noted,
        data,
        n_repeats=1,
        groups=groups,
        strata=strata,
        variance="nadeau-bengio",
        **QUIET,
    )
    for rows in held_out[1:]:
        assert_array_equal(np.bincount(groups[rows], minlength=30) % 3, 0)
        assert_array_equal(np.bincount(strata[rows]), [9, 9])
    assert found.attrs["source"] == "cross-fitting, groups of rows"
    assert (found.attrs["n_units"], found.attrs["n_strata"]) == (30, 2)


@pytest.mark.thorough
def test_the_part_of_groups_comes_from_the_folds():
    data = table(90).loc[np.repeat(np.arange(30), 3)].reset_index(drop=True)
    found = rs.cross_effects(fit, estimate, data, n_repeats=6, groups=data["row"], **QUIET)
    values = found["average_effect"].values[..., 0]
    other = found["average_effect_other_model"].values[..., 0]
    of_models = ((values - other) ** 2).mean() / 2
    error = error_of(found, "average_effect")
    assert_allclose(error.rows, (values.var(axis=1, ddof=1).mean() - of_models) / 5)
    # Rows that are there three times are no more than one: errors by rows would be too small.
    assert error.rows[0] > 1.5 * (found["average_effect_se_rows"] ** 2).mean().item() / 5


def test_fits_that_fail_are_left_out():
    data = table(60)

    def sometimes(train):
        if 0.0 not in set(train["row"]):
            raise RuntimeError("no first row")
        return fit(train)

    with pytest.warns(UserWarning, match=r"2 of 10 fits failed .*: RuntimeError: no first row"):
        found = rs.cross_effects(sometimes, estimate, data, n_repeats=2, **QUIET)
    assert_array_equal(found["failed"].sum("draw"), [1, 1])
    assert_array_equal(found["average_effect"].isnull().squeeze(), found["failed"])
    # Of the fold before, the other model is the one that failed.
    lost = found["average_effect_other_model"].isnull().squeeze()
    assert_array_equal(lost.sum("draw"), [2, 2])
    error = error_of(found, "average_effect")
    assert np.isfinite(error.variance).all()
    assert found["average_effect_estimate"].notnull().all()


@pytest.mark.thorough
def test_ends_that_few_folds_reach_are_unknown():
    data = table(60)
    found = rs.cross_effects(fit, estimate, data, n_repeats=2, **QUIET)
    known = found["curve"].notnull().sum(("chain", "draw"))
    assert (known < 5).any()
    assert_array_equal(found["curve_estimate"].notnull(), known >= 5)


def test_unusable_arguments():
    data = table(20)
    with pytest.raises(ValueError, match="n_folds must not exceed the number of rows .*; got 21 f"):
        rs.cross_effects(fit, estimate, data, n_folds=21)
    with pytest.raises(ValueError, match="the number of groups of data; got 5 for 2"):
        rs.cross_effects(fit, estimate, data, groups=np.arange(20) % 2)
    with pytest.raises(ValueError, match="variance must be one of .*; got 'bootstrap'"):
        rs.cross_effects(fit, estimate, data, variance="bootstrap")
    with pytest.raises(TypeError, match=r"estimate must take two arguments, .* rows: ale"):
        rs.cross_effects(fit, lambda rows: rows, data)
    with pytest.raises(TypeError, match="what estimate returns must be .*; got ndarray"):
        rs.cross_effects(fit, lambda model, rows: model, data)
    with pytest.raises(ValueError, match="all 4 failed: ZeroDivisionError"):
        rs.cross_effects(
            lambda train: 1 / (len(train) - 10), lambda model, rows: estimate(fit(rows), rows),
            data, n_folds=2, n_repeats=2, **QUIET,
        )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("interaction", "noise", "corrected"),
    # Coverage of the corrected variance: its error is too small for the model's part.
    [(0.0, 1.0, (0.4, 0.65)), (1.0, 1.0, (0.8, 0.95)), (3.0, 0.5, (0.92, 0.98))],
)
def test_coverage_of_the_true_effect(interaction, noise, corrected):
    """Of least squares whose effect is 1: the model's error alone, both, mostly that of rows."""
    rng = np.random.default_rng(0)
    covered = np.array([_covers(rng, interaction, noise) for _ in range(500)]).mean(axis=0)
    # A Monte-Carlo error of 1 point, three times; models are fitted to 160 of 200 rows.
    assert 0.92 <= covered[0] <= 0.99
    assert corrected[0] <= covered[1] <= corrected[1]


def _covers(rng, interaction, noise, n_folds=5, n_repeats=3):
    """Whether the intervals by both variances contain the effect, 1, of the rows of one sample."""
    a, b = rng.normal(size=(2, 200))
    y = a + 2 * b + interaction * a * b + noise * rng.normal(size=200)
    data = np.column_stack([a, b, y])
    own, other, of_rows = np.zeros((3, n_repeats, n_folds))
    for repeat in range(n_repeats):
        folds = RefitTable.read(data, None, None).folds(n_folds, rng)
        models = [_least_squares(np.delete(data, rows, axis=0)) for rows in folds]
        for fold, rows in enumerate(folds):
            effects = [models[one] @ [np.ones(40), b[rows]] for one in (fold, (fold + 1) % n_folds)]
            own[repeat, fold], other[repeat, fold] = np.mean(effects, axis=1)
            of_rows[repeat, fold] = np.var(effects[0], ddof=1) / 40
    members = xr.Dataset(
        {
            "effect": (("chain", "draw"), own),
            "effect_other_model": (("chain", "draw"), other),
            "effect_se_rows": (("chain", "draw"), np.sqrt(of_rows)),
        },
        attrs={
            "n_folds": n_folds,
            "n_repeats": n_repeats,
            "n_units": 200,
            "source": "",
            "test_over_train": 0.25,
        },
    )
    found = []
    for variance in ("jackknife", "nadeau-bengio"):
        error = error_of(members.assign_attrs(variance=variance), "effect")
        half = stats.t.ppf(0.975, error.degrees) * np.sqrt(error.variance)
        found.append(abs(own.mean() - 1) <= half)
    return found


def _least_squares(rows):
    a, b, y = rows.T
    design = np.column_stack([np.ones(len(a)), a, b, a * b])
    return np.linalg.lstsq(design, y, rcond=None)[0][[1, 3]]
