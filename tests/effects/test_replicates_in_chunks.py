"""Bootstrap of rows in chunks: the replicates of the same weights in memory, whoever computes."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_allclose

import rhale_stats as rs
from rhale_stats.arrays import resample
from rhale_stats.effects import replicates
from rhale_stats.local.rows import columns
from rhale_stats.schema import validation

dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")

N, PARTS, DRAWS = 3000, 4, 60
RNG = np.random.default_rng(3)
X = pd.DataFrame({"a": RNG.normal(size=N), "b": RNG.uniform(-1, 1, N), "flat": np.ones(N)})


@pytest.fixture(autouse=True)
def many_rows(monkeypatch):
    """Rows count as more than are taken into memory."""
    monkeypatch.setattr(validation, "MAX_ROWS", 0)


def model(X):
    return np.asarray(np.sin(2 * X["a"]) * (1 + X["b"]))


def in_chunks(**options):
    return rs.local_effects(model, dd.from_pandas(X, npartitions=PARTS), **options)


def drawn(local, effect, **options):
    asked = {"n_resamples": DRAWS, "scheme": "poisson", "rng": 0, "progress": False}
    return rs.bootstrap(local, effect, **{**asked, **options})


WEIGHTS = RNG.integers(1, 4, N).astype(float)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("bins", "weighting", "weights"),
    [
        (None, "axis", WEIGHTS),
        (None, "rows", None),
        (rs.QuantileBins(5), "axis", None),
        (rs.QuantileBins(5), "rows", WEIGHTS),
        (rs.OptimalBins(), "axis", None),
    ],
)
def test_replicates_are_those_of_the_same_weights_in_memory(bins, weighting, weights):
    given = {} if weights is None else {"weights": weights, "weight_kind": "frequency"}
    local = in_chunks(**given)
    effect = rs.rhale(local, bins=bins, weighting=weighting)
    found = drawn(local, effect)
    seed = int(np.random.default_rng(0).spawn(DRAWS)[0].integers(2**63))
    own, first = [], 0
    for number, n in enumerate(local["x"].chunks[0]):
        rng = np.random.default_rng(np.random.SeedSequence([seed, number]))
        size = None if weights is None else weights[first : first + n]
        units = resample.ResampledUnits(None, [np.arange(n)], size)
        own.append(resample.weights_of("poisson", units, [rng] * DRAWS, n))
        first += n
    memory = rs.local_effects(model, X, **given)
    rows = columns(memory)
    features = replicates._features(rows, memory, effect, studentize=False)
    for position, name in enumerate(("a", "b")):
        expected = replicates._replicates(
            features[position], np.concatenate(own), str(effect.attrs["centering"]), False
        )
        for what in ("effect", "curve", "heterogeneity", "average_effect", "heterogeneity_index"):
            values = found[what].sel(feature=name).stack(all=("chain", "draw"))
            values = values.transpose("all", ...).values.reshape(DRAWS, -1)
            known = expected[what].reshape(DRAWS, -1)
            assert_allclose(values[:, : known.shape[1]], known, rtol=1e-8, atol=1e-10)
    assert found.attrs["n_units"] == (N if weights is None else weights.sum())
    assert found["effect"].sel(feature="flat").isnull().all()


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:Replicates vary")
def test_it_serves_intervals_as_any_other():
    local = in_chunks()
    effect = rs.std_error(rs.rhale(local))
    boot = drawn(local, effect, n_resamples=200)
    by_errors, by_replicates = rs.confint(effect), rs.confint(effect, boot)
    known = by_errors["curve_ci"].notnull() & by_replicates["curve_ci"].notnull()
    assert known.all("ci_bound").sum() == (effect["n_bins"] + (effect["n_bins"] > 0)).sum()
    width = [np.ptp(one["curve_ci"].values, axis=-1) for one in (by_replicates, by_errors)]
    there = known.values.all(axis=-1) & (width[1] > 0)
    # The relative error of a quantile of 200 draws is about 10 %.
    assert np.median(width[0][there] / width[1][there]) == pytest.approx(1, abs=0.15)
    assert rs.effect_sizes(effect, boot)["importance"].notnull().sum() == 2


@pytest.mark.thorough
def test_threads_and_processes_give_the_same():
    import dask

    local = in_chunks()
    effect = rs.rhale(local)
    with dask.config.set(scheduler="synchronous"):
        alone = drawn(local, effect)
    xr.testing.assert_identical(alone, drawn(local, effect))


def test_what_needs_all_rows_is_refused(monkeypatch):
    local = in_chunks()
    effect = rs.rhale(local)
    with pytest.raises(ValueError, match="scheme must be 'poisson'.*in chunks"):
        rs.bootstrap(local, effect, n_resamples=4)
    for name, value in (("groups", np.arange(N)), ("rebin", True), ("studentize", True)):
        with pytest.raises(ValueError, match=f"{name} must be .* where local effects are in"):
            drawn(local, effect, **{name: value})
    other = rs.rhale(rs.local_effects(lambda X: model(X) ** 2, X))
    with pytest.raises(ValueError, match="local must be the Dataset that effect was made from"):
        drawn(local, other)
    monkeypatch.setattr(replicates, "MAX_BYTES", 1000)
    with pytest.raises(ValueError, match="n_resamples must be fewer where local effects"):
        drawn(local, effect)


def test_how_many_replicates_fit(monkeypatch):
    """Nine numbers of 8 bytes a draw and cell; as many draws as fit, and two at least."""
    local = in_chunks()
    effect = rs.rhale(local, bins=rs.GivenBins([-9, 0, 9]), weighting="rows")
    n_bytes = 8 * DRAWS * 2 * 2 * (resample.SUMS + 2)
    monkeypatch.setattr(replicates, "MAX_BYTES", n_bytes)
    drawn(local, effect)
    for most, takes in ((n_bytes - 1, DRAWS - 1), (n_bytes // 2, DRAWS // 2), (1, 2)):
        monkeypatch.setattr(replicates, "MAX_BYTES", most)
        with pytest.raises(ValueError, match=rf"60 replicates of 2 features .* Take {takes}, or"):
            drawn(local, effect)
    with pytest.raises(ValueError, match="effect must be of means"):
        replicates._check_asked(effect.assign_attrs(debiased=1), _asked())
    replicates._check_asked(effect, _asked())


def _asked():
    return SimpleNamespace(
        scheme="poisson", groups=None, strata=None, rebin=False, studentize=False
    )
