"""Which pairs of many features are estimated, and what the result says of the others."""

import re

import numpy as np
import pandas as pd
import pytest

import rhale_stats as rs
from rhale_stats.arguments.seeds import number_of
from rhale_stats.h_statistics.screening import largest_pairs, screened
from rhale_stats.models.differences import DifferenceQuotients
from rhale_stats.models.table import as_table


def mixed(X):
    return X["x0"] * X["x1"] + 0.5 * X["x2"] * X["x5"] * (X["k"] == "u") + X["x7"]


@pytest.fixture(scope="module")
def many():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 10))).add_prefix("x")
    return X.assign(k=rng.choice(["u", "v"], size=60))


def test_superset_importance_has_its_closed_form():
    """Of independent standard normal features: f = x0 x1 + 2 x2 x3 + x4."""
    X = np.random.default_rng(0).normal(size=(20_000, 5))
    asked = DifferenceQuotients(
        lambda X: X[:, 0] * X[:, 1] + 2 * X[:, 2] * X[:, 3] + X[:, 4], as_table(X)
    )
    rng = np.random.default_rng(1)
    sizes = [
        screened(asked, range(5), np.ones(len(X)), rng, progress=False)[0][..., 0] ** 2
        for _ in range(100)
    ]
    mean, error = np.mean(sizes, axis=0), np.std(sizes, axis=0) / 10
    assert abs(mean[0, 1] - 1) < 4 * error[0, 1]
    assert abs(mean[2, 3] - 4) < 4 * error[2, 3]
    others = np.ones((5, 5), dtype=bool)
    others[[0, 1, 2, 3], [1, 0, 3, 2]] = False
    np.testing.assert_allclose(mean[others & ~np.eye(5, dtype=bool)], 0, atol=1e-25)
    assert np.isnan(np.diagonal(mean)).all()


def test_the_largest_pairs_are_chosen_over_outputs_in_their_units():
    size = np.full((3, 3, 2), np.nan)
    size[0, 1], size[0, 2], size[1, 2] = (100.0, 0.0), (0.0, 2.0), (50.0, 0.5)
    assert largest_pairs(size, np.array([100.0, 1.0]), 1) == [(0, 2)]
    assert largest_pairs(size, np.array([100.0, 100.0]), 1) == [(0, 1)]
    assert largest_pairs(size, np.array([100.0, 1.0]), 2) == [(0, 1), (0, 2)]


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
    assert "Pairs" in str(rs.show(found))


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
    panels = rs.plot_h_statistics(found, max_features=5)
    assert len(panels[0].get_yticklabels()) == 5
    assert "5 of 11 features (max_features)" in panels[0].get_title()


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"n_pairs": "all"}, ValueError, "n_pairs must be one of .*auto.*; got 'all'"),
        ({"n_pairs": 0}, ValueError, "n_pairs must be .*got 0"),
        ({"pairs": []}, ValueError, "pairs must name at least one pair"),
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
