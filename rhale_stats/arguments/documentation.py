"""Texts that the docstrings of several public functions share, each of them once.

A line ``%(name)s`` of a docstring is replaced by the text of that name, by `validated`.
"""

import re
from textwrap import indent

SHARED = {
    # Parameters
    "feature": """\
feature : str or int
    Name or number of the feature.""",
    "progress": """\
progress : bool, default True
    Show a progress bar if it takes more than two seconds.""",
    "rng of folds": """\
rng : Generator, int or None
    Source of the folds, or its seed, as in `bootstrap`.""",
    "n_jobs": """\
n_jobs : int or None, default -1
    Processes, as in `bootstrap_refit`.""",
    "conditioning": """\
conditioning : table, or array_like of shape (n_rows, n_columns), optional
    Columns to split by, as in `regions`; by default all other columns of ``X``.""",
    "n_columns": """\
n_columns : int, default 3
    Number of panels per line of a new figure.""",
    "tree": """\
tree : Dataset
    What `regions` returned, of one feature.""",
    # Of a picture in one panel
    "Axes returned; raises": """\
Returns
-------
Axes

Raises
------
TypeError
    The result is another kind of object, or ``ax`` is not an Axes.""",
    "one feature in one panel": """\
feature : str or int
    Name or number of the feature.
ax : Axes, optional
    By default that of a new figure.

Returns
-------
Axes

Raises
------
KeyError
    Unknown feature.
TypeError
    The result is another kind of object, or ``ax`` is not an Axes.""",
    # Of a picture in several panels
    "raises": """\
Raises
------
KeyError
    Unknown feature.
TypeError
    The result is another kind of object, or ``ax`` is not Axes.""",
    "raises; local": """\
Raises
------
KeyError
    Unknown feature, or a feature that ``local`` does not have.
TypeError
    ``effect`` or ``local`` is another kind of object, or ``ax`` is not Axes.""",
    # Raises
    "unknown feature": """\
KeyError
    Unknown feature.""",
}
LINE = re.compile(r"^( *)%\((.+)\)s$", re.MULTILINE)


def with_shared_texts(docstring: str | None) -> str | None:
    """A docstring with the shared texts; None where Python leaves docstrings out."""
    if docstring is None:
        return None
    return LINE.sub(lambda line: indent(SHARED[line[2]], line[1]), docstring)
