"""Local effects of a model, and RHALE: their mean and spread along each axis.

`local_effects` is the only function that asks the model. `rhale` and everything after it is
arithmetic on what it returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import boost_histogram as bh
import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from tqdm import tqdm

from rhale_stats import models, probes
from rhale_stats.arrays import accumulate, binning
from rhale_stats.arrays import cells as fine
from rhale_stats.arrays import moments as sums
from rhale_stats.arrays.moments import Axis, Comoments, FloatArray, Moments, ResidualMoments
from rhale_stats.bins import (
    DEFAULT_BINS,
    SEARCHING,
    BinRule,
    Candidates,
    Column,
    Partition,
    cells_of,
    check_rule,
    describe,
    make_lines,
)
from rhale_stats.by_part import each_part, features_by_rows, has_gaps, own_rows
from rhale_stats.curves import WEIGHTINGS, curve_of
from rhale_stats.identity import (
    MODEL_FACTS,
    as_attribute,
    check_same_output,
    fingerprint,
    fingerprint_of,
    row_coordinate,
    same_rows,
)
from rhale_stats.parallel import cpus
from rhale_stats.schema import (
    EFFECT_UNITS,
    LINE_MOMENTS,
    OUTPUT,
    PARTS,
    ROWS,
    X_UNITS,
    Estimates,
    bin_means,
    check_effect,
    check_local,
    feature_names,
    feature_position,
    given_feature,
    is_categorical,
    level_names,
    level_text,
    methods_of,
    one_feature,
    refuse_categorical,
    software,
    stacked,
    unit_mapping,
    variable,
    with_outputs,
)
from rhale_stats.seeds import seed_of, source_of
from rhale_stats.validate import (
    MOST_SIZE,
    as_numbers,
    check_choice,
    check_finite,
    check_size,
    checked,
    warn,
)

MISSING = ("raise", "drop", "bin")
METHODS = ("auto", "jacobian", "central_difference", "finite_difference")
CENTERINGS = ("mean", "start", "integral")
# Cells that finite differences are taken across by default: so many at most and at least, and so
# many rows in each.
MOST_CELLS, LEAST_CELLS, ROWS_OF_A_CELL, ROWS_OF_A_VALUE = 40, 5, 10, 5
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
        Called with whole tables in the form of ``X``, never row by row: for two versions of its
        rows a feature, and before that for at most 10,000 rows a feature (see Notes). Returns one
        number a row, or a column for each of several outputs; of a classifier its probabilities
        are taken, see ``scale``. Labels are refused. It must answer the same to the same rows.
        Offset and exposure of a statsmodels model are used, see Notes. May be None when
        ``jacobian`` is given.
    X : DataFrame or array_like of shape (n_rows, n_columns)
        Rows at which effects are taken. A formula model needs a DataFrame with all its columns.
        Units are read from ``X.attrs["units"]``, a mapping from column to unit; name and unit of
        the output from ``X.attrs["output_name"]`` and ``X.attrs["output_units"]``.
    jacobian : callable or array_like of shape (n_rows, n_columns), optional
        Derivatives of the output with respect to every column, or a function of ``X`` that
        returns them. A DataFrame needs the columns of ``features`` only. Where ``model`` is given
        too, both are compared as by `check_jacobian`, and derivatives that differ are refused.
    features : name, number, or sequence of them, optional
        Columns to take. By default all that are numeric and not discrete; a warning names the
        others. A column of numbers is discrete when it has at most 12 distinct values, two rows
        each on average. Named columns are taken as they are, if they are numeric.
    weights : array_like of shape (n_rows,), optional
        Row weights, math [6]. Rows of weight zero count as absent. A Series goes by the index of
        ``X``.
    weight_kind : {"precision", "frequency"}, default "precision"
        Survey and precision weights, or counts of repeated rows.
    method : {"auto", "jacobian", "central_difference", "finite_difference"}, default "auto"
        "auto" takes derivatives, by ``jacobian`` where given and else by central differences, of
        every feature with which the output does not jump. Of the others, as of all features of
        trees, forests and nearest neighbours, it takes slopes across cells (math [2]), and says so
        in one `JumpWarning`; of discrete columns as well, between whose levels there is nothing.
        "finite_difference" takes slopes across cells of all features. "central_difference" and
        "jacobian" refuse derivatives that are zero where the output moves.
    bins : bin rule, optional
        Binning rule that defines the cells for slopes. By default they go from each distinct value
        to the next where there are at most 41, of 5 rows or more each, and hold equal numbers of
        rows otherwise, 40 cells at most and 10 rows or more in each.
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
        ``local_effect_error`` (feature), the numerical error that all but 1 % of the local effects
        stay below, of rounding and of the length of the step; ``cell_value`` (feature, cell_edge),
        the edges of the cells that slopes were taken across, where there are any;
        ``weight`` (obs) where given. Where values are missing ``n_missing`` (feature), and with
        ``missing="bin"`` also ``missing_effect``, ``missing_effect_se``, ``missing_spread`` and
        ``missing_reference``. With several outputs ``local_effect`` and what else is of an output
        have the dimension ``output`` in front. Coordinates ``feature``,
        ``feature_kind``, ``feature_units``, ``feature_column``, ``local_effect_method`` (feature),
        and ``obs``. Attributes ``scale``, ``output_label`` and ``answer_precision``, the unit of
        rounding of the answers.

    Raises
    ------
    ValueError
        Missing or infinite values in ``X`` or in local effects, no rows, repeated column names, a
        Jacobian of another shape or one that differs from the model, unusable weights, a scale
        that the model does not have; labels in place of numbers; an offset that is not known for
        these rows; with ``method="central_difference"`` a model without a useful derivative.
    KeyError
        Unknown feature or output.
    TypeError
        No numeric feature, or a model that cannot be called.
    ModelError
        The model raised, returned something else than numbers for every row, or answered the same
        rows differently.

    Warns
    -----
    JumpWarning
        The output jumps with some features, or moves in gaps between rows.
    UserWarning
        Columns that are left out.

    Notes
    -----
    *Steps.* The step of central differences is chosen for every feature from its scale s (the
    interquartile range over 1.349) and the precision eps in which the model answers: at a row
    h = s (A eps)^(1/3) with A = max(1, abs(x)/s). The error, relative to how the output varies over
    s, is about (A eps)^(2/3): 4e-11 in double precision, 2e-5 for models in single precision, 2e-6
    for time stamps of 1.7e9 with a spread of 100. Arguments are kept within the observed range, so
    that rows within h of its ends get one-sided differences, with an error of order h.

    *Probe.* Of each feature at most 1,000 rows are looked at, evenly over its quantiles. The change
    of the output across a window around each row (1 % of the rows) is compared with the derivative
    times the width. Where the two differ, windows are cut into 4,096 pieces where the change stands
    out: a jump remains, the change of a steep curve or at a kink vanishes. The output jumps if
    jumps make more than 0.1 % of its change with the feature (of all windows, or of those without
    the outer 1 % of rows at each end), or if derivatives by half the step differ by more than 5 %
    (root mean squares, beyond rounding). A rise within less than 1/4,096 of a window counts as a
    jump. Where the output does not jump, derivatives are not taken either if they miss more than
    10 % of its change in wide gaps between rows, nor across a gap as `rhale` warns of, as beside a
    point mass at 0. With several outputs one of them is enough. Precision is that of the type of
    the answers, of the coarser type that holds all of them (models that compute in single
    precision), or what noise in third differences shows. Apart from the model's own time a probe
    takes about 5 ms a feature with an array and 8 ms with a DataFrame.

    *Offsets.* ``predict`` of statsmodels leaves out offset and exposure for new rows. They are
    computed from the column of ``X`` that they were made from, as it is or by its logarithm, or
    are those of the rows of the fit where ``X`` is the table of the fit; else the model is refused.

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
    check_choice("weight_kind", weight_kind, ("precision", "frequency"))
    derivative = "central_difference" if jacobian is None else "jacobian"
    kind = derivative if method == "auto" else method
    _check_request(model, method, kind, jacobian, bins, output, scale, missing)
    weight = table.weights(weights, weight_kind)
    positions = models.positions_of(table, features)
    x = np.empty((table.n_rows, len(positions)), order="F")
    for column, position in enumerate(positions):
        x[:, column] = models.check_column(table, position, missing=missing)
    _check_weight(table, positions, x, weight)

    derivatives, quotients = {}, None
    if kind == "jacobian":
        derivatives = models.jacobian_columns(jacobian, table, positions)
    if model is not None or kind != "jacobian":
        quotients = models.DifferenceQuotients(model, table, output, scale)
        probes.check_answers(quotients)
    counted = weight_kind == "frequency"
    request = _Request(table, kind, method == "auto", bins, weight, counted, quotients, derivatives)
    bar = tqdm(
        positions,
        "local effects",
        unit="feature",
        disable=not progress or quotients is None,
        delay=PROGRESS_DELAY,
    )
    found = [request.feature(position, x[:, column]) for column, position in enumerate(bar)]
    request.conclude()
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
        quotients=quotients,
        absent=absent,
    )


@dataclass(frozen=True)
class _Request:
    """How local effects are to be taken, and what was found of the model meanwhile.

    ``kind`` is the method wanted; with ``auto`` slopes across cells stand in for derivatives that
    do not hold.
    """

    table: models.Table
    kind: str
    auto: bool
    bins: BinRule | None
    weight: FloatArray | None
    counted: bool
    quotients: models.DifferenceQuotients | None
    derivatives: Mapping[int, models.Differences]
    jumping: list[tuple[str, probes.Probe]] = field(default_factory=list)
    differing: list[tuple[str, float]] = field(default_factory=list)

    def feature(self, position: int, x: FloatArray) -> models.Differences:
        """Local effects of one feature, at the rows that have a value."""
        there, name = ~np.isnan(x), self.table.names[position]
        own = x[there]
        if own.min() == own.max():
            return models.no_differences(self.kind)  # there is no effect to estimate
        kind, probed = self._kind(position, there)
        if kind == "jacobian":
            found = self.derivatives[position].at(there)
        else:
            assert self.quotients is not None
            quotients = self.quotients.at(there)
            if kind == "finite_difference":
                weight = None if self.weight is None else self.weight[there]
                edges = difference_edges(self.bins, name, own, weight, counted=self.counted)
                found = quotients.finite(position, edges)
            else:
                found = quotients.central(position)
        if kind == "central_difference" and probed is not None:
            found = replace(found, error=found.error + probed.truncation)
        check_finite(
            found.local_effect.sum(axis=1),
            "Local effects",
            name,
            "See what the model returns at these rows.",
        )
        return found

    def _kind(self, position: int, there: NDArray[np.bool_]) -> tuple[str, probes.Probe | None]:
        """How local effects of one feature are taken, and what the probe said."""
        if self.quotients is None or self.kind == "finite_difference":
            return self.kind, None
        if self.auto and self.kind == "central_difference" and self.table.is_discrete(position):
            return "finite_difference", None  # there is nothing between two levels
        name, used = self.table.names[position], there
        if self.weight is not None:
            used = there & (self.weight > 0)
        found = probes.probe(self.quotients, position, used)
        if not found.holds:
            if not self.auto:
                probes.refuse_useless(name, found)
            self.jumping.append((name, found))
            return "finite_difference" if self.auto else self.kind, found
        if self.kind == "jacobian":
            deviation, agrees = probes.deviation(found, self.derivatives[position].at(found.rows))
            if not agrees:
                self.differing.append((name, deviation))
        return self.kind, found

    def conclude(self) -> None:
        """Refuse a Jacobian that is not that of the model; warn of jumps, once."""
        if self.differing:
            probes.refuse_jacobian(self.differing)
        if self.jumping:
            then = f"method={self.kind!r} does not see them. Use method='auto'."
            if self.auto:
                then = (
                    "slopes across cells were taken. "
                    "method='finite_difference' takes them without a probe."
                )
            warn(probes.warning_text(self.jumping, then), probes.JumpWarning)


def _check_request(
    model: models.Model,
    method: str,
    kind: str,
    jacobian: Any,
    bins: BinRule | None,
    output: models.OutputLabels,
    scale: str,
    missing: str,
) -> None:
    """Raise ``ValueError`` for arguments that contradict each other."""
    if (kind == "jacobian") != (jacobian is not None):
        raise ValueError(
            f"method={method!r} and jacobian={'None' if jacobian is None else '...'} contradict "
            f"each other: pass a jacobian with method='jacobian' or 'auto', and none otherwise."
        )
    if bins is not None:
        check_rule(bins)
        if method not in ("auto", "finite_difference") or model is None:
            raise ValueError(
                f"bins must be None unless a model is asked for finite differences; got "
                f"method={method!r} and {'no model' if model is None else 'a model'}. Pass them to "
                f"rhale."
            )
    if model is None and (output is not None or scale != "response"):
        raise ValueError(
            "output and scale must be left out where there is no model: a jacobian belongs to one "
            "output already."
        )
    if missing == "bin" and kind == "jacobian":
        raise ValueError(
            "missing='bin' asks the model what missing values do; a jacobian does not say. Use "
            "missing='drop', or pass the model without a jacobian."
        )


def _check_weight(
    table: models.Table, positions: Sequence[int], x: FloatArray, weight: FloatArray | None
) -> None:
    """Raise ``ValueError`` where no row with a value of a feature has weight."""
    if weight is None:
        return
    for column, position in enumerate(positions):
        there = ~np.isnan(x[:, column])
        if not (weight[there] > 0).any():
            raise ValueError(
                f"weights must be positive in some row with a value of feature "
                f"{table.names[position]!r}; all {int(there.sum())} such rows have weight 0. Leave "
                f"the feature out: features=[...]."
            )


def difference_edges(
    rule: BinRule | None,
    name: str,
    x: FloatArray,
    weight: FloatArray | None,
    *,
    counted: bool = False,
) -> FloatArray:
    """Edges of the cells that slopes are taken across, math [2].

    Cells are those of the rule, of the rows with weight. A rule that joins cells gets cells that
    adapt to the rows, and so does none: from each distinct value to the next where these are few
    and have rows enough, else cells of equal numbers of rows, with 10 or more; ``max_bins`` of the
    rule at most, and 40 without one.
    """
    counts = None if weight is None or (weight == weight.max()).all() else weight[weight > 0]
    own = x if weight is None else x[weight > 0]
    low, high = float(own.min()), float(own.max())
    if low == high:
        return np.array([low])
    if rule is None or isinstance(rule, SEARCHING):
        most = MOST_CELLS if rule is None else rule.max_bins
        # Rows that are counted stand for as many alike.
        repeats = np.ones(len(own)) if weight is None or not counted else weight[weight > 0]
        values, of_row = np.unique(own, return_inverse=True)
        if len(values) <= most + 1 and np.bincount(of_row, repeats).min() >= ROWS_OF_A_VALUE:
            return values
        n_cells = int(min(max(repeats.sum() // ROWS_OF_A_CELL, LEAST_CELLS), most))
        edges = binning.quantile_edges(own, n_cells, counts)
        return np.concatenate([[low], edges[(edges > low) & (edges < high)], [high]])
    axis = rule.cells(Column(name, own, low, high, counts))
    return binning.bin_edges(axis, np.arange(len(axis)), low, high)


def labelled(
    X: Any,
    table: models.Table,
    positions: Sequence[int],
    x: FloatArray,
    found: Sequence[models.Differences],
    weight: FloatArray | None,
    *,
    weight_kind: str,
    quotients: models.DifferenceQuotients | None = None,
    absent: Mapping[int, Mapping[str, FloatArray]] | None = None,
) -> xr.Dataset:
    """Local effects of some columns, at the rows that have a value, as `local_effects` returns."""
    names = [table.names[position] for position in positions]
    attrs = getattr(X, "attrs", {})
    units = unit_mapping(attrs)
    outputs = None if quotients is None else quotients.outputs
    labels = [] if outputs is None else outputs.labels
    n_outputs = max(len(labels), 1)
    effect = np.full((n_outputs, len(positions), table.n_rows), np.nan)
    error = np.zeros((n_outputs, len(positions)))
    missing, absent = np.isnan(x), absent or {}
    for column, one in enumerate(found):
        if len(one.local_effect):
            _check_sizes(names[column], x[~missing[:, column], column], one.local_effect)
            effect[:, column, ~missing[:, column]] = one.local_effect.T
            error[:, column] = one.error
    coordinates: dict[str, Any] = {
        "feature": ("feature", np.array(names), {"long_name": "feature"}),
        "feature_kind": (
            "feature",
            np.array([table.kind(p) for p in positions]),
        ),
        "feature_units": ("feature", np.array([units.get(name, "") for name in names])),
        "local_effect_method": (
            "feature",
            np.array([one.method for one in found]),
            {"long_name": "how local effects were taken"},
        ),
        "feature_column": (
            "feature",
            np.array(positions),
            {"long_name": "number of the column in the table"},
        ),
    }
    coordinates["obs"] = row_coordinate(X, table.n_rows)
    data: dict[str, Any] = {
        "x": (("obs", "feature"), x, {"long_name": "value of the feature", "units": X_UNITS}),
        "local_effect": (
            (OUTPUT, "obs", "feature"),
            effect.transpose(0, 2, 1),
            {"long_name": "local effect", "units": EFFECT_UNITS},
        ),
        "local_effect_error": ((OUTPUT, "feature"), *variable("local_effect_error", error)[1:]),
    }
    most = max((len(one.edges) for one in found if one.edges is not None), default=0)
    if most:
        edges = np.full((len(positions), most), np.nan)
        for column, one in enumerate(found):
            if one.edges is not None:
                edges[column, : len(one.edges)] = one.edges
        data["cell_value"] = variable("cell_value", edges)
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
            "scale": "" if outputs is None else outputs.scale,
            "output_label": "" if outputs is None else outputs.label,
            "answer_precision": max(one.precision for one in found),
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


def _check_sizes(name: str, x: FloatArray, local_effect: FloatArray) -> None:
    """Raise ``ValueError`` where powers of local effects, or of curves, are no numbers, or 0."""
    size = float(np.abs(local_effect).max())
    check_size(size, f"Local effects of feature {name!r}", "Take other units for the output.")
    advice = "Take other units for the output or the feature."
    check_size(size * float(np.ptp(x)), f"The range of the curve of feature {name!r}", advice)


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
    reference = np.quantile(
        x[~gone], 0.5, method="inverted_cdf", weights=w[~gone] if weight is not None else None
    )
    there = np.full(gone.sum(), reference)
    change, _ = quotients.at(gone).between(position, *quotients.table.held(position, gone, there))
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


@checked
def rhale(
    local: xr.Dataset,
    *,
    bins: BinRule | None = None,
    centering: str = "mean",
    weighting: str = "axis",
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
        `AdaptiveBins` (the default: as few as the data allow, constant or linear), `OptimalBins`
        (the paper's), `GreedyBins`, `EqualWidthBins`, `BestEqualWidthBins`, `QuantileBins`,
        `GivenBins`.
    centering : {"mean", "start", "integral"}, default "mean"
        Where the curve is zero: on average over the rows (the convention of ALE), at the left
        end, or on average over the axis (math [8]). ``curve_offset`` keeps the constant.
    weighting : {"axis", "rows"}, default "axis"
        What the effect of a bin is. "axis": the average of mu(z) along the axis (math [12]), by
        fine cells; the curve is accumulated from these and does not depend on the bins. "rows":
        the mean over the rows of the bin, which the paper writes (math [5]). The two differ where
        rows are denser at one end of a bin in which the effect changes; the curve by rows is then
        biased.
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
        Source of the random halves, or its seed. None draws anew; ``seed`` in the attributes of the
        result reproduces them (-1 with a Generator).

    Returns
    -------
    Dataset
        Over (feature, bin): ``effect`` (math [5]), ``heterogeneity`` (math [6], the standard
        deviation, ddof 1), ``n_obs``, ``n_effective``, ``weight_share``, ``x_mean`` and, for
        `std_error`, ``fourth_moment``, ``x_variance``, ``x_covariance``. Over (feature, edge):
        ``curve`` (math [7]), ``curve_std`` and ``curve_std_sum`` (math [9]). Over (feature):
        ``average_effect``, ``heterogeneity_index`` (math [10]), ``heterogeneity_output``,
        ``curve_offset``, ``local_effect_error``. With ``weighting="axis"`` ``effect_rows``
        (feature, bin), the mean over the rows; and the cells that the curve is accumulated from,
        over (feature, cell) between the ``cell_value`` of (feature, cell_edge), where the curve is
        ``cell_curve``: ``cell_effect``,
        ``cell_share`` and, for `std_error`, ``cell_heterogeneity``, ``cell_n_effective``,
        ``cell_x_mean``, ``cell_x_variance``, ``cell_x_covariance``. `BestEqualWidthBins` adds
        ``bin_loss`` (feature, n_bins_tried). `AdaptiveBins` adds ``slope`` (feature, bin), 0 where
        a bin is constant, and ``line_moments`` (feature, bin, line_moment) for `std_error`; where
        it is not 0, ``heterogeneity`` is the spread of the residuals (ddof 2).
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
        A bin without rows, or a gap inside a bin: a stretch without rows more than a tenth as wide
        as the middle 98 % of them and 30 times as wide as the distances around it; or, where local
        effects are slopes across cells, a cell without rows. How far the curve moves across it is
        not known. The curve is given, and centred, on the stretch between gaps that has most rows,
        and is NaN elsewhere; the effect of the bin is that of its part with rows.

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
    generator, seed = source_of(rng)
    effect = quiet_rhale(
        local,
        bins=bins,
        centering=centering,
        weighting=weighting,
        std_error_moments=std_error_moments,
        honest=honest,
        honest_fraction=honest_fraction,
        rng=generator,
    )
    _warn_of_gaps(effect)
    return effect.assign_attrs(seed=seed) if honest else effect


@each_part
@own_rows
def quiet_rhale(
    local: xr.Dataset,
    bins: BinRule | None = None,
    *,
    centering: str = "mean",
    weighting: str = "axis",
    std_error_moments: bool = True,
    honest: bool = False,
    honest_fraction: float = 0.5,
    rng: np.random.Generator | int | None = None,
) -> xr.Dataset:
    """`rhale` where bins without rows are expected: without its warning."""
    local = check_local(local)
    refuse_categorical(local, "rhale")
    check_choice("centering", centering, CENTERINGS)
    check_choice("weighting", weighting, WEIGHTINGS)
    rule: BinRule = DEFAULT_BINS if bins is None else bins
    check_rule(rule)
    names = feature_names(local)
    split: dict[str, float | int] = {}
    if honest and "n_missing" in local:
        raise ValueError(
            "honest must be False where features have different rows (missing='drop'). Select "
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
    threads = 1 if rows.size < THREADS_FROM else cpus()
    lines = make_lines(rule)
    slopes_across = cell_edges(local)

    def first_pass(position: int) -> _Cells:
        name, x = names[position], search.x[position]
        ends = np.array([(half.x[position].min(), half.x[position].max()) for half in halves])
        if not np.isfinite(ends).all():
            for half in halves:
                check_finite(half.x[position], "x", name, SELECT_ROWS)
        low, high = float(ends.min()), float(ends.max())
        given = slopes_across[position]
        if given is not None:
            given = _reached(given, low, high)
            low, high = float(given[0]), float(given[-1])
        column = Column(name, x, low, high, search.weight, given)
        if low == high:
            return _Cells(column, None, None, None)
        axis = cells_of(rule, column)
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
            None if column.cells is None or axis is None else np.asarray(axis.edges),
        )
        for position, (column, axis, moments, comoments) in enumerate(cells)
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
        along = None
        if weighting == "axis":
            along = _fine_cells(column, edges, rows, position)
        found = _estimates(
            edges, merged, along, slope, residuals, centering, std_error_moments=std_error_moments
        )
        if along is None or slope is None:
            return found
        shared = _shared_noise(along, merged, slope, rows, position)
        return {**found, "effect_slope_covariance": shared}

    # Without the second pass over the rows there is nothing to share out.
    again = std_error_moments or lines or weighting == "axis"
    estimates = map_features(second_pass, range(len(names)), threads if again else 1)
    effect = _dataset(local, rule, centering, estimates, rows.n_rows)
    effect.attrs |= {"weighting": weighting} | split | fingerprints(rows, names, threads)
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
    """Moments of one feature's cells, refused where their powers are not finite."""
    x, g = rows.x[position], rows.local_effect[position]
    size = float(max(g.max(), -g.min()))
    if not size <= MOST_SIZE:
        check_finite(g, "Local effects", name, SELECT_ROWS)
        check_size(size, f"Local effects of feature {name!r}", "Take other units for the output.")
    moments = sums.cell_moments(axis, x, g, rows.weight, frequency=rows.frequency)
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


