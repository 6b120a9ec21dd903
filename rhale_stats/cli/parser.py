"""The words that the command line takes, and what `--help` says about them.

Nothing is imported here that fits, draws or reads: `--help` answers at once.
"""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

from rhale_stats._version import __version__
from rhale_stats.cli.families import DEFAULT_FAMILY, FAMILIES
from rhale_stats.cli.interruption import PROGRAM, UsageError

# Suffixes of files of results: netCDF, Zarr, tables, JSON.
RESULTS = (".nc", ".zarr", ".csv", ".parquet", ".feather", ".arrow", ".json")
# A report.
HTML = ".html"
# Number of refits where none is given.
DEFAULT_REFITS = 100
DEMO = "jobs:rand_job"
DATA = "CSV (also compressed), TSV, Parquet or Arrow (Feather) file, with names of columns"
STATUSES = (
    "exit status: 0 success; 1 the command failed; 2 the command cannot be carried out as it was "
    "typed; 130 Ctrl-C."
)


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
        for word in map(_plain, words):
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


def _plain(word: str) -> str:
    return word.rstrip(":.").strip("'")


def parser(*, demo: bool = False) -> argparse.ArgumentParser:
    """The parser of all commands; with ``demo`` that is the one where none is named."""
    parser = _Parser(
        prog=PROGRAM,
        description="Average effects of features on a model's output, their heterogeneity and "
        "their uncertainty (RHALE). `demo` shows it on the RAND Health Insurance data.",
        **_epilog(["demo", 'fit data.csv --formula "y ~ bs(age, df=4) * sex" --out results']),
    )
    parser.add_argument("-V", "--version", action="version", version=f"{PROGRAM} {__version__}")
    parser.set_defaults(job=DEMO if demo else None)
    _add_folder(parser)
    _add_common(parser)
    commands = parser.add_subparsers(metavar="COMMAND")
    of_models = (_add_explain, _add_report, _add_fit, _add_regions, _add_compare)
    for add in (_add_demo, *of_models, _add_version):
        add(commands)
    return parser


def _command(commands: Any, name: str, job: str, what: str, examples: list[str]) -> Any:
    """A command, with its examples below its options."""
    command = commands.add_parser(
        name,
        help=what,
        description=f"{what[0].upper()}{what[1:]}.",
        **_epilog([f"{name} {example}" for example in examples]),
    )
    command.set_defaults(job=job, command=name)
    return command


def _epilog(examples: list[str]) -> dict[str, Any]:
    """Examples and exit statuses, below the options."""
    lines = "\n".join(f"  {PROGRAM} {example}".rstrip() for example in examples)
    return {
        "epilog": f"examples:\n{lines}\n\n{STATUSES}",
        "formatter_class": argparse.RawDescriptionHelpFormatter,
    }


def _add_demo(commands: Any) -> None:
    what = "fit a model to the RAND Health Insurance data and show its effects"
    demo = _command(commands, "demo", DEMO, what, ["", "--out results"])
    _add_folder(demo)
    _add_common(demo)


def _add_fit(commands: Any) -> None:
    fit = _command(
        commands,
        "fit",
        "jobs:fit_job",
        "fit a generalised linear model to a table and show its effects",
        [
            'data.csv --formula "y ~ bs(age, df=4) * sex + dose" --family poisson',
            'data.parquet --formula "y ~ age + sex" --groups clinic --refits --out results',
        ],
    )
    fit.add_argument("data", metavar="DATA", type=_existing, help=DATA)
    _add_formula(fit, required=True)
    fit.add_argument(
        "--features",
        nargs="+",
        metavar="NAME",
        help="features to show (default: the continuous regressors of the formula)",
    )
    _add_uncertainty(fit)
    _add_folder(fit)
    _add_common(fit)


def _add_formula(command: Any, **options: Any) -> None:
    command.add_argument(
        "--formula",
        help="model formula, as in 'y ~ bs(age, df=4) * sex'. Formulas are evaluated as Python "
        "code: do not use a formula from a source that you do not trust",
        **options,
    )
    command.add_argument(
        "--family",
        choices=sorted(FAMILIES),
        help=f"of the outcome (default: {DEFAULT_FAMILY})",
    )


