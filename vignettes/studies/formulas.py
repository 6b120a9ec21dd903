"""Simulated numbers of docs/math-tables.md: ``python vignettes/studies formulas BLOCK``.

Each block is a table of that page. It is printed as Markdown, each number with its Monte-Carlo
standard error in brackets. The seed is in `SEED`.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arrays import bin_error
from rhale_stats.arrays.intervals import of_deviation
from rhale_stats.bins.rules import EqualWidthBins, GreedyBins, QuantileBins
from rhale_stats.diagnostics.checks import jump_check
from rhale_stats.effects.rhale import quiet_rhale, rhale
from rhale_stats.generics.hypotheses import wald_test
from rhale_stats.generics.uncertainty import confint, std_error
from rhale_stats.h_statistics.statistic import h_statistic
from rhale_stats.local.local_effects import local_effects

FloatArray = NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, ...]], FloatArray]
Line = tuple[str, list[str]]
SEED = 0

NOISES: dict[str, Draw] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "uniform": lambda rng, shape: rng.uniform(-(3**0.5), 3**0.5, shape),
    "log-normal": lambda rng, shape: rng.lognormal(size=shape) - np.exp(0.5),
    "exponential": lambda rng, shape: rng.exponential(size=shape) - 1,
    "$t_3$": lambda rng, shape: rng.standard_t(3, shape),
    "$t_5$": lambda rng, shape: rng.standard_t(5, shape),
    "two values, 50:50": lambda rng, shape: rng.choice([-1.0, 1.0], shape),
    "two values, 70:30": lambda rng, shape: rng.choice([0.7, -0.3], shape, p=[0.3, 0.7]),
    "two values, 90:10": lambda rng, shape: rng.choice([0.9, -0.1], shape, p=[0.1, 0.9]),
}
SD = {
    "log-normal": (np.exp(2) - np.exp(1)) ** 0.5,
    "exponential": 1.0,
    "$t_3$": 3**0.5,
    "$t_5$": (5 / 3) ** 0.5,
    "two values, 70:30": 0.21**0.5,
    "two values, 90:10": 0.3,
}


def generator(name: str) -> np.random.Generator:
    """Random numbers of one part of a block, whatever is drawn before it."""
    return np.random.default_rng([SEED, zlib.crc32(name.encode())])


def percent(hits: NDArray[np.bool_] | FloatArray) -> str:
    """Share over samples, the first axis, with its Monte-Carlo error in brackets."""
    values = np.asarray(hits, dtype=float)
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{100 * values.mean():.1f} ({100 * error:.1f})"


def average(values: FloatArray, digits: int) -> str:
    """Mean with its Monte-Carlo error in brackets."""
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{np.mean(values):.{digits}f} ({error:.{digits}f})"


# --- [13] and [14]: differences of neighbours -------------------------------------------------


class Ordered:
    """Local effects of many bins of equally many rows, in the order of z, uniform in each bin."""

    def __init__(self, z: FloatArray, g: FloatArray, w: FloatArray | None = None) -> None:
        n_bins, n = g.shape
        self.rows = bin_error.OrderedRows(
            np.repeat(np.arange(n_bins), n),
            (z + np.arange(n_bins)[:, None]).ravel(),
            g.ravel(),
            None if w is None else w.ravel(),
        )
        weight = np.ones_like(g) if w is None else w
        total = weight.sum(axis=1)
        self.mean = np.sum(weight * g, axis=1) / total
        squares = np.sum(weight * (g - self.mean[:, None]) ** 2, axis=1)
        self.variance = squares / (total - np.sum(weight**2, axis=1) / total)
        self.found = bin_error.differences(self.rows, self.mean)
        self.weights = bin_error.pair_weights(self.rows, n_bins)

    def rejected(self, level: float) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Bins rejected by the ratio alone, and by the larger of both p-values."""
        asked = self.rows, self.mean, self.variance, self.found.variance, self.weights
        alone, both = bin_error.von_neumann(*asked)[1], bin_error.tested(*asked)[1]
        return alone < level, both < level


