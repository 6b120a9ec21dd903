"""The words that the command line takes, and what `--help` says about them.

Nothing is imported here that fits, draws or reads: `--help` answers at once.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeAlias

from rhale_stats._version import __version__

PROGRAM = "rhale-stats"
# Suffixes of files of results: netCDF, Zarr, tables, JSON.
RESULTS = (".nc", ".zarr", ".csv", ".parquet", ".feather", ".arrow", ".json")
# A report.
HTML = ".html"
# Families of generalised linear models, with the class in `statsmodels.api.families` of each.
FAMILIES = {
    "gaussian": "Gaussian",
    "binomial": "Binomial",
    "poisson": "Poisson",
    "gamma": "Gamma",
    "inverse-gaussian": "InverseGaussian",
    "negative-binomial": "NegativeBinomial",
    "tweedie": "Tweedie",
}
DEFAULT_FAMILY = "gaussian"
# Natural splines predict beyond their outermost knots, as refits to parts of the rows must.
SPLINE = "y ~ cr(age, df=4, constraints='center') * sex"
# Number of refits where none is given.
DEFAULT_REFITS = 100
DEMO = "jobs:rand_job"
DATA = "CSV (also compressed), TSV, Parquet or Arrow (Feather) file, with names of columns"
STATUSES = (
    "exit status: 0 success; 1 the command failed; 2 the command cannot be carried out as it was "
    "typed; 130 Ctrl-C."
)


class UsageError(Exception):
    """The command cannot be carried out as it was typed. The message says why and what to do."""


class FailureError(Exception):
    """The command was tried, and failed. The message says why."""


# What other programs call it.
OTHERS = {
    **dict.fromkeys(
        ("--target", "--y", "-y", "--label", "--response"),
        "--formula 'y ~ x1 + x2', or --outcome beside --model",
    ),
    **dict.fromkeys(("--html", "--report", "--output-file", "--outdir", "-o"), "--out report.html"),
    **dict.fromkeys(("--data", "--input", "--csv"), "the file without an option"),
    **dict.fromkeys(("--sample-weight", "--wt"), "--weights"),
    **dict.fromkeys(("--cluster", "--id"), "--groups"),
    **dict.fromkeys(("-f", "~"), "--formula 'y ~ x1 + x2'"),
    **dict.fromkeys(("'logit'", "'logistic'", "'bernoulli'"), "--family binomial"),
    "'completion'": "shtab --shell=bash --prog rhale-stats rhale_stats.cli.parser.parser",
    **dict.fromkeys(("'normal'", "'ols'"), "--family gaussian"),
    **dict.fromkeys(
        ("'ale'", "'pdp'", "'rhale'", "'plot'", "'summary'", "'effects'", "'run'"),
        "fit, or explain",
    ),
}


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, like all other errors."""

    def error(self, message: str) -> NoReturn:
        message = re.sub(r"^argument (\S+): must", r"\1 must", message)
        words = [word for word in message.partition("(")[0].split() if word[0] in "-'~"]
        meant = [OTHERS[word] for word in words if word in OTHERS]
        options = self._words()
        for word in [typed.rstrip(":.").strip("'") for typed in words]:
            if word not in options:
                meant += get_close_matches(word, options, n=1, cutoff=0.7)
            meant += [f"{PROGRAM} explain {word}"] if Path(word).is_file() else []
        message += f". Did you mean {meant[0]}?" if meant else "."
        self.exit(2, f"{PROGRAM}: {message} `{self.prog} --help` says what is expected.\n")

    def _words(self) -> list[str]:
        """Options and commands, and options of all commands."""
        words = [*self._option_string_actions]
        for action in self._actions:
            if isinstance(action.choices, dict):
                words += [*action.choices]
                words += [word for each in action.choices.values() for word in each._words()]
        return words


