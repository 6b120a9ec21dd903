"""What functions read of several models: estimates, sizes, rows of features, contrasts."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import rhale_stats as rs
from rhale_stats.ensembles import labelled
from rhale_stats.ensembles.labelled import Origin
from rhale_stats.inference.combinations import correlated
from rhale_stats.inference.estimate import Facts
from tests.ensembles.made import FOLDS, REFITS, constant, ensemble, side_by_side, with_levels

CURVES = np.random.default_rng(0).standard_normal((9, 5))
ALL = ("percentile", "basic", "normal")
CREDIBLE = ("eti", "hdi", "normal")


@pytest.mark.parametrize(
    ("attrs", "expected"),
    [
        (
            {},
            Origin(
                "draws",
                "draws of the parameters",
                "effect of the model over these rows",
                "credible",
                CREDIBLE,
                False,
            ),
        ),
        (
            {"source": "models"},
            Origin(
                "models",
                "spread of the models",
                "effect of a model over these rows",
                "spread",
                CREDIBLE,
                False,
            ),
        ),
        (REFITS, Origin("refits", "refits", "mean effect of models fitted to so many rows")),
        (
            REFITS | {"variance": "subsampling", "source": "refits, groups of rows"},
            Origin(
                "subsamples",
                "refits, groups of rows",
                "mean effect of models fitted to so many rows",
                "confidence",
                ALL,
                True,
            ),
        ),
        (
            FOLDS | {"source": "cross-fitting, groups of rows", "variance": "jackknife"},
            Origin(
                "folds",
                "refits of folds, groups of rows",
                "mean effect of models fitted to the rows of a training set",
                methods=("normal",),
            ),
        ),
    ],
)
def test_origins(attrs, expected):
    origin = labelled.origin_of(ensemble(CURVES, **attrs))
    assert origin == expected
    assert origin.is_tested == (origin.interval == "confidence")


def test_facts_of_estimates():
    made = ensemble(CURVES, se_rows=0.1)
    about = {"long_name": "accumulated effect", "units": "mg"}
    made["curve"].attrs = about
    dims = ("feature", "grid")
    target = "effect of the model over these rows"
    assert labelled.facts_of(made, "curve") == Facts(
        dims, "accumulated effect", "mg", target, "draws of the parameters"
    )
    assert labelled.facts_of(made, "curve", of_rows=True) == Facts(
        dims,
        "accumulated effect",
        "mg",
        "effect of the model over rows like these",
        "draws of the parameters and rows",
    )
    # Without errors by rows there is no part of theirs; within refits it is a part anyway.
    assert labelled.facts_of(ensemble(CURVES), "curve", of_rows=True).target == target
    refits = ensemble(CURVES, se_rows=0.1, **REFITS)
    assert labelled.facts_of(refits, "curve", of_rows=True).source == "refits"
    assert labelled.facts_of(made, "importance").dims == ("feature",)


def test_centres_are_estimates_or_means_of_the_known():
    made = ensemble(CURVES, estimate=np.arange(5.0))
    assert_array_equal(labelled.centre_of(made, "curve"), [np.arange(5.0)])
    turned = made.assign(curve_estimate=made["curve_estimate"].transpose())
    assert_array_equal(labelled.centre_of(turned, "curve"), [np.arange(5.0)])
    gaps = CURVES.copy()
    gaps[2:, 1], gaps[:, 3] = np.nan, np.nan
    found = labelled.centre_of(ensemble(gaps).drop_vars("curve_estimate"), "curve")
    expected = np.array([[*CURVES.mean(axis=0)]])
    expected[0, 1], expected[0, 3] = CURVES[:2, 1].mean(), np.nan
    assert_allclose(found, expected)


def test_subsamples_are_wider_about_the_estimate():
    made = ensemble(CURVES, estimate=np.ones(5), variance_factor=4.0)
    assert_allclose(labelled.scaled(made, "curve")[:, 0], 1 + 2 * (CURVES - 1))
    assert_array_equal(labelled.scaled(ensemble(CURVES), "curve")[:, 0], CURVES)


def test_covariances_have_the_errors_on_the_diagonal():
    away = np.array([[1.0, 2.0, 0.0], [1.0, -1.0, 0.0], [0.0, 3.0, 0.0]])
    found = correlated(away, np.array([2.0, 3.0, 5.0]))
    # The first two have the correlation 1 / sqrt(2 · 14); the last has no deviation.
    shared = 6 / np.sqrt(28)
    assert_allclose(found, [[4, shared, 0], [shared, 9, 0], [0, 0, 0]])
    unknown = correlated(away, np.array([2.0, 0.0, 5.0]))
    assert_allclose(unknown, [[4, 0, 0], [0, 0, 0], [0, 0, 0]])
    joint = labelled.joint_of(away, np.array([2.0, 3.0, 5.0]), np.array([9.0, 4.0, np.inf]))
    assert joint.degrees == 4
    assert_array_equal(joint.covariance, found)
    assert labelled.joint_of(away, np.ones(3), np.full(3, np.inf)).degrees == np.inf


def test_sizes_put_features_in_order():
    made = side_by_side(x=ensemble(CURVES), c=constant(9), y=ensemble(3 * CURVES))
    importance = labelled.size_of(made)
    assert_allclose(importance[[0, 2]], [CURVES.std(axis=1).mean(), 3 * CURVES.std(axis=1).mean()])
    old = made.drop_vars(["importance", "importance_estimate"])
    size = np.ptp(CURVES.mean(axis=0))
    assert_allclose(labelled.size_of(old), [size, np.nan, 3 * size])
    gaps = old.copy(deep=True)
    gaps["curve_estimate"][0, 0] = np.nan
    assert_allclose(labelled.size_of(gaps)[0], np.ptp(CURVES.mean(axis=0)[1:]))


def test_one_feature_without_points_beyond_its_grid():
    made = side_by_side(
        x=with_levels(ensemble(CURVES), *"abcde"), k=with_levels(ensemble(2 * CURVES), "u", "v")
    )
    row = labelled.one_row(made, "k")
    assert (row.name, row.levels) == ("k", ["u", "v"])
    assert_array_equal(row.z, [0, 1])
    assert_array_equal(row.dataset["curve"].values[0, :, 0], 2 * CURVES[:, :2])
    assert row.dataset.sizes["feature"] == 1
    assert labelled.one_row(ensemble(CURVES), 0).levels == []


def test_sums_over_the_grid_are_unknown_where_a_value_with_weight_is():
    values = np.array([[1.0, 2.0, np.nan], [4.0, 5.0, 6.0]])
    weight = np.array([[1.0, -1.0, 0.0], [0.0, 0.5, 2.0]])
    assert_array_equal(labelled.through(values, weight), [[-1, np.nan], [-1, 14.5]])
    made = ensemble(CURVES, estimate=np.arange(5.0))
    made["curve_other_model"] = made["curve"] + 1
    row = labelled.one_row(made, "x")
    contrast = np.array([[-1.0, 0, 0, 0, 1], [0.5, 0.5, 0, 0, 0]])
    found = labelled.mapped(row, "curve", contrast)
    assert_allclose(found["curve"].values[0, :, 0], CURVES @ contrast.T)
    assert_allclose(found["curve_other_model"].values[0, :, 0], (CURVES + 1) @ contrast.T)
    assert_allclose(found["curve_estimate"], [[4, 0.5]])
    assert found.attrs == made.attrs
    assert "curve_other_model" not in labelled.mapped(row, "effect", contrast)


def test_errors_of_draws_without_the_rows():
    made = rs.std_error(ensemble(CURVES, se_rows=2.0))
    assert_array_equal(labelled.own_errors(made, "curve"), made["curve_se_model"])
    assert_array_equal(labelled.errors(made, "curve"), made["curve_se"])
    refits = rs.std_error(ensemble(CURVES, se_rows=0.1, **REFITS))
    assert_array_equal(labelled.own_errors(refits, "curve"), refits["curve_se"])
    alone = rs.std_error(ensemble(CURVES))
    assert "curve_se_model" not in alone
    assert_array_equal(labelled.own_errors(alone, "curve"), alone["curve_se"])
    folds = rs.std_error(ensemble(CURVES, **FOLDS))
    assert_array_equal(labelled.degrees_of(folds, "curve"), np.full((1, 5), 8))
    assert_array_equal(labelled.degrees_of(refits, "curve"), np.full((1, 5), np.inf))


def test_parts_of_a_result_are_refused():
    made = ensemble(CURVES)
    with pytest.raises(TypeError, match="b must be the Dataset that .* returns; got list"):
        labelled.check_ensemble([], "b")
    for part, said in (
        (made.isel(draw=0), "this one has no dimension draw"),
        (made.isel(feature=0, chain=0), "this one has no dimension chain, feature"),
        (made.drop_vars(["failed", "curve_estimate"]), "this one has no curve_estimate, failed"),
    ):
        with pytest.raises(ValueError, match=f"effect must be the whole Dataset .*; {said}"):
            labelled.check_ensemble(part)
