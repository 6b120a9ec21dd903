"""Random data, random calls of public functions, and what may come of them.

A pipeline is some data, a model, and a few calls one after the other, each of which may take what
the ones before have made. All choices come from one ``random.Random``: hypothesis gives one that it
can shrink, a seed gives one that runs fast.

What a call may do: return a result that satisfies `BOUNDS`, or raise one of `DOCUMENTED` by a
``raise`` statement of the package. It changes none of its arguments, and all that it warns of are
UserWarnings that point to the line of the call.
"""

from __future__ import annotations

import inspect
import linecache
import re
import tempfile
import traceback
import warnings
from contextlib import suppress
from dataclasses import fields
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import xarray as xr

import rhale_stats as rs
from rhale_stats.regional.regions import UNUSED
from rhale_stats.schema import kinds as kinds_of_results
from rhale_stats.schema.validation import Options
from tests.helpers import public_functions

PACKAGE = str(Path(rs.__file__).parent)
DOCUMENTED = (ValueError, TypeError, KeyError, rs.ModelError, ImportError, OSError)
FUNCTIONS = {
    name: function for name, function in public_functions().items() if name != "simulate.study"
}
RULES = {
    name: getattr(rs, name)
    for name in rs.__all__
    if inspect.isclass(getattr(rs, name))
    and (name.endswith("Bins") or issubclass(getattr(rs, name), Options))
}


def parameters_of(function: Any) -> dict[str, inspect.Parameter]:
    """What a function may be given by name, the fields of its options among them."""
    found = {}
    for name, one in inspect.signature(function).parameters.items():
        if isinstance(one.default, Options):
            found |= inspect.signature(type(one.default)).parameters
        elif one.kind is not one.VAR_KEYWORD:
            found[name] = one
    return found


def options_of(function: Any) -> dict[str, Options]:
    """Options of a function, by the name of the parameter."""
    parameters = inspect.signature(function).parameters.items()
    return {name: one.default for name, one in parameters if isinstance(one.default, Options)}


class FuzzError(AssertionError):
    """A call did what it must not do; the message holds the calls of the pipeline."""


# --------------------------------------------------------------------------------------------------
# Data and models


def numbers(X: Any) -> np.ndarray:
    """A table as numbers, levels by their names, missing values as -1."""
    if isinstance(X, np.ndarray):
        return np.where(np.isnan(X), -1.0, X)
    columns = []
    for position in range(X.shape[1]):
        column = X.iloc[:, position]
        if pd.api.types.is_numeric_dtype(column.dtype) or column.dtype == bool:
            columns.append(column.to_numpy(dtype=float, na_value=np.nan))
        else:
            columns.append(column.astype(object).map({"u": 0.0, "v": 1.0, "w": 3.0}).astype(float))
    return np.nan_to_num(np.column_stack(columns).astype(float), nan=-1.0)


def linear(X: Any) -> np.ndarray:
    return numbers(X) @ np.arange(1.0, X.shape[1] + 1)


def product(X: Any) -> np.ndarray:
    return np.sin(numbers(X)).sum(axis=1) + np.cos(numbers(X)).prod(axis=1)


def step(X: Any) -> np.ndarray:
    return np.where(numbers(X) > 0.3, 1.0, -0.5).sum(axis=1)


def constant(X: Any) -> np.ndarray:
    return np.full(len(X), 2.0)


def single(X: Any) -> np.ndarray:
    return product(X).astype(np.float32)


def two(X: Any) -> np.ndarray:
    return np.column_stack([linear(X), product(X)])


def three(X: Any) -> pd.DataFrame:
    values = np.exp(np.column_stack([step(X), product(X), constant(X)]) / 4)
    return pd.DataFrame(values / values.sum(axis=1, keepdims=True), columns=["red", "blue", "grey"])


def failing(X: Any) -> np.ndarray:
    raise RuntimeError("the model's own error")


def not_finite(X: Any) -> np.ndarray:
    return np.where(numbers(X)[:, 0] > 0, np.nan, 1.0)


MODELS = (linear, product, product, product, step, constant, single, two, three)
BAD_MODELS = (failing, not_finite)
COLUMNS = (
    *("normal", "normal", "uniform", "exponential", "ties", "few", "constant", "missing"),
    *("offset", "category", "text", "boolean", "ordinal", "all_missing", "outlier", "integer"),
)


def column(kind: str, rng: np.random.Generator, n: int) -> Any:
    """Values of one column."""
    texts = rng.choice(np.array(["u", "v", "w"], dtype=object), n)
    normal = rng.normal(size=n)
    return {
        "normal": normal,
        "uniform": rng.uniform(size=n),
        "exponential": rng.exponential(size=n),
        "ties": np.round(normal, 0),
        "few": rng.integers(0, 3, n),
        "integer": rng.integers(0, 1000, n),
        "constant": np.full(n, 1.5),
        "missing": np.where(rng.uniform(size=n) < 0.2, np.nan, normal),
        "all_missing": np.full(n, np.nan),
        "offset": normal + 1e6,
        "outlier": np.where(np.arange(n) == 0, 99999.0, normal),
        "category": pd.Categorical(texts, ["u", "v", "w"]),
        "ordinal": pd.Categorical(texts, ["u", "v", "w"], ordered=True),
        "text": texts,
        "boolean": rng.uniform(size=n) < 0.4,
    }[kind]


