"""Confidence intervals and bands of any result that has them."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rhale_stats.arguments.checks import check_count, check_level
from rhale_stats.arguments.seeds import seeded
from rhale_stats.generics import dispatch
from rhale_stats.schema.door import checked
from rhale_stats.schema.parts import each_part


@checked
@each_part
def confint(
    effect: xr.Dataset,
    boot: xr.Dataset | None = None,
    *,
    level: float = 0.95,
    method: str | None = None,
) -> xr.Dataset:
    r"""Pointwise confidence intervals of everything that has a standard error or replicates.

    Parameters
    ----------
    effect : Dataset
        What `rhale`, `std_error` or `ale2` returned; or `pdp` or another profile, whose curve gets
        its interval. Of a surface there are ``second_effect_ci`` and ``surface_ci``, by "normal",
        "percentile" and "basic", the last two not expanded; of H-statistics ``h2_ci``,
        ``h2_overall_ci`` and so on, by the same, "normal" on the log scale (math [62]).
    boot : Dataset, optional
        What `bootstrap` made of it, with fixed bins.
    level : float, default 0.95
        Share of samples in which an interval holds its target.
    method : {"normal", "percentile", "basic", "bca", "studentized"}, optional
        "normal" (the default without ``boot``): by standard errors, with Student's quantiles for
        the degrees of freedom of the bins (Satterthwaite's for the curve); for the heterogeneity
        by inversion of a test, see Notes. The others need ``boot``, "percentile" being the default
        with it; "studentized" one with ``studentize=True``.

    Returns
    -------
    Dataset
        ``effect`` with ``effect_ci``, ``heterogeneity_ci`` (and ``slope_ci``) over (feature, bin,
        ci_bound), ``curve_ci`` over (feature, edge, ci_bound), ``average_effect_ci`` over
        (feature, ci_bound), ``missing_effect_ci`` with ``missing="bin"`` (by standard errors,
        whatever the method), and with ``boot`` those of ``heterogeneity_index`` and
        ``heterogeneity_output``, but for "studentized": these two have no standard error.
        Effects of another statistic than the mean need ``boot``, and get ``effect_se`` and so on,
        too, by the replicates (math [63]; "percentile" and "basic", not expanded).
        ``ci_bound`` is "lower" and "upper". Each says its target, source, method, level and that it
        is pointwise.

    Raises
    ------
    ValueError
        Unknown ``method``, one that needs ``boot``, ``boot`` of other bins, of other rows or of
        another model, ``level`` outside (0, 1).

    Notes
    -----
    The variance of local effects depends on their mean. With effects that take two values equally
    often (Eq. 1 of the paper) the first-order error of the standard deviation vanishes, and
    :math:`\hat\sigma \pm 1.96\,\mathrm{se}` covers 77 to 89 %. The interval used here
    is the set of values of sigma that a joint test of mean and variance does not reject, for some
    mean, from moments to the fourth (math [24]); it covers 94 to 97 % there, and 94.5 % of normal
    samples of 50.

    Percentile intervals are too narrow in small samples: they ignore that the variance is
    estimated, and with some schemes replicates vary less than the estimate does. "percentile",
    "basic" and "bca" are therefore expanded (Hesterberg 2015): replicates are cut at
    :math:`\Phi(\mp t / \sqrt s)`, "bca" before it corrects
    for bias and acceleration. t is the quantile that "normal" has there (with groups, that of their
    number less one), s the part of the unbiased variance of a mean that replicates have: 1 - H / N
    for "multinomial" of N rows, or groups, in H strata; (n - 1) / (n + 1) for "bayesian" in a bin
    of n rows; 1 for "poisson". Of normal rows this makes the t interval.

    Quantiles are those at p (B + 1) of B replicates, and beyond these the extreme ones. That is so
    in bins of four rows or fewer with 1,000 replicates (t is large): such an interval is shorter
    than its level says. A bin of one row has none. Replicates in which a bin was empty are left
    out: ``n_empty`` counts them.

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
    check_level(level)
    out: xr.Dataset = dispatch.method("confint", effect)(effect, boot, level, method)
    return out


@checked
@seeded
@each_part
def confband(
    effect: xr.Dataset,
    *,
    level: float = 0.95,
    n_draws: int = 20_000,
    rng: np.random.Generator | int | None = None,
) -> xr.Dataset:
    r"""Simultaneous bands: they hold the whole curve, and all effects of a feature, at once.

    Parameters
    ----------
    effect : Dataset
        What `rhale` or `std_error` returned; or `pdp` or another profile, whose curve gets its
        band; or `ale2`.
    level : float, default 0.95
        Share of samples in which a band holds its target at all edges of cells, or in all bins.
    n_draws : int, default 20000
        Draws from the distribution of the errors: the quantile has a Monte-Carlo error of about
        0.3 %.
    rng : Generator, int or None
        Source of the draws, or its seed. None draws anew; ``seed`` in the attributes of the result
        reproduces it (-1 with a Generator).

    Returns
    -------
    Dataset
        ``effect`` with ``curve_band`` (feature, edge, ci_bound), at the edges of the cells
        ``cell_curve_band`` (feature, cell_edge, ci_bound), and ``effect_band`` (feature, bin,
        ci_bound). Each says its target, source, method, level and that it is simultaneous. Of a
        surface ``surface_band`` (edge_a, edge_b, ci_bound), of all its corners, and
        ``second_effect_band`` (bin_a, bin_b, ci_bound), of all cells of two rows and more.

    Raises
    ------
    ValueError
        ``level`` outside (0, 1), an effect without the moments of standard errors.

    Notes
    -----
    math [27]: the curve plus and minus Student's quantile times its standard error, at every edge
    with its own degrees of freedom and everywhere at the same level. That level is such that all
    edges are held at once: it comes from draws of the errors, which are normal with the correlation
    of `vcov`, over standard errors estimated from the same cells. The edges are those of the cells,
    and so do not depend on the bins; with ``weighting="rows"`` those of the bins. With groups all
    edges have one estimate of scale, with the degrees of freedom of the groups. Effects of bins are
    independent, but for groups: each has Student's quantile at level^(1/K), exactly. Features are
    not adjusted for their number.

    The rows are taken as a sample, the model as it is. Coverage of the true curve by default
    settings is in the study ``weighting``.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> local = rs.local_effects(lambda X: 2 * X[:, 0] + 4 * X[:, 0] * X[:, 1], X)
    >>> effect = rs.confband(rs.confint(rs.rhale(local, bins=rs.EqualWidthBins(4))))
    >>> width = effect[["curve_ci", "curve_band"]].diff("ci_bound").sel(feature="x0")
    >>> bool((width["curve_band"] > width["curve_ci"]).all())
    True
    """
    check_level(level)
    check_count("n_draws", n_draws, 1)
    out: xr.Dataset = dispatch.method("confband", effect)(effect, level, n_draws, rng)
    return out
