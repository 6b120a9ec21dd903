"""Standard errors of profiles by groups of rows, and with the parameters of the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arguments.survey import GroupsOrDesign, SurveyDesign, design_text, row_groups
from rhale_stats.arrays import profiles as kernel
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.arrays.survey import SamplingDesign
from rhale_stats.inference.parameters import KIND, Directions, check_model, errors, sources
from rhale_stats.models.options import ModelOptions
from rhale_stats.models.parametric import ROW_NUMBER, Fitted
from rhale_stats.profiles.data import (
    N_GRID,
    ProfileAxis,
    is_nominal,
    one_profile,
    pair_of,
    variable,
)
from rhale_stats.profiles.inputs import ProfileInputs, at_rows
from rhale_stats.profiles.rows import BinnedOutputs, Curves, RowErrors, Shapley, rows_behind
from rhale_stats.schema.features import feature_names
from rhale_stats.schema.identity import model_facts, row_labels
from rhale_stats.schema.padding import padded

# Units in the last place that a mean over rows may differ by, summed in another order.
MEAN_ROUNDING = 64
NO_PARTS = ("curve_se_rows", "curve_se_model", "curve_df", "curve_band", "curve_ci")
NO_WEIGHTS = (
    "local must be given for a profile with weights, which it does not keep. Pass the ICE curves "
    "with the same weights: std_error(profile, ice(model, X, weights=...), model=results, X=X)."
)


class FromModel:
    """The curves of a profile, asked of the model anew, with their changes by direction."""

    def __init__(self, profile: xr.Dataset, rows: xr.Dataset | None, directions: Directions):
        self.profile, self.rows, self.directions = profile, rows, directions
        table = directions.changes.table
        self.numbers = np.arange(table.n_rows)
        weighted = str(profile.attrs["weight_kind"]) != "none"
        if rows is not None:
            self.numbers = np.asarray(rows[ROW_NUMBER].values)
        elif weighted:
            raise ValueError(NO_WEIGHTS)
        weights = rows["weight"].values if rows is not None and weighted else None
        self.options = ModelOptions(
            weights=weights,
            weight_kind=str(profile.attrs["weight_kind"]) if weighted else "precision",
            missing=self._missing(),
        )
        every = feature_names(profile)
        # A constant feature has no grid.
        names = [name for name in every if one_profile(profile, name).sizes["grid"]]
        names = names or every[:1]
        pairs = {name: pair for name in names if (pair := pair_of(one_profile(profile, name)))}
        self.inputs = ProfileInputs.used(
            table.take(self.numbers).data,
            [name for name in names if name not in pairs],
            self.options,
            pairs=[[name for name, _ in pair] for pair in pairs.values()],
        )
        self.quotients = self.inputs.quotients(directions.changes.ask, probe=False)
        self.axes: dict[str, ProfileAxis] = {}
        if profile.attrs["method"] != "m_plot":
            grid: dict[str, Any] = {
                name: [points for _, points in pairs[name]] if name in pairs else points
                for name in names
                if len(points := self._grid(name))
            }
            self.axes = {axis.name: axis for axis in self.inputs.axes(grid, N_GRID, "quantile")}

    def _grid(self, name: str) -> NDArray[Any]:
        row = one_profile(self.profile, name)
        if not is_nominal(row):
            return np.asarray(row["grid_value"].values)
        return np.asarray(row["level"].values)

    def _missing(self) -> str:
        """What was done with missing values, as the numbers of rows show."""
        if "n_missing" not in self.profile:
            return "raise"
        gone, n_obs = self.profile["n_missing"].values > 0, self.profile["n_obs"]
        if "grid" in n_obs.dims or not gone.any():
            return "drop"
        whole = float(self.profile.attrs["n_rows"])
        if str(self.profile.attrs["weight_kind"]) == "frequency" and self.rows is not None:
            whole = float(self.rows["weight"].sum())
        return "bin" if (n_obs.values[gone] == whole).all() else "drop"

    def curves(self, name: str, *, derivative: bool, centering: str) -> tuple[FloatArray, Curves]:
        """Change of the curve by direction, and the ICE curves."""
        axis, inputs = self.axes[name], self.inputs
        weight = inputs.weight_of(axis)
        last_curves: list[FloatArray] = []
        total = np.zeros(0)
        for rows, curves, _ in inputs.curves(self.quotients, axis):
            w = np.ones(curves.shape[1]) if weight is None else weight[rows]
            part = np.einsum("org,r->og", curves, w)
            total = part if not last_curves else total + part
            last_curves.append(curves[-1])
        values = np.concatenate(last_curves)
        total = total / (len(values) if weight is None else weight.sum())
        if derivative:
            total, values = [kernel.along(answers, axis.grid) for answers in (total, values)]
        places = inputs.places(axis)
        if centering != "none":
            centre = kernel.centre_of(centering, axis.grid, places.share(weight))
            total = total - (total @ centre)[:, None]
        used = np.flatnonzero(inputs.with_curve(axis))
        return total, Curves(values, axis.grid, weight, inputs.frequency, used, places, derivative)

    def bins(self, outputs: BinnedOutputs, centering: str) -> FloatArray:
        """Change of an M-plot by direction."""
        answers = at_rows(self.quotients)[outputs.rows]
        weight = outputs.base
        mean = np.zeros((answers.shape[1], len(outputs.grid)))
        np.add.at(mean.T, outputs.cell, answers * weight[:, None])
        total = np.bincount(outputs.cell, weight, len(outputs.grid))
        mean = np.divide(mean, total, out=np.zeros_like(mean), where=total > 0)
        centre = outputs.centre(outputs.means(outputs.values), centering)
        constant = mean @ (total / total.sum() if centre is None else centre)
        return np.asarray(mean - constant[:, None])


def std_error(
    profile: xr.Dataset,
    rows: xr.Dataset | None,
    groups: GroupsOrDesign | None,
    fitted: Fitted | None,
) -> xr.Dataset:
    """A profile with standard errors by groups of rows, with parameters, or both."""
    directions = None
    frequency = str(profile.attrs["weight_kind"]) == "frequency"
    if fitted is not None:
        directions = Directions.of(
            *(fitted, profile.attrs | model_facts(profile)),
            frequency=frequency,
            is_survey=isinstance(groups, SurveyDesign),
        )
    from_model = None if directions is None else FromModel(profile, rows, directions)
    code, n_groups = groups_of(groups, rows, from_model)
    errors_of_features = [
        _of_feature(profile, name, rows, code, from_model) for name in feature_names(profile)
    ]
    source = "rows" if n_groups is None else f"rows in {n_groups} groups"
    if isinstance(code, SamplingDesign):
        source = design_text(code)
    return _labelled(profile, errors_of_features, source, n_groups, directions)


def groups_of(
    groups: GroupsOrDesign | None, rows: xr.Dataset | None, from_model: FromModel | None
) -> tuple[IntArray | SamplingDesign | None, int | None]:
    """Numbers of the groups of all rows."""
    if groups is None:
        return None, None
    labels, n_rows, weight = None, 0, None
    if rows is not None:
        labels, n_rows = row_labels(rows), rows.sizes["obs"]
        weight = rows["weight"].values if "weight" in rows else None
    elif from_model is not None:
        table = from_model.directions.changes.table
        n_rows = table.n_rows
        labels = None if table.index is None else table.index.to_numpy()
    used = np.ones(n_rows, dtype=bool)
    code = row_groups(groups, labels, used, "groups", "rows of the profile", weight)
    if isinstance(code, SamplingDesign):
        return code, int(code.degrees) + 1  # degrees of freedom are one less
    n_groups = int(code.max(initial=-1)) + 1
    if n_groups < 2:
        raise ValueError(f"groups must hold at least two different groups; got {n_groups}.")
    return code, n_groups


def _rounding(row: xr.Dataset) -> float:
    """How far a mean curve of one feature can change by rounding, centred or not."""
    largest = np.abs(np.append(row["curve"].values, row["curve_offset"].values))
    error = float(row["output_error"]) if "output_error" in row else 0.0
    return MEAN_ROUNDING * float(np.spacing(np.nanmax(largest))) + float(np.nan_to_num(error))


def _of_feature(
    profile: xr.Dataset,
    name: str,
    rows: xr.Dataset | None,
    code: IntArray | SamplingDesign | None,
    from_model: FromModel | None,
) -> dict[str, FloatArray]:
    """Standard errors of the curve of one feature, with their parts, by the end of their names."""
    row = one_profile(profile, name)
    if not row.sizes["grid"]:
        return {}
    behind = _behind(profile, row, rows, code, from_model)
    by_rows, degrees, units = behind.errors
    if from_model is None or behind.change is None:
        se = np.sqrt(np.maximum(np.diagonal(by_rows), 0.0))
        return {"se": se, "cov": by_rows, "df": degrees}
    directions, curve = from_model.directions, row["curve"].values
    check_model(behind.change[-1], curve, f"curve of {name!r}", rounding=_rounding(row))
    used = from_model.numbers[behind.used]
    covariances = directions.covariances(by_rows, behind.change[:-1], units, used)
    gone = np.isnan(curve)
    covariances.total[gone] = covariances.total[:, gone] = np.nan
    covariances.model[gone] = covariances.model[:, gone] = np.nan
    degrees = directions.degrees(covariances, degrees)
    return errors(covariances) | {"cov": covariances.total, "df": degrees}


class Behind(NamedTuple):
    """What the curve of one feature is made of: its rows, and its change by direction."""

    errors: RowErrors
    used: IntArray
    change: FloatArray | None


def _behind(
    profile: xr.Dataset,
    row: xr.Dataset,
    rows: xr.Dataset | None,
    code: IntArray | SamplingDesign | None,
    from_model: FromModel | None,
) -> Behind:
    """What the curve of one feature is made of, by its rows or asked of the model anew."""
    name, centering, change = str(row["feature"].values), str(profile.attrs["centering"]), None
    behind: Curves | BinnedOutputs | Shapley
    if from_model is not None and profile.attrs["method"] != "m_plot":
        derivative = profile.attrs.get("ice_kind") == "derivative"
        change, behind = from_model.curves(name, derivative=derivative, centering=centering)
    else:
        assert rows is not None, "groups come with rows, and M-plots keep theirs"
        behind = rows_behind(rows, name)
        if from_model is not None and isinstance(behind, BinnedOutputs):
            change = from_model.bins(behind, centering)
    errors = behind.errors(centering, groups_at(code, behind.rows))
    return Behind(errors, behind.rows, change)


def influences_of(
    profile: xr.Dataset, row: xr.Dataset, rows: xr.Dataset, groups: GroupsOrDesign | None
) -> FloatArray | None:
    """Influences of all rows, or of their groups, (unit, grid); None where these are not there."""
    if ("n_groups" in profile.attrs) != (groups is not None) and not (
        rows is profile and groups is None
    ):
        raise ValueError("groups must be given if std_error was given them, and only then.")
    by_rows_alone = groups is None and "n_groups" in profile.attrs
    if "obs" not in rows.dims or by_rows_alone or "fitted_model" in profile.attrs:
        return None
    code, _ = groups_of(groups, rows, None)
    every = np.arange(rows.sizes["obs"]) if code is None else code
    shap = profile.attrs["method"] == "shap_dependence"
    behind = _behind(profile, row, rows, every if shap else code, None)
    moved = behind.errors.units.moved
    if isinstance(every, SamplingDesign):
        return moved
    # Rows and groups without this feature do not move it.
    out = np.zeros((int(every.max()) + 1, moved.shape[1]))
    out[np.unique(every[behind.used])] = moved
    return out


def groups_at(
    group: IntArray | SamplingDesign | None, rows: IntArray
) -> IntArray | SamplingDesign | None:
    """Groups of some of the rows, from 0 without gaps."""
    if isinstance(group, SamplingDesign):
        return group.take(rows)
    return None if group is None else np.unique(group[rows], return_inverse=True)[1]


def _labelled(
    profile: xr.Dataset,
    errors_of_features: Sequence[dict[str, FloatArray]],
    source: str,
    n_groups: int | None,
    directions: Directions | None,
) -> xr.Dataset:
    """The profile with these errors in place of its own."""
    n_grid = profile.sizes["grid"]
    about: dict[str, Any] = {"kind": "central limit theorem", "target": "curve"}
    source_of_end = dict.fromkeys(("se", "cov", "df"), source)
    if directions is not None:
        about["kind"], source_of_end = KIND, sources(directions, source)
    ends = dict.fromkeys(
        end for errors_of_feature in errors_of_features for end in errors_of_feature
    ) or dict.fromkeys(source_of_end)
    made = {}
    for end in ends:
        shape = (n_grid, n_grid) if end == "cov" else (n_grid,)
        values = padded(
            [
                errors_of_feature.get(end, np.full(shape, np.nan))
                for errors_of_feature in errors_of_features
            ],
            shape,
        )
        made[f"curve_{end}"] = variable(f"curve_{end}", values, source=source_of_end[end], **about)
    out = profile.drop_vars([name for name in NO_PARTS if name in profile]).assign(made)
    for name in ("n_groups", "parameters", "fitted_model"):
        out.attrs.pop(name, None)
    if n_groups is not None:
        out.attrs["n_groups"] = n_groups
    if directions is not None:
        out.attrs |= directions.facts()
        if directions.model.design is not None:  # what is not estimable has no value either
            out["curve"] = out["curve"].where(~np.isnan(made["curve_se_model"][1]))
    return out
