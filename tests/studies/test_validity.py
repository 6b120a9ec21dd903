"""The processes of the study of validity have the truths that it says."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from studies import Options, load
from studies.validity_claims import BLOCKS, covered, held
from studies.validity_processes import (
    HEAVY,
    N_DRAWN,
    NOISES,
    Process,
    drawn_processes,
    unequal_groups,
)
from studies.validity_rows import OWN_BLOCKS
from studies.validity_table import Rate, markdown
from studies.validity_words import CLAIMS, KEYS


def test_targets_in_closed_form():
    """sin 2z + z/2 and spread .3 + .7 |z|, z uniform on (-1, 1)."""
    edges = np.array([-1.0, 0.0, 0.5, 1.0])
    truth = Process().truth(edges)

    def integral(z):
        return -np.cos(2 * z) / 2 + z**2 / 4

    assert_allclose(truth.effect, np.diff(integral(edges)) / np.diff(edges), atol=1e-6)
    mean = -np.sin(2) / 4 + 1 / 12
    assert_allclose(truth.curve, integral(edges) - mean, atol=1e-6)
    assert truth.average == pytest.approx(0, abs=1e-9)
    # On (-1, 0): E (.3 + .7 z)^2, and the variance of sin 2z - z/2 by a fine sum.
    z = (np.arange(10**5) + 0.5) / 10**5
    squares = np.mean((0.3 + 0.7 * z) ** 2) + np.var(np.sin(2 * z) + z / 2)
    assert truth.heterogeneity[0] ** 2 == pytest.approx(squares, rel=1e-4)


@pytest.mark.parametrize("name", NOISES)
def test_noise_is_standardised(name):
    shape = {"normal": 0.0, "log-normal": 0.5, "two-point": 0.3, "t": 12.0, "gamma": 2.0}[name]
    drawn = Process(noise=name, shape=shape).noises(np.random.default_rng(0), (400_000, 1))
    # Five standard errors of a mean, and of a mean square of kurtosis 9 at most.
    assert drawn.mean() == pytest.approx(0, abs=5 / 400_000**0.5)
    assert drawn.var() == pytest.approx(1, abs=5 * (8 / 400_000) ** 0.5)


def test_weights_undo_the_sampling():
    process = Process(weighted=1, n=20_000)
    sample = process.draw(np.random.default_rng(0), 2)
    assert set(sample.weight) == {1.0, HEAVY}
    squares = np.average(sample.noise**2, axis=0, weights=sample.weight)
    assert_allclose(squares, 1, atol=0.05)
    assert (np.mean(sample.noise**2, axis=0) < 0.7).all()


def test_unequal_groups():
    groups = unequal_groups(1000, 40)
    sizes = np.bincount(groups)
    assert len(groups) == 1000
    assert len(sizes) == 40
    assert 7 < sizes.max() / sizes.min() <= 10
    assert np.bincount(unequal_groups(40, 40)).tolist() == [1] * 40


def test_local_effects_are_derivatives_of_the_model():
    process = Process()
    table = np.column_stack([[-0.7, 0.2, 0.9], [1.0, -2.0, 0.5]])
    step = np.array([1e-3, 0.0])
    slope = (process.model(table + step) - process.model(table - step)) / 2e-3
    z, noise = table.T
    assert_allclose(slope, process.mu(z) + process.sigma(z) * noise, atol=2e-3)


def test_drawn_processes_are_always_the_same():
    assert len(drawn_processes()) == N_DRAWN
    assert drawn_processes() == drawn_processes()


def test_all_cases_that_failed_are_there():
    """Cases 1 to 11, by name."""
    study = load("validity")
    numbers = {str(one.parameters["case_number"]) for one in study.scenarios} - {""}
    assert numbers == {str(number) for number in range(1, 12)}
    blocks = {str(one.parameters["block"]) for one in study.scenarios}
    assert blocks == {*BLOCKS, *OWN_BLOCKS}


@pytest.mark.slow
def test_all_claims_are_asked():
    options = Options(quick=True)
    study = load("validity", options)
    found = set()
    for scenario in study.scenarios:
        value = study.replicate(dict(scenario.parameters), np.random.default_rng(0), 2)["value"]
        found |= {KEYS[k] for k in np.flatnonzero(np.isfinite(value))}
    # Claims of results that not every version has.
    assert {*KEYS} - {"spread", "importance", "importance_p_value"} <= found


def test_coverage_counts_missing_intervals_as_misses():
    bounds = np.array([[[0.0, 1.0], [np.nan, np.nan], [0.0, 1.0]]])
    truth = np.array([0.5, 0.5, np.nan])
    assert covered(bounds, truth).tolist() == [0.5]
    assert held(bounds, truth).tolist() == [0.0]


def test_rates_in_words():
    test = next(name for name, words in CLAIMS.items() if words.is_test)
    assert Rate(9.0, 0.5).text(test) == "**9.0 ± 0.5**"
    assert Rate(8.0, 0.5).text(test) == "8.0 ± 0.5"
    assert Rate(1.0, 0.1).text(test) == "1.0 ± 0.1"
    assert Rate(90.0, 0.5).text("effect") == "**90.0 ± 0.5**"
    assert Rate(np.nan, np.nan).text("effect") == ""
    table = markdown(pd.DataFrame({"a": ["x"], "b": ["y"]}))
    assert table == "| a | b |\n| --- | --- |\n| x | y |"
