"""When a progress bar appears."""

from __future__ import annotations

# Seconds after which a progress bar appears.
PROGRESS_DELAY = 2.0
