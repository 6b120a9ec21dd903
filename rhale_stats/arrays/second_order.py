"""Second-order effects on a grid of cells, math [55]-[59], [98]: means, sums, influence, errors.

Along each of two features there are edges. For numbers they are edges of bins, and a row lies
between two of them. For categories every level is an edge, and a row is at one edge; its
differences to the level below and to the level above count in both steps. Arrays over the two
features have them as last two axes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rhale_stats.arrays import leverage
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.arrays.skewness import Skewness, third_cumulant

# Largest number of values in a block of influences.
BLOCK = 1 << 22


class Axis(NamedTuple):
    """Edges along one feature, and whether they are levels."""

    n_edges: int
    levels: bool

    @property
    def n_bins(self) -> int:
        """Number of steps between edges."""
        return self.n_edges - 1

    @property
    def n_places(self) -> int:
        """Number of places where a row can be: bins or levels."""
        return self.n_edges if self.levels else self.n_bins

    @property
    def sides(self) -> tuple[int, ...]:
        """Steps in which a row has a difference, relative to its place."""
        return (-1, 0) if self.levels else (0,)

    def values(self) -> FloatArray:
        """(place, edge): weights of edges in the value at a row: half each, or 1 at its level."""
        at_edges = np.eye(self.n_edges)
        return at_edges if self.levels else (at_edges[:-1] + at_edges[1:]) / 2

    def rows(self) -> FloatArray:
        """(bin, place): which rows have a difference in a step."""
        if not self.levels:
            return np.eye(self.n_bins)
        at_levels = np.eye(self.n_edges)
        return at_levels[:-1] + at_levels[1:]

    def means_over(self, weight: FloatArray) -> FloatArray:
        """(..., bin, place): the rows that the main effect of a step is a mean over.

        These are the rows of the step, or all rows if it has none.
        """
        rows = self.rows()
        occupied = (rows @ weight[..., None]) > 0
        return np.where(occupied, rows, 1.0)


class SurfaceCells(NamedTuple):
    """Second differences in every cell (bin, bin): how many, their weight, mean and spread."""

    n_obs: FloatArray
    weight: FloatArray
    weight_sq: FloatArray
    mean: FloatArray
    m2: FloatArray

    @property
    def supported(self) -> NDArray[np.bool_]:
        """Cells with rows."""
        return np.asarray(self.weight > 0)

    def n_effective(self) -> FloatArray:
        """math [6]; 0 in an empty cell."""
        return _ratio(self.weight**2, self.weight_sq)

    def spread(self) -> FloatArray:
        """Standard deviation with divisor n - 1, math [6]; NaN with one row."""
        degrees = self.weight - _ratio(self.weight_sq, self.weight)
        usable = self.n_effective() > 1 + 1e-9
        out = np.full(usable.shape, np.nan)
        return np.asarray(np.sqrt(np.divide(self.m2, degrees, where=usable, out=out)))


def _ratio(upper: FloatArray, lower: FloatArray) -> FloatArray:
    return np.divide(upper, lower, out=np.zeros(np.shape(upper)), where=lower > 0)


class PairEntries(NamedTuple):
    """Differences that count in a cell, one by one: their row, cell, value and weight."""

    row: IntArray
    cell: IntArray
    delta: FloatArray
    weight: FloatArray


class PairRows(NamedTuple):
    """PairRows with their places along both features, their second differences, and their weights.

    ``delta`` is (row, side_a, side_b), and ``cell`` the number of the cell in which each counts; -1
    beyond the last levels. With ``frequency`` a weight is the number of rows that are alike.
    """

    a: Axis
    b: Axis
    place_a: IntArray
    place_b: IntArray
    cell: IntArray
    delta: FloatArray
    weight: FloatArray
    frequency: bool

    @classmethod
    def from_places(
        cls,
        axes: tuple[Axis, Axis],
        places: tuple[IntArray, IntArray],
        delta: FloatArray,
        weight: FloatArray,
        *,
        frequency: bool,
    ) -> PairRows:
        """With the cells that follow from the places."""
        a, b = axes
        k = places[0][:, None, None] + np.array(a.sides)[:, None]
        m = places[1][:, None, None] + np.array(b.sides)
        inside = (k >= 0) & (k < a.n_bins) & (m >= 0) & (m < b.n_bins)
        cell = np.where(inside, k * b.n_bins + m, -1)
        return cls(a, b, *places, cell, delta, weight, frequency)

    @property
    def place(self) -> IntArray:
        """Number of the pair of places of every row."""
        return self.place_a * self.b.n_places + self.place_b

    @property
    def entries(self) -> PairEntries:
        """The differences that count."""
        row, *side = np.nonzero(self.cell >= 0)
        which = (row, *side)
        return PairEntries(row, self.cell[which], self.delta[which], self.weight[row])

    def residuals(self, cells: SurfaceCells) -> PairEntries:
        """The differences less the means of their cells."""
        entries = self.entries
        return entries._replace(delta=entries.delta - cells.mean.ravel()[entries.cell])

    def table(self) -> FloatArray:
        """Sums of weights over the rows of every place, (place, place)."""
        size = self.a.n_places * self.b.n_places
        sums = np.bincount(self.place, self.weight, size).astype(np.float64)
        return sums.reshape(self.a.n_places, self.b.n_places)

    def cells(self) -> SurfaceCells:
        """math [55]: moments of the second differences in their cells."""
        _, number, d, w = self.entries
        shape = self.a.n_bins, self.b.n_bins

        def total(values: FloatArray) -> FloatArray:
            return np.bincount(number, values, shape[0] * shape[1]).astype(np.float64)

        mass = total(w)
        centre = float(d[0]) if len(d) else 0.0
        mean = centre + _ratio(total(w * (d - centre)), mass)
        # A second mean removes the rounding error of the first.
        mean += _ratio(total(w * (d - mean[number])), mass)
        parts = (
            mass if self.frequency else total(np.ones(len(w))),
            mass,
            mass if self.frequency else total(w**2),
            mean,
            total(w * (d - mean[number]) ** 2),
        )
        return SurfaceCells(*[part.reshape(shape) for part in parts])


def filling(supported: NDArray[np.bool_]) -> sparse.csr_array:
    """math [56]: weights (cell, cell) with which cells with rows enter every cell.

    A cell with rows keeps its mean. An empty cell gets the mean of the nearest cells with rows;
    distances are numbers of cells.
    """
    n_a, n_b = supported.shape
    full, empty = np.flatnonzero(supported.ravel()), np.flatnonzero(~supported.ravel())
    lines, columns, shares = [full], [full], [np.ones(len(full))]
    step = max(1, BLOCK // max(len(full), 1))
    for begin in range(0, len(empty), step):
        block = empty[begin : begin + step]
        away = (block[:, None] // n_b - full // n_b) ** 2 + (block[:, None] % n_b - full % n_b) ** 2
        nearest = away == away.min(axis=1, keepdims=True)
        line, column = np.nonzero(nearest)
        lines.append(block[line])
        columns.append(full[column])
        shares.append(1 / nearest.sum(axis=1)[line])
    place = (np.concatenate(lines), np.concatenate(columns))
    return sparse.csr_array((np.concatenate(shares), place), shape=(n_a * n_b, n_a * n_b))


def filled(fill: sparse.csr_array, mean: FloatArray) -> FloatArray:
    """Means (..., bin, bin) with empty cells filled."""
    flat = mean.reshape(-1, fill.shape[0])
    return np.asarray((fill @ flat.T).T).reshape(mean.shape)


def edges_of(supported: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(edge, edge): the corners of cells with rows."""
    corner = np.zeros((supported.shape[0] + 1, supported.shape[1] + 1), dtype=bool)
    for at_a in (slice(None, -1), slice(1, None)):
        for at_b in (slice(None, -1), slice(1, None)):
            corner[at_a, at_b] |= supported
    return corner


