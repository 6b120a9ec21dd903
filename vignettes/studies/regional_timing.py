"""How long regions take: r-RHALE beside r-ALE and r-PDP (RegionalRHALE, Figures 3 and 4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import pairwise
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import NDArray

from rhale_stats.arrays.moments import FloatArray
from rhale_stats.local.local_effects import local_effects
from rhale_stats.parallel import cpus, one_blas_thread
from rhale_stats.regional.comparisons import regional_ale, regional_pdp
from rhale_stats.regional.regions import regions
from studies import tools
from studies.california import Network
from studies.runner import Options, Output, Scenario, Study
from studies.tools import holds

METHODS = ("r-RHALE", "r-ALE", "r-PDP")
COLOURS = dict(zip(METHODS, (tools.RHALE_COLOUR, tools.FIXED_COLOUR, "#029e73"), strict=True))
FEATURE = "x0"
WIDTH = 128
# Rows that a network works on at once: its layers then stay in the processor's cache.
BATCH = 4096
# The machine may be busy at times. Therefore the least time of several rounds over all cases
# counts. In each round a case is run for so many seconds, and at most so many times.
ROUNDS, SECONDS, TIMES = 4, 1.0, 5


class Setting(NamedTuple):
    """A network and its rows."""

    layers: int
    rows: int
    columns: int

    @property
    def label(self) -> str:
        """As it stands along ``setting``."""
        return f"L = {self.layers}, N = {self.rows}, D = {self.columns}"


DEEP = tuple(Setting(layers, 10_000, 10) for layers in (3, 5, 10, 15, 20))
LARGE = tuple(Setting(5, rows, 20) for rows in (1_000, 10_000, 100_000))
QUICK = (Setting(3, 500, 4), Setting(6, 500, 4), Setting(3, 500, 5), Setting(3, 1500, 5))


def study(options: Options) -> Study:
    """The study for these options."""
    settings = _settings(options)
    over = ("setting", "kind")
    return Study(
        name="regional-timing",
        title="Computing time of regional effects",
        source="RegionalRHALE, section 3.1, Figures 3 and 4",
        claim="The time of r-RHALE grows much more slowly with the layers of a network than that "
        "of r-ALE and r-PDP (20 layers: under 15 s, 1 min and 4 min a feature). At the largest N "
        "r-RHALE is more than twice as fast as r-ALE and ten times as fast as r-PDP.",
        # One scenario with one replicate: runs at the same time would be in each other's way.
        scenarios=(Scenario("one machine", {"rounds": 1 if options.quick else ROUNDS}),),
        coords={"setting": [one.label for one in settings], "kind": METHODS},
        outputs={
            "seconds": Output(over, "least time of all rounds", "s"),
            "model_seconds": Output(over, "of it, the network's, derivatives included", "s"),
            "model_calls": Output(over, "how often the network was asked", "calls"),
            "model_rows": Output(over, "for how many rows in all", "rows"),
            "n_nodes": Output(over, "nodes of the tree", "nodes"),
            "n_layers": Output(("setting",), "layers", "layers"),
            "n_rows": Output(("setting",), "rows", "rows"),
            "n_columns": Output(("setting",), "columns", "columns"),
            "is_torch": Output((), "1 if PyTorch ran the networks, 0 if NumPy"),
            "cores": Output((), "processors of the machine"),
        },
        replicate=replicate,
        n_replicates=1,
        tables=tables,
        findings=findings,
        figure=figure,
        rows=dict.fromkeys(("Of these seconds", "Rows that", "Nodes", "How many times"), ""),
        prepare=_settings,
    )


def _settings(options: Options) -> tuple[Setting, ...]:
    return QUICK if options.quick else DEEP + LARGE


class Timed:
    """A network that is not trained, and its time, which does not depend on training.

    Its weights keep the size of what goes through them (He et al. 2015), so that the output depends
    on the inputs through any number of layers.
    """

    def __init__(self, layers: int, columns: int, rng: np.random.Generator) -> None:
        sizes = [columns, *[WIDTH] * (layers - 1), 1]
        weights = [rng.normal(size=each) * np.sqrt(2 / each[0]) for each in pairwise(sizes)]
        biases = [rng.normal(size=n_out) * 0.1 for n_out in sizes[1:]]
        self.seconds, self.calls, self.rows = 0.0, 0, 0
        self.is_torch = find_spec("torch") is not None
        network = Network(weights, biases, "none")
        both = _torch_functions(network) if self.is_torch else (network.predict, network.jacobian)
        self._output, self._derivatives = both

    def __call__(self, x: FloatArray) -> FloatArray:
        """Output of every row."""
        return self._timed(self._output, x)

    def jacobian(self, x: FloatArray) -> FloatArray:
        """Derivatives with respect to every column: one pass forward, one back."""
        return self._timed(self._derivatives, x)

    def _timed(self, function: Callable[[FloatArray], FloatArray], x: FloatArray) -> FloatArray:
        start = perf_counter()
        parts = [function(x[begin : begin + BATCH]) for begin in range(0, len(x), BATCH)]
        self.seconds += perf_counter() - start
        self.calls, self.rows = self.calls + 1, self.rows + len(x)
        return np.concatenate(parts)


def _torch_functions(
    network: Network,
) -> tuple[Callable[[FloatArray], FloatArray], Callable[[FloatArray], FloatArray]]:
    """The same network in PyTorch, in single precision: output, and derivatives by autograd."""
    import torch

    parts: list[Any] = []
    for weight, bias in zip(network.weights, network.biases, strict=True):
        layer = torch.nn.Linear(*weight.shape)
        layer.weight = torch.nn.Parameter(torch.tensor(weight.T, dtype=torch.float32), False)
        layer.bias = torch.nn.Parameter(torch.tensor(bias, dtype=torch.float32), False)
        parts += [layer, torch.nn.ReLU()]
    model = torch.nn.Sequential(*parts[:-1])

    def output(x: FloatArray) -> NDArray[Any]:
        with torch.no_grad():
            return np.asarray(model(torch.tensor(x, dtype=torch.float32))[:, 0].numpy())

    def derivatives(x: FloatArray) -> NDArray[Any]:
        inputs = torch.tensor(x, dtype=torch.float32, requires_grad=True)
        model(inputs).sum().backward()
        return np.asarray(inputs.grad.numpy())

    return output, derivatives


# Without thresholds of a drop every method splits as often, and does as much.
OPTIONS: dict[str, Any] = {"max_depth": 2, "min_drop": 0.0, "test": None}


def _rhale(model: Timed, x: FloatArray) -> xr.Dataset:
    local = local_effects(None, x, jacobian=model.jacobian, features=FEATURE)
    return regions(local, FEATURE, conditioning=x, min_share=0.0, **OPTIONS)


def _ale(model: Timed, x: FloatArray) -> xr.Dataset:
    return regional_ale(model, x, FEATURE, min_share=0.0, **OPTIONS)


def _pdp(model: Timed, x: FloatArray) -> xr.Dataset:
    return regional_pdp(model, x, FEATURE, **OPTIONS)


TREES = dict(zip(METHODS, (_rhale, _ale, _pdp), strict=True))


def replicate(
    parameters: Mapping[str, Any], rng: np.random.Generator, settings: tuple[Setting, ...]
) -> dict[str, Any]:
    """Every method on every network, round by round; the least time of each."""
    with _one_thread():
        return _replicate(int(parameters["rounds"]), rng, settings)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Networks on one thread: several wait for the slowest, and on a busy machine for long."""
    if find_spec("torch") is None:
        with one_blas_thread:
            yield
        return
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _replicate(
    rounds: int, rng: np.random.Generator, settings: tuple[Setting, ...]
) -> dict[str, Any]:
    shape = (len(settings), len(METHODS))
    names = ("seconds", "model_seconds", "model_calls", "model_rows", "n_nodes")
    out = {name: np.full(shape, np.inf) for name in names}
    cases = []
    for setting in settings:
        model = Timed(setting.layers, setting.columns, rng)
        x = rng.uniform(-1, 1, (setting.rows, setting.columns))
        cases.append((model, x))
        # What is made once, at the first use, is not timed.
        model(x[:BATCH])
        model.jacobian(x[:BATCH])
    for _ in range(rounds):
        for number, (model, x) in enumerate(cases):
            for column, tree_of in enumerate(TREES.values()):
                begin = perf_counter()
                for _ in range(TIMES):
                    found = _measured(tree_of, model, x)
                    if found[0] < out["seconds"][number, column]:
                        for name, value in zip(names, found, strict=True):
                            out[name][number, column] = value
                    if perf_counter() - begin > SECONDS:
                        break
    return out | {
        "n_layers": [one.layers for one in settings],
        "n_rows": [one.rows for one in settings],
        "n_columns": [one.columns for one in settings],
        "is_torch": float(cases[0][0].is_torch),
        "cores": float(cpus()),
    }


