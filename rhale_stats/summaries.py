"""Results as tables: printed (`summary`) and as pandas frames (`tidy`, `glance`, `augment`)."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import xarray as xr
from scipy import stats
from statsmodels.iolib.summary import Summary
from statsmodels.iolib.table import SimpleTable
from statsmodels.iolib.tableformatting import fmt_2cols, fmt_params

from rhale_stats import h_statistic_tables, meaning, profile_tables
from rhale_stats.arrays.accumulate import turning_points
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.intervals import around, student
from rhale_stats.by_part import each_part, with_notes
from rhale_stats.curves import curve_of, has_cells
from rhale_stats.effects import check_same_model
from rhale_stats.inference import bin_degrees, fit_of, row_degrees, std_error
from rhale_stats.profile_data import METHOD_NAMES, check_profile
from rhale_stats.regional import check_tree
from rhale_stats.schema import (
    categorical_features,
    check_effect,
    check_local,
    effect_at,
    feature_names,
    feature_position,
    is_categorical,
    kept_interval,
    level_names,
    method_text,
    of_part,
    one_feature,
    position_of,
    units_of,
    with_units,
)
from rhale_stats.unbiasedness import FINE, LARGE, TESTED_ROWS, TOO_FEW, linear_bin_error
from rhale_stats.validate import check_level, checked

MOST_DIGITS = 17
COLUMN_SEPARATOR = "   "
# At which a bin is called biased where `check_unbiased` did not say, and a jump a jump.
SIGNIFICANCE = 0.05
# Rules that choose edges by the local effects, and what that does to standard errors.
SEARCHED = ("AdaptiveBins", "OptimalBins", "GreedyBins", "BestEqualWidthBins")
CHOSEN_BINS = (
    "Bin edges were chosen on the same rows, so intervals of bin effects are too narrow. "
    "honest=True removes this."
)
# What a bias of the heterogeneity does to the curve, and what removes that of the curve.
UNBIASED_CURVE = (
    "Effects are averages along the axis: bin error biases the heterogeneity, not the curve."
)
REMEDY = "weighting='axis' removes it."
FIXED = "Standard errors treat the model and the bin edges as fixed."
# What `_kind` calls trees of regions, and the drops of all pairs of columns.
REGIONS, INTERACTIONS = "regions", "interaction matrix"
# Losses of trees in words.
LOSS_NAMES = {"index": "heterogeneity index", "output": "heterogeneity of the output"}
# Why a split was not made: too small a drop, no better than chance, not so on other rows, or taken
# back by cross-validation.
BELOW_DROP, ABOVE_LEVEL, UNCONFIRMED, PRUNED = "drop", "level", "unconfirmed", "pruned"
# How levels were put in order, where the name alone would not say it.
ORDERS = {"given": "as given", "as_is": "of the categories or the alphabet"}
# In place of a share of more than the whole.
ABOVE_ONE = "> 1"
# So many pairs of H-statistics are printed.
MOST_PAIRS = 15
# Before a node in print, once for every split above it.
INDENT = "|  "
# Lines of a table, the heads of its columns, and what stands before each line.
Body: TypeAlias = tuple[list[list[str]], list[str], list[str]]
# R's marks of p-values.
STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"), (0.1, "."))
# What `tidy` shows of a check, where one was made.
CHECKED = (
    "heterogeneity_within",
    "heterogeneity_within_se",
    "bin_error",
    "bin_error_se",
    "bin_error_share",
    "von_neumann_ratio",
    "bin_error_pvalue",
    "bin_error_pvalue_adjusted",
    "rank_ratio",
    "rank_pvalue",
    "rank_pvalue_adjusted",
    "density_bias",
    "density_bias_se",
    "verdict",
    "jump",
    "jump_se",
    "jump_spread",
    "jump_pvalue",
    "jump_pvalue_adjusted",
)


def tidy(effect: xr.Dataset, level: float) -> pd.DataFrame:
    """`tidy` of effects in bins: a line a bin."""
    effect = _with_std_error(effect)
    frames, levels = [], bool(categorical_features(effect))
    for name in feature_names(effect):
        row = one_feature(effect, name)
        frame = pd.DataFrame(
            {
                "term": name,
                "bin": row["bin"].values,
                "bin_left": row["bin_left"].values,
                "bin_right": row["bin_right"].values,
                "n_obs": row["n_obs"].values,
            }
        )
        if levels:
            texts = level_names(row) if is_categorical(row) else [""] * row.sizes["edge"]
            frame.insert(4, "level_from", texts[:-1])
            frame.insert(5, "level_to", texts[1:])
        reasons = meaning.of_bins(row)
        intervals = _wald_columns(row, "effect", level, bin_degrees(row), reasons)
        lines = {name: row[name].values for name in ("slope", "slope_se") if name in row}
        alike = meaning.is_alike(row)
        spread = {
            name: np.where(alike, 0.0, row[name].values)
            for name in ("heterogeneity", "heterogeneity_se")
        }
        checked = {check: row[check].values for check in CHECKED if check in row}
        frames.append(frame.assign(**intervals, **spread, **lines, **checked, reason=reasons))
    return _spoken(pd.concat(frames, ignore_index=True))


def _spoken(table: pd.DataFrame) -> pd.DataFrame:
    """Without columns that have nothing to say in any line."""
    silent = [
        name
        for name, nothing in (
            *((name, table[name].isna()) for name in ("statistic", "p_value") if name in table),
            *((name, table[name] == "") for name in ("reason",) if name in table),
        )
        if nothing.all()
    ]
    return table.drop(columns=silent)


def glance(effect: xr.Dataset, level: float) -> pd.DataFrame:
    """`glance` of effects in bins: a line a feature."""
    effect = _with_std_error(effect)
    rows = [one_feature(effect, name) for name in feature_names(effect)]
    reasons = [meaning.of_average(row) for row in rows]
    degrees = np.array([row_degrees(row) for row in rows])
    columns = _wald_columns(effect, "average_effect", level, degrees, reasons)
    share = effect["weight_share"].where(effect["heterogeneity"].notnull())
    alike = np.array([bool(meaning.of_effects(row)) for row in rows])
    squares = (share * effect["heterogeneity"] ** 2).sum("bin", min_count=1) / share.sum("bin")
    extent = np.array([curve_extent(row) for row in rows])
    columns |= {
        name: np.where(alike & np.isfinite(values), 0.0, values)
        for name, values in (
            ("heterogeneity", np.sqrt(squares.values)),
            ("heterogeneity_output", effect["heterogeneity_output"].values),
            ("heterogeneity_index", effect["heterogeneity_index"].values),
        )
    }
    unordered = meaning.is_unordered(effect)
    for name in (*_WALD, "heterogeneity_output", "heterogeneity_index"):
        columns[name] = np.where(unordered, np.nan, columns[name])
    frame = pd.DataFrame(
        {
            "term": feature_names(effect),
            "kind": effect["feature_kind"].values.astype(str),
            "n_bins": effect["n_bins"].values,
            "n_obs": effect["n_obs"].sum("bin").values,
            **columns,
            "curve_min": extent[:, 0],
            "curve_max": extent[:, 1],
            "reason": reasons,
        }
    )
    return _spoken(frame)


def curve_extent(row: xr.Dataset) -> tuple[float, float]:
    """Smallest and largest value of the curve of one feature, wherever on the axis it has them."""
    curve = curve_of(row)
    if np.isnan(curve.values).all():
        return np.nan, np.nan
    if meaning.of_effects(row) == meaning.ZERO:
        return 0.0, 0.0
    turns = np.zeros(0)
    if not has_cells(row):
        turns = turning_points(curve.edges, row["effect"].values, curve.slope)
    values = np.concatenate([curve.values, curve.at(turns)])
    return float(np.nanmin(values)), float(np.nanmax(values))


@checked
@each_part
def augment(local: xr.Dataset, effect: xr.Dataset) -> pd.DataFrame:
    """The rows with what was estimated for them, one row an observation.

    Parameters
    ----------
    local, effect : Dataset
        Local effects, and what `rhale` made of them (or of other rows: where a value lies outside
        the bins, columns are NaN and the bin is missing).

    Returns
    -------
    DataFrame
        Indexed by ``obs``. For every feature ``f`` of ``effect``: ``f`` (its value),
        ``f.local_effect``, ``f.bin``, ``f.effect`` (of the bin; at the value where that is
        linear), ``f.residual`` (local effect minus effect) and ``f.curve`` at the value;
        ``weight`` where there is one. Of a categorical feature ``f`` is the level and
        ``f.local_effect`` the mean of the differences to its neighbours; a row belongs to no single
        step, so that bin, effect and residual are missing.

    Raises
    ------
    KeyError
        A feature of ``effect`` is not in ``local``.
    ValueError
        ``local`` has the rows of ``effect``, but the local effects of another model, output or
        scale.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 1))
    >>> local = rs.local_effects(lambda X: X[:, 0] ** 2, X)
    >>> rs.augment(local, rs.rhale(local)).columns.tolist()
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
        edges = row["edge_value"].values
        inside = np.zeros(len(x), dtype=bool)
        if is_categorical(row) != is_categorical(rows):
            raise ValueError(
                f"local must be what effect was made from; feature {name!r} has levels in one of "
                f"them and an axis in the other."
            )
        if is_categorical(row):
            there = ~np.isnan(x)
            at = x[there].astype(np.int64)
            curve[there] = row["curve"].values[at]
            x = np.full(len(x), "", dtype=object)
            x[there] = np.array(level_names(row), dtype=object)[at]
        elif len(edges):
            inside = (x >= edges[0]) & (x <= edges[-1])
            k = bin_index(edges, x)
            number[:] = k
            mean = np.where(inside, effect_at(row, x, k), np.nan)
            curve = curve_of(row).at(x)
        number[~inside] = pd.NA
        columns |= {
            name: x,
            f"{name}.local_effect": g,
            f"{name}.bin": number,
            f"{name}.effect": mean,
            f"{name}.residual": g - mean,
            f"{name}.curve": curve,
        }
    return pd.DataFrame(columns, index=pd.Index(local["obs"].values, name="obs"))


