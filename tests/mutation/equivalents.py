"""Mutants that no test can find, each with its reason: they compute the same."""

from __future__ import annotations

from tests.mutation.mutants import Mutant

SECOND_PASS = "the second pass takes off what is left of any centre near the rows"
BLOCKS = "the size of blocks changes time, memory and the last digits of sums only"
ROUNDING = "a tolerance of rounding, of which only the order matters"
SCALE = "one factor of the widths of all cells does not change which bins are best"
FIRST_BIN = "the first bin is number 0, which differs from -1 as it does from 1"
TWO_AXES = "the array has two axes, of which the last is axis 1"
ASSIGNED = "every element is assigned afterwards"
FOUR_SUMS = "only the first four sums are read"
AT_AN_EDGE = "an edge that both have is taken out afterwards"
SYMMETRIC = "the pseudo-inverse of a symmetric matrix, by another algorithm"
PAIRS = "both have the same number of rows, which was checked"
NO_BINS = "a constant feature has neither an axis nor bins"
NOT_READ = "a place that is sent and not read"
MORE_OFTEN = "gaps are looked for in more results, without one there is no warning"

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
        "…tted.column, x=fitted.column.x[:[0 → 1]], counts=None)": NOT_READ,
    },
    ("bins/searched.py", "BestEqualWidthBins._best"): {
        "tie = binning.TIE * losses[[0 → 1]] + span * candidate.resolution": ROUNDING,
    },
    ("bins/description.py", "cells_of"): {
        "…y(_axis_of(rule, column).edges)[[1 → 0]:-1]": (
            "the first edge is nearest to the first cell, which is added in any case"
        ),
    },
    ("effects/directions.py", "by_directions"): {
        "return Moved(_row_sums(summed[:[4 → 5]]), _row_sums(summed[4:8]), summ…": FOUR_SUMS,
        "…summed[:4]), _row_sums(summed[4:[8 → 9]]), summed[8])": FOUR_SUMS,
        "return Moved(own, own, [np.zeros → np.ones]((len(own.average), 0)))": "it has no elements",
    },
    ("effects/directions.py", "_spread_weights"): {
        "return sparse.csr_array([np.zeros → np.ones]((0, clusters.rows.n_rows)))": (
            "it has no elements"
        ),
    },
    ("effects/directions.py", "by_groups"): {
        "spread = [np.zeros → np.ones]((clusters.n_groups, 0))": "it has no elements",
    },
    ("effects/fit.py", "bin_degrees"): {
        "return [np.zeros → np.ones](0)": "it has no elements",
    },
    ("effects/fit.py", "spread_degrees"): {
        "… out=np.ones(len(n)), where=n > [0 → 1])": "one row has no degrees of freedom",
    },
    ("effects/estimates.py", "bin_slopes"): {
        "…inear & (sums.n_effective(bins) [> → >=] 2 * (1 + 1e-12)) & (x_m2 > 0)": ROUNDING,
    },
    ("effects/replicates.py", "of_sums"): {
        "…zero(np.diff(cells.bin, prepend=[- → ]1))": FIRST_BIN,
    },
    ("effects/tables.py", "curve_extent"): {
        "turns = [np.zeros → np.ones](0)": "it has no elements",
    },
    ("effects/estimates.py", "given_cells"): {
        "apart = np.abs(nearest - cells) [> → >=] 1e-09 * (edges[-1] - edges[0])": ROUNDING,
        "cells = cells[(cells [> → >=] edges[0]) & (cells < edges[-1])…": AT_AN_EDGE,
        "…lls[(cells > edges[0]) & (cells [< → <=] edges[-1])]": AT_AN_EDGE,
    },
    ("effects/groups_in_chunks.py", "_together"): {
        "…atArray | None = None if weight[[0 → 1]] is None else np.concatenate(we…": (
            "all chunks have weights, or none of them"
        ),
    },
    ("effects/hypotheses.py", "_grouped"): {
        "…nalg.pinv(covariance, hermitian=[True → False]) @ value)": SYMMETRIC,
    },
    ("effects/hypotheses.py", "_correlated"): {
        "…e / np.outer(se, se), hermitian=[True → False]) @ score)": SYMMETRIC,
    },
    ("effects/paired.py", "pairs_of"): {
        "unit = np.zeros(sizes[[0 → 1]], dtype=np.int64)": PAIRS,
        "…eats, source = (np.arange(sizes[[0 → 1]]), _multiplicity(paired), 'pair…": PAIRS,
    },
    ("effects/paired.py", "_multiplicity"): {
        "ones = np.ones(paired[[0 → 1]].sizes['obs'])": PAIRS,
    },
    ("effects/parameters.py", "rows_of"): {
        "cells = of('cell_curve', [np.zeros → np.ones](0)) if has_cells(row) else np.z…": (
            "it has no elements"
        ),
        "…eros(0)) if has_cells(row) else [np.zeros → np.ones](0)": "it has no elements",
        "curve = of('curve', [np.zeros → np.ones](0))": "it has no elements",
        "…es ** 2 if 'spread' in row else [np.zeros → np.ones](0)}": "it has no elements",
    },
    ("effects/rebinned.py", "_on_grid"): {
        "…ng=weighting, std_error_moments=[False → True])": "more moments take time only",
    },
    ("effects/shown.py", "_columns"): {
        "…ffect_ci'].attrs.get('ci_prob', [0.95 → 1.95])))": "every interval has its level",
    },
    ("effects/shown.py", "_tests"): {
        "table = glance(effect, [0.95 → 1.95])": "t and P do not depend on the level",
    },
    ("effects/sizes.py", "importances"): {
        "moments = np.zeros((n_cells, [2 → 3]))": "two columns are read",
        "moments = [np.zeros → np.ones]((n_cells, 2))": "cells have no slope that takes them",
        "…ments' in row else np.zeros((n, [2 → 3]))": "two columns are read",
    },
    ("effects/spread.py", "Fitted.of_skewness"): {
        "…ce(self.column, x=self.column.x[[ → 1]:0], counts=None))": "it has no elements",
        "…e(self.column, x=self.column.x[:[0 → 1]], counts=None))": NOT_READ,
    },
    ("effects/rhale.py", "_is_one_by_one"): {
        "many = rows.n_rows [>= → >] ONE_BY_ONE_FROM": "both ways give the same, one is faster",
    },
    ("effects/rhale.py", "_may_have_gaps"): {
        "return bool((known != n)[.any → .all]() or (at_edges != n + (n > 0)).…": (
            "a bin without rows leaves edges without a curve, too"
        ),
        "return bool((known [!= → ==] n).any() or (at_edges != n + (n…": MORE_OFTEN,
        "…n).any() or (at_edges != n + (n [> → >=] 0)).any())": MORE_OFTEN,
    },
    ("effects/box.py", "_degrees_together"): {
        "if shared * MOST_DEGREES [<= → <] parts.sum() ** 2:": "both sides give that number",
    },
    ("effects/estimates.py", "_of_squares"): {
        "if along.squares is None [or along.robust is None or along.robust_third is None → and "
        "along.robust is None and (along.robust_third is None)]:": "all of them are there, or none",
    },
    ("effects/passes.py", "residuals_for_edges"): {
        "if cells.axis is None [or → and] partition is None:": NO_BINS,
    },
    ("effects/passes.py", "second_pass"): {
        "if cells.axis is None [or → and] partition is None:": NO_BINS,
    },
    ("effects/in_bins.py", "_spread"): {
        "return np.where(n > [1 → 0], np.sqrt(squares / (n - 1)), np…": "0 / 0 of one draw is NaN",
    },
    ("effects/errors.py", "_of_features"): {
        "[of_others += [name for name in SKEWNESS if name in effect] → pass]": (
            "new ones take the place of the old"
        ),
    },
    ("effects/hypotheses.py", "_homogeneous"): {
        "if variance [<= → <] least ** 2:": "a continuous statistic is not equal to its limit",
        "…].values, x, g, None, frequency=[False → True], rng=np.random.default_rng(0))": (
            "there are no weights"
        ),
    },
    ("effects/labelled.py", "effects_of"): {
        "… 'cell_effect' in row), default=[0 → 1])": "without cells no array is over cells",
    },
    ("effects/paired.py", "paired_covariance"): {
        "…p.sqrt(np.where(pairs.repeats > [0 → 1], pairs.repeats, 1.0))": (
            "repeats are whole numbers, and 1 is 1 either way"
        ),
    },
}


def reason(mutant: Mutant) -> str | None:
    """Why a mutant computes the same, or None."""
    return EQUIVALENT.get((mutant.path, mutant.function), {}).get(mutant.text)
