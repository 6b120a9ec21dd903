"""Checks of public functions: every argument is checked before anything is computed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial, wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import xarray as xr

from rhale_stats.arguments.checks import (
    at_least,
    check_background,
    check_callable,
    check_column,
    check_derivatives,
    check_feature,
    check_features,
    check_features_and_pairs,
    check_features_or_contrasts,
    check_flag,
    check_labels,
    check_labels_listed,
    check_n_jobs,
    check_name_or_column,
    check_number,
    check_order,
    check_points,
    check_result,
    check_results,
    check_rng,
    check_rows,
    check_share,
    check_shown,
    check_table,
    check_text,
)
from rhale_stats.arguments.documentation import with_shared_texts
from rhale_stats.arguments.peers import other_keyword, typed
from rhale_stats.arguments.survey import check_groups
from rhale_stats.arguments.words import PACKAGE, shown
from rhale_stats.schema.calls import MAKERS, Call, limits, options_of, public
from rhale_stats.schema.checks import MAX_ROWS, MAX_VALUES, READ_CHUNKS, is_chunked
from rhale_stats.schema.features import has_integer_labels
from rhale_stats.schema.kinds import LOCAL, kind_of
from rhale_stats.schema.layout import (
    AS_TEXT,
    coordinates_as_text,
    each_result,
    features_kept,
    with_coordinates,
)
from rhale_stats.schema.padding import as_regions, concatenated
from rhale_stats.schema.parts import has_own_rows, within_axes
from rhale_stats.schema.variables import DIMENSIONS, answer_first, in_order
from rhale_stats.schema.whole import (
    explained,
    one_feature_of,
    refusal,
    remember_parts,
    with_feature,
)

F = TypeVar("F", bound=Callable[..., Any])
# Variables of which each result has one over its features, and bins or rows.
MAIN = ("effect", "curve", "local_effect")
# Functions that take more than features as their features.
FEATURES: dict[str, Callable[[str, Any], None]] = {
    **dict.fromkeys(("ice", "pdp"), check_features_and_pairs),
    "averages": check_features_or_contrasts,
}
# Functions that show results, also those that a user put together along a dimension.
READING = ("glance", "plot", "plots.curves", "show", "summary", "tidy")
# The module whose methods are calls of the user.
ACCESSOR = str(Path(PACKAGE) / "accessor.py")
# Folders whose calls get results with all that follows from them, see `schema.layout`.
INSIDE = [PACKAGE]
# The module that calls a function once a group of rows, or as it is.
BY_GROUPS = str(Path(PACKAGE) / "models" / "groups.py")
# What a parameter may be, in whatever public function it stands. The default of a function is
# accepted besides, such as None. What differs between functions (choices, Datasets, bins, tables)
# they check themselves.
CHECKS: dict[str, Callable[[str, Any], None]] = {
    **dict.fromkeys(("honest_fraction", "level", "sample_size", "significance"), check_share),
    **dict.fromkeys(("delta", "discount", "factor", "min_drop", "min_share"), check_number),
    **dict.fromkeys(
        (
            *("batch_rows", "chains", "jobs", "max_bins", "max_draws", "max_features"),
            *("max_model_rows", "min_obs", "n_bins", "n_columns", "n_draws", "n_repeats"),
            *("n_resamples", "n_thresholds"),
        ),
        at_least(1),
    ),
    **dict.fromkeys(("n_folds", "n_grid"), at_least(2)),
    **dict.fromkeys(
        ("ddof", "degree", "max_depth", "n_permutations", "open_features"), at_least(0)
    ),
    **dict.fromkeys(
        (
            *("by_chain", "contour", "honest", "keep_answers", "keep_local", "normalize"),
            *("interactive", "intervals", "overwrite", "pairwise", "print"),
            *("progress", "rebin", "refine", "studentize", "vectorized"),
        ),
        check_flag,
    ),
    "n_jobs": check_n_jobs,
    "rng": check_rng,
    **dict.fromkeys(("dim", "lang", "method", "what"), check_text),
    "output": check_labels,
    "background": check_background,
    "names": check_labels_listed,
    "order": check_order,
    "x": check_points,
    "X": check_rows,
    **dict.fromkeys(("conditioning", "data"), check_table),
    "jacobian": check_derivatives,
    "feature": check_feature,
    **dict.fromkeys(("categorical", "features"), check_features),
    **dict.fromkeys(("by", "hue"), check_name_or_column),
    **dict.fromkeys(("strata", "target", "weights", "y"), check_column),
    "groups": check_groups,
    **dict.fromkeys(("estimate", "statistic"), check_callable),
    **dict.fromkeys(("paired", "results"), check_results),
    **dict.fromkeys(
        (
            *("a", "b", "boot", "check", "comparison", "effect", "global_effect", "interactions"),
            *("local", "profile", "statistics", "surface", "truth"),
        ),
        check_result,
    ),
    "result": check_shown,
}


@dataclass(frozen=True, eq=False)
class Options:
    """Parameters that belong together and stand in several functions, checked by `CHECKS`.

    A function that has such an object as a default takes its fields by their own names as well.
    """

    def __post_init__(self) -> None:
        check_parameters(self)


class _Keywords(NamedTuple):
    """What a function may be given by name: parameters, and the fields of those with options."""

    function: str
    names: list[str]
    options: dict[str, Options]
    takes_any: bool

    @classmethod
    def from_function(cls, function: Callable[..., Any]) -> _Keywords:
        """The keywords of a function, from its signature."""
        parameters = signature(function).parameters
        names = [name for name in parameters if parameters[name].kind is not Parameter.VAR_KEYWORD]
        defaults = {name: parameters[name].default for name in names}
        options = {name: defaults[name] for name in names if isinstance(defaults[name], Options)}
        # Where there are options their fields are gathered from what else was named.
        takes_any = len(names) < len(parameters) and not options
        return cls(typed(function.__name__), names, options, takes_any)

    def gathered(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Keyword arguments, with fields of options in the object that they belong to."""
        group_of = {field.name: key for key in self.options for field in fields(self.options[key])}
        options: dict[str, dict[str, Any]] = {}
        out: dict[str, Any] = {}
        for name, value in arguments.items():
            if name in group_of:
                options.setdefault(group_of[name], {})[name] = value
            elif self.takes_any or name in self.names:
                out[name] = value
            else:
                self._refuse(name, [*self.names, *group_of])
        for group, values in options.items():
            default = self.options[group]
            if out.get(group, default) is not default:
                raise TypeError(
                    f"{self.function}() got {', '.join(values)} beside {group}=, which holds the "
                    f"same options. Give all in {group}=, or none; dataclasses.replace changes an "
                    f"object."
                )
            out[group] = replace(default, **values)
        return out

    def check_options(self, name: str, value: object) -> None:
        """Raise ``TypeError`` unless options are what they should be."""
        if name in self.options and not isinstance(value, type(self.options[name])):
            kind = type(self.options[name]).__name__
            raise TypeError(f"{name} must be a {kind}, as in {kind}(); got {shown(value)}.")

    def _refuse(self, name: str, names: list[str]) -> None:
        """Raise ``TypeError`` for a keyword argument that the function does not have."""
        # Options of the local effects are taken, too.
        earlier = options_of(public(MAKERS.get(self.function, "local_effects")))
        also = sorted(earlier) if "local" in names else []
        advice = other_keyword(name, [*names, *also], self._elsewhere(name, names))
        raise TypeError(
            f"{self.function}() got an unexpected keyword argument {name!r}. {advice}".rstrip()
        )

    def _elsewhere(self, name: str, names: list[str]) -> str:
        """The step before this one that has an option, in words; empty where there is none."""
        if name == "features" or "local" not in names:
            return ""
        maker = MAKERS.get(self.function, "local_effects")
        if name not in options_of(public(maker)):
            return ""
        return (
            f"It is an option of {maker}: local = {maker}(model, X, {name}=...), then "
            f"{self.function}(local)."
        )


