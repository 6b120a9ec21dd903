"""Standard errors, intervals, replicates and differences of H-statistics (math [62])."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy import special

from rhale_stats.arguments.rows import aligned, of_rows, row_codes, storable
from rhale_stats.arrays import delta, leverage, resample
from rhale_stats.arrays import h_statistics as kernel
from rhale_stats.arrays.categories import n_effective_of
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.h_statistics.estimates import (
    OTHER,
    SOURCE,
    STATISTICS,
    pairs_of,
    se_variable,
    statistics,
)
from rhale_stats.h_statistics.statistic import h_statistic
from rhale_stats.inference.adjustment import adjusted
from rhale_stats.inference.draws import Replication, Resampling, check_boot, labelled_draws
from rhale_stats.inference.estimate import (
    BOUNDS,
    Estimate,
    Facts,
    by_errors,
    chosen_method,
    estimate_of,
    interval,
    with_intervals,
    with_replicates,
)
from rhale_stats.inference.parameters import (
    KIND,
    Directions,
    check_model,
    errors,
    options_of,
    refuse_shared,
    sources,
    without_parameters,
)
from rhale_stats.inference.results import ComparisonOptions
from rhale_stats.models.parametric import Fitted
from rhale_stats.schema.features import feature_names
from rhale_stats.schema.identity import OF_ESTIMATE, estimate_fingerprint, model_facts, row_labels
from rhale_stats.schema.kinds import H_STATISTICS
from rhale_stats.schema.variables import software, variable

METHOD = "difference of H-statistics"
METHODS = ("normal", "percentile", "basic", "bca")
# Numbers that the weights of draws, and what is made of them, hold at once.
CHUNK = 1 << 20
NOT_WHOLE = (
    "effect must be as h_statistic returned it, for a bootstrap; its answers give other statistics "
    "than it has. Select features after bootstrap(effect)."
)


def statistics_of(result: xr.Dataset) -> list[str]:
    """Statistics that are there."""
    return [name for name in STATISTICS if name in result]


def weight_of(result: xr.Dataset) -> FloatArray:
    """Weights of the rows used."""
    if "weight" in result:
        return np.asarray(result["weight"].values, dtype=np.float64)
    return np.ones(result.sizes["obs"])


def is_frequency(result: xr.Dataset) -> bool:
    """Whether weights count rows."""
    return str(result.attrs["weight_kind"]) == "frequency"


def influence_of(result: xr.Dataset, name: str) -> FloatArray:
    """(..., row)."""
    return np.asarray(result[f"{name}_influence"].transpose(*result[name].dims, "obs").values)


def check_kept(result: xr.Dataset, what: str, parameter: str = "effect") -> None:
    """Raise ``ValueError`` unless the influences of rows are there."""
    absent = [name for name in statistics_of(result) if f"{name}_influence" not in result]
    if absent:
        raise ValueError(
            f"{parameter} must hold the influences of rows for {what}; this one has no "
            f"{absent[0]}_influence (influences: {result.attrs['influence']}). Make it again of "
            f"fewer rows or features: h_statistic(model, X, n_rows=...)."
        )


def by_row(values: Any, parameter: str, *used: xr.Dataset) -> Any:
    """What is said of all rows of the table, in their order: a Series goes by its labels."""
    n_total = int(used[0].attrs["n_rows_total"])
    values = of_rows(values, None, n_total, parameter, "rows of X")
    labels = [labels for result in used if (labels := row_labels(result)) is not None]
    if not isinstance(values, pd.Series) or len(labels) < len(used):
        return values
    rows = np.concatenate([result["row"].values for result in used])
    rows, first = np.unique(rows, return_index=True)
    of_used: NDArray[Any] = np.concatenate(labels)[first]
    filled = values.to_numpy(copy=True)
    aligned_values = aligned(
        values[pd.Index(storable(values.index)).isin(of_used)], of_used, parameter
    )
    filled[rows] = of_rows(aligned_values, None, len(rows), parameter, "rows of X")
    return filled


def group_codes(groups: ArrayLike, *used: xr.Dataset) -> IntArray:
    """Numbers from 0 for the groups of the rows used, in the order of their numbers."""
    present = np.any([used_rows(result) for result in used], axis=0)
    code = row_codes(by_row(groups, "groups", *used), None, present, "groups", "rows of X")
    if code.max() < 1:
        raise ValueError(
            "groups must hold at least two different groups among the rows used; got 1."
        )
    return code


def std_error(
    result: xr.Dataset,
    _local: xr.Dataset | None,
    groups: ArrayLike | None,
    fitted: Fitted | None = None,
) -> xr.Dataset:
    """`std_error` of H-statistics: those of rows come with them, those of groups are made here."""
    if fitted is not None and fitted.uncertainty == "rows":
        fitted = None
    result, names, code = without_parts(result), statistics_of(result), None
    if groups is None:
        by_rows = all(f"{name}_se" in result for name in names) and "n_groups" not in result.attrs
        if by_rows and fitted is None:
            return result
        check_kept(result, "standard errors")
        out, source = result.copy(), SOURCE
        for fact in ("n_groups", "groups_df"):
            out.attrs.pop(fact, None)
    else:
        check_kept(result, "standard errors by groups")
        code = group_codes(groups, result)
        n_groups = int(code.max()) + 1
        out = result.assign_attrs(n_groups=n_groups, groups_df=degrees_of_groups(result, code))
        source = f"rows in {n_groups} groups"
    weight, frequency = weight_of(result), is_frequency(result)
    by_units = {}
    for name in names:
        by = moved(influence_of(result, name), weight, code, frequency=frequency)
        by_units[name] = by
        out[f"{name}_se"] = se_variable(out[name], np.sqrt(np.sum(by**2, axis=-1)), source)
    return out if fitted is None else with_parameters(out, by_units, fitted, code)


def moved(
    influence: FloatArray, weight: FloatArray, code: IntArray | None, *, frequency: bool
) -> FloatArray:
    """Contributions of rows to the error, or of groups where their numbers are given."""
    if code is None:
        return kernel.moved_by_rows(influence, weight, frequency=frequency)
    return kernel.moved_by_groups(influence, weight, code, frequency=frequency)


def degrees_of_groups(result: xr.Dataset, code: IntArray) -> float:
    """Degrees of freedom of means over the rows by groups of these (math [26])."""
    shares = leverage.of_mean(code, weight_of(result), frequency=is_frequency(result))
    return leverage.mean_degrees(shares)


def degrees_of(result: xr.Dataset) -> float:
    """Rows, effective or counted, less one; with groups those of Bell and McCaffrey."""
    if "n_groups" in result.attrs:
        return float(result.attrs.get("groups_df", result.attrs["n_groups"] - 1))
    w = weight_of(result)
    return n_effective_of(w, len(w), frequency=is_frequency(result)) - 1


def confint(result: xr.Dataset, boot: object, level: float, method: str | None) -> xr.Dataset:
    """`confint` of H-statistics: ``h2_ci``, ``h2_overall_ci`` and so on, pointwise."""
    # Replicates repeat the bias, which "bca" takes off.
    by_default = "normal" if boot is None else "bca"
    chosen = chosen_method(by_default if method is None else method, boot, METHODS)
    result = std_error(result, None, None) if "h2_se" not in result else result
    estimates = {}
    for name in statistics_of(result):
        degrees = result[f"{name}_df"].values if f"{name}_df" in result else degrees_of(result)
        # Of a size the log is half of that of its square; 0 stays 0 (math [62]).
        estimates[name] = estimate_of(result, name, degrees, log=True)
    if chosen != "normal":
        boot = check_boot(result, boot, list(estimates), "bootstrap(found)", chosen)
        for name, estimate in with_replicates(estimates, boot).items():
            replicates, acceleration = estimate.replicates, boot.get(f"{name}_acceleration")
            # It came with the replicates if influences of rows were known.
            if replicates is not None and acceleration is not None:
                values = np.asarray(acceleration.transpose(*estimate.facts.dims).values)
                replicates = replicates._replace(acceleration=values)
            estimates[name] = estimate._replace(replicates=replicates)
    return with_intervals(result, estimates, level, chosen)


# --- replicates -----------------------------------------------------------------------------------


def used_rows(result: xr.Dataset) -> NDArray[np.bool_]:
    """Which rows of X were used."""
    used = np.zeros(int(result.attrs["n_rows_total"]), dtype=bool)
    used[result["row"].values] = True
    return used


def check_answers(result: xr.Dataset) -> None:
    """Raise ``ValueError`` unless the answers of the model were kept."""
    if str(result.attrs["h_kind"]) == "ale":
        raise ValueError(
            "bootstrap of H-statistics is for kind='pdp'; this result is of kind 'ale', which "
            "keeps no second differences of its pairs. Use std_error and confint, with groups= "
            "where rows depend on each other; or bootstrap(ale2(model, X, pair)) for one pair."
        )
    if "answers" not in result:
        raise ValueError(
            "effect must hold the answers of the model for a bootstrap; this one has none. Make it "
            "with h_statistic(..., keep_answers=True)."
        )


def bootstrap(result: xr.Dataset, effect: object, resampling: Resampling) -> Replication:
    """`bootstrap` of H-statistics, from the answers kept with them."""
    resampling.refuse_choices_of_bins()
    if effect is not None:
        raise ValueError(
            "bootstrap of H-statistics takes what h_statistic returned alone: bootstrap(found)."
        )
    check_answers(result)
    weight = weight_of(result)
    groups, strata = [
        None if values is None else by_row(values, name, result)
        for values, name in ((resampling.groups, "groups"), (resampling.strata, "strata"))
    ]
    resampling = resampling._replace(groups=groups, strata=strata)
    counts = weight if is_frequency(result) else None
    units = resampling.units(len(weight), counts, used_rows(result), None)
    room = CHUNK // (result.sizes["feature"] + 2)
    drawn = replicates(result, resampling.weights(units, len(weight), room))
    drawn = drawn.assign(accelerations(result, units))
    of_estimate = estimate_fingerprint(result, statistics_of(result))
    return Replication(drawn, units, result, {OF_ESTIMATE: of_estimate})


def accelerations(result: xr.Dataset, units: resample.ResampledUnits) -> dict[str, Any]:
    """Accelerations of all statistics by the influences of what is drawn (Efron 1987)."""
    weight, frequency = weight_of(result), is_frequency(result)
    out = {}
    for name in statistics_of(result):
        if f"{name}_influence" not in result:
            continue
        influence, copies = influence_of(result, name) * (weight / weight.sum()), np.ones(1)
        if units.unit is not None:
            influence = delta.summed(influence.T, units.unit).T
        elif frequency:
            # A row with frequency w is drawn as w rows, each with its part of the influence.
            copies = weight
        each = np.divide(influence, copies, out=np.zeros_like(influence), where=copies > 0)
        second, third = [np.sum(copies * each**power, axis=-1) for power in (2, 3)]
        value = np.divide(third, 6 * second**1.5, out=np.zeros(np.shape(second)), where=second > 0)
        about = {"long_name": f"acceleration of {result[name].attrs['long_name']}", "units": "1"}
        out[f"{name}_acceleration"] = (result[name].dims, value, about)
    return out


def replicates(result: xr.Dataset, weights: Iterable[FloatArray]) -> xr.Dataset:
    """Replicates along ``draw`` of all H-statistics: math [60] with the rows weighted anew."""
    n, names = result.sizes["obs"], feature_names(result)
    version = np.arange(n)
    values = result["answers"].transpose("feature", "obs", "obs_background").values
    features = [kernel.Answers(answers, version) for answers in values]
    pairs: list[tuple[int, int]] = []
    of_pairs: list[kernel.Answers] = []
    if "answers_pair" in result and "h2_pairwise" in result:
        pair = result["answers_pair"].transpose("pair", "obs", "obs_background").values
        both = zip(result["pair_feature"].values, result["pair_other"].values, strict=True)
        if len(names) < int(result.attrs["n_features"]):
            raise ValueError(NOT_WHOLE)
        pairs = [(names.index(str(j)), names.index(str(k))) for j, k in both]
        of_pairs = [kernel.Answers(answers, version) for answers in pair]
    w, least = weight_of(result), float(result["h_error"]) ** 2
    prediction = np.diagonal(values[0])

    def weighted_statistics(drawn: FloatArray) -> dict[str, FloatArray]:
        share = w[:, None] * drawn
        share = share / share.sum(axis=0)
        squares = kernel.pdp_squares(
            prediction[:, None],
            [answers.along(share) for answers in features],
            [answers.rest(share) for answers in features],
            pairs,
            [answers.along(share) for answers in of_pairs],
            share,
        )
        every = statistics(squares, pairs, len(names), least)
        return {name: np.moveaxis(values, -1, 0) for name, values in every.items()}

    once = weighted_statistics(np.ones((n, 1)))
    if not all(
        np.allclose(once[name][0], result[name], rtol=1e-6, atol=1e-12, equal_nan=True)
        for name in statistics_of(result)
    ):
        raise ValueError(NOT_WHOLE)
    parts = [weighted_statistics(drawn) for drawn in weights]
    made = {name: np.concatenate([part[name] for part in parts]) for name in statistics_of(result)}
    return labelled_draws(result, made, ("obs", "pair"))


# Step along a direction, in standard errors.
STEP = 1e-4
# Pairs of rows times directions in one call, 128 MB a feature.
BATCH_ANSWERS = 1 << 23


def without_parts(result: xr.Dataset) -> xr.Dataset:
    """H-statistics with the errors of their rows again."""
    if "parameters" not in result.attrs:
        return result
    rows = {}
    for name in STATISTICS:
        if f"{name}_se_rows" in result:
            se = result[f"{name}_se_rows"]
            rows[f"{name}_se"] = se_variable(result[name], se.values, str(se.attrs["source"]))
    return without_parameters(result, ("_se_rows", "_se_model", "_df", "_ci")).assign(rows)


def with_parameters(
    result: xr.Dataset, by_units: dict[str, FloatArray], fitted: Fitted, code: IntArray | None
) -> xr.Dataset:
    """H-statistics with standard errors of rows get those that hold the parameters.

    ``by_units`` has what rows, or groups with their numbers in ``code``, do to every statistic,
    (..., unit).
    """
    if str(result.attrs["h_kind"]) != "pdp":
        raise ValueError(
            "model must be None for H-statistics of kind 'ale', whose bins are not kept. Make them "
            "with kind='pdp', or take ale2 of one pair."
        )
    facts = result.attrs | model_facts(result)
    directions = Directions.from_fit(fitted, facts, frequency=is_frequency(result))
    if directions.changes.table.n_rows != int(result.attrs["n_rows_total"]):
        raise ValueError(
            f"X must be the table that h_statistic was given; got "
            f"{directions.changes.table.n_rows} rows for {result.attrs['n_rows_total']}."
        )
    changes = _changes(result, list(by_units), directions)
    used, degrees, made = result["row"].values, degrees_of(result), dict[str, Any]()
    codes = np.arange(len(used)) if code is None else code
    for name, moved_by_units in by_units.items():
        se = result[f"{name}_se"]
        # A feature makes no pair with itself.
        has_error = np.isfinite(se.values.ravel())
        values = np.where(has_error, moved_by_units.reshape(se.size, -1).T, 0.0)
        units = delta.Units(values, codes, degrees)
        covariances = directions.covariances(
            units.moved.T @ units.moved, changes[name], units, used
        )
        parts = errors(covariances) | {"df": directions.degrees(covariances, degrees)}
        of_end = sources(directions, str(se.attrs["source"]))
        for end, numbers in parts.items():
            values = np.where(np.isnan(se.values), np.nan, numbers.reshape(se.shape))
            if end == "se":
                made[f"{name}_se"] = se_variable(result[name], values, of_end[end], KIND)
                continue
            about = {"source": of_end[end], "kind": KIND}
            made[f"{name}_{end}"] = variable(f"{name}_{end}", values, H_STATISTICS, **about)
    return result.assign(made).assign_attrs(directions.facts())


def _changes(
    result: xr.Dataset, names: Sequence[str], directions: Directions
) -> dict[str, FloatArray]:
    """Changes of all statistics by direction, (direction, statistic), by central differences.

    To first order a model moves along a direction by its change, so that the model plus and minus
    a small part of it are the two outputs of one model.
    """
    table = directions.changes.table.take(np.asarray(result["row"].values))
    options = options_of(result, str(result.attrs["missing"]))
    pairs = None
    if result.attrs.get("n_pairs_left_out") and "h_pairwise" in result:
        names_of = feature_names(result)
        pairs = [(names_of[j], names_of[k]) for j, k in pairs_of(result)[0].T]

    def statistics_by(ask: Callable[[Any], FloatArray]) -> xr.Dataset:
        return h_statistic(
            ask,
            table.data,
            features=feature_names(result),
            pairwise="h2_pairwise" in result,
            pairs=pairs,
            n_pairs=None,
            n_rows=None,
            options=options,
            progress=False,
        )

    middle = statistics_by(lambda rows: directions.changes.ask(rows)[:, -1])
    for name in names:
        check_model(middle[name].values, result[name].values, name)
    n_directions = directions.changes.n_directions
    out = {name: np.zeros((n_directions, result[name].size)) for name in names}
    together = max(BATCH_ANSWERS // table.n_rows**2, 1)
    for begin in range(0, n_directions, together):
        part = slice(begin, min(begin + together, n_directions))

        def both(rows: Any, part: slice = part) -> FloatArray:
            answers = directions.changes.ask(rows)
            step, middle = STEP * answers[:, part], answers[:, -1:]
            return np.concatenate([middle + step, middle - step], axis=1)

        moved = statistics_by(both)
        for name in names:
            upper, lower = np.split(moved[name].values.reshape(-1, result[name].size), 2)
            out[name][part] = np.nan_to_num((upper - lower) / (2 * STEP))
    return out


def compare(a: xr.Dataset, b: xr.Dataset, request: ComparisonOptions) -> xr.Dataset:
    """`compare` of H-statistics: differences, a less b, with the rows of one table as pairs."""
    a, b = _comparable(a, b)
    same_table = all(a.attrs[name] == b.attrs[name] for name in ("table_hash", "n_rows_total"))
    paired, totals = request.paired, [int(result.attrs["n_rows_total"]) for result in (a, b)]
    if paired is not None:
        is_pair = isinstance(paired, tuple) and len(paired) == 2
        if not (is_pair and all(map(H_STATISTICS.holds, paired))):
            raise TypeError(
                "paired must be (a, b) for H-statistics, which have their rows with them."
            )
        if totals[0] != totals[1]:
            raise ValueError(
                f"paired must be of the same rows; got tables of {totals[0]} and {totals[1]} rows."
            )
    pairs = paired is not None or same_table
    refuse_shared(a, b, "H-statistics", paired=pairs)
    if request.groups is not None and not pairs:
        raise ValueError(
            "groups must come with results of one table; a and b are of two. Give groups to each: "
            "std_error(found, groups=...)."
        )
    names = [name for name in statistics_of(a) if name in b]
    if pairs:
        error, degrees, source = _paired_errors(a, b, names, request.groups)
    else:
        a, b = [result if "h2_se" in result else std_error(result, None, None) for result in (a, b)]
        error = {name: np.hypot(a[f"{name}_se"].values, b[f"{name}_se"].values) for name in names}
        degrees, source = min(degrees_of(a), degrees_of(b)), "rows against rows, independent"
    data: dict[str, Any] = {}
    for name in names:
        data |= _differences(name, a, b, error[name], degrees, source, request)
    coords: dict[str, Any] = dict(BOUNDS)
    coords |= {name: a[name] for name in ("feature", OTHER) if name in a.dims}
    attributes = ("h_kind", "output_name", "output_units")
    facts = {
        "method": METHOD,
        **{name: a.attrs[name] for name in attributes},
        "n_rows_a": a.attrs["n_rows"],
        "n_rows_b": b.attrs["n_rows"],
        "source": source,
        "adjust": request.adjust,
        "software": software(),
    }
    return xr.Dataset(data, coords, facts)


def _differences(
    name: str,
    a: xr.Dataset,
    b: xr.Dataset,
    error: FloatArray,
    degrees: float,
    source: str,
    request: ComparisonOptions,
) -> dict[str, Any]:
    """The difference of one statistic with standard error, interval and p-values."""
    dims, units = tuple(map(str, a[name].dims)), str(a[name].attrs["units"])
    text = f"difference of {a[name].attrs['long_name']}"
    attributes = {"units": units, "source": source}
    facts = Facts(dims, f"the {text}", units, text, source)
    difference = a[name].values - b[name].values
    ends, method = by_errors(Estimate(difference, facts, error, degrees), request.level)
    with np.errstate(invalid="ignore", divide="ignore"):
        statistic = np.abs(difference) / error
    p_value = np.asarray(2 * special.stdtr(degrees, -statistic))
    p_value = np.where(np.abs(difference) <= _rounding(a, b, name), 1.0, p_value)
    of_error = {"long_name": f"standard error of the {text}", **attributes}
    of_p = {"long_name": f"P of no {text}", "units": "1"}
    of_adjusted = {**of_p, "long_name": f"P of no {text}, adjusted", "adjust": request.adjust}
    return {
        f"{name}_difference": (dims, difference, {"long_name": text, **attributes}),
        f"{name}_difference_se": (dims, error, of_error),
        f"{name}_difference_ci": interval(facts, ends, request.level, method),
        f"{name}_p_value": (dims, p_value, of_p),
        f"{name}_p_value_adjusted": (dims, _adjusted(p_value, request.adjust), of_adjusted),
    }


def _rounding(a: xr.Dataset, b: xr.Dataset, name: str) -> FloatArray:
    """What rounding alone may make two statistics differ by."""
    size = float(a["h_error"]) + float(b["h_error"])
    if not name.startswith("h2"):
        return np.asarray(size)
    share, root = [
        np.maximum(a[variable].values, b[variable].values)
        for variable in (name, name.replace("h2", "h"))
    ]
    # A share goes with the square of its size, of which both parts round.
    relative = np.divide(size, root, out=np.zeros_like(root), where=root > 0)
    return np.asarray(4 * share * relative)


def _comparable(a: xr.Dataset, b: xr.Dataset) -> tuple[xr.Dataset, xr.Dataset]:
    """Both, features in one order; refused unless they are of the same kind and features."""
    for name, result in (("a", a), ("b", b)):
        if not H_STATISTICS.holds(result):
            raise ValueError(
                f"a and b must both be what h_statistic(model, X) returned; {name} is not."
            )
    if a.attrs["h_kind"] != b.attrs["h_kind"]:
        raise ValueError(
            f"a and b must be of one kind; got {a.attrs['h_kind']!r} and {b.attrs['h_kind']!r}. "
            f"Make them with one kind=."
        )
    features = feature_names(a), feature_names(b)
    if sorted(features[0]) != sorted(features[1]):
        raise ValueError(
            f"a and b must have the same features; got {', '.join(features[0])} and "
            f"{', '.join(features[1])}. Make both with one features=[...]."
        )
    order = {dim: a[dim].values for dim in ("feature", OTHER) if dim in a.dims and dim in b.dims}
    return a, b.sel(order)


def _paired_errors(
    a: xr.Dataset, b: xr.Dataset, names: list[str], groups: ArrayLike | None
) -> tuple[dict[str, FloatArray], float, str]:
    """Standard errors of differences where rows of one table move both, math [62]."""
    for parameter, result in (("a", a), ("b", b)):
        check_kept(result, "pairs of rows", parameter)
        if groups is None and "n_groups" in result.attrs:
            raise ValueError(
                f"groups must be given where a or b has standard errors by groups, as {parameter} "
                f"has: compare(a, b, groups=...)."
            )
    every = np.union1d(a["row"].values, b["row"].values)
    places = [np.searchsorted(every, result["row"].values) for result in (a, b)]
    weights = np.zeros((2, len(every)))
    for weight, place, result in zip(weights, places, (a, b), strict=True):
        weight[place] = weight_of(result)
    frequency = [is_frequency(result) for result in (a, b)]
    both = (weights[0] > 0) & (weights[1] > 0)
    if any(frequency) and groups is None:
        different = both & (weights[0] != weights[1])
        if different.any() or frequency[0] != frequency[1]:
            raise ValueError(
                "a and b must have the same frequencies, as these count pairs; got others. Use "
                "weights of kind 'precision'."
            )
    error, code = {}, None
    degrees, source = min(degrees_of(a), degrees_of(b)), "pairs of rows"
    if groups is not None:
        code = group_codes(groups, a, b)
        degrees = min(
            degrees_of_groups(result, code[place])
            for result, place in zip((a, b), places, strict=True)
        )
        source = f"pairs of rows in {int(code.max()) + 1} groups"
    for name in names:
        parts = []
        for result, place, weight, counted in zip((a, b), places, weights, frequency, strict=True):
            influence = np.zeros((*result[name].shape, len(every)))
            influence[..., place] = influence_of(result, name)
            parts.append(moved(influence, weight, code, frequency=counted))
        error[name] = np.sqrt(np.sum((parts[0] - parts[1]) ** 2, axis=-1))
    return error, degrees, source


def _adjusted(p_value: FloatArray, adjust: str) -> FloatArray:
    """P-values adjusted over features, or over pairs, each of which counts once."""
    if p_value.ndim < 2:
        return adjusted(np.atleast_1d(p_value), adjust).reshape(p_value.shape)
    out = np.full(p_value.shape, np.nan)
    j, k = np.triu_indices(len(p_value), 1)
    out[j, k] = out[k, j] = adjusted(p_value[j, k], adjust)
    return out
