"""Pictures of regional effects: a panel a region, the tree of splits, and who conditions whom.

Colours and marks are those of `plots`: averages black, heterogeneity blue, uncertainty orange.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
import xarray as xr
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.offsetbox import AnnotationBbox, TextArea, VPacker
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray

from rhale_stats.effects import estimation_rows
from rhale_stats.plots import (
    HETEROGENEITY,
    HETEROGENEITY_FILL,
    REFERENCE,
    RowsInBins,
    as_array,
    common_limits,
    draw_curve,
    draw_legend,
    draw_rug,
    given_axes,
    output_label,
    pvalue_text,
    rows_of,
    say_constant,
    style,
    with_intervals,
)
from rhale_stats.regional import check_rows_of_tree, check_tree
from rhale_stats.schema import (
    ROWS,
    check_effect,
    check_local,
    feature_names,
    one_feature,
    units_of,
    with_units,
)
from rhale_stats.splits import ROOT_RULE
from rhale_stats.summaries import LOSS_NAMES, loss_text, loss_units, rejected
from rhale_stats.validate import check_level, checked

# Longer rules are broken, in titles of panels and in boxes of a tree.
TITLE_LENGTH, BOX_LENGTH = 28, 24
UNBROKEN = "\N{NO-BREAK SPACE}"
# Inches of a box of a tree, with the room around it.
BOX_SIZE = (1.8, 1.2)
# Where no split of a pair is allowed; the pair of a feature with itself stays empty.
NOT_ALLOWED = "–"


@checked
def plot_regions(
    tree: xr.Dataset,
    effect: xr.Dataset,
    global_effect: xr.Dataset | None = None,
    local: xr.Dataset | None = None,
    axes: Sequence[Axes] | NDArray[np.object_] | None = None,
) -> NDArray[np.object_]:
    """Effect of a feature in every region, on the scales of all: a panel a leaf of the tree.

    Every panel shows the curve with a band of plus and minus its heterogeneity, dashed a pointwise
    95 % interval and, thin, the simultaneous band of `confband`, as the upper panel of
    `plot_effect`, whose notes say what they mean. Its title is the rule of the region, with the
    number of rows and the loss. With ``global_effect`` there is a panel of all rows before them.

    Parameters
    ----------
    tree : Dataset
        What `regions` returned, of one feature.
    effect : Dataset
        What `regional_rhale` made of the tree, or what `std_error`, `confint` or `confband` made
        of that. `confint` adds its intervals where they are missing; where it cannot there are
        none.
    global_effect : Dataset, optional
        What `rhale` and the others returned, for the effect in all rows.
    local : Dataset, optional
        The local effects that the tree was made from, for a rug of the values of the feature in
        every region.
    axes : sequence of Axes, optional
        One a region, before them one for ``global_effect`` if it is given. By default those of a
        new figure.

    Returns
    -------
    ndarray of shape (n_panels,)
        The Axes: all rows first, where they are drawn, then the regions by their numbers.

    Raises
    ------
    KeyError
        ``global_effect`` or ``local`` does not have the feature of the tree.
    TypeError
        An argument is something else, or ``axes`` are no Axes.
    ValueError
        ``effect`` has no regions or those of another tree, ``global_effect`` has regions, ``tree``
        has several features, ``local`` has other rows, or another number of Axes.

    Notes
    -----
    Every curve is centred as ``effect`` says, by default at its mean over the rows of its region:
    panels compare shapes and spreads, not levels. A curve ends where the rows of its region end.

    The number of rows and the loss of the panel of all rows are those of the root of the tree; of
    an honest tree these are the rows that tested its splits. A ``global_effect`` of another number
    of rows shows its own number, and no loss.

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
    >>> panels = rs.plot_regions(tree, rs.regional_rhale(local, tree), rs.rhale(local))
    >>> [panel.get_title().splitlines()[0] for panel in panels]
    ['all rows', 'x3 ≤ 0', 'x3 > 0']
    """
    tree = check_tree(tree)
    leaves = tree.isel(node=np.flatnonzero(tree["region"].values >= 0))
    effect = _regional(effect, str(tree["feature"].values), leaves)
    drawn = [] if global_effect is None else [_everywhere(tree, global_effect, local)]
    drawn += [
        _one_region(tree, leaves.isel(node=number), effect.isel(region=number), local)
        for number in range(leaves.sizes["node"])
    ]
    panels = None
    if axes is not None:
        which = "one a region" if global_effect is None else "of all rows, then one a region"
        panels = given_axes("axes", axes, len(drawn), which)
    own = panels is None
    with style(own=own):
        if panels is None:
            panels = _panels(leaves.sizes["node"], everywhere=global_effect is not None)
        for panel, one in zip(panels, drawn, strict=True):
            panel.set_title(one.title, parse_math=False, fontsize="medium")
            if one.row.sizes["bin"]:
                draw_curve(panel, one.row)
            else:
                say_constant(panel)
        _label_panels(panels, effect, own=own)
        _one_scale(panels, [one.row for one in drawn])
        for panel, one in zip(panels, drawn, strict=True):
            if one.rows is not None:
                draw_rug(panel, one.rows, one.row["edge_value"].values)
        draw_legend(panels)
    return as_array(panels)


class _Drawn(NamedTuple):
    """What one panel shows: an effect of one feature, its title, and the rows of its rug."""

    row: xr.Dataset
    title: str
    rows: RowsInBins | None


def _everywhere(tree: xr.Dataset, effect: object, local: object) -> _Drawn:
    """The panel of all rows."""
    whole = with_intervals(_global(effect, str(tree["feature"].values)))
    row = one_feature(whole, 0)
    rows = None
    if local is not None:
        rows = rows_of(estimation_rows(_local_of(local, tree), whole), row)
    n_root, n_obs = int(tree["n_obs"][0]), int(row["n_obs"].sum())
    if n_obs not in (0, n_root):
        return _Drawn(row, _title(ROOT_RULE, n_obs, np.nan), rows)
    return _Drawn(row, _title(ROOT_RULE, n_root, float(tree["loss"][0])), rows)


def _one_region(tree: xr.Dataset, leaf: xr.Dataset, effect: xr.Dataset, local: object) -> _Drawn:
    """The panel of a region."""
    effect = check_effect(effect, "effect", "regional_rhale(local, tree)")
    row = one_feature(with_intervals(effect), str(tree["feature"].values))
    rows = None
    if local is not None:
        there = np.flatnonzero(tree[ROWS].values == int(leaf["region"]))
        rows = rows_of(_local_of(local, tree).isel(obs=there), row)
    title = _title(str(leaf["rule"].values), int(leaf["n_obs"]), float(leaf["loss"]))
    return _Drawn(row, title, rows)


def _regional(effect: object, name: str, leaves: xr.Dataset) -> xr.Dataset:
    """The effects in the regions of a tree; raise for those of another one."""
    if not isinstance(effect, xr.Dataset):
        raise TypeError(
            f"effect must be the Dataset that regional_rhale(local, tree) returns; got "
            f"{type(effect).__name__}."
        )
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
    rules, got = (list(map(str, of.values)) for of in (leaves["rule"], effect["region_rule"]))
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


def _local_of(local: object, tree: xr.Dataset) -> xr.Dataset:
    local = check_local(local)
    check_rows_of_tree(local, tree)
    return local


def _title(rule: str, n_obs: int, loss: float) -> str:
    return f"{_wrapped(rule, TITLE_LENGTH)}\n{_known(n_obs, loss)}"


def _known(n_obs: int, loss: float) -> str:
    """Rows and loss, where there is one."""
    return f"n = {n_obs}" + (f", loss {loss_text(loss)}" if np.isfinite(loss) else "")


def _wrapped(rule: str, length: int) -> str:
    """A rule in lines, which break between its conditions where they can."""
    lines: list[str] = []
    for condition in rule.split(" and "):
        if lines and len(lines[-1]) + len(condition) + 5 <= length:
            lines[-1] += f" and {condition}"
            continue
        if lines:
            lines[-1] += " and"
        lines.append(condition)
    # A sign stays with the value behind it.
    kept = [re.sub(r"([≤≥<>=≠]) ", rf"\1{UNBROKEN}", line) for line in lines]
    return "\n".join(textwrap.fill(line, length) for line in kept).replace(UNBROKEN, " ")


def _panels(n_regions: int, *, everywhere: bool) -> list[Axes]:
    """A grid of regions, the panel of all rows on its left: sides of a split are neighbours."""
    n_columns = 2 if n_regions == 4 or (everywhere and n_regions < 4) else 3
    n_columns = min(n_columns, n_regions)
    n_lines = -(-n_regions // n_columns)
    width = n_columns + everywhere
    figure, grid = plt.subplots(
        n_lines,
        width,
        squeeze=False,
        figsize=(max(2.7 * width + 0.5, 4.5), 2.5 * n_lines + 0.8),
        layout="constrained",
    )
    sns.despine(fig=figure)
    regions = list(grid[:, int(everywhere) :].flat)
    panels = list(grid[:1, : int(everywhere)].flat) + regions[:n_regions]
    for unused in (panel for panel in grid.flat if panel not in panels):
        unused.remove()
    return panels


def _label_panels(panels: list[Axes], effect: xr.Dataset, *, own: bool) -> None:
    """Labels of the axes; in a grid of ours where no other panel is below or on the left."""
    name = feature_names(effect)[0]
    x_label, y_label = with_units(name, units_of(effect, name)), output_label(effect)
    spots = [panel.get_subplotspec() for panel in panels]
    for panel, spot in zip(panels, spots, strict=True):
        below = left = False
        if own and spot is not None:
            others = [one for one in spots if one is not None]
            below = any(
                one.colspan == spot.colspan and one.rowspan.start > spot.rowspan.start
                for one in others
            )
            left = any(
                one.rowspan == spot.rowspan and one.colspan.start < spot.colspan.start
                for one in others
            )
        if not below:
            panel.set_xlabel(x_label, parse_math=False)
        if not left:
            panel.set_ylabel(y_label, parse_math=False)


def _one_scale(panels: list[Axes], rows: list[xr.Dataset]) -> None:
    """The same limits in every panel, along both axes."""
    edges = np.concatenate([row["edge_value"].values for row in rows])
    if not len(edges):
        return
    limits = common_limits(rows)
    margin = 0.02 * (edges.max() - edges.min())
    for panel in panels:
        panel.set_xlim(edges.min() - margin, edges.max() + margin)
        if limits is not None:
            panel.set_ylim(*limits)


# --- the tree -------------------------------------------------------------------------------------


@checked
def plot_tree(tree: xr.Dataset, ax: Axes | None = None) -> Axes:
    """The splits of a tree as boxes, all rows above and the regions below.

    A box shows the condition that its rows meet, their number and the loss. A node that was split
    also shows the relative drop of the loss by the split and its p-value; a region shows its number
    and the best split that was not made. A darker box holds more of the loss of all rows.

    Parameters
    ----------
    tree : Dataset
        What `regions` returned, of one feature.
    ax : Axes, optional
        By default that of a new figure. About two inches a region are readable.

    Returns
    -------
    Axes

    Raises
    ------
    TypeError
        ``tree`` is something else, or ``ax`` no Axes.
    ValueError
        ``tree`` has several features.

    Examples
    --------
    >>> import rhale_stats as rs
    >>> example = rs.simulate.TwoRegimes()
    >>> local = rs.local_effects(None, example.sample(500, rng=0), jacobian=example.jacobian)
    >>> rs.plot_tree(rs.regions(local, "x1")).get_title()
    'Regions of the effect of x1 on output'
    """
    tree = check_tree(tree)
    panels = None if ax is None else given_axes("ax", [ax], 1, "one")
    place = _places(tree["parent"].values)
    depth = tree["depth"].values
    with style(own=ax is None):
        if panels is None:
            width = max(BOX_SIZE[0] * (place.max() + 1) + 0.4, 4.5)
            height = BOX_SIZE[1] * (depth.max() + 1) + 0.7
            _, panel = plt.subplots(figsize=(width, height), layout="constrained")
        else:
            panel = panels[0]
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
        title = f"Regions of the effect of {with_units(name, units)} on {output}"
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
        _line(_wrapped(str(node["condition"].values), BOX_LENGTH), fontweight="bold"),
        _line(_known(int(node["n_obs"]), loss)),
    ]
    if int(node["region"]) < 0:
        drop = _percent(float(node["loss_drop"]))
        texts.append(_line(f"split: drop {drop}{_by_chance(node)}"))
    else:
        number = "no split" if int(node["depth"]) == 0 else f"region {int(node['region'])}"
        texts.append(_line(number, color=HETEROGENEITY, fontweight="bold"))
        if rejected(node):
            best = _wrapped(f"rejected: {node['best'].values!s},", BOX_LENGTH)
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


# --- interactions ---------------------------------------------------------------------------------


@checked
def plot_interactions(found: xr.Dataset, ax: Axes | None = None, *, level: float = 0.05) -> Axes:
    """Heat map of the share of the loss of every feature that the best split of a column removes.

    A line is a feature, with its loss beside the name; of a loss near 0 even a large share is
    little. A star marks drops whose adjusted p-value is at most ``level``. The field of a feature
    with itself is empty; a dash marks pairs without a split that leaves enough rows on both sides.

    Parameters
    ----------
    found : Dataset
        What `interaction_matrix` returned.
    ax : Axes, optional
        By default that of a new figure. The scale of colours takes a part of it.
    level : float, default 0.05
        Of the stars.

    Returns
    -------
    Axes

    Raises
    ------
    TypeError
        ``found`` is no Dataset, or ``ax`` no Axes.
    ValueError
        ``found`` holds no interactions; ``level`` outside (0, 1).

    Examples
    --------
    >>> import rhale_stats as rs
    >>> example = rs.simulate.TwoRegimes()
    >>> local = rs.local_effects(None, example.sample(500, rng=0), jacobian=example.jacobian)
    >>> panel = rs.plot_interactions(rs.interaction_matrix(local, n_permutations=0))
    >>> [text.get_text() for text in panel.texts]
    ['5 %', '95 %', '0 %', '0 %', '0 %', '0 %']
    """
    check_level(level)
    maker = "interaction_matrix(local)"
    if not isinstance(found, xr.Dataset):
        raise TypeError(
            f"found must be the Dataset that {maker} returns; got {type(found).__name__}."
        )
    if "loss_drop" not in found or "conditioning" not in found.dims:
        raise ValueError(
            f"found must be the Dataset that {maker} returns; this one has no loss_drop over "
            f"(feature, conditioning) (it has {', '.join(map(str, found.data_vars))})."
        )
    panels = None if ax is None else given_axes("ax", [ax], 1, "one")
    drop, pvalue = found["loss_drop"].values, found["pvalue_adjusted"].values
    with style(own=ax is None):
        if panels is None:
            n_lines, n_columns = drop.shape
            size = (max(0.75 * n_columns + 2.8, 4.5), max(0.5 * n_lines + 1.5, 2.6))
            _, panel = plt.subplots(figsize=size, layout="constrained")
        else:
            panel = panels[0]
        _draw_drops(panel, found, pvalue <= level)
        tested = bool(np.isfinite(pvalue).any())
        if tested:
            adjust = found["pvalue_adjusted"].attrs.get("adjust", "none")
            how = "" if adjust == "none" else f", adjusted ({adjust})"
            test = f"* p ≤ {level:g}{how}; {found.attrs['n_permutations']} permutations"
        else:
            test = "no test was made"
        title = f"Interactions in the effects on {found.attrs.get('output_name', 'output')}"
        panel.set_title(f"{title}\n{test}", parse_math=False, fontsize="medium")
    return panel


def _draw_drops(panel: Axes, found: xr.Dataset, marked: NDArray[np.bool_]) -> None:
    drop = found["loss_drop"].values
    names, columns = (list(map(str, found[dim].values)) for dim in ("feature", "conditioning"))
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
    for row, at in zip(*np.nonzero(np.isnan(drop)), strict=True):
        if names[row] != columns[at]:
            panel.text(at + 0.5, row + 0.5, NOT_ALLOWED, ha="center", va="center", color="0.4")
    losses = [loss_text(loss) for loss in found["loss"].values]
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
