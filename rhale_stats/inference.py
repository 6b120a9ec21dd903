"""Standard errors, intervals and bands of what `rhale` estimates (math section 5).

Every one names its target, its source of variance and its method.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike
from scipy import sparse

from rhale_stats.arrays import accumulate, categories, influence, intervals, resample
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.curves import (
    Fine,
    cell_sizes,
    curve_of,
    fine_of,
    has_cells,
    line_moments_of,
    pieces_of,
)
from rhale_stats.effects import Rows, check_same_rows, columns, is_used_row
from rhale_stats.identity import check_same_output, fingerprint_of, row_labels, same_rows
from rhale_stats.schema import (
    EFFECT_VARIABLES,
    Estimates,
    categorical_features,
    check_effect,
    check_local,
    feature_names,
    feature_position,
    given_feature,
    is_categorical,
    is_grouped,
    of_part,
    one_feature,
    own_facts,
    slopes,
    stacked,
    variable,
)
from rhale_stats.validate import check_choice, row_codes

CURVE_TARGETS = {
    "mean": "curve centred at its mean over the population, math [26]",
    "start": "zero-start curve, math [25]",
    "integral": "curve centred at its mean over the axis, math [25] with fixed loadings",
}
TARGETS = {
    "effect_se": "effect in the bin, math [24]",
    "slope_se": "slope of the effect in the bin, White (1980); 0 where it is constant",
    "heterogeneity_se": "standard deviation of the local effects in the bin, math [24]",
    "curve_se": "",  # depends on the centring
    "cell_curve_se": "",
    "curve_se_start": CURVE_TARGETS["start"],
    "average_effect_se": "mean of the local effects over the rows",
}
SOURCE = "rows"
# Groups that residuals by groups are centred over.
GROUPS_OF_BLOCK = 10
BY_ERRORS = "standard errors, Student's t"
# What is stored for groups; otherwise it follows from the bins.
GROUP_COVARIANCES = (
    "cell_curve_cov",
    "effect_cov",
    "slope_cov",
    "effect_slope_cov",
    "curve_cov",
    "curve_slope_cov",
)


def std_error(
    effect: xr.Dataset, local: xr.Dataset | None = None, groups: ArrayLike | None = None
) -> xr.Dataset:
    """`std_error` of effects in bins, by rows or by groups of rows."""
    effect, local = check_effect(effect), None if local is None else check_local(local)
    if "debiased" in effect.attrs:
        raise ValueError(
            "effect must be what rhale returned; this one is from debias, which has its standard "
            "errors already."
        )
    if "fourth_moment" not in effect:
        raise ValueError(
            "effect must hold the moments that standard errors need; this one was made by "
            "rhale(..., std_error_moments=False). Make it again without that argument."
        )
    names, levels = feature_names(effect), categorical_features(effect)
    if groups is None:
        if levels and is_grouped(effect):
            raise ValueError(
                f"effect must be what ale returned where features have levels, here "
                f"{', '.join(map(repr, levels))}; this one holds covariances by groups. Make it "
                f"again."
            )
        source = SOURCE
        rows = [_of_feature(one_feature(effect, name)) for name in names]
    else:
        if local is None:
            raise ValueError(
                "local must be given with groups: std_error(effect, local, groups=...)."
            )
        clusters = Clusters.of(local, effect, groups)
        source = f"rows in {clusters.n_groups} groups"
        rows = [_of_groups(one_feature(effect, name), clusters, name) for name in names]
    facts = {"source": source, "kind": "central limit theorem"}
    of_curve = CURVE_TARGETS[str(effect.attrs["centering"])]
    targets = {**TARGETS, "curve_se": of_curve, "cell_curve_se": of_curve, "curve_cov": of_curve}
    targets["cell_curve_cov"] = of_curve
    targets["effect_cov"] = TARGETS["effect_se"]
    targets["slope_cov"] = TARGETS["slope_se"]
    targets["effect_slope_cov"] = f"{TARGETS['effect_se']}; and slope of the effect in the bin"
    targets["curve_slope_cov"] = f"{of_curve}; and slope of the effect in the bin"
    # Intervals and bands were of other standard errors.
    of_others = [name for name in effect.data_vars if str(name).endswith(("_ci", "_band"))]
    out = effect.drop_vars(of_others).assign(
        {
            name: variable(name, array, target=targets[name], **facts)
            for name, array in stacked(rows, effect.sizes["bin"], **cell_sizes(effect)).items()
        }
    )
    if groups is not None:
        return out.assign_attrs(n_groups=clusters.n_groups)
    # What earlier groups left behind.
    out.attrs.pop("n_groups", None)
    out = out.drop_vars("feature_n_groups", errors="ignore")
    return out if levels else out.drop_vars(GROUP_COVARIANCES, errors="ignore")


def has_covariance(row: xr.Dataset) -> bool:
    """Whether the covariances of one feature are stored, and do not follow from its bins."""
    return "n_groups" in row.attrs or is_categorical(row)


class Fit(NamedTuple):
    """One feature as standard errors see it: the cells that have a curve, and their noise.

    ``cells`` are all of them, ``pieces`` those on the stretch that has a curve; ``edges`` are those
    of the bins there, ``there`` their numbers.
    """

    cells: Fine
    pieces: accumulate.Pieces
    noise: accumulate.Noise
    places: influence.OwnPlaces | None
    curve: FloatArray
    edges: FloatArray
    there: slice
    n_bins: int
    centering: str
    # Of features with levels: their shares, and the covariance of the curve at them.
    level_share: FloatArray | None = None
    of_levels: FloatArray | None = None

    def loadings(self, z: FloatArray) -> influence.Loadings:
        """Those of the curve at points within the stretch."""
        if self.level_share is not None:
            return categories.loadings(self.level_share, z, self.centering)
        return influence.loadings(self.pieces, z, self.centering)

    def variance(self, z: FloatArray) -> FloatArray:
        """Variance of the curve at points within the stretch."""
        if self.of_levels is not None:
            return np.maximum(np.diagonal(self.covariance(z)), 0.0)
        return influence.variance(self.loadings(z), self.noise, self.places)

    def curve_se(self) -> FloatArray:
        """Standard error of the curve at the edges of its cells."""
        return np.sqrt(self.variance(self.pieces.edges))

    def covariance(self, z: FloatArray) -> FloatArray:
        """Covariance of the curve between points within the stretch."""
        if self.of_levels is not None:
            weight = interpolation(self.pieces.edges, z)
            return np.asarray(weight @ self.of_levels @ weight.T)
        return influence.covariance(self.loadings(z), self.noise, self.places)

    def sources(self, z: FloatArray) -> intervals.Sources:
        """What the variances of the curve at points are estimated from."""
        parts = np.zeros((len(z), len(self.cells.bin)))
        parts[:, self.cells.here] = influence.parts(self.loadings(z), self.noise)
        return self.cells.sources(parts)

    def curve_degrees(self, z: FloatArray) -> FloatArray:
        """Satterthwaite's degrees of freedom of the variance of the curve."""
        return self.sources(z).satterthwaite(self.variance(z))


