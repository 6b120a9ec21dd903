"""Words of other packages, and what to type here: data for messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from types import ModuleType
from typing import NoReturn

# What is typed here, and the names for it of scikit-learn, effector, PyALE, iml, marginaleffects,
# DALEX, shap and R's packages, in lower case without "_" and ".".
NAMES_FOR = {
    "averages(model, X)": "slopes avgslopes margins margin marginaleffects avgcomparisons "
    "comparisons emmeans emtrends ame",
    "pdp(model, X)": "predictions avgpredictions profiles ggpredict pd pdplot partialplot "
    "partialprofile conditionaleffects",
    "pdp(model, X), or plot(effect)": "plotpredictions plotcomparisons",
    "explain(model, X, y)": "featureimportance permutationimportance modelparts explainer "
    "featureimp vip vi varimp varimpplot importance modelperformance modeldiagnostics predictor",
    "shap_dependence(model, X)": "shap shapdp shapvalues dependenceplot shapley predictparts "
    "treeexplainer kernelexplainer permutationexplainer beeswarm summaryplot waterfall scatter "
    "shapviz kernelshap breakdown lime localmodel",
    "ale2(model, X, (a, b))": "ale2d ale2order aleplot2d ale2way surface surfaces",
    "plot(effect)": "plotale plotpdp plotice plotpartialdependence visualize plotslopes autoplot "
    "draw effectplot effectsplot ploteffectsplot visreg figure ggplot",
    "pdp(model, X), and plot(effect)": "partialdependence partialdependencedisplay partial "
    "inspection effectdisplay",
    "pdp(model, X), or ale(model, X)": "modelprofile",
    "ice(model, X)": "individualconditionalexpectation icecurves predictprofile ceterisparibus",
    "ale(model, X)": "aleplot accumulatedlocaleffects aleffect accumulatedprofile "
    "accumulateddependence accumulated aledata",
    "rhale(model, X), or explain(model, X)": "effect effects featureeffect featureeffects "
    "globaleffect globaleffects alleffects predictoreffects smooths gam globalrhale",
    "dale(model, X)": "derpdp derivativepdp globaldale",
    "regions(model, X, feature)": "regionaleffect regionaleffects subregions findregions "
    "regionalderpdp treesurrogate partition",
    "h_statistic(model, X)": "interaction interactions hstatistics hstat hstats friedmanh "
    "h2pairwise h2overall pdimportance",
    "m_plot(model, X)": "mplot marginalplot conditionaldependence conditionalprofile "
    "averageobserved",
    "confint(e)": "ci confidenceinterval intervals confidenceintervals",
    "std_error(effect)": "se stderr standarderror standarderrors bse",
    "wald_test(effect)": "anova jointtests ttest pvalues",
    "bootstrap(effect, local)": "boot bootstrapeffects resample",
    "report(explanation, path)": "savereport tohtml html modelreport",
    "summary(effect)": "summarize describe printsummary summarise glimpse",
    "tidy(effect)": "todataframe todf frame table effectstable broom coef coefficients params "
    "getdata",
    "predict(effect, x, feature)": "eval evaluate interpolate predictions1d",
    "compare_methods([a, b])": "comparemethods sidebyside",
    "effect.to_netcdf(path)": "save tonetcdf write",
    "xarray.open_dataset(path)": "load opendataset read",
    "EqualWidthBins(n)": "fixed fixedbins uniformbins",
    "OptimalBins()": "dynamicprogramming dpbins paperbins",
    "GreedyBins()": "greedy",
    "compare(a, b)": "contrasts",
    "hypotheses(averages)": "contrast pairs lincom glht deltamethod hypothesis",
    "datagrid(X)": "grid newdata expandgrid refgrid",
    "simulate.mae(effect, truth)": "mae",
    "simulate.mcse(samples)": "mcse",
    "simulate.dense_truth(model, jacobian, X)": "densetruth",
}
# Keywords that a function may have, and those of other packages, and of R, in their place.
KEYWORDS_FOR = {
    "n_grid bins": "grid_resolution grid_size grid_points nof_points num_grid_points",
    "bins n_bins n_grid": "n_bins nbins bin_method binning_method binning K intervals",
    "bins": "grid",
    "rng": "random_state seed random_seed",
    "level significance": "alpha conf_level ci C confidence confidence_level conf_int",
    "groups by": "cluster clusters cluster_by groupby group by_group design svydesign",
    "centering kind reference": "centered center centre centering_method",
    "features feature": "feature variable variables columns feats predictors terms",
    "feature": "features",
    "categorical features": "categorical_features cat_features nominal feature_type",
    "X": "data newdata dataset x X_train x_train",
    "model": "estimator predictor predict fitted_model",
    "jacobian": "model_jac gradient jac grad",
    "weights": "sample_weight sample_weights wts weight case_weights",
    "n_resamples": "n_boot B R nboot n_bootstrap n_iter",
    "kind grid_kind scale grid": "method type grid_type",
    "n_folds": "cv folds",
    "contrasts": "slope variables_contrast step eps",
    "margin": "equivalence",
    "output": "target class_index target_class class_label",
    "scale": "response_method link predict_type predict_method",
    "progress": "verbose progress_bar silent quiet",
    "n_jobs": "n_workers n_processes num_workers cores workers",
    "n_rows": "nof_instances subsample sample_size n_samples",
    "spread": "heterogeneity show_std_err std",
    "grid_kind": "quantiles",
    "adjust": "p_adjust correction adjustment",
    "max_depth": "max_split_levels depth",
    "conditioning": "candidate_conditioning_features z Z",
    "ax": "axes axs axis",
    "n_columns": "ncols n_cols ncol",
    "percentiles": "quantile_range percentile_range trim axis_limits",
    "by": "hue_by split_by facet",
    "min_obs": "min_samples_leaf min_rows",
    "reference": "ref baseline centering",
    "centering": "center_at",
}
NAMES = {name: ours for ours, names in NAMES_FOR.items() for name in names.split()}
KEYWORDS = {word: ours.split() for ours, words in KEYWORDS_FOR.items() for word in words.split()}
# What is not the same number or choice under another name.
DIFFERENT: Mapping[str, str] = {
    "alpha": "level is 1 - alpha, as in level=0.9.",
    "kind": 'kind="individual" is ice(model, X), kind="average" is pdp(model, X).',
    "cluster": "Standard errors by groups need the local effects: std_error(effect, local, "
    "groups=groups).",
    **dict.fromkeys(
        ("dx", "bin_width", "width", "min_points_per_bin"),
        "Bins of a width, with so many rows at least: bins=EqualWidthBins(width=0.5, min_obs=10).",
    ),
    **dict.fromkeys(
        ("y", "target_column"),
        "No outcome is needed here: effects are those of the predictions. explain(model, X, y) "
        "compares them with it.",
    ),
    **dict.fromkeys(
        ("include_CI", "conf_int", "se", "std_errors"),
        "Results have standard errors; confint(effect) adds intervals.",
    ),
    "vcov": "Robust errors are of the fit: fit(cov_type='HC3'), which is taken from there; of "
    "groups of rows: groups=.",
    "categorical": "Steps between levels: ale(model, X, categorical=...), or rhale.",
    "at": "Averages at values: averages(model, datagrid(X, age=[20, 40])).",
    "equivalence": "Equivalence is tested by hypotheses(averages(model, X), margin=0.1).",
    **dict.fromkeys(
        ("hypothesis", "joint"), "Tests of averages: hypotheses(averages(model, X), 'b1 = b2')."
    ),
    **dict.fromkeys(
        ("cv", "n_repeats", "n_folds", "scoring"),
        "explain refits the model itself; effects cross-fitted in other ways are "
        "outcome_effects(fit, X, y, n_folds=5, n_repeats=2).",
    ),
    **dict.fromkeys(("digits", "decimals", "ndigits"), "Round the table: tidy(effect).round(3)."),
    "debias": "Debiased, cross-fitted effects on the outcome are outcome_effects(fit, X, y).",
    **dict.fromkeys(
        ("nof_instances", "n_rows", "subsample", "sample_size"),
        "All rows are used; a sample of them is X.sample(n).",
    ),
    "feature_names": "An array has names as a table: X = pandas.DataFrame(X, columns=names).",
    **dict.fromkeys(
        ("title", "ylim", "xlim", "ylabel", "xlabel", "y_limits"),
        "Pictures return their Axes: plot(effect, 'age')[0].set(title=..., ylim=...).",
    ),
    "figsize": "Change it after: matplotlib.pyplot.gcf().set_size_inches(8, 3).",
    **dict.fromkeys(
        ("path", "filename", "save", "savefig"),
        "matplotlib saves it: plot(effect); matplotlib.pyplot.savefig(path).",
    ),
    **dict.fromkeys(
        ("color", "colour", "cmap", "palette", "style"),
        "Colours are those of matplotlib's style: matplotlib.pyplot.style.use(...).",
    ),
    "show": "matplotlib.pyplot.show() shows it.",
    "level": "Intervals of another level: confint(effect, level=0.9), which plot and tidy take.",
    "heterogeneity": 'The spread is in every effect; plots.effect(..., style="paper") draws it '
    "around the curve.",
}

# Values of options by the words of other packages.
VALUES_FOR = {
    "logit": "link linear log_odds",
    "decision": "decision_function raw margin",
    "response": "predict_proba proba probability prob mean",
    "difference": "differenceavg diff rd",
    "ratio": "ratioavg rr risk_ratio",
    "log_ratio": "lnratio lnratioavg logratio",
    "odds_ratio": "or oddsratio",
    "log_odds_ratio": "lnor lnoravg logor",
    "pairwise": "revpairwise all_pairs tukey",
    "reference": "trt_vs_ctrl trt.vs.ctrl trt.vs.ctrl1 treatment revreference",
    "sequential": "consec revsequential",
    "increasing": "monotone monotonic isotonic",
    "jackknife": "jk1 jkn",
    "successive": "acs sdr",
    "balanced": "grid counterfactual",
}
VALUES = {word: ours for ours, words in VALUES_FOR.items() for word in words.split()}


def other_value(value: str, allowed: Sequence[str | None]) -> str:
    """What to give where a value is not allowed: a sentence after a space, or nothing."""
    words = [ours for ours in allowed if ours]
    meant = VALUES.get(value.lower())
    near = [meant] if meant in words else get_close_matches(value, words, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def typed(name: str) -> str:
    """The name of a function as it is typed: pictures are in `plots`, without their prefix."""
    return f"plots.{name.removeprefix('plot_')}" if name.startswith("plot_") else name


def other_name(name: str, public: Sequence[str]) -> str:
    """What to type where a public name is not there: a sentence, or nothing."""
    plain = name.lower().replace("_", "").replace(".", "")
    # A class of another package is a function here: RHALE, RegionalALE. Pictures of earlier
    # versions were `plot_forest` and the like.
    by_plain_name = {
        ours.lower().replace("_", "").replace("plots.", "plot"): ours for ours in public
    }
    meant = NAMES.get(plain) or by_plain_name.get(plain)
    similar = [meant] if meant else get_close_matches(name.lower(), public, n=2, cutoff=0.75)
    return f"Did you mean {' or '.join(similar)}?" if similar else ""


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
    similar = [ours for ours in KEYWORDS.get(name, ()) if ours in names][:1]
    if not (similar or elsewhere or name in DIFFERENT):
        similar = get_close_matches(name, names, cutoff=0.65)
    question = f"Did you mean {' or '.join(map(repr, similar))}?" if similar else ""
    return " ".join(filter(None, (question, DIFFERENT.get(name, ""), elsewhere)))
