"""Any result as a table: printed (`summary`), or as pandas frames (`tidy`, `glance`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
import xarray as xr

from rhale_stats.arguments.checks import check_level
from rhale_stats.generics.dispatch import method
from rhale_stats.schema.dimensions import of_part
from rhale_stats.schema.door import checked
from rhale_stats.schema.parts import each_part
from rhale_stats.schema.variables import in_order

if TYPE_CHECKING:
    from statsmodels.iolib.summary import Summary


@checked
@each_part
def tidy(effect: xr.Dataset, *, level: float = 0.95) -> pd.DataFrame:
    """Bin effects as a table, one row a feature and bin.

    Parameters
    ----------
    effect : Dataset
        What `rhale` or `std_error` returned; standard errors are added where they are missing. Or
        what `compare`, another test, `effect_sizes`, `regions`, `all_regions`,
        `interaction_matrix`, `ale2` or `h_statistic` returned.
    level : float, default 0.95
        Of the intervals: those that `confint` gave the effect, by whatever method, where they are
        of this level; otherwise estimate ± t std_error (pointwise, central limit theorem, math
        [24]; Student's t with the degrees of freedom of the bin).

    Returns
    -------
    DataFrame
        Columns ``term``, ``bin``, ``bin_left``, ``bin_right``, ``n_obs``, ``estimate``,
        ``std_error``, ``conf_low``, ``conf_high``, ``heterogeneity``, ``heterogeneity_se``;
        ``slope`` and ``slope_se`` from a rule that makes linear bins, and what `check_unbiased` and
        `jump_check` found. With categorical features ``level_from`` and ``level_to`` of a step,
        empty for others. A constant feature has no bins and so no rows. Of a comparison: its
        points, with ``conf_low``, ``conf_high`` and the band; of another test the columns of
        `glance`; of sizes a line a size.

        Of regions a line a node: ``term``, ``node``, ``parent``, ``depth``, ``rule``, ``n_obs``,
        ``weight_share``, ``loss``, ``loss_drop`` (by the split that was made), ``best_split`` and
        ``best_drop`` (made or not), ``p_value``, ``region``; the root has no parent, and a node
        that was split no region. Of interactions a line a pair: ``term``, ``conditioning``,
        ``loss``, ``loss_drop``, ``best_split``, ``p_value``, ``p_value_adjusted``. Of a surface a
        line a cell with rows: its bins or levels, and the mean second difference as an effect. Of
        H-statistics a line a feature and a pair: ``term``, ``kind``, ``h2``, ``h`` and of each
        ``h2_std_error``, ``h2_conf_low``, ``h2_conf_high``; of comparisons a line a difference.

        Of profiles such as `pdp` a line a point of the grid: ``term``, ``x`` and, of categories,
        ``level``, ``weight_share``, ``estimate`` (the curve), ``std_error``, ``conf_low``,
        ``conf_high`` and ``spread``.

        Two columns are there only where they have something to say. ``statistic`` and ``p_value``
        (of no effect in the bin, two-sided) come with standard errors that hold the model: those
        of the rows alone say nothing of how well the model is known. ``reason`` says why a value
        is 0 or missing, where some value is: what is smaller than the numerical error of the local
        effects is 0, and the share of a pair of H-statistics above 1 is missing.

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
    check_level(level)
    effect = _turned(effect)
    out: pd.DataFrame = method("tidy", effect)(effect, level)
    return out


@checked
@each_part
def glance(effect: xr.Dataset, *, level: float = 0.95) -> pd.DataFrame:
    """One row a feature: average effect with its interval, heterogeneity, extent of the curve.

    Parameters
    ----------
    effect : Dataset
        What `rhale` or `std_error` returned; standard errors are added where they are missing. Or
        what a test, `ale2`, `regions`, `all_regions` or `h_statistic` returned.
    level : float, default 0.95
        Of the intervals for the average effect, as in `tidy`.

    Returns
    -------
    DataFrame
        Columns ``term``, ``kind``, ``n_bins``, ``n_obs``, ``estimate`` (mean of the local effects
        over the rows), ``std_error``, ``conf_low``, ``conf_high``, ``heterogeneity`` (root mean
        square over rows of the bins' standard deviations), ``heterogeneity_output`` and
        ``heterogeneity_index`` (math [10]), ``curve_min``, ``curve_max``; ``statistic``,
        ``p_value`` and ``reason`` where they have something to say, as in `tidy`. NaN for a
        constant feature. Of a nominal feature, whose levels have no order of their own, what
        depends on their order is NaN: average, its error, ``heterogeneity_output`` and
        ``heterogeneity_index``. Of a test: ``term``, ``statistic``, perhaps ``df``, ``p_value``,
        ``p_value_adjusted``, and ``reason`` where some p-value is missing.

        Of regions: ``term``, ``n_regions``, ``n_obs``, ``loss`` of all rows, ``loss_left`` (mean
        over the regions, by their weight), ``loss_drop`` from one to the other, ``first_split``,
        empty where there is none, ``p_value`` of the best first split, made or not; and the
        settings ``loss_kind``, ``test``, ``level``, ``max_depth``, ``min_obs``, ``min_drop``,
        ``bin_rule``.

        Of profiles such as `pdp`: ``term``, ``kind``, ``n_grid``, ``n_obs``, ``importance``,
        ``heterogeneity_output``, ``curve_min``, ``curve_max``.

        Of a surface of `ale2`: ``term``, ``feature_a``, ``feature_b``, ``n_obs``, ``n_cells``,
        ``n_empty`` (cells without rows), ``size`` (the standard deviation of the surface over the
        rows), ``surface_max`` (its largest absolute value) and ``z_max``, the largest one in
        standard errors.

        Of H-statistics one line: ``h2`` and ``h`` of all interactions with their standard errors
        and intervals, ``kind``, ``n_features``, ``n_rows``, ``n_rows_total``, ``n_model_calls``,
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
    check_level(level)
    effect = _turned(effect)
    out: pd.DataFrame = method("glance", effect)(effect, level)
    return out


@checked
@each_part
def summary(
    effect: xr.Dataset, feature: str | int | None = None, *, level: float = 0.95
) -> Summary:
    """Printed table: a line a feature, or a line a bin of one feature; of regions the tree.

    The head says which uncertainty the standard errors hold. t and P are printed only where that
    includes the model; tests such as `wald_test` treat the model as given and print their P. At
    most five notes follow, what makes a number invalid first.

    What `check_unbiased` and `jump_check` found is shown below the table, where they were run. A
    warning names the features whose heterogeneity is biased in some bin by more than its standard
    error; without a check only the part of the bias that is linear in the feature is known.

    Of regions there is a line a node, indented below the one that it is part of: rows, loss, the
    best split with the relative drop of the loss that it brings and its p-value, and what became
    of it, a split or a region of that number. Of interactions there is a line a feature, with the
    drop by the best split of every other column. Of H-statistics there are lines of features and of
    pairs, the largest first.

    Parameters
    ----------
    effect : Dataset
        What `rhale` or `std_error` returned; standard errors are added where they are missing. Or
        what a test, `effect_sizes`, `regions`, `all_regions`, `interaction_matrix`, `ale2` or
        `h_statistic` returned.
    feature : str or int, optional
        Show the bins of this feature; its regions, interactions or pairs only.
    level : float, default 0.95
        Of the intervals.

    Returns
    -------
    statsmodels.iolib.summary.Summary
        Prints as text; ``as_html()``, ``as_latex()``, ``as_csv()`` and notebooks work. Its
        ``notes`` are all notes, also those that are not printed.

    Raises
    ------
    KeyError
        Unknown feature.
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
    >>> print(rs.summary(rs.regions(local, "x1")).tables[1])
    =========================================================================================
                                rows       loss best split       drop           P
    -----------------------------------------------------------------------------------------
    all rows                     500      17.98     x3 ≤ 0     100.0%                   split
    |  x3 ≤ 0                    253          0                                      region 0
    |  x3 > 0                    247          0                                      region 1
    =========================================================================================
    """
    check_level(level)
    effect = _turned(effect)
    return method("summary", effect)(effect, feature, level)


def _turned(results: Any) -> Any:
    """Results with their dimensions in order, of one output or region with its own attributes."""
    return of_part(in_order(results)) if isinstance(results, xr.Dataset) else results
