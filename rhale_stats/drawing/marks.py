"""Legend texts and colours of the marks in plots."""

from __future__ import annotations

from rhale_stats.effects.bias import BIASED, LARGE, TOO_FEW

# Level of the intervals that plots compute if an effect has none.
LEVEL = 0.95
# Entries of the legend, column by column, all with two lines so that its rows are aligned.
CURVE, BIN = "average effect,\naccumulated", "average effect\nin the bin"
MISSING = "rows without a value,\nwith their interval"
BAND, BIN_SPREAD = "± heterogeneity\n(comonotone)", "± heterogeneity\nin the bin"
OWN_SPREAD = "± heterogeneity\nin bins of its own"
AT_LEVEL = "average effect\nat the level"
# Suffix of intervals that include only the sampling of rows.
GIVEN = ", model as given"
# Texts after the level of an interval.
CURVE_INTERVAL, BIN_INTERVAL = "interval, pointwise", "interval of the\naverage in the bin"
# Of intervals that hold the model, drawn light: the part of the rows, drawn dark within it.
ROWS_INTERVAL, BIN_ROWS = (
    "interval, rows alone,\nmodel as given",
    "interval in the bin,\nrows alone",
)
CURVE_BAND, BIN_BAND = (
    "band of the same,\nsimultaneous over the axis",
    "band of the bins,\nall at once",
)
VIOLIN = "local effects\nin the bin"
# Entries of `plots.bins`. More rows than this are drawn as cells, because points would merge.
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
# Entries of `plots.forest` and `plots.compare`.
ESTIMATE, REPLICATES, CHAIN = "estimate", "median of the replicates", "median of a chain"
EACH, ROWS_EACH = "interval of each feature:", "interval, rows alone:"
DIFFERENCE = "a less b"
# Entries of `plots.bias`, and its marks.
WITHIN, BIN_ERROR = "heterogeneity within,\nsquared", "bin error"
TOTAL, BIN_ERROR_SE = "their sum, the variance\nabout the effect", "± its standard error"
MARKS = {BIASED: "*", LARGE: "**", TOO_FEW: "×"}
# Entries of `plots.outcome`.
OBSERVED, PREDICTED = "observed, with the interval\nof observed less predicted", "predicted"
LEGEND = (
    *(CURVE, AT_LEVEL, BIN, BAND, BIN_SPREAD, OWN_SPREAD),
    *(DIFFERENCE, CURVE_INTERVAL, BIN_INTERVAL, ROWS_INTERVAL, BIN_ROWS),
    *(CURVE_BAND, BIN_BAND, VIOLIN),
    *(TOTAL, WITHIN, BIN_ERROR, BIN_ERROR_SE),
    *(POINTS, EDGES, LOSS, CHOSEN),
    *(MISSING,),
    *(OBSERVED, PREDICTED),
    *(ESTIMATE, REPLICATES, EACH, ROWS_EACH, CHAIN),
)
# What the lower panel draws in the way of the upper one: one entry says both.
SAME: dict[str, tuple[str, ...]] = {
    BIN: (CURVE,),
    BIN_INTERVAL: (CURVE_INTERVAL,),
    BIN_BAND: (CURVE_BAND,),
}
SAME |= {BIN_ROWS: (ROWS_INTERVAL,), VIOLIN: (OWN_SPREAD, BIN_SPREAD)}
# The entry of a curve, and of the spread, where they stand for the bins or their rows, too.
BOTH = {
    OWN_SPREAD: "± heterogeneity of the rows;\nshapes: their effects in a bin",
}
BOTH |= {BIN_SPREAD: BOTH[OWN_SPREAD]}
LEGEND_WIDTH = 40
# The gid of artists drawn by this package, in a figure that may hold others.
OURS = "rhale_stats"
# Minimum height of a panel in numerical errors, so that it does not magnify rounding.
ERRORS_SHOWN = 20
CONSTANT = "constant feature:\nno effect to show"
NO_RANGE = "no range that both curves have:\nno difference to show"
ONE_BIN = "one bin in\nevery replicate"
