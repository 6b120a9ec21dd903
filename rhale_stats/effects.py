"""Local effects of a model, and RHALE: their mean and spread along each axis.

`local_effects` is the only function that asks the model. `rhale` and everything after it is
arithmetic on what it returned.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from tqdm import tqdm

from rhale_stats import models, surface_data
from rhale_stats.arrays import accumulate, binning
from rhale_stats.arrays import moments as sums
from rhale_stats.arrays.moments import Axis, Comoments, FloatArray, Moments, ResidualMoments
from rhale_stats.bins import (
    BinRule,
    Candidates,
    Column,
    EqualWidthBins,
    OptimalBins,
    Partition,
    check_rule,
    describe,
    make_lines,
    of_differences,
)
from rhale_stats.by_part import each_part, features_by_rows, has_gaps, own_rows
from rhale_stats.profile_data import evaluate, is_profile
from rhale_stats.schema import (
    EFFECT_UNITS,
    LINE_MOMENTS,
    OUTPUT,
    ROWS,
    X_UNITS,
    Estimates,
    check_effect,
    check_local,
    feature_names,
    feature_position,
    is_categorical,
    level_names,
    level_text,
    one_feature,
    position_of,
    refuse_categorical,
    slopes,
    software,
    stacked,
    unit_mapping,
    variable,
    with_outputs,
)
from rhale_stats.validate import as_numbers, as_weights, check_choice, check_finite, checked, warn

MISSING = ("raise", "drop", "bin")
METHODS = ("auto", "jacobian", "central_difference", "finite_difference")
CENTERINGS = ("mean", "start", "integral")
# Cells of the grid on which method="finite_difference" takes its differences.
DIFFERENCE_CELLS = 100
# Forms of a table: of arrays, of names, of numbers in place of names.
ARRAY, FRAME, NUMBERED_FRAME = "array", "DataFrame", "DataFrame with numbered columns"
# Seconds after which a progress bar appears.
PROGRESS_DELAY = 2.0
SELECT_ROWS = "Select the rows first: local.isel(obs=...)."
# Below this many values threads cost more than they save.
THREADS_FROM = 200_000

T = TypeVar("T")
S = TypeVar("S")


@checked
def local_effects(
    model: models.Model,
    X: Any,
    *,
    jacobian: Any = None,
    features: str | int | Sequence[str | int] | None = None,
    weights: ArrayLike | None = None,
    weight_kind: str = "precision",
    method: str = "auto",
    bins: BinRule | None = None,
    output: models.OutputLabels = None,
    scale: str = "response",
    missing: str = "raise",
    progress: bool = True,
) -> xr.Dataset:
    r"""Local effects of a model: how its output moves with one feature, row by row.

    The only function that calls the model.

    Parameters
    ----------
    model : callable, object with ``predict``, classifier, or statsmodels results
        Called with whole tables in the form of ``X``, never row by row, at most twice a feature.
        Returns one number a row, or a column for each of several outputs; of a classifier its
        probabilities are taken, see ``scale``. May be None when ``jacobian`` is given.
    X : DataFrame or array_like of shape (n_rows, n_columns)
        Rows at which effects are taken. A formula model needs a DataFrame with all its columns.
        Units are read from ``X.attrs["units"]``, a mapping from column to unit; name and unit of
        the output from ``X.attrs["output_name"]`` and ``X.attrs["output_units"]``.
    jacobian : callable or array_like of shape (n_rows, n_columns), optional
        Derivatives of the output with respect to every column, or a function of ``X`` that
        returns them. A DataFrame needs the columns of ``features`` only.
    features : name, number, or sequence of them, optional
        Columns to take. By default all that are numeric and not discrete; a warning names the
        others. A column of numbers is discrete when it has at most 12 distinct values, two rows
        each on average. Named columns are taken as they are, if they are numeric.
    weights : array_like of shape (n_rows,), optional
        Row weights, math [6]. Rows of weight zero count as absent.
    weight_kind : {"precision", "frequency"}, default "precision"
        Survey and precision weights, or counts of repeated rows.
    method : {"auto", "jacobian", "central_difference", "finite_difference"}, default "auto"
        "auto" takes ``jacobian`` where given and else central differences. "finite_difference"
        takes the slope across the row's cell (math [2]), and so sees the jumps of trees. Rows that
        thin out inside a bin weigh a jump by where they are: use bins narrow enough.
    bins : bin rule, optional
        Whose cells "finite_difference" takes slopes across: the rule that `rhale` is to have.
        100 equal cells by default.
    output : label, or sequence of labels, optional
        Which of several outputs: of a classifier a class, else the name or number of a column. By
        default all of them, and the second of two classes. More than one are a dimension
        ``output``; the model is called once for all.
    scale : {"response", "logit", "decision"}, default "response"
        What the model answers, with classifiers the probability of a class; its log-odds; or the
        ``decision_function``, which also stands in for probabilities where there are none.
    missing : {"raise", "drop", "bin"}, default "raise"
        Missing values of a feature: refused, or these rows left out of the effect of this feature,
        and counted in ``n_missing``. "bin" also says what being missing does in them:
        ``missing_effect``, the mean of f(missing, rest) - f(reference, rest) with the median as
        the reference. In the rows of other features the model receives missing values as they are.
    progress : bool, default True
        Show a bar on work over two seconds.

    Returns
    -------
    Dataset
        ``x``, ``local_effect`` of dims (obs, feature), one contiguous column a feature;
        ``local_effect_error`` (feature), the size of differences that rounding alone can make;
        ``weight`` (obs) where given. Where values are missing ``n_missing`` (feature), and with
        ``missing="bin"`` also ``missing_effect``, ``missing_effect_se``, ``missing_spread`` and
        ``missing_reference``. With several outputs ``local_effect`` and what else is of an output
        have the dimension ``output`` in front. Coordinates ``feature``,
        ``feature_kind``, ``feature_units``, ``feature_column``, and ``obs``.

    Raises
    ------
    ValueError
        Missing or infinite values in ``X`` or in local effects, no rows, repeated column names, a
        Jacobian of another shape, unusable weights, a model without a useful derivative, a scale
        that the model does not have.
    KeyError
        Unknown feature or output.
    TypeError
        No numeric feature, or a model that cannot be called.
    ModelError
        The model raised, or returned something else than numbers for every row.

    Notes
    -----
    The step of central differences is chosen for every feature from its standard deviation s and
    the precision eps in which the model answers: h = s (A eps)^(1/3) with A = max(1, max|x|/s).
    The error, relative to how the output varies over s, is about (A eps)^(2/3): 4e-11 in double
    precision, 2e-5 for models in single precision, 2e-6 for time stamps of 1.7e9 with a spread
    of 100. Arguments are kept within the observed range, so that rows within h of its ends get
    one-sided differences, with an error of order h.

    References
    ----------
    Gkolemis et al. (2023), *RHALE*, Eq. 2 and 4; Apley and Zhu (2020), Eq. 11, for
    ``method="finite_difference"``.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    >>> local = rs.local_effects(lambda X: X[:, 0] ** 2 + X[:, 1], X)
    >>> bool(np.allclose(local["local_effect"].sel(feature="x0"), 2 * X[:, 0], atol=1e-5))
    True
    """
    table = models.as_table(X)
    check_choice("method", method, METHODS)
    check_choice("missing", missing, MISSING)
    if method == "auto":
        method = "central_difference" if jacobian is None else "jacobian"
    if (method == "jacobian") != (jacobian is not None):
        raise ValueError(
            f"method={method!r} and jacobian={'None' if jacobian is None else '...'} contradict "
            f"each other: pass a jacobian with method='jacobian' or 'auto', and none otherwise."
        )
    if bins is not None and method != "finite_difference":
        raise ValueError(
            f"bins are for the cells of method='finite_difference'; got method={method!r}. Pass "
            f"them to rhale."
        )
    if method == "jacobian" and (output is not None or scale != "response"):
        raise ValueError(
            "output and scale select what a model answers; a jacobian is that of one output "
            "already. Leave them out."
        )
    cells = EqualWidthBins(DIFFERENCE_CELLS) if bins is None else bins
    check_rule(cells)
    check_choice("weight_kind", weight_kind, ("precision", "frequency"))
    weight = None if weights is None else as_weights(weights, table.n_rows, weight_kind)
    positions = positions_of(table, features)
    x = np.empty((table.n_rows, len(positions)), order="F")
    for column, position in enumerate(positions):
        x[:, column] = models.check_column(table, position, missing=missing)

    names = [table.names[position] for position in positions]
    if missing == "bin" and method == "jacobian":
        raise ValueError(
            "missing='bin' asks the model what missing values do; a jacobian does not say. Use "
            "missing='drop', or pass the model without a jacobian."
        )
    quotients, derivatives = None, {}
    if method == "jacobian":
        derivatives = models.jacobian_columns(jacobian, table, positions)
    else:
        quotients = models.DifferenceQuotients(model, table, output, scale)
    bar = tqdm(
        positions,
        "local effects",
        unit="feature",
        disable=not progress or quotients is None,
        delay=PROGRESS_DELAY,
    )
    found: list[models.Differences] = []
    for column, position in enumerate(bar):
        own = x[:, column]
        there = ~np.isnan(own)
        varies = np.nanmin(own) < np.nanmax(own)
        if quotients is None:
            one = models.Differences(derivatives[position][there, None], np.zeros(1))
        elif not varies:
            one = models.NO_DIFFERENCES  # a constant feature has no effect to estimate
        elif method == "central_difference":
            one = quotients.at(there).central(position)
        else:
            w = None if weight is None else weight[there]
            ends = cell_ends(cells, names[column], own[there], w)
            one = quotients.at(there).finite(position, *ends)
        if varies:
            check_finite(
                one.local_effect.sum(axis=1),
                "Local effects",
                names[column],
                "See what the model returns at these rows.",
            )
        found.append(one)
    absent = {}
    if quotients is not None and missing == "bin":
        absent = {
            column: _of_missing(quotients, position, x[:, column], weight, weight_kind)
            for column, position in enumerate(positions)
            if np.isnan(x[:, column]).any()
        }
    return labelled(
        X,
        table,
        positions,
        x,
        found,
        weight,
        weight_kind=weight_kind,
        method=method,
        outputs=None if quotients is None else quotients.outputs,
        absent=absent,
    )


def cell_ends(
    rule: BinRule, name: str, x: FloatArray, weight: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """Lower and upper end of every row's cell, the arguments of math [2].

    Cells are those that `rhale` makes of the rows with weight; others get the nearest.
    """
    counts = None if weight is None or (weight == weight.max()).all() else weight[weight > 0]
    own = x if weight is None else x[weight > 0]
    low, high = float(own.min()), float(own.max())
    if low == high:
        return np.full_like(x, low), np.full_like(x, low)
    axis = of_differences(rule).cells(Column(name, own, low, high, counts))
    edges = binning.bin_edges(axis, np.arange(len(axis)), low, high)
    cell = np.clip(sums.cell_index(axis, x), 0, len(axis) - 1)
    return edges[cell], edges[cell + 1]


def labelled(
    X: Any,
    table: models.Table,
    positions: Sequence[int],
    x: FloatArray,
    found: Sequence[models.Differences],
    weight: FloatArray | None,
    *,
    weight_kind: str,
    method: str,
    outputs: models.Outputs | None = None,
    absent: Mapping[int, Mapping[str, FloatArray]] | None = None,
) -> xr.Dataset:
    """Local effects of some columns, at the rows that have a value, as `local_effects` returns."""
    names = [table.names[position] for position in positions]
    attrs = getattr(X, "attrs", {})
    units = unit_mapping(attrs)
    labels = outputs.labels if outputs is not None else []
    n_outputs = max(len(labels), 1)
    effect = np.full((n_outputs, len(positions), table.n_rows), np.nan)
    error = np.zeros((n_outputs, len(positions)))
    missing, absent = np.isnan(x), absent or {}
    for column, one in enumerate(found):
        if len(one.local_effect):
            effect[:, column, ~missing[:, column]] = one.local_effect.T
            error[:, column] = one.error
    coordinates: dict[str, Any] = {
        "feature": ("feature", np.array(names), {"long_name": "feature"}),
        "feature_kind": (
            "feature",
            np.array([table.kind(p) for p in positions]),
        ),
        "feature_units": ("feature", np.array([units.get(name, "") for name in names])),
        "feature_column": (
            "feature",
            np.array(positions),
            {"long_name": "number of the column in the table"},
        ),
    }
    index = getattr(X, "index", None)
    if isinstance(index, pd.Index) and index.nlevels == 1 and index.is_unique:
        coordinates["obs"] = ("obs", index.to_numpy())
    else:
        coordinates["obs"] = ("obs", np.arange(table.n_rows))
    data: dict[str, Any] = {
        "x": (("obs", "feature"), x, {"long_name": "value of the feature", "units": X_UNITS}),
        "local_effect": (
            (OUTPUT, "obs", "feature"),
            effect.transpose(0, 2, 1),
            {"long_name": "local effect", "units": EFFECT_UNITS},
        ),
        "local_effect_error": ((OUTPUT, "feature"), *variable("local_effect_error", error)[1:]),
    }
    if missing.any():
        data["n_missing"] = variable("n_missing", missing.sum(axis=0))
    for name in next(iter(absent.values()), {}):
        values = np.full((n_outputs, len(positions)), np.nan)
        for column, of_missing in absent.items():
            values[:, column] = of_missing[name]
        data[name] = ((OUTPUT, "feature"), *variable(name, values)[1:])
    if weight is not None:
        data["weight"] = ("obs", weight, {"long_name": f"{weight_kind} weight", "units": "1"})
    out = xr.Dataset(
        data,
        coordinates,
        {
            "local_effect_method": method,
            "weight_kind": weight_kind if weight is not None else "none",
            "output_name": str(attrs.get("output_name", "output")),
            "output_units": str(attrs.get("output_units", "")),
            "n_rows": table.n_rows,
            "n_columns": len(table.names),
            "table": _form(table),
            "software": software(),
        },
    )
    return with_outputs(out, labels, [] if outputs is None else outputs.names)


def _of_missing(
    quotients: models.DifferenceQuotients,
    position: int,
    x: FloatArray,
    weight: FloatArray | None,
    weight_kind: str,
) -> dict[str, FloatArray]:
    """What it does to be missing, in the rows that are: against the median of the others."""
    gone = np.isnan(x)
    w = np.ones(len(x)) if weight is None else weight
    reference = binning.quantile_edges(x[~gone & (w > 0)], 2, w[~gone & (w > 0)])[:2].max()
    change, _ = quotients.at(gone).between(
        position, np.full(gone.sum(), reference), np.full(gone.sum(), np.nan)
    )
    w = w[gone]
    total, squares = w.sum(), (w if weight_kind == "frequency" else w**2).sum()
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = w @ change / total
        spread = np.sqrt(w @ (change - mean) ** 2 / (total - squares / total))
        standard_error = spread * np.sqrt(squares) / total
    return {
        "missing_effect": mean,
        "missing_effect_se": standard_error,
        "missing_spread": spread,
        "missing_reference": np.full_like(mean, reference),
    }


def _form(table: models.Table) -> str:
    """What the model takes, as far as its labels are known."""
    if isinstance(table.data, np.ndarray):
        return ARRAY
    if all(isinstance(label, str) for label in table.data.columns):
        return FRAME
    if all(isinstance(label, int | np.integer) for label in table.data.columns):
        return NUMBERED_FRAME
    return "DataFrame with labels of its own"


def positions_of(
    table: models.Table, features: str | int | Sequence[str | int] | None
) -> list[int]:
    """Columns chosen by name or number; by default all numeric ones that are not discrete."""
    everything = range(len(table.names))
    if features is None:
        text = [p for p in everything if not table.is_numeric(p)]
        discrete = [p for p in everything if p not in text and table.is_discrete(p)]
        chosen = [p for p in everything if p not in text and p not in discrete]
        reasons = []
        for left_out, why in ((text, "not numeric"), (discrete, "discrete")):
            if left_out:
                named = ", ".join(repr(table.names[p]) for p in left_out)
                reasons.append(f"{named} ({why})")
        if not chosen:
            raise TypeError(
                f"X must have at least one continuous numeric column; got {'; '.join(reasons)}. "
                f"Name discrete columns in features= to take them all the same."
            )
        if reasons:
            warn(
                f"Left out: {'; '.join(reasons)}. Name discrete columns in features= to take them."
            )
        return chosen
    asked = [features] if isinstance(features, str | int | np.integer) else list(features)
    if not asked:
        raise ValueError("features must name at least one column; got none.")
    positions = []
    for feature in asked:
        position = position_of(feature, table.names)
        if not table.is_numeric(position):
            raise TypeError(
                f"features must be numeric; column {table.names[position]!r} is not. Leave it out: "
                f"the model still receives it."
            )
        if position in positions:
            raise ValueError(f"features must be distinct; got {table.names[position]!r} twice.")
        positions.append(position)
    return positions


@checked
@each_part
@own_rows
def rhale(
    local: xr.Dataset,
    *,
    bins: BinRule | None = None,
    centering: str = "mean",
    std_error_moments: bool = True,
    honest: bool = False,
    honest_fraction: float = 0.5,
    rng: np.random.Generator | int | None = None,
) -> xr.Dataset:
    r"""RHALE: average effect and heterogeneity in bins, and the curve that they accumulate to.

    Parameters
    ----------
    local : Dataset
        What `local_effects` returned.
    bins : bin rule, optional
        `OptimalBins` (the default: the paper's), `AdaptiveBins` (fewer and better ones, constant
        or linear), `GreedyBins`, `EqualWidthBins`, `BestEqualWidthBins`, `QuantileBins`,
        `GivenBins`.
    centering : {"mean", "start", "integral"}, default "mean"
        Where the curve is zero: on average over the rows (the convention of ALE), at the left
        end, or on average over the axis (math [8]). ``curve_offset`` keeps the constant.
    std_error_moments : bool, default True
        Take the moments of higher order that `std_error` needs for the heterogeneity and for a
        curve centred at its mean. They need a second pass over the rows.
    honest : bool, default False
        Choose edges on some rows, drawn at random, and estimate on the others: bins that were
        chosen where the spread happens to be small make it, and the standard errors, too small
        (math [16]). The ends of the axis are those of all rows.
    honest_fraction : float, default 0.5
        Share of the rows on which edges are chosen.
    rng : Generator, int or None
        Source of the random halves, or its seed; ``honest_seed`` in the attributes reproduces them.

    Returns
    -------
    Dataset
        Over (feature, bin): ``effect`` (math [5]), ``heterogeneity`` (math [6], the standard
        deviation, ddof 1), ``n_obs``, ``n_effective``, ``weight_share``, ``x_mean`` and, for
        `std_error`, ``fourth_moment``, ``x_variance``, ``x_covariance``. Over (feature, edge):
        ``curve`` (math [7]), ``curve_std`` and ``curve_std_sum`` (math [9]). Over (feature):
        ``average_effect``, ``heterogeneity_index`` (math [10]), ``heterogeneity_output``,
        ``curve_offset``, ``local_effect_error``. `BestEqualWidthBins` adds ``bin_loss``
        (feature, n_bins_tried). `AdaptiveBins` adds ``slope`` (feature, bin), 0 where a bin is
        constant, and ``line_moments`` (feature, bin, line_moment) for `std_error`; where it is
        not 0, ``effect`` is that in the middle of the bin, ``heterogeneity`` the spread of the
        residuals (ddof 2) and the curve a parabola.
        Coordinates: ``feature``, ``bin``, ``edge``, ``bin_left``, ``bin_right``, ``edge_value``,
        ``n_bins``, ``feature_kind``, ``feature_units``. Beyond a feature's ``n_bins`` values are
        NaN and ``n_obs`` is 0. A constant feature has ``n_bins`` 0 and ``feature_kind``
        "constant".

    Raises
    ------
    ValueError
        Missing or infinite values, fewer rows than the rule needs, unsuitable edges,
        ``honest_fraction`` that leaves one side without rows.
    TypeError
        ``local`` or ``bins`` is something else.

    Warns
    -----
    UserWarning
        A bin without rows: its effect is NaN, and nobody knows how far the curve moves across
        it. The curve is then given, and centred, on the stretch of bins between gaps that has
        most rows, and is NaN elsewhere.

    Notes
    -----
    ``curve_std`` (Eq. 16 of the paper) depends on the partition: sigma = 5 everywhere on
    [-1, 1] gives 10, 4.5 and 1.4 at the right end for 1, 5 and 50 bins. ``curve_std_sum`` does
    not; it is what the paper's figures show, and what `plot_effect` draws.

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
    local = check_local(local)
    refuse_categorical(local, "rhale")
    check_choice("centering", centering, CENTERINGS)
    rule: BinRule = OptimalBins() if bins is None else bins
    check_rule(rule)
    if local.attrs.get("local_effect_method") == "finite_difference":
        rule = of_differences(rule)
    names = feature_names(local)
    split: dict[str, float | int] = {}
    if honest and "n_missing" in local:
        raise ValueError(
            "honest must be False where features have rows of their own (missing='drop'). Select "
            "complete rows before local_effects."
        )
    if honest:
        seed = seed_of(rng)
        chosen_on = honest_split(local.sizes["obs"], honest_fraction, seed)
        rows, search = columns(local.isel(obs=~chosen_on)), columns(local.isel(obs=chosen_on))
        split = {
            "honest_fraction": float(honest_fraction),
            "honest_seed": seed,
            "n_rows_edges": search.n_rows,
        }
    else:
        rows = search = columns(local)
    halves = (search, rows) if honest else (rows,)
    threads = 1 if rows.size < THREADS_FROM else (os.cpu_count() or 1)
    lines = make_lines(rule)

    def first_pass(position: int) -> _Cells:
        name, x = names[position], search.x[position]
        ends = np.array([(half.x[position].min(), half.x[position].max()) for half in halves])
        if not np.isfinite(ends).all():
            for half in halves:
                check_finite(half.x[position], "x", name, SELECT_ROWS)
        column = Column(name, x, float(ends.min()), float(ends.max()), search.weight)
        if column.low == column.high:
            return _Cells(column, None, None, None)
        axis = rule.cells(column)
        return _Cells(column, axis, *_moments(axis, search, position, name, lines=lines))

    cells = map_features(first_pass, range(len(names)), threads)
    errors = local["local_effect_error"].values
    candidates = {
        position: Candidates(
            column.name,
            moments,
            column.low,
            column.high,
            resolution(moments.mean, float(errors[position])),
            comoments,
        )
        for position, (column, _, moments, comoments) in enumerate(cells)
        if moments is not None
    }
    chosen = rule.choose(list(candidates.values()))
    partitions = dict(zip(candidates, chosen, strict=True))

    def second_pass(position: int) -> Estimates:
        column, axis, moments, comoments = cells[position]
        if axis is None or moments is None:
            return {}
        if honest:
            moments, comoments = _moments(axis, rows, position, column.name, lines=lines)
        partition = partitions[position]
        starts = partition.starts
        merged = sums.merge(moments, starts)
        slope = _slopes(moments, comoments, partition, merged)
        residuals = None
        if std_error_moments or slope is not None:
            x, g = rows.x[position], rows.local_effect[position]
            residuals = sums.residual_moments(axis, starts, merged, x, g, rows.weight, slope)
        edges = binning.bin_edges(axis, starts, column.low, column.high)
        return _estimates(
            edges, merged, slope, residuals, centering, std_error_moments=std_error_moments
        )

    # Without the second pass over the rows there is nothing to share out.
    threads = threads if std_error_moments or lines else 1
    estimates = map_features(second_pass, range(len(names)), threads)
    _warn_of_empty_bins(names, estimates, honest=honest)
    effect = _dataset(local, rule, centering, estimates, rows.n_rows)
    effect.attrs |= split
    losses = {number: found.losses for number, found in partitions.items()}
    effect = _with_losses(effect, losses)
    return _with_missing(effect) if "missing_effect" in effect else effect


