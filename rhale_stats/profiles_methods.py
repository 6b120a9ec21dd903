"""What generic functions do with profiles."""

from __future__ import annotations

from rhale_stats import (
    display,
    profile_compare,
    profile_data,
    profile_inference,
    profile_tables,
    summaries,
)
from rhale_stats.kinds import PROFILE, Methods

METHODS: Methods = {
    PROFILE: {
        "std_error": profile_inference.std_error,
        "vcov": profile_inference.vcov,
        "confint": profile_inference.confint,
        "confband": profile_inference.confband,
        "bootstrap": profile_inference.bootstrap,
        "compare": profile_compare.compare,
        "predict": profile_data.predict,
        "tidy": profile_tables.tidy,
        "glance": profile_tables.glance,
        "summary": summaries._profile_summary,
        "show": display._profile,
    },
}
