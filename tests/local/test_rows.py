"""Honest bins: edges from some rows, estimates from the others."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_array_equal

import rhale_stats as rs
from rhale_stats.arguments.checks import MAX_SIZE
from rhale_stats.arrays.resample import honest_split
from rhale_stats.local import rows as module
from rhale_stats.local.rows import (
    columns,
    estimation_rows,
    is_estimation_row,
    is_used_row,
    own_columns,
)
from rhale_stats.schema.feature_result import one_feature
from tests.helpers import through_a_file
from tests.local.made import KINDS, WEIGHT, G, X, weighted

RULES = [
    rs.OptimalBins(30),
    rs.EqualWidthBins(6),
    rs.QuantileBins(6),
    rs.BestEqualWidthBins(20),
    rs.GivenBins(np.linspace(-1.1, 1.1, 6)),
]
every = pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)


@pytest.fixture
def local(rng):
    """Steps in x, and something smooth in y; a constant column."""
    X = pd.DataFrame({"x": rng.uniform(-1, 1, 400), "y": rng.uniform(0, 1, 400), "c": 3.0})
    g = np.column_stack([np.sign(X["x"]) + rng.normal(size=400) / 3, 9 * X["y"], np.zeros(400)])
    return rs.local_effects(None, X, jacobian=g)


def halves(local, effect):
    chosen = honest_split(
        local.sizes["obs"], effect.attrs["honest_fraction"], effect.attrs["honest_seed"]
    )
    return local.isel(obs=chosen), local.isel(obs=~chosen)


# --- the split -----------------------------------------------------------------------------------


def test_halves_are_disjoint_and_together_all_rows():
    chosen = honest_split(101, 0.3, 7)
    assert chosen.shape == (101,)
    assert chosen.dtype == bool
    assert chosen.sum() == 30
    assert_array_equal(chosen, honest_split(101, 0.3, 7))
    assert (chosen != honest_split(101, 0.3, 8)).any()


def test_every_row_is_chosen_as_often():
    """2000 splits of 20 rows: shares have standard error 0.01."""
    share = np.mean([honest_split(20, 0.25, seed) for seed in range(2000)], axis=0)
    assert np.abs(share - 0.25).max() < 0.04


@pytest.mark.parametrize("fraction", [0, 1])
def test_a_fraction_that_is_none_is_refused(local, fraction):
    with pytest.raises(ValueError, match=f"strictly between 0 and 1; got {fraction}"):
        rs.rhale(local, honest=True, honest_fraction=fraction)


@pytest.mark.parametrize("fraction", [0.001, 0.999])
def test_a_side_without_rows_is_refused(local, fraction):
    n = round(fraction * 400)
    with pytest.raises(ValueError, match=rf"both sides; {fraction} of 400 rows is {n}. Use 0.5"):
        rs.rhale(local, honest=True, honest_fraction=fraction)


# --- who does what -------------------------------------------------------------------------------


@pytest.mark.thorough
@every
@pytest.mark.parametrize("fraction", [0.5, 0.3])
def test_estimates_are_those_of_the_other_half(local, rule, fraction):
    if isinstance(rule, rs.GivenBins):
        local = local.isel(feature=[0])
    effect = rs.rhale(local, bins=rule, honest=True, honest_fraction=fraction, rng=3)
    _, rest = halves(local, effect)
    varying = [name for name in ("x", "y") if name in local["feature"].values]
    edges = {name: one_feature(effect, name).bin_edges for name in varying}
    alone = rs.rhale(rest.sel(feature=varying), bins=rs.GivenBins(edges)).rhale.in_bins()
    of_bins = effect.rhale.in_bins().sel(feature=varying)
    for name in alone.data_vars:
        # Cells are merged to bins: sums of 400 terms in another order.
        np.testing.assert_allclose(of_bins[name], alone[name], rtol=1e-10, atol=1e-12, err_msg=name)
    assert effect.attrs["n_rows"] == effect["n_obs"].isel(feature=0).sum() == rest.sizes["obs"]
    assert effect.attrs["n_rows_edges"] == round(fraction * 400)
    assert effect.attrs["honest_fraction"] == fraction
    xr.testing.assert_identical(estimation_rows(local, effect), rest)


@every
@pytest.mark.filterwarnings("ignore:Bins without rows")
def test_edges_do_not_know_the_estimating_half(local, rule, rng):
    if isinstance(rule, rs.GivenBins):
        local = local.isel(feature=[0])
    effect = rs.rhale(local, bins=rule, honest=True, rng=5)
    chosen = honest_split(400, 0.5, effect.attrs["honest_seed"])
    other = local.copy(deep=True)
    noise = 100 * rng.normal(size=other["local_effect"].shape)
    other["local_effect"].values[~chosen] += noise[~chosen]
    found = rs.rhale(other, bins=rule, honest=True, rng=5)
    xr.testing.assert_identical(found["edge_value"], effect["edge_value"])
    assert (np.abs(found["effect"] - effect["effect"]).sel(feature="x").max()) > 1
    if "bin_loss" in effect:
        xr.testing.assert_identical(found["bin_loss"], effect["bin_loss"])


def test_estimates_do_not_know_the_choosing_half(local, rng):
    rule = rs.EqualWidthBins(6)
    effect = rs.rhale(local, bins=rule, honest=True, rng=5)
    chosen = honest_split(400, 0.5, effect.attrs["honest_seed"])
    other = local.copy(deep=True)
    other["local_effect"].values[chosen] *= -7
    xr.testing.assert_identical(rs.rhale(other, bins=rule, honest=True, rng=5), effect)


@pytest.mark.thorough
@pytest.mark.parametrize("rule", RULES[:4], ids=lambda rule: type(rule).__name__)
def test_the_axis_is_that_of_all_rows(local, rule):
    x = local["x"].sel(feature="x")
    for seed in range(5):
        effect = rs.rhale(local, bins=rule, honest=True, rng=seed).sel(feature="x")
        edges = effect["edge_value"].dropna("edge").values
        assert edges[0] == float(x.min())
        assert edges[-1] == float(x.max())


def test_the_same_as_ever_without_it(local):
    effect = rs.rhale(local)
    assert not [name for name in effect.attrs if "honest" in name]
    assert effect.attrs["n_rows"] == 400
    xr.testing.assert_identical(estimation_rows(local, effect), local)


# --- reproducible --------------------------------------------------------------------------------


# A seed from the system leaves a bin without rows in 3 of 1000 halves, which is not asked here.
@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:Bins without rows")
def test_attributes_survive_a_file(local, tmp_path):
    effect = rs.rhale(local, honest=True)  # a seed of up to 2^53, from the system
    loaded = through_a_file(effect, tmp_path)
    xr.testing.assert_identical(loaded, effect)
    xr.testing.assert_identical(estimation_rows(local, loaded), estimation_rows(local, effect))


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:Bins without rows")
def test_honest_spread_is_not_too_small():
    """math [16]: chosen bins make the variance of pure noise too small, honest ones do not.

    100 features of 200 rows, bins of 5 rows or more on 60 cells.
    """
    rng = np.random.default_rng(0)
    X, g = rng.uniform(size=(200, 100)), rng.normal(size=(200, 100))
    local = rs.local_effects(None, X, jacobian=g)
    rule = rs.OptimalBins(60, min_obs=5, discount=0.0)

    def ratio(**options):
        effect = rs.rhale(local, bins=rule, **options)
        width = effect["bin_right"] - effect["bin_left"]
        width = width.where(effect["heterogeneity"].notnull())
        share = (effect["heterogeneity"] ** 2 * width).sum("bin") / width.sum("bin")
        return share.mean().item(), share.std().item() / 10

    chosen, honest = ratio(), ratio(honest=True, rng=0)
    assert chosen[0] < 0.9
    assert honest[0] == pytest.approx(1, abs=4 * honest[1])
    assert honest[1] < 0.03


# --- weights, and rows that are not there --------------------------------------------------------


@pytest.mark.parametrize("kind", ["precision", "frequency"])
def test_with_weights(rng, kind):
    x, g = rng.uniform(size=(300, 1)), rng.normal(size=(300, 1))
    weights = rng.integers(0, 4, 300)
    local = rs.local_effects(None, x, jacobian=g, weights=weights, weight_kind=kind)
    effect = rs.rhale(local, bins=rs.EqualWidthBins(3), honest=True, rng=0)
    _, rest = halves(local, effect)
    expected = rs.rhale(rest, bins=rs.GivenBins(effect)).rhale.in_bins()
    for name in ("effect", "heterogeneity", "n_obs", "n_effective", "weight_share"):
        found = effect.rhale.in_bins()[name]
        np.testing.assert_allclose(found, expected[name], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("side", ["choosing", "estimating"])
def test_a_side_of_rows_of_weight_zero_is_refused(rng, side):
    x, g = rng.uniform(size=(2, 60, 1))
    local, bins = rs.local_effects(None, x, jacobian=g), rs.EqualWidthBins(2)
    seed = rs.rhale(local, bins=bins, honest=True, rng=0).attrs["honest_seed"]
    chosen = honest_split(60, 0.5, seed)
    weights = np.where(chosen == (side == "choosing"), 0.0, 1.0)
    local = rs.local_effects(None, x, jacobian=g, weights=weights)
    with pytest.raises(ValueError, match="rows"):
        rs.rhale(local, honest=True, rng=0)


@pytest.mark.thorough
@pytest.mark.parametrize("side", ["choosing", "estimating"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["x", "local_effect"])
def test_broken_values_on_either_side_are_refused(local, name, bad, side):
    """As without honest bins: never counted into some bin."""
    seed = rs.rhale(local, honest=True, rng=0).attrs["honest_seed"]
    chosen = honest_split(400, 0.5, seed)
    broken = local.copy(deep=True)
    row = np.flatnonzero(chosen if side == "choosing" else ~chosen)[10]
    broken[name].values[row, 0] = bad
    what = "x" if name == "x" else "Local effects"
    kind = "NaN" if np.isnan(bad) else "inf"
    with pytest.raises(ValueError, match=rf"{what} of feature 'x' must be finite; got 1 {kind}"):
        rs.rhale(broken, honest=True, rng=0)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_broken_values_of_x_are_refused_without_a_second_pass(local, bad):
    """Nothing but the counts of rows meets them there."""
    rule = rs.GivenBins(np.linspace(-1.1, 1.1, 6))
    local = local.isel(feature=[0])
    seed = rs.rhale(local, bins=rule, honest=True, rng=0).attrs["honest_seed"]
    broken = local.copy(deep=True)
    broken["x"].values[np.flatnonzero(~honest_split(400, 0.5, seed))[10], 0] = bad
    with pytest.raises(ValueError, match="x of feature 'x' must be finite; got 1"):
        rs.rhale(broken, bins=rule, honest=True, rng=0)


def test_local_effects_too_large_to_square_on_either_side(local):
    huge = local.copy(deep=True)
    seed = rs.rhale(local, honest=True, rng=0).attrs["honest_seed"]
    huge["local_effect"].values[~honest_split(400, 0.5, seed)] *= 1e200
    with pytest.raises(ValueError, match=r"Local effects of feature .* 1e-60 and 1e\+60"):
        rs.rhale(huge, honest=True, rng=0)


def test_a_half_in_which_a_feature_is_constant():
    """All that varies is in one half: bins without rows, or rows without an edge; no error."""
    x = np.zeros(40)
    seed = 0
    local = rs.local_effects(None, np.arange(40.0)[:, None], jacobian=np.ones((40, 1)))
    chosen = honest_split(40, 0.5, rs.rhale(local, honest=True, rng=seed).attrs["honest_seed"])
    x[~chosen] = np.linspace(-1, 1, 20)
    for values in (x, np.where(chosen, np.linspace(-1, 1, 40), 0.0)):
        local = rs.local_effects(None, values[:, None], jacobian=np.ones((40, 1)))
        for rule in (rs.OptimalBins(10, min_obs=2), rs.QuantileBins(1)):
            effect = rs.rhale(local, bins=rule, honest=True, rng=seed).isel(feature=0)
            assert effect["n_obs"].sum() == 20
            ends = effect["edge_value"].dropna("edge").values[[0, -1]]
            assert ends.tolist() == [values.min(), values.max()]


# --- columns in memory ---------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("size", [MAX_SIZE, MAX_SIZE * (1 + 1e-9), np.inf, np.nan])
@pytest.mark.parametrize("sign", [1, -1])
def test_sizes_up_to_a_limit(size, sign):
    limit = size == MAX_SIZE
    for n in (1, 3):
        assert module.is_sized(sign * np.array([1.0, *[size] * n])) == limit


@pytest.mark.parametrize("kind", KINDS)
def test_columns_are_contiguous_and_of_rows_with_weight(kind):
    found = columns(weighted(kind))
    there = WEIGHT > 0 if kind not in ("none", "ones") else np.full(12, True)
    for at in range(2):
        assert_array_equal(found.x[at], X[there, at])
        assert_array_equal(found.local_effect[at], G[there, at])
        assert found.x[at].flags.c_contiguous
        assert found.local_effect[at].flags.c_contiguous
    n = int(there.sum())
    assert (found.n_rows, found.size, found.most_rows) == (n, 2 * n, n)
    assert found.frequency == (kind == "frequency")
    if kind in ("frequency", "precision"):
        scale = 4 if kind == "precision" else 1
        assert_array_equal(found.weight, WEIGHT[there] / scale)
    else:
        assert found.weight is None
    assert found.largest == {"precision": 4, "equal": 5}.get(kind, 1)
    assert found.unequal == (kind == "precision")
    assert found.sides is None
    assert list(found.cells) == [None, None]
    place = found.places(1)
    assert_array_equal(place.x, X[there, 1])
    assert place.weight is found.weight
    assert place.frequency == found.frequency
    assert not place.ordered
    assert found.ends(0, "x0") == (X[there, 0].min(), X[there, 0].max())


def test_dims_in_any_order_are_read():
    local = weighted("precision")
    turned = local.transpose("feature", "obs")
    for one, other in zip(columns(turned).x, columns(local).x, strict=True):
        assert_array_equal(one, other)


def test_what_has_no_rows_is_refused():
    local = weighted("precision")
    with pytest.raises(ValueError, match="local must have at least one row; got none"):
        columns(local.isel(obs=[]))
    with pytest.raises(ValueError, match="rows of positive weight; got none among these rows"):
        columns(local.isel(obs=[0, 3]))
    broken = local.copy(deep=True)
    broken["x"][2, 1] = np.nan
    found = columns(broken)
    found.ends(0, "x0")
    with pytest.raises(ValueError, match="x of feature 'x1' must be finite; got 1 NaN"):
        found.ends(1, "x1")


@pytest.mark.parametrize("kind", KINDS)
def test_sorted_rows_are_the_same_rows(kind):
    found = columns(weighted(kind))
    for at in (0, 1, 0):
        one = found._sorted_by(at, found._columns_to_sort())
        order = np.argsort(found.x[at])
        assert one.ordered
        assert_array_equal(one.x[at], found.x[at][order])
        assert_array_equal(one.local_effect[at], found.local_effect[at][order])
        assert [len(values) for values in one.x] == [found.n_rows * (k == at) for k in range(2)]
        if found.weight is None:
            assert one.weight is None
        else:
            assert_array_equal(one.weight, found.weight[order])
        assert one.ends(at, "") == found.ends(at, "")
        assert one.places(at).ordered
        assert one.n_rows == found.n_rows
        assert one.in_order(at) is one


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("name", ["x", "local_effect"])
def test_rows_that_are_refused_are_not_sorted(name, bad):
    local = weighted("none").copy(deep=True)
    local[name][5, 1] = bad
    found = columns(local)
    assert found._sorted_by(1, found._columns_to_sort()) is found
    assert found._sorted_by(0, found._columns_to_sort()).ordered


def test_checksums_tell_rows_effects_weights_and_sides():
    frame = pd.DataFrame({"a": X[:, 0], "k": list("uvwu") * 3})

    def model(t):
        return t["a"] * t["k"].map({"u": 0.0, "v": 1.0, "w": 3.0}).astype(float)

    local = rs.ale_local_effects(model, frame, order=["u", "v", "w"], bins=rs.EqualWidthBins(2))
    found = columns(local)
    assert found.sides is not None
    for name, side in (("difference_up", 0), ("difference_down", 1)):
        assert_array_equal(found.sides[1][side], local[name].sel(feature="k"))
        assert np.isnan(found.sides[0][side]).all()
    own = found.fingerprints(["a", "k"])["row_fingerprint"]
    # Of an axis the sides do not matter; of levels each of them does.
    alone = columns(local.sel(feature=["a"]).drop_vars(["difference_up", "difference_down"]))
    assert alone.fingerprint(0) == found.fingerprint(0)
    for name in ("difference_up", "difference_down", "local_effect", "x"):
        other = local.copy(deep=True)
        row = 0 if name != "difference_down" else 1
        other[name][row, 1] += 1
        assert columns(other).fingerprint(1) != found.fingerprint(1)
        assert columns(other).fingerprint(0) == found.fingerprint(0)
    assert found.fingerprint(0) in str(own)
    assert found.fingerprint(1) in str(own)
    assert columns(weighted("precision")).fingerprint(0) != columns(weighted("equal")).fingerprint(
        0
    )
    # Weights that are left out leave their rows out of the sides.
    rows = local.assign(weight=("obs", WEIGHT)).assign_attrs(weight_kind="frequency")
    there = WEIGHT > 0
    for side, name in enumerate(("difference_up", "difference_down")):
        kept = columns(rows).sides[1][side]
        assert_array_equal(kept, local[name].sel(feature="k").values[there])


def test_rows_of_each_feature_are_those_with_a_value():
    x = np.column_stack([X, X[:, :1] + 1])
    x[[1, 4], 0] = x[[1, 4], 2] = np.nan
    local = rs.local_effects(lambda X: np.nan_to_num(X).sum(axis=1), x, missing="drop")
    found = own_columns(local, ["x2", "x1", "x0"])
    assert list(found) == ["x2", "x1", "x0"]
    assert found["x2"][0] is found["x0"][0]
    assert (found["x0"][1], found["x2"][1], found["x1"][1]) == (0, 1, 0)
    there = ~np.isnan(x[:, 0])
    for at, name in enumerate(("x0", "x1", "x2")):
        rows, number = found[name]
        expected = x[there if at != 1 else slice(None), at]
        assert_array_equal(rows.x[number], expected)
    whole = own_columns(weighted("none"), ["x1"])
    assert whole["x1"][1] == 1


# --- which rows -----------------------------------------------------------------------------------


def test_rows_of_estimates():
    local = weighted("precision")
    effect = xr.Dataset()
    assert is_estimation_row(local, effect).tolist() == [True] * 12
    assert is_used_row(local, effect).tolist() == (WEIGHT > 0).tolist()
    assert is_used_row(weighted("none"), effect).all()
    honest = effect.assign_attrs(honest_fraction=0.25, honest_seed=3)
    chosen = honest_split(12, 0.25, 3)
    assert chosen.sum() == 3
    assert_array_equal(is_estimation_row(local, honest), ~chosen)
    assert_array_equal(is_used_row(local, honest), ~chosen & (WEIGHT > 0))
    region = np.array([2, 1] * 6)
    regional = effect.assign({module.ROWS: ("row", region)}).assign_coords(region=1)
    assert_array_equal(is_estimation_row(local, regional), region == 1)
    assert_array_equal(is_estimation_row(local, regional.drop_vars("region")), [True] * 12)
    assert_array_equal(is_estimation_row(local, effect.assign_coords(region=1)), [True] * 12)
    with pytest.raises(ValueError, match="got 5 rows and regions of 12"):
        is_estimation_row(local.isel(obs=slice(5)), regional)
    for fraction, n_obs, n in ((0.01, 12, 0), (0.99, 12, 12)):
        with pytest.raises(ValueError, match=f"{fraction} of {n_obs} rows is {n}"):
            honest_split(n_obs, fraction, 0)
    assert honest_split(2, 0.5, 0).sum() == 1
