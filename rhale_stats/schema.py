"""The labelled results: their dimensions, names, attributes, and how to reach into them.

Two kinds of Dataset travel through the package.

Local effects, dims (obs, feature): ``x``, ``local_effect``, perhaps ``weight`` (obs), and
``local_effect_error`` (feature).

Effects, dims (feature, bin) and (feature, edge): ``effect``, ``heterogeneity``, ``n_obs``,
``curve`` and the rest of `EFFECT_VARIABLES`. Features have different numbers of bins: what lies
beyond a feature's ``n_bins`` is NaN (``n_obs`` 0). The attribute ``row_fingerprint`` tells the rows
and the local effects that an effect was made from, so that others are refused; see `identity`.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats._version import __version__
from rhale_stats.kinds import kind_of

EFFECT_UNITS = "output units per feature unit"
EFFECT_SQUARE_UNITS = "(output units per feature unit)^2"
SLOPE_UNITS = "output units per feature unit^2"
OUTPUT_UNITS = "output units"
X_UNITS = "feature units"

# Name -> (dims, long_name, units) of everything that an effects Dataset may hold.
EFFECT_VARIABLES: dict[str, tuple[tuple[str, ...], str, str]] = {
    "effect": (("feature", "bin"), "average effect in the bin", EFFECT_UNITS),
    "heterogeneity": (("feature", "bin"), "standard deviation of local effects", EFFECT_UNITS),
    "slope": (("feature", "bin"), "slope of the effect in the bin", SLOPE_UNITS),
    "n_obs": (("feature", "bin"), "rows in the bin", "rows"),
    "n_effective": (("feature", "bin"), "effective number of rows in the bin", "rows"),
    "weight_share": (("feature", "bin"), "share of the total weight in the bin", "1"),
    "x_mean": (("feature", "bin"), "mean of the feature in the bin", X_UNITS),
    "edge_value": (("feature", "edge"), "position of the edge", X_UNITS),
    "level_share": (("feature", "edge"), "share of the total weight at the level", "1"),
    "n_level": (("feature", "edge"), "rows at the level", "rows"),
    "n_level_effective": (("feature", "edge"), "effective number of rows at the level", "rows"),
    "curve": (("feature", "edge"), "accumulated effect", OUTPUT_UNITS),
    "curve_std": (("feature", "edge"), "spread of the curve, independent bins", OUTPUT_UNITS),
    "curve_std_sum": (("feature", "edge"), "spread of the curve, comonotone bins", OUTPUT_UNITS),
    "curve_offset": (("feature",), "constant subtracted from the zero-start curve", OUTPUT_UNITS),
    "heterogeneity_output": (
        ("feature",),
        "heterogeneity times the standard deviation of the feature",
        OUTPUT_UNITS,
    ),
    "heterogeneity_index": (
        ("feature",),
        "heterogeneity index",
        "(output units)^2 per feature unit",
    ),
    "average_effect": (("feature",), "average effect over the rows", EFFECT_UNITS),
    "n_missing": (("feature",), "rows without a value of the feature", "rows"),
    "missing_effect": (
        ("feature",),
        "change of the output as the value goes missing, in rows where it is",
        OUTPUT_UNITS,
    ),
    "missing_effect_se": (("feature",), "standard error of the missing effect", OUTPUT_UNITS),
    "missing_spread": (("feature",), "standard deviation of the missing effect", OUTPUT_UNITS),
    "missing_reference": (("feature",), "value that missing is compared with", X_UNITS),
    "missing_curve": (("feature",), "where rows without a value stand", OUTPUT_UNITS),
    "local_effect_error": (("feature",), "numerical error of a local effect", EFFECT_UNITS),
    "fourth_moment": (
        ("feature", "bin"),
        "fourth central moment of local effects",
        "(output units per feature unit)^4",
    ),
    "x_variance": (("feature", "bin"), "variance of the feature in the bin", "(feature units)^2"),
    "x_covariance": (
        ("feature", "bin"),
        "covariance of the feature with its local effects in the bin",
        OUTPUT_UNITS,
    ),
    "line_moments": (
        ("feature", "bin", "line_moment"),
        "mean products of the feature and the residuals in a linear bin",
        "powers of the units of the two",
    ),
    "bin_error": (
        ("feature", "bin"),
        "mean squared distance of the effect from its average over the bin",
        EFFECT_SQUARE_UNITS,
    ),
    "effect_rows": (("feature", "bin"), "mean of the local effects of the rows", EFFECT_UNITS),
    "cell_effect": (("feature", "cell"), "average effect in the cell", EFFECT_UNITS),
    "cell_curve": (("feature", "cell_edge"), "accumulated effect at the cell's edge", OUTPUT_UNITS),
    "cell_curve_se": (
        ("feature", "cell_edge"),
        "standard error of the curve at the cell's edge",
        OUTPUT_UNITS,
    ),
    "cell_share": (("feature", "cell"), "share of the total weight in the cell", "1"),
    "cell_n_effective": (("feature", "cell"), "effective number of rows in the cell", "rows"),
    "cell_degrees": (
        ("feature", "cell"),
        "degrees of freedom of the variance in the cell",
        "1",
    ),
    "cell_x_mean": (("feature", "cell"), "mean of the feature in the cell", X_UNITS),
    "cell_x_variance": (
        ("feature", "cell"),
        "variance of the feature in the cell",
        "(feature units)^2",
    ),
    "cell_x_covariance": (
        ("feature", "cell"),
        "covariance of the feature with its local effects in the cell",
        OUTPUT_UNITS,
    ),
    "cell_value": (("feature", "cell_edge"), "position of the edge of a cell", X_UNITS),
    "cell_heterogeneity": (
        ("feature", "cell"),
        "standard deviation of local effects in the cell",
        EFFECT_UNITS,
    ),
    "bin_loss": (
        ("feature", "n_bins_tried"),
        "accumulated spread of bins of one width",
        OUTPUT_UNITS,
    ),
    "effect_se": (("feature", "bin"), "standard error of the average effect", EFFECT_UNITS),
    "slope_se": (("feature", "bin"), "standard error of the slope in the bin", SLOPE_UNITS),
    "heterogeneity_se": (
        ("feature", "bin"),
        "standard error of the standard deviation of local effects",
        EFFECT_UNITS,
    ),
    "curve_se": (("feature", "edge"), "standard error of the curve", OUTPUT_UNITS),
    "curve_se_start": (
        ("feature", "edge"),
        "standard error of the zero-start curve",
        OUTPUT_UNITS,
    ),
    "average_effect_se": (
        ("feature",),
        "standard error of the average effect over the rows",
        EFFECT_UNITS,
    ),
    "sigma2_star": (
        ("feature", "bin"),
        "variance of local effects, heterogeneity and bin error together",
        EFFECT_SQUARE_UNITS,
    ),
    "heterogeneity_within": (
        ("feature", "bin"),
        "standard deviation of local effects at a value of the feature",
        EFFECT_UNITS,
    ),
    "heterogeneity_within_se": (
        ("feature", "bin"),
        "standard error of the standard deviation at a value of the feature",
        EFFECT_UNITS,
    ),
    "bin_error_se": (("feature", "bin"), "standard error of the bin error", EFFECT_SQUARE_UNITS),
    "bin_error_share": (("feature", "bin"), "share of the variance that is bin error", "1"),
    "bin_error_share_axis": (
        ("feature",),
        "share of the variance along the axis that is bin error",
        "1",
    ),
    "von_neumann_ratio": (
        ("feature", "bin"),
        "squared differences of neighbours over squared deviations",
        "1",
    ),
    "bin_error_pvalue": (("feature", "bin"), "p-value of no bin error", "1"),
    "bin_error_pvalue_adjusted": (("feature", "bin"), "adjusted p-value of no bin error", "1"),
    "rank_ratio": (("feature", "bin"), "von Neumann ratio of the ranks", "1"),
    "rank_pvalue": (("feature", "bin"), "p-value of no bin error, by ranks", "1"),
    "rank_pvalue_adjusted": (
        ("feature", "bin"),
        "adjusted p-value of no bin error, by ranks",
        "1",
    ),
    "density_bias": (
        ("feature", "bin"),
        "bias of the average effect where rows are denser on one side of the bin",
        EFFECT_UNITS,
    ),
    "density_bias_se": (
        ("feature", "bin"),
        "standard error of the density bias",
        EFFECT_UNITS,
    ),
    "verdict": (("feature", "bin"), "what the check says of the bin", "1"),
    "jump": (
        ("feature", "bin"),
        "change of the output across the bin that derivatives miss",
        OUTPUT_UNITS,
    ),
    "jump_se": (("feature", "bin"), "standard error of the change missed", OUTPUT_UNITS),
    "jump_spread": (
        ("feature", "bin"),
        "spread of the change across the bin that derivatives miss",
        OUTPUT_UNITS,
    ),
    "jump_pvalue": (("feature", "bin"), "p-value of nothing missed", "1"),
    "jump_pvalue_adjusted": (("feature", "bin"), "adjusted p-value of nothing missed", "1"),
    "third_moment": (
        ("feature", "bin"),
        "third central moment of local effects",
        "(output units per feature unit)^3",
    ),
    "effect_cov": (
        ("feature", "bin", "bin_other"),
        "covariance of the average effects",
        EFFECT_SQUARE_UNITS,
    ),
    "curve_cov": (
        ("feature", "edge", "edge_other"),
        "covariance of the curve",
        "(output units)^2",
    ),
    "effect_slope_covariance": (
        ("feature", "bin"),
        "covariance of the average effect in the bin with its slope",
        "(output units)^2 per feature unit^3",
    ),
    "cell_curve_cov": (
        ("feature", "cell_edge", "cell_edge_other"),
        "covariance of the curve at the edges of the cells",
        "(output units)^2",
    ),
    "slope_cov": (
        ("feature", "bin", "bin_other"),
        "covariance of the slopes in the bins",
        "(output units per feature unit^2)^2",
    ),
    "effect_slope_cov": (
        ("feature", "bin", "bin_other"),
        "covariance of the average effects with the slopes in the bins",
        "(output units)^2 per feature unit^3",
    ),
    "curve_slope_cov": (
        ("feature", "edge", "bin_other"),
        "covariance of the curve with the slopes in the bins",
        "(output units per feature unit)^2",
    ),
    "importance": (("feature",), "standard deviation of the curve over the rows", OUTPUT_UNITS),
    "aled": (("feature",), "mean absolute value of the curve over the rows", OUTPUT_UNITS),
    "aler_min": (("feature",), "smallest value of the curve", OUTPUT_UNITS),
    "aler_max": (("feature",), "largest value of the curve", OUTPUT_UNITS),
    "naled": (("feature",), "mean absolute value of the curve, per cent of outcomes", "%"),
    "naler_min": (("feature",), "smallest value of the curve, per cent of outcomes", "%"),
    "naler_max": (("feature",), "largest value of the curve, per cent of outcomes", "%"),
    "curve_mean": (("feature",), "mean of the curve over the rows", OUTPUT_UNITS),
    "n_empty": (("feature",), "bins without an estimate", "bins"),
    "n_bins": (("feature",), "number of bins", "bins"),
}
# Intervals, bands, and sizes without their bias, of what they are made of.
for _name in (
    "effect", "slope", "heterogeneity", "curve", "cell_curve", "average_effect",
    "heterogeneity_index",
    "heterogeneity_output", "importance", "aled", "aler_min", "aler_max", "naled", "naler_min",
    "naler_max", "missing_effect",
):  # fmt: skip
    _dims, _long_name, _units = EFFECT_VARIABLES[_name]
    EFFECT_VARIABLES |= {
        f"{_name}_ci": ((*_dims, "ci_bound"), f"confidence interval of {_long_name}", _units),
        f"{_name}_band": ((*_dims, "ci_bound"), f"simultaneous band of {_long_name}", _units),
        f"{_name}_corrected": (_dims, f"{_long_name}, without its bias", _units),
        f"{_name}_acceleration": (_dims, f"acceleration of {_long_name}", "1"),
    }


# Effects by region: the dimension, the region of every row, and what a region says of itself.
REGION, ROWS = "region", "region_of_row"
REGION_LABELS = ("region_rule", "region_node")
# Several outputs of a model, classes for instance.
OUTPUT = "output"
# Dimensions of results that stand side by side, each a whole by itself.
PARTS = (OUTPUT, REGION)
ALL_PARTS = {OUTPUT: "plot_outputs(effect, feature)", REGION: "plot_regions(tree, effect)"}
# What takes replicates, without the bins of an effect and with them.
REPLICATES_FOR = (
    "They have no bins in common. For intervals take quantiles, as in "
    "boot['curve'].quantile([0.025, 0.975], ('chain', 'draw')), or draw plot_forest(boot).",
    "Pass the effect that they were made from, and the replicates beside it: "
    "confint(effect, boot) or effect_sizes(effect, boot).",
)
# Attributes that differ between features of different rows.
OWN_FACTS = ("n_groups", "n_units", "n_strata")
# Products that ``line_moments`` holds: of d, the distance from ``x_mean``, and of the residual r.
LINE_MOMENTS = ("d^3", "d^4", "d^2 r", "d^3 r", "d r^2", "d^2 r^2")
# Sizes of bins: nothing is there, not something unknown, where a feature has no bin.
COUNTS = (
    *("n_obs", "n_effective", "weight_share"),
    *("n_level", "n_level_effective", "level_share"),
)
# A kind of feature whose levels have no order of their own.
NOMINAL = "nominal"
# Kinds of features that have levels in place of an axis; ``edge`` is then a level, ``bin`` the step
# from one to the next.
CATEGORICAL = (NOMINAL, "ordinal", "boolean")
# What every function of effects counts on, and every function of local effects.
EFFECT_PARTS = (
    *("n_obs", "n_effective", "weight_share", "x_mean", "curve_std", "curve_std_sum"),
    *("average_effect", "heterogeneity_index", "local_effect_error"),
)
EFFECT_COORDINATES = (
    *("feature", "feature_kind", "feature_units", "n_bins"),
    *("bin_left", "bin_right", "edge_value"),
)
EFFECT_ATTRIBUTES = (
    *("method", "bin_rule", "bin_parameters", "weight_kind", "output_name", "output_units"),
    "n_rows",
)
LOCAL_COORDINATES = ("feature", "feature_kind", "feature_units")
# The level of rows without a value, where they are to have one.
MISSING_LEVEL = "missing"

# Order of the dimensions in every result; of local effects rows come first.
DIMENSIONS = (
    *("pair", "replicate", "chain", "repeat", "draw", "fold", "region", "effect_method", "output"),
    *("feature", "bin_a", "edge_a", "cell", "cell_edge", "bin", "edge", "node", "n_bins_tried"),
    *("conditioning", "feature_other", "pruning", "bin_b", "edge_b", "bin_other", "line_moment"),
    *(
        "edge_other",
        "cell_edge_other",
        "grid",
        "obs",
        "grid_other",
        "ci_bound",
        "side_a",
        "obs_background",
        "side_b",
    ),
)

# What a Dataset shows first when it is printed: the answer, its errors, then intervals.
LEADING = (
    *("surface", "surface_se", "second_effect", "effect", "effect_se", "heterogeneity"),
    *("curve", "curve_se", "average_effect", "average_effect_se", "importance"),
    *("heterogeneity_output", "heterogeneity_se", "slope", "slope_se", "effect_ci", "curve_ci"),
    *("average_effect_ci", "heterogeneity_ci", "effect_band", "curve_band"),
)

Values: TypeAlias = NDArray[np.float64] | NDArray[np.int64] | NDArray[np.str_]
Estimates: TypeAlias = Mapping[str, NDArray[np.float64] | float]


def variable(
    name: str, values: Values, **facts: str | int | float
) -> tuple[tuple[str, ...], Values, dict[str, str | int | float]]:
    """A variable of an effects Dataset with its dims, names, units and the estimator's facts."""
    dims, long_name, units = EFFECT_VARIABLES[name]
    return dims, values, {"long_name": long_name, "units": units, **facts}


