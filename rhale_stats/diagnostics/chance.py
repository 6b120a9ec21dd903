"""Sizes of effects that a model finds by chance, in columns without any information."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike

from rhale_stats.arguments.checks import check_callable
from rhale_stats.arguments.progress import progress_bar
from rhale_stats.arguments.rows import as_array
from rhale_stats.arguments.seeds import seeded
from rhale_stats.effects.sizes import NORMALISED, SIZES, effect_sizes
from rhale_stats.models.forms import read
from rhale_stats.parallel import in_processes, n_processes
from rhale_stats.schema.checks import check_effect
from rhale_stats.schema.features import feature_names
from rhale_stats.schema.kinds import EFFECT
from rhale_stats.schema.validation import validated
from rhale_stats.schema.variables import variable

# The added column, where none of the data is permuted.
RANDOM = "random"
IN_OUTPUT_UNITS = (*SIZES, "heterogeneity_output", *NORMALISED)
# In units of the feature as well, so that features cannot be compared with an added column.
IN_FEATURE_UNITS = ("heterogeneity_index",)
# Sizes that are the larger the lower they are.
LOWER = ("aler_min", "naler_min")
# Relative; differences by rounding count as ties.
TIE = 1e-9
# Sizes of one feature by name, or the error of the fit.
_Replicate: TypeAlias = xr.Dataset | str


@validated
@seeded
def sizes_by_chance(
    fit: Callable[[Any], xr.Dataset],
    data: Any,
    *,
    features: str | int | Sequence[str | int] | None = None,
    y: ArrayLike | None = None,
    level: float = 0.95,
    n_resamples: int = 99,
    n_jobs: int | None = -1,
    rng: np.random.Generator | int | None = None,
    progress: bool = True,
) -> xr.Dataset:
    r"""Sizes of the effects, compared with those of columns without information (math [70]).

    The model is fitted again and again, each time with a column that has nothing to do with the
    outcome. The sizes of the effects of this column are those that arise by chance, including
    overfitting of the model.

    Parameters
    ----------
    fit : callable
        Function of a table like ``data`` that returns an effect: it fits the model, computes local
        effects and calls `rhale`. It may be a lambda or a closure.
    data : table, or array_like of shape (n_rows, n_columns)
        All columns that ``fit`` needs, including the outcomes.
    features : str, int or sequence of these, optional
        Columns of ``data`` (names, or positions in an array) to be tested. For each of them the
        model is fitted ``n_resamples`` times with the values of this column permuted. By default no
        column is permuted. Instead a column "random" of standard normal numbers is added to a
        DataFrame, which ``fit`` must use as a feature, and all features are compared with it.
    y : array_like of shape (n_rows,), optional
        Outcomes, for sizes in per cent of the outcomes, as in `effect_sizes`.
    level : float, default 0.95
        One minus the significance level of the thresholds; also of the interval of ``importance``.
    n_resamples : int, default 99
        Number of refits, for each of ``features``.
    %(n_jobs)s
    rng : Generator, int or None
        Source of random numbers, or its seed. Every refit has its own stream.
    %(progress)s

    Returns
    -------
    Dataset
        What ``effect_sizes(fit(data), y=y, level=level)`` returns, and for ``importance``,
        ``aled``, ``aler_min``, ``aler_max``, ``heterogeneity_output`` and, with ``y``, ``naled``,
        ``naler_min`` and ``naler_max``: ``..._chance``, the sizes by chance over (replicate,
        feature), or (replicate) for an added column; ``..._chance_p_value``; and
        ``..._threshold``: larger sizes (smaller ``aler_min``) are significant, infinite where
        ``n_resamples`` is too small for the level. With ``features`` also for
        ``heterogeneity_index``. Features that were not permuted have NaN. ``failed`` (replicate,
        feature) is 1 where ``fit`` raised an error; the first error is in the attributes.

    Raises
    ------
    ValueError
        A column is not in ``data``, or not a feature of what ``fit`` returns; all fits failed.
    TypeError
        ``fit`` did not return an effect.

    Notes
    -----
    The p-value is (1 + b) / (1 + n), where b of the n fits that worked have a size by chance of at
    least the observed one. It is never 0, and at least 1 / (1 + n).

    With ``features`` the hypothesis is that the column is independent of the outcome and of all
    other columns together, with independent rows. Under it the size of the test is exact for every
    model and number of refits. A column without an effect of its own that is correlated with an
    important one does not satisfy the hypothesis: a model may share the effect between them, and
    the p-value can be small. An added column costs one series of refits for all features, but it
    differs from them in its distribution and its dependence on other columns, and the model has one
    column more: the p-values are approximate. No refit holds for dependent rows.

    ``importance_p_value`` of `effect_sizes` needs no refit and answers another question: whether
    the curve of the model as given is flat for the population of rows. A flexible model that is
    fitted to noise has curves that are not flat.

    References
    ----------
    Okoli (2023), *Statistical inference using machine learning and classical techniques based on
    accumulated local effects (ALE)*, arXiv:2310.09877, for an added column. Altmann, Tolosi, Sander
    and Lengauer (2010), *Permutation importance: a corrected feature importance measure*,
    Bioinformatics 26, 1340-1347, for models fitted to permuted data. Phipson and Smyth (2010),
    *Permutation p-values should never be zero*, Statistical Applications in Genetics and Molecular
    Biology 9, 39.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> rng = np.random.default_rng(1)
    >>> X = rng.uniform(-1, 1, size=(200, 2))
    >>> data = np.column_stack([X, X[:, 0] + rng.normal(size=200)])
    >>> def fit(rows):
    ...     slopes = np.linalg.lstsq(np.column_stack([rows[:, :2], np.ones(200)]), rows[:, 2])[0]
    ...     return rs.rhale(rs.local_effects(lambda X: X @ slopes[:2], rows[:, :2]))
    >>> sizes = rs.sizes_by_chance(fit, data, features=[0, 1], n_resamples=19, n_jobs=1, rng=0)
    >>> sizes["importance_chance_p_value"].values
    array([0.05, 0.95])
    """
    check_callable("fit", fit)
    table, form = read(data, "data")
    table = table if isinstance(table, pd.DataFrame) else as_array(table, "data must hold")
    columns = _columns(table, features)
    sizes = _sizes(fit(form.give(table.copy())), y, level)
    # Columns of an array have no names of their own.
    names = [str(column) if isinstance(table, pd.DataFrame) else f"x{column}" for column in columns]
    missing = [name for name in names if name not in feature_names(sizes)]
    if missing and features is not None:
        raise ValueError(
            f"features must be features of what fit returns, which are "
            f"{', '.join(feature_names(sizes))}; got {', '.join(missing)}."
        )

    def refit(item: tuple[int, np.random.Generator]) -> _Replicate:
        """Sizes of a column without information, or the error of the fit."""
        number, stream = item
        sample = _without_information(table, columns[number], stream)
        try:
            effect = fit(form.give(sample))
        except Exception as error:  # a fit may fail on some columns, in any way
            return f"{type(error).__name__}: {error}"
        effect = check_effect(effect, "what fit returns")
        features_of_fit, name = feature_names(effect), names[number]
        if name not in features_of_fit:
            raise ValueError(
                f"fit must use all columns but the outcome as features, or all that it is given; "
                f"{name!r} is not among {', '.join(features_of_fit)}."
            )
        sizes = _sizes(effect.isel(feature=[features_of_fit.index(name)]), y)
        return sizes[_compared_names(sizes)].isel(feature=0, drop=True)

    streams = np.random.default_rng(rng).spawn(n_resamples * len(columns))
    items = [(number % len(columns), stream) for number, stream in enumerate(streams)]
    processes = n_processes(n_jobs, most=len(items))
    with progress_bar(len(items), "sizes by chance", "fit", progress=progress) as bar:
        replicates: list[_Replicate] = in_processes(
            refit, items, processes, lambda _: bar.update(1)
        )
    reasons = [replicate for replicate in replicates if isinstance(replicate, str)]
    if len(reasons) == len(replicates):
        raise ValueError(
            f"fit must work with columns without information; all {len(replicates)} fits failed: "
            f"{reasons[0]}"
        )
    nothing = xr.full_like(next(made for made in replicates if not isinstance(made, str)), np.nan)
    each = []
    for number in range(len(columns)):
        of_column = replicates[number :: len(columns)]
        sizes_or_nan = [nothing if isinstance(made, str) else made for made in of_column]
        failed = [float(isinstance(made, str)) for made in of_column]
        each.append(xr.concat(sizes_or_nan, "replicate").assign(failed=("replicate", failed)))
    if features is None:  # over (replicate) alone
        chance = each[0].drop_vars(IN_FEATURE_UNITS, errors="ignore")
    else:  # features that were not permuted have no sizes by chance
        chance = xr.concat(each, pd.Index(names, name="feature"))
        chance = chance.reindex(feature=feature_names(sizes))
    return _compared(sizes, chance, level).assign_attrs(
        n_resamples=n_resamples,
        chance="added column" if features is None else "permuted columns",
        first_failure=reasons[0] if reasons else "",
    )


def _columns(table: Any, features: Any) -> list[Any]:
    """Columns to be permuted, or the one to be added."""
    if features is None:
        if not isinstance(table, pd.DataFrame):
            raise ValueError(
                "features must be given where data is an array: only to a DataFrame a column can "
                "be added by name."
            )
        if RANDOM in table.columns:
            raise ValueError(f"data must not have a column {RANDOM!r}, which is to be added.")
        return [RANDOM]
    listed = [features] if isinstance(features, str | int | np.integer) else list(features)
    every = table.columns if isinstance(table, pd.DataFrame) else range(table.shape[1])
    existing: list[Any] = list(every)
    for column in listed:
        if existing.count(column) != 1:
            raise ValueError(
                f"features must be columns of data, each there once; got {column!r}, and data has "
                f"{', '.join(map(repr, existing[:20]))}."
            )
    if not listed or len(set(listed)) < len(listed):
        raise ValueError("features must name one column or more, each once.")
    return listed


def _sizes(effect: Any, y: ArrayLike | None, level: float = 0.95) -> xr.Dataset:
    return effect_sizes(check_effect(effect, "what fit returns"), y=y, level=level)


def _without_information(table: Any, column: Any, rng: np.random.Generator) -> Any:
    """The table with a column permuted, or with a random one added."""
    n_rows = len(table)
    if not isinstance(table, pd.DataFrame):
        sample = table.copy()
        sample[:, column] = table[rng.permutation(n_rows), column]
        return sample
    sample = table.copy(deep=False)
    if column in table.columns:
        # By position, so that categories stay what they are.
        sample[column] = table[column].iloc[rng.permutation(n_rows)].set_axis(table.index)
    else:
        sample[column] = rng.normal(size=n_rows)
    return sample


def _compared_names(sizes: xr.Dataset) -> list[str]:
    return [name for name in (*IN_OUTPUT_UNITS, *IN_FEATURE_UNITS) if name in sizes]


def _compared(sizes: xr.Dataset, chance: xr.Dataset, level: float) -> xr.Dataset:
    """Sizes with those by chance, their p-values, and the thresholds of the level."""
    out = {}
    for name in [name for name in _compared_names(sizes) if name in chance]:
        sign = -1.0 if name in LOWER else 1.0
        draws, size = sign * chance[name], sign * sizes[name]
        n = draws.notnull().sum("replicate")
        least = size - TIE * np.abs(size)
        p = (1 + (draws >= least).sum("replicate")) / (1 + n)
        comparable = size.notnull() & (n > 0)
        threshold = sign * _threshold(draws, level)
        for suffix, values in (
            ("chance", chance[name]),
            ("chance_p_value", p.where(comparable)),
            ("threshold", threshold.where(n > 0).broadcast_like(size)),
        ):
            turned = values.transpose("replicate", *sizes[name].dims, missing_dims="ignore")
            dims, of_suffix = tuple(map(str, turned.dims)), f"{name}_{suffix}"
            out[of_suffix] = variable(of_suffix, turned.values, EFFECT, dims, level=level)
    failed = chance["failed"].transpose("replicate", ...)
    return sizes.assign(out).assign(failed=(failed.dims, failed.values, FAILED))


FAILED = {"long_name": "the fit raised", "units": "1"}


def _threshold(draws: xr.DataArray, level: float) -> xr.DataArray:
    """The largest size that is not significant: p <= 1 - level if and only if it is exceeded."""

    def threshold_of(values: np.ndarray) -> np.ndarray:
        descending = -np.sort(-values, axis=-1)  # NaN last
        n = np.isfinite(values).sum(axis=-1)
        allowed = np.floor((1 - level) * (n + 1) * (1 + TIE)).astype(np.int64)
        last = np.maximum(allowed - 1, 0)[..., None]
        thresholds = np.take_along_axis(descending, last, axis=-1)[..., 0]
        return np.where(allowed >= 1, thresholds, np.inf)

    threshold: xr.DataArray = xr.apply_ufunc(threshold_of, draws, input_core_dims=[["replicate"]])
    return threshold
