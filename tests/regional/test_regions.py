"""The regional search against direct recomputation and against the authors' library; trees."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import rhale_stats as rs
from rhale_stats.bins.rule import Candidates, Column
from rhale_stats.local.rows import columns
from rhale_stats.regional import losses as split_losses_module
from rhale_stats.regional import regions
from rhale_stats.regional.losses import (
    problem_of,
    root_bins,
    split_losses,
)
from rhale_stats.regional.search import SplitSearch, SplitTree
from rhale_stats.regional.splits import candidates_of, conditioning_columns
from studies.regions import two_groups
from tests.arrays.made import cell_moments
from tests.helpers import in_turn

N = 300
RULES = [
    rs.OptimalBins(30),
    rs.OptimalBins(30, ddof=0, min_obs=12),
    rs.EqualWidthBins(6),
    rs.QuantileBins(6),
    rs.AdaptiveBins(30),
    rs.AdaptiveBins(30, degree=0),
    rs.GreedyBins(30),
    rs.BestEqualWidthBins(8),
]
WEIGHT_KINDS = ["none", "precision", "frequency"]
every_weight = pytest.mark.parametrize("kind", WEIGHT_KINDS)


def sample(rng, n=N):
    """x0 with an effect that bends and that g, z and w part, each a little."""
    X = pd.DataFrame(
        {
            "x0": rng.beta(1.5, 1, n),
            "z": rng.normal(size=n),
            "skew": rng.lognormal(size=n),
            "flag": rng.integers(0, 2, n).astype(float),
        }
    )
    g = np.sin(5 * X["x0"]) + np.where(X["z"] > 0.3, 1.0, -0.5) * (1 + X["flag"])
    jacobian = np.column_stack([g + rng.normal(size=n) / 2, *np.zeros((3, n))])
    other = pd.DataFrame(
        {
            "z": X["z"],
            "skew": X["skew"],
            "flag": X["flag"] > 0,
            "count": np.minimum(rng.poisson(2, n), 6),
            "group": np.array(["a", "b", "c", "d"])[rng.integers(0, 4, n)],
            "order": pd.Categorical(rng.integers(0, 5, n), ordered=True),
        }
    )
    return X, jacobian, other


def weights_of(kind, rng, n=N):
    if kind == "precision":
        return rng.gamma(2, size=n)
    return None if kind == "none" else rng.integers(1, 4, n)


def local_of(X, jacobian, weights=None, kind="precision"):
    if kind == "none":
        kind = "precision"
    features = list(X.columns)
    return rs.local_effects(
        None, X, jacobian=jacobian, features=features, weights=weights, weight_kind=kind
    )


def two_regimes(n=500, seed=0, **options):
    example = rs.simulate.TwoRegimes(**options)
    X = example.sample(n, rng=seed)
    return X, rs.local_effects(None, X, jacobian=example.jacobian)


# --- losses of all candidates --------------------------------------------------------------------


def variance_about(g, w, frequency, regressors, ddof):
    """Weighted squares about a fit, over sum w - ddof sum w^2 / sum w; NaN without enough rows."""
    total = w.sum()
    total_sq = total if frequency else np.sum(w**2)
    if len(g) == 0 or not total**2 / total_sq > ddof * (1 + 1e-12):
        return np.nan
    root = np.sqrt(w)
    fit = np.linalg.lstsq(root[:, None] * regressors, root * g, rcond=None)[0]
    return np.sum(w * (g - regressors @ fit) ** 2) / (total - ddof * total_sq / total)


def direct_loss(problem, axis, resolution, inside):
    """Slice the rows, choose bins in them, sum what is left in each bin (math [10] and [37])."""
    x, g = problem.x[inside], problem.g[inside]
    given = None if problem.weight is None else problem.weight[inside]
    w = np.ones(len(x)) if given is None else given
    cells = cell_moments(axis, x, g, given, frequency=problem.frequency)
    low, high = problem.x.min(), problem.x.max()
    edges = problem.edges if problem.given_cells else None
    seen = Candidates(problem.name, cells, low, high, resolution, edges, problem.gaps)
    (chosen,) = problem.rule.choose([seen])
    starts = np.append(chosen.starts, len(axis))
    edges = np.append(0, np.cumsum(problem.width))
    cell = problem.cell[inside]
    spreads, shares = [], []
    for k, (begin, end) in enumerate(pairwise(starts)):
        here = (cell >= begin) & (cell < end)
        linear = chosen.linear is not None and chosen.linear[k]
        regressors = np.column_stack([np.ones(here.sum()), x[here]])[:, : 1 + linear]
        ddof = problem.ddof + 1 if linear else problem.ddof
        spreads.append(variance_about(g[here], w[here], problem.frequency, regressors, ddof))
        shares.append(edges[end] - edges[begin] if problem.loss == "index" else w[here].sum())
    spreads, shares = np.array(spreads), np.array(shares)
    known = np.isfinite(spreads)
    if not known.any():
        return np.nan
    mean = np.sum(shares[known] * spreads[known]) / np.sum(shares[known])
    return mean * edges[-1] if problem.loss == "index" else problem.scale * np.sqrt(mean)


def effective(problem, inside):
    if problem.weight is None or problem.frequency:
        return inside.sum() if problem.weight is None else problem.weight[inside].sum()
    w = problem.weight[inside]
    return w.sum() ** 2 / np.sum(w**2)


def problem_and_node(local, rule, loss, min_obs=15):
    rows = columns(local)
    problem = problem_of(rows, 0, "x0", rule, error=0.0, loss=loss, min_obs=min_obs)
    axis = rule.cells(Column("x0", problem.x, problem.x.min(), problem.x.max(), problem.weight))
    return problem, axis, problem.node(np.arange(rows.n_rows), 0.0)


@pytest.mark.thorough
@pytest.mark.parametrize(("rule", "kind"), in_turn(RULES, WEIGHT_KINDS), ids=repr)
def test_losses_of_all_candidates(rng, rule, kind):
    """To 1e-9: what is left is rounding of sums in another order. Losses take turns."""
    loss = ("index", "output")[(RULES.index(rule) + (kind == "precision")) % 2]
    X, jacobian, other = sample(rng)
    local = local_of(X, jacobian, weights_of(kind, rng), kind)
    problem, axis, node = problem_and_node(local, rule, loss)
    every = np.ones(N, dtype=bool)
    expected = direct_loss(problem, axis, node.resolution, every)
    assert_allclose(node.loss, expected, rtol=1e-9)
    total = np.ones(N) if problem.weight is None else problem.weight
    refused = compared = 0
    # Rules that look at one problem after the other take milliseconds a side.
    slow = not isinstance(rule, rs.OptimalBins | rs.EqualWidthBins | rs.QuantileBins)
    for thresholds in ("quantile", "equal_width", "exact"):
        given = other[["count", "flag"]] if slow and thresholds == "exact" else other
        found = [
            candidates_of(one, thresholds, 4 if slow else 7)
            for one in conditioning_columns(local, given, "x0")
        ]
        losses = split_losses(node, node.rows, found)
        for candidates, values in zip(found, losses, strict=True):
            # About five of each column's thresholds.
            step = 1 + candidates.n_splits // 6
            for split in range(0, candidates.n_splits, step):
                left = candidates.goes_left(split)
                sides = (left, ~left)
                if min(effective(problem, side) for side in sides) < 15:
                    assert values[split] == np.inf
                    refused += 1
                    continue
                expected = sum(
                    total[side].sum()
                    / total.sum()
                    * direct_loss(problem, axis, node.resolution, side)
                    for side in sides
                )
                assert_allclose(values[split], expected, rtol=1e-9)
                compared += 1
    assert compared > 15
    assert refused > 0


def test_many_exact_thresholds_come_in_blocks_of_problems(rng, monkeypatch):
    """The same, whatever number of problems is solved at once."""
    X, jacobian, _ = sample(rng, 900)
    _, _, node = problem_and_node(local_of(X, jacobian), rs.OptimalBins(20), "index")
    columns_ = conditioning_columns(local_of(X, jacobian), None, "x0")
    found = [candidates_of(one, "exact", 20) for one in columns_]
    expected = split_losses(node, node.rows, found)
    monkeypatch.setattr(split_losses_module, "PROBLEMS", 64)
    for one, two in zip(expected, split_losses(node, node.rows, found), strict=True):
        assert_allclose(one, two, rtol=1e-12)


def test_bins_of_small_nodes_have_ten_rows():
    """A region of 31 rows has at most three bins, and spread is not cut away.

    Bins of two rows, as for 30 rows by themselves, would follow the saw of the effects.
    """
    x = np.linspace(0, 1, 400)
    inside = np.arange(400) % 13 == 0
    saw = np.where(np.cumsum(inside) % 4 < 2, -1.0, 1.0)
    local = local_of(pd.DataFrame({"x0": x}), np.where(inside, saw, 0.0)[:, None])
    other = pd.DataFrame({"flag": inside})
    tree = rs.regions(
        local, "x0", conditioning=other, bins=rs.OptimalBins(), min_drop=0, max_depth=1
    )
    rows = columns(local)
    alone = problem_of(rows, 0, "x0", rs.OptimalBins(), error=0.0, loss="index", min_obs=1)
    held = problem_of(
        rows, 0, "x0", root_bins(rs.OptimalBins(), 400), error=0.0, loss="index", min_obs=1
    )
    at = np.flatnonzero(inside)
    assert alone.node(at, 0.0).starts.sum() > 5
    held_bins = np.flatnonzero(np.append(held.node(at, 0.0).starts, True))
    cell = held.cell[at]
    assert min(np.histogram(cell, held_bins - 0.5)[0]) >= 10
    # A node of all rows has bins of a twentieth.
    of_all = held.node(np.arange(400), 0.0).starts
    assert_array_equal(of_all, alone.node(np.arange(400), 0.0).starts)
    assert held.node(at[:9], 0.0).starts.sum() == 1
    assert tree.attrs["bin_rule"] == "OptimalBins"
    given = rs.OptimalBins(min_obs=3)
    assert root_bins(given, 400) is given


def test_studentised_drops_by_hand():
    """One bin: the square of Welch's t. Two bins: both sums over both bins."""
    x = np.array([0.1, 0.2, 0.3, 0.4, 0.1, 0.2, 0.3, 0.6, 0.7, 0.9, 1.0, 0.0])
    g = np.array([1.0, 3.0, 2.0, 5.0, 7.0, 4.0, 9.0, 1.0, 2.0, 8.0, 4.0, 6.0])
    left = np.arange(12) % 2 == 0
    local = local_of(pd.DataFrame({"x0": x}), g[:, None])
    (column,) = conditioning_columns(local, pd.DataFrame({"left": ~left}), "x0")
    tried = [candidates_of(column, "exact", 20)]
    for loss in ("index", "output"):
        for rule in (rs.EqualWidthBins(1), rs.GivenBins([0.0, 0.5, 1.0])):
            problem, _, node = problem_and_node(local, rule, loss, min_obs=2)
            bins = np.zeros(12, dtype=int) if len(problem.width) == 1 else (x >= 0.5).astype(int)
            drop = expected = 0.0
            for k in np.unique(bins):
                one, two = g[left & (bins == k)], g[~left & (bins == k)]
                share = len(one) * len(two) / (len(one) + len(two))
                if loss == "index":
                    share *= problem.width[k] / (len(one) + len(two))
                drop += share * (one.mean() - two.mean()) ** 2
                expected += share * (one.var(ddof=1) / len(one) + two.var(ddof=1) / len(two))
            (found,) = node.test().largest(tried)
            assert found == pytest.approx(drop / expected, rel=1e-12)
            if len(problem.width) == 1:
                welch = stats.ttest_ind(g[left], g[~left], equal_var=False).statistic
                assert found == pytest.approx(welch**2, rel=1e-12)


