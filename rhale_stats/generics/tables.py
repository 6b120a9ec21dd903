"""Any result as a table, as data frames, as a short display, or in one tree with others."""

from __future__ import annotations

from html import escape
from typing import Any, cast

import pandas as pd
import xarray as xr

from rhale_stats.arguments.words import shown
from rhale_stats.effects.values import asked_for
from rhale_stats.generics.dispatch import METHODS, function_of, method
from rhale_stats.printing import text
from rhale_stats.schema.dimensions import PARTS, with_part_facts
from rhale_stats.schema.features import feature_names
from rhale_stats.schema.kinds import EFFECT, EXPLANATION, H_DIFFERENCE, SIZES, kind_of
from rhale_stats.schema.notes import PrintedTable, Summary
from rhale_stats.schema.parts import over_outputs
from rhale_stats.schema.validation import validated
from rhale_stats.schema.variables import in_order, software

# Of intervals, where neither a user nor the result says otherwise.
LEVEL = 0.95


@validated
@over_outputs
def tidy(effect: xr.Dataset, *, level: float | None = None) -> pd.DataFrame:
    """Any result as a data frame; effects with one row per feature and bin.

    Parameters
    ----------
    effect : Dataset
        What `rhale` or `std_error` returned; standard errors are added where they are missing. Or
        what `pdp` or another profile, `compare` or another test, `effect_sizes`, `regions`,
        `all_regions`, `interaction_matrix`, `ale2` or `h_statistic` returned.
    level : float, optional
        Confidence level, by default that of the intervals of the result, or else 0.95. Intervals
        that `confint` added at this level are used, whatever their method; otherwise intervals are
        estimate ± t std_error (pointwise, central limit theorem, math [24]; Student's t with the
        degrees of freedom of the bin).

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
    out: pd.DataFrame = method("tidy", effect)(effect, _level_of(effect, level))
    return out


@validated
@over_outputs
def glance(
    effect: xr.Dataset,
    *,
    level: float | None = None,
    percentiles: tuple[float, float] | None = None,
) -> pd.DataFrame:
    """One row per feature: average effect with its interval, heterogeneity, range of the curve.

    Parameters
    ----------
    effect : Dataset
        What `rhale` or `std_error` returned; standard errors are added where they are missing. Or
        what `pdp` or another profile, a test, `ale2`, `regions`, `all_regions` or `h_statistic`
        returned.
    level : float, optional
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
        ``n_model_calls``, ``n_model_rows``.

    Raises
    ------
    ValueError
        ``level`` outside (0, 1).

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> effect = rs.rhale(lambda X: 2 * X[:, 0] + 4 * X[:, 0] * X[:, 1], X)
    >>> rs.glance(effect)[["term", "n_bins", "estimate", "heterogeneity"]].round(2)
      term  n_bins  estimate  heterogeneity
    0   x0       1      1.98           2.27
    1   x1       1      0.29           2.28
    """
    effect = _turned(effect)
    level = _level_of(effect, level)
    out: pd.DataFrame = method("glance", effect)(asked_for(effect, percentiles), level)
    return out


@validated
@over_outputs
def summary(
    effect: xr.Dataset,
    feature: str | int | None = None,
    *,
    level: float | None = None,
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
    level : float, optional
        Of the intervals, as in `tidy`.
    percentiles : pair of float, optional
        As in `glance`.

    Returns
    -------
    Summary
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
    level = _level_of(effect, level)
    table: Summary = method("summary", effect)(asked_for(effect, percentiles), feature, level)
    return table


def _level_of(result: Any, level: float | None) -> float:
    """The level that is asked for, or else that of the intervals of the result."""
    if level is not None or not isinstance(result, xr.Dataset):
        return LEVEL if level is None else level
    # The usual difference of an outcome has an interval of its own.
    levels = (
        values.attrs["ci_prob"]
        for name, values in result.variables.items()
        if "ci_prob" in values.attrs and name != "usual_difference_ci"
    )
    return float(next(levels, LEVEL))


def _turned(results: Any) -> Any:
    """The result with its dimensions in order; a part gets its own attributes."""
    return with_part_facts(in_order(results)) if isinstance(results, xr.Dataset) else results


# --- a short display ------------------------------------------------------------------------------


# Of sizes that were compared with those by chance, with their heads.
BY_CHANCE = {"importance_threshold": "threshold", "importance_chance_p_value": "P chance"}
# Columns of a table of sizes; outputs and regions; characters of a Dataset in a notebook.
MAX_COLUMNS, MAX_PARTS, MAX_HTML = 6, 4, 60_000
# Variables that every effect has, and a true effect as well.
EFFECT_NEEDS = {"effect", "heterogeneity", "curve", "heterogeneity_output"}
EFFECT_NEEDS |= {"edge_value", "n_bins", "feature_kind"}


@validated
def show(result: xr.Dataset | xr.DataTree, *, max_features: int = text.MAX_LINES) -> Any:
    """The first lines of the `summary` of any result, the most important features first.

    A terminal shows them as text, a notebook as HTML with the Dataset below; in a script, print
    them. ``effect.rhale`` shows the same. Of the notes only warnings are shown.

    Parameters
    ----------
    result : Dataset, or the DataTree of an explanation
        What any function of this package returned: effects, profiles, a surface, H-statistics,
        regions, a test, sizes, replicates, effects of several models, or local effects.
    max_features : int, default 10
        Maximum number of lines of a table, the most important first. Of several outputs or regions
        the first four are shown, a table each.

    Returns
    -------
    Display
        ``str(display)`` is the text, ``display.head`` a `summary` with these lines, and
        ``display.dataset`` the result. Of an explanation the text that it prints.

    Raises
    ------
    TypeError, ValueError
        ``result`` is not a complete result of this package.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> local = rs.local_effects(lambda X: 2 * X[:, 0] + 4 * X[:, 0] * X[:, 1], X)
    >>> effect = rs.rhale(local, bins=rs.EqualWidthBins(2))
    >>> rs.show(effect, max_features=1).head.tables[1].stubs
    ['x0']
    >>> print(rs.show(effect).head.words[-1])
    More: summary(result), plot(result), tidy(result)
    """
    if isinstance(result, xr.DataTree) and kind_of(result) is EXPLANATION:
        return function_of(EXPLANATION, "show")(result, max_features)
    return Display(_first_lines(result, max_features), cast("xr.Dataset", result))


def text_of(result: xr.Dataset) -> str:
    """`show` as text; for other Datasets, xarray's own text."""
    return repr(_shown_if_known(result))


