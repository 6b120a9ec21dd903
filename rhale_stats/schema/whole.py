"""Whether a result is whole: as a public function returned it, but for what was selected."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from traceback import extract_tb
from typing import Any

import numpy as np
import xarray as xr
from pandas.errors import InvalidIndexError

from rhale_stats.arguments.rows import NO_DIMENSION
from rhale_stats.arguments.words import LABELS, LONGEST_SHOWN, PACKAGE, listed, shown
from rhale_stats.schema.identity import FINGERPRINT
from rhale_stats.schema.kinds import AVERAGES, EFFECT, kind_of
from rhale_stats.schema.variable_table import VARIABLES

# Where a Dataset in memory keeps what it was made of; it is neither printed nor written to files.
MADE = "rhale_stats"
# Dimensions along which results are selected; all others hold numbers that belong together.
SELECTED = frozenset(
    {"by", "chain", "conditioning", "direction", "draw", "feature", "fold", "obs", "obs_background"}
    | {"output", "pair", "region", "repeat", "replicate", "term"}
)
# What `std_error`, `confint` and `confband` add, and make again where it is missing; and what
# belongs to a standard error that is there.
ADDED, OF_ERROR = ("_se", "_cov", "_ci", "_band"), ("_skewness", "_df", "_se_rows", "_se_model")
# Dimensions that are left out together: bins with their edges.
PAIRED_DIMS = (("bin", "edge"), ("cell", "cell_edge"))
# Kinds of numbers that one kind may become: integers with missing values, texts of a file.
BECOMES = {"i": "if", "u": "uif", "b": "bif", "U": "UO"}
SITE, PYTHON = Path(np.__file__).parents[1], str(Path(contextlib.__file__).parent)
LIBRARIES = (
    *(PACKAGE, LABELS),
    *[str(SITE / name) for name in ("matplotlib", "numpy", "pandas", "scipy", "seaborn")],
)
# Parameters that may be a Dataset of the user's own.
TABLES = ("X", "conditioning", "data", "x")
# Coordinates, and variables of local effects, over features: they are in no table of variables.
OF_FEATURE = (
    *("feature_kind", "feature_units", "local_effect_method", "feature_column", "n_bins"),
    *("n_grid", "bin_left", "bin_right", "grid_value", "x", "local_effect"),
    *("local_effect_error", "local_effect_bias", "cell_value", "n_missing"),
)
# Coordinates of averages, and dimensions of which one may have been selected.
OF_TERM, DIMS_OF_ONE = ("contrast", "kind", "null", "of"), ("by", "feature", "term")
# Errors that no `raise` of the package puts in words; and those that damages can lead to.
RAW = (ArithmeticError, AssertionError, AttributeError, IndexError, StopIteration)
DAMAGE = (*RAW, InvalidIndexError, KeyError, TypeError, ValueError)


def remember_parts(result: Any) -> Any:
    """A result that remembers the dimensions and kinds of its variables, and its attributes."""
    if isinstance(result, xr.DataTree):
        for node in result.subtree:
            node.encoding = _with_parts(node)
    if isinstance(result, xr.Dataset):
        result.encoding = _with_parts(result)
    return result


def _with_parts(result: xr.Dataset | xr.DataTree) -> dict[str, Any]:
    parts = {str(name): (data.dims, data.dtype.kind) for name, data in result.variables.items()}
    axes = {
        dim: result.variables[dim].values if dim in result.coords else np.arange(size)
        for dim, size in result.sizes.items()
        if dim not in SELECTED
    }
    return {**result.encoding, MADE: (parts, axes, dict(result.attrs))}


def with_feature(value: Any) -> Any:
    """A result of which one feature was selected by name, with its dimension ``feature`` again.

    The same where it is not known which variables had it, and of the trees of one feature, in which
    it is the label. Of averages so are ``term`` and ``by``.
    """
    if AVERAGES.holds(value):
        return _with_dimension(_with_dimension(value, "term"), "by")
    return _with_dimension(value, "feature")


def _with_dimension(value: Any, dim: str) -> Any:
    if not isinstance(value, xr.Dataset) or dim not in value.coords or "parent" in value:
        return value
    if dim in value.dims:
        return value
    table = VARIABLES.get(kind_of(value) or EFFECT, {})
    dims_of: dict[str, tuple[str, ...]] = dict.fromkeys(OF_FEATURE, ("feature",))
    dims_of |= dict.fromkeys(OF_TERM, ("term",))
    dims_of |= {name: dims for name, (dims, *_) in table.items()}
    if dim == "by":
        dims_of |= {str(name): (dim,) for name in value.data_vars}
    dims_of |= {name: dims for name, (dims, _) in value.encoding.get(MADE, ({},))[0].items()}
    # From a file, a variable that is in no table.
    if not set(map(str, value.variables)) <= {*DIMS_OF_ONE, *value.dims, *dims_of}:
        return value
    expanded = {
        name: variable.expand_dims(dim)
        for name, variable in value.variables.items()
        if name == dim or dim in dims_of.get(str(name), ())
    }
    data = {name: expanded[name] for name in expanded if name in value.data_vars}
    coords = {name: expanded[name] for name in expanded if name not in data}
    out = value.drop_vars(list(coords)).assign(data).assign_coords(coords)
    out.encoding = value.encoding
    return out


def one_feature_of(values: Sequence[Any], keyword: str) -> dict[str, Any]:
    """The keyword with the name of a feature, where a result has one that was selected by it."""
    for value in values:
        if isinstance(value, xr.Dataset) and _with_dimension(value, "feature") is not value:
            return {keyword: str(value["feature"].values)}
    return {}


def refusal(arguments: Mapping[str, Any]) -> ValueError | None:
    """What to raise where a part was taken from a result or replaced; None where all are whole."""
    for parameter, value in arguments.items():
        for result in value if isinstance(value, list | tuple) else [value]:
            if isinstance(result, xr.Dataset) and MADE in result.encoding:
                for what in _changes(result):
                    return ValueError(
                        f"{parameter} must be whole, as made by this package; this one {what}. "
                        f"Select features, outputs, regions or rows only; make it again, and keep "
                        f"all of its variables, coordinates, dimensions and attributes."
                    )
    return None


def _changes(dataset: xr.Dataset) -> Iterator[str]:
    """What a Dataset has otherwise than when it was made."""
    parts, axes, attrs = dataset.encoding[MADE]
    now, dims_now = dict(dataset.variables), set(dataset.sizes)
    for name, before in attrs.items():
        value = dataset.attrs.get(name, before)
        if value is not before and _form(value) != _form(before):
            yield f"has the attribute {name}={shown(value)}"
    if missing := [name for name in attrs if name not in dataset.attrs and name != FINGERPRINT]:
        yield f"has no attribute {listed(missing)}"
    missing = [
        name
        for name in parts
        if name not in now
        and dims_now.issuperset(parts[name][0])
        and not (name == "obs" or _is_again(dataset, name))
    ]
    if missing and "draw" not in dims_now:  # of replicates some are enough
        what = "coordinate" if parts[missing[0]][0] == (missing[0],) else "variable"
        yield f"has no {what} {listed(missing)}"
    for name in parts.keys() & now.keys():
        dims, form = parts[name]
        if dims != now[name].dims and (
            missing_dims := [
                axis
                for axis in dims
                if axis not in now[name].dims and (axis in axes or dataset.sizes.get(axis, 1) > 1)
            ]
        ):
            yield f"has {name!r} without the dimension {missing_dims[0]}"
        if now[name].dtype.kind not in BECOMES.get(form, form) and name != "obs":
            yield f"has {name!r} as {now[name].dtype}"
    for dim, values in axes.items():
        other = next((b if dim == a else a for a, b in PAIRED_DIMS if dim in (a, b)), dim)
        if (dim in dims_now) != (other in dims_now or other not in axes):
            yield f"has {other} without {dim}, which belong together"
        if dim in dims_now:
            left = now[dim].values if dim in now else np.arange(dataset.sizes[dim])
            if not np.array_equal(left[: len(values)], values):
                yield f"has not all of the dimension {dim}, in its order"
    for name in parts.keys() & now.keys():
        is_variance = name.endswith("_cov") and f"{name.removesuffix('_cov')}_se" in now
        if is_variance and not _is_symmetric(now[name]):
            yield f"has {name!r} with rows in another order than columns"


def _is_symmetric(covariance: xr.Variable) -> bool:
    """Whether a covariance along two dimensions, bin and bin_other for instance, is symmetric.

    Where only one of them was selected, nothing can be said. Along edges, the last ones may be
    missing in one of them.
    """
    if "edge_other" in covariance.dims:
        estimated = slice(covariance.sizes["edge_other"])
        covariance = covariance.isel(edge=estimated)
    if any(str(dim).removesuffix("_other") not in covariance.dims for dim in covariance.dims):
        return True
    values = covariance.values
    tolerance = 1e-6 * np.nanmax(np.abs(values), initial=0.0)
    mirrored = values
    for dim in covariance.dims:
        if (other := f"{dim}_other") in covariance.dims:
            mirrored = np.swapaxes(mirrored, *covariance.get_axis_num([dim, other]))
    return values.shape != mirrored.shape or np.allclose(
        values, mirrored, rtol=0, atol=tolerance, equal_nan=True
    )


def _is_again(dataset: xr.Dataset, name: str) -> bool:
    """Whether `std_error`, `confint` or `confband` make a lost variable again.

    What belongs to a standard error is no loss where that is lost, too.
    """
    kind = kind_of(dataset)
    if kind is None or "std_error" not in kind.verbs:
        return False
    errors = [f"{name.removesuffix(end)}_se" for end in OF_ERROR if name.endswith(end)]
    parts = dataset.encoding[MADE][0]
    return name.endswith((*ADDED, "_skewness")) or any(
        error in parts and error not in dataset.variables for error in errors
    )


def explained(error: Exception, args: Mapping[str, Any]) -> Exception:
    """An error as it is where the package raised it in words, or a function of the user did.

    Any other is one of a library or of Python itself: parts of the Datasets that were given are
    missing, or do not fit together. Results that remember their parts are not to blame: those that
    have not all of them are refused.
    """
    results = {key: args[key] for key in args if key not in TABLES and _holds_results(args[key])}
    steps, lost = extract_tb(error.__traceback__), _lost_part(error)
    raised = str(steps[-1].line).startswith("raise ") and not isinstance(error, RAW)
    worded = steps[-1].filename.startswith(PACKAGE) and raised and lost is None
    if (
        worded
        or not (results and isinstance(error, DAMAGE))
        or not all(_is_library(step.filename) for step in steps)
        or (lost is None and all(map(_remembers, results.values())))
    ):
        return error
    if any(isinstance(data, xr.Dataset) and lost in data.data_vars for data in results.values()):
        lost = f"{lost}_se"
    what = f"{type(error).__name__}: {str(error)[:LONGEST_SHOWN]}"
    advice = f" std_error({next(iter(results))}) adds it." if str(lost).endswith(ADDED) else ""
    return ValueError(
        f"{' and '.join(results)} must be whole, as made by this package; "
        + (f"{lost!r} is missing.{advice}" if lost else f"parts do not fit together ({what}).")
        + " Make it again, and keep all of its variables, coordinates, dimensions and attributes."
    )


def _is_library(file: str) -> bool:
    """Whether a file is of the package, of a library that it calculates by, or of Python."""
    return file.startswith(LIBRARIES) or (
        file.startswith(PYTHON) and not file.startswith(str(SITE))
    )


def _lost_part(error: Exception) -> str | None:
    """What was looked for in a Dataset in vain: a key, which is no sentence, or a dimension."""
    if not isinstance(error, KeyError):
        match = NO_DIMENSION.match(str(error))
        return match[1] if match else None
    cause: BaseException | None = error
    while isinstance(cause, KeyError):
        error, cause = cause, cause.__cause__ or cause.__context__
    name = error.args[0] if error.args else None
    return name if isinstance(name, str) and name.isidentifier() else None


def _remembers(value: Any) -> bool:
    """Whether a result, or each of a list, remembers what it was made of."""
    each = value if isinstance(value, list | tuple) else [value]
    return all(MADE in getattr(element, "encoding", ()) for element in each)


def _holds_results(value: Any) -> bool:
    """Whether an argument is a result, or a list that holds one."""
    each = value if isinstance(value, list | tuple) else [value]
    return any(isinstance(element, xr.Dataset | xr.DataTree) for element in each)


def _form(value: Any) -> str:
    """What an attribute is: text, a number, or several of one of them."""
    return (
        "U" if isinstance(value, str) else str(np.ndim(value)) + str(np.asarray(value).dtype.kind)
    )
