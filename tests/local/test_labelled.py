"""Local effects as a labelled Dataset: every variable, coordinate and attribute."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal

from rhale_stats.local.labelled import labelled
from rhale_stats.models.differences import Differences, no_differences
from rhale_stats.models.options import ModelOptions
from rhale_stats.models.sample import Sample

NAN = np.nan
X = np.array([[1.0, 5.0, 0.0], [2.0, 5.0, NAN], [4.0, 5.0, 2.0]])


def sample_of(table, positions=(0, 1, 2), **options):
    return Sample.from_table(table, ModelOptions(missing="bin", **options)).of_columns(
        list(positions)
    )


def frame(**more):
    table = pd.DataFrame(X, columns=["a", "c", "b"], index=list("rst"))
    table.attrs = {"units": {"a": "mg"}, **more}
    return table


def two(first, *, error, edges=None, precision=1e-16):
    """Local effects of two outputs, the second ten times the first."""
    effect = np.column_stack([first, 10 * np.asarray(first)])
    return Differences(effect, np.array(error), "finite_difference", edges, precision)


class Answers:
    """What is known of the outputs of a model."""

    labels, names = ["low", "high"], ["y low", "y high"]
    label, scale = "", "logit"
    range, offset = 5.0, 1.0
    answers_from = "predictions"


class Quotients:
    """What `labelled` reads of them."""

    outputs = Answers()


def test_everything_that_is_known():
    made = [
        two([1.0, 2, 3], error=[0.1, 0.2], edges=np.array([1.0, 2, 4])),
        no_differences("constant"),
        two([7.0, 8], error=[0.3, 0.4], edges=np.array([0.0, 2]), precision=1e-7),
    ]
    absent = {2: {"missing_effect": np.array([5.0, 6]), "missing_spread": np.array([0.0, 1])}}
    weights = np.array([1.0, 2, 3])
    sample = sample_of(frame(), weights=weights, weight_kind="frequency")
    local = labelled(sample, X, list(made), Quotients(), absent)
    assert local["local_effect"].dims == ("output", "obs", "feature")
    effect = np.array([[1, NAN, 7], [2, NAN, NAN], [3, NAN, 8]])
    assert_array_equal(local["local_effect"], [effect, 10 * effect])
    assert local["output"].values.tolist() == ["low", "high"]
    assert_array_equal(local["local_effect_error"], [[0.1, 0, 0.3], [0.2, 0, 0.4]])
    assert local["local_effect_error"].dims == ("output", "feature")
    assert_array_equal(local["x"], X)
    assert_array_equal(local["cell_value"], [[1, 2, 4], [NAN] * 3, [0, 2, NAN]])
    assert_array_equal(local["n_missing"], [0, 0, 1])
    assert_array_equal(local["missing_effect"], [[NAN, NAN, 5], [NAN, NAN, 6]])
    assert_array_equal(local["missing_spread"], [[NAN, NAN, 0], [NAN, NAN, 1]])
    assert_array_equal(local["weight"], weights)
    assert local["weight"].attrs == {"long_name": "frequency weight", "units": "1"}
    assert local["feature"].values.tolist() == ["a", "c", "b"]
    assert local["feature_units"].values.tolist() == ["mg", "", ""]
    assert local["feature_column"].values.tolist() == [0, 1, 2]
    assert local["local_effect_method"].values.tolist() == [
        *("finite_difference", "constant", "finite_difference")
    ]
    assert local["obs"].values.tolist() == list("rst")
    said = ("scale", "output_label", "answer_precision", "n_rows", "n_columns", "table")
    assert [local.attrs[name] for name in said] == ["logit", "", 1e-7, 3, 3, "DataFrame"]


def test_of_derivatives_alone():
    """Without a model there is one output, of which nothing is known; without cells, none."""
    made = [Differences(np.array([[1.0], [2], [3]]), np.array([0.5]), "jacobian")]
    local = labelled(sample_of(frame(), [2]), X[:, :1], list(made))
    assert local["local_effect"].dims == ("obs", "feature")
    assert_array_equal(local["local_effect"], [[1], [2], [3]])
    assert_array_equal(local["local_effect_error"], [0.5])
    assert local["feature"].values.tolist() == ["b"]
    assert local["feature_column"].values.tolist() == [2]
    assert not {"cell_value", "n_missing", "weight", "missing_effect"} & set(local.variables)
    assert (local.attrs["scale"], local.attrs["output_label"]) == ("", "")
    assert local.attrs["n_columns"] == 3
    assert local["local_effect"].values[:, 0].flags.c_contiguous


def test_effects_are_given_up_one_by_one():
    made = [two([1.0, 2, 3], error=[0, 0]), no_differences("constant")]
    labelled(sample_of(frame(), [0, 1]), X[:, :2], made, Quotients())
    assert [len(one.local_effect) for one in made] == [0, 0]


@pytest.mark.parametrize("size", [1e70, 1e-70])
def test_sizes_whose_powers_are_no_numbers(size):
    for effect, x, what in (
        ([0.0, -size, 0], X[:, 0], "Local effects of feature 'a'"),
        ([0.0, size**0.5, 0], X[:, 0] * size**0.5, "The range of the curve of feature 'a'"),
    ):
        made = [Differences(np.array(effect)[:, None], np.zeros(1), "jacobian")]
        with pytest.raises(ValueError, match=what):
            labelled(sample_of(frame(), [0]), x[:, None], made)
    # A constant output has local effects of 0, which are no problem.
    none = [Differences(np.zeros((3, 1)), np.zeros(1), "jacobian")]
    labelled(sample_of(frame(), [0]), X[:, :1], none)


@pytest.mark.parametrize(
    ("table", "form"),
    [
        (X, "array"),
        (pd.DataFrame(X, columns=["a", "b", "c"]), "DataFrame"),
        (pd.DataFrame(X), "DataFrame with numbered columns"),
        (pd.DataFrame(X, columns=np.array([4, 2, 7])), "DataFrame with numbered columns"),
        (pd.DataFrame(X, columns=["a", 1, "c"]), "DataFrame with labels of its own"),
        (pl.DataFrame(X, schema=["a", "b", "c"], orient="row"), "polars"),
    ],
)
def test_forms_of_tables(table, form):
    made = [Differences(np.ones((3, 1)), np.zeros(1), "jacobian")]
    local = labelled(sample_of(table, [0]), X[:, :1], made)
    assert form in local.attrs["table"]
    assert (local.attrs["table"] == form) == (form != "polars")
