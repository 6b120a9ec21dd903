"""Which replicates are refused, alike for all kinds of results."""

import numpy as np
import pytest
import xarray as xr

import rhale_stats as rs
from rhale_stats.inference.draws import (
    GRID,
    Resampling,
    chains_of,
    check_boot,
    draws_of,
    in_chains,
    in_strata,
)

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
    "surface": (_surface, "its edges or levels differ"),
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


@pytest.mark.thorough
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


class TestUnits:
    """Units in strata, and draws in chains."""

    def test_all_units_are_one_stratum(self):
        (found,) = in_strata(4, None, None)
        assert found.tolist() == [0, 1, 2, 3]

    def test_rows_in_strata(self):
        found = in_strata(5, None, np.array([1, 0, 2, 0, 1]))
        assert [one.tolist() for one in found] == [[1, 3], [0, 4], [2]]

    def test_groups_in_strata(self):
        group, stratum = np.array([2, 0, 1, 2, 0]), np.array([1, 0, 1, 1, 0])
        found = in_strata(3, group, stratum)
        assert [one.tolist() for one in found] == [[0], [1, 2]]
        with pytest.raises(ValueError, match="strata must hold whole groups"):
            in_strata(3, group, np.array([1, 0, 1, 0, 0]))

    @pytest.mark.parametrize("grouped", [False, True])
    def test_frequencies_are_of_rows_only(self, grouped):
        groups = np.array(["b", "a", "b"]) if grouped else None
        asked = Resampling("pairs", groups, None, (), False, False, GRID, False)
        counts = np.array([1.0, 2.0, 3.0])
        units = asked.units(3, counts, np.ones(3, dtype=bool), None)
        assert [one.tolist() for one in units.strata] == [[0, 1] if grouped else [0, 1, 2]]
        assert (units.size is None) == grouped
        if grouped:
            code = units.unit.tolist()
            assert code[0] == code[2] != code[1]
        else:
            assert units.unit is None

    def test_groups_of_the_rows_that_are_used(self):
        groups, strata = np.array([7, 7, 8, 9, 8]), np.array(["s", "s", "t", "s", "t"])
        asked = Resampling("pairs", groups, strata, (), False, False, GRID, False)
        used = np.array([True, True, False, True, True])
        units = asked.units(4, None, used, None)
        assert units.unit.tolist() == [0, 0, 2, 1]
        assert [one.tolist() for one in units.strata] == [[0, 2], [1]]

    @pytest.mark.parametrize(("rebin", "studentize"), [(True, False), (False, True)])
    def test_choices_of_bins_are_refused_without_bins(self, rebin, studentize):
        asked = Resampling("pairs", None, None, (), rebin, studentize, GRID, False)
        with pytest.raises(ValueError, match="rebin and studentize must be False"):
            asked.refuse_choices_of_bins()
        asked._replace(rebin=False, studentize=False).refuse_choices_of_bins()


def test_chains_have_one_length():
    asked = {12: 4, 10: 2, 9: 3, 50: 2, 99: 3, 199: 1, 250: 2, 499: 1, 999: 3, 1000: 4, 1999: 1}
    assert {n: chains_of(n, 4) for n in asked} == asked


def test_draws_one_after_the_other_and_back():
    """The first chain has the first draws; what has no draws becomes a coordinate."""
    flat = np.arange(24.0).reshape(6, 4)
    drawn = xr.Dataset(
        {"curve": (("draw", "edge"), flat), "weight": ("edge", np.ones(4))},
        {"edge": list("abcd")},
    )
    found = in_chains(drawn, 2)
    assert list(found.data_vars) == ["curve"]
    assert "weight" in found.coords
    assert found["curve"].dims == ("chain", "draw", "edge")
    np.testing.assert_array_equal(found["curve"], flat.reshape(2, 3, 4))
    assert found["chain"].values.tolist() == [0, 1]
    assert found["draw"].values.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(draws_of(found, "curve"), flat)
    turned = found.transpose("edge", "draw", "chain")
    np.testing.assert_array_equal(draws_of(turned, "curve", ("edge",)), flat)


@pytest.fixture(scope="module", name="both")
def _both():
    return _effect(model, 2)


class TestWhichReplicates:
    """Those that are refused, changed by hand."""

    def test_studentized_intervals_need_errors(self, both):
        result, boot = both
        with pytest.raises(ValueError, match="must hold standard errors for method 'studentized'"):
            check_boot(result, boot, ["curve"], "bootstrap(...)", "studentized")
        check_boot(result, boot, ["curve"], "bootstrap(...)", "basic")

    @pytest.mark.parametrize("drop", ["chain", "draw"])
    def test_one_chain_or_one_draw_that_was_selected(self, both, drop):
        result, boot = both
        with pytest.raises(TypeError, match="a Dataset without replicates"):
            check_boot(result, boot.isel({drop: 0}), ["curve"], "bootstrap(...)")

    def test_no_dataset(self, both):
        with pytest.raises(TypeError, match=r"got 3"):
            check_boot(both[0], 3, ["curve"], "bootstrap(...)")

    @pytest.mark.parametrize(
        ("change", "differs"),
        [
            (lambda boot: boot.drop_vars("curve"), "it has no replicates of curve"),
            (lambda boot: boot.isel(feature=[0, 1]), "its features are x0, x1, not x0, x1, x2"),
            (lambda boot: boot.drop_vars("bin_left"), "its edges differ"),
            (
                lambda boot: boot.assign_attrs(centering="start"),
                "its curves have centering 'start', not 'mean'",
            ),
        ],
    )
    def test_what_differs(self, both, change, differs):
        result, boot = both
        with pytest.raises(ValueError, match=f"boot must be of this result; {differs}"):
            check_boot(result, change(boot), ["curve"], "bootstrap(...)")
