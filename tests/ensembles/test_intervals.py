"""Intervals and bands of several models: by hand, by ArviZ, and how often they hold the truth."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose
from scipy import stats

import rhale_stats as rs
from rhale_stats.ensembles.intervals import largest_of, shortest
from tests.ensembles.made import FOLDS, REFITS, ensemble

RNG = np.random.default_rng(8)
Z = np.linspace(0, 1, 6)
CURVES = RNG.standard_normal((201, 1)) * Z + RNG.standard_normal((201, 1)) * Z**2


def bounds(found, name="curve", kind="ci"):
    return found[f"{name}_{kind}"].values[0]


class TestDraws:
    def test_equal_tails_are_quantiles(self):
        found = rs.confint(ensemble(CURVES), level=0.8)
        assert_allclose(bounds(found), np.quantile(CURVES, [0.1, 0.9], axis=0).T)
        assert "equal tails" in found["curve_ci"].attrs["method"]

    def test_highest_density_by_loops(self):
        draws = np.exp(CURVES)
        draws[RNG.random(draws.shape) < 0.1] = np.nan
        ends = shortest(draws, 0.8)
        assert_allclose(
            bounds(rs.confint(ensemble(np.exp(CURVES)), level=0.8, method="hdi")),
            shortest(np.exp(CURVES), 0.8),
        )
        for column, found in zip(draws.T, ends, strict=True):
            own = np.sort(column[np.isfinite(column)])
            over = int(0.8 * len(own))
            first = int(np.argmin(own[over:] - own[: len(own) - over]))
            assert_allclose(found, own[[first, first + over]])

    def test_highest_density_by_hand(self):
        """Of 5 draws an interval of level 0.6 reaches over 3 gaps; columns may have fewer draws."""
        draws = np.array([[9.0, 1.0], [0.0, np.nan], [4.0, 2.0], [5.0, np.inf], [6.0, 4.0]])
        assert_allclose(shortest(draws, 0.6), [[4.0, 9.0], [1.0, 2.0]])
        assert_allclose(shortest(draws, 0.59), [[4.0, 6.0], [1.0, 2.0]])
        assert np.isnan(shortest(np.full((4, 1), np.nan), 0.9)).all()

    def test_normal_holds_the_rows_as_well(self):
        found = rs.confint(ensemble(CURVES, se_rows=0.5), method="normal")
        se = np.sqrt(CURVES.var(axis=0, ddof=1) + 0.25)
        half = stats.norm.ppf(0.975) * se
        assert_allclose(bounds(found), CURVES.mean(axis=0)[:, None] + half[:, None] * [-1, 1])
        assert found["curve_ci"].attrs["source"] == "draws of the parameters and rows"
        plain = rs.confint(ensemble(CURVES, se_rows=0.5))
        assert plain["curve_ci"].attrs["source"] == "draws of the parameters"

    def test_members_without_a_value_are_left_out(self):
        gaps = CURVES.copy()
        gaps[:50, -1] = np.nan
        for method in ("eti", "hdi"):
            found = rs.confint(ensemble(gaps, estimate=np.zeros(6)), method=method)
            rest = rs.confint(ensemble(CURVES[50:], estimate=np.zeros(6)), method=method)
            assert_allclose(bounds(found)[-1], bounds(rest)[-1])

    def test_intervals_of_models_are_no_confidence_intervals(self):
        found = rs.confint(ensemble(CURVES, source="models"))
        about = found["curve_ci"].attrs
        assert about["ci_kind"] == "spread"
        assert about["long_name"].startswith("interval of the spread of the models")


class TestRefits:
    def test_percentile_and_basic(self):
        estimate = 0.1 * Z
        found = rs.confint(ensemble(CURVES, estimate=estimate, **REFITS), level=0.9)
        # 201 replicates: ranks 10.1 and 191.9.
        ordered = np.sort(CURVES, axis=0)
        low = ordered[9] + 0.1 * (ordered[10] - ordered[9])
        high = ordered[190] + 0.9 * (ordered[191] - ordered[190])
        assert_allclose(bounds(found), np.stack([low, high], axis=1))
        basic = rs.confint(ensemble(CURVES, estimate=estimate, **REFITS), level=0.9, method="basic")
        assert_allclose(bounds(basic), np.stack([2 * estimate - high, 2 * estimate - low], axis=1))
        assert found["curve_ci"].attrs["ci_kind"] == "confidence"

    def test_subsamples_are_scaled_to_all_rows(self):
        """40 of 100 rows: 40 / 60 of the variance."""
        attrs = REFITS | {"variance": "subsampling", "variance_factor": 40 / 60}
        centre = CURVES.mean(axis=0)
        found = rs.confint(ensemble(CURVES, **attrs))
        plain = rs.confint(ensemble(CURVES, **REFITS))
        factor = np.sqrt(40 / 60)
        assert_allclose(bounds(found) - centre[:, None], factor * (bounds(plain) - centre[:, None]))
        assert_allclose(found["curve_se"], factor * plain["curve_se"])
        assert "scaled to all rows" in found["curve_ci"].attrs["method"]

    def test_sizes_are_not_negative(self):
        found = rs.confint(ensemble(CURVES, **REFITS), method="normal")
        assert (found["importance_ci"] >= 0).all()
        assert "log scale" in found["importance_ci"].attrs["method"]


class TestFolds:
    """Nadeau and Bengio: (1/J + 1/(k - 1)) S², t with J - 1 degrees."""

    def folds(self, seed=0):
        rng = np.random.default_rng(seed)
        return rng.standard_normal((10, 1)) * Z + 0.3 * rng.standard_normal((10, 6))

    def test_by_hand(self):
        curves = self.folds()
        found = rs.confint(ensemble(curves, **FOLDS))
        se = np.sqrt((1 / 10 + 1 / 4) * curves.var(axis=0, ddof=1))
        half = stats.t.ppf(0.975, 9) * se
        assert_allclose(found["curve_se"].values[0], se)
        assert_allclose(bounds(found), curves.mean(axis=0)[:, None] + half[:, None] * [-1, 1])
        assert_allclose(found["curve_df"], 9)
        with pytest.raises(ValueError, match="method must be one of 'normal'; got 'percentile'"):
            rs.confint(ensemble(curves, **FOLDS), method="percentile")

    def test_band_is_between_one_point_and_bonferroni(self):
        found = rs.confband(ensemble(self.folds(), **FOLDS), rng=0)
        row = found.isel(feature=0)
        quantile = np.ptp(bounds(found, kind="band"), axis=1) / 2 / row["curve_se"].values
        assert np.ptp(quantile) < 1e-9
        assert stats.t.ppf(0.975, 9) < quantile[0] < stats.t.ppf(1 - 0.025 / 6, 9)


class TestBands:
    def test_holds_a_share_of_the_draws(self):
        found = rs.confband(ensemble(CURVES), level=0.9, rng=0)
        low, high = bounds(found, kind="band").T
        slack = 1e-12
        within = ((low - slack <= CURVES) & (high + slack >= CURVES)).all(axis=1)
        assert within.mean() == pytest.approx(0.9, abs=1 / 201)
        assert "deviation of the members" in found["curve_band"].attrs["method"]

    def test_without_the_rows_of_draws_and_with_those_of_refits(self):
        """Refits vary with the rows; draws do not, and their band is of these rows."""
        draws = rs.confband(ensemble(CURVES, se_rows=5.0), rng=0)
        assert_allclose(
            bounds(draws, kind="band"), bounds(rs.confband(ensemble(CURVES), rng=0), kind="band")
        )
        refits = rs.confband(ensemble(CURVES, se_rows=5.0, **REFITS), rng=0)
        assert_allclose(bounds(refits, kind="band"), bounds(draws, kind="band"))

    def test_points_without_spread(self):
        found = rs.confband(rs.confint(ensemble(CURVES - CURVES[:, :1])), rng=0)
        assert_allclose(bounds(found, kind="band")[0], 0, atol=1e-15)
        assert np.isfinite(bounds(found, kind="band")).all()
        assert np.isnan(largest_of(np.ones((5, 3)))).all()

    @pytest.mark.slow
    def test_holds_the_truth_as_often_as_it_says(self):
        """Truth from the prior, data, draws of the posterior: 90 % of bands hold the curve."""
        rng = np.random.default_rng(0)
        z = np.linspace(0, 1, 21)
        basis = np.column_stack([z, np.sin(3 * z), np.cos(5 * z)])
        n, held = 200, 0
        for _ in range(n):
            truth = rng.standard_normal(3)
            rows = rng.uniform(size=(15, 3))
            y = rows @ truth + rng.normal(size=15)
            covariance = np.linalg.inv(np.eye(3) + rows.T @ rows)
            draws = rng.multivariate_normal(covariance @ rows.T @ y, covariance, 400)
            found = rs.confband(ensemble(draws @ basis.T), level=0.9, rng=rng)
            low, high = bounds(found, kind="band").T
            held += bool(((basis @ truth >= low) & (basis @ truth <= high)).all())
        assert stats.binomtest(held, n, 0.9).pvalue > 0.001, held


def test_the_largest_deviation_of_every_member_has_no_units():
    values = np.random.default_rng(0).standard_normal((7, 3))
    values[0, 1], values[3] = np.nan, np.nan
    known = [column[np.isfinite(column)] for column in values.T]
    away = np.abs(values - [one.mean() for one in known]) / [one.std(ddof=1) for one in known]
    expected = [np.max(row[np.isfinite(row)], initial=-1) for row in away]
    expected[3] = np.nan
    for unit in (1.0, 1e-15, 1e15):
        assert_allclose(largest_of(unit * values), expected)


def test_bands_have_the_width_of_their_quantile():
    """The quantile of the largest deviations times the spread; of folds that of Student's t."""
    found = rs.confband(ensemble(CURVES, -CURVES, **REFITS), level=0.8, rng=0)
    largest = largest_of(CURVES)  # the rank of the quantile is (n + 1) 0.8
    quantile = np.quantile(largest, 0.8, method="weibull")
    for name, sign in (("curve", 1), ("effect", -1)):
        half = quantile * CURVES.std(axis=0, ddof=1)
        expected = sign * CURVES.mean(axis=0)[:, None] + half[:, None] * [-1, 1]
        assert_allclose(bounds(found, name, "band"), expected, atol=1e-12)
        assert found[f"{name}_band"].attrs["method"] == (
            "largest standardised deviation of the members"
        )
    # Points that move together are as one point.
    line = np.random.default_rng(0).standard_normal((10, 1)) * np.ones(4)
    folds = rs.confband(ensemble(line, **FOLDS), level=0.9, n_draws=20_000, rng=0)
    half = np.ptp(bounds(folds, kind="band"), axis=1) / 2 / folds["curve_se"].values[0]
    assert_allclose(half, stats.t.ppf(0.95, 9), rtol=0.02)
    assert "deviation of the members" not in folds["curve_band"].attrs["method"]


