"""Effects of models fitted to samples of the rows, or without folds of them (math [81] to [84])."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from rhale_stats.arguments.checks import check_callable, check_choice
from rhale_stats.arguments.progress import progress_bar
from rhale_stats.arguments.rows import as_array, row_codes
from rhale_stats.arguments.seeds import seeded
from rhale_stats.arguments.words import shown, warn
from rhale_stats.arrays.members import mean, subsampling_factor
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.ensembles.labelled import (
    BOOTSTRAP,
    CROSS_FITTED,
    JACKKNIFE,
    ON_GRID,
    SUBSAMPLING,
    TOTALS,
    Member,
    MemberGrid,
    Values,
    check_member,
    common_grid,
    labelled,
    on_grid,
)
from rhale_stats.inference.draws import GRID, chains_of, in_strata
from rhale_stats.models.forms import ARRAY, TableFormat, read
from rhale_stats.models.table import COPY_ON_WRITE
from rhale_stats.parallel import in_processes, n_processes
from rhale_stats.schema.features import feature_names
from rhale_stats.schema.validation import Options, validated


class RefitTable(NamedTuple):
    """A user's table as a data frame or an array, and what its rows are drawn by.

    ``unit`` is the unit of every row, None where every row is one; ``strata`` are the units of
    every stratum.
    """

    data: Any
    unit: IntArray | None
    strata: Sequence[IntArray]
    form: TableFormat = ARRAY

    @classmethod
    def read(cls, data: Any, groups: ArrayLike | None, strata: ArrayLike | None) -> RefitTable:
        """Read all three; raise ``TypeError`` or ``ValueError`` where they do not fit."""
        table, form = read(data, "data")
        if not isinstance(table, pd.DataFrame):
            table = as_array(table, "data must hold")
        labels = table.index.to_numpy() if form.labelled else None
        used = np.ones(len(table), dtype=bool)
        unit, stratum = [
            None if values is None else row_codes(values, labels, used, name, "rows of data")
            for values, name in ((groups, "groups"), (strata, "strata"))
        ]
        n_units = len(table) if unit is None else int(unit.max()) + 1
        return cls(table, unit, in_strata(n_units, unit, stratum), form)

    @property
    def n_units(self) -> int:
        """Number of rows, or of groups, that are drawn."""
        return sum(map(len, self.strata))

    def rows_of(self, units: IntArray) -> IntArray:
        """Rows of these units, one unit after the other."""
        if self.unit is None:
            return units
        order, ends = np.argsort(self.unit, kind="stable"), np.bincount(self.unit).cumsum()
        members = np.split(order, ends[:-1])
        return np.concatenate([members[number] for number in units])

    def take(self, rows: NDArray[np.intp]) -> Any:
        """These rows, in the form of the user's table."""
        if not isinstance(self.data, pd.DataFrame):
            return self.data[rows]
        sample = self.data.iloc[rows].reset_index(drop=True)
        sample.attrs = self.data.attrs
        return self.form.give(sample)

    @property
    def whole(self) -> Any:
        """All rows, in the form of the user's table; a copy, which a function may change."""
        if not isinstance(self.data, pd.DataFrame):
            return self.data.copy()
        return self.form.give(self.data.copy(deep=not COPY_ON_WRITE))

    def drawn(self, sizes: Sequence[int] | None, rng: np.random.Generator) -> IntArray:
        """Rows of a sample without repeats, in the order of the table, of so many units a stratum.

        Without ``sizes`` those of a bootstrap sample: as many units as there are, with repeats.
        """
        if sizes is None:
            units = [some[rng.integers(len(some), size=len(some))] for some in self.strata]
            return self.rows_of(np.concatenate(units))
        sampled = zip(self.strata, sizes, strict=True)
        units = [rng.choice(some, size=size, replace=False) for some, size in sampled]
        return np.sort(self.rows_of(np.concatenate(units)))

    def folds(self, n_folds: int, rng: np.random.Generator) -> list[IntArray]:
        """Rows of every fold, in the order of the table; strata are dealt out evenly."""
        order = np.concatenate([rng.permutation(units) for units in self.strata])
        return [np.sort(self.rows_of(order[first::n_folds])) for first in range(n_folds)]

    def subsample_sizes(self, share: float) -> list[int]:
        """Units to draw from every stratum: the share of its units, one at least."""
        sizes = [min(max(round(share * len(units)), 1), len(units)) for units in self.strata]
        if sum(sizes) == self.n_units:
            raise ValueError(
                f"sample_size must leave out some of the {self.n_units} rows or groups; a share of "
                f"{share:g} of every stratum leaves out none. Take a smaller share."
            )
        return sizes


