"""Results of several models as printed tables and pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import xarray as xr

from rhale_stats.ensembles import tables
from rhale_stats.ensembles.members import (
    DRAWS,
    FOLDS,
    MODELS,
    REFITS,
    SUBSAMPLES,
    Origin,
    check_ensemble,
    origin_of,
)
from rhale_stats.inference.notes import interval_notes
from rhale_stats.printing.text import (
    bounds_text,
    number_text,
    output_text,
    pvalue_text,
    with_facts,
)
from rhale_stats.schema.features import feature_names, feature_position, units_of, with_units
from rhale_stats.schema.notes import with_notes

if TYPE_CHECKING:
    from statsmodels.iolib.summary import Summary

from rhale_stats.ensembles.members import size_of
from rhale_stats.printing.pages import (
    IMPORTANCE,
    Page,
    feature_lines,
    output,
    rows_text,
    table_of,
)

TITLES = {
    REFITS: "Refits (bootstrap)",
    SUBSAMPLES: "Refits (subsamples)",
    FOLDS: "Cross-fitting",
    DRAWS: "Draws of the parameters",
    MODELS: "Several models",
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
}


def summary(ensemble: xr.Dataset, feature: str | int | None, level: float) -> Summary:
    """`summary`: one line per feature, or per point of the grid of one feature."""
    ensemble = tables.with_intervals(check_ensemble(ensemble), level)
    origin = origin_of(ensemble)
    stubs, heads, lines, title, meanings = (
        _of_features(ensemble, level) if feature is None else _of_points(ensemble, feature, level)
    )
    cells = _facts(ensemble, origin)
    notes = [NOTES[origin.kind], *_failures(ensemble), *meanings, *interval_notes(ensemble)]
    return with_notes(with_facts(cells, title, lines, heads, stubs), notes)


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
    words = {DRAWS: "Draws:", FOLDS: "Folds:", MODELS: "Models:"}.get(origin.kind, "Replicates:")
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


def _failures(ensemble: xr.Dataset) -> list[str]:
    failed = int(ensemble["failed"].sum())
    if not failed:
        return []
    return [f"{failed} of {ensemble['failed'].size} failed: {ensemble.attrs['first_failure']}"]


def _of_features(
    ensemble: xr.Dataset, level: float
) -> tuple[list[str], list[str], list[list[str]], str, list[str]]:
    """A line a feature."""
    table = tables.glance(ensemble, level)
    columns = {
        "estimate": "avg effect",
        "std_error": "std err",
        "std_error_model": "of model",
        "std_error_rows": "of rows",
        "statistic": "t",
        "p_value": "P",
        "conf_low": bounds_text(level)[0],
        "conf_high": bounds_text(level)[1],
        "importance": "importance",
        "heterogeneity_output": "H",
    }
    if "estimate" not in table:
        columns |= {"curve_min": "lowest", "curve_max": "highest"}
    columns = {name: head for name, head in columns.items() if name in table}
    lines = [
        [(pvalue_text if name == "p_value" else number_text)(float(line[name])) for name in columns]
        if line["kind"] != "constant"
        else ["constant", *[""] * (len(columns) - 1)]
        for _, line in table.iterrows()
    ]
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
    table = tables.tidy(ensemble.sel(feature=[name]), level)
    some = np.unique(np.linspace(0, len(table) - 1, min(len(table), MAX_POINTS)).round())
    shown = table.iloc[some.astype(int)] if len(table) else table
    columns = {
        "estimate": "curve",
        "std_error": "std err",
        "std_error_model": "of model",
        "std_error_rows": "of rows",
        "conf_low": bounds_text(level)[0],
        "conf_high": bounds_text(level)[1],
        "effect": "effect",
        "heterogeneity": "heterog.",
    }
    columns = {column: head for column, head in columns.items() if column in table}
    lines = [
        [number_text(float(line[column])) for column in columns] for _, line in shown.iterrows()
    ] or [["constant"] + [""] * (len(columns) - 1)]
    stubs = _points_text(shown) or [name]
    title = f"{title_of(ensemble)}: effect of {with_units(name, units_of(ensemble, name))} on"
    meanings = []
    if len(shown) < len(table):
        meanings = [f"{len(shown)} of {len(table)} points of the grid; tidy(effect) gives all."]
    return stubs, list(columns.values()), lines, f"{title} {output_text(ensemble)}", meanings


def _points_text(shown: pd.DataFrame) -> list[str]:
    """Names of the lines: levels, or values of the feature."""
    if "level" in shown:
        return [str(level) for level in shown["level"]]
    return [number_text(float(x)) for x in shown["x"]]


LEVEL = 0.95


def ensemble_page(ensemble: xr.Dataset, most: int) -> Page:
    """The page of the features of largest importance, with the parts of their errors."""
    ensemble = tables.with_intervals(check_ensemble(ensemble), LEVEL)
    table = tables.glance(ensemble, LEVEL)
    heads = {
        "importance": "importance",
        "heterogeneity_output": "H",
        "estimate": "avg effect",
        "std_error": "std err",
        "std_error_model": "of model",
        "std_error_rows": "of rows",
        "curve_min": "lowest",
        "curve_max": "highest",
    }
    heads = {name: head for name, head in heads.items() if name in table}
    lines = feature_lines(table, heads, size_of(ensemble), most)
    note = "lowest, highest: of the curve."
    if "importance" in table:
        note = f"{IMPORTANCE}. H: how much rows differ, mean over the models. {note}"
    first = repr(lines[0][0])
    return Page(
        f"{title_of(ensemble)}: effects on {output(ensemble)}",
        (
            f"{rows_text(ensemble)}; {count_of(ensemble)} members",
            f"Uncertainty: {uncertainty_of(ensemble)}",
        ),
        (table_of(["", *heads.values()], lines, len(table), "features", note),),
        f"summary(effect, {first}), plot(effect, {first}), tidy(effect)",
    )
