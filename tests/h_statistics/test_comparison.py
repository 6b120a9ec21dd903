"""Differences of H-statistics: every number of the result by its formula."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from scipy import stats

import rhale_stats as rs
from tests.helpers import as_of_a_file

N = 18
RNG = np.random.default_rng(5)
X = RNG.normal(size=(N, 3))
OTHER = RNG.normal(size=(14, 3))
NAMES = ("h2", "h2_overall", "h2_pairwise", "h", "h_overall", "h_pairwise")
# Of two models, weights that make half of the rows count.
PRECISION = np.where(np.arange(N) < 9, 1.0, 0.1)
COUNTS = np.array([1.0, 2.0, 3.0] * 6)


def f(X):
    return X[:, 0] * X[:, 1] + 0.3 * X[:, 1] * X[:, 2] ** 2 + X[:, 2]


def g(X):
    return f(X) * X[:, 2] + X[:, 0]


def made(model, X=X, **options):
    return rs.h_statistic(model, X, progress=False, **options)


def moved(found, name, *, counted=False):
    """What every row of the table does to a statistic, math [62]."""
    w = found["weight"].values if "weight" in found else np.ones(found.sizes["obs"])
    n = w.sum() if counted else w.sum() ** 2 / np.sum(w**2)
    each = np.sqrt(w) if counted else w
    influence = found[f"{name}_influence"].transpose(*found[name].dims, "obs").values
    out = np.zeros((*found[name].shape, found.attrs["n_rows_total"]))
    out[..., found["row"].values] = influence * each / w.sum() * np.sqrt(n / (n - 1))
    return out


def holm(p):
    """Holm's p-values by his definition."""
    order, out, largest = np.argsort(p), np.empty(len(p)), 0.0
    for number, at in enumerate(order):
        largest = max(largest, min((len(p) - number) * p[at], 1.0))
        out[at] = largest
    return out


def check(found, a, b, errors, degrees, level=0.95):
    """Differences, errors, intervals and p-values against their definitions."""
    for name in NAMES:
        difference = (a[name] - b[name]).values
        se = errors[name]
        np.testing.assert_allclose(found[f"{name}_difference"], difference)
        np.testing.assert_allclose(found[f"{name}_difference_se"], se, rtol=1e-9)
        half = stats.t.ppf((1 + level) / 2, degrees) * se
        ends = np.stack([difference - half, difference + half], axis=-1)
        np.testing.assert_allclose(found[f"{name}_difference_ci"], ends, rtol=1e-8)
        assert found[f"{name}_difference_ci"].attrs["ci_prob"] == level
        p = 2 * stats.t.sf(np.abs(difference) / se, degrees)
        np.testing.assert_allclose(found[f"{name}_p_value"], p, rtol=1e-8)
        adjusted = p
        if p.ndim == 1:
            adjusted = holm(p)
        elif p.ndim == 2:  # every pair once
            j, k = np.triu_indices(3, 1)
            adjusted = np.full((3, 3), np.nan)
            adjusted[j, k] = adjusted[k, j] = holm(p[j, k])
        np.testing.assert_allclose(found[f"{name}_p_value_adjusted"], adjusted, rtol=1e-8)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("first", "second", "degrees"),
    [
        ({}, {}, N - 1),
        ({}, {"weights": PRECISION}, PRECISION.sum() ** 2 / np.sum(PRECISION**2) - 1),
        ({"weights": PRECISION}, {}, PRECISION.sum() ** 2 / np.sum(PRECISION**2) - 1),
        (*[{"weights": COUNTS, "weight_kind": "frequency"}] * 2, COUNTS.sum() - 1),
    ],
    ids=["none", "second", "first", "frequency"],
)
def test_pairs_of_rows(first, second, degrees):
    a, b = made(f, **first), made(g, **second)
    found = rs.compare(a, b, level=0.9)
    counted = "weight_kind" in first
    errors = {
        name: np.sqrt(
            np.sum((moved(a, name, counted=counted) - moved(b, name, counted=counted)) ** 2, -1)
        )
        for name in NAMES
    }
    check(found, a, b, errors, degrees, 0.9)
    facts = dict(found.attrs)
    assert facts.pop("software").startswith("rhale_stats ")
    facts.pop("seed", None)
    assert facts == {
        "method": "difference of H-statistics",
        "h_kind": "pdp",
        "output_name": "output",
        "output_units": "",
        "n_rows_a": N,
        "n_rows_b": N,
        "source": "pairs of rows",
        "adjust": "holm",
    }
    assert list(found["feature"].values) == list(found["feature_other"].values)
    assert found["feature"].values.tolist() == ["x0", "x1", "x2"]


@pytest.mark.thorough
@pytest.mark.parametrize("turned", [False, True])
def test_rows_that_are_independent(turned):
    """The smaller number of degrees of freedom, whichever comes first."""
    a, b = made(f), made(g, OTHER)
    if turned:
        a, b = b, a
    errors = {name: np.hypot(a[f"{name}_se"].values, b[f"{name}_se"].values) for name in NAMES}
    plain = a.drop_vars([name for name in a if str(name).endswith("_se")])
    for first in (a, plain):
        found = rs.compare(first, b)
        check(found, a, b, errors, 13)
        assert found.attrs["source"] == "rows against rows, independent"
        assert (found.attrs["n_rows_a"], found.attrs["n_rows_b"]) == (
            (14, N) if turned else (N, 14)
        )