def test_words_of_intervals():
    for attrs, method, how, words in (
        ({}, "eti", "quantiles of the members, equal tails", "credible interval"),
        ({}, "hdi", "shortest interval of the members (highest density)", "credible interval"),
        (REFITS, "basic", "refits, basic", "confidence interval"),
    ):
        found = rs.confint(ensemble(CURVES, **attrs), level=0.9, method=method)
        about = found["curve_ci"].attrs
        assert about["method"] == how
        assert about["long_name"].startswith(words)
        assert about["ci_prob"] == 0.9
        assert (found["heterogeneity_ci"].values >= 0).all()


def test_basic_intervals_of_sizes_end_at_zero():
    sizes = np.array([1.0, 1, 1, 1, 9])[:, None] * np.ones(3)
    made = ensemble(sizes, **REFITS).assign(importance_estimate=("feature", [2.0]))
    made["importance"][0, :, 0] = [1, 1, 1, 1, 9]
    found = rs.confint(made, level=0.9, method="basic")
    # 2 times 2 less the quantiles 7.4 and 1.
    assert_allclose(bounds(found, "importance"), [0, 3])
    logs = rs.confint(made, level=0.9, method="normal")
    se = np.std([1, 1, 1, 1, 9], ddof=1)
    half = stats.norm.ppf(0.95) * se / 2
    assert_allclose(bounds(logs, "importance"), 2 * np.exp([-half, half]))


