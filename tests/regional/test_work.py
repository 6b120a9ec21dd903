"""What the trees of all features share: settings that are refused, rows that search and judge."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import rhale_stats as rs
from rhale_stats.arrays.resample import honest_split
from rhale_stats.local.rows import columns
from rhale_stats.regional.losses import RootBins
from rhale_stats.regional.search import _honest_rows, _independent_rows, work_of


def local_of(n, weights=None, kind="precision", seed=0):
    X = np.random.default_rng(seed).uniform(size=(n, 2))
    options = {} if weights is None else {"weights": weights, "weight_kind": kind}
    return rs.local_effects(None, X, jacobian=X, **options)


def work(local, *, bins=None, loss="index", n_folds=None, groups=None, rng=0, **settings):
    return work_of(local, bins, rs.SplitSearch(**settings), loss, n_folds, rng, groups)


@pytest.mark.parametrize(
    ("n", "test", "min_obs", "least"),
    [
        # A twentieth of the rows, and 10 at least; with honest trees half of it, and 10 at least.
        (419, None, None, 20),
        (420, None, None, 21),
        (220, None, None, 11),
        (199, None, None, 10),
        (21, None, None, 10),
        (900, "honest", None, 22),
        (419, "honest", None, 10),
        (100, "honest", 7, 7),
        (900, None, 3, 3),
    ],
)
def test_least_rows_of_a_region(n, test, min_obs, least):
    found = work(local_of(n), test=test, min_obs=min_obs)
    assert found.min_obs == least
    assert found.problem(0).least_rows == pytest.approx(least, rel=1e-9)


def test_effective_rows_by_hand():
    """Kish's number of precision weights, the sum of frequencies, or a count."""
    rows = np.array([0, 2, 3])
    plain, precise, counted = (
        columns(local_of(5, weights, kind))
        for weights, kind in (
            (None, "precision"),
            ([1.0, 2.0, 3.0, 2.0, 1.0], "precision"),
            ([1, 2, 3, 2, 1], "frequency"),
        )
    )
    assert [_independent_rows(plain), _independent_rows(plain, rows)] == [5, 3]
    assert _independent_rows(precise) == pytest.approx(81 / 19)
    assert _independent_rows(precise, rows) == pytest.approx(36 / 14)
    assert [_independent_rows(counted), _independent_rows(counted, rows)] == [9, 6]


def test_rows_that_search_and_rows_that_judge():
    """Half of the rows; whole groups; only rows that have a weight."""
    present = np.ones(10, dtype=bool)
    present[[1, 4]] = False
    chosen = honest_split(10, 0.5, 3)[present]
    search, judge = _honest_rows(present, 0.5, 3, None)
    assert_array_equal(search, np.flatnonzero(chosen))
    assert_array_equal(judge, np.flatnonzero(~chosen))
    groups = np.array([0, 0, 1, 1, 2, 2, 3, 3])
    of_groups = honest_split(4, 0.5, 3)
    search, judge = _honest_rows(present, 0.5, 3, groups)
    assert_array_equal(search, np.flatnonzero(of_groups[groups]))
    assert_array_equal(judge, np.flatnonzero(~of_groups[groups]))
    only = honest_split(10, 0.5, 3)
    for missing, n_search, n_judge in ((only, 0, 5), (~only, 5, 0)):
        message = (
            f"honest_fraction must leave rows on both sides; of 5 rows with a value and a weight "
            f"{n_search} choose splits and {n_judge} judge them. Use more rows, or another rng"
        )
        with pytest.raises(ValueError, match=message):
            _honest_rows(~missing, 0.5, 3, None)


def test_facts_of_a_search():
    local = local_of(40)
    assert work(local, test=None).facts == {}
    assert work(local, test="permutation").facts == {"seed": 0}
    assert work(local, test=None, n_folds=3).facts == {"seed": 0}
    honest = work(local, test="honest", honest_fraction=0.25)
    assert {name: honest.facts[name] for name in ("seed", "honest_fraction")} == {
        "seed": 0, "honest_fraction": 0.25,
    }  # fmt: skip
    chosen = honest_split(40, 0.25, honest.facts["honest_seed"])
    assert_array_equal(honest.search, np.flatnonzero(chosen))
    assert_array_equal(honest.judge, np.flatnonzero(~chosen))
    plain = work(local, test=None)
    assert_array_equal(plain.search, np.arange(40))
    assert plain.judge is None
    grouped = work(local, test=None, groups=np.arange(40) // 8)
    assert grouped.facts == {"n_groups": 5}
    assert_array_equal(grouped.groups, np.arange(40) // 8)
    assert work(local, test=None, groups=np.arange(40) < 9).facts == {"n_groups": 2}


def test_rows_without_weight_do_not_take_part():
    weights = np.array([0.5, 0.0, 1.5, 1.0] * 10)
    found = work(local_of(40, weights), test=None)
    assert_array_equal(found.present, weights > 0)
    assert_array_equal(found.search, np.arange(30))
    groups = np.where(weights > 0, np.arange(40) % 3, 9)
    assert work(local_of(40, weights), test=None, groups=groups).facts == {"n_groups": 3}
    (column,) = found.conditioning(None, "x0")
    expected = found.local["x"].values[weights > 0, 1]
    assert_array_equal(column.values, expected)
    (column,) = work(local_of(40), test=None).conditioning(None, "x0")
    assert_array_equal(column.values, local_of(40)["x"].values[:, 1])


def test_bins_of_all_nodes():
    """At least ten rows, or a twentieth of the rows that search; other rules as they are."""
    local = local_of(300)
    found = work(local, test="honest", honest_fraction=0.5).problem(0).rule
    assert isinstance(found, RootBins)
    assert found.least == 7.5
    assert work(local, test=None).problem(0).rule.least == 10
    rule = rs.EqualWidthBins(3)
    assert work(local, bins=rule).problem(0).rule is rule
    assert work(local, loss="output").problem(0).loss == "output"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_folds": 31}, "n_folds must not exceed the number of rows; got 31 for 30"),
        (
            {"n_folds": 5, "test": "honest"},
            "n_folds must be None with test='honest', which judges every split on other rows",
        ),
        ({"groups": np.zeros(30)}, "groups must name at least two groups; got one"),
        ({"loss": "spread"}, "loss must be one of 'index', 'output'; got 'spread'"),
        (
            {"n_permutations": 8, "level": 0.1},
            "n_permutations must be at least 1 / level - 1 for any split to pass; got 8 at level "
            "0.1",
        ),
    ],
)
def test_settings_that_cannot_be(options, message):
    with pytest.raises(ValueError, match=message):
        work(local_of(30), **options)


def test_settings_at_their_limits():
    assert work(local_of(30), n_folds=30).n_folds == 30
    assert work(local_of(30), n_permutations=9, level=0.1).settings.n_permutations == 9
    assert work(local_of(30), n_permutations=1, level=0.5).settings.n_permutations == 1
    assert work(local_of(30), test=None, n_permutations=1).settings.n_permutations == 1
    assert work(local_of(30), n_folds=2).facts == {"seed": 0}
