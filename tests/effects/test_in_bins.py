"""Effects of any statistic in bins, beside what `rhale` says of the same rows."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import rhale_stats as rs
from rhale_stats.effects import statistics
from rhale_stats.effects.in_bins import _spread, in_bins
from rhale_stats.effects.statistics import STATISTICS
from tests.helpers import through_a_file

RNG = np.random.default_rng(2)
X = pd.DataFrame(RNG.normal(size=(200, 2)), columns=["a", "b"])
WEIGHTS = {
    "none": {},
    "precision": {"weights": RNG.exponential(size=200)},
    "frequency": {"weights": RNG.integers(1, 4, 200), "weight_kind": "frequency"},
}
# The mean, without its formulas.
AVERAGE = STATISTICS["mean"]._replace(name="average")
QUIET = {"n_resamples": 40, "rng": 0, "progress": False}


@pytest.fixture(autouse=True)
def with_average(monkeypatch):
    monkeypatch.setitem(statistics.STATISTICS, AVERAGE.name, AVERAGE)


def model(X):
    return (X["a"].fillna(1.0) ** 2 * X["b"] + X["b"]).to_numpy()


def local_of(table=X, **options):
    return rs.local_effects(model, table, progress=False, **options)


@pytest.fixture(scope="module")
def local():
    return local_of()


@pytest.fixture(scope="module")
def effect(local):
    return in_bins(local, AVERAGE, rs.QuantileBins(5), "mean")


@pytest.mark.parametrize("centering", ["mean", "start", "integral"])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_of_the_mean_it_is_what_rhale_gives(weights, centering):
    local = local_of(**WEIGHTS[weights])
    effect = in_bins(local, AVERAGE, rs.QuantileBins(5), centering)
    mean = rs.rhale(local, bins=rs.QuantileBins(5), weighting="rows", centering=centering)
    for name in effect.data_vars:
        # Sums in another order.
        np.testing.assert_allclose(effect[name], mean[name], rtol=1e-10, atol=1e-12, err_msg=name)
    boot, of_means = (rs.bootstrap(local, one, **QUIET) for one in (effect, mean))
    assert {*boot.data_vars} == {*of_means.data_vars}
    for name in boot.data_vars:
        np.testing.assert_allclose(boot[name], of_means[name], rtol=1e-9, atol=1e-11, err_msg=name)


def test_bins_without_rows_have_no_effect_and_their_replicates_neither():
    local = local_of()
    edges = {name: [-9.0, -8.0, 0.0, 1.0, 9.0] for name in "ab"}
    with pytest.warns(UserWarning, match="Bins without rows: 'a'"):
        effect = in_bins(local, AVERAGE, rs.GivenBins(edges), "mean")
    with pytest.warns(UserWarning, match="Bins without rows"):
        mean = rs.rhale(local, bins=rs.GivenBins(edges), weighting="rows")
    boot, of_means = (rs.bootstrap(local, one, **QUIET) for one in (effect, mean))
    for found, expected in ((effect, mean), (boot, of_means)):
        for name in ("effect", "curve", "average_effect"):
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-9, atol=1e-11)
    assert np.isnan(effect["effect"][:, 0]).all()


@pytest.mark.parametrize("scheme", ["multinomial", "bayesian", "poisson"])
def test_intervals_and_standard_errors_come_from_replicates(local, effect, scheme):
    groups = np.arange(200) // 4
    boot = rs.bootstrap(local, effect, scheme=scheme, groups=groups, **QUIET)
    found = rs.confint(effect, boot, level=0.9)
    draws = boot["effect"].stack(all=("chain", "draw"))
    np.testing.assert_allclose(found["effect_se"], draws.std("all", ddof=1), rtol=1e-10)
    ends = draws.quantile([0.05, 0.95], "all", method="weibull").transpose(..., "quantile")
    np.testing.assert_allclose(found["effect_ci"], ends, rtol=1e-10)
    basic = rs.confint(effect, boot, level=0.9, method="basic")
    reflected = 2 * effect["effect"] - found["effect_ci"].isel(ci_bound=[1, 0])
    np.testing.assert_allclose(basic["effect_ci"], reflected, rtol=1e-10)
    assert found["effect_se"].attrs["kind"] == "bootstrap"
    assert found["effect_ci"].attrs["source"] == "groups of rows"


def test_tables_say_why_a_number_is_missing(local, effect):
    table, sizes = rs.tidy(effect), rs.glance(effect)
    for one in (table, sizes):
        assert one["std_error"].isna().all()
        assert one["conf_low"].isna().all()
        assert one["reason"].str.contains("no formula of its standard error").all()
        assert "p_value" not in one
    text = rs.summary(effect).as_text()
    assert "AVERAGE EFFECT: effects on output" in text
    assert "Student" not in text
    assert "confint(effect, bootstrap(local, effect)" in text
    assert "confint(effect, bootstrap" in str(rs.show(effect))
    done = rs.confint(effect, rs.bootstrap(local, effect, **QUIET))
    table = rs.tidy(done)
    np.testing.assert_array_equal(table["std_error"], done["effect_se"].values.ravel())
    np.testing.assert_array_equal(table["conf_low"], done["effect_ci"][..., 0].values.ravel())
    assert "reason" not in table
    assert "Intervals: pointwise, bootstrap, percentile" in rs.summary(done, "a").as_text()
    # No interval of another level by Student's t.
    assert rs.tidy(done, level=0.9)["conf_low"].isna().all()


USES = {
    "std_error": lambda local, effect: rs.std_error(effect),
    "std_error, groups": lambda local, effect: rs.std_error(effect, local, groups=np.arange(200)),
    "confband": lambda local, effect: rs.confband(effect),
    "vcov": lambda local, effect: rs.vcov(effect, "a"),
    "wald_test": lambda local, effect: rs.wald_test(effect),
    "equivalence_test": lambda local, effect: rs.equivalence_test(effect, 1.0),
    "effect_sizes": lambda local, effect: rs.effect_sizes(effect),
    "compare": lambda local, effect: rs.compare(effect, effect),
    "check_unbiased": lambda local, effect: rs.check_unbiased(local, effect),
    "debias": lambda local, effect: rs.debias(effect, effect),
    "jump_check": lambda local, effect: rs.jump_check(model, local, effect, X),
    "mae": lambda local, effect: rs.mae(effect, effect),
}


@pytest.mark.parametrize("use", USES)
def test_formulas_of_means_refuse_other_statistics(use, local, effect):
    with pytest.raises(ValueError, match=r"statistic 'average'\. .*bootstrap\(local, effect\)"):
        USES[use](local, effect)
    # Medians that somebody wrote in the place of the means, under a name of their own.
    made = rs.rhale(local).assign_attrs(method="median_effect")
    with pytest.raises(ValueError, match="the statistic 'median_effect'"):
        USES[use](local, made)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda local, effect: rs.confint(effect), "boot must be given for the statistic 'average"),
        (
            lambda local, effect: rs.confint(
                effect, rs.bootstrap(local, effect, **QUIET), method="bca"
            ),
            "method must be one of 'percentile', 'basic'; got 'bca'",
        ),
        (
            lambda local, effect: rs.confint(effect, _of_means(local)),
            "are of the statistic 'mean', not 'average'",
        ),
        (
            lambda local, effect: rs.bootstrap(local, effect, rebin=True, **QUIET),
            "rebin and studentize must be False for the statistic 'average'",
        ),
        (
            lambda local, effect: rs.bootstrap(local, effect.assign_attrs(statistic="mode")),
            "or average; got 'mode'",
        ),
    ],
)
def test_what_replicates_cannot_give(call, message, local, effect):
    with pytest.raises(ValueError, match=message):
        call(local, effect)


def _of_means(local):
    mean = rs.rhale(local, bins=rs.QuantileBins(5), weighting="rows")
    return rs.bootstrap(local, mean, **QUIET)


def test_linear_bins_and_levels_are_refused():
    local = rs.local_effects(lambda X: X[:, 0] ** 2, X.to_numpy(), progress=False)
    with pytest.raises(ValueError, match=r"makes linear ones. Use AdaptiveBins\(degree=0\)"):
        in_bins(local, AVERAGE, rs.AdaptiveBins(), "mean")
    levels = pd.DataFrame({"k": pd.Categorical(RNG.choice(["u", "v"], 30))})
    local = rs.ale_local_effects(lambda X: (X["k"] == "u").to_numpy(float), levels)
    with pytest.raises(ValueError, match="average_effect"):
        in_bins(local, AVERAGE, None, "mean")


def test_a_file_gives_it_back(local, effect, tmp_path):
    boot = rs.bootstrap(local, effect, **QUIET)
    done = rs.confint(effect, boot)
    for one in (done, boot):
        xr.testing.assert_identical(through_a_file(one, tmp_path), one)


def test_pictures_and_curves_take_it(local, effect):
    boot = rs.bootstrap(local, effect, **QUIET)
    done = rs.confint(effect, boot)
    for one in (effect, done):
        rs.plot_effect(one, "a", local)
        rs.plot_effects(one)
        rs.plot_bins(one, local, "a")
    rs.plot_forest(done)
    both = rs.compare_methods([done, rs.rhale(local)], "a")
    assert both["effect_method"].values.tolist() == ["average effect", "RHALE"]
    at = rs.predict(effect, [0.0], "a").item()
    assert at == pytest.approx(np.interp(0.0, effect["edge_value"][0], effect["curve"][0]))
    assert rs.augment(local, effect)["a.effect"].notna().all()
    assert "effect_se" in rs.to_datatree(local, done)["effect"]
    plt.close("all")


def test_outputs_and_rows_without_a_value():
    table = X.assign(a=X["a"].mask(X["b"] > 1))

    def two(X):
        return np.column_stack([model(X), 2 * model(X)])

    local = rs.local_effects(two, table, missing="bin", progress=False)
    effect = in_bins(local, AVERAGE, rs.QuantileBins(3), "mean")
    mean = rs.rhale(local, bins=rs.QuantileBins(3), weighting="rows")
    for name in ("effect", "curve", "missing_curve"):
        np.testing.assert_allclose(effect[name], mean[name], rtol=1e-9, atol=1e-12)
    done = rs.confint(effect, rs.bootstrap(local, effect, **QUIET))
    assert done["effect_se"].sizes["output"] == 2
    assert done["effect_se"].notnull().all()


def test_legends_and_notes_name_the_statistic(local):
    effect = in_bins(local, AVERAGE, None, "mean")
    done = rs.confint(effect, rs.bootstrap(local, effect, **QUIET))
    upper, _ = rs.plot_effect(done.assign_attrs(statistic="middle"), "a")
    texts = [text.get_text() for text in upper.figure.legends[0].get_texts()]
    assert texts[0] == "middle effect"
    labels = upper.figure.axes[1].get_legend_handles_labels()[1]
    assert {"middle effect\nin the bin", "95 % interval of the\nmiddle in the bin"} <= set(labels)
    plt.close("all")
    assert "(GivenBins) remove this" in rs.summary(done).as_text()
    assert "honest" not in rs.summary(done).as_text()


def test_spread_of_replicates_without_those_that_are_missing():
    nan = np.nan
    draws = np.array([[1.0, nan, nan, 5], [2.0, 4.0, nan, 5], [6.0, 7.0, 1.0, 5]])
    expected = [np.std([1, 2, 6], ddof=1), np.std([4, 7], ddof=1), nan, 0]
    np.testing.assert_allclose(_spread(draws), expected)


def test_bins_are_constant_and_chosen_by_the_rows():
    """The default has steps where the slope of the effect would make a line."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": np.linspace(-1, 1, 300), "b": rng.normal(size=300)})
    a = table[["a"]]
    local = rs.local_effects(None, a, jacobian=8 * a.to_numpy() + rng.normal(size=(300, 1)) / 9)
    found = in_bins(local, AVERAGE, None, "mean")
    assert "slope" not in found
    assert found["n_bins"].item() > 2
    expected = rs.rhale(local, bins=rs.AdaptiveBins(degree=0), weighting="rows")
    np.testing.assert_array_equal(found["edge_value"], expected["edge_value"])
    np.testing.assert_allclose(found["effect"], expected["effect"])
    with pytest.raises(ValueError, match=r"bins must be constant for the statistic 'average'"):
        in_bins(local, AVERAGE, rs.AdaptiveBins(), "mean")
    long = {name: found[name].attrs["long_name"] for name in ("effect", "curve", "average_effect")}
    assert long == {
        "effect": "average effect in the bin",
        "curve": "accumulated average effect",
        "average_effect": "mean over the rows of the average effects of their bins",
    }
    assert found["effect"].attrs["estimator"] == AVERAGE.words
    assert (found.attrs["method"], found.attrs["statistic"]) == ("average_effect", "average")


