"""Confidence intervals, bands, standard errors, covariances and replicates of results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from rhale_stats.arguments.checks import check_choice
from rhale_stats.arguments.seeds import seeded
from rhale_stats.arguments.survey import GroupsOrDesign
from rhale_stats.arguments.words import shown
from rhale_stats.arrays import leverage, resample
from rhale_stats.arrays.intervals import N_DRAWS
from rhale_stats.generics import dispatch
from rhale_stats.generics.dispatch import method
from rhale_stats.inference.draws import GRID, Resampling, chains_of, in_chains
from rhale_stats.models.parametric import ROW_NUMBER, Fitted
from rhale_stats.schema.kinds import PROFILE
from rhale_stats.schema.parts import over_outputs, over_row_sets
from rhale_stats.schema.validation import Options, validated
from rhale_stats.schema.variables import software


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
        inversion of a test, see Notes; longer on one side where local effects are clearly skewed
        (math [64]). The other methods need ``boot``; with it "percentile" is the default, and "bca"
        of heterogeneities in bins and of H-statistics, whose replicates repeat their bias.
        "studentized" needs replicates made with ``studentize=True``. Of several models (math [86]):
        draws have credible intervals, "eti" (equal tails, the default) or "hdi" (highest density);
        refits have "percentile" and "basic"; all have "normal", which is the only one of folds.

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
    The interval of the heterogeneity is the set of values of sigma that a joint test of mean and
    variance does not reject, for some mean (math [24]): the variance of local effects depends on
    their mean. With effects that take two values equally often (Eq. 1 of the paper)
    :math:`\hat\sigma \pm 1.96\,\mathrm{se}` covers 77 to 89 %, and this interval 94 to 97 %; in
    normal samples of 50 it covers 94.5 %.

    Percentile intervals are too narrow in small samples: they ignore that the variance is
    estimated, and in some schemes the replicates vary less than the estimate. The quantiles of
    "percentile", "basic" and "bca" are therefore expanded (Hesterberg 2015) to
    :math:`\Phi(\mp t / \sqrt s)`, for "bca" before the correction for bias and acceleration. t is
    the Student quantile of method "normal", and s the variance of the replicates of a mean over its
    unbiased variance (math [29]). For normal rows this gives the t interval.

    The quantile at p is taken at rank p (B + 1) of B replicates, or at the extreme one where this
    rank is outside 1 to B. The extremes are used in bins of four rows or fewer with 1,000
    replicates (t is large there): such intervals are too short for their level. A bin of one row
    has no interval. Replicates in which a bin was empty are left out: ``n_empty`` counts them.

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
        corners, and ``second_effect_band`` (edge_a, edge_b, ci_bound), over all cells with at least
        two rows.

    Raises
    ------
    ValueError
        ``level`` outside (0, 1); an effect without the moments of standard errors.

    Notes
    -----
    Math [27]: the band is the curve plus and minus Student's quantile times its standard error, at
    the edges of the cells, which do not depend on the bins (with ``weighting="rows"`` of the bins).
    Every edge has its own degrees of freedom; the level of the quantile is the same everywhere. It
    is chosen so that the band contains the curve at all edges at once, by simulation of errors that
    are beyond the band at one edge at least. With groups all edges share one estimate of scale.
    Effects of bins are independent, except with groups: each has Student's quantile at
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


# --- standard errors and covariances --------------------------------------------------------------


@validated
def std_error(
    effect: xr.Dataset,
    local: xr.Dataset | None = None,
    *,
    groups: GroupsOrDesign | None = None,
    model: Any = None,
    X: Any = None,
    uncertainty: str = "both",
    progress: bool = True,
) -> xr.Dataset:
    r"""Standard errors of a result: of the rows, and of the parameters of the model.

    By default the source of variance is the sampling of rows, and the model is taken as given. With
    ``model`` the errors hold the uncertainty of its parameters (delta method, math [80]). Errors of
    bin effects include the choice of edges by `AdaptiveBins` and `OptimalBins` (math [24]; not with
    ``groups`` and ``weighting="rows"``). Those of the heterogeneity take the bins as fixed, and are
    too small for bins that were chosen on the same rows.

    Parameters
    ----------
    effect : Dataset
        What `rhale` returned; or what `ale2` returned, which gets ``second_effect_se`` for its
        cells and ``surface_se`` (math [59]). Profiles such as `pdp` and H-statistics (math [62])
        already have standard errors of their rows; with ``groups`` and ``model`` they get others
        (``curve_se``, ``h2_se`` and so on), without ``local``. Effects of several models
        (`over_models`, `bootstrap_refit`, `cross_effects`) get the error of models and rows
        together, ``curve_se``, and its parts ``curve_se_model`` and ``curve_se_rows`` (math [82] to
        [85]).
        What has errors by groups, or by parameters, keeps them where it is given alone; with
        ``local`` they are replaced.
    local : Dataset, optional
        The local effects that ``effect`` was made from; needed only with ``groups`` and ``model``.
        Of a profile of `pdp` the ICE curves (`ice`): needed with ``groups``, unless there is a
        ``model``, and with ``model`` if there are weights. The results of `ice`, `m_plot`,
        `shap_dependence` and `ale2` keep their rows, and need nothing else.
    groups : array_like of shape (n_rows,) or SurveyDesign, optional
        Group (cluster) of every row; a Series is aligned by its labels. Rows of one group may
        depend on each other. Standard errors are then cluster-robust, from the summed influences of
        each group, each corrected for the leverage of the group (CR2, Bell and McCaffrey 2002;
        residuals are taken from the means of bins, or of blocks of cells with at least 10 groups
        each). Their degrees of freedom depend on the shares of the groups: see ``effect_df``.
        ``local`` may be in chunks, which are read once (math [101]). Effects and profiles in memory
        take the design of a survey, too (math [117]).
    model : results of statsmodels or Parametric, optional
        The fitted model that ``local`` or ``effect`` was made from, with the covariance of its
        parameters as it was fitted (model-based, robust or clustered). Results of OLS, WLS, GLS,
        GLM, discrete models, quantile regression, GEE, mixed models (fixed effects) and GLMGam (at
        the smoothing that was chosen) are taken as they are; for others see `Parametric`.
    X : table, or array_like of shape (n_rows, n_columns), optional
        The table that ``local`` or ``effect`` was made from; needed with ``model``.
    uncertainty : {"both", "rows", "parameters"}
        With ``model``: "parameters" holds the rows fixed, as Stata's ``margins`` does; "rows" holds
        the model fixed. "both" adds them. If the rows are those of the fit and the model has scores
        of its rows, the influences of a row on estimates and parameters are added before they are
        squared ("unconditional"), which is right under misspecification and with ``groups``. A
        covariance that was fitted as robust stays as it is, and its clusters are the groups;
        otherwise the two variances are added, which is right for other rows than those of the fit,
        or if the model's conditional mean is right.
    progress : bool, default True
        Show a progress bar while a ``model`` is asked for its derivatives by the parameters, if it
        takes more than two seconds; of effects in bins only.

    Returns
    -------
    Dataset
        ``effect`` with, over (feature, bin), ``effect_se``, from the variances within the cells
        (with ``weighting="rows"`` sigma_k / sqrt(n_k)), and ``heterogeneity_se``, from the fourth
        moment (both math [24]), and from linear bins ``slope_se``; over (feature, edge),
        ``curve_se`` of the curve with its centring (math [26] for ``centering="mean"``) and
        ``curve_se_start`` of the zero-start curve at the edges of bins (math [25]); over (feature),
        ``average_effect_se``. With weights n_k is the effective number of rows, math [6]. The
        standard error of a bin with one row is NaN. With ``weighting="rows"``, ``curve_se_start``
        is then NaN beyond that bin, and ``curve_se`` is NaN everywhere unless the curve starts at
        zero. A cell with one row takes the variance of its neighbours. With ``groups`` also
        ``effect_cov`` (feature, bin, bin_other) and ``curve_cov`` (feature, edge, edge_other),
        which can otherwise be computed from the bins (`vcov`). For linear bins also ``slope_cov``
        and ``effect_slope_cov`` (feature, bin, bin_other) and ``curve_slope_cov`` (feature, edge,
        bin_other); ``bin_other`` indexes the slopes. ``effect_df``, ``slope_df``,
        ``heterogeneity_df``, ``curve_df`` and ``average_effect_df`` are the degrees of freedom of
        Bell and McCaffrey, and ``effect_overlap`` (feature, bin, bin_other) is what those of two
        bins have in common. With ``model`` these covariances and degrees of freedom, too, and the
        parts of every standard error: ``effect_se_rows``, ``effect_se_model`` and so on. Profiles
        get ``curve_se``, ``curve_cov``, ``curve_df`` and the parts of ``curve_se``; surfaces the
        parts of ``second_effect_se`` and ``surface_se``, and H-statistics of kind "pdp" those of
        all statistics. By groups, surfaces also get ``second_effect_df``, ``surface_df`` and the
        coordinate ``group`` of their rows, by which bands, tests and comparisons go (math [98]). A
        model is not for `shap_dependence`. The attribute ``source`` of a standard error says what
        it holds: "rows", "parameters", or "rows and parameters".

    Raises
    ------
    ValueError
        ``effect`` is not an effect; ``groups`` without ``local``, of another length, missing in
        some row, or fewer than two; no bin with more groups than parameters (a mean, or a mean and
        a slope); ``local`` of another model, of other rows, or of another output or scale.
    TypeError
        ``effect`` or ``local`` is not a Dataset.

    Warns
    -----
    UserWarning
        Bins with no more groups than parameters: their errors are NaN, and those of a curve where
        it depends on them. Groups that are few.

    Notes
    -----
    In a linear bin the standard error of the slope is heteroscedasticity-consistent (White 1980):
    the spread may change along the bin. With ``weighting="rows"`` the effect and its standard error
    are those of the line at the middle of the bin. ``heterogeneity_se`` treats the line as known.

    ``curve_se`` is not ``curve_std``. ``curve_se`` is the uncertainty of the average curve and
    decreases with the number of rows. ``curve_std`` is the spread between rows and does not
    decrease. Do not use ``curve_se_start`` for a centred curve: it is 0 at the left edge by
    construction, and too small or too large elsewhere.

    References
    ----------
    Note of July 2021, section 2, for sigma / sqrt(n); Apley and Zhu (2020) for the centring.
    White (1980), *Econometrica* 48, 817-838. Liang and Zeger (1986), *Biometrika* 73, 13-22.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> local = rs.local_effects(lambda X: 2 * X[:, 0] + 4 * X[:, 0] * X[:, 1], X)
    >>> effect = rs.std_error(rs.rhale(local, bins=rs.EqualWidthBins(4)))
    >>> effect["effect_se"].sel(feature="x0").round(2).values
    array([0.23, 0.22, 0.19, 0.18])
    """
    if local is not None and not isinstance(local, xr.Dataset):  # groups in its position
        raise TypeError(
            f"local must be the Dataset that local_effects(model, X) returns; got "
            f"{type(local).__name__}. Groups are named: std_error(effect, local, groups=...)."
        )
    fitted = None if model is None else Fitted.from_model(model, X, uncertainty)
    if fitted is None and X is not None:
        raise ValueError(
            "X must come with model; got X alone. Without a model leave it out: the standard "
            "errors are those of the rows."
        )
    if fitted is not None:
        frequency = effect.attrs.get("weight_kind") == "frequency"
        fitted = fitted._replace(progress=progress, frequency=frequency)
        fitted, groups = fitted.with_groups(groups)
        # Rows are selected below by feature; each keeps its number in X.
        local = None if local is None else fitted.numbered(local)
        if local is not None and groups is not None:
            fitted, groups = fitted.with_codes(groups, local)
        if PROFILE.holds(effect) and "x" in effect and "obs" in effect.dims:
            effect = fitted.numbered(effect, "effect")
            with_errors: xr.Dataset = _std_error(effect, local, groups=groups, fitted=fitted)
            return with_errors.drop_vars(ROW_NUMBER)
    return _std_error(effect, local, groups=groups, fitted=fitted)


@over_outputs
@over_row_sets
def _std_error(
    effect: xr.Dataset,
    local: xr.Dataset | None,
    *,
    groups: GroupsOrDesign | None,
    fitted: Fitted | None,
) -> xr.Dataset:
    """`std_error` of one output and of features with the same rows."""
    out: xr.Dataset = method("std_error", effect)(effect, local, groups, fitted)
    return out


@validated
def vcov(
    effect: xr.Dataset, feature: str | int | None = None, *, of: str = "curve"
) -> xr.DataArray:
    """Covariance matrix of the estimates of one feature, over edges or over bins.

    Parameters
    ----------
    effect : Dataset
        What `rhale`, `std_error` or `ale2` returned. If `std_error` was given groups, the
        covariance is cluster-robust. Of effects of several models it is over (grid, grid_other); of
        draws it holds these rows as given.
    feature : str or int
        Name or number; leave it out for a surface, and for a result of one feature.
    of : {"curve", "effect"}
        "curve": the curve with its centring (math [26]). "effect": the effects of the bins. These
        are independent, except with groups and for the steps between levels, which share rows (math
        [46]). For `ale2`, "curve" is the surface, with at most 2500 corners, and "effect" the
        second differences of the cells (math [59]).

    Returns
    -------
    DataArray
        Over (edge, edge_other) or (bin, bin_other), without the padding of other features; its
        diagonal is the square of ``curve_se`` or ``effect_se``. NaN where there is no curve. For a
        surface, of either kind, over (edge_a, edge_b, edge_a_other, edge_b_other).

    Raises
    ------
    %(unknown feature)s
    ValueError
        Unknown ``of``; an effect without the moments of standard errors; a surface of too many
        corners, or of several outputs.
    TypeError
        No ``feature`` given for a result that is not a surface.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> local = rs.local_effects(lambda X: 2 * X[:, 0] + 4 * X[:, 0] * X[:, 1], X)
    >>> effect = rs.std_error(rs.rhale(local, bins=rs.EqualWidthBins(2)))
    >>> covariance = rs.vcov(effect, "x0")
    >>> bool(np.allclose(np.sqrt(np.diagonal(covariance)), effect["curve_se"].sel(feature="x0")))
    True
    """
    check_choice("of", of, ("curve", "effect"))
    out: xr.DataArray = method("vcov", effect)(effect, feature, of)
    units = effect[of].attrs.get("units") if of in effect else None
    return out.assign_attrs(units=f"({units})^2") if units else out


# --- bootstrap ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ResamplingOptions(Options):
    """How `bootstrap` draws replicates, and what it estimates in each.

    Parameters
    ----------
    scheme : {"multinomial", "bayesian", "poisson"}
        "multinomial": as many rows as there are, drawn with replacement (Efron 1979). "bayesian":
        exponential weights, with which no bin is ever empty (Rubin 1981). "poisson": every row a
        Poisson number of times.
    chains : int, default 4
        Independent streams, so that ArviZ can compare them: ``arviz.summary(boot)``,
        ``arviz.plot_forest(boot)``, ``arviz.hdi(boot)``.
    rebin : bool, default False
        Choose the edges again in every replicate, by the rule of ``effect``. Results are on a grid
        of ``n_grid`` points. The numbers of draws enter as precision weights, because two draws of
        one row are not independent observations; ``min_obs`` of the rule is scaled with the
        effective number of rows.
    n_grid : int, default 101
        Number of grid points with ``rebin``.
    studentize : bool, default False
        Also compute the standard errors of every replicate, for studentised intervals. Not
        available with ``rebin``, nor with linear bins and ``weighting="rows"``.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> local = rs.local_effects(lambda X: X[:, 0] * X[:, 1], X)
    >>> resampling = rs.ResamplingOptions(scheme="bayesian", chains=2)
    >>> boot = rs.bootstrap(rs.rhale(local), local, n_resamples=20, resampling=resampling, rng=0)
    >>> boot.sizes["chain"]
    2
    """

    scheme: str = "multinomial"
    chains: int = 4
    rebin: bool = False
    n_grid: int = GRID
    studentize: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("scheme", self.scheme, resample.SCHEMES)


@validated
@seeded
@over_outputs
@over_row_sets
def bootstrap(
    effect: xr.Dataset,
    local: xr.Dataset | None = None,
    *,
    n_resamples: int = 1000,
    groups: ArrayLike | None = None,
    strata: ArrayLike | None = None,
    resampling: ResamplingOptions = ResamplingOptions(),
    statistic: Callable[[xr.Dataset], xr.Dataset | xr.DataArray] | None = None,
    rng: np.random.Generator | int | None = None,
    progress: bool = True,
    **fields: Any,
) -> xr.Dataset:
    r"""Bootstrap replicates of all estimates, by resampling the rows with the model as given.

    Parameters
    ----------
    effect, local : Dataset
        The effect that `rhale` or `std_error` made, and the local effects that it was made from, in
        any order; or `pdp`, and what `ice` returned of the same rows on the same grid. Results that
        keep their rows are passed alone: `ice`, `m_plot`, `shap_dependence`, a surface of `ale2`,
        and H-statistics that were made with ``keep_answers=True``. With honest bins the rows on
        which the edges were chosen are left out. Local effects in chunks are read once, with
        ``scheme="poisson"`` and without groups, strata, rebin and studentize (math [100]).
    n_resamples : int, default 1000
        Replicates of all chains together. Where ``chains`` does not divide it, there are as many
        chains as do: 999 replicates are 3 chains of 333.
    groups : array_like of shape (n_rows,), optional
        Group of every row; rows of one group, which may depend on each other, are drawn together. A
        Series is aligned by its labels.
    strata : array_like of shape (n_rows,), optional
        Stratum of every row. From each stratum as many rows, or groups, are drawn as it has.
    resampling : ResamplingOptions, optional
        How replicates are drawn, and what is estimated in each. Its fields can be given directly,
        as in ``scheme="bayesian"``.
    statistic : callable, optional
        A function of the Dataset of all replicates, called once. What it returns, over (chain,
        draw) and any other dimensions, is added to the result.
    rng : Generator, int or None
        Source of the weights, or its seed. Every replicate has its own random stream: results do
        not depend on the number of threads or on the available memory. Several outputs get the same
        weights. None draws a new seed; ``seed`` in the attributes of the result reproduces it (-1
        with a Generator).
    %(progress)s

    Returns
    -------
    Dataset
        Over (chain, draw, feature, bin): ``effect``, ``heterogeneity`` and, with linear bins,
        ``slope``; over (chain, draw, feature, edge): ``curve``; over (chain, draw, feature):
        ``average_effect``, ``heterogeneity_index``, ``heterogeneity_output``, ``importance``,
        ``aled``, ``aler_min``, ``aler_max`` (see `effect_sizes`) and ``n_empty``, the number of
        bins without rows in a replicate, or of linear bins with rows at a single value. Their
        estimates are NaN and, with ``weighting="rows"``, the curve is NaN, too. A cell of the curve
        keeps its original estimate if none of its rows is drawn. With ``studentize`` also the
        standard errors ``effect_se``, ``heterogeneity_se``, ``curve_se`` and ``average_effect_se``.
        With ``rebin``: ``effect``, ``heterogeneity`` and ``curve`` over (chain, draw, feature,
        grid) at ``grid_value``, ``n_bins`` of every replicate, and ``edge_frequency`` (feature,
        grid_cell): the share of replicates with an edge between two neighbouring grid points. For a
        surface: ``second_effect`` (chain, draw, edge_a, edge_b), NaN in cells without rows in the
        replicate; ``n_filled`` (chain, draw), the number of these cells; and ``surface`` (chain,
        draw, edge_a, edge_b), in which these cells are filled as by `ale2`. For H-statistics:
        ``h2``, ``h``, ``h2_overall`` and the others over (chain, draw, ...).

        For profiles: ``curve`` and ``curve_std`` over (chain, draw, feature, grid), centred anew in
        every replicate, ``heterogeneity_output`` and ``importance`` over (chain, draw, feature);
        for M-plots and SHAP dependence also ``n_empty``, the number of grid points without a curve
        in a replicate. Bins, and the smoothing parameter and knots of splines, are held fixed.

    Raises
    ------
    ValueError
        ``local`` is not what ``effect`` was made from; groups or strata have another length or are
        missing in some row; a group is in two strata; ``studentize`` where there are no standard
        errors; ``rebin`` with frequency weights.
    TypeError
        ``local`` or ``effect`` is not a Dataset.

    Notes
    -----
    The source of variance is the sampling of rows. An additive model has no heterogeneity, and the
    bootstrap intervals of its bin effects correctly have width 0. They do not include the
    uncertainty of the model itself: see `bootstrap_refit`.

    Simulated coverage by kind of process, and what to use where this fails: docs/validity.md.

    References
    ----------
    Efron (1979), *Annals of Statistics* 7, 1-26. Rubin (1981), *Annals of Statistics* 9, 130-134.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> local = rs.local_effects(lambda X: 2 * X[:, 0] + 4 * X[:, 0] * X[:, 1], X)
    >>> effect = rs.std_error(rs.rhale(local, bins=rs.EqualWidthBins(4)))
    >>> boot = rs.bootstrap(effect, local, n_resamples=400, rng=0)
    >>> boot["effect"].sel(feature="x0").std(("chain", "draw")).round(2).values
    array([0.23, 0.21, 0.2 , 0.19])
    >>> effect["effect_se"].sel(feature="x0").round(2).values
    array([0.23, 0.22, 0.19, 0.18])
    """
    seeds = np.random.default_rng(rng).spawn(n_resamples)
    settings = Resampling(
        resampling.scheme,
        groups,
        strata,
        seeds,
        resampling.rebin,
        resampling.studentize,
        resampling.n_grid,
        progress,
    )
    of_rows, result = (effect, None) if local is None else (local, effect)
    drawn = method("bootstrap", effect)(of_rows, result, settings)
    facts = {
        "method": "bootstrap",
        "scheme": resampling.scheme,
        "n_resamples": n_resamples,
        "n_units": drawn.units.n,
        "n_strata": len(drawn.units.strata),
        "source": "rows" if groups is None else "groups of rows",
        "model": "as given",
        **drawn.facts,
        "software": software(),
    }
    if drawn.units.unit is not None:
        # Of a mean over the rows, by the shares of the groups.
        rows = np.ones(len(drawn.units.unit))
        shares = leverage.of_mean(drawn.units.unit, rows, frequency=True)
        facts["units_df"] = leverage.mean_degrees(shares)
    out = in_chains(
        drawn.replicates.assign_attrs({**drawn.effect.attrs, **facts}),
        chains_of(n_resamples, resampling.chains),
    )
    if statistic is not None:
        out = out.merge(_named(statistic(out), out))
    return out


def _named(computed: xr.Dataset | xr.DataArray, replicates: xr.Dataset) -> xr.Dataset:
    """What a user's ``statistic`` returned, as a Dataset; an array keeps its name."""
    if not isinstance(computed, xr.Dataset | xr.DataArray):
        raise TypeError(
            f"statistic must return a Dataset or a DataArray of the replicates it is given; got "
            f"{shown(computed)}."
        )
    if isinstance(computed, xr.Dataset):
        return computed
    has_name = computed.name is not None and computed.name not in replicates
    return computed.to_dataset(name=computed.name if has_name else "statistic")
