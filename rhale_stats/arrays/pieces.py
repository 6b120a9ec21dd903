"""Sums over short pieces of sorted rows, from which those of any cells follow without the rows.

Rows are read once. All that `rhale` asks of them later, whatever the cells and the lines, is
arithmetic on the sums of the pieces, which are moved to other centres. Only pieces that an edge
divides are summed again. A piece is short, so that its sums keep their digits: they are about one
of its own rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

import numpy as np
from numpy.typing import NDArray

# Rows of a piece, and how many rows are handled at a time.
PIECE_ROWS, BLOCK_ROWS = 64, 1 << 15
# With fewer rows, edges divide most of the pieces.
PIECES_FROM = 1 << 18
# Sums about lines keep their digits where squares are at least this share of those of the lines.
LEAST_LEFT = 0.01
# Exponents of x and g in the sums of a piece.
POWERS = tuple((n - j, j) for n in range(1, 5) for j in range(n + 1))


class Pieces:
    """Rows of one feature sorted by ``x``, without weights, in pieces that become finer.

    ``first`` are the first rows of the pieces, ``x_at`` and ``g_at`` the values of one row of each,
    and ``sums`` those of the products `POWERS` of distances from there, (powers, pieces).
    """

    # Powers of very large values are left to those that ask for them.
    @np.errstate(over="ignore", invalid="ignore")
    def __init__(self, x: NDArray[np.float64], g: NDArray[np.float64]) -> None:
        self.x, self.g, n = x, g, len(x) // PIECE_ROWS
        self.first = np.arange(0, len(x), PIECE_ROWS)
        centre = self._centres(self.first, len(x))
        self.x_at, self.g_at = x[centre], g[centre]
        self.sums = np.empty((len(POWERS), len(self.first)))
        step, ones = BLOCK_ROWS // PIECE_ROWS, np.ones(PIECE_ROWS)
        whole = n * PIECE_ROWS
        x, g = (values[:whole].reshape(n, PIECE_ROWS) for values in (x, g))
        columns = np.empty((5, step, PIECE_ROWS))
        for begin in range(0, n, step):
            block = slice(begin, min(begin + step, n))
            d, r, d2, dr, r2 = columns[:, : block.stop - begin]
            np.subtract(x[block], self.x_at[block, None], out=d)
            np.subtract(g[block], self.g_at[block, None], out=r)
            np.multiply(d, d, out=d2)
            np.multiply(d, r, out=dr)
            np.multiply(r, r, out=r2)
            # In the order of `POWERS`.
            factors = [(d, ones), (r, ones), (d, d), (d, r), (r, r)]
            factors += [(d2, d), (d2, r), (dr, r), (r2, r)]
            factors += [(d2, d2), (d2, dr), (dr, dr), (dr, r2), (r2, r2)]
            for out, pair in zip(self.sums, factors, strict=True):
                np.vecdot(*pair, out=out[block])
        if n < len(self.first):
            self.sums[:, n:] = self._summed(np.arange(whole, len(self.x)), np.zeros(1, np.intp))[2]

    @staticmethod
    def _centres(first: NDArray[np.intp], n_rows: int) -> NDArray[np.intp]:
        middle: NDArray[np.intp] = first + np.diff(first, append=n_rows) // 2
        return middle

    @property
    def n_obs(self) -> NDArray[np.float64]:
        """Number of rows of every piece."""
        return np.diff(self.first, append=len(self.x)).astype(np.float64)

    @np.errstate(over="ignore", invalid="ignore")
    def _summed(
        self, rows: NDArray[np.intp], starts: NDArray[np.intp]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Centres and sums of pieces of any length, which begin at ``starts`` among ``rows``."""
        centre, length = self._centres(starts, len(rows)), np.diff(starts, append=len(rows))
        x, g = self.x[rows], self.g[rows]
        x_at, g_at = x[centre], g[centre]
        d, r = x - x_at.repeat(length), g - g_at.repeat(length)
        of_d, of_r = [np.ones(len(d)), d], [np.ones(len(r)), r]
        for _ in range(3):
            of_d.append(of_d[-1] * d)
            of_r.append(of_r[-1] * r)
        sums = [np.add.reduceat(of_d[i] * of_r[j], starts) for i, j in POWERS]
        return x_at, g_at, np.array(sums)

    def cut(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Let pieces begin at these rows too; the numbers of the pieces that do."""
        place = np.searchsorted(self.first, rows)
        new = rows[self.first[np.minimum(place, len(self.first) - 1)] != rows]
        if len(new):
            divided = np.zeros(len(self.first), dtype=bool)
            after = np.searchsorted(self.first, new)
            divided[after - 1] = True
            length = np.diff(self.first, append=len(self.x))[divided]
            # Rows of the divided pieces, and where each of these begins among them.
            begin = np.cumsum(length) - length
            again = np.repeat(self.first[divided] - begin, length) + np.arange(length.sum())
            every = np.insert(self.first, after, new)
            parent = np.insert(np.arange(len(self.first)), after, after - 1)
            own = divided[parent]
            starts = np.searchsorted(again, every[own])
            self.x_at, self.g_at = self.x_at[parent], self.g_at[parent]
            self.sums, self.first = self.sums[:, parent], every
            self.x_at[own], self.g_at[own], self.sums[:, own] = self._summed(again, starts)
            place = np.searchsorted(self.first, rows)
        return place

    def moments(
        self, rows: NDArray[np.intp]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Means of x and of g, and the sum of squares of g about its mean.

        They are those of cells that begin at these rows, the first at row 0.
        """
        starts = self.cut(rows)
        n, length = self.n_obs, np.diff(starts, append=len(self.first))
        total = np.add.reduceat(n, starts)
        x_mean, mean = (
            at[starts] + np.add.reduceat((at - at[starts].repeat(length)) * n + own, starts) / total
            for at, own in ((self.x_at, self.sums[0]), (self.g_at, self.sums[1]))
        )
        # The rounding of the mean is taken out.
        about_mean = self.about(rows, x_mean, mean, None, ((0, 1), (0, 2)))
        assert about_mean is not None, "None is for lines"
        rest, second = about_mean
        return x_mean, mean + rest / total, np.maximum(second - rest**2 / total, 0.0)

    @np.errstate(over="ignore", invalid="ignore")
    def about(
        self,
        rows: NDArray[np.intp],
        x_mean: NDArray[np.float64],
        mean: NDArray[np.float64],
        slope: NDArray[np.float64] | None,
        powers: Sequence[tuple[int, int]],
    ) -> NDArray[np.float64] | None:
        """Sums of d^i r^j for all ``powers`` (i, j) in cells that begin at ``rows``.

        d is the distance of x from the ``x_mean`` of the cell, r that of g from the line through
        its mean: (powers, cells). None if next to nothing is left of g beside lines, of which only
        the rows know the digits.
        """
        starts = self.cut(rows)
        length = np.diff(starts, append=len(self.first))
        own = dict(zip(POWERS, self.sums, strict=True)) | {(0, 0): self.n_obs}
        a, b = self.x_at - x_mean.repeat(length), self.g_at - mean.repeat(length)
        if slope is not None and slope.any():
            tilt = slope.repeat(length)
            b -= tilt * a
            along = np.add.reduceat(tilt**2 * own[2, 0], starts)
            own = _sheared(own, tilt, powers)
            if (np.add.reduceat(own[0, 2], starts) < LEAST_LEFT * along).any():
                return None
        of_a, of_b = _powers(a, max(i for i, _ in powers)), _powers(b, max(j for _, j in powers))
        sums = np.empty((len(powers), len(starts)))
        for out, (i, j) in zip(sums, powers, strict=True):
            # The binomial formula in both, the innermost sums over powers of r.
            moved = sum(
                (
                    comb(i, p) * _times(of_a[i - p], _moved(own, p, j, of_b))
                    for p in range(i, -1, -1)
                ),
                start=np.float64(0),
            )
            out[:] = np.add.reduceat(moved, starts)
            if i % 2 == 0 and j % 2 == 0:
                np.maximum(out, 0.0, out=out)
        return sums


def _powers(a: NDArray[np.float64], most: int) -> list[NDArray[np.float64] | None]:
    """Powers from 0, which is None, to ``most``."""
    found: list[NDArray[np.float64] | None] = [None, a]
    for _ in range(most - 1):
        found.append(_times(found[-1], a))
    return found


def _times(a: NDArray[np.float64] | None, b: NDArray[np.float64]) -> NDArray[np.float64]:
    return b if a is None else a * b


def _moved(
    own: dict[tuple[int, int], NDArray[np.float64]],
    i: int,
    j: int,
    of_b: list[NDArray[np.float64] | None],
) -> NDArray[np.float64]:
    """Sums of d^i (r + b)^j from those of d^i r^q."""
    total = own[i, j]
    for q in range(j):
        total = total + comb(j, q) * _times(of_b[j - q], own[i, q])
    return total


def _sheared(
    own: dict[tuple[int, int], NDArray[np.float64]],
    slope: NDArray[np.float64],
    powers: Sequence[tuple[int, int]],
) -> dict[tuple[int, int], NDArray[np.float64]]:
    """Sums with r - slope d in the place of r, as far as ``powers`` need them."""
    needed = {(p, q) for i, j in powers for p in range(i + 1) for q in range(j + 1)} | {(0, 2)}
    tilt = _powers(-slope, 4)
    return {
        (i, j): own[i, j]
        + sum(comb(j, k) * _times(tilt[k], own[i + k, j - k]) for k in range(1, j + 1))
        for i, j in needed
    }
