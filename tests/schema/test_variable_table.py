"""Results hold what the table of variables says, and nothing that is not in it."""

from __future__ import annotations

import numpy as np
import pytest

import rhale_stats as rs
from rhale_stats.schema import kinds
from rhale_stats.schema.variable_table import VARIABLES
from rhale_stats.schema.variables import DIMENSIONS, variable

X = np.random.default_rng(4).normal(size=(60, 2))
QUIET = {"progress": False}


def model(X):
    return X[:, 0] * X[:, 1] + X[:, 1]


def _local():
    return rs.local_effects(model, X, **QUIET)


RESULTS = {
    kinds.AVERAGES: lambda: rs.confint(
        rs.averages(rs.Parametric(lambda b, X: X @ b, [1.0, 2.0], np.eye(2)), X)
    ),
    kinds.EFFECT: lambda: rs.confband(rs.confint(rs.rhale(_local())), n_draws=50, rng=0),
    kinds.PROFILE: lambda: rs.ice(model, X, n_grid=4),
    kinds.SURFACE: lambda: rs.ale2(model, X, (0, 1), bins=rs.QuantileBins(2), centering="start"),
    kinds.H_STATISTICS: lambda: rs.h_statistic(model, X, n_rows=20, rng=0, keep_answers=True),
    kinds.TREE: lambda: rs.regions(_local(), 0),
    kinds.INTERACTIONS: lambda: rs.interaction_matrix(_local(), n_permutations=19, rng=0, **QUIET),
    kinds.REPLICATES: lambda: rs.bootstrap(
        _local(), rs.rhale(_local()), n_resamples=4, n_grid=3, rng=0, rebin=True, **QUIET
    ),
}
# What depends on the call, and is made of a variable that is in the table.
MADE = ("_se", "_influence")
# Replicates and outputs come before, a grid in place of bins.
OUTER = ("chain", "draw", "output", "grid")
# Not of nodes: the rows of the tree.
APART = {"region_of_row"}
# Of what the long name says more: the feature, the centring, the kind of weights.
OWN_WORDS = {kinds.SURFACE}


@pytest.mark.thorough
@pytest.mark.parametrize("kind", VARIABLES, ids=lambda kind: kind.name)
def test_variables_are_those_of_the_table(kind):
    table, result = VARIABLES[kind], RESULTS[kind]()
    assert result.data_vars
    for name, array in result.data_vars.items():
        if name in APART or (name not in table and str(name).endswith(MADE)):
            continue
        dims, long_name, units = table[str(name)]
        if set(array.dims).isdisjoint(OUTER):
            assert array.dims == dims, name
        if kind not in OWN_WORDS:
            assert array.attrs["long_name"] == long_name, name
        if units:
            assert array.attrs["units"] == units, name


@pytest.mark.parametrize("kind", VARIABLES, ids=lambda kind: kind.name)
def test_all_that_is_in_the_table_can_be_read(kind):
    for name, (dims, long_name, units) in VARIABLES[kind].items():
        assert long_name, name
        assert isinstance(units, str)
        assert {*dims} <= {*DIMENSIONS, "grid_cell"}, name


def test_facts_replace_the_words_of_the_table():
    dims, values, about = variable("effect", np.zeros((1, 2)), long_name="other", ddof=1)
    assert dims == ("feature", "bin")
    assert about == {"long_name": "other", "units": "output units per feature unit", "ddof": 1}
    assert variable("effect", values, kinds.EFFECT, ("draw", "feature", "bin"))[0][0] == "draw"