def validated(function: F) -> F:
    """Decorate a function so that its arguments are checked by `CHECKS`.

    Keyword arguments that are fields of its `Options` are gathered into these. Datasets may have
    their dimensions in any order, and are returned with the main variables first. If a Dataset
    is not whole, the error names what is missing or was replaced. Docstrings get the texts that
    they share.
    """
    function.__doc__ = with_shared_texts(function.__doc__)
    parameters = signature(function).parameters
    keywords, call = _Keywords.from_function(function), Call.from_function(function)
    checks = {name: CHECKS[name] for name in keywords.names if name in CHECKS}
    if keywords.function in FEATURES:
        checks["features"] = FEATURES[keywords.function]
    # Pictures take the Dataset of an explanation that has the name of their parameter.
    parts_taken = keywords.function.startswith("plots.")
    reading = keywords.function in READING

    def in_memory(value: xr.Dataset) -> xr.Dataset:
        """Local effects in chunks of few rows, unless the function reads such chunks."""
        if not (is_chunked(value) and LOCAL.holds(value)):
            return value  # any other result, or a table
        if value.sizes.get("obs", 0) > MAX_ROWS or value["x"].size > MAX_VALUES:
            return value
        if keywords.function in READ_CHUNKS and not has_own_rows(value):
            return value
        return value.compute()

    def admitted(name: str, value: Any) -> Any:
        # A group of an explanation, or of another tree, stands for its Dataset.
        if isinstance(value, xr.DataTree) and value.has_data:
            value = value.to_dataset()
        if parts_taken and isinstance(value, xr.DataTree) and name in value.children:
            value = value[name].to_dataset()
        if isinstance(value, xr.Dataset):
            for dim, what in (("feature", "feature"), ("obs", "row")):
                if value.sizes.get(dim) == 0:
                    raise ValueError(f"{name} must have at least one {what}; got none.")
            value = _with_known_dimensions(name, in_order(value), reading=reading)
            return in_memory(value)
        if name == "model" and hasattr(value, "an attribute of no model"):
            return lambda rows: value.predict(rows)  # a proxy that has every attribute
        if name == "y" and np.ndim(value) == 2 and np.shape(value)[1] == 1:
            return value.iloc[:, 0] if hasattr(value, "iloc") else np.asarray(value)[:, 0]
        if reading and name == "effect" and _are_results(value):
            return as_regions({key: admitted(name, result) for key, result in value.items()})
        if type(value) in (list, tuple) and any(isinstance(item, xr.Dataset) for item in value):
            return type(value)(admitted(name, item) for item in value)
        return value

    def check(name: str, value: Any) -> Any:
        value = with_feature(value)
        if name in checks and value is not parameters[name].default:
            checks[name](name, value)
        keywords.check_options(name, value)
        return admitted(name, value)

    @wraps(function)
    def validating(*args: Any, **kwargs: Any) -> Any:
        frame = sys._getframe(1)
        while frame.f_code.co_filename == BY_GROUPS and frame.f_back is not None:
            frame = frame.f_back
        caller = frame.f_code.co_filename
        of_user = caller == ACCESSOR or not caller.startswith(PACKAGE)
        call.take_columns(args, kwargs)
        everywhere = call.taken_out(kwargs)
        for name, value in everywhere.items():
            CHECKS[name](name, value)
        whole = caller != ACCESSOR and caller.startswith(tuple(INSIDE))
        shown = partial(_returned, whole=whole, of_user=of_user)
        if other := call.other(args, kwargs):
            return shown(public(other)(*args, **kwargs))
        if (with_levels := call.with_levels(args, kwargs | everywhere)) is not None:
            return shown(with_levels)
        groups = everywhere.pop("groups", None)
        progress = kwargs.get("progress", everywhere.get("progress"))
        with features_kept():
            if progress is not False and not everywhere:
                return shown(answer(args, kwargs, groups, of_user=of_user))
            with limits(progress, everywhere.get("n_jobs")):
                return shown(answer(args, kwargs, groups, of_user=of_user))

    def answer(args: tuple[Any, ...], kwargs: dict[str, Any], groups: Any, *, of_user: bool) -> Any:
        args, kwargs = call.placed(args, kwargs)
        few = [check(name, value) for name, value in zip(call.positional, args, strict=False)]
        earlier = call.earlier_options(args, kwargs)
        kwargs = keywords.gathered(kwargs if "bins" in parameters else call.with_rule(kwargs))
        named = {name: check(name, value) for name, value in kwargs.items()}
        single = "feature" if "feature" in parameters else "features"
        if single in parameters and single not in {*named, *call.positional[: len(few)]}:
            named |= one_feature_of([*args[:1], *kwargs.values()], single)
        surplus, by_position = args[len(few) :], call.positional[: len(few)]
        arguments = {**dict(zip(by_position, few, strict=False)), **named}
        if any(map(has_integer_labels, arguments.values())):
            arguments = {name: _labels_as_names(name, value) for name, value in arguments.items()}
            few, named = [arguments[n] for n in by_position], {n: arguments[n] for n in named}
        call.check_whole(arguments, n_surplus=len(surplus))
        if twice := [name for name in by_position if name in named]:
            raise TypeError(f"{keywords.function}() got multiple values for argument {twice[0]!r}.")
        if (read := within_axes(call.read(arguments, earlier))) is not arguments:
            few, named, arguments = [], read, read
        if of_user and (changed := refusal(arguments)) is not None:
            raise changed
        try:
            few, named = each_result((few, named), _with_long_coordinates)
            result = function(*few, **named)
        except Exception as error:
            reworded = explained(error, arguments)
            if reworded is error:
                raise
            raise reworded from error
        if groups is not None:
            result = call.with_errors(result, arguments, groups)
        return result

    return cast(F, validating)


