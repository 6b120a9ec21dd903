"""The commands on any model: what they start from; `explain`, `report`, `regions`, `compare`."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

import rhale_stats as rs
from rhale_stats.answers.sentences import listed
from rhale_stats.arguments.words import one_line
from rhale_stats.cli import files
from rhale_stats.cli.jobs import (
    COLUMNS_LISTED,
    Formula,
    check_features,
    columns_beside,
    groups_of,
    job_of,
    listed_names,
    plain,
)
from rhale_stats.cli.parser import UsageError
from rhale_stats.models.adapters.libraries import columns_known_of
from rhale_stats.models.forms import names_with_spaces
from rhale_stats.models.outputs import Outputs, UnknownOutputError
from rhale_stats.models.parametric import ROW_NUMBER, has_parameters
from rhale_stats.models.table import as_table

# Rows that the model is asked for before the work.
ROWS_TRIED = 5
# Options whose columns a model does not take, unless it names them.
NOT_OF_MODEL = ("outcome", "groups", "weights", "by")


@dataclass(frozen=True)
class ModelInputs:
    """A model, the rows that it predicts, and what else is known of these rows.

    ``X`` has the columns of the model, ``table`` those of the data. ``regressors`` are those of a
    formula, None for a model from a file.
    """

    model: Any
    X: pd.DataFrame
    table: pd.DataFrame
    name: str
    y: pd.Series[Any] | None = None
    groups: pd.Series[Any] | None = None
    weights: pd.Series[Any] | None = None
    regressors: list[str] | None = None


def inputs_of(arguments: argparse.Namespace) -> ModelInputs:
    """The model and the rows of a command."""
    return _of_formula(arguments) if arguments.model is None else _of_file(arguments)


def _of_formula(arguments: argparse.Namespace) -> ModelInputs:
    for name in ("outcome", "columns"):
        if getattr(arguments, name, None) is not None:
            raise UsageError(f"--{name} must be left out with --formula, which names its columns.")
    if getattr(arguments, "keep_missing", False):
        raise UsageError("--keep-missing must come with --model; a formula takes complete rows.")
    job = job_of(arguments)
    weights = _weights(arguments, job.table)
    check_features(arguments.features, job.features, "regressors of the formula")
    y = Formula.parsed(job.formula).outcome_of(job.data)
    of_rows = y, job.groups, weights, job.features
    return ModelInputs(job.fitted(), job.data, job.table, job.formula, *of_rows)


def _of_file(arguments: argparse.Namespace) -> ModelInputs:
    if arguments.family is not None:
        raise UsageError("--family must come with --formula; the model of --model is fitted.")
    kind = format_of(arguments.model, trust=arguments.trust)
    table = files.read_table(arguments.data)
    beside = columns_beside(arguments, table)
    model = load_model(arguments.model, kind)
    names = arguments.columns or columns_of(model, table)
    if names is None:
        used = [getattr(arguments, option, None) for option in NOT_OF_MODEL]
        names = [name for name in table.columns if name not in used]
    absent = [name for name in names if name not in table.columns]
    if absent:
        raise UsageError(
            f"--model {arguments.model} takes columns that {arguments.data} lacks: "
            f"{', '.join(absent)}. It has {listed_names(table)}."
        )
    check_features(arguments.features, names, "columns of the model")
    keep_missing = getattr(arguments, "keep_missing", False)
    needed = beside if keep_missing else list(dict.fromkeys([*names, *beside]))
    table = files.without_missing(table, needed, arguments.data, "Fill them before.")
    X = pd.DataFrame({name: plain(table[name]) for name in names})
    if kind.levels:
        texts = [name for name in names if not pd.api.types.is_numeric_dtype(X[name].dtype)]
        X = X.astype(dict.fromkeys(texts, "category"))
    y = None
    if arguments.outcome is not None:
        y = _as_predicted(plain(table[arguments.outcome]), getattr(model, "classes_", None))
        X.attrs["output_name"] = str(y.name)
    groups, weights = groups_of(arguments, table), _weights(arguments, table)
    _try(model, X, arguments)
    return ModelInputs(model, X, table, str(arguments.model), y, groups, weights)


def columns_of(model: Any, data: pd.DataFrame) -> list[str] | None:
    """Names of the columns that a model was fitted to, as the table writes them; None if unknown.

    lightgbm and catboost number columns that had no names.
    """
    model_columns = columns_known_of(model, data.columns)
    names = None if model_columns is None else list(model_columns.names)
    if names is None and hasattr(model, "feature_names_"):
        names = list(model.feature_names_)
    if names is None and callable(getattr(model, "feature_name", None)):
        names = list(model.feature_name())
        names = list(map(str, names_with_spaces(names, data.columns)))
    if names is None or all(re.fullmatch(r"(Column_)?\d+", name) for name in names):
        return None
    return names


def _weights(arguments: argparse.Namespace, table: pd.DataFrame) -> pd.Series[Any] | None:
    """The weights of the rows, checked, if a column is named."""
    if arguments.weights is None:
        return None
    column = plain(table[arguments.weights])
    if not pd.api.types.is_numeric_dtype(column.dtype) or not (column >= 0).all():
        raise UsageError(
            f"--weights must be a column of numbers from 0 upwards; {arguments.weights} is not."
        )
    return column


def _as_predicted(y: pd.Series[Any], classes: Any) -> pd.Series[Any]:
    """The outcome as the model writes it: numbers, or its classes, which a file has as text."""
    if classes is None or not len(classes):  # those of a CatBoost are empty
        if pd.api.types.is_numeric_dtype(y.dtype):
            return y
        raise UsageError(
            f"--outcome must be a column of numbers for a model that predicts numbers; {y.name} "
            f"holds {', '.join(map(str, y.unique()[:COLUMNS_LISTED]))}."
        )
    of_class = {str(level): level for level in classes}
    if set(of_class) == {"False", "True"}:
        of_class |= {"0": classes[0], "1": classes[1]}
    unknown = [str(value) for value in y.unique() if str(value) not in of_class]
    if not unknown:
        return pd.Series([of_class[str(value)] for value in y], name=y.name)
    if y.isin(list(classes)).all():
        return y
    raise UsageError(
        f"--outcome must be a column of the model's classes, {', '.join(map(str, classes))}; "
        f"{y.name} holds {', '.join(unknown[:COLUMNS_LISTED])}."
    )


def _try(model: Any, X: pd.DataFrame, arguments: argparse.Namespace) -> None:
    """Ask the model for a few rows, before the work."""
    try:
        outputs = Outputs(model, as_table(X.head(ROWS_TRIED)), arguments.output)
        outputs(outputs.table.copied())
    except UnknownOutputError as error:
        raise UsageError(f"--{error}") from error
    except Exception as error:
        raise UsageError(
            f"--model {arguments.model} must predict the rows of {arguments.data}; for the first "
            f"of them: {one_line(error).rstrip('. ')}. --columns gives the columns that it takes, "
            f"in its order; here {', '.join(map(str, X.columns[:COLUMNS_LISTED]))}."
        ) from error
    if len(outputs.labels) > 1:
        raise UsageError(
            f"--output must name one output of the model, which are "
            f"{', '.join(map(str, outputs.labels))}."
        )


# Objectives of catboost whose models answer with probabilities.
OF_CLASSES = ("Logloss", "CrossEntropy", "MultiClass", "MultiClassOneVsAll")


class Format(NamedTuple):
    """Files of one format: their suffixes, the library that loads them, and how it does so.

    ``runs_code`` says that a file may hold any code, which runs as it is loaded. ``levels`` says
    that columns of text are levels of the model and have the type of categories.
    """

    name: str
    suffixes: tuple[str, ...]
    library: str
    load: Callable[[Any, Path], Any]
    runs_code: bool = False
    levels: bool = False


def _onnx(onnxruntime: Any, path: Path) -> Any:
    # Warnings of a graph are for its author.
    onnxruntime.set_default_logger_severity(3)
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def _xgboost(xgboost: Any, path: Path) -> Any:
    return xgboost.Booster(model_file=path)


def _joblib(joblib: Any, path: Path) -> Any:
    return joblib.load(path)


def _lightgbm(lightgbm: Any, path: Path) -> Any:
    # lightgbm ends the process where a tree is cut off.
    text = path.read_bytes()
    head, _, rest = text.partition(b"\n\n")
    sizes = re.search(rb"^tree_sizes=([\d ]*)$", head, re.MULTILINE)
    if not text.startswith(b"tree\n") or sizes is None:
        raise ValueError("it does not begin as a model in text")
    trees = rest.lstrip(b"\n")[: sum(map(int, sizes[1].split()))]
    if trees.count(b"Tree=") != len(sizes[1].split()) or b"\nend of trees" not in text:
        raise ValueError("it is cut off")
    return lightgbm.Booster(model_file=path)


def _catboost(catboost: Any, path: Path) -> Any:
    model = catboost.CatBoost().load_model(str(path))
    if str(model.get_all_params().get("loss_function")) in OF_CLASSES:
        return catboost.CatBoostClassifier().load_model(str(path))
    return model


def _torch(torch: Any, path: Path) -> Any:
    model = torch.load(path, map_location="cpu", weights_only=False)
    if not isinstance(model, torch.nn.Module):
        raise ValueError(
            f"it holds a {type(model).__name__}; save the whole module, as in "
            f"torch.save(model, path), or export it to ONNX"
        )
    return model


FORMATS = (
    Format("ONNX", (".onnx",), "onnxruntime", _onnx),
    Format("xgboost", (".json", ".ubj"), "xgboost", _xgboost, levels=True),
    Format("lightgbm", (".txt", ".lgb", ".lgbm"), "lightgbm", _lightgbm, levels=True),
    Format("catboost", (".cbm",), "catboost", _catboost),
    Format("joblib", (".joblib", ".pkl", ".pickle"), "joblib", _joblib, runs_code=True),
    Format("PyTorch", (".pt", ".pth"), "torch", _torch, runs_code=True),
)


def format_of(path: Path, *, trust: bool) -> Format:
    """The format of a model's file, which may be loaded."""
    suffix = path.suffix.lower()
    kind = next((candidate for candidate in FORMATS if suffix in candidate.suffixes), None)
    if kind is None:
        suffixes = "; ".join(
            f"{', '.join(candidate.suffixes)} ({candidate.name})" for candidate in FORMATS
        )
        raise UsageError(f"--model must be a file whose suffix is known, {suffixes}; got {path}.")
    if kind.runs_code and not trust:
        raise UsageError(
            f"--model {path} must come with --trust: loading a file of {kind.name} runs the code "
            f"in it. Use --trust only for files of your own or of a source that you trust. Files "
            f"of ONNX, xgboost, lightgbm and catboost need none."
        )
    if find_spec(kind.library) is None:
        raise UsageError(
            f"--model {path} needs {kind.library}, which is not installed: pip install "
            f"{kind.library}."
        )
    return kind


