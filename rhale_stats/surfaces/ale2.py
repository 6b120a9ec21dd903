"""Second-order ALE of two features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from rhale_stats.arguments.checks import check_choice, check_finite
from rhale_stats.arguments.progress import progress_bar
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.bins.description import describe
from rhale_stats.bins.rule import BinRule
from rhale_stats.models.differences import DifferenceQuotients
from rhale_stats.models.options import ModelOptions
from rhale_stats.models.outputs import Model
from rhale_stats.models.sample import Sample
from rhale_stats.schema.dimensions import OUTPUT, with_outputs
from rhale_stats.schema.padding import stack
from rhale_stats.schema.validation import validated
from rhale_stats.surfaces.labelled import (
    SHARED,
    FeatureAxis,
    Order,
    PairGrid,
    Rules,
    axis_of,
    check_order,
    check_rules,
    missing_in,
    one_output,
    order_of,
    pair_of,
)

METHOD = "second-order ALE"
CENTERINGS = ("ale", "start")


@validated
def ale2(
    model: Model,
    X: Any,
    features: tuple[str | int, str | int],
    *,
    bins: Rules | None = None,
    order: Order = "as_is",
    centering: str = "ale",
    options: ModelOptions = ModelOptions(),
    progress: bool = True,
    **fields: Any,
) -> xr.Dataset:
    r"""Second-order ALE: the interaction of two features as a surface (math [55] to [58]).

    Parameters
    ----------
    model, X
        As in `local_effects`. The model is evaluated at 4 versions of every row with two numeric
        features, 6 with a numeric and a categorical one, and 9 with two categorical ones; a call
        has at most ``batch_rows`` rows.
    features : pair of str or int
        The two columns. Text, categories and truth values are categorical, numbers are numeric.
    bins : bin rule, or a pair of them, optional
        `QuantileBins` (the default, with 20 bins), `EqualWidthBins` or `GivenBins`, of numeric
        features. Rules that search for bins are refused, because they need local effects of one
        feature.
    order : "as_is", sequence of levels, or mapping from feature to one of these
        Order of the levels of a categorical feature; neighbouring levels are compared. "as_is" is
        the order of a pandas category, and the sorted order for other columns. A numeric feature
        with levels in a mapping is treated as categorical.
    centering : {"ale", "start"}, default "ale"
        "ale" removes both main effects and the mean from the surface, which leaves the pure
        second-order effect. With "start" the surface is 0 along the first edges.
    options : ModelOptions, optional
        As in `local_effects`. Rows without a value of one of the two features are left out with
        ``missing="drop"``, and counted in the attribute ``n_rows_missing``. "bin" makes them
        a level "missing" of a categorical feature, the last level unless ``order`` places it
        elsewhere; the model receives the missing value of the column. A numeric feature has no such
        level: its missing values are refused.
    %(progress)s

    Returns
    -------
    Dataset
        Over (bin_a, bin_b), the cells: ``second_effect``, the mean second difference;
        ``heterogeneity``, its standard deviation (ddof 1); ``n_obs``, ``n_effective``;
        ``supported``, 1 where a cell has rows and 0 where it has none, whose estimates are NaN.
        Over (edge_a, edge_b): ``surface``, NaN at corners without an adjacent cell with rows. All
        in units of the output: the differences are not divided by widths. Over obs: ``cell_a``,
        ``cell_b``
        (the bin of a row, or its level; -1 where it is left out), ``x_a``, ``x_b`` (the values of
        a numeric feature), ``weight`` where given, and ``second_difference`` (obs, side_a, side_b).
        A numeric feature has one side; a categorical feature has two, the differences to the level
        below and to the level above. Coordinates ``edge_value_a``, ``bin_left_a``, ``bin_right_a``
        of a numeric feature,
        ``level_a`` of a categorical one, over ``edge_a``; likewise for b. Attributes ``n_empty``
        and ``n_filled`` count cells. With several outputs estimates have ``output`` as first
        dimension.

    Raises
    ------
    ValueError
        The same feature twice; a constant feature; missing or infinite values; levels that are not
        those of the data, or a level called "missing" in addition to rows without a level; invalid
        weights; second differences that are not finite.
    KeyError
        Unknown feature or output.
    TypeError
        A rule that searches for bins; ``features`` that is not a pair.
    ModelError
        The model raised an error, or did not return one number per row.

    Notes
    -----
    A row lies at the level of its categorical feature. The difference between two neighbouring
    levels is averaged over the rows of both, as in the authors' code for R (ALEPlot); with two
    categorical features, over the rows of all four pairs of levels.

    A cell without rows has no estimate, but the surface is accumulated across it. The sum then uses
    the second difference of the nearest cell with rows (distances are counted in bins), or the mean
    of several cells at the same distance. ``n_filled`` is the number of such cells. If it is large,
    parts of the surface are extrapolated: the features are dependent, and some of their
    combinations were not observed.

    References
    ----------
    Apley and Zhu (2020), *Visualizing the effects of predictor variables in black box supervised
    learning models*, JRSS B 82, 1059-1086, Eq. 13 to 17 and Appendix E.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> surface = rs.ale2(
    ...     lambda X: X[:, 0] + X[:, 0] * X[:, 1], X, (0, 1), bins=rs.EqualWidthBins(2)
    ... )
    >>> surface["surface"].round(2).values
    array([[ 1.01, -0.  , -0.97],
           [ 0.01, -0.01,  0.02],
           [-0.96,  0.02,  1.05]])
    """
    check_choice("centering", centering, CENTERINGS)
    sample = Sample.from_table(X, options)
    table, used = sample.table, sample.present
    positions = pair_of(features, table.names)
    rules = check_rules(bins)
    check_order(order, table, positions)
    orders = [order_of(order, table, position) for position in positions]
    gaps = np.zeros(table.n_rows, dtype=bool)
    for position, levels in zip(positions, orders, strict=True):
        gaps |= missing_in(sample, position, levels=levels is not None)
    present = used & ~gaps
    if not present.any():
        raise ValueError(
            f"X must have rows with values of {table.names[positions[0]]!r} and "
            f"{table.names[positions[1]]!r}, of positive weight; got none."
        )
    inside = sample.take(present)
    quotients = inside.quotients(model)
    axes = [
        axis_of(inside, position, rule, levels)
        for position, rule, levels in zip(positions, rules, orders, strict=True)
    ]
    delta, error = second_differences(
        quotients, (positions[0], positions[1]), axes, progress=progress
    )
    grid = PairGrid(axes[0], axes[1], inside.weight, frequency=sample.frequency)
    parts = [
        one_output(
            grid, present, sample.weight, delta[..., number], float(error[number]), centering
        )
        for number in range(delta.shape[-1])
    ]
    out = stack(parts, OUTPUT)
    out = out.assign({name: parts[0][name] for name in SHARED if name in out})
    out = out.assign_coords(obs=sample.obs)
    out.attrs |= {
        "method": METHOD,
        **_facts_of_axes(axes, rules, sample.units),
        "centering": centering,
        **sample.facts,
        "n_rows": int(present.sum()),
        "n_rows_missing": int((gaps & used).sum()),
        "n_model_calls": quotients.n_calls,
        "n_model_rows": quotients.n_rows,
    }
    return with_outputs(out, quotients.outputs.labels, quotients.outputs.names)


def _facts_of_axes(
    axes: Sequence[FeatureAxis], rules: Sequence[BinRule], units: Mapping[str, str]
) -> dict[str, str]:
    """Names, kinds, units and bins of the two features, as attributes."""
    described = [
        ("categorical", "levels") if axis.levels is not None else describe(rule)
        for axis, rule in zip(axes, rules, strict=True)
    ]
    return {
        **{f"feature_{side}": axis.name for side, axis in zip("ab", axes, strict=True)},
        **{f"kind_{side}": axis.kind for side, axis in zip("ab", axes, strict=True)},
        **{
            f"units_{side}": units.get(axis.name, "") for side, axis in zip("ab", axes, strict=True)
        },
        **{
            f"bins_{side}": f"{name}({parameters})"
            for side, (name, parameters) in zip("ab", described, strict=True)
        },
    }


def second_differences(
    quotients: DifferenceQuotients,
    positions: tuple[int, int],
    axes: Sequence[FeatureAxis],
    *,
    progress: bool,
) -> tuple[FloatArray, FloatArray]:
    """math [55]: (row, side_a, side_b, output), and what rounding may add (output,)."""
    a, b = axes
    n_rows, n_pairs = quotients.table.n_rows, len(a.versions) * len(b.versions)
    together = max(1, quotients.block_rows // n_pairs)
    blocks, error = [], np.zeros(1)
    begins = range(0, n_rows, together)
    bar = progress_bar(len(begins), "second-order ALE", "batch", progress=progress)
    for begin in begins:
        part = slice(begin, begin + together)
        outputs, rounding = quotients.combined(
            positions,
            ([version[part] for version in a.versions], [version[part] for version in b.versions]),
            part,
        )
        error = np.maximum(error, rounding)
        blocks.append(np.diff(np.diff(outputs, axis=1), axis=2))
        bar.update()
    bar.close()
    delta = np.concatenate(blocks)
    names = f"{a.name} and {b.name}"
    flat = delta.reshape(len(delta), -1).sum(axis=1)
    check_finite(flat, "Second differences", names, "See what the model returns at these rows.")
    quotients.check_size()
    # Four outputs in place of two.
    return delta, 2 * error
