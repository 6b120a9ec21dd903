"""Errors, intervals, bands and bootstrap of profiles (math [29], [80]), and their differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike
from scipy import sparse

from rhale_stats.arguments.rows import as_numbers
from rhale_stats.arguments.survey import GroupsOrDesign, SurveyDesign, row_groups, units_text
from rhale_stats.arguments.times import as_values
from rhale_stats.arrays import delta, intervals, quadratic, resample
from rhale_stats.arrays import profiles as kernel
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.arrays.survey import SamplingDesign
from rhale_stats.inference import meaning
from rhale_stats.inference.combinations import Estimates
from rhale_stats.inference.draws import (
    Replication,
    Resampling,
    check_boot,
    draws_of,
    labelled_draws,
)
from rhale_stats.inference.estimate import (
    Estimate,
    Joint,
    Replicates,
    chosen_method,
    covariance_array,
    estimate_of,
    joint_quantiles,
    of_one_scale,
    with_bands,
    with_intervals,
)
from rhale_stats.inference.parameters import (
    KIND,
    Directions,
    check_model,
    errors,
    options_of,
    refuse_shared,
    sources,
)
from rhale_stats.inference.results import (
    CONSTANT,
    ComparisonOptions,
    Size,
    Wald,
    against_f,
    difference_of,
    features_in_common,
    fields_of_tests,
    labelled_differences,
    labelled_test,
    no_difference,
)
from rhale_stats.models.parametric import ROW_NUMBER, Fitted
from rhale_stats.printing.text import number_text, place_texts
from rhale_stats.profiles.data import (
    N_GRID,
    ProfileAxis,
    check_profile,
    is_nominal,
    levels_in,
    one_profile,
    pair_of,
)
from rhale_stats.profiles.inputs import ProfileInputs, at_rows
from rhale_stats.profiles.rows import (
    KEPT,
    BinnedOutputs,
    Curves,
    RowsBehind,
    check_curves,
    rows_behind,
)
from rhale_stats.schema.curves import interpolation
from rhale_stats.schema.features import feature_names, given_feature, label_of, own_facts, units_in
from rhale_stats.schema.identity import OF_ESTIMATE, estimate_fingerprint, model_facts, row_labels
from rhale_stats.schema.kinds import PROFILE
from rhale_stats.schema.levels import level_text
from rhale_stats.schema.padding import padded
from rhale_stats.schema.variables import OUTPUT_UNITS, variable


def one_relative(profile: xr.Dataset, feature: str | int, value: Any) -> xr.Dataset:
    """One feature of a profile, whose curve is 0 at a value of it where one is given.

    Its intervals are then those of the difference: variances are those of F(z) - F(r), from the
    covariance of the curve; between two points of the grid the curve at the value is interpolated.
    ICE curves are 0 there as well, and the spread is theirs; without ICE curves the spread of
    differences is not known, and left out.
    """
    row = one_profile(profile, feature)
    if value is None:
        return row
    if not is_nominal(row):
        value = float(as_numbers(as_values([value]), "reference")[0])
    weight = _place(row, value)
    text = level_text(value) if is_nominal(row) else number_text(value)
    name = label_of(row, str(row["feature"].values))
    curve = row["curve"].values
    out = row.assign(
        curve=row["curve"].copy(data=curve - float(weight @ curve)),
        curve_std=xr.full_like(row["curve_std"], np.nan),
    )
    out.attrs["reference"] = f"{name} = {text}"
    if "ice" in row:
        out = _with_rows(out, weight)
    covariance = row["curve_cov"].values
    shared, variance = covariance @ weight, float(weight @ covariance @ weight)
    covariance = covariance - shared[:, None] - shared + variance
    covariance[weight == 1] = covariance[:, weight == 1] = 0.0
    degrees = degrees_of(row)
    degrees = np.minimum(degrees, degrees[weight > 0].min())
    se = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    out = out.drop_vars(["curve_se_rows", "curve_ci_rows"], errors="ignore")
    out["curve_se"] = row["curve_se"].copy(data=se)
    estimates = {"curve": estimate_of(out, "curve", degrees, long_name="the curve")}
    if "curve_ci" in row:
        level = float(row["curve_ci"].attrs.get("ci_prob", 0.95))
        out = with_intervals(out, estimates, level, "normal")
    if "curve_band" in row:
        level = float(row["curve_band"].attrs.get("ci_prob", 0.95))
        joint, rng = of_one_scale(covariance, degrees), np.random.default_rng(0)
        quantiles = joint_quantiles(joint, degrees, level, intervals.N_DRAWS, rng)
        out = with_bands(out, estimates, {"curve": quantiles}, level)
    return out


def _with_rows(out: xr.Dataset, weight: FloatArray) -> xr.Dataset:
    """ICE curves that are 0 at the reference, and their spread."""
    curves = out["ice"].transpose("obs", "grid").values
    curves = curves - (curves @ weight)[:, None]
    is_finite = np.isfinite(curves).all(axis=1)
    rows = out["weight"].values[is_finite] if "weight" in out else None
    apart = curves[is_finite] - out["curve"].values
    spread = np.sqrt(np.average(apart**2, axis=0, weights=rows))
    attrs = out["ice"].attrs
    return out.assign(
        ice=(("obs", "grid"), curves, attrs), curve_std=out["curve_std"].copy(data=spread)
    )


def _place(row: xr.Dataset, value: Any) -> FloatArray:
    """Weights of the points of the grid in the curve at a value."""
    name, grid = str(row["feature"].values), row["grid_value"].values
    if is_nominal(row):
        names = levels_in(row)
        if level_text(value) not in names:
            raise ValueError(
                f"reference must be a level of {name!r}, {', '.join(map(repr, names))}; got "
                f"{value!r}."
            )
        return np.asarray(np.eye(len(grid))[names.index(level_text(value))])
    if not len(grid):
        raise ValueError(f"reference must be None for {name!r}, which is constant; got {value!r}.")
    if not grid[0] <= value <= grid[-1]:
        raise ValueError(
            f"reference must be a value of {name!r} within the grid, {number_text(grid[0])} to "
            f"{number_text(grid[-1])}; got {value!r}."
        )
    return np.asarray(interpolation(grid, np.array([value]))[0])


# --- bootstrap of profiles ------------------------------------------------------------------------


# Numbers of rows and draws that are held at once.
CHUNK = 1 << 23
REPLICATED = ("curve", "curve_std", "heterogeneity_output", "importance")


def bootstrap(ice: xr.Dataset, profile: xr.Dataset | None, resampling: Resampling) -> Replication:
    """`bootstrap` of a profile, from its ICE curves or from the rows kept with it."""
    resampling.refuse_choices_of_bins()
    profile = ice if profile is None else profile
    ice = check_curves(ice, profile)
    frequency = "weight" in ice and ice.attrs["weight_kind"] == "frequency"
    counts, n_rows = ice["weight"].values if frequency else None, ice.sizes["obs"]
    units = resampling.units(n_rows, counts, np.ones(n_rows, dtype=bool), row_labels(ice))
    drawn = replicates(ice, profile, units, resampling)
    facts = {"grid": "fixed", OF_ESTIMATE: estimate_fingerprint(profile, ["curve"])}
    return Replication(drawn, units, profile, facts)


def replicates(
    ice: xr.Dataset, profile: xr.Dataset, units: resample.ResampledUnits, resampling: Resampling
) -> xr.Dataset:
    """math [29]: the profile with the rows weighted anew, over (draw, feature, ...)."""
    names, centering = feature_names(profile), str(profile.attrs["centering"])
    features, n_draws = [rows_behind(ice, name) for name in names], len(resampling.seeds)
    n_empty = np.zeros((n_draws, len(names)), dtype=np.int64)
    out = {name: np.full((n_draws, *profile[name].shape), np.nan) for name in REPLICATED}
    first = 0
    for drawn in resampling.weights(units, ice.sizes["obs"], CHUNK):
        done = slice(first, first + drawn.shape[1])
        first = done.stop
        for number, rows_of_feature in enumerate(features):
            if not len(rows_of_feature.grid):
                continue
            drawn_estimates = rows_of_feature.replicates(drawn, centering)
            has_curve = np.isfinite(profile["curve"].values[number, : len(rows_of_feature.grid)])
            n_empty[done, number] = np.isnan(drawn_estimates.curve[:, has_curve]).sum(axis=1)
            for name, values in zip(REPLICATED, drawn_estimates, strict=True):
                place: Any = (done, number, *map(slice, values.shape[1:]))
                out[name][place] = values
    made = labelled_draws(profile, out, ("obs", "ci_bound"))
    if profile.attrs["method"] in KEPT:
        dims = ("draw", *variable("n_empty", n_empty, PROFILE)[0])
        made["n_empty"] = variable("n_empty", n_empty, PROFILE, dims)
    each = [_acceleration(rows_of_feature, centering, units) for rows_of_feature in features]
    values = padded(each, (profile.sizes["grid"],))
    return made.assign(curve_acceleration=variable("curve_acceleration", values, PROFILE))


def _acceleration(
    rows_of_feature: RowsBehind, centering: str, units: resample.ResampledUnits
) -> FloatArray:
    """sum psi^3 / (6 (sum psi^2)^(3/2)) over units, psi the influence of a unit (Efron 1987)."""
    if not len(rows_of_feature.grid):
        return np.zeros(0)
    base, psi = rows_of_feature.base, rows_of_feature.influences(centering)
    moved = psi - np.average(psi, axis=0, weights=base)
    if units.size is None:
        moved = base[:, None] * moved
    if units.unit is not None:
        moved = delta.summed(moved, units.unit)
    size = np.ones(len(moved)) if units.size is None else units.size
    second, third = size @ moved**2, size @ moved**3
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(second > 0, third / (6 * second**1.5), 0.0)


# --- intervals and bands of profiles --------------------------------------------------------------


ERRORS = ("curve_se", "curve_cov")
NO_ERRORS = "Make it again: it is of an older version."
METHODS = ("percentile", "basic", "bca")
PARALLEL = "the curves of all rows are parallel up to rounding, so there is no sampling error"


def with_errors(profile: xr.Dataset, parameter: str = "effect") -> xr.Dataset:
    """The profile, which has its standard errors already."""
    return check_profile(profile, parameter, needs=ERRORS, advice=NO_ERRORS)


def std_error(
    profile: xr.Dataset, local: xr.Dataset | None, groups: ArrayLike | None, fitted: Fitted | None
) -> xr.Dataset:
    """The profile itself; or with errors by groups of rows, and with parameters of the model."""
    profile, method = with_errors(profile), str(profile.attrs["method"])
    rows = local if local is None else check_curves(local, profile)
    if rows is None and any(name in profile for name in ("ice", "output_value", "shap_value")):
        rows = profile
    if method == "shap_dependence" and fitted is not None:
        raise ValueError(
            "model must be None for shap_dependence, whose standard errors take the Shapley values "
            "as given. For the uncertainty of parameters refit the model, bootstrap_refit, or take "
            "pdp or ale."
        )
    # With groups the model gives the curves of the rows where they were not kept.
    if fitted is not None and fitted.uncertainty == "rows" and (groups is None or rows is not None):
        fitted = None
    made = "n_groups" in profile.attrs or "parameters" in profile.attrs
    if groups is None and fitted is None and not (made and rows is not None):
        return profile
    if groups is None and method == "shap_dependence":
        raise ValueError(
            "groups must be given for a shap_dependence that has errors by groups. For errors by "
            "rows make it again: shap_dependence(model, X)."
        )
    if groups is not None and fitted is None and rows is None:
        raise ValueError(
            "groups need the ICE curves of a profile of pdp, or its model. Pass them: "
            "std_error(profile, ice(model, X), groups=...), or std_error(profile, groups=..., "
            "model=results, X=X)."
        )
    directions = from_model = None
    if fitted is not None:
        directions = Directions.from_fit(
            fitted,
            profile.attrs | model_facts(profile),
            frequency=str(profile.attrs["weight_kind"]) == "frequency",
            is_survey=isinstance(groups, SurveyDesign),
        )
        from_model = FromModel(profile, rows, directions)
    code, n_groups = groups_of(groups, rows, from_model)
    errors_of_features = [
        _of_feature(profile, name, rows, code, from_model) for name in feature_names(profile)
    ]
    return _with_errors(profile, errors_of_features, units_text(code), n_groups, directions)


def vcov(profile: xr.Dataset, feature: str | int | None, estimand: str) -> xr.DataArray:
    """``curve_cov`` of one feature, over (grid, grid_other)."""
    feature = given_feature(feature, "vcov(effect, 'dose')", profile)
    if estimand != "curve":
        raise ValueError(f"of must be 'curve' for profiles, which have no bins; got {estimand!r}.")
    row = one_profile(with_errors(profile), feature)
    facts = estimate_of(row, "curve", long_name="curve").facts
    axes = {"grid": row["grid"].values}
    return covariance_array(row["curve_cov"].values, axes, facts, str(row["feature"].values))


def for_hypotheses(
    profile: xr.Dataset, feature: str | int | None, estimand: str | None, local: Any, groups: Any
) -> Estimates:
    """The curve of one feature at its grid, for `hypotheses`."""
    feature = given_feature(feature, "hypotheses(profile, feature='dose')", profile)
    covariance = vcov(profile, feature, estimand or "curve")
    row = one_profile(with_errors(profile), feature)
    rows = profile if local is None else check_curves(local, profile)
    return Estimates(
        levels_in(row) or place_texts(row["grid_value"].values, units_in(row), 6),
        np.asarray(row["curve"].values, dtype=np.float64),
        covariance.values,
        degrees_of(row),
        str(profile["curve"].attrs["units"]),
        str(covariance.attrs["source"]),
        f"the curve of {row['feature'].item()}",
        places=None if is_nominal(row) else np.asarray(row["grid_value"].values),
        place_units=units_in(row),
        slopes=row.attrs.get("ice_kind") == "derivative",
        influences=influences_of(profile, row, rows, groups),
    )


def degrees_of(row: xr.Dataset) -> FloatArray:
    """Degrees of freedom of the curve along the grid."""
    if "curve_df" in row:
        return np.array(np.nan_to_num(row["curve_df"].values, posinf=np.inf))
    return degrees_of_rows(row)


def degrees_of_rows(row: xr.Dataset) -> FloatArray:
    """Rows, or those of the bin, less one."""
    degrees = np.maximum(np.asarray(row["n_effective"].values, dtype=np.float64) - 1, 0.0)
    if degrees.ndim < row["curve"].ndim:
        degrees = degrees[..., None]
    return np.array(np.broadcast_to(degrees, row["curve"].shape))


def confint(
    profile: xr.Dataset, boot: xr.Dataset | None, level: float, method: str | None
) -> xr.Dataset:
    """``curve_ci`` by standard errors and Student's t, or by replicates."""
    profile = with_errors(profile)
    chosen = chosen_method(method, boot, ("normal", *METHODS))
    estimate = _curves(profile)
    if chosen != "normal":
        boot = check_boot(profile, boot, ["curve"], "bootstrap(ice, profile)", chosen)
        estimate = estimate._replace(replicates=_replicates(profile, boot))
    return with_intervals(profile, {"curve": estimate}, level, chosen)


