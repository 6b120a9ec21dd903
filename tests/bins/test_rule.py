"""The rules for bins: what they refuse, what they choose, and what other libraries choose."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass
from functools import partial
from inspect import signature
from itertools import pairwise
from types import SimpleNamespace

import boost_histogram
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import rhale_stats as rs
from rhale_stats.arrays.binning import TIE
from rhale_stats.arrays.moments import Moments
from rhale_stats.bins.description import describe
from rhale_stats.bins.rule import BinRule, Candidates, Column, all_cells, nearest_to
from tests import helpers
from tests.arrays.test_binning import bin_cost, brute_force, recount
from tests.helpers import in_turn, unpacked

frozen = partial(helpers.frozen, dtype=float)


def estimate(x, g, bins, *, weighting="rows", **options):
    """RHALE of one feature, ``x`` with local effects ``g``, without its padding.

    Rules choose alike whatever an effect is the mean of. By rows a gap inside a bin, as `sample`
    has them, needs no warning.
    """
    local = rs.local_effects(
        None, pd.DataFrame({"x": x}), jacobian=np.asarray(g)[:, None], features="x", **options
    )
    return rs.rhale(local, bins=bins, weighting=weighting).squeeze("feature")


RULES = [
    rs.EqualWidthBins(7),
    rs.QuantileBins(7),
    rs.GivenBins([-1, 0.1, 0.5, 2]),
    rs.GivenBins({"x": [-1, 0.1, 0.5, 2]}),
    rs.OptimalBins(20),
    rs.GreedyBins(20, min_obs=2),
    rs.AdaptiveBins(20, min_obs=2),
]


# --- what they refuse ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "options", "error", "message"),
    [
        (rs.EqualWidthBins, {"n_bins": 0}, ValueError, "n_bins must be at least 1; got 0"),
        (rs.EqualWidthBins, {"n_bins": 2.5}, TypeError, "whole number; got 2.5 of type float"),
        (rs.EqualWidthBins, {"n_bins": True}, TypeError, "whole number; got True of type bool"),
        (rs.QuantileBins, {"n_bins": -3}, ValueError, "n_bins must be at least 1; got -3"),
        # The search has an own least number of rows if there is none.
        (rs.OptimalBins, {"min_obs": "5"}, TypeError, "min_obs must be a whole number; got '5'"),
        (rs.OptimalBins, {"ddof": 2}, ValueError, "ddof must be 1.*got 2"),
        (rs.GreedyBins, {"factor": 0.95}, ValueError, "factor must be at least 1.*got 0.95"),
        (rs.GreedyBins, {"factor": np.inf}, ValueError, "factor must be .* finite.*got inf"),
        (rs.GreedyBins, {"factor": np.nan}, ValueError, "factor must be at least 1.*got nan"),
        (rs.GreedyBins, {"ddof": 2}, ValueError, "ddof must be 1.*got 2"),
        (
            rs.GivenBins,
            {"edges": [0, 1, 1]},
            ValueError,
            "followed by .* at positions 1 and 2",
        ),
        (rs.GivenBins, {"edges": [0, 2, 1]}, ValueError, "edges must increase strictly; got"),
        (rs.GivenBins, {"edges": [0]}, ValueError, r"at least two numbers; got .* shape \(1,\)"),
        (rs.GivenBins, {"edges": [[0, 1]]}, ValueError, r"one-dimensional.* shape \(1, 2\)"),
        (rs.GivenBins, {"edges": [0, np.inf]}, ValueError, r"edges must be finite; got \[0.0, inf"),
        (rs.GivenBins, {"edges": {"age": [1, 0]}}, ValueError, "edges of feature 'age' must incr"),
    ],
)
def test_parameters_refused(rule, options, error, message):
    with pytest.raises(error, match=message):
        rule(**options)


SEARCHING = (rs.OptimalBins, rs.GreedyBins, rs.AdaptiveBins, rs.BestEqualWidthBins)
SHARED = [
    ("max_bins", 0, ValueError, "max_bins must be at least 1; got 0"),
    ("max_bins", 2.5, TypeError, "max_bins must be a whole number; got 2.5"),
    ("min_obs", 0, ValueError, "min_obs must be at least 1; got 0"),
    ("min_obs", None, TypeError, "min_obs must be a whole number; got None"),
    ("discount", 1.0, ValueError, r"discount must lie in \[0, 1\).*got 1.0"),
    ("discount", -0.1, ValueError, "discount must lie in.*got -0.1"),
    ("discount", np.nan, ValueError, "discount must lie in.*got nan"),
]


@pytest.mark.parametrize(
    ("rule", "name", "value", "error", "message"),
    [
        (rule, *case)
        for rule in SEARCHING
        for case in SHARED
        # A default is legal, and lines have no discount.
        if case[0] in signature(rule).parameters
        and case[1] is not signature(rule).parameters[case[0]].default
    ],
)
def test_parameters_that_rules_share_are_refused(rule, name, value, error, message):
    with pytest.raises(error, match=message):
        rule(**{name: value})


def test_rows_outside_given_edges_are_left_out_and_counted(rng):
    x = np.concatenate([rng.uniform(size=48), [-2, 3]])
    rule = rs.GivenBins([0, 0.5, 1])
    effect, inside = estimate(x, x, rule), estimate(x[:-2], x[:-2], rule)
    assert effect["n_beyond"].item() == 2
    np.testing.assert_array_equal(effect["effect"], inside["effect"])
    # Where a table is in chunks, and in M-plots of them, they are refused.
    column = Column("x", x, -2.0, 3.0, None)
    message = r"'x' they cover \[0, 1\] and 2 of 50 rows lie outside, from -2 to 3"
    with pytest.raises(ValueError, match=message):
        rule.cells(column)


def test_a_feature_without_given_edges_is_refused(rng):
    with pytest.raises(KeyError, match=r"got none for 'x' \(there are entries for 'age', 'income'"):
        estimate(rng.uniform(size=9), np.ones(9), rs.GivenBins({"age": [0, 1], "income": [0, 1]}))


@pytest.mark.parametrize(
    ("rule", "parameter"),
    [
        (rs.EqualWidthBins(20), "n_bins"),
        (rs.OptimalBins(20), "max_bins"),
        (rs.GreedyBins(20), "max_bins"),
    ],
)
def test_cells_below_the_resolution_of_floats_are_refused(rng, rule, parameter):
    x = 1e9 + 1e-5 * rng.uniform(size=50)
    with pytest.raises(ValueError, match=f"{parameter} must leave cells.* 20 cells of feature 'x'"):
        estimate(x, x, rule)


@pytest.mark.parametrize("rule", [rs.OptimalBins, rs.GreedyBins, rs.AdaptiveBins])
def test_fewer_rows_than_min_obs_are_refused(rng, rule):
    x = rng.uniform(size=29)
    with pytest.raises(ValueError, match="feature 'x' has 29 rows and min_obs is 30"):
        estimate(x, x, rule(min_obs=30))


@pytest.mark.parametrize("rule", [rs.OptimalBins(), rs.GreedyBins(min_obs=1)])
def test_fewer_effective_rows_than_a_variance_needs_are_refused(rule):
    x = frozen([0, 1])
    with pytest.raises(ValueError, match="'x' has 1 rows and min_obs is 2"):
        estimate(x, x, rule, weights=[1, 1e-9])


# --- text ----------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (rs.EqualWidthBins(20), ("EqualWidthBins", "n_bins=20")),
        (rs.QuantileBins(n_bins=3), ("QuantileBins", "n_bins=3")),
        (rs.GivenBins([0, 0.25, 1]), ("GivenBins", "edges=[0, 0.25, 1]")),
        (rs.GivenBins({"a": [0, 1], "b": [2, 3]}), ("GivenBins", "edges={a: [0, 1], b: [2, 3]}")),
        (rs.OptimalBins(), ("OptimalBins", "max_bins=100, min_obs=N/20, discount=0.2, ddof=1")),
        (
            rs.GreedyBins(),
            ("GreedyBins", "max_bins=100, min_obs=10, discount=0.2, factor=1.05, ddof=1"),
        ),
        (
            rs.AdaptiveBins(),
            (
                "AdaptiveBins",
                "max_bins=100, degree=1, penalty=2 ln max_bins, min_obs=10, refine=True",
            ),
        ),
        (
            rs.AdaptiveBins(20, 0, 5, 7),
            ("AdaptiveBins", "max_bins=20, degree=0, penalty=5, min_obs=7, refine=True"),
        ),
    ],
)
def test_describe(rule, expected):
    assert isinstance(rule, BinRule)
    assert describe(rule) == expected


def test_results_say_their_rule(rng):
    effect = estimate(rng.uniform(size=50), rng.normal(size=50), rs.OptimalBins(min_obs=5))
    assert effect.attrs["bin_rule"] == "OptimalBins"
    assert effect.attrs["bin_parameters"] == "max_bins=100, min_obs=5, discount=0.2, ddof=1"


# --- what they choose ----------------------------------------------------------------------------


def test_equal_width_bins_are_equal_and_keep_empty_ones():
    x = frozen([0, 0.1, 0.2, 2.9, 3.9, 4])
    with pytest.warns(UserWarning, match=r"Bins without rows: 'x' \(1 of 4\)"):
        effect = estimate(x, x, rs.EqualWidthBins(4))
    assert_allclose(effect["edge_value"], [0, 1, 2, 3, 4], atol=1e-14)  # left of 1 by construction
    assert_array_equal(effect["n_obs"], [3, 0, 1, 2])
    assert_allclose(effect["effect"], [0.1, np.nan, 2.9, 3.95], rtol=1e-14)


def test_quantile_bins_hold_equal_counts(rng):
    x = frozen(rng.permutation(np.arange(1000)))
    effect = estimate(x, x, rs.QuantileBins(20))
    # Edges are values of rows: the first bin gives its right edge away, the last is closed.
    assert_array_equal(effect["n_obs"], [49, *[50] * 18, 51])


@pytest.mark.parametrize("where", ["lowest", "middle", "highest"])
def test_quantile_bins_with_a_point_mass_are_never_empty(rng, where):
    x = rng.uniform(0, 10, 1000)
    mass = {"lowest": 0.0, "middle": 4.0, "highest": 10.0}[where]
    x[:600] = mass
    effect = estimate(x, x, rs.QuantileBins(10))
    assert 4 <= effect["n_bins"] <= 6  # 6 of 10 quantiles coincide
    assert (effect["n_obs"] > 0).all()
    assert_array_equal(effect["n_obs"], recount(x, effect["edge_value"].values))


def test_given_edges_are_reported_as_given(rng):
    """math [4]: z_0 and z_K are the smallest and the largest value unless they are given."""
    x, edges = rng.uniform(0.1, 0.9, 100), frozen([0, 0.25, 0.5, 1])
    effect = estimate(x, np.full(100, 2.0), rs.GivenBins(edges))
    assert_array_equal(effect["edge_value"], edges)
    assert_allclose(np.diff(effect["curve"]), 2 * np.diff(edges), rtol=1e-14)


def test_given_edges_beyond_the_rows_stay_in_order(rng):
    x = rng.uniform(1.5, 2.5, 50)
    with pytest.warns(UserWarning, match=r"'x' \(2 of 4\)"):
        effect = estimate(x, x, rs.GivenBins([0, 1, 2, 3, 4]))
    assert_array_equal(effect["edge_value"], [0, 1, 2, 3, 4])
    assert_array_equal(effect["n_obs"], [0, (x < 2).sum(), (x >= 2).sum(), 0])


def test_given_edges_for_each_feature(rng):
    X = pd.DataFrame(rng.uniform(size=(50, 2)), columns=["a", "b"])
    local = rs.local_effects(None, X, jacobian=np.ones((50, 2)))
    edges = {"b": [0, 1], "a": [0, 0.5, 1]}
    effect = rs.rhale(local, bins=rs.GivenBins(edges))
    assert_array_equal(effect["n_bins"], [2, 1])
    assert_array_equal(effect["bin_left"], [[0, 0.5], [0, np.nan]])
    assert_array_equal(effect["bin_right"], [[0.5, 1], [1, np.nan]])


def test_given_edges_are_copied():
    edges = np.array([0.0, 0.5, 1.0])
    rule = rs.GivenBins(edges)
    edges[1] = 2
    assert_array_equal(rule.edges, [0, 0.5, 1])


@pytest.mark.thorough
@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_one_row_and_two_rows(rule):
    """One row is a constant feature; two rows are bins of one row, without spread."""
    one = estimate(frozen([0.5]), frozen([3]), rule)
    assert one["n_bins"] == 0
    assert one["feature_kind"] == "constant"
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Bins without rows")
        two = estimate(frozen([0, 1]), frozen([3, 5]), rule)
    assert two["n_obs"].sum() == 2


def index_of_edges(edges, n_cells):
    """Edges as numbers of cells from the left end."""
    steps = (edges - edges[0]) / (edges[-1] - edges[0]) * n_cells
    assert_allclose(steps, np.round(steps), atol=1e-6)
    return np.round(steps).astype(int)


def sample(seed, n=None):
    """Rows of which local effects have steps and noise; x even, skewed or with gaps."""
    rng = np.random.default_rng(seed)
    n = n or int(rng.integers(30, 300))
    x = [
        lambda: rng.uniform(-1, 1, n),
        lambda: rng.standard_gamma(2, n),
        lambda: rng.choice([-1, 0, 3], n) + rng.normal(size=n) / 5,
    ][seed % 3]()
    level = rng.normal(0, rng.choice([0.5, 3.0]), 6)
    g = level[np.searchsorted(np.quantile(x, [0.1, 0.3, 0.5, 0.7, 0.9]), x)] + rng.normal(size=n)
    return frozen(x), frozen(g)


@pytest.mark.thorough
@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize(("min_obs", "discount"), [(2, 0.3), (10, 0.0), (None, 0.8)])
def test_optimal_bins_agree_with_all_partitions(min_obs, discount, ddof):
    n_cells = 8
    for seed in range(12):
        x, g = sample(seed)
        effect = estimate(x, g, rs.OptimalBins(n_cells, min_obs, discount, ddof))
        width = np.ptp(x) / n_cells
        cell = np.minimum((x - x.min()) // width, n_cells - 1).astype(int)
        expected = brute_force(
            cell, g, np.full(n_cells, width),
            min_obs=len(x) / 20 if min_obs is None else min_obs, discount=discount, ddof=ddof,
        )  # fmt: skip
        found = index_of_edges(effect["edge_value"].values, n_cells)[:-1]
        assert tuple(found) == expected, f"seed {seed}"


SEARCHES = [
    rs.OptimalBins(),
    rs.GreedyBins(),
    rs.BestEqualWidthBins(),
    rs.BestEqualWidthBins(50, discount=0.0),
    rs.AdaptiveBins(),
    rs.AdaptiveBins(degree=0),
]


@pytest.mark.thorough
@pytest.mark.parametrize(("rule", "slope"), in_turn(SEARCHES, [0.0, 0.1, -1 / 3, 1e-6, 1e9], 2))
def test_a_constant_derivative_is_one_bin(rng, slope, rule):
    """Also where it is known to rounding only, as central differences know it."""
    X = rng.uniform(-1, 1, (1000, 2))
    for local in (
        rs.local_effects(None, X, jacobian=np.full((1000, 2), slope)),
        rs.local_effects(lambda X: slope * X[:, 0] + np.sin(X[:, 1]), X, features=0),
    ):
        effect = rs.rhale(local, bins=rule).isel(feature=0)
        assert effect["n_bins"] == 1
        assert_allclose(effect["effect"][0], slope, rtol=1e-9, atol=1e-9)


@pytest.mark.thorough
@pytest.mark.parametrize("rule", SEARCHES)
@pytest.mark.parametrize("weight_kind", ["precision", "frequency"])
@pytest.mark.parametrize("slope", [0.1, 1 / 3, -7.162e6])
def test_a_constant_derivative_is_one_bin_under_weights(rng, slope, weight_kind, rule):
    x, weights = rng.uniform(-1, 1, 1000), rng.uniform(0.1, 5, 1000)
    weights = np.ceil(weights) if weight_kind == "frequency" else weights
    effect = estimate(x, np.full(1000, slope), rule, weights=weights, weight_kind=weight_kind)
    assert effect["n_bins"] == 1
    assert_allclose(effect["heterogeneity"], 0, atol=1000 * np.finfo(float).eps * abs(slope))


@pytest.mark.thorough
@pytest.mark.parametrize("rule", [rs.OptimalBins, rs.GreedyBins])
def test_searched_bins_never_hold_less_than_two_rows(rule):
    """One row has no variance, whatever min_obs and ddof say."""
    for seed in range(12):
        x, g = sample(seed, n=25)
        for ddof in (0, 1):
            effect = estimate(x, g, rule(20, min_obs=1, ddof=ddof))
            assert effect["n_obs"].min() >= 2, f"seed {seed}, ddof {ddof}"


# --- from left to right --------------------------------------------------------------------------


def greedy_starts(x, g, rule):
    """math [20] with pandas, cell by cell; without rounding to think of."""
    width = np.ptp(x) / rule.max_bins
    cell = np.minimum((x - x.min()) // width, rule.max_bins - 1)
    rows = pd.Series(g, index=cell.astype(int)).sort_index()

    def enough(bin_):
        return len(bin_) >= max(rule.min_obs, 2)

    def cost(bin_):
        return bin_.var(ddof=rule.ddof) * (1 - rule.discount * len(bin_) / len(rows))

    starts = [0]
    for end in range(1, rule.max_bins):
        now, then = rows.loc[starts[-1] : end - 1], rows.loc[starts[-1] : end]
        if enough(now) and enough(then) and cost(then) > rule.factor * cost(now):
            starts.append(end)
    if len(starts) > 1 and not enough(rows.loc[starts[-1] :]):
        starts.pop()
    return starts


@pytest.mark.thorough
@pytest.mark.parametrize(
    "rule",
    [
        rs.GreedyBins(20, 2),
        rs.GreedyBins(),
        rs.GreedyBins(40, 15, discount=0.9, factor=1.0),
        rs.GreedyBins(discount=0.0, ddof=0),  # the authors' code
        rs.GreedyBins(50, 5, factor=1.5),
    ],
    ids=repr,
)
def test_greedy_bins_agree_with_pandas(rule):
    n_bins = []
    for seed in range(9):
        x, g = sample(seed)
        effect = estimate(x, g, rule)
        found = index_of_edges(effect["edge_value"].values, rule.max_bins)[:-1].tolist()
        assert found == greedy_starts(x, g, rule), f"seed {seed}"
        n_bins.append(len(found))
    assert len(set(n_bins)) > 3


def test_greedy_bins_by_hand():
    """Four cells of one unit: the last holds one row, and the second none."""
    x = frozen([0, 0.3, 0.6, 2.2, 2.6, 4])
    g = frozen([1, 2, 3, 7, 8, 7])
    effect = estimate(x, g, rs.GreedyBins(4, min_obs=2))
    # Closed before 7 and 8, not before the empty cell; 7 alone joins them.
    assert_allclose(effect["edge_value"], [0, 2, 4], atol=1e-14)
    assert_array_equal(effect["n_obs"], [3, 3])
    assert_allclose(effect["effect"], [2, 22 / 3], rtol=1e-14)
    assert_allclose(effect["heterogeneity"], [1, np.sqrt(1 / 3)], rtol=1e-14)


@pytest.mark.thorough
@pytest.mark.parametrize(("a", "b"), [(-3.0, 0.0), (1e9, 0.0), (1.0, 1e6), (1e-9, 5e-4)])
@pytest.mark.parametrize(("c", "d"), [(1.0, 0.0), (1e3, 1.7e9), (1e-6, -2.0)])
def test_greedy_bins_follow_scale_and_offset(a, b, c, d):
    for seed in range(0, 12, 3):  # uniform rows: those of other kinds crowd on few cells
        x, g = sample(seed)
        plain = estimate(x, g, rs.GreedyBins(20))
        moved = estimate(c * x + d, a * g + b, rs.GreedyBins(20))
        assert_array_equal(moved["n_obs"], plain["n_obs"])
        assert_array_equal(
            index_of_edges(moved["edge_value"].values, 20),
            index_of_edges(plain["edge_value"].values, 20),
        )


def test_greedy_bins_are_not_mirrored():
    """By hand, ddof 0, no discount: a cell of 0, 2 and two of 9, 11 have variances of 1.

    From the left the cost grows from 1 to 21.25 to 19, from the right from 1 to 1 to 19.
    """
    x = frozen([0, 0.5, 1, 1.5, 2, 2.5])
    g = frozen([0, 2, 9, 11, 9, 11])
    rule = rs.GreedyBins(3, min_obs=2, discount=0.0, factor=20.0, ddof=0)
    assert_array_equal(estimate(x, g, rule)["n_obs"], [2, 4])
    assert_array_equal(estimate(2.5 - x[::-1], g[::-1], rule)["n_obs"], [6])


# --- the authors' library ------------------------------------------------------------------------


def against_effector(x, g):
    """How the edges compare with effector's, for discount 0.3, min_obs 2 and 20 cells.

    "ddof corrected": effector's cost has the variance with ddof 0, and so has ours here.
    """
    partitioning = pytest.importorskip("effector").axis_partitioning
    n_cells, rule = 20, {"min_obs": 2, "discount": 0.3, "ddof": 0}
    ours = estimate(x, g, rs.OptimalBins(n_cells, **rule))["edge_value"].values
    theirs = partitioning.DynamicProgramming(n_cells, 2, 0.3).find_limits(x.copy(), g.copy(), None)
    ours, theirs = index_of_edges(ours, n_cells), index_of_edges(theirs, n_cells)
    if np.array_equal(ours, theirs):
        return "equal"

    width = np.ptp(x) / n_cells
    # Its cells are half-open, the last one closed: the same as ours.
    cell = np.clip(((x - x.min()) / width).astype(int), 0, n_cells - 1)
    if (np.add.reduceat(np.bincount(cell, minlength=n_cells), theirs[:-1]) < 2).any():
        return "effector breaks min_obs"

    def cost(edges):
        return sum(
            bin_cost((cell >= a) & (cell < b), g, (b - a) * width, **rule)
            for a, b in pairwise(edges)
        )

    if np.allclose(x.min(), x.max()):
        assert len(theirs) == 2
        assert cost(theirs) > cost(ours)
        return "effector takes the range for a point"

    # math [21], or what rounding of the local effects makes of a variance of 0.
    tie = (TIE * np.var(g) + (16 * np.spacing(np.abs(g).max())) ** 2) * np.ptp(x)
    assert cost(theirs) >= cost(ours) - tie * len(ours), "effector is better"
    if cost(theirs) <= cost(ours) + tie * len(theirs):
        assert len(theirs) >= len(ours)
        return "tie"
    return "effector is worse"


@pytest.mark.thorough
def test_edges_equal_effectors():
    """No exception: at this scale no cost comes near effector's 1e8, and no two costs are equal."""
    assert Counter(against_effector(*sample(seed)) for seed in range(60)) == {"equal": 60}


