"""The answer that a result holds, on one page: text for a terminal, HTML for a notebook.

Each kind of result has a function here that gives a `Page`: what it is, its rows, its uncertainty,
and a table of the few columns that a reader decides by, the most important lines first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from itertools import chain, product
from textwrap import wrap
from typing import Any, TypeAlias

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats import h_statistic_tables, meaning, profile_tables
from rhale_stats.arrays.accumulate import turning_points
from rhale_stats.curves import Curve
from rhale_stats.dispatch import METHODS
from rhale_stats.kinds import EFFECT, REPLICATES, kind_of
from rhale_stats.profile_data import METHOD_NAMES
from rhale_stats.schema import (
    CATEGORICAL,
    OUTPUT,
    PARTS,
    feature_names,
    in_order,
    method_text,
    of_part,
    one_feature,
    with_units,
)
from rhale_stats.second_order_inference import corner_name, farthest_corners, size
from rhale_stats.sizes import importances
from rhale_stats.summaries import (
    ABOVE_ONE,
    _tidy_interactions,
    bias_warnings,
    curve_extent,
    glance_trees,
    loss_text,
    node_lines,
    number_text,
    pvalue_text,
    trees_of,
)
from rhale_stats.surface_data import pair_name
from rhale_stats.validate import checked, shown

# So many lines of a table, and so many outputs or regions.
MOST_LINES, MOST_PARTS = 10, 4
# Characters of a line in a terminal, and of a name before it is cut.
WIDTH, LONGEST_NAME = 100, 28
# Bytes of HTML in a notebook.
MOST_HTML = 60_000
GAP = "  "
CUT = "…"
NOT_ESTIMATED = "not estimated yet; std_error(effect) adds standard errors"
IMPORTANCE = "importance: standard deviation of the curve over the rows"
# Columns of a table of sizes or errors.
MOST_COLUMNS = 6
ENDS = ("lowest", "highest")
# A curve that varies by less than so many numerical errors may be 0.
SUSPECT = 1e4
# What every effect has, a truth as well.
EFFECT_NEEDS = {"effect", "heterogeneity", "curve", "heterogeneity_output", "edge_value", "n_bins"}
QUANTILES = (0.025, 0.5, 0.975)
# Sizes of which replicates have quantiles, the first of them that are there.
REPLICATED = ("importance", "average_effect", "h2_overall", "h_overall", "n_bins", "h2", "h")
STYLE = """\
.rhale-answer .rhale-text{display:none}
.rhale-answer .rhale-body{display:block!important;color:inherit}
.rhale-answer table{border-collapse:collapse;margin:.5em 0;color:inherit;background:none}
.rhale-answer caption{text-align:left;font-style:italic;color:inherit}
.rhale-answer th,.rhale-answer td{padding:.15em .8em;text-align:right;color:inherit}
.rhale-answer th:first-child,.rhale-answer td:first-child{text-align:left}
.rhale-answer thead th{border-bottom:1px solid currentColor}
.rhale-answer p{margin:.25em 0}
.rhale-answer .rhale-title{font-weight:bold}
"""

Line: TypeAlias = list[str]


@dataclass(frozen=True)
class Table:
    """Lines with their heads; the first column names a line."""

    heads: Line
    lines: list[Line]
    caption: str = ""
    # Said below it: how many lines there are besides, and what its columns mean.
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Page:
    """What is shown of a result."""

    title: str
    facts: tuple[str, ...]
    tables: tuple[Table, ...]
    # What to call next.
    more: str = ""


class Answer:
    """What `show` returns: text in a terminal, HTML in a notebook.

    Parameters
    ----------
    page : Page
        Title, facts, tables, and what to call next.
    dataset : Dataset
        The result itself, unchanged.
    """

    def __init__(self, page: Page, dataset: xr.Dataset) -> None:
        self.page, self.dataset = page, dataset

    def __repr__(self) -> str:
        return _text(self.page)

    def _repr_html_(self) -> str:
        return _html(self.page, self.dataset)


@checked
def show(result: xr.Dataset, *, max_features: int = MOST_LINES) -> Answer:
    """Show the answer of any result: its features by importance, and its uncertainty.

    A terminal shows it as text, a notebook as HTML with the Dataset below it; in a script, print
    it. ``effect.rhale`` shows the same. `summary` has all lines and notes.

    Parameters
    ----------
    result : Dataset
        What any function of this package returned: effects, profiles, a surface, H-statistics,
        regions, a test, sizes, replicates, or local effects.
    max_features : int, default 10
        So many lines of a table, the most important first. Several outputs or regions share
        tables of four each.

    Returns
    -------
    Answer
        ``str()`` of it is the text; ``dataset`` is the result.

    Raises
    ------
    TypeError, ValueError
        ``result`` is not a whole result of this package.

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
        importance  heterog.  avg effect  std err   lowest  highest
    x0        1.11      1.29       1.985   0.1014   -2.145    1.721
    x1      0.2264     1.289      0.2859    0.102  -0.4509   0.2931
    importance: standard deviation of the curve over the rows. heterog.: standard deviation ...
    <BLANKLINE>
    More: summary(effect, 'x0'), plot_effect(effect, 'x0'), tidy(effect)
    """
    return Answer(_page(result, max_features), result)


def text_of(result: xr.Dataset) -> str:
    """`show` as text; of what is no result, the Dataset's own text."""
    try:
        return repr(show(result))
    except (TypeError, ValueError, KeyError, IndexError):
        return repr(result)


