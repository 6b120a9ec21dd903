"""Errors of H-statistics with the parameters of a fitted model."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from numpy.testing import assert_allclose

import rhale_stats as rs
from rhale_stats.h_statistics import inference
from tests.helpers import as_of_a_file

N = 100
RNG = np.random.default_rng(9)
DATA = pd.DataFrame({"a": RNG.normal(size=N), "b": RNG.normal(size=N), "c": RNG.normal(size=N)})
DATA["y"] = DATA.a + DATA.b + 0.7 * DATA.a * DATA.b + RNG.normal(size=N)
X = DATA[["a", "b", "c"]]
FIT = smf.ols("y ~ a * b + c", DATA).fit()
NAMES = ("h2", "h", "h2_overall", "h_overall", "h2_pairwise", "h_pairwise")


def statistics(model, **options):
    return rs.h_statistic(model, X, n_rows=40, rng=0, progress=False, **options)


def moved(fit, direction):
    inner, out = copy.copy(fit._results), copy.copy(fit)
    inner.params = np.asarray(fit.params) + direction
    object.__setattr__(out, "_results", inner)
    return lambda rows: out.predict(rows)


@pytest.mark.thorough
def test_errors_of_parameters_are_derivatives_by_brute_force():
    start = statistics(FIT)
    found = rs.std_error(start, model=FIT, X=X, uncertainty="parameters")
    values, vectors = np.linalg.eigh(FIT.cov_params())
    squares = dict.fromkeys(NAMES, 0.0)
    for value, vector in zip(values, vectors.T, strict=True):
        step = 1e-3 * np.sqrt(value) * vector
        upper, lower = (statistics(moved(FIT, s * step)) for s in (1, -1))
        for name in NAMES:
            squares[name] += ((upper[name] - lower[name]).values / 2e-3) ** 2
    for name in NAMES:
        assert_allclose(found[f"{name}_se"], np.sqrt(squares[name]), rtol=1e-5, atol=1e-9)
        assert found[f"{name}_se"].attrs["source"] == "parameters"


def test_the_size_of_a_product_has_the_error_of_its_coefficient():
    model = rs.Parametric(lambda b, rows: rows["a"] + b[0] * rows["a"] * rows["b"], [2.0], [[0.09]])
    start = statistics(model)
    found = rs.std_error(start, model=model, X=X, uncertainty="parameters")
    # The interaction is proportional to the coefficient.
    assert_allclose(found["h_se"], 0.15 * start["h"], rtol=1e-6)
    none = found["h_overall_se"].sel(feature="c")
    assert float(none) == 0


def test_parts_and_what_follows():
    start = statistics(FIT)
    found = rs.std_error(start, model=FIT, X=X)
    for name in NAMES:
        assert_allclose(found[f"{name}_se_rows"], start[f"{name}_se"], rtol=1e-9)
        there = (start[name] > 0).values
        assert (found[f"{name}_se"].values[there] > start[f"{name}_se"].values[there]).all()
    assert found.attrs["parameters"] == "influences of every row on estimates and parameters added"
    done = rs.confint(found)
    assert done["h2_ci"].attrs["source"] == "rows and parameters"
    assert "rows and parameters" in rs.summary(done).as_text()
    groups = np.arange(N) // 2
    grouped = rs.std_error(start, model=FIT, X=X, groups=groups)
    assert_allclose(grouped["h_se_rows"], rs.std_error(start, groups=groups)["h_se"])
    assert grouped["h_se"].attrs["source"].endswith("groups and parameters")
    again = rs.std_error(found)
    for name in NAMES:
        assert_allclose(again[f"{name}_se"], start[f"{name}_se"])
        assert f"{name}_se_model" not in again
    # Another model than statsmodels' has no influences: variances are added.
    own = rs.Parametric(
        lambda b, rows: moved(FIT, b - np.asarray(FIT.params))(rows), FIT.params, FIT.cov_params()
    )
    added = rs.std_error(start, model=own, X=X)
    assert_allclose(added["h_se"] ** 2, added["h_se_rows"] ** 2 + added["h_se_model"] ** 2)


def test_what_does_not_belong_together_is_refused():
    with pytest.raises(ValueError, match="model must be None for H-statistics of kind 'ale'"):
        rs.std_error(rs.h_statistic(FIT, X, kind="ale", bins=rs.QuantileBins(3)), model=FIT, X=X)
    with pytest.raises(ValueError, match="X must be the table that h_statistic was given; got 50"):
        rs.std_error(statistics(FIT), model=FIT, X=X[:50])
    other = smf.ols("y ~ a", DATA).fit()
    with pytest.raises(ValueError, match="model and X must be those that the result was made from"):
        rs.std_error(statistics(FIT), model=other, X=X)


def test_directions_in_blocks_and_statistics_that_are_left(monkeypatch):
    """Two of the five parameters at a time in 40 rows, or one; only some pairs, or none."""
    start = statistics(FIT, n_pairs=1)
    whole = rs.std_error(start, model=FIT, X=X)
    named = statistics(FIT, pairs=[rs.tidy(start)["term"].iloc[-1].split(":")])
    assert_allclose(rs.std_error(named, model=FIT, X=X)["h_pairwise_se"], whole["h_pairwise_se"])
    made, ask = [], inference.h_statistic

    def counting(model, *args, **options):
        found = ask(model, *args, **options)
        made.append(found.sizes.get("output", 1))
        return found

    monkeypatch.setattr(inference, "h_statistic", counting)
    for room, blocks in ((3 * 40**2 - 1, [4, 4, 2]), (1, [2] * 5)):
        monkeypatch.setattr(inference, "BATCH_ANSWERS", room)
        made.clear()
        found = rs.std_error(start, model=FIT, X=X)
        assert made == [1, *blocks]
        for name in NAMES:
            assert_allclose(found[f"{name}_se"], whole[f"{name}_se"], rtol=1e-6, atol=1e-12)
    fewer = as_of_a_file(start).drop_vars([name for name in start if "pairwise" in str(name)])
    found = rs.std_error(fewer, model=FIT, X=X)
    assert_allclose(found["h_overall_se"], whole["h_overall_se"], rtol=1e-9)
