"""Simulators: their derivatives, their draws, and that their truths are the limits of estimates."""

from __future__ import annotations

import dataclasses
import inspect
from itertools import product

import numpy as np
import pytest
import xarray as xr

import rhale_stats as rs
from rhale_stats import simulate
from tests.helpers import through_a_file

EXAMPLES = [
    simulate.Toy(),
    simulate.Toy(b0=3, b1=-1, b2=0.5, b3=4, variance=1),
    simulate.OppositeGroups(),
    simulate.RunningExample(),
    simulate.RunningExample(noise=0.1, sd=1),
    simulate.Ridge(),
    simulate.Ridge(alpha=2, noise=0.1),
    simulate.PiecewiseLinear(),
    simulate.PiecewiseLinear(sd=0.5, slopes=(1, 9), breaks=(0.213,)),
    simulate.PiecewiseLinear.independent(),
    simulate.PiecewiseLinear.independent((4, -3, 0.5), (20, 40), dense_until=40, dense_share=0.8),
    simulate.Quadratic(),
    simulate.TwoRegimes(),
    simulate.TwoRegimes(correlated=True),
    simulate.Product(),
]
every = pytest.mark.parametrize("example", EXAMPLES, ids=repr)


def known(example):
    return list(example._marginals())


def test_every_simulator_is_here():
    defined = {
        value
        for value in vars(simulate).values()
        if inspect.isclass(value)
        and issubclass(value, simulate.Simulator)
        and value is not simulate.Simulator
    }
    assert defined == {type(example) for example in EXAMPLES}
    assert all(dataclasses.is_dataclass(simulator) for simulator in defined)


@every
def test_jacobian_is_the_derivative_of_the_model(example):
    X = example.sample(400, rng=1)
    h = 1e-6 * X.std().to_numpy()
    for position, step in enumerate(h):
        up, down = X.to_numpy().copy(), X.to_numpy().copy()
        up[:, position] += step
        down[:, position] -= step
        numeric = (example.model(up) - example.model(down)) / (2 * step)
        exact = example.jacobian(X)[:, position]
        # Rows within h of a kink or a jump differ; there are few.
        close = np.isclose(numeric, exact, rtol=1e-5, atol=1e-4 * (1 + np.abs(exact).max()))
        assert close.mean() > 0.99


@every
def test_samples_are_reproducible_and_labelled(example):
    X = example.sample(5, rng=3)
    assert X.columns.tolist() == list(example.columns)
    assert X.equals(example.sample(5, rng=np.random.default_rng(3)))
    with pytest.raises(ValueError, match="n must be at least 1; got 0"):
        example.sample(0)