def software() -> str:
    """Name and version of the package, as stored in every result."""
    return f"rhale_stats {__version__}"


def feature_position(dataset: xr.Dataset, feature: str | int) -> int:
    """Position of ``feature``, given by name or number.

    Raises
    ------
    KeyError
        Unknown feature; the message lists those there are.
    """
    return position_of(feature, feature_names(dataset))


def given_feature(feature: str | int | None, call: str) -> str | int:
    """The feature that was asked for; ``TypeError`` where none was, but of surfaces alone."""
    if feature is None:
        raise TypeError(
            f"feature must be the name or number of one feature, as in {call}; got None, which is "
            f"for surfaces of ale2."
        )
    return feature


def position_of(feature: str | int, names: list[str]) -> int:
    """Position among ``names`` of a feature given by name or number; ``KeyError`` if unknown."""
    if isinstance(feature, int | np.integer) and not isinstance(feature, bool):
        if -len(names) <= feature < len(names):
            return int(feature) % len(names)
    elif feature in names:
        return names.index(feature)
    raise KeyError(
        f"feature must be one of {', '.join(repr(name) for name in names)}, "
        f"or a number from 0 to {len(names) - 1}; got {feature!r}."
    )


def feature_names(dataset: xr.Dataset) -> list[str]:
    """Names along the ``feature`` dimension."""
    if "feature" not in dataset.coords or not dataset["feature"].dims:
        raise ValueError(
            f"The Dataset must have the dimension feature with its names; it has the dimensions "
            f"{', '.join(map(str, dataset.dims)) or 'none'}. Select features with a list: "
            f".sel(feature=['x0'])."
        )
    return [str(name) for name in dataset["feature"].values]


