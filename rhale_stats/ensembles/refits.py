"""Bootstrap with the model fitted again on every sample."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike

from rhale_stats.arguments.rows import row_codes
from rhale_stats.arguments.seeds import seeded
from rhale_stats.arguments.words import warn
from rhale_stats.arrays.moments import IntArray
from rhale_stats.ensembles.labelled import (
    Grid,
    Member,
    check_member,
    common_grid,
    labelled,
    on_grid,
)
from rhale_stats.inference.draws import GRID, check_resamples, progress_bar
from rhale_stats.models.table import as_array
from rhale_stats.parallel import in_processes, n_processes
from rhale_stats.schema.door import checked
from rhale_stats.schema.features import feature_names


@checked
@seeded
def bootstrap_refit(
    fit: Callable[[Any], xr.Dataset],
    data: Any,
    *,
    n_resamples: int = 100,
    chains: int = 4,
    groups: ArrayLike | None = None,
    n_grid: int = GRID,
    n_jobs: int | None = -1,
    rng: np.random.Generator | int | None = None,
    progress: bool = True,
    jobs: int | None = None,
) -> xr.Dataset:
    r"""Bootstrap of rows in which the model is fitted again to every sample (math [30]).

    Parameters
    ----------
    fit : callable
        Function of a table like ``data`` that returns an effect: it fits the model, computes local
        effects and calls `rhale`. It may be a lambda or a closure (joblib sends it to the
        processes).
    data : DataFrame, or array_like of shape (n_rows, n_columns)
        All columns that ``fit`` needs, including the outcomes.
    n_resamples : int, default 100
        Number of replicates in all chains together, a multiple of ``chains``.
    chains : int, default 4
        Number of independent streams of random numbers.
    groups : array_like of shape (n_rows,), optional
        Rows of one group are drawn together.
    n_grid : int, default 101
        Number of grid points at which the curves are compared, over the range of the estimate.
    n_jobs : int or None, default -1
        Processes, as joblib counts them: -1 for as many as there are CPUs, -2 for one fewer; 1 or
        None for this process alone. The results are the same, up to the rounding of linear algebra
        if ``fit`` does it on several threads: the processes share the CPUs.
    rng : Generator, int or None
        Source of random numbers, or its seed, as in `bootstrap`. Every replicate has its own
        stream.
    progress : bool, default True
        Show a progress bar if it takes long.
    jobs : int, optional
        Deprecated name of ``n_jobs``.

    Returns
    -------
    Dataset
        As `bootstrap` with ``rebin=True``: ``effect``, ``heterogeneity`` and ``curve`` over (chain,
        draw, feature, grid), ``average_effect`` over (chain, draw, feature), and the estimate from
        all rows, ``effect_estimate``, ``heterogeneity_estimate``, ``curve_estimate`` over (feature,
        grid). ``source`` is "refit". If the fit of a replicate raises an error, its values are NaN
        and ``failed`` (chain, draw) is 1. The first error is in the attributes.

    Raises
    ------
    ValueError
        ``n_resamples`` is not a multiple of ``chains``; all fits failed; ``fit`` returned effects
        of other features.
    TypeError
        ``fit`` did not return an effect.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(200, 1))
    >>> data = np.column_stack([X, 3 * X + rng.normal(size=X.shape)])
    >>> def fit(rows):
    ...     slope = np.polyfit(rows[:, 0], rows[:, 1], 1)[0]
    ...     local = rs.local_effects(lambda X: slope * X[:, 0], rows[:, :1], features=0)
    ...     return rs.rhale(local, centering="start")
    >>> boot = rs.bootstrap_refit(fit, data, n_resamples=100, n_jobs=1, rng=0)
    >>> float(boot["average_effect"].std().round(2))  # least squares says 0.24
    0.23
    """
    if jobs is not None:
        warn("jobs is deprecated and will be removed; use n_jobs.", FutureWarning)
        n_jobs = jobs
    check_resamples(n_resamples, chains)
    table = data if isinstance(data, pd.DataFrame) else as_array(data, "data must hold")
    n_rows = len(table)
    group = None
    if groups is not None:
        labels = table.index.to_numpy() if isinstance(table, pd.DataFrame) else None
        group = row_codes(groups, labels, np.ones(n_rows, dtype=bool), "groups", "rows of data")
    whole = check_member(fit(table), "what fit returns")
    grid = common_grid([whole], n_grid, "what fit returns")
    refit = _Refit(fit, table, group, grid)
    streams = np.random.default_rng(rng).spawn(n_resamples)
    # More processes than replicates would have nothing to do.
    processes = n_processes(n_jobs, most=n_resamples)
    with progress_bar(n_resamples, progress=progress) as bar:
        members: list[Member] = in_processes(refit, streams, processes, lambda _: bar.update(1))
    reasons = [member for member in members if isinstance(member, str)]
    if len(reasons) == len(members):
        raise ValueError(
            f"fit must work on resampled rows; all {len(members)} failed: {reasons[0]}"
        )
    facts = {
        "method": "bootstrap_refit",
        "scheme": "bootstrap",
        "n_resamples": n_resamples,
        "source": "refits" if groups is None else "refits, groups of rows",
        "model": "fitted again in every replicate",
        "bins": "chosen again in every replicate",
    }
    return labelled(members, grid, whole, on_grid(whole, grid), chains, facts)


@dataclass(frozen=True)
class _Refit:
    """Everything that a replicate of a fit needs, except its stream of random numbers."""

    fit: Callable[[Any], xr.Dataset]
    table: Any
    group: IntArray | None
    grid: Grid

    def __call__(self, stream: np.random.Generator) -> Member:
        """Values on the grid, or the error of the fit."""
        n_rows = len(self.table)
        if self.group is None:
            rows = stream.integers(n_rows, size=n_rows)
        else:
            n_groups = int(self.group.max()) + 1
            members = np.split(
                np.argsort(self.group, kind="stable"), np.bincount(self.group).cumsum()[:-1]
            )
            rows = np.concatenate([members[g] for g in stream.integers(n_groups, size=n_groups)])
        if isinstance(self.table, pd.DataFrame):
            sample = self.table.iloc[rows].reset_index(drop=True)
            sample.attrs = self.table.attrs
        else:
            sample = self.table[rows]
        try:
            effect = self.fit(sample)
        except Exception as error:  # a fit may fail on some resamples, in any way
            return f"{type(error).__name__}: {error}"
        effect = check_member(effect, "what fit returns")
        if tuple(feature_names(effect)) != self.grid.names:
            raise ValueError(
                f"fit must return the same features for all rows and for resampled ones; got "
                f"{', '.join(self.grid.names)} for all, {', '.join(feature_names(effect))} for "
                f"some."
            )
        return on_grid(effect, self.grid)