def places(rng: np.random.Generator, n_bins: int, n: int) -> FloatArray:
    """Sorted uniform rows of every bin."""
    return np.sort(rng.uniform(size=(n_bins, n)), axis=1)


def neighbours(most: int) -> tuple[Line, list[Line]]:
    """[13]: coverage of the bin error and of the heterogeneity within, ± 1.96 standard errors."""
    sizes, lines = (10, 25, 100, 400), []
    for what, slope in (("slope 3, $\\beta = 0.75$", 3.0), ("$\\beta = 0$", 0.0)):
        for weights in ("", ", exponential weights"):
            of_error, within = [], []
            for n in sizes:
                rng = generator(f"neighbours {slope} {weights} {n}")
                n_bins = min(most, 4_000_000 // n)
                z = places(rng, n_bins, n)
                w = rng.exponential(size=z.shape) if weights else None
                bins = Ordered(z, slope * z + rng.normal(size=z.shape), w)
                beta = bins.variance - bins.found.variance
                se = bin_error.bin_error_se(bins.found, beta, bins.weights)
                of_error.append(percent(np.abs(beta - slope**2 / 12) <= 1.96 * se))
                se = bin_error.within_se(bins.found, bins.weights)
                off = np.sqrt(bins.found.variance) - 1
                within.append(percent(np.abs(off) <= 1.96 * se))
            lines.append((f"$\\hat\\beta$, {what}{weights}", of_error))
            lines.append((f"$\\hat\\sigma_{{\\mathrm{{diff}}}}$, {what}{weights}", within))
    return ("", [f"$n = {n}$" for n in sizes]), lines


SPREADS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "constant": np.ones_like,
    "doubling along the bin": lambda z: 1 + z,
    "proportional to $z$": lambda z: z,
    "proportional to $z^2$": np.square,
    "0.1, and 5.1 in 6 % of the bin": lambda z: np.where(np.abs(z - 0.5) < 0.03, 5.1, 0.1),
}


