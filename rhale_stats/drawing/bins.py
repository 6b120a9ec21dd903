"""Plots of the bins of one feature over its local effects, and of the loss of their numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter
from numpy.typing import NDArray

from rhale_stats.drawing.canvas import (
    AVERAGE,
    HETEROGENEITY,
    as_array,
    new_panels,
    one_panel,
    several_panels,
    upright,
)
from rhale_stats.drawing.legend import CHOSEN, LOSS, OURS, draw_legend, label_bins, note, say_empty
from rhale_stats.drawing.rows import draw_rows, rows_of
from rhale_stats.local.rows import estimation_rows
from rhale_stats.schema.checks import check_effect, check_local
from rhale_stats.schema.features import one_feature
from rhale_stats.schema.levels import refuse_categorical
from rhale_stats.schema.validation import validated


@validated
def plot_scores(effect: xr.Dataset, feature: str | int, ax: Axes | None = None) -> Axes:
    """Loss L against the number of bins K, and the number that the rule chose.

    Parameters
    ----------
    effect : Dataset
        What `rhale` returned, with a rule that compares numbers of bins: `BestEqualWidthBins`.
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
    TypeError, ValueError
        ``effect`` is another kind of object, or its rule compares no numbers of bins; ``ax`` is not
        an Axes.

    Notes
    -----
    Numbers of bins that leave too few rows in some bin have no loss; a note says how many there
    are. `plots.bins` shows the same below the bins themselves.

    References
    ----------
    Gkolemis et al. (2023), *RHALE*, Eq. 10 and 11.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> local = rs.local_effects(lambda X: X[:, 0] ** 3 + X[:, 0] * X[:, 1], X)
    >>> panel = rs.plots.scores(rs.rhale(local, bins=rs.BestEqualWidthBins()), "x0")
    >>> panel.get_xlabel()
    'number of bins'
    """
    effect = check_effect(effect)
    row = one_feature(effect, feature)
    refuse_categorical(row, "plots.scores")
    if "bin_loss" not in effect:
        raise ValueError(
            f"effect must be of a rule that compares numbers of bins, such as "
            f"rhale(local, bins=BestEqualWidthBins()); its rule is {effect.attrs['bin_rule']}."
        )
    with one_panel(ax, (5.0, 3.4)) as panel:
        label_loss(panel, effect)
        if np.isfinite(row["bin_loss"].values).any():
            draw_loss(panel, row)
            draw_legend([panel])
        else:
            say_empty([panel])
    return panel


def label_loss(panel: Axes, effect: xr.Dataset) -> None:
    """Name the axes of a panel of losses."""
    panel.set_xlabel("number of bins")
    units = str(effect.attrs.get("output_units", ""))
    panel.set_ylabel(upright("loss", units), parse_math=False)


def draw_loss(panel: Axes, row: xr.Dataset) -> None:
    """Draw the loss of every allowed number of bins, and mark the chosen one."""
    tried, loss = row["n_bins_tried"].values, row["bin_loss"].values
    allowed = np.isfinite(loss)
    panel.plot(
        tried[allowed],
        loss[allowed],
        color=HETEROGENEITY,
        marker="o",
        markersize=3,
        linewidth=0.8,
        label=f"{LOSS} of so many bins",
        gid=OURS,
    )
    # Few bins differ most: from 1 to 2 as much of the axis as from 50 to 100.
    panel.set_xscale("log")
    panel.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    panel.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    panel.xaxis.set_minor_formatter(NullFormatter())
    chosen = int(row["n_bins"])
    panel.plot(
        [chosen],
        loss[tried == chosen],
        color=AVERAGE,
        marker="D",
        markersize=6,
        linestyle="none",
        zorder=3,
        label=f"{CHOSEN} {chosen}",
    )
    if not allowed.all():
        note(panel, f"{(~allowed).sum()} of {len(tried)} numbers of bins leave too few rows")


@validated
def plot_bins(
    effect: xr.Dataset,
    local: xr.Dataset,
    feature: str | int,
    ax: Axes | Sequence[Axes] | NDArray[np.object_] | None = None,
) -> NDArray[np.object_]:
    """Local effects of the rows against the feature, with the bins and their estimates.

    Vertical lines are the edges. The other lines are the effects of the bins (sloped in linear
    bins), with a band of plus and minus the heterogeneity. If the bins fit well, points lie on both
    sides of each line over its whole length. If the rule compared numbers of bins, a second panel
    shows the loss for each number and marks the chosen one.

    Parameters
    ----------
    effect : Dataset
        What `rhale` returned.
    local : Dataset
        The local effects that ``effect`` was made from. With honest bins the rows used for
        estimation are drawn, not those on which the edges were chosen.
    feature : str or int
        Name or number of the feature.
    ax : Axes or pair of Axes, optional
        One Axes, or two (bins and loss) if ``effect`` has a ``bin_loss``. By default those of a new
        figure.

    Returns
    -------
    ndarray of shape (1,) or (2,)
        The Axes.

    Raises
    ------
    KeyError
        Unknown feature, or a feature that ``local`` does not have.
    TypeError
        ``effect`` or ``local`` is another kind of object, or ``ax`` is not Axes.
    ValueError
        Wrong number of Axes, or rows of ``local`` that lie in no bin.

    Notes
    -----
    Every row is drawn. Up to 3000 rows are drawn as points, with area proportional to their weights
    if there are any. More rows are drawn as hexagonal cells, darker where they hold more rows or
    weight. If long tails would hide the bins, the panel shows the central 99 % of the local
    effects, and a note gives the share off the scale. A bin without rows has only its edges; a bin
    with one row has no band.

    Numbers of bins that leave too few rows in some bin have no loss; a note says how many there
    are.

    References
    ----------
    Gkolemis et al. (2023), *RHALE*, Eq. 10 and 11; note of June 2021, *Idea in bullets*, section 3.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> local = rs.local_effects(lambda X: X[:, 0] ** 3 + X[:, 0] * X[:, 1], X)
    >>> (panel,) = rs.plots.bins(rs.rhale(local), local, "x0")
    >>> panel.get_ylabel()
    'd output / d x0'
    >>> bins, loss = rs.plots.bins(rs.rhale(local, bins=rs.BestEqualWidthBins()), local, "x0")
    >>> loss.get_xlabel()
    'number of bins'
    """
    row = one_feature(check_effect(effect), feature)
    refuse_categorical(row, "plots.bins")
    rows = rows_of(estimation_rows(check_local(local), effect), row)
    n_panels = 2 if "bin_loss" in effect else 1
    which = "for bins and for loss" if n_panels == 2 else "one"
    axes = [ax] if isinstance(ax, Axes) else ax
    with several_panels(
        "ax", axes, n_panels, which, lambda: column([3.6, 2.4][:n_panels])
    ) as panels:
        label_bins(panels[0], effect, row)
        if n_panels == 2:
            label_loss(panels[1], effect)
        if rows is None:
            say_empty(panels)
            return as_array(panels)
        draw_rows(panels[0], rows, row)
        if n_panels == 2:
            draw_loss(panels[1], row)
        draw_legend(panels)
    return as_array(panels)


def column(heights: list[float]) -> list[Axes]:
    """A figure with panels of these heights in inches, one below the other."""
    return list(new_panels(len(heights), 1, (7.0, sum(heights)), height_ratios=heights)[:, 0])
