"""Colours of reports by their use, on light and dark ground; tests compute their contrast."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

LIGHT: Final = {
    "ground": "#ffffff",
    "ink": "#15181c",
    "soft": "#434b56",
    "rule": "#cfd5dc",
    "grid": "#e4e8ed",
    "band": "#cbd1d9",
    "edge": "#626b77",
    "up": "#0a5c9e",
    "down": "#a84d06",
    "link": "#0a4a86",
    "g0": "#00604f",
    "g1": "#75288a",
    "g2": "#7d5200",
    "g3": "#3744b8",
    "few": "#f4ead3",
    "small": "#edf0f3",
    "card": "#f5f7f9",
    "focus": "#0a4a86",
    "halo": "#ffd54a",
}
DARK: Final = {
    "ground": "#13161b",
    "ink": "#f1f3f6",
    "soft": "#bcc4ce",
    "rule": "#3b434e",
    "grid": "#2a3038",
    "band": "#434c58",
    "edge": "#9ba5b2",
    "up": "#78bbf7",
    "down": "#f4aa66",
    "link": "#90c7ff",
    "g0": "#50d3bb",
    "g1": "#dcaaec",
    "g2": "#e8c861",
    "g3": "#a9b8ff",
    "few": "#3a3220",
    "small": "#242a32",
    "card": "#1b2027",
    "focus": "#90c7ff",
    "halo": "#5b4a00",
}
# Paper is white, whatever the screen is.
PRINT: Final = {**LIGHT, "ink": "#000000", "soft": "#333333", "link": "#000000"}


def variables(colours: Mapping[str, str]) -> str:
    """Colours as variables of CSS."""
    return " ".join(f"--{name}: {value};" for name, value in colours.items())
