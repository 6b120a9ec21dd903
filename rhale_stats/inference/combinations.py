"""Functions of estimates: linear combinations, ratios and other expressions, with joint tests."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from itertools import combinations, pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special
from scipy.linalg import block_diag

from rhale_stats.arguments.checks import is_number
from rhale_stats.arguments.peers import other_value
from rhale_stats.arguments.words import listed, shown
from rhale_stats.arrays.intervals import f_tail, satterthwaite
from rhale_stats.arrays.locations import crossings
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.models.parametric import IMAGINARY
from rhale_stats.printing.text import place_texts

PAIRS = ("pairwise", "reference", "sequential")
LOCATIONS = ("maximum", "minimum", "zero")
# Correlations below this are rounding: the estimates are of separate rows.
UNCORRELATED = 1e-9
FUNCTIONS: dict[str, Callable[..., Any]] = {"exp": np.exp, "log": np.log, "sqrt": np.sqrt}
OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.Pow: lambda a, b: a**b,
    ast.USub: lambda a: -a,
    ast.UAdd: lambda a: a,
}
SYNTAX = "'b1 - b2 = 0', 'b1 / b2 = 2' or '`arm: b - a` = `arm: c - a`'"

Expression: TypeAlias = Callable[[NDArray[Any]], Any]


class Estimates(NamedTuple):
    """Estimates of a result with their names, covariance, degrees of freedom, and what they are.

    ``compared`` says which of them "pairwise" and the like compare; all, if None. ``places`` are
    where on the axis of a feature they are, if they have an order, in ``place_units``; ``slopes``,
    that they are derivatives along it. ``influences`` (unit, estimate) are those of rows, of groups
    of them, or of models, by which they are correlated with other estimates.
    """

    names: list[str]
    values: FloatArray
    covariance: FloatArray
    degrees: FloatArray
    units: str
    source: str
    what: str
    compared: Sequence[bool] | None = None
    places: FloatArray | None = None
    place_units: str = ""
    slopes: bool = False
    influences: FloatArray | None = None


def correlated(influences: FloatArray, se: FloatArray) -> FloatArray:
    """Covariance with these standard errors, and the correlations of the influences of units."""
    products = influences.T @ influences
    size = np.sqrt(np.diagonal(products))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.nan_to_num(products / np.outer(size, size)) * np.outer(se, se))


def of_shared_units(parts: Sequence[Estimates], labels: Sequence[str]) -> Estimates:
    """Estimates of the same rows or models, as of two features, one after the other."""
    influences = [part.influences for part in parts if part.influences is not None]
    if len(influences) < len(parts):
        raise ValueError(
            "local must be given for several features or outputs, whose estimates come from the "
            "same rows: the local effects or ICE curves that effect was made from, without "
            "parameters of a model. Or select one: effect.isel(feature=[0]), effect.isel(output=0)."
        )
    se = np.concatenate([np.sqrt(np.diagonal(part.covariance)) for part in parts])
    covariance = correlated(np.nan_to_num(np.concatenate(influences, axis=1)), se)
    whats = dict.fromkeys(part.what for part in parts)
    return separate(parts, labels)._replace(covariance=covariance, what=", ".join(whats))


def separate(parts: Sequence[Estimates], labels: Sequence[str]) -> Estimates:
    """Estimates of groups of rows that have nothing in common, one after the other."""
    first, pairs = parts[0], list(zip(parts, labels, strict=True))
    return Estimates(
        [f"{name}, {label}" for part, label in pairs for name in part.names],
        np.concatenate([part.values for part in parts]),
        block_diag(*(part.covariance for part in parts)),
        np.concatenate([part.degrees for part in parts]),
        first.units,
        first.source,
        first.what,
    )


class Combinations(NamedTuple):
    """Functions of estimates: their texts, values, covariance and degrees of freedom."""

    texts: list[str]
    values: FloatArray
    covariance: FloatArray
    degrees: FloatArray


class JointTest(NamedTuple):
    """Wald's test that all are 0, compared with F; NaN where none has an error."""

    statistic: float
    df: int
    df_denominator: float
    p_value: float


def refuse_beside(what: str, **arguments: Any) -> None:
    """Raise ``ValueError`` where an argument was given that results of a kind do not need."""
    for name, value in arguments.items():
        if value is not None:
            raise ValueError(f"{name} must be left out for {what}; got {shown(value)}.")