def von_neumann(most: int) -> tuple[Line, list[Line]]:
    """[14]: size at 5 % of the ratio alone and of the larger p-value; and power."""
    sizes = (25, 100, 500)
    cases: list[tuple[str, str, str, float, float]] = [
        ("constant", noise, "", 0.0, 0.05)
        for noise in ("normal", "uniform", "$t_3$", "log-normal", "two values, 50:50")
    ]
    cases += [("constant", "two values, 90:10", "", 0.0, 0.05)]
    cases += [
        (spread, noise, "", 0.0, 0.05)
        for spread in list(SPREADS)[1:]
        for noise in ("normal", "log-normal")
    ]
    cases += [
        ("constant", "normal", ", exponential weights", 0.0, 0.05),
        ("constant", "normal", ", level 1 %", 0.0, 0.01),
        ("constant", "normal", ", $\\beta = \\sigma^2$: power", 1.0, 0.05),
        ("constant", "normal", ", $\\beta = \\sigma^2/3$: power", 1 / 3, 0.05),
    ]
    lines = []
    for spread, noise, words, ratio, level in cases:
        cells = []
        for n in sizes:
            rng = generator(f"von Neumann {spread} {noise} {words} {n}")
            z = places(rng, min(most, 2_000_000 // n), n)
            g = SPREADS[spread](z) * NOISES[noise](rng, z.shape) + (12 * ratio) ** 0.5 * z
            w = rng.exponential(size=z.shape) if "weights" in words else None
            alone, both = Ordered(z, g, w).rejected(level)
            cells.append(f"{100 * alone.mean():.1f} → {percent(both)}")
        lines.append((f"{spread}, {noise}{words}", cells))
    return ("$\\sigma(z)$, effects", [f"$n = {n}$" for n in sizes]), lines


# --- [24]: the interval of the heterogeneity, and the edge of a bin ---------------------------


def spread_interval(most: int) -> tuple[Line, list[Line]]:
    """[24]: coverage of the interval by inversion of a test → of sigma ± 1.96 standard errors."""
    sizes = (25, 50, 100, 500)
    names = ("normal", "uniform", "two values, 50:50", "two values, 70:30", "$t_5$", "exponential")
    lines = []
    for name in names:
        cells = []
        for n in sizes:
            rng = generator(f"spread interval {name} {n}")
            g = NOISES[name](rng, (most, n))
            r = g - g.mean(axis=1, keepdims=True)
            m3, m4 = (np.mean(r**power, axis=1) for power in (3, 4))
            sd, truth = r.std(axis=1, ddof=1), SD.get(name, 1.0)
            rows, degrees = np.full(most, float(n)), np.full(most, n - 1.0)
            low, high = of_deviation(sd, m3, m4, rows, degrees, 0.95).T
            se = np.sqrt(np.maximum(m4 - (n - 3) / (n - 1) * sd**4, 0) / n) / (2 * sd)
            plain = np.abs(sd - truth) <= 1.96 * se
            held = (low <= truth * (1 + 1e-12)) & (truth * (1 - 1e-12) <= high)
            cells.append(f"{percent(held)} → {100 * plain.mean():.1f}")
        lines.append((name, cells))
    return ("local effects", [f"$n = {n}$" for n in sizes]), lines


def chernoff(most: int) -> tuple[Line, list[Line]]:
    """[24]: the mean of B(Z)², Z the place of the maximum of B(t) - t², on two grids."""
    lines = []
    for step in (0.004, 0.002):
        found, rng = [], generator(f"Chernoff {step}")
        t = np.arange(0, 3 + step / 2, step)
        for _ in range(max(most // 100, 1)):
            drawn = rng.normal(0, step**0.5, (100, 2, len(t) - 1)).cumsum(axis=2)
            sides = np.concatenate([np.zeros((100, 2, 1)), drawn], axis=2)
            both = (sides - t**2).reshape(100, -1)
            found.append(sides.reshape(100, -1)[np.arange(100), both.argmax(axis=1)] ** 2)
        lines.append((f"steps of {step}", [average(np.concatenate(found), 3)]))
    return ("grid", ["$\\mathrm E\\,B(Z)^2$"]), lines


# --- [20]: greedy bins of noise ---------------------------------------------------------------


def samples(z: FloatArray, g: FloatArray) -> xr.Dataset:
    """Local effects of many samples, one a column."""
    return local_effects(None, z, jacobian=g)


def greedy(most: int) -> tuple[Line, list[Line]]:
    """[20]: number of greedy bins where local effects are normal noise."""
    sizes, cells = (500, 2000, 20_000), []
    for n in sizes:
        rng = generator(f"greedy {n}")
        counts = []
        for _ in range(max(min(most, 2_000_000 // n) // 20, 2)):
            local = samples(rng.uniform(size=(n, 20)), rng.normal(size=(n, 20)))
            counts.append(rhale(local, bins=GreedyBins())["n_bins"].values.astype(float))
        cells.append(average(np.concatenate(counts), 2))
    return ("", [f"$N = {n}$" for n in sizes]), [("`GreedyBins()`", cells)]


# --- [3]: jumps -------------------------------------------------------------------------------


def jumps(most: int) -> tuple[Line, list[Line]]:
    """[3]: bins with a p-value below 5 and 1 %, of models without a jump."""

    def sine(X: FloatArray) -> FloatArray:
        return np.asarray(np.sin(3 * X[:, 0]) + 2 * X[:, 0] * X[:, 1])

    def square(X: FloatArray) -> FloatArray:
        return np.asarray(X[:, 0] ** 2 * X[:, 1])

    def plus(X: FloatArray) -> FloatArray:
        return np.asarray(X[:, 0] ** 2 + X[:, 1])

    models = (
        ("$\\sin 3x_1 + 2x_1x_2$, uniform, independent", sine, "uniform"),
        ("the same, $x_2 = x_1 + N(0, \\frac14)$", sine, "related"),
        ("$x_1^2x_2$, $x_2 = x_1 + N(0, \\frac14)$", square, "related"),
        ("$x_1^2 + x_2$, $x_1$ exponential", plus, "exponential"),
    )
    lines = []
    for words, model, rows in models:
        rng = generator(f"jumps {words}")
        shares: list[list[float]] = []
        for _ in range(most):
            X = rng.uniform(-1, 1, (500, 2))
            if rows == "related":
                X[:, 1] = X[:, 0] + rng.normal(0, 0.5, 500)
            if rows == "exponential":
                X[:, 0] = rng.exponential(size=500)
            local = local_effects(model, X, features=[0], method="central_difference")
            effect = quiet_rhale(local, EqualWidthBins(5))
            p = jump_check(effect, local, model, X)["jump_pvalue"].values
            known = p[np.isfinite(p)]
            if len(known):
                shares.append([float(np.mean(known < level)) for level in (0.05, 0.01)])
        lines.append((words, [percent(column) for column in np.array(shares).T]))
    return ("model", ["5 %", "1 %"]), lines


# --- [31]: the Wald test ----------------------------------------------------------------------


def box(most: int) -> tuple[Line, list[Line]]:
    """[31]: rejections at 5 %, "box" / "wald", with standard deviation 0.3 + 0.7 |z|."""
    names = ["normal", "log-normal", "two values, 90:10", "$t_3$"]
    cases = [(n_bins, rows, 0.0) for n_bins, rows in ((10, 10), (10, 30), (5, 100), (20, 100))]
    cases.append((10, 30, 0.7 * 10**0.5))
    lines = []
    for (n_bins, rows, size), null in [(a, b) for a in cases for b in ("zero", "constant")]:
        n, cells = n_bins * rows, []
        for name in names:
            rng = generator(f"box {n_bins} {rows} {name}")
            p: dict[str, list[FloatArray]] = {"box": [], "wald": []}
            for _ in range(max(most // 100, 1)):
                z = rng.uniform(-1, 1, (n, min(most, 100)))
                g = (0.3 + 0.7 * np.abs(z)) * NOISES[name](rng, z.shape) / SD.get(name, 1.0)
                g += size / n**0.5 * (1 if null == "zero" else 3**0.5 * z)
                made = quiet_rhale(samples(z, g), EqualWidthBins(n_bins), weighting="rows")
                effect = std_error(made)
                for method, found in p.items():
                    found.append(wald_test(effect, null, method=method)["p_value"].values)
            both = [np.concatenate(found) < 0.05 for found in p.values()]
            cells.append(f"{percent(both[0])} / {100 * both[1].mean():.1f}")
        words = ", power" if size else ""
        lines.append((f"{n_bins} bins of {rows} rows, {null}{words}", cells))
    return ("bins, null", names), lines


# --- [60] to [62]: H-statistics ---------------------------------------------------------------


def product(c: float) -> Callable[[FloatArray], FloatArray]:
    """x1 + x2 + c x1 x2."""
    return lambda X: np.asarray(X[:, 0] + X[:, 1] + c * X[:, 0] * X[:, 1])


def h(most: int) -> tuple[Line, list[Line]]:
    """[62]: coverage of 95 % intervals of H² and h of a pair, and mean error over the spread."""
    lines = []
    for words, c, rho, n in (
        ("normal, $c = 0.3$, 200 rows", 0.3, 0.0, 200),
        ("normal, $c = 1$, 100 rows", 1.0, 0.0, 100),
        ("normal, $c = 1$, 200 rows", 1.0, 0.0, 200),
        ("normal, $c = 1$, 500 rows", 1.0, 0.0, 500),
        ("normal, $c = 0.5$, correlation 0.7, 200 rows", 0.5, 0.7, 200),
    ):
        rng = generator(f"h {words}")
        held: list[bool] = []
        root: list[bool] = []
        values: list[float] = []
        errors: list[float] = []
        second = c**2 * (1 + rho**2)
        truth = second / (2 + 2 * rho + second)
        for _ in range(most if n < 500 else max(most // 4, 2)):
            X = rng.normal(size=(n, 2))
            X[:, 1] = rho * X[:, 0] + (1 - rho**2) ** 0.5 * X[:, 1]
            found = confint(h_statistic(product(c), X))
            for out, name, value in (
                (held, "h2", truth),
                (root, "h", second**0.5),
            ):
                low, high = found[f"{name}_ci"].values
                out.append(bool(low <= value <= high))
            values.append(float(found["h2"]))
            errors.append(float(found["h2_se"]))
        ratio = np.sqrt(np.mean(np.square(errors))) / np.std(values, ddof=1)
        bias = 100 * (np.mean(values) / truth - 1)
        cells = [percent(np.array(held)), percent(np.array(root)), f"{ratio:.2f}", f"{bias:.1f} %"]
        lines.append((words, cells))
    return (
        "$x_1 + x_2 + c x_1x_2$",
        ["$H^2_{12}$", "$h_{12}$", "se / sd", "bias of $H^2_{12}$"],
    ), lines


def h_noise(most: int) -> tuple[Line, list[Line]]:
    """[61] and [62]: mean estimates of H² of a pair whose true value is 0."""
    sizes = (100, 500, 2000)
    lines = []
    ways: dict[str, dict[str, Any]] = {
        "partial dependence": {},
        "ALE, 10 × 10 cells": {"kind": "ale", "bins": QuantileBins(10)},
    }
    for words, cells_of in ways.items():
        cells = []
        for n in sizes:
            if not cells_of and n > 500:
                cells.append("")
                continue
            rng = generator(f"h noise {words} {n}")
            found = []
            for _ in range(max(most // (5 if n > 100 else 1), 2)):
                X = rng.normal(size=(n, 3))
                one = h_statistic(triple, X, features=[0, 1], **cells_of)
                found.append(float(np.nanmax(one["h2_pairwise"].values)))
            cells.append(average(np.array(found), 4))
        lines.append((words, cells))
    return ("$x_1 + x_2 + x_1x_2x_3$, normal", [f"{n} rows" for n in sizes]), lines


def triple(X: FloatArray) -> FloatArray:
    """Without an interaction of x1 and x2 alone."""
    return np.asarray(X[:, 0] + X[:, 1] + X[:, 0] * X[:, 1] * X[:, 2])


# Samples of each block, and the function.
BLOCKS: dict[str, tuple[int, Callable[[int], tuple[Line, list[Line]]]]] = {
    "jumps": (400, jumps),
    "neighbours": (10_000, neighbours),
    "von-neumann": (20_000, von_neumann),
    "greedy": (400, greedy),
    "spread-interval": (4_000, spread_interval),
    "chernoff": (20_000, chernoff),
    "box": (600, box),
    "h": (400, h),
    "h-noise": (200, h_noise),
}


def table(name: str, most: int | None = None) -> str:
    """Markdown of a block, from at most this number of samples."""
    samples_of, block = BLOCKS[name]
    head, lines = block(most or samples_of)
    rows = [head, *lines]
    text = [" | ".join(["", first, *rest]).strip() + " |" for first, rest in rows]
    text.insert(1, "|" + "---|" * (1 + len(head[1])))
    return "\n".join(text)


if __name__ == "__main__":
    for asked in sys.argv[1:] or BLOCKS:
        print(f"{asked}, seed {SEED}\n\n{table(asked)}\n", flush=True)