def interpolation(edges: FloatArray, z: FloatArray) -> FloatArray:
    """Weights of the values at edges in the straight lines between them, (point, edge)."""
    return np.array([np.interp(z, edges, unit) for unit in np.eye(len(edges))]).T


def fit_of(row: xr.Dataset) -> Fit:
    """What the error of a curve depends on, for one feature that has bins."""
    centering, levels = str(row.attrs["centering"]), is_categorical(row)
    cells = fine_of(row)
    here, noise, n = cells.here, cells.noise, cells.n_effective
    pieces = cells.pieces.stretch(here)
    edges = row["edge_value"].values
    known = np.flatnonzero((edges >= pieces.edges[0]) & (edges <= pieces.edges[-1]))
    there = slice(int(known[0]), int(known[-1]) + 1) if len(known) else slice(0, 0)
    curve = row["curve"].values if levels else curve_of(row).values
    if not levels and not has_cells(row):
        curve = curve[here.start : here.stop + 1]
    places = None
    if centering == "mean" and not levels:
        covariance = cells.x_covariance[here]
        places = influence.own_places(curve, pieces, covariance, cells.line[here], n[here])
    return Fit(
        cells,
        pieces,
        accumulate.Noise(*(part[here] for part in noise)),
        places,
        curve,
        edges[there],
        there,
        len(edges) - 1,
        centering,
        row["level_share"].values if levels else None,
        row["curve_cov"].values if levels else None,
    )


def at_edges(values: FloatArray, fit: Fit) -> FloatArray:
    """Values at the edges that have a curve as values at all edges of the bins, NaN elsewhere."""
    out = np.full(fit.n_bins + 1, np.nan)
    out[fit.there] = values
    return out


def at_cells(values: FloatArray, fit: Fit) -> FloatArray:
    """Values at the edges of the cells that have a curve as values at all of them."""
    return accumulate.at_edges(values, fit.cells.here, len(fit.cells.bin))


def _of_feature(row: xr.Dataset) -> Estimates:
    """Standard errors of one feature, by name; all NaN where there is no bin."""
    n, share = row["n_effective"].values, row["weight_share"].values
    n_bins = len(n)
    if not n_bins:
        absent = {"slope": "slope" not in row, "cell": "cell_effect" not in row}
        names = [
            name for name in TARGETS if not any(absent[part] and part in name for part in absent)
        ]
        return dict.fromkeys(names, np.nan)
    if is_categorical(row):
        return _of_levels(row)
    pieces, fit = pieces_of(row), fit_of(row)
    variance = row["heterogeneity"].values ** 2
    noise = accumulate.line_noise(variance, pieces, line_moments_of(row), n)
    zero_start = influence.loadings(fit.pieces, fit.edges, "start")
    start = np.sqrt(influence.variance(zero_start, fit.noise, None))
    centred = start if fit.centering == "start" else np.sqrt(fit.variance(fit.edges))
    squares = accumulate.mean_square(variance, pieces, n)
    return {
        "effect_se": np.sqrt(fit.cells.effect_variance()),
        **({"slope_se": np.sqrt(noise.slope)} if "slope" in row else {}),
        "heterogeneity_se": accumulate.heterogeneity_se(variance, row["fourth_moment"].values, n),
        "curve_se": at_edges(centred, fit),
        **({"cell_curve_se": at_cells(fit.curve_se(), fit)} if has_cells(row) else {}),
        "curve_se_start": at_edges(start, fit),
        "average_effect_se": accumulate.average_effect_se(pieces.mean, squares, share, n),
    }


