"""Standard errors of replicates: those of the estimate where every row is drawn once."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import rhale_stats as rs
from rhale_stats.effects import replicates
from rhale_stats.effects import replicates as module
from rhale_stats.effects.replicates import _shared_out, nothing
from rhale_stats.local.rows import columns
from tests.bins.test_adaptive import Lines
from tests.helpers import local_of

N = 2000
STATISTICS = ("effect_se", "heterogeneity_se", "curve_se", "average_effect_se")


def drawn_once(local, effect):
    """Estimates of a replicate that draws every row once."""
    (feature,) = replicates._features(columns(local), local, effect, studentize=True)
    return replicates._replicates(feature, np.ones((N, 1)), str(effect.attrs["centering"]), True)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["none", "precision", "frequency"])
@pytest.mark.parametrize("centering", ["mean", "start", "integral"])
def test_a_replicate_of_all_rows_has_the_errors_of_the_estimate(centering, kind, rng):
    """Under precision weights that are related to residuals, too: sandwiches, math [26]."""
    x, noise = rng.uniform(-1, 1, N), rng.normal(size=N)
    g = np.sin(2 * x) + 1 + (0.5 + np.abs(x)) * noise
    weights = {"none": None, "precision": 0.2 + noise**2, "frequency": rng.integers(1, 4, N)}[kind]
    how = {} if kind == "none" else {"weight_kind": kind}
    local = local_of(x[:, None], g[:, None], weights=weights, **how)
    effect = rs.std_error(
        rs.rhale(local, bins=rs.EqualWidthBins(4), centering=centering, weighting="rows")
    )
    found = drawn_once(local, effect)
    for name in STATISTICS:
        assert_allclose(found[name][0], effect[name].values[0], rtol=1e-9, atol=1e-14)
    if kind == "precision":
        # Weights that count as unrelated to residuals would give much less.
        mean, w = effect["average_effect"].item(), weights
        usual = np.sqrt(np.average((g - mean) ** 2, weights=w) * np.sum(w**2)) / w.sum()
        assert found["average_effect_se"][0] > 1.2 * usual


def test_the_average_of_linear_bins_varies_by_the_line(rng):
    x = rng.uniform(-1, 1, N)
    local = local_of(x[:, None], (5 * x + rng.normal(size=N))[:, None])
    effect = rs.std_error(rs.rhale(local, bins=rs.AdaptiveBins()))
    assert (effect["slope"] != 0).any()
    found = drawn_once(local, effect)["average_effect_se"]
    assert_allclose(found[0], effect["average_effect_se"].item(), rtol=1e-9)


def test_the_average_of_linear_bins_under_precision_weights_is_that_of_the_rows_drawn(rng):
    """Lines of a replicate differ from those of the estimate; the mean of all rows has neither."""
    x, w = rng.uniform(-1, 1, N), rng.uniform(0.3, 3, N)
    g = 5 * x + rng.normal(size=N)
    local = local_of(x[:, None], g[:, None], weights=w)
    effect = rs.std_error(rs.rhale(local, bins=rs.AdaptiveBins()))
    assert (effect["slope"] != 0).any()
    (feature,) = replicates._features(columns(local), local, effect, studentize=True)
    times = rng.multinomial(N, np.full(N, 1 / N), 3).T
    found = replicates._replicates(
        feature, times.astype(float), str(effect.attrs["centering"]), True
    )["average_effect_se"]
    for draw, count in enumerate(times.T):
        own = np.repeat(np.arange(N), count)
        away = w[own] * (g[own] - np.average(g[own], weights=w[own]))
        n = w[own].sum() ** 2 / np.sum(w[own] ** 2)
        expected = np.sqrt(np.sum(away**2) * n / (n - 1)) / w[own].sum()
        assert_allclose(found[draw], expected, rtol=1e-9)


def are_estimates(found, draw, own):
    """One replicate is the estimate of the rows drawn, with its sizes."""
    sizes, own = rs.effect_sizes(own), own.rhale.in_bins()
    for name in ("effect", "heterogeneity", "curve", "average_effect"):
        assert_allclose(found[name][draw], own[name].values[0], atol=1e-12)
    for name in ("heterogeneity_index", "heterogeneity_output"):
        assert_allclose(found[name][draw], own[name].item())
    for name in ("importance", "aled", "aler_min", "aler_max"):
        assert_allclose(found[name][draw], sizes[name].item())


@pytest.mark.parametrize("centering", ["mean", "start", "integral"])
def test_replicates_of_levels_are_estimates_of_the_drawn_rows(centering):
    """Rows are drawn 0 to 3 times; a step has no effect without rows of both its levels."""
    rng = np.random.default_rng(5)
    X = np.column_stack([rng.integers(0, 4, 60), rng.normal(size=60)]).astype(float)
    local = rs.ale_local_effects(
        lambda X: X[:, 0] ** 2 + X[:, 0] * X[:, 1], X, features=0, categorical=0
    )
    effect = rs.ale_from_local(local, centering=centering)
    (feature,) = replicates._features(columns(local), local, effect, studentize=False)
    weight = np.column_stack([np.ones(60), rng.integers(0, 4, 60), X[:, 0] < 2]).astype(float)
    found = replicates._replicates(feature, weight, centering, False)
    for draw in (0, 1):
        rows = np.repeat(np.arange(60), weight[:, draw].astype(int))
        own = rs.ale_from_local(local.isel(obs=rows), centering=centering)
        are_estimates(found, draw, own)
        code, curve = X[rows, 0].astype(int), found["curve"][draw]
        assert_allclose(found["curve_mean"][draw], curve[code].mean(), atol=1e-12)
        assert found["n_empty"][draw] == 0
        assert not found["slope"][draw].any()
    assert np.isnan(found["curve"][2]).all()
    assert found["n_empty"][2] == 1
    assert np.isfinite(found["average_effect"]).all()


@pytest.mark.parametrize("weighting", ["rows", "axis"])
def test_replicates_of_an_axis_are_estimates_of_the_drawn_rows(weighting):
    """In the same bins, of rows that are drawn 0 to 3 times."""
    rng = np.random.default_rng(6)
    x, n = rng.beta(1, 2, 80), 80
    g = 1 + 3 * x + (0.5 + x) * rng.normal(size=n)
    local = local_of(x[:, None], g[:, None])
    bins = rs.GivenBins([0, 0.2, 0.5, 1], cells=[0, 0.1, 0.2, 0.3, 0.5, 1])
    effect = rs.rhale(local, bins=bins, weighting=weighting)
    (feature,) = replicates._features(columns(local), local, effect, studentize=False)
    weight = np.column_stack([np.ones(n), rng.integers(0, 4, n)]).astype(float)
    found = replicates._replicates(feature, weight, "mean", False)
    for draw in (0, 1):
        rows = np.repeat(np.arange(n), weight[:, draw].astype(int))
        own = rs.rhale(local.isel(obs=rows), bins=bins, weighting=weighting)
        are_estimates(found, draw, own)
        assert_allclose(found["curve_mean"][draw], 0, atol=1e-12)
        assert found["n_empty"][draw] == 0


@pytest.mark.parametrize(
    ("n_rows", "expected"),
    [
        # So few rows that all threads have the most draws: 2^17 weights, in parts of 32 draws.
        (1000, (4, 128)),
        # 2^28 bytes are 16 a weight: 8 draws of 2^19 rows fill a quarter of them.
        (1 << 19, (4, 8)),
        (1 << 20, (2, 8)),
        (1 << 18, (4, 16)),
        # More than fit at all: one thread and a block of draws.
        (1 << 23, (1, 8)),
    ],
)
def test_threads_come_before_draws(n_rows, expected, monkeypatch):
    monkeypatch.setattr(module, "cpus", lambda: 4)
    assert _shared_out(n_rows) == expected


def test_replicates_of_all_that_is_asked():
    """With standard errors where they are studentized, with slopes where there are lines."""
    x = np.linspace(0, 1, 20)[:, None]
    effect = rs.rhale(rs.local_effects(None, x, jacobian=x), bins=rs.GivenBins([0, 0.5, 1]))
    plain, full = (nothing(effect, 3, studentize=of) for of in (False, True))
    assert set(full) - set(plain) == {
        "effect_se", "heterogeneity_se", "curve_se", "average_effect_se",
    }  # fmt: skip
    assert "slope" not in full
    assert "slope" in nothing(effect.assign(slope=effect["effect"]), 3, studentize=False)
    assert plain["effect"].shape == (3, 1, 2)
    assert plain["curve"].shape == (3, 1, 3)
    assert plain["n_empty"].shape == (3, 1)
    assert all(np.isnan(values).all() for values in full.values())


def test_replicates_that_are_refused():
    x = np.linspace(0, 1, 20)[:, None]
    local = rs.local_effects(None, x, jacobian=x)
    effect = rs.rhale(local, bins=rs.AdaptiveBins(5), weighting="rows")
    assert effect["slope"].values.any()
    with pytest.raises(ValueError, match="studentize must be False with linear bins"):
        rs.bootstrap(local, effect, n_resamples=4, studentize=True)
    counted = rs.local_effects(None, x, jacobian=x, weights=np.ones(20) + (x[:, 0] > 0.5),
                               weight_kind="frequency")  # fmt: skip
    with pytest.raises(ValueError, match="rebin must be False with frequency weights"):
        rs.bootstrap(counted, rs.rhale(counted), n_resamples=4, rebin=True)
    with pytest.raises(ValueError, match="this one is debiased"):
        rs.bootstrap(local, effect.assign_attrs(debiased=1), n_resamples=4)


@pytest.mark.parametrize("weighting", ["axis", "rows"])
def test_a_replicate_of_all_rows_has_the_slopes(weighting):
    """Of bins with lines, and 0 in the others."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 2, (80, 1))
    local = local_of(x, np.where(x < 1, 1, 4 * x - 3) + rng.normal(size=x.shape))
    effect = rs.rhale(local, bins=Lines((0.0, 1, 2), (False, True)), weighting=weighting)
    found = drawn_once(local, effect)
    assert effect["slope"].values[0, 1] != 0
    assert_allclose(np.squeeze(found["slope"]), effect["slope"].values[0], rtol=1e-9)
    for name in ("effect", "heterogeneity", "curve", "average_effect"):
        expected = effect.rhale.in_bins()[name].values[0]
        assert_allclose(np.squeeze(found[name]), expected, rtol=1e-9, atol=1e-12)
