"""Derivatives that the user gives, checked against finite differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from scipy.special import expit

from rhale_stats.arguments.rows import aligned, as_array
from rhale_stats.arguments.words import warn
from rhale_stats.arrays import local_effects as kernel
from rhale_stats.arrays import probes as sums
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.models import forms
from rhale_stats.models.adapters.statsmodels import through_link
from rhale_stats.models.differences import DifferenceQuotients, Differences
from rhale_stats.models.options import ModelOptions
from rhale_stats.models.outputs import Model, ModelError
from rhale_stats.models.probes import KINKS, Probe, looked_at, probed
from rhale_stats.models.sample import Sample, positions_of
from rhale_stats.models.table import Table, check_column
from rhale_stats.schema.validation import validated

# A Jacobian may deviate from differences by this share (root mean squares), beyond rounding.
JACOBIAN_SHARE = 0.01
# Rows without a kink within the step are enough to judge by where they are this share of all; of
# them one, or the other share, may lie at a kink itself.
SMOOTH_ROWS, AT_KINKS = 0.5, 0.01


def jacobian_columns(
    jacobian: Any, table: Table, positions: Sequence[int]
) -> dict[int, Differences]:
    """Columns of the Jacobian, given as a callable of X, an array, or a DataFrame.

    Raises
    ------
    ValueError
        The shape is not that of ``X``.
    TypeError
        There is no Jacobian.
    ModelError
        The callable raised.
    """
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
    return dict(zip(positions, (_derivatives(column) for column in columns), strict=True))


def _derivatives(column: NDArray[Any]) -> Differences:
    """Derivatives as they were given, with the rounding of the precision that holds them."""
    try:
        values = column.astype(np.float64)[:, None]
    except (TypeError, ValueError) as error:
        raise TypeError(f"jacobian must hold numbers; got dtype {column.dtype}.") from error
    precision = kernel.precision_held(column)
    with np.errstate(invalid="ignore"):
        error_size = kernel.typical_error(8 * precision * np.abs(values))
    return Differences(values, error_size, "jacobian", precision=precision)


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
        off, same = deviation(probe, derivatives[position].take(probe.rows))
        lines.append((off, float(probe.missed.max()), jumps, same and not jumps))
    columns = [np.array(column) for column in zip(*lines, strict=True)]
    return xr.Dataset(
        {
            "deviation": ("feature", columns[0], {"long_name": "relative deviation", "units": "1"}),
            "missed": (
                "feature",
                columns[1],
                {"long_name": "share of the change that derivatives miss", "units": "1"},
            ),
            "jumps": ("feature", columns[2], {"long_name": "the output jumps with the feature"}),
            "agrees": ("feature", columns[3], {"long_name": "the Jacobian agrees with the model"}),
        },
        {"feature": [table.names[p] for p in positions]},
    )


def deviation(probe: Probe, jacobian: Differences) -> tuple[float, bool]:
    """Of a Jacobian from central differences: relative root mean square, and whether it is small.

    Raises
    ------
    ValueError
        The model has several outputs, and none was chosen.
    """
    n_outputs = probe.derivative.local_effect.shape[1]
    if n_outputs > 1:
        raise ValueError(
            f"output must name the output of jacobian; the model has {n_outputs}. Use "
            f"output=..., or pass a model of one output, as in lambda X: model(X)[:, 0]."
        )
    share, agrees = deviations(probe, jacobian)
    return float(share[0]), bool(agrees[0])


def deviations(probe: Probe, jacobian: Differences) -> tuple[FloatArray, NDArray[np.bool_]]:
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

    Raises
    ------
    ModelError
        The gradient has another shape, or was ``required`` and raised.
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
    out = {}
    for number, position in enumerate(positions):
        values = derivatives[:, :, number]
        precision = max(kernel.precision_held(values), quotients.precision)
        with np.errstate(invalid="ignore"):
            error_size = kernel.typical_error(8 * precision * np.abs(values).astype(np.float64))
        made = values.astype(np.float64)
        out[position] = Differences(made, error_size, "gradient", precision=precision)
    return out


def _by_line(quotients: DifferenceQuotients, position: int) -> Differences:
    """Exact derivative of the link times that of the linear predictor.

    The latter is by differences, which are exact where it is a line; a formula may bend it.
    """
    outputs = quotients.outputs
    present = ~np.isnan(np.asarray(quotients.table.column(position), dtype=np.float64))
    line_quotients = DifferenceQuotients(outputs.line, quotients.table).take(present)
    line, at_rows, model = (
        line_quotients.central(position),
        line_quotients.at_rows(),
        outputs.model.model,
    )
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
