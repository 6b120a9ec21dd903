"""Degrees of freedom, covariances and refusals of profiles."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import rhale_stats as rs
from rhale_stats.profiles import inference

N = 24
RNG = np.random.default_rng(4)
X = pd.DataFrame({"a": RNG.normal(size=N), "b": RNG.normal(size=N), "k": RNG.choice(["u", "v"], N)})
GRID = {"a": [-1.0, 0.0, 1.0]}
GROUPS = np.arange(N) // 2
BINS = rs.GivenBins([-9.0, 0.0, 9.0])


def f(X):
    return X["a"] * X["b"] + X["b"] ** 2 * (1 + (X["k"] == "u"))


def ice(**given):
    return rs.ice(f, X, features=["a", "k"], grid=GRID, **given)


def pdp(**given):
    return rs.pdp(f, X, features=["a", "k"], grid=GRID, **given)


def m_plot(**given):
    return rs.m_plot(f, X, features=["a", "k"], bins=BINS, **given)


def test_covariance_of_one_feature(known):
    found = rs.vcov(known, "k")
    np.testing.assert_allclose(found, np.diag([0.0025, 0.0064]))
    assert found.dims == ("grid", "grid_other")
    assert found.name == "covariance"
    assert found.attrs == {
        "long_name": "covariance of the curve",
        "target": "curve",
        "source": "rows",
        "feature": "k",
    }
    np.testing.assert_array_equal(found["grid"], [0, 1])
    with pytest.raises(ValueError, match="of must be 'curve' for profiles.*; got 'effect'"):
        rs.vcov(known, "k", of="effect")


def test_arithmetic_on_a_whole_profile_is_noticed(known):
    twice = known.copy()
    twice["curve_se"] = 2 * known["curve_se"]
    for found in (twice, known.assign(curve_cov=1.001 * known["curve_cov"])):
        with pytest.raises(ValueError, match="effect must hold the numbers that its function"):
            rs.confint(found)
    for bare in (known.drop_vars("curve_se"), known.drop_vars("curve_cov")):
        assert len(rs.glance(bare)) == 3
    turned = known.transpose("grid_other", "grid", "feature")
    np.testing.assert_allclose(rs.confint(turned)["curve_ci"], rs.confint(known)["curve_ci"])


def test_degrees_of_freedom_are_those_of_rows_or_of_the_result(known):
    row = known.isel(feature=0)
    np.testing.assert_array_equal(inference.degrees_of(row), [9, 9, 9])
    of_bins = row.assign(n_effective=("grid", [4.0, 0.5, 1.0]))
    np.testing.assert_array_equal(inference.degrees_of(of_bins), [3, 0, 0])
    every = inference.degrees_of(known)
    np.testing.assert_array_equal(every, [[9] * 3, [8] * 3, [9] * 3])
    own = row.assign(curve_df=("grid", [np.inf, np.nan, 3.5]))
    np.testing.assert_array_equal(inference.degrees_of(own), [np.inf, 0, 3.5])


@pytest.mark.parametrize("scheme", ["multinomial", "bayesian", "poisson"])
@pytest.mark.parametrize("how", ["rows", "strata", "groups", "both"])
@pytest.mark.parametrize("make", [ice, m_plot])
def test_replicates_are_expanded_by_what_was_drawn(make, how, scheme):
    """Degrees of freedom, and the variance of replicates over the unbiased one, of every point."""
    found = make()
    groups = {"groups": GROUPS} if how in ("groups", "both") else {}
    strata = {"strata": GROUPS // 4} if how in ("strata", "both") else {}
    boot = rs.bootstrap(found, n_resamples=2, chains=1, rng=0, scheme=scheme, **groups, **strata)
    made = inference._replicates(found, boot)
    n = np.broadcast_to(found["n_effective"].values.reshape(2, -1), found["curve"].shape)
    degrees, n_strata = np.maximum(n - 1.0, 0), 3 if strata else 1
    n_units = N
    if groups:
        own = float(boot.attrs["units_df"])
        assert own == pytest.approx(11)
        degrees, n, n_units = np.full(n.shape, own - n_strata + 1), own + 1, own + 1
    expected = degrees / (n + 1)
    if scheme != "bayesian":
        expected = np.full(np.shape(expected), 1 - n_strata / n_units if scheme[0] == "m" else 1.0)
    np.testing.assert_allclose(made.degrees, degrees)
    np.testing.assert_allclose(made.shortfall, expected)
    assert made.source == boot.attrs["source"]
    np.testing.assert_array_equal(made.acceleration, boot["curve_acceleration"])
    older = inference._replicates(found, boot.drop_vars("curve_acceleration"))
    assert older.acceleration == 0


def test_bands_share_their_rows_or_have_bins_of_their_own():
    """One quantile for all points of a grid; Student's with those of every bin in M-plots."""
    curve, bins = rs.confband(pdp(), rng=0), rs.confband(m_plot(), rng=0)

    def ratio(found):
        half = np.diff(found["curve_band"].values[0], axis=-1)[:, 0] / 2
        return (half / found["curve_se"].values[0])[: int(found["n_grid"][0])]

    np.testing.assert_allclose(ratio(curve), ratio(curve)[0])
    n = bins["n_obs"].values[0, :2]
    assert n[0] != n[1]
    wide = ratio(bins)
    assert (wide[0] > wide[1]) == (n[0] < n[1])
    # Two bins, all but independent: Sidak's level with the degrees of each.
    sidak = stats.t.ppf(0.5 + 0.95**0.5 / 2, n - 1)
    np.testing.assert_allclose(wide, sidak, rtol=0.1)


