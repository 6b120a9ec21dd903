"""Results of several outputs or regions, part by part."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import wraps
from typing import Any, NamedTuple, ParamSpec, TypeVar, cast

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arguments.rows import of_rows
from rhale_stats.arguments.survey import PartOfDesign, SurveyDesign
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.local_effects import Halves, halves, in_the_middle, sides
from rhale_stats.arrays.moments import IntArray, need_squares
from rhale_stats.arrays.resample import honest_split
from rhale_stats.schema.dimensions import AT_MEAN, HALF_OF, LEFT, PARTS
from rhale_stats.schema.features import feature_names, feature_position
from rhale_stats.schema.identity import row_labels
from rhale_stats.schema.padding import by_feature, together
from rhale_stats.schema.variables import variable

# Arguments that say something of every row.
ROW_ARGUMENTS = ("groups", "strata")
P = ParamSpec("P")
T = TypeVar("T")


def over_outputs(function: Callable[P, T]) -> Callable[P, T]:
    """Let a function of local effects or effects take several outputs or regions.

    Datasets with a dimension ``output`` or ``region`` are given to it one at a time, everything
    else as it is: rows of local effects are found by ``region_of_row``. What comes back is put
    together.
    """

    @wraps(function)
    def over_parts(*args: P.args, **kwargs: P.kwargs) -> T:
        arguments: list[Any] = [*args, *kwargs.values()]
        for dim in PARTS:
            divided = [x for x in arguments if isinstance(x, xr.Dataset) and dim in x.dims]
            if divided:
                call: Callable[..., Any] = over_parts
                results = [
                    call(
                        *[_select_part(value, dim, number) for value in some],
                        **{name: _select_part(value, dim, number) for name, value in named.items()},
                    )
                    for number, (some, named) in enumerate(
                        _with_same_draws(args, kwargs, _size(divided, dim))
                    )
                ]
                out: T = together(results, divided[0], dim)
                return out
        return function(*args, **kwargs)

    return over_parts


def _with_same_draws(
    args: tuple[Any, ...], kwargs: dict[str, Any], n: int
) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Arguments of so many calls that draw the same random numbers, by a seed or by a Generator.

    The first call has the Generator that was given, which moves on; the others have copies.
    """

    def copied(value: Any) -> Any:
        return deepcopy(value) if isinstance(value, np.random.Generator) else value

    copies = [
        (tuple(map(copied, args)), {name: copied(value) for name, value in kwargs.items()})
        for _ in range(n - 1)
    ]
    return [(args, kwargs), *copies]


def _size(datasets: Sequence[xr.Dataset], dim: str) -> int:
    sizes = [dataset.sizes[dim] for dataset in datasets]
    if len(set(sizes)) > 1:
        raise ValueError(
            f"All arguments must be of the same {dim}s; got {' and '.join(map(str, sizes))} of "
            f"them."
        )
    return sizes[0]


def _select_part(value: Any, dim: str, number: int) -> Any:
    """One part of a Dataset that has them; any other value as it is."""
    if isinstance(value, xr.Dataset) and dim in value.dims:
        return value.isel({dim: number})
    return value


# --- features that have rows of their own ---------------------------------------------------------


def over_row_sets(function: Callable[P, T]) -> Callable[P, T]:
    """Let a function of local effects give every feature the rows that have a value of it.

    It is called once for all features of the same rows, and must not look across features. Of its
    arguments Datasets and those named in ``ROW_ARGUMENTS`` have rows.
    """
    signature = inspect.signature(function)

    @wraps(function)
    def over_rows(*args: P.args, **kwargs: P.kwargs) -> T:
        arguments: list[Any] = [*args, *kwargs.values()]
        local = next((value for value in arguments if has_own_rows(value)), None)
        if local is None:
            return function(*args, **kwargs)
        call: Callable[..., Any] = function
        named = signature.bind(*args, **kwargs).arguments
        _check_row_counts(named, local.sizes["obs"])
        for name in ROW_ARGUMENTS:
            if named.get(name) is not None and not isinstance(named[name], SurveyDesign):
                rows = of_rows(named[name], row_labels(local), local.sizes["obs"], name)
                named[name] = xr.DataArray(np.asarray(rows), dims="obs")
        shared = _shared_features(named, local)
        # A selection of all would be a copy of all rows.
        groups = features_by_rows(
            local if shared == feature_names(local) else local.sel(feature=shared)
        )
        results = []
        for group, (_, some) in zip(groups, _with_same_draws((), named, len(groups)), strict=True):
            result = call(**{name: group.select(value, local) for name, value in some.items()})
            results.append(_counted(result, group, local))
        out: Any = by_feature(results, shared)
        return cast(T, out)

    return over_rows


