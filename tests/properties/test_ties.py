"""Whole numbers and rounded values: rows on the edges of cells count in both (math [2])."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import rhale_stats as rs
from rhale_stats.schema import feature_result
from tests.helpers import daily

QUIET = {"progress": False}


def one_feature(effect, feature):
    """One feature of a result, with all that follows from its moments."""
    return feature_result.one_feature(effect, feature)


def product(table):
    return np.asarray(table["k"], float) * np.asarray(table["z"], float)


def rows_of(values, n, seed):
    """A feature of these values, all of which occur, and one that moves with it."""
    rng = np.random.default_rng(seed)
    number = np.concatenate([np.arange(len(values)), rng.integers(0, len(values), n)])
    number = np.sort(number) if seed % 2 else rng.permutation(number)
    k = values[number]
    z = np.unique(values, return_inverse=True)[1][number] + rng.normal(size=len(number))
    return pd.DataFrame({"k": k, "z": z})


def curve_at_cells(effect):
    row = one_feature(effect, "k")
    return row.edges, row["curve"].values


def steps_by_hand(table):
    """Sums of the mean differences between neighbouring values, over the rows of both."""
    values = np.unique(table["k"])
    steps = []
    for low, high in pairwise(values):
        both = table[table["k"].isin([low, high])]
        steps.append((product(both.assign(k=high)) - product(both.assign(k=low))).mean())
    return values, np.concatenate([[0], np.cumsum(steps)])


@given(
    st.integers(2, 60), st.integers(0, 10_000), st.sampled_from([1, 0.5, 0.1]), st.integers(0, 8)
)
@settings(max_examples=12, deadline=None)
def test_the_curve_is_that_of_levels_for_any_number_of_values(n_values, seed, step, digits):
    values = np.arange(n_values) * step + 10.0**digits
    if seed % 3 == 0:  # unevenly spaced
        values = values + np.arange(n_values) ** 2 * step
    table = rows_of(np.repeat(values, 3), 5 * n_values, seed)
    at, curve = curve_at_cells(rs.ale(product, table, features="k", **QUIET))
    expected_at, expected = steps_by_hand(table)
    assert_allclose(at, expected_at, rtol=1e-15)
    scale = np.abs(expected).max() + 10.0**digits
    assert_allclose(curve - curve[0], expected, atol=1e-9 * scale)
    levels = one_feature(rs.ale(product, table, features="k", categorical="k", **QUIET), "k")
    assert_allclose(curve, levels["curve"].values, atol=1e-9 * scale)


@pytest.mark.parametrize("n_values", [6, 15])
def test_a_closed_form_in_ale_rhale_and_explain(n_values):
    """Of k z with z = k + noise: the step from k to k + 1 is k + 1/2, the range (K - 1)^2 / 2."""
    table = rows_of(np.arange(n_values), 3000, seed=n_values)
    exact = (n_values - 1) ** 2 / 2
    tolerance = 4 * (n_values - 1) / np.sqrt(3000)
    effect = rs.ale(product, table, features="k", **QUIET)
    local = rs.local_effects(product, table, features="k", **QUIET)
    several = [effect, rs.rhale(local)]
    if n_values > 12:
        several.append(rs.explain(product, table, features="k", rng=0)["effect"].to_dataset())
    for found in several:
        at, curve = curve_at_cells(found)
        assert len(at) == n_values
        assert curve[-1] - curve[0] == pytest.approx(exact, abs=tolerance)


def test_errors_are_those_of_levels():
    """Of the curve within a few per cent; of groups of rows, and in the bootstrap, as well."""
    table = rows_of(np.arange(8), 1500, seed=3)
    found = {}
    for name, levels in (("cells", None), ("levels", "k")):
        local = rs.ale_local_effects(product, table, features="k", categorical=levels, **QUIET)
        effect = rs.ale_from_local(local)
        boot = rs.bootstrap(local, effect, n_resamples=400, rng=0, **QUIET)
        groups = rs.std_error(effect, local, groups=np.arange(len(table)) % 50)
        found[name] = [
            rs.std_error(effect)["curve_se"].values[0],
            groups["curve_se"].values[0],
            boot["curve"].std(("chain", "draw")).values[0],
        ]
    for cells, levels, most in zip(found["cells"], found["levels"], (0.1, 0.03, 0.12), strict=True):
        assert_allclose(cells, levels, rtol=most)


def test_errors_with_the_parameters_of_a_model_are_those_of_levels():
    import statsmodels.formula.api as smf

    table = rows_of(np.arange(6), 600, seed=4)
    table["y"] = product(table) + np.random.default_rng(0).normal(size=len(table))
    fit = smf.ols("y ~ k * z + I(k ** 2)", table).fit()
    both = []
    for levels in (None, "k"):
        local = rs.ale_local_effects(fit, table[["k", "z"]], features="k", categorical=levels)
        effect = rs.ale_from_local(local)
        both.append(rs.std_error(effect, local, model=fit, X=table[["k", "z"]])["curve_se"])
    assert_allclose(*both, rtol=0.06)


def test_some_rows_and_weights():
    """Of a part of the rows, and with frequency weights, as of a table of these rows."""
    table = rows_of(np.arange(9), 900, seed=5)
    local = rs.local_effects(product, table, features="k", **QUIET)
    part = (table["z"] > 3).to_numpy()
    _, curve = curve_at_cells(rs.rhale(local.isel(obs=part)))
    known = steps_by_hand(table[part])[1]
    assert_allclose(curve[-len(known) :] - curve[-len(known)], known, atol=1e-9)
    counts = np.random.default_rng(0).integers(0, 4, len(table))
    options = {"weights": counts, "weight_kind": "frequency"}
    weighted = rs.ale(product, table, features="k", **options, **QUIET)
    repeated = table.loc[table.index.repeat(counts)]
    _, curve = curve_at_cells(weighted)
    assert_allclose(curve - curve[0], steps_by_hand(repeated)[1], atol=1e-9)
    assert weighted.attrs["weight_kind"] == "frequency"
    # Rows, not halves of them, are counted.
    assert rs.rhale(local).attrs["n_rows"] == len(table)


@given(st.integers(3, 40), st.integers(0, 1000))
@settings(max_examples=8, deadline=None)
def test_derivatives_at_few_values_are_integrated(n_values, seed):
    """Exactly for a cubic output, at any spacing; the warning names the feature."""
    rng = np.random.default_rng(seed)
    values = np.cumsum(rng.uniform(0.5, 2, n_values))
    X = values[np.r_[np.tile(np.arange(n_values), 3), rng.integers(0, n_values, 5 * n_values)]]
    X = X[:, None]
    with pytest.warns(UserWarning, match=f"few values of 'x0' \\({n_values} values\\)"):
        local = rs.local_effects(None, X, jacobian=3 * X**2 - X + 1, features=0, **QUIET)
    row = one_feature(rs.rhale(local), 0)
    at, curve = row.edges, row["curve"].values
    places = np.unique(X)
    midway = (places[1:] + places[:-1]) / 2
    assert np.isin(at, [*places, *midway]).all()
    assert len(at) >= n_values
    exact = at**3 - at**2 / 2 + at
    exact = exact - exact[0]
    # Two intervals have a parabola, which is the derivative itself.
    assert_allclose(curve - curve[0], exact, rtol=1e-9, atol=1e-9 * exact[-1])


# Features of more than two values have rows of their own each, which takes ten times as long.
@pytest.mark.parametrize("shares", daily([((0.9, 0.1),), ((0.5, 0.3, 0.1, 0.06, 0.04),)]))
def test_values_of_unequal_frequency_count_by_their_axis(shares):
    """The change between two values is by the means at both, however few rows one has.

    Standard errors as of that many rows covered 73 % at shares of 90 and 10 %. 100 samples, each a
    column, whose Monte-Carlo error is about 2 % (4 % at 73 %: seen for certain), each with errors
    by rows and by groups of two.
    """
    rng, inside = np.random.default_rng(0), []
    for _ in range(4):
        X = rng.choice(np.arange(len(shares), dtype=float), (600, 25), p=shares)
        g = 1 + rng.normal(size=X.shape)
        with pytest.warns(UserWarning, match="few values"):
            local = rs.local_effects(None, X, jacobian=g, features=range(25), **QUIET)
        effect = rs.rhale(local, bins=rs.EqualWidthBins(1))
        for groups in (None, np.arange(len(X)) // 2):
            bounds = rs.confint(rs.std_error(effect, local, groups=groups))["effect_ci"]
            low, high = bounds.isel(bin=0).transpose("ci_bound", "feature").values
            inside.append((low <= 1) & (high >= 1))
    covered = np.mean(np.reshape(inside, (4, 2, 25)), axis=(0, 2))
    assert ((covered >= 0.88) & (covered <= 0.995)).all(), covered


def test_rounded_values_are_covered():
    """Rounded to quarters: derivatives at the values covered 87 % of the curve, and less with more.

    30 samples, 9 inner values each; the Monte-Carlo error is about 1.4 %.
    """
    inside = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X = np.column_stack([np.round(4 * rng.normal(size=400)) / 4, rng.normal(size=400)])
        local = rs.local_effects(
            lambda X: np.sin(2 * X[:, 0]) + X[:, 0] * X[:, 1], X, features=0, **QUIET
        )
        row = one_feature(rs.std_error(rs.rhale(local)), 0)
        at, curve, se = row.edges, row["curve"].values, row["curve_se"].values
        inner = np.abs(at) <= 1
        # The mean of sin(2 z) is 0: the distribution of z is symmetric.
        inside.append(np.mean(np.abs(curve - np.sin(2 * at))[inner] <= 1.96 * se[inner]))
    assert 0.91 <= np.mean(inside) <= 0.998


@pytest.mark.parametrize("bins", [[0, 1, 2, 20], 10])
def test_many_rows_at_the_lowest_value_count_as_all_others(bins):
    """They counted half where bins are given: zeros of a skewed feature moved its average."""
    rng = np.random.default_rng(0)
    n = 1000
    positive = np.minimum(np.ceil(rng.exponential(1.5, n) * 10) / 10, 20)
    X = pd.DataFrame({"z": np.where(rng.random(n) < 0.2, 0.0, positive)})
    X["slope"] = np.where(X["z"] == 0, 1.0, 3.0)

    def model(X):
        return X["z"] * X["slope"]

    effect = rs.ale(model, X, "z", bins=bins)
    np.testing.assert_allclose(effect["average_effect"], X["slope"].mean())
    weights = rng.uniform(0.9999, 1.0001, n)
    weighted = rs.ale(model, X, "z", bins=bins, weights=weights)
    np.testing.assert_allclose(effect["effect"], weighted["effect"], atol=2e-3)
