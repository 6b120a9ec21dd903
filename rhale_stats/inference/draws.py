"""Code shared by all bootstraps: drawn units, chains, and checks of replicates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from tqdm import tqdm

from rhale_stats.arguments.checks import check_count
from rhale_stats.arguments.progress import PROGRESS_DELAY
from rhale_stats.arguments.rows import row_codes
from rhale_stats.arguments.words import shown
from rhale_stats.arrays import resample
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.schema.dimensions import of_part
from rhale_stats.schema.features import feature_names, own_facts
from rhale_stats.schema.identity import check_same_output, fingerprint_of, same_rows

# Points of the grid on which replicates with bins of their own are compared.
GRID = 101
# Weights of this many bytes are held at once, by all threads together.
CHUNK_BYTES = 1 << 28
# Replicates at once; with few rows more, up to this number of weights.
CHUNK_DRAWS = 32
CHUNK_WEIGHTS = 1 << 17


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
    ) -> resample.Units:
        """The units to be drawn, for this number of rows with these frequencies.

        ``groups`` and ``strata`` are of all rows, which have these labels; ``used`` are those that
        the estimates were made from.
        """
        group, stratum = (
            None if given is None else row_codes(given, labels, used, name)
            for given, name in ((self.groups, "groups"), (self.strata, "strata"))
        )
        n_units = n_rows if group is None else int(group.max()) + 1
        members = [np.arange(n_units)]
        if stratum is not None:
            of_unit = stratum
            if group is not None:
                of_unit = np.empty(n_units, dtype=np.int64)
                of_unit[group] = stratum
                if not np.array_equal(of_unit[group], stratum):
                    raise ValueError(
                        "strata must hold whole groups; some group has rows in two strata."
                    )
            members = [np.flatnonzero(of_unit == code) for code in range(int(stratum.max()) + 1)]
        return resample.Units(group, members, counts if group is None else None)


class Drawn(NamedTuple):
    """Replicates along ``draw``, what was drawn, the result they are of, and facts of their own."""

    replicates: xr.Dataset
    units: resample.Units
    effect: xr.Dataset
    facts: Mapping[str, str]


def check_resamples(n_resamples: int, chains: int) -> None:
    """Raise ``ValueError`` unless the chains are of one length."""
    for name, value in (("n_resamples", n_resamples), ("chains", chains)):
        check_count(name, value, 1)
    if n_resamples % chains:
        raise ValueError(
            f"n_resamples must be a multiple of chains; got {n_resamples} and {chains}. Take "
            f"{n_resamples + chains - n_resamples % chains}."
        )


def in_chains(draws: xr.Dataset, chains: int) -> xr.Dataset:
    """Replicates along ``draw`` as (chain, draw); variables without draws become coordinates.

    ArviZ treats every variable as draws.
    """
    draws = draws.set_coords([name for name in draws.data_vars if "draw" not in draws[name].dims])
    per_chain = draws.sizes["draw"] // chains
    number = np.arange(draws.sizes["draw"])
    index = pd.MultiIndex.from_arrays(
        [number // per_chain, number % per_chain], names=("chain", "draw_in_chain")
    )
    coords = xr.Coordinates.from_pandas_multiindex(index, "draw")
    out = draws.assign_coords(coords).unstack("draw").rename(draw_in_chain="draw")
    return out.transpose("chain", "draw", ...)


def check_boot(effect: xr.Dataset, boot: object, method: str) -> xr.Dataset:
    """The replicates; raise ``TypeError`` or ``ValueError`` unless they are of this effect."""
    if not isinstance(boot, xr.Dataset) or "draw" not in boot.dims:
        came = "a Dataset without replicates" if isinstance(boot, xr.Dataset) else shown(boot)
        raise TypeError(f"boot must be what bootstrap(local, effect) returned; got {came}.")
    if "grid" in boot.dims:
        refit = str(boot.attrs.get("source", "")).startswith("refit")
        made = "comes from bootstrap_refit" if refit else "chose them again (rebin=True)"
        raise ValueError(
            f"boot must have the bins of effect; this one {made}. For intervals take quantiles: "
            f"boot['curve'].quantile([0.025, 0.975], ('chain', 'draw')); or use bootstrap without "
            f"rebin."
        )
    if "edge_value" not in boot:
        raise ValueError(
            "boot must be of effect; these replicates are not of effects in bins. Make them with "
            "bootstrap(local, effect)."
        )
    edges = boot["edge_value"].values, effect["edge_value"].values
    if not np.array_equal(*edges, equal_nan=True):
        raise ValueError("boot must have the bins of effect; its edges differ.")
    boot = of_part(boot)
    _check_estimates(effect, boot)
    if method == "studentized" and "curve_se" not in boot:
        raise ValueError(
            "boot must hold standard errors for method 'studentized'; make it with "
            "bootstrap(..., studentize=True)."
        )
    return boot


def _check_estimates(effect: xr.Dataset, boot: xr.Dataset) -> None:
    """Raise ``ValueError`` if replicates belong to other rows, another model or another curve."""
    check_same_output(boot, effect, ("boot", "effect"))
    for number, name in enumerate(feature_names(effect)):
        own, other = (fingerprint_of(own_facts(one.isel(feature=number))) for one in (effect, boot))
        if own and other and own != other:
            rows = "of another model" if same_rows(own, other) else "of other rows"
            raise ValueError(
                f"boot must come from effect; its replicates of feature {name!r} are {rows}. Make "
                f"it again: bootstrap(local, effect)."
            )
    for fact in ("centering", "weighting"):
        of_effect, of_boot = (str(one.attrs.get(fact, "")) for one in (effect, boot))
        if of_effect and of_boot and of_effect != of_boot:
            raise ValueError(
                f"boot must come from effect; its curves have {fact} {of_boot!r}, those of effect "
                f"{of_effect!r}. Make it again: bootstrap(local, effect)."
            )


def draws_of(boot: xr.Dataset, name: str) -> FloatArray:
    """Replicates of one variable of one feature, all chains one after the other."""
    draws = np.asarray(boot.variables[name].transpose("chain", "draw", ...), dtype=np.float64)
    return draws.reshape(-1, *draws.shape[2:])


def progress_bar(total: int, what: str = "bootstrap", *, progress: bool) -> tqdm[Any]:
    """A bar that counts the replicates done; it appears only if the work takes long."""
    return tqdm(total=total, desc=what, delay=PROGRESS_DELAY, disable=not progress, leave=False)
