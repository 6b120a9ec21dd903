"""Every study runs, quickly, and says what it must; their full tables are in the docs."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import studies
from rhale_stats.bins.rules import EqualWidthBins, QuantileBins
from rhale_stats.effects.rhale import rhale
from rhale_stats.generics.values import predict
from rhale_stats.simulate import TwoRegimes
from studies import Options, california, correlated, pdp_ice, regional_timing, report
from studies.bin_splitting import example, sample
from studies.density import expected_bias
from studies.tools import local_of
from tests.helpers import in_turn

DOCS = Path(__file__).parents[2] / "docs" / "studies"
ALL = (
    "uncertainty",
    "trust",
    "best-k",
    "variable-size",
    "example-1",
    "running-example",
    "bin-splitting",
    "california",
    "unbiasedness",
    "density",
    "bins",
    "penalty",
    "coverage",
    "weighting",
    "regions",
    "regional-timing",
    "correlated",
    "pdp-ice",
    "models",
    "validity",
    "spread",
    "model-uncertainty",
    "model-tables",
)


# A quick run of each takes seconds.
LONG = (
    "penalty",
    "coverage",
    "models",
    "bins",
    "regional-timing",
    "california",
    "weighting",
    "validity",
    "spread",
    "unbiasedness",
    "regions",
    "model-uncertainty",
    "model-tables",
)


@pytest.fixture(scope="module")
def blocks(tmp_path_factory):
    """A file of blocks with the columns of the real one, and some of its troubles."""
    rng = np.random.default_rng(0)
    n = 1500
    households = rng.gamma(3, 150, n)
    income = rng.gamma(4, 1, n)
    table = pd.DataFrame(
        {
            "longitude": rng.uniform(-124, -114, n),
            "latitude": rng.uniform(32, 42, n),
            "housing_median_age": rng.integers(1, 53, n).astype(float),
            "total_rooms": households * rng.uniform(4, 6, n),
            "total_bedrooms": households * rng.uniform(0.9, 1.3, n),
            "population": households * rng.uniform(2, 4, n),
            "households": households,
            "median_income": income,
            "ocean_proximity": "INLAND",
        }
    )
    table["median_house_value"] = 4e4 * income - 8e3 * (table["latitude"] - 37) + 1e5
    table.loc[:20, "total_bedrooms"] = np.nan
    path = tmp_path_factory.mktemp("data") / "blocks.csv"
    table.to_csv(path, index=False)
    return path


def test_every_study_is_there():
    assert set(ALL) <= set(studies.names())


@pytest.mark.parametrize(
    ("name", "settings"),
    [pytest.param(name, None, marks=pytest.mark.slow if name in LONG else ()) for name in ALL]
    + [("bin-splitting", "code")],
)
@pytest.mark.slow
def test_quick(name, settings, blocks):
    data = blocks if name == "california" else None
    options = Options(quick=True, settings=settings, data=data)
    study = studies.load(name, options)
    n_replicates = min(study.n_replicates, 2)  # as few as have a standard deviation
    results = studies.run(name, options, n_replicates=n_replicates, jobs=1, progress=False)
    assert (results["done"] == 1).all()
    assert (results["failure"] == "").all(), set(results["failure"].values.ravel())
    text = report.render(study, results)
    short = report.render(study, results, short=True)
    assert study.page is not None or len(short) <= len(text) + len(report.PRINTED) + 2
    assert study.claim in text
    assert not re.search("[ \t]$", text, flags=re.MULTILINE)
    assert study.findings(results)
    assert study.figure(results).axes
    for name, output in results[list(study.outputs)].items():
        assert not np.isinf(output).any(), name
        assert output.notnull().any("replicate").any(), name
    for _, table in study.tables(results):
        assert len(table)
        assert not np.isinf(table.select_dtypes("number")).any(axis=None)
    assert "nan" not in " ".join(study.findings(results)).split()
    assert "--quick" in text
    if study.name == "regional-timing":
        n = results["n_rows"].isel(scenario=0, replicate=0)
        per_row = (results["model_rows"].isel(scenario=0, replicate=0) / n).transpose("kind", ...)
        # Whether the answers stay the same is looked at on some rows, two and a half times.
        more = per_row.values.T - [1, 2, 30]
        assert ((more == 0) | ((more > 0) & (more <= 2.5))).all()
        assert (results["n_nodes"] > 1).all()  # there is something to search


@pytest.mark.parametrize("name", ALL)
def test_documented_with_the_command_that_made_it(name):
    pages = sorted([*DOCS.glob(f"{name}*.md"), *DOCS.parent.glob(f"{name}*.md")])
    assert pages, f"docs has no page of {name}"
    for page in pages:
        text = page.read_text()
        assert f"python vignettes/studies {name}" in text
        assert "--quick" not in text
        picture = re.search(r"!\[.*\]\((.+\.png)\)", text)
        assert picture is not None
        assert (page.parent / picture[1]).is_file()
        assert "Failed runs: 0 of" in text


@pytest.mark.parametrize("name", [name for name in ALL if name != "bin-splitting"])
def test_settings_of_a_study_without_variants(name):
    with pytest.raises(ValueError, match="got 'code'"):
        studies.load(name, Options(settings="code"))


def test_unknown_settings():
    with pytest.raises(ValueError, match="'code', 'text'; got 'paper'"):
        studies.load("bin-splitting", Options(settings="paper"))


@pytest.mark.parametrize("name", [name for name in ALL if name != "california"])
def test_data_of_a_study_that_reads_none(name):
    with pytest.raises(ValueError, match=r"got blocks\.csv"):
        studies.load(name, Options(data=Path("blocks.csv")))


class TestCalifornia:
    def test_cleaning(self, blocks):
        table, dollars = california.cleaned(california.read(blocks))
        raw = pd.read_csv(blocks)[[*california.FEATURES, california.OUTCOME]].dropna()
        z = (raw - raw.mean()) / raw.std()
        kept = raw[(z.abs() <= 3).all(axis=1)]
        assert len(table) == len(kept) < len(raw)
        assert_allclose(table.mean(), 0, atol=1e-12)
        assert_allclose(table.std(), 1)
        assert dollars == pytest.approx(kept[california.OUTCOME].std())

    def test_missing_column(self, blocks, tmp_path):
        pd.read_csv(blocks).drop(columns="latitude").to_csv(tmp_path / "few.csv", index=False)
        with pytest.raises(ValueError, match=r"few\.csv has no latitude"):
            california.read(tmp_path / "few.csv")

    def test_copy_of_scikit_learn_gives_the_totals(self, blocks, monkeypatch):
        datasets = pytest.importorskip("sklearn.datasets")
        ours = pd.read_csv(blocks).dropna()
        frame = pd.DataFrame(
            {
                "MedInc": ours["median_income"],
                "HouseAge": ours["housing_median_age"],
                "AveRooms": ours["total_rooms"] / ours["households"],
                "AveBedrms": ours["total_bedrooms"] / ours["households"],
                "Population": ours["population"],
                "AveOccup": ours["population"] / ours["households"],
                "Latitude": ours["latitude"],
                "Longitude": ours["longitude"],
                "MedHouseVal": ours["median_house_value"] / 1e5,
            }
        )

        class Fetched:
            pass

        fetched = Fetched()
        fetched.frame = frame
        monkeypatch.setattr(datasets, "fetch_california_housing", lambda as_frame: fetched)
        columns = [*california.FEATURES, california.OUTCOME]
        assert_allclose(california.read(None)[columns], ours[columns])

    def test_neither_library(self, monkeypatch):
        monkeypatch.setattr(california, "find_spec", lambda name: None)
        with pytest.raises(ValueError, match="pip install scikit-learn"):
            california.fit(np.zeros((2, 8)), np.zeros(2))
        monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
        with pytest.raises(ValueError, match="pass --data FILE"):
            california.fetched()

    @pytest.mark.parametrize("library", ["torch", "sklearn"])
    @pytest.mark.slow
    def test_derivatives_of_the_network(self, library, rng, monkeypatch):
        pytest.importorskip(library)
        monkeypatch.setattr(california, "LAYERS", (16, 8, 4))
        x = rng.normal(size=(600, 8))
        y = np.sin(x[:, 0]) + x[:, 1] * x[:, 2]
        network = getattr(california, f"_fit_{library}")(x, y)
        assert np.corrcoef(network.predict(x), y)[0, 1] > 0.5  # it has learned something
        jacobian = network.jacobian(x)
        # Linear between kinks: a difference is exact, unless a kink lies within 1e-6.
        step = 1e-6 * np.eye(8)
        for column in range(8):
            slope = (network.predict(x + step[column]) - network.predict(x - step[column])) / 2e-6
            close = np.abs(slope - jacobian[:, column]) < 1e-5
            assert close.mean() > 0.99

    def test_pytorch_differentiates_alike(self, rng):
        torch = pytest.importorskip("torch")
        x = rng.normal(size=(50, 8))
        state = torch.get_rng_state()
        network = california._fit_torch(x, x[:, 0])
        assert torch.equal(state, torch.get_rng_state())  # the user's random state is untouched
        at = torch.tensor(x, requires_grad=True)
        layer = at
        last = len(network.weights) - 1
        for number, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
            layer = layer @ torch.tensor(weight) + torch.tensor(bias)
            layer = layer.relu() if number < last else layer
        layer.sum().backward()
        assert_allclose(network.jacobian(x), at.grad.numpy(), rtol=1e-10, atol=1e-12)


class TestRegionalTiming:
    def test_pytorch_runs_the_same_network(self, rng, monkeypatch):
        pytest.importorskip("torch")
        theirs = regional_timing.Timed(5, 4, np.random.default_rng(0))
        monkeypatch.setattr(regional_timing, "find_spec", lambda name: None)
        ours = regional_timing.Timed(5, 4, np.random.default_rng(0))
        assert (theirs.is_torch, ours.is_torch) == (True, False)
        x = rng.uniform(-1, 1, (regional_timing.BATCH + 100, 4))
        # Single precision; derivatives differ by more where a unit is about to switch.
        assert_allclose(theirs(x), ours(x), atol=1e-4 * np.abs(ours(x)).max())
        close = np.isclose(theirs.jacobian(x), ours.jacobian(x), rtol=1e-3, atol=1e-3)
        assert close.mean() > 0.99
        assert (theirs.calls, theirs.rows) == (2, 2 * len(x))
        assert theirs.seconds > 0

    @pytest.mark.parametrize("layers", [3, 20])
    def test_networks_answer_to_their_inputs(self, rng, layers, monkeypatch):
        monkeypatch.setattr(regional_timing, "find_spec", lambda name: None)
        network = regional_timing.Timed(layers, 10, np.random.default_rng(0))
        x = rng.uniform(-1, 1, (500, 10))
        assert 0.1 < network(x).std() < 10
        assert 0.1 < network.jacobian(x).std() < 10


@pytest.mark.parametrize("together", [False, True])
def test_truth_of_correlated_features(together):
    example = TwoRegimes(correlated=together)
    effect = rhale(local_of(example, example.sample(2000, rng=0)), bins=EqualWidthBins(50))
    truth = example.truth(effect).sel(feature="x1")
    curve = np.interp(correlated.GRID, truth["edge_value"], truth["curve"])
    # Bins of 0.04: one of them holds the kink.
    assert_allclose(curve - curve.mean(), correlated.truth(together), atol=0.06)


@pytest.mark.parametrize(("alpha", "feature"), in_turn([0.0, 1.0, -1.0], pdp_ice.FEATURES))
def test_truth_beside_pdp_and_ice(alpha, feature):
    example = pdp_ice.example_of(alpha)
    local = local_of(example, example.sample(200_000, np.random.default_rng(0)), feature)
    effect = rhale(local, bins=QuantileBins(400))
    grid = pdp_ice.grid_of(alpha, feature)
    curve, spread = pdp_ice.truth(alpha, feature)
    found = predict(effect, grid, feature).values
    assert_allclose(found - found.mean(), curve, atol=0.01)
    # Where slopes break, bins hold both.
    estimate = pdp_ice.spread_at(effect, feature, grid)
    assert np.median(np.abs(estimate - spread)) < 0.02


def test_rows_at_both_ends_in_the_settings_of_the_code():

    X = sample(example("non-linear", "code"), "code", np.random.default_rng(0))
    assert len(X) == 502
    assert (X["x1"].min(), X["x1"].max()) == (0, 1)
    assert abs((X["x2"] - X["x1"]).std() - 0.4) < 0.05  # 0.4 / sqrt(1000) is 0.013
    assert len(sample(example("non-linear", "text"), "text", np.random.default_rng(0))) == 500


def test_expected_bias_of_crowding():
    rng = np.random.default_rng(0)
    z = rng.beta(1, 2, 1_000_000)
    k = np.minimum((z * 5).astype(int), 4)
    mean = np.bincount(k, 2 * z) / np.bincount(k)
    # A bin of 40,000 rows at least has a standard error below 2 * 0.06 / 200.
    assert_allclose(expected_bias(1, 2), mean - (2 * np.arange(5) + 1) / 5, atol=2.5e-3)
    assert_allclose(expected_bias(1, 1), 0, atol=1e-12)