def test_groups_keep_together(rng):
    """Signs change by whole groups, about the means of bins; halves and folds hold whole groups."""
    X, jacobian, _ = sample(rng)
    local, group = local_of(X, jacobian), rng.integers(0, 12, N)
    problem, _, node = problem_and_node(local, rs.EqualWidthBins(3), "index")
    sign = rng.choice([-1.0, 1.0], 12)[group]
    rows = node.test().rows.apart(group).flipped(sign)
    g, cell = jacobian[:, 0], problem.cell
    mean = np.array([g[cell == k].mean() for k in range(3)])[cell]
    away = g - mean
    for k in range(3):
        for one in range(12):
            here = (cell == k) & (group == one)
            share = here.sum() / (cell == k).sum()
            away[here] += (1 / np.sqrt(1 - share) - 1) * away[here].mean() if here.any() else 0
    assert_allclose(rows.effect + rows.centre[cell], mean + sign * away, atol=1e-10)
    tree = rs.regions(
        local, "x0", test="honest", groups=group, bins=rs.OptimalBins(10), n_permutations=19, rng=1
    )
    judged = tree["region_of_row"].values >= 0
    assert tree.attrs["n_groups"] == 12
    assert len(np.unique(group[judged])) == 6
    assert not np.isin(group[~judged], group[judged]).any()
    # Rows in groups of one agree with signs of rows, in any order and under any names.
    options = {"test": "permutation", "n_permutations": 19, "rng": 4, "bins": rs.OptimalBins(10)}
    one = rs.regions(local, "x0", groups=group, **options)
    two = rs.regions(local, "x0", groups=[f"g{k:02}" for k in group], **options)
    xr.testing.assert_identical(one, two)
    folded = rs.regions(local, "x0", groups=group, n_folds=4, rng=0)
    assert folded.sizes["pruning"] >= 1
    with pytest.raises(ValueError, match="at least two groups; got one"):
        rs.regions(local, "x0", groups=np.zeros(N), test="permutation")
    with pytest.raises(ValueError, match="groups"):
        rs.regions(local, "x0", groups=group[1:], test="permutation")


