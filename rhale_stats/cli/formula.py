"""The model formula of the command line: its columns, checks and messages."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import patsy
from numpy.typing import NDArray

from rhale_stats.arguments.words import one_line
from rhale_stats.cli.parser import UsageError
from rhale_stats.models.table import as_table

Check: TypeAlias = Callable[[NDArray[np.float64]], NDArray[np.bool_]]
# Families that do not accept every number as an outcome: the allowed outcomes in words, and a
# check.
RANGES: dict[str, tuple[str, Check]] = {
    "binomial": ("numbers from 0 to 1", lambda y: (y >= 0) & (y <= 1)),
    "poisson": ("numbers from 0 upwards", lambda y: y >= 0),
    "negative-binomial": ("numbers from 0 upwards", lambda y: y >= 0),
    "tweedie": ("numbers from 0 upwards", lambda y: y >= 0),
    "gamma": ("numbers above 0", lambda y: y > 0),
    "inverse-gaussian": ("numbers above 0", lambda y: y > 0),
}
LIKE = "--formula must look like 'y ~ x1 + x2'"
# Largest number of columns that a message names.
COLUMNS_LISTED = 20


@dataclass(frozen=True)
class Formula:
    """A model formula, parsed by patsy."""

    text: str
    description: patsy.ModelDesc

    @classmethod
    def parsed(cls, text: str, columns: Sequence[object] = ()) -> Formula:
        """The formula of a text, for a table of these columns."""
        try:
            description = patsy.ModelDesc.from_formula(text)
            _named(_factors(description.lhs_termlist + description.rhs_termlist), pd.DataFrame())
        except Exception as error:
            quoted = [f'Q("{column}")' for column in columns if not str(column).isidentifier()]
            advice = f" Write names with blanks as {', '.join(quoted)}." if quoted else ""
            left, _, right = text.partition("~")
            if right.strip() == ".":  # all other columns, in R
                others = [str(column) for column in columns if str(column) != left.strip()]
                advice = f" Name the columns: {left.strip()} ~ {' + '.join(others)}.{advice}"
            raise UsageError(f"{LIKE}; got {text!r}: {reason(error)}.{advice}") from error
        if not description.lhs_termlist:
            raise UsageError(f"{LIKE}; got {text!r}, which has no outcome before a '~'.")
        return cls(text, description)

    @property
    def outcome(self) -> str:
        """The left-hand side, before the ``~``."""
        return self.text.partition("~")[0].strip()

    def regressors(self, data: pd.DataFrame) -> list[str]:
        """Columns that the right-hand side names, in the order of the data."""
        return _named(_factors(self.description.rhs_termlist), data)

    def columns(self, data: pd.DataFrame) -> list[str]:
        """Columns that the formula names, in the order of the data."""
        outcome = _named(_factors(self.description.lhs_termlist), data)
        regressors = self.regressors(data)
        if not (outcome and regressors):
            raise UsageError(
                f"--formula must name columns of the data; {self.text!r} names "
                f"{', '.join([*outcome, *regressors]) or 'none'} of {listed_names(data)}."
                f"{self._meant(data)} Name an outcome and at least one regressor."
            )
        return [name for name in data.columns if name in {*outcome, *regressors}]

    def checked(self, data: pd.DataFrame, family: str, table: pd.DataFrame) -> set[str]:
        """Columns that the right-hand side uses as categorical; ``table`` has those to name."""
        try:
            # Values that are not finite are counted below.
            with np.errstate(all="ignore"):
                (left, right), sides = self._evaluated(data)
        except Exception as error:
            raise UsageError(
                f"--formula must be made of columns, functions of patsy, and functions of NumPy "
                f"as np; {self.text!r} could not be evaluated: {reason(error)}."
                f"{self._meant(table)} The columns are {listed_names(table)}."
            ) from error
        n_finite = int(np.logical_and.reduce([np.isfinite(side).all(1) for side in sides]).sum())
        if n_finite < len(data):
            raise UsageError(
                f"--formula must give finite numbers in every row; {self.text!r} does not in "
                f"{len(data) - n_finite} of {len(data)} rows. Remove these rows from DATA, or "
                f"change the formula (a logarithm needs positive numbers)."
            )
        self._check_outcome(left, sides[0], family)
        levels = [
            factor
            for factor, info in right.factor_infos.items()
            if info.type == "categorical"
            # A comparison such as I(age > 30) can be evaluated at any value of its column.
            and not all(isinstance(level, bool | np.bool_) for level in info.categories)
        ]
        return set(_named(levels, data))

    def _meant(self, data: pd.DataFrame) -> str:
        """What to write for names that are no columns."""
        names = re.findall(r"(?<=[\"'])[^\"']+(?=[\"'])|(?<![\w.])[^\W\d]\w*", self.text)
        columns, meant = [*map(str, data.columns)], []
        for name in dict.fromkeys(name for name in names if name not in columns):
            near = get_close_matches(name, columns, n=1, cutoff=0.7)
            if re.search(rf"\b{re.escape(name)}\(", self.text) and callable(
                getattr(np, name, None)
            ):
                meant.append(f"np.{name}(...)")
            elif near:
                meant.append(near[0] if near[0].isidentifier() else f'Q("{near[0]}")')
        return f" Did you mean {', '.join(meant)}?" if meant else ""

    def outcome_of(self, data: pd.DataFrame) -> pd.Series[Any] | None:
        """The outcome of the rows; None for numbers of successes and failures."""
        _, (left, _) = self._evaluated(data)
        return pd.Series(left[:, 0], name=self.outcome) if left.shape[1] == 1 else None

    def _evaluated(self, data: pd.DataFrame) -> tuple[Any, list[NDArray[np.float64]]]:
        """Information of patsy on both sides, and their matrices, without rows with NaN."""
        environment = patsy.EvalEnvironment([{"np": np}])
        designs = patsy.incr_dbuilders(self.description, lambda: iter([data]), environment)
        matrices = patsy.build_design_matrices(designs, data, NA_action="drop")
        return designs, [np.asarray(matrix) for matrix in matrices]

    def _check_outcome(self, left: Any, outcome: NDArray[np.float64], family: str) -> None:
        texts = [f for f, info in left.factor_infos.items() if info.type == "categorical"]
        if texts:
            raise UsageError(
                f"--formula must have an outcome of numbers; {texts[0].code} is text or true and "
                f"false. For the probability of one of two values, write "
                f"'np.where({texts[0].code} == value, 1, 0) ~ ...' with --family binomial."
            )
        what, fits = RANGES.get(family, ("numbers", np.isfinite))
        # Two columns are the numbers of successes and of failures of a binomial outcome.
        if outcome.shape[1] == 1 and not fits(outcome).all():
            raise UsageError(
                f"--family {family} needs an outcome of {what}; {self.outcome} has values from "
                f"{outcome.min():g} to {outcome.max():g}. Choose another family, or check DATA."
            )


def _factors(terms: Sequence[Any]) -> list[Any]:
    """Factors of the terms of a formula, such as ``cr(age, df=4)``."""
    return [factor for term in terms for factor in term.factors]


def _named(factors: Sequence[Any], data: pd.DataFrame) -> list[str]:
    """Columns of ``data`` that the code of factors names, bare or as Q("name")."""
    names: set[object] = set()
    for node in (node for factor in factors for node in ast.walk(ast.parse(factor.code))):
        match node:
            case ast.Name(id=name):
                names.add(name)
            case ast.Call(func=ast.Name(id="Q"), args=[ast.Constant(value=name)]):
                names.add(name)
    return [name for name in data.columns if name in names]


def features_of(
    regressors: list[str],
    categorical: Collection[str],
    data: pd.DataFrame,
    chosen: list[str] | None,
) -> list[str]:
    """Features to show. Prints which regressors are left out, and why."""
    table = as_table(data)
    unfit, discrete = {}, {}
    for name in regressors:
        position = table.names.index(name)
        if name in categorical or not table.is_numeric(position):
            unfit[name] = f"{name} (categorical)"
        elif data[name].nunique() == 1:
            unfit[name] = f"{name} (constant)"
        elif table.is_discrete(position):
            discrete[name] = f"{name} ({data[name].nunique()} distinct values)"
    numeric = [name for name in regressors if name not in unfit]
    if chosen:
        check_features(chosen, numeric, "numeric regressors of the formula that vary")
        return list(dict.fromkeys(chosen))
    left_out = ", ".join([*unfit.values(), *discrete.values()])
    remedy = f" To include them: --features {' '.join(numeric)}." if discrete else ""
    if len(numeric) == len(discrete):
        raise UsageError(f"--formula must have a continuous regressor; got {left_out}.{remedy}")
    if left_out:
        print(f"Features left out: {left_out}.{remedy}")
    return [name for name in numeric if name not in discrete]


def check_features(chosen: Sequence[str] | None, names: Sequence[str], what: str) -> None:
    """Raise ``UsageError`` unless the features asked for are among the names of ``what``."""
    wrong = [name for name in chosen or [] if name not in names]
    if wrong:
        raise UsageError(
            f"--features must be {what}, which are {', '.join(names) or 'none'}; got "
            f"{', '.join(wrong)}."
        )


def plain(column: pd.Series[Any]) -> pd.Series[Any]:
    """A column without missing values, in a type that patsy knows (not a nullable one)."""
    if isinstance(column.dtype, np.dtype | pd.CategoricalDtype):
        return column
    values = column.to_numpy()
    # The type is given, because pandas would use its own type for text.
    return pd.Series(values, index=column.index, dtype=values.dtype, name=column.name)


def listed_names(data: pd.DataFrame) -> str:
    """Names of the columns of a table, not all if they are many."""
    listed = ", ".join(map(str, data.columns[:COLUMNS_LISTED]))
    more = len(data.columns) - COLUMNS_LISTED
    return f"{listed} and {more} more columns" if more > 0 else listed


def reason(error: Exception) -> str:
    """Message of an error; for errors of patsy, without the lines that mark the place."""
    text = str(error.message) if isinstance(error, patsy.PatsyError) else one_line(error)
    return text.rstrip(". ")
