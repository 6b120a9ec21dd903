"""Other effects of one feature at a time: partial dependence, ICE, M-plot, SHAP dependence.

math [41], [42], [45]. They are for comparison: PDP and ICE ask the model where no row may be, an
M-plot takes the effects of correlated features along, and Shapley values share interactions out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from tqdm import tqdm

from rhale_stats import models
from rhale_stats.arrays import profiles as kernel
from rhale_stats.arrays import splines
from rhale_stats.arrays.binning import bin_edges, bin_index, quantile_edges
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.bins import BinRule, Column, EqualWidthBins, GivenBins, QuantileBins, describe
from rhale_stats.effects import MISSING, PROGRESS_DELAY
from rhale_stats.identity import row_coordinate
from rhale_stats.profile_data import CENTERINGS, NOMINAL, VARIABLES, variable
from rhale_stats.schema import (
    COUNTS,
    EFFECT_UNITS,
    MISSING_LEVEL,
    OUTPUT,
    X_UNITS,
    level_text,
    position_of,
    software,
    unit_mapping,
    with_outputs,
)
from rhale_stats.seeds import source_of
from rhale_stats.shapley import BACKGROUND, given_column, shapley_values
from rhale_stats.validate import (
    as_edges,
    as_numbers,
    check_choice,
    check_count,
    check_finite,
    checked,
    first_rows,
    warn,
)

GRID_KINDS = ("quantile", "equal_width")
ICE_KINDS = ("plain", "centered", "derivative")
N_GRID = 40
# Spread about a spline is that of rows in so many parts of equal size.
SPREAD_BINS = 20
# What a user may give as a grid: of the only feature, or by its name.
Grid = ArrayLike | Mapping[str, ArrayLike] | None


@checked
def pdp(
    model: models.Model,
    X: Any,
    *,
    features: str | int | Sequence[str | int] | None = None,
    grid: Grid = None,
    n_grid: int = N_GRID,
    grid_kind: str = "quantile",
    centering: str = "mean",
    weights: ArrayLike | None = None,
    weight_kind: str = "precision",
    output: models.OutputLabels = None,
    scale: str = "response",
    missing: str = "raise",
    progress: bool = True,
) -> xr.Dataset:
    r"""Partial dependence: the mean output over the rows as one feature is moved along a grid.

    The model is asked for every row at every point of the grid, also where no row could be.

    Parameters
    ----------
    model, X, weights, weight_kind, output, scale, progress
        As in `local_effects`. Rows of weight 0 are left out.
    features : name, number, or sequence of them, optional
        Columns to take; by default all but identifiers and dates, which a warning names. The grid
        of categories, texts and booleans is their levels.
    grid : array_like, or mapping from names to array_like, optional
        Points of the only feature, or of some features by name, taken as they are: increasing
        numbers, or levels.
    n_grid : int, default 40
        Points of other features; all distinct values where these are no more.
    grid_kind : {"quantile", "equal_width"}, default "quantile"
        Points where the rows are, by their weights, or at equal distances; both from the smallest
        to the largest value.
    centering : {"mean", "start", "integral", "none"}, default "mean"
        Where the curve is zero: on average over the rows, at the first point, on average over the
        axis (math [8]); or the mean output itself. ``curve_offset`` keeps the constant, so that
        ``curve + curve_offset`` is the mean output whatever the centring.
    missing : {"raise", "drop", "bin"}, default "raise"
        What to do where a feature has no value. "drop": these rows are left out of its curve, and
        of no other. "bin": they are rows like the others, whose curves count at every point of the
        grid; only the constant of the centring, ``weight_share`` and what is made of it are over
        the rows that have a place; and ``missing_curve`` is the mean output of all rows without
        the value. Of categories "missing" is the last level.

    Returns
    -------
    Dataset
        In units of the output, over (feature, grid): ``curve`` (math [41]), ``curve_std``, the
        standard deviation (ddof 1) of the ICE curves, each centred as the curve is (on average
        over the rows with "none"), ``curve_se``, and ``weight_share``, the share of the rows at
        each point: a row between two points counts for both, by its nearness. ``curve_cov``
        (feature, grid, grid_other) is the covariance of the curve. Over (feature):
        ``heterogeneity_output``, the root mean square of ``curve_std`` over the rows,
        ``importance``, the standard deviation of the curve over the rows, ``curve_offset``,
        ``n_obs``, ``n_effective``, ``output_error``, the change of the output that rounding can
        make, ``n_missing`` where values are, and with "bin" ``missing_curve``, on the scale of the
        curve, and ``missing_curve_se``, NaN of features that are never missing or else constant,
        and of categories. Coordinates ``feature``, ``feature_kind``
        ("nominal" of categories), ``feature_units``, ``n_grid`` (feature), ``grid_value`` and,
        where there are categories, ``level`` (feature, grid): their grid values are 0, 1, ...
        Beyond a feature's ``n_grid`` values are NaN; a constant feature has ``n_grid`` 0. With
        several outputs, what depends on them has ``output`` in front.

    Raises
    ------
    ValueError, KeyError, TypeError, ModelError
        As `local_effects`; a grid that does not increase, or of unknown features or levels.

    Notes
    -----
    The standard error is that of a mean of curves which all rows share, over the sampling of rows:
    the standard deviation of the centred ICE curves over :math:`\sqrt n`. With
    ``centering="mean"`` the constant is a mean over places of rows, too, and its error is in, as in
    math [26].

    The curves of one feature are in memory, 8 bytes a row, point of the grid and output. The model
    gets some 10^5 rows at once, or those of ``X`` if they are more.

    References
    ----------
    Friedman (2001), *Greedy function approximation*, section 8.2. Goldstein, Kapelner, Bleich and
    Pitkin (2015), *Peeking inside the black box*, for the spread of ICE curves. Greenwell, Boehmke
    and McCarthy (2018) for the importance.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> found = rs.pdp(lambda X: X[:, 0] ** 2 + X[:, 1], X, n_grid=5, grid_kind="equal_width")
    >>> found["curve"].sel(feature="x0").round(2).values
    array([ 0.61, -0.13, -0.37, -0.12,  0.63])
    >>> float(found["heterogeneity_output"].sel(feature="x0").round(6))  # no interaction
    0.0
    """
    check_choice("centering", centering, CENTERINGS)
    given = _Given.of(X, features, weights, weight_kind, missing)
    axes = given.axes(grid, n_grid, grid_kind)
    asked = models.DifferenceQuotients(model, given.table, output, scale)
    found = []
    for axis in _bar(axes, "partial dependence", progress=progress):
        mean = _average(given, asked, axis, centering)
        found.append(mean.estimates | _beside(given, asked, axis, mean, centering))
    out = given.labelled(axes, found, asked, method="pdp", centering=centering)
    return out.assign_attrs(grid_kind=grid_kind)


@checked
def ice(
    model: models.Model,
    X: Any,
    *,
    kind: str = "plain",
    features: str | int | Sequence[str | int] | None = None,
    grid: Grid = None,
    n_grid: int = N_GRID,
    grid_kind: str = "quantile",
    centering: str | None = None,
    weights: ArrayLike | None = None,
    weight_kind: str = "precision",
    output: models.OutputLabels = None,
    scale: str = "response",
    missing: str = "raise",
    progress: bool = True,
) -> xr.Dataset:
    r"""ICE: the output of every row as one feature is moved along a grid, with their mean.

    Parameters
    ----------
    model, X, features, grid, n_grid, grid_kind, weights, weight_kind, output, scale, missing, \
    progress
        As in `pdp`.
    kind : {"plain", "centered", "derivative"}, default "plain"
        Curves as they are; each zero at its first point (c-ICE), or as ``centering`` says; or their
        derivatives (d-ICE): central differences along the grid, one-sided at its ends.
    centering : {"start", "mean", "integral"}, optional
        Of "centered" curves: "start" by default, as in the paper. The others have none.

    Returns
    -------
    Dataset
        As `pdp` with the same centring: ``curve`` is the mean of the curves, ``curve_std`` their
        spread. With ``ice`` (feature, grid, obs), NaN for rows that are left out, ``x`` (feature,
        obs), NaN for rows that have no value of the feature, and ``weight`` (obs) where given. Of
        "derivative" all are in units of the output per unit of the feature, ``importance`` is the
        spread of the mean derivative, and there is no ``missing_curve``.

    Raises
    ------
    ValueError, KeyError, TypeError, ModelError
        As `pdp`; a centring that the kind does not have, derivatives along levels of a category.

    Notes
    -----
    All curves are in memory and in the result, 8 bytes a row, feature, point of the grid and
    output: 320 megabytes for 10^5 rows, 10 features and 40 points, and twice that for a while.
    Choose rows before the call where that is too much; the curve of `pdp` needs no more than one
    feature's curves.

    References
    ----------
    Goldstein, Kapelner, Bleich and Pitkin (2015), *Peeking inside the black box: visualizing
    statistical learning with plots of individual conditional expectation*, sections 3 and 4.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> found = rs.ice(lambda X: X[:, 0] * X[:, 1], X, kind="derivative", features="x0")
    >>> bool(np.allclose(found["ice"].isel(feature=0), X[:, 1]))
    True
    """
    check_choice("kind", kind, ICE_KINDS)
    chosen = {"centered": "start"}.get(kind, "none") if centering is None else centering
    check_choice("centering", chosen, CENTERINGS)
    allowed = CENTERINGS[:-1] if kind == "centered" else ("none",)
    if chosen not in allowed:
        raise ValueError(
            f"centering must be one of {', '.join(map(repr, allowed))} with kind={kind!r}; got "
            f"{chosen!r}. Curves are centred with kind='centered'."
        )
    if kind == "derivative" and features is None:
        features = _with_slopes(models.as_table(X))
    given = _Given.of(X, features, weights, weight_kind, missing)
    axes = given.axes(grid, n_grid, grid_kind)
    if kind == "derivative":
        flat = [axis.name for axis in axes if axis.levels is not None or len(axis.grid) == 1]
        if flat:
            raise ValueError(
                f"kind must not be 'derivative' for categories and grids of one point, such as "
                f"{flat[0]!r}. Leave it out of features=, or take kind='centered'."
            )
    asked = models.DifferenceQuotients(model, given.table, output, scale)
    found = []
    for axis in _bar(axes, "ICE", progress=progress):
        kept: list[FloatArray] = []
        mean = _average(given, asked, axis, chosen, derivative=kind == "derivative", kept=kept)
        beside = {} if kind == "derivative" else _beside(given, asked, axis, mean, chosen)
        n_outputs = len(mean.estimates["curve"])
        each = np.full((n_outputs, len(axis.grid), given.table.n_rows), np.nan)
        first, rows = 0, np.flatnonzero(given.rows(axis))
        for curves in kept:
            block = rows[first : first + curves.shape[1]]
            first += curves.shape[1]
            if chosen != "none":
                curves = curves - (curves @ mean.centre)[..., None]
            each[:, :, block] = curves.transpose(0, 2, 1)
        found.append(mean.estimates | beside | {"ice": each})
    out = given.labelled(axes, found, asked, method="ice", centering=chosen)
    out = given.with_rows(out, axes).assign_attrs(grid_kind=grid_kind, ice_kind=kind)
    if kind == "derivative":
        for name in ("curve", "curve_std", "curve_se", "importance", "heterogeneity_output", "ice"):
            out[name].attrs["units"] = EFFECT_UNITS
        out["curve_cov"].attrs["units"] = f"({EFFECT_UNITS})^2"
    return out


@checked
def m_plot(
    model: models.Model,
    X: Any,
    *,
    bins: BinRule | None = None,
    features: str | int | Sequence[str | int] | None = None,
    centering: str = "mean",
    weights: ArrayLike | None = None,
    weight_kind: str = "precision",
    output: models.OutputLabels = None,
    scale: str = "response",
    missing: str = "raise",
) -> xr.Dataset:
    r"""M-plot: the mean output of the rows near a value of the feature.

    Correlated features move along with it: this is what the model predicts there, not what the
    feature does. The model is asked once, at the rows.

    Parameters
    ----------
    model, X, weights, weight_kind, output, scale
        As in `local_effects`. Rows of weight 0 are left out.
    missing : {"raise", "drop", "bin"}, default "raise"
        Rows without a value are in no bin. With "bin" they are one of their own beside the axis:
        ``missing_curve`` is their mean output. Of categories "missing" is the last level.
    bins : bin rule, optional
        Which rows are near each other; `QuantileBins` (40) by default. A rule that searches sees
        outputs in place of local effects. Levels of a category are bins whatever the rule.
    features, centering
        As in `pdp`.

    Returns
    -------
    Dataset
        As `pdp`, with a bin for a point of the grid, which stands at the mean of the feature over
        its rows: ``curve`` is the mean output of these rows (math [42]), ``curve_std`` its standard
        deviation (ddof 1), and ``n_obs`` (feature, grid) their number. With ``output_value``
        (obs), the output of the rows, their ``x`` (feature, obs), and ``weight`` (obs) where
        given: the rows that `bootstrap` and paired `compare` need. ``bin_left`` and
        ``bin_right`` (feature, grid) are the ends of the bin. A bin without rows is NaN. The error
        of ``missing_curve`` is that of a mean of these rows and, independent of it, of the
        constant.

    Raises
    ------
    ValueError, KeyError, TypeError, ModelError
        As `local_effects`; a rule that makes linear bins.

    Notes
    -----
    Bins are taken as fixed, and are independent of each other. With ``centering="mean"`` the
    constant is the mean output of all rows, and its error is in the standard error.

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
    check_choice("centering", centering, CENTERINGS)
    rule = QuantileBins(N_GRID) if bins is None else bins
    if not isinstance(rule, EqualWidthBins | QuantileBins | GivenBins):
        raise TypeError(
            f"bins must be QuantileBins, EqualWidthBins or GivenBins, which do not look at local "
            f"effects; got {type(rule).__name__}."
        )
    given = _Given.of(X, features, weights, weight_kind, missing)
    asked = models.DifferenceQuotients(model, given.table, output, scale)
    answers = _at_rows(asked)
    axes, found = [], []
    for axis in given.axes(None, N_GRID, "quantile"):
        weight = None if given.weight is None else given.weight[axis.there]
        if axis.levels is not None:
            cell, edges = axis.x[axis.there].astype(np.intp), np.arange(len(axis.grid) + 1) - 0.5
        else:
            cell, edges = in_bins(rule, axis.name, axis.x[axis.there], weight)
        n_bins = max(len(edges) - 1, 0)
        x = kernel.bin_means(axis.x[axis.there], cell, n_bins, weight, frequency=given.frequency)
        axes.append(axis._replace(grid=x.mean, values=x.mean))
        each = [
            kernel.bin_means(f[axis.there], cell, n_bins, weight, frequency=given.frequency)
            for f in answers.T
        ]
        found.append(
            _of_bins(each, x.mean, centering)
            | {
                "n_obs": each[0].n_obs,
                "n_effective": each[0].n_effective,
                "weight_share": each[0].share,
                "bin_left": edges[:-1],
                "bin_right": edges[1:],
            }
            | _bin_beside(given, axis, answers, each, x.mean, centering)
        )
    out = given.labelled(axes, found, asked, method="m_plot", centering=centering)
    several = OUTPUT in out.dims
    values, dims = (answers.T, (OUTPUT, "obs")) if several else (answers[:, 0], ("obs",))
    out["output_value"] = variable("output_value", values, dims)
    rule_name, parameters = describe(rule)
    out = given.with_rows(out, axes)
    return out.set_coords(["bin_left", "bin_right"]).assign_attrs(
        bin_rule=rule_name, bin_parameters=parameters
    )