def test_studentised_drops_of_too_few_rows_are_no_splits():
    X = pd.DataFrame({"x0": np.linspace(0, 1, 40)})
    local = local_of(X, np.sin(9 * X.to_numpy()))
    other = pd.DataFrame({"flag": np.arange(40) < 5})
    _, _, node = problem_and_node(local, rs.EqualWidthBins(2), "index", min_obs=6)
    tried = [candidates_of(one, "exact", 20) for one in conditioning_columns(local, other, "x0")]
    (found,) = node.test().largest(tried)
    assert found == -np.inf


# --- the authors' library ------------------------------------------------------------------------


@dataclass(frozen=True)
class Population(rs.EqualWidthBins):
    """Bins of one width, with variances of divisor n as in effector."""

    ddof: int = 0


def numbers_only(rng):
    """effector guesses that a column of two values is ordinal, and warns."""
    X, jacobian, _ = sample(rng, 600)
    return X.drop(columns="flag"), jacobian[:, :3]


def theirs(X, jacobian, n_bins):
    effector = pytest.importorskip("effector")
    effect = effector.RHALE(
        X.to_numpy(), lambda x: x[:, 0], data_effect=jacobian, nof_instances="all"
    )
    effect.fit(0, binning_method=effector.axis_partitioning.Fixed(nof_bins=n_bins))
    return effect


def test_losses_equal_those_of_effector(rng):
    """On the same candidates, when the spread of x has divisor n too."""
    X, jacobian = numbers_only(rng)
    local = local_of(X, jacobian)
    _, _, node = problem_and_node(local, Population(4), "output", min_obs=40)
    effect = theirs(X, jacobian, 4)
    convert = X["x0"].std(ddof=0) / X["x0"].std(ddof=1)
    assert_allclose(convert * node.loss, effect.heter_score(0), rtol=1e-6)
    compared = 0
    for one in conditioning_columns(local, None, "x0"):
        candidates = candidates_of(one, "equal_width", 19)
        (losses,) = split_losses(node, node.rows, [candidates])
        values = X[one.name].to_numpy()
        cuts = np.linspace(values.min(), values.max(), 21)[1:-1]
        for split, cut in enumerate(cuts):
            assert_array_equal(candidates.goes_left(split), values < cut)
        for split in np.flatnonzero(np.isfinite(losses)):
            left = candidates.goes_left(split)
            expected = sum(side.mean() * effect.heter_score(0, mask=side) for side in (left, ~left))
            assert_allclose(convert * losses[split], expected, rtol=1e-6)
            compared += 1
    assert compared > 10


@pytest.mark.parametrize("seed", range(5))
def test_the_split_of_effector_is_chosen(seed):
    rng = np.random.default_rng(seed)
    X, jacobian = numbers_only(rng)
    effector = pytest.importorskip("effector")
    finder = effector.space_partitioning.Best(
        max_depth=1, numerical_features_grid_size=20, min_samples_leaf=30
    )
    partition = theirs(X, jacobian, 4).find_regions(0, finder=finder)
    tree = rs.regions(
        local_of(X, jacobian), "x0", max_depth=1, min_obs=30, min_drop=0.05, min_share=0.0,
        n_thresholds=19, thresholds="equal_width", bins=Population(4), loss="output",
    )  # fmt: skip
    theirs_left = next(region.mask for region in list(partition) if region.level == 1)
    assert tree.sizes["node"] == 3
    assert_array_equal(tree["region_of_row"].values == 0, theirs_left)


