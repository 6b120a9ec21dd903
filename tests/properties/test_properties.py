"""What holds for every function: units, signs, shifts, order and repetition of rows, files."""

from __future__ import annotations

import re
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_limits

import rhale_stats as rs
from tests.helpers import assert_a_file_holds
from tests.properties.registry import (
    APART,
    CALLS,
    CHUNKED,
    MIRRORED,
    N_ROWS,
    NOT_BY_NAME,
    Given,
    model,
    rounded,
    table,
)

NAMES = sorted(CALLS)


def called(name, given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = CALLS[name][0](given)
    if isinstance(result, pd.DataFrame):
        return xr.Dataset({key: ("row", result[key].to_numpy()) for key in result.columns})
    return (
        result.to_dataset(name=result.name or "value")
        if isinstance(result, xr.DataArray)
        else result
    )


@cache
def plain_inputs():
    """The plain table and its model, with the results that calls start from: made once."""
    return Given(model, table())


@pytest.fixture(scope="module")
def plain():
    return plain_inputs()


@pytest.fixture(scope="module")
def of_plain(plain):
    """Result of a function for the plain table, computed once: no test changes it."""
    return cache(lambda name: called(name, plain))


def numbers(result):
    """Variables and coordinates of numbers, by name."""
    every = {**result.coords, **result.data_vars}
    return {str(name): one for name, one in every.items() if one.dtype.kind in "fiu" and one.size}


def test_every_function_is_called_or_apart():
    assert not set(CALLS) & set(APART)
    assert set(CALLS) | set(APART) == {*rs.__all__, "simulate.mae"}


@cache
def inputs_again():
    """The same inputs as the plain ones, made anew."""
    return Given(model, table())


@pytest.mark.parametrize("name", NAMES)
def test_inputs_are_not_changed_and_numbers_do_not_depend_on_the_run(name, of_plain):
    inputs = inputs_again()
    table_before = inputs.X.copy(deep=True)
    datasets_before = {
        key: value.copy(deep=True)
        for key, value in vars(inputs).items()
        if isinstance(value, xr.Dataset)
    }
    again = numbers(called(name, inputs))
    pd.testing.assert_frame_equal(inputs.X, table_before)
    for key, value in datasets_before.items():
        xr.testing.assert_identical(getattr(inputs, key), value)
    for key, value in numbers(of_plain(name)).items():
        assert_allclose(again[key], value, rtol=1e-12, err_msg=key)


@cache
def in_other_units(output=1.0, feature=1.0, shift=0.0):
    """The same model, its features and its output in other units."""
    plain = plain_inputs()

    def other(X):
        return plain.model(X / feature) * output + shift

    return Given(other, plain.X * feature, plain.weights)


def factor(units, output, feature):
    """By how much a number grows that is said to have such units; None if they are not plain."""
    if units in (None, "", "1", "rows", "bins"):
        return 1.0
    text = units.replace("output units", "o").replace("feature units", "f")
    text = text.replace("feature unit", "f").replace(" per ", "/").replace("^", "**")
    if re.fullmatch(r"[of/*()\d]+", text) is None:
        return None
    return float(eval(text, {"o": output, "f": feature}))


# How far numbers are from exact ones: what rounding makes, never twice the same.
ROUNDING = {
    *("local_effect_bias", "numerical_error"),
    *("local_effect_error", "second_difference_error", "h_error", "output_error", "curve_mean"),
}


def changed_otherwise(was, now, output=1.0, feature=1.0, but=frozenset(), share=1e-6):
    """Variables that did not change as their units say, up to a share of them."""
    wrong = {}
    for key, value in numbers(was).items():
        if key in ROUNDING or key in but:
            continue
        by = factor(value.attrs.get("units"), output, feature)
        if by is None:
            continue
        expected, found = (np.asarray(one, dtype=np.float64) for one in (value * by, now[key]))
        if "p_value" in str(key):  # in the tail by its logarithm, as z is known
            expected, found = (np.log(np.maximum(one, 1e-300)) for one in (expected, found))
        finite = abs(expected[np.isfinite(expected)])
        size = finite.max() if len(finite) else 0.0
        if "correlation" in str(key):  # of residuals, which are known as derivatives are: to 1e-7
            size = 100.0
        if not np.allclose(found, expected, rtol=share, atol=share * size / 100, equal_nan=True):
            wrong[key] = (
                f"{value.attrs.get('units')!r}: {value.values.ravel()[:3]} {found.ravel()[:3]}"
            )
    return wrong


LABELLED = [name for name in NAMES if name not in ("augment", "glance", "tidy")]


# What is about the output itself, and not about its changes.
LEVELS = {
    "ice": {"curve", "ice"},
    "m_plot": {"curve_offset", "output_value"},
    "pdp": {"curve_offset"},
    "pool": {"curve_offset"},
    # Degrees of freedom of the mean prediction.
    "averages": {"average_df"},
}


@pytest.mark.parametrize("name", LABELLED)
def test_numbers_have_the_units_that_they_say_and_no_level(name, of_plain):
    """Both units change at once: an error in the power of one is not made up by the other.

    So does a constant added to the output, which changes no effect; levels are seen without it.
    """
    units, levels = {"output": 8.0, "feature": 128.0}, LEVELS.get(name, frozenset())
    result = called(name, in_other_units(**units, shift=4.0))
    assert not changed_otherwise(of_plain(name), result, **units, but=levels)
    if levels:
        result = called(name, in_other_units(**units))
        assert not changed_otherwise(of_plain(name), result, **units)


TABLES = {"smooth": table, "rounded": rounded}
# Neighbouring rows of one value have no order of their own.
OF_NEIGHBOURS = {"check_unbiased", "debias"}


def kind_of_table(name):
    """The rounded one, two columns of which have ties and one has none, where it can be."""
    return "smooth" if name in OF_NEIGHBOURS else "rounded"


@cache
def inputs_of(kind):
    return plain_inputs() if kind == "smooth" else Given(model, TABLES[kind]())


@cache
def in_another_order(kind):
    given = inputs_of(kind)
    return Given(model, given.X.sample(frac=1, random_state=0))


@pytest.mark.parametrize("name", [name for name in NAMES if "order" in CALLS[name][1]])
def test_order_of_the_rows_does_not_matter(name):
    kind = kind_of_table(name)
    was, now = called(name, inputs_of(kind)), called(name, in_another_order(kind))
    if "obs" in was.dims:
        now = now.sel(obs=was["obs"])
    assert not changed_otherwise(was, now)


@cache
def weighted_and_repeated(kind):
    X = TABLES[kind]()
    times = np.random.default_rng(1).integers(0, 4, len(X))
    rows = X.loc[X.index.repeat(times)].reset_index(drop=True)
    return Given(model, X, times), Given(model, rows)


@pytest.mark.parametrize("name", [name for name in NAMES if "weights" in CALLS[name][1]])
def test_weights_are_repeated_rows(name):
    """But for what there is of every row, and where of equal differences the largest is.

    Rows of weight 0 reach further, so that the steps of derivatives differ.
    """
    kind = kind_of_table(name)
    weighted, repeated = (called(name, inputs) for inputs in weighted_and_repeated(kind))
    by_row = {str(key) for key, one in repeated.variables.items() if "obs" in one.dims}
    assert not changed_otherwise(repeated, weighted, but=by_row | {"largest_at"}, share=1e-4)


@cache
def with_weights_of_0(kind):
    X = TABLES[kind]()
    weights = np.random.default_rng(1).gamma(2.0, size=len(X))
    weights[np.random.default_rng(2).random(len(X)) < 0.3] = 0.0
    counts = weights > 0
    some = Given(model, X[counts], weights[counts], "precision")
    return Given(model, X, weights, "precision"), some


# Calls of the weights, but for those of the range of the table, of one bin, and of equal weights.
OF_WEIGHTS = {name for name in NAMES if "weights" in CALLS[name][1]}
OF_WEIGHTS -= {"predict", "equivalence_test", "hypotheses", "merge"}
OF_WEIGHTS |= {"regions", "all_regions", "regional_rhale", "simulate.mae"}


@pytest.mark.parametrize("name", sorted(OF_WEIGHTS))
def test_rows_of_weight_0_are_none(name):
    kind = kind_of_table(name)
    whole, some = (called(name, inputs) for inputs in with_weights_of_0(kind))
    by_row = {str(key) for key, one in some.variables.items() if "obs" in one.dims}
    assert not changed_otherwise(some, whole, but=by_row, share=1e-4)


@pytest.mark.parametrize("name", LABELLED)
def test_a_file_holds_all_of_a_result(name, of_plain, tmp_path):
    assert_a_file_holds(of_plain(name), tmp_path)


BY_NAME = [name for name in LABELLED if name not in NOT_BY_NAME]


@cache
def with_other_columns():
    """Columns in another order; the new name of one comes first in the alphabet, the old last."""
    X = plain_inputs().X[["c", "b", "a"]].rename(columns={"c": "0 new"})
    return Given(lambda X: model(X.rename(columns={"0 new": "c"})), X)


@pytest.mark.parametrize("name", BY_NAME)
def test_results_follow_columns_by_their_names(name, of_plain):
    """In another order, and another name of a column changes names only."""
    was, now = of_plain(name), called(name, with_other_columns())
    for dim in was.dims:
        if dim in was.indexes and was[dim].dtype.kind in "OUT":
            names = ["0 new" if label == "c" else label for label in was[dim].values]
            assert set(names) == set(now[dim].values)
            now = now.sel({dim: names})
    assert not changed_otherwise(was, now, but={"feature_column"})
    if "feature_column" in was.coords:
        assert_allclose(now["feature_column"], 2 - was["feature_column"])


def alongside(values, mirror):
    """What there is of a feature along its bins, edges or grid points, in one direction."""
    along = [axis for axis, dim in enumerate(values.dims) if dim in ("bin", "edge", "grid")]
    assert len(along) <= 1
    every = values.values
    return np.flip(every, along) if mirror and along else every


@pytest.mark.parametrize("name", sorted(MIRRORED))
def test_a_mirrored_feature_has_the_mirrored_result(name, plain):
    mirrored = Given(lambda X: model(-X), -plain.X)
    call, factors = MIRRORED[name]
    was, now = call(plain), call(mirrored)
    for key, by in factors.items():
        expected = alongside(was[key], mirror=True) * by
        assert np.isfinite(expected).any()
        assert_allclose(
            alongside(now[key], mirror=False), expected, rtol=1e-6, atol=1e-8, err_msg=key
        )


@pytest.mark.parametrize("name", sorted(CHUNKED))
def test_a_table_in_chunks_has_the_result_of_one_in_memory(name, plain):
    frame = pytest.importorskip("dask.dataframe", reason="dask is not installed")
    chunks = frame.from_pandas(plain.X, npartitions=3)
    was, now = CHUNKED[name](plain, plain.X), CHUNKED[name](plain, chunks)
    assert set(numbers(was)) == set(numbers(now))
    assert not changed_otherwise(was, now)


CURVE = [-0.294007135674, -0.12149304096, 0.0926681933644, 0.357425334026]
EFFECT_SE = [0.00775683725777, 0.0119074192323, 0.0164203967643]


def even_table():
    """Columns spread evenly by multiples of irrational numbers: no random numbers in them."""
    steps = np.arange(N_ROWS)
    return pd.DataFrame(
        {"a": steps * 0.6180339887498949 % 1, "b": steps * 0.4142135623730951 % 1}
    ).assign(c=lambda X: X["a"] * X["b"])


def test_numbers_are_those_of_other_versions_and_platforms():
    """Stored numbers of this package: a sum in another order changes the last digits only."""
    given = Given(model, even_table())
    effect = rs.rhale(given.local, bins=rs.EqualWidthBins(3), weighting="rows")
    found = rs.std_error(effect).sel(feature="a")
    # Central differences lose about half of the digits.
    assert_allclose(found["curve"], CURVE, rtol=1e-7)
    assert_allclose(found["effect_se"], EFFECT_SE, rtol=1e-7)


def test_replicates_do_not_depend_on_threads(plain):
    """Slow tests of every function that starts processes compare it with `n_jobs=1`."""

    def refitted(n_threads):
        with threadpool_limits(n_threads):
            return rs.bootstrap_refit(plain.fitted, plain.X, n_resamples=4, n_jobs=1, rng=0)

    first, second = numbers(refitted(1)), numbers(refitted(2))
    for key, value in first.items():
        assert_allclose(second[key], value, rtol=1e-12, err_msg=key)