def test_errors_of_groups_by_the_rows_that_are_given_or_kept():
    profile, curves = pdp(), ice()
    by_groups = rs.std_error(profile, curves, groups=GROUPS)
    # ICE curves are their own rows; asked for rows again they have those of the rows.
    own = rs.std_error(curves, groups=GROUPS)
    np.testing.assert_allclose(
        own["curve_se"], rs.std_error(pdp(centering="none"), curves, groups=GROUPS)["curve_se"]
    )
    again = rs.std_error(own)
    np.testing.assert_allclose(again["curve_se"], curves["curve_se"])
    assert "n_groups" not in again.attrs
    # Without rows nothing can be made again: the result stays.
    assert rs.std_error(by_groups).identical(by_groups)
    np.testing.assert_allclose(rs.std_error(by_groups, curves)["curve_se"], profile["curve_se"])
    line = rs.Parametric(lambda b, X: b[0] * f(X), [1.0], [[0.01]])
    # Rows asked of the model where none were kept; else the model is not needed.
    asked = rs.std_error(profile, groups=GROUPS, model=line, X=X, uncertainty="rows")
    np.testing.assert_allclose(asked["curve_se"], by_groups["curve_se"], rtol=1e-9)
    given = rs.std_error(profile, curves, groups=GROUPS, model=line, X=X, uncertainty="rows")
    assert given.identical(by_groups)
    kept = rs.std_error(profile, model=line, X=X, uncertainty="rows")
    assert kept.identical(profile)


def test_shap_dependence_takes_groups_and_no_model():
    phi = rs.shap_dependence(None, X[["a"]], shap_values=f(X).to_numpy(), n_grid=4)
    assert rs.std_error(phi).identical(phi)
    grouped = rs.std_error(phi, groups=GROUPS)
    assert grouped.attrs["n_groups"] == 12
    with pytest.raises(ValueError, match="groups must be given for a shap_dependence that has"):
        rs.std_error(grouped)
    line = rs.Parametric(lambda b, X: b[0] * X["a"], [1.0], [[0.01]])
    with pytest.raises(ValueError, match="model must be None for shap_dependence"):
        rs.std_error(phi, model=line, X=X[["a"]], uncertainty="rows")


def test_curves_that_are_not_those_of_the_profile_are_refused():
    profile, curves = pdp(), ice()
    a = {"feature": 0, "grid": 1, "obs": 3}
    for part, good in ((1e-11, True), (1e-7, False)):
        other = curves.copy(deep=True)
        other["ice"][a] += part * float(np.abs(curves["ice"][0]).max()) * N
        if good:
            rs.bootstrap(other, profile, n_resamples=2, chains=1)
            continue
        for sign in (1, -1):
            other["ice"][a] = curves["ice"][a] + sign * part * N * 30
            with pytest.raises(ValueError, match="for feature 'a' their mean is another"):
                rs.bootstrap(other, profile)
    # But for a constant, unless the curve has none.
    higher = curves.assign(ice=curves["ice"] + 5.0)
    assert rs.bootstrap(higher, profile, n_resamples=2, chains=1, rng=0)["curve"].sizes["draw"] == 2
    with pytest.raises(ValueError, match="for feature 'a' their mean is another"):
        rs.bootstrap(higher, pdp(centering="none"))
    slopes = rs.ice(f, X, features="a", grid=GRID, kind="derivative")
    one = rs.pdp(f, X, features="a", grid=GRID)
    for rows, found in ((slopes, one), (ice(), slopes)):
        with pytest.raises(ValueError, match="must both be derivatives, or neither"):
            rs.bootstrap(rows, found)
    assert rs.bootstrap(slopes, slopes, n_resamples=2, chains=1, rng=0)["curve"].notnull().all()
    # Curves below 0 are curves like others.
    lower = rs.ice(lambda X: f(X) - 99, X, features="a", grid=GRID)
    rs.bootstrap(lower, n_resamples=2, chains=1, rng=0)
    # The order of features does not matter.
    turned = curves.isel(feature=[1, 0])
    boots = [rs.bootstrap(one, profile, n_resamples=2, chains=1, rng=0) for one in (curves, turned)]
    np.testing.assert_allclose(boots[0]["curve"], boots[1]["curve"])


