"""Second-order effects of two features: how a surface is made, labelled and evaluated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arguments.checks import check_choice, check_finite, is_number
from rhale_stats.arguments.progress import progress_bar
from rhale_stats.arguments.words import first_rows
from rhale_stats.arrays import binning
from rhale_stats.arrays import second_order as kernel
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.bins.description import describe, has_fact
from rhale_stats.bins.rule import BinRule, Column, check_rule
from rhale_stats.bins.rules import QuantileBins
from rhale_stats.models import table as models
from rhale_stats.models.differences import DifferenceQuotients
from rhale_stats.models.options import ModelOptions
from rhale_stats.models.outputs import Model
from rhale_stats.models.sample import Sample, in_order, levels_of
from rhale_stats.schema.dimensions import OUTPUT, with_outputs, with_part_facts
from rhale_stats.schema.features import by_name, position_of
from rhale_stats.schema.kinds import SURFACE
from rhale_stats.schema.levels import MISSING_LEVEL, level_text
from rhale_stats.schema.padding import stack
from rhale_stats.schema.validation import validated
from rhale_stats.schema.variables import variable

METHOD = "second-order ALE"
CENTERINGS = ("ale", "start")


@validated
def ale2(
    model: Model,
    X: Any,
    features: tuple[str | int, str | int],
    *,
    bins: Rules | None = None,
    order: Order = "as_is",
    centering: str = "ale",
    options: ModelOptions = ModelOptions(),
    progress: bool = True,
    **fields: Any,
) -> xr.Dataset:
    r"""Second-order ALE: the interaction of two features as a surface (math [55] to [58]).

    Parameters
    ----------
    model, X
        As in `local_effects`. The model is evaluated at 4 versions of every row with two numeric
        features, 6 with a numeric and a categorical one, and 9 with two categorical ones; a call
        has at most ``batch_rows`` rows.
    features : pair of str or int
        The two columns. Text, categories and truth values are categorical, numbers are numeric.
    bins : bin rule, or a pair of them, optional
        `QuantileBins` (the default, with 20 bins), `EqualWidthBins` or `GivenBins`, of numeric
        features. Rules that search for bins are refused, because they need local effects of one
        feature.
    order : "as_is", sequence of levels, or mapping from feature to one of these
        Order of the levels of a categorical feature; neighbouring levels are compared. "as_is" is
        the order of a pandas category, and the sorted order for other columns. A numeric feature
        with levels in a mapping is treated as categorical.
    centering : {"ale", "start"}, default "ale"
        "ale" removes both main effects and the mean from the surface, which leaves the pure
        second-order effect. With "start" the surface is 0 along the first edges.
    options : ModelOptions, optional
        As in `local_effects`. Rows without a value of one of the two features are left out with
        ``missing="drop"``, and counted in the attribute ``n_rows_missing``. "bin" makes them
        a level "missing" of a categorical feature, the last level unless ``order`` places it
        elsewhere; the model receives the missing value of the column. A numeric feature has no such
        level: its missing values are refused.
    %(progress)s

    Returns
    -------
    Dataset
        Over (edge_a, edge_b), the edges of the bins of a numeric feature or the levels of a
        categorical one: ``surface``, NaN at corners without an adjacent cell with rows. In the
        cells: ``second_effect``, the mean second difference; ``heterogeneity``, its standard
        deviation (ddof 1); ``n_obs``, ``n_effective``. A cell is stored at the edges where it
        begins. Cells without rows are NaN and count 0, and so are the last edges, where no cell
        begins. All in units of the output: the differences are not divided by widths. Over obs:
        ``x_a``, ``x_b`` (the value of a numeric feature, or the number of the level; NaN where the
        row is left out), ``weight`` where given, and ``second_difference``. With a categorical
        feature this is over (obs, side), the differences to the level below and to the level
        above; with two, all four of them. Attributes ``n_empty`` and ``n_filled`` count cells. With
        several outputs estimates have ``output`` as first dimension.

    Raises
    ------
    ValueError
        The same feature twice; a constant feature; missing or infinite values; levels that are not
        those of the data, or a level called "missing" in addition to rows without a level; invalid
        weights; second differences that are not finite.
    KeyError
        Unknown feature or output.
    TypeError
        A rule that searches for bins; ``features`` that is not a pair.
    ModelError
        The model raised an error, or did not return one number per row.

    Notes
    -----
    A row lies at the level of its categorical feature. The difference between two neighbouring
    levels is averaged over the rows of both, as in the authors' code for R (ALEPlot); with two
    categorical features, over the rows of all four pairs of levels.

    A cell without rows has no estimate, but the surface is accumulated across it. The sum then uses
    the second difference of the nearest cell with rows (distances are counted in bins), or the mean
    of several cells at the same distance. ``n_filled`` is the number of such cells. If it is large,
    parts of the surface are extrapolated: the features are dependent, and some of their
    combinations were not observed.

    References
    ----------
    Apley and Zhu (2020), *Visualizing the effects of predictor variables in black box supervised
    learning models*, JRSS B 82, 1059-1086, Eq. 13 to 17 and Appendix E.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> surface = rs.ale2(
    ...     lambda X: X[:, 0] + X[:, 0] * X[:, 1], X, (0, 1), bins=rs.EqualWidthBins(2)
    ... )
    >>> surface["surface"].round(2).values
    array([[ 1.01, -0.  , -0.97],
           [ 0.01, -0.01,  0.02],
           [-0.96,  0.02,  1.05]])
    """
    check_choice("centering", centering, CENTERINGS)
    sample = Sample.from_table(X, options)
    table, used = sample.table, sample.present
    positions = pair_of(features, table.names)
    rules = check_rules(bins)
    check_order(order, table, positions)
    orders = [order_of(order, table, position) for position in positions]
    gaps = np.zeros(table.n_rows, dtype=bool)
    for position, levels in zip(positions, orders, strict=True):
        gaps |= missing_in(sample, position, levels=levels is not None)
    present = used & ~gaps
    if not present.any():
        raise ValueError(
            f"X must have rows with values of {table.names[positions[0]]!r} and "
            f"{table.names[positions[1]]!r}, of positive weight; got none."
        )
    inside = sample.take(present)
    quotients = inside.quotients(model)
    axes = [
        axis_of(inside, position, rule, levels)
        for position, rule, levels in zip(positions, rules, orders, strict=True)
    ]
    delta, error = second_differences(quotients, axes, progress=progress)
    rows = rows_of(axes, delta, inside.weight, frequency=sample.frequency)
    parts = []
    for number, rounding in enumerate(error.tolist()):
        of_output = rows._replace(delta=delta[..., number])
        parts.append(one_output(axes, of_output, present, sample.weight, rounding, centering))
    out = stack(parts, OUTPUT)
    out = out.assign({name: parts[0][name] for name in SHARED if name in out})
    out = out.assign_coords(obs=sample.obs)
    out.attrs |= {
        "method": METHOD,
        **_facts_of_axes(axes, rules, sample.units),
        "centering": centering,
        **sample.facts,
        "n_rows": int(present.sum()),
        "n_rows_missing": int((gaps & used).sum()),
        "n_model_calls": quotients.outputs.n_calls,
        "n_model_rows": quotients.outputs.n_rows,
    }
    return with_outputs(out, quotients.outputs.labels, quotients.outputs.names)


def _facts_of_axes(
    axes: Sequence[FeatureAxis], rules: Sequence[BinRule], units: Mapping[str, str]
) -> dict[str, str]:
    """Names, kinds, units and bins of the two features, as attributes."""
    described = [
        ("categorical", "levels") if axis.levels is not None else describe(rule)
        for axis, rule in zip(axes, rules, strict=True)
    ]
    facts = {
        "feature": [axis.name for axis in axes],
        "kind": ["numeric" if axis.levels is None else "categorical" for axis in axes],
        "units": [units.get(axis.name, "") for axis in axes],
        "bins": [f"{name}({parameters})" for name, parameters in described],
    }
    return {
        f"{fact}_{side}": text
        for fact, texts in facts.items()
        for side, text in zip("ab", texts, strict=True)
    }


def second_differences(
    quotients: DifferenceQuotients, axes: Sequence[FeatureAxis], *, progress: bool
) -> tuple[FloatArray, FloatArray]:
    """math [55]: (row, side_a, side_b, output), and what rounding may add (output,)."""
    a, b = axes
    n_rows, n_pairs = quotients.table.n_rows, len(a.versions) * len(b.versions)
    together = max(1, quotients.block_rows // n_pairs)
    blocks, error = [], np.zeros(1)
    begins = range(0, n_rows, together)
    with progress_bar(len(begins), "second-order ALE", "batch", progress=progress) as bar:
        for begin in begins:
            part = slice(begin, begin + together)
            of_a, of_b = [[version[part] for version in axis.versions] for axis in axes]
            outputs, rounding = quotients.combined((a.position, b.position), (of_a, of_b), part)
            error = np.maximum(error, rounding)
            blocks.append(np.diff(np.diff(outputs, axis=1), axis=2))
            bar.update()
    delta = np.concatenate(blocks)
    names = f"{a.name} and {b.name}"
    flat = delta.reshape(len(delta), -1).sum(axis=1)
    check_finite(flat, "Second differences", names, "See what the model returns at these rows.")
    quotients.check_size()
    # Four outputs in place of two.
    return delta, 2 * error


# --- surfaces as Datasets -------------------------------------------------------------------------


def pair_name(surface: xr.Dataset) -> str:
    """Both features, as they are called in tables."""
    return f"{surface.attrs['feature_a']}:{surface.attrs['feature_b']}"


def is_categorical(surface: xr.Dataset, side: str) -> bool:
    """Whether the edges of this feature are levels."""
    return str(surface.attrs[f"kind_{side}"]) == "categorical"


def n_cells(surface: xr.Dataset) -> int:
    """Number of cells, with rows or without."""
    return (surface.sizes["edge_a"] - 1) * (surface.sizes["edge_b"] - 1)


def is_used(surface: xr.Dataset) -> NDArray[np.bool_]:
    """Which rows are in a cell: those of positive weight with values of both features."""
    return np.asarray(surface["x_a"].notnull().values)


def places_of(surface: xr.Dataset, side: str) -> IntArray:
    """Number of the bin, or of the level, of the rows that are used."""
    x = surface[f"x_{side}"].values[is_used(surface)]
    if is_categorical(surface, side):
        return x.astype(np.int64)
    return bin_index(surface[f"edge_{side}"].values, x)


def at_edges(cells: NDArray[Any], nothing: float = np.nan) -> NDArray[Any]:
    """Values in cells at the edges where they begin; ``nothing`` at the last edges."""
    return np.pad(cells, (0, 1), constant_values=nothing)


def predict(surface: xr.Dataset, values: Any, feature: object) -> xr.DataArray:
    """`predict` of a surface: bilinear between edges, by level for categories, else NaN."""
    if feature is not None:
        raise ValueError(
            f"feature must be left out for a surface, which is of two; got {feature!r}. Pass "
            f"values of both: predict(surface, (values_a, values_b))."
        )
    if "chain" in surface.dims:
        raise ValueError("effect must be what ale2 or std_error returned; got replicates.")
    surface = with_part_facts(surface)
    pair = xr.broadcast(*_pair(surface, values))
    columns = [np.asarray(column.values) for column in pair]
    places = [
        _place(surface, side, column.ravel()) for side, column in zip("ab", columns, strict=True)
    ]
    (a, t_a, near_a, in_a), (b, t_b, near_b, in_b) = places
    # A value on an edge, or a level, belongs to the cells on both of its sides.
    supported = surface["n_obs"].values > 0
    is_supported = np.any([supported[k, m] for k in near_a for m in near_b], axis=0)
    at_values = kernel.surface_at_values(np.nan_to_num(surface["surface"].values), a, b, t_a, t_b)
    out = np.where(is_supported & in_a & in_b, at_values, np.nan).reshape(columns[0].shape)
    facts = {key: surface.attrs[key] for key in ("feature_a", "feature_b")}
    array = xr.DataArray(out, pair[0].coords, pair[0].dims, "surface", surface["surface"].attrs)
    new = {
        str(name): (array.dims, column)
        for name, column in zip(facts.values(), columns, strict=True)
        if str(name) not in {*array.coords, *array.dims}
    }
    return array.assign_coords(new).assign_attrs(facts)


def _pair(surface: xr.Dataset, values: Any) -> tuple[xr.DataArray, xr.DataArray]:
    """Values of both features as arrays that go together."""
    names = [str(surface.attrs[f"feature_{side}"]) for side in "ab"]
    if isinstance(values, pd.DataFrame):
        absent = [name for name in names if name not in map(str, values.columns)]
        if absent:
            raise KeyError(
                f"x must have the columns {names[0]!r} and {names[1]!r}; got "
                f"{', '.join(map(repr, values.columns))}."
            )
        by_name = values.set_axis([str(name) for name in values.columns], axis=1)
        columns: list[Any] = [by_name[name].to_numpy() for name in names]
    elif isinstance(values, tuple):
        columns = list(values)
    else:
        rows: NDArray[Any] = np.asarray(values)
        columns = list(rows.T) if rows.ndim == 2 else []
    if len(columns) != 2:
        got = f"a tuple of {len(columns)}" if isinstance(values, tuple) else type(values).__name__
        if not isinstance(values, tuple | pd.DataFrame):
            got += f" of shape {np.shape(values)}"
        raise ValueError(
            f"x must be values of {names[0]!r} and of {names[1]!r}, for a surface: a tuple of two, "
            f"an array of two columns, or a DataFrame with both; got {got}."
        )
    plain: list[NDArray[Any]] = [
        np.asarray(column) for column in columns if not isinstance(column, xr.DataArray)
    ]
    try:
        shaped = iter(np.broadcast_arrays(*plain))
    except ValueError:
        raise ValueError(
            f"x must be as many values of {names[0]!r} as of {names[1]!r}; got shapes "
            f"{plain[0].shape} and {plain[1].shape}. For all pairs pass DataArrays of different "
            f"dims."
        ) from None
    out = [
        column if isinstance(column, xr.DataArray) else _labelled(next(shaped))
        for column in columns
    ]
    return out[0], out[1]


def _labelled(values: NDArray[Any]) -> xr.DataArray:
    return xr.DataArray(values, dims="grid") if values.ndim == 1 else xr.DataArray(values)


def _place(
    surface: xr.Dataset, side: str, values: NDArray[Any]
) -> tuple[IntArray, FloatArray | None, list[IntArray], NDArray[np.bool_]]:
    """Edges or levels that values have, their share of the bin, the steps beside, whether there."""
    edges = surface[f"edge_{side}"].values
    last = len(edges) - 2
    name = surface.attrs[f"feature_{side}"]
    if is_categorical(surface, side):
        levels = [level_text(level) for level in edges.tolist()]
        texts = [level_text(value) for value in values.tolist()]
        unknown = sorted(set(texts) - set(levels))
        if unknown:
            raise ValueError(
                f"x must hold levels of feature {name!r}, {', '.join(map(repr, levels))}; got "
                f"{', '.join(map(repr, unknown))}."
            )
        number = np.array([levels.index(text) for text in texts], dtype=np.int64)
        beside = [np.clip(number - 1, 0, last), np.clip(number, 0, last)]
        return number, None, beside, np.ones(len(number), dtype=bool)
    try:
        x = values.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"x must hold numbers of feature {name!r}; got {values.dtype} values."
        ) from None
    inside = (x >= edges[0]) & (x <= edges[-1])
    x = np.where(inside, x, edges[0])
    place = bin_index(edges, x).astype(np.int64)
    share = (x - edges[place]) / np.diff(edges)[place]
    return place, share, [np.where(share == 0, np.maximum(place - 1, 0), place), place], inside


# --- the two axes of a surface --------------------------------------------------------------------


DEFAULT_BINS = QuantileBins(20)
# What depends on the rows alone, and so is the same for all outputs.
SHARED = ("n_obs", "n_effective", "x_a", "x_b", "weight")
Rules = BinRule | tuple[BinRule, BinRule]
Order = str | Sequence[Any] | Mapping[str, str | Sequence[Any]]


class FeatureAxis(NamedTuple):
    """One of two features: its edges or levels, the place of every row, versions of its column.

    ``x`` are the values of a numeric feature. ``versions`` are its values at the edges around a
    row, or at the levels below, of, and above the row; at the ends of the order, that of the row
    itself.
    """

    name: str
    position: int
    edges: FloatArray | None
    levels: list[Any] | None
    x: FloatArray | None
    place: IntArray
    versions: list[Any]

    @property
    def fraction(self) -> FloatArray | None:
        """Share of its bin to the left of every row; None on levels."""
        if self.edges is None or self.x is None:
            return None
        left, right = self.edges[self.place], self.edges[self.place + 1]
        return np.asarray((self.x - left) / (right - left))

    @property
    def axis(self) -> kernel.Axis:
        """As the formulas see it."""
        if self.levels is not None:
            return kernel.Axis(len(self.levels), levels=True)
        assert self.edges is not None
        return kernel.Axis(len(self.edges), levels=False)


def rows_of(
    axes: Sequence[FeatureAxis], delta: FloatArray, weight: FloatArray | None, *, frequency: bool
) -> kernel.PairRows:
    """Rows with the cells that two axes make."""
    a, b = axes
    return kernel.PairRows.from_places(
        (a.axis, b.axis),
        (a.place, b.place),
        delta,
        np.ones(len(a.place)) if weight is None else weight,
        frequency=frequency and weight is not None,
    )


# --- the two features -----------------------------------------------------------------------------


def pair_of(features: object, names: list[str]) -> tuple[int, int]:
    """Positions of the two columns."""
    if isinstance(features, str) or not isinstance(features, Sequence) or len(features) != 2:
        raise TypeError(f"features must be a pair of columns, as in ('a', 'b'); got {features!r}.")
    first, second = [position_of(feature, names) for feature in features]
    if first == second:
        raise ValueError(f"features must be two different columns; got {features!r}.")
    return first, second


def check_rules(bins: Any) -> list[BinRule]:
    """Rules of both features."""
    bins = DEFAULT_BINS if bins is None else bins
    rules = list(bins) if isinstance(bins, tuple | list) else [bins] * 2
    if len(rules) != 2:
        raise TypeError(f"bins must be one rule, or a pair of them; got {len(rules)}.")
    for rule in rules:
        check_rule(rule)
        if has_fact(rule, "joins_cells"):
            raise TypeError(
                f"bins must be QuantileBins, EqualWidthBins or GivenBins here; got {rule!r}, which "
                f"searches for bins by local effects of one feature. Take the edges that it found: "
                f"GivenBins(edges)."
            )
    return rules


def check_order(order: Order, table: models.Table, positions: Sequence[int]) -> None:
    """Refuse an order that nobody would look at, or two would."""
    if isinstance(order, str):
        check_choice("order", order, ("as_is",))
    elif not isinstance(order, Mapping):
        categorical = [p for p in positions if not table.is_numeric(p)]
        if len(categorical) != 1:
            raise ValueError(
                f"order can be a sequence of levels only if exactly one of the two features is "
                f"categorical; got {len(categorical)} categorical features. Name the feature, as "
                f"in order={{{table.names[positions[0]]!r}: [...]}}."
            )


def order_of(order: Order, table: models.Table, position: int) -> list[Any] | str | None:
    """What is said of the levels of a column; None where it is numeric."""
    name = table.names[position]
    numeric = table.is_numeric(position)
    if isinstance(order, Mapping):
        asked_order = by_name(order, table.names, "order").get(name)
    else:
        asked_order = None if numeric else order
    if asked_order is None:
        return None if numeric else "as_is"
    if isinstance(asked_order, str):
        check_choice("order", asked_order, ("as_is",))
        return asked_order
    return list(asked_order)


def missing_in(sample: Sample, position: int, *, levels: bool) -> NDArray[np.bool_]:
    """Rows without a value; refused where they are not allowed."""
    gaps = sample.gaps(position, numeric=not levels)
    if sample.missing != "bin":
        return gaps
    if gaps.any() and not levels:
        raise ValueError(
            f"missing='bin' needs a categorical feature where values are missing; got "
            f"{int(gaps.sum())} missing values of the numeric feature "
            f"{sample.table.names[position]!r} (first rows: {first_rows(gaps)}), for which no "
            f"second difference is defined. Use missing='drop'. ale(..., missing='bin') gives the "
            f"effect of missing values alone."
        )
    return np.zeros_like(gaps)


def axis_of(
    sample: Sample, position: int, rule: BinRule, order: list[Any] | str | None
) -> FeatureAxis:
    """Edges or levels of a column, the place of every row, and the versions that are asked for."""
    if order is not None:
        return _levels(sample, position, order)
    name, x = sample.table.names[position], sample.table.column(position)
    low, high = float(x.min()), float(x.max())
    if low == high:
        _refuse_constant(name, f"{low:.6g}", len(x))
    axis = rule.cells(Column(name, x, low, high, sample.weight))
    edges = binning.bin_edges(axis, np.arange(len(axis)), low, high)
    place = binning.bin_index(edges, x)
    return FeatureAxis(name, position, edges, None, x, place, [edges[place], edges[place + 1]])


def _levels(sample: Sample, position: int, order: list[Any] | str) -> FeatureAxis:
    """A categorical feature; rows without a level, where there are any, are one of their own."""
    levels, column = levels_of(sample, position), sample.table.series(position)
    if not isinstance(order, str):
        # Categories without rows may be named.
        levels = in_order(
            [level for level in order if level_text(level) not in levels.unused], levels
        )
    values = column.iloc[levels.first].tolist()
    if len(values) < 2:
        _refuse_constant(levels.name, repr(values[0]), len(column))
    if levels.with_missing:
        values[levels.texts.index(MISSING_LEVEL)] = MISSING_LEVEL
    last = len(values) - 1
    versions = [
        column.array.take(levels.first[np.clip(levels.code + step, 0, last)]) for step in (-1, 0, 1)
    ]
    return FeatureAxis(levels.name, position, None, values, None, levels.code, versions)


def _refuse_constant(name: str, value: str, n_rows: int) -> None:
    raise ValueError(
        f"Feature {name!r} must vary; all {n_rows} rows have {value}. A constant feature "
        f"interacts with nothing."
    )


def one_output(
    axes: Sequence[FeatureAxis],
    rows: kernel.PairRows,
    has_cell: NDArray[np.bool_],
    weight: FloatArray | None,
    error: float,
    centering: str,
) -> xr.Dataset:
    """Estimates for one output of the model, without attributes of the call.

    ``has_cell`` marks the rows that have a cell, which are ``rows``.
    """
    cells = rows.cells()
    supported, pure = cells.supported, centering == "ale"
    accumulated = kernel.Influence.from_rows(rows, cells).surface
    surface = accumulated.pure if pure else accumulated.start
    sides = product(*[("below", "above") for axis in axes if axis.levels is not None])
    coords = {"side": [", ".join(names) or "across" for names in sides]}
    delta = np.full((len(has_cell), len(coords["side"])), np.nan)
    delta[has_cell] = np.where(rows.cell >= 0, rows.delta, np.nan).reshape(len(rows.cell), -1)
    values: dict[str, Any] = {
        "second_effect": at_edges(np.where(supported, cells.mean, np.nan)),
        "heterogeneity": at_edges(cells.spread()),
        "n_obs": at_edges(cells.n_obs.astype(np.int64), 0),
        "n_effective": at_edges(cells.n_effective(), 0),
        # NaN where no cell beside the edge has rows.
        "surface": np.where(kernel.edges_of(supported), surface, np.nan),
        "second_difference": delta,
        "second_difference_error": error,
    }
    data: dict[str, Any] = {name: variable(name, array, SURFACE) for name, array in values.items()}
    data["heterogeneity"][2]["ddof"] = 1
    if not pure:
        data["surface"][2]["long_name"] = "accumulated second differences"
    for side, feature in zip("ab", axes, strict=True):
        data[f"x_{side}"] = _values_of_rows(feature, side, has_cell)
        coords[f"edge_{side}"] = _edges(feature, side)
    if weight is not None:
        data["weight"] = variable("weight", weight, SURFACE)
    n_empty = int((~supported).sum())
    return xr.Dataset(data, coords, {"n_empty": n_empty, "n_filled": n_empty})


def _edges(feature: FeatureAxis, side: str) -> Any:
    """Edges of the bins of a numeric feature, or levels of a categorical one, as coordinate."""
    if feature.edges is not None:
        return variable(f"edge_{side}", feature.edges, SURFACE, long_name=feature.name)
    assert feature.levels is not None
    numbers = all(map(is_number, feature.levels))
    levels = feature.levels if numbers else list(map(level_text, feature.levels))
    return f"edge_{side}", np.array(levels), {"long_name": feature.name}


def _values_of_rows(feature: FeatureAxis, side: str, has_cell: NDArray[np.bool_]) -> Any:
    """Value of a numeric feature, or number of the level, of every row; NaN without a cell."""
    x = np.full(len(has_cell), np.nan)
    x[has_cell] = feature.place if feature.x is None else feature.x
    about = {"long_name": f"value of {feature.name}"}
    if feature.x is None:
        about = {"long_name": f"number of the level of {feature.name}", "units": "1"}
    return variable(f"x_{side}", x, SURFACE, **about)
