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
from rhale_stats.ale import ale, ale_from_local, ale_local_effects, dale
from rhale_stats.bins import (
    AdaptiveBins,
    BestEqualWidthBins,
    EqualWidthBins,
    GivenBins,
    GreedyBins,
    OptimalBins,
    QuantileBins,
)
from rhale_stats.collect import to_datatree
from rhale_stats.display import load_ipython_extension as load_ipython_extension
from rhale_stats.display import show
from rhale_stats.display import unload_ipython_extension as unload_ipython_extension
from rhale_stats.effects import local_effects, rhale
from rhale_stats.g_errors import std_error, vcov
from rhale_stats.g_hypotheses import compare, wald_test
from rhale_stats.g_intervals import confband, confint
from rhale_stats.g_resampling import bootstrap
from rhale_stats.g_tables import glance, summary, tidy
from rhale_stats.g_values import predict
from rhale_stats.h_statistics import h_statistic
from rhale_stats.hypotheses import equivalence_test
from rhale_stats.interactions import interaction_matrix
from rhale_stats.method_comparison import compare_methods
from rhale_stats.models import ModelError
from rhale_stats.output_plots import plot_outputs
from rhale_stats.plots import (
    plot_bias,
    plot_bins,
    plot_compare,
    plot_edges,
    plot_effect,
    plot_effects,
    plot_forest,
)
from rhale_stats.probes import JumpWarning, check_jacobian
from rhale_stats.profile_plots import plot_methods, plot_profile
from rhale_stats.profiles import ice, m_plot, pdp, shap_dependence
from rhale_stats.region_plots import plot_interactions, plot_regions, plot_tree
from rhale_stats.regional import all_regions, assign, regional_rhale, regions
from rhale_stats.regional_comparisons import regional_ale, regional_pdp, regional_shap
from rhale_stats.resampling import bootstrap_refit, folds
from rhale_stats.scoring import mae, mcse
from rhale_stats.second_order import ale2
from rhale_stats.second_order_plots import plot_h_statistics, plot_surface
from rhale_stats.simulate import dense_truth
from rhale_stats.sizes import effect_sizes
from rhale_stats.summaries import augment
from rhale_stats.unbiasedness import check_unbiased, debias, jump_check

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