def test_errors_are_divided():
    """Refits: the rows are a part of the spread; draws: they come on top."""
    variance = CURVES.var(axis=0, ddof=1)
    for attrs, total, model in (
        ({}, variance + 0.04, variance),
        (REFITS, variance, np.maximum(variance - 0.04, 0)),
    ):
        found = rs.std_error(ensemble(CURVES, se_rows=0.2, **attrs))
        xr.testing.assert_identical(rs.std_error(found), found)
        found = found.isel(feature=0)
        assert_allclose(found["curve_se"] ** 2, total)
        assert_allclose(found["curve_se_model"] ** 2, model, atol=1e-15)
        assert_allclose(found["curve_se_rows"], 0.2)


def test_covariance_has_the_variances_on_its_diagonal():
    found = rs.vcov(ensemble(CURVES, se_rows=0.2), "x")
    assert_allclose(found, np.cov(CURVES.T), atol=1e-12)
    assert found.attrs["source"] == "draws of the parameters"
    gaps = CURVES.copy()
    gaps[:150, 0] = np.nan
    found = rs.vcov(ensemble(gaps), "x")
    assert found.isnull().sum() == 11
    of_effect = rs.vcov(ensemble(CURVES, CURVES**2), "x", of="effect")
    assert_allclose(of_effect, np.cov(CURVES.T**2), atol=1e-12)


def test_what_is_refused():
    made = ensemble(CURVES)
    with pytest.raises(ValueError, match="boot must be left out for results of several models"):
        rs.confint(made, made)
    with pytest.raises(ValueError, match="local must be left out .* several models"):
        rs.std_error(made, xr.Dataset())
    with pytest.raises(ValueError, match="groups must be left out .* bootstrap_refit"):
        rs.std_error(made, groups=np.ones(100))
    with pytest.raises(ValueError, match="method must be one of 'eti', 'hdi', 'normal'"):
        rs.confint(made, method="bca")
    with pytest.raises(ValueError, match="whole Dataset .* no dimension chain"):
        rs.confint(made.isel(chain=0))
    with pytest.raises(ValueError, match="whole Dataset .* no curve_estimate"):
        rs.tidy(made.drop_vars("curve_estimate"))
