"""The report of a study: findings, tables and a figure, with Monte-Carlo standard errors."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.files import whole
from studies.runner import Study

# Largest number of distinct messages of failed runs that are listed.
MESSAGES_LISTED = 10
DPI = 150
PRINTED = "This page has the main rows. The command prints all findings and tables:"


def mean_table(results: xr.Dataset, outputs: Sequence[str], by: Sequence[str] = ()) -> pd.DataFrame:
    """Means of outputs over the runs, with their Monte-Carlo standard errors.

    Parameters
    ----------
    results : Dataset
        What `run` returns.
    outputs : sequence of str
        Variables of ``results`` that share their dimensions.
    by : sequence of str
        Those dimensions, beyond scenario and replicate, in the order of the rows.

    Returns
    -------
    DataFrame
        One row a combination of scenario and the values along ``by``, which are its first
        columns. ``runs`` counts the replicates made, ``failed`` those in which an output is NaN
        or infinite, as all are where the replicate failed. Then for every output its mean over
        all runs, NaN if the output is not finite in one of them, and ``<name>_mcse``, the
        standard deviation (ddof 1) of the finite values over the root of their number. If there
        is a failed run anywhere in the table, ``<name>_valid`` is the mean of the finite values.

    Raises
    ------
    KeyError
        An output that the results do not have; the message lists those they have.
    ValueError
        ``by`` is not what the outputs vary over.

    Examples
    --------
    >>> import xarray as xr
    >>> runs = ("scenario", "replicate")
    >>> results = xr.Dataset(
    ...     {"error": (runs, [[1.0, 3.0, 2.0]]), "done": (runs, [[1, 1, 1]])},
    ...     {"scenario": ["few rows"]},
    ... )
    >>> print(mean_table(results, ["error"]).to_string(index=False))
    scenario  runs  failed  error  error_mcse
    few rows     3       0    2.0     0.57735
    """
    dims = ("scenario", *by, "replicate")
    _check_outputs(results, outputs, dims)
    shape = [results.sizes[dim] for dim in dims]
    ran = results["done"].transpose("scenario", "replicate").values == 1
    ran = np.broadcast_to(ran.reshape(shape[0], *[1] * len(by), shape[-1]), shape)
    values = {name: results[name].transpose(*dims).values for name in outputs}
    valid = {name: ran & np.isfinite(array) for name, array in values.items()}
    failed = (ran & ~np.logical_and.reduce(list(valid.values()))).sum(-1)

    table = _rows(results, dims[:-1])
    table["runs"] = ran.sum(-1).ravel()
    table["failed"] = failed.ravel()
    for name in outputs:
        mean, error = _mean_and_error(values[name], valid[name])
        everywhere = (valid[name] == ran).all(-1)
        table[name] = np.where(everywhere, mean, np.nan).ravel()
        table[f"{name}_mcse"] = error.ravel()
        if failed.any():
            table[f"{name}_valid"] = mean.ravel()
    return table


def _check_outputs(results: xr.Dataset, outputs: Sequence[str], dims: Sequence[str]) -> None:
    if isinstance(outputs, str) or not outputs:
        raise ValueError(f"outputs must be a sequence of names, as in ['bias']; got {outputs!r}.")
    unknown = [name for name in outputs if name not in results.data_vars]
    if unknown:
        raise KeyError(
            f"outputs must be variables of the results, "
            f"{', '.join(str(name) for name in results.data_vars)}; got {', '.join(unknown)}."
        )
    for name in outputs:
        if set(results[name].dims) != set(dims):
            beyond = [str(d) for d in results[name].dims if d not in ("scenario", "replicate")]
            raise ValueError(
                f"by must name the dimensions of {name!r} beyond scenario and replicate, "
                f"({', '.join(beyond)}); got ({', '.join(dims[1:-1])}). Outputs over other "
                f"dimensions need a table of their own."
            )


def _rows(results: xr.Dataset, dims: Sequence[str]) -> pd.DataFrame:
    """All combinations of the coordinate values along ``dims``, the last one fastest."""
    levels = [results[dim].values.tolist() for dim in dims]
    rows: pd.DataFrame = pd.MultiIndex.from_product(levels, names=list(dims)).to_frame(index=False)
    return rows


def _mean_and_error(
    values: NDArray[np.float64], valid: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and its standard error over the last axis, of the valid values; NaN where too few."""
    n = valid.sum(-1)
    mean = _ratio(np.where(valid, values, 0.0).sum(-1), n)
    squares = np.where(valid, values - mean[..., None], 0.0) ** 2
    return mean, np.sqrt(_ratio(_ratio(squares.sum(-1), n - 1), n))


