"""Results that are not whole any more: right numbers, or a refusal in words."""

from __future__ import annotations

import dis
from operator import attrgetter
from pathlib import Path
from random import Random

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import rhale_stats as rs
from tests.every_kind import model, results, table

PACKAGE = str(Path(rs.__file__).parent)
X = table()
AT = np.linspace(0.1, 0.9, 5)
VERBS = {
    **{
        name: attrgetter(name)(rs)
        for name in (
            *("rhale", "std_error", "confint", "wald_test", "effect_sizes", "tidy", "glance"),
            *("plots.effects", "plots.surface", "plots.tree", "plots.h_statistics", "plots.curves"),
            *("plots.interactions", "to_datatree", "ale_from_local", "plots.forest"),
        )
    },
    "summary": lambda d: str(rs.summary(d)),
    "show": lambda d: repr(rs.show(d)),
    "confband": lambda d: rs.confband(d, rng=0, n_draws=200),
    "vcov": lambda d: rs.vcov(d, "a"),
    "equivalence_test": lambda d: rs.equivalence_test(d, delta=1.0),
    "predict": lambda d: rs.predict(d, AT, "a"),
    "plots.effect": lambda d: rs.plots.effect(d, "a"),
    "plots.compare": lambda d: rs.plots.compare(d, "a"),
    "compare": lambda d: rs.compare(d, d, rng=0, n_draws=200),
    "assign": lambda d: rs.assign(d, X),
    "regions": lambda d: rs.regions(d, "a", conditioning=X, test=None),
    "bootstrap": lambda d: rs.bootstrap(d, n_resamples=4, rng=0, progress=False),
}


@pytest.fixture(scope="module")
def made():
    return {name: one for name, one in results(X).items() if isinstance(one, xr.Dataset)}


def raw(error):
    """Whether nobody put an error in words: no ``raise`` of the package, or no documented type."""
    step = error.__traceback__
    while step.tb_next is not None:
        step = step.tb_next
    code = step.tb_frame.f_code
    said = dis.opname[code.co_code[step.tb_lasti]] == "RAISE_VARARGS"
    in_words = code.co_filename.startswith(PACKAGE) and said
    return not in_words or not isinstance(error, ValueError | TypeError | KeyError | rs.ModelError)


def error_of(call, result):
    try:
        call(result)
    except Exception as error:
        return error
    return None


def damaged(result, choose):
    """The same with something taken away, replaced or turned; and what was done."""
    name = choose.choice(list(result.variables))
    one = result[name]
    coordinate = choose.choice(list(result.coords))
    n = result[coordinate].size
    others = [np.arange(n) * 1.5, np.array([f"q{k}" for k in range(n)]), np.full(n, np.nan)]
    others.append(pd.date_range("2020", periods=n).to_numpy())
    attribute = choose.choice(list(result.attrs))
    dim = choose.choice(list(result.dims))
    part = choose.choice([slice(2), slice(1, None), slice(None, None, -1), slice(0), 0])
    options = {
        f"drop {name}": lambda: result.drop_vars(name),
        f"replace {name} by 1": lambda: result.assign({name: 1.0}),
        f"replace {name} by other rows": lambda: result.assign({name: ("other", np.ones(3))}),
        f"turn {name}": lambda: result.assign({name: one.transpose(*one.dims[::-1])}),
        f"complex {name}": lambda: result.assign({name: one.astype(complex)}),
        f"text {name}": lambda: result.assign({name: one.astype("U8")}),
        f"coordinate {coordinate}": lambda: result.assign_coords(
            {
                coordinate: (
                    result[coordinate].dims,
                    choose.choice(others).reshape(result[coordinate].shape),
                )
            }
        ),
        f"attribute {attribute}": lambda: result.assign_attrs(
            {attribute: choose.choice([0, "x", "", [1, 2], -1.5])}
        ),
        f"no attribute {attribute}": lambda: result.drop_attrs().assign_attrs(
            {key: value for key, value in result.attrs.items() if key != attribute}
        ),
        f"{dim} {part}": lambda: result.isel({dim: part}),
        f"rename {dim}": lambda: result.rename({dim: "zz"}),
    }
    what = choose.choice(list(options))
    try:
        return what, options[what]()
    except (ValueError, TypeError):
        return damaged(result, choose)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("of_file", [False, True])
def test_damages_end_in_numbers_or_in_words(made, of_file):
    choose = Random(7 + of_file)
    refused = 0
    for trial in range(80):
        kind = choose.choice(list(made))
        what, result = damaged(made[kind], choose)
        verb = choose.choice(list(VERBS))
        if of_file:
            # A file keeps variables and attributes alone.
            result = result.copy()
            result.encoding = {}
        error = error_of(VERBS[verb], result)
        assert error is None or not raw(error), (trial, kind, what, verb, error)
        refused += error is not None
        plt.close("all")
    assert 30 < refused < 80