def cell_edges(local: xr.Dataset) -> list[FloatArray | None]:
    """Edges of the cells that slopes were taken across, by feature; None of derivatives."""
    if "cell_value" not in local:
        return [None] * local.sizes["feature"]
    table = local["cell_value"].transpose("feature", "cell_edge").values
    found = [own[np.isfinite(own)] for own in table]
    return [own if len(own) else None for own in found]


def _reached(cells: FloatArray, low: float, high: float) -> FloatArray:
    """Edges of the cells from the first to the last one that has rows."""
    first = np.clip(np.searchsorted(cells, low, side="right") - 1, 0, len(cells) - 2)
    last = np.clip(np.searchsorted(cells, high, side="right") - 1, 0, len(cells) - 2)
    return cells[first : last + 2]


def _fine_cells(column: Column, edges: FloatArray, rows: Rows, position: int) -> fine.Cells:
    """Cells of one feature for its curve: those of its slopes, or of a few rows each."""
    x, weight = rows.x[position], rows.weight
    if column.cells is not None:
        inside = column.cells[(column.cells > edges[0]) & (column.cells < edges[-1])]
        own = np.union1d(edges, inside)
    else:
        n = len(x) if weight is None else float(weight.sum())
        if weight is not None and not rows.frequency:
            n = float(weight.sum() ** 2 / np.sum(weight**2))
        asked = min(max(n / fine.CELL_ROWS, 1.0), fine.MOST_CELLS)
        own = fine.nested_edges(x, weight, edges, asked, frequency=rows.frequency)
    return fine.moments_in(
        own, edges, x, rows.local_effect[position], weight, frequency=rows.frequency
    )


