"""Pictures of profiles whose standard errors hold the parameters of a model."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from scipy import stats

import rhale_stats as rs
from tests.helpers import as_of_a_file, labelled


@pytest.fixture(scope="module", name="profile")
def _profile():
    rng = np.random.default_rng(8)
    X = pd.DataFrame({"a": rng.uniform(-1, 1, 150), "b": rng.normal(size=150)})
    X["g"] = pd.Categorical(rng.choice(list("uvw"), 150))
    y = rng.poisson(np.exp(X["a"] + 0.5 * X["a"] * X["b"] + (X["g"] == "v")))
    model = smf.poisson("y ~ a * b + g", X.assign(y=y)).fit(disp=0)
    profile = rs.pdp(model, X, features=["a", "g"], n_grid=6)
    return rs.std_error(profile, model=model, X=X)


def ends_of(row, name, factor):
    half = factor * row[name].values
    return np.column_stack([row["curve"] - half, row["curve"] + half])


def row_of(profile, feature):
    return profile.sel(feature=feature).dropna("grid", subset=["curve"])


@pytest.mark.parametrize("interval", [False, True])
def test_areas_are_all_of_the_error_and_the_part_of_the_rows(profile, interval):
    row, factor = row_of(profile, "a"), 1.0
    if interval:
        factor = stats.t.ppf(0.975, row["curve_df"].values)
        profile = rs.confint(profile)
    what = "95 % interval" if interval else "± standard error"
    panel = rs.plots.profile(profile, "a")
    for label, name in (
        (f"{what}{', pointwise' if interval else ''}, rows and parameters", "curve_se"),
        (f"{what}, rows alone", "curve_se_rows"),
    ):
        (path,) = labelled(panel, label).get_paths()
        drawn = {tuple(vertex) for vertex in path.vertices.round(9)}
        for end in ends_of(row, name, factor).T:
            assert set(zip(row["grid_value"].values.round(9), end.round(9), strict=True)) <= drawn


def test_levels_have_a_light_whisker_and_a_dark_one_in_it(profile):
    panel = rs.plots.profile(profile, "g")
    row = row_of(profile, "g")
    for label, name in (
        ("± standard error, rows and", "curve_se"),
        ("± standard error, rows alone", "curve_se_rows"),
    ):
        (collection,) = labelled(panel, label).lines[2]
        drawn = [segment[:, 1] for segment in collection.get_segments()]
        np.testing.assert_allclose(drawn, ends_of(row, name, 1.0), rtol=1e-12)


def test_errors_of_the_rows_are_dashed_lines_as_before(profile):
    known = as_of_a_file(profile)
    rows = known.drop_vars([name for name in profile.data_vars if "_se_" in str(name)])
    labels = rs.plots.profile(rows, "a").get_legend_handles_labels()[1]
    assert "± standard error, rows and parameters" in labels
    assert not [label for label in labels if "rows alone" in label]


def test_derivatives_by_dates_are_per_day():
    """They were "per days since 1970-01-01"."""
    X = pd.DataFrame({"t": pd.date_range("2020-01-01", periods=50)})
    X.attrs["output_units"] = "kg"
    profile = rs.ice(lambda X: X["t"].dt.day.to_numpy() * 0.1, X, kind="derivative")
    assert rs.plots.profile(profile, "t").get_ylabel() == "d output / d t [kg per day]"
