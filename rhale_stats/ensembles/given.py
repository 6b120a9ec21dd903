"""The models of an ensemble, from whatever a user has: a list, an ensemble, draws of parameters."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arguments.checks import is_listed
from rhale_stats.arguments.words import shown
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.inference.draws import GRID
from rhale_stats.models.forms import n_rows_of
from rhale_stats.models.outputs import ModelError, is_classifier
from rhale_stats.schema.validation import Options

DRAWS, MODELS = "draws", "models"
# Draws that are evaluated at once by a function of all of them: numbers that it returns.
MAX_ANSWERS = 1 << 24
# Ensembles of scikit-learn whose prediction is a mean over ``estimators_``.
AVERAGING = ("BaseForest", "BaseBagging", "_BaseVoting")
EXPECTED = (
    "models must be a list or mapping of fitted models, an ensemble of scikit-learn whose "
    "prediction is the mean of its estimators_, or a function predict(draw, X) with draws="
)


@dataclass(frozen=True)
class DrawOptions(Options):
    """How draws of parameters are read, how many are used, and where curves are compared.

    Parameters
    ----------
    max_draws : int, default 200
        Largest number of draws, of all chains together. Of more, draws at equal distances in every
        chain are used.
    by_chain : bool, default False
        Arrays of draws are over (chain, draw, ...), and not over (draw, ...). xarray and ArviZ name
        their dimensions, so that this is for other arrays.
    vectorized : bool, default False
        The function takes many draws at once, as an array (draw, ...), or a mapping of names to
        such arrays, and returns an array (draw, row). It is then called once for many draws.
    n_grid : int, default 101
        Number of points at which curves are compared, over the range of the rows; for "pdp" number
        of points of its grid.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    >>> betas = np.random.default_rng(1).normal([2, 1], 0.1, (1000, 2))
    >>> found = rs.over_models(lambda beta, X: X @ beta, X, draws=betas, max_draws=50)
    >>> found.sizes["draw"]
    50
    """

    max_draws: int = 200
    by_chain: bool = False
    vectorized: bool = False
    n_grid: int = GRID


class Members(NamedTuple):
    """Models, those of the first chain first, in portions that are evaluated together.

    A portion is a model of as many outputs as it has members. ``identity`` tells whether two
    results are of the same members, which can be compared one by one.
    """

    portions: list[Any]
    sizes: list[int]
    chains: int
    source: str
    names: list[str]
    identity: str

    @property
    def n(self) -> int:
        """Number of members."""
        return sum(self.sizes)


def members_of(models: Any, draws: Any, options: DrawOptions, n_rows: int) -> Members:
    """The members, checked; raise ``TypeError`` or ``ValueError`` for what cannot be read."""
    if draws is not None:
        if not callable(models) or hasattr(models, "predict"):
            raise TypeError(
                f"models must be a function predict(draw, X) where draws are given; got "
                f"{shown(models)}. Fitted models need no draws."
            )
        return _of_draws(models, Draws.read(draws, options.by_chain), options, n_rows)
    fitted = _fitted(models)
    names = [str(name) for name in fitted]
    text = ", ".join(f"{name} {_named(model)}" for name, model in fitted.items())
    return Members(list(fitted.values()), [1] * len(fitted), 1, MODELS, names, _checksum(text))


# --- fitted models --------------------------------------------------------------------------------


def _fitted(models: Any) -> dict[Any, Any]:
    """Fitted models by name."""
    if isinstance(models, Mapping) and not isinstance(models, xr.Dataset):
        fitted = dict(models)
    elif hasattr(models, "estimators_"):
        fitted = dict(enumerate(_averaged(models)))
    elif isinstance(models, list | tuple):
        fitted = dict(enumerate(models))
    elif callable(models) or hasattr(models, "predict"):
        raise TypeError(
            f"draws must be given with a function predict(draw, X); got None. One model alone has "
            f"an effect of rhale or ale; several go into a list: [{type(models).__name__}, ...]."
        )
    else:
        raise TypeError(f"{EXPECTED}; got {shown(models)}.")
    if not fitted:
        raise ValueError(f"{EXPECTED}; got none.")
    odd = [model for model in fitted.values() if not (callable(model) or hasattr(model, "predict"))]
    if odd:
        raise TypeError(f"{EXPECTED}; got {shown(odd[0])} among them.")
    return fitted


def _averaged(ensemble: Any) -> list[Any]:
    """Estimators of an ensemble that averages them; others are refused."""
    kinds = {kind.__name__ for kind in type(ensemble).__mro__}
    if kinds.isdisjoint(AVERAGING):
        raise ValueError(
            f"models must be an ensemble whose prediction is the mean of its estimators_ (a "
            f"forest, bagging or voting); those of {type(ensemble).__name__} are no models of the "
            f"output by themselves. Pass a list of fitted models."
        )
    classes = getattr(ensemble, "classes_", None)
    columns = getattr(ensemble, "estimators_features_", None)
    # Estimators of forests and of bagging are fitted to arrays.
    as_array = "_BaseVoting" not in kinds
    return [
        _EnsemblePart(
            estimator,
            None if columns is None else columns[number],
            as_array=as_array,
            classes=classes if is_classifier(estimator) else None,
        )
        for number, estimator in enumerate(ensemble.estimators_)
    ]


class _EnsemblePart:
    """One estimator of an ensemble: its columns, and the classes as they were given."""

    def __init__(
        self, estimator: Any, columns: NDArray[Any] | None, *, as_array: bool, classes: Any
    ) -> None:
        self.estimator, self.columns, self.as_array = estimator, columns, as_array
        if classes is not None:
            self.classes_ = classes
            self.predict_proba = self._predict_proba

    def _of(self, X: Any) -> Any:
        X = X.to_numpy() if self.as_array and isinstance(X, pd.DataFrame) else X
        return X if self.columns is None else np.asarray(X)[:, self.columns]

    def predict(self, X: Any) -> Any:
        """What the estimator answers."""
        return self.estimator.predict(self._of(X))

    def _predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of all classes, those too that the estimator has not seen."""
        out = np.zeros((len(X), len(self.classes_)))
        # An ensemble gives its estimators numbers in place of classes.
        seen = np.asarray(self.estimator.classes_, dtype=np.intp)
        out[:, seen] = self.estimator.predict_proba(self._of(X))
        return out