def _shared_noise(
    cells: fine.Cells,
    bins: Moments,
    slope: FloatArray,
    rows: Rows,
    position: int,
) -> FloatArray:
    """Covariance of the average along a bin with the slope of its line, by influences of rows."""
    x, g = rows.x[position], rows.local_effect[position]
    level = fine.along_axis(cells.width, cells.weight, cells.bin)
    with np.errstate(invalid="ignore", divide="ignore"):
        products, spread = _sums_about_lines(
            cells, level / cells.weight, bins, slope, x, g, rows.weight, frequency=rows.frequency
        )
        n = sums.n_effective(bins)
        return np.where(slope != 0, products / spread * n / (n - 2), 0.0)


def _sums_about_lines(
    cells: fine.Cells,
    factor: FloatArray,
    bins: Moments,
    slope: FloatArray,
    x: FloatArray,
    g: FloatArray,
    weight: FloatArray | None,
    *,
    frequency: bool,
) -> tuple[FloatArray, FloatArray]:
    """Sums over the rows of bins: w^2 factor d r^2 and w d^2, the factor that of the row's cell.

    d is the distance from the bin's mean of x, r the residual from its line.
    """
    axis = bh.axis.Integer(0, len(slope))
    products, spread = (bh.Histogram(axis, storage=bh.storage.Double()) for _ in range(2))
    last = len(cells.bin) - 1
    for begin in range(0, len(x), sums.CACHED_ROWS):
        block = slice(begin, begin + sums.CACHED_ROWS)
        cell = np.minimum(cells.of_row[block], last, dtype=np.intp)
        k = cells.bin.take(cell)
        away = x[block] - bins.x_mean.take(k)
        residual = g[block] - bins.mean.take(k)
        residual -= slope.take(k) * away
        product = factor.take(cell)
        if weight is not None:
            product *= weight[block] if frequency else weight[block] ** 2
        product *= away
        product *= np.square(residual, out=residual)
        np.square(away, out=away)
        if weight is not None:
            away *= weight[block]
        products.fill(k, weight=product)
        spread.fill(k, weight=away)
    return products.values(), spread.values()


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
    # Edges of the cells that slopes were taken across, by feature.
    cells: Sequence[FloatArray | None] = ()

    @property
    def size(self) -> int:
        """Number of local effects."""
        return self.n_rows * len(self.x)

    def fingerprint(self, position: int) -> str:
        """What tells the rows and the local effects of one feature from others."""
        sides = () if self.sides is None else self.sides[position]
        # Beside features with levels, those with an axis have no sides.
        known = [side for side in sides if not np.isnan(side).all()]
        return fingerprint(self.x[position], self.weight, self.local_effect[position], *known)


