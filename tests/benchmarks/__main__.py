"""Speed and memory beside the peers, in one process: ``python -m tests.benchmarks global``.

``bias`` times what no peer has: the checks of bias, and dense truths. ``bins`` times AdaptiveBins;
``bootstrap`` stands beside scikit-explain (``pip install scikit-explain``), ``regional`` beside
effector's search for regions. ``effects`` is what asks a model again: ALE of first and second order
beside PyALE, partial dependence and ICE beside scikit-learn, bins that adapt beside the model's own
time, and H-statistics. ``ale-memory`` has ALE of a boosted model beside its bare predictions, in
time and in memory; ``shap`` has Shapley values beside the library shap; ``steps`` are those of an
analysis, each by itself. ``parquet --rows 1e8 --workers 2`` is time and memory of tables larger
than memory, by so many processes.

Times are the least of several runs, the two sides taking turns; ratios are what to quote, since
machines differ. ``--cpu`` takes the time of the CPU, all threads together, for a machine that has
other work as well. Needs effector 0.6.0, the authors' library: ``pip install ".[test]"``.
"""

from __future__ import annotations

import argparse
import logging
import time
import tracemalloc
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np

import rhale_stats as rs
from rhale_stats.arrays import binning, moments
from rhale_stats.arrays.cell_moments import CellMoments
from tests.benchmarks.parquet import options as parquet_options
from tests.benchmarks.parquet import parquet
from tests.benchmarks.peers import peers
from tests.benchmarks.tasks import TASKS

N_FEATURES = 10
MAX_BINS = 100
DISCOUNT = 0.2
# What times are read from; of the CPU with ``--cpu``.
CLOCK: list[Callable[[], float]] = [time.perf_counter]


def least_seconds(*functions: Callable[[], object], runs: int) -> list[float]:
    """Least time of each function over several rounds, in turns."""
    best = [np.inf] * len(functions)
    for _ in range(runs):
        for position, function in enumerate(functions):
            start = CLOCK[0]()
            function()
            best[position] = min(best[position], CLOCK[0]() - start)
    return best


