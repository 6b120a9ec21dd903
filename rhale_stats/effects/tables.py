"""Effects as data frames: one line per bin, per feature, or per row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from rhale_stats.arguments.times import shown_values
from rhale_stats.arrays.accumulate import turning_points
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.effects.errors import std_error
from rhale_stats.effects.fit import bin_degrees, row_degrees
from rhale_stats.effects.provenance import check_same_model
from rhale_stats.effects.spread import spread_estimate
from rhale_stats.effects.values import inner
from rhale_stats.inference import meaning as inference_meaning
from rhale_stats.inference.estimate import by_errors, ends_in_table, kept_interval
from rhale_stats.inference.meaning import is_alike, is_unordered, of_average, of_bins, of_effects
from rhale_stats.inference.notes import bins_note
from rhale_stats.printing.text import (
    bounds_text,
    holds_model,
    interval_labels,
    number_cell,
    number_text,
    plain_table,
    table_lines,
)
from rhale_stats.schema.checks import check_effect, check_local
from rhale_stats.schema.feature_result import FeatureResult, Result, each_feature, one_feature
from rhale_stats.schema.features import feature_names, feature_position, rows_used, units_in
from rhale_stats.schema.levels import categorical_features, is_categorical, level_names
from rhale_stats.schema.notes import with_notes
from rhale_stats.schema.parts import over_outputs
from rhale_stats.schema.validation import validated

if TYPE_CHECKING:
    from statsmodels.iolib.summary import Summary
    from statsmodels.iolib.table import SimpleTable


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
    edges, spread_edges, spread = (
        row[name].values for name in ("edge_value", "spread_edge_value", "spread")
    )
    left, right = edges[:-1, None], edges[1:, None]
    if len(spread_edges) < 2:
        return np.full((2, len(left)), np.nan)
    shared = np.minimum(right, spread_edges[1:]) - np.maximum(left, spread_edges[:-1])
    counts = shared > OVERLAP * np.minimum(right - left, np.diff(spread_edges))
    low, high = [np.where(counts, spread, end) for end in (np.inf, -np.inf)]
    return np.stack([low.min(axis=1), high.max(axis=1)])


def spread_notes(effect: xr.Dataset, feature: str | int | None) -> list[str]:
    """Note on features whose spread changes within bins of the effect."""
    if "spread" not in effect:
        return []
    texts = []
    for row in each_feature(effect) if feature is None else [one_feature(effect, feature)]:
        low, high = within_bins(row)
        if row.sizes["spread_bin"] > 1 and (high > NOTABLE * low).any():
            spread = row["spread"].values
            ends = f"{number_text(np.nanmin(spread))} to {number_text(np.nanmax(spread))}"
            texts.append(f"{row.name} ({ends} in {len(spread)} bins of the spread)")
    if not texts:
        return []
    note = f"The spread of the local effects changes within bins of {', '.join(texts)}"
    if feature is not None:
        return [f"{note}. heterog. is its average over a bin."]
    return [f"{note}. See summary(effect, {texts[0].partition(' (')[0]!r})."]


def spread_table(row: FeatureResult, level: float) -> SimpleTable | None:
    """The spread of one feature in bins of its own, where it has several, and not very many."""
    if "spread_se" not in row or not 1 < row.sizes["spread_bin"] <= MAX_LINES:
        return None
    (estimate,) = spread_estimate(row.dataset.expand_dims("feature")).values()
    ends = kept_interval(row, "spread", level)
    ends = by_errors(estimate, level)[0][0] if ends is None else ends
    heads = ["rows", "spread", "std err", *bounds_text(level)]
    columns = (row["spread"].values, row["spread_se"].values, ends[:, 0], ends[:, 1])
    lines = [
        [f"{n}", *[number_text(float(value)) for value in values]]
        for n, *values in zip(row["spread_n_obs"].values, *columns, strict=True)
    ]
    labels = interval_labels(row["spread_edge_value"].values, units_in(row))
    return plain_table(lines, heads, labels, "Spread, in bins of its own")


# --- effects as data frames -----------------------------------------------------------------------


# Source of a standard error that has no formula, before there are replicates.
NOT_ESTIMATED = "not estimated; see confint(effect, boot)"
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
    effect = complete(effect)
    frames, levels = [], bool(categorical_features(effect))
    for name in feature_names(effect):
        row = one_feature(effect, name)
        frame = pd.DataFrame(
            {
                "term": name,
                "bin": row["bin"].values,
                "bin_left": shown_values(row["bin_left"].values, units_in(row)),
                "bin_right": shown_values(row["bin_right"].values, units_in(row)),
                "n_obs": row["n_obs"].values,
            }
        )
        if levels:
            texts = level_names(row) if row.is_categorical else [""] * row.sizes["edge"]
            frame.insert(4, "level_from", texts[:-1])
            frame.insert(5, "level_to", texts[1:])
        reasons = of_bins(row)
        intervals = _wald_columns(row, "effect", level, bin_degrees(row), reasons)
        lines = {name: row[name].values for name in ("slope", "slope_se") if name in row}
        alike = is_alike(row)
        spread = {
            name: np.where(alike, 0.0, row[name].values)
            for name in ("heterogeneity", "heterogeneity_se")
        }
        if "spread" in row:
            spread |= dict(zip(("spread_min", "spread_max"), within_bins(row), strict=True))
        checks = {check: row[check].values for check in CHECKED if check in row}
        frames.append(frame.assign(**intervals, **spread, **lines, **checks, reason=reasons))
    return _spoken(pd.concat(frames, ignore_index=True))


def _spoken(table: pd.DataFrame) -> pd.DataFrame:
    """Drop columns that are empty in all lines."""
    named = table.filter(["statistic", "p_value", "reason"])
    return table.drop(columns=named.columns[(named.isna() | (named == "")).all()])


def glance(effect: xr.Dataset, level: float) -> pd.DataFrame:
    """`glance` of effects in bins: a line a feature."""
    effect = complete(effect)
    rows = each_feature(effect)
    reasons = [of_average(row) for row in rows]
    degrees = np.array([row_degrees(row) for row in rows])
    columns = _wald_columns(effect, "average_effect", level, degrees, reasons)
    within = inner(effect)
    spread, share = [effect.variables[name].values for name in ("heterogeneity", "weight_share")]
    share = np.where(np.isnan(spread), np.nan, share)
    alike = np.array([is_alike(row)[~np.isnan(row["effect"].values)].all() for row in rows])
    with np.errstate(invalid="ignore"):
        squares = np.nansum(share * spread**2, axis=-1) / np.nansum(share, axis=-1)
    extent = np.array([curve_extent(row) for row in each_feature(within)])
    columns |= {
        name: np.where(alike & np.isfinite(values), 0.0, values)
        for name, values in (
            ("heterogeneity", np.sqrt(squares)),
            ("heterogeneity_output", effect["heterogeneity_output"].values),
            ("heterogeneity_index", within["heterogeneity_index"].values),
        )
    }
    unordered = is_unordered(effect)
    for name in (*WALD, "heterogeneity_output", "heterogeneity_index"):
        columns[name] = np.where(unordered, np.nan, columns[name])
    frame = pd.DataFrame(
        {
            "term": feature_names(effect),
            "kind": effect["feature_kind"].values.astype(str),
            "n_bins": effect["n_bins"].values,
            **({"n_spread_bins": effect["n_spread_bins"].values} if "spread" in effect else {}),
            "n_obs": [rows_used(row) for row in rows],
            **columns,
            "curve_min": extent[:, 0],
            "curve_max": extent[:, 1],
            "reason": reasons,
        }
    )
    return _spoken(frame)


def curve_extent(row: FeatureResult) -> tuple[float, float]:
    """Smallest and largest value of the curve of one feature along the axis."""
    curve = row.curve
    if np.isnan(curve.values).all():
        return np.nan, np.nan
    if of_effects(row) == inference_meaning.ZERO:
        return 0.0, 0.0
    turns = np.zeros(0)
    if not row.has_cells:
        turns = turning_points(curve.edges, row["effect"].values, curve.slope)
    values = np.concatenate([curve.values, curve.evaluate(turns)])
    return float(np.nanmin(values)), float(np.nanmax(values))


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
        Indexed by ``obs``. For every feature ``f`` of ``effect``: ``f`` (its value),
        ``f.local_effect``, ``f.bin``, ``f.effect`` (of the bin; in a linear bin, at the value),
        ``f.residual`` (local effect minus effect) and ``f.curve`` at the value;
        ``weight`` if there are weights. For a categorical feature ``f`` is the level and
        ``f.local_effect`` the mean difference to the neighbouring levels. A row can belong to two
        steps, so bin, effect and residual are missing.

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
        edges = row["edge_value"].values
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
            name: x,
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
    effect: Result, name: str, level: float, degrees: np.ndarray, reasons: list[str]
) -> dict[str, Any]:
    """Columns of an estimate with its standard error; t and P only if it includes the model."""
    from scipy import stats

    estimate, se = effect[name].values, effect[f"{name}_se"].values
    ends = ends_in_table(effect, name, se, degrees, level)
    zero, alike = [np.array([reason == why for reason in reasons], dtype=bool) for why in _EXACT]
    estimate = np.where(zero, 0.0, estimate)
    se = np.where(zero | alike, 0.0, se)
    ends = np.where((zero | alike)[:, None], estimate[:, None], ends)
    tested = ~(zero | alike) & holds_model(source_text(effect, name))
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
_EXACT = (inference_meaning.ZERO, inference_meaning.ALIKE)


def source_text(effect: Result, name: str) -> str:
    """The source of the standard errors, in words."""
    return str(effect[f"{name}_se"].attrs.get("source", "rows"))


def complete(effect: xr.Dataset) -> xr.Dataset:
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
    return with_notes([plain_table(lines, heads, stubs, title)], notes)
