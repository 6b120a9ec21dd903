"""Words of other packages, and what to type here: data for messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from types import ModuleType
from typing import NoReturn

# Public names of scikit-learn, effector, PyALE, iml, marginaleffects, DALEX, shap and R's packages,
# written in lower case without "_" and ".". What is typed here.
NAMES: Mapping[str, str] = {
    **dict.fromkeys(
        ("slopes", "avgslopes", "margins", "marginaleffects", "avgcomparisons", "comparisons"),
        "averages(model, X)",
    ),
    **dict.fromkeys(("predictions", "avgpredictions", "plotpredictions"), "pdp(model, X)"),
    **dict.fromkeys(
        (
            *("featureimportance", "permutationimportance", "featureimp", "variableimportance"),
            *("modelparts", "explainer", "predictor", "importance", "vip"),
        ),
        "explain(model, X, y), or effect_sizes(effect)",
    ),
    **dict.fromkeys(
        ("shap", "shapdp", "shapvalues", "dependenceplot", "shapley", "predictparts"),
        "shap_dependence(model, X)",
    ),
    **dict.fromkeys(("ale2d", "ale2order", "aleplot2d", "ale2way"), "ale2(model, X, (a, b))"),
    **dict.fromkeys(
        ("plotale", "plotpdp", "plotice", "plotsurface2d", "plotpartialdependence", "visualize"),
        "plot(effect)",
    ),
    "plotslopes": "plot(effect)",
    **dict.fromkeys(
        ("partialdependence", "partialdependencedisplay", "partial", "pd", "partialplot"),
        "pdp(model, X), and plot(effect)",
    ),
    "modelprofile": "pdp(model, X), or ale(model, X)",
    **dict.fromkeys(
        ("individualconditionalexpectation", "icecurves", "predictprofile", "ceterisparibus"),
        "ice(model, X)",
    ),
    **dict.fromkeys(("aleplot", "accumulatedlocaleffects", "aleffect"), "ale(model, X)"),
    **dict.fromkeys(
        ("effect", "effects", "featureeffect", "featureeffects", "alleffects", "globaleffect"),
        "rhale(model, X), ale(model, X), pdp(model, X), or explain(model, X)",
    ),
    **dict.fromkeys(
        ("regionaleffect", "regionaleffects", "subregions", "regional", "findregions"),
        "regions(model, X, feature), regional_ale or regional_pdp",
    ),
    **dict.fromkeys(
        ("interaction", "interactions", "hstatistics", "hstat", "friedmanh"),
        "h_statistic(model, X), or interaction_matrix(model, X)",
    ),
    **dict.fromkeys(("mplot", "marginalplot", "conditionaldependence"), "m_plot(model, X)"),
    **dict.fromkeys(("ci", "confidenceinterval", "intervals", "confidenceintervals"), "confint(e)"),
    **dict.fromkeys(("se", "stderr", "standarderror", "standarderrors"), "std_error(effect)"),
    **dict.fromkeys(("hypotheses", "anova", "jointtests", "ttest"), "wald_test(effect)"),
    **dict.fromkeys(("boot", "bootstrapeffects", "resample"), "bootstrap(effect, local)"),
    **dict.fromkeys(("savereport", "tohtml", "html", "modelreport"), "report(explanation, path)"),
    **dict.fromkeys(("summarize", "describe", "printsummary"), "summary(effect)"),
    **dict.fromkeys(("todataframe", "todf", "frame", "table"), "tidy(effect)"),
    **dict.fromkeys(("save", "tonetcdf", "write"), "effect.to_netcdf(path)"),
    **dict.fromkeys(("load", "opendataset", "read"), "xarray.open_dataset(path)"),
    **dict.fromkeys(("fixed", "fixedbins", "uniformbins"), "EqualWidthBins(n)"),
    **dict.fromkeys(("dynamicprogramming", "dpbins", "paperbins"), "OptimalBins()"),
    "greedy": "GreedyBins()",
    "rhaleeffect": "rhale(model, X)",
    "contrasts": "compare(a, b)",
    "surface": "ale2(model, X, (a, b))",
    "surfaces": "ale2(model, X, (a, b))",
    "profiles": "pdp(model, X)",
}
# Keywords of other packages, and of R: what a function may have in their place.
KEYWORDS: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(
        ("grid_resolution", "grid_size", "grid_points", "nof_points", "num_grid_points"),
        ("n_grid", "bins"),
    ),
    **dict.fromkeys(
        (
            *("n_bins", "nbins", "bin_method", "binning_method", "binning", "bins_method"),
            *("axis_limits", "K", "intervals"),
        ),
        ("bins", "n_bins", "n_grid"),
    ),
    "grid": ("bins",),
    **dict.fromkeys(("random_state", "seed", "random_seed"), ("rng",)),
    **dict.fromkeys(
        ("alpha", "conf_level", "ci", "C", "confidence", "confidence_level", "conf_int"),
        ("level", "significance"),
    ),
    **dict.fromkeys(
        ("cluster", "clusters", "cluster_by", "vcov", "groupby", "group", "by_group"),
        ("groups", "by"),
    ),
    **dict.fromkeys(("centered", "center", "centre", "centering_method"), ("centering", "kind")),
    **dict.fromkeys(
        ("feature", "variable", "variables", "feature_names", "feature_name", "columns", "cols"),
        ("features", "feature"),
    ),
    **dict.fromkeys(("feats", "predictors", "terms", "pairs"), ("features", "feature")),
    "features": ("feature",),
    **dict.fromkeys(
        ("categorical_features", "cat_features", "nominal"), ("categorical", "features")
    ),
    **dict.fromkeys(("data", "newdata", "dataset", "x", "X_train", "x_train"), ("X",)),
    **dict.fromkeys(("estimator", "predictor", "predict", "fitted_model"), ("model",)),
    **dict.fromkeys(("model_jac", "gradient", "jac", "grad"), ("jacobian",)),
    **dict.fromkeys(
        ("sample_weight", "sample_weights", "wts", "weight", "case_weights"), ("weights",)
    ),
    **dict.fromkeys(("n_boot", "B", "R", "nboot", "n_bootstrap", "n_iter"), ("n_resamples",)),
    **dict.fromkeys(("method", "type", "grid_type"), ("kind", "grid_kind", "method")),
    **dict.fromkeys(("target", "class_index", "target_class", "class_label"), ("output",)),
    **dict.fromkeys(("response_method", "link", "predict_type"), ("scale",)),
    **dict.fromkeys(("verbose", "progress_bar", "silent", "quiet"), ("progress",)),
    **dict.fromkeys(("n_workers", "n_processes", "num_workers", "cores", "workers"), ("n_jobs",)),
    **dict.fromkeys(("nof_instances", "subsample", "sample_size", "n_samples"), ("n_rows",)),
    **dict.fromkeys(("heterogeneity", "show_std_err", "std"), ("spread",)),
    **dict.fromkeys(("percentiles", "quantiles"), ("grid_kind",)),
    **dict.fromkeys(("p_adjust", "correction", "adjustment"), ("adjust",)),
    **dict.fromkeys(("max_split_levels", "depth"), ("max_depth",)),
    **dict.fromkeys(("candidate_conditioning_features", "z", "Z"), ("conditioning",)),
    **dict.fromkeys(("axes", "axs", "axis"), ("ax",)),
    **dict.fromkeys(("ncols", "n_cols"), ("n_columns",)),
}
# What is not the same number or choice under another name.
DIFFERENT: Mapping[str, str] = {
    "alpha": "level is 1 - alpha, as in level=0.9.",
    "kind": 'kind="individual" is ice(model, X), kind="average" is pdp(model, X).',
    "cluster": "Standard errors by groups need the local effects: std_error(effect, local, "
    "groups=groups).",
    "nof_instances": "All rows are used; a sample of them is X.sample(n).",
    "subsample": "All rows are used; a sample of them is X.sample(n).",
    "percentiles": "The curve goes from the smallest to the largest value; grid={feature: points} "
    "says other points.",
    "heterogeneity": 'The spread is in every effect; plot_effect(..., spread="band") draws it '
    "around the curve.",
}


def other_name(name: str, public: Sequence[str]) -> str:
    """What to type where a public name is not there: a sentence, or nothing."""
    plain = name.lower().replace("_", "").replace(".", "")
    # A class of another package is a function here: RHALE, RegionalALE.
    same = {one.lower().replace("_", ""): one for one in public}
    known = NAMES.get(plain) or same.get(plain)
    near = [known] if known else get_close_matches(name.lower(), public, n=2, cutoff=0.75)
    return f"Did you mean {' or '.join(near)}?" if near else ""


class Folder(ModuleType):
    """A folder of the package that has the name of a function of another package."""

    def __call__(self, *_: object, **_named: object) -> NoReturn:
        """Say what to type."""
        name = self.__name__.rpartition(".")[2]
        raise TypeError(f"rhale_stats has no function {name!r}. {other_name(name, ())}")


def other_keyword(name: str, names: Sequence[str], elsewhere: str = "") -> str:
    """What to type where a function does not have a keyword: sentences, or nothing.

    ``names`` are the keywords that it has, and ``elsewhere`` says where else this one is an option.
    """
    near = [one for one in KEYWORDS.get(name, ()) if one in names]
    near = near[:1] or ([] if elsewhere or name in DIFFERENT else get_close_matches(name, names))
    said = [f"Did you mean {' or '.join(map(repr, near))}?"] if near else []
    said += [text for text in (DIFFERENT.get(name, ""), elsewhere) if text]
    return " ".join(said)
