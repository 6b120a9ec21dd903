"""What users of other packages type first: it works, or one line says what to type.

The calls are data: each has the kind of what comes, or the error and words of its line. They follow
the steps of the quick-start pages of scikit-learn's inspection module, effector, PyALE, iml,
marginaleffects, DALEX, shap and R's ale: an effect, all effects, errors, a picture, a table. Those
that work have the names of this package; names and keywords of the others are answered.
"""

from __future__ import annotations

import pickle
from operator import attrgetter

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
import statsmodels.formula.api as smf
import xarray as xr
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeRegressor

import rhale_stats as rs
from rhale_stats.arguments.peers import DIFFERENT, KEYWORDS, NAMES, other_keyword, other_name
from rhale_stats.schema.kinds import kind_of
from tests.helpers import public_functions

# That bins were chosen on the same rows, and that there are few of these.
pytestmark = pytest.mark.filterwarnings("ignore")
LEAST_THAT_WORKS = 0.8

# --- calls that work, by what comes ---------------------------------------------------------------

WORKS = {
    # A model and a table, as everywhere.
    "rs.rhale(model, X)": "effects in bins",
    'rs.rhale(model, X, "a")': "effects in bins",
    'rs.rhale(model, X, ["a", "b"])': "effects in bins",
    "rs.rhale(model, X, features=[0, 1])": "effects in bins",
    "rs.rhale(model=model, X=X)": "effects in bins",
    "rs.rhale(model.predict, X)": "effects in bins",
    "rs.rhale(model.predict, X.to_numpy())": "effects in bins",
    "rs.rhale(local)": "effects in bins",
    'rs.rhale(local, "a")': "effects in bins",
    "rs.ale(model, X)": "effects in bins",
    'rs.ale(model, X, "a")': "effects in bins",
    'rs.ale(model, X, ["a"])': "effects in bins",
    'rs.ale(model, X, feature="a")': "effects in bins",
    "rs.ale(local)": "effects in bins",
    "rs.dale(model, X)": "effects in bins",
    "rs.pdp(model, X)": "a profile",
    'rs.pdp(model, X, ["a"])': "a profile",
    'rs.pdp(model, X, features="a")': "a profile",
    'rs.pdp(model, X, feature="a")': "a profile",
    "rs.pdp(model, X, features=[0])": "a profile",
    'rs.pdp(model, X, "a", n_grid=20)': "a profile",
    "rs.ice(model, X)": "a profile",
    'rs.ice(model, X, "a")': "a profile",
    'rs.ice(model, X, "a", kind="centered")': "a profile",
    'rs.ice(model, X, "a", kind="derivative")': "a profile",
    "rs.m_plot(model, X)": "a profile",
    'rs.m_plot(model, X, "a")': "a profile",
    'rs.shap_dependence(model, X.head(20), "a")': "a profile",
    'rs.ale2(model, X, ("a", "b"))': "a surface",
    'rs.ale2(model, X, ["a", "b"])': "a surface",
    "rs.h_statistic(model, X)": "H-statistics",
    'rs.h_statistic(model, X, ["a", "b"])': "H-statistics",
    "rs.averages(fitted, X)": "averages",
    'rs.averages(fitted, X, "a")': "averages",
    "rs.explain(model, X, y, progress=False)": "an explanation",
    "rs.explain(classifier, X, classes, progress=False)": "an explanation",
    "rs.folds(model, X)": None,
    # Options of the steps before and after, in the one call.
    "rs.rhale(model, X, weights=weights)": "effects in bins",
    'rs.rhale(model, X, missing="drop", batch_rows=50)': "effects in bins",
    "rs.rhale(model, X, jacobian=jacobian)": "effects in bins",
    'rs.rhale(model, X, "a", method="finite_difference")': "effects in bins",
    "rs.rhale(classifier, X, output=1)": "effects in bins",
    "rs.dale(classifier, X, output=[0, 2], n_bins=4)": "effects in bins",
    "rs.rhale(model, X, groups=groups)": "effects in bins",
    'rs.rhale(model, table, categorical="k")': "effects in bins",
    'rs.rhale(model, table, ["a", "k"], categorical=["k"], weights=weights)': "effects in bins",
    'rs.summary(rs.rhale(model, table, categorical="k"))': None,
    "rs.ale(model, X, bins=8, groups=groups)": "effects in bins",
    'rs.ale(model, X.assign(ward=groups), ["a", "b"], bins=5, groups="ward")': "effects in bins",
    'rs.pdp(model, X.assign(w=weights), "a", weights="w")': "a profile",
    'rs.pdp(model, X, "a", groups=groups)': "a profile",
    'rs.regions(model, X, "a", weights=weights)': "trees of regions",
    "rs.all_regions(model, X, weights=weights)": "trees of regions",
    # Ends of the axes, widths of bins.
    'rs.pdp(model, X, ["a"], percentiles=(0.05, 0.95))': "a profile",
    "rs.ale(model, X, percentiles=(0.05, 0.95))": "effects in bins",
    "rs.rhale(model, X, percentiles=(5, 95))": "effects in bins",
    "rs.m_plot(model, X, percentiles=(0.05, 0.95))": "a profile",
    "rs.rhale(model, X, bins=rs.EqualWidthBins(width=0.2, min_obs=10))": "effects in bins",
    "rs.ale(model, X, bins=rs.GivenBins([-0.5, 0, 0.5]))": "effects in bins",
    'rs.pdp(model, X, "a", centering=0.0)': "a profile",
    'rs.ice(model, X, "a", kind="centered", centering=0.0)': "a profile",
    'rs.ale(model, X, "a", centering=0.0)': "effects in bins",
    "rs.rhale(model, X, centering=0.2)": "effects in bins",
    # Groups of rows, and pairs of features.
    "rs.ale(model, X, by=group)": "effects in bins",
    'rs.rhale(model, X, ["b", "c"], by="a")': "effects in bins",
    'rs.pdp(model, X, by="a")': "a profile",
    "rs.compare(rs.ale(model, X, by=group))": "a test",
    "rs.plot(rs.pdp(model, X, by=group))": None,
    'rs.pdp(model, X, [("a", "b")])': "a profile",
    'rs.pdp(model, X, ["c", ("a", "b")])': "a profile",
    'rs.plot(rs.pdp(model, X, [("a", "b")]))': None,
    # Regions, as effector.
    'rs.regions(model, X, "a")': "trees of regions",
    'rs.regions(model, X, feature="a")': "trees of regions",
    'rs.regions(model, X, features="a")': "trees of regions",
    "rs.regions(model, X, 0)": "trees of regions",
    'rs.regions(local, "a")': "trees of regions",
    "rs.all_regions(model, X)": "trees of regions",
    "rs.interaction_matrix(model, X, n_permutations=9)": "drops of all pairs of columns",
    'rs.regional_ale(model, X, "a")': None,
    'rs.regional_pdp(model, X, "a")': None,
    "rs.regional_rhale(local, tree)": None,
    "rs.regional_rhale(tree, local)": None,
    # Numbers and names for bins.
    "rs.rhale(model, X, bins=20)": "effects in bins",
    'rs.rhale(model, X, bins="quantile")': "effects in bins",
    'rs.rhale(model, X, bins="greedy")': "effects in bins",
    'rs.rhale(model, X, bins="dp")': "effects in bins",
    'rs.rhale(model, X, bins="fixed")': "effects in bins",
    'rs.rhale(model, X, bins="auto")': "effects in bins",
    "rs.ale(model, X, bins=50)": "effects in bins",
    'rs.ale(model, X, "a", bins="quantile")': "effects in bins",
    'rs.m_plot(model, X, "a", bins=10)': "a profile",
    'rs.ale(model, X, "a", bins=[-0.5, 0, 0.5])': "effects in bins",
    'rs.rhale(model, X, "a", bins=np.linspace(-0.9, 0.9, 5))': "effects in bins",
    'rs.ale2(model, X, ("a", "b"), bins=10)': "a surface",
    'rs.regions(model, X, "a", bins=10)': "trees of regions",
    # Errors, intervals, tests: the result first, the others in any order.
    "rs.std_error(effect)": "effects in bins",
    "rs.std_error(effect, local, groups=groups)": "effects in bins",
    "rs.std_error(local, effect)": "effects in bins",
    "rs.confint(effect)": "effects in bins",
    "rs.confint(effect, level=0.9)": "effects in bins",
    'rs.confint(effect, boot, method="percentile")': "effects in bins",
    "rs.confint(boot, effect)": "effects in bins",
    "rs.confband(effect)": "effects in bins",
    "rs.vcov(effect, 'a')": None,
    "rs.bootstrap(effect, local, n_resamples=99)": "replicates",
    "rs.bootstrap(local, effect, n_resamples=199)": "replicates",
    "rs.bootstrap(effect, local, n_resamples=250)": "replicates",
    "rs.bootstrap(effect, local, n_resamples=50)": "replicates",
    "rs.bootstrap(effect, local, n_resamples=999)": "replicates",
    "rs.bootstrap(profile, curves, n_resamples=20)": "replicates",
    "rs.wald_test(effect)": "a test",
    "rs.wald_test(effect, progress=False)": "a test",
    "rs.equivalence_test(effect, 0.1)": "a test",
    "rs.compare(effect, other)": "a test",
    "rs.compare(effect, other, progress=False)": "a test",
    "rs.check_unbiased(effect, local)": "effects in bins",
    "rs.check_unbiased(local, effect)": "effects in bins",
    "rs.jump_check(effect, local, model)": "effects in bins",
    "rs.jump_check(model, local, effect)": "effects in bins",
    "rs.effect_sizes(effect)": "sizes of effects",
    "rs.effect_sizes(effect, boot)": "sizes of effects",
    'rs.predict(effect, [0.1, 0.2], "a")': None,
    # Tables and text.
    "rs.summary(effect)": None,
    'rs.summary(effect, "a")': None,
    "rs.tidy(effect)": None,
    "rs.glance(effect)": None,
    "rs.augment(effect, local)": None,
    "rs.summary(explanation)": None,
    "explanation.summary()": None,
    "explanation.tidy()": None,
    "effect.rhale.summary()": None,
    "effect.rhale.tidy()": None,
    "effect.rhale.confint()": "effects in bins",
    "effect.rhale.bootstrap(local, n_resamples=19)": "replicates",
    # A pipeline of scikit-learn with a column of text, and a function of arrays.
    "rs.rhale(pipe, mixed)": "effects in bins",
    "rs.ale(pipe, mixed)": "effects in bins",
    'rs.ale(pipe, mixed, "job")': "effects in bins",
    'rs.plot(rs.ale(pipe, mixed, "job"))': None,
    'rs.summary(rs.ale(pipe, mixed), "job")': None,
    'rs.pdp(pipe, mixed, "job")': "a profile",
    'rs.pdp(pipe, mixed, ("a", "job"))': "a profile",
    'rs.plot(rs.pdp(pipe, mixed, ["a", ("a", "job")]))': None,
    'rs.ice(pipe, mixed.sample(50, random_state=0), "a")': "a profile",
    'rs.pdp(pipe, mixed, "a", grid=[-0.5, 0, 0.5])': "a profile",
    'rs.pdp(pipe, mixed, "a", grid=np.arange(-0.5, 0.5, 0.2))': "a profile",
    'rs.ale2(pipe, mixed, ["a", "job"])': "a surface",
    'rs.ale(pipe, mixed, "a", by="job")': "effects in bins",
    'rs.ale(pipe, mixed, "a", weights=mixed["b"] + 2)': "effects in bins",
    'rs.compare(rs.rhale(pipe, mixed, "a"), rs.rhale(pipe, mixed.iloc[::2], "a"))': "a test",
    'rs.regions(pipe, mixed, "a")': "trees of regions",
    "rs.rhale(lambda A: A[:, 0] * A[:, 1], X.to_numpy(), 0)": "effects in bins",
    'rs.rhale(lambda A: A[:, 0] * A[:, 1], X.to_numpy(), "x0")': "effects in bins",
    'rs.rhale(X, model, "a")': "effects in bins",
    'rs.pdp(classifier, X, "a", output=2)': "a profile",
    "rs.tidy(rs.ale(pipe, mixed))": None,
    "rs.plot(rs.ale(pipe, mixed))": None,
    "rs.wald_test(rs.ale(pipe, mixed))": "a test",
    "rs.confband(rs.ale(pipe, mixed))": "effects in bins",
    "rs.effect_sizes(rs.ale(pipe, mixed))": "sizes of effects",
    "rs.ale(pipe, mixed, bins=10).rhale.summary()": None,
    'rs.plot(rs.ale(pipe, mixed, "a", by="job"))': None,
    'rs.plot(rs.ale2(pipe, mixed, ["a", "job"]))': None,
    'rs.plot(rs.regions(pipe, mixed, "a"))': None,
    "rs.h_statistic(pipe, mixed, n_rows=40)": "H-statistics",
    'rs.pdp(pipe.predict, mixed, "a")': "a profile",
    'rs.rhale(pipe, mixed, "a", bins="uniform")': "effects in bins",
    "rs.explain(pipe, mixed, y, held_out=False, progress=False)": "an explanation",
    'rs.averages(fitted, X, ["a", "b"])': "averages",
    'rs.sklearn.EffectDisplay.from_estimator(pipe, mixed, ["a", ("a", "b")])': None,
    "rs.rhale(fitted, X)": "effects in bins",
    'rs.pdp(classifier, X, "a")': "a profile",
    'rs.plot(rs.ale(classifier, X, "a"))': None,
    # A model with a formula, as marginaleffects, emmeans and margins take it.
    "rs.averages(fitted)": "averages",
    'rs.averages(fitted, table, "a", contrasts=0.1)': "averages",
    'rs.averages(fitted, table, contrasts={"a": "sd", "b": (-0.5, 0.5)})': "averages",
    'rs.averages(fitted, table, "a", contrasts="eyex")': "averages",
    'rs.averages(fitted, table, "a", by="k")': "averages",
    'rs.averages(fitted, rs.datagrid(X, a=[-0.5, 0.5]), uncertainty="parameters")': "averages",
    "rs.datagrid(X, a=np.mean)": None,
    'rs.hypotheses(averaged, "pairwise")': "averages",
    'rs.hypotheses(averaged, "b1 = b2")': "averages",
    'averaged.rhale.hypotheses("reference").rhale.summary()': None,
    "rs.plot(averaged)": None,
    'rs.plot(rs.hypotheses(averaged, "pairwise"))': None,
    'rs.summary(averaged.sel(by="1"))': None,
    'rs.tidy(averaged.sel(term="a", by="1"))': None,
    "averaged.average.to_series()": None,
    'rs.averages(fitted, table, {"a": 0.1, "b": "sd"})': "averages",
    'rs.averages(fitted, table, {"a": [-0.5, 0, 0.5]})': "averages",
    "rs.averages(fitted, groups=groups)": "averages",
    'rs.vcov(averaged.sel(term=["a"]))': None,
    "rs.summary(averaged)": None,
    'rs.datagrid(mixed, a=[0, 0.5], job=["cook", "nurse"])': None,
    'rs.datagrid(mixed, grid="balanced")': None,
    "rs.averages(fitted, rs.datagrid(X))": "averages",
    'rs.ale(fitted, X, "a")': "effects in bins",
    'rs.plot(rs.pdp(fitted, X, ["a", "b"]))': None,
    "rs.explain(fitted, X, progress=False)": "an explanation",
    'rs.explain(pipe, mixed, features="a", progress=False)': "an explanation",
    "rs.std_error(rs.rhale(fitted, X), rs.local_effects(fitted, X), model=fitted, X=X)": (
        "effects in bins"
    ),
    # Tables of other libraries, and functions of arrays.
    "rs.rhale(model, pl.from_pandas(X))": "effects in bins",
    'rs.ale(pipe, mixed.to_xarray(), "a")': "effects in bins",
    'rs.rhale(lambda d: d["a"], X.to_dict("list"))': "effects in bins",
    'rs.ale(lambda d: d["a"], X.assign(d=pd.date_range("2024", periods=len(X))), "d")': (
        "effects in bins"
    ),
    "rs.ale(pipe, mixed.to_records(index=False))": "effects in bins",
    'rs.pdp(pipe, pl.from_pandas(mixed), ["a", "job"])': "a profile",
    'rs.rhale(pipe, mixed, ["a", "job"], categorical="job")': "effects in bins",
    'rs.plot(rs.m_plot(pipe, mixed, "a"))': None,
    'rs.plot(rs.shap_dependence(pipe, mixed.head(20), "a"))': None,
    "rs.rhale(lambda A: np.sin(A[:, 0]) * A[:, 1], X.to_numpy(), 0).rhale.plot(0)": None,
    'rs.rhale(lambda d: classifier.predict_proba(d)[:, 1], X, "a")': "effects in bins",
    "rs.rhale(model, X, 0, bins=rs.OptimalBins(max_bins=5))": "effects in bins",
    "rs.over_models([model, fitted], X, 'a')": "results of several models",
    "rs.plot(rs.over_models({'net': model, 'line': fitted}, X, 'a'))": None,
    "rs.compare(rs.ale(model, X, 'a'), rs.ale(fitted, X, 'a'))": "a test",
    "rs.plot({'net': rs.ale(model, X), 'line': rs.ale(fitted, X)}, 'a')": None,
    "rs.predict(effect, X['a'], 'a')": None,
    "rs.predict(rs.ale(pipe, mixed), ['cook', 'nurse'], 'job')": None,
    "averaged.rhale.confint(level=0.9).rhale.tidy()": None,
    # What xarray users do with a Dataset.
    'effect.sel(feature="a").rhale.plot()': None,
    'rs.summary(xr.concat([rs.rhale(model, X, "a"), rs.rhale(model, X, "b")], "feature"))': None,
    'rs.summary(xr.merge([rs.rhale(model, X, "a"), rs.rhale(model, X, "b")]))': None,
    "rs.summary(xr.Dataset.from_dict(effect.to_dict()))": None,
    "rs.summary(effect.load())": None,
    "rs.summary(effect.transpose(...))": None,
    'rs.summary(effect.reindex(feature=["b", "a"]))': None,
    'rs.tidy(effect.where(effect.feature == "a", drop=True))': None,
    "rs.summary(effect.copy())": None,
    'effect["effect"].mean("bin")': None,
    'effect.mean("feature")': None,
    "effect.average_effect.to_pandas()": None,
    'effect["curve"].sel(feature="a").plot(x="edge_value")': None,
    'profile["curve"].sel(feature="a").plot(x="grid_value")': None,
    'profile.sel(feature="a")["curve"].to_pandas()': None,
    'profile["curve"].sel(feature="a").to_dataframe()': None,
    "effect.rhale.to_dataframe()": None,
    "profile.rhale.to_dataframe()": None,
    'rs.predict(rs.ale(model, X, "a"), [0.1, 0.2])': None,
    'rs.vcov(rs.pdp(model, X, "a"))': None,
    'rs.plot(rs.ale(pipe, mixed).sel(feature=["job", "a"]))': None,
    'rs.tidy(xr.concat([effect, effect], pd.Index(["x", "y"], name="model")))': None,
    "rs.summary(pickle.loads(pickle.dumps(effect)))": None,
    "rs.summary(effect.chunk())": None,
    "abs(effect.effect)": None,
    "rs.summary(effect).as_latex()": None,
    "rs.tidy(effect).to_latex()": None,
    "rs.tidy(effect, level=0.9)": None,
    "rs.show(effect)": None,
    "print(effect.rhale) or 0": None,
    "rs.glance(rs.ale(pipe, mixed))": None,
    'rs.confint(rs.pdp(pipe, mixed, "a"))': "a profile",
    'rs.std_error(rs.pdp(model, X, "a"))': "a profile",
    'rs.confband(rs.pdp(model, X, "a"))': "a profile",
    'rs.tidy(rs.confint(rs.ale2(model, X, ["a", "b"])))': None,
    'rs.plot(rs.confband(rs.rhale(model, X)), "a")': None,
    "rs.to_datatree(local, effect, posterior=boot)": None,
    'rs.summary(rs.regions(model, X, "a", max_depth=1))': None,
    "rs.summary(effect.compute())": None,
    'rs.summary(effect.sortby("feature"))': None,
    'rs.summary(effect.drop_sel(feature="a"))': None,
    'rs.summary(effect.assign_attrs(title="x"))': None,
    "rs.plot(effect.isel(feature=0))": None,
    "rs.plot(effect.isel(feature=[1]))": None,
    'effect["effect"].plot()': None,
    'effect.effect.sel(feature="a").to_pandas()': None,
    "effect.rhale.confint(level=0.9).rhale.tidy()": None,
    'rs.plot(effect, "a", reference=0.2)': None,
    'rs.sklearn.EffectDisplay.from_estimator(pipe, mixed, ["a", "job"], kind="both").plot()': None,
    'rs.sklearn.EffectDisplay.from_estimator(model, X, ["a", ("a", "b")], kind="average")': None,
    # One feature, as xarray selects it.
    'rs.summary(effect.sel(feature="a"))': None,
    'rs.tidy(effect.sel(feature="a"))': None,
    'rs.confint(effect.sel(feature="a"))': "effects in bins",
    'rs.plot(effect.sel(feature="a"))': None,
    'rs.predict(effect.sel(feature="a"), [0.1])': None,
    'rs.rhale(local.sel(feature="a"))': "effects in bins",
    'rs.tidy(profile.sel(feature="a"))': None,
    "effect.rhale.at(0.3)": None,
    'effect.rhale.at({"a": 0.3, "b": 0.5})': None,
    "effect.rhale.at(a=0.3, b=[0.4, 0.5])": None,
    'effect.rhale.at([0.3, 0.5], "a")': None,
    'rs.tidy({"x": effect, "y": other})': None,
    'rs.summary(xr.concat([effect, effect], "model"))': None,
    'rs.plot(xr.concat([profile, profile], "model"))': None,
    'rs.sklearn.EffectDisplay.from_estimator(classifier, X, ["a", "b"], target=1).plot()': None,
    # Pictures.
    "rs.plot(effect)": None,
    'rs.plot(effect, "a")': None,
    'rs.plot(effect, "a", local)': None,
    "effect.rhale.plot()": None,
    'effect.rhale.plot("a")': None,
    "rs.plots.effect(effect)": None,
    'rs.plots.effect(effect, "a")': None,
    'rs.plots.effect(effect, "a", ax=plt.gca())': None,
    'rs.plots.effect(explanation, "a")': None,
    "rs.plots.effects(effect)": None,
    "rs.plot(profile)": None,
    'rs.plot(profile, "a")': None,
    'rs.plot(curves, "a")': None,
    "rs.plot(explanation)": None,
    "explanation.plot()": None,
    "rs.plot(tree)": None,
    "rs.plot(boot)": None,
    "rs.plot(local)": None,
    'rs.plot(effect, ["a", "b"])': None,
    "rs.plot(effect, ax=plt.gca())": None,
    "rs.plot(effect, percentiles=(0.05, 0.95))": None,
    "rs.plot([profile, curves, effect])": None,
    'rs.plot([profile, curves, rs.ale(model, X)], ["a", "b"])': None,
    'rs.plot({"PDP": profile, "ALE": rs.ale(model, X)})': None,
    "rs.plot(rs.wald_test(effect))": None,
    "rs.plot(rs.compare(effect, other))": None,
    "rs.plot(rs.averages(fitted, X))": None,
    'rs.plot(curves, "a", hue="b")': None,
    'rs.plot(rs.ale2(model, X, ("a", "b")))': None,
    "rs.plot(rs.h_statistic(model, X))": None,
    # How long it takes, on how many threads, by which seed.
    "rs.rhale(model, X, progress=False, n_jobs=2, rng=0)": "effects in bins",
    "rs.pdp(model, X, n_jobs=-1)": "a profile",
    "rs.ale(model, X, rng=0)": "effects in bins",
    'rs.regions(model, X, "a", progress=False, n_jobs=1, rng=1)': "trees of regions",
    "rs.check_unbiased(effect, local, progress=False)": "effects in bins",
    "rs.confband(effect, progress=False, n_jobs=1, rng=0)": "effects in bins",
}

