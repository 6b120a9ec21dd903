"""Estimates on folds of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arguments.progress import progress_bar
from rhale_stats.arguments.seeds import seeded
from rhale_stats.arguments.words import warn
from rhale_stats.bins.description import DEFAULT_BINS
from rhale_stats.bins.rule import BinRule
from rhale_stats.effects.replicates import evaluated
from rhale_stats.effects.rhale import quiet_rhale
from rhale_stats.inference.draws import GRID
from rhale_stats.models.outputs import Model
from rhale_stats.schema.checks import check_local
from rhale_stats.schema.features import feature_names
from rhale_stats.schema.parts import over_outputs, over_row_sets
from rhale_stats.schema.validation import validated
from rhale_stats.schema.variables import EFFECT_VARIABLES, GRID_VALUE, software

ESTIMATES = ("effect", "heterogeneity", "curve")


@validated
@seeded
@over_outputs
@over_row_sets
def folds(
    local: xr.Dataset | Model,
    X: Any = None,
    features: str | int | Sequence[str | int] | None = None,
    *,
    bins: BinRule | None = None,
    n_folds: int = 5,
    n_repeats: int = 1,
    centering: str = "mean",
    weighting: str = "axis",
    n_grid: int = GRID,
    rng: np.random.Generator | int | None = None,
    progress: bool = True,
) -> xr.Dataset:
    r"""Estimates in folds of the rows, with standard errors from their spread (math [28]).

    Parameters
    ----------
    local, X, features
        As in `rhale`.
    bins, centering, weighting
        As in `rhale`. Bins are chosen anew in every fold.
    n_folds : int, default 5
        Number of folds, at least 2, with about equal numbers of rows.
    n_repeats : int, default 1
        Number of random partitions of the rows into folds.
    n_grid : int, default 101
        Number of grid points at which the folds are compared, over the range of all rows.
    %(rng of folds)s
    %(progress)s

    Returns
    -------
    Dataset
        ``effect``, ``heterogeneity`` and ``curve`` over (repeat, fold, feature, grid) at
        ``grid_value``; their means over repeats and folds, ``effect_mean`` and so on, and their
        standard errors, ``effect_se`` and so on, both over (feature, grid). A standard error is the
        standard deviation over folds, divided by the root of their number, and averaged over
        repeats. At points outside the range of a fold its estimates are NaN, and so are means and
        standard errors.

    Raises
    ------
    ValueError
        Fewer rows than folds, or fewer rows in a fold than the rule needs.

    Warns
    -----
    UserWarning
        Some folds have bins without rows. There is one warning, with the number of such folds.

    Notes
    -----
    With J folds, the estimate of a fold has about J times the variance of the estimate from all
    rows. The mean of the folds has the bias of an estimate from N / J rows. With few folds the
    standard error is uncertain: its relative error is about 1 / sqrt(2 (J - 1)).

    References
    ----------
    Note of June 2021, *Idea in bullets*, section 1.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> local = rs.local_effects(lambda X: 2 * X[:, 0] + 4 * X[:, 0] * X[:, 1], X)
    >>> found = rs.folds(local, bins=rs.EqualWidthBins(1), n_repeats=20, rng=0)
    >>> found["effect_se"].isel(grid=50).round(1).values
    array([0.1, 0.1])
    """
    del X, features  # `validated` has made local effects of them
    local = check_local(local)
    if "weight" in local:
        local = local.isel(obs=local["weight"].values > 0)
    n_obs = local.sizes["obs"]
    if n_obs < n_folds:
        raise ValueError(
            f"n_folds must not exceed the number of rows; got {n_folds} for {n_obs} rows of "
            f"{', '.join(map(repr, feature_names(local)))}."
        )
    rule: BinRule = DEFAULT_BINS if bins is None else bins
    x = local["x"].transpose("feature", "obs").values
    grid = np.linspace(x.min(axis=1), x.max(axis=1), n_grid).T
    generator = np.random.default_rng(rng)
    out = {name: np.full((n_repeats, n_folds, *grid.shape), np.nan) for name in ESTIMATES}
    n_gaps = 0
    with progress_bar(n_repeats * n_folds, "folds", "fold", progress=progress) as bar:
        for repeat in range(n_repeats):
            order = generator.permutation(n_obs)
            for fold, rows in enumerate(np.array_split(order, n_folds)):
                part = local.isel(obs=np.sort(rows))
                effect = quiet_rhale(
                    part, rule, centering=centering, weighting=weighting, has_spread=False
                )
                beyond = effect["bin"].values >= effect["n_bins"].values[:, None]
                n_gaps += bool(((effect["n_obs"].values == 0) & ~beyond).any())
                for name, values in evaluated(effect, grid).items():
                    out[name][repeat, fold] = values
                bar.update(1)
    if n_gaps:
        warn(
            f"Bins without rows in {n_gaps} of {n_repeats * n_folds} folds: estimates are NaN "
            f"there, and so are their means over folds. Use fewer bins, or fewer folds."
        )
    return xr.Dataset(
        _over_folds(out),
        {"feature": local["feature"], "grid_value": (("feature", "grid"), grid, GRID_VALUE)},
        {
            "method": "folds",
            "n_folds": n_folds,
            "n_repeats": n_repeats,
            "centering": centering,
            "bin_rule": type(rule).__name__,
            "output_name": local.attrs.get("output_name", "output"),
            "output_units": local.attrs.get("output_units", ""),
            "software": software(),
        },
    )


def _over_folds(estimates: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """Estimates (repeat, fold, feature, grid), with their means and standard errors (math [28])."""
    variables: dict[str, Any] = {}
    dims = ("feature", "grid")
    for name, values in estimates.items():
        _, long_name, units = EFFECT_VARIABLES[name]
        se = (values.std(axis=1, ddof=1) / np.sqrt(values.shape[1])).mean(axis=0)
        about = {"long_name": long_name, "units": units}
        of_mean = {**about, "long_name": f"{long_name}, mean over folds"}
        of_se = {**about, "long_name": f"standard error of {long_name}", "source": "rows"}
        variables[name] = (("repeat", "fold", *dims), values, about)
        variables[f"{name}_mean"] = (dims, values.mean(axis=(0, 1)), of_mean)
        variables[f"{name}_se"] = (dims, se, of_se)
    return variables
