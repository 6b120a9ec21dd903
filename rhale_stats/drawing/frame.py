"""The frame of all pictures: panels, labels, notes, legends, colours and common marks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import lru_cache, partial
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import lazy_loader
import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.collections import Collection
from matplotlib.container import Container
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.gridspec import GridSpecBase, GridSpecFromSubplotSpec
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.style import library
from matplotlib.ticker import AutoLocator, FixedLocator, MaxNLocator, ScalarFormatter
from numpy.typing import NDArray

from rhale_stats.arguments.times import are_dates, unit_word, zone_of
from rhale_stats.arguments.words import shown, warn
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.inference.meaning import BIASED, LARGE, TOO_FEW
from rhale_stats.printing.text import cut_within, holds_model, in_lines
from rhale_stats.schema.feature_result import Result
from rhale_stats.schema.features import label_of, units_of, with_units

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
AT_LEVEL, OF_LEVELS = "average effect\nat the level", ", of levels"
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
    return f", {source}" if holds_model(source) else GIVEN


def handles_in(panels: Iterable[Axes]) -> dict[str, Any]:
    """What panels have for a legend, by its labels; of one label that of the last panel."""
    return {
        label: handle
        for panel in panels
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)
    }


def figure_legend(
    figure: Any, handles: Mapping[Any, Any], texts: Iterable[str], n_columns: int, **how: Any
) -> Any:
    """A legend above all panels of a figure; only a constrained layout makes room for it there.

    It has fewer columns, and texts in more lines, where it would be wider than the figure.
    """
    constrained = isinstance(figure.get_layout_engine(), ConstrainedLayoutEngine)
    how = {"loc": "outside upper center" if constrained else "upper center", **how}
    letters = int(figure.bbox.width * 72 / figure.dpi / LETTER) - MARK_LETTERS
    lines = partial(in_lines, width=max(letters, NARROWEST_TITLE))
    labels = ["\n".join(chain(*map(lines, text.split("\n")))) for text in texts]
    how |= {"handles": list(handles.values()), "labels": labels}
    how |= {"frameon": False, "fontsize": "small"}
    while True:
        legend = figure.legend(ncols=n_columns, **how)
        # Letters are a little wider where a file has fewer points an inch than the screen.
        if n_columns == 1 or legend.get_window_extent().width <= 0.92 * figure.bbox.width:
            return legend
        legend.remove()
        n_columns -= 1


def legend_as_drawn(panels: Sequence[Axes], n_columns: int) -> None:
    """One legend of all panels: in the order from the first on, and each as it looks there.

    What bars and whiskers of levels share with the curves of other panels has two entries.
    """
    handles: dict[tuple[str, bool], Any] = {}
    for panel in panels:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            handles.setdefault((label, isinstance(handle, Container)), handle)
    texts = [
        label + OF_LEVELS if of_levels and (label, False) in handles else label
        for label, of_levels in handles
    ]
    figure_legend(panels[0].figure, handles, texts, n_columns)


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
        figure_legend(figure, handles, texts.values(), 4, **spacing).set_gid(OURS)


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
        # An entry for two marks names both.
        more = any(text_of[label] in SAME[other] for other in texts & set(SAME))
        # What is accumulated of a curve is the effect of the bins.
        both = label.partition(",\n")[0] if text_of[label] == CURVE else label
        out[label] = BOTH.get(text_of[label], both) if more else label
    return out


def _place(label: str) -> int:
    """Place in the legend: that of the first entry of `LEGEND` with which the label begins."""
    label = re.sub(r"^[\d.]+ % ", "", label)
    begins = map(label.startswith, (*LEGEND, ""))
    return list(begins).index(True)


# Its import takes a third of a second: of pictures that need it.
sns = lazy_loader.load("seaborn")
# Black and grey are about the average and how sure it is; colour is about rows.
AVERAGE = "black"
HETEROGENEITY = "#0173b2"
HETEROGENEITY_FILL = "#c3ddec"
UNCERTAINTY = "#5b6470"
# Of an interval that holds the model, within which that of the rows is drawn dark.
UNCERTAINTY_LIGHT = "#aab1ba"
REFERENCE = "0.6"
# A second colour, for what is neither: the other end of a scale, counts of edges.
OTHER = "#d55e00"
DASHES = (0, (4, 2))
# Seaborn's style "ticks" in its context "paper", for pictures that do not need it otherwise: the
# sizes of a notebook, smaller by a factor.
PAPER = 0.8
STYLE: Any = {
    **{
        name: value
        for name, value in library["seaborn-v0_8-ticks"].items()
        if not name.startswith("legend")
    },
    **dict.fromkeys(("xtick.bottom", "ytick.left"), True),
    **dict.fromkeys(("xtick.top", "ytick.right"), False),
    **{f"axes.spines.{side}": True for side in ("left", "bottom", "right", "top")},
    **dict.fromkeys(
        ("font.size", "axes.labelsize", "axes.titlesize", "legend.title_fontsize"), PAPER * 12
    ),
    **dict.fromkeys(("xtick.labelsize", "ytick.labelsize", "legend.fontsize"), PAPER * 11),
    **dict.fromkeys(("axes.linewidth", "xtick.major.width", "ytick.major.width"), PAPER * 1.25),
    **dict.fromkeys(
        ("grid.linewidth", "patch.linewidth", "xtick.minor.width", "ytick.minor.width"), PAPER
    ),
    **dict.fromkeys(("lines.markersize", "xtick.major.size", "ytick.major.size"), PAPER * 6),
    **dict.fromkeys(("xtick.minor.size", "ytick.minor.size"), PAPER * 4),
    "lines.linewidth": PAPER * 1.5,
    "patch.edgecolor": "w",
    "patch.force_edgecolor": True,
    "font.sans-serif": [
        *("Arial", "DejaVu Sans", "Liberation Sans", "Bitstream Vera Sans", "sans-serif"),
    ],
}
# Longer labels of a y axis are broken into lines, if possible before the unit.
LABEL_LENGTH = 30
# Width of a letter of a title in points, letters of the narrowest one, and its lines; letters that
# have the place of a mark of the legend.
LETTER, NARROWEST_TITLE, TITLE_LINES, MARK_LETTERS = 5.5, 12, 3, 6
# Width of a digit of a tick in points, room between two ticks and length of a long one in digits.
TICK_LETTER, BETWEEN_TICKS, MAX_STEPS, LONG_TICK = 5.5, 1.0, 7, 5
# Narrowest of several panels in the place of one, in inches.
NARROWEST = 1.8
# Minimum height of a panel in numerical errors, so that it does not magnify rounding.
ERRORS_SHOWN = 20
# What `ax` may be, and the panels of a picture.
GivenAxes: TypeAlias = Axes | Sequence[Axes] | NDArray[np.object_] | None
Panels: TypeAlias = NDArray[np.object_]


# --- panels ---------------------------------------------------------------------------------------


@contextmanager
def several_panels(
    ax: GivenAxes,
    n_axes: int,
    which: str,
    made: Callable[[], Any],
    *,
    legend: bool = True,
) -> Iterator[Panels]:
    """The Axes that a user passed, or those of a new figure, ``made`` in our style.

    Axes of a user keep their style. In the end the figure gets its ``legend``.
    """
    family = [*plt.rcParams["font.family"], *eastern_fonts()[:1]]
    with plt.rc_context({**STYLE, "font.family": family}) if ax is None else nullcontext():
        flat = flat_axes(made()) if ax is None else given_axes(ax, n_axes, which)
        panels = np.array(flat, dtype=object)
        yield panels
        if ax is None:
            leave_room(panels)
        if legend:
            draw_legend(panels)


@contextmanager
def one_panel(
    ax: Any, size: tuple[float, float], *, despined: bool = True, legend: bool = True
) -> Iterator[Axes]:
    """The Axes that a user passed, or that of a new figure of this size, in our style."""
    axes, made = None if ax is None else [ax], partial(new_panels, 1, 1, size, despined=despined)
    with several_panels(axes, 1, "one", made, legend=legend) as (panel,):
        yield panel


def given_axes(axes: Any, n_axes: int, which: str) -> list[Axes]:
    """The Axes that a user passed, as a list; raise unless there are ``n_axes`` of them."""
    advice = f"Make them with plt.subplots({n_axes}, layout='constrained')."
    expected = f"ax must be {n_axes} matplotlib Axes, {which}"
    if isinstance(axes, Axes):
        axes = [axes] if n_axes == 1 else panels_within(axes, n_axes)
    if not isinstance(axes, Sequence | np.ndarray):
        raise TypeError(f"{expected}; got {type(axes).__name__}. {advice}")
    panels = flat_axes(axes)
    for panel in panels:
        if not isinstance(panel, Axes):
            raise TypeError(f"{expected}; got {type(panel).__name__} among them. {advice}")
    if len(panels) != n_axes:
        raise ValueError(f"{expected}; got {len(panels)}. {advice}")
    if len({id(panel) for panel in panels}) < n_axes:
        raise ValueError(f"{expected}; got the same one twice. {advice}")
    return panels


def panels_within(panel: Axes, n_panels: int) -> list[Axes]:
    """So many panels in the place of one, which is hidden: as many in a line as are wide enough."""
    figure = panel.figure.figure
    width = panel.get_position().width * figure.get_size_inches()[0]
    n_columns = int(np.clip(width // NARROWEST, 1, min(n_panels, 3)))
    shape = (-(-n_panels // n_columns), n_columns)
    space: dict[str, Any] = {"wspace": 0.5, "hspace": 0.9}
    spec = panel.get_subplotspec()
    if spec is None:
        left, bottom, right, top = panel.get_position().extents
        space |= {"left": left, "bottom": bottom, "right": right, "top": top}
        grid: GridSpecBase = figure.add_gridspec(shape[0], shape[1], **space)
    else:
        grid = GridSpecFromSubplotSpec(*shape, subplot_spec=spec, **space)
    panel.set_axis_off()
    return [panel.figure.add_subplot(grid[number]) for number in range(n_panels)]


def flat_axes(axes: Sequence[Any] | NDArray[np.object_]) -> list[Any]:
    """The items of nested sequences, in order (NumPy would convert them to arrays)."""
    flat = []
    # A masked array would hold itself.
    parts = np.asarray(axes).ravel() if isinstance(axes, np.ndarray) else axes
    for part in parts:
        flat += flat_axes(part) if isinstance(part, list | tuple | np.ndarray) else [part]
    return flat


def new_panels(
    n_lines: int, n_columns: int, size: tuple[float, float], *, despined: bool = True, **how: Any
) -> NDArray[Any]:
    """Panels of a new figure of this size, (line, column)."""
    _, grid = plt.subplots(
        n_lines, n_columns, figsize=size, squeeze=False, layout="constrained", **how
    )
    if despined:
        for panel in grid.flat:
            panel.spines[["top", "right"]].set_visible(False)
    return np.asarray(grid, dtype=object)


def column(heights: Sequence[float], *, sharex: bool = False) -> NDArray[Any]:
    """A figure with panels of these heights in inches, one below the other."""
    size = (7.0, sum(heights))
    return new_panels(len(heights), 1, size, height_ratios=heights, sharex=sharex)


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


class Content(NamedTuple):
    """What a panel of a grid shows, with its title, its feature as ``x``, and the output."""

    draw: Callable[[Axes], None]
    title: str
    x: str
    units: str
    y: str = ""


def draw_grid(
    contents: Sequence[Content],
    n_columns: int,
    ax: GivenAxes,
    which: str,
    *,
    y: str = "",
    of_features: int = 0,
) -> Panels:
    """A panel for each content. ``y`` is the label of all y axes of a new figure.

    A note says it where these are the largest ``of_features`` features.
    """
    n_panels = len(contents)
    with several_panels(ax, n_panels, which, lambda: grid_of_panels(n_panels, n_columns)) as panels:
        for panel, content in zip(panels, contents, strict=True):
            entitle(panel, content.title)
            name_axes(panel, content.x)
            date_axis(panel, content.units)
            if ax is not None and (panel is panels[0] or not isinstance(ax, Axes)):
                name_axes(panel, y=content.y)
            content.draw(panel)
        if ax is None and y:
            size = panels[0].yaxis.label.get_fontsize()
            panels[0].figure.supylabel(y, fontsize=size, parse_math=False)
        if of_features:
            say_limited(panels, of_features)
    return panels


def reference_of(reference: object) -> dict[str, Any]:
    """Values that curves are relative to, by the names of their features."""
    if reference is not None and not isinstance(reference, Mapping):
        raise TypeError(
            f"reference must be a mapping of features to values, as in {{'dose': 4}}; got "
            f"{shown(reference)}."
        )
    return dict(reference or {})


# --- labels and notes -----------------------------------------------------------------------------


def name_axes(
    panel: Axes, x: str | None = None, y: str | None = None, title: str | None = None, **how: Any
) -> None:
    """Name the axes, and the panel. A name such as "cost [$]" is text, not a formula."""
    if x is not None:
        panel.set_xlabel(x, parse_math=False)
    if y is not None:
        panel.set_ylabel(y, parse_math=False)
    if title is not None:
        panel.set_title(title, parse_math=False, **how)


def name_feature(panel: Axes, dataset: xr.Dataset, name: str) -> None:
    """Name the x axis by a feature, with its units; ticks of times are dates."""
    name_axes(panel, feature_label(dataset, name))
    date_axis(panel, units_of(dataset, name))


def name_bins(panel: Axes, effect: xr.Dataset, row: Result) -> None:
    """Name the axes of a panel of effects: derivative of the output, and the feature."""
    name = str(row["feature"].values)
    name_feature(panel, effect, name)
    # The panel is low.
    name_axes(panel, y=slope_label(effect, name, units_of(effect, name), 26))


def slope_label(effect: xr.Dataset, name: str, units: str, most: int = LABEL_LENGTH) -> str:
    """Label of the y axis of derivatives."""
    output, output_units = (effect.attrs.get(f"output_{key}", "") for key in ("name", "units"))
    per = f"{output_units} per {unit_word(units)}" if units and output_units else ""
    return upright(f"d {output or 'output'} / d {name}", per, most)


def feature_label(dataset: xr.Dataset, name: str) -> str:
    """Label of the axis of a feature: its name for people, with its units."""
    return with_units(label_of(dataset, name), units_of(dataset, name))


def output_label(effect: xr.Dataset, more: str = "") -> str:
    """Label of the y axis of curves."""
    name = effect.attrs.get("output_name", "output")
    text = f"effect on {name}{more}"
    if "reference" in effect.attrs:
        text = f"{name} relative to {effect.attrs['reference']}"
    return upright(text, str(effect.attrs.get("output_units", "")))


def upright(text: str, units: str, most: int = LABEL_LENGTH) -> str:
    """Label of a y axis, broken into lines if it is long."""
    if len(text) + len(units) <= most:
        return with_units(text, units)
    lines = [text, f"[{units}]"] if units else [text]
    return "\n".join(part for line in lines for part in in_lines(line, LABEL_LENGTH))


def pvalue_text(value: float) -> str:
    """A p-value with the sign before it: = 0.42, < 0.001."""
    if np.isnan(value):
        return "unknown"
    if value < 0.001:
        return "< 0.001"
    return f"= {value:.3f}" if value < 0.1 else f"= {value:.2f}"


def width_of(panel: Axes) -> float:
    """Width of a panel in points."""
    return float(panel.get_window_extent().width * 72 / panel.figure.dpi)


def entitle(panel: Axes, text: str) -> None:
    """Write a title above a panel, in lines that are no wider than it."""
    width = max(int(width_of(panel) / LETTER), NARROWEST_TITLE)
    lines = in_lines(cut_within(text, TITLE_LINES * width), width)
    name_axes(panel, title="\n".join(lines))


def leave_room(panels: Panels) -> None:
    """Take fewer ticks along x where their numbers have so many digits that they would touch."""
    long = [panel for panel in panels if _has_long_ticks(panel)]
    if long and (layout := long[0].figure.get_layout_engine()):
        layout.execute(long[0].figure)  # what is written beside a panel makes it narrower
    for panel in long:
        _take_fewer_ticks(panel)


def _has_long_ticks(panel: Axes) -> bool:
    locator, formatter = panel.xaxis.get_major_locator(), panel.xaxis.get_major_formatter()
    if not (isinstance(locator, AutoLocator) and isinstance(formatter, ScalarFormatter)):
        return False
    texts = formatter.format_ticks(list(locator.tick_values(*sorted(panel.get_xlim()))))
    # Matplotlib leaves room for shorter ones.
    return max(map(len, texts)) >= LONG_TICK


def _take_fewer_ticks(panel: Axes) -> None:
    axis, (low, high) = panel.xaxis, sorted(panel.get_xlim())
    formatter = axis.get_major_formatter()
    per_unit = width_of(panel) / (TICK_LETTER * (high - low))
    for n_steps in range(MAX_STEPS, 0, -1):
        locator = MaxNLocator(n_steps)
        places = locator.tick_values(low, high)
        texts = formatter.format_ticks(list(places))
        longest = max(len(text) for text, x in zip(texts, places, strict=True) if x >= low)
        if (places[1] - places[0]) * per_unit >= longest + BETWEEN_TICKS:
            break
    axis.set_major_locator(locator)


def date_axis(panel: Axes, units: str) -> None:
    """Ticks that are dates, where the numbers of an axis are days since 1970."""
    if are_dates(units):
        # Matplotlib counts days from the same day.
        ends = {"minticks": 3, "maxticks": 7}
        locator = AutoDateLocator(tz=zone_of(units), **ends)  # type: ignore[no-untyped-call]
        panel.xaxis.set_major_locator(locator)
        form = ConciseDateFormatter(locator, tz=zone_of(units))  # type: ignore[no-untyped-call]
        panel.xaxis.set_major_formatter(form)


def say(panel: Axes, text: str) -> None:
    """Write a text in the middle of a panel."""
    panel.text(0.5, 0.5, text, transform=panel.transAxes, ha="center", va="center")


def say_constant(panel: Axes, text: str = CONSTANT) -> None:
    """Write in a panel that the feature is constant."""
    say(panel, text)
    # By their looks only: the ticks themselves may be those of other panels too.
    panel.tick_params(bottom=False, labelbottom=False)


def say_empty(panels: Iterable[Axes], text: str = CONSTANT) -> None:
    """Write in panels, whose axes have no numbers, that there is nothing to draw."""
    for panel in panels:
        say_constant(panel, text)
        panel.tick_params(left=False, labelleft=False)


def note(panel: Axes, text: str) -> None:
    """Write a remark above the right end of a panel."""
    panel.text(1, 1.01, text, transform=panel.transAxes, ha="right", va="bottom", fontsize="small")


def mark(panel: Axes, text: str, xy: tuple[float, float], dx: float, dy: float, **how: Any) -> None:
    """Write a small text beside a point, so many points away."""
    how = {"ha": "center", "va": "bottom", "fontsize": "small", **how}
    panel.annotate(text, xy, (dx, dy), textcoords="offset points", **how)


def beside(panel: Axes, text: str, x: float, place: float, **how: Any) -> None:
    """Write a small text on a line of a panel, at this part of its width."""
    how = {"va": "center", "fontsize": "small", "xycoords": ("axes fraction", "data"), **how}
    panel.annotate(text, (x, place), **how)


def say_limited(panels: Panels, n_features: int) -> None:
    """Write below a figure that not all features are drawn."""
    panels[0].figure.supxlabel(
        f"the {len(panels)} most important of {n_features} features; features= or max_features= "
        f"draws others",
        fontsize="small",
    )


def error_text(row: Result) -> float:
    """Numerical error of a local effect; 0 if it is not known."""
    error = row["local_effect_error"].values if "local_effect_error" in row else 0.0
    return float(np.nan_to_num(error))


# --- marks ----------------------------------------------------------------------------------------


def draw_zero(panel: Axes, **how: Any) -> None:
    """The line of no effect."""
    panel.axhline(0, **{"color": REFERENCE, "linewidth": 0.6, "zorder": 0.5, "gid": OURS, **how})


def draw_between(panel: Axes, x: Any, ends: Any, label: str | None = None, **how: Any) -> None:
    """The area between two ends along an axis, (end, x)."""
    panel.fill_between(x, *ends, label=label, linewidth=0, **how)


def draw_ends(panel: Axes, x: FloatArray, ends: FloatArray, label: str, **how: Any) -> None:
    """Lines along both ends of intervals or of a band, (end, x)."""
    how = {"color": UNCERTAINTY, "zorder": 2, **how}
    for end, text in zip(ends, (label or None, None), strict=True):
        panel.plot(x, end, label=text, **how)


def draw_area(
    panel: Axes, x: FloatArray, ends: FloatArray, label: str, *, dark: bool = False
) -> None:
    """The area of intervals (end, x): light with dashed ends, or dark for the part of the rows."""
    if dark:
        draw_between(panel, x, ends, label, color=UNCERTAINTY, alpha=0.6, zorder=2.1)
    else:
        draw_between(panel, x, ends, label, color=UNCERTAINTY_LIGHT, alpha=0.6, zorder=2)
        draw_ends(panel, x, ends, "", linewidth=0.7, linestyle=DASHES)


def draw_whiskers(panel: Axes, x: Any, y: Any, reach: Any, width: float, **how: Any) -> None:
    """Lines without a mark from ``y`` as far as ``reach``; ``xerr`` in place of it lie flat."""
    how = {"ecolor": UNCERTAINTY, **how}
    panel.errorbar(x, y, reach, fmt="none", elinewidth=width, **how)


def draw_missing(panel: Axes, last: float, value: float, half_width: float, label: str) -> None:
    """Draw a mark with an interval beside the axis, for rows without a value."""
    ends = value + half_width * np.array([-1.0, 0.0, 1.0])
    # The limits of the panel know of them only by what lies on its own axis.
    panel.update_datalim(np.column_stack([np.full(3, last), ends]))
    panel.autoscale_view()
    beside: dict[str, Any] = {"transform": panel.get_yaxis_transform(), "clip_on": False}
    panel.plot([1.03] * 2, ends[[0, 2]], color=UNCERTAINTY, **beside)
    panel.plot([1.03], ends[[1]], "D", color=AVERAGE, markersize=4, label=label, **beside)


def add(panel: Axes, collection: Collection, label: str = "") -> None:
    """Add lines or areas, all of one entry of the legend."""
    if label:
        collection.set_label(label)
    panel.add_collection(collection)


def enlarge(panel: Axes, least: float) -> None:
    """Enlarge the y scale to at least this length."""
    bottom, top = panel.get_ylim()
    if top - bottom < least:
        middle = (bottom + top) / 2
        panel.set_ylim(middle - least / 2, middle + least / 2)