def _returned(result: Any, *, whole: bool, of_user: bool) -> Any:
    """A result as users get it, or ``whole``, as another function of the package does.

    That of a user remembers what it was made of, to tell whether something was changed.
    """
    shown = result if whole else each_result(result, _with_short_coordinates)
    if isinstance(result, xr.Dataset):
        order = answer_first(shown.data_vars)
        # Selections and copies align nothing, as `assign` would. Attributes are of this result.
        same = order == list(shown.data_vars)
        shown = (shown if same else shown[[*shown.coords, *order]]).copy() if of_user else shown
    return remember_parts(shown) if of_user else shown


def _with_short_coordinates(result: xr.Dataset) -> xr.Dataset:
    """Replicates in bins with what is known of these as text; any other result as it is."""
    is_long = {"draw", "bin_edge"} <= {*result.dims}
    return coordinates_as_text(result) if is_long else result


def _with_long_coordinates(result: xr.Dataset) -> xr.Dataset:
    return with_coordinates(result) if AS_TEXT in result.attrs else result


def _are_results(value: object) -> bool:
    """Whether these are results of one kind by their names."""
    if not isinstance(value, Mapping) or isinstance(value, xr.Dataset | xr.DataTree) or not value:
        return False
    kinds = {kind_of(result) for result in value.values()}
    return len(kinds) == 1 and None not in kinds


