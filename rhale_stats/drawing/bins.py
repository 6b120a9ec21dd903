"""Plots of bins: over local effects, the loss of their numbers, their bias, edges in replicates."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter
from numpy.typing import NDArray

from rhale_stats.drawing import frame
from rhale_stats.drawing.rows import draw_rows, rows_of
from rhale_stats.effects.tables import columns_of_checks
from rhale_stats.schema.checks import check_effect, check_local, check_variables
from rhale_stats.schema.dimensions import check_one_part
from rhale_stats.schema.feature_result import FeatureResult, one_feature
from rhale_stats.schema.features import feature_position
from rhale_stats.schema.levels import refuse_categorical
from rhale_stats.schema.validation import validated

# Minimum range of the axis of shares of replicates, so that rare edges look rare.
EDGE_SHARE = 0.2


@validated
def plot_edges(
    boot: xr.Dataset,
    feature: str | int,
    ax: Sequence[Axes] | NDArray[np.object_] | None = None,
) -> NDArray[np.object_]:
    """Positions and number of the bin edges of one feature in bootstrap replicates.

    The first panel shows, for every cell of the grid, the share of replicates with an edge in it.
    The second shows the distribution of the number of bins over the replicates. Edges that the data
    determine well are narrow peaks near 1.

    Parameters
    ----------
    boot : Dataset
        What `bootstrap` returned with ``rebin=True``.
    %(feature)s
    ax : pair of Axes, optional
        One for the edges, one for the number of bins. By default those of a new figure.

    Returns
    -------
    ndarray of shape (2,)
        The Axes.

    %(raises)s
    ValueError
        ``boot`` has fixed bins, or the number of Axes is not two.

    Notes
    -----
    The ends of the axis do not count as edges here. Finer grids have lower bars, because fewer
    replicates have an edge in each cell.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> x = np.random.default_rng(0).uniform(-1, 1, (500, 1))
    >>> local = rs.local_effects(lambda X: np.abs(X[:, 0]), x)
    >>> boot = rs.bootstrap(local, rs.rhale(local), n_resamples=40, rebin=True, rng=0)
    >>> edges, number = rs.plots.edges(boot, "x0")
    >>> edges.get_xlabel(), number.get_xlabel()
    ('x0', 'number of bins')
    """
    check_variables(boot, "boot", ("feature",), "bootstrap(local, effect, rebin=True)")
    check_one_part(boot, "boot")
    if not {"edge_frequency", "n_bins"} <= set(boot.variables) or "draw" not in boot["n_bins"].dims:
        raise ValueError(
            "boot must have edges that were chosen again in every replicate; in this one they are "
            "fixed or not counted. Make it with bootstrap(local, effect, rebin=True)."
        )
    row = boot.isel(feature=feature_position(boot, feature))
    made = partial(frame.new_panels, 1, 2, (7.0, 2.8), width_ratios=[2.2, 1])
    which = "for edges and for number of bins"
    with frame.several_panels(ax, 2, which, made, legend=False) as panels:
        edges, number = panels
        frame.name_axes(edges, frame.feature_label(boot, str(row["feature"].values)))
        frame.name_axes(edges, y="share of replicates\nwith an edge in the cell")
        frame.name_axes(number, "number of bins", "share of replicates")
        grid = row["grid_value"].values
        if np.isnan(grid).all():
            frame.say_empty(panels)
            return panels
        frequency = row["edge_frequency"].values
        edges.stairs(frequency, grid, fill=True, color=frame.OTHER, linewidth=0)
        highest = float(frequency.max())
        if not highest:
            frame.say(edges, frame.ONE_BIN)
        edges.set_ylim(0, min(1.1 * max(highest, EDGE_SHARE), 1.0))
        edges.margins(x=0.02)
        n_bins = row["n_bins"].values
        values, count = np.unique(n_bins[np.isfinite(n_bins)], return_counts=True)
        number.bar(values, count / count.sum(), 0.8, color=frame.OTHER)
        number.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        frame.note(number, f"{count.sum()} replicates")
    return panels


@validated
def plot_bias(check: xr.Dataset, feature: str | int, ax: Axes | None = None) -> Axes:
    """Variance of the local effects in every bin, split into heterogeneity and bin error.

    The filled part of a bar is the squared heterogeneity within the bin, and the hatched part above
    it is the bin error. The line is their sum: the variance about the effect in the bin (in a
    linear bin, about its line). A whisker is the sum plus and minus the standard error of the bin
    error. One star marks bins with significant bin error. Two stars mark those whose bias also
    exceeds the standard error of the heterogeneity. A cross marks bins with too few rows to
    test.

    Parameters
    ----------
    check : Dataset
        What `check_unbiased` returned.
    %(one feature in one panel)s
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
    with frame.one_panel(ax, (7.0, 3.6)) as panel:
        frame.name_feature(panel, check, row.name)
        frame.name_axes(panel, y="variance of local effects")
        if row.sizes["bin"]:
            _draw_bias(panel, row)
        else:
            frame.say_empty([panel])
    return panel