def summary(effect: xr.Dataset, feature: str | int | None, level: float) -> Summary:
    """`summary` of effects in bins: a line a feature, or a line a bin of one."""
    effect = _with_std_error(effect)
    tail = (1 - level) / 2
    bounds = [f"[{tail:.3g}", f"{1 - tail:.3g}]"]
    if feature is None:
        title = f"{_method(effect)}: effects on {_output(effect)}"
        body, meanings, reasons = _feature_table(effect, bounds, level)
    else:
        name = feature_names(effect)[feature_position(effect, feature)]
        of = with_units(name, units_of(effect, name))
        title = f"{_method(effect)}: effect of {of} on {_output(effect)}"
        body, meanings, reasons = _bin_table(effect, name, bounds, level)
    of_error = "average_effect" if feature is None else "effect"
    cells, title = _header(effect, title, _source(effect, of_error))
    lines, heads, stubs = body
    tables = _with_facts(cells, title, lines, heads, stubs)
    if feature is not None and is_categorical(one_feature(effect, feature)):
        row = one_feature(effect, feature)
        tables.append(_level_table(row, level))
        meanings += [
            "Each effect is the mean difference between two neighbouring levels, over the rows of "
            "both. A row can enter two effects; standard errors account for it.",
            f"Level order: {_order(row)}. Standard errors do not include the choice of order.",
        ]
    checks = []
    for check, table in (("verdict", _bias_table), ("jump", _jump_table)):
        if check in effect:
            extra, extra_notes = table(effect, feature)
            tables.append(extra)
            checks += extra_notes
    # What makes a number invalid comes before what it means.
    notes = [
        *bias_warnings(effect, feature),
        *reasons,
        *_edge_notes(effect),
        *checks,
        _error_note(effect, of_error, level),
        *meanings,
        _bins_note(effect.attrs),
        *_interval_notes(effect),
    ]
    return with_notes(tables, notes)


def _bins_note(attrs: dict[Hashable, Any]) -> str:
    return f"Bins: {attrs['bin_rule']}({attrs['bin_parameters']})."


def _reasons(table: pd.DataFrame) -> list[str]:
    """Why a line has a value that is 0 or missing; empty where it has none."""
    return table["reason"].tolist() if "reason" in table else [""] * len(table)


def _because(names: list[str], reasons: list[str]) -> list[str]:
    """Reasons, each with the lines that it is given for."""
    of: dict[str, list[str]] = {}
    for name, reason in zip(names, reasons, strict=True):
        if reason:
            of.setdefault(reason, []).append(name)
    return [f"{', '.join(lines)}: {reason}." for reason, lines in of.items()]


def _method(effect: xr.Dataset) -> str:
    """Name of the effects."""
    return str(effect.attrs.get("method", "rhale")).upper()


def _glance_test(test: xr.Dataset, _level: float) -> pd.DataFrame:
    """`glance` of a test: a line a feature."""
    names = [
        name
        for name in ("statistic", "df", "p_value", "p_value_adjusted", "reason")
        if name in test and not (name == "reason" and (test[name] == "").all())
    ]
    return pd.DataFrame(
        {"term": feature_names(test), **{name: test[name].values for name in names}}
    )


def _tidy_test(test: xr.Dataset, level: float) -> pd.DataFrame:
    """`tidy` of a test: a line a feature, or a line a point of a difference."""
    if "difference" not in test:
        return _glance_test(test, level)
    frames = []
    for number, name in enumerate(feature_names(test)):
        row = test.isel(feature=number)
        there = row["grid_value"].notnull().values
        bounds = {
            f"{prefix}_{end}": row[f"difference_{kind}"].values[there, at]
            for prefix, kind in (("conf", "ci"), ("band", "band"))
            for at, end in enumerate(("low", "high"))
        }
        frames.append(
            pd.DataFrame(
                {
                    "term": name,
                    "x": row["grid_value"].values[there],
                    "estimate": row["difference"].values[there],
                    "std_error": row["difference_se"].values[there],
                    **bounds,
                }
            )
        )
    return pd.concat(frames, ignore_index=True)


def _tidy_sizes(sizes: xr.Dataset, _level: float) -> pd.DataFrame:
    """`tidy` of sizes: a line a size of a feature."""
    names = [str(name) for name in sizes.data_vars if sizes[name].dims == ("feature",)]
    lines = []
    for number, term in enumerate(feature_names(sizes)):
        row = sizes.isel(feature=number)
        for name in names:
            if name.endswith("_corrected"):
                continue
            line = {"term": term, "size": name, "estimate": float(row[name])}
            if f"{name}_ci" in sizes:
                low, high = row[f"{name}_ci"].values
                line |= {
                    "corrected": float(row[f"{name}_corrected"]),
                    "conf_low": float(low),
                    "conf_high": float(high),
                }
            lines.append(line)
    return pd.DataFrame(lines)


