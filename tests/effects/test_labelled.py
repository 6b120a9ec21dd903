"""Which moments and which facts effects are labelled with."""

import numpy as np
import pytest

import rhale_stats as rs
from rhale_stats.arrays.cell_moments import FIELDS
from rhale_stats.effects.labelled import SQUARE_MOMENTS
from rhale_stats.schema.feature_result import each_feature

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (200, 1))
G = 4 * X + RNG.normal(size=X.shape)


def effect(lines, weighted, weighting="rows"):
    options = {}
    if weighted:
        options = {"weights": 1 + RNG.uniform(size=200), "weight_kind": "precision"}
    rule = rs.AdaptiveBins(20) if lines else rs.EqualWidthBins(3)
    local = rs.local_effects(None, X, jacobian=G, **options)
    return rs.rhale(local, bins=rule, weighting=weighting)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("lines", [False, True])
def test_moments_have_their_names(lines, weighted):
    """Products of the rows of cells; of squared precision weights those of squares."""
    found = effect(lines, weighted)
    assert ("squares" in found) == weighted == ("square_moment" in found.coords)
    if weighted:
        assert found["square_moment"].values.tolist() == list(SQUARE_MOMENTS)
    assert found["moment"].values.tolist() == list(FIELDS)
    divisor = found["heterogeneity"].attrs["ddof"]
    assert (divisor == "1; 2 where slope is not 0") == lines


def test_effects_say_what_they_are_the_mean_of():
    along = effect(False, False, "axis")["effect"].attrs["estimator"]
    assert along == "average of the local effects along the bin, math [12]"
    assert effect(False, False)["effect"].attrs["estimator"] != along


def test_attributes_and_coordinates():
    """All facts that a result keeps, and the ends of the bins of every feature."""
    table = np.column_stack([X[:, 0], np.ones(200), X[:, 0] / 2])
    local = rs.local_effects(None, table, jacobian=table, features=[0, 1, 2])
    bins = rs.GivenBins({"x0": [-1, 0, 1], "x1": [0, 2], "x2": [-1, 0, 0.25, 1]})
    found = rs.rhale(local, bins=bins, weighting="rows", centering="start")
    facts = {name: value for name, value in found.attrs.items() if name != "row_fingerprint"}
    assert facts == {
        "method": "rhale",
        "bin_rule": "GivenBins",
        "bin_parameters": found.attrs["bin_parameters"],
        "closed": "left; the last bin on both sides",
        "centering": "start",
        "weight_kind": "none",
        "output_name": "output",
        "output_units": "",
        **{name: facts[name] for name in facts if name in local.attrs},
        "n_rows": 200,
        "software": f"rhale_stats {rs.__version__}",
        "weighting": "rows",
        "local_effect_method": "jacobian",
    }
    nan = np.nan
    edges = [[-1, 0, 1, nan], [nan] * 4, [-1, 0, 0.25, 1]]
    np.testing.assert_array_equal(found["edge_value"], edges)
    left, right = [[-1, 0, nan], [nan] * 3, [-1, 0, 0.25]], [[0, 1, nan], [nan] * 3, [0, 0.25, 1]]
    np.testing.assert_array_equal(found["bin_left"], left)
    np.testing.assert_array_equal(found["bin_right"], right)
    assert found["n_bins"].values.tolist() == [2, 0, 3]
    assert found["feature_kind"].values.tolist() == ["continuous", "constant", "continuous"]
    assert found["bin"].values.tolist() == [0, 1, 2]
    assert found["edge"].values.tolist() == [0, 1, 2, 3]
    assert found["bin_left"].attrs["long_name"] == "left edge of the bin"
    assert found["bin_right"].attrs["long_name"] == "right edge of the bin"
    assert found["n_obs"].values[0].tolist()[2] == 0


def test_features_that_are_all_constant_have_one_empty_bin():
    table = np.ones((5, 2))
    found = rs.rhale(rs.local_effects(None, table, jacobian=table, features=[0, 1]))
    assert found.sizes["bin"] == 1
    assert found["n_bins"].values.tolist() == [0, 0]
    assert [len(row.spread_starts) for row in each_feature(found)] == [0, 0]
    assert np.isnan(found["effect"]).all()
