"""The pictures of a report as SVG, with their captions, keys and descriptions in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from markupsafe import Markup
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from rhale_stats.answers.sentences import FIVE_DIGITS, axis_texts, percent
from rhale_stats.arguments.times import are_dates, date_texts
from rhale_stats.arrays.answers import stretches
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.printing.text import count_text, in_lines
from rhale_stats.reporting.reading import (
    MINUS,
    Group,
    PictureCurve,
    ReportContent,
    ReportFeature,
    ReportSize,
    Windows,
    number_text,
    typeset,
)

# Widths of letters at the font size of the pictures, in wide sans-serif fonts: most, capitals, and
# the widest.
LETTER, CAPITAL, WIDE_LETTER = 7.8, 10.0, 13.0
# Room left of a number, in pixels: its minus and digits are wider than most letters.
SPARE = 6.0
CUT = "…"
Stretches: TypeAlias = Sequence[tuple[float, float]]
# Steps of ticks that people count in.
STEPS = [1, 2, 2.5, 5, 10]


@dataclass(frozen=True)
class Scale:
    """A straight scale from numbers to pixels."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: Any) -> Any:
        """Pixel of a number, or pixels of numbers."""
        share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int, units: str = "") -> list[tuple[float, str]]:
        """Round numbers on the scale, at most ``most`` from 3 on, with their texts."""
        locator = MaxNLocator(max(most - 1, 1), steps=STEPS)
        values = np.asarray(locator.tick_values(self.low, self.high), float)
        slack = 1e-9 * (self.high - self.low)
        values = values[(values >= self.low - slack) & (values <= self.high + slack)]
        return list(zip(values.tolist(), tick_texts(values, units), strict=True))


def spanning(values: Iterable[float], start: float, end: float, *, room: float = 0.05) -> Scale:
    """A scale that holds these numbers, with some room at both ends."""
    finite = [value for value in values if np.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=1.0)
    if low == high:
        half = abs(low) / 2 or 0.5
        low, high = low - half, high + half
    spare = room * (high - low)
    return Scale(float(low - spare), float(high + spare), start, end)


def fair(numbers: Iterable[float], about: Iterable[float], start: float, end: float) -> Scale:
    """A scale of these numbers; of what is ``about`` them it holds up to their range beyond.

    One cell of few rows, whose band is wide, shall not flatten the rest.
    """
    finite = [value for value in numbers if np.isfinite(value)]
    if reach := np.ptp(finite or 0.0):
        about = np.clip([*about], min(finite) - reach, max(finite) + reach)
    return spanning([*finite, *about], start, end, room=0.02)


def tick_texts(values: FloatArray, units: str = "") -> list[str]:
    """Texts of equidistant numbers, with as many decimals as their step needs."""
    if are_dates(units) and len(values):
        return date_texts(values, units)
    values = np.where(np.abs(values) < 1e-12 * np.abs(values).max(initial=0), 0, values)
    step = float(np.diff(values).min()) if len(values) > 1 else 1.0
    largest = float(np.abs(values).max(initial=0))
    if largest >= 1e7 or step < 1e-5:
        return [f"{value:.4g}".replace("-", MINUS) for value in values]
    decimals = max(0, 2 - int(np.floor(np.log10(step))))
    texts = [f"{value:,.{decimals}f}" for value in values]
    # As many as the one that needs most.
    while texts and "." in texts[0] and all(text.endswith("0") for text in texts):
        texts = [text[:-1].removesuffix(".") for text in texts]
    if largest < FIVE_DIGITS:
        texts = [text.replace(",", "") for text in texts]
    return [text.replace("-", MINUS) for text in texts]


def text_width(text: str) -> float:
    """Room that a text needs, in pixels."""
    return sum(
        WIDE_LETTER if letter in "mwMW" else CAPITAL if letter.isupper() else LETTER
        for letter in text
    )


def wrapped(text: str, room: float) -> list[str]:
    """A text in one row or two of a width in pixels, cut beyond."""
    most = max(int(room * len(text) / max(text_width(text), 1.0)), 2)
    first, *rest = in_lines(text, most) or [""]
    return [first, f"{rest[0][: most - 1]}{CUT}"] if len(rest) > 1 else [first, *rest]


