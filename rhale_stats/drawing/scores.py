"""Plot of the loss of numbers of bins, by which a rule chose."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from rhale_stats.drawing.canvas import AVERAGE, HETEROGENEITY, one_panel, upright
from rhale_stats.drawing.legend import draw_legend, note, say_empty
from rhale_stats.drawing.marks import CHOSEN, LOSS, OURS
from rhale_stats.schema.checks import check_effect
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
