"""Intervals and bands of effects in bins (math section 5)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import xarray as xr

from rhale_stats.arguments.words import warn
from rhale_stats.arrays import influence, intervals, resample
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.effects.errors import with_std_error
from rhale_stats.effects.fit import (
    GROUP_DEGREES,
    SOURCE,
    Feature,
    average_degrees,
    bin_degrees,
    curve_degrees,
    degrees_in_bins,
    features_of,
    row_spread_degrees,
    source_of_errors,
    spread_degrees,
    spread_rows,
    target_of,
)
from rhale_stats.effects.spread import spread_estimate
from rhale_stats.inference.draws import check_boot, draws_of
from rhale_stats.inference.estimate import (
    CentralMoments,
    Estimate,
    Facts,
    Joint,
    Replicates,
    chosen_method,
    independent_quantiles,
    joint_quantiles,
    of_one_scale,
    with_bands,
    with_intervals,
)
from rhale_stats.parallel import cpus, in_threads, one_blas_thread
from rhale_stats.schema.all_features import AllFeatures
from rhale_stats.schema.curves import CurveErrors
from rhale_stats.schema.feature_result import FeatureResult, all_features, has_moments, one_feature
from rhale_stats.schema.features import is_grouped, own_facts, stores_errors
from rhale_stats.schema.padding import Estimates, pad_features, padded
from rhale_stats.schema.variables import EFFECT_VARIABLES, variable, with_variables, without

MAKER = "bootstrap(local, effect)"
# Share of a standard error below which replicates are said to vary too little, if there are many.
NARROW, MANY = 0.75, 200
VARYING = ("slope", "heterogeneity", "effect", "curve", "average_effect")
# Replicates of these repeat their bias, which "bca" takes off: it is what they have by default.
SPREADS = ("heterogeneity", "heterogeneity_index", "heterogeneity_output")
WITH_ERRORS = ("effect", "slope", "heterogeneity", "curve", "average_effect")


def confint(
    effect: xr.Dataset,
    boot: xr.Dataset | None = None,
    level: float = 0.95,
    method: str | None = None,
) -> xr.Dataset:
    """`confint` of effects in bins and of their curve, pointwise."""
    effect = with_std_error(effect)
    chosen = chosen_method(method, boot, ("normal", *intervals.METHODS))
    if chosen == "normal":
        return confint_of(effect, level)
    # Some of its variables may have been selected.
    some = isinstance(boot, xr.Dataset) and any(name in boot for name in VARYING)
    boot = check_boot(effect, boot, () if some else ("effect",), MAKER, chosen)
    _warn_of_narrow(effect, boot)
    features = features_of(effect)
    results = replicated(effect, features, boot, chosen)
    # Replicates have no curve between the edges of bins, and no spread in bins of its own.
    effect = without(effect, "spread_ci", "curve_ci")
    of_spread = SPREADS if method is None else ()
    spreads = {name: results.pop(name) for name in of_spread if name in results}
    out = with_intervals(effect, results | _missing_effect(effect), level, chosen)
    out = with_intervals(out, spreads, level, "bca") if spreads else out
    return _at_all_edges(out, [row for row, _ in features])


def _warn_of_narrow(effect: xr.Dataset, boot: xr.Dataset) -> None:
    """Say where replicates vary less than the standard errors of the same source."""
    alike = boot.attrs.get("source") == effect["effect_se"].attrs.get("source")
    draws = [dim for dim in ("chain", "draw") if dim in boot.dims]
    n_draws = np.prod([boot.sizes[dim] for dim in draws])
    if not alike or n_draws < MANY or "bin" not in boot.get("effect", boot).dims:
        return
    narrow = boot["effect"].std(draws, ddof=1) < NARROW * effect["effect_se"]
    names = effect["feature"].values[narrow.any("bin").values]
    if len(names):
        warn(
            f"Replicates vary by less than {100 * NARROW:.0f} % of the standard errors in bins of "
            f"{', '.join(map(str, names))}: rows that are alone in a cell do not vary as rows are "
            f"drawn. Their intervals are too short; leave out boot, or take wider cells."
        )


def confint_of(effect: xr.Dataset, level: float) -> xr.Dataset:
    """The effect with intervals by its standard errors."""
    results = estimates(effect) | _missing_effect(effect) | spread_estimate(effect)
    out = with_intervals(without(effect, "spread_ci"), results, level, "normal")
    if "stretch" not in out.dims:
        return out
    short = out.variables["spread_ci"]
    together = all_features(effect)
    is_stretch = np.isfinite(together.by_feature(together.spread_sums.n_obs))
    ends = together.in_cells(short.values[is_stretch])
    along = {"spread_ci": xr.Variable(("feature", "edge", "ci_bound"), ends, short.attrs)}
    return with_variables(without(out, "spread_ci"), along)


def _at_all_edges(result: xr.Dataset, rows: Sequence[FeatureResult]) -> xr.Dataset:
    """The result with intervals of the curve along all edges that were made at those of bins.

    The same where there are none.
    """
    if "bin_edge" not in result.dims:
        return result
    short = result.variables["curve_ci"]
    pairs = zip(rows, short.values, strict=True)
    each = [row.along_edges(ends[: len(row.bin_edges)]) for row, ends in pairs]
    along = padded(each, [result.sizes["edge"], 2])
    variables = {"curve_ci": xr.Variable(("feature", "edge", "ci_bound"), along, short.attrs)}
    return with_variables(without(result, "curve_ci"), variables)


def with_own_intervals(effect: xr.Dataset) -> xr.Dataset:
    """The effect with its intervals; missing ones are added by `confint` if possible."""
    return effect if "curve_ci" in effect or not has_moments(effect) else confint(effect)


def estimates(effect: xr.Dataset) -> dict[str, Estimate]:
    """All that has a standard error, with its degrees of freedom."""
    results = _with_errors(effect, [name for name in WITH_ERRORS if f"{name}_se" in effect])
    together, by_rows = all_features(effect), not stores_errors(effect)
    degrees = _row_degrees(effect, together) if by_rows else _stored_degrees(effect, results)
    out = {name: estimate._replace(degrees=degrees[name]) for name, estimate in results.items()}
    spread = out["heterogeneity"]._replace(log=True)
    if has_moments(effect) and by_rows:
        residuals, n = together.residuals, together.n_effective
        each = residuals.third_moment, residuals.fourth_moment, n
        moments = CentralMoments(*map(together.padded, each))
        if together.squares is not None:
            counted = together.padded(spread_rows(together))
            moments = moments._replace(n=counted, n_effective=moments.n)
        spread = spread._replace(moments=moments)
    elif is_grouped(effect) and "parameters" not in effect.attrs and spread.se is not None:
        raised = intervals.shared_error(spread.values, spread.se, np.asarray(spread.degrees))
        spread = spread._replace(se=raised)
    return out | {"heterogeneity": spread}


def _stored_degrees(effect: xr.Dataset, names: Iterable[str]) -> dict[str, FloatArray]:
    """Degrees of freedom of errors by groups or parameters, which the result holds."""
    # Effects of the outcome have no slopes, and none of their degrees.
    sources = {name: name if f"{name}_df" in effect else "heterogeneity" for name in names}
    return {
        name: effect.variables[f"{source}_df"].transpose(*EFFECT_VARIABLES[name][0]).values
        for name, source in sources.items()
    }


def _row_degrees(effect: xr.Dataset, together: AllFeatures) -> dict[str, FloatArray]:
    """Degrees of freedom of errors by rows of all features, by name, as they are in the Dataset."""
    of_curves = together.cells.variance_sources.degrees_at_edges(
        *together.parts_at_edges, together.variance_at_edges
    )
    of_spread = together.padded(row_spread_degrees(together))
    degrees = {
        "effect": degrees_in_bins(together),
        **dict.fromkeys(("slope", "heterogeneity"), of_spread),
        "curve": together.known_at_edges(of_curves),
        "average_effect": average_degrees(together),
    }
    for feature in np.flatnonzero(together.has_levels).tolist():
        row = one_feature(effect, feature)
        at_levels = curve_degrees(row, row.fit, row.fit.pieces.edges)
        degrees["curve"][feature, : len(row.edges)] = row.fit.cells.at_edges(at_levels)
    return degrees


def _with_errors(effect: xr.Dataset, names: Sequence[str]) -> dict[str, Estimate]:
    """Values with the standard errors of those that have one, over all features."""
    out = {}
    for name in names:
        dims, long_name, units = EFFECT_VARIABLES[name]
        values = {
            key: effect.variables[key].transpose(*dims).values
            for key in (name, f"{name}_se", f"{name}_skewness")
            if key in effect
        }
        source = source_of_errors(effect, name) if f"{name}_se" in values else SOURCE
        out[name] = Estimate(
            np.asarray(values[name], dtype=np.float64),
            Facts(dims, long_name, units, target_of(effect, name), source),
            values.get(f"{name}_se"),
            skewness=values.get(f"{name}_skewness", 0.0),
        )
    return out


def _missing_effect(effect: xr.Dataset) -> dict[str, Estimate]:
    """The effect of a missing value, from the rows without a value."""
    names = [name for name in ("missing_effect",) if f"{name}_se" in effect]
    return {
        name: estimate._replace(degrees=effect["n_missing"].values - 1.0)
        for name, estimate in _with_errors(effect, names).items()
    }


def replicated(
    effect: xr.Dataset, features: Sequence[Feature], boot: xr.Dataset, method: str
) -> dict[str, Estimate]:
    """All that has replicates, and with "studentized" standard errors of these."""
    rows = [row for row, _ in features]
    if "heterogeneity_index" in boot and "heterogeneity_index" not in effect:
        index = np.array([row.heterogeneity_index for row in rows])
        effect = effect.assign(heterogeneity_index=variable("heterogeneity_index", index))
    names = [str(name) for name in boot.data_vars if f"{name}_ci" in EFFECT_VARIABLES]
    names = [name for name in names if name in effect]
    studentized = method == "studentized"
    if studentized:
        names = [name for name in names if f"{name}_se" in boot]
    varying = [
        _varying(*feature, own_facts(boot.isel(feature=k))) for k, feature in enumerate(features)
    ]
    degrees, shortfall = [pad_features(each, effect.sizes) for each in zip(*varying, strict=True)]

    def at_bins(along_edges: FloatArray) -> FloatArray:
        pairs = zip(rows, along_edges, strict=True)
        each = [values[row.bin_edge_numbers] for row, values in pairs]
        return padded(each, [effect.sizes["bin"] + 1])

    out = {}
    for name, estimate in _with_errors(effect, names).items():
        # Totals are cut as the average effect.
        source = name if name in degrees else "average_effect"
        if name == "curve":
            facts = estimate.facts._replace(dims=("feature", "bin_edge"))
            se = None if estimate.se is None else at_bins(estimate.se)
            estimate = estimate._replace(values=at_bins(estimate.values), facts=facts, se=se)
            for of_curve in (degrees, shortfall):
                of_curve["curve"] = at_bins(of_curve["curve"])
        draws = Replicates(draws_of(boot, name, estimate.facts.dims), str(boot.attrs["source"]))
        if studentized:
            draws = draws._replace(se=draws_of(boot, f"{name}_se", estimate.facts.dims))
        else:
            draws = draws._replace(degrees=degrees[source], shortfall=shortfall[source])
        if f"{name}_acceleration" in boot:
            draws = draws._replace(acceleration=boot[f"{name}_acceleration"].values)
        out[name] = estimate._replace(replicates=draws._replace(log=name == "heterogeneity"))
    return out


def _varying(
    row: FeatureResult, fit: CurveErrors | None, boot: xr.Dataset
) -> tuple[Estimates, Estimates]:
    """Degrees of freedom of the replicates of one feature, and their shortfall of variance.

    Student's quantile, since the spread is estimated, over the root of the shortfall makes an
    expanded interval (Hesterberg 2015), which for a normal mean is the t interval.
    """
    n_units, n_strata = float(boot.attrs["n_units"]), int(boot.attrs["n_strata"])
    scheme = str(boot.attrs["scheme"])
    if fit is None:
        nothing = dict.fromkeys(VARYING, np.nan)
        return nothing, nothing
    if str(boot.attrs["source"]) != SOURCE:
        return _drawn_groups(row, boot)
    # The drawn rows count, not the groups of the standard errors.
    if row.stores_errors:
        row = row.without(*GROUP_DEGREES, "n_groups", "feature_n_groups")

    def short(n: FloatArray, degrees: FloatArray) -> FloatArray:
        return resample.shortfall(scheme, n, degrees, n_units, n_strata)

    of_effect, of_bins = bin_degrees(row), spread_degrees(row)
    of_spread = short(row.n_effective, of_bins)
    of_rows = average_degrees(row.together)[row.position]
    cells, edges = fit.cells, fit.pieces.edges
    # In the variance of a curve or an effect, each cell's part is too small by its own factor.
    # Replicates of a cell use its own rows, even if its variance is borrowed.
    of_cells = np.maximum(cells.n_effective - 1 - (cells.pieces.slope != 0), 0.0)
    short_cells = short(cells.n_effective, of_cells)
    parts, variance = influence.parts(fit.loadings(edges), fit.noise), fit.variance(edges)
    missing = np.sum(np.where(parts == 0, 0.0, parts * (1 - short_cells[cells.stretch])), axis=1)
    cell_parts = cells.effect_parts
    with np.errstate(invalid="ignore", divide="ignore"):
        short_curve = np.where(variance > 0, 1 - missing / variance, 1.0)
        total = np.bincount(cells.bin, cell_parts)
        remaining = np.bincount(cells.bin, np.where(cell_parts == 0, 0.0, cell_parts * short_cells))
        short_effect = np.where(total > 0, remaining / total, 1.0)
    return {
        **dict.fromkeys(("slope", "heterogeneity"), of_bins),
        "effect": of_effect,
        "curve": fit.cells.at_edges(fit.curve_degrees(edges)),
        "average_effect": of_rows,
    }, {
        **dict.fromkeys(("slope", "heterogeneity"), of_spread),
        "effect": short_effect,
        "curve": fit.cells.at_edges(short_curve),
        "average_effect": short(of_rows + 1, of_rows),
    }


def _drawn_groups(row: FeatureResult, boot: xr.Dataset) -> tuple[Estimates, Estimates]:
    """Degrees of freedom and shortfall of replicates by groups, by their shares (math [29]).

    For means of groups with equal shares the degrees are groups less one, and the shortfall is that
    of as many rows.
    """
    n_strata, scheme = int(boot.attrs["n_strata"]), str(boot.attrs["scheme"])
    sizes = {"curve": row.sizes["bin"] + 1, "average_effect": 0}
    degrees, shortfall = {}, {}
    for name in VARYING:
        if f"{name}_df" not in boot:
            continue
        df = np.asarray(boot[f"{name}_df"].values, dtype=np.float64)
        df = df[: sizes.get(name, row.sizes["bin"])] if df.ndim else df
        df = row.along_edges(df) if name == "curve" else df
        degrees[name] = np.maximum(df - (n_strata - 1), 0.0)
        shortfall[name] = _shortfall_of_groups(scheme, df, n_strata)
    return degrees, shortfall


def _shortfall_of_groups(scheme: str, degrees: FloatArray, n_strata: int) -> FloatArray:
    n_units = degrees + 1
    if scheme == "multinomial":
        return np.asarray(1 - np.minimum(n_strata / n_units, 0.5))
    return resample.shortfall(scheme, n_units, degrees, 1.0, n_strata)


def confband(effect: xr.Dataset, level: float, n_draws: int, rng: object) -> xr.Dataset:
    """`confband` of effects in bins and of their curve."""
    return confband_of(with_std_error(effect), level, n_draws, rng)


def confband_of(effect: xr.Dataset, level: float, n_draws: int, rng: object) -> xr.Dataset:
    """The effect with bands by its standard errors."""
    features = features_of(effect)
    streams = np.random.default_rng(rng).spawn(effect.sizes["feature"])  # type: ignore[arg-type]
    results = _with_errors(effect, ("curve", "effect"))
    effect_se = effect["effect_se"].values

    def of_feature(number: int) -> Estimates:
        return _quantiles(*features[number], effect_se[number], level, n_draws, streams[number])

    with one_blas_thread:
        rows = in_threads(of_feature, range(len(features)), cpus())
    rows = [{name: quantiles[name] for name in results} for quantiles in rows]
    quantiles = pad_features(rows, effect.sizes)
    return with_bands(effect, results, quantiles, level)


def _quantiles(
    row: FeatureResult,
    fit: CurveErrors | None,
    effect_se: FloatArray,
    level: float,
    n_draws: int,
    rng: np.random.Generator,
) -> Estimates:
    """Quantiles that hold the curve and the effects of one feature at once."""
    if fit is None:
        return dict.fromkeys(("curve", "effect"), np.nan)
    # At all edges of cells, whatever the bins: between two of them the curve is straight.
    z, joint = fit.pieces.edges, _joint_errors(row, fit)
    quantile = joint_quantiles(joint, np.broadcast_to(joint.degrees, z.shape), level, n_draws, rng)
    out: dict[str, FloatArray | float] = {"curve": fit.cells.at_edges(quantile)}
    degrees, effect_se = bin_degrees(row), effect_se[: row.sizes["bin"]]
    if not row.has_covariance:
        return {**out, "effect": independent_quantiles(effect_se, degrees, level)}
    has_se = np.isfinite(effect_se)
    covariance = row.effect_cov[np.ix_(has_se, has_se)]
    of_bins = Joint(covariance, degrees[has_se])
    return {**out, "effect": joint_quantiles(of_bins, degrees, level, n_draws, rng)}


def _joint_errors(row: FeatureResult, fit: CurveErrors) -> Joint:
    """Errors of the curve at the edges of its cells; one estimate of scale for groups."""
    z = fit.pieces.edges
    if not row.has_covariance:
        covariance = fit.covariance(z)
    else:
        edges = fit.cells.edge_stretch
        covariance = np.asarray(row["curve_cov"].values[edges, edges])
    if row.stores_errors:
        return of_one_scale(covariance, curve_degrees(row, fit, z))
    sources = fit.sources(z)
    return Joint(covariance, sources.satterthwaite(fit.variance(z)), sources)
