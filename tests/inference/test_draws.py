"""Which replicates are refused, alike for all kinds of results."""

import numpy as np
import pytest

import rhale_stats as rs

X = np.random.default_rng(0).uniform(-1, 1, (60, 3))


def model(X):
    return X[:, 0] * X[:, 1]


def other(X):
    return X[:, 0] ** 2 * X[:, 1] + X[:, 0]


def _effect(model, n_bins):
    local = rs.local_effects(model, X)
    effect = rs.rhale(local, bins=rs.EqualWidthBins(n_bins))
    return effect, rs.bootstrap(local, effect, n_resamples=8, rng=0, progress=False)


def _alone(result):
    return result, rs.bootstrap(result, n_resamples=8, rng=0, progress=False)


def _surface(model, n_bins):
    return _alone(rs.ale2(model, X, (0, 1), bins=rs.EqualWidthBins(n_bins), progress=False))


def _h(model, n_bins):
    features = [0, n_bins - 1]
    return _alone(
        rs.h_statistic(
            model, X, features=features, n_rows=20, rng=0, keep_answers=True, progress=False
        )
    )


# How a result and its replicates are made of a model, and what is other with three bins.
WINGS = {
    "effect": (_effect, "its edges differ"),
    "profile": (lambda f, n: _alone(rs.ice(f, X, n_grid=2 * n)), "its points of the grid differ"),
    "surface": (_surface, "its edges differ"),
    "H": (_h, "its features are x0, x1, not x0, x2"),
}


@pytest.fixture(scope="module", name="made", params=WINGS)
def _made(request):
    make, differs = WINGS[request.param]
    return make, differs, *make(model, 2)


def test_replicates_of_the_result_are_taken(made):
    _, _, result, boot = made
    rs.confint(result, boot)


def test_none_where_the_method_needs_them(made):
    with pytest.raises(ValueError, match="boot must be given for method 'basic': bootstrap"):
        rs.confint(made[2], method="basic")


def test_what_are_no_replicates(made):
    with pytest.raises(TypeError, match="boot must be what .* a Dataset without replicates"):
        rs.confint(made[2], made[2])


def test_replicates_of_another_partition(made):
    make, differs, _, boot = made
    with pytest.raises(ValueError, match=f"boot must be of this result; .*{differs}"):
        rs.confint(make(model, 3)[0], boot)


def test_replicates_of_another_model(made):
    """A surface took them: only the number of its cells was compared."""
    make, _, _, boot = made
    with pytest.raises(ValueError, match="boot must be of this result; .* another model"):
        rs.confint(make(other, 2)[0], boot)


def test_replicates_of_another_kind(made):
    boot = rs.bootstrap(rs.ice(model, X, n_grid=3), n_resamples=8, rng=0, progress=False)
    with pytest.raises(ValueError, match="boot must"):
        rs.confint(made[2], boot)
