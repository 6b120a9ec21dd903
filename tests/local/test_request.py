"""How local effects are taken: gradients and Jacobians beside the model, probes, errors, bars."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal

import rhale_stats as rs
from rhale_stats.local import request as module
from rhale_stats.local.request import Request, axis_values
from rhale_stats.models.differences import Differences
from rhale_stats.models.options import ModelOptions
from rhale_stats.models.sample import Sample

X = np.random.default_rng(0).uniform(-1, 1, (120, 2))
EXACT = np.column_stack([2 * X[:, 0], 3 + 0 * X[:, 1]])


def model(X):
    """Two outputs: x0² + 3 x1, and twice as much."""
    y = X[:, 0] ** 2 + 3 * X[:, 1]
    return np.column_stack([y, 2 * y])


def by_gradient(factors, *, auto=True, kind="gradient"):
    """Local effects by a gradient that is so many times the true one, (feature, output)."""
    sample = Sample.from_table(X, ModelOptions()).of_columns([0, 1])
    given = {
        at: Differences(np.outer(EXACT[:, at], [1, 2]) * factors[at], np.zeros(2), "gradient")
        for at in range(2)
    }
    request = Request(sample, kind, auto, None, sample.quotients(model), given)
    return request.local(axis_values(sample), progress=False)


def test_a_gradient_that_agrees_with_differences_is_taken():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        local = by_gradient([(1, 1), (1, 1)])
    assert local["local_effect_method"].values.tolist() == ["gradient"] * 2
    assert_array_equal(local["local_effect"], [EXACT, 2 * EXACT])


@pytest.mark.parametrize("factors", [(1.5, 1.25), (1, 1.5), (1.5, 1)])
def test_a_gradient_that_differs_in_one_output_is_not_taken(factors):
    said = r"differs from its central differences for 'x1' \(by 0\.5 of their size\); "
    with pytest.warns(UserWarning, match=said) as warned:
        local = by_gradient([(1, 1), factors])
    assert len(warned) == 1
    assert local["local_effect_method"].values.tolist() == ["gradient", "central_difference"]
    # One-sided at the ends of the range.
    inner = np.abs(X[:, 1]) < 0.9
    assert_array_equal(local["local_effect"][:, :, 0], [EXACT[:, 0], 2 * EXACT[:, 0]])
    assert_allclose(local["local_effect"][0, inner, 1], 3, rtol=1e-8)


def test_a_jacobian_is_compared_with_the_model():
    one = lambda X: model(X)[:, 0]  # noqa: E731
    local = rs.local_effects(one, X, jacobian=EXACT)
    assert local["local_effect_method"].values.tolist() == ["jacobian"] * 2
    assert_array_equal(local["local_effect"], EXACT)
    # Given derivatives have no error of the steps that they are compared with.
    alone = rs.local_effects(None, X, jacobian=EXACT)
    assert_array_equal(local["local_effect_error"], alone["local_effect_error"])
    for factors, names in (((1, 2), "'x1'"), ((2, 1), "'x0'"), ((2, 2), "'x0'.*'x1'")):
        with pytest.raises(ValueError, match=f"jacobian must agree .* differences for {names}"):
            rs.local_effects(one, X, jacobian=EXACT * factors)
    with pytest.raises(ValueError, match="jacobian must agree .* for 'x1' "):
        rs.local_effects(one, X, jacobian=EXACT * (1, 2), method="jacobian")


def test_rows_of_weight_0_are_not_looked_at():
    weights = (X[:, 0] < 0.5).astype(float)
    jumps = lambda X: X[:, 0] + 9 * (X[:, 0] > 0.6) + X[:, 1]  # noqa: E731
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        local = rs.local_effects(jumps, X, weights=weights)
    assert local["local_effect_method"].values.tolist() == ["central_difference"] * 2
    with pytest.warns(rs.JumpWarning, match="'x0'.*slopes across cells were taken"):
        rs.local_effects(jumps, X)


def test_jumps_that_a_jacobian_does_not_show():
    jumps = lambda X: X[:, 0] + 9 * (X[:, 0] > 0.2)  # noqa: E731
    jacobian = np.column_stack([np.ones(120), np.zeros(120)])
    with pytest.warns(rs.JumpWarning, match="'x0' .*method='jacobian' does not detect them"):
        local = rs.local_effects(jumps, X, jacobian=jacobian, method="jacobian")
    assert_array_equal(local["local_effect"], jacobian)
    with pytest.warns(rs.JumpWarning, match="slopes across cells were taken"):
        local = rs.local_effects(jumps, X, jacobian=jacobian)
    assert local["local_effect_method"].values.tolist() == ["finite_difference", "jacobian"]


def test_the_error_of_slopes_is_that_of_rounding():
    """8 eps |f| / h: of cells of 0.5 up to 4, and of the same cells where the output jumps."""
    x = (
        np.repeat([[0.0], [0.5], [1.0], [1.5]], 30, axis=0)
        + np.linspace(0, 0.49, 120)[:, None] % 0.5
    )
    bins = rs.GivenBins([0, 0.5, 1, 1.5, float(x.max())])
    steps = lambda X: np.floor(2 * X[:, 0])  # noqa: E731
    slopes = rs.local_effects(steps, x, method="finite_difference", bins=bins)
    with pytest.warns(rs.JumpWarning):
        jumps = rs.local_effects(steps, x, bins=bins)
    widths = np.diff(bins.edges)
    expected = 8 * np.finfo(float).eps * np.max(np.array([1, 2, 3, 3]) / widths)
    assert_allclose(slopes["local_effect_error"], expected)
    assert_array_equal(jumps["local_effect_error"], slopes["local_effect_error"])


def test_models_that_answer_differently_are_refused_by_every_method():
    calls = []

    def restless(X):
        calls.append(1)
        return X[:, 0] + len(calls)

    for call in (
        lambda: rs.local_effects(restless, X, method="finite_difference"),
        lambda: rs.local_effects(restless, X),
        lambda: rs.ale_local_effects(restless, X),
    ):
        with pytest.raises(rs.ModelError, match="same answer for the same rows"):
            call()


def test_parts_are_those_of_the_whole():
    sample = Sample.from_table(X, ModelOptions()).of_columns([0, 1])
    for quotients, kind, given in (
        (sample.quotients(model), "finite_difference", {}),
        (None, "jacobian", {at: Differences(EXACT[:, [at]], np.zeros(1), kind) for at, kind in
                            enumerate(["jacobian"] * 2)}),
    ):  # fmt: skip
        request = Request(sample, kind, False, None, quotients, given)
        whole = request.local(axis_values(sample), progress=False)
        parts = list(request.parts([[1], [0]], progress=False))
        for part, name in zip(parts, ("x1", "x0"), strict=True):
            own = whole.sel(feature=[name])
            assert_array_equal(part["local_effect"], own["local_effect"])
            assert part["feature"].values.tolist() == [name]


@pytest.mark.thorough
@pytest.mark.parametrize("together", [1, 240, 479, 480, 10**6])
def test_few_or_many_columns_at_a_time_give_the_same(together):
    whole = rs.local_effects(model, X, method="central_difference")
    some = rs.local_effects(model, X, method="central_difference", batch_rows=together)
    xr.testing.assert_identical(some, whole)


@pytest.mark.parametrize("progress", [True, False])
def test_a_bar_counts_the_features_of_a_model(monkeypatch, progress):
    shown, moved = [], []

    class Bar:
        """Counts its steps."""

        def update(self):
            moved.append(1)

    def bar(n, what, unit, *, progress):
        shown.append((n, what, unit, progress))
        return nullcontext(Bar())

    monkeypatch.setattr(module, "progress_bar", bar)
    rs.local_effects(model, X, progress=progress, method="finite_difference")
    rs.local_effects(None, X, jacobian=EXACT, progress=progress)
    assert shown == [
        (2, "local effects", "feature", progress),
        (2, "local effects", "feature", False),
    ]
    assert len(moved) == 4


def test_a_gradient_that_is_asked_for_and_not_there_is_refused():
    with pytest.raises(ValueError, match="method='gradient' needs a model that gives its gradient"):
        rs.local_effects(model, X, method="gradient")
    sample = Sample.from_table(X, ModelOptions()).of_columns([0, 1])
    request = Request(sample, "central_difference", True, None, sample.quotients(model))
    assert request.with_gradient() is request


def test_weights_are_needed_where_there_are_values():
    x = X.copy()
    x[:50, 0] = np.nan
    sample = Sample.from_table(
        x, ModelOptions(missing="drop", weights=np.isnan(x[:, 0]).astype(float))
    )
    assert_array_equal(axis_values(sample.of_columns([1])), x[:, 1:])
    with pytest.raises(ValueError, match="value of feature 'x0'; all 70 such rows have weight 0"):
        axis_values(sample.of_columns([1, 0]))
    found = axis_values(replace(sample, weight=None).of_columns([1, 0]))
    assert_array_equal(found, x[:, ::-1])
    assert found.flags.f_contiguous
