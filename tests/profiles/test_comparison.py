"""Errors of profiles under precision weights, by the numeric influence of every weight."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import rhale_stats as rs
from rhale_stats.profiles import inference
from rhale_stats.profiles.data import one_profile
from rhale_stats.profiles.inference import compared
from tests.helpers import in_turn

N, STEP = 60, 1e-6
GRID = {"a": [0, 1, 2, 3]}
BINS = rs.GivenBins([0, 0.5, 1.5, 2.5, 3])
RNG = np.random.default_rng(0)
X = pd.DataFrame({"a": RNG.integers(4, size=N).astype(float), "b": RNG.normal(size=N)})
GAPS = X.assign(a=X["a"].mask(RNG.random(N) < 0.4))
# Rows that differ from the others have much weight.
WEIGHT = 0.2 + X["b"].to_numpy() ** 2
KISH = WEIGHT.sum() ** 2 / np.sum(WEIGHT**2)


def f(X):
    return ((X["a"].fillna(1) / 3 + 1) * X["b"]).to_numpy()


def g(X):
    return (X["a"].fillna(6) ** 2 / 9 + 0.2 * X["b"]).to_numpy()


def partial(model, weight, X=X, **how):
    return rs.ice(model, X, features=["a"], weights=weight, grid=GRID, progress=False, **how)


def averages(model, weight, X=X, **how):
    return rs.pdp(model, X, features=["a"], weights=weight, grid=GRID, progress=False, **how)


def smooth(model, weight, X=X, **how):
    phi = model(X)
    return rs.shap_dependence(
        None, X[["a"]], shap_values=phi, weights=weight, features=["a"], grid=GRID, **how
    )


def means(model, weight, X=X, **how):
    return rs.m_plot(model, X, features=["a"], weights=weight, bins=BINS, **how)


def by_weights(statistic):
    """Standard error from the derivatives of a statistic by all weights (HC0)."""
    here = np.squeeze(statistic(WEIGHT))
    moved = [np.squeeze(statistic(WEIGHT * (1 + step))) - here for step in STEP * np.eye(N)]
    return np.sqrt(np.sum(np.square(moved), axis=0)) / STEP


def unbiased(w):
    """Root of the factor that makes the variance of one weighted mean unbiased."""
    rest = 1 - 2 * np.sum(w**3) / (w.sum() * np.sum(w**2)) + np.sum(w**2) / w.sum() ** 2
    return 1 / np.sqrt(rest)


@pytest.mark.parametrize("make", [partial, smooth])
@pytest.mark.slow
def test_paired_differences_are_sandwiches(make):
    a, b = make(f, WEIGHT), make(g, WEIGHT)
    found = rs.compare(a, b, paired=(a, b), n_draws=50, rng=0)["difference_se"].values[0]
    expected = by_weights(lambda w: make(f, w)["curve"].values - make(g, w)["curve"].values)
    if make is partial:
        np.testing.assert_allclose(found, expected * unbiased(WEIGHT), rtol=1e-4)
        return
    # Levels with few effective rows have larger corrections of their leverage.
    ratio = found / expected
    assert (ratio >= 1).all()
    assert (ratio < 1 + 32 / KISH).all()


@pytest.mark.thorough
def test_shapley_values_have_sandwiches():
    found = smooth(f, WEIGHT)["curve_se"].values[0]
    ratio = found / by_weights(lambda w: smooth(f, w)["curve"].values)
    assert (ratio >= 1).all()
    assert (ratio < 1 + 32 / KISH).all()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("make", "centering"),
    [(averages, "start"), (smooth, "mean"), (means, "none")],
)
def test_missing_values_beside_the_curve(make, centering):
    how = {"X": GAPS, "missing": "bin", "centering": centering}
    found = make(f, WEIGHT, **how)["missing_curve_se"].item()
    ratio = found / by_weights(lambda w: make(f, w, **how)["missing_curve"].values)
    assert 1 <= ratio < 1 + 16 / KISH


@pytest.mark.thorough
def test_effect_of_a_missing_value():
    def made(weight):
        return rs.local_effects(
            f, GAPS, features=["a"], weights=weight, missing="bin", progress=False
        )

    found = made(WEIGHT)["missing_effect_se"].item()
    expected = by_weights(lambda w: made(w)["missing_effect"].values)
    gone = WEIGHT[GAPS["a"].isna()]
    assert found == pytest.approx(expected * unbiased(gone), rel=1e-4)


@pytest.mark.parametrize("make", [averages, smooth, means])
def test_equal_precision_weights_are_none(make):
    one, none = (make(f, weight, X=GAPS, missing="bin") for weight in (np.full(N, 2.5), None))
    for name in ("curve_se", "missing_curve_se"):
        np.testing.assert_allclose(one[name], none[name], rtol=1e-9)


GROUPS = np.repeat(np.arange(12), 5)


@pytest.mark.thorough
@pytest.mark.parametrize(("kind", "weight"), in_turn(["pdp", "m_plot", "shap"], [None, WEIGHT]))
def test_pairs_in_groups_have_the_errors_of_the_difference(kind, weight):
    """A profile is linear in its model, so that of f - g has the error of the difference."""
    made = {"pdp": partial, "m_plot": means, "shap": smooth}[kind]
    level = {"X": X.astype({"a": str})} if kind == "shap" else {}

    def profile(model):
        if kind == "shap":  # Levels, whose curve has no penalty that would be chosen anew.
            options = {"features": ["a"], "weights": weight}
            return rs.shap_dependence(None, level["X"][["a"]], shap_values=model(X), **options)
        return made(model, weight)

    a, b = profile(f), profile(g)
    found = rs.compare(a, b, paired=(a, b), groups=GROUPS, rng=0)
    apart = rs.std_error(profile(lambda X: f(X) - g(X)), groups=GROUPS)
    np.testing.assert_allclose(found["difference_se"], apart["curve_se"], rtol=1e-7)
    assert found.attrs["source"] == "pairs of rows in 12 groups"


def test_groups_of_profiles_need_their_pairs():
    a, b = partial(f, None), partial(g, None)
    with pytest.raises(ValueError, match="groups come with paired"):
        rs.compare(a, b, groups=GROUPS)
    with pytest.raises(ValueError, match="groups must be given for pairs of profiles"):
        rs.compare(rs.std_error(a, groups=GROUPS), b, paired=(a, b))


# --- what is compared -----------------------------------------------------------------------------

LEVELS = X.assign(k=np.where(X["b"] > 0.3, "v", "u"))
FEW = 25


def h(X):
    return f(X) + np.where(X["k"] == "v", X["b"] ** 2, 0.0)


def m(X):
    return g(X) - np.where(X["k"] == "v", X["b"], 0.0)


def of_both(make, model, X=LEVELS, **how):
    """A number and a category; M-plots in bins of which the last has few rows."""
    if make is rs.m_plot:
        return make(model, X, features=["a", "k"], bins=BINS, **how)
    return make(model, X, features=["a", "k"], grid=GRID, **how)


def welch(va, vb, a, b):
    """Welch's degrees of freedom."""
    return (va + vb) ** 2 / (va**2 / a + vb**2 / b)


