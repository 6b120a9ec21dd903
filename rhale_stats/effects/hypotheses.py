"""Tests of zero, constant, homogeneous and small effects (math [31])."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from scipy import linalg, special

from rhale_stats.arguments.checks import check_choice
from rhale_stats.arrays import bin_error, intervals
from rhale_stats.arrays.intervals import unskewed
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.bins.description import RULES, has_fact
from rhale_stats.effects.anova_test import (
    MAX_DF,
    RIGID,
    BinSelection,
    anova_test,
    fill_spread,
    least_of_cells,
)
from rhale_stats.effects.cluster_robust import Clusters, units_of_rows
from rhale_stats.effects.delta_method import (
    Influences,
    estimate_changes,
    group_influences,
    row_covariances,
    row_influences,
)
from rhale_stats.effects.errors import vcov, with_std_error
from rhale_stats.effects.fit import bin_degrees, features_of, group_overlap, noise_in_the_middle
from rhale_stats.effects.intervals import estimates
from rhale_stats.effects.provenance import check_same_rows
from rhale_stats.inference import meaning
from rhale_stats.inference.adjustment import ADJUSTMENTS
from rhale_stats.inference.combinations import Estimates, correlated, refuse_beside
from rhale_stats.inference.estimate import BY_ERRORS
from rhale_stats.inference.results import (
    CONSTANT,
    SIZE_LEVEL,
    Size,
    Wald,
    fields_of_tests,
    labelled_test,
)
from rhale_stats.local.rows import Rows, columns, is_used_row, own_columns
from rhale_stats.printing.text import bin_labels, holds_model, place_texts
from rhale_stats.schema.checks import check_effect, check_local
from rhale_stats.schema.curves import CurveErrors
from rhale_stats.schema.feature_result import FeatureResult, each_feature, has_moments
from rhale_stats.schema.features import (
    feature_names,
    feature_position,
    given_feature,
    is_grouped,
    is_of_outcome,
    stores_errors,
    units_in,
)
from rhale_stats.schema.levels import level_names
from rhale_stats.schema.parts import features_by_rows, has_own_rows, over_outputs
from rhale_stats.schema.validation import validated
from rhale_stats.schema.variables import EFFECT_UNITS


@validated
@over_outputs
def equivalence_test(effect: xr.Dataset, delta: float, *, adjust: str = "holm") -> xr.Dataset:
    r"""Equivalence test: whether the effect is smaller than ``delta`` in absolute value everywhere.

    Parameters
    ----------
    effect : Dataset
        What `rhale` or `std_error` returned.
    delta : float
        Equivalence margin, in units of the effect; positive.
    adjust : str, default "holm"
        Adjustment of the p-values over features.

    Returns
    -------
    Dataset
        Over (feature): ``statistic``, the smallest distance of an effect from -delta or delta in
        standard errors, corrected for skewness as intervals are; ``df``, the degrees of freedom of
        that bin; ``p_value`` of the null hypothesis that some effect is at least delta in absolute
        value; ``p_value_adjusted``. A small p-value is evidence that all effects are smaller.

    Raises
    ------
    ValueError
        ``delta`` is not positive.

    Notes
    -----
    Two one-sided tests (Schuirmann 1987) in every bin. Every bin must pass, so no adjustment over
    bins is needed. In a linear bin the effect is tested at both ends. Where `std_error` found the
    errors of effects skewed (``effect_skewness``), the tests allow for it as `confint` does.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> local = rs.local_effects(lambda X: 2 * X[:, 0] + 0.1 * X[:, 0] * X[:, 1], X)
    >>> effect = rs.rhale(local, bins=rs.EqualWidthBins(5))
    >>> rs.equivalence_test(effect, 0.1)["p_value"].round(3).values
    array([1., 0.])
    """
    effect = check_effect(effect)
    check_choice("adjust", adjust, ADJUSTMENTS)
    if not 0 < delta < np.inf:
        raise ValueError(f"delta must be positive and finite; got {delta!r}.")
    effect = with_std_error(effect)
    tests = [
        _small(row, delta) if row.sizes["bin"] else Wald(reason=CONSTANT)
        for row in each_feature(effect)
    ]
    return labelled_test(
        effect,
        fields_of_tests(tests),
        adjust,
        null=f"some effect is {delta:g} or more, or -{delta:g} or less",
        source=str(effect["effect_se"].attrs["source"]),
        test=f"equivalence_test, delta {delta:g}",
    )


def _small(row: FeatureResult, delta: float) -> Wald:
    """Statistic, degrees of freedom and p-value of the bin with the largest p-value."""
    slope, half = row.slopes, np.diff(row.bin_edges) / 2
    linear = slope != 0
    effect, degrees = row["effect"].values, bin_degrees(row)
    se = [row["effect_se"].values]
    values = [effect]
    if linear.any():
        noise = noise_in_the_middle(row)
        for end in (-half, half):
            values.append(effect + slope * end)
            variance = noise.variance_along(np.ones(len(half)), end * linear)
            se.append(np.sqrt(np.maximum(variance, 0.0)))
    value = np.array(values)
    # Ratios to an error near 0 stay within floating point, cubed as well.
    least = np.maximum(row.least_effect, 1e-100 * (np.abs(value) + delta))
    error = np.maximum(np.array(se), least)
    skewness = _skewness(row, np.array(se))
    # What an effect of delta, or of -delta, would have as its error.
    above, below = [unskewed((value - end) / error, skewness) for end in (delta, -delta)]
    distance = np.minimum(-above, below)
    pvalue = np.asarray(special.stdtr(np.broadcast_to(degrees, distance.shape), -distance))
    if np.isnan(pvalue).all():
        return Wald(reason=meaning.NO_ROWS)
    # In a bin without a standard error nothing can be concluded.
    if np.isnan(pvalue).any():
        return Wald(p_value=1.0)
    place, k = np.unravel_index(int(np.argmax(pvalue)), pvalue.shape)
    return Wald(float(distance[place, k]), float(degrees[k]), float(pvalue[place, k]))


def _skewness(row: FeatureResult, se: FloatArray) -> FloatArray:
    """Skewness of the errors of the effects, and at the ends of lines; slopes add none."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.nan_to_num(_of_effects(row) * np.minimum(se[:1] / se, 1.0) ** 3))


