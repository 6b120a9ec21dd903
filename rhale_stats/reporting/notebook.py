"""An explanation in a notebook: the answer, a picture and a table."""

from __future__ import annotations

import xarray as xr

from rhale_stats.answers.sentences import uncertainty_text
from rhale_stats.reporting.figures import small_feature, small_overview
from rhale_stats.reporting.page import ranking
from rhale_stats.reporting.reading import explained
from rhale_stats.reporting.report import rendered_part
from rhale_stats.reporting.words import Words
from rhale_stats.schema.layout import complete, each_result

# Features in the picture and the table, and those whose curves are drawn.
MAX_FEATURES, MAX_CURVES = 14, 4


def notebook_html(tree: xr.DataTree, text: str) -> str:
    """HTML for a notebook; ``text`` is shown where styles are not."""
    t = Words("en")
    content = explained(each_result(tree, complete), t)
    shown = content.features[:MAX_FEATURES]
    values = {
        "text": text,
        "head": text.partition("\n")[0],
        "about": content.about,
        "points": content.points,
        "picture": small_overview(content, shown, t),
        "table": ranking(content, shown, t),
        "curves": [
            {"headline": feature.headline, "picture": small_feature(feature, content, t)}
            for feature in shown[:MAX_CURVES]
        ],
        "sure": uncertainty_text(tree.attrs),
    }
    return rendered_part(values, t)
