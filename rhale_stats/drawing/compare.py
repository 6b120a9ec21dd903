"""Plot of the difference of two curves."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from rhale_stats.drawing import curve, frame, legend
from rhale_stats.schema.checks import check_dataset, check_variables
from rhale_stats.schema.dimensions import check_one_part
from rhale_stats.schema.features import feature_position
from rhale_stats.schema.validation import validated

DRAWN = ("feature", "difference", "difference_ci", "difference_band", "grid_value", "p_value")


@validated
def plot_compare(comparison: xr.Dataset, feature: str | int, ax: Axes | None = None) -> Axes:
    """Difference of two curves with its pointwise interval, its band and its p-value.

    Parameters
    ----------
    comparison : Dataset
        What `compare` returned.
    %(one feature in one panel)s
    TypeError
        ``comparison`` is not a Dataset, or ``ax`` is not an Axes.
    ValueError
        ``comparison`` is not a difference of curves.

    Notes
    -----
    Dashed lines are pointwise intervals, thin lines a simultaneous band. Where zero is outside the
    band, the curves differ. Between the points of the comparison the lines are straight; in linear
    bins the error is one sixteenth of the deviation of the difference from the chord of the bin.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> effects = []
    >>> for seed in (2, 3):
    ...     X = np.random.default_rng(seed).uniform(-1, 1, (500, 2))
    ...     local = rs.local_effects(lambda X: 2 * X[:, 0] + 4 * X[:, 0] * X[:, 1], X)
    ...     effects.append(rs.rhale(local, bins=rs.EqualWidthBins(5)))
    >>> rs.plots.compare(rs.compare(*effects, rng=0), "x0").texts[0].get_text()
    'no difference between the curves: p = 0.85, adjusted (holm) 1.00'
    """
    check_dataset(comparison, "comparison", "compare(a, b)")
    if "edge_a" in comparison.dims:
        raise ValueError(
            "comparison must be of curves here; this one is of two surfaces. Draw it with "
            "plots.surface(comparison)."
        )
    check_variables(comparison, "comparison", DRAWN, "compare(a, b)")
    check_one_part(comparison, "comparison")
    row = comparison.isel(feature=feature_position(comparison, feature))
    row = row.isel(grid=row["grid_value"].notnull().values)
    with frame.one_panel(ax, (7.0, 3.6)) as panel:
        frame.name_feature(panel, comparison, str(row["feature"].values))
        frame.name_axes(panel, y=frame.output_label(comparison, ": a less b"))
        if row.sizes["grid"]:
            _draw_difference(panel, row)
        else:
            frame.say_empty([panel], legend.NO_RANGE)
    return panel


def _draw_difference(panel: Axes, row: xr.Dataset) -> None:
    x, difference = row["grid_value"].values, row["difference"].values
    frame.draw_zero(panel, linewidth=0.8)
    line: dict[str, Any] = {"color": frame.AVERAGE, "linewidth": 1.4, "zorder": 3}
    panel.plot(x, difference, label=legend.DIFFERENCE, **line)
    interval, band = row["difference_ci"], row["difference_band"]
    curve.draw_uncertainty(
        *(panel, x, curve.Ends(curve.ends_of(interval), curve.interval_label(interval))),
        curve.Ends(curve.ends_of(band), curve.band_label(band)),
    )
    panel.margins(x=0.02)
    if interval.attrs.get("ci_kind", "confidence") != "confidence":
        return  # draws and models have no p-value
    null = row.attrs.get("null", "no difference between the curves")
    text = f"{null}: p {pvalue_text(float(row['p_value']))}"
    adjust = str(row.attrs.get("adjust", "none"))
    if adjust != "none" and "p_value_adjusted" in row:
        text += f", adjusted ({adjust}) {pvalue_text(float(row['p_value_adjusted'])).lstrip('= ')}"
    frame.note(panel, text)


def pvalue_text(value: float) -> str:
    """A p-value with the sign before it: = 0.42, < 0.001."""
    if np.isnan(value):
        return "unknown"
    if value < 0.001:
        return "< 0.001"
    return f"= {value:.3f}" if value < 0.1 else f"= {value:.2f}"