def _measured(
    tree_of: Callable[[Timed, FloatArray], xr.Dataset], model: Timed, x: FloatArray
) -> tuple[float, ...]:
    """Seconds, the network's seconds, calls and rows, and nodes of the tree."""
    model.seconds, model.calls, model.rows = 0.0, 0, 0
    start = perf_counter()
    tree = tree_of(model, x)
    return perf_counter() - start, model.seconds, model.calls, model.rows, tree.sizes["node"]


def _one(results: xr.Dataset) -> xr.Dataset:
    """The one run, or of several the least times."""
    return results.isel(scenario=0).min("replicate")


def _series(results: xr.Dataset) -> tuple[xr.Dataset, xr.Dataset]:
    """The networks of one number of rows, and those of one number of layers."""
    one = _one(results)
    columns = one["n_columns"].values
    return one.isel(setting=columns == columns[0]), one.isel(setting=columns == columns[-1])


def tables(results: xr.Dataset) -> list[tuple[str, pd.DataFrame]]:
    """Seconds, ratios, and what was asked of the networks."""
    one = _one(results)

    def table(name: str) -> pd.DataFrame:
        return pd.DataFrame(one[name].values, list(one["setting"].values), list(METHODS))

    seconds = table("seconds")
    ratios = pd.DataFrame(
        {
            f"{method} / {METHODS[0]}": seconds[method] / seconds[METHODS[0]]
            for method in METHODS[1:]
        }
    )
    return [
        ("Seconds a feature, least of all rounds", seconds),
        ("How many times as long as r-RHALE", ratios),
        ("Of these seconds, the network's", table("model_seconds")),
        (
            "Rows that the network evaluated (for r-RHALE one forward and one backward pass)",
            table("model_rows").astype(int),
        ),
        ("Nodes of the tree", table("n_nodes").astype(int)),
    ]


