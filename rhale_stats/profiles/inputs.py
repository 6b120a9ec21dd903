"""What every profile is made from: table, model, features, grids, weights, missing values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from rhale_stats.arguments.checks import check_choice, check_finite
from rhale_stats.arguments.progress import progress_bar
from rhale_stats.arguments.rows import as_edges
from rhale_stats.arguments.words import first_rows
from rhale_stats.arrays import profiles as kernel
from rhale_stats.arrays.binning import quantile_edges
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.models import differences
from rhale_stats.models.differences import MAX_CALL_ROWS, DifferenceQuotients, evaluated
from rhale_stats.models.options import ModelOptions
from rhale_stats.models.sample import Sample, columns_named, default_columns, in_order, levels_of
from rhale_stats.models.table import Table, Values, Versions, check_column
from rhale_stats.profiles.data import GRID_KINDS, N_GRID_OF_PAIR, Grid, ProfileAxis, grids
from rhale_stats.schema.dimensions import OUTPUT, with_outputs
from rhale_stats.schema.features import feature_coordinate
from rhale_stats.schema.kinds import PROFILE
from rhale_stats.schema.levels import NOMINAL
from rhale_stats.schema.padding import padded
from rhale_stats.schema.variable_table import PROFILE_VARIABLES
from rhale_stats.schema.variables import COUNTS, GRID_VALUE, dataset_of, variable

# Blocks of rows: which, their curves (output, row, grid), and what rounding can do to these.
Blocks: TypeAlias = Iterator[tuple[slice, FloatArray, FloatArray]]
# Spread about a spline is that of rows in so many parts of equal size.
SPREAD_BINS = 20


@dataclass(frozen=True)
class ProfileInputs(Sample):
    """Rows of positive weight, and the columns, and pairs of columns, that have a profile."""

    pairs: Sequence[Sequence[int]] = ()

    @classmethod
    def used(
        cls,
        X: Any,
        features: str | int | Sequence[str | int] | None,
        options: ModelOptions,
        every: Callable[[Table], list[int]] | None = None,
        percentiles: tuple[float, float] | None = None,
        pairs: Sequence[Any] = (),
    ) -> Self:
        """Check the arguments and keep the rows of positive weight; by default ``every`` column."""
        whole = cls.from_table(X, options, percentiles)
        every = every or (lambda table: default_columns(table)[0])
        if features is None:
            positions = every(whole.table)
        else:
            empty = pairs and not isinstance(features, str | int | np.integer) and not len(features)
            positions = [] if empty else columns_named(whole.table, features)
        for pair in pairs:
            if len(pair) != 2:
                raise TypeError(
                    f"features must be names, numbers, or pairs of them, as ('a', 'b'); got "
                    f"{pair!r}."
                )
        of_pairs = [columns_named(whole.table, pair) for pair in pairs]
        used = whole if whole.present.all() else whole.take(whole.present)
        if used.weight is not None and not used.frequency:
            # Their squares stay within range.
            used = replace(used, weight=used.weight / used.weight.max())
        return replace(used, positions=positions, pairs=of_pairs)

    def with_curve(self, axis: ProfileAxis) -> NDArray[np.bool_]:
        """Rows that have a curve: all, or those that have a value."""
        return axis.present | (self.missing == "bin")

    def weight_of(self, axis: ProfileAxis) -> FloatArray | None:
        """Weights of these rows."""
        return self.weight_at(self.with_curve(axis))

    def gone(self, axis: ProfileAxis) -> NDArray[np.bool_]:
        """Rows without a value of the feature."""
        if axis.pair is not None:
            return self.gone(axis.pair[0]) | self.gone(axis.pair[1])
        if axis.levels is None:
            return np.isnan(self.table.column(axis.position))
        frame = self.table.data
        assert isinstance(frame, pd.DataFrame), "arrays hold numbers"
        return frame.iloc[:, axis.position].isna().to_numpy()

    def places(self, axis: ProfileAxis, rows: NDArray[np.bool_] | None = None) -> kernel.Places:
        """Where rows are on the grid, by default all that have a curve."""
        x = axis.x[self.with_curve(axis) if rows is None else rows]
        if axis.levels is not None:
            return kernel.level_places(x.astype(np.intp), len(axis.levels))
        return kernel.places(axis.grid, x)

    def axes(self, grid: Grid, n_grid: int, grid_kind: str) -> list[ProfileAxis]:
        """All features with their grids."""
        check_choice("grid_kind", grid_kind, GRID_KINDS)
        names = self.table.names
        both = [f"{names[a]}:{names[b]}" for a, b in self.pairs]
        parts = [names[position] for pair in self.pairs for position in pair]
        own_grids = grids(grid, [*self.names, *both, *parts], names)

        def axis(position: int, points: Any, n: int) -> ProfileAxis:
            name = names[position]
            if self.table.is_numeric(position):
                return self._numbers(name, position, points, n, grid_kind)
            return self._levels(name, position, points)

        out = [
            axis(position, own_grids.get(names[position]), n_grid) for position in self.positions
        ]
        for name, pair in zip(both, self.pairs, strict=True):
            of_pair = own_grids.get(name, [own_grids.get(names[position]) for position in pair])
            a, b = [
                axis(position, points, min(n_grid, N_GRID_OF_PAIR))
                for position, points in zip(pair, of_pair, strict=True)
            ]
            out.append(ProfileAxis.of_pair(a, b))
            if self.missing == "bin" and not out[-1].present.all():
                raise ValueError(
                    f"missing must be 'drop' for the pair {name!r}, in which numbers are missing; "
                    f"got 'bin'."
                )
        return out

    def _numbers(
        self, name: str, position: int, own_grid: ArrayLike | None, n_grid: int, grid_kind: str
    ) -> ProfileAxis:
        x = check_column(self.table, position, missing=self.missing)
        inner, grid = self.inner(x), np.zeros(0)
        values = x[inner]
        if own_grid is not None:
            grid = as_edges(own_grid, f"grid of feature {name!r}")
        elif values.min() < values.max():
            grid = grid_of(values, self.weight_at(inner), n_grid, grid_kind)
        return self.axis_of_numbers(name, position, x, grid, integers=own_grid is None)

    def axis_of_numbers(
        self, name: str, position: int, x: FloatArray, grid: FloatArray, *, integers: bool
    ) -> ProfileAxis:
        """A feature of numbers with its grid, which is empty of a constant one.

        With ``integers`` the points of a column of whole numbers are whole, too.
        """
        kind = "constant"
        if len(grid):
            kind = "discrete" if self.table.is_discrete(position) else "continuous"
            grid = self.table.whole(position, grid, integers=integers)
        values: Values = grid
        # Whole numbers stay whole for the model where its column has them.
        if isinstance(self.table.data, pd.DataFrame) and (grid == np.round(grid)).all():
            dtype = self.table.dtypes[position]
            if pd.api.types.is_integer_dtype(dtype):
                values = pd.array(grid.astype(np.int64), dtype=dtype)
        return ProfileAxis(name, position, kind, x, grid, values, None)

    def _levels(self, name: str, position: int, own_grid: ArrayLike | None) -> ProfileAxis:
        levels = levels_of(self, position)
        if own_grid is not None:
            levels = in_order(np.asarray(own_grid).ravel().tolist(), levels, "grid")
        x = np.where(levels.code < 0, np.nan, levels.code)
        values = self.table.series(position).array[levels.first]
        return ProfileAxis(
            name, position, NOMINAL, x, np.arange(float(len(values))), values, levels.texts
        )

    def all_curves(
        self, quotients: DifferenceQuotients, axes: Sequence[ProfileAxis]
    ) -> Iterator[Blocks]:
        """What `curves` gives of every feature; of a small table, several features from one call.

        Those of one are to be used before those of the next.
        """
        sizes = [int(self.with_curve(axis).sum()) * len(axis.grid) for axis in axes]
        most = min(MAX_CALL_ROWS, quotients.batch_rows)
        begin = 0
        while begin < len(axes):
            end = begin + 1
            while end < len(axes) and sum(sizes[begin : end + 1]) <= most:
                if any(axis.pair for axis in axes[begin : end + 1]):
                    break
                end += 1
            if end - begin == 1:
                yield self.curves(quotients, axes[begin])
            else:
                yield from self._together(quotients, axes[begin:end])
            begin = end

    def _together(
        self, quotients: DifferenceQuotients, axes: Sequence[ProfileAxis]
    ) -> Iterator[Blocks]:
        some = [axis for axis in axes if len(axis.grid)]
        answers = evaluated(quotients, [self._versions(axis) for axis in some])
        for axis in axes:
            if not len(axis.grid):
                yield iter(())
                continue
            curves = np.stack(next(answers)[0], axis=1).astype(np.float64)
            error = quotients.rounding(np.abs(curves).max(axis=(0, 1))[None])
            yield iter([_block(axis, slice(0, len(curves)), curves, error, len(curves))])

    def _versions(self, axis: ProfileAxis) -> Versions:
        """All rows that have a curve, at every point of the grid."""
        rows = self.with_curve(axis)
        n = int(rows.sum())
        columns = [differences.repeated(axis.values, point, n) for point in range(len(axis.grid))]
        return Versions(axis.position, columns, None if rows.all() else rows)

    def curves(self, quotients: DifferenceQuotients, axis: ProfileAxis) -> Blocks:
        """Blocks of the rows that have a curve, with (output, row, grid) and its rounding.

        So a mean curve of very many rows needs the memory of one block.
        """
        quotients_of_rows = quotients.take(self.with_curve(axis))
        # Several arrays of the size of the curves are needed at a time.
        most = differences.BATCH_BYTES // (4 * 8 * max(len(axis.grid), 1))
        together = max(1, min(differences.BATCH_ROWS, most))
        for begin in range(0, quotients_of_rows.table.n_rows, together):
            rows = slice(begin, min(begin + together, quotients_of_rows.table.n_rows))
            some = quotients_of_rows.take(np.arange(rows.start, rows.stop))
            if axis.pair is None:
                curves, error = some.curves(axis.position, axis.values)
            else:
                curves, error = _pair_curves(some, axis.pair)
            yield _block(axis, rows, curves, error, quotients_of_rows.table.n_rows)

    def without(self, quotients: DifferenceQuotients, axis: ProfileAxis) -> FloatArray:
        """The output of all rows without a value of the feature, (output, row)."""
        data = self.table.data
        nothing: Values = np.full(1, np.nan)
        if isinstance(data, pd.DataFrame):
            # As the column itself holds it: NaN or NA.
            nothing = data.iloc[:, axis.position][self.gone(axis)].array[:1]
        answers = quotients.curves(axis.position, nothing)[0][:, 0]
        check_finite(
            answers.sum(axis=1),
            "Outputs at missing values",
            axis.name,
            "The model must answer where the feature has no value; else take missing='drop'.",
        )
        return np.ascontiguousarray(answers.T)

    def labelled(
        self,
        axes: Sequence[ProfileAxis],
        estimates: Sequence[Mapping[str, NDArray[Any]]],
        quotients: DifferenceQuotients | None,
        *,
        method: str,
        centering: str,
    ) -> xr.Dataset:
        """Results of all features, padded to the longest grid."""
        labels: Sequence[Any] = []
        names: Sequence[str] = []
        calls: dict[str, Any] = {"model_calls": 0, "model_rows": 0}
        if quotients is not None:
            quotients.check_size()
            outputs = quotients.outputs
            labels, names = outputs.labels, outputs.names
            calls = {"model_calls": outputs.n_calls, "model_rows": outputs.n_rows}
            calls = {"answers_from": outputs.answers_from, **calls}
        n_grid = max(*[len(axis.grid) for axis in axes], 1)
        sizes = {"grid": n_grid, "grid_other": n_grid, "obs": self.table.n_rows}
        facts = FACTS | {"curve": {"estimator": ESTIMATORS[method], "centering": centering}}
        data = {}
        for name in estimates[0]:
            each = [np.asarray(estimate[name], dtype=np.float64) for estimate in estimates]
            dims, filler = PROFILE_VARIABLES[name][0], 0.0 if name in COUNTS else np.nan
            if name in OF_ROWS:
                # An M-plot counts them bin by bin.
                dims = ("feature", "grid") if each[0].ndim else dims
                values = padded(each, [sizes[dim] for dim in dims[1:]], missing=filler)
                values = values.astype(np.int64) if name == "n_obs" else values
            else:
                # A constant feature met before any answer knows of one output only.
                n_outputs = max(len(labels), 1)
                each = [np.broadcast_to(array, (n_outputs, *array.shape[1:])) for array in each]
                shape = (n_outputs, *[sizes[dim] for dim in dims[1:]])
                values = padded(each, shape, missing=filler).swapaxes(0, 1)
                dims = (OUTPUT, *dims)
            data[name] = variable(name, values, PROFILE, dims, **facts.get(name, {}))
        calls = {"n_rows": self.table.n_rows, **calls}
        attrs = {"method": method, "centering": centering, **self.facts, **calls}
        out = dataset_of(data, _coordinates(axes, n_grid, self.units), attrs)
        # math [6]: a frequency weight is so many rows.
        counts = np.ones(self.table.n_rows)
        if self.weight is not None and self.frequency:
            counts = self.weight
        gone = np.array([(self.gone(axis), ~axis.present) for axis in axes])
        n_missing, n_absent = (gone @ counts).astype(np.int64).T
        n_beyond = n_absent - n_missing
        if n_beyond.any():
            out["n_beyond"] = variable("n_beyond", n_beyond, PROFILE)
        if n_missing.any() or n_beyond.any():
            out["n_missing"] = variable("n_missing", n_missing, PROFILE)
        if "missing_curve" in out and out["missing_curve"].isnull().all():
            out = out.drop_vars(["missing_curve", "missing_curve_se"])
        return with_outputs(out, labels, names)

    def with_rows(self, out: xr.Dataset, axes: Sequence[ProfileAxis]) -> xr.Dataset:
        """The result with the values and weights of the rows, and their labels."""
        out = out.assign(x=variable("x", np.stack([axis.x for axis in axes]), PROFILE))
        out = out.assign_coords(obs=self.obs)
        if self.weight is None:
            return out
        largest = "" if self.frequency else ", the largest 1"
        kind = self.options.weight_kind
        about = {"long_name": f"{kind} weight{largest}", "units": "1"}
        return out.assign(weight=("obs", self.weight, about))


def _pair_curves(
    quotients: DifferenceQuotients, pair: tuple[ProfileAxis, ProfileAxis]
) -> tuple[FloatArray, FloatArray]:
    """The output of every row at all pairs of points, (row, pair, output), and its rounding."""
    a, b = pair
    n_rows, n_pairs, curves_of_rows = quotients.table.n_rows, len(a.grid) * len(b.grid), []
    together, error = max(1, quotients.batch_rows // n_pairs), np.zeros(1)
    for begin in range(0, n_rows, together):
        rows = slice(begin, min(begin + together, n_rows))
        n = rows.stop - rows.start
        versions = [
            [differences.repeated(axis.values, point, n) for point in range(len(axis.grid))]
            for axis in pair
        ]
        outputs, rounding = quotients.combined(
            (a.position, b.position), (versions[0], versions[1]), rows
        )
        curves_of_rows.append(outputs.reshape(n, n_pairs, -1))
        error = np.maximum(error, rounding)
    return np.concatenate(curves_of_rows), error


def _block(
    axis: ProfileAxis, rows: slice, curves: FloatArray, error: FloatArray, n_rows: int
) -> tuple[slice, FloatArray, FloatArray]:
    """Rows, their curves (output, row, grid), given (row, grid, output), and the rounding."""
    # The largest output shows whether there is anything to look for.
    if not np.isfinite(error).all():
        sums = np.zeros(n_rows)
        advice = "See what the model returns at these rows along the grid."
        sums[rows] = curves.sum(axis=(1, 2))
        check_finite(sums, "ICE curves", axis.name, advice)
    return rows, np.ascontiguousarray(curves.transpose(2, 0, 1)), error


def _coordinates(
    axes: Sequence[ProfileAxis], n_grid: int, units: Mapping[str, str]
) -> dict[str, Any]:
    """Features with their kinds and units, and the points of their grids, padded."""
    coords: dict[str, Any] = {
        "feature": feature_coordinate([axis.name for axis in axes]),
        "feature_kind": ("feature", np.array([axis.kind for axis in axes])),
        "feature_units": ("feature", np.array([units.get(axis.name, "") for axis in axes])),
        "n_grid": (
            "feature",
            [len(axis.grid) for axis in axes],
            {"long_name": "points of the grid"},
        ),
        "grid": ("grid", np.arange(n_grid), {"long_name": "point of the grid"}),
        "grid_value": _along_grids([axis.grid for axis in axes], n_grid),
    }
    if any(axis.levels is not None for axis in axes):
        levels = [axis.levels or [] for axis in axes]
        coords["level"] = _along_grids(levels, n_grid, "level of the category")
    if any(axis.pair is not None for axis in axes):
        coords |= _pair_coordinates(axes, n_grid)
    return coords


def _along_grids(each: Sequence[Any], n_grid: int, texts: str = "") -> tuple[Any, ...]:
    """Points of all features, padded: numbers, or ``texts``, which are called so."""
    dims = ("feature", "grid")
    if not texts:
        return dims, padded(each, (n_grid,)), GRID_VALUE
    values = padded(each, (n_grid,), missing="", dtype=object).astype(str)
    return dims, values, {"long_name": texts}


def _pair_coordinates(axes: Sequence[ProfileAxis], n_grid: int) -> dict[str, Any]:
    """Both features of pairs, and the points of the pairs: values, or levels of categories."""
    out: dict[str, Any] = {}
    for side, letter in enumerate("ab"):
        names, values = [""] * len(axes), [np.zeros(0)] * len(axes)
        levels: list[list[str]] = [[]] * len(axes)
        for number, pair in enumerate(axis.pair for axis in axes):
            if pair is not None:
                axis = pair[side]
                points = np.indices([len(part.grid) for part in pair])[side].ravel()
                names[number], values[number] = axis.name, axis.grid[points]
                levels[number] = [axis.levels[p] for p in points] if axis.levels else []
        about = {"long_name": f"feature {letter} of the pair"}
        out[f"feature_{letter}"] = ("feature", np.array(names), about)
        out[f"grid_value_{letter}"] = _along_grids(values, n_grid)
        out[f"level_{letter}"] = _along_grids(levels, n_grid, f"level of feature {letter}")
    return out


# Facts of rows, the same for all outputs.
OF_ROWS = ("n_obs", "n_effective", "weight_share", "bin_left", "bin_right")
BESIDE = ("missing_curve", "missing_curve_se")
ESTIMATORS = {
    "pdp": "mean of the ICE curves, math [41]",
    "ice": "mean of the ICE curves, math [41]",
    "m_plot": "mean output of the rows in the bin, math [42]",
    "shap_dependence": "smoothing spline through the Shapley values, math [45]",
}
BY_ROWS: dict[str, str | int | float] = {"source": "rows", "kind": "central limit theorem"}
FACTS: dict[str, dict[str, str | int | float]] = {
    "curve_std": {"ddof": 1},
    "curve_se": BY_ROWS | {"target": "curve"},
    "curve_cov": BY_ROWS | {"target": "curve"},
    "missing_curve_se": BY_ROWS | {"target": "missing_curve"},
}


def grid_of(x: FloatArray, weight: FloatArray | None, n_grid: int, kind: str) -> FloatArray:
    """Points of a feature that varies: its distinct values, or so many quantiles or equal steps."""
    values = np.unique(x)
    if len(values) <= n_grid:
        return values
    if kind == "equal_width":
        return np.linspace(values[0], values[-1], n_grid)
    return quantile_edges(x, n_grid - 1, weight)


def with_slopes(table: Table) -> list[int]:
    """Columns along which curves have derivatives; categories have none, and are left out."""
    chosen = [p for p in range(len(table.names)) if table.is_numeric(p)]
    if not chosen:
        raise TypeError("X must have a column of numbers for derivatives; got none.")
    return chosen


def with_bar(axes: Sequence[ProfileAxis], what: str, *, progress: bool) -> Iterator[ProfileAxis]:
    """The features, with a progress bar."""
    with progress_bar(len(axes), what, "feature", progress=progress) as bar:
        for axis in axes:
            yield axis
            bar.update()


def counts_of(totals: kernel.Totals, n_rows: int) -> dict[str, NDArray[Any]]:
    """Rows with a value: all of them, repeated ones counted; and how many independent ones."""
    n_obs = totals.weight if totals.counts else n_rows
    return {"n_obs": np.array(float(n_obs)), "n_effective": np.array(float(totals.n_effective))}


def no_rows(n_outputs: int) -> dict[str, NDArray[Any]]:
    """Of a constant feature, which has no grid."""
    none, nan = np.zeros((n_outputs, 0)), np.full(n_outputs, np.nan)
    return {
        **dict.fromkeys(("curve", "curve_std", "curve_se"), none),
        "curve_cov": np.zeros((n_outputs, 0, 0)),
        **dict.fromkeys(("curve_offset", "heterogeneity_output", "importance"), nan),
        "weight_share": np.zeros(0),
    }


def estimates_of(
    curve: FloatArray, spread: FloatArray, covariance: FloatArray, offset: float, share: FloatArray
) -> dict[str, Any]:
    """What a profile says of the curve of one output."""
    return {
        "curve": curve,
        "curve_std": spread,
        "curve_se": np.sqrt(np.maximum(np.diagonal(covariance), 0.0)),
        "curve_cov": covariance,
        "curve_offset": offset,
        "heterogeneity_output": kernel.root_mean_square(spread, share),
        "importance": kernel.importance(curve, share),
    }


def of_outputs(estimates: Sequence[Mapping[str, Any]]) -> dict[str, NDArray[Any]]:
    """Estimates of all outputs of one feature, (output, ...)."""
    return {name: np.stack([estimate[name] for estimate in estimates]) for name in estimates[0]}


def at_rows(quotients: DifferenceQuotients) -> FloatArray:
    """The model's answer at the rows, (row, output)."""
    answers = quotients.at_rows().astype(np.float64, copy=False)
    bad = np.asarray(~np.isfinite(answers).all(axis=1))
    if bad.any():
        raise ValueError(
            f"model must return finite numbers; got others in {int(bad.sum())} of {len(bad)} rows "
            f"(first rows: {first_rows(bad)}). See what it returns at these rows."
        )
    return answers


