"""`outcome_effects`: effects on the expected outcome, with intervals that hold the learner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from rhale_stats.arguments.checks import check_count
from rhale_stats.arguments.seeds import source_of
from rhale_stats.arguments.words import warn
from rhale_stats.arrays import intervals
from rhale_stats.arrays.answers import inner_range
from rhale_stats.arrays.cell_moments import FIELDS
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.bins.description import has_fact
from rhale_stats.bins.rule import BinRule, check_rule
from rhale_stats.bins.rules import GivenBins
from rhale_stats.effects.ale import ale_from_local
from rhale_stats.inference.estimate import student
from rhale_stats.local.ale import ale_local_effects
from rhale_stats.local.rows import difference_edges
from rhale_stats.models.adapters.libraries import columns_known_of
from rhale_stats.models.forms import n_rows_of
from rhale_stats.models.options import ModelOptions
from rhale_stats.models.sample import Sample, columns_and_levels, levels_of
from rhale_stats.models.table import check_column
from rhale_stats.outcome.cross_fitting import (
    CrossFits,
    cross_fit,
    groups_and_outcome,
    name_of_outcome,
)
from rhale_stats.outcome.debiasing import (
    Entries,
    FoldAnswers,
    debiased,
    dictionary_of,
    effective_rows,
    entries_of,
    functions_of,
)
from rhale_stats.schema.curves import interpolation
from rhale_stats.schema.dimensions import LEFT
from rhale_stats.schema.feature_result import FeatureResult, one_feature
from rhale_stats.schema.features import feature_names
from rhale_stats.schema.in_bins import at_bin_edges
from rhale_stats.schema.levels import NOMINAL
from rhale_stats.schema.padding import padded
from rhale_stats.schema.validation import validated
from rhale_stats.schema.variables import variable

# Rows of a bin, bins of a feature, and the shares of rows below the two usual values.
BIN_ROWS, MIN_BINS, MAX_BINS = 100, 4, 8
USUAL = (10, 90)
# Where the bins begin and end, in per cent of the rows.
ENDS = (1, 99)
# A level, or a bin, with fewer rows is said to be thin; the other columns of products, at most.
THIN, MAX_PRODUCTS = 10, 12
UNKNOWN = ("heterogeneity", "heterogeneity_output")
SOURCE, TARGET = "rows and refits of the learner", "effect on the expected outcome"
# Of the interval of the usual difference.
LEVEL = 0.95


@validated
def outcome_effects(
    fit: Any,
    X: Any,
    y: ArrayLike,
    features: str | int | Sequence[str | int] | None = None,
    *,
    bins: BinRule | int | None = None,
    n_folds: int = 5,
    n_repeats: int = 2,
    groups: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    weight_kind: str = "precision",
    output: Any = None,
    rng: np.random.Generator | int | None = None,
    n_jobs: int | None = None,
    progress: bool = True,
) -> xr.Dataset:
    r"""Effects on the expected outcome E[y | x]: what is in the data, not only in a model.

    The learner is fitted without each fold of the rows. What it leaves of the outcome in the fold
    corrects its effects there (math [114]). Intervals and tests hold the sampling of rows and the
    variance of the learner; its bias is removed to first order.

    Parameters
    ----------
    fit : estimator, str, statsmodels results, or callable
        What is fitted: an estimator with ``fit`` and ``predict`` (it is cloned, so it may be
        fitted already), a formula (least squares, or a logit where ``y`` is 0 and 1), results of
        statsmodels, or a function of ``X`` and ``y`` that returns a model.
    X : table, or array_like of shape (n_rows, n_columns)
        The columns that the learner gets, as in `ale`.
    y : array_like of shape (n_rows,)
        Outcomes of the rows: numbers, or classes of a classifier, whose probability is taken.
    features : name, number, or sequence of them, optional
        By default all columns but constants and identifiers.
    bins : int or bin rule, optional
        Of features with an axis. By default 4 to 8 bins, by the number of rows: the lowest and the
        highest tenth of the rows and between them equal numbers. They begin and end where 1 % of
        the rows, by weight, are farther out; so do those of a number. These rows are left out of
        the effect of the feature, and counted. Bins of a rule are taken as they are. Rules that
        search by local effects are refused: their edges would be chosen by a learner.
    n_folds, n_repeats : int, default 5 and 2
        Folds of a division of the rows, and number of random divisions. The learner is fitted
        ``n_folds * n_repeats`` times.
    groups : array_like of shape (n_rows,), optional
        Groups of rows that depend on each other. Whole groups are in one fold, and errors are by
        groups.
    weights : array_like of shape (n_rows,), optional
        Row weights of the effects, and of the fit where the learner takes them.
    weight_kind : {"precision", "frequency", "sampling"}, default "precision"
        As in `ModelOptions`. Rows that "frequency" repeats are in one fold, and independent.
    output : label, optional
        The class whose probability is taken; by default the second of two.
    rng : Generator, int or None
        Source of random numbers, or its seed, which the attribute ``seed`` keeps. It also seeds
        learners whose random state is not set.
    n_jobs : int or None, default None
        Processes for the fits, as joblib counts them; None for this process alone.
    %(progress)s

    Returns
    -------
    Dataset
        Effects in bins as `ale` returns them, with ``effect`` (feature, bin), ``curve`` (feature,
        edge), their errors and covariances, for `confint`, `confband`, `wald_test`, `compare`,
        `summary`, plots and the others; heterogeneity is not estimated (NaN). Also
        ``usual_difference`` (feature), the change of the outcome between ``usual_low`` and
        ``usual_high``, below which 10 % and 90 % of the rows are, with ``usual_difference_se``,
        ``usual_difference_ci`` and ``usual_difference_pvalue``; ``largest_weight``, the largest
        share of a row in the correction of a bin, ``half_share``, the least share of rows that
        carry half of a correction, and ``n_beyond``, the number of rows beyond the bins.
        Attributes: ``target="outcome"``, ``learner``, ``n_folds``, ``n_repeats``, ``seed``.

    Raises
    ------
    TypeError
        ``fit`` cannot be fitted again.
    ValueError
        More folds than rows, a rule that searches, outcomes that are missing, several outputs.

    Warns
    -----
    UserWarning
        Levels or bins with fewer than 10 rows; corrections that few rows carry; rows that are left
        out, because the learner predicts no number for them.

    Notes
    -----
    For a bin from :math:`z_{k-1}` to :math:`z_k` of feature j, with :math:`m(x) = E[y \mid x]`,
    the effect is the mean over its rows of :math:`(m(z_k, x_{-j}) - m(z_{k-1}, x_{-j})) / (z_k -
    z_{k-1})`; of levels the mean step between neighbours over the rows of both. Assumptions: rows,
    or groups, are independent; every bin has rows with the values of the other columns that occur
    (overlap); and of learner and dictionary one is near the truth, or both are rather near. Causes
    that are no columns are not corrected for. The bins do not reach to the most distant rows, where
    no learner knows the outcome: with thousands of rows intervals of bins that do cover too seldom
    (page "validity"). The curve is centred over the rows of the bins.

    References
    ----------
    Chernozhukov, Newey and Singh (2022), *Econometrica* 90, 967-1027. Klyne and Shah (2023),
    arXiv 2308.09207. Nadeau and Bengio (2003), *Machine Learning* 52, 239-281.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import rhale_stats as rs
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame(rng.normal(size=(600, 2)), columns=["a", "b"])
    >>> y = X["a"] + rng.normal(size=600)
    >>> effect = rs.outcome_effects("a + b", X, y, rng=0)
    >>> rs.wald_test(effect)["p_value"].round(3).values
    array([0.   , 0.018])
    """
    generator, seed = source_of(rng)
    if isinstance(bins, int | np.integer):
        check_count("bins", bins, 1)
    elif bins is not None:
        check_rule(bins)
        if has_fact(bins, "joins_cells"):
            raise ValueError(
                f"bins must be a number or a rule that does not search; got {type(bins).__name__}, "
                f"which would choose edges by the effects of one learner."
            )
    options = ModelOptions(output=output, weights=weights, weight_kind=weight_kind, missing="drop")
    sample = Sample.from_table(X, options)
    sample = sample if sample.present.all() else sample.take(sample.present)
    outcome, codes = groups_and_outcome(sample, y, groups)
    fits = cross_fit(
        fit,
        sample,
        outcome,
        n_folds=n_folds,
        n_repeats=n_repeats,
        groups=codes,
        rng=generator,
        n_jobs=n_jobs,
        progress=progress,
    )
    table = sample.table
    model_columns = columns_known_of(fits.models[0][0], table.names)
    chosen, levels = columns_and_levels(table, features, None, model_columns, constants=False)
    if features is None:
        levels += [p for p in chosen if p not in levels and table.is_discrete(p)]
    effect = effects_of(fits, chosen, levels, bins).assign_attrs(seed=seed)
    name = name_of_outcome(y, table.names)
    if fits.kind == "class" and fits.label:
        effect.attrs |= {"output_label": fits.label, "output_name": f"probability of {fits.label}"}
    elif name and effect.attrs["output_name"] == "output":
        effect.attrs["output_name"] = name
    return effect


def effects_of(
    fits: CrossFits, chosen: list[int], levels: list[int], bins: BinRule | int | None = None
) -> xr.Dataset:
    """`outcome_effects` of models that are fitted; columns and levels by their positions."""
    fits = fits.predicted()
    places = _places(fits, chosen, levels, bins)
    sample = fits.sample
    n_effective = effective_rows(sample.share, sample.multiplicity)
    functions = functions_of(fits.columns, n_effective)
    estimates = [_variables(fits, place, functions, n_effective) for place in places]
    _warn(places, estimates)
    effect = _template(fits, places)
    learner = {
        "target": "outcome",
        "learner": fits.learner,
        "n_folds": fits.n_folds,
        "n_repeats": len(fits.models),
        # Their edges are coordinates.
        "bin_rule": "by the number of rows" if bins is None else type(bins).__name__,
        "bin_parameters": "",
    }
    n_units = int(sample.multiplicity.sum() if fits.groups is None else fits.groups.max() + 1)
    return _labelled(effect, places, estimates).assign_attrs(n_groups=n_units, **learner)


class Place(NamedTuple):
    """Where the rows are along one feature."""

    name: str
    position: int
    kind: str
    entries: Entries
    # Values that the model gets at the edges.
    values: Any


def _places(
    fits: CrossFits, chosen: list[int], levels: list[int], bins: BinRule | int | None
) -> list[Place]:
    """The features with their bins or levels."""
    sample, table = fits.sample, fits.sample.table
    out = []
    for position in chosen:
        name = table.names[position]
        if position in levels:
            feature_levels = levels_of(sample, position)
            code = np.where(feature_levels.code >= 0, feature_levels.code, np.nan)
            edges = np.arange(float(len(feature_levels.texts)))
            values = table.series(position).array.take(feature_levels.first)
            kind = feature_levels.kind
        else:
            code = np.asarray(check_column(table, position, missing="drop"), dtype=np.float64)
            edges = _edges(fits, name, code, bins)
            values = table.whole(position, edges)
            kind = "continuous"
        if len(edges) < 2:
            continue
        entries = entries_of(code, edges, levels=position in levels)
        out.append(Place(name, position, kind, entries, values))
    if not out:
        raise ValueError("features must name a column with more than one value; got none.")
    return out


def _edges(fits: CrossFits, name: str, x: FloatArray, bins: BinRule | int | None) -> FloatArray:
    """Edges of the bins: values of rows, the outer bins with about a tenth of the rows each.

    They begin and end where only a hundredth of the rows is farther out. No learner knows the
    outcome at the most distant row.
    """
    finite, weight = np.isfinite(x), fits.sample.share
    if bins is not None and not isinstance(bins, int | np.integer):
        edges = difference_edges(bins, name, x[finite], fits.sample.weight_at(finite))
        if len(edges) - 1 > MAX_BINS * 5:
            warn(f"bins gives {len(edges) - 1} bins of {name!r}: tests have power with few.")
        return np.asarray(edges)
    first, last = np.array(ENDS) / 100
    if bins is None:
        n_effective = effective_rows(weight[finite], fits.sample.multiplicity[finite])
        n_bins = int(np.clip(n_effective // BIN_ROWS, MIN_BINS, MAX_BINS))
        inner = np.linspace(USUAL[0] / 100, USUAL[1] / 100, max(n_bins - 1, 2))
        shares = np.r_[first, inner, last]
    else:
        n_bins = int(bins)
        shares = np.linspace(first, last, n_bins + 1)
    values = np.unique(x[finite])
    if len(values) <= n_bins + 1:
        return values
    how: dict[str, Any] = {"weights": weight[finite], "method": "inverted_cdf"}
    edges = np.unique(np.quantile(x[finite], shares * (1 - 1e-12), **how))
    return edges if len(edges) > 1 else values[[0, -1]]


def _answers(fits: CrossFits, place: Place, repeat: int) -> FoldAnswers:
    """Changes per unit at all entries by the model of the row's fold and by that of the next."""
    fold, entries = fits.folds[repeat], place.entries
    width = entries.width[entries.bin]
    # The first edge of every row; one on an edge is in two bins, and asks for three.
    first = np.full(len(fold), entries.n_bins)
    np.minimum.at(first, entries.row, entries.bin)
    first[first == entries.n_bins] = 0
    edge = entries.bin - first[entries.row]
    n_edges = 2 + int(edge.max(initial=0))
    change, other = np.empty(len(entries.row)), np.empty(len(entries.row))
    for number, (rows, model) in enumerate(fits.models_at_rows[repeat]):
        edges = [np.minimum(first[rows] + k, entries.n_bins) for k in range(n_edges)]
        answers = model.evaluate(place.position, [place.values.take(some) for some in edges])[0]
        outputs = np.full((n_edges, len(fold)), np.nan)
        outputs[:, rows] = [answer[:, 0] for answer in answers]
        for held_out_fold, out in ((number, change), ((number - 1) % fits.n_folds, other)):
            of_fold = np.flatnonzero(fold[entries.row] == held_out_fold)
            low, high = (outputs[edge[of_fold] + k, entries.row[of_fold]] for k in (0, 1))
            out[of_fold] = (high - low) / width[of_fold]
    held_out, by_other = fits.held_out[repeat], fits.other[repeat]
    return FoldAnswers(fold, change, other, fits.observed - held_out, fits.observed - by_other)


