"""Feature effects with uncertainty: what a model's output does as one feature moves.

Functions on data, labelled results::

    local = rs.local_effects(model, X)
    effect = rs.rhale(local)
    print(rs.summary(effect))
    rs.plot_effect(effect, "age", local)
"""

from rhale_stats._version import __version__
from rhale_stats.bins import EqualWidthBins, GivenBins, OptimalBins, QuantileBins
from rhale_stats.effects import local_effects, predict, rhale
from rhale_stats.inference import std_error
from rhale_stats.models import ModelError

__all__ = [
    "EqualWidthBins",
    "GivenBins",
    "ModelError",
    "OptimalBins",
    "QuantileBins",
    "__version__",
    "local_effects",
    "predict",
    "rhale",
    "std_error",
]
