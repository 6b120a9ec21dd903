"""What the fuzzers found, each as a test of its own: refused by the package, not by a library."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import rhale_stats as rs
from rhale_stats.ensembles import refits
from tests.fuzz.engine import plain_world, product
from tests.helpers import as_of_a_file

WORLD = plain_world()
LOCAL, EFFECT, BOOT = (WORLD.pool[name][0] for name in ("local", "effect", "boot"))


def regions(features):
    return rs.all_regions(LOCAL, features, max_depth=1, n_permutations=19, rng=0, progress=False)


def test_regions_of_one_feature_by_name_or_number():
    for features in ("x1", 1, -2, ["x1"], np.array(["x1"])):
        assert regions(features)["feature"].values.tolist() == ["x1"]


@pytest.mark.parametrize(
    ("features", "error", "said"),
    [
        ([], ValueError, "features must name at least one feature; got none"),
        ((), ValueError, "features must name at least one feature; got none"),
        ("", KeyError, "feature must be one of .*; got ''"),
        (99, KeyError, "feature must be one of .*; got 99"),
        (["x0", 0], ValueError, "features must be distinct; got .'x0', 0."),
    ],
)
def test_regions_of_no_feature(features, error, said):
    with pytest.raises(error, match=said):
        regions(features)


@pytest.mark.parametrize(
    "y", [["A"], np.array(["x"]), np.ones(40) * 1j, np.array([None, "x"]), pd.Series(["a"] * 40)]
)
def test_outcomes_that_are_no_numbers(y):
    with pytest.raises(TypeError, match="y must be numbers; got "):
        rs.effect_sizes(EFFECT, y=y)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (np.ones((40, 2)) * 1j, "data must hold real numbers; got dtype complex128"),
        (np.ma.masked_less(np.arange(40.0).reshape(20, 2), 3), "data must hold plain numbers; got"),
    ],
)
def test_rows_of_a_fit_that_are_no_real_numbers(data, said):
    with pytest.raises(TypeError, match=said):
        rs.bootstrap_refit(lambda rows: EFFECT, data, n_resamples=4, n_jobs=1)


def test_no_more_processes_than_replicates(monkeypatch):
    """99 processes were started for 8 replicates."""
    asked = []

    def in_processes(refit, streams, processes, done):
        asked.append(processes)
        return list(map(refit, streams))

    monkeypatch.setattr(refits, "in_processes", in_processes)
    options = {"n_resamples": 4, "n_jobs": 99, "progress": False, "rng": 0}
    rs.bootstrap_refit(lambda rows: EFFECT, WORLD.X, **options)
    assert asked == [4]


@pytest.mark.parametrize(
    "centering", ["", [], {}, np.ones((2, 2)), xr.Dataset(), pd.NA, pd.DataFrame({"a": [1.0]})]
)
@pytest.mark.parametrize("kind", ["plain", "centered"])
def test_centering_of_ice_is_a_name(kind, centering):
    with pytest.raises(ValueError, match="centering must be one of .*; got "):
        rs.ice(product, WORLD.X, kind=kind, centering=centering, progress=False)


@pytest.mark.parametrize("dim", [[], ["draw"], {"draw"}, np.ones(2), xr.Dataset()])
def test_dimension_of_replicates_is_a_text(dim):
    with pytest.raises(TypeError, match="dim must be a text; got "):
        rs.simulate.mcse(BOOT, dim)


@pytest.mark.parametrize("what", [["importance"], {1}, np.ones(2), EFFECT, pd.NA])
def test_what_a_forest_shows_is_a_text(what):
    with pytest.raises(TypeError, match="what must be a text; got "):
        rs.plots.forest(rs.effect_sizes(EFFECT), what)


MASKED = np.ma.masked_less(np.arange(40.0), 3)


@pytest.mark.parametrize("ax", [EFFECT, xr.Dataset(), [EFFECT], "x", MASKED, MASKED[0], [[MASKED]]])
def test_axes_that_are_none(ax):
    with pytest.raises(TypeError, match="ax must be 1 matplotlib Axes, one; got .* among them"):
        rs.plots.bias(WORLD.pool["check"][0], "x0", ax=ax)


def test_axes_in_nested_lists():
    effect = rs.rhale(LOCAL.sel(feature=["x0", "x1"]), bins=rs.EqualWidthBins(3))
    _, axes = plt.subplots(2)
    for given in (axes, axes[:, None], [[axes[0]], [axes[1]]], [axes]):
        assert list(np.ravel(rs.plots.effects(effect, ax=given))) == list(axes)


def test_shapley_values_of_rows_of_different_lengths():
    with pytest.raises(TypeError, match="shap_values must be numbers; got "):
        rs.shap_dependence(product, WORLD.X, shap_values=[[1], [1, 2]])


@pytest.mark.parametrize("name", ["local", "effect", "truth"])
def test_an_empty_dataset_is_no_result(name):
    with pytest.raises(ValueError, match=f"{name} must hold a result; got an empty Dataset"):
        rs.to_datatree(**{name: xr.Dataset()})


@pytest.mark.parametrize("n_bins", [1, 2, 5])
def test_bins_of_one_width_begin_with_the_first_cell(n_bins):
    """Cells of the local effects reach from -1e7 to 1e7, and the rows from -1 to 99999."""
    X = pd.DataFrame({"a": np.r_[99999.0, np.linspace(-1, 0.4, 30)], "b": np.linspace(0, 1, 31)})
    cells = rs.GivenBins([-1e7, 0.0, 1e7])
    local = rs.local_effects(
        lambda X: np.floor(X["a"]), X, features=["a"], bins=cells, method="finite_difference"
    )
    effect = rs.rhale(local, bins=rs.BestEqualWidthBins(max_bins=n_bins, min_obs=2))
    assert effect["edge_value"].values[0, 0] <= -1
    assert effect["n_obs"].sum() == 31
    rs.regions(
        local,
        "a",
        bins=rs.BestEqualWidthBins(max_bins=n_bins, min_obs=2),
        rng=0,
        conditioning=X,
        max_depth=1,
        n_permutations=19,
    )


def test_wald_test_of_bins_of_one_row_each():
    X = pd.DataFrame({"a": [0.2, 0.7], "b": [0.1, 0.9]})
    local = rs.local_effects(product, X, weights=[3.0, 2.0], features=["a"])
    for null in ("zero", "constant"):
        tested = rs.wald_test(rs.rhale(local, bins=rs.EqualWidthBins(2)), null=null)
        assert np.isnan(tested["p_value"]).all()


def test_results_of_other_rows_than_those_with_gaps():
    X = pd.DataFrame({"a": np.where(np.arange(60) % 4, 1.0, np.nan) * np.sin(np.arange(60.0))})
    X["b"] = np.cos(np.arange(60.0))
    profile = rs.m_plot(product, X, missing="drop", bins=rs.EqualWidthBins(4))
    found = rs.h_statistic(product, X, missing="drop", keep_answers=True, rng=0, progress=False)
    with pytest.raises(
        ValueError, match="effect and local must be of the same rows; effect has 45"
    ):
        rs.std_error(found, profile)


def test_replicates_of_a_surface_are_none_of_an_effect():
    surface = rs.ale2(product, WORLD.X, features=("x0", "x1"), progress=False)
    boot = rs.bootstrap(surface, n_resamples=4, chains=1, rng=0, progress=False)
    with pytest.raises(ValueError, match="this result; it has no replicates of effect"):
        rs.effect_sizes(EFFECT, boot)


def test_a_curve_that_is_known_on_one_cell_is_no_division_by_zero():
    """It was looked at where bins end only, which was one point."""
    X = pd.DataFrame({"a": [0.0, 0.04, 0.3, 0.7, 1.0]})
    local = rs.local_effects(
        lambda X: X["a"] ** 2, X, bins=rs.EqualWidthBins(20), method="finite_difference"
    )
    with pytest.warns(UserWarning, match="gap"):
        effect = rs.rhale(local, bins=rs.OptimalBins(max_bins=5, min_obs=1))
    scores = rs.simulate.mae(effect, effect)
    assert float(scores["L_mu"][0]) == 0
    assert np.isnan(scores["curve_mean_error"][0])  # beyond that cell there is no curve


def test_a_surface_is_not_compared_with_effects():
    X = np.random.default_rng(0).normal(size=(60, 2))
    surface = rs.ale2(lambda X: X[:, 0] * X[:, 1], X, (0, 1), bins=rs.QuantileBins(3))
    effect = rs.rhale(rs.local_effects(lambda X: X[:, 0] * X[:, 1], X), bins=rs.EqualWidthBins(2))
    for a, b in ((surface, effect), (effect, surface)):
        with pytest.raises(ValueError, match="one kind; got .* and .*compare_methods"):
            rs.compare(a, b)


def test_bootstrap_of_several_outputs_whose_features_have_rows_of_their_own():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    X.loc[:6, "a"] = X.loc[3:11, "b"] = np.nan

    def model(X):
        return np.column_stack([np.nan_to_num(X["a"]), np.nan_to_num(X["b"]) ** 2])

    local = rs.local_effects(model, X, missing="drop", progress=False)
    effect = rs.rhale(local, bins=rs.EqualWidthBins(3))
    boot = rs.bootstrap(local, effect, n_resamples=8, rng=0, progress=False)
    one = rs.bootstrap(
        local.isel(output=1), effect.isel(output=1), n_resamples=8, rng=0, progress=False
    )
    assert boot.sizes["output"] == 2
    np.testing.assert_allclose(boot["curve"].isel(output=1), one["curve"])
    assert np.isfinite(rs.confint(effect, boot)["curve_ci"]).any()


def test_bootstrap_of_effects_in_bins_with_curves_in_the_place_of_local_effects():
    X = np.random.default_rng(0).normal(size=(30, 2))
    ice = rs.ice(product, X, progress=False)
    with pytest.raises(ValueError, match="^local must be the Dataset that local_effects.*profile"):
        rs.bootstrap(ice, EFFECT, n_resamples=8, rng=0, progress=False)
    with pytest.raises(ValueError, match="^effect must be .*got local effects"):
        rs.bootstrap(LOCAL, LOCAL, n_resamples=8, rng=0, progress=False)


def test_a_profile_with_a_dimension_of_another_name():
    profile = rs.pdp(lambda X: np.column_stack([X[:, 0]] * 3), np.eye(5), progress=False)
    with pytest.raises(ValueError, match="^effect must .* dimension 'other'"):
        rs.confint(profile.rename(output="other"))


def test_a_list_of_results_of_which_one_lost_a_part():
    profile = rs.pdp(product, np.random.default_rng(0).normal(size=(30, 2)), progress=False)
    with pytest.raises(ValueError, match="^results must be whole, .*no variable 'feature_kind'"):
        rs.compare_methods([profile.drop_vars("feature_kind"), profile], "x0")
    known = as_of_a_file(profile)
    with pytest.raises(ValueError, match="^results must be whole, .*'feature_kind' is missing"):
        rs.compare_methods([known.drop_vars("feature_kind"), profile], "x0")


def test_rows_that_leave_neighbouring_levels_empty():
    X = pd.DataFrame({"a": list("uuvvwwxx"), "b": np.arange(8.0)})
    local = rs.ale_local_effects(
        lambda X: (X["a"] == "v") * 1.0, X, features="a", categorical="a", progress=False
    )
    with pytest.raises(ValueError, match="feature 'a' has none at levels 1 and 2. Select other"):
        rs.ale_from_local(local.isel(obs=[0, 1, 6, 7]))
    effect = rs.ale_from_local(local.isel(obs=[0, 1, 4, 5, 6, 7]))
    assert np.isfinite(effect["curve"].sel(feature="a")).all()
