"""The command line in a process of its own, which tests interrupt and kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Far more than anything takes, also where many tests share a processor.
PATIENCE = 120
SCRIPT = """
import sys
from pathlib import Path

from rhale_stats.cli import main
from tests import commands

{before}

if __name__ == "__main__":
    sys.exit(main.main())
"""


def start(folder, *words, before="", **environment):
    """Start ``rhale-stats`` on words, in a group of processes of its own."""
    script = folder / "command.py"
    script.write_text(SCRIPT.format(before=before))
    return subprocess.Popen(
        [sys.executable, "-W", "error::UserWarning", str(script), *map(str, words)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_to_be_ended(folder, stubborn):
    """Leave a file named by this process, and wait; a stubborn one goes on after Ctrl-C."""
    (folder / str(os.getpid())).touch()
    while True:
        try:
            time.sleep(600)
        except KeyboardInterrupt:
            if not stubborn:
                raise


def interrupted(process):
    """Press Ctrl-C in the terminal of a process; its status and what it said to that."""
    os.killpg(process.pid, signal.SIGINT)
    return ended(process)


def ended(process):
    """Status and stderr of a process, once it has ended."""
    try:
        error = process.communicate(timeout=PATIENCE)[1]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    return process.returncode, error


def until(happened, process=None):
    """Wait until something has happened, or fail."""
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert process is None or process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(0.02)


def is_alive(process_id):
    """Whether a process runs; one that has ended and was not asked for its status does not."""
    try:
        status = Path(f"/proc/{process_id}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] != "Z"
