"""Bands, covariances, tests, comparisons and values of surfaces."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import stats

import rhale_stats as rs
from rhale_stats.arrays import second_order as kernel
from rhale_stats.inference import meaning
from rhale_stats.surfaces import comparison
from rhale_stats.surfaces.inference import size
from tests.helpers import bins_of_rows, in_cells

EDGES = rs.GivenBins(np.linspace(-1, 1, 4))
NUMBERS = {"p": 0.0, "q": 1.0, "r": 0.5}


def made(rng, n):
    frame = pd.DataFrame(rng.uniform(-1, 1, (n, 3)), columns=["a", "b", "c"])
    frame["k"] = rng.choice(list(NUMBERS), n)
    return frame


def model(X, strength=1.0):
    level = X["k"].map(NUMBERS).to_numpy()
    return strength * (X["a"] * X["b"] + level * X["a"]) * (1 + X["c"]) + X["a"]


def noise(X):
    """Interactions of mean 0, which hang on a third feature."""
    level = X["k"].map(NUMBERS).to_numpy()
    # The mean of exp(3 c / 2), c uniform on (-1, 1).
    skewed = np.exp(1.5 * X["c"]) - 2 * np.sinh(1.5) / 3
    return np.sin(X["a"]) + (X["a"] * X["b"] + level * X["a"]) * skewed


@pytest.fixture
def frame(rng):
    return made(rng, 400)


@pytest.fixture(params=["numbers", "levels"])
def surface(request, frame):
    return rs.ale2(model, frame, ("a", "b" if request.param == "numbers" else "k"), bins=EDGES)


# --- covariance and bands -------------------------------------------------------------------------


def test_diagonal_of_covariance_is_the_square_of_standard_errors(surface):
    found = rs.std_error(surface)
    for of, name in (("curve", "surface_se"), ("effect", "second_effect_se")):
        covariance = rs.vcov(surface, of=of)
        assert covariance.dims == ("edge_a", "edge_b", "edge_a_other", "edge_b_other")
        own = np.einsum("ijij->ij", covariance.values)
        np.testing.assert_allclose(np.sqrt(own), found[name], rtol=1e-9, atol=1e-14)


@pytest.mark.thorough
def test_covariance_agrees_with_bootstrap(rng):
    surface = rs.ale2(model, made(rng, 3000), ("a", "k"), bins=EDGES)
    boot = rs.bootstrap(surface, n_resamples=1200, scheme="poisson", rng=1)
    for of, name in (("curve", "surface"), ("effect", "second_effect")):
        known = surface[name].notnull().values
        covariance = rs.vcov(surface, of=of).values[known][:, known]
        own = np.sqrt(np.diagonal(covariance))
        draws = boot[name].values.reshape(1200, *known.shape)[:, known]
        # Correlations of 1200 draws err by 1 / 35.
        expected = covariance / np.outer(own, own)
        assert np.abs(np.corrcoef(draws.T) - expected).max() < 4.5 / np.sqrt(1200)


def test_cells_of_numbers_share_no_rows_and_steps_between_levels_do(frame):
    numbers = in_cells(rs.vcov(rs.ale2(model, frame, ("a", "b"), bins=EDGES), of="effect"))
    numbers = numbers.reshape(9, 9)
    assert (numbers[~np.eye(9, dtype=bool)] == 0).all()
    surface = rs.ale2(model, frame, ("a", "k"), bins=EDGES)
    found = rs.vcov(surface, of="effect").values
    # Rows of level q in the first bin are in both steps.
    delta = surface["second_difference"].values
    first = bins_of_rows(surface, "a") == 0
    level = surface["x_b"].values
    below, above = first & (level <= 1), first & (level >= 1)
    residual = np.zeros((2, len(frame)))
    for number, (rows, side) in enumerate(((below, [1, 0]), (above, [1, 0]))):
        take = np.where(level == number, 1, 0) if side else None
        d = np.where(rows, delta[np.arange(len(frame)), take], 0.0)
        n = rows.sum()
        own = np.where(rows, d - d[rows].mean(), 0.0)
        residual[number] = own / n * np.sqrt(n / (n - 1))
    np.testing.assert_allclose(found[0, 0, 0, 1], residual[0] @ residual[1], rtol=1e-10)
    np.testing.assert_allclose(found[0, 0, 0, 0], residual[0] @ residual[0], rtol=1e-10)


def test_band_is_wider_than_intervals_and_says_what_it_is(surface):
    found = rs.confband(rs.confint(surface), level=0.95, rng=0)
    for name in ("surface", "second_effect"):
        wide, narrow = found[f"{name}_band"], found[f"{name}_ci"]
        known = np.isfinite(wide.values).all(axis=-1)
        assert known.any()
        assert (wide.diff("ci_bound").values >= narrow.diff("ci_bound").values)[known].all()
        middle = wide.mean("ci_bound").values
        np.testing.assert_allclose(middle[known], found[name].values[known], atol=1e-14)
        assert wide.attrs["kind"] == "simultaneous over the axes"
        assert {"long_name", "units", "target", "source", "method", "ci_prob"} <= set(wide.attrs)
    again = rs.confband(surface, rng=0)
    np.testing.assert_array_equal(again["surface_band"], found["surface_band"])


def test_band_of_cells_of_numbers_is_sidak_with_student(frame):
    found = rs.confband(rs.ale2(model, frame, ("a", "b"), bins=EDGES), level=0.9, rng=0)
    n = found["n_obs"].values
    quantile = stats.t.ppf(0.5 + 0.9 ** (1 / 9) / 2, n - 1)
    half = (found["second_effect_band"][..., 1] - found["second_effect"]).values
    np.testing.assert_allclose(half, quantile * found["second_effect_se"].values, rtol=1e-10)


@pytest.mark.parametrize("pair", [("a", "k"), ("k", "b")])
def test_band_of_cells_that_share_rows_is_narrower_than_sidaks(frame, pair):
    surface = rs.ale2(model, frame, pair, bins=EDGES)
    found = rs.confband(surface, level=0.9, rng=0)
    half = in_cells(found["second_effect_band"][..., 1] - found["second_effect"])
    quantiles = stats.t.ppf(0.5 + 0.9 ** (1 / half.size) / 2, in_cells(found["n_effective"]) - 1)
    sidak = quantiles * in_cells(found["second_effect_se"])
    assert (half < 0.999 * sidak).all()
    assert (half > 0.9 * sidak).all()


@pytest.mark.thorough
def test_frequencies_are_repeated_rows(frame, rng):
    counts = rng.integers(0, 4, len(frame))
    for pair in (("a", "b"), ("a", "k"), ("k", "b")):
        counted = rs.ale2(model, frame, pair, bins=EDGES, weights=counts, weight_kind="frequency")
        repeated = rs.ale2(model, frame.loc[frame.index.repeat(counts)], pair, bins=EDGES)
        one, other = (
            rs.confband(counted, n_draws=500, rng=0),
            rs.confband(repeated, n_draws=500, rng=0),
        )
        np.testing.assert_allclose(one["surface_band"], other["surface_band"], atol=1e-12)
        np.testing.assert_allclose(
            one["second_effect_band"], other["second_effect_band"], atol=1e-12
        )
        one, other = rs.wald_test(counted), rs.wald_test(repeated)
        for name in ("statistic", "df", "p_value"):
            np.testing.assert_allclose(one[name], other[name], rtol=1e-9)
        stronger = [
            rs.ale2(lambda X: model(X, 2.0), X, pair, bins=EDGES, **more)
            for X, more in (
                (frame, {"weights": counts, "weight_kind": "frequency"}),
                (frame.loc[frame.index.repeat(counts)], {}),
            )
        ]
        one, other = (
            rs.compare(counted, stronger[0], rng=0),
            rs.compare(repeated, stronger[1], rng=0),
        )
        assert one.attrs["source"] == other.attrs["source"] == "pairs of rows"
        np.testing.assert_allclose(one["difference_band"], other["difference_band"], atol=1e-12)


# --- no interaction -------------------------------------------------------------------------------


def test_sign_test_has_the_moments_of_all_changes_of_signs():
    """Ten rows, three levels: every row has differences in one or two of four cells."""
    rng = np.random.default_rng(1)
    a, b = kernel.Axis(3, levels=False), kernel.Axis(3, levels=True)
    place_a, place_b = np.repeat([0, 1], 5), np.array([0, 1, 2, 1, 0, 2, 1, 1, 0, 2])
    delta, weight = rng.normal(1, 1, (10, 1, 2)), rng.uniform(0.5, 2, 10)
    places = (place_a, place_b)
    rows = kernel.PairRows.from_places((a, b), places, delta, weight, frequency=False)
    cell = rows.cell

    def total(signs):
        d = signs[:, None, None] * weight[:, None, None] * delta
        every = np.broadcast_to(weight[:, None, None], cell.shape)
        return sum(d[cell == k].sum() ** 2 / every[cell == k].sum() for k in range(4))

    every = [total(np.array(signs)) for signs in itertools.product((-1, 1), repeat=10)]
    statistic, df = kernel.sign_test(rows)
    assert df == pytest.approx(2 * np.mean(every) ** 2 / np.var(every), rel=1e-10)
    assert statistic == pytest.approx(total(np.ones(10)) * df / np.mean(every), rel=1e-10)


@pytest.mark.thorough
def test_wald_test_of_interaction_and_of_none(frame):
    for pair in (("a", "b"), ("a", "k")):
        found = rs.wald_test(rs.ale2(model, frame, pair, bins=EDGES))
        assert found["feature"].values.tolist() == [":".join(pair)]
        assert float(found["p_value"][0]) < 1e-6
        none = rs.ale2(lambda X: np.exp(X["a"]) - X["b"] * X["c"], frame, pair, bins=EDGES)
        test = rs.wald_test(none)
        # Second differences are 0 but for rounding: there is nothing to test.
        assert np.isnan(test["p_value"][0])
        assert np.isnan(test["statistic"][0])
        assert test["df"][0] == 0
        assert "0 up to their numerical error" in str(test["reason"].values[0])
        assert float(rs.wald_test(none, "homogeneous")["p_value"][0]) == 1.0
    alone = rs.ale2(lambda X: X["a"] * X["b"], frame, ("a", "b"), bins=EDGES)
    assert float(rs.wald_test(alone, "homogeneous")["p_value"][0]) == 1.0
    assert float(rs.wald_test(alone)["p_value"][0]) < 1e-6
    mixed = rs.ale2(model, frame, ("a", "b"), bins=EDGES)
    assert float(rs.wald_test(mixed, "homogeneous")["p_value"][0]) == 0.0


def test_wald_test_is_invariant_and_printed(surface, frame):
    pair = surface.attrs["feature_a"], surface.attrs["feature_b"]
    other = rs.ale2(lambda X: 5 - 3 * model(X), frame, pair, bins=EDGES)
    one, two = rs.wald_test(surface), rs.wald_test(other)
    np.testing.assert_allclose(one["statistic"], two["statistic"], rtol=1e-8)
    assert ":".join(pair) in rs.summary(one).as_text()
    columns = ["term", "statistic", "df", "p_value", "p_value_adjusted", "size"]
    assert list(rs.tidy(one).columns) == columns
    np.testing.assert_allclose(3 * one["size"], two["size"], rtol=1e-8)


def test_wald_test_of_one_row_a_cell_knows_nothing():
    X = np.array([[u, v] for u in (0.5, 1.5) for v in (0.5, 1.5)])
    surface = rs.ale2(lambda X: X[:, 0] * X[:, 1], X, (0, 1), bins=rs.GivenBins([0.0, 1.0, 2.0]))
    assert np.isnan(float(rs.wald_test(surface)["p_value"][0]))


@pytest.mark.slow
@pytest.mark.parametrize("pair", [("a", "b"), ("a", "k")])
def test_size_of_wald_test(pair):
    """No interaction on average, 100 cells of 3 rows (of 30 with levels): 5 % at 5 %.

    Second differences are skewed: sums of squares of t rejected 30 %.
    """
    rejected = 0
    for seed in range(100):
        X = made(np.random.default_rng(seed), 300)
        surface = rs.ale2(noise, X, pair, bins=rs.QuantileBins(10))
        rejected += float(rs.wald_test(surface)["p_value"][0]) < 0.05
    # Monte-Carlo error 2.2 %.
    assert stats.binomtest(rejected, 100, 0.05).pvalue > 0.001


# --- two surfaces ---------------------------------------------------------------------------------


@pytest.mark.thorough
def test_pairs_in_cells_are_the_paired_t_test(frame):
    a = rs.ale2(model, frame, ("a", "b"), bins=EDGES)
    b = rs.ale2(lambda X: model(X, 1.3) + X["b"] * X["a"], frame, ("a", "b"), bins=EDGES)
    found = rs.compare(a, b, level=0.9, rng=0)
    assert found.attrs["source"] == "pairs of rows"
    np.testing.assert_allclose(found["difference"], a["surface"] - b["surface"], atol=1e-13)
    for k, m in itertools.product(range(3), repeat=2):
        rows = (bins_of_rows(a, "a") == k) & (bins_of_rows(a, "b") == m)
        both = [one["second_difference"].values[rows, 0] for one in (a, b)]
        expected = stats.ttest_rel(*both)
        ends = expected.confidence_interval(0.9)
        np.testing.assert_allclose(
            found["second_effect_difference_ci"][k, m], [ends.low, ends.high], rtol=1e-9
        )


@pytest.mark.thorough
def test_samples_in_cells_are_welchs_t_test(frame, rng):
    a = rs.ale2(model, frame, ("a", "b"), bins=EDGES)
    b = rs.ale2(model, made(rng, 300), ("a", "b"), bins=EDGES)
    found = rs.compare(a, b, rng=0)
    assert found.attrs["source"] == "rows against rows, independent"
    for k, m in itertools.product(range(3), repeat=2):
        both = []
        for one in (a, b):
            rows = (bins_of_rows(one, "a") == k) & (bins_of_rows(one, "b") == m)
            both.append(one["second_difference"].values[rows, 0])
        ends = stats.ttest_ind(*both, equal_var=False).confidence_interval(0.95)
        np.testing.assert_allclose(
            found["second_effect_difference_ci"][k, m], [ends.low, ends.high], rtol=1e-9
        )
    errors = [rs.std_error(one)["surface_se"] ** 2 for one in (a, b)]
    np.testing.assert_allclose(found["difference_se"] ** 2, errors[0] + errors[1], rtol=1e-9)
    assert found["p_value"] > 0.001
    far = rs.ale2(lambda X: model(X, 3.0), made(rng, 300), ("a", "b"), bins=EDGES)
    assert rs.compare(a, far, rng=0)["p_value"] < 0.001


@pytest.mark.thorough
def test_band_of_the_difference_and_its_p_value_agree(frame, rng):
    a = rs.ale2(model, frame, ("a", "k"), bins=EDGES)
    for strength in (0.7, 0.8, 0.9, 1.0, 1.2):
        b = rs.ale2(lambda X, s=strength: model(X, s), made(rng, 300), ("a", "k"), bins=EDGES)
        found = rs.compare(a, b, rng=0)
        p = float(found["p_value"][0])
        band = found["difference_band"].values
        outside = bool(((band[..., 0] > 0) | (band[..., 1] < 0)).any())
        # Two sets of 20 000 draws.
        assert abs(p - 0.05) < 0.005 or outside == (p < 0.05)


def test_surfaces_that_are_the_same_up_to_rounding(frame):
    a = rs.ale2(model, frame, ("a", "k"), bins=EDGES)
    b = rs.ale2(lambda X: model(X) + np.exp(X["a"]) - X["b"], frame, ("a", "k"), bins=EDGES)
    found = rs.compare(a, b, rng=0)
    assert float(found["statistic"][0]) == 0.0
    assert float(found["p_value"][0]) == 1.0
    assert float(found["cell_p_value"][0]) == 1.0


def test_comparison_is_a_table_and_a_picture(frame):
    for pair in (("a", "b"), ("k", "a")):
        a = rs.ale2(model, frame, pair, bins=EDGES)
        b = rs.ale2(lambda X: model(X, 1.5), frame, pair, bins=EDGES)
        found = rs.compare(a, b, rng=0)
        table = rs.tidy(found)
        assert len(table) == found["difference"].size
        name = "level_a" if pair[0] == "k" else "x_a"
        assert {"term", name, "estimate", "conf_low", "band_high"} <= set(table.columns)
        assert "no difference between the surfaces" in rs.summary(found).as_text()
        panel = rs.plots.surface(found)
        assert "a less b, p < 0.001" in panel.get_title()
        band = found["difference_band"]
        outside = int(((band[..., 0] > 0) | (band[..., 1] < 0)).sum())
        assert outside > 0
        assert len(panel.collections[-1].get_offsets()) == outside
    with pytest.raises(ValueError, match=r"of two surfaces. Draw it with plots.surface"):
        rs.plots.compare(found, 0)


def test_cells_that_only_one_has_rows_in_are_said(frame, rng):
    a = rs.ale2(model, frame, ("a", "b"), bins=EDGES)
    few = made(rng, 300)
    few = few[(few["a"] < 0.33) | (few["b"] < 0.33)]
    b = rs.ale2(model, few, ("a", "b"), bins=EDGES)
    with pytest.warns(UserWarning, match="1 of 9 cells have rows in only one of a and b"):
        found = rs.compare(a, b, rng=0)
    assert found.attrs["n_unshared"] == 1
    assert int(found["supported"].sum()) == 8
    assert np.isnan(float(found["difference"][3, 3]))


def test_bad_comparisons(frame, rng):
    a = rs.ale2(model, frame, ("a", "b"), bins=EDGES)

    def other(X=frame, pair=("a", "b"), **more):
        return rs.ale2(model, X, pair, **({"bins": EDGES} | more))

    with pytest.raises(ValueError, match=r"same edges of feature 'a'; got .*GivenBins\(edges\)"):
        rs.compare(a, other(bins=rs.QuantileBins(3)))
    with pytest.raises(ValueError, match="of one feature_a; got 'a' and 'b'"):
        rs.compare(a, other(pair=("b", "a")))
    with pytest.raises(ValueError, match="of one centering; got 'ale' and 'start'"):
        rs.compare(a, other(centering="start"))
    with pytest.raises(ValueError, match="same levels of feature 'k'; got p, q, r and p, q"):
        rs.compare(other(pair=("a", "k")), other(frame[frame["k"] != "r"], ("a", "k")))
    with pytest.raises(ValueError, match="400 rows with a common label.*have other weights"):
        rs.compare(a, other(weights=rng.uniform(1, 2, 400)))
    few = np.where(np.arange(400) < 300, 1.0, 0.0)
    with pytest.raises(ValueError, match="300 rows with a common label.*have other rows"):
        rs.compare(a, other(weights=few))
    for some in (frame.iloc[:200], frame.iloc[::-1]):
        with pytest.raises(ValueError, match="with a common label.*labels of their own"):
            rs.compare(a, other(some))
    with pytest.raises(ValueError, match="paired must be .* have other values or places"):
        rs.compare(a, other(made(rng, 400)), paired=(a, a))
    with pytest.raises(TypeError, match=r"paired must be a sequence of Datasets; got True"):
        rs.compare(a, a, paired=True)
    with pytest.raises(TypeError, match=r"paired must be the two surfaces.*got tuple"):
        rs.compare(a, a, paired=(a,))
    with pytest.raises(ValueError, match="groups must be None for surfaces of other rows"):
        rs.compare(a, other(made(rng, 300).set_axis(range(500, 800))), groups=np.arange(400))
    grouped = rs.std_error(a, groups=np.arange(400) // 4)
    with pytest.raises(ValueError, match="a and b must have standard errors by the same groups"):
        rs.compare(grouped, a)
    # Two halves of one table, by weights, share no rows.
    halves = [other(weights=one) for one in (few, 1 - few)]
    assert rs.compare(*halves, rng=0).attrs["source"] == "rows against rows, independent"


def test_pairs_in_groups(frame):
    """Differences have the errors of their groups, given or those of both surfaces."""
    groups = np.arange(400) // 8
    a = rs.ale2(model, frame, ("a", "b"), bins=EDGES)
    b = rs.ale2(lambda X: model(X, 1.5), frame, ("a", "b"), bins=EDGES)
    named = rs.compare(a, b, groups=groups, rng=0)
    own = rs.compare(*(rs.std_error(one, groups=groups) for one in (a, b)), rng=0)
    xr.testing.assert_identical(named, own)
    assert named.attrs["source"] == "pairs of rows in 50 groups"
    # The difference is half of the surface, whose model is linear in its strength.
    whole = rs.std_error(rs.ale2(lambda X: model(X, 0.5), frame, ("a", "b"), bins=EDGES),
                         groups=groups)  # fmt: skip
    np.testing.assert_allclose(named["difference_se"], whole["surface_se"], rtol=1e-6)


def clustered(rng, n=600, n_groups=40):
    """Unequal groups; what they have in common is the sign and size of the interaction."""
    size = rng.multinomial(n - 3 * n_groups, rng.dirichlet(np.full(n_groups, 1.5))) + 3
    group = rng.permutation(np.repeat(np.arange(n_groups), size))
    level = np.sqrt(0.5) * (rng.normal(size=n_groups)[group] + rng.normal(size=n))
    return np.column_stack([rng.uniform(-1, 1, (n, 2)), level]), group


@pytest.mark.slow
def test_errors_by_groups_cover():
    """40 groups, correlation .5; without an interaction on average, 120 samples.

    By rows intervals cover 75 %, bands 54 %, and the test rejects 38 %.
    """
    hits: dict[str, list[float]] = {"corner": [], "cell": [], "band": [], "test": []}
    for seed in range(120):
        X, group = clustered(np.random.default_rng(seed))
        found = rs.ale2(lambda X: X[:, 0] * X[:, 1] * X[:, 2], X, (0, 1), bins=rs.EqualWidthBins(4))
        found = rs.confband(rs.confint(rs.std_error(found, groups=group)), n_draws=500, rng=0)
        for key, name in (("corner", "surface_ci"), ("cell", "second_effect_ci")):
            ends = found[name] if key == "corner" else found[name][:-1, :-1]
            inside = (ends[..., 0] <= 0) & (ends[..., 1] >= 0)
            hits[key].append(float(inside.mean()))
        ends = found["surface_band"]
        hits["band"].append(float(((ends[..., 0] <= 0) & (ends[..., 1] >= 0)).all()))
        hits["test"].append(float(rs.wald_test(found)["p_value"].values[0] <= 0.05))
    share = {name: 100 * np.mean(values) for name, values in hits.items()}
    error = {name: 100 * np.std(values) / np.sqrt(120) for name, values in hits.items()}
    for name in ("corner", "cell", "band"):
        assert abs(share[name] - 95) < 2 + 2.5 * error[name], (name, share[name], error[name])
    assert 1.5 < share["test"] < 5 + 2.5 * 2, share["test"]


@pytest.mark.slow
def test_size_of_comparisons():
    """The same model in two samples of 400 rows: some difference in 5 %."""
    rejected = np.zeros(2)
    for seed in range(80):
        rng = np.random.default_rng(seed)
        both = [rs.ale2(model, made(rng, 400), ("a", "k"), bins=EDGES) for _ in range(2)]
        found = rs.compare(*both, n_draws=1000, rng=0)
        rejected += [float(found[f"{name}p_value"][0]) < 0.05 for name in ("", "cell_")]
    # Monte-Carlo error 2.4 %.
    for number in rejected:
        assert stats.binomtest(int(number), 80, 0.05).pvalue > 0.001


@pytest.mark.slow
def test_coverage_of_bands():
    """95 % bands of all corners, and of all cells, at once; truth from 200 000 rows."""
    truth = rs.ale2(model, made(np.random.default_rng(0), 200_000), ("a", "k"), bins=EDGES)
    inside = np.zeros(2)
    for seed in range(80):
        X = made(np.random.default_rng(seed + 1), 500)
        found = rs.confband(rs.ale2(model, X, ("a", "k"), bins=EDGES), n_draws=1000, rng=0)
        for number, name in enumerate(("surface", "second_effect")):
            ends, one = found[f"{name}_band"].values, truth[name].values
            outside = (ends[..., 0] > one) | (one > ends[..., 1])
            inside[number] += np.isfinite(ends).any() and not outside.any()
    # Monte-Carlo error 2.4 %; found with 500 samples: 93 to 97 %.
    for number in inside:
        assert stats.binomtest(int(number), 80, 0.95).pvalue > 0.001


# --- values, one line, outputs --------------------------------------------------------------------


def test_values_of_a_product():
    """Bilinear between edges is exact for a product."""
    middles = np.array([0.5, 1.5, 3.0]), np.array([-1.0, 1.0, 4.0])
    X = np.array([[u, v] for u in middles[0] for v in middles[1]])
    bins = (rs.GivenBins([0.0, 1.0, 2.0, 4.0]), rs.GivenBins([-2.0, 0.0, 2.0, 6.0]))
    surface = rs.ale2(lambda X: X[:, 0] * X[:, 1], X, (0, 1), bins=bins)
    at = np.array([[0.3, -1.9], [2.0, 2.0], [4.0, 6.0], [3.3, 0.1]])
    expected = (at[:, 0] - middles[0].mean()) * (at[:, 1] - middles[1].mean())
    for values in (at, (at[:, 0], at[:, 1]), pd.DataFrame(at, columns=["x0", "x1"]), at.tolist()):
        found = rs.predict(surface, values)
        np.testing.assert_allclose(found, expected, atol=1e-12)
        assert found.dims == ("grid",)
        np.testing.assert_array_equal(found["x1"], at[:, 1])
    grid = rs.predict(surface, (xr.DataArray(at[:, 0], dims="u"), xr.DataArray([1.0], dims="v")))
    assert grid.dims == ("u", "v")
    one = rs.predict(surface, (0.5, 1.0))
    assert one.shape == ()
    assert np.isnan(rs.predict(surface, ([-0.1, 4.1, np.nan], [0.0, 0.0, 0.0]))).all()


def test_values_at_edges_are_the_surface_and_unknown_without_rows(rng):
    X = rng.uniform(-1, 1, (300, 2))
    X[:, 1] = 0.7 * X[:, 0] + 0.3 * X[:, 1]
    surface = rs.ale2(
        lambda X: X[:, 0] * X[:, 1], X, (0, 1), bins=rs.GivenBins(np.linspace(-1, 1, 5))
    )
    assert surface.attrs["n_empty"] > 2
    at_edges = rs.predict(surface, (surface["edge_a"], surface["edge_b"]))
    np.testing.assert_allclose(at_edges, surface["surface"], atol=1e-15)
    middles = [surface[f"edge_{side}"].rolling({f"edge_{side}": 2}).mean()[1:] for side in "ab"]
    inside = rs.predict(surface, tuple(middles))
    np.testing.assert_array_equal(np.isfinite(inside.values), in_cells(surface["n_obs"]) > 0)


def test_values_at_levels(frame):
    surface = rs.ale2(model, frame, ("k", "a"), bins=EDGES)
    for number, level in enumerate(NUMBERS):
        found = rs.predict(surface, (level, surface["edge_b"]))
        np.testing.assert_allclose(found, surface["surface"][number], atol=1e-15)
    rows = rs.predict(surface, frame)
    spread = float(np.sqrt(np.mean((rows - rows.mean()) ** 2)))
    assert spread == pytest.approx(size(surface), rel=1e-12)
    with pytest.raises(
        ValueError, match="x must hold levels of feature 'k', 'p', 'q', 'r'; got 'z'"
    ):
        rs.predict(surface, ("z", 0.1))
    with pytest.raises(ValueError, match="x must hold numbers of feature 'a'"):
        rs.predict(surface, ("p", "p"))


def test_bad_values(surface, frame):
    with pytest.raises(ValueError, match="a tuple of two.* got ndarray of shape"):
        rs.predict(surface, np.zeros(3))
    with pytest.raises(ValueError, match="got a tuple of 3"):
        rs.predict(surface, (1, 2, 3))
    with pytest.raises(ValueError, match=r"got shapes \(2,\) and \(3,\)"):
        rs.predict(surface, (np.zeros(2), np.zeros(3)))
    with pytest.raises(KeyError, match="x must have the columns 'a' and"):
        rs.predict(surface, frame[["c"]])
    with pytest.raises(ValueError, match="feature must be left out for a surface.*got 'a'"):
        rs.predict(surface, [0.1], "a")
    with pytest.raises(ValueError, match="feature must be left out for a surface.*got 'a'"):
        rs.vcov(surface, "a")
    local = rs.local_effects(model, frame, features=["a", "c"])
    with pytest.raises(TypeError, match="feature must be the name or number"):
        rs.predict(rs.rhale(local), [0.1])
    with pytest.raises(TypeError, match="feature must be the name or number"):
        rs.vcov(rs.rhale(local))
    with pytest.raises(ValueError, match="null must be one of 'zero', 'homogeneous'.*'constant'"):
        rs.wald_test(surface, "constant")


def test_too_many_corners_for_a_covariance(rng):
    X = rng.uniform(-1, 1, (200, 2))
    surface = rs.ale2(lambda X: X[:, 0] * X[:, 1], X, (0, 1), bins=rs.EqualWidthBins(51))
    with pytest.raises(ValueError, match="at most 2500 corners .* has 2704. Use fewer bins"):
        rs.confband(surface)


def test_glance_is_one_line(surface):
    line = rs.glance(surface)
    assert len(line) == 1
    found = rs.std_error(surface)
    assert line["n_obs"][0] == 400
    assert line["n_cells"][0] == in_cells(surface["n_obs"]).size
    assert line["n_empty"][0] == 0
    assert line["size"][0] == pytest.approx(size(surface))
    assert line["surface_max"][0] == float(np.abs(surface["surface"]).max())
    assert line["z_max"][0] == float(np.abs(found["surface"] / found["surface_se"]).max())


def test_glance_takes_rounding_for_nothing(frame):
    line = rs.glance(rs.ale2(lambda X: X["a"] + X["b"], frame, ("a", "b"), bins=EDGES))
    assert line["z_max"][0] == 0.0


def test_outputs_one_by_one(frame):
    class Classes:
        classes_ = np.array(["no", "perhaps", "yes"])

        def predict_proba(self, X):
            score = np.stack([0 * X["a"], model(X), -model(X, 0.3)], axis=1)
            return np.exp(score) / np.exp(score).sum(axis=1, keepdims=True)

        def predict(self, X):
            return self.classes_[self.predict_proba(X).argmax(axis=1)]

    surface = rs.ale2(Classes(), frame, ("a", "k"), bins=EDGES)
    other = rs.ale2(Classes(), frame.assign(c=0.5), ("a", "k"), bins=EDGES)
    label = "perhaps"
    one, two = surface.sel(output=label), other.sel(output=label)
    for whole, part, name in (
        (
            rs.confband(surface, n_draws=500, rng=0),
            rs.confband(one, n_draws=500, rng=0),
            "surface_band",
        ),
        (rs.wald_test(surface), rs.wald_test(one), "p_value"),
        (
            rs.compare(surface, other, n_draws=500, rng=0),
            rs.compare(one, two, n_draws=500, rng=0),
            "difference_band",
        ),
    ):
        assert whole["output"].values.tolist() == ["no", "perhaps", "yes"]
        np.testing.assert_array_equal(whole[name].sel(output=label), part[name])
    assert rs.compare(surface, other, n_draws=500, rng=0).attrs["source"] == "pairs of rows"
    np.testing.assert_array_equal(rs.std_error(surface)["obs"], surface["obs"])
    lines = rs.glance(surface)
    assert lines["output"].tolist() == ["no", "perhaps", "yes"]
    values = rs.predict(one, (0.1, "q"))
    assert np.isfinite(float(values))
    for verb in (rs.vcov, rs.hypotheses):
        with pytest.raises(ValueError, match="of one output here; this one is of 3"):
            verb(surface)


# --- what is tested, by definition ----------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("grouped", [False, True])
def test_sizes_of_interactions_by_their_definition(frame, weighted, grouped):
    """Root of the mean square over the rows of the cells, without the part of noise."""
    some = frame[:120]
    w = np.arange(120) % 3 + 1.0
    weights = {"weights": w, "weight_kind": "frequency"} if weighted else {}
    found = rs.ale2(model, some, ("a", "b"), bins=EDGES, **weights)
    found = rs.std_error(found, groups=np.arange(120) // 3) if grouped else rs.std_error(found)
    names = ("n_obs", "second_effect", "heterogeneity", "second_effect_se")
    n, mean, spread, se = (in_cells(found[name]) for name in names)
    noise = n * se**2
    square = np.sum(n * mean**2 - noise) / n.sum()
    zero = rs.wald_test(found)
    assert float(zero["size"][0]) == pytest.approx(np.sqrt(max(square, 0)), rel=1e-9)
    varied = rs.wald_test(found, "homogeneous")
    pooled = np.sqrt(np.sum(n * spread**2) / n.sum())
    assert float(varied["size"][0]) == pytest.approx(pooled, rel=1e-9)
    source = "rows in 40 groups" if grouped else "rows"
    assert zero.attrs["source"] == varied.attrs["source"] == source
    assert zero.attrs["null"] == "no interaction on average: all mean second differences are 0"
    assert varied.attrs["test"] == "wald_test, null 'homogeneous'"
    assert float(varied["df"][0]) == 9
    assert zero["feature_kind"].values.tolist() == ["pair"]
    bins = f"{zero.attrs['bin_rule']}({zero.attrs['bin_parameters']})"
    assert bins == f"{found.attrs['bins_a']} by {found.attrs['bins_b']}"
    assert zero.attrs["n_rows"] == 120


def test_nothing_is_left_of_a_size_that_is_noise(frame):
    found = rs.ale2(lambda X: X["a"] * X["b"] * np.sign(X["c"]), frame, ("a", "b"), bins=EDGES)
    # Balanced signs: the mean square of means is about that of noise.
    size_of = float(rs.wald_test(found)["size"][0])
    assert 0 <= size_of < 0.5 * float(rs.wald_test(found, "homogeneous")["size"][0])


def test_what_a_test_of_a_surface_does_not_take(surface):
    with pytest.raises(ValueError, match="method must be 'box' for a surface; got 'weighted'"):
        comparison.wald_test(surface, "zero", "weighted", "holm", None)
    with pytest.raises(ValueError, match="local must be None, .*; got local with null 'zero' of a"):
        comparison.wald_test(surface, "zero", "box", "holm", surface)


def test_one_row_a_cell_has_a_reason_of_its_own():
    X = np.array([[u, v] for u in (0.5, 1.5) for v in (0.5, 1.5)])
    surface = rs.ale2(lambda X: X[:, 0] * X[:, 1], X, (0, 1), bins=rs.GivenBins([0.0, 1.0, 2.0]))
    found = rs.wald_test(surface)
    assert str(found["reason"].values[0]) == meaning.NO_ROWS
    assert float(found["df"][0]) == 0
    none = rs.wald_test(surface, "homogeneous")
    assert float(none["df"][0]) == 0
    assert float(none["statistic"][0]) == 0
    assert np.isnan(none["size"][0])
