"""What generic functions do with local effects."""

from __future__ import annotations

from rhale_stats import display
from rhale_stats.kinds import LOCAL, Methods

METHODS: Methods = {LOCAL: {"show": display._local}}
