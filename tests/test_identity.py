"""What belongs to another model, other rows, another output or another scale is refused."""

import json

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal

import rhale_stats as rs
from rhale_stats.effects import columns
from rhale_stats.identity import FINGERPRINT, fingerprint

N = 400
BINS = rs.EqualWidthBins(3)
OTHERS = {
    "model": "same rows, but other local effects of feature 'x0'",
    "values": "other values of feature 'x0', other weights or another order",
    "order": "other values of feature 'x0', other weights or another order",
}


def first(X):
    return 2 * X[:, 0] + 0.1 * X[:, 0] * X[:, 1]


def second(X):
    return -2 * X[:, 0] + 4 * X[:, 0] * X[:, 1]


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).uniform(-1, 1, (N, 2))


@pytest.fixture(scope="module")
def local(X):
    return rs.local_effects(first, X)


@pytest.fixture(scope="module")
def effect(local):
    return rs.std_error(rs.rhale(local, bins=BINS))


@pytest.fixture(scope="module")
def of_second(X):
    """Another model's local effects of the same rows."""
    return rs.local_effects(second, X)


def other(local, of_second, what):
    """Local effects that ``effect`` was not made from, though all bins have as many rows."""
    if what == "model":
        return of_second
    if what == "order":
        return local.isel(obs=np.arange(N)[::-1])
    moved = local.copy(deep=True)
    x = moved["x"].values
    # Two rows of one bin exchange a little of their values.
    middle = np.argsort(np.abs(x[:, 0]))[:2]
    x[middle, 0] += [1e-9, -1e-9]
    return moved


