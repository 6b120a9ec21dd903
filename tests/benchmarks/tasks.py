"""What the command `bench` times: the same work by this package and by other libraries.

A task makes its data and its model once. Each side is a function that does the work from the same
inputs, and a function that takes from its result the numbers that both sides compute.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from rhale_stats.arrays.moments import FloatArray
from rhale_stats.bins.rules import EqualWidthBins, OptimalBins, QuantileBins
from rhale_stats.effects.ale import ale
from rhale_stats.effects.rhale import rhale
from rhale_stats.generics.uncertainty import bootstrap
from rhale_stats.h_statistics.statistic import h_statistic
from rhale_stats.local.local_effects import local_effects
from rhale_stats.margins.averages import averages
from rhale_stats.models.shapley import ShapleyOptions
from rhale_stats.profiles.dependence import shap_dependence
from rhale_stats.profiles.pdp import ice, pdp
from rhale_stats.regional.regions import regions

# Bins or points, rows of a background, resamples, and points a side of a grid for H.
N_BINS, N_BACKGROUND, N_RESAMPLES, N_SIDE = 40, 50, 48, 20


class Side(NamedTuple):
    """One library: the work, and the numbers in its result that are compared."""

    run: Callable[[], Any]
    numbers: Callable[[Any], FloatArray]
    adds: str = ""


class Task(NamedTuple):
    """The same work by this package and by others, which are imported when they are made."""

    name: str
    work: str
    ours: Side
    peers: Mapping[str, Callable[[], Side]]


class Smooth:
    """A cheap model of any table: what takes time is the library."""

    def predict(self, X: Any) -> Any:
        """A smooth function with an interaction; the first column is additive."""
        x = np.asarray(X)
        return np.sin(3 * x[:, 0]) + x[:, 1] * x[:, 2] + x[:, 0] ** 2


def table(rows: int, seed: int, columns: int = 5) -> pd.DataFrame:
    """Uniform features."""
    values = np.random.default_rng(seed).uniform(-1, 1, (rows, columns))
    return pd.DataFrame(values, columns=[f"x{number}" for number in range(columns)])


def _estimator() -> Any:
    """The cheap model as an estimator of scikit-learn."""
    from sklearn.base import BaseEstimator, RegressorMixin

    class Estimator(RegressorMixin, BaseEstimator):  # type: ignore[misc]
        def fit(self, X: Any, _y: Any = None) -> Estimator:
            self.n_features_in_ = np.shape(X)[1]
            self.fitted_ = True
            return self

        def predict(self, X: Any) -> Any:
            return Smooth().predict(X)

    return Estimator()


def _centred(values: Any) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    return np.asarray(array - array.mean())


def _explainer(X: pd.DataFrame) -> Any:
    import skexplain

    y = Smooth().predict(X)
    return skexplain.ExplainToolkit(("model", _estimator().fit(X)), X=X, y=y)


# --- effects of a Jacobian ------------------------------------------------------------------------


def _jacobian(rows: int, seed: int) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(rows, 10))
    jacobian = np.sin(6 * x) + rng.normal(size=x.shape)
    jacobian[:, 0] += np.where(x[:, 3] > 0.5, 1.5, -1.5)
    return x, jacobian


def _effector(x: FloatArray, jacobian: FloatArray) -> Any:
    import effector

    return effector.RHALE(x, lambda rows: rows[:, 0], data_effect=jacobian, nof_instances="all")


AT = np.linspace(0.05, 0.95, 19)


def _curve_of_x0(effect: Any) -> FloatArray:
    edges, curve = effect["edge_value"].values[0], effect["curve"].values[0]
    known = np.isfinite(edges)
    return _centred(np.interp(AT, edges[known], curve[known]))


def rhale_task(rows: int, seed: int) -> Task:
    """RHALE with the paper's bins."""
    x, jacobian = _jacobian(rows, seed)

    def ours() -> Any:
        local = local_effects(None, x, jacobian=jacobian, progress=False)
        return rhale(local, bins=OptimalBins(100), weighting="rows")

    def effector() -> Side:
        from effector.axis_partitioning import DynamicProgramming

        rule = DynamicProgramming(max_nof_bins=100, min_points_per_bin=rows // 20, discount=0.2)

        def run() -> Any:
            effect = _effector(x, jacobian)
            effect.fit("all", binning_method=rule)
            return effect

        return Side(run, lambda effect: _centred(effect.eval(0, AT, centering="zero_start")))

    return Task(
        "rhale",
        "RHALE of 10 features from a Jacobian in memory, optimal bins of 100 cells",
        Side(ours, _curve_of_x0, "checks and spread in bins of its own"),
        {"effector": effector},
    )


def regions_task(rows: int, seed: int) -> Task:
    """The search of one node."""
    x, jacobian = _jacobian(rows, seed)

    def ours() -> Any:
        local = local_effects(None, x, jacobian=jacobian, progress=False)
        return regions(
            local, 0, max_depth=1, min_obs=10, n_thresholds=19, thresholds="equal_width",
            bins=EqualWidthBins(20), test=None, rng=0,
        )  # fmt: skip

    def effector() -> Side:
        from effector.axis_partitioning import Fixed
        from effector.space_partitioning import Best

        def run() -> Any:
            effect = _effector(x, jacobian)
            effect.fit(0, binning_method=Fixed(nof_bins=20))
            finder = Best(max_depth=1, numerical_features_grid_size=20, min_samples_leaf=10)
            return effect.find_regions(0, finder=finder)

        def numbers(found: Any) -> FloatArray:
            return np.sort([float(node.mask.sum()) for node in list(found) if node.level == 1])

        return Side(run, numbers)

    return Task(
        "regions",
        "best split of the effect of one feature by 9 columns with 19 thresholds each, 20 bins",
        Side(
            ours,
            lambda tree: np.sort(np.bincount(tree["region_of_row"].values).astype(float)),
            "local effects of all features",
        ),
        {"effector": effector},
    )


# --- effects that ask the model -------------------------------------------------------------------


def ale_task(rows: int, seed: int, model: Any = None) -> Task:
    """ALE of all features of a model, by default a cheap one."""
    X, model = table(rows, seed), model or Smooth()
    at = np.linspace(-0.9, 0.9, 19)

    def interpolated(edges: Any, curve: Any) -> FloatArray:
        return _centred(np.interp(at, edges, curve))

    def pyale() -> Side:
        import PyALE

        def run() -> Any:
            options = {"grid_size": N_BINS, "include_CI": False, "plot": False}
            return [PyALE.ale(X, model, [str(name)], **options) for name in X]

        return Side(run, lambda found: interpolated(found[0].index, found[0]["eff"]))

    def alibi() -> Side:
        from alibi.explainers import ALE

        values = X.to_numpy()

        def run() -> Any:
            grid = np.linspace(0, 1, N_BINS + 1)
            points = {number: np.quantile(values[:, number], grid) for number in range(5)}
            return ALE(model.predict).explain(values, grid_points=points)

        return Side(
            run,
            lambda found: interpolated(found.feature_values[0], found.ale_values[0][:, 0]),
        )

    def skexplain() -> Side:
        explainer = _explainer(X)
        return Side(
            lambda: explainer.ale(features=list(X), n_bins=N_BINS),
            lambda found: interpolated(
                found["x0__bin_values"].values, found["x0__model__ale"].values[0]
            ),
            "the curve at the middle of bins only",
        )

    return Task(
        "ale",
        f"ALE of 5 features of a cheap model, {N_BINS} quantile bins",
        Side(
            lambda: ale(model, X, bins=QuantileBins(N_BINS), progress=False),
            lambda found: interpolated(found["edge_value"].values[0], found["curve"].values[0]),
            "moments of standard errors, spread, rounding of the model",
        ),
        {"PyALE": pyale, "alibi": alibi, "scikit-explain": skexplain},
    )


def accumulated_task(rows: int, seed: int) -> Task:
    """The accumulated profile of dalex, which is another estimator."""
    X, model = table(rows, seed), Smooth()
    grid = np.linspace(X["x0"].min(), X["x0"].max(), N_BINS)
    return Task(
        "ale-dalex",
        f"accumulated effect of one feature, {N_BINS} points. dalex weights all rows by a kernel "
        "and asks for every row at every point; ALE asks twice. Equal where the feature is "
        "additive, as here",
        Side(
            lambda: ale(model, X, features="x0", bins=EqualWidthBins(N_BINS - 1), progress=False),
            lambda found: _centred(found["curve"].values[0]),
            "moments of standard errors",
        ),
        {"dalex": lambda: _of_dalex(X, "accumulated", grid)},
    )


def _of_dalex(X: pd.DataFrame, kind: str, grid: FloatArray) -> Side:
    import dalex

    def predict(model: Any, rows: Any) -> Any:
        return model.predict(rows[list(X)])

    explainer = dalex.Explainer(
        Smooth(), X, Smooth().predict(X), predict_function=predict, verbose=False,
        precalculate=False, model_type="regression",
    )  # fmt: skip

    def run() -> Any:
        return explainer.model_profile(
            type=kind, N=None, variables=["x0"], variable_splits={"x0": grid}, verbose=False
        )

    return Side(run, lambda found: _centred(found.result["_yhat_"]), "a table of all curves")


def pdp_task(rows: int, seed: int, model: Any = None) -> Task:
    """Partial dependence of a model, by default a cheap one."""
    X = table(rows, seed)
    grid = np.linspace(X["x0"].min(), X["x0"].max(), N_BINS)

    def sklearn() -> Side:
        return _of_sklearn(X, grid, "average", model)

    def skexplain() -> Side:
        explainer = _explainer(X)
        return Side(
            lambda: explainer.pd(features=["x0"], n_bins=N_BINS),
            lambda found: _centred(found["x0__model__pd"].values[0]),
        )

    return Task(
        "pdp",
        f"partial dependence on one feature of a cheap model, {N_BINS} points",
        Side(
            lambda: pdp(model or Smooth(), X, features="x0", grid={"x0": grid}, progress=False),
            lambda found: _centred(found["curve"].values[0]),
            "standard errors, spread of the ICE curves",
        ),
        {
            "scikit-learn": sklearn,
            "scikit-explain": skexplain,
            "dalex": lambda: _of_dalex(X, "partial", grid),
        },
    )


def ice_task(rows: int, seed: int, model: Any = None) -> Task:
    """Curves of all rows of a model, by default a cheap one."""
    X = table(rows, seed)
    grid = np.linspace(X["x0"].min(), X["x0"].max(), N_BINS)

    def alibi() -> Side:
        from alibi.explainers import PartialDependence

        values = X.to_numpy()

        def run() -> Any:
            explainer = PartialDependence(Smooth().predict)
            return explainer.explain(values, features=[0], kind="both", grid_points={0: grid})

        return Side(run, lambda found: _centred(found.ice_values[0][0]))

    return Task(
        "ice",
        f"ICE curves and their mean for one feature of a cheap model, {N_BINS} points",
        Side(
            lambda: ice(model or Smooth(), X, features="x0", grid={"x0": grid}, progress=False),
            lambda found: _centred(found["ice"].values[0].T),
            "standard errors",
        ),
        {"scikit-learn": lambda: _of_sklearn(X, grid, "both", model), "alibi": alibi},
    )


def _of_sklearn(X: pd.DataFrame, grid: FloatArray, kind: str, model: Any = None) -> Side:
    from sklearn.inspection import partial_dependence

    estimator = model or _estimator().fit(X)
    name = "average" if kind == "average" else "individual"
    return Side(
        lambda: partial_dependence(
            estimator, X, ["x0"], custom_values={"x0": grid}, method="brute", kind=kind
        ),
        lambda found: _centred(found[name][0]),
    )


# --- models that are read, resamples, parameters, interactions ------------------------------------

MODELS = {
    "linear": "a linear regression",
    "trees": "100 trees of histogram boosting",
    "lightgbm": "100 trees of LightGBM",
    "forest": "a forest of 30 trees of depth 8",
}
# By the name of a function: the task of it, and the peer that takes any model.
OF_MODELS = {
    "pdp": (pdp_task, "scikit-learn"),
    "ice": (ice_task, "scikit-learn"),
    "ale": (ale_task, "PyALE"),
}


def _model(kind: str) -> Any:
    """A model of a library, not fitted; it uses one thread."""
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
    from sklearn.linear_model import LinearRegression

    if kind == "lightgbm":
        from lightgbm import LGBMRegressor

        return LGBMRegressor(random_state=0, n_jobs=1, verbose=-1)
    if kind == "forest":
        return RandomForestRegressor(30, max_depth=8, random_state=0)
    return LinearRegression() if kind == "linear" else HistGradientBoostingRegressor(random_state=0)


def model_task(name: str, kind: str, rows: int, seed: int) -> Task:
    """A task with a model that this package reads: its leaves, or its coefficients."""
    make, peer = OF_MODELS[name]
    X = table(rows, seed)
    task = make(rows, seed, _model(kind).fit(X, Smooth().predict(X)))
    work = task.work.replace("a cheap model", MODELS[kind])
    return task._replace(name=f"{name}-{kind}", work=work, peers={peer: task.peers[peer]})


def shap_task(rows: int, seed: int) -> Task:
    """Shapley values of boosted trees over a background."""
    from sklearn.ensemble import GradientBoostingRegressor

    X = table(rows + 1000, seed)
    y = Smooth().predict(X)
    model = GradientBoostingRegressor(n_estimators=50, random_state=0).fit(X[-1000:], y[-1000:])
    rows_of, background = X[:rows], X[-N_BACKGROUND:]

    def shap() -> Side:
        from shap import TreeExplainer

        def run() -> Any:
            explainer = TreeExplainer(model, background, feature_perturbation="interventional")
            return explainer.shap_values(rows_of, check_additivity=False)

        return Side(run, lambda found: np.asarray(found, dtype=np.float64))

    options = ShapleyOptions(background=background)
    return Task(
        "shap",
        f"Shapley values of 50 boosted trees, 5 features, a background of {N_BACKGROUND} rows",
        Side(
            lambda: shap_dependence(model, rows_of, shapley=options, progress=False),
            lambda found: np.asarray(found["shap_value"].values.T),
            "a curve with standard errors, check that values add up",
        ),
        {"shap": shap},
    )


def bootstrap_task(rows: int, seed: int) -> Task:
    """Replicates of ALE."""
    X = table(rows, seed)

    def ours() -> Any:
        rule = QuantileBins(20)
        options: dict[str, Any] = {
            "features": "x0",
            "method": "finite_difference",
            "progress": False,
        }
        local = local_effects(Smooth(), X, bins=rule, **options)
        effect = rhale(local, bins=rule)
        return bootstrap(local, effect, n_resamples=N_RESAMPLES, rng=seed, progress=False)

    def numbers(found: Any) -> FloatArray:
        curve = found["curve"].isel(feature=0).stack(sample=("chain", "draw")).values
        return np.asarray(np.std((curve[1:] + curve[:-1]) / 2, axis=1))

    def skexplain() -> Side:
        explainer = _explainer(X)
        return Side(
            lambda: explainer.ale(features=["x0"], n_bins=20, n_bootstrap=N_RESAMPLES),
            lambda found: np.std(found["x0__model__ale"].values, axis=0),
        )

    return Task(
        "bootstrap",
        f"ALE of one feature of a cheap model, {N_RESAMPLES} resamples of the rows, 20 bins. "
        "scikit-explain asks the model again for each; this package does not. "
        "Compared are standard deviations over resamples, which are random",
        Side(ours, numbers, "replicates of the spread and of sizes"),
        {"scikit-explain": skexplain},
    )


def slopes_task(rows: int, seed: int) -> Task:
    """Average slopes of a Poisson regression."""
    import statsmodels.api as sm
    import statsmodels.formula.api as smf

    X = table(rows, seed)
    rate = np.exp(0.3 * X["x0"] + 0.5 * X["x1"] * X["x2"])
    data = X.assign(y=np.random.default_rng(seed).poisson(rate))
    formula = "y ~ x0 + x1 * x2 + x3 + x4"
    model = smf.glm(formula, data, family=sm.families.Poisson()).fit()

    def marginaleffects() -> Side:
        from marginaleffects import avg_slopes

        def numbers(found: Any) -> FloatArray:
            lines = dict(zip(found["term"], zip(found["estimate"], found["std_error"], strict=True),
                             strict=True))  # fmt: skip
            return np.array([lines[name] for name in X])

        return Side(lambda: avg_slopes(model), numbers, "z, P and S values")

    return Task(
        "slopes",
        "average slopes of a Poisson regression with delta-method standard errors, rows as given",
        Side(
            lambda: averages(model, data, uncertainty="parameters"),
            lambda found: np.stack(
                [found["average"].values[1:], found["average_se_model"].values[1:]], axis=1
            ),
            "the average prediction, the part of the rows",
        ),
        {"marginaleffects": marginaleffects},
    )


def h_task(rows: int, seed: int) -> Task:
    """Friedman's H of a pair; two columns form a full grid, where both estimators are one."""
    side = int(np.sqrt(rows))
    points = np.linspace(-1, 1, side)
    X = table(side**2, seed)
    X["x1"], X["x2"] = np.repeat(points, side), np.tile(points, side)

    def skexplain() -> Side:
        explainer = _explainer(X)

        def run() -> Any:
            one = explainer.pd(features=["x1", "x2"], n_bins=side)
            two = explainer.pd(features=[("x1", "x2")], n_bins=side)
            return explainer.friedman_h_stat(one, two, features=[("x1", "x2")])

        return Side(run, lambda found: np.ravel(found["hstat_scores__model"].values) ** 2)

    return Task(
        "h",
        f"H-statistic of one pair, {side} × {side} points that are the rows",
        Side(
            lambda: h_statistic(
                Smooth(), X, features=["x1", "x2"], n_rows=None, rng=0, progress=False
            ),
            lambda found: np.array([found["h2_pairwise"].values[0, 1]]),
            "H of each feature and of the model, standard errors",
        ),
        {"scikit-explain": skexplain},
    )


# Each with its numbers of rows: few, where overheads count, and many.
TASKS: dict[str, tuple[Callable[[int, int], Task], tuple[int, int]]] = {
    "rhale": (rhale_task, (1_000, 100_000)),
    "regions": (regions_task, (1_000, 10_000)),
    "ale": (ale_task, (1_000, 20_000)),
    "ale-dalex": (accumulated_task, (500, 2_000)),
    "pdp": (pdp_task, (1_000, 20_000)),
    "ice": (ice_task, (1_000, 20_000)),
    **{
        f"{name}-{kind}": (partial(model_task, name, kind), (1_000, 20_000))
        for name in OF_MODELS
        for kind in MODELS
    },
    "shap": (shap_task, (100, 1_000)),
    "bootstrap": (bootstrap_task, (1_000, 20_000)),
    "slopes": (slopes_task, (1_000, 20_000)),
    "h": (h_task, (100, N_SIDE**2)),
}
PEERS = (
    *("effector", "PyALE", "scikit-learn", "scikit-explain", "shap"),
    *("dalex", "marginaleffects", "alibi"),
)