def html_of(result: xr.Dataset) -> str:
    """`show` as HTML; of what is no result, the Dataset's own HTML."""
    try:
        return show(result)._repr_html_()
    except (TypeError, ValueError, KeyError, IndexError):
        return str(result._repr_html_())


# --- a page as text and as HTML -------------------------------------------------------------------


def _clean(text: str, longest: int = LONGEST_NAME) -> str:
    """A label on one line, without characters that move the cursor, cut where it is too long."""
    text = "".join(one if one.isprintable() else " " for one in text)
    return text if len(text) <= longest else text[: longest - 1] + CUT


def _widths(table: Table) -> list[int]:
    """Widths of columns that fit a terminal: the widest, which are words, give way."""
    columns = list(zip(table.heads, *table.lines, strict=True))
    widths = [max(len(_clean(cell, WIDTH)) for cell in column) for column in columns]
    widths[0] = min(widths[0], LONGEST_NAME)
    while (excess := sum(widths) + len(GAP) * (len(widths) - 1) - WIDTH) > 0:
        widest = int(np.argmax(widths))
        widths[widest] = max(widths[widest] - excess, max(widths) // 2, 1)
    return widths


def _text(page: Page) -> str:
    lines = [page.title, *page.facts]
    for table in page.tables:
        widths = _widths(table)
        lines += ["", *([table.caption] if table.caption else [])]
        for cells in (table.heads, *table.lines):
            cut = [_clean(cell, width) for cell, width in zip(cells, widths, strict=True)]
            first = cut[0].ljust(widths[0])
            rest = (cell.rjust(width) for cell, width in zip(cut[1:], widths[1:], strict=True))
            lines.append(GAP.join((first, *rest)).rstrip())
        lines += table.notes
    if page.more:
        lines += ["", f"More: {page.more}"]
    pieces = ([line] if len(line) <= WIDTH else wrap(_clean(line, 2000), WIDTH) for line in lines)
    return "\n".join(chain.from_iterable(pieces))


def _html(page: Page, dataset: xr.Dataset) -> str:
    """The text, which the style hides where it is applied; tables; the Dataset, folded."""

    def paragraph(text: str, kind: str = "") -> str:
        return f"<p{kind}>{escape(_clean(text, 2000))}</p>" if text else ""

    parts = [paragraph(page.title, ' class="rhale-title"'), *map(paragraph, page.facts)]
    for table in page.tables:
        heads = "".join(f"<th>{escape(_clean(head))}</th>" for head in table.heads)
        lines = (
            "<tr>" + "".join(f"<td>{escape(_clean(cell, 60))}</td>" for cell in line) + "</tr>"
            for line in table.lines
        )
        caption = f"<caption>{escape(_clean(table.caption, 200))}</caption>"
        parts.append(
            f"<table>{caption if table.caption else ''}<thead><tr>{heads}</tr></thead>"
            f"<tbody>{''.join(lines)}</tbody></table>"
        )
        parts += map(paragraph, table.notes)
    parts.append(paragraph(f"More: {page.more}" if page.more else ""))
    head = f'<pre class="rhale-text">{escape(_text(page))}</pre><style>{STYLE}</style>'
    body = "".join(parts)
    room = MOST_HTML - len((head + body).encode()) - 200
    whole = str(dataset._repr_html_())
    if len(whole.encode()) > room:
        with xr.set_options(display_max_rows=200):  # type: ignore[no-untyped-call]
            whole = f"<pre>{escape(repr(dataset))}</pre>"
    details = f"<details><summary>Dataset</summary>{whole}</details>"
    if len(details.encode()) > room + 100:
        details = ""
    return (
        f'<div class="rhale-answer">{head}<div class="rhale-body" style="display:none">{body}'
        f"{details}</div></div>"
    )


def _table(
    heads: Line, lines: list[Line], n: int, what: str, meant: str, caption: str = ""
) -> Table:
    """A table that says how many lines it leaves out, and what its columns mean."""
    notes = [f"{len(lines)} of {n} {what}."] if len(lines) < n else []
    return Table(heads, lines, caption, (*notes, *([meant] if meant else [])))


def _largest(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Places of the values, the largest first, what is not known last."""
    return np.argsort(-np.where(np.isnan(values), -np.inf, values), kind="stable")


def _rows(result: xr.Dataset) -> str:
    attrs = result.attrs
    weights = str(attrs.get("weight_kind", "none"))
    text = f"{attrs['n_rows']} rows" + (f" ({weights} weights)" if weights != "none" else "")
    n = result.sizes.get("feature", 1)
    return f"{text}; {n} feature{'s' if n > 1 else ''}"


def _output(result: xr.Dataset) -> str:
    attrs = result.attrs
    return with_units(str(attrs.get("output_name", "output")), str(attrs.get("output_units", "")))


def _title(result: xr.Dataset) -> str:
    method = str(result.attrs.get("method", "result"))
    return method[:1].upper() + method[1:]


def _is_ours(result: xr.Dataset) -> bool:
    """Whether a function of this package made it, and it is still labelled so."""
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


def _page(result: xr.Dataset, most: int) -> Page:
    """What is shown of a result, its outputs and regions one after the other."""
    if not isinstance(result, xr.Dataset):
        raise TypeError(
            f"result must be a Dataset that a function of this package returned; got "
            f"{shown(result)}."
        )
    for dim in PARTS:
        if dim in result.dims and "draw" not in result.dims:
            return _of_parts(result, dim, most)
    found = in_order(of_part(result))
    kind = REPLICATES if "draw" in found.dims else kind_of(found)
    # A truth, and the estimates of folds, are not whole effects.
    if kind is EFFECT and ("fold" in found.dims or not set(found.variables) >= EFFECT_NEEDS):
        kind = None
    if kind is not None and "show" in METHODS.get(kind, {}):
        page: Page = METHODS[kind]["show"](found, most)
        return page
    if _is_ours(found):
        return (_of_features if "feature" in found.dims else _other)(found, most)
    raise ValueError(
        "result must be a Dataset that a function of this package returned; this one has the "
        f"variables {', '.join(map(str, found.data_vars)) or 'none'}."
    )


def _of_parts(result: xr.Dataset, dim: str, most: int) -> Page:
    """The first outputs or regions, each with its tables."""
    n = result.sizes[dim]
    each = [result.isel({dim: number}) for number in range(min(n, MOST_PARTS))]
    pages = [_page(one, most) for one in each]
    tables: list[Table] = []
    for one, page in zip(each, pages, strict=True):
        for table in page.tables:
            caption = "; ".join(filter(None, (_part_name(one, dim, page), table.caption)))
            # What the columns mean is the same for all of them.
            notes = (
                table.notes
                if one is each[-1]
                else tuple(note for note in table.notes if note not in pages[-1].tables[-1].notes)
            )
            tables.append(replace(table, caption=caption, notes=notes))
    first, facts = pages[0], pages[0].facts
    title = f"{first.title.partition(' on ')[0]} on {n} {dim}s"
    if dim != OUTPUT:
        title = f"{first.title}, {n} {dim}s"
        facts = (facts[0].partition("; ")[2], *facts[1:])
    more = f"effect = result.isel({dim}=0), then {first.more}"
    if n > MOST_PARTS:
        more = f"{n - MOST_PARTS} more {dim}s: show(result.isel({dim}={MOST_PARTS})); {more}"
    return Page(title, facts, tuple(tables[: 2 * MOST_PARTS]), more)


def _part_name(part: xr.Dataset, dim: str, page: Page) -> str:
    """An output by its name, a region by its rule and its rows."""
    name = f"{dim} {part[dim].item()}" if dim in part.coords else page.title
    if dim == OUTPUT:
        return name
    rule = f": {part['region_rule'].item()}" if "region_rule" in part.coords else ""
    return f"{name}{rule}; {page.facts[0].partition('; ')[0]}"


def _effect(effect: xr.Dataset, most: int) -> Page:
    names, size = feature_names(effect), importances(effect)
    extents = _extents(effect)
    reach = np.array([high - low for low, high in extents])
    ranked = size if np.isfinite(size).any() else reach
    # A curve that is 0 up to rounding is last.
    order = _largest(np.where(reach == 0, 0.0, ranked))[:most]
    columns, source = _columns(effect, np.where(reach == 0, 0.0, size))
    columns |= {end: np.array([one[k] for one in extents]) for k, end in enumerate(ENDS)}
    lines = [
        [names[at], *(number_text(float(values[at])) for values in columns.values())]
        for at in order
    ]
    for line, at in zip(lines, order, strict=True):
        if not effect["n_bins"].values[at]:
            line[1] = "constant"
    facts = (
        f"{_rows(effect)}; local effects: {method_text(effect)}; "
        f"bins: {effect.attrs.get('bin_rule', 'given')}",
        f"Uncertainty: {source}",
        *(bias_warnings(effect, None) if "verdict" in effect else ()),
    )
    meant = (
        "heterog.: standard deviation of the local effects times that of the feature. "
        "lowest, highest: of the curve."
    )
    if "importance" in columns:
        meant = f"{IMPORTANCE}. {meant}"
    first = repr(lines[0][0])
    return Page(
        f"{str(effect.attrs.get('method', 'rhale')).upper()}: effects on {_output(effect)}",
        facts,
        (_table(["", *columns], lines, len(names), "features", meant),),
        f"summary(effect, {first}), plot_effect(effect, {first}), tidy(effect)",
    )


def _columns(
    effect: xr.Dataset, size: NDArray[np.float64]
) -> tuple[dict[str, NDArray[np.float64]], str]:
    """Sizes and average effects of all features by head, and what standard errors are of."""
    ordered = ~meaning.is_unordered(effect)

    def of(name: str, bound: int | None = None) -> NDArray[np.float64]:
        values = effect[name].values if bound is None else effect[name].values[:, bound]
        return np.where(ordered, values, np.nan)

    columns = {"importance": size} if np.isfinite(size).any() else {}
    columns |= {"heterog.": of("heterogeneity_output")}
    if "average_effect" in effect:
        columns |= {"avg effect": of("average_effect")}
    if "average_effect_se" in effect and np.isfinite(of("average_effect_se")).any():
        columns |= {"std err": of("average_effect_se")}
    if "average_effect_ci" in effect:
        tail = (1 - float(effect["average_effect_ci"].attrs.get("ci_prob", 0.95))) / 2
        columns |= {f"[{tail:.3g}": of("average_effect_ci", 0)}
        columns |= {f"{1 - tail:.3g}]": of("average_effect_ci", 1)}
    errors = [effect[name] for name in ("average_effect_se", "curve_se") if name in effect]
    known = next((one for one in errors if bool(one.notnull().any())), None)
    if known is None:
        return columns, NOT_ESTIMATED
    return columns, meaning.uncertainty(str(known.attrs.get("source", "rows")))


def _extents(effect: xr.Dataset) -> list[tuple[float, float]]:
    """Lowest and highest value of every curve; 0 and 0 where it is 0 up to rounding.

    As `summaries.curve_extent`, without the millisecond that it takes to select a feature.
    """
    values = {str(name): one.values for name, one in effect.variables.items()}
    out = []
    for at, n in enumerate(values["n_bins"]):
        curve = _curve({name: values[name][at] for name in _OF_CURVE if name in values}, int(n))
        if np.isnan(curve).all():
            out.append((np.nan, np.nan))
            continue
        low, high = float(np.nanmin(curve)), float(np.nanmax(curve))
        error = values["local_effect_error"][at] if "local_effect_error" in values else 0.0
        least = np.nan_to_num(error) + np.finfo(float).eps * max(high, -low)
        suspect = high - low <= SUSPECT * least * n
        out.append(curve_extent(one_feature(effect, at)) if suspect else (low, high))
    return out


_OF_CURVE = ("edge_value", "curve", "effect", "slope", "cell_value", "cell_curve")


def _curve(row: dict[str, NDArray[np.float64]], n: int) -> NDArray[np.float64]:
    """Values of the curve of a feature of ``n`` bins: at edges, and where it turns."""
    if "cell_value" in row and np.isfinite(row["cell_value"]).any():
        return row["cell_curve"]
    edges, curve, effect = row["edge_value"][: n + 1], row["curve"][: n + 1], row["effect"][:n]
    slope = row["slope"][:n] if "slope" in row else np.zeros(n)
    if not slope.any():
        return curve
    turns = turning_points(edges, effect, slope)
    return np.concatenate([curve, Curve(edges, curve, slope).at(turns)])


def _profile(profile: xr.Dataset, most: int) -> Page:
    table = profile_tables.glance(profile, 0.95)
    names = table["term"].tolist()
    order = _largest(table["importance"].to_numpy())[:most]
    columns = ["importance", "heterogeneity_output", "curve_min", "curve_max"]
    heads = ["", "importance", "heterog.", "lowest", "highest"]
    known = "curve_se" in profile and bool(profile["curve_se"].notnull().any())
    if known:
        table["largest_se"] = profile["curve_se"].max("grid").values
        columns.append("largest_se")
        heads.append("std err up to")
    lines = [
        [names[at], *(number_text(float(table[column].iloc[at])) for column in columns)]
        for at in order
    ]
    for line, at in zip(lines, order, strict=True):
        if table["kind"].iloc[at] == "constant":
            line[1] = "constant"
    source = str(profile["curve_se"].attrs.get("source", "rows")) if known else ""
    first = repr(lines[0][0])
    return Page(
        f"{METHOD_NAMES[str(profile.attrs['method'])]}: effects on {_output(profile)}",
        (_rows(profile), f"Uncertainty: {meaning.uncertainty(source) if known else NOT_ESTIMATED}"),
        (
            _table(
                heads,
                lines,
                len(names),
                "features",
                f"{IMPORTANCE}. heterog.: root mean square of the spread about it. lowest, "
                "highest: of the curve.",
            ),
        ),
        f"summary(effect, {first}), plot_profile(effect, {first}), tidy(effect)",
    )


def _surface(surface: xr.Dataset, most: int) -> Page:
    attrs = surface.attrs
    known = "surface_se" in surface
    at = farthest_corners(surface, most)
    columns = ("surface", "surface_se") if known else ("surface",)
    lines = [
        [
            corner_name(surface, one),
            *(number_text(float(surface[name].values[one])) for name in columns),
        ]
        for one in at
    ]
    n_corners = int(surface["surface"].notnull().sum())
    source = str(surface["surface_se"].attrs.get("source", "rows")) if known else ""
    empty = f", {attrs['n_empty']} of them without rows" if attrs["n_empty"] else ""
    return Page(
        f"Second-order ALE: {pair_name(surface)} on {_output(surface)}",
        (
            f"{attrs['n_rows']} rows; {surface['n_obs'].size} cells{empty}; "
            f"standard deviation of the surface over the rows: {number_text(size(surface))}",
            f"Uncertainty: {meaning.uncertainty(source) if known else NOT_ESTIMATED}",
        ),
        (
            _table(
                ["", "surface", *(["std err"] if known else [])],
                lines,
                len(lines),
                "corners",
                f"{len(lines)} of {n_corners} corners of cells, those farthest from 0.",
            ),
        ),
        "summary(result), plot_surface(result), wald_test(result)",
    )


def _h_statistics(found: xr.Dataset, most: int) -> Page:
    attrs, known = found.attrs, "h2_overall_se" in found
    tables = [_h_table(found, "overall", (), feature_names(found), most)]
    if "h2_pairwise" in found:
        at, names = h_statistic_tables.pairs_of(found)
        tables.append(_h_table(found, "pairwise", tuple(at), names, most))
    meant = (
        "H²: share of the variance of the output, or of the joint effect of a pair. size: in units "
        "of the output."
    )
    tables[-1] = replace(tables[-1], notes=(*tables[-1].notes, meant))
    source = str(found["h2_overall_se"].attrs.get("source", "rows")) if known else ""
    h2 = number_text(float(h_statistic_tables.share(found["h2"].item()))) or ABOVE_ONE
    return Page(
        f"H-statistics: interactions in {_output(found)}",
        (
            f"{attrs['n_rows']} of {attrs['n_rows_total']} rows; all interactions: H² {h2}, "
            f"size {number_text(float(found['h']))}",
            f"Uncertainty: {meaning.uncertainty(source) if known else NOT_ESTIMATED}",
        ),
        tuple(tables),
        "summary(result), plot_h_statistics(result), tidy(result)",
    )


def _h_table(
    found: xr.Dataset,
    suffix: str,
    at: tuple[NDArray[np.int64], ...],
    names: Line,
    most: int,
) -> Table:
    """Features, or pairs at these places, the largest first."""
    columns = {"H²": f"h2_{suffix}", "size": f"h_{suffix}"}
    order = _largest(found[columns["size"]].values[at].ravel())[:most]
    heads, cells = [""], [[names[one] for one in order]]
    for head, name in columns.items():
        values = found[name].values[at].ravel()[order]
        shares = h_statistic_tables.share(values) if head == "H²" else values
        above = np.isnan(shares) & ~np.isnan(values)
        heads.append(head)
        cells.append(
            [ABOVE_ONE if no else number_text(one) for one, no in zip(shares, above, strict=True)]
        )
        if f"{name}_se" in found:
            errors = np.where(above, np.nan, found[f"{name}_se"].values[at].ravel()[order])
            heads.append("std err")
            cells.append([number_text(one) for one in errors])
    lines = [list(line) for line in zip(*cells, strict=True)]
    what = "pairs" if at else "features"
    return _table(heads, lines, len(names), what, "", what.capitalize())


def _h_difference(compared: xr.Dataset, most: int) -> Page:
    table = h_statistic_tables.tidy_difference(compared, 0.95)
    order = np.argsort(table["p_value"].fillna(np.inf).to_numpy(), kind="stable")[:most]
    names = {"h2": "H²", "h": "size"}
    lines = [
        [
            f"{names[line['statistic']]}, {line['term']}",
            *(number_text(line[name]) for name in ("estimate", "std_error")),
            *(pvalue_text(line[name]) for name in ("p_value", "p_value_adjusted")),
        ]
        for _, line in table.iloc[order].iterrows()
    ]
    heads = ["", "a less b", "std err", "P", f"P, {compared.attrs['adjust']}"]
    return Page(
        f"H-statistics: difference on {_output(compared)}",
        (f"Uncertainty: {meaning.uncertainty(str(compared.attrs['source']))}",),
        (_table(heads, lines, len(table), "differences", "The smallest P first."),),
        "summary(result), tidy(result)",
    )


def _test(test: xr.Dataset, most: int) -> Page:
    attrs, names = test.attrs, feature_names(test)
    heads = {"statistic": "statistic", "df": "df", "p_value": "P"}
    heads["p_value_adjusted"] = f"P, adjusted ({attrs['adjust']})"
    columns = {name: test[name].values for name in heads if name in test}
    order = np.argsort(np.nan_to_num(columns["p_value"], nan=np.inf), kind="stable")[:most]
    lines = [
        [
            names[at],
            *(
                (pvalue_text if name.startswith("p_") else number_text)(float(values[at]))
                for name, values in columns.items()
            ),
        ]
        for at in order
    ]
    reasons = test["reason"].values.astype(str) if "reason" in test else np.array([], dtype=str)
    said = tuple(f"{names[at]}: {reasons[at]}." for at in order if len(reasons) and reasons[at])
    table = _table(["", *(heads[name] for name in columns)], lines, len(names), "features", "")
    return Page(
        f"Test on {_output(test)}: {attrs['test']}",
        (
            f"{attrs['n_rows']} rows; null hypothesis: {attrs['null']}",
            f"Uncertainty: {meaning.uncertainty(str(attrs['source']))}",
        ),
        (replace(table, notes=(*table.notes, *said[:3])),),
        "summary(result), tidy(result)",
    )


def _regions(trees: xr.Dataset, most: int) -> Page:
    every, attrs = trees_of(trees), trees.attrs
    test = str(attrs["test"])
    test = "none: splits are found in noise as well" if test == "none" else test
    facts = (f"{attrs['n_rows']} rows; bins: {attrs['bin_rule']}", f"Test of splits: {test}")
    if len(every) == 1:
        stubs, lines = node_lines(every)
        heads = ["", "rows", "loss", "best split", "drop", "P", ""]
        body = [[stub, *line] for stub, line in zip(stubs, lines, strict=True)]
        name = str(every[0]["feature"].values)
        note = "drop: the part of the loss that the split removes."
        return Page(
            f"Regions: effect of {name} on {_output(trees)}",
            facts,
            (_table(heads, body[: 2 * most], len(body), "nodes", note),),
            "summary(tree), plot_tree(tree), regional_rhale(local, tree)",
        )
    table = glance_trees(trees, 0.95)
    order = _largest(table["loss_drop"].where(table["n_regions"] > 1, 0.0).to_numpy())[:most]
    lines = [
        [
            line["term"],
            str(line["n_regions"]),
            loss_text(line["loss"]),
            loss_text(line["loss_left"]),
            "" if np.isnan(line["loss_drop"]) else f"{line['loss_drop']:.1%}",
            pvalue_text(line["p_value"]),
            line["first_split"],
        ]
        for _, line in table.iloc[order].iterrows()
    ]
    heads = ["", "regions", "loss", "left", "drop", "P", "first split"]
    note = "drop: the part of the loss, the heterogeneity in bins, that the regions remove."
    return Page(
        f"Regions: effects on {_output(trees)}",
        facts,
        (_table(heads, lines, len(table), "features", note),),
        f"summary(trees, {table['term'].iloc[order[0]]!r}), plot_tree(trees.isel(feature=0))",
    )


def _interactions(found: xr.Dataset, most: int) -> Page:
    table = _tidy_interactions(found, 0.95)
    order = _largest(table["loss_drop"].to_numpy())[:most]
    lines = [
        [
            f"{line['term']} by {line['conditioning']}",
            "" if np.isnan(line["loss_drop"]) else f"{line['loss_drop']:.1%}",
            loss_text(line["loss"]),
            pvalue_text(line["p_value_adjusted"]),
            line["best_split"],
        ]
        for _, line in table.iloc[order].iterrows()
    ]
    tested = found.attrs["n_permutations"]
    return Page(
        f"Interactions: effects on {_output(found)}, split by other columns",
        (
            f"{found.attrs['n_rows']} rows; bins: {found.attrs['bin_rule']}",
            f"Test: {tested} permutations" if tested else "Test: none, so drops may be chance",
        ),
        (
            _table(
                ["", "drop", "of loss", "P, adjusted", "best split"],
                lines,
                len(table),
                "pairs",
                "drop: the part of the loss that the best split by that column removes.",
            ),
        ),
        "summary(result), plot_interactions(result), tidy(result)",
    )


def _local(local: xr.Dataset, most: int) -> Page:
    names = feature_names(local)
    kind = local["feature_kind"].values.astype(str)
    values, x = (local[name].transpose("feature", "obs").values for name in ("local_effect", "x"))
    known = np.isfinite(values)
    n = known.sum(axis=1)
    some = np.maximum(n, 1)
    filled = np.where(known, values, 0.0)
    mean = np.where(n > 0, filled.sum(axis=1) / some, np.nan)
    spread = np.sqrt((np.where(known, values - mean[:, None], 0.0) ** 2).sum(axis=1) / some)
    strength = np.sqrt((filled**2).sum(axis=1) / some) * _spread(x, kind)
    order = _largest(np.where(n > 0, strength, np.nan))[:most]
    lines = [
        [names[at], kind[at], str(n[at]), *map(number_text, (strength[at], mean[at], spread[at]))]
        for at in order
    ]
    return Page(
        f"Local effects on {_output(local)}",
        (f"{_rows(local)}; {method_text(local)}",),
        (
            _table(
                ["", "kind", "rows", "strength", "mean", "std dev"],
                lines,
                len(names),
                "features",
                "strength: root mean square of the local effects times the standard deviation of "
                "the feature (of levels: of the differences alone).",
            ),
        ),
        "rhale(local)",
    )


def _spread(x: NDArray[np.float64], kind: NDArray[np.str_]) -> NDArray[np.float64]:
    """Standard deviation of every feature; 1 of levels, which differ by one step."""
    known = np.isfinite(x)
    n = np.maximum(known.sum(axis=1), 1)
    mean = np.where(known, x, 0.0).sum(axis=1) / n
    variance = (np.where(known, x - mean[:, None], 0.0) ** 2).sum(axis=1) / n
    return np.where(np.isin(kind, CATEGORICAL), 1.0, np.sqrt(variance))


def _replicates(boot: xr.Dataset, most: int) -> Page:
    attrs = boot.attrs
    order = [dim for dim in ("chain", "draw") if dim in boot.dims]
    name = next((one for one in REPLICATED if one in boot.data_vars), None)
    tables: tuple[Table, ...] = (_variables(boot, most),)
    if name is not None and set(boot[name].dims) <= {*order, "feature", *PARTS}:
        values = boot[name].stack(all_draws=order).transpose(..., "all_draws")
        draws = values.values.reshape(-1, values.sizes["all_draws"])
        with np.errstate(all="ignore"):
            some = np.isfinite(draws).any(axis=1)
            ends = np.full((len(draws), 3), np.nan)
            ends[some] = np.nanquantile(draws[some], QUANTILES, axis=1).T
        labels = _labels(values.isel(all_draws=0, drop=True))
        first = _largest(np.abs(ends[:, 1]))[:most]
        lines = [[labels[at], *map(number_text, ends[at])] for at in first]
        heads = ["", *(f"{100 * share:g} %" for share in QUANTILES)]
        caption = f"{name} in the replicates"
        tables = (_table(heads, lines, len(labels), "lines", "", caption),)
    sizes = " × ".join(f"{boot.sizes[dim]} {dim}s" for dim in order)
    return Page(
        f"Replicates ({attrs.get('method', 'bootstrap')}) on {_output(boot)}",
        (sizes, f"Uncertainty: {meaning.uncertainty(str(attrs.get('source', 'rows')))}"),
        tables,
        "confint(effect, boot), effect_sizes(effect, boot)",
    )


def _labels(values: xr.DataArray) -> Line:
    """A name for every number of an array over features, outputs and regions."""
    each = [
        values[dim].values if dim in values.coords else range(n) for dim, n in values.sizes.items()
    ]
    return [", ".join(map(str, one)) or str(values.name) for one in product(*each)]


def _of_features(found: xr.Dataset, most: int) -> Page:
    """A result of one number a feature and variable: sizes, errors."""
    columns = [
        str(name)
        for name, one in found.data_vars.items()
        if one.dims == ("feature",)
        and one.dtype.kind in "fiu"
        and not str(name).endswith("_corrected")
    ]
    if not columns:
        return _other(found, most)
    columns = columns[:MOST_COLUMNS]
    first = found[columns[0]].values.astype(float)
    order, names = _largest(first)[:most], feature_names(found)
    lines = [
        [names[at], *(number_text(float(found[name].values[at])) for name in columns)]
        for at in order
    ]
    return Page(
        f"{_title(found)} on {_output(found)}",
        tuple([_rows(found)] if "n_rows" in found.attrs else []),
        (_table(["", *columns], lines, len(names), "features", ""),),
        "tidy(result)" if _title(found) == "Effect sizes" else "",
    )


def _other(found: xr.Dataset, most: int) -> Page:
    """Any other result: its variables and their ranges."""
    return Page(f"{_title(found)} on {_output(found)}", (), (_variables(found, most),))


def _variables(found: xr.Dataset, most: int) -> Table:
    lines = []
    for name, one in found.data_vars.items():
        ends = ["", ""]
        values = one.values
        if values.dtype.kind in "fiu" and np.isfinite(values).any():
            ends = [number_text(float(end)) for end in (np.nanmin(values), np.nanmax(values))]
        lines.append([str(name), ", ".join(map(str, one.dims)), *ends])
    return _table(["", "over", "lowest", "highest"], lines[:most], len(lines), "variables", "")