def accumulated(mean: FloatArray) -> FloatArray:
    """math [57]: sums of all cells below and to the left, (..., edge, edge), from 0."""
    padding = [(0, 0)] * (mean.ndim - 2) + [(1, 0), (1, 0)]
    return np.pad(mean.cumsum(axis=-2).cumsum(axis=-1), padding)


class Main(NamedTuple):
    """The main effect of one feature in a zero-start surface.

    ``steps`` (..., bin) are means of ``at_rows`` (..., bin, place of the other feature). ``over``
    (..., bin, place) says which rows belong to a step, and ``total`` (..., bin) is their weight.
    """

    steps: FloatArray
    at_rows: FloatArray
    over: FloatArray
    total: FloatArray

    def curve(self) -> FloatArray:
        """(..., edge) from 0."""
        return from_zero(self.steps)


def from_zero(steps: FloatArray) -> FloatArray:
    """Sums of steps along the last axis, from 0."""
    return np.pad(steps.cumsum(axis=-1), [(0, 0)] * (steps.ndim - 1) + [(1, 0)])


def main_effect(a: Axis, b: Axis, start: FloatArray, weight: FloatArray) -> Main:
    """math [58]: first-order effect of a in ``start``; ``weight`` is (..., place, place)."""
    over = a.means_over(weight.sum(axis=-1))
    rows = over @ weight
    at_rows = np.diff(start, axis=-2) @ b.values().T
    total = rows.sum(axis=-1)
    return Main((rows * at_rows).sum(axis=-1) / total, at_rows, over, total)


