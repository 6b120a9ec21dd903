"""Local effects of a model at its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import xarray as xr

from rhale_stats.arguments.checks import check_choice
from rhale_stats.bins.rule import BinRule, check_rule
from rhale_stats.local.in_chunks import check_in_chunks, in_chunks
from rhale_stats.local.request import Request, axis_values
from rhale_stats.models.adapters.libraries import columns_known_of
from rhale_stats.models.chunked import chunks_of, glance, of_sample
from rhale_stats.models.options import ModelOptions
from rhale_stats.models.outputs import Model
from rhale_stats.models.probes import (
    jacobian_columns,
)
from rhale_stats.models.sample import Sample, positions_of
from rhale_stats.schema.validation import validated

METHODS = ("auto", "gradient", "jacobian", "central_difference", "finite_difference")


@validated
def local_effects(
    model: Model,
    X: Any,
    features: str | int | Sequence[str | int] | None = None,
    *,
    jacobian: Any = None,
    method: str = "auto",
    bins: BinRule | None = None,
    percentiles: tuple[float, float] | None = None,
    options: ModelOptions = ModelOptions(),
    progress: bool = True,
    **fields: Any,
) -> xr.Dataset:
    r"""Local effects of a model: how its output changes with one feature, row by row.

    `rhale` and what follows from it do not call the model again.

    Parameters
    ----------
    model : callable, object with ``predict``, classifier, or statsmodels results
        Called with whole tables in the form of ``X``, never row by row: for two versions of its
        rows a feature, and before that for at most 10,000 rows a feature (see Notes). Returns one
        number a row, or a column for each of several outputs; of a classifier its probabilities
        are taken, see ``scale``. Labels are refused. It must answer the same to the same rows.
        Offset and exposure of a statsmodels model are used, see Notes. May be None when
        ``jacobian`` is given.
    X : table, or array_like of shape (n_rows, n_columns)
        Rows at which effects are taken: a table of pandas, polars, Arrow, xarray or NumPy, or a
        dict of columns. The model gets the same kind of table. Dates are numbers of days here.
        Also a dask DataFrame or array, xarray in chunks, or the path of Parquet files: local
        effects are then computed by chunks when they are needed (docs/larger-than-memory.md).
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
    method : str, default "auto"
        "auto", "gradient", "jacobian", "central_difference" or "finite_difference". "auto" takes
        derivatives of every feature with which the output does not jump: by ``jacobian`` where
        given, by the exact gradient of the model where it has one that agrees with central
        differences (see `adapters`), and else by central differences. Of the others, as of all
        features of trees, forests and nearest neighbours, it takes slopes across cells (math [2]),
        and says so in one `JumpWarning`; of discrete columns as well, between whose levels there is
        nothing. "finite_difference" takes slopes across cells of all features. "gradient" refuses a
        model without one. "central_difference", "gradient" and "jacobian" refuse derivatives that
        are zero where the output moves.
    bins : bin rule, optional
        Binning rule that defines the cells for slopes. By default they go from each distinct value
        to the next where there are at most 41, of 5 rows or more each, and hold equal numbers of
        rows otherwise, 40 cells at most and 10 rows or more in each.
    percentiles : pair of float, optional
        Between which percentiles of its rows a feature has its axis, from 0 to 100, or shares of
        the rows as (0.05, 0.95). Rows beyond are left out of this feature, as rows without a value
        are, and counted in ``n_beyond``. By default the axis goes from the smallest to the largest
        value. `GivenBins` within the range leave out rows in the same way.
    options : ModelOptions, optional
        Output and scale of the model, weights of the rows, and what to do with missing values. Its
        fields can be given directly, as in ``weights=w``. Of missing values "drop" is counted in
        ``n_missing``. "bin" also gives the effect of a missing value there: ``missing_effect``, the
        mean of f(missing, rest) - f(reference, rest) with the median as the reference.
    %(progress)s

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
        The output jumps with some features.
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
    jump. Exact gradients give way to a jump that was located so, not to the test by half the
    step. How densely rows lie plays no part. With several outputs one of them is enough. Precision
    is that of the type of the answers, of the coarser type that holds all of them (models that
    compute in single precision), or what noise in third differences shows. Apart from the model's
    own time a probe takes about 5 ms a feature with an array and 8 ms with a DataFrame.

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
    check_choice("method", method, METHODS)
    derivative = "central_difference" if jacobian is None else "jacobian"
    kind = derivative if method == "auto" else method
    _check_request(model, method, kind, jacobian, bins, options)
    chunks = chunks_of(X, model)
    if chunks is not None:
        check_in_chunks(jacobian, options, percentiles)
        seen = glance(chunks)
        settings = {"jacobian": jacobian, "features": features, "method": method, "bins": bins}
        settings |= {"options": replace(options, weights=None), "progress": progress}
        with of_sample(seen):
            local_of_sample = local_effects(model, seen.sample, **settings)
        return in_chunks(local_of_sample, chunks, seen, model, jacobian, bins, options)
    sample = Sample.from_table(X, options, percentiles)
    model_columns = None if model is None else columns_known_of(model, sample.table.names)
    sample = sample.of_columns(positions_of(sample.table, features, model_columns))
    derivatives = {}
    x = axis_values(sample, bins)
    if kind == "jacobian":
        derivatives = jacobian_columns(jacobian, sample.table, sample.positions)
    quotients = None
    if model is not None or kind != "jacobian":
        quotients = sample.quotients(model)
    request = Request(sample, kind, method == "auto", bins, quotients, derivatives)
    if method == "gradient" or (method == "auto" and jacobian is None):
        request = request.with_gradient()
    return request.local(x, progress=progress)


def _check_request(
    model: Model,
    method: str,
    kind: str,
    jacobian: Any,
    bins: BinRule | None,
    options: ModelOptions,
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
                f"bins must be None unless finite differences of a model are taken; got "
                f"method={method!r} and {'no model' if model is None else 'a model'}. Pass them to "
                f"rhale."
            )
    if model is None and (options.output is not None or options.scale != "response"):
        raise ValueError(
            "output and scale must be left out where there is no model: a jacobian belongs to one "
            "output already."
        )
    if options.missing == "bin" and kind == "jacobian":
        raise ValueError(
            "missing='bin' needs the output for missing values, which a jacobian does not have. "
            "Use missing='drop', or pass the model without a jacobian."
        )
