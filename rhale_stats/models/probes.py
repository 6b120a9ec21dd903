"""Whether the output is differentiable along a feature, and derivatives that are given for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from scipy.special import expit

from rhale_stats.arguments.rows import aligned, as_array, evenly
from rhale_stats.arguments.words import warn
from rhale_stats.arrays import local_effects as kernel
from rhale_stats.arrays import probes as sums
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.models import forms
from rhale_stats.models.adapters.statsmodels import through_link
from rhale_stats.models.differences import (
    DifferenceQuotients,
    Differences,
    Steps,
    answered,
)
from rhale_stats.models.options import ModelOptions
from rhale_stats.models.outputs import Model, ModelError
from rhale_stats.models.sample import Sample, positions_of
from rhale_stats.models.table import Table, Versions, check_column
from rhale_stats.schema.validation import validated

# Rows of a feature that are looked at.
ROWS = 1000
# Features that are looked at together.
PROBED = 64
# Number of windows that are cut into pieces.
CUT = 40
# The output jumps where jumps make more than this share of its change with the feature ...
JUMP_SHARE = 1e-3
# ... or differences over a step and over half of it differ by more than this share (root mean
# squares), beyond rounding.
STEP_SHARE, GROWS = 0.05, 0.25
# With single precision steps are long enough to meet many kinks: then by this many times what half
# the step changes, if the regression of one on the other is by no more than twice that share off 1.
KINKS = 3.0
# Derivatives are useless where this share of them is zero although the output moves.
ZERO_SHARE = 0.95
# Noise of so many units of rounding is looked at again. It is noise where a quarter of the step
# leaves this share of it; a unit of rounding is so many of its standard deviations.
SUSPECT, NOISE_SHARE, NOISE_UNITS = 64, 0.7, 3.0
NOISE_ROWS, BESIDE = 200, 0.0382


class JumpWarning(UserWarning):
    """Derivatives of the output do not give the effect of a feature, with which it jumps."""


@dataclass(frozen=True)
class Probe:
    """Result of the probe of one feature at some rows, for every output.

    ``jumps``: whether the output jumps with the feature; ``located``: whether jumps were found at
    places, not only by derivatives that grow as the step shrinks. ``missed`` is the share of the
    change across windows that derivatives miss, at most 1, ``zero`` the share of derivatives that
    are zero, ``truncation`` the error of central differences by the length of their step.
    ``derivative`` are central differences at the ``rows`` that were looked at, ``half`` the same by
    half the step.
    """

    jumps: NDArray[np.bool_]
    located: NDArray[np.bool_]
    missed: FloatArray
    zero: FloatArray
    truncation: FloatArray
    rows: IntArray
    derivative: Differences
    half: Differences

    @property
    def bias(self) -> FloatArray:
        """Mean error of central differences by the length of their step, for every output."""
        change = self.derivative.local_effect - self.half.local_effect
        return np.asarray(np.abs(4 / 3 * change.mean(axis=0)))

    def holds(self, *, exact: bool) -> bool:
        """Whether derivatives give the effect, for every output.

        Exact ones depend on no step.
        """
        return not (self.located if exact else self.jumps).any()


def looked_at(table: Table, position: int, used: NDArray[np.bool_]) -> IntArray:
    """Numbers of the rows that a probe looks at, at most 1,000 of those that are used."""
    numbers = np.flatnonzero(used)
    return np.asarray(numbers[sums.spread_rows(table.column(position)[numbers], ROWS)])


def probed(quotients: DifferenceQuotients, rows: Mapping[int, IntArray]) -> dict[int, Probe]:
    """Look at features that vary, by their columns, at some rows of each; together.

    Asks for 6 versions of at most 1,000 rows, and for 45 of at most 40. All are looked at with the
    precision that is known in the end: it is that of the model.
    """
    probes: dict[int, Probe] = {}
    again = list(rows)
    while again:
        for begin in range(0, len(again), PROBED):
            some = again[begin : begin + PROBED]
            probes |= answered(quotients, {p: _probe(quotients, p, rows[p]) for p in some})
        again = [p for p in rows if probes[p].derivative.precision < quotients.precision]
    return {position: probes[position] for position in rows}


def _probe(some: DifferenceQuotients, position: int, numbers: IntArray) -> Steps[Probe]:
    looked = yield from _look(some, position, numbers)
    noisy = yield from _noise(some, position, looked)
    if noisy:
        # The output is less precise than its type: longer steps.
        looked = yield from _look(some, position, numbers)
    share = yield from _jump_share(some, position, looked)
    # By how much half the step changes the derivative, where it is jumps that do. Not what rounding
    # can do; and not kinks, of which a longer step meets more: where a step meets jumps, half of it
    # makes slopes larger, by as much as it changes them in mean squares.
    derivative, half = looked.derivative.local_effect, looked.half.local_effect
    change, typical = sums.rms(derivative - half), sums.rms(derivative)
    unit = np.where(change > 0, change, 1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        grows = (sums.rms(half) / unit) ** 2 - (typical / unit) ** 2 > GROWS
    by_jumps = (change > looked.half.error) & grows
    step = np.where(by_jumps, sums.share(change, typical), 0.0)
    size = np.abs(looked.change)
    missed = np.minimum(looked.missed, size)
    located = share > JUMP_SHARE
    return Probe(
        located | (step > STEP_SHARE),
        located,
        sums.share(missed.sum(axis=0), size.sum(axis=0)),
        np.mean(derivative == 0, axis=0),
        kernel.typical_error(4 / 3 * np.abs(derivative - half)),
        numbers,
        looked.derivative,
        looked.half,
    )


@dataclass(frozen=True)
class _ProbeAnswers:
    """Central differences over a step and over half of it, and changes across windows.

    ``rows`` are the numbers of the rows, ``x`` their values.
    """

    rows: IntArray
    x: FloatArray
    derivative: Differences
    half: Differences
    third: FloatArray
    size: FloatArray
    left: FloatArray
    right: FloatArray
    at_left: FloatArray
    at_right: FloatArray

    @property
    def change(self) -> FloatArray:
        """Change of the output across the window of each row."""
        with np.errstate(invalid="ignore"):  # infinite answers, which are refused afterwards
            return np.asarray(self.at_right - self.at_left)

    @property
    def missed(self) -> FloatArray:
        """Part of the change that derivatives miss."""
        g = self.derivative.local_effect
        return sums.unexplained(self.x, g, self.left, self.right, self.change)


def _look(some: DifferenceQuotients, position: int, numbers: IntArray) -> Steps[_ProbeAnswers]:
    x = some.table.column(position)[numbers]
    low, high = float(x.min()), float(x.max())
    left, right = sums.windows(x)
    while True:
        precision = some.precision
        step = kernel.central_step(x, precision * some.outputs.offset)
        columns = [
            *kernel.central_arguments(x, step, low, high),
            *kernel.central_arguments(x, step / 2, low, high),
            right,
            left,
        ]
        outputs, stored_columns = yield Versions(position, columns, numbers)
        if some.precision <= precision:
            break
    values, third = _third_difference(outputs)
    inside = (x + step <= high) & (x - step >= low)
    return _ProbeAnswers(
        numbers,
        x,
        some.quotient(outputs[:2], stored_columns[:2], "central_difference"),
        some.quotient(outputs[2:4], stored_columns[2:4], "central_difference"),
        third[inside],
        values[0][inside],
        stored_columns[5],
        stored_columns[4],
        values[5],
        values[4],
    )


def _third_difference(outputs: Sequence[FloatArray]) -> tuple[list[FloatArray], FloatArray]:
    """Outputs in double precision, and the difference of those over a step and over half of it."""
    values = [output.astype(np.float64) for output in outputs]
    return values, sums.third_difference((values[0], values[1]), (values[2], values[3]))


def _noise(some: DifferenceQuotients, position: int, looked: _ProbeAnswers) -> Steps[bool]:
    """Whether answers are noisier than their numbers can be: then how precise they are, is noted.

    Third differences of a smooth output shrink with the step, to 1/64 at a quarter of it. Noise
    stays; so a model that computes in single precision and answers in double precision is noticed.
    The second look is beside the rows: jumps of some trees are at the very values of the data.
    """
    if not len(looked.third):
        return False
    # Rounding of x itself makes noise as well, which steps allow for already.
    away = float(np.median(kernel.offset(looked.x, kernel.robust_scale(looked.x))))
    noise = sums.relative_noise(looked.third, looked.size)
    if noise <= SUSPECT * some.precision * away:
        return False
    rows = evenly(len(looked.rows), NOISE_ROWS)
    x = looked.x[rows] + BESIDE * (looked.right - looked.x)[rows]
    step = kernel.central_step(looked.x, some.outputs.step_precision)[rows] / 4
    low, high = float(looked.x[0]), float(looked.x[-1])
    columns = [
        *kernel.central_arguments(x, step, low, high),
        *kernel.central_arguments(x, step / 2, low, high),
    ]
    outputs, _held = yield Versions(position, columns, looked.rows[rows])
    values, third = _third_difference(outputs)
    again = sums.relative_noise(third, values[0])
    if again < NOISE_SHARE * noise:
        return False
    some.outputs.precision = NOISE_UNITS * again / away
    return True


def _jump_share(
    some: DifferenceQuotients, position: int, looked: _ProbeAnswers
) -> Steps[FloatArray]:
    """Share of the change across windows that is jumps: of all windows or of the inner ones.

    Windows are drawn in proportion to what the derivative misses in them, and cut again and again
    where the change stands out.
    """
    n, n_outputs = looked.change.shape
    missed = looked.missed
    strata = sums.strata(n)
    each = max(CUT // (len(strata) * n_outputs), 5)
    drawn = [
        (rows[sums.sampled(missed[rows, output], each)], output, number)
        for output in range(n_outputs)
        for number, rows in enumerate(map(np.flatnonzero, strata))
    ]
    rows = np.concatenate([part_rows for part_rows, _, _ in drawn])
    share = np.zeros(n_outputs)
    if not len(rows):
        return share
    of_output = np.repeat(
        [output for _, output, _ in drawn], [len(part_rows) for part_rows, _, _ in drawn]
    )
    jump = yield from _jumps(some, position, looked, rows, of_output)
    jumps = np.split(jump, np.cumsum([len(part_rows) for part_rows, _, _ in drawn])[:-1])
    for row_jump, (part_rows, output, number) in zip(jumps, drawn, strict=True):
        if len(part_rows):
            windows = strata[number]
            part = np.mean(row_jump / missed[part_rows, output]) * missed[windows, output].sum()
            whole = sums.whole_change(
                looked.x[windows],
                looked.left[windows],
                looked.right[windows],
                looked.change[windows, output][:, None],
            )
            share[output] = max(share[output], float(sums.share(part, whole)[0]))
    return share


def _jumps(
    some: DifferenceQuotients,
    position: int,
    looked: _ProbeAnswers,
    rows: IntArray,
    of_output: IntArray,
) -> Steps[FloatArray]:
    """The jump in the window of each row, 0 where the change shrinks with the window."""
    every = np.arange(len(rows))
    left, right = looked.left[rows], looked.right[rows]
    f_left, f_right = looked.at_left[rows, of_output], looked.at_right[rows, of_output]
    jump = np.zeros(len(rows))
    for _ in range(sums.CUTS):
        points = np.linspace(left, right, sums.PIECES + 1)
        outputs, _held = yield Versions(position, list(points[1:-1]), looked.rows[rows])
        inner = [output[every, of_output].astype(np.float64) for output in outputs]
        values = np.column_stack([f_left, *inner, f_right])
        piece, jump = sums.jump_of(np.diff(values, axis=1))
        left, right = points[piece, every], points[piece + 1, every]
        f_left, f_right = values[every, piece], values[every, piece + 1]
    rounding = 8 * some.precision * np.maximum(np.abs(f_left), np.abs(f_right))
    return np.asarray(np.maximum(jump - rounding, 0.0))


# --- messages ------------------------------------------------------------------------------------


def refuse_useless(name: str, probe: Probe) -> None:
    """Raise ``ValueError`` where derivatives are zero although the output moves."""
    useless = (probe.zero >= ZERO_SHARE) & (probe.missed > 0.5)
    if useless.any():
        raise ValueError(
            f"model must have a useful derivative; for feature {name!r} it is zero on "
            f"{probe.zero[useless][0]:.1%} of the rows although the output moves with the feature, "
            f"as trees and other step functions do. Use local_effects(..., "
            f"method='finite_difference')."
        )


def warning_text(probes: Sequence[tuple[str, Probe]], then: str) -> str:
    """Text of the warning: features that the output jumps with, how much, and the remedy."""
    missed = [float(probe.missed[probe.jumps].max()) for _, probe in probes]
    least, most = (
        f"{value:.0%}" if value >= 0.01 else "under 1%" for value in (min(missed), max(missed))
    )
    share = most if least == most else f"{least} to {most}"
    names = ", ".join(repr(name) for name, _ in probes)
    return f"The output jumps with {names} (derivatives miss {share} of its change): {then}"


# --- derivatives that the user or the model gives, checked against finite differences -------------


# A Jacobian may deviate from differences by this share (root mean squares), beyond rounding.
JACOBIAN_SHARE = 0.01
# Rows without a kink within the step are enough to judge by where they are this share of all; of
# them one, or the other share, may lie at a kink itself.
SMOOTH_ROWS, AT_KINKS = 0.5, 0.01


def jacobian_columns(
    jacobian: Any, table: Table, positions: Sequence[int]
) -> dict[int, Differences]:
    """Columns of the Jacobian, given as a callable of X, an array, or a DataFrame of its shape."""
    if jacobian is None:
        raise TypeError(
            "jacobian must be a function of X or a derivative for each row and column; got None."
        )
    derivatives = jacobian
    if callable(jacobian):
        data = table.form.as_given(table.data.copy())
        try:
            derivatives = forms.plain_answer(jacobian(data))
        except Exception as error:
            raise ModelError(
                f"jacobian raised {type(error).__name__} on all {table.n_rows} rows of X: {error}"
            ) from error
    elif not isinstance(derivatives, xr.DataArray):
        derivatives, _form = forms.read(derivatives, "jacobian")
    if isinstance(derivatives, pd.DataFrame):
        absent = [table.names[p] for p in positions if table.names[p] not in derivatives.columns]
        if absent or len(derivatives) != table.n_rows:
            raise ValueError(
                f"jacobian as a DataFrame must have {table.n_rows} rows and a column for every "
                f"feature; got {len(derivatives)} rows, and no column for {absent}."
            )
        if table.index is not None:
            derivatives = aligned(derivatives, np.asarray(table.index), "jacobian")
        columns = [as_array(derivatives[table.names[p]], "jacobian must hold") for p in positions]
    else:
        array = as_array(derivatives, "jacobian must hold")
        expected = (table.n_rows, len(table.names))
        if array.shape != expected:
            raise ValueError(
                f"jacobian must have the shape of X, {expected}: one derivative for every row and "
                f"column; got {array.shape}."
            )
        columns = [array[:, p] for p in positions]
    made = {}
    for position, column in zip(positions, columns, strict=True):
        try:
            made[position] = _given(column[:, None], "jacobian")
        except (TypeError, ValueError) as error:
            raise TypeError(f"jacobian must hold numbers; got dtype {column.dtype}.") from error
    return made


def _given(derivatives: NDArray[Any], method: str, least: float = 0.0) -> Differences:
    """Derivatives (row, output) as they were given, with the rounding of what holds them.

    Their precision is at ``least`` that of the outputs, where these are known.
    """
    precision = max(kernel.precision_held(derivatives), least)
    values = derivatives.astype(np.float64)
    with np.errstate(invalid="ignore"):
        error = kernel.typical_error(8 * precision * np.abs(values))
    return Differences(values, error, method, precision=precision)


# --- a Jacobian beside the model -----------------------------------------------------------------


@validated
def check_jacobian(
    model: Model,
    jacobian: Any,
    X: Any,
    *,
    features: str | int | Sequence[str | int] | None = None,
    output: Any = None,
    scale: str = "response",
) -> xr.Dataset:
    """Comparison of given derivatives with central differences of the model, by feature.

    Parameters
    ----------
    model : callable, object with ``predict``, classifier, or statsmodels results
        As in `local_effects`.
    jacobian : callable, array_like of shape (n_rows, n_columns), or DataFrame
        As in `local_effects`.
    X : table, or array_like of shape (n_rows, n_columns)
        Rows at which derivatives are taken. At most 1,000 of them are compared.
    features : name, number, or sequence of them, optional
        Columns to compare, as in `local_effects`.
    output : label, optional
        The one of several outputs that ``jacobian`` is of.
    scale : {"response", "logit", "decision"}, default "response"
        The scale that ``jacobian`` is on.

    Returns
    -------
    Dataset
        Over ``feature``: ``deviation``, the root mean square of the differences between the
        Jacobian and central differences of the model, relative to that of the latter;
        ``missed``, the share of the change of the output that derivatives miss, at most 1;
        ``jumps``, whether the output jumps with the feature; ``agrees``, whether it does not and
        the deviation is below 1 % or explained by rounding. A constant feature agrees.

    Raises
    ------
    ValueError
        The shape of ``jacobian`` is not that of ``X``; several outputs, of which none is chosen.
    KeyError, TypeError, ModelError
        As `local_effects`.

    See Also
    --------
    local_effects : Makes this comparison where it is given a model and a Jacobian.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> check = rs.check_jacobian(
    ...     lambda X: X[:, 0] ** 2 + np.round(X[:, 1]),
    ...     lambda X: np.column_stack([2 * X[:, 0], 0 * X[:, 1]]),
    ...     X,
    ... )
    >>> check["agrees"].values
    array([ True, False])
    >>> check["missed"].values
    array([0., 1.])
    """
    sample = Sample.from_table(X, ModelOptions(output, scale))
    positions = positions_of(sample.table, features)
    quotients = sample.quotients(model)
    derivatives = jacobian_columns(jacobian, sample.table, positions)
    return compared(quotients, positions, derivatives)


def compared(
    quotients: DifferenceQuotients,
    positions: Sequence[int],
    derivatives: dict[int, Differences],
) -> xr.Dataset:
    """The Dataset of `check_jacobian`, of columns of a Jacobian at all rows."""
    table, rows = quotients.table, {}
    for position in positions:
        x = check_column(table, position, missing="drop")
        present = ~np.isnan(x)
        if x[present].min() < x[present].max():
            rows[position] = looked_at(table, position, present)
    probes, lines = probed(quotients, rows), []
    for position in positions:
        if position not in probes:
            lines.append((0.0, 0.0, False, True))
            continue
        probe = probes[position]
        jumps = bool(probe.jumps.any())
        off, same = jacobian_deviation(probe, derivatives[position].take(probe.rows))
        lines.append((off, float(probe.missed.max()), jumps, same and not jumps))
    about = {
        "deviation": {"long_name": "relative deviation", "units": "1"},
        "missed": {"long_name": "share of the change that derivatives miss", "units": "1"},
        "jumps": {"long_name": "the output jumps with the feature"},
        "agrees": {"long_name": "the Jacobian agrees with the model"},
    }
    columns = map(np.array, zip(*lines, strict=True))
    data = {
        name: ("feature", column, about[name]) for name, column in zip(about, columns, strict=True)
    }
    return xr.Dataset(data, {"feature": [table.names[p] for p in positions]})


def jacobian_deviation(probe: Probe, jacobian: Differences) -> tuple[float, bool]:
    """Of a Jacobian from central differences: relative root mean square, and whether it is small.

    A model of several outputs is refused where none was chosen.
    """
    n_outputs = probe.derivative.local_effect.shape[1]
    if n_outputs > 1:
        raise ValueError(
            f"output must name the output of jacobian; the model has {n_outputs}. Use "
            f"output=..., or pass a model of one output, as in lambda X: model(X)[:, 0]."
        )
    share, agrees = jacobian_deviations(probe, jacobian)
    return float(share[0]), bool(agrees[0])


def jacobian_deviations(
    probe: Probe, jacobian: Differences
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """The same of every output."""
    local_effect = probe.derivative.local_effect
    change = sums.rms(np.abs(local_effect - jacobian.local_effect))
    share = sums.share(change, sums.rms(local_effect))
    error = probe.derivative.error + jacobian.error
    slope = sums.share(
        (local_effect * jacobian.local_effect).sum(axis=0), (local_effect**2).sum(axis=0)
    )
    half = sums.rms(local_effect - probe.half.local_effect)
    kinks = (np.abs(slope - 1) <= 2 * JACOBIAN_SHARE) & (change <= KINKS * half)
    # Where half the step gives another slope, a kink is within it: those rows are no evidence.
    bound = error + JACOBIAN_SHARE * sums.rms(local_effect)
    smooth = np.abs(local_effect - probe.half.local_effect) <= bound
    apart = np.sum(smooth & (np.abs(local_effect - jacobian.local_effect) > bound), axis=0)
    few = apart <= max(1.0, AT_KINKS * len(local_effect))
    kinks |= few & (np.mean(smooth, axis=0) >= SMOOTH_ROWS)
    return share, (share <= JACOBIAN_SHARE) | kinks | (change <= error)


def gradient_columns(
    quotients: DifferenceQuotients, positions: Sequence[int], *, required: bool
) -> dict[int, Differences]:
    """Derivatives that the model itself gives, of columns; none if it gives none.

    ``ModelError`` where the gradient has another shape, or was ``required`` and raised.
    """
    if quotients.outputs.line is not None:
        return {position: _by_line(quotients, position) for position in positions}
    gradient = quotients.outputs.gradient()
    if gradient is None:
        return {}
    table = quotients.table
    try:
        derivatives = quotients.outputs.derivatives(gradient, table.copied(), positions)
    except ModelError:
        raise
    except Exception as error:
        message = f"gradient of the model raised {type(error).__name__} on all rows of X: {error}"
        if required:
            raise ModelError(message) from error
        warn(f"The {message}. Differences of the output were taken.")
        return {}
    return {
        position: _given(derivatives[:, :, number], "gradient", quotients.precision)
        for number, position in enumerate(positions)
    }


def _by_line(quotients: DifferenceQuotients, position: int) -> Differences:
    """Exact derivative of the link times that of the linear predictor.

    The latter is by differences, which are exact where it is a line; a formula may bend it.
    """
    outputs = quotients.outputs
    present = ~np.isnan(np.asarray(quotients.table.column(position), dtype=np.float64))
    line_quotients = DifferenceQuotients(outputs.line, quotients.table).take(present)
    line, at_rows = line_quotients.central(position), line_quotients.at_rows()
    model = outputs.model.model
    # What rounding leaves of the differences goes through the link as they do, at most as a whole.
    rounding: FloatArray = np.full(line.local_effect.shape, float(np.max(line.error)))
    if rounding.shape[1] == 1:
        rounding = np.abs(through_link(model, at_rows, rounding))
    made = through_link(model, at_rows, line.local_effect)
    made, rounding = made[:, outputs.numbers], rounding[:, outputs.numbers]
    if outputs.scale == "logit":
        share = expit(quotients.take(present).at_rows())
        made, rounding = made / (share * (1 - share)), rounding / (share * (1 - share))
    values = np.full((len(present), made.shape[1]), np.nan)
    values[present] = made
    error = kernel.typical_error(8 * quotients.precision * np.abs(made) + rounding)
    return Differences(values, error, "gradient")


def _said(differing: Sequence[tuple[str, float]]) -> str:
    return ", ".join(f"{name!r} (by {off:.2g} of their size)" for name, off in differing)


def warn_of_gradient(differing: Sequence[tuple[str, float]]) -> None:
    """Say for which features the gradient of the model was not taken."""
    warn(
        f"The gradient that the model gives differs from its central differences for "
        f"{_said(differing)}; differences were taken. It may round a number or detach a part."
    )


def refuse_jacobian(differing: Sequence[tuple[str, float]]) -> None:
    """Raise ``ValueError`` with the features whose derivatives do not agree with the model."""
    text = _said(differing)
    raise ValueError(
        f"jacobian must agree with the model; it differs from central differences for {text}. It "
        f"may belong to another output or scale, or to other columns. See check_jacobian; leave "
        f"jacobian out, or pass model=None to take it unchecked."
    )