@checked
def shap_dependence(
    model: models.Model,
    X: Any,
    *,
    features: str | int | Sequence[str | int] | None = None,
    shap_values: Any = None,
    background: int | pd.DataFrame | ArrayLike = BACKGROUND,
    grid: Grid = None,
    n_grid: int = N_GRID,
    grid_kind: str = "quantile",
    centering: str = "mean",
    weights: ArrayLike | None = None,
    weight_kind: str = "precision",
    output: models.OutputLabels = None,
    scale: str = "response",
    missing: str = "raise",
    rng: np.random.Generator | int | None = None,
) -> xr.Dataset:
    r"""SHAP dependence: Shapley values of a feature against its value, and a spline through them.

    Parameters
    ----------
    model, X, weights, weight_kind, output, scale
        As in `local_effects`; ``model`` may be None when ``shap_values`` are given. Rows of weight
        0 are left out.
    features, grid, n_grid, grid_kind, centering
        As in `pdp`; the grid is where the spline is evaluated. "none" leaves it as it is: Shapley
        values are centred already, over the background.
    shap_values : array_like of shape (n_rows,) or (n_rows, n_columns), or Explanation, optional
        Shapley values of the only feature or of all columns of ``X``, of one output. By default
        they are computed with the library shap, of all rows: exactly up to 10 columns, by sampled
        permutations beyond; the attribute ``shapley`` says which. This is slow: the model is asked
        for each row some 2^(number of columns) times the number of background rows.
    background : int, DataFrame or array_like, default 100
        Rows over which columns that are left out are averaged, or how many rows of ``X`` to draw.
    missing : {"raise", "drop", "bin"}, default "raise"
        As in `pdp`: no curve takes rows without a value of its feature. With "bin"
        ``missing_curve`` is their mean Shapley value, and in categories they have a level.
    rng : Generator, int or None
        Draws the background, and permutations. None draws anew; ``seed`` in the attributes of the
        result reproduces it (-1 with a Generator).

    Returns
    -------
    Dataset
        As `pdp`: ``curve`` is a cubic smoothing spline through the Shapley values (math [45]),
        ``curve_std`` the root mean square of the residuals about it. With ``shap_value`` and ``x``
        (feature, obs), ``weight`` (obs) where given, and ``smoothing`` (feature), the smoothing
        parameter, NaN where there is no spline.

    Raises
    ------
    ImportError
        The library shap is needed, and is not there.
    ValueError, KeyError, TypeError, ModelError
        As `local_effects`; Shapley values of another shape.

    Notes
    -----
    The penalty of the spline is chosen by generalised cross-validation, on mean values of rows of
    the same place (closer than 1/1024 of the axis) with their weights together. With fewer than
    five places, and at levels of a category, it is their means instead. ``curve_std`` is that of
    rows in 20 quantile bins, straight between their middles, and not corrected for the degrees of
    freedom that the spline takes.

    Standard errors are over the sampling of rows. They take the smoothing parameter as given, and
    the Shapley values: that these share the background, and often a sample of permutations, is not
    in them. Their target is the smooth of the population, by the same parameter: where the curve
    bends, a spline is biased, and intervals hold the average Shapley value itself less often.

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
    >>> found = rs.shap_dependence(None, X, shap_values=phi, n_grid=3, grid_kind="equal_width")
    >>> found["curve"].sel(feature="x0").round(2).values
    array([-1.08, -0.09,  0.91])
    """
    check_choice("centering", centering, CENTERINGS)
    given = _Given.of(X, features, weights, weight_kind, missing)
    axes = given.axes(grid, n_grid, grid_kind)
    asked, how = None, "given"
    generator, seed = source_of(rng)
    if shap_values is None:
        asked = models.DifferenceQuotients(model, given.table, output, scale)
        each, how = shapley_values(asked, background, generator, "shap_dependence")
        values = [each[:, axis.position].T for axis in axes]
    else:
        given_values = as_numbers(getattr(shap_values, "values", shap_values), "shap_values")
        if given_values.ndim == 1 and len(axes) > 1:
            raise ValueError(
                f"features must be one where shap_values are of one, of shape (n_rows,); got "
                f"{len(axes)} features. Pass values of all columns, or name the feature."
            )
        whole = models.as_table(X)
        values = [
            given_column(shap_values, whole, axis.position)[None, given.present] for axis in axes
        ]
    found = [
        _smoothed(given, axis, phi, centering) | {"shap_value": phi}
        for axis, phi in zip(axes, values, strict=True)
    ]
    out = given.labelled(axes, found, asked, method="shap_dependence", centering=centering)
    return given.with_rows(out, axes).assign_attrs(
        grid_kind=grid_kind,
        shapley=how,
        n_background=_size(background, given.table.n_rows) if asked is not None else 0,
        **({"seed": seed} if asked is not None else {}),
    )