def problem(n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Features uniform on [0, 1], local effects with a mean that moves and spread 1."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(n_rows, N_FEATURES))
    return x, np.sin(6 * x) + rng.normal(size=x.shape)


def global_effects() -> None:
    """All features from local effects in memory, beside effector and beside numpy.sum."""
    import effector

    print(
        f"Global RHALE, {N_FEATURES} features, at most {MAX_BINS} bins, at least N/20 rows a bin.\n"
        f"effector {version('effector')}: from its constructor, with the same Jacobian, exact "
        f"(dynamic programming) bins.\n"
        f"rhale: from local_effects' result, with the moments that standard errors need. 'paper': "
        f"the paper's bins and means over\nrows, as effector; 'default': rhale(local), adaptive "
        f"bins, averages along the axis, and the spread in bins of its own.\n"
    )
    head = ["rows", "numpy.sum", "effector", "paper", "default", "eff./paper", "eff./def."]
    papers = {"bins": rs.OptimalBins(), "weighting": "rows"}
    print("".join(f"{name:>11}" for name in head))
    for n_rows in (1_000, 10_000, 100_000, 1_000_000):
        x, jacobian = problem(n_rows, seed=n_rows)
        local = rs.local_effects(None, x, jacobian=jacobian)
        columns, effects = local["x"].values, local["local_effect"].values
        rule = effector.axis_partitioning.DynamicProgramming(
            max_nof_bins=MAX_BINS, min_points_per_bin=n_rows // 20, discount=DISCOUNT
        )

        def theirs(x=x, jacobian=jacobian, rule=rule):
            effect = effector.RHALE(x, lambda x: x[:, 0], data_effect=jacobian, nof_instances="all")
            effect.fit("all", binning_method=rule)

        def paper(local=local):
            return rs.rhale(local, **papers)

        def default(local=local):
            return rs.rhale(local)

        def total(columns=columns, effects=effects):
            return np.sum(columns), np.sum(effects)

        (peer,) = least_seconds(theirs, runs=2)
        sums, ours, usual = least_seconds(total, paper, default, runs=15)
        times = "".join(f"{1e3 * t:>8.1f} ms" for t in (sums, peer, ours, usual))
        ratios = "".join(f"{peer / t:>10.2f}x" for t in (ours, usual))
        print(f"{n_rows:>11,}{times}{ratios}")
    memory(local)


def memory(local: object) -> None:
    """Peak of what Python and NumPy allocate above the inputs."""
    papers = {"bins": rs.OptimalBins(), "weighting": "rows"}
    calls = {"paper": papers, "default": {}}
    for name, arguments in calls.items():
        tracemalloc.start()
        rs.rhale(local, **arguments)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        print(f"peak memory above the inputs, 1,000,000 rows, {name}: {peak / 1e6:.1f} MB")


def bin_search() -> None:
    """The programme alone on 1,000 cells."""
    n_cells = 1000
    rng = np.random.default_rng(0)
    x = rng.uniform(size=1_000_000)
    x.sort()
    edges = np.linspace(0.0, 1.0, n_cells + 1)
    cells = CellMoments.of_rows(edges, x, np.sin(6 * x) + rng.normal(size=x.size)).means()
    stacked = moments.Moments(*(part[None] for part in cells))

    def search():
        return binning.optimal_starts(
            stacked,
            np.full((1, n_cells), 1 / n_cells),
            min_obs=np.array([1000.0]),
            discount=DISCOUNT,
            ddof=1,
            resolution=np.zeros(1),
        )

    (seconds,) = least_seconds(search, runs=15)
    print(f"bin search alone, {n_cells} cells, one feature: {1e3 * seconds:.1f} ms")


def bias() -> None:
    """Checks and truths, which no peer has: beside sorting the same columns."""
    print(
        f"Bias, {N_FEATURES} features: check_unbiased of 20 bins (it has to sort every feature by "
        f"value and by local effect),\nand dense_truth of one feature in 1000 bins, without the "
        f"time of the model and its Jacobian.\n"
    )
    heads = ("rows", "sorting", "check", "check/sort", "dense_truth")
    print("".join(f"{name:>13}" for name in heads))
    for n_rows in (10_000, 100_000, 1_000_000):
        x, jacobian = problem(n_rows, seed=n_rows)
        local = rs.local_effects(None, x, jacobian=jacobian)
        effect = rs.std_error(rs.rhale(local, bins=rs.EqualWidthBins(20)))

        def sorting(x=x, jacobian=jacobian):
            for column in range(N_FEATURES):
                np.argsort(x[:, column])
                np.argsort(jacobian[:, column])

        def check(local=local, effect=effect):
            return rs.check_unbiased(local, effect, rng=0)

        def dense(x=x, jacobian=jacobian):
            return rs.simulate.dense_truth(None, jacobian, x, 1000, features=0)

        sort, ours, truth = least_seconds(sorting, check, dense, runs=3)
        times = "".join(f"{1e3 * t:>10.1f} ms" for t in (sort, ours))
        print(f"{n_rows:>13,}{times}{ours / sort:>12.1f}x{1e3 * truth:>10.1f} ms")


def adaptive() -> None:
    """AdaptiveBins on 1,000 cells, estimates and all, beside the paper's rule."""
    print("One feature, 1,000,000 rows, estimates and moments of standard errors included:")
    x, jacobian = problem(1_000_000, seed=0)
    local = rs.local_effects(None, x[:, :1], jacobian=jacobian[:, :1], features=0)
    rules = (rs.OptimalBins(1000), *(rs.AdaptiveBins(n) for n in (100, 1000, 2000)))
    times = least_seconds(*(lambda rule=rule: rs.rhale(local, bins=rule) for rule in rules), runs=5)
    for rule, seconds in zip(rules, times, strict=True):
        print(f"{1e3 * seconds:>10.1f} ms  {rule}")


def bootstrap() -> None:
    """1,000 replicates of a forest's effect, beside scikit-explain, which asks the model again."""
    import pandas as pd
    import skexplain
    from sklearn.ensemble import RandomForestRegressor

    n_rows, n_draws, peers_draws = 100_000, 1000, 2
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(size=(n_rows, N_FEATURES))).add_prefix("x")
    y = np.sin(6 * X["x0"]) * X["x1"] + X["x2"] + 0.1 * rng.normal(size=n_rows)
    forest = RandomForestRegressor(50, min_samples_leaf=20, n_jobs=-1, random_state=0)
    forest.fit(X[:20_000], y[:20_000])
    calls = []

    def model(table):
        calls.append(len(table))
        return forest.predict(table)

    local = rs.local_effects(model, X, method="finite_difference", progress=False)
    effect = rs.rhale(local, bins=rs.EqualWidthBins(20))
    called = len(calls)

    def ours(n_features):
        chosen = effect.isel(feature=slice(0, n_features))
        return lambda: rs.bootstrap(local, chosen, n_resamples=n_draws, rng=0, progress=False)

    one, ten = least_seconds(ours(1), ours(N_FEATURES), runs=3)
    explainer = skexplain.ExplainToolkit(("forest", forest), X=X, y=y)

    def theirs(n_bootstrap):
        return lambda: explainer.ale(
            features=["x0"], n_bins=20, n_bootstrap=n_bootstrap, subsample=1.0, random_seed=0
        )

    (seconds,) = least_seconds(theirs(peers_draws), runs=1)
    each = seconds / peers_draws
    print(
        f"Bootstrap of a forest of 50 trees, {n_rows:,} rows, {n_draws:,} replicates, 20 bins.\n"
        f"one feature {one:.2f} s, {N_FEATURES} features {ten:.2f} s, model calls: "
        f"{len(calls) - called}.\n"
        f"scikit-explain {version('scikit-explain')}: {each:.2f} s a replicate of one feature (of "
        f"{peers_draws}), {each * n_draws / one:,.0f} times as long."
    )


