"""The simulation studies from a shell: ``python vignettes/studies NAME``.

``--list`` says which there are. Programs that print tables of the documents are called by their
names: ``python vignettes/studies formulas jumps``.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

# Also in the processes that a study starts.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

PROGRAMS = ("designs", "formulas", "outcome", "skewed", "split_sizes")

if __name__ == "__main__":
    if sys.argv[1:] and sys.argv[1] in PROGRAMS:
        runpy.run_module(f"studies.{sys.argv.pop(1)}", run_name="__main__", alter_sys=True)
    else:
        from studies.command import main

        sys.exit(main())
