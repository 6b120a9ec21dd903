"""What belongs to another model, other rows, another output or another scale is refused."""

import json
from operator import attrgetter

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal

import rhale_stats as rs
from rhale_stats.local.rows import columns
from rhale_stats.schema.identity import FINGERPRINT, MAX_TEXT_BYTES, fingerprint
from rhale_stats.schema.parts import over_row_sets
from tests.helpers import as_of_a_file, in_turn

N = 400
BINS = rs.EqualWidthBins(3)
OTHERS = {
    "model": "same rows, but its local effects of feature 'x0'",
    "values": "the values of feature 'x0', the weights or the order of its rows differ",
    "order": "the values of feature 'x0', the weights or the order of its rows differ",
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


@pytest.mark.thorough
@pytest.mark.parametrize(("what", "verb"), in_turn(OTHERS, VERBS))
def test_another_models_local_effects_are_refused(local, effect, of_second, verb, what):
    """code.md B4: counts and weights of the bins were all that was compared."""
    VERBS[verb](local, effect)
    if verb == "jump_check" and what == "values":
        return  # there X is compared first
    with pytest.raises(
        ValueError, match=f"must be the Dataset that .* made from; .*{OTHERS[what]}"
    ):
        VERBS[verb](other(local, of_second, what), effect)


@pytest.mark.thorough
@pytest.mark.parametrize("verb", VERBS)
def test_effects_without_a_fingerprint_compare_means(local, effect, of_second, verb):
    """Files of earlier versions have none: counts, weights and means are compared."""
    old = effect.copy()
    del old.attrs[FINGERPRINT]
    VERBS[verb](local, old)
    with pytest.raises(ValueError, match="same rows, but its local effects of feature 'x0'"):
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
    with pytest.raises(TypeError, match=r"paired must be a sequence of Datasets; got ndarray"):
        rs.compare(effect, b, paired=(local, np.zeros(N)))
    with pytest.raises(TypeError, match="paired must be two Datasets"):
        rs.compare(effect, b, paired=(local, of_second, local))


@pytest.mark.thorough
def test_pairs_of_two_tables_are_refused(X, local, effect):
    other_rows = rs.local_effects(first, np.random.default_rng(1).uniform(-1, 1, (N, 2)))
    b = rs.rhale(other_rows, bins=BINS)
    with pytest.raises(ValueError, match="same rows in the same order; all of their features"):
        rs.compare(effect, b, paired=(local, other_rows))
    named = local.assign_coords(obs=[f"row {number}" for number in range(N)])
    with pytest.raises(ValueError, match="same order; their rows have different names"):
        rs.compare(effect, rs.rhale(named, bins=BINS), paired=(local, named))


@pytest.mark.thorough
def test_replicates_of_another_model_are_refused(local, effect, of_second):
    b = rs.rhale(of_second, bins=BINS)
    boot = rs.bootstrap(of_second, b, n_resamples=40, rng=0)
    rs.confint(b, boot)
    for verb in (rs.confint, rs.effect_sizes):
        with pytest.raises(ValueError, match="replicates of feature 'x0' are of another model"):
            verb(effect, boot)
    start = rs.rhale(of_second, bins=BINS, centering="start")
    with pytest.raises(ValueError, match="have centering 'mean', not 'start'"):
        rs.confint(start, boot)


def test_replicates_of_the_other_weighting_are_refused(local, effect):
    """The edges are the same, and the estimates are not."""
    boot = rs.bootstrap(local, effect, n_resamples=8, rng=0)
    rows = rs.rhale(local, bins=BINS, weighting="rows")
    with pytest.raises(ValueError, match="have weighting 'axis', not 'rows'"):
        rs.confint(rows, boot)


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
    with pytest.raises(ValueError, match="boot must be of this result; it comes from another"):
        rs.confint(b, boot)


@pytest.mark.thorough
def test_replicates_of_other_h_statistics_are_refused(X):
    a, b = (
        rs.h_statistic(model, X[:40], keep_answers=True, progress=False)
        for model in (first, second)
    )
    boot = rs.bootstrap(a, n_resamples=40, rng=0)
    rs.confint(a, boot)
    with pytest.raises(ValueError, match="boot must be of this result; it comes from another"):
        rs.confint(b, boot)


def test_replicates_of_several_outputs_know_theirs(X):
    def two(X):
        return np.column_stack([first(X), second(X)])

    local = rs.local_effects(two, X)
    effect = rs.rhale(local, bins=BINS)
    boot = rs.bootstrap(local, effect, n_resamples=40, rng=0)
    rs.confint(effect, boot)
    with pytest.raises(ValueError, match="the same output of the model; got output '1' in boot"):
        rs.confint(effect.isel(output=0), boot.isel(output=1))
    with pytest.raises(ValueError, match="the same output of the model; got output '1' in local"):
        rs.check_unbiased(local.isel(output=1), effect.isel(output=0))
    ice = rs.ice(two, X, n_grid=5)
    drawn = rs.bootstrap(ice, n_resamples=40, rng=0)
    rs.confint(ice, drawn)
    with pytest.raises(ValueError, match="the same output of the model; got output '1' in boot"):
        rs.confint(ice.isel(output=0), drawn.isel(output=1))


def test_a_check_of_another_model_does_not_debias(local, effect, of_second):
    check = rs.check_unbiased(of_second, rs.rhale(of_second, bins=BINS))
    with pytest.raises(ValueError, match="check must come from effect; for feature 'x0' it comes"):
        rs.debias(effect, check)
    rs.debias(effect, rs.check_unbiased(local, effect))


@pytest.mark.thorough
def test_trees_of_another_model_are_refused(X, local, of_second):
    tree = rs.regions(of_second, "x0")
    rs.regional_rhale(of_second, tree, bins=BINS)
    with pytest.raises(ValueError, match="tree was made from; .* same rows, but its local eff"):
        rs.regional_rhale(local, tree, bins=BINS)
    rows = rs.local_effects(first, X[::-1])
    with pytest.raises(ValueError, match="rows that the tree was made from; they have other val"):
        rs.regional_rhale(rows, tree, bins=BINS)
    with pytest.raises(ValueError, match="same rows, but its local effects"):
        rs.plots.regions(tree, rs.regional_rhale(of_second, tree, bins=BINS), local=local)
    both = rs.all_regions(of_second).sel(feature="x0")
    with pytest.raises(ValueError, match="same rows, but its local effects"):
        rs.regional_rhale(local, both, bins=BINS)


@pytest.mark.thorough
def test_trees_of_profiles_take_any_model_of_their_rows(X, local):
    """They have no local effects; rows of others are refused."""
    tree = rs.regional_pdp(second, X, "x0", n_grid=5)
    rs.regional_rhale(local, tree, bins=BINS)
    with pytest.raises(ValueError, match="rows that the tree was made from"):
        rs.regional_rhale(rs.local_effects(first, X[::-1]), tree, bins=BINS)


@pytest.mark.thorough
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
        lambda local: rs.plots.effect(effect, "x0", local),
        lambda local: rs.plots.bins(effect, local, "x0"),
    ):
        call(local)
        call(local.isel(obs=slice(0, None, 3)))
        with pytest.raises(ValueError, match="same rows, but its local effects"):
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
    with pytest.raises(ValueError, match="weights or the order of its rows differ"):
        rs.check_unbiased(local.assign(weight=("obs", swapped)), effect)
    if kind == "precision":
        # Ratios of precision weights count, nothing else.
        scaled = local.assign(weight=("obs", 1e200 * weights / 3))
        rs.std_error(effect, scaled, groups=np.arange(N) // 2)


@pytest.mark.thorough
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
            with pytest.raises(ValueError, match=f"its local effects of feature '{name}'"):
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


@pytest.mark.thorough
def test_more_features_than_an_attribute_holds_are_not_known(tmp_path, monkeypatch):
    """An attribute of a netCDF file holds 64 kB, of some 1500 features."""
    assert MAX_TEXT_BYTES < 2**16
    X = np.random.default_rng(5).normal(size=(12, 30))
    local = rs.local_effects(None, X, jacobian=np.ones_like(X), features=list(range(30)))
    text = rs.rhale(local, bins=rs.EqualWidthBins(1)).attrs[FINGERPRINT]
    monkeypatch.setattr("rhale_stats.schema.identity.MAX_TEXT_BYTES", len(text) - 1)
    effect = rs.rhale(local, bins=rs.EqualWidthBins(1))
    assert FINGERPRINT not in effect.attrs
    text = rs.rhale(local, bins=rs.EqualWidthBins(1)).assign_attrs(
        {FINGERPRINT: "x" * MAX_TEXT_BYTES}
    )
    text.to_netcdf(tmp_path / "effect.nc", engine="h5netcdf")


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


@pytest.mark.thorough
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
    with pytest.raises(
        ValueError, match="local must say on which scale .* Pass as model the function"
    ):
        rs.jump_check(Classifier(), local, effect)
    check = rs.jump_check(Classifier().decision_function, local, effect)
    assert_array_equal(check["jump"], 0.0)
    probability = rs.local_effects(Classifier(), X)
    old = as_of_a_file(probability)
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
        said = f"same scale of the model; got scale 'logit' in {one} and 'response' in {another}"
        for call in some:
            with pytest.raises(ValueError, match=said):
                call()
    # Of one scale, two classes may be compared.
    rs.compare(a, rs.rhale(rs.local_effects(Classifier(), X, output="no"), bins=BINS))


# --- rows by their labels ------------------------------------------------------------------------


def shuffled(values, index, rng):
    """A Series of the values under their labels, in another order."""
    return pd.Series(values, index=index).sample(frac=1, random_state=rng.integers(2**31))


LABELS = {
    "text": lambda: pd.Index([f"row {number}" for number in range(N)]),
    "numbers": lambda: pd.RangeIndex(N),
    "dates": lambda: pd.date_range("2020", periods=N, tz="Europe/Berlin"),
}


@pytest.mark.thorough
@pytest.mark.parametrize("kind", LABELS)
def test_series_of_groups_and_strata_go_by_their_labels(rng, kind):
    """reliability.md 8: they went by position."""
    index = LABELS[kind]()
    frame = pd.DataFrame(rng.uniform(-1, 1, (N, 2)), columns=["a", "b"], index=index)

    def model(frame):
        return frame["a"] ** 2 * (1 + frame["b"])

    local = rs.local_effects(model, frame)
    effect = rs.rhale(local, bins=BINS)
    groups, strata = np.arange(N) // 4, (np.arange(N) // 200).astype(str)
    named = shuffled(groups, index, rng)
    expected = rs.std_error(effect, local, groups=groups)
    xr.testing.assert_identical(rs.std_error(effect, local, groups=named), expected)
    drawn = {"n_resamples": 8, "rng": 0}
    xr.testing.assert_identical(
        rs.bootstrap(local, effect, groups=named, strata=shuffled(strata, index, rng), **drawn),
        rs.bootstrap(local, effect, groups=groups, strata=strata, **drawn),
    )
    other, few = rs.rhale(local, bins=rs.EqualWidthBins(2)), {"n_draws": 100, "rng": 0}
    for groups_of_pairs in (named, xr.DataArray(named.to_numpy(), {"obs": named.index}, "obs")):
        if kind == "dates" and isinstance(groups_of_pairs, xr.DataArray):
            continue
        xr.testing.assert_identical(
            rs.compare(effect, other, paired=(local, local), groups=groups_of_pairs, **few),
            rs.compare(effect, other, paired=(local, local), groups=groups, **few),
        )
    foreign = pd.Series(groups, index=np.arange(N) + 5)
    for call in (
        lambda: rs.std_error(effect, local, groups=foreign),
        lambda: rs.bootstrap(local, effect, strata=foreign, **drawn),
        lambda: rs.compare(effect, other, paired=(local, local), groups=foreign),
    ):
        with pytest.raises(ValueError, match="must have the index of the rows, in any order; its"):
            call()
    rs.std_error(effect, local, groups=foreign.to_numpy())


@pytest.mark.thorough
def test_series_go_by_position_where_rows_have_no_labels(X, rng):
    """Arrays have none, nor has an index that repeats itself."""
    groups = np.arange(N) // 4
    index = np.arange(N) // 2
    frame = pd.DataFrame(X, columns=["x0", "x1"], index=index)
    for table, labels in ((X, np.arange(N)[::-1]), (X, np.arange(N) + 7), (frame, index)):
        local = rs.local_effects(lambda table: first(np.asarray(table)), table)
        effect = rs.rhale(local, bins=BINS)
        xr.testing.assert_identical(
            rs.std_error(effect, local, groups=pd.Series(groups, index=labels)),
            rs.std_error(effect, local, groups=groups),
        )


def test_series_of_groups_of_profiles_surfaces_and_h_statistics(rng):
    index = [f"row {number}" for number in range(60)]
    frame = pd.DataFrame(rng.uniform(-1, 1, (60, 2)), columns=["a", "b"], index=index)
    groups = np.arange(60) // 3
    named = shuffled(groups, index, rng)
    foreign = pd.Series(groups)
    drawn = {"n_resamples": 8, "rng": 0}

    def model(frame):
        return frame["a"] * (1 + frame["b"])

    found = rs.h_statistic(model, frame, keep_answers=True, progress=False)
    some = rs.h_statistic(model, frame, n_rows=40, rng=0, progress=False)
    calls = [
        lambda groups: rs.bootstrap(rs.ice(model, frame, n_grid=4), groups=groups, **drawn),
        lambda groups: rs.bootstrap(rs.ale2(model, frame, ("a", "b")), groups=groups, **drawn),
        lambda groups: rs.bootstrap(found, groups=groups, strata=groups, **drawn),
        lambda groups: rs.std_error(found, groups=groups),
        lambda groups: rs.std_error(some, groups=groups),
        lambda groups: rs.compare(found, some, groups=groups, rng=0),
    ]
    for call in calls:
        xr.testing.assert_identical(call(named), call(groups))
        with pytest.raises(ValueError, match="groups must have"):
            call(foreign)


def test_series_of_features_with_rows_of_their_own(rng):
    frame = pd.DataFrame(rng.normal(size=(N, 2)), columns=["a", "b"], index=np.arange(N) + 3)
    frame.iloc[:40, 1] = np.nan
    local = rs.local_effects(lambda frame: frame["a"] ** 2 + frame["b"].fillna(0.0), frame,
                             missing="drop")  # fmt: skip
    effect = rs.rhale(local, bins=BINS)
    groups = np.arange(N) // 4
    expected = rs.std_error(effect, local, groups=groups)
    for given in (shuffled(groups, frame.index, rng), list(groups), tuple(groups.astype(str))):
        xr.testing.assert_allclose(rs.std_error(effect, local, groups=given), expected)
    with pytest.raises(ValueError, match=f"one entry for each of {N} rows of local; got shape"):
        rs.std_error(effect, local, groups=groups[1:])


def test_only_what_is_said_of_rows_goes_by_rows(rng):
    """code.md, end of section 1: any list with as many entries as rows was cut to the rows used."""
    edges = np.linspace(0, 1, 6)
    frame = pd.DataFrame(rng.uniform(size=(6, 2)), columns=["a", "b"])
    frame.iloc[0, 1] = np.nan
    local = rs.local_effects(None, frame, jacobian=np.ones((6, 2)), missing="drop")
    asked = []

    @over_row_sets
    def verb(local, given, *, groups=None):
        asked.append((len(given), None if groups is None else len(groups)))
        return rs.rhale(local, bins=rs.EqualWidthBins(1))

    for given in (edges, list(edges), tuple(edges), pd.Series(edges), frame):
        verb(local, given, groups=list("aabbcc"))
    verb(local, edges)
    assert set(asked) == {(6, 6), (6, 5), (6, None)}


@pytest.mark.parametrize("missing", [np.nan, None, pd.NaT, pd.NA], ids=["nan", "None", "NaT", "NA"])
@pytest.mark.parametrize("parameter", ["groups", "strata"])
def test_missing_groups_are_refused(local, effect, parameter, missing):
    """reliability.md 3: NaN was a group, None an obscure error."""
    labels = np.array([f"g{number // 4}" for number in range(N)], dtype=object)
    if parameter == "strata":
        labels[:] = "all"
    labels[[3, 17]] = missing
    said = rf"{parameter} must have an entry for every row .*; got 2 missing \(first rows: 3, 17\)"
    with pytest.raises(ValueError, match=said):
        rs.bootstrap(local, effect, **{parameter: labels}, n_resamples=8, rng=0)
    if parameter == "strata":
        return
    with pytest.raises(ValueError, match=said):
        rs.std_error(effect, local, groups=labels)
    with pytest.raises(ValueError, match=said):
        rs.compare(effect, effect, paired=(local, local), groups=labels)
    with pytest.raises(ValueError, match="got 400 missing"):
        rs.std_error(effect, local, groups=np.full(N, np.nan))
    masked = np.ma.masked_array(np.arange(N) // 4, mask=np.arange(N) == 5)
    with pytest.raises(ValueError, match=r"got 1 missing \(first rows: 5\)"):
        rs.std_error(effect, local, groups=masked)


def test_rows_that_are_not_used_need_no_group(X):
    weights = np.ones(N)
    weights[:10] = 0
    local = rs.local_effects(first, X, weights=weights)
    effect = rs.rhale(local, bins=BINS)
    groups = np.arange(N) // 4.0
    expected = rs.std_error(effect, local, groups=groups)
    groups[:10] = np.nan
    xr.testing.assert_identical(rs.std_error(effect, local, groups=groups), expected)


@pytest.mark.thorough
def test_groups_of_any_labels(local, effect):
    """Numbers among texts cannot be sorted, which was an error from inside NumPy."""
    number = np.arange(N) // 4
    expected = rs.std_error(effect, local, groups=number)["effect_se"]
    mixed = [one if one % 2 else f"g{one}" for one in number.tolist()]
    for groups in (mixed, pd.Categorical(number), pd.to_datetime(number, unit="D")):
        assert_allclose(rs.std_error(effect, local, groups=groups)["effect_se"], expected)


def test_groups_in_the_place_of_local_effects_are_refused(local, effect):
    """reliability.md 2: they were ignored."""
    for wrong in (np.arange(N) // 4, "zzz", list(range(N)), 3):
        with pytest.raises(TypeError, match="local must be .*Dataset"):
            rs.std_error(effect, wrong)
        with pytest.raises(TypeError, match="local must be .*Dataset"):
            effect.rhale.std_error(wrong)
    with pytest.raises(ValueError, match="local must be the Dataset that local_effects"):
        rs.std_error(effect, effect)
    xr.testing.assert_identical(rs.std_error(effect, local), effect)


def test_orders_by_a_target_and_shapley_values_go_by_labels(rng):
    index = [f"row {number}" for number in range(60)]
    frame = pd.DataFrame({"c": rng.choice(list("ABC"), 60), "x": rng.uniform(size=60)}, index=index)
    y = rng.normal(size=60) + (frame["c"] == "B")

    def model(frame):
        return frame["x"] * (frame["c"] == "A")

    call = {"features": ["c"], "order": "target"}
    xr.testing.assert_identical(
        rs.ale(model, frame, target=y.sample(frac=1, random_state=1), **call),
        rs.ale(model, frame, target=y.to_numpy(), **call),
    )
    with pytest.raises(ValueError, match="target must have the index of the rows"):
        rs.ale(model, frame, target=y.reset_index(drop=True), **call)
    xr.testing.assert_identical(
        rs.shap_dependence(None, frame[["x"]], shap_values=y.sample(frac=1, random_state=1)),
        rs.shap_dependence(None, frame[["x"]], shap_values=y.to_numpy()),
    )


@pytest.mark.thorough
def test_conditioning_of_other_rows_is_refused(rng):
    frame = pd.DataFrame(rng.uniform(-1, 1, (60, 2)), columns=["a", "b"])
    local = rs.local_effects(lambda frame: frame["a"] * frame["b"], frame)
    rs.regions(local, "a", conditioning=frame)
    for other in (frame.iloc[::-1], frame.set_index(frame.index + 5)):
        with pytest.raises(ValueError, match="conditioning must have the index of the rows"):
            rs.regions(local, "a", conditioning=other)
    moved = rs.local_effects(lambda frame: frame["a"] * frame["b"], frame.iloc[::-1])
    with pytest.raises(ValueError, match="conditioning must have the index of the rows"):
        rs.regions(moved, "a", conditioning=frame)


# --- results that were edited --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda e: e.isel(bin=[2, 0, 1]), "all of its bins, in order, between edges that rise"),
        (lambda e: e.isel(edge=slice(None, None, -1)), "between edges that rise"),
        (lambda e: e.isel(bin=slice(2)), "all of its bins"),
        (lambda e: e.isel(edge=slice(2)), "all of its bins"),
        (lambda e: e.assign_coords(edge_value=-e["edge_value"]), "between edges that rise"),
        (lambda e: e.isel(feature=[]), "at least one feature; got none"),
        (lambda e: e.rename(bin="k"), "must have the dimensions feature and bin"),
        (lambda e: e.drop_attrs(), "has no attribute centering"),
        (lambda e: e.drop_vars("bin_left"), "has no coordinate bin_left"),
        (lambda e: e.drop_vars("moments"), "has no variable moments"),
        (lambda e: e.drop_vars("curve"), "has no curve"),
    ],
)
@pytest.mark.parametrize("verb", ["confband", "confint", "summary", "tidy", "vcov", "plots.effect"])
def test_edited_effects_are_refused(effect, edit, said, verb):
    """reliability.md 10 and 21: other bands, NaN, or errors from inside xarray.

    Of a file, of which no more is known; others are refused before a function looks at them.
    """
    more = ("x0",) if verb in ("vcov", "plots.effect") else ()
    for edited, text in ((as_of_a_file(edit(effect)), said), (edit(effect), "must")):
        with pytest.raises(ValueError, match=text):
            attrgetter(verb)(rs)(edited, *more)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda one: one.rename(obs="row"), "dimensions obs and feature"),
        (lambda one: one.drop_vars("local_effect_error"), "has no variable local_effect_error"),
        (lambda one: one.drop_vars("feature_kind"), "has no coordinate feature_kind"),
        (lambda one: one.assign(weight=("obs", np.ones(N))).drop_attrs(), "attribute weight_kind"),
    ],
)
def test_edited_local_effects_are_refused(local, edit, said):
    for verb in (rs.rhale, rs.folds, lambda local: rs.regions(local, 0)):
        for edited, text in ((as_of_a_file(edit(local)), said), (edit(local), "must")):
            with pytest.raises(ValueError, match=text):
                verb(edited)


@pytest.mark.thorough
@pytest.mark.parametrize("changed", [lambda d: d * 2, lambda d: d + d, lambda d: -d])
def test_arithmetic_on_whole_results_is_refused(changed):
    """xarray keeps attributes in arithmetic: standard errors from changed moments were printed.

    Before 2025.11 it drops them from sums of two Datasets, and their lack is said.
    """
    X = np.random.default_rng(0).normal(size=(200, 2))
    local = rs.local_effects(lambda X: X[:, 0] * X[:, 1], X)
    effect = changed(rs.rhale(local))
    said = "those of feature 'x0' do not fit its moments.*effect\\['effect"
    if "centering" not in effect.attrs:
        said = "has no attribute centering.*without arithmetic on it"
    for function in (rs.summary, rs.std_error, rs.confint, rs.tidy):
        with pytest.raises(ValueError, match=said):
            function(effect)


def test_arithmetic_on_whole_profiles_is_refused():
    X = np.random.default_rng(0).normal(size=(200, 2))
    profile = rs.pdp(lambda X: X[:, 0] * X[:, 1], X, progress=False)
    for function in (rs.confint, rs.confband, rs.tidy):
        with pytest.raises(ValueError, match="are not the roots of its variances"):
            function(profile * 2)