def _ratio(sums: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sums over counts; NaN where there is nothing to divide by."""
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def render(
    study: Study, results: xr.Dataset, *, image: str | None = None, short: bool = False
) -> str:
    """The report of a study, in Markdown.

    Parameters
    ----------
    study : Study
        What `load` returns.
    results : Dataset
        What `run` returns.
    image : str or None
        Path of the figure, relative to the report; None for a report without a figure.
    short : bool
        The main findings and rows of tables alone, as `Study.rows` and `Study.printed_only` say.

    Returns
    -------
    str
        Heading, source and claim, findings, figure, tables, and the command that makes it.
    """
    if short and study.page is not None:
        shown = [] if image is None else [f"![{study.title}]({image})"]
        made = [*shown, "## How it was made", PRINTED, *_making(results)]
        return "\n\n".join([f"# {study.title}", study.page(results), *made]) + "\n"
    findings, tables = study.findings(results), study.tables(results)
    n_all = len(findings), sum(len(table) for _, table in tables)
    if short:
        findings = [said for said in findings if not said.startswith(study.printed_only)]
        tables = [(title, main_part(study, title, table)) for title, table in tables]
        tables = [(title, table) for title, table in tables if len(table)]
    left_out = n_all != (len(findings), sum(len(table) for _, table in tables))
    parts = [
        f"# {study.title}",
        f"Source: {study.source}",
        f"What it says: {study.claim}",
        "## Findings",
        "\n".join(f"- {sentence}" for sentence in findings),
    ]
    if image is not None:
        parts.append(f"![{study.title}]({image})")
    for title, table in tables:
        parts += [f"## {title}", f"```text\n{_as_text(table)}\n```"]
    parts += ["## How it was made", *([PRINTED] if left_out else []), *_making(results)]
    return "\n\n".join(parts) + "\n"


def main_part(study: Study, title: str, table: pd.DataFrame) -> pd.DataFrame:
    """What the saved report has of a table; means of valid runs only where some run failed."""
    for beginning, query in study.rows.items():
        if title.startswith(beginning):
            table = table.query(query, engine="python") if query else table.iloc[:0]
    if "failed" in table and not table["failed"].any():
        table = table.drop(columns=[name for name in table if str(name).endswith("_valid")])
    return table


def save(
    study: Study, results: xr.Dataset, folder: str | os.PathLike[str], stem: str
) -> tuple[Path, Path]:
    """Write the report and its figure, ``<stem>.md`` and ``<stem>.png``.

    Parameters
    ----------
    study : Study
        What `load` returns.
    results : Dataset
        What `run` returns.
    folder : path-like
        Folder for both files; made if it does not exist.
    stem : str
        Name of both files, without extension.

    Returns
    -------
    tuple of Path
        The report and the figure.
    """
    report, picture = (Path(folder) / f"{stem}{suffix}" for suffix in (".md", ".png"))
    report.parent.mkdir(parents=True, exist_ok=True)
    text = render(study, results, image=picture.name, short=True)
    figure = study.figure(results)
    try:
        with whole(picture) as unfinished_picture, whole(report) as unfinished_report:
            figure.savefig(unfinished_picture, dpi=DPI)
            unfinished_report.write_text(text, encoding="utf-8")
    finally:
        plt.close(figure)
    return report, picture


def _as_text(table: pd.DataFrame) -> str:
    """Four significant digits; empty if there is no number."""
    # Rows that are only numbered need no names; others are what the study calls them.
    named = not isinstance(table.index, pd.RangeIndex)
    text = table.to_string(index=named, float_format=_number, na_rep="")
    return "\n".join(line.rstrip() for line in text.splitlines())


def _number(value: float) -> str:
    # The format gives up on digits before the point as soon as they are more than four.
    return f"{value:.0f}" if 1e4 <= abs(value) < 1e7 else f"{value:.4g}"


def _making(results: xr.Dataset) -> list[str]:
    """Paragraphs: the command, seed and numbers of runs, what failed, and the versions."""
    facts = results.attrs
    n_scenarios, n_replicates = results["done"].shape
    n_done = int(results["done"].sum())
    messages = Counter(str(text) for text in results["failure"].values.ravel() if text)
    made = f"{n_replicates} replicates of {n_scenarios} scenarios, seed {facts['seed']}"
    if n_done < results["done"].size:
        made += f"; only {n_done} of {results['done'].size} runs were made"
    return [
        f"```sh\n{_command(facts, n_replicates)}\n```",
        f"{made}. Failed runs: {messages.total()} of {n_done}{':' if messages else '.'}",
        *([_listed(messages)] if messages else []),
        f"{facts['software']}, Python {facts['python']}, NumPy {facts['numpy']}.",
    ]


def _command(facts: dict[Any, Any], n_replicates: int) -> str:
    words = ["python", "vignettes/studies", str(facts["study"])]
    words += ["--quick"] if facts["quick"] else []
    for name in ("settings", "data"):
        words += [f"--{name}", str(facts[name])] if facts[name] else []
    words += ["--replicates", str(n_replicates), "--seed", str(facts["seed"])]
    return shlex.join(words)


def _listed(messages: Counter[str]) -> str:
    lines = [f"- {count} × {text}" for text, count in messages.most_common(MESSAGES_LISTED)]
    others = len(messages) - len(lines)
    if others > 0:
        lines.append(f"- and {others} other messages")
    return "\n".join(lines)