CENTERINGS = ["mean", "start", "integral"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("example", "centering"),
    [
        # Every day one centring of each, in turns. Only that at the mean depends on the densities.
        pytest.param(*both, marks=pytest.mark.slow if (i + i // 3) % 3 else ())
        for i, both in enumerate(product(EXAMPLES, CENTERINGS))
        if both[1] == "mean" or (i + i // 3) % 3 == 0
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore:Bins without rows")  # in the tails of normal features
def test_truth_is_what_estimates_tend_to(example, centering):
    X = example.sample(60_000, rng=11)
    local = rs.local_effects(None, X, jacobian=example.jacobian, features=known(example))
    effect = rs.std_error(rs.rhale(local, bins=rs.EqualWidthBins(100), centering=centering))
    truth = example.truth(effect)
    for name in known(example):
        assert_tends_to(effect.sel(feature=name), truth.sel(feature=name), name)


def assert_tends_to(e, t, name):
    size = float(np.abs(t["curve"]).max()) + 1e-9
    # 600 rows a bin; those in the tails of a normal feature hold few.
    full = e["n_obs"] > 200
    # A break inside a bin, with unequal rows on its sides, moves mu within the bin's range.
    within = np.sqrt(t["bin_error"])
    # 5 standard errors, for 100 bins and 45 runs.
    near = np.abs(e["effect"] - t["effect"]) <= 5 * e["effect_se"] + within + 1e-9
    assert near.where(full, True).all(), name
    star = np.sqrt(t["heterogeneity"] ** 2 + t["bin_error"])
    # The spread of two values with equal shares has no error of first order: 1 % instead. In the
    # tails of a jump rows with the other value are too rare to be in a sample.
    there = full & ((star < 1e-9) | (star > 0.1))
    slack = 5 * e["heterogeneity_se"] + 0.01 * star + within + 1e-9
    assert (np.abs(e["heterogeneity"] - star) <= slack).where(there, True).all(), name
    # What the curve misses in a bin is at most the bin error's root times the width. Bins of one
    # row, in the tails of a normal feature, have no standard error.
    missed = float((within * (e["bin_right"] - e["bin_left"])).sum())
    slack = (6 * e["curve_se"] + missed + 1e-6 * size).fillna(np.inf)
    difference = np.abs(e["curve"] - t["curve"]).where(e["curve"].notnull(), 0)
    assert (difference <= slack).all(), name


def given(example, edges, centering="start"):
    X = example.sample(200, rng=0).assign(x1=np.linspace(edges[0], edges[-1], 200))
    local = rs.local_effects(None, X, jacobian=example.jacobian, features="x1")
    effect = rs.rhale(local, bins=rs.GivenBins(edges), centering=centering)
    return example.truth(effect).isel(feature=0)


@pytest.mark.parametrize("n_bins", [1, 2, 5, 16])
def test_toy_and_quadratic_by_their_formulas(n_bins):
    edges = np.linspace(0, 1, n_bins + 1)
    middle = (edges[1:] + edges[:-1]) / 2
    toy = given(simulate.Toy(), edges)
    np.testing.assert_allclose(toy["effect"], 1 + 2 * middle, rtol=1e-13)
    np.testing.assert_allclose(toy["heterogeneity"] ** 2, 0.4, rtol=1e-13)
    np.testing.assert_allclose(toy["bin_error"], 4 / (12 * n_bins**2), rtol=1e-11)
    z = toy["edge_value"]
    np.testing.assert_allclose(toy["curve"], z + z**2, rtol=1e-12, atol=1e-14)
    quadratic = given(simulate.Quadratic(sd=0.4), edges, centering="mean")
    np.testing.assert_allclose(quadratic["bin_error"], 81 / (12 * n_bins**2), rtol=1e-11)
    # 4.5 z^2 minus its mean over U(0, 1).
    z = quadratic["edge_value"]
    np.testing.assert_allclose(quadratic["curve"], 4.5 * z**2 - 1.5, rtol=1e-12)


def test_piecewise_linear_by_hand():
    """On [0.4, 0.5] the slopes 5 and -10 meet; on the other bins only z varies."""
    truth = given(simulate.PiecewiseLinear(sd=0.5), [0, 0.2, 0.4, 0.5, 1], centering="integral")
    np.testing.assert_allclose(truth["effect"], [2.1, -1.7, -2.05, 1.25], rtol=1e-12)
    # On the third bin a(z) + z - mean: 7.5 - 0.05 + u on the left half, u in (0, 0.05), ...
    left = np.polynomial.polynomial.polyval(0.05, [0, 7.45**2, 7.45, 1 / 3])
    np.testing.assert_allclose(
        truth["bin_error"], [0.04 / 12, 0.04 / 12, 2 * left / 0.1, 0.25 / 12], rtol=1e-10
    )
    assert float(truth["heterogeneity"][0]) == pytest.approx(0.5)


def test_independent_pieces_meet_the_notes_levels():
    """The note's pieces start at -5, 1, 141, 111 and 111; ours at 0 are those plus 5."""
    X = np.column_stack([[0, 20, 40, 60, 80, 100], np.zeros(6)])
    level = simulate.PiecewiseLinear.independent().model(X)
    np.testing.assert_allclose(level, [0, 6, 146, 116, 116, 16])


def test_ridge_tends_to_the_papers_limit():
    truth = given(simulate.Ridge(alpha=1, noise=1e-9), [0, 0.25, 0.5, 1])
    np.testing.assert_allclose(truth["effect"], [1, -1, 0], atol=1e-8)
    np.testing.assert_allclose(truth["heterogeneity"], 0.5, atol=1e-8)
    z = truth["edge_value"]
    expected = np.maximum(np.minimum(z, 0.5 - z), 0)
    np.testing.assert_allclose(truth["curve"], expected, atol=1e-8)


def test_truth_without_closed_form():
    example = simulate.Toy()
    X = example.sample(50, rng=0)
    effect = rs.rhale(rs.local_effects(None, X, jacobian=example.jacobian))
    with pytest.raises(KeyError, match=r"for Toy 'x1'; got 'x2'. Select them"):
        example.truth(effect)
    with pytest.raises(ValueError, match="slopes must be one more than breaks; got 2 slopes and 0"):
        simulate.PiecewiseLinear(slopes=(1, 2), breaks=())


# --- along the axis ------------------------------------------------------------------------------


@pytest.mark.thorough
@every
def test_cells_of_a_truth_are_its_functions(example):
    """2000 equal cells between the outer edges; those without a break are mu(z) at their middle."""
    X = example.sample(200, rng=0)
    local = rs.local_effects(None, X, jacobian=example.jacobian, features=known(example))
    truth = example.truth(rs.rhale(local, bins=rs.QuantileBins(3)))
    assert truth["cell_effect"].dims == truth["cell_heterogeneity"].dims == ("feature", "cell")
    assert truth["cell_value"].dims == ("feature", "cell_edge")
    assert "cell_value" in truth.coords
    assert (truth.sizes["cell"], truth.sizes["cell_edge"]) == (2000, 2001)
    for name, marginal in example._marginals().items():
        row = truth.sel(feature=name)
        cells, edges = row["cell_value"].values, row["edge_value"].dropna("edge").values
        np.testing.assert_allclose(np.diff(cells), (edges[-1] - edges[0]) / 2000, rtol=1e-6)
        assert cells[[0, -1]].tolist() == edges[[0, -1]].tolist()
        middle = (cells[1:] + cells[:-1]) / 2
        inside = np.searchsorted(np.sort(marginal.breaks), cells)
        smooth = inside[1:] == inside[:-1]
        for found, function in (
            (row["cell_effect"], marginal.mean(middle)),
            (row["cell_heterogeneity"], np.sqrt(marginal.variance(middle))),
        ):
            size = np.abs(function).max() + 1e-9
            # A function that turns within 1 % of the axis, as Ridge's, bends by 1 % in a cell.
            close = np.abs(found.values - function) < 0.01 * size
            assert close[smooth].mean() > 0.99


@every
def test_cells_average_to_the_bins(example):
    """Bins whose edges are edges of cells: mean of mu, of sigma^2, and spread of mu."""
    X = example.sample(400, rng=0)
    local = rs.local_effects(None, X, jacobian=example.jacobian, features=known(example))
    x = local["x"].to_pandas()
    edges = {name: np.linspace(x[name].min(), x[name].max(), 6) for name in x}
    for grid in edges.values():
        grid[-1] = np.nextafter(grid[-1], np.inf)
    truth = example.truth(rs.rhale(local, bins=rs.GivenBins(edges)))
    for name in known(example):
        row = truth.sel(feature=name)
        mean = row["cell_effect"].values.reshape(5, 400)
        variance = row["cell_heterogeneity"].values.reshape(5, 400) ** 2
        size = np.abs(mean).max() + 1e-9
        np.testing.assert_allclose(mean.mean(1), row["effect"], rtol=0, atol=1e-6 * size)
        np.testing.assert_allclose(
            variance.mean(1), row["heterogeneity"] ** 2, rtol=0, atol=1e-6 * (variance.max() + 1e-9)
        )
        # Within a cell mu moves by a 2000th of what it does, or jumps in one of 400.
        np.testing.assert_allclose(mean.var(1), row["bin_error"], rtol=0, atol=0.005 * size**2)


def test_cells_of_a_constant_feature():
    example = simulate.TwoRegimes()
    X = example.sample(50, rng=0).assign(x2=1.0)
    effect = rs.rhale(rs.local_effects(None, X, jacobian=example.jacobian))
    row = example.truth(effect).sel(feature="x2")
    for name in ("cell_effect", "cell_heterogeneity", "cell_value", "effect", "curve"):
        assert row[name].isnull().all(), name


@pytest.mark.thorough
def test_truth_survives_a_file(tmp_path):
    example = simulate.OppositeGroups()
    local = rs.local_effects(None, example.sample(50, rng=0), jacobian=example.jacobian)
    truth = example.truth(rs.rhale(local, bins=rs.EqualWidthBins(2)))
    xr.testing.assert_identical(through_a_file(truth, tmp_path), truth)


# --- dense truths --------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize(
    "example", [simulate.Quadratic(), simulate.PiecewiseLinear()], ids=lambda e: type(e).__name__
)
def test_dense_truth_is_near_the_exact_one(example):
    """Within four standard errors in every one of 100 bins of some 1000 rows."""
    X = example.sample(100_000, rng=4)
    dense = rs.simulate.dense_truth(example.model, example.jacobian, X, 100, features="x1")
    truth = example.truth(dense)
    assert (np.abs(dense["effect"] - truth["effect"]) < 4 * dense["effect_se"]).all()
    # Normal effects: the standard deviation has the error sigma / sqrt(2 n). Where a break lies in
    # a bin, beside its edge, a few rows of another level make it less certain.
    star = np.sqrt(truth["heterogeneity"] ** 2 + truth["bin_error"])
    se = star / np.sqrt(2 * dense["n_obs"])
    within = np.abs(dense["heterogeneity"] - star) < 4 * se
    assert within.where(truth["bin_error"] < 0.001, True).all()
    assert (truth["bin_error"] < 0.001).sum() >= 96
    middle = np.abs(dense["curve"] - truth["curve"]).max()
    # Zero-start curves err by sigma / sqrt(n) = 0.003, and where they are centred by as much.
    assert float(middle) < 0.02


@pytest.mark.thorough
def test_dense_truth_is_an_effect_with_its_noise():
    example = simulate.Quadratic()
    X = example.sample(5000, rng=0)
    dense = rs.simulate.dense_truth(example.model, example.jacobian, X, 20, centering="start")
    local = rs.local_effects(None, X, jacobian=example.jacobian)
    options = {"bins": rs.EqualWidthBins(20), "centering": "start", "weighting": "rows"}
    effect = rs.std_error(rs.rhale(local, **options))
    for name in ("effect", "heterogeneity", "curve", "n_obs", "effect_se"):
        np.testing.assert_allclose(dense[name], effect[name], rtol=1e-12, atol=1e-12)
    assert dense.sizes["bin"] == 20
    assert dense.attrs["method"] == "dense truth"
    assert dense["effect_se"].attrs["units"] == effect["effect_se"].attrs["units"]
    # Without a Jacobian the model is differentiated.
    numeric = rs.simulate.dense_truth(example.model, None, X, 20, centering="start")
    np.testing.assert_allclose(numeric["effect"], dense["effect"], rtol=1e-5)


def test_dense_truth_of_one_row_and_of_none(rng):
    """No noise is known there."""
    x = np.concatenate([rng.uniform(0, 1, 50), [2.5, 4.0, 3.9]])[:, None]
    with pytest.warns(UserWarning, match=r"'x0' \(1 of 4\)"):
        dense = rs.simulate.dense_truth(None, 2 * x, x, 4, features="x0")
    assert dense["n_obs"].values[0].tolist() == [50, 0, 1, 2]
    assert np.isnan(dense["effect_se"].values[0]).tolist() == [False, True, True, False]
    with pytest.raises(ValueError, match="n_bins must be at least 1; got 0"):
        rs.simulate.dense_truth(None, 2 * x, x, 0)
    with pytest.raises(KeyError, match="got 'age'"):
        rs.simulate.dense_truth(None, 2 * x, x, 2, features="age")


@pytest.mark.thorough
@every
def test_variances_of_partitions_differ_by_their_bin_errors_alone(example):
    """Corollary 2 of the paper: the least of one, added up along the axis, is that of the other."""
    X = example.sample(400, rng=3)
    local = rs.local_effects(None, X, features=known(example)[0], jacobian=example.jacobian)
    low, high = local["x"].min().item(), local["x"].max().item()
    rng = np.random.default_rng(4)
    errors, variances = [], []
    for n_bins in rng.integers(1, 6, 5):
        inner = np.sort(rng.uniform(low, high, n_bins - 1))
        edges = [low, *inner, high]
        truth = example.truth(rs.rhale(local, bins=rs.GivenBins(edges)))
        width = np.diff(edges)
        sigma, error = truth["heterogeneity"].values.ravel(), truth["bin_error"].values.ravel()
        errors.append(np.sum(error * width))
        variances.append(np.sum((sigma**2 + error) * width))
    assert np.subtract(variances, errors) == pytest.approx(variances[0] - errors[0], rel=1e-6)


def test_a_process_without_a_method_says_which():
    class Half(simulate.Simulator):
        columns = ("a",)

        def _draw(self, n, rng):
            return (rng.uniform(size=n),)

    X = Half().sample(20, rng=0)
    with pytest.raises(NotImplementedError, match="Half must define the method _output; it has n"):
        Half().model(X)
    with pytest.raises(NotImplementedError, match="method _derivatives; it has none"):
        Half().jacobian(X)
    effect = rs.rhale(rs.local_effects(lambda X: X["a"], X))
    with pytest.raises(NotImplementedError, match="method _marginals; it has none"):
        Half().truth(effect)
