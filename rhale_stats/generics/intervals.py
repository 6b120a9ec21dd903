"""Confidence intervals and bands of results."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rhale_stats.arguments.seeds import seeded
from rhale_stats.arrays.intervals import N_DRAWS
from rhale_stats.generics import dispatch
from rhale_stats.schema.parts import over_outputs
from rhale_stats.schema.validation import validated


@validated
@over_outputs
def confint(
    effect: xr.Dataset,
    boot: xr.Dataset | None = None,
    *,
    level: float = 0.95,
    method: str | None = None,
) -> xr.Dataset:
    r"""Pointwise confidence intervals of all estimates with a standard error or replicates.

    Parameters
    ----------
    effect : Dataset
        What `rhale`, `std_error` or `ale2` returned; or `pdp` or another profile, whose curve gets
        an interval. A surface gets ``second_effect_ci`` and ``surface_ci``, by "normal",
        "percentile" or "basic", the last two not expanded. H-statistics get ``h2_ci``,
        ``h2_overall_ci`` and so on by the same methods and "bca", none of them expanded, "normal"
        on the log scale (math [62]).
        Effects of several models get intervals over (feature, grid, ci_bound), without ``boot``.
    boot : Dataset, optional
        Replicates of ``effect`` that `bootstrap` returned, with fixed bins.
    level : float, default 0.95
        Confidence level: the share of samples in which an interval contains its target.
    method : {"normal", "percentile", "basic", "bca", "studentized"}, optional
        "normal" (the default without ``boot``): by standard errors, with Student's quantiles for
        the degrees of freedom of the bins (Satterthwaite's for the curve); for the heterogeneity by
        inversion of a test, see Notes; longer on one side where local effects are clearly
        skewed (math [64]). The other methods need ``boot``; with it "percentile" is the default,
        and "bca" of heterogeneities in bins and of H-statistics, whose replicates repeat their
        bias. "studentized" needs replicates made with ``studentize=True``. Of several models (math
        [86]): draws have
        credible intervals, "eti" (equal tails, the default) or "hdi" (highest density); refits have
        "percentile" and "basic"; all have "normal", which is the only one of folds.

    Returns
    -------
    Dataset
        ``effect`` with ``effect_ci``, ``heterogeneity_ci`` (and ``slope_ci``) over (feature, bin,
        ci_bound), ``curve_ci`` over (feature, edge, ci_bound), ``average_effect_ci`` over
        (feature, ci_bound), ``missing_effect_ci`` with ``missing="bin"`` (by standard errors,
        whatever the method). With ``boot`` there are also intervals of ``heterogeneity_index`` and
        ``heterogeneity_output``, except for "studentized": these two have no standard error.
        Effects of another statistic than the mean need ``boot``. They get ``effect_se`` and the
        other standard errors as well, from the replicates (math [29]; "percentile" and "basic",
        not expanded). ``ci_bound`` is "lower" and "upper". The attributes of each interval give its
        target, source, method and level, and that it is pointwise.

    Raises
    ------
    ValueError
        Unknown ``method``; a method that needs ``boot`` without it; ``boot`` of other bins, other
        rows or another model; ``level`` outside (0, 1).

    Notes
    -----
    The variance of local effects depends on their mean. With effects that take two values equally
    often (Eq. 1 of the paper) the first-order error of the standard deviation vanishes, and
    :math:`\hat\sigma \pm 1.96\,\mathrm{se}` covers 77 to 89 %. The interval used here
    is the set of values of sigma that a joint test of mean and variance does not reject, for some
    mean, from moments to the fourth (math [24]); it covers 94 to 97 % there, and 94.5 % in normal
    samples of 50.

    Percentile intervals are too narrow in small samples: they ignore that the variance is
    estimated, and in some schemes the replicates vary less than the estimate. "percentile", "basic"
    and "bca" are therefore expanded (Hesterberg 2015): the quantiles are taken at
    :math:`\Phi(\mp t / \sqrt s)`, for "bca" before the correction for bias and acceleration. t is
    the Student quantile of method "normal" (with groups, by their shares in the rows as in
    `std_error`). s is the variance of the replicates of a mean over its unbiased variance:
    1 - H / N for "multinomial" of N rows, or groups, in H strata; (n - 1) / (n + 1) for "bayesian"
    in a bin of n rows; 1 for "poisson". For normal rows this gives the t interval.

    The quantile at p is taken at rank p (B + 1) of B replicates, or at the extreme one where this
    rank is outside 1 to B. The extremes are used in bins of four rows or fewer with 1,000
    replicates (t is large there): such intervals are too short for their level. A bin of one row
    has no interval. Replicates in which a bin was empty are left
    out: ``n_empty`` counts them.

    Simulated coverage by kind of process, and what to use where this fails: docs/validity.md.

    References
    ----------
    Efron (1987), *JASA* 82, 171-185, for "bca". Hesterberg (2015), *What teachers should know about
    the bootstrap*, *The American Statistician* 69, 371-386, for the expansion.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> local = rs.local_effects(lambda X: 2 * X[:, 0] + 4 * X[:, 0] * X[:, 1], X)
    >>> effect = rs.confint(rs.rhale(local, bins=rs.EqualWidthBins(2)), level=0.9)
    >>> effect["effect_ci"].sel(feature="x0").round(2).values
    array([[1.84, 2.37],
           [1.55, 2.  ]])
    """
    out: xr.Dataset = dispatch.method("confint", effect)(effect, boot, level, method)
    return out


@validated
@seeded
@over_outputs
def confband(
    effect: xr.Dataset,
    *,
    level: float = 0.95,
    n_draws: int = N_DRAWS,
    rng: np.random.Generator | int | None = None,
) -> xr.Dataset:
    r"""Simultaneous confidence bands of the whole curve, and of all bin effects, of each feature.

    Parameters
    ----------
    effect : Dataset
        What `rhale` or `std_error` returned; or `pdp` or another profile, whose curve gets a band;
        or `ale2`; or effects of several models, which get ``curve_band`` and ``effect_band`` over
        (feature, grid, ci_bound), of draws credible bands (math [86]).
    level : float, default 0.95
        Confidence level: the share of samples in which a band contains its target at all edges of
        cells, or in all bins.
    n_draws : int, default 2000
        Draws of the errors beyond the band: the Monte-Carlo error of the quantile is 0.2 to 0.4 %.
    rng : Generator, int or None
        Source of the draws, or its seed. None draws a new seed; ``seed`` in the attributes of the
        result reproduces it (-1 with a Generator).

    Returns
    -------
    Dataset
        ``effect`` with ``curve_band`` (feature, edge, ci_bound), and ``effect_band`` (feature, bin,
        ci_bound). The attributes of each band give its target, source, method and level, and that
        it is simultaneous. For a surface ``surface_band`` (edge_a, edge_b, ci_bound), over all its
        corners, and ``second_effect_band`` (bin_a, bin_b, ci_bound), over all cells with at least
        two rows.

    Raises
    ------
    ValueError
        ``level`` outside (0, 1); an effect without the moments of standard errors.

    Notes
    -----
    Math [27]: the band is the curve plus and minus Student's quantile times its standard error.
    Every edge has its own degrees of freedom; the level of the quantile is the same everywhere. It
    is chosen so that the band contains the curve at all edges at once. It is found by simulation of
    errors that are beyond the band at one edge at least; they are normal with the correlation of
    `vcov`, divided by standard errors estimated from the same cells. The edges are those of the
    cells, and so do not depend on the bins; with ``weighting="rows"`` they are those of the bins.
    With groups all edges share one estimate of scale, and every edge has its own degrees of
    freedom. Effects of bins are independent, except with groups: each has Student's quantile at
    level^(1/K), exactly. There is no adjustment for the number of features.

    The rows are taken as a sample. Errors include the parameters of the model only if `std_error`
    was given the model. The study ``weighting`` reports the coverage of the true curve with default
    settings, and docs/validity.md that of all bands.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> local = rs.local_effects(lambda X: 2 * X[:, 0] + 4 * X[:, 0] * X[:, 1], X)
    >>> effect = rs.confband(rs.confint(rs.rhale(local, bins=rs.EqualWidthBins(4))))
    >>> width = effect[["curve_ci", "curve_band"]].diff("ci_bound").sel(feature="x0").dropna("edge")
    >>> bool((width["curve_band"] > width["curve_ci"]).all())
    True
    """
    out: xr.Dataset = dispatch.method("confband", effect)(effect, level, n_draws, rng)
    return out
