"""What generic functions do with H-statistics, and with differences of two."""

from __future__ import annotations

from rhale_stats import display, h_statistic_inference, h_statistic_tables, summaries
from rhale_stats.kinds import H_DIFFERENCE, H_STATISTICS, Methods

METHODS: Methods = {
    H_STATISTICS: {
        "std_error": h_statistic_inference.std_error,
        "confint": h_statistic_inference.confint,
        "bootstrap": h_statistic_inference.bootstrap,
        "compare": h_statistic_inference.compare,
        "tidy": h_statistic_tables.tidy,
        "glance": h_statistic_tables.glance,
        "summary": summaries._h_summary,
        "show": display._h_statistics,
    },
    H_DIFFERENCE: {
        "tidy": h_statistic_tables.tidy_difference,
        "summary": summaries._h_difference_summary,
        "show": display._h_difference,
    },
}