def fingerprints(rows: Rows, names: Sequence[str], threads: int = 1) -> dict[str, str]:
    """The attribute of an effect that tells what every feature of it was made from."""
    found = map_features(rows.fingerprint, range(len(names)), threads)
    return as_attribute(dict(zip(names, found, strict=True)))


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
    return Rows(contiguous(x), contiguous(g), weight, frequency, len(x), both, cell_edges(local))


def own_columns(local: xr.Dataset, names: Sequence[str]) -> dict[str, tuple[Rows, int]]:
    """Rows that have a value of a feature, with its number among their columns, by its name."""
    groups = features_by_rows(local) if has_gaps(local) else [(feature_names(local), None)]
    found: dict[str, tuple[Rows, int]] = {}
    for members, there in groups:
        part = local if there is None else local.sel(feature=members).isel(obs=there)
        rows = columns(part)
        found |= {name: (rows, number) for number, name in enumerate(members)}
    return {name: found[feature_names(local)[feature_position(local, name)]] for name in names}


def check_same_rows(
    row: xr.Dataset, rows: Rows, position: int, parameter: str = "local", of: str = "effect"
) -> None:
    """Raise ``ValueError`` unless the effect of one feature was made from these local effects."""
    known = fingerprint_of(row)
    found = rows.fingerprint(position) if known else ""
    if known and found == known:
        return
    name = str(row["feature"].values)
    maker = f"{parameter} must be the Dataset that {of} was made from; "
    check_finite(rows.local_effect[position], "Local effects", name, SELECT_ROWS)
    _check_counts(row, rows, position, parameter, maker)
    if known and not same_rows(found, known):
        raise ValueError(
            f"{maker}the values of feature {name!r}, the weights or the order of its rows differ. "
            f"Pass that Dataset."
        )
    if known or not _same_means(row, rows, position):
        raise ValueError(
            f"{maker}it has the same rows, but its local effects of feature {name!r} come from "
            f"another model, output or scale. Pass that Dataset."
        )


