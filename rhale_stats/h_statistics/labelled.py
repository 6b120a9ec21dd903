"""H-statistics as a labelled Dataset, with their standard errors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arrays import h_statistics as arrays
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.schema.features import feature_coordinate, feature_names
from rhale_stats.schema.kinds import H_STATISTICS
from rhale_stats.schema.variables import variable

METHOD = "H-statistics"
KINDS = ("pdp", "ale")
OTHER = "feature_other"
# A numerator below so much of what rounding does to the output is 0.
ROUNDINGS = 8.0
STATISTICS = ("h2", "h2_overall", "h2_pairwise", "h", "h_overall", "h_pairwise")
SOURCE = "rows"


class Found(NamedTuple):
    """Numerators and denominators, squares of the output; last axis outputs.

    ``total`` () and ``overall`` (feature,) share ``variance`` (). ``influences`` has those of every
    output, each with a last axis of rows; ``answers`` those of features and of pairs, (row, row of
    the others, output) each.
    """

    total: FloatArray
    overall: FloatArray
    variance: FloatArray
    pairs: list[tuple[int, int]]
    pair: FloatArray
    joint: FloatArray
    least: FloatArray
    influences: list[arrays.Squares] | None
    answers: tuple[list[FloatArray], list[FloatArray]] | None = None


def dataset(
    found: Found,
    names: list[str],
    number: int,
    pairwise: bool,
    w: FloatArray,
    *,
    frequency: bool,
    kept: bool,
) -> xr.Dataset:
    """Statistics of one output."""
    n, least = len(names), found.least[number]

    def of(upper: FloatArray, lower: FloatArray) -> tuple[FloatArray, FloatArray]:
        upper = np.where(upper > least, upper, 0.0)
        share = np.divide(upper, lower, out=np.zeros(upper.shape), where=(upper > 0) & (lower > 0))
        return share, np.sqrt(upper)

    variance = found.variance[number]
    statistics = {
        "": of(found.total[number], variance),
        "_overall": of(found.overall[:, number], np.broadcast_to(variance, n)),
    }
    if pairwise:
        tables = np.full((2, n, n), np.nan)
        j, k = np.array(found.pairs).T
        tables[:, j, k] = tables[:, k, j] = of(found.pair[:, number], found.joint[:, number])
        statistics["_pairwise"] = (tables[0], tables[1])
    data: dict[str, Any] = {}
    for suffix, both in statistics.items():
        for stem, values in zip(("h2", "h"), both, strict=True):
            data[f"{stem}{suffix}"] = variable(f"{stem}{suffix}", values, H_STATISTICS)
    coords: dict[str, Any] = {"feature": feature_coordinate(names)}
    if pairwise:
        coords[OTHER] = (OTHER, np.array(names), {"long_name": "other feature"})
    data["h_error"] = variable("h_error", float(np.sqrt(least)), H_STATISTICS)
    out = xr.Dataset(data, coords)
    if found.influences is not None:
        out = _with_influences(out, found, number, w, frequency=frequency, kept=kept)
    if found.answers is None:
        return out
    features, pairs = (np.array([one[..., number] for one in each]) for each in found.answers)
    out["answers"] = variable("answers", features, H_STATISTICS)
    if not pairwise:
        return out
    out["answers_pair"] = variable("answers_pair", pairs, H_STATISTICS)
    first, second = np.array(names)[np.array(found.pairs).T]
    return out.assign_coords(pair_feature=("pair", first), pair_other=("pair", second))


def _with_influences(
    out: xr.Dataset,
    found: Found,
    number: int,
    w: FloatArray,
    *,
    frequency: bool,
    kept: bool,
) -> xr.Dataset:
    """math [62]: standard errors of one output, and the influences of its rows where kept."""
    assert found.influences is not None
    of, least = found.influences[number], found.least[number]

    def both(upper: FloatArray, lower: FloatArray, *given: FloatArray) -> tuple[FloatArray, ...]:
        # What is rounding does not move.
        return arrays.ratio_and_root(np.where(upper > least, upper, 0.0), lower, *given)

    variance = found.variance[number]
    n = len(out["feature"])
    found_of = {
        "": both(found.total[number], variance, of.total, of.variance),
        "_overall": both(
            found.overall[:, number], np.broadcast_to(variance, n), of.overall, of.variance
        ),
    }
    if "h2_pairwise" in out:
        found_of["_pairwise"] = both(
            found.pair[:, number], found.joint[:, number], of.pair, of.joint
        )

    def placed(values: FloatArray) -> FloatArray:
        """What is known of pairs, as a square of features."""
        square = np.full((n, n, *values.shape[1:]), np.nan)
        j, k = np.array(found.pairs).T
        square[j, k] = square[k, j] = values
        return square

    for suffix, influences in found_of.items():
        for stem, influence in zip(("h2", "h"), influences, strict=True):
            name, place = f"{stem}{suffix}", placed if suffix == "_pairwise" else np.asarray
            moved = arrays.moved_by_rows(influence, w, frequency=frequency)
            errors = place(np.sqrt(np.sum(moved**2, axis=-1)))
            out[f"{name}_se"] = se_variable(out[name], errors, SOURCE)
            if kept:
                out[f"{name}_influence"] = (
                    (*out[name].dims, "obs"),
                    place(influence),
                    {
                        "long_name": f"influence of the row on {out[name].attrs['long_name']}",
                        "units": out[name].attrs["units"],
                    },
                )
    return out


def se_variable(
    of: xr.DataArray, values: FloatArray, source: str
) -> tuple[tuple[Any, ...], FloatArray, dict[str, str]]:
    """Standard errors as a variable."""
    return (
        of.dims,
        values,
        {
            "long_name": f"standard error of {of.attrs['long_name']}",
            "units": str(of.attrs["units"]),
            "source": source,
            "kind": "infinitesimal jackknife, math [62]",
            "target": "the same over the population of rows",
        },
    )


def pairs_of(found: xr.Dataset) -> tuple[NDArray[np.int64], list[str]]:
    """Places of the pairs, each once, whichever features are left: (2, pair); and their names.

    Without those that were not estimated.
    """
    names, others = feature_names(found), found[OTHER].values.astype(str).tolist()
    name = next(name for name in ("h_pairwise", "h_pairwise_difference") if name in found)
    values = found[name].transpose("feature", OTHER, ...).values
    known = ~np.isnan(values.reshape(*values.shape[:2], -1)).all(axis=-1)
    pairs = {
        frozenset((a, b)): (j, k)
        for j, a in reversed(list(enumerate(names)))
        for k, b in reversed(list(enumerate(others)))
        if a != b and known[j, k]
    }
    at = np.array(sorted(pairs.values()), dtype=np.int64).reshape(-1, 2).T
    return at, [f"{names[j]}:{others[k]}" for j, k in at.T]


def centred(values: FloatArray, w: FloatArray) -> FloatArray:
    """Without the weighted mean over the rows, the first axis."""
    return values - np.average(values, axis=0, weights=w)


def mean_square(values: FloatArray, w: FloatArray) -> FloatArray:
    """Weighted mean of the squares over the rows, the first axis."""
    return np.asarray(np.average(values**2, axis=0, weights=w))