# What takes the rows of an effect beside the effect.
VERBS = {
    "check_unbiased": rs.check_unbiased,
    "bootstrap": lambda local, effect: rs.bootstrap(local, effect, n_resamples=8, rng=0),
    "rebin": lambda local, effect: rs.bootstrap(local, effect, n_resamples=8, rebin=True, rng=0),
    "std_error": lambda local, effect: rs.std_error(effect, local, groups=np.arange(N) // 2),
    "compare a": lambda local, effect: rs.compare(effect, effect, paired=(local, local)),
    "jump_check": lambda local, effect: rs.jump_check(first, local, effect),
}


@pytest.mark.parametrize("what", OTHERS)
@pytest.mark.parametrize("verb", VERBS)
def test_another_models_local_effects_are_refused(local, effect, of_second, verb, what):
    """code.md B4: counts and weights of the bins were all that was compared."""
    VERBS[verb](local, effect)
    if verb == "jump_check" and what == "values":
        return  # there X is compared first
    with pytest.raises(
        ValueError, match=f"must be the Dataset that .* made from; .*{OTHERS[what]}"
    ):
        VERBS[verb](other(local, of_second, what), effect)


@pytest.mark.parametrize("verb", VERBS)
def test_effects_without_a_fingerprint_compare_means(local, effect, of_second, verb):
    """Files of earlier versions have none: counts, weights and means are compared."""
    old = effect.copy()
    del old.attrs[FINGERPRINT]
    VERBS[verb](local, old)
    with pytest.raises(ValueError, match="same rows, but other local effects of feature 'x0'"):
        VERBS[verb](of_second, old)


def test_pairs_that_are_swapped_are_refused(local, effect, of_second):
    """code.md B4: the standard error was three times too large."""
    b = rs.rhale(of_second, bins=BINS)
    rs.compare(effect, b, paired=(local, of_second))
    with pytest.raises(ValueError, match=r"paired\[0\] must be the Dataset that a was made from"):
        rs.compare(effect, b, paired=(of_second, local))
    with pytest.raises(ValueError, match=r"paired\[1\] must be the Dataset that b was made from"):
        rs.compare(effect, b, paired=(local, local))
    with pytest.raises(TypeError, match="paired must be a sequence of Datasets; got a"):
        rs.compare(effect, b, paired=local)
    with pytest.raises(TypeError, match=r"paired\[1\] must be the Dataset.*got ndarray"):
        rs.compare(effect, b, paired=(local, np.zeros(N)))
    with pytest.raises(TypeError, match="paired must be two Datasets"):
        rs.compare(effect, b, paired=(local, of_second, local))


def test_pairs_of_two_tables_are_refused(X, local, effect):
    other_rows = rs.local_effects(first, np.random.default_rng(1).uniform(-1, 1, (N, 2)))
    b = rs.rhale(other_rows, bins=BINS)
    with pytest.raises(ValueError, match="same rows in the same order; these have other values"):
        rs.compare(effect, b, paired=(local, other_rows))
    named = local.assign_coords(obs=[f"row {number}" for number in range(N)])
    with pytest.raises(ValueError, match="same order; their rows are named otherwise"):
        rs.compare(effect, rs.rhale(named, bins=BINS), paired=(local, named))


def test_replicates_of_another_model_are_refused(local, effect, of_second):
    b = rs.rhale(of_second, bins=BINS)
    boot = rs.bootstrap(of_second, b, n_resamples=40, rng=0)
    rs.confint(b, boot)
    for verb in (rs.confint, rs.effect_sizes):
        with pytest.raises(ValueError, match="replicates of feature 'x0' are of another model"):
            verb(effect, boot)
    start = rs.rhale(of_second, bins=BINS, centering="start")
    with pytest.raises(ValueError, match="centred by 'mean' and that of effect by 'start'"):
        rs.confint(start, boot)


@pytest.mark.parametrize(
    "make",
    [
        lambda model, X: rs.ice(model, X, n_grid=5),
        lambda model, X: rs.m_plot(model, X, bins=rs.GivenBins([-1, 0, 1])),
    ],
)
def test_replicates_of_another_models_profile_are_refused(X, make):
    """Grid and centring were all that was compared."""
    a, b = make(first, X), make(second, X)
    boot = rs.bootstrap(a, n_resamples=40, rng=0)
    rs.confint(a, boot)
    with pytest.raises(ValueError, match="boot must be of this result; it is of other estimates"):
        rs.confint(b, boot)


def test_replicates_of_other_h_statistics_are_refused(X):
    a, b = (
        rs.h_statistic(model, X[:40], keep_answers=True, progress=False)
        for model in (first, second)
    )
    boot = rs.bootstrap(a, n_resamples=40, rng=0)
    rs.confint(a, boot)
    with pytest.raises(ValueError, match="boot must be of this result; it is of other estimates"):
        rs.confint(b, boot)


def test_replicates_of_several_outputs_know_theirs(X):
    def two(X):
        return np.column_stack([first(X), second(X)])

    local = rs.local_effects(two, X)
    effect = rs.rhale(local, bins=BINS)
    boot = rs.bootstrap(local, effect, n_resamples=40, rng=0)
    rs.confint(effect, boot)
    with pytest.raises(ValueError, match="one output of the model; got output '1' in boot"):
        rs.confint(effect.isel(output=0), boot.isel(output=1))
    with pytest.raises(ValueError, match="one output of the model; got output '1' in local"):
        rs.check_unbiased(local.isel(output=1), effect.isel(output=0))
    ice = rs.ice(two, X, n_grid=5)
    drawn = rs.bootstrap(ice, n_resamples=40, rng=0)
    rs.confint(ice, drawn)
    with pytest.raises(ValueError, match="it is of other estimates"):
        rs.confint(ice.isel(output=0), drawn.isel(output=1))


def test_a_check_of_another_model_does_not_debias(local, effect, of_second):
    check = rs.check_unbiased(of_second, rs.rhale(of_second, bins=BINS))
    with pytest.raises(ValueError, match="check must be of effect; that of feature 'x0' is of"):
        rs.debias(effect, check)
    rs.debias(effect, rs.check_unbiased(local, effect))


def test_trees_of_another_model_are_refused(X, local, of_second):
    tree = rs.regions(of_second, "x0")
    rs.regional_rhale(of_second, tree, bins=BINS)
    with pytest.raises(ValueError, match="tree was made from; .* same rows, but other local eff"):
        rs.regional_rhale(local, tree, bins=BINS)
    rows = rs.local_effects(first, X[::-1])
    with pytest.raises(ValueError, match="rows that the tree was made from; they have other val"):
        rs.regional_rhale(rows, tree, bins=BINS)
    with pytest.raises(ValueError, match="same rows, but other local effects"):
        rs.plot_regions(tree, rs.regional_rhale(of_second, tree, bins=BINS), local=local)
    both = rs.all_regions(of_second).sel(feature="x0")
    with pytest.raises(ValueError, match="same rows, but other local effects"):
        rs.regional_rhale(local, both, bins=BINS)


def test_trees_of_profiles_take_any_model_of_their_rows(X, local):
    """They have no local effects; rows of others are refused."""
    tree = rs.regional_pdp(second, X, "x0", n_grid=5)
    rs.regional_rhale(local, tree, bins=BINS)
    with pytest.raises(ValueError, match="rows that the tree was made from"):
        rs.regional_rhale(rs.local_effects(first, X[::-1]), tree, bins=BINS)


def test_regions_know_their_own_rows(of_second):
    effect = rs.regional_rhale(of_second, rs.regions(of_second, "x0"), bins=BINS)
    assert effect.sizes["region"] > 1
    rs.check_unbiased(of_second, effect)
    one = effect.isel(region=0)
    rs.bootstrap(of_second, one, n_resamples=8, rng=0)
    moved = one.assign_coords(region=1)
    with pytest.raises(ValueError, match="must be the Dataset that effect was made from"):
        rs.check_unbiased(of_second, moved)


def test_pictures_and_augment_refuse_another_model_and_take_new_rows(X, local, effect, of_second):
    for call in (
        lambda local: rs.augment(local, effect),
        lambda local: rs.plot_effect(effect, "x0", local),
        lambda local: rs.plot_bins(effect, local, "x0"),
    ):
        call(local)
        call(local.isel(obs=slice(0, None, 3)))
        with pytest.raises(ValueError, match="same rows, but other local effects"):
            call(of_second)


@pytest.mark.parametrize("kind", ["precision", "frequency"])
def test_weights_are_rows_too(X, kind):
    weights = np.random.default_rng(2).integers(1, 4, N).astype(float)
    local = rs.local_effects(first, X, weights=weights, weight_kind=kind)
    effect = rs.rhale(local, bins=BINS)
    rs.check_unbiased(local, effect)
    x = X[:, 0]
    inside = np.flatnonzero((x > -0.1) & (x < 0.1))
    a, b = inside[np.argmax(weights[inside])], inside[np.argmin(weights[inside])]
    swapped = weights.copy()
    swapped[[a, b]] = weights[[b, a]]
    with pytest.raises(ValueError, match="other weights or another order"):
        rs.check_unbiased(local.assign(weight=("obs", swapped)), effect)
    if kind == "precision":
        # Ratios of precision weights count, nothing else.
        scaled = local.assign(weight=("obs", 1e200 * weights / 3))
        rs.std_error(effect, scaled, groups=np.arange(N) // 2)


def test_selected_features_missing_rows_and_files_are_known_again(tmp_path):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.normal(size=(N, 3)), columns=["a", "b", "c"])
    frame.loc[:20, "b"] = np.nan

    def model(frame):
        return frame["a"] * frame["c"] + frame["b"].fillna(0.0) ** 2

    local = rs.local_effects(model, frame, missing="drop")
    effect = rs.std_error(rs.rhale(local, bins=BINS))
    assert set(json.loads(effect.attrs[FINGERPRINT])) == {"a", "b", "c"}
    one = effect.sel(feature=["b"])
    for read, of in ((local, one), (local.sel(feature=["c", "b"]), effect.sel(feature=["c"]))):
        rs.check_unbiased(read, of)
    boot = rs.bootstrap(local.sel(feature=["b"]), one, n_resamples=8, rng=0)
    rs.confint(one, boot)
    local.to_netcdf(tmp_path / "local.nc")
    effect.to_netcdf(tmp_path / "effect.nc")
    stored = [xr.load_dataset(tmp_path / f"{name}.nc") for name in ("local", "effect")]
    rs.check_unbiased(*stored)
    rs.bootstrap(*stored, n_resamples=8, rng=0)


def test_levels_are_known_again(tmp_path):
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({"size": rng.choice(list("SML"), N), "x": rng.uniform(size=N)})

    def model(frame, sign=1):
        return sign * frame["size"].map({"S": 0.0, "M": 1.0, "L": 3.0}).astype(float) * frame["x"]

    bins = rs.EqualWidthBins(4)
    local = rs.ale_local_effects(model, frame, bins=bins)
    effect = rs.ale_from_local(local, bins=bins)
    groups = np.arange(N) // 2
    rs.std_error(effect, local, groups=groups)
    minus = rs.ale_local_effects(lambda frame: model(frame, -1), frame, bins=bins)
    for old in (False, True):
        if old:
            del effect.attrs[FINGERPRINT]
            rs.std_error(effect, local, groups=groups)
        for name in ("size", "x"):
            with pytest.raises(ValueError, match=f"other local effects of feature '{name}'"):
                rs.std_error(effect.sel(feature=[name]), minus, groups=groups)


def test_a_fingerprint_sees_every_value(rng):
    x, g, w = rng.normal(size=(3, 1000))
    known = fingerprint(x, None, g)
    assert fingerprint(x.copy(), None, np.array(g)) == known
    found = {known, fingerprint(x, np.abs(w), g), fingerprint(x, None, g, w)}
    for row in range(0, 1000, 50):
        one = g.copy()
        one[row] = np.nextafter(one[row], 10)
        found.add(fingerprint(x, None, one))
        moved = x.copy()
        moved[[row, row + 1]] = moved[[row + 1, row]]
        found.add(fingerprint(moved, None, g))
    found |= {fingerprint(x, None, -g), fingerprint(-x, None, g), fingerprint(x[1:], None, g[1:])}
    assert len(found) == 3 + 2 * 20 + 3


def test_more_features_than_an_attribute_holds_are_not_known(tmp_path):
    X = np.random.default_rng(5).normal(size=(12, 3000))
    local = rs.local_effects(None, X, jacobian=np.ones_like(X), features=list(range(3000)))
    effect = rs.rhale(local, bins=rs.EqualWidthBins(1))
    assert FINGERPRINT not in effect.attrs
    effect.to_netcdf(tmp_path / "effect.nc")


def test_a_fingerprint_is_of_the_rows_of_the_estimate(local):
    honest = rs.rhale(local, bins=BINS, honest=True, rng=1)
    rs.check_unbiased(local, honest)
    text = json.loads(honest.attrs[FINGERPRINT])["x0"]
    assert text != columns(local).fingerprint(0)


# --- outputs and scales --------------------------------------------------------------------------


class Classifier:
    """Logistic regression with known coefficients."""

    classes_ = np.array(["no", "yes"])

    def decision_function(self, X):
        return 2 * X[:, 0] + X[:, 1]

    def predict_proba(self, X):
        yes = 1 / (1 + np.exp(-self.decision_function(X)))
        return np.column_stack([1 - yes, yes])

    def predict(self, X):
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


@pytest.mark.parametrize(
    "asked", [{}, {"output": "no"}, {"scale": "logit"}, {"scale": "decision"}, {"output": "yes"}]
)
def test_jumps_are_looked_for_on_the_output_and_scale_of_the_local_effects(X, asked):
    """code.md B3: 14 of 16 bins "jumped" for output=0 and for scale="logit"."""
    local = rs.local_effects(Classifier(), X, **asked)
    effect = rs.rhale(local, bins=rs.EqualWidthBins(20))
    assert effect.attrs["scale"] == asked.get("scale", "response")
    check = rs.jump_check(Classifier(), local, effect)
    steps = (local["local_effect"].mean("obs") * 0.1).values[:, None]
    assert (np.abs(check["jump"]) < 0.02 * np.abs(steps)).all()
    both = rs.local_effects(Classifier(), X, output=["no", "yes"])
    if asked == {}:
        each = rs.jump_check(Classifier(), both, rs.rhale(both, bins=rs.EqualWidthBins(20)))
        assert_allclose(each["jump"].isel(output=1), check["jump"], atol=1e-9)
        assert_allclose(each["jump"].isel(output=0), -check["jump"], atol=1e-9)


def test_jumps_of_a_classifier_need_a_scale(X):
    """A Jacobian may be that of the probability or of the decision."""
    local = rs.local_effects(None, X, jacobian=np.column_stack([np.full(N, 2.0), np.ones(N)]))
    effect = rs.rhale(local, bins=BINS)
    with pytest.raises(ValueError, match="local must say on which scale .* Pass the function"):
        rs.jump_check(Classifier(), local, effect)
    check = rs.jump_check(Classifier().decision_function, local, effect)
    assert_array_equal(check["jump"], 0.0)
    probability = rs.local_effects(Classifier(), X)
    old = probability.copy()
    del old.attrs["scale"]
    with pytest.raises(ValueError, match="local must say on which scale"):
        rs.jump_check(Classifier(), old, rs.rhale(old, bins=BINS))


def test_another_scale_is_named(X):
    probability, logit = (
        rs.local_effects(Classifier(), X, scale=scale) for scale in ("response", "logit")
    )
    a, b = (rs.rhale(local, bins=BINS) for local in (probability, logit))
    calls = {
        ("local", "effect"): (
            lambda: rs.check_unbiased(logit, a),
            lambda: rs.augment(logit, a),
            lambda: rs.bootstrap(logit, a, rng=0),
            lambda: rs.std_error(a, logit, groups=np.arange(N) // 2),
            lambda: rs.jump_check(Classifier(), logit, a),
        ),
        (r"paired\[0\]", "a"): (lambda: rs.compare(a, a, paired=(logit, probability)),),
        ("a", "b"): (lambda: rs.compare(b, a),),
    }
    for (one, another), some in calls.items():
        said = f"of one scale of the model; got scale 'logit' in {one} and 'response' in {another}"
        for call in some:
            with pytest.raises(ValueError, match=said):
                call()
    # Of one scale, two classes may be compared.
    rs.compare(a, rs.rhale(rs.local_effects(Classifier(), X, output="no"), bins=BINS))
