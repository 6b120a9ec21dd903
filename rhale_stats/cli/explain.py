"""The command `explain`: the answer first, for any model, and its report."""

from __future__ import annotations

import argparse
import warnings
from functools import partial
from typing import Any

from rhale_stats.cli.given import ModelInputs
from rhale_stats.cli.outputs import delivered, files_of, writers_of
from rhale_stats.explanation.explain import explain
from rhale_stats.generics.tables import tidy
from rhale_stats.reporting.report import report

# What the answer ends with for users of Python.
HINTS = "\n\nrs."
# Attributes of an explanation that are no part of its answer in JSON.
LINES = ("cut", "notes")


def explain_job(arguments: argparse.Namespace) -> dict[str, Any]:
    """Explain a model, print the answer, and write what was asked for."""
    files = files_of(arguments)
    inputs = ModelInputs.from_arguments(arguments)
    with warnings.catch_warnings():
        # A model that was fitted to an array gets the columns of the table in their order.
        warnings.filterwarnings("ignore", "X has feature names, but")
        explanation = explain(
            inputs.model,
            inputs.X,
            inputs.y,
            features=arguments.features,
            categorical=arguments.categorical,
            groups=inputs.groups,
            matters=arguments.matters,
            level=arguments.level,
            held_out=arguments.held_out,
            budget=arguments.budget,
            rng=arguments.seed,
            progress=not getattr(arguments, "no_progress", False),
            weights=inputs.weights,
            output=arguments.output,
            missing="drop" if arguments.keep_missing else None,
        )
    answer = answer_of(explanation, inputs.name)
    writers = writers_of(explanation.contents, answer["features"], answer)
    writers[".html"] = partial(report, explanation)
    return delivered(files, writers, str(explanation).partition(HINTS)[0], answer)


def answer_of(tree: Any, model: str) -> dict[str, Any]:
    """An explanation as `--json` prints it: settings, and the facts of every feature."""
    facts = {str(name): value for name, value in tree.attrs.items() if name not in LINES}
    lines = {name: str(tree.attrs.get(name, "")).splitlines() for name in LINES}
    return {**facts, **lines, "kind": facts["model"], "model": model, "features": tidy(tree)}
