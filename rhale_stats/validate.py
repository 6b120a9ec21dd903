"""Checks of input. Every message says the parameter, what was expected, what came, what to do.

A parameter means the same in every public function. `CHECKS` says of each what it may be, and
`checked` applies the table where a user calls.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial, wraps
from inspect import signature
from pathlib import Path
from traceback import walk_tb
from types import FrameType
from typing import Any, TypeVar, cast

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from rhale_stats.schema import answer_first, in_order

# So many offending rows are named in a message.
ROWS_NAMED = 5
# Fourth powers of such sizes, and of what is 1e-15 of them, are numbers that are not 0.
LEAST_SIZE, MOST_SIZE = 1e-60, 1e60
# A value of more characters than this is named by its type in a message.
LONGEST_SHOWN = 80
PACKAGE, LABELS = (str(Path(file).parent) for file in (__file__, str(xr.__file__)))
# How xarray says that a Dataset lacks a dimension.
NO_DIMENSION = re.compile(r"(?:Dimensions \{)?'(\w+)'\}? (?:do not exist|not found in array dim)")

F = TypeVar("F", bound=Callable[..., Any])


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the user's line: that of the first caller outside the package."""
    level = 1
    caller: FrameType | None = sys._getframe()
    while caller is not None and caller.f_code.co_filename.startswith(PACKAGE):
        level, caller = level + 1, caller.f_back
    warnings.warn(message, category, stacklevel=level)


def shown(value: object) -> str:
    """What came, for a message: the value where it is short, its type, the shape of an array."""
    kind = type(value).__name__
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and not isinstance(value, np.generic):
        return f"{kind} of shape {shape}"
    scalar = value is None or isinstance(value, str | bytes | int | float | complex | np.generic)
    if scalar or type(value) in (list, tuple):
        text = repr(value)
        if len(text) <= LONGEST_SHOWN:
            return text if value is None else f"{text} of type {kind}"
    return f"{kind} {value.__name__}" if isinstance(value, type) else f"a {kind}"


def first_rows(bad: NDArray[np.bool_]) -> str:
    """Positions of the first offending rows, as text."""
    rows = np.flatnonzero(bad)
    listed = ", ".join(str(row) for row in rows[:ROWS_NAMED])
    return listed + (", ..." if len(rows) > ROWS_NAMED else "")


def check_finite(values: NDArray[np.float64], what: str, feature: str, advice: str) -> None:
    """Raise ``ValueError`` naming the feature, how many values are bad, and the first rows."""
    bad = ~np.isfinite(values)
    if bad.any():
        n_missing = int(np.isnan(values).sum())
        n_infinite = int(bad.sum()) - n_missing
        kinds = [f"{n} {kind}" for n, kind in ((n_missing, "NaN"), (n_infinite, "inf")) if n]
        raise ValueError(
            f"{what} of feature {feature!r} must be finite; got {' and '.join(kinds)} "
            f"in {len(values)} rows (first rows: {first_rows(bad)}). {advice}"
        )


def check_size(size: float, what: str, advice: str) -> None:
    """Raise ``ValueError`` unless a size is 0, or its fourth power is a number, and not 0."""
    if size and not LEAST_SIZE <= size <= MOST_SIZE:
        raise ValueError(
            f"{what} must be 0 or between {LEAST_SIZE:g} and {MOST_SIZE:g}, so that the fourth "
            f"powers in standard errors stay within floating point; got {size:.3g}. {advice}"
        )


def check_choice(parameter: str, value: object, allowed: Sequence[str]) -> None:
    """Raise ``ValueError`` unless ``value`` is one of ``allowed``."""
    # Arrays and Datasets compare element by element.
    if not (isinstance(value, str) and value in allowed):
        choices = ", ".join(repr(choice) for choice in allowed)
        came = repr(value) if isinstance(value, str) else shown(value)
        raise ValueError(f"{parameter} must be one of {choices}; got {came}.")


def check_count(parameter: str, value: object, minimum: int) -> None:
    """Raise unless ``value`` is a whole number of at least ``minimum``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{parameter} must be a whole number; got {shown(value)}.")
    if value < minimum:
        raise ValueError(f"{parameter} must be at least {minimum}; got {value}.")


def is_number(value: object) -> bool:
    """Whether this is a real number; True and False are none, and neither is an array of one."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def check_number(parameter: str, value: object) -> None:
    """Raise ``TypeError`` unless ``value`` is a real number."""
    if not is_number(value):
        one = getattr(value, "shape", None) == () and not isinstance(value, np.generic)
        raise TypeError(
            f"{parameter} must be a number; got {shown(value)}."
            f"{' Take its value: .item().' if one else ''}"
        )


