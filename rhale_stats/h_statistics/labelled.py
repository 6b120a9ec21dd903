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


class InteractionSquares(NamedTuple):
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
    influences: list[arrays.VarianceShares] | None
    answers: tuple[list[FloatArray], list[FloatArray]] | None = None


def dataset(
    squares: InteractionSquares,
    names: list[str],
    number: int,
    pairwise: bool,
    w: FloatArray,
    *,
    frequency: bool,
    keep_influences: bool,
) -> xr.Dataset:
    """Statistics of one output."""
    n, least = len(names), squares.least[number]

    def share_and_root(upper: FloatArray, lower: FloatArray) -> tuple[FloatArray, FloatArray]:
        upper = np.where(upper > least, upper, 0.0)
        share = np.divide(upper, lower, out=np.zeros(upper.shape), where=(upper > 0) & (lower > 0))
        return share, np.sqrt(upper)

    variance = squares.variance[number]
    statistics = {
        "": share_and_root(squares.total[number], variance),
        "_overall": share_and_root(squares.overall[:, number], np.broadcast_to(variance, n)),
    }
    if pairwise:
        tables = np.full((2, n, n), np.nan)
        j, k = np.array(squares.pairs).T
        tables[:, j, k] = tables[:, k, j] = share_and_root(
            squares.pair[:, number], squares.joint[:, number]
        )
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
    if squares.influences is not None:
        out = _with_influences(
            out, squares, number, w, frequency=frequency, keep_influences=keep_influences
        )
    if squares.answers is None:
        return out
    features, pairs = [
        np.array([answers[..., number] for answers in each]) for each in squares.answers
    ]
    out["answers"] = variable("answers", features, H_STATISTICS)
    if not pairwise:
        return out
    out["answers_pair"] = variable("answers_pair", pairs, H_STATISTICS)
    first, second = np.array(names)[np.array(squares.pairs).T]
    return out.assign_coords(pair_feature=("pair", first), pair_other=("pair", second))


def _with_influences(
    out: xr.Dataset,
    squares: InteractionSquares,
    number: int,
    w: FloatArray,
    *,
    frequency: bool,
    keep_influences: bool,
) -> xr.Dataset:
    """math [62]: standard errors of one output, and the influences of its rows where kept."""
    assert squares.influences is not None
    output_influences, least = squares.influences[number], squares.least[number]

    def both(
        upper: FloatArray, lower: FloatArray, *influence_parts: FloatArray
    ) -> tuple[FloatArray, ...]:
        # What is rounding does not move.
        return arrays.ratio_and_root(np.where(upper > least, upper, 0.0), lower, *influence_parts)

    variance = squares.variance[number]
    n = len(out["feature"])
    found_of = {
        "": both(
            squares.total[number], variance, output_influences.total, output_influences.variance
        ),
        "_overall": both(
            squares.overall[:, number],
            np.broadcast_to(variance, n),
            output_influences.overall,
            output_influences.variance,
        ),
    }
    if "h2_pairwise" in out:
        found_of["_pairwise"] = both(
            squares.pair[:, number],
            squares.joint[:, number],
            output_influences.pair,
            output_influences.joint,
        )

    def placed(values: FloatArray) -> FloatArray:
        """What is known of pairs, as a square of features."""
        square = np.full((n, n, *values.shape[1:]), np.nan)
        j, k = np.array(squares.pairs).T
        square[j, k] = square[k, j] = values
        return square

    for suffix, influences in found_of.items():
        for stem, influence in zip(("h2", "h"), influences, strict=True):
            name, place = f"{stem}{suffix}", placed if suffix == "_pairwise" else np.asarray
            moved = arrays.moved_by_rows(influence, w, frequency=frequency)
            errors = place(np.sqrt(np.sum(moved**2, axis=-1)))
            out[f"{name}_se"] = se_variable(out[name], errors, SOURCE)
            if keep_influences:
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
    statistic: xr.DataArray, values: FloatArray, source: str
) -> tuple[tuple[Any, ...], FloatArray, dict[str, str]]:
    """Standard errors as a variable."""
    return (
        statistic.dims,
        values,
        {
            "long_name": f"standard error of {statistic.attrs['long_name']}",
            "units": str(statistic.attrs["units"]),
            "source": source,
            "kind": "infinitesimal jackknife, math [62]",
            "target": "the same over the population of rows",
        },
    )


def pairs_of(result: xr.Dataset) -> tuple[NDArray[np.int64], list[str]]:
    """Places of the pairs, each once, whichever features are left: (2, pair); and their names.

    Without those that were not estimated.
    """
    names, others = feature_names(result), result[OTHER].values.astype(str).tolist()
    name = next(name for name in ("h_pairwise", "h_pairwise_difference") if name in result)
    values = result[name].transpose("feature", OTHER, ...).values
    present = ~np.isnan(values.reshape(*values.shape[:2], -1)).all(axis=-1)
    pairs = {
        frozenset((a, b)): (j, k)
        for j, a in reversed(list(enumerate(names)))
        for k, b in reversed(list(enumerate(others)))
        if a != b and present[j, k]
    }
    positions = np.array(sorted(pairs.values()), dtype=np.int64).reshape(-1, 2).T
    return positions, [f"{names[j]}:{others[k]}" for j, k in positions.T]


def centred(values: FloatArray, w: FloatArray) -> FloatArray:
    """Without the weighted mean over the rows, the first axis."""
    return values - np.average(values, axis=0, weights=w)


def mean_square(values: FloatArray, w: FloatArray) -> FloatArray:
    """Weighted mean of the squares over the rows, the first axis."""
    return np.asarray(np.average(values**2, axis=0, weights=w))
