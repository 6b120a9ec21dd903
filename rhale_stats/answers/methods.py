"""What generic functions do with an explanation."""

from __future__ import annotations

from rhale_stats.answers.tables import show, summary, tidy
from rhale_stats.schema.kinds import EXPLANATION, Methods

METHODS: Methods = {EXPLANATION: {"tidy": tidy, "summary": summary, "show": show}}
