"""Files of fitted models, by suffix; those that run code as they are loaded need ``--trust``."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from rhale_stats.arguments.words import one_line
from rhale_stats.cli.interruption import UsageError

# Objectives of catboost whose models answer with probabilities.
OF_CLASSES = ("Logloss", "CrossEntropy", "MultiClass", "MultiClassOneVsAll")


class Format(NamedTuple):
    """Files of one format: their suffixes, the library that loads them, and how.

    ``runs_code`` says that a file may hold any code, which runs as it is loaded. ``levels`` says
    that columns of text are levels of the model and have the type of categories.
    """

    name: str
    suffixes: tuple[str, ...]
    library: str
    load: Callable[[Path], Any]
    runs_code: bool = False
    levels: bool = False


def _onnx(path: Path) -> Any:
    import onnxruntime

    # Warnings of a graph are for its author.
    onnxruntime.set_default_logger_severity(3)
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def _xgboost(path: Path) -> Any:
    import xgboost

    booster = xgboost.Booster()
    booster.load_model(path)
    return booster


def _lightgbm(path: Path) -> Any:
    import lightgbm

    _check_trees(path.read_bytes())
    return lightgbm.Booster(model_file=path)


def _check_trees(text: bytes) -> None:
    """Raise ``ValueError`` unless a file of lightgbm has all its trees.

    lightgbm ends the process where one is cut off.
    """
    head, _, rest = text.partition(b"\n\n")
    sizes = re.search(rb"^tree_sizes=([\d ]*)$", head, re.MULTILINE)
    if not text.startswith(b"tree\n") or sizes is None:
        raise ValueError("it does not begin as a model in text")
    trees = rest.lstrip(b"\n")[: sum(map(int, sizes[1].split()))]
    if trees.count(b"Tree=") != len(sizes[1].split()) or b"\nend of trees" not in text:
        raise ValueError("it is cut off")


def _catboost(path: Path) -> Any:
    import catboost

    model = catboost.CatBoost().load_model(str(path))
    if str(model.get_all_params().get("loss_function")) in OF_CLASSES:
        return catboost.CatBoostClassifier().load_model(str(path))
    return model


def _joblib(path: Path) -> Any:
    import joblib

    return joblib.load(path)


def _torch(path: Path) -> Any:
    import torch

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
    """The format of a model's file, which may be loaded.

    Raises
    ------
    UsageError
        There is no such file, its suffix is not known, its library is missing, or it runs code and
        ``--trust`` was not given.
    """
    if not path.is_file():
        raise UsageError(f"--model must be an existing file; there is no {path}.")
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


def load_model(path: Path, *, trust: bool) -> tuple[Any, Format]:
    """The model in a file, and the format of the file.

    Raises
    ------
    UsageError
        As `format_of`; or the file cannot be loaded.
    """
    kind = format_of(path, trust=trust)
    try:
        return kind.load(path), kind
    except Exception as error:
        # xgboost adds where in C++ an error arose.
        message = one_line(error).partition(" Stack trace:")[0]
        raise UsageError(
            f"--model must be a model that {kind.library} can load; {path}: {message.rstrip('. ')}."
        ) from error
