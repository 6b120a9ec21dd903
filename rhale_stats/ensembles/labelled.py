"""Effects of several models on one grid as a Dataset: how it is made, and how it is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arrays import intervals, members
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.effects.errors import errors_at, own_error, values_at
from rhale_stats.effects.values import importances
from rhale_stats.inference.combinations import correlated
from rhale_stats.inference.draws import draws_of, in_chains
from rhale_stats.inference.estimate import Facts, Joint
from rhale_stats.profiles.data import check_profile, one_profile
from rhale_stats.schema.checks import check_dataset, check_effect
from rhale_stats.schema.dimensions import check_one_part, with_part_facts
from rhale_stats.schema.feature_result import FeatureResult, Result, each_feature, one_feature
from rhale_stats.schema.features import feature_names, feature_position
from rhale_stats.schema.kinds import ENSEMBLE, PROFILE
from rhale_stats.schema.levels import is_categorical, level_names
from rhale_stats.schema.padding import padded
from rhale_stats.schema.variables import EFFECT_VARIABLES, GRID_VALUE, in_order, software

# The attribute ``variance``: how an error is made from the members.
BOOTSTRAP, SUBSAMPLING, SPREAD = "bootstrap", "subsampling", "spread"
JACKKNIFE, CORRECTED = "jackknife", "nadeau-bengio"
CROSS_FITTED = (JACKKNIFE, CORRECTED)
RUBIN = "rubin"


class Error(NamedTuple):
    """Variance of an estimate, its parts, and degrees of freedom for Student's t, (feature, ...).

    ``rows`` is NaN where the members' errors by rows are not known. Degrees are infinite where the
    error is taken as known.
    """

    variance: FloatArray
    rows: FloatArray
    model: FloatArray
    degrees: FloatArray


def error_of(ensemble: xr.Dataset, name: str) -> Error:
    """The error of the estimate of one variable, such as ``curve``."""
    kind, values = ensemble.attrs["variance"], draws_of(ensemble, name)
    if kind == JACKKNIFE:
        return _jackknife(ensemble, name)
    within, between = _rows(ensemble, name), members.variance(values)
    if kind == CORRECTED:
        # math [84]: corrected for training rows in common.
        n, share = members.n_known(values), float(ensemble.attrs["test_over_train"])
        total = members.corrected_factor(n.astype(np.float64), share) * between
        rows = within / ensemble.attrs["n_folds"]
        return Error(total, rows, np.maximum(total - rows, 0.0), np.maximum(n - 1.0, 0.0))
    if kind == RUBIN:
        added, m = between * (1 + 1 / len(values)), len(values)
        if np.isnan(within).all() and f"{name}_within" in ensemble:
            within = np.sum(_roots(ensemble, name) ** 2, axis=0)
        total, complete = added + within, np.array(float(ensemble.attrs["complete_degrees"]))
        return Error(total, within, added, members.degrees_of(added, total, m, complete))
    never = np.full(between.shape, np.inf)
    if kind == SPREAD:
        # Every member is of all rows: their sampling comes on top of what the models differ by.
        return Error(between + np.nan_to_num(within), within, between, never)
    factor = float(ensemble.attrs.get("variance_factor", 1.0))
    total, rows = factor * between, float(ensemble.attrs.get("rows_factor", 1.0)) * within
    return Error(total, rows, np.maximum(total - rows, 0.0), never)


def deviations(ensemble: xr.Dataset, name: str) -> FloatArray:
    """Deviations (n, feature, ...) whose sums of products estimate the covariance of the error.

    For the correlation between points of a curve; variances are those of `error_of`. Unknown values
    count as 0.
    """
    kind, values = ensemble.attrs["variance"], draws_of(ensemble, name)
    if kind == RUBIN:
        m = len(values)
        away = np.sqrt((1 + 1 / m) / (m - 1)) * (values - members.mean(values))
        return np.asarray(np.nan_to_num(np.concatenate([away, _roots(ensemble, name)])))
    if kind not in CROSS_FITTED:
        factor = float(ensemble.attrs.get("variance_factor", 1.0))
        n = np.maximum(members.n_known(values) - 1, 1)
        return np.asarray(np.nan_to_num((values - members.mean(values)) * np.sqrt(factor / n)))
    by_repeat = _by_repeat(ensemble, name)
    with np.errstate(invalid="ignore"):
        away = values - np.repeat(mean_of(by_repeat.swapaxes(0, 1)), by_repeat.shape[1], axis=0)
    n_repeats, n_folds = by_repeat.shape[:2]
    away = np.nan_to_num(away) / np.sqrt(n_folds * n_repeats * max(n_folds - 1, 1))
    other = f"{name}_other_model"
    if other not in ensemble:
        return np.asarray(away)
    models = np.nan_to_num(values - draws_of(ensemble, other))
    factor = members.jackknife_factor(n_folds) / (2 * len(values))
    return np.concatenate([away, np.sqrt(factor) * models])


def _roots(ensemble: xr.Dataset, name: str) -> FloatArray:
    """Roots of the covariance within imputations, (root, feature, grid)."""
    return values_of(ensemble, f"{name}_within", ("within", *dims_of(name)))


def _rows(ensemble: xr.Dataset, name: str) -> FloatArray:
    """Mean over the members of the squared standard error by rows; NaN where that is not known."""
    error_name = f"{name}_se_rows"
    if error_name not in ensemble:
        return np.full(draws_of(ensemble, name).shape[1:], np.nan)
    return members.mean(draws_of(ensemble, error_name) ** 2)


def _by_repeat(ensemble: xr.Dataset, name: str) -> FloatArray:
    """One variable over (repeat, fold, feature, ...)."""
    values = draws_of(ensemble, name)
    return values.reshape(ensemble.sizes["chain"], ensemble.sizes["draw"], *values.shape[1:])


def _jackknife(ensemble: xr.Dataset, name: str) -> Error:
    """math [83]: models by differences on the same rows; rows by their own errors, or what is left.

    Errors by rows are wrong where groups of rows were held out together.
    """
    values = draws_of(ensemble, name)
    n_folds, n_repeats = ensemble.attrs["n_folds"], ensemble.attrs["n_repeats"]
    of_models = members.variance_of_models(values, draws_of(ensemble, f"{name}_other_model"))
    left = members.variance_within(_by_repeat(ensemble, name)) - of_models
    by_groups = "groups" in str(ensemble.attrs["source"])
    within = np.full(of_models.shape, np.nan) if by_groups else _rows(ensemble, name)
    within = np.where(np.isfinite(within), within, np.maximum(left, 0.0))
    model, rows = members.jackknife_factor(n_folds) * of_models, within / n_folds
    most = float(ensemble.attrs["n_units"]) - 1
    degrees = intervals.satterthwaite(
        (model, min(members.paired_degrees(n_folds, n_repeats), most)),
        (rows, n_folds - 1.0 if by_groups else most),
    )
    return Error(model + rows, rows, model, degrees)


# --- results of several models as the functions of this wing read them ----------------------------


# What is never negative: intervals by standard errors are made on the log scale.
SIZES = ("heterogeneity", "importance", "heterogeneity_index", "heterogeneity_output")
MAKERS = "bootstrap_refit, cross_effects or over_models"
REFITS, SUBSAMPLES, FOLDS, DRAWS, MODELS = "refits", "subsamples", "folds", "draws", "models"
IMPUTATIONS = "imputations"
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

    @property
    def is_estimated(self) -> bool:
        """Whether the error is an estimate with degrees of freedom, not the members themselves."""
        return self.kind in (FOLDS, IMPUTATIONS)


def origin_of(ensemble: xr.Dataset) -> Origin:
    """Where the members come from."""
    attrs, kind = ensemble.attrs, ensemble.attrs["variance"]
    source = str(attrs.get("source", "refits"))
    if kind == SPREAD:
        if source == DRAWS:
            what = "draws of the parameters", "effect of the model over these rows", "credible"
            return Origin(DRAWS, *what, CREDIBLE, contained=False)
        what = "spread of the models", "effect of a model over these rows", "spread"
        return Origin(MODELS, *what, CREDIBLE, contained=False)
    if kind == RUBIN:
        target = "mean effect over rows like these"
        return Origin(IMPUTATIONS, source, target, methods=("normal",))
    groups = ", groups of rows" if "groups" in source else ""
    if kind in CROSS_FITTED:
        target = "mean effect of models fitted to the rows of a training set"
        return Origin(FOLDS, f"refits of folds{groups}", target, methods=("normal",))
    name = SUBSAMPLES if kind == SUBSAMPLING else REFITS
    return Origin(name, f"refits{groups}", "mean effect of models fitted to so many rows")


def check_ensemble(ensemble: object, parameter: str = "effect") -> xr.Dataset:
    """The argument itself; raise ``TypeError`` or ``ValueError`` unless it has all members."""
    ensemble = check_dataset(ensemble, parameter, MAKERS)
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


def values_of(ensemble: xr.Dataset, variable: str, dims: Sequence[str]) -> FloatArray:
    """The values of a variable in this order of its dimensions."""
    return np.asarray(ensemble[variable].transpose(*dims).values, dtype=np.float64)


def members_of(ensemble: xr.Dataset, name: str) -> FloatArray:
    """One estimate of all members, (member, feature) or (member, feature, grid)."""
    return draws_of(ensemble, name, dims_of(name))


def centre_of(ensemble: xr.Dataset, name: str) -> FloatArray:
    """The estimate: from all rows, or the mean over the members."""
    if f"{name}_estimate" in ensemble.variables:
        return values_of(ensemble, f"{name}_estimate", dims_of(name))
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
    return values_of(ensemble, f"{name}_se", dims_of(name))


def own_errors(ensemble: xr.Dataset, name: str) -> FloatArray:
    """Standard error that is the spread of the members: of draws with the rows as given."""
    if origin_of(ensemble).contained or f"{name}_se_model" not in ensemble:
        return errors(ensemble, name)
    return values_of(ensemble, f"{name}_se_model", dims_of(name))


def degrees_of(ensemble: xr.Dataset, name: str) -> FloatArray:
    """Degrees of freedom of a standard error; infinite but for folds."""
    if f"{name}_df" not in ensemble:
        return np.full(errors(ensemble, name).shape, np.inf)
    return values_of(ensemble, f"{name}_df", dims_of(name))


def joint_of(deviations: FloatArray, se: FloatArray, degrees: FloatArray) -> Joint:
    """Errors along a curve, with one estimate of scale."""
    common = np.min(degrees, initial=np.inf, where=np.isfinite(degrees))
    return Joint(correlated(deviations, np.nan_to_num(se)), float(common))


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
    curve = pd.DataFrame(centre_of(ensemble, "curve")).replace([-np.inf, np.inf], np.nan)
    return (curve.max(axis=1) - curve.min(axis=1)).to_numpy()


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
    if (roots := f"{name}_within") in row.dataset:
        values = through(_roots(row.dataset, name), weight)
        variables[roots] = (("within", "feature", "grid"), values)
    centre = through(centre_of(row.dataset, name), weight)
    variables[f"{name}_estimate"] = (("feature", "grid"), centre)
    return xr.Dataset(variables, attrs=row.dataset.attrs)


def through(values: FloatArray, weight: FloatArray) -> FloatArray:
    """Sums of weights and values along the last axis, unknown where a value with weight is."""
    unknown = np.isnan(values).astype(np.float64) @ (weight != 0).T.astype(np.float64)
    return np.asarray(np.where(unknown > 0, np.nan, np.nan_to_num(values) @ weight.T))


# --- effects of several models on one grid --------------------------------------------------------


ON_GRID = ("effect", "heterogeneity", "curve")
TOTALS = ("average_effect", "importance", "heterogeneity_index", "heterogeneity_output")
OF_STEPS = ("average_effect", "average_effect_se_rows", *TOTALS[2:])
# Attributes that describe one member, and are not those of all.
OF_ONE = ("row_fingerprint", "model_calls", "model_rows", "seed", "honest_seed", "n_groups")
# Values of one member by name, over (feature, grid) or (feature,).
Values: TypeAlias = dict[str, FloatArray]
# These, or why there are none.
Member: TypeAlias = Values | str


class MemberGrid(NamedTuple):
    """The points that all members have in common: (feature, grid), NaN beyond the last level.

    ``level`` has the names of the levels of features that have levels in place of an axis.
    """

    names: tuple[str, ...]
    value: FloatArray
    level: NDArray[np.str_]

    def levels(self, number: int) -> list[str]:
        """Levels of one feature; none where it has an axis."""
        return [str(name) for name in self.level[number] if name]


def check_member(effect: object, what: str) -> xr.Dataset:
    """The effect or the profile of one model; raise ``TypeError`` or ``ValueError`` if neither."""
    if PROFILE.holds(effect):
        return check_profile(effect, what)
    return check_effect(effect, what)


def common_grid(effects: Sequence[xr.Dataset], n_grid: int, what: str) -> MemberGrid:
    """Evenly spaced points over the range of all effects, and the levels of all of them.

    Profiles that are on the same points keep them.
    """
    names = tuple(feature_names(effects[0]))
    values, levels = [], []
    for number, name in enumerate(names):
        rows = [_row(effect, number) for effect in effects]
        kinds = {is_categorical(row) for row in rows if len(_points(row))}
        if len(kinds) > 1:
            raise ValueError(
                f"{what} must treat feature {name!r} in one way: it has levels in some effects and "
                f"an axis in others."
            )
        labels = (label for row in rows for label in _levels(row)) if True in kinds else ()
        levels.append(list(dict.fromkeys(labels)))
        n_levels = len(levels[-1])
        values.append(np.arange(float(n_levels)) if n_levels else _axis(rows, n_grid))
    texts = padded(levels, (max(map(len, values)),), missing="", dtype=object)
    return MemberGrid(names, padded(values), texts.astype(np.str_))


def _row(effect: xr.Dataset, number: int) -> Result:
    """One feature of an effect or of a profile."""
    return one_profile(effect, number) if PROFILE.holds(effect) else one_feature(effect, number)


def _points(row: Result) -> FloatArray:
    return row.edges if isinstance(row, FeatureResult) else np.asarray(row["grid_value"].values)


def _levels(row: Result) -> list[str]:
    """Levels of one feature of an effect or a profile."""
    if not len(_points(row)):
        return []
    return [str(name) for name in row["level"].values] if "grid" in row.dims else level_names(row)


def _axis(rows: Sequence[Result], n_grid: int) -> FloatArray:
    """Points of one feature that has an axis; those of its profiles if they are all the same."""
    first = _points(rows[0])
    if all("grid" in row.dims and np.array_equal(_points(row), first) for row in rows):
        return first
    points = np.concatenate([_points(row) for row in rows])
    if not len(points):  # of constant features
        return np.full(n_grid, np.nan)
    return np.linspace(np.nanmin(points), np.nanmax(points), n_grid)


# --- one member -----------------------------------------------------------------------------------


def on_grid(effect: xr.Dataset, grid: MemberGrid) -> Values:
    """Estimates of one member and their standard errors by rows, as far as they are known."""
    if tuple(feature_names(effect)) != grid.names:
        raise ValueError(
            f"the same features are needed in all effects; got {', '.join(grid.names)} for all, "
            f"{', '.join(feature_names(effect))} for some."
        )
    profile = PROFILE.holds(effect)
    estimates = ("curve",) if profile else ON_GRID
    out = {name: np.full(grid.value.shape, np.nan) for name in estimates}
    others = []
    for number in range(len(grid.names)):
        row = _row(effect, number)
        if not len(_points(row)):
            continue
        levels = grid.levels(number)
        if levels and not profile and level_names(row) != levels:
            others.append(number)
        z = grid.value[number]
        values_at_grid = (
            _of_effect(row, z, levels)
            if isinstance(row, FeatureResult)
            else _of_profile(row, z, levels)
        )
        for name, values in values_at_grid.items():
            out.setdefault(name, np.full((len(grid.names), *np.shape(values)), np.nan))
            out[name][number] = values
    out |= {name: effect[name].values.astype(np.float64) for name in TOTALS if name in effect}
    if not profile:
        index = [row.heterogeneity_index for row in each_feature(effect)]
        out |= {"heterogeneity_index": np.array(index), "importance": importances(effect)}
    # Sums over steps between levels are others in another order of the levels.
    for name in filter(out.__contains__, OF_STEPS):
        out[name][others] = np.nan
    return out


def _of_effect(row: FeatureResult, z: FloatArray, levels: list[str]) -> dict[str, Any]:
    """Estimates and errors of one feature with bins, or with levels."""
    if not levels:
        of_rows = {f"{name}_se_rows": error for name, error in errors_at(row, z).items()}
        return {**values_at(row, z), **of_rows}
    positions = pd.Index(level_names(row)).get_indexer(pd.Index(levels))
    # Steps from one level to the next, where the two are neighbours here, too.
    step = np.append(np.where(positions[1:] == positions[:-1] + 1, positions[:-1], -1), -1)
    out: dict[str, Any] = {}
    for name, place in (("effect", step), ("heterogeneity", step), ("curve", positions)):
        for variable, key in ((name, name), (f"{name}_se", f"{name}_se_rows")):
            values = _by_rows(row, variable)
            if values is not None:
                out[key] = _taken(values, place, len(z))
    if "average_effect_se" in row:
        out["average_effect_se_rows"] = float(own_error(row, "average_effect_se"))
    return out


def _by_rows(row: Result, name: str) -> FloatArray | None:
    """A variable; of a standard error the part by rows, or else that of stored covariances."""
    covariance = f"{name.removesuffix('_se')}_cov"
    if name in row:
        return own_error(row, name) if name.endswith("_se") else np.asarray(row[name].values)
    if name.endswith("_se") and covariance in row:
        return np.asarray(np.sqrt(np.diagonal(row[covariance].values)))
    return None


def _taken(values: FloatArray, place: NDArray[np.intp], size: int) -> FloatArray:
    """Values at these places, NaN at places -1 and beyond the last."""
    out = np.full(size, np.nan)
    out[: len(place)] = np.where(place >= 0, values[np.maximum(place, 0)], np.nan)
    return out


def _of_profile(row: xr.Dataset, z: FloatArray, levels: list[str]) -> dict[str, Any]:
    """Curve and error of one feature of a profile, straight between the points of its own grid."""
    out = {}
    for name, key in (("curve", "curve"), ("curve_se", "curve_se_rows")):
        values = _by_rows(row, name)
        if values is None:
            continue
        if levels:
            positions = pd.Index(_levels(row)).get_indexer(pd.Index(levels))
            out[key] = _taken(values, positions, len(z))
        else:
            # The error of a mean of two points is at most the mean of their errors.
            out[key] = np.interp(z, _points(row), values, np.nan, np.nan)
    return out


# --- all members ----------------------------------------------------------------------------------


def labelled(
    members: Sequence[Member],
    grid: MemberGrid,
    whole: xr.Dataset,
    estimate: Mapping[str, FloatArray],
    chains: int,
    facts: Mapping[str, Any],
) -> xr.Dataset:
    """All members over (chain, draw, ...), those that failed as NaN, with the estimates.

    ``whole`` is one of the effects: names, units and what the effects are of come from it.
    ``estimate`` are those of all rows, or means over the members.
    """
    reasons = [member for member in members if isinstance(member, str)]
    each: list[Values] = [{} if isinstance(member, str) else member for member in members]
    variables: dict[str, Any] = {}
    for name in dict.fromkeys(chain.from_iterable(each)):
        absent = np.full(next(member[name].shape for member in each if name in member), np.nan)
        values = np.stack([member.get(name, absent) for member in each])
        dims = ("draw", "feature", "grid")[: values.ndim]
        variables[name] = (dims, values, _about(name))
    for name in (*ON_GRID, *TOTALS):
        if name in estimate:
            dims = ("feature", "grid")[: estimate[name].ndim]
            variables[f"{name}_estimate"] = (dims, estimate[name], _about(f"{name}_estimate"))
    failed = np.array([isinstance(member, str) for member in members], dtype=np.float64)
    variables["failed"] = (("draw",), failed, {"long_name": "the fit raised", "units": "1"})
    attrs = {key: value for key, value in whole.attrs.items() if key not in OF_ONE}
    return in_chains(
        xr.Dataset(
            variables,
            {
                **names_of(whole).coords.variables,
                "grid_value": (("feature", "grid"), grid.value, GRID_VALUE),
                "level": (("feature", "grid"), grid.level, {"long_name": "level"}),
            },
            {
                **attrs,
                "effect_method": str(whole.attrs["method"]),
                **facts,
                "n_failed": len(reasons),
                "first_failure": reasons[0] if reasons else "",
                "software": software(),
            },
        ),
        chains,
    )


# What variables are, by the end of their names.
ENDINGS = {
    "_se_rows": "standard error by the rows of the {}",
    "_other_model": "{}, by the model of the next fold",
    "_estimate": "{}, estimate",
    "": "{}",
}


def _about(name: str) -> dict[str, str]:
    """Long name and units of a variable of the layout."""
    ending = next(filter(name.endswith, ENDINGS))
    _, long_name, units = EFFECT_VARIABLES[name.removesuffix(ending)]
    about = {"long_name": ENDINGS[ending].format(long_name), "units": units}
    return {**about, "source": "rows"} if ending == "_se_rows" else about
