"""How the command line ends: after errors, and after Ctrl-C."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from rhale_stats.files import discard_unfinished

PROGRAM = "rhale-stats"
# What a shell expects of a program that Ctrl-C ended: 128 and the number of the signal.
INTERRUPTED = 130
INTERRUPTED_LINE = f"\n{PROGRAM}: interrupted.\n".encode()
# Time that the main thread has to clean up after Ctrl-C.
GRACE_SECONDS = 1.5


class UsageError(Exception):
    """The command cannot be carried out as it was typed. The message says why and what to do."""


class FailureError(Exception):
    """The command was tried, and failed. The message says why."""


def ended(status: int, message: str) -> int:
    """Print the message as one line, and return the exit status."""
    print(f"{PROGRAM}: {' '.join(message.split())}", file=sys.stderr, flush=True)
    return status


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
        os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, INTERRUPTED_LINE)
        os._exit(INTERRUPTED)