def _variables(
    fits: CrossFits,
    place: Place,
    functions: dict[str, tuple[FloatArray, FloatArray]],
    n_effective: float,
) -> dict[str, Any]:
    """Effects, curve, their errors, tests and overlap of one feature, by variable.

    ``functions`` are of every column those of the dictionary, and those for products.
    """
    entries, share, n_bins = place.entries, fits.sample.share, place.entries.n_bins
    counts = fits.sample.multiplicity
    others = [pair for name, pair in functions.items() if name != place.name]
    products = [product for _, product in others[:MAX_PRODUCTS]]
    dictionary = dictionary_of(entries, [alone for alone, _ in others], products, n_effective)
    answers = [_answers(fits, place, repeat) for repeat in range(len(fits.models))]
    estimate = debiased(entries, dictionary, answers, share, counts, fits.groups)
    n_units = counts.sum() if fits.groups is None else len(estimate.influence)
    degrees, factor = float(n_units - 1), n_units / max(n_units - 1, 1)
    # By the sampling of rows or groups.
    rows = estimate.influence.T @ estimate.influence * factor
    effect_cov = _with_learner(rows, estimate.learner_variance(np.eye(n_bins)))
    # The curve at an edge: sums of effect times width, less the mean over the rows.
    start = np.tri(n_bins + 1, n_bins, -1) * entries.width
    inside = entries.inside
    weight = np.where(inside, share, 0.0) / share[inside].sum()
    position = np.where(inside, entries.x, entries.edges[0])
    reached = np.clip(position[:, None] - entries.edges[:-1], 0, entries.width)
    centre = weight @ reached
    loadings = start - centre
    at_rows = reached @ estimate.effect
    moved = weight * (at_rows - weight @ at_rows)
    groups = fits.groups
    moved = moved / np.sqrt(counts) if groups is None else np.bincount(groups, moved)
    of_curve = estimate.influence @ loadings.T - moved[:, None]
    curve_cov = _with_learner(of_curve.T @ of_curve * factor, estimate.learner_variance(loadings))
    start_cov = _with_learner(start @ rows @ start.T, estimate.learner_variance(start))
    part = np.bincount(entries.bin, entries.weight * share[entries.row], n_bins)
    # Of two levels both.
    two_levels = entries.levels and n_bins == 1
    low, high = (0.0, 1.0) if two_levels else inner_range(entries.x, share, USUAL)
    at_low, at_high = interpolation(entries.edges, np.array([low, high]))
    # The average effect, and the difference between the usual values.
    sums = np.stack([part / part.sum(), start.T @ (at_high - at_low)])
    average, difference = (sums @ estimate.effect).tolist()
    variances = np.einsum("fk,kl,fl->f", sums, rows, sums) + estimate.learner_variance(sums)
    average_error, error = np.sqrt(variances).tolist()
    ordered = place.kind != NOMINAL or n_bins == 1
    half = intervals.student(LEVEL, degrees) * error
    weights_of_rows = np.abs(share[:, None] * estimate.representer)
    sizes = np.sort(weights_of_rows / np.maximum(weights_of_rows.sum(axis=0), 1e-300), axis=0)[::-1]
    carriers = (np.cumsum(sizes, axis=0) < 0.5).sum(axis=0) + 1
    usual: dict[str, Any] = {
        "usual_low": low,
        "usual_high": high,
        "usual_difference": difference,
        "usual_difference_se": error,
        "usual_difference_ci": np.array([difference - half, difference + half]),
        "usual_difference_pvalue": student(sums[1] @ estimate.effect, error, degrees)["p_value"],
    }
    return {
        "effect": estimate.effect,
        "effect_se": np.sqrt(np.diagonal(effect_cov)),
        "effect_df": np.full(n_bins, degrees),
        "effect_overlap": np.full((n_bins, n_bins), 1 / degrees),
        "heterogeneity_se": np.full(n_bins, np.nan),
        "heterogeneity_df": np.full(n_bins, np.nan),
        "effect_cov": effect_cov,
        "curve": loadings @ estimate.effect,
        "curve_se": np.sqrt(np.diagonal(curve_cov)),
        "curve_se_start": np.sqrt(np.diagonal(start_cov)),
        "curve_df": np.full(n_bins + 1, degrees),
        "curve_cov": curve_cov,
        "average_effect": average,
        "average_effect_se": average_error,
        "average_effect_df": degrees,
        **(usual if ordered else {name: usual[name] * np.nan for name in usual}),
        "largest_weight": float(sizes[0].max()),
        "half_share": float(carriers.min() / len(share)),
    }


