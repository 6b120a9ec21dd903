"""Do the intervals of `outcome_effects` hold the truth? Processes × learners × sizes.

    python vignettes/studies outcome --n 500 1000 --replicates 40 --out outcome.csv
    python vignettes/studies outcome --doubleml --n 500 1000 --replicates 40

A line a process, learner and size: shares of samples in which the 95 % interval of a bin, of the
curve, and of the change between usual values holds the truth, in which the effect of a feature
without one is rejected, and in which an effect is found; with the same for the model as given.
The two outermost bins of features with an axis are also counted apart.
The truth of a bin is the mean over its rows of the true difference, that of a curve less its mean
over the rows of the bins.

With ``--doubleml`` the outcome is .5 x0 + g(x1) + noise: the one slope is estimated by DoubleML's
partially linear model, by `outcome_effects` (between usual values, and on average over the rows)
and by `cross_effects`, of the same learner.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit

import rhale_stats as rs

FEATURES = [f"x{k}" for k in range(5)]


class Process(NamedTuple):
    """A process: the true mean of its outcome and how rows and outcomes are drawn."""

    mean: Callable[[pd.DataFrame], Any]
    kind: str = "normal"
    correlation: float = 0.5
    discrete: bool = False


def _steps(X: pd.DataFrame) -> Any:
    return 1.0 * (X.x0 > 0.3) + np.sin(2 * X.x1)


PROCESSES = {
    "correlated .7": Process(lambda X: 0.5 * X.x0 + np.sin(2 * X.x1), correlation=0.7),
    "steps": Process(_steps),
    "interaction": Process(lambda X: X.x0 * (X.x2 > 0) + 0.7 * X.x1),
    "binary": Process(lambda X: expit(0.8 * X.x0 + np.sin(2 * X.x1)), "binary"),
    "counts": Process(lambda X: np.exp(0.5 + 0.4 * X.x0 + 0.3 * np.sin(2 * X.x1)), "counts"),
    "clustered": Process(lambda X: 0.5 * X.x0 + np.sin(2 * X.x1), "clustered"),
    "heteroscedastic": Process(lambda X: 0.5 * X.x0 + np.sin(2 * X.x1), "heteroscedastic"),
    "discrete": Process(lambda X: 0.3 * X.x0 + np.sin(2 * X.x1), discrete=True),
}


def drawn(process: Process, n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, Any, Any]:
    """Rows, outcomes and groups; x4, and x3 but for its correlation, have no effect."""
    covariance = np.full((5, 5), process.correlation) + (1 - process.correlation) * np.eye(5)
    values = rng.multivariate_normal(np.zeros(5), covariance, n)
    groups = None
    if process.kind == "clustered":
        groups = np.arange(n) // 10
        values = 0.7 * values + 0.7 * rng.normal(size=(n // 10 + 1, 5))[groups]
    X = pd.DataFrame(values, columns=FEATURES)
    if process.discrete:
        X["x0"] = np.clip(np.round(1.5 * X.x0) + 4, 0, 8).astype(int)
    m = process.mean(X)
    if process.kind == "binary":
        return X, rng.binomial(1, m), None
    if process.kind == "counts":
        return X, rng.poisson(m), None
    noise = rng.normal(size=n)
    if groups is not None:
        noise = 0.7 * noise + 0.7 * rng.normal(size=n // 10 + 1)[groups]
    if process.kind == "heteroscedastic":
        noise = noise * (0.4 + np.abs(X.x0))
    return X, m + noise, groups


def learners(binary: bool) -> dict[str, Callable[[], Any]]:
    """Makers of learners; classifiers where the outcome is 0 and 1."""
    from lightgbm import LGBMClassifier, LGBMRegressor
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
    from sklearn.linear_model import LogisticRegressionCV, RidgeCV
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import SplineTransformer, StandardScaler
    from xgboost import XGBClassifier, XGBRegressor

    lgbm, forest, xgb, network = (
        (LGBMClassifier, RandomForestClassifier, XGBClassifier, MLPClassifier)
        if binary
        else (LGBMRegressor, RandomForestRegressor, XGBRegressor, MLPRegressor)
    )
    ridge = LogisticRegressionCV(Cs=5, max_iter=500) if binary else RidgeCV(np.logspace(-2, 4, 7))
    return {
        "lightgbm": lambda: lgbm(verbose=-1, n_jobs=1),
        "xgboost": lambda: xgb(n_jobs=1),
        "splines": lambda: make_pipeline(SplineTransformer(6), ridge),
        "forest": lambda: forest(n_jobs=1),
        "network": lambda: make_pipeline(StandardScaler(), network(max_iter=200)),
    }


def truth(process: Process, X: pd.DataFrame, effect: Any, name: str) -> tuple[Any, Any]:
    """True effects of the bins, and the true curve less its mean over the rows of the bins."""
    row = effect.sel(feature=name)
    edges = row["edge_value"].dropna("edge").values
    levels = str(row["feature_kind"].values) != "continuous"
    x = X[name].to_numpy(float)
    values = np.unique(x) if levels else edges
    at = [process.mean(X.assign(**{name: value})) for value in values]
    steps = []
    for k in range(len(values) - 1):
        rows = (
            (x == values[k]) | (x == values[k + 1])
            if levels
            else (x >= values[k]) & ((x < values[k + 1]) | (x == values[-1]))
        )
        width = 1.0 if levels else values[k + 1] - values[k]
        steps.append((at[k + 1] - at[k])[rows].mean() / width)
    width = np.ones(len(steps)) if levels else np.diff(values)
    curve = np.r_[0, np.cumsum(np.array(steps) * width)]
    inside = x[(x >= values[0]) & (x <= values[-1])]
    return np.array(steps), curve - np.interp(inside, values, curve).mean()


def judged(effect: Any, process: Process, X: pd.DataFrame) -> dict[str, list[float]]:
    """Whether intervals of bins, curves and usual changes hold the truth, of all features."""
    effect = rs.confint(effect)
    kinds = ("bins", "curve", "inner bins", "outer bins", "usual change")
    found: dict[str, list[float]] = {kind: [] for kind in kinds}
    for name in FEATURES:
        steps, curve = truth(process, X, effect, name)
        row = effect.sel(feature=name)
        on_axis = str(row["feature_kind"].values) == "continuous"
        for kind, true, dim in (("bins", steps, "effect"), ("curve", curve, "curve")):
            ends = row[f"{dim}_ci"].transpose(..., "ci_bound").values[: len(true)]
            held = list((ends[:, 0] <= true) & (true <= ends[:, 1]))
            found[kind] += held
            if kind == "bins" and on_axis:
                found["inner bins"] += held[1:-1]
                found["outer bins"] += [held[0], held[-1]]
        if on_axis and "usual_difference_ci" in row:
            usual = [float(row["usual_low"]), float(row["usual_high"])]
            change = np.diff(np.interp(usual, row["edge_value"].dropna("edge").values, curve))[0]
            low, high = row["usual_difference_ci"].transpose("ci_bound").values
            found["usual change"].append(low <= change <= high)
    return found


def sample(process: Process, make: Callable[[], Any], n: int, seed: int) -> dict[str, float]:
    """One sample: coverage and rejections of the outcome's effects and of the model's."""
    X, y, groups = drawn(process, n, np.random.default_rng(seed))
    effect = rs.outcome_effects(make(), X, y, groups=groups, rng=seed, progress=False)
    held = judged(effect, process, X)
    pvalue = rs.wald_test(effect)["p_value"]
    width = float((effect["curve_se"].sel(feature="x0") * 1.96).mean())
    out = {
        **{kind: float(np.mean(each)) for kind, each in held.items()},
        "half-width": width,
        "rejected": float(pvalue.sel(feature="x4") <= 0.05),
        "found": float((pvalue.sel(feature=["x0", "x1"]) <= 0.05).mean()),
    }
    model = make().fit(X, y)
    given = rs.ale(model, X, bins=rs.QuantileBins(8), progress=False)
    out["model: curve"] = float(
        np.mean(
            judged(rs.std_error(given) if "curve_se" not in given else given, process, X)["curve"]
        )
    )
    out["model: rejected"] = float(rs.wald_test(given)["p_value"].sel(feature="x4") <= 0.05)
    return out


def slopes(make: Callable[[], Any], n: int, seed: int) -> dict[str, tuple[float, float]]:
    """One sample: the slope of x0, which is .5, and its standard error, in three ways."""
    from doubleml import DoubleMLData, DoubleMLPLR

    rng = np.random.default_rng(seed)
    X, y, _ = drawn(PROCESSES["heteroscedastic"], n, rng)
    data = DoubleMLData.from_arrays(X.drop(columns="x0").to_numpy(), y, X["x0"].to_numpy())
    np.random.seed(seed)  # noqa: NPY002 (DoubleML draws its folds from it)
    peer = DoubleMLPLR(data, make(), make(), n_folds=5, n_rep=2).fit()
    ours = rs.outcome_effects(make(), X, y, "x0", rng=seed, progress=False).isel(feature=0)
    cross = rs.cross_effects(
        lambda rows: make().fit(rows[FEATURES], rows["y"]),
        lambda model, rows: rs.ale(model, rows[FEATURES], features="x0", progress=False),
        X.assign(y=y),
        n_repeats=2,
        n_jobs=1,
        rng=seed,
        progress=False,
    )
    cross = rs.std_error(cross).isel(feature=0)
    width = ours["usual_high"] - ours["usual_low"]
    return {
        "DoubleML": (float(peer.coef[0]), float(peer.se[0])),
        "outcome_effects, usual values": (
            float(ours["usual_difference"] / width),
            float(ours["usual_difference_se"] / width),
        ),
        "outcome_effects, mean": (
            float(ours["average_effect"]),
            float(ours["average_effect_se"]),
        ),
        "cross_effects": (
            float(cross["average_effect_estimate"]),
            float(cross["average_effect_se"]),
        ),
    }


def compared(make: Callable[[], Any], n: int, replicates: int) -> pd.DataFrame:
    """Bias, spread, mean standard error and coverage of the ways of `slopes`."""
    samples = [slopes(make, n, seed) for seed in range(replicates)]
    rows = {}
    for way in samples[0]:
        estimate, error = np.array([sample[way] for sample in samples]).T
        held = np.abs(estimate - 0.5) <= 1.96 * error
        rows[way] = {
            "bias": estimate.mean() - 0.5,
            "bias se": estimate.std(ddof=1) / np.sqrt(replicates),
            "deviation": estimate.std(ddof=1),
            "standard error": error.mean(),
            "coverage": held.mean(),
            "coverage se": np.sqrt(held.mean() * (1 - held.mean()) / replicates),
        }
    return pd.DataFrame(rows).T.round(3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, nargs="+", default=[500, 1000])
    parser.add_argument("--replicates", type=int, default=40)
    parser.add_argument("--learners", nargs="+")
    parser.add_argument("--processes", nargs="+", default=list(PROCESSES))
    parser.add_argument("--doubleml", action="store_true")
    parser.add_argument("--out", default="outcome.csv")
    options = parser.parse_args()
    lines = []
    warnings.simplefilter("ignore")
    if options.doubleml:
        makers = learners(binary=False)
        for n in options.n:
            for learner in options.learners or list(makers):
                print(f"{learner}, {n} rows")
                print(compared(makers[learner], n, options.replicates).to_string(), flush=True)
        return
    for n in options.n:
        for name in options.processes:
            process = PROCESSES[name]
            makers = learners(process.kind == "binary")
            for learner in options.learners or list(makers):
                begun = time.perf_counter()
                samples = pd.DataFrame(
                    [
                        sample(process, makers[learner], n, seed)
                        for seed in range(options.replicates)
                    ]
                )
                error = samples.std() / np.sqrt(len(samples))
                lines.append(
                    {"process": name, "learner": learner, "n": n, "samples": len(samples)}
                    | samples.mean().round(3).to_dict()
                    | {f"{key} se": value for key, value in error.round(3).items()}
                )
                print(lines[-1], f"{time.perf_counter() - begun:.0f} s", flush=True)
                pd.DataFrame(lines).to_csv(options.out, index=False)


if __name__ == "__main__":
    main()
