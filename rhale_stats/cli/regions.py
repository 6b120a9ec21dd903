"""The command `regions`: where in the data an effect differs."""

from __future__ import annotations

import argparse
from typing import Any

import pandas as pd
import xarray as xr

from rhale_stats.cli.formula import listed_names
from rhale_stats.cli.given import ModelInputs, local_of, with_errors
from rhale_stats.cli.interruption import UsageError
from rhale_stats.cli.outputs import delivered, files_of, writers_of
from rhale_stats.generics.tables import glance, summary, tidy
from rhale_stats.regional.regions import regional_rhale, regions


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


SHOWN = ("region", "rule", "n_obs", "estimate", "std_error", "conf_low", "conf_high")


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