@pytest.mark.parametrize("make", [rs.pdp, rs.m_plot])
@pytest.mark.parametrize("turned", [False, True])
def test_profiles_of_other_rows_add_their_variances(make, turned):
    a, b = of_both(make, h), of_both(make, m, LEVELS[:FEW])
    a, b = (b, a) if turned else (a, b)
    for number, name in enumerate(["a", "k"]):
        found = compared(a, b, name, None)
        n = int(a["n_grid"][number])
        part = {"feature": number, "grid": slice(n)}
        places = np.mean([one["grid_value"].isel(part).values for one in (a, b)], axis=0)
        np.testing.assert_allclose(found.grid, places)
        for one, values in zip((a, b), found.values, strict=True):
            np.testing.assert_array_equal(values, one["curve"].isel(part))
        both = sum(one["curve_cov"].isel({**part, "grid_other": slice(n)}).values for one in (a, b))
        np.testing.assert_allclose(found.covariance, both)
        variances = [one["curve_se"].isel(part).values ** 2 for one in (a, b)]
        degrees = [
            np.broadcast_to(one["n_effective"].values.reshape(2, -1), one["curve"].shape)[number]
            - 1
            for one in (a, b)
        ]
        expected = welch(*variances, *(one[:n] for one in degrees))
        np.testing.assert_allclose(found.degrees, expected)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kind", "missing", "grouped"),
    [
        (None, False, False),
        ("precision", True, False),
        ("frequency", True, False),
        (None, True, True),
        ("precision", True, True),
        ("frequency", False, True),
    ],
)
def test_pairs_have_the_covariance_of_the_profile_of_the_difference(kind, missing, grouped):
    """Also where a feature has gaps, so that not all rows have a curve."""
    weights = np.ceil(WEIGHT) if kind == "frequency" else WEIGHT
    how = {} if kind is None else {"weights": weights, "weight_kind": kind}
    table = LEVELS.assign(a=GAPS["a"]) if missing else LEVELS
    how |= {"missing": "drop"} if missing else {}
    for make, rows in ((rs.pdp, rs.ice), (rs.m_plot, rs.m_plot)):
        a, b = (of_both(make, model, table, **how) for model in (h, m))
        pairs = (a, b)
        if rows is not make:
            pairs = tuple(of_both(rows, model, table, **how) for model in (h, m))
        apart = of_both(rows, lambda X: h(X) - m(X), table, **how)
        if make is rs.pdp:
            apart = of_both(rs.ice, lambda X: h(X) - m(X), table, kind="centered",
                            centering="mean", **how)  # fmt: skip
        code = GROUPS if grouped else None
        apart = rs.std_error(apart, groups=GROUPS) if grouped else apart
        for number, name in enumerate(["a", "k"]):
            found = compared(a, b, name, pairs, code)
            n = int(a["n_grid"][number])
            own = apart["curve_cov"].values[number, :n, :n]
            np.testing.assert_allclose(found.covariance, own, rtol=1e-9, atol=1e-12)
            degrees = inference.degrees_of(one_profile(apart, name))
            np.testing.assert_allclose(found.degrees, degrees, rtol=1e-9)