def _size(background: int | pd.DataFrame | ArrayLike, n_rows: int) -> int:
    if isinstance(background, int | np.integer):
        return min(int(background), n_rows)
    return int(np.shape(background)[0])


# --- what is given --------------------------------------------------------------------------------


class _Axis(NamedTuple):
    """One feature: its values in the rows, or numbers of levels, and its grid."""

    name: str
    position: int
    kind: str
    x: FloatArray
    grid: FloatArray
    values: models.Values
    levels: list[str] | None

    @property
    def there(self) -> NDArray[np.bool_]:
        """Rows that have a value, or "missing" as a level."""
        return ~np.isnan(self.x)


@dataclass(frozen=True)
class _Given:
    """Rows of positive weight, checked."""

    X: Any
    table: models.Table
    present: NDArray[np.bool_]
    positions: list[int]
    weight: FloatArray | None
    weight_kind: str
    missing: str

    @classmethod
    def of(
        cls,
        X: Any,
        features: str | int | Sequence[str | int] | None,
        weights: ArrayLike | None,
        weight_kind: str,
        missing: str,
    ) -> _Given:
        check_choice("missing", missing, MISSING)
        check_choice("weight_kind", weight_kind, ("precision", "frequency"))
        table = models.as_table(X)
        weight = table.weights(weights, weight_kind)
        present = np.ones(table.n_rows, dtype=bool) if weight is None else weight > 0
        positions = _all_but_keys(table) if features is None else _named(table, features)
        if not present.all() and weight is not None:
            table, weight = table.take(present), weight[present]
        if weight is not None and weight_kind == "precision":
            weight = weight / weight.max()  # their squares stay within range
        return cls(X, table, present, positions, weight, weight_kind, missing)

    @property
    def frequency(self) -> bool:
        """Whether weights count rows."""
        return self.weight_kind == "frequency"

    def rows(self, axis: _Axis) -> NDArray[np.bool_]:
        """Rows that have a curve: all, or those that have a value."""
        return axis.there | (self.missing == "bin")

    def weight_of(self, axis: _Axis) -> FloatArray | None:
        """Weights of these rows."""
        return None if self.weight is None else self.weight[self.rows(axis)]

    def gone(self, axis: _Axis) -> NDArray[np.bool_]:
        """Rows without a value of the feature."""
        if axis.levels is None:
            return ~axis.there
        frame = self.table.data
        assert isinstance(frame, pd.DataFrame), "arrays hold numbers"
        return frame.iloc[:, axis.position].isna().to_numpy()

    def places(self, axis: _Axis, rows: NDArray[np.bool_] | None = None) -> kernel.Places:
        """Where rows are on the grid, by default all that have a curve."""
        x = axis.x[self.rows(axis) if rows is None else rows]
        if axis.levels is not None:
            return kernel.level_places(x.astype(np.intp), len(axis.levels))
        return kernel.places(axis.grid, x)

    def axes(self, grid: Grid, n_grid: int, grid_kind: str) -> list[_Axis]:
        """All features with their grids."""
        check_count("n_grid", n_grid, 2)
        check_choice("grid_kind", grid_kind, GRID_KINDS)
        names = [self.table.names[position] for position in self.positions]
        own = _grids(grid, names)
        out = []
        for name, position in zip(names, self.positions, strict=True):
            if self.table.is_numeric(position):
                out.append(self._numbers(name, position, own.get(name), n_grid, grid_kind))
            else:
                out.append(self._levels(name, position, own.get(name)))
        return out

    def _numbers(
        self, name: str, position: int, own: ArrayLike | None, n_grid: int, grid_kind: str
    ) -> _Axis:
        x = models.check_column(self.table, position, missing=self.missing)
        there = ~np.isnan(x)
        values = x[there]
        kind = "discrete" if self.table.is_discrete(position) else "continuous"
        if own is not None:
            grid = as_edges(own, f"grid of feature {name!r}")
        elif values.min() == values.max():
            kind, grid = "constant", np.zeros(0)
        else:
            grid = np.unique(values)
            if len(grid) > n_grid and grid_kind == "equal_width":
                grid = np.linspace(grid[0], grid[-1], n_grid)
            elif len(grid) > n_grid:
                weight = None if self.weight is None else self.weight[there]
                grid = quantile_edges(values, n_grid - 1, weight)
        return _Axis(name, position, kind, x, grid, self._held(position, grid), None)

    def _held(self, position: int, grid: FloatArray) -> models.Values:
        """Whole numbers stay whole for the model where its column has them."""
        if isinstance(self.table.data, pd.DataFrame):
            dtype = self.table.data.dtypes.iloc[position]
            if pd.api.types.is_integer_dtype(dtype) and (grid == np.round(grid)).all():
                whole: models.Values = pd.array(grid.astype(np.int64), dtype=dtype)
                return whole
        return grid

    def _levels(self, name: str, position: int, own: ArrayLike | None) -> _Axis:
        assert isinstance(self.table.data, pd.DataFrame), "arrays hold numbers"
        column = self.table.data.iloc[:, position]
        if column.isna().any() and self.missing == "raise":
            raise ValueError(
                f"X of feature {name!r} must have no missing values; got "
                f"{int(column.isna().sum())} in {len(column)} rows. Drop or impute these "
                f"rows, leave them out: missing='drop', or take them as a level: missing='bin'."
            )
        levels = column.dropna().astype(object).unique().tolist()
        if isinstance(column.dtype, pd.CategoricalDtype):
            order = [level for level in column.dtype.categories if level in set(levels)]
        else:
            order = sorted(levels, key=lambda level: (str(type(level)), level))
        gone = column.isna().to_numpy()
        if gone.all():
            raise ValueError(
                f"X must have values of feature {name!r}; all {len(gone)} are missing. Leave the "
                f"feature out: features=[...]."
            )
        texts = {level: level_text(level) for level in order}
        if len(set(texts.values())) < len(order):
            raise ValueError(
                f"X of feature {name!r} must have levels of different names; got "
                f"{', '.join(map(repr, order))}. Rename some."
            )
        if self.missing == "bin" and gone.any():
            if MISSING_LEVEL in texts.values():
                raise ValueError(
                    f"X of feature {name!r} must have no level {MISSING_LEVEL!r} with "
                    f"missing='bin', which calls rows without a level so. Rename the level."
                )
            # As the column itself holds it: None, NaN or NA.
            nothing = column[gone].astype(object).iloc[0]
            order.append(nothing)
            texts[nothing] = MISSING_LEVEL
        if own is not None:
            order = _asked_levels(own, texts, name)
        place = {texts[level]: float(number) for number, level in enumerate(order)}
        rows = ~gone | (self.missing == "bin")
        text = column.astype(object).map(level_text).mask(gone, MISSING_LEVEL)[rows]
        left_out = ~text.isin(list(place))
        if left_out.any():
            raise ValueError(
                f"grid of feature {name!r} must hold all levels of its rows; "
                f"{int(left_out.sum())} rows have others, as {text[left_out].iloc[0]!r}. Add "
                f"them, or select rows."
            )
        x = np.full(len(column), np.nan)
        x[rows] = text.map(place).to_numpy(np.float64)
        values: models.Values = pd.Series(order, dtype=column.dtype).array
        grid = np.asarray(range(len(order)), dtype=np.float64)
        return _Axis(name, position, NOMINAL, x, grid, values, list(place))

    def curves(
        self, asked: models.DifferenceQuotients, axis: _Axis
    ) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
        """Blocks of the rows that have a curve, with (output, row, grid) and its rounding.

        So a mean curve of very many rows needs the memory of one block.
        """
        own = asked.at(self.rows(axis))
        for begin in range(0, own.table.n_rows, models.BATCH_ROWS):
            rows = slice(begin, min(begin + models.BATCH_ROWS, own.table.n_rows))
            some = own.at(np.arange(rows.start, rows.stop))
            curves, error = some.curves(axis.position, axis.values)
            # The largest output shows whether there is anything to look for.
            if not np.isfinite(error).all():
                sums = np.zeros(own.table.n_rows)
                sums[rows] = curves.sum(axis=(1, 2))
                check_finite(
                    sums,
                    "ICE curves",
                    axis.name,
                    "See what the model returns at these rows along the grid.",
                )
            yield rows, np.ascontiguousarray(curves.transpose(2, 0, 1)), error

    def without(self, asked: models.DifferenceQuotients, axis: _Axis) -> FloatArray:
        """The output of all rows without a value of the feature, (output, row)."""
        data = self.table.data
        nothing: models.Values = np.full(1, np.nan)
        if isinstance(data, pd.DataFrame):
            # As the column itself holds it: NaN or NA.
            nothing = data.iloc[:, axis.position][self.gone(axis)].array[:1]
        answers = asked.curves(axis.position, nothing)[0][:, 0]
        check_finite(
            answers.sum(axis=1),
            "Outputs at missing values",
            axis.name,
            "The model must answer where the feature has no value; else take missing='drop'.",
        )
        return np.ascontiguousarray(answers.T)

    def labelled(
        self,
        axes: Sequence[_Axis],
        found: Sequence[Mapping[str, NDArray[Any]]],
        asked: models.DifferenceQuotients | None,
        *,
        method: str,
        centering: str,
    ) -> xr.Dataset:
        """Results of all features, padded to the longest grid."""
        if asked is not None:
            asked.check_size()
        n_grid = np.array([len(axis.grid) for axis in axes])
        most = max(int(n_grid.max()), 1)
        labels = [] if asked is None else asked.outputs.labels
        n_outputs = max(len(labels), 1)
        attrs = getattr(self.X, "attrs", {})
        units = unit_mapping(attrs)
        facts = FACTS | {"curve": {"estimator": ESTIMATORS[method], "centering": centering}}
        sizes = {"grid": most, "grid_other": most, "obs": self.table.n_rows}
        data = {}
        for name in found[0]:
            each = [np.asarray(one[name], dtype=np.float64) for one in found]
            dims = VARIABLES[name][0]
            if name in OF_ROWS:
                # An M-plot counts them bin by bin.
                dims = ("feature", "grid") if each[0].ndim else dims
            else:
                # A constant feature met before any answer knows of one output only.
                each = [np.broadcast_to(one, (n_outputs, *one.shape[1:])) for one in each]
            inner = tuple(sizes[dim] for dim in dims[1:])
            of_outputs = () if name in OF_ROWS else (n_outputs,)
            padded = np.full((len(each), *of_outputs, *inner), 0.0 if name in COUNTS else np.nan)
            for number, one in enumerate(each):
                at: tuple[int | slice, ...] = (number, *(slice(n) for n in one.shape))
                padded[at] = one
            if of_outputs:
                padded, dims = padded.swapaxes(0, 1), (OUTPUT, *dims)
            values = padded.astype(np.int64) if name == "n_obs" else padded
            data[name] = variable(name, values, dims, **facts.get(name, {}))
        coords: dict[str, Any] = {
            "feature": (
                "feature",
                np.array([axis.name for axis in axes]),
                {"long_name": "feature"},
            ),
            "feature_kind": ("feature", np.array([axis.kind for axis in axes])),
            "feature_units": ("feature", np.array([units.get(axis.name, "") for axis in axes])),
            "n_grid": ("feature", n_grid, {"long_name": "points of the grid"}),
            "grid": ("grid", np.arange(most), {"long_name": "point of the grid"}),
            "grid_value": (
                ("feature", "grid"),
                np.array(
                    [
                        np.pad(axis.grid, (0, most - len(axis.grid)), constant_values=np.nan)
                        for axis in axes
                    ]
                ),
                {"long_name": "value of the feature", "units": X_UNITS},
            ),
        }
        if any(axis.levels is not None for axis in axes):
            level = np.array(
                [(axis.levels or []) + [""] * (most - len(axis.levels or [])) for axis in axes]
            )
            coords["level"] = (("feature", "grid"), level, {"long_name": "level of the category"})
        out = xr.Dataset(
            data,
            coords,
            {
                "method": method,
                "centering": centering,
                "weight_kind": "none" if self.weight is None else self.weight_kind,
                "output_name": str(attrs.get("output_name", "output")),
                "output_units": str(attrs.get("output_units", "")),
                "n_rows": self.table.n_rows,
                "model_calls": 0 if asked is None else asked.n_calls,
                "model_rows": 0 if asked is None else asked.n_rows,
                "software": software(),
            },
        )
        gone = [self.gone(axis) for axis in axes]
        if any(rows.any() for rows in gone):
            # math [6]: a frequency weight is so many rows.
            w = self.weight if self.frequency else None
            count = [int(rows.sum() if w is None else w[rows].sum()) for rows in gone]
            out["n_missing"] = variable("n_missing", np.array(count))
        if "missing_curve" in out and out["missing_curve"].isnull().all():
            out = out.drop_vars(["missing_curve", "missing_curve_se"])
        return with_outputs(out, labels, [] if asked is None else asked.outputs.names)

    def with_rows(self, out: xr.Dataset, axes: Sequence[_Axis]) -> xr.Dataset:
        """The result with the values and weights of the rows, and their labels."""
        dim, labels, about_rows = row_coordinate(self.X, len(self.present))
        out = out.assign(x=variable("x", np.stack([axis.x for axis in axes]))).assign_coords(
            obs=(dim, labels[self.present], about_rows)
        )
        if self.weight is None:
            return out
        largest = ", the largest 1" if self.weight_kind == "precision" else ""
        about = {"long_name": f"{self.weight_kind} weight{largest}", "units": "1"}
        return out.assign(weight=("obs", self.weight, about))