# --- losses of the root --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "kind"),
    in_turn([rule for rule in RULES if getattr(rule, "ddof", 1)], WEIGHT_KINDS),
    ids=str,
)
def test_loss_of_the_root_is_that_of_the_effect(rng, rule, kind):
    X, jacobian, other = sample(rng)
    local = local_of(X, jacobian, weights_of(kind, rng), kind)
    effect = rs.rhale(local.isel(feature=[0]), bins=rule)
    options = {"conditioning": other, "max_depth": 0, "bins": rule}
    output = rs.regions(local, "x0", loss="output", **options)
    if effect["effect"].notnull().all():
        assert_allclose(output["loss"][0], effect["heterogeneity_output"][0], rtol=1e-9)
    index = rs.regions(local, "x0", **options)
    width = (effect["bin_right"] - effect["bin_left"]).values[0]
    here = np.isfinite(width)
    expected = np.sum(width[here] * effect["heterogeneity"].values[0, here] ** 2)
    assert_allclose(index["loss"][0], expected, rtol=1e-9)


# --- trees ---------------------------------------------------------------------------------------


def test_two_regimes():
    """math [53]: one split on x3 at 0, effects of -3 and 3 without heterogeneity."""
    X, local = two_regimes()
    tree = rs.regions(local, "x1")
    assert list(tree["rule"].values) == ["all rows", "x3 ≤ 0", "x3 > 0"]
    assert_array_equal(tree["parent"], [-1, 0, 0])
    assert_array_equal(tree["depth"], [0, 1, 1])
    assert_array_equal(tree["region"], [-1, 0, 1])
    assert_array_equal(tree["n_obs"], [500, (X["x3"] <= 0).sum(), (X["x3"] > 0).sum()])
    assert_allclose(tree["weight_share"], tree["n_obs"] / 500)
    assert_allclose(tree["loss"][1:], 0, atol=1e-12)
    assert_allclose(tree["loss_drop"], [1, np.nan, np.nan])
    assert_array_equal(tree["threshold"], [np.nan, 0, 0])
    assert list(tree["operator"].values) == ["", "<=", ">"]
    assert_array_equal(tree["region_of_row"], X["x3"] > 0)
    effect = rs.regional_rhale(local, tree)
    assert effect["effect"].dims == ("region", "feature", "bin")
    assert_allclose(effect["average_effect"].values[:, 0], [-3, 3], rtol=1e-12)
    assert_allclose(effect["heterogeneity"], 0, atol=1e-12)
    assert list(effect["region_rule"].values) == ["x3 ≤ 0", "x3 > 0"]
    alone = rs.rhale(local.sel(feature=["x1"]).isel(obs=np.flatnonzero(X["x3"] > 0)))
    xr.testing.assert_allclose(effect["curve"].isel(region=1, drop=True), alone["curve"])


def test_columns_that_coincide_leave_nothing_to_split():
    _, local = two_regimes(correlated=True)
    tree = rs.regions(local, "x1")
    assert tree.sizes["node"] == 1
    assert list(tree["rule"].values) == ["all rows"]
    assert_array_equal(tree["region_of_row"], 0)
    assert_array_equal(tree["pvalue"], [np.nan])


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("thresholds", "kind"), in_turn(["quantile", "equal_width", "exact"], WEIGHT_KINDS)
)
def test_what_a_tree_says_is_what_its_rows_are(rng, thresholds, kind):
    X, jacobian, other = sample(rng)
    weights = weights_of(kind, rng)
    local = local_of(X, jacobian, weights, kind)
    tree = rs.regions(
        local, "x0", conditioning=other, thresholds=thresholds, min_drop=0.02, bins=RULES[0],
        test=None,
    )  # fmt: skip
    assert tree.sizes["node"] > 3
    w = np.ones(N) if weights is None else np.asarray(weights, dtype=float)
    inside = [np.ones(N, dtype=bool)]
    for number in range(1, tree.sizes["node"]):
        node = tree.isel(node=number)
        values = other[str(node["condition_feature"].values)]
        operator, cut = str(node["operator"].values), float(node["threshold"])
        levels = [] if not str(node["levels"].values) else json.loads(str(node["levels"].values))
        here = {
            "<=": lambda v=values, c=cut: v <= c,
            ">": lambda v=values, c=cut: v > c,
            "==": lambda v=values, x=levels: v.isin(x),
            "in": lambda v=values, x=levels: v.isin(x),
        }[operator]()
        inside.append(inside[int(node["parent"])] & np.asarray(here))
    counted = w if kind == "frequency" else np.ones(N)
    assert_array_equal(tree["n_obs"], [counted[rows].sum() for rows in inside])
    assert_allclose(tree["weight_share"], [w[rows].sum() / w.sum() for rows in inside])
    for region, rows in zip(tree["region"].values, inside, strict=True):
        if region >= 0:
            assert_array_equal(tree["region_of_row"].values == region, rows)
    # The drop is that of the losses of the children.
    share, loss = tree["weight_share"].values, tree["loss"].values
    for number in np.flatnonzero(tree["region"].values < 0):
        children = tree["parent"].values == number
        left = np.sum(share[children] * loss[children]) / share[number]
        assert_allclose(tree["loss_drop"][number], 1 - left / loss[number], rtol=1e-9)
    # The same again for new rows.
    assert_array_equal(rs.assign(tree, other), tree["region_of_row"])


@pytest.mark.thorough
@pytest.mark.parametrize("thresholds", ["quantile", "equal_width", "exact"])
def test_frequency_weights_are_repeated_rows(rng, thresholds):
    X, jacobian, other = sample(rng)
    counts = weights_of("frequency", rng)
    again = np.repeat(np.arange(N), counts)
    options = {"thresholds": thresholds, "bins": rs.OptimalBins(30), "min_drop": 0.02, "test": None}
    weighted = rs.regions(
        local_of(X, jacobian, counts, "frequency"), "x0", conditioning=other, **options
    )
    repeated = rs.regions(
        local_of(X.iloc[again].reset_index(drop=True), jacobian[again]), "x0",
        conditioning=other.iloc[again].reset_index(drop=True), **options,
    )  # fmt: skip
    assert list(weighted["rule"].values) == list(repeated["rule"].values)
    for name in ("n_obs", "weight_share", "loss", "loss_drop", "best_drop", "threshold"):
        assert_allclose(weighted[name], repeated[name], rtol=1e-9, err_msg=name)
    assert_array_equal(weighted["region_of_row"].values[again], repeated["region_of_row"])