def _of_effects(row: FeatureResult) -> FloatArray:
    """Skewness of the errors of the effects; 0 where it is not known."""
    if "effect_skewness" in row:
        return np.asarray(row["effect_skewness"].values)
    return np.zeros(row.sizes["bin"])


# --- tests of zero, constant and homogeneous effects ----------------------------------------------


NULLS = {
    "zero": "all effects are 0",
    "constant": "all effects are equal",
    "homogeneous": "all rows have the same effect at a value of the feature",
    "increasing": "no effect is negative",
    "decreasing": "no effect is positive",
}
SIGNS = {"increasing": 1.0, "decreasing": -1.0}
# The size of what each of them denies.
SIZES = {
    "zero": Size("root mean square effect over the rows, without the part of noise", EFFECT_UNITS),
    "constant": Size(
        "root mean square deviation of the effect from its mean, without the part of noise",
        EFFECT_UNITS,
    ),
    "homogeneous": Size(
        "standard deviation of the local effects at a value of the feature",
        EFFECT_UNITS,
        method=BY_ERRORS,
    ),
}
# The statistics for "zero" and "constant".
METHODS = ("box", "wald")
# Why there is no p-value.
TOO_FEW_GROUPS = "too few groups for that many effects: no degree of freedom is left"
BIN_ERROR = (
    "local effects also differ because the effect changes within a bin; pass the rows: "
    "wald_test(effect, 'homogeneous', local=local)"
)


