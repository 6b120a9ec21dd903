"""The command `report`: the report of an explanation that was saved before."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

from rhale_stats.cli.formula import check_features
from rhale_stats.cli.inputs import read_result
from rhale_stats.cli.interruption import UsageError
from rhale_stats.cli.outputs import delivered, files_of
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
    check_features(arguments.features, features, f"features of {path}")
    options = {"title": arguments.title, "features": arguments.features}
    options |= {"open_features": arguments.open, "print": arguments.print}
    return delivered(files, {".html": partial(report, tree, **options)})
