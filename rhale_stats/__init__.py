"""Feature effects with uncertainty: what a model's output does as one feature moves.

Functions on data, labelled results::

    local = rs.local_effects(model, X)
    effect = rs.rhale(local)
    print(rs.summary(effect))
    rs.plot_effect(effect, "age", local)
"""

from rhale_stats import accessor as _accessor  # registers Dataset.rhale
from rhale_stats import simulate
from rhale_stats._version import __version__
from rhale_stats.bins.adaptive import AdaptiveBins
from rhale_stats.bins.fixed import EqualWidthBins, GivenBins, QuantileBins
from rhale_stats.bins.searched import BestEqualWidthBins, GreedyBins, OptimalBins
from rhale_stats.diagnostics.folds import folds
from rhale_stats.diagnostics.jumps import jump_check
from rhale_stats.diagnostics.refits import bootstrap_refit
from rhale_stats.diagnostics.scores import mae, mcse
from rhale_stats.diagnostics.unbiased import check_unbiased, debias
from rhale_stats.effects.ale import ale, ale_from_local, dale
from rhale_stats.effects.equivalence import equivalence_test
from rhale_stats.effects.rhale import rhale
from rhale_stats.effects.sizes import effect_sizes
from rhale_stats.effects.tables import augment
from rhale_stats.generics.compare_methods import compare_methods
from rhale_stats.generics.datatree import to_datatree
from rhale_stats.generics.errors import std_error, vcov
from rhale_stats.generics.hypotheses import compare, wald_test
from rhale_stats.generics.intervals import confband, confint
from rhale_stats.generics.resampling import bootstrap
from rhale_stats.generics.show import load_ipython_extension, show, unload_ipython_extension
from rhale_stats.generics.tables import glance, summary, tidy
from rhale_stats.generics.values import predict
from rhale_stats.h_statistics.statistic import h_statistic
from rhale_stats.local.ale import ale_local_effects
from rhale_stats.local.local_effects import local_effects
from rhale_stats.models.jacobian import check_jacobian
from rhale_stats.models.outputs import ModelError
from rhale_stats.models.probes import JumpWarning
from rhale_stats.plots.bias import plot_bias
from rhale_stats.plots.bins import plot_bins
from rhale_stats.plots.compare import plot_compare
from rhale_stats.plots.edges import plot_edges
from rhale_stats.plots.effect import plot_effect
from rhale_stats.plots.effects import plot_effects
from rhale_stats.plots.forest import plot_forest
from rhale_stats.plots.h_statistics import plot_h_statistics
from rhale_stats.plots.interactions import plot_interactions
from rhale_stats.plots.methods import plot_methods
from rhale_stats.plots.outputs import plot_outputs
from rhale_stats.plots.profile import plot_profile
from rhale_stats.plots.regions import plot_regions
from rhale_stats.plots.surface import plot_surface
from rhale_stats.plots.tree import plot_tree
from rhale_stats.profiles.m_plot import m_plot
from rhale_stats.profiles.pdp import ice, pdp
from rhale_stats.profiles.shap import shap_dependence
from rhale_stats.regional.ale import regional_ale
from rhale_stats.regional.effects import regional_rhale
from rhale_stats.regional.interactions import interaction_matrix
from rhale_stats.regional.pdp import regional_pdp
from rhale_stats.regional.regions import all_regions, regions
from rhale_stats.regional.shap import regional_shap
from rhale_stats.regional.trees import assign
from rhale_stats.simulate.truth import dense_truth
from rhale_stats.surfaces.ale2 import ale2

__all__ = [
    "AdaptiveBins",
    "BestEqualWidthBins",
    "EqualWidthBins",
    "GivenBins",
    "GreedyBins",
    "JumpWarning",
    "ModelError",
    "OptimalBins",
    "QuantileBins",
    "__version__",
    "ale",
    "ale2",
    "ale_from_local",
    "ale_local_effects",
    "all_regions",
    "assign",
    "augment",
    "bootstrap",
    "bootstrap_refit",
    "check_jacobian",
    "check_unbiased",
    "compare",
    "compare_methods",
    "confband",
    "confint",
    "dale",
    "debias",
    "dense_truth",
    "effect_sizes",
    "equivalence_test",
    "folds",
    "glance",
    "h_statistic",
    "ice",
    "interaction_matrix",
    "jump_check",
    "local_effects",
    "m_plot",
    "mae",
    "mcse",
    "pdp",
    "plot_bias",
    "plot_bins",
    "plot_compare",
    "plot_edges",
    "plot_effect",
    "plot_effects",
    "plot_forest",
    "plot_h_statistics",
    "plot_interactions",
    "plot_methods",
    "plot_outputs",
    "plot_profile",
    "plot_regions",
    "plot_surface",
    "plot_tree",
    "predict",
    "regional_ale",
    "regional_pdp",
    "regional_rhale",
    "regional_shap",
    "regions",
    "rhale",
    "shap_dependence",
    "show",
    "simulate",
    "std_error",
    "summary",
    "tidy",
    "to_datatree",
    "vcov",
    "wald_test",
]

del _accessor
