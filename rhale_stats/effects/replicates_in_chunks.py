"""Bootstrap of effects in bins that are held fixed, of rows in chunks (math [100])."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from rhale_stats.arrays import accumulate, resample
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.effects import replicates
from rhale_stats.effects.provenance import check_same_chunks
from rhale_stats.effects.replicates import FeatureTerms, labelled_replicates, nothing
from rhale_stats.inference.draws import Drawn, Resampling
from rhale_stats.local.chunks import ChunkedRows
from rhale_stats.local.rows import Rows, estimation_rows
from rhale_stats.parallel import one_blas_thread
from rhale_stats.schema.checks import check_effect, check_local, is_chunked
from rhale_stats.schema.curves import curve_cells, pieces_of
from rhale_stats.schema.features import feature_names, feature_position, one_feature
from rhale_stats.schema.identity import check_same_output
from rhale_stats.schema.kinds import LOCAL
from rhale_stats.schema.levels import refuse_categorical
from rhale_stats.schema.moments import has_cells

# Bytes of the sums of one chunk, of which a few are held at a time.
MAX_BYTES = 1 << 30
# Draws of which weights are made at a time.
DRAWS = 32


def bootstrap(local: xr.Dataset, effect: xr.Dataset | None, request: Resampling) -> Drawn:
    """`bootstrap` of effects in bins, of rows in memory or in chunks."""
    chunked = LOCAL.holds(local) and is_chunked(local)
    if not chunked:
        return replicates.bootstrap(local, effect, request)
    local = check_local(local, in_chunks=True)
    effect = check_effect(effect)
    check_same_output(local, effect, ("local", "effect"))
    _check_asked(effect, request)
    local = estimation_rows(local, effect)
    rows = ChunkedRows(local)
    features = [_feature(effect, name) for name in feature_names(effect)]
    positions = [feature_position(local, name) for name in feature_names(effect)]
    used = [feature for feature in features if feature is not None]
    n_draws = len(request.seeds)
    n_bytes = 8 * n_draws * (resample.SUMS + 2) * sum(len(_pieces(part).mean) for part in used)
    if n_bytes > MAX_BYTES:
        raise ValueError(
            f"n_resamples must be fewer where local effects are in chunks: sums of {n_draws} "
            f"replicates of {len(used)} features need {n_bytes / 2**30:.1f} GiB a chunk. Take "
            f"{max(int(n_draws * MAX_BYTES / n_bytes), 2)}, or some of the features."
        )
    seed = int(request.seeds[0].integers(2**63))
    of_chunk = _Sums(features, positions, seed, n_draws)
    numbers = range(len(rows.lengths))
    merged = rows.merged(of_chunk, _added, "bootstrap", beside=numbers, progress=request.progress)
    sums = iter(merged)
    check_same_chunks(rows, local, effect)
    centering = str(effect.attrs["centering"])
    out = nothing(effect, n_draws, studentize=False)
    for position, feature in enumerate(features):
        if feature is None:
            continue
        of_cells = of_bins = next(sums)
        if has_cells(feature.row):
            of_cells, of_bins = replicates.from_cells(feature, of_cells)
        estimates = replicates.estimates_from_sums(feature, of_cells, of_bins, centering)
        for name, values in estimates.items():
            if name in out:
                place: tuple[int | slice, ...] = (position, *map(slice, values.shape[1:]))
                out[name][(slice(None), *place)] = values
    counted = float(np.nansum(used[0].row["n_effective"].values)) if used else rows.n_rows
    units = resample.ResampledUnits(None, [np.zeros(1, dtype=np.int64)], np.array([counted]))
    return Drawn(labelled_replicates(out, effect), units, effect, {"bins": "fixed"})


def _check_asked(effect: xr.Dataset, request: Resampling) -> None:
    """Raise ``ValueError`` for what needs all rows at once."""
    refuse_categorical(effect, "bootstrap of local effects in chunks")
    refused = {
        "scheme": request.scheme != "poisson",
        "groups": request.groups is not None,
        "strata": request.strata is not None,
        "rebin": request.rebin,
        "studentize": request.studentize,
    }
    instead = {"scheme": "'poisson', which draws every row by itself", "groups": "None"}
    instead |= {"strata": "None", "rebin": "False", "studentize": "False"}
    for name, is_refused in refused.items():
        if is_refused:
            raise ValueError(
                f"{name} must be {instead[name]} where local effects are in chunks. Or use "
                f"local.compute(), or the rows of a sample."
            )
    if "debiased" in effect.attrs:
        raise ValueError(
            "effect must be of means, as rhale or std_error returned it, where local effects are "
            "in chunks."
        )


def _feature(effect: xr.Dataset, name: str) -> FeatureTerms | None:
    """The bins and cells of one feature; None for a constant one."""
    row = one_feature(effect, name)
    return FeatureTerms(row, pieces_of(row), curve_cells(row)) if row.sizes["bin"] else None


def _added(chunks: Sequence[list[FloatArray]]) -> list[FloatArray]:
    return [np.sum(each, axis=0) for each in zip(*chunks, strict=True)]


def _pieces(feature: FeatureTerms) -> accumulate.Pieces:
    """Cells of the curve, or bins where there are none: what is summed over."""
    return feature.cells.pieces if has_cells(feature.row) else feature.pieces


@dataclass(frozen=True)
class _Sums:
    """Sums of one chunk of rows over cells, for all replicates: (draw, cell, product) a feature.

    Every row is drawn a Poisson number of times, by a random stream of the chunk.
    """

    features: Sequence[FeatureTerms | None]
    positions: Sequence[int]
    seed: int
    n_draws: int

    def __call__(self, rows: Rows, number: int) -> list[FloatArray]:
        rng = np.random.default_rng(np.random.SeedSequence([self.seed, number]))
        terms_of_features = [
            self._terms(feature, rows, position)
            for feature, position in zip(self.features, self.positions, strict=True)
            if feature is not None
        ]
        units = resample.ResampledUnits(None, [np.arange(rows.n_rows)], rows.weight)
        parts: list[list[FloatArray]] = [[] for _ in terms_of_features]
        with one_blas_thread:
            for begin in range(0, self.n_draws, DRAWS):
                n = min(DRAWS, self.n_draws - begin)
                weight = resample.counts_of("poisson", units, [rng] * n, rows.n_rows)
                for part, terms in zip(parts, terms_of_features, strict=True):
                    part.append(resample.replicate_sums(terms, weight))
        return [np.concatenate(part) for part in parts]

    @staticmethod
    def _terms(feature: FeatureTerms, rows: Rows, position: int) -> resample.Terms:
        pieces = _pieces(feature)
        x, g = rows.x[position], rows.local_effect[position]
        return resample.terms(
            pieces,
            bin_index(pieces.edges, x),
            x,
            g,
            rows.weight,
            frequency=True,
            standard_errors=False,
            places=bool(feature.pieces.slope.any()),
        )
