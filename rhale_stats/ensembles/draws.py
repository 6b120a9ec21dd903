"""Effects of several models: draws of a posterior, ensembles, any list of models."""

from __future__ import annotations

import uuid
import weakref
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arguments.checks import check_choice, is_listed
from rhale_stats.arguments.progress import progress_bar
from rhale_stats.arguments.words import shown
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.bins.description import DEFAULT_BINS, describe, has_fact
from rhale_stats.bins.rule import BinRule, Partition, check_rule
from rhale_stats.effects.ale import along_axes_and_levels
from rhale_stats.effects.errors import with_std_error
from rhale_stats.effects.rhale import CENTERINGS, quiet_rhale, warn_of_gaps
from rhale_stats.ensembles.labelled import SPREAD, MemberGrid, common_grid, labelled, on_grid
from rhale_stats.inference.draws import GRID
from rhale_stats.local.ale import ale_local_effects
from rhale_stats.local.local_effects import local_effects
from rhale_stats.local.rows import ALE_BINS
from rhale_stats.models.forms import collected, n_rows_of
from rhale_stats.models.options import ModelOptions
from rhale_stats.models.outputs import ModelError, is_classifier
from rhale_stats.parallel import in_processes, n_processes
from rhale_stats.profiles.pdp import pdp
from rhale_stats.schema.dimensions import OUTPUT
from rhale_stats.schema.features import feature_names
from rhale_stats.schema.padding import concat_features
from rhale_stats.schema.validation import Options, validated

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
    >>> result = rs.over_models(lambda beta, X: X @ beta, X, draws=betas, max_draws=50)
    >>> result.sizes["draw"]
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
    checksum = f"{zlib.crc32(text.encode()):08x}"
    return Members(list(fitted.values()), [1] * len(fitted), 1, MODELS, names, checksum)


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
        # Of what ArviZ holds, its group "posterior" if it has one.
        if isinstance(draws, xr.DataTree):
            draws = (draws["posterior"] if "posterior" in draws.children else draws).to_dataset()
        elif isinstance(getattr(draws, "posterior", None), xr.Dataset):
            draws = draws.posterior
        alone = not isinstance(draws, Mapping)
        by_name = {"": draws} if alone else draws
        arrays = {str(name): _chained(values, by_chain) for name, values in by_name.items()}
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


def _chained(draws: Any, by_chain: bool) -> NDArray[Any]:
    """An array over (chain, draw, ...), by the names of its dimensions where it has them."""
    if isinstance(draws, xr.DataArray):
        if "draw" not in draws.dims:
            raise ValueError(
                f"draws must have the dimension 'draw'; {str(draws.name)!r} has "
                f"{', '.join(map(str, draws.dims)) or 'none'}. Rename it, or pass arrays."
            )
        draws = draws if "chain" in draws.dims else draws.expand_dims("chain")
        return np.asarray(draws.transpose("chain", "draw", ...).values)
    wanted = "(chain, draw, ...)" if by_chain else "(draw, ...)"
    array = np.asarray(draws) if is_listed(draws) else None
    is_numeric = array is not None and array.dtype.kind in "fiub"
    if array is None or not is_numeric or array.ndim < 1 + by_chain:
        came = f"{array.shape}" if array is not None and is_numeric else shown(draws)
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
        parts = list(draws.portions(size))
        portions = [partial(_answers_of_all, predict, *part) for part in parts]
        sizes = [count for _, count in parts]
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


# Names of the models that there are, by their `id`: that of one that is gone may be another's.
_NAMES: dict[int, tuple[weakref.ref[Any], str]] = {}


def _named(model: Any) -> str:
    """What tells a fitted model from others in this process, and is the same in every call."""
    model = model.estimator if isinstance(model, _EnsemblePart) else model
    number, names = id(model), _NAMES
    if number in names and names[number][0]() is model:
        return names[number][1]
    name = f"{type(model).__name__} {uuid.uuid4().hex}"
    with suppress(TypeError):  # some objects cannot be referred to weakly
        names[number] = weakref.ref(model, lambda _: names.pop(number, None)), name
    return name


# --- effects of several models --------------------------------------------------------------------


EFFECTS = ("rhale", "ale", "pdp")
HELD = "chosen on the mean of the local effects of all models, the same for all"
FIXED = "the same for all models"


