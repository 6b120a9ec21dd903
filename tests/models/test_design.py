"""What a design without full rank does not identify: averages, effects, and their warnings."""

from __future__ import annotations

import warnings
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from numpy.testing import assert_allclose

import rhale_stats as rs

pytestmark = [
    pytest.mark.filterwarnings("ignore:The design matrix is rank-deficient"),
    pytest.mark.filterwarnings("ignore:Not estimable"),
]
CODINGS = ("Treatment", "Sum", "Helmert")
CELL = "no rows with c = 'b' and g = 'z'"


def factorial(rng, n_factors, n=160):
    """Unbalanced factors with some cells empty, and their names."""
    names = list("cghk")[:n_factors]
    levels = {name: list("pqrs")[: rng.integers(2, 5)] for name in names}
    data = pd.DataFrame({name: rng.choice(own, n) for name, own in levels.items()})
    for _ in range(rng.integers(0, 4)):
        pair = rng.choice(names, 2, replace=False)
        cell = [rng.choice(levels[name]) for name in pair]
        kept = data[~((data[pair[0]] == cell[0]) & (data[pair[1]] == cell[1]))]
        if all(kept[name].nunique() == len(levels[name]) for name in names):
            data = kept
    data = data.reset_index(drop=True).assign(x=rng.normal(size=len(data)))
    return data.assign(y=rng.normal(size=len(data)) + data["x"]), names


def indicators(data, names, cells):
    """All main effects and interactions of pairs, over-parametrised: no coding."""
    sets = [[name] for name in names] + [list(pair) for pair in combinations(names, 2)]
    columns = [np.ones(len(data))]
    for some in sets:
        own = sum((data[name] for name in some[1:]), start=data[some[0]])
        columns += [(own == cell).astype(float) for cell in cells["".join(some)]]
    return np.column_stack([*columns, data["x"]])


@pytest.mark.parametrize(("n_factors", "seed"), [(2, 0), (2, 1), (3, 2), (3, 3), (4, 0)])
def test_what_is_estimable_is_in_the_row_space_and_the_same_by_any_coding(n_factors, seed):
    rng = np.random.default_rng([n_factors, seed])
    data, names = factorial(rng, n_factors)
    cells = {name: sorted(data[name].unique()) for name in names}
    cells |= {a + b: [i + j for i in cells[a] for j in cells[b]] for a, b in combinations(names, 2)}
    design = indicators(data, names, cells)
    rank = np.linalg.matrix_rank(design)
    expected, found = [True], []
    for name in names:
        moved = [indicators(data.assign(**{name: one}), names, cells) for one in cells[name]]
        rows = [(one - moved[0]).mean(axis=0) for one in moved[1:]]
        expected += [np.linalg.matrix_rank(np.vstack([design, one])) == rank for one in rows]
    for _ in range(2):
        terms = [f"C({name}, {rng.choice(CODINGS)})" for name in names]
        fit = smf.ols(f"y ~ ({' + '.join(terms)})**2 + x", data).fit()
        found.append(rs.averages(fit, data[[*names, "x"]]))
        known = np.isfinite(found[-1]["average"].values)
        assert known[:-1].tolist() == expected
        assert known[-1]
        assert np.isfinite(found[-1]["average_se"].values).tolist() == known.tolist()
        assert ("not_estimable" in found[-1].attrs) == (not known.all())
    for name in ("average", "average_se", "average_se_model", "average_cov"):
        assert_allclose(found[0][name], found[1][name], rtol=1e-6, atol=1e-9)


@pytest.fixture(scope="module")
def crossed():
    """Two factors of which one cell is empty, an outcome of each kind."""
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"c": rng.choice(list("ab"), 300), "g": rng.choice(list("xyz"), 300)})
    data = data[~((data["c"] == "b") & (data["g"] == "z"))].reset_index(drop=True)
    n = len(data)
    data["x"] = rng.normal(size=n)
    data["y"] = (data["c"] == "b") + data["x"] + rng.normal(size=n)
    data["k"] = (data["y"] > 0.5).astype(int)
    data["m"] = rng.integers(0, 3, n)
    return data


BFGS = {"method": "bfgs", "maxiter": 500, "gtol": 1e-8}
FITS = {
    "GLM": lambda f, data: smf.glm(f"k ~ {f}", data, family=sm.families.Binomial()).fit(),
    "logit": lambda f, data: smf.logit(f"k ~ {f}", data).fit(disp=0, **BFGS),
    "Poisson": lambda f, data: smf.poisson(f"k ~ {f}", data).fit(disp=0, **BFGS),
    "multinomial": lambda f, data: smf.mnlogit(f"m ~ {f}", data).fit(disp=0, **BFGS),
    "WLS": lambda f, data: smf.wls(f"y ~ {f}", data, weights=1 + data["m"]).fit(),
}


@pytest.mark.parametrize("name", FITS)
def test_models_of_all_kinds_agree_between_codings(crossed, name):
    X, found = crossed[["c", "g", "x"]], []
    for formula in ("C(c) * C(g) + x", "C(c, Sum) * C(g, Helmert) + x"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = FITS[name](formula, crossed)
        found.append(rs.averages(fit, X))
        known = np.atleast_2d(np.isfinite(found[-1]["average_se"].values))
        assert (known == [True, False, True, False, True]).all()
        assert found[-1].attrs["not_estimable"] == CELL
    for one in ("average", "average_se"):
        assert_allclose(found[0][one], found[1][one], rtol=5e-3, atol=2e-4)


def test_every_function_names_the_empty_cell(crossed):
    X = crossed[["c", "g", "x"]]
    fit = smf.ols("y ~ C(c) * C(g) + x", crossed).fit()
    averages = rs.averages(fit, X)
    assert f"not estimable, {CELL}" in str(rs.summary(averages))
    for function in (rs.ale, rs.pdp):
        with pytest.warns(UserWarning, match=f"Not estimable: {CELL}"):
            function(fit, X, features=["g"])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            function(fit, X, features=["x"])
    pdp = rs.std_error(rs.pdp(fit, X, features=["g", "x"]), model=fit, X=X)
    assert pdp["curve_se"].notnull().any("grid").values.tolist() == [False, True]
    assert pdp["curve"].notnull().any("grid").values.tolist() == [False, True]
    local = rs.ale_local_effects(fit, X, features=["g", "x"])
    ale = rs.std_error(rs.ale_from_local(local), local, model=fit, X=X)
    # From x to y there are rows of both; from y to z those with c = b have no prediction.
    assert np.isfinite(ale["effect_se"].sel(feature="g")[:2]).values.tolist() == [True, False]
    assert np.isfinite(ale["effect"].sel(feature="g")[:2]).values.tolist() == [True, False]
    assert ale["curve_se"].sel(feature="x").notnull().any()
    found = rs.explain(fit, X, progress=False)
    assert CELL in found.attrs["notes"]
    answers = found["answers"].to_dataset().sel(feature=["c", "g", "x"])
    assert answers["importance"].isnull().values.tolist() == [True, True, False]
    assert answers["matters"].values.tolist()[:2] == ["cannot tell"] * 2
    assert CELL in str(answers["unreliable"].values[0])


def test_columns_that_depend_on_each_other_are_named(crossed):
    data = crossed.assign(twice=2 * crossed["x"])
    fit = smf.ols("y ~ x + twice + c", data).fit()
    with pytest.warns(UserWarning, match="linearly dependent: 'x', 'twice'"):
        found = rs.averages(fit, data[["x", "twice", "c"]])
    assert np.isfinite(found["average"].values).tolist() == [True, False, False, True]
