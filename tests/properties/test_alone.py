"""A feature has the same result alone and beside others, on axes and with levels."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import rhale_stats as rs
from tests.helpers import in_turn

pytestmark = pytest.mark.filterwarnings("ignore::rhale_stats.JumpWarning")
N = 150
WEIGHTS = {
    "precision": {"weights": np.random.default_rng(1).gamma(1.0, size=N)},
    "frequency": {
        "weights": np.random.default_rng(2).integers(0, 4, N),
        "weight_kind": "frequency",
    },
}
GROUPS = np.random.default_rng(3).integers(0, 25, N)
ON_AXES = ["tail", "rounded", "zeros"]
ALL = [*ON_AXES, "level"]


@cache
def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "tail": rng.standard_t(3, N),
            "rounded": np.round(rng.normal(size=N), 1),
            "zeros": np.where(rng.uniform(size=N) < 0.4, 0.0, rng.exponential(size=N)),
            "level": rng.choice(["x", "y", "z"], N),
        }
    )


def model(X):
    """Heavy tails, an interaction, and a jump."""
    return np.asarray(
        np.sin(2 * X["tail"]) * X["rounded"]
        + X["tail"] ** 2 * X["rounded"] / 10
        + np.sqrt(X["zeros"]) * (X["tail"] > 1)
        + (X["level"] == "y") * X["rounded"]
    )


def local(features, weights):
    return rs.local_effects(model, table(), features=features, **weights)


def by_groups(features, weights):
    bins = rs.QuantileBins(4)
    rows = rs.ale_local_effects(model, table(), features=features, bins=bins, **weights)
    return rs.confint(rs.std_error(rs.ale_from_local(rows), rows, groups=GROUPS))


CALLS = {
    "rhale": (ON_AXES, lambda features, weights: rs.confint(rs.rhale(local(features, weights)))),
    "rows": (
        ON_AXES,
        lambda features, weights: rs.confint(
            rs.rhale(local(features, weights), bins=rs.OptimalBins(20), weighting="rows")
        ),
    ),
    "ale": (ALL, lambda features, weights: rs.confint(rs.ale(model, table(), features, **weights))),
    "groups": (ALL, by_groups),
    "pdp": (ALL, lambda features, weights: rs.confint(rs.pdp(model, table(), features, **weights))),
    "wald_test": (
        ALL,
        lambda features, weights: rs.wald_test(
            rs.ale(model, table(), features, **weights), adjust="none"
        ),
    ),
    "sizes": (
        ALL,
        lambda features, weights: rs.effect_sizes(rs.ale(model, table(), features, **weights)),
    ),
}


@pytest.mark.parametrize(("name", "kind"), in_turn(CALLS, WEIGHTS))
def test_a_feature_alone_has_the_result_that_it_has_beside_others(name, kind):
    features, call = CALLS[name]
    together = call(features, WEIGHTS[kind])
    for position, feature in enumerate(features):
        beside, alone = together.isel(feature=[position]), call([feature], WEIGHTS[kind])
        for variable, data in alone.variables.items():
            values = beside[variable].values[tuple(map(slice, data.shape))]
            if data.dtype.kind == "f":
                finite = np.abs(data.values[np.isfinite(data.values)])
                scale = np.max(finite, initial=0.0)
                assert_allclose(values, data.values, 1e-8, 1e-8 * scale, err_msg=str(variable))
            else:
                assert_array_equal(values, data.values, err_msg=str(variable))
        known = [name for name in alone.data_vars if str(name).endswith(("_ci", "p_value"))]
        assert not np.isnan(alone[known[-1]]).all()


def test_groups_of_rows_may_be_examined_in_other_ways():
    """Few values in one group of rows only: slopes across cells there, derivatives elsewhere."""
    X = table().assign(tail=lambda X: np.where(X["level"] == "x", np.round(X["tail"]), X["tail"]))
    effect = rs.confint(rs.rhale(model, X, "tail", by="level"))
    assert set(effect["local_effect_method"].values.ravel()) == {
        "finite_difference",
        "central_difference",
    }
    for level in "xyz":
        alone = rs.confint(rs.rhale(model, X[X["level"] == level], "tail"))
        values = effect["curve_ci"].sel(region=level).values[:, : alone.sizes["edge"]]
        assert_allclose(values, alone["curve_ci"].values)


@pytest.mark.parametrize("estimator", [rs.pdp, rs.ice, rs.m_plot])
def test_groups_are_those_of_all_rows_where_some_have_weight_0(estimator):
    weights, X = WEIGHTS["frequency"], table()
    count = weights["weights"] > 0
    of_some = dict(weights, weights=weights["weights"][count])
    for groups, of_these in (
        (GROUPS, GROUPS[count]),
        (pd.Series(GROUPS), GROUPS[count]),
        (rs.SurveyDesign(clusters=GROUPS), rs.SurveyDesign(clusters=GROUPS[count])),
    ):
        result = estimator(model, X, "tail", groups=groups, **weights)
        expected = estimator(model, X[count], "tail", groups=of_these, **of_some)
        assert_allclose(result["curve_se"], expected["curve_se"], rtol=1e-12)
