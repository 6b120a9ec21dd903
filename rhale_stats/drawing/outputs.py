"""Plots of several outputs of one model, such as classes or targets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from numpy.typing import NDArray

from rhale_stats.arguments.checks import check_choice
from rhale_stats.drawing.canvas import (
    as_array,
    date_axis,
    feature_label,
    output_label,
    several_panels,
)
from rhale_stats.drawing.curve import draw_curves
from rhale_stats.drawing.legend import draw_legend, grid_of_panels
from rhale_stats.drawing.profile import plot_profile_outputs
from rhale_stats.effects.intervals import with_own_intervals
from rhale_stats.profiles.data import check_profile
from rhale_stats.schema.checks import check_effect
from rhale_stats.schema.dimensions import OUTPUT
from rhale_stats.schema.features import (
    feature_names,
    feature_position,
    one_feature,
    units_of,
)
from rhale_stats.schema.kinds import PROFILE
from rhale_stats.schema.validation import validated


@validated
def plot_outputs(
    effect: xr.Dataset,
    feature: str | int,
    *,
    n_columns: int = 3,
    ax: Axes | Sequence[Axes] | NDArray[np.object_] | None = None,
    spread: str = "none",
) -> NDArray[np.object_]:
    """Effect of one feature on every output of a model: one panel per output, with one y scale.

    Parameters
    ----------
    effect : Dataset
        What `rhale`, `ale`, `pdp`, `ice`, `m_plot` or `shap_dependence` returned, or what
        `std_error`, `confint` or `confband` made from it, with the dimension ``output``.
    feature : str or int
        Name or number of the feature.
    n_columns : int, default 3
        Number of panels per line of a new figure.
    ax : Axes, or sequence of them, optional
        One Axes per output. By default those of a new figure.
    spread : {"none", "band"}, default "none"
        Whether to draw the heterogeneity as a band around the curves, as in the paper.

    Returns
    -------
    ndarray of shape (n_outputs,)
        The Axes, one per output.

    Raises
    ------
    KeyError
        Unknown feature.
    TypeError
        ``effect`` is another kind of object, or ``ax`` is not Axes.
    ValueError
        ``effect`` has one output only; wrong number of Axes; ``n_columns`` below 1.

    Notes
    -----
    Every panel is drawn like the upper panel of `plots.effect`, or like `plots.profile`; the notes
    there explain it.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    >>> def both(X):
    ...     return np.column_stack([X[:, 0] ** 2, X[:, 0] * X[:, 1]])
    >>> panels = rs.plots.outputs(rs.rhale(rs.local_effects(both, X)), "x0")
    >>> [panel.get_title() for panel in panels]
    ['output 0', 'output 1']
    """
    check_choice("spread", spread, ("none", "band"))
    if OUTPUT not in getattr(effect, "dims", ()):
        result = check_profile(effect) if PROFILE.holds(effect) else check_effect(effect)
        raise ValueError(
            f"effect must have the dimension output, of several classes or targets; this one is "
            f"of {result.attrs.get('output_name', 'one output')!r} alone. Use plots.effect."
        )
    if PROFILE.holds(effect):
        return plot_profile_outputs(effect, feature, n_columns=n_columns, ax=ax)
    parts = [
        with_own_intervals(check_effect(effect.isel({OUTPUT: number})))
        for number in range(effect.sizes[OUTPUT])
    ]
    rows = [one_feature(part, feature) for part in parts]
    new_figure = ax is None
    with several_panels(
        "ax", ax, len(rows), "one an output", lambda: grid_of_panels(len(rows), n_columns)
    ) as panels:
        name = feature_names(effect)[feature_position(effect, feature)]
        for panel, part in zip(panels, parts, strict=True):
            panel.set_title(str(part.attrs["output_name"]), parse_math=False)
            panel.set_xlabel(feature_label(effect, name), parse_math=False)
            date_axis(panel, units_of(effect, name))
            if not new_figure:
                panel.set_ylabel(output_label(part), parse_math=False)
        draw_curves(panels, rows, "effect" if new_figure else "", spread)
        draw_legend(panels)
    return as_array(panels)
