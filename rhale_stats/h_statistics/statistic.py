"""H-statistics of all features and pairs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from tqdm import tqdm

from rhale_stats.arguments.checks import check_choice, check_count
from rhale_stats.arguments.progress import PROGRESS_DELAY
from rhale_stats.arguments.seeds import number_of
from rhale_stats.arguments.words import first_rows
from rhale_stats.arrays.moments import IntArray
from rhale_stats.bins.description import describe
from rhale_stats.bins.fixed import QuantileBins
from rhale_stats.bins.rule import BinRule
from rhale_stats.h_statistics.from_ale import from_ale
from rhale_stats.h_statistics.from_pdp import HELD_BYTES, KEPT_BYTES, from_partial_dependence
from rhale_stats.h_statistics.labelled import KINDS, METHOD, Found, dataset
from rhale_stats.local.local_effects import MISSING
from rhale_stats.models.differences import DifferenceQuotients
from rhale_stats.models.outputs import Model, OutputLabels
from rhale_stats.models.table import Table, as_table, check_column
from rhale_stats.schema.dimensions import OUTPUT, with_outputs
from rhale_stats.schema.door import checked
from rhale_stats.schema.features import position_of
from rhale_stats.schema.identity import row_coordinate
from rhale_stats.schema.stacking import stack
from rhale_stats.schema.variables import software
from rhale_stats.surfaces.axes import Order, check_rules, order_of

PDP_ROWS = 500
# More take gigabytes, and millions of rows of the model a pair.
MOST_PDP_ROWS = 5000
ALE_BINS = QuantileBins(10)


@checked
def h_statistic(
    model: Model,
    X: Any,
    *,
    features: Sequence[str | int] | None = None,
    pairwise: bool = True,
    kind: str = "pdp",
    n_rows: int | str | None = "auto",
    bins: BinRule | None = None,
    order: Order = "as_is",
    weights: ArrayLike | None = None,
    weight_kind: str = "precision",
    output: OutputLabels = None,
    scale: str = "response",
    normalize: bool = True,
    missing: str = "raise",
    keep_answers: bool = False,
    rng: np.random.Generator | int | None = None,
    progress: bool = True,
) -> xr.Dataset:
    r"""H-statistics: strength of the interactions, in total, per feature and per pair.

    Parameters
    ----------
    model, X, weights, weight_kind, output, scale
        As in `local_effects`.
    features : sequence of str or int, optional
        Columns to look at, two at least; by default all, of numbers or not.
    pairwise : bool, default True
        Look at all pairs, too. With kind "pdp" a pair costs n² rows of the model.
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
    normalize : bool, default True
        Whether `plot_h_statistics` shows the shares or the sizes; both are in the result.
    missing : {"raise", "drop", "bin"}, default "raise"
        Rows without a value in one of ``features``: refused; left out, and counted in the attribute
        ``n_rows_missing``; or, with "bin", used. A missing value is then a value like any other,
        which the model must take; with kind "ale" a level, and so not of numeric features.
    keep_answers : bool, default False
        Keep the answers of the model, for `bootstrap`: 8 n² bytes a feature, a pair and an output,
        in all 110 MB for 10 features, 45 pairs and 500 rows. With kind "pdp" only.
    rng : Generator, int or None
        Source of the rows that are drawn, or its seed; ``row_seed`` reproduces them.
    progress : bool, default True
        Show a bar on work over two seconds.

    Returns
    -------
    Dataset
        ``h2``: share of the variance of the output that the main effects of ``features`` do not
        explain. ``h2_overall`` (feature): share that the effect of the feature plus the joint
        effect of all other features does not explain. ``h2_pairwise`` (feature, feature_other):
        share of the variance of the joint effect that both main effects do not explain; symmetric,
        NaN on the diagonal. ``h``, ``h_overall`` and ``h_pairwise`` are the square roots of the
        numerators, in units of the output; unlike shares, they can be compared between pairs.
        Values within rounding error are 0; a share of a variance of 0 is 0. Attributes
        ``n_model_calls`` and ``n_model_rows`` give the cost. With several outputs the first
        dimension is ``output``.

        Each has a standard error for the sampling of rows, ``h2_se``, ``h2_overall_se`` and so on,
        and the influence of every row over (..., obs), ``h2_influence`` and so on, which
        `std_error` with ``groups`` and `compare` use. Influences of more than 64 MiB in total are
        not kept. If more than 1 GiB of predictions (or second differences) were needed in memory,
        there are no standard errors. The attribute ``influence`` reports both. ``row`` (obs) is the
        number of the row in ``X``, ``weight`` (obs) its weight where given. With ``keep_answers``
        also the predictions ``answers`` (feature, obs, obs_background), the output
        with the feature of row obs and all else of row obs_background, and ``answers_pair`` (pair,
        obs, obs_background) with the names ``pair_feature`` and ``pair_other``.

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

    References
    ----------
    Friedman and Popescu (2008), *Predictive learning via rule ensembles*, Annals of Applied
    Statistics 2, 916-954, Eq. 44 to 46. Mayer, *hstats*, R package. Apley and Zhu (2020), Eq. 17,
    for "ale".

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).normal(size=(400, 3))
    >>> found = rs.h_statistic(lambda X: X[:, 0] + X[:, 1] + X[:, 0] * X[:, 1], X, n_rows=None)
    >>> found["h2_overall"].round(2).values
    array([0.28, 0.28, 0.  ])
    """
    table = as_table(X)
    check_choice("kind", kind, KINDS)
    check_choice("weight_kind", weight_kind, ("precision", "frequency"))
    check_choice("missing", missing, MISSING)
    _check_for_kind(kind, bins, order, keep_answers=keep_answers)
    positions = _positions(table, features)
    weight = table.weights(weights, weight_kind)
    present = np.ones(table.n_rows, dtype=bool) if weight is None else weight > 0
    gaps = _gaps(table, positions, missing, kind, order, present)
    rows, seed = _rows_used(n_rows, kind, _complete(present, gaps), rng)
    w = np.ones(len(rows)) if weight is None else weight[rows]
    frequency = weight_kind == "frequency" and weight is not None
    quotients = DifferenceQuotients(model, table, output, scale).at(rows)
    pairs = list(combinations(range(len(positions)), 2)) if pairwise or kind == "ale" else []
    bar = tqdm(
        total=len(pairs) + (len(positions) if kind == "pdp" else 0),
        desc="H-statistics",
        disable=not progress,
        delay=PROGRESS_DELAY,
    )
    rule = ALE_BINS if bins is None else check_rules(bins)[0]
    with bar:
        if kind == "pdp":
            squares = from_partial_dependence(
                quotients, positions, pairs, w, bar, keep_answers=keep_answers
            )
        else:
            squares = from_ale(
                quotients, positions, pairs, w, rule, order, bar, frequency=frequency
            )
    names = [table.names[position] for position in positions]
    kept = _are_kept(squares, len(names), len(rows), pairwise=pairwise)
    out = stack(
        [
            dataset(squares, names, number, pairwise, w, frequency=frequency, kept=kept)
            for number in range(squares.total.shape[-1])
        ],
        OUTPUT,
    )
    dim, labels, about = row_coordinate(X, table.n_rows)
    out = out.assign_coords(
        obs=(dim, labels[rows], about),
        row=("obs", rows, {"long_name": "number of the row", "units": "1"}),
    )
    if weight is not None:
        out["weight"] = ("obs", w, {"long_name": "row weight", "units": "1"})
    attrs = getattr(X, "attrs", {})
    out.attrs |= {
        "method": METHOD,
        "h_kind": kind,
        "estimator": "math [60]" if kind == "pdp" else "math [61]",
        "normalize": int(normalize),
        "n_features": len(names),
        "n_rows": len(rows),
        "n_rows_total": table.n_rows,
        "n_rows_missing": int((gaps & present).sum()),
        "missing": missing,
        "row_seed": seed,
        "table_hash": _fingerprint(table, positions),
        "influence": _influence_text(squares, kept=kept),
        "weight_kind": weight_kind if weight is not None else "none",
        "n_model_calls": quotients.n_calls,
        "n_model_rows": quotients.n_rows,
        "output_name": str(attrs.get("output_name", "output")),
        "output_units": str(attrs.get("output_units", "")),
        "software": software(),
    }
    if kind == "ale":
        out.attrs |= {"bin_rule": describe(rule)[0], "bin_parameters": describe(rule)[1]}
    return with_outputs(out, quotients.outputs.labels, quotients.outputs.names)


def _are_kept(squares: Found, n_features: int, n_rows: int, *, pairwise: bool) -> bool:
    """Whether the influences of rows are known, and small enough to be part of the result."""
    n_statistics = 2 * (1 + n_features + n_features**2 * pairwise)
    n_bytes = n_statistics * n_rows * squares.total.shape[-1] * 8
    return squares.influences is not None and n_bytes <= KEPT_BYTES


def _influence_text(squares: Found, *, kept: bool) -> str:
    """What became of the influences of rows, as the attribute says it."""
    if kept:
        return "kept"
    if squares.influences is not None:
        return f"not kept: more than {KEPT_BYTES >> 20} MiB"
    return f"none: more than {HELD_BYTES >> 20} MiB to hold"


# --- arguments ------------------------------------------------------------------------------------


def _check_for_kind(kind: str, bins: object, order: object, *, keep_answers: bool) -> None:
    """Raise ``ValueError`` for arguments that only the other kind takes."""
    if kind == "ale" and keep_answers:
        raise ValueError(
            "keep_answers must be False with kind='ale', which has no answers for pairs of rows; "
            "got True. Standard errors come with the result all the same."
        )
    if kind == "pdp" and not (bins is None and isinstance(order, str) and order == "as_is"):
        raise ValueError(
            "bins and order are for kind='ale'; partial dependences have none. Leave them out."
        )


def _positions(table: Table, features: Sequence[str | int] | None) -> list[int]:
    if features is None:
        positions = list(range(len(table.names)))
    elif isinstance(features, str | int | np.integer):
        raise TypeError(f"features must be a sequence of two columns or more; got {features!r}.")
    else:
        positions = [position_of(feature, table.names) for feature in features]
    if len(set(positions)) < len(positions):
        raise ValueError(f"features must be distinct; got {features!r}.")
    if len(positions) < 2:
        raise ValueError(
            f"features must be at least two, for something to interact; got {len(positions)}."
        )
    return positions


def _gaps(
    table: Table,
    positions: list[int],
    missing: str,
    kind: str,
    order: Order,
    present: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """Rows to leave out for want of a value; refused where that was not said."""
    gaps = np.zeros(table.n_rows, dtype=bool)
    some = table.take(present)
    for position in positions:
        name = table.names[position]
        if table.is_numeric(position):
            kept = "raise" if missing == "raise" else "drop"
            without = np.isnan(check_column(some, position, missing=kept))
        else:
            without = some.series(position).isna().to_numpy()
        if without.any() and missing == "raise":
            raise ValueError(
                f"X of feature {name!r} must have a level in every row; got {int(without.sum())} "
                f"missing in {some.n_rows} rows (first rows: {first_rows(without)}). Drop or "
                f"impute these rows, or leave them out: missing='drop'."
            )
        numeric = kind == "ale" and order_of(order, table, position) is None
        if without.any() and missing == "bin" and numeric:
            raise ValueError(
                f"missing must not be 'bin' for numeric features with kind='ale': a missing value "
                f"has no place along {name!r}, which has {int(without.sum())} in {some.n_rows} "
                f"rows. Use missing='drop', or kind='pdp'."
            )
        if missing == "drop":
            gaps[present] |= without
    return gaps


def _complete(present: NDArray[np.bool_], gaps: NDArray[np.bool_]) -> IntArray:
    """Numbers of the rows of positive weight that have all values."""
    rows = np.flatnonzero(present & ~gaps)
    if not len(rows):
        raise ValueError(
            f"X must have rows with values of all features; got none of {int(present.sum())}. Look "
            f"at fewer features, or take missing='bin'."
        )
    return rows


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
    present: IntArray,
    rng: np.random.Generator | int | None,
) -> tuple[IntArray, int]:
    """All rows there are, or a sample of them, and the seed that it was drawn with (or -1)."""
    if isinstance(n_rows, str):
        check_choice("n_rows", n_rows, ("auto",))
        n_rows = PDP_ROWS if kind == "pdp" else None
    if n_rows is not None:
        check_count("n_rows", n_rows, 2)
    used = len(present) if n_rows is None else min(n_rows, len(present))
    if kind == "pdp" and used > MOST_PDP_ROWS:
        raise ValueError(
            f"n_rows must leave at most {MOST_PDP_ROWS} rows with kind='pdp', which asks the model "
            f"for n² rows a pair and holds as many answers; got n_rows={n_rows} of {len(present)} "
            f"rows. Use n_rows={PDP_ROWS}, or kind='ale'."
        )
    if n_rows is None:
        return present, -1
    if n_rows >= len(present):
        return present, -1
    seed = number_of(rng)
    drawn = np.random.default_rng(seed).choice(len(present), n_rows, replace=False)
    return present[np.sort(drawn)], seed
