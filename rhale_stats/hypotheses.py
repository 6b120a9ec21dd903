"""Tests of effects: of none, of a constant one, of equal ones, of small ones (math [31])."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr
from scipy import stats

from rhale_stats.arrays import accumulate, influence, intervals
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.by_region import each_region
from rhale_stats.effects import (
    check_same_rows,
    columns,
    is_estimation_row,
    resolution,
)
from rhale_stats.inference import (
    ADJUSTMENTS,
    Fit,
    adjusted,
    fit_of,
    line_moments_of,
    pieces_of,
    with_std_error,
)
from rhale_stats.schema import (
    OUTPUT_UNITS,
    check_effect,
    check_local,
    feature_names,
    feature_position,
    one_feature,
    slopes,
    software,
)
from rhale_stats.validate import check_choice, check_count, check_level

NULLS = {
    "zero": "all effects are 0",
    "constant": "all effects are equal",
    "homogeneous": "all rows have one effect in a bin",
}


@each_region
def wald_test(effect: xr.Dataset, null: str = "zero", *, adjust: str = "holm") -> xr.Dataset:
    r"""Test of the effects of every feature.

    Parameters
    ----------
    effect : Dataset
        What `rhale` or `std_error` returned; where that was given groups, they are respected.
    null : {"zero", "constant", "homogeneous"}
        Nothing happens: the effects of all bins (and slopes in them) are 0. A straight line: all
        are equal, and without slopes. An additive model: local effects do not differ within a bin.
    adjust : str, default "holm"
        Adjustment of the p-values over features, as in `check_unbiased`.

    Returns
    -------
    Dataset
        Over (feature): ``statistic``, ``df``, ``p_value``, ``p_value_adjusted``; the null is in
        the attributes. NaN for a constant feature. `tidy` and `summary` take it.

    Raises
    ------
    ValueError
        Unknown ``null`` or ``adjust``; an effect without the moments of standard errors.

    Notes
    -----
    "zero": each effect over its standard error is brought from Student's t to the normal
    distribution with the same p-value; the sum of squares is chi-squared with as many degrees of
    freedom as there are bins, and slopes. The plain Wald statistic is too large in small bins: with
    20 bins of 25 rows it rejects 8 % at 5 %. A bin without any spread counts with that of the
    others. "constant": the same of deviations from the weighted mean (Alexander and Govern 1994), a
    degree of freedom less. With groups the Wald statistic is compared with F, with a degree of
    freedom less than groups.

    "homogeneous" is no question of chance: any spread beyond rounding refutes it. The statistic is
    the largest heterogeneity over what rounding makes, the p-value 1 or 0. An effect that moves
    inside a bin is a spread, too: after `debias` this is not the case.

    References
    ----------
    Alexander and Govern (1994), *Journal of Educational Statistics* 19, 91-101.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(1).uniform(-1, 1, (500, 2))
    >>> local = rs.local_effects(lambda X: 2 * X[:, 0] + 4 * X[:, 0] * X[:, 1], X)
    >>> test = rs.wald_test(rs.rhale(local, bins=rs.EqualWidthBins(5)))
    >>> test["df"].values, test["p_value"].round(2).values
    (array([5., 5.]), array([0.  , 0.17]))
    """
    effect = check_effect(effect)
    check_choice("null", null, tuple(NULLS))
    check_choice("adjust", adjust, ADJUSTMENTS)
    if null != "homogeneous":
        effect = with_std_error(effect)
    rows = []
    for number in range(effect.sizes["feature"]):
        row = one_feature(effect, number)
        if not row.sizes["bin"]:
            rows.append((np.nan, np.nan, np.nan))
        elif null == "homogeneous":
            rows.append(_homogeneous(row))
        elif "effect_cov" in row:
            rows.append(_grouped(row, null))
        else:
            rows.append(_sum_of_squares(row, null))
    statistic, df, pvalue = np.array(rows).T
    return _test(
        effect,
        {"statistic": statistic, "df": df, "p_value": pvalue},
        adjust,
        null=NULLS[null],
        source=str(effect["effect_se"].attrs["source"]) if "effect_se" in effect else "rows",
        test=f"wald_test, null {null!r}",
    )


def _test(
    effect: xr.Dataset, values: dict[str, FloatArray], adjust: str, **facts: str | float
) -> xr.Dataset:
    """Results of a test, over features."""
    names = {
        "statistic": "test statistic",
        "df": "degrees of freedom",
        "p_value": "p-value",
        "p_value_adjusted": "p-value, adjusted over features",
    }
    values = values | {"p_value_adjusted": adjusted(values["p_value"], adjust)}
    return xr.Dataset(
        {
            name: ("feature", array, {"long_name": names.get(name, name), "units": "1"})
            for name, array in values.items()
        },
        {"feature": effect["feature"], "feature_kind": effect["feature_kind"]},
        {
            "method": "test",
            "adjust": adjust,
            **facts,
            "output_name": effect.attrs.get("output_name", "output"),
            "output_units": effect.attrs.get("output_units", ""),
            "bin_rule": effect.attrs.get("bin_rule", "unknown"),
            "bin_parameters": effect.attrs.get("bin_parameters", ""),
            "n_rows": effect.attrs.get("n_rows", 0),
            "software": software(),
        },
    )


def _normal_score(t: FloatArray, degrees: FloatArray) -> FloatArray:
    """Standard normal value with the two-sided p-value of Student's t."""
    tail = stats.t.logsf(np.abs(t), degrees)
    return np.asarray(stats.norm.isf(np.exp(tail)))


