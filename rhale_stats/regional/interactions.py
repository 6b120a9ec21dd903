"""Which columns condition which effects: the drop by one split, for all pairs (math [37])."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike
from tqdm import tqdm

from rhale_stats.arguments.checks import check_choice, check_count
from rhale_stats.arguments.progress import PROGRESS_DELAY
from rhale_stats.arguments.seeds import source_of
from rhale_stats.bins.description import describe
from rhale_stats.bins.rule import BinRule
from rhale_stats.inference.adjustment import ADJUSTMENTS, adjusted
from rhale_stats.regional.columns import conditioning_columns
from rhale_stats.regional.losses import LOSSES, TIE, node_of, split_losses
from rhale_stats.regional.search import Settings, along, exchanged, least_of, tried_of
from rhale_stats.regional.splits import sides_of
from rhale_stats.regional.trees import NODE_VARIABLES, work_of
from rhale_stats.schema.door import checked
from rhale_stats.schema.features import feature_names
from rhale_stats.schema.variables import software


@checked
def interaction_matrix(
    local: xr.Dataset,
    *,
    conditioning: pd.DataFrame | ArrayLike | None = None,
    min_obs: int | None = None,
    n_thresholds: int = 20,
    thresholds: str = "quantile",
    bins: BinRule | None = None,
    loss: str = "index",
    n_permutations: int = 199,
    adjust: str = "holm",
    rng: np.random.Generator | int | None = None,
    progress: bool = True,
) -> xr.Dataset:
    """How much of the heterogeneity of every effect one split of every other column removes.

    Parameters
    ----------
    local : Dataset
        What `local_effects` returned.
    conditioning, min_obs, n_thresholds, thresholds, bins, loss, rng
        As in `regions`. The best threshold is not refined.
    n_permutations : int, default 199
        For the p-values; 0 for none.
    adjust : str, default "holm"
        How p-values are adjusted for the number of pairs, as in `wald_test`.
    progress : bool, default True
        Show a bar on work over two seconds.

    Returns
    -------
    Dataset
        Over (feature, conditioning): ``loss_drop``, the relative drop by the best split, 0 where
        none lowers the loss and NaN where none is allowed; ``best``, that split in words;
        ``pvalue``, of no better split than by chance, as in `regions`, of each column by itself;
        ``pvalue_adjusted``. Over feature: ``loss``. A drop near 1 where ``loss`` is next to nothing
        says little: compare losses first.

    Raises
    ------
    ValueError, TypeError
        As `regions`.

    Notes
    -----
    `regions` may split no node where a pair has a small p-value here, and the other way round: they
    test other hypotheses. Here each column is compared with permutations of its own best split, and
    the p-values are adjusted for the number of pairs. There the best split over all columns is
    compared with the best over all columns of the permuted rows: a column whose splits vary much by
    chance hides a smaller effect of another. Its split must also lower the loss by ``min_drop``.
    To find out which columns condition an effect take this matrix; to make regions of rows take
    `regions`, with ``conditioning`` limited to the columns in question.

    Examples
    --------
    >>> import rhale_stats as rs
    >>> example = rs.simulate.TwoRegimes()
    >>> local = rs.local_effects(None, example.sample(500, rng=0), jacobian=example.jacobian)
    >>> found = rs.interaction_matrix(local, n_permutations=0)
    >>> found["loss_drop"].to_pandas().round(2)
    conditioning    x1    x2    x3
    feature
    x1             NaN  0.05  0.95
    x2            0.00   NaN  0.00
    x3            0.00  0.00   NaN
    """
    if n_permutations:
        check_count("n_permutations", n_permutations, 1)
    check_choice("adjust", adjust, ADJUSTMENTS)
    settings = Settings(1, 0.0, 0.0, n_thresholds, thresholds, None, 0.05, max(n_permutations, 1))
    generator, seed = source_of(rng)
    work = work_of(local, bins, settings, loss, min_obs, 0.5, None, generator)
    names = feature_names(work.local)
    every = names
    if conditioning is not None:
        every = [one.name for one in conditioning_columns(work.local, conditioning, None)]
    shape = (len(names), len(every))
    drop, pvalue = np.full(shape, np.nan), np.full(shape, np.nan)
    best = np.full(shape, "", dtype=object)
    losses = np.full(len(names), np.nan)
    bar = tqdm(
        range(len(names)), "interactions", unit="feature", disable=not progress,
        delay=PROGRESS_DELAY,
    )  # fmt: skip
    for position in bar:
        problem = work.problem(position)
        if problem is None:
            continue
        node = node_of(problem, work.search, 0.0)
        losses[position] = node.loss
        found = work.conditioning(conditioning, names[position])
        at = [every.index(one.name) for one in found]
        tried = tried_of(found, node, settings, work.of_root)
        split = split_losses(problem, node, node.rows, tried)
        least = np.array([least_of([one]) for one in split])
        allowed = np.isfinite(least)
        if not node.worth:
            drop[position, at] = np.where(allowed, 0.0, np.nan)
            pvalue[position, at] = np.where(allowed, 1.0, np.nan) if n_permutations else np.nan
            continue
        drop[position, at] = np.where(allowed, np.maximum(1 - least / node.loss, 0.0), np.nan)
        for column, candidates, all_of_it in zip(found, tried, split, strict=True):
            if np.isfinite(least_of([all_of_it])):
                number = int(np.argmin(all_of_it))
                left, _ = sides_of(column, candidates, number, node.at)
                best[position, every.index(column.name)] = left.text
        if n_permutations:
            as_good = np.zeros(len(found))
            order = along(problem, node)
            tried = [one.take(order) for one in tried]
            for _ in range(n_permutations):
                mixed = exchanged(node, order, work.rng)
                again = split_losses(problem, node, mixed, tried)
                as_good += np.array([least_of([one]) for one in again]) <= least + TIE * node.loss
            pvalue[position, at] = np.where(allowed, (as_good + 1) / (n_permutations + 1), np.nan)
    known = np.isfinite(pvalue)
    adjusted_pvalue = np.full(shape, np.nan)
    if known.any():
        adjusted_pvalue[known] = adjusted(pvalue[known], adjust)
    dims = ("feature", "conditioning")
    return xr.Dataset(
        {
            "loss_drop": (
                dims,
                drop,
                {"long_name": "relative drop of the loss by the best split", "units": "1"},
            ),
            "best": (dims, best.astype(str), {"long_name": "best split", "units": "1"}),
            "pvalue": (
                dims,
                pvalue,
                {"long_name": "p-value of no better split than by chance", "units": "1"},
            ),
            "pvalue_adjusted": (
                dims,
                adjusted_pvalue,
                {"long_name": "adjusted p-value", "units": "1", "adjust": adjust},
            ),
            "loss": (
                "feature",
                losses,
                {"long_name": NODE_VARIABLES["loss"][0], "units": LOSSES[loss]},
            ),
        },
        {
            "feature": ("feature", np.array(names), {"long_name": "feature"}),
            "conditioning": ("conditioning", np.array(every), {"long_name": "conditioning column"}),
        },
        {
            "method": "interaction matrix",
            "loss_kind": loss,
            "n_permutations": n_permutations,
            "thresholds": thresholds,
            "n_thresholds": n_thresholds,
            "min_obs": work.min_obs,
            "bin_rule": describe(work.rule)[0],
            "bin_parameters": describe(work.rule)[1],
            "output_name": local.attrs.get("output_name", "output"),
            "output_units": local.attrs.get("output_units", ""),
            "n_rows": work.rows.n_rows,
            **({"seed": seed} if n_permutations else {}),
            "software": software(),
        },
    )
