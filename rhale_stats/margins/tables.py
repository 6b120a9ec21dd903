"""Averages with their intervals and covariance, and as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.inference.combinations import Estimates, refuse_beside
from rhale_stats.inference.estimate import (
    Estimate,
    Facts,
    by_errors,
    chosen_method,
    kept_interval,
    student,
    with_intervals,
)
from rhale_stats.inference.notes import how_made
from rhale_stats.printing.pages import Page, output, table_of, uncertainty_line
from rhale_stats.printing.text import (
    bounds_text,
    cell,
    holds_model,
    output_text,
    pvalue_text,
    uncertainty,
    with_facts,
)
from rhale_stats.schema.dimensions import check_one_part, with_part_facts
from rhale_stats.schema.notes import with_notes

if TYPE_CHECKING:
    from statsmodels.iolib.summary import Summary

HYPOTHESES = "hypotheses"
RATIOS = ("Ratios: t and P compare with 1, on the log scale.",)
# P-values that `hypotheses` adds.
TESTS = ("p_value_adjusted", "p_equivalence")
NUMBERS = ("estimate", "std_error", "statistic", "p_value", *TESTS, "conf_low", "conf_high")
HEADS = {
    "estimate": "average",
    "std_error": "std err",
    "statistic": "t",
    "p_value": "P",
    "p_value_adjusted": "P adj",
    "p_equivalence": "P equiv",
}


def confint(found: xr.Dataset, boot: object, level: float, method: str | None) -> xr.Dataset:
    """`confint` of averages: ``average_ci``, pointwise; of ratios on the log scale."""
    if boot is not None:
        raise ValueError("boot must be None for averages, which have no replicates.")
    chosen_method(method, None, ("normal",))
    dims = tuple(map(str, found["average"].dims))
    se = found["average_se"].attrs
    units, target, source = (str(se[name]) for name in ("units", "target", "source"))
    facts = Facts(dims, "average over the rows", units, target, source)
    values = (found[f"average{end}"].values for end in ("", "_se", "_df"))
    average, error, degrees = values
    estimate = Estimate(average, facts, error, degrees)
    out = with_intervals(found, {"average": estimate}, level, "normal")
    ratios = _are_ratios(found)
    if not ratios.any():
        return out
    ends, _ = by_errors(estimate._replace(values=np.where(ratios, average, 1.0), log=True), level)
    ends = np.where(ratios[..., None], ends, out["average_ci"].values)
    about = {"method": f"{out['average_ci'].attrs['method']}; of ratios on the log scale"}
    return out.assign(average_ci=out["average_ci"].copy(data=ends).assign_attrs(about))


def _are_ratios(found: xr.Dataset) -> NDArray[np.bool_]:
    """Which averages are compared with 1, in the shape of all of them."""
    null = found.coords.get("null", xr.zeros_like(found["average"]))
    return np.asarray((null == 1).broadcast_like(found["average"]).values)


def vcov(found: xr.Dataset, feature: object, of: str) -> xr.DataArray:
    """``average_cov``, over (term, term_other)."""
    if feature is not None:
        raise ValueError(f"feature must be left out for averages; got {feature!r}.")
    if of != "curve":
        raise ValueError(f"of must be left out for averages; got {of!r}.")
    return _covariance(found).rename("covariance")


def _covariance(found: xr.Dataset) -> xr.DataArray:
    """Covariance of the averages that are there: some of them may have been selected."""
    own = found["average_cov"]
    others = [str(dim) for dim in own.dims if str(dim).endswith("_other")]
    places = {
        dim: own.indexes[dim].get_indexer(found[dim.removesuffix("_other")].values)
        for dim in others
    }
    return own.isel(places)


def estimates(
    found: xr.Dataset, feature: object, of: str | None, local: object, groups: object
) -> Estimates:
    """Averages for `hypotheses`, in the order of the lines of their table."""
    refuse_beside("averages", feature=feature, of=of, local=local, groups=groups)
    found = with_part_facts(found)
    check_one_part(found, "result")
    names = [str(name) for name in found["term"].values]
    compared = [kind != "prediction" or of != kind for of, kind in zip(*_kinds(found), strict=True)]
    dims = ["term"]
    if "by" in found.dims:
        dims, levels = ["by", "term"], found["by"].values
        by = found["by"].attrs["long_name"]
        names = [f"{name}, {by} = {level}" for level in levels for name in names]
        compared = compared * len(levels)
    size, se = len(names), found["average_se"].transpose(*dims)
    covariance = _covariance(found).transpose(*dims, *(f"{dim}_other" for dim in dims))
    return Estimates(
        names,
        found["average"].transpose(*dims).values.ravel(),
        covariance.values.reshape(size, size),
        found["average_df"].transpose(*dims).values.ravel(),
        str(se.attrs["units"]),
        str(se.attrs["source"]),
        "averages",
        compared if any(compared) else None,
    )


def _kinds(found: xr.Dataset) -> tuple[list[str], list[str]]:
    return found["of"].values.tolist(), found["kind"].values.tolist()


def tidy(found: xr.Dataset, level: float) -> pd.DataFrame:
    """`tidy` of averages: a line an average."""
    found = with_part_facts(found)
    ends = kept_interval(found, "average", level)
    if ends is None:
        ends = confint(found, None, level, None)["average_ci"].values
    tests = holds_model(str(found["average_se"].attrs["source"])) or "p_value_adjusted" in found
    ratios, frames = _are_ratios(found), []
    for number, by in enumerate(found["by"].values.tolist() if "by" in found.dims else [None]):
        at = (slice(None),) if by is None else (slice(None), number)
        values, se, degrees = (found[f"average{end}"].values[at] for end in ("", "_se", "_df"))
        lines: dict[str, object] = {
            "term": found["of"].values,
            "contrast": found["contrast"].values,
        }
        lines |= {} if by is None else {"by": by}
        lines |= {"estimate": values, "std_error": se}
        if tests:
            ratio = ratios[at]
            distance = np.where(ratio, np.log(np.where(ratio, values, 1.0)), values)
            error = se / np.where(ratio, values, 1.0)
            lines |= student(distance, error, degrees)
        lines |= {name: found[name].values for name in TESTS if name in found}
        lines |= {"conf_low": ends[at][:, 0], "conf_high": ends[at][:, 1]}
        frames.append(pd.DataFrame(lines))
    return pd.concat(frames, ignore_index=True)


def _body(found: xr.Dataset, level: float) -> tuple[list[list[str]], list[str], list[str]]:
    table = tidy(found, level)
    names = [name for name in NUMBERS if name in table]
    heads = HEADS | ({"estimate": "estimate"} if found.attrs["method"] == HYPOTHESES else {})
    ends = iter(bounds_text(level))
    lines = [[cell(line, name) for name in names] for _, line in table.iterrows()]
    stubs = [
        " ".join(part for part in (line["term"], line["contrast"], line.get("by", "")) if part)
        for _, line in table.iterrows()
    ]
    return lines, [heads.get(name) or next(ends) for name in names], stubs


def summary(found: xr.Dataset, _feature: object, level: float) -> Summary:
    """`summary` of averages: a line an average."""
    found = with_part_facts(found)
    check_one_part(found, "effect")
    attrs, se = found.attrs, found["average_se"].attrs
    cells = [
        ["Rows:", f"{attrs['n_rows']}", "Weights:", attrs["weight_kind"]],
        ["Uncertainty:", uncertainty(str(se["source"])), "By:", str(attrs["by"]) or "all rows"],
    ]
    notes = [
        f"Standard errors: {attrs['parameters']}. "
        f"Intervals: pointwise, {how_made(found, 'average', level)}.",
        *_meant(found),
    ]
    notes += _not_estimable(found)
    lines, heads, stubs = _body(found, level)
    title = _title(found, output_text(found))
    return with_notes(with_facts(cells, title, lines, heads, stubs), notes)


def _title(found: xr.Dataset, output_name: str) -> str:
    if found.attrs["method"] == HYPOTHESES:
        return f"Hypotheses about {found.attrs['about']} of {output_name}"
    return f"Averages of {output_name}"


def _meant(found: xr.Dataset) -> list[str]:
    """What the lines of the table are; of hypotheses the test of all together."""
    if found.attrs["method"] != HYPOTHESES:
        return [
            "dY/dX: average slope. Levels: average prediction with the level minus that with the "
            "first level, in all rows.",
            *(
                ["Ratios: t and P compare with 1, on the log scale."]
                if _are_ratios(found).any()
                else []
            ),
        ]
    names = ("df", "df_denominator", "statistic", "p_value")
    df, denominator, statistic, p_value = (found.attrs[f"joint_{name}"] for name in names)
    return [
        f"All at once: F({df:.0f}, {denominator:.4g}) = {statistic:.4g}, P = "
        f"{pvalue_text(p_value)}. P adj: adjusted for the number of hypotheses "
        f"({found.attrs['adjust']})."
    ]


def _not_estimable(found: xr.Dataset) -> list[str]:
    why = found.attrs.get("not_estimable")
    return [f"NaN: not estimable, {why}."] if why else []


def page(found: xr.Dataset, most: int) -> Page:
    """What is printed of averages."""
    lines, heads, stubs = _body(found, 0.95)
    what = "hypotheses" if found.attrs["method"] == HYPOTHESES else "averages"
    table = [[stub, *line] for stub, line in zip(stubs, lines, strict=True)][:most]
    return Page(
        _title(found, output(found)),
        (
            f"{found.attrs['n_rows']} rows; {found.attrs['parameters']}",
            uncertainty_line(found, "average_se", estimated=bool(np.size(found["average_se"]))),
            *_not_estimable(found),
            *(_meant(found) if found.attrs["method"] == HYPOTHESES else ()),
        ),
        (table_of(["", *heads], table, len(lines), what, ""),),
        "summary(result), tidy(result), vcov(result)",
    )
