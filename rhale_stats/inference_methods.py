"""What generic functions do with results of tests."""

from __future__ import annotations

from rhale_stats import display, summaries
from rhale_stats.kinds import REPLICATES, TEST, Methods

METHODS: Methods = {
    TEST: {
        "tidy": summaries._tidy_test,
        "glance": summaries._glance_test,
        "summary": summaries._test_summary,
        "show": display._test,
    },
    REPLICATES: {"show": display._replicates},
}