@pytest.mark.thorough
def test_bins_that_only_one_has_rows_in_are_left_out():
    a = of_both(rs.m_plot, h)
    b = of_both(rs.m_plot, m, LEVELS[LEVELS["a"] < 3])
    none = of_both(
        rs.m_plot, m, LEVELS[LEVELS["a"] == 3].assign(a=lambda X: X["a"] - X["b"].abs() / 99)
    )
    for pair in ((a, b), (b, a)):
        found = compared(*pair, "a", None)
        assert len(found.grid) == len(found.degrees) == len(found.covariance) == 3
        np.testing.assert_array_equal(found.values[0], pair[0]["curve"][0, :3])
    nothing = compared(none, b, "a", None)
    assert nothing.grid.shape == nothing.degrees.shape == (0,)
    assert nothing.covariance.shape == (0, 0)
    assert rs.compare(none, b, rng=0)["reason"].values[0] == "the feature is constant"


@pytest.mark.thorough
def test_grids_bins_and_levels_must_be_the_same():
    a = of_both(rs.pdp, h)
    for other in ({"a": [0, 1, 2]}, {"a": [0, 1, 2, 3.5]}):
        b = rs.pdp(m, LEVELS, features=["a", "k"], grid=other)
        with pytest.raises(ValueError, match="one grid; those of feature 'a' differ"):
            rs.compare(a, b)
    turned = rs.pdp(m, LEVELS, features=["a", "k"], grid={**GRID, "k": ["v", "u"]})
    named = of_both(rs.pdp, m, LEVELS.replace({"k": {"v": "w"}}))
    for b in (turned, named):
        for pair in ((a, b), (b, a)):
            with pytest.raises(ValueError, match="one grid; those of feature 'k' differ"):
                rs.compare(*pair)
    bins = of_both(rs.m_plot, h)
    for edges in ([0, 0.6, 1.5, 2.5, 3], [0, 0.5, 1.5, 2.5, 3.5], [0, 1.5, 3]):
        b = rs.m_plot(m, LEVELS, features=["a", "k"], bins=rs.GivenBins(edges))
        with pytest.raises(ValueError, match="same bins; those of feature 'a' differ"):
            rs.compare(bins, b)
    named = of_both(rs.m_plot, m, LEVELS.replace({"k": {"v": "w"}}))
    for pair in ((bins, named), (named, bins)):
        with pytest.raises(ValueError, match="same bins; those of feature 'k' differ"):
            rs.compare(*pair)


