"""How cost grows with rows, features, bins and resamples: times, fitted exponents, a figure."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from rhale_stats.bins.rules import EqualWidthBins, OptimalBins, QuantileBins
from rhale_stats.effects.ale import ale
from rhale_stats.effects.rhale import rhale
from rhale_stats.generics.uncertainty import bootstrap
from rhale_stats.local.local_effects import local_effects
from rhale_stats.profiles.pdp import pdp
from rhale_stats.regional.regions import regions
from studies.tools import panels
from tests.benchmarks.tasks import Smooth, table
from tests.benchmarks.times import one_processor, seconds, silent

ROWS, COLUMNS, BINS = 10_000, 5, 40
SIZES = {
    "rows": (1_000, 3_000, 10_000, 30_000, 100_000),
    "features": (3, 6, 12, 24, 48),
    "bins": (10, 20, 40, 80, 160, 320),
    "resamples": (100, 300, 1_000, 3_000),
}
# Too small for exponents that one could quote: to see that all of it runs.
QUICK_SIZES = {
    "rows": (300, 1_000, 3_000),
    "features": (3, 6, 12),
    "bins": (10, 20, 40),
    "resamples": (30, 100, 300),
}
RUNS = 2


class Case(NamedTuple):
    """A size; the others are as they are by default."""

    rows: int = ROWS
    features: int = COLUMNS
    bins: int = BINS
    resamples: int = 100


class Growth(NamedTuple):
    """Seconds, or bytes, of one function along one size."""

    axis: str
    name: str
    sizes: NDArray[Any]
    values: NDArray[Any]

    @property
    def exponent(self) -> float:
        """Slope of the last three points in logarithms: what is fixed matters least there."""
        return float(np.polyfit(np.log(self.sizes[-3:]), np.log(self.values[-3:]), 1)[0])


def _works(case: Case, axis: str) -> Mapping[str, Callable[[], Any]]:
    """What is timed along an axis, with its inputs made."""
    X, model = table(case.rows, 0, case.features), Smooth()
    jacobian = np.random.default_rng(1).normal(size=X.shape) + np.sin(3 * X.to_numpy())
    local = local_effects(None, X, jacobian=jacobian, progress=False)
    grid = np.linspace(-0.99, 0.99, case.bins)
    works: dict[str, Callable[[], Any]] = {
        "rhale": lambda: rhale(local, bins=OptimalBins(case.bins)),
        "ale": lambda: ale(model, X, bins=QuantileBins(case.bins), progress=False),
        "pdp": lambda: pdp(
            model, X, features="x0", grid={"x0": grid}, progress=False
        ),
        "regions": lambda: regions(local, 0, max_depth=1, bins=EqualWidthBins(case.bins),
                                   test=None, rng=0),
    }  # fmt: skip
    effect = rhale(local.isel(feature=[0]), bins=EqualWidthBins(20))
    works["bootstrap"] = lambda: bootstrap(
        local, effect, n_resamples=case.resamples, rng=0, progress=False
    )
    if axis == "features":
        del works["pdp"], works["bootstrap"]
    if axis == "bins":
        del works["bootstrap"]
    return {"bootstrap": works["bootstrap"]} if axis == "resamples" else works


def growth(sizes: Mapping[str, Sequence[int]] = SIZES) -> tuple[list[Growth], list[Growth]]:
    """Least CPU time of some runs along every axis, and memory at its peak along the rows."""
    times: list[Growth] = []
    memory: list[Growth] = []
    with silent(), one_processor():
        for axis, values in sizes.items():
            found: dict[str, list[float]] = {}
            peaks: dict[str, list[float]] = {}
            for size in values:
                for name, work in _works(Case(**{axis: size}), axis).items():
                    work()
                    best = min(seconds(work) for _ in range(RUNS))
                    found.setdefault(name, []).append(best)
                    if axis == "rows":
                        tracemalloc.start()
                        work()
                        peaks.setdefault(name, []).append(tracemalloc.get_traced_memory()[1])
                        tracemalloc.stop()
            for into, many in ((times, found), (memory, peaks)):
                into += [
                    Growth(axis, name, np.array(values), np.array(one))
                    for name, one in many.items()
                ]
    return times, memory


def exponents(times: Sequence[Growth], memory: Sequence[Growth]) -> pd.DataFrame:
    """Exponents: a line a function."""
    names = list(dict.fromkeys(one.name for one in times))
    columns = [*dict.fromkeys(one.axis for one in times), "memory, rows"]
    out = pd.DataFrame("", index=names, columns=columns)
    for one in times:
        out.loc[one.name, one.axis] = f"{one.exponent:.2f}"
    for one in memory:
        out.loc[one.name, "memory, rows"] = f"{one.exponent:.2f}"
    return out.rename_axis("function").reset_index()


def figure(times: Sequence[Growth], memory: Sequence[Growth]) -> Figure:
    """Log-log pictures."""
    axes_of = list(dict.fromkeys(one.axis for one in times))
    names = list(dict.fromkeys(one.name for one in times))
    fig, axes = panels(2, 3)
    flat = axes.ravel()
    for ax, axis in zip(flat, axes_of, strict=False):
        for one in times:
            if one.axis == axis:
                ax.plot(one.sizes, one.values, marker="o", markersize=3,
                        color=f"C{names.index(one.name)}")  # fmt: skip
        ax.set(xscale="log", yscale="log", xlabel=axis, ylabel="seconds of CPU")
        shown = next(one.sizes for one in times if one.axis == axis)
        ax.set_xticks(shown, [f"{size:,}" for size in shown], fontsize="x-small")
        ax.set_xticks([], minor=True)
    for one in memory:
        flat[4].plot(one.sizes, one.values / 1e6, marker="o", markersize=3,
                     color=f"C{names.index(one.name)}")  # fmt: skip
    flat[4].set(xscale="log", yscale="log", xlabel="rows", ylabel="MB above the inputs")
    for number, name in enumerate(names):
        flat[5].plot([], [], marker="o", markersize=3, color=f"C{number}", label=name)
    flat[5].legend(frameon=False, loc="center")
    flat[5].axis("off")
    return fig