def _of_levels(row: xr.Dataset) -> Estimates:
    """Standard errors of steps and of the curve over levels, from what was stored with them."""
    effect_cov, curve_cov = row["effect_cov"].values, row["curve_cov"].values
    start = np.tri(len(curve_cov), len(effect_cov), -1)
    moments = row["fourth_moment"].values, row["n_effective"].values
    return {
        "effect_se": np.sqrt(np.diagonal(effect_cov)),
        **({"slope_se": np.zeros(len(effect_cov))} if "slope" in row else {}),
        "heterogeneity_se": accumulate.heterogeneity_se(row["heterogeneity"].values ** 2, *moments),
        "curve_se": np.sqrt(np.maximum(np.diagonal(curve_cov), 0.0)),
        "curve_se_start": np.sqrt(np.maximum(np.diagonal(start @ effect_cov @ start.T), 0.0)),
        "average_effect_se": float(row["average_effect_se"]),
    }


class Clusters(NamedTuple):
    """Rows that an effect was estimated on, with the group of each."""

    rows: Rows
    local: xr.Dataset
    group: IntArray
    n_groups: int

    @classmethod
    def of(cls, local: xr.Dataset, effect: xr.Dataset, groups: ArrayLike) -> Clusters:
        """Raise ``ValueError`` unless there is a group for every row, and two at least."""
        check_same_output(local, effect, ("local", "effect"))
        used = is_used_row(local, effect)
        group = row_codes(groups, row_labels(local), used, "groups")
        n_groups = int(group.max(initial=-1)) + 1
        if n_groups < 2:
            raise ValueError(f"groups must be at least two; got {n_groups}.")
        return cls(columns(local.isel(obs=used)), local, group, n_groups)

    def influences(self, row: xr.Dataset, name: str) -> tuple[influence.RowSums, int]:
        """Influences of the groups on all cells of one feature, and how many means were fitted."""
        position = feature_position(self.local, name)
        x, g = self.rows.x[position], self.rows.local_effect[position]
        if is_categorical(row):
            sums = level_sums(row, self.rows, position, self.group, self.n_groups)
            return sums, row.sizes["bin"]
        cells = fine_of(row)
        k = bin_index(cells.pieces.edges, x)
        block = self.blocks(cells, k)
        pieces = cells.pieces._replace(mean=self.centres(cells, block, k, g))
        return self._sums(pieces, row, k, x, g), len(np.unique(block[k]))

    def of_bins(self, row: xr.Dataset, name: str) -> influence.RowSums:
        """Influences of the groups on means, slopes and variances of the bins by their rows."""
        if is_categorical(row):
            return self.influences(row, name)[0]
        position = feature_position(self.local, name)
        x, g = self.rows.x[position], self.rows.local_effect[position]
        pieces = pieces_of(row)
        return self._sums(pieces, row, bin_index(pieces.edges, x), x, g)

    def _sums(
        self, pieces: accumulate.Pieces, row: xr.Dataset, k: IntArray, x: FloatArray, g: FloatArray
    ) -> influence.RowSums:
        curve = curve_of(row).at(pieces.edges)
        weight = self.rows.weight
        return influence.row_sums(pieces, curve, k, x, g, weight, self.group, self.n_groups)

    def centres(self, cells: Fine, block: IntArray, k: IntArray, g: FloatArray) -> FloatArray:
        """What residuals in every cell are taken from: the mean of its block."""
        weight = np.ones(len(g)) if self.rows.weight is None else self.rows.weight
        with np.errstate(invalid="ignore", divide="ignore"):
            total = np.bincount(block[k], weight * g, len(block)).astype(np.float64)
            means = total / np.bincount(block[k], weight, len(block))
        alone = np.bincount(block)[block] == 1
        return np.where(alone, cells.pieces.mean, means[block])

    def blocks(self, cells: Fine, k: IntArray) -> IntArray:
        """Number of the block of every cell: neighbours within a bin, with enough groups together.

        The residuals of a cell's only group add up to 0, and would say that its mean is known.
        """
        if len(cells.bin) == cells.n_bins():
            return np.arange(len(cells.bin))
        pairs = np.unique(np.stack([k, self.group]), axis=1)
        of_cell = np.split(pairs[1], np.searchsorted(pairs[0], np.arange(1, len(cells.bin))))
        block = np.zeros(len(cells.bin), dtype=np.int64)
        begin, seen = 0, set(of_cell[0].tolist())
        for cell in range(1, len(cells.bin)):
            new_bin = cells.bin[cell] != cells.bin[cell - 1]
            block[cell] = block[cell - 1] + (new_bin or len(seen) >= GROUPS_OF_BLOCK)
            if block[cell] != block[cell - 1]:
                # What a bin's last block lacks, the one before it has.
                if (
                    new_bin
                    and len(seen) < GROUPS_OF_BLOCK
                    and begin
                    and (cells.bin[begin - 1] == cells.bin[begin])
                ):
                    block[begin:cell] = block[begin - 1]
                begin, seen = cell, set()
            seen |= set(of_cell[cell].tolist())
        if len(seen) < GROUPS_OF_BLOCK and begin and cells.bin[begin - 1] == cells.bin[begin]:
            block[begin:] = block[begin - 1]
        return block


