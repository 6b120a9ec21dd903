"""Models and draws as they are given: forms, thinning, portions, checksums, what is refused."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal

import rhale_stats as rs
from rhale_stats.ensembles import draws as module
from rhale_stats.ensembles.draws import DrawOptions, Draws, members_of

# Two chains of five draws of a slope and a level.
SLOPE = np.arange(20.0).reshape(2, 5, 2)
LEVEL = -np.arange(10.0).reshape(2, 5)
BOTH = {"slope": SLOPE, "level": LEVEL}


def linear(draw, X):
    return X @ draw["slope"] + draw["level"]


def test_draws_of_every_form_are_over_chain_and_draw():
    whole = Draws.read(BOTH, True)
    assert (whole.alone, whole.shape) == (False, (2, 5))
    turned = xr.Dataset(
        {
            "slope": (("k", "draw", "chain"), SLOPE.T),
            "level": (("draw", "chain"), LEVEL.T),
        }
    )
    for form in (
        turned,
        xr.DataTree(turned),
        xr.DataTree.from_dict({"/posterior": turned, "/prior": turned.isel(draw=[0])}),
        {name: turned[name] for name in turned},
    ):
        found = Draws.read(form, False)
        assert (found.alone, found.shape) == (False, (2, 5))
        for name, values in BOTH.items():
            assert_array_equal(found.arrays[name], values)
        assert found.identity == whole.identity
    alone = Draws.read(SLOPE, True)
    assert (alone.alone, alone.shape) == (True, (2, 5))
    assert_array_equal(Draws.read(SLOPE[0], False).arrays[""], SLOPE[:1])
    for array in (turned["slope"], turned["slope"].rename("other")):
        found = Draws.read(array, False)
        assert found.alone
        assert_array_equal(found.arrays[""], SLOPE)
    assert_array_equal(Draws.read(turned["slope"].isel(chain=1), True).arrays[""], SLOPE[1:])
    assert Draws.read([True, False], False).shape == (1, 2)


def test_the_checksum_is_that_of_names_and_values():
    whole = Draws.read(BOTH, True).identity
    assert Draws.read(dict(reversed(BOTH.items())), True).identity == whole
    others = [
        {"slope": SLOPE, "height": LEVEL},
        {"slope": SLOPE, "level": LEVEL + (LEVEL == -3)},
        {"slope": LEVEL, "level": SLOPE},
        {"slope": SLOPE},
    ]
    assert len({whole, *(Draws.read(one, True).identity for one in others)}) == 5


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("most", "kept"),
    [(10, range(5)), (11, range(5)), (6, [0, 2, 4]), (5, [0, 4]), (4, [0, 4]), (3, [0]), (1, [0])],
)
def test_thinned_at_equal_distances(most, kept):
    found = Draws.read(BOTH, True).thinned(most)
    assert found.shape == (2, len(kept))
    assert not found.alone
    for name, values in BOTH.items():
        assert_array_equal(found.arrays[name], values[:, list(kept)])


def test_portions_hold_the_first_chain_first():
    draws = Draws.read(BOTH, True)
    portions = list(draws.portions(4))
    assert [size for _, size in portions] == [4, 4, 2]
    for name, values in BOTH.items():
        joined = np.concatenate([some[name] for some, _ in portions])
        assert_array_equal(joined, values.reshape(10, *values.shape[2:]))
    each = list(draws.each())
    assert len(each) == 10
    assert_array_equal(each[6]["slope"], SLOPE[1, 1])
    assert each[6]["level"] == LEVEL[1, 1]
    (one,) = Draws.read(SLOPE[:1, :1], True).each()
    assert_array_equal(one, SLOPE[0, 0])


def test_a_model_a_draw():
    X = np.array([[1.0, 2.0], [0.0, -1.0]])
    found = members_of(linear, BOTH, DrawOptions(by_chain=True), 2)
    assert (sum(found.sizes), found.chains, found.source) == (10, 2, "draws")
    assert found.sizes == [1] * 10
    assert found.names == []
    for number, model in enumerate(found.portions):
        slope = SLOPE.reshape(10, 2)[number]
        assert_allclose(model(X), X @ slope - number)


def test_models_of_many_draws(monkeypatch):
    """Twice as many rows as there are, for two versions of them, times the draws of a call."""
    X = np.arange(12.0).reshape(6, 2)

    def all_at_once(draws, X):
        return draws["slope"] @ X.T + draws["level"][:, None]

    options = DrawOptions(by_chain=True, vectorized=True)
    for answers, sizes in (
        (48, [4, 4, 2]),
        (59, [4, 4, 2]),
        (60, [5, 5]),
        (999, [10]),
        (1, [1] * 10),
    ):
        monkeypatch.setattr(module, "MAX_ANSWERS", answers)
        found = members_of(all_at_once, BOTH, options, 6)
        assert found.sizes == sizes
        assert sum(found.sizes) == 10
        answer = np.concatenate([model(X) for model in found.portions], axis=1)
        assert_allclose(answer, X @ SLOPE.reshape(10, 2).T + LEVEL.ravel())
    assert members_of(all_at_once, BOTH, options, 0).sizes == [1] * 10
    turned = members_of(lambda draws, X: all_at_once(draws, X).T, BOTH, options, 6)
    said = r"shape \(1, 6\) for 1 draws and 6 rows; got shape \(6, 1\)"
    with pytest.raises(rs.ModelError, match=said):
        turned.portions[0](X)


def test_fitted_models_have_names():
    up, down = partial(np.sum, axis=1), partial(np.prod, axis=1)
    found = members_of({"up": up, 2: down}, None, DrawOptions(), 3)
    assert found.names == ["up", "2"]
    assert found.portions == [up, down]
    assert (found.sizes, found.chains, sum(found.sizes)) == ([1, 1], 1, 2)
    assert found.source == "models"
    listed = members_of((up, down), None, DrawOptions(), 3)
    assert listed.names == ["0", "1"]
    # The same models under other names, or in another order, are others.
    identities = [
        members_of(models, None, DrawOptions(), 3).identity
        for models in ([up, down], (up, down), [down, up], {"up": up, 2: down})
    ]
    assert identities[0] == identities[1]
    assert len(set(identities)) == 3


class Estimator:
    """Answers with sums of the columns that it gets, or so many probabilities."""

    def __init__(self, kind, classes=None):
        self.kind, self.seen = kind, []
        self.__sklearn_tags__ = None
        if classes is not None:
            self.classes_, self._estimator_type = classes, "classifier"

    def predict(self, X):
        self.seen.append(type(X))
        return np.asarray(X).sum(axis=1)

    def predict_proba(self, X):
        return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))


class BaseForest:
    """An ensemble of estimators."""

    def __init__(self, estimators, **more):
        self.estimators_ = estimators
        for name, value in more.items():
            setattr(self, name, value)


class BaseBagging(BaseForest):
    """With columns of its own for each estimator."""


class _BaseVoting(BaseForest):
    """Of estimators that get the table as it is."""


def test_parts_of_ensembles_get_what_they_were_fitted_to():
    X = pd.DataFrame([[1.0, 10, 100], [2, 20, 200]])
    forest = module._averaged(BaseForest([Estimator("tree"), Estimator("tree")]))
    assert_array_equal(forest[1].predict(X), [111, 222])
    assert forest[1].estimator.seen == [np.ndarray]
    assert not hasattr(forest[0], "classes_")
    voting = module._averaged(_BaseVoting([Estimator("any")]))
    assert_array_equal(voting[0].predict(X), [111, 222])
    assert voting[0].estimator.seen == [pd.DataFrame]
    columns = [np.array([0, 2]), np.array([1])]
    bagging = module._averaged(BaseBagging([Estimator("any")] * 2, estimators_features_=columns))
    assert_array_equal(bagging[0].predict(X), [101, 202])
    assert_array_equal(bagging[1].predict(X.to_numpy()), [10, 20])


def test_classes_that_an_estimator_has_not_seen_have_probability_0():
    part = module._EnsemblePart(
        Estimator("tree", np.array([0.0, 2.0])), None, as_array=True, classes=["a", "b", "c"]
    )
    assert part.classes_ == ["a", "b", "c"]
    assert_array_equal(part.predict_proba(np.ones((2, 1))), [[0.5, 0, 0.5]] * 2)


@pytest.mark.parametrize(
    ("models", "said"),
    [
        ({}, "got none"),
        ([], "got none"),
        ([np.sum, 3], "got 3 of type int among them"),
        (3, "got 3 of type int"),
        (xr.Dataset(), "got .*Dataset"),
    ],
)
def test_what_is_no_models(models, said):
    with pytest.raises(
        (TypeError, ValueError), match=f"models must be a list or mapping .*; {said}"
    ):
        members_of(models, None, DrawOptions(), 3)


def test_functions_and_draws_belong_together():
    for one in (np.sum, Estimator("any")):
        with pytest.raises(TypeError, match=r"draws must be given with a function .*; got None"):
            members_of(one, None, DrawOptions(), 3)
    for one in ([np.sum], Estimator("any"), 3):
        with pytest.raises(TypeError, match=r"models must be a function predict\(draw, X\)"):
            members_of(one, np.ones(3), DrawOptions(), 3)


@pytest.mark.parametrize(
    ("draws", "by_chain", "said"),
    [
        ("text", False, r"over \(draw, \.\.\.\), .*; got 'text'"),
        (np.array(["a"]), False, r"over \(draw, \.\.\.\), .*; got ndarray of shape"),
        (np.array(3.0), False, r"over \(draw, \.\.\.\), "),
        (np.ones(3), True, r"over \(chain, draw, \.\.\.\), .*; got \(3,\)"),
        ({"a": np.ones(3)}, True, r"over \(chain, draw, \.\.\.\), .*; got \(3,\)"),
    ],
)
def test_what_is_no_draws(draws, by_chain, said):
    with pytest.raises(TypeError, match=f"draws must be numbers {said}"):
        Draws.read(draws, by_chain)


def test_draws_of_several_shapes():
    with pytest.raises(ValueError, match=r"got \(chain, draw\) \(1, 3\) and \(1, 4\)\."):
        Draws.read({"b": np.ones(4), "a": np.ones(3)}, False)
    with pytest.raises(ValueError, match=r"got \(chain, draw\) \(2, 0\)\."):
        Draws.read(np.ones((2, 0)), True)
    with pytest.raises(ValueError, match=r"got \(chain, draw\) none\."):
        Draws.read({}, True)
    with pytest.raises(ValueError, match="dimension 'draw'; 'slope' has sample, k. Rename"):
        Draws.read(xr.DataArray(SLOPE[0], dims=("sample", "k"), name="slope"), True)
    with pytest.raises(ValueError, match="'level' has none"):
        Draws.read(xr.Dataset({"level": 3.0}), True)
