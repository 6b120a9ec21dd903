"""Checks of estimates in bins: bias of heterogeneity and effect, and jumps of the output."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from scipy.special import stdtr

from rhale_stats.arguments.checks import check_choice, check_finite
from rhale_stats.arguments.seeds import seeded
from rhale_stats.arrays import accumulate, bin_error, cells
from rhale_stats.arrays.binning import bin_index, sorting
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.bins.rules import GivenBins
from rhale_stats.effects.errors import std_error
from rhale_stats.effects.provenance import check_same_chunks, check_same_rows
from rhale_stats.effects.rhale import quiet_rhale
from rhale_stats.inference.adjustment import ADJUSTMENTS, adjusted
from rhale_stats.inference.meaning import BIASED, FINE, LARGE, TESTED_ROWS, TOO_FEW
from rhale_stats.local.chunks import sampled
from rhale_stats.local.labelled import ARRAY, FRAME, NUMBERED_FRAME
from rhale_stats.local.rows import THREADS_FROM, Rows, estimation_rows, is_used_row, own_columns
from rhale_stats.models.differences import DifferenceQuotients
from rhale_stats.models.outputs import Model, is_classifier
from rhale_stats.models.table import as_table
from rhale_stats.parallel import cpus, in_threads
from rhale_stats.schema.checks import check_effect, check_local, is_chunked
from rhale_stats.schema.dimensions import LEFT
from rhale_stats.schema.feature_result import FeatureResult, each_feature, one_feature
from rhale_stats.schema.features import feature_names, feature_position, resolution
from rhale_stats.schema.identity import check_same_output, fingerprint_of, model_facts
from rhale_stats.schema.levels import refuse_categorical
from rhale_stats.schema.padding import Estimates, pad_features, padded
from rhale_stats.schema.parts import over_outputs
from rhale_stats.schema.validation import validated
from rhale_stats.schema.variables import variable, with_variables

# Largest number of repeated rows: some gigabytes.
MAX_ROWS = 100_000_000
NO_PVALUE = f"NaN where a bin has fewer than {TESTED_ROWS} effective rows, or no spread"
FACTS: dict[str, dict[str, str]] = {
    "heterogeneity_within": {"estimator": "differences of neighbouring rows, math [13]"},
    "heterogeneity_within_se": {"source": "rows", "kind": "central limit theorem"},
    "bin_error": {
        "estimator": "heterogeneity^2 - heterogeneity_within^2, math [13]; may be negative"
    },
    "bin_error_se": {"source": "rows", "kind": "central limit theorem"},
    "bin_error_pvalue": {"null": "bin error is 0", "alternative": "less", "missing": NO_PVALUE},
    "rank_ratio": {"estimator": "math [14], Bartels (1982); weights are not used"},
    "rank_pvalue": {"null": "bin error is 0", "alternative": "less", "missing": NO_PVALUE},
}
# Of effects that depend on the density of the rows.
DENSITY_FACTS: dict[str, dict[str, str]] = {
    "density_bias": {"estimator": "slope * (x_mean - midpoint), math [15]"},
    "density_bias_se": {"source": "rows", "kind": "central limit theorem, HC1"},
}


@validated
@seeded
@over_outputs
def check_unbiased(
    effect: xr.Dataset,
    local: xr.Dataset,
    *,
    adjust: str = "holm",
    rng: np.random.Generator | int | None = None,
    significance: float = 0.05,
) -> xr.Dataset:
    r"""How much of the variance in each bin is heterogeneity, and how much is bin error.

    The variance of the local effects in a bin estimates sigma^2 + bin error (Theorem 1 of the
    paper). Half the mean squared difference of neighbouring rows estimates sigma^2 alone, to a good
    approximation. The difference of the two estimates the bin error.

    Parameters
    ----------
    effect, local : Dataset
        The result of `rhale` or `std_error`, and the local effects that it was made from, in any
        order. With honest bins the rows that chose the edges are left out.
    adjust : str, default "holm"
        Adjustment of the p-values over all bins and features, a method of statsmodels'
        ``multipletests``, or "none".
    rng : Generator, int or None
        Source of random numbers, or its seed, for the order of rows with equal values of the
        feature. ``seed`` is as in `confband`.
    significance : float, default 0.05
        A bin is called biased if its adjusted p-value is below this.

    Returns
    -------
    Dataset
        ``effect`` and over (feature, bin): ``heterogeneity_within`` and its ``_se``, ``bin_error``
        (unclipped: it may be negative) and its ``_se`` (math [13]); ``bin_error_pvalue``,
        ``rank_ratio``, ``rank_pvalue`` and both p-values ``_adjusted`` (math [14]); with
        ``weighting="rows"`` ``density_bias`` and its ``_se`` (math [15]); ``verdict``: "fine",
        "biased upwards", "bias larger than standard error" (the heterogeneity's) or "too few rows".
        `tidy` also has ``bin_error_share``, the part of the variance, and ``von_neumann_ratio``.

        Of more than 1,048,576 rows in chunks so many are checked, evenly among all: the attribute
        ``n_rows_read``. All numbers of the check are theirs, and ``sigma2_star`` is their variance;
        but the standard error of the heterogeneity, with which ``verdict`` compares the bias, is
        that of all rows.

    Raises
    ------
    ValueError
        ``effect`` was not made from ``local``; an unknown ``adjust``; a ``significance`` outside
        (0, 1); an effect without the moments for standard errors; frequency weights with a sum of
        more than 10^8 rows.
    KeyError
        A feature of ``effect`` is not in ``local``.
    TypeError
        ``local`` or ``effect`` is not a Dataset.

    Notes
    -----
    In a linear bin (`AdaptiveBins`) the residuals about the line are checked, and ``bin_error`` is
    the bin error that remains. ``density_bias`` is 0 in linear bins. Effects with
    ``weighting="axis"`` do not depend on the density of the rows.

    For an effect of slope m in a bin of width h with n uniform rows, bin_error is biased by
    -m^2 h^2 / ((n + 1)(n + 2)); for a jump by J inside the bin, by about -J^2 / (2 (n - 1)).

    ``bin_error_pvalue`` is the larger of two: of the von Neumann ratio, compared with its values in
    all orders of the local effects, and of a t test of the products of neighbouring residuals. The
    first assumes that the spread of the local effects is constant in the bin, the second does not.
    At 5 % they reject 1 to 5 % of bins without bin error for normal, log-normal and t effects of
    100 rows whose spread is constant or grows in proportion to x or its square, and 10 % where a
    spread of log-normal effects is confined to 6 of the 100 rows (math [14]). ``rank_pvalue`` is
    the same for ranks: it also rejects where skewed effects change their spread.

    Simulated sizes by kind of process, and what to use where this fails: docs/validity.md.

    References
    ----------
    Gkolemis et al. (2023), *RHALE*, Theorem 1. von Neumann (1941), *Annals of Mathematical
    Statistics* 12, 367-395. Rice (1984), *Annals of Statistics* 12, 1215-1230. Bartels (1982),
    *JASA* 77, 40-46.

    Examples
    --------
    >>> import rhale_stats as rs
    >>> example = rs.simulate.Quadratic()
    >>> X = example.sample(2000, rng=0)
    >>> local = rs.local_effects(None, X, jacobian=example.jacobian, features="x1")
    >>> check = rs.check_unbiased(rs.rhale(local, bins=rs.EqualWidthBins(2)), local)
    >>> check["heterogeneity"].round(2).values, check["heterogeneity_within"].round(2).values
    (array([[1.52, 1.48]]), array([[0.72, 0.71]]))
    >>> str(check["verdict"].values[0, 0])
    'bias larger than standard error'
    """
    local, effect = check_local(local, in_chunks=True), check_effect(effect)
    refuse_categorical(effect, "check_unbiased")
    check_choice("adjust", adjust, ADJUSTMENTS)
    if "debiased" in effect.attrs:
        raise ValueError(
            "effect must be what rhale or std_error returned; this one is from debias, which "
            "keeps the check that it was made with."
        )
    with_errors = effect if "heterogeneity_se" in effect else std_error(effect)
    check_same_output(local, effect, ("local", "effect"))
    names = feature_names(effect)
    rows, of_rows, facts = _in_memory(local, effect)
    columns = own_columns(rows, names, effect if rows is local else None)
    streams = np.random.default_rng(rng).spawn(len(names))

    def of_feature(number: int) -> Estimates:
        row = one_feature(of_rows, number)
        if not row.sizes["bin"]:
            return dict.fromkeys(FACTS, np.nan)
        return _check(row, *columns[names[number]], streams[number])

    threads = 1 if rows["x"].size < THREADS_FROM else cpus()
    arrays = pad_features(in_threads(of_feature, range(len(names)), threads), effect.sizes)
    if facts:
        # Its rows are not all rows of the effect.
        arrays["sigma2_star"] = of_rows["heterogeneity"].values ** 2
    decided: dict[str, str | float] = {"adjust": adjust, "significance": significance}
    pvalues = {
        f"{name}_adjusted": adjusted(np.asarray(arrays[name], dtype=np.float64), adjust)
        for name in ("bin_error_pvalue", "rank_pvalue")
    }
    biased = pvalues["bin_error_pvalue_adjusted"] < significance
    within = np.asarray(arrays["heterogeneity_within"], np.float64)
    bias = of_rows["heterogeneity"].values - within
    large = biased & (bias > with_errors["heterogeneity_se"].values)
    n_bins = of_rows.sizes["bin"]
    n = padded([row.n_effective for row in each_feature(of_rows)], [n_bins])
    beyond = np.arange(n_bins) >= of_rows["n_bins"].values[:, None]
    cases = [beyond, ~(n >= TESTED_ROWS), large, biased]
    verdict = np.select(cases, ["", TOO_FEW, LARGE, BIASED], FINE)
    about = FACTS | DENSITY_FACTS
    added = {name: variable(name, array, **about.get(name, {})) for name, array in arrays.items()}
    for name, values in pvalues.items():
        added[name] = variable(name, values, missing=NO_PVALUE, **decided)
    added["verdict"] = variable("verdict", verdict, **decided)
    return with_variables(effect.assign_attrs(facts), added)


def _in_memory(
    local: xr.Dataset, effect: xr.Dataset
) -> tuple[xr.Dataset, xr.Dataset, dict[str, int]]:
    """The rows to check, their effect, and what is to be said of them.

    Of very many rows in chunks some are checked, with the effect that these have in the same bins.
    """
    if not is_chunked(local):
        return local, effect, {}
    names, local = feature_names(effect), estimation_rows(local, effect)
    local = local.isel(feature=[feature_position(local, name) for name in names])
    sample = sampled(local, "rows to be checked")
    check_same_chunks(sample.source, local, effect)
    if sample.every:
        return sample.local, effect, {}
    if "slope" in effect and bool((effect["slope"].fillna(0) != 0).any()):
        raise ValueError(
            f"effect must have bins without lines where local is in chunks of more than "
            f"{len(sample.rows):,} rows, of which these are checked. Use a sample of the rows: "
            f"local.isel(obs=slice(None, None, 100)).compute(), and its effect."
        )
    settings = ("centering", "weighting")
    options: dict[str, Any] = {name: str(effect.attrs[name]) for name in settings}
    sample_effect = quiet_rhale(sample.local, GivenBins(effect), **options)
    return sample.local, sample_effect, sample.facts


def _check(row: FeatureResult, rows: Rows, position: int, rng: np.random.Generator) -> Estimates:
    """Everything about one feature, by the names of `schema.EFFECT_VARIABLES`."""
    edges = row.bin_edges
    x = rows.x[position]
    name = row.name
    check_same_rows(row, rows, position)
    if rows.frequency and rows.weight is not None and rows.weight.sum() > MAX_ROWS:
        raise ValueError(
            f"weights of kind 'frequency' are written out as repeated rows here, of which there "
            f"may be {MAX_ROWS:,}; got {rows.weight.sum():,.0f}. Divide them by a common factor, "
            f"or take weight_kind='precision'."
        )
    ordered = bin_error.ordered_rows(
        edges, x, rows.local_effect[position], rows.weight, frequency=rows.frequency, rng=rng
    )
    if not np.isfinite(ordered.g).all():
        raise ValueError(f"Local effects of feature {name!r} must be finite; some are not.")
    n, x_mean = row.n_effective, row.x_mean
    mean, slope = row.bin_means, row.slopes
    if slope.any():
        # In a linear bin everything is computed from the residuals.
        line = slope[ordered.bin] * (ordered.x - x_mean[ordered.bin])
        ordered = ordered._replace(g=ordered.g - line)
    variance = row["heterogeneity"].values ** 2
    differences = bin_error.differences(ordered, mean)
    none = variance <= resolution(mean, float(row["local_effect_error"])) ** 2
    excess = variance - differences.variance
    weights = bin_error.pair_weights(ordered, len(n))
    _, pvalue = bin_error.tested(ordered, mean, variance, differences.variance, weights)
    rank_ratio, rank_pvalue = bin_error.rank_von_neumann(ordered, len(n))
    untested = none | ~(n >= TESTED_ROWS)
    with np.errstate(invalid="ignore", divide="ignore"):
        se = bin_error.bin_error_se(differences, excess, weights)
    estimates = {
        "heterogeneity_within": np.sqrt(differences.variance),
        "heterogeneity_within_se": bin_error.within_se(differences, weights),
        "bin_error": excess,
        "bin_error_se": se,
        "bin_error_pvalue": np.where(untested, np.nan, pvalue),
        "rank_ratio": np.where(none, np.nan, rank_ratio),
        "rank_pvalue": np.where(untested, np.nan, rank_pvalue),
    }
    if row.has_cells:
        # An average along the axis does not depend on where the rows are.
        return estimates
    # The effect of a linear bin is the effect in its middle, wherever its rows are.
    away = np.where(slope == 0, x_mean - row.middle, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        tilt = row.residuals.x_covariance / row.residuals.x_variance
        # NaN where the slope is unknown, 0 times infinity.
        away_se = np.abs(away) * bin_error.slope_se(ordered, mean, x_mean, tilt)
    # No negative zeros.
    return estimates | {"density_bias": tilt * away + 0.0, "density_bias_se": away_se}


@validated
@over_outputs
def debias(effect: xr.Dataset, check: xr.Dataset) -> xr.Dataset:
    r"""Heterogeneity without the bin error: from differences of neighbouring rows.

    Parameters
    ----------
    effect : Dataset
        Result of `rhale`, `std_error` or `check_unbiased`.
    check : Dataset
        Result of `check_unbiased` for this effect.

    Returns
    -------
    Dataset
        ``check`` with ``heterogeneity`` and its standard error replaced by ``heterogeneity_within``
        and its standard error; ``sigma2_star`` is the square of what was replaced. ``curve_std``,
        ``curve_std_sum``, ``heterogeneity_index`` and ``heterogeneity_output`` are computed from
        it. Their intervals are dropped. The effects, the curve, and their standard errors and
        intervals do not change, because the bin error does not bias them (math [14]).

    Raises
    ------
    ValueError
        ``check`` is not a check, or belongs to other bins, other rows or another model.
    TypeError
        ``effect`` or ``check`` is not a Dataset.

    Examples
    --------
    >>> import rhale_stats as rs
    >>> example = rs.simulate.Quadratic(sd=0.5)
    >>> X = example.sample(2000, rng=0)
    >>> local = rs.local_effects(None, X, jacobian=example.jacobian, features="x1")
    >>> effect = rs.rhale(local, bins=rs.EqualWidthBins(4))
    >>> better = rs.debias(effect, rs.check_unbiased(local, effect))
    >>> effect["heterogeneity"].round(2).values, better["heterogeneity"].round(2).values
    (array([[0.84, 0.82, 0.81, 0.85]]), array([[0.5 , 0.52, 0.48, 0.53]]))
    """
    effect = check_effect(effect)
    check = check_effect(check, "check", "check_unbiased(local, effect)")
    if "heterogeneity_within" not in check:
        raise ValueError(
            "check must be what check_unbiased(local, effect) returned; this one has no "
            "heterogeneity_within."
        )
    if not all(
        np.array_equal(effect[name].values, check[name].values, equal_nan=True)
        for name in ("edge_value", "n_obs")
    ):
        raise ValueError(
            "check must have the bins of effect; its edges or rows differ. Run "
            "check_unbiased(local, effect) again."
        )
    for name in feature_names(check):
        expected, other = [fingerprint_of(one_feature(each, name)) for each in (effect, check)]
        if expected and other and expected != other:
            raise ValueError(
                f"check must come from effect; for feature {name!r} it comes from other rows or "
                f"another model. Run check_unbiased(local, effect) again."
            )
    check = check if "heterogeneity_se" in check else std_error(check)
    rows = list(map(_spread, each_feature(check)))
    arrays = pad_features(rows, check.sizes)
    if "sigma2_star" not in check:
        arrays["sigma2_star"] = check["heterogeneity"].values ** 2
    arrays["heterogeneity"] = check["heterogeneity_within"].values
    arrays["heterogeneity_se"] = check["heterogeneity_within_se"].values
    out = check.assign({name: variable(name, array) for name, array in arrays.items()})
    for name in ("heterogeneity", "heterogeneity_se", "heterogeneity_output"):
        out[name].attrs |= check[name].attrs
    for name in ("heterogeneity", "heterogeneity_index", "heterogeneity_output"):
        out[name].attrs["estimator"] = "differences of neighbouring rows, math [13]"
    target = check["heterogeneity_within"].attrs["long_name"]
    out["heterogeneity_se"].attrs["target"] = f"{target}, math [13]"
    # Intervals and bands belong to the estimators that were replaced.
    of_replaced = {f"{name}{what}" for name in arrays for what in ("_ci", "_band")}
    out = out.drop_vars(of_replaced, errors="ignore")
    out.attrs["debiased"] = "heterogeneity from differences of neighbouring rows, math [13]"
    return out


def _spread(row: FeatureResult) -> Estimates:
    """The estimates of `rhale` that depend on the heterogeneity, from the heterogeneity within."""
    within = row["heterogeneity_within"].values
    if not len(within):
        names = ("curve_std", "curve_std_sum", "heterogeneity_index", "heterogeneity_output")
        return dict.fromkeys(names, np.nan)
    share, width = row.weight_share, np.diff(row.bin_edges)
    x_variance = accumulate.total_variance(
        row.x_mean, row.residuals.x_variance, share, row.n_effective
    )
    std, std_sum = accumulate.spread_along(row.at_bins("curve"), within, width)
    return {
        "curve_std": row.along_edges(std),
        "curve_std_sum": row.along_edges(std_sum),
        "heterogeneity_index": float(np.nansum(within**2 * width)),
        "heterogeneity_output": float(
            accumulate.heterogeneity_output(within**2, x_variance, share)
        ),
    }


# Rows at either end of the axis that are left out, as a share.
OUTER = 0.005
# Forms of a table that can be made again from local effects.
TABLES = (ARRAY, FRAME, NUMBERED_FRAME)


@validated
@over_outputs
def jump_check(
    effect: xr.Dataset, local: xr.Dataset, model: Model, X: Any = None, *, adjust: str = "holm"
) -> xr.Dataset:
    r"""Test of jumps within bins: derivatives are compared with changes of the output across bins.

    For each row of a bin, the model is evaluated at both edges of the bin, with the other features
    unchanged. The difference is compared with the local effect times the width of the bin. If the
    two differ by more than chance, on average or in spread, the model jumps inside the bin (or is
    strongly curved there), and effect, heterogeneity and curve are wrong in this bin.

    Parameters
    ----------
    effect, local : Dataset
        The result of `rhale`, and the local effects that it was made from.
    model : callable, object with ``predict``, or statsmodels results
        As in `local_effects`. It is called once for each feature, with two versions of the rows.
        For classifiers and several outputs, scale and output are those of ``local``.
    X : table, or array_like of shape (n_rows, n_columns), optional
        The table of the local effects. Not needed if ``local`` has all of its columns.
    adjust : str, default "holm"
        Adjustment of the p-values over all bins and features, as in `check_unbiased`.

    Returns
    -------
    Dataset
        ``effect`` with these variables over (feature, bin). ``jump`` is the mean change of the
        output across the bin that local effects miss, and ``jump_se`` its standard error.
        ``jump_spread`` is the standard deviation between rows of the missed change. ``jump_pvalue``
        is the p-value of the hypothesis that nothing is missed: twice the smaller of the p-values
        for the mean and for the spread. ``jump_pvalue_adjusted`` is adjusted over bins and
        features.

    Raises
    ------
    ValueError
        ``X`` is needed, or is not the table of ``local``; ``effect`` was not made from ``local``;
        the model has several scales, and ``local`` does not say which one it is of.
    KeyError
        A feature of ``effect`` is not in ``local``.
    ModelError
        The model raised an error, or did not return one number for each row.

    Notes
    -----
    Means are averages along the bin, so that rows which crowd at one end of it are no jump. The
    outermost .5 % of the rows at both ends of the axis are left out.

    A jump that goes up for some rows and down for others can have mean 0, as the jump in x3 of Eq.
    1 of the paper. Therefore the spread is tested as well. Without jumps the differences across a
    bin are averages of derivatives, and vary less between rows than the derivatives.

    References
    ----------
    Apley and Zhu (2020), Eq. 11, for the differences; math [3].

    Examples
    --------
    >>> import rhale_stats as rs
    >>> example = rs.simulate.OppositeGroups()
    >>> X = example.sample(500, rng=0)
    >>> local = rs.local_effects(None, X, jacobian=example.jacobian)
    >>> effect = rs.rhale(local, bins=rs.EqualWidthBins(5))
    >>> check = rs.jump_check(effect, local, example.model)
    >>> check["jump_spread"].sel(feature="x3").round(1).values
    array([0., 0., 6., 0., 0.])
    """
    local, effect = check_local(local), check_effect(effect)
    refuse_categorical(effect, "jump_check")
    check_choice("adjust", adjust, ADJUSTMENTS)
    check_same_output(local, effect, ("local", "effect"))
    table = as_table(_table(local) if X is None else X)
    if table.n_rows != local.sizes["obs"]:
        raise ValueError(
            f"X must have the rows of local; got {table.n_rows} rows for {local.sizes['obs']}."
        )
    used = is_used_row(local, effect)
    columns = own_columns(local, feature_names(effect), effect)
    # A row on an edge takes part in the bins on both sides of an effect, and here in one.
    once = local.drop_vars(LEFT, errors="ignore")
    of_rows = own_columns(once, feature_names(effect), effect)
    differences = DifferenceQuotients(model, table, *_asked(local, model), single=True)
    estimates: list[Estimates] = []
    for row in each_feature(effect):
        name = row.name
        position = feature_position(local, name)
        if not row.sizes["bin"]:
            estimates.append(dict.fromkeys(JUMPS, np.nan))
            continue
        column = int(local["feature_column"].values[position])
        table_values = table.column(column)
        if not np.array_equal(table_values, local["x"].values[:, position], equal_nan=True):
            raise ValueError(
                f"X must be the table of local; column {table.names[column]!r} differs from the "
                f"values that local has of feature {name!r}. Pass the X of local_effects."
            )
        check_same_rows(row, *columns[name])
        rows, number = of_rows[name]
        x, g = rows.x[number], rows.local_effect[number]
        bins, present = row.bin_edges, ~np.isnan(table_values)
        # Rows that are left out of the estimate get bins as well, because the model is given whole
        # tables.
        k, is_used = bin_index(bins, table_values[present]), used[present]
        weight = np.ones(len(x)) if rows.weight is None else rows.weight
        left, right = _ends(bins, x, weight)
        across, rounding = differences.take(present).between(column, left[k], right[k])
        inside = (x >= left[k[is_used]]) & (x <= right[k[is_used]]) & (weight > 0)
        across = across[is_used, 0][inside]
        changes = "Changes of the output across bins"
        check_finite(across, changes, name, "See what the model returns.")
        pairs = JumpPairs(k[is_used][inside], across, x[inside], g[inside], weight[inside])
        estimates.append(_jumps(row, (left, right), pairs, rows.frequency, float(rounding[0])))
    arrays = pad_features(estimates, effect.sizes)
    made = {name: variable(name, array, **JUMPS[name]) for name, array in arrays.items()}
    values = adjusted(np.asarray(arrays["jump_pvalue"], np.float64), adjust)
    made["jump_pvalue_adjusted"] = variable("jump_pvalue_adjusted", values, adjust=adjust)
    return effect.assign(made)


JUMPS: dict[str, dict[str, str]] = {
    "jump": {"estimator": "mean of f(right) - f(left) - local effect * width, math [3]"},
    "jump_se": {"source": "rows", "kind": "central limit theorem"},
    "jump_spread": {"estimator": "sd of f(right) - f(left) beyond that of local effect * width"},
    "jump_pvalue": {"null": "the derivative sees all that f does", "missing": NO_PVALUE},
}


def _asked(local: xr.Dataset, model: object) -> tuple[str | None, str]:
    """Output and scale of the model to which the local effects belong.

    A model that is not a classifier has one scale. Local effects from a Jacobian do not say on
    which scale of a classifier they are; they are refused.
    """
    facts = model_facts(local)
    scale = str(facts.get("scale", ""))
    if not scale:
        if is_classifier(model):
            raise ValueError(
                "local must say on which scale of the classifier it is; this one does not, because "
                "it comes from a jacobian or from an older version. Pass as model the function "
                "whose derivatives it holds: "
                "jump_check(lambda X: clf.decision_function(X), local, effect), or "
                "clf.predict_proba(X)[:, 1]."
            )
        scale = "response"
    return str(facts.get("output_label", "")) or None, scale


def _table(local: xr.Dataset) -> Any:
    """The table of ``local``, if that has all columns."""
    position = local["feature_column"].values
    form = local.attrs["table"]
    complete = np.array_equal(np.sort(position), np.arange(local.attrs["n_columns"]))
    if not complete or form not in TABLES:
        raise ValueError(
            f"X must be given here: local holds "
            f"{f'numbers, not the {form}' if complete else 'some columns of the table only'}, and "
            f"the model needs them all. Pass the X of local_effects: "
            f"jump_check(effect, local, model, X)."
        )
    order = np.argsort(position)
    values = local["x"].values[:, order]
    if form == ARRAY:
        return values
    names = [feature_names(local)[position] for position in order]
    labels = [int(name) for name in names] if form == NUMBERED_FRAME else names
    return pd.DataFrame(values, columns=labels, index=local["obs"].values)


class JumpPairs(NamedTuple):
    """Rows between the ends of their bins: bin, change across it, value, local effect, weight."""

    bin: IntArray
    across: FloatArray
    x: FloatArray
    g: FloatArray
    weight: FloatArray


def _ends(bins: FloatArray, x: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Left and right ends of the bins, without the outermost rows of the axis.

    A few rows of a long tail would stand for most of the axis, and decide alone.
    """
    left, right = bins[:-1].copy(), bins[1:].copy()
    order = sorting(x)
    sums = np.cumsum(weight[order])
    low, high = x[order][np.searchsorted(sums, sums[-1] * np.array([OUTER, 1 - OUTER]))]
    first, last = bin_index(bins, np.array([low, high]))
    if low < high:
        left[first], right[last] = low, high
    return left, right


def _jumps(
    row: FeatureResult,
    ends: tuple[FloatArray, FloatArray],
    pairs: JumpPairs,
    frequency: bool,
    rounding_of_output: float,
) -> Estimates:
    """math [3] for one feature."""
    k, across = pairs.bin, pairs.across
    width, middle = ends[1] - ends[0], (ends[0] + ends[1]) / 2
    # In a linear bin the change across it is that of the effect in the middle.
    derivative = (pairs.g + row.slopes[k] * (middle[k] - pairs.x)) * width[k]
    share = _along_axis(row, ends, pairs, frequency=frequency)
    count = pairs.weight if frequency else np.ones(len(k))
    n, mean, standard_error = _means(k, share, count, len(width))
    missed, missed_se, missed_degrees = standard_error(across - derivative)
    # Squares about the means, row by row: the difference accounts for both being of the same rows.
    squares = (across - mean(across)[k]) ** 2 - (derivative - mean(derivative)[k]) ** 2
    spread, spread_se, spread_degrees = standard_error(squares)
    size = max(float(np.abs(across).max()), float(np.abs(derivative).max()))
    rounding = (
        rounding_of_output
        + 16 * float(np.finfo(np.float64).eps) * size
        + float(row["local_effect_error"]) * width
    )
    # Rounding of a square, whose root has the size of the deviations.
    of_squares = 2 * rounding * size + rounding**2
    of_mean = _pvalue(np.abs(missed), missed_se, rounding, missed_degrees)
    of_spread = _pvalue(spread, spread_se, of_squares, spread_degrees)
    pvalue = np.minimum(1.0, 2 * np.minimum(np.minimum(1.0, 2 * of_mean), of_spread))
    with np.errstate(invalid="ignore", divide="ignore"):
        excess = np.sqrt(np.maximum(spread, 0.0) * n / (n - 1))
    return {
        "jump": np.where(np.abs(missed) <= rounding, 0.0, missed),
        "jump_se": missed_se,
        "jump_spread": np.where(spread <= of_squares, 0.0, excess),
        "jump_pvalue": np.where(row.n_effective >= TESTED_ROWS, pvalue, np.nan),
    }


def _along_axis(
    row: FeatureResult, ends: tuple[FloatArray, FloatArray], pairs: JumpPairs, *, frequency: bool
) -> FloatArray:
    """Weights of rows that add up to 1 in every bin, in proportion to the width of their cell.

    A change across a bin is an average along the axis times the width of the bin. Where rows crowd
    at one end of it, their plain mean is another number although nothing jumps.
    """
    k, x, weight = pairs.bin, pairs.x, pairs.weight
    bins = row.bin_edges
    if row.has_cells:
        edges = row.edges
    else:
        n = float(row.n_effective.sum())
        n_cells = min(max(n / cells.CELL_ROWS, 1.0), cells.MAX_CELLS)
        edges = cells.nested_edges(x, weight, bins, n_cells, frequency=frequency)
    cell = bin_index(edges, x)
    bin_of = bin_index(bins, (edges[:-1] + edges[1:]) / 2)
    width = np.minimum(edges[1:], ends[1][bin_of]) - np.maximum(edges[:-1], ends[0][bin_of])
    total = np.bincount(cell, weight, len(width))
    with np.errstate(invalid="ignore", divide="ignore"):
        share = weight * (np.maximum(width, 0.0) / total)[cell]
        return np.asarray(share / np.bincount(k, share, len(bins) - 1)[k])


def _means(
    k: IntArray, share: FloatArray, count: FloatArray, n_bins: int
) -> tuple[FloatArray, Callable[..., FloatArray], Callable[..., tuple[FloatArray, ...]]]:
    """Rows of equal weight that a mean is worth, and functions that give means of all bins.

    The second function also gives standard errors and their degrees of freedom. ``count``: how
    often a row is repeated.
    """
    each = share / count
    with np.errstate(divide="ignore"):
        n = 1 / np.bincount(k, count * each**2, n_bins)

    def mean(values: FloatArray) -> FloatArray:
        out = np.bincount(k, share * values, n_bins)
        return np.where(np.isfinite(n), out, np.nan)

    def standard_error(values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        centre = mean(values)
        squares = (each * (values - centre[k])) ** 2
        with np.errstate(invalid="ignore", divide="ignore"):
            square, fourth = [np.bincount(k, count * squares**p, n_bins) for p in (1, 2)]
            # Satterthwaite: fewer where a few rows decide, n for normal values of equal weight.
            degrees = 2 * square**2 / (fourth - square**2 / n)
            return centre, np.sqrt(square * n / (n - 1)), np.clip(degrees, 1.0, n - 1)

    return n, mean, standard_error


def _pvalue(
    estimate: FloatArray, se: FloatArray, rounding: FloatArray, degrees: FloatArray
) -> FloatArray:
    """One-sided p-value of Student's t; differences of the size of rounding count as 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(estimate <= rounding, 1.0, stdtr(degrees, -estimate / se))
