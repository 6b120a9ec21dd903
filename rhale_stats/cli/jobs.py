"""The model formula of the command line, the command `fit`, and the example without a command."""

from __future__ import annotations

import argparse
import ast
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import matplotlib.pyplot as plt
import numpy as np  # formulas may use np.log: they are evaluated in this module
import pandas as pd
import patsy
import seaborn as sns
import statsmodels.api as sm
import statsmodels.formula.api as smf
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import NDArray
from tqdm import tqdm

import rhale_stats as rs
from rhale_stats.cli.files import (
    folder_of,
    read_table,
    reason,
    save,
    with_readings,
    without_missing,
    writers_of,
)
from rhale_stats.cli.parser import DEFAULT_FAMILY, FAMILIES, FailureError, UsageError
from rhale_stats.models.table import as_table

Check: TypeAlias = Callable[[NDArray[np.float64]], NDArray[np.bool_]]
# Families that do not accept every number as an outcome: the allowed outcomes in words, and a
# check.
RANGES: dict[str, tuple[str, Check]] = {
    "binomial": ("numbers from 0 to 1", lambda y: (y >= 0) & (y <= 1)),
    "poisson": ("numbers from 0 upwards", lambda y: y >= 0),
    "negative-binomial": ("numbers from 0 upwards", lambda y: y >= 0),
    "tweedie": ("numbers from 0 upwards", lambda y: y >= 0),
    "gamma": ("numbers above 0", lambda y: y > 0),
    "inverse-gaussian": ("numbers above 0", lambda y: y > 0),
}
LIKE = "--formula must look like 'y ~ x1 + x2'"
# Largest number of columns that a message names.
COLUMNS_LISTED = 20


@dataclass(frozen=True)
class Formula:
    """A model formula, parsed by patsy."""

    text: str
    description: patsy.ModelDesc

    @classmethod
    def parsed(cls, text: str, columns: Sequence[object] = ()) -> Formula:
        """The formula of a text, for a table of these columns."""
        try:
            description = patsy.ModelDesc.from_formula(text)
            _named(description.lhs_termlist + description.rhs_termlist, pd.DataFrame())
        except Exception as error:
            quoted = [f'Q("{column}")' for column in columns if not str(column).isidentifier()]
            advice = f" Write names with blanks as {', '.join(quoted)}." if quoted else ""
            left, _, right = text.partition("~")
            if right.strip() == ".":  # all other columns, in R
                others = [str(column) for column in columns if str(column) != left.strip()]
                advice = f" Name the columns: {left.strip()} ~ {' + '.join(others)}.{advice}"
            raise UsageError(f"{LIKE}; got {text!r}: {reason(error)}.{advice}") from error
        if not description.lhs_termlist:
            raise UsageError(f"{LIKE}; got {text!r}, which has no outcome before a '~'.")
        return cls(text, description)

    @property
    def outcome(self) -> str:
        """The left-hand side, before the ``~``."""
        return self.text.partition("~")[0].strip()

    def regressors(self, data: pd.DataFrame) -> list[str]:
        """Columns that the right-hand side names, in the order of the data."""
        return _named(self.description.rhs_termlist, data)

    def columns(self, data: pd.DataFrame) -> list[str]:
        """Columns that the formula names, in the order of the data."""
        outcome = _named(self.description.lhs_termlist, data)
        regressors = self.regressors(data)
        if not (outcome and regressors):
            raise UsageError(
                f"--formula must name columns of the data; {self.text!r} names "
                f"{', '.join([*outcome, *regressors]) or 'none'} of {listed_names(data)}."
                f"{self._meant(data)} Name an outcome and at least one regressor."
            )
        return [name for name in data.columns if name in {*outcome, *regressors}]

    def checked(self, data: pd.DataFrame, family: str, table: pd.DataFrame) -> set[str]:
        """Columns that the right-hand side uses as categorical; ``table`` has those to name."""
        try:
            # Values that are not finite are counted below.
            with np.errstate(all="ignore"):
                (left, right), sides = self._evaluated(data)
        except Exception as error:
            raise UsageError(
                f"--formula must be made of columns, functions of patsy, and functions of NumPy "
                f"as np; {self.text!r} could not be evaluated: {reason(error)}."
                f"{self._meant(table)} The columns are {listed_names(table)}."
            ) from error
        n_finite = int(np.logical_and.reduce([np.isfinite(side).all(1) for side in sides]).sum())
        if n_finite < len(data):
            raise UsageError(
                f"--formula must give finite numbers in every row; {self.text!r} does not in "
                f"{len(data) - n_finite} of {len(data)} rows. Remove these rows from DATA, or "
                f"change the formula (a logarithm needs positive numbers)."
            )
        self._check_outcome(left, sides[0], family)
        levels = [
            factor
            for factor, info in right.factor_infos.items()
            if info.type == "categorical"
            # A comparison such as I(age > 30) can be evaluated at any value of its column.
            and not all(isinstance(level, bool | np.bool_) for level in info.categories)
        ]
        return set(_named(levels, data))

    def _meant(self, data: pd.DataFrame) -> str:
        """What to write for names that are no columns."""
        names = re.findall(r"(?<=[\"'])[^\"']+(?=[\"'])|(?<![\w.])[^\W\d]\w*", self.text)
        columns, meant = [*map(str, data.columns)], []
        for name in dict.fromkeys(name for name in names if name not in columns):
            near = get_close_matches(name, columns, n=1, cutoff=0.7)
            if re.search(rf"\b{re.escape(name)}\(", self.text) and callable(
                getattr(np, name, None)
            ):
                meant.append(f"np.{name}(...)")
            elif near:
                meant.append(near[0] if near[0].isidentifier() else f'Q("{near[0]}")')
        return f" Did you mean {', '.join(meant)}?" if meant else ""

    def outcome_of(self, data: pd.DataFrame) -> pd.Series[Any] | None:
        """The outcome of the rows; None for numbers of successes and failures."""
        _, (left, _) = self._evaluated(data)
        return pd.Series(left[:, 0], name=self.outcome) if left.shape[1] == 1 else None

    def _evaluated(self, data: pd.DataFrame) -> tuple[Any, list[NDArray[np.float64]]]:
        """Information of patsy on both sides, and their matrices, without rows with NaN."""
        environment = patsy.EvalEnvironment([{"np": np}])
        designs = patsy.incr_dbuilders(self.description, lambda: iter([data]), environment)
        matrices = patsy.build_design_matrices(designs, data, NA_action="drop")
        return designs, [np.asarray(matrix) for matrix in matrices]

    def _check_outcome(self, left: Any, outcome: NDArray[np.float64], family: str) -> None:
        texts = [f for f, info in left.factor_infos.items() if info.type == "categorical"]
        if texts:
            raise UsageError(
                f"--formula must have an outcome of numbers; {texts[0].code} is text or true and "
                f"false. For the probability of one of two values, write "
                f"'np.where({texts[0].code} == value, 1, 0) ~ ...' with --family binomial."
            )
        what, fits = RANGES.get(family, ("numbers", np.isfinite))
        # Two columns are the numbers of successes and of failures of a binomial outcome.
        if outcome.shape[1] == 1 and not fits(outcome).all():
            raise UsageError(
                f"--family {family} needs an outcome of {what}; {self.outcome} has values from "
                f"{outcome.min():g} to {outcome.max():g}. Choose another family, or check DATA."
            )


