"""Regions by ALE, PDP and Shapley values: what they ask of the model, and what their losses are."""

from __future__ import annotations

import inspect
import re
import sys

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal

import rhale_stats as rs
from rhale_stats.arrays import regions as arrays
from rhale_stats.models import differences
from rhale_stats.regional.losses import CurveProblem, split_losses
from rhale_stats.regional.splits import Conditioning, candidates_of
from rhale_stats.schema.kinds import TREE, kind_of
from tests.helpers import Counting, in_turn, rows_of_probe, through_a_file

EXAMPLE = rs.simulate.TwoRegimes()
CORRELATED = rs.simulate.TwoRegimes(correlated=True)


def mixed(X):
    """A model with a numeric and a nominal interaction, and something additive."""
    X = X if isinstance(X, pd.DataFrame) else pd.DataFrame(X, columns=["x0", "x1", "x2"])
    return np.where(X["x1"] > 0.5, 2.0, -1.0) * np.sin(3 * X["x0"]) + X["x2"] ** 2 + X["x0"]


@pytest.fixture
def table(rng):
    X = rng.uniform(size=(400, 3))
    X.flags.writeable = False
    return X


def weights_of(kind, n, rng):
    if kind == "none":
        return {}
    values = rng.uniform(0.2, 3, n) if kind == "precision" else rng.integers(1, 4, n)
    return {"weights": values, "weight_kind": kind}


def centred_ice(model, X, position, grid):
    """By a plain loop."""
    curves = np.empty((len(X), len(grid)))
    for i, row in enumerate(X):
        at = np.tile(row, (len(grid), 1))
        at[:, position] = grid
        curves[i] = model(at)
        curves[i] -= curves[i].mean()
    return curves


def plain_loss(curves, weights=None, kind="none"):
    """Mean over the grid of the variance, ddof 1."""
    if kind == "precision":
        return np.mean([np.cov(column, aweights=weights) for column in curves.T])
    if kind == "frequency":
        return np.mean([np.cov(column, fweights=weights) for column in curves.T])
    return np.mean([np.var(column, ddof=1) for column in curves.T])


# What is asked of the model ----------------------------------------------------------------------


def test_ale_asks_once_for_both_ends_of_every_bin(table):
    model = Counting(mixed)
    tree = rs.regional_ale(model, table, "x0")
    assert model.rows == [*rows_of_probe(len(table)), 2 * len(table)]
    assert (tree.attrs["model_calls"], tree.attrs["model_rows"]) == (4, sum(model.rows))


def test_pdp_asks_for_every_row_at_every_point(table):
    model = Counting(mixed)
    tree = rs.regional_pdp(model, table, "x0", n_grid=17)
    assert sum(model.rows) == tree.attrs["model_rows"]
    assert model.rows == [*rows_of_probe(len(table)), 17 * len(table)]
    assert len(model.rows) == tree.attrs["model_calls"] == 4


