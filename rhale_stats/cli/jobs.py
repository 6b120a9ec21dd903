"""The command `fit`, and the example that runs without a command."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np  # noqa: F401  # formulas may use np.log: they are evaluated in this module
import pandas as pd
import seaborn as sns
import statsmodels.api as sm
import statsmodels.formula.api as smf
import xarray as xr
from matplotlib.figure import Figure
from tqdm import tqdm

import rhale_stats as rs
from rhale_stats.cli.files import (
    folder_of,
    read_table,
    save,
    with_readings,
    without_missing,
    writers_of,
)
from rhale_stats.cli.formula import Formula, features_of, listed_names, plain, reason
from rhale_stats.cli.parser import DEFAULT_FAMILY, FAMILIES, FailureError, UsageError

RAND_FORMULA = (
    "mdvis ~ cr(disea, df=4, constraints='center') * (hlthg + hlthf + hlthp + physlm)"
    " + cr(lpi, df=3, constraints='center') * idp + cr(fmde, df=3, constraints='center') + lncoins"
)
RAND_FEATURES = ["disea", "lpi", "fmde"]
RAND_TITLE = "What drives visits to a doctor? The RAND Health Insurance Experiment"
RAND_ATTRS = {
    "units": {"disea": "disease", "lpi": "log $", "fmde": "log $"},
    "output_name": "visits",
    "output_units": "visits per year",
}
NETCDF_NAME = "rhale-effects.nc"
PICTURE_NAME = "rhale-effects.png"
TABLE_NAME = "rhale-effects.csv"
REPORT_NAME = "rhale-report.html"
REFITS_NAME, REFITS_PICTURE = "rhale-refits.nc", "rhale-refits.png"
# What standard errors hold by default: the rows, and the parameters of the model.
DEFAULT_UNCERTAINTY = "both"
# Options that name columns beside those of the model.
BESIDE = ("outcome", "groups", "weights", "by", "conditioning")
# Largest number of features that are drawn with their bins below the curve.
DETAILED_FEATURES = 4


def rand_job(arguments: argparse.Namespace) -> dict[str, Any]:
    """Fit a model to the RAND Health Insurance data, and show its effects."""
    data = sm.datasets.randhie.load_pandas().data
    data.attrs |= RAND_ATTRS
    print(
        f"RAND Health Insurance Experiment: {len(data)} person-years, outpatient visits explained "
        f"by a Poisson model with splines and interactions."
    )
    job = Job(data, RAND_FORMULA, "poisson", RAND_FEATURES)
    return _run(job, arguments, RAND_TITLE)


def fit_job(arguments: argparse.Namespace) -> dict[str, Any]:
    """Fit a model to the user's table, and show its effects."""
    if arguments.refits is not None and arguments.refits < 2:
        raise UsageError(f"--refits must be at least 2; got {arguments.refits}.")
    job = job_of(arguments)
    features = features_of(job.features, job.categorical, job.data, arguments.features)
    return _run(replace(job, features=features), arguments)


def job_of(arguments: argparse.Namespace) -> Job:
    """The fit of a formula to its rows, checked; its features are all regressors.

    Prints how many rows are dropped, and the family if none is named.
    """
    table = with_readings(read_table(arguments.data))
    formula = Formula.parsed(arguments.formula, list(table.columns))
    used = formula.columns(table)
    check_columns(arguments, table, "features")
    needed = list(dict.fromkeys([*used, *columns_beside(arguments, table)]))
    table = without_missing(
        table, needed, arguments.data, "Leave columns that are mostly empty out of the formula."
    )
    groups = groups_of(arguments, table)
    # Columns that the formula does not use have no effect to show.
    data = pd.DataFrame({name: plain(table[name]) for name in used})
    family = arguments.family or DEFAULT_FAMILY
    if arguments.family is None:
        others = ", ".join(name for name in sorted(FAMILIES) if name != DEFAULT_FAMILY)
        print(f"Family: {DEFAULT_FAMILY} (default). --family also takes {others}.")
    categorical = formula.checked(data, family, table)
    data.attrs |= {"output_name": formula.outcome, "units": table.attrs["units"]}
    regressors = formula.regressors(data)
    return Job(data, formula.text, family, regressors, groups, table, frozenset(categorical))


