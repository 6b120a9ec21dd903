"""Sizes by chance: by hand, their p-values and thresholds, failures, and the size of the test."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import rhale_stats as rs
from rhale_stats.diagnostics import chance as chance_module
from rhale_stats.diagnostics.chance import _compared

N = 60
OPTIONS = {"n_jobs": 1, "progress": False}
LOWER = ("aler_min",)
NAN = np.nan


@pytest.fixture
def table(rng):
    found = pd.DataFrame(rng.uniform(-1, 1, (N, 2)), columns=["a", "b"])
    return found.assign(y=found["a"] + rng.normal(size=N))


def slopes(features, y):
    return np.linalg.lstsq(np.column_stack([features, np.ones(len(y))]), y, rcond=None)[0][:-1]


def fit(table):
    """Least squares of y on all other columns, whose effects are constant."""
    X = table.drop(columns="y")
    jacobian = np.tile(slopes(X, table["y"]), (len(X), 1))
    return rs.rhale(rs.local_effects(None, X, jacobian=jacobian), bins=rs.EqualWidthBins(1))


def two_outputs(table):
    X = table.drop(columns="y")
    local = rs.local_effects(lambda X: np.column_stack([X, X])[:, :2], X, output=[0, 1])
    return rs.rhale(local, bins=rs.EqualWidthBins(1))


def size(x, slope):
    """Importance of a straight line."""
    return abs(slope) * np.std(x)


@pytest.mark.thorough
def test_p_of_permuted_columns_by_hand(table):
    found = rs.sizes_by_chance(fit, table, features=["b", "a"], n_resamples=9, rng=3, **OPTIONS)
    streams = np.random.default_rng(3).spawn(18)
    for position, name in enumerate(["b", "a"]):
        own = size(table[name], slopes(table[["a", "b"]], table["y"])["ab".index(name)])
        chance = []
        for stream in streams[position::2]:
            X = table[["a", "b"]].copy()
            X[name] = X[name].to_numpy()[stream.permutation(N)]
            chance.append(size(X[name], slopes(X, table["y"])["ab".index(name)]))
        of = found.sel(feature=name)
        assert_allclose(of["importance"], own, rtol=1e-9)
        assert_allclose(of["importance_chance"], chance, rtol=1e-9)
        assert of["importance_chance_p_value"] == (1 + np.sum(np.array(chance) >= own)) / 10
        assert of["importance_threshold"] == np.inf
    assert found["importance_chance_p_value"].sel(feature="a") == 0.1
    # Nothing of the effects themselves is changed.
    sizes = rs.effect_sizes(fit(table))
    for name in sizes.data_vars:
        assert_array_equal(found[name], sizes[name])


def test_arrays_are_permuted_by_position(table):
    def of_array(rows):
        return fit(pd.DataFrame(rows, columns=["x0", "x1", "y"]))

    found = rs.sizes_by_chance(
        of_array, table.to_numpy(), features=1, n_resamples=9, rng=0, **OPTIONS
    )
    named = rs.sizes_by_chance(fit, table, features="b", n_resamples=9, rng=0, **OPTIONS)
    assert_allclose(found["importance_chance"], named["importance_chance"], rtol=1e-12)
    assert np.isnan(found["importance_chance_p_value"][0])
    assert found["heterogeneity_index_chance_p_value"][1] >= 0.1


def test_added_column_is_that_of_all_features(table):
    found = rs.sizes_by_chance(fit, table, n_resamples=19, rng=3, **OPTIONS)
    chance = []
    for stream in np.random.default_rng(3).spawn(19):
        X = table[["a", "b"]].assign(random=stream.normal(size=N))
        chance.append(size(X["random"], slopes(X, table["y"])[2]))
    assert_allclose(found["importance_chance"], chance, rtol=1e-9)
    assert found["importance_chance"].dims == ("replicate",)
    assert_allclose(
        found["importance_chance_p_value"],
        (1 + (np.array(chance)[:, None] >= found["importance"].values).sum(axis=0)) / 20,
    )
    # In units of the feature, so that no other feature can be compared with it.
    assert "heterogeneity_index_chance" not in found
    assert_array_equal(table.columns, ["a", "b", "y"])
    # Tables show the thresholds.
    frame = rs.tidy(found).set_index(["term", "size"])
    assert set(frame.index.levels[1]) == set(rs.tidy(rs.effect_sizes(fit(table)))["size"])
    line = frame.loc[("a", "importance")]
    assert line["threshold"] == found["importance_threshold"][0]
    assert line["chance_p_value"] == found["importance_chance_p_value"][0] == 0.05
    text = str(rs.summary(found))
    assert "P chance" in text
    assert "in 19 fits of the model with an added random column" in text
    assert "P chance" in str(rs.show(found))


@pytest.mark.thorough
@pytest.mark.parametrize("features", [None, ["a", "b"]])
def test_thresholds_are_exceeded_if_and_only_if_p_is_small(table, features):
    found = rs.sizes_by_chance(
        fit, table, features=features, level=0.8, n_resamples=9, rng=1, **OPTIONS
    )
    for name in ("importance", "aled", "aler_min", "aler_max"):
        sign = -1 if name in LOWER else 1
        over = sign * found[name] > sign * found[f"{name}_threshold"]
        assert_array_equal(over, found[f"{name}_chance_p_value"] <= 0.2)
        at = np.sort(sign * found[f"{name}_chance"].values, axis=0)[-2]
        assert_allclose(sign * found[f"{name}_threshold"], np.broadcast_to(at, 2), rtol=1e-12)


def test_p_values_and_thresholds_of_given_sizes():
    """Four replicates, of which one failed for the second feature; ties count, up to rounding."""
    names = ["a", "b", "c"]
    chance = xr.Dataset(
        {
            "importance": (
                ("replicate", "feature"),
                [[1.0, 2.0, NAN], [3.0, NAN, NAN], [2.0, 5.0, NAN], [2 * (1 - 5e-10), 1.0, NAN]],
            ),
            "aler_min": (
                ("replicate", "feature"),
                [[-1.0, -2.0, NAN], [-3.0, NAN, NAN], [-2.0, -5.0, NAN], [0.5, -1.0, NAN]],
            ),
            "failed": (("replicate", "feature"), np.zeros((4, 3))),
        },
        {"feature": names},
    )
    found = xr.Dataset(
        {
            "importance": ("feature", [2.0, 5.0, 1.0]),
            "aler_min": ("feature", [-2.0, NAN, -1.0]),
            "aled": ("feature", [1.0, 1.0, 1.0]),
        },
        {"feature": names},
    )
    out = _compared(found, chance, 0.6)
    assert set(out.data_vars) - set(found.data_vars) == {
        *(f"{name}_{end}" for name in ("importance", "aler_min")
          for end in ("chance", "chance_p_value", "threshold")),
        "failed",
    }  # fmt: skip
    # 3, 2 and the tie are as large as 2; of three known sizes one is as large as 5.
    assert_allclose(out["importance_chance_p_value"], [4 / 5, 2 / 4, NAN])
    # As low as -2: -3 and itself. What is unknown is not compared.
    assert_allclose(out["aler_min_chance_p_value"], [3 / 5, NAN, NAN])
    # P is at most 0.4 where fewer than 2 of 5, or 1.6 of 4, are as large.
    assert_allclose(out["importance_threshold"], [2.0, 5.0, NAN])
    assert_allclose(out["aler_min_threshold"], [-2.0, -5.0, NAN])
    assert_array_equal(out["importance_chance"], chance["importance"])
    assert out["importance_threshold"].attrs["level"] == 0.6
    assert out["failed"].attrs == {"long_name": "the fit raised", "units": "1"}
    # 1 - 0.8 of 5 is one, in spite of rounding: the largest.
    assert_allclose(_compared(found, chance, 0.8)["importance_threshold"], [3.0, np.inf, NAN])
    negative = found.assign(importance=("feature", [-2.0, 1.0, 1.0]))
    lower = chance.assign(importance=(("replicate", "feature"), np.full((4, 3), -2 * (1 + 5e-10))))
    p = _compared(negative, lower, 0.6)["importance_chance_p_value"]
    assert_allclose(p, [1.0, 1 / 5, 1 / 5])


def test_every_fit_is_a_step_of_the_progress(table, monkeypatch):
    steps = []

    class Bar:
        def __enter__(self):
            return self

        def __exit__(self, *_): ...

        def update(self, n):
            steps.append(n)

    def bar(total, *words, progress):
        assert (total, words, progress) == (6, ("sizes by chance", "fit"), False)
        return Bar()

    monkeypatch.setattr(chance_module, "progress_bar", bar)
    rs.sizes_by_chance(fit, table, features=["b", "a"], n_resamples=3, rng=0, **OPTIONS)
    assert steps == [1] * 6


def test_too_few_refits_reject_nothing(table):
    found = rs.sizes_by_chance(fit, table, level=0.9, n_resamples=8, rng=1, **OPTIONS)
    assert_array_equal(found["importance_threshold"], [np.inf, np.inf])
    assert_array_equal(found["aler_min_threshold"], [-np.inf, -np.inf])
    assert found["importance_chance_p_value"].min() >= 1 / 9


@pytest.mark.thorough
def test_ties_count_as_large(table):
    """A model without any effect: all sizes are 0, and so are those by chance."""

    def constant(rows):
        local = rs.local_effects(None, rows[["a"]], jacobian=np.zeros((len(rows), 1)))
        return rs.rhale(local, bins=rs.EqualWidthBins(1))

    found = rs.sizes_by_chance(constant, table, features="a", n_resamples=9, rng=1, **OPTIONS)
    assert found["importance_chance_p_value"].item() == 1


def test_failures_are_counted(table):
    def sometimes(rows):
        if rows["b"].iloc[0] < 0 and not rows.equals(table):
            raise ArithmeticError("did not converge")
        return fit(rows)

    found = rs.sizes_by_chance(sometimes, table, features="b", n_resamples=10, rng=0, **OPTIONS)
    failed = found["failed"].sel(feature="b").values
    assert 0 < failed.sum() < 10
    assert found.attrs["first_failure"] == "ArithmeticError: did not converge"
    chance = found["importance_chance"].sel(feature="b").values
    assert_array_equal(np.isnan(chance), failed == 1)
    own = found["importance"].sel(feature="b").item()
    p = (1 + np.sum(chance >= own)) / (1 + np.sum(failed == 0))
    assert found["importance_chance_p_value"].sel(feature="b").item() == p
    assert f"10 fits ({int(failed.sum())} fits failed)" in rs.summary(found).notes[0]

    def never(rows):
        if rows.equals(table):
            return fit(rows)
        raise ArithmeticError("no")

    with pytest.raises(ValueError, match="all 4 fits failed: ArithmeticError: no"):
        rs.sizes_by_chance(never, table, features="b", n_resamples=4, **OPTIONS)


@pytest.mark.thorough
def test_sizes_on_the_scale_of_outcomes(table):
    options = {"n_resamples": 4, "rng": 0, **OPTIONS}
    found = rs.sizes_by_chance(fit, table, y=table["y"], **options)
    assert_array_equal(
        found["importance_chance"], rs.sizes_by_chance(fit, table, **options)["importance_chance"]
    )
    chance = found["naled_chance"].values
    for number in (0, 1):
        p = (1 + np.sum(chance >= found["naled"].values[number])) / 5
        assert found["naled_chance_p_value"][number] == p


@pytest.mark.slow
def test_processes_and_files_change_nothing(table, tmp_path):
    options = {"features": ["a"], "n_resamples": 4, "rng": 0, "progress": False}
    one = rs.sizes_by_chance(fit, table, n_jobs=1, **options)
    two = rs.sizes_by_chance(fit, table, n_jobs=2, **options)
    assert_allclose(one["importance_chance"], two["importance_chance"], rtol=1e-12)
    one.to_netcdf(tmp_path / "sizes.nc")
    assert one.identical(_loaded(tmp_path / "sizes.nc"))


def _loaded(path):
    with xr.open_dataset(path) as found:
        return found.load()


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"features": "z"}, ValueError, "'z'.*data has 'a', 'b', 'y'"),
        ({"features": "y"}, ValueError, "features of what fit returns.*got y"),
        ({"features": ["a", "a"]}, ValueError, "each once"),
        ({"features": []}, ValueError, "one column or more"),
        ({"n_resamples": 0}, ValueError, "n_resamples"),
        ({"level": 1.0}, ValueError, "level"),
    ],
)
def test_wrong_arguments(table, options, error, match):
    with pytest.raises(error, match=match):
        rs.sizes_by_chance(fit, table, **OPTIONS, **options)


def test_columns_that_are_not_used(table):
    with pytest.raises(ValueError, match="'random' is not among a, b"):
        rs.sizes_by_chance(lambda rows: fit(rows[["a", "b", "y"]]), table, **OPTIONS)
    with pytest.raises(ValueError, match="data is an array"):
        rs.sizes_by_chance(fit, table.to_numpy(), **OPTIONS)
    with pytest.raises(ValueError, match="got 3, and data has 0, 1, 2"):
        rs.sizes_by_chance(fit, table.to_numpy(), features=3, **OPTIONS)
    with pytest.raises(ValueError, match="must not have a column 'random'"):
        rs.sizes_by_chance(fit, table.assign(random=0.0), **OPTIONS)
    with pytest.raises(ValueError, match="one output"):
        rs.sizes_by_chance(two_outputs, table, **OPTIONS)
    with pytest.raises(TypeError, match="what fit returns"):
        rs.sizes_by_chance(lambda rows: rows, table, **OPTIONS)


@pytest.mark.thorough
def test_categories_stay_categories(rng):
    levels = pd.Categorical.from_codes(rng.integers(3, size=N), ["u", "v", "w"])
    data = pd.DataFrame({"k": levels, "y": (levels == "v") + rng.normal(size=N)})

    def means(rows):
        assert rows["k"].dtype == data["k"].dtype
        of = rows.groupby("k", observed=False)["y"].mean()
        return rs.ale(lambda X: X["k"].map(of).astype(float).to_numpy(), rows[["k"]])

    found = rs.sizes_by_chance(means, data, features="k", n_resamples=9, rng=0, **OPTIONS)
    assert (found["importance_chance"] > 0).all()


@pytest.mark.slow
def test_p_is_uniform_without_an_effect(rng):
    """Exact for permuted columns: P <= .2, .6 in as many samples; of an effect P is small."""
    p, power = [], []
    for _ in range(40):
        X = pd.DataFrame(rng.exponential(size=(N, 2)), columns=["a", "b"])
        data = X.assign(y=X["a"] + rng.standard_t(3, size=N))
        found = rs.sizes_by_chance(fit, data, features=["b"], n_resamples=4, rng=rng, **OPTIONS)
        p.append(found["importance_chance_p_value"][1].item())
        if len(power) == 3:
            continue
        moved = rs.sizes_by_chance(fit, data, features=["a"], n_resamples=9, rng=rng, **OPTIONS)
        power.append(moved["importance_chance_p_value"][0].item())
    for level in (0.2, 0.6):
        assert stats.binomtest(np.sum(np.array(p) <= level + 1e-9), 40, level).pvalue > 0.001
    assert np.mean(power) < 0.15