# Facts of rows, the same for all outputs.
OF_ROWS = ("n_obs", "n_effective", "weight_share", "bin_left", "bin_right")
BESIDE = ("missing_curve", "missing_curve_se")
ESTIMATORS = {
    "pdp": "mean of the ICE curves, math [41]",
    "ice": "mean of the ICE curves, math [41]",
    "m_plot": "mean output of the rows in the bin, math [42]",
    "shap_dependence": "smoothing spline through the Shapley values, math [45]",
}
FACTS: dict[str, dict[str, str | int | float]] = {
    "curve_std": {"ddof": 1},
    "curve_se": {"source": "rows", "kind": "central limit theorem", "target": "curve"},
    "curve_cov": {"source": "rows", "kind": "central limit theorem", "target": "curve"},
    "missing_curve_se": {
        "source": "rows",
        "kind": "central limit theorem",
        "target": "missing_curve",
    },
}


def _all_but_keys(table: models.Table) -> list[int]:
    """Columns that have a grid: all but identifiers and dates, which a warning names."""
    left_out, chosen = [], []
    for position, name in enumerate(table.names):
        text = not table.is_numeric(position)
        if text and (table.is_key(position) or not _has_levels(table, position)):
            left_out.append(repr(name))
        else:
            chosen.append(position)
    if not chosen:
        raise TypeError(
            f"X must have a column of numbers or of levels; got {', '.join(left_out)}, with more "
            f"than one level for every two rows, or dates. Name columns in features=."
        )
    if left_out:
        warn(
            f"Left out: {', '.join(left_out)} (more than one level for every two rows, or dates). "
            f"Name columns of levels in features= to take them all the same."
        )
    return chosen