def _with_learner(rows: FloatArray, learner: FloatArray) -> FloatArray:
    """A covariance whose variances are raised by those of the learner; correlations stay."""
    variance = np.diagonal(rows)
    with np.errstate(invalid="ignore", divide="ignore"):
        scale = np.where(variance > 0, np.sqrt(1 + learner / variance), 1.0)
    return np.asarray(rows * np.outer(scale, scale))


def _warn(places: list[Place], estimates: list[dict[str, Any]]) -> None:
    """Say where few rows carry a correction, and which bins and levels are thin."""
    thin = []
    for name, _, _, entries, _ in places:
        code = entries.x[np.isfinite(entries.x)].astype(int) if entries.levels else entries.bin
        if np.bincount(code, minlength=entries.n_bins + entries.levels).min() < THIN:
            thin.append(name)
    if thin:
        warn(
            f"Bins or levels with fewer than {THIN} rows, whose intervals may be too short: "
            f"{', '.join(thin)}. Merge levels, or take fewer bins."
        )
    few = [
        f"{place.name} ({100 * estimate['half_share']:.1f} % of the rows)"
        for place, estimate in zip(places, estimates, strict=True)
        if estimate["half_share"] < 0.02
    ]
    if few:
        warn(
            f"Few rows carry half of the correction of a bin: {', '.join(few)}. The other columns "
            f"nearly determine these features there; their intervals rest on these rows."
        )


