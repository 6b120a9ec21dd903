"""Simulators: their derivatives, their draws, and that their truths are the limits of estimates."""

from __future__ import annotations

import dataclasses
import inspect

import numpy as np
import pytest

import rhale_stats as rs
from rhale_stats import simulate

EXAMPLES = [
    simulate.Toy(),
    simulate.Toy(b0=3, b1=-1, b2=0.5, b3=4, variance=1),
    simulate.OppositeGroups(),
    simulate.RunningExample(),
    simulate.RunningExample(noise=0.1, sd=1),
    simulate.Ridge(),
    simulate.Ridge(alpha=2, noise=0.1),
    simulate.PiecewiseLinear(),
    simulate.PiecewiseLinear(sd=0.5, slopes=(1, 9), breaks=(0.213,)),
    simulate.PiecewiseLinear.independent(),
    simulate.PiecewiseLinear.independent((4, -3, 0.5), (20, 40), dense_until=40, dense_share=0.8),
    simulate.Quadratic(),
    simulate.TwoRegimes(),
    simulate.TwoRegimes(correlated=True),
    simulate.Product(),
]
every = pytest.mark.parametrize("example", EXAMPLES, ids=repr)


def known(example):
    return list(example._marginals())


def test_every_simulator_is_here():
    defined = {
        value
        for value in vars(simulate).values()
        if inspect.isclass(value)
        and issubclass(value, simulate.Simulator)
        and value is not simulate.Simulator
    }
    assert defined == {type(example) for example in EXAMPLES}
    assert all(dataclasses.is_dataclass(simulator) for simulator in defined)


@every
def test_jacobian_is_the_derivative_of_the_model(example):
    X = example.sample(400, rng=1)
    h = 1e-6 * X.std().to_numpy()
    for position, step in enumerate(h):
        up, down = X.to_numpy().copy(), X.to_numpy().copy()
        up[:, position] += step
        down[:, position] -= step
        numeric = (example.model(up) - example.model(down)) / (2 * step)
        exact = example.jacobian(X)[:, position]
        # Rows within h of a kink or a jump differ; there are few.
        close = np.isclose(numeric, exact, rtol=1e-5, atol=1e-4 * (1 + np.abs(exact).max()))
        assert close.mean() > 0.99


@every
def test_samples_are_reproducible_and_labelled(example):
    X = example.sample(5, rng=3)
    assert X.columns.tolist() == list(example.columns)
    assert X.equals(example.sample(5, rng=np.random.default_rng(3)))
    with pytest.raises(ValueError, match="n must be at least 1; got 0"):
        example.sample(0)


@every
@pytest.mark.parametrize("centering", ["mean", "start", "integral"])
@pytest.mark.filterwarnings("ignore:Bins without rows")  # in the tails of normal features
def test_truth_is_what_estimates_tend_to(example, centering):
    X = example.sample(10**6, rng=11)
    local = rs.local_effects(None, X, jacobian=example.jacobian, features=known(example))
    effect = rs.std_error(rs.rhale(local, bins=rs.EqualWidthBins(100), centering=centering))
    truth = example.truth(effect)
    for name in known(example):
        e, t = effect.sel(feature=name), truth.sel(feature=name)
        size = float(np.abs(t["curve"]).max()) + 1e-9
        # 10^4 rows a bin; those in the tails of a normal feature hold few.
        full = e["n_obs"] > 1000
        # A break inside a bin, with unequal rows on its sides, moves mu within the bin's range.
        within = np.sqrt(t["bin_error"])
        # 5 standard errors, for 100 bins and 45 runs.
        near = np.abs(e["effect"] - t["effect"]) <= 5 * e["effect_se"] + within + 1e-9
        assert near.where(full, True).all(), name
        star = np.sqrt(t["heterogeneity"] ** 2 + t["bin_error"])
        # The spread of two values with equal shares has no error of first order: 1 % instead. In
        # the tails of a jump rows with the other value are too rare to be in a sample.
        there = full & ((star < 1e-9) | (star > 0.1))
        slack = 5 * e["heterogeneity_se"] + 0.01 * star + within + 1e-9
        assert (np.abs(e["heterogeneity"] - star) <= slack).where(there, True).all(), name
        # What the curve misses in a bin is at most the bin error's root times the width. Bins of
        # one row, in the tails of a normal feature, have no standard error.
        missed = float((within * (e["bin_right"] - e["bin_left"])).sum())
        slack = (6 * e["curve_se"] + missed + 1e-6 * size).fillna(np.inf)
        difference = np.abs(e["curve"] - t["curve"]).where(e["curve"].notnull(), 0)
        assert (difference <= slack).all(), name


