"""One number a feature with its interval, as pictures show it."""

import numpy as np
import pandas as pd
import pytest

import rhale_stats as rs
from rhale_stats.effects.sizes import forest_data

RNG = np.random.default_rng(2)
X = np.random.default_rng(0).uniform(-1, 1, (80, 3)) * [1, 1, 0]
LOCAL = rs.local_effects(lambda X: X[:, 0] * X[:, 1] + 4 * X[:, 1], X)
EFFECT = rs.rhale(LOCAL, bins=rs.EqualWidthBins(2))


def test_numbers_are_those_of_confint_the_largest_first():
    found, effect = forest_data(EFFECT, "average_effect", 0.9), rs.confint(EFFECT, level=0.9)
    assert found.order.tolist() == [1, 0, 2]
    np.testing.assert_array_equal(found.point[:2], effect["average_effect"][[1, 0]])
    np.testing.assert_array_equal(found.interval[:, :2].T, effect["average_effect_ci"][[1, 0]])
    assert np.isnan([found.point[2], *found.interval[:, 2]]).all()  # constant
    assert found.chains is None
    assert found.method == "standard errors, Student's t"
    assert found.source == "rows"


def test_intervals_of_another_level_are_made_again():
    found = forest_data(rs.confint(EFFECT, level=0.5), "average_effect", 0.9)
    expected = forest_data(EFFECT, "average_effect", 0.9)
    np.testing.assert_array_equal(found.interval, expected.interval)


def test_replicates_have_their_median_and_outer_quantiles():
    boot = rs.bootstrap(LOCAL, EFFECT, n_resamples=40, chains=2, rng=0, progress=False)
    found = forest_data(boot, "importance", 0.8)
    draws = boot["importance"].isel(feature=found.order[0])
    assert found.point[0] == float(draws.median())
    np.testing.assert_allclose(found.interval[:, 0], np.quantile(draws, [0.1, 0.9]), rtol=1e-12)
    np.testing.assert_array_equal(found.chains[:, 0], draws.median("draw"))


def test_sizes_keep_their_own_level():
    boot = rs.bootstrap(LOCAL, EFFECT, n_resamples=8, rng=0, progress=False)
    with pytest.raises(ValueError, match=r"level must be 0.95, .*; got 0.9"):
        forest_data(rs.effect_sizes(EFFECT, boot), "importance", 0.9)


def test_the_largest_may_be_negative():
    local = rs.local_effects(lambda X: X[:, 0] * X[:, 1] - 4 * X[:, 1], X)
    found = forest_data(rs.rhale(local, bins=rs.EqualWidthBins(2)), "average_effect", 0.9)
    assert found.order.tolist() == [1, 0, 2]
    assert found.point[0] == pytest.approx(-4, abs=0.1)


def test_levels_without_an_order_have_no_average_but_a_size():
    table = np.column_stack([np.random.default_rng(1).integers(0, 3, 90), RNG.normal(size=90)])
    frame = pd.DataFrame({"k": np.array(list("uvw"))[table[:, 0].astype(int)], "b": table[:, 1]})
    effect = rs.std_error(rs.ale(
        lambda X: X["k"].map({"u": 0, "v": 2, "w": 1}).to_numpy() * (3 + X["b"].to_numpy()), frame,
        bins=rs.EqualWidthBins(2),
    ))  # fmt: skip
    assert effect["feature_kind"].values.tolist() == ["nominal", "continuous"]
    found = forest_data(effect, "average_effect", 0.9)
    assert found.order.tolist() == [1, 0]
    assert found.unordered.tolist() == [False, True]
    assert np.isnan([found.point[1], *found.interval[:, 1]]).all()
    assert np.isfinite(found.point[0])
    sizes = forest_data(rs.effect_sizes(effect), "importance", 0.95)
    assert np.isfinite(sizes.point).all()
    assert not sizes.unordered.any()
    assert sizes.source == "rows"


def test_what_cannot_be_ranked():
    message = "effect must be a Dataset that rhale, effect_sizes or bootstrap returned; got list"
    with pytest.raises(TypeError, match=message):
        forest_data([], "average_effect", 0.9)
    with pytest.raises(ValueError, match="'curve' is over feature, edge. Variables with intervals"):
        forest_data(EFFECT, "curve", 0.9)
    with pytest.raises(ValueError, match=r"intervals: average_effect\. Sizes are in"):
        forest_data(EFFECT, "size", 0.9)
    with pytest.raises(ValueError, match="'heterogeneity_output' without one"):
        forest_data(EFFECT, "heterogeneity_output", 0.9)


def test_intervals_of_the_rows_alone_stand_beside_those_with_the_model():
    """In the same order; none where errors are of rows."""
    model = rs.Parametric(
        lambda b, X: b[0] * X[:, 0] * X[:, 1] + b[1] * X[:, 1] ** 2, [1.0, -2], np.eye(2) / 9
    )
    local = rs.local_effects(model, X, features=[0, 1, 2])
    effect = rs.rhale(local, bins=rs.EqualWidthBins(2))
    assert forest_data(effect, "average_effect", 0.9).rows is None
    both = rs.confint(rs.std_error(effect, local, model=model, X=X), level=0.9)
    found = forest_data(both, "average_effect", 0.9)
    assert found.rows.shape == (2, 3)
    assert np.isnan(found.rows[:, 2]).all()
    assert np.isfinite(found.rows[:, :2]).all()
    # Shorter, about the same numbers.
    assert (np.ptp(found.rows[:, :2], axis=0) < np.ptp(found.interval[:, :2], axis=0)).all()
    np.testing.assert_allclose(found.rows[:, :2].mean(axis=0), found.point[:2], atol=0.05)