# --- the result -----------------------------------------------------------------------------------


def _template(fits: CrossFits, places: list[Place]) -> xr.Dataset:
    """Effects of nothing on the same bins: all that a result says of rows, bins and levels."""
    levels = [place.name for place in places if place.entries.levels]
    edges = {place.name: place.entries.edges for place in places if not place.entries.levels}
    table = fits.sample.table
    options = replace(fits.sample.options, output=None, weights=fits.sample.weight)
    # The default order of levels is by similarity, which needs no order here.
    ordered: dict[str, Any] = {"categorical": levels, "order": "as_is"} if levels else {}
    local = ale_local_effects(
        lambda rows: np.zeros(n_rows_of(rows)),  # a model without effects
        table.form.as_given(table.copied()),
        features=[place.name for place in places],
        options=options,
        progress=False,
        **ordered,
    )
    of_nothing = [name for name in local.data_vars if str(name).startswith("missing_")]
    local = local.drop_vars([LEFT, "cell_value", *of_nothing], errors="ignore")
    # Rows beyond the bins are left out of their feature, as those without a value are.
    effect = ale_from_local(local, bins=GivenBins(edges) if edges else None)
    none = variable("n_beyond", np.zeros(effect.sizes["feature"], dtype=np.int64))
    effect = effect.assign(n_beyond=effect.get("n_beyond", none)).assign_attrs(n_rows=table.n_rows)
    no_gaps = "n_missing" in effect and not effect["n_missing"].any()
    return effect.drop_vars("n_missing") if no_gaps else effect


