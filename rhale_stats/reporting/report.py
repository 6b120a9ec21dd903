"""`report`: what `explain` found, as one HTML file; and in a notebook."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any, Final

import xarray as xr
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from rhale_stats.answers.sentences import answers_in, outputs_in, uncertainty_text
from rhale_stats.arguments.checks import check_choice
from rhale_stats.arguments.words import shown
from rhale_stats.arrays.intervals import N_DRAWS
from rhale_stats.effects.intervals import confband
from rhale_stats.files import whole
from rhale_stats.reporting.page import ReportPage, page_of, page_of_outputs, ranking, tables_of
from rhale_stats.reporting.pictures import overview_picture, small_feature
from rhale_stats.reporting.reading import explained, regions_of
from rhale_stats.schema.features import positions_of
from rhale_stats.schema.parts import over_outputs
from rhale_stats.schema.validation import validated

# Endings of the file; without one it is written as named.
ENDINGS = ("", ".html", ".htm")
# Languages of the texts.
LANGUAGES = ("en",)
# Features in the picture and the table, and those whose curves are drawn.
MAX_FEATURES, MAX_CURVES = 14, 4


def _with_bands(tree: xr.DataTree) -> xr.DataTree:
    """The explanation with bands of the groups' curves, which only pictures need."""
    tree = tree.copy()
    for region in regions_of(tree).values():
        effect = region["effect"].to_dataset()
        with_band = over_outputs(confband)(effect, float(tree.attrs["level"]), N_DRAWS, 0)
        # There is none where no errors are known, of few groups.
        band = with_band["curve_band"].where(effect["curve_se"].notnull().any("edge"))
        region["effect"].dataset = effect.assign(curve_band=band)
    return tree


def notebook_html(tree: xr.DataTree, text: str) -> str:
    """HTML for a notebook; ``text`` is shown where styles are not."""
    content = explained(_with_bands(tree))
    shown = content.features[:MAX_FEATURES]
    values = {
        "text": text,
        "head": text.partition("\n")[0],
        "about": content.about,
        "points": content.points,
        "picture": overview_picture(content, shown, in_notebook=True),
        "table": ranking(content, shown),
        "curves": [
            {"headline": feature.headline, "picture": small_feature(feature, content)}
            for feature in shown[:MAX_CURVES]
        ],
        "sure": uncertainty_text(tree.attrs),
    }
    return _rendered("notebook.html.j2", {**values, "style": Markup(notebook_style())})


