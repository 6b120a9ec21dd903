"""The command line: fit a generalised linear model, compute RHALE, print, save, draw.

Without arguments it does so for the RAND Health Insurance data that statsmodels ships. It runs the
simulation studies, too.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, TypeAlias

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import patsy
import seaborn as sns
import statsmodels.api as sm
import statsmodels.formula.api as smf
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import NDArray
from tqdm import tqdm

from rhale_stats import studies
from rhale_stats._version import __version__
from rhale_stats.effects import local_effects, rhale
from rhale_stats.files import check_folder, discard_unfinished, whole, write_netcdf
from rhale_stats.g_errors import std_error
from rhale_stats.g_tables import summary
from rhale_stats.models import as_table
from rhale_stats.plots import plot_effect, plot_effects
from rhale_stats.studies import report
from rhale_stats.studies.runner import one_line, print_warning

PROGRAM = "rhale-stats"
FAMILIES = {
    "gaussian": sm.families.Gaussian,
    "binomial": sm.families.Binomial,
    "poisson": sm.families.Poisson,
    "gamma": sm.families.Gamma,
    "inverse-gaussian": sm.families.InverseGaussian,
    "negative-binomial": sm.families.NegativeBinomial,
    "tweedie": sm.families.Tweedie,
}
DEFAULT_FAMILY = "gaussian"
Check: TypeAlias = Callable[[NDArray[np.float64]], NDArray[np.bool_]]
# Outcomes of families for which not every number is one, in words and as a check.
RANGES: dict[str, tuple[str, Check]] = {
    "binomial": ("numbers from 0 to 1", lambda y: (y >= 0) & (y <= 1)),
    "poisson": ("numbers from 0 upwards", lambda y: y >= 0),
    "negative-binomial": ("numbers from 0 upwards", lambda y: y >= 0),
    "tweedie": ("numbers from 0 upwards", lambda y: y >= 0),
    "gamma": ("numbers above 0", lambda y: y > 0),
    "inverse-gaussian": ("numbers above 0", lambda y: y > 0),
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
INTERRUPTED_LINE = f"\n{PROGRAM}: interrupted.\n".encode()
# Time that the main thread has to clean up after Ctrl-C.
GRACE_SECONDS = 1.5
LIKE = "--formula must look like 'y ~ x1 + x2'"
# So many columns are named in a message.
COLUMNS_LISTED = 20


class UsageError(Exception):
    """What the user typed cannot be done; the message says why and what to do."""


class FailureError(Exception):
    """What the user typed was tried, and failed; the message says why."""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, as all others are."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{PROGRAM}: {message}. `{self.prog} --help` says what is expected.\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status.

    Parameters
    ----------
    argv : sequence of str, optional
        What is typed after ``rhale-stats``. Without, it is that of this process, which Ctrl-C then
        ends in time, whatever it is doing.

    Returns
    -------
    int
        0 if all went well, 1 for failures, 2 for what cannot be done as it was typed, 130 after
        Ctrl-C.
    """
    if argv is not None:
        return _main(argv)
    with _ended_by_interruptions():
        status = _main(sys.argv[1:])
    if status == INTERRUPTED:
        with suppress(OSError):
            sys.stdout.flush()
        # Without waiting for threads of libraries that are still computing.
        os._exit(status)
    return status


def _main(argv: Sequence[str]) -> int:
    try:
        with warnings.catch_warnings():
            warnings.showwarning = print_warning  # type: ignore[assignment]
            arguments = _parser().parse_args(argv)
            arguments.run(arguments)
            sys.stdout.flush()
        return 0
    except KeyboardInterrupt as interruption:
        return _ended(INTERRUPTED, " ".join(["interrupted.", *map(str, interruption.args)]))
    except BrokenPipeError:
        # The reader of the output, such as `head`, has closed it. Python would write once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except UsageError as error:
        return _ended(2, str(error))
    except FailureError as error:
        return _ended(1, str(error))
    except Exception as error:
        return _ended(1, one_line(error))


def _ended(status: int, message: str) -> int:
    print(f"{PROGRAM}: {' '.join(message.split())}", file=sys.stderr, flush=True)
    return status


@contextmanager
def _ended_by_interruptions() -> Iterator[None]:
    """Make Ctrl-C end this process soon, even inside a library that does not react to it.

    Python handles a signal between two of its own instructions. The decomposition of a large
    matrix is one instruction and can take minutes. A second thread is therefore told of the signal
    at once. It gives the main thread a moment to clean up, then it ends the process.
    """
    told, tell = socket.socketpair()
    tell.setblocking(False)
    over = threading.Event()
    watch = threading.Thread(target=_end_if_interrupted, args=(told, over), daemon=True)
    # A shell may have started this process with Ctrl-C ignored, as in the background.
    handler_before = signal.signal(signal.SIGINT, _interrupt_once)
    told_before = signal.set_wakeup_fd(tell.fileno(), warn_on_full_buffer=False)
    watch.start()
    try:
        yield
    finally:
        over.set()
        signal.set_wakeup_fd(told_before)
        signal.signal(signal.SIGINT, handler_before or signal.SIG_DFL)
        tell.close()
        watch.join()
        told.close()


