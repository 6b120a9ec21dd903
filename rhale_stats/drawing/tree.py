"""Plots of a tree of splits, and of regional effects, one panel per region."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.offsetbox import AnnotationBbox, TextArea, VPacker
from numpy.typing import NDArray

from rhale_stats.arguments.checks import check_choice
from rhale_stats.drawing import frame
from rhale_stats.drawing.curve import common_limits, draw_curve
from rhale_stats.drawing.frame import HETEROGENEITY, HETEROGENEITY_FILL, Panels
from rhale_stats.drawing.rows import RowsInBins, draw_rug, rows_of
from rhale_stats.effects.intervals import with_own_intervals
from rhale_stats.printing.text import in_lines, output_text
from rhale_stats.regional.splits import ROOT_RULE
from rhale_stats.regional.tables import LOSS_NAMES, loss_text, loss_units, rejected
from rhale_stats.regional.trees import check_rows_of_tree, check_tree
from rhale_stats.schema.checks import check_dataset, check_effect, check_local
from rhale_stats.schema.dimensions import ROWS
from rhale_stats.schema.feature_result import FeatureResult, one_feature
from rhale_stats.schema.features import feature_names, feature_position, label_of, with_units
from rhale_stats.schema.validation import validated

# Maximum length of a line of a rule, in titles of panels and in boxes of a tree.
TITLE_LENGTH, BOX_LENGTH = 28, 24
UNBROKEN = "\N{NO-BREAK SPACE}"


@validated
def plot_regions(
    tree: xr.Dataset,
    effect: xr.Dataset,
    global_effect: xr.Dataset | None = None,
    local: xr.Dataset | None = None,
    ax: Axes | Sequence[Axes] | NDArray[np.object_] | None = None,
    *,
    spread: str = "none",
) -> NDArray[np.object_]:
    """Effect of a feature in every region of a tree: one panel per region, with common scales.

    Every panel shows the curve with its interval and band, as in the upper panel of `plots.effect`,
    whose notes explain them. The title is the rule of the region, with the number of rows and the
    loss. With ``global_effect`` the first panel shows all rows.

    Parameters
    ----------
    %(tree)s
    effect : Dataset
        What `regional_rhale` made from the tree, or what `std_error`, `confint` or `confband` made
        from that. Intervals are added by `confint` if they are missing and can be computed.
    global_effect : Dataset, optional
        What `rhale`, `std_error`, `confint` or `confband` returned, for the effect in all rows.
    local : Dataset, optional
        The local effects that the tree was made from, for a rug of the values of the feature in
        every region.
    ax : Axes, or sequence of them, optional
        One Axes per region, preceded by one for ``global_effect`` if it is given. By default those
        of a new figure.
    spread : {"none", "band"}, default "none"
        Whether to draw the heterogeneity as a band around the curves, as in the paper.

    Returns
    -------
    ndarray of shape (n_panels,)
        The Axes: first that of all rows if it is drawn, then the regions by their numbers.

    Raises
    ------
    KeyError
        ``global_effect`` or ``local`` does not have the feature of the tree.
    TypeError
        An argument is another kind of object, or ``ax`` is not Axes.
    ValueError
        ``effect`` has no regions or those of another tree; ``global_effect`` has regions; ``tree``
        has several features; ``local`` has other rows; wrong number of Axes.

    Notes
    -----
    Every curve is centred as ``effect`` says, by default at its mean over the rows of its region:
    compare the shapes and spreads of the panels, not their levels. A curve ends where the rows of
    its region end.

    The number of rows and the loss in the panel of all rows are those of the root of the tree; for
    an honest tree they refer to the rows that tested its splits. If ``global_effect`` has another
    number of rows, its own number is shown, without a loss.

    References
    ----------
    Gkolemis, Diou, Ntoutsi, Dalamagas, Bischl, Herbinger and Casalicchio (2024), *RegionalRHALE*,
    Figure 2.

    Examples
    --------
    >>> import rhale_stats as rs
    >>> example = rs.simulate.TwoRegimes()
    >>> local = rs.local_effects(None, example.sample(500, rng=0), jacobian=example.jacobian)
    >>> tree = rs.regions(local, "x1")
    >>> panels = rs.plots.regions(tree, rs.regional_rhale(local, tree), rs.rhale(local))
    >>> [panel.get_title().splitlines()[0] for panel in panels]
    ['all rows', 'x3 ≤ 0', 'x3 > 0']
    """
    check_choice("spread", spread, ("none", "band"))
    tree = check_tree(tree)
    name, leaves = str(tree["feature"].values), tree.isel(node=tree["region"].values >= 0)
    effect = _regional(effect, name, leaves)
    if local is not None:
        local = check_local(local)
        check_rows_of_tree(local, tree)
    drawn = []
    if global_effect is not None:
        whole = _global(global_effect, name)
        n_root, n_obs = int(tree["n_obs"][0]), int(one_feature(whole, 0)["n_obs"].sum())
        title = _title(ROOT_RULE, n_root, tree["loss"][0])
        if n_obs not in (0, n_root):
            title = _title(ROOT_RULE, n_obs, np.nan)
        drawn.append(_content(whole, title, local, whole))
    for number in range(leaves.sizes["node"]):
        leaf = leaves.isel(node=number)
        part = check_effect(effect.isel(region=number), "effect", "regional_rhale(local, tree)")
        part = part.isel(feature=[feature_position(part, name)])
        in_region = np.flatnonzero(tree[ROWS].values == int(leaf["region"]))
        title = _title(str(leaf["rule"].values), int(leaf["n_obs"]), leaf["loss"])
        drawn.append(_content(part, title, None if local is None else local.isel(obs=in_region)))
    results = [result for result in (effect, global_effect) if result is not None]
    if len({"fitted_model" in result.attrs for result in results}) > 1:
        raise ValueError(
            "effect and global_effect must have errors of the same sources; got parameters of the "
            "model in one of them alone. Give both to std_error(..., model=model, X=X)."
        )
    which = "one a region" if global_effect is None else "of all rows, then one a region"
    made = partial(_panels, leaves.sizes["node"], everywhere=global_effect is not None)
    with frame.several_panels(ax, len(drawn), which, made) as panels:
        for panel, (row, title, _) in zip(panels, drawn, strict=True):
            frame.name_axes(panel, title=title, fontsize="medium")
            if row.sizes["bin"]:
                draw_curve(panel, row, spread)
            else:
                frame.say_constant(panel)
        _label_panels(panels, effect, new_figure=ax is None)
        # The same limits in every panel, along both axes.
        edges = np.concatenate([row.bin_edges for row, _, _ in drawn])
        limits = common_limits([row for row, _, _ in drawn], spread)
        margin = 0.02 * np.ptp(edges) if len(edges) else 0.0
        for panel in panels if len(edges) else ():
            panel.set_xlim(edges.min() - margin, edges.max() + margin)
            if limits is not None:
                panel.set_ylim(*limits)
        for panel, (row, _, rows) in zip(panels, drawn, strict=True):
            if rows is not None:
                draw_rug(panel, rows, row.bin_edges)
    return panels


def _content(
    effect: xr.Dataset, title: str, local: xr.Dataset | None, whole: xr.Dataset | None = None
) -> tuple[FeatureResult, str, RowsInBins | None]:
    """A panel: the effect of one feature with its intervals, its title, the rows of its rug.

    Of the ``whole`` effect, rows that chose its bins are not drawn.
    """
    row = one_feature(with_own_intervals(effect), 0)
    return row, title, None if local is None else rows_of(local, row, whole)


def _regional(effect: object, name: str, leaves: xr.Dataset) -> xr.Dataset:
    """The effects in the regions of a tree; raise if they are of another tree."""
    effect = check_dataset(effect, "effect", "regional_rhale(local, tree)")
    if "region" not in effect.dims or "region_rule" not in effect.coords:
        raise ValueError(
            "effect must be the Dataset that regional_rhale(local, tree) returns; this one has no "
            "dimension region. An effect in all rows is global_effect=."
        )
    if name not in feature_names(effect):
        raise ValueError(
            f"effect must be of the feature of the tree, {name!r}; got "
            f"{', '.join(map(repr, feature_names(effect)))}."
        )
    rules, got = [list(map(str, rule.values)) for rule in (leaves["rule"], effect["region_rule"])]
    if rules != got:
        raise ValueError(
            f"effect must have the regions of the tree, {'; '.join(rules)}; got {'; '.join(got)}. "
            f"Make it with regional_rhale(local, tree)."
        )
    return effect


def _global(effect: object, name: str) -> xr.Dataset:
    effect = check_effect(effect, "global_effect")
    names = feature_names(effect)
    if name not in names:
        raise KeyError(
            f"global_effect must hold the feature of the tree, {name!r}; it holds "
            f"{', '.join(map(repr, names))}."
        )
    return effect.isel(feature=[names.index(name)])


def _title(rule: str, n_obs: int, loss: Any) -> str:
    return f"{wrapped(rule, TITLE_LENGTH)}\n{node_facts(n_obs, float(loss))}"


def node_facts(n_obs: int, loss: float) -> str:
    """Rows and loss, where there is one."""
    return f"n = {n_obs}" + (f", loss {loss_text(loss)}" if np.isfinite(loss) else "")


def wrapped(rule: str, length: int) -> str:
    """A rule in lines, broken between its conditions if possible."""
    first, *conditions = rule.split(" and ")
    lines = [first]
    for condition in conditions:
        if len(lines[-1]) + len(condition) + 5 <= length:
            lines[-1] += f" and {condition}"
        else:
            lines[-1] += " and"
            lines.append(condition)
    # A sign stays with its value.
    unbroken = [re.sub(r"([≤≥<>=≠]) ", rf"\1{UNBROKEN}", line) for line in lines]
    broken = [part for line in unbroken for part in in_lines(line, length)]
    return "\n".join(broken).replace(UNBROKEN, " ")


def _panels(n_regions: int, *, everywhere: bool) -> list[Axes]:
    """A grid of regions with all rows on the left; the sides of a split are neighbours."""
    n_columns = 2 if n_regions == 4 or (everywhere and n_regions < 4) else 3
    n_columns = min(n_columns, n_regions)
    n_lines = -(-n_regions // n_columns)
    width = n_columns + everywhere
    grid = frame.new_panels(n_lines, width, (max(2.7 * width + 0.5, 4.5), 2.5 * n_lines + 0.8))
    regions = list(grid[:, int(everywhere) :].flat)
    panels = list(grid[:1, : int(everywhere)].flat) + regions[:n_regions]
    for unused in (panel for panel in grid.flat if panel not in panels):
        unused.remove()
    return panels


def _label_panels(panels: Panels, effect: xr.Dataset, *, new_figure: bool) -> None:
    """Labels of the axes; in a grid of ours where no other panel is below or on the left."""
    spots = [panel.get_subplotspec() for panel in panels] if new_figure else []
    for panel in panels:
        spot = panel.get_subplotspec()
        if not any(
            other.colspan == spot.colspan and other.rowspan.start > spot.rowspan.start
            for other in spots
        ):
            frame.name_feature(panel, effect, feature_names(effect)[0])
        if not any(
            other.rowspan == spot.rowspan and other.colspan.start < spot.colspan.start
            for other in spots
        ):
            frame.name_axes(panel, y=frame.output_label(effect))


# Inches of a box of a tree, with the room around it.
BOX_SIZE = (1.8, 1.2)


@validated
def plot_tree(tree: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Tree of splits as boxes, with all rows at the top and the regions at the bottom.

    A box shows the condition that its rows meet, their number and the loss. A node that was split
    also shows the relative drop of the loss by the split and its p-value; a region shows its number
    and the best split that was not made. A darker box has a larger share of the loss of all rows.

    Parameters
    ----------
    %(tree)s
    ax : Axes, optional
        By default that of a new figure. About two inches per region are readable.

    %(Axes returned; raises)s
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
    with frame.one_panel(ax, (width, height), despined=False, legend=False) as panel:
        panel.set_axis_off()
        panel.set_xlim(-0.55, place.max() + 0.55)
        panel.set_ylim(-depth.max() - 0.5, 0.5)
        for node, parent in enumerate(tree["parent"].values):
            if parent >= 0:
                x, y = [place[parent], place[node]], [-depth[parent], -depth[node]]
                panel.plot(x, y, color=frame.REFERENCE, linewidth=1.0, zorder=1)
        for node in range(tree.sizes["node"]):
            _draw_box(panel, tree.isel(node=node), place[node], float(tree["loss"][0]))
        name, units = str(tree["feature"].values), str(tree["feature_units"].values)
        feature_text = with_units(label_of(tree, name), units)
        title = f"Regions of the effect of {feature_text} on {output_text(tree)}"
        frame.name_axes(panel, title=title)
        loss = str(tree.attrs["loss_kind"])
        text = f"loss: {LOSS_NAMES.get(loss, loss)} [{loss_units(tree, units)}]"
        how: dict[str, Any] = {"ha": "center", "va": "top", "fontsize": "small"}
        panel.text(0.5, 0, text, transform=panel.transAxes, parse_math=False, **how)
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
    look: dict[str, Any] = {"boxstyle": "round,pad=0.5", "facecolor": fill(min(share, 1.0))}
    look |= {"edgecolor": HETEROGENEITY, "linewidth": 0.8}
    lines = VPacker(children=texts, align="center", pad=0, sep=2)
    box = AnnotationBbox(lines, (place, -float(node["depth"])), boxcoords="data", bboxprops=look)
    box.set_zorder(2)
    panel.add_artist(box)


def _line(text: str, **properties: str) -> TextArea:
    look = {"fontsize": "small", "parse_math": False, "multialignment": "center", **properties}
    return TextArea(text, textprops=look)


def _by_chance(node: xr.Dataset) -> str:
    p = float(node["pvalue"])
    return "" if np.isnan(p) else f", p {frame.pvalue_text(p)}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
