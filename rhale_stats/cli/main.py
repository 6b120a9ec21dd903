"""The command line: options, jobs, exit status."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from rhale_stats._version import __version__
from rhale_stats.arguments.words import one_line, print_warning
from rhale_stats.cli.families import DEFAULT_FAMILY, FAMILIES
from rhale_stats.cli.interruption import (
    INTERRUPTED,
    PROGRAM,
    FailureError,
    UsageError,
    ended,
    ended_by_interruptions,
)

# Number of refits where none is given.
DEFAULT_REFITS = 100


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, like all other errors."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{PROGRAM}: {message}. `{self.prog} --help` says what is expected.\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status.

    Parameters
    ----------
    argv : sequence of str, optional
        The words after ``rhale-stats``. By default they are those of this process, and Ctrl-C then
        ends the process soon, whatever it is computing.

    Returns
    -------
    int
        0 for success, 1 for failures, 2 for commands that cannot be carried out as they were typed,
        130 after Ctrl-C.
    """
    if argv is not None:
        return _main(argv)
    with ended_by_interruptions():
        status = _main(sys.argv[1:])
    if status == INTERRUPTED:
        with suppress(OSError):
            sys.stdout.flush()
        # Without waiting for threads of libraries that are still computing.
        os._exit(status)
    return status


def _main(argv: Sequence[str]) -> int:
    try:
        with warnings.catch_warnings():
            warnings.showwarning = print_warning  # type: ignore[assignment]
            arguments = _parser().parse_args(argv)
            # Only now: `--help` answers without the libraries that fit and draw.
            from rhale_stats.cli import jobs

            getattr(jobs, arguments.job)(arguments)
            sys.stdout.flush()
        return 0
    except KeyboardInterrupt as interruption:
        return ended(INTERRUPTED, " ".join(["interrupted.", *map(str, interruption.args)]))
    except BrokenPipeError:
        # The reader of the output, such as `head`, has closed it. Python would write once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except UsageError as error:
        return ended(2, str(error))
    except FailureError as error:
        return ended(1, str(error))
    except Exception as error:
        return ended(1, one_line(error))


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog=PROGRAM,
        description="Average effects of features on a model's output, their heterogeneity and "
        "their uncertainty (RHALE). Without a command: the RAND Health Insurance data.",
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    parser.set_defaults(job="rand_job")
    _add_common(parser)
    commands = parser.add_subparsers(metavar="COMMAND")
    fit = commands.add_parser(
        "fit", help="fit a generalised linear model to a table and show its effects"
    )
    fit.set_defaults(job="fit_job")
    fit.add_argument(
        "data",
        metavar="DATA",
        type=Path,
        help="CSV, Parquet or Feather file, with names of columns",
    )
    fit.add_argument(
        "--formula",
        required=True,
        help="model formula, as in 'y ~ cr(age, df=4) * sex'. Formulas are evaluated as Python "
        "code: do not use a formula from a source that you do not trust",
    )
    fit.add_argument(
        "--family",
        choices=sorted(FAMILIES),
        help=f"of the outcome (default: {DEFAULT_FAMILY})",
    )
    fit.add_argument(
        "--features",
        nargs="+",
        metavar="NAME",
        help="features to show (default: the continuous regressors of the formula)",
    )
    _add_uncertainty(fit)
    _add_common(fit)
    study = commands.add_parser("study", help="run a simulation study and print its report")
    study.set_defaults(job="study_job")
    _add_study(study)
    return parser


def _add_uncertainty(fit: argparse.ArgumentParser) -> None:
    fit.add_argument(
        "--uncertainty",
        choices=("both", "rows", "parameters"),
        default="both",
        help="what standard errors hold: the sampling of the rows, that of the model's parameters, "
        "or both (default)",
    )
    fit.add_argument(
        "--groups",
        metavar="COLUMN",
        help="rows with the same value may depend on each other: standard errors of rows and "
        "parameters are then cluster-robust",
    )
    fit.add_argument(
        "--refits",
        type=int,
        nargs="?",
        const=DEFAULT_REFITS,
        metavar="N",
        help=f"fit the model again to N samples of the rows or groups (N: {DEFAULT_REFITS}), and "
        "show how its effects vary",
    )


def _add_study(study: argparse.ArgumentParser) -> None:
    study.add_argument("name", metavar="NAME", nargs="?", help="one of those in --list")
    study.add_argument("--list", action="store_true", help="print the names of all studies")
    study.add_argument("--quick", action="store_true", help="fewer or smaller simulations")
    study.add_argument(
        "--replicates",
        type=int,
        metavar="N",
        help="per scenario (default: by study)",
    )
    study.add_argument(
        "--jobs", type=int, metavar="N", help="number of processes (default: number of CPUs)"
    )
    study.add_argument("--seed", type=int, default=0, metavar="N", help="random seed (default: 0)")
    study.add_argument("--settings", metavar="S", help="variant of the study, if it has variants")
    study.add_argument("--data", type=Path, metavar="PATH", help="data, if the study reads a file")
    _add_common(study)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out",
        type=Path,
        default=argparse.SUPPRESS,
        metavar="DIR",
        help="folder for the files (default: the working folder)",
    )
    parser.add_argument(
        "--no-progress",
        action="store_true",
        default=argparse.SUPPRESS,
        help="show no progress bar",
    )
