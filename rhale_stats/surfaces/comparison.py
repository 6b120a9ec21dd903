"""Tests of no interaction (math [59]), and of two surfaces compared."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike

from rhale_stats.arguments.words import warn
from rhale_stats.arrays import intervals, quadratic
from rhale_stats.arrays import second_order as kernel
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.inference import meaning
from rhale_stats.inference.estimate import BOUNDS, Facts, Joint, against_zero
from rhale_stats.inference.parameters import refuse_shared
from rhale_stats.inference.results import (
    ComparisonOptions,
    Size,
    difference_variables,
    labelled_test,
)
from rhale_stats.inference.tests import difference_columns
from rhale_stats.schema.dimensions import with_part_facts
from rhale_stats.schema.features import resolution
from rhale_stats.schema.kinds import SURFACE
from rhale_stats.schema.variable_table import AT_EDGES
from rhale_stats.schema.variables import OUTPUT_UNITS
from rhale_stats.surfaces.ale2 import is_categorical, is_used, n_cells, pair_name
from rhale_stats.surfaces.inference import (
    GROUP,
    Errors,
    SurfaceRows,
    errors_of,
    rounding,
    std_error,
    with_std_error,
)

NULLS = {
    "zero": "no interaction on average: all mean second differences are 0",
    "homogeneous": "all rows have one second difference in a cell",
}
SIZES = {
    "zero": Size(
        "root mean square interaction in the cells, without the part of noise", OUTPUT_UNITS
    ),
    "homogeneous": Size("standard deviation of second differences in the cells", OUTPUT_UNITS),
}
ADDITIVE = "the second differences are 0 up to their numerical error"


def of_pair(surface: xr.Dataset) -> xr.Dataset:
    """The two features as one, as tests of features are labelled."""
    surface = with_part_facts(surface)
    attrs = surface.attrs
    facts = {
        "bin_rule": f"{attrs['bins_a']} by {attrs['bins_b'].removesuffix('()').split('(')[0]}",
        "bin_parameters": attrs["bins_b"].partition("(")[2].removesuffix(")"),
        **{key: attrs[key] for key in ("output_name", "output_units", "n_rows")},
    }
    name = pair_name(surface)
    coords = {"feature": ("feature", [name]), "feature_kind": ("feature", ["pair"])}
    return xr.Dataset(None, coords, facts)


def wald_test(
    surface: xr.Dataset, null: str, method: str, adjust: str, local: xr.Dataset | None
) -> xr.Dataset:
    """`wald_test` of a surface: whether there is an interaction at all."""
    if method != "box":
        raise ValueError(f"method must be 'box' for a surface; got {method!r}.")
    if local is not None:
        raise ValueError(
            f"local must be None, except with null 'homogeneous' of effects in bins; got local "
            f"with null {null!r} of a surface. Leave it out."
        )
    if null not in NULLS:
        raise ValueError(
            f"null must be one of {', '.join(map(repr, NULLS))} for a surface; got {null!r}. "
            f"Second differences of cells of different widths have no reason to be equal."
        )
    surface = with_part_facts(surface)
    if null == "zero" and "parameters" in surface.attrs:
        raise ValueError(
            "effect must be a surface without the parameters of the model for null='zero', which "
            "is a test of signs of rows. With parameters use confband(surface): it holds 0 "
            "everywhere without an interaction. Or drop them: std_error(surface)."
        )
    rows = SurfaceRows.from_surface(surface)
    cells, error = rows.cells, float(surface["second_difference_error"])
    mean, spread, n = map(np.ravel, (cells.mean, cells.spread(), cells.n_effective()))
    least, reason = resolution(mean[cells.supported.ravel()], error), ""
    if null == "homogeneous":
        has_spread = np.isfinite(spread)
        statistic = float(spread[has_spread].max(initial=0.0)) / least
        df, p_value = float(has_spread.sum()), 1.0 if statistic <= 1 else 0.0
    else:
        # What is 0 up to rounding is 0.
        delta = np.where(np.abs(rows.arrays.delta) <= least, 0.0, rows.arrays.delta)
        statistic, df = kernel.sign_test(rows.arrays._replace(delta=delta), rows.group)
        p_value = intervals.chi2_tail(statistic, df)
        if df <= 0:
            # One row per cell: its sign carries no information.
            statistic, df, p_value = float("nan"), 0.0, float("nan")
            reason = meaning.NO_ROWS if (delta != 0).any() else ADDITIVE
    variance = spread**2 if rows.sums is None else n * rows.sums.variance
    square = n * spread**2 if null == "homogeneous" else n * mean**2 - variance
    has_variance = np.isfinite(variance) & np.isfinite(spread) & (n > 0)
    total = n[has_variance].sum()
    size = np.sqrt(max(square[has_variance].sum() / total, 0.0)) if total > 0 else float("nan")
    tests = {"statistic": statistic, "df": df, "p_value": p_value, "reason": reason, "size": size}
    return labelled_test(
        of_pair(surface),
        {name: np.array([value]) for name, value in tests.items()},
        adjust,
        null=NULLS[null],
        source=str(surface["surface_se"].attrs["source"]) if GROUP in surface.coords else "rows",
        test=f"wald_test, null {null!r}",
        size=SIZES[null],
    )


KEPT_ATTRS = ("feature_a", "feature_b", "kind_a", "kind_b", "units_a", "units_b")


def scores(value: FloatArray, se: FloatArray, degrees: FloatArray, least: float) -> FloatArray:
    """Normal scores without a sign, of estimates by their errors; 0 of what is 0 up to rounding."""
    with np.errstate(invalid="ignore", divide="ignore"):
        t = np.where(np.abs(value) > least, value / np.maximum(se, least), 0.0)
    return intervals.normal_score(t, np.maximum(degrees, 1e-3))


def independent(first: Errors, second: Errors) -> Errors:
    """The difference of two that are independent."""
    parts = [(np.diagonal(each.covariance), each.degrees) for each in (first, second)]
    return Errors(
        first.values - second.values,
        first.covariance + second.covariance,
        intervals.satterthwaite(*parts),
    )


def compare(a: xr.Dataset, b: xr.Dataset, request: ComparisonOptions) -> xr.Dataset:
    """`compare` of two surfaces of the same two features."""
    a, b = with_part_facts(a), with_part_facts(b)
    _check_cells(a, b)
    pairs = _are_pairs(a, b, request.paired)
    groups = _groups_of_pairs(a, b, request.groups, pairs=pairs)
    refuse_shared(a, b, "surfaces", paired=pairs)
    has_rows = [surface["n_obs"].values > 0 for surface in (a, b)]
    unshared = int((has_rows[0] != has_rows[1]).sum())
    if unshared:
        warn(
            f"{unshared} of {n_cells(a)} cells have rows in only one of a and b. In these "
            f"cells the surface of the other uses the second difference of a neighbouring cell, "
            f"which can cause a difference of the surfaces. Use wider bins."
        )
    if pairs:
        # For given rows a surface is linear in the second differences.
        names = ("second_difference", "second_effect", "surface")
        less = {name: a[name].copy(data=a[name].values - b[name].values) for name in names}
        surfaces = [std_error(a.assign(less), None, groups)]
    else:
        surfaces = [with_std_error(a), with_std_error(b)]
    source = " against ".join(str(surface["surface_se"].attrs["source"]) for surface in surfaces)
    source = f"pairs of {source}" if pairs else f"{source}, independent"
    rows = [SurfaceRows.from_surface(surface) for surface in surfaces]
    of_edges, of_cells = [
        reduce(independent, [errors_of(*each, name) for each in zip(surfaces, rows, strict=True)])
        for name in ("surface", "second_effect")
    ]
    least = float(a["second_difference_error"]) + float(b["second_difference_error"])
    streams = np.random.default_rng(request.rng).spawn(2)
    at_edges, statistic, p_value = _tested(of_edges, rounding(a) + rounding(b), request, streams[0])
    in_cells, cell_statistic, cell_p_value = _tested(of_cells, least, request, streams[1])
    square = _square_of_cells(of_cells)
    tests: dict[str, Any] = {
        "statistic": statistic,
        "p_value": p_value,
        "cell_statistic": cell_statistic,
        "cell_p_value": cell_p_value,
        "size": square.size,
        "size_ci": square.interval(request.level),
    }
    tested = labelled_test(
        of_pair(a),
        {name: np.array([value]) for name, value in tests.items()},
        request.adjust,
        null="no difference between the surfaces",
        source=source,
        test="compare, largest standardised difference",
        centering=str(a.attrs["centering"]),
        size=Size(
            "root mean square difference of the second differences, without the part of noise",
            OUTPUT_UNITS,
            request.level,
        ),
    )
    coords = {name: a[name] for name in AT_EDGES}
    of_least = {"long_name": "numerical error of a difference", "units": OUTPUT_UNITS}
    of_supported = {"long_name": "whether the cell has rows in both", "units": "1"}
    supported = (has_rows[0] & has_rows[1]).astype(np.int8)
    differences = {
        **_variables("difference", a["surface"], at_edges, source, request.level),
        **_variables(
            "second_effect_difference", a["second_effect"], in_cells, source, request.level
        ),
        "second_difference_error": ((), least, of_least),
        "supported": (AT_EDGES, supported, of_supported),
    }
    facts = {key: a.attrs[key] for key in KEPT_ATTRS} | {"n_unshared": unshared}
    return tested.assign(differences).assign_coords({**coords, **BOUNDS}).assign_attrs(facts)


def _square_of_cells(cells: Errors) -> quadratic.Square:
    """Mean square of the second differences, over the cells whose error is known."""
    has_error = np.isfinite(cells.values) & np.isfinite(np.diagonal(cells.covariance))
    has_error &= cells.degrees > 0
    n = int(has_error.sum())
    covariance = cells.covariance[np.ix_(has_error, has_error)]
    degrees = float(cells.degrees[has_error].sum())
    return quadratic.square(cells.values[has_error], np.eye(n) / max(n, 1), covariance, degrees)


def _variables(
    name: str, estimate: xr.DataArray, numbers: list[FloatArray], source: str, level: float
) -> dict[str, Any]:
    """Differences of an estimate at corners or in cells, with standard error, interval and band."""
    kind = "surfaces" if estimate.name == "surface" else "mean second differences"
    long_name, target = f"a less b, {kind}", f"difference of the {kind}"
    facts = Facts(AT_EDGES, long_name, OUTPUT_UNITS, target, source)
    numbers = [values.reshape(*estimate.shape, *values.shape[1:]) for values in numbers]
    return difference_variables(name, facts, numbers, level, "surface")


def _tested(
    estimated: Errors, least: float, request: ComparisonOptions, rng: np.random.Generator
) -> tuple[list[FloatArray], float, float]:
    """Differences with their errors, intervals and band; the largest normal score, and its p-value.

    It is compared with that of as many normal errors (math [27]).
    """
    value, covariance, degrees = estimated
    has_error = np.isfinite(value) & np.isfinite(np.diagonal(covariance)) & (degrees > 0)
    se = np.where(has_error, np.sqrt(np.maximum(np.diagonal(covariance), 0.0)), np.nan)
    degrees = np.where(has_error, degrees, np.nan)
    statistic = float("nan")
    if has_error.any():
        score = scores(value[has_error], se[has_error], degrees[has_error], least)
        statistic = float(score.max())
    joint = Joint(covariance[np.ix_(has_error, has_error)], np.inf)
    zero = against_zero(value, se, degrees, joint, statistic, request.level, request.n_draws, rng)
    return [value, se, zero.interval, zero.band], statistic, zero.p_value


def _groups_of_pairs(
    a: xr.Dataset, b: xr.Dataset, groups: ArrayLike | None, *, pairs: bool
) -> ArrayLike | None:
    """Groups of the pairs: those given, or those that the errors of both surfaces have."""
    if groups is not None and not pairs:
        raise ValueError(
            "groups must be None for surfaces of other rows: they are of pairs. Give each surface "
            "its own: compare(std_error(a, groups=...), std_error(b, groups=...))."
        )
    by_surface = [surface[GROUP].values for surface in (a, b) if GROUP in surface.coords]
    if groups is not None or not by_surface or not pairs:
        return groups
    if len(by_surface) == 1 or not np.array_equal(by_surface[0], by_surface[1]):
        raise ValueError(
            "a and b must have standard errors by the same groups, or by rows, where they are of "
            "the same rows. Name the groups of the pairs: compare(a, b, groups=...)."
        )
    return np.asarray(by_surface[0])


def _check_cells(a: xr.Dataset, b: xr.Dataset) -> None:
    """Raise ``ValueError`` unless both are of the same features, centring and cells."""
    for name in ("feature_a", "feature_b", "kind_a", "kind_b", "centering"):
        if a.attrs[name] != b.attrs[name]:
            raise ValueError(
                f"a and b must be surfaces of one {name}; got {a.attrs[name]!r} and "
                f"{b.attrs[name]!r}. Make both by ale2 with the same features and centering."
            )
    for side in "ab":
        feature = a.attrs[f"feature_{side}"]
        levels = is_categorical(a, side)
        first, second = [surface[f"edge_{side}"].values for surface in (a, b)]
        if not np.array_equal(first, second):
            advice = (
                f"Give both the levels that both have, in one order={{{feature!r}: [...]}}."
                if levels
                else "Make both with the same edges: bins=GivenBins(edges)."
            )
            raise ValueError(
                f"a and b must have the same {'levels' if levels else 'edges'} of feature "
                f"{feature!r}; got {_listed(first)} and {_listed(second)}. {advice}"
            )


def _listed(values: Any) -> str:
    """The first values, as text."""
    texts = [
        f"{value:.4g}" if isinstance(value, float) else str(value) for value in values.tolist()
    ]
    return ", ".join(texts[:6]) + (", ..." if len(texts) > 6 else "")


def _are_pairs(a: xr.Dataset, b: xr.Dataset, paired: object) -> bool:
    """Whether both are of the same rows; raise ``ValueError`` where they should be and are not."""
    if paired is not None and not (
        isinstance(paired, tuple | list) and len(paired) == 2 and all(map(SURFACE.holds, paired))
    ):
        raise TypeError(
            "paired must be the two surfaces, paired=(a, b), which have their rows with them; got "
            f"{type(paired).__name__}."
        )
    n_common, different = _common_rows(a, b)
    if paired is not None and different:
        raise ValueError(
            f"paired must be surfaces of the same rows in the same order; these have other "
            f"{different}. Leave paired out for rows that are independent."
        )
    if n_common and different:
        raise ValueError(
            f"a and b must be of the same rows in the same order with the same weights, or of "
            f"other rows; {n_common} rows with a common label have the same values and places, but "
            f"the two have other {different}. Make both of one selection of rows; rows that are "
            f"independent need labels of their own, as in X.index."
        )
    return not different


def _common_rows(a: xr.Dataset, b: xr.Dataset) -> tuple[int, str]:
    """Number of rows that two surfaces share, and what differs between their rows."""
    labels = [surface["obs"].values for surface in (a, b)]
    _, *positions = np.intersect1d(labels[0], labels[1], return_indices=True)
    used = [is_used(surface) for surface in (a, b)]
    both = used[0][positions[0]] & used[1][positions[1]]
    first, second = [rows[both] for rows in positions]
    if not len(first):
        return 0, "labels of rows"
    for name in ("x_a", "x_b"):
        if not np.array_equal(a[name].values[first], b[name].values[second]):
            return 0, "values or places"
    if not (np.array_equal(labels[0], labels[1]) and np.array_equal(used[0], used[1])):
        return len(first), "rows"
    ones = np.ones(a.sizes["obs"])
    weights = [surface["weight"].values if "weight" in surface else ones for surface in (a, b)]
    counted = [surface.attrs["weight_kind"] == "frequency" for surface in (a, b)]
    same = np.array_equal(weights[0], weights[1]) and counted[0] == counted[1]
    return len(first), "" if same else "weights"


def tidy(comparison: xr.Dataset, _level: float) -> pd.DataFrame:
    """A line a corner of two surfaces that were compared."""
    corners = np.nonzero(comparison["difference"].notnull().values)
    frame = pd.DataFrame(
        {"term": str(comparison["feature"].values[0])}, index=range(len(corners[0]))
    )
    for side, number in zip("ab", corners, strict=True):
        name = f"level_{side}" if is_categorical(comparison, side) else f"x_{side}"
        frame[name] = comparison[f"edge_{side}"].values[number]
    return frame.assign(**difference_columns(comparison, corners))
