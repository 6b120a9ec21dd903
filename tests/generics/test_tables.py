"""Tables: what they hold, and that they hold what the Dataset holds."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
import xarray as xr
from scipy import stats

import rhale_stats as rs
from rhale_stats.printing.text import interval_labels
from tests.helpers import as_of_a_file, in_cells


@pytest.fixture(scope="module")
def local():
    rng = np.random.default_rng(7)
    frame = pd.DataFrame(rng.uniform(-1, 1, (400, 3)), columns=["age", "income", "constant"])
    frame["constant"] = 3.0
    frame.index = [f"p{i}" for i in range(400)]
    frame.attrs |= {"units": {"age": "years"}, "output_name": "visits", "output_units": "a year"}
    return rs.local_effects(lambda f: 2 * f["age"] + 4 * f["age"] * f["income"], frame)


@pytest.fixture(scope="module")
def effect(local):
    """Means over rows: degrees of freedom, and residuals, are those of the bins."""
    return rs.rhale(local, bins=rs.EqualWidthBins(4), weighting="rows")


def test_tidy_is_the_dataset_in_rows(effect):
    table = rs.tidy(effect, level=0.9)
    assert table["term"].tolist() == ["age"] * 4 + ["income"] * 4
    row = table.iloc[5]
    with_se = rs.std_error(effect).sel(feature="income", bin=1)
    assert row["bin"] == 1
    assert row["estimate"] == float(with_se["effect"])
    assert row["std_error"] == float(with_se["effect_se"])
    assert row["n_obs"] == int(with_se["n_obs"])
    low, high = stats.t.interval(0.9, row["n_obs"] - 1, row["estimate"], row["std_error"])
    assert (row["conf_low"], row["conf_high"]) == pytest.approx((low, high))
    pd.testing.assert_frame_equal(table, rs.tidy(rs.std_error(effect), level=0.9))


def test_glance_is_one_row_a_feature(local, effect):
    table = rs.glance(effect).set_index("term")
    g = local["local_effect"].sel(feature="age").values
    assert table.loc["age", "estimate"] == pytest.approx(g.mean(), rel=1e-12)
    assert table.loc["age", "std_error"] == pytest.approx(stats.sem(g), rel=1e-12)
    row = effect.sel(feature="age")
    rms = np.sqrt(np.average(row["heterogeneity"] ** 2, weights=row["n_obs"]))
    assert table.loc["age", "heterogeneity"] == pytest.approx(rms)
    x = local["x"].sel(feature="age").values
    assert table.loc["age", "heterogeneity_output"] == pytest.approx(rms * x.std(ddof=1))
    assert table.loc["constant", "kind"] == "constant"
    assert table.loc["constant"].drop(["kind", "n_bins", "n_obs"]).isna().all()


def test_augment_has_every_row_in_its_bin(local, effect):
    table = rs.augment(local, effect)
    assert table.index.tolist()[:2] == ["p0", "p1"]
    counts = table["age.bin"].value_counts().sort_index()
    assert counts.tolist() == effect["n_obs"].sel(feature="age").values.tolist()
    means = table.groupby("age.bin")["age.local_effect"].mean()
    np.testing.assert_allclose(means, effect["effect"].sel(feature="age"), rtol=1e-12)
    np.testing.assert_allclose(
        table["age.residual"], table["age.local_effect"] - table["age.effect"]
    )
    # "mean" centring: zero on average over the rows, exactly.
    assert table["age.curve"].mean() == pytest.approx(0, abs=1e-12)
    assert table["constant.bin"].isna().all()


def test_augment_marks_rows_outside_the_bins(local, effect):
    other = local.assign(x=local["x"] * 2)
    table = rs.augment(other, effect)
    outside = table["age.bin"].isna()
    edges = effect["edge_value"].sel(feature="age")
    expected = (table["age"] < float(edges[0])) | (table["age"] > float(edges[4]))
    assert outside.tolist() == expected.tolist()
    assert table.loc[outside, ["age.effect", "age.curve"]].isna().all(axis=None)


def test_augment_carries_weights(rng):
    local = rs.local_effects(lambda X: X[:, 0], rng.normal(size=(5, 1)), weights=[1, 2, 3, 4, 5])
    effect = rs.rhale(local, bins=rs.EqualWidthBins(1))
    assert rs.augment(local, effect)["weight"].tolist() == [1, 2, 3, 4, 5]


def test_summary_prints_a_line_a_feature(effect):
    text = str(rs.summary(effect))
    assert "RHALE: effects on visits [a year]" in text
    assert "] Bins: EqualWidthBins(n_bins=4)." in text
    table = rs.glance(effect).set_index("term")
    line = next(row for row in text.splitlines() if row.startswith("age "))
    assert line.split()[1:4] == [
        "4",
        f"{table.loc['age', 'estimate']:.4g}",
        f"{table.loc['age', 'std_error']:.4g}",
    ]
    constant = next(row for row in text.splitlines() if row.startswith("constant"))
    assert constant.split() == ["constant", "0", "constant"]
    widths = {len(row) for row in text.splitlines() if row.startswith("=")}
    assert len(widths) == 1
    assert "chosen on the same rows" not in text


def test_summary_of_one_feature_prints_a_line_a_bin(effect):
    text = str(rs.summary(effect, "age"))
    assert "RHALE: effect of age [years] on visits [a year]" in text
    lines = [row for row in text.splitlines() if row.startswith(("[-", "[0"))]
    assert len(lines) == 4
    table = rs.tidy(effect)
    assert f"{table.loc[0, 'estimate']:.4g}" in lines[0]
    assert text == str(rs.summary(effect, 0))


def test_summary_says_that_bins_were_chosen(local):
    text = str(rs.summary(rs.rhale(local)))
    assert "treat the model as fixed. They include the choice of the bin edges" in text


def test_summary_of_a_constant_feature(effect):
    assert "The feature does not vary." in str(rs.summary(effect, "constant"))


def test_summary_is_a_statsmodels_table(effect):
    assert "<table" in rs.summary(effect).as_html()
    assert r"\begin" in rs.summary(effect, "age").as_latex()


def test_tables_need_effects(local):
    with pytest.raises(ValueError, match=r"Dataset that rhale\(local\) returns; got local effects"):
        rs.tidy(local)
    with pytest.raises(TypeError, match="effect must be the Dataset .* got DataFrame"):
        rs.summary(pd.DataFrame())
    with pytest.raises(KeyError, match="feature must be one of 'age', .*; got 'size'"):
        rs.summary(rs.rhale(local), "size")


@pytest.mark.parametrize(
    ("edges", "labels"),
    [
        ([0.0, 0.25, 1.0], ["[0, 0.25)", "[0.25, 1]"]),
        ([-1.5, 123456.0], ["[-1.5, 123456]"]),
        (
            [1.7e9, 1.7e9 + 11.5, 1.7e9 + 12.25],
            ["[1700000000, 1700000011.5)", "[1700000011.5, 1700000012.25]"],
        ),
        ([0.0, 1e-9, 2.5e-9], ["[0, 1e-09)", "[1e-09, 2.5e-09]"]),
        ([1e20, 3e20], ["[1e+20, 3e+20]"]),
        ([], []),
    ],
)
def test_interval_labels_tell_edges_apart(edges, labels):
    assert interval_labels(np.array(edges)) == labels


@pytest.fixture(scope="module")
def waves():
    """An effect that moves in wide bins of x1, and not at all in bins of x2."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.uniform(0, 1, (1000, 3)), columns=["x1", "x2", "flat"])
    frame["flat"] = 1.0

    def model(f):
        return 4 * f["x1"] ** 2 + f["x2"] + f["x1"] * f["x2"]

    local = rs.local_effects(model, frame)
    return model, frame, local, rs.rhale(local, bins=rs.EqualWidthBins(3), weighting="rows")


