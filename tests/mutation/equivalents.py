"""Mutants that no test can find, each with its reason: they compute the same."""

from __future__ import annotations

from tests.mutation.mutants import Mutant

SECOND_PASS = "the second pass takes off what is left of any centre near the rows"
BLOCKS = "the size of blocks changes time, memory and the last digits of sums only"
ROUNDING = "a tolerance of rounding, of which only the order matters"
SCALE = "one factor of the widths of all cells does not change which bins are best"
FIRST_BIN = "the first bin is number 0, which differs from -1 as it does from 1"

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
    ("arrays/chosen_edges.py", "added_variance"): {
        "…nonzero(np.diff(bin_of, prepend=[- → ]1))": FIRST_BIN,
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
}


def reason(mutant: Mutant) -> str | None:
    """Why a mutant computes the same, or None."""
    return EQUIVALENT.get((mutant.path, mutant.function), {}).get(mutant.text)
