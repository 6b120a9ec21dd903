"""Plot of one feature: its curve, its bins and their spread (the paper's Figure 3b)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from numpy.typing import NDArray

from rhale_stats.arguments.checks import check_choice
from rhale_stats.drawing.bins import column
from rhale_stats.drawing.canvas import (
    as_array,
    given_axes,
    output_label,
    refuse_reference,
    several_panels,
)
from rhale_stats.drawing.curve import (
    draw_bins,
    draw_curve,
    draw_deciles,
    draw_shares,
    keep_noise_small,
)
from rhale_stats.drawing.effects import plot_effects
from rhale_stats.drawing.ensembles import plot_ensemble
from rhale_stats.drawing.legend import draw_legend, label_axes, say_empty
from rhale_stats.drawing.profile import plot_profile
from rhale_stats.drawing.rows import draw_rug, draw_violins, pair, rows_of
from rhale_stats.effects.contrasts import relative_to
from rhale_stats.effects.intervals import with_own_intervals
from rhale_stats.local.rows import estimation_rows
from rhale_stats.schema.checks import check_effect, check_local
from rhale_stats.schema.features import feature_names, feature_position, label_of, one_feature
from rhale_stats.schema.kinds import ENSEMBLE, PROFILE
from rhale_stats.schema.levels import is_categorical
from rhale_stats.schema.validation import validated


@validated
def plot_effect(
    effect: xr.Dataset,
    feature: str | int | None = None,
    local: xr.Dataset | None = None,
    ax: Axes | Sequence[Axes] | NDArray[np.object_] | None = None,
    *,
    spread: str = "strip",
    reference: Any = None,
) -> NDArray[np.object_]:
    """Effect of one feature: its curve above, its bins below.

    Black and grey are about the average and how sure it is; colour is about rows. The upper panel
    shows the curve and, dashed, a pointwise 95 % interval. The lower panel, a strip of its own for
    the rows, shows the effect of every bin with, as a bar, a 95 % interval, and the area of plus
    and minus the heterogeneity, which changes at the edges of its own bins (``spread``); with
    ``local`` also a violin of the local effects in every bin, and a rug of the feature's values. In
    a linear bin the effect is a sloped line, with its bar in the middle. If `confint` was called,
    its intervals replace these. If `confband` was called, simultaneous bands are drawn as thin
    lines along the curve and as thin extensions of the bars.

    Parameters
    ----------
    effect : Dataset
        What `rhale`, `std_error`, `confint` or `confband` returned; a profile such as `pdp`, which
        `plots.profile` draws; or effects of several models. Intervals that are missing are added by
        `confint` where they can be computed. Of an explanation its effects are drawn.
    feature : str or int, optional
        Name or number of the feature. Without it, where there are several, all are drawn as by
        `plots.effects`.
    local : Dataset, optional
        The local effects that ``effect`` was made from. All rows used for estimation are drawn,
        with their weights if there are any.
    ax : Axes, or pair of them, optional
        The upper and the lower panel; in a single one the curve alone is drawn, as by
        `plots.effects`. By default those of a new figure.
    spread : {"strip", "band"}, default "strip"
        Where the heterogeneity is drawn: in the lower panel alone, or, as in the paper, also as a
        band of plus and minus its sum around the curve.
    reference : number or level, optional
        A value of the feature. The curve is drawn as the difference from its value there, with
        intervals of that difference; the spread is not drawn as a band.

    Returns
    -------
    ndarray of shape (2,)
        The upper and the lower Axes; the one, or one a feature, where only curves are drawn.

    Raises
    ------
    KeyError
        Unknown feature, or a feature that ``local`` does not have.
    TypeError
        ``effect`` or ``local`` is another kind of object, or ``ax`` is not a pair of Axes.
    ValueError
        The number of Axes is not two, or rows of ``local`` lie in no bin; another ``spread``; a
        ``reference`` where there is no curve, or of effects of several models.

    Notes
    -----
    The band of ``spread="band"`` is the spread of the output if every row keeps its
    rank all along the axis (comonotone, math [9]): the ``spread``, accumulated. Results without
    ``spread``, as those of `merge`, have ``curve_std_sum`` instead, and whiskers in the
    lower panel. It measures how much the rows differ and does not shrink with their number. The
    intervals and confidence bands of the average do shrink. It is 0 where the axis begins and grows
    from there, and can be wider than the range of the output: it is easily taken for uncertainty,
    and is no default for that reason. A pointwise interval contains the curve at a given point in
    95 % of samples; a simultaneous band contains the whole curve in 95 % of samples.

    Ticks above the lower axis are the deciles of the rows, the median longer, as far as the counts
    of cells tell them; with ``local`` there is the rug instead.

    If `std_error` was given the model, the intervals hold its parameters, too. They are then drawn
    light, and dark within them the intervals of the rows alone, with the same quantile: lengths
    compare as ``curve_se`` and ``curve_se_rows``. The simultaneous band holds both.

    Between edges the half-widths are interpolated linearly. For the heterogeneity this is exact. In
    a constant bin, intervals from standard errors are never too narrow between the edges, because
    the standard error is a convex function where the curve is linear. In a linear bin they can be
    too narrow, by at most t ``slope_se`` width^2 / 8, where t is the quantile of `confint`.

    A violin is a kernel density estimate from the smallest to the largest local effect of its
    bin, with Silverman's bandwidth, scaled to the bin's width: its area has no meaning. If long
    tails would hide the bins, the panel shows the central 99 % of the local effects, and a note
    gives the share off the scale. The rug is darker where there are more rows, and becomes a strip
    if its ticks would merge.

    In a linear bin the violin shows the residuals about the line: every local effect is moved along
    the slope to the middle of the bin.

    For a categorical feature the upper panel has a bar for every level, with the interval and band
    as whiskers. The lower panel shows the share and number of rows at every level; ``local`` is not
    used.

    With ``missing="bin"`` a mark beside the axis shows the rows without a value: the curve at the
    median plus the effect of a missing value, with the interval of that effect.

    For effects of several models (`over_models`, `bootstrap_refit`, `cross_effects`) the light area
    is plus and minus one standard error, the dark area within it the part of the rows. Both panels
    are over the points of the grid; profiles have the upper panel only.

    A bin without rows leaves a gap. A figure has one legend, above its panels; in one of your own
    ``layout="constrained"`` makes room for it.

    References
    ----------
    Gkolemis, Dalamagas, Ntoutsi and Diou (2023), *RHALE: Robust and Heterogeneity-aware
    Accumulated Local Effects*, Figure 3b.

    Silverman (1986), *Density Estimation for Statistics and Data Analysis*, Eq. 3.31.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> local = rs.local_effects(lambda X: 2 * X[:, 0] + 4 * X[:, 0] * X[:, 1], X)
    >>> upper, lower = rs.plots.effect(rs.rhale(local), "x0", local)
    >>> upper.get_ylabel(), lower.get_ylabel()
    ('effect on output', 'd output / d x0')
    """
    check_choice("spread", spread, ("strip", "band"))
    local = None if local is None else check_local(local)
    names = (
        feature_names(effect)
        if feature is None and "feature" in getattr(effect, "dims", ())
        else []
    )
    if len(names) == 1:
        feature = names[0]
    if feature is None or (isinstance(ax, Axes) and not PROFILE.holds(effect)):
        band = "band" if spread == "band" else "none"
        if feature is not None and reference is not None:
            reference = {feature_names(effect)[feature_position(effect, feature)]: reference}
        return plot_effects(effect, feature, ax=ax, spread=band, reference=reference)
    if ENSEMBLE.holds(effect):
        refuse_reference(reference)
        return plot_ensemble(effect, feature, ax)
    if PROFILE.holds(effect):
        only = None if ax is None else given_axes("ax", ax, 1, "one for a profile")[0]
        return as_array([plot_profile(effect, feature, only, reference=reference)])
    effect = check_effect(effect)
    # The others are not drawn.
    effect = with_own_intervals(effect.isel(feature=[feature_position(effect, feature)]))
    if reference is not None:
        effect, spread = relative_to(effect, reference), "strip"
    row = one_feature(effect, 0)
    rows = None
    if local is not None:
        rows = rows_of(estimation_rows(local, effect), row)
    levels = is_categorical(row)
    with several_panels(
        "ax", ax, 2, "an upper and a lower one", lambda: column([3.6, 1.6]) if levels else pair()
    ) as panels:
        upper, lower = panels
        if levels:
            _draw_levels(upper, lower, effect, row)
            return as_array(panels)
        label_axes(upper, lower, effect, row)
        if not row.sizes["bin"]:
            say_empty(panels)
            return as_array(panels)
        draw_curve(upper, row, spread)
        draw_bins(lower, row)
        upper.set_xlim(lower.get_xlim())
        if rows is not None:
            draw_violins(lower, rows, row)
        keep_noise_small(upper, lower, row)
        if rows is not None:
            draw_rug(lower, rows, row["edge_value"].values)
        else:
            draw_deciles(lower, row)
        draw_legend(panels)
    return as_array(panels)


def _draw_levels(upper: Axes, lower: Axes, effect: xr.Dataset, row: xr.Dataset) -> None:
    """Bars of the levels above, of their rows below."""
    upper.set_ylabel(output_label(effect), parse_math=False)
    lower.set_xlabel(label_of(row, str(row["feature"].values)), parse_math=False)
    draw_curve(upper, row)
    draw_shares(lower, row)
    draw_legend([upper, lower])
