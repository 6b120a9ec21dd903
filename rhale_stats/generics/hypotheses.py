"""Hypothesis tests of results, and comparisons of two results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from rhale_stats.arguments.checks import check_choice
from rhale_stats.arguments.seeds import seeded
from rhale_stats.arguments.survey import GroupsOrDesign
from rhale_stats.arguments.words import shown
from rhale_stats.arrays.intervals import N_DRAWS
from rhale_stats.generics.dispatch import method as of_kind
from rhale_stats.inference import combinations
from rhale_stats.inference.adjustment import ADJUSTMENTS
from rhale_stats.inference.results import ComparisonOptions
from rhale_stats.margins.tables import labelled_combinations, labelled_locations
from rhale_stats.schema.dimensions import OUTPUT, REGION, with_part_facts
from rhale_stats.schema.features import feature_names, feature_position
from rhale_stats.schema.kinds import EFFECT, ENSEMBLE, H_STATISTICS, PROFILE, kind_of
from rhale_stats.schema.parts import over_outputs
from rhale_stats.schema.validation import validated


@validated
@over_outputs
def wald_test(
    effect: xr.Dataset,
    null: str = "zero",
    *,
    method: str = "box",
    adjust: str = "holm",
    local: xr.Dataset | None = None,
) -> xr.Dataset:
    r"""Test whether each effect is zero, constant, of one sign, or the same for all rows.

    Parameters
    ----------
    effect : Dataset
        What `rhale`, `std_error`, `ale2`, `pdp`, `ice` or `m_plot` returned. If `std_error` was
        given groups, the test allows for them. Or refits (`bootstrap_refit`) or folds
        (`cross_effects`), whose error includes the model, for "zero" and "constant" (math [87]).
    null : {"zero", "constant", "homogeneous", "increasing", "decreasing"}
        "zero": the effects of all bins, and slopes in them, are 0. "constant": all effects are
        equal and have no slope, so the curve is a straight line. "homogeneous": all rows have the
        same effect at a given value of the feature, as in an additive model. "increasing": no bin
        has a negative effect, so that a small p-value says that the curve falls somewhere;
        "decreasing" likewise. For a surface, "zero" means no interaction on average (all mean
        second differences are 0), and "homogeneous" means that the interaction does not depend on
        other features; "constant" is not defined. For a profile there is "zero" only: the curve has
        one value at all points.
    method : {"box", "wald"}
        Statistic for "zero" and "constant" of effects in bins. "box": the sum of squared effects,
        weighted by rows, over its expectation; its size holds for skewed local effects. "wald":
        every effect over its own standard error; more powerful if local effects are normal and
        their variance differs between bins, but invalid if they are skewed. To be left out for
        other nulls, for a surface and for a profile.
    adjust : str, default "holm"
        Adjustment of the p-values over features, as in `check_unbiased`.
    local : Dataset, optional
        The local effects that ``effect`` was made from, for "homogeneous". Within a bin, local
        effects also differ because the effect changes along the bin; only the rows can separate the
        two causes.

    Returns
    -------
    Dataset
        Over (feature): ``statistic``, ``df``, ``p_value``, ``p_value_adjusted`` and ``reason``,
        which says why a p-value is NaN and is empty otherwise; the null, the method and the source
        of uncertainty are in the attributes. ``df_denominator`` is present where the statistic is
        compared with F. ``size`` with ``size_ci`` (95 %): the root mean square over the rows of
        what the null denies, without the part of noise (its long name says which). `tidy` and
        `summary` accept the result. For a surface there is one feature, "a:b".

    Raises
    ------
    ValueError
        Unknown ``null``, ``method`` or ``adjust``; ``method="wald"`` for "homogeneous" or for a
        surface; an effect without the moments of standard errors; ``local`` given with another
        null; ``local`` that ``effect`` was not made from.

    Notes
    -----
    A p-value refers to what the standard errors include (attribute ``source``): by default the
    sampling of rows, with the model as given. It is NaN, with a reason, where no degree of freedom
    is left (such as "constant" with a single bin), where local effects differ only by their
    numerical error, and for "constant" where levels have no order of their own.

    Method "box", for "zero": the statistic is the sum of squared effects, weighted by the rows that
    they rest on, over its expectation under the null hypothesis (for "constant" of squares about
    the weighted mean, Brown and Forsythe 1974). It is compared with F; ``df`` and
    ``df_denominator`` are Box's, and need not be whole numbers. With equal variances and equally
    many rows in all bins it is the F statistic of a one-way analysis of variance. A linear bin adds
    the square of its slope. Its level is not exceeded from 10 rows a bin on; it is conservative for
    skewed effects in many small bins. With groups the denominator has the degrees of freedom that
    the shares of the groups in the bins leave.

    Method "wald", for "zero": the sum of squared normal scores of the t statistics, which is
    chi-squared; its degrees of freedom are the number of bins and slopes. For "constant" it is the
    same for deviations from the weighted mean (Alexander and Govern 1994), with one degree of
    freedom less. A bin without any spread takes the spread of the other bins. If effects are
    skewed, the mean of a bin depends on its variance, and the test is invalid: with log-normal
    effects it rejects 35 % at 5 % in 10 bins of 30 rows. With groups the Wald statistic is compared
    with F. Math [31] has both statistics, and tables of their sizes and powers.

    "increasing" and "decreasing": the statistic is the largest normal score against the null among
    ``df`` bins, corrected for skewness, with Sidak's p-value (math [120]).

    "homogeneous": where no bin has a spread beyond numerical error, the p-value is 1. For steps
    between levels, and for slopes across cells that are also the bins, any spread contradicts the
    null, and the p-value is 0. Elsewhere rows are sorted by the feature and divided into triples of
    neighbours. The expected product of the two differences within a triple is minus the variance of
    local effects at a value of the feature; an effect that changes smoothly along the feature, or
    jumps, does not make it negative. ``statistic`` is Student's t of that mean, ``p_value`` its
    upper tail and ``df`` the number of triples less one.

    For a surface, "zero" tests the mean second differences of the cells by the sum of their
    squares, weighted by rows. Its distribution under random sign changes of the rows is
    approximated by a scaled chi-square (Brunner, Dette and Munk 1997), because normal scores reject
    far too often where cells have few rows. Cells of one row are left out. Second differences that
    are 0 up to rounding in all rows, as in an additive model, are not tested (math [59]).

    For a profile the statistic is that of method "box", of the curve about its mean. There is no
    test of `shap_dependence`, whose errors take the Shapley values as given.

    Simulated sizes by kind of process, and what to use where this fails: docs/validity.md.

    References
    ----------
    Alexander and Govern (1994), *Journal of Educational Statistics* 19, 91-101. Box (1954), *Some
    theorems on quadratic forms*, Annals of Mathematical Statistics 25, 290-302. Brown and Forsythe
    (1974), *The small sample behavior of some statistics*, Technometrics 16, 129-132. Brunner,
    Dette and Munk (1997), *Box-type approximations in nonparametric factorial designs*, JASA 92,
    1494-1502.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(1).uniform(-1, 1, (500, 2))
    >>> local = rs.local_effects(lambda X: 2 * X[:, 0] + 4 * X[:, 0] * X[:, 1], X)
    >>> test = rs.wald_test(rs.rhale(local, bins=rs.EqualWidthBins(5)))
    >>> test["df"].round(2).values, test["p_value"].round(2).values
    (array([4.95, 4.94]), array([0.  , 0.17]))
    """
    check_choice("adjust", adjust, ADJUSTMENTS)
    out: xr.Dataset = of_kind("wald_test", effect)(effect, null, method, adjust, local)
    return out


@validated
def hypotheses(
    effect: xr.Dataset,
    hypothesis: Any = None,
    *,
    feature: str | int | None = None,
    of: str | None = None,
    margin: Any = None,
    adjust: str = "holm",
    local: xr.Dataset | None = None,
    groups: GroupsOrDesign | None = None,
    level: float = 0.95,
) -> xr.Dataset:
    r"""Differences, ratios and other functions of estimates, with their tests and a joint one.

    Parameters
    ----------
    effect : Dataset
        `averages`, effects in bins, a profile, a surface (its cells), or results of several models.
        Of groups of rows (``by=``) the estimates of all groups, whose rows are independent.
    hypothesis : str, list of str, or array_like of shape (n_hypotheses, n_estimates), optional
        "pairwise" (each with every other), "reference" (each less the first), "sequential" (each
        less the one before), where the prediction of all rows is left out beside other averages;
        or expressions of the estimates such as "b1 = b2", "b3 / b1 = 2",
        "log(b2) - log(b1)": "b1" is the first estimate, and a name stands in backquotes unless it
        is a word, as in "dose = 2 * `arm: b - a`". Or numbers: a linear combination a row. Or, of
        the effects, curve or profile of one feature, "maximum", "minimum" or "zero": where on the
        axis it is (math [119]). By default the estimates themselves.
    feature : str or int, optional
        Of effects and profiles: whose. By default all of them, and all outputs, which need the rows
        behind them if there are several.
    of : {"effect", "curve", "average_effect"}, optional
        Of effects in bins: the effects of the bins (the default), the curve at the edges, or the
        average effects of all features. Profiles have their curve.
    margin : float or pair, optional
        Equivalence: adds the P of two one-sided tests that the combination lies between
        ``-margin`` and ``margin``, or within the pair.
    adjust : str, default "holm"
        Adjustment of the p-values for the number of hypotheses, as in `check_unbiased`.
    local : Dataset, optional
        The local effects, or ICE curves, that ``effect`` was made from, for several features or
        outputs, and with ``of="average_effect"``. Their estimates come from the same rows; the
        correlations are those of the influences of the rows.
    groups : array_like of shape (n_rows,) or SurveyDesign, optional
        The groups that `std_error` was given, for estimates that are correlated by their rows.
    level : float, default 0.95
        Of the intervals of locations.

    Returns
    -------
    Dataset
        Over (term): ``average``, the combination, which is the left side less the right one;
        ``average_se``, ``average_df``, ``average_cov`` (term, term_other), ``p_value_adjusted``
        and, with ``margin``, ``p_equivalence``. ``term`` is the hypothesis as text. The
        attributes ``joint_statistic``, ``joint_df``, ``joint_df_denominator`` and
        ``joint_p_value`` are Wald's test of all at once. `tidy`, `summary`, `confint`, `vcov`,
        `plots.forest` and `hypotheses` accept it. Of a location ``average`` is the place, with the
        interval ``average_ci`` of the places at which a test that the effect (for "zero" of a
        curve, the curve) is 0 does not reject; there is no test of the place itself.

    Raises
    ------
    KeyError, ValueError
        An expression that cannot be read, or names what the result does not have; numbers of
        another shape; another kind of result.

    Notes
    -----
    The covariance of the estimates is that of `vcov`; functions that are not linear go by the delta
    method (math [80]), with derivatives that are exact to rounding. Estimates of separate rows, as
    the effects of bins, have Welch's degrees of freedom; others the smallest of those that take
    part. The joint statistic is Wald's divided by its degrees of freedom, compared with F. In bins
    of few rows with skewed effects it is not reliable; `wald_test` has another statistic for that.

    References
    ----------
    Arel-Bundock, Greifer and Heiss (2024), *How to interpret statistical models using
    marginaleffects*, Journal of Statistical Software 111.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import rhale_stats as rs
    >>> import statsmodels.formula.api as smf
    >>> rng = np.random.default_rng(0)
    >>> data = pd.DataFrame({"dose": rng.uniform(size=200), "arm": rng.choice(list("abc"), 200)})
    >>> data["y"] = 2 * data["dose"] + (data["arm"] == "b") + rng.normal(size=200)
    >>> fit = smf.ols("y ~ dose + arm", data).fit()
    >>> found = rs.averages(fit, data, uncertainty="parameters")
    >>> test = rs.hypotheses(found, ["dose = 2 * `arm: b - a`", "b3 = b4"])
    >>> rs.tidy(test)[["term", "estimate", "std_error", "p_value"]].round(3)
                          term  estimate  std_error  p_value
    0  dose = 2 * `arm: b - a`     0.589      0.455    0.197
    1                  b3 = b4     0.859      0.174    0.000
    """
    check_choice("adjust", adjust, ADJUSTMENTS)
    if of is not None:
        check_choice("of", of, ("effect", "curve", "average_effect"))
    function = of_kind("hypotheses", effect)
    is_location = isinstance(hypothesis, str) and hypothesis in combinations.LOCATIONS
    if is_location and of in (None, "effect") and kind_of(effect) is EFFECT:
        of = "slope"
    if isinstance(effect, xr.Dataset):
        effect = with_part_facts(effect)
    if REGION in getattr(effect, "dims", ()) and not is_location:
        combinations.refuse_beside("results of several groups of rows", local=local, groups=groups)
        # Their errors must share no more than the model as given.
        shared = {"fitted_model", "n_groups", "region_n_groups"}
        if shared & {*effect.attrs, *effect.coords}:
            raise ValueError(
                "effect must have standard errors of rows, which are separate in regions; "
                "parameters and groups may be shared. Select one region: effect.isel(region=0)."
            )
        places = range(effect.sizes[REGION])
        regions = [with_part_facts(effect.isel({REGION: place})) for place in places]
        effect, labels = regions[0], [str(part[REGION].values) for part in regions]
        estimates: combinations.Estimates = combinations.separate(
            [function(r, feature, of, None, None) for r in regions], labels
        )
    else:
        estimates = _of_parts(function, effect, feature, of, local, groups)
    if is_location:
        combinations.refuse_beside(f"hypothesis={hypothesis!r}", margin=margin)
        return labelled_locations(effect, estimates, hypothesis, level)
    return labelled_combinations(effect, estimates, hypothesis, margin, adjust)


def _of_parts(
    function: Callable[..., combinations.Estimates],
    effect: xr.Dataset,
    feature: Any,
    of: str | None,
    local: Any,
    groups: Any,
) -> combinations.Estimates:
    """Estimates of all features and outputs that were not selected, with what they share."""
    if kind_of(effect) not in (EFFECT, PROFILE, ENSEMBLE):
        return function(effect, feature, of, local, groups)
    names = feature_names(effect)
    named = names if feature is None else [names[feature_position(effect, feature)]]
    kinds = effect["feature_kind"].sel(feature=named).values
    names = [name for name, kind in zip(named, kinds, strict=True) if kind != "constant"]
    if not names:
        raise ValueError(
            f"feature must be one with an effect; {', '.join(map(repr, named))} is constant. Take "
            f"another."
        )
    every = feature is None and of != "average_effect" and effect.sizes["feature"] > 1
    features = names if every else [feature]
    outputs = effect[OUTPUT].values.tolist() if OUTPUT in effect.dims else [None]
    if len(features) == len(outputs) == 1:
        if of != "average_effect" and not every:
            combinations.refuse_beside("one feature of one output", local=local, groups=groups)
        return function(effect, features[0], of, local, groups)
    parts, labels = [], []
    for number, output in enumerate(outputs):
        place = {} if output is None else {OUTPUT: number}
        part, rows = (
            result if result is None else with_part_facts(result.isel(place, missing_dims="ignore"))
            for result in (effect, local)
        )
        for name in features:
            parts.append(function(part, name, of, rows, groups))
            label = [str(name)] * every + [f"{OUTPUT} = {output}"] * (output is not None)
            labels.append(", ".join(label))
    return combinations.of_shared_units(parts, labels)


@validated
@seeded
def compare(
    a: xr.Dataset,
    b: xr.Dataset | None = None,
    *,
    paired: tuple[xr.Dataset, xr.Dataset] | None = None,
    groups: GroupsOrDesign | None = None,
    level: float = 0.95,
    n_draws: int = N_DRAWS,
    rng: np.random.Generator | int | None = None,
    adjust: str = "holm",
) -> xr.Dataset:
    r"""Difference of two curves with its band, and a test of no difference anywhere.

    Examples are two models, two groups of rows, or training and test data. The effects are of the
    same features; their bins may differ.

    Parameters
    ----------
    a, b : Dataset
        What `rhale` or `std_error` returned, with one centring; the features that both have are
        compared. Or two profiles of one kind on one grid; results of `m_plot` need the same bins.
        Or two surfaces of `ale2` in the same cells, as made with ``bins=GivenBins(...)``; they are
        compared as pairs if their rows have the same labels, values, places and weights. Or two
        results of `h_statistic` of one kind for the same features. Or effects of several models,
        and such effects with the effect or the profile of one model. Without ``b``, ``a`` holds the
        effects of two groups of rows, as ``by=`` makes them: the first less the second.
    paired : tuple of two Datasets, optional
        The rows behind ``a`` and ``b``, if both were made from the same rows in the same order (two
        models on one table), so that their errors are correlated: two results of `local_effects`;
        for partial dependence two results of `ice`; M-plots and SHAP dependence themselves. Without
        ``paired`` the rows are taken as independent. H-statistics of the same table are paired
        automatically, whether the same rows were drawn or not; pass ``paired=(a, b)`` if features
        of the table differ. Effects of several models are paired automatically if they are of the
        same models, or refits by one seed; ``paired=(a, b)`` pairs other members one by one.
    groups : array_like of shape (n_rows,) or SurveyDesign, optional
        With ``paired``: the group of every pair; pairs of one group may depend on each other.
        Without ``paired``, groups that `std_error` was given for ``a`` or ``b`` are used.
    level : float, default 0.95
        Of intervals and band.
    n_draws, rng
        As in `confband`.
    adjust : str, default "holm"
        Adjustment of the p-values over features.

    Returns
    -------
    Dataset
        Over (feature, grid): the edges of both within their common range and, where one of them has
        a linear bin, three points between two edges: ``difference`` (a less b), ``difference_se``,
        ``difference_ci`` and ``difference_band`` (with ci_bound) at ``grid_value``. Over (feature):
        ``statistic``, the largest ``|difference|`` over its standard error, ``p_value`` of the null
        hypothesis of no difference at any point (with Student's t at every point, as for the band),
        and ``p_value_adjusted``; ``size`` with ``size_ci``, the root mean square difference along
        the axis without the part of noise, ``largest`` and ``largest_at``, the largest absolute
        difference and its place. NaN, with a warning, for a feature without a common range. For
        H-statistics, for each of ``h2``, ``h2_overall``, ``h2_pairwise``, ``h`` and
        so on: ``h2_difference``, ``h2_difference_se``, ``h2_difference_ci``, ``h2_p_value`` and
        ``h2_p_value_adjusted`` (over features, or over pairs), math [62].

        For surfaces ``difference`` with its standard error, interval and band is over (edge_a,
        edge_b), and so is ``second_effect_difference``, of the cells that begin there;
        ``supported`` is 1 where both have rows. ``statistic`` is the largest normal score over the
        corners; ``cell_statistic`` and ``cell_p_value`` are those of the cells. `plots.surface`
        draws the result.

    Raises
    ------
    ValueError
        No common feature; different centrings; no feature with a common range; pairs of different
        rows; paired effects with standard errors by groups, but no ``groups``; ``groups`` without
        ``paired``. Surfaces with different cells or features, or of the same rows with different
        weights.

    Notes
    -----
    A centred surface depends on the joint distribution of the two features, so the surfaces of two
    samples can differ for that reason alone. The second differences of the cells do not differ,
    provided the other features have the same conditional distribution given the two.

    The curves of effects in bins are compared about a common zero, math [113]: for
    ``centering="mean"`` their mean over the rows of both in their common range, for "start" the
    left end of that range, for "integral" their mean along it. With zeros of their own, equal
    effects of rows at other places would differ by a constant.

    The statistic is compared with the maximum of correlated normal errors with the covariance of
    the difference, math [27] and [31]. Bins are taken as given, and so are the models if the
    standard errors are those of the rows: a small p-value is then evidence that these two models
    differ on average over the rows, not that refitted models would differ. The p-value is NaN, with
    a ``reason``, where the difference has no standard error.

    The evaluation points depend on the bin edges only. Data-driven points, such as the extremum of
    the estimated difference, would inflate the type I error. Between them the curve is taken as
    straight: for a parabola the error is one sixteenth of its deviation from the chord of the bin.

    Degrees of freedom follow Welch and Satterthwaite at every point; for pairs they are the smaller
    value of the two curves. Pairs in groups have one number for all points, the harmonic mean.

    Pairs may have weights. Precision weights may differ between ``a`` and ``b``. Frequency weights
    count pairs and must be equal in both, unless pairs are in groups. The influences of a pair, or
    the sums of a group, are corrected for leverage as by `std_error` with groups.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> effects = []
    >>> for seed in (2, 3):
    ...     X = np.random.default_rng(seed).uniform(-1, 1, (500, 2))
    ...     local = rs.local_effects(lambda X: 2 * X[:, 0] + 4 * X[:, 0] * X[:, 1], X)
    ...     effects.append(rs.rhale(local, bins=rs.EqualWidthBins(5)))
    >>> rs.compare(*effects, rng=0)["p_value"].round(1).values
    array([0.8, 0.6])
    """
    check_choice("adjust", adjust, ADJUSTMENTS)
    for name, result in (("a", a), ("b", b)):
        if isinstance(result, list | tuple | dict):
            raise TypeError(
                f"{name} must be one of two results, compare(a, b); got {shown(result)}. "
                f"compare_methods puts several side by side."
            )
    if b is None:
        if a.sizes.get(REGION) != 2:
            number = f"one of {a.sizes[REGION]}" if REGION in a.dims else "no"
            raise ValueError(
                f"b must be the result that a is compared with, or a must be of two groups of "
                f"rows; got {number} groups. Select two: compare(a.isel(region=0), "
                f"a.isel(region=1))."
            )
        a, b = (with_part_facts(a.isel({REGION: number})) for number in range(2))
    return compared(a, b, paired, groups, level, n_draws, rng, adjust)


@over_outputs
def compared(a: xr.Dataset, b: xr.Dataset, *options: Any) -> xr.Dataset:
    """`compare` of one output and region."""
    # With H-statistics on either side their own function is called: it reports what is needed.
    kinds = [kind_of(result) for result in (a, b)]
    reporting = [kind in (H_STATISTICS, ENSEMBLE) for kind in kinds]
    leading = b if reporting == [False, True] else a
    if kinds[0] is not kinds[1] and not any(reporting):
        names = [kind.name if kind else "a Dataset of no known kind" for kind in kinds]
        raise ValueError(
            f"a and b must be of one kind; got {' and '.join(names)}. "
            f"compare_methods puts effects and profiles side by side."
        )
    out: xr.Dataset = of_kind("compare", leading, "a")(a, b, ComparisonOptions(*options))
    # The head of a table names both results where they differ.
    names_of_facts, facts = ("n_rows", "bin_rule", "bin_parameters"), with_part_facts(b).attrs
    other = {f"{name}_b": facts.get(name) for name in names_of_facts}
    return out.assign_attrs(
        {
            name: value
            for name, value in other.items()
            if value is not None and out.attrs.get(name.removesuffix("_b"), value) != value
        }
    )
