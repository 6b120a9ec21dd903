"""Parts that all plots share: colours, labels, style, and checks of Axes that a user passes."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import lru_cache
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
import xarray as xr
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.gridspec import GridSpecBase, GridSpecFromSubplotSpec
from numpy.typing import NDArray

from rhale_stats.arguments.times import are_dates, zone_of
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.schema.features import label_of, units_of, with_units

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
# Longer labels of a y axis are broken into lines, if possible before the unit.
LABEL_LENGTH = 30


# Fonts with Chinese, Japanese and Korean letters by the beginnings of their names, and the letters.
EASTERN = (
    *("Noto Sans CJK", "Noto Serif CJK", "Source Han", "WenQuanYi", "Microsoft YaHei", "SimHei"),
    *("PingFang", "Hiragino", "IPAGothic", "IPAexGothic", "Yu Gothic", "Malgun Gothic"),
    *("NanumGothic", "Arial Unicode"),
)
EASTERN_LETTERS = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
# Width of a letter of a title in points, letters of the narrowest one, and its lines.
LETTER, NARROWEST_TITLE, TITLE_LINES = 5.5, 12, 3
# Narrowest of several panels in the place of one, in inches.
NARROWEST = 1.8


def given_axes(
    parameter: str,
    axes: Axes | Sequence[Axes] | NDArray[np.object_],
    n_axes: int,
    which: str,
) -> list[Axes]:
    """The Axes that a user passed, as a list; raise unless there are ``n_axes`` of them."""
    advice = f"Make them with plt.subplots({n_axes}, layout='constrained')."
    expected = f"{parameter} must be {n_axes} matplotlib Axes, {which}"
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


def as_array(panels: Sequence[Axes] | NDArray[np.object_]) -> NDArray[np.object_]:
    """Axes as an array of one dimension."""
    array = np.empty(len(panels), dtype=object)
    array[:] = list(panels)
    return array


@lru_cache(maxsize=1)
def eastern_fonts() -> tuple[str, ...]:
    """Installed fonts with Chinese, Japanese or Korean letters, which the default one lacks."""
    installed = {font.name for font in font_manager.fontManager.ttflist}
    return tuple(sorted(name for name in installed if name.startswith(EASTERN)))


def style(*, new_figure: bool) -> AbstractContextManager[object]:
    """Context with the style of our own figures; Axes passed by the user keep their style."""
    stack = ExitStack()
    if new_figure:
        stack.enter_context(sns.axes_style("ticks"))
        stack.enter_context(sns.plotting_context("paper"))
        family = [*plt.rcParams["font.family"], *eastern_fonts()[:1]]
        stack.enter_context(plt.rc_context({"font.family": family}))
    return stack


def new_panels(
    n_lines: int, n_columns: int, size: tuple[float, float], *, despined: bool = True, **how: Any
) -> NDArray[Any]:
    """Panels of a new figure of this size, (line, column)."""
    figure, grid = plt.subplots(
        n_lines, n_columns, figsize=size, squeeze=False, layout="constrained", **how
    )
    if despined:
        sns.despine(fig=figure)
    return np.asarray(grid, dtype=object)


@contextmanager
def several_panels(
    parameter: str,
    axes: Axes | Sequence[Axes] | NDArray[np.object_] | None,
    n_axes: int,
    which: str,
    made: Callable[[], list[Axes]],
) -> Iterator[list[Axes]]:
    """The Axes that a user passed, or those of a new figure, ``made`` in our style."""
    panels = None if axes is None else given_axes(parameter, axes, n_axes, which)
    with style(new_figure=panels is None):
        yield made() if panels is None else panels


@contextmanager
def one_panel(ax: Any, size: tuple[float, float], *, despined: bool = True) -> Iterator[Axes]:
    """The Axes that a user passed, or that of a new figure of this size, in our style."""
    axes = None if ax is None else [ax]
    with several_panels(
        "ax", axes, 1, "one", lambda: list(new_panels(1, 1, size, despined=despined)[0])
    ) as (panel,):
        yield panel


def cut_within(text: str, most: int) -> str:
    """A name cut in its middle: names often differ at their ends."""
    end = (most - 1) // 2
    return text if len(text) <= most else f"{text[: most - 1 - end]}…{text[-end:]}"


def entitle(panel: Axes, text: str) -> None:
    """Write a title above a panel, in lines that are no wider than it."""
    points = panel.get_window_extent().width * 72 / panel.figure.dpi
    width = max(int(points / LETTER), NARROWEST_TITLE)
    lines = textwrap.wrap(cut_within(text, TITLE_LINES * width), width)
    panel.set_title("\n".join(lines), parse_math=False)


def upright(text: str, units: str, most: int = LABEL_LENGTH) -> str:
    """Label of a y axis, broken into lines if it is long."""
    if len(text) + len(units) <= most:
        return with_units(text, units)
    lines = [text, f"[{units}]"] if units else [text]
    return "\n".join(textwrap.fill(line, LABEL_LENGTH) for line in lines)


def draw_spread(
    panel: Axes, x: FloatArray, curve: FloatArray, spread: FloatArray, **how: Any
) -> None:
    """How much rows differ: the area of plus and minus ``spread``."""
    how = {"color": HETEROGENEITY_FILL, "linewidth": 0, "zorder": 1, **how}
    panel.fill_between(x, curve - spread, curve + spread, **how)


def draw_ends(panel: Axes, x: FloatArray, ends: FloatArray, label: str, **how: Any) -> None:
    """Lines along both ends of intervals or of a band, (end, x)."""
    how = {"color": UNCERTAINTY, "zorder": 2, **how}
    for end, text in zip(ends, (label or None, None), strict=True):
        panel.plot(x, end, label=text, **how)


def draw_area(
    panel: Axes, x: FloatArray, ends: FloatArray, label: str, *, dark: bool = False
) -> None:
    """The area of intervals (end, x): light with dashed ends, or dark for the part of the rows."""
    low, high = ends
    how: dict[str, Any] = {"color": UNCERTAINTY, "alpha": 0.6, "zorder": 2.1}
    if not dark:
        how = {"color": UNCERTAINTY_LIGHT, "alpha": 0.6, "zorder": 2}
    panel.fill_between(x, low, high, linewidth=0, label=label, **how)
    if not dark:
        draw_ends(panel, x, ends, "", linewidth=0.7, linestyle=(0, (4, 2)))


def draw_missing(panel: Axes, last: float, value: float, half_width: float, label: str) -> None:
    """Draw a mark with an interval beside the axis, for rows without a value."""
    ends = value + half_width * np.array([-1.0, 0.0, 1.0])
    # The limits of the panel know of them only by what lies on its own axis.
    panel.update_datalim(np.column_stack([np.full(3, last), ends]))
    panel.autoscale_view()
    beside = panel.get_yaxis_transform()
    panel.plot([1.03] * 2, ends[[0, 2]], color=UNCERTAINTY, transform=beside, clip_on=False)
    panel.plot(
        [1.03],
        ends[[1]],
        "D",
        color=AVERAGE,
        markersize=4,
        transform=beside,
        clip_on=False,
        label=label,
    )


def feature_label(dataset: xr.Dataset, name: str) -> str:
    """Label of the axis of a feature: its name for people, with its units."""
    return with_units(label_of(dataset, name), units_of(dataset, name))


def output_label(effect: xr.Dataset) -> str:
    """Label of the y axis of curves."""
    name = effect.attrs.get("output_name", "output")
    if "reference" in effect.attrs:
        text = f"{name} relative to {effect.attrs['reference']}"
        return upright(text, str(effect.attrs.get("output_units", "")))
    return upright(f"effect on {name}", str(effect.attrs.get("output_units", "")))


def refuse_reference(reference: object) -> None:
    """Raise ``ValueError`` where a reference is asked of effects of several models."""
    if reference is not None:
        raise ValueError(
            "reference must be None for effects of several models, whose errors are those of the "
            "centred curves. Leave it out."
        )


def date_axis(panel: Axes, units: str) -> None:
    """Ticks that are dates, where the numbers of an axis are days since 1970."""
    if are_dates(units):
        # Matplotlib counts days from the same day.
        ends = {"minticks": 3, "maxticks": 7}
        locator = AutoDateLocator(tz=zone_of(units), **ends)  # type: ignore[no-untyped-call]
        panel.xaxis.set_major_locator(locator)
        form = ConciseDateFormatter(locator, tz=zone_of(units))  # type: ignore[no-untyped-call]
        panel.xaxis.set_major_formatter(form)