def check_share(parameter: str, value: Any) -> None:
    """Raise unless ``value`` is a number strictly between 0 and 1."""
    check_number(parameter, value)
    if not 0 < value < 1:
        raise ValueError(f"{parameter} must lie strictly between 0 and 1; got {value!r}.")


def check_level(level: float) -> None:
    """Raise ``TypeError`` or ``ValueError`` unless 0 < level < 1."""
    check_share("level", level)


def check_significance(significance: float) -> None:
    """Raise ``TypeError`` or ``ValueError`` unless 0 < significance < 1."""
    check_share("significance", significance)


def check_flag(parameter: str, value: object) -> None:
    """Raise ``TypeError`` unless ``value`` is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{parameter} must be True or False; got {shown(value)}.")


def check_rng(parameter: str, value: object) -> None:
    """Raise unless ``value`` is a generator of random numbers, a seed, or None."""
    if value is None or isinstance(value, np.random.Generator):
        return
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(
            f"{parameter} must be a numpy Generator, a whole number as its seed, or None; "
            f"got {shown(value)}."
        )
    if value < 0:
        raise ValueError(f"{parameter} must be at least 0 where it is a seed; got {value}.")


def check_callable(parameter: str, value: object) -> None:
    """Raise ``TypeError`` unless ``value`` can be called."""
    if not callable(value):
        raise TypeError(f"{parameter} must be a function; got {shown(value)}.")


def check_derivatives(parameter: str, value: object) -> None:
    """Raise ``TypeError`` unless ``value`` is a function or may be a table of derivatives.

    None means that derivatives are taken from the model, by differences.
    """
    if value is not None and not callable(value):
        _check_listed(parameter, value, "a function of X or a derivative for each row and column")


def check_feature(parameter: str, value: object) -> None:
    """Raise ``TypeError`` unless ``value`` may name one feature."""
    if not isinstance(value, str | int | np.integer):
        raise TypeError(
            f"{parameter} must be the name or number of one feature; got {shown(value)}."
        )


def check_features(parameter: str, value: object) -> None:
    """Raise ``TypeError`` unless ``value`` is a feature or a sequence of features."""
    several = is_listed(value)
    for one in np.asarray(value, dtype=object) if several else [value]:
        if not isinstance(one, str | int | np.integer):
            raise TypeError(
                f"{parameter} must be names or numbers of columns; "
                f"got {shown(one)}{' among them' if several else ''}."
            )


def check_column(parameter: str, value: object) -> None:
    """Raise ``TypeError`` unless ``value`` may hold one entry a row.

    Whether the entries fit, and how many they are, says the function itself.
    """
    _check_listed(parameter, value, "an array with one entry a row")


def check_table(parameter: str, value: object) -> None:
    """Raise ``TypeError`` unless ``value`` may be a table of rows and columns."""
    _check_listed(
        parameter, value, "a DataFrame or a two-dimensional array of shape (rows, features)"
    )


def check_labels(parameter: str, value: object) -> None:
    """Raise ``TypeError`` unless ``value`` is one label or a list of labels."""
    if not isinstance(value, str | int | float | np.generic):
        _check_listed(parameter, value, "a label or a list of labels")


def check_background(parameter: str, value: object) -> None:
    """Raise unless ``value`` is a number of rows, or may be a table of them."""
    if isinstance(value, int | np.integer):
        check_count(parameter, value, 1)
    else:
        _check_listed(parameter, value, "a number of rows, or a table of them")


def check_points(parameter: str, value: object) -> None:
    """Raise ``TypeError`` unless ``value`` is numbers or levels; a tuple is for a surface."""
    if isinstance(value, tuple):
        return
    if isinstance(value, Mapping | set) or callable(value):
        raise TypeError(f"{parameter} must be numbers or levels; got {shown(value)}.")
    if is_listed(value):
        _check_listed(parameter, value, "numbers or levels")


def check_order(parameter: str, value: object) -> None:
    """Raise ``TypeError`` unless ``value`` is a name, levels, or one of these for each feature."""
    if not isinstance(value, str | Mapping) or isinstance(value, xr.Dataset):
        _check_listed(
            parameter,
            value,
            "the name of an order, a list of levels, or a mapping of features to one of these",
        )


def check_labels_listed(parameter: str, value: object) -> None:
    """Raise ``TypeError`` unless ``value`` is a list of labels."""
    _check_listed(parameter, value, "a list of labels")


def check_text(parameter: str, value: object) -> None:
    """Raise ``TypeError`` unless ``value`` is a text."""
    if not isinstance(value, str):
        raise TypeError(f"{parameter} must be a text; got {shown(value)}.")


def _check_listed(parameter: str, value: object, what: str) -> None:
    if not is_listed(value):
        raise TypeError(f"{parameter} must be {what}; got {shown(value)}.")
    if isinstance(value, list | tuple):
        try:
            np.asarray(value)
        except ValueError as error:
            raise TypeError(
                f"{parameter} must be {what}; got a {type(value).__name__} of parts of different "
                f"shapes."
            ) from error


def is_listed(value: object) -> bool:
    """Whether this is a list or an array of something, no text and no mapping."""
    return (
        hasattr(value, "__len__")
        and hasattr(value, "__getitem__")
        and not isinstance(value, str | bytes | Mapping)
        and getattr(value, "shape", None) != ()
    )


def check_result(parameter: str, value: object) -> None:
    """Raise ``ValueError`` where a result lost its dimension ``feature``.

    That it is a Dataset, and of which kind, says the function itself.
    """
    if not isinstance(value, xr.Dataset):
        return
    # Of the trees of one feature it is the label.
    if "feature" in value.coords and "feature" not in value.dims and "parent" not in value:
        name = str(value["feature"].values)
        raise ValueError(
            f"{parameter} must keep its dimension feature; this one is of feature {name!r} without "
            f"it. Select with a list: {parameter}.sel(feature=[{name!r}])."
        )


def check_results(parameter: str, value: object) -> None:
    """Check each of several results."""
    if not is_listed(value):
        raise TypeError(f"{parameter} must be a sequence of Datasets; got {shown(value)}.")
    for one in cast(Sequence[object], value):
        if not isinstance(one, xr.Dataset):
            raise TypeError(
                f"{parameter} must be a sequence of Datasets; got {shown(one)} among them."
            )
        check_result(parameter, one)


def _at_least(minimum: int) -> Callable[[str, object], None]:
    return partial(check_count, minimum=minimum)


# What a parameter may be, in whatever public function it stands. The default of a function is
# accepted besides, such as None. What differs between functions (choices, Datasets, bins, tables)
# they check themselves.
CHECKS: dict[str, Callable[[str, Any], None]] = {
    **dict.fromkeys(("honest_fraction", "level", "significance"), check_share),
    **dict.fromkeys(
        ("delta", "discount", "factor", "min_drop", "min_share"),
        check_number,
    ),
    **dict.fromkeys(
        (
            *(
                "chains",
                "jobs",
                "max_bins",
                "max_features",
                "min_obs",
                "n_bins",
                "n_columns",
                "n_draws",
            ),
            *("n_repeats", "n_resamples", "n_thresholds"),
        ),
        _at_least(1),
    ),
    **dict.fromkeys(("n_folds", "n_grid"), _at_least(2)),
    **dict.fromkeys(("ddof", "degree", "max_depth", "n_permutations"), _at_least(0)),
    **dict.fromkeys(
        (
            *("contour", "honest", "keep_answers", "normalize", "pairwise", "progress", "rebin"),
            *("refine", "std_error_moments", "studentize"),
        ),
        check_flag,
    ),
    "rng": check_rng,
    **dict.fromkeys(("dim", "method", "what"), check_text),
    "output": check_labels,
    "background": check_background,
    "names": check_labels_listed,
    "order": check_order,
    "x": check_points,
    **dict.fromkeys(("X", "conditioning", "data"), check_table),
    "jacobian": check_derivatives,
    "feature": check_feature,
    **dict.fromkeys(("categorical", "features"), check_features),
    **dict.fromkeys(("groups", "strata", "target", "weights", "y"), check_column),
    **dict.fromkeys(("fit", "statistic"), check_callable),
    **dict.fromkeys(("paired", "results"), check_results),
    **dict.fromkeys(
        (
            *("a", "b", "boot", "check", "comparison", "effect", "found", "global_effect", "local"),
            *("profile", "result", "surface", "truth"),
        ),
        check_result,
    ),
}


def checked(function: F) -> F:
    """The function behind a door at which arguments are checked by `CHECKS`.

    Datasets may come with their dimensions in any order, and are returned with the answer first.
    Of one that lost a part that the function needs, the error says so.
    """
    parameters = signature(function).parameters
    names = list(parameters)
    checks = {name: CHECKS[name] for name in names if name in CHECKS}

    def admitted(name: str, value: Any) -> Any:
        if isinstance(value, xr.Dataset):
            for dim, what in (("feature", "feature"), ("obs", "row")):
                if value.sizes.get(dim) == 0:
                    raise ValueError(f"{name} must have at least one {what}; got none.")
            return in_order(value)
        if type(value) in (list, tuple) and any(isinstance(one, xr.Dataset) for one in value):
            return type(value)(admitted(name, one) for one in value)
        return value

    def check(name: str, value: Any) -> Any:
        if name in checks and value is not parameters[name].default:
            checks[name](name, value)
        return admitted(name, value)

    @wraps(function)
    def door(*args: Any, **kwargs: Any) -> Any:
        # What is too much is left for Python to say.
        few = [check(name, value) for name, value in zip(names, args, strict=False)]
        named = {name: check(name, value) for name, value in kwargs.items()}
        try:
            found = function(*few, *args[len(few) :], **named)
        except (KeyError, ValueError) as error:
            given = {**dict(zip(names, few, strict=False)), **named}
            datasets = [name for name, value in given.items() if isinstance(value, xr.Dataset)]
            lost = _lost_part(error)
            if lost is None or not datasets:
                raise
            raise ValueError(
                f"{' and '.join(datasets)} must be whole, as made by this package; {lost!r} is "
                f"missing. Make it again, and keep all of its variables, coordinates, dimensions "
                f"and attributes."
            ) from error
        return answer_first(found) if isinstance(found, xr.Dataset) else found

    return cast(F, door)


def _lost_part(error: KeyError | ValueError) -> str | None:
    """What was looked for in a Dataset in vain, by this package and not by a user's function.

    A key, which is no sentence, or a dimension that xarray did not find.
    """
    files = [frame.f_code.co_filename for frame, _ in walk_tb(error.__traceback__)]
    if not all(file.startswith((PACKAGE, LABELS)) for file in files):
        return None
    if isinstance(error, ValueError):
        if files[-1].startswith(LABELS) and "must be a permuted list" in str(error):
            return "a dimension"
        found = NO_DIMENSION.match(str(error)) if files[-1].startswith(LABELS) else None
        return found[1] if found else None
    cause: BaseException | None = error
    while isinstance(cause, KeyError):
        error, cause = cause, cause.__cause__ or cause.__context__
    name = error.args[0] if error.args else None
    return name if isinstance(name, str) and name.isidentifier() else None


def check_parameters(rule: Any) -> None:
    """Check the parameters of a dataclass by `CHECKS`."""
    for parameter in fields(rule):
        value = getattr(rule, parameter.name)
        if parameter.name in CHECKS and value is not parameter.default:
            CHECKS[parameter.name](parameter.name, value)


def as_numbers(values: Any, what: str) -> NDArray[np.float64]:
    """A new float array of what a user gave; ``TypeError`` unless these are real numbers."""
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "biufO":
            raise TypeError(f"numbers of dtype {array.dtype}")
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{what} must be numbers; got {shown(values)}.") from error


def as_edges(edges: ArrayLike, what: str) -> NDArray[np.float64]:
    """Bin edges as a new float array; raise ``ValueError`` unless they strictly increase."""
    array = as_numbers(edges, what)
    if array.ndim != 1 or len(array) < 2:
        raise ValueError(
            f"{what} must be a one-dimensional sequence of at least two numbers; "
            f"got an array of shape {array.shape}."
        )
    if not np.isfinite(array).all():
        raise ValueError(f"{what} must be finite; got {array.tolist()}.")
    steps = np.diff(array)
    if (steps <= 0).any():
        at = int(np.argmax(steps <= 0))
        raise ValueError(
            f"{what} must increase strictly; got {array[at]!r} followed by {array[at + 1]!r} "
            f"at positions {at} and {at + 1}. Sort the edges and drop repeated ones."
        )
    return array


def as_weights(
    weights: ArrayLike, n_rows: int, kind: str, index: pd.Index[Any] | None = None
) -> NDArray[np.float64]:
    """Row weights as a new float array of length ``n_rows``, fit for their (valid) kind.

    A Series goes by the labels of ``index``, where there is one.
    """
    if index is not None and isinstance(weights, pd.Series):
        weights = aligned(weights, np.asarray(index), "weights")
    if np.ma.is_masked(weights):
        raise ValueError(
            "weights must be plain numbers; got a masked array, whose mask would be ignored. "
            "Give masked rows the weight 0."
        )
    if np.iscomplexobj(weights):
        raise TypeError("weights must be real numbers; got complex ones.")
    array = as_numbers(weights, "weights")
    if array.shape != (n_rows,):
        raise ValueError(
            f"weights must hold one number a row, shape ({n_rows},); got shape {array.shape}."
        )
    bad = ~(np.isfinite(array) & (array >= 0))
    if bad.any():
        raise ValueError(
            f"weights must be finite and not negative; got {int(bad.sum())} that are not "
            f"(first rows: {first_rows(bad)})."
        )
    bad = array != np.round(array)
    if kind == "frequency" and bad.any():
        raise ValueError(
            f"weights with weight_kind='frequency' count repeated rows and must be whole numbers; "
            f"got {int(bad.sum())} that are not (first rows: {first_rows(bad)}). For survey or "
            f"precision weights use weight_kind='precision'."
        )
    if not (array > 0).any():
        raise ValueError("weights must not all be zero.")
    return array


def storable(index: pd.Index[Any]) -> NDArray[Any]:
    """Labels of rows as netCDF and Zarr can hold them: times in UTC, else numbers or text."""
    if isinstance(index, pd.DatetimeIndex) and index.tz is not None:
        index = index.tz_convert("UTC").tz_localize(None)
    values = np.asarray(index.to_numpy())
    return np.array([str(one) for one in values]) if values.dtype == object else values


def aligned(values: Any, labels: NDArray[Any] | pd.Index[Any] | None, parameter: str) -> Any:
    """Values of rows in the order of the rows, whose ``labels`` those of pandas go by.

    Raises
    ------
    ValueError
        As many values as rows, under other labels.
    """
    if isinstance(values, xr.DataArray) and values.ndim == 1 and values.dims[0] in values.coords:
        values = values.to_series()
    if labels is None or not isinstance(values, pd.Series | pd.DataFrame):
        return values
    own, rows = pd.Index(storable(values.index)), pd.Index(storable(pd.Index(labels)))
    if len(own) != len(rows) or own.equals(rows):
        return values
    if own.is_unique and rows.is_unique:
        at = own.get_indexer(rows)
        if (at >= 0).all():
            return values.iloc[at]
    raise ValueError(
        f"{parameter} must have the index of the rows, in any order; its index has other labels: "
        f"{_first_labels(own)} where the rows have {_first_labels(rows)}. Give it the index of X, "
        f"or pass {parameter}.to_numpy() if its order is that of the rows."
    )


def _first_labels(index: pd.Index) -> str:
    listed = ", ".join(repr(label) for label in index[:3].tolist())
    return listed + (", ..." if len(index) > 3 else "")


def row_codes(
    values: Any,
    labels: NDArray[Any] | None,
    used: NDArray[np.bool_],
    parameter: str,
    rows: str = "rows of local",
) -> NDArray[np.int64]:
    """Numbers from 0 for what is said of every row (its group, its stratum), for the rows used.

    ``labels`` are those of all rows; None where rows have none, and values go by position.
    """
    found = of_rows(values, labels, len(used), parameter, rows)
    given = np.asarray(found)
    missing = np.asarray(pd.isna(given)) & used
    if isinstance(found, np.ma.MaskedArray):
        missing |= np.ma.getmaskarray(found) & used
    if missing.any():
        raise ValueError(
            f"{parameter} must have an entry for every row that is used; got {int(missing.sum())} "
            f"missing (first rows: {first_rows(missing)}). Give these rows an entry, or leave them "
            f"out of local: local.isel(obs=...)."
        )
    return np.asarray(pd.factorize(given[used], sort=True)[0], dtype=np.int64)


def of_rows(
    values: Any,
    labels: NDArray[Any] | None,
    n_rows: int,
    parameter: str,
    rows: str = "rows of local",
) -> Any:
    """Values in the order of the rows, one each; else ``ValueError``."""
    found = aligned(values, labels, parameter)
    if np.shape(found) != (n_rows,):
        raise ValueError(
            f"{parameter} must have one entry for each of {n_rows} {rows}; got shape "
            f"{np.shape(found)}."
        )
    return found