@validated
def over_models(
    models: Any,
    X: Any,
    features: str | int | Sequence[str | int] | None = None,
    *,
    draws: Any = None,
    method: str = "rhale",
    bins: BinRule | None = None,
    centering: str = "mean",
    n_jobs: int | None = 1,
    drawn: DrawOptions = DrawOptions(),
    options: ModelOptions = ModelOptions(),
    progress: bool = True,
    **fields: Any,
) -> xr.Dataset:
    r"""Effects of several models on the same rows: posterior draws, an ensemble, any models.

    The spread of the effects between the models is how well the models determine the effect. It is
    kept apart from the spread between rows: ``heterogeneity`` stays that of the rows.

    Parameters
    ----------
    models : sequence or mapping of models, ensemble, or callable
        Fitted models, such as `local_effects` takes them, in a list or by name; an ensemble of
        scikit-learn that averages its ``estimators_`` (a forest, bagging, voting); or, with
        ``draws``, a function ``predict(draw, X)`` of one draw of the parameters and the rows.
    X : table, or array_like of shape (n_rows, n_columns)
        Rows at which all models are evaluated.
    draws : array_like, mapping, Dataset or DataTree, optional
        Draws of the parameters. An array is over (draw, ...), and the function gets one entry of
        it, of shape (...). A mapping of names to arrays, an xarray Dataset, or what ArviZ holds
        (its group "posterior"): the function gets a mapping of names to the values of one draw.
    method : {"rhale", "ale", "pdp"}, default "rhale"
        Effect of each model: `local_effects` and `rhale`, `ale`, or `pdp`.
    features : name, number, or sequence of them, optional
        As in `local_effects`, `ale` or `pdp`.
    bins : bin rule, optional
        As in `rhale` or `ale`. The bins are the same for all models. Rules that look at local
        effects choose the edges on the mean of the local effects of all models, which are those of
        the mean model. Not for "pdp".
    centering : {"mean", "start", "integral"}, default "mean"
        Zero of every curve, as in `rhale`.
    n_jobs : int or None, default 1
        Processes in which models are evaluated, as joblib counts them.
    drawn : DrawOptions, optional
        How draws are read and how many are used. Its fields can be given directly, as in
        ``max_draws=500``.
    options : ModelOptions, optional
        Output and scale of the models, and weights of the rows. Its fields can be given directly.
        Of several outputs choose one.
    %(progress)s

    Returns
    -------
    Dataset
        Over (chain, draw, feature, grid): ``effect``, ``heterogeneity`` (not for "pdp") and
        ``curve`` of every model at ``grid_value``, and their standard errors by the rows with the
        model as given, ``effect_se_rows``, ``heterogeneity_se_rows`` and ``curve_se_rows``; over
        (chain, draw, feature): ``average_effect``, ``importance``, ``heterogeneity_index`` and
        ``heterogeneity_output``. The means over the models are the estimates, ``curve_estimate``
        and so on. Models that are not draws are one chain, with their names in ``member``. ArviZ
        reads the result. `std_error` divides the error into the part of the models and that of the
        rows; `confint` and `confband` give credible intervals and bands of draws.

    Raises
    ------
    TypeError
        ``models`` without ``draws`` where a function is given; draws that are no numbers.
    ValueError
        No models; several outputs; ensembles of estimators that are no models by themselves;
        ``bins`` with ``method="pdp"``.
    KeyError, ModelError
        As `local_effects`.

    Warns
    -----
    UserWarning, JumpWarning
        As `local_effects` and `rhale`.

    Notes
    -----
    How local effects are taken (derivatives, or slopes across cells where the output jumps) is
    decided by the first model, and is the same for all. Draws are thinned to ``max_draws`` at equal
    distances in every chain. With a rule that looks at local effects, those of all models are held
    in memory: 8 bytes per row, feature and model.

    Examples
    --------
    A Bayesian regression, with draws of its two coefficients:

    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (300, 2))
    >>> betas = rng.normal([2.0, 1.0], 0.1, (400, 2))
    >>> result = rs.over_models(lambda beta, X: X @ beta, X, draws=betas, max_draws=100)
    >>> result["average_effect"].std(("chain", "draw")).round(1).values
    array([0.1, 0.1])

    Models by name:

    >>> models = {"line": lambda X: X[:, 0], "bend": lambda X: X[:, 0] ** 2}
    >>> rs.over_models(models, X, features=0)["member"].values
    array(['line', 'bend'], dtype='<U4')
    """
    check_choice("method", method, EFFECTS)
    check_choice("centering", centering, CENTERINGS)
    rule = {"rhale": DEFAULT_BINS, "ale": ALE_BINS}.get(method) if bins is None else bins
    if bins is not None:
        if method == "pdp":
            raise ValueError(
                "bins must be None for method='pdp', which has a grid and no bins; take n_grid=, "
                "or method='rhale'."
            )
        check_rule(bins)
    X = collected(X)
    members = members_of(models, draws, drawn, n_rows_of(X))
    request = _DrawRequest(X, method, features, rule, centering, drawn.n_grid, options)
    with progress_bar(sum(members.sizes), "models", "model", progress=progress) as bar:
        values, grid, first = request.effects(members, n_jobs, bar.update)
    return _labelled(values, grid, first, members, request)


