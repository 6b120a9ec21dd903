"""The command line: fit a generalised linear model, compute RHALE, print, save, draw.

Without arguments it does so for the RAND Health Insurance data that statsmodels ships. It runs the
simulation studies, too.
"""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np  # noqa: F401  formulas are evaluated here, and np.log(y) is what users type
import pandas as pd
import seaborn as sns
import statsmodels.api as sm
import statsmodels.formula.api as smf
import xarray as xr
from matplotlib.figure import Figure
from tqdm import tqdm

from rhale_stats import studies
from rhale_stats.effects import local_effects, rhale
from rhale_stats.inference import std_error
from rhale_stats.plots import plot_effect, plot_effects
from rhale_stats.studies import report
from rhale_stats.summaries import summary

FAMILIES = {
    "gaussian": sm.families.Gaussian,
    "binomial": sm.families.Binomial,
    "poisson": sm.families.Poisson,
    "gamma": sm.families.Gamma,
    "inverse-gaussian": sm.families.InverseGaussian,
    "negative-binomial": sm.families.NegativeBinomial,
    "tweedie": sm.families.Tweedie,
}
RAND_FORMULA = (
    "mdvis ~ cr(disea, df=4, constraints='center') * (hlthg + hlthf + hlthp + physlm)"
    " + cr(lpi, df=3, constraints='center') * idp + cr(fmde, df=3, constraints='center') + lncoins"
)
RAND_FEATURES = ["disea", "lpi", "fmde"]
RAND_UNITS = {"disea": "disease", "lpi": "log $", "fmde": "log $"}
NETCDF_NAME = "rhale-effects.nc"
PICTURE_NAME = "rhale-effects.png"
# Up to so many features are drawn with their bins below the curve.
DETAILED_FEATURES = 4
# What a shell expects of a program that Ctrl-C ended: 128 and the number of the signal.
INTERRUPTED = 130


