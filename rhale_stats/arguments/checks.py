"""Checks of single arguments. Messages say parameter, expectation, what came, what to do."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, cast

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arguments.peers import other_value
from rhale_stats.arguments.words import first_rows, shown

LIBRARIES = ("dask", "dask_expr")
TABLE = "a DataFrame or a two-dimensional array of shape (rows, features)"
TAKEN = "local_effects, and what follows from it, ale and pdp"


def is_path(X: Any) -> bool:
    """Whether a table is given by the path of its files."""
    return isinstance(X, str | os.PathLike)


def is_in_chunks(X: Any) -> bool:
    """Whether a table or an array is computed by dask when it is needed."""
    data = getattr(X, "data", X) if type(X).__module__.startswith("xarray") else X
    return type(data).__module__.partition(".")[0] in LIBRARIES or (
        type(X).__module__.startswith("xarray") and bool(getattr(X, "chunks", None))
    )


def refuse_chunks(X: Any, parameter: str) -> None:
    """Raise ``TypeError`` for tables in chunks, which may be larger than the memory."""
    if is_path(X):
        raise TypeError(
            f"{parameter} must be {TABLE}; got {shown(X)}. Read the file, or a sample of its rows. "
            f"{TAKEN} take paths of Parquet files."
        )
    if is_in_chunks(X):
        raise TypeError(
            f"{parameter} must be in memory here; got {type(X).__module__.partition('.')[0]} "
            f"{type(X).__name__}, which is in chunks. Use {parameter}.compute() if it fits into "
            f"memory, or a sample of its rows. {TAKEN} take tables in chunks."
        )


# --- checks of single arguments -------------------------------------------------------------------


# Fourth powers of such sizes, and of 1e-15 times these, neither overflow nor underflow.
MIN_SIZE, MAX_SIZE = 1e-60, 1e60


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
    if size and not MIN_SIZE <= size <= MAX_SIZE:
        raise ValueError(
            f"{what} must be 0 or between {MIN_SIZE:g} and {MAX_SIZE:g}, so that the fourth "
            f"powers in standard errors stay within floating point; got {size:.3g}. {advice}"
        )


def check_choice(parameter: str, value: object, allowed: Sequence[str | None]) -> None:
    """Raise ``ValueError`` unless ``value`` is one of ``allowed``."""
    # Arrays and Datasets compare element by element.
    if not (isinstance(value, str) and value in allowed):
        choices = ", ".join(repr(choice) for choice in allowed)
        came = repr(value) if isinstance(value, str) else shown(value)
        at_value = parameter == "centering" and (is_number(value) or isinstance(value, Mapping))
        more = (
            " A curve relative to a value: plot(effect, 'age', reference=40)." if at_value else ""
        )
        more = more or (other_value(value, allowed) if isinstance(value, str) else "")
        raise ValueError(f"{parameter} must be one of {choices}; got {came}.{more}")


def centering_text(centering: object, allowed: Sequence[str]) -> str:
    """How a curve is centred, as text: a choice, or a value of the feature."""
    try:
        value = float(centering)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        value = None
    if value is None or not (is_number(centering) or isinstance(centering, str)):
        check_choice("centering", centering, allowed)
        return str(centering)
    if not np.isfinite(value):
        raise ValueError(f"centering must be a finite value; got {centering!r}.")
    return repr(value)


def _is_whole(value: object) -> bool:
    """Whether this is a whole number; booleans are not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def check_count(parameter: str, value: Any, minimum: int) -> None:
    """Raise unless ``value`` is a whole number of at least ``minimum``."""
    if not _is_whole(value):
        raise TypeError(f"{parameter} must be a whole number; got {shown(value)}.")
    if value < minimum:
        raise ValueError(f"{parameter} must be at least {minimum}; got {value}.")


def check_n_jobs(parameter: str, value: object) -> None:
    """Raise unless ``value`` is a number of processes as joblib counts them."""
    if not (value is None or _is_whole(value)):
        raise TypeError(f"{parameter} must be a whole number or None; got {shown(value)}.")
    if value == 0:
        raise ValueError(
            f"{parameter} must be a number of processes, or negative to count back from all CPUs "
            f"(-1: all of them); got 0."
        )