def runs(present: NDArray[np.bool_]) -> list[slice]:
    """The stretches of positions without a gap."""
    return [slice(begin, end + 1) for begin, end in stretches(present)]


def _at(value: float) -> str:
    """A pixel, with one decimal at most."""
    return f"{value:.1f}".removesuffix(".0")


class Drawing:
    """A picture of a width and height in pixels; ``kind`` is the class of each mark."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self._parts: list[str] = []
        self._bars: dict[str, int] = {}
        # By how much texts reach beyond the left edge.
        self.overhang = 0.0
        # Pixels of the places of which there are values, and along which side they lie.
        self.places: FloatArray = np.zeros(0)
        self.along = "x"

    def line(self, kind: str, x1: float, y1: float, x2: float, y2: float) -> None:
        """A straight line."""
        self.path(kind, (x1, x2), (y1, y2))

    def rect(self, kind: str, x: float, y: float, width: float, height: float) -> None:
        """A bar, also if an end comes before the start."""
        x, y = min(x, x + width), min(y, y + height)
        bar = f"M{_at(x)} {_at(y)}h{_at(abs(width))}v{_at(abs(height))}H{_at(x)}z"
        # All bars of a kind are one path, which takes a third of the room.
        if kind not in self._bars:
            self._bars[kind] = len(self._parts)
            self._parts.append(f'<path class="{kind}" d=""/>')
        place = self._bars[kind]
        self._parts[place] = self._parts[place].replace('"/>', f'{bar}"/>')

    def path(
        self, kind: str, x: Iterable[float], y: Iterable[float], *, closed: bool = False
    ) -> None:
        """A line through points, or the area within them."""
        if line := "L".join(f"{_at(a)} {_at(b)}" for a, b in zip(x, y, strict=True)):
            self._parts.append(f'<path class="{kind}" d="M{line}{"Z" if closed else ""}"/>')

    def steps(self, kind: str, edges: FloatArray, heights: FloatArray, bottom: float) -> None:
        """The area of columns that touch each other."""
        columns = "".join(
            f"V{_at(height)}H{_at(end)}" for height, end in zip(heights, edges[1:], strict=True)
        )
        start = f"M{_at(edges[0])} {_at(bottom)}"
        self._parts.append(f'<path class="{kind}" d="{start}{columns}V{_at(bottom)}z"/>')

    def points(self, x: FloatArray, y: FloatArray) -> None:
        """Dots with a border in the colour of the ground, as ends of lines without a length."""
        finite = np.isfinite(x) & np.isfinite(y)
        ends = zip(x[finite], y[finite], strict=True)
        places = "".join(f"M{_at(a)} {_at(b)}h0" for a, b in ends)
        for kind in ("points border", "points"):
            self._parts.append(f'<path class="{kind}" d="{places}"/>')

    def mark(self, kind: str, x: float, y: float) -> None:
        """A dot for averages, a square for rows that stands on a corner, or a square."""
        if kind == "average":
            self._parts.append(f'<circle class="mark {kind}" cx="{_at(x)}" cy="{_at(y)}" r="5"/>')
            return
        corners = (
            ((-5, 0, 5, 0), (0, -5, 0, 5)) if kind == "rows" else ((-5, 5, 5, -5), (-5, -5, 5, 5))
        )
        self.path(f"mark {kind}", x + np.array(corners[0]), y + np.array(corners[1]), closed=True)

    def text(self, kind: str, x: float, y: float, text: str) -> None:
        """A text; ``kind`` says whether x is its start, middle or end."""
        if kind == "end":
            self.overhang = max(self.overhang, text_width(text) + SPARE - x)
        named = f' class="{kind}"' if kind else ""
        self._parts.append(f'<text{named} x="{_at(x)}" y="{_at(y)}">{escape(text)}</text>')

    def curve(self, kind: str, x: FloatArray, y: FloatArray, across: Scale, up: Scale) -> None:
        """A line through the values that are known."""
        for run in runs(np.isfinite(x) & np.isfinite(y)):
            if len(x[run]) > 1:
                self.path(kind, across(x[run]), up(y[run]))

    def band(self, curve: PictureCurve, across: Scale, up: Scale) -> None:
        """The area between the ends of the band of a curve."""
        low, high = np.clip([curve.low, curve.high], up.low, up.high)
        for run in runs(np.isfinite(curve.x) & np.isfinite(low) & np.isfinite(high)):
            x, ends = across(curve.x[run]), np.r_[up(high[run]), up(low[run])[::-1]]
            self.path("band", np.r_[x, x[::-1]], ends, closed=True)

    def markup(self, kind: str, anchor: str) -> Markup:
        """The picture for HTML, named by the elements for its caption and its description."""
        places = " ".join(map(_at, self.places))
        read = f'data-along="{self.along}" data-places="{places}" ' if places else ""
        names = f'aria-labelledby="{anchor}-caption" aria-describedby="{anchor}-alt"'
        return self._svg(f'class="pic {kind}" role="img"', read + names)

    def named(self, kind: str, name: str) -> Markup:
        """The picture for HTML, with its name in it."""
        return self._svg(f'class="pic {kind}" role="img"', f'aria-label="{escape(name)}"')

    def swatch(self) -> Markup:
        """The picture as a mark of the key, which is named by the text beside it."""
        return self._svg('class="swatch"', 'aria-hidden="true"')

    def _svg(self, look: str, names: str) -> Markup:
        box, parts = f"0 0 {_at(self.width)} {_at(self.height)}", "".join(self._parts)
        start = f'<svg {look} viewBox="{box}" {names} focusable="false">'
        return Markup(f"{start}{parts}</svg>")


# --- the pictures of a report ---------------------------------------------------------------------


WIDE, NARROW = 680.0, 340.0
# Heights of the panels of a curve, and of a line of a dot chart.
COLUMNS = 40
ABOVE, STRIP, ROWS, LINE, GAP = 250.0, 120.0, 34.0, 34.0, 30.0
# The first four groups have marks of their own.
MAX_GROUPS = 4
# Left margin of a curve where the numbers beside it are short.
LEFT = 44.0
ROWS_TITLE = "Rows"


@dataclass(frozen=True)
class Dot:
    """One line of a dot chart: a name and marks, each with its class, value and interval."""

    name: str
    marks: tuple[tuple[str, ReportSize], ...]
    quantiles: Sequence[float] = ()


def overview(features: Sequence[ReportFeature], threshold: float, width: float) -> Drawing:
    """How much each feature moves the predictions, on average and by rows."""
    lines = [
        Dot(
            line.label,
            (
                ("average", ReportSize(line.importance, *line.importance_ci)),
                ("rows", ReportSize(line.row_spread, *line.row_spread_ci)),
            ),
        )
        for line in (feature.line for feature in features)
    ]
    return dots(lines, width, (0.0, threshold), small=threshold)


def dots(
    lines: Sequence[Dot],
    width: float,
    shown: Iterable[float],
    *,
    small: float | None = None,
    linked: bool = False,
) -> Drawing:
    """Values with intervals, a line each; ``shown`` are numbers that the scale must hold.

    With ``small``, below which sizes hardly matter, the scale begins at 0.
    """
    room = min(max(text_width(line.name) for line in lines) + 16, 0.38 * width)
    sizes = chain.from_iterable(size for line in lines for _, size in line.marks)
    quantiles = chain.from_iterable(line.quantiles for line in lines)
    numbers = [*shown, *sizes, *quantiles]
    scale = spanning(numbers, room, width - 14, room=0.04)
    bottom = 8 + LINE * len(lines)
    drawing = Drawing(width, bottom + 24)
    if small is not None:
        scale = replace(scale, low=0.0)
        drawing.rect("small", room, 8, scale(min(small, scale.high)) - room, bottom - 8)
    for value, text in scale.ticks(7 if width > NARROW else 5):
        drawing.line("grid", scale(value), 8, scale(value), bottom)
        drawing.text("mid", scale(value), bottom + 17, text)
    if scale.low < 0 < scale.high:
        drawing.line("zero", scale(0), 8, scale(0), bottom)
    middles = 8 + LINE * (np.arange(len(lines)) + 0.5)
    if linked:
        values = np.array([line.marks[0][1].value for line in lines])
        is_finite = np.isfinite(values)
        drawing.path("link", scale(values[is_finite]), middles[is_finite])
    for line, middle in zip(lines, middles, strict=True):
        texts = wrapped(line.name, room - 10)
        for k, text in enumerate(texts):
            drawing.text("end", room - 8, middle + 4.5 + 14 * (k - (len(texts) - 1) / 2), text)
        if len(line.quantiles):
            _sideways(drawing, line.quantiles, scale, middle)
        offset = 5.5 if len(line.marks) > 1 else 0
        for (kind, size), sign in zip(line.marks, (-1, 1), strict=False):
            _mark(drawing, kind, size, scale, middle + sign * offset)
    return drawing


def _mark(drawing: Drawing, kind: str, size: ReportSize, scale: Scale, y: float) -> None:
    """A dot, diamond or square with its interval."""
    if np.isfinite(size.low) and np.isfinite(size.high):
        drawing.line(f"interval {kind}", scale(size.low), y, scale(size.high), y)
    if np.isfinite(size.value):
        drawing.mark(kind, scale(size.value), y)


def _sideways(drawing: Drawing, quantiles: Sequence[float], scale: Scale, y: float) -> None:
    """Single rows as a bar: middle half thick, middle 80 % thin."""
    for (low, high), half in (((0, 4), 2), ((1, 3), 6)):
        for kind, first, length in _halves(quantiles[low], quantiles[high], scale):
            drawing.rect(kind, first, y - half, length, 2 * half)


def _halves(low: float, high: float, scale: Scale) -> Iterator[tuple[str, float, float]]:
    """The parts of a bar below and above 0: kind, first pixel and length."""
    for kind, start, end in (("down", low, min(high, 0.0)), ("up", max(low, 0.0), high)):
        if start < end:
            yield kind, scale(start), scale(end) - scale(start)


def of_feature(feature: ReportFeature, least: float, width: float) -> Drawing:
    """The picture of a feature; its panel spans at least ``least``, so that noise looks small."""
    if feature.difference is not None:
        return of_difference(feature, width, least, *feature.difference)
    if feature.levels:
        return of_levels(feature, width, least)
    return with_room(partial(of_curve, feature, width, least))


def with_room(draw: Callable[[float], Drawing]) -> Drawing:
    """A drawing with a left margin as wide as the longest number beside it."""
    drawing = draw(LEFT)
    return draw(LEFT + drawing.overhang) if drawing.overhang else drawing


def of_difference(
    feature: ReportFeature, width: float, least: float, size: ReportSize, quantiles: Any
) -> Drawing:
    """Two levels: their difference on average, in groups, and in single rows."""
    lines = [Dot("all rows", (("average", size),))]
    lines += [
        Dot(group.rule, (("part", group.difference),))
        for group in feature.leaves
        if group.difference is not None
    ]
    if quantiles is not None:
        lines.append(Dot("single rows", (), quantiles))
    return dots(lines, width, (0.0, -least / 2, least / 2))


def of_levels(feature: ReportFeature, width: float, least: float) -> Drawing:
    """Levels with intervals, a line each."""
    curve = feature.curve
    sizes = map(ReportSize, curve.y, curve.low, curve.high)
    lines = [
        Dot(name, (("average", size),)) for name, size in zip(feature.levels, sizes, strict=True)
    ]
    drawing = dots(lines, width, _about(curve, least), linked=feature.ordered)
    drawing.places, drawing.along = np.asarray(8 + LINE * (np.arange(len(lines)) + 0.5)), "y"
    return drawing


def _about(curve: PictureCurve, least: float) -> FloatArray:
    """0, and the ends of a panel that spans ``least`` about the middle of a curve."""
    finite = curve.y[np.isfinite(curve.y)]
    middle = (finite.min() + finite.max()) / 2 if finite.size else 0.0
    return np.array([0.0, middle - least / 2, middle + least / 2])


def of_curve(feature: ReportFeature, width: float, least: float, left: float) -> Drawing:
    """A curve with its band; below it single rows, outcomes, and how many rows there are."""
    drawing = Drawing(width, 0.0)
    across = spanning(feature.curve.x, left, width - 12, room=0.0)
    drawing.places = across(feature.curve.x)
    _upper(drawing, feature, across, 10.0, least)
    bottom = 10.0 + ABOVE
    step = feature.windows.step if feature.windows else ""
    parts: tuple[tuple[Any, str, Callable[..., None], float], ...] = (
        (feature.windows, f"Change for single rows, +{step}", _strip, STRIP),
        (feature.outcome, "Observed (dots), predicted (line)", _outcomes, STRIP),
        (feature if len(feature.counts) else None, ROWS_TITLE, _counts, ROWS),
    )
    for shown, title, draw, height in parts:
        if shown:
            top = bottom + GAP
            drawing.text("b", across.start, top - 5, title)
            draw(drawing, shown, across, top)
            bottom = top + height
    drawing.height = bottom + 24
    drawing.line("axis", across.start, bottom, across.end, bottom)
    for value, text in across.ticks(7 if width > NARROW else 4, feature.line.feature_units):
        drawing.line("axis", across(value), bottom, across(value), bottom + 4)
        drawing.text("mid", across(value), bottom + 18, text)
    return drawing


def _upper(
    drawing: Drawing, feature: ReportFeature, across: Scale, top: float, least: float
) -> None:
    """The average, its band, and the curves of groups."""
    curve, *groups = (
        drawn(curve, feature.stretches)
        for curve in (feature.curve, *(group.curve for group in feature.leaves[:MAX_GROUPS]))
    )
    numbers = np.concatenate([_about(curve, least), curve.y, *(group.y for group in groups)])
    up = fair(numbers, [*curve.low, *curve.high], top + ABOVE, top)
    for stretch in feature.stretches:
        start, end = map(across, stretch)
        drawing.rect("few", start, top, end - start, ABOVE)
    _levels_of(drawing, up, across)
    drawing.band(curve, across, up)
    for number, group in enumerate(groups):
        drawing.curve(f"group g{number}", group.x, group.y, across, up)
    sure = reliable(curve.x, feature.stretches)
    drawing.curve("average", *_only(curve, sure), across, up)
    drawing.curve("average dots", *_only(curve, ~sure), across, up)


def drawn(curve: PictureCurve, stretches: Stretches) -> PictureCurve:
    """The curve without its ends where it is not known: a line there would be extrapolated."""
    sure = np.flatnonzero(reliable(curve.x, stretches)) if len(curve.x) else np.zeros(0, int)
    inside = slice(sure[0], sure[-1] + 2) if len(sure) else slice(None)
    return curve.take(inside)


def reliable(x: FloatArray, stretches: Stretches) -> NDArray[np.bool_]:
    """Whether the curve is to be relied on, by part between two of its points."""
    middles = (x[:-1] + x[1:]) / 2
    inside = [(left <= middles) & (middles <= right) for left, right in stretches]
    return ~np.any(inside, axis=0) if inside else np.ones(len(middles), bool)


def _only(curve: PictureCurve, shown: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
    """The points of a curve, with a gap in each part that is not to be shown."""
    gaps = np.flatnonzero(~shown) + 1
    between = (curve.x[:-1] + curve.x[1:]) / 2
    return np.insert(curve.x, gaps, between[gaps - 1]), np.insert(curve.y, gaps, np.nan)


def _levels_of(drawing: Drawing, up: Scale, across: Scale, most: int = 6) -> None:
    """Horizontal lines of a grid, with numbers to the left."""
    for value, text in up.ticks(most):
        kind = "zero" if abs(value) < 1e-9 * (up.high - up.low) else "grid"
        drawing.line(kind, across.start, up(value), across.end, up(value))
        drawing.text("end", across.start - 6, up(value) + 4.5, text)


def _strip(drawing: Drawing, windows: Windows, across: Scale, top: float) -> None:
    """Changes of single rows: middle half thick, middle 80 % thin, average as a dot."""
    numbers = [0.0, *windows.quantiles[:, [1, 3]].ravel(), *windows.mean]
    up = fair(numbers, windows.quantiles.ravel(), top + STRIP, top + 6)
    _levels_of(drawing, up, across, 4)
    changes = np.clip(windows.quantiles, up.low, up.high)
    for left, right, quantiles in zip(windows.left, windows.right, changes, strict=True):
        start, end = across(left), across(right)
        middle, half = (start + end) / 2, min((end - start) * 0.35, 7.0)
        for (low, high), part in (((0, 4), max(half / 3, 0.6)), ((1, 3), half)):
            for kind, first, length in _halves(quantiles[low], quantiles[high], up):
                drawing.rect(kind, middle - part, first, 2 * part, length)
    drawing.points(across((windows.left + windows.right) / 2), up(windows.mean))


def _outcomes(
    drawing: Drawing, outcome: Mapping[str, FloatArray], across: Scale, top: float
) -> None:
    """Means of the outcomes as dots, of the predictions as a line."""
    middle = (outcome["place_left"] + outcome["place_right"]) / 2
    up = spanning([*outcome["observed"], *outcome["predicted"]], top + STRIP, top + 6, room=0.05)
    _levels_of(drawing, up, across, 4)
    drawing.curve("average thin", middle, outcome["predicted"], across, up)
    drawing.points(across(middle), up(outcome["observed"]))


def _counts(drawing: Drawing, feature: ReportFeature, across: Scale, top: float) -> None:
    """Numbers of rows in columns of one width, those of a bin spread evenly over it."""
    edges, below = feature.curve.x, np.append(0.0, np.cumsum(feature.counts))
    ends = np.linspace(edges[0], edges[-1], COLUMNS + 1)
    share = np.diff(np.interp(ends, edges, below))
    height = np.where(share > 0, np.maximum(ROWS * share / share.max(), 0.8), 0.0)
    drawing.steps("count", across(ends), top + ROWS - height, top + ROWS)


def of_group(
    group: Group, feature: ReportFeature, number: int, width: float, left: float
) -> Drawing:
    """The curve of a group beside that of all rows."""
    top, height = 8.0, 120.0
    drawing = Drawing(width, top + height + 24)
    curves = [feature.curve, *(leaf.curve for leaf in feature.leaves)]
    across = spanning(feature.curve.x, left, width - 10, room=0.0)
    numbers = np.concatenate([[0.0], *(curve.y for curve in curves)])
    band = np.concatenate([end for curve in curves for end in (curve.low, curve.high)])
    up = fair(numbers, band, top + height, top)
    _levels_of(drawing, up, across, 4)
    curve = group.curve
    drawing.band(curve, across, up)
    drawing.curve("average thin", feature.curve.x, feature.curve.y, across, up)
    drawing.curve(f"group g{number % MAX_GROUPS}", curve.x, curve.y, across, up)
    for value, text in across.ticks(4, feature.line.feature_units):
        drawing.text("mid", across(value), top + height + 17, text)
    return drawing


def mark_of(kind: str, number: int = 0) -> Drawing:
    """A mark of the key."""
    drawing = Drawing(30, 16)
    if kind == "band":
        drawing.path("band", (0, 30, 30, 0), (2, 2, 14, 14), closed=True)
        drawing.line("average", 0, 8, 30, 8)
    elif kind == "group":
        drawing.line(f"group g{number}", 0, 8, 30, 8)
    elif kind == "strip":
        for half, height in ((1.5, 8), (5, 5)):
            drawing.rect("up", 15 - half, 8 - height, 2 * half, height)
            drawing.rect("down", 15 - half, 8, 2 * half, height - 1)
    elif kind == "few":
        drawing.rect("few", 0, 0, 30, 16)
        drawing.line("average dots", 0, 8, 30, 8)
    elif kind == "small":
        drawing.rect("small", 0, 0, 30, 16)
    elif kind == "across":
        _sideways(drawing, (-13.0, -6.0, 0.0, 6.0, 13.0), Scale(-15, 15, 0, 30), 8)
    else:
        scale = Scale(0, 30, 0, 30)
        _mark(drawing, kind, ReportSize(15, 3, 27), scale, 8)
    return drawing


# --- captions, keys and descriptions for those who do not see the pictures ------------------------


PANEL = 300.0
MAX_VALUES = 7
Key = tuple[tuple[Markup, str], ...]


@dataclass(frozen=True)
class Picture:
    """A picture in two widths, of which the style sheet shows one; or in one width.

    That of a notebook has its description in it, and no anchor.
    """

    caption: str
    wide: Markup
    key: Key = ()
    anchor: str = ""
    number: int = 0
    alt: str = ""
    narrow: Markup | None = None


def _picture(
    anchor: str, number: int, draw: Callable[[float], Drawing], caption: str, alt: str, key: Key
) -> Picture:
    wide, narrow = draw(WIDE).markup("wide", anchor), draw(NARROW).markup("narrow", anchor)
    return Picture(caption, wide, key, anchor, number, alt, narrow)


def _panel(anchor: str, drawing: Drawing, caption: str, alt: str) -> Picture:
    """A small picture, which has no number."""
    return Picture(caption, drawing.markup("panel", anchor), anchor=anchor, alt=alt)


def rows_text(n_rows: int) -> str:
    """A number of rows."""
    return f"{n_rows:,} row{'' if n_rows == 1 else 's'}"


def overview_picture(
    content: ReportContent, features: tuple[ReportFeature, ...], *, in_notebook: bool = False
) -> Picture:
    """How much each feature moves the predictions."""
    first = " ".join(
        f"{line.label}: average {number_text(line.importance)}, "
        f"rows {number_text(line.row_spread)}."
        for line in (feature.line for feature in features[:MAX_VALUES])
    )
    chart = content.in_units(f"Dot chart of {count_text(len(features), 'feature')}")
    alt = f"{chart}. {first} All values are in the table below."
    texts = {
        "average": "on average: standard deviation of the average curve over the rows",
        "rows": "single rows: how far their curves are from the average curve",
        "small": f"below {content.least}: hardly matters",
    }
    key = tuple((mark_of(kind).swatch(), text) for kind, text in texts.items())
    caption = (
        f"{content.in_units('How much each feature moves the predictions')}: on average, and "
        f"differently for single rows, with {percent(content.level)} intervals."
    )
    draw = partial(overview, features, content.threshold)
    if in_notebook:
        return Picture(caption, draw(WIDE).named("wide", alt), key)
    return _picture("overview", 1, draw, caption, alt, key)


def feature_picture(feature: ReportFeature, number: int, content: ReportContent) -> Picture:
    """The effect of one feature."""
    caption = _curve_caption(feature, content)
    if feature.difference is not None:
        first, second = feature.levels
        caption = (
            f"Output at {second} less that at {first}: effect of {feature.shown} on "
            f"{content.shown}."
        )
    draw, alt = partial(of_feature, feature, 4 * content.threshold), described(feature, content)
    return _picture(f"{feature.anchor}-picture", number, draw, caption, alt, key_of(feature))


def _curve_caption(feature: ReportFeature, content: ReportContent) -> str:
    return (
        f"Effect of {feature.shown} on {content.shown} (accumulated local effects). 0 is the "
        f"average prediction."
    )


def largest_picture(feature: ReportFeature, content: ReportContent) -> Picture:
    """The average curve of a feature alone, before the first table."""
    alone = replace(feature, windows=None, outcome={}, groups=())
    anchor = f"{feature.anchor}-first"
    drawing = of_feature(alone, 4 * content.threshold, NARROW)
    drawing.places = drawing.places[:0]
    shape = feature.line.shape
    caption = (f"{feature.shown}: {shape}" if shape else feature.shown) + content.effect_in
    return _panel(anchor, drawing, typeset(caption), described(alone, content))


def key_of(feature: ReportFeature) -> Key:
    """The marks that a picture has, and what they mean."""
    average = f"average of all rows, with its {feature.band}"
    bars = "single rows: middle half (wide bar), middle 80 % (narrow bar)"
    if feature.levels:
        key = [(mark_of("average"), average)]
        if feature.difference and any(group.difference for group in feature.leaves):
            key.append((mark_of("part"), "groups of rows"))
        if feature.difference is not None and feature.difference[1] is not None:
            key.append((mark_of("across"), bars))
    else:
        key = [(mark_of("band"), average)]
        for number, group in enumerate(feature.leaves[:MAX_GROUPS]):
            key.append((mark_of("group", number), f"{group.rule} ({rows_text(group.n_rows)})"))
        if feature.stretches:
            few = "shape not known: few rows, or none; not drawn at an end"
            key.append((mark_of("few"), few))
        if feature.windows:
            colours = "blue where the output rises, orange where it falls; the dot is the average"
            key.append((mark_of("strip"), f"{bars}; {colours}"))
    return tuple((mark.swatch(), text) for mark, text in key)


def described(feature: ReportFeature, content: ReportContent) -> str:
    """The picture in words: some values, the width of the band, the highest place of groups."""
    curve = feature.curve if feature.levels else drawn(feature.curve, feature.stretches)
    finite = np.flatnonzero(np.isfinite(curve.y))
    feature = replace(feature, curve=curve)
    places, n_values = places_of(feature), min(len(finite), MAX_VALUES)
    chosen = finite[np.linspace(0, len(finite) - 1, n_values).round().astype(int)]
    values = "; ".join(f"{places[k]}: {number_text(curve.y[k])}" for k in chosen)
    half = (curve.high - curve.low) / 2
    width = ""
    if np.isfinite(half).any():
        width = f"Widest half-width of the {feature.band}: {number_text(float(np.nanmax(half)))}. "
    kind = "Dot chart" if feature.levels else "Line chart"
    if feature.windows and not feature.levels:
        kind += " with the changes of single rows below it"
    first, last = (places[0], places[-1]) if places else ("", "")
    groups = "".join(_group_alt(group, feature) for group in feature.leaves[:MAX_GROUPS])
    return (
        f"{kind} over {feature.line.label} from {first} to {last}. Average effect on "
        f"{content.shown}: {values or 'not known'}. {width}{groups}All values are in the table "
        f"below."
    )


def places_of(feature: ReportFeature) -> list[str]:
    """The points of the curve: levels, or places on the axis."""
    if feature.levels or not len(feature.curve.x):
        return list(feature.levels)
    return [typeset(text) for text in axis_texts(feature.curve.x, feature.line.feature_units)]


def _group_alt(group: Group, feature: ReportFeature) -> str:
    y = group.curve.y
    if not np.isfinite(y).any():
        return ""
    highest = int(np.nanargmax(y))
    places = np.append(feature.curve.x, group.curve.x[highest])
    place = typeset(axis_texts(places, feature.line.feature_units)[-1])
    return f"Group {group.rule}: highest {number_text(y[highest])} at {place}. "


def small_feature(feature: ReportFeature, content: ReportContent) -> Picture:
    """The effect of one feature, for a notebook."""
    drawn = of_feature(feature, 4 * content.threshold, NARROW)
    alt = described(feature, content)
    return Picture(_curve_caption(feature, content), drawn.named("narrow", alt))


def group_panels(feature: ReportFeature, content: ReportContent) -> tuple[Picture, ...]:
    """A small picture for each group of rows."""
    panels, places = [], places_of(feature)
    for number, group in enumerate(feature.leaves):
        y = group.curve.y
        if not np.isfinite(y).any():
            continue
        anchor = f"{feature.anchor}-group-{number}"
        highest, lowest = (
            f"{number_text(float(y[k]))} at {places[k]}" for k in (np.nanargmax(y), np.nanargmin(y))
        )
        alt = f"{content.in_units('Line chart')}. Highest {highest}, lowest {lowest}."
        rows = f"{rows_text(group.n_rows)}){content.effect_in}"
        caption = f"{group.rule} ({rows}. The thin line is the average of all rows."
        drawing = with_room(partial(of_group, group, feature, number, PANEL))
        panels.append(_panel(anchor, drawing, caption, alt))
    return tuple(panels)