def test_errors_of_replicates_say_what_they_are_of(local, effect):
    done = rs.confint(effect, rs.bootstrap(local, effect, **QUIET))
    for name in ("effect", "heterogeneity", "curve", "average_effect"):
        attrs = done[f"{name}_se"].attrs
        assert attrs["target"] == effect[name].attrs["long_name"]
        assert (attrs["source"], attrs["kind"]) == ("rows", "bootstrap")
    for name in ("effect", "curve"):
        assert done[f"{name}_se"].dims == effect[name].dims
    for method in ("bca", "normal"):
        with pytest.raises(ValueError, match="method must be"):
            rs.confint(effect, rs.bootstrap(local, effect, **QUIET), method=method)
    with pytest.raises(ValueError, match="boot must be given for the statistic 'average'"):
        rs.confint(effect)


def test_summaries_say_what_is_known(local, effect):
    """Without replicates no intervals; with them how they were made."""
    text = " ".join(rs.summary(effect, "a").as_text().split())
    assert "Uncertainty: not estimated; see confint(effect, boot) =" in text
    words = AVERAGE.words.partition(", math")[0]
    spread = "heterog.: standard deviation of the local effects in the bin."
    assert f"effect: {words}. {spread}" in rs.summary(effect, "a").notes
    assert not any("treat the model" in note for note in rs.summary(effect, "a").notes)
    average = "mean over the rows of the average effects of their bins"
    assert any(f"avg effect: {average}. " in note for note in rs.summary(effect).notes)
    done = rs.confint(effect, rs.bootstrap(local, effect, **QUIET), level=0.9)
    fixed = "Standard errors treat the model as fixed. They treat the bin edges as fixed."
    assert fixed in rs.summary(done, "a", level=0.5).notes
    (note,) = [one for one in rs.summary(done, "a", level=0.9).notes if one.startswith(fixed)]
    assert note.startswith(f"{fixed} Intervals: pointwise, ")
    assert done["effect_ci"].attrs["method"] in note


def test_a_bin_of_little_weight_has_its_effect():
    """Weights are divided by the largest."""
    x, g = np.array([[0.1], [0.2], [0.9]]), np.array([[1.0], [3.0], [7.0]])
    rows = rs.local_effects(None, x, jacobian=g, weights=[4.0, 2.0, 1.0])
    found = in_bins(rows, AVERAGE, rs.GivenBins([0, 0.5, 1]), "start")
    np.testing.assert_allclose(found["effect"], [[(4 + 6) / 6, 7]])
