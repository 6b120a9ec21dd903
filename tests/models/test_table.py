"""Dates and durations as axes: local effects a day, with real dates for the model."""

from __future__ import annotations

import datetime as dt

import matplotlib.dates as mdates
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import rhale_stats as rs

START = pd.Timestamp("2023-01-01")
N = 400


def moments(days=730):
    return START + pd.to_timedelta(np.random.default_rng(1).uniform(0, days, N), unit="D")


def table(when):
    return pd.DataFrame({"when": when, "b": np.random.default_rng(2).normal(size=N)})


def elapsed(when):
    zone = getattr(when.dt, "tz", None)
    return ((when - START.tz_localize(zone)) / pd.Timedelta("1D")).to_numpy()


def curve(X):
    """Its derivative by time is sin(b) + 2 · days / 1000."""
    days = elapsed(X["when"])
    return np.sin(X["b"].to_numpy()) * days + days**2 / 1000


def slope(X):
    return np.sin(X["b"].to_numpy()) + elapsed(X["when"]) / 500


@pytest.mark.thorough
@pytest.mark.parametrize(
    "kind",
    [
        "datetime64[ns]",
        "datetime64[us]",
        "datetime64[s]",
        "datetime64[ns, UTC]",
        "datetime64[us, Asia/Tokyo]",
    ],
)
def test_derivatives_by_time_are_per_day(kind):
    zone = kind.partition(", ")[2].rstrip("]") or None
    when = pd.Series(moments()).dt.tz_localize(zone).astype(kind)
    X = table(when)
    seen = set()

    def model(rows):
        seen.add(str(rows["when"].dtype))
        return curve(rows)

    local = rs.local_effects(model, X)
    assert local["local_effect_method"].values.tolist() == ["central_difference"] * 2
    assert local["feature_units"].values[0].startswith("days since 1970-01-01")
    # Steps of some minutes, held in microseconds.
    np.testing.assert_allclose(local["local_effect"].values[:, 0], slope(X), atol=1e-5)
    assert seen <= {kind, kind.replace("[s", "[us")}


def test_an_hour_of_seconds_has_derivatives_as_well():
    X = table(pd.Series(moments(1 / 24)).dt.as_unit("us"))
    local = rs.local_effects(curve, X, features="when")
    np.testing.assert_allclose(local["local_effect"].values[:, 0], slope(X), rtol=0.01, atol=1e-3)


def dates_only(library):
    days = np.random.default_rng(3).integers(0, 700, N)
    dates = [START.date() + dt.timedelta(days=int(day)) for day in days]
    b = np.random.default_rng(2).normal(size=N)
    if library == "polars":
        pl = pytest.importorskip("polars", reason="polars is not installed")
        return pl.DataFrame({"when": dates, "b": b}), days
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    if library == "arrow":
        return pa.table({"when": dates, "b": b}), days
    column = pd.Series(dates, dtype=pd.ArrowDtype(pa.date32()))
    return pd.DataFrame({"when": column, "b": b}), days


def of_dates(X):
    """Twice the days since the start, whatever the library; refuses what is no date."""
    values = X["when"].to_pylist() if hasattr(X["when"], "to_pylist") else list(X["when"])
    assert {type(one) for one in values} == {dt.date}
    return 2.0 * np.array([(one - START.date()).days for one in values])


@pytest.mark.parametrize("library", ["polars", "arrow", "pandas"])
def test_dates_without_a_time_have_slopes_across_cells_of_whole_days(library):
    X, _ = dates_only(library)
    local = rs.local_effects(of_dates, X, features="when")
    assert local["local_effect_method"].item() == "finite_difference"
    edges = local["cell_value"].values[0]
    np.testing.assert_array_equal(edges, np.rint(edges))
    np.testing.assert_allclose(local["local_effect"].values, 2, rtol=1e-12)
    effect = rs.ale(of_dates, X, features="when")
    assert effect["average_effect"].item() == pytest.approx(2)
    grid = rs.pdp(of_dates, X, features="when", n_grid=6)["grid_value"].values[0]
    np.testing.assert_array_equal(grid, np.rint(grid))
    with pytest.raises(ValueError, match=r"method .*less than a day; column 'when'.*convert"):
        rs.local_effects(of_dates, X, features="when", method="central_difference")