def _existing(text: str) -> Path:
    """A file, or a folder of Zarr or Parquet, that is read."""
    if not Path(text).exists():
        raise argparse.ArgumentTypeError(f"must be an existing file; there is no {text}")
    return Path(text)


def _ending(*suffixes: str) -> Callable[[str], Path]:
    """A file to write, whose suffix says what."""

    def path(text: str) -> Path:
        if Path(text).suffix.lower() not in suffixes:
            raise argparse.ArgumentTypeError(
                f"must end with one of {', '.join(suffixes)}, which says what is written; got "
                f"{text}"
            )
        return Path(text)

    return path


def _value(expected: str, read: Callable[[str], Any], fits: Callable[[Any], object]) -> Any:
    """What reads a text, and says what is expected where it does not fit."""

    def value(text: str) -> Any:
        with suppress(ValueError):
            if fits(number := read(text)):
                return number
        raise argparse.ArgumentTypeError(f"must be {expected}; got {text!r}")

    return value


_share = _value("a number between 0 and 1", float, lambda number: 0 < number < 1)
_time = _value("a time such as 30s or 2min", str, re.compile(r"\d+(\.\d+)?\s*(s|min|h)?").fullmatch)


def _number(least: int) -> Any:
    """A whole number that is not smaller than another one."""
    return _value(f"a whole number of at least {least}", int, lambda number: number >= least)


# Positions and options by their names, with what argparse is told of each.
Arguments: TypeAlias = dict[str, dict[str, Any]]


def _of(metavar: str, what: str, **how: Any) -> dict[str, Any]:
    """An option with a value; its help says the default."""
    default = how.get("default", argparse.SUPPRESS)
    text = what if default is argparse.SUPPRESS else f"{what} (default: {default})"
    return {"metavar": metavar, "help": text, **how}


def _flag(what: str, **how: Any) -> dict[str, Any]:
    return {"action": "store_true", "help": what, **how}


def _names(what: str) -> dict[str, Any]:
    return _of("NAME", what, nargs="+")


def _formula(**how: Any) -> Arguments:
    return {
        "--formula": {
            "help": f'model formula, as in "{SPLINE}". Formulas are evaluated as '
            "Python code: do not use a formula from a source that you do not trust",
            **how,
        },
        "--family": {
            "choices": sorted(FAMILIES),
            "help": f"of the outcome (default: {DEFAULT_FAMILY})",
        },
    }


def _files(*suffixes: str) -> Arguments:
    what = f"files to write; the suffix says what: {', '.join(suffixes)}"
    return {
        "--out": _of("FILE", what, type=_ending(*suffixes), nargs="+"),
        "--overwrite": _flag("replace files that exist"),
    }


TABLE: Arguments = {"data": _of("DATA", DATA, type=_existing)}
SEED: Arguments = {"--seed": _of("N", "random seed", type=_number(0), default=0)}
# Before a command these hold for it, too.
UNSET: dict[str, Any] = {"default": argparse.SUPPRESS}
FOLDER: Arguments = {
    "--out": _of("DIR", "folder for the files (default: the working folder)", type=Path, **UNSET)
}
COMMON: Arguments = {
    "--no-progress": _flag("show no progress bar", **UNSET),
    "--quiet": _flag("print nothing but warnings and errors, and with --json the object", **UNSET),
    "--json": _flag("print one JSON object in place of text, for scripts", **UNSET),
    "--debug": _flag("show where in the code an error comes from", **UNSET),
}
# A model from a file or a formula, and the columns beside it.
MODEL: Arguments = {
    "--model": _of(
        "FILE",
        "a fitted model: .onnx; .json or .ubj of xgboost; .txt of lightgbm; .cbm of catboost; "
        "with --trust .joblib or .pkl, and .pt of PyTorch",
        type=_existing,
    ),
    "--trust": _flag(
        "load a file that runs code as it is loaded (.joblib, .pkl, .pt): only for files of "
        "your own or of a source that you trust"
    ),
    "--columns": _names(
        "columns that the model takes, in its order (default: those that it names, or all "
        "that no other option names)"
    ),
    "--output": _of("NAME", "of several outputs of the model, or a class"),
    **_formula(),
    "--outcome": _of("COLUMN", "what the model predicts; with --model only"),
    "--groups": _of("COLUMN", "rows with the same value may depend on each other"),
    "--weights": _of("COLUMN", "weights of the rows"),
}