def _test_summary(test: xr.Dataset, _feature: object, level: float) -> Summary:
    """A test, a line a feature."""
    attrs, table = test.attrs, _glance_test(test, level)
    heads = {
        "statistic": "statistic",
        "df": "df",
        "p_value": "P",
        "p_value_adjusted": f"P, adjusted ({attrs['adjust']})",
    }
    heads = {name: head for name, head in heads.items() if name in table}
    lines = [[_cell(line, name) for name in heads] for _, line in table.iterrows()]
    cells = [
        ["Rows:", f"{attrs['n_rows']}", "Bins:", str(attrs["bin_rule"])],
        ["Uncertainty:", meaning.uncertainty(str(attrs["source"])), "", ""],
    ]
    intervals = [
        f"{name}: {test[name].attrs['ci_prob']:.3g}, {test[name].attrs['kind']}."
        for name in ("difference_ci", "difference_band")
        if name in test
    ]
    notes = [
        *_because(table["term"].tolist(), _reasons(table)),
        f"Null hypothesis: {attrs['null']}.",
        *intervals,
        _bins_note(attrs),
    ]
    title = f"Test on {attrs['output_name']}: {attrs['test']}"
    stubs = table["term"].tolist()
    return with_notes(_with_facts(cells, title, lines, list(heads.values()), stubs), notes)


def _sizes_summary(sizes: xr.Dataset, _feature: object, level: float) -> Summary:
    """Sizes of effects, a line a size."""
    attrs, table = sizes.attrs, _tidy_sizes(sizes, level)
    heads = [str(name) for name in table.columns if name not in ("term", "size")]
    lines = [[number_text(line[name]) for name in heads] for _, line in table.iterrows()]
    stubs = [f"{line['term']}: {line['size']}" for _, line in table.iterrows()]
    notes = [
        "importance: standard deviation of the curve over the rows. aled: mean distance of the "
        "curve from its mean.",
        "aler: lowest and highest value of the curve. heterogeneity_output: standard deviation of "
        "the local effects times that of the feature.",
        _bins_note(attrs),
    ]
    intervals = [str(name) for name in sizes.data_vars if str(name).endswith("_ci")]
    if intervals:
        facts = sizes[intervals[0]].attrs
        notes = [
            f"Intervals: {facts['ci_prob']:.3g}, {facts['method']}. They treat the model as given.",
            "corrected: the estimate minus its bias, estimated from the replicates.",
            *notes,
        ]
    title = f"Sizes of the effects on {attrs['output_name']}"
    return with_notes([SimpleTable(lines, heads, stubs, title, txt_fmt=fmt_params)], notes)


# --- regions and interactions ---------------------------------------------------------------------


def trees_of(results: xr.Dataset) -> list[xr.Dataset]:
    """The trees of all features, each without padding."""
    if "feature" not in results.dims:
        return [check_tree(results)]
    return [check_tree(results.isel(feature=at)) for at in range(results.sizes["feature"])]


def tidy_trees(trees: xr.Dataset, _level: float) -> pd.DataFrame:
    """`tidy` of trees: a line a node."""
    return pd.concat([_tidy_tree(tree) for tree in trees_of(trees)], ignore_index=True)


def glance_trees(trees: xr.Dataset, _level: float) -> pd.DataFrame:
    """`glance` of trees: a line a tree."""
    return pd.DataFrame([_glance_tree(tree) for tree in trees_of(trees)])


def _tidy_tree(tree: xr.Dataset) -> pd.DataFrame:
    parent, region = (
        pd.Series(tree[name].values, dtype="Int64").where(tree[name].values >= 0, pd.NA)
        for name in ("parent", "region")
    )
    return pd.DataFrame(
        {
            "term": str(tree["feature"].values),
            "node": tree["node"].values,
            "parent": parent,
            "depth": tree["depth"].values,
            "rule": tree["rule"].values,
            "n_obs": tree["n_obs"].values,
            "weight_share": tree["weight_share"].values,
            "loss": tree["loss"].values,
            "loss_drop": tree["loss_drop"].values,
            "best_split": tree["best"].values,
            "best_drop": tree["best_drop"].values,
            "p_value": tree["pvalue"].values,
            "region": region,
        }
    )


def _glance_tree(tree: xr.Dataset) -> dict[str, object]:
    leaves = tree.isel(node=np.flatnonzero(tree["region"].values >= 0))
    loss = float(tree["loss"][0])
    left = float((leaves["loss"] * leaves["weight_share"]).sum(skipna=False))
    settings = ("loss_kind", "test", "level", "max_depth", "min_obs", "min_drop", "bin_rule")
    return {
        "term": str(tree["feature"].values),
        "n_regions": leaves.sizes["node"],
        "n_obs": int(tree["n_obs"][0]),
        "loss": loss,
        "loss_left": left,
        "loss_drop": 1 - left / loss if loss > 0 else loss,
        "first_split": str(tree["best"].values[0]) if leaves.sizes["node"] > 1 else "",
        "p_value": float(tree["pvalue"][0]),
        **{name: tree.attrs[name] for name in settings},
    }


def _tidy_interactions(found: xr.Dataset, _level: float) -> pd.DataFrame:
    shape = found["loss_drop"].shape
    frame = pd.DataFrame(
        {
            "term": np.repeat(found["feature"].values, shape[1]),
            "conditioning": np.tile(found["conditioning"].values, shape[0]),
            "loss": np.repeat(found["loss"].values, shape[1]),
            "loss_drop": found["loss_drop"].values.ravel(),
            "best_split": found["best"].values.ravel(),
            "p_value": found["pvalue"].values.ravel(),
            "p_value_adjusted": found["pvalue_adjusted"].values.ravel(),
        }
    )
    return frame[frame["term"] != frame["conditioning"]].reset_index(drop=True)


def _regions_summary(trees: xr.Dataset, feature: str | int | None, _level: float) -> Summary:
    """Trees, one after the other, with a line a node."""
    every = trees_of(trees)
    if feature is not None:
        every = [every[position_of(feature, [str(tree["feature"].values) for tree in every])]]
    alone = len(every) == 1
    stubs, lines = node_lines(every)
    heads = ["rows", "loss", "best split", "drop", "P", ""]
    output = with_units(trees.attrs["output_name"], trees.attrs["output_units"])
    title = f"Regions: effects on {output}"
    if alone:
        of = with_units(str(every[0]["feature"].values), str(every[0]["feature_units"].values))
        title = f"Regions: effect of {of} on {output}"
    tables = _with_facts(_region_facts(every), title, lines, heads, stubs, "rrrrrl")
    attrs = trees.attrs
    notes = [
        *_region_test_notes(attrs),
        "loss: heterogeneity left in the bins of the node. drop: the part of it that the split "
        "removes, over both sides.",
    ]
    if any((tree["best"] == "").any() for tree in every):
        notes.append(
            f"Empty best split: no split was tried (maximum depth of {attrs['max_depth']}, "
            f"less than {_setting(attrs['min_share'])} of the variance left within bins, or "
            f"fewer than {attrs['min_obs']} rows on one side)."
        )
    if attrs.get("n_folds", 0):
        notes.append(
            "Pruned: minimal cost-complexity pruning with the one-standard-error rule, "
            f"{attrs['n_folds']}-fold cross-validation."
        )
        if alone:
            tables.append(_pruning_table(every[0]))
    notes += [
        "best split: the rule of its left side.",
        f"Bins, chosen again in every node: {attrs['bin_rule']}({attrs['bin_parameters']}).",
    ]
    words = (_no_regions(every[0]), "") if alone and every[0].sizes["node"] == 1 else ()
    return with_notes(tables, notes, words)