def html_of(result: xr.Dataset) -> str:
    """`show` as HTML; for other Datasets, xarray's own HTML."""
    return str(_shown_if_known(result)._repr_html_())


def _shown_if_known(result: xr.Dataset) -> Any:
    try:
        return show(result)
    except (TypeError, ValueError, KeyError, IndexError):
        return result


# --- IPython --------------------------------------------------------------------------------------


def load_ipython_extension(ipython: Any) -> None:
    """Let IPython show results of this package by `show`: ``%load_ext rhale_stats``.

    Other Datasets are shown as before.
    """
    formatters = ipython.display_formatter.formatters
    formatters["text/plain"].for_type(
        xr.Dataset, lambda dataset, printer, _cycle: printer.text(text_of(dataset))
    )
    formatters["text/html"].for_type(xr.Dataset, html_of)


def unload_ipython_extension(ipython: Any) -> None:
    """Show all Datasets as xarray does: ``%unload_ext rhale_stats``."""
    for kind in ("text/plain", "text/html"):
        ipython.display_formatter.formatters[kind].pop(xr.Dataset, None)


# --- what is shown --------------------------------------------------------------------------------


class Display:
    """What `show` returns: text in a terminal, HTML in a notebook.

    Parameters
    ----------
    head : Summary
        The first lines, and the functions to call next.
    dataset : Dataset
        The result itself, unchanged.
    """

    def __init__(self, head: Summary, dataset: xr.Dataset) -> None:
        self.head, self.dataset = head, dataset

    def __repr__(self) -> str:
        return self.head.as_text()

    def _repr_html_(self) -> str:
        """The tables, and the Dataset, folded."""
        whole = str(self.dataset._repr_html_())
        if len(whole) > MAX_HTML:
            with xr.set_options(display_max_rows=200):  # type: ignore[no-untyped-call]
                whole = f"<pre>{escape(repr(self.dataset)[:MAX_HTML])}</pre>"
        details = f"<details><summary>Dataset</summary>{whole}</details>"
        return f'<div class="rhale-stats">{self.head.as_html()}{details}</div>'


def _first_lines(result: Any, most: int) -> Summary:
    """The first lines of a result, of the first of its outputs and regions."""
    if not isinstance(result, xr.Dataset):
        raise TypeError(
            f"result must be a Dataset that a function of this package returned; got "
            f"{shown(result)}."
        )
    words = []
    for dim in PARTS:
        n = result.sizes.get(dim, 1)
        if n > MAX_PARTS and "draw" not in result.dims:
            others = f"show(result.isel({dim}=slice({MAX_PARTS}, None)))"
            words.append(f"{n - MAX_PARTS} more {dim}s: {others}.")
            result = result.isel({dim: slice(MAX_PARTS)})
    kind = kind_of(result)
    verbs = {*kind.verbs, *([] if kind is H_DIFFERENCE else ["plot"])} if kind else set()
    more = [verb for verb in ("rhale", "summary", "plot", "tidy") if verb in verbs]
    whole = _summary_of(result) if "draw" not in result.dims else _summary_of_part(result)
    words.append(f"More: {', '.join(f'{verb}(result)' for verb in more) or 'print(result)'}")
    return text.first_lines(whole, most, words)