# --- draws of parameters --------------------------------------------------------------------------


class Draws(NamedTuple):
    """Draws of parameters, (chain, draw, ...): one array, or arrays by name."""

    arrays: dict[str, NDArray[Any]]
    alone: bool
    shape: tuple[int, int]

    @classmethod
    def read(cls, draws: Any, by_chain: bool) -> Draws:
        """Of an array, a mapping, or what ArviZ and xarray hold, checked."""
        draws = _posterior(draws)
        if isinstance(draws, xr.Dataset):
            arrays = {str(name): _by_chain(array) for name, array in draws.data_vars.items()}
        elif isinstance(draws, xr.DataArray):
            return cls._checked({"": _by_chain(draws)}, alone=True)
        elif isinstance(draws, Mapping):
            arrays = {str(name): _chained(values, by_chain) for name, values in draws.items()}
        else:
            return cls._checked({"": _chained(draws, by_chain)}, alone=True)
        return cls._checked(arrays, alone=False)

    @classmethod
    def _checked(cls, arrays: dict[str, NDArray[Any]], *, alone: bool) -> Draws:
        shapes = {array.shape[:2] for array in arrays.values()}
        if len(shapes) != 1 or 0 in next(iter(shapes)):
            came = " and ".join(map(str, sorted(shapes))) or "none"
            raise ValueError(
                f"draws must all have the same chains and draws, at least one; got (chain, draw) "
                f"{came}."
            )
        return cls(arrays, alone, next(iter(shapes)))

    def thinned(self, most: int) -> Draws:
        """At most so many draws, at equal distances in every chain."""
        chains, n = self.shape
        each = min(n, max(most // chains, 1))
        positions = np.unique(np.linspace(0, n - 1, each).round().astype(np.intp))
        arrays = {name: array[:, positions] for name, array in self.arrays.items()}
        return Draws(arrays, self.alone, (chains, len(positions)))

    def portions(self, size: int) -> Iterator[tuple[Any, int]]:
        """So many draws at a time, those of the first chain first, with their number."""
        n = self.shape[0] * self.shape[1]
        flat = {name: array.reshape(n, *array.shape[2:]) for name, array in self.arrays.items()}
        for first in range(0, n, size):
            some = {name: array[first : first + size] for name, array in flat.items()}
            yield (some[""] if self.alone else some), min(size, n - first)

    def each(self) -> Iterator[Any]:
        """One draw at a time: an array, or arrays by name."""
        for some, _ in self.portions(1):
            yield some[0] if self.alone else {name: array[0] for name, array in some.items()}

    @property
    def identity(self) -> str:
        """A checksum of all draws."""
        checksum = 0
        for name in sorted(self.arrays):
            values = np.ascontiguousarray(self.arrays[name])
            checksum = zlib.crc32(values.tobytes(), zlib.crc32(name.encode(), checksum))
        return f"{checksum:08x}"


def _posterior(draws: Any) -> Any:
    """The draws of what ArviZ holds: its group "posterior" if it has one."""
    if isinstance(draws, xr.DataTree):
        return (draws["posterior"] if "posterior" in draws.children else draws).to_dataset()
    if isinstance(getattr(draws, "posterior", None), xr.Dataset):
        return draws.posterior
    return draws


def _by_chain(array: xr.DataArray) -> NDArray[Any]:
    """An array with names of dimensions, over (chain, draw, ...)."""
    if "draw" not in array.dims:
        raise ValueError(
            f"draws must have the dimension 'draw'; {str(array.name)!r} has "
            f"{', '.join(map(str, array.dims)) or 'none'}. Rename it, or pass arrays."
        )
    if "chain" not in array.dims:
        array = array.expand_dims("chain")
    return np.asarray(array.transpose("chain", "draw", ...).values)


def _chained(draws: Any, by_chain: bool) -> NDArray[Any]:
    """An array without names of dimensions, over (chain, draw, ...)."""
    if isinstance(draws, xr.DataArray):
        return _by_chain(draws)
    least = 2 if by_chain else 1
    wanted = "(chain, draw, ...)" if by_chain else "(draw, ...)"
    array = np.asarray(draws) if is_listed(draws) else None
    if array is None or array.dtype.kind not in "fiub" or array.ndim < least:
        came = shown(draws) if array is None or array.dtype.kind not in "fiub" else f"{array.shape}"
        raise TypeError(
            f"draws must be numbers over {wanted}, a mapping of names to such arrays, or draws of "
            f"ArviZ or xarray with the dimension 'draw'; got {came}."
        )
    return array if by_chain else array[None]


def _of_draws(
    predict: Callable[..., Any], draws: Draws, options: DrawOptions, n_rows: int
) -> Members:
    """A model for every draw, or one for many draws where the function takes many."""
    draws = draws.thinned(options.max_draws)
    chains, n = draws.shape
    if options.vectorized:
        size = int(np.clip(MAX_ANSWERS // max(2 * n_rows, 1), 1, chains * n))
        made = [
            (partial(_answers_of_all, predict, some, count), count)
            for some, count in draws.portions(size)
        ]
        portions, sizes = [portion for portion, _ in made], [count for _, count in made]
    else:
        portions = [partial(predict, draw) for draw in draws.each()]
        sizes = [1] * len(portions)
    return Members(portions, sizes, chains, DRAWS, [], draws.identity)


def _answers_of_all(predict: Callable[..., Any], draws: Any, n: int, X: Any) -> FloatArray:
    """What the function answers for many draws, (row, draw)."""
    values = np.asarray(predict(draws, X))
    n_rows = n_rows_of(X)
    if values.shape != (n, n_rows):
        raise ModelError(
            f"models must return an array (draw, row) with vectorized=True, shape ({n}, {n_rows}) "
            f"for {n} draws and {n_rows} rows; got shape {values.shape}."
        )
    return values.T


def _checksum(text: str) -> str:
    return f"{zlib.crc32(text.encode()):08x}"


def _named(model: object) -> str:
    """What tells a fitted model from others in this process, and is the same in every call."""
    return f"{type(model).__name__} {id(model)}"