def _with_slopes(table: models.Table) -> list[int]:
    """Columns along which curves have derivatives; categories have none, and are left out."""
    chosen = [p for p in range(len(table.names)) if table.is_numeric(p)]
    if not chosen:
        raise TypeError("X must have a column of numbers for derivatives; got none.")
    return chosen


def _has_levels(table: models.Table, position: int) -> bool:
    """Whether a column that holds no numbers has a grid."""
    dtype = table.series(position).dtype
    is_date = pd.api.types.is_datetime64_any_dtype(dtype)
    return not is_date and not pd.api.types.is_complex_dtype(dtype)


def _named(table: models.Table, features: str | int | Sequence[str | int]) -> list[int]:
    """Columns by name or number: numbers, categories, texts and booleans."""
    asked = [features] if isinstance(features, str | int | np.integer) else list(features)
    if not asked:
        raise ValueError("features must name at least one column; got none.")
    positions: list[int] = []
    for feature in asked:
        position = position_of(feature, table.names)
        if position in positions:
            raise ValueError(f"features must be distinct; got {table.names[position]!r} twice.")
        if not table.is_numeric(position) and not _has_levels(table, position):
            raise TypeError(
                f"features must be numbers, categories, texts or booleans; column "
                f"{table.names[position]!r} holds {table.series(position).dtype}. Leave it "
                f"out: the model still receives it."
            )
        positions.append(position)
    return positions