@pytest.mark.thorough
def test_edges_equal_effectors_where_costs_pass_its_infinity():
    """Effector's 1e8 for an infeasible bin is cheaper than a feasible one of larger cost."""
    found = Counter()
    for seed in range(40):
        x, g = sample(seed)
        scale = 10 ** np.random.default_rng([seed, 1]).uniform(3, 6)
        found[against_effector(x, scale * g)] += 1
    assert set(found) == {"equal", "effector breaks min_obs"}
    assert found["effector breaks min_obs"] > 10


@pytest.mark.thorough
def test_edges_equal_effectors_but_for_ties():
    """Without noise whole partitions cost nothing; ours is the one with the fewest bins."""
    found = Counter()
    for seed in range(20):
        x, _ = sample(seed)
        levels = np.array([0.1, 0.7, 1 / 3])[np.searchsorted(np.quantile(x, [0.3, 0.6]), x)]
        found[against_effector(x, levels)] += 1
        found[against_effector(x, np.full(len(x), levels[0] + seed / 7))] += 1
    assert set(found) == {"equal", "tie"}
    assert found["tie"] > 10


@pytest.mark.thorough
def test_effectors_greedy_is_another_search():
    """In 0.6.0 its name stands for merging from the bottom up, with math [21] as the cost.

    Ours is the sweep of the authors' code, so that edges differ; neither beats the optimum.
    """
    partitioning = pytest.importorskip("effector").axis_partitioning
    assert partitioning.Greedy is partitioning.Agglomerative
    n_cells, rule = 20, {"min_obs": 2, "discount": 0.3, "ddof": 0}
    for seed in range(10):
        x, g = sample(seed)
        width = np.ptp(x) / n_cells
        cell = np.clip(((x - x.min()) / width).astype(int), 0, n_cells - 1)
        best, ours = (
            estimate(x, g, bins(n_cells, **rule))["edge_value"].values
            for bins in (rs.OptimalBins, rs.GreedyBins)
        )
        theirs = partitioning.Greedy(n_cells, 2, 0.3).find_limits(x.copy(), g.copy(), None)
        least, *others = (
            sum(
                bin_cost((cell >= a) & (cell < b), g, (b - a) * width, **rule)
                for a, b in pairwise(index_of_edges(edges, n_cells))
            )
            for edges in (best, ours, theirs)
        )
        assert least <= min(others) * (1 + 1e-9), f"seed {seed}"


