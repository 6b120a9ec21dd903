"""Effects and comparisons of the studies of rules for bins."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose

import rhale_stats as rs
from studies import penalty
from studies.examples import (
    EXAMPLES,
    Example,
    oracle,
    ratio_of_means,
    scored_along,
)
from studies.tools import fixed_rules, local_of, scored


@pytest.mark.parametrize("name", EXAMPLES)
def test_truth_is_what_many_rows_give(name):
    example = EXAMPLES[name]
    effect = rs.rhale(local_of(example, example.sample(300_000, rng=0)), bins=rs.EqualWidthBins(50))
    truth = example.truth(effect)
    # Crowded rows are not uniform within a bin: there the truth is another number.
    few = 8 if example.clustered else 0
    off = np.abs(effect["effect"] - truth["effect"]) / (
        effect["heterogeneity"] / effect["n_obs"] ** 0.5
    )
    assert (off < 5).sum() >= 50 - few
    star = np.sqrt(truth["heterogeneity"] ** 2 + truth["bin_error"])
    # Squares of t3 have no variance: their mean comes slowly.
    assert_allclose(effect["heterogeneity"], star, rtol=0.5 if example.noise == "t3" else 0.15)


def test_crowded_rows():
    example = Example("constant", clustered=True)
    x = np.sort(example.sample(100_000, rng=0)["x1"].to_numpy())
    assert 0 <= x[0] < x[-1] <= 1
    expected = np.arange(len(x)) / len(x)
    # Kolmogorov's statistic exceeds 1.95 in one run of a thousand.
    assert np.abs(example._marginals()["x1"].cdf(x) - expected).max() < 1.95 / len(x) ** 0.5


def test_scores_are_those_of_each_rule_with_its_own_truth():
    example, rules = EXAMPLES["sine"], {"ours": rs.AdaptiveBins(), **fixed_rules([5])}
    found = scored_along(example, 300, np.random.default_rng(0), rules)
    local = local_of(example, example.sample(300, np.random.default_rng(0)))
    for at, rule in enumerate(rules.values()):
        effect = rs.rhale(local, bins=rule, centering="integral", weighting="rows")
        alone = scored(effect, example.truth(effect))
        for name, values in found.items():
            assert values[at] == pytest.approx(alone[name], rel=1e-9)


def test_oracle_has_the_smallest_mean_of_those_that_never_fail():
    scores = xr.DataArray(
        [[0.0, 0.0], [3.0, 2.0], [1.0, 3.0], [0.1, np.nan]],
        {"rule": ["ours", "K = 1", "K = 2", "K = 3"]},
        ("rule", "replicate"),
    )
    assert oracle(scores) == "K = 2"


def test_ratio_of_means():
    rng = np.random.default_rng(0)
    theirs = rng.gamma(4, 1, 100)
    ratio, error = ratio_of_means(2 * theirs, theirs)
    assert ratio == pytest.approx(2)
    assert error == pytest.approx(0, abs=1e-12)
    b = rng.gamma(4, 1, (1000, 100))
    a = 0.5 * b + rng.normal(size=b.shape)
    pairs = [ratio_of_means(*pair) for pair in zip(a, b, strict=True)]
    ratios, errors = np.array(pairs).T
    assert errors.mean() == pytest.approx(ratios.std(), rel=0.1)
    assert np.isnan(ratio_of_means([1.0], [2.0])[1])


class TestVariants:
    def test_default_is_the_default(self):
        rules = penalty.variants(500)
        assert rules[penalty.DEFAULT]._penalties() == rs.AdaptiveBins()._penalties()
        assert rules["2 ln N, pruning"]._penalties().edge == pytest.approx(2 * np.log(500))
        assert len({rule._penalties() for rule in rules.values()}) == len(rules)
        assert penalty.Variant()._penalties() == rs.AdaptiveBins()._penalties()

    def test_edges_stay_on_the_coarse_grid_without_refinement(self):
        example = EXAMPLES["jump"]
        local = local_of(example, example.sample(1000, rng=0))
        x = np.sort(local["x"].values.ravel())
        rules = penalty.variants(1000)
        for remedy, on_grid in (("no remedy", True), ("refined edges", False)):
            edges = rs.rhale(local, bins=rules[f"2 ln K, {remedy}"])["bin_left"].values.ravel()
            # Rows below the edges: of 1,000, in 100 cells of ten each.
            below = np.searchsorted(x, edges[1:])
            assert (below % 10 == 0).all() == on_grid

    def test_samples_are_looked_at_one_by_one(self):
        example, n = Example("constant", noise="t3"), 80
        rules = {name: penalty.variants(n)[name] for name in ("2, no remedy", penalty.DEFAULT)}
        found = penalty._shares(example, n, np.random.default_rng(1), rules, 6, 3)
        drawn = example.sample(6 * n, np.random.default_rng(1))
        for share, seen, rule in zip(found, (3, 6), rules.values(), strict=True):
            cut = [
                int(rs.rhale(local_of(example, drawn.iloc[at::6]), bins=rule)["n_bins"][0]) > 1
                for at in range(seen)
            ]
            assert share == np.mean(cut)
