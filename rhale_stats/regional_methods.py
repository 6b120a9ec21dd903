"""What generic functions do with trees of regions, and with drops of pairs of columns."""

from __future__ import annotations

from rhale_stats import display, summaries
from rhale_stats.kinds import INTERACTIONS, TREE, Methods

METHODS: Methods = {
    TREE: {
        "tidy": summaries.tidy_trees,
        "glance": summaries.glance_trees,
        "summary": summaries._regions_summary,
        "show": display._regions,
    },
    INTERACTIONS: {
        "tidy": summaries._tidy_interactions,
        "summary": summaries._interactions_summary,
        "show": display._interactions,
    },
}
