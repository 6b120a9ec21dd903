"""Differences of results of several models: pairs, independent members, one effect."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import rhale_stats as rs
from tests.ensembles.made import FOLDS, REFITS, ensemble

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