@pytest.mark.thorough
@pytest.mark.parametrize(("batch", "calls"), [(10_000, 1), (900, 5), (400, 9), (7, 522)])
def test_pdp_asks_in_batches(table, monkeypatch, batch, calls):
    whole = rs.regional_pdp(mixed, table, "x0", n_grid=9)
    monkeypatch.setattr(differences, "BATCH_ROWS", batch)
    model = Counting(mixed)
    tree = rs.regional_pdp(model, table, "x0", n_grid=9)
    assert len(model.rows) == tree.attrs["model_calls"]
    probe = sum(-(-n // min(batch, n)) for n in rows_of_probe(len(table)))
    assert len(model.rows) - probe == calls
    assert sum(model.rows) == 9 * len(table) + sum(rows_of_probe(len(table)))
    assert max(model.rows) <= max(batch, len(table))
    xr.testing.assert_identical(tree.drop_attrs(), whole.drop_attrs())


def test_no_model_is_asked_about_a_constant(table):
    X = table.copy()
    X[:, 0] = 3.0
    model = Counting(mixed)
    for tree in (
        rs.regional_ale(model, X, "x0"),
        rs.regional_pdp(model, X, "x0"),
        rs.regional_shap(None, X, "x0", shap_values=np.zeros(len(X))),
    ):
        assert tree.sizes["node"] == 1
        assert tree.attrs["model_calls"] in (0, 3)
        assert tree["curve"].isnull().all()
    # Only whether it answers the same rows alike.
    assert model.rows == 2 * rows_of_probe(len(X))


def test_given_shapley_values_need_no_model(table):
    tree = rs.regional_shap(None, table, "x0", shap_values=table[:, 1])
    assert (tree.attrs["model_calls"], tree.attrs["model_rows"]) == (0, 0)


# r-ALE is the search of `regions` ----------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kind", "loss"), [("none", "output"), ("precision", "index"), ("frequency", "output")]
)
def test_ale_is_regions_of_finite_differences(table, kind, loss, rng):
    weights = weights_of(kind, len(table), rng)
    arguments = {"loss": loss, "min_obs": 30, "max_depth": 3}
    rule = rs.EqualWidthBins(100)
    local = rs.local_effects(mixed, table, method="finite_difference", bins=rule, **weights)
    theirs = rs.regions(local, "x0", bins=rule, **arguments)
    ours = rs.regional_ale(mixed, table, "x0", n_bins=100, **arguments, **weights)
    assert ours.sizes["node"] > 1
    xr.testing.assert_equal(ours[list(theirs.data_vars)], theirs)
    assert {"loss_kind", "bin_rule", "bin_parameters", "min_share"} <= set(ours.attrs)
    assert set(theirs.attrs) <= set(ours.attrs)


def test_ale_curve_is_that_of_the_rows_of_the_node(table):
    tree = rs.regional_ale(mixed, table, "x0", n_bins=10)
    edges = np.linspace(table[:, 0].min(), table[:, 0].max(), 11)
    assert_allclose(tree["grid_value"], edges, rtol=1e-12)
    k = np.clip(np.searchsorted(edges, table[:, 0], side="right") - 1, 0, 9)
    upper, lower = table.copy(), table.copy()
    upper[:, 0], lower[:, 0] = edges[k + 1], edges[k]
    change = (mixed(upper) - mixed(lower)).to_numpy()
    region = tree["region_of_row"].values
    for number, own in enumerate(tree["region"].values):
        rows = np.arange(len(table)) if number == 0 else np.flatnonzero(region == own)
        curve = np.append(0, np.cumsum([change[rows][k[rows] == b].mean() for b in range(10)]))
        curve -= np.interp(table[rows, 0], edges, curve).mean()
        assert_allclose(tree["curve"][number], curve, atol=1e-12)


# r-PDP's loss ------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["none", "precision", "frequency"])
def test_pdp_loss_is_that_of_a_plain_loop(table, kind, rng):
    weights = weights_of(kind, len(table), rng)
    w = weights.get("weights")
    tree = rs.regional_pdp(mixed, table, "x0", n_grid=11, max_depth=2, min_obs=30, **weights)
    grid = np.linspace(table[:, 0].min(), table[:, 0].max(), 11)
    assert_allclose(tree["grid_value"], grid, rtol=1e-12)
    curves = centred_ice(mixed, table, 0, grid)
    region = tree["region_of_row"].values
    for number, own in enumerate(tree["region"].values):
        if number and own < 0:
            continue
        rows = np.arange(len(table)) if number == 0 else np.flatnonzero(region == own)
        here = None if w is None else w[rows]
        expected = plain_loss(curves[rows], here, kind)
        # Of the root's loss: what rounding of the curves leaves of nothing is not compared.
        assert_allclose(tree["loss"][number], expected, rtol=1e-9, atol=1e-25)
        mean = np.average(curves[rows], axis=0, weights=here)
        assert_allclose(tree["curve"][number], mean, atol=1e-13)
        spread = float((tree["curve_std"][number] ** 2).mean())
        assert_allclose(spread, expected, rtol=1e-9, atol=1e-25)
        n = len(rows) if kind != "frequency" else here.sum()
        assert int(tree["n_obs"][number]) == n


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kind", "column"),
    in_turn(["none", "precision", "frequency"], ["quantile", "exact", "equal_width", "nominal"]),
)
def test_losses_of_all_candidates_equal_direct_recomputation(column, kind, rng):
    n, offset = 900, 1e4
    curves = offset + rng.normal(size=(n, 7)) * rng.uniform(0.5, 2, size=7)
    given = weights_of(kind, n, rng).get("weights")
    weight = None if given is None else given.astype(float)
    x = rng.uniform(size=n)
    problem = CurveProblem(x, curves, weight, kind == "frequency", 0.0, 40)
    at = np.sort(rng.choice(n, 700, replace=False))
    node = problem.node(at, 0.0)
    if column == "nominal":
        conditioning = Conditioning("c", "nominal", rng.integers(0, 5, n), tuple("abcde"))
        tried = candidates_of(conditioning.take(at), "quantile", 20)
    else:
        conditioning = Conditioning("c", "numeric", rng.normal(size=n))
        tried = candidates_of(conditioning.take(at), column, 20)
    (found,) = split_losses(node, node.rows, [tried])
    assert np.isfinite(found).any()
    if column == "exact":  # the outermost thresholds leave too few rows
        assert np.isinf(found).any()
    total = np.ones(n) if given is None else given
    for split in range(tried.n_splits):
        left = tried.goes_left(split)
        expected, share = 0.0, total[at] / total[at].sum()
        for side in (at[left], at[~left]):
            w = total[side]
            effective = w.sum() ** 2 / (w @ w) if kind == "precision" else w.sum()
            if effective < 40:
                expected = np.inf
                break
            own = plain_loss(curves[side] - offset, None if given is None else w, kind)
            expected += share[np.isin(at, side)].sum() * own
        assert_allclose(found[split], expected, rtol=1e-9)