def _curves(profile: xr.Dataset) -> Estimate:
    """The curves of all features with their standard errors, (feature, grid)."""
    profile = profile.transpose("feature", "grid", ...)
    return estimate_of(profile, "curve", degrees_of(profile), long_name="the curve")


def _replicates(profile: xr.Dataset, boot: xr.Dataset) -> Replicates:
    """Replicates of the curves, whose intervals are expanded as those of effects are."""
    degrees = degrees_of_rows(profile)
    n, grouped = degrees + 1, str(boot.attrs["source"]) != "rows"
    short = np.empty(degrees.shape)
    for number in range(len(degrees)):
        facts = own_facts(boot.isel(feature=number)).attrs
        n_units, n_strata = float(facts["n_units"]), int(facts["n_strata"])
        if grouped:
            of_units = float(facts.get("units_df", n_units - 1))
            degrees[number] = max(of_units - (n_strata - 1), 0.0)
            n[number], n_units = of_units + 1, max(of_units + 1, 2.0 * n_strata)
        scheme = str(boot.attrs["scheme"])
        short[number] = resample.shortfall(scheme, n[number], degrees[number], n_units, n_strata)
    return Replicates(
        draws_of(boot, "curve", ("feature", "grid")),
        str(boot.attrs["source"]),
        degrees,
        short,
        boot["curve_acceleration"].values if "curve_acceleration" in boot else 0.0,
    )


