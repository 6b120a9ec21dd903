"""Plots of the effects of several models: the error of the models, and within it that of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from numpy.typing import NDArray

from rhale_stats.arrays.moments import FloatArray
from rhale_stats.drawing.bins import column
from rhale_stats.drawing.canvas import (
    AVERAGE,
    HETEROGENEITY,
    REFERENCE,
    UNCERTAINTY,
    as_array,
    date_axis,
    draw_ends,
    output_label,
    several_panels,
)
from rhale_stats.drawing.curve import ends_of
from rhale_stats.drawing.legend import (
    LEVEL,
    OURS,
    draw_legend,
    grid_of_panels,
    label_bins,
    say_constant,
    say_limited,
)
from rhale_stats.ensembles.intervals import confint
from rhale_stats.ensembles.labelled import (
    Row,
    centre_of,
    check_ensemble,
    estimated,
    one_row,
    size_of,
)
from rhale_stats.schema.features import feature_names, units_of, with_units

ESTIMATE, OF_EFFECT = "estimate:\ncurve", "estimate:\neffect"
TOTAL, OF_ROWS = "± standard error:\nmodels and rows", "± standard error:\nrows alone"
SPREAD = "± heterogeneity\nof the rows"
WORDS = {"confidence": "confidence interval", "credible": "credible interval"}
# Opacity of the error of models and rows, and of that of the rows.
LIGHT, DARK = 0.25, 0.6


class _EnsembleCurve(NamedTuple):
    """One estimate of one feature along its grid: value, errors, interval and band."""

    z: FloatArray
    value: FloatArray
    total: FloatArray
    rows: FloatArray | None
    interval: xr.DataArray
    band: xr.DataArray | None


def plot_ensemble(
    ensemble: xr.Dataset,
    feature: str | int,
    ax: Axes | Sequence[Axes] | NDArray[np.object_] | None,
) -> NDArray[np.object_]:
    """One feature of several models: the curve above, the effect below if there is one."""
    ensemble = _prepared(ensemble)
    row = one_row(ensemble, feature)
    lower = "effect" in estimated(ensemble) and not row.levels
    n, heights = (2, [3.6, 1.9]) if lower else (1, [3.6])
    which = "an upper and a lower one" if lower else "one"
    with several_panels("ax", ax, n, which, lambda: column(heights)) as panels:
        first, last = panels[0], panels[-1]
        first.set_ylabel(output_label(ensemble), parse_math=False)
        if lower:
            label_bins(last, ensemble, row.dataset.isel(feature=0))
        last.set_xlabel(with_units(row.name, units_of(ensemble, row.name)), parse_math=False)
        date_axis(last, units_of(ensemble, row.name))
        if not len(row.z):
            for panel in panels:
                say_constant(panel)
            return as_array(panels)
        _draw(first, row, "curve")
        if lower:
            _draw(last, row, "effect")
            first.set_xlim(last.get_xlim())
        draw_legend(panels)
    return as_array(panels)


def plot_ensembles(
    ensemble: xr.Dataset,
    features: Any,
    n_columns: int,
    most: int,
    ax: Axes | Sequence[Axes] | NDArray[np.object_] | None,
) -> NDArray[np.object_]:
    """Curves of several features, a panel each, on one scale in a figure of our own."""
    ensemble = _prepared(ensemble)
    chosen = _chosen(ensemble, features, most, limited=ax is None)
    rows = [one_row(ensemble, feature) for feature in chosen]
    new_figure = ax is None
    with several_panels(
        "ax", ax, len(rows), "one a feature", lambda: grid_of_panels(len(rows), n_columns)
    ) as panels:
        for panel, row in zip(panels, rows, strict=True):
            panel.set_title(row.name, parse_math=False)
            units = units_of(ensemble, row.name)
            panel.set_xlabel(with_units("", units).strip(), parse_math=False)
            date_axis(panel, units)
            if not new_figure:
                panel.set_ylabel(output_label(ensemble), parse_math=False)
            if len(row.z):
                _draw(panel, row, "curve")
            else:
                say_constant(panel)
        if new_figure:
            size = panels[0].yaxis.label.get_fontsize()
            label = output_label(ensemble)
            panels[0].figure.supylabel(label, fontsize=size, parse_math=False)
            if features is None and len(rows) < ensemble.sizes["feature"]:
                say_limited(panels, ensemble.sizes["feature"])
        draw_legend(panels)
    return as_array(panels)


def _prepared(ensemble: xr.Dataset) -> xr.Dataset:
    """With intervals, which are made if there are none."""
    ensemble = check_ensemble(ensemble)
    return ensemble if "curve_ci" in ensemble else confint(ensemble, None, LEVEL, None)


def _chosen(ensemble: xr.Dataset, features: Any, most: int, *, limited: bool) -> list[Any]:
    """The features to draw; by default all, or those of largest importance."""
    names = feature_names(ensemble)
    if features is None:
        order = np.argsort(-np.nan_to_num(size_of(ensemble)), kind="stable")
        some = limited and len(names) > most
        return [names[position] for position in order[:most]] if some else list(names)
    chosen = [features] if isinstance(features, str | int | np.integer) else list(features)
    if not chosen:
        raise ValueError("features must name at least one feature; got none.")
    return chosen


def _drawn(row: Row, name: str) -> _EnsembleCurve:
    dataset = row.dataset

    def values(key: str) -> FloatArray | None:
        return np.asarray(dataset[key].values[0]) if key in dataset else None

    total = values(f"{name}_se")
    assert total is not None, "intervals come with standard errors"
    band = dataset[f"{name}_band"].isel(feature=0) if f"{name}_band" in dataset else None
    return _EnsembleCurve(
        row.z,
        centre_of(dataset, name)[0],
        total,
        values(f"{name}_se_rows"),
        dataset[f"{name}_ci"].isel(feature=0),
        band,
    )


def _draw(panel: Axes, row: Row, name: str) -> None:
    """Draw one estimate with its errors; levels as points with whiskers."""
    drawn = _drawn(row, name)
    panel.axhline(0, color=REFERENCE, linewidth=0.6, zorder=0.5, gid=OURS)
    if row.levels:
        _draw_levels(panel, drawn, row.levels)
        return
    if name == "effect":
        spread = centre_of(row.dataset, "heterogeneity")[0]
        low, high = drawn.value - spread, drawn.value + spread
        how: dict[str, Any] = {"color": HETEROGENEITY, "alpha": 0.15, "linewidth": 0}
        panel.fill_between(drawn.z, low, high, zorder=1, label=SPREAD, **how)
    for half, opacity, label in (
        (drawn.total, LIGHT, TOTAL if drawn.rows is not None else TOTAL.partition(":")[0]),
        (drawn.rows, DARK, OF_ROWS),
    ):
        if half is not None:
            low, high = drawn.value - half, drawn.value + half
            how = {"color": UNCERTAINTY, "alpha": opacity, "linewidth": 0, "zorder": 2}
            panel.fill_between(drawn.z, low, high, label=label, **how)
    text = ESTIMATE if name == "curve" else OF_EFFECT
    panel.plot(drawn.z, drawn.value, color=AVERAGE, linewidth=1.4, zorder=4, label=text)
    dashes = {"linewidth": 1.0, "linestyle": (0, (4, 2)), "zorder": 3}
    draw_ends(panel, drawn.z, ends_of(drawn.interval), _said(drawn.interval), **dashes)
    if drawn.band is not None:
        text = f"{_percent(drawn.band)} band,\nsimultaneous over the axis"
        draw_ends(panel, drawn.z, ends_of(drawn.band), text, linewidth=0.7, zorder=3)


def _draw_levels(panel: Axes, drawn: _EnsembleCurve, levels: list[str]) -> None:
    """Points at the levels: thick whiskers of the rows, thin ones of models and rows, interval."""
    low, high = ends_of(drawn.interval)
    middle, half = (low + high) / 2, (high - low) / 2
    for place, value, error, width, label in (
        (drawn.z + 0.12, middle, half, 1.0, _said(drawn.interval)),
        (drawn.z, drawn.value, drawn.total, 2.0, TOTAL),
        (drawn.z, drawn.value, drawn.rows, 5.0, OF_ROWS),
    ):
        if error is not None:
            alpha = {2.0: LIGHT + 0.2, 5.0: DARK}.get(width, 1.0)
            how: dict[str, Any] = {
                "fmt": "none",
                "ecolor": UNCERTAINTY,
                "elinewidth": width,
                "alpha": alpha,
            }
            panel.errorbar(place, value, error, label=label, zorder=2, **how)
    panel.plot(
        drawn.z, drawn.value, "o", color=AVERAGE, markersize=4, zorder=4, label=ESTIMATE, gid=OURS
    )
    panel.set_xticks(drawn.z, levels, parse_math=False)
    panel.margins(x=0.1)


def _percent(interval: xr.DataArray) -> str:
    return f"{100 * float(interval.attrs['ci_prob']):g} %"


def _said(interval: xr.DataArray) -> str:
    """The interval in words, for the legend."""
    words = WORDS.get(str(interval.attrs.get("ci_kind")), "spread of the models")
    return f"{_percent(interval)} {words},\npointwise"
