"""What the package asks of a model, whatever library it comes from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

# A function of rows and of numbers of columns: derivatives, (row, column) or (row, output, column).
Gradient: TypeAlias = Callable[[Any, Sequence[int]], Any]


class ModelColumns(NamedTuple):
    """Columns that a model is known to use, by name: the others are no features by default.

    ``levels`` are those that it takes as levels; ``discrete`` says whether numbers with few
    distinct values are features as well.
    """

    names: Sequence[str]
    levels: Sequence[str] = ()
    discrete: bool = False

    def positions(self, names: Sequence[str]) -> list[int]:
        """Numbers of the columns of a table that are used; all if none is known."""
        used = [position for position, name in enumerate(names) if name in self.names]
        return used or list(range(len(names)))


@dataclass(frozen=True)
class Adapter:
    """A model as functions of a table, with what is known of it besides.

    Models of the libraries that `adapters` lists are recognised and need none. Make one for a model
    of another library, or to give a model its derivatives, and pass it as ``model``.

    Parameters
    ----------
    predict : callable
        Function of rows in the form of ``X`` that returns one number a row, or a column for each of
        several outputs.
    gradient : callable, optional
        Function of rows and a list of numbers of columns that returns the derivatives of the
        output with respect to these columns, of shape (n_rows, n_columns), or (n_rows, n_outputs,
        n_columns) of several outputs. `local_effects` takes them in place of central differences
        where they agree with these.
    features : sequence of str, optional
        Columns that the model uses: the default of ``features=``, if they are numeric.
    classes : sequence, optional
        Labels of the outputs, if ``predict`` returns probabilities of classes.

    See Also
    --------
    adapters : The libraries whose models are recognised.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    >>> model = rs.Adapter(
    ...     predict=lambda X: X[:, 0] ** 2 + X[:, 1],
    ...     gradient=lambda X, columns: np.column_stack([2 * X[:, 0], 1 + 0 * X[:, 1]])[:, columns],
    ... )
    >>> local = rs.local_effects(model, X)
    >>> str(local["local_effect_method"].values[0])
    'gradient'
    """

    predict: Callable[[Any], Any]
    gradient: Gradient | None = None
    features: Sequence[str] | None = None
    classes: Sequence[Any] | None = None

    def __post_init__(self) -> None:
        for name in ("predict", "gradient"):
            function = getattr(self, name)
            if not (callable(function) or (name == "gradient" and function is None)):
                raise TypeError(
                    f"{name} must be a function of rows; got {type(function).__name__}."
                )


def is_real(dtype: Any) -> bool:
    """Whether a column of this type holds real numbers, truth values among them."""
    return pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_complex_dtype(dtype)


def numbers(rows: Any, library: str) -> NDArray[np.float64]:
    """Rows as an array of numbers, which is all that some libraries take."""
    if isinstance(rows, np.ndarray):
        return np.asarray(rows, dtype=np.float64)
    unfit = [
        str(name)
        for name, dtype in zip(rows.columns, rows.dtypes, strict=True)
        if not is_real(dtype)
    ]
    if unfit:
        raise TypeError(
            f"X must hold numbers only for a model of {library}; the columns "
            f"{', '.join(map(repr, unfit))} do not. Pass the table that the model takes (codes or "
            f"dummy variables), or a function that makes it, as in lambda X: model(prepare(X))."
        )
    return np.asarray(rows.to_numpy(dtype=np.float64, na_value=np.nan))


def in_order(rows: Any, names: Sequence[str], library: str) -> Any:
    """The columns that a model was fitted to, by name and in its order, where rows have names."""
    if not isinstance(rows, pd.DataFrame):
        if rows.shape[1] != len(names):
            raise ValueError(
                f"X must have the {len(names)} columns of the model of {library}, "
                f"{', '.join(names)}; got {rows.shape[1]}."
            )
        return rows
    columns = {str(column): column for column in rows.columns}
    absent = [name for name in names if name not in columns]
    if absent:
        raise ValueError(
            f"X must have the columns of the model of {library}; "
            f"{', '.join(map(repr, absent))} of {len(names)} {'is' if len(absent) == 1 else 'are'} "
            f"not among {', '.join(map(repr, columns))}. Rename the columns."
        )
    wanted = [columns[name] for name in names]
    return rows if wanted == list(rows.columns) else rows[wanted]
