"""Which effects of an explanation are in the data: on rows kept from refits of the model."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from rhale_stats.answers.lines import NOT_EXAMINED
from rhale_stats.answers.sentences import NO, NOT_SHOWN, YES
from rhale_stats.explanation.confirmed import SIZE, confirmed
from rhale_stats.explanation.request import ExplainRequest
from rhale_stats.explanation.skill import Skill, skill_of
from rhale_stats.generics.hypotheses import wald_test
from rhale_stats.generics.intervals import confband, confint
from rhale_stats.inference.adjustment import adjusted
from rhale_stats.outcome.cross_fitting import CrossFits, NotRefittable, TooLong, cross_fit
from rhale_stats.outcome.outcome_effects import effects_of

# Seconds that the fits may take where nobody asked for them.
MAX_SECONDS = 30.0
# Size of the tests of no effect; two tests of a feature have half of it each.
TEST_SIZE = 0.05
# Effective rows, or groups, below which nothing is examined.
MIN_UNITS = 50


class OutcomeExamination(NamedTuple):
    """Models without each fold, their skill, and the effects on the outcome."""

    fits: CrossFits
    skill: Skill
    effect: xr.Dataset


class NoExamination(NamedTuple):
    """Why effects on the outcome were not estimated, in words, and the skill of one refit."""

    reason: str
    skill: Skill | None = None


def examine(
    request: ExplainRequest, outcome: bool | str, level: float, rng: np.random.Generator
) -> OutcomeExamination | NoExamination:
    """The effects on the outcome, or why they were not examined."""
    if outcome is False:
        return NoExamination("outcome=False")
    if request.y is None:
        return NoExamination("no outcomes were given; explain(model, X, y) takes them")
    n_units = request.n_effective if request.groups is None else float(request.groups.max() + 1)
    if outcome == "auto" and n_units < MIN_UNITS:
        return NoExamination(
            f"there are fewer than {MIN_UNITS} rows or groups; outcome=True asks for it"
        )
    seconds = MAX_SECONDS if outcome == "auto" else np.inf
    try:
        fits = cross_fit(
            request.model,
            request.sample,
            request.y,
            groups=request.groups,
            rng=rng,
            progress=False,
            most_seconds=seconds,
        )
    except TooLong as error:
        return NoExamination(
            f"{error}; outcome=True does them", _skill(error.first, request, level)
        )
    except NotRefittable:
        if outcome is True:
            raise
        return NoExamination(
            "the model cannot be fitted again; give the estimator, or a function of X and y to "
            "outcome_effects"
        )
    except Exception as error:
        if outcome is True:
            raise
        message = " ".join(str(error).split())[:120]
        return NoExamination(f"a refit failed ({type(error).__name__}: {message})")
    skill = _skill(fits, request, level)
    positions = {name: request.table.names.index(name) for name in request.features}
    usable = [name for name in request.features if _is_usable(request, name)]
    effect = effects_of(
        fits, [positions[name] for name in usable], [positions[name] for name in request.levels]
    )
    return OutcomeExamination(
        fits, skill, confband(confint(effect, level=level), level=level, rng=rng)
    )


def _skill(fits: CrossFits, request: ExplainRequest, level: float) -> Skill:
    return skill_of(
        fits.observed,
        fits.held_out,
        fits.folds,
        fits.kind,
        fits.sample.share,
        request.groups,
        level,
    )


def _is_usable(request: ExplainRequest, name: str) -> bool:
    """Whether a feature has few enough levels for its steps to be estimated."""
    series = request.table.series(request.table.names.index(name))
    n_values = series.nunique()
    return n_values > 1 and (name not in request.levels or n_values <= len(series) / 20)


def facts_in_data(
    examined: OutcomeExamination | NoExamination,
    features: list[str],
    rows_differ: list[str],
    request: ExplainRequest,
    delta: float,
) -> list[dict[str, Any]]:
    """The facts of every feature: in the data or not, by how much, and whether rows differ."""
    words = {"in_data": NOT_EXAMINED, "differs_in_data": NOT_EXAMINED}
    if isinstance(examined, NoExamination):
        return [words for _ in features]
    numbers = {"in_data_change": np.nan, "in_data_ci": [np.nan, np.nan], "in_data_p": np.nan}
    nothing = words | numbers
    effect = examined.effect
    names = [str(name) for name in effect["feature"].values]
    tests = wald_test(effect)["p_value"].values
    change = effect["usual_difference"].values
    of_change = effect["usual_difference_pvalue"].values
    # Of any shape or of the usual change: half of the size for each.
    pvalue = np.where(np.isfinite(of_change), np.minimum(2 * np.fmin(tests, of_change), 1.0), tests)
    # Where the model predicts nothing, only what stands against all features together is shown.
    judged = pvalue if examined.skill.attributes["predicts"] == "yes" else adjusted(pvalue, "holm")
    out = {name: dict(nothing) for name in features}
    for position, name in enumerate(names):
        word = NOT_SHOWN
        if judged[position] <= TEST_SIZE:
            word = YES
        elif _largest_importance(effect.isel(feature=position)) < delta:
            word = NO
        out[name] |= {
            "in_data": word,
            "in_data_change": change[position],
            "in_data_ci": effect["usual_difference_ci"]
            .transpose("feature", "ci_bound")
            .values[position],
            "in_data_p": pvalue[position],
        }
    differ = [
        name
        for name, verdict in zip(features, rows_differ, strict=True)
        if verdict == "yes" and len(features) > 1
    ]
    if differ:
        for name, value in zip(differ, confirmed(examined.fits, request, differ), strict=True):
            out[name]["differs_in_data"] = YES if value <= SIZE else NOT_SHOWN
    return [out[name] for name in features]


def _largest_importance(row: xr.Dataset) -> float:
    """The largest standard deviation over the rows of a curve within the band; NaN is unknown."""
    band = np.abs(row["curve_band"].transpose("edge", "ci_bound").values).max(axis=1)
    if "level_share" in row and str(row["feature_kind"].values) != "continuous":
        share = row["level_share"].values
        occupied = share > 0
        return float(np.sqrt(np.sum(share[occupied] * band[occupied] ** 2)))
    share = np.nan_to_num(row["weight_share"].values)
    occupied = share > 0
    mean_square = (band[:-1] ** 2 + band[:-1] * band[1:] + band[1:] ** 2) / 3
    return float(np.sqrt(np.sum(share[occupied] * mean_square[occupied])))