def test_rows_of_frequency_weights_are_counted_for_a_constant_feature():
    X = pd.DataFrame({"x0": np.ones(30), "z": np.arange(30.0)})
    local = local_of(X, np.ones((30, 2)), np.full(30, 2), "frequency")
    assert rs.regions(local, "x0")["n_obs"][0] == 60


@pytest.mark.thorough
@pytest.mark.parametrize("loss", ["index", "output"])
def test_equivariance(rng, loss):
    """x -> c x + d, f -> a f + b: the same rows, drops and p-values; losses in the new units."""
    X, jacobian, _ = sample(rng)
    a, c, d = -4.0, 0.25, 8.0
    options = {"loss": loss, "bins": rs.OptimalBins(16), "test": "permutation", "rng": 3}
    options |= {"min_drop": 0.02, "n_permutations": 19}
    one = rs.regions(local_of(X, jacobian), "x0", **options)
    two = rs.regions(local_of(c * X + d, a / c * jacobian), "x0", **options)
    assert one.sizes["node"] > 1
    assert_array_equal(one["region_of_row"], two["region_of_row"])
    assert_allclose(one["best_drop"], two["best_drop"], rtol=1e-9)
    # A bound of a p-value is computed, not counted.
    assert_allclose(one["pvalue"], two["pvalue"], rtol=1e-6)
    unit = a**2 / c if loss == "index" else abs(a)
    assert_allclose(two["loss"], unit * one["loss"], rtol=1e-9)


@pytest.mark.thorough
def test_order_of_rows_and_columns(rng):
    X, jacobian, other = sample(rng)
    options = {"bins": rs.OptimalBins(30), "min_drop": 0.02}
    one = rs.regions(local_of(X, jacobian), "x0", conditioning=other, **options)
    order = rng.permutation(N)
    two = rs.regions(
        local_of(X.iloc[order].reset_index(drop=True), jacobian[order]), "x0",
        conditioning=other.iloc[order, ::-1].reset_index(drop=True), **options,
    )  # fmt: skip
    assert list(one["rule"].values) == list(two["rule"].values)
    assert_array_equal(one["region_of_row"].values[order], two["region_of_row"])
    assert_allclose(one["loss"], two["loss"], rtol=1e-9)


# --- honest trees --------------------------------------------------------------------------------


def test_honest_trees_count_the_rows_that_judge(rng):
    X, jacobian, other = sample(rng)
    local = local_of(X, jacobian)
    tree = rs.regions(
        local, "x0", conditioning=other, test="honest", bins=RULES[0], n_permutations=19, rng=2
    )
    assert tree.sizes["node"] > 1
    found_on = tree["region_of_row"].values < 0
    assert found_on.sum() == N / 2
    assert tree["n_obs"][0] == N / 2
    region = rs.assign(tree, other).values
    assert_array_equal(region[~found_on], tree["region_of_row"].values[~found_on])
    assert (region[found_on] >= 0).all()
    # Rows without a region take no part in the effects.
    effect = rs.regional_rhale(local, tree, bins=rs.EqualWidthBins(2))
    assert effect["n_obs"].sum() == N / 2


def test_losses_of_honest_trees_are_those_of_the_judging_rows(rng):
    X, jacobian, other = sample(rng)
    local = local_of(X, jacobian)
    tree = rs.regions(
        local, "x0", conditioning=other, test="honest", bins=rs.EqualWidthBins(4), max_depth=1,
        n_permutations=19, rng=2, loss="output",
    )  # fmt: skip
    judging = tree["region_of_row"].values >= 0
    effect = rs.rhale(
        local.isel(feature=[0], obs=np.flatnonzero(judging)),
        bins=rs.GivenBins(np.linspace(X["x0"].min(), X["x0"].max(), 5)),
    )
    share = effect.rhale.in_bins()["weight_share"].values[0]
    spread = effect["heterogeneity"].values[0]
    expected = X["x0"].std(ddof=1) * np.sqrt(np.sum(share * spread**2))
    assert_allclose(tree["loss"][0], expected, rtol=1e-6)


# --- degenerate ----------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["index", "output"])
@pytest.mark.parametrize("test", [None, "permutation", "honest"])
def test_a_constant_effect_is_not_split(rng, loss, test):
    X, jacobian, _ = sample(rng)
    tree = rs.regions(
        local_of(X, np.full_like(jacobian, 2.5)), "x0", loss=loss, test=test, min_drop=0,
        min_share=0,
    )  # fmt: skip
    assert tree.sizes["node"] == 1
    assert_allclose(tree["loss"], 0, atol=1e-12)


def test_a_constant_feature(rng):
    X, jacobian, _ = sample(rng)
    X["x0"] = 3.0
    tree = rs.regions(local_of(X, jacobian), "x0")
    assert tree.sizes["node"] == 1
    assert np.isnan(tree["loss"][0])
    assert_array_equal(tree["region_of_row"], 0)


