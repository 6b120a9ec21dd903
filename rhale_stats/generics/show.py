"""A short display of any result: text in a terminal, HTML in a notebook."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import xarray as xr

from rhale_stats.arguments.words import shown
from rhale_stats.generics.dispatch import METHODS, function_of
from rhale_stats.printing.pages import (
    MAX_LINES,
    MAX_PARTS,
    Answer,
    Page,
    PageTable,
    largest_first,
    output,
    rows_text,
    table_of,
    title_of,
    variables_table,
)
from rhale_stats.printing.text import number_text
from rhale_stats.schema.dimensions import OUTPUT, PARTS, with_part_facts
from rhale_stats.schema.features import feature_names
from rhale_stats.schema.kinds import EFFECT, EXPLANATION, kind_of
from rhale_stats.schema.validation import validated
from rhale_stats.schema.variables import in_order

# Columns of a table of sizes or errors.
MAX_COLUMNS = 6
# Of sizes that were compared with those by chance, with their heads.
BY_CHANCE = {"importance_threshold": "threshold", "importance_chance_p_value": "P chance"}
# Variables that every effect has, and a true effect as well.
EFFECT_NEEDS = {"effect", "heterogeneity", "curve", "heterogeneity_output", "edge_value", "n_bins"}


@validated
def show(result: xr.Dataset | xr.DataTree, *, max_features: int = MAX_LINES) -> Any:
    """Show the main numbers of any result: its features by importance, and its uncertainty.

    A terminal shows it as text, a notebook as HTML with the Dataset below it; in a script, print
    it. ``effect.rhale`` shows the same. `summary` gives all lines and notes.

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
    Answer
        ``str(answer)`` is the text; ``answer.dataset`` is the result. Of an explanation the text
        that it prints.

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
    >>> rs.show(rs.std_error(rs.rhale(local, bins=rs.EqualWidthBins(2))))
    RHALE: effects on output
    500 rows; 2 features; local effects: central_difference; bins: EqualWidthBins
    Uncertainty: rows (model as given)
    <BLANKLINE>
        importance      H  avg effect  std err   lowest  highest
    x0        1.11   1.29       1.985   0.1014   -2.145    1.721
    x1      0.2264  1.289      0.2859    0.102  -0.4509   0.2931
    importance: standard deviation of the curve over the rows. H: heterogeneity in the bins times...
    standard deviation of the feature. lowest, highest: of the curve. Sizes of curves are over...
    98 % of the rows.
    <BLANKLINE>
    More: summary(effect, 'x0'), plot(effect, 'x0'), tidy(effect)
    """
    if isinstance(result, xr.DataTree) and kind_of(result) is EXPLANATION:
        return function_of(EXPLANATION, "show")(result, max_features)
    return Answer(_page(result, max_features), cast("xr.Dataset", result))


def text_of(result: xr.Dataset) -> str:
    """`show` as text; for other Datasets, xarray's own text."""
    try:
        return repr(show(result))
    except (TypeError, ValueError, KeyError, IndexError):
        return repr(result)


def html_of(result: xr.Dataset) -> str:
    """`show` as HTML; for other Datasets, xarray's own HTML."""
    try:
        return str(show(result)._repr_html_())
    except (TypeError, ValueError, KeyError, IndexError):
        return str(result._repr_html_())


def _is_ours(result: xr.Dataset) -> bool:
    """Whether a function of this package made the Dataset, by its attributes."""
    return str(result.attrs.get("software", "")).startswith("rhale_stats")


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


# --- kinds of results -----------------------------------------------------------------------------


