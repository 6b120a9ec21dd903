"""From 1e-300 to 1e300: right numbers, or an error that says what to do (reliability.md 18)."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import rhale_stats as rs
from tests.helpers import daily

# Powers of ten as powers of two, which change no digit.
EXPONENTS = [-300, -170, -160, -155, -85, -80, -60, -40, 0, 40, 60, 80, 85, 155, 160, 170, 300]
RULES = [
    rs.AdaptiveBins(),
    rs.OptimalBins(),
    rs.EqualWidthBins(5),
    rs.QuantileBins(4),
    rs.GreedyBins(),
    rs.BestEqualWidthBins(20),
]
# Estimates, with the powers of x and of the local effects that they have.
POWERS = {
    "effect": (0, 1),
    "effect_se": (0, 1),
    "heterogeneity": (0, 1),
    "heterogeneity_se": (0, 1),
    "heterogeneity_within": (0, 1),
    "average_effect": (0, 1),
    "heterogeneity_output": (1, 1),
    "curve": (1, 1),
    "curve_se": (1, 1),
}


def two_to(exponent):
    return 2.0 ** round(exponent * np.log2(10))


def rows():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (300, 1))
    return x, 2 * x + rng.normal(size=x.shape)


def local_of(scale_x=1.0, scale_g=1.0):
    x, g = rows()
    return rs.local_effects(None, x * scale_x, jacobian=g * scale_g, features=0)


def made_or_refused(scale_x, scale_g):
    try:
        return local_of(scale_x, scale_g), ""
    except ValueError as error:
        return None, str(error)


def estimates(local, rule):
    effect = rs.std_error(rs.rhale(local, bins=rule))
    return rs.check_unbiased(local, rs.confint(effect), rng=0)


@pytest.mark.parametrize("rule", daily(RULES, 2), ids=lambda rule: type(rule).__name__)
@pytest.mark.slow
def test_estimates_have_their_units_or_are_refused(rule):
    expected = estimates(local_of(), rule)
    done = 0
    for of_x, of_g in product(EXPONENTS, EXPONENTS):
        scale_x, scale_g = two_to(of_x), two_to(of_g)
        local, refusal = made_or_refused(scale_x, scale_g)
        if local is None:
            assert "must be 0 or between 1e-60 and 1e+60" in refusal
            assert max(abs(of_x), abs(of_g), abs(of_x + of_g)) >= 60
            continue
        found = estimates(local, rule)
        for name, (power_x, power_g) in POWERS.items():
            unit = scale_x**power_x * scale_g**power_g
            assert_allclose(found[name].values / unit, expected[name].values, rtol=1e-9, atol=1e-13)
        done += 1
    # 1e-40, 1 and 1e40 with each other, but not 1e-80 and 1e80 of both.
    assert done >= 7


@pytest.mark.parametrize("size", [1e-300, 1e-170, 1e155, 1e300])
def test_columns_whose_squares_are_no_numbers_are_refused(size):
    """ZeroDivisionError at 1e-300, a curve of NaN at 1e155, OverflowError at 1e160."""
    X = np.random.default_rng(0).uniform(-1, 1, (100, 2)) * [size, 1.0]

    def model(X):
        return X[:, 0] / size + X[:, 1]

    for call in (
        lambda: rs.local_effects(model, X),
        lambda: rs.ale(model, X),
        lambda: rs.pdp(model, X),
        lambda: rs.ice(model, X, features=0),
        lambda: rs.m_plot(model, X),
        lambda: rs.regional_ale(model, X, 0),
    ):
        with pytest.raises(ValueError, match="range of feature 'x0' in X must be 0 or between .*"):
            call()
    # A column that is held is none of the feature's business.
    assert rs.local_effects(model, X, features=1).sizes["feature"] == 1


def first(X):
    return X["a"]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda X, effect: rs.ale(first, X, [("a", "b")]), "ale2(model, X, ('a', 'b'))"),
        (lambda X, effect: rs.all_regions(first, X, X), "A table is X=, or conditioning="),
        (lambda X, effect: rs.plot(first, X), "Of a model: rhale(model, X)"),
        (lambda X, effect: rs.compare([effect, effect]), "compare(a, b); got a list"),
        (lambda X, effect: rs.compare({"a": effect, "b": effect}), "compare(a, b); got a dict"),
    ],
)
def test_what_is_something_else_is_named(call, words):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 2)), columns=["a", "b"])
    with pytest.raises(TypeError, match=re.escape(words)):
        call(X, rs.rhale(first, X))


def test_constant_columns_of_any_size_are_flagged():
    for size in (1e-300, 1e300):
        X = np.column_stack([np.full(50, size), np.linspace(0, 1, 50)])
        local = rs.local_effects(lambda X: X[:, 1] ** 2, X, features=[0, 1])
        assert rs.rhale(local)["feature_kind"].values.tolist()[0] == "constant"


@pytest.mark.parametrize("size", [1e-170, 1e-85, 1e80, 1e200])
def test_outputs_whose_fourth_powers_are_no_numbers_are_refused(size):
    """heterogeneity 0 at 1e-170, its standard error 0 at 1e-85 and NaN at 1e80."""
    X = np.random.default_rng(0).uniform(-1, 1, (100, 2))

    def model(X):
        return size * X[:, 0] * X[:, 1]

    for call in (
        lambda: rs.local_effects(model, X),
        lambda: rs.ale(model, X),
        lambda: rs.pdp(model, X),
        lambda: rs.ice(model, X),
        lambda: rs.m_plot(model, X),
        lambda: rs.ale2(model, X, (0, 1)),
        lambda: rs.h_statistic(model, X, progress=False),
        lambda: rs.h_statistic(model, X, kind="ale", progress=False),
        lambda: rs.regional_pdp(model, X, 0),
        lambda: rs.local_effects(None, X, jacobian=size * X),
    ):
        with pytest.raises((ValueError, rs.ModelError), match=r"1e\+60.* Take other units"):
            call()


def test_effects_that_are_all_zero_are_no_matter_of_size():
    X = np.random.default_rng(0).uniform(-1, 1, (100, 1))
    effect = rs.rhale(rs.local_effects(None, X, jacobian=0 * X, features=0))
    assert (effect["effect"].values[effect["effect"].notnull().values] == 0).all()