def _with_known_dimensions(parameter: str, value: xr.Dataset, *, reading: bool) -> xr.Dataset:
    """Results along a dimension of the user's own as those of regions, where they are only read.

    Other functions refuse them.
    """
    main = next((value[name].dims for name in MAIN if name in value), ())
    new_dims = [dim for dim in main if dim not in DIMENSIONS]
    if new_dims and {"bin", "edge", "grid", "obs"} & {*main}:
        dim = new_dims[0]
        if reading and len(new_dims) == 1:
            return concatenated(value, str(dim))
        raise ValueError(
            f"{parameter} must be one result; this one has the dimension {dim!r}, along which "
            f"{value.sizes[dim]} were put together. Take one: .isel({dim}=0). summary, tidy "
            f"and plot take them all."
        )
    return value


def _labels_as_names(parameter: str, value: Any) -> Any:
    """Integers that name features of a result as the names that these have in it."""
    if parameter not in ("feature", "features", "reference") or isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return {_labels_as_names("feature", key): value for key, value in value.items()}
    if isinstance(value, int | np.integer):
        return str(value)
    return [str(label) for label in value] if isinstance(value, list | tuple | range) else value


def refuse_fields(options: Options, names: tuple[str, ...], why: str) -> None:
    """Raise ``ValueError`` where fields that a function does not use are not the default."""
    for field in fields(options):
        value = getattr(options, field.name)
        if field.name in names and value is not field.default and value != field.default:
            raise ValueError(f"{field.name} must be left out: {why}; got {shown(value)}.")


def check_parameters(rule: Any) -> None:
    """Check the parameters of a dataclass by `CHECKS`."""
    for parameter in fields(rule):
        value = getattr(rule, parameter.name)
        if parameter.name in CHECKS and value is not parameter.default:
            CHECKS[parameter.name](parameter.name, value)