class UsageError(Exception):
    """What the user typed cannot be done; the message says why and what to do."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    arguments = _parser().parse_args(argv)
    try:
        if arguments.command == "fit":
            _fit(arguments)
        elif arguments.command == "study":
            return _study(arguments)
        else:
            _rand(arguments)
    except UsageError as error:
        print(f"rhale-stats: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="rhale-stats",
        description="Average effects of features on a model's output, their spread and their "
        "uncertainty (RHALE). Without a command: the RAND Health Insurance data.",
    )
    _add_common(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    fit = commands.add_parser(
        "fit", help="fit a generalised linear model to a CSV or Parquet file and show its effects"
    )
    fit.add_argument("data", metavar="DATA", type=Path, help="CSV or Parquet file, header included")
    fit.add_argument(
        "--formula", required=True, help="model formula, as in 'y ~ cr(age, df=4) * sex'"
    )
    fit.add_argument("--family", required=True, choices=sorted(FAMILIES), help="of the outcome")
    fit.add_argument(
        "--features",
        nargs="+",
        metavar="NAME",
        help="features to show (default: the continuous variables of the formula)",
    )
    _add_common(fit)
    _add_study(commands.add_parser("study", help="run a simulation study and print its report"))
    return parser


def _add_study(study: argparse.ArgumentParser) -> None:
    study.add_argument("name", metavar="NAME", nargs="?", help="which one; see --list")
    study.add_argument("--list", action="store_true", help="print the names of all studies")
    study.add_argument("--quick", action="store_true", help="small, to see that it works")
    study.add_argument(
        "--replicates", type=int, metavar="N", help="of each scenario (default: the study's own)"
    )
    study.add_argument(
        "--jobs", type=int, metavar="N", help="processes (default: the number of CPUs)"
    )
    study.add_argument("--seed", type=int, default=0, metavar="N", help="default: 0")
    study.add_argument("--settings", metavar="S", help="variant, of a study that has variants")
    study.add_argument("--data", type=Path, metavar="PATH", help="file, for a study that reads one")
    _add_common(study)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out",
        type=Path,
        default=argparse.SUPPRESS,
        metavar="DIR",
        help="folder for the files (default: the working folder)",
    )
    parser.add_argument(
        "--no-progress",
        action="store_true",
        default=argparse.SUPPRESS,
        help="show no progress bar",
    )


def _rand(arguments: argparse.Namespace) -> None:
    data = sm.datasets.randhie.load_pandas().data
    data.attrs["units"] = RAND_UNITS
    data.attrs["output_name"] = "visits"
    data.attrs["output_units"] = "visits per year"
    print(
        f"RAND Health Insurance Experiment: {len(data)} person-years, outpatient visits explained "
        f"by a Poisson model with splines and interactions."
    )
    _run(data, RAND_FORMULA, "poisson", RAND_FEATURES, arguments)


def _fit(arguments: argparse.Namespace) -> None:
    data = _read(arguments.data)
    used = variables(arguments.formula, data)
    incomplete = data[used].isna().any(axis=1)
    if incomplete.any():
        print(f"{int(incomplete.sum())} of {len(data)} rows have missing values and are dropped.")
        data = data[~incomplete].reset_index(drop=True)
    if data.empty:
        raise UsageError(f"{arguments.data} has no complete row of {', '.join(used)}.")
    data.attrs["output_name"] = arguments.formula.partition("~")[0].strip()
    unknown = [name for name in arguments.features or [] if name not in data.columns]
    if unknown:
        raise UsageError(
            f"--features must be columns of {arguments.data}; got {', '.join(unknown)}. "
            f"It has {', '.join(map(str, data.columns))}."
        )
    # Columns that the formula does not use have no effect to show.
    kept = list(dict.fromkeys([*used, *(arguments.features or [])]))
    _run(data[kept], arguments.formula, arguments.family, arguments.features, arguments)


def variables(formula: str, data: pd.DataFrame) -> list[str]:
    """Columns of ``data`` that a formula names, bare or as Q("name").

    Raises
    ------
    UsageError
        The formula has no ``~``, or names no column.
    """
    if "~" not in formula:
        raise UsageError(f"--formula must look like 'y ~ x1 + x2'; got {formula!r}.")
    named = _named(formula, data)
    if len(named) < 2:
        raise UsageError(
            f"--formula must name columns of the data; {formula!r} names "
            f"{', '.join(named) or 'none'} of {', '.join(map(str, data.columns))}."
        )
    return named


def _named(text: str, data: pd.DataFrame) -> list[str]:
    """Columns of ``data`` among the words of a part of a formula."""
    words = {*re.findall(r"[^\W\d]\w*", text), *re.findall(r"Q\(['\"](.+?)['\"]\)", text)}
    return [str(column) for column in data.columns if column in words]


def _read(path: Path) -> pd.DataFrame:
    if not path.exists():
        raise UsageError(f"DATA must be an existing file; there is no {path}.")
    try:
        if path.suffix.lower() in (".parquet", ".pq"):
            return pd.read_parquet(path)
        return pd.read_csv(path)
    except ImportError as error:
        raise UsageError(
            f"{path} is a Parquet file, which pandas reads through pyarrow: pip install pyarrow."
        ) from error
    except (ValueError, OSError) as error:
        raise UsageError(f"DATA must be a CSV or Parquet file; {path}: {error}") from error


def _study(arguments: argparse.Namespace) -> int:
    names = studies.names()
    if arguments.list:
        for name in names:
            print(f"{name:<{max(map(len, names))}}  {studies.load(name).title}")
        return 0
    if arguments.name not in names:
        raise UsageError(
            f"NAME must be one of {', '.join(names) or '(none)'}; "
            f"got {arguments.name or 'none'}. --list says what they are."
        )
    if arguments.data is not None and not arguments.data.exists():
        raise UsageError(f"--data must be an existing file; there is no {arguments.data}.")
    out: Path = getattr(arguments, "out", Path())
    stem = _stem(arguments)
    options = studies.Options(arguments.quick, arguments.settings, arguments.data)
    try:
        study = studies.load(arguments.name, options)
        results = studies.run(
            arguments.name,
            options,
            n_replicates=arguments.replicates,
            jobs=arguments.jobs,
            seed=arguments.seed,
            path=out / f"{stem}.nc",
            progress=not getattr(arguments, "no_progress", False),
        )
    except (ValueError, OSError) as error:
        raise UsageError(str(error)) from error
    except KeyboardInterrupt:
        print(
            "rhale-stats: interrupted. The same command again goes on where this one stopped.",
            file=sys.stderr,
        )
        return INTERRUPTED
    text, picture = report.save(study, results, out, stem)
    print(report.render(study, results))
    print(f"{out / f'{stem}.nc'}: the results, as xarray.open_dataset reads them.")
    print(f"{text}: this report.")
    print(f"{picture}: its figure.")
    return 0


def _stem(arguments: argparse.Namespace) -> str:
    """Name of the files of a study, one for every variant, without what is no part of a name."""
    stem = str(arguments.name)
    if arguments.settings is not None:
        stem += "-" + re.sub(r"[^\w.=-]+", "-", arguments.settings)
    return stem + ("-quick" if arguments.quick else "")


def _run(
    data: pd.DataFrame,
    formula: str,
    family: str,
    features: list[str] | None,
    arguments: argparse.Namespace,
) -> None:
    out: Path = getattr(arguments, "out", Path())
    progress = not getattr(arguments, "no_progress", False)
    with tqdm(total=5, disable=not progress, bar_format="{desc:<30}|{bar}| {elapsed}") as bar:
        bar.set_description("fitting the model")
        results = _fit_glm(data, formula, family)
        bar.update()
        bar.set_description("local effects")
        left, _, right = formula.partition("~")
        outcome = [name for name in _named(left, data) if name not in _named(right, data)]
        with warnings.catch_warnings():
            # What is left out is discrete or the outcome; the table shows what is not.
            warnings.filterwarnings("ignore", "Left out", UserWarning)
            rows = data if features else data.drop(columns=outcome)
            local = local_effects(results, rows, features=features, progress=False)
        bar.update()
        bar.set_description("RHALE and standard errors")
        effect = std_error(rhale(local))
        bar.update()
        bar.set_description("saving")
        out.mkdir(parents=True, exist_ok=True)
        effect.to_netcdf(out / NETCDF_NAME)
        bar.update()
        bar.set_description("drawing")
        figure = _draw(effect, local)
        figure.savefig(out / PICTURE_NAME, dpi=200)
        bar.update()
        bar.set_description("done")
    print(f"{formula}\n")
    print(summary(effect))
    print(
        f"\n{out / NETCDF_NAME}: the effects, their standard errors and bins, "
        f"as xarray.open_dataset reads them."
    )
    print(f"{out / PICTURE_NAME}: curves, heterogeneity and bin effects of every feature.")


def _fit_glm(data: pd.DataFrame, formula: str, family: str) -> Any:
    try:
        return smf.glm(formula, data, family=FAMILIES[family]()).fit()
    except Exception as error:
        raise UsageError(
            f"statsmodels could not fit {formula!r} with family {family}: "
            f"{type(error).__name__}: {error}"
        ) from error


def _draw(effect: xr.Dataset, local: xr.Dataset) -> Figure:
    """Curves above bins, side by side; curves only where features are many."""
    n_features = effect.sizes["feature"]
    if n_features > DETAILED_FEATURES:
        curves: Figure = plot_effects(effect)[0].figure
        return curves
    with sns.axes_style("ticks"), sns.plotting_context("paper", font_scale=1.1):
        figure = plt.figure(figsize=(1.5 + 3.8 * n_features, 6.0), layout="constrained")
        axes = figure.subplots(2, n_features, squeeze=False)
    for column in range(n_features):
        plot_effect(effect, column, local, ax=axes[:, column])
    sns.despine(figure)
    return figure
