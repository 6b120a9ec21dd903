"""Lines, bars and texts on scales."""

import numpy as np
import pytest

from rhale_stats.reporting.pictures import (
    Drawing,
    Scale,
    runs,
    spanning,
    text_width,
    tick_texts,
    wrapped,
)
from rhale_stats.reporting.reading import PictureCurve


def test_scales_are_straight():
    scale = Scale(0.0, 10.0, 100.0, 200.0)
    assert [scale(value) for value in (0, 5, 10, -1)] == [100, 150, 200, 90]
    assert scale.ticks(6) == [(0, "0"), (2, "2"), (4, "4"), (6, "6"), (8, "8"), (10, "10")]


@pytest.mark.thorough
@pytest.mark.parametrize("most", [3, 4, 7])
@pytest.mark.parametrize("ends", [(0, 1), (-3, 17), (1e6, 1e6 + 3), (-1e-7, 2e-7), (5, 9e8)])
def test_ticks_are_few_and_on_the_scale(ends, most):
    ticks = Scale(*ends, 0, 100).ticks(most)
    assert 1 <= len(ticks) <= most
    assert all(ends[0] - 1e-9 <= value <= ends[1] * (1 + 1e-9) for value, _ in ticks)
    assert len({text for _, text in ticks}) == len(ticks)


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([-0.5, 0, 0.5], ["−0.5", "0.0", "0.5"]),
        ([0, 2.5], ["0.0", "2.5"]),
        ([1990, 2000], ["1990", "2000"]),
        ([0, 10000], ["0", "10,000"]),
        ([0, 2e7], ["0", "2e+07"]),
        ([1e-17, 1], ["0", "1"]),
        ([], []),
    ],
)
def test_texts_of_ticks(values, texts):
    assert tick_texts(np.array(values, dtype=float)) == texts


def test_ticks_of_dates():
    assert tick_texts(np.array([0.0, 366]), "days since 1970-01-01") == ["1970-01-01", "1971-01-02"]


def test_a_scale_without_numbers():
    assert spanning([np.nan], 0, 1)(0.5) == pytest.approx(0.5)
    scale = spanning([3.0, 3.0], 0, 100, room=0)
    assert scale(3.0) == 50


def test_long_names_are_cut_to_two_rows():
    assert wrapped("short", 100) == ["short"]
    found = wrapped("a very long name of a feature with many words", 80)
    assert len(found) == 2
    assert found[-1].endswith("…")
    assert all(len(one) <= 80 / 7 for one in found)
    assert wrapped("", 80) == [""]


def test_wide_letters_need_more_room():
    """A name of capitals was cut at the left edge of the picture."""
    assert text_width("WWWW") > text_width("Area") > text_width("area")
    assert len(wrapped("MW" * 10, 100)[0]) < len(wrapped("ae" * 10, 100)[0])


def test_gaps_part_a_curve():
    known = np.array([True, True, False, True])
    assert runs(known) == [slice(0, 2), slice(3, 4)]
    drawing = Drawing(10, 10)
    scale = Scale(0, 3, 0, 3)
    y = np.array([0.0, 1, np.nan, 2])
    drawing.curve("average", np.arange(4.0), y, scale, scale)
    drawing.band(PictureCurve(np.arange(4.0), y, y, y + 1), scale, scale)
    # A single point is no line.
    assert drawing.swatch().count("<path") == 3


def test_texts_are_escaped():
    drawing = Drawing(10, 10)
    drawing.text("mid", 1, 2, '<script>"&')
    assert "&lt;script&gt;&quot;&amp;" in drawing.named("wide", '"<')
    assert 'aria-label="&quot;&lt;"' in drawing.named("wide", '"<')