def regional() -> None:
    """One node on nine conditioning columns, beside effector on the same candidates."""
    import effector

    n_thresholds = 19
    print(
        f"Search of one node, {N_FEATURES - 1} conditioning columns, {n_thresholds} thresholds of "
        f"equal width each, min_obs 10.\n"
        f"effector {version('effector')}: from its constructor, find_regions(0) by "
        f"Best(max_depth=1), with its default\nbins (dynamic programming, 20 at most) and with 20 "
        f"fixed ones. Ours: regions, from local_effects' result; effector does not test splits, "
        f"so the others do not, either.\n"
    )
    rules = {
        "OptimalBins()": (rs.OptimalBins(), None),
        "OptimalBins(20)": (rs.OptimalBins(20), None),
        "EqualWidthBins(20)": (rs.EqualWidthBins(20), None),
        "default, tested": (rs.OptimalBins(), "permutation"),
    }
    heads = ["rows", "eff. dp", "eff. fixed", *rules, "dp/K=100", "dp/K=20", "fixed/fixed", "peak"]
    print("".join(f"{name:>19}" for name in heads))
    for n_rows in (10_000, 100_000, 1_000_000):
        x, jacobian = problem(n_rows, seed=n_rows)
        # Something to find, so that both sides grow the same tree.
        jacobian[:, 0] += np.where(x[:, 3] > 0.5, 1.5, -1.5)
        local = rs.local_effects(None, x, jacobian=jacobian)
        finder = effector.space_partitioning.Best(
            max_depth=1, numerical_features_grid_size=n_thresholds + 1
        )

        def theirs(binning, x=x, jacobian=jacobian, finder=finder):
            # Anew each time: it remembers what it has seen.
            effect = effector.RHALE(x, lambda x: x[:, 0], data_effect=jacobian, nof_instances="all")
            effect.fit(0, binning_method=binning)
            effect.find_regions(0, finder=finder)

        def ours(rule, local=local):
            bins, test = rule
            return lambda: rs.regions(
                local, 0, max_depth=1, min_obs=10, n_thresholds=n_thresholds,
                thresholds="equal_width", bins=bins, test=test, rng=0,
            )  # fmt: skip

        fixed = effector.axis_partitioning.Fixed(nof_bins=20)
        peers = least_seconds(
            lambda theirs=theirs: theirs("dp"),
            lambda theirs=theirs, fixed=fixed: theirs(fixed),
            runs=1 if n_rows > 10_000 else 3,
        )
        own = least_seconds(*map(ours, rules.values()), runs=10)
        times = "".join(f"{1e3 * t:>16.1f} ms" for t in (*peers, *own))
        ratios = (peers[0] / own[0], peers[0] / own[1], peers[1] / own[2])
        tracemalloc.start()
        ours(rules["OptimalBins()"])()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        print(f"{n_rows:>19,}{times}" + "".join(f"{r:>18.0f}x" for r in ratios), end="")
        print(f"{peak / 1e6:>16.1f} MB")


