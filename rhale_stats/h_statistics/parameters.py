"""Uncertainty of the parameters of a fitted model in H-statistics (math [80])."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from rhale_stats.arrays import delta
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.h_statistics.labelled import STATISTICS, pairs_of, se_variable
from rhale_stats.h_statistics.statistic import h_statistic
from rhale_stats.inference.parameters import KIND, Directions, check_model, errors, sources
from rhale_stats.models.options import ModelOptions
from rhale_stats.models.parametric import Fitted
from rhale_stats.schema.features import feature_names
from rhale_stats.schema.identity import model_facts
from rhale_stats.schema.kinds import H_STATISTICS
from rhale_stats.schema.variables import variable

# Step along a direction, in standard errors.
STEP = 1e-4
# Pairs of rows times directions in one call, 128 MB a feature.
BATCH_ANSWERS = 1 << 23
ENDS = ("_se_rows", "_se_model", "_df")


def without_parts(result: xr.Dataset) -> xr.Dataset:
    """H-statistics with the errors of their rows again."""
    if "parameters" not in result.attrs:
        return result
    names = [name for name in STATISTICS if f"{name}_se_rows" in result]
    rows = {
        f"{name}_se": se_variable(result[name], se.values, str(se.attrs["source"]))
        for name in names
        for se in [result[f"{name}_se_rows"]]
    }
    ends = (*ENDS, "_ci")
    out = result.drop_vars([name for name in result.data_vars if str(name).endswith(ends)])
    for fact in ("parameters", "fitted_model"):
        out.attrs.pop(fact, None)
    return out.assign(rows)


def with_parameters(
    result: xr.Dataset,
    names: Sequence[str],
    fitted: Fitted,
    moved: Callable[[str], FloatArray],
    code: IntArray | None,
    degrees: float,
) -> xr.Dataset:
    """H-statistics with standard errors of rows get those that hold the parameters.

    ``moved`` gives what rows, or groups with their numbers in ``code``, do to a statistic, (...,
    unit).
    """
    if str(result.attrs["h_kind"]) != "pdp":
        raise ValueError(
            "model must be None for H-statistics of kind 'ale', whose bins are not kept. Make them "
            "with kind='pdp', or take ale2 of one pair."
        )
    frequency = str(result.attrs["weight_kind"]) == "frequency"
    directions = Directions.of(fitted, result.attrs | model_facts(result), frequency=frequency)
    if directions.changes.table.n_rows != int(result.attrs["n_rows_total"]):
        raise ValueError(
            f"X must be the table that h_statistic was given; got "
            f"{directions.changes.table.n_rows} rows for {result.attrs['n_rows_total']}."
        )
    changes = _changes(result, names, directions)
    used, made = result["row"].values, {}
    codes = np.arange(len(used)) if code is None else code
    for name in names:
        se = result[f"{name}_se"]
        values = moved(name).reshape(se.size, -1).T
        # A feature makes no pair with itself.
        values = np.where(np.isfinite(se.values.ravel()), values, 0.0)
        units = delta.Units(values, codes, degrees)
        covariances = directions.covariances(
            units.moved.T @ units.moved, changes[name], units, used
        )
        parts = errors(covariances) | {"df": directions.degrees(covariances, degrees)}
        source_texts = sources(directions, str(se.attrs["source"]))
        for end, values in parts.items():
            part_values = np.where(np.isnan(se.values), np.nan, values.reshape(se.shape))
            about: dict[str, Any] = {"source": source_texts[end], "kind": KIND}
            made[f"{name}_{end}"] = (
                variable(f"{name}_{end}", part_values, H_STATISTICS, **about)
                if end != "se"
                else _as_delta(se_variable(result[name], part_values, source_texts[end]))
            )
    return result.assign(made).assign_attrs(directions.facts())


def _as_delta(made: tuple[Any, ...]) -> tuple[Any, ...]:
    dims, values, attrs = made
    return dims, values, attrs | {"kind": KIND}


def _changes(
    result: xr.Dataset, names: Sequence[str], directions: Directions
) -> dict[str, FloatArray]:
    """Changes of all statistics by direction, (direction, statistic), by central differences.

    To first order a model moves along a direction by its change, so that the model plus and minus
    a small part of it are the two outputs of one model.
    """
    table = directions.changes.table.take(np.asarray(result["row"].values))
    weighted = result.attrs["weight_kind"] != "none"
    options = ModelOptions(
        weights=result["weight"].values if weighted else None,
        weight_kind=str(result.attrs["weight_kind"]) if weighted else "precision",
        missing=str(result.attrs["missing"]),
    )

    pairs = None
    if result.attrs.get("n_pairs_left_out") and "h_pairwise" in result:
        names_of = feature_names(result)
        pairs = [(names_of[j], names_of[k]) for j, k in pairs_of(result)[0].T]

    def statistics_by(ask: Callable[[Any], FloatArray]) -> xr.Dataset:
        return h_statistic(
            ask,
            table.data,
            features=feature_names(result),
            pairwise="h2_pairwise" in result,
            pairs=pairs,
            n_pairs=None,
            n_rows=None,
            options=options,
            progress=False,
        )

    middle = statistics_by(lambda rows: directions.changes.ask(rows)[:, -1])
    for name in names:
        check_model(middle[name].values, result[name].values, name)
    n_directions = directions.changes.n_directions
    out = {name: np.zeros((n_directions, result[name].size)) for name in names}
    together = max(BATCH_ANSWERS // table.n_rows**2, 1)
    for begin in range(0, n_directions, together):
        part = slice(begin, min(begin + together, n_directions))

        def both(rows: Any, part: slice = part) -> FloatArray:
            answers = directions.changes.ask(rows)
            step, middle = STEP * answers[:, part], answers[:, -1:]
            return np.concatenate([middle + step, middle - step], axis=1)

        moved = statistics_by(both)
        for name in names:
            upper, lower = np.split(moved[name].values.reshape(-1, result[name].size), 2)
            out[name][part] = np.nan_to_num((upper - lower) / (2 * STEP))
    return out