def _add_uncertainty(fit: Any) -> None:
    fit.add_argument(
        "--uncertainty",
        choices=("both", "rows", "parameters"),
        default="both",
        help="what standard errors hold: the sampling of the rows, that of the model's parameters, "
        "or both (default)",
    )
    fit.add_argument(
        "--groups",
        metavar="COLUMN",
        help="rows with the same value may depend on each other: standard errors of rows and "
        "parameters are then cluster-robust",
    )
    fit.add_argument(
        "--refits",
        type=int,
        nargs="?",
        const=DEFAULT_REFITS,
        metavar="N",
        help=f"fit the model again to N samples of the rows or groups (N: {DEFAULT_REFITS}), and "
        "show how its effects vary",
    )


def _add_explain(commands: Any) -> None:
    command = _command(
        commands,
        "explain",
        "explain:explain_job",
        "explain a model: which features matter, how much, for whom, and how surely",
        [
            'data.csv --formula "y ~ bs(age, df=4) * sex + dose" --out report.html',
            "data.csv --model model.json --outcome y --out report.html answers.csv tree.nc",
            "data.parquet --model forest.joblib --trust --outcome y --held-out --json",
        ],
    )
    command.add_argument("data", metavar="DATA", type=_existing, help=DATA)
    command.add_argument(
        "--features",
        nargs="+",
        metavar="NAME",
        help="features to explain (default: all columns of the model)",
    )
    command.add_argument(
        "--categorical",
        nargs="+",
        metavar="NAME",
        help="columns of numbers whose values are levels",
    )
    _add_model(command)
    command.add_argument(
        "--keep-missing",
        action="store_true",
        help="keep rows with missing values, for a model that takes them; each effect is then that "
        "of the rows with a value (default: such rows are dropped)",
    )
    command.add_argument(
        "--matters",
        type=_share,
        default=0.05,
        metavar="SHARE",
        help="what is called to matter: a share of the standard deviation of the predictions "
        "(default: 0.05)",
    )
    command.add_argument(
        "--level",
        type=_share,
        default=0.95,
        metavar="LEVEL",
        help="of intervals and bands (default: 0.95)",
    )
    command.add_argument(
        "--held-out",
        action="store_const",
        const=True,
        help="say that the model was fitted to other rows than these",
    )
    command.add_argument(
        "--budget",
        type=_time,
        default="60s",
        metavar="TIME",
        help="time to keep to, as 30s or 2min; what takes longer is made smaller (default: 60s)",
    )
    _add_seed(command)
    _add_files(command, (HTML, *RESULTS))
    _add_common(command)


def _add_report(commands: Any) -> None:
    command = _command(
        commands,
        "report",
        "report:report_job",
        "write the report of an explanation that `explain` saved",
        ["tree.nc", 'tree.zarr --out report.html --title "Visits to a doctor" --overwrite'],
    )
    command.add_argument("tree", metavar="TREE", type=_existing, help="explanation (.nc, .zarr)")
    command.add_argument(
        "--out", type=_ending(HTML), metavar="FILE", help="the report (default: TREE with .html)"
    )
    command.add_argument("--overwrite", action="store_true", help="replace a file that exists")
    command.add_argument("--title", metavar="TEXT", help="title of the report")
    command.add_argument(
        "--features",
        nargs="+",
        metavar="NAME",
        help="features with a part and a picture (default: all, at most 30)",
    )
    command.add_argument(
        "--open",
        type=_number(0),
        default=4,
        metavar="N",
        help="how many of these parts are open at first (default: 4)",
    )
    command.add_argument("--print", action="store_true", help="all parts open, for printing")
    _add_common(command)


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


