"""The design of a survey as an argument."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import rhale_stats as rs
from rhale_stats.arguments.survey import design_text, row_groups


def sampling(n_rows=6, **options):
    return rs.SurveyDesign(**options).sampling(None, n_rows, None)


def test_rows_are_clusters_by_default():
    design = sampling()
    assert design.n_clusters == 6
    assert design.degrees == 5
    assert design_text(design) == "rows in 6 clusters"


def test_equal_labels_in_two_strata_are_two_clusters():
    design = sampling(clusters=[1, 1, 2, 2, 1, 2], strata=list("aabbbb"), fpc=[1, 1, 4, 4, 4, 4])
    # The first stratum was taken as a whole.
    assert_array_equal(design.cluster, [0, 0, 2, 2, 1, 2])
    assert_array_equal(design.stratum, [0, 1, 1])
    assert_allclose(design.factor, [0, 0.5 * 2, 0.5 * 2])
    assert design_text(design) == "rows in 3 clusters of 2 strata"


@pytest.mark.parametrize(
    ("fpc", "share"), [(12, 0.5), (0.5, 0.5), ([24] * 6, 0.25), ([0.25] * 6, 0.25)]
)
def test_fractions_and_numbers_of_clusters(fpc, share):
    assert_allclose(sampling(fpc=fpc).factor, (1 - share) * 6 / 5)


@pytest.mark.parametrize(
    ("scale", "factor"),
    [
        (None, 3 / 4),
        ("jackknife", 3 / 4),
        ("bootstrap", 1 / 3),
        ("brr", 1 / 4),
        ("successive", 1.0),
        (2, 2.0),
        ([1, 2, 3, 4], [1, 2, 3, 4]),
    ],
)
def test_factors_of_replicates(scale, factor):
    design = sampling(replicates=np.eye(6)[:, :4], scale=scale)
    assert_allclose(design.factor, np.broadcast_to(factor, 4))
    assert design.degrees == 3
    assert design_text(design) == "rows, by 4 replicate weights"


def test_columns_go_by_the_labels_of_the_rows():
    strata = pd.Series(list("ababab"), index=[5, 4, 3, 2, 1, 0])
    design = rs.SurveyDesign(strata=strata).sampling(np.arange(6), 6, None)
    assert_array_equal(design.stratum[design.cluster], [1, 0, 1, 0, 1, 0])


def test_replicate_weights_are_over_those_of_the_rows():
    values = np.arange(12.0).reshape(6, 2)
    weight = np.array([1.0, 2, 2, 2, 2, 0])
    design = rs.SurveyDesign(replicates=values).sampling(None, 6, weight)
    assert_allclose(design.replicates[:5], values[:5] / weight[:5, None])
    assert_array_equal(design.replicates[5], 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"strata": list("aaaaab")},
            "two clusters or more in every stratum; got 1 in that of row 5",
        ),
        ({"clusters": [1] * 6}, "two clusters or more in every stratum; got 1 in that. Join"),
        ({"strata": [1, 2]}, r"strata must have one entry for each of 6 .*; got shape \(2,\)"),
        ({"strata": [1, None, 1, 1, 2, 2]}, "strata must have an entry for every row"),
        ({"fpc": 5}, "fpc must be .* not below that of the sample; got 5 for 6 clusters"),
        ({"fpc": -1}, "fpc must be a share between 0 and 1.*got -1"),
        ({"strata": list("aaabbb"), "fpc": [9, 9, 8, 3, 3, 3]}, "fpc must be one number in every"),
        ({"replicates": np.ones(6)}, r"replicates must have shape .*; got \(6,\)"),
        ({"replicates": np.ones((5, 3))}, r"replicates must have shape .*; got \(5, 3\)"),
        ({"replicates": -np.ones((6, 3))}, "replicates must be finite and not negative"),
        ({"replicates": np.ones((6, 3)), "scale": "jk"}, "scale must be one of 'bootstrap'.*'jk'"),
        ({"replicates": np.ones((6, 3)), "scale": -1}, "scale must be a number that is not neg"),
        ({"replicates": np.ones((6, 3)), "scale": [1, 2]}, "one for each of 3 replicates"),
    ],
)
def test_designs_that_do_not_fit_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        sampling(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strata": [1, 2], "replicates": np.ones((2, 2))}, "strata must be left out with replic"),
        ({"scale": 1}, "scale must be left out without replicates"),
    ],
)
def test_options_that_exclude_each_other(options, message):
    with pytest.raises(ValueError, match=message):
        rs.SurveyDesign(**options)


def test_names_of_columns_are_no_columns():
    with pytest.raises(TypeError, match="strata must be an array with one entry a row"):
        rs.SurveyDesign(strata="region")


def test_groups_are_columns_or_designs():
    used = np.array([True, True, False, True])
    assert_array_equal(row_groups(list("baab"), None, used, "groups"), [1, 0, 1])
    design = row_groups(rs.SurveyDesign(), None, used, "groups")
    assert_array_equal(design.rows, [0, 1, 3])
    assert design.n_clusters == 4
    with pytest.raises(TypeError, match="groups must be an array with one entry a row"):
        rs.averages(None, None, groups="cluster")


def test_functions_without_designs_say_what_they_take():
    X = np.random.default_rng(0).uniform(size=(50, 2))
    surface = rs.ale2(lambda X: X[:, 0] * X[:, 1], X, (0, 1))
    with pytest.raises(ValueError, match="groups must have one entry for each of 50 rows.*Survey"):
        rs.std_error(surface, groups=rs.SurveyDesign())


def test_words_of_other_packages():
    design = rs.SurveyDesign(replicates=np.ones((3, 2)), scale="JKn")
    with pytest.raises(ValueError, match="got 'JKn' of type str. Did you mean 'jackknife'"):
        design.sampling(None, 3, None)
