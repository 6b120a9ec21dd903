"""The check for jumps, bin by bin and by hand; what it asks of the model and refuses."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_allclose
from scipy import stats

import rhale_stats as rs
from rhale_stats.schema.feature_result import one_feature
from tests.helpers import weighted_mean_with_error as along

N = 400
NAMES = ("jump", "jump_se", "jump_spread", "jump_pvalue")


def model(X):
    """A product, a jump of some rows at 0.3, and a bend."""
    return X["a"] * X["b"] + np.where(X["a"] > 0.3, X["b"] + 0.5, 0.0) + X["a"] ** 3


def table(rng, n=N):
    """Rows that crowd at the left end."""
    return pd.DataFrame({"a": 2 * rng.beta(1, 2, n) - 1, "b": rng.normal(size=n)})


def gradient(X):
    return np.column_stack([X["b"] + 3 * X["a"] ** 2, X["a"] + (X["a"] > 0.3)])


def by_hand(row, X, g, w):
    """math [3] of the feature a, bin by bin: what its rows miss, weighted along the axis.

    Half a per cent of the weight at both ends of the axis is left out.
    """
    x, edges = X["a"].to_numpy(), row.bin_edges
    slope = row["slope"].values if "slope" in row else np.zeros(len(edges) - 1)
    order = np.argsort(x)
    sums = np.cumsum(w[order])
    low, high = (x[order][(sums < part * sums[-1]).sum()] for part in (0.005, 0.995))
    cells = row.edges
    cell = np.clip(np.searchsorted(cells, x, side="right") - 1, 0, len(cells) - 2)
    out = []
    for k, (left, right) in enumerate(pairwise(edges)):
        start, end = max(left, low), min(right, high)
        width = np.clip(np.minimum(cells[1:], end) - np.maximum(cells[:-1], start), 0, None)
        inside = (x >= start) & (x <= end) & ((x < right) | (k == len(edges) - 2))
        of_cell = np.bincount(cell[inside], w[inside], len(width))
        share = w[inside] * width[cell[inside]] / of_cell[cell[inside]]
        share = share / share.sum()
        across = (model(X.assign(a=end)) - model(X.assign(a=start)))[inside].to_numpy()
        middle = g[inside] + slope[k] * ((start + end) / 2 - x[inside])
        derivative = middle * (end - start)
        mean, se, degrees = along(share, across - derivative)
        of_mean = 2 * stats.t.sf(abs(mean) / se, degrees)
        squares = [(v - np.sum(share * v)) ** 2 for v in (across, derivative)]
        excess, excess_se, excess_degrees = along(share, squares[0] - squares[1])
        of_spread = stats.t.sf(excess / excess_se, excess_degrees) if excess > 0 else 1.0
        spread = np.sqrt(max(excess, 0) / (1 - np.sum(share**2)))
        out.append((mean, se, spread, min(1, 2 * min(min(1, of_mean), of_spread))))
    return np.transpose(out)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "rule",
    [rs.GivenBins([-1, -0.4, 0.2, 0.5, 1]), rs.EqualWidthBins(1), rs.EqualWidthBins(3)],
    ids=str,
)
def test_every_bin_by_hand(rng, rule, weighted):
    """The outer ones too, which end at quantiles of the rows."""
    X = table(rng)
    w = rng.uniform(0.2, 3, N) if weighted else np.ones(N)
    options = {"weights": w} if weighted else {}
    local = rs.local_effects(None, X, jacobian=gradient, features="a", **options)
    effect = rs.rhale(local, bins=rule)
    found = rs.jump_check(model, local, effect, X, adjust="none")
    row = one_feature(effect, 0)
    expected = by_hand(row, X, gradient(X)[:, 0], w)
    for name, values in zip(NAMES, expected, strict=True):
        rtol = 1e-6 if name == "jump_pvalue" else 1e-9
        assert_allclose(found[name][0], values, rtol=rtol, atol=1e-12, err_msg=name)
    assert (found["jump_spread"] > 0).any()
    assert found["jump_pvalue"].attrs["null"] == "the derivative sees all that f does"
    xr.testing.assert_identical(found["effect"], effect["effect"])


def test_linear_bins_miss_no_more_than_the_bend_of_their_line(rng):
    """A parabola is a line of slope 2 in every bin, whose change is that of its middle."""
    X = table(rng)
    local = rs.local_effects(None, X, jacobian=lambda X: np.column_stack([2 * X["a"], 0 * X["b"]]))
    effect = rs.rhale(local, bins=rs.AdaptiveBins())
    assert (effect["slope"].sel(feature="a").dropna("bin") == pytest.approx(2, rel=1e-6)).all()
    found = rs.jump_check(lambda X: X["a"] ** 2, local, effect)
    assert_allclose(found["jump"].sel(feature="a").dropna("bin"), 0, atol=1e-9)
    moved = rs.jump_check(lambda X: X["a"] ** 2 + 5 * (X["a"] > 0), local, effect)
    assert_allclose(moved["jump"].sel(feature="a").dropna("bin").sum(), 5, rtol=1e-6)


def test_a_bin_of_two_rows_and_one_of_one(rng):
    """A row alone has a mean and no error; two rows have an error with one degree of freedom."""
    x = np.array([0.0, 0.25, 0.75, 1.0, 1.5, 2.0, 3.0])
    X = pd.DataFrame({"a": x, "b": np.arange(7.0)})
    local = rs.local_effects(None, X, jacobian=np.zeros((7, 2)), features=["a", "b"])
    with np.errstate(all="ignore"):
        effect = rs.rhale(
            local, bins=rs.GivenBins({"a": [0, 1, 2, 3], "b": [0, 6]}), weighting="rows"
        )
    found = rs.jump_check(lambda X: X["b"] * (X["a"] > 1.75), local, effect).sel(feature="a")
    assert found["jump"].dims == ("bin",)
    # Rows 3 and 4 are in the second bin, with b = 3 and 4: they jump by as much at 1.75.
    assert 3 <= float(found["jump"][1]) <= 4
    assert found["jump_pvalue"].isnull().all()
    assert float(found["jump"][0]) == 0


def test_several_outputs_and_classifiers_without_a_scale_are_refused(rng):
    X = table(rng, 60)
    local = rs.local_effects(None, X, jacobian=gradient)
    effect = rs.rhale(local, bins=rs.EqualWidthBins(2))
    with pytest.raises(rs.ModelError, match="one number a row here; it has the outputs 0, 1"):
        rs.jump_check(lambda X: np.column_stack([model(X), model(X)]), local, effect)

    class Classifier:
        classes_ = np.array([0, 1])
        _estimator_type = "classifier"

        def predict(self, X):
            return (self.predict_proba(X)[:, 1] > 0.5).astype(int)

        def predict_proba(self, X):
            p = 1 / (1 + np.exp(-np.asarray(X)[:, 0]))
            return np.column_stack([1 - p, p])

    with pytest.raises(ValueError, match="local must say on which scale of the classifier it is"):
        rs.jump_check(Classifier(), local, effect)
    own = rs.local_effects(Classifier(), X, scale="response")
    found = rs.jump_check(Classifier(), own, rs.rhale(own, bins=rs.EqualWidthBins(2)))
    assert (found["jump_pvalue_adjusted"] > 0.05).all()


def test_nothing_at_all_is_no_jump(rng):
    X = table(rng, 60)
    local = rs.local_effects(None, X, jacobian=np.zeros((60, 2)))
    found = rs.jump_check(
        lambda X: np.zeros(len(X)), local, rs.rhale(local, bins=rs.EqualWidthBins(2))
    )
    assert (found["jump_pvalue"] == 1).all()
    assert (found["jump"] == 0).all()
    assert (found["jump_spread"] == 0).all()


def test_rows_on_the_edges_of_slopes_across_cells(rng):
    """They take part in the cells on both sides; slopes across cells hold every jump."""
    X = rng.integers(0, 6, (200, 1)).astype(float)

    def step(rows):
        return rows[:, 0] + np.where(rows[:, 0] > 2.5, 3.0, 0.0)

    local = rs.local_effects(step, X, features=0)
    for rule in (rs.EqualWidthBins(2), rs.GivenBins([0.0, 1, 2, 3, 4, 5])):
        check = rs.jump_check(rs.rhale(local, bins=rule), local, step, X)
        assert np.isfinite(check["jump"]).all()
    assert_allclose(check["jump"], 0.0, atol=1e-12)
