"""Second-order effects: what two features do together beyond what each does by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from tqdm import tqdm

from rhale_stats import models
from rhale_stats.arrays import binning
from rhale_stats.arrays import second_order as kernel
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.bins import (
    AdaptiveBins,
    BestEqualWidthBins,
    BinRule,
    Column,
    GreedyBins,
    OptimalBins,
    QuantileBins,
    check_rule,
    describe,
)
from rhale_stats.effects import MISSING, PROGRESS_DELAY
from rhale_stats.identity import row_coordinate
from rhale_stats.schema import (
    MISSING_LEVEL,
    OUTPUT,
    OUTPUT_UNITS,
    X_UNITS,
    level_text,
    position_of,
    software,
    stack,
    unit_mapping,
    with_outputs,
)
from rhale_stats.validate import check_choice, check_finite, checked, first_rows

METHOD = "second-order ALE"
CENTERINGS = ("ale", "start")
DEFAULT_BINS = QuantileBins(20)
SEARCHING = (AdaptiveBins, BestEqualWidthBins, GreedyBins, OptimalBins)
NUMERIC, CATEGORICAL = "numeric", "categorical"
# Of rows that have no place: of weight 0, or with a missing value.
NO_CELL = -1
# What depends on the rows alone, and so is the same for all outputs.
SHARED = ("n_obs", "n_effective", "supported", "cell_a", "cell_b", "x_a", "x_b", "weight")

Rules = BinRule | tuple[BinRule, BinRule]
Order = str | Sequence[Any] | Mapping[str, str | Sequence[Any]]


@checked
def ale2(
    model: models.Model,
    X: Any,
    features: tuple[str | int, str | int],
    *,
    bins: Rules | None = None,
    order: Order = "as_is",
    weights: ArrayLike | None = None,
    weight_kind: str = "precision",
    output: models.OutputLabels = None,
    scale: str = "response",
    centering: str = "ale",
    missing: str = "raise",
    progress: bool = True,
) -> xr.Dataset:
    r"""Second-order ALE: the interaction of two features as a surface (math [55] to [58]).

    Parameters
    ----------
    model, X, weights, weight_kind, output, scale
        As in `local_effects`. Of every row the model is asked for 4 versions with two numeric
        features, 6 with a numeric and a categorical one, 9 with two categorical ones; never for
        more than 131,072 rows at once.
    features : pair of str or int
        The two columns. Text, categories and truth values are categorical, numbers are numeric.
    bins : bin rule, or a pair of them, optional
        `QuantileBins` (the default, with 20 bins), `EqualWidthBins` or `GivenBins`, of numeric
        features. Rules that search for bins look at local effects, which are not there.
    order : "as_is", sequence of levels, or mapping from feature to one of these
        Order of the levels of a categorical feature, whose neighbours are compared. "as_is" is
        that of a pandas category, and of other columns the sorted one. A numeric feature that has
        levels in a mapping is taken as categorical.
    centering : {"ale", "start"}, default "ale"
        "ale" takes both main effects and the mean out of the surface: the pure second-order
        effect. "start" leaves it 0 along the first edges.
    missing : {"raise", "drop", "bin"}, default "raise"
        Rows without a value of one of the two features: refused, or left out and counted in the
        attribute ``n_rows_missing``. "bin" makes a level "missing" of them in a categorical
        feature, the last unless ``order`` names it elsewhere; the model receives there what the
        column holds. A numeric feature has no such edge: its missing values are refused.
    progress : bool, default True
        Show a bar on work over two seconds.

    Returns
    -------
    Dataset
        Over (bin_a, bin_b), the cells: ``second_effect``, the mean second difference;
        ``heterogeneity``, its standard deviation (ddof 1); ``n_obs``, ``n_effective``;
        ``supported``, 1 where a cell has rows and 0 where it has none, whose estimates are NaN.
        Over (edge_a, edge_b): ``surface``, NaN at edges that no cell with rows has. All in units
        of the output: the differences are not divided by widths. Over obs: ``cell_a``, ``cell_b``
        (the bin of a row, or its level; -1 where it is left out), ``x_a``, ``x_b`` (the values of
        a numeric feature), ``weight`` where given, and
        ``second_difference`` (obs, side_a, side_b), whose sides are one for a numeric feature and
        for a categorical one two, to the level below and to the one above.
        Coordinates ``edge_value_a``, ``bin_left_a``, ``bin_right_a`` of a numeric feature,
        ``level_a`` of a categorical one, over ``edge_a``; so for b. Attributes ``n_empty`` and
        ``n_filled`` count cells. With several outputs estimates have ``output`` in front.

    Raises
    ------
    ValueError
        The same feature twice, a constant one, missing or infinite values, levels that are not
        those of the data or one called "missing" beside rows without a level, unusable weights,
        second differences that are not finite.
    KeyError
        Unknown feature or output.
    TypeError
        A rule that searches, or something else than a pair.
    ModelError
        The model raised, or returned something else than numbers for every row.

    Notes
    -----
    A row of a categorical feature stands on its level. The difference between two neighbouring
    levels is averaged over the rows of both, as in the authors' code for R (ALEPlot); with two
    categorical features, over the rows of all four pairs of levels.

    A cell without rows has no estimate, yet the surface has to go on behind it. There the sum
    takes the second difference of the nearest cell with rows, distances being counted in bins,
    and the mean of several that are equally near. ``n_filled`` says how many cells that is. Where
    it is large the surface is an assumption in places: the features go together, and some of
    their combinations have not been seen.

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
    table = models.as_table(X)
    check_choice("centering", centering, CENTERINGS)
    check_choice("missing", missing, MISSING)
    check_choice("weight_kind", weight_kind, ("precision", "frequency"))
    positions = _pair_of(features, table.names)
    rules = check_rules(bins)
    weight = table.weights(weights, weight_kind)
    used = np.ones(table.n_rows, dtype=bool) if weight is None else weight > 0
    _check_order(order, table, positions)
    orders = [order_of(order, table, position) for position in positions]
    gaps = np.zeros(table.n_rows, dtype=bool)
    for position, levels in zip(positions, orders, strict=True):
        gaps |= _missing(table, position, missing, used, levels=levels is not None)
    there = used & ~gaps
    if not there.any():
        raise ValueError(
            f"X must have rows with values of {table.names[positions[0]]!r} and "
            f"{table.names[positions[1]]!r}, of positive weight; got none."
        )
    quotients = models.DifferenceQuotients(model, table, output, scale).at(there)
    counts = None if weight is None else weight[there]
    axes = [
        axis_of(quotients.table, position, rule, levels, counts)
        for position, rule, levels in zip(positions, rules, orders, strict=True)
    ]
    delta, error = second_differences(
        quotients, (positions[0], positions[1]), axes, progress=progress
    )
    grid = Grid(axes[0], axes[1], counts, frequency=weight_kind == "frequency")
    parts = [
        _one_output(grid, there, weight, delta[..., number], float(error[number]), centering)
        for number in range(delta.shape[-1])
    ]
    out = stack(parts, OUTPUT)
    out = out.assign({name: parts[0][name] for name in SHARED if name in out})
    attrs = getattr(X, "attrs", {})
    units = unit_mapping(attrs)
    out = out.assign_coords(obs=row_coordinate(X, table.n_rows))
    described = [
        ("categorical", "levels") if axis.levels is not None else describe(rule)
        for axis, rule in zip(axes, rules, strict=True)
    ]
    out.attrs |= {
        "method": METHOD,
        **{f"feature_{side}": axis.name for side, axis in zip("ab", axes, strict=True)},
        **{f"kind_{side}": axis.kind for side, axis in zip("ab", axes, strict=True)},
        **{
            f"units_{side}": units.get(axis.name, "") for side, axis in zip("ab", axes, strict=True)
        },
        **{
            f"bins_{side}": f"{name}({parameters})"
            for side, (name, parameters) in zip("ab", described, strict=True)
        },
        "centering": centering,
        "weight_kind": weight_kind if weight is not None else "none",
        "output_name": str(attrs.get("output_name", "output")),
        "output_units": str(attrs.get("output_units", "")),
        "n_rows": int(there.sum()),
        "n_rows_missing": int((gaps & used).sum()),
        "n_model_calls": quotients.n_calls,
        "n_model_rows": quotients.n_rows,
        "software": software(),
    }
    return with_outputs(out, quotients.outputs.labels, quotients.outputs.names)