def wald_test(
    effect: xr.Dataset, null: str, method: str, adjust: str, local: xr.Dataset | None
) -> xr.Dataset:
    """`wald_test` of effects in bins, a line a feature."""
    check_choice("null", null, tuple(NULLS))
    check_choice("method", method, METHODS)
    if null in ("homogeneous", *SIGNS) and method != METHODS[0]:
        raise ValueError(
            f"method must be left out with null {null!r}, which has one test only; got {method!r}."
        )
    if local is not None and null != "homogeneous":
        raise ValueError(
            f"local must be None, except with null 'homogeneous' of effects in bins; got local "
            f"with null {null!r}. Leave it out."
        )
    effect = check_effect(effect)
    columns: dict[str, tuple[Rows, int]] = {}
    if null != "homogeneous":
        effect = with_std_error(effect)
    elif local is not None:
        columns = own_columns(check_local(local), feature_names(effect), effect)

    def tested(row: FeatureResult) -> Wald:
        if null == "homogeneous":
            return _homogeneous(row, columns.get(row.name))
        return _monotone(row, SIGNS[null]) if null in SIGNS else _equal(row, null, method)

    rows = [_without_test(row, null) or tested(row) for row in each_feature(effect)]
    # The normal scores of rows are compared with chi-squared, everything else with F.
    compared_with_f = null in ("zero", "constant") and (method == "box" or stores_errors(effect))
    by = f", method {method!r}" if null in ("zero", "constant") else ""
    return labelled_test(
        effect,
        fields_of_tests(rows, of_f=compared_with_f),
        adjust,
        null=NULLS[null],
        source=str(effect["effect_se"].attrs["source"]) if "effect_se" in effect else "rows",
        test=f"wald_test, null {null!r}{by}{_bootstrap_note(effect, null)}",
        size=SIZES.get(null),
    )


def _bootstrap_note(effect: xr.Dataset, null: str) -> str:
    """Whether p-values are those of a wild cluster bootstrap, because groups are few."""
    pvalues = effect.get(f"{null}_pvalue")
    few = pvalues is not None and bool(np.isfinite(pvalues).any())
    return ", p-values not below those of a wild cluster bootstrap" if few else ""


def _without_test(row: FeatureResult, null: str) -> Wald | None:
    """The result of a feature that has no test, with the reason; None where it has one."""
    if not row.sizes["bin"]:
        return Wald(reason=CONSTANT)
    if null == "homogeneous":
        return None
    if null != "zero" and meaning.is_unordered(row):
        return Wald(reason=meaning.ORDER)
    if null == "constant" and row.sizes["bin"] == 1 and not row.slopes.any():
        return Wald(df=0.0, reason=meaning.ONE_BIN)
    reason = str(meaning.of_effects(row.together)[row.position])
    return Wald(reason=reason) if reason else None


def _equal(row: FeatureResult, null: str, method: str) -> Wald:
    """Test that all effects of one feature are 0, or equal."""
    test = anova_test(row, null)
    # Bins of effects on the outcome are few, and their errors very unequal: each counts alike.
    if method == "wald" or is_of_outcome(row):
        of_rows = _correlated if row.is_categorical else _sum_of_squares
        other = (_grouped if row.stores_errors else of_rows)(row, null)
        test = other._replace(size=test.size, size_ci=test.size_ci)
    by_bootstrap = f"{null}_pvalue"
    if by_bootstrap in row and "effect_se_model" not in row:
        # Of few groups: P is not below that of a wild cluster bootstrap.
        least = float(row[by_bootstrap])
        return test._replace(p_value=least) if least > test.p_value else test
    return test