def check_same_model(local: xr.Dataset, effect: xr.Dataset) -> None:
    """Raise ``ValueError`` where the rows of the effect have other local effects; new rows pass."""
    check_same_output(local, effect, ("local", "effect"))
    if ROWS in effect and effect.sizes["obs"] != local.sizes["obs"]:
        return
    names = feature_names(effect)
    own = own_columns(estimation_rows(local, effect), names)
    for name in names:
        check_no_other_model(one_feature(effect, name), *own[name])


def check_no_other_model(row: xr.Dataset, rows: Rows, position: int) -> None:
    """Raise ``ValueError`` where the rows of the effect have other local effects."""
    known = fingerprint_of(row)
    if known and row.sizes["bin"] and same_rows(rows.fingerprint(position), known):
        check_same_rows(row, rows, position)


def _check_counts(row: xr.Dataset, rows: Rows, position: int, parameter: str, maker: str) -> None:
    """Raise ``ValueError`` unless the bins count and weigh these rows as the effect says."""
    x, edges, name = rows.x[position], row["edge_value"].values, str(row["feature"].values)
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
                f"{maker}the rows or weights of the levels of feature {name!r} differ. Pass that "
                f"Dataset."
            )
        return
    inside = bool(((x >= edges[0]) & (x <= edges[-1])).all())
    k = binning.bin_index(edges, x)
    weight: NDArray[Any] = np.bincount(k, rows.weight, len(edges) - 1)
    counted = weight if rows.frequency else np.bincount(k, minlength=len(edges) - 1)
    if not inside or not np.array_equal(counted, row["n_obs"].values):
        raise ValueError(
            f"{maker}the bins of feature {name!r} have {int(row['n_obs'].sum())} rows in effect; "
            f"the {len(x)} rows of {parameter} give them other numbers of rows. Pass that Dataset, "
            f"or make the effect of this one with bins=GivenBins(edges)."
        )
    found, share = weight / weight.sum(), row["weight_share"].values
    # Sums differ by rounding; one weight of 10^6 that is 1 % larger is more.
    if not np.allclose(found, share, rtol=1e-9, atol=0):
        worst = int(np.argmax(np.abs(found - share)))
        raise ValueError(
            f"{parameter} must have the weights that effect was made with; bin {worst} of feature "
            f"{name!r} has {share[worst]:.4g} of the weight in effect and {found[worst]:.4g} in "
            f"{parameter}. Pass the Dataset that effect was made from."
        )