# --- bootstrap and subsampling with the model fitted again to every sample ------------------------


SCHEMES = (BOOTSTRAP, SUBSAMPLING)
# Share of the rows in a subsample: the distinct rows of a bootstrap sample, 1 - 1/e of all.
SUBSAMPLE = 0.632


@dataclass(frozen=True)
class RefitOptions(Options):
    """How `bootstrap_refit` draws samples, and on which grid it compares effects.

    Parameters
    ----------
    scheme : {"bootstrap", "subsampling"}
        "bootstrap": as many rows as there are, with replacement. "subsampling": a share of the
        rows, without replacement. No row is then repeated, which misleads models that choose a
        penalty by cross-validation, and nearest neighbours.
    sample_size : float, optional
        Share of the rows, or groups, in a subsample, between 0 and 1; by default 0.632, the share
        of distinct rows in a bootstrap sample. With "bootstrap" it must be left out.
    chains : int, default 4
        Number of independent streams of random numbers, for ArviZ.
    n_grid : int, default 101
        Number of grid points at which effects are compared, over the range of the estimate.
        Profiles, such as those of `pdp`, are compared at the points of the estimate.

    Examples
    --------
    >>> import rhale_stats as rs
    >>> rs.RefitOptions(scheme="subsampling", sample_size=0.5).sample_size
    0.5
    """

    scheme: str = BOOTSTRAP
    sample_size: float | None = None
    chains: int = 4
    n_grid: int = GRID

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("scheme", self.scheme, SCHEMES)
        if self.scheme == BOOTSTRAP and self.sample_size is not None:
            raise ValueError(
                f"sample_size must be left out with scheme 'bootstrap', which draws as many rows "
                f"as there are; got {self.sample_size:g}. For samples without replacement use "
                f"scheme='subsampling'."
            )