def _monotone(row: FeatureResult, sign: float) -> Wald:
    """Test that no effect of a bin is negative, times ``sign``: the least of all, math [120]."""
    value, se, degrees = row["effect"].values, row["effect_se"].values, bin_degrees(row)
    tested = np.isfinite(se) & (degrees > 0)
    if not tested.any():
        return Wald(reason=meaning.NO_ROWS)
    skewness, n = _of_effects(row), row.n_effective
    if _is_skewed(row, sign):
        # A mean of skewed effects that is low by chance has a small error, too.
        square = np.average((se**2 * n)[tested], weights=degrees[tested])
        pooled = np.maximum(se, np.sqrt(square / n))
        se, skewness = pooled, skewness * (se / pooled) ** 3
    t = sign * intervals.unskewed(value / np.hypot(se, row.least_effect), skewness)
    scores = np.sign(t) * intervals.normal_score(t, np.maximum(degrees, 1.0))
    score = float(scores[tested].min())
    n_tested = int(tested.sum())
    # Sidak (1967): exact for separate rows, and not exceeded for bins that share groups.
    p_value = float(-np.expm1(n_tested * special.log_ndtr(-score)))
    return Wald(-score, float(n_tested), p_value)


def _is_skewed(row: FeatureResult, sign: float) -> bool:
    """Whether skewness of this sign in all bins together is two standard errors from 0."""
    if not has_moments(row):
        return False
    residuals, n = row.residuals, row.n_effective
    estimable = (n > 1) & np.isfinite(residuals.third_moment)
    second, third = ((part * n)[estimable].sum() for part in residuals[:2])
    n_units = min(float(n[estimable].sum()), float(row.attrs.get("n_groups", np.inf)))
    return bool(sign * third * np.sqrt(n[estimable].sum() * n_units / 24) > second**1.5)


def _sum_of_squares(row: FeatureResult, null: str) -> Wald:
    """Test with independent bins: sum of squared normal scores."""
    linear, fine = row.slopes != 0, row.curve_cells
    least = least_of_cells(row, fine)
    cells = fill_spread(fine, least)
    if cells is None:
        return Wald(reason=meaning.NO_ROWS)
    degrees = bin_degrees(row)
    variance, effect = cells.effect_variance(), row["effect"].values
    usable = (degrees > 0) & (variance >= 0)
    if not usable.any():  # a variance of cells may be that of no bin: each of its bins has one row
        return Wald(reason=meaning.NO_ROWS)
    # A mean without sampling error is compared with rounding only.
    mean, se = effect[usable], np.maximum(np.sqrt(variance[usable]), least)
    centre, df = 0.0, float(usable.sum())
    if null == "constant":
        centre, df = float(np.average(mean, weights=(se.min() / se) ** 2)), df - 1
    total = float(np.sum(intervals.normal_score((mean - centre) / se, degrees[usable]) ** 2))
    sloped = usable & linear
    if sloped.any():
        # The part of the slope that is uncorrelated with the mean.
        noise = noise_in_the_middle(row)
        shared = noise.covariance[sloped] / noise.mean[sloped]
        slope = row.slopes[sloped] - shared * (effect[sloped] - centre)
        alone = noise.slope[sloped] - shared * noise.covariance[sloped]
        width = np.diff(row.bin_edges)[sloped]
        alone = np.sqrt(np.maximum(alone, (least / width) ** 2))
        total += float(np.sum(intervals.normal_score(slope / alone, degrees[sloped]) ** 2))
        df += float(sloped.sum())
    if df <= 0:
        return Wald(df=0.0, reason=meaning.NO_ROWS)
    return Wald(total, df, intervals.chi2_tail(total, df))


def _contrasts(n_bins: int, null: str) -> FloatArray:
    """What is 0 of the effects of bins: each, or the differences of neighbours."""
    effects = np.eye(n_bins)
    return np.diff(effects, axis=0) if null == "constant" else effects


