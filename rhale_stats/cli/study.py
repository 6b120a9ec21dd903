"""The command `study`: run a simulation study and report it."""

from __future__ import annotations

import argparse
import re
from typing import Any

from rhale_stats import studies
from rhale_stats.cli.interruption import UsageError
from rhale_stats.cli.outputs import folder_of
from rhale_stats.studies import report


def study_job(arguments: argparse.Namespace) -> dict[str, Any]:
    """Run a simulation study and report it."""
    names = studies.names()
    if arguments.list:
        titles = {name: studies.load(name).title for name in names}
        for name, title in titles.items():
            print(f"{name:<{max(map(len, names))}}  {title}")
        return {"studies": titles}
    if arguments.name not in names:
        raise UsageError(
            f"NAME must be one of {', '.join(names) or '(none)'}; "
            f"got {arguments.name or 'none'}. --list says what they are."
        )
    if arguments.data is not None and not arguments.data.exists():
        raise UsageError(f"--data must be an existing file; there is no {arguments.data}.")
    stem = _stem(arguments)
    options = studies.Options(arguments.quick, arguments.settings, arguments.data)
    try:
        study = studies.load(arguments.name, options)
    except ValueError as error:
        raise UsageError(str(error)) from error
    out = folder_of(arguments, [f"{stem}{suffix}" for suffix in (".nc", ".md", ".png")])
    try:
        results = studies.run(
            arguments.name,
            options,
            n_replicates=arguments.replicates,
            jobs=arguments.jobs,
            seed=arguments.seed,
            path=out / f"{stem}.nc",
            progress=not getattr(arguments, "no_progress", False),
        )
    except ValueError as error:
        raise UsageError(str(error)) from error
    except KeyboardInterrupt:
        raise KeyboardInterrupt("The same command continues the study where it stopped.") from None
    text, picture = report.save(study, results, out, stem)
    print(report.render(study, results))
    print(f"{out / f'{stem}.nc'}: the results, as xarray.open_dataset reads them.")
    print(f"{text}: this report.")
    print(f"{picture}: its figure.")
    return {
        "study": study.name,
        "title": study.title,
        "findings": list(study.findings(results)),
        "files": [str(path) for path in (out / f"{stem}.nc", text, picture)],
    }


def _stem(arguments: argparse.Namespace) -> str:
    """Name of the files of a study and its variant, without characters that names cannot have."""
    stem = str(arguments.name)
    if arguments.settings is not None:
        stem += "-" + re.sub(r"[^\w.=-]+", "-", arguments.settings)
    return stem + ("-quick" if arguments.quick else "")