def _with_missing(effect: xr.Dataset) -> xr.Dataset:
    """Where on the scale of the curve rows without a value stand."""
    at = [
        np.nan if np.isnan(reference) else predict(effect, [reference], name).item()
        for name, reference in zip(
            feature_names(effect), effect["missing_reference"].values, strict=True
        )
    ]
    values = np.array(at) + effect["missing_effect"].values
    fact = "curve at missing_reference, plus missing_effect"
    return effect.assign(missing_curve=variable("missing_curve", values, estimator=fact))


def honest_split(n_obs: int, honest_fraction: float, honest_seed: int) -> NDArray[np.bool_]:
    """Which rows choose the edges; the others estimate. Shape (n_obs,)."""
    n_chosen = round(honest_fraction * n_obs)
    if not 0 < n_chosen < n_obs:
        raise ValueError(
            f"honest_fraction must leave rows on both sides; {honest_fraction!r} of {n_obs} rows "
            f"is {n_chosen}. Use 0.5."
        )
    chosen = np.zeros(n_obs, dtype=bool)
    chosen[np.random.default_rng(honest_seed).permutation(n_obs)[:n_chosen]] = True
    return chosen


def estimation_rows(local: xr.Dataset, effect: xr.Dataset) -> xr.Dataset:
    """The rows of ``local`` on which ``effect`` was estimated: with honest bins, not all."""
    used = is_estimation_row(local, effect)
    return local if used.all() else local.isel(obs=used)


