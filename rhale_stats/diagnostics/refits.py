"""Bootstrap with the model fitted again on every sample."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from joblib.externals.loky import ProcessPoolExecutor
from numpy.typing import ArrayLike, NDArray

from rhale_stats.arguments.checks import check_count
from rhale_stats.arguments.rows import row_codes
from rhale_stats.arguments.seeds import seeded
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.effects.rebinned import common_grid, evaluated
from rhale_stats.inference.draws import GRID, check_resamples, in_chains, progress_bar
from rhale_stats.models.table import as_array
from rhale_stats.parallel import cpus
from rhale_stats.schema.checks import check_effect
from rhale_stats.schema.door import checked
from rhale_stats.schema.features import feature_names
from rhale_stats.schema.variables import EFFECT_VARIABLES, software


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
    jobs: int | None = None,
    rng: np.random.Generator | int | None = None,
    progress: bool = True,
) -> xr.Dataset:
    r"""Bootstrap with the model fitted again to every replicate of the rows (math [30]).

    Parameters
    ----------
    fit : callable
        Takes a table of rows like ``data`` and returns an effect: it fits the model, takes local
        effects and makes `rhale` of them. It runs in other processes; any function will do, a
        lambda as well.
    data : DataFrame, or array_like of shape (n_rows, n_columns)
        All that ``fit`` needs, outcomes included.
    n_resamples : int, default 100
        Replicates of all chains together, a multiple of ``chains``.
    chains : int, default 4
        Independent streams.
    groups : array_like of shape (n_rows,), optional
        Rows of one group are drawn together.
    n_grid : int, default 101
        Points of the grid on which the curves are compared, over the range of the estimate.
    jobs : int, optional
        Processes; by default as many as there are CPUs for this process.
    rng : Generator, int or None
        Source of the rows, or its seed, as in `bootstrap`. Every replicate has a stream of its own.
    progress : bool, default True
        Show a bar where it takes long.

    Returns
    -------
    Dataset
        As `bootstrap` with ``rebin=True``: ``effect``, ``heterogeneity`` and ``curve`` over (chain,
        draw, feature, grid), ``average_effect`` over (chain, draw, feature), and the estimate from
        all rows, ``effect_estimate``, ``heterogeneity_estimate``, ``curve_estimate`` over (feature,
        grid). ``source`` is "refit". A replicate whose fit raised is NaN, ``failed`` (chain, draw)
        is 1 and the first reason is in the attributes.

    Raises
    ------
    ValueError
        ``n_resamples`` is no multiple of ``chains``; every fit failed; ``fit`` returned effects of
        other features.
    TypeError
        ``fit`` returned something else than an effect.

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
    >>> boot = rs.bootstrap_refit(fit, data, n_resamples=100, jobs=1, rng=0)
    >>> float(boot["average_effect"].std().round(2))  # least squares says 0.24
    0.23
    """
    check_resamples(n_resamples, chains)
    check_count("n_grid", n_grid, 2)
    table = data if isinstance(data, pd.DataFrame) else as_array(data, "data must hold")
    n_rows = len(table)
    group = None
    if groups is not None:
        labels = table.index.to_numpy() if isinstance(table, pd.DataFrame) else None
        group = row_codes(groups, labels, np.ones(n_rows, dtype=bool), "groups", "rows of data")
    whole = check_effect(fit(table), "what fit returns", "rhale(local)")
    names = feature_names(whole)
    grid = common_grid(whole, n_grid)
    refit = _Refit(fit, table, group, grid, tuple(names))
    streams = np.random.default_rng(rng).spawn(n_resamples)
    if jobs is not None:
        check_count("jobs", jobs, 1)
    # More processes than replicates would only be started and ended.
    jobs = min(jobs or cpus(), n_resamples)
    found: list[dict[str, NDArray[Any]] | str] = []
    with progress_bar(n_resamples, progress=progress) as bar:
        for one in _mapped(refit, streams, jobs):
            found.append(one)
            bar.update(1)
    reasons = [one for one in found if isinstance(one, str)]
    if len(reasons) == len(found):
        raise ValueError(f"fit must work on resampled rows; all {len(found)} failed: {reasons[0]}")
    out = xr.Dataset(
        _replicates(found, evaluated(whole, grid), len(names)),
        {
            "feature": whole["feature"].variable,
            "feature_kind": whole["feature_kind"].variable,
            "feature_units": whole["feature_units"].variable,
            "grid_value": (("feature", "grid"), grid, {"long_name": "point of the grid"}),
        },
        {
            **whole.attrs,
            "method": "bootstrap",
            "scheme": "multinomial",
            "n_resamples": n_resamples,
            "source": "refit" if groups is None else "refit, groups of rows",
            "model": "fitted again in every replicate",
            "bins": "chosen again in every replicate",
            "first_failure": reasons[0] if reasons else "",
            "software": software(),
        },
    )
    return in_chains(out, chains)


def _replicates(
    found: Sequence[dict[str, NDArray[Any]] | str],
    estimate: Mapping[str, NDArray[Any]],
    n_features: int,
) -> dict[str, Any]:
    """Variables of all replicates, NaN where the fit raised, beside the estimates of all rows."""
    on_grid = ("effect", "heterogeneity", "curve")
    variables: dict[str, Any] = {}
    for name in (*on_grid, "average_effect"):
        size = estimate[name].shape if name in on_grid else (n_features,)
        values = np.stack(
            [np.full(size, np.nan) if isinstance(one, str) else one[name] for one in found]
        )
        dims = ("draw", "feature", "grid")[: values.ndim]
        _, long_name, units = EFFECT_VARIABLES[name]
        variables[name] = (dims, values, {"long_name": long_name, "units": units})
    for name in on_grid:
        about = variables[name][2]
        variables[f"{name}_estimate"] = (
            ("feature", "grid"),
            estimate[name],
            {**about, "long_name": f"{about['long_name']}, all rows"},
        )
    failed = np.array([isinstance(one, str) for one in found], dtype=np.float64)
    variables["failed"] = (("draw",), failed, {"long_name": "the fit raised", "units": "1"})
    return variables


class _Refit(NamedTuple):
    """All that a replicate of a fit needs but for its stream."""

    fit: Callable[[Any], xr.Dataset]
    table: Any
    group: IntArray | None
    grid: FloatArray
    names: tuple[str, ...]

    def __call__(self, stream: np.random.Generator) -> dict[str, NDArray[Any]] | str:
        """Values on the grid, or why there are none."""
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
        effect = check_effect(effect, "what fit returns", "rhale(local)")
        if tuple(feature_names(effect)) != self.names:
            raise ValueError(
                f"fit must return the same features for all rows and for resampled ones; got "
                f"{', '.join(self.names)} for all, {', '.join(feature_names(effect))} for some."
            )
        return {
            **evaluated(effect, self.grid),
            "average_effect": np.asarray(effect["average_effect"].values),
        }


# What replicates of a worker process share, set when it starts: tables may be large.
_REFIT: _Refit | None = None


def _start(refit: _Refit) -> None:
    global _REFIT
    _REFIT = refit


def _run(stream: np.random.Generator) -> dict[str, NDArray[Any]] | str:
    assert _REFIT is not None, "a worker starts with its task"
    return _REFIT(stream)


def _mapped(
    refit: _Refit, streams: Sequence[np.random.Generator], jobs: int
) -> Iterator[dict[str, NDArray[Any]] | str]:
    """Results in order, from so many processes."""
    if jobs == 1:
        yield from (refit(stream) for stream in streams)
        return
    # The executor behind joblib, which takes lambdas too; joblib itself would send the table with
    # every replicate. Imported late: it takes a tenth of a second.

    with ProcessPoolExecutor(jobs, initializer=_start, initargs=(refit,)) as pool:
        yield from pool.map(_run, streams, chunksize=max(1, len(streams) // (8 * jobs)))