def _correlated(row: FeatureResult, null: str) -> Wald:
    """Test of steps between levels, which share rows: normal scores with their correlation."""
    contrast, covariance = _contrasts(row.sizes["bin"], null), row.effect_cov
    covariance = covariance + row.least_effect**2 * np.eye(len(covariance))
    variance = np.diagonal(covariance)
    # Satterthwaite's degrees of freedom, as if steps were independent.
    degrees = (contrast**2 @ variance) ** 2 / (contrast**4 @ (variance**2 / bin_degrees(row)))
    value, covariance = contrast @ row["effect"].values, contrast @ covariance @ contrast.T
    se = np.sqrt(np.diagonal(covariance))
    score = np.sign(value) * intervals.normal_score(value / se, degrees)
    statistic = float(score @ np.linalg.pinv(covariance / np.outer(se, se), hermitian=True) @ score)
    return Wald(statistic, float(len(score)), intervals.chi2_tail(statistic, len(score)))


def _grouped(row: FeatureResult, null: str) -> Wald:
    """Test with groups of rows: the Wald statistic over its degrees of freedom, against F."""
    selection = BinSelection.of_feature(row)
    value, covariance = selection.values(row), selection.covariance(row)
    of_effects = _contrasts(int(selection.mask.sum()), null)
    contrast = linalg.block_diag(of_effects, np.eye(len(selection.sloped)))
    total_variance = float(np.trace(covariance))
    # An estimate without sampling error is compared with rounding only.
    covariance = covariance + row.least_effect**2 * np.eye(len(value))
    value, covariance = contrast @ value, contrast @ covariance @ contrast.T
    df = float(len(value))
    if "effect_se_model" in row:
        # A few parameters move many effects: only so many directions have an error.
        value, covariance = _moved(value, covariance, total_variance)
        df = float(len(value))
        if not df:
            return Wald(df=0.0, reason=meaning.RIGID)
    statistic = float(value @ np.linalg.pinv(covariance, hermitian=True) @ value)
    of_groups = _degrees_of_matrix(row, contrast, selection)
    # Hotelling's correction: the covariance has fewer degrees of freedom than its size asks for.
    left = of_groups - df + 1
    if left <= 0:
        return Wald(statistic, df, reason=TOO_FEW_GROUPS)
    p_value = intervals.f_tail(statistic * left / (of_groups * df), df, left)
    return Wald(statistic, df, p_value, df_denominator=left)


def _moved(
    value: FloatArray, covariance: FloatArray, total_variance: float
) -> tuple[FloatArray, FloatArray]:
    """Values and covariance along the components that have a share of the total variance."""
    values, vectors = np.linalg.eigh(covariance)
    components = vectors[:, values > RIGID * total_variance]
    return components.T @ value, components.T @ covariance @ components


def _degrees_of_matrix(row: FeatureResult, contrast: FloatArray, selection: BinSelection) -> float:
    """Degrees of freedom of a covariance by groups (math [31]): of the Wishart matrix like it.

    The variances of its entries add up to those of the estimated covariance of the contrasts, each
    scaled by its own standard error.
    """
    overlap = group_overlap(row)[np.ix_(selection.bins, selection.bins)]
    # Differences of neighbours have in common what the variances of both have.
    parts = np.abs(contrast) / np.abs(contrast).sum(axis=1, keepdims=True)
    overlap = parts @ overlap @ parts.T
    q = len(overlap)
    return float(q * (q + 1) / max(overlap.sum() + np.trace(overlap), 1 / MAX_DF))