def _shared_features(named: Mapping[str, Any], local: xr.Dataset) -> list[str]:
    """Features of the local effects that the results beside them have too, in their order."""
    shared = feature_names(local)
    for name, value in named.items():
        if value is local or not (isinstance(value, xr.Dataset) and "feature" in value.dims):
            continue
        missing = [feature for feature in feature_names(value) if feature not in shared]
        if missing:
            raise KeyError(
                f"local must hold the features of {name}; it lacks "
                f"{', '.join(map(repr, missing))}. Pass the local effects that it was made from."
            )
        shared = feature_names(value)
    return shared


def _check_row_counts(named: Mapping[str, Any], n_rows: int) -> None:
    """Raise ``ValueError`` where a Dataset has another number of rows than the local effects."""
    for name, value in named.items():
        size = value.sizes.get("obs", n_rows) if isinstance(value, xr.Dataset) else n_rows
        if size != n_rows:
            datasets = [key for key in named if isinstance(named[key], xr.Dataset)]
            raise ValueError(
                f"{' and '.join(datasets)} must be of the same rows; {name} has {size}, the other "
                f"{n_rows}. Pass the Datasets that were made from each other."
            )


def within_axes(arguments: dict[str, Any]) -> dict[str, Any]:
    """Arguments of a function with local effects as the effect beside them has them.

    Rows beyond its axes are left out of their features. The same object where there are none.
    """
    local: Any = arguments.get("local")
    effect: Any = arguments.get("effect")
    both = isinstance(local, xr.Dataset) and isinstance(effect, xr.Dataset)
    if not both or "n_beyond" not in effect or "edge_value" not in effect.coords:
        return arguments
    each = zip(feature_names(effect), effect["n_beyond"].values, effect["edge_value"], strict=True)
    limits = {
        name: (float(edges.min()), float(edges.max())) for name, beyond, edges in each if beyond > 0
    }
    return arguments if local.chunks else {**arguments, "local": inside(local, limits)}


def inside(local: xr.Dataset, limits: Mapping[str, tuple[float, float]]) -> xr.Dataset:
    """Local effects without those beyond the axes of their features, which are counted.

    The same where there are none.
    """
    names, x = feature_names(local), local["x"].transpose("obs", "feature").values
    x_within = x.copy()
    last = np.full(len(names), -np.inf)
    if "cell_value" in local:
        cells = local["cell_value"].transpose("feature", "cell_edge").values
        last = np.nan_to_num(np.fmax.reduce(cells, axis=1), nan=-np.inf)
    for column, name in enumerate(names):
        low, high = limits.get(name, (-np.inf, np.inf))
        beyond_ends = (x[:, column] < low) | (x[:, column] > high)
        if high < last[column]:
            # The slope of a row on an inner edge is that across the cell to the right.
            beyond_ends |= x[:, column] == high
        # Infinite values are refused later, and so are missing ones that are not known of.
        x_within[beyond_ends & np.isfinite(x[:, column]), column] = np.nan
        if np.isnan(x_within[:, column]).all():
            raise ValueError(
                f"edges of feature {name!r} must have rows between them; none lie in "
                f"[{low:.6g}, {high:.6g}]. Widen the edges."
            )
    beyond = np.isnan(x_within) & ~np.isnan(x)
    if not beyond.any() or ("n_missing" not in local and np.isnan(x).any()):
        return local
    rows = xr.DataArray(~np.isnan(x_within), dims=("obs", "feature"))
    masked = [name for name in ("x", "local_effect", LEFT) if name in local]
    # math [6]: a frequency weight is so many rows.
    frequency = local.attrs.get("weight_kind") == "frequency"
    weight = local["weight"].values if frequency else np.ones(len(x))
    n_beyond = (weight @ beyond).astype(np.int64)
    counts = {"n_beyond": n_beyond, "n_missing": 0 * n_beyond}
    old = {name: local[name].values for name in counts if name in local}
    return local.assign(
        {name: local[name].where(rows).transpose(*local[name].dims) for name in masked}
    ).assign({name: variable(name, count + old.get(name, 0)) for name, count in counts.items()})