def _interrupt_once(_number: int, _frame: FrameType | None) -> NoReturn:
    """Interrupt the computation, but not the cleaning up that follows."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def _end_if_interrupted(told: socket.socket, over: threading.Event) -> None:
    """Wait for a signal; if it is Ctrl-C and the main thread does not end, end the process."""
    while (number := told.recv(1)) and number[0] != signal.SIGINT:
        pass
    if number and not over.wait(GRACE_SECONDS):
        discard_unfinished()
        os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, INTERRUPTED_LINE)
        os._exit(INTERRUPTED)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog=PROGRAM,
        description="Average effects of features on a model's output, their heterogeneity and "
        "their uncertainty (RHALE). Without a command: the RAND Health Insurance data.",
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    parser.set_defaults(run=_rand)
    _add_common(parser)
    commands = parser.add_subparsers(metavar="COMMAND")
    fit = commands.add_parser(
        "fit", help="fit a generalised linear model to a CSV or Parquet file and show its effects"
    )
    fit.set_defaults(run=_fit)
    fit.add_argument("data", metavar="DATA", type=Path, help="CSV or Parquet file, header included")
    fit.add_argument(
        "--formula",
        required=True,
        help="model formula, as in 'y ~ cr(age, df=4) * sex'. Formulas are evaluated as Python "
        "code: do not use a formula from a source that you do not trust",
    )
    fit.add_argument(
        "--family",
        choices=sorted(FAMILIES),
        help=f"of the outcome (default: {DEFAULT_FAMILY})",
    )
    fit.add_argument(
        "--features",
        nargs="+",
        metavar="NAME",
        help="features to show (default: the continuous regressors of the formula)",
    )
    _add_common(fit)
    study = commands.add_parser("study", help="run a simulation study and print its report")
    study.set_defaults(run=_study)
    _add_study(study)
    return parser


def _add_study(study: argparse.ArgumentParser) -> None:
    study.add_argument("name", metavar="NAME", nargs="?", help="one of those in --list")
    study.add_argument("--list", action="store_true", help="print the names of all studies")
    study.add_argument("--quick", action="store_true", help="fewer or smaller simulations")
    study.add_argument(
        "--replicates",
        type=int,
        metavar="N",
        help="per scenario (default: by study)",
    )
    study.add_argument(
        "--jobs", type=int, metavar="N", help="number of processes (default: number of CPUs)"
    )
    study.add_argument("--seed", type=int, default=0, metavar="N", help="random seed (default: 0)")
    study.add_argument("--settings", metavar="S", help="variant of the study, if it has variants")
    study.add_argument("--data", type=Path, metavar="PATH", help="data, if the study reads a file")
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
    formula = Formula.parsed(arguments.formula)
    data = _read(arguments.data)
    used = formula.columns(data)
    unknown = [name for name in arguments.features or [] if name not in data.columns]
    if unknown:
        raise UsageError(
            f"--features must be columns of {arguments.data}; got {', '.join(unknown)}. "
            f"It has {_listed(data)}."
        )
    incomplete = data[used].isna().any(axis=1)
    if incomplete.any():
        print(f"{int(incomplete.sum())} of {len(data)} rows have missing values and are dropped.")
        data = data[~incomplete].reset_index(drop=True)
    if data.empty:
        raise UsageError(
            f"DATA must have rows without missing values in {', '.join(used)}; {arguments.data} "
            f"has none. Leave columns that are mostly empty out of the formula."
        )
    # Columns that the formula does not use have no effect to show.
    data = pd.DataFrame({name: _plain(data[name]) for name in used})
    family = arguments.family or DEFAULT_FAMILY
    if arguments.family is None:
        others = ", ".join(name for name in sorted(FAMILIES) if name != DEFAULT_FAMILY)
        print(f"Family: {DEFAULT_FAMILY} (default). --family also takes {others}.")
    categorical = formula.checked(data, family)
    features = _features(formula.regressors(data), categorical, data, arguments.features)
    data.attrs["output_name"] = formula.outcome
    _run(data, formula.text, family, features, arguments)


@dataclass(frozen=True)
class Formula:
    """A model formula, and what patsy makes of it."""

    text: str
    description: patsy.ModelDesc

    @classmethod
    def parsed(cls, text: str) -> Formula:
        """The formula of a text.

        Raises
        ------
        UsageError
            It is none, or has no outcome.
        """
        try:
            description = patsy.ModelDesc.from_formula(text)
        except Exception as error:
            raise UsageError(f"{LIKE}; got {text!r}: {_said(error)}.") from error
        if not description.lhs_termlist:
            raise UsageError(f"{LIKE}; got {text!r}, which has no outcome before a '~'.")
        return cls(text, description)

    @property
    def outcome(self) -> str:
        """What stands before the ``~``."""
        return self.text.partition("~")[0].strip()

    def regressors(self, data: pd.DataFrame) -> list[str]:
        """Columns that the right-hand side names, in the order of the data."""
        return _named(_factors(self.description.rhs_termlist), data)

    def columns(self, data: pd.DataFrame) -> list[str]:
        """Columns that the formula names, in the order of the data.

        Raises
        ------
        UsageError
            One of the sides names none.
        """
        outcome = _named(_factors(self.description.lhs_termlist), data)
        regressors = self.regressors(data)
        if not (outcome and regressors):
            raise UsageError(
                f"--formula must name columns of the data; {self.text!r} names "
                f"{', '.join([*outcome, *regressors]) or 'none'} of {_listed(data)}. Name an "
                f"outcome and at least one regressor."
            )
        return [name for name in data.columns if name in {*outcome, *regressors}]

    def checked(self, data: pd.DataFrame, family: str) -> set[str]:
        """Columns that the right-hand side takes as categorical.

        Raises
        ------
        UsageError
            The formula cannot be evaluated, or its outcome is not one of the family's.
        """
        try:
            # What is not finite is counted below.
            with np.errstate(all="ignore"):
                (left, right), sides = self._evaluated(data)
        except Exception as error:
            raise UsageError(
                f"--formula must be made of columns, functions of patsy, and functions of NumPy "
                f"as np; {self.text!r} could not be evaluated: {_said(error)}. The columns "
                f"are {_listed(data)}."
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

    def _evaluated(self, data: pd.DataFrame) -> tuple[Any, list[NDArray[np.float64]]]:
        """What patsy knows of both sides, and their matrices, without rows that are NaN."""
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
        # Two columns are the successes and the failures of binomial outcomes.
        if outcome.shape[1] == 1 and not fits(outcome).all():
            raise UsageError(
                f"--family {family} needs an outcome of {what}; {self.outcome} has values from "
                f"{outcome.min():g} to {outcome.max():g}. Choose another family, or check DATA."
            )


def _factors(terms: Sequence[Any]) -> list[Any]:
    """Factors of the terms of a formula, such as ``cr(age, df=4)``."""
    return [factor for term in terms for factor in term.factors]


def _named(factors: Sequence[Any], data: pd.DataFrame) -> list[str]:
    """Columns of ``data`` that the code of factors names, bare or as Q("name")."""
    names: set[object] = set()
    for node in (node for factor in factors for node in ast.walk(ast.parse(factor.code))):
        match node:
            case ast.Name(id=name):
                names.add(name)
            case ast.Call(func=ast.Name(id="Q"), args=[ast.Constant(value=name)]):
                names.add(name)
    return [name for name in data.columns if name in names]


def _features(
    regressors: list[str], categorical: set[str], data: pd.DataFrame, asked: list[str] | None
) -> list[str]:
    """Features to show; prints which regressors are left out, and why.

    Raises
    ------
    UsageError
        One that was asked for is no numeric regressor, or there is no continuous one.
    """
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
    if asked:
        wrong = [name for name in asked if name not in numeric]
        if wrong:
            raise UsageError(
                f"--features must be numeric regressors of the formula that vary, which are "
                f"{', '.join(numeric) or 'none'}; got {', '.join(wrong)}."
            )
        return list(dict.fromkeys(asked))
    left_out = ", ".join([*unfit.values(), *discrete.values()])
    remedy = f" To include them: --features {' '.join(numeric)}." if discrete else ""
    if len(numeric) == len(discrete):
        raise UsageError(f"--formula must have a continuous regressor; got {left_out}.{remedy}")
    if left_out:
        print(f"Features left out: {left_out}.{remedy}")
    return [name for name in numeric if name not in discrete]


def _plain(column: pd.Series[Any]) -> pd.Series[Any]:
    """A column without missing values in a type that patsy knows, as nullable ones are not."""
    if isinstance(column.dtype, np.dtype | pd.CategoricalDtype):
        return column
    values = column.to_numpy()
    # With the type given, for pandas would make its own texts of texts.
    return pd.Series(values, index=column.index, dtype=values.dtype)


def _listed(data: pd.DataFrame) -> str:
    """Names of the columns of a table, not all if they are many."""
    listed = ", ".join(map(str, data.columns[:COLUMNS_LISTED]))
    more = len(data.columns) - COLUMNS_LISTED
    return f"{listed} and {more} more columns" if more > 0 else listed


def _said(error: Exception) -> str:
    """Message of an error; patsy's without the picture of the place."""
    text = str(error.message) if isinstance(error, patsy.PatsyError) else one_line(error)
    return text.rstrip(". ")