class TestChecks:
    """What `check_unbiased` and `jump_check` found, in print."""

    def test_tidy_has_the_columns_of_the_check(self, waves):
        _, _, local, effect = waves
        check = rs.check_unbiased(local, effect, rng=0)
        table = rs.tidy(check)
        row = table[table["term"] == "x2"].iloc[1]
        assert row["bin_error"] == float(check["bin_error"].sel(feature="x2", bin=1))
        assert table["verdict"].isin(["fine", "bias larger than standard error"]).all()
        assert "verdict" not in rs.tidy(effect)

    def test_summary_of_a_check(self, waves):
        _, _, local, effect = waves
        check = rs.check_unbiased(local, effect, rng=0)
        text = str(rs.summary(check))
        assert "Bias of the heterogeneity" in text
        line = next(
            line for line in text.partition("Bias of the")[2].splitlines() if line.startswith("x1")
        )
        n_biased = int((check["verdict"].sel(feature="x1") != "fine").sum())
        assert line.split()[1:4] == ["3", "3", str(n_biased)]
        width = (check["bin_right"] - check["bin_left"]).values[0]
        variance = np.sum(width * check["heterogeneity"].values[0] ** 2)
        assert line.split()[5] == f"{np.sum(width * check['bin_error'].values[0]) / variance:.0%}"
        assert "adjusted (holm)" in text

    def test_summary_of_the_bins_of_a_check(self, waves):
        _, _, local, effect = waves
        check = rs.check_unbiased(local, effect, adjust="fdr_bh", rng=0)
        text = str(rs.summary(check, "x1")).partition("Bias of the")[2]
        lines = [line for line in text.splitlines() if line.startswith("[0")]
        assert len(lines) == 3
        for k, line in enumerate(lines):
            assert f"{float(check['heterogeneity'][0, k]) ** 2:.4g}" in line
            assert line.endswith(str(check["verdict"].values[0, k]))
        assert "adjusted (fdr_bh)" in text

    def test_warning_without_a_check(self, waves):
        """The linear part of the bin error needs no rows."""
        _, _, local, effect = waves
        text = " ".join(str(rs.summary(effect)).split())
        assert "Warning: the effect changes within bins of x1 (3 of 3 bins). Their" in text
        assert "debias(effect, check_unbiased(local, effect))" in text
        narrow = rs.rhale(local.sel(feature=["x2"]), bins=rs.EqualWidthBins(3))
        assert "Warning" not in str(rs.summary(narrow))

    def test_no_warning_of_rounding(self):
        """A constant derivative by differences has a spread of 1e-10, and a trend in that."""
        x = np.random.default_rng(0).uniform(0, 1, (500, 1))
        local = rs.local_effects(lambda X: 1000 + 3 * X[:, 0], x)
        assert "Warning" not in str(rs.summary(rs.rhale(local, bins=rs.EqualWidthBins(4))))

    def test_warning_counts_what_the_check_says(self, waves):
        _, _, local, effect = waves
        check = rs.check_unbiased(local, effect, rng=0)
        large = int((check["verdict"].sel(feature="x1") == "bias larger than standard error").sum())
        assert f"x1 ({large} of 3 bins)" in " ".join(str(rs.summary(check)).split())

    def test_debiased(self, waves):
        _, _, local, effect = waves
        better = rs.debias(effect, rs.check_unbiased(local, effect, rng=0))
        text = " ".join(str(rs.summary(better)).split())
        assert "Warning" not in text
        assert "heterog. is free of bin error" in text
        assert rs.glance(better)["heterogeneity"][0] < rs.glance(effect)["heterogeneity"][0]

    def test_jumps(self, waves):
        model, frame, local, effect = waves
        found = rs.jump_check(model, local, effect, frame)
        text = str(rs.summary(found)).partition("What derivatives miss")[2]
        for number, name in enumerate(["x1", "x2"]):
            line = next(line for line in text.splitlines() if line.startswith(name))
            missed = int((found["jump_pvalue_adjusted"][number] < 0.05).sum())
            assert line.split()[1:3] == ["3", str(missed)]
        bins = str(rs.summary(found, "x2")).partition("What derivatives miss")[2]
        assert sum(line.startswith("[") for line in bins.splitlines()) >= 3
        assert "finite_difference" in text

    @pytest.mark.thorough
    def test_constant_feature(self, waves):
        model, frame, *_ = waves
        local = rs.local_effects(model, frame, features=["x1", "flat"])
        effect = rs.rhale(local, bins=rs.EqualWidthBins(3))
        found = rs.jump_check(model, local, rs.check_unbiased(local, effect, rng=0), frame)
        assert "constant" in str(rs.summary(found))
        assert "The feature does not vary" in str(rs.summary(found, "flat"))

    @pytest.mark.thorough
    def test_source_of_honest_bins(self, waves):
        *_, local, _ = waves
        honest = rs.rhale(local, honest=True, rng=0)
        assert "Bin edges were chosen on 500 other rows" in " ".join(
            str(rs.summary(honest)).split()
        )
        for rule in (rs.BestEqualWidthBins(), rs.GreedyBins()):
            chosen = rs.rhale(local, bins=rule)
            assert "as fixed, which were chosen on the same rows" in " ".join(
                str(rs.summary(chosen)).split()
            )


