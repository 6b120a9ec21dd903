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
from tests.helpers import as_of_a_file, in_turn


def cubic(X):
    X = np.asarray(X)
    return X[:, 0] ** 3 + X[:, 0] * X[:, 1]


def cubic_jacobian(X):
    X = np.asarray(X)
    return np.column_stack([3 * X[:, 0] ** 2 + X[:, 1], X[:, 0]])


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
        with pytest.warns(UserWarning, match="'months' .discrete.; 'flag', 'name' .not num"):
            local = rs.local_effects(self.model, self.frame)
        assert local["feature"].values.tolist() == ["x", "hours"]

    def test_discrete_columns_are_taken_when_named(self):
        local = rs.local_effects(self.model, self.frame, features=["months", "x"])
        assert local["feature_kind"].values.tolist() == ["discrete", "continuous"]
        np.testing.assert_allclose(local["local_effect"].sel(feature="months"), 1.0)

    @pytest.mark.parametrize(
        ("features", "error", "message"),
        [
            ("size", KeyError, "features must be one of 'x', 'months'.* got 'size'"),
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


def test_columns_that_the_model_is_known_to_use_are_taken(X):
    table = pd.DataFrame(X, columns=["a", "b"])
    of_b = rs.Adapter(lambda X: X["b"].to_numpy() ** 2, features=["b"])
    assert rs.local_effects(of_b, table)["feature"].values.tolist() == ["b"]
    assert rs.local_effects(of_b, table, features="a")["feature"].values.tolist() == ["a"]
    alone = rs.local_effects(None, table, jacobian=cubic_jacobian)
    assert alone["feature"].values.tolist() == ["a", "b"]


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
        np.testing.assert_allclose(local["local_effect"], by_hand["local_effect"], atol=1e-7)
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
        with pytest.warns(rs.JumpWarning, match="The output jumps with 'x0'"):
            local = rs.local_effects(lambda X: fitted.predict(X).astype(np.float32), X)
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
            (np.ones(200), "importance", "one of 'precision', .*; got 'importance'"),
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

    @pytest.mark.thorough
    @pytest.mark.parametrize(("number", "kind"), in_turn(range(4), ["precision", "frequency"]))
    def test_equal_weights_change_nothing(self, X, number, kind):
        rule = self.rules()[number]
        value = 1.0 if kind == "frequency" else 0.3
        plain = rs.std_error(rs.rhale(rs.local_effects(cubic, X), bins=rule))
        weights = np.full(200, value)
        local = rs.local_effects(cubic, X, weights=weights, weight_kind=kind)
        weighted = rs.std_error(rs.rhale(local, bins=rule))
        xr.testing.assert_equal(plain, weighted)

    @pytest.mark.thorough
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
        effect = rs.rhale(local, bins=rs.EqualWidthBins(1), weighting="rows")
        effect = effect.rhale.in_bins().isel(feature=0, bin=0)
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


@pytest.mark.thorough
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


def test_one_coded_value_leaves_the_derivatives_of_the_others_alone(rng):
    """code.md B9."""
    X = rng.normal(size=(1000, 1))
    X[17] = 999999.0
    local = rs.local_effects(lambda X: np.sin(3 * X[:, 0]), X)
    # At the least value the difference is one-sided.
    others = (np.arange(1000) != 17) & (X[:, 0] > X.min())
    exact = 3 * np.cos(3 * X[others, 0])
    np.testing.assert_allclose(local["local_effect"].values[others, 0], exact, atol=1e-7)
    assert float(local["local_effect_error"][0]) < 1e-7
    far = rs.local_effects(lambda X: X[:, 0] ** 2, X)["local_effect"].values[17, 0]
    # One-sided at the end of the axis: h = s (A eps)^(1/3) is 6e-4 there.
    np.testing.assert_allclose(far, 2 * 999999.0, rtol=1e-6)


def test_the_error_holds_what_the_length_of_the_step_makes(rng):
    """Truncation beside rounding: of a cubic swing that double precision does not resolve."""
    X = rng.uniform(-1, 1, size=(2000, 1))
    f = lambda X: np.sin(3000 * X[:, 0]) / 3000  # noqa: E731
    local = rs.local_effects(f, X)
    off = np.abs(local["local_effect"].values[:, 0] - np.cos(3000 * X[:, 0]))
    error = float(local["local_effect_error"][0])
    assert np.quantile(off, 0.9) <= error <= 3 * off.max()
    rounding = 8 * np.finfo(float).eps / 3000 / 6e-6
    assert error > 100 * rounding


@pytest.mark.parametrize("scale", [1e-55, 1e-20, 1e20, 1e55])
def test_features_of_any_scale(rng, scale):
    """reliability.md 18."""
    z = rng.normal(size=(300, 1))
    x = z * scale
    for method in ("central_difference", "finite_difference"):
        local = rs.local_effects(lambda X: X[:, 0] / scale, x, method=method)
        np.testing.assert_allclose(local["local_effect"].values * scale, 1, rtol=1e-8)


class TestCells:
    def edges(self, local):
        edges = local["cell_value"].values[0]
        return edges[~np.isnan(edges)]

    @pytest.mark.parametrize(("n", "expected"), [(20, 5), (60, 6), (1000, 40), (30_000, 40)])
    def test_equal_numbers_of_rows_by_default(self, rng, n, expected):
        x = rng.exponential(size=(n, 1))
        local = rs.local_effects(lambda X: X[:, 0], x, method="finite_difference")
        edges = self.edges(local)
        assert len(edges) == expected + 1
        assert np.isin(edges, x).all()
        counts = np.histogram(x, edges)[0]
        assert counts.min() >= n // expected - 1
        assert local["cell_value"].dims == ("feature", "cell_edge")

    def test_counted_rows_have_the_cells_of_repeated_ones(self, rng):
        for x in (rng.normal(size=60), rng.integers(0, 4, 20).astype(float)):
            counts = rng.integers(0, 6, len(x))
            arguments = {"features": 0, "method": "finite_difference"}
            counted = rs.local_effects(
                lambda X: X[:, 0], x[:, None], weights=counts, weight_kind="frequency", **arguments
            )
            repeated = rs.local_effects(
                lambda X: X[:, 0], np.repeat(x, counts)[:, None], **arguments
            )
            np.testing.assert_array_equal(self.edges(counted), self.edges(repeated))

    @pytest.mark.parametrize("method", ["auto", "finite_difference"])
    def test_levels_of_a_discrete_column_are_the_edges(self, rng, method):
        """users.md 5: the curve gains what the output does, 4² - 0², whatever the rows are."""
        x = rng.choice(5, size=(500, 1), p=[0.6, 0.2, 0.1, 0.05, 0.05]).astype(float)
        local = rs.local_effects(lambda X: X[:, 0] ** 2, x, features=0, method=method)
        assert local["local_effect_method"].values.tolist() == ["finite_difference"]
        np.testing.assert_array_equal(self.edges(local), np.arange(5.0))
        slopes = local["local_effect"].values[:, 0]
        np.testing.assert_allclose(slopes, 2 * np.minimum(x[:, 0], 3) + 1, rtol=1e-12)

    @pytest.mark.parametrize(
        "rule", [rs.OptimalBins(), rs.AdaptiveBins(), rs.BestEqualWidthBins(), rs.GreedyBins()]
    )
    def test_no_cell_of_a_rule_that_chooses_is_empty(self, rng, rule):
        x = np.r_[rng.normal(size=300), 8 + rng.normal(size=300)][:, None]
        local = rs.local_effects(lambda X: X[:, 0], x, method="finite_difference", bins=rule)
        edges = self.edges(local)
        cell = np.clip(np.searchsorted(edges, x[:, 0], side="right") - 1, 0, len(edges) - 2)
        assert np.bincount(cell, minlength=len(edges) - 1).min() > 0
        assert (edges[0], edges[-1]) == (x.min(), x.max())

    def test_explicit_rules_keep_their_edges(self, rng):
        x = np.r_[rng.normal(size=300), 30 + rng.normal(size=300)][:, None]
        given = [float(x.min()), 0, 10, 20, float(x.max())]
        for rule, expected in (
            (rs.EqualWidthBins(50), np.linspace(x.min(), x.max(), 51)),
            (rs.GivenBins(given), given),
        ):
            local = rs.local_effects(lambda X: X[:, 0], x, method="finite_difference", bins=rule)
            np.testing.assert_allclose(self.edges(local), expected, atol=1e-12)

    def test_bins_are_for_the_features_that_jump(self, X):
        with pytest.warns(rs.JumpWarning, match="'x0'"):
            local = rs.local_effects(
                lambda X: np.floor(X[:, 0]) + X[:, 1], X, bins=rs.EqualWidthBins(7)
            )
        assert len(self.edges(local)) == 8
        assert local["cell_value"][1].isnull().all()

    def test_ale_and_its_local_effects_carry_cells(self, X):
        frame = pd.DataFrame(X, columns=["a", "b"]).assign(kind=list("uv") * 100)
        local = rs.ale_local_effects(lambda X: X["a"] + (X["kind"] == "u"), frame)
        assert local["local_effect_method"].values.tolist() == ["finite_difference"] * 3
        assert local["cell_value"].sel(feature="kind").isnull().all()
        assert local["cell_value"].sel(feature="a").notnull().sum() == 41

    @pytest.mark.thorough
    def test_the_method_of_each_feature_goes_on_to_the_effects(self, X, tmp_path):
        with pytest.warns(rs.JumpWarning):
            local = rs.local_effects(lambda X: np.floor(X[:, 0]) + X[:, 1], X)
        effect = rs.rhale(local)
        methods = ["finite_difference", "central_difference"]
        assert effect["local_effect_method"].values.tolist() == methods
        assert "by feature: 1 finite_difference, 1 central_difference" in str(rs.summary(effect))
        local.to_netcdf(tmp_path / "local.nc")
        with xr.open_dataset(tmp_path / "local.nc") as again:
            assert again["local_effect_method"].values.tolist() == methods

    def test_files_of_earlier_versions_have_one_method_for_all(self, X):
        local = as_of_a_file(rs.local_effects(cubic, X))
        old = local.drop_vars("local_effect_method").assign_attrs(
            local_effect_method="central_difference"
        )
        effect = rs.rhale(old)
        assert effect.attrs["local_effect_method"] == "central_difference"


class TestFacts:
    def test_of_a_function(self, X):
        attrs = rs.local_effects(cubic, X).attrs
        eps = np.finfo(float).eps
        assert (attrs["scale"], attrs["output_label"], attrs["answer_precision"]) == (
            "response",
            "",
            eps,
        )

    def test_of_one_output_of_several(self, X):
        def two(X):
            return np.column_stack([cubic(X), -cubic(X)])

        assert rs.local_effects(two, X, output=1).attrs["output_label"] == "1"
        assert rs.local_effects(two, X).attrs["output_label"] == ""

    def test_of_a_classifier(self, rng):
        linear_model = pytest.importorskip("sklearn.linear_model")
        X = rng.normal(size=(100, 2))
        fitted = linear_model.LogisticRegression().fit(X, np.where(X[:, 0] > 0, "yes", "no"))
        attrs = rs.local_effects(fitted, X, scale="logit").attrs
        assert (attrs["scale"], attrs["output_label"]) == ("logit", "yes")


class TestOffsets:
    """users.md 3: ``predict`` of statsmodels leaves them out."""

    @pytest.fixture
    def frame(self):
        rng = np.random.default_rng(2)
        frame = pd.DataFrame({"x": rng.normal(size=400), "z": rng.normal(size=400)})
        frame["years"] = rng.uniform(0.1, 50, 400)
        frame["y"] = rng.poisson(frame["years"] * np.exp(0.3 * frame["x"] - 1))
        return frame

    def fits(self, frame):
        log, poisson = np.log(frame["years"]), sm.families.Poisson()
        groups = np.arange(len(frame)) // 4
        return {
            "GLM, offset": smf.glm("y ~ x + z", frame, family=poisson, offset=log).fit(),
            "GLM, offset of years in thousands": smf.glm(
                "y ~ x + z", frame, family=poisson, offset=np.log(frame["years"] / 1000)
            ).fit(),
            "GLM, exposure": smf.glm(
                "y ~ x + z", frame, family=poisson, exposure=frame["years"]
            ).fit(),
            "Poisson": smf.poisson("y ~ x + z", frame, exposure=frame["years"]).fit(disp=0),
            "Poisson, both": smf.poisson(
                "y ~ x + z", frame, exposure=frame["years"], offset=0.01 * frame["years"]
            ).fit(disp=0),
            "GEE": smf.gee("y ~ x", groups, frame, family=poisson, exposure=frame["years"]).fit(),
        }

    @pytest.mark.thorough
    def test_are_part_of_the_effect(self, frame):
        for name, results in self.fits(frame).items():
            # exp(eta) of the fit, by hand, times the coefficient.
            fitted = np.asarray(results.fittedvalues)
            if "Poisson" in name:
                fitted = np.asarray(results.predict())
            by_hand = (fitted * results.params["x"]).mean()
            # From the column that they were made from, and by the rows of the fit.
            for columns in (["x", "z", "years"], ["x", "z"]):
                local = rs.local_effects(results, frame[columns], features="x")
                effect = float(local["local_effect"].mean())
                np.testing.assert_allclose(effect, by_hand, rtol=1e-6, err_msg=name)

    @pytest.mark.thorough
    def test_their_column_has_an_effect_and_new_rows_have_theirs(self, frame):
        for name, results in self.fits(frame).items():
            new = frame[["x", "z", "years"]].iloc[:30].assign(years=7.0).reset_index(drop=True)
            new["years"] += np.linspace(0, 1, 30)
            offset = np.log(new["years"] / (1000 if "thousands" in name else 1))
            offset += 0.01 * new["years"] if "both" in name else 0
            local = rs.local_effects(results, new, features=["x", "years"])
            rate = np.asarray(results.predict(new, offset=offset))
            own = local["local_effect"].values
            np.testing.assert_allclose(own[:, 0], rate * results.params["x"], rtol=1e-3)
            by_years = rate * (1 / new["years"] + (0.01 if "both" in name else 0))
            np.testing.assert_allclose(own[:, 1], by_years, rtol=1e-3)

    def test_without_a_formula(self, frame):
        X = sm.add_constant(frame[["x", "z"]].to_numpy())
        results = sm.Poisson(frame["y"].to_numpy(), X, exposure=frame["years"].to_numpy()).fit(
            disp=0
        )
        local = rs.local_effects(results, X, features=[1])
        by_hand = (results.predict() * results.params[1]).mean()
        np.testing.assert_allclose(float(local["local_effect"].mean()), by_hand, rtol=1e-6)
        curve = rs.pdp(results, X, features=1, n_grid=5)["curve"].values.ravel()
        assert np.ptp(curve) > 2
        with pytest.raises(ValueError, match="fitted with an offset or exposure, .* X has neither"):
            rs.local_effects(results, X[:50], features=[1])

    def test_unknown_ones_are_refused_with_the_remedy(self, frame):
        results = self.fits(frame)["Poisson"]
        with pytest.raises(ValueError, match=r"Pass a function that adds it, .*offset=np.log"):
            rs.local_effects(results, frame[["x", "z"]].iloc[:100], features="x")

    def test_the_same_for_all_rows_is_known_for_any(self, frame):
        results = smf.poisson("y ~ x + z", frame, exposure=np.full(400, 3.0)).fit(disp=0)
        few = frame[["x", "z"]].iloc[:40]
        local = rs.local_effects(results, few, features="x")
        rate = np.asarray(results.predict(few, exposure=np.full(40, 3.0)))
        np.testing.assert_allclose(
            local["local_effect"].values[:, 0], rate * results.params["x"], rtol=1e-3
        )


class TestLabelsAreNoNumbers:
    def test_of_classes_and_clusters(self, rng):
        """users.md 1: a hard-voting classifier and KMeans."""
        cluster = pytest.importorskip("sklearn.cluster")
        ensemble = pytest.importorskip("sklearn.ensemble")
        linear_model = pytest.importorskip("sklearn.linear_model")
        pipeline = pytest.importorskip("sklearn.pipeline")
        X = rng.normal(size=(100, 2))
        logistic = linear_model.LogisticRegression()
        voting = ensemble.VotingClassifier([("a", logistic), ("b", logistic)])
        for model in (
            voting,
            cluster.KMeans(2, n_init=1),
            pipeline.make_pipeline(voting),
            pipeline.make_pipeline(cluster.KMeans(2, n_init=1)),
        ):
            model.fit(X, X[:, 0] > 0)
            with pytest.raises(ValueError, match="answers with labels, .*Use a model with prob"):
                rs.local_effects(model, X)
        logistic.fit(X, X[:, 0] > 0)
        with pytest.raises(ValueError, match="answers with labels, .*Pass the model itself"):
            rs.local_effects(logistic.predict, X)
        outliers = ensemble.IsolationForest(n_estimators=5, random_state=0).fit(X)
        with pytest.raises(ValueError, match="answers with labels, .*scale='decision'"):
            rs.local_effects(outliers, X)
        with pytest.warns(rs.JumpWarning):
            rs.local_effects(outliers, X, scale="decision")

    def test_text_says_what_to_do(self, X):
        with pytest.raises(rs.ModelError, match="must return numbers; got dtype .*predict_proba"):
            rs.local_effects(lambda X: np.full(len(X), "yes"), X)


class TestNumbersThatAreNone:
    """reliability.md 7: imaginary parts and masks would be lost."""

    def test_complex_ones(self, X):
        with pytest.raises(rs.ModelError, match="model must return real numbers; got .*complex128"):
            rs.local_effects(lambda X: X[:, 0] + 0j, X)
        with pytest.raises(TypeError, match="X must hold real numbers; got dtype complex128"):
            rs.local_effects(cubic, X + 0j)
        with pytest.raises(TypeError, match="weights must be real numbers; got complex"):
            rs.local_effects(cubic, X, weights=np.ones(200) + 1j)
        with pytest.raises(TypeError, match="jacobian must hold real numbers; got .*complex128"):
            rs.local_effects(None, X, jacobian=1j * X)

    def test_masked_ones(self, X):
        masked = np.ma.masked_greater(X, 1)
        with pytest.raises(rs.ModelError, match="plain numbers; got a masked array"):
            rs.local_effects(lambda X: np.ma.masked_greater(X[:, 0], 1), X)
        with pytest.raises(TypeError, match="X must hold plain numbers; got a masked array, "):
            rs.local_effects(cubic, masked)
        with pytest.raises(ValueError, match="weights must be plain numbers; got a masked array"):
            rs.local_effects(cubic, X, weights=np.ma.masked_less(np.ones(200), 2))
        with pytest.raises(TypeError, match="jacobian must hold plain numbers; got a masked"):
            rs.local_effects(None, X, jacobian=masked)
        # A mask that masks nothing is none.
        unmasked = np.ma.masked_greater(X, 100)
        xr.testing.assert_identical(rs.local_effects(cubic, unmasked), rs.local_effects(cubic, X))


class TestLabelsOfRows:
    """reliability.md 8: what is of pandas goes by its index."""

    @pytest.fixture
    def frame(self, X):
        return pd.DataFrame(X, columns=["a", "b"], index=[f"row {i}" for i in range(200)])

    def test_other_orders_are_put_right(self, frame, rng):
        order = rng.permutation(200)
        weights = pd.Series(np.arange(1.0, 201), index=frame.index)
        jacobian = pd.DataFrame(cubic_jacobian(frame), frame.index, frame.columns)
        plain = rs.local_effects(None, frame, jacobian=jacobian, weights=weights)
        mixed = rs.local_effects(
            None, frame, jacobian=jacobian.iloc[order], weights=weights.iloc[order]
        )
        xr.testing.assert_identical(mixed, plain)
        answers = rs.local_effects(lambda X: (X["a"] ** 3 + X["a"] * X["b"]).sort_values(), frame)
        xr.testing.assert_identical(answers, rs.local_effects(cubic, frame))

    def test_other_labels_are_refused(self, frame):
        with pytest.raises(ValueError, match="weights must have the index of the rows"):
            rs.local_effects(cubic, frame, weights=pd.Series(np.ones(200)))
        jacobian = pd.DataFrame(cubic_jacobian(frame), columns=frame.columns)
        with pytest.raises(ValueError, match="jacobian must have the index of the rows"):
            rs.local_effects(None, frame, jacobian=jacobian)
        with pytest.raises(rs.ModelError, match="answer of the model must have the index of the"):
            rs.local_effects(lambda X: X["a"].set_axis(np.arange(len(X)) + 3), frame)

    @pytest.mark.parametrize(
        "index",
        [
            pd.date_range("2024-03-30", periods=200, freq="h", tz="Europe/Paris"),
            pd.period_range("2024-03", periods=200, freq="D"),
            pd.interval_range(0, 200),
            pd.Index([("a", i) for i in range(200)], tupleize_cols=False),
            pd.timedelta_range("1s", periods=200),
        ],
        ids=["zone", "period", "interval", "tuple", "timedelta"],
    )
    def test_any_can_be_saved(self, X, index, tmp_path):
        """code.md B19."""
        local = rs.local_effects(cubic, pd.DataFrame(X, columns=["a", "b"], index=index))
        local.to_netcdf(tmp_path / "local.nc")
        with xr.open_dataset(tmp_path / "local.nc") as again:
            np.testing.assert_array_equal(again["obs"].values, local["obs"].values)
        if getattr(index, "tz", None) is not None:
            assert local["obs"].values[0] == np.datetime64("2024-03-29T23:00")


class TestTablesAreLent:
    """code.md B14, reliability.md 4: what is called gets a copy."""

    @pytest.mark.parametrize("kind", ["frame", "array"])
    def test_to_jacobian_and_m_plot(self, X, kind):
        table = pd.DataFrame(X, columns=["a", "b"]) if kind == "frame" else X.copy()
        before = table.copy()

        def writes(rows):
            answer = cubic(rows)
            if kind == "frame":
                rows["a"] = 0.0
                rows["new"] = 1.0
            else:
                rows[:] = 0.0
            return answer

        rs.m_plot(writes, table)
        rs.local_effects(writes, table)
        rs.local_effects(None, table, jacobian=lambda rows: np.column_stack([writes(rows)] * 2))
        np.testing.assert_array_equal(np.asarray(table), np.asarray(before))
        assert table.shape == before.shape


class TestMissing:
    def test_the_reference_is_the_median_where_many_rows_are_least(self, rng):
        """code.md B1: zero-inflated, so that the median is the minimum."""
        rain = np.where(rng.random(400) < 0.7, 0.0, rng.exponential(5, 400))
        rain[:40] = np.nan
        frame = pd.DataFrame({"rain": rain, "b": rng.normal(size=400)})

        def model(X):
            return np.where(X["rain"].isna(), 1.0, X["rain"]) * 2 + X["b"]

        local = rs.local_effects(model, frame, features="rain", missing="bin")
        assert float(local["missing_reference"][0]) == 0
        np.testing.assert_allclose(local["missing_effect"], 2)
        weights = np.where(rain > 0, 100.0, 1.0)
        heavy = rs.local_effects(model, frame, features="rain", missing="bin", weights=weights)
        reference = float(heavy["missing_reference"][0])
        there = ~np.isnan(rain)
        assert weights[there & (rain <= reference)].sum() >= weights[there].sum() / 2
        assert weights[there & (rain < reference)].sum() < weights[there].sum() / 2

    def test_is_no_level(self, rng):
        """code.md B18."""
        frame = pd.DataFrame({"m": np.r_[np.tile([1.0, 2.0], 50), np.full(100, np.nan)]})
        frame["x"] = rng.normal(size=200)
        local = rs.local_effects(lambda X: X["x"], frame, features=["m", "x"], missing="drop")
        assert local["feature_kind"].values.tolist() == ["discrete", "continuous"]
        with pytest.warns(UserWarning, match="Left out: 'm' .discrete."):
            rs.local_effects(lambda X: X["x"], frame, missing="drop")

    def test_a_nullable_column_is_what_the_model_knows(self, rng):
        """code.md, not confirmed there: with missing='bin' as with 'raise'."""
        column = pd.array([*np.tile(np.arange(1, 21), 20), *[None] * 10], dtype="Int64")
        frame = pd.DataFrame({"count": column, "x": rng.normal(size=410)})
        seen = []

        def model(X):
            if X["count"].isna().all():
                seen.append(str(X["count"].dtype))
            return X["count"].astype("Float64").fillna(2.0).to_numpy(float) + X["x"]

        local = rs.local_effects(model, frame, features="count", missing="bin")
        assert float(local["missing_effect"][0]) == 2.0 - float(local["missing_reference"][0])
        assert not seen  # the reference stands beside the missing values, in one call
        types = []
        rs.local_effects(
            lambda X: (types.append(str(X["count"].dtype)), model(X))[1],
            frame,
            features="x",
            missing="drop",
        )
        assert set(types) == {"Int64"}

    def test_no_weight_where_there_are_values(self, rng):
        """reliability.md 15."""
        x = np.r_[np.full(50, np.nan), rng.normal(size=50)]
        frame = pd.DataFrame({"x": x, "b": rng.normal(size=100)})
        weights = np.isnan(x).astype(float)
        with pytest.raises(
            ValueError, match="weights must be positive in some row with a value of"
        ):
            rs.local_effects(lambda X: X["b"], frame, weights=weights, missing="drop")
