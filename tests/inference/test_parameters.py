"""Checks and errors of estimates with the parameters of a model."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose

import rhale_stats as rs
from rhale_stats.arrays import delta
from rhale_stats.arrays.delta import Covariances
from rhale_stats.inference.parameters import (
    ADDED,
    BY_ROW,
    MODEL_FIXED,
    ROWS_FIXED,
    Directions,
    check_model,
    errors,
    refuse_shared,
    sources,
)
from rhale_stats.models.parametric import Fitted


def test_estimates_of_another_model_are_refused():
    known = np.array([1.0, -4.0, np.nan])
    check_model(np.array([1.0, -4.0, 7.0]), known, "curve")
    for other in ([1.0, -4.01, 7.0], [1.0, -3.99, 7.0], [-1.0, -4.0, 7.0]):
        with pytest.raises(ValueError, match="they give another curve"):
            check_model(np.array(other), known, "curve")
    # Relative to the largest, or as much as rounding.
    check_model(np.array([1.0 + 1e-12, 1e6]), np.array([1.0, 1e6]), "curve")
    check_model(np.array([0.01]), np.zeros(1), "curve", rounding=0.02)
    with pytest.raises(ValueError, match="they give another curve"):
        check_model(np.array([0.03]), np.zeros(1), "curve", rounding=0.02)
    check_model(np.zeros(0), np.zeros(0), "curve")


def test_errors_are_roots_of_the_diagonals():
    """A negative variance is what rounding leaves of none."""
    parts = Covariances(np.diag([4.0, 1.0]), np.diag([0.0, -1e-20]), np.diag([9.0, 1.0]))
    found = errors(parts)
    assert_allclose(found["se_rows"], [2, 1])
    assert_allclose(found["se_model"], [0, 0])
    assert_allclose(found["se"], [3, 1])


class TestDirections:
    """Of a line in two parameters, one of them without an error."""

    X = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 0.5], [2.0, 2.0]])

    def directions(self, uncertainty="both", scores=None, facts=None, model=None, **options):
        line = rs.Parametric(lambda b, X: X @ b, [2.0, 0.5], np.diag([0.04, 0.0]), scores)
        fitted = Fitted.from_model(line if model is None else model, self.X, uncertainty)
        return Directions.from_fit(fitted, {} if facts is None else facts, **options)

    def scores(self):
        return np.column_stack([[1.0, -2.0, 0.5, 0.5], np.zeros(4)])

    @pytest.mark.parametrize(
        ("uncertainty", "how", "source"),
        [
            ("rows", MODEL_FIXED, "groups"),
            ("parameters", ROWS_FIXED, "parameters"),
            ("both", ADDED, "groups and parameters"),
        ],
    )
    def test_words(self, uncertainty, how, source):
        found = self.directions(uncertainty)
        assert found.how == how
        assert found.source("groups") == source
        facts = found.facts()
        assert facts["parameters"] == how
        assert ("fitted_model" in facts) == (uncertainty != "rows")
        said = {"se_rows": "groups", "se_model": "parameters", "se": source}
        assert sources(found, "groups") == said | {"df": source, "cov": source}

    def test_influences_are_added_where_they_are_known_and_asked_for(self):
        scores = self.scores()
        assert self.directions("both", scores).how == BY_ROW
        assert self.directions("both", scores).influence.shape == (4, 1)
        assert self.directions("rows", scores).influence is None
        assert self.directions("parameters", scores).influence is None
        # Frequencies say of a repeated row once what its copies do.
        assert self.directions("both", scores, frequency=True).influence is None

    def test_variances_are_added(self):
        rows, change = np.array([[4.0, 1.0], [1.0, 9.0]]), np.array([[0.5, -2.0]])
        units, used = delta.Units(np.zeros((4, 2)), np.arange(4), 3.0), np.arange(4)
        model = [[0.25, -1], [-1, 4]]
        for uncertainty, total in (("both", rows + model), ("rows", rows), ("parameters", model)):
            found = self.directions(uncertainty).covariances(rows, change, units, used)
            assert_allclose(found[0], rows)
            assert_allclose(found[1], model)
            assert_allclose(found[2], total)

    def test_influences_of_rows_are_added(self):
        found = self.directions("both", self.scores())
        rows, change = np.array([[4.0]]), np.array([[0.5]])
        units, used = (
            delta.Units(np.array([[0.1], [0.2], [-0.3], [0.0]]), np.arange(4), 3.0),
            np.arange(4),
        )
        total = delta.together(rows, change, units, found.influence, used, found.model.row_factor)
        assert_allclose(found.covariances(rows, change, units, used)[2], total)
        assert not np.allclose(total, rows + 0.25)

    def test_degrees_of_the_sum(self):
        """Satterthwaite's; parameters of a function have no end of degrees of freedom."""
        of = delta.Covariances(np.diag([4.0, 1.0, -1e-20]), np.diag([1.0, 0.0, 2.0]), np.eye(3))
        assert_allclose(self.directions("both").degrees(of, 7.0), [25 / (16 / 7), 7, np.inf])
        assert_allclose(self.directions("rows").degrees(of, 7.0), [7, 7, np.inf])
        assert_allclose(self.directions("parameters").degrees(of, 7.0), [np.inf] * 3)
        few = self.directions("both")
        few.model.degrees = 5.0
        assert_allclose(few.degrees(of, 7.0), [25 / (16 / 7 + 1 / 5), 7, 5])
        few = self.directions("parameters")
        few.model.degrees = 5.0
        assert_allclose(few.degrees(of, 7.0), [5, np.inf, 5])

    def test_the_output_of_the_result(self):
        """Of two outputs, the second is three times the first."""
        two = rs.Parametric(
            lambda b, X: np.column_stack([X @ b, 3 * X @ b]), [2.0, 0.5], np.diag([0.04, 0.0])
        )
        plain = self.directions().changes.ask(self.X)
        for factor, label in enumerate(["0", "1"]):
            found = self.directions(model=two, facts={"output_label": label})
            assert_allclose(found.changes.ask(self.X), (1 + 2 * factor) * plain)
        with pytest.raises(ValueError, match="model must have the output 'c' of the result"):
            self.directions(model=two, facts={"output_label": "c"})


