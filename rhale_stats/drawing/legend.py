"""The entries of legends: their texts, their order, and one legend above the panels of a figure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FixedLocator

from rhale_stats.arguments.words import warn
from rhale_stats.inference.meaning import BIASED, LARGE, TOO_FEW
from rhale_stats.printing import text as meaning

# Fonts with Chinese, Japanese and Korean letters by the beginnings of their names, and the letters.
EASTERN = (
    *("Noto Sans CJK", "Noto Serif CJK", "Source Han", "WenQuanYi", "Microsoft YaHei", "SimHei"),
    *("PingFang", "Hiragino", "IPAGothic", "IPAexGothic", "Yu Gothic", "Malgun Gothic"),
    *("NanumGothic", "Arial Unicode"),
)
EASTERN_LETTERS = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
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
ROWS_INTERVAL = "interval, rows alone,\nmodel as given"
BIN_ROWS = "interval in the bin,\nrows alone"
CURVE_BAND = "band of the same,\nsimultaneous over the axis"
BIN_BAND = "band of the bins,\nall at once"
VIOLIN = "local effects\nin the bin"
# Entries of `plots.bins`. More rows than this are drawn as cells, because points would merge.
POINTS, WEIGHED = "local effects", "local effects,\nthe larger the more weight"
DENSITY = "local effects,\ndarker where more rows"
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
    BIN_ROWS: (ROWS_INTERVAL,),
    VIOLIN: (OWN_SPREAD, BIN_SPREAD),
}
# The entry of the spread where it also represents the rows of the bins.
BOTH = dict.fromkeys(
    (OWN_SPREAD, BIN_SPREAD), "± heterogeneity of the rows;\nshapes: their effects in a bin"
)
LEGEND_WIDTH = 40
# The gid of artists drawn by this package, in a figure that may hold others.
OURS = "rhale_stats"
CONSTANT = "constant feature:\nno effect to show"
NO_RANGE = "no range that both curves have:\nno difference to show"
ONE_BIN = "one bin in\nevery replicate"


# --- legends --------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def eastern_fonts() -> tuple[str, ...]:
    """Installed fonts with Chinese, Japanese or Korean letters, which the default one lacks."""
    installed = {font.name for font in font_manager.fontManager.ttflist}
    return tuple(sorted(name for name in installed if name.startswith(EASTERN)))


def say_missing_font(panels: Iterable[Axes]) -> None:
    """Warn where names have letters that no installed font can draw."""
    if not eastern_fonts() and any(
        EASTERN_LETTERS.search(text) for panel in panels for text in _texts_of(panel)
    ):
        warn(
            "Names have letters that no installed font can draw. Install Noto Sans CJK "
            "(fonts-noto-cjk on Debian and Ubuntu), and remove matplotlib.get_cachedir()."
        )


def _texts_of(panel: Axes) -> Iterator[str]:
    """Titles, labels and texts of a panel; of ticks only names: others would be made for it."""
    yield from (panel.get_title(loc=place) for place in ("left", "center", "right"))
    yield from (text.get_text() for text in panel.texts)
    for axis in (panel.xaxis, panel.yaxis):
        yield axis.get_label_text()
        if isinstance(axis.get_major_locator(), FixedLocator):
            yield from (text.get_text() for text in axis.get_ticklabels())
    legend = panel.get_legend()
    yield from (text.get_text() for text in (legend.get_texts() if legend else ()))


def level_text(interval: Any) -> str:
    """Level of an interval in per cent, as text."""
    return f"{100 * float(interval.attrs['ci_prob']):g} %" if "ci_prob" in interval.attrs else "? %"


def source_suffix(source: str) -> str:
    """Suffix of a label for an interval: what it includes."""
    return f", {source}" if meaning.holds_model(source) else GIVEN


def handles_in(panels: Iterable[Axes]) -> dict[str, Any]:
    """What panels have for a legend, by its labels; of one label that of the last panel."""
    return {
        label: handle
        for panel in panels
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)
    }


def figure_legend(
    figure: Any, handles: Mapping[str, Any], texts: Iterable[str], n_columns: int, **how: Any
) -> Any:
    """A legend above all panels of a figure; only a constrained layout makes room for it there."""
    constrained = isinstance(figure.get_layout_engine(), ConstrainedLayoutEngine)
    return figure.legend(
        list(handles.values()),
        list(texts),
        loc="outside upper center" if constrained else "upper center",
        ncols=n_columns,
        frameon=False,
        fontsize="small",
        **how,
    )


def legend_as_drawn(panels: Sequence[Axes], n_columns: int) -> None:
    """One legend of all panels: in the order from the first on, and each as it looks there."""
    handles = handles_in([*panels, *panels[::-1]])
    figure_legend(panels[0].figure, handles, handles, n_columns)


def draw_legend(panels: Iterable[Axes]) -> None:
    """Draw one legend above all panels of a figure, outside the data."""
    say_missing_font(panels)
    for figure in {panel.figure: None for panel in panels}:
        handles = handles_in(
            panel
            for panel in figure.axes
            if any(artist.get_gid() == OURS for artist in panel.get_children())
        )
        if not handles:
            continue
        for earlier in [legend for legend in figure.legends if legend.get_gid() == OURS]:
            earlier.remove()
        texts = entries(list(handles))
        handles = {label: handles[label] for label in texts}
        spacing = {"handlelength": 1.8, "columnspacing": 1.5}
        for n_columns in (4, 3, 2, 1):
            legend = figure_legend(figure, handles, texts.values(), n_columns, **spacing)
            legend.set_gid(OURS)
            if legend.get_window_extent().width <= figure.bbox.width or n_columns == 1:
                break
            legend.remove()


def entries(labels: Sequence[str]) -> dict[str, str]:
    """Labels of artists that the legend has, in its order, with their texts: each mark once.

    Entries of the curve stand for the corresponding ones of the bins.
    """
    places = {label: _place(label) for label in labels}
    text_of = {label: (*LEGEND, label)[place] for label, place in places.items()}
    texts = set(text_of.values())
    out = {}
    for label in sorted(labels, key=lambda label: places[label]):
        if texts.intersection(SAME.get(text_of[label], ())):
            continue
        # Where an entry stands for another one as well, it says so.
        more = any(text_of[label] in SAME[other] for other in texts & set(SAME))
        # What is accumulated of a curve is the effect of the bins.
        both = label.partition(",\n")[0] if text_of[label] == CURVE else label
        out[label] = BOTH.get(text_of[label], both) if more else label
    return out


def _place(label: str) -> int:
    """Place in the legend: that of the first entry of `LEGEND` with which the label begins."""
    label = re.sub(r"^[\d.]+ % ", "", label)
    places = [place for place, begin in enumerate(LEGEND) if label.startswith(begin)]
    return places[0] if places else len(LEGEND)
