"""Finite differences of ALE across bins, row by row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from rhale_stats.arguments.checks import is_in_chunks, is_path
from rhale_stats.arguments.rows import of_rows
from rhale_stats.bins.rule import BinRule, check_rule
from rhale_stats.local.levels import Orders, level_effects, split_features
from rhale_stats.local.local_effects import local_effects
from rhale_stats.local.request import Request, axis_values
from rhale_stats.local.rows import ALE_BINS
from rhale_stats.models.adapters.libraries import columns_known_of
from rhale_stats.models.options import ModelOptions
from rhale_stats.models.outputs import Model
from rhale_stats.models.sample import Sample
from rhale_stats.schema.padding import concat_features
from rhale_stats.schema.validation import validated

# Number of bins of DALE by default.
DALE_BINS = 20


@validated
def ale_local_effects(
    model: Model,
    X: Any,
    features: str | int | Sequence[str | int] | None = None,
    *,
    bins: BinRule | None = None,
    categorical: str | int | Sequence[str | int] | None = None,
    order: Orders = "similarity",
    target: ArrayLike | None = None,
    percentiles: tuple[float, float] | None = None,
    options: ModelOptions = ModelOptions(),
    progress: bool = True,
    **fields: Any,
) -> xr.Dataset:
    r"""Local effects of ALE: finite differences across cells, or between neighbouring levels.

    Parameters
    ----------
    model, X, progress
        As in `local_effects`. The model is called with two rows for each of ``X`` and a feature
        with an axis, and with at most three for a feature with levels. Of a table in chunks only
        columns of numbers have effects.
    bins : bin rule, optional
        As in `ale`.
    features : name, number, or sequence of them, optional
        Columns to take. Columns of categories, text and booleans have levels; numbers have an axis.
        By default all that the model uses; numbers with few values (see `local_effects`) have
        levels then, unless the model has a formula. Identifiers (more than one level for every two
        rows) and columns of lists are left out, which a warning says.
    categorical : name, number, or sequence of them, optional
        Columns of numbers whose values are levels, in their order. They are taken beside
        ``features``. A column of one level is "constant", as a number of one value is.
    order : str, sequence of levels, or mapping from features to these, default "similarity"
        Order of the levels of a nominal feature. "as_is": that of the categories, sorted for text.
        "similarity": levels whose rows are alike in the other columns are neighbours. By what an
        encoder of the library category_encoders makes of ``target``, ascending: "target",
        "james_stein", "glmm", "m_estimate", "woe". A sequence holds all levels with rows once. An
        ordered category, numbers and booleans keep their order, unless a mapping names them, or
        a sequence is given.
    target : array_like of shape (n_rows,), optional
        Outcomes by which levels are encoded; by default the output of the model.
    percentiles : pair of float, optional
        As in `local_effects`, of features with an axis.
    options : ModelOptions, optional
        As in `local_effects`. Of features with levels ``missing="bin"`` makes the rows without a
        value a level named "missing", for which the model receives the missing value of the column
        itself. It is the last level in its own order and in lists that do not name it; other orders
        place it like any level. ``n_missing`` counts these rows.

    Returns
    -------
    Dataset
        As `local_effects` returns it. Of features with levels ``x`` is the number of the level from
        0, ``difference_up`` and ``difference_down`` (obs, feature) are the changes of the output
        from the row's level to the next, and to it from the one before (NaN where there is none),
        and ``local_effect`` is their mean. Coordinates ``level`` (feature, edge), ``n_levels``,
        ``n_levels_unused`` and ``order`` (feature). `ale_from_local` and `bootstrap` take it.

    Raises
    ------
    ValueError
        As `local_effects`; an unknown ``order``, one that does not hold each level with rows once,
        a single level of a feature that was named, a level named "missing" beside missing values
        with ``missing="bin"``, "woe" with a target of more than two values,
        encoders with precision weights or several outputs without ``target``.
    KeyError, TypeError, ModelError
        As `local_effects`.
    ImportError
        An encoder without the library category_encoders.

    Warns
    -----
    UserWarning
        Columns that are left out, and levels without rows.

    Notes
    -----
    *Similarity* (Apley and Zhu). For every other column the distance between two levels is that of
    its distributions in their rows: the largest difference of the distribution functions of numbers
    (at all distinct values, or 1000 quantiles; missing is below all), half the sum of differences
    of shares of categories. Distances are added up over columns and scaled to one dimension
    (Torgerson 1952). The first level that does not lie in the middle lies on the left. Levels at
    one place stay as they are, and so do all levels where no direction tells them apart.

    References
    ----------
    Apley and Zhu (2020), *Journal of the Royal Statistical Society B* 82, 1059-1086. Torgerson
    (1952), *Psychometrika* 17, 401-419.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import rhale_stats as rs
    >>> x = np.random.default_rng(0).uniform(-1, 1, 300)
    >>> table = pd.DataFrame({"x": x, "weekend": np.arange(300) % 7 > 4})
    >>> local = rs.ale_local_effects(lambda t: t["x"] * t["weekend"], table)
    >>> effect = rs.ale_from_local(local)
    >>> effect["feature_kind"].values.tolist()
    ['continuous', 'boolean']
    >>> boot = rs.bootstrap(local, effect, n_resamples=200, rng=0)
    """
    request = AleRequest(
        bins, features, categorical, order, target, percentiles, options, progress=progress
    )
    if is_path(X) or is_in_chunks(X):
        return request.in_chunks(model, X)
    names, axes, levels = request.parts(model, X, most_bytes=None)
    return concat_features([*axes, *levels], names)


@dataclass(frozen=True)
class AleRequest:
    """What `ale_local_effects` is asked for besides a model and a table."""

    bins: BinRule | None
    features: str | int | Sequence[str | int] | None
    categorical: str | int | Sequence[str | int] | None
    order: Orders
    target: ArrayLike | None
    percentiles: tuple[float, float] | None
    options: ModelOptions
    progress: bool

    def parts(
        self, model: Model, X: Any, *, most_bytes: int | None
    ) -> tuple[list[str], Iterator[xr.Dataset], Iterator[xr.Dataset]]:
        """Names of all features; local effects of those with an axis, and of those with levels.

        Made when asked for: of axes as many at a time as take ``most_bytes``, of levels all.
        """
        rule: BinRule = ALE_BINS if self.bins is None else self.bins
        check_rule(rule)
        sample = Sample.from_table(X, self.options, self.percentiles)
        model_columns = columns_known_of(model, sample.table.names)
        names, numbers, levels = split_features(
            sample.table, self.features, self.categorical, model_columns
        )
        if not levels and not (isinstance(self.order, str) and self.order == "similarity"):
            raise ValueError(
                f"order is for categorical features; got {self.order!r}, and none among "
                f"{', '.join(map(repr, names))}. Name discrete numbers in categorical=."
            )
        used, options = sample.answerable(model, [*numbers, *levels])
        of_used_rows = self
        if self.target is not None and not used.all():
            index = sample.table.index
            labels = None if index is None else index.to_numpy()
            target = of_rows(self.target, labels, len(used), "target", "rows of X")
            of_used_rows = replace(self, target=np.asarray(target)[used])
        sample = replace(sample, options=options).take(used)
        return (
            names,
            self._axes(model, sample.of_columns(numbers), rule, most_bytes),
            of_used_rows._levels(model, sample.of_columns(levels)),
        )

    def in_chunks(self, model: Model, X: Any) -> xr.Dataset:
        """Local effects of a table in chunks, computed when they are needed; of numbers only."""
        for name, option in (("categorical", self.categorical), ("target", self.target)):
            if option is not None:
                raise ValueError(
                    f"{name} must be None where X is in chunks: levels need all rows at once. Take "
                    f"a sample of the rows for these features."
                )
        rule: BinRule = ALE_BINS if self.bins is None else self.bins
        chosen: dict[str, Any] = {
            "features": self.features,
            "percentiles": self.percentiles,
            "options": self.options,
            "progress": self.progress,
        }
        return local_effects(model, X, method="finite_difference", bins=rule, **chosen)

    def _axes(
        self, model: Model, sample: Sample, rule: BinRule, most_bytes: int | None
    ) -> Iterator[xr.Dataset]:
        if not sample.positions:
            return
        groups = [list(sample.positions)]
        if most_bytes is not None:
            groups = _groups(sample, rule, max(1, most_bytes // (2 * 8 * sample.table.n_rows)))
        request = Request(sample, "finite_difference", False, rule, sample.quotients(model))
        yield from request.parts(groups, progress=self.progress)

    def _levels(self, model: Model, sample: Sample) -> Iterator[xr.Dataset]:
        if sample.positions:
            yield level_effects(
                sample, model, order=self.order, target=self.target, progress=self.progress
            )


def _groups(sample: Sample, rule: BinRule, together: int) -> list[list[int]]:
    """Columns in groups of so many that vary, with values in the same rows; all are checked.

    Constants go with others: by themselves they would not say how many outputs there are.
    """
    if len(sample.positions) <= together:
        return [list(sample.positions)]
    by_rows: dict[bytes, list[list[int]]] = {}
    n_varying: dict[bytes, int] = {}
    for position in sample.positions:
        x = axis_values(sample.of_columns([position]), rule)
        gone = np.isnan(x)
        rows = sha256(np.packbits(gone).tobytes()).digest() if gone.any() else b""
        groups = by_rows.setdefault(rows, [[]])
        varies = bool(np.nanmin(x) < np.nanmax(x))
        if varies and n_varying.get(rows, 0) == together * len(groups):
            groups.append([])
        groups[-1].append(position)
        n_varying[rows] = n_varying.get(rows, 0) + varies
    return [group for groups in by_rows.values() for group in groups]
