"""What generic functions do with averages."""

from __future__ import annotations

from rhale_stats.margins.tables import confint, page, summary, tidy, vcov
from rhale_stats.schema.kinds import AVERAGES, Methods

METHODS: Methods = {
    AVERAGES: {"confint": confint, "vcov": vcov, "tidy": tidy, "summary": summary, "show": page},
}
