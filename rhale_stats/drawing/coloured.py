"""Colours of rows by another column: shades for numbers, a colour each for few levels."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from numpy.typing import ArrayLike, NDArray

from rhale_stats.drawing.marks import OURS

# Levels with a colour of their own; shades of numbers, dark to light, also in grey.
MAX_LEVELS, SHADES = 4, "viridis"
OTHERS = "others"
MISSING_COLOUR = (0.6, 0.6, 0.6, 1.0)


class RowColours(NamedTuple):
    """Colours (row, 4), and what says what they mean: levels, or the ends of a scale."""

    colours: NDArray[np.float64]
    name: str
    levels: dict[str, Any]
    ends: tuple[float, float] | None

    def explain(self, panel: Axes) -> None:
        """Add entries of the legend, or a scale beside the panel."""
        for level, colour in self.levels.items():
            panel.plot(
                [], [], color=colour, linewidth=2, label=f"{self.name} {level}".strip(), gid=OURS
            )
        if self.ends is not None:
            scale = ScalarMappable(Normalize(*self.ends), SHADES)
            panel.figure.colorbar(scale, ax=panel, label=self.name)


def coloured(hue: ArrayLike, n_rows: int) -> RowColours:
    """Colours of rows by a column: a Series with its name, or an array."""
    array = np.asarray(hue)
    if array.shape != (n_rows,):
        raise ValueError(
            f"hue must have one value for each of the {n_rows} rows; got shape {array.shape}."
        )
    values = hue if isinstance(hue, pd.Series) else pd.Series(array)
    name = "" if values.name is None else str(values.name)
    number = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    if number and values.nunique() > MAX_LEVELS:
        x = values.to_numpy(dtype=float, na_value=np.nan)
        ends = (float(np.nanmin(x)), float(np.nanmax(x)))
        shades = sns.color_palette(SHADES, as_cmap=True)(Normalize(*ends)(np.nan_to_num(x)))
        shades[np.isnan(x)] = MISSING_COLOUR
        return RowColours(np.asarray(shades), name, {}, ends)
    # The most frequent levels have a colour of their own.
    text = values.astype(object).where(values.notna(), "missing").map(str)
    by_frequency = list(text.value_counts().index)
    with_colour = sorted(
        by_frequency if len(by_frequency) <= MAX_LEVELS else by_frequency[: MAX_LEVELS - 1]
    )
    palette = [(*colour, 1.0) for colour in sns.color_palette("colorblind", MAX_LEVELS)]
    levels: dict[str, Any] = dict(zip(with_colour, palette, strict=False))
    if len(by_frequency) > MAX_LEVELS:
        levels[OTHERS] = MISSING_COLOUR
    colours = np.array([levels.get(level, MISSING_COLOUR) for level in text])
    return RowColours(colours, name and f"{name}:", levels, None)