@pytest.mark.thorough
def test_effector_gives_up_on_timestamps():
    """It compares the range with the size of its ends (numpy.allclose), and makes one bin."""
    found = Counter(against_effector(1.7e9 + 100 * x, g) for x, g in map(sample, range(20)))
    assert set(found) == {"equal", "effector takes the range for a point"}
    assert found["effector takes the range for a point"] > 14  # in the others one bin is best


@pytest.mark.thorough
def test_effector_loses_a_variance_beside_a_large_mean():
    """Its variance is mean(g^2) - mean(g)^2: nothing is left of a variance of 1 beside 1e16."""
    found = Counter(against_effector(x, 1e8 + g) for x, g in map(sample, range(20)))
    assert set(found) == {"equal", "effector is worse"}
    assert found["effector is worse"] > 14


# --- every rule ----------------------------------------------------------------------------------

EVERY = [
    rs.EqualWidthBins(7),
    rs.QuantileBins(7),
    rs.OptimalBins(),
    rs.GreedyBins(),
    rs.BestEqualWidthBins(),
    rs.AdaptiveBins(),
    rs.AdaptiveBins(degree=0),
]


def between_cells(seed, n=300):
    """Rows in the middle of the cells of every grid here, with steps; both ends are there."""
    rng = np.random.default_rng(seed)
    x = (rng.permutation(100_003)[:n] + 0.5) / 100_003
    x[:2] = 0, 1
    return x, 3.0 * (x > 0.3) - 2.0 * (x > 0.7) + rng.normal(size=n)