class TestRegions:
    """Trees of regions: in print, a row a node, a row a feature."""

    @pytest.fixture(scope="class", name="rows")
    @staticmethod
    def _rows():
        """x1 has effects of either sign by x3, and noise; those of x2 and x3 are noise only."""
        example = rs.simulate.TwoRegimes()
        X = example.sample(400, rng=3)
        X.attrs = {"units": {"x1": "mg"}, "output_name": "pressure", "output_units": "mmHg"}
        X["flat"] = 1.0
        jacobian = np.zeros((400, 4))
        jacobian[:, :3] = example.jacobian(X[["x1", "x2", "x3"]])
        jacobian[:, :3] += np.random.default_rng(4).normal(0, 1, (400, 3))
        return rs.local_effects(None, X, jacobian=jacobian, features=["x1", "x2", "x3", "flat"])

    @pytest.fixture(scope="class", name="tree")
    @staticmethod
    def _tree(rows):
        return rs.regions(rows, "x1", test="permutation", n_permutations=39, rng=0)

    @pytest.fixture(scope="class", name="trees")
    @staticmethod
    def _trees(rows):
        return rs.all_regions(rows, test="permutation", n_permutations=39, rng=0, progress=False)

    @staticmethod
    def nodes(results, feature=None):
        """Lines of the tree: what stands before the columns, and the rest."""
        body = str(rs.summary(results, feature)).split("===\n")[2]
        lines = body.partition("---\n")[2].splitlines()
        return [line for line in lines if line and not line.startswith("=")]

    def test_a_line_a_node(self, tree):
        lines = self.nodes(tree)
        assert len(lines) == tree.sizes["node"]
        for number, line in enumerate(lines):
            node = tree.isel(node=number)
            begin = "|  " * int(node["depth"]) + str(node["condition"].values)
            assert line.startswith(begin + " ")
            words = line.removeprefix(begin).split()
            assert words[:2] == [str(int(node["n_obs"])), f"{float(node['loss']):.4g}"]

    def test_what_became_of_a_node(self, tree):
        root, left, right = self.nodes(tree)
        drop, p = float(tree["loss_drop"][0]), float(tree["pvalue"][0])
        assert root.split()[-3:] == ["<", "0.001", "split"]
        assert p < 0.001
        assert f"{drop:.1%}" in root
        for number, line in ((1, left), (2, right)):
            node = tree.isel(node=number)
            best, drop, p = (node[name].values for name in ("best", "best_drop", "pvalue"))
            # What was not made is said, with what it would have brought.
            assert f"{best}" in line
            assert f"{float(drop):.1%}" in line
            reason = "drop < 10%" if drop < 0.1 else "P > 0.05"
            assert line.rstrip().endswith(f"region {number - 1}: {reason}")
            assert np.isnan(p) or f"{float(p):.3f}" in line

    def test_the_header_says_how(self, tree):
        text = str(rs.summary(tree))
        assert "Regions: effect of x1 [mg] on pressure [mmHg]" in text
        for fact in (
            "heterogeneity index",
            "(mmHg)^2 per mg",
            "permutation, level 0.05",
            "OptimalBins ",
            "20 by quantile",
            "at most 2",
            "at least 20",
        ):
            assert fact in text.partition("rows ")[0], fact
        notes = " ".join(text.partition("Notes:")[2].split())
        assert "Bins, chosen again in every node: OptimalBins(max_bins=100," in notes
        assert "at least 10% and P at most 0.05" in notes
        assert "permutation p-value (at most 39 permutations)" in notes
        assert "Each permutation repeats the search over all splits" in notes
        assert len({len(line) for line in text.splitlines() if line.startswith("==")}) == 1

    @pytest.mark.thorough
    def test_without_a_test(self, rows):
        text = str(rs.summary(rs.regions(rows, "x1", loss="output", thresholds="exact", test=None)))
        assert "heterogeneity of the output" in text
        assert "every value" in text
        assert "Warning: without a test, splits are also found in noise" in text

    def test_units_that_are_not_known(self, rows):
        text = str(rs.summary(rs.regions(rows, "x2", max_depth=0)))
        assert "(mmHg)^2 per feature unit" in text
        assert "The effect of x2 has no regions: no split was tried (see the notes)." in text
        assert "Empty best split: no split was tried (maximum depth of 0, less than 5%" in text

    def test_a_tree_without_splits_says_so(self, rows):
        tree = rs.regions(rows, "x2", min_drop=0.6)
        (line,) = self.nodes(tree)
        assert line.startswith("all rows ")
        assert line.rstrip().endswith("no split: drop < 60%")
        best, drop = str(tree["best"].values[0]), float(tree["best_drop"][0])
        assert (
            f"The effect of x2 has no regions: the best split, {best}, would lower the loss by "
            f"{drop:.1%}, less than the required 60%." in str(rs.summary(tree))
        )

    def test_a_split_that_is_chance_says_so(self, rows):
        tree = rs.regions(rows, "x2", min_drop=0.0, test="permutation", n_permutations=39, rng=0)
        (line,) = self.nodes(tree)
        assert line.rstrip().endswith("no split: P > 0.05")
        p = float(tree["pvalue"][0])
        assert f"which is not significant (P {p:.3f})." in str(rs.summary(tree))

    def test_a_constant_feature(self, rows):
        tree = rs.regions(rows, "flat")
        assert self.nodes(tree)[0].rstrip().endswith("constant")
        assert "The effect of flat has no regions: the feature does not vary." in str(
            rs.summary(tree)
        )
        line = rs.glance(tree).iloc[0]
        assert (line["n_regions"], line["first_split"]) == (1, "")
        assert np.isnan([line["loss"], line["loss_left"], line["loss_drop"]]).all()

    @pytest.mark.thorough
    def test_one_tree_after_the_other(self, trees):
        lines = self.nodes(trees)
        assert len(lines) == int(trees["n_nodes"].sum())
        stubs = [line.split("  ")[0] for line in lines if not line.startswith("|")]
        assert stubs == ["x1", "x2", "x3", "flat"]
        # Features without splits are one line each.
        assert [line.split("no split")[-1][:1] for line in lines[3:5]] == [":", ":"]
        assert "Regions: effects on pressure [mmHg]" in str(rs.summary(trees))
        assert "(mmHg)^2 per feature unit" in str(rs.summary(trees))

    def test_one_of_several_features(self, trees):
        one = str(rs.summary(trees, "x2"))
        assert "Regions: effect of x2 on pressure [mmHg]" in one
        assert one == str(rs.summary(trees.sel(feature="x2")))
        assert one == str(rs.summary(trees, 1))
        with pytest.raises(KeyError, match="feature must be one of 'x1', .*; got 'age'"):
            rs.summary(trees, "age")
        with pytest.raises(KeyError, match="feature must be one of 'x2', .*; got 'x1'"):
            rs.summary(trees.sel(feature="x2"), "x1")

    def test_honest_trees(self, rows):
        tree = rs.regions(rows, "x1", test="honest", n_permutations=39, rng=0)
        text = " ".join(str(rs.summary(tree)).split())
        assert "Test: honest, level 0.05" in text
        assert "Splits were searched on 50% of the rows. Rows, losses, and the drops" in text
        assert self.nodes(tree)[0].split()[2] == "200"
        assert rs.glance(tree)["n_obs"][0] == 200
        assert rs.tidy(tree)["n_obs"][0] == 200

    def test_an_honest_split_that_was_not_confirmed(self, tree):
        node = as_of_a_file(tree.isel(node=[0]).copy(deep=True))
        node["region"][0], node["loss_drop"][0], node["best_drop"][0] = 0, np.nan, 0.3
        for pvalue in (np.nan, 0.01):  # not allowed on the other rows, or too small a drop there
            honest = node.assign(pvalue=("node", [pvalue])).assign_attrs(test="honest")
            honest.attrs["honest_fraction"] = 0.5
            assert self.nodes(honest)[0].rstrip().endswith("no split: not confirmed")
            assert "but not by enough on the other rows." in str(rs.summary(honest))

    @pytest.mark.slow
    def test_pruned_trees(self, rows):
        tree = rs.regions(rows, "x1", n_folds=3, min_drop=0.01, test=None, rng=0)
        text = str(rs.summary(tree))
        assert tree.sizes["node"] == 3
        assert text.count(": pruned") == 2
        assert "Pruned: minimal cost-complexity pruning" in text
        assert "3-fold cross-validation." in text
        table = text.partition("Pruning")[2].partition("Notes")[0]
        (chosen,) = [line for line in table.splitlines() if "chosen" in line]
        at = int(np.flatnonzero(tree["pruning_n_regions"] == 2)[0])
        assert chosen.startswith("2 regions")
        assert f"{float(tree['pruning_loss'][at]):.4g}" in chosen
        trees = rs.all_regions(rows, ["x2", "x1"], n_folds=3, min_drop=0.01, rng=0, progress=False)
        assert "Pruning" not in str(rs.summary(trees))
        own = str(rs.summary(trees, "x2"))
        assert "region" in own.partition("Pruning")[2]
        assert "-1 region" not in own

    def test_tidy_is_a_row_a_node(self, tree, trees):
        table = rs.tidy(tree)
        assert table.columns.tolist() == [
            *("term", "node", "parent", "depth", "rule", "n_obs", "weight_share", "loss"),
            *("loss_drop", "best_split", "best_drop", "p_value", "region"),
        ]
        assert table["term"].tolist() == ["x1"] * 3
        assert table["rule"].tolist() == tree["rule"].values.tolist()
        assert table["parent"].isna().tolist() == [True, False, False]
        assert table["region"].tolist()[1:] == [0, 1]
        assert table["region"].isna().tolist() == [True, False, False]
        for name, of in (("loss", "loss"), ("best_drop", "best_drop"), ("p_value", "pvalue")):
            np.testing.assert_array_equal(table[name], tree[of])
        every = rs.tidy(trees)
        assert every["term"].tolist() == ["x1", "x1", "x1", "x2", "x3", "flat"]
        assert every.loc[3:, "region"].tolist() == [0, 0, 0]

    def test_glance_is_a_row_a_feature(self, tree, trees):
        table = rs.glance(trees)
        assert table["term"].tolist() == ["x1", "x2", "x3", "flat"]
        assert table["n_regions"].tolist() == [2, 1, 1, 1]
        line = rs.glance(tree).iloc[0]
        n_obs, loss = tree["n_obs"].values, tree["loss"].values
        left = np.average(loss[1:], weights=n_obs[1:])
        assert line["loss"] == loss[0]
        assert line["loss_left"] == pytest.approx(left)
        # One split: the drop that it brings.
        assert line["loss_drop"] == pytest.approx(float(tree["loss_drop"][0]))
        assert line["first_split"] == str(tree["best"].values[0])
        assert line["p_value"] == float(tree["pvalue"][0])
        assert (line["test"], line["level"], line["bin_rule"]) == (
            *("permutation", 0.05, "OptimalBins"),
        )
        unsplit = table.iloc[1]
        assert (unsplit["first_split"], unsplit["loss_drop"]) == ("", 0)
        assert unsplit["loss_left"] == unsplit["loss"]

    def test_no_heterogeneity_at_all(self):
        example = rs.simulate.TwoRegimes()
        local = rs.local_effects(None, example.sample(200, rng=0), jacobian=example.jacobian)
        line = rs.glance(rs.regions(local, "x2")).iloc[0]
        assert (line["loss"], line["loss_left"], line["loss_drop"]) == (0, 0, 0)

    def test_large_losses_have_no_exponents(self, rows):
        large = rows.assign(local_effect=100 * rows["local_effect"])
        root = self.nodes(rs.regions(large, "x1", max_depth=1))[0]
        loss = float(rs.regions(large, "x1", max_depth=1)["loss"][0])
        assert 1e4 < loss < 1e7
        assert root.split()[3] == f"{float(f'{loss:.4g}'):.0f}"

    @pytest.mark.thorough
    def test_saved_and_loaded(self, trees, tmp_path):
        trees.to_netcdf(tmp_path / "trees.nc")
        again = xr.load_dataset(tmp_path / "trees.nc")
        assert str(rs.summary(again)) == str(rs.summary(trees))
        pd.testing.assert_frame_equal(rs.tidy(again), rs.tidy(trees))