def columns_beside(arguments: argparse.Namespace, table: pd.DataFrame) -> list[str]:
    """Columns beside those of the model that options name."""
    return [name for option in BESIDE for name in check_columns(arguments, table, option)]


def check_columns(arguments: argparse.Namespace, table: pd.DataFrame, option: str) -> list[str]:
    """The columns that an option names; raise ``UsageError`` if the table lacks one."""
    value = getattr(arguments, option, None) or []
    names, what = ([value], "a column") if isinstance(value, str) else (value, "columns")
    wrong = [name for name in names if name not in table.columns]
    if wrong:
        raise UsageError(
            f"--{option} must be {what} of {arguments.data}; got {', '.join(wrong)}. It has "
            f"{listed_names(table)}."
        )
    return names


def groups_of(arguments: argparse.Namespace, table: pd.DataFrame) -> pd.Series[Any] | None:
    """The groups of the rows, checked, if a column is named."""
    if arguments.groups is None:
        return None
    column = table[arguments.groups]
    n_groups = column.nunique()
    if n_groups < 2:
        raise UsageError(
            f"--groups must name a column of at least two groups; {column.name} has the same value "
            f"in all rows."
        )
    if n_groups == len(column):
        raise UsageError(
            f"--groups must name a column that several rows share; {column.name} has another value "
            f"in every row. Leave --groups out."
        )
    return plain(column)


@dataclass(frozen=True)
class Job:
    """The columns of a formula, the model to fit to them, and the features to show.

    ``groups`` are those of the rows, which may depend on each other within a group. ``table`` has
    all columns of the file; ``categorical`` are those that the formula uses as levels.
    """

    data: pd.DataFrame
    formula: str
    family: str
    features: list[str]
    groups: pd.Series[Any] | None = None
    table: pd.DataFrame = field(default_factory=pd.DataFrame)
    categorical: frozenset[str] = frozenset()

    def fitted(self) -> Any:
        """The fitted model; with groups, its covariance is cluster-robust."""
        how: dict[str, Any] = {}
        if self.groups is not None:
            codes = pd.factorize(self.groups)[0]
            how = {"cov_type": "cluster", "cov_kwds": {"groups": codes}}
        return _fit_glm(self.data, self.formula, self.family, **how)

    def effect(self, local: xr.Dataset, results: Any, uncertainty: str) -> xr.Dataset:
        """The effect with standard errors of the rows, of the parameters, or of both."""
        options: dict[str, Any] = {"groups": self.groups}
        if uncertainty != "rows":
            options |= {"model": results, "X": self.data, "uncertainty": uncertainty}
        return rs.std_error(rs.rhale(local), local, **options)

    def again(self, n: int, *, progress: bool) -> xr.Dataset:
        """Effects of models that were fitted to ``n`` samples of the rows."""

        def effect(rows: pd.DataFrame) -> xr.Dataset:
            with warnings.catch_warnings():
                # What they say was said of all rows.
                warnings.simplefilter("ignore")
                results = _fit_glm(rows, self.formula, self.family)
                return rs.rhale(
                    rs.local_effects(results, rows, features=self.features, progress=False)
                )

        options: dict[str, Any] = {"groups": self.groups, "rng": 0, "progress": progress}
        return rs.bootstrap_refit(effect, self.data, n_resamples=n, **options)


