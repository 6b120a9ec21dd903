"""Tables: what they hold, and that they hold what the Dataset holds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import rhale_stats as rs
from rhale_stats.summaries import interval_labels


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
    return rs.rhale(local, bins=rs.EqualWidthBins(4))


def test_tidy_is_the_dataset_in_rows(effect):
    table = rs.tidy(effect, level=0.9)
    assert table["term"].tolist() == ["age"] * 4 + ["income"] * 4
    row = table.iloc[5]
    with_se = rs.std_error(effect).sel(feature="income", bin=1)
    assert row["bin"] == 1
    assert row["estimate"] == float(with_se["effect"])
    assert row["std_error"] == float(with_se["effect_se"])
    assert row["n_obs"] == int(with_se["n_obs"])
    z = row["estimate"] / row["std_error"]
    assert row["statistic"] == pytest.approx(z)
    assert row["p_value"] == pytest.approx(2 * stats.t.sf(abs(z), row["n_obs"] - 1))
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
    assert rs.augment(local, rs.rhale(local))["weight"].tolist() == [1, 2, 3, 4, 5]


def test_summary_prints_a_line_a_feature(effect):
    text = str(rs.summary(effect))
    assert "RHALE: effects on visits [a year]" in text
    assert "[1] Bins: EqualWidthBins(n_bins=4)." in text
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
    assert "chosen on these rows" not in text


def test_summary_of_one_feature_prints_a_line_a_bin(effect):
    text = str(rs.summary(effect, "age"))
    assert "RHALE: effect of age [years] on visits [a year]" in text
    lines = [row for row in text.splitlines() if row.startswith(("[-", "[0"))]
    assert len(lines) == 4
    table = rs.tidy(effect)
    assert f"{table.loc[0, 'estimate']:.4g}" in lines[0]
    assert text == str(rs.summary(effect, 0))


def test_summary_says_that_bins_were_chosen(local):
    assert "chosen on these rows" in str(rs.summary(rs.rhale(local)))


def test_summary_of_a_constant_feature(effect):
    assert "The feature does not vary." in str(rs.summary(effect, "constant"))


def test_summary_is_a_statsmodels_table(effect):
    assert "<table" in rs.summary(effect).as_html()
    assert r"\begin" in rs.summary(effect, "age").as_latex()


@pytest.mark.parametrize("function", [rs.tidy, rs.glance, rs.summary])
def test_level_must_be_a_probability(effect, function):
    with pytest.raises(ValueError, match=r"level must lie strictly between 0 and 1.*got 95"):
        function(effect, level=95)


def test_tables_need_effects(local):
    with pytest.raises(ValueError, match=r"Dataset that rhale\(local\) returns; this one has no"):
        rs.tidy(local)
    with pytest.raises(TypeError, match="effect must be the Dataset .* got DataFrame"):
        rs.summary(pd.DataFrame())
    with pytest.raises(KeyError, match="feature must be one of 'age', .*; got 'size'"):
        rs.summary(rs.rhale(local), "size")


def test_standard_errors_need_their_moments(local):
    effect = rs.rhale(local, std_error_moments=False)
    with pytest.raises(ValueError, match="made by rhale.*std_error_moments=False"):
        rs.tidy(effect)


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
    return model, frame, local, rs.rhale(local, bins=rs.EqualWidthBins(3))


class TestChecks:
    """What `check_unbiased` and `jump_check` found, in print."""

    def test_tidy_has_the_columns_of_the_check(self, waves):
        _, _, local, effect = waves
        check = rs.check_unbiased(local, effect)
        table = rs.tidy(check)
        row = table[table["term"] == "x2"].iloc[1]
        assert row["bin_error"] == float(check["bin_error"].sel(feature="x2", bin=1))
        assert table["verdict"].isin(["fine", "bias larger than standard error"]).all()
        assert "verdict" not in rs.tidy(effect)

    def test_summary_of_a_check(self, waves):
        _, _, local, effect = waves
        check = rs.check_unbiased(local, effect)
        text = str(rs.summary(check))
        assert "Bias of the heterogeneity" in text
        line = next(
            line for line in text.partition("Bias of the")[2].splitlines() if line.startswith("x1")
        )
        n_biased = int((check["verdict"].sel(feature="x1") != "fine").sum())
        assert line.split()[1:4] == ["3", "3", str(n_biased)]
        assert line.split()[5] == f"{float(check['bin_error_share_axis'][0]):.0%}"
        assert "adjusted (holm)" in text

    def test_summary_of_the_bins_of_a_check(self, waves):
        _, _, local, effect = waves
        check = rs.check_unbiased(local, effect, adjust="fdr_bh")
        text = str(rs.summary(check, "x1")).partition("Bias of the")[2]
        lines = [line for line in text.splitlines() if line.startswith("[0")]
        assert len(lines) == 3
        for k, line in enumerate(lines):
            assert f"{float(check['sigma2_star'][0, k]):.4g}" in line
            assert line.endswith(str(check["verdict"].values[0, k]))
        assert "adjusted (fdr_bh)" in text

    def test_warning_without_a_check(self, waves):
        """The linear part of the bin error needs no rows."""
        _, _, local, effect = waves
        text = " ".join(str(rs.summary(effect)).split())
        assert "Warning: the effect moves inside bins of x1 (3 of 3 bins)," in text
        assert "debias(effect, check_unbiased(local, effect))" in text
        narrow = rs.rhale(local.sel(feature=["x2"]), bins=rs.EqualWidthBins(3))
        assert "Warning" not in str(rs.summary(narrow))
        bare = rs.rhale(local, bins=rs.EqualWidthBins(3), std_error_moments=False)
        with pytest.raises(ValueError, match="std_error_moments=False"):
            rs.summary(bare)

    def test_no_warning_of_rounding(self):
        """A constant derivative by differences has a spread of 1e-10, and a trend in that."""
        x = np.random.default_rng(0).uniform(0, 1, (500, 1))
        local = rs.local_effects(lambda X: 1000 + 3 * X[:, 0], x)
        assert "Warning" not in str(rs.summary(rs.rhale(local, bins=rs.EqualWidthBins(4))))

    def test_warning_counts_what_the_check_says(self, waves):
        _, _, local, effect = waves
        check = rs.check_unbiased(local, effect)
        large = int((check["verdict"].sel(feature="x1") == "bias larger than standard error").sum())
        assert f"x1 ({large} of 3 bins)" in " ".join(str(rs.summary(check)).split())

    def test_debiased(self, waves):
        _, _, local, effect = waves
        better = rs.debias(effect, rs.check_unbiased(local, effect))
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

    def test_constant_feature(self, waves):
        model, frame, *_ = waves
        local = rs.local_effects(model, frame, features=["x1", "flat"])
        effect = rs.rhale(local, bins=rs.EqualWidthBins(3))
        found = rs.jump_check(model, local, rs.check_unbiased(local, effect), frame)
        assert "constant" in str(rs.summary(found))
        assert "The feature does not vary" in str(rs.summary(found, "flat"))

    def test_source_of_honest_bins(self, waves):
        *_, local, _ = waves
        honest = rs.rhale(local, honest=True, rng=0)
        assert "bins chosen on 500 other rows" in " ".join(str(rs.summary(honest)).split())
        for rule in (rs.BestEqualWidthBins(), rs.GreedyBins()):
            chosen = rs.rhale(local, bins=rule)
            assert "bins chosen on these rows" in " ".join(str(rs.summary(chosen)).split())


def test_a_dense_truth_has_no_standard_errors_to_show():
    example = rs.simulate.Quadratic()
    X = example.sample(5000, rng=0)
    truth = rs.dense_truth(None, example.jacobian, X, 50, features="x1")
    for table in (rs.summary, rs.tidy, rs.glance):
        with pytest.raises(ValueError, match="std_error_moments=False"):
            table(truth)
    local = rs.local_effects(None, X, jacobian=example.jacobian, features="x1")
    with pytest.raises(ValueError, match="std_error_moments=False"):
        rs.check_unbiased(local, truth)