@pytest.mark.parametrize(("min_obs", "least"), [(0, 2), (1, 2), (3, 3), (40, 40)])
def test_a_region_of_curves_has_two_rows_at_least(min_obs, least):
    problem = CurveProblem(np.arange(4.0), np.zeros((4, 2)), None, False, 0.0, min_obs)
    assert problem.node(np.arange(4), 0.0).least_rows == pytest.approx(least, rel=1e-9)
    assert problem.block == 4


def test_curves_in_blocks_of_codes(rng, monkeypatch):
    rows = arrays.NodeCurves.from_curves(rng.normal(size=(500, 4)), None, frequency=False)
    codes = rng.permutation(500)
    monkeypatch.setattr(arrays, "BLOCK_CODES", 64)
    parts = list(arrays.threshold_children(codes, 500, rows))
    assert len(parts) == 8
    monkeypatch.setattr(arrays, "BLOCK_CODES", 500)
    (whole,) = arrays.threshold_children(codes, 500, rows)
    joined = np.concatenate([part.sides for part in parts], axis=2)
    assert_allclose(joined, whole.sides, atol=1e-12)


def test_pdp_by_frequency_is_that_of_repeated_rows(table, rng):
    counts = rng.integers(0, 4, len(table))
    repeated = np.repeat(table, counts, axis=0)
    once = rs.regional_pdp(
        mixed, table, "x0", weights=counts, weight_kind="frequency", thresholds="exact"
    )
    twice = rs.regional_pdp(mixed, repeated, "x0", thresholds="exact")
    # The grid reaches to rows of weight 0 too.
    assert_array_equal(once["rule"], twice["rule"])
    assert_array_equal(once["n_obs"], twice["n_obs"])
    assert (once["region_of_row"].values[counts == 0] == -1).all()


