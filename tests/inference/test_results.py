"""Tests and differences of curves: numbers by closed forms, and their labels."""

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose
from scipy import stats

from rhale_stats.inference.results import (
    BY_NONCENTRAL,
    EXACT,
    NO_ERROR,
    ComparisonOptions,
    Size,
    difference_of,
    features_in_common,
    labelled_differences,
    labelled_test,
    no_difference,
)

ASKED = ComparisonOptions(None, None, 0.9, 2000, None, "holm")


def of_features(*names, **attrs):
    """An effect, as far as comparisons read its labels."""
    return xr.Dataset(
        coords={
            "feature": list(names),
            "feature_kind": ("feature", ["numeric"] * len(names)),
            "feature_units": ("feature", [f"unit of {name}" for name in names]),
        },
        attrs={"centering": "mean", "output_name": "price", "output_units": "EUR"} | attrs,
    )


class TestLabelledTest:
    """A test over features."""

    effect = of_features("a", "b", n_rows=30, bin_rule="R", bin_parameters="n=1")

    @property
    def values(self):
        return {"statistic": np.array([2.0, 5.0]), "p_value": np.array([0.04, 0.03])}

    def test_variables_and_facts(self):
        found = labelled_test(self.effect, self.values, "holm", source="rows", test="t")
        assert list(found.data_vars) == ["statistic", "p_value", "p_value_adjusted", "reason"]
        assert found["statistic"].values.tolist() == [2, 5]
        assert_allclose(found["p_value_adjusted"], [0.06, 0.06])
        assert found["reason"].values.tolist() == ["", ""]
        facts = {"adjust": "holm", "source": "rows", "test": "t", "n_rows": 30, "bin_rule": "R"}
        facts |= {"bin_parameters": "n=1", "output_name": "price", "output_units": "EUR"}
        assert facts.items() <= found.attrs.items()

    def test_reasons_that_are_given(self):
        values = self.values | {"reason": np.array(["", "no"]), "largest": np.ones(2)}
        found = labelled_test(self.effect, values, "none", source="rows")
        assert found["reason"].values.tolist() == ["", "no"]
        assert list(found.data_vars)[-1] == "reason"
        assert found["largest"].attrs["units"] == "output units"
        assert found["statistic"].attrs["units"] == "1"

    def test_sizes_with_and_without_intervals(self):
        size = Size("the size", "m")
        values = self.values | {"size": np.array([1.0, 2.0])}
        found = labelled_test(self.effect, values.copy(), "none", size=size, source="rows")
        assert found["size"].attrs == {"long_name": "the size", "units": "m"}
        assert "size_ci" not in found
        values |= {"size_ci": np.array([[0.0, 2.0], [1.0, 3.0]])}
        found = labelled_test(self.effect, values.copy(), "none", size=size, source="rows")
        assert found["size_ci"].values.tolist() == [[0, 2], [1, 3]]
        assert found["size_ci"].attrs["method"] == BY_NONCENTRAL
        assert found["size_ci"].attrs["ci_prob"] == 0.95
        assert found["ci_bound"].values.tolist() == ["lower", "upper"]
        # Without a description there is no size.
        assert "size" not in labelled_test(self.effect, values.copy(), "none", source="rows")


class TestInCommon:
    """Which features of two results are compared."""

    def test_in_the_order_of_the_first(self):
        assert features_in_common(of_features(*"cab"), of_features(*"axc")) == ["c", "a"]

    def test_rows_of_ice_are_compared_with_the_means_of_pdp(self):
        a, b = (of_features("a", kind=kind) for kind in ("ice", "pdp"))
        assert features_in_common(a, b, ("kind",)) == ["a"]

    def test_other_facts_are_refused(self):
        a, b = of_features("a"), of_features("a", centering="start")
        with pytest.raises(ValueError, match="the same centering; got 'mean' and 'start'"):
            features_in_common(a, b)
        assert features_in_common(a, b, ()) == ["a"]

    def test_none_in_common(self):
        with pytest.raises(ValueError, match="a feature in common; got a and b, c"):
            features_in_common(of_features("a"), of_features("b", "c"))