@pytest.mark.thorough
@pytest.mark.parametrize("rule", EVERY, ids=repr)
@pytest.mark.filterwarnings("ignore:Gaps without rows", "ignore:Bins without rows")
def test_every_weighting_has_the_same_bins(rule):
    for seed in range(3):  # with gaps as well
        x, g = sample(seed)
        x = x + 1e-9 * np.arange(len(x))  # without ties
        cells = estimate(x, g, rule, weighting="axis")
        by_rows = estimate(x, g, rule, weighting="rows")
        rows, axis = (effect.rhale.in_bins().squeeze("feature") for effect in (by_rows, cells))
        for name in ("edge_value", "n_obs", "weight_share"):
            assert_array_equal(axis[name], rows[name], err_msg=name)
        # They are added up from other cells.
        for name in {"x_mean", "heterogeneity", "slope"} & set(rows):
            assert_allclose(axis[name], rows[name], rtol=1e-12, atol=1e-14)
        k = np.searchsorted(rows["edge_value"][1:-1], x, "right")
        means = pd.Series(g).groupby(k).mean().reindex(range(int(rows["n_bins"])))
        assert_allclose(
            unpacked(cells.expand_dims("feature"))["effect_rows"][0], means, rtol=1e-9, atol=1e-12
        )


@pytest.mark.thorough
@pytest.mark.parametrize(("weighting", "rule"), in_turn(["rows", "axis"], EVERY), ids=repr)
def test_frequencies_are_repeated_rows_and_precisions_matter_by_their_ratios(rule, weighting):
    for seed in range(2):
        x, g = between_cells(seed)
        rng = np.random.default_rng(seed)
        n, w = rng.integers(1, 4, len(x)), rng.uniform(0.5, 2, len(x))
        of = {"bins": rule, "weighting": weighting}
        frequent = estimate(x, g, weights=n, weight_kind="frequency", **of)
        repeated = estimate(np.repeat(x, n), np.repeat(g, n), **of)
        precise, scaled = (estimate(x, g, weights=c * w, **of) for c in (1.0, 1e6))
        for one, other in ((frequent, repeated), (precise, scaled)):
            assert_array_equal(one["n_obs"], other["n_obs"])
            assert_allclose(one["effect"], other["effect"], rtol=1e-9, atol=1e-12)
        assert_array_equal(frequent["edge_value"], repeated["edge_value"])


