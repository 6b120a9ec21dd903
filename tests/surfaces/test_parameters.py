"""Errors of surfaces with the parameters of a fitted model."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from numpy.testing import assert_allclose

import rhale_stats as rs

N = 150
RNG = np.random.default_rng(6)
DATA = pd.DataFrame(
    {"a": RNG.normal(size=N), "b": RNG.uniform(size=N), "c": RNG.choice(list("uvw"), N)}
)
DATA["y"] = (RNG.uniform(size=N) < 1 / (1 + np.exp(-DATA.a * (1 + DATA.b)))).astype(float)
X = DATA[["a", "b", "c"]]
FIT = smf.logit("y ~ a * b + a * C(c)", DATA).fit(disp=0)


def surface(model, pair=("a", "b"), **options):
    return rs.ale2(model, X, pair, bins=rs.QuantileBins(3), progress=False, **options)


def moved(fit, direction):
    inner, out = copy.copy(fit._results), copy.copy(fit)
    inner.params = np.asarray(fit.params) + direction
    object.__setattr__(out, "_results", inner)
    return lambda rows: out.predict(rows)


@pytest.mark.parametrize(("pair", "centering"), [(("a", "b"), "start"), (("c", "a"), "ale")])
def test_errors_of_parameters_are_derivatives_by_brute_force(pair, centering):
    start = surface(FIT, pair, centering=centering)
    found = rs.std_error(start, model=FIT, X=X, uncertainty="parameters")
    values, vectors = np.linalg.eigh(FIT.cov_params())
    change = {"surface": [], "second_effect": []}
    for value, vector in zip(values, vectors.T, strict=True):
        step = 1e-3 * np.sqrt(value) * vector
        sides = [surface(moved(FIT, s * step), pair, centering=centering) for s in (1, -1)]
        for name, parts in change.items():
            upper, lower = (one[name].values.ravel() for one in sides)
            parts.append((upper - lower) / 2e-3)
    for name, se, of in (
        ("surface", "surface_se", "curve"),
        ("second_effect", "second_effect_se", "effect"),
    ):
        covariance = np.einsum("di,dj->ij", change[name], change[name])
        known = found[se].notnull().values.ravel()
        size = np.nanmax(np.diagonal(covariance))
        own = rs.vcov(found, of=of).values.reshape(covariance.shape)
        assert_allclose(own[np.ix_(known, known)], covariance[np.ix_(known, known)],
                        atol=2e-6 * size)  # fmt: skip
        errors = np.sqrt(np.diagonal(covariance)).reshape(found[se].shape)
        there = found[se].notnull().values
        assert_allclose(found[se].values[there], errors[there], atol=1e-5 * np.sqrt(size))
    assert found["surface_se"].attrs["source"] == "parameters"


def test_a_product_has_the_error_of_its_coefficient():
    rows = np.random.default_rng(0).uniform(-1, 1, (60, 2))
    model = rs.Parametric(lambda b, X: X[:, 0] + b[0] * X[:, 0] * X[:, 1], [2.0], [[0.09]])
    start = rs.ale2(model, rows, (0, 1), bins=rs.EqualWidthBins(2), centering="start")
    found = rs.std_error(start, model=model, X=rows)
    edges = [found[f"edge_{side}"].values for side in "ab"]
    area = np.outer(*(one - one[0] for one in edges))
    assert_allclose(found["surface_se_model"], 0.3 * area, atol=1e-9)
    # All rows have one second difference: the rows add nothing.
    assert_allclose(found["surface_se"], found["surface_se_model"], atol=1e-9)
    assert_allclose(found["surface"], 2 * area, atol=1e-9)


@pytest.mark.thorough
def test_parts_add_up_and_everything_afterwards_takes_them():
    start = rs.std_error(surface(FIT))
    found = rs.std_error(start, model=FIT, X=X)
    assert found.attrs["parameters"] == "variances of rows and parameters added"
    for name in ("second_effect", "surface"):
        assert_allclose(found[f"{name}_se_rows"], start[f"{name}_se"])
        total = found[f"{name}_se_rows"] ** 2 + found[f"{name}_se_model"] ** 2
        assert_allclose(found[f"{name}_se"] ** 2, total)
        assert found[f"{name}_se"].attrs["source"] == "rows and parameters"
    done = rs.confband(rs.confint(found), rng=0)
    rows = rs.confband(rs.confint(start), rng=0)
    for name in ("surface_ci", "surface_band", "second_effect_ci", "second_effect_band"):
        assert done[name].attrs["source"] == "rows and parameters"
        wider = (done[name].diff("ci_bound") > rows[name].diff("ci_bound")).values
        assert wider[done[name].diff("ci_bound").values > 1e-9].all()
    assert {"statistic", "p_value"} <= set(rs.tidy(done))
    assert "treat the cells as fixed" in rs.summary(done).as_text()
    variances = np.diagonal(rs.vcov(found).values.reshape(found["surface"].size, -1))
    assert_allclose(np.sqrt(variances), found["surface_se"].values.ravel(), rtol=1e-9)
    assert rs.std_error(found).identical(start)
    assert rs.std_error(start, model=FIT, X=X, uncertainty="rows").identical(start)


def test_tests_and_differences_say_what_they_hold():
    found = rs.std_error(surface(FIT), model=FIT, X=X)
    with pytest.raises(ValueError, match="a surface without the parameters of the model"):
        rs.wald_test(found)
    other = X.set_axis(range(1000, 1000 + N))
    apart = rs.std_error(rs.ale2(FIT, other, ("a", "b"), bins=edges_of(found)))
    compared = rs.compare(found, apart, rng=0)
    assert compared.attrs["source"] == "rows and parameters against rows, independent"
    with pytest.raises(ValueError, match="pairs are of rows alone"):
        rs.compare(found, surface(FIT), rng=0)
    with pytest.raises(ValueError, match="parameters of one model: the difference of two surfaces"):
        rs.compare(found, found, rng=0)


def edges_of(surface):
    return tuple(rs.GivenBins(surface[f"edge_{side}"].values) for side in "ab")


def test_weights_missing_values_and_outputs():
    gaps = X.assign(c=X["c"].mask(RNG.uniform(size=N) < 0.1))
    two = rs.Parametric(
        lambda b, rows: np.column_stack(
            [rows["a"] * b[0] * (rows["c"] == "v"), b[1] * rows["a"] ** 2]
        ),
        [1.0, 1.0],
        np.diag([0.04, 0.01]),
    )
    weights = RNG.uniform(0.5, 2, N)
    start = rs.ale2(two, gaps, ("a", "c"), bins=rs.QuantileBins(3), missing="drop",
                    weights=weights, centering="start")  # fmt: skip
    found = rs.std_error(start, model=two, X=gaps)
    first = found.isel(output=0)
    assert_allclose(first["surface_se_model"], 0.2 * abs(first["surface"]), atol=1e-9)
    assert_allclose(found["surface_se_model"].isel(output=1), 0, atol=1e-9)


def test_what_does_not_belong_together_is_refused():
    start = surface(FIT)
    other = smf.logit("y ~ a", DATA).fit(disp=0)
    with pytest.raises(ValueError, match="model and X must be those that the result was made from"):
        rs.std_error(start, model=other, X=X)
    with pytest.raises(ValueError, match="X must hold the rows of the surface; got 50"):
        rs.std_error(start, model=FIT, X=X[:50])


@pytest.mark.thorough
def test_groups_of_rows_beside_parameters():
    """The variance of the rows is that of groups; that of the parameters is the same."""
    start, groups = surface(FIT), np.arange(N) // 4
    both = rs.std_error(start, model=FIT, X=X, groups=groups)
    alone, rows = rs.std_error(start, groups=groups), rs.std_error(start, model=FIT, X=X)
    np.testing.assert_allclose(both["surface_se_rows"], alone["surface_se"], rtol=1e-10)
    np.testing.assert_allclose(both["surface_se_model"], rows["surface_se_model"], rtol=1e-10)
    assert both["surface_se"].attrs["source"] == f"rows in {-(-N // 4)} groups and parameters"


@pytest.mark.thorough
def test_what_errors_by_parameters_leave_behind_is_dropped():
    start = rs.std_error(surface(FIT))
    both = rs.confband(rs.confint(rs.std_error(start, model=FIT, X=X)), rng=0)
    again = rs.std_error(both)
    left = {str(name) for name in both} - {str(name) for name in again}
    ends = ("_se_rows", "_se_model", "_df", "_change", "_ci", "_band")
    assert left == {str(name) for name in both if str(name).endswith(ends)}
    assert not {"parameters", "fitted_model"} & set(again.attrs)
    # Groups leave degrees of freedom and intervals behind, rows do not.
    grouped = rs.confint(rs.std_error(start, groups=np.arange(N) // 3))
    assert {"second_effect_df", "surface_ci"} <= set(grouped)
    assert not {"second_effect_df", "surface_ci"} & set(rs.std_error(grouped))
    assert "surface_ci" in rs.std_error(rs.confint(start))


@pytest.mark.thorough
@pytest.mark.parametrize("uncertainty", ["both", "parameters"])
def test_variances_and_degrees_by_definition(uncertainty):
    """Welch and Satterthwaite of rows and a model of nine degrees of freedom."""
    line = rs.Parametric(lambda b, X: b[0] * X["a"] * X["b"] * X["b"], [2.0], [[0.25]])
    start = rs.std_error(surface(line))
    found = rs.std_error(start, model=line, X=X, uncertainty=uncertainty)
    for name in ("second_effect", "surface"):
        rows = start[f"{name}_se"].values
        # Proportional to the coefficient.
        model = np.where(np.isnan(rows), np.nan, 0.25 * np.abs(start[name].values))
        assert_allclose(found[f"{name}_se_rows"], rows)
        assert_allclose(
            found[f"{name}_se_model"], np.where(np.isnan(rows), np.nan, model), atol=1e-9
        )
        counted = 0 if uncertainty == "parameters" else rows**2
        assert_allclose(found[f"{name}_se"] ** 2, counted + model**2, atol=1e-9)
        assert found[f"{name}_df"].attrs["units"] == "1"
        change = found[f"{name}_change"].values
        assert len(change) == 1
        assert_allclose(np.abs(change[0]), 0.25 * np.abs(start[name].values), atol=1e-9)
    source = {"both": "rows and parameters", "parameters": "parameters"}[uncertainty]
    assert found["surface_se"].attrs["source"] == source
    assert found["surface_se_rows"].attrs["source"] == "rows"
    n = start["n_obs"].values
    if uncertainty == "both":
        v, m = start["second_effect_se"].values ** 2, (0.25 * start["second_effect"].values) ** 2
        # That of the parameters is known, with infinitely many degrees of freedom.
        known = (n > 1) & (v > 0)
        expected = (v + m) ** 2 * (n - 1) / np.where(known, v, 1) ** 2
        assert_allclose(found["second_effect_df"].values[known], expected[known], rtol=1e-6)
        covariance = rs.vcov(found).values.reshape(found["surface"].size, -1)
        change = found["surface_change"].values.reshape(1, -1)
        own = rs.vcov(start).values.reshape(covariance.shape)
        assert_allclose(covariance, own + change.T @ change, atol=1e-12)


@pytest.mark.thorough
def test_missing_rows_and_levels_are_those_of_the_surface():
    gaps = X.assign(c=X["c"].mask(np.arange(N) % 9 == 0))
    line = rs.Parametric(
        lambda b, X: b[0] * X["a"] * X["c"].map({"u": 0.0, "v": 1.0, "w": 3.0}).fillna(5.0),
        [2.0], [[0.25]],
    )  # fmt: skip
    bins = rs.QuantileBins(3)
    for missing, weights in (("bin", None), ("drop", None), ("drop", np.arange(N) % 3 + 1.0)):
        for kind in ("precision", "frequency"):
            given = {} if weights is None else {"weights": weights, "weight_kind": kind}
            order = ["missing", "w", "u", "v"] if missing == "bin" else ["w", "u", "v"]
            start = rs.ale2(line, gaps, ("a", "c"), bins=bins, missing=missing, order=order,
                            **given)  # fmt: skip
            found = rs.std_error(start, model=line, X=gaps)
            assert_allclose(found["surface_se_model"], 0.25 * np.abs(start["surface"]), atol=1e-9)