# What begins the name of a region, and names of elements; characters that XML and HTML do not have.
REGION = 'role="region" aria-label="'
NAMES = re.compile(r'(\s(?:id|aria-labelledby|aria-describedby)="|href="#)([^"]+)')
CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("rhale_stats.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["prefixed"] = _prefixed
    return environment


def _prefixed(html: str, prefix: str, label: str) -> Markup:
    """Markup whose names of elements, and references to them, begin with ``prefix``.

    Sections and tables are named by the ``label`` of the output, too: others have the same ones.
    Texts are escaped: a quotation mark stands in markup alone.
    """
    html = NAMES.sub(lambda match: f"{match[1]}{prefix}{match[2]}", html)
    html = html.replace('<section aria-labelledby="', f'<section aria-labelledby="{prefix}head ')
    return Markup(html.replace(REGION, f"{REGION}{escape(label)}: "))


def _text(name: str) -> str:
    return (resources.files("rhale_stats.reporting") / name).read_text(encoding="utf-8")


def _css(name: str) -> str:
    """A style sheet without comments and indents."""
    text = _text(name)
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return re.sub(r"\s*\n\s*", "\n", text).strip()


@cache
def page_style() -> str:
    """The style of a report, which follows the reader's light or dark setting."""
    colours = (
        f":root {{ {variables(LIGHT)} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ {variables(DARK)} }} }}\n"
        f"@media print {{ :root {{ {variables(PRINT)} }} }}\n"
    )
    return f"{colours}{_css('page.css')}\n{_css('marks.css')}"


@cache
def notebook_style() -> str:
    """The style of a part of a notebook, which follows the theme of the notebook."""
    # The text of the notebook's theme; the ground is its own.
    ink = "var(--jp-ui-font-color1, var(--vscode-editor-foreground, {ink}))"
    light, dark = (
        variables({**palette, "ink": ink.format(ink=palette["ink"]), "ground": "transparent"})
        for palette in (LIGHT, DARK)
    )
    themes = "[data-jp-theme-light=false], .vscode-dark, [data-theme=dark], html[theme=dark]"
    unthemed = ":root:not([data-jp-theme-light], [data-theme]) body:not(.vscode-light)"
    return (
        f".rs-repr {{ {light} }}\n"
        f":is({themes}) .rs-repr {{ {dark} }}\n"
        f"@media (prefers-color-scheme: dark) {{ {unthemed} .rs-repr {{ {dark} }} }}\n"
        f".rs-repr {{\n{_css('notebook.css')}\n{_css('marks.css')}\n}}"
    )


def policy(script: str) -> str:
    """What a browser may load: nothing but this style sheet, this script and data in the file."""
    digests = [
        f"{kind}-src 'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'; "
        for kind, text in (("style", page_style()), ("script", script))
        if text
    ]
    return (
        f"default-src 'none'; {''.join(digests)}img-src data:; base-uri 'none'; form-action 'none'"
    )


def _rendered(template: str, values: dict[str, Any]) -> str:
    html = _environment().get_template(template).render(values)
    # A name with such a character is shown without it.
    return CONTROLS.sub("\ufffd", html).lstrip()


# Colours on light and on dark ground.
COLOURS: Final = {
    "ground": ("#ffffff", "#13161b"),
    "ink": ("#15181c", "#f1f3f6"),
    "soft": ("#434b56", "#bcc4ce"),
    "rule": ("#cfd5dc", "#3b434e"),
    "grid": ("#e4e8ed", "#2a3038"),
    "band": ("#cbd1d9", "#434c58"),
    "edge": ("#626b77", "#9ba5b2"),
    "up": ("#0a5c9e", "#78bbf7"),
    "down": ("#a84d06", "#f4aa66"),
    "link": ("#0a4a86", "#90c7ff"),
    "g0": ("#00604f", "#50d3bb"),
    "g1": ("#75288a", "#dcaaec"),
    "g2": ("#7d5200", "#e8c861"),
    "g3": ("#3744b8", "#a9b8ff"),
    "few": ("#f4ead3", "#3a3220"),
    "small": ("#edf0f3", "#242a32"),
    "card": ("#f5f7f9", "#1b2027"),
    "focus": ("#0a4a86", "#90c7ff"),
    "halo": ("#ffd54a", "#5b4a00"),
}
LIGHT, DARK = ({name: pair[dark] for name, pair in COLOURS.items()} for dark in (0, 1))
# Paper is white, whatever the screen is.
PRINT: Final = {**LIGHT, "ink": "#000000", "soft": "#333333", "link": "#000000"}


def variables(colours: Mapping[str, str]) -> str:
    """Colours as variables of CSS."""
    return " ".join(f"--{name}: {value};" for name, value in colours.items())


@validated
def report(
    tree: xr.DataTree,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    features: str | int | Sequence[str | int] | None = None,
    open_features: int = 4,
    lang: str = "en",
    overwrite: bool = False,
    print: bool = False,
    interactive: bool = False,
    tables: str | os.PathLike[str] | None = None,
) -> Path:
    """Write an explanation as one HTML file, for readers who know no Python.

    Every section answers a question: what moves the predictions, whether the model can be trusted
    on these rows, which features matter, how each acts, which act together, and how sure the
    numbers are. The file needs no network, and runs no script unless ``interactive``. Pictures are
    drawn in it as SVG, and the numbers are in it as CSV and JSON. It follows the reader's light or
    dark setting, fits screens of all widths, can be read by keyboard and by screen readers, and can
    be printed.

    Parameters
    ----------
    tree : DataTree
        What `explain` returned, or ``xarray.open_datatree`` read.
    path : path
        The file to write, such as ``"report.html"``, with the ending .html or .htm, or without one.
        Its folder must exist.
    title : str, optional
        Title of the report. By default the question that it answers.
    features : name, number, or sequence of them, optional
        Features with a part and a picture of their own. By default all, at most 30: those that
        move the predictions most. The table of features has all of them.
    open_features : int
        How many of these parts are open when the report is opened. Readers open and close the
        others.
    lang : {"en"}
        Language of the texts.
    overwrite : bool
        Whether an existing file is replaced.
    print : bool
        Whether all parts are open from the start, for browsers that print closed parts as closed.
    interactive : bool
        Whether readers choose the output, the feature and the group of rows, and read the values
        and the number of rows at the place under the pointer or at that of a slider. Then a script
        of 60 lines is in the file, which loads and sends nothing.
    tables : path, optional
        A folder for all tables of the report, each as CSV and as LaTeX, by name: ``features.csv``,
        ``features.tex``, one of values for each feature, and so on. It is made if need be; files of
        these names are replaced only with ``overwrite``.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    FileExistsError
        There is such a file, and ``overwrite`` is False.
    FileNotFoundError
        The folder does not exist.
    KeyError
        A feature is unknown.
    TypeError
        ``tree`` is no DataTree, or another argument is of the wrong type.
    ValueError
        ``tree`` was not made by `explain`, the language is not known, or ``path`` has the ending of
        another kind of file.

    Notes
    -----
    The report holds no row of the data. Levels with fewer than 5 rows are shown together, as
    "other". Names and levels are shown as text, whatever they contain.

    Pictures draw what `explain` computed: nothing is estimated here, and the model is not called.

    Examples
    --------
    >>> import tempfile, numpy as np, pathlib, rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    >>> tree = rs.explain(lambda X: 2 * X[:, 0] + X[:, 0] * X[:, 1], X)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "report.html"
    >>> rs.report(tree, path).name
    'report.html'
    """
    if title is not None and not isinstance(title, str):
        raise TypeError(f"title must be a text, or None; got {shown(title)}.")
    if tables is not None and not isinstance(tables, str | os.PathLike):
        raise TypeError(f"tables must be the path of a folder, or None; got {shown(tables)}.")
    check_choice("lang", lang, LANGUAGES)
    several = outputs_in(tree)
    if not several:
        answers_in(tree)
    target = _target(path, overwrite=overwrite)

    def page_for(part: xr.DataTree) -> ReportPage:
        content = explained(_with_bands(part))
        every = [feature.line.feature for feature in content.features]
        names = [every[position] for position in positions_of(features, every)]
        return page_of(content, names, open_features, title)

    pages = {label: page_for(part) for label, part in several.items()}
    page = page_of_outputs(pages, title) if pages else page_for(tree)
    files = {} if tables is None else _table_files(page, Path(tables), overwrite=overwrite)
    script = _text("page.js") if interactive else ""
    values = {"page": page, "lang": lang, "all_open": print, "policy": policy(script)}
    values |= {"style": Markup(page_style()), "script": Markup(script)}
    html = _rendered("report.html.j2", values)
    with whole(target) as unfinished:
        unfinished.write_text(html, encoding="utf-8", newline="\n")
    for file, text in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="\n")
    return target


