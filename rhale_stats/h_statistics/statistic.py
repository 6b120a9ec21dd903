"""H-statistics of all features and pairs, and which of many pairs interact."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from tqdm import tqdm

from rhale_stats.arguments.checks import check_choice, check_count
from rhale_stats.arguments.progress import progress_bar
from rhale_stats.arguments.seeds import number_of
from rhale_stats.arguments.words import shown, warn
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.bins.description import describe
from rhale_stats.bins.rule import BinRule
from rhale_stats.bins.rules import QuantileBins
from rhale_stats.h_statistics.estimates import (
    HELD_BYTES,
    KEPT_BYTES,
    KINDS,
    METHOD,
    OTHER,
    dataset,
    from_ale,
    from_partial_dependence,
    with_columns_of,
)
from rhale_stats.models.differences import DifferenceQuotients
from rhale_stats.models.options import ModelOptions
from rhale_stats.models.outputs import Model
from rhale_stats.models.sample import Sample, columns_named
from rhale_stats.models.table import Table
from rhale_stats.schema.dimensions import OUTPUT, with_outputs
from rhale_stats.schema.kinds import H_STATISTICS
from rhale_stats.schema.padding import stack
from rhale_stats.schema.validation import Options, validated
from rhale_stats.schema.variables import variable
from rhale_stats.surfaces.ale2 import Order, check_rules, order_of

# Pairs that are estimated by default: all of 10 features.
MAX_PAIRS = 45
# Pairs of rows that each pair of features is looked at in, and rows of the model in all, at most.
SCREEN_ROWS, SCREEN_CALLS, MIN_ROWS = 200, 4_000_000, 20


def screened(
    quotients: DifferenceQuotients, sample: Sample, rng: np.random.Generator, *, progress: bool
) -> tuple[FloatArray, int]:
    """math [90]: superset importance of all pairs, (feature, feature, output), and rows it is of.

    Its root is in units of the output; NaN on the diagonal.
    """
    positions, n_features = sample.positions, len(sample.positions)
    pairs = list(combinations(range(n_features), 2))
    n_rows = int(np.clip(SCREEN_CALLS // len(pairs), MIN_ROWS, SCREEN_ROWS))
    rows, others = rng.choice(len(sample.rows), (2, n_rows), p=sample.share)
    replaced: list[list[tuple[int, ...]]] = [
        [()],
        [(position,) for position in positions],
        [(positions[j], positions[k]) for j, k in pairs],
    ]
    n_sets = sum(map(len, replaced))
    with progress_bar(n_sets, "screening of pairs", "pair", progress=progress) as bar:
        (unchanged,), alone, both = [
            _answers(quotients, columns, rows, others, bar) for columns in replaced
        ]
    size = np.full((n_features, n_features, unchanged.shape[1]), np.nan)
    for (j, k), together in zip(pairs, both, strict=True):
        change = unchanged - alone[j] - alone[k] + together
        size[j, k] = size[k, j] = np.sqrt(np.mean(change**2, axis=0)) / 2
    return size, n_rows


def largest_pairs(size: FloatArray, spread: FloatArray, n_pairs: int) -> list[tuple[int, int]]:
    """So many pairs of the largest size, summed over outputs in units of their spread."""
    shares = np.sum((size / np.where(spread > 0, spread, 1.0)) ** 2, axis=-1)
    pairs = list(combinations(range(len(size)), 2))
    order = np.argsort([-shares[pair] for pair in pairs], kind="stable")
    return [pairs[position] for position in sorted(order[:n_pairs].tolist())]


def _answers(
    quotients: DifferenceQuotients,
    replaced: Sequence[tuple[int, ...]],
    rows: IntArray,
    others: IntArray,
    bar: tqdm[Any],
) -> list[FloatArray]:
    """Outputs at rows of which some columns are those of other rows, for every set of columns.

    (row, output) each; as many sets in a call of the model as it has room for.
    """
    together, answers = max(1, quotients.block_rows // len(rows)), []
    for begin in range(0, len(replaced), together):
        some = replaced[begin : begin + together]
        every = np.tile(rows, len(some))
        source: dict[int, IntArray] = {}
        for number, columns in enumerate(some):
            part = slice(number * len(rows), (number + 1) * len(rows))
            for column in columns:
                source.setdefault(column, every.copy())[part] = others
        answer = quotients.ask_named(
            with_columns_of(quotients.table, every, source),
            f"for {len(some)} pairs of features, called with {len(every)} rows",
        )
        answer = answer.astype(np.float64, copy=False)
        answers += list(answer.reshape(len(some), len(rows), -1))
        bar.update(len(some))
    return answers


class FeaturePairs(NamedTuple):
    """Pairs to estimate, how many are left out, and the sizes that decided, with their seed."""

    pairs: list[tuple[int, int]]
    left_out: int = 0
    size: FloatArray | None = None
    seed: int = -1


def pairs_to_estimate(
    quotients: DifferenceQuotients,
    sample: Sample,
    estimator: HEstimator,
    rng: np.random.Generator | int | None,
    *,
    progress: bool,
) -> FeaturePairs:
    """All pairs, those that were named, or those that interact most."""
    n_pairs, every = estimator.n_pairs, list(combinations(range(len(sample.positions)), 2))
    if estimator.pairs is not None:
        pairs = sorted({_named_pair(sample, pair) for pair in estimator.pairs})
        if not pairs:
            raise ValueError("pairs must name at least one pair of features; got none.")
        return FeaturePairs(pairs, len(every) - len(pairs))
    most = MAX_PAIRS if isinstance(n_pairs, str) else n_pairs
    if most is None or len(every) <= most:
        return FeaturePairs(every)
    seed = number_of(rng)
    generator = np.random.default_rng([seed, 1])  # not the draws of the rows
    size, n_rows = screened(quotients, sample, generator, progress=progress)
    spread = np.nanmax(size, axis=(0, 1))
    if len(spread) > 1:
        spread = quotients.at_rows("rows used of X").std(axis=0)
    left_out = len(every) - most
    if isinstance(n_pairs, str):
        warn(
            f"Left out: {left_out} of {len(every)} pairs, which interact least by a look at "
            f"{n_rows} rows (h_screening). Use n_pairs=None for all, or n_pairs= for more."
        )
    return FeaturePairs(largest_pairs(size, spread, most), left_out, size, seed)


def _named_pair(sample: Sample, pair: Any) -> tuple[int, int]:
    """Places of a pair among the features."""
    if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
        raise TypeError(f"pairs must hold pairs of features; got {shown(pair)}.")
    positions = columns_named(sample.table, list(pair), "pairs")
    for position in positions:
        if position not in sample.positions:
            raise ValueError(
                f"pairs must be of features, {', '.join(sample.names)}; got "
                f"{sample.table.names[position]!r}."
            )
    first, second = sorted(map(list(sample.positions).index, positions))
    return first, second


# --- H-statistics of all features and pairs -------------------------------------------------------


PDP_ROWS = 500
# More take gigabytes, and millions of rows of the model a pair.
MAX_PDP_ROWS = 5000
ALE_BINS = QuantileBins(10)
# Of influences that are part of the result, in its attribute.
KEPT = "kept"


@dataclass(frozen=True)
class HEstimator(Options):
    """How the joint effects of `h_statistic` are estimated, and from which rows.

    Parameters
    ----------
    kind : {"pdp", "ale"}, default "pdp"
        From partial dependences, as Friedman and Popescu do (math [60]); or from accumulated local
        effects of first and second order (math [61]), which never leave the data, and cost a few
        times n rows a pair.
    n_rows : int, None or "auto"
        Rows that are used, drawn at random from all, without their weights; None for all. "auto"
        is 500 with "pdp" and all with "ale". With "pdp" 5000 at most, since memory and time grow
        with their square. ``n_rows``, ``n_rows_total`` and ``row_seed`` in the
        attributes say what was done.
    bins : bin rule, optional
        For numeric features with kind "ale"; 10 quantiles by default. Not for "pdp".
    order : "as_is", sequence, or mapping
        Levels of categorical features with kind "ale", as in `ale2`.
    keep_answers : bool, default False
        Keep the answers of the model, for `bootstrap`: 8 n² bytes a feature, a pair and an output,
        in all 110 MB for 10 features, 45 pairs and 500 rows. With kind "pdp" only.
    n_pairs : int, None or "auto"
        How many pairs are estimated: those of the largest ``h_screening``, which a few rows of the
        model show (math [90]); None for all. "auto" is all up to 45 pairs (10 features), and else
        45, which a warning says.
    pairs : sequence of pairs of features, optional
        Pairs to estimate, in place of ``n_pairs``.

    Examples
    --------
    >>> import rhale_stats as rs
    >>> rs.HEstimator(kind="ale", bins=rs.QuantileBins(5)).n_rows
    'auto'
    """

    kind: str = "pdp"
    n_rows: int | str | None = "auto"
    bins: BinRule | None = None
    order: Order = "as_is"
    keep_answers: bool = False
    n_pairs: int | str | None = "auto"
    pairs: Sequence[tuple[str | int, str | int]] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("kind", self.kind, KINDS)
        if self.kind == "ale" and self.keep_answers:
            raise ValueError(
                "keep_answers must be False with kind='ale', which has no answers for pairs of "
                "rows; got True. Standard errors come with the result all the same."
            )
        as_is = isinstance(self.order, str) and self.order == "as_is"
        if self.kind == "pdp" and not (self.bins is None and as_is):
            raise ValueError(
                "bins and order are for kind='ale'; partial dependences have none. Leave them out."
            )
        if self.bins is not None:
            check_rules(self.bins)
        for name, number, least in (("n_pairs", self.n_pairs, 1), ("n_rows", self.n_rows, 2)):
            if isinstance(number, str):
                check_choice(name, number, ("auto",))
            elif number is not None:
                check_count(name, number, least)


@validated
def h_statistic(
    model: Model,
    X: Any,
    features: Sequence[str | int] | None = None,
    *,
    pairwise: bool = True,
    estimator: HEstimator = HEstimator(),
    normalize: bool = True,
    options: ModelOptions = ModelOptions(),
    rng: np.random.Generator | int | None = None,
    progress: bool = True,
    **fields: Any,
) -> xr.Dataset:
    r"""H-statistics: strength of the interactions, in total, per feature and per pair.

    Parameters
    ----------
    model, X
        As in `local_effects`.
    features : sequence of str or int, optional
        Columns to look at, two at least; by default all, of numbers or not.
    pairwise : bool, default True
        Look at pairs, too: at all of up to 10 features, and at the 45 that interact most of more;
        see ``n_pairs`` of `HEstimator`. With kind "pdp" a pair costs n² rows of the model.
    estimator : HEstimator, optional
        From partial dependences of which rows, or from accumulated local effects in which bins. Its
        fields can be given directly, as in ``kind="ale"``.
    normalize : bool, default True
        Whether `plots.h_statistics` shows the shares or the sizes; both are in the result.
    options : ModelOptions, optional
        As in `local_effects`. Rows without a value in one of ``features`` are left out with
        ``missing="drop"``, and counted in the attribute ``n_rows_missing``. With "bin" they are
        used. A missing value is then a value like any other, which the model must take; with kind
        "ale" a level, and so not of numeric features.
    rng : Generator, int or None
        Source of the rows that are drawn, or its seed; ``row_seed`` reproduces them.
    %(progress)s

    Returns
    -------
    Dataset
        ``h2``: share of the variance of the output that the main effects of ``features`` do not
        explain. ``h2_overall`` (feature): share that the effect of the feature plus the joint
        effect of all other features does not explain. ``h2_pairwise`` (feature, feature_other):
        share of the variance of the joint effect that both main effects do not explain; symmetric,
        NaN on the diagonal and for pairs left out. ``h``, ``h_overall`` and ``h_pairwise`` are the
        square roots of the numerators, in units of the output; unlike shares, they can be compared
        between pairs. Values within rounding error are 0; a share of a variance of 0 is 0.
        Attributes ``n_model_calls`` and ``n_model_rows`` give the cost. With several outputs the
        first dimension is ``output``.

        Each has a standard error for the sampling of rows, ``h2_se``, ``h2_overall_se`` and so on,
        and the influence of every row over (..., obs), ``h2_influence`` and so on, which
        `std_error` with ``groups`` and `compare` use. Influences of more than 64 MiB in total are
        not kept. If more than 1 GiB of predictions (or second differences) were needed in memory,
        there are no standard errors. The attribute ``influence`` reports both. ``row`` (obs) is the
        number of the row in ``X``, ``weight`` (obs) its weight where given. With ``keep_answers``
        also the predictions ``answers`` (feature, obs, obs_background), the output
        with the feature of row obs and all else of row obs_background, and ``answers_pair`` (pair,
        obs, obs_background) with the names ``pair_feature`` and ``pair_other``. If pairs were
        chosen, ``h_screening`` (feature, feature_other) is the size by which they were, in units of
        the output; ``n_pairs_left_out`` counts the others, and ``pair_seed`` reproduces the choice.

    Raises
    ------
    ValueError
        Fewer than two features, or one twice; missing values in them; invalid weights; output that
        is not finite; ``bins`` with "pdp"; ``keep_answers`` with "ale".
    KeyError
        Unknown feature or output.
    ModelError
        The model raised an error, or did not return one number per row.

    Notes
    -----
    *Many features.* The pairs to estimate are chosen by their superset importance (Liu and Owen
    2006): two columns of a row are replaced by those of another row, both, one or none of them, and
    the second difference of the output is squared and averaged, over 200 pairs of rows or fewer. It
    is 0 for a pair that does not interact, and it counts interactions with further features, too.
    With kind "ale" ``h2`` and ``h2_overall`` are sums over pairs, in which those left out are 0;
    with "pdp" they do not depend on pairs.

    Partial dependences combine values that may never occur together. With dependent features, H²
    therefore depends on predictions where there are no data. H² is also large for a pair with
    almost no main effects: look at ``h_pairwise``. Shares from "ale" are biased upwards if cells
    have few rows, because the noise of the cell means counts as interaction.

    Standard errors are those of the infinitesimal jackknife (math [62]), with the model and the
    bins of "ale" taken as given. Intervals of `confint` are on the log scale. In simulations with
    closed forms 95 % intervals from "pdp" contained the population value in 87 to 97 % of samples
    of 200 rows, and in 90 to 96 % of samples of 500; the lower figures are for products of normal
    features, whose squares have heavy tails. Intervals say how large an interaction is, not whether
    there is one: if H² is 0 in the population but positive in the sample, as for a pair that
    interacts only through a third feature, its bias is upwards, of order 1/n, and no interval
    contains 0. A statistic that is 0 up to rounding has standard error 0, because no sample of rows
    makes an additive model interact. With "ale" the coverage was 91 to 96 % with 500 rows and more,
    but about 80 % for two features with correlation 0.7: the standard error ignores which cells
    have rows, and how the others are filled.

    "pdp" is what R's hstats computes: a partial dependence is the mean over the rows used, and is
    taken at these rows. ``h2_overall`` needs one pass of n² rows per feature, because the same
    predictions give the partial dependence of the feature and that of all other features.

    Simulated coverage by kind of process, and what to use where this fails: docs/validity.md.

    References
    ----------
    Friedman and Popescu (2008), *Predictive learning via rule ensembles*, Annals of Applied
    Statistics 2, 916-954, Eq. 44 to 46. Mayer, *hstats*, R package. Apley and Zhu (2020), Eq. 17,
    for "ale". Liu and Owen (2006), *Estimating mean dimensionality of analysis of variance
    decompositions*, JASA 101, 712-721.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).normal(size=(400, 3))
    >>> found = rs.h_statistic(lambda X: X[:, 0] + X[:, 1] + X[:, 0] * X[:, 1], X, n_rows=None)
    >>> found["h2_overall"].round(2).values
    array([0.28, 0.28, 0.  ])
    """
    if isinstance(features, str | int | np.integer):
        raise TypeError(f"features must be a sequence of two columns or more; got {features!r}.")
    sample, kind = Sample.from_table(X, options), estimator.kind
    table, positions = sample.table, list(range(len(sample.table.names)))
    positions = positions if features is None else columns_named(table, features)
    if len(positions) < 2:
        raise ValueError(
            f"features must be at least two, for something to interact; got {len(positions)}."
        )
    sample = sample.of_columns(positions)
    gaps = _gaps(sample, kind, estimator.order)
    rows, seed = _rows_used(estimator.n_rows, kind, sample.present, gaps, rng)
    used = sample.take(rows)
    w = np.ones(len(rows)) if used.weight is None else used.weight
    weighted, quotients = replace(used, weight=w), used.quotients(model)
    chosen = FeaturePairs([])
    if pairwise or kind == "ale":
        chosen = pairs_to_estimate(quotients, weighted, estimator, rng, progress=progress)
    pairs = chosen.pairs
    n_terms = len(pairs) + (len(positions) if kind == "pdp" else 0)
    rule = ALE_BINS if estimator.bins is None else check_rules(estimator.bins)[0]
    with progress_bar(n_terms, "H-statistics", "term", progress=progress) as bar:
        if kind == "pdp":
            squares = from_partial_dependence(
                quotients, weighted, pairs, bar, keep_answers=estimator.keep_answers
            )
        else:
            squares = from_ale(quotients, weighted, pairs, rule, estimator.order, bar)
    # What becomes of the influences of rows: kept where they are known and small enough.
    influence = f"none: more than {HELD_BYTES >> 20} MiB to hold"
    if squares.influences is not None:
        n_statistics = 2 * (1 + len(positions) + len(positions) ** 2 * pairwise)
        n_bytes = n_statistics * len(rows) * len(squares.least) * 8
        influence = KEPT if n_bytes <= KEPT_BYTES else f"not kept: more than {KEPT_BYTES >> 20} MiB"
    parts = [
        dataset(squares, weighted, number, pairwise=pairwise, keep=influence == KEPT)
        for number in range(len(squares.least))
    ]
    out = stack(parts, OUTPUT)
    if pairwise and chosen.size is not None:
        size, dims = np.moveaxis(chosen.size, -1, 0), (OUTPUT, "feature", OTHER)
        out["h_screening"] = variable("h_screening", size, H_STATISTICS, dims)
    out = out.assign_coords(
        obs=used.obs, row=("obs", rows, {"long_name": "number of the row", "units": "1"})
    )
    if sample.weight is not None:
        out["weight"] = ("obs", w, {"long_name": "row weight", "units": "1"})
    out.attrs |= {
        "method": METHOD,
        "h_kind": kind,
        "estimator": "math [60]" if kind == "pdp" else "math [61]",
        "normalize": int(normalize),
        "n_features": len(positions),
        "n_rows": len(rows),
        "n_rows_total": table.n_rows,
        "n_rows_missing": int((gaps & sample.present).sum()),
        "missing": sample.missing,
        "row_seed": seed,
        "table_hash": _fingerprint(table, positions),
        "influence": influence,
        "n_pairs_left_out": chosen.left_out,
        "pair_seed": chosen.seed,
        **sample.facts,
        "n_model_calls": quotients.outputs.n_calls,
        "n_model_rows": quotients.outputs.n_rows,
    }
    if kind == "ale":
        out.attrs["bin_rule"], out.attrs["bin_parameters"] = describe(rule)
    return with_outputs(out, quotients.outputs.labels, quotients.outputs.names)


def _gaps(sample: Sample, kind: str, order: Order) -> NDArray[np.bool_]:
    """Rows to leave out for want of a value; refused where that was not said."""
    table = sample.table
    gaps = np.zeros(table.n_rows, dtype=bool)
    for position, name in zip(sample.positions, sample.names, strict=True):
        without = sample.gaps(position, numeric=table.is_numeric(position))
        numeric = kind == "ale" and order_of(order, table, position) is None
        if without.any() and sample.missing == "bin" and numeric:
            raise ValueError(
                f"missing must not be 'bin' for numeric features with kind='ale': a missing value "
                f"has no place along {name!r}, which has {int(without.sum())} in "
                f"{int(sample.present.sum())} rows. Use missing='drop', or kind='pdp'."
            )
        if sample.missing == "drop":
            gaps |= without
    return gaps


def _fingerprint(table: Table, positions: list[int]) -> str:
    """What tells tables apart, in whatever order features are named.

    `compare` pairs the rows of one table only.
    """
    digest = hashlib.blake2b(digest_size=16)
    for position in sorted(positions, key=lambda position: table.names[position]):
        column = (
            pd.Series(table.column(position))
            if table.is_numeric(position)
            else table.series(position).astype(str)
        )
        digest.update(pd.util.hash_pandas_object(column, index=False).to_numpy().tobytes())
    return digest.hexdigest()


def _rows_used(
    n_rows: int | str | None,
    kind: str,
    present: NDArray[np.bool_],
    gaps: NDArray[np.bool_],
    rng: np.random.Generator | int | None,
) -> tuple[IntArray, int]:
    """Numbers of all rows with a weight and all values, or of a sample; its seed (or -1)."""
    rows = np.flatnonzero(present & ~gaps)
    if not len(rows):
        raise ValueError(
            f"X must have rows with values of all features; got none of {int(present.sum())}. Look "
            f"at fewer features, or take missing='bin'."
        )
    if isinstance(n_rows, str):
        n_rows = PDP_ROWS if kind == "pdp" else None
    used = len(rows) if n_rows is None else min(n_rows, len(rows))
    if kind == "pdp" and used > MAX_PDP_ROWS:
        raise ValueError(
            f"n_rows must leave at most {MAX_PDP_ROWS} rows with kind='pdp', which asks the model "
            f"for n² rows a pair and holds as many answers; got n_rows={n_rows} of {len(rows)} "
            f"rows. Use n_rows={PDP_ROWS}, or kind='ale'."
        )
    if n_rows is None or n_rows >= len(rows):
        return rows, -1
    seed = number_of(rng)
    drawn = np.random.default_rng(seed).choice(len(rows), n_rows, replace=False)
    return rows[np.sort(drawn)], seed