class TestInteractions:
    @pytest.fixture(scope="class", name="found")
    @staticmethod
    def _found():
        example = rs.simulate.TwoRegimes()
        X = example.sample(300, rng=0)
        X.attrs = {"output_name": "pressure", "output_units": "mmHg"}
        local = rs.local_effects(None, X, jacobian=example.jacobian)
        return rs.interaction_matrix(local, n_permutations=59, adjust="none", rng=0, progress=False)

    @staticmethod
    def line(text, name):
        (found,) = [line for line in text.splitlines() if line.startswith(f"{name} ")]
        return found.split()[1:]

    @pytest.mark.thorough
    def test_a_line_a_feature(self, found):
        text = str(rs.summary(found))
        assert "Interactions: effects on pressure [mmHg], split by other columns" in text
        drop, loss = found["loss_drop"].values, found["loss"].values
        mark = "*" if found["pvalue"][0, 2] <= 0.05 else ""
        assert float(found["pvalue"][0, 2]) == 1 / 60
        assert self.line(text, "x1") == [
            *(f"{loss[0]:.4g}", f"{drop[0, 1]:.0%}", f"{drop[0, 2]:.0%}{mark}"),
        ]
        assert self.line(text, "x2") == ["0", "0%", "0%"]
        assert self.line(str(rs.summary(found, "x1")), "x1") == self.line(text, "x1")
        assert "\nx2 " not in str(rs.summary(found, "x1"))
        notes = " ".join(text.partition("Notes:")[2].split())
        assert "* P ≤ 0.05" in notes
        assert "from 59 permutations, adjusted (none) for all pairs" in notes
        assert len({len(line) for line in text.splitlines() if line.startswith("==")}) == 1

    @pytest.mark.parametrize(
        ("pvalue", "mark"), [(0.001, "***"), (0.01, "**"), (0.05, "*"), (0.1, "."), (0.11, "")]
    )
    def test_stars_are_those_of_r(self, found, pvalue, mark):
        other = found.copy(deep=True)
        other["pvalue_adjusted"][0, 2] = pvalue
        share = float(found["loss_drop"][0, 2])
        assert self.line(str(rs.summary(other)), "x1")[-1] == f"{share:.0%}{mark}"

    def test_without_a_test(self, found):
        untested = found.copy(deep=True).assign_attrs(n_permutations=0)
        untested["pvalue_adjusted"][:] = np.nan
        text = str(rs.summary(untested))
        assert "Warning: without a test, a drop may be due to chance" in text
        assert "Permutations: none" in " ".join(text.split())
        assert not any("%*" in line for line in text.splitlines())

    def test_tidy_is_a_row_a_pair(self, found):
        table = rs.tidy(found)
        assert len(table) == 6
        pair = table.set_index(["term", "conditioning"]).loc["x1", "x3"]
        for name, of in (
            *(("loss_drop", "loss_drop"), ("p_value", "pvalue")),
            *(("p_value_adjusted", "pvalue_adjusted"), ("best_split", "best")),
        ):
            assert pair[name] == found[of].sel(feature="x1", conditioning="x3").item()
        assert pair["loss"] == float(found["loss"][0])

    def test_glance_has_nothing_to_say(self, found):
        with pytest.raises(ValueError, match="got drops of all pairs of columns, which"):
            rs.glance(found)