def is_estimation_row(local: xr.Dataset, effect: xr.Dataset) -> NDArray[np.bool_]:
    """Which rows of ``local`` the effect was estimated on. Shape (n_obs,)."""
    n_obs = local.sizes["obs"]
    if ROWS in effect and "region" in effect.coords:
        region_of_row = effect[ROWS].values
        if len(region_of_row) != n_obs:
            raise ValueError(
                f"local must have the rows that the regions were made from; got {n_obs} rows and "
                f"regions of {len(region_of_row)}."
            )
        return np.asarray(region_of_row == int(effect["region"]))
    if "honest_seed" not in effect.attrs:
        return np.ones(n_obs, dtype=bool)
    fraction, seed = (effect.attrs[name] for name in ("honest_fraction", "honest_seed"))
    return ~honest_split(n_obs, float(fraction), int(seed))


def is_used_row(local: xr.Dataset, effect: xr.Dataset) -> NDArray[np.bool_]:
    """Which of these have a weight, too. Shape (n_obs,)."""
    used = is_estimation_row(local, effect)
    return used & (local["weight"].values > 0) if "weight" in local else used


def seed_of(rng: np.random.Generator | int | None) -> int:
    """A number that reproduces what is drawn next, to be kept with the result."""
    return int(np.random.default_rng(rng).integers(2**53))


