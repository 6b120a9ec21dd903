"""Differences of results of several models: pairs, independent members, one effect."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import rhale_stats as rs
from rhale_stats.inference.results import CONSTANT
from tests.ensembles.made import FOLDS, REFITS, constant, ensemble, with_levels

RNG = np.random.default_rng(2)
Z = np.linspace(0, 1, 5)
A = RNG.standard_normal((60, 1)) * Z + 0.1 * RNG.standard_normal((60, 5))
B = 0.8 * A + 0.1 * RNG.standard_normal((60, 5)) - Z


def test_the_same_members_are_paired():
    paired = rs.compare(
        ensemble(A, members="m", **REFITS), ensemble(B, members="m", **REFITS), rng=0
    )
    apart = rs.compare(ensemble(A, **REFITS), ensemble(B, **REFITS), rng=0)
    given = (ensemble(A, **REFITS), ensemble(B, **REFITS))
    told = rs.compare(*given, paired=given, rng=0)
    assert_allclose(paired["difference"].values[0], (A - B).mean(axis=0))
    assert_allclose(paired["difference_se"].values[0], (A - B).std(axis=0, ddof=1))
    assert_allclose(told["difference_se"], paired["difference_se"])
    variance = A.var(axis=0, ddof=1) + B.var(axis=0, ddof=1)
    assert_allclose(apart["difference_se"].values[0], np.sqrt(variance))
    assert (apart["difference_se"] > paired["difference_se"])[0, 1:].all()
    assert paired.attrs["source"] == "refits against refits, of the same members, paired"
    assert apart.attrs["source"].endswith("independent")
    assert paired["p_value"].item() < 0.05
    half = np.ptp(paired["difference_ci"].values[0], axis=1) / 2
    assert_allclose(half, stats.norm.ppf(0.975) * paired["difference_se"].values[0])


def test_refits_by_one_seed_are_of_the_same_rows():
    facts = REFITS | {"scheme": "bootstrap"}
    first = ensemble(A, seed=3, **facts)
    for seed, words in ((3, "paired"), (4, "independent"), (-1, "independent")):
        # A Generator is not known by a seed: -1 of both says nothing.
        one = first.assign_attrs(seed=-1) if seed == -1 else first
        found = rs.compare(one, ensemble(B, seed=seed, **facts), rng=0)
        assert found.attrs["source"].endswith(words)


def test_folds_have_the_corrected_variance_of_the_differences():
    a, b = A[:10], B[:10]
    found = rs.compare(ensemble(a, members="m", **FOLDS), ensemble(b, members="m", **FOLDS))
    se = np.sqrt((1 / 10 + 1 / 4) * (a - b).var(axis=0, ddof=1))
    assert_allclose(found["difference_se"].values[0], se)
    half = np.ptp(found["difference_ci"].values[0], axis=1) / 2
    assert_allclose(half, stats.t.ppf(0.975, 9) * se)


def test_draws_have_no_p():
    found = rs.compare(ensemble(A), ensemble(B), rng=0)
    assert np.isnan(found["p_value"].item())
    assert "no p-value" in found["reason"].item()
    assert found["difference_band"].attrs["ci_kind"] == "credible"
    text = rs.summary(found).as_text()
    assert "no p-value" in text


def test_other_grids_are_read_off_between_their_points():
    fine = ensemble(np.stack([np.interp(np.linspace(0, 1, 17), Z, one) for one in B]), **REFITS)
    found = rs.compare(ensemble(A, **REFITS), fine, rng=0)
    same = rs.compare(ensemble(A, **REFITS), ensemble(B, **REFITS), rng=0)
    assert_allclose(found["difference"], same["difference"], atol=1e-12)
    assert_allclose(found["difference_se"], same["difference_se"])
    short = fine.isel(grid=slice(0, 9))
    assert rs.compare(ensemble(A, **REFITS), short, rng=0)["grid_value"].max() == 0.5


@pytest.mark.parametrize("profile", [False, True])
def test_with_the_effect_of_one_model(profile):
    X = RNG.uniform(size=(200, 2))
    betas = RNG.normal([1.0, 2.0], 0.1, (30, 2))
    model = lambda X: X @ [1.0, 2.0] + X[:, 0] * X[:, 1]  # noqa: E731
    if profile:
        found = rs.over_models(lambda b, X: X @ b, X, draws=betas, method="pdp", n_grid=9)
        one = rs.pdp(model, X, n_grid=9)
        at = one["curve"].sel(feature="x0").values
        se = one["curve_se"].sel(feature="x0").values
    else:
        found = rs.over_models(lambda b, X: X @ b, X, draws=betas, n_grid=9)
        one = rs.std_error(rs.rhale(rs.local_effects(model, X), bins=rs.EqualWidthBins(4)))
        z = found["grid_value"].sel(feature="x0").values
        at = rs.predict(one, z, "x0").values
        se = None
    compared = rs.compare(found, one, rng=0)
    own = found["curve_estimate"].sel(feature="x0").values
    assert_allclose(compared["difference"].sel(feature="x0"), own - at, atol=1e-9)
    turned = rs.compare(one, found, rng=0)
    assert_allclose(turned["difference"], -compared["difference"], atol=1e-12)
    assert_allclose(turned["difference_se"], compared["difference_se"])
    assert "draws of the parameters against rows, independent" in compared.attrs["source"]
    if se is not None:
        sd = rs.std_error(found)["curve_se_model"].sel(feature="x0").values
        total = compared["difference_se"].sel(feature="x0")
        assert_allclose(total, np.hypot(sd, se))


def test_independent_folds_have_the_degrees_of_welch():
    a, b = A[:10], 3 * B[:15]
    found = rs.compare(ensemble(a, **FOLDS), ensemble(b, **FOLDS | {"test_over_train": 0.5}))
    of_a = (1 / 10 + 1 / 4) * a.var(axis=0, ddof=1)
    of_b = (1 / 15 + 1 / 2) * b.var(axis=0, ddof=1)
    se = np.sqrt(of_a + of_b)
    assert_allclose(found["difference_se"].values[0], se)
    degrees = (of_a + of_b) ** 2 / (of_a**2 / 9 + of_b**2 / 14)
    half = np.ptp(found["difference_ci"].values[0], axis=1) / 2
    assert_allclose(half, stats.t.ppf(0.975, degrees) * se)
    # By chance of the same kind, and not by the same members.
    assert found.attrs["source"] == "refits of folds against refits of folds, independent"


@pytest.mark.thorough
@pytest.mark.parametrize(("zero", "unit"), [(0.0, 1.0), (1e9, 1.0), (0.0, 128.0)])
def test_points_are_those_of_the_first_within_the_range_of_both(zero, unit):
    """A point beside an end of the range, by rounding, is moved to it."""

    def on(curves, *z):
        grid = zero + unit * np.array(z)
        return ensemble(curves, **REFITS).assign_coords(grid_value=(("feature", "grid"), [grid]))

    a = on(A, 0, 0.25, 0.5, 0.75, 1)
    for ends, points in (
        ((0.25, 0.75), [0.25, 0.5, 0.75]),
        ((0.3, 0.75), [0.5, 0.75]),
        ((-1, 0.5), [0, 0.25, 0.5]),
        ((0.25 + 5e-10, 0.75 - 5e-10), [0.25 + 5e-10, 0.5, 0.75 - 5e-10]),
        ((0.25 + 5e-9, 0.75 - 5e-9), [0.5] if zero == 0 else [0.25, 0.5, 0.75]),
    ):
        if zero and abs(ends[0] - 0.25) < 1e-8:
            continue  # numbers of this size have no such digits
        b = on(B, *np.linspace(*ends, 5))
        found = rs.compare(a, b, rng=0)
        if len(points) < 2:
            assert found["reason"].item() == "the two curves have no points in common"
            continue
        z = found["grid_value"].values[0]
        assert_allclose(z, zero + unit * np.array(points), rtol=1e-13)
        assert zero + unit * ends[0] <= z[0]
        assert z[-1] <= zero + unit * ends[1]


def test_the_same_numbers_of_members_are_needed_for_pairs():
    a, short = ensemble(A, members="m", **REFITS), ensemble(B[:10], members="m", **REFITS)
    assert rs.compare(a, short, rng=0).attrs["source"].endswith("independent")
    other = ensemble(B, members="n", **REFITS)
    assert rs.compare(a, other, rng=0).attrs["source"].endswith("independent")
    X = RNG.uniform(size=(50, 1))
    one = rs.std_error(rs.rhale(rs.local_effects(lambda X: X[:, 0], X)))
    one = one.assign_coords(feature=["x"])
    with pytest.raises(ValueError, match=r"same members; .* \(1, 60\) and \(0, 0\)\."):
        rs.compare(a, one, paired=(a, one))


def test_members_of_which_one_kind_has_no_distribution():
    """One of both is enough that there is no p-value."""
    for pair in (
        (ensemble(A), ensemble(B, **REFITS)),
        (ensemble(A, **REFITS), ensemble(B, source="models")),
    ):
        found = rs.compare(*pair, rng=0)
        assert np.isnan(found["p_value"].item())
        assert found["reason"].item().startswith("members that are no refits have no p-value")
        kind = "credible" if pair[0].attrs["source"] == "draws" else "spread"
        for name in ("difference_ci", "difference_band"):
            assert found[name].attrs["ci_kind"] == kind
    found = rs.compare(ensemble(A, **REFITS), ensemble(B, **REFITS), rng=0)
    assert found["difference_ci"].attrs["ci_kind"] == "confidence"
    assert found["reason"].item() == ""


def test_draws_are_compared_over_these_rows():
    """The error by rows is no part of differences of the same members."""
    pair = [ensemble(one, members="m", se_rows=0.7) for one in (A, B)]
    found = rs.compare(*pair, rng=0)
    assert_allclose(found["difference_se"].values[0], (A - B).std(axis=0, ddof=1))
    apart = [ensemble(one, se_rows=0.7) for one in (A, B)]
    found = rs.compare(*apart, rng=0)
    variance = A.var(axis=0, ddof=1) + B.var(axis=0, ddof=1)
    assert_allclose(found["difference_se"].values[0], np.sqrt(variance))


def test_estimates_are_compared_and_points_that_few_members_reach_are_not():
    a, b = ensemble(A, estimate=np.arange(5.0), **REFITS), ensemble(B, estimate=Z, **REFITS)
    found = rs.compare(a, b, rng=0)
    assert_allclose(found["difference"].values[0], np.arange(5.0) - Z)
    gaps = A.copy()
    gaps[:50, -1] = np.nan
    short = rs.compare(ensemble(gaps, estimate=np.zeros(5), **REFITS), b, rng=0)
    assert short["grid_value"].max() == 0.75
    paired = [
        ensemble(one, estimate=np.zeros(one.shape[1]), members="m", **REFITS)
        for one in (gaps[:, :4], B)
    ]
    paired[0] = paired[0].assign_coords(grid_value=(("feature", "grid"), [Z[:4]]))
    found = rs.compare(*paired, rng=0)
    assert_allclose(found["difference_se"].values[0], (A - B).std(axis=0, ddof=1)[:4])


def test_constant_features_have_no_difference():
    for pair in ((ensemble(A), constant(60)), (constant(60), ensemble(A))):
        found = rs.compare(*(one.assign_attrs(REFITS) for one in pair), rng=0)
        assert found["reason"].item() == CONSTANT
        assert np.isnan(found["p_value"].item())


def test_a_feature_that_is_constant_for_one_model():
    local = rs.local_effects(
        lambda X: X[:, 1], np.column_stack([np.ones(20), Z[np.arange(20) % 5]]), features=[0, 1]
    )
    one = rs.rhale(local).assign_coords(feature=["x", "y"])
    for pair in ((ensemble(A, **REFITS), one), (one, ensemble(A, **REFITS))):
        found = rs.compare(*pair, rng=0)
        assert found["feature"].values.tolist() == ["x"]
        assert found["reason"].item() == CONSTANT


def test_levels_with_the_effect_of_one_model():
    k = np.array(list("uvw") * 20)
    table = pd.DataFrame({"k": pd.Categorical(k), "x": np.linspace(0, 1, 60)})
    height = {"u": 0.0, "v": 1.0, "w": 5.0}

    def model(b, X):
        return b * X["k"].astype(object).map(height).to_numpy(float) * (1 + X["x"].to_numpy())

    options = {"features": "k", "order": ["u", "v", "w"]}
    local = rs.ale_local_effects(lambda X: model(2.0, X), table, **options)
    one = rs.std_error(rs.ale_from_local(local))
    several = with_levels(ensemble(A[:, :3], members="m", **REFITS), "u", "v", "w")
    several = several.assign_coords(feature=["k"])
    found = rs.compare(several, one, rng=0)
    assert_allclose(found["difference"].values[0], A[:, :3].mean(axis=0) - one["curve"].values[0])
    variance = A[:, :3].var(axis=0, ddof=1) + one["curve_se"].values[0] ** 2
    assert_allclose(found["difference_se"].values[0], np.sqrt(variance))
    turned = with_levels(ensemble(A[:, :3], **REFITS), "u", "w", "v").assign_coords(feature=["k"])
    with pytest.raises(ValueError, match="levels of feature 'k'; got u, w, v and u, v, w"):
        rs.compare(turned, one)
    number = ensemble(A, **REFITS).assign_coords(feature=["k"])
    with pytest.raises(ValueError, match="levels of feature 'k'; got numbers and u, v, w"):
        rs.compare(number, one)


def test_what_is_refused():
    a, b = ensemble(A), ensemble(B)
    with pytest.raises(ValueError, match="same centering; got 'mean' and 'start'"):
        rs.compare(a, b.assign_attrs(centering="start"))
    with pytest.raises(ValueError, match="feature in common; got x and z"):
        rs.compare(a, b.assign_coords(feature=["z"]))
    short = ensemble(B[:10])
    with pytest.raises(ValueError, match=r"same members; .* \(1, 60\) and \(1, 10\)"):
        rs.compare(a, short, paired=(a, short))
    with pytest.raises(ValueError, match="groups must be None"):
        rs.compare(a, b, groups=np.ones(3))
    X = RNG.uniform(size=(50, 2))
    with pytest.raises(ValueError, match="b must be a result of several models, or the effect"):
        rs.compare(a, rs.local_effects(lambda X: X[:, 0], X))
    far = b.assign_coords(grid_value=b["grid_value"] + 5)
    assert "no points in common" in rs.compare(a, far)["reason"].item()
