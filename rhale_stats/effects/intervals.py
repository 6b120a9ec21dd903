"""Intervals and bands of effects in bins (math section 5)."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rhale_stats.arguments.checks import check_choice
from rhale_stats.arrays import influence, intervals, resample
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.effects.errors import vcov, with_std_error
from rhale_stats.effects.fit import (
    Fit,
    at_cells,
    at_edges,
    bin_degrees,
    fit_of,
    has_covariance,
    row_degrees,
    spread_degrees,
)
from rhale_stats.effects.targets import SOURCE, source_of_errors, target_of
from rhale_stats.inference.draws import check_boot, draws_of
from rhale_stats.schema.checks import check_effect
from rhale_stats.schema.curves import cell_sizes, has_cells
from rhale_stats.schema.features import feature_names, one_feature, own_facts
from rhale_stats.schema.stacking import Estimates, stacked
from rhale_stats.schema.variables import EFFECT_VARIABLES, variable

BY_ERRORS = "standard errors, Student's t"


def confint(
    effect: xr.Dataset,
    boot: xr.Dataset | None = None,
    level: float = 0.95,
    method: str | None = None,
) -> xr.Dataset:
    """`confint` of effects in bins and of their curve, pointwise."""
    effect = with_std_error(check_effect(effect))
    chosen = ("normal" if boot is None else "percentile") if method is None else method
    check_choice("method", chosen, ("normal", *intervals.METHODS))
    if chosen == "normal":
        rows = [
            _normal_intervals(one_feature(effect, name), level) for name in feature_names(effect)
        ]
        how = BY_ERRORS
    else:
        if boot is None:
            raise ValueError(f"boot must be given for method {chosen!r}: bootstrap(local, effect).")
        boot = check_boot(effect, boot, chosen)
        rows = [
            _bootstrap_intervals(
                one_feature(effect, number), own_facts(boot.isel(feature=number)), level, chosen
            )
            for number in range(effect.sizes["feature"])
        ]
        how = f"bootstrap, {chosen}"
        if chosen != "studentized":
            how += ", expanded to Student's t"
    if "missing_effect_se" in effect:
        rows = [
            {**row, "missing_effect_ci": _missing_interval(effect.isel(feature=number), level)}
            for number, row in enumerate(rows)
        ]
    arrays = stacked(rows, effect.sizes["bin"], ci_bound=2, **cell_sizes(effect))
    facts: dict[str, str | float] = {
        "method": how,
        "kind": "pointwise",
        "ci_prob": level,
        "ci_kind": "confidence",
    }
    # Replicates have no curve between the edges of bins.
    effect = effect.drop_vars("cell_curve_ci", errors="ignore")
    found = {}
    for name, array in arrays.items():
        of = name.removesuffix("_ci")
        if boot is None or chosen == "normal":
            source = source_of_errors(effect, of)
        else:
            source = str(boot.attrs["source"])
        found[name] = variable(name, array, target=target_of(effect, of), source=source, **facts)
    if chosen == "normal" and "n_groups" not in effect.attrs:
        found["heterogeneity_ci"][2]["method"] = "inversion of a test, math [24]"
    if "missing_effect_ci" in found:
        own = {"method": BY_ERRORS, "source": source_of_errors(effect, "missing_effect")}
        found["missing_effect_ci"][2].update(own)
    return effect.assign(found).assign_coords(ci_bound=("ci_bound", ["lower", "upper"]))


def _normal_intervals(row: xr.Dataset, level: float) -> Estimates:
    """Intervals of one feature by its standard errors."""
    names = [name for name in ("effect", "slope", "heterogeneity", "curve") if name in row]
    n_bins = row.sizes["bin"]
    if not n_bins:
        cells = ("cell_curve",) if "cell_curve_se" in row else ()
        return {f"{name}_ci": np.nan for name in (*names, *cells, "average_effect")}
    n, grouped = row["n_effective"].values, "n_groups" in row.attrs
    of_effect = bin_degrees(row)
    degrees = of_effect if grouped else spread_degrees(row)
    student = intervals.student(level, degrees)
    out: dict[str, FloatArray] = {}
    for name, own in (("effect", intervals.student(level, of_effect)), ("slope", student)):
        if name in row:
            out[f"{name}_ci"] = intervals.around(row[name].values, own * row[f"{name}_se"].values)
    spread, spread_se = row["heterogeneity"].values, row["heterogeneity_se"].values
    if grouped or "third_moment" not in row:
        out["heterogeneity_ci"] = intervals.log_scale(spread, student * spread_se)
    else:
        out["heterogeneity_ci"] = intervals.of_deviation(
            spread, row["third_moment"].values, row["fourth_moment"].values, n, degrees, level
        )
    fit = fit_of(row)
    on_curve = fit.curve_degrees(fit.edges)
    quantile = intervals.student(
        level, np.full(len(on_curve), row_degrees(row)) if grouped else on_curve
    )
    half = at_edges(quantile, fit) * row["curve_se"].values
    out["curve_ci"] = intervals.around(row["curve"].values, half)
    if has_cells(row) and "cell_curve_se" in row:
        degrees_there = fit.curve_degrees(fit.pieces.edges)
        if grouped:
            degrees_there = np.full(len(degrees_there), row_degrees(row))
        half = at_cells(intervals.student(level, degrees_there), fit) * row["cell_curve_se"].values
        out["cell_curve_ci"] = intervals.around(row["cell_curve"].values, half)
    of_average = float(intervals.student(level, np.array(row_degrees(row))))
    out["average_effect_ci"] = intervals.around(
        row["average_effect"].values, of_average * row["average_effect_se"].values
    )
    return out


def _missing_interval(row: xr.Dataset, level: float) -> FloatArray:
    """Interval of the effect of a missing value, from the rows without a value."""
    degrees = np.array(float(row["n_missing"]) - 1)
    half = intervals.student(level, degrees) * row["missing_effect_se"].values
    return intervals.around(row["missing_effect"].values, half)


def _bootstrap_intervals(row: xr.Dataset, boot: xr.Dataset, level: float, method: str) -> Estimates:
    """Intervals of one feature by its replicates."""
    n_bins = row.sizes["bin"]
    names = [
        str(name) for name in boot.data_vars if name in row and f"{name}_ci" in EFFECT_VARIABLES
    ]
    if method == "studentized":
        names = [name for name in names if f"{name}_se" in boot]
    if not n_bins:
        return {f"{name}_ci": np.nan for name in names}
    out: dict[str, FloatArray] = {}
    scores = {} if method == "studentized" else _scores(row, boot, level)
    for name in names:
        estimate = np.asarray(row[name].values, dtype=np.float64)
        cut = tuple(slice(n) for n in estimate.shape)
        draws = draws_of(boot, name)[:, *cut]
        more: dict[str, FloatArray] = {}
        if method != "studentized":
            more["score"] = scores.get(name, scores["average_effect"])
        else:
            more["draws_se"] = draws_of(boot, f"{name}_se")[:, *cut]
            more["estimate_se"] = np.asarray(row[f"{name}_se"].values)
        if method == "bca" and f"{name}_acceleration" in boot:
            more["acceleration"] = boot[f"{name}_acceleration"].values[cut]
        if name != "heterogeneity" or method in ("percentile", "bca"):
            out[f"{name}_ci"] = intervals.of_replicates(draws, estimate, level, method, **more)
            continue
        # On the log scale, where the standard error hardly depends on the size.
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(draws > 0, np.log(draws), np.nan)
            if method == "studentized":
                more["draws_se"] = more["draws_se"] / draws
                more["estimate_se"] = more["estimate_se"] / estimate
            ends = intervals.of_replicates(logs, np.log(estimate), level, method, **more)
        out[f"{name}_ci"] = np.where(estimate[:, None] == 0, 0.0, np.exp(ends))
    return out


def _scores(row: xr.Dataset, boot: xr.Dataset, level: float) -> dict[str, FloatArray]:
    """Normal scores of the bootstrap quantiles, by name; totals use that of the average effect.

    Student's quantile divided by the square root of the relative variance of the replicates: an
    expanded interval (Hesterberg 2015), which for a normal mean is the t interval.
    """
    n_units, n_strata = float(boot.attrs["n_units"]), int(boot.attrs["n_strata"])
    scheme = str(boot.attrs["scheme"])
    grouped = str(boot.attrs["source"]) != SOURCE
    # The drawn units count, not the units of the standard errors.
    row = row.assign_attrs(n_groups=n_units - n_strata + 1)
    if not grouped:
        del row.attrs["n_groups"]

    def short(n: FloatArray, degrees: FloatArray) -> FloatArray:
        n = np.full(np.shape(n), n_units) if grouped else n
        return resample.shortfall(scheme, n, degrees, n_units, n_strata)

    def score(degrees: FloatArray, shortfall: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(intervals.student(level, degrees) / np.sqrt(shortfall))

    of_bins = bin_degrees(row) if grouped else spread_degrees(row)
    in_bins = score(of_bins, short(row["n_effective"].values, of_bins))
    of_rows = np.array(row_degrees(row))
    fit = fit_of(row)
    edges, cells = fit.edges, fit.cells
    # In the variance of a curve or an effect, each cell's part is too small by its own factor.
    # Replicates of a cell use its own rows, even if its variance is borrowed.
    of_cells = np.maximum(cells.n_effective - 1 - (cells.pieces.slope != 0), 0.0)
    if grouped:
        of_cells = np.full(len(of_cells), float(of_rows))
    short_cells = short(cells.n_effective, of_cells)
    parts, variance = influence.parts(fit.loadings(edges), fit.noise), fit.variance(edges)
    missing = np.sum(np.where(parts == 0, 0.0, parts * (1 - short_cells[cells.here])), axis=1)
    own = cells.of_effects
    with np.errstate(invalid="ignore", divide="ignore"):
        short_curve = np.where(variance > 0, 1 - missing / variance, 1.0)
        total = np.bincount(cells.bin, own)
        kept = np.bincount(cells.bin, np.where(own == 0, 0.0, own * short_cells))
        short_effect = np.where(total > 0, kept / total, 1.0)
    on_curve = np.full(len(edges), float(of_rows)) if grouped else fit.curve_degrees(edges)
    return {
        **dict.fromkeys(("slope", "heterogeneity"), in_bins),
        "effect": score(bin_degrees(row), short_effect),
        "curve": at_edges(score(on_curve, short_curve), fit),
        "average_effect": score(of_rows, short(of_rows + 1, of_rows)),
    }


def confband(effect: xr.Dataset, level: float, n_draws: int, rng: object) -> xr.Dataset:
    """`confband` of effects in bins and of their curve."""
    effect = with_std_error(check_effect(effect))
    streams = np.random.default_rng(rng).spawn(effect.sizes["feature"])  # type: ignore[arg-type]
    rows = [_bands(effect, number, level, n_draws, stream) for number, stream in enumerate(streams)]
    facts: dict[str, str | float] = {
        "method": "largest standardised error of a normal curve",
        "kind": "simultaneous over the axis",
        "ci_prob": level,
        "ci_kind": "confidence",
    }
    found = {}
    for name, array in stacked(rows, effect.sizes["bin"], **cell_sizes(effect)).items():
        of = name.removesuffix("_band")
        found[name] = variable(
            name, array, target=target_of(effect, of), source=source_of_errors(effect, of), **facts
        )
    return effect.assign(found).assign_coords(ci_bound=("ci_bound", ["lower", "upper"]))


def _bands(
    effect: xr.Dataset, number: int, level: float, n_draws: int, rng: np.random.Generator
) -> Estimates:
    """Bands of one feature."""
    row = one_feature(effect, number)
    if not row.sizes["bin"]:
        cells = {"cell_curve_band": np.nan} if "cell_curve_se" in row else {}
        return {"curve_band": np.nan, "effect_band": np.nan, **cells}
    fit = fit_of(row)
    # At all edges of cells, which do not depend on the bins: between them the curve is straight.
    z, degrees, sources = fit.pieces.edges, *_errors_of(row, fit, fit.pieces.edges)
    covariance = _cell_covariance(row, fit)
    score = intervals.largest_deviation(covariance, level, degrees, n_draws, rng, sources)
    quantile = intervals.score_quantile(score, np.broadcast_to(degrees, z.shape))
    half = at_edges(quantile[np.searchsorted(z, fit.edges)], fit) * row["curve_se"].values
    out: dict[str, FloatArray | float] = {"curve_band": intervals.around(row["curve"].values, half)}
    if "cell_curve_se" in row and not has_cells(row):
        # A feature with levels, in a Dataset in which another feature has cells.
        out["cell_curve_band"] = np.nan
    elif "cell_curve_se" in row:
        half = at_cells(quantile, fit) * row["cell_curve_se"].values
        out["cell_curve_band"] = intervals.around(row["cell_curve"].values, half)
    known = row["effect_se"].notnull().values
    if has_covariance(row):
        own = vcov(effect, number, of="effect").values[np.ix_(known, known)]
        of_bins = degrees if "n_groups" in row.attrs else bin_degrees(row)[known]
        score = intervals.largest_deviation(own, level, of_bins, n_draws, rng)
        quantile = intervals.score_quantile(score, bin_degrees(row))
    else:
        # Bins are independent: each has level^(1/K), with its own degrees of freedom.
        quantile = intervals.student(level ** (1 / max(int(known.sum()), 1)), bin_degrees(row))
    half = quantile * row["effect_se"].values
    return {**out, "effect_band": intervals.around(row["effect"].values, half)}


def _errors_of(
    row: xr.Dataset, fit: Fit, z: FloatArray
) -> tuple[FloatArray | float, intervals.Sources | None]:
    """Degrees of freedom of the curve at points (one number for groups), and their sources."""
    if "n_groups" in row.attrs:
        return float(row.attrs["n_groups"]) - 1, None
    sources = fit.sources(z)
    return sources.satterthwaite(fit.variance(z)), sources


def _cell_covariance(row: xr.Dataset, fit: Fit) -> FloatArray:
    """Covariance of the curve at the edges of its cells, stored for groups."""
    if not has_covariance(row):
        return fit.covariance(fit.pieces.edges)
    name = "cell_curve_cov" if has_cells(row) else "curve_cov"
    at = slice(fit.cells.here.start, fit.cells.here.stop + 1)
    return np.asarray(row[name].values[at, at])
