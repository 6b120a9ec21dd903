"""The matrix of interactions: every entry is the best split that a search of its own finds."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import rhale_stats as rs
from rhale_stats.regional import regions as interactions
from rhale_stats.regional.splits import SplitCandidates

N = 240


def interacting(rng, n=N):
    """x0 and x1 interact, x2 with neither."""
    X = pd.DataFrame(rng.uniform(-1, 1, size=(n, 3)), columns=["x0", "x1", "x2"])
    jacobian = np.column_stack([X["x1"] * 2, X["x0"] * 2, 3 * X["x2"]])
    return X, jacobian + rng.normal(size=(n, 3)) / 4


def local_of(X, jacobian, **options):
    return rs.local_effects(None, X, jacobian=jacobian, features=list(X.columns), **options)


@pytest.mark.thorough
@pytest.mark.parametrize("loss", ["index", "output"])
def test_entries_are_the_best_splits_of_single_columns(rng, loss):
    X, jacobian = interacting(rng)
    local = local_of(X, jacobian)
    options = {"bins": rs.OptimalBins(20), "thresholds": "equal_width", "loss": loss}
    found = rs.interaction_matrix(local, n_permutations=0, **options)
    assert found["loss_drop"].dims == ("feature", "conditioning")
    assert np.isnan(np.diag(found["loss_drop"])).all()
    assert found["pvalue"].isnull().all()
    for feature in X:
        for name in X.columns.drop(feature):
            tree = rs.regions(
                local, feature, conditioning=X[[name]], max_depth=1, min_drop=0, min_share=0,
                **options,
            )  # fmt: skip
            entry = found.sel(feature=feature, conditioning=name)
            assert_allclose(entry["loss"], tree["loss"][0], rtol=1e-9)
            expected = max(float(tree["best_drop"].fillna(0)[0]), 0)
            assert_allclose(entry["loss_drop"], expected, rtol=1e-9, atol=1e-12)
            if expected:
                assert str(entry["best"].values) == str(tree["best"][0].values)


def test_what_interacts(rng):
    X, jacobian = interacting(rng)
    found = rs.interaction_matrix(
        local_of(X, jacobian), bins=rs.OptimalBins(20), n_permutations=59, rng=0, progress=False
    )
    drop, p = found["loss_drop"], found["pvalue"]
    for pair in ({"feature": "x0", "conditioning": "x1"}, {"feature": "x1", "conditioning": "x0"}):
        assert drop.sel(pair) > 0.5
        assert_allclose(p.sel(pair), 1 / 60)  # none of 59 is as good
    for pair in ({"feature": "x0", "conditioning": "x2"}, {"feature": "x1", "conditioning": "x2"}):
        assert drop.sel(pair) < 0.1
        assert p.sel(pair) > 1 / 60
    # Holm: times the number of pairs, for the least of them.
    assert_allclose(found["pvalue_adjusted"].min(), 6 / 60)
    assert (found["pvalue_adjusted"] >= p - 1e-12).where(p.notnull(), True).all()
    known = p.notnull()
    assert_array_equal(known, ~np.eye(3, dtype=bool))


def test_pvalues_are_made_again_by_their_seed(rng):
    X, jacobian = interacting(rng)
    options = {"bins": rs.EqualWidthBins(5), "n_permutations": 9, "progress": False}
    one, two = (rs.interaction_matrix(local_of(X, jacobian), rng=5, **options) for _ in range(2))
    xr.testing.assert_identical(one, two)


@pytest.mark.slow
def test_pvalues_of_noise_are_uniform():
    """150 tables without interactions, 2 pairs each: p-values are k / 10, each in 10 % of cases."""
    rng = np.random.default_rng(1)
    found = []
    for _ in range(150):
        X = pd.DataFrame(rng.uniform(size=(80, 2)), columns=["x0", "x1"])
        local = local_of(X, rng.normal(size=(80, 2)))
        matrix = rs.interaction_matrix(
            local, bins=rs.EqualWidthBins(4), n_permutations=9, rng=rng, progress=False
        )
        found.append(matrix["pvalue"].values[[0, 1], [1, 0]])
    counts = np.bincount(np.round(10 * np.ravel(found)).astype(int), minlength=11)[1:]
    assert stats.chisquare(counts).pvalue > 0.001


def test_other_columns(rng):
    """Columns that the model does not know, one of them named as a feature."""
    X, jacobian = interacting(rng)
    given = pd.DataFrame(
        {"x1": X["x1"], "positive": X["x1"] > 0, "group": np.tile(["a", "b", "c"], N // 3)}
    )
    found = rs.interaction_matrix(
        local_of(X, jacobian), conditioning=given, bins=rs.OptimalBins(20), n_permutations=0
    )
    assert list(found["conditioning"].values) == ["x1", "positive", "group"]
    assert np.isnan(found["loss_drop"].sel(feature="x1", conditioning="x1"))
    entry = found.sel(feature="x0", conditioning="positive")
    assert str(entry["best"].values) == "positive = False"
    assert entry["loss_drop"] > 0.4
    assert found["loss_drop"].sel(feature="x0", conditioning="group") < 0.1


def test_nothing_to_find(rng):
    """A constant feature has no loss; a constant effect leaves nothing to explain."""
    X, jacobian = interacting(rng)
    X["x1"], jacobian[:, 2] = 1.0, 5.0
    found = rs.interaction_matrix(
        local_of(X, jacobian), bins=rs.OptimalBins(20), n_permutations=9, rng=0, progress=False
    )
    assert np.isnan(found["loss"].sel(feature="x1"))
    assert found["loss_drop"].sel(feature="x1").isnull().all()
    assert found["loss_drop"].sel(feature="x2", conditioning="x0") == 0
    assert found["pvalue"].sel(feature="x2", conditioning="x0") == 1
    # A constant column allows no split.
    assert np.isnan(found["loss_drop"].sel(feature="x0", conditioning="x1"))
    assert np.isnan(found["pvalue"].sel(feature="x0", conditioning="x1"))
    assert str(found["best"].sel(feature="x0", conditioning="x1").values) == ""


def test_frequency_weights_are_repeated_rows(rng):
    X, jacobian = interacting(rng)
    counts = rng.integers(1, 4, N)
    again = np.repeat(np.arange(N), counts)
    options = {"bins": rs.OptimalBins(20), "n_permutations": 0}
    one = rs.interaction_matrix(
        local_of(X, jacobian, weights=counts, weight_kind="frequency"), **options
    )
    two = rs.interaction_matrix(local_of(X.iloc[again], jacobian[again]), **options)
    assert_allclose(one["loss_drop"], two["loss_drop"], rtol=1e-9, atol=1e-12)
    assert_array_equal(one["best"], two["best"])


def test_rows_of_weight_zero_are_absent(rng):
    X, jacobian = interacting(rng)
    weights = rng.gamma(2, size=N) * (np.arange(N) % 3 > 0)
    here = weights > 0
    options = {"bins": rs.OptimalBins(20), "n_permutations": 0}
    one = rs.interaction_matrix(local_of(X, jacobian, weights=weights), **options)
    two = rs.interaction_matrix(local_of(X[here], jacobian[here], weights=weights[here]), **options)
    assert_allclose(one["loss_drop"], two["loss_drop"], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_permutations": -1}, ValueError, "n_permutations must be at least 0; got -1"),
        ({"adjust": "tukey"}, ValueError, "adjust must be.*got 'tukey'"),
        ({"loss": "variance"}, ValueError, "loss must be.*got 'variance'"),
        ({"bins": 2.5}, TypeError, "bins must be a rule.*got 2.5"),
    ],
)
def test_settings_refused(rng, options, error, message):
    X, jacobian = interacting(rng)
    with pytest.raises(error, match=message):
        rs.interaction_matrix(local_of(X, jacobian), **options)


def test_what_a_matrix_says_of_itself(rng):
    X, jacobian = interacting(rng)
    local = local_of(X, jacobian)
    options = {"bins": rs.EqualWidthBins(4), "n_thresholds": 7, "thresholds": "equal_width"}
    found = rs.interaction_matrix(local, n_permutations=0, loss="output", **options)
    facts = {
        "method": "interaction matrix", "loss_kind": "output", "n_permutations": 0,
        "thresholds": "equal_width", "n_thresholds": 7, "min_obs": 12, "output_name": "output",
        "bin_rule": "EqualWidthBins", "output_units": "", "n_rows": N,
    }  # fmt: skip
    assert {name: found.attrs[name] for name in facts} == facts
    assert not {"seed", "n_groups"} & set(found.attrs)
    assert found["loss"].attrs["units"] == "output units"
    assert found["pvalue_adjusted"].attrs["adjust"] == "holm"
    assert found["feature"].attrs == {"long_name": "feature"}
    assert found["conditioning"].attrs == {"long_name": "conditioning column"}
    tested = rs.interaction_matrix(
        local, n_permutations=1, rng=3, groups=np.arange(N) // 4, adjust="bonferroni", **options
    )
    assert (tested.attrs["seed"], tested.attrs["n_groups"]) == (3, 60)
    assert tested["pvalue_adjusted"].attrs["adjust"] == "bonferroni"
    assert tested["loss"].attrs["units"] == "(output units)^2 per feature unit"


def test_p_values_of_every_column_by_hand(monkeypatch):
    """(1 + b) / (1 + n), where b counts ties, too: they are equal up to rounding."""
    observed = [[1.0, 2.0], [3.0], []]
    drawn = iter(
        [
            [[2.5, 0.0], [1.0], []],
            [[0.0, 2.0 * (1 - 1e-9)], [2.0], []],
            [[2.0 * (1 - 1e-8), 0.0], [3.0 * (1 - 1e-10)], []],
            [[0.0, 2.0], [0.0], []],
        ]
    )

    def largest(values):
        return [max(of_column, default=-np.inf) for of_column in values]

    class Test:
        def largest(self, tried):
            assert [one.codes.tolist() for one in tried] == [[0, 1]] * 3
            return np.array(largest(observed))

        def drawn(self, draw, n_draws, tried):
            assert [one.codes.tolist() for one in tried] == [[1, 0]] * 3
            return np.array([largest(next(drawn)) for _ in range(n_draws)])

        def test(self):
            return self

    monkeypatch.setattr(interactions, "null_rows", lambda *_: (lambda _: "drawn", np.array([1, 0])))
    tried = [SplitCandidates(np.arange(2), 2)] * 3
    work = SimpleNamespace(groups=None, rng=None)
    found = interactions._pvalues(work, None, Test(), tried, 4)
    assert_allclose(found, [4 / 5, 2 / 5, 1])


def test_steps_of_the_progress(rng, monkeypatch):
    X, jacobian = interacting(rng)
    steps = []

    class Bar(AbstractContextManager):
        def update(self, n=1):
            steps.append(n)

        def __exit__(self, *_):
            steps.append("end")

    monkeypatch.setattr(interactions, "progress_bar", lambda total, *_, progress: Bar())
    rs.interaction_matrix(local_of(X, jacobian), bins=rs.EqualWidthBins(2), n_permutations=0)
    assert steps == [1, 1, 1, "end"]