OWN = {
    "usual_low": (("feature",), "value below which 10 % of the rows are", "units of x"),
    "usual_high": (("feature",), "value below which 90 % of the rows are", "units of x"),
    "usual_difference": (("feature",), "change of the outcome between them", "output units"),
    "usual_difference_se": (("feature",), "its standard error", "output units"),
    "usual_difference_ci": (("feature", "ci_bound"), "its 95 % interval", "output units"),
    "usual_difference_pvalue": (("feature",), "P of no such change", "1"),
    "largest_weight": (("feature",), "largest share of a row in a bin's correction", "1"),
    "half_share": (("feature",), "least share of rows with half of a bin's correction", "1"),
}


def _moments(row: FeatureResult) -> FloatArray:
    """Moments of one feature in its bins, (bin, moment): of local effects nothing is known."""
    table = row.moments.pooled(row.bin_starts).table.T.copy()
    table[:, [name.endswith(("g1", "g2", "g3", "g4")) for name in FIELDS]] = np.nan
    return table


def _labelled(
    effect: xr.Dataset, places: list[Place], estimates: list[dict[str, Any]]
) -> xr.Dataset:
    """The template with the estimates."""
    moments = [_moments(one_feature(effect, name)) for name in feature_names(effect)]
    effect = at_bin_edges(effect)
    about = {"long_name": "sum or mean"}
    table = padded(moments, (effect.sizes["edge"], len(FIELDS)))
    effect = effect.assign(moments=variable("moments", table)).assign_coords(
        moment=("moment", list(FIELDS), about)
    )
    for name in UNKNOWN:
        if name in effect:
            effect[name] = effect[name].astype(np.float64) * np.nan
    order = [str(name) for name in effect["feature"].values]
    by_name = dict(zip([place.name for place in places], estimates, strict=True))
    effect = effect.assign_coords(ci_bound=["lower", "upper"])
    for name in next(iter(by_name.values())):
        facts: dict[str, Any] = {}
        if name in OWN:
            dims, facts["long_name"], facts["units"] = OWN[name]
            if name.endswith("_ci"):
                facts |= {"ci_prob": LEVEL, "kind": "pointwise", "method": "standard errors"}
                facts["source"] = SOURCE
        else:
            about = {"source": SOURCE, "target": TARGET} if name.endswith("_se") else {}
            dims, _, facts = variable(name, np.nan, **about)
        shape = [effect.sizes[dim.removesuffix("_other")] for dim in dims[1:]]
        effect[name] = (dims, padded([by_name[feature][name] for feature in order], shape), facts)
    return effect.assign_attrs(weighting="rows")
