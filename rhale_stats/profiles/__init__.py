"""Curves of one feature on a grid: partial dependence, ICE, M-plots, SHAP dependence."""

import sys

from rhale_stats.arguments.peers import Folder

# Users of other packages call it.
sys.modules[__name__].__class__ = Folder