def test_grid_of_few_values_are_these(rng):
    X = np.column_stack([rng.integers(0, 5, 200), rng.uniform(size=(200, 2))]).astype(float)
    tree = rs.regional_pdp(mixed, X, "x0", n_grid=30)
    assert_array_equal(tree["grid_value"], np.arange(5.0))
    assert tree.attrs["model_rows"] == 5 * 200 + sum(rows_of_probe(200))


def test_additive_models_have_nothing_to_find(table):
    def additive(X):
        return 1e3 + np.exp(X[:, 0]) + X[:, 1] ** 2 - X[:, 2]

    for tree in (
        rs.regional_ale(additive, table, "x0"),
        rs.regional_pdp(additive, table, "x0"),
        rs.regional_pdp(lambda X: additive(X).astype(np.float32), table, "x0"),
    ):
        assert tree.sizes["node"] == 1
        assert np.isnan(tree["best_drop"]).all()


# math [53] ---------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("test", [None, "permutation", "honest"])
def test_two_regimes_uncorrelated(test):
    X = EXAMPLE.sample(500, rng=1)
    phi = 1.5 * X["x1"] * np.sign(X["x3"])
    trees = {
        "ale": rs.regional_ale(EXAMPLE.model, X, "x1", test=test, rng=0),
        "pdp": rs.regional_pdp(EXAMPLE.model, X, "x1", test=test, rng=0),
        "shap": rs.regional_shap(None, X, "x1", shap_values=phi, test=test, rng=0),
    }
    for name, tree in trees.items():
        assert tree["rule"].values.tolist() == ["all rows", "x3 ≤ 0", "x3 > 0"], name
        assert float(tree["loss_drop"][0]) > 0.99
        assert tree.attrs["method"] == f"regional_{name}"
        slopes = [
            np.polyfit(tree["grid_value"], curve, 1, w=np.isfinite(curve))[0]
            for curve in tree["curve"].fillna(0).values[1:]
        ]
        if test is None:
            assert_allclose(slopes, [-1.5, 1.5] if name == "shap" else [-3, 3], rtol=0.1)
        if test is not None:
            assert float(tree["pvalue"][0]) <= 0.05


def test_refinement_goes_on_where_the_best_split_so_far_rounds_to_more():
    """It stopped one row from the jump in 3 samples of 100."""
    seed = np.random.SeedSequence(0, spawn_key=(0, 51))
    X = EXAMPLE.sample(500, rng=np.random.default_rng(seed))
    tree = rs.regional_pdp(EXAMPLE.model, X, "x1")
    assert tree["rule"].values.tolist() == ["all rows", "x3 ≤ 0", "x3 > 0"]


@pytest.mark.parametrize("n_thresholds", [1, 2, 3, 7])
def test_refinement_comes_to_an_end_with_few_thresholds(n_thresholds):
    X = EXAMPLE.sample(500, rng=0)
    tree = rs.regional_pdp(EXAMPLE.model, X, "x1", n_thresholds=n_thresholds)
    assert tree["rule"].values.tolist() == ["all rows", "x3 ≤ 0", "x3 > 0"]


def test_two_regimes_correlated_only_pdp_splits():
    X = CORRELATED.sample(500, rng=1)
    assert rs.regional_ale(CORRELATED.model, X, "x1").sizes["node"] == 1
    for test in (None, "permutation"):
        tree = rs.regional_pdp(CORRELATED.model, X, "x1", test=test, rng=0)
        assert tree["rule"].values.tolist() == ["all rows", "x3 ≤ 0", "x3 > 0"]


