"""Axes that end within the range: percentiles, given edges, bins of a width."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.inspection import partial_dependence
from sklearn.linear_model import LinearRegression

import rhale_stats as rs
from rhale_stats.schema.feature_result import one_feature

N = 400


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {"a": rng.normal(size=N), "b": rng.uniform(-1, 1, N), "k": rng.integers(0, 60, N)}
    )


def model(rows):
    return (rows["a"] ** 2 * (1 + rows["b"]) + rows["k"] / 10).to_numpy()


def inner(x, low, high):
    """By hand: rows from the first to the last whose share of rows reaches the percentile."""
    ends = np.quantile(x, [low, high], method="inverted_cdf")
    return (x >= ends[0]) & (x <= ends[1])


def same(found, expected, *names):
    for name in names:
        np.testing.assert_allclose(
            found[name].values, expected[name].values, rtol=1e-9, atol=1e-12, err_msg=name
        )


@pytest.mark.parametrize("percentiles", [(0.1, 0.9), (10, 90)])
def test_rows_beyond_percentiles_are_left_out_of_their_feature_and_counted(X, percentiles):
    effect = rs.std_error(rs.rhale(model, X, "a", percentiles=percentiles))
    local = rs.local_effects(model, X, "a", percentiles=percentiles)
    rows = inner(X["a"], 0.1, 0.9)
    np.testing.assert_array_equal(local["x"].notnull().values[:, 0], rows)
    by_hand = rs.std_error(rs.rhale(local.isel(obs=np.flatnonzero(rows))))
    same(effect, by_hand, "effect", "curve", "curve_se", "heterogeneity", "edge_value")
    assert effect["n_beyond"].item() == (~rows).sum()
    assert effect["n_missing"].item() == 0
    assert f"left out of their feature: a: {(~rows).sum()}" in str(rs.summary(effect))


def test_of_ale_they_are_those_of_the_inner_rows(X):
    effect = rs.ale(model, X, ["a"], percentiles=(5, 95), bins=10)
    by_hand = rs.ale(model, X[inner(X["a"], 0.05, 0.95)], ["a"], bins=10)
    same(effect, by_hand, "effect", "curve", "heterogeneity", "edge_value", "n_obs")


def test_missing_values_are_counted_apart_from_rows_beyond(X):
    table = X.assign(b=X["b"].where(X["b"] < 0.9))
    gone = table["b"].isna()

    def answers(rows):
        return model(rows.fillna(0))

    effect = rs.rhale(answers, table, "b", percentiles=(5, 95), missing="drop")
    rows = inner(table["b"].dropna(), 0.05, 0.95)
    assert effect["n_missing"].item() == gone.sum()
    assert effect["n_beyond"].item() == (~rows).sum()
    with pytest.raises(ValueError, match="missing must be 'drop'"):
        rs.rhale(answers, table, "b", percentiles=(5, 95), missing="bin")


@pytest.mark.thorough
def test_given_bins_within_the_range(X):
    local, edges = rs.local_effects(model, X), rs.GivenBins({"a": [-1, 0, 1], "b": [-2, 2]})
    local = local.sel(feature=["a", "b"])
    effect = rs.rhale(local, bins=edges)
    rows = (X["a"].abs() <= 1).to_numpy()
    inside = local.isel(obs=np.flatnonzero(rows)).sel(feature=["a"])
    by_hand = rs.rhale(inside, bins=rs.GivenBins([-1, 0, 1]))
    of_a = effect.sel(feature=["a"])
    n_edges = by_hand.sizes["edge"]
    assert of_a["edge_value"].notnull().sum() == n_edges
    names = "effect", "n_obs", "edge_value", "curve"
    same(of_a.isel(bin=slice(2), edge=slice(n_edges)), by_hand, *names)
    assert effect["n_beyond"].values.tolist() == [(~rows).sum(), 0]
    # The same of slopes and of means of outputs.
    rule = rs.GivenBins([-1, 0, 1])
    same(
        rs.ale(model, X, ["a"], bins=rule),
        rs.ale(model, X[rows], ["a"], bins=rule),
        *("effect", "curve", "n_obs"),
    )
    m_plot = rs.m_plot(model, X, "a", bins=rule)
    same(m_plot, rs.m_plot(model, X[rows], "a", bins=rule), "curve", "curve_se", "n_obs")
    assert m_plot["n_beyond"].item() == (~rows).sum()
    assert f"a: {(~rows).sum()}" in str(rs.summary(m_plot))


def test_rows_beyond_count_as_often_as_their_frequency_weights_say(X):
    times = np.arange(N) % 3
    rule, options = rs.GivenBins([-1, 0, 1]), {"weights": times, "weight_kind": "frequency"}
    expected = times[X["a"].abs() > 1].sum()
    local = rs.local_effects(model, X, "a", **options)
    for effect in (
        rs.rhale(model, X, "a", bins=rule, **options),
        rs.rhale(local, bins=rule),
        rs.ale(model, X, "a", bins=rule, **options),
    ):
        assert effect["n_beyond"].item() == expected
        assert effect["n_obs"].sum() + expected == times.sum()


def test_given_bins_within_the_cells_of_slopes(X):
    forest = RandomForestRegressor(10, min_samples_leaf=5, random_state=0).fit(X, model(X))
    with pytest.warns(rs.JumpWarning):
        local = rs.local_effects(forest, X, "a")
    cells = local["cell_value"].values[0]
    effect = rs.rhale(local, bins=rs.GivenBins(cells[[3, 9, 20]]))
    # A row on the last edge has the slope across the cell behind it.
    rows = (X["a"] >= cells[3]) & (X["a"] < cells[20])
    assert effect["n_beyond"].item() == (~rows).sum()
    # The curve from cell to cell is that of all cells.
    whole = rs.rhale(local, bins=rs.GivenBins(cells))
    places = cells[[3, 5, 9, 15]]
    changes = [np.diff(rs.predict(result, places, "a")) for result in (effect, whole)]
    np.testing.assert_allclose(*changes, rtol=1e-9, atol=1e-12)
    boot = rs.bootstrap(local, effect, n_resamples=9, rng=0)
    assert boot["effect"].notnull().all()
    with pytest.raises(ValueError, match="edges must be among those of the cells"):
        rs.rhale(local, bins=rs.GivenBins([cells[3] + 1e-3, cells[9]]))


@pytest.mark.thorough
def test_functions_of_effect_and_local_take_the_whole_local_effects(X):
    local = rs.local_effects(model, X, "a")
    effect = rs.rhale(local, bins=rs.GivenBins([-1, -0.5, 0, 1]))
    rows = np.flatnonzero(X["a"].abs() <= 1)
    inside = local.isel(obs=rows)
    by_hand = rs.rhale(inside, bins=rs.GivenBins([-1, -0.5, 0, 1]))
    groups = np.arange(N) // 4
    same(
        rs.std_error(effect, local, groups=groups),
        rs.std_error(by_hand, inside, groups=groups[rows]),
        *("curve_se", "effect_se", "effect_df"),
    )
    same(
        rs.bootstrap(local, effect, n_resamples=20, rng=0),
        rs.bootstrap(inside, by_hand, n_resamples=20, rng=0),
        *("effect", "curve"),
    )
    same(
        rs.check_unbiased(local, effect, rng=0),
        rs.check_unbiased(inside, by_hand, rng=0),
        *("bin_error", "heterogeneity_within"),
    )
    assert rs.augment(local, effect).shape[0] == N


def test_a_grid_of_partial_dependence_reaches_between_percentiles(X):
    profile = rs.pdp(model, X, "b", percentiles=(0.1, 0.9), n_grid=7, centering="none")
    grid = profile["grid_value"].values[0]
    ends = np.quantile(X["b"], [0.1, 0.9], method="inverted_cdf")
    assert [grid[0], grid[-1]] == ends.tolist()

    fitted = LinearRegression().fit(X, model(X))
    found = rs.pdp(fitted, X, "b", percentiles=(0.1, 0.9), n_grid=7, centering="none")
    theirs = partial_dependence(fitted, X, ["b"], custom_values={"b": grid}, kind="average")
    np.testing.assert_allclose(found["curve"].values, theirs["average"], rtol=1e-12)


def test_points_at_equal_distances_are_whole_numbers_for_integers(X):
    grid = rs.pdp(model, X, "k", grid_kind="equal_width", n_grid=9)["grid_value"].values[0]
    assert (grid == np.round(grid)).all()
    assert [grid[0], grid[-1]] == [X["k"].min(), X["k"].max()]
    assert np.ptp(np.diff(grid)) <= 1


@pytest.mark.filterwarnings("ignore:Bins without rows")
def test_bins_of_a_width_with_a_least_number_of_rows(X):
    local = rs.local_effects(model, X, "a")
    edges = one_feature(rs.rhale(local, bins=rs.EqualWidthBins(width=0.5)), "a").bin_edges
    np.testing.assert_allclose(np.diff(edges)[:-1], 0.5)
    assert [edges[0], edges[-1]] == [X["a"].min(), X["a"].max()]
    assert 0 < np.diff(edges)[-1] <= 0.5 + 1e-9
    effect = rs.rhale(local, bins=rs.EqualWidthBins(width=0.5, min_obs=30))
    assert (effect["n_obs"].values >= 30).all()
    assert effect["n_obs"].sum() == N
    assert np.isin(one_feature(effect, "a").bin_edges, edges).all()
    # Weights of 0 are no rows, and one bin may be all that there is.
    assert rs.rhale(local, bins=rs.EqualWidthBins(9, min_obs=N)).sizes["bin"] == 1
    tree = rs.regions(local, "a", conditioning=X[["b"]], bins=rs.EqualWidthBins(width=0.5), rng=0)
    assert "width=0.5" in tree.attrs["bin_parameters"]
    assert rs.regional_rhale(local, tree)["effect"].notnull().any()


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({}, TypeError, "n_bins or width must be given"),
        ({"n_bins": 3, "width": 1.0}, TypeError, "not both"),
        ({"width": 0.0}, ValueError, "width must be positive"),
        ({"width": "a"}, TypeError, "width must be a number"),
        ({"n_bins": 3, "min_obs": -1}, ValueError, "min_obs must be at least 0"),
    ],
)
def test_what_is_no_width_is_refused(options, error, words):
    with pytest.raises(error, match=words):
        rs.EqualWidthBins(**options)


def test_axes_without_rows_are_refused(X):
    local = rs.local_effects(model, X, "a")
    with pytest.raises(ValueError, match="must have rows between them"):
        rs.rhale(local, bins=rs.GivenBins([50, 60]))
    with pytest.raises(ValueError, match="Widen them"):
        rs.ale(model, X, "a", bins=rs.GivenBins([50, 60]))
    with pytest.raises(ValueError, match="percentiles must be two numbers"):
        rs.rhale(model, X, percentiles=(0.9, 0.1))