def _table_files(page: ReportPage, folder: Path, *, overwrite: bool) -> dict[Path, str]:
    """The tables of a report as files with their texts; raise if one is there."""
    files = {
        folder / f"{name}.{suffix}": text
        for name, each in tables_of(page).items()
        for suffix, text in (("csv", each.csv()), ("tex", each.latex()))
    }
    existing = [file.name for file in files if file.exists()]
    if existing and not overwrite:
        raise FileExistsError(
            f"tables must be a folder without files of these names; {folder} has "
            f"{', '.join(existing[:3])}. Pass overwrite=True to replace them."
        )
    return files


def _target(path: str | os.PathLike[str], *, overwrite: bool) -> Path:
    """The file to write; raise before anything is computed if it cannot be."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be the path of a file; got {shown(path)}.")
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"path must be in a folder that exists; {str(target.parent)!r} does not. Make it first."
        )
    if target.is_dir():
        raise IsADirectoryError(
            f"path must be a file, such as 'report.html'; {str(target)!r} is a folder."
        )
    if target.suffix.lower() not in ENDINGS:
        raise ValueError(
            f"path must end in .html; got {target.name!r}. Name it "
            f"{target.with_suffix('.html').name!r}; a browser prints the report as PDF."
        )
    if target.exists() and not overwrite:
        raise FileExistsError(
            f"path must be a new file; {str(target)!r} exists. Choose another name, or replace it "
            f"with overwrite=True."
        )
    return target