def node_lines(trees: list[xr.Dataset]) -> tuple[list[str], list[list[str]]]:
    """Names of the nodes of trees, and a line for each."""
    stubs: list[str] = []
    lines: list[list[str]] = []
    for tree in trees:
        for at in range(tree.sizes["node"]):
            node = tree.isel(node=at)
            text = INDENT * int(node["depth"]) + _text(node, "condition")
            stubs.append(str(tree["feature"].values) if at == 0 and len(trees) > 1 else text)
            drop = "loss_drop" if node["region"] < 0 else "best_drop"
            lines.append(
                [
                    str(int(node["n_obs"])),
                    loss_text(float(node["loss"])),
                    _text(node, "best"),
                    _drop(float(node[drop])),
                    pvalue_text(float(node["pvalue"])),
                    _outcome(node, alone=tree.sizes["node"] == 1),
                ]
            )
    return stubs, lines


def loss_text(loss: float) -> str:
    """Four significant digits, without an exponent where a loss is easier to read so."""
    text = number_text(loss)
    return f"{float(text):.0f}" if 1e4 <= abs(loss) < 1e7 else text


def _drop(share: float) -> str:
    """As fine as what was asked for."""
    return "" if np.isnan(share) else f"{share:.1%}"


def _setting(share: float) -> str:
    return f"{100 * share:.3g}%"


def _pruning_table(tree: xr.Dataset) -> SimpleTable:
    """The trees that were compared, the largest first."""
    sequence = tree.isel(pruning=np.flatnonzero(tree["pruning_n_regions"].values > 0))
    n_regions = sequence["pruning_n_regions"].values
    chosen = int((tree["region"] >= 0).sum())
    values = ("pruning_price", "pruning_loss", "pruning_loss_se")
    lines = [
        [
            *(loss_text(float(sequence[name][at])) for name in values),
            "chosen" if n_regions[at] == chosen else "",
        ]
        for at in range(len(n_regions))
    ]
    heads = ["price", "loss held out", "std err", ""]
    stubs = [_count(int(number), "region") for number in n_regions]
    form = fmt_params | {"data_aligns": "rrrl"}
    return SimpleTable(lines, heads, stubs, "Pruning", txt_fmt=form)


def _text(node: xr.Dataset, name: str) -> str:
    return str(node[name].values)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _outcome(node: xr.Dataset, *, alone: bool) -> str:
    """What became of a node, and why its best split was not made."""
    number = int(node["region"])
    if number < 0:
        return "split"
    if alone and np.isnan(float(node["loss"])):
        return "constant"
    reasons = {
        BELOW_DROP: f": drop < {_setting(node.attrs['min_drop'])}",
        ABOVE_LEVEL: f": P > {node.attrs['level']:g}",
        UNCONFIRMED: ": not confirmed",
        PRUNED: ": pruned",
    }
    return ("no split" if alone else f"region {number}") + reasons.get(rejected(node), "")


def rejected(node: xr.Dataset) -> str:
    """Why the best split of a leaf was not made; empty where there is none."""
    if not _text(node, "best"):
        return ""
    if float(node["best_drop"]) < node.attrs["min_drop"]:
        return BELOW_DROP
    if float(node["pvalue"]) > node.attrs["level"]:
        return ABOVE_LEVEL
    return PRUNED if node.attrs.get("n_folds", 0) else UNCONFIRMED


def _no_regions(tree: xr.Dataset) -> str:
    """A tree without splits in words."""
    root = tree.isel(node=0)
    text = f"The effect of {tree['feature'].values!s} has no regions: "
    if np.isnan(float(root["loss"])):
        return text + "the feature does not vary."
    if not _text(root, "best"):
        return text + "no split was tried (see the notes)."
    drop = _drop(float(root["best_drop"]))
    text += f"the best split, {_text(root, 'best')}, would lower the loss by {drop}, "
    why = {
        BELOW_DROP: f"less than the required {_setting(tree.attrs['min_drop'])}.",
        ABOVE_LEVEL: f"which is not significant (P {pvalue_text(float(root['pvalue']))}).",
        UNCONFIRMED: "but not by enough on the other half of the rows.",
        PRUNED: "but not by more than a standard error on held-out rows.",
    }
    return text + why[rejected(root)]


def _region_facts(trees: list[xr.Dataset]) -> list[list[str]]:
    """How trees were grown, for the header."""
    attrs = trees[0].attrs
    units = {str(tree["feature_units"].values) for tree in trees}
    test = attrs["test"]
    if test != "none":
        test += f", level {attrs['level']:g}"
    return [
        ["Rows:", str(attrs["n_rows"]), "Loss:", LOSS_NAMES[attrs["loss_kind"]]],
        [
            *("Bins:", attrs["bin_rule"]),
            *("Its units:", loss_units(trees[0], units.pop() if len(units) == 1 else "")),
        ],
        ["Test:", test, "Splits above a region:", f"at most {attrs['max_depth']}"],
        [
            *("Thresholds:", _thresholds(attrs)),
            *("Rows of a region:", f"at least {attrs['min_obs']}"),
        ],
    ]


def _thresholds(attrs: dict[Hashable, Any]) -> str:
    kind = attrs["thresholds"]
    return "every value" if kind == "exact" else f"{attrs['n_thresholds']} by {kind}"


def loss_units(results: xr.Dataset, feature_units: str) -> str:
    """Units of the loss, with those that are known by their names."""
    units = str(results["loss"].attrs["units"])
    known = (
        ("output units", results.attrs.get("output_units", "")),
        ("feature unit", feature_units),
    )
    for general, unit in known:
        if unit:
            units = units.replace(general, str(unit))
    return units


def _region_test_notes(attrs: dict[Hashable, Any]) -> list[str]:
    """What P means, and what was required of a split."""
    required = f"A split was made where its drop is at least {_setting(attrs['min_drop'])}"
    if attrs["test"] == "none":
        return [
            "There was no test, and splits are found in noise as well: see "
            'regions(..., test="permutation").',
            f"{required}.",
        ]
    notes = [
        f"{required} and P at most {attrs['level']:g}.",
        f"P: permutation p-value (at most {attrs['n_permutations']} permutations) of the "
        "hypothesis that no column conditions the effect.",
    ]
    if attrs["test"] == "honest":
        return [
            *notes,
            f"Splits are found on {_setting(attrs['honest_fraction'])} of the rows. The numbers of "
            "splits that were made are of the other rows.",
            "Not confirmed: on the other rows the split removes too little.",
        ]
    notes[-1] += " Each permutation repeats the whole search."
    return notes


