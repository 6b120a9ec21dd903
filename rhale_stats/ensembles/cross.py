"""Effects on held-out rows of models fitted without them (math [83], [84])."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from rhale_stats.arguments.checks import check_callable, check_choice
from rhale_stats.arguments.seeds import seeded
from rhale_stats.arguments.words import shown
from rhale_stats.arrays.members import mean
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.ensembles.labelled import (
    CROSS_FITTED,
    JACKKNIFE,
    ON_GRID,
    TOTALS,
    Member,
    MemberGrid,
    Values,
    check_member,
    common_grid,
    labelled,
    on_grid,
)
from rhale_stats.ensembles.refits import RefitTable, fitted_members, same_features
from rhale_stats.inference.draws import GRID
from rhale_stats.schema.validation import validated

OTHER = "_other_model"


@validated
@seeded
def cross_effects(
    fit: Callable[[Any], Any],
    estimate: Callable[[Any, Any], xr.Dataset],
    data: Any,
    *,
    n_folds: int = 5,
    n_repeats: int = 5,
    groups: ArrayLike | None = None,
    strata: ArrayLike | None = None,
    variance: str = JACKKNIFE,
    n_grid: int = GRID,
    n_jobs: int | None = -1,
    rng: np.random.Generator | int | None = None,
    progress: bool = True,
) -> xr.Dataset:
    r"""Effects of models on rows that they were not fitted to, by repeated cross-fitting.

    The rows are divided into folds at random. A model is fitted to all folds but one, and its
    effects are estimated on the rows of that fold. The result is the mean over folds and repeats,
    with an error that includes the uncertainty of the model (math [83]).

    Parameters
    ----------
    fit : callable
        Function of a table like ``data`` that returns a fitted model, as in
        ``lambda train: LinearRegression().fit(train[features], train["y"])``.
    estimate : callable
        Function of the model and of a table like ``data`` that returns an effect, as in
        ``lambda model, rows: ale(model, rows[features])``, or a profile, such as that of `pdp`.
    data : table, or array_like of shape (n_rows, n_columns)
        All columns that ``fit`` and ``estimate`` need, including the outcomes.
    n_folds : int, default 5
        Number of folds, at least 2, with about equal numbers of rows.
    n_repeats : int, default 5
        Number of random divisions into folds. ``fit`` is called ``n_folds * n_repeats + 1`` times.
    groups : array_like of shape (n_rows,), optional
        Rows of one group are held out together.
    strata : array_like of shape (n_rows,), optional
        Stratum of every row: each fold gets its share of the rows, or groups, of each stratum.
    variance : {"jackknife", "nadeau-bengio"}
        How errors are made. "jackknife": ``estimate`` is called a second time for every fold, with
        the model of the next fold. The differences of the two models on the same rows give the
        error of the model (math [83]). "nadeau-bengio": the corrected variance of cross-validation
        (math [84]); it is too small where most of the error is the model's, see Notes.
    n_grid : int, default 101
        Number of grid points at which effects are compared, over the range of all rows.
    %(n_jobs)s
    %(rng of folds)s
    %(progress)s

    Returns
    -------
    Dataset
        As `bootstrap_refit`, with a chain a repeat and a draw a fold. ``curve_estimate`` and the
        other estimates are means over all members, weighted by their held-out rows, and NaN where
        fewer than half of the members have a value, as at the ends of the range.
        ``curve_other_model`` and so on are of the same rows and the model of the next fold.
        ``n_held_out`` and ``n_train`` (chain, draw) are numbers of rows. If a fit fails, ``failed``
        is 1, as in `bootstrap_refit`.

    Raises
    ------
    ValueError
        More folds than rows or groups; all fits failed; ``estimate`` returned effects of other
        features; groups or strata have another length or are missing in some row; a group is in two
        strata; unknown ``variance``.
    TypeError
        ``estimate`` did not return an effect.

    Warns
    -----
    UserWarning
        Some fits failed. There is one warning, with their number and the first error.

    Notes
    -----
    The estimand is the expected effect of models that are fitted to ``1 - 1 / n_folds`` of the
    rows. The bias of such models is not in the error.

    The corrected variance of Nadeau and Bengio is made for errors of prediction, which vary mostly
    by the held-out rows. Models of two folds share most of their training rows, so they differ
    less than two models of independent samples do: for a linear statistic of the training rows
    the corrected variance of one division into k folds is :math:`(2k - 1) / (k - 1)^3` of the
    variance, 14 % for 5 folds. The jackknife has the factor that belongs to this overlap. With
    unstable models, such as single trees, its errors are too large, because it treats all
    differences of the models as due to their rows.

    References
    ----------
    Nadeau and Bengio (2003), *Machine Learning* 52, 239-281. Molnar et al. (2023), *Relating the
    partial dependence plot and permutation feature importance to the data generating process*,
    arXiv 2109.01433. Shao and Wu (1989), *Annals of Statistics* 17, 1176-1197.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> rng = np.random.default_rng(0)
    >>> data = rng.normal(size=(200, 2))
    >>> data[:, 1] += 3 * data[:, 0]
    >>> def fit(train):
    ...     return np.polyfit(train[:, 0], train[:, 1], 1)
    >>> def estimate(line, rows):
    ...     return rs.ale(lambda X: np.polyval(line, X[:, 0]), rows[:, :1])
    >>> found = rs.cross_effects(fit, estimate, data, n_jobs=1, rng=0)
    >>> found["average_effect_estimate"].round(2).values
    array([3.06])
    """
    check_callable("fit", fit)
    check_choice("variance", variance, CROSS_FITTED)
    _check_takes_two(estimate)
    table = RefitTable.read(data, groups, strata)
    if table.n_units < n_folds:
        raise ValueError(
            f"n_folds must not exceed the number of {'rows' if groups is None else 'groups'} of "
            f"data; got {n_folds} for {table.n_units}."
        )
    whole = check_member(estimate(fit(table.whole), table.whole), "what estimate returns")
    grid = common_grid([whole], n_grid, "what estimate returns")
    streams = np.random.default_rng(rng).spawn(n_repeats)
    folds = [rows for stream in streams for rows in table.folds(n_folds, stream)]
    task = _Fold(fit, estimate, table, grid, paired=variance == JACKKNIFE)
    fitted = fitted_members(task, _items(folds, n_folds), n_jobs, progress, "cross-fitting")
    held_out = np.array([len(rows) for rows in folds], dtype=np.float64)
    members = _with_other_models(fitted, n_folds)
    facts = {
        "method": "cross_effects",
        "scheme": "k-fold",
        "source": "cross-fitting" if groups is None else "cross-fitting, groups of rows",
        "model": "fitted without the rows of each fold",
        "bins": "chosen again in every fold",
        "variance": variance,
        "n_folds": n_folds,
        "n_repeats": n_repeats,
        "n_rows": len(table.data),
        "n_units": table.n_units,
        "n_strata": len(table.strata),
        "test_over_train": float(np.mean(held_out / (len(table.data) - held_out))),
    }
    out = labelled(members, grid, whole, _pooled(members, held_out), n_repeats, facts)
    sizes = {"n_held_out": held_out, "n_train": len(table.data) - held_out}
    words = {"n_held_out": "rows held out", "n_train": "rows that the model was fitted to"}
    shape = (n_repeats, n_folds)
    return out.assign(
        {
            name: (
                ("chain", "draw"),
                values.reshape(shape),
                {"long_name": words[name], "units": "rows"},
            )
            for name, values in sizes.items()
        }
    )


def _check_takes_two(estimate: Callable[[Any, Any], xr.Dataset]) -> None:
    """Raise ``TypeError`` unless a function can be called with a model and a table."""
    try:
        call_signature = signature(estimate)
    except ValueError:  # some functions of C have none
        return
    try:
        call_signature.bind(None, None)
    except TypeError as error:
        raise TypeError(
            f"estimate must take two arguments, the model and the rows held out, as in "
            f"estimate=lambda model, rows: ale(model, rows); got {shown(estimate)}: {error}."
        ) from error


class _Item(NamedTuple):
    """Rows that a model is fitted without, and those of the fold that comes before them."""

    held_out: IntArray
    before: IntArray


def _items(folds: Sequence[IntArray], n_folds: int) -> list[_Item]:
    """A ring of folds in every repeat."""
    return [
        _Item(rows, folds[number - 1 if number % n_folds else number + n_folds - 1])
        for number, rows in enumerate(folds)
    ]


@dataclass(frozen=True)
class _Fold:
    """Everything that the fit without one fold needs."""

    fit: Callable[[Any], Any]
    estimate: Callable[[Any, Any], xr.Dataset]
    table: RefitTable
    grid: MemberGrid
    paired: bool

    def __call__(self, item: _Item) -> list[Values] | str:
        """Values on the rows held out and on those of the fold before, or the error of the fit."""
        table = self.table
        used = np.ones(len(table.data), dtype=bool)
        used[item.held_out] = False
        row_sets = (item.held_out, item.before) if self.paired else (item.held_out,)
        try:
            model = self.fit(table.take(np.flatnonzero(used)))
            effects = [self.estimate(model, table.take(rows)) for rows in row_sets]
        except Exception as error:  # a fit may fail on some rows, in any way
            return f"{type(error).__name__}: {error}"
        return [
            on_grid(
                same_features(check_member(effect, "what estimate returns"), self.grid, "estimate"),
                self.grid,
            )
            for effect in effects
        ]


def _with_other_models(fitted: Sequence[list[Values] | str], n_folds: int) -> list[Member]:
    """Members, each with what the model of the next fold says of its rows."""
    out: list[Member] = []
    for number, fold_values in enumerate(fitted):
        if isinstance(fold_values, str):
            out.append(fold_values)
            continue
        member = dict(fold_values[0])
        after = fitted[number + 1 if (number + 1) % n_folds else number + 1 - n_folds]
        if len(fold_values) > 1:
            for name in (*ON_GRID, *TOTALS):
                if name in member:
                    absent = np.full_like(member[name], np.nan)
                    other = absent if isinstance(after, str) else after[1].get(name, absent)
                    member[f"{name}{OTHER}"] = other
        out.append(member)
    return out


def _pooled(members: Sequence[Member], n_rows: FloatArray) -> dict[str, FloatArray]:
    """Means over the members, weighted by the rows that were held out."""
    sound = [member for member in members if not isinstance(member, str)]
    weight = np.array(
        [n for n, member in zip(n_rows, members, strict=True) if not isinstance(member, str)]
    )
    names = [name for name in (*ON_GRID, *TOTALS) if name in sound[0]]
    return {name: mean(np.stack([member[name] for member in sound]), weight) for name in names}