def has_own_rows(value: Any) -> bool:
    """Whether these are local effects of features that have rows of their own.

    Features have them that lack values of some rows, and those with rows on the edges of cells,
    which count half in either cell.
    """
    if not (isinstance(value, xr.Dataset) and "x" in value and "obs" in value.dims):
        return False  # effects of regions have rows, too: which region each is in
    return LEFT in value or ("n_missing" in value and not _has_value(value).all())


def _has_value(local: xr.Dataset) -> NDArray[np.bool_]:
    """Rows that every feature has, (feature, obs): those with a value, or else with a curve."""
    present = local["x"].notnull()
    if "ice" in local:
        curve = local["ice"].notnull()
        present = present | curve.any([dim for dim in curve.dims if dim not in present.dims])
    return present.transpose("feature", "obs").values


def row_numbers(local: xr.Dataset) -> NDArray[np.int64]:
    """Numbers of the rows, the same for both halves of a row."""
    return local[HALF_OF].values if HALF_OF in local else np.arange(local.sizes["obs"])


def choosing_rows(local: xr.Dataset, fraction: float, seed: int) -> NDArray[np.bool_]:
    """Rows of ``local`` that choose the edges; both halves of a row do, or none."""
    if HALF_OF not in local:
        return honest_split(local.sizes["obs"], fraction, seed)
    chosen = honest_split(int(local[HALF_OF].attrs["n_rows"]), fraction, seed)
    return np.asarray(chosen[row_numbers(local)])


class RowsOfFeatures(NamedTuple):
    """Features that have the same rows: numbers of these, and halves of them if there are any."""

    names: list[str]
    rows: IntArray
    halves: Halves | None = None

    def select(self, value: Any, local: xr.Dataset) -> Any:
        """The features and rows of whatever has them; ``local`` has all rows."""
        if isinstance(value, SurveyDesign):
            every = row_labels(local), local.sizes["obs"]
            return PartOfDesign(whole=value, labels=every[0], n_rows=every[1], used=self.rows)
        if isinstance(value, xr.Dataset) and "feature" in value.dims:
            value = value.isel(feature=np.isin(value["feature"].values, self.names))
        if not (isinstance(value, xr.Dataset | xr.DataArray) and "obs" in value.dims):
            return value
        n_rows, value = value.sizes["obs"], value.isel(obs=self.rows)
        if isinstance(value, xr.Dataset) and LEFT in value:
            value = value.drop_vars(LEFT)
            return value if self.halves is None else self._in_halves(value, n_rows)
        return value

    def _in_halves(self, local: xr.Dataset, n_rows: int) -> xr.Dataset:
        """Local effects of ``n_rows`` rows, of which those on edges count half in either cell."""
        halves, facts = self.halves, {}
        assert halves is not None
        columns = {"x": halves.x, "local_effect": halves.local_effect}
        data: dict[str, Any] = {
            name: local[name].copy(data=values[:, None]) for name, values in columns.items()
        } | {AT_MEAN: ("obs", halves.at_mean)}
        data[HALF_OF] = ("obs", self.rows, {"n_rows": n_rows})
        if (halves.share < 1).any():
            frequency = local.attrs.get("weight_kind") == "frequency"
            counts = local["weight"].values if frequency and "weight" in local else 1.0
            data["weight"] = ("obs", counts * halves.share)
            facts["weight_kind"] = "frequency"
        return local.assign(data).assign_attrs(facts)


