"""The picture of a result of any kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import xarray as xr

from rhale_stats.arguments.words import shown
from rhale_stats.schema import kinds
from rhale_stats.schema.calls import public
from rhale_stats.schema.dimensions import OUTPUT
from rhale_stats.schema.door import checked

# Kind of result -> the functions that draw all of it, and one feature of it; empty where there is
# none.
PICTURES: Mapping[kinds.Kind, tuple[str, str]] = {
    **dict.fromkeys((kinds.EFFECT, kinds.ENSEMBLE), ("plot_effects", "plot_effect")),
    kinds.PROFILE: ("plot_effects", "plot_profile"),
    kinds.EXPLANATION: ("plot_summary", "plot_effect"),
    **dict.fromkeys((kinds.SURFACE, kinds.SURFACE_DIFFERENCE), ("plot_surface", "")),
    kinds.H_STATISTICS: ("plot_h_statistics", ""),
    kinds.INTERACTIONS: ("plot_interactions", ""),
    kinds.TREE: ("plot_tree", ""),
    kinds.TEST: ("", "plot_compare"),
    kinds.REPLICATES: ("plot_forest", "plot_edges"),
    kinds.SIZES: ("plot_forest", ""),
}


@checked
def plot(
    result: xr.Dataset | xr.DataTree,
    feature: str | int | None = None,
    local: xr.Dataset | None = None,
    ax: Any = None,
    **options: Any,
) -> Any:
    """Picture of a result: of all of its features, or of one.

    Parameters
    ----------
    result : Dataset or Explanation
        What any function of the package returned. Effects are drawn by `plot_effects`, one feature
        by `plot_effect` (of profiles `plot_profile`, of several outputs `plot_outputs`), others by
        the function of their name; replicates and sizes by `plot_forest`.
    feature : str or int, optional
        Name or number of one feature.
    local, ax, **options
        As in the function that draws.

    Returns
    -------
    Axes, or ndarray of them
        As the function that draws returns them.

    Raises
    ------
    ValueError
        Results of which there is no picture, or none of one feature, or none without one.
    TypeError
        ``result`` is no result of this package; options that the function does not have.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> effect = rs.rhale(lambda X: 2 * X[:, 0] + 4 * X[:, 0] * X[:, 1], X)
    >>> [panel.get_title() for panel in rs.plot(effect)]
    ['x0', 'x1']
    >>> len(rs.plot(effect, "x0"))
    2
    """
    kind = kinds.kind_of(result)
    if kind is None:
        raise TypeError(
            f"result must be what a function of rhale_stats returned; got {shown(result)}."
        )
    if kind is kinds.LOCAL:
        raise ValueError(
            "result must be an effect; got local effects, one number a row. Take "
            "plot(rhale(local)), or plot_bins(effect, local, feature) to see them in bins."
        )
    whole, single = PICTURES.get(kind, ("", ""))
    name = whole if feature is None else single
    if feature is not None and OUTPUT in getattr(result, "dims", ()):
        name = "plot_outputs"
    if not (whole or single):
        raise ValueError(f"result must be of a kind with a picture; got {kind.name}: tidy(result).")
    if not name:
        what = "the name of a feature" if feature is None else "left out"
        raise ValueError(
            f"feature must be {what}: the picture of {kind.name} is by {whole or single}."
        )
    if name == "plot_effects":
        local = None  # rows are drawn of one feature only
    beside = {"feature": feature, "local": local, "ax": ax}
    named = {key: value for key, value in beside.items() if value is not None}
    if kind is kinds.SIZES:
        options = {"what": "importance", **options}
    return public(name)(result, **named, **options)