def every_region() -> None:
    """Trees of ten features, with the grid of the paper's bins and with the authors' library's."""
    x, jacobian = problem(100_000, seed=0)
    # Two columns part every effect, so that trees have their full depth.
    jacobian += np.where(x[:, [3]] > 0.5, 1.5, -1.5) + np.where(x[:, [5]] > 0.3, 0.8, -0.8)
    local = rs.local_effects(None, x, jacobian=jacobian)
    for rule in (rs.OptimalBins(), rs.OptimalBins(max_bins=20), rs.EqualWidthBins(20)):

        def every(rule=rule):
            return rs.all_regions(local, bins=rule, progress=False)

        (seconds,) = least_seconds(every, runs=3)
        print(
            f"all_regions, {N_FEATURES} features, depth 2, 100,000 rows, {rule}: "
            f"{seconds:.2f} s, {int(every()['n_nodes'].sum())} nodes."
        )


class Smooth:
    """A cheap model of any table, vectorised."""

    def predict(self, table):
        x = np.asarray(table)
        return np.sin(3 * x[:, 0]) * x[:, 1] + x[:, 2] ** 2 - x[:, 3] * x[:, 4]


def uniform_table(n_rows: int, n_features: int = 5):
    """Features uniform on [0, 1]."""
    import pandas as pd

    values = np.random.default_rng(n_rows).uniform(size=(n_rows, n_features))
    return pd.DataFrame(values).add_prefix("x")


def ale_beside_pyale() -> None:
    """First order, all features; PyALE one after the other. What the model takes stands apart."""
    import pandas as pd
    import PyALE

    n_bins, model = 40, Smooth()
    print(
        f"ALE of 5 features, {n_bins} quantiles, of a cheap model; PyALE {version('PyALE')} one "
        f"feature at a time, without\nintervals. model: bare predictions of 2N rows, once a "
        f"feature. beyond: ours and PyALE's without these."
    )
    heads = ("rows", "model", "rs.ale", "PyALE", "PyALE/ale", "beyond")
    print("".join(f"{name:>13}" for name in heads))
    for n_rows in (10_000, 100_000, 1_000_000):
        X = uniform_table(n_rows)
        twice = pd.concat([X, X], ignore_index=True)

        def bare(X=X, twice=twice):
            for _ in X:
                model.predict(twice)

        def ours(X=X):
            rs.ale(model, X, bins=rs.QuantileBins(n_bins), progress=False)

        def theirs(X=X):
            for name in X:
                PyALE.ale(X, model, [name], grid_size=n_bins, include_CI=False, plot=False)

        runs = 3 if n_rows == 1_000_000 else 10
        least, own, peer = least_seconds(bare, ours, theirs, runs=runs)
        times = "".join(f"{1e3 * t:>10.1f} ms" for t in (least, own, peer))
        beyond = (peer - least) / (own - least)
        print(f"{n_rows:>13,}{times}{peer / own:>12.2f}x{beyond:>12.2f}x")