def _page(result: Any, most: int) -> Page:
    """The page of a result, with its outputs and regions one after the other."""
    if not isinstance(result, xr.Dataset):
        raise TypeError(
            f"result must be a Dataset that a function of this package returned; got "
            f"{shown(result)}."
        )
    for dim in PARTS:
        if dim in result.dims and "draw" not in result.dims:
            return _of_parts(result, dim, most)
    ordered = in_order(with_part_facts(result))
    kind = kind_of(ordered)
    # A true effect and the estimates of folds lack some variables of an effect.
    if kind is EFFECT and ("fold" in ordered.dims or not set(ordered.variables) >= EFFECT_NEEDS):
        kind = None
    if kind is not None and "show" in METHODS.get(kind, {}):
        page: Page = function_of(kind, "show")(ordered, most)
        return page
    if _is_ours(ordered):
        return (_of_features if "feature" in ordered.dims else _other)(ordered, most)
    raise ValueError(
        "result must be a Dataset that a function of this package returned; this one has the "
        f"variables {', '.join(map(str, ordered.data_vars)) or 'none'}."
    )


def _of_parts(result: xr.Dataset, dim: str, most: int) -> Page:
    """The first outputs or regions, each with its tables."""
    n = result.sizes[dim]
    each = [result.isel({dim: number}) for number in range(min(n, MAX_PARTS))]
    pages = [_page(part, most) for part in each]
    tables: list[PageTable] = []
    for part, page in zip(each, pages, strict=True):
        for table in page.tables:
            caption = "; ".join(filter(None, (_part_name(part, dim, page), table.caption)))
            # The explanation of the columns is the same for all parts; it is printed once.
            notes = (
                table.notes
                if part is each[-1]
                else tuple(note for note in table.notes if note not in pages[-1].tables[-1].notes)
            )
            tables.append(replace(table, caption=caption, notes=notes))
    first, facts = pages[0], pages[0].facts
    title = f"{first.title.partition(' on ')[0]} on {n} {dim}s"
    if dim != OUTPUT:
        title = f"{first.title}, {n} {dim}s"
        facts = (facts[0].partition("; ")[2], *facts[1:])
    more = f"effect = result.isel({dim}=0), then {first.more}"
    if n > MAX_PARTS:
        more = f"{n - MAX_PARTS} more {dim}s: show(result.isel({dim}={MAX_PARTS})); {more}"
    return Page(title, facts, tuple(tables[: 2 * MAX_PARTS]), more)


def _part_name(part: xr.Dataset, dim: str, page: Page) -> str:
    """An output by its name, a region by its rule and its rows."""
    name = f"{dim} {part[dim].item()}" if dim in part.coords else page.title
    if dim == OUTPUT:
        return name
    rule = f": {part['region_rule'].item()}" if "region_rule" in part.coords else ""
    return f"{name}{rule}; {page.facts[0].partition('; ')[0]}"


def _of_features(result: xr.Dataset, most: int) -> Page:
    """The page of a result with one number per feature and variable, such as sizes or errors."""
    columns = [
        str(name)
        for name, values in result.data_vars.items()
        if values.dims == ("feature",)
        and values.dtype.kind in "fiu"
        and not str(name).endswith("_corrected")
    ]
    if not columns:
        return _other(result, most)
    if "chance" in result.attrs:
        # Of the first size alone.
        others = [name for name in columns if not name.endswith(("_threshold", "_p_value"))]
        columns = [*others[:1], *BY_CHANCE, *others[1:]]
    columns = columns[:MAX_COLUMNS]
    heads = [BY_CHANCE.get(name, name) for name in columns]
    first = result[columns[0]].values.astype(float)
    order, names = largest_first(first)[:most], feature_names(result)
    lines = [
        [names[position], *[number_text(float(result[name].values[position])) for name in columns]]
        for position in order
    ]
    return Page(
        f"{title_of(result)} on {output(result)}",
        tuple([rows_text(result)] if "n_rows" in result.attrs else []),
        (table_of(["", *heads], lines, len(names), "features", ""),),
        "tidy(result)" if title_of(result) == "Effect sizes" else "",
    )


def _other(result: xr.Dataset, most: int) -> Page:
    """Any other result: its variables and their ranges."""
    return Page(f"{title_of(result)} on {output(result)}", (), (variables_table(result, most),))
