"""Plot of the difference of two curves."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from rhale_stats.drawing.canvas import (
    AVERAGE,
    REFERENCE,
    date_axis,
    feature_label,
    one_panel,
    upright,
)
from rhale_stats.drawing.curve import draw_band, draw_interval, ends_of
from rhale_stats.drawing.legend import DIFFERENCE, NO_RANGE, OURS, draw_legend, note, say_empty
from rhale_stats.schema.checks import check_dataset, check_variables
from rhale_stats.schema.dimensions import check_one_part
from rhale_stats.schema.features import feature_position, units_of
from rhale_stats.schema.validation import validated

DRAWN = ("feature", "difference", "difference_ci", "difference_band", "grid_value", "p_value")


@validated
def plot_compare(comparison: xr.Dataset, feature: str | int, ax: Axes | None = None) -> Axes:
    """Difference of two curves with its pointwise interval, its band and its p-value.

    Parameters
    ----------
    comparison : Dataset
        What `compare` returned.
    feature : str or int
        Name or number of the feature.
    ax : Axes, optional
        By default that of a new figure.

    Returns
    -------
    Axes

    Raises
    ------
    KeyError
        Unknown feature.
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
    with one_panel(ax, (7.0, 3.6)) as panel:
        name = str(row["feature"].values)
        panel.set_xlabel(feature_label(comparison, name), parse_math=False)
        date_axis(panel, units_of(comparison, name))
        label = f"effect on {comparison.attrs.get('output_name', 'output')}: a less b"
        output_units = str(comparison.attrs.get("output_units", ""))
        panel.set_ylabel(upright(label, output_units), parse_math=False)
        if not row.sizes["grid"]:
            say_empty([panel], NO_RANGE)
            return panel
        _draw_difference(panel, row)
        draw_legend([panel])
    return panel


def _draw_difference(panel: Axes, row: xr.Dataset) -> None:
    x = row["grid_value"].values
    panel.axhline(0, color=REFERENCE, linewidth=0.8, zorder=0.5, gid=OURS)
    panel.plot(
        x, row["difference"].values, color=AVERAGE, linewidth=1.4, zorder=3, label=DIFFERENCE
    )
    draw_interval(panel, x, ends_of(row["difference_ci"]), row["difference_ci"])
    draw_band(panel, x, ends_of(row["difference_band"]), row["difference_band"])
    panel.margins(x=0.02)
    if row["difference_ci"].attrs.get("ci_kind", "confidence") != "confidence":
        return  # draws and models have no p-value
    null = row.attrs.get("null", "no difference between the curves")
    text = f"{null}: p {pvalue_text(float(row['p_value']))}"
    adjust = str(row.attrs.get("adjust", "none"))
    if adjust != "none" and "p_value_adjusted" in row:
        text += f", adjusted ({adjust}) {pvalue_text(float(row['p_value_adjusted'])).lstrip('= ')}"
    note(panel, text)


def pvalue_text(value: float) -> str:
    """A p-value with the sign before it: = 0.42, < 0.001."""
    if np.isnan(value):
        return "unknown"
    if value < 0.001:
        return "< 0.001"
    return f"= {value:.3f}" if value < 0.1 else f"= {value:.2f}"