def adaptive_of_trees() -> None:
    """ALE with bins that adapt, beside the model's own time on 2N rows, once a feature."""
    import pandas as pd
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor

    n_rows, n_features = 100_000, 3
    print(
        f"ALE of {n_features} features with AdaptiveBins, {n_rows:,} rows, beside bare predictions "
        f"of 2N rows for each feature (promise: at most 2.2)."
    )
    X = uniform_table(n_rows, n_features=5)
    y = Smooth().predict(X)
    twice = pd.concat([X, X], ignore_index=True)
    names = list(X)[:n_features]
    for model in (
        RandomForestRegressor(30, min_samples_leaf=20, n_jobs=-1, random_state=0),
        HistGradientBoostingRegressor(random_state=0),
    ):
        model.fit(X[:20_000], y[:20_000])

        def bare(model=model):
            for _ in names:
                model.predict(twice)

        def ours(model=model):
            rs.ale(model, X, features=names, bins=rs.AdaptiveBins(), progress=False)

        least, own = least_seconds(bare, ours, runs=5)
        print(
            f"{type(model).__name__:>32}: model {least:.2f} s, rs.ale {own:.2f} s, "
            f"{own / least:.2f} times"
        )


def profiles_beside_sklearn() -> None:
    """Partial dependence and ICE on one grid, of a cheap and of a dearer model."""
    import sklearn
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.inspection import partial_dependence
    from sklearn.linear_model import LinearRegression

    n_grid = 40
    print(
        f"Partial dependence with its ICE, one feature, {n_grid} points, beside scikit-learn "
        f"{sklearn.__version__}, method='brute', kind='both'.\nrs.pdp has standard errors and the "
        f"spread of the ICE curves, rs.ice the curves."
    )
    heads = ("rows", "rs.pdp", "rs.ice", "sklearn", "sklearn/pdp", "sklearn/ice")
    print("".join(f"{name:>13}" for name in heads))
    for model, sizes in (
        (LinearRegression(), (1_000, 10_000, 100_000)),
        (HistGradientBoostingRegressor(max_iter=20, random_state=0), (1_000, 10_000)),
    ):
        train = uniform_table(20_000)
        model.fit(train, Smooth().predict(train))
        print(type(model).__name__)
        for n_rows in sizes:
            X = uniform_table(n_rows)
            grid = np.quantile(X["x1"], np.linspace(0, 1, n_grid))
            options = {"features": "x1", "grid": {"x1": grid}, "progress": False}

            def theirs(model=model, X=X, grid=grid):
                partial_dependence(
                    model, X, ["x1"], custom_values={"x1": grid}, method="brute", kind="both"
                )

            pdp, ice, peer = least_seconds(
                lambda model=model, X=X, options=options: rs.pdp(model, X, **options),
                lambda model=model, X=X, options=options: rs.ice(model, X, **options),
                theirs,
                runs=5 if n_rows == sizes[-1] else 10,
            )
            times = "".join(f"{1e3 * t:>10.1f} ms" for t in (pdp, ice, peer))
            print(f"{n_rows:>13,}{times}{peer / pdp:>12.2f}x{peer / ice:>12.2f}x")


