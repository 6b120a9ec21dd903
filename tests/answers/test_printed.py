"""The printed answer: at most 40 lines of 100 characters, whatever the names and numbers."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import rhale_stats as rs
from rhale_stats.answers.printed import MAX_LINES, WIDTH
from tests.helpers import daily

LONG = "a very long name of a feature, of which there are many that begin alike, number "


@cache
def explained(n_features, scale=1.0, names=None):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(100, n_features)))
    X.columns = [names.format(k) if names else f"x{k}" for k in range(n_features)]

    def model(X):
        values = X.to_numpy()
        return scale * (values @ np.arange(1.0, n_features + 1) + values[:, 0] * values[:, -1])

    return rs.explain(model, X, rng=0, budget=None, progress=False)


SIZES, SCALES, NAMES = (1, 4, 40), (1e-7, 1e9, 1.0), (LONG + "{}", None, "{}\n\t<&\"'")


# Every day each of the sizes, scales and kinds of names; with the slow tests any two of these.
@pytest.mark.parametrize(
    ("row", "column"), daily([(row, (row + k) % 3) for k in range(3) for row in range(3)], 3)
)
def test_it_keeps_to_its_size(row, column):
    """Any two of the three together: a Latin square."""
    n_features, scale, names = SIZES[row], SCALES[column], NAMES[(row + column) % 3]
    text = repr(explained(n_features, scale, names))
    lines = text.splitlines()
    assert len(lines) <= MAX_LINES
    assert max(map(len, lines)) <= WIDTH
    assert not any(line != line.rstrip() for line in lines)
    assert all(one.isprintable() for one in "".join(lines))
    assert "nan" not in text


def test_words_of_shapes_are_whole_in_wide_tables():
    X = np.random.default_rng(0).normal(size=(300, 12)) ** 3
    X = pd.DataFrame(X, columns=[f"{LONG}{k}" for k in range(12)])
    names = list(X)

    def model(X):
        return 1e-4 * (X[names[0]] + X[names[1]] * X[names[2]])

    text = repr(rs.explain(model, X, rng=0, budget=None, progress=False))
    shapes = [line.split("  ")[-1].strip() for line in text.splitlines() if line.startswith("a ve")]
    assert any("nearly flat" in shape for shape in shapes)
    assert not any("…" in shape for shape in shapes)


def test_numbers_of_usual_values_are_whole():
    """Also where words around them give way: the end of a number would be another number."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(-120 + rng.normal(size=(300, 6)), columns=[f"{LONG}{k}" for k in range(6)])
    y = pd.Series(1e6 * X.sum(axis=1) + 1e6 * rng.normal(size=300), name="value")
    text = repr(rs.explain(LinearRegression().fit(X, y), X, y, rng=0, progress=False))
    low, high = np.quantile(X, [0.1, 0.9], axis=0)
    values = re.findall(r"(-1\d\d\.?\d*), (-1\d\d\.?\d*) ", text)
    assert len(values) == 6
    printed = np.sort(np.array(values, dtype=float), axis=0)
    np.testing.assert_allclose(printed.T, np.sort([low, high], axis=1), atol=0.1)


def test_what_the_table_leaves_out_is_counted():
    found = explained(40, 1.0, None)
    text = repr(found)
    shown = sum(line.startswith("x") for line in text.splitlines())
    assert f"… {40 - shown} more, the largest moves" in text
    few = str(rs.show(found, max_features=3))
    assert "… 37 more" in few


@pytest.mark.thorough
def test_names_that_end_otherwise_differ():
    text = repr(explained(4, names=LONG + "{}"))
    begins = [line[:24] for line in text.splitlines() if line.startswith("a very")]
    assert len(set(begins)) == 4


def test_of_an_answer_that_is_not_sure_it_says_so():
    """A small feature among few rows: a question mark stands for what one cannot tell."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    found = rs.explain(lambda X: X[:, 0] + 0.05 * X[:, 1], X, rng=0, progress=False, budget=None)
    line = next(line for line in repr(found).splitlines() if line.startswith("x1"))
    assert found.answers["matters"].sel(feature="x1") == "cannot tell"
    assert " ? " in line


@pytest.mark.thorough
def test_intervals_stay_where_numbers_differ_in_size():
    """Thirteen features of sizes from 1 to 0.01: the smallest with decimals that tell a tenth."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(80, 13)), columns=[f"column_{k:02d}" for k in range(13)])
    size = np.geomspace(1, 0.01, 13)

    def model(X):
        values = X.to_numpy()
        return np.tanh(values * 2) @ size + values[:, 0] * (values[:, 1:] @ size[1:]) / 3

    lines = repr(rs.explain(model, X, rng=0, progress=False, budget=None)).splitlines()
    rows = [line for line in lines if line.startswith("column") and "] " in line]
    assert len(rows) == 13
    assert max(map(len, lines)) <= WIDTH


def test_a_mark_is_kept_where_a_shape_is_cut():
    from rhale_stats.answers.printed import _cut

    assert _cut("nearly flat !", 11) == "nearly f… !"
    assert _cut("nearly flat", 11) == "nearly flat"
