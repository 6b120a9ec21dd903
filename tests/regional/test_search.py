"""Regions as statistics: math [53], size and power of the tests. See study ``regions``."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import rhale_stats as rs
from rhale_stats.studies.regions import N_CONDITIONING, two_groups, without_regions

pytestmark = pytest.mark.slow

# A size or a coverage is refused at this level: one test in a thousand fails by chance.
REFUSED = 0.001


def local_of(x, effect):
    """The first column with its local effects, and columns to condition on."""
    X = pd.DataFrame(x, columns=[f"x{column}" for column in range(x.shape[1])])
    jacobian = np.column_stack([effect, np.zeros((len(x), N_CONDITIONING))])
    return rs.local_effects(None, X, jacobian=jacobian)


# --- math [53]: 100 samples of 500 rows ----------------------------------------------------------


def test_two_regimes_are_found():
    example, good = rs.simulate.TwoRegimes(), 0
    for seed in range(100):
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
    assert good >= 95


def test_columns_that_coincide_are_not_split():
    example, good = rs.simulate.TwoRegimes(correlated=True), 0
    for seed in range(100):
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
    assert good >= 95


# --- size ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("test", "n", "name"),
    [
        *(
            (test, 300, name)
            for test in ("permutation", "honest")
            for name in ("additive", "noise")
        ),
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


@pytest.mark.parametrize("test", ["permutation", "honest"])
@pytest.mark.parametrize(("name", "runs"), [("uniform", 40), ("log-normal", 40)])
def test_the_true_split_is_found_under_noise(test, name, runs):
    """Effects of +-3 with noise of sd 1, parted at the median, in 95 % of samples at least."""
    rng = np.random.default_rng(1)
    found = 0
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
    "8 % of 300 rows": lambda rng: rare_and_wide(300, 0.08, rng),
    "15 % of 100 rows": lambda rng: rare_and_wide(100, 0.15, rng),
    "log-normal": lambda rng: log_normal(300, rng),
}


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
            min_share=0, n_permutations=39, rng=rng,
        )  # fmt: skip
        splits += tree.sizes["node"] > 1
    # One in a thousand of tests with a size of 7.5 % would fail.
    assert stats.binomtest(splits, runs, 0.075, alternative="greater").pvalue > REFUSED


@pytest.mark.parametrize(("n", "n_groups", "correlation"), [(100, 20, 0.7), (300, 30, 0.2)])
def test_groups_that_share_an_effect_are_not_split(n, n_groups, correlation):
    """A column that is constant in groups; without groups 30 % are split."""
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
                min_share=0, n_permutations=39, rng=rng, groups=groups,
            )  # fmt: skip
            splits[name] += tree.sizes["node"] > 1
    size = stats.binomtest(splits["groups"], runs, 0.075, alternative="greater")
    assert size.pvalue > REFUSED
    assert splits["none"] > 2 * splits["groups"]
