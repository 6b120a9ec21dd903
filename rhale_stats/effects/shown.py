"""The page of `show` for effects in bins."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arrays.accumulate import turning_points
from rhale_stats.effects.inner import importances, inner, inner_text
from rhale_stats.effects.printed import bias_warnings, method_title
from rhale_stats.effects.tables import curve_extent, glance, source_text, spread_notes
from rhale_stats.inference.meaning import is_unordered
from rhale_stats.printing.pages import (
    IMPORTANCE,
    NOT_ESTIMATED,
    Page,
    largest_first,
    output,
    rows_text,
    table_of,
)
from rhale_stats.printing.text import (
    bounds_text,
    holds_model,
    number_text,
    pvalue_text,
    uncertainty,
)
from rhale_stats.schema.curves import FeatureCurve
from rhale_stats.schema.feature_result import one_feature
from rhale_stats.schema.features import feature_names, method_text

ENDS = ("lowest", "highest")
PVALUE = "P"
# A curve with a smaller range than this many numerical errors may be 0.
SUSPECT = 1e4


def effect_page(effect: xr.Dataset, max_features: int) -> Page:
    """The page that shows effects in bins: their facts, and a table with a line a feature."""
    names, size = feature_names(effect), importances(effect)
    extents = _extents(inner(effect))
    reach = np.array([high - low for low, high in extents])
    ranked = size if np.isfinite(size).any() else reach
    # A curve that is 0 up to rounding is last.
    order = largest_first(np.where(reach == 0, 0.0, ranked))[:max_features]
    columns, source = _columns(effect, np.where(reach == 0, 0.0, size))
    columns |= {end: np.array([extent[k] for extent in extents]) for k, end in enumerate(ENDS)}
    lines = [
        [names[k], *[_cell(head, float(values[k])) for head, values in columns.items()]]
        for k in order
    ]
    for line, k in zip(lines, order, strict=True):
        if not effect["n_bins"].values[k]:
            line[1] = "constant"
    facts = (
        f"{rows_text(effect)}; local effects: {method_text(effect)}; "
        f"bins: {effect.attrs.get('bin_rule', 'given')}",
        f"Uncertainty: {source}",
        *(bias_warnings(effect, None) if "verdict" in effect else ()),
        *spread_notes(effect, None),
    )
    text = f"lowest, highest: of the curve. Sizes of curves are over the {inner_text(effect)}."
    if "H" in columns:
        text = f"H: heterogeneity in the bins times the standard deviation of the feature. {text}"
    if "importance" in columns:
        text = f"{IMPORTANCE}. {text}"
    first = repr(lines[0][0])
    return Page(
        f"{method_title(effect)}: effects on {output(effect)}",
        facts,
        (table_of(["", *columns], lines, len(names), "features", text),),
        f"summary(effect, {first}), plot(effect, {first}), tidy(effect)",
    )


def _cell(head: str, value: float) -> str:
    return pvalue_text(value) if head == PVALUE else number_text(value)


def _columns(
    effect: xr.Dataset, size: NDArray[np.float64]
) -> tuple[dict[str, NDArray[np.float64]], str]:
    """Sizes and average effects of all features by head, and the source of standard errors."""
    ordered = ~is_unordered(effect)

    def values_of(name: str, bound: int | None = None) -> NDArray[np.float64]:
        values = effect[name].values if bound is None else effect[name].values[:, bound]
        return np.where(ordered, values, np.nan)

    columns = {"importance": size} if np.isfinite(size).any() else {}
    if "heterogeneity_output" in effect:
        columns |= {"H": values_of("heterogeneity_output")}
    if "average_effect" in effect:
        columns |= {"avg effect": values_of("average_effect")}
    if "average_effect_se" in effect and np.isfinite(se := values_of("average_effect_se")).any():
        columns |= {"std err": se} | _tests(effect)
    if "average_effect_ci" in effect:
        heads = bounds_text(float(effect["average_effect_ci"].attrs.get("ci_prob", 0.95)))
        columns |= {head: values_of("average_effect_ci", end) for end, head in enumerate(heads)}
    for name in ("average_effect_se", "curve_se"):
        if name in effect and bool(effect[name].notnull().any()):
            return columns, uncertainty(str(effect[name].attrs.get("source", "rows")))
    return columns, NOT_ESTIMATED


def _tests(effect: xr.Dataset) -> dict[str, NDArray[np.float64]]:
    """t and P of all features by head, where the standard errors include the model."""
    if not holds_model(source_text(effect, "average_effect")):
        return {}
    table = glance(effect, 0.95)
    heads = {"t": "statistic", PVALUE: "p_value"}
    return {head: table[name].to_numpy() for head, name in heads.items() if name in table}


def _extents(effect: xr.Dataset) -> list[tuple[float, float]]:
    """Lowest and highest value of every curve; 0 and 0 where it is 0 up to rounding.

    As `summaries.curve_extent`, without the millisecond that it takes to select a feature.
    """
    values = {str(name): variable.values for name, variable in effect.variables.items()}
    out = []
    for k, n in enumerate(values["n_bins"]):
        curve = _curve({name: values[name][k] for name in _OF_CURVE if name in values}, int(n))
        if np.isnan(curve).all():
            out.append((np.nan, np.nan))
            continue
        low, high = float(np.nanmin(curve)), float(np.nanmax(curve))
        error = values["local_effect_error"][k] if "local_effect_error" in values else 0.0
        least = np.nan_to_num(error) + np.finfo(float).eps * max(high, -low)
        suspect = high - low <= SUSPECT * least * n
        out.append(curve_extent(one_feature(effect, k)) if suspect else (low, high))
    return out


_OF_CURVE = ("edge_value", "curve", "effect", "slope", "cell_value", "cell_curve")


def _curve(row: dict[str, NDArray[np.float64]], n: int) -> NDArray[np.float64]:
    """Values of the curve of a feature of ``n`` bins: at edges, and where it turns."""
    if "cell_value" in row and np.isfinite(row["cell_value"]).any():
        return row["cell_curve"]
    edges, curve, effect = row["edge_value"][: n + 1], row["curve"][: n + 1], row["effect"][:n]
    slope = row["slope"][:n] if "slope" in row else np.zeros(n)
    if not slope.any():
        return curve
    turns = turning_points(edges, effect, slope)
    return np.concatenate([curve, FeatureCurve(edges, curve, slope).evaluate(turns)])