@pytest.mark.slow
def test_permutation_test_of_curves_keeps_its_level():
    """Curves that differ by what does not condition: the root splits in 5 % of samples."""
    split = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        X = rng.uniform(size=(120, 4))
        hidden = rng.normal(size=120)
        tree = rs.regional_pdp(
            lambda rows: rows[:, 4] * rows[:, 0], np.column_stack([X, hidden]), "x0", n_grid=5,
            conditioning=pd.DataFrame(X, columns=["a", "b", "c", "d"]), test="permutation",
            n_permutations=19, max_depth=1, min_drop=0.0, rng=seed,
        )  # fmt: skip
        split.append(tree.sizes["node"] > 1)
    # Of 100 samples at level 0.05, more than 12 in one suite of a thousand.
    assert sum(split) <= 12


# Schema ------------------------------------------------------------------------------------------


def test_options_are_those_of_regions():
    theirs = inspect.signature(rs.regions).parameters
    for function in (rs.regional_ale, rs.regional_pdp, rs.regional_shap):
        ours = inspect.signature(function).parameters
        for name in set(theirs) & set(ours) - {"local", "X", "feature"}:
            assert ours[name].default == theirs[name].default, (function.__name__, name)
        missing = set(theirs) - set(ours) - {"local", "bins", "n_folds", "groups"}
        assert (
            missing
            == {
                rs.regional_ale: set(),
                rs.regional_pdp: {"loss"},
                rs.regional_shap: {"loss"},
            }[function]
        )


def test_curves_have_no_share_that_bins_leave():
    X = EXAMPLE.sample(40, rng=0)
    for given in ({"min_share": 0.1}, {"search": rs.SplitSearch(min_share=0.1)}):
        with pytest.raises(ValueError, match=r"min_share must be left out: ICE curves .*got 0\.1"):
            rs.regional_pdp(EXAMPLE.model, X, "x1", **given)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("makes", "facts"),
    [
        (rs.regional_ale, ("Bins: *EqualWidthBins", "heterogeneity index", "left in the bins")),
        (rs.regional_pdp, ("Grid: *5 points", "centred ICE curves", "variance of the node's")),
        (rs.regional_shap, ("Bins: *EqualWidthBins", "Shapley values", "about their means in")),
    ],
)
def test_tables_of_these_trees_say_what_was_lost(makes, facts, table):
    options = {"n_grid": 5} if makes is rs.regional_pdp else {}
    if makes is rs.regional_shap:
        options = {"shap_values": table[:, 0] * table[:, 1]}
    tree = makes(mixed, table, 0, max_depth=1, rng=0, **options)
    assert kind_of(tree) is TREE
    text = rs.summary(tree).as_text()
    for fact in facts:
        assert re.search(fact, text)
    assert len(rs.tidy(tree)) == tree.sizes["node"]
    glance = rs.glance(tree).iloc[0]
    assert glance["n_regions"] == (tree["region"] >= 0).sum()
    assert rs.show(tree).head.tables[1].lines[0][0] == str(len(table))
    rs.plots.tree(tree)


@pytest.mark.thorough
def test_trees_are_trees_as_any_other(tmp_path):
    X = EXAMPLE.sample(400, rng=0)
    new = EXAMPLE.sample(50, rng=1)
    local = rs.local_effects(None, X, jacobian=EXAMPLE.jacobian)
    theirs = rs.regions(local, "x1")
    phi = 1.5 * X["x1"] * np.sign(X["x3"])
    for tree in (
        rs.regional_ale(EXAMPLE.model, X, "x1"),
        rs.regional_pdp(EXAMPLE.model, X, "x1"),
        rs.regional_shap(None, X, "x1", shap_values=phi),
    ):
        assert set(theirs.variables) <= set(tree.variables)
        for name in theirs.variables:
            assert tree[name].dims == theirs[name].dims, name
            assert tree[name].dtype.kind == theirs[name].dtype.kind, name
        assert_array_equal(rs.assign(tree, new), (new["x3"] > 0).astype(int))
        effect = rs.regional_rhale(local, tree)
        assert_allclose(effect["average_effect"].values.ravel(), [-3, 3])
        xr.testing.assert_identical(through_a_file(tree, tmp_path), tree)