def _grids(grid: Grid, names: Sequence[str]) -> dict[str, ArrayLike]:
    """Grids of a user's own, by name."""
    if grid is None:
        return {}
    if isinstance(grid, Mapping):
        unknown = [str(name) for name in grid if name not in names]
        if unknown:
            raise KeyError(
                f"grid must be of features among {', '.join(map(repr, names))}; got "
                f"{', '.join(map(repr, unknown))}."
            )
        return dict(grid)
    if len(names) > 1:
        raise ValueError(
            f"grid must map names to points where there are several features; got one array for "
            f"{', '.join(map(repr, names))}. Pass grid={{{names[0]!r}: [...]}}."
        )
    return {names[0]: grid}


def _asked_levels(own: ArrayLike, texts: Mapping[Any, str], name: str) -> list[Any]:
    """Levels of a user's own grid, as the column has them."""
    known = {text: level for level, text in texts.items()}
    asked = [level_text(level) for level in np.asarray(own).ravel().tolist()]
    unknown = [level for level in asked if level not in known]
    if unknown or len(set(asked)) < len(asked):
        raise ValueError(
            f"grid of feature {name!r} must be distinct levels among {', '.join(known)}; got "
            f"{', '.join(asked)}."
        )
    return [known[level] for level in asked]


def _bar(axes: Sequence[_Axis], what: str, *, progress: bool) -> Any:
    return tqdm(axes, what, unit="feature", disable=not progress, delay=PROGRESS_DELAY)