def _with_losses(effect: xr.Dataset, losses: Mapping[int, FloatArray | None]) -> xr.Dataset:
    """The loss of every number of bins that a rule compared, over (feature, n_bins_tried)."""
    compared = {position: loss for position, loss in losses.items() if loss is not None}
    if not compared:
        return effect
    tried = max(len(loss) for loss in compared.values())
    table = np.full((effect.sizes["feature"], tried), np.nan)
    for position, loss in compared.items():
        table[position, : len(loss)] = loss
    return effect.assign(bin_loss=variable("bin_loss", table, estimator="math [19]")).assign_coords(
        n_bins_tried=("n_bins_tried", np.arange(1, tried + 1), {"long_name": "number of bins"})
    )


def _moments(
    axis: Axis, rows: Rows, position: int, name: str, *, lines: bool
) -> tuple[Moments, Comoments | None]:
    """Moments of one feature's cells, refused where they are not finite."""
    x, g = rows.x[position], rows.local_effect[position]
    with np.errstate(over="ignore", invalid="ignore"):
        moments = sums.cell_moments(axis, x, g, rows.weight, frequency=rows.frequency)
    if not np.isfinite(moments.m2).all():
        check_finite(g, "Local effects", name, SELECT_ROWS)
        raise ValueError(
            f"Local effects of feature {name!r} must be small enough to be squared; "
            f"got up to {np.abs(g).max():.3g}. Rescale the output."
        )
    return moments, sums.comoments(axis, moments, x, g, rows.weight) if lines else None


