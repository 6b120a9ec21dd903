"""Averages, and combinations of estimates, with their intervals and covariance, and as tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arguments.checks import is_number
from rhale_stats.arguments.times import are_dates, as_days, date_texts, shown_values
from rhale_stats.arguments.words import shown
from rhale_stats.inference.adjustment import adjusted
from rhale_stats.inference.combinations import (
    Combinations,
    Estimates,
    combined,
    equivalence_pvalues,
    joint_test,
    located,
    refuse_beside,
)
from rhale_stats.inference.estimate import (
    BOUNDS,
    Facts,
    by_errors,
    chosen_method,
    estimate_of,
    interval,
    kept_interval,
    student,
    with_intervals,
)
from rhale_stats.inference.notes import how_made
from rhale_stats.printing.text import (
    WARNING,
    Body,
    bounds_text,
    includes_model,
    output_text,
    pvalue_text,
    source_of,
    table_lines,
    uncertainty,
    with_facts,
)
from rhale_stats.schema.dimensions import OUTPUT, check_one_part, with_part_facts
from rhale_stats.schema.kinds import AVERAGES
from rhale_stats.schema.notes import Summary
from rhale_stats.schema.variables import variable

# Of groups and designs, and effective units; below, log-normal outcomes are covered in 80 to 90 %.
MIN_DEGREES = 30
HYPOTHESES, LOCATION = "hypotheses", "location"
INVERTED = "places at which a test of 0 does not reject, Student's t"
RATIOS = ("Ratios: t and P compare with 1, on the log scale.",)
# P-values that `hypotheses` adds.
TESTS = ("p_value_adjusted", "p_equivalence")
NUMBERS = ("estimate", "std_error", "statistic", "p_value", *TESTS, "conf_low", "conf_high")
# Columns that of locations are places on the axis of a feature.
PLACES = ["estimate", "conf_low", "conf_high"]
HEADS = {
    "estimate": "average",
    "std_error": "std err",
    "statistic": "t",
    "p_value": "P",
    "p_value_adjusted": "P adj",
    "p_equivalence": "P equiv",
}


def confint(result: xr.Dataset, boot: object, level: float, method: str | None) -> xr.Dataset:
    """`confint` of averages: ``average_ci``, pointwise; of ratios on the log scale."""
    if boot is not None:
        raise ValueError("boot must be None for averages, which have no replicates.")
    chosen_method(method, None, ("normal",))
    if is_location(result):
        if kept_interval(result, "average", level) is None:
            raise ValueError(
                f"level must be that of hypotheses for locations, "
                f"{result['average_ci'].attrs['ci_prob']:g}; got {level:g}. Make them again: "
                f"hypotheses(..., level={level:g})."
            )
        return result
    degrees = result["average_df"].values
    estimate = estimate_of(result, "average", degrees, long_name="average over the rows")
    out = with_intervals(result, {"average": estimate}, level, "normal")
    ratios = _are_ratios(result).values
    if not ratios.any():
        return out
    values = np.where(ratios, estimate.values, 1.0)
    ends, _ = by_errors(estimate._replace(values=values, log=True), level)
    ends = np.where(ratios[..., None], ends, out["average_ci"].values)
    about = {"method": f"{out['average_ci'].attrs['method']}; of ratios on the log scale"}
    return out.assign(average_ci=out["average_ci"].copy(data=ends).assign_attrs(about))


def _are_ratios(result: xr.Dataset) -> xr.DataArray:
    """Which averages are compared with 1."""
    null = result.coords.get("null", xr.zeros_like(result["average"]))
    are_ratios: xr.DataArray = (null == 1).broadcast_like(result["average"])
    return are_ratios


def vcov(result: xr.Dataset, feature: object, estimand: str) -> xr.DataArray:
    """``average_cov``, over (term, term_other)."""
    if feature is not None:
        raise ValueError(f"feature must be left out for averages; got {feature!r}.")
    if estimand != "curve":
        raise ValueError(f"of must be left out for averages; got {estimand!r}.")
    return selected(result)["average_cov"].rename("covariance")


def selected(result: xr.Dataset) -> xr.Dataset:
    """Averages with the covariance of those that are there: some may have been selected."""
    others = [str(dim) for dim in result["average_cov"].dims if str(dim).endswith("_other")]
    # One output may have been selected, which then has no dimension.
    return result.sel({dim: result[dim.removesuffix("_other")].values for dim in others})


def estimates(
    result: xr.Dataset, feature: object, estimand: str | None, local: object, groups: object
) -> Estimates:
    """Averages for `hypotheses`, in the order of the lines of their table."""
    refuse_beside("averages", feature=feature, of=estimand, local=local, groups=groups)
    result = with_part_facts(result)
    names = [str(name) for name in result["term"].values]
    compared = is_compared(result)
    dims = ["term"]
    for dim in ("by", OUTPUT):
        if dim in result.dims:
            dims, levels = [dim, *dims], result[dim].values
            axis = result[dim].attrs.get("long_name", dim)
            names = [f"{name}, {axis} = {level}" for level in levels for name in names]
            compared = np.tile(compared, len(levels))
    size, se = len(names), result["average_se"].transpose(*dims)
    covariance = selected(result)["average_cov"]
    covariance = covariance.transpose(*dims, *(f"{dim}_other" for dim in dims))
    return Estimates(
        names,
        result["average"].transpose(*dims).values.ravel(),
        covariance.values.reshape(size, size),
        result["average_df"].transpose(*dims).values.ravel(),
        str(se.attrs["units"]),
        str(se.attrs["source"]),
        "averages",
        compared.tolist(),
    )


def is_location(result: xr.Dataset) -> bool:
    """Whether these are places on the axis of a feature, which have no test of 0."""
    return bool((result["kind"] == LOCATION).all())


def is_compared(result: xr.Dataset) -> NDArray[np.bool_]:
    """Which terms are shown and compared together.

    The prediction of all rows, which is on another scale, is left out beside others.
    """
    of_others = ((result["kind"] != "prediction") | (result["of"] != "prediction")).values
    return np.asarray(of_others | ~of_others.any())


def tidy(result: xr.Dataset, level: float) -> pd.DataFrame:
    """`tidy` of averages: a line an average."""
    result = with_part_facts(result)
    if kept_interval(result, "average", level) is None:
        result = confint(result, None, level, None)
    average, ends = result["average"], result["average_ci"]
    order = [dim for dim in ("by", "term") if dim in average.dims]

    def column(array: xr.DataArray) -> NDArray[Any]:
        return np.ravel(array.broadcast_like(average).transpose(*order).values)

    values, se, degrees = (column(result[f"average{end}"]) for end in ("", "_se", "_df"))
    table = {name: column(result[name]) for name in ("of", "contrast", *order[:-1])}
    table = {"term": table.pop("of"), **table, "estimate": values, "std_error": se}
    tests = includes_model(result, "average") or "p_value_adjusted" in result
    if tests and not is_location(result):
        # The logarithm of a ratio is compared with 0, and its error is relative.
        ratio = column(_are_ratios(result))
        scale = np.where(ratio, values, 1.0)
        table |= student(np.where(ratio, np.log(scale), values), se / scale, degrees)
    table |= {name: column(result[name]) for name in TESTS if name in result}
    low, high = (column(ends.isel(ci_bound=end)) for end in (0, 1))
    table |= {"conf_low": low, "conf_high": high}
    if is_location(result):
        units = str(result.attrs.get("feature_units", ""))
        table |= {name: shown_values(table[name], units) for name in PLACES}
    return pd.DataFrame(table)


def _body(result: xr.Dataset, level: float) -> Body:
    table = tidy(result, level)
    heads = HEADS | dict(zip(("conf_low", "conf_high"), bounds_text(level), strict=True))
    if result.attrs["method"] == HYPOTHESES:
        heads["estimate"] = "estimate"
    names = [name for name in NUMBERS if name in table]
    if is_location(result) and are_dates(units := str(result.attrs.get("feature_units", ""))):
        texts_of_places = date_texts(as_days(table[PLACES].to_numpy().ravel()), units)
        table[PLACES] = np.reshape(texts_of_places, (-1, len(PLACES)))
    texts = [name for name in ("term", "contrast", "by") if name in table]
    stubs = [" ".join(filter(None, line)) for line in table[texts].to_numpy()]
    return table_lines(table, names), [heads[name] for name in names], stubs


def summary(result: xr.Dataset, _feature: object, level: float) -> Summary:
    """`summary` of averages: a line an average."""
    result = with_part_facts(result)
    check_one_part(result, "effect")
    attrs, source = result.attrs, source_of(result, "average")
    cells = [
        ["Rows:", f"{attrs['n_rows']}", "Weights:", attrs["weight_kind"]],
        ["Uncertainty:", uncertainty(source), "By:", str(attrs["by"]) or "all rows"],
    ]
    if "joint_statistic" in attrs:
        names = ("df", "df_denominator", "statistic", "p_value")
        df, denominator, statistic, p_value = (attrs[f"joint_{name}"] for name in names)
        test = f"F({df:.0f}, {denominator:.4g}) = {statistic:.4g}"
        cells.append(["All at once:", test, "P of all:", pvalue_text(p_value)])
    notes = [
        *_few_groups(result),
        *_not_estimable(result),
        f"Standard errors: {attrs['parameters']}. "
        f"Intervals: pointwise, {how_made(result, 'average', level)}.",
        *_meant(result),
    ]
    return Summary(with_facts(cells, _title(result), *_body(result, level)), notes)


def _title(result: xr.Dataset) -> str:
    output_name = output_text(result)
    if is_location(result):
        return f"Locations on {result.attrs['about']} of {output_name}"
    if result.attrs["method"] == HYPOTHESES:
        return f"Hypotheses about {result.attrs['about']} of {output_name}"
    return f"Averages of {output_name}"


def _meant(result: xr.Dataset) -> list[str]:
    """What the lines of the table are."""
    if result.attrs["method"] != HYPOTHESES:
        return [
            "dY/dX: average slope. Levels: average prediction with the level minus that with the "
            "first level, in all rows.",
            *(RATIOS if _are_ratios(result).any() else ()),
        ]
    if is_location(result):
        return ["Places where the curve turns or is 0, with those at which a test of 0 keeps it."]
    return [f"P adj: adjusted for the number of hypotheses ({result.attrs['adjust']})."]


def _few_groups(result: xr.Dataset) -> list[str]:
    """A note where clusters, or those that decide, are so few that skewed outcomes matter."""
    degrees = float(result["average_df"].min()) if "n_groups" in result.attrs else np.inf
    units = float(result.attrs.get("effective_units", np.inf))
    why = f"few groups ({degrees:.3g} degrees of freedom)"
    if degrees >= MIN_DEGREES:
        why = f"a few rows or clusters decide (worth {units:.3g} of equal influence)"
    if min(degrees, units) >= MIN_DEGREES:
        return []
    short = "intervals are too short where outcomes are skewed, see docs/validity.md."
    return [f"{WARNING}{why}: {short}"]


def _not_estimable(result: xr.Dataset) -> list[str]:
    why = result.attrs.get("not_estimable")
    return [f"{WARNING}NaN: not estimable, {why}."] if why else []


# --- combinations of estimates --------------------------------------------------------------------


KEPT = (
    *("weight_kind", "output_name", "output_units", "output_label", "n_groups"),
    *("effective_units", "software"),
)


def labelled_combinations(
    result: xr.Dataset, estimates: Estimates, hypothesis: Any, margin: Any, adjust: str
) -> xr.Dataset:
    """The combinations that ``hypothesis`` names, with their errors, P and a test of all."""
    combinations = combined(estimates, hypothesis)
    out = _labelled(result, estimates, combinations, "hypothesis", 0.0)
    se = out["average_se"].values
    p_values = student(combinations.values, se, combinations.degrees)["p_value"]
    tests = {"p_value_adjusted": adjusted(p_values, adjust)}
    out.attrs |= {
        f"joint_{name}": part for name, part in joint_test(combinations)._asdict().items()
    }
    out.attrs["adjust"] = adjust
    if margin is not None:
        ends = _margin(margin)
        tests["p_equivalence"] = equivalence_pvalues(combinations, *ends)
        out.attrs["margin"] = list(ends)
    return out.assign({name: variable(name, tests[name], AVERAGES) for name in tests})


def labelled_locations(
    result: xr.Dataset, estimates: Estimates, kind: str, level: float
) -> xr.Dataset:
    """Places of maxima, minima or zeros, with intervals by inversion of tests (math [119])."""
    places, ends = located(estimates, kind, level)
    out = _labelled(result, estimates, places, LOCATION, np.nan)
    facts = Facts(("term",), "place on the axis", "feature units", "place", estimates.source)
    out = out.assign(average_ci=interval(facts, ends, level, INVERTED)).assign_coords(BOUNDS)
    return out.assign_attrs(feature_units=estimates.place_units)


def _labelled(
    result: xr.Dataset, estimates: Estimates, combinations: Combinations, kind: str, null: float
) -> xr.Dataset:
    """Combinations with their errors, as averages have them."""
    numbers = {
        "average": combinations.values,
        "average_se": np.sqrt(np.maximum(np.diagonal(combinations.covariance), 0.0)),
        "average_df": combinations.degrees,
        "average_cov": combinations.covariance,
    }
    facts = {"source": estimates.source, "target": "function of estimates"}
    data = {name: variable(name, values, AVERAGES, **facts) for name, values in numbers.items()}
    texts = np.array(combinations.texts)
    coords: dict[str, Any] = {
        "term": texts,
        "of": ("term", texts),
        "kind": ("term", np.full(len(texts), kind)),
        "contrast": ("term", np.full(len(texts), "")),
        "null": ("term", np.full(len(texts), null)),
        "term_other": texts,
    }
    attrs: dict[str, Any] = {name: result.attrs[name] for name in KEPT if name in result.attrs}
    attrs |= {
        "method": HYPOTHESES,
        "about": estimates.what,
        "n_rows": int(result.attrs.get("n_rows", 0)),
        "by": "",
        "parameters": f"of {estimates.source}",
    }
    attrs.setdefault("weight_kind", "none")
    return xr.Dataset(data, coords, attrs)


def _margin(margin: Any) -> tuple[float, float]:
    """Both ends of what counts as no difference."""
    if is_number(margin) and 0 < margin < np.inf:
        return -float(margin), float(margin)
    if isinstance(margin, tuple | list) and len(margin) == 2 and all(map(is_number, margin)):
        low, high = map(float, margin)
        if low < high:
            return low, high
    raise ValueError(
        f"margin must be a positive number, or a pair (low, high); got {shown(margin)}."
    )
