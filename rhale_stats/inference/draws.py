"""Code shared by all bootstraps: drawn units, chains, and checks of replicates."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from rhale_stats.arguments.rows import row_codes
from rhale_stats.arguments.words import shown
from rhale_stats.arrays import resample
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.schema.dimensions import with_part_facts
from rhale_stats.schema.features import feature_names, own_facts
from rhale_stats.schema.identity import (
    OF_ESTIMATE,
    check_same_output,
    estimate_fingerprint,
    fingerprint_of,
    same_rows,
)
from rhale_stats.schema.kinds import ENSEMBLE

# Points of the grid on which replicates with bins of their own are compared.
GRID = 101
# Weights of this many bytes are held at once, by all threads together.
CHUNK_BYTES = 1 << 28
# Replicates at once; with few rows more, up to this number of weights.
CHUNK_DRAWS = 32
CHUNK_WEIGHTS = 1 << 17
# What replicates have in common with their result, and how messages call it.
PLACES = {
    **dict.fromkeys(("bin_left", "bin_right"), "edges"),
    "grid_value": "points of the grid",
    **dict.fromkeys(("edge_a", "edge_b"), "edges or levels"),
    **{f"level_{side}": "levels" for side in "ab"},
}


class Resampling(NamedTuple):
    """Arguments of `bootstrap`, with a random stream for every replicate."""

    scheme: str
    groups: ArrayLike | None
    strata: ArrayLike | None
    seeds: Sequence[np.random.Generator]
    rebin: bool
    studentize: bool
    n_grid: int
    progress: bool

    def refuse_choices_of_bins(self) -> None:
        """Raise ``ValueError`` for arguments that need bins, which these results do not have."""
        if self.rebin or self.studentize:
            raise ValueError(
                "rebin and studentize must be False for profiles, surfaces and H-statistics: they "
                "have no bins to choose, and their replicates have no standard errors."
            )

    def units(
        self,
        n_rows: int,
        counts: FloatArray | None,
        used: NDArray[np.bool_],
        labels: NDArray[Any] | None,
    ) -> resample.ResampledUnits:
        """The units to be drawn, for this number of rows with these frequencies.

        ``groups`` and ``strata`` are of all rows, which have these labels; ``used`` are those that
        the estimates were made from.
        """
        group, stratum = (
            None if column is None else row_codes(column, labels, used, name)
            for column, name in ((self.groups, "groups"), (self.strata, "strata"))
        )
        n_units = n_rows if group is None else int(group.max()) + 1
        members = in_strata(n_units, group, stratum)
        return resample.ResampledUnits(group, members, counts if group is None else None)

    def weights(
        self, units: resample.ResampledUnits, n_rows: int, room: int
    ) -> Iterator[FloatArray]:
        """Weights of the rows in the replicates, (row, draw), ``room`` numbers or so at a time."""
        size = int(np.clip(room // n_rows, 1, 64))
        for begin in range(0, len(self.seeds), size):
            streams = self.seeds[begin : begin + size]
            yield resample.weights_of(self.scheme, units, streams, n_rows)


def in_strata(n_units: int, group: IntArray | None, stratum: IntArray | None) -> list[IntArray]:
    """Units of every stratum; ``group`` and ``stratum`` are codes of the rows.

    Raises ``ValueError`` where a group is in two strata.
    """
    if stratum is None:
        return [np.arange(n_units)]
    of_unit = stratum
    if group is not None:
        of_unit = np.empty(n_units, dtype=np.int64)
        of_unit[group] = stratum
        if not np.array_equal(of_unit[group], stratum):
            raise ValueError("strata must hold whole groups; some group has rows in two strata.")
    return [np.flatnonzero(of_unit == code) for code in range(int(stratum.max()) + 1)]


class Replication(NamedTuple):
    """Replicates along ``draw``, what was drawn, the result they are of, and facts of their own."""

    replicates: xr.Dataset
    units: resample.ResampledUnits
    effect: xr.Dataset
    facts: Mapping[str, str]


def chains_of(n_resamples: int, chains: int) -> int:
    """Chains of one length, as many as divide the replicates, and at most so many."""
    return max(n for n in range(1, chains + 1) if n_resamples % n == 0)


def in_chains(draws: xr.Dataset, chains: int) -> xr.Dataset:
    """Replicates along ``draw`` as (chain, draw); variables without draws become coordinates.

    ArviZ treats every variable as draws.
    """
    draws = draws.set_coords([name for name in draws.data_vars if "draw" not in draws[name].dims])
    per_chain = draws.sizes["draw"] // chains
    index = pd.MultiIndex.from_product(
        [range(chains), range(per_chain)], names=("chain", "draw_in_chain")
    )
    coords = xr.Coordinates.from_pandas_multiindex(index, "draw")
    out = draws.assign_coords(coords).unstack("draw").rename(draw_in_chain="draw")
    return out.transpose("chain", "draw", ...)


def labelled_draws(
    result: xr.Dataset, values: Mapping[str, FloatArray], without: Iterable[str]
) -> xr.Dataset:
    """Replicates of variables of a result along ``draw``, without coordinates over some dims."""
    coords = {
        name: coord for name, coord in result.coords.items() if not {*without} & {*coord.dims}
    }
    data = {
        name: (("draw", *result[name].dims), array, dict(result[name].attrs))
        for name, array in values.items()
    }
    return xr.Dataset(data, coords)


def check_boot(
    result: xr.Dataset, boot: object, names: Sequence[str], maker: str, method: str = "percentile"
) -> xr.Dataset:
    """The replicates; raise ``TypeError`` or ``ValueError`` unless they are of this result.

    ``names`` are estimates that replicates are needed of, and ``maker`` is the call that makes
    them, as messages say it.
    """
    if boot is None:
        raise ValueError(f"boot must be given for method {method!r}: {maker}.")
    if not isinstance(boot, xr.Dataset) or not {"chain", "draw"} <= set(boot.dims):
        came = "a Dataset without replicates" if isinstance(boot, xr.Dataset) else shown(boot)
        raise TypeError(f"boot must be what {maker} returned; got {came}.")
    if ENSEMBLE.holds(boot):
        raise ValueError(
            f"boot must be replicates of this result, {maker}; got {ENSEMBLE.name}, which are on a "
            f"grid of their own. Their intervals and sizes are confint(boot) and "
            f"effect_sizes(boot)."
        )
    if "grid" in boot.dims and "grid" not in result.dims:
        raise ValueError(
            "boot must have the bins of effect; this one chose them again (rebin=True). For "
            "intervals take quantiles: boot['curve'].quantile([0.025, 0.975], ('chain', 'draw')); "
            "or use bootstrap without rebin."
        )
    boot = with_part_facts(boot)
    check_same_output(boot, result, ("boot", "effect"))
    other = _what_differs(result, boot, names)
    if other:
        raise ValueError(f"boot must be of this result; {other}. Make it again: {maker}.")
    if method == "studentized" and "curve_se" not in boot:
        raise ValueError(
            "boot must hold standard errors for method 'studentized'; make it with "
            "bootstrap(..., studentize=True)."
        )
    return boot


def _what_differs(result: xr.Dataset, boot: xr.Dataset, names: Sequence[str]) -> str:
    """Why replicates are not of a result, in words; empty where nothing says so."""
    absent = [name for name in names if name not in boot]
    if absent:
        return f"it has no replicates of {', '.join(absent)}"
    features = [
        feature_names(dataset) if "feature" in dataset.dims else [] for dataset in (boot, result)
    ]
    if features[0] != features[1]:
        return f"its features are {', '.join(features[0])}, not {', '.join(features[1])}"
    for name, what in PLACES.items():
        if name in result and not (name in boot and _equal(boot[name].values, result[name].values)):
            return f"its {what} differ"
    for fact in ("centering", "weighting"):
        of_boot, of_result = (str(dataset.attrs.get(fact, "")) for dataset in (boot, result))
        if of_boot and of_result and of_boot != of_result:
            return f"its curves have {fact} {of_boot!r}, not {of_result!r}"
    for number, name in enumerate(features[0]):
        mark_of_result, other = (
            fingerprint_of(own_facts(dataset.isel(feature=number))) for dataset in (result, boot)
        )
        if mark_of_result and other and mark_of_result != other:
            rows = "of another model" if same_rows(mark_of_result, other) else "of other rows"
            return f"its replicates of feature {name!r} are {rows}"
    made_from = boot.attrs.get(OF_ESTIMATE)
    if made_from is not None and made_from != estimate_fingerprint(result, names):
        return "it comes from another model, other rows or another output"
    return ""


def _equal(a: NDArray[Any], b: NDArray[Any]) -> bool:
    """Whether arrays of numbers, perhaps unknown, or of texts are equal."""
    return np.array_equal(a, b, equal_nan=a.dtype.kind == b.dtype.kind == "f")


def draws_of(boot: xr.Dataset, name: str, dims: Sequence[Hashable] = (...,)) -> FloatArray:
    """Replicates of one variable, (draw, ...), all chains one after the other."""
    draws = np.asarray(boot.variables[name].transpose("chain", "draw", *dims), dtype=np.float64)
    return draws.reshape(draws.shape[0] * draws.shape[1], *draws.shape[2:])
