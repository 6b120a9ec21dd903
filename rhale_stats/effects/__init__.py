"""Effects in bins: RHALE and ALE, their errors, intervals, tests, sizes and tables."""

import sys

from rhale_stats.arguments.peers import Folder

# Users of other packages call it.
sys.modules[__name__].__class__ = Folder
