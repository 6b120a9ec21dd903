"""Variables of averages over the rows."""

from __future__ import annotations

from rhale_stats.schema.tables.units import SE_PARTS, Table

TERM, OF_AVERAGE = ("term",), "output units, or these per feature unit"
AVERAGE_VARIABLES: Table = {
    "average": (TERM, "average over the rows", OF_AVERAGE),
    "average_se": (TERM, "standard error of the average", OF_AVERAGE),
    **{
        f"average_se_{part}": (TERM, f"standard error of the average, {origin}", OF_AVERAGE)
        for part, origin in SE_PARTS.items()
    },
    "average_df": (TERM, "degrees of freedom of the average", "1"),
    "average_cov": (
        ("term", "term_other"),
        "covariance of the averages",
        "products of the units of two averages",
    ),
    "average_ci": (
        ("term", "ci_bound"),
        "confidence interval of average over the rows",
        OF_AVERAGE,
    ),
    "p_value_adjusted": (TERM, "p-value, adjusted for the number of hypotheses", "1"),
    "p_equivalence": (TERM, "p-value of two one-sided tests of equivalence", "1"),
    "n_obs": ((), "rows", "rows"),
    "weight_share": ((), "share of the rows", "1"),
}