def _interactions_summary(found: xr.Dataset, feature: str | int | None, _level: float) -> Summary:
    """Drops of all pairs, a line a feature."""
    if feature is not None:
        found = found.isel(feature=[feature_position(found, feature)])
    attrs = found.attrs
    names, columns = (found[dim].values.astype(str) for dim in ("feature", "conditioning"))
    drop, pvalue = found["loss_drop"].values, found["pvalue_adjusted"].values
    tested = bool(np.isfinite(pvalue).any())
    room = max(len(mark) for _, mark in STARS) if tested else 0
    lines = [
        [
            loss_text(float(found["loss"][row])),
            *(
                _percent(drop[row, at]) + f"{_stars(pvalue[row, at]):{room}}"
                if np.isfinite(drop[row, at])
                else ""
                for at in range(len(columns))
            ),
        ]
        for row in range(len(names))
    ]
    # Heads stand over the numbers, not over their stars.
    heads = ["loss", *(f"{name}{'':{room}}" for name in columns)]
    output = with_units(attrs["output_name"], attrs.get("output_units", ""))
    title = f"Interactions: effects on {output}, split by other columns"
    cells = [
        ["Rows:", str(attrs["n_rows"]), "Loss:", LOSS_NAMES[attrs["loss_kind"]]],
        ["Bins:", attrs["bin_rule"], "Its units:", loss_units(found, "")],
        [
            *("Permutations:", str(attrs["n_permutations"] or "none")),
            *("Thresholds:", _thresholds(attrs)),
        ],
    ]
    notes = [
        "A line: the share of the loss that the best split by every column removes. The loss is "
        "the heterogeneity in the bins of the feature.",
        "Where the loss is near 0 even a large share is little.",
        f"Blank: the feature itself, or no split leaves {attrs['min_obs']} rows on both sides.",
        f"Bins, chosen again on both sides: {attrs['bin_rule']}({attrs['bin_parameters']}).",
    ]
    if tested:
        codes = ", ".join(f"{mark} P ≤ {bound:g}" for bound, mark in STARS)
        adjust = found["pvalue_adjusted"].attrs["adjust"]
        notes.insert(
            0,
            f"{codes}: permutation p-value of the hypothesis that the column does not condition "
            f"the effect, from {attrs['n_permutations']} permutations, adjusted ({adjust}) for all "
            "pairs.",
        )
    else:
        notes.insert(0, "There was no test: a drop may be due to chance (see n_permutations).")
    return with_notes(_with_facts(cells, title, lines, heads, names.tolist()), notes)


def _h_summary(found: xr.Dataset, feature: str | int | None, level: float) -> Summary:
    """H-statistics: a line a feature, and a line a pair, the largest first."""
    found = h_statistic_tables.with_intervals(of_part(found), level)
    attrs, pairwise_there = found.attrs, "h2_pairwise" in found
    if feature is not None:
        found = found.isel(feature=[feature_position(found, feature)])
    table = h_statistic_tables.tidy(found, level)
    shares = bool(attrs["normalize"])
    # Two that interact with each other only differ by rounding.
    stem = "h2" if shares else "h"
    size = table[stem].fillna(np.inf) if shares else table[stem]
    largest = size[np.isfinite(size)].max()
    place = np.round(-size / (largest if largest > 0 else 1.0), 9)
    table = table.assign(place=place, pair=table["kind"] == h_statistic_tables.PAIR)
    table = table.sort_values(["pair", "place"], kind="stable")
    n_pairs = int(table["pair"].sum())
    table = table[~table["pair"] | (table.groupby("pair").cumcount() < MOST_PAIRS)]
    kind = {"pdp": "partial dependence", "ale": "ALE"}[attrs["h_kind"]]
    rows = str(attrs["n_rows"])
    if attrs["n_rows"] < attrs["n_rows_total"]:
        rows = f"{rows} of {attrs['n_rows_total']}"
    all_h2 = h_statistic_tables.share(found["h2"].item())
    cells = [
        ["Rows:", rows, "Computed from:", kind],
        ["Weights:", attrs["weight_kind"], "Sorted by:", "share" if shares else "size"],
        ["Model calls:", str(attrs["n_model_calls"]), "All, H²:", _share(all_h2)],
        ["Model rows:", str(attrs["n_model_rows"]), "All, size:", f"{found['h'].item():.4g}"],
    ]
    heads, columns = ["H²", "size"], ["h2", "h"]
    errors = "h2_std_error" in table
    if errors:
        tail = (1 - level) / 2
        bounds = [f"[{tail:.3g}", f"{1 - tail:.3g}]"]
        heads = ["H²", "std err", *bounds, "size", "std err", *bounds]
        ends = ("std_error", "conf_low", "conf_high")
        columns = [name for stem in ("h2", "h") for name in (stem, *(f"{stem}_{e}" for e in ends))]
    above = _reasons(table)
    lines = [
        [ABOVE_ONE if name == "h2" and reason else number_text(line[name]) for name in columns]
        for reason, (_, line) in zip(above, table.iterrows(), strict=True)
    ]
    output = with_units(attrs["output_name"], attrs["output_units"])
    notes = [*_because(table["term"].tolist(), above)]
    if errors:
        cells.append(
            ["Uncertainty:", meaning.uncertainty(str(found["h2_se"].attrs["source"])), "", ""]
        )
        notes.append(
            f"Intervals: pointwise, {_how(found, 'h2', level)}. They say how large an interaction "
            "is, not whether there is one."
        )
    notes.append(
        "H²: share of the variance of the output; of a pair, share of the variance of its joint "
        "effect. Shares of different pairs cannot be compared."
    )
    notes.append(
        "size: root mean square of the interaction, in units of the output. Sizes can be compared."
    )
    if n_pairs > MOST_PAIRS:
        notes.append(f"The {MOST_PAIRS} largest of {n_pairs} pairs; tidy has all of them.")
    if attrs["n_rows_missing"]:
        notes.append(f"{attrs['n_rows_missing']} rows without a value were left out.")
    if attrs["row_seed"] >= 0:
        notes.append(f"Rows were drawn at random; seed {attrs['row_seed']}.")
    if not pairwise_there:
        notes.append("Pairs were not computed; see pairwise.")
    if attrs["h_kind"] == "ale":
        notes.append(_bins_note(attrs))
    title = f"H-statistics: interactions in {output}"
    return with_notes(_with_facts(cells, title, lines, heads, table["term"].tolist()), notes)


def _share(value: float) -> str:
    """A share of a variance in print."""
    return ABOVE_ONE if np.isnan(value) else f"{value:.4g}"


def _h_difference_summary(compared: xr.Dataset, _feature: object, level: float) -> Summary:
    """Two H-statistics side by side: a line a difference."""
    attrs, table = compared.attrs, h_statistic_tables.tidy_difference(compared, level)
    heads = ["a less b", "std err", "P", "P, adj.", "conf low", "conf high"]
    names = ("estimate", "std_error", "p_value", "p_value_adjusted", "conf_low", "conf_high")
    lines = [
        [
            pvalue_text(line[name]) if name.startswith("p_") else number_text(line[name])
            for name in names
        ]
        for _, line in table.iterrows()
    ]
    text = {"h2": "H²", "h": "size"}
    stubs = [f"{text[line['statistic']]}, {line['term']}" for _, line in table.iterrows()]
    title = f"H-statistics: difference on {with_units(attrs['output_name'], attrs['output_units'])}"
    level = compared["h2_difference_ci"].attrs["ci_prob"]
    notes = [
        f"Uncertainty: {meaning.uncertainty(str(attrs['source']))}. Intervals: {level:.3g}, "
        f"pointwise, Student's t.",
        f"P, adj.: adjusted ({attrs['adjust']}) over features, or over pairs, of one statistic.",
    ]
    return with_notes([SimpleTable(lines, heads, stubs, title, txt_fmt=fmt_params)], notes)


