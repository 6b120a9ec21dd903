"""What generic functions do with effects in bins, and with their sizes."""

from __future__ import annotations

from rhale_stats import display, effects, hypotheses, inference, resampling, summaries
from rhale_stats.kinds import EFFECT, SIZES, Methods

METHODS: Methods = {
    EFFECT: {
        "std_error": inference.std_error,
        "vcov": inference.vcov,
        "confint": inference.confint,
        "confband": inference.confband,
        "bootstrap": resampling.bootstrap,
        "wald_test": hypotheses.wald_test,
        "compare": hypotheses.compare,
        "predict": effects.predict,
        "tidy": summaries.tidy,
        "glance": summaries.glance,
        "summary": summaries.summary,
        "show": display._effect,
    },
    SIZES: {"tidy": summaries._tidy_sizes, "summary": summaries._sizes_summary},
}