def _summary_of_part(result: xr.Dataset) -> Summary:
    """The summary of one result; a table of its numbers where it has none."""
    ordered = _turned(result)
    kind = kind_of(ordered)
    # A true effect and the estimates of folds lack some variables of an effect.
    if kind is EFFECT and ("fold" in ordered.dims or not set(ordered.variables) >= EFFECT_NEEDS):
        kind = None
    verbs = METHODS.get(kind, {}) if kind else {}
    if "show" in verbs:
        return cast("Summary", function_of(kind, "show")(ordered))
    if "summary" in verbs and kind is not SIZES:
        level = _level_of(ordered, None)
        return cast("Summary", function_of(kind, "summary")(ordered, None, level))
    if str(ordered.attrs.get("software", "")).startswith("rhale_stats"):
        return _of_features(ordered)
    raise ValueError(
        "result must be a Dataset that a function of this package returned; this one has the "
        f"variables {', '.join(map(str, ordered.data_vars)) or 'none'}."
    )


_summary_of = over_outputs(_summary_of_part)


def _of_features(result: xr.Dataset) -> Summary:
    """A line a feature of a result with one number per feature, such as errors; else variables."""
    columns = [
        str(name)
        for name, values in result.data_vars.items()
        if values.dims == ("feature",)
        and values.dtype.kind in "fiu"
        and not str(name).endswith("_corrected")
    ]
    if not columns:
        return Summary([text.variables_table(result)], [])
    if "chance" in result.attrs:
        # Of the first size alone.
        others = [name for name in columns if not name.endswith(("_threshold", "_p_value"))]
        columns = [*others[:1], *BY_CHANCE, *others[1:]]
    columns = columns[:MAX_COLUMNS]
    heads = [BY_CHANCE.get(name, name) for name in columns]
    numbers = [result[name].values.astype(float) for name in columns]
    lines = [[*map(text.number_text, line)] for line in zip(*numbers, strict=True)]
    title = f"{text.title_of(result)} on {text.output_text(result)}"
    words = (text.rows_text(result),) if "n_rows" in result.attrs else ()
    table = PrintedTable(lines, heads, feature_names(result), title, sizes=numbers[0].copy)
    return Summary([table], [], words)


# --- everything about an analysis in one tree -----------------------------------------------------


@validated
def to_datatree(
    local: xr.Dataset | None = None, effect: xr.Dataset | None = None, **results: xr.Dataset
) -> xr.DataTree:
    """Collect local effects, effects and results made from them in one tree.

    Parameters
    ----------
    local, effect : Dataset, optional
        What `local_effects` and `rhale` returned, or the rows and the result of another method.
        They become the groups "local" and "effect" of the tree.
    **results : Dataset
        Any other results, each under its own name: replicates, tests, sizes, comparisons, truths.
        ArviZ looks for draws in the group "posterior": ``posterior=boot``.

    Returns
    -------
    DataTree
        ``tree["effect"].to_dataset()`` is the Dataset again; ``tree.to_netcdf(path)`` saves all and
        ``xarray.open_datatree(path)`` loads it.

    Raises
    ------
    TypeError
        An argument is not a Dataset.
    ValueError
        Nothing to collect.

    Notes
    -----
    ArviZ 1 takes the tree as it is, as in ``arviz.extract(tree)``. Earlier versions take
    ``arviz.InferenceData.from_datatree(tree)``, and all of them replicates alone, as in
    ``arviz.summary(boot)``.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> local = rs.local_effects(lambda X: X[:, 0] * X[:, 1], X)
    >>> effect = rs.confint(rs.rhale(local))
    >>> tree = rs.to_datatree(local, effect, test=rs.wald_test(effect))
    >>> sorted(tree.children)
    ['effect', 'local', 'test']
    """
    named = {"local": local, "effect": effect}
    datasets = {name: dataset for name, dataset in named.items() if dataset is not None} | results
    for name, dataset in datasets.items():
        if not isinstance(dataset, xr.Dataset):
            raise TypeError(f"{name} must be a Dataset; got {type(dataset).__name__}.")
        if not dataset.variables:
            raise ValueError(f"{name} must hold a result; got an empty Dataset.")
    if not datasets:
        raise ValueError("Give at least one Dataset to collect; got none.")
    tree = xr.DataTree.from_dict({f"/{name}": dataset for name, dataset in datasets.items()})
    tree.attrs["software"] = software()
    return tree