def test_pairs_must_be_of_the_same_rows_and_weights():
    def curves(X=LEVELS, **how):
        return of_both(rs.ice, h, X, **how)

    a = curves()
    fewer, moved = curves(LEVELS[1:]), curves(LEVELS.set_axis(np.arange(N)[::-1]))
    for b, said in ((fewer, "got 60 and 59 rows"), (moved, "got 60 and 60 rows, or other labels")):
        with pytest.raises(ValueError, match=f"paired must be of the same rows .*{said}"):
            rs.compare(a, b, paired=(a, b))
    heavy = {"weights": WEIGHT}
    other = {"weights": WEIGHT[::-1]}
    counts = np.arange(N) % 3 + 1.0
    kinds = [{"weights": counts / 3}, {"weights": counts, "weight_kind": "frequency"}]
    for one, two in (({}, heavy), (heavy, {}), (heavy, other), kinds, kinds[::-1]):
        pair = curves(**one), curves(**two)
        with pytest.raises(ValueError, match="paired must have the same weights; got others"):
            rs.compare(*pair, paired=pair)
    # Equal numbers that are of another kind.
    alike = [
        {"weights": np.r_[np.ones(N)], "weight_kind": kind} for kind in ("precision", "frequency")
    ]
    pair = tuple(curves(**one) for one in alike)
    with pytest.raises(ValueError, match="paired must have the same weights; got others"):
        rs.compare(*pair, paired=pair)
    rows = of_both(rs.m_plot, h)
    place = rows.copy(deep=True)
    place["x"][0, np.flatnonzero(LEVELS["a"] == 1)[0]] = 1.2
    close = rs.compare(rows, rows, paired=(rows, place))
    assert close.attrs["source"] == "pairs of rows"


@pytest.mark.thorough
def test_sources_of_errors_and_refusals_of_groups():
    a, b = of_both(rs.ice, h), of_both(rs.ice, m)
    grouped = rs.std_error(a, groups=GROUPS)
    assert rs.compare(grouped, b).attrs["source"] == "rows in 12 groups against rows, independent"
    assert rs.compare(b, grouped).attrs["source"] == "rows against rows in 12 groups, independent"
    for pair in ((grouped, b), (b, grouped), (grouped, grouped)):
        with pytest.raises(ValueError, match="groups must be given for pairs of profiles with"):
            rs.compare(*pair, paired=pair)
    found = rs.compare(a, b, paired=(a, b))
    assert found.attrs["source"] == "pairs of rows"
    assert "Bins" not in str(rs.summary(found))
    held = a.assign_attrs(fitted_model="one")
    with pytest.raises(ValueError, match="the difference of two profiles"):
        rs.compare(held, held)
    with pytest.raises(ValueError, match="pairs are of rows alone"):
        rs.compare(held, b, paired=(a, b))
    assert "independent" in rs.compare(held, b).attrs["source"]


@pytest.mark.thorough
def test_draws_of_a_feature_are_its_own():
    """The first feature has the same draws, whatever comes after it."""
    a, b = of_both(rs.pdp, h), of_both(rs.pdp, m)
    whole = rs.compare(a, b, rng=3, n_draws=400)
    first = rs.compare(a.isel(feature=[0]), b.isel(feature=[0]), rng=3, n_draws=400)
    np.testing.assert_array_equal(whole["difference_band"][0], first["difference_band"][0])