def methods_of(dataset: xr.Dataset) -> list[str]:
    """How the local effects of each feature were taken.

    Files of earlier versions say it once, for all features.
    """
    if "local_effect_method" in dataset.coords:
        return [str(one) for one in np.atleast_1d(dataset["local_effect_method"].values)]
    method = str(dataset.attrs.get("local_effect_method", "unknown"))
    return [method] * dataset["feature"].size


def method_text(dataset: xr.Dataset) -> str:
    """The one method of all features, or how many features have which."""
    methods = methods_of(dataset)
    counts = {method: methods.count(method) for method in dict.fromkeys(methods)}
    if len(counts) == 1:
        return methods[0]
    return "by feature: " + ", ".join(f"{n} {method}" for method, n in counts.items())


def check_local(local: object, parameter: str = "local") -> xr.Dataset:
    """The argument itself; raise ``TypeError`` or ``ValueError`` unless it holds local effects."""
    maker = "local_effects(model, X)"
    found = _check_kind(local, parameter, ("x", "local_effect"), maker)
    _check_parts(found, parameter, maker, ("local_effect_error",), LOCAL_COORDINATES, ())
    _check_dims(found["x"], parameter, ("obs", "feature"))
    _check_dims(found["local_effect"], parameter, ("obs", "feature"))
    if "weight" in found and "weight_kind" not in found.attrs:
        _lacks(parameter, maker, "attribute weight_kind, which says what its weights are")
    return in_order(found)


