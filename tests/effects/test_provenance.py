"""Effects of earlier versions have no checksums: their rows are compared by counts and means."""

import numpy as np
import pytest

import rhale_stats as rs
from rhale_stats.effects.provenance import check_same_rows
from rhale_stats.local.rows import columns
from rhale_stats.schema.feature_result import one_feature
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


@pytest.mark.thorough
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


def test_values_at_the_ends_of_the_bins_are_inside():
    """The message has the numbers of rows; a value beyond an end is another row."""
    x = np.array([[-1.0], [0.0], [1.0]])
    rows = local(x, x)
    effect = rs.rhale(rows, bins=rs.GivenBins([-1, 0, 1]))
    checked(effect, rows)
    for at, beyond in ((0, -1.5), (2, 1.5)):
        moved = x.copy()
        moved[at] = beyond
        said = "the bins of feature 'x0' have 3 rows in effect; the 3 rows of local give them other"
        with pytest.raises(ValueError, match=said):
            checked(effect, local(moved, x))


def test_shares_of_the_weight_are_named():
    """The bin that differs most, by four digits."""
    x = np.array([[-0.5], [0.5], [0.6], [2.5]])
    effect = rs.rhale(local(x, x, weights=[1.0, 1, 2, 4]), bins=rs.GivenBins([-1, 0, 1, 3]))
    other = local(x, x, weights=[1.0, 1, 2, 1])
    said = "bin 2 of feature 'x0' has 0.5 of the weight in effect and 0.2 in local"
    with pytest.raises(ValueError, match=f"local must have the weights .*; {said}"):
        checked(effect, other)


def test_local_effects_differ_beyond_rounding_only():
    x = np.linspace(-1, 1, 9)[:, None]
    g = np.cos(x)
    effect = rs.rhale(local(x, g), bins=rs.GivenBins([-1, 0, 1]))
    checked(effect, local(x, g * (1 + 1e-12)))
    changed = g.copy()
    changed[0] += 1e-7
    with pytest.raises(ValueError, match="its local effects of feature 'x0' come from"):
        checked(effect, local(x, changed))


def test_checksums_tell_rows_from_models():
    """Of the same rows only the local effects differ; the call's own names are in the message."""
    rows = local()
    row = one_feature(rs.rhale(rows, bins=BINS), 0)
    check_same_rows(row, columns(rows), 0)
    said = "^b must be the Dataset that two was made from; "
    with pytest.raises(ValueError, match=f"{said}it has the same rows, but its local effects of"):
        check_same_rows(row, columns(local(g=G + 1)), 0, "b", "two")
    turned = np.concatenate([X[1::-1], X[2:]])
    with pytest.raises(ValueError, match=f"{said}the values of feature 'x0', the weights or the"):
        check_same_rows(row, columns(local(turned)), 0, "b", "two")