def features_by_rows(local: xr.Dataset) -> list[RowsOfFeatures]:
    """Features that have the same rows, and these rows."""
    # Without missing values that are known of, a NaN is refused later.
    present = _has_value(local) if "n_missing" in local else np.ones_like(_has_value(local))
    tied = np.zeros(len(present), dtype=bool)
    if LEFT in local:
        tied = local[LEFT].notnull().any("obs").values
    groups, weighted = dict[bytes, RowsOfFeatures](), "weight" in local
    for position, (name, rows) in enumerate(zip(feature_names(local), present, strict=True)):
        key, group = rows.tobytes(), RowsOfFeatures([], np.flatnonzero(rows))
        if tied[position]:
            # Without rows of weight 0, which would be on one side or the other, too.
            some = group.rows[local["weight"].values[group.rows] > 0] if weighted else group.rows
            halved = _halves(local.isel(feature=position, obs=some))
            key = f"halves {position}".encode()
            group = RowsOfFeatures([], some[halved.row], halved)
        groups.setdefault(key, group).names.append(name)
    return list(groups.values())


def rows_of_feature(local: xr.Dataset, name: str) -> tuple[xr.Dataset, IntArray]:
    """Local effects of one feature at the rows that count for it, and the numbers of these rows."""
    column = local.isel(feature=[feature_position(local, name)])
    if not has_own_rows(column):
        return column, np.arange(local.sizes["obs"])
    (group,) = features_by_rows(column)
    return group.select(column, column), group.rows


def _halves(column: xr.Dataset) -> Halves:
    """The rows of one feature, those on edges in halves."""
    edges = column["cell_value"].values
    edges = edges[np.isfinite(edges)]
    x, g, left = [column[name].values for name in ("x", "local_effect", LEFT)]
    weight = column["weight"].values if "weight" in column else None
    frequency = column.attrs.get("weight_kind") == "frequency"
    if weight is not None and need_squares(weight, frequency=frequency):
        pieces = sides(edges, x, g, left, weight)
    else:
        pieces = halves(edges, x, g, left, weight)
    if str(column["local_effect_method"].values) == "finite_difference":
        return pieces
    return pieces._replace(x=in_the_middle(edges, pieces.x, x[pieces.row]))


def _counted(result: Any, group: RowsOfFeatures, local: xr.Dataset) -> Any:
    """A result with the facts of the rows, not of halves of them."""
    if group.halves is None or not isinstance(result, xr.Dataset):
        return result
    is_honest = "honest_fraction" in result.attrs
    facts = {"weight_kind": local.attrs.get("weight_kind", "none")}
    if not is_honest:
        facts["n_rows"] = len(np.unique(group.rows))
    result = result.assign_attrs({name: facts[name] for name in facts if name in result.attrs})
    if "n_obs" not in result or "bin_left" not in result.coords:
        return result
    number = np.unique(group.rows)
    if is_honest:
        of_edges = [result.attrs[name] for name in ("honest_fraction", "honest_seed")]
        number = number[~choosing_rows(local, *of_edges)[number]]
    rows = local.sel(feature=group.names[0]).isel(obs=number)
    left, right = (ends.values[0] for ends in (result["bin_left"], result["bin_right"]))
    edges = np.append(left[np.isfinite(left)], right[np.isfinite(right)][-1:])
    of_bin = bin_index(edges, rows["x"].values)
    frequency = local.attrs.get("weight_kind") == "frequency"
    counts: Any = np.ones(len(of_bin))
    if "weight" in rows:
        counts = rows["weight"].values if frequency else (rows["weight"].values > 0) * 1.0
    n_obs = np.bincount(of_bin, counts, result.sizes["bin"])
    return result.assign(n_obs=result["n_obs"].copy(data=n_obs[None].astype(np.int64)))