def level_sums(
    row: xr.Dataset, rows: Rows, position: int, group: IntArray, n_groups: int
) -> influence.RowSums:
    """Influences of rows, by group, on the steps between the levels of one feature."""
    assert rows.sides is not None
    code = rows.x[position].astype(np.int64)
    of = categories.steps(code, *rows.sides[position], row.sizes["edge"])
    return categories.row_sums(of, code, row["curve"].values, rows.weight, group, n_groups)


def rows_of_feature(row: xr.Dataset) -> float:
    """Rows that one feature was estimated on; one at a level may be in two steps."""
    return float(row["n_level" if is_categorical(row) else "n_obs"].sum())


def _of_groups(row: xr.Dataset, clusters: Clusters, name: str) -> Estimates:
    """Standard errors of one feature from the influences of groups of rows."""
    n_bins = row.sizes["bin"]
    if not n_bins:
        names = [*TARGETS, *GROUP_COVARIANCES]
        absent = [
            part for part in ("slope", "cell") if f"{part}{'_value' * (part == 'cell')}" not in row
        ]
        wanted = [name for name in names if not any(part in name for part in absent)]
        return dict.fromkeys(wanted, np.nan)
    if np.isnan(row["curve"].values).any():
        raise ValueError(
            f"effect must have rows in all bins of feature {name!r} for standard errors by groups. "
            f"Use fewer bins."
        )
    fit, n_groups = fit_of(row), clusters.n_groups
    check_same_rows(row, clusters.rows, feature_position(clusters.local, name))
    own = clusters.of_bins(row, name)
    # What their sums leave: the residuals of a bin's only group add up to 0.
    linear = slopes(row) != 0
    few = own.n_groups() <= 1 + linear
    if few.any():
        k = int(np.argmax(few))
        raise ValueError(
            f"groups must outnumber the means and slopes in every bin; bin {k} of feature "
            f"{name!r} has {own.n_groups()[k]} groups for {1 + linear[k]} of these. Use fewer bins."
        )
    sums, n_means = clusters.influences(row, name)
    # For the curve means of blocks of cells are fitted, for lines and spreads those of bins.
    n_rows, n_slopes = rows_of_feature(row), int(np.sum(fit.cells.pieces.slope != 0))
    sums = sums.corrected(n_groups, n_rows, n_means + n_slopes)
    of_bins = influence.group_factor(n_groups, n_rows, n_bins + int(linear.sum()))
    of_effect = on_effects(sums, fit.cells)
    effect_cov = (of_effect.T @ of_effect).toarray()
    # At all edges of cells: between two edges of bins the curve is not straight.
    everywhere = fit.pieces.edges
    of_curve = sums.of_curve(fit.loadings(everywhere), population=fit.centering == "mean")
    fine_cov = of_curve.T @ of_curve
    at = np.searchsorted(everywhere, fit.edges)
    of_curve, curve_cov = of_curve[:, at], fine_cov[np.ix_(at, at)]
    zero_start = influence.loadings(fit.pieces, fit.edges, "start")
    of_start = sums.of_curve(zero_start, population=False)
    more: dict[str, FloatArray] = {}
    if has_cells(row):
        more["cell_curve_cov"] = fine_cov
        more["cell_curve_se"] = np.sqrt(np.maximum(np.diagonal(fine_cov), 0.0))
    if "slope" in row:
        slope_cov, root = of_bins * (own.slope.T @ own.slope).toarray(), np.sqrt(of_bins)
        more |= {
            "slope_se": np.sqrt(np.diagonal(slope_cov)),
            "slope_cov": slope_cov,
            "effect_slope_cov": root * (of_effect.T @ own.slope).toarray(),
            "curve_slope_cov": root * of_curve.T @ own.slope,
        }
    variance_se = np.sqrt(of_bins * own.variance.power(2).sum(axis=0))
    spread = row["heterogeneity"].values
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            "effect_se": np.sqrt(np.diagonal(effect_cov)),
            **more,
            "heterogeneity_se": np.where(spread == 0, 0.0, variance_se / (2 * spread)),
            "curve_se": np.sqrt(np.maximum(np.diagonal(curve_cov), 0.0)),
            "curve_se_start": np.sqrt(np.sum(of_start**2, axis=0)),
            "average_effect_se": float(
                np.sqrt(n_groups / (n_groups - 1) * np.sum(sums.average**2))
            ),
            "effect_cov": effect_cov,
            "curve_cov": curve_cov,
        }


