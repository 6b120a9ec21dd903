"""Plot of all features, one panel each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from numpy.typing import NDArray

from rhale_stats.arguments.checks import check_choice
from rhale_stats.arguments.words import shown as shortly
from rhale_stats.drawing.canvas import (
    as_array,
    date_axis,
    output_label,
    refuse_reference,
    several_panels,
)
from rhale_stats.drawing.curve import draw_curves
from rhale_stats.drawing.ensembles import plot_ensembles
from rhale_stats.drawing.legend import draw_legend, grid_of_panels, say_limited
from rhale_stats.drawing.profile import plot_profiles
from rhale_stats.effects.contrasts import relative_to
from rhale_stats.effects.intervals import with_own_intervals
from rhale_stats.effects.sizes import largest
from rhale_stats.profiles.data import check_profile
from rhale_stats.schema.checks import check_effect
from rhale_stats.schema.features import (
    feature_names,
    feature_position,
    label_of,
    one_feature,
    position_of,
    units_of,
    with_units,
)
from rhale_stats.schema.kinds import ENSEMBLE, PROFILE
from rhale_stats.schema.validation import validated

# Maximum number of features drawn together.
MAX_FEATURES = 24


@validated
def plot_effects(
    effect: xr.Dataset,
    features: str | int | Sequence[str | int] | None = None,
    *,
    n_columns: int = 3,
    max_features: int = MAX_FEATURES,
    ax: Axes | Sequence[Axes] | NDArray[np.object_] | None = None,
    spread: str = "none",
    reference: Mapping[str, Any] | None = None,
) -> NDArray[np.object_]:
    """Curves of all features, one panel each, with one y scale.

    Every panel shows the curve, a pointwise 95 % interval (dashed; with the parameters of the model
    light, and dark within it that of the rows) and the simultaneous band of `confband` (thin), as
    in the upper panel of `plots.effect`, whose notes explain them. Ticks above the axes are the
    deciles of the rows, the median longer.

    Parameters
    ----------
    effect : Dataset
        What `rhale`, `std_error`, `confint` or `confband` returned; a profile such as `pdp`, which
        `plots.profile` draws; or effects of several models. Intervals that are missing are added by
        `confint` where they can be computed.
    features : name, number, or sequence of them, optional
        Features to draw, in this order. By default all, or the ``max_features`` largest.
    n_columns : int, default 3
        Number of panels per line of a new figure.
    max_features : int, default 24
        If ``features`` is not given and there are more features, those with the largest importance
        (the standard deviation of the curve over the rows) are drawn, the largest first. A note on
        the figure says so.
    ax : Axes, or sequence of them, optional
        One Axes per feature. By default those of a new figure.
    spread : {"none", "band"}, default "none"
        Whether to draw the heterogeneity as a band around the curves, as in the paper;
        `plots.effect` and `plots.summary` have it beside them.
    reference : mapping, optional
        Values by the names of features. Their curves are drawn as differences from the value
        there, with intervals of these differences; the titles say so.

    Returns
    -------
    ndarray of shape (n_features,)
        The Axes, one per feature.

    Raises
    ------
    KeyError
        Unknown feature.
    TypeError
        ``effect`` is another kind of object, or ``ax`` is not Axes.
    ValueError
        The number of Axes is not that of the features; no feature; ``n_columns`` or
        ``max_features`` below 1.

    References
    ----------
    Gkolemis, Dalamagas, Ntoutsi and Diou (2023), *RHALE: Robust and Heterogeneity-aware
    Accumulated Local Effects*, Figure 3b (upper panel).

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> local = rs.local_effects(lambda X: 2 * X[:, 0] + 4 * X[:, 0] * X[:, 1], X)
    >>> panels = rs.plots.effects(rs.rhale(local))
    >>> [panel.get_title() for panel in panels]
    ['x0', 'x1']
    """
    check_choice("spread", spread, ("none", "band"))
    if reference is not None and not isinstance(reference, Mapping):
        raise TypeError(
            f"reference must be a mapping of features to values, as in {{'dose': 4}}; got "
            f"{shortly(reference)}."
        )
    reference = dict(reference or {})
    if ENSEMBLE.holds(effect):
        refuse_reference(reference or None)
        return plot_ensembles(effect, features, n_columns, max_features, ax)
    profile = PROFILE.holds(effect)
    effect = check_profile(effect) if profile else check_effect(effect)
    limited = features is None and ax is None and effect.sizes["feature"] > max_features
    if limited:
        features = largest(effect, max_features)
    elif features is None:
        features = feature_names(effect)
    elif isinstance(features, str | int | np.integer):
        features = [features]
    positions = [feature_position(effect, feature) for feature in features]
    if not positions:
        raise ValueError("features must name at least one feature; got none.")
    names = feature_names(effect)
    for name in reference:
        position_of(name, names)
    if profile:
        drawn = plot_profiles(effect, positions, n_columns, ax, reference)
        if limited:
            say_limited(drawn, effect.sizes["feature"])
        return drawn
    shown = with_own_intervals(effect.isel(feature=positions))
    rows = [
        _relative(shown, number, reference.get(names[position]))
        for number, position in enumerate(positions)
    ]
    new_figure = ax is None
    with several_panels(
        "ax", ax, len(rows), "one a feature", lambda: grid_of_panels(len(rows), n_columns)
    ) as panels:
        for panel, row, position in zip(panels, rows, positions, strict=True):
            panel.set_title(_title(row), parse_math=False)
            units = units_of(effect, position)
            panel.set_xlabel(with_units("", units).strip(), parse_math=False)
            date_axis(panel, units)
            if not new_figure and (panel is panels[0] or not isinstance(ax, Axes)):
                panel.set_ylabel(output_label(effect), parse_math=False)
        draw_curves(panels, rows, output_label(effect) if new_figure else "", spread)
        if limited:
            say_limited(panels, effect.sizes["feature"])
        draw_legend(panels)
    return as_array(panels)


def _relative(effect: xr.Dataset, number: int, value: Any) -> xr.Dataset:
    """One feature, relative to a value of it where one is given."""
    if value is None:
        return one_feature(effect, number)
    return one_feature(relative_to(effect.isel(feature=[number]), value), 0)


def _title(row: xr.Dataset) -> str:
    """The name of the feature, with what its curve is relative to."""
    name = label_of(row, str(row["feature"].values))
    if "reference" not in row.attrs:
        return name
    return f"{name}, from {str(row.attrs['reference']).rpartition(' = ')[2]}"
