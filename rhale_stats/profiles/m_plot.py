"""M-plots: the average output of the rows near a value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arguments.checks import centering_text
from rhale_stats.arrays import profiles as kernel
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.bins.description import describe
from rhale_stats.bins.rule import BinRule
from rhale_stats.bins.rules import EqualWidthBins, GivenBins, QuantileBins
from rhale_stats.local.request import on_axis
from rhale_stats.models.options import ModelOptions
from rhale_stats.models.outputs import Model
from rhale_stats.profiles.data import CENTERINGS, N_GRID, variable
from rhale_stats.profiles.inputs import ProfileInputs, at_rows, bin_beside, no_rows
from rhale_stats.profiles.rows import in_bins
from rhale_stats.schema.dimensions import OUTPUT
from rhale_stats.schema.validation import validated


@validated
def m_plot(
    model: Model,
    X: Any,
    features: str | int | Sequence[str | int] | None = None,
    *,
    bins: BinRule | None = None,
    percentiles: tuple[float, float] | None = None,
    centering: str | float = "mean",
    options: ModelOptions = ModelOptions(),
    progress: bool = True,
    **fields: Any,
) -> xr.Dataset:
    r"""M-plot: the mean prediction of the rows with values of the feature near a given value.

    Correlated features change together with it: the curve shows the predictions at a value of the
    feature, not its effect alone. The model is evaluated once, at the rows.

    Parameters
    ----------
    model, X
        As in `local_effects`. Rows of weight 0 are left out.
    options : ModelOptions, optional
        As in `pdp`. Rows without a value are in no bin. With ``missing="bin"`` they form a
        separate group beside the axis: ``missing_curve`` is their mean output. For categories
        "missing" is the last level.
    bins : bin rule, optional
        Bins of the rows; `QuantileBins` (40) by default. Rules that choose bins by local effects
        are refused. The levels of a category are always bins.
    percentiles : pair of float, optional
        Between which percentiles of its rows a feature has its axis, as in `local_effects`. Rows
        beyond them, and beyond `GivenBins`, are left out of the feature and counted in
        ``n_beyond``.
    features, centering, progress
        As in `pdp`.

    Returns
    -------
    Dataset
        As `pdp`, with a bin in place of each grid point; the grid value is the mean of the feature
        over the rows of the bin: ``curve`` is the mean output of these rows (math [42]),
        ``curve_std`` its standard deviation (ddof 1), and ``n_obs`` (feature, grid) their number.
        With ``output_value``
        (obs), the output of the rows, their ``x`` (feature, obs), and ``weight`` (obs) where
        given: `bootstrap` and paired `compare` need these rows. ``bin_left`` and
        ``bin_right`` (feature, grid) are the ends of the bin. A bin without rows is NaN. The
        standard error of ``missing_curve`` combines that of the mean of these rows and, independent
        of it, that of the constant.

    Raises
    ------
    ValueError, KeyError, TypeError, ModelError
        As `local_effects`; a rule that chooses bins by local effects.

    Notes
    -----
    Bins are taken as fixed, and are independent of each other. With ``centering="mean"`` the
    constant is the mean output of all rows, and the standard error includes its sampling error.

    References
    ----------
    Cleveland (1993), *Visualizing data*; Apley and Zhu (2020), Eq. 4.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> found = rs.m_plot(lambda X: X[:, 0] + X[:, 1], X, bins=rs.EqualWidthBins(2))
    >>> found["curve"].sel(feature="x0").round(1).values
    array([-0.5,  0.4])
    """
    centering = centering_text(centering, CENTERINGS)
    rule = QuantileBins(N_GRID) if bins is None else bins
    if not isinstance(rule, EqualWidthBins | QuantileBins | GivenBins):
        raise TypeError(
            f"bins must be QuantileBins, EqualWidthBins or GivenBins, which do not look at local "
            f"effects; got {type(rule).__name__}."
        )
    inputs = ProfileInputs.used(X, features, options, percentiles=percentiles)
    quotients = inputs.quotients(model)
    with quotients.counted(inputs.table.n_rows, "M-plot", progress=progress):
        answers = at_rows(quotients)
    axes, estimates = [], []
    for axis in inputs.axes(None, N_GRID, "quantile"):
        if axis.levels is None and len(axis.grid):
            axis = axis._replace(x=on_axis(inputs, axis.position, axis.x, rule))
        weight = inputs.weight_at(axis.present)
        if axis.levels is not None:
            cell, edges = axis.x[axis.present].astype(np.intp), np.arange(len(axis.grid) + 1) - 0.5
        else:
            cell, edges = in_bins(rule, axis.name, axis.x[axis.present], weight)
        n_bins = max(len(edges) - 1, 0)
        x = kernel.bin_means(axis.x[axis.present], cell, n_bins, weight, frequency=inputs.frequency)
        axes.append(axis._replace(grid=x.mean, values=x.mean))
        each = [
            kernel.bin_means(f[axis.present], cell, n_bins, weight, frequency=inputs.frequency)
            for f in answers.T
        ]
        estimates.append(
            _of_bins(each, x.mean, centering)
            | {
                "n_obs": each[0].n_obs,
                "n_effective": each[0].n_effective,
                "weight_share": each[0].share,
                "bin_left": edges[:-1],
                "bin_right": edges[1:],
            }
            | bin_beside(inputs, axis, answers, each, x.mean, centering)
        )
    out = inputs.labelled(axes, estimates, quotients, method="m_plot", centering=centering)
    several = OUTPUT in out.dims
    values, dims = (answers.T, (OUTPUT, "obs")) if several else (answers[:, 0], ("obs",))
    out["output_value"] = variable("output_value", values, dims)
    rule_name, parameters = describe(rule)
    out = inputs.with_rows(out, axes)
    return out.set_coords(["bin_left", "bin_right"]).assign_attrs(
        bin_rule=rule_name, bin_parameters=parameters
    )


def _of_bins(
    each: Sequence[kernel.BinMeans], x: FloatArray, centering: str
) -> dict[str, NDArray[Any]]:
    """An M-plot from means in bins, of every output."""
    if not len(x):
        return no_rows(len(each))
    estimates: list[dict[str, Any]] = []
    for means in each:
        offset, covariance = kernel.bin_curve(means, x, centering)
        estimates.append(
            {
                "curve": means.mean - offset,
                "curve_std": np.sqrt(means.variance),
                "curve_se": np.sqrt(np.maximum(np.diagonal(covariance), 0.0)),
                "curve_cov": covariance,
                "curve_offset": offset,
                "heterogeneity_output": kernel.root_mean_square(
                    np.sqrt(means.variance), means.share
                ),
                "importance": kernel.importance(means.mean, means.share),
            }
        )
    return {name: np.stack([means[name] for means in estimates]) for name in estimates[0]}
