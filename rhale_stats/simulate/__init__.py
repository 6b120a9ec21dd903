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
from rhale_stats.simulate.simulator import Marginal, Simulator, dense_truth
from rhale_stats.simulate.studies import study

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