def check_effect(
    effect: object, parameter: str = "effect", maker: str = "rhale(local)"
) -> xr.Dataset:
    """The argument itself; raise ``TypeError`` or ``ValueError`` unless it holds effects."""
    found = _check_kind(effect, parameter, ("effect", "heterogeneity", "curve"), maker)
    if "draw" in found.dims:
        fixed = found.attrs.get("bins") == "fixed"
        refit = str(found.attrs.get("source", "")).startswith("refit")
        raise ValueError(
            f"{parameter} must be the Dataset that {maker} returns; this one holds the replicates "
            f"of {'bootstrap_refit' if refit else 'bootstrap'}. {REPLICATES_FOR[fixed]}"
        )
    if "fold" in found.dims:
        raise ValueError(
            f"{parameter} must be the Dataset that {maker} returns; this one holds the estimates "
            f"of folds. Their means and standard errors are in it: curve_mean, curve_se, ..."
        )
    found = check_curves(effect, parameter, maker)
    _check_parts(found, parameter, maker, EFFECT_PARTS, (), EFFECT_ATTRIBUTES)
    return found


def check_curves(effect: object, parameter: str, maker: str) -> xr.Dataset:
    """As `check_effect`, of effects that are no estimates from rows: a truth."""
    found = _check_kind(effect, parameter, ("effect", "heterogeneity", "curve"), maker)
    _check_parts(found, parameter, maker, (), EFFECT_COORDINATES, ("centering",))
    for name, dims in (("effect", ("feature", "bin")), ("curve", ("feature", "edge"))):
        _check_dims(found[name], parameter, dims)
    if "cell_effect" in found and "cell_value" not in found:
        _lacks(parameter, maker, "variable cell_value, the edges of the cells of its curve")
    if not found.sizes["feature"]:
        raise ValueError(f"{parameter} must have at least one feature; got none.")
    found = in_order(found)
    _check_bins(found, parameter)
    return found


