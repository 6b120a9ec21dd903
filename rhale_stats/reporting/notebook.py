"""An explanation in a notebook: the answer, a picture and a table."""

from __future__ import annotations

import xarray as xr

from rhale_stats.answers.sentences import uncertainty_text
from rhale_stats.reporting.figures import small_feature, small_overview
from rhale_stats.reporting.page import ranking
from rhale_stats.reporting.reading import explained
from rhale_stats.reporting.rendered import rendered_part
from rhale_stats.reporting.words import Words

# Features in the picture and the table, and those whose curves are drawn.
MOST_FEATURES, MOST_CURVES = 14, 4


def notebook_html(tree: xr.DataTree, text: str) -> str:
    """HTML for a notebook; ``text`` is shown where styles are not."""
    t = Words("en")
    found = explained(tree, t)
    shown = found.features[:MOST_FEATURES]
    values = {
        "text": text,
        "head": text.partition("\n")[0],
        "about": found.about,
        "points": found.points,
        "picture": small_overview(found, shown, t),
        "table": ranking(found, shown, t),
        "curves": [
            {"headline": one.headline, "picture": small_feature(one, found, t)}
            for one in shown[:MOST_CURVES]
        ],
        "sure": uncertainty_text(tree.attrs),
    }
    return rendered_part(values, t)
