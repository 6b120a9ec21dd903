"""`report`: what `explain` found, as one HTML file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from rhale_stats.answers.sentences import answers_in, outputs_in
from rhale_stats.arguments.words import shown
from rhale_stats.files import whole
from rhale_stats.reporting.page import ReportPage, Selection, page_of, page_of_outputs
from rhale_stats.reporting.reading import explained
from rhale_stats.reporting.rendered import rendered
from rhale_stats.reporting.words import LANGUAGES, Words
from rhale_stats.schema.features import position_of
from rhale_stats.schema.validation import validated


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
) -> Path:
    """Write an explanation as one HTML file, for readers who know no Python.

    Every section answers a question: what moves the predictions, whether the model can be trusted
    on these rows, which features matter, how each acts, which act together, and how sure the
    numbers are. The file needs no network and runs no script. Pictures are drawn in it as SVG, and
    the numbers are in it as CSV and JSON. It follows the reader's light or dark setting, fits
    screens of all widths, can be read by keyboard and by screen readers, and can be printed.

    Parameters
    ----------
    tree : DataTree
        What `explain` returned, or ``xarray.open_datatree`` read.
    path : path
        The file to write, such as ``"report.html"``. Its folder must exist.
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
        ``tree`` was not made by `explain`, or the language is not known.

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
    if lang not in LANGUAGES:
        raise ValueError(
            f"lang must be one of {', '.join(map(repr, LANGUAGES))}; got {shown(lang)}."
        )
    several = outputs_in(tree)
    if not several:
        answers_in(tree)
    target = _target(path, overwrite=overwrite)
    words = Words(lang)

    def page_for(part: xr.DataTree) -> ReportPage:
        content = explained(part, words)
        names = _names(features, [feature.name for feature in content.features])
        return page_of(content, Selection(names, open_features), title, words)

    pages = {label: page_for(part) for label, part in several.items()}
    page = page_of_outputs(pages, title, words) if pages else page_for(tree)
    html = rendered(page, words, lang, all_open=print)
    with whole(target) as unfinished:
        unfinished.write_text(html, encoding="utf-8", newline="\n")
    return target


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
    if target.exists() and not overwrite:
        raise FileExistsError(
            f"path must be a new file; {str(target)!r} exists. Choose another name, or replace it "
            f"with overwrite=True."
        )
    return target


def _names(features: Any, names: list[str]) -> tuple[str, ...] | None:
    """The features that were asked for; ``KeyError`` if one is unknown."""
    if features is None:
        return None
    chosen = [features] if np.ndim(features) == 0 else list(features)
    return tuple(names[position_of(name, names)] for name in chosen)