def test_constant_conditioning_columns(rng):
    X, jacobian, _ = sample(rng)
    given = pd.DataFrame({"one": np.ones(N), "same": ["a"] * N})
    tree = rs.regions(local_of(X, jacobian), "x0", conditioning=given, test="permutation")
    assert tree.sizes["node"] == 1


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["precision", "frequency"])
def test_rows_of_weight_zero_are_absent(rng, kind):
    X, jacobian, other = sample(rng)
    weights = weights_of(kind, rng).astype(float)
    weights[::3] = 0
    # Whatever stands in them.
    wild = jacobian.copy()
    wild[::3, 0] = 1e6
    present = weights > 0
    options = {"bins": rs.OptimalBins(30), "min_drop": 0.02}
    one = rs.regions(local_of(X, wild, weights, kind), "x0", conditioning=other, **options)
    two = rs.regions(
        local_of(X[present], jacobian[present], weights[present], kind), "x0",
        conditioning=other[present], **options,
    )  # fmt: skip
    assert list(one["rule"].values) == list(two["rule"].values)
    assert_allclose(one["loss"], two["loss"], rtol=1e-12)
    assert_array_equal(one["region_of_row"].values[present], two["region_of_row"])
    assert_array_equal(one["region_of_row"].values[~present], -1)


def test_more_rows_asked_for_than_half_of_them(rng):
    X, jacobian, _ = sample(rng)
    tree = rs.regions(local_of(X, jacobian), "x0", min_obs=N)
    assert tree.sizes["node"] == 1
    assert str(tree["best"][0].values) == ""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kind", "test", "thresholds"),
    [
        ("none", None, "quantile"),
        ("precision", None, "equal_width"),
        ("frequency", None, "quantile"),
        ("precision", "honest", "quantile"),
    ],
)
def test_all_regions(rng, kind, test, thresholds):
    """Each as `regions` finds it alone, what their roots share and what they do not."""
    X, jacobian, other = sample(rng, 600)
    jacobian = jacobian + np.where(X["z"] > 0, 1.0, 0.0)[:, None]
    local = local_of(X, jacobian, weights_of(kind, rng, 600), kind)
    options = {"bins": RULES[0], "thresholds": thresholds, "test": test, "rng": 0}
    options |= {"n_permutations": 19}
    for given in (None, other):
        trees = rs.all_regions(local, ["x0", "z"], conditioning=given, progress=False, **options)
        assert list(trees["feature"].values) == ["x0", "z"]
        assert trees["n_nodes"].max() > 1
        for name in ("x0", "z"):
            alone = rs.regions(local, name, conditioning=given, **options)
            n_nodes = int(trees["n_nodes"].sel(feature=name))
            one = trees.sel(feature=name).isel(node=slice(0, n_nodes))
            # The second feature permutes otherwise than alone.
            pvalue = [] if test and name == "z" else ["pvalue"]
            for variable in ("rule", "loss", "n_obs", "region", "best_drop", *pvalue):
                assert_array_equal(one[variable], alone[variable])
            assert_array_equal(one["region_of_row"], alone["region_of_row"])
            if test is None and given is None:
                assert_array_equal(rs.assign(trees.sel(feature=name), X), alone["region_of_row"])


def test_trees_of_several_features_are_padded():
    """Numbers of nodes and regions are -1, rows and shares 0, texts empty, others NaN."""
    X, local = two_regimes()
    trees = rs.all_regions(local, ["x1", "x2"], progress=False)
    assert trees["n_nodes"].values.tolist() == [3, 1]
    beyond = trees.isel(feature=1, node=slice(1, None))
    for name in ("parent", "depth", "region"):
        assert beyond[name].values.tolist() == [-1, -1], name
    for name in ("n_obs", "weight_share"):
        assert beyond[name].values.tolist() == [0, 0], name
    for name in ("rule", "best", "operator"):
        assert beyond[name].values.tolist() == ["", ""], name
    for name in ("loss", "threshold", "pvalue"):
        assert beyond[name].isnull().all(), name
    assert trees["region_of_row"].dims == ("feature", "obs")
    assert_array_equal(trees["region_of_row"][0], X["x3"] > 0)


# --- new rows ------------------------------------------------------------------------------------


def test_rows_that_no_region_takes():
    X, local = two_regimes()
    tree = rs.regions(local, "x1")
    new = X.iloc[:4].copy()
    new.index = list("abcd")
    new.iloc[1, 2] = np.nan
    with pytest.warns(UserWarning, match="No region for 1 of 4 rows"):
        found = rs.assign(tree, new)
    assert list(found["obs"].values) == list("abcd")
    assert found.values[1] == -1
    assert_array_equal(found.values[[0, 2, 3]], X["x3"].iloc[[0, 2, 3]] > 0)
    with pytest.raises(KeyError, match="got none named 'x3'"):
        rs.assign(tree, X[["x1", "x2"]])
    with pytest.raises(TypeError, match="numbers in column 'x3', which is compared with 0; got"):
        rs.assign(tree, X.astype({"x3": object}).assign(x3="many"))


@pytest.mark.parametrize("levels", ["uv", "uvw"])
def test_new_levels_have_no_region(levels):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=900), "c": rng.choice(list(levels), 900)})
    tree = rs.regions(lambda X: X["x"] * (2.0 * (X["c"] == "u") - 1), X, "x", rng=0)
    new = pd.DataFrame({"x": 0.0, "c": ["u", "v", "zz"]})
    with pytest.warns(UserWarning, match=r"No region for 1 of 3 rows \(2\)"):
        assert rs.assign(tree, new).values.tolist() == [0, 1, -1]


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_thresholds": 0}, ValueError, "n_thresholds must be at least 1; got 0"),
        ({"n_permutations": 0}, ValueError, "n_permutations must be at least 1; got 0"),
        ({"min_obs": 0}, ValueError, "min_obs must be at least 1; got 0"),
        ({"min_drop": 1.0}, ValueError, r"min_drop must lie in \[0, 1\).*got 1.0"),
        ({"min_drop": np.nan}, ValueError, "min_drop must lie in.*got nan"),
        ({"min_share": -0.1}, ValueError, "min_share must lie in.*got -0.1"),
        ({"level": 0.0}, ValueError, "level must lie strictly between 0 and 1; got 0.0"),
        ({"loss": "variance"}, ValueError, "loss must be.*got 'variance'"),
        ({"test": "bonferroni"}, ValueError, "test must be.*got 'bonferroni'"),
        (
            {"test": "permutation", "n_permutations": 18},
            ValueError,
            "at least 1 / level - 1.*got 18 at level 0.05",
        ),
        ({"bins": rs.OptimalBins}, TypeError, "bins must be a rule such as OptimalBins"),
        ({"conditioning": np.ones((3, 1))}, ValueError, "each of the 300 rows of local; got 3"),
    ],
)
def test_settings_refused(rng, options, error, message):
    X, jacobian, _ = sample(rng)
    with pytest.raises(error, match=message):
        rs.regions(local_of(X, jacobian), "x0", **options)