def findings(results: xr.Dataset) -> list[str]:
    """Does it hold."""
    deep, large = _series(results)
    layers, seconds = deep["n_layers"].values, deep["seconds"].values
    growth = np.polyfit(layers, seconds, 1)[0]
    last, deepest = large.isel(setting=-1), deep.isel(setting=-1)
    ours, ale, pdp = (float(last["seconds"].sel(kind=method)) for method in METHODS)
    network = last["model_seconds"].values
    own = last["seconds"].values - network
    slow = deepest["model_seconds"].values
    rows = last["model_rows"].values / float(last["n_rows"])
    # One pass of r-RHALE is for all features.
    all_of_them = np.array([1, *[int(deepest["n_columns"])] * 2])
    n, d = int(last["n_rows"]), int(last["n_columns"])

    def each(values: NDArray[Any], form: str = ".3g") -> str:
        named = zip(METHODS[-len(values) :], values, strict=True)
        return ", ".join(f"{method} {value:{form}}" for method, value in named)

    return [
        f"{'PyTorch' if float(results['is_torch'].max()) else 'NumPy'} on one of "
        f"{int(results['cores'].max())} processors, networks of {WIDTH} units a layer. They are "
        "not trained: training does not change their time. One feature; splits may use all "
        "others; trees of depth 2.",
        f"{holds(growth[2] > 2 * growth[0])}: that the time of r-RHALE grows much more slowly "
        f"with the layers than that of r-PDP, by a factor of {growth[2] / growth[0]:.2g}; "
        f"{holds(growth[1] > 2 * growth[0]).lower()}: than that of r-ALE, by a factor of "
        f"{growth[1] / growth[0]:.2g}. From {layers[0]:.0f} to {layers[-1]:.0f} layers each layer "
        f"adds {each(1000 * growth)} ms.",
        f"{holds(ale > 2 * ours)}: that r-RHALE is more than twice as fast as r-ALE at N = {n}: "
        f"r-ALE takes {ale:.2g} s, {ale / ours:.2g} times the {ours:.2g} s of r-RHALE. r-ALE also "
        "calls the network once, before the search, and its bins are given, while r-RHALE chooses "
        "them for every candidate.",
        f"{holds(pdp > 10 * ours)}: that r-RHALE is ten times as fast as r-PDP at N = {n}: r-PDP "
        f"takes {pdp:.2g} s, {pdp / ours:.2g} times as long.",
        f"Of these times the network takes {each(network)} s, and the rest {each(own)} s. The "
        f"slower the network, the more its time dominates: with {layers[-1]:.0f} layers it is "
        f"{slow[1] / slow[0]:.2g} times that of r-RHALE for r-ALE, and {slow[2] / slow[0]:.2g} "
        "times for r-PDP.",
        f"Rows that the network evaluates for one row of data: {each(rows)}, whatever the "
        "number of candidate splits; for r-RHALE in one forward and one backward pass, which give "
        f"the local effects of all {d} features. r-ALE and r-PDP call the network again for every "
        f"feature, in all for {each(rows[1:] * d, '.4g')} rows. With {layers[-1]:.0f} layers all "
        f"{int(deepest['n_columns'])} features take {each(slow * all_of_them)} s of the network.",
    ]


