"""The study of model uncertainty has the truths that it says, and its checks have teeth."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from studies import Options, load
from studies.model_uncertainty import target_of
from studies.model_uncertainty_models import (
    CURVE,
    EDGES,
    EFFECT,
    PLACES,
    PROCESSES,
    SPREAD,
    bent,
    polynomial,
    targets,
    wave_slope,
)
from studies.model_uncertainty_page import formula_table, rates
from studies.model_uncertainty_parts import GRID, PARTS, parts, truth, with_error
from studies.model_uncertainty_ways import WAYS, Sample, hits, of_formula


def test_targets_in_closed_form():
    """For sin(2 x1) + x1 x2: the derivative is 2 cos(2 x1) + x2, with a spread of 1/3 by x2."""
    found = targets(wave_slope)
    assert_allclose(found[EFFECT], np.diff(np.sin(2 * EDGES)) / np.diff(EDGES), rtol=1e-10)
    assert_allclose(found[CURVE], np.sin(2 * EDGES), atol=1e-12)  # odd: its mean is 0
    z = EDGES[0] + (np.arange(10**5) + 0.5) / 10**5 * 0.4
    assert found[SPREAD][0] ** 2 == pytest.approx(np.var(2 * np.cos(2 * z)) + 1 / 3, rel=1e-6)
    # x1 + x1^2 + x1 x2: the curve has the mean of x1^2 taken away.
    curve = targets(PROCESSES["least squares"].slope)[CURVE]
    assert_allclose(curve, EDGES + EDGES**2 - 1 / 3, atol=1e-12)


# That of clusters is the function of least squares, and 100 groups are never large.
@pytest.mark.parametrize("name", [name for name in PROCESSES if name != "clustered"])
def test_slopes_are_what_large_samples_estimate(name):
    """Local effects of the model fitted to 200,000 rows are those of the target."""
    process, rng = PROCESSES[name], np.random.default_rng(0)
    table = process.draw(200_000, rng)
    fitted = process.fit(table)
    at, step = table.head(200), 1e-4
    ends = [fitted.predict(at.assign(x1=at["x1"] + sign * step)) for sign in (1, -1)]
    found = (ends[0] - ends[1]) / (2 * step)
    expected = process.slope(at["x1"].to_numpy(), at["x2"].to_numpy())
    # Four standard errors: of slopes of least squares 0.015, and of a log mean 0.0075.
    assert_allclose(found, expected, atol=0.06, rtol=0.03)


def test_best_approximation_by_a_grid():
    z = (np.arange(400) + 0.5) / 200 - 1
    x1, x2 = (one.ravel() for one in np.meshgrid(z, z))
    columns = np.column_stack([np.ones(x1.size), x1, x2, x1 * x2])
    best = np.linalg.lstsq(columns, bent(x1, x2), rcond=None)[0]
    slope = PROCESSES["misspecified"].slope
    assert_allclose(slope(np.zeros(1), np.array([0.5])), best[1] + best[3] / 2, rtol=1e-4)


def test_parts_of_known_errors():
    """Biases 0.3 and 0.4, variances 1 and 4, all apart: the mean squared error is their sum."""
    rng = np.random.default_rng(0)
    models = truth() + 0.3 + rng.normal(size=(20_000, 1)) * np.ones(len(GRID))
    estimates = models + 0.4 + 2 * rng.normal(size=(20_000, 1))
    found = dict(zip(PARTS, parts(estimates, models), strict=True))
    # Four standard errors: of means 0.02, of variances 0.06 and of the last 0.09.
    assert found["model bias²"] == pytest.approx(0.09, abs=4 * 2 * 0.3 * 0.007)
    assert found["estimation bias²"] == pytest.approx(0.16, abs=4 * 2 * 0.4 * 0.014)
    assert found["model variance"] == pytest.approx(1, abs=0.04)
    assert found["estimation variance"] == pytest.approx(4, abs=0.16)
    assert found["MSE"] == pytest.approx(5 + 0.7**2, abs=0.25)
    assert_allclose(truth().mean(), 0, atol=1e-12)
    assert_allclose(np.diff(truth()), np.diff(polynomial(GRID, np.zeros(1))))


def test_jackknife_of_a_mean():
    values = np.random.default_rng(0).normal(size=(30, 1))
    mean, error = with_error(lambda one: one.mean(axis=0), values)
    assert mean == values.mean()
    assert_allclose(error, values.std(ddof=1) / np.sqrt(30))


def test_intervals_that_miss_are_counted():
    sample = Sample.empty()
    ends = np.column_stack([np.zeros(len(PLACES)), np.ones(len(PLACES))])
    band = np.tile([0.0, 1.0], (len(EDGES), 1))
    sample.put("both", {"estimate": ends[:, 0], "ends": ends, "band": band}, 0.1)
    target = np.full(len(PLACES), 0.5)
    at = WAYS.index("both")
    assert hits(sample, target)["covered"][at].all()
    assert hits(sample, target)["band"][at] == 1
    target[CURVE.start] = 1.5
    assert hits(sample, target)["covered"][at].sum() == len(PLACES) - 1
    assert hits(sample, target)["band"][at] == 0
    assert np.isnan(hits(sample, target)["band"][WAYS.index("rows")])


def test_all_models_are_there():
    study = load("model-uncertainty")
    by_block = {}
    for one in study.scenarios:
        of_block = by_block.setdefault(one.parameters["block"], set())
        of_block.add((one.parameters["model"], one.parameters["n"]))
    assert {n for _, n in by_block["formula"]} == {300, 2000}
    assert len(by_block["formula"]) == 2 * len(PROCESSES)
    assert {name for name, _ in by_block["learner"]} == {
        "boosted trees",
        "random forest",
        "network",
    }
    assert len(load("model-uncertainty", Options(quick=True)).scenarios) == 4


def covered(name, n, n_samples, way):
    """Share of intervals of effects, curve and heterogeneity, by sample."""
    truth, rng = target_of("formula", name), np.random.default_rng(3)
    at = WAYS.index(way)
    return np.array(
        [hits(of_formula(name, n, rng), truth)["covered"][at].mean() for _ in range(n_samples)]
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Poisson, overdispersed", "logit"])
def test_coverage_of_the_true_effect(name):
    """Rows and parameters hold the truth in 93 to 97 % of samples."""
    found = covered(name, 300, 40, "both")
    error = found.std(ddof=1) / np.sqrt(len(found))
    assert 0.93 - 3 * error < found.mean() < 1
    assert error < 0.031


def test_rows_alone_are_too_few():
    """The check of coverage has teeth: without the parameters errors are far too small."""
    assert covered("Poisson, overdispersed", 300, 3, "rows").mean() < 0.8


def test_rates_of_a_page():
    import xarray as xr

    truth = target_of("formula", "logit")
    size = (1, 2, len(WAYS), len(PLACES))
    low, high = np.full(size, np.nan), np.full(size, np.nan)
    at = WAYS.index("both")
    low[0, :, at], high[0, :, at] = truth - 1, truth + 1
    low[0, 0, at] += 0.1  # estimates differ
    low[0, 0, at, EFFECT] = truth[EFFECT] + 0.5  # missed in one of two samples
    band = np.full(size[:3], np.nan)
    band[0, :, at] = 1
    dims = ("scenario", "replicate", "way", "place")
    results = xr.Dataset(
        {
            "low": (dims, low),
            "high": (dims, high),
            "estimate": (dims, (low + high) / 2),
            "band": (dims[:3], band),
            "seconds": (dims[:3], band),
            "block": ("scenario", ["formula"]),
            "model": ("scenario", ["logit"]),
            "n": ("scenario", [300]),
        },
        {"way": list(WAYS), "place": list(PLACES)},
    )
    found = rates(results, target_of).set_index("target")
    assert found["percent"].to_dict() == {
        "effect": 50,
        "curve": 100,
        "heterogeneity": 100,
        "curve band": 100,
    }
    assert found.loc["effect", "error"] == pytest.approx(50)
    (line,) = formula_table(found.reset_index()).to_dict("records")
    assert line["effect"] == "50.0 ± 50.0"
    assert line["error holds"] == "both"
