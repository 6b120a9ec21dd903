"""`ale2`: closed forms, another library, equivariance, weights, categories, bad input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import rhale_stats as rs
from rhale_stats.models import differences
from rhale_stats.surfaces.inference import size
from tests.helpers import as_of_a_file, in_cells, in_turn, rows_of_probe


def product(X):
    return X[:, 0] * X[:, 1]


@pytest.fixture
def X(rng):
    table = rng.uniform(-1, 1, (600, 3))
    table.flags.writeable = False
    return table


@pytest.fixture
def frame(rng):
    n = 500
    out = pd.DataFrame(rng.normal(size=(n, 2)), columns=["u", "v"])
    out["town"] = pd.Categorical(rng.choice(["N", "S", "W"], n), categories=["W", "N", "S", "X"])
    out["text"] = rng.choice(["b", "a", "c"], n)
    out["flag"] = rng.random(n) < 0.4
    out.index = np.arange(n) + 1000
    return out


def factorial(values_a, values_b):
    """Every pair of values once."""
    return np.array([[u, v] for u in values_a for v in values_b])


def test_product_has_its_closed_form():
    middles = np.array([0.5, 1.5, 3.0]), np.array([-1.0, 1.0, 4.0, 7.0])
    edges = [0.0, 1.0, 2.0, 4.0], [-2.0, 0.0, 2.0, 6.0, 8.0]
    rules = tuple(rs.GivenBins(one) for one in edges)
    found = rs.ale2(product, factorial(*middles), (0, 1), bins=rules)
    expected = np.outer(edges[0] - middles[0].mean(), edges[1] - middles[1].mean())
    # Rounding of sums of numbers up to 32.
    np.testing.assert_allclose(found["surface"], expected, atol=1e-13)
    width = np.outer(np.diff(edges[0]), np.diff(edges[1]))
    np.testing.assert_allclose(in_cells(found["second_effect"]), width, atol=1e-14)
    assert found["n_obs"].values.tolist() == [*[[1] * 4 + [0]] * 3, [0] * 5]
    for name in ("second_effect", "heterogeneity"):
        assert found[name][-1].isnull().all()
        assert found[name][:, -1].isnull().all()


def test_additive_model_has_no_second_order_effect(X):
    found = rs.ale2(lambda X: np.exp(X[:, 0]) + np.sin(3 * X[:, 1]) * X[:, 2], X, (0, 1))
    # What rounding leaves of second differences, added up over 400 cells.
    assert np.nanmax(np.abs(found["surface"])) < 400 * float(found["second_difference_error"])
    assert float(found["second_difference_error"]) < 1e-13


def test_main_effects_and_constants_change_nothing(X):
    bins = rs.QuantileBins(6)
    one = rs.ale2(product, X, (0, 1), bins=bins)
    other = rs.ale2(
        lambda X: 7 - 3 * product(X) + 100 * X[:, 0] ** 3 + np.exp(X[:, 1]), X, (0, 1), bins=bins
    )
    # Rounding of an output up to 100.
    np.testing.assert_allclose(other["surface"], -3 * one["surface"], atol=1e-11)
    np.testing.assert_allclose(other["heterogeneity"], 3 * one["heterogeneity"], atol=1e-11)


def test_mean_and_both_main_effects_are_gone(X, rng):
    found = rs.ale2(
        lambda X: np.sin(2 * X[:, 0] * X[:, 1] + X[:, 2]), X, (0, 1), bins=rs.QuantileBins(5)
    )
    surface, n = found["surface"].values, in_cells(found["n_obs"])
    corners = (surface[1:, 1:] + surface[1:, :-1] + surface[:-1, 1:] + surface[:-1, :-1]) / 4
    assert abs((n * corners).sum()) / n.sum() < 1e-14
    # The first-order ALE of what is left: 0 in every bin (Apley and Zhu, Eq. 17).
    step = np.diff(surface, axis=0)
    np.testing.assert_allclose((n * (step[:, 1:] + step[:, :-1])).sum(axis=1), 0, atol=1e-11)


def test_a_feature_turned_round_turns_the_surface_round(X):
    edges = np.linspace(-1, 1, 6)
    bins = rs.GivenBins(edges)
    found = rs.ale2(product, X, (0, 1), bins=bins)
    turned = X * np.array([-1, 1, 1])
    other = rs.ale2(lambda X: product(X * np.array([-1, 1, 1])), turned, (0, 1), bins=bins)
    np.testing.assert_allclose(other["surface"], found["surface"][::-1], atol=1e-12)


@pytest.mark.thorough
def test_features_exchanged_transpose_the_surface(frame):
    def model(table):
        return table["u"] * table["v"] * (1 + table["flag"])

    for a, b in (("u", "v"), ("u", "town"), ("town", "flag")):
        bins = rs.QuantileBins(4)
        one, other = (rs.ale2(model, frame, pair, bins=bins) for pair in ((a, b), (b, a)))
        np.testing.assert_allclose(other["surface"], one["surface"].T, atol=1e-13)


def test_equals_pyale_with_bins_closed_on_its_side(rng):
    from PyALE import ale

    frame = pd.DataFrame(rng.normal(size=(800, 3)), columns=["a", "b", "c"])
    frame["b"] += 0.3 * frame["a"]

    class Model:
        def predict(self, X):
            return np.sin(X["a"] * X["b"]).to_numpy() + (X["a"] * X["c"]).to_numpy()

    theirs = ale(frame, Model(), ["a", "b"], grid_size=5, plot=False, include_CI=False)
    edges = [-np.asarray(axis)[::-1] for axis in (theirs.index, theirs.columns)]
    # Its bins are closed on the right, ours on the left: both are, of the features turned round.
    turned = frame.assign(a=-frame["a"], b=-frame["b"])
    ours = rs.ale2(
        lambda X: Model().predict(X.assign(a=-X["a"], b=-X["b"])),
        turned,
        ("a", "b"),
        bins=(rs.GivenBins(edges[0]), rs.GivenBins(edges[1])),
    )
    assert ours.attrs["n_empty"] == 0
    np.testing.assert_allclose(ours["surface"].values[::-1, ::-1], theirs.values, atol=1e-12)


def test_numeric_with_categorical_is_the_mean_over_rows_of_both_levels(frame):
    def model(table):
        return table["u"] ** 2 * table["town"].cat.codes + table["u"] * table["v"]

    found = rs.ale2(model, frame, ("u", "town"), bins=rs.QuantileBins(3))
    assert found["edge_b"].values.tolist() == ["W", "N", "S"]
    edges = found["edge_a"].values
    k = np.clip(np.searchsorted(edges[1:-1], frame["u"], side="right"), 0, 2)
    for m, pair in enumerate((("W", "N"), ("N", "S"))):
        there = frame["town"].isin(pair).to_numpy()
        change = {}
        for level in pair:
            for side in (0, 1):
                at = frame.assign(u=edges[k + side])
                at["town"] = pd.Categorical([level] * len(at), categories=["W", "N", "S", "X"])
                change[level, side] = model(at).to_numpy()
        delta = change[pair[1], 1] - change[pair[1], 0] - change[pair[0], 1] + change[pair[0], 0]
        for number in range(3):
            rows = there & (k == number)
            assert found["n_obs"].values[number, m] == rows.sum()
            value = float(found["second_effect"][number, m])
            assert value == pytest.approx(delta[rows].mean(), abs=1e-12)


def test_two_truth_values_give_the_interaction_contrast():
    table = pd.DataFrame({"p": [True, True, False, False], "q": [True, False, True, False]})
    found = rs.ale2(lambda X: 8.0 * (X["p"] & X["q"]) + X["p"], table, ("p", "q"))
    # A balanced table of two by two: a quarter of the contrast, with the signs of the contrast.
    np.testing.assert_allclose(found["surface"], [[2, -2], [-2, 2]], atol=1e-15)
    assert in_cells(found["n_obs"]).tolist() == [[4]]
    assert found["edge_a"].values.tolist() == ["False", "True"]


def test_order_of_levels(frame):
    def model(table):
        return table["u"] * table["text"].map({"a": 0.0, "b": 1.0, "c": 5.0})

    sorted_, given = (
        rs.ale2(model, frame, ("u", "text"), bins=rs.QuantileBins(4), order=order)
        for order in ("as_is", {"text": ["c", "a", "b"]})
    )
    assert sorted_["edge_b"].values.tolist() == ["a", "b", "c"]
    assert given["edge_b"].values.tolist() == ["c", "a", "b"]
    width = np.diff(given["edge_a"].values)
    np.testing.assert_allclose(
        in_cells(given["second_effect"]), np.outer(width, [-5, 1]), atol=1e-12
    )


def test_numbers_as_levels(rng):
    table = np.column_stack([rng.normal(size=300), rng.integers(3, size=300)])
    found = rs.ale2(product, table, (0, 1), order={"x1": [0.0, 2.0, 1.0]}, bins=rs.QuantileBins(3))
    assert found["edge_b"].values.tolist() == [0.0, 2.0, 1.0]
    assert found.attrs["kind_b"] == "categorical"
    width = np.diff(found["edge_a"].values)
    np.testing.assert_allclose(
        in_cells(found["second_effect"]), np.outer(width, [2, -1]), atol=1e-12
    )


@pytest.mark.thorough
@pytest.mark.parametrize("pair", [("u", "v"), ("u", "text"), ("flag", "text")])
def test_frequency_weights_are_repeated_rows(frame, pair, rng):
    def model(table):
        return table["u"] * table["v"] * (1 + table["flag"]) * (1 + (table["text"] == "a"))

    w = rng.integers(0, 4, len(frame))
    repeated = frame.loc[frame.index.repeat(w)].reset_index(drop=True)
    bins = rs.QuantileBins(4)
    found = rs.std_error(rs.ale2(model, frame, pair, bins=bins, weights=w, weight_kind="frequency"))
    other = rs.std_error(rs.ale2(model, repeated, pair, bins=bins))
    for name in (
        "second_effect",
        "heterogeneity",
        "n_obs",
        "surface",
        "second_effect_se",
        "surface_se",
    ):
        np.testing.assert_allclose(found[name], other[name], rtol=1e-9, atol=1e-13, err_msg=name)
    assert size(found) == pytest.approx(size(other))


def test_precision_weights_have_no_scale_and_zero_is_absent(X, rng):
    def model(X):
        return product(X) * (1 + X[:, 2])

    w = rng.uniform(0.5, 2, len(X))
    w[::5] = 0
    found, scaled = (
        rs.std_error(rs.ale2(model, X, (0, 1), bins=rs.QuantileBins(4), weights=one))
        for one in (w, 1e6 * w)
    )
    kept = w > 0
    absent = rs.std_error(rs.ale2(model, X[kept], (0, 1), bins=rs.QuantileBins(4), weights=w[kept]))
    for name in ("surface", "surface_se", "second_effect_se"):
        np.testing.assert_allclose(found[name], scaled[name], rtol=1e-9, atol=1e-13)
        np.testing.assert_allclose(found[name], absent[name], rtol=1e-9, atol=1e-13)
    for side in "ab":
        np.testing.assert_array_equal(found[f"x_{side}"].isnull(), ~kept)
    assert found.attrs["n_rows"] == kept.sum()


def test_empty_cells_are_unknown_and_counted():
    u = np.repeat(np.arange(4.0) + 0.5, 25)
    table = np.column_stack([u, u])
    found = rs.ale2(product, table, (0, 1), bins=rs.GivenBins(np.arange(5.0)))
    assert found.attrs["n_empty"] == found.attrs["n_filled"] == 12
    np.testing.assert_array_equal(in_cells(found["n_obs"]) > 0, np.eye(4))
    off = ~np.eye(4, dtype=bool)
    assert np.isnan(in_cells(found["second_effect"])[off]).all()
    # Corners of the diagonal are known, those farther away are not.
    far = np.abs(np.subtract.outer(np.arange(5), np.arange(5))) > 1
    np.testing.assert_array_equal(np.isnan(found["surface"].values), far)
    # The product has the same second difference everywhere, so that filling is exact.
    step = np.diff(np.diff(found["surface"].values, axis=0), axis=1)
    np.testing.assert_allclose(np.diagonal(step), 1, atol=1e-13)


def test_model_is_asked_in_batches(X, monkeypatch):
    asked = []

    def model(table):
        asked.append(len(table))
        return product(table)

    whole = rs.ale2(product, X, (0, 1))
    monkeypatch.setattr(differences, "BATCH_ROWS", 1000)
    found = rs.ale2(model, X, (0, 1))
    assert max(asked) <= 1000
    assert found.attrs["n_model_rows"] == sum(asked) == 4 * len(X) + sum(rows_of_probe(len(X)))
    assert found.attrs["n_model_calls"] == len(asked) == 3 + 3
    np.testing.assert_array_equal(found["surface"], whole["surface"])


@pytest.mark.thorough
def test_several_outputs(X):
    def model(X):
        return np.column_stack([product(X), X[:, 0] + X[:, 1] * X[:, 2]])

    both = rs.ale2(model, X, (0, 1), bins=rs.QuantileBins(4))
    assert both["surface"].dims == ("output", "edge_a", "edge_b")
    assert both["n_obs"].dims == ("edge_a", "edge_b")
    one = rs.ale2(model, X, (0, 1), bins=rs.QuantileBins(4), output=0)
    np.testing.assert_array_equal(both["surface"].isel(output=0), one["surface"])
    with_se = rs.std_error(both)
    np.testing.assert_allclose(
        with_se["surface_se"].isel(output=0), rs.std_error(one)["surface_se"], rtol=1e-12
    )
    assert set(rs.tidy(both)["output"]) == {0, 1}
    boot = rs.bootstrap(both, n_resamples=40, rng=0)
    assert boot["surface"].dims == ("chain", "draw", "output", "edge_a", "edge_b")
    ends = rs.confint(both, boot)["surface_ci"]
    assert ends.dims == ("output", "edge_a", "edge_b", "ci_bound")
    assert rs.summary(both).as_text().count("Second-order ALE") == 2
    # Of a part that was selected.
    assert rs.std_error(both.isel(output=1))["surface_se"].dims == ("edge_a", "edge_b")


def test_labels_of_rows_are_no_positions(frame, monkeypatch):
    def model(table):
        return table["u"] * table["v"]

    labelled = frame.set_index(np.linspace(0.5, 9.5, len(frame)))
    monkeypatch.setattr(differences, "BATCH_ROWS", 400)
    one, other = (rs.ale2(model, table, ("u", "v")) for table in (frame, labelled))
    np.testing.assert_array_equal(one["surface"], other["surface"])


def test_missing_rows_are_left_out_and_counted(frame):
    gaps = frame.copy()
    gaps.loc[gaps.index[:7], "u"] = np.nan
    gaps.loc[gaps.index[5:10], "text"] = None

    def model(table):
        return table["u"].fillna(0) * (table["text"] == "a")

    found = rs.ale2(model, gaps, ("u", "text"), missing="drop")
    other = rs.ale2(model, frame.iloc[10:], ("u", "text"))
    np.testing.assert_allclose(found["surface"], other["surface"], atol=1e-13)
    assert found.attrs["n_rows_missing"] == 10
    assert found["obs"].values[0] == 1000
    with pytest.raises(ValueError, match=r"feature 'u' must be finite; got 7 NaN"):
        rs.ale2(model, gaps, ("u", "text"))
    with pytest.raises(ValueError, match=r"'text' must have a level in every row; got 5 missing"):
        rs.ale2(model, gaps, ("v", "text"))


def test_zero_start(X):
    found = rs.ale2(product, X, (0, 1), bins=rs.QuantileBins(3), centering="start")
    a, b = (found[f"edge_{side}"].values for side in "ab")
    np.testing.assert_allclose(found["surface"], np.outer(a - a[0], b - b[0]), atol=1e-14)
    assert (rs.std_error(found)["surface_se"] < 1e-14).all()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"features": "ab"}, TypeError, "pair of columns, as in .*; got 'ab'"),
        ({"features": (0, 1, 2)}, TypeError, r"got \(0, 1, 2\)"),
        ({"features": (0, "x0")}, ValueError, "two different columns"),
        ({"features": (0, "z")}, KeyError, "'x0', 'x1', 'x2', .*got 'z'"),
        ({"bins": rs.OptimalBins()}, TypeError, "got OptimalBins.*GivenBins"),
        ({"bins": (rs.QuantileBins(3),) * 3}, TypeError, "a pair of them; got 3"),
        ({"bins": 2.5}, TypeError, "must be a rule"),
        ({"centering": "mean"}, ValueError, "'ale', 'start'; got 'mean'"),
        ({"order": "size"}, ValueError, "order must be one of 'as_is'; got 'size'"),
        ({"order": [0, 1]}, ValueError, "two features is categorical; got 0 categorical"),
        ({"order": {"y": ["a"]}}, KeyError, "order must be one of .*; got 'y'"),
        ({"weights": np.zeros(600)}, ValueError, "not all be zero"),
        ({"missing": "keep"}, ValueError, "got 'keep'"),
    ],
)
def test_bad_arguments(X, arguments, error, message):
    call = {"features": (0, 1), **arguments}
    features = call.pop("features")
    with pytest.raises(error, match=message):
        rs.ale2(product, X, features, **call)


def test_bad_levels_and_constants(frame):
    def model(table):
        return table["u"]

    with pytest.raises(ValueError, match="'a', 'b', 'c'; 'c' is left out"):
        rs.ale2(model, frame, ("u", "text"), order=["a", "b"])
    with pytest.raises(ValueError, match="'d' is not among the levels with rows"):
        rs.ale2(model, frame, ("u", "text"), order=["a", "b", "c", "d"])
    with pytest.raises(ValueError, match="got 2 categorical.*order={'flag'"):
        rs.ale2(model, frame, ("flag", "text"), order=["a", "b", "c"])
    with pytest.raises(ValueError, match="'k' must vary; all 500 rows have 2"):
        rs.ale2(model, frame.assign(k=2.0), ("u", "k"))
    with pytest.raises(ValueError, match="'k' must vary; all 500 rows have 'z'"):
        rs.ale2(model, frame.assign(k="z"), ("u", "k"))


def test_bad_models(X):
    def raises(table):
        if len(table) > len(X):
            raise RuntimeError("no")
        return table[:, 0]

    with pytest.raises(rs.ModelError, match=r"RuntimeError for features 'x0' and 'x1'.*2400 rows"):
        rs.ale2(raises, X, (0, 1))
    with pytest.raises(ValueError, match="Second differences of feature 'x0 and x1'.*600 NaN"):
        rs.ale2(lambda X: X[:, 0] * np.nan, X, (0, 1))


# --- missing values as a level --------------------------------------------------------------------


def asked_of(table):
    """Knows what is missing, and takes the level that stands for it for the same."""
    number = table["text"].astype(object).map({"a": 1.0, "b": 2.0, "c": 4.0}).astype(float)
    return (table["u"] + table["v"] ** 2) * number.fillna(-3.0)


def gapped(frame):
    out = frame.copy()
    out.loc[out.index[5:60], "text"] = None
    return out


@pytest.mark.parametrize(
    ("pair", "dtype"),
    in_turn([("u", "text"), ("text", "u"), ("text", "town")], [object, "category"]),
)
def test_missing_is_a_level_the_last(frame, pair, dtype):
    """The same as a table in which somebody wrote the level himself."""

    def by_hand(table):
        return asked_of(table.assign(text=table["text"].astype(object).replace("zz", None)))

    gaps = gapped(frame)
    written = gaps.assign(text=gaps["text"].astype(object).fillna("zz"))
    found = rs.ale2(asked_of, gaps.astype({"text": dtype}), pair, missing="bin")
    other = rs.ale2(by_hand, written, pair)
    side = "ab"[pair.index("text")]
    assert found[f"edge_{side}"].values.tolist() == ["a", "b", "c", "missing"]
    for name in ("second_effect", "heterogeneity", "surface", "n_obs", f"x_{side}"):
        np.testing.assert_array_equal(found[name], other[name])
    assert found.attrs["n_rows_missing"] == 0
    assert (found[f"x_{side}"].values == 3).sum() == 55
    several = found["n_obs"].values > 1
    assert np.isfinite(rs.std_error(found)["second_effect_se"].values[several]).all()


def test_missing_level_goes_where_order_says(frame):
    gaps = gapped(frame)
    given = rs.ale2(asked_of, gaps, ("u", "text"), missing="bin", order=["c", "b", "a"])
    assert given["edge_b"].values.tolist() == ["c", "b", "a", "missing"]
    first = rs.ale2(asked_of, gaps, ("u", "text"), missing="bin", order=["missing", "a", "b", "c"])
    assert first["edge_b"].values.tolist()[0] == "missing"
    with pytest.raises(ValueError, match=r"order of feature .* 'missing'; 'c' is left out"):
        rs.ale2(asked_of, gaps, ("u", "text"), missing="bin", order=["a", "b"])
    assert rs.ale2(asked_of, frame, ("u", "text"), missing="bin").sizes["edge_b"] == 3
    dropped = rs.ale2(asked_of, gaps, ("u", "text"), missing="drop")
    assert dropped.sizes["edge_b"] == 3
    assert dropped.attrs["n_rows_missing"] == 55


def test_missing_numbers_as_levels_and_as_numbers(frame):
    gaps = frame.assign(k=np.where(frame["v"] > 0, 2.0, 1.0))
    gaps.loc[gaps.index[:20], "k"] = np.nan

    def f(table):
        return table["u"] * table["k"].fillna(5.0)

    found = rs.ale2(f, gaps, ("u", "k"), missing="bin", order={"k": "as_is"})
    assert found["edge_b"].values.tolist() == ["1", "2", "missing"]
    steps = in_cells(found["second_effect"]) / np.diff(found["edge_a"].values)[:, None]
    # Slopes in u are 1, 2 and 5, whatever the cell.
    known = in_cells(found["n_obs"]) > 0
    np.testing.assert_allclose(steps[known[:, 0], 0], 1.0, rtol=1e-10)
    np.testing.assert_allclose(steps[known[:, 1], 1], 3.0, rtol=1e-10)
    with pytest.raises(ValueError, match=r"got 20 missing values of the numeric feature 'k'"):
        rs.ale2(f, gaps, ("u", "k"), missing="bin")
    weights = np.ones(len(gaps))
    weights[:20] = 0.0
    assert "k" in rs.ale2(f, gaps, ("u", "k"), missing="bin", weights=weights).attrs["feature_b"]
    named = gapped(frame).replace({"text": {"a": "missing"}})
    with pytest.raises(ValueError, match="got a level of that name.*Rename it"):
        rs.ale2(asked_of, named, ("u", "text"), missing="bin")


# --- labels ---------------------------------------------------------------------------------------


def test_cells_are_at_the_edges_where_they_begin(frame):
    """By values of the features: no number of a bin is needed."""
    found = rs.ale2(asked_of, frame, ("u", "text"), bins=rs.GivenBins([-9.0, 0.0, 9.0]))
    step = found.sel(edge_a=0.0, edge_b="a")
    rows = (frame["u"] >= 0) & frame["text"].isin(["a", "b"])
    assert int(step["n_obs"]) == rows.sum()
    assert float(step["second_effect"]) == pytest.approx(9.0 * (2.0 - 1.0))
    assert found["side"].values.tolist() == ["below", "above"]
    both = rs.ale2(asked_of, frame, ("flag", "text"))
    assert both["side"].values.tolist() == [
        *("below, below", "below, above"),
        *("above, below", "above, above"),
    ]


@pytest.mark.parametrize("pair", [("u", "v"), ("u", "town"), ("text", "flag")])
def test_a_file_and_a_part_are_still_surfaces(frame, pair, tmp_path):
    found = rs.ale2(asked_of, frame, pair, bins=rs.QuantileBins(4))
    found.to_netcdf(tmp_path / "surface.nc")
    with xr.open_dataset(tmp_path / "surface.nc") as read:
        assert read.identical(found)
        for verb in (rs.confint, rs.tidy, rs.predict):
            more = (frame,) if verb is rs.predict else ()
            first, second = verb(found, *more), verb(read, *more)
            assert first.equals(second)
    shuffled = found.isel(obs=np.random.default_rng(0).permutation(len(frame)))
    np.testing.assert_allclose(
        rs.std_error(shuffled)["surface_se"], rs.std_error(found)["surface_se"], rtol=1e-9
    )
    stacked = xr.concat([found, 2 * found], "model")["surface"]
    assert stacked.sizes == {"model": 2, **found["surface"].sizes}
    with pytest.raises(ValueError, match="must have the rows that it was made from"):
        rs.std_error(as_of_a_file(found.isel(edge_a=slice(-1))))
    with pytest.raises(ValueError, match=r"must (be whole|have the rows that it was made from)"):
        rs.std_error(found.isel(edge_b=slice(1, None)))
