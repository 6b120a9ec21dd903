"""The printed answer of an explanation: at most 40 lines of 100 characters."""

from __future__ import annotations

from textwrap import wrap

import numpy as np
import xarray as xr

from rhale_stats.answers.lines import Line, lines_of
from rhale_stats.answers.numbers import decimals_below, estimate, number, percent
from rhale_stats.answers.sentences import (
    answers_in,
    fit_text,
    main_points,
    rows_text,
    uncertainty_text,
)
from rhale_stats.printing.text import output_text

WIDTH, MOST_LINES = 100, 40
MOST_FEATURES, LEAST_FEATURES = 14, 5
MOST_CUT = 3
# Longest name of a feature, of a column with its drop, and of a shape.
NAME, BY, SHAPE = 24, 24, 22
MARK = " !"
SCALES = {1e3: "thousands", 1e6: "millions", 1e9: "billions", 1e-3: "thousandths"}
VERDICTS = {"yes": "yes", "hardly": "hardly", "cannot tell": "?"}
SHORT = {
    "cannot tell": "?",
    "goes up and down": "up and down",
    "no clear shape": "unclear",
}
# Columns: whether their cells are on the right, and blanks before them.
COLUMNS = {
    "": (False, 0),
    "average": (True, 2),
    "matters": (False, 1),
    "rows": (True, 2),
    "differ": (False, 1),
    "most by": (False, 2),
    " ": (True, 1),
    "shape": (False, 2),
}
# Columns of words by their position, and how narrow each may be; the first gives way first.
TIGHT = {7: 13, 5: 10, 0: 10}


def printed(tree: xr.DataTree, most_features: int = MOST_FEATURES) -> str:
    """The answer as text, with so many lines of its table."""
    answers = answers_in(tree)
    attrs, lines = {**answers.attrs, **tree.attrs}, lines_of(answers)
    out = [f"Explanation of {attrs.get('model', 'model')}: {output_text(answers)}"]
    facts = f"{rows_text(attrs)}, {len(lines)} feature{'' if len(lines) == 1 else 's'}."
    low, high = attrs.get("percentiles", (0, 100))
    if (low, high) != (0, 100):
        facts += f" Curves count over the inner {high - low:g} % of the rows of each."
    fit = fit_text(attrs)
    out += _wrapped(f"{facts} {fit}." if fit else facts)
    out.append("")
    for point in main_points(lines, attrs):
        out += _wrapped(f"* {point}", "  ")
    scale = _scale(lines[:most_features], float(str(attrs["delta"])))
    below = _wrapped(_legend(attrs, lines, scale), "  ") + _wrapped(uncertainty_text(attrs), "  ")
    cut = [one for one in str(attrs.get("cut", "")).splitlines() if one]
    if cut:
        out += _wrapped(
            f"Left out to keep to the budget of {attrs['budget']}: {'; '.join(cut)}.", "  "
        )
    hints = ['rs.report(e, "report.html")', "rs.tidy(e)", _plot_hint(lines[0].feature)]
    below += ["", "   ".join(one for one in hints if one)]
    # Heads, rules and a line for what is left out stand around the lines of the table.
    room = max(MOST_LINES - len(out) - len(below) - 5, LEAST_FEATURES)
    table = _table(lines, min(room, most_features), float(str(attrs["delta"])), scale)
    return "\n".join(line.rstrip() for line in [*out, "", *table, *below])


def _plot_hint(feature: str) -> str:
    """How to draw a feature, where the call fits in a line."""
    return f'rs.plot_effect(e["effect"], {feature!r})' if len(feature) <= NAME else ""


def _wrapped(text: str, indent: str = "") -> list[str]:
    clean = "".join(one if one.isprintable() else " " for one in text)
    return wrap(clean, WIDTH, subsequent_indent=indent)


def _cut(text: str, most: int) -> str:
    clean = "".join(one if one.isprintable() else " " for one in text)
    if len(clean) <= most:
        return clean
    mark = MARK if clean.endswith(MARK) else ""
    return clean[: most - 1 - len(mark)].rstrip() + "…" + mark


def _cut_within(text: str, most: int) -> str:
    """A name cut in its middle: names often differ at their ends."""
    clean = "".join(one if one.isprintable() else " " for one in text)
    end = (most - 1) // 2
    return clean if len(clean) <= most else f"{clean[: most - 1 - end]}…{clean[-end:]}"


def _tried(lines: list[Line], delta: float, scale: float) -> list[list[str]] | None:
    """The cells with as many digits as there is room for, at last a tenth of what matters."""
    for how in ((2, 9), (1, 9), (1, decimals_below(delta / scale))):
        cells = _cells(lines, *how, scale)
        if _least_width(cells) <= WIDTH:
            return cells
    return None


