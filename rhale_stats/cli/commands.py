"""The commands on any model: `explain`, `regions` and `compare`."""

from __future__ import annotations

import argparse
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from rhale_stats.cli.formula import listed_names
from rhale_stats.cli.given import ModelInputs, local_of, with_errors
from rhale_stats.cli.inputs import read_result
from rhale_stats.cli.interruption import UsageError
from rhale_stats.cli.outputs import delivered, files_of, writers_of
from rhale_stats.effects.rhale import rhale
from rhale_stats.explanation.explain import explain
from rhale_stats.generics.hypotheses import compare
from rhale_stats.generics.tables import glance, summary, tidy
from rhale_stats.regional.regions import regional_rhale, regions
from rhale_stats.reporting.report import report

# Options that `explain` has by the same name.
OF_EXPLAIN = ("features", "categorical", "matters", "level", "held_out", "budget", "output")
# What the answer of `explain` ends with for users of Python.
HINTS = "\n\nrs."
# Attributes of an explanation that are no part of its answer in JSON.
LINES = ("cut", "notes")
# Columns of the table of regions that are printed.
SHOWN = ("region", "rule", "n_obs", "estimate", "std_error", "conf_low", "conf_high")
# Options of `compare` that two files of effects do not take.
OF_DATA = ("model", "formula", "features", "groups", "weights", "output", "levels")
# Levels that a message lists.
LEVELS_LISTED = 20


# --- explain --------------------------------------------------------------------------------------


def explain_job(arguments: argparse.Namespace) -> dict[str, Any]:
    """Explain a model, print the answer, and write what was asked for."""
    files = files_of(arguments)
    inputs = ModelInputs.from_arguments(arguments)
    with warnings.catch_warnings():
        # A model that was fitted to an array gets the columns of the table in their order.
        warnings.filterwarnings("ignore", "X has feature names, but")
        explanation: Any = explain(
            inputs.model,
            inputs.X,
            inputs.y,
            groups=inputs.groups,
            weights=inputs.weights,
            rng=arguments.seed,
            progress=not getattr(arguments, "no_progress", False),
            missing="drop" if arguments.keep_missing else None,
            **{name: getattr(arguments, name) for name in OF_EXPLAIN},
        )
    attrs = explanation.attrs
    answer: dict[str, Any] = {str(key): attrs[key] for key in attrs if key not in LINES}
    answer |= {name: str(attrs.get(name, "")).splitlines() for name in LINES}
    answer |= {"kind": attrs["model"], "model": inputs.name, "features": tidy(explanation)}
    writers = writers_of(explanation.contents, answer["features"], answer)
    writers[".html"] = partial(report, explanation)
    return delivered(files, writers, str(explanation).partition(HINTS)[0], answer)


# --- regions --------------------------------------------------------------------------------------


def regions_job(arguments: argparse.Namespace) -> dict[str, Any]:
    """Search regions in which an effect is less heterogeneous, and show them."""
    files = files_of(arguments)
    arguments.features = [arguments.feature]
    inputs = ModelInputs.from_arguments(arguments)
    conditioning = _conditioning(inputs, arguments)
    local = local_of(inputs, arguments)
    tree = regions(
        local,
        arguments.feature,
        conditioning=conditioning,
        max_depth=arguments.max_depth,
        groups=inputs.groups,
        rng=arguments.seed,
    )
    effect = with_errors(inputs, regional_rhale(local, tree), local)
    if "parameters" in effect.attrs:
        # A permutation takes the model as given, and so says less than the other intervals.
        pvalue = tree["pvalue"]
        tree = tree.assign(pvalue=pvalue.where(pvalue > tree.attrs["level"]))
    table = glance(effect)
    answer = {
        "model": inputs.name,
        "feature": arguments.feature,
        "n_rows": len(inputs.X),
        "nodes": tidy(tree),
        "regions": table,
    }
    both = xr.DataTree.from_dict({"/tree": tree, "/effect": effect})
    shown = table[[name for name in SHOWN if name in table.columns]]
    lines = shown.to_string(index=False, float_format="{:.4g}".format)
    text = f"{summary(tree)}\n\nAverage effects in the regions:\n{lines}"
    return delivered(files, writers_of(both, table, answer), text, answer)


