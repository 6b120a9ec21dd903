"""Tests of any result that has them, and comparisons of two."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from rhale_stats.arguments.checks import check_choice, check_count, check_level
from rhale_stats.arguments.seeds import seeded
from rhale_stats.generics.dispatch import method
from rhale_stats.inference.adjustment import ADJUSTMENTS
from rhale_stats.inference.results import Asked
from rhale_stats.schema.door import checked
from rhale_stats.schema.kinds import H_STATISTICS, kind_of
from rhale_stats.schema.parts import each_part


@checked
@each_part
def wald_test(
    effect: xr.Dataset,
    null: str = "zero",
    *,
    adjust: str = "holm",
    local: xr.Dataset | None = None,
) -> xr.Dataset:
    r"""Test of the effects of every feature.

    Parameters
    ----------
    effect : Dataset
        What `rhale` or `std_error` returned; where that was given groups, they are respected. Or
        `ale2`.
    null : {"zero", "constant", "homogeneous"}
        "zero": the effects of all bins, and slopes in them, are 0. "constant": all effects are
        equal and without slopes, a straight line. "homogeneous": all rows have the same effect at a
        given value of the feature, as in an additive model. Of a surface "zero" is no interaction
        on average (all second differences are 0) and "homogeneous" none that depends on other
        features; "constant" is for effects.
    adjust : str, default "holm"
        Adjustment of the p-values over features, as in `check_unbiased`.
    local : Dataset, optional
        What ``effect`` was made from, for "homogeneous": within a bin, local effects also differ
        because the effect itself changes along the bin, and only the rows can tell the two apart.

    Returns
    -------
    Dataset
        Over (feature): ``statistic``, ``df``, ``p_value``, ``p_value_adjusted`` and ``reason``,
        which says why a p-value is NaN and is empty otherwise; the null and the source of
        uncertainty are in the attributes. `tidy` and `summary` take it. Of a surface one feature,
        "a:b".

    Raises
    ------
    ValueError
        Unknown ``null`` or ``adjust``; an effect without the moments of standard errors; ``local``
        with another null, or one that ``effect`` was not made from.

    Notes
    -----
    A p-value is about the sampling of rows: the model is taken as given. It is NaN, with a reason,
    where no degree of freedom is left (a single bin cannot be unequal), where local effects differ
    by their numerical error only, and of "constant" where levels have no order of their own.

    "zero": each effect over its standard error is brought from Student's t to the normal
    distribution with the same p-value; the sum of squares is chi-squared with as many degrees of
    freedom as there are bins, and slopes. The plain Wald statistic is too large in small bins: with
    20 bins of 25 rows it rejects 8 % at 5 %. A bin without any spread takes that of the other bins.
    "constant": the same of deviations from the weighted mean (Alexander and Govern 1994), with one
    degree of freedom less. With groups the Wald statistic of effects and slopes is compared with F,
    with one degree of freedom less than groups; with 200 rows in 40 groups and two linear bins of
    four it rejects 8 % at 5 %, with 1000 rows in 100 groups 5 %.

    "homogeneous": where no bin has a spread beyond numerical error the p-value is 1. Steps between
    levels, and slopes across cells that are the bins, have no spread but that of the rows: any
    refutes the null, and the p-value is 0. Elsewhere rows are put in order of the feature, in
    triples of neighbours. The two differences within a triple have a mean product of minus the
    variance of local effects at a value of the feature; an effect that changes smoothly along the
    feature, or jumps, does not make it negative. ``statistic`` is Student's t of that mean,
    ``p_value`` its upper tail and ``df`` the number of triples less one.

    Of a surface "zero" is about the means of second differences in the cells: the sum of their
    squares, times the weight of their rows, is compared with its distribution when rows change
    their signs at random, by a chi-square with the same mean and variance (Brunner, Dette and Munk
    1997); ``df`` need not be a whole number. Normal scores would reject far too often in cells of a
    few rows, which surfaces have. Cells of one row are left out. Rejection at 5 % by simulation is
    in math [59]. Second differences that are 0 up to rounding in all rows, as in an additive model,
    are not tested.

    References
    ----------
    Alexander and Govern (1994), *Journal of Educational Statistics* 19, 91-101. Brunner, Dette and
    Munk (1997), *Box-type approximations in nonparametric factorial designs*, JASA 92, 1494-1502.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(1).uniform(-1, 1, (500, 2))
    >>> local = rs.local_effects(lambda X: 2 * X[:, 0] + 4 * X[:, 0] * X[:, 1], X)
    >>> test = rs.wald_test(rs.rhale(local, bins=rs.EqualWidthBins(5)))
    >>> test["df"].values, test["p_value"].round(2).values
    (array([5., 5.]), array([0.  , 0.16]))
    """
    check_choice("adjust", adjust, ADJUSTMENTS)
    out: xr.Dataset = method("wald_test", effect)(effect, null, adjust, local)
    return out


@checked
@seeded
@each_part
def compare(
    a: xr.Dataset,
    b: xr.Dataset,
    *,
    paired: tuple[xr.Dataset, xr.Dataset] | None = None,
    groups: ArrayLike | None = None,
    level: float = 0.95,
    n_draws: int = 20_000,
    rng: np.random.Generator | int | None = None,
    adjust: str = "holm",
) -> xr.Dataset:
    r"""Difference of two curves with its band, and a test of no difference anywhere.

    Two models, two groups of rows, train against test: effects of the same features, perhaps in
    other bins.

    Parameters
    ----------
    a, b : Dataset
        What `rhale` or `std_error` returned, with one centring; features that both have are
        compared. Or two profiles of one kind on one grid; of `m_plot` in the same bins. Or two
        surfaces of `ale2` in the same cells, which ``bins=GivenBins(...)`` makes; theirs are pairs
        of rows where both have the same ones, by their labels, values, places and weights. Or two
        results of `h_statistic` of one kind for the same features.
    paired : tuple of two Datasets, optional
        The local effects, or of partial dependence what `ice` returned, or M-plots and SHAP
        dependence themselves, (a, b): the rows of ``a`` and of ``b`` where these
        are of the same rows in the same order (two models on one table): their errors go together.
        Without it the rows are independent. H-statistics know the rows of their table: of the
        same table they are paired, whether the same rows were drawn or not; ``paired=(a, b)`` says
        so where features of the table differ.
    groups : array_like of shape (n_rows,), optional
        With ``paired``: pairs of one group depend on each other. Without it, groups that
        `std_error` was given for ``a`` or ``b`` are respected.
    level : float, default 0.95
        Of intervals and band.
    n_draws, rng
        As in `confband`.
    adjust : str, default "holm"
        Adjustment of the p-values over features.

    Returns
    -------
    Dataset
        Over (feature, grid), the edges of both within the range of both and, where one of them
        has a linear bin, the quarters between: ``difference`` (a less b), ``difference_se``,
        ``difference_ci`` and ``difference_band`` (with ci_bound) at ``grid_value``. Over (feature):
        ``statistic``, the largest |difference| over its standard error, ``p_value`` of no
        difference at any point, by Student's t at every one of them as the band, and
        ``p_value_adjusted``. NaN, with a warning, for a feature without a range that
        both have. Of H-statistics, for each of ``h2``, ``h2_overall``, ``h2_pairwise``, ``h`` and
        so on: ``h2_difference``, ``h2_difference_se``, ``h2_difference_ci``, ``h2_p_value`` and
        ``h2_p_value_adjusted`` (over features, or over pairs), math [62].

        Of surfaces ``difference`` and what belongs to it are over (edge_a, edge_b), and in cells
        there are ``second_effect_difference``, its standard error and interval. ``statistic`` is
        the largest normal score over the corners, and ``cell_statistic`` and ``cell_p_value`` are
        of the cells. `plot_surface` draws it.

    Raises
    ------
    ValueError
        No common feature, other centrings, no common range of any feature, pairs of other rows,
        effects by groups in pairs without ``groups``, ``groups`` without pairs. Surfaces in
        other cells, of other features, or of the same rows with other weights.

    Notes
    -----
    A centred surface depends on the joint distribution of the two features, so two samples can
    differ for that reason alone. Second differences of cells do not, provided the other features
    have the same conditional distribution given the two.

    Math [27] and [31]: the statistic is compared with the largest of as many normal errors with the
    covariance of the difference. Models and bins are taken as given: a small p-value says that
    these two models differ on average over the rows, not that refitted models would. It is NaN,
    with a ``reason``, where the difference has no standard error.

    The evaluation points are the edges of the bins of both curves, and three quarters between two
    edges where either curve bends between them (linear bins, or several cells). A straight line
    between quarters misses a sixteenth of the bulge of a parabola. The points depend on the edges
    only: data-driven points, such as the extremum of the estimated difference, would inflate the
    type I error (math [31]).

    Degrees of freedom are those of Welch and Satterthwaite at every point; of pairs the smaller of
    the two curves'. Band and test take the smallest of all points.

    Pairs may have weights. Precision weights may differ between the two; frequencies count pairs
    and are the same in both, unless pairs are in groups. The influences of a pair, or the sums of a
    group, are multiplied by the root of the factor of `std_error` for groups.

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
    array([0.6, 0.6])
    """
    check_level(level)
    check_count("n_draws", n_draws, 1)
    check_choice("adjust", adjust, ADJUSTMENTS)
    # What only one of the two is says what a comparison of them needs.
    leading = next((one for one in (a, b) if H_STATISTICS.holds(one)), a)
    kinds = [kind_of(one) for one in (a, b)]
    if kinds[0] is not kinds[1] and H_STATISTICS not in kinds:
        names = [kind.name if kind else "a Dataset of no known kind" for kind in kinds]
        raise ValueError(
            f"a and b must be of one kind; got {' and '.join(names)}. "
            f"compare_methods puts effects and profiles side by side."
        )
    asked = Asked(paired, groups, level, n_draws, rng, adjust)
    out: xr.Dataset = method("compare", leading, "a")(a, b, asked)
    return out
