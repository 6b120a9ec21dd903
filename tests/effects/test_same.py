"""Effects of earlier versions have no checksums: their rows are compared by counts and means."""

import numpy as np
import pytest

import rhale_stats as rs
from rhale_stats.effects.same import check_same_rows
from rhale_stats.local.rows import columns
from rhale_stats.schema.features import one_feature
from rhale_stats.schema.identity import FINGERPRINT

RNG = np.random.default_rng(1)
X = RNG.uniform(-1, 1, (60, 1))
G = X + RNG.normal(size=(60, 1))
WEIGHT = RNG.integers(1, 4, 60).astype(float)
BINS = rs.GivenBins([-1, -0.2, 0.4, 1])


def local(x=X, g=G, **options):
    return rs.local_effects(None, x, jacobian=g, **options)


def checked(effect, other):
    effect = effect.copy()
    effect.attrs.pop(FINGERPRINT)
    check_same_rows(one_feature(effect, 0), columns(other), 0)


WEIGHTS = {
    "none": {},
    "precision": {"weights": WEIGHT, "weight_kind": "precision"},
    "frequency": {"weights": WEIGHT, "weight_kind": "frequency"},
}


@pytest.mark.parametrize("rule", [BINS, rs.AdaptiveBins(20, penalty=0.5)], ids=["given", "lines"])
@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("weighting", ["rows", "axis"])
def test_the_same_rows_pass(kind, rule, weighting):
    rows = local(**WEIGHTS[kind])
    checked(rs.rhale(rows, bins=rule, weighting=weighting), rows)


@pytest.mark.parametrize("kind", WEIGHTS)
def test_other_rows_are_refused(kind):
    effect = rs.rhale(local(**WEIGHTS[kind]), bins=BINS)
    turned = {"weights": WEIGHT[::-1].copy(), "weight_kind": kind} if kind != "none" else {}
    moved, changed = X.copy(), G.copy()
    moved[np.argmin(X)] = 0.99
    changed[3] += 0.01
    for other, text in [
        (local(moved, **WEIGHTS[kind]), "give them other numbers of rows"),
        (local(g=changed, **WEIGHTS[kind]), "from another model, output or scale"),
        (local(g=-G, **WEIGHTS[kind]), "from another model, output or scale"),
        (local(X + 0.001 + (X > 0.9) * 0.1, **WEIGHTS[kind]), "other numbers of rows"),
    ]:
        with pytest.raises(ValueError, match=text):
            checked(effect, other)
    if kind == "precision":
        with pytest.raises(ValueError, match="must have the weights that effect was made with"):
            checked(effect, local(**turned))
    if kind == "frequency":
        with pytest.raises(ValueError, match="other numbers of rows"):
            checked(effect, local(**turned))


class TestLevels:
    """Rows of levels, which are in two steps."""

    @pytest.fixture(params=["none", "frequency", "precision"])
    def options(self, request):
        return WEIGHTS[request.param]

    def of(self, factor=1.0, code=None, **options):
        code = np.arange(60) % 4 if code is None else code
        table = np.column_stack([code, X[:, 0]])
        return rs.ale_local_effects(
            lambda t: factor * t[:, 0] ** 2 * (1 + t[:, 1]), table, features=0, categorical=0,
            **options,
        )  # fmt: skip

    def test_the_same_rows_pass(self, options):
        rows = self.of(**options)
        checked(rs.ale_from_local(rows), rows)

    def test_another_model(self, options):
        with pytest.raises(ValueError, match="another model, output or scale"):
            checked(rs.ale_from_local(self.of(**options)), self.of(1.01, **options))

    def test_other_numbers_of_rows(self, options):
        code = np.arange(60) % 4
        code[0] = 1
        with pytest.raises(ValueError, match="the rows or weights of the levels of feature 'x0'"):
            checked(rs.ale_from_local(self.of(**options)), self.of(code=code, **options))