class Command(NamedTuple):
    """A command: the function that carries it out, what it does, examples, and its arguments."""

    name: str
    job: str
    what: str
    examples: tuple[str, ...]
    arguments: Arguments


COMMANDS = (
    Command(
        "demo",
        DEMO,
        "fit a model to the RAND Health Insurance data and show its effects",
        ("", "--out results"),
        FOLDER,
    ),
    Command(
        "explain",
        "commands:explain_job",
        "explain a model: which features matter, how much, for whom, and how surely",
        (
            f'data.csv --formula "{SPLINE} + dose" --out report.html',
            "data.csv --model model.json --outcome y --out report.html answers.csv tree.nc",
            "data.parquet --model forest.joblib --trust --outcome y --held-out --json",
        ),
        {
            **TABLE,
            "--features": _names("features to explain (default: all columns of the model)"),
            "--categorical": _names("columns of numbers whose values are levels"),
            **MODEL,
            "--keep-missing": _flag(
                "keep rows with missing values, for a model that takes them; each effect is then "
                "that of the rows with a value (default: such rows are dropped)"
            ),
            "--matters": _of(
                "SHARE",
                "what is called to matter: a share of the standard deviation of the predictions",
                type=_share,
                default=0.05,
            ),
            "--level": _of("LEVEL", "of intervals and bands", type=_share, default=0.95),
            "--held-out": {
                "action": "store_const",
                "const": True,
                "help": "say that the model was fitted to other rows than these",
            },
            "--budget": _of(
                "TIME",
                "time to keep to, as 30s or 2min; what takes longer is made smaller",
                type=_time,
                default="60s",
            ),
            **SEED,
            **_files(HTML, *RESULTS),
        },
    ),
    Command(
        "report",
        "commands:report_job",
        "write the report of an explanation that `explain` saved",
        ("tree.nc", 'tree.zarr --out report.html --title "Visits to a doctor" --overwrite'),
        {
            "tree": _of("TREE", "explanation (.nc, .zarr)", type=_existing),
            "--out": _of("FILE", "the report (default: TREE with .html)", type=_ending(HTML)),
            "--overwrite": _flag("replace a file that exists"),
            "--title": _of("TEXT", "title of the report"),
            "--features": _names("features with a part and a picture (default: all, at most 30)"),
            "--open": _of(
                "N", "how many of these parts are open at first", type=_number(0), default=4
            ),
            "--print": _flag("all parts open, for printing"),
        },
    ),
    Command(
        "fit",
        "jobs:fit_job",
        "fit a generalised linear model to a table and show its effects",
        (
            f'data.csv --formula "{SPLINE} + dose" --family poisson',
            'data.parquet --formula "y ~ age + sex" --groups clinic --refits --out results',
        ),
        {
            **TABLE,
            **_formula(required=True),
            "--features": _names(
                "features to show (default: the continuous regressors of the formula)"
            ),
            "--uncertainty": {
                "choices": ("both", "rows", "parameters"),
                "default": "both",
                "help": "what standard errors hold: the sampling of the rows, that of the model's "
                "parameters, or both (default)",
            },
            "--groups": _of(
                "COLUMN",
                "rows with the same value may depend on each other: standard errors of rows and "
                "parameters are then cluster-robust",
            ),
            "--refits": _of(
                "N",
                f"fit the model again to N samples of the rows or groups (N: {DEFAULT_REFITS}), "
                "and show how its effects vary",
                type=int,
                nargs="?",
                const=DEFAULT_REFITS,
            ),
            **FOLDER,
        },
    ),
    Command(
        "regions",
        "commands:regions_job",
        "search regions of the data in which the effect of a feature is less heterogeneous",
        (
            "data.csv --model model.json --feature age",
            'data.csv --formula "y ~ age * sex + dose" --feature age --out regions.nc regions.csv',
        ),
        {
            **TABLE,
            "--feature": _of("NAME", "whose effect, a column of numbers", required=True),
            "--conditioning": _names(
                "columns to split by (default: the other columns of the model)"
            ),
            "--max-depth": _of(
                "N", "splits on the way to a region, at most", type=_number(1), default=2
            ),
            **MODEL,
            **SEED,
            **_files(*RESULTS),
        },
    ),
    Command(
        "compare",
        "commands:compare_job",
        "compare two effects: from two files, or of the rows with two values of a column. The rows "
        "of both are taken as independent",
        (
            "before/rhale-effects.nc after/rhale-effects.nc",
            "data.csv --by sex --model model.json --out difference.csv",
            'data.csv --by clinic --levels A B --formula "y ~ age * sex"',
        ),
        {
            "files": _of(
                "FILE",
                "two files of effects that `fit` or `explain` wrote (.nc, .zarr); with --by, one "
                f"of data: {DATA}",
                nargs="+",
                type=_existing,
            ),
            "--by": _of("COLUMN", "whose values are compared"),
            "--levels": {
                "nargs": 2,
                "metavar": ("A", "B"),
                "help": "the two values (default: those of the column, if it has two)",
            },
            "--features": _names("features to compare"),
            **MODEL,
            **SEED,
            **_files(*RESULTS),
        },
    ),
    Command(
        "version",
        "main:version_job",
        "print the versions of the package, of Python and of the libraries",
        ("", "--json"),
        {},
    ),
)


