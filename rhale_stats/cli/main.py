"""The command line: jobs, exit status, and where the output goes; the command `version`."""

from __future__ import annotations

import argparse
import io
import os
import platform
import signal
import socket
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from types import FrameType
from typing import Any, NoReturn

from rhale_stats._version import __version__
from rhale_stats.arguments.words import one_line, print_warning
from rhale_stats.cli.parser import PROGRAM, FailureError, UsageError, check_model, parser
from rhale_stats.files import discard_unfinished

# What a shell expects of a program that Ctrl-C ended: 128 and the number of the signal.
INTERRUPTED = 130
# Time that the main thread has to clean up after Ctrl-C.
GRACE_SECONDS = 1.5


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
    with ended_by_interruptions():
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
            # The same line once.
            once = cache(print_warning)
            warnings.showwarning = lambda message, *_where: once(str(message))
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
        return _ended(INTERRUPTED, " ".join(["interrupted.", *map(str, interrupt.args)]))
    except BrokenPipeError:
        # The reader of the output, such as `head`, has closed it. Python would write once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if debug:
            traceback.print_exception(error)
        if isinstance(error, UsageError):
            return _ended(2, str(error))
        return _ended(1, str(error) if isinstance(error, FailureError) else one_line(error))


def _ended(status: int, message: str) -> int:
    """Print the message as one line, and return the exit status."""
    print(f"{PROGRAM}: {' '.join(message.split())}", file=sys.stderr, flush=True)
    return status


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


@contextmanager
def ended_by_interruptions() -> Iterator[None]:
    """Make Ctrl-C end this process soon, even inside a library that does not react to it.

    Python handles a signal between two of its own instructions. The decomposition of a large
    matrix is one instruction and can take minutes. A second thread is therefore told of the signal
    at once. It gives the main thread a moment to clean up, then it ends the process.
    """
    told, tell = socket.socketpair()
    tell.setblocking(False)
    over = threading.Event()
    watch = threading.Thread(target=_end_if_interrupted, args=(told, over), daemon=True)
    # A shell may have started this process with Ctrl-C ignored, as in the background.
    handler_before = signal.signal(signal.SIGINT, _interrupt_once)
    told_before = signal.set_wakeup_fd(tell.fileno(), warn_on_full_buffer=False)
    watch.start()
    try:
        yield
    finally:
        over.set()
        signal.set_wakeup_fd(told_before)
        signal.signal(signal.SIGINT, handler_before or signal.SIG_DFL)
        tell.close()
        watch.join()
        told.close()


def _interrupt_once(_number: int, _frame: FrameType | None) -> NoReturn:
    """Interrupt the computation, but not the cleaning up that follows."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def _end_if_interrupted(told: socket.socket, over: threading.Event) -> None:
    """Wait for a signal; if it is Ctrl-C and the main thread does not end, end the process."""
    while (number := told.recv(1)) and number[0] != signal.SIGINT:
        pass
    if number and not over.wait(GRACE_SECONDS):
        discard_unfinished()
        line = f"\n{PROGRAM}: interrupted.\n".encode()
        os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, line)
        os._exit(INTERRUPTED)


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
    with suppress(PackageNotFoundError):
        return version(name)
    return None