def confband(profile: xr.Dataset, level: float, n_draws: int, rng: object) -> xr.Dataset:
    """``curve_band``: math [27] with ``curve_cov``."""
    profile = with_errors(profile)
    streams = np.random.default_rng(rng).spawn(profile.sizes["feature"])  # type: ignore[arg-type]
    quantiles = []
    for number, stream in enumerate(streams):
        row = one_profile(profile, number)
        degrees = degrees_of(row)
        # All points of a grid share their rows, and bins have rows of their own.
        shared = row["n_effective"].ndim == 0
        covariance = row["curve_cov"].values
        joint = Joint(covariance, float(degrees.max(initial=0.0)) if shared else degrees)
        if "curve_df" in row and np.isfinite(degrees).any():
            joint = of_one_scale(covariance, degrees)
        quantiles.append(joint_quantiles(joint, degrees, level, n_draws, stream))
    by_name = {"curve": padded(quantiles, (profile.sizes["grid"],))}
    return with_bands(profile, {"curve": _curves(profile)}, by_name, level)


def wald_test(
    profile: xr.Dataset, null: str, method: str, adjust: str, local: xr.Dataset | None
) -> xr.Dataset:
    """`wald_test` of profiles: whether the curve is constant (math [31])."""
    if null != "zero" or method != "box" or local is not None:
        raise ValueError(
            f"null must be 'zero', and method and local left out, for a profile: its test is of no "
            f"change of the curve; got null {null!r}, method {method!r}. Take rhale or ale for "
            f"other hypotheses."
        )
    profile = with_errors(profile)
    if profile.attrs["method"] == "shap_dependence":
        raise ValueError(
            "effect must not be of shap_dependence: its standard errors take the Shapley values as "
            "given, though all of them share a background, and a test rejected 50 to 70 % of true "
            "hypotheses. Take pdp, m_plot or ale."
        )
    tests = [_without_change(one_profile(profile, name)) for name in feature_names(profile)]
    return labelled_test(
        profile,
        fields_of_tests(tests, of_f=True),
        adjust,
        null="the curve is constant",
        source=str(profile["curve_se"].attrs["source"]),
        test="wald_test, null 'zero', method 'box'",
        size=Size(
            "root mean square of the curve over the rows, without the part of noise", OUTPUT_UNITS
        ),
    )


