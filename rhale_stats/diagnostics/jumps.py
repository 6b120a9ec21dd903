"""Check whether the output of the model jumps within bins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from scipy.special import stdtr

from rhale_stats.arguments.checks import check_choice, check_finite
from rhale_stats.arrays import cells
from rhale_stats.arrays.binning import bin_index, sorting
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.diagnostics.unbiased import NO_PVALUE
from rhale_stats.effects.provenance import check_same_rows
from rhale_stats.inference.adjustment import ADJUSTMENTS, adjusted
from rhale_stats.inference.bias import TESTED_ROWS
from rhale_stats.local.labelled import ARRAY, FRAME, NUMBERED_FRAME
from rhale_stats.local.rows import estimation_rows, is_used_row, own_columns
from rhale_stats.models.differences import DifferenceQuotients
from rhale_stats.models.outputs import Model, is_classifier
from rhale_stats.models.table import as_table
from rhale_stats.schema.checks import check_effect, check_local
from rhale_stats.schema.dimensions import LEFT
from rhale_stats.schema.feature_result import FeatureResult, one_feature
from rhale_stats.schema.features import feature_names, feature_position
from rhale_stats.schema.identity import check_same_output, model_facts
from rhale_stats.schema.levels import refuse_categorical
from rhale_stats.schema.padding import Estimates, pad_features
from rhale_stats.schema.parts import over_outputs
from rhale_stats.schema.validation import validated
from rhale_stats.schema.variables import variable

# Rows at either end of the axis that are left out, as a share.
OUTER = 0.005
# Forms of a table that can be made again from local effects.
TABLES = (ARRAY, FRAME, NUMBERED_FRAME)


@validated
@over_outputs
def jump_check(
    effect: xr.Dataset,
    local: xr.Dataset,
    model: Model,
    X: Any = None,
    *,
    adjust: str = "holm",
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
    columns = own_columns(estimation_rows(local, effect), feature_names(effect))
    # A row on an edge takes part in the bins on both sides of an effect, and here in one.
    once = local.drop_vars(LEFT, errors="ignore")
    of_rows = own_columns(estimation_rows(once, effect), feature_names(effect))
    differences = DifferenceQuotients(model, table, *_asked(local, model), single=True)
    estimates: list[Estimates] = []
    for name in feature_names(effect):
        row = one_feature(effect, name)
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
        bins, present = row["edge_value"].values, ~np.isnan(table_values)
        # Rows that are left out of the estimate get bins as well, because the model is given whole
        # tables.
        k, is_used = bin_index(bins, table_values[present]), used[present]
        weight = np.ones(len(x)) if rows.weight is None else rows.weight
        left, right = _ends(bins, x, weight)
        across, rounding = differences.take(present).between(column, left[k], right[k])
        inside = (x >= left[k[is_used]]) & (x <= right[k[is_used]]) & (weight > 0)
        across = across[is_used, 0][inside]
        check_finite(
            across, "Changes of the output across bins", name, "See what the model returns."
        )
        pairs = JumpPairs(k[is_used][inside], across, x[inside], g[inside], weight[inside])
        estimates.append(_jumps(row, (left, right), pairs, rows.frequency, float(rounding[0])))
    checked_effect = effect.assign(
        {
            name: variable(name, array, **JUMPS[name])
            for name, array in pad_features(estimates, effect.sizes["bin"]).items()
        }
    )
    values = adjusted(checked_effect["jump_pvalue"].values, adjust)
    checked_effect["jump_pvalue_adjusted"] = variable("jump_pvalue_adjusted", values, adjust=adjust)
    return checked_effect


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
        "jump_pvalue": np.where(row["n_effective"].values >= TESTED_ROWS, pvalue, np.nan),
    }


def _along_axis(
    row: FeatureResult, ends: tuple[FloatArray, FloatArray], pairs: JumpPairs, *, frequency: bool
) -> FloatArray:
    """Weights of rows that add up to 1 in every bin, in proportion to the width of their cell.

    A change across a bin is an average along the axis times the width of the bin. Where rows crowd
    at one end of it, their plain mean is another number although nothing jumps.
    """
    k, x, weight = pairs.bin, pairs.x, pairs.weight
    bins = row["edge_value"].values
    if row.has_cells:
        edges = row.cell_edges
    else:
        n = float(row["n_effective"].values.sum())
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