def _homogeneous(row: FeatureResult, column: tuple[Rows, int] | None) -> Wald:
    """Test of equal effects of rows at a value of the feature; ``column``: rows and position."""
    least = row.least_effect
    largest = float(np.nanmax(row["heterogeneity"].values, initial=0.0)) / least
    if largest <= 1 or row.is_categorical or _bins_are_cells(row):
        # Here only differences between rows cause a spread.
        p_value, spread = (1.0 if largest <= 1 else 0.0), row["heterogeneity"].values
        n = np.where(np.isfinite(spread), row.n_effective, 0.0)
        size = float(np.sqrt(np.average(np.nan_to_num(spread) ** 2, weights=n))) if n.any() else 0.0
        return Wald(largest, float(row.sizes["bin"]), p_value, size=size)
    if column is None:
        return Wald(reason=BIN_ERROR)
    rows, position = column
    x, g = rows.x[position], rows.local_effect[position]
    check_same_rows(row, rows, position)
    ordered = bin_error.ordered_rows(
        row.bin_edges, x, g, None, frequency=False, rng=np.random.default_rng(0)
    )
    product = bin_error.neighbour_products(ordered.g, least)
    if len(product) < 2:
        return Wald(reason=meaning.NO_ROWS)
    variance, df = -float(product.mean()), float(len(product) - 1)
    if variance <= least**2:
        return Wald(0.0, df, 1.0, size=0.0)
    error = float(product.std(ddof=1) / np.sqrt(len(product)))
    half = float(intervals.student(SIZE_LEVEL, np.array(df))) * error
    low, high = np.sqrt(np.maximum([variance - half, variance + half], 0.0))
    statistic = variance / error
    p_value = float(special.stdtr(df, -statistic))
    return Wald(statistic, df, p_value, size=float(np.sqrt(variance)), size_ci=(low, high))


def _bins_are_cells(row: FeatureResult) -> bool:
    """Whether the bins of one feature are the cells of its finite differences."""
    rule = str(row.attrs.get("bin_rule"))
    is_fixed = rule in RULES and not has_fact(rule, "joins_cells")
    of_ale = row.attrs.get("method") == "ale" and is_fixed
    if not row.has_cells:
        return of_ale
    # For derivatives, cells are used only for the curve.
    return row.method == "finite_difference" and len(row.edges) == len(row.bin_edges)


# How far from the middle of a bin its ends are looked at, in halves of its width: neighbours that
# are lines do not meet at their edge.
NEAR_ENDS = 0.998


def for_hypotheses(
    effect: xr.Dataset,
    feature: str | int | None,
    estimand: str | None,
    local: xr.Dataset | None,
    groups: Any,
) -> Estimates:
    """Effects of the bins, the curve at the edges, or the average effects of all features."""
    estimand = estimand or "effect"
    if estimand == "average_effect":
        return _average_effects(effect, feature, local, groups)
    effect = check_effect(effect)
    feature = given_feature(feature, "hypotheses(effect, feature='dose')", effect)
    effect = with_std_error(effect.isel(feature=[feature_position(effect, feature)]))
    row, fit = features_of(effect)[0]
    if estimand == "slope":
        return _along_axis(effect, row, fit)
    if estimand == "effect":
        estimate, names, places = "effect", bin_labels(row), None
    else:
        estimate, (names, places) = "curve", _places_of_curve(row)
    covariance = vcov(effect, 0, estimand)
    return Estimates(
        names,
        np.asarray(row[estimate].values, dtype=np.float64),
        covariance.values,
        np.asarray(estimates(effect)[estimate].degrees)[0][: len(covariance)],
        str(effect[estimand].attrs["units"]),
        str(covariance.attrs["source"]),
        f"the effects of {row.name}" if estimand == "effect" else f"the curve of {row.name}",
        places=places,
        place_units=units_in(row),
        influences=None
        if local is None
        else _influences(effect, row, fit, estimand, local, groups),
    )


def _places_of_curve(row: FeatureResult) -> tuple[list[str], FloatArray | None]:
    """Names of the places at which a curve is known, and the places if they have an order."""
    if row.is_categorical:
        return level_names(row), None
    return place_texts(row.edges, units_in(row), 6), row.edges


