"""H-statistics as pandas frames: a line a feature and a pair, or one line in all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.h_statistics.inference import confint
from rhale_stats.h_statistics.labelled import OTHER, pairs_of
from rhale_stats.inference.estimate import kept_interval
from rhale_stats.schema.dimensions import with_part_facts
from rhale_stats.schema.features import feature_names

# What a line of `tidy` is of.
OVERALL, PAIR, ALL = "overall", "pair", "all"
STEMS = ("h2", "h")
# Above this, by more than rounding, a share is none.
WHOLE = 1 + 1e-9
ABOVE_ONE = {
    ALL: "the interactions vary more than the output: main effects offset part of them",
    OVERALL: "its interactions vary more than the output: main effects offset part of them",
    PAIR: "its joint effect varies less than its interaction: main effects offset part of it",
}


def with_intervals(result: xr.Dataset, level: float) -> xr.Dataset:
    """With intervals at this level, those that are there or by standard errors, if any."""
    if "h2_se" not in result and "h2_influence" not in result:
        return result
    if kept_interval(result, "h2", level) is not None:
        return result
    return confint(result, None, level, "normal")


def share(value: Any) -> Any:
    """A share of a variance; NaN where it is more than the whole, and so no share."""
    return np.where(value > WHOLE, np.nan, value)[()]


def _shares(frame: pd.DataFrame, kind: str) -> pd.DataFrame:
    """Without shares of more than the whole, and why."""
    above = frame["h2"] > WHOLE
    ends = [name for name in frame if str(name).startswith("h2")]
    frame.loc[above, ends] = np.nan
    return frame.assign(reason=np.where(above, ABOVE_ONE[kind], ""))


def _columns(result: xr.Dataset, suffix: str) -> list[tuple[str, str, int | None]]:
    """Columns of the table: their name, the variable that is in them, and which bound."""
    out: list[tuple[str, str, int | None]] = [(stem, f"{stem}{suffix}", None) for stem in STEMS]
    for stem in STEMS:
        name = f"{stem}{suffix}"
        if f"{name}_se" in result:
            out += [
                (f"{stem}_std_error", f"{name}_se", None),
                (f"{stem}_conf_low", f"{name}_ci", 0),
                (f"{stem}_conf_high", f"{name}_ci", 1),
            ]
    return out


def tidy(result: xr.Dataset, level: float = 0.95) -> pd.DataFrame:
    """A line a feature, then a line a pair."""
    result = with_intervals(with_part_facts(result), level)

    def values(variable: str, bound: int | None) -> NDArray[np.float64]:
        data = result[variable]
        return np.asarray((data if bound is None else data.isel(ci_bound=bound)).values)

    columns = {name: values(variable, end) for name, variable, end in _columns(result, "_overall")}
    frame = pd.DataFrame({"term": feature_names(result), "kind": OVERALL, **columns})
    frames = [_shares(frame, OVERALL)]
    if "h2_pairwise" in result:
        positions, terms = pairs_of(result)
        result = result.transpose("feature", OTHER, ...)
        columns = {
            name: values(variable, end)[positions[0], positions[1]]
            for name, variable, end in _columns(result, "_pairwise")
        }
        frame = pd.DataFrame({"term": terms, "kind": PAIR, **columns})
        frames.append(_shares(frame, PAIR))
    out = pd.concat(frames, ignore_index=True)
    return out if (out["reason"] != "").any() else out.drop(columns="reason")


def glance(result: xr.Dataset, level: float = 0.95) -> pd.DataFrame:
    """One line: all interactions, and what they were computed from."""
    result, attrs = with_intervals(with_part_facts(result), level), result.attrs
    columns = {
        name: (result[variable] if bound is None else result[variable][bound]).item()
        for name, variable, bound in _columns(result, "")
    }
    line = {
        **columns,
        "kind": attrs["h_kind"],
        "n_features": result.sizes["feature"],
        **{name: attrs[name] for name in ("n_rows", "n_rows_total", "n_model_calls")},
        "n_model_rows": attrs["n_model_rows"],
    }
    frame = _shares(pd.DataFrame([line]), ALL)
    return frame if frame["reason"].any() else frame.drop(columns="reason")


def tidy_difference(compared: xr.Dataset, _level: float) -> pd.DataFrame:
    """Two results beside each other: a line a statistic, of all, of features and of pairs."""
    frames = []
    for kind, suffix in ((ALL, ""), (OVERALL, "_overall"), (PAIR, "_pairwise")):
        for stem in STEMS:
            name = f"{stem}{suffix}"
            if f"{name}_difference" not in compared:
                continue
            terms, positions = ["all"], None
            if kind == OVERALL:
                terms = feature_names(compared)
            elif kind == PAIR:
                positions, terms = pairs_of(compared)

            def lines(
                values: NDArray[np.float64], positions: Any = positions
            ) -> NDArray[np.float64]:
                return np.atleast_1d(
                    values if positions is None else values[positions[0], positions[1]]
                )

            ends = compared[f"{name}_difference_ci"].values
            columns = {
                "estimate": compared[f"{name}_difference"].values,
                "std_error": compared[f"{name}_difference_se"].values,
                "p_value": compared[f"{name}_p_value"].values,
                "p_value_adjusted": compared[f"{name}_p_value_adjusted"].values,
                "conf_low": ends[..., 0],
                "conf_high": ends[..., 1],
            }
            frames.append(
                pd.DataFrame(
                    {
                        "term": terms,
                        "kind": kind,
                        "statistic": stem,
                        **{column: lines(values) for column, values in columns.items()},
                    }
                )
            )
    return pd.concat(frames, ignore_index=True)
