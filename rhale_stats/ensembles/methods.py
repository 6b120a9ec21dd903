"""What generic functions do with results of several models."""

from __future__ import annotations

from rhale_stats.ensembles import printed, shown, tables, values
from rhale_stats.ensembles.comparison import compare
from rhale_stats.ensembles.errors import std_error, vcov
from rhale_stats.ensembles.hypotheses import wald_test
from rhale_stats.ensembles.intervals import confband, confint
from rhale_stats.ensembles.sizes import effect_sizes
from rhale_stats.schema.kinds import ENSEMBLE, Methods

METHODS: Methods = {
    ENSEMBLE: {
        "std_error": std_error,
        "vcov": vcov,
        "confint": confint,
        "confband": confband,
        "wald_test": wald_test,
        "compare": compare,
        "predict": values.predict,
        "effect_sizes": effect_sizes,
        "tidy": tables.tidy,
        "glance": tables.glance,
        "summary": printed.summary,
        "show": shown.ensemble_page,
    },
}