def _stars(pvalue: float) -> str:
    return next((mark for bound, mark in STARS if pvalue <= bound), "")


def _profile_summary(profile: xr.Dataset, feature: str | int | None, level: float) -> Summary:
    """A profile, a line a feature; of one feature a line a point of the grid."""
    profile = check_profile(profile)
    attrs = profile.attrs
    title = METHOD_NAMES[str(attrs["method"])]
    meanings = [f"Curves: {profile['curve'].attrs['estimator'].partition(', math')[0]}."]
    errors: list[str] = []
    if feature is None:
        title = f"{title}: effects on {_output(profile)}"
        table = profile_tables.glance(profile, level)
        heads = ["points", "rows", "importance", "heterog.", "lowest", "highest"]
        numbers = ["importance", "heterogeneity_output", "curve_min", "curve_max"]
        lines = [
            [
                str(line["n_grid"]),
                str(line["n_obs"]),
                *(number_text(line[name]) for name in numbers),
            ]
            if line["kind"] != "constant"
            else ["0", "constant", "", "", "", ""]
            for _, line in table.iterrows()
        ]
        stubs = table["term"].tolist()
        meanings += [
            "importance: standard deviation of the curve over the rows. heterog.: root mean square "
            "of the spread about it. Both are in units of the output."
        ]
    else:
        name = feature_names(profile)[feature_position(profile, feature)]
        title = f"{title}: effect of {with_units(name, units_of(profile, name))} on"
        title = f"{title} {_output(profile)}"
        table = profile_tables.tidy(profile.sel(feature=[name]), level)
        known = "std_error" in table
        tail = (1 - level) / 2
        heads = ["share", "curve", "std err", f"[{tail:.3g}", f"{1 - tail:.3g}]", "spread"]
        numbers = ["estimate", "std_error", "conf_low", "conf_high", "spread"]
        if not known:
            heads, numbers = ["share", "curve", "spread"], ["estimate", "spread"]
        lines = [
            [_percent(line["weight_share"]), *(number_text(line[number]) for number in numbers)]
            for _, line in table.iterrows()
        ] or [["constant"] + [""] * (len(heads) - 1)]
        at = table["level"] if "level" in table else table["x"].map(number_text)
        stubs = at.tolist() or [name]
        meanings += [
            "share: of the rows, at the point. A row between two points counts in part for both."
        ]
        if known:
            errors += [
                "Standard errors treat the model and the grid as fixed. "
                f"Intervals: pointwise, {_how(profile, 'curve', level)}."
            ]
    cells = [
        ["Rows:", f"{attrs['n_rows']}", "Model asked for rows:", f"{attrs['model_rows']}"],
        ["Weights:", attrs["weight_kind"], "Curve centred at:", attrs["centering"]],
    ]
    if "curve_se" in profile:
        source = str(profile["curve_se"].attrs["source"])
        cells.append(["Uncertainty:", meaning.uncertainty(source), "", ""])
    if "shapley" in attrs:
        meanings += [
            f"Shapley values: {attrs['shapley']}; {attrs['n_background']} background rows."
        ]
    if "smoothing" in profile:
        errors += ["Standard errors treat the smoothing and the Shapley values as fixed."]
    notes = [*errors, *meanings, *_interval_notes(profile)]
    return with_notes(_with_facts(cells, title, lines, heads, stubs), notes)


# --- effects --------------------------------------------------------------------------------------


def _header(effect: xr.Dataset, title: str, source: str) -> tuple[list[list[str]], str]:
    """Facts above the table, and its title."""
    attrs = effect.attrs
    if "region_rule" in effect.coords:
        title = f"{title}, where {effect['region_rule'].values}"
    cells = [
        ["Rows:", f"{attrs['n_rows']}", "Local effects:", method_text(effect)],
        ["Weights:", attrs["weight_kind"], "Curve centred at:", attrs["centering"]],
        ["Uncertainty:", meaning.uncertainty(source), "", ""],
    ]
    return cells, title


def _with_facts(
    cells: list[list[str]],
    title: str,
    lines: list[list[str]],
    heads: list[str],
    stubs: list[str],
    aligns: str = "r",
) -> list[SimpleTable]:
    """A table below its facts, stretched to their width where that is larger."""
    form = fmt_params | {"data_aligns": aligns}
    body = SimpleTable(lines, heads, stubs, txt_fmt=form)
    header = _facts(cells, title, body)
    missing = len(header.as_text().splitlines()[-1]) - len(body.as_text().splitlines()[-1])
    if missing > 0:
        room = max(10, *(len(stub) for stub in stubs)) + missing
        body = SimpleTable(
            lines, heads, stubs, txt_fmt=form | {"colwidths": [room] + [10] * len(heads)}
        )
    return [header, body]


def _facts(cells: list[list[str]], title: str, body: SimpleTable) -> SimpleTable:
    """Two columns of names and values, together as wide as the table below them."""
    width = len(body.as_text().partition("\n")[0]) - 3 * len(COLUMN_SEPARATOR)
    widths = [width // 4, width // 4, width // 4, width - 3 * (width // 4)]
    needed = [max(len(text) for text in column) for column in zip(*cells, strict=True)]
    if any(need > given for need, given in zip(needed, widths, strict=True)):
        room = max(width - sum(needed), 0)
        widths = [needed[0], needed[1] + room // 2, needed[2], needed[3] + room - room // 2]
    form = fmt_2cols | {
        "data_fmts": ["%s"],
        "data_aligns": "lrlr",
        "colsep": COLUMN_SEPARATOR,
        "colwidths": widths,
    }
    return SimpleTable(cells, title=title, txt_fmt=form)


def _feature_table(
    effect: xr.Dataset, bounds: list[str], level: float
) -> tuple[Body, list[str], list[str]]:
    """A line a feature; what its columns mean, and why some are blank or 0."""
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
                *(_cell(line, name) for name in wald),
                number_text(line["heterogeneity"]),
                number_text(line["heterogeneity_output"]),
                number_text(line["curve_max"] - line["curve_min"]),
            ]
        )
    meanings = [
        "avg effect: mean of the local effects over all rows. heterog.: root mean square of their "
        "standard deviations in the bins.",
        "H: heterog. times the standard deviation of the feature, to compare features. It is not a "
        "part of the variance of the output, and can be larger.",
    ]
    names = table["term"].tolist()
    return (rows, heads, names), meanings, _because(names, _reasons(table))