# --- calls that are answered with what to type ----------------------------------------------------

ANSWERED = {
    # scikit-learn
    'rs.partial_dependence(model, X, ["a"])': (AttributeError, "pdp(model, X)"),
    'rs.PartialDependenceDisplay.from_estimator(model, X, ["a"])': (AttributeError, "plot(effect)"),
    "rs.permutation_importance(model, X, y)": (AttributeError, "explain(model, X, y)"),
    'rs.pdp(model, X, ["a"], grid_resolution=20)': (TypeError, "'n_grid'"),
    'rs.pdp(model, X, ["a"], kind="both")': (TypeError, "ice(model, X)"),
    "rs.rhale(local, percentiles=(0.05, 0.95))": (TypeError, "local_effects(model, X, percentiles"),
    "rs.bootstrap(effect, local, random_state=0)": (TypeError, "'rng'"),
    # effector
    "rs.RHALE(X, model)": (AttributeError, "rhale"),
    "rs.effects(model, X)": (TypeError, "rhale(model, X)"),
    "rs.rhale(model, X, n_bins=20)": (TypeError, "'bins'"),
    "rs.rhale(local, jacobian=None)": (TypeError, "local_effects(model, X, jacobian=...)"),
    'rs.ale_from_local(local, categorical="a")': (TypeError, "ale_local_effects(model, X, categor"),
    'rs.RegionalRHALE(X, model).summary("a")': (AttributeError, "regional_rhale"),
    'rs.plots.effect(effect, "a", heterogeneity=True)': (TypeError, 'style="paper"'),
    # PyALE, R's ale, iml
    'rs.plot_ale(effect, "a")': (AttributeError, "plot(effect)"),
    'rs.ale_2d(model, X, ["a", "b"])': (AttributeError, "ale2(model, X, (a, b))"),
    'rs.ale(model, X, "a", grid_size=50)': (TypeError, "'bins'"),
    "rs.FeatureEffect(model, X)": (AttributeError, "rhale(model, X)"),
    "rs.Interaction(model, X)": (AttributeError, "h_statistic(model, X)"),
    # marginaleffects
    "rs.slopes(model, X)": (AttributeError, "averages(model, X)"),
    "rs.avg_slopes(model)": (AttributeError, "averages(model, X)"),
    "rs.confint(effect, alpha=0.1)": (TypeError, "level is 1 - alpha"),
    "rs.confint(effect, conf_level=0.9)": (TypeError, "'level'"),
    "rs.std_error(effect, cluster=groups)": (TypeError, "std_error(effect, local, groups=groups)"),
    "rs.margins(model, X)": (TypeError, "averages(model, X)"),
    "rs.profiles(model, X)": (TypeError, "pdp(model, X)"),
    "rs.predict(model, X)": (TypeError, "model.predict(X)"),
    "rs.gam(model)": (AttributeError, "rhale(model, X)"),
    "rs.vip(model)": (AttributeError, "explain(model, X, y)"),
    "rs.ggpredict(model)": (AttributeError, "pdp(model, X)"),
    "rs.coef(effect)": (AttributeError, "tidy(effect)"),
    "rs.rhale(model, X, dx=0.1)": (TypeError, "EqualWidthBins(width=0.5"),
    "rs.summary(2 * effect)": (ValueError, "2 * effect['effect']"),
    "rs.summary(effect.round(3))": (ValueError, "rounding"),
    "rs.summary(effect - other)": (ValueError, "compare(a, b)"),
    'rs.averages(fitted, comparison="lnor")': (ValueError, "'log_odds_ratio'"),
    'rs.averages(fitted, "a", vcov="HC3")': (TypeError, "cov_type="),
    "rs.hypotheses(fitted)": (TypeError, "averages(model, X)"),
    'rs.hypotheses(averaged, "revpairwise")': (KeyError, "'pairwise'"),
    "rs.contrast(averaged)": (AttributeError, "hypotheses(averages)"),
    'rs.datagrid(X, a="mean")': (TypeError, "a=numpy.mean"),
    'rs.rhale(classifier, X, scale="link")': (ValueError, "'logit'"),
    'rs.rhale(classifier, X, response_method="predict_proba")': (TypeError, "'scale'"),
    'rs.rhale(model, X, features="all")': (KeyError, "All are taken where it is left out"),
    "rs.rhale([model, pipe], X)": (TypeError, "over_models(models, X)"),
    'rs.summary("effect.nc")': (TypeError, "xarray.open_dataset(path)"),
    "rs.plot(effect, other)": (TypeError, "a list: [a, b]"),
    "rs.bootstrap_refit(model, X)": (TypeError, "It fits a model to rows"),
    "rs.cross_effects(lambda rows: model, X, y)": (TypeError, "estimate=rhale, say"),
    "rs.sklearn.PartialDependenceDisplay": (AttributeError, "EffectDisplay"),
    "effect.rhale.sumary()": (AttributeError, "summary"),
    "effect.rhale.plot_tree()": (AttributeError, "regions(local, feature)"),
    "effect.rhale.at()": (TypeError, "at(age=40)"),
    # DALEX, shap
    "rs.Explainer(model, X)": (AttributeError, "explain(model, X, y)"),
    "rs.model_profile(model, X)": (AttributeError, "pdp(model, X)"),
    "rs.feature_importance(model, X)": (AttributeError, "explain(model, X, y)"),
    "rs.shap(model, X)": (AttributeError, "shap_dependence(model, X)"),
    'rs.dependence_plot("a", model, X)': (AttributeError, "shap_dependence(model, X)"),
    "rs.pdp(local)": (TypeError, "pdp(model, X)"),
    "rs.regions(model, X)": (TypeError, "regions(model, X, 'age')"),
    "rs.bootstrap(effect)": (ValueError, "local_effects(model, X)"),
    # Methods, other steps, columns by their names, pictures.
    'effect.rhale.report("x.html")': (AttributeError, "help(rs.report)"),
    'effect["curve"].rhale.summary()': (AttributeError, "Take the Dataset"),
    'rs.summary(effect["curve"])': (TypeError, "Take the Dataset"),
    'rs.ale(model, X, ["a", ("a", "b")])': (TypeError, "Pairs are for pdp and ale2"),
    "rs.rhale(model)": (TypeError, "rhale(model, X)"),
    "rs.rhale(model, X, y)": (TypeError, "No outcome is needed here"),
    'rs.rhale(model, X.assign(k="u"), "k")': (TypeError, "ale(model, X, 'k')"),
    'rs.ale(model, X, groups="ward")': (TypeError, "groups=X['ward']"),
    'rs.explain(model, X, "y")': (TypeError, "y=X['y']"),
    "rs.averages(model, X)": (TypeError, "rhale(model, X)"),
    "rs.check_unbiased(model, X, 'a')": (TypeError, "check_unbiased(effect, local"),
    "rs.report(model, X, 'x.html')": (TypeError, "report(tree, path"),
    'rs.predict(effect, {"a": 0.3})': (TypeError, "effect.rhale.at(x)"),
    'rs.ice(model, X, "a", subsample=50)': (TypeError, "X.sample(n)"),
    'rs.rhale(model, X, feature_names=["a"])': (TypeError, "columns=names"),
    'rs.plot(effect, "a", title="A")': (TypeError, "plot(effect, 'age')[0].set(title"),
    "rs.plot(effect, figsize=(8, 3))": (TypeError, "set_size_inches"),
    'rs.plot(effect, "a", level=0.9)': (TypeError, "confint(effect, level=0.9)"),
    'rs.plot(effect, "a", centering=0.1)': (TypeError, "'reference'"),
}  # fmt: skip