# --- statistics -----------------------------------------------------------------------------------


class _Mean(NamedTuple):
    """Mean curves of all outputs, and what else is a mean over the same ICE curves.

    ``centre`` makes the constant of a curve, ``constant`` (output, row) holds those of all rows.
    """

    estimates: dict[str, NDArray[Any]]
    centre: FloatArray
    constant: FloatArray


def _average(
    given: _Given,
    asked: models.DifferenceQuotients,
    axis: _Axis,
    centering: str,
    *,
    derivative: bool = False,
    kept: list[FloatArray] | None = None,
) -> _Mean:
    """The mean of ICE curves and their spread, in one pass; ``kept`` takes the curves.

    The spread is that of curves centred each by itself, of derivatives as they are.
    """
    weight = given.weight_of(axis)
    counts = _counts(given, weight, int(given.rows(axis).sum()))
    if not len(axis.grid):
        n_outputs = max(len(asked.outputs.labels), 1)
        nothing = {"weight_share": np.zeros(0), "output_error": np.zeros(n_outputs)}
        empty = np.zeros(0)
        return _Mean(_nothing(n_outputs) | counts | nothing, empty, np.zeros((n_outputs, 0)))
    at = given.places(axis)
    share = at.share(weight)
    alike = kernel.centre_of(
        "none" if derivative else "mean" if centering == "none" else centering, axis.grid, share
    )
    found: list[kernel.Moments] = []
    constants, origin, largest = [], np.zeros(0), np.zeros(1)
    for rows, curves, error in given.curves(asked, axis):
        if derivative:
            curves = np.stack([kernel.along(each, axis.grid) for each in curves])
        if kept is not None:
            kept.append(curves)
        if not found:
            origin = curves[:, 0].mean(axis=1)
        # A large offset is taken off before anything is multiplied.
        moved = curves - origin[:, None, None]
        constants.append(moved @ alike)
        w = None if weight is None else weight[rows]
        block = [
            kernel.moments(each, own, at.of_rows(rows), w, levels=centering == "none")
            for each, own in zip(moved, constants[-1], strict=True)
        ]
        found = (
            [kernel.merged(*both) for both in zip(found, block, strict=True)] if found else block
        )
        largest = np.maximum(largest, error)
    profiles = [
        kernel.profile(
            of, axis.grid, at, weight, float(start), centering, frequency=given.frequency
        )
        for of, start in zip(found, origin, strict=True)
    ]
    estimates = counts | {
        "curve": np.stack([one.curve for one in profiles]),
        "curve_std": np.stack([one.spread for one in profiles]),
        "curve_se": np.stack([np.sqrt(np.diagonal(one.covariance)) for one in profiles]),
        "curve_cov": np.stack([one.covariance for one in profiles]),
        "curve_offset": np.array([one.offset for one in profiles]),
        "heterogeneity_output": np.array(
            [kernel.root_mean_square(one.spread, share) for one in profiles]
        ),
        "importance": np.array([kernel.importance(one.curve, share) for one in profiles]),
        "weight_share": share,
        "output_error": largest,
    }
    return _Mean(estimates, alike, np.concatenate(constants, axis=1) + origin[:, None])


def _beside(
    given: _Given,
    asked: models.DifferenceQuotients,
    axis: _Axis,
    mean: _Mean,
    centering: str,
) -> dict[str, NDArray[Any]]:
    """math [41]: the mean output without a value, on the scale of the curve, and its error."""
    if given.missing != "bin":
        return {}
    curves = mean.estimates["curve"]
    if axis.levels is not None or axis.there.all() or not len(axis.grid):
        return dict.fromkeys(BESIDE, np.full(len(curves), np.nan))
    at, weight = given.places(axis), given.weight
    found = [
        kernel.beside(answers, constant, curve, at, weight, centering, frequency=given.frequency)
        for answers, constant, curve in zip(
            given.without(asked, axis), mean.constant, curves, strict=True
        )
    ]
    return dict(zip(BESIDE, np.array(found).T, strict=True))


def _bin_beside(
    given: _Given,
    axis: _Axis,
    answers: FloatArray,
    each: Sequence[kernel.BinMeans],
    x: FloatArray,
    centering: str,
) -> dict[str, NDArray[Any]]:
    """math [42]: the mean output of the rows without a value, on the scale of the curve."""
    if given.missing != "bin":
        return {}
    if axis.there.all() or not len(x):
        return dict.fromkeys(BESIDE, np.full(len(each), np.nan))
    found = []
    for f, one in zip(answers.T, each, strict=True):
        gone, others = (
            kernel.sample(
                f[rows, None],
                None if given.weight is None else given.weight[rows],
                frequency=given.frequency,
            )
            for rows in (~axis.there, axis.there)
        )
        there = one.share > 0
        centre = kernel.centre_of(centering, x[there], one.share[there])
        # Its error: that of a mean over the same rows, or of fixed parts of the bins' means.
        constant = float(centre**2 @ (one.variance[there] / one.n_effective[there]))
        if centering == "mean":
            constant = kernel.mean_error(others)
        elif centering == "none":
            constant = 0.0
        value = float(gone.mean[0] - centre @ one.mean[there])
        found.append((value, np.sqrt(kernel.mean_error(gone) + constant)))
    return dict(zip(BESIDE, np.array(found).T, strict=True))


def _counts(given: _Given, weight: FloatArray | None, n_rows: int) -> dict[str, NDArray[Any]]:
    """Rows with a value: all of them, repeated ones counted; and how many independent ones."""
    if weight is None:
        n_obs = n_effective = float(n_rows)
    elif given.frequency:
        n_obs = n_effective = float(weight.sum())
    else:
        n_obs, n_effective = float(n_rows), float(weight.sum() ** 2 / (weight @ weight))
    return {"n_obs": np.array(n_obs), "n_effective": np.array(n_effective)}


def _nothing(n_outputs: int) -> dict[str, NDArray[Any]]:
    """Of a constant feature, which has no grid."""
    none, nan = np.zeros((n_outputs, 0)), np.full(n_outputs, np.nan)
    return {
        **dict.fromkeys(("curve", "curve_std", "curve_se"), none),
        "curve_cov": np.zeros((n_outputs, 0, 0)),
        **dict.fromkeys(("curve_offset", "heterogeneity_output", "importance"), nan),
    }


