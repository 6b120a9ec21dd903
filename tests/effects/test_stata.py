"""Average slopes and their errors by parameters are those that Stata prints."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from numpy.testing import assert_allclose
from statsmodels.genmod import families
from statsmodels.genmod.families import links

import rhale_stats as rs

# mtcars of R (Henderson and Velleman 1981): miles per gallon, horsepower, weight, gearbox, engine,
# carburettors.
CARS = """
21 110 2.62 1 0 4; 21 110 2.875 1 0 4; 22.8 93 2.32 1 1 1; 21.4 110 3.215 0 1 1
18.7 175 3.44 0 0 2; 18.1 105 3.46 0 1 1; 14.3 245 3.57 0 0 4; 24.4 62 3.19 0 1 2
22.8 95 3.15 0 1 2; 19.2 123 3.44 0 1 4; 17.8 123 3.44 0 1 4; 16.4 180 4.07 0 0 3
17.3 180 3.73 0 0 3; 15.2 180 3.78 0 0 3; 10.4 205 5.25 0 0 4; 10.4 215 5.424 0 0 4
14.7 230 5.345 0 0 4; 32.4 66 2.2 1 1 1; 30.4 52 1.615 1 1 2; 33.9 65 1.835 1 1 1
21.5 97 2.465 0 1 1; 15.5 150 3.52 0 0 2; 15.2 150 3.435 0 0 2; 13.3 245 3.84 0 0 4
19.2 175 3.845 0 0 2; 27.3 66 1.935 1 1 1; 26 91 2.14 1 0 2; 30.4 113 1.513 1 1 2
15.8 264 3.17 1 0 4; 19.7 175 2.77 1 0 6; 15 335 3.57 1 0 8; 21.4 109 2.78 1 1 2
"""
VALUES = np.array(CARS.replace(";", " ").split(), dtype=float).reshape(32, 6)
TABLE = pd.DataFrame(VALUES, columns=["mpg", "hp", "wt", "am", "vs", "carb"])

# `margins, dydx(hp)` of Stata 17 after models of hp, wt and am, as published with R's
# marginaleffects: average slope and delta-method standard error, rows fixed.
STATA = {
    "logit": ("vs", families.Binomial(), -0.0060312820, 0.0016998520),
    "Gaussian, log": ("mpg", families.Gaussian(links.Log()), -0.0368628181, 0.0098197859),
    "inverse Gaussian, log": (
        *("mpg", families.InverseGaussian(links.Log())),
        *(-0.0332970751, 0.0088266198),
    ),
    "gamma, inverse": ("mpg", families.Gamma(links.InversePower()), -0.0390928675, 0.0107220101),
    "Poisson, identity": ("carb", families.Poisson(links.Identity()), 0.0134618513, 0.0070162423),
}


# The horsepower has gaps between its values; these slopes are derivatives.
@pytest.mark.filterwarnings("ignore:The output moves in gaps:rhale_stats.JumpWarning")
# Links that allow means out of the range of the family, as Stata does.
@pytest.mark.filterwarnings("ignore:The .* link function does not respect the domain")
@pytest.mark.parametrize("name", STATA)
def test_average_slopes(name):
    outcome, family, slope, error = STATA[name]
    # Only with an identity link the default start is out of range.
    start = [5.0, 0.0, 0.0, 0.0] if name == "Poisson, identity" else None
    fit = smf.glm(f"{outcome} ~ hp + wt + am", TABLE, family=family).fit(
        start_params=start, tol=1e-12, maxiter=500
    )
    X = TABLE[["hp", "wt", "am"]]
    local = rs.local_effects(fit, X, features="hp", method="central_difference")
    found = rs.std_error(rs.rhale(local), local, model=fit, X=X, uncertainty="parameters")
    (line,) = rs.glance(found).to_dict("records")
    assert line["estimate"] == pytest.approx(slope, rel=1e-5)
    # The gamma model of Stata has an error that is 0.05 % smaller, and the same estimate to 7e-7.
    # The reason is not known: with its link observed and expected information are the same.
    assert line["std_error"] == pytest.approx(error, rel=1e-3 if "gamma" in name else 1e-5)
    both = rs.std_error(rs.rhale(local), local, model=fit, X=X)
    assert_allclose(both["average_effect_se_model"], line["std_error"])
