"""What generic functions do with results of several models."""

from __future__ import annotations

from rhale_stats.inference import shown
from rhale_stats.schema.kinds import ENSEMBLE, Methods

METHODS: Methods = {ENSEMBLE: {"show": shown.replicates_page}}
