"""Standard errors, intervals, replicates and tables of surfaces."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import rhale_stats as rs
from rhale_stats.arrays import resample
from rhale_stats.arrays.second_order import edges_of
from rhale_stats.arrays.skewness import Skewness
from rhale_stats.surfaces import inference as module
from rhale_stats.surfaces.inference import SurfaceRows, errors_of, size
from tests.helpers import as_of_a_file, bins_of_rows, in_cells, sizes_of_blocks


def model(X):
    return X[:, 0] * X[:, 1] * (1 + X[:, 2]) + X[:, 0]


def sample(rng, n):
    """The first two features go together; the third spreads their second differences."""
    X = rng.uniform(-1, 1, (n, 3))
    X[:, 1] = 0.6 * X[:, 0] + 0.4 * X[:, 1]
    return X


@pytest.fixture
def surface(rng):
    return rs.ale2(model, sample(rng, 500), (0, 1), bins=rs.QuantileBins(4))


def test_standard_error_in_a_cell_is_sigma_over_root_n(surface):
    found = rs.std_error(surface)
    expected = found["heterogeneity"] / np.sqrt(found["n_obs"])
    np.testing.assert_allclose(found["second_effect_se"], expected, rtol=1e-12)
    table = rs.tidy(found)
    own = found["second_difference"].values.ravel()
    cell = bins_of_rows(found, "a") * 4 + bins_of_rows(found, "b")
    groups = pd.Series(own).groupby(cell)
    np.testing.assert_allclose(table["estimate"], groups.mean(), rtol=1e-10)
    np.testing.assert_allclose(table["std_error"], groups.sem(), rtol=1e-10)
    # What tests the model needs errors that hold it: those of refits are told apart by their words.
    held = found.copy(deep=True)
    held["second_effect_se"].attrs["source"] = "refits"
    table = rs.tidy(held)
    tested = [stats.ttest_1samp(rows, 0) for _, rows in groups]
    np.testing.assert_allclose(table["statistic"], [one.statistic for one in tested], rtol=1e-9)
    np.testing.assert_allclose(table["p_value"], [one.pvalue for one in tested], rtol=1e-8)
    ends = [one.confidence_interval(0.95) for one in tested]
    np.testing.assert_allclose(table[["conf_low", "conf_high"]], ends, rtol=1e-8, atol=1e-12)


def test_a_model_of_two_features_has_noise_from_places_only(rng):
    X = sample(rng, 400)
    found = rs.std_error(rs.ale2(lambda X: X[:, 0] * X[:, 1], X, (0, 1), bins=rs.QuantileBins(3)))
    assert (found["second_effect_se"].fillna(0) < 1e-14).all()
    # Main effects and mean that are taken out depend on where the rows lie.
    assert float(found["surface_se"].max()) > 1e-3


def test_standard_errors_scale_with_the_output(surface, rng):
    X = sample(np.random.default_rng(20231), 500)
    other = rs.ale2(lambda X: 5 - 3 * model(X), X, (0, 1), bins=rs.QuantileBins(4))
    one, three = rs.std_error(surface), rs.std_error(other)
    np.testing.assert_allclose(three["surface_se"], 3 * one["surface_se"], rtol=1e-9)


@pytest.mark.thorough
def test_bootstrap_agrees_with_standard_errors(rng):
    surface = rs.std_error(rs.ale2(model, sample(rng, 2000), (0, 1), bins=rs.QuantileBins(3)))
    boot = rs.bootstrap(surface, n_resamples=1600, scheme="poisson", rng=1)
    assert boot["surface"].dims == ("chain", "draw", "edge_a", "edge_b")
    ratio = boot["surface"].std(("chain", "draw")) / surface["surface_se"]
    # The error of a standard deviation of 1600 draws is 1.8 %; more where cells have few rows.
    known = ratio.values[np.isfinite(ratio.values)]
    assert abs(np.median(known) - 1) < 0.05
    assert (np.abs(known - 1) < 0.2).all()


def test_bootstrap_is_the_estimate_of_the_drawn_rows(rng):
    """One replicate, made again by `ale2` with its weights."""

    X = sample(rng, 120)
    edges = rs.GivenBins(np.linspace(-1, 1, 6))
    surface = rs.ale2(model, X, (0, 1), bins=edges)
    boot = rs.bootstrap(surface, n_resamples=4, chains=1, rng=5)
    streams = np.random.default_rng(5).spawn(4)
    units = resample.ResampledUnits(None, [np.arange(120)], None)
    drawn = resample.weights_of("multinomial", units, streams, 120)
    for draw in range(4):
        again = rs.ale2(model, X, (0, 1), bins=edges, weights=drawn[:, draw])
        one = boot.isel(chain=0, draw=draw)
        np.testing.assert_allclose(one["second_effect"], again["second_effect"], atol=1e-12)
        both = again["surface"].notnull().values
        np.testing.assert_allclose(
            one["surface"].values[both], again["surface"].values[both], atol=1e-12
        )
        assert int(one["n_filled"]) == again.attrs["n_empty"]


@pytest.mark.thorough
def test_bootstrap_of_frequencies_groups_and_statistics(surface, rng):
    X = sample(np.random.default_rng(20231), 500)
    counted = rs.ale2(
        model, X, (0, 1), bins=rs.QuantileBins(4), weights=np.full(500, 2.0),
        weight_kind="frequency",
    )  # fmt: skip
    boots = [rs.bootstrap(one, n_resamples=400, rng=2) for one in (surface, counted)]
    spread = [float(one["surface"].std(("chain", "draw")).median()) for one in boots]
    # Twice the rows; the error of a median of 25 standard deviations of 400 draws is below 3 %.
    assert spread[0] / spread[1] == pytest.approx(np.sqrt(2), rel=0.1)
    grouped = rs.bootstrap(
        surface,
        n_resamples=40,
        groups=np.arange(500) // 10,
        statistic=lambda boot: boot["surface"].max(("edge_a", "edge_b")).rename("top"),
        rng=0,
    )
    assert grouped.attrs["source"] == "groups of rows"
    assert grouped["top"].dims == ("chain", "draw")


def test_intervals(surface):
    normal = rs.confint(surface, level=0.9)
    # code.md B20: degrees of freedom as in the band, not the normal quantile.
    degrees = errors_of(normal, SurfaceRows.from_surface(normal), "surface").degrees
    degrees = degrees.reshape(normal["surface"].shape)
    expected = normal["surface"] + stats.t.ppf(0.95, degrees) * normal["surface_se"]
    assert degrees.min() < 30
    np.testing.assert_allclose(normal["surface_ci"].sel(ci_bound="upper"), expected)
    n = normal["n_obs"].values
    expected = normal["second_effect"] - stats.t.ppf(0.95, n - 1) * normal["second_effect_se"]
    np.testing.assert_allclose(normal["second_effect_ci"].sel(ci_bound="lower"), expected)
    boot = rs.bootstrap(surface, n_resamples=400, rng=3)
    percentile, basic = (rs.confint(surface, boot, method=how) for how in ("percentile", "basic"))
    ends = percentile["surface_ci"].values[..., ::-1]
    np.testing.assert_allclose(
        basic["surface_ci"], 2 * surface["surface"].values[..., None] - ends, atol=1e-14
    )
    # Of 400 draws the quantile at p is that at place 401 p; its neighbours bound it.
    low = np.sort(boot["surface"].values.reshape(400, 5, 5), axis=0)[9:11]
    found = percentile["surface_ci"].values[..., 0]
    known = np.isfinite(found)
    assert known.sum() > 12
    assert ((low[0] <= found) & (found <= low[1]))[known].all()


def test_one_row_in_a_cell_borrows_its_variance(rng):
    X = np.vstack([rng.uniform(0, 1, (80, 3)), [[1.5, 1.5, 0.5]]])
    bins = rs.GivenBins([0.0, 0.5, 1.0, 2.0])
    found = rs.std_error(rs.ale2(model, X, (0, 1), bins=bins))
    assert np.isnan(float(found["second_effect_se"][2, 2]))
    assert found["surface_se"].attrs["n_borrowed"] == 1
    assert np.isfinite(found["surface_se"].values[2:, 2:]).all()
    assert float(found["surface_se"][3, 3]) > float(found["surface_se"][1, 1])


@pytest.mark.thorough
def test_summary_says_what_was_filled(rng):
    X = sample(rng, 200)
    text = rs.summary(rs.ale2(model, X, (0, 1), bins=rs.QuantileBins(8))).as_text()
    assert text.splitlines()[7].split() == ["surface", "std", "err", "[0.025", "0.975]"]
    assert "Second-order ALE: x0 and x1 on output" in text
    assert "cells (" in text
    assert "have no rows" in text
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(k=np.where(X[:, 2] > 0, "yes", "no"))
    found = rs.ale2(lambda X: X["a"] * (X["k"] == "yes"), frame, ("a", "k"))
    assert "k = yes" in rs.summary(found).as_text()
    table = rs.tidy(found)
    assert "bin_left_a" in table
    assert (table[["level_b", "level_b_next"]] == found["edge_b"].values).all(axis=None)


def test_bad_input(surface, rng):
    with pytest.raises(ValueError, match="its cells count 500 second differences.*400"):
        rs.std_error(surface.isel(obs=slice(400)))
    with pytest.raises(ValueError, match="no second_difference"):
        rs.std_error(as_of_a_file(surface.drop_vars("second_difference")))
    with pytest.raises(ValueError, match="groups must hold at least two different groups; got 1"):
        rs.std_error(surface, groups=np.zeros(500))
    with pytest.raises(ValueError, match=r"groups must have one entry for each of 500 rows"):
        rs.std_error(surface, groups=np.arange(400))
    few = sample(np.random.default_rng(1), 80)
    fine = rs.ale2(model, few, (0, 1), bins=rs.EqualWidthBins(51))
    with pytest.raises(ValueError, match=r"at most 2500 cells for errors by groups"):
        rs.std_error(fine, groups=np.arange(80) // 2)
    with pytest.raises(ValueError, match="takes the surface alone"):
        rs.bootstrap(surface, surface)
    with pytest.raises(ValueError, match="rebin and studentize must be False for .* surfaces"):
        rs.bootstrap(surface, rebin=True)
    with pytest.raises(TypeError, match="effect must be the Dataset.*NoneType"):
        rs.bootstrap(rs.local_effects(model, sample(rng, 50)))
    with pytest.raises(ValueError, match="'normal', 'percentile', 'basic'; got 'bca'"):
        rs.confint(surface, method="bca")
    boot = rs.bootstrap(surface, n_resamples=8, rng=0)
    with pytest.raises(ValueError, match="got replicates"):
        rs.std_error(boot.assign({n: surface[n] for n in ("second_difference", "x_a", "x_b")}))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["numeric", "mixed"])
def test_coverage_of_intervals(kind):
    """95 % intervals of the surface, cells given, rows drawn anew; truth from 300 000 rows."""
    edges = rs.GivenBins(np.linspace(-1, 1, 5))

    def made(rng, n):
        frame = pd.DataFrame(sample(rng, n), columns=["a", "b", "c"])
        frame["k"] = np.array(["p", "q", "r"])[
            np.clip((frame["a"] + rng.normal(size=n) + 1.5).astype(int), 0, 2)
        ]
        return frame

    def f(X):
        level = X["k"].map({"p": 0.0, "q": 1.0, "r": 0.5}).to_numpy()
        return X["a"] * X["b"] * (1 + X["c"]) + level * X["a"] ** 2 * (1 + X["c"])

    pair = ("a", "b") if kind == "numeric" else ("a", "k")
    truth = rs.ale2(f, made(np.random.default_rng(0), 300_000), pair, bins=edges)["surface"]
    inside, known = [], []
    for seed in range(90):
        found = rs.confint(
            rs.ale2(f, made(np.random.default_rng(seed + 1), 1000), pair, bins=edges)
        )
        ends = found["surface_ci"].values
        inside.append((ends[..., 0] <= truth.values) & (truth.values <= ends[..., 1]))
        known.append(in_cells(found["n_obs"]) > 0)
    # What is filled in some samples is no estimate of the same thing.
    corners = edges_of(np.all(known, axis=0))
    coverage = np.mean(inside, axis=0)[corners]
    assert corners.mean() > 0.7
    # Monte-Carlo error 2.3 % a corner; corners go together. Truth has 1/17 of a standard error.
    assert abs(coverage.mean() - 0.95) < 0.025
    # Corners of cells with 20 rows have 90 to 93 %.
    assert coverage.min() > 0.92 - 4 * 0.0286


def skewed(X):
    """Second differences of two values, the larger of them in one row of ten."""
    return X[:, 0] * X[:, 1] * np.where(X[:, 2] > 0.8, 5.0, 1.0)


def test_skewness_of_cells_and_of_corners_by_definition(rng):
    found = rs.std_error(rs.ale2(skewed, sample(rng, 800), (0, 1), bins=rs.QuantileBins(3)))
    rows = SurfaceRows.from_surface(found)
    delta, number = rows.arrays.delta, rows.arrays.cell
    values = [delta.ravel()[number.ravel() == cell] for cell in range(9)]
    n = np.array([len(own) for own in values])
    third = np.array([stats.kstat(own, 3) if len(own) > 2 else np.nan for own in values])
    variance = np.array([own.var(ddof=1) if len(own) > 1 else 0.0 for own in values])
    own = Skewness.from_cumulants(third, variance, n.astype(float))
    assert own is not None
    here = n > 2
    expected = own.third[here] / own.second[here] ** 1.5
    skewness = in_cells(found["second_effect_skewness"]).ravel()[here]
    np.testing.assert_allclose(skewness, expected, rtol=1e-8)
    assert (expected > 0.1).all()
    # The surface is linear in the means of the cells with rows.
    supported = np.flatnonzero(n > 0)
    moved = rows.influence.by_means(supported).reshape(len(supported), -1)
    second, cubes = own.second[supported] @ moved**2, own.third[supported] @ moved**3
    variance = np.maximum(found["surface_se"].values.ravel() ** 2, second)
    known = variance > 1e-12
    np.testing.assert_allclose(
        found["surface_skewness"].values.ravel()[known], (cubes / variance**1.5)[known], rtol=1e-8
    )
    away = np.abs(rs.confint(found)["second_effect_ci"] - found["second_effect"])
    longer = away.sel(ci_bound="upper") > away.sel(ci_bound="lower")
    assert in_cells(longer).ravel()[here].all()


def test_surfaces_of_symmetric_rows_have_no_skewness(surface):
    found = rs.std_error(surface)
    assert "surface_skewness" not in found
    assert found.identical(rs.std_error(rs.std_error(surface)))


# --- groups, boundaries, blocks -------------------------------------------------------------------


def few(n=40, seed=1, **options):
    X = sample(np.random.default_rng(seed), n)
    return X, rs.ale2(model, X, (0, 1), bins=rs.GivenBins([-1.0, 0.0, 1.0]), **options)


def test_two_groups_are_enough_and_rows_forget_them():
    _, found = few()
    grouped = rs.std_error(found, groups=np.arange(40) % 2)
    assert grouped.attrs["n_groups"] == 2
    assert grouped["surface_se"].attrs["source"] == "rows in 2 groups"
    assert set(grouped["group"].values) == {0, 1}
    for name in ("second_effect_df", "surface_df"):
        assert grouped[name].attrs["units"] == "1"
    again = rs.std_error(grouped)
    assert again.identical(rs.std_error(found))
    three = rs.std_error(grouped, groups=np.arange(40) % 3)
    assert three.attrs["n_groups"] == 3


@pytest.mark.parametrize("alone", [0, 1, 2, 3])
def test_cells_of_one_group_are_counted(alone):
    X, found = few(300)
    cell = (X[:, 0] >= 0) * 2 + (X[:, 1] >= 0)
    # The rows of so many cells are of group 0, those of the others of groups 1 and 2.
    group = np.where(cell < alone, 0, 1 + np.arange(300) % 2)
    grouped = rs.std_error(found, groups=group)
    assert grouped["surface_se"].attrs["n_borrowed"] == alone
    one = np.isnan(in_cells(grouped["second_effect_se"]).ravel())
    assert one.tolist() == [number < alone for number in range(4)]


def test_groups_of_cells_are_clustered_means():
    """Each cell: sums of residuals by groups, with the factor of so many equal groups."""
    X, found = few(48)
    cell = (X[:, 0] >= 0) * 2 + (X[:, 1] >= 0)
    # In every cell four groups, as equal as can be; in the last but one cell one group alone.
    group = np.zeros(48, dtype=int)
    for number in range(4):
        rows = np.flatnonzero(cell == number)
        group[rows] = number * 4 + np.arange(len(rows)) * 4 // len(rows)
    grouped = rs.std_error(found, groups=group)
    delta = found["second_difference"].values[:, 0]
    for number in (0, 3):
        rows = cell == number
        sums = pd.Series(delta[rows] - delta[rows].mean()).groupby(group[rows]).sum()
        plain = np.sqrt(np.sum(sums**2)) / rows.sum()
        ratio = float(in_cells(grouped["second_effect_se"]).ravel()[number]) / plain
        assert ratio == pytest.approx(np.sqrt(4 / 3), rel=0.05)
        assert in_cells(grouped["second_effect_df"]).ravel()[number] == pytest.approx(3, rel=0.05)


def test_limits_of_the_number_of_corners_and_cells(monkeypatch):
    _, found = few()
    monkeypatch.setattr(module, "MAX_EDGES", 9)
    rs.confband(found, rng=0, n_draws=200)
    rs.vcov(found)
    rs.std_error(found, groups=np.arange(40) // 2)
    monkeypatch.setattr(module, "MAX_EDGES", 8)
    with pytest.raises(ValueError, match="at most 8 corners .*; this one has 9. Use fewer bins"):
        rs.vcov(found)
    rs.vcov(found, of="effect")
    monkeypatch.setattr(module, "MAX_EDGES", 4)
    rs.std_error(found, groups=np.arange(40) // 2)
    monkeypatch.setattr(module, "MAX_EDGES", 3)
    with pytest.raises(ValueError, match="at most 3 cells for errors by groups; this one has 4"):
        rs.std_error(found, groups=np.arange(40) // 2)


@pytest.mark.parametrize("kind", ["precision", "frequency"])
def test_errors_of_weighted_cells(kind):
    w = np.array([1.0, 2.0, 3.0, 1.0] * 10)
    X, found = few(weights=w, weight_kind=kind)
    found = rs.std_error(found)
    cell = (X[:, 0] >= 0) * 2 + (X[:, 1] >= 0)
    delta = found["second_difference"].values[:, 0]
    for number in range(4):
        rows = cell == number
        v, d = w[rows], delta[rows]
        mean = np.average(d, weights=v)
        assert float(in_cells(found["second_effect"]).ravel()[number]) == pytest.approx(mean)
        se = float(in_cells(found["second_effect_se"]).ravel()[number])
        if kind == "frequency":
            again = np.repeat(d, v.astype(int))
            assert se == pytest.approx(again.std(ddof=1) / np.sqrt(len(again)))
        else:
            plain = np.sqrt(np.sum(v**2 * (d - mean) ** 2)) / v.sum()
            n = v.sum() ** 2 / np.sum(v**2)
            assert se == pytest.approx(plain * np.sqrt(n / (n - 1)))
    assert size(found) == pytest.approx(
        np.sqrt(np.cov(rs.predict(found, X[:, :2]), aweights=w, ddof=0))
    )


@pytest.mark.thorough
def test_blocks_of_draws_are_one(monkeypatch):
    _, found = few()
    whole = rs.bootstrap(found, n_resamples=8, chains=2, rng=1)
    for room, blocks in ((3 * 40, [3, 3, 2]), (3 * 40 + 39, [3, 3, 2]), (1, [1] * 8)):
        with monkeypatch.context() as patch:
            asked = sizes_of_blocks(patch, module, room)
            parts = rs.bootstrap(found, n_resamples=8, chains=2, rng=1)
        assert asked == blocks
        for name in ("second_effect", "surface", "n_filled"):
            np.testing.assert_allclose(parts[name], whole[name], rtol=1e-12)
    assert whole.attrs["bins"] == "fixed"
    assert not {"obs", "side", "group"} & set(whole.coords)
    assert {"edge_a", "edge_b"} <= set(whole.coords)


@pytest.mark.thorough
def test_what_was_given_with_rows_of_another_surface_is_refused():
    X, found = few()
    moved = found.copy(deep=True)
    moved["x_a"][int(np.flatnonzero(X[:, 0] > 0)[0])] = -0.5
    with pytest.raises(ValueError, match="surface must have the rows that it was made from"):
        rs.std_error(moved)
    with pytest.raises(ValueError, match="returns, with its rows; this one has no x_a, x_b"):
        rs.std_error(as_of_a_file(found.drop_vars(["x_a", "x_b"])))
    for method in ("normal", "percentile", "basic"):
        boot = rs.bootstrap(found, n_resamples=20, rng=0) if method != "normal" else None
        ends = rs.confint(found, boot, method=method)
        assert ends["surface_ci"].dims == ("edge_a", "edge_b", "ci_bound")
    unknown = rs.ale2(model, X, (0, 1), bins=rs.GivenBins([-1.0, 0.0, 0.9999, 1.0]))
    covariance = rs.vcov(unknown)
    gone = unknown["surface"].isnull().values
    if gone.any():
        assert np.isnan(covariance.values[gone]).all()
        assert np.isnan(covariance.values[:, :, gone]).all()
