"""Pictures as SVG: lines, bars and texts on scales, with classes that the style sheet colours.

Colours are not in the pictures, so that they follow light, dark, print and high contrast. A picture
of matplotlib takes 0.3 s and 100 kB at each of the two widths; these take 2 ms and 3 to 10 kB.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from markupsafe import Markup
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from rhale_stats.answers.numbers import FIVE_DIGITS
from rhale_stats.arguments.times import are_dates, date_texts
from rhale_stats.reporting.text import MINUS

FloatArray = NDArray[np.float64]
# Average width of a letter at the font size of the pictures, measured in sans-serif fonts.
LETTER = 7.8
CUT = "…"
# Steps of ticks that people count in.
STEPS = [1, 2, 2.5, 5, 10]


@dataclass(frozen=True)
class Scale:
    """A straight scale from numbers to pixels."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Pixel of a number."""
        share = (value - self.low) / (self.high - self.low)
        return float(self.start + share * (self.end - self.start))

    def ticks(self, most: int, units: str = "") -> list[tuple[float, str]]:
        """Round numbers on the scale, at most ``most`` from 3 on, with their texts."""
        locator = MaxNLocator(max(most - 1, 1), steps=STEPS)
        values = np.asarray(locator.tick_values(self.low, self.high), float)
        slack = 1e-9 * (self.high - self.low)
        values = values[(values >= self.low - slack) & (values <= self.high + slack)]
        return list(zip(values.tolist(), tick_texts(values, units), strict=True))


def spanning(values: Iterable[float], start: float, end: float, *, room: float = 0.05) -> Scale:
    """A scale that holds these numbers, with some room at both ends."""
    finite = np.asarray([value for value in values if np.isfinite(value)], float)
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 1.0)
    if low == high:
        half = abs(low) / 2 or 0.5
        low, high = low - half, high + half
    spare = room * (high - low)
    return Scale(float(low - spare), float(high + spare), start, end)


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


def wrapped(text: str, room: float) -> list[str]:
    """A text in one row or two of a width in pixels, cut beyond."""
    most = max(int(room / LETTER), 2)
    return textwrap.wrap(text, most, max_lines=2, placeholder=CUT, break_on_hyphens=False) or [""]


def runs(present: NDArray[np.bool_]) -> list[slice]:
    """The stretches of positions without a gap."""
    ends = np.flatnonzero(np.diff(np.concatenate([[False], present, [False]]).astype(int)))
    return [slice(int(a), int(b)) for a, b in zip(ends[::2], ends[1::2], strict=True)]


def _at(value: float) -> str:
    """A pixel, with one decimal at most."""
    return f"{value:.1f}".removesuffix(".0")


class Drawing:
    """A picture of a width and height in pixels; ``kind`` is the class of each mark."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self._parts: list[str] = []

    def line(self, kind: str, x1: float, y1: float, x2: float, y2: float) -> None:
        """A straight line."""
        self._parts.append(f'<path class="{kind}" d="M{_at(x1)} {_at(y1)}L{_at(x2)} {_at(y2)}"/>')

    def rect(self, kind: str, x: float, y: float, width: float, height: float) -> None:
        """A bar, also if an end comes before the start."""
        x, y = min(x, x + width), min(y, y + height)
        self._parts.append(
            f'<rect class="{kind}" x="{_at(x)}" y="{_at(y)}" width="{_at(abs(width))}" '
            f'height="{_at(abs(height))}"/>'
        )

    def path(
        self, kind: str, points: Sequence[tuple[float, float]], *, closed: bool = False
    ) -> None:
        """A line through points, or the area within them."""
        if points:
            line = "L".join(f"{_at(x)} {_at(y)}" for x, y in points)
            self._parts.append(f'<path class="{kind}" d="M{line}{"Z" if closed else ""}"/>')

    def circle(self, kind: str, x: float, y: float, radius: float) -> None:
        """A dot."""
        self._parts.append(f'<circle class="{kind}" cx="{_at(x)}" cy="{_at(y)}" r="{radius:g}"/>')

    def square(self, kind: str, x: float, y: float, half: float) -> None:
        """A square around a point."""
        self.rect(kind, x - half, y - half, 2 * half, 2 * half)

    def diamond(self, kind: str, x: float, y: float, half: float) -> None:
        """A square that stands on a corner."""
        corners = [(x - half, y), (x, y - half), (x + half, y), (x, y + half)]
        self.path(kind, corners, closed=True)

    def text(self, kind: str, x: float, y: float, text: str) -> None:
        """A text; ``kind`` says whether x is its start, middle or end."""
        named = f' class="{kind}"' if kind else ""
        self._parts.append(f'<text{named} x="{_at(x)}" y="{_at(y)}">{escape(text)}</text>')

    def curve(self, kind: str, x: FloatArray, y: FloatArray, across: Scale, up: Scale) -> None:
        """A line through the values that are known."""
        for run in runs(np.isfinite(x) & np.isfinite(y)):
            points = zip(x[run], y[run], strict=True)
            self.path(kind, [(across(a), up(b)) for a, b in points])

    def area(
        self,
        kind: str,
        x: FloatArray,
        ends: tuple[FloatArray, FloatArray],
        scales: tuple[Scale, Scale],
    ) -> None:
        """The area between two curves."""
        (low, high), (across, up) = ends, scales
        for run in runs(np.isfinite(x) & np.isfinite(low) & np.isfinite(high)):
            upper = [(across(a), up(b)) for a, b in zip(x[run], high[run], strict=True)]
            back = [(across(a), up(b)) for a, b in zip(x[run], low[run], strict=True)]
            self.path(kind, upper + back[::-1], closed=True)

    def markup(self, kind: str, caption: str, described: str) -> Markup:
        """The picture for HTML, named by the elements of these two ids."""
        box = f"0 0 {_at(self.width)} {_at(self.height)}"
        return Markup(
            f'<svg class="pic {kind}" role="img" viewBox="{box}" '
            f'aria-labelledby="{caption}" aria-describedby="{described}" focusable="false">'
            f"{''.join(self._parts)}</svg>"
        )

    def named(self, kind: str, name: str) -> Markup:
        """The picture for HTML, with its name in it."""
        box = f"0 0 {_at(self.width)} {_at(self.height)}"
        return Markup(
            f'<svg class="pic {kind}" role="img" viewBox="{box}" aria-label="{escape(name)}" '
            f'focusable="false">{"".join(self._parts)}</svg>'
        )

    def swatch(self) -> Markup:
        """The picture as a mark of the key, which is named by the text beside it."""
        return Markup(
            f'<svg class="swatch" viewBox="0 0 {_at(self.width)} {_at(self.height)}" '
            f'aria-hidden="true" focusable="false">{"".join(self._parts)}</svg>'
        )
