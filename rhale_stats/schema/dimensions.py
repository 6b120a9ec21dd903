"""Dimensions of results that stand side by side: outputs, regions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

# Effects by region: the dimension, the region of every row, and what a region says of itself.
REGION, ROWS = "region", "region_of_row"
REGION_LABELS = ("region_rule", "region_node")
# Several outputs of a model, classes for instance.
OUTPUT = "output"
# Slopes across the cell to the left of rows on an edge; the rows that halves of them come from, and
# which halves have the mean of their cell.
LEFT, HALF_OF, AT_MEAN = "local_effect_left", "half_of", "half_at_mean"
# Dimensions of results that stand side by side, each a whole by itself.
PARTS = (OUTPUT, REGION)
ALL_PARTS = {OUTPUT: "plots.outputs(effect, feature)", REGION: "plots.regions(tree, effect)"}


def check_one_part(dataset: xr.Dataset, name: str) -> None:
    """Raise ``ValueError`` unless this is of one output and one region."""
    for dim in PARTS:
        if dim in dataset.dims:
            raise ValueError(
                f"{name} must be of one {dim} here; this one is of {dataset.sizes[dim]}. Select "
                f"one: {name}.isel({dim}=0); or see all of them: {ALL_PARTS[dim]}."
            )


def with_part_facts(dataset: xr.Dataset) -> xr.Dataset:
    """One region or output that was selected, with the attributes that it has of its own."""
    attributes = {
        str(key).removeprefix(f"{dim}_"): dataset.variables[key].values.item()
        for dim in PARTS
        if dim in dataset.coords and dim not in dataset.dims
        for key in dataset.coords
        # A fact of every feature stays a coordinate.
        if str(key).startswith(f"{dim}_")
        and key not in REGION_LABELS
        and not dataset.variables[key].ndim
    }
    # A check of a result that was checked before copies nothing.
    is_there = attributes.items() <= dataset.attrs.items()
    return dataset if is_there else dataset.assign_attrs(attributes)


def with_outputs(dataset: xr.Dataset, labels: Sequence[Any], names: Sequence[str]) -> xr.Dataset:
    """A result of all outputs, labelled; of a single one, without the dimension."""
    if len(labels) > 1:
        texts = not all(isinstance(label, int) for label in labels)
        return dataset.assign_coords(
            {
                OUTPUT: (OUTPUT, np.array([str(label) if texts else label for label in labels])),
                f"{OUTPUT}_output_name": (OUTPUT, np.array(names)),
            }
        )
    out = dataset.isel({OUTPUT: 0}, drop=True)
    out.attrs["output_label"] = str(labels[0]) if names and names[0] else ""
    if names and names[0] and out.attrs["output_name"] == "output":
        out.attrs["output_name"] = names[0]
    return out
