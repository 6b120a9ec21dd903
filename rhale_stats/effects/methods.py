"""What generic functions do with effects in bins, and with their sizes."""

from __future__ import annotations

from rhale_stats.effects import replicates_in_chunks, shown, values
from rhale_stats.effects.comparison import compare
from rhale_stats.effects.errors import std_error, vcov
from rhale_stats.effects.hypotheses import wald_test
from rhale_stats.effects.intervals import confband, confint
from rhale_stats.effects.printed import summary
from rhale_stats.effects.sizes import effect_sizes
from rhale_stats.effects.sizes_tables import sizes_summary, tidy_sizes
from rhale_stats.effects.tables import glance, tidy
from rhale_stats.schema.kinds import EFFECT, SIZES, Methods

METHODS: Methods = {
    EFFECT: {
        "std_error": std_error,
        "vcov": vcov,
        "confint": confint,
        "confband": confband,
        "bootstrap": replicates_in_chunks.bootstrap,
        "wald_test": wald_test,
        "compare": compare,
        "predict": values.predict,
        "effect_sizes": effect_sizes,
        "tidy": tidy,
        "glance": glance,
        "summary": summary,
        "show": shown.effect_page,
    },
    SIZES: {"tidy": tidy_sizes, "summary": sizes_summary},
}
