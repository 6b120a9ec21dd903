"""One convention of randomness: the seed in a result draws it again (code.md B13, B21)."""

from __future__ import annotations

import inspect

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import rhale_stats as rs
from tests.helpers import public_functions

OPTIONS = {"progress": False}


def model(X):
    X = np.asarray(X)
    return X[:, 0] ** 2 + X[:, 0] * X[:, 1] + X[:, 2]


@pytest.fixture(scope="module")
def X():
    # Ties, which check_unbiased puts in order at random. Every value in so many rows that any half
    # drawn without a seed holds them all: a gap would be warned of.
    rng = np.random.default_rng(0)
    return pd.DataFrame(rng.integers(-4, 5, (240, 3)) / 4, columns=list("abc"))


@pytest.fixture(scope="module")
def local(X):
    return rs.local_effects(model, X, features=["a", "b"])


@pytest.fixture(scope="module")
def effect(local):
    return rs.rhale(local, bins=rs.EqualWidthBins(3))


def refit(rows):
    local = rs.local_effects(model, rows, features=["a"])
    return rs.rhale(local, bins=rs.EqualWidthBins(1))


CALLS = {
    "rhale": lambda X, local, effect, rng: rs.rhale(
        local, bins=rs.EqualWidthBins(2), honest=True, rng=rng
    ),
    "bootstrap": lambda X, local, effect, rng: rs.bootstrap(
        local, effect, n_resamples=8, rng=rng, **OPTIONS
    ),
    "rebin": lambda X, local, effect, rng: rs.bootstrap(
        local, effect, n_resamples=8, rebin=True, rng=rng, **OPTIONS
    ),
    "bootstrap_refit": lambda X, local, effect, rng: rs.bootstrap_refit(
        refit, X, n_resamples=4, n_jobs=1, rng=rng, **OPTIONS
    ),
    "sizes_by_chance": lambda X, local, effect, rng: rs.sizes_by_chance(
        refit, X, features="a", n_resamples=3, n_jobs=1, rng=rng, **OPTIONS
    ),
    "folds": lambda X, local, effect, rng: rs.folds(
        local, bins=rs.EqualWidthBins(1), rng=rng, **OPTIONS
    ),
    "confband": lambda X, local, effect, rng: rs.confband(effect, n_draws=50, rng=rng),
    "compare": lambda X, local, effect, rng: rs.compare(effect, effect, n_draws=50, rng=rng),
    "check_unbiased": lambda X, local, effect, rng: rs.check_unbiased(local, effect, rng=rng),
    "regions": lambda X, local, effect, rng: rs.regions(
        local, "a", test="permutation", n_permutations=19, rng=rng
    ),
    "honest regions": lambda X, local, effect, rng: rs.regions(local, "a", test="honest", rng=rng),
    "all_regions": lambda X, local, effect, rng: rs.all_regions(
        local, n_folds=3, bins=rs.EqualWidthBins(3), rng=rng, **OPTIONS
    ),
    "regional_ale": lambda X, local, effect, rng: rs.regional_ale(
        model, X, "a", test="permutation", n_permutations=19, rng=rng
    ),
    "regional_pdp": lambda X, local, effect, rng: rs.regional_pdp(
        model, X, "a", test="permutation", n_permutations=19, rng=rng
    ),
    "regional_shap": lambda X, local, effect, rng: rs.regional_shap(
        model, X, "a", background=5, n_bins=3, rng=rng
    ),
    "shap_dependence": lambda X, local, effect, rng: rs.shap_dependence(
        model, X, features="a", background=5, rng=rng
    ),
    "interaction_matrix": lambda X, local, effect, rng: rs.interaction_matrix(
        local, n_permutations=9, rng=rng, **OPTIONS
    ),
    "h_statistic": lambda X, local, effect, rng: rs.h_statistic(
        model, X, n_rows=30, rng=rng, **OPTIONS
    ),
}
# What draws the same rows again, where the others have `seed`.
SEEDS = {"h_statistic": "row_seed"}


def same(a, b):
    """Equal but for the seed: a Generator has none."""
    names = {"seed", "row_seed"}
    for one in (a, b):
        one.attrs = {key: value for key, value in one.attrs.items() if key not in names}
    xr.testing.assert_identical(a, b)


