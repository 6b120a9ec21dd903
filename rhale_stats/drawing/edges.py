"""Plot of the bin edges in bootstrap replicates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from rhale_stats.arrays.moments import FloatArray
from rhale_stats.drawing.canvas import OTHER, as_array, feature_label, new_panels, several_panels
from rhale_stats.drawing.compare import check_result
from rhale_stats.drawing.curve import EDGE_SHARE
from rhale_stats.drawing.legend import ONE_BIN, note, say, say_empty
from rhale_stats.schema.features import feature_position
from rhale_stats.schema.validation import validated


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
    feature : str or int
        Name or number of the feature.
    ax : pair of Axes, optional
        One for the edges, one for the number of bins. By default those of a new figure.

    Returns
    -------
    ndarray of shape (2,)
        The Axes.

    Raises
    ------
    KeyError
        Unknown feature.
    TypeError
        ``boot`` is not a Dataset, or ``ax`` is not a pair of Axes.
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
    check_result(boot, "boot", "bootstrap(local, effect, rebin=True)")
    if not {"edge_frequency", "n_bins"} <= set(boot.variables) or "draw" not in boot["n_bins"].dims:
        raise ValueError(
            "boot must have edges that were chosen again in every replicate; in this one they are "
            "fixed or not counted. Make it with bootstrap(local, effect, rebin=True)."
        )
    row = boot.isel(feature=feature_position(boot, feature))
    with several_panels(
        "ax",
        ax,
        2,
        "for edges and for number of bins",
        lambda: list(new_panels(1, 2, (7.0, 2.8), width_ratios=[2.2, 1])[0]),
    ) as panels:
        edges, number = panels
        name = str(row["feature"].values)
        edges.set_xlabel(feature_label(boot, name), parse_math=False)
        edges.set_ylabel("share of replicates\nwith an edge in the cell")
        number.set_xlabel("number of bins")
        number.set_ylabel("share of replicates")
        grid = row["grid_value"].values
        if np.isnan(grid).all():
            say_empty(panels)
            return as_array(panels)
        _draw_edges(edges, grid, row["edge_frequency"].values)
        _draw_numbers(number, row["n_bins"].values.ravel())
    return as_array(panels)


def _draw_edges(panel: Axes, grid: FloatArray, frequency: FloatArray) -> None:
    panel.stairs(frequency, grid, fill=True, color=OTHER, linewidth=0)
    highest = float(frequency.max())
    if not highest:
        say(panel, ONE_BIN)
    panel.set_ylim(0, min(1.1 * max(highest, EDGE_SHARE), 1.0))
    panel.margins(x=0.02)


def _draw_numbers(panel: Axes, n_bins: FloatArray) -> None:
    number, count = np.unique(n_bins[np.isfinite(n_bins)], return_counts=True)
    panel.bar(number, count / count.sum(), 0.8, color=OTHER)
    panel.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    note(panel, f"{count.sum()} replicates")
