"""Sixty processes whose effects are known exactly, and the file that holds these.

The output is f(x) = g(x1) + a x1 1(x2 > 0), with x1 from one of five distributions, g one of six
functions, and a 0 or 1. x2 is normal and moves with x1: x2 = rho s(x1) + (1 - rho^2)^(1/2) e, with
the normal score s(x1) of x1. So p(z) = P(x2 > 0 | x1 = z) = Phi(rho s(z) / (1 - rho^2)^(1/2)), and

* the derivative at x1 = z has mean g'(z) + a p(z) and standard deviation |a| (p (1 - p))^(1/2);
* the ALE is the integral of that mean (and of the jumps of g), the PDP g(z) + a z P(x2 > 0), both
  with mean 0 over the rows;
* with a = 1 the rows differ by x2, on both sides of 0; with a = 0 they do not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from scipy import stats

FILE = Path(__file__).with_name("truths.nc")
RHO = 0.7
# Places of the truths, as shares of the rows below, and the finer axis that they are summed along.
SHARES = np.linspace(0.02, 0.98, 49)
N_FINE = 20_001
Values = NDArray[np.float64]

DISTRIBUTIONS: dict[str, Any] = {
    "uniform": stats.uniform(-1, 2),
    "normal": stats.norm(),
    "exponential": stats.expon(),
    "beta": stats.beta(2, 5),
    "student": stats.t(4),
}
# g and its derivative; the jump of "step" is no derivative.
FUNCTIONS: dict[str, tuple[Callable[[Values], Values], Callable[[Values], Values]]] = {
    "linear": (lambda x: x, np.ones_like),
    "square": (lambda x: x**2, lambda x: 2 * x),
    "wave": (lambda x: np.sin(3 * x), lambda x: 3 * np.cos(3 * x)),
    "kink": (np.abs, np.sign),
    "saturating": (lambda x: np.tanh(2 * x), lambda x: 2 / np.cosh(2 * x) ** 2),
    "step": (lambda x: np.where(x > 0.3, 1.0, 0.0), np.zeros_like),
}


@dataclass(frozen=True)
class Process:
    """One of the sixty; ``interaction`` is a."""

    distribution: str
    function: str
    interaction: float

    @property
    def name(self) -> str:
        """Name of the process, as in the file."""
        return f"{self.distribution}, {self.function}, a = {self.interaction:g}"

    def rows(self, n: int, rng: np.random.Generator) -> pd.DataFrame:
        """Rows of the columns x1, x2 and x3, of which the last has no effect."""
        score = rng.normal(size=n)
        x1 = DISTRIBUTIONS[self.distribution].ppf(stats.norm.cdf(score))
        x2 = RHO * score + np.sqrt(1 - RHO**2) * rng.normal(size=n)
        return pd.DataFrame({"x1": x1, "x2": x2, "x3": rng.normal(size=n)})

    def model(self, X: Any) -> Values:
        """The output, of a table or an array of the three columns."""
        x1, x2 = np.asarray(X, dtype=np.float64).T[:2]
        return FUNCTIONS[self.function][0](x1) + self.interaction * x1 * (x2 > 0)

    def gradient(self, X: Any) -> Values:
        """Derivatives of the output along the three columns, at every row."""
        x1, x2 = np.asarray(X, dtype=np.float64).T[:2]
        along = FUNCTIONS[self.function][1](x1) + self.interaction * (x2 > 0)
        return np.column_stack([along, np.zeros((len(x1), 2))])


PROCESSES = [Process(*parts) for parts in product(DISTRIBUTIONS, FUNCTIONS, (0.0, 1.0))]


def truth_of(process: Process) -> dict[str, Values]:
    """Exact effects of x1 at places with `SHARES` of the rows below, by name."""
    distribution, a = DISTRIBUTIONS[process.distribution], process.interaction
    g = FUNCTIONS[process.function][0]
    # Rows are even along the shares, so that means over the rows are means along this axis.
    shares = (np.arange(N_FINE) + 0.5) / N_FINE
    fine, places = distribution.ppf(shares), distribution.ppf(SHARES)
    p = stats.norm.cdf(RHO * stats.norm.ppf(shares) / np.sqrt(1 - RHO**2))
    steps = np.diff(fine) * (p[1:] + p[:-1]) / 2
    ale = g(fine) + a * np.append(0.0, np.cumsum(steps))
    at = np.interp(SHARES, shares, p)
    return {
        "x1": places,
        "ale": g(places) + np.interp(places, fine, ale - g(fine)) - ale.mean(),
        "pdp": g(places) + a * places / 2 - (g(fine) + a * fine / 2).mean(),
        "heterogeneity": np.abs(a) * np.sqrt(at * (1 - at)),
    }


def truths() -> xr.Dataset:
    """All of them, labelled as in the file."""
    each = [truth_of(process) for process in PROCESSES]
    about = {
        "x1": "value of x1",
        "ale": "accumulated local effect of x1, mean 0 over the rows",
        "pdp": "partial dependence on x1, mean 0 over the rows",
        "heterogeneity": "standard deviation of the derivative along x1, given x1",
    }
    variables = {
        name: (("process", "share"), np.array([truth[name] for truth in each]), {"long_name": text})
        for name, text in about.items()
    }
    splits = ["x2" if process.interaction else "" for process in PROCESSES]
    about_splits = {"long_name": "column by which rows differ"}
    variables["split_by"] = ("process", np.array(splits), about_splits)
    return xr.Dataset(
        variables,
        {
            "process": [process.name for process in PROCESSES],
            "share": ("share", SHARES, {"long_name": "share of the rows below x1", "units": "1"}),
        },
        {"title": "EffectBench 1: exact effects of 60 processes", "Conventions": "CF-1.11"},
    )


if __name__ == "__main__":
    truths().to_netcdf(FILE)