class Surface(NamedTuple):
    """Zero-start surface, both main effects in it, and the centred rest."""

    start: FloatArray
    main_a: Main
    main_b: Main
    pure: FloatArray
    at_rows: FloatArray


def surface(a: Axis, b: Axis, mean: FloatArray, weight: FloatArray) -> Surface:
    """math [57] and [58]: the pure second-order effect, and its values at the places of rows.

    ``mean`` (..., bin, bin) without gaps, ``weight`` (..., place, place) of rows.
    """
    start = accumulated(mean)
    main_a = main_effect(a, b, start, weight)
    main_b = main_effect(b, a, start.swapaxes(-1, -2), weight.swapaxes(-1, -2))
    pure = start - main_a.curve()[..., :, None] - main_b.curve()[..., None, :]
    at_rows = a.values() @ pure @ b.values().T
    constant = (weight * at_rows).sum(axis=(-1, -2)) / weight.sum(axis=(-1, -2))
    constant = constant[..., None, None]
    return Surface(start, main_a, main_b, pure - constant, at_rows - constant)


def at_values(curves: FloatArray, place: IntArray, fraction: FloatArray | None) -> FloatArray:
    """Linear interpolation along the first axis, (edge, ...) -> (row, ...).

    ``fraction`` of its bin lies to the left of a row; None on levels.
    """
    if fraction is None:
        return curves[place]
    t = fraction.reshape(-1, *[1] * (curves.ndim - 1))
    return np.asarray((1 - t) * curves[place] + t * curves[place + 1])


def surface_at_values(
    surface: FloatArray,
    place_a: IntArray,
    place_b: IntArray,
    fraction_a: FloatArray | None,
    fraction_b: FloatArray | None,
) -> FloatArray:
    """Bilinear interpolation of a surface (edge, edge) at the values of rows: (row,)."""

    def along_b(of_a: IntArray) -> FloatArray:
        if fraction_b is None:
            return np.asarray(surface[of_a, place_b])
        left, right = surface[of_a, place_b], surface[of_a, place_b + 1]
        return np.asarray((1 - fraction_b) * left + fraction_b * right)

    if fraction_a is None:
        return along_b(place_a)
    return np.asarray((1 - fraction_a) * along_b(place_a) + fraction_a * along_b(place_a + 1))


def _moved_by_rows(a: Axis, main: Main, weight: FloatArray) -> FloatArray:
    """(place, place, edge): change of a centred main effect by a unit of weight at a place."""
    away = (main.at_rows - main.steps[:, None]) / main.total[:, None]
    curve = from_zero(np.einsum("kp,kq->pqk", main.over, away))
    moved = a.values() @ curve.reshape(-1, a.n_edges).T
    moved = moved.reshape(a.n_places, *curve.shape[:2])
    mean = np.einsum("p,prq->rq", weight.sum(axis=1) / weight.sum(), moved)
    return np.asarray(curve - mean[:, :, None])