def test_other_columns_of_a_frame_condition(rng):
    n = 300
    X = pd.DataFrame(
        {"x": rng.uniform(size=n), "kind": rng.choice(["a", "b", "c"], n), "y": rng.normal(size=n)}
    )

    def model(rows):
        return np.where(rows["kind"] == "b", 5.0, 1.0) * rows["x"]

    for tree in (rs.regional_ale(model, X, "x"), rs.regional_pdp(model, X, "x")):
        assert sorted(tree["rule"].values) == ["all rows", "kind = b", "kind ≠ b"]
        assert tree.attrs["conditioning"] == "kind, y"
    outside = pd.DataFrame({"z": (X["kind"] == "b").astype(int)})
    tree = rs.regional_pdp(model, X, "x", conditioning=outside)
    assert sorted(tree["rule"].values) == ["all rows", "z = 0", "z = 1"]


# Errors ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["regional_ale", "regional_pdp", "regional_shap"])
def test_errors(name, table):
    function = getattr(rs, name)
    more = {"shap_values": np.zeros(len(table))} if name == "regional_shap" else {}
    with pytest.raises(KeyError, match="x7"):
        function(mixed, table, "x7", **more)
    with pytest.raises(ValueError, match="besides 'x0'"):
        function(mixed, table[:, :1], "x0", **more)
    with pytest.raises(ValueError, match="got 0"):
        function(mixed, table, "x0", **{"n_grid" if name == "regional_pdp" else "n_bins": 0})
    with pytest.raises(ValueError, match="'frequency'.*got 'counts'"):
        function(mixed, table, "x0", weight_kind="counts", **more)
    with pytest.raises(ValueError, match="got 3"):
        function(mixed, table, "x0", conditioning=table[:3], **more)


def test_models_of_several_outputs_are_refused(table):
    def two(X):
        return np.column_stack([mixed(X), mixed(X)])

    for function in (rs.regional_ale, rs.regional_pdp):
        with pytest.raises(rs.ModelError, match="one number a row here; it has the outputs 0, 1"):
            function(two, table, "x0")


def test_a_grid_of_as_many_points_as_values(rng):
    """Five values that are not at equal distances are the grid; of six there are five points."""
    X = rng.uniform(size=(120, 3))
    X[:, 0] = np.array([0.0, 0.1, 0.2, 0.5, 1.0])[np.arange(120) % 5]
    found = rs.regional_pdp(mixed, X, "x0", n_grid=5, max_depth=0)
    assert found["grid_value"].values.tolist() == [0.0, 0.1, 0.2, 0.5, 1.0]
    X[0, 0] = 0.7
    found = rs.regional_pdp(mixed, X, "x0", n_grid=5, max_depth=0)
    assert_allclose(found["grid_value"], [0, 0.25, 0.5, 0.75, 1])


def test_a_model_that_fails_along_the_grid(table):
    def model(X):
        return np.where(X[:, 0] > 0.9, np.nan, X[:, 0])

    with pytest.raises(ValueError, match="ICE curves.*'x0'.*See what the model returns"):
        rs.regional_pdp(model, table, "x0")

    def broken(X):
        if len(X) > len(table):
            raise RuntimeError("no such rows")
        return X[:, 0]

    with pytest.raises(rs.ModelError, match="'x0'.*no such rows"):
        rs.regional_pdp(broken, table, "x0")