def bin_beside(
    inputs: ProfileInputs,
    axis: ProfileAxis,
    answers: FloatArray,
    each: Sequence[kernel.BinMeans],
    x: FloatArray,
    centering: str,
) -> dict[str, NDArray[Any]]:
    """math [42]: the mean output of the rows without a value, on the scale of the curve."""
    if inputs.missing != "bin":
        return {}
    if axis.present.all() or not len(x):
        return dict.fromkeys(BESIDE, np.full(len(each), np.nan))
    values = []
    for f, means in zip(answers.T, each, strict=True):
        gone, others = [
            kernel.mean_of_rows(f[rows, None], inputs.weight_at(rows), frequency=inputs.frequency)
            for rows in (~axis.present, axis.present)
        ]
        has_rows = means.share > 0
        spread = means.variance if means.robust is None else means.robust
        centre = kernel.centre_of(centering, x[has_rows], means.share[has_rows])
        # Its error: that of a mean over the same rows, or of fixed parts of the bins' means.
        constant = float(centre**2 @ (spread[has_rows] / means.n_effective[has_rows]))
        if centering == "mean":
            constant = others.variance
        elif centering == "none":
            constant = 0.0
        value = float(gone.value[0] - centre @ means.mean[has_rows])
        values.append((value, np.sqrt(gone.variance + constant)))
    return dict(zip(BESIDE, np.array(values).T, strict=True))