def _bin_table(
    effect: xr.Dataset, name: str, bounds: list[str], level: float
) -> tuple[Body, list[str], list[str]]:
    """A line a bin; what its columns mean, and why some are 0."""
    row = one_feature(effect, name)
    table = tidy(effect.sel(feature=[name]), level)
    wald = _wald_heads(table, "effect", bounds)
    heads = ["rows", *wald.values(), "heterog.", "std err"]
    numbers = ["heterogeneity", "heterogeneity_se"]
    average = "average of the local effects along the bin"
    if is_categorical(row) or not _along_axis(row):
        average = "mean of the local effects of the rows in the bin"
    meanings = [f"effect: {average}. heterog.: standard deviation of the local effects in the bin."]
    if "slope" in table and table["slope"].any():
        heads += ["slope", "std err"]
        numbers += ["slope", "slope_se"]
        middle = "" if _along_axis(row) else "effect is the value of the line at mid-bin, and "
        meanings += [
            f"Where there is a slope, {middle}heterog. is the standard deviation about the line."
        ]
    rows = [
        [
            str(line["n_obs"]),
            *(_cell(line, column) for column in wald),
            *(number_text(line[number]) for number in numbers),
        ]
        for _, line in table.iterrows()
    ]
    reasons = meaning.of_bins(row)
    if not rows:
        rows = [["constant"] + [""] * (len(heads) - 1)]
        return (rows, heads, _labels(row)), [], ["The feature does not vary."]
    body = rows, heads, _labels(row)
    if len(set(reasons)) == 1:
        return body, meanings, _because(["all bins"], reasons[:1])
    return body, meanings, _because(_labels(row)[: len(reasons)], reasons)


def _order(row: xr.Dataset) -> str:
    """How the levels were put in order."""
    order = str(row["order"].values)
    return ORDERS.get(order, order)


def _level_table(row: xr.Dataset, level: float) -> SimpleTable:
    """The curve of one feature at its levels, and their rows."""
    tail = (1 - level) / 2
    heads = ["rows", "share", "curve", "std err", f"[{tail:.3g}", f"{1 - tail:.3g}]"]
    degrees = fit_of(row).curve_degrees(row["edge_value"].values)
    curve, se = row["curve"].values, row["curve_se"].values
    ends = kept_interval(row, "curve", level)
    if ends is None:
        ends = around(curve, student(level, degrees) * se)
    columns = (curve, se, ends[:, 0], ends[:, 1])
    lines = [
        [f"{n}", f"{share:.1%}", *(number_text(float(value)) for value in values)]
        for n, share, *values in zip(
            row["n_level"].values, row["level_share"].values, *columns, strict=True
        )
    ]
    return SimpleTable(lines, heads, level_names(row), "Levels", txt_fmt=fmt_params)


def _how(of: xr.Dataset, name: str, level: float) -> str:
    """How the intervals in a table were made."""
    if kept_interval(of, name, level) is None:
        return "Student's t"
    return str(of[f"{name}_ci"].attrs["method"]).removeprefix("standard errors, ")


def _edge_notes(effect: xr.Dataset) -> list[str]:
    """On which rows bin edges were chosen, where a rule looked at the local effects."""
    if "honest_seed" in effect.attrs:
        return [f"Bin edges were chosen on {effect.attrs['n_rows_edges']} other rows."]
    return [CHOSEN_BINS] if effect.attrs["bin_rule"] in SEARCHED else []


def _error_note(effect: xr.Dataset, name: str, level: float) -> str:
    """What standard errors treat as fixed, and how intervals are made of them."""
    return f"{FIXED} Intervals: pointwise, {_how(effect, name, level)}."


def _interval_notes(effect: xr.Dataset) -> list[str]:
    """Intervals and bands in the data: at which level, of what, by which method."""
    alike: dict[str, list[str]] = {}
    for name in effect.data_vars:
        if str(name).endswith(("_ci", "_band")):
            facts = effect[name].attrs
            how = f"{facts['ci_prob']:.3g}, {facts['kind']}, {facts['method']}; {facts['source']}"
            alike.setdefault(how, []).append(str(name))
    return [f"In the result: {', '.join(names)} ({how})." for how, names in alike.items()]


def _bias_table(effect: xr.Dataset, feature: str | int | None) -> tuple[SimpleTable, list[str]]:
    """What `check_unbiased` found: a line a feature, or a line a bin."""
    title, along = "Bias of the heterogeneity", _along_axis(effect)
    adjust = effect["bin_error_pvalue_adjusted"].attrs["adjust"]
    notes = [
        "bin error: variance of the mean effect within the bin, a part of the variance of local "
        "effects. within: their standard deviation without it.",
        f"P: von Neumann test of no bin error, from differences of neighbouring rows, adjusted "
        f"({adjust}).",
    ]
    if feature is None:
        heads = ["bins", "tested", "biased", "> std err", "share", "within", "smallest P"]
        heads += [] if along else ["curve bias"]
        lines = []
        for name in feature_names(effect):
            row = one_feature(effect, name)
            verdict, share = row["verdict"].values, row["weight_share"].values
            biased = ~np.isin(verdict, [FINE, TOO_FEW])
            within = np.where(meaning.is_alike(row), 0.0, row["heterogeneity_within"].values)
            known = np.isfinite(within)
            pvalue = row["bin_error_pvalue_adjusted"].values
            lines.append(
                [
                    str(len(verdict)),
                    str(int(np.isfinite(pvalue).sum())),
                    str(int(biased.sum())),
                    str(int((verdict == LARGE).sum())),
                    _percent(float(row["bin_error_share_axis"])),
                    number_text(np.sqrt(np.sum((share * within**2)[known]) / share[known].sum()))
                    if known.any()
                    else "",
                    pvalue_text(np.nanmin(pvalue)) if np.isfinite(pvalue).any() else "",
                    *([] if along else [number_text(_curve_bias(row))]),
                ]
            )
        significance = effect["verdict"].attrs["significance"]
        notes += [
            UNBIASED_CURVE
            if along
            else "curve bias: the largest bias of the curve, where rows are denser on one side of "
            f"a bin. Bin error alone does not bias the curve. {REMEDY}",
            f"biased: bins with P below {significance:g}. > std err: bins where the bias also "
            "exceeds the standard error of the heterogeneity.",
            "share: of the variance along the axis that is bin error.",
        ]
        return SimpleTable(lines, heads, feature_names(effect), title, txt_fmt=fmt_params), notes
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
            _percent(float(line["bin_error_share"])),
            number_text(float(line["von_neumann_ratio"])),
            pvalue_text(float(line["bin_error_pvalue_adjusted"])),
            pvalue_text(float(line["rank_pvalue_adjusted"])),
            *(number_text(float(line[name])) for name in density),
            str(line["verdict"].values),
        ]
        for line in (row.isel(bin=k) for k in range(row.sizes["bin"]))
    ]
    notes += [
        UNBIASED_CURVE
        if along
        else "density bias: bias of the effect where rows are denser on one side of the bin. Bin "
        f"error alone does not bias the curve. {REMEDY}",
        f"sigma2*: variance of the local effects. Bins of fewer than {TESTED_ROWS} rows are not "
        "tested.",
    ]
    return SimpleTable(lines, heads, _labels(row), title, txt_fmt=fmt_params), notes


def _along_axis(effect: xr.Dataset) -> bool:
    """Whether effects are averages along their bin, which do not depend on where the rows are."""
    return str(effect.attrs.get("weighting", "rows")) == "axis"


def _curve_bias(row: xr.Dataset) -> float:
    """The largest bias of the zero-start curve of one feature, from denser sides of its bins."""
    of_bins = np.where(meaning.is_alike(row), 0.0, row["density_bias"].values)
    steps = of_bins * np.diff(row["edge_value"].values)
    known = np.isfinite(steps)
    return float(np.abs(np.cumsum(steps[known])).max()) if known.any() else np.nan