@pytest.mark.thorough
@pytest.mark.parametrize(
    "rule", [rule for rule in EVERY if not isinstance(rule, rs.GreedyBins)], ids=repr
)
def test_the_axis_turned_round_gives_the_mirrored_bins(rule):
    """All but the sweep, which has a direction.

    Quantiles are rows, and a row on an edge belongs to the bin on its right: turned round, bins
    of quantiles may hold a row more or less.
    """
    for seed in range(3):
        x, g = between_cells(seed)
        plain, turned = estimate(x, g, rule), estimate(-x, g, rule)
        difference = np.abs(plain["n_obs"].values - turned["n_obs"].values[::-1])
        assert difference.max() <= (1 if isinstance(rule, rs.QuantileBins) else 0)


@pytest.mark.thorough
@pytest.mark.parametrize(("weighting", "rule"), in_turn(["rows", "axis"], EVERY), ids=repr)
def test_chosen_edges_given_again_are_the_same_bins(rule, weighting):
    for seed in range(2):
        x, g = between_cells(seed)
        effect = estimate(x, g, rule, weighting=weighting).rhale.in_bins()
        given = rs.GivenBins(effect["edge_value"].values[0])
        again = estimate(x, g, given, weighting=weighting).rhale.in_bins()
        assert_array_equal(again["n_obs"], effect["n_obs"])
        if weighting == "axis":
            assert_allclose(again["effect"], effect["effect"], rtol=1e-9, atol=1e-12)
            assert_allclose(again["curve"], effect["curve"], rtol=1e-9, atol=1e-12)
        if "slope" not in effect:
            assert_allclose(again["effect"], effect["effect"], rtol=1e-9, atol=1e-12)
            assert_allclose(again["heterogeneity"], effect["heterogeneity"], rtol=1e-9)


