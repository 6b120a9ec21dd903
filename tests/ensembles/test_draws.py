"""Effects of several models: brute force, a posterior in closed form, ArviZ, what is refused."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import arviz
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal

import rhale_stats as rs

RNG = np.random.default_rng(3)
X = RNG.uniform(-1, 1, (150, 2))
BETAS = RNG.normal([2.0, 1.0], 0.2, (24, 2))
N_DRAWS = 400


def interacting(beta, X):
    return X @ beta + beta[0] * X[:, 0] * X[:, 1] + np.sin(3 * beta[1] * X[:, 1])


@pytest.mark.thorough
def test_the_error_is_that_of_the_models_and_that_of_the_rows():
    """The law of total variance, from the effects of the models one by one."""
    bins = rs.EqualWidthBins(4)
    found = rs.std_error(rs.over_models(interacting, X, draws=BETAS[:8], bins=bins))
    effects = [
        rs.std_error(rs.rhale(rs.local_effects(lambda X, b=b: interacting(b, X), X), bins=bins))
        for b in BETAS[:8]
    ]
    curves, errors = (
        np.stack([one.rhale.in_bins()[name].sel(feature="x0").values for one in effects])
        for name in ("curve", "curve_se")
    )
    between, within = curves.var(axis=0, ddof=1), np.mean(errors**2, axis=0)
    row = found.sel(feature="x0")
    # The edges of four equal bins are points of a grid of 101.
    at = slice(0, 101, 25)
    assert_allclose(row["curve_se_model"].values[at] ** 2, between, rtol=1e-8)
    assert_allclose(row["curve_se_rows"].values[at] ** 2, within, rtol=1e-8)
    assert_allclose(row["curve_se"].values[at] ** 2, between + within, rtol=1e-8)
    assert_allclose(row["curve_estimate"].values[at], curves.mean(axis=0), atol=1e-12)
    # How much rows differ is a mean over the models, not their spread.
    spread = np.stack([one["heterogeneity"].sel(feature="x0").values for one in effects])
    middle = [12, 37, 62, 87]
    assert_allclose(row["heterogeneity_estimate"].values[middle], spread.mean(axis=0), rtol=1e-9)


@pytest.mark.thorough
@pytest.mark.parametrize("bins", [None, rs.OptimalBins(), rs.QuantileBins(5)])
def test_one_model_has_the_effect_of_rhale(bins):
    def model(X):
        return interacting(BETAS[0], X)

    effect = rs.std_error(rs.rhale(rs.local_effects(model, X), bins=bins))
    found = rs.over_models([model], X, bins=bins, n_grid=7).isel(chain=0, draw=0)
    for name in ("x0", "x1"):
        z = found["grid_value"].sel(feature=name).values
        for what in ("curve", "effect"):
            own = rs.predict(effect, z, name, what).values
            assert_array_equal(found[what].sel(feature=name), own)
    in_bins = effect.rhale.in_bins()
    for what in ("average_effect", "heterogeneity_index", "heterogeneity_output"):
        assert_array_equal(found[what], in_bins[what])
    assert_array_equal(found["average_effect_se_rows"], effect["average_effect_se"])
    # Sums of the same parts in another order.
    np.testing.assert_allclose(found["curve_se_rows"][:, 0], effect["curve_se"][:, 0], rtol=1e-14)


@pytest.mark.thorough
def test_bins_are_those_of_the_mean_model():
    """Means of piecewise linear effects in the same bins are the effect of the mean model."""
    found = rs.over_models(interacting, X, draws=BETAS)

    def mean(X):
        return np.mean([interacting(b, X) for b in BETAS], axis=0)

    effect = rs.rhale(rs.local_effects(mean, X))
    assert effect["n_bins"].max() > 1
    for name in ("x0", "x1"):
        z = found["grid_value"].sel(feature=name).values
        for what in ("curve", "effect"):
            own = rs.predict(effect, z, name, what).values
            assert_allclose(found[f"{what}_estimate"].sel(feature=name), own, atol=1e-7)
    assert "mean of the local effects" in found.attrs["bins"]


class TestPosteriorOfLeastSquares:
    """Flat prior, known error: beta is normal about least squares, and so is the curve."""

    @pytest.fixture(scope="class", name="posterior")
    @staticmethod
    def _posterior():
        rng = np.random.default_rng(0)
        y = X @ [2.0, 1.0] + rng.normal(size=len(X))
        root = np.linalg.inv(X.T @ X)
        draws = rng.multivariate_normal(root @ X.T @ y, root, N_DRAWS)
        # The partial dependence of a linear model is its centred line, too.
        options = {"vectorized": True, "max_draws": N_DRAWS, "method": "pdp"}
        found = rs.over_models(lambda beta, X: beta @ X.T, X, draws=draws, n_grid=9, **options)
        return draws, np.sqrt(np.diagonal(root)), rs.confband(rs.confint(found), level=0.9)

    @pytest.mark.thorough
    def test_spread_of_the_curve(self, posterior):
        draws, sd, found = posterior
        for number, name in enumerate(("x0", "x1")):
            away = np.abs(found["grid_value"].sel(feature=name) - X[:, number].mean())
            own = found["curve_se_model"].sel(feature=name)
            assert_allclose(own, draws[:, number].std(ddof=1) * away, rtol=1e-6)
            # The closed form, up to the error of a standard deviation of so many draws.
            assert_allclose(own, sd[number] * away, rtol=4 / np.sqrt(2 * N_DRAWS))

    def test_fresh_draws_lie_within_the_band(self, posterior):
        draws, sd, found = posterior
        rng = np.random.default_rng(1)
        fresh = draws[:, 0].mean() + sd[0] * rng.standard_normal(4000)
        row = found.sel(feature="x0")
        away = row["grid_value"].values - X[:, 0].mean()
        curves = fresh[:, None] * away
        low, high = row["curve_band"].transpose("ci_bound", "grid").values
        share = ((curves >= low) & (curves <= high)).all(axis=1).mean()
        # Two errors: of the quantile of the draws, of the share of the fresh ones.
        assert share == pytest.approx(0.9, abs=4 * np.sqrt(0.09 / N_DRAWS + 0.09 / 4000))

    def test_intervals_are_credible_and_say_so(self, posterior):
        draws, _, found = posterior
        ends = found["curve_ci"]
        away = found["grid_value"].values - X.mean(axis=0)[:, None]
        lines = draws[:, :, None] * away
        assert_allclose(ends, np.moveaxis(np.quantile(lines, [0.025, 0.975], axis=0), 0, -1))
        assert ends.attrs["ci_kind"] == "credible"
        assert ends.attrs["long_name"].startswith("credible interval of")
        assert found["curve_band"].attrs["ci_kind"] == "credible"


class TestDraws:
    """Draws of every form are the same draws."""

    LINEAR = staticmethod(lambda beta, X: X @ np.asarray(beta["slope"]) + beta["level"])

    @pytest.fixture(scope="class", name="arrays")
    @staticmethod
    def _arrays():
        rng = np.random.default_rng(5)
        return {"slope": rng.normal(size=(2, 6, 2)), "level": rng.normal(size=(2, 6))}

    def test_forms(self, arrays):
        arrays = {name: every[:, :3] for name, every in arrays.items()}
        options = {"bins": rs.EqualWidthBins(2), "n_grid": 3}
        found = rs.over_models(self.LINEAR, X, draws=arrays, by_chain=True, **options)
        assert found.sizes["chain"] == 2
        assert_allclose(found["average_effect"], arrays["slope"], rtol=1e-8)
        posterior = xr.Dataset(
            {
                "slope": (("chain", "draw", "k"), arrays["slope"]),
                "level": (("chain", "draw"), arrays["level"]),
            }
        )
        forms = [
            posterior,
            posterior.transpose(),
            xr.DataTree.from_dict({"/posterior": posterior}),
            arviz.from_dict({"posterior": arrays})
            if int(arviz.__version__[0])
            else arviz.from_dict(posterior=arrays),
        ]
        for form in forms:
            same = rs.over_models(self.LINEAR, X, draws=form, **options)
            xr.testing.assert_identical(same, found)

    @pytest.mark.thorough
    def test_one_array(self, arrays):
        slopes = arrays["slope"]
        linear = lambda beta, X: X @ beta  # noqa: E731
        options = {"bins": rs.EqualWidthBins(2), "n_grid": 3}
        found = rs.over_models(linear, X, draws=slopes, by_chain=True, **options)
        named = xr.DataArray(slopes, dims=("chain", "draw", "k"))
        xr.testing.assert_identical(rs.over_models(linear, X, draws=named, **options), found)
        flat = rs.over_models(linear, X, draws=slopes.reshape(12, 2), **options)
        assert flat.sizes["chain"] == 1
        assert_array_equal(flat["curve"].values[0], found["curve"].values.reshape(12, 2, 3))

    def test_many_at_once(self, arrays):
        calls = []

        def all_at_once(beta, X):
            calls.append(len(beta["level"]))
            return beta["slope"] @ X.T + beta["level"][:, None]

        options = {"draws": arrays, "by_chain": True, "n_grid": 3}
        found = rs.over_models(all_at_once, X, vectorized=True, **options)
        assert set(calls) == {12}
        one = rs.over_models(self.LINEAR, X, **options)
        assert_allclose(found["curve"], one["curve"], atol=1e-8)
        with pytest.raises(rs.ModelError, match=r"\(12, 150\) for 12 draws .*got shape \(150,"):
            rs.over_models(lambda beta, X: np.zeros(150), X, vectorized=True, **options)

    @pytest.mark.thorough
    def test_thinned_at_equal_distances_in_every_chain(self, arrays):
        found = rs.over_models(
            self.LINEAR, X, draws=arrays, by_chain=True, max_draws=6, bins=rs.EqualWidthBins(1)
        )
        expected = arrays["slope"][:, [0, 2, 5]]
        assert_allclose(found["average_effect"], expected, rtol=1e-8)

    @pytest.mark.parametrize(
        ("draws", "error", "said"),
        [
            ("text", TypeError, r"draws must be numbers over \(draw, \.\.\.\)"),
            (np.array(["a"]), TypeError, r"draws must be numbers"),
            ({"a": np.ones(3), "b": np.ones(4)}, ValueError, r"got .*\(1, 3\) and \(1, 4\)"),
            ({}, ValueError, "at least one; got .* none"),
            (np.ones((0, 2)), ValueError, r"at least one; got .*\(1, 0\)"),
            (xr.DataArray(np.ones(3), dims="sample"), ValueError, "dimension 'draw'; .* sample"),
        ],
    )
    def test_unusable(self, draws, error, said):
        with pytest.raises(error, match=said):
            rs.over_models(lambda beta, X: X[:, 0], X, draws=draws)


class TestModels:
    """Lists, mappings, ensembles."""

    def test_by_name(self):
        models = {"up": lambda X: X[:, 0], "down": lambda X: -X[:, 0]}
        found = rs.over_models(models, X, features=0, bins=rs.EqualWidthBins(1))
        assert found["member"].values.tolist() == ["up", "down"]
        assert_allclose(found["average_effect"].values.ravel(), [1, -1], rtol=1e-9)
        assert found.attrs["source"] == "models"

    @pytest.mark.thorough
    @pytest.mark.parametrize("kind", ["forest", "bagging", "voting"])
    def test_ensembles_are_the_mean_of_their_estimators(self, kind):
        ensemble = pytest.importorskip("sklearn.ensemble")
        linear = pytest.importorskip("sklearn.linear_model").LinearRegression()
        table = pd.DataFrame(X, columns=["a", "b"])
        y = interacting(BETAS[0], X)
        model = {
            "forest": ensemble.RandomForestRegressor(4, max_depth=3, random_state=0),
            "bagging": ensemble.BaggingRegressor(linear, 4, max_features=1, random_state=0),
            "voting": ensemble.VotingRegressor([("a", linear), ("b", linear)]),
        }[kind].fit(table, y)
        found = rs.over_models(model, table, method="pdp", n_grid=5)
        own = rs.pdp(model, table, n_grid=5)
        assert_allclose(found["curve_estimate"], own["curve"], atol=1e-12)

    def test_classes(self):
        ensemble = pytest.importorskip("sklearn.ensemble")
        y = np.where(X[:, 0] > 0.2, "yes", "no")
        model = ensemble.RandomForestClassifier(3, max_depth=3, random_state=0).fit(X, y)
        found = rs.over_models(model, X, method="pdp", n_grid=5)
        assert_allclose(found["curve_estimate"], rs.pdp(model, X, n_grid=5)["curve"], atol=1e-12)
        boosted = ensemble.GradientBoostingRegressor(n_estimators=2).fit(X, X[:, 0])
        with pytest.raises(ValueError, match="GradientBoostingRegressor are no models"):
            rs.over_models(boosted, X)

    def test_all_are_taken_as_the_first(self):
        """Slopes across cells where the first jumps, of a smooth model, too."""
        jumping = lambda X: np.where(X[:, 0] > 0, 1.0, 0.0)  # noqa: E731
        with pytest.warns(rs.JumpWarning):
            found = rs.over_models([jumping, lambda X: X[:, 0]], X, features=0)
        local = rs.local_effects(lambda X: X[:, 0], X, features=0, method="finite_difference")
        assert_allclose(found["average_effect"][0, 1, 0], local["local_effect"].mean())

    @pytest.mark.slow
    def test_in_two_processes(self):
        models = [lambda X, k=k: X[:, 0] * k for k in range(1, 4)]
        one = rs.over_models(models, X, n_grid=3)
        xr.testing.assert_identical(rs.over_models(models, X, n_jobs=2, n_grid=3), one)

    @pytest.mark.parametrize(
        ("models", "error", "said"),
        [
            ([], ValueError, "models must be .*; got none"),
            ("text", TypeError, "models must be .*; got 'text'"),
            ([1], TypeError, "models must be .* among them"),
            (lambda X: X[:, 0], TypeError, "draws must be given .*; got None"),
        ],
    )
    def test_unusable(self, models, error, said):
        with pytest.raises(error, match=said):
            rs.over_models(models, X)

    def test_what_contradicts(self):
        models = [lambda X: X[:, 0]]
        with pytest.raises(ValueError, match="bins must be None for method='pdp'"):
            rs.over_models(models, X, method="pdp", bins=rs.EqualWidthBins(2))
        with pytest.raises(ValueError, match="method must be one of 'rhale', 'ale', 'pdp'"):
            rs.over_models(models, X, method="ice")
        with pytest.raises(TypeError, match=r"models must be a function predict\(draw, X\)"):
            rs.over_models(models, X, draws=np.ones(3))
        with pytest.raises(ValueError, match="output must name one output here; .* 2: 0, 1"):
            rs.over_models([lambda X: X, lambda X: X], X)


@pytest.mark.parametrize("method", ["ale", "pdp"])
def test_levels(method):
    k = RNG.choice(["u", "v", "w"], len(X))
    table = pd.DataFrame({"x": X[:, 0], "k": pd.Categorical(k)})

    def model(b, X):
        return b * X["k"].map({"u": 0.0, "v": 1.0, "w": 3.0}).astype(float).to_numpy()

    found = rs.over_models(model, table, draws=np.array([1.0, 2.0, 4.0]), method=method)
    row = found.sel(feature="k")
    at = {str(name): number for number, name in enumerate(row["level"].values) if name}
    curve = row["curve_estimate"].values
    mean = 7 / 3
    assert_allclose(curve[at["w"]] - curve[at["u"]], 3 * mean, rtol=1e-9)
    assert_allclose(curve[at["v"]] - curve[at["u"]], mean, rtol=1e-9)
    sd = rs.std_error(found)["curve_se_model"].sel(feature="k").values
    share = np.mean(k == "v") + 3 * np.mean(k == "w")
    assert_allclose(sd[at["w"]], (3 - share) * np.std([1, 2, 4], ddof=1), rtol=1e-9)


@pytest.mark.thorough
def test_rows_without_a_value_and_weights():
    table = pd.DataFrame(X.copy(), columns=["a", "b"])
    table.loc[:9, "a"] = np.nan
    weights = RNG.uniform(size=len(X))
    models = [lambda X: X["a"].fillna(0) ** 2 + X["b"], lambda X: 2 * X["b"] ** 2]
    found = rs.over_models(models, table, missing="drop", weights=weights)
    mean = lambda X: (models[0](X) + models[1](X)) / 2  # noqa: E731
    effect = rs.rhale(rs.local_effects(mean, table, missing="drop", weights=weights))
    own = rs.predict(effect, found["grid_value"].sel(feature="a").values, "a").values
    assert_allclose(found["curve_estimate"].sel(feature="a"), own, atol=1e-7)


@pytest.mark.thorough
def test_arviz_reads_it(tmp_path):
    draws = RNG.normal(size=(2, 8, 2))
    found = rs.over_models(
        lambda b, X: X @ b, X, draws=draws, by_chain=True, bins=rs.EqualWidthBins(1), n_grid=3
    )
    with warnings.catch_warnings():
        # The heterogeneity of linear models does not vary.
        warnings.simplefilter("ignore", RuntimeWarning)
        plain = found.reset_coords(drop=True)
        table = arviz.summary(plain[["average_effect", "curve"]], round_to="none")
    expected = found["average_effect"].mean(("chain", "draw")).values
    assert_allclose(table["mean"].iloc[:2].astype(float), expected)
    found = rs.confband(rs.confint(found))
    found.to_netcdf(tmp_path / "found.nc", engine="h5netcdf")
    with xr.open_dataset(tmp_path / "found.nc", engine="h5netcdf") as back:
        xr.testing.assert_identical(back.load(), found)


@pytest.mark.thorough
def test_the_same_models_are_known_again_and_no_others():
    """Of estimators of a forest, of functions, and of objects that are gone or have no hash."""
    ensemble = pytest.importorskip("sklearn.ensemble")
    forest = ensemble.RandomForestRegressor(4, random_state=0).fit(X, X @ [2.0, 1.0])
    functions = [lambda X, b=b: X @ b for b in BETAS[:3]]

    def members(models, rows):
        return rs.over_models(models, X[rows], method="pdp", n_grid=3, progress=False).attrs[
            "members"
        ]

    for models in (forest, functions, [_Plain(1.0), _Plain(2.0)]):
        assert members(models, slice(80)) == members(models, slice(80, None))
    gone = {members([_Plain(float(n)), _Plain(n + 0.5)], slice(80)) for n in range(6)}
    assert len(gone) == 6


@dataclass
class _Plain:
    """A model with no hash."""

    slope: float

    def predict(self, X):
        return self.slope * X[:, 0]