class TestShap:
    def test_shapes(self, table):
        n = len(table)
        values = np.column_stack([table[:, 1] * table[:, 0], np.zeros((n, 2))])
        one = rs.regional_shap(None, table, "x0", rng=0, shap_values=values[:, 0])
        every = rs.regional_shap(None, table, "x0", rng=0, shap_values=values)
        xr.testing.assert_identical(one, every)

        class Explanation:
            pass

        explanation = Explanation()
        explanation.values = values
        named = rs.regional_shap(None, table, "x0", rng=0, shap_values=explanation)
        xr.testing.assert_identical(one, named)
        with pytest.raises(ValueError, match=rf"\({n},\) or \({n}, 3\).*got \({n}, 2\)"):
            rs.regional_shap(None, table, "x0", shap_values=values[:, :2])
        with pytest.raises(ValueError, match="shap_values.*'x0'"):
            rs.regional_shap(None, table, "x0", shap_values=np.full(n, np.nan))

    def test_loss_is_the_mean_variance_in_bins(self, table, rng):
        values = rng.normal(size=len(table)) + table[:, 0]
        tree = rs.regional_shap(None, table, "x0", shap_values=values, n_bins=6, max_depth=0)
        edges = np.linspace(table[:, 0].min(), table[:, 0].max(), 7)
        k = np.clip(np.searchsorted(edges, table[:, 0], side="right") - 1, 0, 5)
        groups = pd.Series(values).groupby(k)
        variance, n = groups.var(), groups.size()
        assert_allclose(tree["loss"][0], (variance * n).sum() / n.sum())
        assert_allclose(tree["curve"][0], groups.mean())
        assert_allclose(tree["curve_std"][0], groups.std())
        assert_allclose(tree["grid_value"], (edges[1:] + edges[:-1]) / 2)

    def test_without_the_library(self, table, monkeypatch):
        monkeypatch.setitem(sys.modules, "shap", None)
        with pytest.raises(ImportError, match=r'pip install "rhale-stats\[shap\]".*shap_values'):
            rs.regional_shap(mixed, table, "x0")

    def test_values_of_the_library(self):
        pytest.importorskip("shap", reason="needs the library shap")
        X = EXAMPLE.sample(120, rng=0)
        background = EXAMPLE.sample(40, rng=1)
        model = Counting(EXAMPLE.model)
        before = np.random.get_state()[1].copy()  # noqa: NPY002
        tree = rs.regional_shap(model, X, "x1", background=background, min_obs=20, rng=0)
        assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
        assert (tree.attrs["model_calls"], tree.attrs["model_rows"]) == (
            len(model.rows),
            sum(model.rows),
        )
        assert tree["rule"].values.tolist() == ["all rows", "x3 ≤ 0", "x3 > 0"]
        # By hand: with x1 first and last in line, over the same background.
        sign, other = np.sign(X["x3"]), np.sign(background["x3"])
        m = float(background["x1"].mean())
        first = 3 * X["x1"] * other.mean() - 3 * float((background["x1"] * other).mean())
        last = 3 * sign * (X["x1"] - m)
        given = rs.regional_shap(None, X, "x1", shap_values=(first + last) / 2, min_obs=20, rng=0)
        assert_allclose(tree["loss"], given["loss"], rtol=1e-6)
        assert_allclose(tree["curve"], given["curve"], atol=1e-9)

    @pytest.mark.thorough
    def test_regions_by_a_column_of_texts(self):
        """Its Shapley values are those of the same model of numbers."""
        pytest.importorskip("shap", reason="needs the library shap")
        rng = np.random.default_rng(5)
        X = pd.DataFrame({"a": rng.normal(size=80), "text": rng.choice(["u", "v"], 80)})
        numbers = X.assign(text=(X["text"] == "u").astype(float))
        asked = {"background": X[:20], "min_obs": 10}
        tree = rs.regional_shap(lambda X: X["a"] * (X["text"] == "u"), X, "a", **asked)
        asked["background"] = numbers[:20]
        same = rs.regional_shap(lambda X: X["a"] * X["text"], numbers, "a", **asked)
        assert tree.sizes["node"] == same.sizes["node"] > 1
        assert_allclose(np.sort(tree["loss"]), np.sort(same["loss"]), rtol=1e-9)

    def test_models_of_several_outputs_are_refused(self, table):
        pytest.importorskip("shap", reason="needs the library shap")
        with pytest.raises(rs.ModelError, match="one number a row here; it has the outputs 0, 1"):
            rs.regional_shap(
                lambda X: np.column_stack([X[:, 0], X[:, 1]]), table, "x0", background=table[:4]
            )

    def test_a_background_of_other_columns(self):
        pytest.importorskip("shap", reason="needs the library shap")
        X = pd.DataFrame({"a": [1.0, 2.0, 3.0], "text": ["u", "v", "w"]})
        numbers = X.assign(text=[1.0, 2.0, 4.0])
        with pytest.raises(ValueError, match="columns of X, a, text; got a"):
            rs.regional_shap(lambda X: X["a"], numbers, "a", background=numbers[["a"]])


