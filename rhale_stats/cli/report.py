"""The command `report`: the report of an explanation that was saved before."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import xarray as xr

from rhale_stats.cli.inputs import read_result
from rhale_stats.cli.interruption import UsageError
from rhale_stats.cli.outputs import files_of, said_files, save
from rhale_stats.reporting.report import report


def report_job(arguments: argparse.Namespace) -> dict[str, Any]:
    """Write the report of a saved explanation."""
    path: Path = arguments.tree
    arguments.out = [arguments.out or path.with_suffix(".html")]
    files = files_of(arguments)
    tree = read_result(path, "TREE")
    if tree.attrs.get("method") != "explain":
        raise UsageError(
            f"TREE must be an explanation, as `explain --out tree.nc` writes it; {path} is not: "
            f"its method is {tree.attrs.get('method', 'not known')}."
        )
    features = list(map(str, tree["answers"].to_dataset()["feature"].values))
    wrong = [name for name in arguments.features or [] if name not in features]
    if wrong:
        raise UsageError(
            f"--features must be features of {path}, which are {', '.join(features)}; got "
            f"{', '.join(wrong)}."
        )
    write = writer_of(
        tree,
        title=arguments.title,
        features=arguments.features,
        open_features=arguments.open,
        print=arguments.print,
    )
    save(files, {".html": write})
    said_files(files)
    return {"files": [str(file) for file in files]}


def writer_of(tree: xr.DataTree, **options: Any) -> Callable[[Path], object]:
    """What writes the report of an explanation into a file."""
    return partial(report, tree, **options)
