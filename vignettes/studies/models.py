"""Default RHALE beside brute-force ALE, for models of every kind on three tables."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import NDArray

from rhale_stats.arrays import binning
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.effects.rhale import rhale
from rhale_stats.generics.values import predict
from rhale_stats.local.local_effects import local_effects
from rhale_stats.models.probes import JumpWarning
from studies.runner import Options, Output, Scenario, Study
from studies.tools import FIXED_COLOUR, RHALE_COLOUR, holds, panels

# Bins of ALE, and rows of each table.
BINS, ROWS = 40, 2000
# Pieces of the dense reference, and the share of rows, between two quantiles, where it is one.
# Beyond them a long tail has few rows on a large part of the axis: no method knows the curve.
PIECES, INNER = 400, 0.99
# Ranges of curves that agree differ by this factor at most. Effects below this share of the
# largest one in the model count as 0: their signs and ratios are not compared.
AGREES, NO_EFFECT = 1.35, 0.02
# A curve that falls as much as it rises has no slope: this share of its range in a standard
# deviation of the feature.
NO_SLOPE = 0.02
TABLES = {
    "simulated": ("normal", "beta", "hour", "skewed"),
    "diabetes": ("age", "bmi", "bp", "s5"),
    "randhie": ("lpi", "fmde", "disea", "physlm"),
}
N_FEATURES = 4
Fit = Callable[[pd.DataFrame, FloatArray, int], Any]


class Kind(NamedTuple):
    """How a model is fitted, the library that it is of, and whether it jumps."""

    fit: Fit
    library: str = "sklearn"
    jumps: bool = True


def _sklearn(path: str, **arguments: Any) -> Any:
    module, name = path.rsplit(".", 1)
    return getattr(import_module(f"sklearn.{module}"), name)(**arguments)


def _scaled(model: Any) -> Any:
    pipeline = import_module("sklearn.pipeline")
    return pipeline.make_pipeline(_sklearn("preprocessing.StandardScaler"), model)


def _forest(seed: int, **arguments: Any) -> Any:
    arguments = {"n_estimators": 50, "random_state": seed} | arguments
    return _sklearn("ensemble.RandomForestRegressor", **arguments)


def _network(seed: int, activation: str) -> Any:
    return _scaled(
        _sklearn(
            "neural_network.MLPRegressor",
            hidden_layer_sizes=(40, 20),
            activation=activation,
            alpha=0.01,
            max_iter=300,
            early_stopping=True,
            random_state=seed,
        )
    )


def _splines(degree: int, *, pairs: bool) -> Any:
    pipeline = import_module("sklearn.pipeline")
    steps = [
        _sklearn("preprocessing.SplineTransformer", n_knots=6, degree=degree, include_bias=False)
    ]
    if pairs:
        steps.append(
            _sklearn("preprocessing.PolynomialFeatures", interaction_only=True, include_bias=False)
        )
    return pipeline.make_pipeline(*steps, _sklearn("linear_model.Ridge", alpha=1.0))


def _xgboost(seed: int, method: str) -> Any:
    # The defaults of the library, whose deep trees jump most.
    return import_module("xgboost").XGBRegressor(tree_method=method, random_state=seed, n_jobs=1)


def _lightgbm(seed: int, *, linear: bool) -> Any:
    return import_module("lightgbm").LGBMRegressor(
        linear_tree=linear, random_state=seed, verbose=-1, n_jobs=1
    )


def _generalised(X: pd.DataFrame, y: FloatArray, family: str) -> Any:
    formulas, families = (
        import_module(f"statsmodels.{name}") for name in ("formula.api", "genmod.families")
    )
    link = families.links.Log()
    chosen = families.Gaussian(link) if family == "Gaussian" else families.Gamma(link)
    formula = f"y ~ ({' + '.join(X.columns)}) ** 2"
    return formulas.glm(formula, X.assign(y=y - y.min() + np.std(y)), family=chosen).fit()


def _blend(seed: int, share: float) -> Any:
    parts = [("line", _scaled(_sklearn("linear_model.Ridge"))), ("forest", _forest(seed))]
    return _sklearn("ensemble.VotingRegressor", estimators=parts, weights=[1 - share, share])


def _stacking(seed: int) -> Any:
    boosted = _sklearn("ensemble.HistGradientBoostingRegressor", max_iter=50, random_state=seed)
    parts = [("network", _network(seed, "tanh")), ("boosted", boosted)]
    return _sklearn("ensemble.StackingRegressor", estimators=parts, cv=3)


def _fitted(make: Callable[[int], Any]) -> Fit:
    return lambda X, y, seed: make(seed).fit(X, y)


KINDS: dict[str, Kind] = {
    "xgboost, hist": Kind(_fitted(lambda seed: _xgboost(seed, "hist")), "xgboost"),
    "xgboost, exact": Kind(_fitted(lambda seed: _xgboost(seed, "exact")), "xgboost"),
    "xgboost, approx": Kind(_fitted(lambda seed: _xgboost(seed, "approx")), "xgboost"),
    "xgboost in a pipeline": Kind(_fitted(lambda seed: _scaled(_xgboost(seed, "hist"))), "xgboost"),
    "lightgbm": Kind(_fitted(lambda seed: _lightgbm(seed, linear=False)), "lightgbm"),
    "lightgbm, linear trees": Kind(_fitted(lambda seed: _lightgbm(seed, linear=True)), "lightgbm"),
    "catboost": Kind(
        _fitted(
            lambda seed: import_module("catboost").CatBoostRegressor(
                iterations=300,
                random_seed=seed,
                verbose=0,
                thread_count=1,
                allow_writing_files=False,
            )
        ),
        "catboost",
    ),
    "histogram boosting": Kind(
        _fitted(lambda seed: _sklearn("ensemble.HistGradientBoostingRegressor", random_state=seed))
    ),
    "forest": Kind(_fitted(_forest)),
    "extra trees": Kind(
        _fitted(
            lambda seed: _sklearn(
                "ensemble.ExtraTreesRegressor",
                n_estimators=50,
                min_samples_leaf=3,
                random_state=seed,
            )
        )
    ),
    "one tree": Kind(
        _fitted(lambda seed: _sklearn("tree.DecisionTreeRegressor", max_depth=6, random_state=seed))
    ),
    "blend, half a forest": Kind(_fitted(lambda seed: _blend(seed, 0.5))),
    "blend, 5 % of a forest": Kind(_fitted(lambda seed: _blend(seed, 0.05))),
    "stacking": Kind(_fitted(_stacking)),
    "nearest neighbours": Kind(
        _fitted(lambda _: _scaled(_sklearn("neighbors.KNeighborsRegressor", n_neighbors=15)))
    ),
    "ReLU network": Kind(_fitted(lambda seed: _network(seed, "relu")), jumps=False),
    "tanh network": Kind(_fitted(lambda seed: _network(seed, "tanh")), jumps=False),
    "hinges of pairs (MARS)": Kind(_fitted(lambda _: _splines(1, pairs=True)), jumps=False),
    "cubic splines (GAM)": Kind(_fitted(lambda _: _splines(3, pairs=False)), jumps=False),
    "support vectors": Kind(_fitted(lambda _: _scaled(_sklearn("svm.SVR", C=10.0))), jumps=False),
    "GLM, Gaussian, log": Kind(
        lambda X, y, _: _generalised(X, y, "Gaussian"), "statsmodels", jumps=False
    ),
    "GLM, gamma, log": Kind(
        lambda X, y, _: _generalised(X, y, "gamma"), "statsmodels", jumps=False
    ),
}
# The network's tables are made with it: without scikit-learn there is nothing to fit.
QUICK = ("forest", "hinges of pairs (MARS)", "GLM, gamma, log")


def study(options: Options) -> Study:
    """The study for these options."""
    chosen = QUICK if options.quick else tuple(KINDS)
    there = [name for name in chosen if find_spec(KINDS[name].library) is not None]
    along = ("table", "number")
    return Study(
        name="models",
        title="Default RHALE beside ALE, for models of every kind",
        source="acceptance of this package",
        claim="For every kind of model, the curve of rhale(local_effects(model, X)) agrees with "
        "that of ALE. The slopes have the same sign. Where slopes across cells are taken, the "
        "range of the curve is that "
        f"of brute-force ALE on {BINS} quantile bins, within a factor of {AGREES}. Where "
        f"derivatives are taken, it is that of a dense reference over the inner {INNER:.0%} of the "
        f"rows: mean changes across {PIECES} pieces, each over the rows nearest to it. There "
        f"{BINS} bins are too few for a reference; their own distance from it is given as well.",
        scenarios=tuple(
            Scenario(name, {"model": name, "jumps": int(KINDS[name].jumps)}) for name in there
        ),
        coords={"table": list(TABLES), "number": range(N_FEATURES)},
        outputs={
            "range_rhale": Output(along, "range of the RHALE curve", "output units"),
            "range_ale": Output(along, "range of the ALE curve", "output units"),
            "inner_rhale": Output(along, "range of the RHALE curve, inner rows", "output units"),
            "inner_ale": Output(along, "range of the ALE curve, inner rows", "output units"),
            "inner_dense": Output(along, "range of the dense curve, inner rows", "output units"),
            "slope_rhale": Output(along, "slope of the RHALE curve, for one standard deviation"),
            "slope_ale": Output(along, "slope of the ALE curve, for one standard deviation"),
            "widest_bin": Output(along, "share of the axis in the widest bin of ALE"),
            "slopes_across_cells": Output(along, "1 where slopes across cells were taken"),
        },
        replicate=replicate,
        n_replicates=1 if options.quick else 2,
        tables=tables,
        findings=findings,
        figure=figure,
        rows={"Where derivatives": "table == 'simulated'", "Whole range": ""},
    )


def sample(table: str, rng: np.random.Generator) -> tuple[pd.DataFrame, FloatArray]:
    """Rows of a table, drawn anew, and what is to be explained."""
    if table == "simulated":
        X = pd.DataFrame(
            {
                "normal": rng.normal(size=ROWS),
                "beta": rng.beta(2, 5, ROWS),
                "hour": rng.integers(0, 24, ROWS).astype(float),
                "skewed": np.exp(rng.normal(size=ROWS)),
            }
        )
        mean = (
            np.sin(2 * X["normal"])
            + 3 * (X["beta"] > 0.3117)
            + X["normal"] * X["beta"]
            + 0.1 * np.abs(X["hour"] - 12)
            + np.log1p(X["skewed"])
        )
        return X, np.asarray(mean + 0.3 * rng.normal(size=ROWS))
    if table == "diabetes":
        found = import_module("sklearn.datasets").load_diabetes(as_frame=True, scaled=False)
        data, y = found.data, found.target
    else:
        data = import_module("statsmodels.datasets.randhie").load_pandas().data
        data, y = data, np.log1p(data["mdvis"])
    rows = rng.choice(len(data), min(ROWS, len(data)), replace=False)
    X = data[list(TABLES[table])].iloc[rows].astype(float).reset_index(drop=True)
    return X, np.asarray(y, dtype=np.float64)[rows]


def replicate(
    parameters: Mapping[str, Any], rng: np.random.Generator, _context: Any
) -> dict[str, Any]:
    """One model on every table, fitted to rows of its own."""
    kind = KINDS[parameters["model"]]
    found = []
    for table in TABLES:
        X, y = sample(table, rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what libraries say of their own fits
            model = kind.fit(X, y, int(rng.integers(2**31)))
            warnings.simplefilter("ignore", JumpWarning)
            local = local_effects(model, X, features=list(X.columns), progress=False)
            effect = rhale(local)
            methods = local["local_effect_method"].values
            found.append(
                [
                    _compared(model.predict, X, name, effect, str(method))
                    for name, method in zip(X.columns, methods, strict=True)
                ]
            )
    return {name: [[one[name] for one in row] for row in found] for name in found[0][0]}


def _compared(
    model: Callable[[pd.DataFrame], Any],
    X: pd.DataFrame,
    name: str,
    effect: xr.Dataset,
    method: str,
) -> dict[str, float]:
    """Both curves of one feature, at the edges of the bins of ALE, and where they are judged."""
    edges, ale = brute_force(model, X, name)
    ours = predict(effect, edges, name).values
    x = X[name].to_numpy()
    inner = dict.fromkeys(("inner_rhale", "inner_ale", "inner_dense"), np.nan)
    if method != "finite_difference":
        points, truth = dense(model, X, name)
        low, high = np.quantile(x, [(1 - INNER) / 2, (1 + INNER) / 2])
        z = np.unique(np.concatenate([[low], np.clip(points, low, high), [high]]))
        curves = (
            predict(effect, z, name).values,
            np.interp(z, edges, ale),
            np.interp(z, points, truth),
        )
        inner = dict(zip(inner, map(float, map(np.ptp, curves)), strict=True))
    return {
        **inner,
        "widest_bin": float(np.diff(edges).max() / np.ptp(edges)),
        "range_rhale": float(np.ptp(ours)),
        "range_ale": float(np.ptp(ale)),
        "slope_rhale": _slope(x, edges, ours),
        "slope_ale": _slope(x, edges, ale),
        "slopes_across_cells": float(method == "finite_difference"),
    }


def brute_force(
    model: Callable[[pd.DataFrame], Any], X: pd.DataFrame, name: str
) -> tuple[FloatArray, FloatArray]:
    """Edges and ALE curve, 0 at the left: mean changes across quantile bins, added up."""
    x = X[name].to_numpy()
    edges = binning.quantile_edges(x, BINS, None)
    k = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, len(edges) - 2)
    upper, lower = (np.asarray(model(X.assign(**{name: edges[at]}))) for at in (k + 1, k))
    change = np.bincount(k, upper - lower) / np.bincount(k)
    return edges, np.concatenate([[0.0], np.cumsum(change)])


def dense(
    model: Callable[[pd.DataFrame], Any], X: pd.DataFrame, name: str
) -> tuple[FloatArray, FloatArray]:
    """Points and curve, 0 at the left: mean changes across small pieces over the rows near by.

    As many rows as a bin of ALE has, but the nearest ones to every piece, and pieces that are a
    tenth as wide: the derivative integrated along the axis, with its mean given the feature.
    """
    x = X[name].to_numpy()
    order, near = np.argsort(x, kind="stable"), max(len(x) // BINS, 1)
    points = binning.quantile_edges(x, PIECES, None)
    middle = np.searchsorted(x[order], (points[1:] + points[:-1]) / 2)
    first = np.clip(middle - near // 2, 0, len(x) - near)
    rows = X.iloc[order[first[:, None] + np.arange(near)].ravel()]
    upper, lower = (
        np.asarray(model(rows.assign(**{name: np.repeat(at, near)})))
        for at in (points[1:], points[:-1])
    )
    change = (upper - lower).reshape(-1, near).mean(axis=1)
    return points, np.concatenate([[0.0], np.cumsum(change)])


def _slope(x: FloatArray, edges: FloatArray, curve: FloatArray) -> float:
    """Least-squares slope of a curve over the rows, for one standard deviation of the feature."""
    return float(np.cov(x, np.interp(x, edges, curve))[0, 1] / np.std(x, ddof=1))


def tables(results: xr.Dataset) -> list[tuple[str, pd.DataFrame]]:
    """One line a model and table: the largest factor, and which slopes differ."""
    same = _same(results)
    factor = _factor(results).max("replicate")
    cells = results["slopes_across_cells"].mean("replicate")
    inner = [_inner(results, name).max("replicate") for name in ("rhale", "ale")]
    whole, dense_lines = [], []
    for table, names in TABLES.items():
        for scenario in results["scenario"].values:
            at = {"scenario": scenario, "table": table}
            line: dict[str, Any] = {"model": scenario, "table": table}
            beside = dict(line)
            for number in range(len(names)):
                one = at | {"number": number}
                marked = "" if float(cells.sel(one)) < 1 else " c"
                line[f"{number + 1}"] = _shown(factor.sel(one)) + marked
                beside[f"{number + 1}"] = " / ".join(_shown(each.sel(one)) for each in inner)
            line["same sign"] = bool(same.sel(at).all())
            whole.append(line)
            if bool(inner[0].sel(at).notnull().any()):
                dense_lines.append(beside)
    features = "; ".join(f"{table}: {', '.join(names)}" for table, names in TABLES.items())
    return [
        (
            f"Where derivatives were taken: range of RHALE / of ALE on {BINS} bins over that of "
            f"the dense reference, or the reverse, inner {INNER:.0%} of the rows, the largest of "
            f"the runs, for the four features of each table ({features}); none: no effect, or "
            "slopes across cells",
            pd.DataFrame(dense_lines),
        ),
        (
            f"Whole range of the curves, RHALE over ALE on {BINS} bins or the reverse, the "
            "largest of the runs, for the same features; c: slopes across cells in all runs; "
            "none: no effect",
            pd.DataFrame(whole),
        ),
    ]


def _shown(factor: xr.DataArray) -> str:
    return "none" if bool(factor.isnull()) else f"{float(factor):.2f}"


def _has_effect(results: xr.Dataset) -> xr.DataArray:
    ranges = results["range_ale"]
    return ranges > NO_EFFECT * ranges.max("number")


def _factor(results: xr.Dataset) -> xr.DataArray:
    """By how much ranges differ, at least 1; NaN of features without an effect."""
    ratio = results["range_rhale"] / results["range_ale"]
    return ratio.where(ratio >= 1, 1 / ratio).where(_has_effect(results))


def _inner(results: xr.Dataset, curve: str) -> xr.DataArray:
    """By how much ranges differ from the dense one; NaN where slopes across cells were taken."""
    ratio = results[f"inner_{curve}"] / results["inner_dense"]
    return ratio.where(ratio >= 1, 1 / ratio).where(_has_effect(results))


def _same(results: xr.Dataset) -> xr.DataArray:
    """Whether slopes have one sign, where there is an effect and a slope to speak of."""
    ours, theirs = results["slope_rhale"], results["slope_ale"]
    level = np.abs(theirs) < NO_SLOPE * results["range_ale"]
    return (ours * theirs > 0) | level | ~_has_effect(results)


def findings(results: xr.Dataset) -> list[str]:
    """Does it hold."""
    factor, same = _factor(results), _same(results)
    known = factor.notnull()
    jumps = results["jumps"].values == 1
    cells = results["slopes_across_cells"].where(known)
    of_jumps, of_others = (cells.isel(scenario=np.flatnonzero(rows)) for rows in (jumps, ~jumps))
    ours, theirs = (_inner(results, name) for name in ("rhale", "ale"))
    across = factor.where(results["slopes_across_cells"] == 1)
    missing = [name for name in KINDS if name not in results["scenario"].values]
    return [
        f"{holds(same.all())}: slopes have the same sign in {int((same & known).sum())} of "
        f"{int(known.sum())} cases (a feature of a table and a model in one run, with an effect of "
        f"more than {NO_EFFECT:.0%} of the largest).",
        f"{_all_agree(across)}: where slopes across cells were taken, the whole range is that of "
        f"ALE on {BINS} bins within a factor of {AGREES} in {_agreeing(across)}.",
        f"{_all_agree(ours)}: where derivatives were taken, the range over the inner {INNER:.0%} "
        f"of the rows is that of the dense reference within a factor of {AGREES} in "
        f"{_agreeing(ours)}. Of ALE on {BINS} bins it is in {_agreeing(theirs)}.",
        f"Whole ranges of RHALE and of ALE on {BINS} bins agree within a factor of {AGREES} in "
        f"{_agreeing(factor)}, the median {float(factor.median()):.3f}.{_exceptions(results)}",
        f"Slopes across cells were taken of {float(of_jumps.mean()):.1%} of the features of models "
        f"that jump and of {float(of_others.mean()):.1%} of those of the others.",
        *([f"Left out of this run: {', '.join(missing)}."] if missing else []),
    ]


def _all_agree(factor: xr.DataArray) -> str:
    return holds(((factor <= AGREES) | factor.isnull()).all())


def _agreeing(factor: xr.DataArray) -> str:
    """How many factors are small enough, and the largest, as text."""
    largest = float(factor.max()) if bool(factor.notnull().any()) else np.nan
    return (
        f"{int((factor <= AGREES).sum())} of {int(factor.notnull().sum())} cases, the largest "
        f"factor {largest:.2f}"
    )


def _exceptions(results: xr.Dataset) -> str:
    """Of whole ranges that do not agree: where, how wide the bins are, which curve is nearer."""
    factor = _factor(results).stack(case=("scenario", "replicate", "table", "number"))
    far = np.flatnonzero(factor.values > AGREES)
    if not len(far):
        return ""
    stacked = {
        name: one.stack(case=factor["case"].to_index().names).values
        for name, one in {
            "ours": _inner(results, "rhale"),
            "theirs": _inner(results, "ale"),
            "widest": results["widest_bin"],
        }.items()
    }
    said = []
    for at in far:
        scenario, _, table, number = factor["case"].values[at]
        said.append(
            f"{scenario}, {TABLES[table][number]}: one bin of ALE is {stacked['widest'][at]:.0%} "
            f"of the axis; from the dense reference over the inner {INNER:.0%} of the rows ALE "
            f"differs by a factor of {stacked['theirs'][at]:.2f}, and RHALE by one of "
            f"{stacked['ours'][at]:.2f}"
        )
    return f" The others: {'; '.join(said)}."


def figure(results: xr.Dataset) -> Figure:
    """Ranges of the two curves against each other, a panel a table."""
    fig, axes = panels(1, len(TABLES))
    jumps: NDArray[np.bool_] = results["jumps"].values == 1
    for ax, table in zip(axes[0], TABLES, strict=True):
        own = results.sel(table=table).where(_has_effect(results).sel(table=table))
        for rows, colour, label in (
            (jumps, RHALE_COLOUR, "models that jump"),
            (~jumps, FIXED_COLOUR, "others"),
        ):
            one = own.isel(scenario=np.flatnonzero(rows))
            ax.scatter(
                one["range_ale"].values.ravel(),
                one["range_rhale"].values.ravel(),
                s=8,
                color=colour,
                label=label,
            )
        ends = np.array([float(own["range_ale"].min()), float(own["range_ale"].max())])
        for factor, style in ((1, "-"), (AGREES, ":"), (1 / AGREES, ":")):
            ax.plot(ends, factor * ends, color="0.6", linewidth=0.8, linestyle=style)
        ax.set(xscale="log", yscale="log", title=table, xlabel="range of the ALE curve")
    axes[0, 0].set_ylabel("range of the RHALE curve")
    axes[0, 0].legend(frameon=False, fontsize="x-small")
    return fig