@validated
@seeded
def bootstrap_refit(
    fit: Callable[[Any], xr.Dataset],
    data: Any,
    *,
    n_resamples: int = 100,
    groups: ArrayLike | None = None,
    strata: ArrayLike | None = None,
    sampling: RefitOptions = RefitOptions(),
    n_jobs: int | None = -1,
    rng: np.random.Generator | int | None = None,
    progress: bool = True,
    jobs: int | None = None,
    **fields: Any,
) -> xr.Dataset:
    r"""Effects of models fitted again to samples of the rows (math [30], [81], [82]).

    Parameters
    ----------
    fit : callable
        Function of a table like ``data`` that returns an effect: it fits the model, and calls
        `ale`, or `local_effects` and `rhale`, or `pdp`. It may be a lambda or a closure (joblib
        sends it to the processes).
    data : table, or array_like of shape (n_rows, n_columns)
        All columns that ``fit`` needs, including the outcomes.
    n_resamples : int, default 100
        Number of replicates in all chains together. Where ``chains`` does not divide it, there are
        as many chains as do.
    groups : array_like of shape (n_rows,), optional
        Rows of one group are drawn together.
    strata : array_like of shape (n_rows,), optional
        Stratum of every row. From each stratum as many rows, or groups, are drawn as it has, or the
        share ``sample_size`` of them.
    sampling : RefitOptions, optional
        How samples are drawn, and the grid of the results. Its fields can be given directly, as in
        ``scheme="subsampling"`` or ``chains=2``.
    n_jobs : int or None, default -1
        Processes, as joblib counts them: -1 for as many as there are CPUs, -2 for one fewer; 1 or
        None for this process alone. The results are the same, up to the rounding of linear algebra
        if ``fit`` does it on several threads: the processes share the CPUs.
    rng : Generator, int or None
        Source of random numbers, or its seed, as in `bootstrap`. Every replicate has its own
        stream.
    %(progress)s
    jobs : int, optional
        Deprecated name of ``n_jobs``.

    Returns
    -------
    Dataset
        Over (chain, draw, feature, grid) at ``grid_value``: ``effect``, ``heterogeneity`` and
        ``curve``; over (chain, draw, feature): ``average_effect``, ``importance``,
        ``heterogeneity_index`` and ``heterogeneity_output``; and the estimates from all rows,
        ``curve_estimate`` and so on, over (feature, grid) or (feature). ``curve_se_rows`` and so on
        are the standard errors of each replicate by its rows, with its model as given; they are
        known for means of local effects with their moments, and for profiles. The grid of a feature
        with levels is its levels, with names in ``level``; effects are those of the step to the
        next level. Profiles have no effects, heterogeneities and average effects.

        If the fit of a replicate raises an error, its values are NaN and ``failed`` (chain, draw)
        is 1; ``n_failed`` and ``first_failure`` are in the attributes. ``variance_factor`` is what
        the variance of the replicates is multiplied by: 1, or m / (n - m) for m of n rows.

    Raises
    ------
    ValueError
        All fits failed; ``fit`` returned effects
        of other features; groups or strata have another length or are missing in some row; a group
        is in two strata; ``sample_size`` with "bootstrap", or one that leaves out no row.
    TypeError
        ``fit`` did not return an effect.

    Warns
    -----
    UserWarning
        Some fits failed. There is one warning, with their number and the first error.

    Notes
    -----
    The replicates vary by the model and by the rows that its effects are averaged over. The mean
    square of ``curve_se_rows`` is the part of the rows, and the rest is the model's (math [82]).
    Intervals do not include the bias of the model.

    References
    ----------
    Efron (1979), *Annals of Statistics* 7, 1-26. Politis and Romano (1994), *Annals of Statistics*
    22, 2031-2050.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(200, 1))
    >>> data = np.column_stack([X, 3 * X + rng.normal(size=X.shape)])
    >>> def fit(rows):
    ...     slope = np.polyfit(rows[:, 0], rows[:, 1], 1)[0]
    ...     local = rs.local_effects(lambda X: slope * X[:, 0], rows[:, :1], features=0)
    ...     return rs.rhale(local, centering="start")
    >>> boot = rs.bootstrap_refit(fit, data, n_resamples=100, n_jobs=1, rng=0)
    >>> float(boot["average_effect"].std().round(2))  # least squares says 0.24
    0.23
    """
    check_callable("fit", fit)
    if jobs is not None:
        warn("jobs is deprecated and will be removed; use n_jobs.", FutureWarning)
        n_jobs = jobs
    table, sizes = RefitTable.read(data, groups, strata), None
    if sampling.scheme == SUBSAMPLING:
        share = SUBSAMPLE if sampling.sample_size is None else sampling.sample_size
        sizes = table.subsample_sizes(share)
    whole = check_member(fit(table.whole), "what fit returns")
    grid = common_grid([whole], sampling.n_grid, "what fit returns")

    def refit(stream: np.random.Generator) -> Member:
        """Values on the grid of one replicate, or the error of the fit."""
        rows = table.drawn(sizes, stream)
        try:
            effect = fit(table.take(rows))
        except Exception as error:  # a fit may fail on some samples, in any way
            return f"{type(error).__name__}: {error}"
        return _same_features(effect, grid, "fit")

    streams = np.random.default_rng(rng).spawn(n_resamples)
    members = fitted_members(refit, streams, n_jobs, progress, "bootstrap")
    n_drawn = table.n_units if sizes is None else sum(sizes)
    facts = {
        "method": "bootstrap_refit",
        "scheme": sampling.scheme,
        "n_resamples": n_resamples,
        "source": "refits" if groups is None else "refits, groups of rows",
        "model": "fitted again in every replicate",
        "bins": "chosen again in every replicate",
        "variance": sampling.scheme,
        "n_rows": len(table.data),
        "n_units": table.n_units,
        "n_strata": len(table.strata),
        "n_units_drawn": n_drawn,
        # Factors of variances, math [82].
        "variance_factor": 1.0 if sizes is None else subsampling_factor(n_drawn, table.n_units),
        "rows_factor": n_drawn / table.n_units,
    }
    chains = chains_of(n_resamples, sampling.chains)
    return labelled(members, grid, whole, on_grid(whole, grid), chains, facts)


