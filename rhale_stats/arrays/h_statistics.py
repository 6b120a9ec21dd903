"""Influence of each row on the H-statistics, math [60] to [62].

Their numerators and denominators are means of squares, sum_i p_i e_i², of a centred combination e
of effects at the rows; p are shares of weight. A row is one of the points of this mean, and one of
the rows over which the effects are averaged. The influence of row l is the derivative of a
statistic when weight is moved to l from all rows in proportion,

    psi_l = e_l² + 2 sum_i p_i e_i d v_i / d p_l , less its mean over the rows,

where v is the combination of effects before centring. Centring does not enter, since e is centred.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse

from rhale_stats.arrays import leverage
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.arrays.second_order import Axis, Influence, Main, PairRows


def centred(values: FloatArray, share: FloatArray) -> FloatArray:
    """Values less their mean over the rows, the first axis."""
    return np.asarray(values - np.sum(share * values, axis=0))


def mean_square(values: FloatArray, share: FloatArray) -> FloatArray:
    """Mean square over the rows, the first axis."""
    return np.asarray(np.sum(share * values**2, axis=0))


def of_mean_square(e: FloatArray, moved: FloatArray, share: FloatArray) -> FloatArray:
    """math [62]: influences on sum_i p_i e_i²; ``moved`` (row,) is sum_i p_i e_i d v_i / d p_l."""
    return centred(e**2 + 2 * moved, share)


class VarianceShares(NamedTuple):
    """Numerators and denominators: ``total``, ``variance`` (...), ``overall`` (feature, ...).

    ``pair`` and ``joint`` are (pair, ...). They hold estimates, influences, replicates, or what is
    squared at the rows.
    """

    total: FloatArray
    overall: FloatArray
    variance: FloatArray
    pair: FloatArray
    joint: FloatArray

    def of_output(self, number: int) -> VarianceShares:
        """Those of one output, the last axis."""
        return VarianceShares(*[part[..., number] for part in self])

    def mean_squares(self, share: FloatArray) -> VarianceShares:
        """Mean squares over the rows, the last axis but one, with shares (row, ...)."""
        return VarianceShares(*[np.sum(share * part**2, axis=-2) for part in self])


# --- partial dependence ---------------------------------------------------------------------------


class Answers(NamedTuple):
    """The model's answers with some columns of row i and the others of row k.

    ``values`` (version, k), where rows i with the same values share a version: ``version`` (i,).
    """

    values: FloatArray
    version: IntArray

    def along(self, share: FloatArray) -> FloatArray:
        """(i, ...): means over k, the partial dependence of these columns; ``share`` (k, ...)."""
        return np.asarray(self.values @ share)[self.version]

    def rest(self, share: FloatArray) -> FloatArray:
        """(k, ...): means over i, that of all other columns; the transpose of `along`."""
        n, m = len(self.version), len(self.values)
        ones = (np.ones(n), (self.version, np.arange(n)))
        return np.asarray(self.values.T @ (sparse.csr_array(ones, shape=(m, n)) @ share))


def pdp_squares(
    prediction: FloatArray,
    curves: Sequence[FloatArray],
    rests: Sequence[FloatArray],
    pairs: Sequence[tuple[int, int]],
    of_pairs: Sequence[FloatArray],
    share: FloatArray,
) -> VarianceShares:
    """math [60] from values at the rows, (row, ...) each: of the output and of partial dependences.

    These are of features, of all others, and of pairs; ``share`` are shares of weight (row, ...).
    The last axis is that of outputs or of draws.
    """
    whole = centred(prediction, share)
    main = [centred(curve, share) for curve in curves]
    overall = [
        mean_square(whole - f - centred(rest, share), share)
        for f, rest in zip(main, rests, strict=True)
    ]
    joint = [centred(both, share) for both in of_pairs]
    pair = [
        mean_square(both - main[j] - main[k], share)
        for (j, k), both in zip(pairs, joint, strict=True)
    ]
    variance = mean_square(whole, share)
    return VarianceShares(
        mean_square(whole - sum(main), share),
        np.array(overall),
        variance,
        np.reshape(pair, (-1, *variance.shape)),
        np.reshape([mean_square(both, share) for both in joint], (-1, *variance.shape)),
    )


def pdp_influences(
    prediction: FloatArray, features: Sequence[Answers], share: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """math [62]: influences (..., row) on the total, on those of features, and on the variance."""
    whole = centred(prediction, share)
    curves = [centred(answers.along(share), share) for answers in features]
    e = whole - sum(curves)
    moved = -np.sum([answers.rest(share * e) for answers in features], axis=0)
    total = of_mean_square(e, moved, share)
    overall = []
    for f, answers in zip(curves, features, strict=True):
        e = whole - f - centred(answers.rest(share), share)
        # Means of the answers over rows and over columns give both effects.
        overall.append(
            of_mean_square(e, -answers.rest(share * e) - answers.along(share * e), share)
        )
    return total, np.array(overall), of_mean_square(whole, np.zeros(len(whole)), share)


def pdp_pair_influences(
    both: Answers, first: Answers, second: Answers, share: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """math [62]: influences (row,) on the numerator of a pair, and on its denominator."""
    joint, *curves = [centred(answers.along(share), share) for answers in (both, first, second)]
    e = joint - curves[0] - curves[1]
    moved = both.rest(share * e) - first.rest(share * e) - second.rest(share * e)
    return (
        of_mean_square(e, moved, share),
        of_mean_square(joint, both.rest(share * joint), share),
    )


# --- accumulated local effects --------------------------------------------------------------------


def interpolation(n_edges: int, place: IntArray, fraction: FloatArray | None) -> sparse.csr_array:
    """(row, edge): linear interpolation at the values of rows, as in `second_order.at_values`."""
    n = len(place)
    rows = np.arange(n)
    if fraction is None:
        return sparse.csr_array((np.ones(n), (rows, place)), shape=(n, n_edges))
    values = np.concatenate([1 - fraction, fraction])
    where = (np.tile(rows, 2), np.concatenate([place, place + 1]))
    return sparse.csr_array((values, where), shape=(n, n_edges))


class Curve(NamedTuple):
    """A first-order effect with its rows: ``change`` (row, side) across steps, their means.

    ``mass`` is the weight of a step, and ``interpolation`` (row, edge) interpolates at the rows.
    """

    axis: Axis
    place: IntArray
    change: FloatArray
    steps: FloatArray
    mass: FloatArray
    interpolation: sparse.csr_array

    def moved(self, by: FloatArray) -> FloatArray:
        """Derivative of sum_i by_i curve_i in the weight of every row, (row,)."""
        # A step increases the curve at all edges beyond it.
        beyond = _beyond(self.interpolation.T @ by)
        lift = np.divide(beyond, self.mass, out=np.zeros(len(beyond)), where=self.mass > 0)
        out = np.zeros(len(self.place))
        for number, side in enumerate(self.axis.sides):
            step = self.place + side
            inside = np.flatnonzero((step >= 0) & (step < self.axis.n_bins))
            bins = step[inside]
            out[inside] += (self.change[inside, number] - self.steps[bins]) * lift[bins]
        return out


class Pair(NamedTuple):
    """A second-order effect with its rows: math [59], and how to interpolate at the rows."""

    influence: Influence
    rows: PairRows
    at_a: sparse.csr_array
    at_b: sparse.csr_array

    def moved(self, by: FloatArray) -> FloatArray:
        """Derivative of sum_i by_i surface_i in the weight of every row; ``by`` (row, sum).

        By the adjoints of math [57] to [59]: from the gradient at the edges those in the cell means
        and in the weight of every place, whose residuals and rows then add up.
        """
        out = np.zeros(by.shape)
        cells, rows = self.influence.cells, self.rows
        inside = rows.cell >= 0
        safe = np.where(inside, rows.cell, 0)
        residual = np.where(inside, rows.delta - cells.mean.ravel()[safe], 0.0)
        for number, column in enumerate(by.T):
            gradient = (self.at_a.T @ (sparse.diags_array(column) @ self.at_b)).toarray()
            by_place = _by_places(self.influence, gradient)
            out[:, number] = by_place[rows.place_a, rows.place_b]
            by_mean = _by_means(self.influence, gradient).ravel()
            by_residual = np.divide(
                by_mean, cells.weight.ravel(), out=np.zeros(by_mean.shape),
                where=cells.supported.ravel(),
            )  # fmt: skip
            out[:, number] += (residual * by_residual[safe]).sum(axis=(1, 2))
        return out


def _beyond(values: FloatArray) -> FloatArray:
    """Sums over all edges beyond a step, along the first axis: the adjoint of a sum from 0."""
    return np.asarray(values[::-1].cumsum(axis=0)[::-1][1:])


def _by_means(influence: Influence, gradient: FloatArray) -> FloatArray:
    """(bin_a, bin_b): derivative of <gradient, surface> by each cell mean, math [56]-[58]."""
    a, b, table, surface = influence.a, influence.b, influence.table, influence.surface
    # The mean over the rows is subtracted last, and therefore first in the adjoint.
    at_rows = a.values().T @ table @ b.values()
    gradient = gradient - gradient.sum() / table.sum() * at_rows
    of_start = gradient.copy()
    of_start -= _by_main(b, surface.main_a, gradient.sum(axis=1), table)
    of_start -= _by_main(a, surface.main_b, gradient.sum(axis=0), table.T).T
    of_filled = _beyond(_beyond(of_start).T).T
    return np.asarray((influence.fill.T @ of_filled.ravel()).reshape(a.n_bins, b.n_bins))


def _by_main(other: Axis, main: Main, along: FloatArray, table: FloatArray) -> FloatArray:
    """(edge, other edge): derivative of <along, main effect> by the zero-start surface."""
    shares = main.over @ table / main.total[:, None]
    steps = _beyond(along)[:, None] * (shares @ other.values())
    return np.pad(steps, ((1, 0), (0, 0))) - np.pad(steps, ((0, 1), (0, 0)))


def _by_places(influence: Influence, gradient: FloatArray) -> FloatArray:
    """(place_a, place_b): derivative of <gradient, surface> by the weight there, math [59]."""
    surface, table = influence.surface, influence.table
    by_a = _main_by_places(influence.a, surface.main_a, gradient.sum(axis=1), table)
    by_b = _main_by_places(influence.b, surface.main_b, gradient.sum(axis=0), table.T)
    return np.asarray(-by_a - by_b.T - gradient.sum() / table.sum() * surface.at_rows)


def _main_by_places(a: Axis, main: Main, along: FloatArray, table: FloatArray) -> FloatArray:
    """(place, other place): the same for the centred main effect."""
    centre = a.values().T @ table.sum(axis=1) / table.sum()
    away = (main.at_rows - main.steps[:, None]) / main.total[:, None]
    return np.asarray(main.over.T @ (_beyond(along - along.sum() * centre)[:, None] * away))


# --- standard errors ------------------------------------------------------------------------------


def ratio_and_root(
    upper: FloatArray, lower: FloatArray, of_upper: FloatArray, of_lower: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Influences (..., row) on upper / lower and on the root of upper, from those on both.

    0 where ``upper`` (...) is 0, and a share of 0 is 0.
    """
    positive = (upper > 0)[..., None]
    up, low = upper[..., None], lower[..., None]
    both = positive & (low > 0)
    share = np.divide(of_upper - up / np.where(both, low, 1.0) * of_lower, low,
                      out=np.zeros(of_upper.shape), where=both)  # fmt: skip
    root = np.divide(of_upper, 2 * np.sqrt(up), out=np.zeros(of_upper.shape), where=positive)
    return share, root


