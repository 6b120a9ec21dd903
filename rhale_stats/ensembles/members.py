"""Results of several models as the functions of this wing read them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from rhale_stats.arrays.moments import FloatArray
from rhale_stats.ensembles.labelled import ON_GRID, TOTALS
from rhale_stats.ensembles.variances import CROSS_FITTED, SPREAD, SUBSAMPLING, variance_kind
from rhale_stats.inference.draws import draws_of
from rhale_stats.inference.estimate import Facts, Joint
from rhale_stats.schema.dimensions import check_one_part, with_part_facts
from rhale_stats.schema.features import feature_position
from rhale_stats.schema.kinds import ENSEMBLE
from rhale_stats.schema.variables import EFFECT_VARIABLES, in_order

# What is never negative: intervals by standard errors are made on the log scale.
SIZES = ("heterogeneity", "importance", "heterogeneity_index", "heterogeneity_output")
MAKERS = "bootstrap_refit, cross_effects or over_models"
REFITS, SUBSAMPLES, FOLDS, DRAWS, MODELS = "refits", "subsamples", "folds", "draws", "models"
CREDIBLE = ("eti", "hdi", "normal")


class Origin(NamedTuple):
    """Where the members come from, and what their spread is.

    ``contained``: the members vary with the rows as well, so that the part of the rows is within
    their variance. ``methods`` are those of intervals, the usual one first.
    """

    kind: str
    source: str
    target: str
    interval: str = "confidence"
    methods: tuple[str, ...] = ("percentile", "basic", "normal")
    contained: bool = True

    @property
    def is_tested(self) -> bool:
        """Whether the spread is that of a sampling distribution, so that P is defined."""
        return self.interval == "confidence"


def origin_of(ensemble: xr.Dataset) -> Origin:
    """Where the members come from."""
    attrs, kind = ensemble.attrs, variance_kind(ensemble)
    source = str(attrs.get("source", "refits"))
    if kind == SPREAD:
        if source == DRAWS:
            what = "draws of the parameters", "effect of the model over these rows", "credible"
            return Origin(DRAWS, *what, CREDIBLE, contained=False)
        what = "spread of the models", "effect of a model over these rows", "spread"
        return Origin(MODELS, *what, CREDIBLE, contained=False)
    groups = ", groups of rows" if "groups" in source else ""
    if kind in CROSS_FITTED:
        target = "mean effect of models fitted to the rows of a training set"
        return Origin(FOLDS, f"refits of folds{groups}", target, methods=("normal",))
    name = SUBSAMPLES if kind == SUBSAMPLING else REFITS
    return Origin(name, f"refits{groups}", "mean effect of models fitted to so many rows")


def check_ensemble(ensemble: object, parameter: str = "effect") -> xr.Dataset:
    """The argument itself; raise ``TypeError`` or ``ValueError`` unless it has all members."""
    if not isinstance(ensemble, xr.Dataset):
        raise TypeError(
            f"{parameter} must be the Dataset that {MAKERS} returns; got {type(ensemble).__name__}."
        )
    needed = ("curve", "curve_estimate", "grid_value", "feature_kind", "failed")
    absent = [name for name in needed if name not in ensemble.variables]
    dims = [dim for dim in ("chain", "draw", "feature") if dim not in ensemble.dims]
    if not ENSEMBLE.holds(ensemble) or absent or dims:
        what = f"no {', '.join(absent)}" if absent else f"no dimension {', '.join(dims)}"
        raise ValueError(
            f"{parameter} must be the whole Dataset that {MAKERS} returns; this one has {what}. "
            f"Pass that Dataset with all its members."
        )
    check_one_part(ensemble, parameter)
    return in_order(with_part_facts(ensemble))


# --- numbers --------------------------------------------------------------------------------------


def estimated(ensemble: xr.Dataset) -> list[str]:
    """Estimates that the members have, those along the grid first."""
    names = (*ON_GRID, *TOTALS)
    return [name for name in names if name in ensemble and "draw" in ensemble[name].dims]


def dims_of(name: str) -> tuple[str, ...]:
    """Dimensions of an estimate."""
    return ("feature", "grid") if name in ON_GRID else ("feature",)


def members_of(ensemble: xr.Dataset, name: str) -> FloatArray:
    """One estimate of all members, (member, feature) or (member, feature, grid)."""
    return draws_of(ensemble, name, dims_of(name))


def centre_of(ensemble: xr.Dataset, name: str) -> FloatArray:
    """The estimate: from all rows, or the mean over the members."""
    if f"{name}_estimate" in ensemble.variables:
        estimate = ensemble[f"{name}_estimate"].transpose(*dims_of(name)).values
        return np.asarray(estimate, dtype=np.float64)
    return mean_of(members_of(ensemble, name))


def mean_of(values: FloatArray) -> FloatArray:
    """Mean over the members that have a value."""
    finite = np.isfinite(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(finite, values, 0.0).sum(axis=0) / finite.sum(axis=0))


def scaled(ensemble: xr.Dataset, name: str) -> FloatArray:
    """Members about the estimate, with the variance of its error: those of subsamples are wider."""
    values, factor = members_of(ensemble, name), float(ensemble.attrs.get("variance_factor", 1.0))
    if factor == 1.0:
        return values
    centre = centre_of(ensemble, name)
    return np.asarray(centre + np.sqrt(factor) * (values - centre))


def errors(ensemble: xr.Dataset, name: str) -> FloatArray:
    """Standard error of an estimate, as `std_error` has added it."""
    return np.asarray(ensemble[f"{name}_se"].transpose(*dims_of(name)).values)


def own_errors(ensemble: xr.Dataset, name: str) -> FloatArray:
    """Standard error that is the spread of the members: of draws with the rows as given."""
    if origin_of(ensemble).contained or f"{name}_se_model" not in ensemble:
        return errors(ensemble, name)
    return np.asarray(ensemble[f"{name}_se_model"].transpose(*dims_of(name)).values)


def degrees_of(ensemble: xr.Dataset, name: str) -> FloatArray:
    """Degrees of freedom of a standard error; infinite but for folds."""
    if f"{name}_df" not in ensemble:
        return np.full(errors(ensemble, name).shape, np.inf)
    return np.asarray(ensemble[f"{name}_df"].transpose(*dims_of(name)).values)


def covariance_of(deviations: FloatArray, se: FloatArray) -> FloatArray:
    """Covariance between points, with these standard errors; 0 where there is none."""
    products = deviations.T @ deviations
    scale = np.sqrt(np.diagonal(products))
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = np.nan_to_num(products / np.outer(scale, scale))
    se = np.nan_to_num(se)
    return np.asarray(correlation * np.outer(se, se))


def joint_of(deviations: FloatArray, se: FloatArray, degrees: FloatArray) -> Joint:
    """Errors along a curve, with one estimate of scale."""
    finite = degrees[np.isfinite(degrees)]
    common = float(finite.min()) if len(finite) else np.inf
    return Joint(covariance_of(deviations, se), common)


def facts_of(ensemble: xr.Dataset, name: str, *, of_rows: bool = False) -> Facts:
    """What an estimate is, as its intervals say it; ``of_rows``: with the sampling of the rows."""
    origin, about = origin_of(ensemble), ensemble[name].attrs
    _, long_name, units = EFFECT_VARIABLES[name]
    source, target = origin.source, origin.target
    if of_rows and not origin.contained and f"{name}_se_rows" in ensemble:
        source, target = f"{source} and rows", target.replace("these rows", "rows like these")
    named = str(about.get("long_name", long_name)), str(about.get("units", units))
    return Facts(dims_of(name), *named, target, source)


def size_of(ensemble: xr.Dataset) -> FloatArray:
    """How large every effect is, to put features in order: its importance, where that is known."""
    if "importance" in estimated(ensemble):
        return centre_of(ensemble, "importance")
    curve = centre_of(ensemble, "curve")
    finite = np.isfinite(curve)
    low, high = np.where(finite, curve, np.inf), np.where(finite, curve, -np.inf)
    return np.where(finite.any(axis=1), high.max(axis=1) - low.min(axis=1), np.nan)


def names_of(result: xr.Dataset) -> xr.Dataset:
    """The features of a result with its attributes, and nothing else."""
    coords = {name: result[name].variable for name in ("feature", "feature_kind", "feature_units")}
    return xr.Dataset(coords=coords, attrs=result.attrs)


# --- one feature ----------------------------------------------------------------------------------


class Row(NamedTuple):
    """One feature of an ensemble, without the points beyond its grid; ``feature`` has length 1."""

    name: str
    dataset: xr.Dataset
    z: FloatArray
    levels: list[str]


def one_row(ensemble: xr.Dataset, feature: str | int) -> Row:
    """One feature, by name or number."""
    row = ensemble.isel(feature=[feature_position(ensemble, feature)])
    z = row["grid_value"].values[0]
    points = np.flatnonzero(np.isfinite(z))
    row, levels = row.isel(grid=points), []
    if "level" in row.coords:
        levels = [str(name) for name in row["level"].values[0] if str(name)]
    return Row(str(row["feature"].values[0]), row, z[points], levels)


def mapped(row: Row, name: str, weight: FloatArray) -> xr.Dataset:
    """The members of one estimate, each multiplied by (point, grid): values elsewhere, contrasts.

    What is not known stays unknown. Errors by the rows are left out.
    """
    names = [variable for variable in (name, f"{name}_other_model") if variable in row.dataset]
    variables: dict[str, Any] = {}
    for variable in names:
        values = row.dataset[variable].transpose("chain", "draw", "feature", "grid").values
        variables[variable] = (("chain", "draw", "feature", "grid"), through(values, weight))
    centre = through(centre_of(row.dataset, name), weight)
    variables[f"{name}_estimate"] = (("feature", "grid"), centre)
    return xr.Dataset(variables, attrs=row.dataset.attrs)


def through(values: FloatArray, weight: FloatArray) -> FloatArray:
    """Sums of weights and values along the last axis, unknown where a value with weight is."""
    unknown = np.isnan(values).astype(np.float64) @ (weight != 0).T.astype(np.float64)
    return np.asarray(np.where(unknown > 0, np.nan, np.nan_to_num(values) @ weight.T))