def second_order() -> None:
    """ale2 beside PyALE's surface, and H-statistics by themselves."""
    import PyALE

    n_bins, model = 20, Smooth()
    print(f"Second-order ALE, {n_bins} quantiles each, beside PyALE {version('PyALE')}.")
    print("".join(f"{name:>13}" for name in ("rows", "rs.ale2", "PyALE", "PyALE/ale2")))
    for n_rows in (10_000, 100_000, 1_000_000):
        X = uniform_table(n_rows)

        def ours(X=X):
            rs.ale2(model, X, ("x0", "x1"), bins=rs.QuantileBins(n_bins), progress=False)

        def theirs(X=X):
            PyALE.ale(X, model, ["x0", "x1"], grid_size=n_bins, include_CI=False, plot=False)

        own, peer = least_seconds(ours, theirs, runs=3 if n_rows == 1_000_000 else 5)
        times = "".join(f"{1e3 * t:>10.1f} ms" for t in (own, peer))
        print(f"{n_rows:>13,}{times}{peer / own:>12.2f}x")
    X = uniform_table(500)
    seconds = least_seconds(
        lambda: rs.h_statistic(model, X, progress=False),
        lambda: rs.h_statistic(model, X, kind="ale", progress=False),
        runs=3,
    )
    for kind, time_taken in zip(("pdp", "ale"), seconds, strict=True):
        print(f"h_statistic, 500 rows of 5 features, all pairs, {kind!r}: {time_taken:.2f} s")


def _boosted(n_rows: int, n_features: int):
    """A table and a boosted model of it, 100 trees on one thread."""
    import lightgbm

    X = uniform_table(n_rows, n_features)
    y = Smooth().predict(X)
    model = lightgbm.LGBMRegressor(n_estimators=100, n_jobs=1, verbose=-1)
    return X, model.fit(X[:20_000], y[:20_000])


def _memory(name: str) -> int:
    """A line of /proc/self/status in bytes."""
    with open("/proc/self/status") as lines:
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith(name))


