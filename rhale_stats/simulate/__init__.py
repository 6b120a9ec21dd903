"""Models whose effects are known exactly: the examples of the papers, with parameters to choose."""

from rhale_stats.simulate.examples import (
    OppositeGroups,
    PiecewiseLinear,
    Product,
    Quadratic,
    Ridge,
    RunningExample,
    Toy,
    TwoRegimes,
)
from rhale_stats.simulate.scores import mae, mcse
from rhale_stats.simulate.simulator import Simulator
from rhale_stats.simulate.studies import study
from rhale_stats.simulate.truth import Marginal, dense_truth

__all__ = [
    "Marginal",
    "OppositeGroups",
    "PiecewiseLinear",
    "Product",
    "Quadratic",
    "Ridge",
    "RunningExample",
    "Simulator",
    "Toy",
    "TwoRegimes",
    "dense_truth",
    "mae",
    "mcse",
    "study",
]
