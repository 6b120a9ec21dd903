"""Times beside peers, and tasks that are timed; see `__main__`."""

import sys
from pathlib import Path

# Pages are written as the studies write theirs.
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "vignettes"))
