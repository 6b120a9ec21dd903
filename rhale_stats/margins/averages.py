"""Averages over the rows: the prediction, its slopes, and its differences between levels."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from rhale_stats.arguments.checks import check_finite
from rhale_stats.arguments.rows import series_of_rows
from rhale_stats.arguments.survey import GroupsOrDesign, SurveyDesign, row_groups, units_text
from rhale_stats.arguments.words import listed, shown
from rhale_stats.arrays import delta, local_effects
from rhale_stats.arrays import profiles as kernel
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.arrays.survey import SamplingDesign
from rhale_stats.inference.parameters import KIND, Directions, errors, sources
from rhale_stats.margins.contrasts import (
    GRID,
    GRIDS,
    RATIOS,
    SLOPES,
    changes_of,
    check_comparison,
    compared,
    contrasts_of,
    datagrid,
    elasticity,
    text_of,
)
from rhale_stats.margins.tables import estimates, labelled_combinations
from rhale_stats.models.adapters.libraries import columns_known_of
from rhale_stats.models.adapters.statsmodels import frame_of
from rhale_stats.models.differences import DifferenceQuotients
from rhale_stats.models.options import ModelOptions
from rhale_stats.models.outputs import SCALES, ModelError
from rhale_stats.models.parametric import Fitted, PredictionScale
from rhale_stats.models.sample import Levels, Sample, columns_named, levels_beside, levels_of
from rhale_stats.models.table import Table, check_column
from rhale_stats.schema.dimensions import OUTPUT, with_outputs
from rhale_stats.schema.features import position_of
from rhale_stats.schema.kinds import AVERAGES
from rhale_stats.schema.padding import stack
from rhale_stats.schema.validation import validated
from rhale_stats.schema.variables import variable

METHOD = "averages"
PREDICTION, SLOPE, COMPARISON = "prediction", "slope", "comparison"
# Rows times versions of the model in one call, 64 MB an array.
BATCH_ANSWERS = 1 << 23
# Of changes by direction, which are differences of predictions over `STEP` themselves.
CHANGE_PRECISION = 1e-12
CENTRAL_LIMIT = "central limit theorem"


@validated
def averages(
    model: Any,
    X: Any = None,
    features: str | int | Sequence[str | int] | Mapping[Any, Any] | None = None,
    *,
    categorical: str | int | Sequence[str | int] | None = None,
    contrasts: Any = None,
    comparison: str | Callable[[Any, Any], Any] = "difference",
    by: Any = None,
    groups: GroupsOrDesign | None = None,
    uncertainty: str = "both",
    hypothesis: Any = None,
    options: ModelOptions = ModelOptions(),
    **fields: Any,
) -> xr.Dataset:
    r"""Average predictions, average slopes, and average comparisons.

    These are the numbers of Stata's ``margins``, of ``marginaleffects`` and, on a balanced grid, of
    ``emmeans``, with standard errors by the delta method. `hypotheses` compares them.

    Parameters
    ----------
    model : results of statsmodels or Parametric
        The fitted model, with the covariance of its parameters, as in `std_error`.
    X : table, array_like of shape (n_rows, n_columns), "mean" or "balanced", optional
        The rows that are averaged over: those that the model was fitted to (the default of a model
        with a formula), other ones, or a `datagrid`, whose rows are no sample: "both" is then
        "parameters". "mean" and "balanced" are such grids of the rows of the fit.
    features : name, number, sequence or mapping of them, optional
        Columns to change. By default those of the model's formula, or all columns that are not
        constant; none in an empty list. Levels and steps of a column that is constant in ``X`` are
        those of the rows of the fit. A mapping has ``contrasts``, as in ``{"age": 10}``.
    categorical : name, number, or sequence of them, optional
        Columns of numbers whose values are levels. Texts, categories and booleans are levels in any
        case, and so are the columns that the formula names as ``C(column)``.
    contrasts : str, number, pair, list or mapping, optional
        How columns are changed; a mapping has one for each of some columns. For columns of
        numbers: "slope" (the default), the elasticities "eyex", "eydx" and "dyex" of Stata's
        ``margins``, a number that is added to every value, "sd" (from half a standard deviation
        below every value to half of one above), "iqr", "minmax", a pair ``(low, high)``, or a list
        of values, at each of which all rows are predicted. For columns of levels: "reference"
        (every level with the first, the default), "sequential" (with the one before), "pairwise",
        or "levels", the average prediction with each level in all rows.
    comparison : {"difference", "ratio", "log_ratio", "odds_ratio", "log_odds_ratio"} or callable
        Of the two average predictions that are compared: of binary outcomes the average risk
        difference, risk ratio, and marginal odds ratio; or a function of the high and the low one,
        such as ``lambda high, low: high / low - 1``. Slopes stay slopes.
    by : name or number, list of names, or column of shape (n_rows,), optional
        A column of levels, of ``X`` or besides it such as the regions of `assign`, or several
        columns: averages over the rows of each level, or combination of levels.
    groups : array_like of shape (n_rows,) or SurveyDesign, optional
        Group (cluster) of every row, as in `std_error`. That the parameters are estimated from the
        same groups is part of the covariance that the model was fitted with. Or a `SurveyDesign`,
        for rows and parameters; ``weight_kind="sampling"`` is one without clusters and strata.
    uncertainty : {"both", "rows", "parameters"}
        As in `std_error`. "parameters" holds the rows fixed, which is the default of ``margins``;
        "both" is its ``vce(unconditional)``.
    hypothesis : str, list of str, or array_like, optional
        What is asked of the averages, as in `hypotheses`, whose result is returned.
    options : ModelOptions, optional
        Output and scale of the model, and weights of the rows. ``scale`` may also be "link", that
        of the model, or a function such as ``numpy.log``. Missing values are refused.

    Returns
    -------
    Dataset
        Over (term): ``average``; its standard error ``average_se`` with the parts
        ``average_se_rows`` and ``average_se_model``; ``average_df``, its degrees of freedom; and
        ``average_cov`` (term, term_other). With ``by`` all have the dimension ``by`` behind
        ``term``, and ``n_obs`` and ``weight_share`` (by) say what is averaged over. Coordinates
        over (term): ``kind`` ("prediction", "slope" or "comparison"), ``of``, the column that is
        changed, and ``contrast``: "dY/dX" of a slope, the level and its reference, the first
        level, of a comparison, such as "b / a" of a ratio; and ``null``, with which P compares: 1
        of a ratio, whose interval is symmetric on the log scale. With several outputs ``output`` is
        the first dimension, and the covariance is that of all of them, with ``output_other``.

    Raises
    ------
    TypeError
        A model whose parameters have no covariance.
    ValueError, KeyError, ModelError
        As `local_effects`; ``groups`` of another length, or one only; contrasts that do not fit a
        column; ratios of predictions that are 0, logarithms of negative ones.

    Notes
    -----
    The average slope of a column is the mean of the derivative over the rows, by central
    differences. The average comparison of a level is the mean, over all rows, of the prediction
    with the level minus the prediction with the first level. The gradients of all averages by the
    parameters are means over the same rows (math [80]). A ratio is that of the two averages, not an
    average of ratios; elasticities are averages of those of the rows, as in ``margins``.

    References
    ----------
    StataCorp (2023), *Stata base reference manual*, ``margins``. Dowd, Greene and Norton (2014),
    *Health Services Research* 49, 731-750.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import rhale_stats as rs
    >>> import statsmodels.formula.api as smf
    >>> rng = np.random.default_rng(0)
    >>> data = pd.DataFrame({"dose": rng.uniform(size=200), "arm": rng.choice(["a", "b"], 200)})
    >>> data["y"] = 2 * data["dose"] + (data["arm"] == "b") + rng.normal(size=200)
    >>> fit = smf.ols("y ~ dose + arm", data).fit()
    >>> found = rs.averages(fit, data, uncertainty="parameters")
    >>> rs.tidy(found)[["term", "contrast", "estimate", "std_error"]].round(3)
             term contrast  estimate  std_error
    0  prediction              1.584      0.070
    1        dose    dY/dX     1.892      0.235
    2         arm    b - a     0.681      0.142
    >>> steps = rs.averages(fit, data, contrasts={"dose": (0.2, 0.8), "arm": "levels"})
    >>> rs.tidy(steps)[["term", "contrast", "estimate"]].round(3)
             term   contrast  estimate
    0  prediction                1.584
    1        dose  0.8 - 0.2     1.135
    2         arm          a     1.240
    3         arm          b     1.921
    """
    check_comparison(comparison)
    if isinstance(features, Mapping):
        features, contrasts = list(features), features
    frame: Any = frame_of(model)
    is_grid = isinstance(X, str)
    if frame is None and (X is None or is_grid):
        raise TypeError("X must be a table, as in averages(model, X): the model has no rows.")
    if is_grid:
        of_model = columns_known_of(getattr(model, "results", model))
        frame = frame if of_model is None else frame.loc[:, frame.columns.isin(of_model.names)]
        X = _grid(frame, X, uncertainty, groups, options)
    X = frame if X is None else X
    if getattr(X, "attrs", {}).get(GRID) and uncertainty == "both":
        uncertainty = "parameters"
    if options.missing == "bin":
        raise ValueError("missing must be 'drop' or 'raise' for averages; got 'bin'.")
    scale, missing = options.scale, "raise" if options.missing == "raise" else None
    # Scales beyond those that models answer on are functions of the response.
    results = getattr(model, "results", model)
    other = None if scale in SCALES else PredictionScale.from_option(scale, results)
    accepted = replace(options, missing=missing, scale=scale if other is None else "response")
    sample = Sample.from_table(X, accepted)
    fitted = Fitted.from_model(model, X, uncertainty)
    if options.weight_kind == "sampling" and not isinstance(groups, SurveyDesign):
        groups = SurveyDesign(clusters=groups)
    results = getattr(fitted.model, "results", fitted.model)
    try:
        fitted, groups = fitted.with_groups(groups)
    except Exception as error:
        formula, names = columns_known_of(results), sample.table.names
        lost = [] if formula is None else [name for name in formula.names if name not in names]
        if not lost:
            raise
        raise KeyError(
            f"X must have the columns of the model's formula; got none named {listed(lost)} (it "
            f"has {listed(names)})."
        ) from error
    sample = sample.take(sample.present & sample.answerable(results)[0])
    columns = _columns(sample, frame, fitted, features, categorical, contrasts, is_grid=is_grid)
    levels = None if by is None else _levels_of_rows(sample, by)
    quotients = DifferenceQuotients(
        fitted.model.as_model, sample.table, options.output, accepted.scale
    )
    quotients = quotients.take(np.arange(1))
    quotients.at_rows()
    probe = quotients.outputs
    by_level = _ByLevel.from_sample(sample, levels, groups)
    is_survey, terms = isinstance(by_level.group, SamplingDesign), []
    for label, name in zip(probe.labels, probe.names, strict=True):
        facts = {"output_label": str(label) if name else "", "scale": scale}
        directions = Directions.from_fit(
            *(fitted, facts), frequency=sample.frequency, is_survey=is_survey
        )
        terms.append(_terms(directions, sample, columns, comparison, by_level.averaged))
    out = stack(by_level.averages(directions, terms), OUTPUT)
    out.attrs |= {"method": METHOD, **sample.facts, "n_rows": sample.table.n_rows}
    out.attrs |= fitted.model.facts()
    if other is not None:
        out.attrs["scale"] = other.name
    out = with_outputs(out, probe.labels, probe.names)
    if OUTPUT in out.dims:
        out = out.assign_coords({f"{OUTPUT}_other": (f"{OUTPUT}_other", out[OUTPUT].values)})
    if hypothesis is None:
        return out
    return labelled_combinations(
        out, estimates(out, None, None, None, None), hypothesis, None, "holm"
    )


def _grid(frame: Any, grid: str, uncertainty: str, groups: Any, options: ModelOptions) -> Any:
    """Rows of a grid of the rows of the fit, which have no sampling error, weights and groups."""
    if grid not in GRIDS:
        raise ValueError(f"X must be a table, 'mean' or 'balanced'; got {shown(grid)}.")
    for name, value in (("groups", groups), ("weights", options.weights)):
        if value is not None:
            raise ValueError(f"{name} must be left out with X={grid!r}: they are of rows.")
    if uncertainty == "rows":
        raise ValueError(f"uncertainty must be 'parameters' with X={grid!r}; got 'rows'.")
    return datagrid(frame, grid=grid)


def _levels_of_rows(sample: Sample, by: Any) -> Levels:
    """Levels of a column of the table, or of one beside it, in which rows are averaged."""
    names = sample.table.names
    if isinstance(by, str | int | np.integer):
        return levels_of(sample, position_of(by, names, "by"))
    if isinstance(by, list | tuple) and set(by) <= set(names):
        columns = [pd.Categorical(sample.table.series(names.index(name))) for name in by]
        cells = pd.MultiIndex.from_arrays(columns)
        texts = pd.Series([", ".join(map(str, cell)) for cell in cells])
        # In the order of the first column, then of the next.
        order = texts.iloc[np.lexsort([column.codes for column in reversed(columns)])].unique()
        return levels_beside(sample, ", ".join(by), pd.Series(pd.Categorical(texts, order)), False)
    whole = sample.whole
    labels = None if whole.index is None else whole.index.to_numpy()
    column = series_of_rows(by, labels, whole.n_rows, "by", "rows of X").iloc[sample.rows]
    if column.isna().any():
        raise ValueError(f"by must have a level for every row; got {column.isna().sum()} missing.")
    return levels_beside(sample, str(getattr(by, "name", None) or "by"), column, False)


# --- what is averaged -----------------------------------------------------------------------------


class _Column(NamedTuple):
    """A column to change, the numbers of its levels where it has some, and how it is changed.

    ``source`` has its levels and its spread, in the column ``place``: the rows that are averaged
    over, or those of the fit.
    """

    name: str
    position: int
    levels: Levels | None
    source: Table
    place: int
    contrast: Any = None


class _Term(NamedTuple):
    """What is averaged: its name, kind and contrast, and (row, direction + 1) of all rows.

    ``null`` is the value that says that nothing differs: 1 of a ratio.
    """

    of: str
    kind: str
    contrast: str
    values: FloatArray
    null: float = 0.0


def _columns(
    sample: Sample,
    frame: Any,
    fitted: Fitted,
    features: Any,
    categorical: Any,
    contrasts: Any,
    *,
    is_grid: bool,
) -> list[_Column]:
    """Columns to change, in the order of the table or as named."""
    table = sample.table
    formula = columns_known_of(getattr(fitted.model, "results", None))
    named = set() if categorical is None else set(columns_named(table, categorical, "categorical"))
    chosen: Any = range(len(table.names))
    if features is not None:  # none of an empty list: the prediction alone
        chosen = columns_named(table, features) if np.size(features) else []
    columns = []
    for position in chosen:
        name = table.names[position]
        has_levels = position in named or not table.is_numeric(position)
        if formula is not None and formula.discrete:  # the model has a formula
            if features is None and name not in formula.names:
                continue
            has_levels |= name in formula.levels
        rows, place = sample, position
        in_fit = (is_grid or features is not None) and name in getattr(frame, "columns", ())
        if in_fit and table.series(position).nunique() < 2:
            rows, place = Sample.from_table(frame[[name]].dropna(), ModelOptions()), 0
        if not has_levels and np.ptp(check_column(rows.table, place)) == 0:
            if features is None:
                continue
            raise ValueError(
                f"features must not be constant, as {name!r} is: it has no slope. Leave it out."
            )
        levels = levels_of(rows, place) if has_levels else None
        columns.append(_Column(name, position, levels, rows.table, place))
    has_levels_by_name = {column.name: column.levels is not None for column in columns}
    by_name = contrasts_of(contrasts, table.names, has_levels_by_name)
    return [column._replace(contrast=by_name[column.name]) for column in columns]


def _terms(
    directions: Directions,
    sample: Sample,
    columns: Sequence[_Column],
    comparison: str | Callable[[Any, Any], Any],
    averaged: Callable[[FloatArray], FloatArray],
) -> list[_Term]:
    """The prediction, and what every column does to it, with their changes by direction."""
    quotients = DifferenceQuotients(directions.changes.ask, directions.changes.table).take(
        sample.rows
    )
    width = directions.changes.n_directions + 1
    predictions, null = quotients.at_rows(), float(comparison in RATIOS)
    out = [_Term(PREDICTION, PREDICTION, "", predictions)]
    for column in columns:
        name, position, contrast = column.name, column.position, column.contrast
        if isinstance(contrast, str) and contrast in SLOPES:
            values = _slopes(quotients, column, 4 * width)
            if contrast != "slope":
                x = quotients.table.column(position)
                values = elasticity(values, predictions, x, contrast, name)
            out.append(_Term(name, SLOPE, SLOPES[contrast], values))
        elif column.levels is not None or isinstance(contrast, list):
            texts, curves = _at_values(quotients, column, width)
            if column.levels is None or contrast == "levels":
                out += [
                    _Term(name, PREDICTION, text, curves[:, number])
                    for number, text in enumerate(texts)
                ]
                continue
            numbers = range(len(texts))
            pairs: Any = {"sequential": pairwise(numbers), "pairwise": combinations(numbers, 2)}
            for low, high in pairs.get(contrast, ((0, number) for number in numbers[1:])):
                text = text_of(comparison).format(low=texts[low], high=texts[high])
                values = compared(curves[:, high], curves[:, low], comparison, averaged, name)
                out.append(_Term(name, COMPARISON, text, values, null))
        else:
            x = quotients.table.column(position)
            every = column.source.column(column.place)
            if sample.frequency and sample.weight is not None and column.source is sample.table:
                every = np.repeat(every, sample.weight.astype(np.int64))
            before, after, text = changes_of(x, contrast, every, comparison)
            answers = []
            for rows, part in _blocks(quotients, 2 * width):
                answers.append(np.stack(part.evaluate(position, [before[rows], after[rows]])[0]))
            low_values, high_values = np.concatenate(answers, axis=1).astype(np.float64)
            values = compared(high_values, low_values, comparison, averaged, name)
            out.append(_Term(name, COMPARISON, text, values, null))
    for term in out:
        check_finite(
            term.values.sum(axis=1), "Predictions", term.of, "See what the model returns there."
        )
    return out


def _at_values(
    quotients: DifferenceQuotients, column: _Column, width: int
) -> tuple[list[str], FloatArray]:
    """All rows with each level of a column, or with each of some numbers: (row, value, ...)."""
    if column.levels is None:
        values: Any = np.asarray(column.contrast, dtype=np.float64)
        texts = [f"{value:g}" for value in values]
    else:
        # As the column itself holds them.
        values = column.source.series(column.place).array[column.levels.first]
        texts = column.levels.texts
    blocks = _blocks(quotients, 4 * width * len(values))
    try:
        return texts, np.concatenate(
            [part.curves(column.position, values)[0] for _, part in blocks]
        )
    except ModelError as error:
        size = re.search(r"got (\S+)\. Take other units", str(error))
        if size is None:
            raise
        raise ModelError(
            f"With {column.name} = {' or '.join(texts)} the model predicts up to {size[1]} for "
            f"rows of another {column.name}: it extrapolates. features= leaves {column.name} out."
        ) from error


def _slopes(quotients: DifferenceQuotients, column: _Column, n_answers: int) -> FloatArray:
    """Derivatives along a column, (row, direction + 1), of parabolas through three points.

    At the ends of the column they lie on one side of the row, because splines have no values
    beyond, and a difference of two of them would have an error of the order of the step.
    """
    position, slopes = column.position, []
    x, every = quotients.table.column(position), column.source.column(column.place)
    scale = local_effects.robust_scale(every)
    step = local_effects.step_at(x, scale, max(quotients.precision, CHANGE_PRECISION))
    middle = np.clip(x, every.min() + step, every.max() - step)
    for rows, part in _blocks(quotients, n_answers):
        h, c = step[rows], middle[rows]
        outputs, stored = part.evaluate(position, [c - h, c, c + h])
        lower, middle_output, upper = (np.asarray(values, dtype=np.float64) for values in outputs)
        left, middle_stored, right = (np.asarray(values, dtype=np.float64) for values in stored)
        h = ((right - left) / 2)[:, None]
        away = ((x[rows] - middle_stored)[:, None]) / h
        slopes.append((upper - lower) / (2 * h) + away * (upper - 2 * middle_output + lower) / h)
    return np.concatenate(slopes)


def _blocks(
    quotients: DifferenceQuotients, n_answers: int
) -> Iterator[tuple[IntArray, DifferenceQuotients]]:
    """Numbers of some of the rows at a time, and the model at these; answers fit in memory."""
    n_rows = quotients.table.n_rows
    size = max(BATCH_ANSWERS // n_answers, 1)
    for part in np.array_split(np.arange(n_rows), -(-n_rows // size)):
        yield part, quotients.take(part)


# --- their means ----------------------------------------------------------------------------------


class _ByLevel(NamedTuple):
    """Rows by the level that they are averaged in, with their weights and groups."""

    sample: Sample
    name: str
    texts: list[str]
    code: IntArray
    group: IntArray | SamplingDesign | None

    @classmethod
    def from_sample(
        cls, sample: Sample, levels: Levels | None, groups: GroupsOrDesign | None
    ) -> _ByLevel:
        """Raise ``ValueError`` unless there are two groups in every level, where there are any."""
        n_rows = sample.table.n_rows
        name, texts, code = "", ["all"], np.zeros(n_rows, dtype=np.int64)
        if levels is not None:
            name, texts, code = levels.name, levels.texts, levels.code
        if groups is None:
            return cls(sample, name, texts, code, None)
        used = np.zeros(sample.whole.n_rows, dtype=bool)
        used[sample.rows] = True
        index = sample.whole.index
        labels = None if index is None else index.to_numpy()
        weights = sample.whole.weights(sample.options.weights, sample.options.weight_kind)
        group = row_groups(groups, labels, used, "groups", "rows of X", weights)
        if isinstance(group, SamplingDesign):
            if sample.frequency:
                raise ValueError(
                    "weight_kind must be 'sampling' with the design of a survey; got 'frequency'."
                )
            return cls(sample, name, texts, code, group)
        pairs = np.unique(np.column_stack([code, group]), axis=0)[:, 0]
        few = np.flatnonzero(np.bincount(pairs, minlength=len(texts)) < 2)
        if len(few) and name:
            raise ValueError(
                f"by must have rows of at least two groups in every level, as standard errors are "
                f"by groups; got 1 in {len(few):,} of the {len(texts):,} levels of {name!r}, first "
                f"in {texts[few[0]]!r}. Put levels together; pd.cut does so for numbers."
            )
        if len(few):
            raise ValueError("groups must hold at least two different groups; got 1.")
        return cls(sample, name, texts, code, group)

    def averaged(self, values: FloatArray) -> FloatArray:
        """For every row the average of the values of the rows that are averaged with it."""
        (means,) = self._means(values[:, None])
        return np.asarray(means[self.code])

    def averages(
        self, directions: Directions, terms_of_outputs: Sequence[Sequence[_Term]]
    ) -> list[xr.Dataset]:
        """Averages of every output in all levels, with their errors and one covariance of all.

        Units and parameters are the same for all outputs.
        """
        code, weight, frequency = self.code, self.sample.weight, self.sample.frequency
        n_outputs, n_levels, means, of_terms = len(terms_of_outputs), len(self.texts), [], []
        every = [term for terms in terms_of_outputs for term in terms]
        for term in every:
            values = term.values[:, -1]
            of_levels = kernel.bin_means(values, code, n_levels, weight, frequency=frequency)
            rows = (values, code, of_levels, np.zeros(n_levels), weight, self.group)
            means.append(of_levels)
            of_terms.append(delta.of_bins(*rows, frequency=frequency))
        moved = np.concatenate([term.units.moved for term in of_terms], axis=1)
        if self.group is None:
            # Levels have rows of their own; a single row in one has no variance.
            alone = np.concatenate([term.n_effective <= 1 + 1e-12 for term in means])
            moved[:, alone] = np.nan
        units = of_terms[0].units._replace(moved=moved)
        change = np.concatenate([self._means(term.values) for term in every], axis=1)
        covariances = directions.covariances(moved.T @ moved, change[:-1], units, self.sample.rows)
        degrees = directions.degrees(
            covariances, np.concatenate([term.degrees for term in of_terms])
        )
        by = ("by",) if self.name else ()
        shape = (n_outputs, len(every) // n_outputs, *[n_levels] * len(by))
        average = np.where(np.isnan(np.diagonal(covariances.model)), np.nan, change[-1])
        made = {"": average, **errors(covariances), "df": degrees}
        numbers = {end: values.reshape(shape) for end, values in made.items()}
        # The other output comes last.
        across = np.moveaxis(covariances.total.reshape(shape * 2), len(shape), -1)
        numbers["cov"] = across if n_outputs > 1 else across[..., 0]
        out = []
        for number, terms in enumerate(terms_of_outputs):
            of_output = {end: of_outputs[number] for end, of_outputs in numbers.items()}
            out.append(self._labelled(directions, terms, means[0], of_output))
            if covariances.n_equal is not None:
                n_equal = np.nanmin(
                    covariances.n_equal.reshape(n_outputs, -1)[number], initial=np.inf
                )
                out[-1].attrs["effective_units"] = float(n_equal)
        return out

    def _means(self, values: FloatArray) -> FloatArray:
        """Of every column in every level, (column, level)."""
        weight = np.ones(len(values)) if self.sample.weight is None else self.sample.weight
        total = delta.summed(weight, self.code)
        return np.asarray((delta.summed(weight[:, None] * values, self.code) / total[:, None]).T)

    def _labelled(
        self,
        directions: Directions,
        terms: Sequence[_Term],
        means: kernel.BinMeans,
        numbers: dict[str, FloatArray],
    ) -> xr.Dataset:
        by = ("by",) if self.name else ()
        inner = ("term", *by)
        texts = sources(directions, units_text(self.group))
        kind = CENTRAL_LIMIT if directions.uncertainty == "rows" else KIND
        data = {"average": variable("average", numbers.pop(""), AVERAGES, inner)}
        for end, values in numbers.items():
            others = [f"{dim}_other" for dim in (*inner, OUTPUT)][: values.ndim - len(inner)]
            about = {"source": texts[end], "target": "average", "kind": kind}
            name, dims = f"average_{end}", (*inner, *others)
            data[name] = variable(name, values, AVERAGES, dims, **about)
        for name, rows_of_levels in (
            ("n_obs", means.n_obs.astype(np.int64)),
            ("weight_share", means.share),
        ):
            data[name] = variable(name, rows_of_levels if by else rows_of_levels[0], AVERAGES, by)
        coords: dict[str, Any] = {
            name: ("term", np.array([getattr(term, name) for term in terms]))
            for name in ("kind", "of", "contrast", "null")
        }
        names = [
            term.of if term.kind == SLOPE or not term.contrast else f"{term.of}: {term.contrast}"
            for term in terms
        ]
        coords["term"] = ("term", np.array(names))
        coords["term_other"] = ("term_other", coords["term"][1])
        if by:
            coords["by"] = ("by", np.array(self.texts), {"long_name": self.name})
            coords["by_other"] = ("by_other", np.array(self.texts))
        facts: dict[str, Any] = {"by": self.name, "parameters": directions.how}
        if isinstance(self.group, SamplingDesign):
            facts["n_groups"] = self.group.n_clusters
        elif self.group is not None:
            facts["n_groups"] = int(self.group.max()) + 1
        return xr.Dataset(data, coords, facts)
