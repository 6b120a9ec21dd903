"""Contrast of the colours of reports, by WCAG 2.1."""

import pytest

from rhale_stats.reporting.report import DARK, LIGHT, PRINT, variables

TEXT = ("ink", "soft", "link")
MARKS = ("up", "down", "edge", "g0", "g1", "g2", "g3")
GROUNDS = {"light": LIGHT, "dark": DARK, "print": PRINT}


def luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [one / 12.92 if one <= 0.03928 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return sum(share * one for share, one in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def test_known_contrasts():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("ground", GROUNDS)
def test_texts_can_be_read(ground):
    """At least 7, the level AAA, on the page and on what stands out from it."""
    colours = GROUNDS[ground]
    for text in TEXT:
        for below in ("ground", "card"):
            assert contrast(colours[text], colours[below]) >= 7, (text, below)


@pytest.mark.parametrize("ground", GROUNDS)
def test_marks_can_be_seen(ground):
    """At least 4.5 where 3 is asked; also where the curve is not known, and within a band."""
    colours = GROUNDS[ground]
    for mark in MARKS:
        assert contrast(colours[mark], colours["ground"]) >= 4.5, mark
        assert contrast(colours[mark], colours["few"]) >= 3, mark
        assert contrast(colours[mark], colours["band"]) >= 2.9, mark
    assert contrast(colours["ink"], colours["band"]) >= 7


@pytest.mark.parametrize("ground", ["light", "dark"])
def test_up_and_down_differ_in_grey_or_place(ground):
    """They stand on two sides of 0: colour is not alone; both are as dark as each other or not."""
    colours = GROUNDS[ground]
    assert contrast(colours["up"], colours["down"]) < 1.6


def test_all_grounds_have_all_colours():
    assert LIGHT.keys() == DARK.keys() == PRINT.keys()
    assert variables({"a": "#fff", "b": "#000"}) == "--a: #fff; --b: #000;"
