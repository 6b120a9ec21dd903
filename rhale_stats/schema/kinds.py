"""Kinds of results: how to recognise each, which function made it, and which functions take it."""

from __future__ import annotations

from typing import NamedTuple

import xarray as xr


class Kind(NamedTuple):
    """One kind of result.

    ``name`` and ``maker`` are for messages; ``verbs`` the public functions that take it, besides
    those that are for this kind alone. A Dataset is of the kind whose ``variables`` and ``dims`` it
    has and, where ``methods`` are given, whose attribute ``method`` is one of them. Selections are
    known by this, too. ``form`` is the type of the result.
    """

    name: str
    maker: str
    verbs: tuple[str, ...]
    variables: frozenset[str] = frozenset()
    dims: frozenset[str] = frozenset()
    methods: frozenset[str] = frozenset()
    form: type = xr.Dataset

    def holds(self, result: object) -> bool:
        """Whether this is a result of this kind."""
        return (
            isinstance(result, xr.Dataset | xr.DataTree)
            and isinstance(result, self.form)
            and result.variables.keys() >= self.variables
            and result.sizes.keys() >= self.dims
            and (not self.methods or str(result.attrs.get("method")) in self.methods)
        )


# Generic functions that print and tabulate.
TABLES = ("tidy", "glance", "summary", "show")
PROFILE_METHODS = ("pdp", "ice", "m_plot", "shap_dependence")
LOCAL = Kind(
    "local effects",
    "local_effects(model, X)",
    ("rhale", "folds", "regions", "interaction_matrix", "summary", "show", "to_datatree"),
    frozenset({"x", "local_effect"}),
)
ENSEMBLE_METHODS = ("bootstrap_refit", "cross_effects", "over_models", "pool")
# Before `REPLICATES`: members of an ensemble are along the same dimensions.
ENSEMBLE = Kind(
    "results of several models",
    "bootstrap_refit, cross_effects or over_models",
    (
        *("std_error", "confint", "confband", "vcov", "wald_test", "hypotheses", "compare"),
        *(
            "predict",
            "effect_sizes",
            *TABLES,
            "plots.effect",
            "plots.effects",
            "plots.forest",
            "to_datatree",
        ),
    ),
    dims=frozenset({"draw"}),
    methods=frozenset(ENSEMBLE_METHODS),
)
REPLICATES = Kind(
    "replicates",
    "bootstrap(local, effect)",
    ("confint", "effect_sizes", "plots.edges", "plots.forest", "summary", "show", "to_datatree"),
    dims=frozenset({"draw"}),
)
EFFECT = Kind(
    "effects in bins",
    "rhale(local)",
    (
        *("std_error", "confint", "confband", "vcov", "bootstrap", "wald_test", "hypotheses"),
        *("compare", "compare_methods", "predict", "effect_sizes", *TABLES),
        *("plots.effect", "plots.effects", "to_datatree"),
    ),
    frozenset({"effect", "heterogeneity", "curve"}),
)
PROFILE = Kind(
    "a profile",
    "pdp, ice, m_plot or shap_dependence",
    (
        *("std_error", "confint", "confband", "vcov", "bootstrap", "wald_test", "hypotheses"),
        *("compare", "compare_methods", "predict", *TABLES),
        *("plots.effect", "plots.effects", "plots.profile", "to_datatree"),
    ),
    methods=frozenset(PROFILE_METHODS),
)
SURFACE = Kind(
    "a surface",
    "ale2(model, X, features)",
    (
        *("std_error", "confint", "confband", "vcov", "bootstrap", "wald_test", "hypotheses"),
        *("compare", "predict", *TABLES, "plots.surface", "to_datatree"),
    ),
    frozenset({"surface", "second_effect"}),
)
H_STATISTICS = Kind(
    "H-statistics",
    "h_statistic(model, X)",
    (
        *("std_error", "confint", "bootstrap", "compare", *TABLES),
        *("plots.h_statistics", "to_datatree"),
    ),
    methods=frozenset({"H-statistics"}),
)
H_DIFFERENCE = Kind(
    "a difference of H-statistics",
    "compare(a, b)",
    ("tidy", "summary", "show", "to_datatree"),
    methods=frozenset({"difference of H-statistics"}),
)
TREE = Kind(
    "trees of regions",
    "regions(local, feature)",
    (*TABLES, "assign", "regional_rhale", "plots.tree", "plots.regions", "to_datatree"),
    methods=frozenset({"regions", "regional_pdp", "regional_ale", "regional_shap"}),
)
INTERACTIONS = Kind(
    "drops of all pairs of columns",
    "interaction_matrix(local, X)",
    ("tidy", "summary", "show", "plots.interactions", "to_datatree"),
    methods=frozenset({"interaction matrix"}),
)
SURFACE_DIFFERENCE = Kind(
    "a difference of surfaces",
    "compare(a, b)",
    (*TABLES, "plots.surface", "to_datatree"),
    frozenset({"difference"}),
    frozenset({"edge_a", "edge_b"}),
    frozenset({"test"}),
)
TEST = Kind(
    "a test",
    "wald_test, equivalence_test or compare",
    (*TABLES, "plots.compare", "to_datatree"),
    methods=frozenset({"test"}),
)
SIZES = Kind(
    "sizes of effects",
    "effect_sizes(effect) or sizes_by_chance(fit, data)",
    ("tidy", "summary", "show", "to_datatree"),
    methods=frozenset({"effect sizes"}),
)
AVERAGES = Kind(
    "averages",
    "averages(model, X)",
    ("hypotheses", "pool", "confint", "vcov", "tidy", "summary", "show", "to_datatree"),
    methods=frozenset({"averages", "hypotheses"}),
)
EXPLANATION = Kind(
    "an explanation",
    "explain(model, X)",
    ("tidy", "summary", "show", "report"),
    methods=frozenset({"explain"}),
    form=xr.DataTree,
)
# The first kind that matches: special kinds come before the kinds they are made from.
KINDS = (
    *(ENSEMBLE, REPLICATES, SURFACE_DIFFERENCE, TEST, SIZES, H_STATISTICS, H_DIFFERENCE, TREE),
    *(INTERACTIONS, AVERAGES, SURFACE, PROFILE, EFFECT, LOCAL, EXPLANATION),
)


def kind_of(result: object) -> Kind | None:
    """The kind of a result; None where it is of none that is known."""
    return next((kind for kind in KINDS if kind.holds(result)), None)