class Fitted:
    """A model with an interaction."""

    def jacobian(self, rows):
        a, b, c = np.asarray(rows, dtype=float).T
        return np.column_stack([b, a, np.ones_like(c)])

    def predict(self, rows):
        a, b, c = np.asarray(rows, dtype=float).T[:3]
        return a * b + c


@pytest.fixture(scope="module")
def names():
    matplotlib.use("agg")
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-1, 1, (120, 3)), columns=["a", "b", "c"])
    model = Fitted()
    y = model.predict(X) + rng.normal(0, 0.1, len(X))
    mixed = X.assign(job=rng.choice(["clerk", "cook", "nurse"], len(X)))
    numbers = make_column_transformer((OneHotEncoder(), ["job"]), remainder="passthrough")
    pipe = make_pipeline(numbers, DecisionTreeRegressor(min_samples_leaf=9, random_state=0))
    table = X.assign(k=np.arange(len(X)) % 4)
    local = rs.local_effects(model, X)
    effect = rs.std_error(rs.rhale(local))
    profile, curves = rs.pdp(model, X), rs.ice(model, X)
    return {
        "rs": rs, "np": np, "plt": plt, "xr": xr, "pd": pd, "pl": pl,
        "pickle": pickle, "X": X, "y": y, "model": model, "local": local,
        "effect": effect, "groups": np.arange(len(X)) // 4, "weights": rng.uniform(1, 2, len(X)),
        "table": table, "jacobian": model.jacobian,
        "group": np.where(np.arange(len(X)) % 3, "u", "v"),
        "classes": np.digitize(y, [-0.3, 0.3]),
        "classifier": LogisticRegression().fit(X, np.digitize(y, [-0.3, 0.3])),
        "profile": profile, "curves": curves, "mixed": mixed, "pipe": pipe.fit(mixed, y),
        "other": rs.std_error(rs.rhale(model, X.iloc[::2])),
        "fitted": smf.ols("y ~ a * b + c", X.assign(y=y)).fit(),
        "boot": rs.bootstrap(effect, local, n_resamples=40, rng=0),
        "tree": rs.regions(local, "a", rng=0),
        "averaged": rs.averages(smf.ols("y ~ a * b", table.assign(y=y)).fit(), table, by="k"),
        "explanation": rs.explain(model, X, progress=False, rng=0),
    }  # fmt: skip