class FeatureAxis(NamedTuple):
    """One of two features: its edges or levels, the place of every row, versions of its column.

    ``x`` are the values of a numeric feature. ``versions`` are its values at the edges around a
    row, or at the levels below, of, and above the row; at the ends of the order, that of the row
    itself.
    """

    name: str
    edges: FloatArray | None
    levels: list[Any] | None
    x: FloatArray | None
    place: IntArray
    versions: list[Any]

    @property
    def kind(self) -> str:
        """Numeric or categorical."""
        return NUMERIC if self.levels is None else CATEGORICAL

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


class Grid:
    """Two axes, and rows with their weights in the cells that they make."""

    def __init__(
        self, a: FeatureAxis, b: FeatureAxis, weight: FloatArray | None, *, frequency: bool
    ) -> None:
        self.features = (a, b)
        self.axes = (a.axis, b.axis)
        self.places = (a.place, b.place)
        self.weight = np.ones(len(a.place)) if weight is None else weight
        self.frequency = frequency and weight is not None
        self.cell = kernel.members(*self.axes, *self.places)
        self.table = kernel.table(*self.axes, *self.places, self.weight)

    def cells(self, delta: FloatArray) -> kernel.Cells:
        """Moments in the cells."""
        return kernel.cells(*self.axes, self.cell, delta, self.weight, frequency=self.frequency)

    def surface(self, cells: kernel.Cells) -> kernel.Surface:
        """The surface, gaps filled."""
        fill = kernel.filling(cells.supported)
        return kernel.surface(*self.axes, kernel.filled(fill, cells.mean), self.table)


