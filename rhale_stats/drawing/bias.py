"""Plots of the heterogeneity within bins and of the bin error."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from rhale_stats.drawing.canvas import (
    AVERAGE,
    HETEROGENEITY_FILL,
    OTHER,
    REFERENCE,
    UNCERTAINTY,
    date_axis,
    feature_label,
    one_panel,
)
from rhale_stats.drawing.legend import (
    BIN_ERROR,
    BIN_ERROR_SE,
    MARKS,
    OURS,
    TOTAL,
    WITHIN,
    draw_legend,
    say_empty,
)
from rhale_stats.schema.checks import check_effect
from rhale_stats.schema.features import one_feature, units_of
from rhale_stats.schema.validation import validated


@validated
def plot_bias(check: xr.Dataset, feature: str | int, ax: Axes | None = None) -> Axes:
    """Variance of the local effects in every bin, split into heterogeneity and bin error.

    The filled part of a bar is the squared heterogeneity within the bin, and the hatched part above
    it is the bin error. The line is their sum, sigma2_star: the variance about the effect in the
    bin (in a linear bin, about its line). A whisker is the sum plus and minus the standard error of
    the bin error. One star marks bins with significant bin error. Two stars mark those whose bias
    also exceeds the standard error of the heterogeneity. A cross marks bins with too few rows to
    test.

    Parameters
    ----------
    check : Dataset
        What `check_unbiased` returned.
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
        ``check`` is not a Dataset, or ``ax`` is not an Axes.
    ValueError
        ``check`` is not a result of `check_unbiased`.

    Notes
    -----
    The estimated bin error can be negative by chance. The line then lies inside the filled part.

    References
    ----------
    Gkolemis et al. (2023), *RHALE*, Theorem 1.

    Examples
    --------
    >>> import rhale_stats as rs
    >>> example = rs.simulate.Quadratic()
    >>> X = example.sample(2000, rng=0)
    >>> local = rs.local_effects(None, X, jacobian=example.jacobian, features="x1")
    >>> check = rs.check_unbiased(local, rs.rhale(local, bins=rs.EqualWidthBins(4)))
    >>> rs.plots.bias(check, "x1").get_xlabel()
    'x1'
    """
    check = check_effect(check, "check", "check_unbiased(local, effect)")
    if "verdict" not in check:
        raise ValueError(
            "check must be what check_unbiased(local, effect) returned; this one has no verdict."
        )
    row = one_feature(check, feature)
    with one_panel(ax, (7.0, 3.6)) as panel:
        name = str(row["feature"].values)
        panel.set_xlabel(feature_label(check, name), parse_math=False)
        date_axis(panel, units_of(check, name))
        panel.set_ylabel("variance of local effects")
        if not row.sizes["bin"]:
            say_empty([panel])
            return panel
        _draw_bias(panel, row)
        draw_legend([panel])
    return panel


def _draw_bias(panel: Axes, row: xr.Dataset) -> None:
    left, right = row["bin_left"].values, row["bin_right"].values
    width, middle = right - left, (left + right) / 2
    within, total = row["heterogeneity_within"].values ** 2, row["sigma2_star"].values
    se = row["bin_error_se"].values
    panel.bar(
        left,
        within,
        width,
        align="edge",
        color=HETEROGENEITY_FILL,
        edgecolor="white",
        linewidth=0.5,
        label=WITHIN,
    )
    panel.bar(
        left,
        np.maximum(total - within, 0.0),
        width,
        bottom=within,
        align="edge",
        facecolor="none",
        edgecolor=OTHER,
        hatch="////",
        linewidth=0,
        label=BIN_ERROR,
    )
    lines = panel.hlines(total, left, right, color=AVERAGE, linewidth=1.4, label=TOTAL)
    lines.set_gid(OURS)
    panel.errorbar(
        middle,
        total,
        se,
        fmt="none",
        ecolor=UNCERTAINTY,
        elinewidth=1.2,
        capsize=2,
        label=BIN_ERROR_SE,
    )
    panel.axhline(0, color=REFERENCE, linewidth=0.6, zorder=0.5, gid=OURS)
    top = np.fmax(np.fmax(total + np.nan_to_num(se), within), 0.0)
    verdict = row["verdict"].values
    for phrase, mark in MARKS.items():
        for k in np.flatnonzero(verdict == phrase):
            panel.annotate(
                mark,
                (middle[k], np.nan_to_num(top[k])),
                (0, 2),
                textcoords="offset points",
                ha="center",
                va="bottom",
                fontsize="small",
            )
    panel.set_xlim(left[0] - 0.02 * (right[-1] - left[0]), right[-1] + 0.02 * (right[-1] - left[0]))
    panel.margins(y=0.12)