def _sum_of_squares(row: xr.Dataset, null: str) -> tuple[float, float, float]:
    """Independent bins: sums of squares of normal scores."""
    pieces, n = pieces_of(row), row["n_effective"].values
    linear = slopes(row) != 0
    degrees = n - 1 - linear
    variance = row["heterogeneity"].values ** 2
    known = (degrees > 0) & (variance >= 0)
    if not known.any():
        return float("nan"), float("nan"), float("nan")
    least = resolution(pieces.mean, float(row["local_effect_error"]))
    # A few rows may happen to be alike: where other bins have a spread, theirs counts.
    pooled = np.average(variance[known], weights=degrees[known])
    variance = np.where(variance <= least**2, pooled, variance)
    noise = accumulate.line_noise(variance, pieces, line_moments_of(row), n)
    # A mean that is known exactly differs from 0 by more than rounding, or does not.
    mean, se = pieces.mean[known], np.sqrt(noise.mean[known])
    se = np.maximum(se, least)
    centre, df = 0.0, float(known.sum())
    if null == "constant":
        centre, df = float(np.average(mean, weights=(se.min() / se) ** 2)), df - 1
    total = float(np.sum(_normal_score((mean - centre) / se, degrees[known]) ** 2))
    sloped = known & linear
    if sloped.any():
        # The slope without what it shares with the mean.
        shared = noise.covariance[sloped] / noise.mean[sloped]
        slope = pieces.slope[sloped] - shared * (pieces.mean[sloped] - centre)
        alone = noise.slope[sloped] - shared * noise.covariance[sloped]
        width = np.diff(pieces.edges)[sloped]
        alone = np.sqrt(np.maximum(alone, (least / width) ** 2))
        total += float(np.sum(_normal_score(slope / alone, degrees[sloped]) ** 2))
        df += float(sloped.sum())
    if df <= 0:
        return 0.0, 0.0, 1.0
    return total, df, float(stats.chi2.sf(total, df))


def _refuse_lines(row: xr.Dataset) -> None:
    """Raise ``ValueError`` for linear bins by groups: their slopes have no covariance there."""
    if "n_groups" in row.attrs and slopes(row).any():
        raise ValueError(
            f"effect must have constant bins for tests by groups; feature "
            f"{str(row['feature'].values)!r} has linear ones. Use AdaptiveBins(degree=0)."
        )


