"""What follows from the moments of all features at once is that of each feature alone."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import rhale_stats as rs

N = 300


def table(kind):
    """Features of very different units, with a constant one, gaps, ties and few values."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(N, 6))
    x[:, 1] = 1e6 * x[:, 1]
    x[:, 2] = 3.0
    x[:, 3] = np.where(x[:, 3] > 0, x[:, 3] + 8, x[:, 3] - 8)
    x[:, 4] = np.round(x[:, 4])
    effects = np.column_stack(
        [
            *(np.sin(2 * x[:, 0]), 1e-9 * rng.exponential(size=N), np.ones(N)),
            *(1e7 * (x[:, 0] + 1), x[:, 5] * rng.standard_t(4, N), np.full(N, 2.0)),
        ]
    )
    options = {}
    if kind == "precision":
        options = {"weights": rng.uniform(0.2, 3, N)}
    if kind == "frequency":
        options = {"weights": rng.integers(1, 4, N), "weight_kind": "frequency"}
    return rs.local_effects(None, x, jacobian=effects, features=range(6), **options)


@pytest.mark.parametrize("weighting", ["axis", "rows"])
@pytest.mark.parametrize("kind", ["plain", "precision", "frequency"])
@pytest.mark.filterwarnings("ignore:Gaps without rows")
def test_features_do_not_depend_on_those_beside_them(kind, weighting):
    local = table(kind)
    effect = rs.rhale(local, weighting=weighting)
    together = rs.confint(effect)
    tidy, glance = rs.tidy(together), rs.glance(together)
    for name in effect["feature"].values:
        alone = rs.confint(rs.rhale(local.sel(feature=[name]), weighting=weighting))
        whole = together.sel(feature=[name])
        for variable in alone.data_vars:
            sizes = {dim: slice(size) for dim, size in alone[variable].sizes.items()}
            found, expected = whole[variable].isel(sizes).values, alone[variable].values
            np.testing.assert_allclose(found, expected, rtol=1e-9, err_msg=f"{name} {variable}")
        for found, verb in ((tidy, rs.tidy), (glance, rs.glance)):
            lines = found[found["term"] == name].reset_index(drop=True)
            expected = verb(alone)
            shared = [column for column in expected if column in lines]
            pd.testing.assert_frame_equal(lines[shared], expected[shared], rtol=1e-9)


@pytest.mark.parametrize("weighting", ["axis", "rows"])
def test_a_feature_whose_rows_have_equal_weights(weighting):
    """Beside one whose rows have other ones: its errors are those of rows without weights."""
    rng = np.random.default_rng(5)
    x = pd.DataFrame(rng.normal(size=(N, 2)), columns=["a", "b"])
    x.loc[: N // 2, "a"] = np.nan
    weights = np.where(x["a"].isna(), rng.uniform(0.5, 2, N), 1.0)
    effects = np.column_stack([np.sin(2 * x["a"].fillna(0)), x["b"] + rng.exponential(size=N)])

    def errors(rows, **options):
        local = rs.local_effects(None, x[rows], jacobian=effects[rows], **options)
        return rs.std_error(rs.rhale(local, weighting=weighting))

    every = errors(np.ones(N, dtype=bool), weights=weights, missing="drop")
    alone = errors(x["a"].notna().to_numpy())
    for variable in ("effect_se", "heterogeneity_se", "curve_se", "average_effect_se"):
        expected = alone.sel(feature=["a"])[variable]
        sizes = {dim: slice(size) for dim, size in expected.sizes.items()}
        found = every.sel(feature=["a"])[variable].isel(sizes)
        np.testing.assert_allclose(found.values, expected.values, rtol=1e-9, err_msg=variable)
