"""Which pairs of many features are estimated, and what the result says of the others."""

import re

import numpy as np
import pandas as pd
import pytest

import rhale_stats as rs
from rhale_stats.arguments.seeds import number_of
from rhale_stats.h_statistics import statistic
from rhale_stats.h_statistics.statistic import largest_pairs, screened
from rhale_stats.models import differences
from rhale_stats.models.differences import DifferenceQuotients
from rhale_stats.models.sample import Sample
from rhale_stats.models.table import as_table


def sample_of(X, positions=None, weights=None):
    """All rows, of these columns or of all."""
    sample = Sample.from_table(X, rs.ModelOptions(weights=weights))
    return sample.of_columns(range(len(sample.table.names)) if positions is None else positions)


def mixed(X):
    return X["x0"] * X["x1"] + 0.5 * X["x2"] * X["x5"] * (X["k"] == "u") + X["x7"]


@pytest.fixture(scope="module")
def many():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 10))).add_prefix("x")
    return X.assign(k=rng.choice(["u", "v"], size=60))


@pytest.mark.thorough
def test_superset_importance_has_its_closed_form():
    """Of independent standard normal features: f = x0 x1 + 2 x2 x3 + x4."""
    X = np.random.default_rng(0).normal(size=(20_000, 5))
    asked = DifferenceQuotients(
        lambda X: X[:, 0] * X[:, 1] + 2 * X[:, 2] * X[:, 3] + X[:, 4], as_table(X)
    )
    rng = np.random.default_rng(1)
    sizes = [screened(asked, sample_of(X), rng, progress=False)[0][..., 0] ** 2 for _ in range(100)]
    mean, error = np.mean(sizes, axis=0), np.std(sizes, axis=0) / 10
    assert abs(mean[0, 1] - 1) < 4 * error[0, 1]
    assert abs(mean[2, 3] - 4) < 4 * error[2, 3]
    others = np.ones((5, 5), dtype=bool)
    others[[0, 1, 2, 3], [1, 0, 3, 2]] = False
    np.testing.assert_allclose(mean[others & ~np.eye(5, dtype=bool)], 0, atol=1e-25)
    assert np.isnan(np.diagonal(mean)).all()