def _grouped(row: xr.Dataset, null: str) -> tuple[float, float, float]:
    """Groups of rows: Wald statistic over its degrees of freedom, compared with F."""
    _refuse_lines(row)
    mean, covariance = row["effect"].values, row["effect_cov"].values
    # A mean that is known exactly differs from 0 by more than rounding, or does not.
    least = resolution(mean, float(row["local_effect_error"]))
    covariance = covariance + least**2 * np.eye(len(mean))
    if null == "constant":
        contrast = np.diff(np.eye(len(mean)), axis=0)
        mean, covariance = contrast @ mean, contrast @ covariance @ contrast.T
    df = float(len(mean))
    if not df:
        return 0.0, 0.0, 1.0
    statistic = float(mean @ np.linalg.pinv(covariance, hermitian=True) @ mean)
    of_groups = float(row.attrs["n_groups"]) - 1
    # Hotelling's correction: the covariance has fewer degrees of freedom than its size asks for.
    left = of_groups - df + 1
    if left <= 0:
        return statistic, df, float("nan")
    return statistic, df, float(stats.f.sf(statistic * left / (of_groups * df), df, left))


def _homogeneous(row: xr.Dataset) -> tuple[float, float, float]:
    """Spread over rounding."""
    least = resolution(row["effect"].values, float(row["local_effect_error"]))
    largest = float(np.nanmax(row["heterogeneity"].values, initial=0.0)) / least
    return largest, float(row.sizes["bin"]), 1.0 if largest <= 1 else 0.0


@each_region
def equivalence_test(effect: xr.Dataset, delta: float, *, adjust: str = "holm") -> xr.Dataset:
    r"""Test that the effect is smaller than ``delta`` everywhere: two one-sided tests in every bin.

    Parameters
    ----------
    effect : Dataset
        What `rhale` or `std_error` returned.
    delta : float
        What counts as small, in units of the effect; positive.
    adjust : str, default "holm"
        Adjustment of the p-values over features.

    Returns
    -------
    Dataset
        Over (feature): ``statistic``, the smallest distance of an effect from -delta or delta in
        standard errors, ``df`` (of the bin that decides), ``p_value`` of some effect being delta or
        more, ``p_value_adjusted``. A small p-value says that all effects are smaller.

    Raises
    ------
    ValueError
        ``delta`` is not positive.

    Notes
    -----
    Schuirmann's (1987) two one-sided tests; every bin must pass, so that no adjustment over bins is
    needed. In a linear bin the effect is tested at both ends.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> local = rs.local_effects(lambda X: 2 * X[:, 0] + 0.1 * X[:, 0] * X[:, 1], X)
    >>> effect = rs.rhale(local, bins=rs.EqualWidthBins(5))
    >>> rs.equivalence_test(effect, 0.1)["p_value"].round(3).values
    array([1., 0.])
    """
    effect = check_effect(effect)
    check_choice("adjust", adjust, ADJUSTMENTS)
    if not 0 < delta < np.inf:
        raise ValueError(f"delta must be positive and finite; got {delta!r}.")
    effect = with_std_error(effect)
    rows = []
    for number in range(effect.sizes["feature"]):
        row = one_feature(effect, number)
        rows.append(_small(row, delta) if row.sizes["bin"] else (np.nan, np.nan, np.nan))
    statistic, df, pvalue = np.array(rows).T
    return _test(
        effect,
        {"statistic": statistic, "df": df, "p_value": pvalue},
        adjust,
        null=f"some effect is {delta:g} or more, or -{delta:g} or less",
        source=str(effect["effect_se"].attrs["source"]),
        test=f"equivalence_test, delta {delta:g}",
    )