def _same_means(row: xr.Dataset, rows: Rows, position: int) -> bool:
    """Whether bins have these means: all that effects of earlier versions say of their rows."""
    x, g, n_bins = rows.x[position], rows.local_effect[position], row.sizes["bin"]
    w = np.ones(rows.n_rows) if rows.weight is None else rows.weight
    if is_categorical(row):
        assert rows.sides is not None, "checked with the counts"
        code, (up, down) = x.astype(np.int64), rows.sides[position]
        total, weight = np.zeros(n_bins), np.zeros(n_bins)
        for step, change in ((code, up), (code - 1, down)):
            there = (step >= 0) & (step < n_bins)
            total += np.bincount(step[there], (w * change)[there], n_bins)
            weight += np.bincount(step[there], w[there], n_bins)
    else:
        k = binning.bin_index(row["edge_value"].values, x)
        total = np.bincount(k, w * g, n_bins).astype(np.float64)
        weight = np.bincount(k, w, n_bins).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = total / weight
    size = float(np.abs(g).max(initial=0.0))
    return bool(np.allclose(mean, bin_means(row), rtol=0, atol=1e-9 * size, equal_nan=True))


def map_features(function: Callable[[S], T], items: Iterable[S], threads: int) -> list[T]:
    """``function`` of every item, on so many threads."""
    if threads == 1:
        return [function(item) for item in items]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, items))


