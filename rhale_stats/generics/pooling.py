"""One result from those of several tables: Rubin's rules for multiple imputation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.members import rubin
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.effects.errors import vcov, with_std_error
from rhale_stats.ensembles.labelled import RUBIN, MemberGrid, common_grid, labelled, on_grid
from rhale_stats.inference.draws import GRID
from rhale_stats.margins import tables
from rhale_stats.schema.checks import check_effect
from rhale_stats.schema.curves import interpolation
from rhale_stats.schema.feature_result import one_feature
from rhale_stats.schema.features import feature_names
from rhale_stats.schema.kinds import AVERAGES, EFFECT, PROFILE, Kind, kind_of
from rhale_stats.schema.parts import over_outputs
from rhale_stats.schema.validation import validated
from rhale_stats.schema.variables import variable

# What is pooled of each kind, and coordinates that all results must share.
STEMS: dict[Kind | None, str] = {AVERAGES: "average", PROFILE: "curve"}
COORDINATES = ("term", "by", "contrast", "feature", "grid_value", "output", "region")
INTERVALS = ("_ci", "_band")


@validated
def pool(results: Sequence[xr.Dataset]) -> xr.Dataset:
    r"""Pool the results of several imputations of missing values by Rubin's rules.

    Parameters
    ----------
    results : sequence of Datasets
        What `averages` returned for each completed table and the model fitted to it; or profiles
        such as those of `pdp` on one grid (``grid=``), with their standard errors; or effects in
        the same bins (``bins=GivenBins(...)``). Any other estimates become a table by `hypotheses`,
        which is pooled as averages are.

    Returns
    -------
    Dataset
        A result of the same kind: estimates are means over the imputations, and ``..._se``,
        ``..._cov`` and ``..._df`` hold the variance within and between them (math [118]). All
        functions of that kind take it. Effects in bins become effects on a common grid with the
        imputations as draws, as those of `over_models`. Ratios are pooled on the log scale. The
        attribute ``n_imputations`` is their number. What has no standard error is the mean over
        them.

    Raises
    ------
    TypeError, ValueError
        Fewer than two results, other kinds, results of different terms or grids, or that lack
        standard errors.

    Notes
    -----
    With the mean :math:`\bar U` of the variances and the variance :math:`B` of the estimates of
    :math:`m` imputations the variance is :math:`\bar U + (1 + 1/m) B`. Degrees of freedom are those
    of Barnard and Rubin. Errors within imputations are those that the results hold: of effects with
    the fit of the model, if `std_error` was given it. Parts of errors of averages and profiles
    (``..._se_rows``, ``..._se_model``) are within imputations; of effects in bins the part of the
    model is that between them.

    References
    ----------
    Rubin (1987), *Multiple imputation for nonresponse in surveys*. Barnard and Rubin (1999),
    *Biometrika* 86, 948-955.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import rhale_stats as rs
    >>> import statsmodels.formula.api as smf
    >>> rng = np.random.default_rng(0)
    >>> results = []
    >>> for _ in range(5):
    ...     X = pd.DataFrame({"x": np.arange(20.0) + rng.normal(size=20)})
    ...     data = X.assign(y=np.arange(20.0))
    ...     results.append(rs.averages(smf.ols("y ~ x", data).fit(), data))
    >>> rs.tidy(rs.pool(results))[["term", "estimate", "std_error"]].round(3)
             term  estimate  std_error
    0  prediction     9.500      1.321
    1           x     0.987      0.057
    """
    kinds = {kind_of(result) for result in results}
    kind = kinds.pop() if len(kinds) == 1 else None
    if len(results) < 2 or kind is None or kind not in (EFFECT, *STEMS):
        raise ValueError(
            f"results must be two or more results of averages, profiles, or effects in bins; got "
            f"{len(results)} of {'several kinds' if kinds or kind is None else kind.name}. "
            f"hypotheses(result) makes a table that can be pooled of other estimates."
        )
    if kind is EFFECT:
        return _pool_effects(*results)
    stem, first, text = STEMS[kind], results[0], f"{len(results)} imputations"
    for result in results:
        same = all(
            name in result.coords and first[name].equals(result[name])
            for name in COORDINATES
            if name in first.coords
        )
        if not same or f"{stem}_cov" not in result:
            raise ValueError(
                "results must be alike: of the same terms, or on the same grid (grid={...}), with "
                "their covariances; these differ, or are none such."
            )
    if kind is AVERAGES:
        if any(tables.is_location(result) for result in results):
            raise ValueError("results must be no locations; pool the curves, then take hypotheses.")
        results = [tables.selected(result) for result in results]
        first = results[0]
    out = first.drop_vars([name for name in first.data_vars if str(name).endswith(INTERVALS)])
    means = {
        str(name): np.mean(
            [result[name].transpose(*array.dims).values for result in results], axis=0
        )
        for name, array in out.data_vars.items()
        if array.dtype.kind == "f"
    }
    error, variables = out[f"{stem}_se"].attrs, {}
    for name, values in (means | _pooled(stem, results)).items():
        attrs = out[name].attrs if name in out else error | variable(name, values, kind)[2]
        if "source" in attrs and not name.endswith(("_rows", "_model")):
            attrs = attrs | {"source": f"{attrs['source']}, {text}"}
        variables[name] = (out[name if name in out else stem].dims, values, attrs)
    how = f"{first.attrs.get('parameters', 'model as given')}; Rubin's rules for {text}"
    out = out.assign(variables)
    if out.attrs["method"] == tables.HYPOTHESES:  # with tests of what was pooled
        combined = tables.estimates(out, None, None, None, None)._replace(what=out.attrs["about"])
        out = tables.labelled_combinations(out, combined, None, None, out.attrs["adjust"])
    return out.assign_attrs(parameters=how, n_imputations=len(results))


def _pooled(stem: str, results: Sequence[xr.Dataset]) -> dict[str, FloatArray]:
    """math [118] of an estimate whose covariance is between its inner dimensions."""
    first, covariance_dims = results[0], results[0][f"{stem}_cov"].dims
    inner = [str(dim) for dim in first[stem].dims if f"{dim}_other" in covariance_dims]
    outer = [str(dim) for dim in first[stem].dims if dim not in inner]
    shape = [first.sizes[dim] for dim in outer]
    others = [f"{dim}_other" for dim in inner]

    def stacked(name: str) -> FloatArray:
        """(imputation, outer, estimate), and once more (estimate) of a covariance."""
        is_square = name.endswith("_cov")
        flat = (-1, int(np.prod([first.sizes[dim] for dim in inner]))) if is_square else (-1,)
        order = (*outer, *inner, *others * is_square)
        return np.stack(
            [result[name].transpose(*order).values.reshape(*shape, *flat) for result in results]
        )

    values, covariances = stacked(stem), stacked(f"{stem}_cov")
    if f"{stem}_df" in first:
        degrees = stacked(f"{stem}_df")
    else:  # of the rows
        of_rows = [(result["n_effective"] - 1).broadcast_like(result[stem]) for result in results]
        degrees = np.stack([array.transpose(*outer, *inner).values for array in of_rows])
        degrees = np.maximum(degrees.reshape(values.shape), 0.0)
    null = first.coords.get("null", xr.zeros_like(first[stem])).broadcast_like(first[stem])
    ratio = null.transpose(*outer, *inner).values.reshape(values.shape[1:]) == 1
    # Errors of ratios are relative on the log scale.
    scale = np.where(ratio, values, 1.0)
    logs = np.where(ratio, np.log(np.abs(scale)), values)
    pooled = rubin(logs, covariances / (scale[..., None] * scale[..., None, :]), degrees)
    scale = np.where(ratio, np.exp(np.where(ratio, pooled.value, 0.0)), 1.0)
    covariance = pooled.covariance * scale[..., None] * scale[..., None, :]
    numbers = {
        stem: np.where(ratio, scale, pooled.value),
        f"{stem}_se": np.sqrt(np.maximum(np.diagonal(covariance, axis1=-2, axis2=-1), 0.0)),
        f"{stem}_df": pooled.degrees,
        f"{stem}_cov": covariance,
    }
    out = {}
    for name, array in numbers.items():
        order = (*outer, *inner, *others * (name == f"{stem}_cov"))
        placed = xr.DataArray(array.reshape([first.sizes[dim] for dim in order]), dims=order)
        out[name] = placed.transpose(*first[name if name in first else stem].dims).values
    return out


# --- effects in bins ------------------------------------------------------------------------------


# What has a standard error by the rows; sizes of effects have none.
POOLED = ("effect", "heterogeneity", "curve", "average_effect")
# Parts of errors are within imputations: what is pooled is the whole.
PARTS = ("_se_rows", "_se_model")


@over_outputs
def _pool_effects(*results: xr.Dataset) -> xr.Dataset:
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
    names = effect.coords.keys() & {"bin_left", "bin_right", "feature_kind", "level"}
    values = [effect[name].values.tolist() for name in sorted(map(str, names))]
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
        edges = row.bin_edges
        k = np.arange(len(z) - 1) if row.is_categorical else bin_index(edges, z)
        weight = np.eye(len(covariance))[k]
        weight = np.vstack([weight, np.zeros_like(weight[:1])]) if row.is_categorical else weight
    else:
        weight = np.eye(len(z)) if row.is_categorical else interpolation(row.edges, z)
    return np.asarray(weight @ covariance @ weight.T)