def combined(estimates: Estimates, hypothesis: Any) -> Combinations:
    """The functions of the estimates that ``hypothesis`` names: 0 where it holds."""
    values = estimates.values
    texts = [hypothesis] if isinstance(hypothesis, str) else hypothesis
    if isinstance(hypothesis, str) and hypothesis in PAIRS:
        texts, loadings = _pairs(estimates, hypothesis)
        results = _linear(loadings, values)
    elif isinstance(texts, list | tuple) and texts and all(isinstance(text, str) for text in texts):
        expressions = [_expression(text, estimates.names) for text in texts]
        with np.errstate(all="ignore"):
            results = np.array([float(np.real(function(values))) for function in expressions])
            loadings = np.array([_gradient(function, values) for function in expressions])
    elif hypothesis is None:
        texts, loadings, results = list(estimates.names), np.eye(len(values)), values
    else:
        loadings = _matrix(hypothesis, len(values))
        results = _linear(loadings, values)
        texts = [_text(row, estimates.names) for row in loadings]
    used = loadings != 0
    finite = np.nan_to_num(estimates.covariance)
    lost = (used & np.isnan(np.diagonal(estimates.covariance) + values)).any(axis=1)
    covariance = loadings @ finite @ loadings.T
    covariance[lost] = covariance[:, lost] = np.nan
    degrees = np.array([_degrees(row, finite, estimates.degrees) for row in loadings])
    return Combinations(list(texts), np.where(lost, np.nan, results), covariance, degrees)


def _linear(loadings: FloatArray, values: FloatArray) -> FloatArray:
    """Linear combinations; an estimate that is NaN counts only where it has a part."""
    return np.asarray(np.where(loadings != 0, loadings * values, 0.0).sum(axis=1))


def located(estimates: Estimates, kind: str, level: float) -> tuple[Combinations, FloatArray]:
    """Places of maxima, minima or zeros along the axis of a feature, and their intervals."""
    if estimates.places is None:
        raise ValueError(
            f"hypothesis={kind!r} needs estimates along the axis of a feature of numbers; got "
            f"{estimates.what}."
        )
    finite = np.isfinite(estimates.values + np.diagonal(estimates.covariance))
    x, values, degrees = (
        part[finite] for part in (estimates.places, estimates.values, estimates.degrees)
    )
    # Extremes of a curve are zeros of its slopes.
    slopes = np.eye(len(x))
    if kind != "zero" and not estimates.slopes and len(x) > 1:
        slopes = np.diff(slopes, axis=0) / np.diff(x)[:, None]
        x, degrees = (x[:-1] + x[1:]) / 2, np.minimum(degrees[:-1], degrees[1:])
    covariance = slopes @ estimates.covariance[np.ix_(finite, finite)] @ slopes.T
    crossed = crossings(x, slopes @ values, covariance, degrees, level)
    rises = np.array(crossed.rises, dtype=bool)
    is_wanted = np.full(len(rises), True) if kind == "zero" else rises == (kind == "minimum")
    if not is_wanted.any():
        low, high = place_texts(x[[0, -1]], estimates.place_units, 6)
        raise ValueError(
            f"effect must have a {kind} between {low} and {high} on the axis: there is none that "
            f"is clear of sampling error. plot shows it."
        )
    gradient = crossed.gradient[is_wanted]
    numbers = range(len(gradient))
    return (
        Combinations(
            [kind if len(gradient) == 1 else f"{kind} {number + 1}" for number in numbers],
            crossed.place[is_wanted],
            gradient @ covariance @ gradient.T,
            np.array([degrees[row != 0].min() for row in gradient]),
        ),
        crossed.interval[is_wanted],
    )


def joint_test(tested: Combinations) -> JointTest:
    """Wald's test of all combinations at once; those that follow from others add nothing."""
    has_error = np.isfinite(np.diagonal(tested.covariance))
    covariance = tested.covariance[np.ix_(has_error, has_error)]
    size = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    if not (size > 0).all() or not len(size):
        return JointTest(np.nan, 0, np.nan, np.nan)
    roots, vectors = np.linalg.eigh(covariance / np.outer(size, size))
    is_kept = roots > 1e-10 * roots[-1]
    scores = (vectors[:, is_kept].T @ (tested.values[has_error] / size)) / np.sqrt(roots[is_kept])
    df, denominator = int(is_kept.sum()), float(tested.degrees[has_error].min())
    statistic = float(scores @ scores / df)
    return JointTest(statistic, df, denominator, f_tail(statistic, df, denominator))


def equivalence_pvalues(tested: Combinations, low: float, high: float) -> FloatArray:
    """P of two one-sided tests that each lies between ``low`` and ``high``."""
    se = np.sqrt(np.maximum(np.diagonal(tested.covariance), 0.0))
    with np.errstate(invalid="ignore", divide="ignore"):
        distance = np.minimum(tested.values - low, high - tested.values) / se
    return np.asarray(special.stdtr(tested.degrees, -distance))