def _check_parts(
    dataset: xr.Dataset,
    parameter: str,
    maker: str,
    variables: Sequence[str],
    coordinates: Sequence[str],
    attributes: Sequence[str],
) -> None:
    """Raise ``ValueError`` naming what was taken from a result."""
    for kind, names, there in (
        ("variable", variables, dataset.variables),
        ("coordinate", coordinates, dataset.coords),
        ("attribute", attributes, dataset.attrs),
    ):
        absent = [name for name in names if name not in there]
        if absent:
            _lacks(parameter, maker, f"{kind} {', '.join(absent)}")


def _lacks(parameter: str, maker: str, what: str) -> NoReturn:
    raise ValueError(
        f"{parameter} must be the Dataset that {maker} returns, as a whole; this one has no "
        f"{what}. Pass that Dataset; in arithmetic xarray drops attributes and variables."
    )


def _check_dims(array: xr.DataArray, parameter: str, dims: tuple[str, ...]) -> None:
    absent = [dim for dim in dims if dim not in array.dims]
    if absent:
        raise ValueError(
            f"{parameter} must have the dimensions {' and '.join(dims)}; {array.name!r} has "
            f"{', '.join(map(str, array.dims)) or 'none'}. Select features with a list, "
            f".sel(feature=['x0']), and keep the names of dimensions."
        )


