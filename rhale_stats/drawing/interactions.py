"""Plot of the columns that condition each effect."""

from __future__ import annotations

import numpy as np
import seaborn as sns
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray

from rhale_stats.drawing.canvas import HETEROGENEITY, one_panel
from rhale_stats.regional.tables import loss_text
from rhale_stats.schema.validation import validated

# Mark of pairs without an allowed split; the pair of a feature with itself stays empty.
NOT_ALLOWED = "–"


# --- interactions ---------------------------------------------------------------------------------


@validated
def plot_interactions(
    interactions: xr.Dataset, ax: Axes | None = None, *, level: float = 0.05
) -> Axes:
    """Heat map of interactions: how much of each feature's loss the best split by a column removes.

    Each line is a feature, with its loss beside the name; if the loss is near 0, even a large share
    is unimportant. A star marks drops whose adjusted p-value is at most ``level``. The cell of a
    feature with itself is empty; a dash marks pairs without a split that leaves enough rows on both
    sides.

    Parameters
    ----------
    interactions : Dataset
        What `interaction_matrix` returned.
    ax : Axes, optional
        By default that of a new figure. The colour bar takes a part of it.
    level : float, default 0.05
        Significance level of the stars.

    Returns
    -------
    Axes

    Raises
    ------
    TypeError
        ``interactions`` is not a Dataset, or ``ax`` is not an Axes.
    ValueError
        ``interactions`` is not an interaction matrix; ``level`` outside (0, 1).

    Examples
    --------
    >>> import rhale_stats as rs
    >>> example = rs.simulate.TwoRegimes()
    >>> local = rs.local_effects(None, example.sample(500, rng=0), jacobian=example.jacobian)
    >>> panel = rs.plots.interactions(rs.interaction_matrix(local, n_permutations=0))
    >>> [text.get_text() for text in panel.texts]
    ['0 %', '95 %', '0 %', '0 %', '0 %', '0 %']
    """
    maker = "interaction_matrix(local)"
    if not isinstance(interactions, xr.Dataset):
        raise TypeError(
            f"interactions must be the Dataset that {maker} returns; got "
            f"{type(interactions).__name__}."
        )
    if "loss_drop" not in interactions or "conditioning" not in interactions.dims:
        raise ValueError(
            f"interactions must be the Dataset that {maker} returns; this one has no loss_drop "
            f"over (feature, conditioning) (it has {', '.join(map(str, interactions.data_vars))})."
        )
    drop, pvalue = interactions["loss_drop"].values, interactions["pvalue_adjusted"].values
    n_lines, n_columns = drop.shape
    size = (max(0.75 * n_columns + 2.8, 4.5), max(0.5 * n_lines + 1.5, 2.6))
    with one_panel(ax, size, despined=False) as panel:
        _draw_drops(panel, interactions, pvalue <= level)
        tested = bool(np.isfinite(pvalue).any())
        if tested:
            adjust = interactions["pvalue_adjusted"].attrs.get("adjust", "none")
            how = "" if adjust == "none" else f", adjusted ({adjust})"
            test = f"* p ≤ {level:g}{how}; {interactions.attrs['n_permutations']} permutations"
        else:
            test = "no test was made"
        title = f"Interactions in the effects on {interactions.attrs.get('output_name', 'output')}"
        panel.set_title(f"{title}\n{test}", parse_math=False, fontsize="medium")
    return panel


def _draw_drops(panel: Axes, matrix: xr.Dataset, marked: NDArray[np.bool_]) -> None:
    drop = matrix["loss_drop"].values
    names, columns = (list(map(str, matrix[dim].values)) for dim in ("feature", "conditioning"))
    marks = np.where(marked, "*", "")
    texts = np.array(
        [
            [f"{100 * share:.0f} %{mark}" for share, mark in zip(*pair, strict=True)]
            for pair in zip(drop, marks, strict=True)
        ]
    )
    sns.heatmap(
        drop,
        vmin=0,
        vmax=1,
        cmap=sns.light_palette(HETEROGENEITY, as_cmap=True),
        annot=texts,
        fmt="",
        mask=np.isnan(drop),
        linewidths=1.0,
        cbar_kws={"format": PercentFormatter(1.0), "label": "drop of the loss by the best split"},
        ax=panel,
    )
    for row, column in zip(*np.nonzero(np.isnan(drop)), strict=True):
        if names[row] != columns[column]:
            panel.text(column + 0.5, row + 0.5, NOT_ALLOWED, ha="center", va="center", color="0.4")
    losses = [loss_text(loss) for loss in matrix["loss"].values]
    labels = [
        f"{name}\n{f'loss {loss}' if loss else 'constant'}"
        for name, loss in zip(names, losses, strict=True)
    ]
    panel.set_yticks(np.arange(len(names)) + 0.5, labels, rotation=0, parse_math=False)
    turned = max(map(len, columns), default=0) > 8
    panel.set_xticks(
        np.arange(len(columns)) + 0.5,
        columns,
        rotation=30 if turned else 0,
        ha="right" if turned else "center",
        parse_math=False,
    )
    panel.tick_params(left=False, bottom=False)
    panel.set_ylabel("effect of")
    panel.set_xlabel("split by")