def _small(row: xr.Dataset, delta: float) -> tuple[float, float, float]:
    """The bin that is least surely small decides."""
    _refuse_lines(row)
    slope, half = slopes(row), np.diff(row["edge_value"].values) / 2
    linear = slope != 0
    effect, n = row["effect"].values, row["n_effective"].values
    degrees = n - 1 - linear
    if "n_groups" in row.attrs:
        degrees = np.full(len(n), float(row.attrs["n_groups"]) - 1)
    least = resolution(effect, float(row["local_effect_error"]))
    se = [row["effect_se"].values]
    values = [effect]
    if linear.any():
        pieces = pieces_of(row)
        noise = accumulate.line_noise(
            row["heterogeneity"].values ** 2, pieces, line_moments_of(row), n
        )
        for sign in (-1, 1):
            values.append(effect + sign * slope * half)
            se.append(np.sqrt(noise.of(np.ones(len(n)), pieces.away() + sign * half * linear)))
    value, error = np.array(values), np.maximum(np.array(se), least)
    distance = np.asarray(np.minimum(delta - value, delta + value) / error)
    pvalue = np.asarray(stats.t.sf(distance, np.broadcast_to(degrees, distance.shape)))
    if np.isnan(pvalue).all():
        return float("nan"), float("nan"), float("nan")
    # A bin without a standard error may hold anything.
    if np.isnan(pvalue).any():
        return float("nan"), float("nan"), 1.0
    place, k = np.unravel_index(int(np.argmax(pvalue)), pvalue.shape)
    return float(distance[place, k]), float(degrees[k]), float(pvalue[place, k])


def compare(
    a: xr.Dataset,
    b: xr.Dataset,
    *,
    paired: tuple[xr.Dataset, xr.Dataset] | None = None,
    level: float = 0.95,
    n_draws: int = 20_000,
    rng: np.random.Generator | int | None = 0,
    adjust: str = "holm",
) -> xr.Dataset:
    r"""Difference of two curves with its band, and a test of no difference anywhere.

    Two models, two groups of rows, train against test: effects of the same features, perhaps in
    other bins.

    Parameters
    ----------
    a, b : Dataset
        What `rhale` or `std_error` returned, with one centring; features that both have are
        compared.
    paired : tuple of two Datasets, optional
        The local effects of ``a`` and of ``b`` where these are of the same rows in the same order
        (two models on one table): their errors go together. Without it the rows are independent.
    level : float, default 0.95
        Of intervals and band.
    n_draws, rng
        As in `confband`.
    adjust : str, default "holm"
        Adjustment of the p-values over features.

    Returns
    -------
    Dataset
        Over (feature, grid), the edges of both within the range of both: ``difference`` (a less
        b), ``difference_se``, ``difference_ci`` and ``difference_band`` (with ci_bound) at
        ``grid_value``. Over (feature): ``statistic``, the largest |difference| over its standard
        error, ``p_value`` of no difference, ``p_value_adjusted``.

    Raises
    ------
    ValueError
        No common feature, other centrings, no common range, pairs of other rows.

    Notes
    -----
    Math [27] and [31]: the statistic is compared with the largest of as many normal errors with the
    covariance of the difference. Models and bins are taken as given.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> effects = []
    >>> for seed in (2, 3):
    ...     X = np.random.default_rng(seed).uniform(-1, 1, (500, 2))
    ...     local = rs.local_effects(lambda X: 2 * X[:, 0] + 4 * X[:, 0] * X[:, 1], X)
    ...     effects.append(rs.rhale(local, bins=rs.EqualWidthBins(5)))
    >>> rs.compare(*effects)["p_value"].round(1).values
    array([0.7, 0.4])
    """
    a, b = check_effect(a, "a"), check_effect(b, "b")
    check_level(level)
    check_count("n_draws", n_draws, 1)
    check_choice("adjust", adjust, ADJUSTMENTS)
    if a.attrs["centering"] != b.attrs["centering"]:
        raise ValueError(
            f"a and b must have one centring; got {a.attrs['centering']!r} and "
            f"{b.attrs['centering']!r}. Make them with one centering=."
        )
    names = [name for name in feature_names(a) if name in feature_names(b)]
    if not names:
        raise ValueError(
            f"a and b must have a feature in common; got {', '.join(feature_names(a))} and "
            f"{', '.join(feature_names(b))}."
        )
    a, b = with_std_error(a), with_std_error(b)
    streams = np.random.default_rng(rng).spawn(len(names))
    found = [
        _difference(a.sel(feature=[name]), b.sel(feature=[name]), paired, level, n_draws, stream)
        for name, stream in zip(names, streams, strict=True)
    ]
    n_grid = max(len(one.grid_value) for one in found)

    def padded(name: str) -> FloatArray:
        parts = [getattr(one, name) for one in found]
        out = np.full((len(found), n_grid, *parts[0].shape[1:]), np.nan)
        for number, part in enumerate(parts):
            out[number, : len(part)] = part
        return out

    tested = _test(
        a.sel(feature=names),
        {
            "statistic": np.array([one.statistic for one in found]),
            "p_value": np.array([one.p_value for one in found]),
        },
        adjust,
        null="no difference between the curves",
        source="pairs of rows" if paired is not None else "rows, independent",
        test="compare, largest standardised difference",
        centering=str(a.attrs["centering"]),
    )
    facts: dict[str, str | float] = {"units": OUTPUT_UNITS, "target": "difference of the curves"}
    interval = {**facts, "ci_prob": level, "ci_kind": "confidence"}
    return tested.assign(
        difference=(("feature", "grid"), padded("difference"), {"long_name": "a less b", **facts}),
        difference_se=(
            ("feature", "grid"),
            padded("difference_se"),
            {"long_name": "standard error of a less b", **facts},
        ),
        difference_ci=(
            ("feature", "grid", "ci_bound"),
            padded("difference_ci"),
            {"long_name": "confidence interval of a less b", "kind": "pointwise", **interval},
        ),
        difference_band=(
            ("feature", "grid", "ci_bound"),
            padded("difference_band"),
            {"long_name": "band of a less b", "kind": "simultaneous over the axis", **interval},
        ),
    ).assign_coords(
        grid_value=(("feature", "grid"), padded("grid_value"), {"long_name": "point of the grid"}),
        ci_bound=("ci_bound", ["lower", "upper"]),
        feature_units=a.sel(feature=names)["feature_units"],
    )


