"""Effects as data frames, a line a bin, feature or row; effects and checks of them as printed."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from scipy import special

from rhale_stats.arguments.times import are_dates, shown_values
from rhale_stats.arrays.accumulate import turning_points
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.bins.description import has_fact
from rhale_stats.effects.errors import std_error
from rhale_stats.effects.fit import (
    average_degrees,
    curve_degrees,
    degrees_in_bins,
    includes_choice,
)
from rhale_stats.effects.hypotheses import wald_test
from rhale_stats.effects.provenance import check_same_model
from rhale_stats.effects.spread import spread_estimate
from rhale_stats.effects.values import beside, importances, inner, inner_text
from rhale_stats.inference import meaning
from rhale_stats.inference.estimate import (
    by_errors,
    ends_in_table,
    estimate_columns,
    kept_interval,
)
from rhale_stats.inference.meaning import (
    FINE,
    LARGE,
    TESTED_ROWS,
    TOO_FEW,
    is_unordered,
    linear_bin_error,
    of_averages,
    of_bins,
    of_effects,
)
from rhale_stats.inference.notes import (
    CHOICE_INCLUDED,
    CHOSEN_BINS,
    because,
    bins_note,
    how_made,
    interval_notes,
    parts_note,
    reasons_of,
)
from rhale_stats.inference.parameters import ADDED, BY_ROW, ROWS_FIXED
from rhale_stats.printing.text import (
    Body,
    beyond_notes,
    bin_labels,
    bounds_text,
    cell,
    feature_counts,
    head_of,
    holds_model,
    includes_model,
    interval_labels,
    number_cell,
    number_text,
    output_text,
    percent,
    pvalue_text,
    source_of,
    table_lines,
    with_facts,
)
from rhale_stats.schema.all_features import AllFeatures
from rhale_stats.schema.checks import check_effect, check_local
from rhale_stats.schema.curves import FeatureCurve
from rhale_stats.schema.feature_result import (
    FeatureResult,
    Result,
    all_features,
    each_feature,
    has_moments,
    one_feature,
)
from rhale_stats.schema.features import (
    feature_names,
    feature_position,
    is_of_outcome,
    units_in,
    units_of,
    with_units,
)
from rhale_stats.schema.levels import ORDINAL, is_categorical, level_names
from rhale_stats.schema.notes import PrintedTable, Summary
from rhale_stats.schema.padding import padded
from rhale_stats.schema.parts import over_outputs
from rhale_stats.schema.validation import validated

# Largest spread over the smallest one in a bin of the effect, from which a note says so.
NOTABLE = 1.5
# Least share of a bin, or of a bin of the spread, that both have in common, for that note.
OVERLAP = 0.05
# Most lines of the table of the spread.
MAX_LINES = 20


def within_bins(row: FeatureResult) -> FloatArray:
    """Smallest and largest spread in every bin of the effect of one feature, (end, bin).

    A bin of the spread that only a twentieth of the bin, or less, belongs to does not count there.
    """
    edges, spread_edges, spread = row.bin_edges, row.spread_edges, row.spread
    left, right = edges[:-1, None], edges[1:, None]
    if len(spread_edges) < 2:
        return np.full((2, len(left)), np.nan)
    shared = np.minimum(right, spread_edges[1:]) - np.maximum(left, spread_edges[:-1])
    counts = shared > OVERLAP * np.minimum(right - left, np.diff(spread_edges))
    low, high = [np.where(counts, spread, end) for end in (np.inf, -np.inf)]
    return np.stack([low.min(axis=1), high.max(axis=1)])


def spread_notes(effect: xr.Dataset, *, alone: bool = False) -> list[str]:
    """Note on features whose spread changes within bins of the effect, or on one that is alone."""
    if "spread" not in effect:
        return []
    texts = []
    for number in np.flatnonzero(all_features(effect).n_stretches > 1).tolist():
        row = one_feature(effect, number)
        low, high = within_bins(row)
        if (high > NOTABLE * low).any():
            spread = row.spread
            ends = f"{number_text(np.nanmin(spread))} to {number_text(np.nanmax(spread))}"
            texts.append(f"{row.name} ({ends} in {len(spread)} bins of the spread)")
    if not texts:
        return []
    note = f"The spread of the local effects changes within bins of {', '.join(texts)}"
    if alone:
        return [f"{note}. heterog. is its average over a bin."]
    return [f"{note}. See summary(effect, {texts[0].partition(' (')[0]!r})."]


def spread_table(row: FeatureResult, level: float) -> PrintedTable | None:
    """The spread of one feature in bins of its own, where it has several, and not very many."""
    starts = row.spread_starts
    if "spread_se" not in row or not 1 < len(starts) <= MAX_LINES:
        return None
    (estimate,) = spread_estimate(row.source.isel(feature=[row.position])).values()
    ends = kept_interval(row, "spread", level)
    ends = by_errors(estimate, level)[0][0] if ends is None else ends[starts]
    n_obs = np.rint(row.spread_sums.n_obs).astype(np.int64)
    heads = ["rows", "spread", "std err", *bounds_text(level)]
    columns = (row.spread, row["spread_se"].values[starts], ends[:, 0], ends[:, 1])
    lines = [
        [f"{n}", *[number_text(float(value)) for value in values]]
        for n, *values in zip(n_obs, *columns, strict=True)
    ]
    labels = interval_labels(row.spread_edges, units_in(row))
    return PrintedTable(lines, heads, labels, "Spread, in bins of its own")


# --- effects as data frames -----------------------------------------------------------------------


# Source of a standard error that has no formula, before there are replicates.
NOT_ESTIMATED = "not estimated; see confint(effect, boot)"
# What `tidy` shows of a check, where one was made.
CHECKED = (
    *("heterogeneity_within", "heterogeneity_within_se", "bin_error", "bin_error_se"),
    *("bin_error_share", "von_neumann_ratio", "bin_error_pvalue", "bin_error_pvalue_adjusted"),
    *("rank_ratio", "rank_pvalue", "rank_pvalue_adjusted", "density_bias", "density_bias_se"),
    *("verdict", "jump", "jump_se", "jump_spread", "jump_pvalue", "jump_pvalue_adjusted"),
)


def tidy(effect: xr.Dataset, level: float) -> pd.DataFrame:
    """`tidy` of effects in bins: a line a bin."""
    effect = with_errors(effect)
    features, rows = all_features(effect), each_feature(effect)
    is_bin = features.is_bin

    def in_lines(name: str) -> NDArray[Any]:
        return np.asarray(features.along(name, "bin")[is_bin])

    columns: dict[str, Any] = {
        "term": np.array(feature_names(effect))[features.feature],
        "bin": effect["bin"].values[np.nonzero(is_bin)[1]],
    }
    for name in ("bin_left", "bin_right"):
        columns[name] = in_lines(name)
        if any(are_dates(units_in(row)) for row in rows):
            shown = [pd.Series(shown_values(row[name].values, units_in(row))) for row in rows]
            columns[name] = pd.concat(shown, ignore_index=True)
    if features.has_levels.any():
        texts = [
            level_names(row) if row.is_categorical else [""] * (row.sizes["bin"] + 1)
            for row in rows
        ]
        columns["level_from"] = [text for each in texts for text in each[:-1]]
        columns["level_to"] = [text for each in texts for text in each[1:]]
    columns["n_obs"] = in_lines("n_obs")
    reasons = of_bins(features)
    intervals = _wald_columns(effect, "effect", level, degrees_in_bins(features), reasons)
    columns |= {name: values[is_bin] for name, values in intervals.items()}
    for name in ("heterogeneity", "heterogeneity_se"):
        columns[name] = np.where(features.is_alike[is_bin], 0.0, in_lines(name))
    if "spread" in effect:
        ranges = np.hstack([within_bins(row) for row in rows])
        columns |= dict(zip(("spread_min", "spread_max"), ranges, strict=True))
    columns |= {name: in_lines(name) for name in ("slope", "slope_se") if name in effect}
    checks = list(map(columns_of_checks, rows))
    for name in filter(checks[0].__contains__, CHECKED):
        columns[name] = np.concatenate([each[name] for each in checks])
    return _spoken(pd.DataFrame({**columns, "reason": reasons[is_bin]}))


def _spoken(table: pd.DataFrame) -> pd.DataFrame:
    """Drop columns that are empty in all lines."""
    named = [name for name in ("statistic", "p_value", "reason") if name in table]
    empty = [name for name in named if (table[name].isna() | (table[name] == "")).all()]
    return table.drop(columns=empty) if empty else table


def glance(effect: xr.Dataset, level: float) -> pd.DataFrame:
    """`glance` of effects in bins: a line a feature."""
    effect = with_errors(effect)
    features, within = all_features(effect), inner(effect)
    reasons = of_averages(features)
    columns = _wald_columns(effect, "average_effect", level, average_degrees(features), reasons)
    alike = (features.is_alike | np.isnan(features.effect)).all(axis=-1)
    extent = curve_extents(within)
    columns |= {
        name: np.where(alike & np.isfinite(values), 0.0, values)
        for name, values in (
            ("heterogeneity", np.sqrt(_mean_squares(features))),
            ("heterogeneity_output", effect["heterogeneity_output"].values),
            ("heterogeneity_index", within["heterogeneity_index"].values),
        )
    }
    n_obs = features.padded(features.at_bins("n_obs"), 0.0).sum(axis=-1).astype(np.int64)
    if features.has_levels.any():
        n_obs = np.where(features.has_levels, effect["n_level"].sum("edge").values, n_obs)
    unordered = is_unordered(effect)
    for name in (*WALD, "heterogeneity_output", "heterogeneity_index"):
        columns[name] = np.where(unordered, np.nan, columns[name])
    frame = pd.DataFrame(
        {
            "term": feature_names(effect),
            "kind": effect["feature_kind"].values.astype(str),
            "n_bins": effect["n_bins"].values,
            **({"n_spread_bins": features.n_stretches} if "spread" in effect else {}),
            "n_obs": n_obs,
            **columns,
            "curve_min": extent[:, 0],
            "curve_max": extent[:, 1],
            "reason": reasons,
        }
    )
    return _spoken(frame)


def _mean_squares(features: AllFeatures) -> FloatArray:
    """Mean squares of the heterogeneity over the rows, of bins where it is known, (feature,)."""
    spread = features.padded(features.heterogeneity)
    share = np.where(np.isnan(spread), np.nan, features.weight_share)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.nansum(share * spread**2, axis=-1) / np.nansum(share, axis=-1))


def curve_extents(effect: xr.Dataset) -> FloatArray:
    """Smallest and largest value of every curve, in the cells that count, (feature, 2)."""
    features = all_features(effect)
    values = effect["curve"].transpose("feature", ...).values
    if "cell_share" in effect:
        counts = beside(features.cell_share > 0) | features.has_levels[:, None]
        values = np.where(counts, values, np.nan)
    if not features.along_axis and features.slopes.any():
        turns = [_at_turns(row, values[row.position]) for row in each_feature(effect)]
        values = np.concatenate([values, padded(turns)], axis=1)
    # Of a feature without a curve nothing is known.
    zero = (of_effects(features) == meaning.ZERO) & ~np.isnan(values).all(axis=1)
    ends = [np.where(zero, 0.0, end.reduce(values, axis=1)) for end in (np.fmin, np.fmax)]
    return np.stack(ends, axis=1)


def _at_turns(row: FeatureResult, values: FloatArray) -> FloatArray:
    """The curve of one feature where it turns between edges."""
    curve = FeatureCurve(row.edges, values[: len(row.edges)], row.slopes)
    return curve.evaluate(turning_points(curve.edges, row["effect"].values, curve.slope))


@validated
@over_outputs
def augment(effect: xr.Dataset, local: xr.Dataset) -> pd.DataFrame:
    """The rows with their estimates, one line per observation.

    Parameters
    ----------
    effect, local : Dataset
        What `rhale` made, and the local effects that it was made from, or those of other rows. If a
        value lies outside the bins, columns are NaN and the bin is missing.

    Returns
    -------
    DataFrame
        Indexed by ``obs``. For every feature ``f`` of ``effect``: ``f`` (its value; a date where it
        is one), ``f.local_effect``, ``f.bin``, ``f.effect`` (of the bin; in a linear bin, at the
        value), ``f.residual`` (local effect minus effect) and ``f.curve`` at the value; ``weight``
        if there are weights. For a categorical feature ``f`` is the level and ``f.local_effect``
        the mean difference to the neighbouring levels. A row can belong to two steps, so bin,
        effect and residual are missing.

    Raises
    ------
    KeyError
        A feature of ``effect`` is not in ``local``.
    ValueError
        ``local`` has the same rows as ``effect``, but local effects of another model, output or
        scale.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 1))
    >>> local = rs.local_effects(lambda X: X[:, 0] ** 2, X)
    >>> rs.augment(rs.rhale(local), local).columns.tolist()
    ['x0', 'x0.local_effect', 'x0.bin', 'x0.effect', 'x0.residual', 'x0.curve']
    """
    local, effect = check_local(local), check_effect(effect)
    check_same_model(local, effect)
    columns: dict[str, object] = {}
    if "weight" in local:
        columns["weight"] = local["weight"].values
    for name in feature_names(effect):
        row = one_feature(effect, name)
        rows = local.isel(feature=feature_position(local, name))
        x, g = rows["x"].values, rows["local_effect"].values
        number = pd.array(np.zeros(len(x), dtype=np.int64), dtype="Int64")
        mean, curve = np.full(len(x), np.nan), np.full(len(x), np.nan)
        edges = row.bin_edges
        inside = np.zeros(len(x), dtype=bool)
        if row.is_categorical != is_categorical(rows):
            raise ValueError(
                f"local must be what effect was made from; feature {name!r} has levels in one of "
                f"them and an axis in the other."
            )
        if row.is_categorical:
            present = ~np.isnan(x)
            level = x[present].astype(np.int64)
            curve[present] = row["curve"].values[level]
            x = np.full(len(x), "", dtype=object)
            x[present] = np.array(level_names(row), dtype=object)[level]
        elif len(edges):
            inside = (x >= edges[0]) & (x <= edges[-1])
            k = bin_index(edges, x)
            number[:] = k
            mean = np.where(inside, row.effect_at(x, k), np.nan)
            curve = row.curve.evaluate(x)
        number[~inside] = pd.NA
        columns |= {
            name: x if row.is_categorical else shown_values(x, units_in(row)),
            f"{name}.local_effect": g,
            f"{name}.bin": number,
            f"{name}.effect": mean,
            f"{name}.residual": g - mean,
            f"{name}.curve": curve,
        }
    return pd.DataFrame(columns, index=pd.Index(local["obs"].values, name="obs"))


# Columns of an estimate with its error.
WALD = ("estimate", "std_error", "statistic", "p_value", "conf_low", "conf_high")


def _wald_columns(
    effect: Result, name: str, level: float, degrees: FloatArray, reasons: NDArray[np.str_]
) -> dict[str, FloatArray]:
    """Columns of an estimate with its standard error; t and P only if it includes the model."""
    estimate, se = effect[name].values, effect[f"{name}_se"].values
    ends = ends_in_table(effect, name, se, degrees, level)
    zero, alike = [reasons == why for why in _EXACT]
    estimate = np.where(zero, 0.0, estimate)
    se = np.where(zero | alike, 0.0, se)
    ends = np.where((zero | alike)[..., None], estimate[..., None], ends)
    tested = ~(zero | alike) & includes_model(effect, name)
    with np.errstate(invalid="ignore", divide="ignore"):
        statistic = np.where(tested, estimate / se, np.nan)
    return {
        "estimate": estimate,
        "std_error": se,
        "statistic": statistic,
        "p_value": 2 * special.stdtr(degrees, -np.abs(statistic)),
        "conf_low": ends[..., 0],
        "conf_high": ends[..., 1],
    }


# Reasons for which an estimate or its error is 0.
_EXACT = (meaning.ZERO, meaning.ALIKE)


def with_errors(effect: xr.Dataset) -> xr.Dataset:
    """The effect with standard errors, added if it has none."""
    effect = check_effect(effect)
    done = "average_effect_se" in effect and "effect_se" in effect
    return effect if done else std_error(effect)


# Columns of sizes that were compared with those by chance.
BY_CHANCE = ("threshold", "chance_p_value")
HEADS = {"p_value": "P", "chance_p_value": "P chance"}


def tidy_sizes(sizes: xr.Dataset, _level: float) -> pd.DataFrame:
    """`tidy` of sizes: a line a size of a feature."""
    names = [str(name) for name in sizes.data_vars if sizes[name].dims == ("feature",)]
    tested = any(str(name).endswith("_p_value") for name in sizes.data_vars)
    lines = []
    for number, term in enumerate(feature_names(sizes)):
        row = sizes.isel(feature=number)
        for name in names:
            if name.endswith(("_corrected", "_p_value", "_threshold")):
                continue
            line = {"term": term, "size": name, "estimate": float(row[name])}
            if f"{name}_corrected" in sizes:
                line["corrected"] = float(row[f"{name}_corrected"])
            low, high = row[f"{name}_ci"].values if f"{name}_ci" in sizes else (np.nan, np.nan)
            line |= {"conf_low": float(low), "conf_high": float(high)}
            has_p_value = f"{name}_p_value" in sizes
            if tested:
                line["p_value"] = float(row[f"{name}_p_value"]) if has_p_value else np.nan
            if "chance" in sizes.attrs:
                line |= {column: float(row.get(f"{name}_{column}", np.nan)) for column in BY_CHANCE}
            lines.append(line)
    return pd.DataFrame(lines)


def _chance_notes(sizes: xr.Dataset) -> list[str]:
    """How sizes by chance were found, where they were."""
    attrs = sizes.attrs
    if "chance" not in attrs:
        return []
    level = float(sizes["importance_threshold"].attrs["level"])
    failed = int(sizes["failed"].sum())
    added = attrs["chance"] == "added column"
    column = "an added random column" if added else "the column permuted"
    failures = f" ({failed} fits failed)" if failed else ""
    return [
        f"threshold, P chance: sizes in {attrs['n_resamples']} fits{failures} of the model with "
        f"{column}; larger sizes than the threshold have P of at most {1 - level:.3g}. They "
        f"include overfitting; P does not."
    ]


def sizes_summary(sizes: xr.Dataset, _feature: object, level: float) -> Summary:
    """Sizes of effects, a line a size."""
    attrs, table = sizes.attrs, tidy_sizes(sizes, level)
    names = [str(name) for name in table.columns if name not in ("term", "size")]
    heads = [HEADS.get(name, name) for name in names]
    lines = table_lines(table, names, number_cell)
    stubs = [f"{line['term']}: {line['size']}" for _, line in table.iterrows()]
    several = "aled" not in sizes
    notes = [
        "importance: standard deviation of the curve over the rows."
        + ("" if several else " aled: mean distance of the curve from its mean."),
        ("" if several else "aler: lowest and highest value of the curve. ")
        + "heterogeneity_output: heterogeneity in the bins (root mean square) times the standard "
        "deviation of the feature.",
    ]
    if "naled" in sizes:
        notes.append(
            "naled, naler: aled and aler on the scale of the outcomes, from -50 (below all of "
            "them) over 0 (their median) to 50."
        )
    if "bin_rule" in attrs:
        notes.append(bins_note(attrs))
    intervals = [str(name) for name in sizes.data_vars if str(name).endswith("_ci")]
    if intervals:
        facts = sizes[intervals[0]].attrs
        treated = "" if holds_model(str(facts["source"])) else " They treat the model as given."
        texts = [f"Intervals: {facts['ci_prob']:.3g}, {facts['method']}.{treated}"]
        if "corrected" in table:
            texts.append(
                "corrected: without the part of sampling noise. P: of the hypothesis that the "
                "curve is flat."
            )
        notes = [*texts, *notes]
    notes = [*_chance_notes(sizes), *notes]
    title = f"Sizes of the effects on {attrs['output_name']}"
    return Summary([PrintedTable(lines, heads, stubs, title)], notes)


# --- checks of effects as printed tables ----------------------------------------------------------


# Significance level of jumps, and of bin error if `check_unbiased` stored none.
SIGNIFICANCE = 0.05
# How bin error affects the curve, and what removes a bias of the curve.
UNBIASED_CURVE = (
    "Effects are averages along the axis: bin error biases the heterogeneity, not the curve."
)
BY_DENSITY = "Bin error alone does not bias the curve. weighting='axis' removes it."
# Columns of tables of bins: variables and their heads.
BIAS = {
    "sigma2_star": "sigma2*",
    "heterogeneity_within": "within",
    "bin_error": "bin error",
    "bin_error_se": "std err",
    "bin_error_share": "share",
    "von_neumann_ratio": "RVN",
    "bin_error_pvalue_adjusted": "P",
    "rank_pvalue_adjusted": "rank P",
}
DENSITY_BIAS = {"density_bias": "density bias", "density_bias_se": "std err"}
JUMPS = {
    "jump": "jump",
    "jump_se": "std err",
    "jump_spread": "spread",
    "jump_pvalue_adjusted": "P",
}
BIAS_TITLE, JUMP_TITLE = "Bias of the heterogeneity", "What derivatives miss"


def _lines(row: FeatureResult, names: Iterable[str]) -> list[list[str]]:
    """A line for each bin of one feature, a column for each variable."""
    values = columns_of_checks(row)
    columns = [[_cell(name, value) for value in values[name]] for name in names]
    return [list(line) for line in zip(*columns, strict=True)]


def columns_of_checks(row: FeatureResult) -> dict[str, NDArray[Any]]:
    """Checks of the bins of one feature, and what follows from them, math [13] and [14]."""
    columns = {name: row[name].values for name in ("sigma2_star", *CHECKED) if name in row}
    if "bin_error" not in row:
        return columns
    within, error = columns["heterogeneity_within"] ** 2, columns["bin_error"]
    # The variance is there where the heterogeneity is debiased, or that of more rows.
    total = columns.get("sigma2_star", row["heterogeneity"].values ** 2)
    alike = total <= row.least_effect**2
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.clip(np.where(alike, 0.0 * error, error / total), 0.0, 1.0)
        ratio = np.where(alike, np.nan, 2 * within / total)
    # Effects along the axis do not depend on the density of the rows.
    unbiased = dict.fromkeys(DENSITY_BIAS, np.zeros(len(total)))
    follows = {"sigma2_star": total, "bin_error_share": share, "von_neumann_ratio": ratio}
    return unbiased | columns | follows


def share_along_axis(row: FeatureResult) -> float:
    """Share of the variance along the axis that is bin error, not below 0."""
    columns, width = columns_of_checks(row), np.diff(row.bin_edges)
    error, total = [columns[name] * width for name in ("bin_error", "sigma2_star")]
    has_error = np.isfinite(error)
    share = max(0.0, error[has_error].sum() / (total[has_error].sum() or 1.0))
    return float(share) if has_error.any() else np.nan


def _cell(name: str, value: Any) -> str:
    """A value of a check as it is printed: a verdict, a share, a p-value or another number."""
    if isinstance(value, str):
        return str(value)
    if name.endswith("_share"):
        return percent(value)
    return pvalue_text(value) if "pvalue" in name else number_text(value)


def bias_table(effect: xr.Dataset, row: FeatureResult | None) -> tuple[PrintedTable, list[str]]:
    """Results of `check_unbiased`: one line per feature, or per bin of one."""
    along, verdict = along_axis(effect), effect["verdict"].attrs
    notes = [
        "bin error: variance of the mean effect within the bin, a part of the variance of local "
        "effects. within: their standard deviation without it.",
        f"P: no bin error, the larger p-value of two tests of neighbouring rows (math [14]), "
        f"adjusted ({effect['bin_error_pvalue_adjusted'].attrs['adjust']}).",
    ]
    if row is not None:
        columns = BIAS | ({} if along else DENSITY_BIAS) | {"verdict": "verdict"}
        table = PrintedTable(_lines(row, columns), [*columns.values()], bin_labels(row), BIAS_TITLE)
        meant = "density bias: bias of the effect where rows are denser on one side of the bin."
        return table, [
            *notes,
            UNBIASED_CURVE if along else f"{meant} {BY_DENSITY}",
            f"sigma2*: variance of the local effects. Bins of fewer than {TESTED_ROWS} rows are "
            "not tested.",
        ]
    heads = ["bins", "tested", "biased", "> std err", "share", "within", "smallest P"]
    rows = each_feature(effect)
    lines = [_bias_of_feature(row) for row in rows]
    if not along:
        heads.append("curve bias")
        for line, row in zip(lines, rows, strict=True):
            line.append(number_text(_curve_bias(row)))
    meant = "curve bias: the largest bias of the curve, where rows are denser on one side of a bin."
    return PrintedTable(lines, heads, feature_names(effect), BIAS_TITLE), [
        *notes,
        UNBIASED_CURVE if along else f"{meant} {BY_DENSITY}",
        f"biased: bins with P below {verdict['significance']:g}. > std err: bins where the bias "
        "also exceeds the standard error of the heterogeneity.",
        "share: part of the variance along the axis that is bin error.",
    ]


def _bias_of_feature(row: FeatureResult) -> list[str]:
    """Number of biased bins of one feature, and the size of their bias."""
    verdict, pvalue = row["verdict"].values, row["bin_error_pvalue_adjusted"].values
    within = np.where(row.is_alike, 0.0, row["heterogeneity_within"].values)
    share = np.where(np.isfinite(within), row.weight_share, np.nan)
    n_tested = np.isfinite(pvalue).sum()
    with np.errstate(invalid="ignore"):
        mean_square = np.nansum(share * within**2) / np.nansum(share)
    return [
        f"{len(verdict)}",
        f"{n_tested}",
        f"{np.sum(~np.isin(verdict, [FINE, TOO_FEW]))}",
        f"{np.sum(verdict == LARGE)}",
        percent(share_along_axis(row)),
        number_text(np.sqrt(mean_square)),
        pvalue_text(np.nanmin(pvalue)) if n_tested else "",
    ]


def along_axis(effect: Result) -> bool:
    """Whether effects are averages along the axis, which do not depend on the density of rows."""
    return str(effect.attrs.get("weighting", "rows")) == "axis"


def _curve_bias(row: FeatureResult) -> float:
    """The largest density bias of the zero-start curve of one feature."""
    of_bins = np.where(row.is_alike, 0.0, row["density_bias"].values)
    steps = of_bins * np.diff(row.bin_edges)
    is_finite = np.isfinite(steps)
    return float(np.abs(np.cumsum(steps[is_finite])).max()) if is_finite.any() else np.nan


def jump_table(effect: xr.Dataset, row: FeatureResult | None) -> tuple[PrintedTable, list[str]]:
    """Results of `jump_check`: one line per feature, or per bin of one."""
    adjust = effect["jump_pvalue_adjusted"].attrs["adjust"]
    notes = [
        "jump: mean change of the output across a bin that the local effects miss. spread: its "
        "standard deviation between rows.",
        f"Where P, adjusted ({adjust}), is small, use narrower bins or "
        'local_effects(..., method="finite_difference").',
    ]
    if row is not None:
        heads = [*JUMPS.values()]
        return PrintedTable(_lines(row, JUMPS), heads, bin_labels(row), JUMP_TITLE), notes
    notes.append(
        f"The line of a feature shows its bin with the smallest P. missed: number of bins with P "
        f"below {SIGNIFICANCE:g}."
    )
    lines = list(map(_largest_jump, each_feature(effect)))
    heads = ["bins", "missed", *JUMPS.values()]
    return PrintedTable(lines, heads, feature_names(effect), JUMP_TITLE), notes


def _largest_jump(row: FeatureResult) -> list[str]:
    """Number of bins of one feature, number with a missed jump, and the bin with the smallest P."""
    pvalue = row["jump_pvalue_adjusted"].values
    if not np.isfinite(pvalue).any():
        return [f"{len(pvalue)}", "", *[""] * len(JUMPS)]
    missed, largest = np.sum(pvalue < SIGNIFICANCE), int(np.nanargmin(pvalue))
    return [f"{len(pvalue)}", f"{missed}", *_lines(row, JUMPS)[largest]]


# --- the summary ----------------------------------------------------------------------------------


FIXED = "Standard errors treat the model as fixed."
OF_OUTCOME = "Standard errors hold the sampling of rows and the fit of the learner."
# Notes on errors that hold the parameters of the model, by the treatment of the rows.
HELD = {
    ROWS_FIXED: "Standard errors are of the model's parameters. They treat the rows as fixed.",
    BY_ROW: "Standard errors are of rows and parameters together, row by row.",
    ADDED: "Standard errors are of rows and parameters: their variances are added, which is right "
    "for other rows than those of the fit, or if the model's conditional mean is right.",
}
BINS, OUTCOME_BINS = "the bins", "the bins, which end at 1 % and 99 % of the rows"
# Fewer degrees of freedom of a variance by groups allow no claim of a bin.
MIN_DEGREES = 4
# How levels were put in order, where the name alone would not say it.
ORDERS = {"given": "as given", "as_is": "of the categories or the alphabet"}


def summary(effect: xr.Dataset, feature: str | int | None, level: float) -> Summary:
    """`summary` of effects in bins: one line per feature, or per bin of one feature."""
    effect = with_errors(effect)
    bounds = bounds_text(level)
    row, part, of_outcome = None, effect, is_of_outcome(effect)
    if feature is None:
        what = "Effects on the outcome" if of_outcome else f"{method_title(effect)}: effects on"
        body, meanings, reasons = _feature_table(effect, bounds, level)
    else:
        row = one_feature(effect, feature)
        part = effect.sel(feature=[row.name])
        label = with_units(row.name, units_of(effect, row.name))
        what = f"{method_title(effect)}: effect of {label} on"
        if of_outcome:
            what = f"Effect of {label} on the outcome"
        body, meanings, reasons = _bin_table(row, part, bounds, level)
    of_error = "average_effect" if row is None else "effect"
    source = source_of(effect, of_error)
    result: Result = effect if row is None else row
    title = f"{what}{':' if of_outcome else ''} {output_text(effect)}"
    cells, title = head_of(result, title, source)
    if source == NOT_ESTIMATED:
        cells[-1][1] = source
    if "n_beyond" in effect:
        n_beyond = f"{part['n_beyond'].values.max():.0f}"
        number = f"at most {n_beyond}" if row is None else n_beyond
        cells[-1][2:] = ["Rows beyond the bins:", number]
    elif row is None:
        cells[-1][2:] = ["Curve range over:", inner_text(effect)]
    lines, heads, stubs = body
    sizes = partial(_sizes, effect) if row is None else None
    tables = with_facts(cells, title, lines, heads, stubs, sizes=sizes)
    # Levels are not bins chosen by a rule, and a constant feature has no bins.
    has_bins = row is None or (row.sizes["bin"] > 0 and not row.is_categorical)
    if row is not None:
        if row.is_categorical:
            tables.append(_level_table(row, level))
            order = str(row["order"].values)
            meanings += [
                "Each effect is the mean difference between two neighbouring levels, over the rows "
                "of both. A row can enter two effects; standard errors account for it.",
                f"Level order: {ORDERS.get(order, order)}. Standard errors do not include the "
                f"choice of order.",
            ]
        spreads = spread_table(row, level)
        tables += [] if spreads is None else [spreads]
    checks = []
    for check, table in (("verdict", bias_table), ("jump", jump_table)):
        if check in effect:
            extra, extra_notes = table(effect, row)
            tables.append(extra)
            checks += extra_notes
    # What makes a number invalid comes before what it means.
    notes = [
        *bias_warnings(part),
        *_group_notes(part),
        *spread_notes(part, alone=row is not None),
        *tail_notes(part),
        *reasons,
        *beyond_notes(part, OUTCOME_BINS if of_outcome else BINS),
        *_missing_notes(part),
        *checks,
        *_error_notes(result, of_error, level, has_bins=has_bins),
        *meanings,
        *([bins_note(effect.attrs)] if has_bins else []),
        *interval_notes(effect),
    ]
    return Summary(tables, notes)


def _sizes(effect: xr.Dataset) -> FloatArray:
    """Importances of the features, or else ranges of their curves; 0 where these are 0."""
    sizes, extents = importances(effect), curve_extents(inner(effect))
    reach = extents[:, 1] - extents[:, 0]
    return np.where((reach == 0) | np.isnan(sizes).all(), reach, sizes)


def _missing_notes(effect: xr.Dataset) -> list[str]:
    """Notes on rows without a value: what it does to the output, or that they are left out."""
    out = feature_counts(effect, "n_missing")
    if not out:
        return []
    if "missing_effect" not in effect:
        return [f"Rows without a value, left out of their feature: {', '.join(out)}."]
    names, counts = feature_names(effect), effect["n_missing"].values
    missing = effect["missing_effect"].values  # NaN of levels: "missing" is one of them
    return [
        f"{names[k]} is missing in {counts[k]:.0f} row{'' if counts[k] == 1 else 's'}: the output "
        f"there differs by {_with_error(effect, k)} from that at {names[k]} = "
        f"{number_text(effect['missing_reference'].values[k])}."
        for k in np.flatnonzero(np.isfinite(missing)).tolist()
    ]


def _with_error(effect: xr.Dataset, position: int) -> str:
    """The effect of missing values of a feature, with its standard error where there is one."""
    text = number_text(effect["missing_effect"].values[position])
    se = effect["missing_effect_se"].values[position] if "missing_effect_se" in effect else np.nan
    return f"{text} (std err {number_text(se)})" if np.isfinite(se) else text


def method_title(effect: xr.Dataset) -> str:
    """Name of the effects."""
    return str(effect.attrs.get("method", "rhale")).replace("_", " ").upper()


def _outcome_table(effect: xr.Dataset, bounds: list[str]) -> tuple[Body, list[str], list[str]]:
    """One line per feature: the change between the usual values, and the test of no effect."""
    test = wald_test(effect, "zero", "box", "none", None)
    heads = ["bins", "from", "to", "change", "std err", *bounds, "P>|t|", "P any"]
    rows = []
    for row, p_value in zip(each_feature(effect), test["p_value"].values, strict=True):
        ends = row["usual_difference_ci"].transpose("ci_bound").values
        places = [float(row[f"usual_{end}"]) for end in ("low", "high")]
        texts = [number_text(place) for place in places]
        if row.is_categorical and np.isfinite(places).all():
            texts = [level_names(row)[int(place)] for place in places]
        numbers = (float(row["usual_difference"]), float(row["usual_difference_se"]), *ends)
        pvalues = (float(row["usual_difference_pvalue"]), float(p_value))
        rows.append(
            [f"{row.sizes['bin']}", *texts, *map(number_text, numbers), *map(pvalue_text, pvalues)]
        )
    meanings = [
        "change: of the expected outcome as the feature goes from the value below which 10 % of "
        "the rows are to that of 90 %, the other columns as they are. P any: of no effect in any "
        "bin.",
        f"Debiased effects of {effect.attrs['learner']}, fitted {effect.attrs['n_repeats']} × "
        f"{effect.attrs['n_folds']} times without a fold of the rows. Associations given the other "
        f"columns, not causes.",
    ]
    return (rows, heads, feature_names(effect)), meanings, []


def _feature_table(
    effect: xr.Dataset, bounds: list[str], level: float
) -> tuple[Body, list[str], list[str]]:
    """One line per feature, notes on the columns, and reasons for blanks and zeros."""
    if is_of_outcome(effect):
        return _outcome_table(effect, bounds)
    table = glance(effect, level)
    wald = _wald_heads(table, "avg effect", bounds)
    heads = ["bins", *wald.values(), "heterog.", "H", "curve range"]
    table["curve_range"] = table["curve_max"] - table["curve_min"]
    columns = ["n_bins", *wald, "heterogeneity", "heterogeneity_output", "curve_range"]
    rows = table_lines(table, columns, _counted_cell)
    for line, kind in zip(rows, table["kind"], strict=True):
        if kind == "constant":
            line[:] = ["0", "constant"] + [""] * (len(heads) - 2)
    meanings = [
        "avg effect: mean of the local effects over all rows, not along the axis. heterog.: root "
        "mean square of their standard deviations in the bins.",
        "H: heterog. times the standard deviation of the feature, to compare features. It is not a "
        "part of the variance of the output, and can be larger.",
    ]
    names = table["term"].tolist()
    of_steps = [name for name, kind in zip(names, table["kind"], strict=True) if kind == ORDINAL]
    if of_steps:
        steps = ", ".join(of_steps)
        meanings.insert(0, f"avg effect of {steps}: of a step between levels, not of a unit.")
    return (rows, heads, names), meanings, because(names, reasons_of(table))


def _bin_table(
    row: FeatureResult, effect: xr.Dataset, bounds: list[str], level: float
) -> tuple[Body, list[str], list[str]]:
    """One line per bin of a feature, notes on the columns, and reasons for zeros."""
    table = tidy(effect, level)
    wald = _wald_heads(table, "effect", bounds)
    heads = ["rows", *wald.values(), "heterog.", "std err"]
    numbers = ["heterogeneity", "heterogeneity_se"]
    average = "average of the local effects along the bin"
    if not along_axis(row):
        average = "mean of the local effects of the rows in the bin"
    meanings = [f"effect: {average}. heterog.: standard deviation of the local effects in the bin."]
    if row.is_categorical:
        meanings = ["heterog.: standard deviation of the differences between two levels."]
    if "slope" in table and table["slope"].any():
        heads += ["slope", "std err"]
        numbers += ["slope", "slope_se"]
        middle = "" if along_axis(row) else "effect is the value of the line at mid-bin, and "
        meanings += [
            f"Where there is a slope, {middle}heterog. is the standard deviation about the line."
        ]
    rows = table_lines(table, ["n_obs", *wald, *numbers], _counted_cell)
    reasons = reasons_of(table)
    if not rows:
        rows = [["constant"] + [""] * (len(heads) - 1)]
        return (rows, heads, bin_labels(row)), [], ["The feature does not vary."]
    body = rows, heads, bin_labels(row)
    if len(set(reasons)) == 1:
        return body, meanings, because(["all bins"], reasons[:1])
    return body, meanings, because(bin_labels(row)[: len(reasons)], reasons)


def _level_table(row: FeatureResult, level: float) -> PrintedTable:
    """The curve of one feature at its levels, and their rows."""
    degrees = curve_degrees(row, row.fit, row.edges)
    table = pd.DataFrame(estimate_columns(row, "curve", degrees, level))
    wald = _wald_heads(table, "curve", bounds_text(level))
    counts = zip(row["n_level"].values, row["level_share"].values, strict=True)
    lines = [
        [f"{n}", f"{share:.1%}", *line]
        for (n, share), line in zip(counts, table_lines(table, wald), strict=True)
    ]
    return PrintedTable(lines, ["rows", "share", *wald.values()], level_names(row), "Levels")


def _counted_cell(line: pd.Series, column: str) -> str:
    """A count in full, any other number as it is printed."""
    return str(line[column]) if column.startswith("n_") else cell(line, column)


def _edges_note(effect: Result) -> str:
    """What standard errors hold of the choice of the bin edges."""
    if "honest_seed" in effect.attrs:
        return f"Bin edges were chosen on {effect.attrs['n_rows_edges']} other rows."
    if not has_fact(effect.attrs["bin_rule"], "joins_cells"):
        return "They treat the bin edges as fixed."
    return CHOICE_INCLUDED if includes_choice(effect) else CHOSEN_BINS


def _error_notes(effect: Result, name: str, level: float, *, has_bins: bool) -> list[str]:
    """Note on what standard errors hold, bin edges included, and on the method of the intervals."""
    edges = f" {_edges_note(effect)}" if has_bins else ""
    if source_of(effect, name) == NOT_ESTIMATED:
        return [f"No standard errors.{edges}"] if has_bins else []
    of_model = OF_OUTCOME if is_of_outcome(effect) else FIXED
    fixed = HELD.get(str(effect.attrs.get("parameters", "")), of_model) + edges
    parts = parts_note(effect, name, "average effects" if name == "average_effect" else "effects")
    text = f"{fixed} Intervals: pointwise, {how_made(effect, name, level)}."
    return [f"{text} {parts}".rstrip()]


def _group_notes(effect: xr.Dataset) -> list[str]:
    """Note on bins whose standard errors by groups have hardly any degrees of freedom."""
    named = ""
    if "effect_df" in effect:
        named = _bins_named(effect, (effect["effect_df"] < MIN_DEGREES).values)
    if not named:
        return []
    return [
        f"Warning: standard errors by groups have fewer than {MIN_DEGREES} degrees of freedom in "
        f"bins of {named}. A few groups have most of the rows there. Intervals and p-values of "
        f"these bins are unreliable. Use fewer bins."
    ]


def _bins_named(effect: xr.Dataset, marked: NDArray[np.bool_]) -> str:
    """Features with marked bins, (feature, bin), and how many."""
    counts = zip(feature_names(effect), marked.sum(axis=1), effect["n_bins"].values, strict=True)
    return ", ".join(f"{name} ({count} of {bins} bins)" for name, count, bins in counts if count)


def bias_warnings(effect: xr.Dataset) -> list[str]:
    """Warnings of heterogeneity that is biased by more than its standard error."""
    if "debiased" in effect.attrs:
        return ["heterog. is free of bin error: it comes from differences of neighbouring rows."]
    if "verdict" in effect:
        large = (effect["verdict"] == LARGE).values
    elif has_moments(effect):
        large = linear_bin_error(effect, significance=SIGNIFICANCE).values
    else:
        return []
    named = _bins_named(effect, large)
    if not named:
        return []
    return [
        f"Warning: the effect changes within bins of {named}. Their heterogeneity is too large by "
        f"more than its standard error. Use narrower bins, or debias(effect, "
        f"check_unbiased(local, effect))."
        + ("" if along_axis(effect) else " The check also gives the bias of the curve.")
    ]


def _wald_heads(table: pd.DataFrame, name: str, bounds: list[str]) -> dict[str, str]:
    """Columns of an estimate with its standard error, and their printed heads."""
    heads = dict(zip(WALD, (name, "std err", "t", "P>|t|", *bounds), strict=True))
    return {column: head for column, head in heads.items() if column in table}


# Kurtosis of heavy tails; 3 for normal effects.
HEAVY = 4.5
# Rows a bin from which on intervals hold under skewness, and under weights without it.
MIN_ROWS, MIN_ROWS_WEIGHTED = 30, 10
# Rows a bin from which on bands of effects hold where a value is rare: a bin may hold none of it.
MIN_ROWS_OF_BANDS = 100


def kurtosis(effect: xr.Dataset) -> FloatArray:
    """Kurtosis of the local effects about the fits of their bins, all bins together, (feature,).

    NaN where no bin has a spread beyond the numerical error of the local effects.
    """
    features = all_features(effect)
    spread, n, fourth = map(
        features.padded,
        (features.heterogeneity, features.n_effective, features.residuals.fourth_moment),
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        by_bin = fourth / spread**4
        usable = np.isfinite(by_bin) & (spread > features.least_effects[:, None]) & (n >= 4)
        total, weight = [np.where(usable, part, 0.0).sum(axis=-1) for part in (n * by_bin, n)]
        return np.asarray(total / weight)


def tail_notes(effect: xr.Dataset) -> list[str]:
    """Notes on features whose tails or weights make intervals too short."""
    if not has_moments(effect) or "heterogeneity_se" not in effect:
        return []
    return _heavy_tails(effect) + _heavy_weights(effect)


def _heavy_tails(effect: xr.Dataset) -> list[str]:
    values = kurtosis(effect)
    heavy = values > HEAVY
    if not heavy.any():
        return []
    features = zip(feature_names(effect), values, heavy, strict=True)
    texts = [f"{name} ({number_text(value)})" for name, value, is_heavy in features if is_heavy]
    # Intervals by parameters are as wide as the error of the model says.
    short = (
        "are too short there"
        if "parameters" in effect.attrs
        else f"allow for it, but are too short with fewer than {MIN_ROWS} rows a bin or 3 bins"
    )
    # Errors by parameters alone have no skewness.
    other_intervals = ""
    if "effect_skewness" in effect:
        together = all_features(effect)
        n = together.padded(together.n_effective, 0.0)[heavy]
        n = n[(n > 0).sum(axis=-1) > 1]
        short_bands = bool(((n > 0) & (n < MIN_ROWS_OF_BANDS)).any())
        other_intervals = "; those of effects and curves allow for skewness" + (
            f", but bands of effects are too narrow with fewer than {MIN_ROWS_OF_BANDS} rows a bin"
            if short_bands
            else ""
        )
    return [
        f"Local effects have heavy tails (kurtosis, 3 for normal ones): {', '.join(texts)}. "
        f"Intervals of heterog. {short}, see docs/validity.md{other_intervals}."
    ]


def _heavy_weights(effect: xr.Dataset) -> list[str]:
    """Features in whose bins a few rows of large precision weight decide on the errors."""
    if "error_rows" not in effect or "skewness_sign" not in effect:
        return []
    columns = [effect.variables[name].values for name in ("error_rows", "skewness_sign")]
    texts = []
    for name, rows, sign in zip(feature_names(effect), *columns, strict=True):
        of_bins = rows[np.isfinite(rows) & (rows > 0)]
        enough = MIN_ROWS_WEIGHTED if sign == 0 else MIN_ROWS
        if len(of_bins) and np.median(of_bins) < enough:
            texts.append(f"{name} ({np.median(of_bins):.0f})")
    if not texts:
        return []
    return [
        f"Few rows of large weight decide on the standard errors (effective rows in half of the "
        f"bins at most): {', '.join(texts)}. Intervals are too short and tests reject too often if "
        f"weights depend on local effects, see docs/validity.md."
    ]
