"""The libraries whose models are recognised by their type, without importing them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import pandas as pd

from rhale_stats.models.adapters import statsmodels
from rhale_stats.models.adapters.adapter import Adapter, ModelColumns
from rhale_stats.models.forms import columns_of_fit
from rhale_stats.schema.validation import validated

HERE = "rhale_stats.models.adapters"


class Library(NamedTuple):
    """Models of one library.

    ``types`` are names of classes in modules of the library; a model is of one of them or inherits
    from it. ``maker`` is the function that makes the adapter, "module:name".
    """

    name: str
    models: str
    types: tuple[str, ...]
    maker: str
    gradient: str

    def knows(self, model: Any) -> bool:
        """Whether the model is of this library."""
        of_library = (self.name, f"{self.name}lib")
        kinds = [k for k in type(model).__mro__ if k.__module__.partition(".")[0] in of_library]
        return not {kind.__name__ for kind in kinds}.isdisjoint(self.types)

    def adapter(self, model: Any) -> Adapter:
        """The model as functions of rows."""
        module, _, name = self.maker.partition(":")
        make: Callable[[Any], Adapter] = getattr(import_module(f"{HERE}.{module}"), name)
        return make(model)


# A model of a new library takes one line here, and a function in a file of its own.
LIBRARIES = (
    Library("torch", "nn.Module", ("Module",), "torch:adapter", "automatic"),
    Library("jax", "functions compiled by jit", ("PjitFunction",), "jax:adapter", "automatic"),
    Library("xgboost", "Booster", ("Booster",), "boosters:xgboost", ""),
    Library("lightgbm", "Booster", ("Booster",), "boosters:lightgbm", ""),
    Library("onnxruntime", "InferenceSession", ("InferenceSession",), "onnx:adapter", ""),
    Library("pygam", "generalized additive models", ("GAM",), "pygam:adapter", ""),
)
# These have predict, and need nothing.
AS_THEY_ARE = (
    ("sklearn", "estimators, pipelines", "linear models, GLMs, multilayer perceptrons"),
    ("statsmodels", "results; offset and exposure are used", "linear models, GLMs, logit models"),
    ("catboost", "all models", ""),
    ("xgboost", "models with the interface of scikit-learn", ""),
    ("lightgbm", "models with the interface of scikit-learn", ""),
)


def adapter_of(model: Any) -> Adapter | None:
    """The adapter of a model; None for functions and for objects with ``predict``."""
    if isinstance(model, Adapter):
        return model
    for library in LIBRARIES:
        if library.knows(model):
            return library.adapter(model)
    return None


def columns_known_of(model: Any, present: Iterable[Any] = ()) -> ModelColumns | None:
    """Columns that a model says it was fitted to or its formula names, as a table has them."""
    adapter = adapter_of(model)
    if adapter is not None:
        return None if adapter.features is None else ModelColumns(list(adapter.features))
    columns = statsmodels.columns(model)
    if columns is not None:
        return columns
    names = columns_of_fit(model, present)
    return None if names is None else ModelColumns(list(map(str, names)))


def jax_adapter(function: Any, rows: Any, answer: Any) -> Adapter | None:
    """The adapter of a plain function that answered rows with an array of JAX, or raised (None).

    The rows are those of pandas or NumPy. None if it is no function of JAX, as far as is seen.
    """
    if "jax" not in sys.modules:
        return None
    made: Adapter | None = import_module(f"{HERE}.jax").adapter_like(function, rows, answer)
    return made


def is_of_jax(answer: Any) -> bool:
    """Whether an answer is an array of JAX."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(answer, jax.Array)


@validated
def adapters() -> pd.DataFrame:
    """The libraries whose models can be passed as ``model``.

    Functions of a table, objects with ``predict``, and `Adapter` objects are taken besides.

    Returns
    -------
    DataFrame
        A line a kind of model: ``library``; ``models``, the types; ``gradient``, of which of them
        exact derivatives are taken, empty where differences are; ``installed``, whether the library
        is there.

    See Also
    --------
    Adapter : A model of another library.

    Examples
    --------
    >>> import rhale_stats as rs
    >>> table = rs.adapters()
    >>> table.loc[table["library"] == "torch", ["models", "gradient"]].values.tolist()
    [['nn.Module', 'automatic']]
    """
    lines = [(library.name, library.models, library.gradient) for library in LIBRARIES]
    lines += AS_THEY_ARE
    return pd.DataFrame(
        [(*line, find_spec(line[0]) is not None) for line in lines],
        columns=["library", "models", "gradient", "installed"],
    )