def resolution(mean: FloatArray, error: float) -> float:
    """Local effects that differ by less than this are equal: rounding, or the model's own error."""
    return max(error, 16 * float(np.spacing(np.nanmax(np.abs(mean), initial=0.0))))


def _estimates(
    edges: FloatArray,
    bins: Moments,
    along: fine.Cells | None,
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
    if along is not None:
        effect = fine.effects(
            along.mean, fine.along_axis(along.width, along.weight, along.bin), along.bin
        )
    variance = sums.variance(bins, ddof)
    heterogeneity = np.sqrt(variance)
    fine_pieces = pieces if along is None else _pieces(along)
    curve, offset = _curve(fine_pieces, edges, centering)
    std, std_sum = spread_along(curve, heterogeneity, np.diff(edges))
    estimates: dict[str, FloatArray | float] = {
        "effect": effect,
        "heterogeneity": heterogeneity,
        **({} if slope is None else {"slope": slope}),
        "n_obs": bins.n_obs,
        "n_effective": n_effective,
        "weight_share": share,
        "x_mean": bins.x_mean,
        "edge_value": edges,
        "curve": curve,
        "curve_std": std,
        "curve_std_sum": std_sum,
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
    if along is not None:
        estimates |= {
            "effect_rows": bins.mean,
            "cell_value": along.edges,
            "cell_curve": _curve(fine_pieces, along.edges, centering)[0],
            "cell_effect": along.mean,
            "cell_share": along.share,
        }
        if std_error_moments:
            estimates |= {
                "cell_heterogeneity": np.sqrt(along.variance),
                "cell_n_effective": along.n_effective,
                "cell_degrees": along.degrees,
                "cell_x_mean": along.x_mean,
                "cell_x_variance": along.x_variance,
                "cell_x_covariance": along.x_covariance,
            }
    return estimates


def spread_along(
    curve: FloatArray, heterogeneity: FloatArray, width: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """``curve_std`` and ``curve_std_sum``, at the edges where the curve is known."""
    known = np.isfinite(curve)
    there = known[:-1] & known[1:]
    std, std_sum = np.full((2, len(curve)), np.nan)
    if known.any():
        std[known] = accumulate.curve_std(heterogeneity[there], width[there])
        std_sum[known] = accumulate.curve_std_sum(heterogeneity[there], width[there])
    return std, std_sum


def _pieces(cells: fine.Cells) -> accumulate.Pieces:
    """Cells as the pieces of a curve."""
    none = np.zeros(len(cells.mean))
    return accumulate.Pieces(
        cells.edges, cells.mean, none, cells.x_mean, cells.x_variance, cells.share
    )


def _curve(
    pieces: accumulate.Pieces, edges: FloatArray, centering: str
) -> tuple[FloatArray, float]:
    """The centred curve at the edges of the bins, NaN where it is not known, and its offset."""
    here = accumulate.known_stretch(pieces.share)
    pieces = pieces.stretch(here)
    width = np.diff(pieces.edges)
    curve = accumulate.accumulate(pieces.mean + pieces.slope * pieces.away(), width)
    offset = 0.0
    if centering == "mean":
        offset = accumulate.mean_of_curve(curve, pieces)
    elif centering == "integral":
        offset = accumulate.integral_of_curve(curve, width, pieces.slope)
    return accumulate.curve_at(pieces.edges, curve - offset, pieces.slope, edges), offset


def _warn_of_gaps(effect: xr.Dataset) -> None:
    """Name the features whose curve cannot be accumulated all along their axis, and why."""
    # Variables without their coordinates: alignment would take longer than the estimates.
    variables = effect.variables
    n_bins = variables["n_bins"]
    within = xr.Variable("bin", variables["bin"].values) < n_bins
    n_empty = (variables["effect"].isnull() & within).sum("bin")
    there = xr.Variable("edge", variables["edge"].values) <= n_bins
    unknown = (variables["curve"].isnull() & there).any("edge") & (n_bins > 0)
    if not n_empty.values.any() and not unknown.values.any():
        return

    def by_feature(variable: xr.Variable) -> NDArray[Any]:
        return variable.transpose("feature", ...).values.reshape(effect.sizes["feature"], -1)

    n_bins = n_empty * 0 + n_bins  # of every part
    bins, gaps = [], []
    for name, own_empty, own_bins, own_unknown in zip(
        feature_names(effect), *map(by_feature, (n_empty, n_bins, unknown)), strict=True
    ):
        # Of all outputs the one with most.
        most, of = max(zip(own_empty, own_bins, strict=True))
        if most:
            bins.append(f"{name!r} ({most} of {of})")
        elif own_unknown.any():
            gaps.append(f"{name!r} ({_widest_gap(effect.sel(feature=name))})")
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
            f"No rows inside a bin: {', '.join(gaps)}. The curve cannot be accumulated across such "
            f"a gap: it is reported on the stretch with the most rows and is NaN elsewhere. Where "
            f"the model itself can be asked across the gap, use "
            f"local_effects(model, X, method='finite_difference') or ale(model, X)."
        )


def _widest_gap(row: xr.Dataset) -> str:
    """The widest cell without rows of one feature, in words."""
    for dim in PARTS:
        if dim in row["cell_share"].dims:
            row = row.isel({dim: 0})
    edges, share = row["cell_value"].values, row["cell_share"].values
    width = np.where(share == 0, np.diff(edges), -np.inf)
    widest = int(np.nanargmax(width))
    return f"from {edges[widest]:.6g} to {edges[widest + 1]:.6g}"


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
    if "cell_effect" in names:
        facts |= {"effect": {"estimator": "average of the local effects along the bin, math [12]"}}
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
    n_cells = max(
        (np.size(row["cell_effect"]) for row in estimates if "cell_effect" in row), default=0
    )
    arrays = stacked(
        [row or dict.fromkeys(names, np.nan) for row in estimates],
        most,
        cell=n_cells,
        cell_edge=n_cells + 1,
    )
    edges = arrays.pop("edge_value")
    fine_edges = {"cell_value": arrays.pop("cell_value")} if "cell_value" in arrays else {}
    beyond = np.arange(most) >= n_bins[:, None]
    kinds = np.where(n_bins > 0, local["feature_kind"].values, "constant")
    facts = {**facts, "curve": {"centering": centering}}
    rule_name, parameters = rule
    return xr.Dataset(
        {
            **{
                name: variable(name, array, **facts.get(name, {})) for name, array in arrays.items()
            },
            **{name: variable(name, array) for name, array in fine_edges.items()},
            "local_effect_error": local["local_effect_error"],
            **{name: local[name] for name in handed_on if name in local},
        },
        {
            "feature": local["feature"],
            "feature_kind": ("feature", kinds),
            "feature_units": local["feature_units"],
            "local_effect_method": ("feature", np.array(methods_of(local))),
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
            **(
                {
                    "cell": ("cell", np.arange(n_cells), {"long_name": "cell of the curve"}),
                    "cell_edge": ("cell_edge", np.arange(n_cells + 1), {"long_name": "its edge"}),
                }
                if fine_edges
                else {}
            ),
        },
        {
            "method": method,
            "bin_rule": rule_name,
            "bin_parameters": parameters,
            "closed": "left; the last bin on both sides",
            "centering": centering,
            "weight_kind": local.attrs.get("weight_kind", "none"),
            "output_name": local.attrs.get("output_name", "output"),
            "output_units": local.attrs.get("output_units", ""),
            **{name: local.attrs[name] for name in MODEL_FACTS if name in local.attrs},
            "n_rows": n_rows,
            "software": software(),
        },
    )


def predict(effect: xr.Dataset, x: Any, feature: str | int | None) -> xr.DataArray:
    """`predict` of the curve of one feature."""
    feature = given_feature(feature, "predict(effect, x, 'dose')")
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
    values = curve_of(row).at(at.values)
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