def given(example, edges, centering="start"):
    X = example.sample(200, rng=0).assign(x1=np.linspace(edges[0], edges[-1], 200))
    local = rs.local_effects(None, X, jacobian=example.jacobian, features="x1")
    effect = rs.rhale(local, bins=rs.GivenBins(edges), centering=centering)
    return example.truth(effect).isel(feature=0)


@pytest.mark.parametrize("n_bins", [1, 2, 5, 16])
def test_toy_and_quadratic_by_their_formulas(n_bins):
    edges = np.linspace(0, 1, n_bins + 1)
    middle = (edges[1:] + edges[:-1]) / 2
    toy = given(simulate.Toy(), edges)
    np.testing.assert_allclose(toy["effect"], 1 + 2 * middle, rtol=1e-13)
    np.testing.assert_allclose(toy["heterogeneity"] ** 2, 0.4, rtol=1e-13)
    np.testing.assert_allclose(toy["bin_error"], 4 / (12 * n_bins**2), rtol=1e-11)
    np.testing.assert_allclose(toy["curve"], edges + edges**2, rtol=1e-12, atol=1e-14)
    quadratic = given(simulate.Quadratic(sd=0.4), edges, centering="mean")
    np.testing.assert_allclose(quadratic["bin_error"], 81 / (12 * n_bins**2), rtol=1e-11)
    # 4.5 z^2 minus its mean over U(0, 1).
    np.testing.assert_allclose(quadratic["curve"], 4.5 * edges**2 - 1.5, rtol=1e-12)


def test_piecewise_linear_by_hand():
    """On [0.4, 0.5] the slopes 5 and -10 meet; on the other bins only z varies."""
    truth = given(simulate.PiecewiseLinear(sd=0.5), [0, 0.2, 0.4, 0.5, 1], centering="integral")
    np.testing.assert_allclose(truth["effect"], [2.1, -1.7, -2.05, 1.25], rtol=1e-12)
    # On the third bin a(z) + z - mean: 7.5 - 0.05 + u on the left half, u in (0, 0.05), ...
    left = np.polynomial.polynomial.polyval(0.05, [0, 7.45**2, 7.45, 1 / 3])
    np.testing.assert_allclose(
        truth["bin_error"], [0.04 / 12, 0.04 / 12, 2 * left / 0.1, 0.25 / 12], rtol=1e-10
    )
    assert float(truth["heterogeneity"][0]) == pytest.approx(0.5)


def test_independent_pieces_meet_the_notes_levels():
    """The note's pieces start at -5, 1, 141, 111 and 111; ours at 0 are those plus 5."""
    X = np.column_stack([[0, 20, 40, 60, 80, 100], np.zeros(6)])
    level = simulate.PiecewiseLinear.independent().model(X)
    np.testing.assert_allclose(level, [0, 6, 146, 116, 116, 16])


def test_ridge_tends_to_the_papers_limit():
    truth = given(simulate.Ridge(alpha=1, noise=1e-9), [0, 0.25, 0.5, 1])
    np.testing.assert_allclose(truth["effect"], [1, -1, 0], atol=1e-8)
    np.testing.assert_allclose(truth["heterogeneity"], 0.5, atol=1e-8)
    np.testing.assert_allclose(truth["curve"], [0, 0.25, 0, 0], atol=1e-8)


def test_truth_without_closed_form():
    example = simulate.Toy()
    X = example.sample(50, rng=0)
    effect = rs.rhale(rs.local_effects(None, X, jacobian=example.jacobian))
    with pytest.raises(KeyError, match=r"for Toy 'x1'; got 'x2'. Select them"):
        example.truth(effect)
    with pytest.raises(ValueError, match="slopes must be one more than breaks; got 2 slopes and 0"):
        simulate.PiecewiseLinear(slopes=(1, 2), breaks=())