def test_rules_with_given_edges_are_values():
    """code.md B16: == raised ValueError, hash TypeError."""
    rules = (
        lambda: rs.GivenBins([0, 1, 2]),
        lambda: rs.GivenBins({"a": [0, 1], "b": [0, 1, 3]}),
        lambda: rs.GivenBins({"b": (0.0, 1.0, 3.0), "a": np.array([0, 1])}),
    )
    for rule in rules:
        assert rule() == rule()
        assert hash(rule()) == hash(rule())
        assert {rule(): "found"}[rule()] == "found"
        assert eval(repr(rule()), {"GivenBins": rs.GivenBins}) == rule()
    assert rules[1]() == rules[2]()
    assert rs.GivenBins([0, 1, 2]) != rs.GivenBins([0, 1, 3])
    assert rs.GivenBins([0, 1]) != rs.GivenBins({"a": [0, 1]})
    assert repr(rs.GivenBins(np.array([0, 0.1, 2]))) == "GivenBins(edges=(0.0, 0.1, 2.0))"


@pytest.mark.parametrize("rule", [rs.EqualWidthBins, rs.QuantileBins])
def test_too_many_bins_are_refused(rule):
    """reliability.md 22: a bare MemoryError."""
    with pytest.raises(ValueError, match="n_bins must be at most 1,000,000; got 1,000,000,000"):
        rule(10**9)
    assert rule(1_000_000).n_bins == 1_000_000