def _check_bins(effect: xr.Dataset, parameter: str) -> None:
    """Raise ``ValueError`` unless edges rise and bins lie between them, feature by feature."""
    if effect["edge_value"].dims != ("feature", "edge") or effect["n_bins"].dims != ("feature",):
        return  # of several samples, which come here one by one
    edges, left, right = (effect[name].values for name in ("edge_value", "bin_left", "bin_right"))
    n_bins, most = effect["n_bins"].values, left.shape[1]
    there = np.arange(most) < n_bins[:, None]
    enough = edges.shape[1] == most + 1 and (n_bins <= most).all()
    with np.errstate(invalid="ignore"):
        whole = enough and (
            (edges[:, :-1] < edges[:, 1:]) & (left == edges[:, :-1]) & (right == edges[:, 1:])
        )
    if not enough or not whole[there].all():
        names = feature_names(effect)
        bad = names if not enough else [names[k] for k in np.flatnonzero((there & ~whole).any(1))]
        raise ValueError(
            f"{parameter} must have all of its bins, in order, between edges that rise; those of "
            f"feature {bad[0]!r} are not. Bins must not be selected or sorted: make others with "
            f"rhale(local, bins=...)."
        )


def _check_kind(dataset: object, name: str, needed: tuple[str, ...], maker: str) -> xr.Dataset:
    if not isinstance(dataset, xr.Dataset):
        raise TypeError(
            f"{name} must be the Dataset that {maker} returns; got {type(dataset).__name__}."
        )
    missing = [variable for variable in needed if variable not in dataset]
    if missing:
        kind = kind_of(dataset)
        if kind is not None:
            raise ValueError(
                f"{name} must be the Dataset that {maker} returns; got {kind.name}, which "
                f"{kind.maker} returned. It is for {', '.join(kind.verbs)}."
            )
        raise ValueError(
            f"{name} must be the Dataset that {maker} returns; this one has no "
            f"{', '.join(missing)} (it has {', '.join(str(v) for v in dataset.data_vars)})."
        )
    check_one_part(dataset, name)
    return of_part(dataset)


def check_one_part(dataset: xr.Dataset, name: str) -> None:
    """Raise ``ValueError`` unless this is of one output and one region."""
    for dim in PARTS:
        if dim in dataset.dims:
            raise ValueError(
                f"{name} must be of one {dim} here; this one is of {dataset.sizes[dim]}. Select "
                f"one: {name}.isel({dim}=0); or see all of them: {ALL_PARTS[dim]}."
            )


def of_part(dataset: xr.Dataset) -> xr.Dataset:
    """One region or output that was selected, with the attributes that it has of its own."""
    own = {
        str(key).removeprefix(f"{dim}_"): coordinate.item()
        for dim in PARTS
        if dim in dataset.coords and dim not in dataset.dims
        for key, coordinate in dataset.coords.items()
        # A fact of every feature stays a coordinate.
        if str(key).startswith(f"{dim}_") and key not in REGION_LABELS and not coordinate.ndim
    }
    return dataset.assign_attrs(own) if own else dataset


def with_outputs(dataset: xr.Dataset, labels: Sequence[Any], names: Sequence[str]) -> xr.Dataset:
    """A result of all outputs, labelled; of a single one, without the dimension."""
    if len(labels) > 1:
        texts = not all(isinstance(label, int) for label in labels)
        return dataset.assign_coords(
            {
                OUTPUT: (OUTPUT, np.array([str(one) if texts else one for one in labels])),
                f"{OUTPUT}_output_name": (OUTPUT, np.array(names)),
            }
        )
    out = dataset.isel({OUTPUT: 0}, drop=True)
    out.attrs["output_label"] = str(labels[0]) if names and names[0] else ""
    if names and names[0] and out.attrs["output_name"] == "output":
        out.attrs["output_name"] = names[0]
    return out


def in_order(dataset: xr.Dataset) -> xr.Dataset:
    """The same with dimensions in their order, after `transpose` for instance."""
    local = any(name in dataset for name in ("local_effect", "difference_up"))
    order = ("obs", *DIMENSIONS) if local else DIMENSIONS
    known = [dim for dim in dict.fromkeys(order) if dim in dataset.dims]
    rank = {dim: number for number, dim in enumerate(known)}
    for one in dataset.variables.values():
        ranks = [rank[dim] for dim in one.dims if dim in rank]
        if ranks != sorted(ranks):
            return dataset.transpose(*known, ...)
    return dataset


def answer_first(dataset: xr.Dataset) -> xr.Dataset:
    """The same with the variables of `LEADING` first, as printing a Dataset shows few of many."""
    names: list[Hashable] = list(dataset.data_vars)
    order: list[Hashable] = [name for name in LEADING if name in dataset.data_vars]
    order += [name for name in names if name not in LEADING]
    if order == names:
        return dataset
    return dataset.drop_vars(names).assign({name: dataset.variables[name] for name in order})


