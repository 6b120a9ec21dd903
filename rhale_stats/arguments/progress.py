"""Progress bars: when they appear, and what they say."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from tqdm import tqdm

# Seconds after which a progress bar appears.
PROGRESS_DELAY = 2.0
# Whether bars are shown at all: no where a public function was called with progress=False.
BARS: ContextVar[bool] = ContextVar("bars", default=True)


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
        disable=not (progress and BARS.get()),
        leave=False,
    )
