"""Errors of profiles by groups of rows, and with the parameters of a fitted model."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import rhale_stats as rs
from rhale_stats.models.parametric import parametric
from tests.helpers import in_turn

N = 120
RNG = np.random.default_rng(3)
DATA = pd.DataFrame(
    {"a": RNG.normal(size=N), "b": RNG.uniform(size=N), "c": RNG.choice(list("uvw"), N)}
)
DATA["y"] = (RNG.uniform(size=N) < 1 / (1 + np.exp(-DATA.a * (1 + DATA.b)))).astype(float)
X = DATA[["a", "b", "c"]]
FIT = smf.logit("y ~ a * b + C(c)", DATA).fit(disp=0)
GROUPS = np.arange(N) // 4
PROFILES = {
    "pdp": lambda model, **k: rs.pdp(model, X, n_grid=5, **k),
    "ice": lambda model, **k: rs.ice(model, X, n_grid=5, kind="centered", **k),
    "m_plot": lambda model, **k: rs.m_plot(model, X, bins=rs.QuantileBins(4), **k),
}
CENTERINGS = ("mean", "start", "integral")


def moved(fit, direction, size):
    """The results with other parameters."""
    inner, out = copy.copy(fit._results), copy.copy(fit)
    inner.params = np.asarray(fit.params) + size * direction
    object.__setattr__(out, "_results", inner)
    return lambda rows: out.predict(rows)


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "centering"), in_turn(PROFILES, CENTERINGS))
def test_errors_of_parameters_are_derivatives_by_brute_force(name, centering):
    profile = PROFILES[name](FIT, centering=centering)
    found = rs.std_error(profile, model=FIT, X=X, uncertainty="parameters")
    values, vectors = np.linalg.eigh(FIT.cov_params())
    change = []
    for value, vector in zip(values, vectors.T, strict=True):
        step = 1e-3 * np.sqrt(value)
        upper, lower = (
            PROFILES[name](moved(FIT, vector, sign * step), centering=centering)["curve"].values
            for sign in (1, -1)
        )
        change.append((upper - lower) / 2e-3)
    covariance = np.einsum("dfi,dfj->fij", change, change)
    assert_allclose(found["curve_cov"], covariance, rtol=1e-4, atol=1e-9)
    assert_allclose(found["curve_se"], found["curve_se_model"])
    assert found["curve_se"].attrs["source"] == "parameters"
    assert np.isinf(found["curve_df"].values[np.isfinite(found["curve"].values)]).all()


def test_the_slope_of_a_line_has_its_textbook_variance():
    line = rs.Parametric(lambda b, X: X @ b, [2.0, -1.0], [[0.09, 0.01], [0.01, 0.04]])
    rows = np.random.default_rng(0).normal(size=(50, 2))
    curve = rs.pdp(line, rows, grid={"x0": [-1.0, 0.0, 2.0], "x1": [0.0, 1.0]}, centering="start")
    found = rs.std_error(curve, model=line, X=rows)
    # Two points apart by d differ by d times the slope; the rows play no part.
    assert_allclose(found["curve_se"].values, [[0, 0.3, 0.9], [0, 0.2, np.nan]], atol=1e-10)
    assert_allclose(found["curve_se_rows"].values[0], 0, atol=1e-12)
    table = rs.tidy(found)
    at_one = table[(table["term"] == "x1") & (table["x"] == 1.0)].iloc[0]
    assert_allclose(at_one["statistic"], -5.0, rtol=1e-8)
    assert_allclose(at_one["p_value"], 2 * stats.norm.sf(5.0), rtol=1e-6)
    at_start = table[(table["term"] == "x1") & (table["x"] == 0.0)].iloc[0]
    assert np.isnan(at_start["p_value"])


@pytest.mark.thorough
@pytest.mark.parametrize("centering", [*CENTERINGS, "none"])
def test_rows_are_those_of_the_profile_itself(centering):
    for make in (PROFILES["pdp"], PROFILES["m_plot"]):
        profile = make(FIT, centering=centering)
        found = rs.std_error(profile, model=FIT, X=X)
        assert_allclose(found["curve_se_rows"], profile["curve_se"], rtol=1e-9)
        assert found["curve_se"].attrs["source"] == "rows and parameters"
        assert rs.std_error(profile, model=FIT, X=X, uncertainty="rows").identical(profile)


def test_weights_take_the_rows_of_ice():
    for kind in ("precision", "frequency"):
        weights = {"weights": RNG.integers(1, 4, N), "weight_kind": kind}
        profile = rs.pdp(FIT, X, n_grid=4, **weights)
        curves = rs.ice(FIT, X, n_grid=4, **weights)
        found = rs.std_error(profile, curves, model=FIT, X=X)
        assert_allclose(found["curve_se_rows"], profile["curve_se"], rtol=1e-9)
        with pytest.raises(ValueError, match="local must be given for a profile with weights"):
            rs.std_error(profile, model=FIT, X=X)
    # Repeated rows.
    times = np.repeat(np.arange(N), weights["weights"])
    more = rs.std_error(
        rs.pdp(FIT, X.iloc[times], grid={"a": [-1.0, 0.0, 1.0]}, features=["a"]),
        model=FIT,
        X=X.iloc[times],
    )
    grid = {"grid": {"a": [-1.0, 0.0, 1.0]}, "features": ["a"], **weights}
    once = rs.std_error(rs.pdp(FIT, X, **grid), rs.ice(FIT, X, kind="centered", centering="mean",
                        **grid), model=FIT, X=X)  # fmt: skip
    for name in ("curve_se", "curve_se_rows", "curve_se_model"):
        assert_allclose(more[name], once[name], rtol=1e-8)


@pytest.mark.thorough
@pytest.mark.parametrize("centering", [*CENTERINGS, "none"])
def test_groups_of_one_row_are_rows(centering):
    for make in (PROFILES["m_plot"], lambda fit, **k: rs.pdp(fit, X, n_grid=5, **k)):
        profile = make(FIT, centering=centering)
        given = () if "output_value" in profile else (rs.ice(FIT, X, n_grid=5),)
        found = rs.std_error(profile, *given, groups=np.arange(N))
        # The groups' means of an M-plot have N - 1 degrees of freedom, where rows count as N.
        rtol = 1e-9 if given or centering != "mean" else 1 / N
        assert_allclose(found["curve_se"], profile["curve_se"], rtol=rtol)
        assert found["curve_se"].attrs["source"] == f"rows in {N} groups"


@pytest.mark.thorough
def test_groups_are_means_of_groups_of_equal_size():
    profile, curves = rs.pdp(FIT, X, n_grid=5, centering="none"), rs.ice(FIT, X, n_grid=5)
    found = rs.std_error(profile, curves, groups=GROUPS)
    values, n = curves["ice"].transpose("feature", "grid", "obs").values, GROUPS.max() + 1
    means = np.stack([values[..., group == GROUPS].mean(axis=-1) for group in range(n)])
    own = np.std(means, axis=0, ddof=1) / np.sqrt(n)
    assert_allclose(found["curve_se"], own, rtol=1e-10)
    assert_allclose(found["curve_df"].values[0], n - 1, rtol=1e-10)
    # From the rows asked of the model anew they are the same.
    again = rs.std_error(profile, groups=GROUPS, model=FIT, X=X)
    assert_allclose(again["curve_se_rows"], found["curve_se"], rtol=1e-9)


@pytest.mark.parametrize(("name", "centering"), [("pdp", "mean"), ("m_plot", "none")])
@pytest.mark.slow
def test_both_is_the_infinitesimal_jackknife_of_the_whole_analysis(name, centering):
    """Every group a little heavier in the fit and in the profile: derivatives by groups."""
    size, n_groups = 1e-4, GROUPS.max() + 1
    fixed = {"grid": {"a": [-1.0, 0.0, 1.0]}} if name == "pdp" else {"bins": BINS}
    make = {"pdp": rs.pdp, "m_plot": rs.m_plot}[name]

    def estimate(weight):
        # Logistic regression weighted by Newton steps, from the fit without weights.
        design, b = FIT.model.exog, np.asarray(FIT.params)
        for _ in range(8):
            p = 1 / (1 + np.exp(-design @ b))
            score = design.T @ (weight * (DATA.y - p))
            b = b + np.linalg.solve(design.T @ ((weight * p * (1 - p))[:, None] * design), score)
        apart = moved(FIT, b - np.asarray(FIT.params), 1.0)
        found = make(apart, X, features=["a"], centering=centering, weights=weight, **fixed)
        return found["curve"].values[0]

    start = make(FIT, X, features=["a"], centering=centering, **fixed)
    found = rs.std_error(start, model=FIT, X=X, groups=GROUPS)
    psi = []
    for group in range(n_groups):
        upper, lower = (1 + sign * size * (group == GROUPS) for sign in (1, -1))
        psi.append((estimate(upper) - estimate(lower)) / (2 * size))
    variance = np.sum(np.square(psi), axis=0) * n_groups / (n_groups - 1)
    # Bins have groups of their own: their corrections differ from that of all rows.
    rtol = 1e-4 if name == "pdp" else 0.03
    assert_allclose(found["curve_se"].values[0] ** 2, variance, rtol=2 * rtol)
    assert found.attrs["parameters"] == "influences of every row on estimates and parameters added"


BINS = rs.GivenBins([-4.0, -0.5, 0.5, 4.0])


def test_everything_afterwards_takes_these_errors():
    profile = rs.std_error(rs.pdp(FIT, X, n_grid=5), model=FIT, X=X)
    assert_allclose(
        np.sqrt(np.diagonal(rs.vcov(profile, "a"))), profile["curve_se"].values[0], rtol=1e-10
    )
    done = rs.confband(rs.confint(profile), rng=0)
    half = np.diff(done["curve_ci"].values, axis=-1)[..., 0] / 2
    student = stats.t.ppf(0.975, profile["curve_df"].values)
    assert_allclose(half, student * profile["curve_se"].values, rtol=1e-9)
    width = np.diff(done["curve_band"].values, axis=-1)[..., 0] / 2
    there = profile["curve_se"].values > 0
    assert (width[there] > half[there]).all()
    for name in ("curve_ci", "curve_band"):
        assert done[name].attrs["source"] == "rows and parameters"
    text = rs.summary(done, "a").as_text()
    assert "rows and parameters" in text
    assert "treat the grid as fixed" in text
    assert {"statistic", "p_value"} <= set(rs.tidy(done))
    assert "statistic" not in rs.tidy(rs.pdp(FIT, X, n_grid=5))
    axes = np.atleast_1d(rs.plots.profile(done, "a"))
    labels = [text for ax in axes for text in ax.get_legend_handles_labels()[1]]
    assert any("rows and parameters" in label for label in labels)
    other = rs.std_error(rs.pdp(FIT, X, n_grid=5), model=FIT, X=X, uncertainty="parameters")
    with pytest.raises(ValueError, match="parameters of one model: the difference of two profiles"):
        rs.compare(done, other, rng=0)
    compared = rs.compare(done, rs.pdp(FIT, X, n_grid=5), rng=0)
    assert compared.attrs["source"] == "rows and parameters against rows, independent"


@pytest.mark.thorough
def test_kept_rows_give_the_errors_of_rows_back():
    curves = rs.ice(FIT, X, n_grid=4)
    found = rs.std_error(rs.std_error(curves, model=FIT, X=X, groups=GROUPS))
    assert_allclose(found["curve_se"], curves["curve_se"], rtol=1e-9)
    assert "parameters" not in found.attrs
    assert "n_groups" not in found.attrs
    assert "curve_se_model" not in found


def test_several_outputs_and_scales_have_errors_of_their_own():
    two = rs.Parametric(
        lambda b, X: 1 / (1 + np.exp(-np.column_stack([X[:, 0] * b[0], X[:, 1] * b[1]]))),
        [1.0, 0.5],
        np.diag([0.04, 0.01]),
    )
    rows = np.random.default_rng(1).normal(size=(40, 2))
    options = {"n_grid": 3, "centering": "none"}
    found = rs.std_error(rs.pdp(two, rows, **options), model=two, X=rows)
    assert found["curve_se_model"].dims[0] == "output"
    # The second output depends on the second column alone: the first moves nothing else than it.
    one = rs.std_error(rs.pdp(two, rows, output=1, **options), model=two, X=rows)
    assert_allclose(found["curve_se"].isel(output=1), one["curve_se"])
    logit = rs.pdp(two, rows, output=0, scale="logit", grid={"x0": [1.0, 3.0]}, features="x0",
                   centering="none")  # fmt: skip
    errors = rs.std_error(logit, model=two, X=rows, uncertainty="parameters")["curve_se"]
    # On the scale of log-odds the curve is b x.
    assert_allclose(errors.values[0], [0.2, 0.6], rtol=1e-6)


def test_missing_values_are_dropped_as_they_were():
    gaps = X.copy()
    gaps.loc[::7, "c"] = None
    model = rs.Parametric(
        lambda b, rows: b[0] * rows["a"] + b[1] * (rows["c"] == "v"), [1.0, 2.0], np.eye(2) * 0.01
    )
    for missing in ("drop", "bin"):
        found = rs.std_error(
            rs.pdp(model, gaps, missing=missing, centering="none", features=["c"]),
            model=model,
            X=gaps,
        )
        there = gaps if missing == "bin" else gaps.dropna()
        at = [there["a"].mean(), 1.0]
        own = np.sqrt(0.01 * (at[0] ** 2 + at[1] ** 2))
        assert_allclose(found["curve_se_model"].sel(feature="c").values[1], own, rtol=1e-8)
    curves = rs.ice(model, gaps, missing="drop", features=["a", "c"], n_grid=4)
    found = rs.std_error(curves, model=model, X=gaps, groups=np.arange(N) // 3)
    assert_allclose(found["curve_se_model"].sel(feature="c").values[1], own_of(gaps), rtol=1e-8)


def own_of(gaps):
    return np.sqrt(0.01 * (gaps.dropna()["a"].mean() ** 2 + 1))


def test_what_does_not_belong_together_is_refused():
    profile = rs.pdp(FIT, X, n_grid=4)
    other = smf.logit("y ~ a", DATA).fit(disp=0)
    with pytest.raises(ValueError, match="model and X must be those that the result was made from"):
        rs.std_error(profile, model=other, X=X)
    with pytest.raises(ValueError, match="groups must have one entry for each of 120"):
        rs.std_error(profile, model=FIT, X=X, groups=[1, 2])
    with pytest.raises(ValueError, match="at least two different groups; got 1"):
        rs.std_error(profile, model=FIT, X=X, groups=np.zeros(N))
    with pytest.raises(ValueError, match="X must hold the rows of effect; got 60"):
        rs.std_error(rs.ice(FIT, X, n_grid=4), model=FIT, X=X[:60])
    with pytest.raises(ValueError, match="groups must be at least two in every bin"):
        rs.std_error(
            rs.m_plot(FIT, X, bins=rs.QuantileBins(4), features=["a"]),
            groups=pd.qcut(DATA["a"], 4).cat.codes.to_numpy(),
        )
    shap = rs.Parametric(lambda b, rows: rows @ b, [1.0, 1.0], np.eye(2))
    rows = np.random.default_rng(0).normal(size=(30, 2))
    found = rs.shap_dependence(None, rows, shap_values=rows)
    with pytest.raises(ValueError, match="model must be None for shap_dependence"):
        rs.std_error(found, model=shap, X=rows)


def test_parameters_that_play_no_part_have_a_curve_without_error():
    still = rs.Parametric(lambda b, rows: rows[:, 0] ** 2 + 0 * b[0], [1.0], [[0.0]])
    rows = np.random.default_rng(0).normal(size=(30, 2))
    found = rs.std_error(rs.pdp(still, rows, n_grid=4), model=still, X=rows)
    assert_array_equal(found["curve_se_model"].values, 0)
    assert_allclose(found["curve_se"], found["curve_se_rows"])


@pytest.mark.parametrize(
    ("far", "method"), in_turn([0.0, 1e6], ["pdp", "ice", "m_plot", "rhale", "ale"])
)
def test_features_that_play_no_part_have_curves_of_rounding(method, far):
    """Their curves are 0 but for rounding, which is not the same in another computation."""
    rows = np.random.default_rng(0).normal(size=(40, 3))
    model = rs.Parametric(
        lambda b, rows: far + b[0] * np.sin(rows[:, 0]) + (rows[:, 2] + b[0]) - rows[:, 2],
        [1.0],
        [[0.01]],
    )
    if method in ("rhale", "ale"):
        take, estimate = {
            "rhale": (rs.local_effects, rs.rhale),
            "ale": (rs.ale_local_effects, rs.ale_from_local),
        }[method]
        local = take(model, rows)
        found = rs.std_error(estimate(local), local, model=model, X=rows)
    else:
        found = rs.std_error(getattr(rs, method)(model, rows), model=model, X=rows)
    assert found["curve_se_model"].sel(feature="x0").max() > 0.01
    if method not in ("m_plot", "ice"):  # whose curves are of the output, not of changes
        assert found["curve_se_model"].sel(feature="x1").max() < 1e-6


def test_another_model_is_refused_for_curves_of_rounding_too():
    rows = np.random.default_rng(0).normal(size=(40, 2))
    found = rs.pdp(lambda rows: rows[:, 0], rows, features=["x1"])
    other = rs.Parametric(lambda b, rows: rows[:, 0] + 1e-6 * b[0] * rows[:, 1], [1.0], [[0.01]])
    with pytest.raises(ValueError, match="they give another curve of 'x1'"):
        rs.std_error(found, model=other, X=rows)


@pytest.mark.slow
def test_both_is_the_spread_of_repeated_studies():
    """New data, a new fit of a wrong model and a new profile each time.

    The standard deviation of 120 studies has a standard error of 6.5 %, of which 3 are allowed.
    """
    n, n_studies, grid = 150, 120, {"x": [-1.0, 0.0, 1.0]}
    rng = np.random.default_rng(8)
    curves, errors = [], []
    for _ in range(n_studies):
        rows = pd.DataFrame({"x": rng.normal(size=n), "z": rng.normal(size=n)})
        line = rows.x + 0.5 * rows.z + 0.6 * rows.x * rows.z
        rows["y"] = line + rng.normal(size=n)
        fit = smf.ols("y ~ x + z + I(z**2)", rows).fit()
        own = rows[["x", "z"]]
        made = rs.pdp(fit, own, grid=grid, features=["x"], centering="none", progress=False)
        curves.append(made["curve"].values[0])
        errors.append(rs.std_error(made, model=fit, X=own)["curve_se"].values[0])
    spread = np.std(curves, axis=0, ddof=1)
    assert_allclose(np.sqrt(np.mean(np.square(errors), axis=0)), spread, rtol=0.195)


@pytest.mark.thorough
def test_parametric_takes_the_place_of_results():
    inner = parametric(FIT)
    again = rs.Parametric(
        lambda b, rows: moved(FIT, b - np.asarray(FIT.params), 1.0)(rows), inner.params, inner.cov
    )
    profile = rs.pdp(FIT, X, n_grid=4)
    for uncertainty in ("parameters", "both"):
        found, own = (
            rs.std_error(profile, model=model, X=X, uncertainty=uncertainty)
            for model in (again, FIT)
        )
        assert_allclose(found["curve_se_model"], own["curve_se_model"], rtol=1e-6, atol=1e-9)
    # Without scores the variances are added.
    total = found["curve_se_rows"] ** 2 + found["curve_se_model"] ** 2
    assert_allclose(found["curve_se"] ** 2, total, rtol=1e-9)
    assert found.attrs["parameters"] == "variances of rows and parameters added"


# --- a curve that is linear in its parameter ------------------------------------------------------

TABLE = X.iloc[:30].assign(a=lambda X: X["a"].round(1))
LINE = rs.Parametric(
    lambda b, rows: (
        b[0] * (rows["a"].fillna(7.0) * (1 + rows["b"]) + (rows["c"].fillna("u") == "v"))
    ),
    [2.0],
    [[0.25]],
)
PLACES = {"a": [-1.0, 0.0, 1.5]}
OF_LINE = {
    "pdp": lambda X, **k: rs.pdp(LINE, X, features=["a", "c"], grid=PLACES, **k),
    "m_plot": lambda X, **k: rs.m_plot(LINE, X, features=["a", "c"],
                                       bins=rs.GivenBins([-9, 0, 0.5, 9]), **k),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_LINE)
@pytest.mark.parametrize(
    ("centering", "kind"),
    [("mean", None), ("start", "precision"), ("integral", "frequency"), ("none", "precision")],
)
def test_a_curve_that_is_proportional_to_the_parameter(name, centering, kind):
    """The standard error of the parameter is a quarter of it, and so is that of the curve."""
    w = np.arange(30) % 3 + 1.0
    for missing in ("raise", "drop", "bin"):
        rows = TABLE
        if missing != "raise":
            rows = TABLE.assign(
                a=TABLE["a"].where(np.arange(30) % 5 > 0), c=TABLE["c"].where(np.arange(30) % 7 > 0)
            )
        if missing == "bin" and name == "m_plot":
            continue
        given = {} if kind is None else {"weights": w, "weight_kind": kind}
        profile = OF_LINE[name](rows, centering=centering, missing=missing, **given)
        kept = ()
        if kind is not None and name == "pdp":
            kept = (rs.ice(LINE, rows, features=["a", "c"], grid=PLACES, missing=missing, **given),)
        found = rs.std_error(profile, *kept, model=LINE, X=rows, uncertainty="parameters")
        assert_allclose(found["curve_se"], 0.25 * np.abs(profile["curve"]), atol=1e-8)
        both = rs.std_error(profile, *kept, model=LINE, X=rows)
        expected = profile["curve_se"] ** 2 + found["curve_se"] ** 2
        known = profile["curve"].notnull().values
        assert_allclose(both["curve_se"].values[known] ** 2, expected.values[known], rtol=1e-6,
                        atol=1e-12)  # fmt: skip
        assert both["curve_se_rows"].attrs["source"] == "rows"
        np.testing.assert_array_equal(both["curve_cov"].notnull(), profile["curve_cov"].notnull())


def test_derivatives_that_are_proportional_to_the_parameter():
    profile = rs.ice(LINE, TABLE, features="a", grid=PLACES["a"], kind="derivative")
    found = rs.std_error(profile, model=LINE, X=TABLE, uncertainty="parameters")
    assert_allclose(found["curve_se"], 0.25 * np.abs(profile["curve"]), atol=1e-8)
    rows = rs.std_error(profile, model=LINE, X=TABLE)
    assert_allclose(rows["curve_se_rows"], profile["curve_se"], rtol=1e-9)


def test_groups_of_bins_are_clustered_means():
    """M-plots without a constant: groups of equal size within every bin."""
    x = np.repeat([0.2, 0.7], 12)
    y = np.random.default_rng(3).normal(size=24)
    table = pd.DataFrame({"x": x, "y": y})
    found = rs.m_plot(lambda X: X["y"], table, features="x", centering="none",
                      bins=rs.GivenBins([0.0, 0.5, 0.9, 1.0]))  # fmt: skip
    groups = np.arange(24) // 3
    grouped = rs.std_error(found, groups=groups)
    assert np.isnan(grouped["curve_se"][0, 2])
    assert np.isnan(grouped["curve_cov"][0, 2]).all()
    for number in range(2):
        rows = slice(12 * number, 12 * number + 12)
        means = y[rows].reshape(4, 3).mean(axis=1)
        se = means.std(ddof=1) / 2
        assert float(grouped["curve_se"][0, number]) == pytest.approx(se)
        assert float(grouped["curve_df"][0, number]) == pytest.approx(3)
    assert grouped.attrs["n_groups"] == 8
    # Two groups in every bin are enough; a bin of one is named.
    rs.std_error(found, groups=np.arange(24) % 2)
    alone = np.where(np.arange(24) < 12, groups, 9)
    said = "groups must be at least two in every bin; bin 1 of feature 'x' has rows of 1"
    with pytest.raises(ValueError, match=said):
        rs.std_error(found, groups=alone)


def test_a_constant_beside_a_curve_and_alone():
    rows = TABLE.assign(one=1.0)
    model = rs.Parametric(lambda b, rows: b[0] * rows["a"] * rows["one"], [2.0], [[0.25]])
    both = rs.pdp(model, rows, features=["one", "a"], grid=PLACES)
    found = rs.std_error(both, model=model, X=rows, uncertainty="parameters")
    assert_allclose(found["curve_se"], 0.25 * np.abs(both["curve"]), atol=1e-8)
    alone = rs.pdp(model, rows, features=["one"])
    none = rs.std_error(alone, model=model, X=rows)
    assert none["curve_se"].isnull().all()
    assert none["curve_cov"].dims == ("feature", "grid", "grid_other")
    assert none.attrs["parameters"]
    assert none["curve_df"].isnull().all()


@pytest.mark.parametrize("missing", ["bin", "drop"])
def test_one_row_without_a_value_is_missing(missing):
    rows = TABLE.assign(a=TABLE["a"].where(np.arange(30) != 4))
    profile = OF_LINE["pdp"](rows, missing=missing)
    assert profile["n_missing"].values.tolist() == [1, 0]
    found = rs.std_error(profile, model=LINE, X=rows, uncertainty="parameters")
    assert_allclose(found["curve_se"], 0.25 * np.abs(profile["curve"]), atol=1e-8)


@pytest.mark.thorough
def test_groups_of_labelled_rows_of_the_model():
    """Without kept rows the labels are those of the table."""
    rows = TABLE.set_axis([f"r{number:02d}" for number in range(30)])
    profile = OF_LINE["pdp"](rows)
    groups = pd.Series(np.arange(30) // 3, rows.index)
    found = rs.std_error(profile, groups=groups.sort_index(ascending=False), model=LINE, X=rows)
    again = rs.std_error(profile, groups=groups.to_numpy(), model=LINE, X=rows)
    assert_allclose(found["curve_se"], again["curve_se"])
    assert found.attrs["n_groups"] == 10
    two = rs.std_error(profile, groups=np.arange(30) % 2, model=LINE, X=rows)
    assert two.attrs["n_groups"] == 2
