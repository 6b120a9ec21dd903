"""What generic functions do with surfaces, and with differences of two."""

from __future__ import annotations

from rhale_stats import display, second_order_inference, second_order_tests, summaries, surface_data
from rhale_stats.kinds import SURFACE, SURFACE_DIFFERENCE, Methods

METHODS: Methods = {
    SURFACE: {
        "std_error": second_order_inference.std_error,
        "vcov": second_order_inference.vcov,
        "confint": second_order_inference.confint,
        "confband": second_order_inference.confband,
        "bootstrap": second_order_inference.bootstrap,
        "wald_test": second_order_tests.wald_test,
        "compare": second_order_tests.compare,
        "predict": surface_data.predict,
        "tidy": second_order_inference.tidy,
        "glance": second_order_inference.glance,
        "summary": second_order_inference.summary,
        "show": display._surface,
    },
    SURFACE_DIFFERENCE: {
        "tidy": second_order_tests.tidy,
        "glance": summaries._glance_test,
        "summary": summaries._test_summary,
        "show": display._test,
    },
}