def _conditioning(inputs: ModelInputs, arguments: argparse.Namespace) -> pd.DataFrame:
    """Columns to split by: those asked for, or the other columns of the model."""
    if arguments.conditioning is None:
        names = list(inputs.X.columns) if inputs.job is None else inputs.job.features
        names = [name for name in names if name != arguments.feature]
    else:
        names = arguments.conditioning
    if not names:
        raise UsageError(
            f"--conditioning must name columns to split by, because the model has none beside "
            f"{arguments.feature}. {arguments.data} has {listed_names(inputs.table)}."
        )
    return inputs.table[names]


# --- compare --------------------------------------------------------------------------------------


def compare_job(arguments: argparse.Namespace) -> dict[str, Any]:
    """Compare two effects, and show their difference."""
    files = files_of(arguments)
    if arguments.by is None:
        a, b, names = _of_files(arguments)
    else:
        a, b, names = _of_levels(arguments)
    difference = compare(a, b, rng=arguments.seed)
    table = tidy(difference)
    answer = {"a": names[0], "b": names[1], "tests": glance(difference), "differences": table}
    text = f"a: {names[0]}\nb: {names[1]}\n\n{summary(difference)}"
    return delivered(files, writers_of(difference, table, answer), text, answer)


def _of_files(arguments: argparse.Namespace) -> tuple[xr.Dataset, xr.Dataset, list[str]]:
    """The effects in two files, whose rows are taken as independent."""
    if len(arguments.files) != 2:
        raise UsageError(
            f"compare must be given two files of effects, or one of data with --by COLUMN; got "
            f"{len(arguments.files)} files without --by."
        )
    flags = [name for name in OF_DATA if getattr(arguments, name, None)]
    if flags:
        raise UsageError(
            f"--{flags[0]} must come with --by COLUMN and one file of data; two files hold effects "
            f"that are computed already."
        )
    a, b = (effect_in(path, "A and B") for path in arguments.files)
    return a, b, [str(path) for path in arguments.files]


def _of_levels(arguments: argparse.Namespace) -> tuple[xr.Dataset, xr.Dataset, list[str]]:
    """The effects of one model in the rows with each of two values of a column."""
    if len(arguments.files) != 1:
        raise UsageError(
            f"compare --by must be given one file of data; got {len(arguments.files)} files."
        )
    (arguments.data,) = arguments.files
    inputs = ModelInputs.from_arguments(arguments)
    column = inputs.table[arguments.by].astype(str)
    levels = _levels(arguments, sorted(column.unique()))
    effects = []
    for level in levels:
        rows = np.asarray(column == level)
        local = local_of(inputs, arguments, rows)
        effects.append(with_errors(inputs, rhale(local), local, rows))
    return effects[0], effects[1], [f"{arguments.by} = {level}" for level in levels]


def _levels(arguments: argparse.Namespace, values: list[str]) -> list[str]:
    chosen: list[str] = arguments.levels or values
    wrong = [level for level in chosen if level not in values]
    if len(chosen) == 2 and not wrong and chosen[0] != chosen[1]:
        return chosen
    more = f" and {len(values) - LEVELS_LISTED} more" if len(values) > LEVELS_LISTED else ""
    raise UsageError(
        f"--levels must be two values of {arguments.by}; got {', '.join(arguments.levels or [])}"
        f"{'none' if not arguments.levels else ''}. It has "
        f"{', '.join(values[:LEVELS_LISTED])}{more}."
    )


def effect_in(path: Path, what: str) -> xr.Dataset:
    """The effects in a file: of `fit`, of `explain`, or of another function.

    Raises
    ------
    UsageError
        The file cannot be read, or holds no effects.
    """
    tree = read_result(path, what)
    for group in ("", "effect"):
        node = tree[group] if group in tree.children else tree
        effect = node.to_dataset()
        if "curve" in effect.variables:
            return effect
    raise UsageError(
        f"{what} must hold effects, as `fit` and `explain` write them; {path} does not. It has "
        f"{', '.join(map(str, [*tree.children, *tree.data_vars])) or 'nothing'}."
    )