def _influences(
    effect: xr.Dataset,
    row: FeatureResult,
    fit: CurveErrors | None,
    estimand: str,
    local: xr.Dataset,
    groups: Any,
) -> FloatArray:
    """Influences of rows, or of groups of them, on what is estimated of one feature."""
    if is_grouped(effect) != (groups is not None):
        raise ValueError("groups must be given if std_error was given them, and only then.")
    if holds_model(source := str(effect["effect_se"].attrs["source"])):
        raise ValueError(
            f"effect must have standard errors of the rows for several features or outputs; these "
            f"are of {source}. averages has both."
        )
    local, design = check_local(local), None
    n_units = local.sizes["obs"]
    code: IntArray = np.arange(n_units)
    if groups is not None:
        code, n_units, design = units_of_rows(groups, local, np.ones(n_units, dtype=bool))
    sizes = {"effect": row.sizes["bin"], "curve": len(row.edges), "average_effect": 1}
    if fit is None:
        return np.zeros((n_units if design is None else len(design.factor), sizes[estimand]))
    if has_own_rows(local):
        rows = next(rows for rows in features_by_rows(local) if row.name in rows.names)
        local, code = rows.select(local, local), code[rows.rows]
    used = is_used_row(local, effect)
    clusters = Clusters(columns(local.isel(obs=used)), local, code[used], n_units, design)
    clusters.check(row)
    if groups is None:
        none = np.zeros((n_units, 0))
        influences = Influences(*row_influences(row, fit, clusters), none)
    else:
        influences = group_influences(row, fit, clusters)
    gradients = estimate_changes(influences, row, fit)
    out = gradients.effect if estimand == "effect" else gradients.average_effect
    if estimand == "curve":
        out = np.zeros((len(out), sizes["curve"]))
        out[:, fit.cells.edge_stretch] = gradients.curve
    if clusters.rows.frequency and groups is None:
        # A row of a frequency weight is as many rows, whose squares are added.
        counts = np.ones(n_units)
        counts[code[used]] = clusters.rows.weight
        out = out / np.sqrt(counts)[:, None]
    return out


def _along_axis(effect: xr.Dataset, row: FeatureResult, fit: CurveErrors | None) -> Estimates:
    """Effects in the middle of bins, and near both ends of those that are lines."""
    if fit is None or row.is_categorical:
        raise ValueError(
            "feature must have numbers that vary; levels and constant features have no axis."
        )
    edges, n_bins = row.bin_edges, row.sizes["bin"]
    middle, half, slope = (edges[:-1] + edges[1:]) / 2, np.diff(edges) / 2, row.slopes
    linear = slope != 0
    k = np.repeat(np.arange(n_bins), 1 + linear)
    away = np.where(linear[k], NEAR_ENDS * half[k], 0.0)
    away[np.flatnonzero(np.diff(k) == 0)] *= -1
    of_effect = np.eye(n_bins)[k]
    loadings = np.hstack([of_effect, away[:, None] * of_effect])
    parts, degrees = row_covariances(row, fit), np.asarray(bin_degrees(row))
    shared = parts["effect_slope"]
    covariance = np.block([[parts["effect"], shared], [shared.T, parts["slope"]]])
    return Estimates(
        place_texts(middle[k] + away, units_in(row), 6),
        loadings @ np.concatenate([row["effect"].values, slope]),
        loadings @ covariance @ loadings.T,
        degrees[k],
        str(effect["effect"].attrs["units"]),
        str(effect["effect_se"].attrs["source"]),
        f"the effects of {row.name}",
        places=middle[k] + away,
        place_units=units_in(row),
        slopes=True,
    )


def _average_effects(
    effect: xr.Dataset, feature: Any, local: xr.Dataset | None, groups: Any
) -> Estimates:
    """Average effects of all features; their correlations are those of the rows, or of groups."""
    effect = with_std_error(effect)
    average = estimates(effect)["average_effect"]
    refuse_beside("of='average_effect', which is of all features", feature=feature)
    if local is None:
        raise ValueError(
            "local must be given with of='average_effect': the average effects of two features "
            "come from the same rows. Pass the local effects that effect was made from."
        )
    influences = np.concatenate(
        [
            _influences(effect, *part, "average_effect", local, groups)
            for part in features_of(effect)
        ],
        axis=1,
    )
    return Estimates(
        feature_names(effect),
        average.values,
        correlated(influences, np.asarray(average.se)),
        np.asarray(average.degrees, dtype=np.float64),
        average.facts.units,
        average.facts.source,
        "average effects",
        influences=influences,
    )
