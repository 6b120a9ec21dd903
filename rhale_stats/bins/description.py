"""Rules as text, as results store them, and the edges that a rule may use."""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rhale_stats.arguments.words import shown
from rhale_stats.arrays import binning
from rhale_stats.arrays.moments import Axis, FloatArray, Moments, selected
from rhale_stats.bins.adaptive import AdaptiveBins
from rhale_stats.bins.rule import (
    BinRule,
    Candidates,
    Column,
    PackageRule,
    among,
    make_lines,
    nearest_to,
)
from rhale_stats.bins.rules import GivenBins, OptimalBins

# The rules of the package, each by its name.
RULES: dict[str, Any] = {kind.__name__: kind for kind in PackageRule.__subclasses__()}
# The default of `rhale`, chosen by the study ``weighting``. The paper uses OptimalBins().
DEFAULT_BINS: BinRule = AdaptiveBins()


def is_ours(rule: BinRule) -> bool:
    """Whether a rule chooses the bins of every feature alone, which one of a user need not do."""
    return type(rule) in RULES.values()


def has_fact(rule: BinRule | str, fact: str) -> bool:
    """Whether this is a rule of the package, or the name of one, of which the fact is true."""
    kind = RULES.get(rule, PackageRule) if isinstance(rule, str) else type(rule)
    return bool(getattr(kind, fact, False))


def cells_of(rule: BinRule, column: Column) -> Axis:
    """The finest cells of one feature: those of the rule, or of the slopes (math [2]).

    No edge of a bin lies inside a cell that a slope was taken across. Rules that search join such
    cells. Edges of other rules move to the nearest edge of a cell. `GivenBins` are refused unless
    their edges are edges of cells.

    Raises
    ------
    ValueError
        Given edges that are not edges of the cells.
    """
    if column.cells is None:
        return _axis_of(rule, column)
    if has_fact(rule, "joins_cells"):
        return binning.variable_axis(column.cells)
    if isinstance(rule, GivenBins):
        return binning.variable_axis(_given_among(rule.edges_of(column.name), column))
    wanted = np.asarray(_axis_of(rule, column).edges)[1:-1]
    nearest = column.cells[nearest_to(column.cells, wanted)]
    return binning.variable_axis(np.union1d(nearest, column.cells[[0, -1]]))


def _axis_of(rule: BinRule, column: Column) -> Axis:
    """The cells of a rule; ``TypeError`` unless they are an axis."""
    axis = rule.cells(column)
    if not hasattr(axis, "edges"):
        raise TypeError(
            f"bins must have a method cells(column) that returns an axis of boost-histogram, such "
            f"as boost_histogram.axis.Variable(edges); that of {type(rule).__name__} returned "
            f"{shown(axis)}."
        )
    return axis


def _given_among(edges: FloatArray, column: Column) -> FloatArray:
    """The edges of cells that agree with the given edges up to rounding."""
    assert column.cells is not None
    cells = column.cells
    inner = edges[(edges > cells[0]) & (edges < cells[-1])]
    nearest, is_edge = among(cells, inner)
    off = ~is_edge
    beyond = [end for end in (edges[0] - cells[0], cells[-1] - edges[-1]) if end > 0]
    if off.any() or (beyond and max(beyond) > 1e-9 * (cells[-1] - cells[0])):
        edge = float(inner[off][0]) if off.any() else float(edges[0])
        raise ValueError(
            f"edges must be among those of the cells across which slopes of feature "
            f"{column.name!r} were taken; {edge:.6g} is none of these {len(cells)} edges, and the "
            f"nearest is {cells[nearest_to(cells, np.array([edge]))[0]]:.6g}. Take local effects "
            f"with these bins: local_effects(model, X, bins=GivenBins(edges)), or ale(model, X, "
            f"bins=...)."
        )
    return np.union1d(nearest, cells[[0, -1]])


def starts_of(
    rule: BinRule,
    cells: Moments,
    *,
    name: str,
    resolution: float,
    edges: FloatArray,
    equal: bool,
    gaps: NDArray[np.bool_] | None,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_] | None]:
    """Bins of many problems on one axis: which cells begin a bin, and which a linear bin.

    The search of regions asks for hundreds at once. ``edges`` are those of the cells, ``equal``
    says that these have one width, ``gaps`` are the cells that no row of any region is in.
    """
    shape, low, high = cells.weight.shape, float(edges[0]), float(edges[-1])
    if is_ours(rule) and not has_fact(rule, "joins_cells"):
        return np.ones(shape, dtype=bool), None
    if isinstance(rule, OptimalBins):
        width = np.full(shape[1], (high - low) / shape[1]) if equal else np.diff(edges)
        each = np.full(len(cells.weight), resolution)
        return rule.starts(cells, np.broadcast_to(width, shape), each), None
    starts, linear = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
    candidates, of_cells = [], None if equal else edges
    for number in range(len(starts)):
        moments = selected(cells, number)
        candidates.append(Candidates(name, moments, low, high, resolution, of_cells, gaps))
    for number, partition in enumerate(rule.choose(candidates)):
        starts[number, partition.starts] = True
        if partition.linear is not None:
            linear[number, partition.starts] = partition.linear
    return starts, linear if make_lines(rule) else None


def describe(rule: BinRule) -> tuple[str, str]:
    """Name and parameters of a rule as text, for the attributes of a result."""
    parameters = []
    for parameter in fields(rule):  # type: ignore[arg-type]
        value, when = getattr(rule, parameter.name), parameter.metadata.get("described", True)
        if not when or (when == "unless default" and value == parameter.default):
            continue
        text = parameter.metadata.get("default", "None") if value is None else _as_text(value)
        parameters.append(f"{parameter.name}={text}")
    return type(rule).__name__, ", ".join(parameters)


def rule_of(name: str, parameters: str) -> BinRule:
    """The rule that `describe` described; ``ValueError`` if the text is incomplete."""
    rules = {name: RULES[name] for name in sorted(RULES) if name != "GivenBins"}
    if name not in rules:
        raise ValueError(
            f"bins must be of a rule that can be applied again, {', '.join(rules)}; got {name}."
        )
    kind = rules[name]
    defaults = {parameter.name: parameter.metadata.get("default") for parameter in fields(kind)}
    arguments: dict[str, Any] = {}
    for entry in parameters.split(", "):
        parameter, text = entry.split("=")
        arguments[parameter] = None if text == defaults[parameter] else literal_eval(text)
    rule: BinRule = kind(**arguments)
    return rule


def for_share_of_rows(rule: BinRule, share: float) -> BinRule:
    """The same rule if each row counts for a ``share`` of a row."""
    min_obs = getattr(rule, "min_obs", None)
    if not min_obs:
        return rule
    fewer = max(round(min_obs * share), 1)
    return replace(rule, min_obs=fewer)  # type: ignore[type-var]


def _as_text(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_as_text(edges)}" for key, edges in value.items()) + "}"
    if isinstance(value, tuple):
        return "[" + ", ".join(f"{edge:.6g}" for edge in value) + "]"
    return str(value)
