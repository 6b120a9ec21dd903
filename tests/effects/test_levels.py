"""Effects of levels, from the rows of both levels of every step."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import rhale_stats as rs
from rhale_stats.schema.feature_result import one_feature
from tests.helpers import unpacked

N = 40
RNG = np.random.default_rng(4)
CODE = RNG.choice(4, N, p=[0.1, 0.2, 0.3, 0.4])
Y = RNG.exponential(size=N)
X = np.column_stack([CODE, Y]).astype(float)
COUNTS = RNG.integers(1, 4, N).astype(float)
WEIGHTS = {
    "none": {},
    "precision": {"weights": COUNTS / 2, "weight_kind": "precision"},
    "frequency": {"weights": COUNTS, "weight_kind": "frequency"},
}


def _model(X):
    return X[:, 0] ** 2 + X[:, 0] * X[:, 1]


def _effect(kind, centering="mean"):
    local = rs.ale_local_effects(_model, X, features=0, categorical=0, **WEIGHTS[kind])
    return rs.ale_from_local(local, centering=centering)


def expected(kind, centering):
    """All estimates, by name, from rows that are repeated by their frequency."""
    repeats = COUNTS.astype(int) if kind == "frequency" else np.ones(N, dtype=int)
    code, y = np.repeat(CODE, repeats), np.repeat(Y, repeats)
    w = COUNTS / 2 if kind == "precision" else np.ones(len(code))
    share = np.bincount(code, w) / w.sum()
    each = []
    for step in range(3):
        there = (code == step) | (code == step + 1)
        v, g = w[there], (2 * step + 1 + y)[there]
        mean = np.average(g, weights=v)
        n, r = v.sum() ** 2 / np.sum(v**2), g - mean
        square, fourth = (np.average(r**power, weights=v) for power in (2, 4))
        variance = square * n / (n - 1)
        of_variance = (fourth - (n - 3) / (n - 1) * variance**2) / n
        values = {
            "effect": mean,
            "heterogeneity": np.sqrt(variance),
            "heterogeneity_se": np.sqrt(of_variance / variance) / 2,
            "n_obs": there.sum(),
            "n_effective": n,
            "weight_share": v.sum() / w.sum(),
            "x_mean": np.average(code[there], weights=v),
            "third_moment": np.average(r**3, weights=v),
            "fourth_moment": fourth,
            "square": square,
            "total": v.sum(),
        }
        each.append(values)
    out = {name: np.array([values[name] for values in each]) for name in each[0]}
    square, total, spread = out.pop("square"), out.pop("total"), out["heterogeneity"]
    start = np.append(0, np.cumsum(out["effect"]))
    offset = {"mean": share @ start, "start": 0, "integral": start.mean()}[centering]
    n = w.sum() ** 2 / np.sum(w**2)
    levels = np.arange(4)
    of_x = share @ (levels - share @ levels) ** 2 * n / (n - 1)
    out |= {
        "edge_value": levels,
        "curve": start - offset,
        "curve_std": np.append(0, np.sqrt(np.cumsum(spread**2))),
        "curve_std_sum": np.append(0, np.cumsum(spread)),
        "curve_offset": offset,
        "average_effect": np.average(out["effect"], weights=total),
        "heterogeneity_index": square.sum(),
        "heterogeneity_output": np.sqrt(of_x * np.average(spread**2, weights=total)),
        "level_share": share,
        "n_level": np.bincount(code),
        "n_level_effective": np.bincount(code, w) ** 2 / np.bincount(code, w**2),
    }
    return out | covariances(code, y, w, out, n, centering)


def covariances(code, y, w, found, n, centering):
    """Sums of products of the influences of rows, those of steps with the factors of HC1."""
    share = found["level_share"]
    psi, average = np.zeros((len(code), 3)), np.zeros(len(code))
    pairs = sum(w[(code == step) | (code == step + 1)].sum() for step in range(3))
    for step in range(3):
        there = (code == step) | (code == step + 1)
        g = 2 * step + 1 + y
        residual = np.where(there, w * (g - found["effect"][step]), 0)
        psi[:, step] = residual / w[there].sum()
        average += np.where(there, w * (g - found["average_effect"]), 0) / pairs
    psi *= np.sqrt(found["n_effective"] / (found["n_effective"] - 1))
    loads = np.tri(4, 3, -1)
    if centering == "mean":
        loads = loads - share @ loads
    elif centering == "integral":
        loads = loads - loads.mean(axis=0)
    of_curve = psi @ loads.T
    if centering == "mean":
        centred = found["curve"] - share @ found["curve"]
        of_curve = of_curve - (w / w.sum() * centred[code])[:, None]
    effect_cov, curve_cov = psi.T @ psi, of_curve.T @ of_curve
    start = np.tri(4, 3, -1) @ effect_cov @ np.tri(4, 3, -1).T
    return {
        "effect_cov": effect_cov,
        "curve_cov": curve_cov,
        "average_effect_se": np.sqrt(np.sum(average**2) * n / (n - 1)),
        "effect_se": np.sqrt(np.diagonal(effect_cov)),
        "curve_se": np.sqrt(np.diagonal(curve_cov)),
        "curve_se_start": np.sqrt(np.diagonal(start)),
    }


@pytest.mark.thorough
@pytest.mark.parametrize("centering", ["mean", "start", "integral"])
@pytest.mark.parametrize("kind", WEIGHTS)
def test_everything_by_rows(kind, centering):
    effect = _effect(kind, centering)
    row = one_feature(unpacked(rs.std_error(effect)), 0)
    known = expected(kind, centering)
    assert_allclose(row.effect_cov, known.pop("effect_cov"), rtol=1e-9)
    table = effect.rhale.in_bins().isel(feature=0)
    for name in ("curve_std", "curve_std_sum", "curve_offset", "heterogeneity_index"):
        assert_allclose(table[name], known.pop(name), rtol=1e-9, atol=1e-12, err_msg=name)
    for name, values in known.items():
        atol = 1e-12 if "curve" in name else 0
        assert_allclose(row[name], values, rtol=1e-9, atol=atol, err_msg=name)
    # Between levels there are no values of the feature.
    none = {"x_variance", "x_covariance"}
    assert all(np.isnan(row[name]).all() for name in none)
    others = {*none, "local_effect_error", "numerical_error", "moments", "effect_rows", "n_bins"}
    assert {*map(str, row.dataset.data_vars)} - others == {*known} - {"edge_value"}
    assert_array_equal(row["n_obs"], known["n_obs"])
    assert_array_equal(row["level"], ["0", "1", "2", "3"])
    assert effect.attrs["n_rows"] == N
    assert (effect.attrs["method"], effect.attrs["centering"]) == ("ale", centering)


def test_features_with_fewer_levels_and_with_one():
    table = np.column_stack([CODE, CODE > 1, np.ones(N)]).astype(float)
    effect = rs.ale(lambda X: X[:, 0] * X[:, 1], table, features=[0, 1, 2], categorical=[0, 1, 2])
    assert effect["n_bins"].values.tolist() == [3, 1, 0]
    assert effect["level"].values.tolist() == [
        ["0", "1", "2", "3"], ["0", "1", "", ""], ["1", "", "", ""],
    ]  # fmt: skip
    for name in ("effect", "curve", "average_effect", "heterogeneity_output"):
        assert np.isnan(effect[name].values[2]).all()
        assert np.isfinite(effect[name].values[:2]).any()
    alone = effect.isel(feature=[1])
    assert np.isnan(alone["effect"].values[0, 1:]).all()


def test_rows_without_weight_are_no_rows():
    weights = np.where(np.arange(N) < 5, 0.0, 1.0)
    local = rs.ale_local_effects(_model, X, features=0, categorical=0, weights=weights)
    effect = rs.ale_from_local(local)
    rest = rs.ale(_model, X[5:], features=0, categorical=0)
    assert effect.attrs["n_rows"] == rest.attrs["n_rows"] == N - 5
    for name in ("effect", "curve", "n_level", "n_obs", "curve_cov"):
        assert_allclose(effect[name], rest[name], rtol=1e-12, atol=1e-13, err_msg=name)


def test_levels_without_rows_after_a_selection():
    """One of two neighbouring levels must have rows."""
    local = rs.ale_local_effects(_model, X, features=0, categorical=0)
    some = local.isel(obs=CODE != 1)
    effect = rs.ale_from_local(some)
    assert effect["n_level"].values[0].tolist() == np.bincount(CODE[CODE != 1]).tolist()
    assert effect["n_level_effective"].values[0, 1] == 0
    assert effect["level_share"].values[0, 1] == 0
    assert_allclose(effect["effect"][0, 0], np.mean(1 + Y[CODE == 0]))
    with pytest.raises(ValueError, match=r"feature 'x0' has none at levels 1 and 2\. Select"):
        rs.ale_from_local(local.isel(obs=(CODE == 0) | (CODE == 3)))


@pytest.mark.thorough
@pytest.mark.parametrize("missing", ["drop", "bin"])
def test_rows_are_counted_once(missing):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=200), "g": rng.choice(list("wxyz"), 200).astype(object)})
    X.loc[:9, "a"], X.loc[20:24, "g"] = np.nan, None
    effect = rs.ale(lambda t: t["a"].fillna(0) + (t["g"] == "x"), X, missing=missing)
    known = [190, 195 if missing == "drop" else 200]
    assert rs.glance(effect)["n_obs"].tolist() == known
    for name, n in zip("ag", known, strict=True):
        assert str(rs.summary(effect, name)).split("Rows:")[1].split()[0] == str(n)
