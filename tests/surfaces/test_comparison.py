"""Parts of the comparison of two surfaces: scores, sizes, tables, refusals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import rhale_stats as rs
from rhale_stats.arrays import quadratic
from rhale_stats.surfaces import comparison
from rhale_stats.surfaces.inference import SurfaceRows, errors_of, rounding
from tests.helpers import in_cells, in_turn

N = 60
EDGES = rs.GivenBins([-1.0, 0.1, 1.0])
RNG = np.random.default_rng(8)
X = pd.DataFrame(RNG.uniform(-1, 1, (N, 3)), columns=["a", "b", "c"])
X["k"] = ["p", "q", "r"] * 20


def f(X):
    return X["a"] * X["b"] * (1 + X["c"]) + X["a"] * (X["k"] == "q") * X["c"]


def g(X):
    return f(X) + 0.3 * X["a"] * X["b"] * X["c"] ** 2 + X["a"] * (X["k"] == "r")


def made(model, X=X, pair=("a", "b"), **options):
    return rs.ale2(model, X, pair, bins=EDGES, progress=False, **options)


def test_scores_are_normal_quantiles_of_students_t():
    value = np.array([2.0, -2.0, 1e-9, 0.5, -1e-3])
    se = np.array([1.0, 0.5, 1e-12, 0.0, 1e-9])
    degrees = np.array([4.0, 30.0, 5.0, 8.0, 0.0])
    found = comparison.scores(value, se, degrees, 1e-3)
    # Up to rounding 1e-9 is 0, and so is an estimate of the size of rounding itself. A standard
    # error is at least the rounding.
    t = np.array([2.0, 4.0, 0.0, 500.0, 0.0])
    expected = stats.norm.isf(stats.t.sf(t, np.maximum(degrees, 1e-3)))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
    # Hardly any degree of freedom is no more than that.
    few = comparison.scores(np.ones(2), np.ones(2), np.array([0.0, 1e-3]), 0.0)
    assert few[0] == few[1]
    assert comparison.scores(np.ones(1), np.ones(1), np.array([0.5]), 0.0) == pytest.approx(
        stats.norm.isf(stats.t.sf(1.0, 0.5))
    )


@pytest.mark.thorough
@pytest.mark.parametrize(("pair", "paired"), in_turn([("a", "b"), ("k", "a")], [False, True]))
def test_every_number_of_a_comparison(pair, paired):
    table = X if paired else X[:45].set_axis(range(100, 145))
    a, b = made(f, pair=pair), made(g, table, pair)
    found = rs.compare(a, b, level=0.9, rng=0)
    for name, of, error in (
        ("difference", "surface", "surface_se"),
        ("second_effect_difference", "second_effect", "second_effect_se"),
    ):
        np.testing.assert_allclose(found[name], (a[of] - b[of]).values, atol=1e-14)
        assert found[name].dims == a[of].dims
        if paired:
            whole = rs.std_error(made(lambda X: f(X) - g(X), pair=pair))
            expected = whole[error].values
        else:
            expected = np.hypot(*(rs.std_error(one)[error].values for one in (a, b)))
        np.testing.assert_allclose(found[f"{name}_se"], expected, rtol=1e-7, atol=1e-12)
        middle = found[f"{name}_ci"].mean("ci_bound")
        np.testing.assert_allclose(middle, found[name], atol=1e-12)
        assert found[f"{name}_ci"].attrs["ci_prob"] == 0.9
    if not paired:
        parts = [errors_of(one, SurfaceRows.from_surface(one), "surface") for one in (a, b)]
        variances = [np.diagonal(one.covariance) for one in parts]
        own = [one.degrees for one in parts]
        degrees = sum(variances) ** 2 / sum(v**2 / d for v, d in zip(variances, own, strict=True))
        half = stats.t.ppf(0.95, degrees.reshape(found["difference"].shape))
        ends = found["difference"] + half * found["difference_se"]
        np.testing.assert_allclose(found["difference_ci"][..., 1], ends, rtol=1e-9)
    if paired and pair[0] == "a":
        t = np.abs(found["second_effect_difference"] / found["second_effect_difference_se"])
        score = stats.norm.isf(stats.t.sf(t, a["n_obs"].values - 1))
        assert float(found["cell_statistic"][0]) == pytest.approx(score.max(), rel=1e-6)
    least = float(a["second_difference_error"] + b["second_difference_error"])
    assert float(found["second_difference_error"]) == least
    assert rounding(a) == float(a["second_difference_error"]) * np.sqrt(in_cells(a["n_obs"]).size)
    assert set(found.coords) == {"edge_a", "edge_b", "feature", "feature_kind", "ci_bound"}
    for name in ("feature_a", "feature_b", "kind_a", "kind_b", "units_a", "units_b"):
        assert found.attrs[name] == a.attrs[name]
    assert found.attrs["n_unshared"] == 0
    np.testing.assert_array_equal(found["supported"], a["n_obs"] > 0)


@pytest.mark.thorough
def test_size_of_a_difference_is_without_noise():
    """Mean over cells of the square of the difference less its variance."""
    a, b = made(f), made(lambda X: g(X) + 2 * X["a"] * X["b"])
    found = rs.compare(a, b, rng=0)
    square = found["second_effect_difference"] ** 2 - found["second_effect_difference_se"] ** 2
    assert float(found["size"][0]) == pytest.approx(float(np.sqrt(square.mean())), rel=1e-9)
    same = rs.compare(a, made(lambda X: f(X) + 1e-3 * X["a"] * X["b"] * X["c"]), rng=0)
    assert float(same["size"][0]) < 1e-3


@pytest.mark.thorough
@pytest.mark.parametrize("pair", [("a", "b"), ("a", "k"), ("k", "a")])
def test_a_line_for_every_corner(pair):
    a, b = made(f, pair=pair), made(g, pair=pair)
    found = rs.compare(a, b, rng=0)
    shape = found["difference"].shape
    at = np.indices(shape).reshape(2, -1)
    columns = {"term": ":".join(pair)}
    for side, name, number in zip("ab", pair, at, strict=True):
        what = "level" if name == "k" else "x"
        columns[f"{what}_{side}"] = found[f"edge_{side}"].values[number]
    ends = {
        f"{prefix}_{end}": found[f"difference_{kind}"].values[..., bound].ravel()
        for prefix, kind in (("conf", "ci"), ("band", "band"))
        for bound, end in enumerate(("low", "high"))
    }
    columns |= {
        "estimate": found["difference"].values.ravel(),
        "std_error": found["difference_se"].values.ravel(),
        **ends,
    }
    pd.testing.assert_frame_equal(comparison.tidy(found, 0.95), pd.DataFrame(columns))
    some = found.copy(deep=True)
    some["difference"][1, 0] = np.nan
    kept = pd.DataFrame(columns).drop(index=shape[1]).reset_index(drop=True)
    pd.testing.assert_frame_equal(comparison.tidy(some, 0.95), kept)


def test_errors_that_are_not_known_are_not_compared():
    value = np.array([1.0, 5.0, np.nan, 2.0])
    covariance = np.diag([0.25, 0.25, 0.25, np.nan])
    asked = comparison.ComparisonOptions(None, None, 0.95, 500, 0, "holm")
    rng = np.random.default_rng
    # One degree of freedom is enough.
    estimated = comparison.Errors(value, covariance, np.array([1.0, 0, 9, 9]))
    (_, se, interval, _), statistic, _ = comparison._tested(estimated, 0.0, asked, rng(0))
    np.testing.assert_array_equal(se, [0.5, np.nan, np.nan, np.nan])
    score = stats.norm.isf(stats.t.sf(2.0, 1.0))
    assert statistic == pytest.approx(score)
    assert np.isnan(interval[1:]).all()
    none = estimated._replace(degrees=np.zeros(4))
    assert np.isnan(comparison._tested(none, 0.0, asked, rng(0))[1])
    cells = comparison.Errors(value, covariance, np.array([9.0, 0, 9, 9]))
    assert comparison._square_of_cells(cells).size == pytest.approx(np.sqrt(1 - 0.25))
    many = comparison.Errors(np.array([1.0, 3.0]), 0.25 * np.eye(2), np.array([4.0, 5.0]))
    # The degrees of freedom of independent cells add up.
    square = quadratic.square(many.values, np.eye(2) / 2, many.covariance, 9.0)
    np.testing.assert_allclose(
        comparison._square_of_cells(many).interval(0.9), square.interval(0.9)
    )
    lower = comparison.Errors(value, covariance, np.zeros(4))
    assert not comparison._square_of_cells(lower).size > 0


def test_lists_of_edges_and_levels_are_cut():
    assert comparison._listed(np.arange(6.0) / 3) == "0, 0.3333, 0.6667, 1, 1.333, 1.667"
    assert comparison._listed(np.arange(7)) == "0, 1, 2, 3, 4, 5, ..."
    assert comparison._listed(np.array(["u", "v"])) == "u, v"


@pytest.mark.thorough
def test_groups_of_both_surfaces():
    a, b = made(f), made(g)
    one, two = np.arange(N) // 6, np.arange(N) // 5
    first = rs.std_error(a, groups=one)
    for pair in ((first, rs.std_error(b, groups=two)), (first, b), (b, first)):
        with pytest.raises(ValueError, match="a and b must have standard errors by the same group"):
            rs.compare(*pair)
        # Groups that are given are taken.
        assert rs.compare(*pair, groups=two, rng=0).attrs["source"] == "pairs of rows in 12 groups"
    both = rs.compare(first, rs.std_error(b, groups=one), rng=0)
    assert both.attrs["source"] == "pairs of rows in 10 groups"
    apart = made(g, X.set_axis(range(100, 100 + N)))
    found = rs.compare(first, rs.std_error(apart, groups=two), rng=0)
    assert found.attrs["source"] == "rows in 10 groups against rows in 12 groups, independent"
    plain = rs.compare(first, apart, rng=0)
    assert plain.attrs["source"] == "rows in 10 groups against rows, independent"


@pytest.mark.thorough
def test_rows_in_common_by_their_labels():
    """Rows with a label of both must have the same values, places and weights."""
    a = made(f)
    other = made(f, X.assign(b=X["b"].to_numpy()[::-1]))
    source = rs.compare(a, other, rng=0).attrs["source"]
    # The same labels, of other values: another table.
    assert source == "rows against rows, independent"
    counts = np.ones(N)
    precise = made(f, weights=counts)
    assert rs.compare(a, precise, rng=0).attrs["source"] == "pairs of rows"
    frequency = made(f, weights=counts, weight_kind="frequency")
    with pytest.raises(ValueError, match="60 rows with a common label .* have other weights"):
        rs.compare(a, frequency)
    for paired in ((a, a, a), (a,), (a, X)):
        with pytest.raises(TypeError, match="paired"):
            rs.compare(a, a, paired=paired)
    assert rs.compare(a, made(g), paired=(a, a), rng=0).attrs["source"] == "pairs of rows"
    arrays = [rs.ale2(lambda X, c=c: c * X[:, 0] * X[:, 1], X[["a", "b"]].to_numpy()[:n], (0, 1),
                      bins=EDGES) for n, c in ((N, 1), (N, 2), (40, 2))]  # fmt: skip
    assert rs.compare(arrays[0], arrays[1], rng=0).attrs["source"] == "pairs of rows"
    with pytest.raises(ValueError, match="40 rows with a common label .* have other rows"):
        rs.compare(arrays[0], arrays[2])