def _scale(lines: list[Line], delta: float) -> float:
    """A power of a thousand in which numbers are shown, 1 where they fit without."""
    largest = max((max(one.importance, one.row_spread) for one in lines), default=0.0)
    if _tried(lines, delta, 1.0) is not None or not np.isfinite(largest) or largest <= 0:
        return 1.0
    return float(1000.0 ** np.floor(np.log10(largest) / 3))


def _table(lines: list[Line], most: int, delta: float, scale: float) -> list[str]:
    shown = lines if len(lines) <= most else lines[:most]
    cells = _tried(shown, delta, scale)
    cells = _cells(shown, 0, 9, scale) if cells is None else cells
    heads, columns = list(COLUMNS), list(COLUMNS.values())
    blanks = sum(gap for _, gap in columns)
    widths = [max(len(row[at]) for row in [heads, *cells]) for at in range(len(heads))]
    # Where the table is too wide.
    for at, least in TIGHT.items():
        excess = sum(widths) + blanks - WIDTH
        widths[at] -= int(np.clip(excess, 0, max(widths[at] - least, 0)))
    cuts = [_cut_within if at in (0, len(heads) - 3) else _cut for at in range(len(heads))]
    rule = "-" * min(sum(widths) + blanks, WIDTH)

    def text(row: list[str]) -> str:
        padded = (
            " " * gap + (cell.rjust(width) if to_right else cut(cell, width).ljust(width))
            for cell, width, (to_right, gap), cut in zip(row, widths, columns, cuts, strict=True)
        )
        return "".join(padded).rstrip()

    out = [text(heads), rule, *map(text, cells)]
    if len(shown) < len(lines):
        rest = lines[len(shown) :]
        out.append(f"… {len(rest)} more, the largest moves {number(rest[0].movement)}: rs.tidy(e)")
    return [*out, rule]


def _cells(lines: list[Line], digits: int, at_most: int, scale: float) -> list[list[str]]:
    """Texts of the lines, with so many digits of a half-width; for 0 without intervals."""

    def size(value: float, ends: tuple[float, float]) -> str:
        value, ends = value / scale, (ends[0] / scale, ends[1] / scale)
        if not digits:
            return number(value)
        return estimate(value, ends, short=True, digits=digits, at_most=at_most)

    return [
        [
            _cut_within(one.label, NAME),
            size(one.importance, one.importance_ci),
            VERDICTS[one.matters],
            size(one.row_spread, one.row_spread_ci),
            VERDICTS[one.rows_differ],
            _cut_within(one.split_by, BY),
            percent(one.split_drop) if one.split_by else "",
            _cut(_short(one.shape), SHAPE) + (MARK if one.unreliable else ""),
        ]
        for one in lines
    ]


def _least_width(cells: list[list[str]]) -> int:
    """Width of the table with columns of words as narrow as they may be."""
    widths = [max(len(row[at]) for row in [list(COLUMNS), *cells]) for at in range(len(COLUMNS))]
    least = [min(width, TIGHT.get(at, width)) for at, width in enumerate(widths)]
    return sum(least) + sum(gap for _, gap in COLUMNS.values())


def _short(shape: str) -> str:
    """A shape in few words, without where it turns."""
    words = shape.split(" (")[0]
    return SHORT.get(words, words.replace(", then", ","))


def _legend(attrs: dict[object, object], lines: list[Line], scale: float) -> str:
    units = str(attrs.get("output_units", ""))
    if scale != 1:
        power = SCALES.get(scale, f"{scale:.0e}")
        units = f"{power} of {units}" if units else power
    of = f", in {units}," if units else ""
    delta, matters = float(str(attrs["delta"])), float(str(attrs.get("matters", np.nan)))
    level = float(str(attrs.get("level", 0.95)))
    text = (
        f"average, rows: standard deviation{of} of the average curve over the rows, and of single "
        f"rows' curves around it, with {100 * level:g} % intervals. matters, differ: more than "
        f"{number(delta)}, {percent(matters)} of the standard deviation of the predictions; "
        f"?: cannot tell."
    )
    marked = [f"{one.label} ({one.unreliable})" for one in lines if one.unreliable]
    if marked:
        more = f"; {len(marked) - MOST_CUT} more" if len(marked) > MOST_CUT else ""
        text += f" !: not known everywhere: {'; '.join(marked[:MOST_CUT])}{more}."
    if attrs.get("missing"):
        text += f" Rows without a value are {attrs['missing']}."
    return text
