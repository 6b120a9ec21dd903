"""Effects in bins of several imputed tables as one result: Rubin's rules (math [118])."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.effects.errors import vcov, with_std_error
from rhale_stats.ensembles.labelled import RUBIN, MemberGrid, common_grid, labelled, on_grid
from rhale_stats.inference.draws import GRID
from rhale_stats.schema.checks import check_effect
from rhale_stats.schema.curves import interpolation
from rhale_stats.schema.feature_result import one_feature
from rhale_stats.schema.features import feature_names
from rhale_stats.schema.parts import over_outputs

# What has a standard error by the rows; sizes of effects have none.
POOLED = ("effect", "heterogeneity", "curve", "average_effect")
# Parts of errors are within imputations: what is pooled is the whole.
PARTS = ("_se_rows", "_se_model")


@over_outputs
def pool(*results: xr.Dataset) -> xr.Dataset:
    """Effects of all imputations on one grid, with their mean and what varies within them."""
    effects = [with_std_error(check_effect(result, "results")) for result in results]
    first = effects[0]
    if len({_axes(effect) for effect in effects}) > 1:
        raise ValueError(
            "results must be of the same features in the same bins, with one centering; these "
            "differ. Choose the bins once: bins=rs.GivenBins({'dose': [0, 10, 20]}), and order= of "
            "levels."
        )
    sources = {str(effect["effect_se"].attrs["source"]) for effect in effects}
    effects = [_whole(effect) for effect in effects]
    grid = common_grid(effects, GRID, "results")
    members = [
        {
            name: values
            for name, values in on_grid(effect, grid).items()
            if name.removesuffix("_se_rows") in POOLED
        }
        for effect in effects
    ]
    estimate = {name: np.mean([member[name] for member in members], axis=0) for name in POOLED}
    n_units = min(int(effect.attrs.get("n_groups", effect.attrs["n_rows"])) for effect in effects)
    facts = {
        "method": "pool",
        "source": f"{', '.join(sources)}, {len(effects)} imputations",
        "variance": RUBIN,
        "estimate": "mean over the imputations",
        "complete_degrees": n_units - 1,
        "n_imputations": len(effects),
    }
    out = labelled(members, grid, first, estimate, 1, facts)
    return out.assign(
        {
            f"{name}_within": (
                ("within", "feature", "grid"),
                _roots(effects, grid, name),
                {"long_name": f"root of the covariance of the {name} within imputations"},
            )
            for name in ("effect", "curve")
        }
    )


def _axes(effect: xr.Dataset) -> str:
    """Features, bins, levels and centering, as a text to compare."""
    names = [name for name in ("edge_value", "feature_kind", "level") if name in effect.coords]
    values = [effect[name].values.tolist() for name in names]
    return repr([feature_names(effect), values, effect.attrs["centering"]])


def _whole(effect: xr.Dataset) -> xr.Dataset:
    """The effect with stored errors as they are, not as those of its rows."""
    if "fitted_model" not in effect.attrs:
        return effect
    if "rows" not in str(effect["effect_se"].attrs["source"]):
        raise ValueError(
            "results must have standard errors of rows as well; these are of parameters. Make them "
            "with uncertainty='both'."
        )
    parts = [name for name in effect.data_vars if str(name).endswith(PARTS)]
    n_units = effect.attrs.get("n_groups", effect.attrs["n_rows"])
    return effect.drop_vars(parts).assign_attrs(n_groups=n_units)


def _roots(effects: Sequence[xr.Dataset], grid: MemberGrid, name: str) -> FloatArray:
    """Roots of the mean covariances within imputations, (root, feature, grid)."""
    n_points = grid.value.shape[1]
    out = np.zeros((n_points, len(grid.names), n_points))
    for number in range(len(grid.names)):
        z = grid.value[number][np.isfinite(grid.value[number])]
        if not len(z):
            continue
        covariance = np.mean([_covariance(effect, number, z, name) for effect in effects], axis=0)
        values, vectors = np.linalg.eigh(covariance)
        root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
        out[: len(z), number, : len(z)] = root
    return out


def _covariance(effect: xr.Dataset, number: int, z: FloatArray, name: str) -> FloatArray:
    """Covariance of one feature at points: of the curve between edges, or of bins."""
    row, covariance = one_feature(effect, number), vcov(effect, number, name).values
    covariance = np.nan_to_num(covariance)
    if name == "effect":
        edges = row["edge_value"].values
        k = np.arange(len(z) - 1) if row.is_categorical else bin_index(edges, z)
        weight = np.eye(len(covariance))[k]
        weight = np.vstack([weight, np.zeros_like(weight[:1])]) if row.is_categorical else weight
    else:
        edges = row["cell_value" if row.has_cells else "edge_value"].values
        weight = np.eye(len(z)) if row.is_categorical else interpolation(edges, z)
    return np.asarray(weight @ covariance @ weight.T)