def _without_change(row: xr.Dataset) -> Wald:
    """Test that the points of a curve have one value: of its weighted square about the mean."""
    value, weight, degrees = row["curve"].values, row["weight_share"].values, degrees_of(row)
    is_known = np.isfinite(value) & np.isfinite(row["curve_se"].values) & (weight > 0)
    if is_known.sum() < 2:
        return Wald(reason=CONSTANT if row.sizes["grid"] < 2 else meaning.NO_ROWS)
    value, weight, degrees = value[is_known], weight[is_known], degrees[is_known]
    covariance = row["curve_cov"].values[np.ix_(is_known, is_known)]
    form = quadratic.form(
        value, sparse.diags_array(weight).tocsr(), sparse.csr_array(covariance), np.ones(len(value))
    )
    rounding = quadratic.ROUNDING * float(weight @ np.diagonal(covariance))
    if form.expected <= max(_rounding(row) ** 2, rounding):
        return Wald(reason=PARALLEL)
    # Points of a grid share their rows; bins have rows of their own (Satterthwaite).
    denominator = float(degrees.min())
    if row["n_effective"].ndim:
        denominator = form.expected**2 / float(np.sum(form.parts**2 / np.maximum(degrees, 1.0)))
    return against_f(form, denominator, float(weight.sum()))