def load_model(path: Path, kind: Format) -> Any:
    """The model in a file of this format; ``UsageError`` where it cannot be loaded."""
    try:
        return kind.load(import_module(kind.library), path)
    except Exception as error:
        # xgboost adds where in C++ an error arose.
        message = one_line(error).partition(" Stack trace:")[0]
        raise UsageError(
            f"--model must be a model that {kind.library} can load; {path}: {message.rstrip('. ')}."
        ) from error


def local_of(inputs: ModelInputs, arguments: argparse.Namespace, rows: Any = None) -> xr.Dataset:
    """Local effects of the features asked for, of all rows or of some of them."""
    X, weights = inputs.X, inputs.weights
    if rows is not None:
        X = X[rows].reset_index(drop=True)
        weights = None if weights is None else weights[rows].reset_index(drop=True)
    for name in arguments.features or []:
        if not pd.api.types.is_numeric_dtype(X[name].dtype):
            raise UsageError(
                f"--feature must be a column of numbers; {name} is not. `explain` also shows "
                f"effects of categories."
            )
    features = arguments.features
    if not features and inputs.regressors is not None:  # the continuous ones of a formula
        numbers = X[inputs.regressors].select_dtypes("number")
        features = [name for name in numbers if inputs.X[name].nunique() > 2]
    return rs.local_effects(
        inputs.model,
        X,
        features=features,
        weights=weights,
        output=arguments.output,
        progress=arguments.progress,
    )


