"""SHAP dependence and M-plots: profiles that keep the values of their rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arguments.checks import centering_text, check_choice
from rhale_stats.arguments.rows import as_numbers
from rhale_stats.arguments.seeds import source_of
from rhale_stats.arrays import profiles as kernel
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.bins.description import describe
from rhale_stats.bins.rule import BinRule
from rhale_stats.bins.rules import EqualWidthBins, GivenBins, QuantileBins
from rhale_stats.local.request import on_axis
from rhale_stats.models.options import ModelOptions
from rhale_stats.models.outputs import Model
from rhale_stats.models.shapley import ShapleyOptions, given_column, shapley_values
from rhale_stats.models.table import as_table
from rhale_stats.profiles.data import CENTERINGS, N_GRID, Grid, ProfileAxis
from rhale_stats.profiles.inputs import (
    BESIDE,
    ProfileInputs,
    at_rows,
    bin_beside,
    counts_of,
    estimates_of,
    no_rows,
    of_outputs,
)
from rhale_stats.profiles.rows import Shapley, in_bins, smoother_of
from rhale_stats.schema.dimensions import OUTPUT
from rhale_stats.schema.kinds import PROFILE
from rhale_stats.schema.validation import validated
from rhale_stats.schema.variables import variable


@validated
def shap_dependence(
    model: Model,
    X: Any,
    features: str | int | Sequence[str | int] | None = None,
    *,
    shapley: ShapleyOptions = ShapleyOptions(),
    grid: Grid = None,
    n_grid: int = N_GRID,
    grid_kind: str = "quantile",
    centering: str = "mean",
    options: ModelOptions = ModelOptions(),
    rng: np.random.Generator | int | None = None,
    progress: bool = True,
    **fields: Any,
) -> xr.Dataset:
    r"""SHAP dependence: Shapley values of a feature against its value, with a smoothing spline.

    Parameters
    ----------
    model, X
        As in `local_effects`; ``model`` may be None when ``shap_values`` are given. Rows of weight
        0 are left out.
    features, grid, n_grid, grid_kind, centering
        As in `pdp`; the grid is where the spline is evaluated. "none" leaves it as it is: Shapley
        values are centred already, over the background.
    shapley : ShapleyOptions, optional
        Shapley values, if they are known; else the background, 100 rows of ``X`` by default, and
        when values are sampled. Its fields can be given directly, as in ``background=50``. Those
        of trees and of linear models are exact.
    options : ModelOptions, optional
        As in `pdp`, but no curve takes rows without a value of its feature. With ``missing="bin"``
        ``missing_curve`` is their mean Shapley value, and in categories they have a level.
    rng : Generator, int or None
        Draws the background, and permutations. None draws anew; ``seed`` in the attributes of the
        result reproduces it (-1 with a Generator).
    %(progress)s

    Returns
    -------
    Dataset
        As `pdp`: ``curve`` is a cubic smoothing spline through the Shapley values (math [45]),
        ``curve_std`` the root mean square of the residuals about it. Also ``shap_value`` and ``x``
        (feature, obs), ``weight`` (obs) if given, and ``smoothing`` (feature), the smoothing
        parameter, NaN if there is no spline. Of sampled values ``shap_value_error`` (feature, obs)
        is the Monte-Carlo standard error.

    Raises
    ------
    ImportError
        The library shap is needed and not installed.
    ValueError, KeyError, TypeError, ModelError
        As `local_effects`; Shapley values of another shape.

    Notes
    -----
    The penalty of the spline is chosen by generalised cross-validation, on the means of rows at the
    same place (closer than 1/1024 of the axis), with the sum of their weights. Places are knots; of
    more than 150, so many. With fewer than five places, and for the levels of a category, the curve
    is these means. ``curve_std`` is computed in
    20 quantile bins and interpolated linearly between their middles. It is not corrected for the
    degrees of freedom of the spline.

    Shapley values are those of the game in which columns that are left out take the values of the
    background rows ("interventional"), whatever way they are computed. Those of trees are added up
    leaf by leaf (math [88]) and compared with the model: if they do not add up to its output, as
    with probabilities of boosted trees, they are not used. Sampled values (math [89]) take every
    background row in equally many random orders of the columns, forwards and backwards, 64 or more
    pairs for each row.

    Standard errors refer to the sampling of rows. They take the smoothing parameter and the Shapley
    values as given: they ignore that these values share the background rows, and often a sample of
    permutations. Their target is the smoothed curve of the population with the same parameter.
    Where the curve bends, a spline is biased, and intervals contain the average Shapley value less
    often than their level.

    References
    ----------
    Lundberg and Lee (2017), *A unified approach to interpreting model predictions*. Craven and
    Wahba (1979), *Smoothing noisy data with spline functions*, for the penalty.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    >>> phi = X - X.mean(axis=0)  # of the model x0 + x1
    >>> profile = rs.shap_dependence(None, X, shap_values=phi, n_grid=3, grid_kind="equal_width")
    >>> profile["curve"].sel(feature="x0").round(2).values
    array([-1.08, -0.09,  0.91])
    """
    check_choice("centering", centering, CENTERINGS)
    inputs = ProfileInputs.used(X, features, options)
    axes = inputs.axes(grid, n_grid, grid_kind)
    generator, seed = source_of(rng)
    shap_values, quotients, errors = shapley.shap_values, None, None
    facts: dict[str, Any] = {"shapley": "given", "n_background": 0}
    if shap_values is None:
        quotients = inputs.quotients(model)
        computed = shapley_values(
            model, quotients, shapley, generator, "shap_dependence", progress=progress
        )
        values = [computed.values[:, axis.position].T for axis in axes]
        errors, background, n_rows = computed.error, shapley.background, inputs.table.n_rows
        n_background = (
            min(int(background), n_rows)
            if isinstance(background, int | np.integer)
            else int(np.shape(background)[0])
        )
        facts = {"shapley": computed.how, "n_background": n_background, "seed": seed}
    else:
        given_values = as_numbers(getattr(shap_values, "values", shap_values), "shap_values")
        if given_values.ndim == 1 and len(axes) > 1:
            raise ValueError(
                f"features must be one where shap_values are of one, of shape (n_rows,); got "
                f"{len(axes)} features. Pass values of all columns, or name the feature."
            )
        whole = as_table(X)
        values = [
            given_column(shap_values, whole, axis.position)[None, inputs.rows] for axis in axes
        ]
    estimates = []
    for axis, phi in zip(axes, values, strict=True):
        estimates.append(_smoothed(inputs, axis, phi, centering) | {"shap_value": phi})
        if errors is not None:
            estimates[-1]["shap_value_error"] = errors[:, axis.position].T
    out = inputs.labelled(axes, estimates, quotients, method="shap_dependence", centering=centering)
    return inputs.with_rows(out, axes).assign_attrs(grid_kind=grid_kind, **facts)


def _smoothed(
    inputs: ProfileInputs, axis: ProfileAxis, values: FloatArray, centering: str
) -> dict[str, NDArray[Any]]:
    """A spline through Shapley values (output, row), with its errors and its spread."""
    present, gone = axis.present, inputs.gone(axis) & ~axis.present
    weight = inputs.weight_at(present)
    n_rows = int(present.sum())
    totals = kernel.Totals.from_weights(weight, n_rows, frequency=inputs.frequency)
    counts = counts_of(totals, n_rows)
    if not len(axis.grid):
        nan = np.full(len(values), np.nan)
        also = ("smoothing", *(BESIDE if inputs.missing == "bin" else ()))
        return no_rows(len(values)) | counts | dict.fromkeys(also, nan)
    nominal, x = axis.levels is not None, axis.x[present]
    places = inputs.places(axis, present)
    share = places.share(weight)
    smoother = smoother_of(axis.name, x, axis.grid, weight, nominal=nominal)
    rows = np.flatnonzero(present)
    estimates: list[dict[str, Any]] = []
    for whole in values:
        behind = Shapley(
            whole[present], axis.grid, weight, inputs.frequency, rows, places, *smoother, None
        )
        curve, spread, influence = behind.smoothed(centering)
        covariance = kernel.mean_of_rows(influence, weight, frequency=inputs.frequency).covariance
        offset = float(behind.fit.curve @ kernel.centre_of(centering, axis.grid, share))
        estimates.append(
            estimates_of(curve, spread, covariance, offset, share)
            | {"smoothing": behind.fit.smoothing}
        )
        if inputs.missing == "bin":
            estimates[-1] |= dict.fromkeys(BESIDE, np.nan)
            if gone.any():
                plain = behind.smoothed("none")[2]
                constant = kernel.mean_of_rows(
                    plain[:, :1] - influence[:, :1], weight, frequency=inputs.frequency
                )
                others = kernel.mean_of_rows(
                    whole[gone, None], inputs.weight_at(gone), frequency=inputs.frequency
                )
                variance = others.variance + constant.variance
                value = float(others.value[0]) - estimates[-1]["curve_offset"]
                estimates[-1] |= dict(zip(BESIDE, (value, np.sqrt(variance)), strict=True))
    return counts | {"weight_share": share} | of_outputs(estimates)


# --- M-plots --------------------------------------------------------------------------------------


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
    >>> profile = rs.m_plot(lambda X: X[:, 0] + X[:, 1], X, bins=rs.EqualWidthBins(2))
    >>> profile["curve"].sel(feature="x0").round(1).values
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
        n_bins, frequency = max(len(edges) - 1, 0), inputs.frequency
        x, *each = [
            kernel.bin_means(values[axis.present], cell, n_bins, weight, frequency=frequency)
            for values in (axis.x, *answers.T)
        ]
        axes.append(axis._replace(grid=x.mean, values=x.mean))
        curves = []
        for means in each if n_bins else ():
            offset, covariance = kernel.bin_curve(means, x.mean, centering)
            curve, spread = means.mean - offset, np.sqrt(means.variance)
            curves.append(estimates_of(curve, spread, covariance, offset, means.share))
        estimates.append(
            (of_outputs(curves) if n_bins else no_rows(len(each)))
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
    out["output_value"] = variable("output_value", values, PROFILE, dims)
    out = inputs.with_rows(out, axes).set_coords(["bin_left", "bin_right"])
    rule_name, parameters = describe(rule)
    return out.assign_attrs(bin_rule=rule_name, bin_parameters=parameters)