def on_effects(sums: influence.RowSums, cells: Fine) -> sparse.csr_array:
    """Influences on the effects of the bins, sparse (group, bin), from those on their cells."""
    level, tilt = cells.loading
    at = (np.arange(len(level)), cells.bin)
    of_mean, of_slope = (sparse.coo_array((part, at)).tocsr() for part in (level, tilt))
    return sparse.csr_array(sums.mean @ of_mean + sums.slope @ of_slope)


def vcov(effect: xr.Dataset, feature: str | int | None = None, of: str = "curve") -> xr.DataArray:
    """`vcov` of the effects or of the curve of one feature."""
    feature = given_feature(feature, "vcov(effect, 'dose')")
    effect = with_std_error(check_effect(effect))
    row = one_feature(effect, feature)
    dim, name = ("edge", "curve_cov") if of == "curve" else ("bin", "effect_cov")
    if has_covariance(row) and name in row:
        values = row[name].values
    elif of == "effect":
        values = np.diag(row["effect_se"].values ** 2)
    else:
        values = np.full((row.sizes["edge"],) * 2, np.nan)
        if row.sizes["bin"]:
            fit = fit_of(row)
            values[fit.there, fit.there] = fit.covariance(fit.edges)
    se = row["curve_se" if of == "curve" else "effect_se"]
    return xr.DataArray(
        values,
        {dim: row[dim].values, f"{dim}_other": row[dim].values},
        (dim, f"{dim}_other"),
        "covariance",
        {
            "long_name": f"covariance of the {of}",
            "target": se.attrs["target"],
            "source": se.attrs["source"],
            "feature": str(row["feature"].values),
        },
    )


def confint(
    effect: xr.Dataset,
    boot: xr.Dataset | None = None,
    level: float = 0.95,
    method: str | None = None,
) -> xr.Dataset:
    """`confint` of effects in bins and of their curve, pointwise."""
    effect = with_std_error(check_effect(effect))
    chosen = ("normal" if boot is None else "percentile") if method is None else method
    check_choice("method", chosen, ("normal", *intervals.METHODS))
    if chosen == "normal":
        rows = [
            _normal_intervals(one_feature(effect, name), level) for name in feature_names(effect)
        ]
        how = BY_ERRORS
    else:
        if boot is None:
            raise ValueError(f"boot must be given for method {chosen!r}: bootstrap(local, effect).")
        boot = check_boot(effect, boot, chosen)
        rows = [
            _bootstrap_intervals(
                one_feature(effect, number), own_facts(boot.isel(feature=number)), level, chosen
            )
            for number in range(effect.sizes["feature"])
        ]
        how = f"bootstrap, {chosen}"
        if chosen != "studentized":
            how += ", expanded to Student's t"
    if "missing_effect_se" in effect:
        rows = [
            {**row, "missing_effect_ci": _missing_interval(effect.isel(feature=number), level)}
            for number, row in enumerate(rows)
        ]
    arrays = stacked(rows, effect.sizes["bin"], ci_bound=2, **cell_sizes(effect))
    facts: dict[str, str | float] = {
        "method": how,
        "kind": "pointwise",
        "ci_prob": level,
        "ci_kind": "confidence",
    }
    # Of replicates there is none between the edges of bins.
    effect = effect.drop_vars("cell_curve_ci", errors="ignore")
    found = {}
    for name, array in arrays.items():
        of = name.removesuffix("_ci")
        if boot is None or chosen == "normal":
            source = _source(effect, of)
        else:
            source = str(boot.attrs["source"])
        found[name] = variable(name, array, target=_target(effect, of), source=source, **facts)
    if chosen == "normal" and "n_groups" not in effect.attrs:
        found["heterogeneity_ci"][2]["method"] = "inversion of a test, math [24]"
    if "missing_effect_ci" in found:
        own = {"method": BY_ERRORS, "source": _source(effect, "missing_effect")}
        found["missing_effect_ci"][2].update(own)
    return effect.assign(found).assign_coords(ci_bound=("ci_bound", ["lower", "upper"]))


def _source(effect: xr.Dataset, name: str) -> str:
    return str(effect[f"{name}_se"].attrs.get("source", SOURCE))


def _target(effect: xr.Dataset, name: str) -> str:
    if f"{name}_se" in effect:
        return str(effect[f"{name}_se"].attrs.get("target", name))
    return EFFECT_VARIABLES[name][1]