def test_rows_of_another_result_are_refused():
    found = m_plot()
    for name, by in (("output_value", 1.0), ("output_value", 1e-6)):
        other = found.copy(deep=True)
        other[name][3] += by
        with pytest.raises(ValueError, match="those of feature 'a' make another curve"):
            rs.bootstrap(found, other)
    close = found.assign(output_value=found["output_value"] * (1 + 1e-12))
    rs.bootstrap(found, close, n_resamples=2, chains=1)
    lower = found.assign(output_value=found["output_value"] - 3.0)
    plain = m_plot(centering="none")
    rs.bootstrap(found, lower, n_resamples=2, chains=1)  # a constant is taken off
    with pytest.raises(ValueError, match="make another curve"):
        rs.bootstrap(plain, plain.assign(output_value=plain["output_value"] - 3.0))
    with pytest.raises(ValueError, match="make another curve"):
        rs.bootstrap(rs.m_plot(f, X, features=["a", "k"], bins=rs.QuantileBins(3)), found)
    phi = rs.shap_dependence(None, X[["a"]], shap_values=f(X).to_numpy(), n_grid=2)
    mixed = phi.assign(output_value=("obs", np.zeros(N)))
    with pytest.raises(ValueError, match="local must be what m_plot returned.*got that of shap_de"):
        rs.bootstrap(rs.m_plot(f, X, features="a", bins=BINS), mixed)


# --- the test of no change ------------------------------------------------------------------------


def test_two_points_are_a_t_test_of_the_differences_of_rows():
    result = rs.wald_test(rs.pdp(f, X, features="a", grid={"a": [-1.0, 2.0]}))
    differences = f(X.assign(a=2.0)) - f(X.assign(a=-1.0))
    expected = stats.ttest_1samp(differences, 0.0)
    np.testing.assert_allclose(result["p_value"], [expected.pvalue], rtol=1e-9)
    np.testing.assert_allclose(result["statistic"], [expected.statistic**2], rtol=1e-9)
    degrees = [float(result[name][0]) for name in ("df", "df_denominator")]
    np.testing.assert_allclose(degrees, [1, N - 1], rtol=1e-12)


def test_a_curve_and_its_rows_have_one_test():
    """ICE curves are not centred: their common shift has no part in the test."""
    of_rows, of_mean = rs.wald_test(ice()), rs.wald_test(pdp())
    for name in ("statistic", "df", "p_value", "size"):
        np.testing.assert_allclose(of_rows[name], of_mean[name], rtol=1e-8, atol=1e-12)


def test_parallel_curves_have_no_test():
    for estimator in (rs.pdp, rs.ice):
        (reason,) = rs.wald_test(estimator(lambda X: X["a"] + X["b"], X, "a"))["reason"].values
        assert reason == inference.PARALLEL


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"null": "constant"}, "null must be 'zero'"),
        ({"method": "wald"}, "method 'wald'"),
    ],
)
def test_other_hypotheses_of_a_curve_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        rs.wald_test(pdp(), **options)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("estimator", "n", "draw"),
    [(rs.pdp, 60, "normal"), (rs.pdp, 60, "exponential"), (rs.m_plot, 300, "exponential")],
)
def test_size_and_power(estimator, n, draw):
    """5 % of true hypotheses are rejected, within three Monte-Carlo errors of 300 samples."""

    def is_rejected(number, slope):
        rng = np.random.default_rng(number)
        noise = rng.normal(size=n) if draw == "normal" else rng.exponential(size=n) - 1
        rows = np.column_stack([rng.normal(size=n), noise])
        profile = estimator(lambda X: X[:, 0] ** 2 * X[:, 1] + slope * X[:, 0], rows, 0)
        return float(rs.wald_test(profile)["p_value"][0]) < 0.05

    size = np.mean([is_rejected(number, 0.0) for number in range(300)])
    assert abs(size - 0.05) < 3 * np.sqrt(0.05 * 0.95 / 300)
    assert np.mean([is_rejected(number, 2.0) for number in range(20)]) >= 0.9
