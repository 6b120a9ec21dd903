"""Uncertainty of the parameters of a fitted model in surfaces, with the cells held (math [80])."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from rhale_stats.arrays import intervals
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.bins.fixed import GivenBins
from rhale_stats.bins.rule import BinRule
from rhale_stats.inference.parameters import KIND, ROWS_FIXED, Directions, check_model, sources
from rhale_stats.models.options import ModelOptions
from rhale_stats.models.parametric import Fitted
from rhale_stats.schema.dimensions import OUTPUT
from rhale_stats.schema.identity import model_facts
from rhale_stats.schema.kinds import SURFACE
from rhale_stats.schema.levels import MISSING_LEVEL
from rhale_stats.schema.variables import variable
from rhale_stats.surfaces.ale2 import ale2

ESTIMATES = ("second_effect", "surface")


def change_of(surface: xr.Dataset, name: str) -> FloatArray | None:
    """Change of an estimate by direction, (direction, place), where the errors hold it."""
    stored = surface.get(f"{name}_change")
    return None if stored is None else np.asarray(stored.values.reshape(len(stored), -1))


def with_model(surface: xr.Dataset, name: str, rows: FloatArray) -> FloatArray:
    """Covariance of an estimate, from that of the rows and, where it is known, the parameters."""
    change = change_of(surface, name)
    if change is None:
        return rows
    rows_are_fixed = surface.attrs.get("parameters") == ROWS_FIXED
    return np.asarray(
        (np.where(np.isnan(rows), np.nan, 0.0) if rows_are_fixed else rows) + change.T @ change
    )


def degrees_of(surface: xr.Dataset, name: str, rows: FloatArray) -> FloatArray:
    """Degrees of freedom of an estimate: those of the rows, or with parameters the stored ones."""
    stored = surface.get(f"{name}_df")
    return rows if stored is None else np.asarray(stored.values)


def without_parts(surface: xr.Dataset) -> xr.Dataset:
    """The surface without what errors by parameters or by groups left behind."""
    if "parameters" not in surface.attrs and "second_effect_df" not in surface:
        return surface
    ends = ("_se_rows", "_se_model", "_df", "_change", "_ci", "_band")
    out = surface.drop_vars([name for name in surface.data_vars if str(name).endswith(ends)])
    for fact in ("parameters", "fitted_model"):
        out.attrs.pop(fact, None)
    return out


def with_parameters(
    surface: xr.Dataset, fitted: Fitted, degrees: dict[str, FloatArray]
) -> xr.Dataset:
    """A surface with standard errors of its rows gets those that hold the parameters.

    ``degrees`` are those of freedom of the errors by rows, by estimate. The variances of rows and
    of parameters are added.
    """
    frequency = str(surface.attrs["weight_kind"]) == "frequency"
    facts = surface.attrs | model_facts(surface)
    # Variances are added: what a row does to the parameters is not asked for.
    directions = Directions.of(fitted, facts, frequency=frequency)._replace(influence=None)
    changes = _changes(surface, directions)
    made: dict[str, Any] = {}
    for name in ESTIMATES:
        change = changes[name].values
        check_model(change[-1], surface[name].values, name.replace("_", " "))
        estimable = directions.model.estimable(change[:-1].reshape(len(change) - 1, -1))
        change = estimable.reshape(-1, *change.shape[1:])
        rows, model = surface[f"{name}_se"], np.sum(change**2, axis=0)
        model = np.where(rows.isnull(), np.nan, model)
        of_rows = rows.values**2
        counted = np.zeros_like(of_rows) if directions.uncertainty == "parameters" else of_rows
        parts = {
            "se_rows": rows.values,
            "se_model": np.sqrt(model),
            "se": np.sqrt(counted + model),
            "df": intervals.satterthwaite(
                (np.nan_to_num(counted), degrees[name]),
                (np.nan_to_num(model), directions.model.degrees),
            ),
        }
        facts_of_error = {key: value for key, value in rows.attrs.items() if key != "long_name"}
        for end, source in sources(directions, str(rows.attrs["source"])).items():
            if end in parts:
                about = facts_of_error | {"source": source, "kind": KIND}
                about["units"] = "1" if end == "df" else facts_of_error["units"]
                made[f"{name}_{end}"] = variable(f"{name}_{end}", parts[end], SURFACE, **about)
        made[f"{name}_change"] = variable(f"{name}_change", change, SURFACE)
    return surface.assign(made).assign_attrs(directions.facts())


def _changes(surface: xr.Dataset, directions: Directions) -> xr.Dataset:
    """The surface of every direction, and at the end that of the model, over (output, ...)."""
    attrs, names = surface.attrs, (surface.attrs["feature_a"], surface.attrs["feature_b"])
    rules: list[BinRule] = []
    order: dict[str, list[str]] = {}
    missing = "drop" if attrs["n_rows_missing"] else "raise"
    for side, name in zip("ab", names, strict=True):
        if attrs[f"kind_{side}"] == "categorical":
            order[name] = surface[f"level_{side}"].values.tolist()
            missing = "bin" if MISSING_LEVEL in order[name] else missing
            rules.append(GivenBins([0.0, 1.0]))
        else:
            rules.append(GivenBins(surface[f"edge_value_{side}"].values))
    table = directions.changes.table
    if table.n_rows != surface.sizes["obs"]:
        raise ValueError(
            f"X must hold the rows of the surface; got {table.n_rows} rows for "
            f"{surface.sizes['obs']}. Pass the table that ale2 was given."
        )
    weighted = attrs["weight_kind"] != "none"
    options = ModelOptions(
        weights=surface["weight"].values if weighted else None,
        weight_kind=str(attrs["weight_kind"]) if weighted else "precision",
        missing=missing,
    )
    changed = ale2(
        directions.changes.ask,
        table.data,
        names,
        bins=(rules[0], rules[1]),
        order=order or "as_is",
        centering=str(attrs["centering"]),
        options=options,
        progress=False,
    )
    return changed if OUTPUT in changed.dims else changed.expand_dims(OUTPUT)