def figure(results: xr.Dataset) -> Figure:
    """Figures 3 and 4, and the ratios."""
    fig, axes = tools.panels(1, 3)
    deep, large = _series(results)
    for method in METHODS:
        style = {"marker": "o", "markersize": 3, "color": COLOURS[method], "label": method}
        axes[0, 0].plot(deep["n_layers"], deep["seconds"].sel(kind=method), **style)
        axes[0, 1].plot(large["n_rows"], large["seconds"].sel(kind=method), **style)
        if method != METHODS[0]:
            for one, line in ((deep, "-"), (large, "--")):
                ratio = one["seconds"].sel(kind=method) / one["seconds"].sel(kind=METHODS[0])
                places = np.linspace(0, 1, one.sizes["setting"])
                axes[0, 2].plot(places, ratio, **style | {"label": None}, linestyle=line)
    axes[0, 0].set(title=_about(deep, "n_rows"), xlabel="layers", ylabel="seconds", ylim=(0, None))
    axes[0, 1].set(title=_about(large, "n_layers"), xlabel="rows", ylabel="seconds",
                   xscale="log", yscale="log")  # fmt: skip
    axes[0, 2].axhline(1, color=tools.RHALE_COLOUR, linewidth=1)
    axes[0, 2].set(title="times as long as r-RHALE", xlabel="from the first to the last setting",
                   xticks=[], yscale="log")  # fmt: skip
    axes[0, 0].legend(frameon=False, fontsize="x-small")
    ticks = (0.125, 0.25, 0.5, 1, 2, 4, 8)
    axes[0, 2].set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes[0, 2].set_yticks([], minor=True)
    for one, x, line in ((deep, "n_layers", "-"), (large, "n_rows", "--")):
        ends = f"{one[x].values[0]:.0f} to {one[x].values[-1]:.0f} {x[2:]}"
        axes[0, 2].plot([], [], color=tools.TRUTH_COLOUR, linestyle=line, label=ends)
    axes[0, 2].legend(frameon=False, fontsize="x-small", loc="lower right")
    return fig


def _about(one: xr.Dataset, name: str) -> str:
    sign = {"n_rows": "N", "n_layers": "L"}[name]
    return f"{sign} = {one[name].values[0]:.0f}, D = {one['n_columns'].values[0]:.0f}"