def with_errors(
    inputs: ModelInputs, effect: xr.Dataset, local: xr.Dataset, rows: Any = None
) -> xr.Dataset:
    """With errors of the rows, all or some, and of the parameters of a model that has them."""
    groups = inputs.groups
    if has_parameters(inputs.model):
        if rows is not None:
            local = local.assign_coords({ROW_NUMBER: ("obs", np.flatnonzero(rows))})
        return rs.std_error(effect, local, groups=groups, model=inputs.model, X=inputs.X)
    if groups is not None and rows is not None:
        groups = groups[rows].reset_index(drop=True)
    return rs.std_error(effect, local, groups=groups)


# Options that `explain` has by the same name.
OF_EXPLAIN = ("features", "categorical", "matters", "level", "held_out", "budget", "output")
# Attributes of an explanation that are no part of its answer in JSON.
LINES = ("cut", "notes")


def explain_job(arguments: argparse.Namespace) -> dict[str, Any]:
    """Explain a model, print the answer, and write what was asked for."""
    paths = files.files_of(arguments)
    inputs = inputs_of(arguments)
    explanation: Any = rs.explain(
        inputs.model,
        inputs.X,
        inputs.y,
        groups=inputs.groups,
        weights=inputs.weights,
        rng=arguments.seed,
        progress=arguments.progress,
        missing="drop" if arguments.keep_missing else None,
        **{name: getattr(arguments, name) for name in OF_EXPLAIN},
    )
    attrs = explanation.attrs
    answer: dict[str, Any] = {str(key): attrs[key] for key in attrs if key not in LINES}
    answer |= {name: str(attrs.get(name, "")).splitlines() for name in LINES}
    answer |= {"kind": attrs["model"], "model": inputs.name, "features": rs.tidy(explanation)}
    writers = files.writers_of(explanation.contents, answer["features"], answer)
    writers[".html"] = partial(rs.report, explanation)
    return files.delivered(paths, writers, str(explanation), answer)


