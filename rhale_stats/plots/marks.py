"""What every mark of a picture means, and its colour."""

from __future__ import annotations

from rhale_stats.effects.bias import BIASED, LARGE, TOO_FEW

# Level of the intervals of `confint` where an effect comes without.
LEVEL = 0.95
# Entries of the legend, down its columns, all of two lines so that its rows are level.
CURVE, BIN = "average effect,\naccumulated", "average effect\nin the bin"
MISSING = "rows without a value,\nwith their interval"
BAND, BIN_SPREAD = "± heterogeneity\n(comonotone)", "± heterogeneity\nin the bin"
AT_LEVEL = "average effect\nat the level"
# Behind what is of the rows alone.
GIVEN = ", model as given"
# Behind their level.
CURVE_INTERVAL, BIN_INTERVAL = "interval, pointwise", "interval of the\naverage in the bin"
CURVE_BAND, BIN_BAND = (
    "band of the same,\nsimultaneous over the axis",
    "band of the bins,\nall at once",
)
VIOLIN = "local effects\nin the bin"
# Those of the picture of bins. With more rows than this points would merge; cells show them.
POINTS, WEIGHED, DENSITY = (
    "local effects",
    "local effects,\nthe larger the more weight",
    "local effects,\ndarker where more rows",
)
EDGES = "edges of bins"
LOSS, CHOSEN = "loss", "chosen:"
POINTS_DRAWN = 3000
# In place of a number that a feature does not have.
NO_VALUE, UNORDERED = "no value", "levels without an order"
# Those of the pictures of sizes and of differences.
ESTIMATE, REPLICATES, CHAIN = "estimate", "median of the replicates", "median of a chain"
EACH = "interval of each feature:"
DIFFERENCE = "a less b"
# Those of the picture of bias, and its marks.
WITHIN, BIN_ERROR = "heterogeneity within,\nsquared", "bin error"
TOTAL, BIN_ERROR_SE = "their sum, the variance\nabout the effect", "± its standard error"
MARKS = {BIASED: "*", LARGE: "**", TOO_FEW: "×"}
LEGEND = (
    *(CURVE, AT_LEVEL, BIN, BAND, BIN_SPREAD),
    *(DIFFERENCE, CURVE_INTERVAL, BIN_INTERVAL, CURVE_BAND, BIN_BAND, VIOLIN),
    *(TOTAL, WITHIN, BIN_ERROR, BIN_ERROR_SE),
    *(POINTS, EDGES, LOSS, CHOSEN),
    *(MISSING,),
    *(ESTIMATE, REPLICATES, EACH, CHAIN),
)
LEGEND_WIDTH = 40
# Marks what is ours in a figure that others may draw in too.
OURS = "rhale_stats"
# A panel shows at least so many times the numerical error, so that it never enlarges noise.
ERRORS_SHOWN = 20
CONSTANT = "constant feature:\nno effect to show"
NO_RANGE = "no range that both curves have:\nno difference to show"
ONE_BIN = "one bin in\nevery replicate"