def moved_by_rows(influence: FloatArray, weight: FloatArray, *, frequency: bool) -> FloatArray:
    """(..., row): contributions of rows to the error; the sum of their squares is the variance.

    The contribution of a row of weight w is w / W times its influence. For a frequency weight, that
    is, w rows, the factor is w^(1/2) / W. The variance has the factor n / (n - 1), with n
    effective.
    """
    total = weight.sum()
    n = total if frequency else total**2 / np.sum(weight**2)
    each = np.sqrt(weight) if frequency else weight
    factor = np.sqrt(n / (n - 1)) if n > 1 else np.nan
    return np.asarray(influence * (each / total * factor))


def moved_by_groups(
    influence: FloatArray, weight: FloatArray, group: IntArray, *, frequency: bool
) -> FloatArray:
    """(..., group): the same of groups of rows, corrected for their leverage (math [26], [62])."""
    n_groups, n_rows = int(group.max()) + 1, len(group)
    sums = sparse.csr_array(
        (weight / weight.sum(), (np.arange(n_rows), group)), shape=(n_rows, n_groups)
    )
    factor = leverage.of_mean(group, weight, frequency=frequency).factor.toarray()[:, 0]
    moved = influence.reshape(-1, n_rows) @ sums * factor
    return np.asarray(moved.reshape(*influence.shape[:-1], n_groups))