# --- intervals that are there ---------------------------------------------------------------------


def _kept(table, ends):
    np.testing.assert_array_equal(table[["conf_low", "conf_high"]].to_numpy(), ends)


@pytest.mark.thorough
def test_tables_show_the_intervals_that_are_there():
    """Those of replicates, at their level; at another one by standard errors."""
    X = np.random.default_rng(2).uniform(-1, 1, (200, 2))
    model = lambda X: np.exp(2 * X[:, 0]) * X[:, 1]  # noqa: E731
    local = rs.local_effects(model, X)
    effect = rs.rhale(local, bins=rs.EqualWidthBins(3))
    boot = rs.bootstrap(local, effect, n_resamples=100, rng=0, progress=False)
    found = rs.confint(effect, boot, method="bca")
    _kept(rs.tidy(found), found["effect_ci"].values.reshape(-1, 2))
    _kept(rs.glance(found), found["average_effect_ci"].values)
    assert "Intervals: pointwise, bootstrap, bca" in rs.summary(found).as_text()
    other = rs.tidy(found, level=0.9)
    pd.testing.assert_frame_equal(other, rs.tidy(effect, level=0.9))
    assert "Intervals: pointwise, Student's t." in rs.summary(found, level=0.9).as_text()
    # Standard errors of something else take them away.
    grouped = rs.std_error(
        rs.confband(found, n_draws=100, rng=0), local, groups=np.arange(200) // 2
    )
    assert not [name for name in grouped.data_vars if str(name).endswith(("_ci", "_band"))]

    curves = rs.ice(model, X, n_grid=5)
    profile = rs.confint(curves, rs.bootstrap(curves, curves, n_resamples=100, rng=0))
    _kept(rs.tidy(profile), profile["curve_ci"].values.reshape(-1, 2))
    assert "Intervals: pointwise, bootstrap, percentile" in rs.summary(profile, 0).as_text()

    surface = rs.ale2(model, X, (0, 1), bins=rs.EqualWidthBins(2))
    surface = rs.confint(surface, rs.bootstrap(surface, n_resamples=100, rng=0), method="basic")
    _kept(rs.tidy(surface), in_cells(surface["second_effect_ci"]).reshape(-1, 2))

    shares = rs.h_statistic(model, X, n_rows=50, rng=0, keep_answers=True)
    shares = rs.confint(shares, rs.bootstrap(shares, n_resamples=100, rng=0), method="basic")
    ends = shares["h2_overall_ci"].values
    table = rs.tidy(shares)[["h2_conf_low", "h2_conf_high"]].to_numpy()
    np.testing.assert_array_equal(table[:2], ends)
    assert "bootstrap, basic" in rs.summary(shares).as_text()


# --- what a number means --------------------------------------------------------------------------


