"""Local effects: derivatives, differences, what is refused and what it says."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import rhale_stats as rs


def cubic(X):
    X = np.asarray(X)
    return X[:, 0] ** 3 + X[:, 0] * X[:, 1]


def cubic_jacobian(X):
    X = np.asarray(X)
    return np.column_stack([3 * X[:, 0] ** 2 + X[:, 1], X[:, 0]])


class Counting:
    """A model that counts how often it is called."""

    def __init__(self, function):
        self.function, self.calls = function, 0

    def __call__(self, X):
        self.calls += 1
        return self.function(X)


@pytest.fixture
def X(rng):
    values = rng.normal(size=(200, 2))
    values.setflags(write=False)
    return values


def test_central_differences_agree_with_the_jacobian(X):
    numeric = rs.local_effects(cubic, X)["local_effect"].values
    exact = rs.local_effects(None, X, jacobian=cubic_jacobian)["local_effect"].values
    inner = (X.min(axis=0) < X) & (X.max(axis=0) > X)
    # (A eps)^(2/3) is 1e-10 here; the ends are one-sided, error h f''/2 of about 1e-4 f''.
    np.testing.assert_allclose(numeric[inner], exact[inner], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(numeric, exact, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("jacobian", [cubic_jacobian, "array", "frame"])
def test_jacobian_as_callable_array_and_frame(X, jacobian):
    frame = pd.DataFrame(X, columns=["a", "b"])
    if jacobian == "array":
        jacobian = cubic_jacobian(X)
    elif jacobian == "frame":
        jacobian = pd.DataFrame(cubic_jacobian(X)[:, ::-1], columns=["b", "a"])
    local = rs.local_effects(None, frame, jacobian=jacobian)
    np.testing.assert_array_equal(local["local_effect"].values, cubic_jacobian(X))
    assert local["local_effect_method"].values.tolist() == ["jacobian"] * 2


def test_columns_are_contiguous_and_labelled(X):
    frame = pd.DataFrame(X, columns=["a", "b"], index=[f"row{i}" for i in range(200)])
    frame.attrs["units"] = {"a": "years"}
    local = rs.local_effects(cubic, frame, features="b")
    assert local["local_effect"].dims == ("obs", "feature")
    assert local["feature"].values.tolist() == ["b"]
    assert local["obs"].values[3] == "row3"
    assert local["feature_units"].values.tolist() == [""]
    both = rs.local_effects(cubic, frame, features=["b", 0])
    assert both["feature"].values.tolist() == ["b", "a"]
    assert both["feature_units"].values.tolist() == ["", "years"]
    assert both["x"].values[:, 1].flags.c_contiguous
    assert both["local_effect"].values[:, 0].flags.c_contiguous


def test_a_feature_is_probed_at_a_bounded_number_of_rows_and_then_asked_for_in_one_call(rng):
    X = rng.normal(size=(20_000, 2))
    asked = []

    def model(rows):
        asked.append(len(rows))
        return cubic(rows)

    rs.local_effects(model, X)
    assert asked.count(2 * len(X)) == 2
    # 5 % of the full pass over 100,000 rows.
    assert sum(asked) - 4 * len(X) <= 2 * 10_000
    assert len(asked) <= 2 * 8


def test_single_precision_models_get_larger_steps(X):
    local = rs.local_effects(lambda X: cubic(X).astype(np.float32), X)
    exact = cubic_jacobian(X)
    # The docstring promises about 2e-5 relative to how f varies over one sd (here about 10).
    error = np.abs(local["local_effect"].values - exact)
    inner = (np.quantile(X, 0.02, axis=0) < X) & (np.quantile(X, 0.98, axis=0) > X)
    assert np.quantile(error[inner], 0.99) < 2e-3
    moved = X + np.array([1e-5, 0])
    naive = (cubic(moved).astype(np.float32) - cubic(X).astype(np.float32)) / 1e-5
    assert np.median(np.abs(naive - exact[:, 0])) > 10 * np.median(error[:, 0])


def test_single_precision_input_is_differenced_as_the_model_receives_it(X):
    local = rs.local_effects(cubic, X.astype(np.float32))
    # h is 5e-3 sd; at the two ends, one-sided, the error is h f''/2 of about 0.06.
    np.testing.assert_allclose(local["local_effect"].values, cubic_jacobian(X), atol=0.1)
    middle = np.abs(X[:, 1]) < 1
    np.testing.assert_allclose(local["local_effect"].values[middle, 1], X[middle, 0], atol=2e-3)


@pytest.mark.parametrize("offset", [0.0, 1.7e9])
@pytest.mark.parametrize("slope", [1e-6, 1.0, 1e9])
def test_slopes_of_any_size_and_time_stamps(rng, offset, slope):
    x = offset + rng.uniform(-100, 100, size=(300, 1))
    local = rs.local_effects(lambda X: slope * (X[:, 0] - offset), x)
    # (A eps)^(2/3) with A = 1.7e9 / 58: 3.5e-6.
    np.testing.assert_allclose(local["local_effect"].values, slope, rtol=1e-5)


def test_constant_feature_does_not_harm_the_others(X):
    with_constant = np.column_stack([X, np.full(200, 3.0)])
    local = rs.local_effects(cubic, with_constant)
    assert local["local_effect"].isnull().all("obs").values.tolist() == [False, False, True]
    alone = rs.local_effects(cubic, X)
    xr.testing.assert_allclose(local.isel(feature=[0, 1]), alone)


def test_inputs_are_left_alone(X):
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "kind": ["u", "v"] * 100})
    before = frame.copy(deep=True)
    with pytest.warns(UserWarning, match=r"Left out: 'kind' \(not numeric\)"):
        rs.local_effects(lambda f: f["a"] * f["b"], frame)
    pd.testing.assert_frame_equal(frame, before)


class TestChoiceOfColumns:
    frame = pd.DataFrame(
        {
            "x": np.linspace(0, 1, 60),
            "months": np.tile(np.arange(12.0), 5),
            "hours": np.arange(60) % 24,
            "flag": np.tile([True, False], 30),
            "name": ["a", "b", "c"] * 20,
        }
    )

    @staticmethod
    def model(frame):
        return frame["x"] ** 2 + frame["months"] + frame["hours"]

    def test_text_and_discrete_columns_are_left_out_with_a_warning(self):
        with pytest.warns(UserWarning, match="Left out: 'flag', 'name' .not numeric.; 'months'"):
            local = rs.local_effects(self.model, self.frame)
        assert local["feature"].values.tolist() == ["x", "hours"]

    def test_discrete_columns_are_taken_when_named(self):
        local = rs.local_effects(self.model, self.frame, features=["months", "x"])
        assert local["feature_kind"].values.tolist() == ["discrete", "continuous"]
        np.testing.assert_allclose(local["local_effect"].sel(feature="months"), 1.0)

    @pytest.mark.parametrize(
        ("features", "error", "message"),
        [
            ("size", KeyError, "feature must be one of 'x', 'months'.* got 'size'"),
            (7, KeyError, "or a number from 0 to 4; got 7"),
            (True, KeyError, "got True"),
            (["x", 0], ValueError, "features must be distinct; got 'x' twice"),
            ([], ValueError, "features must name at least one column; got none"),
            ("name", TypeError, "features must be numeric; column 'name' is not"),
        ],
    )
    def test_what_cannot_be_chosen(self, features, error, message):
        with pytest.raises(error, match=message):
            rs.local_effects(self.model, self.frame, features=features)

    def test_nothing_continuous(self):
        with pytest.raises(TypeError, match="at least one continuous numeric column; got 'name'"):
            rs.local_effects(self.model, self.frame[["name", "months"]])

    def test_few_rows_are_not_discrete(self):
        local = rs.local_effects(lambda X: X[:, 0], np.array([[1.0], [2.0], [3.0]]))
        assert local["feature_kind"].values.tolist() == ["continuous"]


class TestModels:
    def test_formula_results_get_every_column(self, rng):
        frame = pd.DataFrame({"x": rng.uniform(size=200), "group": ["a", "b"] * 100})
        frame["y"] = frame["x"] ** 2 + (frame["group"] == "a") + 0.1 * rng.normal(size=200)
        results = smf.ols("y ~ bs(x, df=5) * C(group)", frame).fit()
        with pytest.warns(UserWarning, match="'group'"):
            local = rs.local_effects(results, frame.drop(columns="y"))
        h = 1e-4
        inner = frame["x"].between(frame["x"].min() + h, frame["x"].max() - h)
        inside = frame[inner]
        byhand = (
            results.predict(inside.assign(x=inside["x"] + h))
            - results.predict(inside.assign(x=inside["x"] - h))
        ) / (2 * h)
        np.testing.assert_allclose(local["local_effect"].values[inner, 0], byhand, atol=1e-3)

    def test_formula_results_refuse_arrays(self, rng):
        frame = pd.DataFrame({"x": rng.uniform(size=50), "y": rng.uniform(size=50)})
        results = smf.ols("y ~ x", frame).fit()
        with pytest.raises(TypeError, match=r"DataFrame with the columns of the formula 'y ~ x'"):
            rs.local_effects(results, frame[["x"]].to_numpy())

    def test_statsmodels_results_without_formula(self, rng):
        X = rng.normal(size=(100, 2))
        results = sm.OLS(X @ [1.0, -2.0], X).fit()
        local = rs.local_effects(results, X)
        np.testing.assert_allclose(local["local_effect"].values, [[1.0, -2.0]] * 100, rtol=1e-8)

    def test_scikit_learn(self, rng):
        linear_model = pytest.importorskip("sklearn.linear_model")
        frame = pd.DataFrame(rng.normal(size=(100, 2)), columns=["a", "b"])
        fitted = linear_model.LinearRegression().fit(frame, 3 * frame["a"] - frame["b"])
        local = rs.local_effects(fitted, frame)
        np.testing.assert_allclose(local["local_effect"].values, [[3.0, -1.0]] * 100, rtol=1e-8)

    def test_a_classifier_answers_with_the_probability_of_its_second_class(self, rng):
        linear_model = pytest.importorskip("sklearn.linear_model")
        X = rng.normal(size=(100, 2))
        fitted = linear_model.LogisticRegression().fit(X, X[:, 0] > 0)
        local = rs.local_effects(fitted, X)
        by_hand = rs.local_effects(lambda X: fitted.predict_proba(X)[:, 1], X)
        np.testing.assert_array_equal(local["local_effect"], by_hand["local_effect"])
        assert (local["local_effect"].sel(feature="x0") > 0).all()
        assert local.attrs["output_name"] == "probability of True"

    def test_trees_get_slopes_across_cells_and_a_warning(self, rng):
        ensemble = pytest.importorskip("sklearn.ensemble")
        X = rng.uniform(-1, 1, size=(400, 2))
        fitted = ensemble.RandomForestRegressor(20, random_state=0).fit(X, X[:, 0] + X[:, 1])
        with pytest.raises(ValueError, match="for feature 'x0' it is zero on .* of the rows"):
            rs.local_effects(fitted, X, method="central_difference")
        with pytest.warns(rs.JumpWarning, match=r"jumps with 'x0', 'x1' .derivatives miss 100%"):
            local = rs.local_effects(fitted, X)
        assert local["local_effect_method"].values.tolist() == ["finite_difference"] * 2
        # Slope 1 in both features; a forest shrinks towards the middle at the ends.
        np.testing.assert_allclose(local["local_effect"].mean("obs"), 1.0, atol=0.2)

    def test_trees_in_single_precision_are_no_smooth_noise(self, rng):
        ensemble = pytest.importorskip("sklearn.ensemble")
        X = rng.uniform(-1, 1, size=(400, 1))
        fitted = ensemble.RandomForestRegressor(2, max_leaf_nodes=8, random_state=0).fit(X, X[:, 0])
        model = Counting(lambda X: fitted.predict(X).astype(np.float32))
        with pytest.warns(rs.JumpWarning, match="The output jumps with 'x0'"):
            local = rs.local_effects(model, X)
        np.testing.assert_allclose(local.attrs["answer_precision"], np.finfo(np.float32).eps)

    def test_indicator_of_equation_1_keeps_the_derivatives_of_the_others(self, rng):
        X = rng.uniform(-1, 1, size=(100, 3))
        with pytest.warns(rs.JumpWarning, match="jumps with 'x2' .derivatives miss 100%"):
            local = rs.local_effects(lambda X: 10 * X[:, 1] * (X[:, 2] > 0), X)
        methods = ["central_difference", "central_difference", "finite_difference"]
        assert local["local_effect_method"].values.tolist() == methods
        np.testing.assert_allclose(local["local_effect"][:, 1], 10 * (X[:, 2] > 0), atol=1e-8)

    def test_a_feature_without_effect_is_no_tree(self, X):
        local = rs.local_effects(lambda X: X[:, 0] ** 2, X)
        assert (local["local_effect"].sel(feature="x1") == 0).all()

    def test_a_rectifier_that_is_mostly_flat_is_no_tree(self, rng):
        X = rng.uniform(size=(1000, 1))
        local = rs.local_effects(lambda X: np.maximum(X[:, 0] - 0.96, 0), X)
        np.testing.assert_allclose(local["local_effect"].values, X > 0.96, atol=1e-4)

    def test_a_model_that_raises(self, X):
        def model(rows):
            raise RuntimeError("out of paper")

        with pytest.raises(
            rs.ModelError, match="RuntimeError on all 200 rows looked at of X: out of paper"
        ) as raised:
            rs.local_effects(model, X)
        assert isinstance(raised.value.__cause__, RuntimeError)

    @pytest.mark.parametrize(
        ("answer", "message"),
        [
            (lambda X: X[:3, 0], r"shape \(200,\) for 200 rows, .*; got shape \(3,\)"),
            (lambda X: X[:3], r"shape \(200,\) for 200 rows, .*; got shape \(3, 2\)"),
            (lambda X: X[:, :, None], r"got shape \(200, 2, 1\)"),
            (lambda X: np.full(len(X), "yes"), "must return numbers; got dtype"),
        ],
    )
    def test_a_model_that_returns_something_else(self, X, answer, message):
        with pytest.raises(rs.ModelError, match=message):
            rs.local_effects(answer, X)

    def test_one_column_of_predictions_is_fine(self, X):
        column = rs.local_effects(lambda X: cubic(X)[:, None], X)
        xr.testing.assert_identical(column, rs.local_effects(cubic, X))

    def test_not_a_model(self, X):
        with pytest.raises(TypeError, match="function of X, or have a predict method; got int"):
            rs.local_effects(3, X)


class TestBadTables:
    @pytest.mark.parametrize(
        ("bad", "found"), [(np.nan, "1 NaN"), (np.inf, "1 inf"), (-np.inf, "1 inf")]
    )
    def test_missing_and_infinite_values(self, X, bad, found):
        X = X.copy()
        X[17, 1] = bad
        with pytest.raises(
            ValueError, match=rf"X of feature 'x1' must be finite; got {found} in 200 rows .*: 17\)"
        ):
            rs.local_effects(cubic, X)

    def test_missing_values_of_nullable_columns(self):
        frame = pd.DataFrame({"a": pd.array([1, None, 3], dtype="Int64")})
        with pytest.raises(
            ValueError, match="X of feature 'a' must be finite; got 1 NaN in 3 rows"
        ):
            rs.local_effects(lambda f: f["a"], frame)

    def test_infinite_local_effects(self, X):
        jacobian = cubic_jacobian(X)
        jacobian[[3, 5], 0] = np.nan, np.inf
        with pytest.raises(
            ValueError,
            match=r"Local effects of feature 'x0' must be finite; got 1 NaN and 1 inf .*: 3, 5\)",
        ):
            rs.local_effects(None, X, jacobian=jacobian)

    @pytest.mark.parametrize("shape", [(200, 1), (199, 2), (200,)])
    def test_jacobian_of_another_shape(self, X, shape):
        with pytest.raises(ValueError, match=r"shape of X, \(200, 2\).*got \(\d+,( \d)?\)"):
            rs.local_effects(None, X, jacobian=np.zeros(shape))

    def test_jacobian_that_raises(self, X):
        with pytest.raises(
            rs.ModelError, match="jacobian raised ZeroDivisionError on all 200 rows"
        ):
            rs.local_effects(None, X, jacobian=lambda X: 1 / 0)

    def test_jacobian_frame_without_a_column(self, X):
        jacobian = pd.DataFrame({"x0": np.zeros(200)})
        with pytest.raises(ValueError, match=r"no column for \['x1'\]"):
            rs.local_effects(None, X, jacobian=jacobian)

    def test_no_rows(self):
        with pytest.raises(ValueError, match="X must have at least one row; got none"):
            rs.local_effects(cubic, np.empty((0, 2)))

    def test_one_dimension(self):
        with pytest.raises(ValueError, match=r"shape \(rows, features\); got shape \(3,\)"):
            rs.local_effects(cubic, [1.0, 2.0, 3.0])

    def test_text_in_an_array(self):
        with pytest.raises(TypeError, match="X must hold numbers when it is an array"):
            rs.local_effects(cubic, np.array([["a", "b"]]))

    def test_repeated_column_names(self):
        frame = pd.DataFrame([[1.0, 2.0]], columns=["a", "a"])
        with pytest.raises(ValueError, match="distinct column names; got 'a' more than once"):
            rs.local_effects(cubic, frame)

    def test_column_labels_that_are_numbers(self, X):
        local = rs.local_effects(None, pd.DataFrame(X), jacobian=cubic_jacobian)
        assert local["feature"].values.tolist() == ["0", "1"]
        # Names are text; the model still receives the labels that it knows.
        local = rs.local_effects(lambda frame: 2 * frame[0] - frame[1], pd.DataFrame(X))
        np.testing.assert_allclose(local["local_effect"], [[2, -1]] * len(X), rtol=1e-8)

    def test_units_must_be_a_mapping(self, X):
        frame = pd.DataFrame(X, columns=["a", "b"])
        frame.attrs["units"] = "metres"
        with pytest.raises(TypeError, match=r"X.attrs\['units'\] must map .*; got str"):
            rs.local_effects(cubic, frame)


class TestWeights:
    @pytest.mark.parametrize(
        ("weights", "kind", "message"),
        [
            (np.ones(3), "precision", r"shape \(200,\); got shape \(3,\)"),
            (np.full(200, np.nan), "precision", "finite and not negative; got 200 that are not"),
            (np.r_[-1.0, np.ones(199)], "precision", r"not negative; got 1 .*first rows: 0\)"),
            (np.full(200, 0.5), "frequency", "whole numbers; got 200 that are not"),
            (np.zeros(200), "precision", "must not all be zero"),
            (np.ones(200), "importance", "one of 'precision', 'frequency'; got 'importance'"),
        ],
    )
    def test_unusable_weights(self, X, weights, kind, message):
        with pytest.raises(ValueError, match=message):
            rs.local_effects(cubic, X, weights=weights, weight_kind=kind)

    def test_they_travel(self, X):
        local = rs.local_effects(cubic, X, weights=np.arange(200), weight_kind="frequency")
        np.testing.assert_array_equal(local["weight"].values, np.arange(200))
        assert local.attrs["weight_kind"] == "frequency"

    def rules(self):
        return [
            rs.EqualWidthBins(5),
            rs.QuantileBins(5),
            rs.OptimalBins(max_bins=15, min_obs=10),
            rs.OptimalBins(),
        ]

    @pytest.mark.parametrize("number", range(4))
    @pytest.mark.parametrize("kind", ["precision", "frequency"])
    def test_equal_weights_change_nothing(self, X, number, kind):
        rule = self.rules()[number]
        value = 1.0 if kind == "frequency" else 0.3
        plain = rs.std_error(rs.rhale(rs.local_effects(cubic, X), bins=rule))
        weights = np.full(200, value)
        local = rs.local_effects(cubic, X, weights=weights, weight_kind=kind)
        weighted = rs.std_error(rs.rhale(local, bins=rule))
        xr.testing.assert_equal(plain, weighted)

    @pytest.mark.parametrize("number", range(4))
    def test_frequencies_equal_repeated_rows(self, rng, X, number):
        rule = self.rules()[number]
        counts = rng.integers(0, 4, size=200)
        local = rs.local_effects(cubic, X, weights=counts, weight_kind="frequency")
        repeated = rs.local_effects(
            None,
            np.repeat(X, counts, axis=0),
            jacobian=np.repeat(local["local_effect"].values, counts, axis=0),
        )
        weighted = rs.std_error(rs.rhale(local, bins=rule))
        long = rs.std_error(rs.rhale(repeated, bins=rule))
        np.testing.assert_array_equal(weighted["n_obs"], long["n_obs"])
        np.testing.assert_array_equal(weighted["edge_value"], long["edge_value"])
        # The sums run over the same numbers in another order.
        for name in set(long.data_vars) - {"local_effect_error"}:
            np.testing.assert_allclose(
                weighted[name].values, long[name].values, rtol=1e-9, atol=1e-12, err_msg=name
            )

    def test_precision_weights_by_formula(self, rng, X):
        w = rng.uniform(0.1, 3, size=200)
        local = rs.local_effects(cubic, X, weights=w)
        effect = rs.rhale(local, bins=rs.EqualWidthBins(1)).isel(feature=0, bin=0)
        g = local["local_effect"].values[:, 0]
        mean = np.average(g, weights=w)
        variance = np.sum(w * (g - mean) ** 2) / (w.sum() - (w**2).sum() / w.sum())
        n_effective = w.sum() ** 2 / (w**2).sum()
        np.testing.assert_allclose(effect["effect"], mean, rtol=1e-12)
        np.testing.assert_allclose(effect["heterogeneity"], np.sqrt(variance), rtol=1e-12)
        np.testing.assert_allclose(effect["n_effective"], n_effective, rtol=1e-12)
        assert int(effect["n_obs"]) == 200


def test_contradicting_method_and_jacobian(X):
    with pytest.raises(ValueError, match=r"method='jacobian' and jacobian=None contradict"):
        rs.local_effects(cubic, X, method="jacobian")
    with pytest.raises(
        ValueError, match=r"method='central_difference' and jacobian=... contradict"
    ):
        rs.local_effects(cubic, X, method="central_difference", jacobian=cubic_jacobian)
    with pytest.raises(ValueError, match="method must be one of 'auto', .*; got 'guess'"):
        rs.local_effects(cubic, X, method="guess")


@settings(max_examples=30, deadline=None)
@given(
    a=st.sampled_from([1e-6, -1.0, 1e9]),
    c=st.sampled_from([1e-6, -3.0, 1e6]),
    d=st.sampled_from([0.0, -7.0, 1e4]),
)
def test_central_differences_are_equivariant(a, c, d):
    X = np.random.default_rng(0).normal(size=(100, 1))
    base = rs.local_effects(lambda X: np.sin(X[:, 0]), X)["local_effect"].values
    moved = rs.local_effects(lambda Z: a * np.sin((Z[:, 0] - c * d) / c), c * (X + d))
    # Offsets of 1e4 sd leave (A eps)^(2/3) = 1.7e-8.
    np.testing.assert_allclose(moved["local_effect"].values * c / a, base, atol=5e-4, rtol=1e-6)
