"""How effects in bins are laid out: what they hold once for all features, and of replicates.

``moments`` (feature, edge, moment) of a result are those of the rows in the cell to the right of
each edge, and its ``curve`` and ``spread`` are at the same edges. What follows from them is a
property of `FeatureResult`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import is_
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from rhale_stats.schema.features import feature_names

MOMENTS = "moments"
# What features on an axis have where precision weights differ.
OF_UNEQUAL_WEIGHTS = frozenset(
    {
        *("squares", "robust_variance", "robust_third_cumulant", "error_rows", "skewness_sign"),
        *("cell_squares", "cell_robust_variance", "cell_robust_third_cumulant", "cell_degrees"),
        *("weight_products", "cell_weight_products", "weight_largest", "effect_slope_correlation"),
    }
)
# Coordinate of the features, or an attribute where they have the same.
METHOD = "local_effect_method"
# Attribute with the coordinates of replicates in bins, as JSON.
AS_TEXT = "bin_coordinates"


def method_as_attribute(result: xr.Dataset) -> xr.Dataset:
    """The result with the method of its local effects as an attribute, if they have the same."""
    method = _one_method(result)
    return result.drop_vars(list(method)).assign_attrs(method) if method else result


def _one_method(result: xr.Dataset) -> dict[str, str]:
    """The method of the local effects of all features by its name; empty if they have several."""
    if METHOD not in result.coords:
        return {}
    methods = result.variables[METHOD].values
    return {METHOD: str(methods.flat[0])} if (methods == methods.flat[0]).all() else {}


def method_by_feature(result: xr.Dataset) -> xr.Dataset:
    """The result with the method of its local effects as a coordinate of its features."""
    if METHOD not in result.attrs:
        return result
    result = result.copy()
    method = np.full(result.sizes["feature"], result.attrs.pop(METHOD))
    return result.assign_coords({METHOD: ("feature", method)})


def coordinates_as_text(replicates: xr.Dataset) -> xr.Dataset:
    """Replicates with what is known of their bins as an attribute.

    It is that of the effect, and ArviZ takes no coordinates that some variables have not.
    """
    coordinates = {name: coord for name, coord in replicates.coords.items() if len(coord.dims) > 1}
    text = {
        str(name): [coord.dims, coord.transpose("feature", ...).values.tolist(), coord.attrs]
        for name, coord in coordinates.items()
        if coord.dims[0] == "feature"
    }
    out = replicates.drop_vars(list(text))
    text["feature"] = [["feature"], replicates["feature"].values.tolist(), {}]
    return out.assign_attrs({AS_TEXT: json.dumps(text)})


def with_coordinates(replicates: xr.Dataset) -> xr.Dataset:
    """The replicates with their coordinates again, of the features that are left."""
    text = json.loads(replicates.attrs.get(AS_TEXT, "{}"))
    _, names, _ = text.pop("feature", ([], [], {}))
    rows = [names.index(name) for name in replicates["feature"].values] if names else []
    coords = {
        name: (dims, np.array(values)[rows], attrs) for name, (dims, values, attrs) in text.items()
    }
    out = replicates.assign_coords(coords)
    out.attrs.pop(AS_TEXT, None)
    return out


def each_result(value: Any, change: Callable[[xr.Dataset], xr.Dataset]) -> Any:
    """A result, tree or collection of results with every Dataset in it changed."""
    if isinstance(value, xr.Dataset):
        return change(value)
    if isinstance(value, xr.DataTree):
        changed = {}
        for node in value.subtree:
            before = node.to_dataset(inherit=False)
            after = change(before)
            if after is not before:
                changed[node.path] = after
        if changed:
            value = value.copy()
            for path, dataset in changed.items():
                value[path].dataset = dataset
        return value
    if type(value) in (list, tuple):
        return type(value)(each_result(element, change) for element in value)
    if type(value) is dict:
        return {key: each_result(element, change) for key, element in value.items()}
    return value


class KeptFeatures(NamedTuple):
    """Features of a Dataset that were asked for, by position, and its variables as they were."""

    dataset: xr.Dataset
    variables: list[xr.Variable]
    rows: dict[int, Any]

    def holds(self, dataset: xr.Dataset, variables: list[xr.Variable]) -> bool:
        """Whether they are of this Dataset, with these variables."""
        same = self.dataset is dataset and len(self.variables) == len(variables)
        return same and all(map(is_, self.variables, variables))


# While a function that a user called is at work: what follows from the moments is computed once.
_KEPT: list[KeptFeatures] | None = None
MAX_KEPT = 4


@contextmanager
def features_kept() -> Iterator[None]:
    """Within, what was computed of a feature of a Dataset is there when it is asked for again."""
    global _KEPT
    if _KEPT is not None:
        yield
        return
    _KEPT = []
    try:
        yield
    finally:
        _KEPT = None


def rows_kept(dataset: xr.Dataset) -> dict[int, Any]:
    """Features of a Dataset that were asked for before, by position: others are put there."""
    variables = list(dataset._variables.values())
    datasets = [] if _KEPT is None else _KEPT
    for part in datasets:
        if part.holds(dataset, variables):
            return part.rows
    rows = dict[int, Any]()
    datasets[:] = [*datasets[1 - MAX_KEPT :], KeptFeatures(dataset, variables, rows)]
    return rows


def check_edges(result: xr.Dataset, parameter: str) -> None:
    """Raise ``ValueError`` unless edges rise, and those of the bins are among them."""
    variables = result.variables
    if variables["edge_value"].dims != ("feature", "edge"):
        return  # of several samples, which come here one by one
    left, right, grid = [variables[name].values for name in ("bin_left", "bin_right", "edge_value")]
    n_bins, n_edges = np.isfinite(left).sum(axis=-1), np.isfinite(grid).sum(axis=-1)
    is_bin = np.arange(left.shape[-1]) < n_bins[:, None]
    is_edge = np.arange(grid.shape[-1]) < n_edges[:, None]
    every, last = np.arange(len(grid)), np.maximum(n_bins - 1, 0)
    with np.errstate(invalid="ignore"):
        fits = np.isfinite(left) == is_bin
        fits &= ~is_bin | (right > left) & (left[..., None] == grid[:, None]).any(axis=-1)
        fits[:, 1:] &= ~is_bin[:, 1:] | (left[:, 1:] == right[:, :-1])
        rises = (np.isfinite(grid) == is_edge)[:, 1:] & (~is_edge[:, 1:] | (np.diff(grid) > 0))
        ends = (left[:, 0] == grid[:, 0]) & (right[every, last] == grid[every, n_edges - 1])
    is_whole = fits.all(axis=-1) & rises.all(axis=-1) & ends
    broken = np.flatnonzero((n_bins > 0) & ~is_whole)
    if len(broken):
        raise ValueError(
            f"{parameter} must have all of its bins, in order, between edges that rise; those "
            f"of feature {feature_names(result)[broken[0]]!r} are not. Bins must not be selected "
            f"or sorted: make others with rhale(local, bins=...)."
        )
