"""Progress bars: when they appear, and what they say."""

from __future__ import annotations

from typing import Any

from tqdm import tqdm

# Seconds after which a progress bar appears.
PROGRESS_DELAY = 2.0


def progress_bar(
    total: int, what: str, unit: str, *, progress: bool, scale: bool = False
) -> tqdm[Any]:
    """A bar of so many units, with their rate; it appears if the work takes long, then goes.

    Large numbers of units are shown as thousands or millions with ``scale``.
    """
    return tqdm(
        total=total,
        desc=what,
        unit=unit,
        unit_scale=scale,
        delay=PROGRESS_DELAY,
        disable=not progress,
        leave=False,
    )
