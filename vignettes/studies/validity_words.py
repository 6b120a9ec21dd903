"""The claims of the study of validity in words: what, about what, assuming what, and what else."""

from __future__ import annotations

from typing import NamedTuple


class Words(NamedTuple):
    """One claim: the call, what it is about, what it assumes, and what to use where it fails."""

    call: str
    target: str
    assumes: str
    instead: str
    is_test: bool = False


NORMAL_MEANS = "enough rows for the mean of a bin to be normal"
FOURTH = "a fourth moment that the rows show: light tails"
MORE = "more rows a bin"
HONEST = "`rhale(..., honest=True)` for chosen bins"
WEIGHTS = "percentiles of `bootstrap`, for weights that follow the residuals"
STUDENTIZED = "`bootstrap(..., studentize=True)`"
GROUPED = "rows or groups independent"
CELLS = "more rows a cell"
GROUPS = {
    "RHALE and ALE: intervals": {
        "effect": Words(
            "`confint`: `effect_ci`",
            "average effect in a bin",
            NORMAL_MEANS,
            f"{MORE}; {WEIGHTS}",
        ),
        "curve": Words(
            "`confint`: `curve_ci`", "curve at the edges of bins", NORMAL_MEANS, WEIGHTS
        ),
        "cell curve": Words(
            "`confint`: `curve_ci`", "curve at the edges of cells", NORMAL_MEANS, WEIGHTS
        ),
        "average effect": Words(
            "`confint`: `average_effect_ci`",
            "mean local effect",
            "rows or groups independent",
            "groups, if rows are related",
        ),
        "slope": Words(
            "`confint`: `slope_ci`",
            "slope of a linear bin",
            "rows a bin in place of rows a parameter",
            "more rows a bin",
        ),
        "spread": Words("`confint`: `spread_ci`", "spread in bins of its own", FOURTH, MORE),
        "importance": Words(
            "`effect_sizes`: `importance_ci`", "spread of the curve over the rows", NORMAL_MEANS, ""
        ),
        "heterogeneity": Words(
            "`confint`: `heterogeneity_ci`",
            "spread in a bin",
            FOURTH,
            "nothing with heavy tails: more rows, or a quantile of the local effects",
        ),
    },
    "RHALE and ALE: simultaneous bands": {
        "effect band": Words(
            "`confband`: `effect_band`",
            "all bin effects",
            NORMAL_MEANS,
            f"more rows a bin; {HONEST}",
        ),
        "curve band": Words(
            "`confband`: `curve_band`", "the whole curve", NORMAL_MEANS, "more rows"
        ),
    },
    "Tests of effects": {
        "wald_test zero, box": Words(
            '`wald_test(effect, "zero")`', "no effect in any bin", "none about shapes", "", True
        ),
        "wald_test zero, wald": Words(
            'the same, `method="wald"`',
            "no effect in any bin",
            "symmetric effects",
            '`method="box"`, the default',
            True,
        ),
        "wald_test constant, box": Words(
            '`wald_test(effect, "constant")`',
            "the same effect in all bins",
            "none about shapes",
            "",
            True,
        ),
        "wald_test constant, wald": Words(
            'the same, `method="wald"`',
            "the same effect in all bins",
            "symmetric effects",
            '`method="box"`, the default',
            True,
        ),
        **{
            f"wald_test {null}": Words(
                f'`wald_test(effect, "{null}")`', f"{sign} effects", NORMAL_MEANS, MORE, True
            )
            for null, sign in (("increasing", "no negative"), ("decreasing", "no positive"))
        },
        "importance_p_value": Words(
            "`effect_sizes`: `importance_p_value`", "a flat curve", NORMAL_MEANS, "", True
        ),
        "wald_test homogeneous": Words(
            '`wald_test(effect, "homogeneous", local=)`',
            "all rows have one effect",
            "a smooth effect",
            "",
            True,
        ),
        "equivalence_test": Words(
            "`equivalence_test`", "effects within delta", NORMAL_MEANS, "more rows a bin", True
        ),
        "compare, independent": Words(
            "`compare(a, b)`", "equal curves of other rows", NORMAL_MEANS, "more rows", True
        ),
        "compare, paired": Words(
            "`compare(a, b, paired=)`",
            "equal curves of the same rows",
            NORMAL_MEANS,
            "more rows",
            True,
        ),
    },
    "Bootstrap": {
        **{
            f"bootstrap effect, {method}": Words(
                f'`bootstrap`, `"{method}"`: effect',
                "average effect in a bin",
                NORMAL_MEANS,
                STUDENTIZED,
            )
            for method in ("percentile", "bca", "studentized")
        },
        **{
            f"bootstrap curve, {method}": Words(
                f'`bootstrap`, `"{method}"`: curve',
                "curve at the edges of bins",
                NORMAL_MEANS,
                STUDENTIZED,
            )
            for method in ("percentile", "bca", "studentized")
        },
        **{
            f"bootstrap heterogeneity, {method}": Words(
                f'`bootstrap`, `"{method}"`: heterogeneity',
                "spread in a bin",
                FOURTH,
                "`heterogeneity_ci` without `boot`",
            )
            for method in ("percentile", "bca", "studentized")
        },
        **{
            f"bootstrap index, {method}": Words(
                f'`bootstrap`, `"{method}"`: index',
                "`heterogeneity_index`",
                FOURTH,
                '`method="bca"`',
            )
            for method in ("percentile", "bca")
        },
    },
    "Other effects": {
        "pdp": Words(
            "`pdp`, `confint`", "partial dependence at a point", GROUPED, "more rows or groups"
        ),
        "pdp band": Words(
            "`pdp`, `confband`", "the whole partial dependence", GROUPED, "more rows or groups"
        ),
        "ice": Words("`ice`, `confint`", "mean output at a point", GROUPED, "more rows or groups"),
        "m_plot": Words(
            "`m_plot`, `confint`", "mean output in a bin", GROUPED, "more rows or groups"
        ),
        "shap_dependence": Words(
            "`shap_dependence`, `confint`",
            "mean Shapley value at a point",
            "a spline without bias",
            "`m_plot`, or more rows",
        ),
        "ale2 cells": Words(
            "`ale2`, `confint`: cells",
            "second difference of a cell",
            NORMAL_MEANS,
            CELLS,
        ),
        "ale2 surface": Words(
            "`ale2`, `confint`: surface", "surface at a corner", NORMAL_MEANS, CELLS
        ),
        "ale2 band": Words("`ale2`, `confband`", "the whole surface", NORMAL_MEANS, CELLS),
        "wald_test of a surface": Words(
            "`wald_test(surface)`",
            "no interaction on average",
            "symmetric signs",
            CELLS,
            True,
        ),
        "h_statistic pair": Words(
            "`h_statistic`, `confint`: pair", "H² of a pair", FOURTH, "more rows"
        ),
        "h_statistic overall": Words(
            "`h_statistic`, `confint`: overall", "H² of a feature", FOURTH, "more rows"
        ),
    },
    "Regions and checks": {
        "regions, permutation": Words(
            '`regions(test="permutation")`',
            "no split of noise",
            "rows or groups independent",
            '`test="honest"`',
            True,
        ),
        "regions, honest": Words(
            '`regions(test="honest")`', "no split of noise", "rows or groups independent", "", True
        ),
        "check_unbiased": Words(
            "`check_unbiased`: `bin_error_pvalue`", "no bin error", "", "", True
        ),
        "check_unbiased, ranks": Words(
            "`check_unbiased`: `rank_pvalue`",
            "no bin error",
            "a constant spread in the bin",
            "`bin_error_pvalue`",
            True,
        ),
        "jump_check, default bins": Words(
            "`jump_check`, default bins", "no jump in any bin", "a smooth model", "", True
        ),
        "jump_check, 30 quantiles": Words(
            "`jump_check`, 30 quantile bins", "no jump in any bin", "a smooth model", "", True
        ),
    },
    "Of a model that is fitted": {
        "true effect": Words(
            "`confint`, model refitted",
            "effect of the true process",
            "the model is not known",
            "`bootstrap_refit`",
        ),
        "true curve": Words(
            "`confint`, model refitted",
            "curve of the true process",
            "the model is not known",
            "`bootstrap_refit`",
        ),
    },
}
FACTORS = {
    "spread along the axis": "squared error of the spread, over that of the best equal bins",
    "importance without an effect": "share of the bias that `importance_corrected` removes",
    "note": "share of the samples whose printed summary says so",
}
CLAIMS = {name: words for group in GROUPS.values() for name, words in group.items()}
KEYS = (*CLAIMS, *FACTORS)
