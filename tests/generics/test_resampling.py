"""Bootstrap and folds: rows repeated, streams, closed forms, other people's errors."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal

import rhale_stats as rs
from rhale_stats.arguments import progress
from rhale_stats.arrays import resample
from rhale_stats.bins.description import describe, rule_of
from rhale_stats.effects import replicates
from rhale_stats.effects.sizes import SIZES
from rhale_stats.local.rows import is_estimation_row
from rhale_stats.schema.feature_result import one_feature
from tests.helpers import daily, local_of

WEIGHTINGS = pytest.mark.parametrize("weighting", ["axis", "rows"])
CENTERINGS = pytest.mark.parametrize("centering", ["mean", "start", "integral"])
EDGES = np.array([-1, -0.5, 0.1, 0.4, 1])
N = 240


def table(n=N, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    first = 1 + 3 * X[:, 0] + (1 + X[:, 0] ** 2) * rng.standard_gamma(1, n)
    return X, np.column_stack([first, 4 * X[:, 0]])


def in_the_same_bins(effect, local, centering):
    """`rhale` of other rows with the edges, and the linear bins, of ``effect``, over rows."""
    names = effect["feature"].values
    edges = {name: one_feature(effect, str(name)).bin_edges for name in names}
    rule = Lines(edges, effect) if "slope" in effect else rs.GivenBins(edges)
    return over_rows(local, rule, centering)


def over_rows(local, rule, centering):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Bins without rows", UserWarning)
        return rs.rhale(local, bins=rule, centering=centering, weighting="rows")


def cells_of(effect, name):
    """Edges of the cells of one feature's curve."""
    return one_feature(effect, name).edges


def in_the_same_cells(effect, local, centering):
    """As `in_the_same_bins`; effects and curves by the cells of ``effect``, held as bins are."""
    names = [str(name) for name in effect["feature"].values]
    cells = over_rows(
        local, rs.GivenBins({name: cells_of(effect, name) for name in names}), centering
    )
    out = in_the_same_bins(effect, local, centering).copy(deep=True)
    for number, name in enumerate(names):
        row, fine = one_feature(effect, name), one_feature(cells, name)
        edges, at = row.bin_edges, fine.bin_edges
        out["curve"][number, : len(edges)] = fine["curve"].values[np.searchsorted(at, edges)]
        width = np.where(fine["n_obs"] > 0, np.diff(at), 0.0)
        starts = np.searchsorted(at, edges[:-1])
        along = np.add.reduceat(width * np.nan_to_num(fine["effect"].values), starts)
        with np.errstate(invalid="ignore"):
            out["effect"][number, : len(starts)] = along / np.add.reduceat(width, starts)
    return out, cells


class Lines(rs.GivenBins):
    """Given bins, some of them linear."""

    degree = 1

    def __init__(self, edges, effect):
        super().__init__(edges)
        slope = {str(name): one_feature(effect, str(name))["slope"] for name in edges}
        object.__setattr__(self, "lines", {name: (s != 0).values for name, s in slope.items()})

    def choose(self, candidates):
        return [
            found._replace(linear=self.lines[candidate.name])
            for candidate, found in zip(candidates, super().choose(candidates), strict=True)
        ]


def by_cells(expected, effect, cells):
    """Standard errors of effects and curves from those of the cells, in place."""
    cells = rs.std_error(cells)
    for number, name in enumerate(effect["feature"].values):
        edges, fine = (
            one_feature(effect, str(name)).bin_edges,
            one_feature(cells, number),
        )
        at = fine.bin_edges
        starts = np.searchsorted(at, edges[:-1])
        spread = np.add.reduceat((np.diff(at) * fine["effect_se"].values) ** 2, starts)
        expected["effect_se"][number, : len(starts)] = np.sqrt(spread) / np.diff(edges)
        own = fine["curve_se"].values[np.searchsorted(at, edges)]
        expected["curve_se"][number, : len(edges)] = own


def linear_effect(local, centering, weighting="axis"):
    rule = rs.AdaptiveBins(20, min_obs=30, penalty=0.5)
    effect = rs.rhale(local, bins=rule, centering=centering, weighting=weighting)
    assert (effect["slope"] != 0).any()
    return effect


