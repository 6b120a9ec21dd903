"""Effects of all rows from effects of parts."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import rhale_stats as rs
from tests.helpers import (
    as_of_a_file,
    in_turn,
    without_spread,
)

# Parts may have gaps where all rows have none.
pytestmark = pytest.mark.filterwarnings("ignore:Gaps without rows", "ignore:Bins without rows")
# Of numbers of size 1: moments are those of the parts about their own means.
ALIKE = {"rtol": 1e-9, "atol": 1e-10}
BINS = rs.GivenBins([-2, -1, 0, 1, 2], cells=np.linspace(-2, 2, 21))


def model(X):
    """An interaction."""
    return X[:, 0] ** 2 + X[:, 0] * X[:, 1]


def jacobian(X):
    """Its derivatives."""
    return np.column_stack([2 * X[:, 0] + X[:, 1], X[:, 0]])


@pytest.fixture(scope="module")
def table():
    """Two features."""
    return np.random.default_rng(0).uniform(-2, 2, size=(900, 2))


def effects_of(table, cuts, bins=BINS, **options):
    """Effects of parts of the rows, and of all rows; derivatives are exact, whatever the part."""

    def one(rows):
        return rs.rhale(rs.local_effects(None, rows, jacobian=jacobian), bins=bins, **options)

    return [one(rows) for rows in np.split(table, cuts)], one(table)


def band(effect):
    """Bands by a few draws."""
    return rs.confband(effect, n_draws=200, rng=0)


def whole_without_spread(whole):
    """Effects without the spread in bins of its own."""
    return without_spread(whole)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("weighting", "centering"), in_turn(["axis", "rows"], ["mean", "integral"])
)
def test_parts_have_the_effect_of_all_rows(table, weighting, centering):
    parts, whole = effects_of(table, [13, 500], weighting=weighting, centering=centering)
    pooled, whole = rs.std_error(rs.merge(parts)), rs.std_error(whole_without_spread(whole))
    xr.testing.assert_allclose(pooled, whole, **ALIKE)
    assert {**whole.attrs, "n_parts": 3} == pooled.attrs
    # Order of the parts, and effects of which some were merged before.
    again = rs.std_error(rs.merge([rs.merge(parts[:2]), parts[2]]))
    xr.testing.assert_allclose(again, whole, **ALIKE)


@pytest.mark.parametrize(
    ("bins", "weighting"),
    [(BINS, "axis"), (rs.GivenBins([-2, 0.5, 2], cells=[-2, -1, 0.5, 1, 2]), "rows")],
)
def test_precision_weights_of_parts_on_one_scale(weighting, bins):
    rng = np.random.default_rng(2)
    X = rng.uniform(-2, 2, size=(600, 2))
    # The parts have other largest weights, and rows of weight 0.
    weights = rng.gamma(2, size=600) * np.repeat([1.0, 7.0, 0.2], 200) * (np.arange(600) % 9 > 0)

    def skewed(X):
        return np.column_stack([2 * X[:, 0] + np.exp(X[:, 1]), X[:, 0] - np.exp(X[:, 0])])

    def one(rows):
        given = {"jacobian": skewed, "weights": weights[rows]}
        local = rs.local_effects(None, X[rows], **given)
        return rs.rhale(local, bins=bins, weighting=weighting)

    parts = [one(slice(0, 90)), one(slice(90, 390)), one(slice(390, 600))]
    whole = whole_without_spread(one(slice(None)))
    for found, functions in (
        (rs.merge(parts), (rs.confint, band)),
        (rs.merge([rs.merge(parts[:2]), parts[2]]), (rs.std_error,)),
    ):
        # The sign needs rows; see the next test.
        known = found.assign(skewness_sign=whole["skewness_sign"].variable)
        for function in functions:
            xr.testing.assert_allclose(function(known), function(whole), **ALIKE)
    assert "robust_variance" in whole


def test_the_sign_of_a_skewness_is_that_of_parts_that_agree(table):
    weights = np.linspace(1, 3, 900)

    def one(rows):
        local = rs.local_effects(None, table[rows], jacobian=jacobian, weights=weights[rows])
        return rs.rhale(local, bins=BINS)

    parts = [one(slice(0, 400)), one(slice(400, 900))]
    signs = [[1.0, -1.0], [1.0, 0.0]]
    for part, sign in zip(parts, signs, strict=True):
        part["skewness_sign"] = part["skewness_sign"].copy(data=sign)
    np.testing.assert_array_equal(rs.merge(parts)["skewness_sign"], [1.0, 0.0])


@pytest.mark.thorough
def test_intervals_bands_tests_and_checks_follow(table):
    parts, whole = effects_of(table, [300], weighting="rows")
    pooled, whole = rs.merge(parts), whole_without_spread(whole)
    for function in (rs.confint, lambda one: rs.confband(one, rng=0), rs.wald_test):
        found, expected = function(pooled), function(whole)
        xr.testing.assert_allclose(found, expected, **ALIKE)
    # All rows, one part below the other, are those of the pooled effect.
    local = rs.local_effects(None, table, jacobian=jacobian)
    assert "bin_error" in rs.check_unbiased(local, pooled, rng=0)
    with pytest.raises(ValueError, match="local must be the Dataset that effect was made from"):
        rs.check_unbiased(local.isel(obs=slice(None, None, -1)), pooled, rng=0)


@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(2, 98), min_size=1, max_size=5, unique=True), st.integers(0, 99))
@pytest.mark.slow
def test_parts_of_a_few_rows(cuts, seed):
    table = np.random.default_rng(seed).normal(size=(100, 2)) + 50
    bins = rs.GivenBins([40, 49, 50, 60], cells=np.linspace(40, 60, 21))
    sizes = np.diff([0, *sorted(cuts), 100])
    cuts = [cut for cut, size in zip(sorted(cuts), sizes, strict=False) if size > 1]
    parts, whole = effects_of(table, cuts, bins)
    if any((part["n_bins"] == 0).any() for part in parts):
        return  # a part of one row
    found = rs.std_error(rs.merge(parts))
    expected = rs.std_error(whole_without_spread(whole))
    xr.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9)


@pytest.mark.thorough
def test_frequency_weights_are_repeated_rows(table):
    counts = np.random.default_rng(1).integers(0, 3, len(table)).astype(float)

    def one(rows):
        options = {"weights": counts[rows], "weight_kind": "frequency"}
        local = rs.local_effects(None, table[rows], jacobian=jacobian, **options)
        return rs.rhale(local, bins=BINS)

    pooled = rs.merge([one(slice(0, 400)), one(slice(400, None))])
    whole = whole_without_spread(one(slice(None)))
    xr.testing.assert_allclose(pooled, whole, **ALIKE)
    assert pooled.attrs["weight_kind"] == "frequency"


@pytest.mark.thorough
def test_files_of_parts(table, tmp_path):
    parts, _ = effects_of(table, [450])
    for number, part in enumerate(parts):
        part.to_netcdf(tmp_path / f"{number}.nc")
    read = [xr.load_dataset(tmp_path / f"{number}.nc") for number in range(2)]
    xr.testing.assert_identical(rs.merge(read), rs.merge(parts))


def test_an_effect_gives_its_edges_and_cells(table):
    X = np.clip(table, -2, 2)
    X[:2] = -2
    X[2:4] = 2
    first = rs.rhale(rs.local_effects(model, X[:500]), bins=rs.EqualWidthBins(4))
    rule = rs.GivenBins(first)
    again = rs.rhale(rs.local_effects(model, X[:500]), bins=rule)
    for name in ("bin_left", "edge_value"):
        np.testing.assert_array_equal(again[name], first[name])
    np.testing.assert_allclose(again["curve"], first["curve"], rtol=1e-12)
    assert rule == rs.GivenBins(first)
    assert hash(rule) == hash(rs.GivenBins(first))
    other = np.concatenate([X[:4], X[500:]])
    second = rs.rhale(rs.local_effects(model, other), bins=rule)
    assert int(rs.merge([again, second]).attrs["n_rows"]) == 904
    with pytest.raises(ValueError, match="edges must be numbers, or the effects that rhale"):
        rs.GivenBins(xr.Dataset())


def test_cells_beside_an_edge_by_rounding_are_that_edge(table):
    bins = rs.GivenBins([-2, -0.4, 2], cells=np.linspace(-2, 2, 21))
    effect = rs.rhale(rs.local_effects(None, table, jacobian=jacobian), bins=bins)
    assert np.linspace(-2, 2, 21)[8] != -0.4
    assert effect.sizes["edge"] == 21


def test_parts_that_do_not_fit_are_refused(table):
    (one, two), _ = effects_of(table, [450])
    refused = {
        "must hold at least one effect": [],
        r"effects\[0\] and effects\[1\] must have the same features": [one, two.isel(feature=[0])],
        "must have the same centring": [one, two.assign_attrs(centering="start")],
        "must have the same output; got": [one, two.assign_attrs(output_label="risk")],
        "must have the same scale": [one, two.assign_attrs(scale="link")],
        r"effects\[1\] must be without standard errors by groups": [
            one,
            two.assign_attrs(n_groups=5),
        ],
    }
    others, _ = effects_of(table, [450], rs.GivenBins([-2, 0, 2], cells=[-2, 0, 2]))
    refused["must have the same edges of feature 'x0'; got 2 bins"] = [one, others[1]]
    others, _ = effects_of(table, [450], rs.GivenBins(BINS.edges))
    refused["must have the same cells of the curve of feature 'x0'"] = [one, others[1]]
    others, _ = effects_of(table, [450], weighting="rows")
    refused["must have the same weighting; got 'axis' and 'rows'"] = [one, others[1]]
    others, _ = effects_of(table, [450], None)
    refused[r"effects\[0\] must have constant bins; its rule AdaptiveBins"] = others
    constant = table.copy()
    constant[450:, 0] = 1.0
    others, _ = effects_of(constant, [450])
    refused[r"effects\[1\] must have a feature 'x0' that varies"] = others
    weighted = rs.local_effects(model, table, weights=np.abs(table[:, 0]) + 1)
    equal = rs.local_effects(model, table, weights=np.full(len(table), 3.0))
    refused["must have precision weights that differ within the part"] = [
        rs.rhale(equal, bins=BINS)
    ]
    refused["which keeps the sums of weights that other parts need; got EqualWidthBins"] = [
        rs.rhale(weighted, bins=rs.EqualWidthBins(3), weighting="rows")
    ]
    refused["must be of one output here; this one is of 2"] = [
        xr.concat([one, two], "output", join="override")
    ]
    for text, parts in refused.items():
        with pytest.raises(ValueError, match=text):
            rs.merge(parts)
    with pytest.raises(TypeError, match="effects"):
        rs.merge([3])


@pytest.mark.thorough
@pytest.mark.parametrize("weights", ["none", "precision"])
def test_one_part_is_itself(table, weights):
    """And parts have to agree in every number of their edges and cells."""
    w = np.random.default_rng(1).uniform(0.5, 2, len(table))
    more = {"weights": w} if weights == "precision" else {}
    local = rs.local_effects(None, table, jacobian=jacobian, **more)
    whole = rs.rhale(local, bins=BINS)
    alone = rs.merge([whole])
    expected = whole_without_spread(whole)
    xr.testing.assert_allclose(alone, expected, **ALIKE)
    assert alone.attrs["n_parts"] == 1
    assert alone.attrs["n_rows"] == len(table)
    whole = as_of_a_file(whole)
    bare = whole.copy()
    bare.attrs.pop("answer_precision")
    assert "answer_precision" not in rs.merge([bare]).attrs
    parts = [whole.assign_attrs(answer_precision=one) for one in (1e-9, 1e-7)]
    for part, error in zip(parts, (0.25, 0.5), strict=True):
        part["local_effect_error"] = "feature", [error, 0.125]
    both = rs.merge(parts)
    assert both.attrs["answer_precision"] == 1e-7
    assert both["local_effect_error"].values.tolist() == [0.5, 0.125]
    with pytest.raises(ValueError, match=r"effects must hold at least one effect; got none\."):
        rs.merge([])


def test_what_parts_disagree_in_is_named(table):
    half, other = table[:400], table[400:]

    def one(rows, bins=BINS, **options):
        names = ["weighting", "centering"]
        of = {name: options.pop(name) for name in names if name in options}
        return rs.rhale(rs.local_effects(None, rows, jacobian=jacobian, **options), bins=bins, **of)

    first = one(half)
    for second, said in (
        (one(other, centering="start"), "the same centring; got 'mean' and 'start'"),
        (one(other, weighting="rows"), "the same weighting; got 'axis' and 'rows'"),
        (one(other).assign_attrs(output_units="kg"), "the same units of the output"),
        (one(other, features=[0]), "the same features; got x0, x1 and x0"),
        (one(other, rs.GivenBins([-2, -1, 0, 2], cells=np.linspace(-2, 2, 21))),
         r"the same edges of feature 'x0'; got 3 bins from -2 to 2 in effects\[1\]"),
        (one(other, rs.GivenBins([-2, -1, 0, 1, 2], cells=np.linspace(-2, 2, 11))),
         "the same cells of the curve of feature 'x0'"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=rf"effects\[0\] and effects\[1\] must have {said}"):
            rs.merge([first, second])
    flat = other.copy()
    flat[:, 1] = 1.0
    with pytest.raises(ValueError, match=r"effects\[1\] must have a feature 'x1' that varies"):
        rs.merge([first, one(flat, features=[0, 1])])
    with pytest.raises(TypeError, match="effects must be a list of the Datasets"):
        rs.merge(first)


def stairs(X):
    """Steps of the first column, whose size depends on the second."""
    return np.floor(3 * X[:, 0]) * (1 + X[:, 1])


@pytest.mark.thorough
@pytest.mark.parametrize("weighted", [False, True])
def test_parts_of_steps_of_which_one_does_not_reach_the_ends(weighted, rng):
    """Slopes across cells: every part has the cells of all, whether or not it has rows there."""
    X, bins = rng.uniform(-1, 1, (400, 2)), rs.GivenBins([-1, -0.5, 0.5, 1])
    options = {"method": "finite_difference", "features": "x0", "bins": bins}
    if weighted:
        options |= {"weights": rng.integers(1, 4, 400), "weight_kind": "frequency"}
    local = rs.local_effects(stairs, X, **options)
    whole = rs.rhale(local, bins=bins)
    inner = np.abs(X[:, 0]) < 0.4
    some = inner & (np.arange(400) % 2 == 0)
    with pytest.warns(UserWarning, match="Bins without rows"):
        part = rs.rhale(local.isel(obs=some), bins=rs.GivenBins(whole))
    assert np.isnan(part["effect"].values).tolist() == [[True, False, True]]
    rest = rs.rhale(local.isel(obs=~some), bins=rs.GivenBins(whole))
    merged = rs.std_error(rs.merge([part, rest]))
    for name in ("effect", "effect_se", "curve", "curve_se", "average_effect", "heterogeneity"):
        assert_allclose(merged[name], rs.std_error(whole)[name], rtol=1e-9, err_msg=name)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["precision", "frequency"])
def test_the_bins_of_an_effect_give_it_again_where_values_are_few(kind, rng):
    X = np.column_stack([np.round(rng.normal(size=200), 1), rng.normal(size=200)])
    weights = rng.gamma(1.0, size=200) if kind == "precision" else rng.integers(0, 4, 200)
    local = rs.local_effects(
        lambda X: np.sin(2 * X[:, 0]) * X[:, 1], X, "x0", weights=weights, weight_kind=kind
    )
    effect = rs.std_error(rs.rhale(local, bins=rs.QuantileBins(3)))
    again = rs.std_error(rs.rhale(local, bins=rs.GivenBins(effect)))
    for name in ("effect", "effect_se", "curve", "curve_se", "edge_value"):
        assert_allclose(again[name], effect[name], rtol=1e-9, err_msg=name)


def test_effects_of_several_outputs_have_no_common_edges(rng):
    X = rng.normal(size=(100, 2))
    effect = rs.rhale(lambda X: np.column_stack([X[:, 0] * X[:, 1], np.sin(3 * X[:, 0])]), X)
    with pytest.raises(ValueError, match=r"effects of one output.* got 2.*isel\(output=0\)"):
        rs.GivenBins(effect)
