"""Plot of the curves of several methods."""

from __future__ import annotations

import numpy as np
import seaborn as sns
import xarray as xr
from matplotlib.axes import Axes

from rhale_stats.drawing.canvas import AVERAGE, REFERENCE, one_panel, output_label
from rhale_stats.drawing.profile import STANDARD_ERROR, draw_shares, legend, levels
from rhale_stats.schema.features import with_units
from rhale_stats.schema.validation import validated

LINES = ("-", (0, (6, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)), (0, (3, 1, 1, 1, 1, 1)))


@validated
def plot_methods(comparison: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Curves of one feature by several methods, in one panel.

    Every method has its own colour and line style. A light band is plus and minus one standard
    error, where it is known. Levels of a category are groups of bars, with plus and minus
    the standard error as whiskers, and the share of their rows below their names.

    Parameters
    ----------
    comparison : Dataset
        What `compare_methods` returned.
    ax : Axes, optional
        By default that of a new figure.

    Returns
    -------
    Axes
        The Axes with the curves.

    Raises
    ------
    TypeError, ValueError
        ``comparison`` is not a result of `compare_methods`.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    >>> model = lambda X: X[:, 0] * X[:, 1]
    >>> both = rs.compare_methods([rs.pdp(model, X), rs.m_plot(model, X)], "x0")
    >>> [text.get_text() for text in rs.plots.methods(both).get_legend().get_texts()]
    ['Partial dependence', 'M-plot']
    """
    if not isinstance(comparison, xr.Dataset):
        raise TypeError(
            f"comparison must be what compare_methods returned; got {type(comparison).__name__}."
        )
    if comparison.attrs.get("method") != "comparison of methods":
        raise ValueError(
            f"comparison must be what compare_methods returned; this one holds "
            f"{', '.join(str(name) for name in comparison.data_vars)}."
        )
    with one_panel(ax, (6.4, 4.0)) as panel:
        attrs = comparison.attrs
        panel.set_xlabel(
            with_units(str(attrs["feature"]), str(attrs["feature_units"])), parse_math=False
        )
        panel.set_ylabel(output_label(comparison), parse_math=False)
        panel.axhline(0, color=REFERENCE, linewidth=0.6, zorder=0.5)
        colours = sns.color_palette("colorblind", comparison.sizes["effect_method"])
        x, nominal = comparison["grid_value"].values, "level" in comparison.coords
        with_errors = np.flatnonzero(comparison["curve_se"].notnull().any("grid"))
        for number, colour in enumerate(colours):
            row = comparison.isel(effect_method=number)
            curve, se = row["curve"].values, row["curve_se"].values
            name = str(row["effect_method"].values)
            if nominal:
                width = 0.8 / len(colours)
                positions = x + width * (number - (len(colours) - 1) / 2)
                panel.bar(positions, curve, 0.9 * width, color=colour, alpha=0.8, label=name)
                panel.errorbar(
                    positions,
                    curve,
                    se,
                    fmt="none",
                    ecolor=AVERAGE,
                    elinewidth=1.4,
                    capsize=2,
                    label=STANDARD_ERROR if number == max(with_errors, default=-1) else None,
                )
                continue
            panel.fill_between(x, curve - se, curve + se, color=colour, alpha=0.25, linewidth=0)
            panel.plot(
                x,
                curve,
                color=colour,
                linestyle=LINES[number % len(LINES)],
                linewidth=1.8,
                label=name,
            )
        if nominal:
            panel.set_xticks(x, levels(comparison), parse_math=False)
        else:
            draw_shares(panel, x, comparison["weight_share"].values)
        legend(panel)
    return panel