def test_durations_are_days():
    X = pd.DataFrame({"gap": pd.to_timedelta(np.random.default_rng(0).uniform(1, 9, N), unit="D")})
    local = rs.local_effects(lambda X: 3 * (X["gap"] / pd.Timedelta("1D")).to_numpy(), X)
    np.testing.assert_allclose(local["local_effect"].values, 3, rtol=1e-6)
    assert local["feature_units"].item() == "day"


def effect_of_time():
    X = table(pd.Series(moments()).dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin"))
    return rs.rhale(rs.local_effects(curve, X), bins=rs.EqualWidthBins(4))


def test_tables_show_dates():
    effect = effect_of_time()
    lines = rs.tidy(effect.sel(feature=["when"]))
    assert str(lines["bin_left"].dtype) == "datetime64[us, Europe/Berlin]"
    first = pd.Timestamp(moments().min(), tz="UTC").floor("us")
    assert lines["bin_left"].iloc[0] == first
    printed = str(rs.summary(effect, "when"))
    assert "[2023-01-0" in printed
    assert "days since" not in printed
    both = rs.tidy(effect)
    assert isinstance(both["bin_left"].iloc[0], pd.Timestamp)
    assert isinstance(both["bin_left"].iloc[-1], float)


def test_pictures_have_ticks_of_dates():
    effect = effect_of_time()
    lower = rs.plots.effect(effect, "when")[1]
    first = rs.plots.effects(effect, list(effect["feature"].values))[0]
    for panel in (lower, first):
        assert isinstance(panel.xaxis.get_major_formatter(), mdates.ConciseDateFormatter)
        assert panel.xaxis.get_major_formatter().format_ticks([19358 - 1 / 24, 19723 - 1 / 24]) == [
            "2023",
            "2024",
        ]
    assert "[" not in lower.get_xlabel()


def test_values_of_predict_may_be_dates():
    effect = effect_of_time()
    at = [pd.Timestamp("2023-06-01", tz="UTC"), pd.Timestamp("2024-06-01", tz="UTC")]
    days = [(one.tz_localize(None) - pd.Timestamp(0)) / pd.Timedelta("1D") for one in at]
    np.testing.assert_array_equal(
        rs.predict(effect, at, "when").values, rs.predict(effect, days, "when").values
    )


@pytest.mark.thorough
@pytest.mark.parametrize("engine", ["h5netcdf", "zarr"])
def test_files_keep_what_says_that_numbers_are_dates(engine, tmp_path):
    effect = effect_of_time()
    if engine == "zarr":
        pytest.importorskip("zarr", reason="zarr is not installed")
        effect.to_zarr(tmp_path / "effect.zarr")
        found = xr.load_dataset(tmp_path / "effect.zarr", engine="zarr")
    else:
        effect.to_netcdf(tmp_path / "effect.nc", engine=engine)
        found = xr.load_dataset(tmp_path / "effect.nc", engine=engine)
    xr.testing.assert_identical(found, effect)
    assert "Europe/Berlin" in found["feature_units"].values[0]


def test_regions_by_dates():
    X = table(pd.Series(moments()))
    turn = pd.Timestamp("2024-01-01")
    model = lambda X: np.where(X["when"] < turn, 1, -1) * X["b"].to_numpy()  # noqa: E731
    local = rs.local_effects(model, X, features="b")
    tree = rs.regions(local, "b", conditioning=X[["when"]], rng=0)
    rules = tree["rule"].values.tolist()
    assert any(rule.startswith("when ≤ 202") for rule in rules)
    region = rs.assign(tree, X).values
    early = (X["when"] < turn).to_numpy()
    assert len(set(region[early])) == len(set(region[~early])) == 1


def test_missing_dates_go_through_missing():
    when = pd.Series(moments())
    when.iloc[:7] = pd.NaT
    X = table(when)
    with pytest.raises(ValueError, match="'when'"):
        rs.local_effects(lambda X: X["b"], X)
    local = rs.local_effects(
        lambda X: X["when"].notna() * X["b"], X, features=["when", "b"], missing="drop"
    )
    assert local["n_missing"].values.tolist() == [7, 0]


def test_a_name_as_long_as_a_book_is_refused_in_a_line():
    """A picture took minutes, and a summary had 12 MB."""
    table = pd.DataFrame({"x" * 100_000: [1.0, 2.0], "b": [3.0, 4.0]})
    with pytest.raises(ValueError, match=r"column 0 has 100,000, and begins with 'x{20}'") as error:
        rs.local_effects(lambda X: np.asarray(X)[:, 0], table)
    assert len(str(error.value)) < 300