def is_number(value: object) -> bool:
    """Whether this is a real number; booleans and arrays of one number are not."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def check_number(parameter: str, value: object) -> None:
    """Raise ``TypeError`` unless ``value`` is a real number."""
    if not is_number(value):
        has_item = getattr(value, "shape", None) == () and not isinstance(value, np.generic)
        raise TypeError(
            f"{parameter} must be a number; got {shown(value)}."
            f"{' Take its value: .item().' if has_item else ''}"
        )


def check_share(parameter: str, value: Any) -> None:
    """Raise unless ``value`` is a number strictly between 0 and 1."""
    check_number(parameter, value)
    if not 0 < value < 1:
        percent = f" For {value:g} % pass {value / 100:g}." if 1 < value < 100 else ""
        raise ValueError(f"{parameter} must lie strictly between 0 and 1; got {value!r}.{percent}")


def check_rng(parameter: str, value: Any) -> None:
    """Raise unless ``value`` is a generator of random numbers, a seed, or None."""
    if value is None or isinstance(value, np.random.Generator):
        return
    if not _is_whole(value):
        raise TypeError(
            f"{parameter} must be a numpy Generator, a whole number as its seed, or None; "
            f"got {shown(value)}."
        )
    if value < 0:
        raise ValueError(f"{parameter} must be at least 0 where it is a seed; got {value}.")


# What functions that a user writes do.
FUNCTIONS = {
    "fit": " It fits a model to rows, and returns its effect.",
    "estimate": " It makes the effect of a fitted model on rows: estimate=rhale, say. The third "
    "argument are all rows, with the outcome.",
}


def check_callable(parameter: str, value: object) -> None:
    """Raise ``TypeError`` unless ``value`` can be called."""
    if not callable(value):
        raise TypeError(
            f"{parameter} must be a function; got {shown(value)}.{FUNCTIONS.get(parameter, '')}"
        )


Check: TypeAlias = Callable[[str, Any], None]
# What names one feature.
FEATURE = (str, int, np.integer)


def of_types(what: str, *types: type) -> Check:
    """A check, by ``TypeError``, that an argument is of one of these types."""

    def check(parameter: str, value: object) -> None:
        if not isinstance(value, types):
            raise TypeError(f"{parameter} must be {what}; got {shown(value)}.")

    return check


def is_listed(value: object) -> bool:
    """Whether this is a list or an array of something, no text and no mapping."""
    return (
        hasattr(value, "__len__")
        and hasattr(value, "__getitem__")
        and not isinstance(value, str | bytes | Mapping)
        and getattr(value, "shape", None) != ()
    )


def listed_or(what: str, is_other: Callable[[Any], bool] = lambda _: False) -> Check:
    """A check, by ``TypeError``, that an argument is an array or a list, unless it is another.

    Functions themselves check entries and their number.
    """

    def check(parameter: str, value: object) -> None:
        if is_other(value):
            return
        if not is_listed(value):
            column = f" Take the column: {parameter}=X[{value!r}]." * isinstance(value, str)
            raise TypeError(f"{parameter} must be {what}; got {shown(value)}.{column}")
        if isinstance(value, list | tuple):
            try:
                np.asarray(value)
            except ValueError as error:
                raise TypeError(
                    f"{parameter} must be {what}; got a {type(value).__name__} of parts of "
                    f"different shapes."
                ) from error

    return check


def is_frame(value: object) -> bool:
    """Whether this is a table of a library of frames, or a mapping of columns."""
    return isinstance(value, Mapping) or hasattr(value, "collect_schema")


COLUMN = "an array with one entry a row"
check_flag = of_types("True or False", bool, np.bool_)
check_text = of_types("a text", str)
check_feature = of_types("the name or number of one feature", *FEATURE)
check_table = listed_or(TABLE, is_frame)
# A path is that of a table, which few functions take.
check_rows = listed_or(TABLE, lambda value: is_path(value) or is_frame(value))
check_column = listed_or(COLUMN)
check_name_or_column = listed_or(COLUMN, lambda value: isinstance(value, FEATURE))
check_labels = listed_or(
    "a label or a list of labels", lambda value: isinstance(value, str | int | float | np.generic)
)
check_labels_listed = listed_or("a list of labels")
# None means that derivatives are taken from the model, by differences.
check_derivatives = listed_or(
    "a function of X or a derivative for each row and column",
    lambda value: value is None or callable(value),
)
check_order = listed_or(
    "the name of an order, a list of levels, or a mapping of features to one of these",
    lambda value: isinstance(value, str | Mapping) and not isinstance(value, xr.Dataset),
)


def check_features(parameter: str, value: object) -> None:
    """Raise ``TypeError`` unless ``value`` is a feature or a sequence of features."""
    several = is_listed(value)
    if len(getattr(value, "shape", ())) > 1:
        raise TypeError(
            f"{parameter} must be names or numbers of columns; got {shown(value)}. A table is "
            f"X=, or conditioning= where its columns split the rows."
        )
    each: Any = [value]
    if several:
        # NumPy would make a table of a list of pairs.
        each = value if isinstance(value, list | tuple) else np.asarray(value, dtype=object)
    for feature in each:
        if not isinstance(feature, FEATURE):
            hint = ""
            if isinstance(feature, tuple):
                hint = f" Pairs are for pdp and ale2: ale2(model, X, {feature})."
            if isinstance(feature, float):
                hint = " No outcome is needed here; explain takes it."
            if isinstance(feature, xr.Dataset):
                hint = " Several results are a list: [a, b]."
            raise TypeError(
                f"{parameter} must be names or numbers of columns; "
                f"got {shown(feature)}{' among them' if several else ''}.{hint}"
            )


def check_features_and_pairs(parameter: str, value: object) -> None:
    """Raise ``TypeError`` unless ``value`` is a feature or a sequence of features or pairs."""
    if is_listed(value) and not isinstance(value, np.ndarray):
        for feature in list(value):  # type: ignore[call-overload]
            check_features(parameter, feature)
    else:
        check_features(parameter, value)


def check_features_or_contrasts(parameter: str, value: object) -> None:
    """Raise ``TypeError`` unless ``value`` is features, or a mapping from them."""
    check_features(parameter, list(value) if isinstance(value, Mapping) else value)


def check_background(parameter: str, value: object) -> None:
    """Raise unless ``value`` is a number of rows, or may be a table of them."""
    if isinstance(value, int | np.integer):
        check_count(parameter, value, 1)
    else:
        listed_or("a number of rows, or a table of them", is_frame)(parameter, value)


def check_points(parameter: str, value: object) -> None:
    """Raise ``TypeError`` unless ``value`` is numbers or levels; a tuple is for a surface."""
    if isinstance(value, tuple):
        return
    if isinstance(value, Mapping | set) or callable(value):
        more = " Values of several features: effect.rhale.at(x)." * isinstance(value, Mapping)
        raise TypeError(f"{parameter} must be numbers or levels; got {shown(value)}.{more}")
    if is_listed(value):
        listed_or("numbers or levels")(parameter, value)


def check_result(parameter: str, value: object) -> None:
    """Raise ``ValueError`` where a result lost its dimension ``feature``.

    The function itself checks that it is a Dataset of the right kind.
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


