"""Effects, and checks of them, as printed tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.effects.errors import includes_choice
from rhale_stats.effects.fit import curve_degrees
from rhale_stats.effects.hypotheses import wald_test
from rhale_stats.effects.tables import (
    NOT_ESTIMATED,
    WALD,
    complete,
    curve_extent,
    glance,
    source_text,
    spread_notes,
    spread_table,
    tidy,
)
from rhale_stats.effects.values import importances, inner, inner_text
from rhale_stats.inference import meaning
from rhale_stats.inference.estimate import ends_in_table, student
from rhale_stats.inference.meaning import (
    FINE,
    LARGE,
    TESTED_ROWS,
    TOO_FEW,
    is_unordered,
    least_effect,
    linear_bin_error,
)
from rhale_stats.inference.notes import (
    CHOICE_INCLUDED,
    CHOSEN_BINS,
    SEARCHED,
    because,
    bins_note,
    how_made,
    interval_notes,
    parts_note,
    reasons_of,
)
from rhale_stats.inference.parameters import ADDED, ROWS_FIXED, TOGETHER
from rhale_stats.printing.text import (
    IMPORTANCE,
    NO_ERRORS,
    Body,
    Page,
    beyond_notes,
    bin_labels,
    bounds_text,
    cell,
    feature_counts,
    head_of,
    holds_model,
    largest_first,
    number_text,
    output,
    output_text,
    percent,
    plain_table,
    pvalue_text,
    rows_text,
    table_of,
    uncertainty,
    with_facts,
)
from rhale_stats.schema.feature_result import (
    FeatureResult,
    Result,
    bin_residuals,
    each_feature,
    has_moments,
    one_feature,
)
from rhale_stats.schema.features import (
    feature_names,
    feature_position,
    is_grouped,
    is_of_outcome,
    method_text,
    units_of,
    with_units,
)
from rhale_stats.schema.levels import is_categorical, level_names
from rhale_stats.schema.notes import with_notes

if TYPE_CHECKING:
    from statsmodels.iolib.summary import Summary
    from statsmodels.iolib.table import SimpleTable


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
    columns = [[_cell(name, value) for value in row[name].values] for name in names]
    return [list(line) for line in zip(*columns, strict=True)]


def _cell(name: str, value: Any) -> str:
    """A value of a check as it is printed: a verdict, a share, a p-value or another number."""
    if isinstance(value, str):
        return str(value)
    if name.endswith("_share"):
        return percent(value)
    return pvalue_text(value) if "pvalue" in name else number_text(value)


def bias_table(effect: xr.Dataset, feature: str | int | None) -> tuple[SimpleTable, list[str]]:
    """Results of `check_unbiased`: one line per feature, or per bin."""
    along, verdict = along_axis(effect), effect["verdict"].attrs
    notes = [
        "bin error: variance of the mean effect within the bin, a part of the variance of local "
        "effects. within: their standard deviation without it.",
        f"P: no bin error, the larger p-value of two tests of neighbouring rows (math [14]), "
        f"adjusted ({effect['bin_error_pvalue_adjusted'].attrs['adjust']}).",
    ]
    if feature is not None:
        row = one_feature(effect, feature)
        columns = BIAS | ({} if along else DENSITY_BIAS) | {"verdict": "verdict"}
        table = plain_table(_lines(row, columns), [*columns.values()], bin_labels(row), BIAS_TITLE)
        meant = "density bias: bias of the effect where rows are denser on one side of the bin."
        return table, [
            *notes,
            UNBIASED_CURVE if along else f"{meant} {BY_DENSITY}",
            f"sigma2*: variance of the local effects. Bins of fewer than {TESTED_ROWS} rows are "
            "not tested.",
        ]
    heads = ["bins", "tested", "biased", "> std err", "share", "within", "smallest P"]
    lines = list(map(_bias_of_feature, each_feature(effect)))
    if not along:
        heads.append("curve bias")
        lines = [
            [*line, number_text(_curve_bias(row))]
            for line, row in zip(lines, each_feature(effect), strict=True)
        ]
    meant = "curve bias: the largest bias of the curve, where rows are denser on one side of a bin."
    return plain_table(lines, heads, feature_names(effect), BIAS_TITLE), [
        *notes,
        UNBIASED_CURVE if along else f"{meant} {BY_DENSITY}",
        f"biased: bins with P below {verdict['significance']:g}. > std err: bins where the bias "
        "also exceeds the standard error of the heterogeneity.",
        "share: part of the variance along the axis that is bin error.",
    ]


def _bias_of_feature(row: FeatureResult) -> list[str]:
    """Number of biased bins of one feature, and the size of their bias."""
    verdict, share = row["verdict"].values, row["weight_share"].values
    biased = ~np.isin(verdict, [FINE, TOO_FEW])
    within = np.where(meaning.is_alike(row), 0.0, row["heterogeneity_within"].values)
    has_spread = np.isfinite(within)
    pvalue = row["bin_error_pvalue_adjusted"].values
    return [
        str(len(verdict)),
        str(int(np.isfinite(pvalue).sum())),
        str(int(biased.sum())),
        str(int((verdict == LARGE).sum())),
        percent(float(row["bin_error_share_axis"])),
        number_text(np.sqrt(np.sum((share * within**2)[has_spread]) / share[has_spread].sum()))
        if has_spread.any()
        else "",
        pvalue_text(np.nanmin(pvalue)) if np.isfinite(pvalue).any() else "",
    ]


def along_axis(effect: Result) -> bool:
    """Whether effects are averages along the axis, which do not depend on the density of rows."""
    return str(effect.attrs.get("weighting", "rows")) == "axis"


def _curve_bias(row: FeatureResult) -> float:
    """The largest density bias of the zero-start curve of one feature."""
    of_bins = np.where(meaning.is_alike(row), 0.0, row["density_bias"].values)
    steps = of_bins * np.diff(row["edge_value"].values)
    is_finite = np.isfinite(steps)
    return float(np.abs(np.cumsum(steps[is_finite])).max()) if is_finite.any() else np.nan


def jump_table(effect: xr.Dataset, feature: str | int | None) -> tuple[SimpleTable, list[str]]:
    """Results of `jump_check`: one line per feature, or per bin."""
    adjust = effect["jump_pvalue_adjusted"].attrs["adjust"]
    notes = [
        "jump: mean change of the output across a bin that the local effects miss. spread: its "
        "standard deviation between rows.",
        f"Where P, adjusted ({adjust}), is small, use narrower bins or "
        'local_effects(..., method="finite_difference").',
    ]
    if feature is not None:
        row = one_feature(effect, feature)
        return plain_table(
            _lines(row, JUMPS), [*JUMPS.values()], bin_labels(row), JUMP_TITLE
        ), notes
    notes.append(
        f"The line of a feature shows its bin with the smallest P. missed: number of bins with P "
        f"below {SIGNIFICANCE:g}."
    )
    lines = list(map(_largest_jump, each_feature(effect)))
    heads = ["bins", "missed", *JUMPS.values()]
    return plain_table(lines, heads, feature_names(effect), JUMP_TITLE), notes


def _largest_jump(row: FeatureResult) -> list[str]:
    """Number of bins of one feature, number with a missed jump, and the bin with the smallest P."""
    pvalue = row["jump_pvalue_adjusted"].values
    if not np.isfinite(pvalue).any():
        return [str(len(pvalue)), "", *[""] * len(JUMPS)]
    missed, largest = int((pvalue < SIGNIFICANCE).sum()), int(np.nanargmin(pvalue))
    return [str(len(pvalue)), str(missed), *_lines(row, JUMPS)[largest]]


# --- effects as printed tables --------------------------------------------------------------------


FIXED = "Standard errors treat the model as fixed."
OF_OUTCOME = "Standard errors hold the sampling of rows and the fit of the learner."
# Notes on errors that hold the parameters of the model, by the treatment of the rows.
HELD = {
    ROWS_FIXED: "Standard errors are of the model's parameters. They treat the rows as fixed.",
    TOGETHER: "Standard errors are of rows and parameters together, row by row.",
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
    effect = complete(effect)
    bounds = bounds_text(level)
    if feature is None:
        title = f"{method_title(effect)}: effects on {output_text(effect)}"
        body, meanings, reasons = _feature_table(effect, bounds, level)
    else:
        name = feature_names(effect)[feature_position(effect, feature)]
        label = with_units(name, units_of(effect, name))
        title = f"{method_title(effect)}: effect of {label} on {output_text(effect)}"
        body, meanings, reasons = _bin_table(effect, name, bounds, level)
    of_error = "average_effect" if feature is None else "effect"
    source = source_text(effect, of_error)
    result = effect if feature is None else one_feature(effect, feature)
    cells, title = head_of(result, title, source)
    if source == NOT_ESTIMATED:
        cells[-1][1] = source
    if "n_beyond" in result:
        n_beyond = f"{result['n_beyond'].values.max():.0f}"
        number = f"at most {n_beyond}" if feature is None else n_beyond
        cells[-1][2:] = ["Rows beyond the bins:", number]
    elif feature is None:
        cells[-1][2:] = ["Curve range over:", inner_text(effect)]
    lines, heads, stubs = body
    tables = with_facts(cells, title, lines, heads, stubs)
    if feature is not None and is_categorical(one_feature(effect, feature)):
        row = one_feature(effect, feature)
        tables.append(_level_table(row, level))
        order = str(row["order"].values)
        meanings += [
            "Each effect is the mean difference between two neighbouring levels, over the rows of "
            "both. A row can enter two effects; standard errors account for it.",
            f"Level order: {ORDERS.get(order, order)}. Standard errors do not include the choice "
            f"of order.",
        ]
    if feature is not None:
        spreads = spread_table(one_feature(effect, feature), level)
        tables += [] if spreads is None else [spreads]
    # Levels are not bins chosen by a rule, and a constant feature has no bins.
    has_bins = feature is None or (result.sizes["bin"] > 0 and not is_categorical(result))
    checks = []
    for check, table in (("verdict", bias_table), ("jump", jump_table)):
        if check in effect:
            extra, extra_notes = table(effect, feature)
            tables.append(extra)
            checks += extra_notes
    # What makes a number invalid comes before what it means.
    notes = [
        *bias_warnings(effect, feature),
        *_group_notes(effect, feature),
        *spread_notes(effect, feature),
        *tail_notes(effect, feature),
        *reasons,
        *beyond_notes(effect, feature, OUTCOME_BINS if is_of_outcome(effect) else BINS),
        *_missing_notes(effect, feature),
        *checks,
        *_error_notes(effect if feature is None else result, of_error, level, has_bins=has_bins),
        *meanings,
        *([bins_note(effect.attrs)] if has_bins else []),
        *interval_notes(effect),
    ]
    return with_notes(tables, notes)


def _missing_notes(effect: xr.Dataset, feature: str | int | None) -> list[str]:
    """Notes on rows without a value: what it does to the output, or that they are left out."""
    out = feature_counts(effect, "n_missing", feature)
    if not out:
        return []
    if "missing_effect" not in effect:
        return [f"Rows without a value, left out of their feature: {', '.join(out)}."]
    names, counts = feature_names(effect), effect["n_missing"].values
    places = range(len(names)) if feature is None else [feature_position(effect, feature)]
    missing = effect["missing_effect"].values  # NaN of levels: "missing" is one of them
    return [
        f"{names[k]} is missing in {counts[k]:.0f} row{'' if counts[k] == 1 else 's'}: the output "
        f"there differs by {_with_error(effect, k)} from that at {names[k]} = "
        f"{number_text(effect['missing_reference'].values[k])}."
        for k in places
        if np.isfinite(missing[k])
    ]


def _with_error(effect: xr.Dataset, position: int) -> str:
    """The effect of missing values of a feature, with its standard error where there is one."""
    text = number_text(effect["missing_effect"].values[position])
    se = effect["missing_effect_se"].values[position] if "missing_effect_se" in effect else np.nan
    return f"{text} (std err {number_text(se)})" if np.isfinite(se) else text


def method_title(effect: xr.Dataset) -> str:
    """Name of the effects."""
    if is_of_outcome(effect):
        return "EFFECTS ON THE OUTCOME"
    return str(effect.attrs.get("method", "rhale")).replace("_", " ").upper()


def _outcome_table(effect: xr.Dataset, bounds: list[str]) -> tuple[Body, list[str], list[str]]:
    """One line per feature: the change between the usual values, and the test of no effect."""
    test = wald_test(effect, "zero", "box", "none", None)
    heads = ["bins", "from", "to", "change", "std err", *bounds, "P>|t|", "P any"]
    names, rows = feature_names(effect), []
    for position in range(len(names)):
        row = one_feature(effect, position)
        ends = row["usual_difference_ci"].transpose("ci_bound").values
        places = [float(row[f"usual_{end}"]) for end in ("low", "high")]
        texts = [number_text(place) for place in places]
        if row.is_categorical and np.isfinite(places).all():
            texts = [level_names(row)[int(place)] for place in places]
        numbers = (float(row["usual_difference"]), float(row["usual_difference_se"]), *ends)
        pvalues = (float(row["usual_difference_pvalue"]), float(test["p_value"].values[position]))
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
    return (rows, heads, names), meanings, []


def _feature_table(
    effect: xr.Dataset, bounds: list[str], level: float
) -> tuple[Body, list[str], list[str]]:
    """One line per feature, notes on the columns, and reasons for blanks and zeros."""
    if is_of_outcome(effect):
        return _outcome_table(effect, bounds)
    table = glance(effect, level)
    wald = _wald_heads(table, "avg effect", bounds)
    heads = ["bins", *wald.values(), "heterog.", "H", "curve range"]
    rows = []
    for _, line in table.iterrows():
        if line["kind"] == "constant":
            rows.append(["0", "constant"] + [""] * (len(heads) - 2))
            continue
        rows.append(
            [
                str(line["n_bins"]),
                *[cell(line, name) for name in wald],
                number_text(line["heterogeneity"]),
                number_text(line["heterogeneity_output"]),
                number_text(line["curve_max"] - line["curve_min"]),
            ]
        )
    meanings = [
        "avg effect: mean of the local effects over all rows, not along the axis. heterog.: root "
        "mean square of their standard deviations in the bins.",
        "H: heterog. times the standard deviation of the feature, to compare features. It is not a "
        "part of the variance of the output, and can be larger.",
    ]
    names = table["term"].tolist()
    return (rows, heads, names), meanings, because(names, reasons_of(table))


def _bin_table(
    effect: xr.Dataset, name: str, bounds: list[str], level: float
) -> tuple[Body, list[str], list[str]]:
    """One line per bin, notes on the columns, and reasons for zeros."""
    row = one_feature(effect, name)
    table = tidy(effect.sel(feature=[name]), level)
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
    rows = [
        [
            str(line["n_obs"]),
            *[cell(line, column) for column in wald],
            *[number_text(line[number]) for number in numbers],
        ]
        for _, line in table.iterrows()
    ]
    reasons = reasons_of(table)
    if not rows:
        rows = [["constant"] + [""] * (len(heads) - 1)]
        return (rows, heads, bin_labels(row)), [], ["The feature does not vary."]
    body = rows, heads, bin_labels(row)
    if len(set(reasons)) == 1:
        return body, meanings, because(["all bins"], reasons[:1])
    return body, meanings, because(bin_labels(row)[: len(reasons)], reasons)


def _level_table(row: FeatureResult, level: float) -> SimpleTable:
    """The curve of one feature at its levels, and their rows."""
    heads = ["rows", "share", "curve", "std err", "t", "P>|t|", *bounds_text(level)]
    degrees = curve_degrees(row, row.fit, row["edge_value"].values)
    curve, se = row["curve"].values, row["curve_se"].values
    ends = ends_in_table(row, "curve", se, degrees, level)
    table = pd.DataFrame({"estimate": curve, "std_error": se})
    tested = holds_model(source_text(row, "curve"))
    if tested:
        table = table.assign(**student(curve, se, degrees))
    else:
        heads = [head for head in heads if head not in ("t", "P>|t|")]
    table = table.assign(conf_low=ends[:, 0], conf_high=ends[:, 1])
    lines = [
        [f"{n}", f"{share:.1%}", *[cell(line, str(column)) for column in table]]
        for n, share, (_, line) in zip(
            row["n_level"].values, row["level_share"].values, table.iterrows(), strict=True
        )
    ]
    return plain_table(lines, heads, level_names(row), "Levels")


def _edges_note(effect: Result) -> str:
    """What standard errors hold of the choice of the bin edges."""
    if "honest_seed" in effect.attrs:
        return f"Bin edges were chosen on {effect.attrs['n_rows_edges']} other rows."
    if effect.attrs["bin_rule"] not in SEARCHED:
        return "They treat the bin edges as fixed."
    return CHOICE_INCLUDED if includes_choice(effect) and not is_grouped(effect) else CHOSEN_BINS


def _error_notes(effect: Result, name: str, level: float, *, has_bins: bool) -> list[str]:
    """Note on what standard errors hold, bin edges included, and on the method of the intervals."""
    edges = f" {_edges_note(effect)}" if has_bins else ""
    if source_text(effect, name) == NOT_ESTIMATED:
        return [f"No standard errors.{edges}"] if has_bins else []
    of_model = OF_OUTCOME if is_of_outcome(effect) else FIXED
    fixed = HELD.get(str(effect.attrs.get("parameters", "")), of_model) + edges
    parts = parts_note(effect, name, "average effects" if name == "average_effect" else "effects")
    text = f"{fixed} Intervals: pointwise, {how_made(effect, name, level)}."
    return [f"{text} {parts}".rstrip()]


def _group_notes(effect: xr.Dataset, feature: str | int | None) -> list[str]:
    """Note on bins whose standard errors by groups have hardly any degrees of freedom."""
    if "effect_df" not in effect:
        return []
    named = _bins_named(effect, (effect["effect_df"] < MIN_DEGREES).values, feature)
    if not named:
        return []
    return [
        f"Warning: standard errors by groups have fewer than {MIN_DEGREES} degrees of freedom in "
        f"bins of {named}. A few groups have most of the rows there. Intervals and p-values of "
        f"these bins are unreliable. Use fewer bins."
    ]


def _bins_named(effect: xr.Dataset, marked: NDArray[np.bool_], feature: str | int | None) -> str:
    """Features with marked bins, (feature, bin), and how many; of all features, or of one."""
    if feature is not None:
        marked = marked & (np.arange(len(marked)) == feature_position(effect, feature))[:, None]
    counts = zip(feature_names(effect), marked.sum(axis=1), effect["n_bins"].values, strict=True)
    return ", ".join(f"{name} ({count} of {bins} bins)" for name, count, bins in counts if count)


def bias_warnings(effect: xr.Dataset, feature: str | int | None) -> list[str]:
    """Warnings of heterogeneity that is biased by more than its standard error."""
    if "debiased" in effect.attrs:
        return ["heterog. is free of bin error: it comes from differences of neighbouring rows."]
    if "verdict" in effect:
        large = (effect["verdict"] == LARGE).values
    elif has_moments(effect):
        large = linear_bin_error(effect, significance=SIGNIFICANCE).values
    else:
        return []
    named = _bins_named(effect, large, feature)
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


def kurtosis(effect: xr.Dataset) -> np.ndarray:
    """Kurtosis of the local effects about the fits of their bins, all bins together, (feature,).

    NaN where no bin has a spread beyond the numerical error of the local effects.
    """
    spread, n = [effect.variables[name].values for name in ("heterogeneity", "n_effective")]
    (fourth,) = bin_residuals(each_feature(effect), ["fourth_moment"], effect.sizes["bin"])
    with np.errstate(invalid="ignore", divide="ignore"):
        by_bin = fourth / spread**4
    least = np.array([[least_effect(row)] for row in each_feature(effect)])
    usable = np.isfinite(by_bin) & (spread > least) & (n >= 4)
    rows = np.where(usable, n, 0.0)
    with np.errstate(invalid="ignore"):
        total = np.sum(np.where(usable, by_bin, 0.0) * rows, axis=-1)
        return np.asarray(total / rows.sum(axis=-1))


def tail_notes(effect: xr.Dataset, feature: str | int | None) -> list[str]:
    """Notes on features whose tails or weights make intervals too short."""
    if not has_moments(effect) or "heterogeneity_se" not in effect:
        return []
    names = feature_names(effect)
    positions = list(range(len(names))) if feature is None else [feature_position(effect, feature)]
    return _heavy_tails(effect, names, positions) + _heavy_weights(effect, names, positions)


def _heavy_tails(effect: xr.Dataset, names: list[str], positions: list[int]) -> list[str]:
    values = kurtosis(effect)
    heavy = [k for k in positions if values[k] > HEAVY]
    texts = [f"{names[k]} ({number_text(values[k])})" for k in heavy]
    if not texts:
        return []
    # Intervals by parameters are as wide as the error of the model says.
    short = (
        "are too short there"
        if "parameters" in effect.attrs
        else f"allow for it, but are too short with fewer than {MIN_ROWS} rows a bin or 3 bins"
    )
    # Errors by parameters alone have no skewness.
    other_intervals = ""
    if "effect_skewness" in effect:
        rows = effect["n_effective"].values[heavy]
        rows = rows[(rows > 0).sum(axis=-1) > 1]
        short_bands = bool(((rows > 0) & (rows < MIN_ROWS_OF_BANDS)).any())
        other_intervals = "; those of effects and curves allow for skewness" + (
            f", but bands of effects are too narrow with fewer than {MIN_ROWS_OF_BANDS} rows a bin"
            if short_bands
            else ""
        )
    return [
        f"Local effects have heavy tails (kurtosis, 3 for normal ones): {', '.join(texts)}. "
        f"Intervals of heterog. {short}, see docs/validity.md{other_intervals}."
    ]


def _heavy_weights(effect: xr.Dataset, names: list[str], positions: list[int]) -> list[str]:
    """Features in whose bins a few rows of large precision weight decide on the errors."""
    if "error_rows" not in effect or "skewness_sign" not in effect:
        return []
    rows, sign = [effect.variables[name].values for name in ("error_rows", "skewness_sign")]
    texts = []
    for k in positions:
        of_bins = rows[k][np.isfinite(rows[k]) & (rows[k] > 0)]
        enough = MIN_ROWS_WEIGHTED if sign[k] == 0 else MIN_ROWS
        if len(of_bins) and np.median(of_bins) < enough:
            texts.append(f"{names[k]} ({np.median(of_bins):.0f})")
    if not texts:
        return []
    return [
        f"Few rows of large weight decide on the standard errors (effective rows in half of the "
        f"bins at most): {', '.join(texts)}. Intervals are too short and tests reject too often if "
        f"weights depend on local effects, see docs/validity.md."
    ]


PVALUE = "P"


def effect_page(effect: xr.Dataset, max_features: int) -> Page:
    """The page that shows effects in bins: their facts, and a table with a line a feature."""
    names, size = feature_names(effect), importances(effect)
    extents = np.array([curve_extent(row) for row in each_feature(inner(effect))])
    reach = extents[:, 1] - extents[:, 0]
    ranked = size if np.isfinite(size).any() else reach
    # A curve that is 0 up to rounding is last.
    order = largest_first(np.where(reach == 0, 0.0, ranked))[:max_features]
    columns, source = _columns(effect, np.where(reach == 0, 0.0, size))
    columns |= dict(zip(("lowest", "highest"), extents.T, strict=True))
    forms = [pvalue_text if head == PVALUE else number_text for head in columns]
    lines = [
        [names[k], *[form(values[k]) for form, values in zip(forms, columns.values(), strict=True)]]
        for k in order
    ]
    for line, k in zip(lines, order, strict=True):
        if not effect["n_bins"].values[k]:
            line[1] = "constant"
    facts = (
        f"{rows_text(effect)}; local effects: {method_text(effect)}; "
        f"bins: {effect.attrs.get('bin_rule', 'given')}",
        f"Uncertainty: {source}",
        *(bias_warnings(effect, None) if "verdict" in effect else ()),
        *spread_notes(effect, None),
    )
    text = f"lowest, highest: of the curve. Sizes of curves are over the {inner_text(effect)}."
    if "H" in columns:
        text = f"H: heterogeneity in the bins times the standard deviation of the feature. {text}"
    if "importance" in columns:
        text = f"{IMPORTANCE}. {text}"
    first = repr(lines[0][0])
    return Page(
        f"{method_title(effect)}: effects on {output(effect)}",
        facts,
        (table_of(["", *columns], lines, len(names), "features", text),),
        f"summary(effect, {first}), plot(effect, {first}), tidy(effect)",
    )


def _columns(
    effect: xr.Dataset, size: NDArray[np.float64]
) -> tuple[dict[str, NDArray[np.float64]], str]:
    """Sizes and average effects of all features by head, and the source of standard errors."""
    ordered = ~is_unordered(effect)

    def values_of(name: str, bound: int | None = None) -> NDArray[np.float64]:
        values = effect[name].values if bound is None else effect[name].values[:, bound]
        return np.where(ordered, values, np.nan)

    columns = {"importance": size} if np.isfinite(size).any() else {}
    if "heterogeneity_output" in effect:
        columns |= {"H": values_of("heterogeneity_output")}
    if "average_effect" in effect:
        columns |= {"avg effect": values_of("average_effect")}
    if "average_effect_se" in effect and np.isfinite(se := values_of("average_effect_se")).any():
        columns |= {"std err": se} | _tests(effect)
    if "average_effect_ci" in effect:
        heads = bounds_text(float(effect["average_effect_ci"].attrs.get("ci_prob", 0.95)))
        columns |= {head: values_of("average_effect_ci", end) for end, head in enumerate(heads)}
    for name in ("average_effect_se", "curve_se"):
        if name in effect and bool(effect[name].notnull().any()):
            return columns, uncertainty(str(effect[name].attrs.get("source", "rows")))
    return columns, NO_ERRORS


def _tests(effect: xr.Dataset) -> dict[str, NDArray[np.float64]]:
    """t and P of all features by head, where the standard errors include the model."""
    if not holds_model(source_text(effect, "average_effect")):
        return {}
    table = glance(effect, 0.95)
    heads = {"t": "statistic", PVALUE: "p_value"}
    return {head: table[name].to_numpy() for head, name in heads.items() if name in table}