@pytest.mark.thorough
@pytest.mark.parametrize("batch", [10_000, 60])
@pytest.mark.parametrize("kind", ["array", "frame"])
def test_superset_importance_by_hand(many, kind, batch, monkeypatch):
    """Every row with its own columns, and with those of another row; blocks change nothing."""
    monkeypatch.setattr(statistic, "SCREEN_CALLS", 125)
    if kind == "frame":
        X, f, places = many, mixed, [0, 1, 2, 10]
    else:
        X, places = many.drop(columns="k").to_numpy(), [0, 3, 1, 4]

        def f(X):
            return np.column_stack([X[:, 0] * X[:, 1], X[:, 3] * X[:, 0] + X[:, 4]])

    calls = []

    def model(X):
        calls.append(len(X))
        assert np.shape(X)[1] == np.shape(table)[1]
        return f(X)

    table = pd.DataFrame(X)
    w = np.arange(60.0)
    asked = DifferenceQuotients(model, as_table(X))
    monkeypatch.setattr(differences, "BATCH_ROWS", batch)
    found, n_rows = screened(
        asked, sample_of(X, places, w), np.random.default_rng(3), progress=False
    )
    # 125 calls for six pairs, but no fewer rows than 20.
    assert n_rows == 20
    # One row as it is, four features and six pairs: together, or three of 20 rows in a call.
    assert calls == ([20, 80, 120] if batch > 60 else [20, 60, 20, 60, 60])
    rows, others = np.random.default_rng(3).choice(60, (2, 20), p=w / w.sum())

    def answers(*columns):
        some = table.iloc[rows].reset_index(drop=True)
        for column in columns:
            some[some.columns[column]] = table.iloc[others, column].array
        values = np.asarray(f(some if kind == "frame" else some.to_numpy()), dtype=float)
        return values.reshape(20, -1)

    for a, j in enumerate(places):
        for b, k in enumerate(places):
            if a == b:
                assert np.isnan(found[a, b]).all()
                continue
            change = answers() - answers(j) - answers(k) + answers(j, k)
            expected = np.sqrt(np.mean(change**2, axis=0)) / 2
            np.testing.assert_allclose(found[a, b], expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(("calls", "n_rows"), [(6 * 21 + 5, 21), (6 * 200, 200), (6 * 201, 200)])
def test_rows_that_pairs_are_looked_at_in(many, calls, n_rows, monkeypatch):
    monkeypatch.setattr(statistic, "SCREEN_CALLS", calls)
    X = many.drop(columns="k").to_numpy()
    asked = DifferenceQuotients(lambda X: X[:, 0], as_table(X))
    rng = np.random.default_rng(0)
    assert screened(asked, sample_of(X, range(4)), rng, progress=False)[1] == n_rows


def test_the_largest_pairs_are_chosen_over_outputs_in_their_units():
    size = np.full((3, 3, 2), np.nan)
    size[0, 1], size[0, 2], size[1, 2] = (100.0, 0.0), (0.0, 2.0), (50.0, 0.5)
    assert largest_pairs(size, np.array([100.0, 1.0]), 1) == [(0, 2)]
    assert largest_pairs(size, np.array([100.0, 100.0]), 1) == [(0, 1)]
    assert largest_pairs(size, np.array([100.0, 1.0]), 2) == [(0, 1), (0, 2)]
    # An output that does not vary has units of its own; of equal pairs the first is taken.
    assert largest_pairs(size, np.array([0.0, 1.0]), 1) == [(0, 1)]
    assert largest_pairs(np.ones((3, 3, 1)), np.ones(1), 2) == [(0, 1), (0, 2)]
    flat = np.full((3, 3, 2), 1.0)
    flat[1, 2] = (0.5, 2.0)
    assert largest_pairs(flat, np.array([1.0, 0.0]), 1) == [(1, 2)]


def test_pairs_of_many_outputs_are_chosen_in_units_of_their_spread(many):
    """The first output is small, and its pair stands out; the second is large and additive."""
    X = many.drop(columns="k").to_numpy()

    def f(X):
        return np.column_stack([X[:, 0] * X[:, 1], 1e3 * (X[:, 2] + 0.1 * X[:, 3] * X[:, 4])])

    found = rs.h_statistic(f, X, n_pairs=1, rng=0)
    assert rs.tidy(found)["term"].tolist()[-1] == "x0:x1"
    assert found["h_screening"].dims == ("output", "feature", "feature_other")
    drawn = np.random.default_rng([number_of(0), 1])
    asked = DifferenceQuotients(f, as_table(X))
    size, _ = screened(asked, sample_of(X), drawn, progress=False)
    np.testing.assert_allclose(found["h_screening"], np.moveaxis(size, -1, 0))


@pytest.mark.thorough
def test_so_many_pairs_as_there_are_need_no_choice(many):
    X = many[["x0", "x1", "x2"]].to_numpy()
    every = rs.h_statistic(lambda X: X[:, 0] * X[:, 1], X, n_pairs=3)
    assert "h_screening" not in every
    assert (every.attrs["n_pairs_left_out"], every.attrs["pair_seed"]) == (0, -1)
    two = rs.h_statistic(lambda X: X[:, 0] * X[:, 1], X, n_pairs=2, rng=4)
    assert two.attrs["n_pairs_left_out"] == 1
    assert "h_screening" in two
    alone = rs.h_statistic(lambda X: X[:, 0] * X[:, 1], X, pairwise=False)
    assert (alone.attrs["n_pairs_left_out"], alone.attrs["pair_seed"]) == (0, -1)
    sums = rs.h_statistic(lambda X: X[:, 0] * X[:, 1], X, pairwise=False, kind="ale", n_pairs=2)
    assert "h_screening" not in sums
    assert sums.attrs["n_pairs_left_out"] == 1


def test_many_features_have_their_largest_pairs(many):
    said = r"Left out: 10 of 55 pairs, which interact least by a look at 200 rows \(h_screening\)"
    with pytest.warns(UserWarning, match=said):
        found = rs.h_statistic(mixed, many, rng=0)
    every = rs.h_statistic(mixed, many, rng=0, n_pairs=None)
    assert every.attrs["n_pairs_left_out"] == 0
    assert "h_screening" not in every
    assert found.attrs["n_pairs_left_out"] == 10
    assert found.attrs["pair_seed"] == number_of(0)
    known = found["h2_pairwise"].notnull().values
    assert known.sum() == 2 * 45
    for name in ("h2_pairwise", "h_pairwise", "h2_pairwise_se", "h_pairwise_influence"):
        np.testing.assert_array_equal(found[name].values[known], every[name].values[known])
        assert np.isnan(found[name].values[~known]).all()
    # What is left out does not interact.
    np.testing.assert_allclose(every["h_pairwise"].values[~known & ~np.eye(11, dtype=bool)], 0)
    for name in ("h2", "h2_overall", "h2_se"):
        np.testing.assert_array_equal(found[name], every[name])
    assert len(rs.tidy(found)) == 11 + 45
    text = " ".join(str(rs.summary(found)).split())
    assert "10 pairs were left out, which interact least by h_screening. See n_pairs." in text
    assert ":" in rs.show(found).head.tables[1].stubs[0]


@pytest.mark.thorough
def test_few_pairs_by_number_or_by_name(many):
    found = rs.h_statistic(mixed, many, n_pairs=4, rng=0, missing="drop")
    assert set(rs.tidy(found)["term"][11:]) >= {"x0:x1", "x2:x5", "x2:k", "x5:k"}
    named = rs.h_statistic(mixed, many, pairs=[("x1", "x0"), ("k", 2)])
    assert rs.tidy(named)["term"][11:].tolist() == ["x0:x1", "x2:k"]
    assert named.attrs["n_pairs_left_out"] == 53
    assert named.attrs["pair_seed"] == -1
    one = {"feature": "x0", "feature_other": "x1"}
    assert float(named["h_pairwise"].sel(one)) == float(found["h_pairwise"].sel(one))
    # Replicates of the pairs that there are.
    kept = rs.h_statistic(mixed, many, pairs=[("x1", "x0")], keep_answers=True, rng=0)
    boot = rs.bootstrap(kept, n_resamples=20, rng=0)
    assert np.isfinite(boot["h_pairwise"].sel(one)).all()
    compared = rs.compare(kept, named)
    assert "h2_pairwise_difference" in compared


def test_pairs_of_ale_count_alone_in_what_is_summed(many):
    numbers = many.drop(columns="k")

    def model(X):
        return X["x0"] * X["x1"] + X["x2"] * X["x3"]

    both = rs.h_statistic(model, numbers, kind="ale", pairs=[("x0", "x1"), ("x2", "x3")])
    one = rs.h_statistic(model, numbers, kind="ale", pairs=[("x0", "x1")])
    assert float(one["h2_overall"].sel(feature="x2")) == 0
    assert float(one["h"]) < float(both["h"])
    assert "count as 0 in what is summed" in " ".join(str(rs.summary(one)).split())


def test_pairs_are_drawn_with_a_picture_of_some_features(many):
    found = rs.h_statistic(mixed, many, n_pairs=4, rng=0)
    panels = rs.plots.h_statistics(found, max_features=5)
    assert len(panels[0].get_yticklabels()) == 5
    assert "5 of 11 features (max_features)" in panels[0].get_title()


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"n_pairs": "all"}, ValueError, "n_pairs must be one of .*auto.*; got 'all'"),
        ({"n_pairs": 0}, ValueError, "n_pairs must be .*got 0"),
        ({"pairs": []}, ValueError, "pairs must name at least one pair"),
        ({"pairs": [("x0", "x1", "x2")]}, TypeError, "pairs must hold pairs of features; got"),
        ({"pairs": [3]}, TypeError, "pairs must hold pairs of features; got 3"),
        ({"pairs": [("x1", "x1")]}, ValueError, "distinct"),
        ({"pairs": ["ab"]}, TypeError, "pairs must hold pairs of features; got 'ab'"),
        ({"pairs": [("x0", "q")]}, KeyError, "'q'"),
        (
            {"pairs": [("x0", "x2")], "features": ["x0", "x1"]},
            ValueError,
            re.escape("pairs must be of features, x0, x1; got 'x2'"),
        ),
    ],
)
def test_what_is_no_pair_is_refused(many, options, error, said):
    with pytest.raises(error, match=said):
        rs.h_statistic(mixed, many, **options)