class _DrawRequest(NamedTuple):
    """What a user asked of every model."""

    X: Any
    method: str
    features: Any
    rule: BinRule | None
    centering: str
    n_grid: int
    options: ModelOptions

    @property
    def searches(self) -> bool:
        """Whether bins depend on the local effects, so that all are needed before any bin."""
        return self.rule is not None and has_fact(self.rule, "joins_cells")

    def effects(
        self, members: Members, n_jobs: int | None, done: Callable[[int], object]
    ) -> tuple[list[dict[str, FloatArray]], MemberGrid, xr.Dataset]:
        """The effects of all members on one grid, and the effect of the first."""
        first_portion, *others = members.portions
        begun = self._parts(first_portion)
        # Local effects of every feature are taken as those of the first model were.
        how = None
        if self.method == "rhale":
            kinds = map(str, begun[0]["local_effect_method"].values)
            how = dict(zip(feature_names(begun[0]), kinds, strict=True))
        done(members.sizes[0])
        processes = n_processes(n_jobs, most=max(len(others), 1))

        def told(parts: Sequence[object]) -> None:
            done(len(parts))

        parts = partial(self._parts, how=how)
        partitions: dict[str, Partition] | None = None
        if self.searches:
            # The local effects of all members have to be there before any bin.
            portions = in_processes(parts, others, processes, told)
            begun += chain.from_iterable(portions)
            partitions = {}
            # Those of the mean model are means of those of all models.
            mean = np.mean([local["local_effect"].values for local in begun], axis=0)
            mean_local = begun[0]["local_effect"].copy(data=mean)
            self._effect(begun[0].assign(local_effect=mean_local), partitions)
        effect = self._effect(begun[0], partitions)
        grid = common_grid([effect], self.n_grid, "models")

        def values(local: xr.Dataset) -> dict[str, FloatArray]:
            return on_grid(self._effect(local, partitions), grid)

        members_of_grid = [on_grid(effect, grid)]
        if self.searches:
            members_of_grid += in_processes(values, begun[1:], processes)
        else:
            rest = in_processes(
                lambda model: list(map(values, parts(model))), others, processes, told
            )
            members_of_grid += [*map(values, begun[1:]), *chain.from_iterable(rest)]
        return members_of_grid, grid, effect

    def _parts(self, model: Any, how: Mapping[str, str] | None = None) -> list[xr.Dataset]:
        """Local effects, or the profile, of every member of a portion."""
        alike: dict[str, Any] = {"options": self.options, "progress": False}
        if self.method == "pdp":
            result = pdp(
                model,
                self.X,
                features=self.features,
                centering=self.centering,
                n_grid=self.n_grid,
                **alike,
            )
        elif self.method == "ale":
            result = ale_local_effects(
                model, self.X, bins=self.rule, features=self.features, **alike
            )
        elif how is None:
            result = local_effects(model, self.X, features=self.features, **alike)
        else:
            # Those of every feature are taken as those of the first model were.
            groups: dict[str, list[str]] = {}
            for name, kind in how.items():
                groups.setdefault(kind, []).append(name)
            parts = [
                local_effects(model, self.X, features=names, method=kind, **alike)
                for kind, names in groups.items()
            ]
            result = concat_features(parts, list(how))
        return _each_output(result, model)

    def _effect(self, local: xr.Dataset, partitions: dict[str, Partition] | None) -> xr.Dataset:
        """The effect of one member with standard errors, in the bins that are held."""
        if self.method == "pdp":
            return local
        along_axis = partial(
            quiet_rhale, bins=self.rule, centering=self.centering, cache=partitions
        )
        effect = along_axes_and_levels(local, along_axis, self.centering)
        return with_std_error(effect.assign_attrs(method=self.method))


def _each_output(result: xr.Dataset, model: Any) -> list[xr.Dataset]:
    """The members of a portion: outputs of a function of many draws, or one result."""
    if OUTPUT not in result.dims:
        return [result]
    if not isinstance(model, partial) or model.func.__name__ != "_answers_of_all":
        raise ValueError(
            f"output must name one output here; the models have {result.sizes[OUTPUT]}: "
            f"{', '.join(map(str, result[OUTPUT].values[:5]))}. Pass output=."
        )
    labels = [name for name in result.coords if str(name).startswith(OUTPUT)]
    return [
        result.isel({OUTPUT: number}).drop_vars(labels) for number in range(result.sizes[OUTPUT])
    ]


def _labelled(
    values: Sequence[dict[str, FloatArray]],
    grid: MemberGrid,
    first: xr.Dataset,
    members: Members,
    request: _DrawRequest,
) -> xr.Dataset:
    """All members with their means, over (chain, draw, ...)."""
    estimate = {name: np.mean([each[name] for each in values], axis=0) for name in values[0]}
    facts = {
        "method": "over_models",
        "source": members.source,
        "variance": SPREAD,
        "members": members.identity,
        "estimate": "mean over the members",
        "model": "draws of its parameters" if members.source != MODELS else "several models",
        "bins": HELD if request.searches else FIXED,
        "n_resamples": sum(members.sizes),
    }
    if request.rule is not None:
        name, parameters = describe(request.rule)
        facts |= {"bin_rule": name, "bin_parameters": parameters}
        warn_of_gaps(first)
    out = labelled(values, grid, first, estimate, members.chains, facts)
    if members.names:
        out = out.assign_coords(
            member=("draw", np.array(members.names), {"long_name": "name of the model"})
        )
    return out
