"""How calls are read: a model where local effects are expected, results in any order, bins."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from inspect import Parameter, signature
from itertools import permutations
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from rhale_stats.arguments.checks import check_n_jobs
from rhale_stats.arguments.peers import typed
from rhale_stats.arguments.progress import BARS
from rhale_stats.arguments.rows import of_rows
from rhale_stats.arguments.survey import of_some_rows
from rhale_stats.arguments.words import shown, warn
from rhale_stats.parallel import THREADS
from rhale_stats.schema.features import feature_names, feature_position
from rhale_stats.schema.kinds import kind_of
from rhale_stats.schema.padding import concat_features

# Accepted by every function, whether or not it draws, or shows a bar itself.
EVERYWHERE = ("progress", "n_jobs", "rng")
# Where these are positional, results and models are told apart by what they have.
FITS: Mapping[str, Callable[[Any], bool]] = {
    "local": lambda value: _has(value, "local_effect", "ice"),
    "boot": lambda value: _is_result(value) and "draw" in value.dims,
    "tree": lambda value: isinstance(value, xr.DataTree) or _has(value, "parent"),
    "check": lambda value: _has(value, "bin_error", "jump"),
    "effect": lambda value: (
        _is_result(value)
        and not (isinstance(value, xr.Dataset) and not value.variables)
        and not _has(value, "local_effect", "parent")
        and "draw" not in value.dims
    ),
    "model": lambda value: callable(value) or hasattr(value, "predict"),
    # By their types: a lazy table would have to look for its columns.
    "X": lambda value: hasattr(type(value), "shape") or hasattr(type(value), "columns"),
    "feature": lambda value: isinstance(value, str | int | np.integer),
    "ax": lambda value: _are_axes(value),
}
# Rules by name, as users of other packages call them.
RULES = {
    **dict.fromkeys(("quantile", "quantiles"), "QuantileBins"),
    **dict.fromkeys(("equal_width", "fixed", "uniform"), "EqualWidthBins"),
    **dict.fromkeys(("optimal", "dp", "dynamic_programming"), "OptimalBins"),
    "adaptive": "AdaptiveBins",
    "greedy": "GreedyBins",
    "best_equal_width": "BestEqualWidthBins",
}
WITH_NUMBER, NUMBER = ("QuantileBins", "EqualWidthBins"), 20
# Functions of a model that have another one for its local effects, and the functions that make
# local effects, where these are not `local_effects`.
OF_LOCAL = {"ale": "ale_from_local"}
MAKERS = {"ale_from_local": "ale_local_effects"}
# Estimators that take groups of dependent rows, for their standard errors, and what keeps the rows
# that `std_error` needs: local effects, another result, or the result itself.
OF_GROUPS = {
    **dict.fromkeys(("rhale", "dale", "ale_from_local"), "local"),
    "pdp": "ice",
    **dict.fromkeys(("ale2", "h_statistic", "ice", "m_plot", "shap_dependence"), ""),
}


def public(name: str) -> Any:
    """A public function or class by its name, when it is needed: it is made above this module."""
    return attrgetter(name)(sys.modules[__name__.partition(".")[0]])


def options_of(function: Callable[..., Any]) -> set[str]:
    """Names of the keywords that a public function takes, fields of its options among them."""
    parameters = signature(function).parameters.values()
    names = {value.name for value in parameters if value.kind is not Parameter.VAR_KEYWORD}
    options = [value.default for value in parameters if is_dataclass(value.default)]
    return names | {field.name for option in options for field in fields(option)}


def _are_axes(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(_are_axes(element) for element in value)
    axes = np.ravel(value) if np.dtype("O") == getattr(value, "dtype", None) else [value]
    return all(hasattr(ax, "get_xlabel") for ax in axes)


def _is_result(value: Any) -> bool:
    return isinstance(value, xr.Dataset | xr.DataTree)


def _has(value: Any, *names: str) -> bool:
    return _is_result(value) and any(name in value for name in names)


class Call(NamedTuple):
    """What a function may be given by position, and whether it makes its local effects itself."""

    function: str
    positional: list[str]
    required: frozenset[str]
    names: frozenset[str]

    @classmethod
    def from_function(cls, function: Callable[..., Any]) -> Call:
        """The call of a function, from its signature."""
        parameters = signature(function).parameters
        by_place = Parameter.POSITIONAL_OR_KEYWORD
        first = [name for name, parameter in parameters.items() if parameter.kind is by_place]
        required = frozenset(name for name in first if parameters[name].default is Parameter.empty)
        return cls(typed(function.__name__), first, required, frozenset(parameters))

    @property
    def takes_a_model(self) -> bool:
        """Whether a model and a table may stand in the place of local effects."""
        return self.positional[:2] == ["local", "X"]

    def taken_out(self, named: dict[str, Any]) -> dict[str, Any]:
        """What is accepted everywhere and is no parameter of the function, out of its keywords."""
        if "results" in self.names:
            return {}  # these are its own names
        accepted = (*EVERYWHERE, "groups") if self.function in OF_GROUPS else EVERYWHERE
        return {name: named.pop(name) for name in accepted if name in {*named} - self.names}

    def take_columns(self, args: Sequence[Any], named: dict[str, Any]) -> None:
        """Put columns of the table in the place of their names, as weights and groups."""
        X: Any = named.get("X", args[1] if len(args) > 1 and not _is_result(args[0]) else None)
        for name in ("weights", "groups"):
            if isinstance(named.get(name), str) and named[name] in getattr(X, "columns", ()):
                named[name] = X[named[name]]

    def earlier_options(self, args: Any, named: dict[str, Any]) -> dict[str, Any]:
        """Options of the step before, taken out of the keywords: of a model and a table only."""
        has_table = len(args) > 1 or named.get("X") is not None
        if not (self.takes_a_model and has_table) or (args and _is_result(args[0])):
            return {}
        options = options_of(public(MAKERS.get(self.function, "local_effects")))
        return {name: named.pop(name) for name in [*named] if name in options - self.names}

    def other(self, args: Sequence[Any], named: Mapping[str, Any]) -> str:
        """The function for local effects, where these, or groups, were given to one of models."""
        of_local = (args and _has(args[0], "local_effect")) or named.get("groups") is not None
        return OF_LOCAL.get(self.function, "") if of_local else ""

    def with_levels(self, args: Sequence[Any], named: Mapping[str, Any]) -> xr.Dataset | None:
        """Effects of features with an axis, and those between the levels of categories by `ale`.

        None where no categories are named.
        """
        if self.function != "rhale" or named.get("categorical") is None or _is_result(args[:1]):
            return None
        arguments = {**dict(zip(("model", "X", "features"), args, strict=False)), **named}
        levels: Any = arguments.pop("categorical")
        levels = [levels] if FITS["feature"](levels) else list(levels)
        features: Any = arguments.pop("features", arguments.pop("feature", None))
        if features is not None:
            several = [features] if FITS["feature"](features) else list(features)
            features = [feature for feature in several if feature not in levels]
        of_levels = public("ale")
        shared = arguments.keys() & (options_of(of_levels) | {*EVERYWHERE, "groups"})
        options = {name: arguments[name] for name in shared if name not in ("bins", "percentiles")}
        parts = [of_levels(**options, features=levels, categorical=levels)]
        if features is None or features:
            with warnings.catch_warnings():
                # Of the columns named: they are not left out here.
                warnings.filterwarnings("ignore", "Left out: ", UserWarning)
                parts.insert(0, public("rhale")(**arguments, features=features))
        names = [name for part in parts for name in feature_names(part)]
        columns = getattr(arguments["X"], "columns", ()) if features is None else ()
        if left := [repr(str(column)) for column in columns if str(column) not in names]:
            warn(f"Left out: {', '.join(left)}. Name columns in features= or categorical=.")
        return concat_features(parts, names)

    def with_errors(self, result: Any, arguments: Mapping[str, Any], groups: Any) -> Any:
        """A result with standard errors by groups of rows, as `std_error` makes them."""
        rows = OF_GROUPS[self.function]
        local = arguments.get("local") if rows == "local" else None
        if rows and local is None:
            function = public(rows)
            options = options_of(function) & arguments.keys() - {"centering"}
            local = function(**{name: arguments[name] for name in options})
        rows_of = result if local is None else local
        return public("std_error")(result, local, groups=_groups_of(rows_of, groups, arguments))

    def placed(self, args: Any, named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Arguments by position and by name, with results where their kinds belong.

        They are moved where what stands in the places does not fit, and fits in one other way.
        """
        names = self.positional
        for parameter, other in (("features", "feature"), ("feature", "features")):
            # One feature or several: the same under either name.
            if other in named.keys() - self.names and parameter in self.names - named.keys():
                named = {parameter if key == other else key: named[key] for key in named}
        if names[:1] == ["model"] and args and _is_result(args[0]):
            kind = kind_of(args[0])
            raise TypeError(
                f"model must be a model, as in {self.function}(model, X); got "
                f"{shown(args[0]) if kind is None else kind.name}."
            )
        if self.takes_a_model:
            if len(args) > 1 and FITS["model"](args[1]) and not FITS["model"](args[0]):
                args = (args[1], args[0], *args[2:])
            if "model" in named and "model" not in self.names:
                named["local"] = named.pop("model")
            if args and _is_result(args[0]):
                # After local effects there is no table; `dale` has its number of bins there.
                number = len(args) > 1 and isinstance(args[1], int) and "n_bins" in self.names
                after = ["n_bins"] if number else names[2:]
                if len(args) <= 1 + len(after):
                    return args[:1], {**dict(zip(after, args[1:], strict=False)), **named}
            return args, named
        arguments = dict(zip(names, args, strict=False))
        several = 1 < len(args) <= len(names)
        if several and (fitting := self._fitting(arguments, arguments)) < len(args):
            ways = [dict(zip(way, args, strict=True)) for way in permutations(names, len(args))]
            ways = [
                way
                for way in ways
                if self.required <= way.keys() | named.keys() and not way.keys() & named.keys()
            ]
            fits = [self._fitting(way, arguments) for way in ways]
            if max(fits, default=0) > fitting and fits.count(max(fits)) == 1:
                return (), {**ways[fits.index(max(fits))], **named}
        return args, named

    def _fitting(self, way: Mapping[str, Any], arguments: Mapping[str, Any]) -> int:
        """Number of arguments that fit; -1 if one is moved whose kind is not known."""
        typed = FITS.keys() & way.keys()
        if any(arguments.get(name) is not way[name] for name in way.keys() - typed):
            return -1
        fits = [way[name] is None or FITS[name](way[name]) for name in typed]
        return sum(fits) + len(way) - len(typed)

    def check_whole(self, arguments: Mapping[str, Any], n_surplus: int = 0) -> None:
        """Raise ``TypeError`` unless everything is there that must be, and nothing else."""
        if n_surplus:
            n, whole = len(self.positional), ", ".join(self.positional)
            if self.positional[:1] == ["local"] and FITS["model"](arguments.get("local")):
                tree = ", tree = regions(local, feature)" if "tree" in self.names else ""
                raise TypeError(
                    f"{self.function}() takes local effects in the place of a model and X: "
                    f"{self.function}({whole}), with local = local_effects(model, X){tree}."
                )
            raise TypeError(
                f"{self.function}() takes {n} positional arguments but {n + n_surplus} were given. "
                f"Name the others: {self.function}({whole}, ...=...)."
            )
        if self.takes_a_model and arguments.get("X") is None and "local" in arguments:
            local = arguments["local"]
            if not _is_result(local) and hasattr(local, "predict"):
                raise TypeError(f"{self.function}() missing X, as in {self.function}(model, X).")
        needed = [name for name in self.positional if name in self.required]
        if missing := [name for name in needed if name not in arguments]:
            example = "model, X" if self.takes_a_model else ", ".join(needed)
            what = f"{len(missing)} required positional argument{'s' if len(missing) > 1 else ''}"
            raise TypeError(
                f"{self.function}() missing {what}: {' and '.join(map(repr, missing))}, as in "
                f"{self.function}({example})."
            )

    def read(self, arguments: dict[str, Any], earlier: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments with local effects and a rule in the place of what makes them.

        ``earlier`` are options of what makes the local effects. The same object where there is
        nothing to make.
        """
        if self.takes_a_model and not {"X", "features"}.isdisjoint(arguments):
            arguments = self._with_local(arguments, earlier)
        return self.with_rule(arguments)

    def _with_local(self, arguments: dict[str, Any], earlier: Mapping[str, Any]) -> dict[str, Any]:
        local, X, features = [arguments.get(name) for name in ("local", "X", "features")]
        # Rows are split by columns of the table, for which no local effects are needed.
        splits = "conditioning" in self.names
        selects = not splits
        replaced = ("X", "features") if selects else ("X",)
        out = {name: value for name, value in arguments.items() if name not in replaced}
        if X is None:
            if selects and features is not None and isinstance(local, xr.Dataset):
                some: Any = [features] if FITS["feature"](features) else features
                if not len(some):
                    raise ValueError(f"features must name at least one feature; got {features!r}.")
                places = [feature_position(local, feature) for feature in some]
                out["local"] = local.isel(feature=places)
            return out
        if _is_result(local):
            raise TypeError(
                f"X must be left out where local effects are given: {self.function}(local), or "
                f"{self.function}(model, X); got {shown(X)}."
            )
        passed = ["progress", *(["features"] if selects else [])]
        passed += ["bins"] if self.function in MAKERS else []
        chosen = {name: arguments[name] for name in passed if name in arguments}
        maker = public(MAKERS.get(self.function, "local_effects"))
        split_feature = "feature" if "feature" in self.names else "features"
        drops = "missing" in earlier
        if splits:
            chosen["features"] = arguments.get(split_feature)
            # A column may tell rows apart by being missing, in rows where the feature is known.
            earlier = {"missing": "drop", **earlier}
        out["local"] = maker(local, X, **chosen, **earlier)
        if splits:
            if not drops:
                _check_no_missing(out["local"])
            if arguments.get(split_feature) is not None:
                names = [str(name) for name in out["local"]["feature"].values]
                out[split_feature] = names[0] if split_feature == "feature" else names
            out.setdefault("conditioning", X)
        return out

    def with_rule(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments with a rule in the place of a number of bins, or of the name of a rule."""
        bins: Any = arguments.get("bins")
        # Of a surface they may be two rules.
        is_listed = isinstance(bins, list | tuple) or (isinstance(bins, np.ndarray) and bins.ndim)
        are_edges = is_listed and not any(
            hasattr(edge, "choose") and not isinstance(edge, np.generic) for edge in bins
        )
        if are_edges and "bins" in self.names:
            return {**arguments, "bins": public("GivenBins")(bins)}
        is_number = isinstance(bins, int | np.integer) and not isinstance(bins, bool)
        if self.function == "outcome_effects" or not (is_number or isinstance(bins, str)):
            return arguments
        if bins == "auto":
            return {**arguments, "bins": None}
        if is_number and bins < 1:
            raise ValueError(f"bins must be a rule, or a number of bins from 1 on; got {bins}.")
        local = arguments.get("local")
        slopes = self.function in MAKERS or _has(local, "cell_value")
        by_slopes = "local" in self.names or self.function == "over_models"
        equal = by_slopes and not slopes and arguments.get("method", "rhale") == "rhale"
        by_number = "EqualWidthBins" if equal else "QuantileBins"
        name = by_number if is_number else RULES.get(str(bins))
        if name is None:
            raise ValueError(
                f"bins must be a rule such as QuantileBins(20), a number, or one of "
                f"{', '.join(map(repr, ('auto', *RULES)))}; got {bins!r}."
            )
        rule = public(name)
        size = (int(bins) if is_number else NUMBER,) if name in WITH_NUMBER else ()
        return {**arguments, "bins": rule(*size)}


def _groups_of(rows_of: xr.Dataset, groups: Any, arguments: Mapping[str, Any]) -> Any:
    """Groups of the rows of a result, which may not have those of weight 0."""
    weights = arguments.get("weights", getattr(arguments.get("options"), "weights", None))
    n_held = rows_of.sizes.get("obs")
    if weights is None or n_held in (None, len(weights)):
        return groups
    n_rows, labels = len(weights), getattr(arguments["X"], "index", None)
    used = np.asarray(of_rows(weights, labels, n_rows, "weights", "rows of X")) > 0
    if n_held != used.sum():
        return groups
    return of_some_rows(groups, labels, n_rows, "groups", "rows of X", np.flatnonzero(used))


def _check_no_missing(local: xr.Dataset) -> None:
    """Raise ``ValueError`` where rows have no value of a feature, which nobody asked to drop."""
    n_missing = local["n_missing"].values if "n_missing" in local else np.zeros(0)
    for position in np.flatnonzero(n_missing)[:1]:
        raise ValueError(
            f"X of feature {str(local['feature'].values[position])!r} must have no missing values; "
            f"got {int(n_missing[position])} NaN in {local.sizes['obs']} rows. Add missing='drop' "
            f"to leave these rows out of this feature."
        )


@contextmanager
def limits(progress: object, n_jobs: object) -> Iterator[None]:
    """No bars where ``progress`` is False, and at most ``n_jobs`` threads."""
    check_n_jobs("n_jobs", n_jobs)
    bars = BARS.set(BARS.get() and progress is not False)
    threads = THREADS.set(THREADS.get() if n_jobs is None else n_jobs)  # type: ignore[arg-type]
    try:
        yield
    finally:
        THREADS.reset(threads)
        BARS.reset(bars)
