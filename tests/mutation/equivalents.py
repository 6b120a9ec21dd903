"""Mutants that no test can find, each with its reason: they compute the same."""

from __future__ import annotations

from tests.mutation.mutants import Mutant

SECOND_PASS = "the second pass takes off what is left of any centre near the rows"
BLOCKS = "the size of blocks changes time, memory and the last digits of sums only"
ROUNDING = "a tolerance of rounding, of which only the order matters"
SCALE = "one factor of the widths of all cells does not change which bins are best"
FIRST_BIN = "the first bin is number 0, which differs from -1 as it does from 1"
TWO_AXES = "the array has two axes, of which the last is axis 1"
NUMBERS = "numbers of rows that the machine can hold fit into either type"
SLOWER = "the sum is a quick check, and the largest number the one that decides"
TOGETHER = "how many columns are asked for together changes no result"
ROWS_ASKED = "any number of rows shows which outputs a model has"
ASSIGNED = "every element is assigned afterwards"
NO_ELEMENTS = "it has no elements"
NO_LEVEL = "it has no intervals"
NO_BINS = "a constant feature has no bins, whichever its rows are said to be in"
ONE_OUTPUT = "of one output the unit does not change the order"
COPY = "a copy holds the same numbers"
ALL_OR_NONE = "a row has a curve at all points, or at none"
SIZES_OF_0 = "sizes that are all 0 keep their order, divided by 0 as well"
ZERO_SHARE = "0 divided by a variance is 0"
BAR = "a progress bar is drawn after two seconds, and changes no result"
BROADCAST = "both have the same dimensions and coordinates, after they were broadcast"
ALL_TERMS = "rows, weights and units are the same for every term"
FOUR_SUMS = "only the first four sums are read"
AT_AN_EDGE = "an edge that both have is taken out afterwards"
SYMMETRIC = "the pseudo-inverse of a symmetric matrix, by another algorithm"
PAIRS = "both have the same number of rows, which was checked"
NOT_READ = "a place that is sent and not read"
MORE_OFTEN = "gaps are looked for in more results, without one there is no warning"