def _share(text: str) -> float:
    """A number between 0 and 1."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < 1:
        raise argparse.ArgumentTypeError(f"must be a number between 0 and 1; got {text!r}")
    return number


def _time(text: str) -> str:
    """A time that `explain` takes as its budget."""
    if not re.fullmatch(r"\d+(\.\d+)?\s*(s|min|h)?", text):
        raise argparse.ArgumentTypeError(f"must be a time such as 30s or 2min; got {text!r}")
    return text


def _add_regions(commands: Any) -> None:
    command = _command(
        commands,
        "regions",
        "regions:regions_job",
        "search regions of the data in which the effect of a feature is less heterogeneous",
        [
            "data.csv --model model.json --feature age",
            'data.csv --formula "y ~ age * sex + dose" --feature age --out regions.nc regions.csv',
        ],
    )
    command.add_argument("data", metavar="DATA", type=_existing, help=DATA)
    command.add_argument(
        "--feature", metavar="NAME", required=True, help="whose effect, a column of numbers"
    )
    command.add_argument(
        "--conditioning",
        nargs="+",
        metavar="NAME",
        help="columns to split by (default: the other columns of the model)",
    )
    command.add_argument(
        "--max-depth",
        type=_number(1),
        default=2,
        metavar="N",
        help="splits on the way to a region, at most (default: 2)",
    )
    _add_model(command)
    _add_seed(command)
    _add_files(command, RESULTS)
    _add_common(command)


def _add_compare(commands: Any) -> None:
    command = _command(
        commands,
        "compare",
        "compare:compare_job",
        "compare two effects: from two files, or of the rows with two values of a column. The rows "
        "of both are taken as independent",
        [
            "before/rhale-effects.nc after/rhale-effects.nc",
            "data.csv --by sex --model model.json --out difference.csv",
            'data.csv --by clinic --levels A B --formula "y ~ age * sex"',
        ],
    )
    command.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        type=_existing,
        help="two files of effects that `fit` or `explain` wrote (.nc, .zarr); with --by, one of "
        f"data: {DATA}",
    )
    command.add_argument("--by", metavar="COLUMN", help="whose values are compared")
    command.add_argument(
        "--levels",
        nargs=2,
        metavar=("A", "B"),
        help="the two values (default: those of the column, if it has two)",
    )
    command.add_argument("--features", nargs="+", metavar="NAME", help="features to compare")
    _add_model(command)
    _add_seed(command)
    _add_files(command, RESULTS)
    _add_common(command)


def _add_model(command: Any) -> None:
    """A model from a file or a formula, and the columns beside it."""
    command.add_argument(
        "--model",
        type=_existing,
        metavar="FILE",
        help="a fitted model: .onnx; .json or .ubj of xgboost; .txt of lightgbm; .cbm of catboost; "
        "with --trust .joblib or .pkl, and .pt of PyTorch",
    )
    command.add_argument(
        "--trust",
        action="store_true",
        help="load a file that runs code as it is loaded (.joblib, .pkl, .pt): only for files of "
        "your own or of a source that you trust",
    )
    command.add_argument(
        "--columns",
        nargs="+",
        metavar="NAME",
        help="columns that the model takes, in its order (default: those that it names, or all "
        "that no other option names)",
    )
    command.add_argument(
        "--output", metavar="NAME", help="of several outputs of the model, or a class"
    )
    _add_formula(command)
    command.add_argument(
        "--outcome", metavar="COLUMN", help="what the model predicts; with --model only"
    )
    command.add_argument(
        "--groups", metavar="COLUMN", help="rows with the same value may depend on each other"
    )
    command.add_argument("--weights", metavar="COLUMN", help="weights of the rows")


def _add_seed(command: Any) -> None:
    command.add_argument(
        "--seed", type=_number(0), default=0, metavar="N", help="random seed (default: 0)"
    )


def _number(least: int) -> Callable[[str], int]:
    """A whole number that is not smaller than another one."""

    def number(text: str) -> int:
        if not re.fullmatch(r"\d+", text) or int(text) < least:
            raise argparse.ArgumentTypeError(
                f"must be a whole number of at least {least}; got {text!r}"
            )
        return int(text)

    return number


def _add_files(command: Any, suffixes: Sequence[str]) -> None:
    command.add_argument(
        "--out",
        type=_ending(*suffixes),
        nargs="+",
        metavar="FILE",
        help=f"files to write; the suffix says what: {', '.join(suffixes)}",
    )
    command.add_argument("--overwrite", action="store_true", help="replace files that exist")


def _add_version(commands: Any) -> None:
    version = _command(
        commands,
        "version",
        "versions:version_job",
        "print the versions of the package, of Python and of the libraries",
        ["", "--json"],
    )
    _add_common(version)


def _add_folder(command: Any) -> None:
    command.add_argument(
        "--out",
        type=Path,
        default=argparse.SUPPRESS,
        metavar="DIR",
        help="folder for the files (default: the working folder)",
    )


def _add_common(command: Any) -> None:
    """Options of all commands; before a command they hold for it, too."""
    command.add_argument(
        "--no-progress",
        action="store_true",
        default=argparse.SUPPRESS,
        help="show no progress bar",
    )
    command.add_argument(
        "--quiet",
        action="store_true",
        default=argparse.SUPPRESS,
        help="print nothing but warnings and errors, and with --json the object",
    )
    command.add_argument(
        "--json",
        action="store_true",
        default=argparse.SUPPRESS,
        help="print one JSON object in place of text, for scripts",
    )
    command.add_argument(
        "--debug",
        action="store_true",
        default=argparse.SUPPRESS,
        help="show where in the code an error comes from",
    )