def _jump_table(effect: xr.Dataset, feature: str | int | None) -> tuple[SimpleTable, list[str]]:
    """What `jump_check` found: a line a feature, or a line a bin."""
    title = "What derivatives miss"
    adjust = effect["jump_pvalue_adjusted"].attrs["adjust"]
    notes = [
        "jump: mean change of the output across a bin that the local effects miss. spread: its "
        "standard deviation between rows.",
        f"Where P, adjusted ({adjust}), is small, use narrower bins or "
        'local_effects(..., method="finite_difference").',
    ]
    heads = ["jump", "std err", "spread", "P"]
    values = ("jump", "jump_se", "jump_spread")
    if feature is not None:
        row = one_feature(effect, feature)
        lines = [
            [
                *(number_text(float(row[name][k])) for name in values),
                pvalue_text(float(row["jump_pvalue_adjusted"][k])),
            ]
            for k in range(row.sizes["bin"])
        ]
        return SimpleTable(lines, heads, _labels(row), title, txt_fmt=fmt_params), notes
    lines = []
    for name in feature_names(effect):
        row = one_feature(effect, name)
        pvalue = row["jump_pvalue_adjusted"].values
        if not np.isfinite(pvalue).any():
            lines.append([str(len(pvalue)), "", *[""] * len(heads)])
            continue
        k = int(np.nanargmin(pvalue))
        lines.append(
            [
                str(len(pvalue)),
                str(int((pvalue < SIGNIFICANCE).sum())),
                *(number_text(float(row[value][k])) for value in values),
                pvalue_text(pvalue[k]),
            ]
        )
    notes.append("The line of a feature shows its bin with the smallest P.")
    return (
        SimpleTable(
            lines, ["bins", "missed", *heads], feature_names(effect), title, txt_fmt=fmt_params
        ),
        notes,
    )


def bias_warnings(effect: xr.Dataset, feature: str | int | None) -> list[str]:
    """What a reader must not miss: heterogeneity biased by more than its standard error."""
    if "debiased" in effect.attrs:
        return ["heterog. is free of bin error: it comes from differences of neighbouring rows."]
    if "verdict" in effect:
        large = (effect["verdict"] == LARGE).values
    elif "x_covariance" in effect:
        large = linear_bin_error(effect, significance=SIGNIFICANCE).values
    else:
        return []
    if feature is not None:
        large &= (np.arange(len(large)) == feature_position(effect, feature))[:, None]
    if not large.any():
        return []
    counts = zip(feature_names(effect), large.sum(axis=1), effect["n_bins"].values, strict=True)
    named = ", ".join(f"{name} ({count} of {bins} bins)" for name, count, bins in counts if count)
    return [
        f"Warning: the effect changes within bins of {named}. Their heterogeneity is too large by "
        f"more than its standard error. Use narrower bins, or debias(effect, "
        f"check_unbiased(local, effect))."
        + ("" if _along_axis(effect) else " The check also gives the bias of the curve.")
    ]


def _labels(row: xr.Dataset) -> list[str]:
    """Stubs of the lines of bins, as in the table above them."""
    if is_categorical(row):
        names = level_names(row)
        return [f"{one} → {other}" for one, other in pairwise(names)]
    return interval_labels(row["edge_value"].values) or [str(row["feature"].values)]


def _percent(share: float) -> str:
    return "" if np.isnan(share) else f"{share:.0%}"


def pvalue_text(value: float) -> str:
    """Three decimals; nothing for what is not known."""
    return "" if np.isnan(value) else f"{value:.3f}"


def interval_labels(edges: np.ndarray) -> list[str]:
    """Bins as text: three digits of the narrowest bin's width, and four of every edge."""
    if not len(edges):
        return []
    needed = 2 - int(np.floor(np.log10(np.diff(edges).min())))
    text = [_edge_text(float(edge), needed) for edge in edges]
    closing = [")"] * (len(edges) - 2) + ["]"]
    return [
        f"[{left}, {right}{bracket}"
        for left, right, bracket in zip(text[:-1], text[1:], closing, strict=True)
    ]


def _edge_text(edge: float, decimals: int) -> str:
    if edge == 0:
        return "0"
    magnitude = int(np.floor(np.log10(abs(edge))))
    decimals = max(decimals, 3 - magnitude)
    if not -5 < magnitude < 15:
        return f"{edge:.{min(magnitude + decimals + 1, MOST_DIGITS)}g}"
    return np.format_float_positional(edge, max(decimals, 0), trim="-")


# Columns of an estimate with its error.
_WALD = ("estimate", "std_error", "statistic", "p_value", "conf_low", "conf_high")


def _wald_columns(
    of: xr.Dataset, name: str, level: float, degrees: np.ndarray, reasons: list[str]
) -> dict[str, Any]:
    """An estimate with its error; t and P where that holds the model, and there is one to test."""
    check_level(level)
    estimate, se = of[name].values, of[f"{name}_se"].values
    ends = kept_interval(of, name, level)
    if ends is None:
        ends = around(estimate, student(level, degrees) * se)
    zero, alike = (np.array([one == why for one in reasons], dtype=bool) for why in _EXACT)
    estimate = np.where(zero, 0.0, estimate)
    se = np.where(zero | alike, 0.0, se)
    ends = np.where((zero | alike)[:, None], estimate[:, None], ends)
    tested = ~(zero | alike) & meaning.holds_model(_source(of, name))
    with np.errstate(invalid="ignore", divide="ignore"):
        statistic = np.where(tested, estimate / se, np.nan)
    return {
        "estimate": estimate,
        "std_error": se,
        "statistic": statistic,
        "p_value": 2 * stats.t.sf(np.abs(statistic), degrees),
        "conf_low": ends[:, 0],
        "conf_high": ends[:, 1],
    }


# Reasons for which an estimate or its error is 0.
_EXACT = (meaning.ZERO, meaning.ALIKE)


def _source(of: xr.Dataset, name: str) -> str:
    """What a standard error is of."""
    return str(of[f"{name}_se"].attrs.get("source", "rows"))


def _wald_heads(table: pd.DataFrame, name: str, bounds: list[str]) -> dict[str, str]:
    """Columns of an estimate with its error, and how they are called in print."""
    heads = dict(zip(_WALD, (name, "std err", "t", "P>|t|", *bounds), strict=True))
    return {column: head for column, head in heads.items() if column in table}


def _cell(line: pd.Series, column: str) -> str:
    """A number as it is printed."""
    forms = {"statistic": _statistic, "p_value": pvalue_text, "p_value_adjusted": pvalue_text}
    return forms.get(column, number_text)(line[column])


def number_text(value: float) -> str:
    """Four significant digits; nothing for what is not known."""
    return "" if np.isnan(value) else f"{value:.4g}"


def _statistic(value: float) -> str:
    if np.isnan(value):
        return ""
    return f"{value:.3f}" if abs(value) < 1e4 else f"{value:.2e}"


def _output(effect: xr.Dataset) -> str:
    return with_units(effect.attrs["output_name"], effect.attrs["output_units"])


def _with_std_error(effect: xr.Dataset) -> xr.Dataset:
    effect = check_effect(effect)
    done = "average_effect_se" in effect and "effect_se" in effect
    return effect if done else std_error(effect)