class Influence(NamedTuple):
    """math [59]: influence of a row on the surface, in three parts.

    A row of weight w changes the surface by w times the sum of its residuals, each times `of_cells`
    of its cell, plus `of_places` of its place.
    """

    a: Axis
    b: Axis
    fill: sparse.csr_array
    table: FloatArray
    surface: Surface
    cells: SurfaceCells
    centred: bool

    @classmethod
    def from_rows(
        cls,
        rows: PairRows,
        cells: SurfaceCells,
        *,
        centred: bool = True,
        fill: sparse.csr_array | None = None,
    ) -> Influence:
        """Of rows whose differences have these moments; empty cells are filled unless they are."""
        fill = filling(cells.supported) if fill is None else fill
        table = rows.table()
        values = surface(rows.a, rows.b, filled(fill, cells.mean), table)
        return cls(rows.a, rows.b, fill, table, values, cells, centred)

    def of_cells(self, number: IntArray) -> FloatArray:
        """(cell, edge, edge) by a unit of weighted residual in these cells."""
        weight = self.cells.weight.ravel()[number]
        return self.by_means(number) / weight[:, None, None]

    def by_means(self, number: IntArray) -> FloatArray:
        """(cell, edge, edge): the surface by means of 1 in these cells, and 0 elsewhere."""
        shape = (len(number), *self.cells.weight.shape)
        unit = self.fill[:, number].toarray().T.reshape(shape)
        if not self.centred:
            return accumulated(unit)
        return surface(self.a, self.b, unit, self.table).pure

    def of_places(self, p: IntArray, q: IntArray) -> FloatArray:
        """(place, edge, edge) by a unit of weight at these places, second differences held."""
        if not self.centred:
            return np.zeros((len(p), self.a.n_edges, self.b.n_edges))
        surface = self.surface
        by_a = _moved_by_rows(self.a, surface.main_a, self.table)[p, q]
        by_b = _moved_by_rows(self.b, surface.main_b, self.table.T)[q, p]
        mean = surface.at_rows[p, q] / self.table.sum()
        return np.asarray(-by_a[:, :, None] - by_b[:, None, :] - mean[:, None, None])