# --- two profiles ---------------------------------------------------------------------------------


class CommonGrid(NamedTuple):
    """Values of two profiles on their common grid, with the covariance of the difference."""

    grid: FloatArray
    values: tuple[FloatArray, FloatArray]
    covariance: FloatArray
    degrees: FloatArray


def compared(
    a: xr.Dataset,
    b: xr.Dataset,
    name: str,
    pairs: tuple[xr.Dataset, xr.Dataset] | None,
    code: IntArray | SamplingDesign | None = None,
) -> CommonGrid:
    """One feature of both profiles, paired if both are made from the same rows.

    ``code`` are the groups of the pairs, which may depend on each other within one. M-plots are
    compared in the bins where both have rows, at the midpoint of their mean places, math [42].
    """
    rows = one_profile(a, name), one_profile(b, name)
    _check_grids(rows, name, in_bins=a.attrs["method"] == "m_plot")
    curves, grids = ([row[key].values for row in rows] for key in ("curve", "grid_value"))
    compared_at = np.ones(len(grids[0]), dtype=bool)
    if a.attrs["method"] == "m_plot":
        compared_at = np.isfinite(curves[0]) & np.isfinite(curves[1])
    if pairs is None or not compared_at.any():  # a constant feature has no curve
        covariance = rows[0]["curve_cov"].values + rows[1]["curve_cov"].values
        variances = [row["curve_se"].values ** 2 for row in rows]
        degrees = intervals.satterthwaite(*zip(variances, map(degrees_of, rows), strict=True))
    else:
        covariance, degrees = _of_pairs(pairs, name, code, str(a.attrs["centering"]))
    return CommonGrid(
        np.mean(grids, axis=0)[compared_at],
        (curves[0][compared_at], curves[1][compared_at]),
        covariance[np.ix_(compared_at, compared_at)],
        degrees[compared_at],
    )


def _of_pairs(
    pairs: tuple[xr.Dataset, xr.Dataset],
    name: str,
    code: IntArray | SamplingDesign | None,
    centering: str,
) -> tuple[FloatArray, FloatArray]:
    """Covariance of the difference of two curves of the same rows, and its degrees of freedom."""
    a, b = (rows_behind(pair_rows, name) for pair_rows in pairs)
    group = groups_at(code, a.rows)
    if isinstance(a, BinnedOutputs) and isinstance(b, BinnedOutputs):
        if not np.array_equal(a.cell, b.cell):
            raise ValueError(
                f"paired must have the rows in the same bins; those of feature {name!r} are in "
                f"others. Leave paired out for rows that are independent."
            )
        difference = replace(a, values=a.values - b.values).errors(centering, group)
        return difference.covariance, difference.degrees
    first, second = (side.errors(centering, group) for side in (a, b))
    moved = first.units.moved - second.units.moved
    return moved.T @ moved, np.minimum(first.degrees, second.degrees)