@pytest.mark.parametrize("call", WORKS)
def test_it_works(names, call):
    if ".chunk(" in call:
        pytest.importorskip("dask", reason="dask is not installed")
    found = eval(call, names)
    kind = WORKS[call]
    assert found is not None
    assert kind is None or (kind_of(found) and kind_of(found).name) == kind


@pytest.mark.parametrize("call", ANSWERED)
def test_or_one_line_says_what_to_type(names, call):
    kind, words = ANSWERED[call]
    with pytest.raises(kind) as error:
        eval(call, names)
    line = str(error.value)
    assert words in line
    assert "\n" not in line


def test_what_functions_of_local_effects_say_of_a_model(names):
    with pytest.raises(TypeError, match=r"ale\(model, X, categorical=\.\.\.\)"):
        rs.local_effects(names["model"], names["X"], categorical="c")
    with pytest.raises(TypeError, match=r"local = .*, tree = regions\(local, feature\)"):
        rs.regional_rhale(names["model"], names["X"], "a")


def test_the_share_that_works():
    n = len(WORKS) + len(ANSWERED)
    assert n >= 100
    assert len(WORKS) / n >= LEAST_THAT_WORKS


@pytest.mark.parametrize(
    ("name", "said"),
    [
        *((f"plot_{name}", f"rhale_stats has .*mean plots.{name}[?]") for name in rs.plots.__all__),
        ("mae", "rhale_stats has .*mean simulate.mae"),
        ("plots.forrest", "rhale_stats.plots has .*mean forest[?]"),
    ],
)
def test_names_of_modules_are_answered(name, said):
    with pytest.raises(AttributeError, match=said):
        attrgetter(name)(rs)