# Columns of the table of regions that are printed.
SHOWN = ("region", "rule", "n_obs", "estimate", "std_error", "conf_low", "conf_high")


P_LEFT_OUT = (
    "P of splits that were made is not shown: its test takes the fitted model as given, and the "
    "intervals below hold the uncertainty of the parameters. regions(...) in Python has it."
)


def regions_job(arguments: argparse.Namespace) -> dict[str, Any]:
    """Search regions in which an effect is less heterogeneous, and show them."""
    paths = files.files_of(arguments)
    arguments.features = [arguments.feature]
    inputs = inputs_of(arguments)
    conditioning = _conditioning(inputs, arguments)
    local = local_of(inputs, arguments)
    tree = rs.regions(
        local,
        arguments.feature,
        conditioning=conditioning,
        max_depth=arguments.max_depth,
        groups=inputs.groups,
        rng=arguments.seed,
    )
    effect = with_errors(inputs, rs.regional_rhale(local, tree), local)
    notes = []
    if "parameters" in effect.attrs:
        # A permutation takes the model as given, and so says less than the other intervals.
        pvalue = tree["pvalue"]
        tree = tree.assign(pvalue=pvalue.where(pvalue > tree.attrs["level"]))
        if (pvalue <= tree.attrs["level"]).any():
            notes = [P_LEFT_OUT]
    table = rs.glance(effect)
    answer = {
        "model": inputs.name,
        "feature": arguments.feature,
        "n_rows": len(inputs.X),
        "nodes": rs.tidy(tree),
        "regions": table,
        "notes": notes,
    }
    both = xr.DataTree.from_dict({"/tree": tree, "/effect": effect})
    lines = table.filter(SHOWN).to_string(index=False, float_format="{:.4g}".format)
    summary = "\n".join([str(rs.summary(tree)), *notes])
    text = f"{summary}\n\nAverage effects in the regions:\n{lines}"
    return files.delivered(paths, files.writers_of(both, table, answer), text, answer)


def _conditioning(inputs: ModelInputs, arguments: argparse.Namespace) -> pd.DataFrame:
    """Columns to split by: those asked for, or the other columns of the model."""
    names: list[str] | None = arguments.conditioning
    if names is None:
        others = inputs.regressors or inputs.X.columns
        names = [name for name in others if name != arguments.feature]
    if not names:
        raise UsageError(
            f"--conditioning must name columns to split by, because the model has none beside "
            f"{arguments.feature}. {arguments.data} has {listed_names(inputs.table)}."
        )
    return inputs.table[names]


