"""Which numbers of a table are meaningful, what they hold, and the notes that say so."""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arrays import bin_error
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.inference.adjustment import adjusted
from rhale_stats.inference.estimate import kept_interval
from rhale_stats.models.parametric import STEP
from rhale_stats.printing.text import holds_model
from rhale_stats.schema.feature_result import FeatureResult, Result, bin_residuals, each_feature
from rhale_stats.schema.features import resolution
from rhale_stats.schema.levels import NOMINAL

# Reasons.
ORDER = "the levels have no order of their own, so this number would depend on an arbitrary order"
RIGID = "the model has one effect of this feature at all values, so that there is no difference"
ONE_BIN = "a single bin: no degree of freedom is left"
NO_ROWS = "too few rows: no degree of freedom is left"
ZERO = "0 up to the numerical error of the local effects"
ALIKE = "the local effects differ by their numerical error only, so there is no sampling error"


def is_unordered(dataset: Result) -> NDArray[np.bool_]:
    """Whether averages along a feature depend on an order of levels that is not their own."""
    if "feature_kind" not in dataset:
        return np.zeros(dataset["feature"].shape, dtype=bool)
    return np.asarray(dataset["feature_kind"].values.astype(str) == NOMINAL)


def least_effect(row: FeatureResult) -> float:
    """Numerical limit of one feature: smaller effects are 0, smaller differences are none."""
    values = row["effect"].values
    error = float(np.nan_to_num(row["local_effect_error"])) if "local_effect_error" in row else 0.0
    return resolution(values, error) if np.isfinite(values).any() else error


def is_alike(row: FeatureResult) -> NDArray[np.bool_]:
    """Bins of one feature in which local effects differ by numerical error only."""
    return np.asarray(row["heterogeneity"].values <= least_effect(row))


def _has_no_error(row: FeatureResult) -> NDArray[np.bool_]:
    """Bins of one feature whose effects have no sampling error up to numerical error."""
    if "effect_se_model" not in row:
        return is_alike(row)
    # Parameters move effects of which all rows have the same; steps along them magnify rounding.
    return np.asarray(row["effect_se"].values <= least_effect(row) / STEP)


def is_zero(row: FeatureResult) -> NDArray[np.bool_]:
    """Bins of one feature whose local effects are all 0 up to numerical error."""
    half = np.diff(row["edge_value"].values) / 2
    largest = np.abs(row["effect"].values) + np.abs(row.slopes) * half
    return np.asarray(is_alike(row) & (largest <= least_effect(row)))


def of_bins(row: FeatureResult) -> list[str]:
    """Why the effect of a bin, or its standard error, is 0 in a table; empty where it is not."""
    exact = _has_no_error(row)
    return [
        "" if not is_exact else ZERO if nothing else ALIKE
        for is_exact, nothing in zip(exact, is_zero(row), strict=True)
    ]


def of_effects(row: FeatureResult) -> str:
    """Why the effects of one feature have no sampling error; empty where they have one."""
    estimated = row["effect"].notnull().values
    if not estimated.any() or not _has_no_error(row)[estimated].all():
        return ""
    return ZERO if is_zero(row)[estimated].all() else ALIKE


def of_average(row: FeatureResult) -> str:
    """Why the average effect of one feature is blank or has no error; empty otherwise."""
    if is_unordered(row):
        return ORDER
    reason, values = of_effects(row), row["effect"].values[row["effect"].notnull().values]
    # If bins have different effects, the average varies between samples of rows.
    same = reason and np.ptp(values) <= 2 * least_effect(row) and not row.slopes.any()
    return reason if same else ""


# After the name of an estimate: its interval by the rows alone.
ROWS = "_ci_rows"
# A larger share of a covariance in the variance is mentioned.
SHARED = 0.01


def with_rows_alone(result: xr.Dataset) -> xr.Dataset:
    """The result with ``NAME_ci_rows`` beside every interval that holds rows and model.

    The quantile is that of the interval, so that lengths compare as standard errors do.
    """
    intervals = [str(name) for name in result.data_vars if _has_parts(result, str(name))]
    names = [name.removesuffix("_ci") for name in intervals]
    made = {f"{name}{ROWS}": _rows_alone(result, name) for name in names}
    return result.assign(made) if made else result


def _has_parts(result: xr.Dataset, interval: str) -> bool:
    """Whether a variable is an interval made of the standard error that has parts."""
    name = str(interval).removesuffix("_ci")
    if name == interval or not {name, f"{name}_se", f"{name}_se_rows"} <= set(result.data_vars):
        return False
    source = str(result[interval].attrs.get("source", ""))
    # Intervals by replicates have another source than the standard error.
    return source == _source(result, name) and is_of_both(source)


def is_of_both(source: str) -> bool:
    """Whether a standard error of this source holds the rows and the model."""
    return holds_model(source) and "rows" in re.findall(r"\w+", source)


def parts_note(result: Result, name: str, what: str) -> str:
    """How much of the variance of estimates is due to the model, in a sentence; empty if unknown.

    Of the sum of both variances: their covariance belongs to neither.
    """
    if f"{name}_se_rows" not in result or not is_of_both(_source(result, name)):
        return ""
    rows, model = (
        np.asarray(result[f"{name}_se_{part}"].values, dtype=np.float64) ** 2
        for part in ("rows", "model")
    )
    total = rows + model
    shares = np.divide(model, total, out=np.full(total.shape, np.nan), where=total > 0)
    if not np.isfinite(shares).any():
        return ""
    low, high = (f"{100 * end(shares):.0f}" for end in (np.nanmin, np.nanmax))
    text = low if low == high else f"{low} to {high}"
    cause = "parameters" if "parameters" in _source(result, name) else "model"
    whole = np.asarray(result[f"{name}_se"].values, dtype=np.float64) ** 2
    shared = np.divide(whole - total, total, out=np.zeros(total.shape), where=total > 0)
    apart = ", covariance apart" if np.nanmax(np.abs(shared)) > SHARED else ""
    sentence = f"{text} % is due to the {cause} and the rest to the rows{apart}."
    return f"Of the variance of {what}, {sentence}"