def parser(*, demo: bool = False) -> argparse.ArgumentParser:
    """The parser of all commands; with ``demo`` that is the one where none is named."""
    parser = _Parser(
        prog=PROGRAM,
        description="Average effects of features on a model's output, their heterogeneity and "
        "their uncertainty (RHALE). `demo` shows it on the RAND Health Insurance data.",
        **_epilog(["demo", f'fit data.csv --formula "{SPLINE}" --out results']),
    )
    parser.add_argument("-V", "--version", action="version", version=f"{PROGRAM} {__version__}")
    parser.set_defaults(job=DEMO if demo else None)
    _add(parser, FOLDER)
    commands = parser.add_subparsers(metavar="COMMAND")
    for name, job, what, examples, arguments in COMMANDS:
        command = commands.add_parser(
            name,
            help=what,
            description=f"{what[0].upper()}{what[1:]}.",
            **_epilog([f"{name} {example}" for example in examples]),
        )
        command.set_defaults(job=job, command=name)
        _add(command, arguments)
    return parser


def _add(command: argparse.ArgumentParser, arguments: Arguments) -> None:
    """Add arguments of a command, and those of all commands."""
    for name, how in {**arguments, **COMMON}.items():
        command.add_argument(name, **how)


def _epilog(examples: list[str]) -> dict[str, Any]:
    """Examples and exit statuses, below the options."""
    lines = "\n".join(f"  {PROGRAM} {example}".rstrip() for example in examples)
    return {
        "epilog": f"examples:\n{lines}\n\n{STATUSES}",
        "formatter_class": argparse.RawDescriptionHelpFormatter,
    }


def check_model(arguments: argparse.Namespace) -> None:
    """Refuse no model, or two, of a command that takes one."""
    if not hasattr(arguments, "model") or getattr(arguments, "by", "") is None:
        return
    if (arguments.model is None) == (arguments.formula is None):
        got = "none" if arguments.model is None else "both"
        raise UsageError(
            f"Give either --model FILE or --formula 'y ~ x1 + x2', the model whose effects are "
            f"computed; got {got}."
        )