def test_others_refused(rng):
    X, jacobian, other = sample(rng)
    local = local_of(X, jacobian)
    with pytest.raises(KeyError, match="nowhere"):
        rs.regions(local, "nowhere")
    tree = rs.regions(local, "x0", bins=RULES[0])
    with pytest.raises(ValueError, match="it has 299 rows and the tree 300"):
        rs.regional_rhale(local.isel(obs=slice(1, None)), tree)
    with pytest.raises(TypeError, match=r"that regions\(local, feature\) returns; got DataFrame"):
        rs.regional_rhale(local, other)
    trees = rs.all_regions(local, ["x0", "z"], bins=RULES[0], progress=False)
    with pytest.raises(ValueError, match="of one feature; this one is of 'x0', 'z'"):
        rs.assign(trees, X)
    broken = local.assign(x=local["x"].where(local["x"]["obs"] != 5))
    with pytest.raises(ValueError, match="got 1 NaN in 300 rows"):
        regions.regions(broken.assign(local_effect=local["local_effect"]), "x0")


def test_refining_a_threshold_ends():
    """The bracket of the best threshold once grew again, and a search went round for ever."""
    rng = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(16, 197)))
    x, effect, _ = two_groups("uniform", 0.5, 500, rng)
    X = pd.DataFrame(x).add_prefix("x")
    local = local_of(X, np.column_stack([effect, np.zeros((500, 9))]))
    tree = rs.regions(local, "x0", max_depth=1, min_drop=0, min_share=0, bins=rs.OptimalBins(10))
    assert str(tree["condition_feature"][1].values) == "x3"


@pytest.mark.thorough
@every_weight
@pytest.mark.parametrize("values", ["distinct", "repeated"])
@pytest.mark.parametrize("number", [0, 3, -1])
def test_refined_is_the_best_threshold_between_the_neighbours(rng, kind, values, number):
    """With bins that stay what they are; wherever the best quantile is, first and last too."""
    X, jacobian, _ = sample(rng)
    z = X["z"].to_numpy().round(1 if values == "repeated" else 15)
    n_thresholds = 7
    jacobian[:, 0] += 3 * (z > np.quantile(z, (range(1, 8)[number] + 0.3) / 8))
    local = local_of(X, jacobian, weights_of(kind, rng), kind)
    problem, _, node = problem_and_node(local, rs.EqualWidthBins(6), "index")
    (column,) = conditioning_columns(local, pd.DataFrame({"c": z}), "x0")
    settings = SplitSearch(1, min_drop=0.0, min_share=0.0, n_thresholds=n_thresholds)
    tree = SplitTree(problem, [column], settings, rng)
    best = tree.best(node, None)

    coarse = candidates_of(column, "quantile", n_thresholds, node.rows.counts)
    (losses,) = split_losses(node, node.rows, [coarse])
    at = int(losses.argmin())
    cuts = np.concatenate([[-np.inf], coarse.thresholds, [z.max()]])
    every = candidates_of(column, "exact", n_thresholds)
    (exact,) = split_losses(node, node.rows, [every])
    inside = (every.thresholds > cuts[at]) & (every.thresholds < cuts[at + 2])
    exact[~inside] = np.inf
    assert_allclose(best.loss, exact.min(), rtol=1e-9)
    assert_array_equal(
        column.meets(best.sides[0], node.row_numbers), every.goes_left(int(exact.argmin()))
    )


@pytest.mark.thorough
@pytest.mark.parametrize("n_thresholds", [1, 2, 20])
def test_refined_thresholds_are_better_than_quantiles(rng, n_thresholds):
    X, jacobian, _ = sample(rng)
    local = local_of(X, jacobian)
    options = {"max_depth": 1, "min_drop": 0, "bins": rs.OptimalBins(20)}
    drop = {
        thresholds: float(
            rs.regions(
                local, "x0", conditioning=X[["z"]], thresholds=thresholds,
                n_thresholds=n_thresholds, **options,
            )["best_drop"][0]
        )
        for thresholds in ("quantile", "exact")
    }  # fmt: skip
    _, _, node = problem_and_node(local, rs.OptimalBins(20), "index")
    (column,) = conditioning_columns(local, X[["z"]], "x0")
    coarse = candidates_of(column, "quantile", n_thresholds)
    (losses,) = split_losses(node, node.rows, [coarse])
    assert 1 - losses.min() / node.loss <= drop["quantile"] + 1e-12
    assert drop["quantile"] <= drop["exact"] + 1e-12


def test_levels_that_only_the_judging_rows_have_are_in_a_region():
    """Of an honest tree no judging row is lost, whatever the search did not see."""
    rng = np.random.default_rng(5)
    n = 400
    x = rng.uniform(size=n)
    levels = rng.choice(["a", "b", "c"], n).astype(object)
    g = np.where(levels == "a", 4.0, -4.0) + rng.normal(size=n)
    local = rs.local_effects(None, x[:, None], jacobian=g[:, None])
    chosen = None
    for rare in range(n):  # rows that the search will not see
        named = levels.copy()
        named[rare] = "rare"
        tree = rs.regions(
            local, "x0", conditioning=pd.DataFrame({"level": named}), test="honest", rng=3
        )
        if tree["region_of_row"].values[rare] >= 0:
            chosen = tree
            break
    assert chosen is not None
    assert chosen.sizes["node"] > 1
    leaves = chosen["region"].values >= 0
    assert chosen["n_obs"].values[leaves].sum() == chosen["n_obs"].values[0]
    assert (chosen["region_of_row"].values >= 0).sum() == chosen["n_obs"].values[0]
    assert "rare" in " ".join(chosen["rule"].values) or "≠" in " ".join(chosen["rule"].values)