class World:
    """The data and the model of one pipeline, what was called, and what came of it, by kind."""

    def __init__(self, random: Any, *, plain: bool = False) -> None:
        self.random, self.plain = random, plain
        self.rng = np.random.default_rng(random.randint(0, 2**20))
        self.n = 40 if plain else random.choice([1, 2, 3, 5, 12, 30, 30, 60, 60, 150])
        n_columns = 3 if plain else random.choice([1, 2, 2, 3, 3, 4])
        if plain:
            self.kinds = ["normal", "uniform", "normal"]
        elif random.random() < 0.4:
            self.kinds = [random.choice(["normal", "uniform", "ties"]) for _ in range(n_columns)]
        else:
            self.kinds = [random.choice(COLUMNS) for _ in range(n_columns)]
        self.names = [f"x{position}" for position in range(n_columns)]
        frame = pd.DataFrame(
            {
                name: column(kind, self.rng, self.n)
                for name, kind in zip(self.names, self.kinds, strict=True)
            }
        )
        as_array = all(
            pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype)
            for dtype in frame.dtypes
        )
        self.X = frame.to_numpy(dtype=float) if as_array and random.random() < 0.5 else frame
        self.model = product if plain else random.choice(MODELS)
        if not plain and random.random() < 0.03:
            self.model = random.choice(BAD_MODELS)
        self.damaged = False
        self.pool: dict[str, list[Any]] = {}
        self.calls = [
            f"n={self.n}, {dict(zip(self.names, self.kinds, strict=True))}, "
            f"{type(self.X).__name__}, model={self.model.__name__}"
        ]

    # ----------------------------------------------------------------------------------------------
    # Choices

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def one_of(self, *options: Any) -> Any:
        return self.random.choice(options)

    def rows(self, low: int = 0, high: int = 3) -> np.ndarray:
        return self.rng.integers(low, high + 1, self.n)

    def feature(self) -> Any:
        position = self.random.randrange(len(self.names))
        return self.one_of(self.names[position], self.names[position], position)

    def features(self) -> Any:
        several = self.random.sample(self.names, self.random.randint(1, len(self.names)))
        return self.one_of(self.feature(), several, several, tuple(several), np.array(several))

    def weights(self) -> Any:
        return self.one_of(
            self.rng.uniform(0.1, 3, self.n),
            self.rows(),
            list(map(float, self.rows(1, 3))),
            pd.Series(self.rng.uniform(0.0, 2, self.n)),
            np.where(np.arange(self.n) == 0, 1.0, 0.0),
        )

    def groups(self) -> Any:
        groups = self.rows(0, max(1, self.n // 4))
        design = rs.SurveyDesign(clusters=groups)
        return self.one_of(groups, groups.astype(str), pd.Series(groups), list(groups), design)

    def bins(self) -> Any:
        return self.one_of(
            rs.EqualWidthBins(self.one_of(1, 2, 5, 20)),
            rs.QuantileBins(self.one_of(1, 2, 5, 20)),
            rs.OptimalBins(max_bins=self.one_of(1, 5, 20), min_obs=self.one_of(None, 1, 2, 5)),
            rs.GreedyBins(max_bins=self.one_of(1, 10), min_obs=self.one_of(1, 2, 5), ddof=0),
            rs.AdaptiveBins(
                max_bins=self.one_of(2, 10), min_obs=2, degree=self.one_of(0, 1), refine=False
            ),
            rs.BestEqualWidthBins(max_bins=self.one_of(1, 10), min_obs=self.one_of(1, 5)),
            rs.GivenBins([-1e7, -1, 0, 0.5, 1e7]),
            rs.GivenBins({name: [-1e7, 0, 1e7] for name in self.names}),
        )

    def frame(self) -> pd.DataFrame:
        return pd.DataFrame({"z": self.rng.normal(size=self.n), "g": self.rows().astype(str)})

    def dataset(self, *kinds: str) -> Any:
        """A result of one of these kinds, made now where there is none; at times another one."""
        kind = kinds[0] if self.plain else self.random.choice(kinds)
        if self.pool and not self.plain and self.chance(0.03):
            kind = self.random.choice(sorted(self.pool))
        if not self.pool.get(kind) or self.chance(0.1):
            maker = self.random.choice(MAKERS[kind])
            self.call(maker)
        if not self.pool.get(kind):
            raise Stop
        return self.twisted(self.random.choice(self.pool[kind]))

    def twisted(self, dataset: xr.Dataset) -> xr.Dataset:
        """The same, or some of it, or in another order: as users select."""
        if self.plain or not isinstance(dataset, xr.Dataset) or not self.chance(0.15):
            return dataset
        options: list[Any] = [lambda: dataset.transpose(), lambda: dataset.copy(deep=True)]
        if "feature" in dataset.dims and dataset.sizes["feature"]:
            options += [
                lambda: dataset.isel(feature=[0]),
                lambda: dataset.isel(feature=slice(None, None, -1)),
                lambda: dataset.isel(feature=0),
                lambda: dataset.isel(feature=[]),
            ]
        if "obs" in dataset.dims and dataset.sizes["obs"]:
            some = self.rng.permutation(dataset.sizes["obs"])
            options += [
                lambda: dataset.isel(obs=some),
                lambda: dataset.isel(obs=np.sort(some[: len(some) // 2])),
                lambda: dataset.isel(obs=[]),
            ]
        for dim in ("output", "region", "node", "chain"):
            if dim in dataset.dims and dataset.sizes[dim]:
                options += [lambda dim=dim: dataset.isel({dim: 0})] * 3
        if self.chance(0.3):
            self.damaged = True
            name = self.random.choice([*dataset.data_vars, *dataset.coords])
            dim = self.random.choice(list(dataset.dims)) if dataset.dims else None
            options = [
                lambda: dataset.drop_vars(name, errors="ignore"),
                lambda: dataset.rename({dim: "other"}) if dim else dataset,
                lambda: dataset.drop_attrs(),
                lambda: xr.Dataset(),
            ]
        at = self.random.randrange(len(options))
        self.calls.append(f"    (twist {at} of {len(options)})")
        return options[at]()

    # ----------------------------------------------------------------------------------------------
    # Calls

    def arguments(self, name: str) -> dict[str, Any]:
        """Legal arguments of a function."""
        out = {}
        for parameter in parameters_of(FUNCTIONS[name]).values():
            strategy = OF_FUNCTION.get((name, parameter.name)) or OF_PARAMETER[parameter.name]
            needed = parameter.default is parameter.empty or parameter.name in ALWAYS
            if needed or (not self.plain and self.chance(OFTEN.get(parameter.name, 0.25))):
                out[parameter.name] = strategy(self)
        for group, default in options_of(FUNCTIONS[name]).items():
            own = [field for field in parameters_of(type(default)) if field in out]
            if not self.plain and self.chance(0.3):
                # In the object; what it refuses by itself is given to the function.
                with suppress(ValueError, TypeError):
                    out[group] = type(default)(**{field: out[field] for field in own})
                    out = {key: value for key, value in out.items() if key not in own}
        return out

    def call(self, name: str, arguments: dict[str, Any] | None = None) -> Any:
        """Call a public function; what it returns goes into the pool, what it refuses is None."""
        arguments = self.arguments(name) if arguments is None else arguments
        self.calls.append(f"{name}({', '.join(f'{k}={brief(v)}' for k, v in arguments.items())})")
        result, error = attempt(FUNCTIONS[name], arguments, self.calls)
        if error is not None:
            if "must be whole, as made" in str(error) and not self.damaged:
                raise FuzzError(
                    "\n".join([f"nothing was damaged: {error}", *self.calls])
                ) from error
            self.calls.append(f"    -> {type(error).__name__}: {error}")
            return None
        kind = KIND.get(name)
        if (
            kind is None
            and isinstance(result, xr.Dataset)
            and kinds_of_results.EFFECT.holds(result)
        ):
            kind = "effect"
        if kind == "same":
            kind = kind_of(arguments.get("effect"))
        if kind and isinstance(result, xr.Dataset | xr.DataTree):
            self.pool.setdefault(kind, []).append(result)
        return result


class Stop(Exception):
    """What a call needs could not be made: the data do not allow it."""


def brief(value: Any) -> str:
    """An argument, in a few characters."""
    if isinstance(value, xr.Dataset):
        return f"<{kind_of(value)}>"
    if isinstance(value, list | tuple) and any(isinstance(one, xr.Dataset) for one in value):
        return "[" + ", ".join(map(brief, value)) + "]"
    if isinstance(value, np.ndarray | pd.DataFrame | pd.Series | xr.DataArray):
        return f"<{type(value).__name__} {value.shape}>"
    text = getattr(value, "__name__", None) or repr(value)
    return text if len(text) < 70 else text[:67] + "..."


def kind_of(value: Any) -> str:
    """The kind of a result by what it holds."""
    if not isinstance(value, xr.Dataset):
        return type(value).__name__
    method = value.attrs.get("method")
    kinds = {"second-order ALE": "surface", "H-statistics": "statistics"}
    kinds |= dict.fromkeys(("pdp", "ice", "m_plot", "shap_dependence"), "profile")
    kinds |= dict.fromkeys(kinds_of_results.ENSEMBLE_METHODS, "ensemble")
    return kinds.get(method, "effect") if isinstance(method, str) else "effect"


def attempt(
    function: Any, arguments: dict[str, Any], calls: list[str]
) -> tuple[Any, Exception | None]:
    """Call, and judge what comes of it: a result, or a documented error."""
    before = {key: copied(value) for key, value in arguments.items()}
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("error")
        warnings.simplefilter("always", UserWarning)
        warnings.filterwarnings("always", "jobs is deprecated", FutureWarning)
        try:
            result, error = function(**arguments), None
        except Exception as raised:
            result, error = None, raised
    if not isinstance(result, np.ndarray):
        plt.close("all")
    problem = None
    if error is not None:
        problem = undocumented(error)
    else:
        problem = out_of_bounds(result)
        for key, value in arguments.items():
            if problem is None and not same(before[key], value):
                problem = f"changed its argument {key}"
    for one in warned:
        if one.filename != __file__:
            problem = f"warning points to {one.filename}:{one.lineno}: {one.message}"
    plt.close("all")
    if problem is not None:
        lines = "\n".join(calls)
        raise FuzzError(f"{problem}\n{lines}") from error
    return result, error


def undocumented(error: Exception) -> str | None:
    """What is wrong with an error, if anything."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    line = linecache.getline(frame.filename, frame.lineno or 0).strip()
    where = f"{Path(frame.filename).name}:{frame.lineno} `{line}`"
    said = f"{type(error).__name__}: {str(error)[:300]}"
    if not isinstance(error, DOCUMENTED):
        return f"{said} at {where} is no documented error"
    if not frame.filename.startswith(PACKAGE) or not line.startswith("raise"):
        own = [f for f in traceback.extract_tb(error.__traceback__) if PACKAGE in f.filename]
        place = f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else "nowhere"
        return f"{said} at {where}, called at {place}, was not raised by the package"
    return None


def copied(value: Any) -> Any:
    if isinstance(value, xr.Dataset | xr.DataTree):
        return value.copy(deep=True)
    if isinstance(value, np.ndarray | pd.DataFrame | pd.Series | list):
        return value.copy()
    return value


def same(before: Any, after: Any) -> bool:
    if isinstance(before, xr.Dataset | xr.DataTree):
        return before.identical(after)
    if isinstance(before, pd.DataFrame | pd.Series):
        return bool(before.equals(after))
    if isinstance(before, np.ndarray) and before.dtype != object:
        return np.array_equal(before, after, equal_nan=before.dtype.kind == "f")
    return True


NOT_NEGATIVE = (
    *("heterogeneity", "n_obs", "n_effective", "weight_share", "curve_std", "curve_std_sum"),
    *("heterogeneity_output", "heterogeneity_index", "importance", "aled", "h2_overall"),
)
SHARES = ("p_value", "p_value_adjusted", "bin_error_pvalue", "jump_pvalue")


def out_of_bounds(result: Any) -> str | None:
    """What is wrong with a result, if anything."""
    if isinstance(result, xr.DataTree):
        found = (out_of_bounds(node.to_dataset()) for node in result.subtree)
        return next((one for one in found if one), None)
    if not isinstance(result, xr.Dataset):
        return None
    for key, variable in result.variables.items():
        name, values = str(key), variable.values
        if values.dtype.kind not in "fi" or name.startswith("wald"):
            continue
        with np.errstate(all="ignore"):
            if (name in NOT_NEGATIVE or name.endswith("_se")) and (values < 0).any():
                return f"{name} is negative: {np.nanmin(values)}"
            if name in SHARES and ((values < 0) | (values > 1)).any():
                return f"{name} is no share: {values}"
            if "ci_bound" in variable.dims:
                low, high = np.moveaxis(values, variable.dims.index("ci_bound"), 0)
                slack = 1e-9 * (np.abs(low) + np.abs(high))
                if (low > high + slack).any():
                    return f"{name} has its bounds crossed"
    return None


# --------------------------------------------------------------------------------------------------
# Strategies: one a parameter, whatever the function, and some of functions of their own.

MAKERS = {
    "local": ("local_effects", "local_effects", "ale_local_effects"),
    "effect": ("rhale", "rhale", "ale", "ale_from_local", "dale", "simulate.dense_truth"),
    "profile": ("pdp", "ice", "m_plot", "shap_dependence"),
    "surface": ("ale2",),
    "statistics": ("h_statistic",),
    "boot": ("bootstrap", "bootstrap", "folds"),
    "ensemble": ("over_models", "over_models", "bootstrap_refit", "cross_effects"),
    "averages": ("averages",),
    "check": ("check_unbiased",),
    "jump": ("jump_check",),
    "tree": ("regions", "all_regions", "regional_ale", "regional_pdp", "regional_shap"),
    "regional": ("regional_rhale",),
    "comparison": ("compare",),
    "methods": ("compare_methods",),
    "test": ("wald_test", "equivalence_test"),
    "sizes": ("effect_sizes", "sizes_by_chance"),
    "interactions": ("interaction_matrix",),
    "explained": ("explain",),
}
KIND = {maker: kind for kind, makers in MAKERS.items() for maker in makers}
KIND |= dict.fromkeys(("std_error", "confint", "confband", "debias"), "same")
EFFECTS = ("effect", "effect", "effect", "profile", "surface", "statistics", "regional", "ensemble")
RESULTS = (*EFFECTS, *MAKERS)
# Given in every call: pictures of progress and random choices of processes are no matter here.
ALWAYS = ("progress", "n_jobs", "n_resamples", "n_permutations", "n_draws", "background", "n_rows")
ALWAYS += ("chains", "missing", "level", "overwrite")
OFTEN = {"bins": 0.6, "rng": 0.8, "ax": 0.1, "axes": 0.1, "scale": 0.1, "groups": 0.2}
ADJUSTMENTS = ("holm", "bonferroni", "sidak", "fdr_bh", "none", "hommel")


def kinds(*names: str) -> Any:
    return lambda world: world.dataset(*names)


def options(*values: Any) -> Any:
    return lambda world: world.random.choice(values)


def fitted(world: World) -> Any:
    def fit(rows: Any) -> xr.Dataset:
        local = rs.local_effects(world.model, rows, progress=False)
        return rs.rhale(local, bins=rs.EqualWidthBins(2), centering="start")

    return fit


def axes_of(world: World) -> Any:
    _figure, axes = plt.subplots(1, world.random.choice([1, 2, 3]))
    return axes


def shapley(world: World) -> Any:
    values = world.rng.normal(size=(world.n, len(world.names)))
    return world.one_of(values, values, values[:, 0])


def statistic(effect: xr.Dataset) -> xr.DataArray:
    return effect[next(iter(effect))] * 2


def points(world: World) -> Any:
    values = world.rng.normal(size=4)
    return world.one_of(
        0.5, values, list(values), (values, values), (0.1, "u"), ["u", "v"], world.X, np.nan, []
    )


def with_parameters(world: World) -> Any:
    """The model of the world with a parameter that was estimated to be 1."""
    model, n = world.model, world.n
    scores = world.one_of(None, world.rng.normal(size=(n, 1)))
    return rs.Parametric(lambda b, X: b[0] * np.asarray(model(X)), [1.0], [[0.01]], scores)


OF_PARAMETER: dict[str, Any] = {
    "model": lambda world: world.model,
    "X": lambda world: world.X,
    "batch_rows": lambda world: world.one_of(1, 7, 10**6),
    "data": lambda world: world.X,
    "jacobian": lambda world: world.one_of(None, world.rng.normal(size=np.shape(world.X))),
    "bins": World.bins,
    "feature": World.feature,
    "features": World.features,
    "categorical": World.features,
    "conditioning": lambda world: world.one_of(
        world.frame(), world.frame()[["z"]], world.rng.normal(size=(world.n, 2))
    ),
    "weights": World.weights,
    "weight_kind": options("precision", "frequency"),
    "groups": World.groups,
    "by": World.feature,
    "uncertainty": options("both", "rows", "parameters"),
    "strata": World.groups,
    "hue": World.groups,
    "col": options(None, "feature", "output"),
    "row": options(None, "output"),
    "reference": options(None, 0.0, "u"),
    "spread": options("none", "band"),
    "style": options("curve", "paper"),
    "target": lambda world: world.rng.normal(size=world.n),
    "y": lambda world: world.rng.normal(size=world.n),
    "shap_values": shapley,
    "background": options(1, 5),
    "max_model_rows": options(1, 10**4),
    "n_pairs": options("auto", None, 1, 2),
    "pairs": options(None, None, [(0, 1)], [(1, 0), (0, 1)]),
    "x": points,
    "grid": lambda world: world.one_of(
        [0.0, 0.5, 1.0], np.linspace(-1, 1, 3), {world.names[0]: [0, 1]}, ["u", "v"]
    ),
    "order": options("as_is", "similarity", ["w", "u", "v"], {"x0": ["w", "v", "u"]}),
    "output": options(0, 1, "red", ["red", "grey"], [0, 1]),
    "scale": options("response", "logit", "decision"),
    "centering": options("mean", "start", "integral"),
    "missing": options(None, "raise", "drop", "bin"),
    "weighting": options("axis", "rows"),
    "max_features": options(1, 24),
    "method": options("normal", "percentile", "basic", "bca", "studentized"),
    "kind": options("plain"),
    "scheme": options("multinomial", "bayesian", "poisson"),
    "loss": options("index", "output"),
    "thresholds": options("quantile", "equal_width", "exact"),
    "test": options(None, "permutation", "honest"),
    "null": options("zero", "constant", "homogeneous"),
    "contrasts": options("sd", "slope", "minmax", 1, (0, 1), [0.5], "pairwise", "levels"),
    "hypothesis": options(
        *("pairwise", "sequential", "b1", ["b1 = b2", "b2"], "b1 / b2 = 1", "maximum", "zero")
    ),
    "margin": options(0.1, (-1, 2)),
    "of": options("curve", "effect"),
    "what": options("average_effect", "heterogeneity_index", "importance", "effect"),
    "adjust": options(*ADJUSTMENTS),
    "grid_kind": options("quantile", "equal_width"),
    "level": options(0.95, 0.9, 0.5),
    "percentiles": options((1, 99), (0, 100), (5, 90.0)),
    "significance": options(0.05, 0.5),
    "delta": options(0.1, 1, 100.0),
    "matters": options(0.05, 0.5),
    "held_out": options(True, False),
    "outcome": options("auto", False),
    "budget": options("1s", 0.5, None),
    "keep_local": options(True, False),
    "path": lambda world: Path(tempfile.mkdtemp(prefix="rhale-stats-fuzz-")) / "report.html",
    "tables": lambda world: Path(tempfile.mkdtemp(prefix="rhale-stats-fuzz-")) / "tables",
    "title": options(None, "<title>"),
    "open_features": options(0, 1, 99),
    "lang": options("en"),
    "overwrite": options(True),
    "honest_fraction": options(0.5, 0.2),
    "min_drop": options(0.0, 0.1, 0.5),
    "min_share": options(0.0, 0.1),
    "min_obs": options(None, 1, 2, 10),
    "max_depth": options(0, 1, 2),
    "n_bins": options(1, 2, 7),
    "n_columns": options(1, 2),
    "n_draws": options(1, 50),
    "n_folds": options(2, 3),
    "n_grid": options(2, 5),
    "n_permutations": options(19, 39),
    "n_repeats": options(1, 2),
    "n_resamples": options(4, 8),
    "n_rows": options("auto", None, 2, 10),
    "n_thresholds": options(1, 5),
    "chains": options(1, 2, 4),
    "jobs": options(None),
    "n_jobs": options(None, 1),
    "rng": lambda world: world.one_of(0, 7, np.random.default_rng(3), np.int64(4), None),
    "names": options(["one", "two"], ("a", "b", "c")),
    "dim": options("replicate", "draw", "feature"),
    "samples": kinds("boot", "effect"),
    "effects": lambda world: [world.dataset("effect")] * 2,
    "statistic": lambda world: statistic,
    "fit": fitted,
    "estimate": lambda world: lambda model, rows: model,
    "models": lambda world: world.one_of([world.model, product], {"one": world.model}),
    "draws": options(None),
    "max_draws": options(1, 7),
    "sample_size": options(0.3, 0.632, 0.9),
    "variance": options("jackknife", "nadeau-bengio"),
    "ax": axes_of,
    "axes": axes_of,
    "paired": lambda world: (world.dataset("local", "profile"), world.dataset("local", "profile")),
    "results": lambda world: [
        world.dataset("effect", "profile") for _ in range(world.random.choice([1, 2, 3]))
    ],
    "local": kinds("local"),
    "effect": kinds(*EFFECTS),
    "boot": kinds("boot"),
    "check": kinds("check"),
    "tree": kinds("tree"),
    "a": kinds(*EFFECTS),
    "b": kinds(*EFFECTS),
    "truth": kinds("effect"),
    "comparison": kinds("comparison"),
    "statistics": kinds("statistics"),
    "interactions": kinds("interactions"),
    "result": kinds(*EFFECTS),
    "profile": kinds("profile"),
    "surface": kinds("surface"),
    "global_effect": kinds("effect"),
    **dict.fromkeys(
        (
            *("by_chain", "contour", "honest", "keep_answers", "normalize", "pairwise", "rebin"),
            *("interactive", "intervals", "print", "studentize", "vectorized", "violins"),
        ),
        options(True, False),
    ),
    "progress": options(False),
}
# Options that are not used must be left out.
DEFAULTS = {field.name: options(field.default) for field in fields(rs.SplitSearch)}
PLAIN_EFFECTS = kinds("effect", "effect", "effect", "regional")
OF_FUNCTION: dict[tuple[str, str], Any] = {
    ("outcome_effects", "fit"): lambda world: lambda X, y: world.model,
    ("outcome_effects", "bins"): options(None, 4, rs.QuantileBins(3)),
    ("over_models", "method"): options("rhale", "ale", "pdp"),
    ("bootstrap_refit", "scheme"): options("bootstrap", "subsampling"),
    ("wald_test", "method"): options("box", "wald"),
    ("ale2", "features"): lambda world: tuple(
        world.random.sample(world.names, min(2, len(world.names)))
    ),
    ("ale2", "centering"): options("ale", "start"),
    ("ale2", "bins"): lambda world: world.one_of(
        rs.QuantileBins(3), rs.EqualWidthBins(2), (rs.QuantileBins(2), rs.EqualWidthBins(3))
    ),
    ("ale2", "order"): options("as_is", ["w", "u", "v"]),
    ("h_statistic", "order"): options("as_is"),
    ("h_statistic", "features"): lambda world: world.random.sample(
        world.names, min(2, len(world.names))
    ),
    ("h_statistic", "kind"): options("pdp", "ale"),
    ("ice", "kind"): options("plain", "centered", "derivative"),
    ("m_plot", "bins"): lambda world: world.one_of(rs.QuantileBins(3), rs.EqualWidthBins(4)),
    ("local_effects", "method"): options(
        "auto", "jacobian", "central_difference", "finite_difference"
    ),
    **{("interaction_matrix", name): DEFAULTS[name] for name in UNUSED},
    **{(f"regional_{name}", "missing"): options(None) for name in ("ale", "pdp", "shap")},
    ("regional_pdp", "min_share"): DEFAULTS["min_share"],
    ("all_regions", "features"): lambda world: world.random.sample(world.names, 1),
    ("assign", "X"): lambda world: world.one_of(world.frame(), world.X),
    ("bootstrap", "local"): kinds("local", "local", "local", "profile", "surface", "statistics"),
    ("bootstrap", "effect"): kinds("effect", "effect", "profile", "surface", "statistics"),
    ("std_error", "local"): kinds("local", "profile"),
    ("std_error", "model"): with_parameters,
    ("averages", "model"): with_parameters,
    ("averages", "comparison"): options("difference", "ratio", "log_ratio"),
    ("hypotheses", "effect"): kinds("effect", "profile"),
    ("pool", "results"): lambda world: [world.dataset("averages", "profile")] * 2,
    ("hypotheses", "of"): options("effect", "curve", "average_effect"),
    ("summary", "effect"): kinds(*RESULTS),
    ("tidy", "effect"): kinds(*RESULTS),
    ("glance", "effect"): kinds(*RESULTS),
    ("plots.summary", "tree"): kinds("explained"),
    ("plots.outcome", "tree"): kinds("explained"),
    ("plots.bias", "check"): kinds("check", "jump"),
    ("plots.compare", "comparison"): kinds("comparison"),
    ("plots.curves", "effects"): lambda world: world.one_of(
        kinds("effect", "profile")(world), {"a": kinds("effect")(world)}
    ),
    ("plots.curves", "by"): World.groups,
    ("plots.curves", "hue"): options(None, "feature", "output", "effect"),
    ("plots.curves", "reference"): options(None, {"x0": 0.0}),
    ("plots.effects", "reference"): options(None, {"x0": 0.0}),
    ("plots.methods", "comparison"): kinds("methods"),
    ("plots.surface", "surface"): kinds("surface", "comparison"),
    ("plots.regions", "effect"): kinds("regional"),
    ("plots.outputs", "effect"): kinds("effect", "profile"),
    ("report", "tree"): kinds("explained"),
    ("to_datatree", "effect"): kinds(*RESULTS),
    ("plots.forest", "effect"): kinds("effect", "sizes", "regional"),
    **{
        (name, "effect"): PLAIN_EFFECTS
        for name in (
            "augment",
            "check_unbiased",
            "debias",
            "jump_check",
            "simulate.mae",
            "plots.bins",
        )
    },
}


def pipeline(random: Any, n_calls: int | None = None) -> World:
    """Some data and a few calls."""
    world = World(random)
    plots = [name for name in FUNCTIONS if name.startswith("plots.")]
    others = [name for name in FUNCTIONS if not name.startswith("plots.")]
    for _ in range(n_calls or random.choice([2, 3, 4])):
        name = random.choice(plots) if random.random() < 0.15 else random.choice(others)
        try:
            world.call(name)
        except Stop:
            continue
    return world


def one_call(name: str, random: Any) -> World:
    """Some data and one call of one function, with what it needs."""
    world = World(random)
    with suppress(Stop):
        world.call(name)
    return world


# --------------------------------------------------------------------------------------------------
# Illegal arguments

# Of every type that a user may give by mistake. Functions make those that would be used up.
ODD: dict[str, Any] = {
    "text": lambda: "x",
    "empty text": lambda: "",
    "bytes": lambda: b"x",
    "fraction": lambda: 1.5,
    "negative": lambda: -1,
    "large": lambda: 99,
    "true": lambda: True,
    "none": lambda: None,
    "nan": lambda: float("nan"),
    "infinite": lambda: float("inf"),
    "complex": lambda: 1j,
    "list": list,
    "list of texts": lambda: ["A"],
    "list of fractions": lambda: [0.5, float("nan")],
    "ragged list": lambda: [[1], [1, 2]],
    "tuple": lambda: (),
    "mapping": dict,
    "mapping of texts": lambda: {"x0": "y"},
    "set": lambda: {1},
    "iterator": lambda: iter([1, 2]),
    "object": object,
    "type": lambda: rs.OptimalBins,
    "function": lambda: len,
    "array of one": lambda: np.array(0.5),
    "array of text": lambda: np.array(["x"]),
    "array": lambda: np.ones((2, 2)),
    "array of complex": lambda: np.ones(40) * 1j,
    "masked array": lambda: np.ma.masked_less(np.arange(40.0), 3),
    "array of objects": lambda: np.array([None, "x"], dtype=object),
    "DataArray": lambda: xr.DataArray(np.ones(3), dims="feature"),
    "Dataset": lambda: plain_world().pool["local"][0],
    "effect": lambda: plain_world().pool["effect"][0],
    "empty Dataset": xr.Dataset,
    "table": lambda: pd.DataFrame({"x0": [1.0, 2.0]}),
    "series of texts": lambda: pd.Series(["a"] * 40),
    "date": lambda: pd.Timestamp("2020-01-01"),
    "missing": lambda: pd.NA,
    "rule": lambda: rs.EqualWidthBins(2),
}
# What a parameter of this check refuses, whatever the function; the default excepted.
NUMBERS_NOT = (
    *("text", "bytes", "complex", "list", "mapping", "set", "object", "type", "function", "array"),
    *("array of one", "DataArray", "Dataset", "empty Dataset", "table", "date", "missing", "rule"),
    *("none", "true"),
)
REFUSED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("delta", "discount", "factor", "honest_fraction", "min_drop", "min_share", "penalty"),
        (*NUMBERS_NOT, "nan", "infinite", "negative"),
    ),
    **dict.fromkeys(
        ("level", "sample_size", "significance"),
        (*NUMBERS_NOT, "nan", "infinite", "negative", "large"),
    ),
    **dict.fromkeys(
        (
            *(
                "chains",
                "jobs",
                "max_bins",
                "max_depth",
                "max_draws",
                "max_features",
                "min_obs",
                "n_bins",
                "n_columns",
            ),
            *("n_draws", "n_folds", "n_grid", "n_permutations", "n_repeats", "n_resamples"),
            *("n_thresholds",),
        ),
        (*NUMBERS_NOT, "nan", "infinite", "negative", "fraction"),
    ),
    "n_jobs": (*(odd for odd in NUMBERS_NOT if odd != "none"), "nan", "infinite", "fraction"),
    **dict.fromkeys(
        (
            *("by_chain", "contour", "honest", "keep_answers", "normalize", "pairwise"),
            *("progress", "rebin", "refine", "studentize", "vectorized"),
        ),
        ("text", "none", "negative", "fraction", "Dataset", "array", "list"),
    ),
    "rng": ("text", "negative", "fraction", "true", "Dataset", "nan", "list of texts", "object"),
    **dict.fromkeys(
        ("feature", "features", "categorical"),
        ("text", "fraction", "Dataset", "large", "complex", "object", "mapping", "list of texts"),
    ),
    **dict.fromkeys(
        ("groups", "strata", "target", "weights", "y"),
        ("text", "fraction", "Dataset", "mapping", "function", "array", "list", "object", "none"),
    ),
    **dict.fromkeys(
        (
            *("adjust", "centering", "grid_kind", "kind", "loss", "method", "missing", "null"),
            *("of", "scale", "scheme", "test", "thresholds", "weight_kind", "weighting", "what"),
            *("dim", "variance"),
        ),
        (
            *("text", "empty text", "bytes", "fraction", "Dataset", "array", "list", "mapping"),
            *("none", "object", "type", "DataArray"),
        ),
    ),
    **dict.fromkeys(
        (
            *("a", "b", "boot", "check", "comparison", "effect", "global_effect", "interactions"),
            *("local", "profile", "statistics", "surface", "tree", "truth"),
        ),
        (
            *("text", "fraction", "array", "table", "mapping", "function", "empty Dataset"),
            *("object", "DataArray", "none", "list"),
        ),
    ),
    **dict.fromkeys(
        ("estimate", "fit", "statistic"), ("text", "fraction", "Dataset", "none", "array")
    ),
    **dict.fromkeys(("X", "data"), ("text", "fraction", "Dataset", "none", "function", "object")),
    **dict.fromkeys(("model", "models"), ("text", "fraction", "Dataset", "array", "object")),
    **dict.fromkeys(
        ("search", "options", "estimator", "resampling", "sampling", "drawn"),
        ("text", "fraction", "Dataset", "none", "type", "mapping", "rule"),
    ),
    "bins": ("text", "fraction", "type", "Dataset", "array", "function", "mapping"),
}


@cache
def plain_world() -> World:
    """Numbers without anything strange, their local effects and effects, a bootstrap, a check."""
    world = World(Random(1), plain=True)
    quiet = {"progress": False}
    local = rs.local_effects(product, world.X, **quiet)
    effect = rs.rhale(local, bins=rs.EqualWidthBins(3))
    some = {"n_resamples": 4, "chains": 2, "rng": 0, **quiet}
    world.pool = {
        "X": [world.X],
        "y": [np.arange(float(len(world.X)))],
        "local": [local],
        "effect": [effect],
        "boot": [rs.bootstrap(local, effect, **some)],
        "rebinned": [rs.bootstrap(local, effect, rebin=True, **some)],
        "profile": [rs.ice(product, world.X, **quiet)],
        "check": [rs.check_unbiased(local, effect, rng=0)],
        "comparison": [rs.compare(effect, effect, rng=0)],
        "outputs": [rs.rhale(rs.local_effects(two, world.X, **quiet))],
        "scored": [rs.rhale(local, bins=rs.BestEqualWidthBins(5))],
        "explained": [rs.explain(product, world.X, product(world.X), rng=0, **quiet)],
        "agreed": [[rs.rhale(local, bins=rs.GivenBins(effect))] * 2],
    }
    return world


@cache
def legal_arguments(name: str) -> dict[str, Any]:
    """Arguments with which a function returns."""
    if name in LEGAL:
        pool = {kind: results[0] for kind, results in plain_world().pool.items()}
        return {
            key: [pool[each] for each in kind] if isinstance(kind, list) else pool.get(kind, kind)
            for key, kind in LEGAL[name].items()
        }
    for seed in range(50):
        world = World(Random(seed), plain=True)
        with suppress(Stop):
            arguments = world.arguments(name)
            _, error = attempt(FUNCTIONS[name], arguments, [name])
            if error is None:
                return arguments
    raise FuzzError(f"no legal arguments of {name} were found; give some in LEGAL")


# Arguments of functions that chance seldom makes; results by their names in `plain_world`.
LEGAL: dict[str, dict[str, Any]] = {
    "averages": {"model": rs.Parametric(lambda b, X: b * product(X), [1.0], [[0.1]]), "X": "X"},
    "bootstrap": {
        "local": "local",
        "effect": "effect",
        "n_resamples": 4,
        "chains": 2,
        "progress": False,
    },
    "check_unbiased": {"local": "local", "effect": "effect"},
    "simulate.dense_truth": {"model": product, "jacobian": None, "X": "X", "n_bins": 3},
    "folds": {"local": "local", "n_folds": 2, "progress": False},
    "compare": {"a": "effect", "b": "effect"},
    "hypotheses": {"effect": "effect", "feature": "x0"},
    "pool": {"results": ["profile", "profile"]},
    "plots.compare": {"comparison": "comparison", "feature": "x0"},
    "simulate.mcse": {"samples": "boot", "dim": "draw"},
    "merge": {"effects": "agreed"},
    "outcome_effects": {
        "fit": lambda X, y: product,
        "X": "X",
        "y": "y",
        "progress": False,
    },
    "plots.edges": {"boot": "rebinned", "feature": "x0"},
    "plots.outcome": {"tree": "explained"},
    "plots.curves": {"effects": "effect"},
    "plots.scores": {"effect": "scored", "feature": "x0"},
    "plots.outputs": {"effect": "outputs", "feature": "x0"},
    "regions": {"local": "local", "feature": "x0", "n_permutations": 19},
    "predict": {"effect": "effect", "x": 0.5, "feature": "x0"},
    "to_datatree": {"local": "local", "effect": "effect"},
    "vcov": {"effect": "effect", "feature": "x0"},
    "plots.profile": {"profile": "profile", "feature": "x0"},
    "debias": {"effect": "effect", "check": "check"},
    "plots.bias": {"check": "check", "feature": "x0"},
}


def illegal_cases(name: str) -> list[tuple[str, str]]:
    """Parameters of a function, or of a rule for bins, with the names of odd values."""
    owner = FUNCTIONS.get(name) or RULES[name]
    return [(parameter, odd) for parameter in _spellings(owner) for odd in ODD]


def _spellings(owner: Any) -> dict[str, Any]:
    """Parameters, fields of options and options by name, with their defaults."""
    named = {name: one.default for name, one in parameters_of(owner).items()}
    return named | options_of(owner)


def one_illegal(name: str, parameter: str, odd: str) -> None:
    """Call with one odd argument: refused with the parameter's name, or legal after all."""
    owner = FUNCTIONS.get(name) or RULES[name]
    legal = legal_arguments(name) if name in FUNCTIONS else RULE_ARGUMENTS.get(name, {})
    value = ODD[odd]()
    call = f"{name}({parameter}={brief(value)})"
    _, error = attempt(owner, {**legal, parameter: value}, [call])
    default = _spellings(owner)[parameter]
    if error is None:
        must = odd in REFUSED.get(parameter, ()) and (name, parameter, odd) not in ACCEPTED
        if must and value is not default:
            raise FuzzError(f"{call} was not refused")
    elif parameter not in OWN_ERRORS and not re.search(
        OTHER_NAMES.get(parameter, rf"\b{parameter.rstrip('s')}"), str(error)
    ):
        raise FuzzError(f"{call}: no word of {parameter!r} in {error}") from error


RULE_ARGUMENTS = {
    "EqualWidthBins": {"n_bins": 3},
    "QuantileBins": {"n_bins": 3},
    "GivenBins": {"edges": [0.0, 1.0]},
}
# The error may be that of a function of the user.
OWN_ERRORS = ("estimate", "fit", "model", "models", "statistic")
# What names one of several, or decides what else is legal.
OTHER_NAMES = {
    "bins": r"\bbins|edges",  # edges in the place of a rule
    "features": "feature|contrasts",  # a mapping has contrasts
    "X": "X|feature",
    "data": "data|feature",
    "categorical": "categorical|feature",
}
# Legal there.
ACCEPTED: set[tuple[str, str, str]] = {
    # Only encoders of categories look at it.
    *((name, "target", odd) for name in ("ale", "ale_local_effects") for odd in ("array", "list")),
    # Whether they fit is known with the rows.
    *(("ModelOptions", "weights", odd) for odd in ("array", "list")),
    # No test, no contrasts, and a class that can be called as a function.
    *((name, "test", "none") for name in ("SplitSearch", "regions", "all_regions")),
    *((f"regional_{name}", "test", "none") for name in ("ale", "pdp", "shap")),
    ("averages", "features", "mapping"),
    ("ModelOptions", "scale", "type"),
}
