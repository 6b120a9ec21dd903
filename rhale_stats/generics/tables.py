"""Any result as a table: printed (`summary`), or as pandas frames (`tidy`, `glance`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
import xarray as xr

from rhale_stats.effects.values import asked_for
from rhale_stats.generics.dispatch import method
from rhale_stats.schema.dimensions import with_part_facts
from rhale_stats.schema.parts import over_outputs
from rhale_stats.schema.validation import validated
from rhale_stats.schema.variables import in_order

if TYPE_CHECKING:
    from statsmodels.iolib.summary import Summary


@validated
@over_outputs
def tidy(effect: xr.Dataset, *, level: float = 0.95) -> pd.DataFrame:
    """Any result as a data frame; effects with one row per feature and bin.

    Parameters
    ----------
    effect : Dataset
        What `rhale` or `std_error` returned; standard errors are added where they are missing. Or
        what `pdp` or another profile, `compare` or another test, `effect_sizes`, `regions`,
        `all_regions`, `interaction_matrix`, `ale2` or `h_statistic` returned.
    level : float, default 0.95
        Confidence level. Intervals that `confint` added at this level are used, whatever their
        method; otherwise intervals are estimate ± t std_error (pointwise, central limit theorem,
        math [24]; Student's t with the degrees of freedom of the bin).

    Returns
    -------
    DataFrame
        Columns ``term``, ``bin``, ``bin_left``, ``bin_right``, ``n_obs``, ``estimate``,
        ``std_error``, ``conf_low``, ``conf_high``, ``heterogeneity``, ``heterogeneity_se``,
        ``spread_min`` and ``spread_max`` (smallest and largest ``spread`` within the bin);
        ``slope`` and ``slope_se`` with a rule that makes linear bins, and the results of
        `check_unbiased` and `jump_check`. With categorical features ``level_from`` and ``level_to``
        of a step, empty for other features. A constant feature has no bins and so no rows. For a
        comparison: one line per point, with ``conf_low``, ``conf_high`` and the band; for another
        test the columns of `glance`; for sizes one line per size.

        For regions one line per node: ``term``, ``node``, ``parent``, ``depth``, ``rule``,
        ``n_obs``, ``weight_share``, ``loss``, ``loss_drop`` (by the split that was made),
        ``best_split`` and
        ``best_drop`` (whether or not the split was made), ``p_value``, ``region``; the root has no
        parent, and a node that was split has no region. For interactions one line per pair:
        ``term``, ``conditioning``, ``loss``, ``loss_drop``, ``best_split``, ``p_value``,
        ``p_value_adjusted``. For a surface one line per cell with rows: its bins or levels, and the
        mean second difference as the estimate. For H-statistics one line per feature and per pair:
        ``term``, ``kind``, ``h2``, ``h``, and for each ``h2_std_error``, ``h2_conf_low``,
        ``h2_conf_high`` (or ``h_...``); for their comparisons one line per difference.

        For profiles such as `pdp` one line per grid point: ``term``, ``x`` and, for categories,
        ``level``, ``weight_share``, ``estimate`` (the curve), ``std_error``, ``conf_low``,
        ``conf_high`` and ``spread``. For effects of several models also one line per grid point:
        ``std_error`` with its parts ``std_error_model`` and ``std_error_rows``, and ``effect`` and
        ``heterogeneity`` with their standard errors.

        Some columns are present only when needed. ``statistic`` and ``p_value`` (two-sided, null
        hypothesis: no effect in the bin) require standard errors that include the uncertainty of
        the model; standard errors from the rows alone do not include it. ``reason`` explains values
        that are 0 or missing: a value smaller than the numerical error of the local effects is 0,
        and an H-statistic above 1 as a share is missing.

    Raises
    ------
    ValueError
        ``level`` outside (0, 1).

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> local = rs.local_effects(lambda X: 2 * X[:, 0] + 4 * X[:, 0] * X[:, 1], X)
    >>> effect = rs.rhale(local, bins=rs.EqualWidthBins(2))
    >>> rs.tidy(effect)[["term", "bin", "n_obs", "estimate", "std_error"]].round(2)
      term  bin  n_obs  estimate  std_error
    0   x0    0    218      2.11       0.16
    1   x0    1    282      1.78       0.13
    2   x1    0    256      0.54       0.15
    3   x1    1    244      0.13       0.15
    """
    effect = _turned(effect)
    out: pd.DataFrame = method("tidy", effect)(effect, level)
    return out


@validated
@over_outputs
def glance(
    effect: xr.Dataset, *, level: float = 0.95, percentiles: tuple[float, float] | None = None
) -> pd.DataFrame:
    """One row per feature: average effect with its interval, heterogeneity, range of the curve.

    Parameters
    ----------
    effect : Dataset
        What `rhale` or `std_error` returned; standard errors are added where they are missing. Or
        what `pdp` or another profile, a test, `ale2`, `regions`, `all_regions` or `h_statistic`
        returned.
    level : float, default 0.95
        Confidence level of the intervals, as in `tidy`.
    percentiles : pair of float, default (1, 99)
        Between which percentiles of the rows the range of the curve is taken, of effects in
        bins: a few distant rows decide nothing. Cells with inner rows count whole.

    Returns
    -------
    DataFrame
        Columns ``term``, ``kind``, ``n_bins``, ``n_spread_bins`` (bins of the ``spread``),
        ``n_obs``, ``estimate`` (mean of the local effects over the rows), ``std_error``,
        ``conf_low``, ``conf_high``, ``heterogeneity`` (root mean
        square over rows of the bins' standard deviations), ``heterogeneity_output`` and
        ``heterogeneity_index`` (math [10]), ``curve_min``, ``curve_max``; ``statistic``,
        ``p_value`` and ``reason`` only when needed, as in `tidy`. NaN for a constant feature. The
        levels of a nominal feature have no order of their own, so everything that depends on their
        order is NaN: the average effect, its standard error, ``heterogeneity_output`` and
        ``heterogeneity_index``. For a test: ``term``, ``statistic``, ``df`` if there is one,
        ``p_value``, ``p_value_adjusted``, and ``reason`` if some p-value is missing.

        For regions: ``term``, ``n_regions``, ``n_obs``, ``loss`` of all rows, ``loss_left`` (mean
        over the regions, by their weight), ``loss_drop``, the relative difference of the two,
        ``first_split``, empty where there is none, ``p_value`` of the best first split, whether or
        not it was made; and the settings ``loss_kind``, ``test``, ``level``, ``max_depth``,
        ``min_obs``, ``min_drop``, ``bin_rule``.

        For profiles such as `pdp`: ``term``, ``kind``, ``n_grid``, ``n_obs``, ``importance``,
        ``heterogeneity_output``, ``curve_min``, ``curve_max``. For effects of several models
        ``n_members`` and ``n_failed``, and the parts of the standard error; ``statistic`` and
        ``p_value`` of refits and folds only.

        For a surface of `ale2`: ``term``, ``feature_a``, ``feature_b``, ``n_obs``, ``n_cells``,
        ``n_empty`` (cells without rows), ``size`` (the standard deviation of the surface over the
        rows), ``surface_max`` (its largest absolute value) and ``z_max`` (the largest absolute
        value divided by its standard error).

        For H-statistics one line: ``h2`` and ``h`` of all interactions together with their standard
        errors and intervals, ``kind``, ``n_features``, ``n_rows``, ``n_rows_total``,
        ``n_model_calls``,
        ``n_model_rows``.

    Raises
    ------
    ValueError
        ``level`` outside (0, 1).

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> local = rs.local_effects(lambda X: 2 * X[:, 0] + 4 * X[:, 0] * X[:, 1], X)
    >>> rs.glance(rs.rhale(local))[["term", "n_bins", "estimate", "heterogeneity"]].round(2)
      term  n_bins  estimate  heterogeneity
    0   x0       1      1.98           2.27
    1   x1       1      0.29           2.28
    """
    effect = _turned(effect)
    out: pd.DataFrame = method("glance", effect)(asked_for(effect, percentiles), level)
    return out


@validated
@over_outputs
def summary(
    effect: xr.Dataset,
    feature: str | int | None = None,
    *,
    level: float = 0.95,
    percentiles: tuple[float, float] | None = None,
) -> Summary:
    """Printed table: one line per feature, or per bin of one feature; for regions the tree.

    The header names the uncertainty that the standard errors include. t and P are printed only if
    it includes the model; a note then says how much of the variance is due to it. Tests such as
    `wald_test` print their P with either. At most five notes follow; warnings come first.

    The results of `check_unbiased` and `jump_check`, if they were run, are printed below the table.
    A warning names the features whose heterogeneity is biased in some bin by more than its standard
    error; without a check only the part of the bias that is linear in the feature is detected.

    For regions there is one line per node, indented below its parent: rows, loss, the best split
    with its relative drop of the loss and its p-value, and the outcome (a split, or a region with
    its number). For interactions there is one line per feature, with the drop by the best split of
    every other column. For H-statistics there is one line per feature and per pair, the largest
    first.

    Parameters
    ----------
    effect : Dataset
        What `rhale` or `std_error` returned; standard errors are added where they are missing. Or
        what `pdp` or another profile, a test, `effect_sizes`, `regions`, `all_regions`,
        `interaction_matrix`, `ale2` or `h_statistic` returned.
    feature : str or int, optional
        Show the bins of this feature, or only its regions, interactions or pairs.
    level : float, default 0.95
        Of the intervals.
    percentiles : pair of float, optional
        As in `glance`.

    Returns
    -------
    statsmodels.iolib.summary.Summary
        Prints as text; ``as_html()``, ``as_latex()`` and ``as_csv()`` give other formats, and
        notebooks show HTML. The attribute ``notes`` holds all notes, also those that are not
        printed.

    Raises
    ------
    %(unknown feature)s
    ValueError
        ``level`` outside (0, 1).

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> local = rs.local_effects(lambda X: 2 * X[:, 0] + 4 * X[:, 0] * X[:, 1], X)
    >>> print(rs.summary(rs.rhale(local)))  # doctest: +ELLIPSIS
                      RHALE: effects on output...
    >>> example = rs.simulate.TwoRegimes()
    >>> local = rs.local_effects(None, example.sample(500, rng=0), jacobian=example.jacobian)
    >>> print(rs.summary(rs.regions(local, "x1", test=None)).tables[1])
    =========================================================================================
                                rows       loss best split       drop           P
    -----------------------------------------------------------------------------------------
    all rows                     500      17.98     x3 ≤ 0     100.0%                   split
    |  x3 ≤ 0                    253          0                                      region 0
    |  x3 > 0                    247          0                                      region 1
    =========================================================================================
    """
    effect = _turned(effect)
    return method("summary", effect)(asked_for(effect, percentiles), feature, level)


def _turned(results: Any) -> Any:
    """The result with its dimensions in order; a part gets its own attributes."""
    return with_part_facts(in_order(results)) if isinstance(results, xr.Dataset) else results
