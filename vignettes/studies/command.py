"""The command line of the studies: run one and report it."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import studies
from studies import report


def main(words: list[str] | None = None) -> int:
    """Run the study that is named; 2 if it cannot be run as asked for."""
    arguments = _parser().parse_args(words)
    names = studies.names()
    if arguments.list:
        for name in names:
            print(f"{name:<{max(map(len, names))}}  {studies.load(name).title}")
        return 0
    try:
        _run(arguments)
    except (KeyError, ValueError, OSError) as error:
        print(error.args[0] if isinstance(error, KeyError) else error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted. The same command continues the study where it stopped", file=sys.stderr)
        return 130
    return 0


def _run(arguments: argparse.Namespace) -> None:
    stem = _stem(arguments)
    arguments.out.mkdir(parents=True, exist_ok=True)
    options = studies.Options(arguments.quick, arguments.settings, arguments.data)
    study = studies.load(arguments.name, options)
    results = studies.run(
        arguments.name,
        options,
        n_replicates=arguments.replicates,
        jobs=arguments.jobs,
        seed=arguments.seed,
        path=arguments.out / f"{stem}.nc",
        progress=not arguments.no_progress,
    )
    text, picture = report.save(study, results, arguments.out, stem)
    print(report.render(study, results))
    print(f"{arguments.out / f'{stem}.nc'}: the results, as xarray.open_dataset reads them.")
    print(f"{text}: this report.\n{picture}: its figure.")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python vignettes/studies", description=__doc__)
    parser.add_argument("name", metavar="NAME", nargs="?", help="one of those in --list")
    parser.add_argument("--list", action="store_true", help="print the names of all studies")
    parser.add_argument("--quick", action="store_true", help="fewer or smaller simulations")
    parser.add_argument("--replicates", type=int, help="per scenario (default: by study)")
    parser.add_argument("--jobs", type=int, help="processes (default: number of CPUs)")
    parser.add_argument("--seed", type=int, default=0, help="random seed (default: 0)")
    parser.add_argument("--settings", help="variant of the study, if it has variants")
    parser.add_argument("--data", type=Path, help="data, if the study reads a file")
    parser.add_argument("--out", type=Path, default=Path(), help="folder for the files")
    parser.add_argument("--no-progress", action="store_true", help="no bar")
    return parser


def _stem(arguments: argparse.Namespace) -> str:
    """Name of the files of a study and its variant, without characters that names cannot have."""
    stem = str(arguments.name)
    if arguments.settings is not None:
        stem += "-" + re.sub(r"[^\w.=-]+", "-", arguments.settings)
    return stem + ("-quick" if arguments.quick else "")