def weights_of(boot_rng, n_draws, units, scheme="multinomial"):
    """Those that `bootstrap` draws, from their streams."""
    streams = np.random.default_rng(boot_rng).spawn(n_draws)
    return [resample.draw_weights(scheme, units, stream) for stream in streams]


# --- replicates ----------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kind", "weights", "centering"),
    [
        # Every pair of two settings once: a Latin square.
        *(("constant", "none", "mean"), ("linear", "none", "start"), ("gap", "none", "integral")),
        *(("constant", "precision", "start"), ("linear", "precision", "integral")),
        *(("gap", "precision", "mean"), ("constant", "frequency", "integral")),
        *(("linear", "frequency", "mean"), ("gap", "frequency", "start")),
    ],
)
@WEIGHTINGS
@pytest.mark.filterwarnings("ignore:Bins without rows")
def test_a_replicate_is_rhale_of_the_rows_as_often_as_drawn(kind, centering, weights, weighting):
    n = 1000  # so many that, with this seed, no cell is left without rows
    X, g = table(n)
    if kind == "gap":
        X[:, 0] = np.where(X[:, 0] > 0.5, X[:, 0] + 1, X[:, 0])
    rng = np.random.default_rng(1)
    w = {"none": np.ones(n), "precision": rng.uniform(0.5, 1, n)}.get(
        weights, rng.integers(1, 4, n).astype(float)
    )
    options = {} if weights == "none" else {"weights": w, "weight_kind": weights}
    local = local_of(X, g, **options)
    if kind == "linear":
        effect = linear_effect(local, centering, weighting)
    else:
        bins = rs.GivenBins([-1, -0.5, 0.5, 1.5, 2] if kind == "gap" else EDGES)
        effect = rs.rhale(local, bins=bins, centering=centering, weighting=weighting)
    boot = rs.bootstrap(local, effect, n_resamples=4, chains=2, rng=7)
    assert dict(boot.sizes) | {"chain": 2, "draw": 2} == dict(boot.sizes)
    size = w if weights == "frequency" else None
    drawn = weights_of(7, 4, resample.ResampledUnits(None, [np.arange(n)], size))
    for number, weight in [(0, drawn[0]), (3, drawn[3])]:
        found = boot.isel(chain=number // 2, draw=number % 2)
        # Repeated rows, which keep their weights.
        times = np.round(weight * (w if weights == "frequency" else 1)).astype(int)
        rows = np.repeat(np.arange(n), times)
        again = {"weights": w[rows]} if weights == "precision" else {}
        repeated = local_of(X[rows], g[rows], **again)
        if weighting == "axis":
            expected, pieces = in_the_same_cells(effect, repeated, centering)
        else:
            expected = pieces = in_the_same_bins(effect, repeated, centering)
        sizes = rs.effect_sizes(pieces, percentiles=(0, 100))
        expected = expected.rhale.in_bins().assign({name: sizes[name].variable for name in SIZES})
        for name in (
            *("effect", "heterogeneity", "curve", "average_effect"),
            *("heterogeneity_index", "heterogeneity_output"),
            *SIZES,
            *(("slope",) if kind == "linear" else ()),
        ):
            assert_allclose(found[name], expected[name], rtol=1e-9, atol=1e-11, err_msg=name)
        empty = (expected["n_obs"] == 0) & (expected["bin"] < expected["n_bins"])
        assert_array_equal(found["n_empty"], empty.sum("bin"))
    for name in boot.data_vars:
        assert boot[name].attrs["long_name"]


@pytest.mark.thorough
@CENTERINGS
@WEIGHTINGS
def test_standard_errors_of_a_replicate(centering, weighting):
    n = 1000
    X, g = table(n)
    local = local_of(X, g)
    effect = rs.rhale(local, bins=rs.GivenBins(EDGES), centering=centering, weighting=weighting)
    boot = rs.bootstrap(local, effect, n_resamples=4, studentize=True, rng=5)
    drawn = weights_of(5, 4, resample.ResampledUnits(None, [np.arange(n)], None))
    for number, weight in enumerate(drawn):
        rows = np.repeat(np.arange(n), weight.astype(int))
        repeated = local_of(X[rows], g[rows])
        expected = rs.std_error(in_the_same_bins(effect, repeated, centering))
        if weighting == "axis":
            by_cells(expected, effect, in_the_same_cells(effect, repeated, centering)[1])
        for name in ("effect_se", "heterogeneity_se", "curve_se", "average_effect_se"):
            found = boot[name].isel(chain=number, draw=0)
            assert_allclose(found, expected[name], rtol=1e-8, atol=1e-15)


@pytest.mark.thorough
def test_results_do_not_depend_on_threads_and_chunks(monkeypatch):
    local = local_of(*table())
    effect = rs.rhale(local, bins=rs.GivenBins(EDGES))
    again = rs.rhale(local, bins=rs.AdaptiveBins(10))
    expected = rs.bootstrap(local, effect, n_resamples=44, rng=2)
    own_bins = rs.bootstrap(local, again, n_resamples=8, rebin=True, rng=2)
    for threads, chunk in ((1, 1), (3, 1 << 17), (16, 1 << 28)):
        for module in (replicates, replicates):
            monkeypatch.setattr(module, "cpus", lambda n=threads: n)
        monkeypatch.setattr(replicates, "CHUNK_BYTES", chunk)
        xr.testing.assert_identical(rs.bootstrap(local, effect, n_resamples=44, rng=2), expected)
        found = rs.bootstrap(local, again, n_resamples=8, rebin=True, rng=2)
        xr.testing.assert_identical(found, own_bins)


@pytest.mark.thorough
def test_chains_are_cut_from_one_sequence():
    local = local_of(*table())
    effect = rs.rhale(local, bins=rs.GivenBins(EDGES))
    four = rs.bootstrap(local, effect, n_resamples=12, chains=4, rng=2)
    two = rs.bootstrap(local, effect, n_resamples=12, chains=2, rng=2)
    assert four["effect"].dims == ("chain", "draw", "feature", "bin")
    assert four.sizes["draw"] == 3
    flat = [one["curve"].values.reshape(12, 2, 5) for one in (four, two)]
    assert_array_equal(*flat)
    assert len(np.unique(flat[0][:, 0, 0])) == 12


def test_units_that_are_drawn():
    """By a weight that is the estimate: each row's local effect is 1 in one group, 0 elsewhere."""
    n, group = 60, np.repeat(np.arange(6), 10)
    g = (group[:, None] == np.arange(6)).astype(float)
    local = local_of(np.random.default_rng(0).uniform(size=(n, 6)), g)
    effect = rs.rhale(local, bins=rs.EqualWidthBins(1))
    shares = {}
    for name, options in {
        "rows": {},
        "groups": {"groups": [f"g{code}" for code in group]},
        "strata": {"strata": group},
        "both": {"groups": np.arange(n) // 5, "strata": group},
        "halves": {"groups": group, "strata": group > 2},
    }.items():
        boot = rs.bootstrap(local, effect, n_resamples=200, rng=1, **options)
        shares[name] = boot["average_effect"].values.reshape(200, 6)
        assert boot.attrs["source"] == ("groups of rows" if "groups" in options else "rows")
    # Of 6 groups each share is a count of sixths, and varies ten times as much as with rows.
    assert_allclose(shares["groups"] * 6, np.round(shares["groups"] * 6), atol=1e-9)
    assert shares["groups"].var() / shares["rows"].var() > 6
    assert_allclose(shares["strata"], 1 / 6, rtol=1e-9)
    assert_allclose(shares["both"], 1 / 6, rtol=1e-9)
    assert_allclose(shares["halves"][:, :3].sum(axis=1), 0.5, rtol=1e-9)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("scheme", "empties"), [("bayesian", False), ("multinomial", True), ("poisson", True)]
)
@WEIGHTINGS
@pytest.mark.filterwarnings("ignore:Replicates vary")
def test_bins_that_replicates_leave_without_rows(scheme, empties, weighting):
    x = np.concatenate([np.linspace(0, 1, 30), [1.5, 1.6, 2]])[:, None]
    local = local_of(x, np.sin(9 * x))
    effect = rs.rhale(local, bins=rs.GivenBins([0, 1.2, 2]), weighting=weighting)
    boot = rs.bootstrap(local, effect, n_resamples=400, scheme=scheme, rng=1)
    empty = boot["n_empty"].values
    assert_array_equal(empty, np.isnan(boot["effect"]).sum("bin"))
    # Three rows are all left out with probability exp(-3) = 5 %, about.
    assert (empty > 0).any() == empties
    assert empty.mean() < 0.1
    # Cells of a curve keep their estimates; where bins are its cells there is none.
    lost = (empty > 0) & (weighting == "rows")
    assert_array_equal(np.isnan(boot["curve"]).all("bin_edge"), lost)
    assert boot.attrs["scheme"] == scheme
    bounds = rs.confint(effect, boot)["effect_ci"]
    assert np.isfinite(bounds).all()


@pytest.mark.thorough
@WEIGHTINGS
def test_linear_bins_whose_rows_are_at_one_place(weighting):
    """Two places in the last bin: replicates with one of them have no line, and are counted."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(0, 1, 30), [1.3, 1.7]])[:, None]
    local = local_of(x, 5 * x + rng.normal(size=x.shape) / 9)
    effect = rs.rhale(local, bins=rs.GivenBins([0, 1, 2]), weighting=weighting).assign(
        slope=(("feature", "bin"), [[5.0, 5.0]])
    )
    boot = rs.bootstrap(local, effect, n_resamples=200, rng=1)
    streams = weights_of(1, 200, resample.ResampledUnits(None, [np.arange(32)], None))
    places = np.array([np.sum(weight[30:] > 0) for weight in streams])
    assert {0, 1, 2} <= set(places)
    assert_array_equal(boot["n_empty"].values.ravel(), places < 2)
    assert_array_equal(np.isnan(boot["slope"].isel(bin=1)).values.ravel(), places < 2)
    assert_allclose(boot["slope"].isel(bin=1).values.ravel()[places == 2], 5, atol=2)


@pytest.mark.thorough
def test_bootstrap_and_central_limit_theorem():
    """2000 replicates: a standard deviation errs by 1 / sqrt(4000) = 1.6 %, heavy tails apart."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (1000, 2))
    g = np.column_stack([2 + 4 * X[:, 1], 4 * X[:, 0]])
    local = local_of(X, g)
    effect = rs.std_error(rs.rhale(local, bins=rs.EqualWidthBins(5)))
    in_bins = effect.rhale.in_bins()
    boot = rs.bootstrap(local, effect, n_resamples=2000, rng=4)
    for name in ("effect", "curve", "average_effect"):
        spread = boot[name].std(("chain", "draw"), ddof=1)
        # A bin has 200 rows: the bootstrap's variance of a mean is 1 / 200 smaller.
        expected = in_bins[f"{name}_se"]
        assert spread.shape == expected.shape
        ratio = spread / expected.values
        assert_allclose(ratio, 1, atol=0.055, err_msg=name)
        assert abs(float(ratio.mean()) - 1) < 0.03


@pytest.mark.parametrize(
    ("scheme", "strata", "expected"),
    [
        ("multinomial", False, 1 - 1 / 500),
        ("multinomial", True, 24 / 25),
        ("poisson", False, 1),
        ("bayesian", False, 24 / 26),
    ],
)
@pytest.mark.parametrize("weighting", daily(["axis", "rows"]))
@pytest.mark.slow
def test_replicates_have_so_much_of_the_variance_of_a_mean(scheme, strata, expected, weighting):
    """20 bins of 25 rows, 2000 replicates: an error of sqrt(2 / 40000) = 0.7 % on average.

    What is neglected is of the order of 1 / 25^2, 0.2 %; of two cells a bin 1 / 12^2, 0.7 %.
    """
    x = (np.arange(500)[:, None] + 0.5) / 500
    local = local_of(x, np.random.default_rng(0).normal(size=(500, 1)))
    effect = rs.std_error(rs.rhale(local, bins=rs.EqualWidthBins(20), weighting=weighting))
    n, neglected = 25, 0.002
    if weighting == "axis":
        assert set(one_feature(effect, 0).moments.n_obs) == {12, 13}
        n, neglected = 12.5, 0.007
        expected = (n - 1) / (n + 1) if scheme == "bayesian" else expected
    options = {"strata": np.arange(500) // 25} if strata else {}
    boot = rs.bootstrap(local, effect, n_resamples=2000, scheme=scheme, rng=1, **options)
    ratio = boot["effect"].var(("chain", "draw"), ddof=1) / effect["effect_se"] ** 2
    assert_array_equal(effect["n_obs"], 25)
    assert float(ratio.mean()) == pytest.approx(expected, rel=3 * 0.007 + neglected)
    found = resample.shortfall(
        scheme, np.array([n]), np.array([n - 1]), boot.attrs["n_units"], boot.attrs["n_strata"]
    )
    assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.thorough
def test_no_model_is_asked():
    X, _ = table()
    calls = []

    def model(X):
        calls.append(len(X))
        return X[:, 0] * X[:, 1]

    local = rs.local_effects(model, X)
    effect = rs.std_error(rs.rhale(local, bins=rs.GivenBins(EDGES)))
    asked = len(calls)
    boot = rs.bootstrap(local, effect, n_resamples=8, rng=0)
    rs.bootstrap(local, rs.rhale(local), n_resamples=8, rebin=True, rng=0)
    rs.folds(local, n_folds=3, rng=0)
    rs.effect_sizes(effect, boot)
    rs.confint(effect, boot)
    assert len(calls) == asked > 0


@pytest.mark.thorough
def test_rows_that_chose_the_edges_and_rows_without_weight_stay_out():
    X, g = table()
    honest = rs.rhale(local_of(X, g), bins=rs.EqualWidthBins(3), honest=True, rng=0)
    used = is_estimation_row(local_of(X, g), honest)
    found = rs.bootstrap(local_of(X, g), honest, n_resamples=4, rng=3)
    g[~used] = 1e6
    again = rs.bootstrap(local_of(X, g), honest, n_resamples=4, rng=3)
    assert_array_equal(found["effect"], again["effect"])
    weights = np.where(np.arange(N) < 100, 0.0, 1)
    local = local_of(X, g, weights=weights)
    part = local_of(X[100:], g[100:])
    boots = [
        rs.bootstrap(rows, rs.rhale(rows, bins=rs.GivenBins(EDGES)), n_resamples=4, rng=3)
        for rows in (local, part)
    ]
    assert_allclose(boots[0]["effect"], boots[1]["effect"], rtol=1e-12)


@pytest.mark.thorough
def test_accelerations_of_frequency_weights_are_those_of_repeated_rows():
    X, g = table()
    times = np.random.default_rng(0).integers(1, 5, N)
    local = local_of(X, g, weights=times, weight_kind="frequency")
    rows = np.repeat(np.arange(N), times)
    found, expected = (
        rs.bootstrap(one, rs.rhale(one, bins=rs.GivenBins(EDGES)), n_resamples=4, rng=3)
        for one in (local, local_of(X[rows], g[rows]))
    )
    for name in ("effect", "heterogeneity", "curve"):
        name = f"{name}_acceleration"
        assert_allclose(found[name], expected[name], rtol=1e-7, atol=1e-12)
        assert (np.abs(found[name]) > 0).any()


def test_an_additive_model_has_no_width_and_says_why():
    X, _ = table()
    local = local_of(X, np.full_like(X, 2.0))
    effect = rs.rhale(local, bins=rs.GivenBins(EDGES))
    boot = rs.bootstrap(local, effect, n_resamples=20, rng=0)
    assert_allclose(boot["effect"], 2, rtol=1e-14)
    assert boot.attrs["source"] == "rows"
    assert boot.attrs["model"] == "as given"


def test_a_statistic_of_all_replicates():
    local = local_of(*table())
    effect = rs.rhale(local, bins=rs.GivenBins(EDGES))
    calls = []

    def ratio(replicates):
        calls.append(1)
        return replicates["effect"].isel(bin=0) / replicates["effect"].isel(bin=1)

    boot = rs.bootstrap(local, effect, n_resamples=8, statistic=ratio, rng=0)
    expected = boot["effect"].isel(bin=0) / boot["effect"].isel(bin=1)
    assert len(calls) == 1
    assert_array_equal(boot["statistic"], expected)
    assert boot.attrs["scheme"] == "multinomial"
    named = rs.bootstrap(
        local,
        effect,
        n_resamples=8,
        statistic=lambda b: xr.Dataset({"steepest": abs(b["effect"]).max("bin")}),
        rng=0,
    )
    assert_array_equal(named["steepest"], abs(boot["effect"]).max("bin"))


def test_unusable_bootstraps():
    X, g = table()
    local = local_of(X, g)
    effect = rs.rhale(local, bins=rs.GivenBins(EDGES))
    group = np.arange(N) // 2
    with pytest.raises(ValueError, match="n_resamples must be at least 1; got 0"):
        rs.bootstrap(local, effect, n_resamples=0)
    with pytest.raises(ValueError, match="scheme must be one of .*; got 'wild'"):
        rs.bootstrap(local, effect, scheme="wild")
    for name in ("groups", "strata"):
        with pytest.raises(
            ValueError, match=rf"{name} must .* 240 rows of local; got shape \(9,\)"
        ):
            rs.bootstrap(local, effect, **{name: np.zeros(9)})
    with pytest.raises(ValueError, match="some group has rows in two strata"):
        rs.bootstrap(local, effect, groups=group, strata=np.arange(N) % 2)
    with pytest.raises(ValueError, match="give them other numbers of rows"):
        rs.bootstrap(local_of(X[1:], g[1:]), effect, n_resamples=4)
    with pytest.raises(ValueError, match="studentize must be False with linear bins"):
        rs.bootstrap(local, linear_effect(local, "mean", "rows"), studentize=True)
    with pytest.raises(ValueError, match="this one is debiased"):
        rs.bootstrap(local, rs.debias(effect, rs.check_unbiased(local, effect)))
    with pytest.raises(ValueError, match="a rule that can be applied again, .*; got GivenBins"):
        rs.bootstrap(local, effect, rebin=True, n_resamples=4)
    with pytest.raises(TypeError, match="local must be .*; got ndarray"):
        rs.bootstrap(X, effect)
    with pytest.raises(TypeError, match="effect must be .*; got ndarray"):
        rs.bootstrap(local, X)


# --- edges chosen again --------------------------------------------------------------------------

RULES = [
    rs.AdaptiveBins(10),
    rs.AdaptiveBins(20, degree=0, penalty=1.5, min_obs=20),
    rs.OptimalBins(10, min_obs=12),
    rs.OptimalBins(),
    rs.GreedyBins(12, discount=0.25),
    rs.EqualWidthBins(5),
    rs.QuantileBins(4),
    rs.BestEqualWidthBins(6),
]


@pytest.mark.thorough
@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_a_rule_is_read_from_its_description(rule):
    assert rule_of(*describe(rule)) == rule


def test_rules_that_cannot_be_read():
    with pytest.raises(ValueError, match="AdaptiveBins, .*QuantileBins; got GivenBins"):
        rule_of(*describe(rs.GivenBins([0, 1])))


@pytest.mark.thorough
@pytest.mark.parametrize("rule", [RULES[0], RULES[2], rs.EqualWidthBins(40)], ids=repr)
def test_edges_chosen_again(rule):
    X, g = table(400)
    local = local_of(X, g)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Bins without rows", UserWarning)
        effect = rs.rhale(local, bins=rule)
    boot = rs.bootstrap(local, effect, n_resamples=12, rebin=True, n_grid=21, rng=1)
    assert boot["curve"].dims == ("chain", "draw", "feature", "grid")
    for number in (0, 1):
        ends = one_feature(effect, number).edges[[0, -1]]
        assert_allclose(boot["grid_value"][number], np.linspace(*ends, 21), rtol=1e-12)
    assert ((boot["edge_frequency"] >= 0) & (boot["edge_frequency"] <= 1)).all()
    assert boot.sizes["grid_cell"] == 20
    again = rs.bootstrap(local, effect, n_resamples=12, rebin=True, n_grid=21, rng=1)
    xr.testing.assert_identical(boot, again)
    assert boot.attrs["bins"] == "chosen again in every replicate"
    # By hand.
    weight = weights_of(1, 12, resample.ResampledUnits(None, [np.arange(400)], None))[7]
    sample = local_of(X, g, weights=weight)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Bins without rows", UserWarning)
        expected = rs.rhale(sample, bins=rule)
    found = boot.isel(chain=2, draw=1)
    assert_array_equal(found["n_bins"], expected["n_bins"])
    for name in ("x0", "x1"):
        grid = boot["grid_value"].sel(feature=name).values
        curve = rs.predict(expected, grid, name)
        assert_allclose(found["curve"].sel(feature=name), curve, atol=1e-12)
    if isinstance(rule, rs.EqualWidthBins):
        # 39 inner edges that move little: nearly always one in every cell.
        assert boot["edge_frequency"].mean() > 0.9
        assert_array_equal(boot["n_bins"], 40)


@pytest.mark.thorough
def test_edges_chosen_again_count_one_edge_in_its_cell():
    """A break at 0.5 that no replicate misses."""
    x = np.random.default_rng(0).uniform(size=(400, 1))
    local = local_of(x, np.where(x < 0.5, 1.0, -1.0))
    effect = rs.rhale(local, bins=rs.OptimalBins(20, min_obs=5))
    boot = rs.bootstrap(local, effect, n_resamples=20, rebin=True, n_grid=6, rng=1)
    assert boot["edge_frequency"].values[0, 2] == 1
    assert_allclose(boot["effect"].isel(grid=1), 1, atol=1e-9)
    assert np.isnan(boot["effect"].isel(grid=0)).any()  # beyond the rows that were drawn


# --- folds ---------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_folds_by_hand():
    X, g = table()
    local = local_of(X, g)
    options = {"n_folds": 4, "n_repeats": 3, "rng": 7}
    found = rs.folds(local, bins=rs.EqualWidthBins(1), weighting="rows", **options)
    assert found["effect"].dims == ("repeat", "fold", "feature", "grid")
    rng = np.random.default_rng(7)
    means = np.array(
        [[g[rows].mean(axis=0) for rows in np.array_split(rng.permutation(N), 4)] for _ in range(3)]
    )
    assert_allclose(found["effect"].isel(grid=50), means, rtol=1e-12)
    assert_allclose(found["effect_mean"].isel(grid=50), means.mean(axis=(0, 1)), rtol=1e-12)
    se = (means.std(axis=1, ddof=1) / 2).mean(axis=0)
    assert_allclose(found["effect_se"].isel(grid=50), se, rtol=1e-12)
    assert found["effect_se"].attrs["source"] == "rows"
    # The ends of the axis are in one fold only.
    assert np.isnan(found["curve_se"].isel(grid=[0, -1])).all()


@pytest.mark.parametrize("weighting", daily(["rows", "axis"]))
@pytest.mark.slow
def test_folds_estimate_the_error_of_a_mean(weighting):
    local = local_of(*table())
    one = {"bins": rs.EqualWidthBins(1), "weighting": weighting}
    found = rs.folds(local, **one, n_folds=5, n_repeats=30, n_grid=3, rng=0)
    expected = rs.std_error(rs.rhale(local, **one))["effect_se"].isel(bin=0)
    # The mean of sd over folds, c4(5) = .940 of its root mean square; and 30 repeats of a value
    # that varies by 1 / sqrt(8) of itself.
    assert_allclose(found["effect_se"].isel(grid=1), 0.940 * expected, rtol=4 * 0.354 / np.sqrt(30))


@pytest.mark.thorough
def test_folds_without_rows_in_a_bin_warn_once():
    local = local_of(*table(40))
    with pytest.warns(UserWarning, match=r"Bins without rows in \d+ of 12 folds") as caught:
        found = rs.folds(local, bins=rs.EqualWidthBins(8), n_folds=4, n_repeats=3, rng=0)
    assert len(caught) == 1
    assert np.isnan(found["effect"]).any()


def test_unusable_folds():
    local = local_of(*table())
    with pytest.raises(ValueError, match="n_folds must be at least 2; got 1"):
        rs.folds(local, n_folds=1)
    with pytest.raises(ValueError, match="n_folds must not exceed .*; got 5 for 3"):
        rs.folds(local.isel(obs=slice(3)))
    with pytest.raises(ValueError, match="min_obs must not exceed the number of rows"):
        rs.folds(local, bins=rs.OptimalBins(min_obs=100))


def test_rebin_refuses_frequency_weights(rng):
    x = rng.uniform(size=(60, 1))
    local = rs.local_effects(
        None, x, jacobian=x, features=0, weights=rng.integers(1, 4, 60), weight_kind="frequency"
    )
    effect = rs.rhale(local, bins=rs.AdaptiveBins())
    with pytest.raises(ValueError, match="rebin must be False with frequency weights"):
        rs.bootstrap(local, effect, n_resamples=4, rebin=True)


@pytest.mark.slow
def test_folds_of_features_with_rows_of_their_own():
    """code.md B8: all was NaN, without a warning, where a feature had a missing value."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-1, 1, (400, 3)), columns=list("abc"))
    X.loc[:9, "a"] = np.nan
    X.loc[20:24, "c"] = np.nan
    J = pd.DataFrame({"a": 1 + X["b"], "b": X["b"] ** 2, "c": X["b"]})
    local = rs.local_effects(None, X, jacobian=J, missing="drop")
    options = {"bins": rs.EqualWidthBins(1), "n_folds": 4, "n_grid": 3, "rng": 1}
    found = rs.folds(local, **options)
    assert list(found["feature"].values) == ["a", "b", "c"]
    for name in "abc":
        rows = X[name].notna()
        own = rs.local_effects(None, X[rows], jacobian=J[rows], features=name)
        expected = rs.folds(own, **options).isel(feature=0)
        one = found.sel(feature=name)
        assert_array_equal(one["grid_value"], expected["grid_value"])
        for suffix in ("", "_mean", "_se"):
            assert_allclose(one["effect" + suffix], expected["effect" + suffix], rtol=1e-12)
        assert expected["effect_se"].notnull().any()
    with pytest.raises(ValueError, match="got 396 for 395 rows of 'c'"):
        rs.folds(local.sel(feature=["b", "c"]), n_folds=396, bins=rs.EqualWidthBins(1))


@pytest.mark.thorough
def test_folds_by_output():
    X = np.random.default_rng(0).uniform(-1, 1, (200, 2))

    def model(X):
        return np.column_stack([X[:, 0] ** 2, 3 * X[:, 1]])

    options = {"bins": rs.EqualWidthBins(2), "n_grid": 5, "rng": 1}
    both = rs.folds(rs.local_effects(model, X), **options)
    first = rs.folds(rs.local_effects(lambda X: model(X)[:, 0], X), **options)
    assert_allclose(both["effect_se"].isel(output=0), first["effect_se"], rtol=1e-9, atol=1e-12)


def test_folds_leave_out_rows_without_weight():
    X, g = table()
    keep = np.arange(N) % 3 > 0
    options = {"bins": rs.EqualWidthBins(2), "n_folds": 3, "rng": 1}
    found = rs.folds(local_of(X, g, weights=keep.astype(float)), **options)
    expected = rs.folds(local_of(X[keep], g[keep]), **options)
    assert_allclose(found["effect_se"], expected["effect_se"], rtol=1e-12)


@pytest.mark.thorough
def test_folds_show_a_bar(monkeypatch, capsys):
    """reliability.md 22: a thousand folds took half a minute in silence."""
    monkeypatch.setattr(progress, "PROGRESS_DELAY", 0)
    local = local_of(*table())
    rs.folds(local, bins=rs.EqualWidthBins(1), n_folds=5, rng=1)
    assert "folds" in capsys.readouterr().err
    rs.folds(local, bins=rs.EqualWidthBins(1), n_folds=5, rng=1, progress=False)
    assert not capsys.readouterr().err


@pytest.mark.slow
def test_replicates_with_edges_of_their_own_keep_the_least_rows_of_the_rule():
    """code.md B12: a row drawn again halves the effective rows, and min_obs was twice as strict."""
    example = rs.simulate.PiecewiseLinear(sd=0.5)
    X = example.sample(1000, rng=0)
    local = rs.local_effects(None, X, jacobian=example.jacobian, features="x1")

    def numbers(rule):
        effect = rs.rhale(local, bins=rule)
        options = {"n_resamples": 24, "rebin": True, "rng": 0, "progress": False}
        boot = rs.bootstrap(local, effect, **options)
        return float(effect["n_bins"][0]), boot["n_bins"].values

    # The same rule by its default, a twentieth of the rows, and by their number.
    by_share, drawn_by_share = numbers(rs.OptimalBins())
    by_number, drawn_by_number = numbers(rs.OptimalBins(min_obs=50))
    assert by_share == by_number
    assert abs(drawn_by_number - drawn_by_share).mean() < 0.25
    # The largest number of bins that min_obs leaves.
    most, drawn = numbers(rs.BestEqualWidthBins(min_obs=10))
    assert drawn.mean() > 0.75 * most
