"""What generic functions do with results of tests."""

from __future__ import annotations

from rhale_stats.inference import shown, tests
from rhale_stats.schema.kinds import REPLICATES, TEST, Methods

METHODS: Methods = {
    TEST: {
        "tidy": tests.tidy,
        "glance": tests.glance,
        "summary": tests.summary,
        "show": shown.test_page,
    },
    REPLICATES: {"show": shown.replicates_page},
}
