"""The public names and where they live; `__init__` loads each when it is first used."""

from . import plots, simulate, sklearn
from .arguments.survey import SurveyDesign
from .bins.adaptive import AdaptiveBins
from .bins.rules import (
    BestEqualWidthBins,
    EqualWidthBins,
    GivenBins,
    GreedyBins,
    OptimalBins,
    QuantileBins,
)
from .diagnostics.chance import sizes_by_chance
from .diagnostics.checks import check_unbiased, debias, jump_check
from .diagnostics.folds import folds
from .drawing.picture import plot
from .effects.ale import ale, ale_from_local, dale
from .effects.hypotheses import equivalence_test
from .effects.merged import merge
from .effects.rhale import rhale
from .effects.tables import augment
from .ensembles.draws import DrawOptions, over_models
from .ensembles.refits import RefitOptions, bootstrap_refit, cross_effects
from .explanation.explain import Explanation, explain
from .explanation.request import ExplainOptions
from .generics.compare_methods import compare_methods
from .generics.hypotheses import compare, hypotheses, wald_test
from .generics.pooling import pool
from .generics.tables import glance, show, summary, tidy, to_datatree
from .generics.uncertainty import ResamplingOptions, bootstrap, confband, confint, std_error, vcov
from .generics.values import effect_sizes, predict
from .h_statistics.statistic import HEstimator, h_statistic
from .local.ale import ale_local_effects
from .local.local_effects import local_effects
from .margins.averages import averages
from .margins.contrasts import datagrid
from .models.adapters.adapter import Adapter
from .models.adapters.libraries import adapters
from .models.options import ModelOptions
from .models.outputs import ModelError
from .models.parametric import Parametric
from .models.probes import JumpWarning, check_jacobian
from .models.shapley import ShapleyOptions
from .outcome.outcome_effects import outcome_effects
from .profiles.dependence import m_plot, shap_dependence
from .profiles.pdp import ice, pdp
from .regional.comparisons import regional_ale, regional_pdp, regional_shap
from .regional.regions import all_regions, interaction_matrix, regional_rhale, regions
from .regional.search import SplitSearch
from .regional.trees import assign
from .reporting.report import report
from .surfaces.ale2 import ale2

__version__: str

def load_ipython_extension(ipython: object) -> None: ...
def unload_ipython_extension(ipython: object) -> None: ...

__all__ = [
    "Adapter",
    "AdaptiveBins",
    "BestEqualWidthBins",
    "DrawOptions",
    "EqualWidthBins",
    "ExplainOptions",
    "Explanation",
    "GivenBins",
    "GreedyBins",
    "HEstimator",
    "JumpWarning",
    "ModelError",
    "ModelOptions",
    "OptimalBins",
    "Parametric",
    "QuantileBins",
    "RefitOptions",
    "ResamplingOptions",
    "ShapleyOptions",
    "SplitSearch",
    "SurveyDesign",
    "__version__",
    "adapters",
    "ale",
    "ale2",
    "ale_from_local",
    "ale_local_effects",
    "all_regions",
    "assign",
    "augment",
    "averages",
    "bootstrap",
    "bootstrap_refit",
    "check_jacobian",
    "check_unbiased",
    "compare",
    "compare_methods",
    "confband",
    "confint",
    "cross_effects",
    "dale",
    "datagrid",
    "debias",
    "effect_sizes",
    "equivalence_test",
    "explain",
    "folds",
    "glance",
    "h_statistic",
    "hypotheses",
    "ice",
    "interaction_matrix",
    "jump_check",
    "local_effects",
    "m_plot",
    "merge",
    "outcome_effects",
    "over_models",
    "pdp",
    "plot",
    "plots",
    "pool",
    "predict",
    "regional_ale",
    "regional_pdp",
    "regional_rhale",
    "regional_shap",
    "regions",
    "report",
    "rhale",
    "shap_dependence",
    "show",
    "simulate",
    "sizes_by_chance",
    "sklearn",
    "std_error",
    "summary",
    "tidy",
    "to_datatree",
    "vcov",
    "wald_test",
]