@pytest.mark.parametrize("feature", ["dose", 1])
def test_a_column_may_tell_rows_apart_by_being_missing(feature):
    """Of a model and a table, with the defaults."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"lab": rng.normal(size=400), "dose": rng.uniform(0, 4, 400)})
    X.loc[rng.uniform(size=400) < 0.3, "lab"] = np.nan

    def model(rows):
        return np.where(rows["lab"].isna(), 3.0, -1.0) * rows["dose"]

    tree = rs.regions(model, X, feature, rng=0)
    assert set(tree["rule"].values) == {"all rows", "lab is missing", "lab is not missing"}
    n_missing = tree["n_obs"].values[tree["rule"].values == "lab is missing"]
    assert n_missing == X["lab"].isna().sum()
    X.loc[:9, "dose"] = np.nan
    with pytest.raises(ValueError, match="got 10 NaN in 400 rows. Add missing='drop'"):
        rs.regions(lambda rows: rows["dose"].fillna(0.0), X, feature)
    dropped = rs.regions(
        lambda rows: model(rows.fillna({"dose": 0.0})), X, feature, missing="drop", rng=0
    )
    assert set(dropped["rule"].values) == set(tree["rule"].values)
    assert_array_equal(np.flatnonzero(dropped["region_of_row"] < 0), np.arange(10))


def with_gaps(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n), "c": rng.normal(size=n)})
    X.loc[rng.uniform(size=n) < 0.3, "a"] = np.nan
    X.loc[rng.uniform(size=n) < 0.2, "b"] = np.nan
    return X


@pytest.mark.parametrize(
    ("kind", "grouped"), in_turn(["none", "precision", "frequency"], [True, False])
)
def test_rows_without_a_value_have_no_region(kind, grouped):
    """Of every feature, as if it were searched in the rows that have a value of it."""

    def model(rows):
        return rows["a"].fillna(0) * (1 + 3 * (rows["c"] > 0)) + rows["b"].fillna(0) * rows["c"]

    X, rng = with_gaps(), np.random.default_rng(1)
    weights = {} if kind == "none" else {"weight_kind": kind, "weights": rng.integers(0, 4, len(X))}
    groups = rng.integers(0, 40, len(X)) if grouped else None
    options = {"missing": "drop", "progress": False}
    local = rs.local_effects(model, X, features=["a", "b"], **options, **weights)
    trees = rs.all_regions(local, conditioning=X, groups=groups, rng=0)
    matrix = rs.interaction_matrix(local, conditioning=X, n_permutations=0)
    for name in ("a", "b"):
        has_value = X[name].notna().to_numpy()
        part = X[has_value].reset_index(drop=True)
        some = {
            key: np.asarray(value)[has_value] if key == "weights" else value
            for key, value in weights.items()
        }
        of_part = rs.local_effects(model, part, features=[name], **options, **some)
        own = None if groups is None else groups[has_value]
        expected = rs.regions(of_part, name, conditioning=part, groups=own, rng=0)
        found = rs.regions(local, name, conditioning=X, groups=groups, rng=0)
        assert_array_equal(found["region_of_row"].values[has_value], expected["region_of_row"])
        assert (found["region_of_row"].values[~has_value] == -1).all()
        assert_allclose(found["loss"], expected["loss"], rtol=1e-6)
        assert found.attrs["n_rows"] == expected.attrs["n_rows"]
        tree = trees.sel(feature=name)
        assert_array_equal(tree["region_of_row"].values >= 0, found["region_of_row"].values >= 0)
        effect, known = rs.regional_rhale(local, found), rs.regional_rhale(of_part, expected)
        assert_allclose(effect["effect"], known["effect"], rtol=1e-6)
        drop = rs.interaction_matrix(of_part, conditioning=part, n_permutations=0)["loss_drop"]
        assert_allclose(matrix["loss_drop"].sel(feature=name), drop.sel(feature=name), rtol=1e-6)


@pytest.mark.thorough
@pytest.mark.parametrize("draw", ["normal", "uniform", "exponential"])
def test_a_jump_of_all_rows_hides_no_regions(draw):
    """f = 1(x > .3) + x 1(u > 0): rows differ by u, not by the jump, which all have in common.

    Cells of 25 rows are fewer than a bin must have, so that the jump is within a bin.
    """
    for seed in range(3):
        rng = np.random.default_rng(seed)
        x = getattr(rng, draw)(size=1000)
        score = stats.norm.ppf((stats.rankdata(x) - 0.5) / 1000)
        u, other = 0.7 * score + 0.7 * rng.normal(size=1000), rng.normal(size=1000)
        X = pd.DataFrame({"x": x, "u": u, "other": other})

        def model(X):
            return 1.0 * (X["x"] > 0.3) + X["x"] * (X["u"] > 0)

        local = rs.local_effects(model, X, features=["x"], method="finite_difference")
        tree = rs.regions(local, "x", conditioning=X[["u", "other"]], rng=0)
        assert tree["condition_feature"].values.tolist() == ["", "u", "u"]
        assert tree["threshold"].values[1] == pytest.approx(0, abs=0.1)
        assert float(tree["loss_drop"][0]) > 0.85
        # Without the interaction there is nothing to be found.
        flat = rs.local_effects(lambda X: 1.0 * (X["x"] > 0.3), X, features=["x"],
                                method="finite_difference")  # fmt: skip
        assert rs.regions(flat, "x", conditioning=X[["u", "other"]], rng=0).sizes["node"] == 1
