"""Predictions of formula models by their design: the numbers and the errors of statsmodels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf

import rhale_stats as rs

RNG = np.random.default_rng(3)
DATA = pd.DataFrame(
    {
        "x": RNG.gamma(2, size=400),
        "z": RNG.normal(size=400),
        "k": RNG.choice(["a", "b", "c"], 400),
        "years": RNG.uniform(1, 3, 400),
    }
)
DATA["count"] = RNG.poisson(np.exp(0.2 * DATA["x"]))
DATA["kind"] = RNG.integers(0, 3, 400)
DATA["sick"] = RNG.integers(0, 2, 400)
RIGHT = "cr(x, df=3, constraints='center') * C(k) + np.log(x) + Q('z')"
FITS = {
    "OLS": lambda: smf.ols(f"count ~ {RIGHT}", DATA).fit(),
    "GLM": lambda: smf.glm(f"count ~ {RIGHT}", DATA, family=sm.families.Poisson()).fit(),
    "exposure": lambda: smf.glm(
        "count ~ bs(x, df=4) + k", DATA, family=sm.families.Poisson(), exposure=DATA["years"]
    ).fit(),
    "logit": lambda: smf.logit("sick ~ x + z + k", DATA).fit(disp=0),
    "multinomial": lambda: smf.mnlogit("kind ~ x + z", DATA).fit(disp=0),
    "negative binomial": lambda: smf.negativebinomial("count ~ x", DATA).fit(disp=0),
}


@pytest.mark.parametrize("name", FITS)
def test_profiles_are_means_of_the_predictions_of_statsmodels(name):
    fit, rows = FITS[name](), DATA.iloc[::7]
    columns = ["x", "z", "k", "years"]
    made = rs.pdp(fit, rows[columns], features="x", grid={"x": [1.0, 2.0]}, centering="none")
    for place, value in enumerate(made["grid_value"].values.ravel()):
        offset = {"exposure": rows["years"]} if name == "exposure" else {}
        answer = np.asarray(fit.predict(rows.assign(x=value), **offset)).reshape(len(rows), -1)
        found = made["curve"].isel(feature=0, grid=place).values.ravel()
        np.testing.assert_allclose(found, answer.mean(axis=0), rtol=1e-12)


def test_a_level_that_the_fit_does_not_know_is_named():
    fit = smf.ols("count ~ x + C(k)", DATA).fit()
    rows = DATA[["x", "k"]].copy()
    rows.loc[3, "k"] = "d"
    with pytest.raises(rs.ModelError, match="'d' does not match any of the expected levels"):
        rs.pdp(fit, rows, features="x")


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(6))
def test_what_rounding_leaves_of_one_slope_is_no_effect(seed):
    """The derivative of a line is by differences: its error is theirs, not that of a formula."""
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame({"x": rng.uniform(0, 1, 200), "z": 50 * rng.normal(size=200)})
    rows["y"] = 2 * rows["x"] + rows["z"] + rng.normal(0, 2, 200)
    rows["k"] = rng.integers(0, 3, 200)
    for fit in (
        smf.ols("y ~ x + z", rows).fit(),
        smf.glm("y ~ x + z", rows).fit(),
        sm.OLS(rows["y"], rows[["x", "z"]]).fit(),
    ):
        local = rs.local_effects(fit, rows[["x", "z"]])
        spread = np.ptp(local["local_effect"].values, axis=0)
        assert (spread <= 2 * local["local_effect_error"].values).all()
        assert rs.rhale(local)["n_bins"].values.tolist() == [1, 1]
    logit = rs.local_effects(smf.mnlogit("k ~ x + z", rows).fit(disp=0), rows[["x", "z"]])
    assert (logit["local_effect_error"] < 1e-6 * abs(logit["local_effect"]).max()).all()
