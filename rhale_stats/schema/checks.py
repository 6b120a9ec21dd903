"""Checks that a Dataset is the whole result that a function needs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import NoReturn

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.schema.dimensions import check_one_part, with_part_facts
from rhale_stats.schema.features import feature_names, is_of_outcome
from rhale_stats.schema.kinds import ENSEMBLE, Kind, kind_of
from rhale_stats.schema.layout import OF_UNEQUAL_WEIGHTS, check_edges
from rhale_stats.schema.variables import in_order

# Advice for replicates passed as an effect: with chosen bins, and with fixed bins.
REPLICATES_FOR = (
    "They have no bins in common. For intervals take quantiles, as in "
    "boot['curve'].quantile([0.025, 0.975], ('chain', 'draw')), or draw plots.forest(boot).",
    "Pass the effect that they were made from, and the replicates beside it: "
    "confint(effect, boot) or effect_sizes(effect, boot).",
)
# Functions that have the same numbers of rows in chunks, which they read one at a time. `bootstrap`
# draws other rows from chunks, and does so only where they are many.
READ_CHUNKS = (
    *("rhale", "ale_from_local", "dale", "std_error", "check_unbiased", "regions", "all_regions"),
    *("regional_rhale", "interaction_matrix"),
)
# Variables that all functions of effects need, and all functions of local effects.
CURVE_PARTS = ("effect", "heterogeneity", "curve")
EFFECT_PARTS = ("n_obs", "average_effect", "local_effect_error")
EFFECT_COORDINATES = (
    *("feature", "feature_kind", "feature_units", "bin_left", "bin_right", "edge_value"),
)
EFFECT_ATTRIBUTES = (
    *("method", "bin_rule", "bin_parameters", "weight_kind", "output_name", "output_units"),
    "n_rows",
)
# Shares add up to 1 up to rounding.
SHARE_ERROR = 1e-6
LOCAL_COORDINATES = ("feature", "feature_kind", "feature_units")
# Rows in chunks of which a verb without sums over chunks takes all into memory, 16 MB a feature; of
# more rows those verbs that read chunks take so many where they need rows themselves. Of many
# features fewer rows are taken: at most so many values, 1 GiB with their local effects.
MAX_ROWS, MAX_VALUES = 1 << 20, 1 << 26


def is_chunked(local: xr.Dataset) -> bool:
    """Whether local effects are in chunks, which are computed when they are needed."""
    names, variables = ("x", "local_effect", "weight"), local.variables
    # xarray's own `chunks` asks for the type of an array in many steps.
    arrays = [variables[name]._data for name in names if name in variables]
    return any(map(hasattr, arrays, repeat("chunks")))


def check_local(local: object, parameter: str = "local", *, in_chunks: bool = False) -> xr.Dataset:
    """The argument itself; raise ``TypeError`` or ``ValueError`` unless it holds local effects.

    Local effects in chunks are refused unless ``in_chunks``: they have more rows than `MAX_ROWS`,
    or `schema.validation` would have taken them into memory.
    """
    maker = "local_effects(model, X)"
    result = _check_kind(local, parameter, ("x", "local_effect"), maker)
    if not in_chunks and is_chunked(result):
        raise ValueError(
            f"{parameter} must be in memory here, or have at most {MAX_ROWS:,} rows and "
            f"{MAX_VALUES:,} values; it is in chunks of more, which {', '.join(READ_CHUNKS)} and "
            f"bootstrap read. Use {parameter}.compute() if it fits into memory, or a sample of "
            f"rows: {parameter}.isel(obs=slice(None, None, 100)).compute()."
        )
    if is_chunked(result):
        # xarray's chunk() makes dask arrays of names and units as well.
        small = [
            name
            for name, variable in result.variables.items()
            if "obs" not in variable.dims and variable.chunks is not None
        ]
        result = result.assign({name: result[name].compute() for name in small})
    _check_parts(result, parameter, maker, ("local_effect_error",), LOCAL_COORDINATES, ())
    for name in ("x", "local_effect"):
        _check_dims(result, name, parameter, ("obs", "feature"))
    if "weight" in result and "weight_kind" not in result.attrs:
        _lacks(parameter, maker, "attribute weight_kind, which says what its weights are")
    return in_order(result)


def check_effect(
    effect: object, parameter: str = "effect", maker: str = "rhale(local)"
) -> xr.Dataset:
    """The argument itself; raise ``TypeError`` or ``ValueError`` unless it holds effects."""
    result = _check_kind(effect, parameter, CURVE_PARTS, maker)
    if ENSEMBLE.holds(result):
        _refuse_kind(ENSEMBLE, parameter, maker)
    if "draw" in result.dims:
        fixed = result.attrs.get("bins") == "fixed"
        raise ValueError(
            f"{parameter} must be the Dataset that {maker} returns; this one holds the replicates "
            f"of bootstrap. {REPLICATES_FOR[fixed]}"
        )
    if "fold" in result.dims:
        raise ValueError(
            f"{parameter} must be the Dataset that {maker} returns; this one holds the estimates "
            f"of folds. Their means and standard errors are in it: curve_mean, curve_se, ..."
        )
    result = _check_curves(result, parameter, maker)
    _check_parts(result, parameter, maker, EFFECT_PARTS, (), EFFECT_ATTRIBUTES)
    _check_shares(result, parameter)
    return result


def _check_shares(effect: xr.Dataset, parameter: str) -> None:
    """Raise ``ValueError`` after arithmetic on a whole result, which changes counts and moments.

    The means of the feature lie within the cells, the average effect is that of the moments, and
    the shares of levels add up to 1. xarray keeps attributes in arithmetic, so that nothing else
    tells ``effect * 2`` from effects.
    """
    variables = effect.variables
    fits = _are_moments_of(effect)
    if "level_share" in variables:
        total = np.nansum(variables["level_share"].values, axis=-1)
        fits &= (total == 0) | (np.abs(total - 1) < SHARE_ERROR)
    n_bins = variables["n_bins"].values
    odd = (n_bins != 0) & ~fits | (n_bins != variables["bin_left"].notnull().sum("bin").values)
    if odd.any():
        position = int(np.flatnonzero(odd)[0])
        raise ValueError(
            f"{parameter} must hold the numbers that rhale(local) returned; those of feature "
            f"{feature_names(effect)[position]!r} do not fit its moments. Arithmetic on a whole "
            f"Dataset, rounding and masking change counts and moments as well: use single "
            f"variables, such as 2 * effect['effect']."
        )


def _are_moments_of(effect: xr.Dataset) -> NDArray[np.bool_]:
    """Whether the moments of every feature are of rows in its cells, and of its average effect."""
    variables = effect.variables
    of_one = variables["edge_value"].dims == ("feature", "edge")
    if "moments" not in variables or is_of_outcome(effect) or not of_one:
        return np.ones(effect.sizes["feature"], dtype=bool)
    names = variables["moment"].values.tolist()
    moments = variables["moments"].transpose("moment", "feature", ...).values[..., :-1]
    weight, x_mean, mean = [
        np.nan_to_num(moments[names.index(name)]) for name in ("weight", "x_mean", "mean")
    ]
    edges = variables["edge_value"].values
    with np.errstate(invalid="ignore"):
        left, right, slack = edges[:, :-1], edges[:, 1:], 1e-9 * np.diff(edges, axis=-1)
        outside = (x_mean < left - slack) | (x_mean > right + slack)
        inside = ~(outside & (weight != 0)).any(axis=-1) & (weight > 0).any(axis=-1)
    average = variables["average_effect"].values
    size = np.abs(mean).max(axis=-1) + np.abs(average)
    with np.errstate(invalid="ignore", divide="ignore"):
        of_moments = np.sum(weight * mean, axis=-1) / np.sum(weight, axis=-1)
        return np.asarray(inside & ~(np.abs(of_moments - average) > 1e-9 * size))


def check_curves(effect: object, parameter: str, maker: str) -> xr.Dataset:
    """Check as `check_effect` effects that are no estimates from rows, such as a true effect."""
    result = _check_kind(effect, parameter, CURVE_PARTS, maker)
    return _check_curves(result, parameter, maker)


def _check_curves(result: xr.Dataset, parameter: str, maker: str) -> xr.Dataset:
    for name, dims in (("effect", ("feature", "bin")), ("curve", ("feature", "edge"))):
        _check_dims(result, name, parameter, dims)
    _check_parts(result, parameter, maker, ("n_bins",), EFFECT_COORDINATES, ("centering",))
    if "moments" not in result and result.attrs.get("method") != "truth":
        _lacks(parameter, maker, "variable moments")
    if not result.sizes["feature"]:
        raise ValueError(f"{parameter} must have at least one feature; got none.")
    result = in_order(result)
    check_edges(result, parameter)
    if "squares" in result and result.variables["squares"].isnull().all():
        # The weights differ in another region, or output, but not in this one.
        result = result.drop_vars(OF_UNEQUAL_WEIGHTS, errors="ignore")
    return result


def _check_parts(
    dataset: xr.Dataset,
    parameter: str,
    maker: str,
    variables: Sequence[str],
    coordinates: Sequence[str],
    attributes: Sequence[str],
) -> None:
    """Raise ``ValueError`` naming what was taken from a result."""
    for kind, names, container in (
        ("variable", variables, dataset.variables),
        ("coordinate", coordinates, dataset.coords),
        ("attribute", attributes, dataset.attrs),
    ):
        absent = [name for name in names if name not in container]
        if absent:
            _lacks(parameter, maker, f"{kind} {', '.join(absent)}")


def _lacks(parameter: str, maker: str, what: str) -> NoReturn:
    raise ValueError(
        f"{parameter} must be the Dataset that {maker} returns, as a whole; this one has no "
        f"{what}. Pass that Dataset, without arithmetic on it: its parts belong together; "
        f"compare(a, b) is the difference of two results."
    )


def _check_dims(result: xr.Dataset, name: str, parameter: str, dims: tuple[str, ...]) -> None:
    present = result.variables[name].dims
    absent = [dim for dim in dims if dim not in present]
    if absent:
        raise ValueError(
            f"{parameter} must have the dimensions {' and '.join(dims)}; {name!r} has "
            f"{', '.join(map(str, present)) or 'none'}. Select features with a list, "
            f".sel(feature=['x0']), and keep the names of dimensions."
        )


def check_dataset(dataset: object, name: str, maker: str) -> xr.Dataset:
    """The argument itself; raise ``TypeError`` unless it is a Dataset."""
    if not isinstance(dataset, xr.Dataset):
        # Of a parameter of a function, and of models whose parameters have a covariance.
        averaged = name.isidentifier() and hasattr(dataset, "cov_params")
        also = ", or averages(model, X)" * averaged
        raise TypeError(
            f"{name} must be the Dataset that {maker} returns; got {type(dataset).__name__}."
            + " Take the Dataset, not one of its variables." * isinstance(dataset, xr.DataArray)
            + " Read it: xarray.open_dataset(path)." * isinstance(dataset, str)
            + f" Of a model: rhale(model, X){also}." * hasattr(dataset, "predict")
        )
    return dataset


def check_variables(dataset: object, name: str, needed: tuple[str, ...], maker: str) -> xr.Dataset:
    """The argument itself; raise unless it is a Dataset with these variables or coordinates."""
    dataset = check_dataset(dataset, name, maker)
    missing = [variable for variable in needed if variable not in dataset]
    if missing:
        kind = kind_of(dataset)
        if kind is not None and kind.maker != maker:
            _refuse_kind(kind, name, maker)
        raise ValueError(
            f"{name} must be the Dataset that {maker} returns; this one has no "
            f"{', '.join(missing)} (it has {', '.join(str(v) for v in dataset.data_vars)})."
        )
    return dataset


def _check_kind(dataset: object, name: str, needed: tuple[str, ...], maker: str) -> xr.Dataset:
    dataset = check_variables(dataset, name, needed, maker)
    check_one_part(dataset, name)
    return with_part_facts(dataset)


def _refuse_kind(kind: Kind, name: str, maker: str) -> NoReturn:
    raise ValueError(
        f"{name} must be the Dataset that {maker} returns; got {kind.name}, which {kind.maker} "
        f"returned. Functions that take it: {', '.join(kind.verbs)}."
    )