def units_of(dataset: xr.Dataset, feature: str | int) -> str:
    """Unit of one feature, or the empty string."""
    if "feature_units" not in dataset.coords:
        return ""
    return str(dataset["feature_units"].values[feature_position(dataset, feature)])


def with_units(text: str, units: str) -> str:
    """Text as in a label or title, with its units behind it where they are known."""
    return f"{text} [{units}]" if units else text


def one_feature(dataset: xr.Dataset, feature: str | int) -> xr.Dataset:
    """One feature of an effects Dataset, without the padding of its bins and edges."""
    position = feature_position(dataset, feature)
    counts = dataset["n_bins"]
    counts = counts.isel(feature=position) if "feature" in counts.dims else counts
    if counts.ndim:
        over = ", ".join(map(str, counts.dims))
        raise ValueError(
            f"The effect must be one at a time here; its bins are over {over} as well. Select one, "
            f"as in .isel({counts.dims[0]}=0)."
        )
    n_bins = int(counts)
    bins, edges = slice(0, n_bins), slice(0, n_bins + 1 if n_bins else 0)
    cut = {"bin": bins, "bin_other": bins, "edge": edges, "edge_other": edges}
    if "cell_edge" in dataset.dims:
        n_cells = int(dataset["cell_value"].isel(feature=position).notnull().sum())
        cells, cell_edges = slice(0, max(n_cells - 1, 0)), slice(0, n_cells)
        cut |= {"cell": cells, "cell_edge": cell_edges, "cell_edge_other": cell_edges}
    # At once: every selection goes through all variables.
    return own_facts(
        dataset.isel(
            {"feature": position, **{dim: part for dim, part in cut.items() if dim in dataset.dims}}
        )
    )


def own_facts(row: xr.Dataset) -> xr.Dataset:
    """One feature, with the attributes that it has of its own where features have their own rows.

    `stack` has made coordinates of them.
    """
    own = {key: row[f"feature_{key}"].item() for key in OWN_FACTS if f"feature_{key}" in row.coords}
    return row.assign_attrs(own) if own else row


def is_grouped(effect: xr.Dataset) -> bool:
    """Whether standard errors are of groups of rows."""
    return "n_groups" in effect.attrs or "feature_n_groups" in effect.coords


def is_categorical(row: xr.Dataset) -> bool:
    """Whether one feature, of effects or local effects, has levels in place of an axis."""
    return "feature_kind" in row.coords and str(row["feature_kind"].values) in CATEGORICAL


def categorical_features(dataset: xr.Dataset) -> list[str]:
    """Features that have levels in place of an axis."""
    if "feature_kind" not in dataset.coords:
        return []
    names, kinds = np.atleast_1d(dataset["feature"]), np.atleast_1d(dataset["feature_kind"])
    return [str(name) for name, kind in zip(names, kinds, strict=True) if str(kind) in CATEGORICAL]


def refuse_categorical(dataset: xr.Dataset, what: str) -> None:
    """Raise ``ValueError`` where an estimate along an axis is asked of features with levels."""
    found = categorical_features(dataset)
    if found:
        raise ValueError(
            f"{what} needs features with an axis; got {', '.join(map(repr, found))} with levels. "
            f"Leave them out: .sel(feature=[...]) of the others. Effects of levels are made by "
            f"ale or ale_from_local."
        )


def level_names(row: xr.Dataset) -> list[str]:
    """Levels of one feature, in their order."""
    return [str(name) for name in row["level"].values[: int(row["n_levels"])]]


def level_text(value: object) -> str:
    """A level as text: whole numbers without a point."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def slopes(row: xr.Dataset) -> NDArray[np.float64]:
    """Slope of the effect in every bin of one feature; 0 where it is constant in the bin."""
    if "slope" not in row:
        return np.zeros(row.sizes["bin"])
    return np.asarray(row["slope"].values, dtype=np.float64)


def bin_means(row: xr.Dataset) -> NDArray[np.float64]:
    """Mean of the local effects of the rows in every bin of one feature: a line's at ``x_mean``."""
    if "effect_rows" in row and not is_categorical(row):
        return np.asarray(row["effect_rows"].values)
    middle = (row["bin_left"].values + row["bin_right"].values) / 2
    away = np.where(slopes(row) == 0, 0.0, row["x_mean"].values - middle)
    return np.asarray(row["effect"].values + slopes(row) * away)


def effect_at(row: xr.Dataset, x: NDArray[np.float64], k: NDArray[Any]) -> NDArray[np.float64]:
    """Effect of one feature at values that lie in its bins ``k``."""
    middle = (row["bin_left"].values + row["bin_right"].values) / 2
    return np.asarray(row["effect"].values[k] + slopes(row)[k] * (x - middle[k]))


