"""How splits are chosen and tested; regions as statistics. See study ``regions``."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import rhale_stats as rs
from rhale_stats.arrays.regions import at_most
from rhale_stats.local.rows import columns
from rhale_stats.regional import search
from rhale_stats.regional.losses import EffectNode, NodeFacts, problem_of, split_losses
from rhale_stats.regional.search import SplitSearch, SplitTree, Verdict, best_of
from rhale_stats.regional.splits import (
    ABOVE,
    UP_TO,
    Condition,
    Conditioning,
    SplitCandidates,
    candidates_of,
)
from studies.regions import N_CONDITIONING, two_groups, without_regions

# A size or a coverage is refused at this level: one test in a thousand fails by chance.
REFUSED = 0.001


def local_of(x, effect):
    """The first column with its local effects, and columns to condition on."""
    X = pd.DataFrame(x, columns=[f"x{column}" for column in range(x.shape[1])])
    jacobian = np.column_stack([effect, np.zeros((len(x), N_CONDITIONING))])
    return rs.local_effects(None, X, jacobian=jacobian)


# --- one node: what is best, what is refined, what is made ---------------------------------------


def test_the_first_of_equal_splits_is_the_best():
    """Up to a tie; none if none is allowed."""
    losses = [np.array([np.inf, 3.0]), np.array([]), np.array([2.0, 1.0 + 1e-3, 1.0])]
    assert best_of(losses, 0.0) == (2, 2, 1.0)
    assert best_of(losses, 1e-3) == (2, 1, 1.0 + 1e-3)
    assert best_of(losses, 1.0) == (2, 0, 2.0)
    assert best_of(losses, 2.0) == (0, 1, 3.0)
    assert best_of([np.array([np.inf]), np.array([])], 1.0) is None
    assert best_of([], 1.0) is None


def node_with(loss, at=None):
    rows = np.arange(4) if at is None else at
    return NodeFacts(rows, None, float(len(rows)), float(len(rows)), loss, True, 0.0)


COLUMN = Conditioning("z", "numeric", np.array([0.0, 1.0, 2.0, 3.0]))
SIDES = (
    Condition("z", UP_TO, "z ≤ 1.5", threshold=1.5),
    Condition("z", ABOVE, "z > 1.5", threshold=1.5),
)


def judged(monkeypatch, loss, pvalue=np.nan, *, other=None, left=np.nan, test="permutation"):
    """The verdict on a split that leaves ``loss`` of 1; ``other`` rows lose ``left``."""
    asked = []

    def p(self, node, tried):
        asked.append((node, tried))
        return pvalue

    def losses(node, rows, tried):
        assert [one.codes.tolist() for one in tried] == [[0, 0, 1, 1]]
        assert [one.n_codes for one in tried] == [2]
        return [np.array([left])]

    monkeypatch.setattr(SplitTree, "_pvalue", p)
    monkeypatch.setattr(search, "split_losses", losses)
    settings = SplitSearch(min_drop=0.25, level=0.05, test=test)
    tree = SplitTree(None, [COLUMN], settings, np.random.default_rng(0))
    node, best = node_with(1.0), search._Best(0, loss, SIDES, ["tried"])
    found = tree.judge(node, best, other)
    assert all(one is (node if other is None else other) for one, _ in asked)
    return found, len(asked)


def test_a_split_is_made_if_its_drop_is_large_and_its_p_small(monkeypatch):
    made = Verdict("z ≤ 1.5", 0.25, 0.25, 0.05, True)
    assert judged(monkeypatch, 0.75, 0.05) == (made, 1)
    found, _ = judged(monkeypatch, 0.75, 0.051)
    assert (found.best, found.best_drop, found.pvalue, found.splits) == (
        "z ≤ 1.5", 0.25, 0.051, False,
    )  # fmt: skip
    assert np.isnan(found.drop)
    # Of a drop that is too small no p-value is computed.
    found, n_tests = judged(monkeypatch, 0.76, 0.05)
    assert n_tests == 0
    assert (found.best_drop, found.splits) == (pytest.approx(0.24), False)
    assert np.isnan([found.drop, found.pvalue]).all()
    found, n_tests = judged(monkeypatch, 0.75, test=None)
    assert (n_tests, found.splits, found.drop) == (0, True, 0.25)
    assert np.isnan(found.pvalue)


def test_other_rows_decide_on_an_honest_split(monkeypatch):
    """By their own drop and p-value; what the search found is said as well."""
    other = node_with(4.0)
    made = Verdict("z ≤ 1.5", 0.5, 0.25, 0.05, True)
    options = {"other": other, "test": "honest"}
    assert judged(monkeypatch, 0.5, 0.05, left=3.0, **options) == (made, 1)
    for left, p in ((3.01, 0.05), (3.0, 0.051)):
        found, _ = judged(monkeypatch, 0.5, p, left=left, **options)
        assert (found.best_drop, found.pvalue, found.splits) == (0.5, p, False)
        assert np.isnan(found.drop)
    little, n_tests = judged(monkeypatch, 0.5, 0.05, left=0.25, other=node_with(0.5), test="honest")
    assert (n_tests, little.splits, little.drop) == (1, True, 0.5)
    # A side without rows, or nothing to explain: there is no test.
    for left, loss in ((np.inf, 4.0), (0.0, 0.0), (0.0, np.nan)):
        found, n_tests = judged(
            monkeypatch, 0.5, 0.05, left=left, other=node_with(loss), test="honest"
        )
        assert (n_tests, found.best_drop, found.splits) == (0, 0.5, False)
        assert np.isnan(found.pvalue)


def by_chance(
    monkeypatch, observed, drawn, *, level=0.05, most=199, degrees=(1.0, -np.inf), groups=None
):
    """The p-value if permutations have these largest statistics, and how many were made."""
    given = iter(drawn)
    drawings = []

    order = np.array([3, 1, 0, 2])

    class Test:
        degrees = "degrees"

        def largest(self, tried):
            return np.array([observed, -np.inf])

        def of_splits(self, statistic, tried):
            assert statistic == "degrees"
            return [np.array([degrees]), np.empty((1, 0))]

        def drawn(self, draw, n_draws, tried):
            assert [one.codes.tolist() for one in tried] == [[3, 1, 0, 2]]
            drawings.extend(draw(1) for _ in range(n_draws))
            return np.array([[-np.inf, next(given)] for _ in range(n_draws)])

    monkeypatch.setattr(search, "MIN_DRAWN_ROWS", 0)  # no more than are needed
    monkeypatch.setattr(search, "null_rows", lambda *_: (lambda _: "drawn", order))
    monkeypatch.setattr(NodeFacts, "test", lambda self: Test(), raising=False)
    settings = SplitSearch(level=level, n_permutations=most)
    tree = SplitTree(None, [COLUMN], settings, np.random.default_rng(0), groups=groups)
    return tree._pvalue(node_with(1.0), [SplitCandidates(np.arange(4), 4)]), len(drawings)


def test_p_of_permutations_by_hand(monkeypatch):
    """(1 + b) / (1 + n); b / n where it stops, because P is above the level for certain."""
    none, all_, half = [0.0] * 199, [2.0] * 199, [2.0, 0.0] * 100
    assert by_chance(monkeypatch, 1.0, none) == (1 / 200, 199)
    assert by_chance(monkeypatch, 1.0, all_) == (1.0, 10)
    assert by_chance(monkeypatch, 1.0, half) == (10 / 19, 19)
    assert by_chance(monkeypatch, 1.0, [2.0] * 9 + none[9:]) == (10 / 200, 199)
    assert by_chance(monkeypatch, 1.0, [*none[:198], 2.0]) == (2 / 200, 199)
    # Ties count, up to rounding.
    assert by_chance(monkeypatch, 1.0, [1.0] * 199) == (1.0, 10)
    assert by_chance(monkeypatch, 1.0, [1 - 1e-10] * 199) == (1.0, 10)
    assert by_chance(monkeypatch, 1.0, [1 - 1e-9] * 199) == (1.0, 10)
    assert by_chance(monkeypatch, 1.0, [1 - 1e-8] * 199) == (1 / 200, 199)
    # As many as make the level: 5 of 9 at 0.5, 2 at 0.2.
    assert by_chance(monkeypatch, 1.0, all_, level=0.5, most=9) == (1.0, 5)
    assert by_chance(monkeypatch, 1.0, all_, level=0.2, most=9) == (1.0, 2)
    assert by_chance(monkeypatch, 1.0, all_, level=0.21, most=9) == (1.0, 3)


def test_few_rows_are_drawn_many_times_at_once_with_the_same_numbers(monkeypatch):
    """Also in the nodes below, for which what was drawn in vain is drawn again."""
    rng = np.random.default_rng(3)
    x, z, noise = rng.normal(size=(3, 200))
    g = 3 * (z > 0) + 0.5 * (noise > 0) + rng.normal(size=200)
    local = rs.local_effects(
        None, np.stack([x, z, noise], 1), jacobian=lambda X: np.stack([g, 0 * g, 0 * g], 1)
    )
    at_once, by_need = [], []
    for trees, rows in ((at_once, search.MIN_DRAWN_ROWS), (by_need, 0)):
        monkeypatch.setattr(search, "MIN_DRAWN_ROWS", rows)
        trees += [rs.regions(local, "x0", level=level, rng=1) for level in (0.01, 0.2, 0.5)]
    for first, second in zip(at_once, by_need, strict=True):
        assert first.identical(second)
    assert any((tree["pvalue"][1:] > 0.05).any() for tree in at_once)


def test_a_bound_of_p_saves_permutations(monkeypatch):
    """A bound that is tiny is the p-value; with a small one 2 / level are enough."""
    degrees = np.array([1000.0, 500.0])
    tiny, small, large = 45.0, 14.0, 9.0
    bounds = [at_most(one, degrees) for one in (tiny, small, large)]
    assert bounds[0] < 1e-8 < bounds[1] < 1e-3 < bounds[2]
    options = {"degrees": (1000.0, -np.inf, 500.0)}
    none = [0.0] * 199
    assert by_chance(monkeypatch, tiny, none, **options) == (bounds[0], 0)
    assert by_chance(monkeypatch, small, none, **options) == (1 / 40, 39)
    assert by_chance(monkeypatch, large, none, **options) == (1 / 200, 199)
    # One that is as good is known to be there: all are drawn.
    assert by_chance(monkeypatch, small, [99.0, *none], **options) == (2 / 200, 199)
    assert by_chance(monkeypatch, small, none, most=19, **options) == (1 / 20, 19)
    assert by_chance(monkeypatch, small, none, level=0.3, **options) == (1 / 7, 6)
    # Signs of groups have other tails.
    for observed in (tiny, small):
        found = by_chance(monkeypatch, observed, none, groups=np.arange(4), **options)
        assert found == (1 / 200, 199)
    # On the limits, which belong to the smaller side.
    monkeypatch.setattr(search, "CLEAR", bounds[0])
    monkeypatch.setattr(search, "NEARLY", bounds[1])
    assert by_chance(monkeypatch, tiny, none, **options) == (bounds[0], 0)
    assert by_chance(monkeypatch, small, none, **options) == (1 / 40, 39)


def stepwise(cut, n=1200, n_thresholds=3, scale=1.0, **options):
    """A tree whose effects jump by a scale behind the ``cut``-th of the values of z, in one bin."""
    rng = np.random.default_rng(6)
    z = rng.permutation(np.arange(float(n)))
    X = pd.DataFrame({"x0": rng.uniform(size=n)})
    local = rs.local_effects(None, X, jacobian=scale * (z > cut).astype(float)[:, None])
    problem = problem_of(
        columns(local), 0, "x0", rs.EqualWidthBins(1), error=0.0, loss="index", min_obs=2
    )
    settings = SplitSearch(n_thresholds=n_thresholds, min_share=0.0, **options)
    column = Conditioning("z", "numeric", z)
    return SplitTree(problem, [column], settings, rng), problem.node(np.arange(n), 0.0), column


@pytest.mark.thorough
@pytest.mark.parametrize("n_thresholds", [1, 3, 20])
@pytest.mark.parametrize("cut", [2, 18, 19, 298, 299, 300, 598, 1196])
def test_a_jump_is_found_among_many_values(cut, n_thresholds):
    """Step by step; in the end nothing is left on either side of it."""
    tree, node, column = stepwise(cut, n_thresholds=n_thresholds)
    best = tree.best(node, None)
    assert best.loss == pytest.approx(0, abs=1e-12)
    assert best.column == 0
    for side, expected in zip(best.sides, (column.values <= cut, column.values > cut), strict=True):
        assert (column.meets(side, node.row_numbers) == expected).all()
    assert best.tried[0].thresholds.tolist() == [
        -(-1200 * k // (n_thresholds + 1)) - 1 for k in range(1, n_thresholds + 1)
    ]


def test_a_jump_is_found_in_any_units():
    """Ties are relative to the loss."""
    for scale in (1e-6, 1e6):
        tree, node, _ = stepwise(100, scale=scale)
        assert tree.best(node, None).sides[0].text == "z ≤ 100"


def test_other_thresholds_are_not_refined():
    tree, node, _ = stepwise(100, n_thresholds=3, thresholds="equal_width")
    assert tree.best(node, None).sides[0].text == "z ≤ 299.5"


@pytest.mark.parametrize("scale", [1.0, 1e-6])
@pytest.mark.parametrize("cut", [150, 299, 1180])
def test_a_worse_threshold_does_not_replace_the_quantile(cut, scale, monkeypatch):
    """Where the bins that are held mislead: the refined threshold is tried with its own bins."""

    losses_of = EffectNode.losses

    def opposite(self, sums, *, in_bins):
        """The worst threshold looks like the best one."""
        losses = losses_of(self, sums, in_bins=False)
        return scale**2 - losses if in_bins else losses

    monkeypatch.setattr(EffectNode, "losses", opposite)
    tree, node, column = stepwise(cut, n_thresholds=7, scale=scale)
    tried = candidates_of(column, "quantile", 7)
    (losses,) = split_losses(node, node.rows, [tried])
    least = int(losses.argmin())
    best = tree.best(node, None)
    assert best.loss == losses[least]
    left = column.values <= tried.thresholds[least]
    assert (column.meets(best.sides[0], node.row_numbers) == left).all()


def test_rows_under_the_null(rng):
    """Neighbours change places in blocks of four; with groups all rows of one change their sign."""
    n = 10
    x = rng.permutation(n).astype(float)
    local = rs.local_effects(None, x[:, None], jacobian=x[:, None])
    problem = problem_of(
        columns(local), 0, "x0", rs.EqualWidthBins(1), error=0.0, loss="index", min_obs=2
    )
    node = problem.node(np.arange(n), 0.0)
    draw, order = search.null_rows(problem, node, node.test(), None, rng)
    assert x[order].tolist() == sorted(x)
    drawn = draw(40).effect.reshape(40, n) + node.rows.centre
    # Rows are in order, but for their block: 0 to 3, 4 to 7, and the last two.
    assert ((drawn // 4) == np.arange(n) // 4).all()
    assert all(len(np.unique(drawn[:, at])) == (4 if at < 8 else 2) for at in range(n))
    few = problem.node(np.arange(3), 0.0)
    draw, order = search.null_rows(problem, few, few.test(), None, rng)
    values = {tuple(row) for row in draw(100).effect.reshape(100, 3) + few.rows.centre}
    assert len(values) == 6
    # Of two groups among all three; the third has no rows in this node.
    groups = np.array([0, 2, 0, 0, 2, 1, 1, 2, 1, 0])
    at = np.flatnonzero(groups != 1)
    node = problem.node(at, 0.0)
    draw, order = search.null_rows(problem, node, node.test(), groups, rng)
    assert order.tolist() == list(range(7))
    apart = node.test().rows.apart((groups[at] == 2).astype(int)).effect
    with np.errstate(invalid="ignore"):
        drawn = np.sign(draw(60).effect.reshape(60, -1) / apart)
        signs = {tuple(row[[0, 1, 2]]) for row in drawn}
    assert signs == {(a, b, a) for a in (-1.0, 1.0) for b in (-1.0, 1.0)}


def test_nothing_is_the_least_of_no_splits():
    assert best_of([np.array([])], 0.0) is None
    some = [np.array([]), np.array([2.0, 1.0]), np.array([3.0])]
    assert best_of(some, 0.0) == (1, 1, 1.0)


def test_a_tree_ends_at_its_depth_and_where_nothing_is_left():
    """Two columns part the effects into four; with a depth of one into two."""
    a, b = np.tile([0.0, 0.0, 1.0, 1.0], 40), np.tile([0.0, 1.0], 80)
    X = pd.DataFrame({"x0": np.linspace(0, 1, 160), "a": a, "b": b})
    jacobian = np.column_stack([4 * a + b + 2 * a * b, 0 * a, 0 * b])
    local = rs.local_effects(None, X, jacobian=jacobian, features=[*X])
    options = {"bins": rs.EqualWidthBins(1), "test": None, "min_share": 0.0}
    rules = [
        ["all rows"],
        ["all rows", "a = 0", "a = 1"],
        [
            "all rows", "a = 0", "a = 0 and b = 0", "a = 0 and b = 1", "a = 1", "a = 1 and b = 0",
            "a = 1 and b = 1",
        ],
    ]  # fmt: skip
    for depth in range(4):
        tree = rs.regions(local, "x0", max_depth=depth, **options)
        assert tree["rule"].values.tolist() == rules[min(depth, 2)]
    assert tree["parent"].values.tolist() == [-1, 0, 1, 1, 0, 4, 4]
    assert tree["depth"].values.tolist() == [0, 1, 2, 2, 1, 2, 2]
    assert tree["region"].values.tolist() == [-1, -1, 0, 1, -1, 2, 3]
    assert tree["region_of_row"].values.tolist() == [0, 1, 2, 3] * 40
    assert tree["condition_feature"].values.tolist() == ["", "a", "b", "b", "a", "b", "b"]
    assert tree["condition"].values.tolist() == [
        "all rows", "a = 0", "b = 0", "b = 1", "a = 1", "b = 0", "b = 1",
    ]  # fmt: skip
    assert tree["levels"].values.tolist() == ["", "[0]", "[0]", "[1]", "[1]", "[0]", "[1]"]


@pytest.mark.parametrize("name", ["min_drop", "min_share"])
def test_shares_of_the_loss_are_below_one(name):
    assert getattr(SplitSearch(**{name: 0.0}), name) == 0
    assert getattr(SplitSearch(**{name: 0.999}), name) == 0.999
    for wrong in (-1e-9, 1.0, np.nan):
        with pytest.raises(ValueError, match=rf"{name} must lie in \[0, 1\): it is a share of the"):
            SplitSearch(**{name: wrong})


# --- math [53]: 24 samples of 500 rows -----------------------------------------------------------


@pytest.mark.slow
def test_two_regimes_are_found():
    """In 95 % of samples: if it were in 70 %, two of 24 or more would fail for certain."""
    example, good = rs.simulate.TwoRegimes(), 0
    for seed in range(24):
        X = example.sample(500, rng=seed)
        local = rs.local_effects(None, X, jacobian=example.jacobian)
        tree = rs.regions(local, "x1")
        if tree.sizes["node"] != 3 or str(tree["condition_feature"][1].values) != "x3":
            continue
        # A step between thresholds is a 21st of the rows.
        cut = float(tree["threshold"][1])
        near = abs((X["x3"] <= cut).mean() - (X["x3"] <= 0).mean()) <= 1 / 21
        effect = rs.regional_rhale(local, tree)
        means = effect["average_effect"].values[:, 0]
        good += near and np.allclose(means, [-3, 3]) and float(effect["heterogeneity"].max()) < 1e-9
    assert good >= 23


@pytest.mark.slow
def test_columns_that_coincide_are_not_split():
    example, good = rs.simulate.TwoRegimes(correlated=True), 0
    for seed in range(24):
        X = example.sample(500, rng=seed)
        local = rs.local_effects(None, X, jacobian=example.jacobian)
        good += rs.regions(local, "x1").sizes["node"] == 1
        effect = rs.rhale(local.sel(feature=["x1"])).isel(feature=0)
        for left, right, mean in zip(
            effect["bin_left"].values, effect["bin_right"].values, effect["effect"].values,
            strict=True,
        ):  # fmt: skip
            if not left < 0 < right:
                assert mean == pytest.approx(3 * np.sign(left + right))
    assert good >= 23


# --- size ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("test", "n", "name"),
    # Every pair of two settings once.
    [
        *(("permutation", 300, "noise"), ("honest", 300, "additive")),
        *(("permutation", 3000, "additive"), ("honest", 3000, "noise")),
    ],
)
def test_false_splits(test, n, name):
    """Nine columns condition nothing: the root is split in 5 % of samples."""
    rng = np.random.default_rng(n)
    runs, splits = 120 if n == 300 else 50, 0
    for _ in range(runs):
        tree = rs.regions(
            local_of(*without_regions(name, n, rng)), "x0", test=test, max_depth=1, min_drop=0,
            min_share=0, n_permutations=19, bins=rs.OptimalBins(20), rng=rng,
        )  # fmt: skip
        splits += tree.sizes["node"] > 1
    assert stats.binomtest(splits, runs, 0.05).pvalue > REFUSED


@pytest.mark.slow
def test_early_stopping_leaves_the_size(rng):
    """199 permutations, stopped when ten were as good: p-values up to the level are kept."""
    runs, pvalues = 100, []
    for _ in range(runs):
        tree = rs.regions(
            local_of(*without_regions("noise", 100, rng)), "x0", test="permutation", max_depth=1,
            min_drop=0, min_share=0, bins=rs.EqualWidthBins(4), n_thresholds=5, rng=rng,
        )  # fmt: skip
        pvalues.append(float(tree["pvalue"][0]))
    for level in (0.05, 0.25, 0.5):
        below = int(np.sum(np.array(pvalues) <= level))
        assert stats.binomtest(below, runs, level).pvalue > REFUSED


@pytest.mark.slow
def test_noise_is_split_without_a_test():
    """Why there are tests: of samples of 300 rows of noise every third is split without one.

    15 of these 40; with bins of fewer than ten rows in small regions it was more than half.
    """
    rng = np.random.default_rng(0)
    splits = [
        rs.regions(
            local_of(*without_regions("noise with t3 tails", 300, rng)), "x0", max_depth=1,
            bins=rs.OptimalBins(20), test=None,
        ).sizes["node"] > 1
        for _ in range(40)
    ]  # fmt: skip
    assert np.mean(splits) > 0.2


# --- power ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("test", "name"), [("permutation", "log-normal"), ("honest", "uniform")])
def test_the_true_split_is_found_under_noise(test, name):
    """Effects of +-3 with noise of sd 1, parted at the median, in 95 % of samples at least."""
    rng = np.random.default_rng(1)
    runs, found = 40, 0
    for _ in range(runs):
        x, effect, cut = two_groups(name, 3.0, 500, rng)
        tree = rs.regions(
            local_of(x, effect), "x0", test=test, max_depth=1, n_permutations=19,
            bins=rs.OptimalBins(10), rng=rng,
        )  # fmt: skip
        if tree.sizes["node"] == 3 and str(tree["condition_feature"][1].values) == "x3":
            threshold = float(tree["threshold"][1])
            found += abs(np.mean(x[:, 3] <= threshold) - np.mean(x[:, 3] <= cut)) <= 0.01
    assert found >= 0.95 * runs


# --- spreads that depend on the columns ----------------------------------------------------------


def rare_and_wide(n, share, rng):
    """Mean 0 everywhere, but the effects of few rows have 6 times the spread."""
    flag = (rng.uniform(size=n) < share).astype(float)
    return flag, np.where(flag, 6.0, 1.0) * rng.normal(size=n)


def log_normal(n, rng):
    """Skewed effects, whose spread grows with a column."""
    a = rng.normal(size=n)
    return a, np.exp(a) * (rng.lognormal(size=n) - np.exp(0.5))


SPREADS = {
    "15 % of 100 rows": lambda rng: rare_and_wide(100, 0.15, rng),
    "log-normal": lambda rng: log_normal(300, rng),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SPREADS)
def test_spreads_that_depend_on_a_column_are_not_split(name):
    """Any drop counts. Before, bins of two rows and unequal spreads split 20 to 70 %."""
    rng, runs, splits = np.random.default_rng(7), 80, 0
    for _ in range(runs):
        column, effect = SPREADS[name](rng)
        x = rng.uniform(size=(len(effect), 1))
        local = rs.local_effects(None, pd.DataFrame(x, columns=["x0"]), jacobian=effect[:, None])
        other = pd.DataFrame(rng.normal(size=(len(effect), 2)), columns=["b", "c"]).assign(a=column)
        tree = rs.regions(
            local, "x0", conditioning=other, test="permutation", max_depth=1, min_drop=0,
            min_share=0, n_permutations=19, rng=rng,
        )  # fmt: skip
        splits += tree.sizes["node"] > 1
    # One in a thousand of tests with a size of 7.5 % would fail.
    assert stats.binomtest(splits, runs, 0.075, alternative="greater").pvalue > REFUSED


@pytest.mark.slow
def test_groups_that_share_an_effect_are_not_split():
    """A column that is constant in groups; without groups 30 % are split."""
    n, n_groups, correlation = 100, 20, 0.7
    rng, runs = np.random.default_rng(8), 80
    splits = {"groups": 0, "none": 0}
    for _ in range(runs):
        group = np.repeat(np.arange(n_groups), n // n_groups)
        shared = np.sqrt(correlation) * rng.normal(size=n_groups)[group]
        effect = shared + np.sqrt(1 - correlation) * rng.normal(size=n)
        x = pd.DataFrame({"x0": rng.uniform(size=n)})
        local = rs.local_effects(None, x, jacobian=effect[:, None])
        other = pd.DataFrame({"a": rng.normal(size=n_groups)[group], "b": rng.normal(size=n)})
        for name, groups in (("groups", group), ("none", None)):
            tree = rs.regions(
                local, "x0", conditioning=other, test="permutation", max_depth=1, min_drop=0,
                min_share=0, n_permutations=19, rng=rng, groups=groups,
            )  # fmt: skip
            splits[name] += tree.sizes["node"] > 1
    size = stats.binomtest(splits["groups"], runs, 0.075, alternative="greater")
    assert size.pvalue > REFUSED
    assert splits["none"] > 2 * splits["groups"]