# Options that two files of effects do not take.
OF_DATA = ("model", "formula", "features", "groups", "weights", "output", "levels")
# Levels that a message lists.
LEVELS_LISTED = 20


def compare_job(arguments: argparse.Namespace) -> dict[str, Any]:
    """Compare two effects, and show their difference."""
    paths = files.files_of(arguments)
    a, b, names = (_of_files if arguments.by is None else _of_levels)(arguments)
    difference = rs.compare(a, b, rng=arguments.seed)
    table = rs.tidy(difference)
    answer = {"a": names[0], "b": names[1], "tests": rs.glance(difference), "differences": table}
    text = f"a: {names[0]}\nb: {names[1]}\n\n{rs.summary(difference)}"
    return files.delivered(paths, files.writers_of(difference, table, answer), text, answer)


def _of_files(arguments: argparse.Namespace) -> tuple[xr.Dataset, xr.Dataset, list[str]]:
    """The effects in two files, whose rows are taken as independent."""
    if len(arguments.files) != 2:
        raise UsageError(
            f"compare must be given two files of effects, or one of data with --by COLUMN; got "
            f"{len(arguments.files)} files without --by."
        )
    flags = [name for name in OF_DATA if getattr(arguments, name, None)]
    if flags:
        raise UsageError(
            f"--{flags[0]} must come with --by COLUMN and one file of data; two files hold effects "
            f"that are computed already."
        )
    a, b = map(effect_in, arguments.files)
    return a, b, list(map(str, arguments.files))


def _of_levels(arguments: argparse.Namespace) -> tuple[xr.Dataset, xr.Dataset, list[str]]:
    """The effects of one model in the rows with each of two values of a column."""
    if len(arguments.files) != 1:
        raise UsageError(
            f"compare --by must be given one file of data; got {len(arguments.files)} files."
        )
    (arguments.data,) = arguments.files
    inputs = inputs_of(arguments)
    column = inputs.table[arguments.by].astype(str)
    levels = _levels(arguments, sorted(column.unique()))
    effects = []
    for level in levels:
        rows = np.asarray(column == level)
        local = local_of(inputs, arguments, rows)
        effects.append(with_errors(inputs, rs.rhale(local), local, rows))
    return effects[0], effects[1], [f"{arguments.by} = {level}" for level in levels]


def _levels(arguments: argparse.Namespace, values: list[str]) -> list[str]:
    chosen: list[str] = arguments.levels or values
    wrong = [level for level in chosen if level not in values]
    if len(chosen) == 2 and not wrong and chosen[0] != chosen[1]:
        return chosen
    raise UsageError(
        f"--levels must be two values of {arguments.by}; got "
        f"{', '.join(arguments.levels or ['none'])}. It has "
        f"{listed(values, LEVELS_LISTED)}."
    )


def effect_in(path: Path) -> xr.Dataset:
    """The effects in a file: of `fit`, of `explain`, or of another function."""
    tree = files.read_result(path, "A and B")
    for node in (tree, tree.children.get("effect", tree)):
        effect = node.to_dataset()
        if "curve" in effect.variables:
            return effect
    raise UsageError(
        f"A and B must hold effects, as `fit` and `explain` write them; {path} does not. It has "
        f"{', '.join(map(str, [*tree.children, *tree.data_vars])) or 'nothing'}."
    )


def report_job(arguments: argparse.Namespace) -> dict[str, Any]:
    """Write the report of a saved explanation."""
    path: Path = arguments.tree
    arguments.out = [arguments.out or path.with_suffix(".html")]
    paths = files.files_of(arguments)
    tree = files.read_result(path, "TREE")
    if tree.attrs.get("method") != "explain":
        raise UsageError(
            f"TREE must be an explanation, as `explain --out tree.nc` writes it; {path} is not: "
            f"its method is {tree.attrs.get('method', 'not known')}."
        )
    features = list(map(str, tree["answers"].to_dataset()["feature"].values))
    check_features(arguments.features, features, f"features of {path}")
    options = {"title": arguments.title, "features": arguments.features}
    options |= {"open_features": arguments.open, "print": arguments.print}
    return files.delivered(paths, {".html": partial(rs.report, tree, **options)})
