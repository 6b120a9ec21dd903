"""H-statistics' uncertainty: derivatives, weights, groups, replicates, pairs, coverage."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import stats

import rhale_stats as rs
from rhale_stats.h_statistics import estimates, inference, statistic
from tests.helpers import as_of_a_file, sizes_of_blocks, through_a_file

NAMES = ("h2", "h2_overall", "h2_pairwise", "h", "h_overall", "h_pairwise")


def model(X):
    return X[:, 0] + np.sin(X[:, 0] * X[:, 1]) + X[:, 2] * X[:, 0] + X[:, 1] ** 2


def mixed(X):
    k = X["k"].map({"p": 0.0, "q": 1.0, "r": 3.0}).to_numpy()
    m = X["m"].map({"u": 0.0, "v": 1.0}).to_numpy()
    return np.sin(X["a"] * X["b"]) + k * X["a"] + m * k + X["b"] ** 2 * m


@pytest.fixture
def frame(rng):
    n = 40
    out = pd.DataFrame({"a": rng.normal(size=n), "k": rng.choice(list("pqr"), n)})
    out["b"] = out["a"] + rng.normal(size=n)
    out["m"] = rng.choice(list("uv"), n)
    return out


def given_bins(X, n_bins=4):
    """The same edges whatever the weights; some cells stay empty."""
    columns = X.select_dtypes("number") if isinstance(X, pd.DataFrame) else pd.DataFrame(X)
    return rs.GivenBins(np.linspace(columns.min().min(), columns.max().max(), n_bins + 1))


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["pdp", "ale"])
def test_influences_are_derivatives_in_the_weights(kind, frame, rng):
    weight, step = rng.uniform(0.5, 2, 40), 1e-5
    given = {"kind": kind, **({"bins": given_bins(frame)} if kind == "ale" else {})}
    found = rs.h_statistic(mixed, frame, weights=weight, **given)
    for row in (11, 25):
        moved = []
        for sign in (1, -1):
            other = weight.copy()
            other[row] += sign * step
            moved.append(rs.h_statistic(mixed, frame, weights=other, **given))
        for name in NAMES:
            expected = (moved[0][name] - moved[1][name]) / (2 * step) * weight.sum()
            scale = float(np.abs(found[f"{name}_influence"]).max())
            # Central differences: step² times the third derivative, and rounding over the step.
            np.testing.assert_allclose(
                found[f"{name}_influence"].isel(obs=row), expected, atol=1e-7 * scale
            )


def test_standard_error_by_hand(rng):
    """Precision weights: sum of (w / W influence)², times n / (n - 1), n effective."""
    X, w = rng.normal(size=(50, 2)), rng.uniform(0.5, 2, 50)
    found = rs.h_statistic(model_of_two, X, weights=w)
    n = w.sum() ** 2 / np.sum(w**2)
    expected = np.sum((w / w.sum() * found["h2_influence"]) ** 2) * n / (n - 1)
    assert float(found["h2_se"]) == pytest.approx(float(expected) ** 0.5, rel=1e-12)
    assert np.average(found["h2_influence"], weights=w) == pytest.approx(0, abs=1e-12)


def model_of_two(X):
    return X[:, 0] + X[:, 1] + X[:, 0] * X[:, 1]


@pytest.mark.parametrize("kind", ["pdp", "ale"])
def test_no_rows_change_an_additive_model(kind, rng):
    X = rng.normal(size=(60, 2))
    found = rs.confint(rs.h_statistic(lambda X: np.exp(X[:, 0]) + X[:, 1], X, kind=kind))
    assert float(found["h2"]) == float(found["h2_se"]) == 0.0
    np.testing.assert_array_equal(found["h2_ci"], [0, 0])


def test_intervals_are_on_the_log_scale(rng):
    found = rs.confint(rs.h_statistic(model, rng.normal(size=(60, 3))), level=0.9)
    half = stats.t.ppf(0.95, 59) * found["h2_se"] / found["h2"]
    expected = float(found["h2"]) * np.exp([-float(half), float(half)])
    np.testing.assert_allclose(found["h2_ci"], expected)
    # The share of a pair that has none.
    np.testing.assert_array_equal(found["h2_pairwise_ci"][1, 2], [0, 0])
    assert np.isnan(found["h2_pairwise_ci"][1, 1]).all()
    assert found["h2_ci"].attrs["ci_prob"] == 0.9


@pytest.mark.thorough
def test_groups_of_repeated_rows(rng):
    """Every row three times, as groups: errors of the rows once, but for the factor."""
    X = rng.normal(size=(50, 3))
    once, thrice = (rs.h_statistic(model, np.repeat(X, n, axis=0)) for n in (1, 3))
    grouped = rs.std_error(thrice, groups=np.repeat(np.arange(50), 3))
    np.testing.assert_allclose(grouped["h2_overall_se"], once["h2_overall_se"], rtol=1e-9)
    assert grouped.attrs["n_groups"] == 50
    assert grouped["h2_se"].attrs["source"] == "rows in 50 groups"
    ends = [rs.confint(one)["h2_ci"] for one in (grouped, once)]
    np.testing.assert_allclose(*ends, rtol=1e-9)
    again = rs.std_error(grouped)
    np.testing.assert_allclose(again["h2_se"], thrice["h2_se"], rtol=1e-12)
    assert "n_groups" not in again.attrs
    # Of the rows that were drawn.
    drawn = rs.h_statistic(model, np.repeat(X, 3, axis=0), n_rows=60, rng=1)
    groups = np.repeat(np.arange(50), 3)
    n_groups = rs.std_error(drawn, groups=groups).attrs["n_groups"]
    assert n_groups == len(np.unique(groups[drawn["row"].values]))


@pytest.mark.thorough
@pytest.mark.parametrize("weighted", [False, True])
def test_replicates_are_the_statistics_of_weighted_rows(weighted, rng):
    X, n = rng.normal(size=(40, 3)), 40
    X[:, 2] = rng.integers(3, size=n)  # values that repeat
    w = rng.uniform(0.5, 2, n) if weighted else None
    found = rs.h_statistic(model, X, weights=w, keep_answers=True)
    boot = rs.bootstrap(found, n_resamples=4, scheme="bayesian", chains=2, rng=5)
    assert boot["h2_overall"].dims == ("chain", "draw", "feature")
    seeds = np.random.default_rng(5).spawn(4)
    for number, stream in enumerate(seeds):
        drawn = stream.standard_exponential(n)
        other = rs.h_statistic(model, X, weights=drawn * (1 if w is None else w))
        one = boot.isel(chain=number // 2, draw=number % 2)
        for name in NAMES:
            np.testing.assert_allclose(one[name], other[name], rtol=1e-8, atol=1e-12)


@pytest.mark.thorough
def test_bootstrap_agrees_with_the_standard_errors(rng):
    X = rng.uniform(-1, 1, (300, 2))
    found = rs.h_statistic(model_of_two, X, keep_answers=True)
    boot = rs.bootstrap(found, n_resamples=400, rng=0)
    # The standard deviation of 400 draws is known to 3.5 %, and the linear term is not all.
    assert float(boot["h2"].std()) == pytest.approx(float(found["h2_se"]), rel=0.15)
    percentile, basic = (rs.confint(found, boot, method=m) for m in ("percentile", "basic"))
    low, high = percentile["h2_pairwise_ci"].values[0, 1]
    estimate = float(found["h2_pairwise"][0, 1])
    np.testing.assert_allclose(
        basic["h2_pairwise_ci"][0, 1], [2 * estimate - high, 2 * estimate - low]
    )
    draws = np.sort(boot["h2_pairwise"].values[..., 0, 1].ravel())
    assert draws[9] <= low <= draws[10]
    groups = rs.bootstrap(found, n_resamples=8, groups=np.arange(300) // 3, rng=0)
    assert groups.attrs["n_units"] == 100
    by_default = rs.confint(found, boot)
    assert "bca" in by_default["h2_ci"].attrs["method"]
    # Replicates of rows with influences that are skewed to the right are cut further up.
    assert float(boot["h2_pairwise_acceleration"][0, 1]) > 0
    assert by_default["h2_pairwise_ci"].values[0, 1, 1] > high


@pytest.mark.slow
def test_accelerations_are_those_of_the_jackknife(rng):
    X = rng.exponential(size=(60, 2))
    found = rs.h_statistic(model_of_two, X, keep_answers=True)
    boot = rs.bootstrap(found, n_resamples=4, rng=0)
    pairs = np.arange(60) // 2
    grouped = rs.bootstrap(found, n_resamples=4, groups=pairs, rng=0)
    for unit, of in ((np.arange(60), boot), (pairs, grouped)):
        left = np.array(
            [
                float(rs.h_statistic(model_of_two, X[unit != one])["h2"])
                for one in range(unit.max() + 1)
            ]
        )
        away = left.mean() - left
        expected = np.sum(away**3) / (6 * np.sum(away**2) ** 1.5)
        assert float(of["h2_acceleration"]) == pytest.approx(expected, rel=0.2)
    # A row with frequency 2 is two rows.
    twice = rs.h_statistic(
        model_of_two, X, weights=np.full(60, 2), weight_kind="frequency", keep_answers=True
    )
    rows = rs.h_statistic(model_of_two, np.repeat(X, 2, axis=0), keep_answers=True)
    one, other = (rs.bootstrap(each, n_resamples=4, rng=0) for each in (twice, rows))
    for name in NAMES:
        np.testing.assert_allclose(
            one[f"{name}_acceleration"], other[f"{name}_acceleration"], rtol=1e-8, atol=1e-12
        )


@pytest.mark.parametrize("kind", [None, "precision", "frequency"])
@pytest.mark.parametrize("grouped", [False, True])
def test_accelerations_by_their_definition(kind, grouped, rng):
    """Efron (1987): sum psi³ / (6 (sum psi²)^1.5), psi the influence of what is drawn."""
    X = np.column_stack([rng.exponential(size=(14, 2)), np.ones(14)])
    w = np.array([1.0, 2.0, 0.5, 3.0, 1.0, 1.0, 2.0] * 2)
    if kind == "frequency":
        w = np.ceil(w)
    given = {} if kind is None else {"weights": w, "weight_kind": kind}
    found = rs.h_statistic(model_of_two, X, keep_answers=True, **given)
    groups = np.arange(14) // 3
    more = {"groups": groups} if grouped else {}
    boot = rs.bootstrap(found, n_resamples=2, chains=1, rng=0, **more)
    for name in NAMES:
        psi = found[f"{name}_influence"].transpose("obs", ...).values
        psi = np.repeat(psi, w.astype(int), axis=0) if kind == "frequency" else psi
        code = np.repeat(groups, w.astype(int)) if kind == "frequency" else groups
        if kind == "precision":
            psi = psi * w.reshape(-1, *[1] * (psi.ndim - 1))
        if grouped:
            psi = np.stack([psi[code == one].sum(axis=0) for one in range(5)])
        second = np.sum(psi**2, axis=0)
        # A statistic that no row changes has none.
        expected = np.where(second == 0, 0, np.sum(psi**3, axis=0))
        expected = expected / np.where(second == 0, 1, 6 * second**1.5)
        # A feature is no pair with itself.
        if psi.ndim == 3:
            np.testing.assert_array_equal(boot[f"{name}_acceleration"].values[[0, 1], [0, 1]], 0)
            expected[[0, 1, 2], [0, 1, 2]] = 0
        np.testing.assert_allclose(boot[f"{name}_acceleration"], expected, rtol=1e-9, atol=1e-13)
        assert boot[f"{name}_acceleration"].attrs["units"] == "1"


def test_blocks_of_draws_are_one(rng, monkeypatch):
    """So many draws as there is room for their weights and terms: three, or one at least."""
    found = rs.h_statistic(model_of_two, rng.normal(size=(10, 2)), keep_answers=True)
    whole = rs.bootstrap(found, n_resamples=8, rng=1)
    for room, blocks in ((3 * 40, [3, 3, 2]), (3 * 40 + 39, [3, 3, 2]), (1, [1] * 8)):
        with monkeypatch.context() as patch:
            asked = sizes_of_blocks(patch, inference, room)
            parts = rs.bootstrap(found, n_resamples=8, rng=1)
        assert asked == blocks
        for name in NAMES:
            np.testing.assert_allclose(parts[name], whole[name], rtol=1e-12)


def test_answers_of_other_statistics_are_refused(rng):
    found = rs.h_statistic(model_of_two, rng.normal(size=(10, 2)), keep_answers=True)
    for name in NAMES:
        with pytest.raises(ValueError, match="must be as h_statistic returned it"):
            rs.bootstrap(found.assign({name: found[name] * (1 + 1e-4)}))


def test_replicates_without_accelerations_have_none(rng):
    found = rs.h_statistic(model_of_two, rng.exponential(size=(20, 2)), keep_answers=True)
    boot = rs.bootstrap(found, n_resamples=200, rng=1)
    bare = as_of_a_file(boot).drop_vars(
        [name for name in boot.variables if "acceleration" in str(name)]
    )
    zero = boot.assign_coords(
        {name: 0 * boot[name] for name in boot.variables if "acceleration" in str(name)}
    )
    ends = [rs.confint(found, one, method="bca")["h2_ci"].values for one in (boot, bare, zero)]
    np.testing.assert_array_equal(ends[1], ends[2])
    assert not np.array_equal(ends[0], ends[1])


def test_degrees_of_groups_of_an_earlier_result(rng):
    """A file without their degrees has the number of groups less one."""
    found = rs.h_statistic(model_of_two, rng.normal(size=(20, 2)))
    grouped = rs.std_error(found, groups=np.arange(20) // 2 * (np.arange(20) > 5))
    older = as_of_a_file(grouped).assign_attrs()
    degrees = older.attrs.pop("groups_df")
    assert degrees < grouped.attrs["n_groups"] - 1.5
    for one, df in ((grouped, degrees), (older, grouped.attrs["n_groups"] - 1)):
        half = stats.t.ppf(0.975, df) * float(one["h2_se"] / one["h2"])
        ends = float(one["h2"]) * np.exp([-half, half])
        np.testing.assert_allclose(rs.confint(one)["h2_ci"], ends)
    known = as_of_a_file(grouped)
    without = known.drop_vars([name for name in grouped if "influence" in str(name)])
    assert rs.confint(without)["h2_ci"].equals(rs.confint(grouped)["h2_ci"])


def test_series_of_groups_go_by_their_labels(rng):
    X = pd.DataFrame(rng.normal(size=(12, 2)), columns=["a", "b"], index=list("lkjihgfedcba"))
    found = rs.h_statistic(lambda X: X["a"] * X["b"], X, n_rows=9, rng=2)
    groups = np.arange(12) // 3
    named = pd.Series(groups, X.index).sort_index()
    for given in (named, pd.Series(groups, X.index)):
        assert rs.std_error(found, groups=given).equals(rs.std_error(found, groups=groups))
    other = rs.h_statistic(lambda X: X["a"] + X["a"] * X["b"], X, n_rows=8, rng=3)
    expected = rs.compare(found, other, groups=groups)["h2_difference_se"]
    np.testing.assert_array_equal(rs.compare(found, other, groups=named)["h2_difference_se"],
                                  expected)  # fmt: skip
    with pytest.raises(ValueError, match="at least two different groups among the rows used"):
        rs.std_error(found, groups=np.where(used(found), 3, groups))
    # Two groups are enough.
    rs.std_error(found, groups=np.where(np.cumsum(used(found)) == 1, 1, 0))


def used(found):
    """Which rows of the table a result is of."""
    return np.isin(np.arange(found.attrs["n_rows_total"]), found["row"])


def test_two_models_on_one_table(rng):
    """Pairs: the standard error is that of the difference of influences."""
    X = rng.normal(size=(80, 3))
    a, b = rs.h_statistic(model, X), rs.h_statistic(lambda X: model(X) + 0.3 * X[:, 0] ** 2, X)
    found = rs.compare(a, b, level=0.9)
    psi = a["h2_overall_influence"] - b["h2_overall_influence"]
    se = np.sqrt((psi**2).sum("obs") / 80 / 79)
    np.testing.assert_allclose(found["h2_overall_difference_se"], se, rtol=1e-10)
    t = np.abs(a["h2"] - b["h2"]) / found["h2_difference_se"]
    assert float(found["h2_p_value"]) == pytest.approx(2 * stats.t.sf(float(t), 79))
    assert found.attrs["source"] == "pairs of rows"
    # Against itself there is no difference, and no error.
    same = rs.compare(a, a)
    assert float(np.abs(same["h2_overall_difference_se"]).max()) == 0.0
    # Another table is independent, unless a user says otherwise.
    other = rs.h_statistic(model, rng.normal(size=(80, 3)))
    apart = rs.compare(a, other)
    expected = np.hypot(a["h2_se"], other["h2_se"])
    np.testing.assert_allclose(apart["h2_difference_se"], expected)
    assert "independent" in apart.attrs["source"]
    assert rs.compare(a, other, paired=(a, other)).attrs["source"] == "pairs of rows"
    by_groups = rs.compare(a, b, groups=np.arange(80))
    np.testing.assert_allclose(by_groups["h2_difference_se"], rs.compare(a, b)["h2_difference_se"])
    table = rs.tidy(found)
    assert len(table) == 2 * (1 + 3 + 3)
    line = table[(table["term"] == "x0:x2") & (table["statistic"] == "h")].iloc[0]
    np.testing.assert_allclose(line["estimate"], found["h_pairwise_difference"][0, 2])
    low = found["h_pairwise_difference_ci"][0, 2, 0]
    np.testing.assert_allclose(line["conf_low"], low)
    assert "H², x0:x2" in str(rs.summary(found))


def test_rows_in_common_are_paired(rng):
    """Two samples of one table: rows of both count once, those of one alone as they are."""
    X = rng.normal(size=(100, 2))
    a, b = (rs.h_statistic(model_of_two, X, n_rows=60, rng=seed) for seed in (1, 2))
    assert len(np.intersect1d(a["row"], b["row"])) > 20
    psi = np.zeros((2, 100))
    for line, one in zip(psi, (a, b), strict=True):
        line[one["row"].values] = one["h2_influence"] / 60 * np.sqrt(60 / 59)
    expected = np.sqrt(np.sum((psi[0] - psi[1]) ** 2))
    np.testing.assert_allclose(rs.compare(a, b)["h2_difference_se"], expected)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["pdp", "ale"])
def test_outputs_and_files(kind, rng, tmp_path):
    X = rng.normal(size=(50, 3))

    def f(X):
        return np.column_stack([model(X), model_of_two(X)])

    both = rs.h_statistic(f, X, kind=kind, weights=rng.uniform(0.5, 2, 50))
    one = rs.h_statistic(lambda X: f(X)[:, 1], X, kind=kind, weights=both["weight"].values)
    np.testing.assert_allclose(
        both["h_pairwise_se"][1], one["h_pairwise_se"], rtol=1e-9, atol=1e-14
    )
    found = rs.confint(rs.std_error(both, groups=np.arange(50) // 2))
    assert found["h2_overall_ci"].dims == ("output", "feature", "ci_bound")
    compared = rs.compare(both, both.assign_attrs())
    assert compared["h2_difference"].dims == ("output",)
    kept = [found, compared]
    if kind == "pdp":
        answers = rs.h_statistic(f, X, keep_answers=True)
        boot = rs.bootstrap(answers, n_resamples=8, rng=0)
        assert boot["h2"].dims == ("chain", "draw", "output")
        kept = [answers, boot]
    for dataset in kept:
        xr.testing.assert_identical(through_a_file(dataset, tmp_path), dataset)


def test_tables(rng):
    X = rng.normal(size=(60, 3))
    found = rs.h_statistic(model, X)
    table = rs.tidy(found, level=0.9).set_index("term")
    ends = rs.confint(found, level=0.9)
    assert table.loc["x0:x1", "h2_conf_low"] == float(ends["h2_pairwise_ci"][0, 1, 0])
    assert table.loc["x2", "h_conf_high"] == float(ends["h_overall_ci"][2, 1])
    assert table.loc["x2", "h_std_error"] == float(found["h_overall_se"][2])
    assert rs.glance(found)["h2_std_error"].item() == float(found["h2_se"])
    text = str(rs.summary(found, level=0.9))
    assert "[0.05" in text
    assert f"{table.loc['x0:x1', 'h2_conf_high']:.4g}" in text
    known = as_of_a_file(found)
    without = known.drop_vars([n for n in found if "_se" in n or "influence" in n])
    assert list(rs.tidy(without).columns) == ["term", "kind", "h2", "h"]
    assert "std err" not in str(rs.summary(without))


def test_picture_has_the_errors(rng):
    found = rs.h_statistic(model, rng.normal(size=(60, 3)), pairwise=False)

    def lines(found):
        (panel,) = rs.plots.h_statistics(found)
        (bars,) = panel.containers[1].get_children()[-1:]
        return panel, np.sort([segment[:, 0] for segment in bars.get_segments()], axis=0)

    panel, drawn = lines(found)
    assert "standard errors" in panel.get_xlabel()
    low = found["h2_overall"] - found["h2_overall_se"]
    np.testing.assert_allclose(drawn[:, 0], np.sort(low))
    panel, drawn = lines(rs.confint(found, level=0.9))
    assert "90% intervals" in panel.get_xlabel()
    np.testing.assert_allclose(
        drawn, np.sort(rs.confint(found, level=0.9)["h2_overall_ci"], axis=0)
    )


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["pdp", "ale"])
def test_missing_rows_are_left_out_and_counted(kind, rng):
    X = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc"))
    X["k"] = rng.choice(["p", "q"], 60)
    X.loc[[3, 7], "a"] = np.nan
    X.loc[[7, 9], "k"] = None
    X.loc[20, "c"] = np.nan  # not among the features

    def f(X):
        return X["a"] * X["b"] + X["a"] * (X["k"] == "p")

    features = ["a", "b", "k"]
    found = rs.h_statistic(f, X, features=features, kind=kind, missing="drop")
    left = np.setdiff1d(np.arange(60), [3, 7, 9])
    other = rs.h_statistic(f, X.iloc[left], features=features, kind=kind)
    assert (found.attrs["n_rows_missing"], found.attrs["n_rows"]) == (3, 57)
    np.testing.assert_array_equal(found["row"], left)
    for name in ("h2", "h2_pairwise", "h2_se"):
        np.testing.assert_array_equal(found[name], other[name])
    assert "3 rows without a value" in str(rs.summary(found))
    with pytest.raises(ValueError, match="'a' must be finite; got 2 NaN"):
        rs.h_statistic(f, X, features=features, kind=kind)
    with pytest.raises(
        ValueError, match=r"'k' must have a level .* got 2 missing in 60 rows .*7, 9"
    ):
        rs.h_statistic(f, X, features=["b", "k"], kind=kind)


@pytest.mark.thorough
def test_missing_values_as_values(rng):
    """With "pdp" a missing value is one more value."""
    X = pd.DataFrame(rng.normal(size=(50, 2)), columns=["a", "b"])
    X.loc[:9, "a"] = np.nan
    found = rs.h_statistic(lambda X: X["a"].fillna(5) * X["b"], X, missing="bin")
    other = rs.h_statistic(lambda X: X["a"] * X["b"], X.fillna({"a": 5}))
    np.testing.assert_allclose(found["h2_pairwise"], other["h2_pairwise"], rtol=1e-12)
    assert found.attrs["n_rows_missing"] == 0
    level = rng.choice(["p", "q"], 50).astype(object)
    X["k"] = level
    X.loc[:19, "k"] = None
    named = X.assign(k=X["k"].fillna("r"))

    def f(X):
        return X["b"] * X["k"].astype(object).map({"p": 0.0, "q": 1.0}).fillna(3.0)

    gaps = rs.h_statistic(f, X, features=["b", "k"], missing="bin")
    full = rs.h_statistic(f, named, features=["b", "k"])
    np.testing.assert_allclose(gaps["h2_se"], full["h2_se"], rtol=1e-12)
    with pytest.raises(
        ValueError, match="missing must not be 'bin' for numeric .*'a', which has 10"
    ):
        rs.h_statistic(lambda X: X["b"], X, missing="bin", kind="ale")


def test_what_does_not_fit_is_not_kept(rng, monkeypatch):
    X = rng.normal(size=(50, 3))
    whole = rs.h_statistic(model, X)
    monkeypatch.setattr(statistic, "KEPT_BYTES", 1 << 10)
    small = rs.h_statistic(model, X)
    np.testing.assert_array_equal(small["h2_se"], whole["h2_se"])
    assert "h2_influence" not in small
    assert "not kept" in small.attrs["influence"]
    with pytest.raises(ValueError, match="no h2_influence .*not kept.*n_rows="):
        rs.std_error(small, groups=np.arange(50))
    with pytest.raises(ValueError, match="a must hold the influences of rows for pairs"):
        rs.compare(small, whole)
    for module in (estimates, estimates):
        monkeypatch.setattr(module, "HELD_BYTES", 1 << 10)
    for kind in ("pdp", "ale"):
        none = rs.h_statistic(model, X, kind=kind)
        assert "none" in none.attrs["influence"]
        assert "h2_se" not in none
        with pytest.raises(ValueError, match="influences of rows for standard errors"):
            rs.std_error(none)
    np.testing.assert_array_equal(rs.h_statistic(model, X)["h2_overall"], whole["h2_overall"])


@pytest.mark.thorough
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_the_memory_that_is_allowed_is_counted(n_outputs, rng, monkeypatch):
    X = rng.normal(size=(20, 3))
    X[:, 2] = 4.0

    def f(X):
        return np.column_stack([model(X)] * n_outputs)

    bins = rs.QuantileBins(3)
    # Answers for three features and at the rows; second differences with their cells, of the
    # only pair whose features vary.
    cases = (("pdp", estimates, 4 * 20**2, {}), ("ale", estimates, 2 * 20, {"bins": bins}))
    for kind, module, n_numbers, more in cases:
        for room, there in ((0, True), (-1, False)):
            monkeypatch.setattr(module, "HELD_BYTES", 8 * n_outputs * n_numbers + room)
            found = rs.h_statistic(f, X, kind=kind, **more)
            assert ("h2_se" in found) is there
    levels = pd.DataFrame({"k": rng.choice(list("uv"), 20), "m": rng.choice(list("pq"), 20)})
    for room, there in ((0, True), (-1, False)):
        # Two levels have two sides each.
        monkeypatch.setattr(estimates, "HELD_BYTES", 8 * 2 * 4 * 20 + room)
        found = rs.h_statistic(lambda X: 1.0 * ((X["k"] == "u") & (X["m"] == "p")), levels,
                               kind="ale")  # fmt: skip
        assert ("h2_se" in found) is there


@pytest.mark.parametrize(("pairwise", "n"), [(True, 1 + 3 + 9), (False, 1 + 3)])
def test_influences_of_a_result_are_counted(pairwise, n, rng, monkeypatch):
    X = rng.normal(size=(20, 3))

    def f(X):
        return np.column_stack([model(X), model(X) ** 2])

    for room, there in ((0, True), (-1, False)):
        # Shares and sizes, of two outputs.
        monkeypatch.setattr(statistic, "KEPT_BYTES", 2 * n * 20 * 2 * 8 + room)
        found = rs.h_statistic(f, X, pairwise=pairwise)
        assert ("h2_influence" in found) is there
        assert "h2_se" in found
    monkeypatch.setattr(statistic, "KEPT_BYTES", 5 << 20)
    monkeypatch.setattr(estimates, "HELD_BYTES", 0)
    monkeypatch.setattr(statistic, "HELD_BYTES", 3 << 20)
    none = rs.h_statistic(f, X, pairwise=pairwise)
    assert none.attrs["influence"] == "none: more than 3 MiB to hold"
    # Answers that are kept are held.
    kept = rs.h_statistic(f, X, pairwise=pairwise, keep_answers=True)
    assert kept.attrs["influence"] == "kept"


def test_bad_input(rng):
    X = rng.normal(size=(30, 3))
    found, ale = rs.h_statistic(model, X), rs.h_statistic(model, X, kind="ale")
    with pytest.raises(ValueError, match="keep_answers must be False with kind='ale'"):
        rs.h_statistic(model, X, kind="ale", keep_answers=True)
    with pytest.raises(ValueError, match="missing must be one of"):
        rs.h_statistic(model, X, missing="keep")
    with pytest.raises(ValueError, match="keep_answers=True"):
        rs.bootstrap(found)
    with pytest.raises(ValueError, match="this result is of kind 'ale'"):
        rs.bootstrap(ale)
    kept = rs.h_statistic(model, X, keep_answers=True)
    with pytest.raises(ValueError, match="takes what h_statistic returned alone"):
        rs.bootstrap(kept, kept)
    with pytest.raises(ValueError, match="must be as h_statistic returned it"):
        rs.bootstrap(as_of_a_file(kept.isel(feature=[0, 1], feature_other=[0, 1])))
    with pytest.raises(ValueError, match="rebin and studentize must be False"):
        rs.bootstrap(kept, rebin=True)
    with pytest.raises(ValueError, match="groups must have one entry for each of 30 rows of X"):
        rs.std_error(found, groups=np.arange(29))
    with pytest.raises(ValueError, match="groups must hold at least two different groups"):
        rs.std_error(found, groups=np.zeros(30))
    with pytest.raises(ValueError, match="'percentile', 'basic', 'bca'; got 'studentized'"):
        rs.confint(found, method="studentized")
    with pytest.raises(ValueError, match="one kind; got 'pdp' and 'ale'"):
        rs.compare(found, ale)
    with pytest.raises(ValueError, match="the same features; got x0, x1, x2 and x0, x1"):
        rs.compare(found, rs.h_statistic(model, X, features=[0, 1]))
    with pytest.raises(ValueError, match="b is not"):
        rs.compare(found, X)
    other = rs.h_statistic(model, X[:20])
    with pytest.raises(ValueError, match="groups must come with results of one table"):
        rs.compare(found, other, groups=np.arange(30))
    with pytest.raises(ValueError, match="tables of 30 and 20 rows"):
        rs.compare(found, other, paired=(found, other))
    with pytest.raises(ValueError, match="groups must be given where a or b"):
        rs.compare(rs.std_error(found, groups=np.arange(30) // 2), found)


@pytest.mark.slow
def test_coverage():
    """f = x1 + x2 + x1 x2, independent normal: H² = 1/3.

    Of 200 rows 90 % (math [62]); the bound is four Monte-Carlo errors away, of 3 % each.
    """
    inside = []
    for seed in range(100):
        X = np.random.default_rng(seed).normal(size=(200, 2))
        low, high = rs.confint(rs.h_statistic(model_of_two, X))["h2_ci"].values
        inside.append(low <= 1 / 3 <= high)
    assert np.mean(inside) >= 0.78


@pytest.mark.slow
def test_size_of_the_comparison():
    """Two models with one H² in the population, of rows in common: P < 0.05 in 5 % of samples."""
    rejected = []
    for seed in range(90):
        X = np.random.default_rng(seed).normal(size=(80, 3))
        a = rs.h_statistic(model_of_two, X, pairwise=False)
        b = rs.h_statistic(lambda X: model_of_two(X[:, [0, 2]]), X, pairwise=False)
        rejected.append(float(rs.compare(a, b)["h2_p_value"]) < 0.05)
    # Four Monte-Carlo errors of 2.3 %.
    assert np.mean(rejected) < 0.142


@pytest.mark.thorough
def test_what_rounding_makes_is_no_difference():
    X = np.random.default_rng(0).normal(size=(120, 3))
    found = [
        rs.h_statistic(lambda X, c=c: (X[:, 0] / c) * (X[:, 1] * c) + X[:, 2] + 1e4, X, rng=0)
        for c in (1.0, 3.0, 7.0)
    ]
    for other in found[1:]:
        compared = rs.compare(found[0], other)
        # Sums of the answers themselves differ by rounding; statistics of 0 are equal.
        for name in ("h2", "h", "h2_overall", "h_overall"):
            assert (compared[f"{name}_p_value"] == 1).all(), name
        pairs = compared["h2_pairwise_p_value"].values
        assert (pairs[np.triu_indices(3, 1)] == 1).all()


@pytest.mark.thorough
def test_features_in_another_order_are_the_same_table(frame):
    """code.md B11: the rows of one table counted as independent ones."""
    names = [str(name) for name in frame.columns if pd.api.types.is_numeric_dtype(frame[name])]
    X = frame[names].to_numpy()

    def other(X):
        return X[:, 0] * X[:, 1] + 0.1 * X[:, 0]

    def of(order, model):
        return rs.h_statistic(model, X, features=order, progress=False)

    order = [f"x{number}" for number in range(X.shape[1])]
    a = of(order, lambda X: X[:, 0] * X[:, 1])
    expected = rs.compare(a, of(order, other))
    found = rs.compare(a, of(order[::-1], other))
    assert found["h2_difference"].attrs["source"] == "pairs of rows"
    xr.testing.assert_allclose(found, expected.sel(feature=found["feature"]))
    moved = rs.h_statistic(other, X[:, ::-1], features=order, progress=False)
    assert moved.attrs["table_hash"] != a.attrs["table_hash"]