def _three(n=400, seed=0):
    """A table with an axis, a two-valued number, levels without an order and with one."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.uniform(-1, 1, n), "b": rng.uniform(-1, 1, n)})
    X["nominal"] = pd.Categorical(rng.choice(list("pqr"), n))
    X["ordinal"] = pd.Categorical(rng.choice(["low", "mid", "high"], n), ["low", "mid", "high"])
    X["ordinal"] = X["ordinal"].cat.as_ordered()
    X["flag"] = rng.random(n) < 0.4
    return X


def _wide(X):
    """Effects of all kinds of features, and one that is 0 in all rows."""
    level = X["nominal"].map({"p": 0.0, "q": 5.0, "r": 1.0}).astype(float)
    rank = X["ordinal"].cat.codes
    return X["a"] ** 2 + X["a"] * X["b"] + level * (1 + X["b"]) + rank * X["a"] + X["flag"] * X["b"]


class TestModelAsGiven:
    """issue 15: t and P only with a standard error that holds the model."""

    @pytest.mark.thorough
    def test_no_t_and_no_p_of_rows_alone(self, effect, local):
        grouped = rs.std_error(effect, local, groups=np.arange(400) // 10)
        for one, head in ((effect, "rows"), (grouped, "rows in 40 groups")):
            for table in (rs.tidy(one), rs.glance(one)):
                assert not {"statistic", "p_value"} & set(table.columns)
                assert {"std_error", "conf_low", "conf_high"} <= set(table.columns)
            for feature in (None, "age"):
                text = rs.summary(one, feature).as_text()
                assert "P>|t|" not in text
                assert f"Uncertainty: {head} (model as given)" in " ".join(text.split())
                assert "std err" in text
                assert "[0.025" in text

    @pytest.mark.thorough
    def test_t_and_p_return_with_the_model(self, effect):
        """As std_error with the parameters of the model will say of itself."""
        for source in ("rows and parameters", "parameters", "refits"):
            known = rs.std_error(effect)
            for name in ("effect_se", "average_effect_se"):
                known[name].attrs["source"] = source
            row = rs.tidy(known).iloc[0]
            assert row["statistic"] == pytest.approx(row["estimate"] / row["std_error"])
            p = 2 * stats.t.sf(abs(row["statistic"]), row["n_obs"] - 1)
            assert row["p_value"] == pytest.approx(p)
            line = rs.glance(known).iloc[0]
            p = 2 * stats.t.sf(abs(line["statistic"]), 399)
            assert line["p_value"] == pytest.approx(p)
            text = " ".join(rs.summary(known).as_text().split())
            assert "P>|t|" in text
            assert f"Uncertainty: {source} " in text
            assert "model as given" not in text

    @pytest.mark.thorough
    def test_noise_is_not_significant(self):
        """users.md 2: a logit of pure noise had P < .05 for every feature."""
        rng = np.random.default_rng(1)
        X, weight = rng.normal(size=(300, 3)), rng.normal(0, 0.1, 3)
        local = rs.local_effects(lambda X: 1 / (1 + np.exp(-(X @ weight))), X)
        assert "P" not in rs.summary(rs.rhale(local)).as_text().split()
        assert "p_value" not in rs.glance(rs.rhale(local))

    @pytest.mark.thorough
    def test_surfaces_and_profiles(self):
        X = np.random.default_rng(2).uniform(-1, 1, (200, 3))
        model = lambda X: np.exp(X[:, 0]) * X[:, 1] * X[:, 2]  # noqa: E731
        surface = rs.ale2(model, X, (0, 1), bins=rs.EqualWidthBins(2))
        assert not {"statistic", "p_value"} & set(rs.tidy(surface).columns)
        surface = rs.std_error(surface)
        surface["second_effect_se"].attrs["source"] = "rows and parameters"
        table = rs.tidy(surface)
        np.testing.assert_allclose(table["statistic"], table["estimate"] / table["std_error"])
        for one in (surface, rs.pdp(model, X), rs.m_plot(model, X), rs.h_statistic(model, X)):
            text = " ".join(rs.summary(one).as_text().split())
            assert "Uncertainty: rows (model as given)" in text

    def test_tests_say_which_uncertainty(self, effect, local):
        grouped = rs.std_error(effect, local, groups=np.arange(400) // 10)
        for test, source in (
            (rs.wald_test(effect), "rows"),
            (rs.wald_test(grouped), "rows in 40 groups"),
            (rs.equivalence_test(effect, 1.0), "rows"),
            (rs.compare(effect, effect, paired=(local, local)), "pairs of rows"),
        ):
            text = " ".join(rs.summary(test).as_text().split())
            assert f"Uncertainty: {source} (model as given)" in text
            assert " P " in text


class TestReasons:
    """issue 15: NaN or 0, and a reason, in place of what has no meaning."""

    @pytest.fixture(scope="class", name="ale")
    @staticmethod
    def _ale():
        return rs.ale(_wide, _three(), bins=rs.QuantileBins(4))

    @pytest.mark.thorough
    def test_an_average_over_levels_without_an_order_is_none(self, ale):
        table = rs.glance(ale).set_index("term")
        gone = ["estimate", "std_error", "conf_low", "conf_high", "heterogeneity_output"]
        assert table.loc["nominal", gone].isna().all()
        assert "no order of their own" in table.loc["nominal", "reason"]
        kept = ["a", "ordinal", "flag"]
        assert table.loc[kept, gone].notna().all(axis=None)
        assert (table.loc[kept, "reason"] == "").all()
        # What does not depend on the order stays: the curve, and each step by the names of both.
        assert table.loc["nominal", "curve_max"] > table.loc["nominal", "curve_min"]
        steps = rs.tidy(ale).query("term == 'nominal'")
        assert steps["estimate"].notna().all()
        text = rs.summary(ale).as_text()
        line = next(line for line in text.splitlines() if line.startswith("nominal"))
        assert len(line.split()) == 4
        assert "nominal: the levels have no order of their own" in text

    @pytest.mark.thorough
    def test_average_of_a_nominal_feature_does_not_depend_on_a_choice(self):
        """users.md 4: 2.565 or .091 for the same curve."""
        X = _three()
        lines = [
            rs.glance(rs.ale(_wide, X, order={"nominal": list(order)}))
            .set_index("term")
            .loc["nominal"]
            for order in ("pqr", "qpr", "rqp")
        ]
        numbers = ["estimate", "std_error", "conf_low", "conf_high"]
        assert pd.DataFrame(lines)[numbers].isna().all(axis=None)

    @pytest.mark.thorough
    def test_what_is_smaller_than_the_numerical_error_is_0(self):
        """users.md 2: t = 5.9e10 of a straight line."""
        X = np.random.default_rng(3).uniform(-1, 1, (300, 3))
        local = rs.local_effects(lambda X: 1.17 * X[:, 0] + X[:, 2] ** 2 + 1000, X)
        effect = rs.rhale(local, bins=rs.EqualWidthBins(2))
        table, bins = rs.glance(effect).set_index("term"), rs.tidy(effect).set_index("term")
        assert table.loc["x0", "estimate"] == pytest.approx(1.17)
        assert (table.loc["x0", ["std_error", "heterogeneity"]] == 0).all()
        assert "numerical error only" in table.loc["x0", "reason"]
        nothing = ["estimate", "std_error", "conf_low", "conf_high", "heterogeneity"]
        assert (table.loc["x1", [*nothing, "curve_min", "curve_max"]] == 0).all()
        assert "0 up to the numerical error" in table.loc["x1", "reason"]
        assert (bins.loc["x1", nothing] == 0).all(axis=None)
        assert (bins.loc["x0", ["std_error", "heterogeneity", "heterogeneity_se"]] == 0).all(
            axis=None
        )
        assert (table.loc["x2", "reason"], set(bins.loc["x2", "reason"])) == ("", {""})
        assert table.loc["x2", "std_error"] > 0
        text = rs.summary(effect).as_text()
        assert "x0: the local effects differ by their numerical error only" in text
        assert "all bins: 0 up to the numerical error" in rs.summary(effect, "x1").as_text()

    def test_a_mean_of_exactly_0_keeps_its_error(self):
        """Rows that differ, and cancel: that is not numerical error."""
        x = np.linspace(0, 1, 40)[:, None]
        g = np.tile([-1.0, 1.0], 20)[:, None]
        local = rs.local_effects(None, x, jacobian=g)
        line = rs.glance(rs.rhale(local, bins=rs.EqualWidthBins(1))).iloc[0]
        assert abs(line["estimate"]) < 1e-15
        assert line["std_error"] == pytest.approx(1 / np.sqrt(39))
        assert "reason" not in line.index

    def test_with_the_model_what_is_rounding_is_not_tested(self):
        X = np.random.default_rng(3).uniform(-1, 1, (300, 2))
        effect = rs.std_error(rs.rhale(rs.local_effects(lambda X: 3 * X[:, 0] + X[:, 1] ** 2, X)))
        for name in ("effect_se", "average_effect_se"):
            effect[name].attrs["source"] = "rows and parameters"
        table = rs.glance(effect).set_index("term")
        assert np.isnan(table.loc["x0", ["statistic", "p_value"]].astype(float)).all()
        assert table.loc["x1", ["statistic", "p_value"]].notna().all()

    def test_a_share_of_more_than_the_whole_is_none(self):
        """users.md 5: an H² of 227 %."""
        rng = np.random.default_rng(0)
        X = rng.normal(size=(120, 3))
        X[:, 1] = 0.95 * X[:, 0] + 0.3 * X[:, 1]

        def model(X):
            return X[:, 0] * X[:, 1] - (X[:, 0] ** 2 + X[:, 1] ** 2) / 2 + 0.1 * X[:, 1] * X[:, 2]

        found = rs.h_statistic(model, X)
        assert float(found["h2_pairwise"][0, 1]) > 1.5
        table = rs.tidy(found).set_index("term")
        assert np.isnan(table.loc["x0:x1", "h2"])
        assert "joint effect varies less than its interaction" in table.loc["x0:x1", "reason"]
        assert table.loc["x0:x1", "h"] == pytest.approx(float(found["h_pairwise"][0, 1]))
        assert table.loc["x1:x2", "h2"] == pytest.approx(float(found["h2_pairwise"][1, 2]))
        text = rs.summary(found).as_text()
        line = next(line for line in text.splitlines() if line.startswith("x0:x1"))
        assert line.split()[1:3] == [">", "1"]
        assert "x0:x1: its joint effect varies less" in text
        (one,) = rs.glance(found).to_dict("records")
        assert np.isnan(one["h2"]) == (float(found["h2"]) > 1)

    def test_the_bias_of_the_curve_is_said(self, waves):
        """Not that of the heterogeneity alone."""
        *_, local, effect = waves
        check = rs.check_unbiased(local, effect)
        text = rs.summary(check).as_text()
        part = text.partition("Bias of the")[2]
        assert "curve bias" in part
        line = next(line for line in part.splitlines() if line.startswith("x1"))
        row = check.sel(feature="x1")
        steps = (row["density_bias"] * (row["bin_right"] - row["bin_left"])).values
        assert line.split()[-1] == f"{np.abs(np.cumsum(steps)).max():.4g}"
        assert "Bin error alone does not bias the curve" in text
        assert "density bias" in rs.summary(check, "x1").as_text()

    def test_averages_along_the_axis_have_no_bias_to_say(self, waves):
        *_, local, _ = waves
        effect = rs.rhale(local, bins=rs.EqualWidthBins(3))
        check = rs.check_unbiased(local, effect)
        for feature in (None, "x1"):
            text = rs.summary(check, feature).as_text()
            assert "bin error biases the heterogeneity, not the curve" in text
            assert "curve bias" not in text
            assert "density bias" not in text
        assert "average of the local effects along the bin" in rs.summary(effect, "x1").as_text()


def _cells(text):
    """Words of every line, but for rules across the table."""
    return [line.split() for line in text.splitlines() if line.strip("=- ")]


@pytest.mark.thorough
class TestSeveralOutputs:
    """users.md, reliability.md 11: KeyError 'output_name'."""

    @pytest.fixture(scope="class", name="made")
    @staticmethod
    def _made():
        X = np.random.default_rng(0).uniform(-1, 1, (200, 2))

        def model(X):
            one = np.exp(np.column_stack([X[:, 0] * X[:, 1], X[:, 0], X[:, 1] ** 2]))
            return one / one.sum(axis=1, keepdims=True)

        local = rs.local_effects(model, X)
        effect = rs.rhale(local, bins=rs.EqualWidthBins(3))
        boot = rs.bootstrap(local, effect, n_resamples=40, rng=0, progress=False)
        surface = rs.ale2(model, X, (0, 1), bins=rs.EqualWidthBins(2))
        shares = rs.h_statistic(model, X, n_rows=40, rng=0)
        return {
            "wald_test": rs.wald_test(effect),
            "homogeneous": rs.wald_test(effect, "homogeneous", local=local),
            "equivalence_test": rs.equivalence_test(effect, 1.0),
            "compare": rs.compare(effect, effect, n_draws=100, rng=0),
            "effect_sizes": rs.effect_sizes(effect),
            "effect_sizes, boot": rs.effect_sizes(effect, boot),
            "test of surfaces": rs.wald_test(surface),
            "surfaces": rs.compare(surface, surface),
            "shares": rs.compare(shares, shares),
            "effects": rs.confband(rs.confint(effect), n_draws=100, rng=0),
            "check": rs.check_unbiased(local, effect),
        }

    @pytest.mark.parametrize(
        "name",
        [
            *("wald_test", "homogeneous", "equivalence_test", "compare", "effect_sizes"),
            *("effect_sizes, boot", "test of surfaces", "surfaces", "shares", "effects", "check"),
        ],
    )
    def test_tables(self, made, name):
        results = made[name]
        text = rs.summary(results).as_text()
        for number in range(3):
            one = rs.summary(results.isel(output=number))
            for table in one.tables:
                for line in _cells(table.as_text()):
                    assert line in _cells(text)
        # Notes are those of all, numbered anew.
        assert text.count("Notes:") == 1
        numbers = [line.partition("]")[0] for line in text.splitlines() if line.startswith("[")]
        notes = [int(one[1:]) for one in numbers if one[1:].isdigit()]
        assert notes == list(range(1, len(notes) + 1))
        assert len(notes) <= 5
        table = rs.tidy(results)
        assert table["output"].unique().tolist() == made["effects"]["output"].values.tolist()


class TestReplicatesAreNoEffect:
    """What is refused says what it is."""

    @pytest.fixture(scope="class", name="refit")
    @staticmethod
    def _refit():
        X = np.random.default_rng(0).uniform(-1, 1, (80, 2))

        def fit(rows):
            return rs.rhale(rs.local_effects(lambda X: X[:, 0] * X[:, 1], rows))

        boot = rs.bootstrap_refit(fit, X, n_resamples=8, chains=2, n_grid=5, n_jobs=1, rng=0)
        return fit(X), boot

    @pytest.mark.thorough
    @pytest.mark.parametrize(
        "function",
        [
            lambda boot: rs.compare_methods([boot], "x0"),
            lambda boot: rs.equivalence_test(boot, 1.0),
            lambda boot: rs.bootstrap(boot),
        ],
    )
    def test_says_what_it_is(self, refit, function):
        expected = r"got results of several models, which .* Functions that take it: std_error, .*"
        with pytest.raises(ValueError, match=expected):
            function(refit[1])

    def test_beside_an_effect(self, refit):
        effect, boot = refit
        for function in (rs.confint, rs.effect_sizes):
            expected = r"boot must be .* on a grid of their own.* are confint\(boot\)"
            with pytest.raises(ValueError, match=expected):
                function(effect, boot)
        panel = rs.plots.forest(boot)
        assert {label.get_text() for label in panel.get_yticklabels()} == {"x0", "x1"}

    @pytest.mark.thorough
    def test_replicates_with_bins(self, local, effect):
        boot = rs.bootstrap(local, effect, n_resamples=8, rng=0, progress=False)
        with pytest.raises(
            ValueError, match=r"replicates of bootstrap\. .*confint\(effect, boot\)"
        ):
            rs.tidy(boot)
        assert "Replicates of importance" in str(rs.summary(boot))
        again = rs.bootstrap(local, effect, n_resamples=8, rebin=True, rng=0, progress=False)
        with pytest.raises(ValueError, match="chose them again"):
            rs.confint(effect, again)


@pytest.mark.slow
def test_tables_do_not_depend_on_the_order_of_dimensions(waves):
    """reliability.md 21: summary(e.transpose())."""
    model, frame, local, effect = waves
    X = frame[["x1", "x2"]]
    boot = rs.bootstrap(local, effect, n_resamples=40, rng=0, progress=False)
    results = {
        "effect": effect,
        "intervals": rs.confband(rs.confint(effect), n_draws=100, rng=0),
        "check": rs.check_unbiased(local, effect),
        "groups": rs.std_error(effect, local, groups=np.arange(1000) // 10),
        "levels": rs.ale(_wide, _three(200), bins=rs.QuantileBins(3)),
        "test": rs.wald_test(effect),
        "compare": rs.compare(effect, effect, n_draws=100, rng=0),
        "sizes": rs.effect_sizes(effect, boot),
        "pdp": rs.confint(rs.pdp(model, X, n_grid=4)),
        "ice": rs.ice(model, X, n_grid=4),
        "m_plot": rs.m_plot(model, X),
        "tree": rs.regions(local, "x1"),
        "trees": rs.all_regions(local, progress=False),
        "matrix": rs.interaction_matrix(local, n_permutations=0, progress=False),
        "surface": rs.confint(rs.ale2(model, X, ("x1", "x2"), bins=rs.EqualWidthBins(3))),
        "shares": rs.confint(rs.h_statistic(model, X, n_rows=30, rng=0)),
    }
    for name, one in results.items():
        turned = one.transpose()
        assert rs.summary(turned).as_text() == rs.summary(one).as_text(), name
        pd.testing.assert_frame_equal(rs.tidy(turned), rs.tidy(one))
        if name not in ("compare", "sizes", "matrix"):
            pd.testing.assert_frame_equal(rs.glance(turned), rs.glance(one))
    for name in ("effect", "intervals", "groups", "levels"):
        expected = results[name].rhale.in_bins()
        expanded = results[name].isel(feature=0).expand_dims("feature")
        for found, own in (
            (results[name].transpose().rhale.in_bins(), expected),
            (expanded.rhale.in_bins(), results[name].isel(feature=[0]).rhale.in_bins()),
        ):
            for one in own.variables:
                other = found[one].transpose(*own[one].dims, missing_dims="ignore")
                values = np.broadcast_to(other, own[one].shape)
                np.testing.assert_array_equal(values, own[one], err_msg=f"{name} {one}")
    pd.testing.assert_frame_equal(
        rs.augment(local.transpose(), effect.transpose()), rs.augment(local, effect)
    )
    for function in (
        rs.confint,
        partial(rs.confband, n_draws=100, rng=0),
        rs.wald_test,
        rs.effect_sizes,
    ):
        xr.testing.assert_identical(function(effect.transpose()), function(effect))
    xr.testing.assert_identical(
        rs.confint(results["groups"].transpose()), rs.confint(results["groups"])
    )
    xr.testing.assert_identical(rs.rhale(local.transpose()), rs.rhale(local))


def test_the_head_is_as_wide_as_the_table():
    """Features by different methods have a long one."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (600, 2))
    with pytest.warns(UserWarning, match="cells"):
        local = rs.local_effects(lambda X: 3 * (X[:, 0] > 0.1) + X[:, 1] ** 2, X)
    text = rs.summary(rs.rhale(local)).as_text()
    assert "finite_difference" in text
    assert len({len(line) for line in text.splitlines() if line.startswith("==")}) == 1


