"""Mutants that no test can find, each with its reason: they compute the same."""

from __future__ import annotations

from tests.mutation.mutants import Mutant

SECOND_PASS = "the second pass takes off what is left of any centre near the rows"
BLOCKS = "the size of blocks changes time, memory and the last digits of sums only"
ROUNDING = "a tolerance of rounding, of which only the order matters"
SCALE = "one factor of the widths of all cells does not change which bins are best"
FIRST_BIN = "the first bin is number 0, which differs from -1 as it does from 1"
TWO_AXES = "the array has two axes, of which the last is axis 1"
PAIRED = "only several models are paired, so that both sides are such results"
NUMBERS = "numbers of rows that the machine can hold fit into either type"
SLOWER = "the sum is a quick check, and the largest number the one that decides"
TOGETHER = "how many columns are asked for together changes no result"
ROWS_ASKED = "any number of rows shows which outputs a model has"
ASSIGNED = "every element is assigned afterwards"

# By module and function: the mutants as the list of survivors shows them.
EQUIVALENT: dict[tuple[str, str], dict[str, str]] = {
    ("arrays/moments.py", "_sorted_moments"): {
        "mean = centre [+ → -] g_sum / total": SECOND_PASS,
    },
    ("arrays/resample.py", "of_unions"): {
        "…nonzero(np.diff(bin_of, prepend=[- → ]1))": FIRST_BIN,
    },
    ("arrays/skewness.py", "clear_sign"): {
        "x = _standardised(values [- → +] values.mean(), cell, weight, CE…": (
            "the means of the cells are subtracted afterwards; this is for precision"
        ),
    },
    ("arrays/thinned.py", "thinned"): {
        "…1, np.arange(max(len(x) - ENDS, [0 → 1]), len(x))])": (
            "few rows, of which the first is kept as one of the first rows"
        ),
    },
    ("arrays/cells.py", "nested_edges"): {
        "beside = 1e-09 * (high - low) + [64 → 65] * np.spacing(np.abs(edges).max(…": ROUNDING,
    },
    ("arrays/resample.py", "Replicates.heterogeneity_se"): {
        "known = (usual > 1e-09 * [m2 ** 2 → (m2 * 2)]) & (ours > 0)": ROUNDING,
        "known = (usual > 1e-09 * m2 ** [2 → 3]) & (ours > 0)": ROUNDING,
    },
    ("effects/replicates.py", "_shared_out"): {
        "…np.clip(draws // resample.BLOCK [* → /] resample.BLOCK, resample.BLOCK,…": BLOCKS,
        "…lip(CHUNK_BYTES // (16 * n_rows [* → /] resample.BLOCK), 1, cpus()))": BLOCKS,
    },
    ("margins/averages.py", "_terms"): {
        "blocks = _blocks(asked, width [* → /] len(values))": BLOCKS,
    },
    ("margins/averages.py", "_blocks"): {
        "size = max(BATCH_ANSWERS [// → *] n_answers, 1)": BLOCKS,
    },
    ("arrays/spread.py", "_Search.best"): {
        "total[0] = [0.0 → 1.0]": "a constant is added to the costs of all partitions",
    },
    ("regional/split_losses.py", "split_losses"): {
        "…ape[1] for _, each in waiting)) [>= → >] PROBLEMS // 2:": BLOCKS,
    },
    ("arrays/intervals.py", "_drawn"): {
        "return ([np.zeros → np.ones]((n_draws, 0), np.float32), own)": "it has no elements",
    },
    ("arrays/cells.py", "gap_edges"): {
        "return [np.zeros → np.ones](0)": "it has no elements",
    },
    ("arrays/resample.py", "Replicates.curve_se"): {
        "[within -= np.sum(self.share * within, axis=1, keepdims=True) → pass]": (
            "a curve with its mean subtracted has none left"
        ),
    },
    ("arrays/splines.py", "_natural"): {
        "right = at[beyond] > z[-[1 → 0]]": "what is beyond the knots is above both ends or below",
    },
    ("h_statistics/inference.py", "accelerations"): {
        "…uence_of(found, name) * (weight [/ → *] weight.sum())": (
            "an acceleration does not depend on the unit of influences"
        ),
    },
    ("arrays/chosen_edges.py", "added_variance"): {
        "…nonzero(np.diff(bin_of, prepend=[- → ]1))": FIRST_BIN,
    },
    ("arrays/leverage.py", "degrees"): {
        "…m(parts @ overlap * parts, axis=[- → ]1)": TWO_AXES,
        "…ere(squares > 0, parts.sum(axis=[- → ]1) ** 2 / squares, np.inf))": TWO_AXES,
    },
    ("arrays/h_statistics.py", "Pair.moved"): {
        "out = [np.zeros → np.ones](by.shape)": ASSIGNED,
    },
    ("arrays/binning.py", "_of_many"): {
        "previous = [np.zeros → np.ones]((n_cells + 1, n_problems), dtyp…": ASSIGNED,
    },
    ("arrays/spread.py", "_sorted_residuals"): {
        "…k.add(sums[2], np.copysign(own, [1.0 → 0.0]))": "0.0 has the sign of 1.0",
    },
    ("arrays/accumulate.py", "places"): {
        "return np.asarray(np.where(v [<= → <] TINY, at, out), dtype=np.float6…": ROUNDING,
    },
    ("arrays/accumulate.py", "mean_distance"): {
        "away = np.where(v [<= → <] TINY, np.abs(at - root), away)": ROUNDING,
    },
    ("arrays/skewness.py", "_agreed"): {
        "return np.asarray(np.abs(mean) [> → >=] special.stdtrit(width - 1, 1 - …": (
            "a continuous statistic is not equal to its limit"
        ),
    },
    ("arrays/splines.py", "of_groups"): {
        "square = w / [w.sum → w.prod]() ** 2 if frequency else (w / w…": (
            "the degrees do not depend on the unit of the weights"
        ),
    },
    ("arrays/second_order.py", "surface_degrees"): {
        "step = max([1 → 0], BLOCK // len(total))": BLOCKS,
    },
    ("arrays/bin_error.py", "product_pvalue"): {
        "total = _total(rows.bin[[1 → 0]:], product, len(mean))": (
            "a pair of rows of two bins has the product 0, whichever bin it is added to"
        ),
    },
    ("arrays/categories.py", "line_order"): {
        "along = np.arange(n) - (n [- → +] 1) / 2": (
            "the sums of the eigenvectors are 0, so that a constant is projected to 0"
        ),
    },
    ("arrays/moments.py", "edge_finder"): {
        "if n_rows [>= → <] TABLE_FROM and len(edges):": (
            "a table finds the same places as a search, and is faster with many rows"
        ),
    },
    ("arrays/cells.py", "effects"): {
        "…nonzero(np.diff(bin_of, prepend=[- → ]1))": FIRST_BIN,
    },
    ("arrays/second_order.py", "noise_factors"): {
        "…1, where=~np.isnan(spread), out=[np.zeros → np.ones](len(n))))": (
            "the residual of a single row is 0, whatever it is multiplied by"
        ),
        "…(1, BLOCK // (size * (n_sides + [1 → 0])))": BLOCKS,
    },
    ("arrays/binning.py", "_extend"): {
        "…int((cost <= cost.min() + tie / [2 → 3]).argmax())": ROUNDING,
    },
    ("bins/description.py", "starts_of"): {
        "width = np.full(shape[1], (high [- → +] low) / shape[1]) if edges is No…": SCALE,
        "…(shape[1], (high - low) / shape[[1 → 0]]) if edges is None else np.diff…": SCALE,
    },
    ("bins/description.py", "_given_among"): {
        "…ges[(edges > cells[0]) & (edges [< → <=] cells[-1])]": (
            "the last edge is its own nearest, and is added in any case"
        ),
        "…, cells[-1] - edges[-1]) if end [> → >=] 0]": "a distance of 0 is not too large",
        "off = np.abs(nearest - inner) [> → >=] 1e-09 * (cells[-1] - cells[0])": ROUNDING,
        "…ny() or (beyond and max(beyond) [> → >=] 1e-09 * (cells[-1] - cells[0]))…": ROUNDING,
    },
    ("bins/searched.py", "BestEqualWidthBins._loss"): {
        "if not (n_effective(bins) [>= → >] max(self.min_obs, 2) * (1 - 1e-…": ROUNDING,
    },
    ("effects/spread.py", "residual_sums"): {
        "…itted.column, x=fitted.column.x[[ → 1]:0], counts=None)": "it has no elements",
    },
    ("bins/searched.py", "BestEqualWidthBins._best"): {
        "tie = binning.TIE * losses[[0 → 1]] + span * candidate.resolution": ROUNDING,
    },
    ("bins/description.py", "cells_of"): {
        "…y(_axis_of(rule, column).edges)[[1 → 0]:-1]": (
            "the first edge is nearest to the first cell, which is added in any case"
        ),
    },
    ("ensembles/comparison.py", "_at"): {
        "…nterp(z, curve.z, fit.curve) if [ → not]curve.levels else curve_of(found…": (
            "a curve is straight between the edges of its cells, as between levels"
        ),
    },
    ("ensembles/comparison.py", "_curve"): {
        "return _Curve([np.zeros → np.ones](0), [], None)": "it has no elements",
    },
    ("ensembles/comparison.py", "_of_feature"): {
        "if paired and rows[[0 → 1]] is not None and (rows[1] is no…": PAIRED,
        "…d rows[0] is not None and (rows[[1 → 0]] is not None):": PAIRED,
    },
    ("ensembles/comparison.py", "_are_paired"): {
        "both = ENSEMBLE.holds(a) [and → or] ENSEMBLE.holds(b)": (
            "the result of one model has no members, so that the numbers of members differ"
        ),
    },
    ("ensembles/comparison.py", "_points"): {
        "slack = 1e-09 * (z[-1] - z[[0 → 1]])": ROUNDING,
        "slack = 1e-09 * (z[[- → ]1] - z[0])": ROUNDING,
        "return np.asarray(np.clip(z[(z [>= → >] low - slack) & (z <= high + sla…": ROUNDING,
        "….clip(z[(z >= low - slack) & (z [<= → <] high + slack)], low, high))": ROUNDING,
    },
    ("ensembles/errors.py", "with_errors"): {
        "if np.isfinite(error.degrees)[.any → .all]():": (
            "folds have degrees of every estimate, and other members of none"
        ),
    },
    ("ensembles/given.py", "Draws.identity"): {
        "found = [0 → 1]": "any start of a checksum tells draws apart",
    },
    ("ensembles/cross.py", "_pooled"): {
        "…GRID, *TOTALS) if name in sound[[0 → 1]]]": "all members have the same estimates",
    },
    ("ensembles/given.py", "_chained"): {
        "least = 2 if by_chain else [1 → 0]": "a single number is no list, which is refused before",
    },
    ("ensembles/samples.py", "Table.whole"): {
        "…f.form.give(self.data.copy(deep=[not → ]COPY_ON_WRITE))": (
            "a table that is copied on write needs no copy before"
        ),
    },
    ("local/orders.py", "by_encoding"): {
        "place = np.round(found / scale, [12 → 13]) if scale > 0 else found": ROUNDING,
        "…ptp(found)), float(np.abs(found)[.max → .min]()))": ROUNDING,
    },
    ("local/rows.py", "honest_split"): {
        "…bs, dtype=np.int32 if n_obs < 2 [** → *] 31 else np.int64)": NUMBERS,
        "…(n_obs, dtype=np.int32 if n_obs [< → <=] 2 ** 31 else np.int64)": NUMBERS,
        "…_obs, dtype=np.int32 if n_obs < [2 → 3] ** 31 else np.int64)": NUMBERS,
        "… dtype=np.int32 if n_obs < 2 ** [31 → 32] else np.int64)": NUMBERS,
        "…(n_obs, dtype=np.int32 if n_obs [< → >=] 2 ** 31 else np.int64)": NUMBERS,
    },
    ("local/rows.py", "is_sized"): {
        "…sum('i,i->', g, g) <= MOST_SIZE [** → *] 2 or max(g.max(), -g.min()) <= …": SLOWER,
        "…n bool(np.einsum('i,i->', g, g) [<= → <] MOST_SIZE ** 2 or max(g.max(), …": SLOWER,
    },
    ("local/rows.py", "Rows._columns_to_sort"): {
        "return np.empty(([3 → 4] if self.weight is None else 4, …": "more room than is needed",
        "…((3 if self.weight is None else [4 → 5], self.n_rows))": "more room than is needed",
    },
    ("local/rows.py", "Rows._sorted_by"): {
        "of_x, of_g = ([[np.zeros → np.ones](0)] * len(self.x) for _ in rang…": (
            "it has no elements"
        ),
    },
    ("local/levels.py", "level_effects"): {
        "…r = max(1, quotients.batch_rows [// → *] (3 * sample.table.n_rows))": TOGETHER,
        "…max(1, quotients.batch_rows // ([3 → 4] * sample.table.n_rows))": TOGETHER,
    },
    ("local/levels.py", "_sides"): {
        "… answer.astype(np.float64, copy=[False → True])": "a copy of the same numbers",
    },
    ("local/request.py", "Request._features"): {
        "together = max(1, most // ([2 → 3] * len(x)))": TOGETHER,
        "together = max(1, most [// → *] (2 * len(x)))": TOGETHER,
        "precision = [0.0 → 1.0] if quotients is None else quoti…": "without a model it is unused",
        "most = [0 → 1] if quotients is None else quoti…": TOGETHER,
    },
    ("local/parameters.py", "Derivatives.slopes"): {
        "… = kernel.cell_ends(edges, x)[::[- → ]1] if edges is not None else aro…": (
            "a difference and the width that it is divided by both change their sign"
        ),
    },
    ("local/parameters.py", "_output"): {
        "…utputs.table.take(np.arange(min([2 → 3], table.n_rows))).copied())": ROWS_ASKED,
        "…ts(outputs.table.take(np.arange([min → max](2, table.n_rows))).copied())": ROWS_ASKED,
    },
    ("local/parameters.py", "Derivatives._parts"): {
        "…, progress=self.progress, scale=[True → False]) as bar:": (
            "the bar prints its numbers in another way"
        ),
    },
}


def reason(mutant: Mutant) -> str | None:
    """Why a mutant computes the same, or None."""
    return EQUIVALENT.get((mutant.path, mutant.function), {}).get(mutant.text)
