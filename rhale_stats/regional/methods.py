"""What generic functions do with trees of regions, and with drops of pairs of columns."""

from __future__ import annotations

from rhale_stats.regional import shown
from rhale_stats.regional.printed import interactions_summary, trees_summary
from rhale_stats.regional.tables import glance_trees, tidy_interactions, tidy_trees
from rhale_stats.schema.kinds import INTERACTIONS, TREE, Methods

METHODS: Methods = {
    TREE: {
        "tidy": tidy_trees,
        "glance": glance_trees,
        "summary": trees_summary,
        "show": shown.trees_page,
    },
    INTERACTIONS: {
        "tidy": tidy_interactions,
        "summary": interactions_summary,
        "show": shown.interactions_page,
    },
}
