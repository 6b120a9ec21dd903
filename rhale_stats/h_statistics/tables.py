"""H-statistics as pandas frames: a line a feature and a pair, or one line in all; and printed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.h_statistics.estimates import OTHER, PAIRS, STEMS, pairs_of
from rhale_stats.h_statistics.inference import confint
from rhale_stats.inference.estimate import kept_interval
from rhale_stats.inference.notes import because, bins_note, how_made, reasons_of
from rhale_stats.printing.text import (
    ABOVE_ONE,
    bounds_text,
    number_cell,
    number_text,
    output_text,
    share_text,
    source_of,
    table_lines,
    uncertainty,
    with_facts,
)
from rhale_stats.schema.dimensions import with_part_facts
from rhale_stats.schema.features import feature_names, feature_position
from rhale_stats.schema.notes import PrintedTable, Summary

# Sum of fourth powers of influences over the square of their sum of squares, the relative variance
# of a squared standard error, above which intervals covered 50 to 85 % (math [62]).
HEAVY = 0.1
# So many pairs of H-statistics are printed.
MAX_PAIRS = 15


def summary(result: xr.Dataset, feature: str | int | None, level: float) -> Summary:
    """H-statistics: a line a feature, and a line a pair, the largest first."""
    result = with_intervals(with_part_facts(result), level)
    attrs = result.attrs
    if feature is not None:
        result = result.isel(feature=[feature_position(result, feature)])
    shares = bool(attrs["normalize"])
    table, n_pairs = _largest_first(tidy(result, level), shares=shares)
    kind = {"pdp": "partial dependence", "ale": "ALE"}[attrs["h_kind"]]
    rows = str(attrs["n_rows"])
    if attrs["n_rows"] < attrs["n_rows_total"]:
        rows = f"{rows} of {attrs['n_rows_total']}"
    all_h2 = share(result["h2"].item())
    cells = [
        ["Rows:", rows, "Computed from:", kind],
        ["Weights:", attrs["weight_kind"], "Sorted by:", "share" if shares else "size"],
        ["Model calls:", str(attrs["n_model_calls"]), "All, H²:", share_text(all_h2)],
        ["Model rows:", str(attrs["n_model_rows"]), "All, size:", f"{result['h'].item():.4g}"],
    ]
    heads, columns = ["H²", "size"], ["h2", "h"]
    notes = [*because(table["term"].tolist(), reasons_of(table))]
    if "h2_std_error" in table:
        bounds = bounds_text(level)
        heads = ["H²", "std err", *bounds, "size", "std err", *bounds]
        ends = ("std_error", "conf_low", "conf_high")
        columns = [name for stem in ("h2", "h") for name in (stem, *[f"{stem}_{e}" for e in ends])]
        cells.append(["Uncertainty:", uncertainty(source_of(result, "h2")), "", ""])
        notes.append(
            f"Intervals: pointwise, {how_made(result, 'h2', level)}. They say how large an "
            f"interaction is, not whether there is one.{_of_tails(result)}"
        )
    notes += _notes(result, n_pairs)
    title = f"H-statistics: interactions in {output_text(result)}"
    lines, stubs = _lines(table, columns), table["term"].tolist()
    sizes = table["h"].to_numpy
    return Summary(with_facts(cells, title, lines, heads, stubs, sizes=sizes), notes)


def _lines(table: pd.DataFrame, columns: list[str]) -> list[list[str]]:
    """Lines of a table as they are printed; of shares that are none it says so."""
    return [
        [ABOVE_ONE if name == "h2" and reason else number_text(line[name]) for name in columns]
        for reason, (_, line) in zip(reasons_of(table), table.iterrows(), strict=True)
    ]


def _largest_first(table: pd.DataFrame, *, shares: bool) -> tuple[pd.DataFrame, int]:
    """Features, then the pairs that are printed, in order of size; and the number of all pairs."""
    # Two that interact with each other only differ by rounding.
    size = table["h2"].fillna(np.inf) if shares else table["h"]
    largest = size[np.isfinite(size)].max()
    place = np.round(-size / (largest if largest > 0 else 1.0), 9)
    table = table.assign(place=place, pair=table["kind"] == PAIR)
    table = table.sort_values(["pair", "place"], kind="stable")
    printed = ~table["pair"] | (table.groupby("pair").cumcount() < MAX_PAIRS)
    return table[printed], int(table["pair"].sum())


def _of_tails(result: xr.Dataset) -> str:
    """Statistics whose standard errors few rows decide on, so that intervals are too short."""
    terms = []
    for name in ("h2_overall", "h2_pairwise"):
        if f"{name}_influence" not in result:
            continue
        influence = result[f"{name}_influence"].transpose(..., "obs")
        names = feature_names(result)
        with np.errstate(invalid="ignore", divide="ignore"):
            n = np.isfinite(influence.values).sum(axis=-1)
            apart = influence.values - (np.nansum(influence.values, axis=-1) / n)[..., None]
            share = np.nansum(apart**4, axis=-1) / np.nansum(apart**2, axis=-1) ** 2
        heavy = share > HEAVY  # not where it is unknown
        if name == "h2_overall":
            terms += [names[position] for position in np.flatnonzero(heavy)]
        else:
            terms += [f"{names[a]} and {names[b]}" for a, b in np.argwhere(np.triu(heavy))]
    if not terms:
        return ""
    more = f" and {len(terms) - 3} more" if len(terms) > 3 else ""
    return (
        f" Those of {', '.join(terms[:3])}{more} may be too short, because few rows decide on the "
        f"errors: see docs/validity.md."
    )


def _notes(result: xr.Dataset, n_pairs: int) -> list[str]:
    """What the columns mean, and what was left out."""
    attrs = result.attrs
    notes = [
        "H²: share of the variance of the output; of a pair, share of the variance of its joint "
        "effect. Shares of different pairs cannot be compared.",
        "size: root mean square of the interaction, in units of the output. Sizes can be compared.",
    ]
    if attrs.get("n_pairs_left_out"):
        others = ", and count as 0 in what is summed" if attrs["h_kind"] == "ale" else ""
        by = ", which interact least by h_screening" if "h_screening" in result else ""
        notes.insert(
            0, f"{attrs['n_pairs_left_out']} pairs were left out{by}{others}. See n_pairs."
        )
    if n_pairs > MAX_PAIRS:
        notes.append(f"The {MAX_PAIRS} largest of {n_pairs} pairs; tidy has all of them.")
    if attrs["n_rows_missing"]:
        notes.append(f"{attrs['n_rows_missing']} rows without a value were left out.")
    if attrs["row_seed"] >= 0:
        notes.append(f"Rows were drawn at random; seed {attrs['row_seed']}.")
    if "h2_pairwise" not in result:
        notes.append("Pairs were not computed; see pairwise.")
    if attrs["h_kind"] == "ale":
        notes.append(bins_note(attrs))
    return notes


def difference_summary(compared: xr.Dataset, _feature: object, level: float) -> Summary:
    """Two H-statistics side by side: a line a difference."""
    attrs, table = compared.attrs, _named_differences(compared, level)
    heads = [*DIFFERENCES.values(), "P, adj.", "conf low", "conf high"]
    names = [*DIFFERENCES, "p_value_adjusted", "conf_low", "conf_high"]
    lines, stubs = table_lines(table, names, number_cell), table["term"].tolist()
    title = f"H-statistics: difference on {output_text(compared)}"
    level = compared["h2_difference_ci"].attrs["ci_prob"]
    notes = [
        f"Uncertainty: {uncertainty(str(attrs['source']))}. Intervals: {level:.3g}, "
        f"pointwise, Student's t.",
        f"P, adj.: adjusted ({attrs['adjust']}) over features, or over pairs, of one statistic.",
    ]
    sizes = (-table["p_value"]).to_numpy
    return Summary([PrintedTable(lines, heads, stubs, title, sizes=sizes)], notes)


# Columns of a difference that are shown, with their heads.
DIFFERENCES = {"estimate": "a less b", "std_error": "std err", "p_value": "P"}


def _named_differences(compared: xr.Dataset, level: float) -> pd.DataFrame:
    """The table of differences, each with the name of its statistic before the term."""
    table = tidy_difference(compared, level)
    return table.assign(
        term=table["statistic"].map({"h2": "H²", "h": "size"}) + ", " + table["term"]
    )


# --- H-statistics as pandas frames ----------------------------------------------------------------


# What a line of `tidy` is of.
OVERALL, PAIR, ALL = "overall", "pair", "all"
# What follows the names of their variables.
SUFFIXES = {ALL: "", OVERALL: "_overall", PAIR: PAIRS}
# Above this, by more than rounding, a share is none.
WHOLE = 1 + 1e-9
WHY_ABOVE_ONE = {
    ALL: "the interactions vary more than the output: main effects offset part of them",
    OVERALL: "its interactions vary more than the output: main effects offset part of them",
    PAIR: "its joint effect varies less than its interaction: main effects offset part of it",
}


def with_intervals(result: xr.Dataset, level: float) -> xr.Dataset:
    """With intervals at this level, those that are there or by standard errors, if any."""
    if "h2_se" not in result and "h2_influence" not in result:
        return result
    if kept_interval(result, "h2", level) is not None:
        return result
    return confint(result, None, level, "normal")


def share(value: Any) -> Any:
    """A share of a variance; NaN where it is more than the whole, and so no share."""
    return np.where(value > WHOLE, np.nan, value)[()]


def _kinds(result: xr.Dataset) -> list[str]:
    """What the lines of a table are of: features and, where they were computed, pairs."""
    return [OVERALL, PAIR] if "h2_pairwise" in result else [OVERALL]


def _terms(
    result: xr.Dataset, kind: str
) -> tuple[list[str], Callable[[xr.DataArray], NDArray[Any]]]:
    """Names of the lines of one kind, and what gives their numbers from a variable of that kind."""
    if kind == PAIR:
        positions, names = pairs_of(result)
        where = tuple(positions)
        return names, lambda variable: variable.transpose("feature", OTHER, ...).values[where]
    names = feature_names(result) if kind == OVERALL else ["all"]
    return names, lambda variable: np.atleast_1d(variable.values)


def _frame(result: xr.Dataset, kind: str) -> pd.DataFrame:
    """A line a term: sizes with what is there of errors and intervals; not more than the whole."""
    terms, numbers_of = _terms(result, kind)
    columns = {stem: result[f"{stem}{SUFFIXES[kind]}"] for stem in STEMS}
    for stem, size in list(columns.items()):
        if f"{size.name}_se" in result:
            columns[f"{stem}_std_error"] = result[f"{size.name}_se"]
            if f"{size.name}_ci" in result:
                ends = result[f"{size.name}_ci"]
                columns[f"{stem}_conf_low"] = ends.isel(ci_bound=0)
                columns[f"{stem}_conf_high"] = ends.isel(ci_bound=1)
    numbers = {name: numbers_of(variable) for name, variable in columns.items()}
    frame = pd.DataFrame({"term": terms, "kind": kind, **numbers})
    above = frame["h2"] > WHOLE
    frame.loc[above, [name for name in numbers if name.startswith("h2")]] = np.nan
    return frame.assign(reason=np.where(above, WHY_ABOVE_ONE[kind], ""))


def tidy(result: xr.Dataset, level: float = 0.95) -> pd.DataFrame:
    """A line a feature, then a line a pair."""
    result = with_intervals(with_part_facts(result), level)
    out = pd.concat([_frame(result, kind) for kind in _kinds(result)], ignore_index=True)
    return out if out["reason"].any() else out.drop(columns="reason")


def glance(result: xr.Dataset, level: float = 0.95) -> pd.DataFrame:
    """One line: all interactions, and what they were computed from."""
    attrs = result.attrs
    frame = _frame(with_intervals(with_part_facts(result), level), ALL)
    reason = frame.pop("reason")
    frame = frame.drop(columns=["term", "kind"]).assign(
        kind=attrs["h_kind"],
        n_features=result.sizes["feature"],
        **{name: attrs[name] for name in ("n_rows", "n_rows_total", "n_model_calls")},
        n_model_rows=attrs["n_model_rows"],
    )
    return frame.assign(reason=reason) if reason.any() else frame


def tidy_difference(compared: xr.Dataset, _level: float) -> pd.DataFrame:
    """Two results beside each other: a line a statistic, of all, of features and of pairs."""
    frames = []
    for kind, suffix in SUFFIXES.items():
        for stem in STEMS:
            name = f"{stem}{suffix}"
            if f"{name}_difference" not in compared:
                continue
            terms, numbers_of = _terms(compared, kind)
            ends = compared[f"{name}_difference_ci"]
            columns = {
                "estimate": compared[f"{name}_difference"],
                "std_error": compared[f"{name}_difference_se"],
                "p_value": compared[f"{name}_p_value"],
                "p_value_adjusted": compared[f"{name}_p_value_adjusted"],
                "conf_low": ends.isel(ci_bound=0),
                "conf_high": ends.isel(ci_bound=1),
            }
            numbers = {column: numbers_of(variable) for column, variable in columns.items()}
            frames.append(pd.DataFrame({"term": terms, "kind": kind, "statistic": stem, **numbers}))
    return pd.concat(frames, ignore_index=True)
