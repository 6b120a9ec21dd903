"""How local effects of the columns are taken: by derivatives or differences, decided by probes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from tqdm import tqdm

from rhale_stats.arguments.checks import check_finite
from rhale_stats.arguments.progress import progress_bar
from rhale_stats.arguments.words import warn
from rhale_stats.arrays import local_effects as kernel
from rhale_stats.arrays.moments import FloatArray, need_squares
from rhale_stats.bins.rule import BinRule
from rhale_stats.bins.rules import GivenBins
from rhale_stats.local.labelled import labelled
from rhale_stats.local.rows import difference_edges, repeated_values, with_weight
from rhale_stats.models.differences import (
    DifferenceQuotients,
    Differences,
    Steps,
    answered,
    no_differences,
)
from rhale_stats.models.probes import (
    JumpWarning,
    Probe,
    gradient_columns,
    jacobian_deviation,
    jacobian_deviations,
    looked_at,
    probed,
    refuse_jacobian,
    refuse_useless,
    warn_of_gradient,
    warning_text,
)
from rhale_stats.models.sample import ALL_ROWS, Sample
from rhale_stats.models.table import Versions, check_column

# Features that a warning names.
SOME_FEATURES = 5
# Derivatives that are there before differences are taken.
GIVEN = ("jacobian", "gradient")


class FeatureMethod(NamedTuple):
    """How local effects of one feature are taken ("constant": not), and the result of its probe."""

    kind: str
    probe: Probe | None = None


def axis_values(sample: Sample, bins: BinRule | None = None) -> FloatArray:
    """Values of the columns, which are numbers, (row, column); checked.

    Beyond the percentiles of the sample, or the edges of given ``bins``, they are NaN.
    """
    x = np.empty((sample.table.n_rows, len(sample.positions)), order="F")
    for column, position in enumerate(sample.positions):
        values = check_column(sample.table, position, missing=sample.missing)
        x[:, column] = on_axis(sample, position, values, bins)
    _check_weight(sample, x)
    return x


def on_axis(sample: Sample, position: int, x: FloatArray, bins: BinRule | None) -> FloatArray:
    """Values of a column, NaN beyond the percentiles of the sample, or the edges of given bins."""
    beyond = ~sample.inner(x)
    name = sample.table.names[position]
    if isinstance(bins, GivenBins):
        low, high = bins.limits(name)
        beyond |= (x < low) | (x > high)
    if beyond.any() and sample.missing == "bin" and (beyond & ~np.isnan(x)).any():
        raise ValueError(
            f"missing must be 'drop' where rows of feature {name!r} lie beyond its percentiles or "
            f"edges: they are left out of it; got 'bin'."
        )
    if beyond.all():
        raise ValueError(
            f"X must have rows with feature {name!r} between its percentiles or edges; got none. "
            f"Widen them."
        )
    return np.where(beyond, np.nan, x)


@dataclass(frozen=True)
class Request:
    """How local effects are to be taken, and what was found of the model meanwhile.

    ``kind`` is the method wanted; with ``auto`` slopes across cells stand in for derivatives that
    do not hold.
    """

    sample: Sample
    kind: str
    auto: bool
    bins: BinRule | None
    quotients: DifferenceQuotients | None
    derivatives: Mapping[int, Differences] = field(default_factory=dict)
    jumping: list[tuple[str, Probe]] = field(default_factory=list)
    differing: list[tuple[str, float]] = field(default_factory=list)
    few_values: list[tuple[str, int]] = field(default_factory=list)

    def with_gradient(self) -> Request:
        """The same by the gradient of the model, which is asked for, or taken where there is one.

        Raises
        ------
        ValueError
            It is asked for, and the model has none.
        """
        assert self.quotients is not None, "a gradient is that of a model"
        table = self.sample.table
        # Discrete columns get differences between their levels.
        columns = [p for p in self.sample.positions if not (self.auto and table.has_cells(p))]
        derivatives = gradient_columns(self.quotients, columns, required=not self.auto)
        if derivatives:
            return replace(self, kind="gradient", derivatives=derivatives)
        if self.kind == "gradient":
            raise ValueError(
                "method='gradient' needs a model that gives its gradient, as those of torch and "
                "JAX do; see adapters(). Use method='auto', pass jacobian=, or an Adapter."
            )
        return self

    def local(self, x: FloatArray, *, progress: bool) -> xr.Dataset:
        """Local effects of all columns, whose values are known, as `local_effects` returns."""
        with self._bar(progress=progress) as bar:
            differences = self._features(x, bar)
        self.conclude()
        return self._labelled(x, differences)

    def parts(self, groups: Sequence[Sequence[int]], *, progress: bool) -> Iterator[xr.Dataset]:
        """Local effects of groups of the columns, those before given up."""
        with self._bar(progress=progress) as bar:
            for group in groups:
                yield replace(self, sample=self.sample.of_columns(group))._part(bar)
        self.conclude()

    def _part(self, bar: tqdm[Any]) -> xr.Dataset:
        x = axis_values(self.sample, self.bins)
        return self._labelled(x, self._features(x, bar))

    def _bar(self, *, progress: bool) -> tqdm[Any]:
        return progress_bar(
            len(self.sample.positions),
            "local effects",
            "feature",
            progress=progress and self.quotients is not None,
        )

    def _features(self, x: FloatArray, bar: tqdm[Any]) -> list[Differences]:
        """Local effects of the columns; of a small table those of several from each call."""
        quotients, ways, differences = self.quotients, self._ways(x), []
        # Steps are by the precision that the probes found, whatever the calls.
        precision = 0.0 if quotients is None else quotients.outputs.step_precision
        most = 0 if quotients is None else quotients.batch_rows
        together = max(1, most // (2 * len(x)))
        for begin in range(0, len(ways), together):
            columns = range(begin, min(begin + together, len(ways)))
            steps = {
                column: self._feature(column, x[:, column], ways[column], precision)
                for column in columns
            }
            some = answered(quotients, steps)
            for column in columns:
                differences.append(some.pop(column))
                bar.update()
        return differences

    def _labelled(self, x: FloatArray, differences: list[Differences]) -> xr.Dataset:
        """Local effects as a Dataset, which takes their place in memory."""
        sample, quotients = self.sample, self.quotients
        absent = {}
        if quotients is not None and sample.missing == "bin":
            absent = {
                column: effect_of_missing(sample, quotients, position, x[:, column])
                for column, position in enumerate(sample.positions)
                if np.isnan(x[:, column]).any()
            }
        beyond = None
        if sample.percentiles != ALL_ROWS or isinstance(self.bins, GivenBins):
            beyond = np.isnan(x)
            for column, position in enumerate(sample.positions):
                beyond[:, column] &= ~np.isnan(sample.table.column(position))
        return labelled(sample, x, differences, quotients, absent, beyond)

    def _feature(
        self, column: int, x: FloatArray, way: FeatureMethod, precision: float
    ) -> Steps[Differences]:
        """Local effects of one feature, at the rows that have a value."""
        if way.kind == "constant":
            return no_differences(self.kind)  # there is no effect to estimate
        position, name = self.sample.positions[column], self.sample.names[column]
        present = ~np.isnan(x)
        if way.kind in GIVEN:
            differences = self.derivatives[position].take(present)
        else:
            assert self.quotients is not None
            x_present, rows = (x, None) if present.all() else (x[present], present)
            method, edges = way.kind, None
            if method == "finite_difference":
                weight = self.sample.weight_at(present)
                counted = self.sample.frequency
                edges = difference_edges(self.bins, name, x_present, weight, counted=counted)
                edges = self.sample.table.whole(position, edges)
                arguments = kernel.cell_ends(edges, x_present)[::-1]
            else:
                step = kernel.central_step(x_present, precision)
                arguments = kernel.central_arguments(
                    x_present, step, x_present.min(), x_present.max()
                )
            outputs, stored = yield Versions(position, arguments, rows)
            differences = self.quotients.quotient(outputs, stored, method, edges)
            if edges is not None and kernel.are_repeated(*with_weight(x_present, weight, counted)):
                differences = yield from self._with_left(
                    differences, position, x_present, present, edges, outputs, stored
                )
        if way.kind == "central_difference" and way.probe is not None:
            error = differences.error + way.probe.truncation
            differences = replace(differences, error=error, bias=way.probe.bias)
        if way.kind != "finite_difference":
            differences = self._between_values(differences, x[present], present, name)
        check_finite(
            differences.local_effect.sum(axis=1),
            "Local effects",
            name,
            "See what the model returns at these rows.",
        )
        return differences

    def _between_values(
        self, differences: Differences, x: FloatArray, present: NDArray[np.bool_], name: str
    ) -> Differences:
        """Derivatives at few values say little of the effect between them: by a rule of order 4."""
        weight = self.sample.weight_at(present)
        some, counts = with_weight(x, weight, self.sample.frequency)
        if repeated_values(some, counts) is None:
            return differences
        values, value_of = np.unique(some, return_inverse=True)
        self.few_values.append((name, len(values)))
        edges = kernel.cells_around(values, np.bincount(value_of, counts).astype(float))
        right, left, error = kernel.between_values(edges, x, differences.local_effect, weight)
        bias = error if differences.bias is None else error + differences.bias
        error = differences.error + error
        return replace(
            differences, local_effect=right, left=left, edges=edges, error=error, bias=bias
        )

    def _with_left(
        self,
        differences: Differences,
        position: int,
        x: FloatArray,
        present: NDArray[np.bool_],
        edges: FloatArray,
        outputs: Sequence[FloatArray],
        stored: Sequence[Any],
    ) -> Steps[Differences]:
        """With slopes across the cell to the left at rows on an edge, its upper end."""
        assert self.quotients is not None
        rows, left_of = kernel.on_edges(edges, x)
        if not len(rows):
            return differences
        before, argument = yield Versions(position, [edges[left_of]], np.flatnonzero(present)[rows])
        ends = [outputs[1][rows], *before]
        slopes = self.quotients.quotient(ends, [stored[1][rows], *argument], differences.method)
        left = np.full(differences.local_effect.shape, np.nan)
        left[rows] = slopes.local_effect
        return replace(differences, left=left, error=np.maximum(differences.error, slopes.error))

    def _ways(self, x: FloatArray) -> list[FeatureMethod]:
        """How local effects of every column are taken; derivatives where the probes allow them."""
        table, quotients, positions = self.sample.table, self.quotients, self.sample.positions
        ways, looks = {}, {}
        for position, x_of_feature in zip(positions, x.T, strict=True):
            present = ~np.isnan(x_of_feature)
            if np.nanmin(x_of_feature) == np.nanmax(x_of_feature):
                ways[position] = FeatureMethod("constant")
            elif quotients is None or self.kind == "finite_difference":
                ways[position] = FeatureMethod(self.kind)
            elif self._has_cells(position, x_of_feature):
                ways[position] = FeatureMethod("finite_difference")
            else:
                looks[position] = looked_at(table, position, present & self.sample.present)
        if quotients is not None:
            for position, probe in probed(quotients, looks).items():
                ways[position] = FeatureMethod(self._kind(position, probe), probe)
        return [ways[position] for position in positions]

    def _has_cells(self, position: int, x: FloatArray) -> bool:
        """Whether differences are taken between values, where the choice of method is free.

        The output is not defined between two levels, and derivatives at few values do not say how
        it changes from one to the next.
        """
        table = self.sample.table
        if not self.auto:
            return self.kind != "jacobian" and table.has_cells(
                position, slope_of=table.names[position]
            )
        present = ~np.isnan(x)
        weight = self.sample.weight_at(present)
        some, counts = with_weight(x[present], weight, self.sample.frequency)
        if table.has_cells(position) or repeated_values(some, counts) is not None:
            return True
        assert self.quotients is not None, "a model is asked"
        return not self.quotients.takes_fractions(position)

    def _kind(self, position: int, probe: Probe) -> str:
        """How local effects of one feature are taken, by the result of its probe."""
        name = self.sample.table.names[position]
        if not probe.holds(exact=self.kind == "gradient"):
            if not self.auto:
                refuse_useless(name, probe)
            self.jumping.append((name, probe))
            return "finite_difference" if self.auto else self.kind
        if self.kind == "jacobian":
            deviation, agrees = jacobian_deviation(
                probe, self.derivatives[position].take(probe.rows)
            )
            if not agrees:
                self.differing.append((name, deviation))
        elif self.kind == "gradient":
            shares, agree = jacobian_deviations(probe, self.derivatives[position].take(probe.rows))
            if not agree.all():
                self.differing.append((name, float(shares.max())))
                return "central_difference"
        return self.kind

    def conclude(self) -> None:
        """Refuse a Jacobian that is not that of the model; warn of jumps and gradients, once."""
        if self.few_values:
            warn(_few_values_text(self.few_values, has_model=self.quotients is not None))
        if self.differing and self.kind == "jacobian":
            refuse_jacobian(self.differing)
        if self.differing:
            warn_of_gradient(self.differing)
        if self.jumping:
            then = f"method={self.kind!r} does not detect them. Use method='auto'."
            if self.auto:
                then = (
                    "slopes across cells were taken. "
                    "method='finite_difference' takes them without a probe."
                )
            warn(warning_text(self.jumping, then), JumpWarning)


def _few_values_text(features: Sequence[tuple[str, int]], *, has_model: bool) -> str:
    """Of which features derivatives are known at few values, and what to do."""
    some = ", ".join(f"{name!r} ({n} values)" for name, n in features[:SOME_FEATURES])
    more = f", and {len(features) - SOME_FEATURES} others" if len(features) > SOME_FEATURES else ""
    instead = "method='auto' takes" if has_model else "Pass the model as well: method='auto' takes"
    return (
        f"Derivatives are known at few values of {some}{more}. The effect between two values was "
        f"interpolated by a cubic spline through the mean derivatives; standard errors hold the "
        f"error of that. {instead} differences of the model between neighbouring values, "
        f"which need no interpolation."
    )


def _check_weight(sample: Sample, x: FloatArray) -> None:
    """Raise ``ValueError`` if all rows with a value of a feature have weight 0."""
    for column, name in enumerate(sample.names):
        present = ~np.isnan(x[:, column])
        if not sample.present[present].any():
            raise ValueError(
                f"weights must be positive in some row with a value of feature {name!r}; all "
                f"{int(present.sum())} such rows have weight 0. Leave the feature out: "
                f"features=[...]."
            )


def effect_of_missing(
    sample: Sample, quotients: DifferenceQuotients, position: int, x: FloatArray
) -> dict[str, FloatArray]:
    """Effect of a missing value against the median of the others, in the rows that miss it."""
    gone, weight = np.isnan(x), sample.weight
    w = np.ones(len(x)) if weight is None else weight
    reference = np.quantile(
        x[~gone], 0.5, method="inverted_cdf", weights=w[~gone] if weight is not None else None
    )
    references = np.full(gone.sum(), reference)
    change, _ = quotients.take(gone).between(
        position, *quotients.table.in_column_type(position, gone, references)
    )
    w = w[gone]
    total, squares = w.sum(), (w if sample.frequency else w**2).sum()
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = w @ change / total
        spread = np.sqrt(w @ (change - mean) ** 2 / (total - squares / total))
        standard_error = spread * np.sqrt(squares) / total
        if need_squares(w, frequency=sample.frequency):
            # A sandwich, math [26].
            left = 1 - 2 * (w**3).sum() / (total * squares) + squares / total**2
            standard_error = np.sqrt(w**2 @ (change - mean) ** 2 / left) / total
    return {
        "missing_effect": mean,
        "missing_effect_se": standard_error,
        "missing_spread": spread,
        "missing_reference": np.full_like(mean, reference),
    }
