"""Quick selections and assignments: what xarray's own give, and nothing shared that was not."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import rhale_stats as rs
from rhale_stats.inference.estimate import BOUNDS
from rhale_stats.schema.variables import dataset_of, selected, with_variables


@pytest.fixture(scope="module")
def effect():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 3))
    local = rs.local_effects(lambda X: X[:, 0] ** 2 + X[:, 0] * X[:, 1], X)
    return rs.confint(rs.rhale(local, bins=rs.EqualWidthBins(4)))


@pytest.mark.thorough
@pytest.mark.parametrize(
    "place",
    [
        {"feature": 1},
        {"feature": -1, "bin": slice(0, 2), "edge": slice(0, 3)},
        {"bin": slice(1, None)},
        {"bin": slice(0, 0), "ci_bound": 0},
        {},
    ],
)
def test_a_selection_is_that_of_isel(effect, place):
    found, expected = selected(effect, place), effect.isel(place)
    xr.testing.assert_identical(found, expected)
    assert found.sizes == expected.sizes
    assert set(found.xindexes) == set(expected.xindexes)
    for name in expected.variables:
        assert found.variables[name].dtype == expected.variables[name].dtype
    if "feature" not in place:
        xr.testing.assert_identical(found.sel(feature="x1"), expected.sel(feature="x1"))


def test_a_selection_of_values_that_are_not_in_memory(effect):
    pytest.importorskip("dask.array", reason="dask is not installed")
    chunked = effect.chunk()
    found = selected(chunked, {"feature": 1, "bin": slice(0, 2)})
    assert found["effect"].chunks is not None
    xr.testing.assert_identical(found.compute(), effect.isel(feature=1, bin=slice(0, 2)))


def test_variables_are_added_as_assign_adds_them(effect):
    found = {
        "one": ("feature", np.arange(3.0), {"units": "m"}),
        "effect": (("feature", "bin"), np.zeros((3, 4))),
    }
    quick, expected = with_variables(effect, found), effect.assign(found)
    xr.testing.assert_identical(quick, expected)
    assert list(quick.data_vars) == list(expected.data_vars)
    assert set(quick.xindexes) == set(expected.xindexes)


def test_coordinates_of_new_dimensions(effect):
    bare = effect.drop_dims("ci_bound")
    found = {"effect_ci": (("feature", "bin", "ci_bound"), np.zeros((3, 4, 2)))}
    quick = with_variables(bare, found, xr.Dataset(coords=BOUNDS))
    xr.testing.assert_identical(quick, bare.assign(found).assign_coords(BOUNDS))
    assert quick["effect_ci"].sel(ci_bound="upper").shape == (3, 4)


def test_what_does_not_fit_is_left_to_xarray(effect):
    with pytest.raises(ValueError, match="conflicting sizes"):
        with_variables(effect, {"one": ("feature", np.zeros(2))})
    other = with_variables(effect, {"effect": ("feature", np.zeros(3))})
    xr.testing.assert_identical(other, effect.assign(effect=("feature", np.zeros(3))))


@pytest.mark.parametrize(("name", "coordinate"), [("effect", "bin"), ("curve", "grid")])
def test_results_share_no_attributes(effect, name, coordinate):
    """What a user writes into one result is in no other, and in none that comes later."""
    if name == "curve":
        effect = rs.pdp(lambda X: X[:, 0] ** 2, np.linspace(0, 1, 60).reshape(30, 2))
    made = rs.confint(effect)
    made[name].attrs["mine"] = made[coordinate].attrs["mine"] = made.attrs["mine"] = 1
    for other in (effect, rs.confint(effect), rs.std_error(effect)):
        assert not any("mine" in part.attrs for part in (other, other[name], other[coordinate]))


def test_a_dataset_of_variables_is_that_of_xarray(effect):
    data = {name: effect.variables[name] for name in effect.data_vars}
    data |= {"new": ("feature", np.arange(3.0), {"units": "m"})}
    coords = {name: effect.variables[name] for name in effect.coords}
    found, expected = dataset_of(data, coords, effect.attrs), xr.Dataset(data, coords, effect.attrs)
    xr.testing.assert_identical(found, expected)
    assert found.sizes == expected.sizes
    assert set(found.xindexes) == set(expected.xindexes)
    xr.testing.assert_identical(found.sel(feature="x1"), expected.sel(feature="x1"))
    found["effect"].attrs["long_name"] = found.attrs["method"] = "changed"
    assert "changed" not in (effect["effect"].attrs["long_name"], effect.attrs["method"])


def test_what_follows_is_written_out_in_one_order(effect):
    """The order of a set of names would be another in every process."""
    names = ["n_effective", "weight_share", "x_mean", "curve_std", "curve_std_sum", "curve_offset"]
    names += ["heterogeneity_index"]
    for result in (effect, effect.copy(deep=True)):
        whole = result.rhale.in_bins()
        assert [name for name in whole.data_vars if name in names] == names
