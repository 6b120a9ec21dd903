"""Results that a user put together: by xarray along a new dimension, or by names."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import rhale_stats as rs


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(4)
    return pd.DataFrame(rng.uniform(-1, 1, (300, 2)), columns=list("ab"))


def model(rows):
    return (rows["a"] ** 2 + rows["a"] * rows["b"]).to_numpy()


@pytest.fixture(scope="module")
def results(X):
    return {
        "effects": [rs.rhale(model, X), rs.rhale(model, X.iloc[::2], bins=5)],
        "ale": [rs.ale(model, X, bins=8), rs.ale(model, X.iloc[:90], bins=5)],
        "profiles": [rs.pdp(model, X, n_grid=9), rs.pdp(model, X.iloc[::3], n_grid=9)],
    }


def tables_of(both):
    """Tables of both by hand, with the labels of the results."""
    each = {label: rs.tidy(result) for label, result in zip("xy", both, strict=True)}
    return pd.concat(each, names=["region"]).reset_index(level=0).reset_index(drop=True)


def check_table(found, both):
    wanted = tables_of(both)
    assert found["region"].tolist() == wanted["region"].tolist()
    for name in wanted:
        if wanted[name].dtype.kind in "fi":
            values = wanted[name].fillna(0) if name.startswith("slope") else wanted[name]
            np.testing.assert_allclose(found[name], values, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("name", ["effects", "ale", "profiles"])
def test_by_names(results, name):
    both = dict(zip("xy", results[name], strict=True))
    check_table(rs.tidy(both), results[name])
    text = str(rs.summary(both))
    for result in results[name]:
        assert str(result.attrs["n_rows"]) in text
    assert len(rs.plot(both)) == 2
    plt.close("all")


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["ale", "profiles"])
def test_along_a_dimension_of_xarray(results, name):
    both = results[name]
    index = pd.Index(list("xy"), name="model")
    together = xr.concat(both, index, join="outer")
    check_table(rs.tidy(together), both)
    text = str(rs.summary(together))
    for result in both:
        assert str(result.attrs["n_rows"]) in text
    assert "model = y" in text
    panels = rs.plot(together)
    texts = [text.get_text() for text in panels[0].figure.legends[0].get_texts()]
    assert texts[:2] == ["model = x", "model = y"]
    plt.close("all")
    with pytest.raises(
        ValueError, match=r"\.isel\(model=0\)\. summary, tidy and plot take them all"
    ):
        rs.wald_test(together) if name == "ale" else rs.confint(together)


def test_at_places_of_the_axis(results, X):
    effect, profile = results["ale"][0], results["profiles"][0]
    found = effect.rhale.at([0.3, -0.5])
    for name in "ab":
        of_feature = found.sel(feature=name)
        np.testing.assert_array_equal(of_feature["curve"], rs.predict(effect, [0.3, -0.5], name))
        edges = effect["edge_value"].sel(feature=name).values
        bins = np.searchsorted(edges, [0.3, -0.5], side="right") - 1
        np.testing.assert_allclose(
            of_feature["effect"], effect["effect"].sel(feature=name).values[bins]
        )
    assert effect.rhale.at(0.3).sizes == {"feature": 2}
    assert effect.rhale.at(0.3, "b")["feature"].values.tolist() == ["b"]
    assert effect.rhale.at({"b": 0.1})["feature"].values.tolist() == ["b"]
    assert np.isnan(effect.rhale.at(9.0)["curve"]).all()
    assert list(profile.rhale.at(0.2).data_vars) == ["curve"]
    table = X.assign(k=np.where(X["a"] > 0, "u", "v"))
    levels = rs.ale(lambda rows: model(rows), table)
    assert levels.rhale.at(0.1)["feature"].values.tolist() == ["a", "b"]
    assert levels.rhale.at("u", "k")["curve"].notnull().all()


def test_arithmetic_is_refused_in_words(results):
    a, b = results["ale"][0], results["effects"][0]
    with pytest.raises(ValueError, match="use single variables, such as 2"):
        rs.summary(2 * a)
    with pytest.raises(ValueError, match=r"compare\(a, b\) is the difference of two results"):
        rs.summary(a - b)


@pytest.mark.parametrize("first", [0.0, 1.0])
def test_weights_that_are_equal_in_one_region_only(first):
    """Effects of unequal weights have variables that those of equal ones have not."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=400), "c": np.repeat([0.0, 1.0], 200)})

    def model(table):
        return np.where(table["c"] == 1, 3 * table["a"] ** 2, -3 * table["a"])

    weights = np.where(table["c"] == first, 1.0, rng.uniform(1, 3, 400))
    tree = rs.explain(model, table, weights=weights, rng=0, progress=False)
    effect = tree["regions/0/effect"].to_dataset()
    assert effect.sizes["region"] == 2
    assert np.isfinite(effect["average_effect_se"].values).all()
