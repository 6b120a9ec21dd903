"""Which moments and which facts effects are labelled with."""

import numpy as np
import pytest

import rhale_stats as rs
from rhale_stats.effects.labelled import LINE_MOMENTS, SQUARE_MOMENTS

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
    """Of lines products of x and residuals; of squared precision weights those of squares."""
    found = effect(lines, weighted)
    assert ("squares" in found) == weighted == ("square_moment" in found.coords)
    if weighted:
        assert found["square_moment"].values.tolist() == list(SQUARE_MOMENTS)
    assert ("line_moments" in found) == ("line_moment" in found.coords)
    if lines:
        assert found["line_moment"].values.tolist() == list(LINE_MOMENTS)
    divisor = found["heterogeneity"].attrs["ddof"]
    assert (divisor == "1; 2 where slope is not 0") == lines


def test_effects_say_what_they_are_the_mean_of():
    along = effect(False, False, "axis")["effect"].attrs["estimator"]
    assert along == "average of the local effects along the bin, math [12]"
    assert effect(False, False)["effect"].attrs["estimator"] != along