class TestDifference:
    """Of two curves at three points, with one error at all of them."""

    z = np.array([0.0, 1.0, 4.0])
    values = np.array([1.0, 1.0, 0.0]), np.array([1.0, 3.0, -0.5])
    # Scale 0 at the start, where the curves agree.
    scale = np.array([0.0, 0.5, 1.0])

    def found(self, values=None, scale=None, degrees=np.inf, least=0.0, z=None):
        values = self.values if values is None else values
        scale = self.scale if scale is None else np.array(scale)
        rng = np.random.default_rng(0)
        z = self.z if z is None else z
        covariance = np.outer(scale, scale)
        return difference_of(z, values, covariance, degrees, ASKED, rng, least)

    def test_numbers(self):
        found = self.found()
        assert_allclose(found.difference, [0, -2, 0.5])
        assert_allclose(found.difference_se, self.scale)
        assert found.statistic == 4
        # One error moves all points: the largest is the one of any of them.
        assert_allclose(found.p_value, 2 * stats.norm.sf(4), atol=2 / 2000)
        half = stats.norm.ppf(0.95) * self.scale
        assert_allclose(found.difference_ci[:, 0], found.difference - half)
        assert_allclose(found.difference_ci[:, 1], found.difference + half)
        width = np.diff(found.difference_band)[1:, 0] / (2 * self.scale[1:])
        # The quantile of 2000 draws has a standard error of .05 about 1.64.
        assert_allclose(width, stats.norm.ppf(0.95), atol=0.2)
        assert (found.largest, found.largest_at, found.reason) == (2, 1, "")

    def test_students_t(self):
        found = self.found(degrees=3.0)
        half = stats.t.ppf(0.95, 3) * self.scale
        assert_allclose(found.difference_ci[:, 1], found.difference + half)
        assert found.statistic == 4
        assert_allclose(found.p_value, 2 * stats.t.sf(4, 3), atol=0.02)

    def test_each_point_has_its_degrees(self):
        """The pointwise interval of every point has its own quantile of Student's t."""
        degrees = np.array([2.0, 3.0, 50.0])
        found = self.found(degrees=degrees)
        half = stats.t.ppf(0.95, degrees) * self.scale
        assert_allclose(found.difference_ci[:, 1], found.difference + half)

    def test_size_is_the_root_mean_square_less_noise(self):
        """By trapezes, points weigh 1/8, 4/8 and 3/8."""
        share = np.array([1, 4, 3]) / 8
        square = share @ np.array([0, 4, 0.25])
        noise = share @ self.scale**2
        assert_allclose(self.found().size, np.sqrt(square - noise))
        low, high = self.found().size_ci
        assert 0 <= low < self.found().size < high

    def test_points_at_one_place_weigh_the_same(self):
        z = np.full(3, 2.0)
        square, noise = np.mean([0, 4, 0.25]), np.mean(self.scale**2)
        assert_allclose(self.found(z=z).size, np.sqrt(square - noise))

    def test_a_statistic_below_one_has_a_size(self):
        """Of differences that are smaller than their errors only noise is left."""
        found = self.found(scale=[0.0, 3.0, 3.0])
        assert 0 < found.statistic < 1
        assert found.size == 0
        found = self.found(scale=[0.0, 2.001, 0.1], least=0.6)
        assert found.statistic == pytest.approx(2 / 2.001)
        share = np.array([1, 4, 3]) / 8
        square, noise = share @ [0, 4, 0.25], share @ [0, 2.001**2, 0.01]
        assert_allclose(found.size, np.sqrt(square - noise))

    def test_equal_curves(self):
        found = self.found((self.values[0], self.values[0]))
        assert (found.statistic, found.p_value, found.size, found.largest) == (0, 1, 0, 0)

    def test_a_difference_without_errors_is_exact(self):
        found = self.found(scale=[0.0, 0.0, 0.0])
        assert found.reason == EXACT
        assert np.isnan([found.statistic, found.p_value]).all()
        assert_allclose(found.size, np.sqrt(np.array([1, 4, 3]) / 8 @ np.array([0, 4, 0.25])))

    def test_a_numerical_error_is_none(self):
        """Differences up to it are 0, and errors up to it are none."""
        assert self.found(least=0.5).statistic == 4
        assert self.found(scale=[0.0, 1.0, 0.01], least=0.5).statistic == 2
        assert self.found(scale=[0.0, 1.0, 0.01], least=0.4).statistic == 50
        assert self.found(scale=[0.0, 0.5, 1.0], least=1.0).reason == EXACT
        assert self.found(scale=[0.0, 0.5, 1.0], least=0.99).reason == ""
        assert self.found(least=2.0).statistic == 0

    def test_an_unknown_error(self):
        found = self.found(scale=[0.0, np.nan, 1.0])
        assert found.reason == NO_ERROR
        assert np.isnan([found.statistic, found.p_value]).all()

    def test_labelled(self):
        """Of two features, the second with nothing to compare."""
        a, b = of_features("x", "a", "b"), of_features("a", "b")
        both = [self.found(), no_difference("none here")]
        tested = labelled_differences(both, a, b, ["a", "b"], "rows", ASKED)
        assert tested["feature"].values.tolist() == ["a", "b"]
        assert tested["reason"].values.tolist() == ["", "none here"]
        assert_allclose(tested["grid_value"], [self.z, [np.nan] * 3])
        assert_allclose(tested["difference"], [[0, -2, 0.5], [np.nan] * 3])
        assert_allclose(tested["difference_se"][0], self.scale)
        for name in ("difference_ci", "difference_band"):
            assert tested[name].dims == ("feature", "grid", "ci_bound")
            assert_allclose(tested[name][0], getattr(both[0], name))
            assert tested[name].attrs["ci_prob"] == 0.9
        assert_allclose(tested["size_ci"][0], both[0].size_ci)
        assert tested["size_ci"].attrs["ci_prob"] == 0.9
        assert tested["largest"].values[0] == 2
        assert tested["largest_at"].values[0] == 1
        assert tested["feature_units"].values.tolist() == ["unit of a", "unit of b"]
        assert tested.attrs["centering"] == "mean"

    def test_regions_of_both(self):
        """The labels of one region stay only if the other result is of the same."""
        a, b = (
            of_features("a").assign_coords(region_rule=rule, region=number)
            for number, rule in enumerate(["x <= 0", "x > 0"])
        )
        tested = labelled_differences([self.found()], a, b, ["a"], "rows", ASKED)
        assert tested.attrs["region_of_a"] == "x <= 0"
        assert tested.attrs["region_of_b"] == "x > 0"
        assert not {"region", "region_rule"} & set(tested.coords)
        tested = labelled_differences([self.found()], a, a, ["a"], "rows", ASKED)
        assert tested.attrs["region_of_b"] == "x <= 0"
        assert {"region", "region_rule"} <= set(tested.coords)
        tested = labelled_differences([self.found()], of_features("a"), b, ["a"], "rows", ASKED)
        assert "region_of_a" not in tested.attrs
        assert tested.attrs["region_of_b"] == "x > 0"
