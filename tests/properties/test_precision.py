"""Coarse answers: rounding is part of standard errors, and makes nothing known 0 (math [1])."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import rhale_stats as rs

QUIET = {"progress": False}
TYPES = [np.float16, np.float32, np.float64]


def answers(X, slopes, offset, dtype):
    return (offset + X @ np.asarray(slopes)).astype(dtype)


@given(
    st.sampled_from(TYPES),
    st.floats(0, 8),
    st.floats(-2, 2),
    st.floats(1, 30),
    st.integers(0, 1000),
)
@settings(max_examples=12, deadline=None)
def test_what_is_known_is_not_0_and_is_covered(dtype, digits, size, ratio, seed):
    """A linear output: five standard errors and half a digit of the curve hold the slopes."""
    offset, scale = 10.0**digits, 10.0**size
    # Steps of the answers are less than a twentieth of their spread.
    assume(float(np.finfo(dtype).eps) * (offset + ratio * scale) < 0.05 * scale)
    assume(offset + 10 * ratio * scale < 0.5 * float(np.finfo(dtype).max))
    X = np.random.default_rng(seed).normal(size=(400, 2))
    slopes = np.array([scale, ratio * scale])
    effect = rs.rhale(rs.local_effects(lambda X: answers(X, slopes, offset, dtype), X, **QUIET))
    table = rs.glance(effect)
    error = np.abs(table["estimate"] - slopes)
    allowed = 5 * table["std_error"] + 1e-6 * slopes
    assert (error <= allowed).all()
    rounding = np.finfo(dtype).eps * (offset + ratio * scale)
    if rounding < 0.001 * scale:
        assert (table["estimate"] > 0.5 * slopes).all()
        assert (table["curve_max"] > table["curve_min"]).all()
    # A feature that does nothing: within its errors, and not known to do anything.
    other = np.column_stack([X, X[:, 0]])
    effect = rs.rhale(
        rs.local_effects(
            lambda X: answers(X[:, :2], slopes, offset, dtype), other, features=2, **QUIET
        )
    )
    assert (rs.glance(effect)["estimate"] == 0).all()


def test_single_precision_as_in_double_precision(rng):
    """Curve, interval and importance; the error is that of the rounding."""
    X = rng.normal(size=(1000, 2))
    found = {}
    for dtype in (np.float32, np.float64):
        local = rs.local_effects(
            lambda X, dtype=dtype: answers(X, [30, 150], 3e5, dtype), X, **QUIET
        )
        effect = rs.confint(rs.std_error(rs.rhale(local)))
        found[dtype] = effect, rs.glance(effect), rs.effect_sizes(effect)
    (single, table, sizes), (_, exact, theirs) = found[np.float32], found[np.float64]
    np.testing.assert_allclose(table["estimate"], [30, 150], atol=0.2)
    assert (np.abs(table["estimate"] - [30, 150]) < 4 * table["std_error"]).all()
    assert (table["std_error"] > 1e-4).all()
    np.testing.assert_allclose(sizes["importance"], theirs["importance"], rtol=0.01)
    assert (np.diff(single["curve_ci"].values[:, 0]) > 0).all()
    # In double precision rounding is below what is printed.
    assert (exact["std_error"] < 1e-6).all()


def test_the_error_of_an_interpolated_effect_is_in_its_interval(rng):
    """Five values of sin: the rule misses the curve by a hundredth, and says so."""
    X = np.repeat(np.linspace(0, 4, 6), 40)[:, None]
    with pytest.warns(UserWarning, match="few values"):
        local = rs.local_effects(None, X, jacobian=2 * np.cos(2 * X), features=0)
    effect = rs.std_error(rs.rhale(local))
    at, curve, se = (effect[name].values[0] for name in ("edge_value", "curve", "curve_se"))
    missed = np.ptp(curve - np.sin(2 * at))
    assert missed > 0.01
    assert missed < 2 * (se[0] + se[-1])