def second_differences(
    quotients: models.DifferenceQuotients,
    positions: tuple[int, int],
    axes: Sequence[FeatureAxis],
    *,
    progress: bool,
) -> tuple[FloatArray, FloatArray]:
    """math [55]: (row, side_a, side_b, output), and what rounding may add (output,)."""
    a, b = axes
    n_rows, n_pairs = quotients.table.n_rows, len(a.versions) * len(b.versions)
    together = max(1, models.BATCH_ROWS // n_pairs)
    found, error = [], np.zeros(1)
    bar = tqdm(
        range(0, n_rows, together), "second-order ALE", disable=not progress, delay=PROGRESS_DELAY
    )
    for begin in bar:
        part = slice(begin, begin + together)
        outputs, rounding = quotients.combined(
            positions,
            ([one[part] for one in a.versions], [one[part] for one in b.versions]),
            part,
        )
        error = np.maximum(error, rounding)
        found.append(np.diff(np.diff(outputs, axis=1), axis=2))
    delta = np.concatenate(found)
    names = f"{a.name} and {b.name}"
    flat = delta.reshape(len(delta), -1).sum(axis=1)
    check_finite(flat, "Second differences", names, "See what the model returns at these rows.")
    quotients.check_size()
    # Four outputs in place of two.
    return delta, 2 * error


def _one_output(
    grid: Grid,
    there: NDArray[np.bool_],
    weight: FloatArray | None,
    delta: FloatArray,
    error: float,
    centering: str,
) -> xr.Dataset:
    """Estimates for one output of the model, without attributes."""
    cells = grid.cells(delta)
    found = grid.surface(cells)
    supported = cells.supported
    surface = np.where(
        kernel.edges_of(supported), found.pure if centering == "ale" else found.start, np.nan
    )
    inside = grid.cell >= 0
    rows = np.full((len(there), *delta.shape[1:]), np.nan)
    rows[there] = np.where(inside, delta, np.nan)
    place = np.full((2, len(there)), NO_CELL, dtype=np.int64)
    place[:, there] = grid.places
    in_cells, at_edges = ("bin_a", "bin_b"), ("edge_a", "edge_b")
    data: dict[str, Any] = {
        "second_effect": (
            in_cells,
            np.where(supported, cells.mean, np.nan),
            {"long_name": "mean second difference in the cell", "units": OUTPUT_UNITS},
        ),
        "heterogeneity": (
            in_cells,
            cells.spread(),
            {
                "long_name": "standard deviation of second differences",
                "units": OUTPUT_UNITS,
                "ddof": 1,
            },
        ),
        "n_obs": (
            in_cells,
            cells.n_obs.astype(np.int64),
            {"long_name": "rows in the cell", "units": "rows"},
        ),
        "n_effective": (
            in_cells,
            cells.n_effective(),
            {"long_name": "effective number of rows in the cell", "units": "rows"},
        ),
        "supported": (
            in_cells,
            supported.astype(np.int8),
            {"long_name": "whether the cell has rows", "units": "1"},
        ),
        "surface": (
            at_edges,
            surface,
            {
                "long_name": "second-order effect"
                if centering == "ale"
                else "accumulated second differences",
                "units": OUTPUT_UNITS,
            },
        ),
        "second_difference": (
            ("obs", "side_a", "side_b"),
            rows,
            {"long_name": "second difference of the output", "units": OUTPUT_UNITS},
        ),
        "second_difference_error": (
            (),
            error,
            {"long_name": "numerical error of a second difference", "units": OUTPUT_UNITS},
        ),
    }
    coords: dict[str, Any] = {}
    for side, feature, of_rows in zip("ab", grid.features, place, strict=True):
        if feature.levels is not None:
            what = "level of the row"
            texts = not all(isinstance(level, int | float) for level in feature.levels) or any(
                isinstance(level, bool) for level in feature.levels
            )
            levels = np.array([level_text(one) if texts else one for one in feature.levels])
            coords[f"level_{side}"] = (f"edge_{side}", levels, {"long_name": feature.name})
            coords[f"side_{side}"] = (f"side_{side}", np.array(["below", "above"]))
        else:
            edges, what = feature.edges, "bin of the row"
            assert edges is not None
            for name, dim, values, text in (
                ("edge_value", "edge", edges, "position of the edge"),
                ("bin_left", "bin", edges[:-1], "left edge of the bin"),
                ("bin_right", "bin", edges[1:], "right edge of the bin"),
            ):
                coords[f"{name}_{side}"] = (
                    f"{dim}_{side}",
                    values,
                    {"long_name": f"{text}, {feature.name}", "units": X_UNITS},
                )
            coords[f"side_{side}"] = (f"side_{side}", np.array(["across"]))
        for dim, n in (("bin", grid.axes["ab".index(side)].n_bins), ("edge", None)):
            size = grid.axes["ab".index(side)].n_edges if n is None else n
            coords[f"{dim}_{side}"] = (f"{dim}_{side}", np.arange(size))
        if feature.x is not None:
            x = np.full(len(there), np.nan)
            x[there] = feature.x
            text = f"value of {feature.name}"
            data[f"x_{side}"] = ("obs", x, {"long_name": text, "units": X_UNITS})
        data[f"cell_{side}"] = ("obs", of_rows, {"long_name": what, "units": "1"})
    if weight is not None:
        data["weight"] = ("obs", weight, {"long_name": "row weight", "units": "1"})
    n_empty = int((~supported).sum())
    return xr.Dataset(data, coords, {"n_empty": n_empty, "n_filled": n_empty})


# --- the two features -----------------------------------------------------------------------------


def _pair_of(features: object, names: list[str]) -> list[int]:
    """Positions of the two columns."""
    if isinstance(features, str) or not isinstance(features, Sequence) or len(features) != 2:
        raise TypeError(f"features must be a pair of columns, as in ('a', 'b'); got {features!r}.")
    positions = [position_of(feature, names) for feature in features]
    if positions[0] == positions[1]:
        raise ValueError(f"features must be two different columns; got {features!r}.")
    return positions


def check_rules(bins: Any) -> list[BinRule]:
    """Rules of both features."""
    bins = DEFAULT_BINS if bins is None else bins
    rules = list(bins) if isinstance(bins, tuple | list) else [bins] * 2
    if len(rules) != 2:
        raise TypeError(f"bins must be one rule, or a pair of them; got {len(rules)}.")
    for rule in rules:
        check_rule(rule)
        if isinstance(rule, SEARCHING):
            raise TypeError(
                f"bins must be QuantileBins, EqualWidthBins or GivenBins here; got {rule!r}, which "
                f"searches for bins by local effects of one feature. Take the edges that it found: "
                f"GivenBins(edges)."
            )
    return rules


def _check_order(order: Order, table: models.Table, positions: list[int]) -> None:
    """Refuse an order that nobody would look at, or two would."""
    if isinstance(order, str):
        check_choice("order", order, ("as_is",))
    elif not isinstance(order, Mapping):
        categorical = [p for p in positions if not table.is_numeric(p)]
        if len(categorical) != 1:
            raise ValueError(
                f"order as a sequence of levels is for calls where one of the two features is "
                f"categorical; got {len(categorical)} that are. Say which is meant, as in "
                f"order={{{table.names[positions[0]]!r}: [...]}}."
            )


def order_of(order: Order, table: models.Table, position: int) -> list[Any] | str | None:
    """What is said of the levels of a column; None where it is numeric."""
    name = table.names[position]
    numeric = table.is_numeric(position)
    if isinstance(order, Mapping):
        unknown = [one for one in order if one not in table.names]
        if unknown:
            raise KeyError(f"order must name columns of X; got {unknown[0]!r}.")
        given = order.get(name)
    else:
        given = None if numeric else order
    if given is None:
        return None if numeric else "as_is"
    if isinstance(given, str):
        check_choice("order", given, ("as_is",))
        return given
    return list(given)


def _missing(
    table: models.Table, position: int, missing: str, used: NDArray[np.bool_], *, levels: bool
) -> NDArray[np.bool_]:
    """Rows without a value; refused where they are not allowed."""
    name = table.names[position]
    gaps = np.zeros(table.n_rows, dtype=bool)
    if not levels:
        allowed = "drop" if missing == "bin" else missing
        gaps[used] = np.isnan(models.check_column(table.take(used), position, missing=allowed))
        if gaps.any() and missing == "bin":
            raise ValueError(
                f"missing='bin' needs a categorical feature where values are missing; got "
                f"{int(gaps.sum())} missing values of the numeric feature {name!r} (first rows: "
                f"{first_rows(gaps)}), which no second difference reaches. Use missing='drop'; "
                f"what being missing does by itself is in ale(..., missing='bin')."
            )
        return gaps
    gaps = np.asarray(pd.isna(table.series(position))) & used
    if missing == "bin":
        return np.zeros(table.n_rows, dtype=bool)
    if gaps.any() and missing == "raise":
        raise ValueError(
            f"X of feature {name!r} must have a level in every row; got {int(gaps.sum())} missing "
            f"in {table.n_rows} rows (first rows: {first_rows(gaps)}). Drop or impute these rows, "
            f"leave them out, missing='drop', or make them a level of their own: missing='bin'."
        )
    return gaps


def axis_of(
    table: models.Table,
    position: int,
    rule: BinRule,
    order: list[Any] | str | None,
    counts: FloatArray | None,
) -> FeatureAxis:
    """Edges or levels of a column, the place of every row, and the versions that are asked for."""
    name = table.names[position]
    if order is not None:
        return _levels(name, table.series(position), order)
    x = table.column(position)
    low, high = float(x.min()), float(x.max())
    if low == high:
        raise ValueError(
            f"Feature {name!r} must vary; all {len(x)} rows have {low:.6g}. A constant feature "
            f"interacts with nothing."
        )
    axis = rule.cells(Column(name, x, low, high, counts))
    edges = binning.bin_edges(axis, np.arange(len(axis)), low, high)
    place = binning.bin_index(edges, x)
    return FeatureAxis(name, edges, None, x, place, [edges[place], edges[place + 1]])


def _levels(name: str, column: pd.Series[Any], order: list[Any] | str) -> FeatureAxis:
    """A categorical feature; rows without a level, where there are any, are one of their own."""
    gone = column.isna().to_numpy()
    found = list(pd.unique(column[~gone]))
    if isinstance(column.dtype, pd.CategoricalDtype):
        known = list(column.cat.categories)
        as_is = [level for level in known if level in found]
    else:
        known = found
        try:
            as_is = sorted(found)
        except TypeError:
            as_is = sorted(found, key=str)
    if gone.any():
        if MISSING_LEVEL in map(str, found):
            raise ValueError(
                f"Levels of feature {name!r} must not hold {MISSING_LEVEL!r} with missing='bin', "
                f"which names rows without a value so; got a level of that name. Rename it, or use "
                f"missing='drop'."
            )
        known, found, as_is = ([*one, MISSING_LEVEL] for one in (known, found, as_is))
    if isinstance(order, str):
        levels = as_is
    else:
        if gone.any() and MISSING_LEVEL not in order:
            order = [*order, MISSING_LEVEL]
        strange = [level for level in order if level not in known]
        absent = [level for level in found if level not in order]
        if strange or absent or len(set(order)) < len(order):
            raise ValueError(
                f"order must name every level of feature {name!r} once; it has "
                f"{', '.join(map(repr, as_is))}; got {', '.join(map(repr, order))}."
            )
        levels = [level for level in order if level in found]
    if len(levels) < 2:
        raise ValueError(
            f"Feature {name!r} must vary; all {len(column)} rows have {levels[0]!r}. A constant "
            f"feature interacts with nothing."
        )
    number = {level: at for at, level in enumerate(levels)}
    own = column.astype(object).mask(gone, MISSING_LEVEL) if gone.any() else column
    place = np.array([number[level] for level in own], dtype=np.int64)
    # A row that has the level: its value is one of the column's own type.
    example = np.array([int(np.argmax(place == at)) for at in range(len(levels))])
    last = len(levels) - 1
    versions = [column.array.take(example[np.clip(place + step, 0, last)]) for step in (-1, 0, 1)]
    plain = [level.item() if isinstance(level, np.generic) else level for level in levels]
    return FeatureAxis(name, None, plain, None, place, versions)