def noise_factors(influence: Influence, rows: PairRows) -> Iterator[FloatArray]:
    """math [59]: blocks (factor, edges of both) whose products add up to the surface's covariance.

    The rows of a place influence the surface by their residuals, one for each side, and by their
    weight at this place. The second moments of these, as a product of roots, represent all rows of
    the place. Residuals of a cell of n rows are multiplied by (n / (n - 1))^(1/2). A cell of one
    row has the pooled variance of all others.
    """
    cells, a, b, cell = influence.cells, rows.a, rows.b, rows.cell
    n, spread = cells.n_effective().ravel(), cells.spread().ravel()
    scale = np.sqrt(np.divide(n, n - 1, where=~np.isnan(spread), out=np.zeros(len(n))))
    inside = cell >= 0
    safe = np.where(inside, cell, 0)
    residual = np.where(inside, (rows.delta - cells.mean.ravel()[safe]) * scale[safe], 0.0)
    residual = residual.reshape(len(residual), -1)
    square = rows.weight if rows.frequency else rows.weight**2
    places, first_row, rank = np.unique(rows.place, return_index=True, return_inverse=True)
    n_sides = residual.shape[1]
    parts = np.concatenate([np.ones((len(residual), 1)), residual], axis=1)
    moments = np.empty((len(places), n_sides + 1, n_sides + 1))
    for s in range(n_sides + 1):
        for t in range(n_sides + 1):
            values = square * parts[:, s] * parts[:, t]
            moments[:, s, t] = np.bincount(rank, values, len(places))
    root = _roots(moments)
    side_cell = safe.reshape(len(safe), -1)[first_row]
    occupied = inside.reshape(len(inside), -1)[first_row]
    size = a.n_edges * b.n_edges
    step = max(1, BLOCK // (size * (n_sides + 1)))
    for begin in range(0, len(places), step):
        part = slice(begin, begin + step)
        block = places[part]
        moved = np.zeros((len(block), n_sides + 1, size))
        moved[:, 0] = influence.of_places(block // b.n_places, block % b.n_places).reshape(-1, size)
        for s in range(n_sides):
            in_cell = occupied[part, s]
            if in_cell.any():
                moved[in_cell, s + 1] = influence.of_cells(side_cell[part, s][in_cell]).reshape(
                    -1, size
                )
        yield (root[part].swapaxes(1, 2) @ moved).reshape(-1, size)
    single = np.flatnonzero(singles(cells))
    for begin in range(0, len(single), step):
        alone = influence.by_means(single[begin : begin + step]).reshape(-1, size)
        yield np.sqrt(pooled(cells)[0]) * alone


def _roots(moments: FloatArray) -> FloatArray:
    """Roots (..., part, factor) of matrices, which multiplied by their transposes give these.

    Parts may have very different sizes, so they are scaled first.
    """
    size = np.sqrt(np.diagonal(moments, axis1=-2, axis2=-1))
    lower = size[..., :, None] * size[..., None, :]
    values, vectors = np.linalg.eigh(_ratio(moments, lower))
    return np.asarray(size[..., None] * vectors * np.sqrt(np.maximum(values, 0))[..., None, :])


def singles(cells: SurfaceCells) -> NDArray[np.bool_]:
    """Cells of one row, which have no variance of their own, (cell,)."""
    return np.asarray(cells.supported & np.isnan(cells.spread())).ravel()


def pooled(cells: SurfaceCells) -> tuple[float, float]:
    """Variance of second differences about the means of all cells together; its degrees."""
    several = ~singles(cells)
    divisor = (cells.weight - _ratio(cells.weight_sq, cells.weight)).ravel()[several].sum()
    degrees = float(np.maximum(cells.n_effective().ravel()[several] - 1, 0.0).sum())
    return float(cells.m2.ravel()[several].sum() / divisor) if divisor > 0 else np.nan, degrees


def surface_variance(influence: Influence, factors: Iterable[FloatArray]) -> tuple[FloatArray, int]:
    """math [59]: variance of the surface (edge, edge), and in how many cells it was borrowed.

    ``factors`` are those of `noise_factors`.
    """
    shape = (influence.a.n_edges, influence.b.n_edges)
    variance = np.zeros(shape[0] * shape[1])
    for block in factors:
        variance += (block**2).sum(axis=0)
    return variance.reshape(shape), int(singles(influence.cells).sum())


def surface_covariance(influence: Influence, factors: Iterable[FloatArray]) -> FloatArray:
    """math [59]: covariance of the surface, (edges of both, edges of both)."""
    size = influence.a.n_edges * influence.b.n_edges
    covariance = np.zeros((size, size))
    for block in factors:
        covariance += block.T @ block
    return covariance


def surface_degrees(influence: Influence, variance: FloatArray) -> FloatArray:
    """Satterthwaite's degrees of freedom of ``variance``, as if cells were independent.

    A cell of n rows has n - 1. The part due to the places of rows has the number of all rows less
    one.
    """
    cells = influence.cells
    n, noise = cells.n_effective().ravel(), (cells.spread() ** 2).ravel()
    alone = singles(cells)
    noise[alone], borrowed = pooled(cells)
    degrees = np.where(alone, borrowed, n - 1)
    total = variance.ravel()
    by_cells, squares = np.zeros(len(total)), np.zeros(len(total))
    numbers = np.flatnonzero(cells.supported.ravel() & (degrees > 0))
    step = max(1, BLOCK // len(total))
    for begin in range(0, len(numbers), step):
        block = numbers[begin : begin + step]
        part = (
            influence.by_means(block).reshape(len(block), -1) ** 2
            * (noise[block] / n[block])[:, None]
        )
        by_cells += part.sum(axis=0)
        squares += (part**2 / degrees[block, None]).sum(axis=0)
    rows = max(float(cells.weight.sum() ** 2 / cells.weight_sq.sum()) - 1, 1.0)
    squares += np.maximum(total - by_cells, 0.0) ** 2 / rows
    # Without variance the degrees of freedom are infinite.
    out = np.full(len(total), np.inf)
    np.divide(total**2, squares, out=out, where=squares > 0)
    return out.reshape(variance.shape)


def cell_skewness(cells: SurfaceCells, rows: PairRows) -> Skewness | None:
    """Skewness of the errors of means of cells, as of cells in one row; None if it is not clear."""
    _, number, residual, weight = rows.residuals(cells)
    n = cells.n_effective().ravel()
    cubes = np.bincount(number, weight * residual**3, len(n)).astype(np.float64)
    third = _ratio(cubes, cells.weight.ravel())
    variance = np.nan_to_num(cells.spread().ravel() ** 2)
    return Skewness.from_cumulants(third_cumulant(third, n), variance, n)


def surface_skewness(influence: Influence, skewness: Skewness, variance: FloatArray) -> FloatArray:
    """math [64]: skewness of the errors of the surface with this variance, (edge, edge)."""
    numbers = np.flatnonzero(influence.cells.supported.ravel())
    second, third = np.zeros((2, variance.size))
    step = max(1, BLOCK // variance.size)
    for begin in range(0, len(numbers), step):
        block = numbers[begin : begin + step]
        moved = influence.by_means(block).reshape(len(block), -1)
        second += skewness.second[block] @ moved**2
        third += skewness.third[block] @ moved**3
    with np.errstate(invalid="ignore", divide="ignore"):
        # What the places of the rows add to the variance has no skewness.
        ratio = third / np.maximum(second, variance.ravel()) ** 1.5
    return np.nan_to_num(ratio).reshape(variance.shape)


def cell_covariance(cells: SurfaceCells, rows: PairRows) -> FloatArray:
    """Covariance of the means of cells, (cell, cell), NaN without a variance, math [59].

    Cells of numbers share no rows, neighbouring steps between levels do. The diagonal is the
    variance of a cell's second differences over its effective number of rows.
    """
    row, number, residual, weight = rows.residuals(cells)
    n = cells.n_effective().ravel()
    usable = cells.supported.ravel() & ~singles(cells)
    scale = np.sqrt(np.divide(n, n - 1, where=usable, out=np.zeros(len(n))))
    w = np.sqrt(weight) if rows.frequency else weight
    moved = w * residual * _ratio(scale, cells.weight.ravel())[number]
    by_row = sparse.csr_array((moved, (row, number)), shape=(len(rows.cell), len(n)))
    covariance = np.asarray((by_row.T @ by_row).todense(), dtype=np.float64)
    covariance[~usable] = covariance[:, ~usable] = np.nan
    return covariance


def weighted_error(cells: SurfaceCells, rows: PairRows) -> FloatArray:
    """Standard errors of means of cells with precision weights, (bin, bin), math [24]."""
    _, number, residual, weight = rows.residuals(cells)
    n, total = cells.n_effective().ravel(), cells.weight.ravel()
    moved = (weight * residual) ** 2
    usable = np.isfinite(cells.spread().ravel())
    out = np.full(len(n), np.nan)
    scale = np.divide(n, n - 1, out=np.zeros(len(n)), where=usable)
    np.divide(scale * np.bincount(number, moved, len(n)), total**2, out=out, where=usable)
    return np.asarray(np.sqrt(out).reshape(cells.mean.shape))


def sign_test(rows: PairRows, group: IntArray | None = None) -> tuple[float, float]:
    """math [59]: test statistic of means 0 in all cells (chi-squared), and its degrees of freedom.

    The sum over cells of (sum_i d_i)^2 / W, d = w delta, a_ic = d_ic / W_c^(1/2). If rows change
    their signs at random, each with all its differences, its mean is the sum of a_ic^2, and its
    variance 2 [sum_cc' (sum_i a_ic a_ic')^2 - sum_i (sum_c a_ic^2)^2]. With ``group`` the signs
    are those of groups, whose rows change theirs together, math [98].
    """
    # A row of frequency weight w represents w rows, which change their signs independently.
    apart = rows.frequency and group is None
    unit = np.arange(len(rows.weight)) if group is None else group
    n_units, n_cells = int(unit.max(initial=-1)) + 1, rows.a.n_bins * rows.b.n_bins
    times = rows.weight if apart else np.ones(n_units)
    row, number, d, w = rows.entries
    mass = np.bincount(number, w, n_cells)
    share = (d if apart else d * w) / np.sqrt(mass[number])
    sums = sparse.csr_array(sparse.coo_array((share, (unit[row], number)), (n_units, n_cells)))
    sums.eliminate_zeros()
    # The square of a single unit is the same with either sign.
    several = np.bincount(sums.indices, np.repeat(times, np.diff(sums.indptr)), n_cells) >= 2
    sums = sparse.csr_array(sums * several)
    total = np.asarray(sums.T @ times)
    square: FloatArray = np.asarray(sums.power(2).sum(axis=1))
    shared = sparse.csr_array((sums * times[:, None]).T @ sums)
    mean, alone = float(times @ square), float(times @ square**2)
    variance = 2 * (float(shared.power(2).sum()) - alone)
    if variance <= 0:
        return 0.0, 0.0
    degrees = 2 * mean**2 / variance
    return float(total @ total) * degrees / mean, degrees


class SurfaceReplicates(NamedTuple):
    """Cell means (draw, bin, bin), NaN without rows, surface (draw, edge, edge), cells filled."""

    mean: FloatArray
    surface: FloatArray
    n_filled: IntArray


def replicates(influence: Influence, rows: PairRows, drawn: FloatArray) -> SurfaceReplicates:
    """math [29] for surfaces: estimates under ``drawn`` weights (row, draw), gaps filled anew."""
    a, b = rows.a, rows.b
    n_rows, n_draws, size = len(rows.weight), drawn.shape[1], a.n_bins * b.n_bins
    row_of_entry, number, residual, w = rows.residuals(influence.cells)

    def summed(values: FloatArray, line: IntArray, row: IntArray, n_lines: int) -> FloatArray:
        matrix = sparse.csr_array((values, (line, row)), shape=(n_lines, n_rows))
        return np.asarray(matrix @ drawn).T

    mass = summed(w, number, row_of_entry, size)
    change = _ratio(summed(w * residual, number, row_of_entry, size), mass)
    mean = np.where(mass > 0, influence.cells.mean.ravel() + change, np.nan).reshape(
        -1, a.n_bins, b.n_bins
    )
    tables = summed(rows.weight, rows.place, np.arange(n_rows), a.n_places * b.n_places)
    tables = tables.reshape(n_draws, a.n_places, b.n_places)
    supported = mass.reshape(mean.shape) > 0
    full = np.empty(mean.shape)
    fillings: dict[bytes, sparse.csr_array] = {}
    for draw in range(n_draws):
        key = supported[draw].tobytes()
        if key not in fillings:
            fillings = {key: filling(supported[draw])}
        full[draw] = filled(fillings[key], np.nan_to_num(mean[draw]))
    curves = surface(a, b, full, tables).pure if influence.centred else accumulated(full)
    return SurfaceReplicates(mean, curves, (~supported).sum(axis=(1, 2)))


# --- errors by groups of rows ---------------------------------------------------------------------


class GroupSums(NamedTuple):
    """What groups do to the means of cells, and their weights at places.

    ``means`` (group, cell) are sums of weights times residuals over the weight of the cell, times
    the factor for leverage. ``places`` (group, place of a times place of b) are sums of weights,
    times the factor of a mean over all rows.
    """

    means: sparse.csr_array
    places: sparse.csr_array
    shares: leverage.Shares
    every: float

    @property
    def alone(self) -> NDArray[np.bool_]:
        """Cells with rows of one group, which have no variance between groups, (cell,)."""
        return np.asarray(self.n_groups == 1)

    @property
    def n_groups(self) -> IntArray:
        """Number of groups in every cell."""
        return np.bincount(self.means.indices, minlength=self.means.shape[1])

    @property
    def variance(self) -> FloatArray:
        """Of the means of cells, NaN with fewer than two groups, (cell,)."""
        squares = np.bincount(self.means.indices, self.means.data**2, self.means.shape[1])
        return np.where(self.n_groups > 1, squares, np.nan)

    @property
    def overlap(self) -> FloatArray:
        """What the degrees of freedom of two cells have in common, (cell, cell), math [26]."""
        lost = leverage.like(self.shares.square, self.shares.square.data * self.shares.factor.data)
        return leverage.products(self.shares.square) + leverage.between(lost)

    def degrees(self) -> FloatArray:
        """Degrees of freedom of the means of cells, 0 with fewer than two groups."""
        overlap = np.diagonal(self.overlap)
        usable = (self.n_groups > 1) & (overlap > 0)
        return np.divide(1.0, overlap, out=np.zeros(len(overlap)), where=usable)

    def covariance(self) -> FloatArray:
        """Of the means of cells, NaN with fewer than two groups, (cell, cell)."""
        out = np.asarray((self.means.T @ self.means).toarray(), dtype=np.float64)
        unknown = self.n_groups < 2
        out[unknown] = out[:, unknown] = np.nan
        return out


def group_sums(influence: Influence, rows: PairRows, group: IntArray) -> GroupSums:
    """Sums over the rows of every group; ``group`` (row,) are numbers from 0."""
    cells, n_groups = influence.cells, int(group.max(initial=-1)) + 1
    row, number, residual, w = rows.residuals(cells)

    def table(values: FloatArray) -> sparse.csr_array:
        return leverage.table(values, group[row], number, n_groups, cells.mean.size)

    shares = leverage.Shares.from_sums(table(w), table(w if rows.frequency else w**2))
    sums = table(w * residual / cells.weight.ravel()[number])
    every = leverage.of_mean(group, rows.weight, frequency=rows.frequency)
    n_places = rows.a.n_places * rows.b.n_places
    by_place = rows.weight * every.factor.toarray()[group, 0]
    places = leverage.table(by_place, group, rows.place, n_groups, n_places)
    return GroupSums(
        leverage.like(sums, sums.data * shares.factor.data),
        places,
        shares,
        leverage.mean_degrees(every),
    )


def group_noise_factors(influence: Influence, groups: GroupSums) -> Iterator[FloatArray]:
    """math [98]: blocks (group, edges of both) whose products add up to the covariance.

    A cell of one group has the pooled variance of single differences, as if all of its rows had
    the same error.
    """
    size = influence.a.n_edges * influence.b.n_edges
    supported = np.flatnonzero(influence.cells.supported.ravel())
    by_cell = np.zeros((groups.means.shape[1], size))
    by_cell[supported] = influence.by_means(supported).reshape(len(supported), size)
    places = np.unique(groups.places.indices).astype(np.int64)
    by_place = np.zeros((groups.places.shape[1], size))
    n_b = influence.b.n_places
    by_place[places] = influence.of_places(places // n_b, places % n_b).reshape(-1, size)
    step = max(1, BLOCK // size)
    for begin in range(0, groups.means.shape[0], step):
        part = slice(begin, begin + step)
        yield np.asarray(groups.means[part] @ by_cell + groups.places[part] @ by_place)
    alone = np.flatnonzero(groups.alone)
    yield np.sqrt(pooled(influence.cells)[0]) * by_cell[alone]


def group_surface_degrees(
    influence: Influence, groups: GroupSums, variance: FloatArray
) -> FloatArray:
    """Degrees of freedom of ``variance`` (edge, edge), from the overlap of the cells' groups.

    What is left of the variance, by the places of the groups and by what cells have in common, has
    those of a mean over all rows.
    """
    of_cells, overlap, alone = np.nan_to_num(groups.variance), groups.overlap, groups.alone
    of_cells[alone] = pooled(influence.cells)[0]
    overlap[alone] = overlap[:, alone] = 0.0
    overlap[alone, alone] = 1 / max(groups.every, 1.0)
    supported = np.flatnonzero(influence.cells.supported.ravel())
    moved = influence.by_means(supported).reshape(len(supported), -1)
    parts = (moved**2 * of_cells[supported][:, None]).T
    squares = np.sum((parts @ overlap[np.ix_(supported, supported)]) * parts, axis=1)
    total = variance.ravel()
    squares += np.maximum(total - parts.sum(axis=1), 0.0) ** 2 / max(groups.every, 1.0)
    out = np.full(len(total), np.inf)
    np.divide(total**2, squares, out=out, where=squares > 0)
    return out.reshape(variance.shape)
