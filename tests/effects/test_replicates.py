"""Standard errors of replicates: those of the estimate where every row is drawn once."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import rhale_stats as rs
from rhale_stats.effects import replicates
from rhale_stats.local.rows import columns
from tests.helpers import local_of

N = 2000
STATISTICS = ("effect_se", "heterogeneity_se", "curve_se", "average_effect_se")


def drawn_once(local, effect):
    """Estimates of a replicate that draws every row once."""
    (feature,) = replicates._features(columns(local), local, effect, studentize=True)
    return replicates._replicates(feature, np.ones((N, 1)), str(effect.attrs["centering"]), True)


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