class _Difference(NamedTuple):
    """Two curves of one feature compared, by the names of the results."""

    grid_value: FloatArray
    difference: FloatArray
    difference_se: FloatArray
    difference_ci: FloatArray
    difference_band: FloatArray
    statistic: float
    p_value: float


def _difference(
    a: xr.Dataset,
    b: xr.Dataset,
    paired: tuple[xr.Dataset, xr.Dataset] | None,
    level: float,
    n_draws: int,
    rng: np.random.Generator,
) -> _Difference:
    """One feature: the difference on the edges of both."""
    row_a, row_b = one_feature(a, 0), one_feature(b, 0)
    if not (row_a.sizes["bin"] and row_b.sizes["bin"]):
        none, bounds = np.full(0, np.nan), np.full((0, 2), np.nan)
        return _Difference(none, none, none, bounds, bounds, np.nan, np.nan)
    fits = fit_of(row_a), fit_of(row_b)
    low = max(fit.pieces.edges[0] for fit in fits)
    high = min(fit.pieces.edges[-1] for fit in fits)
    if not low < high:
        raise ValueError(
            f"a and b must overlap; feature {str(row_a['feature'].values)!r} has no values in both."
        )
    z = np.unique(np.concatenate([fit.pieces.edges for fit in fits]))
    z = z[(z >= low) & (z <= high)]
    values = [accumulate.curve_at(fit.pieces.edges, fit.curve, fit.pieces.slope, z) for fit in fits]
    if paired is None:
        covariance = _covariance(row_a, fits[0], z) + _covariance(row_b, fits[1], z)
    else:
        covariance = _paired_covariance((a, b), (row_a, row_b), fits, paired, z)
    difference = values[0] - values[1]
    se = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    degrees = min(
        float(row.attrs["n_groups"]) - 1
        if "n_groups" in row.attrs
        else float(np.min(fit.curve_degrees(z), initial=np.inf))
        for row, fit in zip((row_a, row_b), fits, strict=True)
    )
    quantile = intervals.largest_deviation(covariance, level, degrees, n_draws, rng)
    student = float(intervals.student(level, np.array([degrees]))[0])
    # Where nothing is estimated, as at the start, no difference is no deviation.
    least = 1e-12 * np.abs(np.array(values)).max(initial=0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        scaled = np.where(np.abs(difference) <= least, 0.0, np.abs(difference) / se)
    statistic = float(scaled.max())
    return _Difference(
        z,
        difference,
        se,
        intervals.around(difference, student * se),
        intervals.around(difference, quantile * se),
        statistic,
        intervals.largest_deviation_pvalue(covariance, statistic, degrees, n_draws, rng),
    )


def _covariance(row: xr.Dataset, fit: Fit, z: FloatArray) -> FloatArray:
    """Covariance of a curve at points: of groups where those are known at edges only."""
    if "curve_cov" not in row:
        return fit.covariance(z)
    _refuse_lines(row)
    edges = row["edge_value"].values
    weight = np.array([np.interp(z, edges, unit) for unit in np.eye(len(edges))]).T
    return np.asarray(weight @ row["curve_cov"].values @ weight.T)


def _paired_covariance(
    effects: tuple[xr.Dataset, xr.Dataset],
    rows: tuple[xr.Dataset, xr.Dataset],
    fits: tuple[Fit, Fit],
    paired: tuple[xr.Dataset, xr.Dataset],
    z: FloatArray,
) -> FloatArray:
    """Covariance of the difference from the influences of the pairs of rows."""
    if any("n_groups" in effect.attrs for effect in effects):
        raise ValueError(
            "paired takes effects without groups of rows: pairs are independent of each other. "
            "Make a and b without groups, or leave paired out."
        )
    sizes = [check_local(local).sizes["obs"] for local in paired]
    used = [is_estimation_row(local, e) for local, e in zip(paired, effects, strict=True)]
    if sizes[0] != sizes[1] or not np.array_equal(used[0], used[1]):
        raise ValueError(
            f"paired must be local effects of the same rows; got {sizes[0]} and {sizes[1]} rows, "
            f"of which {int(used[0].sum())} and {int(used[1].sum())} were used."
        )
    influences = []
    for local, row, fit in zip(paired, rows, fits, strict=True):
        if "weight" in local:
            raise ValueError("paired takes rows without weights. Leave paired out, or the weights.")
        kept = columns(local.isel(obs=used[0]))
        position = feature_position(local, str(row["feature"].values))
        x, g = kept.x[position], kept.local_effect[position]
        check_same_rows(row, x, kept)
        k = bin_index(row["edge_value"].values, x)
        # Rows beyond a gap have no part in the curve.
        each = np.flatnonzero((k >= fit.here.start) & (k < fit.here.stop))
        sums = influence.row_sums(
            fit.pieces, fit.curve, k[each] - fit.here.start, x[each], g[each], None, each, len(x)
        )
        influences.append((sums, fit.loadings(z), fit.centering == "mean"))
    n = int(used[0].sum())
    covariance = np.zeros((len(z), len(z)))
    for begin in range(0, n, influence.BLOCK_ROWS):
        here = slice(begin, begin + influence.BLOCK_ROWS)
        first, second = (
            sums.of_curve(at, population=population, rows=here)
            for sums, at, population in influences
        )
        covariance += (first - second).T @ (first - second)
    return covariance * n / (n - 1)