def _source(result: Result, name: str) -> str:
    return str(result[f"{name}_se"].attrs.get("source", ""))


def _rows_alone(result: xr.Dataset, name: str) -> xr.DataArray:
    dims = result[name].dims
    ends = result[f"{name}_ci"].transpose(*dims, "ci_bound")
    value, se, rows = (
        np.asarray(result[key].transpose(*dims).values, dtype=np.float64)[..., None]
        for key in (name, f"{name}_se", f"{name}_se_rows")
    )
    share = np.divide(rows, se, out=np.zeros(se.shape), where=se > 0)
    source = str(result[f"{name}_se_rows"].attrs.get("source", "rows"))
    shorter: FloatArray = value + share * (ends.values - value)
    return xr.DataArray(shorter, dims=ends.dims, attrs=ends.attrs | {"source": source})


# With fewer rows there is no p-value: the test would have no power.
TESTED_ROWS = 10
FINE, BIASED, LARGE = "fine", "biased upwards", "bias larger than standard error"
TOO_FEW = "too few rows"


def linear_bin_error(effect: xr.Dataset, *, significance: float) -> xr.DataArray:
    """Bins whose heterogeneity is biased by more than its standard error, by a linear fit.

    Uses only the moments in ``effect``: the part of the bin error that is linear in x, if an F test
    is significant (Holm over all bins). A change up and down within a bin is not detected.

    Parameters
    ----------
    effect : Dataset
        With standard errors.
    significance : float

    Returns
    -------
    DataArray of bool (feature, bin)
    """
    from scipy.stats import t

    n = effect["n_effective"].values
    variance = effect["heterogeneity"].values ** 2
    rows = each_feature(effect)
    x_variance, x_covariance = bin_residuals(rows, ["x_variance", "x_covariance"], n.shape[-1])
    line, statistic = bin_error.linear_part(variance, x_variance, x_covariance, n)
    least = [
        resolution(row.bin_means, float(row["local_effect_error"])) if row.sizes["bin"] else 0.0
        for row in rows
    ]
    with np.errstate(invalid="ignore", divide="ignore"):
        pvalue = np.where(n >= TESTED_ROWS, 2 * t.sf(np.sqrt(statistic), n - 2), np.nan)
        pvalue[np.sqrt(variance) <= np.array(least)[:, None]] = np.nan
        bias = np.sqrt(variance) - np.sqrt(np.maximum(variance - line, 0.0))
    large = (adjusted(pvalue, "holm") < significance) & (bias > effect["heterogeneity_se"].values)
    return effect["effect"].copy(data=large)


# Rules that choose edges by the local effects, and what that does to standard errors.
SEARCHED = ("AdaptiveBins", "OptimalBins", "GreedyBins", "BestEqualWidthBins")
CHOSEN_BINS = (
    "They treat the bin edges as fixed, which were chosen on the same rows: intervals of bin "
    "effects are too narrow. honest=True reduces this."
)
CHOICE_INCLUDED = (
    "They include the choice of the bin edges on the same rows; intervals of the heterogeneity do "
    "not. honest=True chooses on other rows."
)


def bins_note(attrs: dict[Hashable, Any]) -> str:
    """The rule for bins and its parameters, in a sentence; of a comparison those of both."""
    rule, parameters = attrs["bin_rule"], attrs["bin_parameters"]
    description = f"{rule}({parameters})" if parameters else str(rule)
    if "bin_rule_b" in attrs or "bin_parameters_b" in attrs:
        rule, parameters = attrs.get("bin_rule_b", rule), attrs.get("bin_parameters_b", parameters)
        return f"Bins: {description} of the first, {rule}({parameters}) of the second."
    return f"Bins: {description}."


def rows_of(attrs: dict[Hashable, Any]) -> str:
    """Number of rows; of a comparison those of both, where they differ."""
    n_rows = str(attrs["n_rows"])
    return f"{n_rows} and {attrs['n_rows_b']}" if "n_rows_b" in attrs else n_rows


def reasons_of(table: pd.DataFrame) -> list[str]:
    """Why a line has a value that is 0 or missing; empty where it has none."""
    return table["reason"].tolist() if "reason" in table else [""] * len(table)


def because(names: list[str], reasons: list[str]) -> list[str]:
    """Reasons, each with the lines that it is given for."""
    names_of_reason: dict[str, list[str]] = {}
    for name, reason in zip(names, reasons, strict=True):
        if reason:
            names_of_reason.setdefault(reason, []).append(name)
    return [f"{', '.join(lines)}: {reason}." for reason, lines in names_of_reason.items()]


def how_made(result: Result, name: str, level: float) -> str:
    """How the intervals in a table were made."""
    if kept_interval(result, name, level) is None:
        return "Student's t"
    return str(result[f"{name}_ci"].attrs["method"]).removeprefix("standard errors, ")


def interval_notes(effect: xr.Dataset) -> list[str]:
    """Intervals and bands in the data: at which level, of what, by which method."""
    alike: dict[str, list[str]] = {}
    for name in effect.data_vars:
        if str(name).endswith(("_ci", "_band")):
            facts = effect[name].attrs
            how = f"{facts['ci_prob']:.3g}, {facts['kind']}, {facts['method']}; {facts['source']}"
            alike.setdefault(how, []).append(str(name))
    return [f"In the result: {', '.join(names)} ({how})." for how, names in alike.items()]