def _pairs(estimates: Estimates, kind: str) -> tuple[list[str], FloatArray]:
    names = estimates.names
    compared = np.flatnonzero(estimates.compared or np.ones(len(names)))
    pairs = list(combinations(compared, 2))
    if kind == "reference":
        pairs = [(compared[0], number) for number in compared[1:]]
    if kind == "sequential":
        pairs = list(pairwise(compared))
    if not pairs:
        raise ValueError(f"hypothesis={kind!r} needs at least two estimates; got {len(compared)}.")
    loadings = np.zeros((len(pairs), len(names)))
    for row, (low, high) in zip(loadings, pairs, strict=True):
        row[[low, high]] = -1, 1
    apart = [f"({name})" if " - " in name else name for name in names]
    return [f"{apart[high]} - {apart[low]}" for low, high in pairs], loadings


def _matrix(hypothesis: Any, n_terms: int) -> FloatArray:
    try:
        matrix = np.atleast_2d(np.asarray(hypothesis))
    except ValueError:
        matrix = np.full((0, 0), np.nan)
    if matrix.dtype.kind not in "iuf" or matrix.ndim != 2 or matrix.shape[1] != n_terms:
        matrix = np.full((0, 0), np.nan)
    if not matrix.size or not np.isfinite(matrix).all():
        raise ValueError(
            f"hypothesis must be a text such as {SYNTAX}, a list of them, one of "
            f"{', '.join(map(repr, PAIRS))}, or numbers of shape (n_hypotheses, {n_terms}); got "
            f"{shown(hypothesis)}."
        )
    return matrix.astype(np.float64)


def _text(row: FloatArray, names: Sequence[str]) -> str:
    parts = [f"{weight:+.4g} {name}" for weight, name in zip(row, names, strict=True) if weight]
    return " ".join(parts).replace("+1 ", "+ ").replace("-1 ", "- ").removeprefix("+ ") or "0"


def _expression(text: str, names: Sequence[str]) -> Expression:
    """A text as a function of the estimates: its left side less its right side, if it has two."""
    quoted: list[int] = []

    def number_of(name: str) -> int:
        if name in names:
            return list(names).index(name)
        if re.fullmatch(r"_quoted\d+", name):
            return quoted[int(name[7:])]
        if re.fullmatch(r"b\d+", name) and 1 <= int(name[1:]) <= len(names):
            return int(name[1:]) - 1
        raise KeyError(
            f"hypothesis must name estimates of the result; got {name!r}. They are "
            f"{listed(list(names))}, or b1 to b{len(names)} in this order."
            f"{other_value(name, PAIRS)}"
        )

    def symbol(match: re.Match[str]) -> str:
        quoted.append(number_of(match[1]))
        return f" _quoted{len(quoted) - 1} "

    left, equals, right = re.sub(r"`([^`]*)`", symbol, text).partition("=")
    try:
        parts = (left, right) if equals else (left,)
        sides = [ast.parse(part.strip(), mode="eval").body for part in parts]
    except SyntaxError:
        raise ValueError(f"hypothesis must be like {SYNTAX}; got {text!r}.") from None

    def value(node: ast.AST, values: NDArray[Any]) -> Any:
        if isinstance(node, ast.Constant) and is_number(node.value):
            return node.value
        if isinstance(node, ast.Name):
            return values[number_of(node.id)]
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            return OPERATORS[type(node.op)](value(node.left, values), value(node.right, values))
        if isinstance(node, ast.UnaryOp) and type(node.op) in OPERATORS:
            return OPERATORS[type(node.op)](value(node.operand, values))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            function = FUNCTIONS.get(node.func.id)
            if function is not None and len(node.args) == 1 and not node.keywords:
                return function(value(node.args[0], values))
        raise ValueError(
            f"hypothesis must be made of estimates, numbers, + - * / **, "
            f"{', '.join(FUNCTIONS)}; got {text!r}.{other_value(text, PAIRS)}"
        )

    def function(values: NDArray[Any]) -> Any:
        first, *others = (value(side, values) for side in sides)
        return first - others[0] if others else first

    return function


def _gradient(function: Expression, values: FloatArray) -> FloatArray:
    """Derivatives by every estimate, exact to rounding: steps are imaginary."""
    out = np.zeros(len(values))
    for number in range(len(values)):
        moved = values.astype(np.complex128)
        moved[number] += IMAGINARY * 1j
        out[number] = np.imag(function(moved)) / IMAGINARY
    return out


def _degrees(row: FloatArray, covariance: FloatArray, degrees: FloatArray) -> float:
    """Degrees of freedom of a combination: Welch's of separate rows, else the smallest of them."""
    used = np.flatnonzero((row != 0) & (np.diagonal(covariance) > 0))
    if not len(used):
        return np.inf
    block = covariance[np.ix_(used, used)]
    variance = np.diagonal(block)
    size = np.sqrt(np.outer(variance, variance))
    if (np.abs(block - np.diag(variance)) > UNCORRELATED * size).any():
        return float(degrees[used].min())
    parts = row[used] ** 2 * variance
    return float(satterthwaite(*zip(parts, degrees[used], strict=True)))
