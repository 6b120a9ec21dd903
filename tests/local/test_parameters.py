"""Derivatives of local effects by parameters: in closed form, for models that are lines in them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import rhale_stats as rs
from rhale_stats.local import parameters as module
from rhale_stats.local.parameters import Derivatives
from rhale_stats.models.parametric import Fitted

N = 40
RNG = np.random.default_rng(0)
X = pd.DataFrame({"a": RNG.uniform(1, 2, N), "b": RNG.normal(size=N), "k": list("uvwv") * (N // 4)})
PARAMS = np.array([2.0, -1.0, 3.0])
COV = np.array([[4.0, 1.0, 0.0], [1.0, 9.0, 0.0], [0.0, 0.0, 0.0]])
HEIGHT = {"u": 0.0, "v": 1.0, "w": 4.0}


def predict(params, X):
    """p0 a² + p1 a b + p2 b, and so much more at a level: p0 h b; two outputs."""
    a, b = X["a"].to_numpy(), X["b"].to_numpy()
    h = X["k"].map(HEIGHT).to_numpy(float)
    y = params[0] * a**2 + params[1] * a * b + params[2] * b + params[0] * h * b
    return np.column_stack([y, -3 * y])


MODEL = rs.Parametric(predict, PARAMS, COV)


def local_of(rows=None, method="central_difference", **more):
    rows = X if rows is None else rows
    return rs.local_effects(MODEL, rows, features=["b", "a"], method=method, output=1, **more)


def derivatives(local, rows=None, model=MODEL, progress=False):
    fitted = Fitted.from_model(model, X if rows is None else rows, "both")
    numbered = fitted.numbered(local)
    return Derivatives.from_model(fitted._replace(progress=progress), numbered)


def all_slopes(found, name, rows):
    parts, changes = zip(*found.slopes(name, np.asarray(rows)), strict=True)
    return np.concatenate(parts), np.concatenate(changes)


DIRECTIONS = MODEL.directions()
# Rounding of the second difference: outputs of 50, steps of 5e-6 along x and 1e-4 along directions.
ROUNDING = {"rtol": 1e-6, "atol": 50 * np.finfo(float).eps / (5e-6 * 1e-4)}


def test_slopes_are_linear_in_the_parameters():
    found, rows = derivatives(local_of()), np.array([3, 0, 17, 39])
    at, change = all_slopes(found, "a", rows)
    assert_array_equal(at, rows)
    a, b = X["a"].to_numpy()[rows], X["b"].to_numpy()[rows]
    h = X["k"].map(HEIGHT).to_numpy(float)[rows]
    by_params = {"a": [2 * a, b, 0 * a], "b": [h, a, np.ones(4)]}
    assert change.shape == (4, 2)
    assert not {0, 3, 17, 39} & {X["a"].argmin(), X["a"].argmax()}  # one-sided at the ends
    assert_allclose(change, -3 * np.transpose(by_params["a"]) @ DIRECTIONS.T, **ROUNDING)
    _, change = all_slopes(found, "b", rows)
    assert_allclose(change, -3 * np.transpose(by_params["b"]) @ DIRECTIONS.T, **ROUNDING)


def test_slopes_across_cells_are_differences_of_their_ends():
    local = local_of(
        method="finite_difference", bins=rs.GivenBins({"a": [1, 1.5, 2], "b": [-4, 4]})
    )
    found = derivatives(local)
    _, change = all_slopes(found, "a", np.arange(N))
    a, b = X["a"].to_numpy(), X["b"].to_numpy()
    # The slope of a² from 1 to 1.5 is 2.5, and from there to 2 it is 3.5.
    edges = np.array([1, 1.5, 2])
    slope = np.where(a < edges[1], edges[0] + edges[1], edges[1] + edges[2])
    by_params = np.column_stack([slope, b, 0 * a])
    assert_allclose(change, -3 * by_params @ DIRECTIONS.T, rtol=1e-7, atol=1e-9)


def test_steps_between_levels():
    local = rs.ale_local_effects(MODEL, X, features="k", order=["w", "u", "v"], output=1)
    rows = np.array([5, 2, 0, 8])
    ((at, up, down),) = derivatives(local).steps("k", rows)
    assert_array_equal(at, rows)
    level, b = X["k"].to_numpy()[rows], X["b"].to_numpy()[rows]
    rise = {"w": -4.0, "u": 1.0}
    for found, step in (
        (up, [rise.get(one, np.nan) for one in level]),
        (down, [{"u": -4.0, "v": 1.0}.get(one, np.nan) for one in level]),
    ):
        by_params = np.column_stack([np.array(step) * b, 0 * b, 0 * b])
        expected = -3 * by_params @ DIRECTIONS.T
        assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.thorough
def test_blocks_of_rows_give_the_same(monkeypatch, capsys):
    local = local_of()
    whole = all_slopes(derivatives(local), "a", np.arange(N))
    # 4 versions of 3 answers, the output and its changes by two directions: 7 rows in a block.
    monkeypatch.setattr(module, "BATCH_ANSWERS", 7 * 4 * 3)
    found = derivatives(local)
    assert [len(part) for part, _ in found.slopes("a", np.arange(N))] == [7] * 5 + [5]
    for one, other in zip(all_slopes(found, "a", np.arange(N)), whole, strict=True):
        assert_array_equal(one, other)
    levels = rs.ale_local_effects(MODEL, X, features="k", output=0)
    steps = derivatives(levels).steps("k", np.arange(N))
    assert [len(part) for part, *_ in steps] == [9] * 4 + [4]
    monkeypatch.setattr(module, "BATCH_ANSWERS", 1)
    assert [len(part) for part, _ in found.slopes("a", np.arange(3))] == [1] * 3


def test_the_output_is_that_of_the_local_effects():
    both = rs.local_effects(MODEL, X, features="b", method="central_difference")
    for number, factor in ((0, 1.0), (1, -3.0)):
        _, change = all_slopes(derivatives(both.isel(output=number)), "b", [0])
        own = np.array([0.0, X["a"][0], 1.0])  # the first row has the level u, of height 0
        assert_allclose(change[0], factor * own @ DIRECTIONS.T, rtol=1e-6)
    other = local_of().assign_attrs(output_label="7")
    with pytest.raises(ValueError, match=r"model must have the output '7' .* it has 0, 1\."):
        derivatives(other)


def test_rows_without_a_value_are_no_difference():
    """Values of levels have an order of their own, and are not compared."""
    gaps = X.assign(b=X["b"].where(X.index != 4))
    model = rs.Parametric(lambda p, X: p[0] * X["a"] * X["b"].fillna(0), PARAMS, COV)
    local = rs.ale_local_effects(model, gaps, missing="drop", features=["b", "k"])
    _, change = all_slopes(derivatives(local, gaps, model), "b", [0, 1])
    assert_allclose(change, np.outer(X["a"][:2], DIRECTIONS[:, 0]), rtol=1e-6)


def test_other_rows_and_other_models_are_refused():
    local = local_of()
    moved = X.assign(a=X["a"].where(X.index != 11, 1.2345))
    with pytest.raises(ValueError, match="rows of local, in their order; values of 'a' differ"):
        derivatives(local, moved)
    # A change that no local effect of these rows depends on is none.
    derivatives(local, X.assign(k="u"))
    for factor, same in ((1.0005, True), (1.01, False), (0.99, False)):
        other = rs.Parametric(lambda p, X, f=factor: f * predict(p, X), PARAMS, COV)
        found = derivatives(local, model=other)
        if same:
            all_slopes(found, "a", np.arange(N))
            continue
        with pytest.raises(ValueError, match=r"made from; its local effects of 'a' differ\.$"):
            all_slopes(found, "a", np.arange(N))
    levels = rs.ale_local_effects(MODEL, X, features="k", output=1)
    with pytest.raises(ValueError, match="its local effects of 'k' differ"):
        list(derivatives(levels, model=other).steps("k", np.arange(N)))
    # Of a model that does nothing the differences are rounding, four times as large at most.
    flat = local.copy(deep=True)
    flat["local_effect"][:] = 1e-12
    flat["local_effect_error"][:] = 1e-12
    none = rs.Parametric(lambda p, X: 0 * predict(p, X) + p[1], PARAMS, COV)
    _, change = all_slopes(derivatives(flat, model=none), "a", np.arange(N))
    assert_array_equal(change, 0)
    flat["local_effect"][:] = 5e-12
    with pytest.raises(ValueError, match="its local effects of 'a' differ"):
        all_slopes(derivatives(flat, model=none), "a", np.arange(N))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_local_effects_differ_by_a_thousandth_of_the_largest(sign):
    """Of both, of either sign: 0.9995 of 1000 are less, and of 999.0005 more."""
    larger, smaller = sign * np.array([1000.0, 10.0]), sign * np.array([999.0005, 10.0])
    module._check_model(larger, smaller, "a")
    module._check_model(smaller, larger, "a")
    module._check_model(larger, larger - sign, "a")
    for other in (larger - 1.1 * sign, larger + 1.1 * sign, np.zeros(2)):
        with pytest.raises(ValueError, match="its local effects of 'a' differ"):
            module._check_model(other, larger, "a")
    module._check_model(np.zeros(0), np.zeros(0), "a")
    module._check_model(np.full(2, 3e-12), np.zeros(2), "a", rounding=3e-12)


def test_levels_without_rows_are_refused_by_their_numbers():
    local = rs.ale_local_effects(MODEL, X, features="k", output=1)
    some = np.flatnonzero(X["k"] != "w")
    fitted = Fitted.from_model(MODEL, X.iloc[some].reset_index(drop=True), "both")
    found = Derivatives.from_model(fitted, fitted.numbered(local.isel(obs=some)))
    with pytest.raises(ValueError, match="of all 3 levels of 'k' with model=; got rows of 2"):
        list(found.steps("k", np.arange(len(some))))


def test_log_odds_are_on_their_scale():
    def share(p, X):
        return 1 / (1 + np.exp(-(p[0] * X["a"] + p[1] * X["b"])))

    model = rs.Parametric(share, PARAMS, COV)
    local = rs.local_effects(model, X, features="a", scale="logit")
    _, change = all_slopes(derivatives(local, model=model), "a", np.arange(N))
    assert_allclose(change, np.tile(DIRECTIONS[:, 0], (N, 1)), rtol=1e-4)
