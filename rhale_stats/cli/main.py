"""The command line: jobs, exit status, and where the output goes; the command `version`."""

from __future__ import annotations

import argparse
import io
import os
import platform
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext, redirect_stdout, suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from rhale_stats._version import __version__
from rhale_stats.arguments.words import one_line, print_warning
from rhale_stats.cli import interruption
from rhale_stats.cli.interruption import INTERRUPTED, FailureError, UsageError, ended
from rhale_stats.cli.parser import check_model, parser


def main(argv: Sequence[str] | None = None, *, demo: bool = False) -> int:
    """Run the command line and return the exit status.

    Parameters
    ----------
    argv : sequence of str, optional
        The words after ``rhale-stats``. By default they are those of this process, and Ctrl-C then
        ends the process soon, whatever it is computing.
    demo : bool, default False
        Whether the demonstration is run where no command is named; else the help is shown.

    Returns
    -------
    int
        0 for success, 1 for failures, 2 for commands that cannot be carried out as they were typed,
        130 after Ctrl-C.
    """
    if argv is not None:
        return _main(argv, demo=demo)
    with interruption.ended_by_interruptions():
        status = _main(sys.argv[1:], demo=demo)
    if status == INTERRUPTED:
        with suppress(OSError):
            sys.stdout.flush()
        # Without waiting for threads of libraries that are still computing.
        os._exit(status)
    return status


def _main(argv: Sequence[str], *, demo: bool) -> int:
    debug = False
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _once()
            # A model that was fitted to an array gets the columns of the table in their order.
            warnings.filterwarnings("ignore", "X has feature names, but")
            argv = [*argv[1:], "--help"] if argv[:1] == ["help"] else argv
            arguments = parser(demo=demo).parse_args(argv)
            debug = hasattr(arguments, "debug")
            if arguments.job is not None:
                _run(arguments)
            elif argv:
                raise UsageError("a command must be named, as in `rhale-stats demo`: see --help.")
            else:
                parser().print_help()
            sys.stdout.flush()
        return 0
    except KeyboardInterrupt as interrupt:
        return ended(INTERRUPTED, " ".join(["interrupted.", *map(str, interrupt.args)]))
    except BrokenPipeError:
        # The reader of the output, such as `head`, has closed it. Python would write once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if debug:
            traceback.print_exception(error)
        if isinstance(error, UsageError):
            return ended(2, str(error))
        return ended(1, str(error) if isinstance(error, FailureError) else one_line(error))


def _once() -> Callable[..., None]:
    """What shows a warning as one line, unless the same line was shown before."""
    shown = set()

    def show(message: Warning | str, *where: object) -> None:
        if str(message) not in shown:
            shown.add(str(message))
            print_warning(message, *where)

    return show


def _run(arguments: argparse.Namespace) -> None:
    """Do the job of a command: print its text, or nothing, or its answer as JSON."""
    in_json, silent = hasattr(arguments, "json"), hasattr(arguments, "quiet")
    arguments.progress = not (in_json or silent or hasattr(arguments, "no_progress"))
    check_model(arguments)
    # Only now: `--help` answers without the libraries that fit and draw.
    module, _, name = arguments.job.partition(":")
    job = getattr(import_module(f"rhale_stats.cli.{module}"), name)
    from threadpoolctl import threadpool_limits

    # Matrices are small: several threads of BLAS would wait for each other, and take the other
    # processors' time for it.
    with (
        threadpool_limits(1, user_api="blas"),
        redirect_stdout(io.StringIO()) if in_json or silent else nullcontext(),
    ):
        answer = job(arguments)
    if in_json:
        from rhale_stats.cli.files import as_json

        print(as_json(answer))


# What results depend on, and the libraries of models.
LIBRARIES = (
    *("numpy", "scipy", "pandas", "xarray", "statsmodels", "matplotlib"),
    *("scikit-learn", "xgboost", "lightgbm", "catboost", "onnxruntime", "torch", "jax"),
    *("pygam", "pyarrow", "polars", "zarr", "dask"),
)


def version_job(_arguments: argparse.Namespace) -> dict[str, Any]:
    """Print the versions of the package, of Python and of the libraries."""
    versions: dict[str, str | None] = {
        "rhale-stats": __version__,
        "python": platform.python_version(),
        **{name: version_of(name) for name in LIBRARIES},
    }
    width = max(map(len, versions))
    for name, number in versions.items():
        print(f"{name:<{width}}  {number or 'not installed'}")
    return {**versions, "system": platform.platform()}


def version_of(name: str) -> str | None:
    """The version of an installed library, or None."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None
