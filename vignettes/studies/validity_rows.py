"""Scenarios of the study of validity with processes of their own: chosen bins, regions, checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from rhale_stats.bins.rules import GivenBins, QuantileBins
from rhale_stats.diagnostics.checks import check_unbiased, jump_check
from rhale_stats.effects.rhale import quiet_rhale
from rhale_stats.effects.sizes import effect_sizes
from rhale_stats.generics.hypotheses import wald_test
from rhale_stats.generics.uncertainty import bootstrap, confband, confint, std_error
from rhale_stats.generics.values import predict
from rhale_stats.h_statistics.statistic import h_statistic
from rhale_stats.local.local_effects import local_effects
from rhale_stats.regional.regions import regions
from rhale_stats.schema.feature_result import FeatureResult, each_feature, one_feature
from rhale_stats.schema.in_bins import in_bins
from studies.validity_claims import (
    BAND_DRAWS,
    LEVEL,
    RESAMPLES,
    Found,
    covered,
    held,
    rejected,
)
from studies.validity_processes import NOISES, FloatArray, Process, unequal_groups
from studies.weighting import EFFECTS, INNER, PLACES, POPULATION, Truth

Parameters = Mapping[str, Any]
OwnClaim = Callable[[Parameters, np.random.Generator, int], Found]

_truths: dict[tuple[str, str], Truth] = {}


def chosen(parameters: Parameters, rng: np.random.Generator, n_samples: int) -> Found:
    """Default settings: bins chosen on the rows, against the targets of these bins."""
    place, name = str(parameters["place"]), str(parameters["effect"])
    if (place, name) not in _truths:
        _truths[place, name] = Truth.of(place, name)
    truth, mu = _truths[place, name], EFFECTS[name]
    size = int(parameters["n"]), n_samples
    x = np.asarray(PLACES[place](rng.uniform(size=size)), dtype=np.float64)
    noise = NOISES[str(parameters["noise"])](rng, x.size, 1.0).reshape(size)
    effect = std_error(quiet_rhale(local_effects(None, x, jacobian=mu(x) + noise)))
    made = confband(confint(effect), n_draws=BAND_DRAWS, rng=rng)
    rows = pd.DataFrame(
        [_of_chosen(one_feature(made, k), truth, place, mu(truth.z)) for k in range(n_samples)]
    )
    found = {str(column): rows[column].to_numpy(dtype=np.float64) for column in rows}
    if name == "flat":
        found["wald_test zero, box"] = rejected(wald_test(effect, "zero"))
        found["wald_test zero, wald"] = rejected(wald_test(effect, "zero", method="wald"))
    return found


def _of_chosen(row: FeatureResult, truth: Truth, place: str, mu: FloatArray) -> dict[str, float]:
    """One sample; the curve within the inner 99 % of the rows."""
    population = np.asarray(PLACES[place]((np.arange(POPULATION) + 0.5) / POPULATION))
    low, high = PLACES[place](np.array(INNER))
    edges, cells = row.bin_edges, row.edges
    average = np.diff(np.interp(edges, truth.z, truth.curve)) / np.diff(edges)
    # At the edges of cells: of one bin no edge is within, and that there are more is chance.
    curve = truth.at(cells, population, float(cells[0]), float(cells[-1]))
    curve = np.where((cells >= low) & (cells <= high), curve, np.nan)
    bounds = row["effect_ci"].values
    spread = _spreads(row, population, np.interp(population, truth.z, mu))
    out = {
        "effect": covered(bounds, average),
        "effect band": held(row["effect_band"].values, average),
        "heterogeneity": covered(row["heterogeneity_ci"].values, spread),
        "cell curve": covered(row["curve_ci"].values, curve),
        "curve band": held(row["curve_band"].values, curve),
    }
    return {name: float(value) for name, value in out.items()}


def _spreads(row: FeatureResult, population: FloatArray, mu: FloatArray) -> FloatArray:
    """Spread about the mean, or the line, of each bin in the population; noise of variance 1."""
    edges = row.bin_edges
    slopes = row["slope"].values if "slope" in row else np.zeros(len(edges) - 1)
    out = []
    for low, high, slope in zip(edges[:-1], edges[1:], slopes, strict=True):
        inside = (population >= low) & (population <= high)
        z, own = population[inside], mu[inside]
        excess = own.var() if len(own) else 0.0
        if slope != 0 and len(own) > 2:
            excess -= np.cov(z, own, bias=True)[0, 1] ** 2 / z.var()
        out.append(1 + excess)
    return np.sqrt(out)


def refitted(_parameters: Parameters, rng: np.random.Generator, n_samples: int) -> Found:
    """Intervals of the rows, read as intervals of the true effect: least squares, fitted anew."""
    n, edges = 500, np.linspace(-1, 1, 6)
    x = rng.uniform(-1, 1, (n, n_samples))
    y = x + x**2 + rng.normal(size=x.shape)
    design = np.stack([np.ones_like(x), x, x**2]).transpose(2, 1, 0)
    b = np.array([np.linalg.lstsq(d, v, rcond=None)[0] for d, v in zip(design, y.T, strict=True)])
    local = local_effects(None, x, jacobian=b[:, 1] + 2 * b[:, 2] * x)
    made = confint(quiet_rhale(local, GivenBins(edges)))
    middle = (edges[1:] + edges[:-1]) / 2
    curve = edges + edges**2 - 1 / 3
    return {
        "true effect": covered(made["effect_ci"].values, 1 + 2 * middle),
        "true curve": covered(in_bins(made)["curve_ci"].values, curve),
    }


class _Noise(NamedTuple):
    """Columns, and the local effects that depend on them in spread alone."""

    columns: pd.DataFrame
    effect: FloatArray
    groups: Any = None


def region_rows(case: str, n: int, rng: np.random.Generator) -> tuple[FloatArray, _Noise]:
    """Values of a feature, and local effects whose mean depends on no column."""
    z, other = rng.uniform(-1, 1, (2, n))
    if case.startswith("clustered"):
        icc = float(case.split()[-1])
        groups = unequal_groups(n, n // 8)
        level = rng.normal(size=(groups.max() + 1, 2))[groups]
        shared = rng.normal(size=groups.max() + 1)[groups]
        effect = np.sqrt(icc) * shared + np.sqrt(1 - icc) * rng.normal(size=n)
        columns = pd.DataFrame({"a": level[:, 0], "b": level[:, 1]})
        return z, _Noise(columns, effect, groups)
    if case == "log-normal":
        a = rng.normal(size=n)
        return z, _Noise(pd.DataFrame({"a": a, "b": other}), NOISES["log-normal"](rng, n, 1.0))
    e = rng.normal(size=n)
    if case == "spread by exp(a), log-normal":
        a = rng.normal(size=n)
        return z, _Noise(
            pd.DataFrame({"a": a, "b": other}),
            np.exp(a) * NOISES["log-normal"](rng, n, 1.0),
        )
    if case == "binary by z":
        column = rng.uniform(size=n) < (1 + z) / 2
        spread = np.where(column, 4.0, 1.0)
    else:
        column = rng.uniform(size=n) < float(case.split()[-1])
        spread = np.where(column, 6.0, 1.0)
    return z, _Noise(pd.DataFrame({"a": column.astype(float), "b": other}), spread * e)


def splits(parameters: Parameters, rng: np.random.Generator, n_samples: int) -> Found:
    """Splits of a feature whose mean effect depends on no column."""
    found: dict[str, list[float]] = {}
    for _ in range(n_samples):
        z, drawn = region_rows(str(parameters["case"]), int(parameters["n"]), rng)
        local = local_effects(None, z[:, None], jacobian=drawn.effect[:, None])
        for test in ("permutation", "honest"):
            asked: dict[str, Any] = {"test": test, "max_depth": 1, "groups": drawn.groups}
            tree = regions(local, 0, conditioning=drawn.columns, rng=rng, **asked)
            found.setdefault(f"regions, {test}", []).append(float(tree.sizes["node"] > 1))
    return {name: np.array(hits) for name, hits in found.items()}


SPREADS: dict[str, Callable[[FloatArray], tuple[FloatArray, FloatArray]]] = {
    "flat mean, .2 + 2z": lambda z: (0 * z, 0.2 + 2 * z),
    "flat mean, 2 abs(2z - 1)": lambda z: (0 * z, 2 * np.abs(2 * z - 1)),
    "flat mean, jump": lambda z: (0 * z, np.where(z > 0.5, 2.0, 0.5)),
    "mean = spread = exp(2z)/2": lambda z: (np.exp(2 * z) / 2, np.exp(2 * z) / 2),
}
EQUAL = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30)


def spreads(parameters: Parameters, rng: np.random.Generator, n_samples: int) -> Found:
    """Squared error of the spread along the axis, over that of the best number of equal bins."""
    shape, n = SPREADS[str(parameters["case"])], int(parameters["n"])
    x = rng.uniform(size=(n, n_samples))
    mu, sigma = shape(x)
    g = mu + sigma * rng.normal(size=x.shape)
    effect = quiet_rhale(local_effects(None, x, jacobian=g))
    grid = (np.arange(400) + 0.5) / 400
    truth = shape(grid)[1]
    own = np.mean([(spread_at(effect, k, grid) - truth) ** 2 for k in range(n_samples)])
    of_equal = []
    for n_bins in EQUAL:
        which = (x * n_bins).astype(int)
        at = (grid * n_bins).astype(int)
        errors = []
        for k in range(n_samples):
            table = pd.Series(g[:, k]).groupby(which[:, k]).std().reindex(range(n_bins))
            errors.append(np.mean((table.to_numpy()[at] - truth) ** 2))
        of_equal.append(np.mean(errors))
    found = {"spread along the axis": np.array([own / np.nanmin(of_equal)])}
    if "spread" in effect:
        found["spread"] = _spread_covered(confint(effect), grid, truth**2)
    return found


def _spread_covered(effect: xr.Dataset, grid: FloatArray, squares: FloatArray) -> FloatArray:
    """Intervals of the spread in bins of its own, where the feature is uniform."""
    out = []
    for row in each_feature(effect):
        which = np.searchsorted(row.spread_edges[1:-1], grid, side="right")
        bounds = row["spread_ci"].values[row.spread_starts]
        sums, counts = np.bincount(which, squares), np.bincount(which)
        out.append(float(covered(bounds[: len(sums)], np.sqrt(sums / counts))))
    return np.array(out)


def spread_at(effect: xr.Dataset, feature: int, z: FloatArray) -> FloatArray:
    """The heterogeneity at places of the axis."""
    inside = np.clip(z, *np.nanquantile(effect["edge_value"].values[feature], [0, 1]))
    name = effect["feature"].values[feature]
    asked: dict[str, Any] = {"what": "heterogeneity"}
    try:
        return np.asarray(predict(effect, inside, name, **asked).values).ravel()
    except TypeError:  # `predict` gives the curve alone.
        row = one_feature(effect, feature)
        k = np.searchsorted(row.bin_edges[1:-1], inside, side="right")
        return np.asarray(row["heterogeneity"].values[k])


def sizes(parameters: Parameters, rng: np.random.Generator, n_samples: int) -> Found:
    """Importance without any effect: the share of its bias that the correction removes."""
    process = Process(n=int(parameters["n"]))
    sample = process.draw(rng, n_samples)
    local = process.local(sample, 0.0)
    effect = std_error(quiet_rhale(local, process.rule()))
    found = effect_sizes(effect)
    out: Found = {}
    if "importance_p_value" in found:
        out["importance_p_value"] = (found["importance_p_value"].values <= LEVEL).astype(float)
        truth = process.curve(process.grid)
        truth = np.sqrt(process.mean(truth**2))
        moved = effect_sizes(std_error(quiet_rhale(process.local(sample), process.rule())))
        out["importance"] = covered(moved["importance_ci"].values[:, None], np.array(truth))
    else:  # The correction is by replicates.
        boot = bootstrap(local, effect, n_resamples=RESAMPLES, rng=rng, progress=False)
        found = effect_sizes(effect, boot)
    left = found["importance_corrected"].values.mean() / found["importance"].values.mean()
    return out | {"importance without an effect": np.array([1 - left])}


UNBIASED: dict[str, Callable[[FloatArray], FloatArray]] = {
    "spread by z squared": lambda z: z**2,
    "spread with a spike": lambda z: np.where(np.abs(z - 0.5) < 0.03, 5.0, 0.5),
}


def unbiased(parameters: Parameters, rng: np.random.Generator, n_samples: int) -> Found:
    """Bin error where there is none, in two bins."""
    n = int(parameters["n"])
    x = rng.uniform(size=(n, n_samples))
    noise = NOISES[str(parameters["noise"])](rng, x.size, 1.0).reshape(x.shape)
    local = local_effects(None, x, jacobian=UNBIASED[str(parameters["case"])](x) * noise)
    check = check_unbiased(local, quiet_rhale(local, GivenBins([0, 0.5, 1])), rng=rng)
    found = {}
    for name, pvalue in (("check_unbiased", "bin_error"), ("check_unbiased, ranks", "rank")):
        small = check[f"{pvalue}_pvalue"].values <= LEVEL
        found[name] = small.mean(axis=-1)
    return found


def jumps(parameters: Parameters, rng: np.random.Generator, n_samples: int) -> Found:
    """Jumps of a smooth model, in default bins and in many equal ones."""

    def model(table: FloatArray) -> FloatArray:
        return np.asarray(np.sin(2 * table[:, 0]) + table[:, 0] * table[:, 1] / 2)

    found: dict[str, list[float]] = {}
    for _ in range(n_samples):
        n = int(parameters["n"])
        table = np.column_stack([rng.exponential(size=n), rng.normal(size=n)])
        local = local_effects(model, table, features=[0], progress=False)
        for name, rule in (("default bins", None), ("30 quantiles", QuantileBins(30))):
            check = jump_check(quiet_rhale(local, rule), local, model, table)
            flagged = np.nanmin(check["jump_pvalue_adjusted"].values, initial=1.0) <= LEVEL
            found.setdefault(f"jump_check, {name}", []).append(float(flagged))
    return {name: np.array(hits) for name, hits in found.items()}


def exponential_h(parameters: Parameters, rng: np.random.Generator, n_samples: int) -> Found:
    """The pairwise H-statistic of exponential features."""
    hits = []
    # Squares: of x1 + x2 + x1 x2 / 2, centred, (1 + 1/2)^2 twice, and 1/4 of the product.
    truth = np.array(0.25 / (2 * 1.5**2 + 0.25))
    for _ in range(n_samples):
        table = rng.exponential(size=(int(parameters["n"]), 2))
        found = h_statistic(
            lambda X: X[:, 0] + X[:, 1] + X[:, 0] * X[:, 1] / 2, table, progress=False
        )
        hits.append(float(covered(confint(found)["h2_pairwise_ci"].values[0, 1:2], truth)))
    return {"h_statistic pair": np.array(hits)}


OWN_BLOCKS: dict[str, OwnClaim] = {
    "chosen": chosen,
    "refitted": refitted,
    "splits": splits,
    "spreads": spreads,
    "sizes": sizes,
    "unbiased": unbiased,
    "jumps": jumps,
    "exponential h": exponential_h,
}