def _check_grids(rows: tuple[xr.Dataset, xr.Dataset], name: str, *, in_bins: bool) -> None:
    """Raise ``ValueError`` unless both have the same points, bins or levels."""
    levels = [levels_in(row) for row in rows]
    places = [row["grid_value"].values for row in rows]
    if in_bins:
        places = [np.append(row["bin_left"].values, row["bin_right"].values[-1:]) for row in rows]
    if np.array_equal(places[0], places[1]) and levels[0] == levels[1]:
        return
    if in_bins:
        raise ValueError(
            f"a and b must have the same bins; those of feature {name!r} differ. Make both with "
            f"bins=GivenBins of the same edges, and of the same levels."
        )
    raise ValueError(
        f"a and b must have one grid; those of feature {name!r} differ. Make b on the grid of "
        f"a: grid={{{name!r}: a['grid_value'].sel(feature={name!r}).dropna('grid')}}."
    )


def check_pairs(
    pairs: tuple[xr.Dataset, xr.Dataset], profiles: tuple[xr.Dataset, xr.Dataset]
) -> tuple[xr.Dataset, xr.Dataset]:
    """ICE curves of both profiles, of the same rows with the same weights."""
    a, b = (
        check_curves(curves, profile, f"paired[{number}]")
        for number, (curves, profile) in enumerate(zip(pairs, profiles, strict=True))
    )
    if a.sizes["obs"] != b.sizes["obs"] or not np.array_equal(a["obs"].values, b["obs"].values):
        raise ValueError(
            f"paired must be of the same rows in the same order; got {a.sizes['obs']} and "
            f"{b.sizes['obs']} rows, or other labels of them. Leave paired out for rows that are "
            f"independent."
        )
    weights = [curves["weight"].values if "weight" in curves else np.ones(0) for curves in (a, b)]
    kinds = {curves.attrs["weight_kind"] for curves in (a, b)}
    if not np.array_equal(weights[0], weights[1]) or len(kinds) > 1:
        raise ValueError("paired must have the same weights; got others. Make both with one kind.")
    return a, b


def compare(a: xr.Dataset, b: xr.Dataset, request: ComparisonOptions) -> xr.Dataset:
    """`compare` of two profiles on one grid, optionally paired by their ICE curves."""
    a, b = with_errors(a, "a"), with_errors(b, "b")
    refuse_shared(a, b, "profiles", paired=request.paired is not None)
    if request.groups is not None and request.paired is None:
        raise ValueError(
            "groups come with paired, the rows of both profiles. Without pairs give each profile "
            "its own: compare(std_error(a, ice_a, groups=...), std_error(b, ice_b, groups=...))."
        )
    names = features_in_common(a, b, ("centering", "method"))
    a, b = a.sel(feature=names), b.sel(feature=names)
    pairs = None if request.paired is None else check_pairs(request.paired, (a, b))
    code, n_groups = groups_of(request.groups, None if pairs is None else pairs[0], None)
    grouped = any("n_groups" in profile.attrs for profile in (a, b))
    if pairs is not None and n_groups is None and grouped:
        raise ValueError(
            "groups must be given for pairs of profiles with standard errors by groups: "
            "compare(a, b, paired=..., groups=...)."
        )
    differences = []
    streams = np.random.default_rng(request.rng).spawn(len(names))
    for name, stream in zip(names, streams, strict=True):
        difference = no_difference(CONSTANT)
        if len((comparison := compared(a, b, name, pairs, code)).grid):
            difference = difference_of(*comparison, request, stream)
        differences.append(difference)
    sides = " against ".join(str(profile["curve_se"].attrs["source"]) for profile in (a, b))
    source = f"{sides}, independent" if pairs is None else f"pairs of {units_text(code)}"
    return labelled_differences(differences, a, b, names, source, request)


# --- standard errors by groups, and with parameters -----------------------------------------------


# Units in the last place that a mean over rows may differ by, summed in another order.
MEAN_ROUNDING = 64
NO_PARTS = ("curve_se_rows", "curve_se_model", "curve_df", "curve_band", "curve_ci")
NO_WEIGHTS = (
    "local must be given for a profile with weights, which it does not keep. Pass the ICE curves "
    "with the same weights: std_error(profile, ice(model, X, weights=...), model=results, X=X)."
)


