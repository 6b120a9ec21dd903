"""Effects for commands on any model: local effects of its rows, and effects read from files."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from rhale_stats.cli.given import ModelInputs
from rhale_stats.cli.inputs import read_result
from rhale_stats.cli.interruption import UsageError
from rhale_stats.generics.errors import std_error
from rhale_stats.local.local_effects import local_effects
from rhale_stats.models.parametric import ROW_NUMBER, has_parameters


def local_of(inputs: ModelInputs, arguments: argparse.Namespace, rows: Any = None) -> xr.Dataset:
    """Local effects of the features asked for, of all rows or of some of them."""
    X, weights = inputs.X, inputs.weights
    if rows is not None:
        X = X[rows].reset_index(drop=True)
        weights = None if weights is None else weights[rows].reset_index(drop=True)
    for name in arguments.features or []:
        if not pd.api.types.is_numeric_dtype(X[name].dtype):
            raise UsageError(
                f"--feature must be a column of numbers; {name} is not. `explain` also shows "
                f"effects of categories."
            )
    features = arguments.features or (None if inputs.job is None else _numeric(inputs))
    with warnings.catch_warnings():
        # A model that was fitted to an array gets the columns of the table in their order.
        warnings.filterwarnings("ignore", "X has feature names, but")
        return local_effects(
            inputs.model,
            X,
            features=features,
            weights=weights,
            output=arguments.output,
            progress=not getattr(arguments, "no_progress", False),
        )


def with_errors(
    inputs: ModelInputs, effect: xr.Dataset, local: xr.Dataset, rows: Any = None
) -> xr.Dataset:
    """With errors of the rows, all or some, and of the parameters of a model that has them."""
    groups = inputs.groups
    if has_parameters(inputs.model):
        if rows is not None:
            local = local.assign_coords({ROW_NUMBER: ("obs", np.flatnonzero(rows))})
        return std_error(effect, local, groups=groups, model=inputs.model, X=inputs.X)
    if groups is not None and rows is not None:
        groups = groups[rows].reset_index(drop=True)
    return std_error(effect, local, groups=groups)


def _numeric(inputs: ModelInputs) -> list[str]:
    """Regressors of a formula that are continuous."""
    return [
        name
        for name in (inputs.job.features if inputs.job is not None else [])
        if pd.api.types.is_numeric_dtype(inputs.X[name].dtype) and inputs.X[name].nunique() > 2
    ]


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
