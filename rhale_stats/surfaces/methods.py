"""What generic functions do with surfaces, and with differences of two."""

from __future__ import annotations

from rhale_stats.inference import tests
from rhale_stats.inference.shown import test_page
from rhale_stats.schema.kinds import SURFACE, SURFACE_DIFFERENCE, Methods
from rhale_stats.surfaces import comparison, hypotheses, values
from rhale_stats.surfaces.inference import confband, confint, std_error, vcov
from rhale_stats.surfaces.replicates import bootstrap
from rhale_stats.surfaces.shown import surface_page
from rhale_stats.surfaces.tables import glance, summary, tidy

METHODS: Methods = {
    SURFACE: {
        "std_error": std_error,
        "vcov": vcov,
        "confint": confint,
        "confband": confband,
        "bootstrap": bootstrap,
        "wald_test": hypotheses.wald_test,
        "compare": comparison.compare,
        "predict": values.predict,
        "tidy": tidy,
        "glance": glance,
        "summary": summary,
        "show": surface_page,
    },
    SURFACE_DIFFERENCE: {
        "tidy": comparison.tidy,
        "glance": tests.glance,
        "summary": tests.summary,
        "show": test_page,
    },
}
