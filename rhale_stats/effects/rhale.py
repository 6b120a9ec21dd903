"""RHALE: mean and spread of local effects in bins, and their accumulated curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arguments.checks import centering_text, check_choice
from rhale_stats.arguments.seeds import seed_of, source_of
from rhale_stats.arguments.words import warn
from rhale_stats.arrays.cells import inner_ends
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.bins.description import DEFAULT_BINS, has_fact, is_ours
from rhale_stats.bins.rule import BinRule, Column, Partition, check_rule
from rhale_stats.bins.rules import GivenBins
from rhale_stats.effects.estimates import (
    CellGrid,
    FittedBins,
    RhaleSettings,
    fitted_bins,
    grid_of,
    grid_of_others,
    moments_on,
    states_of,
)
from rhale_stats.effects.labelled import dataset
from rhale_stats.effects.spread import (
    skewness_rows,
    skewness_sign,
    spread_between,
    spread_edges,
)
from rhale_stats.effects.values import predict
from rhale_stats.local.chunks import ChunkedRows, cached
from rhale_stats.local.rows import (
    THREADS_FROM,
    Reduction,
    Rows,
    Source,
    cell_edges,
    columns,
)
from rhale_stats.models.groups import by_groups
from rhale_stats.models.outputs import Model
from rhale_stats.parallel import cpus, in_threads
from rhale_stats.schema.checks import check_local, is_chunked
from rhale_stats.schema.curves import WEIGHTINGS
from rhale_stats.schema.dimensions import HALF_OF, PARTS
from rhale_stats.schema.feature_result import FeatureResult, each_feature
from rhale_stats.schema.features import feature_names, feature_position
from rhale_stats.schema.levels import refuse_categorical
from rhale_stats.schema.padding import Estimates
from rhale_stats.schema.parts import (
    choosing_rows,
    inside,
    over_outputs,
    over_row_sets,
)
from rhale_stats.schema.validation import validated
from rhale_stats.schema.variables import variable

CENTERINGS = ("mean", "start", "integral")

# The least share of the axis that the inner rows should have where edges are at equal widths.
NARROW = 0.1
# Features that are estimated together: more take no less time each, and more memory.
MAX_FEATURES = 8


@by_groups()
@validated
def rhale(
    local: xr.Dataset | Model,
    X: Any = None,
    features: str | int | Sequence[str | int] | None = None,
    *,
    bins: BinRule | None = None,
    centering: str | float = "mean",
    weighting: str = "axis",
    honest: bool = False,
    honest_fraction: float = 0.5,
    rng: np.random.Generator | int | None = None,
    by: Any = None,
) -> xr.Dataset:
    r"""Average effect and heterogeneity of each feature in bins, and the accumulated curve.

    Parameters
    ----------
    local : Dataset, or model
        What `local_effects` returned; or a model, with ``X``. All options of `local_effects`, such
        as ``weights``, ``output`` and ``jacobian``, are then accepted here; with ``groups`` of
        dependent rows the result has the errors of `std_error`, and with ``categorical`` the steps
        between the levels of these columns, as by `ale`.
    X : table, optional
        Rows of the model. Left out after local effects.
    features : name, number, or sequence of them, optional
        Some of the features; by default all.
    bins : bin rule, optional
        `AdaptiveBins` (the default: as few bins as the data allow, constant or linear),
        `OptimalBins` (the paper's), `GreedyBins`, `EqualWidthBins`, `BestEqualWidthBins`,
        `QuantileBins`, `GivenBins`. A list of numbers has the edges. One number n is
        `EqualWidthBins` (n), or `QuantileBins` (n) where
        local effects are slopes across cells; "quantile" and "equal_width" have 20 bins, and
        "optimal", "greedy", "adaptive" and "best_equal_width" the defaults of their rules.
    centering : {"mean", "start", "integral"} or number, default "mean"
        Zero of the curve: its mean over the rows (the convention of ALE), its left end, or its mean
        over the axis (math [8]); or this value of the feature, with errors of the differences
        from it.
    weighting : {"axis", "rows"}, default "axis"
        Definition of the effect of a bin. "axis": the average of mu(z) along the axis (math [12]),
        computed in fine cells; the curve is accumulated from these cells and does not depend on the
        bins. "rows": the mean over the rows of the bin, as in the paper (math [5]). The two differ
        if the effect changes within a bin and the rows are denser at one end of it; the curve with
        "rows" is then biased.
    honest : bool, default False
        Choose the edges on some rows, drawn at random, and estimate on the other rows. If both use
        the same rows, bins are chosen where the spread is small by chance, and the spread and its
        standard error are too small (math [16]). The ends of the axis are those of all rows.
    honest_fraction : float, default 0.5
        Share of the rows on which edges are chosen.
    rng : Generator, int or None
        Source of the random halves, or its seed. None draws a new seed; ``seed`` in the attributes
        of the result reproduces them (-1 with a Generator).
    by : name, number, or array_like of shape (n_rows,), optional
        A column of groups: the function is called for the rows of each of them, and the results are
        along a dimension ``region`` with the levels as labels (`compare` has their difference).
        Numbers of more than 10 values are divided at their median.

    Returns
    -------
    Dataset
        Over (feature, bin): ``effect`` (math [5]), ``heterogeneity`` (math [6], the standard
        deviation, ddof 1), ``n_obs``. Over (feature, edge), the edges of the cells that the curve
        is accumulated from, with those of the bins among them: ``curve`` (math [7]) and, to the
        right of each edge, ``spread``, the standard deviation of the local effects, which changes
        where it does and not where the effect does (math [66]; not with ``weighting="rows"``).
        ``moments`` (feature, edge, moment) are the state of which everything else is made (math
        [95]): in the cell to the right of every edge, the numbers of rows, sums of weights, means,
        and sums of w (x - x_mean)^p (g - mean)^q, such as ``"x1g2"``. Over (feature): ``n_bins``,
        ``average_effect``, ``heterogeneity_output`` (math [10]), ``local_effect_error``.
        `BestEqualWidthBins` adds ``bin_loss`` (feature, n_bins_tried). `AdaptiveBins` adds
        ``slope`` (feature, bin), 0 where a bin is constant; where it is not 0, ``heterogeneity`` is
        the spread of the residuals (ddof 2). Coordinates: ``feature``, ``bin``, ``edge``,
        ``bin_left``, ``bin_right``, ``edge_value``, ``feature_kind``, ``feature_units``. Beyond a
        feature's ``n_bins`` values are NaN and ``n_obs`` is 0. A constant feature has ``n_bins`` 0
        and ``feature_kind`` "constant". ``effect.rhale.in_bins()`` writes out what follows from
        these, such as ``n_effective``, ``curve_std`` (math [9]) and ``heterogeneity_index``.

    Raises
    ------
    ValueError
        Missing or infinite values; fewer rows than the rule needs; invalid edges; an
        ``honest_fraction`` that leaves one side without rows.
    TypeError
        ``local`` is not a Dataset of local effects, or ``bins`` is not a bin rule.

    Warns
    -----
    UserWarning
        A bin without rows, or a gap inside a bin. A gap is a stretch without rows that is wider
        than a tenth of the range of the middle 98 % of the rows and than 30 times the distances
        around it. If local effects are slopes across cells, a cell without rows is a gap. The
        change of the curve across a gap is not known. The curve is reported, and centred, on the
        stretch between gaps with the most rows, and is NaN elsewhere; the effect of a bin with a
        gap is that of its part with rows.

    Notes
    -----
    ``curve_std`` (Eq. 16 of the paper) depends on the partition: sigma = 5 everywhere on
    [-1, 1] gives 10, 4.5 and 1.4 at the right end for 1, 5 and 50 bins. ``curve_std_sum`` does not;
    the paper's figures show it. `plots.effect` draws it from the ``spread``.

    References
    ----------
    Gkolemis, Dalamagas, Ntoutsi and Diou (2023), *RHALE: Robust and Heterogeneity-aware
    Accumulated Local Effects*, Eq. 9 to 16.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> local = rs.local_effects(lambda X: 2 * X[:, 0] + 4 * X[:, 0] * X[:, 1], X)
    >>> effect = rs.rhale(local, bins=rs.EqualWidthBins(4))
    >>> effect["n_obs"].sel(feature="x0").values
    array([110, 108, 142, 140])
    """
    del X, features, by  # `validated` has made local effects of them
    generator, seed = source_of(rng)
    # Refused before a model is asked about all rows.
    _settings(bins, centering, weighting)
    if isinstance(bins, GivenBins) and not is_chunked(local):
        local = inside(local, {name: bins.limits(name) for name in feature_names(local)})
    with cached(local, read_once=not honest) as same:
        effect = quiet_rhale(
            same,
            bins=bins,
            centering=centering,
            weighting=weighting,
            honest=honest and honest_fraction,
            rng=generator,
        )
    _check_centre(effect)
    warn_of_gaps(effect)
    _warn_of_distant_rows(effect)
    return effect.assign_attrs(seed=seed) if honest else effect


@over_outputs
@over_row_sets
def quiet_rhale(
    local: xr.Dataset,
    bins: BinRule | None = None,
    *,
    centering: str | float = "mean",
    weighting: str = "axis",
    has_spread: bool = True,
    honest: float | bool = False,
    rng: np.random.Generator | int | None = None,
    cache: dict[str, Partition] | None = None,
) -> xr.Dataset:
    """`rhale` where bins without rows are expected: without its warning.

    ``honest`` is the share of rows on which edges are chosen; True is half of them. Bins of the
    features that are in ``cache`` are taken from there; those that are chosen are put
    there. Without ``has_spread`` there is no spread in bins of its own.
    """
    local = check_local(local, in_chunks=True)
    refuse_categorical(local, "rhale")
    # With the paper's means over the rows the spread is that of its bins.
    has_spread = has_spread and weighting == "axis"
    settings = _settings(bins, centering, weighting, has_spread=has_spread)
    share = 0.5 if honest is True else float(honest)
    split = _honest_rows(local, share, rng) if share else _all_rows(local)
    effect = _estimated(local, settings, split, cache)
    return with_missing(effect) if "missing_effect" in effect else effect


def _settings(
    bins: BinRule | None, centering: str | float, weighting: str, *, has_spread: bool = True
) -> RhaleSettings:
    """What is asked of `rhale`, checked."""
    how = centering_text(centering, CENTERINGS)
    check_choice("weighting", weighting, WEIGHTINGS)
    rule = DEFAULT_BINS if bins is None else bins
    check_rule(rule)
    return RhaleSettings(rule, how, weighting, has_spread)


def _check_centre(effect: xr.Dataset) -> None:
    """Raise ``ValueError`` unless all curves are known at the value at which they are to be 0."""
    if effect.attrs["centering"] in CENTERINGS:
        return
    unknown = (effect["n_bins"] > 0) & effect["curve"].isnull().all("edge")
    parts = [dim for dim in unknown.dims if dim != "feature"]
    for name in effect["feature"].values[unknown.any(parts).values].tolist():
        edges = effect["edge_value"].sel(feature=name)
        raise ValueError(
            f"centering must be a value of every feature; {name!r} goes from "
            f"{float(edges.min()):.6g} to {float(edges.max()):.6g}, and has no curve at "
            f"{effect.attrs['centering']}. Take one feature: features={name!r}."
        )


class RowSplit(NamedTuple):
    """Rows on which edges are chosen, and rows on which effects are estimated.

    They are the same rows unless bins are honest; ``attrs`` are the attributes that reproduce the
    split.
    """

    for_edges: Source
    for_estimates: Source
    attrs: dict[str, float | int]

    @property
    def is_honest(self) -> bool:
        """Whether edges are chosen on other rows than effects are estimated on."""
        return self.for_edges is not self.for_estimates

    def ends(self, rows: Source, position: int, name: str) -> tuple[float, float]:
        """Ends of the axis of one feature over all rows; raise if they are not finite.

        ``rows`` are those of an unsplit sample, in any order.
        """
        halves = (self.for_edges, self.for_estimates) if self.is_honest else (rows,)
        low, high = zip(*[half.ends(position, name) for half in halves], strict=True)
        return min(low), max(high)


def _all_rows(local: xr.Dataset) -> RowSplit:
    """All rows, for edges and for estimates."""
    rows = _source(local)
    return RowSplit(rows, rows, {})


def _source(local: xr.Dataset) -> Source:
    return ChunkedRows(local, precise=True) if is_chunked(local) else columns(local)


def _honest_rows(
    local: xr.Dataset, honest_fraction: float, rng: np.random.Generator | int | None
) -> RowSplit:
    """Rows drawn at random for the edges, and the other rows for the estimates (math [16])."""
    if "n_missing" in local:
        raise ValueError(
            "honest must be False where features have different rows (missing='drop', "
            "percentiles=, edges within the range). Select complete rows before local_effects."
        )
    seed = seed_of(rng)
    for_edges = choosing_rows(local, honest_fraction, seed)
    # Rows in chunks are split as those in memory, whatever the chunks are.
    parts = [local.isel(obs=~for_edges), local.isel(obs=for_edges)]
    estimates, edges = map(_source, parts)
    # Halves of rows are not counted.
    n_rows, n_rows_edges = [
        len(np.unique(part[HALF_OF])) if HALF_OF in part else source.n_rows
        for part, source in zip(parts, (estimates, edges), strict=True)
    ]
    attrs = {
        "honest_fraction": float(honest_fraction),
        "honest_seed": seed,
        "n_rows": n_rows,
        "n_rows_edges": n_rows_edges,
    }
    return RowSplit(edges, estimates, attrs)


def _estimated(
    local: xr.Dataset,
    settings: RhaleSettings,
    split: RowSplit,
    cache: dict[str, Partition] | None = None,
) -> xr.Dataset:
    """Effects of all features on these rows: edges by the rule, then estimates between them."""
    rule, rows, names = settings.rule, split.for_estimates, feature_names(local)
    threads, at_once = 1 if rows.size < THREADS_FROM else cpus(), len(names)
    # Chunks are read once for all features, and a rule of a user's own gets all at once.
    if isinstance(rows, Rows) and is_ours(rule):
        at_once = min(-(-len(names) // threads), MAX_FEATURES)
    partitions = {} if cache is None else cache

    def of_features(first: int) -> list[Estimates]:
        positions = range(first, min(first + at_once, len(names)))
        return _of_features(local, settings, split, positions, partitions)

    parts = in_threads(of_features, range(0, len(names), at_once), threads)
    estimates = [*chain.from_iterable(parts)]
    how = settings.centering, settings.weighting
    effect = dataset(local, rule, *how, estimates, rows.n_rows)
    facts = {"weighting": settings.weighting} | split.attrs
    effect.attrs |= facts | rows.fingerprints(names, threads)
    chosen = [partitions.get(name) for name in names]
    return _with_losses(effect, [partition and partition.losses for partition in chosen])


def _of_features(
    local: xr.Dataset,
    settings: RhaleSettings,
    split: RowSplit,
    positions: Sequence[int],
    partitions: dict[str, Partition],
) -> list[Estimates]:
    """Estimates of some of the features; of a constant feature there are none.

    Bins of the features that are in ``partitions`` are taken from there; others are put there.
    """
    rule, names, slopes_across = settings.rule, feature_names(local), cell_edges(local)
    rows, grids = split.for_estimates, dict[int, CellGrid]()

    def plan(source: Source, position: int) -> Reduction | None:
        """Moments of the rows of one feature in the cells of its grid; none if it is constant."""
        name, ends = names[position], split.ends(source, position, names[position])
        grid = grid_of(rule, source, position, name, ends, slopes_across[position])
        if isinstance(grid, Column):
            return None
        grids[position] = grid
        return moments_on(grid, position, unequal=source.unequal)

    def plan_of_others(source: Source, position: int) -> Reduction:
        """Moments of the rows for estimates, where bins are honest."""
        partition = partitions[names[position]]
        grids[position] = grid_of_others(grids[position], source, position, partition)
        return moments_on(grids[position], position, unequal=source.unequal)

    moments = [part for part in split.for_edges.reduced(plan, positions) if part is not None]
    if not grids:
        return [{} for _ in positions]
    varying = list(grids)
    errors = local["local_effect_error"].values[varying].tolist()
    candidates = {
        names[position]: grid.candidates(part.cells, error)
        for (position, grid), part, error in zip(grids.items(), moments, errors, strict=True)
        if names[position] not in partitions
    }
    if candidates:
        chosen = rule.choose(list(candidates.values()))
        partitions.update(zip(candidates, chosen, strict=True))
    bins = [partitions[names[position]] for position in varying]
    fitted = fitted_bins(settings, list(grids.values()), moments, bins)
    edges = spread_edges(rule, fitted, errors) if settings.has_spread else []
    if split.is_honest:
        moments = rows.reduced(plan_of_others, varying)
        fitted = fitted_bins(settings, list(grids.values()), moments, bins)
    if settings.has_spread:
        fitted = fitted.ending_at(edges, [grid.least_rows for grid in grids.values()])
    states: dict[int, Any] = dict(zip(varying, states_of(settings, fitted), strict=True))
    if settings.has_spread:
        for values, spread in zip(states.values(), spread_between(edges, fitted), strict=True):
            values |= spread
    if rows.unequal:
        _add_signs(rows, fitted, states)
        if isinstance(rule, GivenBins):
            for values in states.values():
                values["weight_largest"] = rows.largest
    return [states.get(position, {}) for position in positions]


def _add_signs(rows: Source, fitted: FittedBins, estimates: Mapping[int, dict[str, Any]]) -> None:
    """Add the sign of the skewness of rows with precision weights, which moments do not tell."""
    cells = dict(zip(estimates, fitted.edges(fitted.of_curve), strict=True))
    bins = dict(zip(estimates, fitted.by_feature(fitted.of_bins), strict=True))
    slope = None if fitted.has_cells else fitted.slope

    def plan(source: Source, position: int) -> Reduction:
        these = bins[position]
        lines = None if slope is None else (slope[these], fitted.bins.x_mean[these])
        return skewness_rows(cells[position], lines, position, source.most_rows)

    chosen_rows = rows.reduced(plan, list(estimates))
    for values, part in zip(estimates.values(), chosen_rows, strict=True):
        values["skewness_sign"] = skewness_sign(part, fine=fitted.has_cells)


def with_missing(effect: xr.Dataset) -> xr.Dataset:
    """Add the output of rows without a value, on the scale of the curve."""
    curve = [
        np.nan if np.isnan(reference) else predict(effect, [reference], name).item()
        for name, reference in zip(
            feature_names(effect), effect["missing_reference"].values, strict=True
        )
    ]
    values = np.array(curve) + effect["missing_effect"].values
    fact = "curve at missing_reference, plus missing_effect"
    return effect.assign(missing_curve=variable("missing_curve", values, estimator=fact))


def _with_losses(effect: xr.Dataset, losses: Sequence[FloatArray | None]) -> xr.Dataset:
    """The loss of every number of bins that a rule compared, over (feature, n_bins_tried)."""
    compared = {position: loss for position, loss in enumerate(losses) if loss is not None}
    if not compared:
        return effect
    tried = max(len(loss) for loss in compared.values())
    table = np.full((effect.sizes["feature"], tried), np.nan)
    for position, loss in compared.items():
        table[position, : len(loss)] = loss
    return effect.assign(bin_loss=variable("bin_loss", table, estimator="math [19]")).assign_coords(
        n_bins_tried=("n_bins_tried", np.arange(1, tried + 1), {"long_name": "number of bins"})
    )


def _unknown_parts(effect: xr.Dataset) -> tuple[xr.Variable, xr.Variable]:
    """How many bins have no effect, and whether the curve is unknown somewhere, by feature."""
    # Variables without their coordinates: alignment would take longer than the estimates.
    variables = effect.variables
    has_bin, has_edge = [variables[name].notnull() for name in ("bin_left", "edge_value")]
    n_empty = (variables["effect"].isnull() & has_bin).sum("bin")
    unknown = (variables["curve"].isnull() & has_edge).any("edge")
    return n_empty, unknown & (variables["n_bins"] > 0)


def warn_of_gaps(effect: xr.Dataset) -> None:
    """Warn of features whose curve cannot be accumulated along their whole axis, and why."""
    n_empty, unknown = _unknown_parts(effect)
    if not n_empty.values.any() and not unknown.values.any():
        return

    def by_feature(variable: xr.Variable) -> NDArray[Any]:
        return variable.transpose("feature", ...).values.reshape(effect.sizes["feature"], -1)

    n_bins = n_empty * 0 + effect.variables["n_bins"]  # of every part
    bins, gaps = [], []
    for name, own_empty, own_bins, own_unknown in zip(
        feature_names(effect), *map(by_feature, (n_empty, n_bins, unknown)), strict=True
    ):
        # The output with the most empty bins.
        empty, total = max(zip(own_empty, own_bins, strict=True))
        # Edges of adaptive bins leave no bin empty but a gap.
        if empty and (effect.attrs["bin_rule"] != "AdaptiveBins" or "honest_seed" in effect.attrs):
            bins.append(f"{name!r} ({empty} of {total})")
        elif empty or own_unknown.any():
            gaps.append(f"{name!r} ({_widest_gap(effect, name)})")
    if bins:
        better = ", QuantileBins or OptimalBins"
        if "honest_seed" in effect.attrs:
            better = " or a larger min_obs"
        warn(
            f"Bins without rows: {', '.join(bins)}. Their effects are NaN. The curve cannot be "
            f"accumulated across them: it is reported on the stretch with the most rows and is NaN "
            f"elsewhere. Use fewer bins{better}."
        )
    if gaps:
        warn(
            f"Gaps without rows: {', '.join(gaps)}. The curve cannot be accumulated across such a "
            f"gap: it is reported on the stretch with the most rows and is NaN elsewhere. "
            f"Finite differences of the model can cross the gap: "
            f"local_effects(model, X, method='finite_difference') or ale(model, X)."
        )


def _warn_of_distant_rows(effect: xr.Dataset) -> None:
    """Warn of features whose bins of equal widths a few distant rows decide on."""
    if not has_fact(effect.attrs["bin_rule"], "equal_widths"):
        return
    texts = []
    for row in _first_part(effect):
        if not row.has_cells:
            continue
        edges = row.edges
        low, high = inner_ends(edges, row.cell_share)
        if high - low < NARROW * (edges[-1] - edges[0]):
            ends = f"{low:.4g} to {high:.4g} of {edges[0]:.4g} to {edges[-1]:.4g}"
            texts.append(f"{row.name!r} ({ends})")
    if texts:
        warn(
            f"98 % of the rows lie in less than {NARROW:.0%} of the axis: {', '.join(texts)}. "
            f"{effect.attrs['bin_rule']} has edges at equal widths over the whole axis, as in the "
            f"paper, so that a few distant rows decide on the bins. Use AdaptiveBins() or "
            f"QuantileBins, or leave these rows out: local.isel(obs=...)."
        )


def _first_part(effect: xr.Dataset) -> list[FeatureResult]:
    """The features of an effect, of the first output and region."""
    return each_feature(effect.isel({dim: 0 for dim in PARTS if dim in effect.dims}))


def _widest_gap(effect: xr.Dataset, name: str) -> str:
    """The widest stretch without rows of one feature, in words."""
    row = _first_part(effect)[feature_position(effect, name)]
    width = np.where(row.cell_share == 0, np.diff(row.edges), -np.inf)
    widest = int(np.nanargmax(width))
    return f"from {row.edges[widest]:.6g} to {row.edges[widest + 1]:.6g}"
