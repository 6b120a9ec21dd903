"""What averages compare, and over which rows: contrasts of columns, comparisons, and grids."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from rhale_stats.arguments.checks import check_choice, is_number
from rhale_stats.arguments.words import listed, shown
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.models.parametric import IMAGINARY
from rhale_stats.models.table import as_table
from rhale_stats.schema.features import position_of
from rhale_stats.schema.validation import validated

# Slopes by their names in Stata and in marginaleffects, with what is printed.
SLOPES = {"slope": "dY/dX", "eyex": "eY/eX", "eydx": "eY/dX", "dyex": "dY/eX"}
STEPS = ("sd", "iqr", "minmax")
OF_LEVELS = ("reference", "sequential", "pairwise", "levels")
RATIOS = ("ratio", "odds_ratio")
TEXTS = {
    "difference": "{high} - {low}",
    "ratio": "{high} / {low}",
    "log_ratio": "log({high} / {low})",
    "odds_ratio": "odds({high}) / odds({low})",
    "log_odds_ratio": "log(odds({high}) / odds({low}))",
}


def check_comparison(comparison: Any) -> None:
    """Raise unless this is the name of a comparison, or a function of two complex numbers."""
    if not callable(comparison):
        check_choice("comparison", comparison, tuple(TEXTS))
        return
    try:
        np.asarray(comparison(np.full(2, 0.5 + 0j), np.full(2, 0.25)), dtype=np.complex128)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"comparison must be a function of NumPy of the high and the low average, as in "
            f"lambda high, low: high / low - 1; got {shown(comparison)}."
        ) from error


def text_of(comparison: Any) -> str:
    """How a comparison is printed, with places for both sides."""
    if callable(comparison):
        return f"{getattr(comparison, '__name__', 'f').replace('<lambda>', 'f')}({{high}}, {{low}})"
    return TEXTS[comparison]


def contrasts_of(
    contrasts: Any, names: list[str], has_levels: Mapping[str, bool]
) -> dict[str, Any]:
    """The contrast of every column that is changed, by its name; ``names`` are of all columns.

    A word or number for all columns counts for those that it fits; the others have their default.
    Values at which all rows are predicted are a list, whatever they came as.
    """
    by_column = isinstance(contrasts, Mapping)
    by_name = {
        names[position_of(key, names, "contrasts")]: value
        for key, value in (contrasts.items() if by_column else ())
    }
    unknown = sorted(by_name.keys() - has_levels.keys())
    if unknown:
        raise ValueError(
            f"contrasts must be of columns that are changed; got {listed(unknown)}, which features "
            f"leaves out."
        )
    out: dict[str, Any] = {}
    for name, levels in has_levels.items():
        default = "reference" if levels else "slope"
        value = by_name.get(name, default) if by_column else contrasts
        fits = _fits(value, levels=levels)
        if not fits and (by_column or not _fits(value, levels=not levels)):
            of_levels = f"one of {', '.join(map(repr, OF_LEVELS))}, as {name!r} has levels"
            of_numbers = (
                f"one of {', '.join(map(repr, (*SLOPES, *STEPS)))}, a step, a pair (low, high), or "
                f"a list of values"
            )
            allowed = of_levels if levels else f"{of_numbers} for {name!r}"
            if not by_column:
                allowed = f"{of_numbers}, or of levels one of {', '.join(map(repr, OF_LEVELS))}"
            raise ValueError(f"contrasts must be {allowed}; got {shown(value)}.")
        value = value if fits and value is not None else default
        out[name] = list(value) if np.ndim(value) and not isinstance(value, tuple) else value
    return out


def _fits(value: Any, *, levels: bool) -> bool:
    if value is None:
        return True
    if isinstance(value, str):
        return value in (OF_LEVELS if levels else (*SLOPES, *STEPS))
    if levels:
        return False
    if isinstance(value, list | tuple) or np.ndim(value) == 1:
        fits = len(value) == 2 if isinstance(value, tuple) else len(value) > 0
        return fits and all(map(is_number, value))
    return is_number(value) and value != 0


def changes_of(
    x: FloatArray, contrast: Any, every: FloatArray, comparison: Any
) -> tuple[FloatArray, FloatArray, str]:
    """Values of a numeric column before and after a change, and the contrast as it is printed.

    ``every`` has the spread of the column.
    """
    low: Any = x
    high: Any
    difference = ""
    if contrast == "sd":
        spread = float(np.std(every, ddof=1))
        low, high, difference = x - spread / 2, x + spread / 2, "+sd"
        texts = ("(x - sd/2)", "(x + sd/2)")
    elif contrast == "iqr":
        low, high = np.quantile(every, [0.25, 0.75])
        texts = ("Q1", "Q3")
    elif contrast == "minmax":
        low, high, texts = float(every.min()), float(every.max()), ("min", "max")
    elif isinstance(contrast, tuple):
        low, high = map(float, contrast)
        texts = (f"{low:g}", f"{high:g}")
    else:
        step = float(contrast)
        high, difference = x + step, f"{step:+g}"
        texts = ("x", f"(x {'+' if step > 0 else '-'} {abs(step):g})")
    text = text_of(comparison).format(low=texts[0], high=texts[1])
    text = difference if comparison == "difference" and difference else text
    return np.broadcast_to(low, x.shape), np.broadcast_to(high, x.shape), text


def compared(
    high: FloatArray,
    low: FloatArray,
    comparison: Any,
    averaged: Callable[[FloatArray], FloatArray],
    what: str,
) -> FloatArray:
    """Values of every row whose mean is the comparison, and their changes (row, direction + 1).

    A ratio is one of average predictions P and Q: its value in a row is its expansion to first
    order about these, whose deviations are the influences of the row. ``averaged`` gives every row
    the average of the rows that are averaged with it.
    """
    if comparison == "difference":
        return high - low
    p, q = averaged(high[:, -1]), averaged(low[:, -1])
    if callable(comparison):
        value = comparison(p, q)
        moved = comparison(p + IMAGINARY * 1j, q), comparison(p, q + IMAGINARY * 1j)
        by_p, by_q = (np.imag(part) / IMAGINARY for part in moved)
        out = by_p[:, None] * high + by_q[:, None] * low
        out[:, -1] += value - by_p * p - by_q * q
        return np.asarray(out)
    odds, log = "odds" in comparison, comparison.startswith("log")
    size = np.minimum(p, q)
    if odds:
        size = np.minimum(size, 1 - np.maximum(p, q))
    if (size <= 0).any() if log or odds else (q == 0).any():
        between = "between 0 and 1" if odds else "above 0" if log else "other than 0"
        raise ValueError(
            f"comparison={comparison!r} needs average predictions {between}; got "
            f"{p[size.argmin()]:.4g} and {q[size.argmin()]:.4g} for {what}. Use "
            f"comparison='difference'."
        )
    # The comparison is g(p) / g(q), or its logarithm; g'(p) / g(p) is the change of the logarithm.
    by_p, by_q = (1 / (r * (1 - r)) if odds else 1 / r for r in (p, q))
    ratio = (p / (1 - p)) / (q / (1 - q)) if odds else p / q
    value, scale = (np.log(ratio), np.ones(len(p))) if log else (ratio, ratio)
    out = (scale * by_p)[:, None] * high - (scale * by_q)[:, None] * low
    out[:, -1] += value - scale * (by_p * p - by_q * q)
    return np.asarray(out)


def elasticity(
    slopes: FloatArray, predictions: FloatArray, x: FloatArray, contrast: str, what: str
) -> FloatArray:
    """Slopes of logarithms of the output ("eyex", "eydx") and by those of the column ("dyex")."""
    out = slopes.copy()
    if contrast in ("eyex", "eydx"):
        outputs = predictions[:, -1]
        if (outputs == 0).any():
            raise ValueError(
                f"contrasts={contrast!r} needs predictions other than 0 for {what}. Use 'slope'."
            )
        out = slopes / outputs[:, None]
        out[:, :-1] -= (out[:, -1] / outputs)[:, None] * predictions[:, :-1]
    return np.asarray(out * x[:, None]) if contrast in ("eyex", "dyex") else out


# --- grids ----------------------------------------------------------------------------------------


MAX_ROWS = 1_000_000
GRIDS = ("mean", "balanced")
# An attribute of the table: its rows are no sample.
GRID = "rhale_stats_grid"


@validated
def datagrid(X: Any, *, grid: str = "mean", **values: Any) -> pd.DataFrame:
    """All combinations of chosen values of some columns, with the others at typical values.

    Parameters
    ----------
    X : table, or array_like of shape (n_rows, n_columns)
        The table whose columns the rows get.
    grid : {"mean", "balanced"}
        What the other columns hold. "mean": the mean of numbers (rounded in columns of integers),
        and the most frequent value of texts, categories and booleans. "balanced": each level of
        these as well, in all combinations, which is the reference grid of ``emmeans``.
    **values : value, sequence of values, or function
        Values of columns by name; a function is called with the column and returns them.

    Returns
    -------
    DataFrame
        A row a combination, the last column named varies fastest; columns and types as in ``X``.

    Raises
    ------
    KeyError, ValueError
        A column that ``X`` lacks; more than a million rows; a column without any value.

    Examples
    --------
    >>> import pandas as pd
    >>> import rhale_stats as rs
    >>> X = pd.DataFrame({"dose": [1.0, 2.0, 6.0], "arm": ["a", "b", "b"]})
    >>> rs.datagrid(X, dose=[1, 5])
       dose arm
    0   1.0   b
    1   5.0   b
    >>> rs.datagrid(X, grid="balanced")
       dose arm
    0   3.0   a
    1   3.0   b
    """
    check_choice("grid", grid, GRIDS)
    table = as_table(X)
    frame = pd.DataFrame(table.copied(), columns=None if hasattr(X, "columns") else table.names)
    chosen = {
        table.names[position_of(name, table.names, "X")]: wanted for name, wanted in values.items()
    }
    columns = []
    for position, name in enumerate(table.names):
        series = frame.iloc[:, position]
        present = series.dropna()
        if present.empty:
            raise ValueError(f"X must have values of {name!r}; all {len(series)} are missing.")
        if name in chosen:
            wanted = chosen[name](series) if callable(chosen[name]) else chosen[name]
            columns.append(list(wanted) if pd.api.types.is_list_like(wanted) else [wanted])
            texts = [value for value in columns[-1] if isinstance(value, str)]
            if table.is_numeric(position) and texts:
                raise TypeError(
                    f"{name} must be numbers, as in {name}=[20, 40], or a function, as in "
                    f"{name}=numpy.mean; got {texts[0]!r}."
                )
        elif table.is_numeric(position):
            mean = present.mean()
            columns.append([np.rint(mean) if pd.api.types.is_integer_dtype(series) else mean])
        else:
            levels = present.value_counts(sort=False).sort_index()
            levels = levels[levels > 0]
            columns.append(list(levels.index) if grid == "balanced" else [levels.idxmax()])
    n_rows = int(np.prod([float(len(column)) for column in columns]))
    if not 0 < n_rows <= MAX_ROWS:
        raise ValueError(
            f"values must make 1 to {MAX_ROWS:,} rows; got {n_rows:,}: the columns have "
            f"{', '.join(str(len(column)) for column in columns)} values."
        )
    out = pd.DataFrame(list(product(*columns)), columns=frame.columns)
    for position, name in enumerate(frame.columns):
        dtype = frame.dtypes.iloc[position]
        fits = not pd.api.types.is_integer_dtype(dtype) or (out[name] % 1 == 0).all()
        if isinstance(dtype, pd.CategoricalDtype):
            unknown = sorted(set(map(str, out[name])) - set(map(str, dtype.categories)))
            if unknown:
                raise ValueError(f"{name} must be among its categories; got {listed(unknown)}.")
        out[name] = out[name].astype(dtype) if fits else out[name]
    out.attrs[GRID] = True
    return out