@pytest.mark.thorough
@pytest.mark.parametrize("n_bins", [1, 2, 4])
def test_regions_in_which_the_feature_is_constant(n_bins, rng):
    """reliability.md 13: "inhomogeneous shape"."""
    side = rng.choice([-1.0, 1.0], 300)
    x = np.where(side < 0, 0.25, rng.uniform(-1, 1, 300))
    table = pd.DataFrame({"x": x, "side": side})
    options = {"n_bins": n_bins, "min_obs": 20}
    tree = rs.regional_ale(lambda X: 3 * X["x"] * X["side"], table, "x", **options)
    assert tree["n_obs"].values.tolist()[1:] == [(side < 0).sum(), (side > 0).sum()]
    grid = tree["grid_value"].values
    of_constant, of_other = (np.diff(tree["curve"][node]) for node in (1, 2))
    # Of the rows at one place the bin is known that they are in.
    at = np.searchsorted(grid, 0.25) - 1
    np.testing.assert_array_equal(np.flatnonzero(np.isfinite(of_constant)), [at])
    assert_allclose(of_constant[at], -3 * np.diff(grid)[at], rtol=1e-9)
    assert_allclose(of_other, 3 * np.diff(grid), rtol=1e-9)
    phi = rs.regional_shap(None, table, "x", shap_values=3 * side, **options)
    assert phi["curve"].shape == (3, n_bins)
    expected = np.full(n_bins, np.nan)
    expected[at] = -3.0
    assert_allclose(phi["curve"][1], expected)


def test_regions_that_reach_over_a_part_of_the_axis(rng):
    """Their values stand at the places of their bins."""
    x = rng.uniform(-1, 1, 400)
    z = np.where(x < 0.2, rng.choice([-1.0, 1.0], 400), 1.0)
    table = pd.DataFrame({"x": x, "z": z})
    tree = rs.regional_ale(lambda X: X["x"] * X["z"], table, "x", n_bins=8, min_obs=20)
    assert tree["rule"].values.tolist() == ["all rows", "z = -1", "z = 1"]
    grid = tree["grid_value"].values
    for node, slope in ((1, -1.0), (2, 1.0)):
        reached = grid[:-1] < x[z == slope].max()
        steps = np.diff(tree["curve"][node])
        np.testing.assert_array_equal(np.isfinite(steps), reached)
        assert_allclose(steps[reached], slope * np.diff(grid)[reached], rtol=1e-9)


@pytest.mark.parametrize("kind", ["none", "frequency", "precision"])
def test_one_row_in_a_bin_has_no_spread(kind):
    """Nor with a precision weight, whose degrees of freedom are 0 up to rounding."""
    x = np.array([0.0, 0.1, 0.2, 0.3, 0.7])
    weights = {"frequency": [1, 2, 1, 1, 1], "precision": [0.3, 0.7, 1.1, 0.9, 0.47]}
    options = {} if kind == "none" else {"weights": weights[kind], "weight_kind": kind}
    X = pd.DataFrame({"x0": x, "z": np.arange(5.0)})
    tree = rs.regional_shap(None, X, "x0", shap_values=x**2, n_bins=2, test=None, **options)
    assert_array_equal(np.isnan(tree["curve_std"].values[0]), [False, True])
    assert tree["curve"].values[0, 1] == pytest.approx(0.49)