class FromModel:
    """The curves of a profile, asked of the model anew, with their changes by direction."""

    def __init__(self, profile: xr.Dataset, rows: xr.Dataset | None, directions: Directions):
        self.profile, self.rows, self.directions = profile, rows, directions
        table, kind = directions.changes.table, str(profile.attrs["weight_kind"])
        self.numbers, weighted = np.arange(table.n_rows), profile
        if rows is not None:
            self.numbers = np.asarray(rows[ROW_NUMBER].values)
            weighted = rows.assign_attrs(weight_kind=kind)
        elif kind != "none":
            raise ValueError(NO_WEIGHTS)
        features = {name: one_profile(profile, name) for name in feature_names(profile)}
        # A constant feature has no grid.
        varying = {name: row for name, row in features.items() if row.sizes["grid"]}
        pairs = {name: pair for name, row in varying.items() if (pair := pair_of(row))}
        self.inputs = ProfileInputs.used(
            table.take(self.numbers).data,
            [name for name in varying or list(features)[:1] if name not in pairs],
            options_of(weighted, self._missing()),
            pairs=[[name for name, _ in pair] for pair in pairs.values()],
        )
        self.quotients = self.inputs.quotients(directions.changes.ask, probe=False)
        self.axes: dict[str, ProfileAxis] = {}
        if profile.attrs["method"] != "m_plot":
            grid: dict[str, Any] = {
                name: np.asarray(levels_in(row) or row["grid_value"].values)
                for name, row in varying.items()
            }
            grid |= {name: [points for _, points in pair] for name, pair in pairs.items()}
            self.axes = {axis.name: axis for axis in self.inputs.axes(grid, N_GRID, "quantile")}

    def _missing(self) -> str:
        """What was done with missing values, as the numbers of rows show."""
        if "n_missing" not in self.profile:
            return "raise"
        gone, n_obs = self.profile["n_missing"].values > 0, self.profile["n_obs"]
        if "grid" in n_obs.dims or not gone.any():
            return "drop"
        whole = float(self.profile.attrs["n_rows"])
        if str(self.profile.attrs["weight_kind"]) == "frequency" and self.rows is not None:
            whole = float(self.rows["weight"].sum())
        return "bin" if (n_obs.values[gone] == whole).all() else "drop"

    def behind(self, name: str, centering: str) -> tuple[RowsBehind, FloatArray]:
        """The rows of the curve of one feature, and its change by direction."""
        if self.profile.attrs["method"] == "m_plot":
            assert self.rows is not None, "M-plots keep their rows"
            behind = rows_behind(self.rows, name)
            answers = at_rows(self.quotients)[behind.rows]
            moved = [replace(behind, values=values).curve(centering) for values in answers.T]
            return behind, np.nan_to_num(moved)  # bins without rows do not move
        axis, inputs = self.axes[name], self.inputs
        weight = inputs.weight_of(axis)
        sums, last_curves = [], []
        for rows, curves, _ in inputs.curves(self.quotients, axis):
            w = np.ones(curves.shape[1]) if weight is None else weight[rows]
            sums.append(np.einsum("org,r->og", curves, w))
            last_curves.append(curves[-1])
        values = np.concatenate(last_curves)
        total = np.sum(sums, axis=0) / (len(values) if weight is None else weight.sum())
        derivative = self.profile.attrs.get("ice_kind") == "derivative"
        if derivative:
            total, values = [kernel.along(answers, axis.grid) for answers in (total, values)]
        places = inputs.places(axis)
        if centering != "none":
            centre = kernel.centre_of(centering, axis.grid, places.share(weight))
            total = total - (total @ centre)[:, None]
        used = np.flatnonzero(inputs.with_curve(axis))
        return Curves(values, axis.grid, weight, inputs.frequency, used, places, derivative), total


def groups_of(
    groups: GroupsOrDesign | None, rows: xr.Dataset | None, from_model: FromModel | None
) -> tuple[IntArray | SamplingDesign | None, int | None]:
    """Numbers of the groups of all rows."""
    if groups is None:
        return None, None
    labels, n_rows, weight = None, 0, None
    if rows is not None:
        labels, n_rows = row_labels(rows), rows.sizes["obs"]
        weight = rows["weight"].values if "weight" in rows else None
    elif from_model is not None:
        table = from_model.directions.changes.table
        n_rows = table.n_rows
        labels = None if table.index is None else table.index.to_numpy()
    used = np.ones(n_rows, dtype=bool)
    code = row_groups(groups, labels, used, "groups", "rows of the profile", weight)
    if isinstance(code, SamplingDesign):
        return code, int(code.degrees) + 1  # degrees of freedom are one less
    n_groups = int(code.max(initial=-1)) + 1
    if n_groups < 2:
        raise ValueError(f"groups must hold at least two different groups; got {n_groups}.")
    return code, n_groups


def _rounding(row: xr.Dataset) -> float:
    """How far a mean curve of one feature can change by rounding, centred or not."""
    largest = np.abs(np.append(row["curve"].values, row["curve_offset"].values))
    error = float(row["output_error"]) if "output_error" in row else 0.0
    return MEAN_ROUNDING * float(np.spacing(np.nanmax(largest))) + float(np.nan_to_num(error))