def fitted_members(
    task: Callable[[Any], Any], items: Sequence[Any], n_jobs: int | None, progress: bool, what: str
) -> list[Any]:
    """What a task makes of every item, in processes, with a bar; texts are reasons of failures.

    Raises ``ValueError`` if all failed, and warns if some did.
    """
    # More processes than items would have nothing to do.
    processes = n_processes(n_jobs, most=len(items))
    with progress_bar(len(items), what, "fit", progress=progress) as bar:
        members: list[Any] = in_processes(task, items, processes, lambda _: bar.update(1))
    reasons = [member for member in members if isinstance(member, str)]
    if len(reasons) == len(members):
        raise ValueError(
            f"fit must work on samples of the rows; all {len(members)} failed: {reasons[0]}"
        )
    if reasons:
        warn(
            f"{len(reasons)} of {len(members)} fits failed and are left out; the first: "
            f"{reasons[0]}"
        )
    return members


def _same_features(effect: object, grid: MemberGrid, function: str) -> Values:
    """The effect of a sample on the grid; ``ValueError`` unless it has the features of all rows."""
    checked = check_member(effect, f"what {function} returns")
    names = tuple(feature_names(checked))
    if names != grid.names:
        raise ValueError(
            f"{function} must return the same features for all rows and for resampled ones; got "
            f"{', '.join(grid.names)} for all, {', '.join(names)} for some."
        )
    return on_grid(checked, grid)


# --- cross-fitting --------------------------------------------------------------------------------


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
    >>> effects = rs.cross_effects(fit, estimate, data, n_jobs=1, rng=0)
    >>> effects["average_effect_estimate"].round(2).values
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

    def without_fold(number: int) -> list[Values] | str:
        """Values on the rows held out and on those of the fold before, or the error of the fit."""
        before = folds[number - 1 if number % n_folds else number + n_folds - 1]
        row_sets = [folds[number], before] if variance == JACKKNIFE else [folds[number]]
        used = np.ones(len(table.data), dtype=bool)
        used[folds[number]] = False
        try:
            model = fit(table.take(np.flatnonzero(used)))
            effects = [estimate(model, table.take(rows)) for rows in row_sets]
        except Exception as error:  # a fit may fail on some rows, in any way
            return f"{type(error).__name__}: {error}"
        return [_same_features(effect, grid, "estimate") for effect in effects]

    fitted = fitted_members(without_fold, range(len(folds)), n_jobs, progress, "cross-fitting")
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
    for name, sizes, what in (
        ("n_held_out", held_out, "rows held out"),
        ("n_train", len(table.data) - held_out, "rows that the model was fitted to"),
    ):
        about = {"long_name": what, "units": "rows"}
        out[name] = (("chain", "draw"), sizes.reshape(n_repeats, n_folds), about)
    return out


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
                    of_next = {} if isinstance(after, str) else after[1]
                    member[f"{name}{OTHER}"] = of_next.get(name, absent)
        out.append(member)
    return out


def _pooled(members: Sequence[Member], n_rows: FloatArray) -> dict[str, FloatArray]:
    """Means over the members, weighted by the rows that were held out."""
    sound = [member for member in members if not isinstance(member, str)]
    weight = n_rows[[not isinstance(member, str) for member in members]]
    names = [name for name in (*ON_GRID, *TOTALS) if name in sound[0]]
    return {name: mean(np.stack([member[name] for member in sound]), weight) for name in names}
