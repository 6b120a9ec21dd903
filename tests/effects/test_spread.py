"""The spread of the local effects in bins of its own (math [66])."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal

import rhale_stats as rs
from rhale_stats.arrays.spread import OF_CELL, share_left, slopes_along
from rhale_stats.effects.spread import (
    TARGET,
    SpreadSums,
    weights_of_rows,
)
from rhale_stats.effects.tables import spread_notes, spread_table, within_bins
from rhale_stats.local.rows import columns
from rhale_stats.printing.text import number_text
from rhale_stats.schema.feature_result import each_feature, one_feature
from tests.helpers import changed, in_turn, labelled, local_of, through_a_file


def in_stretches(effect, feature):
    """What is known of the stretches of one feature that have one spread each."""
    row = one_feature(effect, feature)
    sums = row.spread_sums
    return {
        "edges": row.spread_edges,
        "spread": row.spread,
        "n_obs": sums.n_obs,
        "share": sums.weight / sums.weight.sum(),
        "degrees": sums.degrees,
        "third": sums.moment("third"),
        "fourth": sums.moment("fourth"),
    }


def n_spread_bins(effect):
    """Number of stretches of every feature."""
    return np.array([len(row.spread_starts) for row in each_feature(effect)])


def moving(rng, n=1500, **options):
    """x0: flat, with a spread of 0.2 + 2 z; x1: even spread; x2: spread in proportion; x3: none."""
    z = rng.uniform(size=(n, 4))
    noise = rng.normal(size=(n, 4))
    mean = np.column_stack([0 * z[:, 0], 9 * z[:, 1], np.exp(2 * z[:, 2]), np.sin(6 * z[:, 3])])
    sd = np.column_stack([0.2 + 2 * z[:, 0], 0.5 + 0 * z[:, 1], np.exp(2 * z[:, 2]), 0 * z[:, 3]])
    return local_of(z, mean + sd * noise, **options)


@pytest.fixture(scope="module")
def local():
    return moving(np.random.default_rng(20250))


@pytest.fixture(scope="module")
def effect(local):
    return rs.rhale(local)


def ise(effect, feature, true):
    """Integrated squared errors of ``predict`` and of the heterogeneity of the bins."""
    z = np.linspace(0.001, 0.999, 999)
    own = rs.predict(effect, z, feature, what="heterogeneity").values
    row = one_feature(effect, feature)
    k = np.searchsorted(row.bin_edges[1:-1], z, side="right")
    return np.nanmean((own - true(z)) ** 2), np.nanmean(
        (row["heterogeneity"].values[k] - true(z)) ** 2
    )


def test_spread_that_moves_where_the_effect_does_not_is_followed(effect):
    assert effect["n_bins"].values[0] == 1
    own, of_bins = ise(effect, "x0", lambda z: 0.2 + 2 * z)
    assert of_bins > 10 * own
    own, of_bins = ise(effect, "x2", lambda z: np.exp(2 * z))
    assert of_bins > 2 * own


def test_the_edge_is_at_the_row_of_a_jump():
    """A tenfold jump beside a steep effect: within a row on average, in cells of 15 rows."""
    rng = np.random.default_rng(66)
    z = rng.uniform(-2, 2, size=(1000, 40))
    effect = rs.rhale(
        local_of(z, np.cos(3 * z) + np.where(z < 0, 0.2, 2) * rng.normal(size=z.shape))
    )
    rows = [
        np.abs(np.sum(z[:, [feature]] < row.spread_edges, axis=0) - np.sum(z[:, feature] < 0)).min()
        for feature in range(40)
        for row in [one_feature(effect, feature)]
    ]
    assert np.mean(rows) < 1.2


def test_one_bin_where_the_spread_does_not_move(effect):
    assert_array_equal(n_spread_bins(effect)[[1, 3]], [1, 1])
    row = one_feature(effect, "x1")
    assert_allclose(row.spread, row["heterogeneity"].values[0], rtol=0.03)


def test_bins_of_the_effect_do_not_change_it(local):
    """Five bins of a steep effect have bin error, and the spread has none."""
    wide = rs.rhale(local, bins=rs.EqualWidthBins(5))
    assert one_feature(wide, "x1")["heterogeneity"].values.min() > 0.6
    assert_allclose(rs.predict(wide, [0.1, 0.9], "x1", what="heterogeneity"), 0.5, rtol=0.06)
    chosen = rs.rhale(local)
    for feature in ("x0", "x2"):
        z = np.linspace(0.01, 0.99, 50)
        one, other = (
            rs.predict(e, z, feature, what="heterogeneity").values for e in (wide, chosen)
        )
        assert_allclose(one, other, rtol=0.5)


def test_edges_shares_and_rows(effect):
    for feature in range(4):
        row, found = one_feature(effect, feature), in_stretches(effect, feature)
        edges = found["edges"]
        assert (np.diff(edges) > 0).all()
        assert_array_equal(edges[[0, -1]], row.edges[[0, -1]])
        assert found["n_obs"].sum() == 1500
        assert_allclose(found["share"].sum(), 1)
        assert (found["degrees"] <= found["n_obs"]).all()
        assert found["degrees"].min() >= 30
        # One value in all cells of a stretch, and none beyond the last of them.
        k = np.searchsorted(edges[1:-1], row.edges[:-1], side="right")
        assert_array_equal(effect["spread"][feature, : row.n_cells], found["spread"][k])
        assert bool(effect["spread"][feature, row.n_cells :].isnull().all())


def test_counting_rows_by_the_edges_gives_their_number(local, effect):
    found = in_stretches(effect, "x0")
    counts, _ = np.histogram(local["x"].values[:, 0], found["edges"])
    assert_array_equal(counts, found["n_obs"])


def test_invariance_to_scale_shift_and_reversal(local, effect):
    z, g = local["x"].values, local["local_effect"].values
    other = rs.rhale(local_of(5 - 2 * z, -3 * g))
    for feature in (0, 2):
        row, turned = one_feature(effect, feature), one_feature(other, feature)
        z = np.linspace(0.05, 0.95, 41)
        a = rs.predict(effect, z, feature, what="heterogeneity").values
        b = rs.predict(other, 5 - 2 * z, feature, what="heterogeneity").values
        assert_allclose(np.median(b / a), 3, rtol=0.02)
        assert abs(len(row.spread_starts) - len(turned.spread_starts)) <= 2


def test_frequencies_are_rows_written_out(rng):
    z, count = rng.uniform(size=(400, 1)), rng.integers(1, 4, 400)
    g = (0.2 + 2 * z) * rng.normal(size=z.shape)
    counted = rs.rhale(local_of(z, g, weights=count.astype(float), weight_kind="frequency"))
    repeated = rs.rhale(local_of(np.repeat(z, count, 0), np.repeat(g, count, 0)))
    one, other = (in_stretches(effect, 0) for effect in (counted, repeated))
    for name in ("edges", "spread", "n_obs", "share", "degrees", "fourth"):
        assert_allclose(one[name], other[name], rtol=1e-9, err_msg=name)


def test_equal_precision_weights_change_nothing(rng):
    z = rng.uniform(size=(400, 1))
    g = (0.2 + 2 * z) * rng.normal(size=z.shape)
    plain, weighted = (
        rs.rhale(local_of(z, g, **more)) for more in ({}, {"weights": np.full(400, 7.0)})
    )
    one, other = (in_stretches(effect, 0) for effect in (plain, weighted))
    for name in ("edges", "spread", "n_obs", "share", "degrees", "third"):
        assert_allclose(one[name], other[name], rtol=1e-9, err_msg=name)


def test_honest_edges_come_from_other_rows(local):
    effect = rs.rhale(local, honest=True, rng=0)
    assert n_spread_bins(effect)[0] > 1
    assert in_stretches(effect, 0)["n_obs"].sum() == effect.attrs["n_rows"]
    again = rs.rhale(local, honest=True, rng=0)
    xr.testing.assert_identical(effect["spread"], again["spread"])


@pytest.mark.slow
def test_standard_errors_are_those_of_replicates():
    """Against the standard deviation over samples, with one bin: 0.5 / sqrt(2 n)."""
    rng = np.random.default_rng(4)
    z = rng.uniform(size=(300, 200))
    found = rs.std_error(rs.rhale(local_of(z, rng.normal(0, 0.5, z.shape))))
    one = n_spread_bins(found) == 1
    assert one.mean() > 0.9
    spread, se = (found[name].values[one, 0] for name in ("spread", "spread_se"))
    assert_allclose(np.mean(spread**2), 0.25, rtol=0.02)
    # The standard deviation of 200 values has an error of 5 %.
    assert_allclose(np.std(spread), np.mean(se), rtol=0.15)
    assert_allclose(np.mean(se), 0.5 / np.sqrt(2 * 280), rtol=0.05)


def test_intervals_of_the_spread(effect):
    found = rs.confint(effect, level=0.9)
    ends, spread = found["spread_ci"], found["spread"]
    assert ends.dims == ("feature", "edge", "ci_bound")
    inside = (ends[..., 0] < spread) & (spread < ends[..., 1])
    assert bool((inside == spread.notnull()).all())
    assert "inversion" in ends.attrs["method"]
    assert "spread_ci" not in rs.std_error(found)


@pytest.mark.thorough
def test_groups_of_one_row_have_nearly_the_errors_of_rows(local, effect):
    by_rows = rs.std_error(effect)["spread_se"]
    grouped = rs.std_error(effect, local, groups=np.arange(1500))
    # All but the factors n / (n - 1), for the mean of each cell and for all rows.
    assert_allclose(grouped["spread_se"][:3], by_rows[:3], rtol=0.1)
    assert grouped["spread_se"].attrs["source"] == "rows in 1500 groups"
    assert "log scale" in rs.confint(grouped)["spread_ci"].attrs["method"]


def test_rows_that_repeat_in_groups_have_larger_errors(rng):
    z = np.repeat(rng.uniform(size=(150, 1)), 4, axis=0)
    g = np.repeat(rng.normal(size=(150, 1)), 4, axis=0) + rng.normal(0, 1e-3, (600, 1))
    local = local_of(z, g)
    effect = rs.rhale(local, bins=rs.AdaptiveBins(penalty=1e6))
    assert n_spread_bins(effect) == [1]
    by_rows, by_groups = (
        one["spread_se"].values[0, 0]
        for one in (
            rs.std_error(effect),
            rs.std_error(effect, local, groups=np.repeat(np.arange(150), 4)),
        )
    )
    assert_allclose(by_groups / by_rows, 2, rtol=0.05)


@pytest.mark.thorough
def test_replicates_give_no_interval_of_the_spread(local, effect):
    boot = rs.bootstrap(local, effect, n_resamples=20, rng=0)
    assert "spread_ci" not in rs.confint(rs.confint(effect), boot)


# --- predict --------------------------------------------------------------------------------------


def test_predict_takes_the_bin_of_each_value(effect):
    row = one_feature(effect, "x0")
    edges, spread = row.spread_edges, row.spread
    middle = (edges[:-1] + edges[1:]) / 2
    found = effect.rhale.predict([*middle, -1, np.nan], "x0", what="heterogeneity")
    assert_array_equal(found, [*spread, np.nan, np.nan])
    assert found.name == "heterogeneity"
    assert_array_equal(found["x"].values[:-1], [*middle, -1])
    steep = rs.predict(effect, [0.25, 0.75], "x1", what="effect").values
    assert_allclose(steep, [2.25, 6.75], atol=0.1)


def test_predict_says_what_it_cannot_give(effect):
    with pytest.raises(ValueError, match="what must be one of .*got 'sigma'"):
        rs.predict(effect, [0.5], "x0", what="sigma")
    profile = rs.pdp(lambda X: X[:, 0], np.random.default_rng(0).uniform(size=(50, 1)))
    with pytest.raises(ValueError, match="what must be 'curve' for a profile; got 'effect'"):
        rs.predict(profile, [0.5], "x0", what="effect")
    table = pd.DataFrame({"a": list("uvw") * 20})
    levels = rs.ale(lambda t: t["a"].map({"u": 0.0, "v": 1.0, "w": 3.0}).to_numpy(), table)
    with pytest.raises(ValueError, match="which has levels"):
        rs.predict(levels, ["u"], "a", what="heterogeneity")


# --- with everything else -------------------------------------------------------------------------


@pytest.mark.thorough
def test_files_selection_and_trees(effect, local, tmp_path):
    xr.testing.assert_identical(through_a_file(effect, tmp_path), effect)
    some = effect.isel(feature=[1, 0])
    assert_array_equal(rs.confint(some)["spread"], effect["spread"][[1, 0]])
    tree = rs.to_datatree(local, effect)
    assert "spread" in tree["effect"].dataset


def test_levels_beside_an_axis(rng):
    table = pd.DataFrame({"z": rng.uniform(size=600), "a": pd.Categorical(list("uvw") * 200)})

    def model(t):
        z = t["z"].to_numpy()
        return np.sin(30 * z) * z**2 + t["a"].map({"u": 0.0, "v": 1.0, "w": 3.0}).astype(float)

    effect = rs.confint(rs.ale(model, table))
    numbers = dict(zip(effect["feature"].values, n_spread_bins(effect), strict=True))
    assert numbers["a"] == 0
    assert numbers["z"] >= 1
    assert bool(effect["spread"].sel(feature="a").isnull().all())
    assert "a" in str(rs.summary(effect))


@pytest.mark.thorough
def test_outputs_rows_without_a_value_and_regions(rng):
    X = pd.DataFrame(rng.uniform(size=(600, 3)), columns=["a", "b", "c"])
    X.loc[:50, "b"] = np.nan

    def model(X):
        a, b = X["a"].to_numpy(), np.nan_to_num(X["b"].to_numpy())
        return np.column_stack([a * b, a**3 * b])

    local = rs.local_effects(model, X, missing="drop", method="central_difference")
    effect = rs.confint(rs.rhale(local))
    assert effect["spread"].dims[:2] == ("output", "feature")
    # The local effect of a is b in one output, and 3 a^2 b in the other.
    outputs = [effect.isel(output=number) for number in (0, 1)]
    several = [len(one_feature(one, "a").spread_starts) > 1 for one in outputs]
    assert_array_equal(several, [False, True])
    assert [in_stretches(one, "b")["n_obs"].sum() for one in outputs] == [549, 549]
    one = outputs[1]
    assert rs.predict(one, [0.9], "a", what="heterogeneity").item() > 0.5


# --- tables and pictures --------------------------------------------------------------------------


@pytest.mark.thorough
def test_tables_tell_the_two_apart(effect):
    lines = rs.tidy(effect).set_index("term")
    assert lines.loc["x0", "spread_min"] < 0.5
    assert lines.loc["x0", "spread_max"] > 1.7
    assert lines.loc["x1", "spread_min"] == lines.loc["x1", "spread_max"]
    assert_array_equal(rs.glance(effect)["n_spread_bins"], n_spread_bins(effect))
    whole, one, other = (str(rs.summary(effect, *feature)) for feature in ([], ["x0"], ["x1"]))
    assert "The spread of the local effects changes within bins of x0" in whole
    assert "x1 (" not in whole
    assert "Spread, in bins of its own" in one
    assert "Spread, in bins of its own" not in other


@pytest.mark.thorough
def test_pictures_draw_the_spread_by_its_own_edges(local):
    effect = rs.rhale(local, bins=rs.AdaptiveBins(degree=0))
    row = one_feature(effect, "x0")
    edges, spread = row.spread_edges, row.spread
    (strip,) = rs.plots.effect(effect, "x0", percentiles=(0, 100))[2].patches
    heights, ends, _ = strip.get_data()
    assert set(edges) <= set(ends)
    middle = (ends[:-1] + ends[1:]) / 2
    assert_allclose(heights, spread[np.searchsorted(edges, middle) - 1])
    upper, _ = rs.plots.effect(effect, "x0", style="paper", percentiles=(0, 100))
    (band,) = labelled(upper, "± heterogeneity").get_paths()
    last = band.vertices[np.isclose(band.vertices[:, 0], edges[-1])]
    assert_allclose(np.ptp(last[:, 1]), 2 * np.sum(spread * np.diff(edges)))


# --- small and odd data ---------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Bins without rows", "ignore:Gaps without rows")
@pytest.mark.parametrize(
    ("n", "rule"), in_turn([1, 2, 3, 7, 40], [rs.EqualWidthBins(3), rs.QuantileBins(5)])
)
def test_few_rows(rng, n, rule):
    x = np.arange(n, dtype=float)[:, None]
    effect = rs.confint(rs.rhale(local_of(x, rng.normal(size=(n, 1))), bins=rule))
    assert n_spread_bins(effect) == [n > 1]
    if n > 1:
        assert in_stretches(effect, 0)["n_obs"].sum() == n
    str(rs.summary(effect))


@pytest.mark.thorough
@pytest.mark.parametrize("size", [1e-58, 1e-12, 1e12, 1e50])
def test_units_of_any_size(local, effect, size):
    z, g = local["x"].values, local["local_effect"].values
    other = rs.confint(rs.rhale(local_of(z, g * size)))
    assert_allclose(other["spread"][:3] / size, effect["spread"][:3], rtol=1e-6)


def test_a_deterministic_effect_has_one_bin_and_next_to_no_spread(effect):
    assert n_spread_bins(effect)[3] == 1
    assert effect["spread"].values[3, 0] < 0.05
    constant = rs.rhale(local_of(np.linspace(0, 1, 100)[:, None], np.full((100, 1), 2.0)))
    assert n_spread_bins(constant) == [1]
    assert_allclose(constant["spread"][:, :-1], 0, atol=1e-12)


class TestParts:
    """What the spread in bins of its own is made of, by hand."""

    def test_share_of_the_variance_that_residuals_keep(self):
        """Less the parameters by the rows; none where it is rounding, or without rows."""
        rows = np.array([0.0, 1, 1 + 1e-12, 2, 4])
        assert_allclose(share_left(rows, 1), [0, 0, 0, 0.5, 0.75])
        assert_allclose(share_left(rows, np.array([1, 1, 1, 2, 2])), [0, 0, 0, 0, 0.5])
        assert_allclose(share_left(np.array([1.0, 2]), OF_CELL), [1 / 24, (1 + 1 / 24) / 2])

    def test_slopes_from_the_means_of_cells_around(self):
        nan = np.nan
        mean, at = np.array([1.0, nan, 5.0, 2.0]), np.array([0.0, nan, 2.0, 3.0])
        found = slopes_along(mean, at)
        known = np.gradient([1.0, 5, 2], [0.0, 2, 3])
        assert_allclose(found, [known[0], 0, known[1], known[2]])
        assert_allclose(slopes_along(mean[:3], at[:3]), 0)
        assert_allclose(slopes_along(mean, np.array([0.0, nan, 3, 3])), 0)

    def test_errors_by_rows(self, effect):
        """Of a variance with its degrees of freedom and one more row."""
        found = rs.std_error(effect)
        for row in each_feature(found):
            own = in_stretches(effect, row.name)
            spread, n = own["spread"], own["degrees"] + 1
            square = (own["fourth"] - (n - 3) / (n - 1) * spread**4) / n
            expected = row.in_cells(np.sqrt(square) / (2 * spread))
            assert_allclose(row["spread_se"][:-1], expected, rtol=1e-10)
        assert found["spread_se"].attrs["source"] == "rows"
        assert found["spread_se"].attrs["target"] == TARGET

    def test_sums_and_influences_of_groups(self, rng):
        """With means of bins: residuals by group, and the factor of the number of groups."""
        x, group = rng.uniform(0, 2, (60, 1)), rng.integers(0, 9, 60)
        g = 1 + (x > 1) + (1 + 5 * (x > 1)) * rng.normal(size=(60, 1))
        rows = rs.local_effects(None, x, jacobian=g)
        effect = rs.rhale(rows, bins=rs.GivenBins([0, 1, 2], cells=[0, 1, 2]))
        row = one_feature(effect, 0)
        k = np.searchsorted(row.bin_edges[1:-1], x[:, 0], side="right")
        residual = g[:, 0] - np.array([g[k == b].mean() for b in (0, 1)])[k]
        left = (1 - OF_CELL / np.bincount(k))[k]
        own = np.searchsorted(row.spread_edges[1:-1], x[:, 0], side="right")
        n = len(row.spread_starts)
        free, square = np.zeros((9, n)), np.zeros((9, n))
        np.add.at(free, (group, own), left)
        np.add.at(square, (group, own), residual**2)
        sums = SpreadSums.of_rows(row, columns(rows), 0, group, 9)
        assert_allclose(sums.free, free)
        assert_allclose(sums.square, square)
        spread = np.sqrt(square.sum(axis=0) / free.sum(axis=0))
        assert_allclose(row.spread, spread)
        moved = (square - free * spread**2) / (2 * spread * free.sum(axis=0))
        assert_allclose(sums.influences(spread), moved)
        assert_allclose(sums.influences(0 * spread), 0)
        small = sums._replace(square=sums.square / 1e12).influences(spread / 1e6)
        assert_allclose(small, moved / 1e6)
        found = rs.std_error(effect, rows, groups=group)["spread_se"]
        expected = row.in_cells(np.sqrt(np.sum(moved**2, axis=0) * 9 / 8))
        assert_allclose(found[0, :-1], expected)
        assert found.attrs["source"] == "rows in 9 groups"
        # By every row: derivatives of the spread by its local effect.
        weights = weights_of_rows(row, columns(rows), 0).toarray()
        expected = residual / (spread * free.sum(axis=0))[own]
        assert_allclose(weights[own, np.arange(60)], expected)
        assert_allclose(np.abs(weights).sum(), np.abs(expected).sum())
        # In other units of the output the same; without a spread there are none.
        small = rs.local_effects(None, x, jacobian=g / 1e6)
        given = rs.GivenBins([0, 1, 2], cells=[0, 1, 2])
        other = one_feature(rs.rhale(small, bins=given), 0)
        assert_allclose(weights_of_rows(other, columns(small), 0).toarray(), weights)
        none = changed(row, spread=0 * row["spread"])
        assert not weights_of_rows(none, columns(rows), 0).toarray().any()

    def test_residuals_of_slopes_across_cells(self, rng):
        """Of finite differences from the mean of the cell, wherever in it a row is."""
        x = np.column_stack([rng.uniform(0, 2, 60), rng.normal(size=60)])
        rows = rs.ale_local_effects(
            lambda X: X[:, 0] ** 3 * (1 + X[:, 1]), x, features=0, bins=rs.EqualWidthBins(4)
        )
        effect = rs.ale_from_local(rows, bins=rs.EqualWidthBins(4))
        row = one_feature(effect, 0)
        g = rows["local_effect"].values[:, 0]
        k = np.searchsorted(row.edges[1:-1], x[:, 0], side="right")
        residual = g - (np.bincount(k, g) / np.bincount(k))[k]
        group = np.arange(60) // 10
        found = SpreadSums.of_rows(row, columns(rows), 0, group, 6)
        assert len(row.spread_starts) == 1
        assert_allclose(found.square[:, 0], np.bincount(group, residual**2))
        left = 1 - OF_CELL / np.bincount(k)
        assert_allclose(found.free[:, 0], np.bincount(group, left[k]))

    def test_a_constant_feature_has_none(self, rng):
        x = np.column_stack([rng.uniform(0, 2, 30), np.ones(30)])
        rows = local_of(x, rng.normal(size=(30, 2)))
        effect = rs.std_error(rs.rhale(rows, bins=rs.GivenBins([0, 1, 2])), rows,
                              groups=np.arange(30) // 2)  # fmt: skip
        assert np.isfinite(effect["spread_se"].values[0, 0])
        assert np.isnan(effect["spread_se"].values[1]).all()
        assert n_spread_bins(effect).tolist() == [1, 0]


class TestTable:
    """The table and the notes of the spread, number by number."""

    def test_ends_in_bins_of_the_effect(self):
        def _within(edges, own, spread):
            return within_bins(SimpleNamespace(bin_edges=edges, spread_edges=own, spread=spread))

        edges, own = np.array([0.0, 10, 20]), np.array([0.0, 4, 10.3, 20])
        spread = np.array([3.0, 1.0, 2.0])
        # Less than a twentieth of the second bin of the spread, 0.315, is beyond 10.
        assert_allclose(_within(edges, own, spread), [[1, 2], [3, 2]])
        own = np.array([0.0, 4, 10.35, 20])
        assert_allclose(_within(edges, own, spread), [[1, 1], [3, 2]])
        assert np.isnan(_within(edges, own[:1], spread[:0])).all()
        # A narrow bin of the spread counts where it is.
        own = np.array([0.0, 4, 4.1, 20])
        assert_allclose(_within(edges, own, np.array([3.0, 9.0, 2.0])), [[2, 2], [9, 2]])

    @pytest.mark.thorough
    def test_notes_and_lines(self, rng):
        x = np.column_stack([rng.uniform(0, 1, 400)] * 2)
        noise = rng.normal(size=(400, 2))
        g = np.column_stack([np.where(x[:, 0] < 0.5, 1, 9) * noise[:, 0], noise[:, 1]])
        effect = rs.std_error(rs.rhale(local_of(x, g), bins=rs.GivenBins([0, 1])))
        spread = one_feature(effect, 0).spread
        ends = f"{number_text(min(spread))} to {number_text(max(spread))}"
        ends = f"x0 ({ends} in 2 bins of the spread)"
        note = f"The spread of the local effects changes within bins of {ends}"
        assert spread_notes(effect) == [f"{note}. See summary(effect, 'x0')."]
        assert spread_notes(effect.sel(feature=["x0"]), alone=True) == [
            f"{note}. heterog. is its average over a bin."
        ]
        assert spread_notes(effect.sel(feature=["x1"]), alone=True) == []
        assert spread_notes(effect.drop_vars("spread")) == []
        # Bins that follow the spread say it themselves.
        middle = one_feature(effect, 0).spread_edges[1]
        fine = rs.rhale(local_of(x, g), bins=rs.GivenBins([0, middle, 1]))
        assert spread_notes(fine) == []
        assert spread_table(one_feature(effect, 1), 0.95) is None
        table = spread_table(one_feature(effect, 0), 0.9)
        cells = [[text.strip() for text in line] for line in table.rows]
        assert cells[0][1:] == ["rows", "spread", "std err", "[0.05", "0.95]"]
        row = one_feature(rs.confint(effect, level=0.9), 0)
        n_obs = in_stretches(effect, 0)["n_obs"]
        for line, at in enumerate(row.spread_starts):
            numbers = [row["spread"][at], row["spread_se"][at], *row["spread_ci"][at]]
            expected = [number_text(float(one)) for one in numbers]
            assert cells[1 + line][1:] == [f"{n_obs[line]:.0f}", *expected]
        assert table.title == "Spread, in bins of its own"
        kept = spread_table(row, 0.9)
        assert kept == table