# --- the same numbers as the long way -------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "long"),
    [
        ("rs.rhale(model, X)", "rs.rhale(rs.local_effects(model, X))"),
        ('rs.rhale(model, X, "b")', 'rs.rhale(rs.local_effects(model, X, features="b"))'),
        ('rs.rhale(local, "b")', 'rs.rhale(local).sel(feature=["b"])[["effect", "curve"]]'),
        ("rs.rhale(local, bins=4)", "rs.rhale(local, bins=rs.EqualWidthBins(4))"),
        ("rs.rhale(slopes, bins=4)", "rs.rhale(slopes, bins=rs.QuantileBins(4))"),
        ("rs.ale(model, X, bins=4)", "rs.ale(model, X, bins=rs.QuantileBins(4))"),
        ('rs.ale(model, X, bins="equal_width")', "rs.ale(model, X, bins=rs.EqualWidthBins(20))"),
        ("rs.ale(rs.ale_local_effects(model, X))", "rs.ale(model, X)"),
        ('rs.regions(model, X, "a", rng=0)', 'rs.regions(local, "a", rng=0)'),
        ("rs.dale(local, 5)", "rs.dale(local, n_bins=5)"),
        (
            "rs.bootstrap(effect, local, n_resamples=9, rng=0)",
            "rs.bootstrap(local=local, effect=effect, n_resamples=9, chains=3, rng=0)",
        ),
        (
            "rs.bootstrap(profile, curves, n_resamples=8, rng=0)",
            "rs.bootstrap(curves, profile, n_resamples=8, rng=0)",
        ),
        ("rs.jump_check(model, local, effect)", "rs.jump_check(effect, local, model)"),
        ('rs.confint(effect.sel(feature="b"))', 'rs.confint(effect.sel(feature=["b"]))'),
        ("rs.rhale(local, n_jobs=1)", "rs.rhale(local)"),
        (
            "rs.rhale(model, X, weights=weights)",
            "rs.rhale(rs.local_effects(model, X, weights=weights))",
        ),
        (
            "rs.rhale(model, X, groups=groups)",
            "rs.std_error(rs.rhale(local), local, groups=groups)",
        ),
        (
            "rs.ale(model, X, bins=8, groups=groups)",
            "rs.std_error(rs.ale(model, X, bins=8), rs.ale_local_effects(model, X, bins=8), "
            "groups=groups)",
        ),
        (
            "rs.pdp(model, X, n_grid=5, groups=groups)",
            "rs.std_error(rs.pdp(model, X, n_grid=5), rs.ice(model, X, n_grid=5), groups=groups)",
        ),
        (
            "rs.m_plot(model, X, bins=5, groups=groups)",
            "rs.std_error(rs.m_plot(model, X, bins=5), groups=groups)",
        ),
        (
            'rs.ale2(model, X, ("a", "b"), groups=groups)',
            'rs.std_error(rs.ale2(model, X, ("a", "b")), groups=groups)',
        ),
    ],
)
def test_the_numbers_are_those_of_the_long_way(names, call, long):
    here = {**names, "slopes": rs.local_effects(Fitted(), names["X"], method="finite_difference")}
    found, expected = eval(call, here), eval(long, here)
    for name in expected.data_vars:
        one = found[name].transpose(*expected[name].dims)
        xr.testing.assert_equal(one.reset_coords(drop=True), expected[name].reset_coords(drop=True))