@pytest.mark.parametrize(
    "rule", [rs.OptimalBins, rs.GreedyBins, rs.AdaptiveBins, rs.BestEqualWidthBins]
)
def test_too_many_cells_are_refused(rule):
    with pytest.raises(ValueError, match="max_bins must be at most 10,000; got 100,000"):
        rule(max_bins=100_000)
    assert rule(max_bins=10_000).max_bins == 10_000


# --- a rule of your own ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Log:
    """Bins of equal width on the logarithm."""

    n_bins: int = 3
    as_axis: bool = True

    def cells(self, column):
        edges = np.geomspace(column.low, column.high, self.n_bins + 1)
        return boost_histogram.axis.Variable(edges) if self.as_axis else edges

    def choose(self, candidates):
        return all_cells(candidates)


def test_a_rule_of_ones_own(rng):
    x = np.concatenate([[1, 1000], np.exp(rng.uniform(0, np.log(1000), 98))])
    effect = estimate(x, np.log(x), Log())
    np.testing.assert_allclose(effect["edge_value"], [1, 10, 100, 1000], rtol=1e-12)
    for k, value in enumerate(effect["heterogeneity"].values):
        inside = (x >= 10**k) & (x < 10 ** (k + 1) + (k == 2))
        assert value == pytest.approx(np.std(np.log(x[inside]), ddof=1), rel=1e-9)
    assert effect.attrs["bin_parameters"] == "n_bins=3, as_axis=True"