def _slopes(
    cells: Moments, comoments: Comoments | None, partition: Partition, bins: Moments
) -> FloatArray | None:
    """Slope of the effect in every bin, 0 where it is constant; None from a rule without lines.

    With honest bins a bin may hold too few rows for the line that other rows asked for.
    """
    if comoments is None or partition.linear is None:
        return None
    x_m2, xg = sums.merge_comoments(cells, comoments, partition.starts, bins)
    known = partition.linear & (sums.n_effective(bins) > 2 * (1 + 1e-12)) & (x_m2 > 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(known, xg / x_m2, 0.0)


class _Cells(NamedTuple):
    """Fine cells of one feature; none for a constant one."""

    column: Column
    axis: Axis | None
    moments: Moments | None
    comoments: Comoments | None


class Rows(NamedTuple):
    """Contiguous columns of the local effects, one a feature; rows of weight 0 are gone."""

    x: list[FloatArray]
    local_effect: list[FloatArray]
    weight: FloatArray | None
    frequency: bool
    n_rows: int
    # Differences to the next level and from the one before, where features have levels.
    sides: list[tuple[FloatArray, FloatArray]] | None = None

    @property
    def size(self) -> int:
        """Number of local effects."""
        return self.n_rows * len(self.x)


def columns(local: xr.Dataset) -> Rows:
    """Columns of the local effects; weights scaled to 1 at most and dropped where all are equal."""
    x, g = (
        local.variables[name].transpose("obs", "feature").values for name in ("x", "local_effect")
    )
    if not len(x):
        raise ValueError("local must have at least one row; got none.")
    sides = [
        local.variables[name].transpose("obs", "feature").values
        for name in ("difference_up", "difference_down")
        if name in local
    ]
    weight: FloatArray | None = None
    frequency = local.attrs.get("weight_kind") == "frequency"
    if "weight" in local:
        weight = np.ascontiguousarray(local["weight"].values, dtype=np.float64)
        present = weight > 0
        if not present.all():
            x, g, weight = x[present], g[present], weight[present]
            sides = [side[present] for side in sides]
        if not len(x):
            raise ValueError("local must have rows of positive weight; got none among these rows.")
        if not frequency:
            weight = weight / weight.max()
        if (weight == 1).all():
            weight = None

    def contiguous(table: NDArray[Any]) -> list[FloatArray]:
        return [
            np.ascontiguousarray(table[:, column], dtype=np.float64)
            for column in range(table.shape[1])
        ]

    both = list(zip(*map(contiguous, sides), strict=True)) if sides else None
    return Rows(contiguous(x), contiguous(g), weight, frequency, len(x), both)


def own_columns(local: xr.Dataset, names: Sequence[str]) -> dict[str, tuple[Rows, int]]:
    """Rows that have a value of a feature, with its number among their columns, by its name."""
    groups = features_by_rows(local) if has_gaps(local) else [(feature_names(local), None)]
    found: dict[str, tuple[Rows, int]] = {}
    for members, there in groups:
        part = local if there is None else local.sel(feature=members).isel(obs=there)
        rows = columns(part)
        found |= {name: (rows, number) for number, name in enumerate(members)}
    return {name: found[feature_names(local)[feature_position(local, name)]] for name in names}


def check_same_rows(row: xr.Dataset, x: FloatArray, rows: Rows) -> None:
    """Raise ``ValueError`` unless the bins count and weigh these rows as the effect says."""
    edges, name = row["edge_value"].values, str(row["feature"].values)
    if is_categorical(row):
        code = x.astype(np.int64)
        own = np.bincount(code, rows.weight, len(edges))
        counts = own if rows.frequency else np.bincount(code, minlength=len(edges))
        if (
            rows.sides is None
            or not np.array_equal(counts, row["n_level"].values)
            or not np.allclose(own / own.sum(), row["level_share"].values, rtol=1e-9, atol=0)
        ):
            raise ValueError(
                f"local must be the Dataset that effect was made from; the levels of feature "
                f"{name!r} have other rows or weights in it. Pass that Dataset."
            )
        return
    inside = bool(((x >= edges[0]) & (x <= edges[-1])).all())
    k = binning.bin_index(edges, x)
    weight = np.bincount(k, rows.weight, len(edges) - 1)
    counted = weight if rows.frequency else np.bincount(k, minlength=len(edges) - 1)
    if not inside or not np.array_equal(counted, row["n_obs"].values):
        raise ValueError(
            f"local must be the Dataset that effect was made from; its bins of feature "
            f"{name!r} have {int(row['n_obs'].sum())} rows, and in local "
            f"{len(x)} rows fall into them otherwise. Pass that Dataset, or make the effect of "
            f"this one with bins=GivenBins(edges)."
        )
    found, share = weight / weight.sum(), row["weight_share"].values
    # Sums differ by rounding; one weight of 10^6 that is 1 % larger is more.
    if not np.allclose(found, share, rtol=1e-9, atol=0):
        worst = int(np.argmax(np.abs(found - share)))
        raise ValueError(
            f"local must have the weights that effect was made with; bin {worst} of feature "
            f"{name!r} has {share[worst]:.4g} of the weight in effect and {found[worst]:.4g} in "
            f"local. Pass the Dataset that effect was made from."
        )


def map_features(function: Callable[[S], T], items: Iterable[S], threads: int) -> list[T]:
    """``function`` of every item, on so many threads."""
    if threads == 1:
        return [function(item) for item in items]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, items))


