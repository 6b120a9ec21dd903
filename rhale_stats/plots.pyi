"""The pictures, and the modules that draw them."""

from .drawing.bins import plot_bias as bias
from .drawing.bins import plot_bins as bins
from .drawing.bins import plot_edges as edges
from .drawing.bins import plot_scores as scores
from .drawing.effects import plot_effect as effect
from .drawing.effects import plot_effects as effects
from .drawing.effects import plot_outputs as outputs
from .drawing.estimates import plot_compare as compare
from .drawing.estimates import plot_forest as forest
from .drawing.estimates import plot_outcome as outcome
from .drawing.estimates import plot_summary as summary
from .drawing.facets import plot_curves as curves
from .drawing.heat_maps import plot_h_statistics as h_statistics
from .drawing.heat_maps import plot_interactions as interactions
from .drawing.heat_maps import plot_surface as surface
from .drawing.profile import plot_methods as methods
from .drawing.profile import plot_profile as profile
from .drawing.tree import plot_regions as regions
from .drawing.tree import plot_tree as tree

__all__ = [
    "bias",
    "bins",
    "compare",
    "curves",
    "edges",
    "effect",
    "effects",
    "forest",
    "h_statistics",
    "interactions",
    "methods",
    "outcome",
    "outputs",
    "profile",
    "regions",
    "scores",
    "summary",
    "surface",
    "tree",
]