def _measured(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds, and bytes of resident memory at its peak above those before."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak so far is forgotten
    before, start = _memory("VmRSS"), CLOCK[0]()
    work()
    return CLOCK[0]() - start, _memory("VmHWM") - before


def ale_memory() -> None:
    """ALE of a boosted model beside the two predictions a feature that it needs (Linux)."""
    n_features = 9
    print(
        f"ALE of {n_features} features of LightGBM, 100 trees. bare: two predictions of X a "
        f"feature.\nMemory above that before the call, in tables: resident, and what Python and "
        f"NumPy allocate in a call of a cheap model."
    )
    heads = ("rows", "table", "bare", "rs.ale", "ratio", "resident", "allocated")
    print("".join(f"{name:>13}" for name in heads))
    for n_rows in (100_000, 1_000_000):
        X, model = _boosted(n_rows, n_features)
        size = X.memory_usage(index=False).sum()

        def bare(X=X, model=model):
            for _ in range(2 * n_features):
                model.predict(X)

        rs.ale(model, X[:1000], progress=False)
        least, _ = _measured(bare)
        own, resident = _measured(lambda X=X, model=model: rs.ale(model, X, progress=False))
        tracemalloc.start()
        rs.ale(Smooth(), X, progress=False)
        _, allocated = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        print(
            f"{n_rows:>13,}{size / 1e6:>10.1f} MB{least:>11.2f} s{own:>11.2f} s"
            f"{own / least:>12.2f}x{resident / size:>12.2f}x{allocated / size:>12.2f}x"
        )


def shapley() -> None:
    """Shapley values of a boosted model, beside the library shap on the same background."""
    import shap

    print(
        f"Shapley values of LightGBM, 100 trees, 10 features, over a background. shap "
        f"{shap.__version__}: TreeExplainer,\ninterventional, with the same background."
    )
    heads = ("rows", "background", "rs.shap_dep.", "shap", "apart")
    print("".join(f"{name:>14}" for name in heads))
    X, model = _boosted(20_000, 10)
    rs.shap_dependence(model, X[:10], progress=False)
    for n_rows, n_background in ((1_000, 100), (10_000, 100), (10_000, 1_000)):
        rows, others = X[:n_rows], X[-n_background:]
        found, theirs = [], []

        def ours(rows=rows, others=others, found=found):
            found.append(rs.shap_dependence(model, rows, background=others, progress=False))

        def peer(rows=rows, others=others, theirs=theirs):
            explainer = shap.TreeExplainer(model, others, feature_perturbation="interventional")
            theirs.append(explainer.shap_values(rows, check_additivity=False))

        (own,) = least_seconds(ours, runs=1)
        other, apart = np.nan, np.nan
        if n_background == 100:
            (other,) = least_seconds(peer, runs=1)
            apart = np.abs(found[0]["shap_value"].values.T - theirs[0]).max()
        print(f"{n_rows:>14,}{n_background:>14,}{own:>12.2f} s{other:>12.2f} s{apart:>14.1e}")


def steps() -> None:
    """Each step of an analysis of a table in memory by itself, in milliseconds."""

    def model(X):
        return X[:, 0] ** 2 + X[:, 1] * X[:, 2] + np.sin(3 * X[:, 3])

    sizes, columns = ((500, 5), (10_000, 10), (1_000, 50)), []
    for n_rows, n_features in sizes:
        X = np.random.default_rng(0).uniform(-1, 1, (n_rows, n_features))
        local = rs.local_effects(model, X)
        effect = rs.rhale(local)
        with_errors = rs.std_error(effect)
        with_intervals = rs.confint(with_errors)
        works: dict[str, Callable[[], object]] = {
            "local_effects(model, X)": lambda X=X: rs.local_effects(model, X),
            "rhale(local)": lambda local=local: rs.rhale(local),
            "std_error(effect)": lambda effect=effect: rs.std_error(effect),
            "confint(effect), with errors": lambda effect=with_errors: rs.confint(effect),
            "confband(effect), with errors": lambda effect=with_errors: rs.confband(effect, rng=0),
            "summary(effect), with intervals": lambda effect=with_intervals: str(
                rs.summary(effect)
            ),
            "tidy(effect), with intervals": lambda effect=with_intervals: rs.tidy(effect),
            "ale(model, X)": lambda X=X: rs.ale(model, X),
            "pdp(model, X)": lambda X=X: rs.pdp(model, X),
        }
        for work in works.values():
            work()
        columns.append(least_seconds(*works.values(), runs=15))
    print(f"{'ms':33}" + "".join(f"{f'{rows:,} x {features}':>13}" for rows, features in sizes))
    for name, *seconds in zip(works, *columns, strict=True):
        print(f"{name:33}" + "".join(f"{1e3 * each:>13.1f}" for each in seconds))


BENCHMARKS = {
    "ale-memory": (ale_memory,),
    "global": (global_effects, bin_search),
    "bias": (bias,),
    "bins": (adaptive,),
    "bootstrap": (bootstrap,),
    "effects": (ale_beside_pyale, adaptive_of_trees, profiles_beside_sklearn, second_order),
    "regional": (regional, every_region),
    "shap": (shapley,),
    "steps": (steps,),
}


def main() -> None:
    """Run the benchmark that is named."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("name", choices=[*BENCHMARKS, "parquet", "peers"])
    of_peers = parser.add_argument_group("peers")
    of_peers.add_argument("--tasks", nargs="+", choices=TASKS, help="tasks to time (default: all)")
    of_peers.add_argument("--quick", action="store_true", help="few rows, rounds and sizes")
    of_peers.add_argument("--scaling", action="store_true", help="also how cost grows")
    of_peers.add_argument("--out", type=Path, help="a page (.md); its picture lies beside it")
    parser.add_argument("--cpu", action="store_true", help="CPU time of all threads together")
    parquet_options(parser)
    arguments = parser.parse_args()
    if arguments.name == "parquet":
        parquet(arguments.rows, arguments.workers, arguments.rounds)
        return
    if arguments.name == "peers":
        peers(arguments.tasks, quick=arguments.quick, growth=arguments.scaling, out=arguments.out)
        return
    if arguments.cpu:
        CLOCK[0] = time.process_time
    warnings.simplefilter("ignore")
    logging.disable(logging.INFO)  # PyALE sets the level of its own
    for benchmark in BENCHMARKS[arguments.name]:
        benchmark()


if __name__ == "__main__":
    main()