def _draw_bias(panel: Axes, row: FeatureResult) -> None:
    left, right = row["bin_left"].values, row["bin_right"].values
    width, middle = right - left, (left + right) / 2
    within, total = row["heterogeneity_within"].values ** 2, columns_of_checks(row)["sigma2_star"]
    se, over = row["bin_error_se"].values, np.maximum(total - within, 0.0)
    fill: dict[str, Any] = {"color": frame.HETEROGENEITY_FILL, "edgecolor": "white"}
    panel.bar(left, within, width, align="edge", linewidth=0.5, label=frame.WITHIN, **fill)
    hatched: dict[str, Any] = {"facecolor": "none", "edgecolor": frame.OTHER, "hatch": "////"}
    hatched |= {"linewidth": 0, "label": frame.BIN_ERROR}
    panel.bar(left, over, width, bottom=within, align="edge", **hatched)
    line: dict[str, Any] = {"color": frame.AVERAGE, "linewidth": 1.4, "gid": frame.OURS}
    panel.hlines(total, left, right, label=frame.TOTAL, **line)
    frame.draw_whiskers(panel, middle, total, se, 1.2, capsize=2, label=frame.BIN_ERROR_SE)
    frame.draw_zero(panel)
    top = np.fmax(np.fmax(total + np.nan_to_num(se), within), 0.0)
    verdict = row["verdict"].values
    for phrase, sign in frame.MARKS.items():
        for k in np.flatnonzero(verdict == phrase):
            frame.mark(panel, sign, (middle[k], np.nan_to_num(top[k])), 0, 2)
    margin = 0.02 * (right[-1] - left[0])
    panel.set_xlim(left[0] - margin, right[-1] + margin)
    panel.margins(y=0.12)


@validated
def plot_scores(effect: xr.Dataset, feature: str | int, ax: Axes | None = None) -> Axes:
    """Loss L against the number of bins K, and the number that the rule chose.

    Parameters
    ----------
    effect : Dataset
        What `rhale` returned, with a rule that compares numbers of bins: `BestEqualWidthBins`.
    %(one feature in one panel)s
    ValueError
        The rule of ``effect`` compares no numbers of bins.

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
    with frame.one_panel(ax, (5.0, 3.4)) as panel:
        _draw_loss(panel, row)
    return panel


def _draw_loss(panel: Axes, row: FeatureResult) -> None:
    """Draw the loss of every allowed number of bins, and mark the chosen one."""
    units = str(row.attrs.get("output_units", ""))
    frame.name_axes(panel, "number of bins", frame.upright("loss", units))
    tried, loss = row["n_bins_tried"].values, row["bin_loss"].values
    allowed = np.isfinite(loss)
    if not allowed.any():
        frame.say_empty([panel])
        return
    line: dict[str, Any] = {"color": frame.HETEROGENEITY, "linewidth": 0.8, "gid": frame.OURS}
    line |= {"marker": "o", "markersize": 3, "label": f"{frame.LOSS} of so many bins"}
    panel.plot(tried[allowed], loss[allowed], **line)
    # Few bins differ most: from 1 to 2 as much of the axis as from 50 to 100.
    panel.set_xscale("log")
    panel.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    panel.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    panel.xaxis.set_minor_formatter(NullFormatter())
    chosen = int(row["n_bins"])
    label = f"{frame.CHOSEN} {chosen}"
    how: dict[str, Any] = {"color": frame.AVERAGE, "markersize": 6, "zorder": 3, "label": label}
    panel.plot([chosen], loss[tried == chosen], "D", **how)
    if not allowed.all():
        left_out = f"{(~allowed).sum()} of {len(tried)} numbers of bins leave too few rows"
        frame.note(panel, left_out)


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
    %(feature)s
    ax : Axes or pair of Axes, optional
        One Axes, or two (bins and loss) if ``effect`` has a ``bin_loss``. By default those of a new
        figure.

    Returns
    -------
    ndarray of shape (1,) or (2,)
        The Axes.

    %(raises; local)s
    ValueError
        Wrong number of Axes, or rows of ``local`` that lie in no bin.

    Notes
    -----
    Every row is drawn. Up to 3000 rows are drawn as points, with area proportional to their weights
    if there are any. More rows are drawn as hexagonal cells, darker where they hold more rows or
    weight. If long tails would hide the bins, the panel shows the central 99 % of the local
    effects, and a note gives the share off the scale. A bin without rows has only its edges; a bin
    with one row has no band.

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
    rows = rows_of(check_local(local), row, effect)
    n_panels = 2 if "bin_loss" in effect else 1
    which = "for bins and for loss" if n_panels == 2 else "one"
    axes = [ax] if isinstance(ax, Axes) else ax
    made = partial(frame.column, [3.6, 2.4][:n_panels])
    with frame.several_panels(axes, n_panels, which, made) as panels:
        frame.name_bins(panels[0], effect, row)
        if rows is None:
            frame.say_empty(panels[:1])
        else:
            draw_rows(panels[0], rows, row)
        if n_panels == 2:
            _draw_loss(panels[1], row)
    return panels
