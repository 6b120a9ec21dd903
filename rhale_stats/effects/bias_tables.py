"""Printed tables of the checks of bias and of jumps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from rhale_stats.effects.bias import FINE, LARGE, TESTED_ROWS, TOO_FEW
from rhale_stats.inference import meaning
from rhale_stats.printing.text import bin_labels, number_text, percent, pvalue_text
from rhale_stats.schema.features import feature_names, one_feature

if TYPE_CHECKING:
    from statsmodels.iolib.table import SimpleTable

# Significance level of jumps, and of bin error if `check_unbiased` stored none.
SIGNIFICANCE = 0.05
# How bin error affects the curve, and what removes a bias of the curve.
UNBIASED_CURVE = (
    "Effects are averages along the axis: bin error biases the heterogeneity, not the curve."
)
REMEDY = "weighting='axis' removes it."
JUMP_HEADS = ["jump", "std err", "spread", "P"]
JUMPS = ("jump", "jump_se", "jump_spread")
BIAS_TITLE, JUMP_TITLE = "Bias of the heterogeneity", "What derivatives miss"


def _table(lines: list[list[str]], heads: list[str], stubs: list[str], title: str) -> SimpleTable:
    """A printed table; statsmodels is loaded with the first one."""
    from statsmodels.iolib.table import SimpleTable
    from statsmodels.iolib.tableformatting import fmt_params

    return SimpleTable(lines, heads, stubs, title, txt_fmt=fmt_params)


def bias_table(effect: xr.Dataset, feature: str | int | None) -> tuple[SimpleTable, list[str]]:
    """Results of `check_unbiased`: one line per feature, or per bin."""
    adjust = effect["bin_error_pvalue_adjusted"].attrs["adjust"]
    notes = [
        "bin error: variance of the mean effect within the bin, a part of the variance of local "
        "effects. within: their standard deviation without it.",
        f"P: no bin error, the larger p-value of two tests of neighbouring rows (math [14]), "
        f"adjusted ({adjust}).",
    ]
    if feature is None:
        table, own_notes = _bias_of_features(effect), _notes_of_features(effect)
    else:
        table, own_notes = _bias_of_bins(effect, feature), _notes_of_bins(effect)
    return table, notes + own_notes


def _bias_of_features(effect: xr.Dataset) -> SimpleTable:
    """A line a feature."""
    along = along_axis(effect)
    heads = ["bins", "tested", "biased", "> std err", "share", "within", "smallest P"]
    heads += [] if along else ["curve bias"]
    lines = []
    for name in feature_names(effect):
        row = one_feature(effect, name)
        line = _bias_of_feature(row)
        lines.append(line if along else [*line, number_text(_curve_bias(row))])
    return _table(lines, heads, feature_names(effect), BIAS_TITLE)


def _bias_of_feature(row: xr.Dataset) -> list[str]:
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


def _notes_of_features(effect: xr.Dataset) -> list[str]:
    significance = effect["verdict"].attrs["significance"]
    curve_bias = (
        "curve bias: the largest bias of the curve, where rows are denser on one side of "
        f"a bin. Bin error alone does not bias the curve. {REMEDY}"
    )
    return [
        UNBIASED_CURVE if along_axis(effect) else curve_bias,
        f"biased: bins with P below {significance:g}. > std err: bins where the bias also "
        "exceeds the standard error of the heterogeneity.",
        "share: part of the variance along the axis that is bin error.",
    ]


def _bias_of_bins(effect: xr.Dataset, feature: str | int) -> SimpleTable:
    """A line a bin of one feature."""
    along = along_axis(effect)
    heads = ["sigma2*", "within", "bin error", "std err", "share", "RVN", "P", "rank P"]
    heads += ["verdict"] if along else ["density bias", "std err", "verdict"]
    density = () if along else ("density_bias", "density_bias_se")
    row = one_feature(effect, feature)
    lines = [
        [
            number_text(float(line["sigma2_star"])),
            number_text(float(line["heterogeneity_within"])),
            number_text(float(line["bin_error"])),
            number_text(float(line["bin_error_se"])),
            percent(float(line["bin_error_share"])),
            number_text(float(line["von_neumann_ratio"])),
            pvalue_text(float(line["bin_error_pvalue_adjusted"])),
            pvalue_text(float(line["rank_pvalue_adjusted"])),
            *(number_text(float(line[name])) for name in density),
            str(line["verdict"].values),
        ]
        for line in (row.isel(bin=k) for k in range(row.sizes["bin"]))
    ]
    return _table(lines, heads, bin_labels(row), BIAS_TITLE)


def _notes_of_bins(effect: xr.Dataset) -> list[str]:
    density_bias = (
        "density bias: bias of the effect where rows are denser on one side of the bin. Bin "
        f"error alone does not bias the curve. {REMEDY}"
    )
    return [
        UNBIASED_CURVE if along_axis(effect) else density_bias,
        f"sigma2*: variance of the local effects. Bins of fewer than {TESTED_ROWS} rows are not "
        "tested.",
    ]


def along_axis(effect: xr.Dataset) -> bool:
    """Whether effects are averages along the axis, which do not depend on the density of rows."""
    return str(effect.attrs.get("weighting", "rows")) == "axis"


def _curve_bias(row: xr.Dataset) -> float:
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
        return _jumps_of_bins(one_feature(effect, feature)), notes
    notes.append(
        f"The line of a feature shows its bin with the smallest P. missed: number of bins with P "
        f"below {SIGNIFICANCE:g}."
    )
    lines = [_largest_jump(one_feature(effect, name)) for name in feature_names(effect)]
    heads = ["bins", "missed", *JUMP_HEADS]
    return _table(lines, heads, feature_names(effect), JUMP_TITLE), notes


def _jumps_of_bins(row: xr.Dataset) -> SimpleTable:
    """A line a bin of one feature."""
    lines = [
        [
            *(number_text(float(row[name][k])) for name in JUMPS),
            pvalue_text(float(row["jump_pvalue_adjusted"][k])),
        ]
        for k in range(row.sizes["bin"])
    ]
    return _table(lines, JUMP_HEADS, bin_labels(row), JUMP_TITLE)


def _largest_jump(row: xr.Dataset) -> list[str]:
    """Number of bins of one feature, number with a missed jump, and the bin with the smallest P."""
    pvalue = row["jump_pvalue_adjusted"].values
    if not np.isfinite(pvalue).any():
        return [str(len(pvalue)), "", *[""] * len(JUMP_HEADS)]
    k = int(np.nanargmin(pvalue))
    return [
        str(len(pvalue)),
        str(int((pvalue < SIGNIFICANCE).sum())),
        *(number_text(float(row[name][k])) for name in JUMPS),
        pvalue_text(pvalue[k]),
    ]
