"""What an explanation says of the data: noise is called noise, real effects are found."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression

import rhale_stats as rs
from rhale_stats.answers.sentences import lines_of

FEATURES = list("abcd")


def explained(mean, make=None, n=500, seed=0, **options):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=FEATURES)
    y = pd.Series(mean(X) + rng.normal(size=n), name="sales")
    model = (make or LinearRegression)().fit(X, y)
    found = rs.explain(model, X, y, rng=seed, progress=False, budget=None, **options)
    return found, {line.feature: line for line in lines_of(found.answers)}


def forest():
    return RandomForestRegressor(10, random_state=0)


@pytest.fixture(scope="module")
def noise():
    return explained(lambda X: 0 * X.a, forest)


@pytest.fixture(scope="module")
def real():
    return explained(lambda X: X.a + 2 * X.b * (X.c > 0), forest)


@pytest.mark.thorough
def test_noise_is_called_noise(noise):
    found, lines = noise
    first = next(line for line in repr(found).splitlines() if line.startswith("*"))
    assert first.startswith("* The model does not predict new rows (R² -0.")
    assert {line.in_data for line in lines.values()} == {"not shown"}
    assert "yes" not in {line.differs_in_data for line in lines.values()}


@pytest.mark.thorough
def test_what_is_in_the_data_is_found_with_its_size(real):
    found, lines = real
    assert [lines[name].in_data for name in "ab"] == ["yes", "yes"]
    assert [lines[name].in_data for name in "d"] == ["not shown"]
    low, high = lines["a"].in_data_ci
    effect = found["outcome_effect"].to_dataset().sel(feature="a")
    assert low < float(effect["usual_high"] - effect["usual_low"]) < high
    assert [lines[name].differs_in_data for name in "bc"] == ["yes", "yes"]
    assert lines["d"].differs_in_data in ("not shown", "not examined")


@pytest.mark.thorough
def test_a_table_has_the_words_and_numbers(real):
    table = rs.tidy(real[0]).set_index("term")
    assert set(table["in_data"]) <= {"yes", "not shown", "no", "not examined"}
    low, change, high = table.loc["a", ["in_data_low", "in_data_change", "in_data_high"]]
    assert low < change < high
    assert table.loc["a", "in_data_p"] < 0.001


def test_skill_on_new_rows_stands_first(real):
    attrs = real[0].attrs
    assert attrs["skill_name"] == "R²"
    assert attrs["skill_low"] < attrs["skill"] < attrs["skill_high"] < attrs["r2"]
    assert "On rows that it did not see: R² " in repr(real[0])


def test_an_effect_too_small_to_matter_is_no_effect():
    _, lines = explained(lambda X: 3 * X.a, n=4000, matters=0.2)
    assert lines["a"].in_data == "yes"
    assert {lines[name].in_data for name in "bcd"} == {"no"}


def test_it_can_be_left_out_and_says_why():
    found, lines = explained(lambda X: X.a, outcome=False)
    assert {line.in_data for line in lines.values()} == {"not examined"}
    assert found.attrs["examined"] == "outcome=False"
    assert "in_data_p" not in rs.tidy(found)
    X = np.random.default_rng(0).normal(size=(100, 2))
    function = rs.explain(lambda X: X[:, 0], X, X[:, 0], rng=0, progress=False)
    assert "cannot be fitted again" in function.attrs["examined"]
    with pytest.raises(TypeError, match="cannot be fitted again"):
        rs.explain(lambda X: X[:, 0], X, X[:, 0], rng=0, progress=False, outcome=True)
    with pytest.raises(ValueError, match="outcome must be 'auto', True or False"):
        rs.explain(lambda X: X[:, 0], X, X[:, 0], outcome="perhaps")


def test_the_innermost_cause_says_why_a_refit_failed():
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"a": rng.normal(size=120)})
    data["y"] = data["a"] + rng.normal(size=120)
    fit = smf.ols("y ~ bs(a, df=4)", data).fit()
    found = rs.explain(fit, data[["a"]], data["y"], rng=0, progress=False)
    reason = "a refit failed (NotImplementedError: some data points fall outside the outermost"
    assert found.attrs["examined"].startswith(reason)


def test_fits_that_take_too_long_are_not_made(monkeypatch):
    monkeypatch.setattr("rhale_stats.explanation.outcome.MAX_SECONDS", 0.0)
    found, _ = explained(lambda X: X.a)
    assert "outcome=True does them" in found.attrs["examined"]


@pytest.mark.thorough
def test_probabilities_are_in_percentage_points():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(600, 2)), columns=["a", "b"])
    y = np.where(X.a + rng.normal(size=600) > 0, "ill", "well")
    model = RandomForestClassifier(10, random_state=0).fit(X, y)
    found = rs.explain(model, X, y, output="ill", rng=0, progress=False)
    line = lines_of(found.answers)[0]
    assert line.feature == "a"
    assert 30 < line.in_data_change < 100
    assert "percentage points" in repr(found)
    assert "AUC" in repr(found)
    effect = found["outcome_effect"].to_dataset().sel(feature="a")
    assert line.in_data_change == pytest.approx(100 * float(effect["usual_difference"]))


def test_methods(real, tmp_path):
    found = real[0]
    assert str(found.summary("a")).startswith("a has an effect in the data")
    assert found.tidy().equals(rs.tidy(found))
    assert found.report(tmp_path / "report.html").is_file()
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "change in the data" in html
    assert "What moves sales" in html
    found.plot("a")
    found.plot()


@pytest.mark.parametrize(
    ("mean", "classes", "predicts"),
    [
        (lambda X: 3 * X.a, False, True),
        (lambda X: 0 * X.a, False, False),
        (lambda X: 3 * X.a, True, True),
    ],
)
def test_the_skill_of_the_first_fit_is_said_where_all_would_take_too_long(
    mean, classes, predicts, monkeypatch
):
    monkeypatch.setattr("rhale_stats.explanation.outcome.MAX_SECONDS", 1e-6)
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(400, 4)), columns=FEATURES)
    y = np.asarray(mean(X) + rng.normal(size=400))
    y = (y > 0).astype(int) if classes else y
    model = (RandomForestClassifier if classes else RandomForestRegressor)(10, random_state=0)
    found = rs.explain(model.fit(X, y), X, y, rng=0, progress=False, budget=None)
    assert found.attrs["examined"].startswith("the fits would take about ")
    text = " ".join(repr(found).split())
    assert f"On a fifth of the rows, by a refit to the rest: {'AUC' if classes else 'R²'} " in text
    assert ("The model does not predict new rows" in text) is not predicts
    if not classes and predicts:
        low, value, high = (found.attrs[name] for name in ("skill_low", "skill", "skill_high"))
        assert low < 0.9 < high + 0.05  # the variance is 9 of 10
        assert 0.02 < high - low < 0.2
        assert value < found.attrs["r2"]


@pytest.mark.slow
def test_false_claims_are_rare():
    """Forests on noise, and on an additive mean: 4 samples each of 4 features.

    At most 5 % of 24 features, with twice a Monte-Carlo error of .044, are called effects; and 5 %
    of 32, with twice .039, are said to differ between rows in the data.
    """
    effects, differ = [], []
    for seed in range(4):
        for mean, null in ((lambda X: 0 * X.a, "abcd"), (lambda X: X.a + np.sin(2 * X.b), "cd")):
            _, lines = explained(mean, forest, seed=seed)
            effects += [lines[name].in_data == "yes" for name in null]
            differ += [line.differs_in_data == "yes" for line in lines.values()]
    assert np.mean(effects) <= 0.05 + 2 * 0.044
    assert np.mean(differ) <= 0.05 + 2 * 0.039


def test_rows_that_count_several_times_are_as_many_rows():
    """Outcomes along features took each as one row: their intervals were too wide."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=300), "b": rng.choice(list("xyz"), 300)})
    y, counts = X["a"].to_numpy() + rng.normal(size=300), rng.integers(1, 4, 300)
    options = {"outcome": False, "budget": None, "rng": 0, "progress": False}

    def model(X):
        return 0.8 * X["a"].to_numpy()

    found = rs.explain(model, X, y, weights=counts, weight_kind="frequency", **options)
    rows = np.repeat(np.arange(300), counts)
    expected = rs.explain(model, X.iloc[rows].reset_index(drop=True), y[rows], **options)
    for name, values in expected["outcome"].to_dataset().variables.items():
        if values.dtype.kind == "f" and not name.startswith("permutation"):
            np.testing.assert_allclose(found["outcome"][name], values, atol=1e-12, err_msg=name)
