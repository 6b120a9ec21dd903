"""Results of several models as data frames, values of their curves, and printed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from rhale_stats.arrays.moments import FloatArray
from rhale_stats.ensembles.intervals import confint, with_errors
from rhale_stats.ensembles.labelled import (
    DRAWS,
    FOLDS,
    IMPUTATIONS,
    MODELS,
    REFITS,
    SUBSAMPLES,
    TOTALS,
    Origin,
    Row,
    centre_of,
    check_ensemble,
    degrees_of,
    errors,
    estimated,
    facts_of,
    names_of,
    one_row,
    origin_of,
    size_of,
)
from rhale_stats.inference.estimate import BOUNDS, kept_interval, student
from rhale_stats.inference.meaning import is_unordered
from rhale_stats.inference.notes import interval_notes
from rhale_stats.printing.text import (
    IMPORTANCE,
    Page,
    bounds_text,
    feature_lines,
    number_cell,
    number_text,
    output_text,
    rows_text,
    table_lines,
    table_of,
    with_facts,
)
from rhale_stats.profiles.tables import values_on_grid
from rhale_stats.schema.features import (
    feature_names,
    feature_position,
    given_feature,
    units_of,
    with_units,
)
from rhale_stats.schema.notes import Summary

TITLES = {
    REFITS: "Refits (bootstrap)",
    SUBSAMPLES: "Refits (subsamples)",
    FOLDS: "Cross-fitting",
    DRAWS: "Draws of the parameters",
    MODELS: "Several models",
    IMPUTATIONS: "Imputations pooled",
}
METHODS = {"rhale": "RHALE", "ale": "ALE", "pdp": "partial dependence", "dale": "DALE"}
# Largest number of points of the grid that are printed.
MAX_POINTS = 21
# What an interval of each kind of members contains.
NOTES = {
    REFITS: (
        "Standard errors and intervals include the fit of the model and the sampling of rows, not "
        "the bias of a learner: outcome_effects removes it."
    ),
    SUBSAMPLES: (
        "Standard errors and intervals include the fit of the model and the sampling of rows; they "
        "are scaled from the subsamples to all rows. The bias of a learner is not in them: "
        "outcome_effects removes it."
    ),
    FOLDS: (
        "Standard errors include the fit of the model and the sampling of rows, and allow for the "
        "rows that the models of several folds share. They are of models fitted to all folds but "
        "one. They do not hold the bias of a learner: with random forests a correlated feature "
        "without an effect seemed to have one in 22 to 35 % of samples; outcome_effects removes "
        "the bias."
    ),
    DRAWS: (
        "Intervals are credible intervals of the draws, with these rows as given. std err includes "
        "the rows, too; confint(effect, method='normal') makes intervals from it."
    ),
    MODELS: (
        "Intervals show the spread of these models. They are no confidence intervals: the models "
        "are no sample of models, and what all of them have wrong is not in the spread."
    ),
    IMPUTATIONS: (
        "Standard errors hold the variance within and between the imputations (Rubin's rules); the "
        "part of the model is that between them."
    ),
}


def summary(ensemble: xr.Dataset, feature: str | int | None, level: float) -> Summary:
    """`summary`: one line per feature, or per point of the grid of one feature."""
    ensemble = with_intervals(check_ensemble(ensemble), level)
    origin = origin_of(ensemble)
    stubs, heads, lines, title, meanings = (
        _of_features(ensemble, level) if feature is None else _of_points(ensemble, feature, level)
    )
    cells = _facts(ensemble, origin)
    failed, n, reason = int(ensemble["failed"].sum()), ensemble["failed"].size, "first_failure"
    failures = [f"{failed} of {n} failed: {ensemble.attrs[reason]}"] if failed else []
    notes = [NOTES[origin.kind], *failures, *meanings, *interval_notes(ensemble)]
    return Summary(with_facts(cells, title, lines, heads, stubs), notes)


def title_of(ensemble: xr.Dataset) -> str:
    """Where the members come from, and what is estimated."""
    method = str(ensemble.attrs.get("effect_method", "effects"))
    return f"{TITLES[origin_of(ensemble).kind]}: {METHODS.get(method, method)}"


def count_of(ensemble: xr.Dataset) -> str:
    """Number of members, and of those that failed."""
    n, failed = int(ensemble["failed"].size), int(ensemble["failed"].sum())
    return f"{n}" + (f" ({failed} failed)" if failed else "")


def uncertainty_of(ensemble: xr.Dataset) -> str:
    """What the standard errors include, in words."""
    origin = origin_of(ensemble)
    if origin.contained:
        return origin.source
    return f"{origin.source} and rows" if "curve_se_rows" in ensemble else origin.source


def _facts(ensemble: xr.Dataset, origin: Origin) -> list[list[str]]:
    attrs = ensemble.attrs
    refits = origin.kind in (REFITS, SUBSAMPLES)
    words = "Replicates:" if refits else f"{origin.kind.capitalize()}:"
    return [
        ["Rows:", f"{attrs.get('n_rows', '')}", words, count_of(ensemble)],
        [
            "Weights:",
            str(attrs.get("weight_kind", "none")),
            "Curve centred at:",
            str(attrs.get("centering", "")),
        ],
        ["Uncertainty:", uncertainty_of(ensemble), "", ""],
    ]


# Columns of the tables that are printed, and their heads where these are other words.
ERRORS, TESTS = ("std_error", "std_error_model", "std_error_rows"), ("statistic", "p_value")
INTERVAL = ("conf_low", "conf_high")
HEADS = {
    "estimate": "avg effect",
    **dict(zip(ERRORS, ("std err", "of model", "of rows"), strict=True)),
    **dict(zip(TESTS, ("t", "P"), strict=True)),
    "heterogeneity_output": "H",
    "heterogeneity": "heterog.",
    "curve_min": "lowest",
    "curve_max": "highest",
}


def _columns(table: pd.DataFrame, names: Sequence[str], level: float) -> dict[str, str]:
    """Those of the columns that a table has, with their heads."""
    heads = HEADS | dict(zip(INTERVAL, bounds_text(level), strict=True))
    return {name: heads.get(name, name) for name in names if name in table}


def _of_features(
    ensemble: xr.Dataset, level: float
) -> tuple[list[str], list[str], list[list[str]], str, list[str]]:
    """A line a feature."""
    table = glance(ensemble, level)
    sizes = ("importance", "heterogeneity_output")
    ends = () if "estimate" in table else ("curve_min", "curve_max")
    columns = _columns(table, ("estimate", *ERRORS, *TESTS, *INTERVAL, *sizes, *ends), level)
    lines = table_lines(table, columns, number_cell)
    for number in np.flatnonzero(table["kind"] == "constant"):
        lines[number] = ["constant", *[""] * (len(columns) - 1)]
    title = f"{title_of(ensemble)}: effects on {output_text(ensemble)}"
    meanings = (
        [
            "importance: standard deviation of the curve over the rows. H: how much rows differ, "
            "mean over the models. Both are in units of the output."
        ]
        if "importance" in table
        else []
    )
    if "estimate" in table:
        none = table.loc[table["estimate"].isna() & (table["kind"] != "constant"), "term"]
        meanings += [f"No average effect, as its levels have no order: {term}." for term in none]
    return table["term"].tolist(), list(columns.values()), lines, title, meanings


def _of_points(
    ensemble: xr.Dataset, feature: str | int, level: float
) -> tuple[list[str], list[str], list[list[str]], str, list[str]]:
    """A line a point of the grid; of many points some at equal distances."""
    name = feature_names(ensemble)[feature_position(ensemble, feature)]
    table = tidy(ensemble.sel(feature=[name]), level)
    some = np.unique(np.linspace(0, len(table) - 1, min(len(table), MAX_POINTS)).round())
    shown = table.iloc[some.astype(int)] if len(table) else table
    names = ("estimate", *ERRORS, *INTERVAL, "effect", "heterogeneity")
    columns = _columns(table, names, level) | {"estimate": "curve"}
    lines = table_lines(shown, columns, number_cell)
    lines = lines or [["constant"] + [""] * (len(columns) - 1)]
    places = shown["level"].astype(str) if "level" in shown else shown["x"].map(number_text)
    stubs = places.tolist() or [name]
    title = f"{title_of(ensemble)}: effect of {with_units(name, units_of(ensemble, name))} on"
    meanings = []
    if len(shown) < len(table):
        meanings = [f"{len(shown)} of {len(table)} points of the grid; tidy(effect) gives all."]
    return stubs, list(columns.values()), lines, f"{title} {output_text(ensemble)}", meanings


LEVEL = 0.95


def ensemble_page(ensemble: xr.Dataset, most: int) -> Page:
    """The page of the features of largest importance, with the parts of their errors."""
    ensemble = with_intervals(check_ensemble(ensemble), LEVEL)
    table = glance(ensemble, LEVEL)
    sizes, ends = ("importance", "heterogeneity_output"), ("curve_min", "curve_max")
    heads = _columns(table, (*sizes, "estimate", *ERRORS, *ends), LEVEL)
    lines = feature_lines(table, heads, size_of(ensemble), most)
    note = "lowest, highest: of the curve."
    if "importance" in table:
        note = f"{IMPORTANCE}. H: how much rows differ, mean over the models. {note}"
    first = repr(lines[0][0])
    return Page(
        f"{title_of(ensemble)}: effects on {output_text(ensemble)}",
        (
            f"{rows_text(ensemble)}; {count_of(ensemble)} members",
            f"Uncertainty: {uncertainty_of(ensemble)}",
        ),
        (table_of(["", *heads.values()], lines, len(table), "features", note),),
        f"summary(effect, {first}), plot(effect, {first}), tidy(effect)",
    )


# --- results of several models as data frames -----------------------------------------------------


# What a line of `glance` says of a feature whatever its kind.
FACTS = ("term", "kind", "n_members", "n_failed")


def with_intervals(ensemble: xr.Dataset, level: float) -> xr.Dataset:
    """The ensemble with standard errors, and with intervals of this level."""
    ensemble = with_errors(check_ensemble(ensemble))
    if kept_interval(ensemble, "curve", level) is None:
        ensemble = confint(ensemble, None, level, None)
    return ensemble


def one_number(ensemble: xr.Dataset, what: str, level: float) -> xr.Dataset:
    """One number a feature with its interval, as `plots.forest` draws it."""
    ensemble = with_intervals(ensemble, level)
    totals = [name for name in estimated(ensemble) if name in TOTALS]
    if what not in totals:
        raise ValueError(
            f"what must name one number per feature of these models; got {what!r}. There are "
            f"{', '.join(totals)}."
        )
    about = ensemble[what].attrs
    return names_of(ensemble).assign(
        {
            what: ("feature", centre_of(ensemble, what), about),
            f"{what}_ci": ensemble[f"{what}_ci"].variable,
        }
    )


def tidy(ensemble: xr.Dataset, level: float) -> pd.DataFrame:
    """A line a point of the grid, with the curve as the estimate."""
    ensemble = with_intervals(ensemble, level)
    levels = "level" in ensemble.coords and bool((ensemble["level"] != "").any())
    rows = [one_row(ensemble, name) for name in feature_names(ensemble)]
    return pd.concat([_lines(row, levels=levels) for row in rows], ignore_index=True)


def _lines(row: Row, *, levels: bool) -> pd.DataFrame:
    """The points of one feature; ``levels``: with their levels, empty where it has an axis."""
    lines: dict[str, object] = {"term": [row.name] * len(row.z), "x": row.z}
    if levels:
        lines["level"] = row.levels or [""] * len(row.z)
    lines |= {"estimate": centre_of(row.dataset, "curve")[0]} | _errors(row.dataset, "curve")
    for name in ("effect", "heterogeneity"):
        if name in estimated(row.dataset):
            lines[name] = centre_of(row.dataset, name)[0]
            lines[f"{name}_se"] = row.dataset[f"{name}_se"].values[0]
    return pd.DataFrame(lines)


def _errors(result: xr.Dataset, name: str) -> dict[str, FloatArray]:
    """Standard error of an estimate, its parts, and its interval, of the first feature."""
    columns = {"std_error": result[f"{name}_se"].values}
    for part in ("model", "rows"):
        if f"{name}_se_{part}" in result:
            columns[f"std_error_{part}"] = result[f"{name}_se_{part}"].values
    ends = result[f"{name}_ci"].transpose(..., "ci_bound").values
    columns |= {"conf_low": ends[..., 0], "conf_high": ends[..., 1]}
    return {key: np.asarray(values)[0] for key, values in columns.items()}


def glance(ensemble: xr.Dataset, level: float) -> pd.DataFrame:
    """A line a feature: the average effect, sizes, and the range of the curve."""
    ensemble = with_intervals(ensemble, level)
    names, n_members = feature_names(ensemble), int(ensemble["failed"].size)
    lines: list[dict[str, object]] = []
    for number, name in enumerate(names):
        row = ensemble.isel(feature=[number])
        line: dict[str, object] = {
            "term": name,
            "kind": str(row["feature_kind"].values[0]),
            "n_members": n_members,
            "n_failed": int(row["failed"].sum()),
        }
        if "average_effect" in estimated(row):
            line |= {"estimate": float(centre_of(row, "average_effect")[0])}
            line |= {key: float(value) for key, value in _errors(row, "average_effect").items()}
            line |= _tested(row)
            if is_unordered(row)[0]:
                # An average over steps between levels without an order of their own.
                line |= {key: np.nan for key in line if key not in FACTS}
        for size in ("importance", "heterogeneity_output", "heterogeneity_index"):
            if size in estimated(row):
                line[size] = float(centre_of(row, size)[0])
        curve = centre_of(row, "curve")[0]
        finite = curve[np.isfinite(curve)]
        line["curve_min"] = float(finite.min()) if len(finite) else np.nan
        line["curve_max"] = float(finite.max()) if len(finite) else np.nan
        lines.append(line)
    return pd.DataFrame(lines)


def _tested(row: xr.Dataset) -> dict[str, float]:
    """Statistic and p-value of the average effect, where the members are refits."""
    if not origin_of(row).is_tested:
        return {}
    tested = student(*(part(row, "average_effect") for part in (centre_of, errors, degrees_of)))
    return {column: float(values[0]) for column, values in tested.items()}


def effect_sizes(ensemble: xr.Dataset, boot: object, y: object, level: float) -> xr.Dataset:
    """`effect_sizes`: the estimates that are one number a feature, with their intervals."""
    ensemble = check_ensemble(ensemble)
    for name, argument in (("boot", boot), ("y", y)):
        if argument is not None:
            raise ValueError(
                f"{name} must be left out for results of several models, whose members have sizes "
                f"of their own."
            )
    ensemble = with_intervals(ensemble, level)
    names = [name for name in estimated(ensemble) if name in TOTALS and name != "average_effect"]
    variables: dict[str, Any] = {}
    for name in names:
        facts = facts_of(ensemble, name)
        about = {"long_name": facts.long_name, "units": facts.units}
        variables[name] = ("feature", centre_of(ensemble, name), about)
        variables[f"{name}_ci"] = ensemble[f"{name}_ci"].variable
    attributes = ("output_name", "output_units", "bin_rule", "bin_parameters", "n_rows", "software")
    return xr.Dataset(
        variables,
        {
            "feature": ensemble["feature"].variable,
            "feature_kind": ensemble["feature_kind"].variable,
        },
        {
            "method": "effect sizes",
            **{name: ensemble.attrs[name] for name in attributes if name in ensemble.attrs},
        },
    ).assign_coords(BOUNDS)


def predict(
    ensemble: xr.Dataset, x: Any, feature: str | int | None, what: str = "curve"
) -> xr.DataArray:
    """An estimate at values of its feature, straight between grid points; or at levels."""
    feature = given_feature(feature, "predict(effect, x, 'dose')")
    ensemble = check_ensemble(ensemble)
    if what not in estimated(ensemble):
        raise ValueError(f"what must be 'curve' for profiles of several models; got {what!r}.")
    row = one_row(ensemble, feature)
    facts, centre = facts_of(ensemble, what), centre_of(row.dataset, what)[0]
    out = values_on_grid(x, row.z, centre, row.levels, row.name).rename(what)
    return out.assign_attrs(long_name=facts.long_name, units=facts.units, feature=row.name)
