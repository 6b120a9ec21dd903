"""Average predictions, slopes and comparisons of levels of a fitted model."""

import sys

from rhale_stats.arguments.peers import Folder

# Users of other packages call it.
sys.modules[__name__].__class__ = Folder