@pytest.mark.parametrize(
    ("marks", "paired", "text"),
    [
        (("m", "m"), False, "must not both hold the parameters of one model"),
        (("m", ""), True, "paired must be left out for curves"),
        (("", "m"), True, "paired must be left out for curves"),
    ],
)
def test_errors_that_are_shared_are_refused(marks, paired, text):
    a, b = (xr.Dataset(attrs={"fitted_model": mark} if mark else {}) for mark in marks)
    with pytest.raises(ValueError, match=text):
        refuse_shared(a, b, "curves", paired=paired)


@pytest.mark.parametrize(
    ("marks", "paired"), [(("m", "n"), False), (("m", ""), False), (("", ""), True)]
)
def test_errors_that_are_not_shared(marks, paired):
    a, b = (xr.Dataset(attrs={"fitted_model": mark} if mark else {}) for mark in marks)
    refuse_shared(a, b, "curves", paired=paired)


def test_the_largest_of_all_estimates_is_the_scale():
    """Differences up to a millionth of it are rounding: of either, and of no more than these."""
    many, first = np.array([1e-3, 1e3, 2.0]), np.array([1, 0, 0])
    check_model(many + 9e-4 * first, many, "curve")
    check_model(many, many + 9e-4 * first, "curve")
    with pytest.raises(ValueError, match="they give another curve"):
        check_model(many + 1.1e-3 * first, many, "curve")
    # Small ones are not compared with 1.
    with pytest.raises(ValueError, match="they give another curve"):
        check_model(np.array([1.1e-7]), np.array([1e-7]), "curve")
    with pytest.raises(ValueError, match="they give another curve"):
        check_model(np.array([0.0]), np.array([1e-7]), "curve")