@pytest.mark.parametrize(
    ("kind", "damage", "call", "said"),
    [
        (
            "pdp",
            lambda d: d.isel(grid=slice(0, 2)),
            VERBS["predict"],
            "dimension grid, in its order",
        ),
        (
            "pdp",
            lambda d: d.isel(grid=slice(0, 2)),
            VERBS["compare"],
            "dimension grid, in its order",
        ),
        ("pdp", lambda d: d.isel(grid_other=slice(2)), VERBS["confint"], "dimension grid_other"),
        (
            "rhale",
            lambda d: d.drop_vars("moments"),
            VERBS["predict"],
            "no variable 'moments'",
        ),
        (
            "rhale",
            lambda d: d.drop_vars("moments"),
            VERBS["summary"],
            "no variable 'moments'",
        ),
        ("rhale", lambda d: d.drop_vars("spread"), VERBS["summary"], "'spread'"),
        ("std_error", lambda d: d.drop_vars("effect_se"), VERBS["confband"], r"std_error\(effect"),
        ("effect_sizes", lambda d: d.isel(ci_bound=[0]), VERBS["tidy"], "dimension ci_bound"),
        ("compare_h", lambda d: d.drop_vars("h2_difference"), VERBS["tidy"], "h2_difference"),
        ("regions", lambda d: d.assign(levels=("node", d["loss"].data)), VERBS["assign"], "float"),
        ("rhale", lambda d: d.drop_dims("moment"), VERBS["predict"], "no variable moments"),
        ("ale2", lambda d: d.assign_attrs(n_rows="many"), VERBS["summary"], "n_rows='many'"),
        ("pdp", lambda d: d.assign_attrs(method=[1, 2]), VERBS["confint"], "effect must be"),
        (
            "pdp",
            lambda d: d.isel(grid_other=slice(None, None, -1)),
            VERBS["confband"],
            "rows in another order than columns",
        ),
    ],
)
def test_what_was_taken_or_replaced_is_named(made, kind, damage, call, said):
    with pytest.raises(ValueError, match=said):
        call(damage(made[kind]))


@pytest.mark.thorough
def test_parts_of_files_that_belong_together_are_refused(made, tmp_path):
    made["pdp"].to_netcdf(tmp_path / "pdp.nc")
    made["rhale"].to_netcdf(tmp_path / "rhale.nc")
    with xr.open_dataset(tmp_path / "pdp.nc") as profile:
        with pytest.raises(ValueError, match="must have its whole grid"):
            rs.predict(profile.isel(grid=slice(0, 2)), AT, "a")
        xr.testing.assert_allclose(rs.predict(profile, AT, "a"), rs.predict(made["pdp"], AT, "a"))
    with (
        xr.open_dataset(tmp_path / "rhale.nc") as effect,
        pytest.raises(ValueError, match="no variable moments"),
    ):
        rs.predict(effect.drop_vars("moments"), AT, "a")


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["std_error", "pdp", "ale", "over_models"])
def test_what_was_selected_turned_or_copied_is_whole(made, kind):
    result = made[kind]
    expected = rs.predict(result, AT, "a")
    for same in (
        result.isel(feature=[0]),
        result.isel(feature=slice(None, None, -1)),
        result.transpose(*list(result.dims)[::-1]),
        result.copy(deep=True),
        result.assign(own=("own", [1.0])),
        result.drop_vars(["curve_ci", "effect_ci"], errors="ignore"),
    ):
        xr.testing.assert_allclose(rs.predict(same, AT, "a").transpose(*expected.dims), expected)


def test_errors_of_the_users_own_functions_stay_theirs(made):
    def statistic(_rows):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="^'mine'$"):
        rs.bootstrap(
            made["local_effects"], made["rhale"], n_resamples=4, statistic=statistic, rng=0
        )


@pytest.mark.thorough
def test_a_result_is_not_printed_or_written_otherwise(made, tmp_path):
    effect = made["rhale"]
    effect.to_netcdf(tmp_path / "effect.nc")
    with xr.open_dataset(tmp_path / "effect.nc") as found:
        xr.testing.assert_identical(found.load(), effect)
    again = rs.rhale(rs.local_effects(model, X, features=["a", "b"]))
    assert repr(again) == repr(effect)


def test_an_error_of_the_package_is_not_blamed_on_a_whole_result(monkeypatch):
    """But on a result of a file, of which it is not known whether it is whole."""
    from rhale_stats.effects import tables

    x = np.random.default_rng(0).normal(size=(50, 1))
    effect = rs.rhale(rs.local_effects(None, x, jacobian=x))
    monkeypatch.setattr(tables, "each_feature", np.linalg.inv)
    with pytest.raises(TypeError, match="cannot directly convert"):
        rs.tidy(effect)
    effect.encoding = {}
    with pytest.raises(ValueError, match="effect must be whole.*do not fit together"):
        rs.tidy(effect)