def _normal_intervals(row: xr.Dataset, level: float) -> Estimates:
    """Intervals of one feature by its standard errors."""
    names = [name for name in ("effect", "slope", "heterogeneity", "curve") if name in row]
    n_bins = row.sizes["bin"]
    if not n_bins:
        cells = ("cell_curve",) if "cell_curve_se" in row else ()
        return {f"{name}_ci": np.nan for name in (*names, *cells, "average_effect")}
    n, grouped = row["n_effective"].values, "n_groups" in row.attrs
    of_effect = bin_degrees(row)
    degrees = of_effect if grouped else spread_degrees(row)
    student = intervals.student(level, degrees)
    out: dict[str, FloatArray] = {}
    for name, own in (("effect", intervals.student(level, of_effect)), ("slope", student)):
        if name in row:
            out[f"{name}_ci"] = intervals.around(row[name].values, own * row[f"{name}_se"].values)
    spread, spread_se = row["heterogeneity"].values, row["heterogeneity_se"].values
    if grouped or "third_moment" not in row:
        out["heterogeneity_ci"] = intervals.log_scale(spread, student * spread_se)
    else:
        out["heterogeneity_ci"] = intervals.of_deviation(
            spread, row["third_moment"].values, row["fourth_moment"].values, n, degrees, level
        )
    fit = fit_of(row)
    on_curve = fit.curve_degrees(fit.edges)
    quantile = intervals.student(
        level, np.full(len(on_curve), row_degrees(row)) if grouped else on_curve
    )
    half = at_edges(quantile, fit) * row["curve_se"].values
    out["curve_ci"] = intervals.around(row["curve"].values, half)
    if has_cells(row) and "cell_curve_se" in row:
        degrees_there = fit.curve_degrees(fit.pieces.edges)
        if grouped:
            degrees_there = np.full(len(degrees_there), row_degrees(row))
        half = at_cells(intervals.student(level, degrees_there), fit) * row["cell_curve_se"].values
        out["cell_curve_ci"] = intervals.around(row["cell_curve"].values, half)
    of_average = float(intervals.student(level, np.array(row_degrees(row))))
    out["average_effect_ci"] = intervals.around(
        row["average_effect"].values, of_average * row["average_effect_se"].values
    )
    return out


def _missing_interval(row: xr.Dataset, level: float) -> FloatArray:
    """Interval of what it does to be missing, from the rows that are."""
    degrees = np.array(float(row["n_missing"]) - 1)
    half = intervals.student(level, degrees) * row["missing_effect_se"].values
    return intervals.around(row["missing_effect"].values, half)


def bin_degrees(row: xr.Dataset) -> FloatArray:
    """Degrees of freedom of the effects of one feature's bins, for Student's t."""
    n = row["n_effective"].values
    if "n_groups" in row.attrs:
        return np.full(len(n), float(row.attrs["n_groups"]) - 1)
    if has_cells(row):
        return fine_of(row).effect_degrees()
    return spread_degrees(row)


def spread_degrees(row: xr.Dataset) -> FloatArray:
    """Degrees of freedom of the spread in one feature's bins."""
    return np.asarray(np.maximum(row["n_effective"].values - 1 - (slopes(row) != 0), 0))


def row_degrees(row: xr.Dataset) -> float:
    """Degrees of freedom of one feature's mean over the rows."""
    if "n_groups" in row.attrs:
        return float(row.attrs["n_groups"]) - 1
    parts = ("n_effective", "weight_share")
    parts = ("n_level_effective", "level_share") if is_categorical(row) else parts
    n, share = (row[name].values for name in parts)
    occupied = share > 0
    return float(1 / np.sum(share[occupied] ** 2 / n[occupied]) - 1) if occupied.any() else np.nan


def check_boot(effect: xr.Dataset, boot: object, method: str) -> xr.Dataset:
    """The replicates; raise ``TypeError`` or ``ValueError`` unless they are of this effect."""
    if not isinstance(boot, xr.Dataset) or "draw" not in boot.dims:
        raise TypeError(
            f"boot must be what bootstrap(local, effect) returned; got {type(boot).__name__}."
        )
    if "grid" in boot.dims:
        refit = str(boot.attrs.get("source", "")).startswith("refit")
        made = "comes from bootstrap_refit" if refit else "chose them again (rebin=True)"
        raise ValueError(
            f"boot must have the bins of effect; this one {made}. For intervals take quantiles: "
            f"boot['curve'].quantile([0.025, 0.975], ('chain', 'draw')); or use bootstrap without "
            f"rebin."
        )
    if "edge_value" not in boot:
        raise ValueError(
            "boot must be of effect; these replicates are not of effects in bins. Make them with "
            "bootstrap(local, effect)."
        )
    edges = boot["edge_value"].values, effect["edge_value"].values
    if not np.array_equal(*edges, equal_nan=True):
        raise ValueError("boot must have the bins of effect; its edges differ.")
    boot = of_part(boot)
    _check_estimates(effect, boot)
    if method == "studentized" and "curve_se" not in boot:
        raise ValueError(
            "boot must hold standard errors for method 'studentized'; make it with "
            "bootstrap(..., studentize=True)."
        )
    return boot