def _read(path: Path) -> pd.DataFrame:
    if not path.exists():
        raise UsageError(f"DATA must be an existing file; there is no {path}.")
    try:
        if path.suffix.lower() in (".parquet", ".pq"):
            return pd.read_parquet(path)
        return pd.read_csv(path)
    except ImportError as error:
        raise UsageError(
            f"DATA must be a file that pandas can read; for Parquet, as in {path}, it needs "
            f"pyarrow: pip install pyarrow."
        ) from error
    except Exception as error:
        raise UsageError(
            f"DATA must be a CSV or Parquet file that pandas can read; {path}: {_said(error)}."
        ) from error


def _study(arguments: argparse.Namespace) -> None:
    names = studies.names()
    if arguments.list:
        for name in names:
            print(f"{name:<{max(map(len, names))}}  {studies.load(name).title}")
        return
    if arguments.name not in names:
        raise UsageError(
            f"NAME must be one of {', '.join(names) or '(none)'}; "
            f"got {arguments.name or 'none'}. --list says what they are."
        )
    if arguments.data is not None and not arguments.data.exists():
        raise UsageError(f"--data must be an existing file; there is no {arguments.data}.")
    stem = _stem(arguments)
    options = studies.Options(arguments.quick, arguments.settings, arguments.data)
    try:
        study = studies.load(arguments.name, options)
    except ValueError as error:
        raise UsageError(str(error)) from error
    out = _folder(arguments, [f"{stem}{suffix}" for suffix in (".nc", ".md", ".png")])
    try:
        results = studies.run(
            arguments.name,
            options,
            n_replicates=arguments.replicates,
            jobs=arguments.jobs,
            seed=arguments.seed,
            path=out / f"{stem}.nc",
            progress=not getattr(arguments, "no_progress", False),
        )
    except ValueError as error:
        raise UsageError(str(error)) from error
    except KeyboardInterrupt:
        raise KeyboardInterrupt("The same command again goes on where this one stopped.") from None
    text, picture = report.save(study, results, out, stem)
    print(report.render(study, results))
    print(f"{out / f'{stem}.nc'}: the results, as xarray.open_dataset reads them.")
    print(f"{text}: this report.")
    print(f"{picture}: its figure.")


