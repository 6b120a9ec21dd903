"""Results of several models as data frames, values of their curves, and printed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from rhale_stats.arguments.times import shown_values
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
    Row,
    centre_of,
    check_ensemble,
    degrees_of,
    dims_of,
    errors,
    estimated,
    facts_of,
    names_of,
    one_row,
    origin_of,
    size_of,
    values_of,
)
from rhale_stats.inference.estimate import BOUNDS, kept_interval, student
from rhale_stats.inference.meaning import is_unordered
from rhale_stats.inference.notes import interval_notes
from rhale_stats.printing.text import (
    Body,
    bounds_text,
    number_cell,
    output_text,
    place_texts,
    table_lines,
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
    ensemble = with_intervals(ensemble, level)
    lines, heads, stubs, effect, meanings = (
        _of_features(ensemble, level) if feature is None else _of_points(ensemble, feature, level)
    )
    attrs, kind = ensemble.attrs, origin_of(ensemble).kind
    failed, n = int(ensemble["failed"].sum()), ensemble["failed"].size
    failures = [f"{failed} of {n} failed: {attrs['first_failure']}"] if failed else []
    members = "Replicates:" if kind in (REFITS, SUBSAMPLES) else f"{kind.capitalize()}:"
    weights, centering = str(attrs.get("weight_kind", "none")), str(attrs.get("centering", ""))
    cells = [
        ["Rows:", f"{attrs.get('n_rows', '')}", members, count_of(ensemble)],
        ["Weights:", weights, "Curve centred at:", centering],
        ["Uncertainty:", facts_of(ensemble, "curve", of_rows=True).source, "", ""],
    ]
    title = f"{title_of(ensemble)}: {effect} {output_text(ensemble)}"
    notes = [NOTES[kind], *failures, *meanings, *interval_notes(ensemble)]
    sizes = partial(size_of, ensemble) if feature is None else None
    return Summary(with_facts(cells, title, lines, heads, stubs, sizes=sizes), notes)


def title_of(ensemble: xr.Dataset) -> str:
    """Where the members come from, and what is estimated."""
    method = str(ensemble.attrs.get("effect_method", "effects"))
    return f"{TITLES[origin_of(ensemble).kind]}: {METHODS.get(method, method)}"


def count_of(ensemble: xr.Dataset) -> str:
    """Number of members, and of those that failed."""
    n, failed = int(ensemble["failed"].size), int(ensemble["failed"].sum())
    return f"{n}" + (f" ({failed} failed)" if failed else "")


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


def _of_features(ensemble: xr.Dataset, level: float) -> tuple[*Body, str, list[str]]:
    """A line a feature, what they are effects on, and what the columns mean."""
    table = glance(ensemble, level)
    sizes = ("importance", "heterogeneity_output")
    ends = () if "estimate" in table else ("curve_min", "curve_max")
    columns = _columns(table, ("estimate", *ERRORS, *TESTS, *INTERVAL, *sizes, *ends), level)
    lines = table_lines(table, columns, number_cell)
    constant = table["kind"] == "constant"
    for number in np.flatnonzero(constant):
        lines[number] = ["constant", *[""] * (len(columns) - 1)]
    meanings = []
    if "importance" in table:
        meanings = [
            "importance: standard deviation of the curve over the rows. H: how much rows differ, "
            "mean over the models. Both are in units of the output."
        ]
    if "estimate" in table:
        none = table.loc[table["estimate"].isna() & ~constant, "term"]
        meanings += [f"No average effect, as its levels have no order: {term}." for term in none]
    return lines, list(columns.values()), table["term"].tolist(), "effects on", meanings


def _of_points(
    ensemble: xr.Dataset, feature: str | int, level: float
) -> tuple[*Body, str, list[str]]:
    """A line a point of the grid; of many points some at equal distances."""
    name = feature_names(ensemble)[feature_position(ensemble, feature)]
    table = tidy(ensemble.sel(feature=[name]), level)
    some = np.unique(np.linspace(0, len(table) - 1, min(len(table), MAX_POINTS)).round())
    shown = table.iloc[some.astype(int)]
    names = ("estimate", *ERRORS, *INTERVAL, "effect", "heterogeneity")
    columns = _columns(table, names, level) | {"estimate": "curve"}
    lines = table_lines(shown, columns, number_cell)
    lines = lines or [["constant"] + [""] * (len(columns) - 1)]
    grid = one_row(ensemble, name).z[some.astype(int)]
    places = place_texts(grid, units_of(ensemble, name))
    if "level" in shown:
        places = shown["level"].tolist()
    meanings = []
    if len(shown) < len(table):
        meanings = [f"{len(shown)} of {len(table)} points of the grid; tidy(effect) gives all."]
    effect = f"effect of {with_units(name, units_of(ensemble, name))} on"
    return lines, list(columns.values()), places or [name], effect, meanings


# --- results of several models as data frames -----------------------------------------------------


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
    return names_of(ensemble).assign(_with_ends(ensemble, [what]))


def _with_ends(ensemble: xr.Dataset, names: Sequence[str]) -> dict[str, Any]:
    """Numbers of all features, and their intervals, as variables."""
    variables: dict[str, Any] = {}
    for name in names:
        facts = facts_of(ensemble, name)
        about = {"long_name": facts.long_name, "units": facts.units}
        variables[name] = ("feature", centre_of(ensemble, name), about)
        variables[f"{name}_ci"] = ensemble[f"{name}_ci"].variable
    return variables


def tidy(ensemble: xr.Dataset, level: float) -> pd.DataFrame:
    """A line a point of the grid, with the curve as the estimate."""
    ensemble = with_intervals(ensemble, level)
    levels = "level" in ensemble.coords and bool((ensemble["level"] != "").any())
    rows = [one_row(ensemble, name) for name in feature_names(ensemble)]
    return pd.concat([_lines(row, levels=levels) for row in rows], ignore_index=True)


def _lines(row: Row, *, levels: bool) -> pd.DataFrame:
    """The points of one feature; ``levels``: with their levels, empty where it has an axis."""
    x = row.z if row.levels else shown_values(row.z, units_of(row.dataset, 0))
    lines: dict[str, Any] = {"term": [row.name] * len(row.z)}
    if levels:
        lines["level"] = row.levels or [""] * len(row.z)
    lines |= _columns_of(row.dataset, "curve")
    for name in ("effect", "heterogeneity"):
        if name in estimated(row.dataset):
            lines[name] = centre_of(row.dataset, name)
            lines[f"{name}_se"] = errors(row.dataset, name)
    table = pd.DataFrame({name: np.ravel(values) for name, values in lines.items()})
    table.insert(1, "x", x)
    return table


def _columns_of(result: xr.Dataset, name: str) -> dict[str, FloatArray]:
    """An estimate, its standard error, the parts of that, and its interval, by column."""
    columns = {"estimate": centre_of(result, name), "std_error": errors(result, name)}
    for part in ("model", "rows"):
        variable = f"{name}_se_{part}"
        # Errors of single members stay where no part is known.
        if variable in result and "draw" not in result[variable].dims:
            columns[f"std_error_{part}"] = values_of(result, variable, dims_of(name))
    ends = result[f"{name}_ci"].transpose(*dims_of(name), "ci_bound").values
    return columns | {"conf_low": ends[..., 0], "conf_high": ends[..., 1]}


def glance(ensemble: xr.Dataset, level: float) -> pd.DataFrame:
    """A line a feature: the average effect, sizes, and the range of the curve."""
    ensemble = with_intervals(ensemble, level)
    columns: dict[str, Any] = {
        "term": feature_names(ensemble),
        "kind": ensemble["feature_kind"].values.astype(str),
        "n_members": ensemble["failed"].size,
        "n_failed": int(ensemble["failed"].sum()),
    }
    if "average_effect" in estimated(ensemble):
        average = _columns_of(ensemble, "average_effect")
        if origin_of(ensemble).is_tested:
            degrees = degrees_of(ensemble, "average_effect")
            average |= student(average["estimate"], average["std_error"], degrees)
        # An average over steps between levels without an order of their own has no meaning.
        unordered = is_unordered(ensemble)
        columns |= {name: np.where(unordered, np.nan, values) for name, values in average.items()}
    for size in ("importance", "heterogeneity_output", "heterogeneity_index"):
        if size in estimated(ensemble):
            columns[size] = centre_of(ensemble, size)
    curve = pd.DataFrame(centre_of(ensemble, "curve"))
    curve = curve.where(np.isfinite(curve))
    return pd.DataFrame(columns | {"curve_min": curve.min(axis=1), "curve_max": curve.max(axis=1)})


def effect_sizes(
    ensemble: xr.Dataset, boot: object, y: object, weights: object, level: float
) -> xr.Dataset:
    """`effect_sizes`: the estimates that are one number a feature, with their intervals."""
    ensemble = check_ensemble(ensemble)
    for name, argument in (("boot", boot), ("y", y), ("weights", weights)):
        if argument is not None:
            raise ValueError(
                f"{name} must be left out for results of several models, whose members have sizes "
                f"of their own."
            )
    ensemble = with_intervals(ensemble, level)
    names = [name for name in estimated(ensemble) if name in TOTALS and name != "average_effect"]
    attributes = ("output_name", "output_units", "bin_rule", "bin_parameters", "n_rows", "software")
    return xr.Dataset(
        _with_ends(ensemble, names),
        {name: ensemble[name].variable for name in ("feature", "feature_kind")},
        {
            "method": "effect sizes",
            **{name: ensemble.attrs[name] for name in attributes if name in ensemble.attrs},
        },
    ).assign_coords(BOUNDS)


def predict(
    ensemble: xr.Dataset, x: Any, feature: str | int | None, what: str = "curve"
) -> xr.DataArray:
    """An estimate at values of its feature, straight between grid points; or at levels."""
    ensemble = check_ensemble(ensemble)
    feature = given_feature(feature, "predict(effect, x, 'dose')", ensemble)
    if what not in estimated(ensemble):
        raise ValueError(f"what must be 'curve' for profiles of several models; got {what!r}.")
    row = one_row(ensemble, feature)
    facts, centre = facts_of(ensemble, what), centre_of(row.dataset, what)[0]
    out = values_on_grid(x, row.z, centre, row.levels, row.name).rename(what)
    return out.assign_attrs(long_name=facts.long_name, units=facts.units, feature=row.name)
