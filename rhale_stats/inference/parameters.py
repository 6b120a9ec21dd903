"""The parameters of a fitted model in the errors of any result (math [80])."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from rhale_stats.arrays import delta, intervals
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.arrays.survey import SamplingDesign
from rhale_stats.models.options import ModelOptions
from rhale_stats.models.outputs import Outputs
from rhale_stats.models.parametric import Fitted, ParameterChanges, Parametric
from rhale_stats.models.table import as_table

# How errors of rows and of parameters were put together, in the attribute ``parameters``.
ROWS_FIXED = "rows held fixed"
MODEL_FIXED = "parameters held fixed"
ADDED = "variances of rows and parameters added"
BY_ROW = "influences of every row on estimates and parameters added"
KIND = "delta method, math [80]"
# Estimates of the model and of its versions differ by no more, relative to the largest.
TOLERANCE = 1e-6


class Directions(NamedTuple):
    """Changes of a model along the directions of its parameters, and which errors are wanted.

    ``influence`` (row, direction) is that of the rows of ``X`` on the directions, with the factors
    of rows, where it is known and asked for. ``as_fitted``: the covariance of the parameters is
    kept all the same.
    """

    model: Parametric
    changes: ParameterChanges
    uncertainty: str
    influence: FloatArray | None
    row_factor: FloatArray | None
    as_fitted: bool

    @classmethod
    def from_fit(
        cls,
        fitted: Fitted,
        facts: Mapping[Any, Any],
        *,
        frequency: bool = False,
        is_survey: bool = False,
    ) -> Directions:
        """Of the output and on the scale that the facts of a result say.

        The design of a survey has a part in the covariance of the parameters alone, too.
        """
        model, table = fitted.model, as_table(fitted.X)
        outputs = Outputs(model.as_model, table)
        outputs(outputs.table.take(np.arange(min(2, table.n_rows))).copied())
        label, labels = (
            str(facts.get("output_label", "")),
            [str(label_of_output) for label_of_output in outputs.labels],
        )
        if label and label not in labels:
            raise ValueError(
                f"model must have the output {label!r} of the result; it has {', '.join(labels)}."
            )
        scale = facts.get("scale") or "response"
        number = labels.index(label) if label else 0
        changes = ParameterChanges.from_model(model, table, outputs.numbers[number], scale)
        influence = factor = None
        # What is said of a repeated row once cannot be added to what its copies do.
        known_rows = fitted.uncertainty in ("both", "parameters" * is_survey) and not frequency
        if known_rows:
            influence = fitted.influence_of_rows()
            factor = None if influence is None else fitted.row_factor()
        return cls(model, changes, fitted.uncertainty, influence, factor, fitted.as_fitted)

    @property
    def how(self) -> str:
        """How rows and parameters were put together, as an attribute says it."""
        return how_added(self.uncertainty, self.influence)

    def facts(self) -> dict[str, str]:
        """What a result with these errors says of them in its attributes."""
        facts_of_model = {"parameters": self.how} | self.model.facts()
        if self.uncertainty == "rows":
            return facts_of_model
        return facts_of_model | {"fitted_model": self.model.fingerprint()}

    def source(self, rows: str) -> str:
        """The source of a standard error, in words."""
        return source_of_both(self.uncertainty, rows)

    def covariances(
        self, rows: FloatArray, change: FloatArray, units: delta.Units, used: IntArray
    ) -> delta.Covariances:
        """Of estimates whose covariance from the rows, and changes by direction, are given.

        ``used`` are the numbers of the rows of ``X`` that the ``units`` are made of.
        """
        change = self.model.estimable(change)
        model = np.asarray(change.T @ change)
        rows = np.where(np.isnan(model), np.nan, rows)
        if units.design is not None:
            return self._of_design(rows, model, change, units, units.design)
        if self.uncertainty == "parameters":
            return delta.Covariances(rows, model, model.copy())
        if self.uncertainty == "rows":
            return delta.Covariances(rows, model, rows.copy())
        total, most = rows + model, np.inf
        if self.influence is not None and self.row_factor is not None:
            of_fit = self.influence, used, self.row_factor
            total = delta.together(rows, change, units, *of_fit, as_fitted=self.as_fitted)
            if len(units.moved) < len(used) and not self.as_fitted:
                most = len(units.moved) - 1.0
        return delta.Covariances(rows, model, total, most_degrees=most)

    def _of_design(
        self,
        rows: FloatArray,
        model: FloatArray,
        change: FloatArray,
        units: delta.Units,
        design: SamplingDesign,
    ) -> delta.Covariances:
        """math [117]: the design makes units of the influences of rows on the parameters, too."""
        moved = units.moved
        if self.uncertainty != "rows":
            of_fit = design.units_of_table(known_influence(self.influence)) @ change
            model = of_fit.T @ of_fit
            moved = of_fit if self.uncertainty == "parameters" else moved + of_fit
        total = np.where(np.isnan(model), np.nan, moved.T @ moved)
        # Replicates are sums over all rows: they do not show that a few of these decide.
        n_equal = delta.n_equal(moved) if design.replicates is None else None
        return delta.Covariances(rows, model, total, design.degrees, n_equal)

    def degrees(self, covariances: delta.Covariances, rows: FloatArray | float) -> FloatArray:
        """Degrees of freedom of every estimate, by Satterthwaite or of a design."""
        if covariances.degrees is not None:
            return np.full(len(covariances.total), covariances.degrees)
        of_rows, of_model = (
            np.maximum(np.diagonal(covariance), 0.0)
            for covariance in (covariances.rows, covariances.model)
        )
        if self.uncertainty == "parameters":
            of_rows = np.zeros_like(of_rows)
        if self.uncertainty == "rows":
            of_model = np.zeros_like(of_model)
        degrees = intervals.satterthwaite((of_rows, rows), (of_model, self.model.degrees))
        return np.minimum(degrees, covariances.most_degrees)


def how_added(uncertainty: str, influence: FloatArray | None) -> str:
    """How rows and parameters were put together, as an attribute says it."""
    if uncertainty != "both":
        return ROWS_FIXED if uncertainty == "parameters" else MODEL_FIXED
    return ADDED if influence is None else BY_ROW


def source_of_both(uncertainty: str, rows: str) -> str:
    """The source of a standard error, in words."""
    both = f"{rows} and parameters"
    return {"parameters": "parameters", "rows": rows}.get(uncertainty, both)


def without_parameters(result: xr.Dataset, ends: tuple[str, ...]) -> xr.Dataset:
    """The result without what errors by parameters left behind: variables with these endings."""
    out = result.drop_vars([name for name in result.data_vars if str(name).endswith(ends)])
    for fact in ("parameters", "fitted_model"):
        out.attrs.pop(fact, None)
    return out


def options_of(result: xr.Dataset, missing: str) -> ModelOptions:
    """Options by which a changed model gives the result again: weights and missing values."""
    kind = str(result.attrs["weight_kind"])
    if kind == "none":
        return ModelOptions(missing=missing)
    return ModelOptions(weights=result["weight"].values, weight_kind=kind, missing=missing)


def known_influence(influence: FloatArray | None) -> FloatArray:
    """Influences of the rows on the parameters, which the design of a survey is applied to."""
    if influence is None:
        raise ValueError(
            "X must hold the rows that the model was fitted to, and the model must have scores of "
            "its rows, for the design of a survey; got others. Leave rows with missing values out "
            "of both, or hold the model fixed: uncertainty='rows'."
        )
    return influence


def errors(covariances: delta.Covariances) -> dict[str, FloatArray]:
    """Standard errors by the end of their names."""
    ends = ("se_rows", "se_model", "se")
    return {
        end: np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
        for end, covariance in zip(ends, covariances[:3], strict=True)
    }


def sources(directions: Directions, rows: str) -> dict[str, str]:
    """The source of a variable by the end of its name."""
    whole = directions.source(rows)
    return {"se_rows": rows, "se_model": "parameters", "se": whole, "df": whole, "cov": whole}


def check_model(again: FloatArray, stored: FloatArray, what: str, *, rounding: float = 0.0) -> None:
    """Raise ``ValueError`` where a model and ``X`` give other estimates than those known.

    Estimates that are 0 but for ``rounding`` differ by as much.
    """
    estimated = np.isfinite(stored)
    size = float(max(np.abs(again).max(initial=0.0), np.abs(stored[estimated]).max(initial=0.0)))
    if np.abs(again - stored)[estimated].max(initial=0.0) > max(TOLERANCE * size, rounding):
        raise ValueError(
            f"model and X must be those that the result was made from; they give another {what}."
        )


def refuse_shared(a: xr.Dataset, b: xr.Dataset, what: str, *, paired: bool) -> None:
    """Raise ``ValueError`` where a difference would need what the errors of both share.

    Two results of one model have its parameters in common.
    """
    marks = [str(result.attrs.get("fitted_model", "")) for result in (a, b)]
    advice = (
        "Make both with uncertainty='rows', or compare effects of rhale or ale, whose comparison "
        "knows what they share."
    )
    if marks[0] and marks[0] == marks[1]:
        raise ValueError(
            f"a and b must not both hold the parameters of one model: the difference of two {what} "
            f"would need what their errors share. {advice}"
        )
    if paired and any(marks):
        raise ValueError(
            f"paired must be left out for {what} whose errors hold the parameters of a model: "
            f"pairs are of rows alone. {advice}"
        )