def _stem(arguments: argparse.Namespace) -> str:
    """Name of the files of a study, one for every variant, without what is no part of a name."""
    stem = str(arguments.name)
    if arguments.settings is not None:
        stem += "-" + re.sub(r"[^\w.=-]+", "-", arguments.settings)
    return stem + ("-quick" if arguments.quick else "")


def _folder(arguments: argparse.Namespace, names: Sequence[str]) -> Path:
    """The folder for the files, made if need be, where they can be written."""
    out: Path = getattr(arguments, "out", Path())
    try:
        check_folder(out, names)
    except OSError as error:
        raise UsageError(
            f"--out must be a folder in which {', '.join(names)} can be written; got {out}: "
            f"{error.strerror or error}. Choose another folder."
        ) from error
    return out


def _run(
    data: pd.DataFrame,
    formula: str,
    family: str,
    features: list[str],
    arguments: argparse.Namespace,
) -> None:
    out = _folder(arguments, (NETCDF_NAME, PICTURE_NAME))
    progress = not getattr(arguments, "no_progress", False)
    with tqdm(total=5, disable=not progress, bar_format="{desc:<30}|{bar}| {elapsed}") as bar:
        bar.set_description("fitting the model")
        results = _fit_glm(data, formula, family)
        bar.update()
        bar.set_description("local effects")
        local = local_effects(results, data, features=features, progress=False)
        bar.update()
        bar.set_description("RHALE and standard errors")
        effect = std_error(rhale(local))
        bar.update()
        bar.set_description("drawing")
        figure = _draw(effect, local)
        bar.update()
        bar.set_description("saving")
        _save(effect, figure, out)
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
        return smf.glm(formula, data, family=FAMILIES[family](), missing="raise").fit()
    except Exception as error:
        raise FailureError(
            f"statsmodels could not fit {formula!r} with family {family}: {_said(error)}. Try a "
            f"simpler formula or another family."
        ) from error


def _save(effect: xr.Dataset, figure: Figure, out: Path) -> None:
    """Write both files, or none of them."""
    try:
        with whole(out / PICTURE_NAME) as unfinished:
            figure.savefig(unfinished, dpi=200)
            write_netcdf(effect, out / NETCDF_NAME)
    except OSError as error:
        raise FailureError(
            f"The results could not be saved in {out}: {error.strerror or error}. Existing "
            f"files are unchanged. Free some space, or choose another folder with --out."
        ) from error
    finally:
        plt.close(figure)


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
