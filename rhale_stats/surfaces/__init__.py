"""Second-order effects: the joint effect of two features beyond their main effects."""

import sys

from rhale_stats.arguments.peers import Folder

# Users of other packages call it.
sys.modules[__name__].__class__ = Folder