def resolution(mean: FloatArray, error: float) -> float:
    """Local effects that differ by less than this are equal: rounding, or the model's own error."""
    return max(error, 16 * float(np.spacing(np.nanmax(np.abs(mean)))))


def _estimates(
    edges: FloatArray,
    bins: Moments,
    slope: FloatArray | None,
    residuals: ResidualMoments | None,
    centering: str,
    *,
    std_error_moments: bool,
) -> Estimates:
    """RHALE of one feature, by the names of `schema.EFFECT_VARIABLES`."""
    n_bins = len(bins.mean)
    n_effective = sums.n_effective(bins)
    share = bins.weight / bins.weight.sum()
    pieces = accumulate.Pieces(
        edges, bins.mean, np.zeros(n_bins), bins.x_mean, np.zeros(n_bins), share
    )
    effect, ddof = bins.mean, np.ones(n_bins, dtype=np.int64)
    if slope is not None and residuals is not None:
        pieces = pieces._replace(slope=slope, x_variance=residuals.x_variance)
        linear = slope != 0
        # Of residuals about lines; about means the first pass has it already.
        squares = np.where(linear, residuals.second_moment * bins.weight, bins.m2)
        bins = bins._replace(m2=squares)
        effect = np.where(linear, bins.mean + slope * pieces.away(), bins.mean)
        ddof = ddof + linear
    variance = sums.variance(bins, ddof)
    heterogeneity = np.sqrt(variance)
    # The curve, on the bins that it can be accumulated over.
    here = accumulate.known_stretch(bins.weight)
    pieces = pieces.stretch(here)
    spread, width = heterogeneity[here], np.diff(pieces.edges)
    curve = accumulate.accumulate(effect[here], width)
    offset = 0.0
    if centering == "mean":
        offset = accumulate.mean_of_curve(curve, pieces)
    elif centering == "integral":
        offset = accumulate.integral_of_curve(curve, width, pieces.slope)
    std, std_sum = accumulate.curve_std(spread, width), accumulate.curve_std_sum(spread, width)
    estimates: dict[str, FloatArray | float] = {
        "effect": effect,
        "heterogeneity": heterogeneity,
        **({} if slope is None else {"slope": slope}),
        "n_obs": bins.n_obs,
        "n_effective": n_effective,
        "weight_share": share,
        "x_mean": bins.x_mean,
        "edge_value": edges,
        "curve": accumulate.at_edges(curve - offset, here, n_bins),
        "curve_std": accumulate.at_edges(std, here, n_bins),
        "curve_std_sum": accumulate.at_edges(std_sum, here, n_bins),
        "curve_offset": offset,
        "average_effect": float(np.nansum(share * bins.mean)),
        "heterogeneity_index": accumulate.heterogeneity_index(bins.m2, bins.weight, np.diff(edges)),
    }
    if residuals is not None and std_error_moments:
        estimates |= {name: getattr(residuals, name) for name in STD_ERROR_MOMENTS}
        if residuals.line is not None:
            estimates["line_moments"] = residuals.line
        x_variance = accumulate.total_variance(
            bins.x_mean, residuals.x_variance, share, n_effective
        )
        estimates["heterogeneity_output"] = accumulate.heterogeneity_output(
            variance, x_variance, share
        )
    return estimates