def _at_rows(asked: models.DifferenceQuotients) -> FloatArray:
    """The model's answer at the rows, (row, output)."""
    answers = asked.at_rows().astype(np.float64, copy=False)
    bad = np.asarray(~np.isfinite(answers).all(axis=1))
    if bad.any():
        raise ValueError(
            f"model must return finite numbers; got others in {int(bad.sum())} of {len(bad)} rows "
            f"(first rows: {first_rows(bad)}). See what it returns at these rows."
        )
    return answers


def in_bins(
    rule: EqualWidthBins | QuantileBins | GivenBins,
    name: str,
    x: FloatArray,
    weight: FloatArray | None,
) -> tuple[IntArray, FloatArray]:
    """The bin of every row, and the edges; none of a constant feature."""
    low, high = float(x.min()), float(x.max())
    if low == high:
        return np.zeros(len(x), dtype=np.intp), np.zeros(0)
    cells = rule.cells(Column(name, x, low, high, weight))
    edges = bin_edges(cells, np.arange(len(cells)), low, high)
    return bin_index(edges, x), edges


def _of_bins(
    each: Sequence[kernel.BinMeans], x: FloatArray, centering: str
) -> dict[str, NDArray[Any]]:
    """An M-plot from means in bins, of every output."""
    if not len(x):
        return _nothing(len(each))
    found: list[dict[str, Any]] = []
    for one in each:
        offset, covariance = kernel.bin_curve(one, x, centering)
        found.append(
            {
                "curve": one.mean - offset,
                "curve_std": np.sqrt(one.variance),
                "curve_se": np.sqrt(np.maximum(np.diagonal(covariance), 0.0)),
                "curve_cov": covariance,
                "curve_offset": offset,
                "heterogeneity_output": kernel.root_mean_square(np.sqrt(one.variance), one.share),
                "importance": kernel.importance(one.mean, one.share),
            }
        )
    return {name: np.stack([one[name] for one in found]) for name in found[0]}


def _smoothed(
    given: _Given, axis: _Axis, values: FloatArray, centering: str
) -> dict[str, NDArray[Any]]:
    """A spline through Shapley values (output, row), with its errors and its spread."""
    there, gone = axis.there, given.gone(axis) & ~axis.there
    weight = None if given.weight is None else given.weight[there]
    counts = _counts(given, weight, int(there.sum()))
    if not len(axis.grid):
        nan = np.full(len(values), np.nan)
        nothing = {"weight_share": np.zeros(0), "smoothing": nan}
        if given.missing == "bin":
            nothing |= dict.fromkeys(BESIDE, nan)
        return _nothing(len(values)) | counts | nothing
    nominal, x = axis.levels is not None, axis.x[there]
    at = given.places(axis, there)
    share = at.share(weight)
    smoother = smoother_of(axis.name, x, axis.grid, weight, nominal=nominal)
    found: list[dict[str, Any]] = []
    for whole in values:
        phi = whole[there]
        fit = splines.smooth(smoother.basis, phi, weight, None)
        curve, spread, own = smoothed(smoother, fit, at, weight, centering, given.frequency)
        sample = kernel.sample(own, weight, frequency=given.frequency)
        covariance = sample.covariance / sample.n_effective
        found.append(
            {
                "curve": curve,
                "curve_std": spread,
                "curve_se": np.sqrt(np.diagonal(covariance)),
                "curve_cov": covariance,
                "curve_offset": fit.curve @ kernel.centre_of(centering, axis.grid, share),
                "heterogeneity_output": kernel.root_mean_square(spread, share),
                "importance": kernel.importance(curve, share),
                "smoothing": fit.smoothing,
            }
        )
        if given.missing == "bin":
            found[-1] |= dict.fromkeys(BESIDE, np.nan)
            if gone.any():
                plain = smoothed(smoother, fit, at, weight, "none", given.frequency)[2]
                constant = kernel.sample(
                    plain[:, :1] - own[:, :1], weight, frequency=given.frequency
                )
                others = kernel.sample(
                    whole[gone, None],
                    None if given.weight is None else given.weight[gone],
                    frequency=given.frequency,
                )
                variance = kernel.mean_error(others) + kernel.mean_error(constant)
                value = float(others.mean[0]) - found[-1]["curve_offset"]
                found[-1] |= dict(zip(BESIDE, (value, np.sqrt(variance)), strict=True))
    out = {name: np.stack([one[name] for one in found]) for name in found[0]}
    return counts | {"weight_share": share} | out


class Smoother(NamedTuple):
    """What smooths values of one feature, and where their spread is taken."""

    basis: splines.Basis
    near: splines.Near


def smoother_of(
    name: str, x: FloatArray, grid: FloatArray, weight: FloatArray | None, *, nominal: bool
) -> Smoother:
    """Splines, or means of levels; spread about them in quantile bins, or at levels."""
    if nominal:
        level = x.astype(np.intp)
        return Smoother(
            splines.level_basis(level, len(grid)), splines.near_levels(level, len(grid))
        )
    cell, edges = in_bins(QuantileBins(SPREAD_BINS), name, x, weight)
    cell, n_bins = (cell, len(edges) - 1) if len(edges) else (np.zeros(len(x), dtype=np.intp), 1)
    means = kernel.bin_means(x, cell, n_bins, weight, frequency=False).mean
    near = splines.near_bins(cell, means, grid)
    return Smoother(splines.spline_basis(x, weight, grid), near)


def smoothed(
    smoother: Smoother,
    fit: splines.Smooth,
    at: kernel.Places,
    weight: FloatArray | None,
    centering: str,
    frequency: bool,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """math [45]: the centred curve, the spread about it, and influences of the rows on it."""
    share = at.share(weight)
    centre = kernel.centre_of(centering, np.asarray(smoother.basis.grid_place), share)
    curve = fit.curve - centre @ fit.curve
    base = np.ones(len(fit.residual)) if weight is None else weight
    spread = smoother.near.spread(fit.residual[:, None], base[:, None])[:, 0]
    own = splines.influences(
        smoother.basis, fit.residual, weight, fit.smoothing, frequency=frequency
    )
    if centering != "none":
        own = own - (own @ centre)[:, None]
    if centering == "mean":
        # The constant is a mean over places of rows, too, as in `influences`.
        own -= at.at_rows(curve, weight)[:, None]
    return curve, spread, own
