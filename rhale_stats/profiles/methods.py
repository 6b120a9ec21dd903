"""What generic functions do with profiles."""

from __future__ import annotations

from rhale_stats.profiles import comparison, printed, shown, tables, values
from rhale_stats.profiles.inference import confband, confint, std_error, vcov
from rhale_stats.profiles.replicates import bootstrap
from rhale_stats.schema.kinds import PROFILE, Methods

METHODS: Methods = {
    PROFILE: {
        "std_error": std_error,
        "vcov": vcov,
        "confint": confint,
        "confband": confband,
        "bootstrap": bootstrap,
        "compare": comparison.compare,
        "predict": values.predict,
        "tidy": tables.tidy,
        "glance": tables.glance,
        "summary": printed.summary,
        "show": shown.profile_page,
    },
}