def _warn_of_empty_bins(
    names: Sequence[str], estimates: Sequence[Estimates], *, honest: bool
) -> None:
    found = []
    for name, row in zip(names, estimates, strict=True):
        if row and np.isnan(row["effect"]).any():
            empty = np.isnan(row["effect"])
            found.append(f"{name!r} ({int(empty.sum())} of {len(empty)})")
    if found:
        better = " or a larger min_obs" if honest else ", QuantileBins or OptimalBins"
        warn(
            f"Bins without rows: {', '.join(found)}. Their effects are NaN. No curve crosses them: "
            f"it is given on the bins between gaps that have most rows, and NaN elsewhere. Use "
            f"fewer bins{better}."
        )


# What local effects know of rows without a value, and effects hand on.
MISSING_EFFECTS = (
    "n_missing",
    "missing_effect",
    "missing_effect_se",
    "missing_spread",
    "missing_reference",
)
# What `std_error` needs beyond the estimates.
STD_ERROR_MOMENTS = ("third_moment", "fourth_moment", "x_variance", "x_covariance")
# What every feature has, and is NaN for a constant one.
ESTIMATES = (
    "effect",
    "heterogeneity",
    "n_obs",
    "n_effective",
    "weight_share",
    "x_mean",
    "edge_value",
    "curve",
    "curve_std",
    "curve_std_sum",
    "curve_offset",
    "average_effect",
    "heterogeneity_index",
    "heterogeneity_output",
    *STD_ERROR_MOMENTS,
)
# Facts about an estimator that travel with its variable, beside its names and units.
FACTS: dict[str, dict[str, str | int | float]] = {
    "effect": {"estimator": "mean of the local effects, math [5]"},
    "heterogeneity": {"estimator": "standard deviation of the residuals, math [6]", "ddof": 1},
    "slope": {"estimator": "least squares, math [22]"},
    "curve_std": {"estimator": "math [9], Eq. 16 of the paper"},
    "curve_std_sum": {"estimator": "math [9], as in the paper's figures"},
    "heterogeneity_index": {"estimator": "math [10]", "ddof": 0},
    "heterogeneity_output": {"estimator": "math [10]", "ddof": 1},
}


def _dataset(
    local: xr.Dataset,
    rule: BinRule,
    centering: str,
    estimates: Sequence[Estimates],
    n_rows: int,
) -> xr.Dataset:
    """Everything labelled, padded to the feature with the most bins."""
    names = next((tuple(row) for row in estimates if row), ESTIMATES)
    facts, lines = dict(FACTS), {}
    if "slope" in names:
        facts |= {"heterogeneity": FACTS["heterogeneity"] | {"ddof": "1; 2 where slope is not 0"}}
    if "line_moments" in names:
        lines = {"line_moment": ("line_moment", list(LINE_MOMENTS), {"long_name": "product"})}
    return effects_of(
        local,
        estimates,
        names,
        facts,
        method="rhale",
        rule=describe(rule),
        centering=centering,
        n_rows=n_rows,
        handed_on=MISSING_EFFECTS,
    ).assign_coords(lines)


