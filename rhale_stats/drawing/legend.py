"""Legends, labels, marks and notes of plots."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.text import Text
from numpy.typing import NDArray

from rhale_stats.arguments.times import unit_word
from rhale_stats.arguments.words import warn
from rhale_stats.drawing.canvas import (
    EASTERN_LETTERS,
    date_axis,
    eastern_fonts,
    feature_label,
    new_panels,
    output_label,
    upright,
)
from rhale_stats.inference.meaning import BIASED, LARGE, TOO_FEW
from rhale_stats.schema.feature_result import Result
from rhale_stats.schema.features import units_of

# Level of the intervals that plots compute if an effect has none.
LEVEL = 0.95
# Entries of the legend, column by column, all with two lines so that its rows are aligned.
CURVE, BIN = "average effect,\naccumulated", "average effect\nin the bin"
MISSING = "rows without a value,\nwith their interval"
BAND, BIN_SPREAD = "± heterogeneity\n(comonotone)", "± heterogeneity\nin the bin"
OWN_SPREAD = "± heterogeneity\nin bins of its own"
BARS = "10, 50, 90 % of the\nrows in the bin"
AT_LEVEL = "average effect\nat the level"
# Suffix of intervals that include only the sampling of rows.
GIVEN = ", model as given"
# Texts after the level of an interval.
CURVE_INTERVAL, BIN_INTERVAL = "interval, pointwise", "interval of the\naverage in the bin"
# Of intervals that hold the model, drawn light: the part of the rows, drawn dark within it.
ROWS_INTERVAL, BIN_ROWS = (
    "interval, rows alone,\nmodel as given",
    "interval in the bin,\nrows alone",
)
CURVE_BAND, BIN_BAND = (
    "band of the same,\nsimultaneous over the axis",
    "band of the bins,\nall at once",
)
VIOLIN = "local effects\nin the bin"
# Entries of `plots.bins`. More rows than this are drawn as cells, because points would merge.
POINTS, WEIGHED, DENSITY = (
    "local effects",
    "local effects,\nthe larger the more weight",
    "local effects,\ndarker where more rows",
)
EDGES = "edges of bins"
LOSS, CHOSEN = "loss", "chosen:"
POINTS_DRAWN = 3000
# In place of a number that a feature does not have.
NO_VALUE, UNORDERED = "no value", "levels without an order"
# Entries of `plots.forest` and `plots.compare`.
ESTIMATE, REPLICATES, CHAIN = "estimate", "median of the replicates", "median of a chain"
EACH, ROWS_EACH = "interval of each feature:", "interval, rows alone:"
DIFFERENCE = "a less b"
# Entries of `plots.bias`, and its marks.
WITHIN, BIN_ERROR = "heterogeneity within,\nsquared", "bin error"
TOTAL, BIN_ERROR_SE = "their sum, the variance\nabout the effect", "± its standard error"
MARKS = {BIASED: "*", LARGE: "**", TOO_FEW: "×"}
# Entries of `plots.outcome`.
OBSERVED, PREDICTED = "observed, with the interval\nof observed less predicted", "predicted"
LEGEND = (
    *(CURVE, AT_LEVEL, BIN, BAND, BIN_SPREAD, OWN_SPREAD),
    *(DIFFERENCE, CURVE_INTERVAL, BIN_INTERVAL, ROWS_INTERVAL, BIN_ROWS),
    *(CURVE_BAND, BIN_BAND, VIOLIN, BARS),
    *(TOTAL, WITHIN, BIN_ERROR, BIN_ERROR_SE),
    *(POINTS, EDGES, LOSS, CHOSEN),
    *(MISSING,),
    *(OBSERVED, PREDICTED),
    *(ESTIMATE, REPLICATES, EACH, ROWS_EACH, CHAIN),
)
# What the lower panel draws in the way of the upper one: one entry says both.
SAME: dict[str, tuple[str, ...]] = {
    BIN: (CURVE,),
    BIN_INTERVAL: (CURVE_INTERVAL,),
    BIN_BAND: (CURVE_BAND,),
}
SAME |= {BIN_ROWS: (ROWS_INTERVAL,), VIOLIN: (OWN_SPREAD, BIN_SPREAD)}
# The entry of a curve, and of the spread, where they stand for the bins or their rows, too.
BOTH = {
    OWN_SPREAD: "± heterogeneity of the rows;\nshapes: their effects in a bin",
}
BOTH |= {BIN_SPREAD: BOTH[OWN_SPREAD]}
LEGEND_WIDTH = 40
# The gid of artists drawn by this package, in a figure that may hold others.
OURS = "rhale_stats"
# Minimum height of a panel in numerical errors, so that it does not magnify rounding.
ERRORS_SHOWN = 20
CONSTANT = "constant feature:\nno effect to show"
NO_RANGE = "no range that both curves have:\nno difference to show"
ONE_BIN = "one bin in\nevery replicate"


# --- legends --------------------------------------------------------------------------------------


def grid_of_panels(
    n_panels: int,
    n_columns: int,
    *,
    panel: tuple[float, float] = (2.4, 2.1),
    room: float | None = None,
    sharey: bool = True,
) -> list[Axes]:
    """Panels of a new figure, row by row, with ``room`` above them for the legend, in inches."""
    n_columns = min(n_columns, n_panels)
    n_lines = -(-n_panels // n_columns)
    if room is None:
        room = 0.6 if n_columns > 2 else 1.1
    size = (panel[0] * n_columns + 0.6, panel[1] * n_lines + room)
    panels = list(new_panels(n_lines, n_columns, size, sharey=sharey).flat)
    for unused in panels[n_panels:]:
        unused.remove()
    return panels[:n_panels]


def label_axes(panels: Sequence[Axes], effect: xr.Dataset, row: Result) -> None:
    """Name the axes: output above, then effect and heterogeneity, and the feature below."""
    # A name such as "cost [$]" is text, not a formula.
    panels[0].set_ylabel(output_label(effect), parse_math=False)
    label_bins(panels[1], effect, row)
    if len(panels) > 2:
        panels[1].set_xlabel("")
        panels[2].set_xlabel(feature_label(effect, str(row["feature"].values)), parse_math=False)
        panels[2].set_ylabel("rows differ\n(SD)")


def label_bins(panel: Axes, effect: xr.Dataset, row: Result) -> None:
    """Name the axes of a panel of effects: derivative of the output, and the feature."""
    name = str(row["feature"].values)
    units = units_of(effect, name)
    output_units = str(effect.attrs.get("output_units", ""))
    slope = f"d {effect.attrs.get('output_name', 'output')} / d {name}"
    per = f"{output_units} per {unit_word(units)}" if units and output_units else ""
    # The panel is low.
    panel.set_ylabel(upright(slope, per, 26), parse_math=False)
    panel.set_xlabel(feature_label(effect, name), parse_math=False)
    date_axis(panel, units)


def say(panel: Axes, text: str) -> None:
    """Write a text in the middle of a panel."""
    panel.text(0.5, 0.5, text, transform=panel.transAxes, ha="center", va="center")


def say_constant(panel: Axes, text: str = CONSTANT) -> None:
    """Write in a panel that the feature is constant."""
    say(panel, text)
    # By their looks only: the ticks themselves may be those of other panels too.
    panel.tick_params(bottom=False, labelbottom=False)


def say_empty(panels: Sequence[Axes], text: str = CONSTANT) -> None:
    """Write in panels, whose axes have no numbers, that there is nothing to draw."""
    for panel in panels:
        say_constant(panel, text)
        panel.tick_params(left=False, labelleft=False)


def note(panel: Axes, text: str) -> None:
    """Write a remark above the right end of a panel."""
    panel.text(1, 1.01, text, transform=panel.transAxes, ha="right", va="bottom", fontsize="small")


def error_text(row: Result) -> float:
    """Numerical error of a local effect; 0 if it is not known."""
    if "local_effect_error" not in row:
        return 0.0
    return float(np.nan_to_num(row["local_effect_error"].values))


def say_missing_font(panels: list[Axes]) -> None:
    """Warn where names have letters that no installed font can draw."""
    texts = [text.get_text() for panel in panels for text in panel.findobj(Text)]
    if not eastern_fonts() and any(map(EASTERN_LETTERS.search, texts)):
        warn(
            "Names have letters that no installed font can draw. Install Noto Sans CJK "
            "(fonts-noto-cjk on Debian and Ubuntu), and remove matplotlib.get_cachedir()."
        )


def draw_legend(panels: list[Axes]) -> None:
    """Draw one legend above all panels of a figure, outside the data."""
    say_missing_font(panels)
    for figure in {panel.figure: None for panel in panels}:
        handles = {
            label: handle
            for panel in figure.axes
            if any(artist.get_gid() == OURS for artist in panel.get_children())
            for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)
        }
        if not handles:
            continue
        for earlier in [legend for legend in figure.legends if legend.get_gid() == OURS]:
            earlier.remove()
        texts = entries(list(handles))
        labels = list(texts)
        # Only a constrained layout makes room outside the panels.
        constrained = isinstance(figure.get_layout_engine(), ConstrainedLayoutEngine)
        for n_columns in (4, 3, 2, 1):
            legend = figure.legend(
                [handles[label] for label in labels],
                list(texts.values()),
                loc="outside upper center" if constrained else "upper center",
                ncols=n_columns,
                frameon=False,
                fontsize="small",
                handlelength=1.8,
                columnspacing=1.5,
            )
            legend.set_gid(OURS)
            if legend.get_window_extent().width <= figure.bbox.width or n_columns == 1:
                break
            legend.remove()


def entries(labels: Sequence[str]) -> dict[str, str]:
    """Labels of artists that the legend has, in its order, with their texts: each mark once.

    Entries of the curve stand for the corresponding ones of the bins.
    """
    text_of = {
        label: LEGEND[order_note(label)] if order_note(label) < len(LEGEND) else label
        for label in labels
    }
    texts = set(text_of.values())
    out = {}
    for label in sorted(labels, key=order_note):
        if texts.intersection(SAME.get(text_of[label], ())):
            continue
        # Where an entry stands for another one as well, it says so.
        more = any(text_of[label] in SAME[other] for other in texts & set(SAME))
        # What is accumulated of a curve is the effect of the bins.
        both = label.partition(",\n")[0] if text_of[label] == CURVE else label
        out[label] = BOTH.get(text_of[label], both) if more else label
    return out


def order_note(label: str) -> int:
    """Place in the legend: that of the first entry of `LEGEND` with which the label begins."""
    label = re.sub(r"^[\d.]+ % ", "", label)
    # Other statistics stand where the average does.
    label = re.sub(r"^[\w ]+ effect(,?\n)", r"average effect\1", label)
    label = re.sub(r"^(interval of the\n)[\w ]+ (in the bin)", r"\1average \2", label)
    places = [place for place, begin in enumerate(LEGEND) if label.startswith(begin)]
    return places[0] if places else len(LEGEND)


def say_limited(panels: Sequence[Axes] | NDArray[np.object_], n_features: int) -> None:
    """Write below a figure that not all features are drawn."""
    panels[0].figure.supxlabel(
        f"the {len(panels)} most important of {n_features} features; features= or max_features= "
        f"draws others",
        fontsize="small",
    )