def test_one_feature_of_a_file_has_its_dimension_again(names, tmp_path):
    for name in ("effect", "local", "profile"):
        names[name].to_netcdf(tmp_path / "one.nc")
        with xr.open_dataset(tmp_path / "one.nc") as read:
            one = read.load().sel(feature="b")
        assert one.rhale.show() is not None
        if name == "local":
            assert rs.rhale(one).sizes["feature"] == 1
        else:
            assert len(rs.tidy(one)) < len(rs.tidy(names[name]))


def test_what_is_ambiguous_is_refused(names):
    local, X = names["local"], names["X"]
    with pytest.raises(TypeError, match=r"X must be left out where local effects are given"):
        rs.rhale(local, X=X)
    with pytest.raises(ValueError, match=r"bins must be a rule .* 'quantile'.*; got 'wide'"):
        rs.rhale(local, bins="wide")
    with pytest.raises(TypeError, match="bins must be a rule"):
        rs.rhale(local, bins=True)
    with pytest.raises(TypeError, match="n_jobs must be a whole number"):
        rs.rhale(local, n_jobs="two")


# --- words of other packages ----------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_answered_with_a_call_that_is_there(name):
    said = other_name(name, rs.__all__)
    assert said.startswith("Did you mean ")
    calls = [part.split("(")[0].strip() for part in NAMES[name].replace(" or ", ", ").split("), ")]
    for call in calls:
        last = call.removeprefix("and ").split()[-1]
        assert last in rs.__all__ or last.startswith(("effect.", "simulate.", "xarray."))


@pytest.mark.parametrize("word", KEYWORDS)
def test_every_keyword_is_answered_with_one_that_some_function_has(word):
    import inspect

    from rhale_stats.schema.validation import Options, fields

    known = set()
    for function in public_functions().values():
        for name, one in inspect.signature(function).parameters.items():
            known.add(name)
            if isinstance(one.default, Options):
                known |= {field.name for field in fields(one.default)}
    for ours in KEYWORDS[word]:
        assert ours in known
        assert f"{ours!r}" in other_keyword(word, [ours])


def test_what_differs_is_said():
    for word, text in DIFFERENT.items():
        assert text in other_keyword(word, [])


def test_regions_of_a_model_are_split_by_all_columns_of_its_table():
    """Categories and few whole numbers have no derivatives; rows may differ by them."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=300), "c": rng.choice(list("xyz"), 300)})

    def model(X):
        return X["a"].to_numpy() * (X["c"].to_numpy() == "x")

    tree = rs.regions(model, X, "a", rng=0)
    assert set(tree["condition_feature"].values) == {"c", ""}
