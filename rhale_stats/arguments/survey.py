"""The design of a survey as an argument: clusters, strata, sampling fractions, replicates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from rhale_stats.arguments.checks import COLUMN, check_column, listed_or
from rhale_stats.arguments.peers import other_value
from rhale_stats.arguments.rows import as_numbers, of_rows, row_codes
from rhale_stats.arguments.words import first_rows, shown
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.arrays.survey import SamplingDesign

# Factor of the squared deviations of R replicates.
SCALES = {
    "bootstrap": lambda n: 1 / (n - 1),
    "jackknife": lambda n: (n - 1) / n,
    "brr": lambda n: 1 / n,
    "successive": lambda n: 4 / n,
}


@dataclass(frozen=True, eq=False)
class SurveyDesign:
    """How the rows were drawn, for ``groups=`` of `averages`, `std_error` and what takes them.

    Standard errors are those of R's ``survey`` and of Stata's ``svy``: linearised, of clusters
    within strata, or by replicate weights (math [117]). The weights of the rows are ``weights=`` of
    the function that made the estimates.

    Parameters
    ----------
    clusters : array_like of shape (n_rows,), optional
        Primary sampling unit of every row. By default every row is one. Equal labels in two strata
        are two clusters. Later stages of sampling are part of the variation between clusters.
    strata : array_like of shape (n_rows,), optional
        Stratum of every row, with at least two clusters each.
    fpc : number, or array_like of shape (n_rows,), optional
        Finite population correction: the number of clusters in the population of the row's stratum,
        or, not above 1, the share of them that was drawn.
    replicates : array_like of shape (n_rows, n_replicates), optional
        Replicate weights, in place of clusters, strata and fpc.
    scale : {"jackknife", "bootstrap", "brr", "successive"}, number, or array_like, optional
        With ``replicates``: the factor of the squared deviations from their mean, or one for each.
        Of R replicates "jackknife" (the default) is (R - 1)/R, "bootstrap" 1/(R - 1), "brr" 1/R,
        and "successive" (differences, as in the American Community Survey) 4/R. Fay's factor k
        makes it 1/(R (1 - k)^2).

    Raises
    ------
    TypeError, ValueError
        Numbers that are none; ``replicates`` beside the others; a stratum of one cluster; fewer
        clusters in the population than in the sample.

    Notes
    -----
    An estimate of a part of the rows, as with ``by=``, has the clusters of all rows ("subpop"):
    leave none out. Degrees of freedom are clusters less strata, or the rank of the replicate
    weights less 1. Parameters of a model enter by the influences of the rows of the fit, which
    ``X`` must hold: one step of a refit with replicate weights.

    References
    ----------
    Binder (1983), *International Statistical Review* 51, 279-292. Lumley (2010), *Complex surveys*.

    Examples
    --------
    >>> import pandas as pd
    >>> import rhale_stats as rs
    >>> import statsmodels.formula.api as smf
    >>> data = pd.DataFrame({"y": [1.0, 3, 2, 6, 7, 9], "stratum": list("aaabbb")})
    >>> fit = smf.ols("y ~ stratum", data).fit()
    >>> design = rs.SurveyDesign(strata=data["stratum"], fpc=[30] * 3 + [60] * 3)
    >>> result = rs.averages(fit, data, groups=design)
    >>> rs.tidy(result)[["term", "estimate", "std_error"]].round(3)[:1]
             term  estimate  std_error
    0  prediction     4.667       0.51
    """

    clusters: ArrayLike | None = None
    strata: ArrayLike | None = None
    fpc: ArrayLike | None = None
    replicates: ArrayLike | None = None
    scale: Any = None

    def __post_init__(self) -> None:
        for name in ("clusters", "strata"):
            if getattr(self, name) is not None:
                check_column(name, getattr(self, name))
        beside = [name for name in ("clusters", "strata", "fpc") if getattr(self, name) is not None]
        if self.replicates is not None and beside:
            raise ValueError(
                f"{beside[0]} must be left out with replicates, which hold the design."
            )
        if self.replicates is None and self.scale is not None:
            raise ValueError("scale must be left out without replicates, whose squares it scales.")

    def sampling(
        self,
        labels: NDArray[Any] | None,
        n_rows: int,
        weight: FloatArray | None,
        rows: str = "rows of X",
    ) -> SamplingDesign:
        """The design of all rows of a table, which have these ``labels``."""
        if self.replicates is not None:
            return self._replicated(n_rows, weight, rows)
        used = np.ones(n_rows, dtype=bool)
        number = np.arange(n_rows)
        columns = {"strata": np.zeros(n_rows, dtype=np.int64), "clusters": number}
        for name in columns:
            if getattr(self, name) is not None:
                columns[name] = row_codes(getattr(self, name), labels, used, name, rows)
        pairs = np.column_stack([columns["strata"], columns["clusters"]])
        unique, first, cluster = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
        stratum = unique[:, 0]
        rest = 1 - self._fractions(labels, n_rows, columns["strata"], stratum, rows)[first]
        alone = (np.bincount(stratum) == 1)[stratum] & (rest > 0)
        if alone.any():
            where = f" of row {first[np.argmax(alone)]}" if self.strata is not None else ""
            raise ValueError(
                f"groups must have two clusters or more in every stratum; got 1 in that{where}. "
                f"Join it with a similar stratum, or give fpc 1 where all were drawn."
            )
        return SamplingDesign.linearised(cluster.ravel(), stratum, rest)

    def _fractions(
        self,
        labels: NDArray[Any] | None,
        n_rows: int,
        strata: IntArray,
        stratum: IntArray,
        rows: str,
    ) -> FloatArray:
        """Sampling fraction of every row."""
        if self.fpc is None:
            return np.zeros(n_rows)
        column = self.fpc if np.ndim(self.fpc) else np.full(n_rows, self.fpc)
        fpc = as_numbers(of_rows(column, labels, n_rows, "fpc", rows), "fpc")
        n_clusters = np.bincount(stratum)[strata].astype(np.float64)
        fraction = np.divide(n_clusters, fpc, out=fpc.copy(), where=fpc > 1)
        bad = ~((fpc > 0) & (fraction <= 1))
        if bad.any():
            raise ValueError(
                f"fpc must be a share between 0 and 1, or a number of clusters not below that of "
                f"the sample; got {fpc[bad][0]:g} for {n_clusters[bad][0]:g} clusters (first rows: "
                f"{first_rows(bad)})."
            )
        each = pd.Series(fraction).groupby(strata)
        if (each.max() > each.min()).any():
            raise ValueError("fpc must be one number in every stratum; got several in one.")
        return fraction

    def _replicated(self, n_rows: int, weight: FloatArray | None, rows: str) -> SamplingDesign:
        values = as_numbers(self.replicates, "replicates")
        if values.ndim != 2 or len(values) != n_rows or values.shape[1] < 2:
            raise ValueError(
                f"replicates must have shape (n_rows, n_replicates), with {n_rows} {rows} and two "
                f"replicates or more; got {values.shape}."
            )
        if not (np.isfinite(values).all() and (values >= 0).all()):
            raise ValueError("replicates must be finite and not negative.")
        n, scale = values.shape[1], "jackknife" if self.scale is None else self.scale
        if isinstance(scale, str):
            if scale not in SCALES:
                raise ValueError(
                    f"scale must be one of {', '.join(map(repr, SCALES))}, or numbers; got "
                    f"{shown(scale)}.{other_value(scale, list(SCALES))}"
                )
            scale = SCALES[scale](n)
        factor = as_numbers(scale, "scale")
        if factor.shape not in ((), (n,)) or not (
            np.isfinite(factor).all() and (factor >= 0).all()
        ):
            raise ValueError(
                f"scale must be a number that is not negative, or one for each of {n} replicates; "
                f"got {shown(self.scale)}."
            )
        base = np.ones(n_rows) if weight is None else weight
        relative = np.divide(
            values, base[:, None], out=np.zeros_like(values), where=base[:, None] > 0
        )
        return SamplingDesign.replicated(relative, np.broadcast_to(factor, n).copy())


@dataclass(frozen=True, eq=False, kw_only=True)
class PartOfDesign(SurveyDesign):
    """The design of a table for some of its rows, as ``by=`` divides them: all clusters count."""

    whole: SurveyDesign
    labels: NDArray[Any] | None
    n_rows: int
    used: IntArray

    def sampling(
        self,
        labels: NDArray[Any] | None,
        n_rows: int,
        weight: FloatArray | None,
        rows: str = "rows of X",
    ) -> SamplingDesign:
        """The design of all rows of the table, of which estimates have the used ones."""
        del labels, n_rows  # of these rows alone
        every = np.ones(self.n_rows)
        if weight is not None:
            every[self.used] = weight
        return self.whole.sampling(self.labels, self.n_rows, every, rows).take(self.used)


GroupsOrDesign: TypeAlias = ArrayLike | SurveyDesign


def of_some_rows(
    values: Any, labels: Any, n_rows: int, parameter: str, rows_of: str, rows: IntArray
) -> Any:
    """What is said of some rows, by their numbers: a column of groups or weights, or a design."""
    if isinstance(values, SurveyDesign):
        return PartOfDesign(whole=values, labels=labels, n_rows=n_rows, used=rows)
    return np.asarray(of_rows(values, labels, n_rows, parameter, rows_of))[rows]


def row_groups(
    groups: Any,
    labels: NDArray[Any] | None,
    used: NDArray[np.bool_],
    parameter: str,
    rows: str = "rows of local",
    weight: FloatArray | None = None,
) -> IntArray | SamplingDesign:
    """Groups of the rows in use as `row_codes` has them, or the design of a survey."""
    if isinstance(groups, SurveyDesign):
        return groups.sampling(labels, len(used), weight, rows).take(used)
    return row_codes(groups, labels, used, parameter, rows)


def design_text(design: SamplingDesign) -> str:
    """The source of a standard error by the design, in words."""
    if design.replicates is not None:
        return f"rows, by {len(design.factor)} replicate weights"
    n_strata = int(design.stratum.max()) + 1
    strata = f" of {n_strata} strata" if n_strata > 1 else ""
    return f"rows in {design.n_clusters} clusters{strata}"


def units_text(group: IntArray | SamplingDesign | None) -> str:
    """What varies in a standard error: rows, their groups, or the units of a design, in words."""
    if isinstance(group, SamplingDesign):
        return design_text(group)
    return "rows" if group is None else f"rows in {int(group.max(initial=-1)) + 1} groups"


check_groups = listed_or(COLUMN, lambda value: isinstance(value, SurveyDesign))