def _named(terms: Iterable[Any], data: pd.DataFrame) -> list[str]:
    """Columns of ``data`` that the code of terms or factors names, bare or as Q("name")."""
    names: set[object] = set()
    codes = (factor.code for term in terms for factor in getattr(term, "factors", (term,)))
    for node in chain.from_iterable(ast.walk(ast.parse(code)) for code in codes):
        match node:
            case ast.Name(id=name):
                names.add(name)
            case ast.Call(func=ast.Name(id="Q"), args=[ast.Constant(value=name)]):
                names.add(name)
    return [name for name in data.columns if name in names]


def features_of(
    regressors: list[str],
    categorical: Collection[str],
    data: pd.DataFrame,
    chosen: list[str] | None,
) -> list[str]:
    """Features to show. Prints which regressors are left out, and why."""
    table = as_table(data)
    unfit, discrete = {}, {}
    for name in regressors:
        position = table.names.index(name)
        if name in categorical or not table.is_numeric(position):
            unfit[name] = f"{name} (categorical)"
        elif data[name].nunique() == 1:
            unfit[name] = f"{name} (constant)"
        elif table.is_discrete(position):
            discrete[name] = f"{name} ({data[name].nunique()} distinct values)"
    numeric = [name for name in regressors if name not in unfit]
    if chosen:
        check_features(chosen, numeric, "numeric regressors of the formula that vary")
        return list(dict.fromkeys(chosen))
    left_out = ", ".join([*unfit.values(), *discrete.values()])
    remedy = f" To include them: --features {' '.join(numeric)}." if discrete else ""
    if len(numeric) == len(discrete):
        raise UsageError(f"--formula must have a continuous regressor; got {left_out}.{remedy}")
    if left_out:
        print(f"Features left out: {left_out}.{remedy}")
    return [name for name in numeric if name not in discrete]


def check_features(chosen: Sequence[str] | None, names: Sequence[str], what: str) -> None:
    """Raise ``UsageError`` unless the features asked for are among the names of ``what``."""
    wrong = [name for name in chosen or [] if name not in names]
    if wrong:
        raise UsageError(
            f"--features must be {what}, which are {', '.join(names) or 'none'}; got "
            f"{', '.join(wrong)}."
        )


def plain(column: pd.Series[Any]) -> pd.Series[Any]:
    """A column without missing values, in a type that patsy knows (not a nullable one)."""
    if isinstance(column.dtype, np.dtype | pd.CategoricalDtype):
        return column
    values = column.to_numpy()
    # The type is given, because pandas would use its own type for text.
    return pd.Series(values, index=column.index, dtype=values.dtype, name=column.name)


def listed_names(data: pd.DataFrame) -> str:
    """Names of the columns of a table, not all if they are many."""
    listed = ", ".join(map(str, data.columns[:COLUMNS_LISTED]))
    more = len(data.columns) - COLUMNS_LISTED
    return f"{listed} and {more} more columns" if more > 0 else listed


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
        refits = job.again(n_refits, progress=progress)
        figure, paths = (
            rs.plots.effects(refits)[0].figure,
            [out / REFITS_PICTURE, out / REFITS_NAME],
        )
        _save(figure, paths, refits, pd.DataFrame())
        print(f"\n{rs.summary(refits)}\n")
        print(f"{paths[1]}: the effects of {n_refits} models, each fitted to a sample of the rows.")
        print(f"{paths[0]}: their curves, with standard errors of the refits.")
    if title is not None:
        y = Formula.parsed(job.formula).outcome_of(job.data)
        tree = rs.explain(results, job.data, y, progress=progress)
        save([out / REPORT_NAME], {".html": partial(rs.report, tree, title=title)})
        print(
            f"{out / REPORT_NAME}: the report of all features: which matter, how much, for whom, "
            f"and how surely. Its curves are accumulated local effects in up to 40 bins."
        )
    return {
        "formula": job.formula,
        "family": job.family,
        "n_rows": len(job.data),
        "uncertainty": source,
        "effects": table,
        "files": [str(out / name) for name in names],
    }


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
