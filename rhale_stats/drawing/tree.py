"""Plot of a tree of splits."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.offsetbox import AnnotationBbox, TextArea, VPacker
from numpy.typing import NDArray

from rhale_stats.drawing.canvas import HETEROGENEITY, HETEROGENEITY_FILL, REFERENCE, one_panel
from rhale_stats.drawing.compare import pvalue_text
from rhale_stats.drawing.regions import BOX_LENGTH, node_facts, wrapped
from rhale_stats.regional.tables import LOSS_NAMES, loss_units, rejected
from rhale_stats.regional.trees import check_tree
from rhale_stats.schema.features import label_of, with_units
from rhale_stats.schema.validation import validated

# Inches of a box of a tree, with the room around it.
BOX_SIZE = (1.8, 1.2)


# --- the tree -------------------------------------------------------------------------------------


@validated
def plot_tree(tree: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Tree of splits as boxes, with all rows at the top and the regions at the bottom.

    A box shows the condition that its rows meet, their number and the loss. A node that was split
    also shows the relative drop of the loss by the split and its p-value; a region shows its number
    and the best split that was not made. A darker box has a larger share of the loss of all rows.

    Parameters
    ----------
    tree : Dataset
        What `regions` returned, of one feature.
    ax : Axes, optional
        By default that of a new figure. About two inches per region are readable.

    Returns
    -------
    Axes

    Raises
    ------
    TypeError
        ``tree`` is not a tree of regions, or ``ax`` is not an Axes.
    ValueError
        ``tree`` has several features.

    Examples
    --------
    >>> import rhale_stats as rs
    >>> example = rs.simulate.TwoRegimes()
    >>> local = rs.local_effects(None, example.sample(500, rng=0), jacobian=example.jacobian)
    >>> rs.plots.tree(rs.regions(local, "x1")).get_title()
    'Regions of the effect of x1 on output'
    """
    tree = check_tree(tree)
    place = _places(tree["parent"].values)
    depth = tree["depth"].values
    width = max(BOX_SIZE[0] * (place.max() + 1) + 0.4, 4.5)
    height = BOX_SIZE[1] * (depth.max() + 1) + 0.7
    with one_panel(ax, (width, height), despined=False) as panel:
        panel.set_axis_off()
        panel.set_xlim(-0.55, place.max() + 0.55)
        panel.set_ylim(-depth.max() - 0.5, 0.5)
        for node, parent in enumerate(tree["parent"].values):
            if parent >= 0:
                panel.plot(
                    [place[parent], place[node]],
                    [-depth[parent], -depth[node]],
                    color=REFERENCE,
                    linewidth=1.0,
                    zorder=1,
                )
        for node in range(tree.sizes["node"]):
            _draw_box(panel, tree.isel(node=node), place[node], float(tree["loss"][0]))
        output = with_units(
            str(tree.attrs.get("output_name", "output")), str(tree.attrs.get("output_units", ""))
        )
        name, units = str(tree["feature"].values), str(tree["feature_units"].values)
        feature_text = with_units(label_of(tree, name), units)
        title = f"Regions of the effect of {feature_text} on {output}"
        panel.set_title(title, parse_math=False)
        loss = str(tree.attrs["loss_kind"])
        kind = LOSS_NAMES.get(loss, loss)
        panel.text(
            0.5,
            0,
            f"loss: {kind} [{loss_units(tree, units)}]",
            transform=panel.transAxes,
            ha="center",
            va="top",
            fontsize="small",
            parse_math=False,
        )
    return panel


def _places(parent: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
    """Leaves side by side, every other node above the middle of its two sides."""
    place = np.zeros(len(parent))
    is_leaf = ~np.isin(np.arange(len(parent)), parent)
    place[is_leaf] = np.arange(is_leaf.sum())
    for node in np.flatnonzero(~is_leaf)[::-1]:  # children come after their parents
        place[node] = place[parent == node].mean()
    return place


def _draw_box(panel: Axes, node: xr.Dataset, place: float, whole: float) -> None:
    """One node, its condition in bold."""
    loss = float(node["loss"])
    texts: list[Artist] = [
        _line(wrapped(str(node["condition"].values), BOX_LENGTH), fontweight="bold"),
        _line(node_facts(int(node["n_obs"]), loss)),
    ]
    if int(node["region"]) < 0:
        drop = _percent(float(node["loss_drop"]))
        texts.append(_line(f"split: drop {drop}{_by_chance(node)}"))
    else:
        number = "no split" if int(node["depth"]) == 0 else f"region {int(node['region'])}"
        texts.append(_line(number, color=HETEROGENEITY, fontweight="bold"))
        if rejected(node):
            best = wrapped(f"rejected: {node['best'].values!s},", BOX_LENGTH)
            drop = _percent(float(node["best_drop"]))
            texts.append(_line(f"{best}\ndrop {drop}{_by_chance(node)}"))
    share = loss / whole if whole > 0 and np.isfinite(loss) else 0.0
    fill = LinearSegmentedColormap.from_list("loss", ["white", HETEROGENEITY_FILL])
    box = AnnotationBbox(
        VPacker(children=texts, align="center", pad=0, sep=2),
        (place, -float(node["depth"])),
        frameon=True,
        boxcoords="data",
        bboxprops={
            "boxstyle": "round,pad=0.5",
            "facecolor": fill(min(share, 1.0)),
            "edgecolor": HETEROGENEITY,
            "linewidth": 0.8,
        },
    )
    box.set_zorder(2)
    panel.add_artist(box)


def _line(text: str, **properties: str) -> TextArea:
    return TextArea(
        text,
        textprops={
            "fontsize": "small",
            "parse_math": False,
            "multialignment": "center",
            **properties,
        },
    )


def _by_chance(node: xr.Dataset) -> str:
    p = float(node["pvalue"])
    return "" if np.isnan(p) else f", p {pvalue_text(p)}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
