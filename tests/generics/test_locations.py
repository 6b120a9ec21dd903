"""Places of maxima and zeros of results: Fieller, refusals, tables, coverage."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from numpy.testing import assert_allclose
from scipy import stats

import rhale_stats as rs
from tests.arrays.test_locations import fieller

rng = np.random.default_rng(0)
N = 300
X = pd.DataFrame({"x": rng.uniform(-1, 2, N), "g": rng.choice(list("ab"), N)})
DATA = X.assign(y=-((X["x"] - 0.5) ** 2) + rng.normal(size=N))
FIT = smf.ols("y ~ x + I(x**2)", DATA).fit()
MODEL = {"model": FIT, "X": X, "uncertainty": "parameters"}
LOCAL = rs.local_effects(FIT, X, "x")
EFFECT = rs.std_error(rs.rhale(LOCAL), LOCAL, **MODEL)


def expected_ends(level=0.95):
    covariance = FIT.cov_params().to_numpy()[1:, 1:] * np.outer([1, 2], [1, 2])
    slope, bend = FIT.params.iloc[1:]
    quantile = stats.t.ppf((1 + level) / 2, FIT.df_resid)
    return -slope / (2 * bend), fieller(slope, 2 * bend, covariance, quantile)


@pytest.mark.parametrize(
    ("result", "options", "rtol"),
    [
        # Effects are averages along the axis by cells, slopes are of rows.
        (EFFECT, {}, 2e-3),
        (rs.std_error(rs.pdp(FIT, X, "x"), **MODEL), {}, 1e-6),
        # The curve is straight between the edges of cells.
        (EFFECT, {"of": "curve"}, 0.03),
    ],
    ids=["effects", "profile", "curve"],
)
def test_maxima_of_parabolas_have_fiellers_interval(result, options, rtol):
    found = rs.hypotheses(result, "maximum", **options)
    place, ends = expected_ends()
    line = rs.tidy(found).iloc[0]
    assert_allclose(line["estimate"], place, rtol=rtol)
    assert_allclose([line["conf_low"], line["conf_high"]], ends, rtol=rtol)
    assert found["average_ci"].attrs["source"] == "parameters"


def test_standard_errors_are_those_of_the_delta_method():
    line = rs.tidy(rs.hypotheses(EFFECT, "maximum")).iloc[0]
    slope, bend = FIT.params.iloc[1:]
    gradient = np.array([0, -1 / (2 * bend), slope / (2 * bend**2)])
    expected = np.sqrt(gradient @ FIT.cov_params().to_numpy() @ gradient)
    assert_allclose(line["std_error"], expected, rtol=2e-3)


def test_levels_and_tables():
    found = rs.hypotheses(EFFECT, "maximum", level=0.8)
    ends = rs.tidy(found, level=0.8)[["conf_low", "conf_high"]].iloc[0]
    assert_allclose(ends, expected_ends(0.8)[1], rtol=2e-3)
    assert "p_value" not in rs.tidy(found, level=0.8)
    with pytest.raises(ValueError, match=r"level must be that of hypotheses.*0.8; got 0.95"):
        rs.tidy(found, level=0.95)
    assert len(rs.tidy(found)) == 1
    found = rs.hypotheses(EFFECT, "maximum")
    assert "Locations on the effects of x" in str(rs.summary(found))
    assert "Places where the curve turns" in str(rs.summary(found))
    assert rs.confint(found).identical(found)
    rs.plot(found)
    plt.close("all")


def test_zeros_of_a_curve():
    profile = rs.std_error(rs.pdp(FIT, X, "x"), **MODEL)
    found = rs.hypotheses(profile, "zero")
    assert found["term"].values.tolist() == ["zero 1", "zero 2"]
    # Where the prediction is its own mean.
    places = pd.DataFrame({"x": found["average"].values, "g": "a"})
    assert_allclose(FIT.predict(places), FIT.fittedvalues.mean(), atol=3e-3)
    assert (np.diff(found["average_ci"]) > 0).all()
    # Along slopes a zero is an extreme.
    ice = rs.ice(FIT, X, features="x", kind="derivative")
    assert_allclose(rs.hypotheses(ice, "zero")["average"], expected_ends()[0], atol=0.05)


def test_linear_bins_and_constant_ones():
    fixed = rs.rhale(LOCAL, bins=rs.EqualWidthBins(6))
    found = rs.hypotheses(fixed, "maximum")
    # Means of bins lie on the line of the slopes.
    assert_allclose(found["average"], expected_ends()[0], atol=0.02)


@pytest.mark.thorough
def test_refits_have_locations():
    def fit(rows):
        return rs.rhale(smf.ols("y ~ x + I(x**2)", rows).fit(), rows, "x")

    refits = rs.bootstrap_refit(fit, DATA, n_resamples=30, rng=0, progress=False)
    found = rs.hypotheses(refits, "maximum", feature="x")
    assert abs(float(found["average"][0]) - expected_ends()[0]) < 0.1
    low, high = found["average_ci"].values[0]
    assert low < expected_ends()[0] < high


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rs.hypotheses(EFFECT, "minimum"), "effect must have a minimum between -0.99"),
        (lambda: rs.hypotheses(EFFECT, "maximum", margin=1), "margin must be left out for hyp"),
        (
            lambda: rs.hypotheses(rs.averages(FIT, X, "x"), "maximum"),
            "hypothesis='maximum' needs estimates along the axis.*averages",
        ),
        (
            lambda: rs.hypotheses(rs.ale(smf.ols("y ~ x + g", DATA).fit(), X), "zero", feature="g"),
            "feature must have numbers that vary",
        ),
        (
            lambda: rs.hypotheses(
                rs.pdp(smf.ols("y ~ x + g", DATA).fit(), X, "g"), "zero", feature="g"
            ),
            "needs estimates along the axis of a feature of numbers; got the curve of g",
        ),
    ],
)
def test_locations_that_are_none_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_levels_of_profiles_are_compared():
    fit = smf.ols("y ~ x + g", DATA).fit()
    profile = rs.std_error(rs.pdp(fit, X, "g"), model=fit, X=X, uncertainty="parameters")
    line = rs.tidy(rs.hypotheses(profile, "reference")).iloc[0]
    assert line["term"] == "b - a"
    assert_allclose(
        [line["estimate"], line["std_error"]], [fit.params["g[T.b]"], fit.bse["g[T.b]"]]
    )