def _check_estimates(effect: xr.Dataset, boot: xr.Dataset) -> None:
    """Raise ``ValueError`` where replicates are of other rows, another model or another curve."""
    check_same_output(boot, effect, ("boot", "effect"))
    for number, name in enumerate(feature_names(effect)):
        own, other = (fingerprint_of(own_facts(one.isel(feature=number))) for one in (effect, boot))
        if own and other and own != other:
            rows = "of another model" if same_rows(own, other) else "of other rows"
            raise ValueError(
                f"boot must come from effect; its replicates of feature {name!r} are {rows}. Make "
                f"it again: bootstrap(local, effect)."
            )
    centering = [str(one.attrs.get("centering", "")) for one in (effect, boot)]
    if all(centering) and centering[0] != centering[1]:
        raise ValueError(
            f"boot must come from effect; its curves have centering {centering[1]!r}, those of "
            f"effect {centering[0]!r}. Make it again: bootstrap(local, effect)."
        )


def _bootstrap_intervals(row: xr.Dataset, boot: xr.Dataset, level: float, method: str) -> Estimates:
    """Intervals of one feature by its replicates."""
    n_bins = row.sizes["bin"]
    names = [
        str(name) for name in boot.data_vars if name in row and f"{name}_ci" in EFFECT_VARIABLES
    ]
    if method == "studentized":
        names = [name for name in names if f"{name}_se" in boot]
    if not n_bins:
        return {f"{name}_ci": np.nan for name in names}
    out: dict[str, FloatArray] = {}
    scores = {} if method == "studentized" else _scores(row, boot, level)
    for name in names:
        estimate = np.asarray(row[name].values, dtype=np.float64)
        cut = tuple(slice(n) for n in estimate.shape)
        draws = draws_of(boot, name)[:, *cut]
        more: dict[str, FloatArray] = {}
        if method != "studentized":
            more["score"] = scores.get(name, scores["average_effect"])
        else:
            more["draws_se"] = draws_of(boot, f"{name}_se")[:, *cut]
            more["estimate_se"] = np.asarray(row[f"{name}_se"].values)
        if method == "bca" and f"{name}_acceleration" in boot:
            more["acceleration"] = boot[f"{name}_acceleration"].values[cut]
        if name != "heterogeneity" or method in ("percentile", "bca"):
            out[f"{name}_ci"] = intervals.of_replicates(draws, estimate, level, method, **more)
            continue
        # On the log scale, on which the error hardly depends on the size.
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(draws > 0, np.log(draws), np.nan)
            if method == "studentized":
                more["draws_se"] = more["draws_se"] / draws
                more["estimate_se"] = more["estimate_se"] / estimate
            ends = intervals.of_replicates(logs, np.log(estimate), level, method, **more)
        out[f"{name}_ci"] = np.where(estimate[:, None] == 0, 0.0, np.exp(ends))
    return out