def test_groups_of_pairs():
    """Groups of equal size: sums of what their rows do, with the factor of so many means."""
    groups = np.arange(N) % 6
    a, b = made(f), made(g)
    found = rs.compare(a, b, groups=groups)
    errors = {}
    for name in NAMES:
        psi = (a[f"{name}_influence"] - b[f"{name}_influence"]).values / N
        sums = np.stack([psi[..., groups == one].sum(axis=-1) for one in range(6)], axis=-1)
        errors[name] = np.sqrt(np.sum(sums**2, axis=-1) * 6 / 5)
    check(found, a, b, errors, 5)
    assert found.attrs["source"] == "pairs of rows in 6 groups"


def test_groups_of_the_result_that_has_fewer():
    """Two selections of the rows of one table: degrees of freedom are those of the smaller."""
    groups = np.arange(N) // 2
    few, more = (made(model, n_rows=n, rng=n) for model, n in ((f, 6), (g, 16)))
    own = [rs.std_error(one, groups=groups).attrs["groups_df"] for one in (few, more)]
    assert own[0] < own[1] - 1
    for a, b in ((few, more), (more, few)):
        found = rs.compare(a, b, groups=groups)
        half = (found["h2_difference_ci"].diff("ci_bound") / 2).values[0]
        np.testing.assert_allclose(half, stats.t.ppf(0.975, own[0]) * found["h2_difference_se"])


@pytest.mark.thorough
def test_what_is_within_rounding_is_no_difference():
    """Sizes differ by the errors of both; shares as their squares do."""
    a = made(f).assign(h_error=0.01)
    b = made(f).assign(h_error=0.03)
    step = np.array([0.0399, -0.0399, 0.0401])
    b["h_overall"] = a["h_overall"] + step
    found = rs.compare(a, b)["h_overall_p_value"].values
    np.testing.assert_array_equal(found[:2], 1)
    assert found[2] < 1
    b = made(f).assign(h_error=0.03)
    for sign in (1, -1):
        for number, part in enumerate((0.999, 1.001, 0.999)):
            root = float(a["h_overall"][number])
            share = float(a["h2_overall"][number])
            # The larger share decides: that of a, or that of b.
            away = 4 * share * 0.04 / root * part
            b["h2_overall"][number] = share - away if sign > 0 else share / (1 - away / share)
        p = rs.compare(a, b)["h2_overall_p_value"].values
        assert (p[0] == 1, p[1] < 1, p[2] == 1) == (True, True, True)


def test_frequencies_of_both_must_be_the_same():
    def counted(weights):
        return {"weights": weights, "weight_kind": "frequency"}

    refused = "a and b must have the same frequencies, as these count pairs; got others"
    a = made(f, **counted(COUNTS))
    for other in (
        {},
        {"weights": COUNTS},
        counted(COUNTS + 1),
        counted(np.where(COUNTS == 1, 2, COUNTS)),
    ):
        b = made(g, **other)
        for pair in ((a, b), (b, a)):
            with pytest.raises(ValueError, match=refused):
                rs.compare(*pair)
            # Groups are drawn, not rows.
            assert "6 groups" in rs.compare(*pair, groups=np.arange(N) % 6).attrs["source"]
    # Of other rows the frequencies may be others.
    some = np.where(np.arange(N) < 6, 0.0, COUNTS)
    fewer = np.where(np.arange(N) > 12, 0.0, COUNTS)
    a, b = made(f, **counted(some)), made(g, **counted(fewer))
    found = rs.compare(a, b)
    psi = moved(a, "h2", counted=True) - moved(b, "h2", counted=True)
    np.testing.assert_allclose(found["h2_difference_se"], np.sqrt(np.sum(psi**2)), rtol=1e-9)


def test_what_is_not_comparable_is_refused():
    a, b = made(f), made(g, OTHER)
    for paired in ((a, b), (b, a)):
        with pytest.raises(ValueError, match="same rows; got tables of 18 and 14 rows"):
            rs.compare(a, b, paired=paired)
    same = rs.compare(a, made(g, features=[2, 0, 1]))
    xr.testing.assert_allclose(same, rs.compare(a, made(g)))
    with pytest.raises(ValueError, match="same features; got x0, x1, x2 and x1, x2"):
        rs.compare(a, made(g, features=[1, 2]))
    for pair in ((X, a), (a, X)):
        with pytest.raises(ValueError, match=r"returned; (a|b) is not\.$"):
            rs.compare(*pair)
    for paired in ((a,), (a, a, a)):
        with pytest.raises(TypeError, match="paired must be"):
            rs.compare(a, a, paired=paired)
    with pytest.raises(ValueError, match="groups must come with results of one table"):
        rs.compare(a, b, groups=np.arange(N) % 6)
    # A table of as many rows is another table.
    c = made(g, OTHER[np.arange(N) % 14])
    assert rs.compare(a, c).attrs["source"] == "rows against rows, independent"
    grouped = rs.std_error(a, groups=np.arange(N) % 6)
    for pair, name in (((grouped, a), "a"), ((a, grouped), "b")):
        with pytest.raises(ValueError, match=f"standard errors by groups, as {name} has"):
            rs.compare(*pair)
    for name in ("a", "b"):
        small = as_of_a_file(a.drop_vars("h_pairwise_influence"))
        with pytest.raises(ValueError, match=f"^{name} must hold the influences of rows for pairs"):
            rs.compare(*((small, a) if name == "a" else (a, small)))
    held = a.assign_attrs(fitted_model="one")
    with pytest.raises(ValueError, match="the difference of two H-statistics"):
        rs.compare(held, held)
    with pytest.raises(ValueError, match="pairs are of rows alone"):
        rs.compare(held, a)
    assert "independent" in rs.compare(held, b).attrs["source"]
    # Statistics that both have.
    assert "h2_pairwise_difference" not in rs.compare(a, made(g, pairwise=False))
