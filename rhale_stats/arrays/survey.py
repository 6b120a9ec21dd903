"""Errors of estimates from a survey: linearisation, or replicate weights (math [117])."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rhale_stats.arrays.moments import FloatArray, IntArray


class SamplingDesign(NamedTuple):
    """How rows were drawn: a linear map from their influences to units whose squares add up.

    ``cluster`` is that of every row of the table, ``rows`` the numbers of those that estimates are
    made of; ``stratum`` and ``factor`` are of the clusters. With ``replicates`` (cluster,
    replicate), weights over those of the rows, ``factor`` is of the replicates.
    """

    cluster: IntArray
    rows: IntArray
    stratum: IntArray
    factor: FloatArray
    replicates: FloatArray | None
    degrees: float

    @classmethod
    def linearised(cls, cluster: IntArray, stratum: IntArray, rest: FloatArray) -> SamplingDesign:
        """Clusters drawn within strata; ``rest`` (cluster,) is one less the sampling fraction."""
        n_each = np.bincount(stratum)[stratum]
        factor = rest * np.divide(n_each, n_each - 1, out=np.zeros(len(rest)), where=n_each > 1)
        degrees = float(len(stratum) - stratum.max() - 1)
        return cls(cluster, np.arange(len(cluster)), stratum, factor, None, degrees)

    @classmethod
    def replicated(cls, replicates: FloatArray, factor: FloatArray) -> SamplingDesign:
        """Every row is a cluster; degrees of freedom are the rank of the weights less 1."""
        rows = np.arange(len(replicates))
        degrees = float(np.linalg.matrix_rank(replicates) - 1)
        return cls(rows, rows, np.zeros(len(rows), dtype=np.int64), factor, replicates, degrees)

    @property
    def n_clusters(self) -> int:
        """Number of clusters, those without rows in use included."""
        return len(self.stratum)

    def take(self, rows: NDArray[np.bool_] | IntArray) -> SamplingDesign:
        """For estimates of some of the rows in use; the clusters of the others still count."""
        return self._replace(rows=self.rows[rows])

    def units(self, influence: FloatArray, share: FloatArray | None = None) -> FloatArray:
        """From influences of the rows in use, (row, estimate), to (unit, estimate).

        ``share`` are the shares of the rows in the weight of each estimate, by which means over
        replicate weights are exact.
        """
        shares = None if share is None else self._sums(share)
        return self.units_of_clusters(self._sums(influence), shares)

    def units_of_table(self, influence: FloatArray) -> FloatArray:
        """The same from influences of all rows of the table."""
        return self._replace(rows=np.arange(len(self.cluster))).units(influence)

    def units_of_clusters(
        self, influence: FloatArray, share: FloatArray | None = None
    ) -> FloatArray:
        """The same from influences that are summed within clusters."""
        if self.replicates is None:
            mean = np.zeros((int(self.stratum.max()) + 1, *influence.shape[1:]))
            np.add.at(mean, self.stratum, influence)
            mean /= np.bincount(self.stratum)[:, None]
            return np.asarray(np.sqrt(self.factor)[:, None] * (influence - mean[self.stratum]))
        moved = self.replicates.T @ influence
        if share is not None:
            with np.errstate(invalid="ignore", divide="ignore"):
                moved = moved / (self.replicates.T @ share)
        return np.asarray(np.sqrt(self.factor)[:, None] * (moved - moved.mean(axis=0)))

    def _sums(self, values: FloatArray) -> FloatArray:
        """Sums over the rows in use of every cluster."""
        out = np.zeros((self.n_clusters, *values.shape[1:]))
        np.add.at(out, self.cluster[self.rows], values)
        return out
