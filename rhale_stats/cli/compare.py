"""The command `compare`: the difference of two effects, from files or of two groups of rows."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from rhale_stats.cli.given import ModelInputs, local_of, with_errors
from rhale_stats.cli.inputs import read_result
from rhale_stats.cli.interruption import UsageError
from rhale_stats.cli.outputs import delivered, files_of, writers_of
from rhale_stats.effects.rhale import rhale
from rhale_stats.generics.hypotheses import compare
from rhale_stats.generics.tables import glance, summary, tidy

# Levels that a message lists.
LEVELS_LISTED = 20


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


OF_DATA = ("model", "formula", "features", "groups", "weights", "output", "levels")


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