def _scores(row: xr.Dataset, boot: xr.Dataset, level: float) -> dict[str, FloatArray]:
    """Normal scores at which replicates are cut, by name; totals have that of the average effect.

    Student's quantile, since the spread is estimated, over the root of the replicates' shortfall of
    variance: an expanded interval (Hesterberg 2015), which for a normal mean is the t interval.
    """
    n_units, n_strata = float(boot.attrs["n_units"]), int(boot.attrs["n_strata"])
    scheme = str(boot.attrs["scheme"])
    grouped = str(boot.attrs["source"]) != SOURCE
    # What was drawn counts, not what the standard errors took for it.
    row = row.assign_attrs(n_groups=n_units - n_strata + 1)
    if not grouped:
        del row.attrs["n_groups"]

    def short(n: FloatArray, degrees: FloatArray) -> FloatArray:
        n = np.full(np.shape(n), n_units) if grouped else n
        return resample.shortfall(scheme, n, degrees, n_units, n_strata)

    def score(degrees: FloatArray, shortfall: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(intervals.student(level, degrees) / np.sqrt(shortfall))

    of_bins = bin_degrees(row) if grouped else spread_degrees(row)
    in_bins = score(of_bins, short(row["n_effective"].values, of_bins))
    of_rows = np.array(row_degrees(row))
    fit = fit_of(row)
    edges, cells = fit.edges, fit.cells
    # Of the variance of a curve, and of an effect, what cells add falls short by theirs.
    # Replicates of a cell are of its own rows, wherever its variance is from.
    of_cells = np.maximum(cells.n_effective - 1 - (cells.pieces.slope != 0), 0.0)
    if grouped:
        of_cells = np.full(len(of_cells), float(of_rows))
    short_cells = short(cells.n_effective, of_cells)
    parts, variance = influence.parts(fit.loadings(edges), fit.noise), fit.variance(edges)
    missing = np.sum(np.where(parts == 0, 0.0, parts * (1 - short_cells[cells.here])), axis=1)
    own = cells.of_effects
    with np.errstate(invalid="ignore", divide="ignore"):
        short_curve = np.where(variance > 0, 1 - missing / variance, 1.0)
        total = np.bincount(cells.bin, own)
        kept = np.bincount(cells.bin, np.where(own == 0, 0.0, own * short_cells))
        short_effect = np.where(total > 0, kept / total, 1.0)
    on_curve = np.full(len(edges), float(of_rows)) if grouped else fit.curve_degrees(edges)
    return {
        **dict.fromkeys(("slope", "heterogeneity"), in_bins),
        "effect": score(bin_degrees(row), short_effect),
        "curve": at_edges(score(on_curve, short_curve), fit),
        "average_effect": score(of_rows, short(of_rows + 1, of_rows)),
    }


def draws_of(boot: xr.Dataset, name: str) -> FloatArray:
    """Replicates of one variable of one feature, all chains one after the other."""
    draws = np.asarray(boot.variables[name].transpose("chain", "draw", ...), dtype=np.float64)
    return draws.reshape(-1, *draws.shape[2:])


def confband(effect: xr.Dataset, level: float, n_draws: int, rng: object) -> xr.Dataset:
    """`confband` of effects in bins and of their curve."""
    effect = with_std_error(check_effect(effect))
    streams = np.random.default_rng(rng).spawn(effect.sizes["feature"])  # type: ignore[arg-type]
    rows = [_bands(effect, number, level, n_draws, stream) for number, stream in enumerate(streams)]
    facts: dict[str, str | float] = {
        "method": "largest standardised error of a normal curve",
        "kind": "simultaneous over the axis",
        "ci_prob": level,
        "ci_kind": "confidence",
    }
    found = {}
    for name, array in stacked(rows, effect.sizes["bin"], **cell_sizes(effect)).items():
        of = name.removesuffix("_band")
        found[name] = variable(
            name, array, target=_target(effect, of), source=_source(effect, of), **facts
        )
    return effect.assign(found).assign_coords(ci_bound=("ci_bound", ["lower", "upper"]))


def _bands(
    effect: xr.Dataset, number: int, level: float, n_draws: int, rng: np.random.Generator
) -> Estimates:
    """Bands of one feature."""
    row = one_feature(effect, number)
    if not row.sizes["bin"]:
        cells = {"cell_curve_band": np.nan} if "cell_curve_se" in row else {}
        return {"curve_band": np.nan, "effect_band": np.nan, **cells}
    fit = fit_of(row)
    # At all edges of cells, whatever the bins: between two of them the curve is straight.
    z, degrees, sources = fit.pieces.edges, *_errors_of(row, fit, fit.pieces.edges)
    covariance = _cell_covariance(row, fit)
    score = intervals.largest_deviation(covariance, level, degrees, n_draws, rng, sources)
    quantile = intervals.score_quantile(score, np.broadcast_to(degrees, z.shape))
    half = at_edges(quantile[np.searchsorted(z, fit.edges)], fit) * row["curve_se"].values
    out = {"curve_band": intervals.around(row["curve"].values, half)}
    if "cell_curve_se" in row:
        half = at_cells(quantile, fit) * row["cell_curve_se"].values
        out["cell_curve_band"] = intervals.around(row["cell_curve"].values, half)
    known = row["effect_se"].notnull().values
    if has_covariance(row):
        own = vcov(effect, number, of="effect").values[np.ix_(known, known)]
        of_bins = degrees if "n_groups" in row.attrs else bin_degrees(row)[known]
        score = intervals.largest_deviation(own, level, of_bins, n_draws, rng)
        quantile = intervals.score_quantile(score, bin_degrees(row))
    else:
        # Bins are independent: each to the root of the level, by its own degrees of freedom.
        quantile = intervals.student(level ** (1 / max(int(known.sum()), 1)), bin_degrees(row))
    half = quantile * row["effect_se"].values
    return {**out, "effect_band": intervals.around(row["effect"].values, half)}


def _errors_of(
    row: xr.Dataset, fit: Fit, z: FloatArray
) -> tuple[FloatArray | float, intervals.Sources | None]:
    """Degrees of freedom of the curve at points, one number for groups, and their sources."""
    if "n_groups" in row.attrs:
        return float(row.attrs["n_groups"]) - 1, None
    sources = fit.sources(z)
    return sources.satterthwaite(fit.variance(z)), sources


def _cell_covariance(row: xr.Dataset, fit: Fit) -> FloatArray:
    """Covariance of the curve at the edges of its cells, stored for groups."""
    if not has_covariance(row):
        return fit.covariance(fit.pieces.edges)
    name = "cell_curve_cov" if has_cells(row) else "curve_cov"
    at = slice(fit.cells.here.start, fit.cells.here.stop + 1)
    return np.asarray(row[name].values[at, at])


def with_std_error(effect: xr.Dataset) -> xr.Dataset:
    """The effect with standard errors of its own estimator."""
    if "debiased" in effect.attrs:
        raise ValueError(
            "effect must be what rhale or std_error returned; this one is from debias, which keeps "
            "no moments. Pass the effect that it was made from."
        )
    return effect if "curve_se" in effect else std_error(effect, None, None)
