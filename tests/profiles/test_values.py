"""Values of a profile at values of its feature: interpolation, levels and labels."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from rhale_stats.profiles.tables import predict


def test_straight_between_points_and_unknown_beyond(known):
    x = [0.99, 1.0, 1.5, 2.5, 3.25, 4.0, 4.01]
    found = predict(known, x, "a")
    slope = [1.5 / 1.5, 1.5 / 1.5]
    expected = [np.nan, -1.0, -1 + 0.5 * slope[0], 0.5, 0.5 + 0.75 * slope[1], 2.0, np.nan]
    np.testing.assert_allclose(found, expected)
    assert found.dims == ("grid",)
    assert found.name == "curve"
    assert found.attrs == {**known["curve"].attrs, "feature": "a"}
    np.testing.assert_array_equal(found["x"], x)


def test_one_value_a_table_and_labels_of_a_users_own(known):
    one = predict(known, 2.5, 0)
    assert one.dims == ()
    assert (float(one), float(one["x"])) == (0.5, 2.5)
    table = predict(known, [[1.0, 2.5], [4.0, 1.0]], "a")
    np.testing.assert_array_equal(table, [[-1, 0.5], [2, -1]])
    asked = xr.DataArray([1.0, 4.0], {"who": ["Ann", "Bob"]}, "who")
    found = predict(known, asked, "a")
    assert found.dims == ("who",)
    assert found["who"].values.tolist() == ["Ann", "Bob"]
    np.testing.assert_array_equal(found["x"], asked)
    # A coordinate of that name stays.
    own = xr.DataArray([1.0, 4.0], {"x": ("who", [10, 20])}, "who")
    np.testing.assert_array_equal(predict(known, own, "a")["x"], [10, 20])


def test_levels_and_constants(known):
    found = predict(known, ["v", "u", "v"], "k")
    np.testing.assert_array_equal(found, [-0.75, 0.25, -0.75])
    assert found["x"].values.tolist() == ["v", "u", "v"]
    assert found.attrs["feature"] == "k"
    with pytest.raises(ValueError, match="^x must be levels of feature 'k', u, v; got q, z.$"):
        predict(known, ["z", "u", "q", "z"], "k")
    nothing = predict(known, [[1.0, 2.0]], "one")
    assert nothing.shape == (1, 2)
    assert nothing.isnull().all()