@pytest.mark.thorough
def test_a_summary_has_at_most_five_notes(waves):
    model, frame, local, effect = waves
    rich = rs.jump_check(model, local, rs.check_unbiased(local, effect), frame)
    rich = rs.confband(rs.confint(rich))
    ale = rs.confband(rs.confint(rs.ale(_wide, _three(), bins=rs.QuantileBins(4))))
    tree = rs.regions(local, "x1", n_folds=3, min_drop=0.01, rng=0, max_depth=1)
    X = frame[["x1", "x2"]]
    shares = rs.h_statistic(model, X, n_rows=30, rng=0, kind="ale")
    for one, feature in (
        *((rich, None), (rich, "x1"), (ale, None), (ale, "nominal"), (tree, None)),
        *((shares, None), (rs.pdp(model, X, n_grid=5), None), (rs.wald_test(ale), None)),
        (rs.ale2(model, X, ("x1", "x2")), None),
    ):
        text = rs.summary(one) if feature is None else rs.summary(one, feature)
        lines = text.as_text().partition("Notes:")[2].strip().splitlines()
        printed = [line for line in lines if line.startswith("[")]
        assert printed == [f"[{at}] {note}" for at, note in enumerate(text.notes[:5], start=1)]
        more = [f"{len(text.notes) - 5} more note" in line for line in lines[len(printed) :]]
        assert more == ([True] if len(text.notes) > 5 else [])
        # One or two short sentences each.
        assert max(map(len, text.notes)) <= 240, max(text.notes, key=len)
        assert len(set(text.notes)) == len(text.notes)
        for word in ("hangs on", "crowd", "know ", "dearer", "these rows"):
            assert word not in text.as_text()