def stacked(rows: Sequence[Estimates], n_bins: int, **more: int) -> dict[str, Values]:
    """Estimates of several features as arrays over ``feature`` and what else their name says.

    A row has a feature's estimates by name, at the length that its bins have; a constant feature
    has NaN in their place, and so has one that lacks a name, as levels have no cells. What a row
    does not reach is NaN, and 0 where rows are counted. Sizes
    of other dimensions than ``bin`` and ``edge`` are in ``more``.
    """
    sizes = {"bin": n_bins, "edge": n_bins + 1, "line_moment": len(LINE_MOMENTS)}
    sizes |= {"bin_other": n_bins, "edge_other": n_bins + 1, "ci_bound": 2, **more}
    out: dict[str, Values] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        shape = [sizes[dim] for dim in EFFECT_VARIABLES[name][0][1:]]
        array = np.full((len(rows), *shape), np.nan)
        for position, row in enumerate(rows):
            values = np.asarray(row.get(name, np.nan))
            part: tuple[int | slice, ...] = (position, *(slice(n) for n in values.shape))
            array[part] = values
        if name in COUNTS:
            out[name] = np.nan_to_num(array).astype(
                np.int64 if name in ("n_obs", "n_level") else np.float64
            )
        else:
            out[name] = array
    return out


def stack(
    datasets: Sequence[xr.Dataset], dim: str, *, integer: int = 0, own: Collection[Hashable] = ()
) -> xr.Dataset:
    """Results of the same kind along a new first dimension, padded to the longest of them.

    What one of them does not reach is NaN, the empty text, ``integer``, and 0 where rows are
    counted. Coordinates of features and attributes that are the same everywhere stay as they are,
    unless named in ``own``; other attributes become coordinates.
    """
    first = datasets[0]
    longest = {
        one: datasets[int(np.argmax([each.sizes[one] for each in datasets]))] for one in first.dims
    }

    def padded(name: Hashable) -> xr.Variable:
        each = [dataset.variables[name] for dataset in datasets]
        dtype = np.result_type(*(one.dtype for one in each))
        missing = {"f": np.nan, "U": "", "i": integer}.get(dtype.kind, 0)
        shape = [longest[one].sizes[one] for one in each[0].dims]
        values = np.full((len(each), *shape), 0 if name in COUNTS else missing, dtype=dtype)
        for number, one in enumerate(each):
            at: tuple[int | slice, ...] = (number, *(slice(n) for n in one.shape))
            values[at] = one.values
        return xr.Variable((dim, *each[0].dims), values, joined_attrs([one.attrs for one in each]))

    coords = {}
    for name, coordinate in first.coords.items():
        always = str(name).startswith(dim) or name == "n_bins" or name in own
        always |= set(coordinate.dims) > {"feature"}
        if name in first.dims:
            coords[name] = longest[name].variables[name]
        elif not always and all(
            np.array_equal(each[name].values, coordinate.values) for each in datasets
        ):
            coords[name] = coordinate.variable
        else:
            coords[name] = padded(name)
    attrs, different = {}, {}
    for key, value in first.attrs.items():
        values = [dataset.attrs.get(key, "") for dataset in datasets]
        if all(np.array_equal(other, value) for other in values):
            attrs[key] = value
        else:
            different[f"{dim}_{key}"] = (dim, np.array(values), {"long_name": str(key)})
    out = xr.Dataset({name: padded(name) for name in first.data_vars}, coords, attrs)
    return out.assign_coords(different)


def kept_interval(of: xr.Dataset, name: str, level: float) -> NDArray[np.float64] | None:
    """Ends (..., 2) of the interval that `confint` gave an estimate, where it is of this level."""
    ends = of.get(f"{name}_ci")
    if ends is None or ends.attrs.get("ci_prob") != level:
        return None
    return np.asarray(ends.transpose(..., "ci_bound").values)


def joined_attrs(each: Sequence[Mapping[Any, Any]]) -> dict[Any, Any]:
    """Attributes of the first; texts that others have otherwise are all of them said."""
    first = dict(each[0])
    for key, value in first.items():
        if isinstance(value, str):
            first[key] = "; ".join(dict.fromkeys(str(one.get(key, value)) for one in each))
    return first


def unit_mapping(attrs: Mapping[Hashable, object]) -> dict[str, str]:
    """Units per column from ``X.attrs["units"]``, where a DataFrame carries them."""
    units = attrs.get("units", {})
    if not isinstance(units, Mapping):
        raise TypeError(
            f"X.attrs['units'] must map column names to units; got {type(units).__name__}."
        )
    return {str(name): str(unit) for name, unit in units.items()}