def check_shown(parameter: str, value: object) -> None:
    """Raise ``TypeError`` for a model in place of a result of it."""
    if callable(value) or hasattr(value, "predict"):
        raise TypeError(
            f"{parameter} must be what a function of rhale_stats returned; got {shown(value)}. Of "
            f"a model: rhale(model, X)."
        )
    check_result(parameter, value)


def check_results(parameter: str, value: object) -> None:
    """Check each of several results."""
    if not is_listed(value):
        raise TypeError(
            f"{parameter} must be a sequence of Datasets; got {shown(value)}. Put them into a "
            f"list or tuple."
        )
    for result in cast(Sequence[object], value):
        if not isinstance(result, xr.Dataset):
            raise TypeError(
                f"{parameter} must be a sequence of Datasets; got {shown(result)} among them."
            )
        check_result(parameter, result)


def at_least(minimum: int) -> Callable[[str, object], None]:
    """Check that an argument is a whole number of at least ``minimum``."""
    return partial(check_count, minimum=minimum)


def check_percentiles(bounds: Any) -> tuple[float, float]:
    """Two percentiles of the rows, from 0 to 100; ``ValueError`` for anything else.

    Both up to 1, they are shares of the rows, as in scikit-learn.
    """
    is_several = isinstance(bounds, list | tuple) or (
        isinstance(bounds, np.ndarray) and bounds.ndim
    )
    pair = list(bounds) if is_several else []
    numbers = [end for end in pair if isinstance(end, int | float | np.integer | np.floating)]
    values = np.asarray(numbers if len(numbers) == len(pair) == 2 else [0.0, 0.0])
    if values.dtype.kind not in "iuf" or not 0 <= values[0] < values[1] <= 100:
        raise ValueError(
            f"percentiles must be two numbers from 0 to 100, the smaller first; got {bounds!r}. "
            f"(1, 99) or (0.01, 0.99) leaves out 1 % of the rows at either end, (0, 100) none."
        )
    low, high = (100.0 if values[1] <= 1 else 1.0) * values
    return float(low), float(high)
