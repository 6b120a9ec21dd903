"""What generic functions do with H-statistics, and with differences of two."""

from __future__ import annotations

from rhale_stats.h_statistics import printed, shown, tables
from rhale_stats.h_statistics.comparison import compare
from rhale_stats.h_statistics.inference import bootstrap, confint, std_error
from rhale_stats.schema.kinds import H_DIFFERENCE, H_STATISTICS, Methods

METHODS: Methods = {
    H_STATISTICS: {
        "std_error": std_error,
        "confint": confint,
        "bootstrap": bootstrap,
        "compare": compare,
        "tidy": tables.tidy,
        "glance": tables.glance,
        "summary": printed.summary,
        "show": shown.h_statistics_page,
    },
    H_DIFFERENCE: {
        "tidy": tables.tidy_difference,
        "summary": printed.difference_summary,
        "show": shown.difference_page,
    },
}
