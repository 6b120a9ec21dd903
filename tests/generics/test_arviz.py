"""Draws and trees of them as ArviZ takes them, of whichever version is installed."""

import arviz
import numpy as np
import pandas as pd
import pytest

import rhale_stats as rs

# Replicates are independent: diagnostics of chains warn of few draws.
pytestmark = pytest.mark.filterwarnings("ignore")
SINCE_1 = int(arviz.__version__.partition(".")[0]) >= 1


@pytest.fixture(scope="module")
def results():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-1, 1, (150, 2)), columns=list("ab"))

    def model(rows):
        return (rows["a"] + rows["a"] * rows["b"]).to_numpy()

    local = rs.local_effects(model, X)
    effect = rs.rhale(local, bins=3)
    return local, effect, rs.bootstrap(local, effect, n_resamples=100, rng=0)


@pytest.mark.thorough
def test_replicates_as_they_come(results):
    _, _, boot = results
    table = arviz.summary(boot, var_names=["average_effect"], round_to="none")
    means = boot["average_effect"].mean(("chain", "draw"))
    np.testing.assert_allclose(table["mean"].astype(float), means)
    assert arviz.plot_forest(boot, var_names=["effect"]) is not None
    stacked = arviz.extract(boot, var_names=["effect"])
    assert stacked.sizes["sample"] == 100
    assert (arviz.rhat(boot)["average_effect"] < 1.1).all()


def test_trees_have_the_group_of_arviz(results):
    local, effect, boot = results
    tree = rs.to_datatree(local, effect, posterior=boot)
    data = tree if SINCE_1 else arviz.InferenceData.from_datatree(tree)
    assert arviz.extract(data, var_names=["curve"]).sizes["sample"] == 100
    assert len(arviz.summary(data, var_names=["average_effect"])) == 2
    assert arviz.plot_forest(data, var_names=["average_effect"]) is not None