# By module and function: the mutants as the list of survivors shows them.
EQUIVALENT: dict[tuple[str, str], dict[str, str]] = {
    ("arrays/resample.py", "of_unions"): {
        "…nonzero(np.diff(bin_of, prepend=[- → ]1))": FIRST_BIN,
    },
    ("arrays/skewness.py", "clear_sign"): {
        "x = _standardised(values [- → +] values.mean(), cell, weight, CE…": (
            "the means of the cells are subtracted afterwards; this is for precision"
        ),
    },
    ("arrays/binning.py", "thinned"): {
        "…1, np.arange(max(len(x) - ENDS, [0 → 1]), len(x))])": (
            "few rows, of which the first is kept as one of the first rows"
        ),
    },
    ("arrays/cells.py", "nested_edges"): {
        "beside = 1e-09 * (high - low) + [64 → 65] * np.spacing(np.abs(edges).max(…": ROUNDING,
    },
    ("arrays/resample.py", "BinReplicates.heterogeneity_se"): {
        "usable = (usual > 1e-09 * [m2 ** 2 → (m2 * 2)]) & (ours > 0)": ROUNDING,
        "usable = (usual > 1e-09 * m2 ** [2 → 3]) & (ours > 0)": ROUNDING,
    },
    ("effects/replicates.py", "_shared_out"): {
        "…np.clip(draws // resample.BLOCK [* → /] resample.BLOCK, resample.BLOCK,…": BLOCKS,
        "…lip(CHUNK_BYTES // (16 * n_rows [* → /] resample.BLOCK), 1, cpus()))": BLOCKS,
    },
    ("margins/averages.py", "_at_values"): {
        "… = _blocks(quotients, 4 * width [* → /] len(values))": BLOCKS,
        "blocks = _blocks(quotients, 4 [* → /] width * len(values))": BLOCKS,
        "blocks = _blocks(quotients, [4 → 5] * width * len(values))": BLOCKS,
    },
    ("margins/averages.py", "_blocks"): {
        "size = max(BATCH_ANSWERS [// → *] n_answers, 1)": BLOCKS,
    },
    ("margins/averages.py", "_ByLevel.averages"): {
        "units = of_terms[[0 → 1]].units._replace(moved=moved)": ALL_TERMS,
        "…p.concatenate([term.n_effective [<= → <] 1 + 1e-12 for term in means])": ROUNDING,
    },
    ("diagnostics/checks.py", "_jumps"): {
        "rounding = rounding_of_output + [16 → 17] * float(np.finfo(np.float64).ep…": ROUNDING,
        "of_squares = [2 → 3] * rounding * size + rounding **…": ROUNDING,
        "…* rounding * size + rounding ** [2 → 3]": ROUNDING,
    },
    ("diagnostics/checks.py", "check_unbiased"): {
        "threads = 1 if rows['x'].size [< → <=] THREADS_FROM else cpus()": (
            "threads change time only"
        ),
        "threads = 1 if rows['x'].size [< → >=] THREADS_FROM else cpus()": (
            "threads change time only"
        ),
    },
    ("diagnostics/chance.py", "_without_information"): {
        "sample = table.copy(deep=[False → True])": "a column is replaced, not changed in place",
    },
    ("regional/losses.py", "SplitTest.drawn"): {
        "at_once = max([min → max](BLOCK_ROWS // len(tried[0].code…": BLOCKS,
    },
    ("regional/losses.py", "_in_batches"): {
        "if n_waiting >= PROBLEMS [// → *] 2:": BLOCKS,
        "if n_waiting >= PROBLEMS // [2 → 3]:": BLOCKS,
        "if n_waiting [>= → <] PROBLEMS // 2:": BLOCKS,
        "if n_waiting [>= → >] PROBLEMS // 2:": BLOCKS,
    },
    ("regional/tables.py", "_region_test_notes"): {
        "notes[[- → ]1] += ' Each permutation repeats…": "there are two notes",
    },
    ("regional/tables.py", "first_trees"): {
        "…e = (trees_summary(trees, None, [0.95 → 1.95]), glance_trees(trees, 0.95))": NO_LEVEL,
        "…one, 0.95), glance_trees(trees, [0.95 → 1.95]))": NO_LEVEL,
    },
    ("regional/tables.py", "first_interactions"): {
        "…eractions_summary(matrix, None, [0.95 → 1.95]), tidy_interactions(matrix, 0.9…": NO_LEVEL,
        "….95), tidy_interactions(matrix, [0.95 → 1.95]))": NO_LEVEL,
    },
    ("regional/splits.py", "rule_text"): {
        "…f c.operator == ABOVE), default=[- → ]np.inf)": "both say that there is no limit",
        "…threshold_text(end, conditions[-[1 → 0]].units) for end in (below, abov…": (
            "all conditions on a column have its units"
        ),
    },
    ("regional/splits.py", "_smallest"): {
        "return np.uint8 if n_codes [<= → <] 256 else np.int32": "the same numbers in more memory",
    },
    ("regional/regions.py", "SearchRows._counted"): {
        "…unt(region[inside], weight, int([leaves.max → leaves.min]()) + 1)": (
            "every region has rows, the last one too"
        ),
        "…e], weight, int(leaves.max()) + [1 → 0])": "every region has rows, the last one too",
    },
    ("regional/losses.py", "problem_of"): {
        "…ws(axis, x, np.int16 if n_cells [< → <=] 2 ** 15 else np.int32)": (
            "the numbers of 32,768 cells fit into 16 bits"
        ),
    },
    ("regional/losses.py", "Problem.node"): {
        "worth = spread [> → >=] (4 * exact) ** 2 and loss > 0 a…": (
            "a spread of 0 leaves a loss of 0 as well"
        ),
    },
    ("regional/splits.py", "_numeric"): {
        "looks = (values[[ → 1]:GLANCE], values)": ("all values are looked at afterwards"),
        "looks = (values[:GLANCE[ → - 1]], values)": ("all values are looked at afterwards"),
    },
    ("regional/trees.py", "rows_of_nodes"): {
        "… np.where(region >= 0, region, -[2 → 3])[:, None]": "no row has a region below -1",
    },
    ("regional/comparisons.py", "regional_ale"): {
        "…s, weighting='rows', has_spread=[False → True]), 0)": "no spread is asked for",
    },
    ("regional/losses.py", "CurveProblem.node"): {
        "worth = loss > ([4 → 5] * self.error) ** 2": ROUNDING,
    },
    ("regional/search.py", "SplitTree._refined"): {
        "others = node.rows.table(side, [3 → 4])[:, [0, 2]]": "the fourth side has no rows",
        "side = (values [> → >=] low).astype(np.uint8) + (values…": (
            "a row on an end is on the same side of all thresholds between the ends"
        ),
        "…low).astype(np.uint8) + (values [>= → >] high)": (
            "a row on an end is on the same side of all thresholds between the ends"
        ),
    },
    ("arrays/spread.py", "_SpreadSearch.best"): {
        "total[0] = [0.0 → 1.0]": "a constant is added to the costs of all partitions",
    },
    ("arrays/intervals.py", "_drawn"): {
        "nothing = [np.zeros → np.ones]((n_draws, 0), np.float32)": "it has no elements",
    },
    ("arrays/cells.py", "gap_edges"): {
        "return [np.zeros → np.ones](0)": "it has no elements",
    },
    ("arrays/resample.py", "BinReplicates.curve_se"): {
        "[within -= np.sum(self.share * within, axis=1, keepdims=True) → pass]": (
            "a curve with its mean subtracted has none left"
        ),
    },
    ("arrays/splines.py", "_natural"): {
        "right = x[beyond] > z[-[1 → 0]]": "what is beyond the knots is above both ends or below",
    },
    ("h_statistics/inference.py", "accelerations"): {
        "…ence_of(result, name) * (weight [/ → *] weight.sum()), np.ones(1))": (
            "an acceleration does not depend on the unit of influences"
        ),
    },
    ("arrays/adaptive.py", "added_variance"): {
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
    ("arrays/accumulate.py", "places"): {
        "return np.asarray(np.where(v [<= → <] TINY, position, out), dtype=np.…": ROUNDING,
    },
    ("arrays/accumulate.py", "mean_distance"): {
        "away = np.where(v [<= → <] TINY, np.abs(position - root), …": ROUNDING,
    },
    ("arrays/skewness.py", "_agreed"): {
        "return np.asarray((np.abs(mean) [> → >=] limit * spread) & (n >= MIN_CEL…": (
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
    ("bins/description.py", "_given_among"): {
        "…ges[(edges > cells[0]) & (edges [< → <=] cells[-1])]": (
            "the last edge is its own nearest, and is added in any case"
        ),
        "…, cells[-1] - edges[-1]) if end [> → >=] 0]": "a distance of 0 is not too large",
        "…ny() or (beyond and max(beyond) [> → >=] 1e-09 * (cells[-1] - cells[0]))…": ROUNDING,
    },
    ("bins/rule.py", "among"): {
        "…arest, np.abs(nearest - wanted) [<= → <] 1e-09 * (edges[-1] - edges[0]))": ROUNDING,
    },
    ("bins/rules.py", "BestEqualWidthBins._loss"): {
        "if not (n_effective(bins) [>= → >] max(self.min_obs, 2) * (1 - 1e-…": ROUNDING,
    },
    ("bins/rules.py", "BestEqualWidthBins._best"): {
        "tie = binning.TIE * losses[[0 → 1]] + span * candidate.resolution": ROUNDING,
    },
    ("bins/description.py", "cells_of"): {
        "…y(_axis_of(rule, column).edges)[[1 → 0]:-1]": (
            "the first edge is nearest to the first cell, which is added in any case"
        ),
    },
    ("profiles/rows.py", "in_bins"): {
        "return ([np.zeros → np.ones](len(x), dtype=np.intp), np.zero…": NO_BINS,
        "…p.zeros(len(x), dtype=np.intp), [np.zeros → np.ones](0))": NO_ELEMENTS,
    },
    ("profiles/inference.py", "_acceleration"): {
        "return [np.zeros → np.ones](0)": NO_ELEMENTS,
    },
    ("profiles/rows.py", "rows_behind"): {
        "has_curve = ~np.isnan(curves)[.any → .all](axis=1) & (row.sizes['grid'] > …": ALL_OR_NONE,
        "cell = [np.zeros → np.ones](len(x), dtype=np.intp)": NO_BINS,
    },
    ("profiles/rows.py", "check_curves"): {
        "same = bool((apart [<= → <] 1e-09 * np.abs(behind.values).m…": ROUNDING,
    },
    ("profiles/pdp.py", "_average"): {
        "return _Mean(estimates, [np.zeros → np.ones](0), np.zeros((n_outputs, 0)))": NO_ELEMENTS,
        "…n _Mean(estimates, np.zeros(0), [np.zeros → np.ones]((n_outputs, 0)))": NO_ELEMENTS,
    },
    ("profiles/inputs.py", "at_rows"): {
        "…_rows().astype(np.float64, copy=[False → True])": COPY,
    },
    ("profiles/inputs.py", "no_rows"): {
        "none, nan = ([np.zeros → np.ones]((n_outputs, 0)), np.full(n_outp…": NO_ELEMENTS,
        "…curve_se'), none), 'curve_cov': [np.zeros → np.ones]((n_outputs, 0, 0)), **dict.from…": (
            NO_ELEMENTS
        ),
        "…rtance'), nan), 'weight_share': [np.zeros → np.ones](0)}": NO_ELEMENTS,
    },
    ("profiles/inputs.py", "_block"): {
        "sums = [np.zeros → np.ones](n_rows)": "of the sums only matters whether they are finite",
    },
    ("h_statistics/inference.py", "_rounding"): {
        "…ive = np.divide(size, root, out=[np.zeros_like → np.ones_like](root), where=root > 0)": (
            "a share of size 0 is 0, whatever it is multiplied by"
        ),
    },
    ("h_statistics/inference.py", "_paired_errors"): {
        "influence = [np.zeros → np.ones]((*result[name].shape, len(every…": (
            "other rows have weight 0"
        ),
    },
    ("h_statistics/inference.py", "_adjusted"): {
        "…= np.triu_indices(len(p_value), [1 → 0])": (
            "a feature is no pair with itself: its p-value is NaN, and is not counted"
        ),
    },
    ("h_statistics/inference.py", "_differences"): {
        "…e = np.where(np.abs(difference) [<= → <] _rounding(a, b, name), 1.0, p_v…": ROUNDING,
    },
    ("h_statistics/tables.py", "_largest_first"): {
        "…und(-size / (largest if largest [> → >=] 0 else 1.0), 9)": SIZES_OF_0,
        "… / (largest if largest > 0 else [1.0 → 0.0]), 9)": SIZES_OF_0,
        "…rgest if largest > 0 else 1.0), [9 → 10])": ROUNDING,
    },
    ("h_statistics/tables.py", "share"): {
        "return np.where(value [> → >=] WHOLE, np.nan, value)[()]": ROUNDING,
    },
    ("h_statistics/tables.py", "_frame"): {
        "above = frame['h2'] [> → >=] WHOLE": ROUNDING,
    },
    ("h_statistics/tables.py", "glance"): {
        "… frame.assign(reason=reason) if [reason.any → reason.all]() else frame": (
            "the frame has one line"
        ),
    },
    ("h_statistics/estimates.py", "_partial_dependence"): {
        "… answer.astype(np.float64, copy=[False → True]).reshape(len(part), n, -1)": COPY,
    },
    ("h_statistics/estimates.py", "predictions"): {
        "… answer.astype(np.float64, copy=[False → True])": COPY,
    },
    ("h_statistics/statistic.py", "_answers"): {
        "… answer.astype(np.float64, copy=[False → True])": COPY,
    },
    ("h_statistics/statistic.py", "pairs_to_estimate"): {
        "if len(spread) > [1 → 0]:": ONE_OUTPUT,
        "if len(spread) [> → >=] 1:": ONE_OUTPUT,
    },
    ("h_statistics/estimates.py", "statistics"): {
        "upper = np.where(upper [> → >=] least, upper, 0.0)": ROUNDING,
        "where = (upper [> → >=] 0) & (lower > 0)": ZERO_SHARE,
    },
    ("h_statistics/estimates.py", "_with_influences"): {
        "upper = np.where(upper [> → >=] least, upper, 0.0)": ROUNDING,
    },
    ("h_statistics/inference.py", "replicates"): {
        "prediction = np.diagonal(values[[0 → 1]])": (
            "with its own value of any feature a row has its own prediction"
        ),
    },
    ("h_statistics/estimates.py", "_main_effect"): {
        "return ([np.zeros → np.ones]((quotients.table.n_rows, n_outp…": (
            "the mean of the sum of effects is subtracted afterwards"
        ),
    },
    ("surfaces/inference.py", "with_parameters"): {
        "…r(surface.attrs['weight_kind']) [== → !=] 'frequency'": (
            "only influences of rows on the parameters need it, which are not asked for"
        ),
    },
    ("surfaces/comparison.py", "_square_of_cells"): {
        "…[has_error], np.eye(n) / max(n, [1 → 0]), covariance, degrees)": NO_ELEMENTS,
    },
    ("surfaces/comparison.py", "_groups_of_pairs"): {
        "return np.asarray(by_surface[[0 → 1]])": "both have the same groups here",
    },
    ("surfaces/tables.py", "glance"): {
        "shown = (np.abs(values) [> → >=] least) & (se > 0)": ROUNDING,
    },
    ("surfaces/comparison.py", "tidy"): {
        "…s[0])}, index=range(len(corners[[0 → 1]])))": "both axes have as many places",
    },
    ("surfaces/comparison.py", "wald_test"): {
        "…where(np.abs(rows.arrays.delta) [<= → <] least, 0.0, rows.arrays.delta)": ROUNDING,
        "…sum() / total, 0.0)) if total > [0 → 1] else float('nan')": (
            "a cell with a spread has two rows at least"
        ),
        "…e) & np.isfinite(spread) & (n > [0 → 1])": "a cell with a spread has two rows at least",
    },
    ("surfaces/inference.py", "_changes"): {
        "…_of(surface, missing), progress=[False → True])": BAR,
    },
    ("h_statistics/inference.py", "_changes"): {
        "out = {name: [np.zeros → np.ones]((n_directions, result[name].siz…": ASSIGNED,
        "…None, options=options, progress=[False → True])": BAR,
    },
    ("surfaces/ale2.py", "predict"): {
        "array = xr.DataArray(out, pair[[0 → 1]].coords, pair[0].dims, 'surface…": BROADCAST,
        "…Array(out, pair[0].coords, pair[[0 → 1]].dims, 'surface', surface['surf…": BROADCAST,
    },
    ("ensembles/intervals.py", "_of_effect"): {
        "if [ → not]effect.is_categorical:": (
            "a curve is straight between the edges of its cells, as between levels"
        ),
    },
    ("ensembles/intervals.py", "_curve"): {
        "…ges if effect.sizes['bin'] else [np.zeros → np.ones](0)": NO_ELEMENTS,
    },
    ("ensembles/intervals.py", "_of_feature"): {
        "slack = 1e-09 * (z[-1] - z[[0 → 1]])": ROUNDING,
        "slack = 1e-09 * (z[[- → ]1] - z[0])": ROUNDING,
        "z = np.clip(z[(z [>= → >] low - slack) & (z <= high + sla…": ROUNDING,
        "….clip(z[(z >= low - slack) & (z [<= → <] high + slack)], low, high)": ROUNDING,
    },
    ("ensembles/intervals.py", "_are_paired"): {
        "both = ENSEMBLE.holds(a) [and → or] ENSEMBLE.holds(b)": (
            "the result of one model has no members, so that the numbers of members differ"
        ),
    },
    ("ensembles/intervals.py", "with_errors"): {
        "if np.isfinite(error.degrees)[.any → .all]():": (
            "folds have degrees of every estimate, and other members of none"
        ),
    },
    ("ensembles/draws.py", "Draws.identity"): {
        "checksum = [0 → 1]": "any start of a checksum tells draws apart",
    },
    ("ensembles/refits.py", "_pooled"): {
        "…GRID, *TOTALS) if name in sound[[0 → 1]]]": "all members have the same estimates",
    },
    ("ensembles/refits.py", "RefitTable.whole"): {
        "…f.form.give(self.data.copy(deep=[not → ]COPY_ON_WRITE))": (
            "a table that is copied on write needs no copy before"
        ),
    },
    ("local/levels.py", "by_encoding"): {
        "place = np.round(codes / scale, [12 → 13]) if scale > 0 else codes": ROUNDING,
        "…ptp(codes)), float(np.abs(codes)[.max → .min]()))": ROUNDING,
    },
    ("arrays/resample.py", "honest_split"): {
        "…bs, dtype=np.int32 if n_obs < 2 [** → *] 31 else np.int64)": NUMBERS,
        "…(n_obs, dtype=np.int32 if n_obs [< → <=] 2 ** 31 else np.int64)": NUMBERS,
        "…_obs, dtype=np.int32 if n_obs < [2 → 3] ** 31 else np.int64)": NUMBERS,
        "… dtype=np.int32 if n_obs < 2 ** [31 → 32] else np.int64)": NUMBERS,
        "…(n_obs, dtype=np.int32 if n_obs [< → >=] 2 ** 31 else np.int64)": NUMBERS,
    },
    ("local/rows.py", "is_sized"): {
        "…nsum('i,i->', g, g) <= MAX_SIZE [** → *] 2 or max(g.max(), -g.min()) <= …": SLOWER,
        "…n bool(np.einsum('i,i->', g, g) [<= → <] MAX_SIZE ** 2 or max(g.max(), -…": SLOWER,
    },
    ("local/rows.py", "Rows._columns_to_sort"): {
        "return np.empty(([3 → 4] if self.weight is None else 4, …": "more room than is needed",
        "…((3 if self.weight is None else [4 → 5], self.n_rows))": "more room than is needed",
    },
    ("local/rows.py", "Rows._sorted_by"): {
        "of_x, of_g = [[[np.zeros → np.ones](0)] * len(self.x) for _ in rang…": (
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
    ("local/parameters.py", "_output"): {
        "…utputs.table.take(np.arange(min([2 → 3], table.n_rows))).copied())": ROWS_ASKED,
        "…ts(outputs.table.take(np.arange([min → max](2, table.n_rows))).copied())": ROWS_ASKED,
    },
    ("local/parameters.py", "Derivatives._parts"): {
        "…, progress=self.progress, scale=[True → False]) as bar:": (
            "the bar prints its numbers in another way"
        ),
    },
    ("effects/delta_method.py", "direction_influences"): {
        "…rn Influences(_row_sums(summed[:[4 → 5]]), _row_sums(summed[4:8]), summ…": FOUR_SUMS,
        "…summed[:4]), _row_sums(summed[4:[8 → 9]]), summed[8])": FOUR_SUMS,
        "return Influences(sums, sums, [np.zeros → np.ones]((len(sums.average), 0)))": NO_ELEMENTS,
    },
    ("effects/delta_method.py", "_spread_weights"): {
        "return sparse.csr_array([np.zeros → np.ones]((0, clusters.rows.n_rows)))": (
            "it has no elements"
        ),
    },
    ("effects/delta_method.py", "group_influences"): {
        "spread = [np.zeros → np.ones]((clusters.n_groups, 0))": "it has no elements",
    },
    ("effects/fit.py", "row_spread_degrees"): {
        "… out=np.ones(len(n)), where=n > [0 → 1])": "one row has no degrees of freedom",
    },
    ("effects/replicates.py", "estimates_from_sums"): {
        "…zero(np.diff(cells.bin, prepend=[- → ]1))": FIRST_BIN,
    },
    ("effects/estimates.py", "_fixed_cells"): {
        "cells = cells[(cells [> → >=] edges[0]) & (cells < edges[-1])…": AT_AN_EDGE,
        "…lls[(cells > edges[0]) & (cells [< → <=] edges[-1])]": AT_AN_EDGE,
    },
    ("effects/cluster_robust.py", "_together"): {
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
    ("effects/comparison.py", "pairs_of"): {
        "unit = np.zeros(sizes[[0 → 1]], dtype=np.int64)": PAIRS,
        "…eats, source = (np.arange(sizes[[0 → 1]]), _multiplicity(paired), 'pair…": PAIRS,
    },
    ("effects/comparison.py", "_multiplicity"): {
        "ones = np.ones(paired[[0 → 1]].sizes['obs'])": PAIRS,
    },
    ("effects/delta_method.py", "row_covariances"): {
        "…ts] ** 2 if row.has_spread else [np.zeros → np.ones](0)}": NO_ELEMENTS,
    },
    ("effects/replicates.py", "_rebinned_replicate"): {
        "…weighting=weighting, has_spread=[False → True])": "a spread takes time only",
    },
    ("effects/anova_test.py", "_degrees_together"): {
        "if shared * MAX_DF [<= → <] parts.sum() ** 2:": "both sides give that number",
    },
    ("effects/errors.py", "_add_errors"): {
        "[of_others += SKEWNESS → pass]": "new ones take the place of the old",
    },
    ("effects/hypotheses.py", "_homogeneous"): {
        "if variance [<= → <] least ** 2:": "a continuous statistic is not equal to its limit",
        "…in_edges, x, g, None, frequency=[False → True], rng=np.random.default_rng(0))": (
            "there are no weights"
        ),
    },
    ("effects/comparison.py", "paired_covariance"): {
        "…p.sqrt(np.where(pairs.repeats > [0 → 1], pairs.repeats, 1.0))": (
            "repeats are whole numbers, and 1 is 1 either way"
        ),
    },
}


def reason(mutant: Mutant) -> str | None:
    """Why a mutant computes the same, or None."""
    return EQUIVALENT.get((mutant.path, mutant.function), {}).get(mutant.text)