def effects_of(
    local: xr.Dataset,
    estimates: Sequence[Estimates],
    names: Sequence[str],
    facts: Mapping[str, Mapping[str, str | int | float]],
    *,
    method: str,
    rule: tuple[str, str],
    centering: str,
    n_rows: int,
    handed_on: Sequence[str],
) -> xr.Dataset:
    """Estimates of all features in the schema of effects; of a constant one, ``names`` are NaN.

    ``rule`` is the name and the parameters of the rule for bins, ``handed_on`` what of the local
    effects belongs to the effects too.
    """
    n_bins = np.array([np.size(row["effect"]) if row else 0 for row in estimates])
    most = max(int(n_bins.max()), 1)
    arrays = stacked([row or dict.fromkeys(names, np.nan) for row in estimates], most)
    edges = arrays.pop("edge_value")
    beyond = np.arange(most) >= n_bins[:, None]
    kinds = np.where(n_bins > 0, local["feature_kind"].values, "constant")
    facts = {**facts, "curve": {"centering": centering}}
    rule_name, parameters = rule
    return xr.Dataset(
        {
            **{
                name: variable(name, array, **facts.get(name, {})) for name, array in arrays.items()
            },
            "local_effect_error": local["local_effect_error"],
            **{name: local[name] for name in handed_on if name in local},
        },
        {
            "feature": local["feature"],
            "feature_kind": ("feature", kinds),
            "feature_units": local["feature_units"],
            "n_bins": ("feature", n_bins, {"long_name": "number of bins"}),
            "bin": ("bin", np.arange(most), {"long_name": "bin"}),
            "edge": ("edge", np.arange(most + 1), {"long_name": "edge of a bin"}),
            "bin_left": (
                ("feature", "bin"),
                np.where(beyond, np.nan, edges[:, :-1]),
                {"long_name": "left edge of the bin", "units": X_UNITS},
            ),
            "bin_right": (
                ("feature", "bin"),
                np.where(beyond, np.nan, edges[:, 1:]),
                {"long_name": "right edge of the bin", "units": X_UNITS},
            ),
            "edge_value": variable("edge_value", edges),
        },
        {
            "method": method,
            "bin_rule": rule_name,
            "bin_parameters": parameters,
            "closed": "left; the last bin on both sides",
            "centering": centering,
            "local_effect_method": local.attrs.get("local_effect_method", "unknown"),
            "weight_kind": local.attrs.get("weight_kind", "none"),
            "output_name": local.attrs.get("output_name", "output"),
            "output_units": local.attrs.get("output_units", ""),
            "n_rows": n_rows,
            "software": software(),
        },
    )


@checked
@each_part
def predict(effect: xr.Dataset, x: Any, feature: str | int | None = None) -> xr.DataArray:
    """Evaluate the curve of one feature, NaN outside the range of the rows; or a surface of two.

    Within a bin the curve is linear, and a parabola where the effect has a slope. A surface is
    bilinear within a cell of numbers, and taken by level.

    Parameters
    ----------
    effect : Dataset
        What `rhale`, `pdp` or another profile returned, or `ale2`.
    x : array_like or DataArray
        Values of the feature, in its own units; of a categorical feature levels. Of a surface
        those of both: a tuple of two, whose DataArrays go together by their dims, an array of two
        columns, or a DataFrame with both features.
    feature : str or int
        Name or number; left out for a surface.

    Returns
    -------
    DataArray
        The curve at ``x``, in units of the output, centred as ``effect`` is. One-dimensional
        ``x`` gets the dimension "grid" with coordinate ``x``; a DataArray keeps its dimensions.
        Of a surface coordinates have the names of the features, and values in cells without rows
        are NaN.

    Raises
    ------
    KeyError
        Unknown feature; a DataFrame without one of two.
    TypeError
        No feature, of something else than a surface.
    ValueError
        Unknown level; values of one feature, or a feature, for a surface.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(0, 1, (500, 1))
    >>> local = rs.local_effects(lambda X: 3 * X[:, 0], X, features=0)
    >>> effect = rs.rhale(local, centering="start")
    >>> curve = rs.predict(effect, [0.2, 0.7], "x0")
    >>> float((curve[1] - curve[0]).round(6))
    1.5
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> surface = rs.ale2(lambda X: X[:, 0] * X[:, 1], X, (0, 1))
    >>> rs.predict(surface, ([0.8, -0.8], [0.5, 0.5])).round(1).values
    array([ 0.4, -0.4])
    """
    if surface_data.is_surface(effect):
        return surface_data.evaluate(effect, x, feature)
    if feature is None:
        raise TypeError(
            "feature must be the name or number of one feature, as in predict(effect, x, 'dose'); "
            "got None, which is for surfaces of ale2."
        )
    if is_profile(effect):
        return evaluate(effect, x, feature)
    effect = check_effect(effect)
    row = one_feature(effect, feature)
    name = feature_names(effect)[feature_position(effect, feature)]
    labels: NDArray[Any] = np.asarray(x)
    if is_categorical(row):
        numbers = _level_numbers(row, labels)
        x = x.copy(data=numbers) if isinstance(x, xr.DataArray) else numbers
    values = as_numbers(x.values if isinstance(x, xr.DataArray) else x, "x")
    at = x.copy(data=values) if isinstance(x, xr.DataArray) else xr.DataArray(values)
    if not isinstance(x, xr.DataArray) and at.ndim == 1:
        at = xr.DataArray(at.values, dims="grid")
    edges, curve = row["edge_value"].values, row["curve"].values
    if len(edges):
        values = accumulate.curve_at(edges, curve, slopes(row), at.values)
    else:
        values = np.full(at.shape, np.nan)
    out = xr.DataArray(values, dims=at.dims, coords=at.coords, name="curve")
    out.attrs = {**effect["curve"].attrs, "feature": name}
    if "x" not in out.coords:
        labels = labels.astype(str) if labels.dtype == object else labels
        out = out.assign_coords(x=(at.dims, labels if is_categorical(row) else at.values))
    return out


def _level_numbers(row: xr.Dataset, labels: NDArray[Any]) -> FloatArray:
    """Numbers of levels from what a table holds, or from their names."""
    names = level_names(row)
    texts = [level_text(label) for label in np.ravel(labels)]
    unknown = sorted(set(texts) - set(names))
    if unknown:
        raise ValueError(
            f"x must hold levels of feature {str(row['feature'].values)!r}, "
            f"{', '.join(map(repr, names))}; got {', '.join(map(repr, unknown))}."
        )
    return np.array([float(names.index(text)) for text in texts]).reshape(labels.shape)