def test_a_rule_of_ones_own_that_lacks_something_is_refused(rng):
    x = rng.uniform(1, 2, 50)
    with pytest.raises(TypeError, match=r"Variable\(edges\); that of Log returned ndarray of"):
        estimate(x, x, Log(as_axis=False))
    plain = SimpleNamespace(cells=Log().cells, choose=Log().choose)
    with pytest.raises(TypeError, match="must be a dataclass if it is a rule of your own.*got a S"):
        estimate(x, x, plain)


UNEQUAL = np.array([1.0, 2.0, 3.0, 5.0, 9.0])


def test_the_nearest_edges():
    """By distance; from the middle of two edges either is as near."""
    wanted = np.array([-3.0, 1.4, 1.6, 2.4, 3.9, 4.1, 6.9, 7.1, 20.0])
    distance = np.abs(UNEQUAL - wanted[:, None])
    assert nearest_to(UNEQUAL, wanted).tolist() == distance.argmin(axis=1).tolist()


def test_widths_of_cells():
    cells = Moments(*(np.ones(4),) * 6)
    assert Candidates("x", cells, 2.0, 4.0, 0.0).width.tolist() == [0.5] * 4
    assert Candidates("x", cells, 1.0, 9.0, 0.0, edges=UNEQUAL).width.tolist() == [1, 1, 2, 4]