def _of_feature(
    profile: xr.Dataset,
    name: str,
    rows: xr.Dataset | None,
    code: IntArray | SamplingDesign | None,
    from_model: FromModel | None,
) -> dict[str, FloatArray]:
    """Standard errors of the curve of one feature, with their parts, by the end of their names."""
    row = one_profile(profile, name)
    if not row.sizes["grid"]:
        return {}
    centering = str(profile.attrs["centering"])
    if from_model is None:
        assert rows is not None, "groups come with rows"
        behind = rows_behind(rows, name)
        by_rows, degrees, _ = behind.errors(centering, groups_at(code, behind.rows))
        se = np.sqrt(np.maximum(np.diagonal(by_rows), 0.0))
        return {"se": se, "cov": by_rows, "df": degrees}
    behind, change = from_model.behind(name, centering)
    by_rows, degrees, units = behind.errors(centering, groups_at(code, behind.rows))
    directions, curve = from_model.directions, row["curve"].values
    check_model(change[-1], curve, f"curve of {name!r}", rounding=_rounding(row))
    used = from_model.numbers[behind.rows]
    covariances = directions.covariances(by_rows, change[:-1], units, used)
    gone = np.isnan(curve)
    covariances.total[gone] = covariances.total[:, gone] = np.nan
    covariances.model[gone] = covariances.model[:, gone] = np.nan
    degrees = directions.degrees(covariances, degrees)
    return errors(covariances) | {"cov": covariances.total, "df": degrees}


def influences_of(
    profile: xr.Dataset, row: xr.Dataset, rows: xr.Dataset, groups: GroupsOrDesign | None
) -> FloatArray | None:
    """Influences of all rows, or of their groups, (unit, grid); None where these are not there."""
    if ("n_groups" in profile.attrs) != (groups is not None) and not (
        rows is profile and groups is None
    ):
        raise ValueError("groups must be given if std_error was given them, and only then.")
    by_rows_alone = groups is None and "n_groups" in profile.attrs
    if "obs" not in rows.dims or by_rows_alone or "fitted_model" in profile.attrs:
        return None
    code, _ = groups_of(groups, rows, None)
    every = np.arange(rows.sizes["obs"]) if code is None else code
    shap = profile.attrs["method"] == "shap_dependence"
    behind = rows_behind(rows, str(row["feature"].values))
    group = groups_at(every if shap else code, behind.rows)
    moved = behind.errors(str(profile.attrs["centering"]), group).units.moved
    if isinstance(every, SamplingDesign):
        return moved
    # Rows and groups without this feature do not move it.
    out = np.zeros((int(every.max()) + 1, moved.shape[1]))
    out[np.unique(every[behind.rows])] = moved
    return out


def groups_at(
    group: IntArray | SamplingDesign | None, rows: IntArray
) -> IntArray | SamplingDesign | None:
    """Groups of some of the rows, from 0 without gaps."""
    if isinstance(group, SamplingDesign):
        return group.take(rows)
    return None if group is None else np.unique(group[rows], return_inverse=True)[1]


def _with_errors(
    profile: xr.Dataset,
    errors_of_features: Sequence[dict[str, FloatArray]],
    source: str,
    n_groups: int | None,
    directions: Directions | None,
) -> xr.Dataset:
    """The profile with these errors in place of its own."""
    n_grid = profile.sizes["grid"]
    about: dict[str, Any] = {"kind": "central limit theorem", "target": "curve"}
    source_of_end = dict.fromkeys(("se", "cov", "df"), source)
    if directions is not None:
        about["kind"], source_of_end = KIND, sources(directions, source)
    # Where all features are constant, none has errors.
    ends = dict.fromkeys(end for each in errors_of_features for end in each) or source_of_end
    made = {}
    for end in ends:
        shape = (n_grid, n_grid) if end == "cov" else (n_grid,)
        values = padded([each.get(end, np.nan) for each in errors_of_features], shape)
        facts = about | {"source": source_of_end[end]}
        made[f"curve_{end}"] = variable(f"curve_{end}", values, PROFILE, **facts)
    out = profile.drop_vars([name for name in NO_PARTS if name in profile]).assign(made)
    for name in ("n_groups", "parameters", "fitted_model"):
        out.attrs.pop(name, None)
    if n_groups is not None:
        out.attrs["n_groups"] = n_groups
    if directions is not None:
        out.attrs |= directions.facts()
        if directions.model.design is not None:  # what is not estimable has no value either
            out["curve"] = out["curve"].where(~np.isnan(made["curve_se_model"][1]))
    return out