def _run(job: Job, arguments: argparse.Namespace, title: str | None = None) -> dict[str, Any]:
    """Fit, print, save and draw; with a title also explain the model, and write the report."""
    n_refits: int | None = getattr(arguments, "refits", None)
    names = [
        NETCDF_NAME,
        TABLE_NAME,
        PICTURE_NAME,
        *([REFITS_NAME, REFITS_PICTURE] if n_refits else []),
        *([] if title is None else [REPORT_NAME]),
    ]
    out = folder_of(arguments, names)
    uncertainty = getattr(arguments, "uncertainty", DEFAULT_UNCERTAINTY)
    progress = arguments.progress
    with tqdm(total=5, disable=not progress, bar_format="{desc:<30}|{bar}| {elapsed}") as bar:

        def step(what: str, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
            bar.set_description(what)
            result = function(*args, **options)
            bar.update()
            return result

        results = step("fitting the model", job.fitted)
        options = {"features": job.features, "progress": False}
        local = step("local effects", rs.local_effects, results, job.data, **options)
        effect = step("RHALE and standard errors", job.effect, local, results, uncertainty)
        figure = step("drawing", _draw, effect, local)
        source, table = str(effect["effect_se"].attrs["source"]), rs.tidy(effect)
        along = table.assign(estimand="average along the bin", uncertainty=source)
        paths = [out / name for name in (PICTURE_NAME, TABLE_NAME, NETCDF_NAME)]
        step("saving", _save, figure, paths, effect, along)
        bar.set_description("done")
    print(f"{job.formula}\n")
    print(rs.summary(effect))
    print(
        f"\n{out / NETCDF_NAME}: the effects, their standard errors and bins, "
        f"as xarray.open_dataset reads them."
    )
    print(
        f"{out / TABLE_NAME}: a line a bin: the average effect along the bin, as in the picture. "
        f"The table above has the mean over all rows, another estimand."
    )
    print(f"{out / PICTURE_NAME}: curves (RHALE), heterogeneity and bin effects of every feature.")
    if n_refits:
        _refit(job, n_refits, out, progress=progress)
    if title is not None:
        _report(job, results, out / REPORT_NAME, title, progress=progress)
    return {
        "formula": job.formula,
        "family": job.family,
        "n_rows": len(job.data),
        "uncertainty": source,
        "effects": table,
        "files": [str(out / name) for name in names],
    }


def _refit(job: Job, n: int, out: Path, *, progress: bool) -> None:
    """Fit the model again to samples of the rows; print and save what becomes of the effects."""
    refits = job.again(n, progress=progress)
    figure: Figure = rs.plots.effects(refits)[0].figure
    _save(figure, [out / REFITS_PICTURE, out / REFITS_NAME], refits, pd.DataFrame())
    print(f"\n{rs.summary(refits)}")
    print(f"\n{out / REFITS_NAME}: the effects of {n} models, each fitted to a sample of the rows.")
    print(f"{out / REFITS_PICTURE}: their curves, with standard errors of the refits.")


def _report(job: Job, results: Any, path: Path, title: str, *, progress: bool) -> None:
    """Explain the fitted model, and write the report."""
    y = Formula.parsed(job.formula).outcome_of(job.data)
    tree = rs.explain(results, job.data, y, progress=progress)
    save([path], {".html": partial(rs.report, tree, title=title)})
    print(
        f"{path}: the report of all features: which matter, how much, for whom, and how surely. "
        f"Its curves are accumulated local effects in up to 40 bins."
    )


def _fit_glm(data: pd.DataFrame, formula: str, family: str, **how: Any) -> Any:
    try:
        distribution = getattr(sm.families, FAMILIES[family])()
        return smf.glm(formula, data, family=distribution, missing="raise").fit(**how)
    except Exception as error:
        raise FailureError(
            f"statsmodels could not fit {formula!r} with family {family}: {reason(error)}. Try a "
            f"simpler formula or another family."
        ) from error


def _save(figure: Figure, paths: list[Path], result: xr.Dataset, table: pd.DataFrame) -> None:
    """Write a picture, a result and its table, all of them or none; close the picture."""
    try:
        save(paths, {**writers_of(result, table, {}), ".png": partial(figure.savefig, dpi=200)})
    finally:
        plt.close(figure)


def _draw(effect: xr.Dataset, local: xr.Dataset) -> Figure:
    """Curves above bins, side by side; only the curves if there are many features."""
    n_features = effect.sizes["feature"]
    if n_features > DETAILED_FEATURES:
        curves: Figure = rs.plots.effects(effect)[0].figure
        return curves
    with sns.axes_style("ticks"), sns.plotting_context("paper", font_scale=1.1):
        figure = plt.figure(figsize=(1.5 + 3.8 * n_features, 6.6), layout="constrained")
        axes = figure.subplots(3, n_features, squeeze=False, height_ratios=[3.1, 2.1, 1.2])
    for column in range(n_features):
        rs.plots.effect(effect, column, local, ax=axes[:, column])
    sns.despine(figure)
    return figure