@pytest.mark.thorough
def test_summaries_say_what_became_of_missing_values():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60)})
    X.loc[:4, "b"] = np.nan

    def model(X):
        return np.where(np.isnan(X["b"]), 3.0, X["b"]) * X["a"]

    dropped = rs.rhale(rs.local_effects(model, X, missing="drop", progress=False))
    for feature, told in ((None, True), ("b", True), ("a", False)):
        notes = rs.summary(dropped, feature).notes
        assert ("Rows without a value, left out of their feature: b: 5." in notes) is told
    binned = rs.rhale(rs.local_effects(model, X, missing="bin", progress=False))
    change = X["a"][:5] * (3 - X["b"].median())
    note = rs.summary(binned, "b").notes[0]
    assert note == (
        f"b is missing in 5 rows: the output there differs by {change.mean():.4g} (std err "
        f"{change.sem():.4g}) from that at b = {X['b'].median():.4g}."
    )
    assert "missing" not in " ".join(rs.summary(binned, "a").notes)


def test_comparisons_name_the_rows_and_bins_of_both():
    X = np.random.default_rng(0).normal(size=(90, 1))
    effects = [
        rs.rhale(rs.local_effects(lambda X: X[:, 0] ** 2, X[:n]), bins=bins)
        for n, bins in ((90, rs.EqualWidthBins(3)), (60, rs.QuantileBins(4)))
    ]
    test = rs.compare(*effects, n_draws=200, rng=0)
    text = rs.summary(test).as_text()
    for said in ("90 and 60", "EqualWidthBins and QuantileBins", "QuantileBins(n_bins=4) of the"):
        assert said in text
    assert "90 and 60" in str(rs.show(test))
    same = rs.summary(rs.compare(effects[0], effects[0], n_draws=200, rng=0)).as_text()
    assert " and 90" not in same


@pytest.mark.parametrize("make", [rs.rhale, rs.pdp, rs.averages])
def test_tables_have_the_level_of_the_intervals(make):
    data = pd.DataFrame(np.random.default_rng(0).normal(size=(80, 3)), columns=list("xzy"))
    fit = smf.ols("y ~ x * z", data).fit()
    result = rs.confint(make(fit, data[["x", "z"]]), level=0.8)
    assert "[0.1" in rs.summary(result, *(["x"] if make is rs.pdp else [])).as_text()
    own, at_95 = rs.tidy(result), rs.tidy(result, level=0.95)
    width, wider = (table["conf_high"] - table["conf_low"] for table in (own, at_95))
    assert (width <= wider).all()
    assert (width < wider).any()
    pd.testing.assert_frame_equal(own, rs.tidy(result, level=0.8))