@pytest.mark.filterwarnings("ignore:Bins without rows")
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.slow
def test_the_seed_in_a_result_draws_it_again(name, X, local, effect):
    """So does a generator from that seed, which then moves on."""
    call, seeded = CALLS[name], SEEDS.get(name, "seed")
    first = call(X, local, effect, None)
    seed = first.attrs[seeded]
    assert isinstance(seed, int)
    again = call(X, local, effect, seed)
    xr.testing.assert_identical(again, first)
    if name == "h_statistic":
        return  # its rows are drawn, nothing else
    generator = np.random.default_rng(seed)
    drawn = call(X, local, effect, generator)
    assert drawn.attrs["seed"] == -1
    same(drawn, first)
    # What it draws next is something else, wherever numbers are printed of what was drawn.
    if name in ("bootstrap", "folds", "confband", "rhale", "bootstrap_refit", "rebin"):
        assert not call(X, local, effect, generator).equals(first)
        assert call(X, local, effect, None).attrs["seed"] != seed


@pytest.mark.parametrize("function", public_functions().values())
def test_nothing_draws_from_a_fixed_seed_by_default(function):
    rng = inspect.signature(function).parameters.get("rng")
    assert rng is None or rng.default is None


@pytest.mark.thorough
@pytest.mark.parametrize("rng", [0, np.random.default_rng(0), None], ids=["seed", "rng", "none"])
def test_equal_outputs_are_drawn_equally(rng, X):
    """code.md B13: with a Generator the outputs had weights of their own."""

    def twice(X):
        return np.column_stack([model(X), model(X)])

    local = rs.local_effects(twice, X, features=["a", "b"])
    bins = rs.EqualWidthBins(2)
    effect = rs.rhale(local, bins=bins)
    for found in (
        rs.bootstrap(local, effect, n_resamples=8, rng=rng, **OPTIONS),
        rs.folds(local, bins=bins, rng=rng, **OPTIONS),
        rs.confband(effect, n_draws=50, rng=rng),
        rs.check_unbiased(local, effect, rng=rng),
        rs.rhale(local, bins=bins, honest=True, rng=rng),
    ):
        first, second = (found.isel(output=number, drop=True) for number in (0, 1))
        same(first, second)


@pytest.mark.parametrize("rng", [0, np.random.default_rng(0), None], ids=["seed", "rng", "none"])
def test_features_with_rows_of_their_own_are_drawn_alike(rng, X):
    """The second feature has the values of the first, five rows further up."""
    a = X["a"].to_numpy().copy()
    a[:5] = np.nan
    J = np.column_stack([np.arange(240.0), np.roll(np.arange(240.0), -5)])
    table = pd.DataFrame({"a": a, "b": np.roll(a, -5)})
    local = rs.local_effects(None, table, jacobian=J, features=["a", "b"], missing="drop")
    effect = rs.rhale(local, bins=rs.EqualWidthBins(1))
    for found in (
        rs.bootstrap(local, effect, n_resamples=8, rng=rng, **OPTIONS)["average_effect"],
        rs.folds(local, bins=rs.EqualWidthBins(1), rng=rng, **OPTIONS)["effect"],
    ):
        first, second = (found.sel(feature=name, drop=True) for name in "ab")
        xr.testing.assert_allclose(first, second, rtol=1e-12)


@pytest.mark.parametrize(
    ("rng", "error", "message"),
    [
        (-1, ValueError, "rng must be at least 0 where it is a seed; got -1"),
        (
            "x",
            TypeError,
            "rng must be a numpy Generator, .*; got 'x' of type str",
        ),
        (
            1.5,
            TypeError,
            "rng must be a numpy Generator, .*; got 1.5 of type float",
        ),
        (
            True,
            TypeError,
            "rng must be a numpy Generator, .*; got True of type bool",
        ),
    ],
)
def test_unusable_seeds(rng, error, message, local, effect):
    for call in (
        lambda: rs.confband(effect, rng=rng),
        lambda: rs.bootstrap(local, effect, rng=rng),
        lambda: rs.rhale(local, rng=rng),
        lambda: rs.regions(local, "a", rng=rng),
        lambda: rs.simulate.TwoRegimes().sample(3, rng=rng),
    ):
        with pytest.raises(error, match=message):
            call()


def test_the_seed_of_a_sample_draws_it_again():
    example = rs.simulate.TwoRegimes()
    first = example.sample(5)
    pd.testing.assert_frame_equal(example.sample(5, rng=first.attrs["seed"]), first)
    assert not example.sample(5).equals(first)
