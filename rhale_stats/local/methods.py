"""Methods of the generic functions for local effects."""

from __future__ import annotations

from rhale_stats.local import shown
from rhale_stats.schema.kinds import LOCAL, Methods

METHODS: Methods = {LOCAL: {"show": shown.local_page}}
