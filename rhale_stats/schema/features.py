"""Features along their dimension: names, positions, units, and one feature at a time."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arguments.times import are_dates
from rhale_stats.arguments.words import listed
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.schema.levels import is_categorical

if TYPE_CHECKING:
    from rhale_stats.schema.feature_result import Result

# Attributes that differ between features of different rows.
OWN_FACTS = ("n_groups", "n_units", "n_strata", "units_df")
# Attribute with the names of features for people, as JSON.
LABELS = "feature_labels"


def feature_position(dataset: xr.Dataset, feature: str | int) -> int:
    """Position of ``feature``, given by name or number.

    Raises
    ------
    KeyError
        Unknown feature; the message lists those there are.
    """
    return position_of(feature, feature_names(dataset))


def positions_of(features: str | int | Iterable[str | int] | None, names: list[str]) -> list[int]:
    """Positions of features by name or number, one or several; by default of all."""
    if features is None:
        return list(range(len(names)))
    # NumPy's whole numbers are no sequences either.
    several = [features] if isinstance(features, str | int | np.integer) else list(features)
    return [position_of(feature, names) for feature in several]


def given_feature(feature: str | int | None, call: str, result: xr.Dataset) -> str | int:
    """The feature that was named, or the only one of ``result``; ``TypeError`` where none is."""
    if feature is None and result.sizes.get("feature") == 1:
        return 0
    if feature is None:
        raise TypeError(
            f"feature must be the name or number of one feature, as in {call}; got None, which is "
            f"for surfaces of ale2."
        )
    return feature


class Numbered(str):
    """Name of a column of a table that has integers among its labels."""

    __slots__ = ()


def names_of_labels(labels: Iterable[Hashable]) -> list[str]:
    """Names of columns as text, which say whether integers are labels of the table."""
    every = list(labels)
    return [(Numbered if any(map(_is_integer, every)) else str)(label) for label in every]


def _is_integer(label: object) -> bool:
    return isinstance(label, int | np.integer) and not isinstance(label, bool)


def position_of(feature: Any, names: Sequence[str], parameter: str = "feature") -> int:
    """Position among ``names`` of a column given by label or number; ``KeyError`` if unknown.

    An integer is a label where the table has integers among its labels, and else a position.
    """
    numbered = Numbered in map(type, names)
    if _is_integer(feature) and not numbered:
        if -len(names) <= feature < len(names):
            return int(feature) % len(names)
    elif str(feature) in names:
        return list(names).index(str(feature))
    near = get_close_matches(str(feature), names, n=1)
    also = "" if numbered else f", or a number from 0 to {len(names) - 1}"
    raise KeyError(
        f"{parameter} must be one of {listed(names)}{also}; got {feature!r}."
        + (f" Did you mean {str(near[0])!r}?" if near else "")
        + " All are taken where it is left out." * (isinstance(feature, str) and feature == "all")
    )


def by_name(mapping: Mapping[Any, Any], names: Sequence[str], parameter: str) -> dict[str, Any]:
    """A mapping from columns, given by label or number, as one from their names."""
    return {names[position_of(key, names, parameter)]: value for key, value in mapping.items()}


def feature_coordinate(names: Sequence[str]) -> tuple[str, NDArray[Any], dict[str, str]]:
    """The coordinate of features, which keeps that integers are labels."""
    labels = {"labels": "integers"} if any(isinstance(name, Numbered) for name in names) else {}
    return "feature", np.array(names), {"long_name": "feature"} | labels


def has_integer_labels(value: Any) -> bool:
    """Whether the table of a result, or of one in a tree or list, has integers as labels."""
    if isinstance(value, xr.DataTree):
        return any(has_integer_labels(node.dataset) for node in value.subtree)
    if isinstance(value, xr.Dataset):
        return "feature" in value.coords and value["feature"].attrs.get("labels") == "integers"
    if isinstance(value, Mapping):
        value = list(value.values())
    return type(value) in (list, tuple) and any(map(has_integer_labels, value))


def feature_names(dataset: xr.Dataset) -> list[str]:
    """Names along the ``feature`` dimension."""
    if "feature" not in dataset.coords or not dataset.variables["feature"].dims:
        raise ValueError(
            f"The Dataset must have the dimension feature with its names; it has the dimensions "
            f"{', '.join(map(str, dataset.dims)) or 'none'}. Select features with a list: "
            f".sel(feature=['x0'])."
        )
    return [str(name) for name in dataset.variables["feature"].values]


def methods_of(dataset: Result) -> list[str]:
    """How the local effects of each feature were taken."""
    if "local_effect_method" in dataset.coords:
        return [str(method) for method in np.atleast_1d(dataset["local_effect_method"].values)]
    method = str(dataset.attrs.get("local_effect_method", "unknown"))
    return [method] * dataset["feature"].size


def method_text(dataset: Result) -> str:
    """The one method of all features, or how many features have which."""
    methods = methods_of(dataset)
    counts = {method: methods.count(method) for method in dict.fromkeys(methods)}
    if len(counts) == 1:
        return methods[0]
    return "by feature: " + ", ".join(f"{n} {method}" for method, n in counts.items())


def units_of_all(dataset: xr.Dataset) -> list[str]:
    """Units of all features, the empty string where one is not known."""
    if "feature_units" not in dataset.coords:
        return [""] * dataset.sizes["feature"]
    return [str(unit) for unit in dataset.variables["feature_units"].values]


def units_of(dataset: xr.Dataset, feature: str | int) -> str:
    """Unit of one feature, or the empty string."""
    if "feature_units" not in dataset.coords:
        return ""
    return str(dataset["feature_units"].values[feature_position(dataset, feature)])


def label_facts(labels: object, names: Iterable[str]) -> dict[str, str]:
    """Names of columns for people, as an attribute of results; nothing where there are none."""
    if not isinstance(labels, Mapping):
        return {}
    texts = {name: str(labels[name]) for name in names if name in labels}
    return {LABELS: json.dumps(texts, ensure_ascii=False)} if texts else {}


def labels_kept(dataset: xr.Dataset) -> dict[str, str]:
    """The attribute with the names for people, for a result made of this one."""
    return {LABELS: str(dataset.attrs[LABELS])} if LABELS in dataset.attrs else {}


def label_of(dataset: Result, name: str) -> str:
    """The name of a feature for people, from ``X.attrs["labels"]``; else its name."""
    if LABELS not in dataset.attrs:
        return name
    return str(json.loads(str(dataset.attrs[LABELS])).get(name, name))


def units_in(row: Result) -> str:
    """Unit of the feature of a result of one feature, or the empty string."""
    return str(row["feature_units"].values) if "feature_units" in row else ""


def axis_units(row: Result) -> str:
    """Unit of the places of one feature on its axis; the empty string for numbers of levels."""
    return "" if is_categorical(row) else units_in(row)


def with_units(text: str, units: str) -> str:
    """Text as in a label or title, with its units behind it where they are known."""
    return f"{text} [{units}]" if units and not are_dates(units) else text


def rows_used(result: Result) -> int:
    """Rows of the table that an estimate uses: of one feature those that it has, each once."""
    if "feature" in result.dims:
        return int(result.attrs["n_rows"])
    counts = "n_level" if "n_level" in result and is_categorical(result) else "n_obs"
    return int(result.variables[counts].values.sum())


def own_facts(row: xr.Dataset) -> xr.Dataset:
    """One feature, with the attributes that it has of its own where features have their own rows.

    `stack` has made coordinates of them.
    """
    facts = {
        key: row[f"feature_{key}"].item() for key in OWN_FACTS if f"feature_{key}" in row.coords
    }
    return row.assign_attrs(facts) if facts else row


def is_grouped(effect: Result) -> bool:
    """Whether standard errors are of groups of rows."""
    return "n_groups" in effect.attrs or "feature_n_groups" in effect.coords


def is_of_outcome(effect: Result) -> bool:
    """Whether these are effects on the expected outcome, of no single model."""
    return bool(effect.attrs.get("target") == "outcome")


def stores_errors(effect: Result) -> bool:
    """Whether covariances and degrees of freedom are stored, and do not follow from the bins.

    So it is of standard errors by groups of rows, and by the parameters of a model.
    """
    return is_grouped(effect) or "effect_df" in effect


def resolution(mean: FloatArray, error: float) -> float:
    """Local effects that differ by less than this are equal: rounding, or the model's own error."""
    return max(error, 16 * float(np.spacing(np.nanmax(np.abs(mean), initial=0.0))))
