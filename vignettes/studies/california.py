"""California Housing: RHALE on a neural network (RHALE, section 5, Figures 9 and 10)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from rhale_stats.arrays.moments import FloatArray
from rhale_stats.bins.rule import BinRule
from rhale_stats.bins.rules import EqualWidthBins, OptimalBins
from rhale_stats.generics.values import predict
from rhale_stats.local.local_effects import local_effects
from rhale_stats.schema.in_bins import in_bins
from studies import tools
from studies.report import mean_table
from studies.runner import Options, Output, Scenario, Study
from studies.tools import holds

FEATURES = (
    "longitude",
    "latitude",
    "housing_median_age",
    "total_rooms",
    "total_bedrooms",
    "population",
    "households",
    "median_income",
)
# The two of the paper's figures.
SHOWN = ("latitude", "median_income")
OUTCOME = "median_house_value"
# The outlier rule, the split, the network and its training: the paper's, appendix B.2.
LARGEST_Z, TRAINING_SHARE = 3.0, 0.8
LAYERS, RATE, EPOCHS, BATCH = (256, 128, 36), 0.02, 15, 512
TRUE_BINS, SAMPLE = 80, 1000
RHALE = "RHALE"
N_BINS = (*range(1, 21), *range(25, 81, 5))
QUICK_BINS = (1, 2, 5, 10, 20, 40)
COMPARED = ("L_mu", "L_sigma", "ISE_mu", "ISE_sigma")
GRID = 61
SEED = 0


class Network(NamedTuple):
    """A network of rectified linear units, as weights and biases, and which library fitted it."""

    weights: list[FloatArray]
    biases: list[FloatArray]
    library: str

    def predict(self, x: FloatArray) -> FloatArray:
        """Output of every row."""
        return self._forward(x)[-1][:, 0]

    def jacobian(self, x: FloatArray) -> FloatArray:
        """Derivatives of the output with respect to every column, by the chain rule."""
        layers = self._forward(x)
        out = np.broadcast_to(self.weights[-1][:, 0], (len(x), len(self.weights[-1])))
        for weight, layer in zip(self.weights[-2::-1], layers[-2::-1], strict=True):
            out = (out * (layer > 0)) @ weight.T
        return np.asarray(out)

    def _forward(self, x: FloatArray) -> list[FloatArray]:
        layers, at = [], x
        for number, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            at = at @ weight + bias
            if number < len(self.weights) - 1:
                at = np.maximum(at, 0.0)
            layers.append(at)
        return layers


def study(options: Options) -> Study:
    """The study for these options; ``data`` is the CSV file of the 20,640 blocks."""
    return Study(
        name="california",
        title="California Housing",
        source="RHALE, section 5, Figures 9 and 10",
        claim="The effect of latitude on the price is negative and that of median income positive "
        "for almost all instances, although both are heterogeneous. With 1000 rows, RHALE is close "
        "to the best number of equal-width bins, better than (almost) any.",
        scenarios=tuple(
            Scenario(name, {"feature": name}) for name in (SHOWN if options.quick else FEATURES)
        ),
        coords={
            "rule": [RHALE, *tools.fixed_rules(_n_bins(options))],
            "grid": np.linspace(0, 1, GRID).tolist(),
        },
        outputs={
            **tools.SCORES,
            "test_mae": Output((), "mean absolute error of the network on test rows", "dollars"),
            "n_training": Output((), "training rows", "rows"),
            "is_torch": Output((), "1 if PyTorch fitted the network, 0 if scikit-learn"),
            "share_positive": Output((), "share of positive local effects, all training rows"),
            "position": Output(("grid",), "value of the feature", "standard deviations"),
            "curve": Output(("grid",), "curve of all training rows", "standard deviations"),
            "spread": Output(("grid",), "its heterogeneity", "standard deviations"),
        },
        replicate=replicate,
        n_replicates=2 if options.quick else 30,
        tables=tables,
        findings=findings,
        figure=figure,
        rows={
            "RHALE against": "scenario in ('latitude', 'median_income')",
            **dict.fromkeys(FEATURES, ""),
        },
        prepare=prepare,
        takes=("data",),
    )


def _n_bins(options: Options) -> tuple[int, ...]:
    return QUICK_BINS if options.quick else N_BINS


def prepare(options: Options) -> dict[str, Any]:
    """Read, clean, fit, differentiate; the truth of every feature."""
    table, dollars = cleaned(read(options.data))
    order = np.random.default_rng(SEED).permutation(len(table))
    n_training = round(TRAINING_SHARE * len(table))
    training, test = table.iloc[order[:n_training]], table.iloc[order[n_training:]]
    x, y = training[list(FEATURES)].to_numpy(), training[OUTCOME].to_numpy()
    network = fit(x, y)
    error = network.predict(test[list(FEATURES)].to_numpy()) - test[OUTCOME].to_numpy()
    local = local_effects(
        None, training[list(FEATURES)], jacobian=network.jacobian(x), features=list(FEATURES)
    )
    rules: dict[str, BinRule] = {RHALE: OptimalBins(), **tools.fixed_rules(_n_bins(options))}
    facts = {
        "test_mae": float(np.mean(np.abs(error)) * dollars),
        "n_training": float(n_training),
        "is_torch": float(network.library == "torch"),
    }
    return {"local": local, "truth": truth_of(local), "rules": rules, "facts": facts}


def read(path: Path | None) -> pd.DataFrame:
    """The blocks: from a CSV file, or else scikit-learn's copy, which it downloads."""
    if path is not None:
        table = pd.read_csv(path)
        missing = [name for name in (*FEATURES, OUTCOME) if name not in table.columns]
        if missing:
            raise ValueError(
                f"data must have the columns {', '.join((*FEATURES, OUTCOME))}; {path} has no "
                f"{', '.join(missing)}."
            )
        return table[[*FEATURES, OUTCOME]]
    return fetched()


def fetched() -> pd.DataFrame:
    """scikit-learn's copy: averages a household in place of totals, no missing values."""
    try:
        from sklearn.datasets import fetch_california_housing
    except ImportError as error:
        raise ValueError(
            "data must be a CSV file where scikit-learn, which fetches it otherwise, is missing: "
            "pass --data FILE, or pip install scikit-learn."
        ) from error
    frame = fetch_california_housing(as_frame=True).frame
    households = frame["Population"] / frame["AveOccup"]
    return pd.DataFrame(
        {
            "longitude": frame["Longitude"],
            "latitude": frame["Latitude"],
            "housing_median_age": frame["HouseAge"],
            "total_rooms": frame["AveRooms"] * households,
            "total_bedrooms": frame["AveBedrms"] * households,
            "population": frame["Population"],
            "households": households,
            "median_income": frame["MedInc"],
            OUTCOME: frame["MedHouseVal"] * 1e5,
        }
    )


def cleaned(table: pd.DataFrame) -> tuple[pd.DataFrame, float]:
    """Complete rows without outliers, standardised; and dollars in a standard deviation."""
    table = table.dropna()
    z = (table - table.mean()) / table.std()
    table = table[(z.abs() <= LARGEST_Z).all(axis=1)]
    return (table - table.mean()) / table.std(), float(table[OUTCOME].std())


def fit(x: FloatArray, y: FloatArray) -> Network:
    """The paper's network: PyTorch's where it is installed, else scikit-learn's."""
    if find_spec("torch") is not None:
        return _fit_torch(x, y)
    if find_spec("sklearn") is not None:
        return _fit_sklearn(x, y)
    raise ValueError(
        "The study needs PyTorch or scikit-learn to fit its network: pip install scikit-learn."
    )


def _fit_torch(x: FloatArray, y: FloatArray) -> Network:
    import torch

    sizes = [x.shape[1], *LAYERS, 1]
    with torch.random.fork_rng():
        torch.manual_seed(SEED)
        parts: list[Any] = []
        for n_in, n_out in pairwise(sizes):
            parts += [torch.nn.Linear(n_in, n_out), torch.nn.ReLU()]
        model = torch.nn.Sequential(*parts[:-1])
        optimiser = torch.optim.Adam(model.parameters(), lr=RATE)
        inputs, target = (torch.tensor(a, dtype=torch.float32) for a in (x, y[:, None]))
        for _ in range(EPOCHS):
            for rows in torch.randperm(len(x)).split(BATCH):
                optimiser.zero_grad()
                torch.nn.functional.mse_loss(model(inputs[rows]), target[rows]).backward()
                optimiser.step()
    layers = [part for part in model if isinstance(part, torch.nn.Linear)]
    return Network(
        [layer.weight.detach().numpy().T.astype(np.float64) for layer in layers],
        [layer.bias.detach().numpy().astype(np.float64) for layer in layers],
        "torch",
    )


def _fit_sklearn(x: FloatArray, y: FloatArray) -> Network:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPRegressor

    model = MLPRegressor(
        hidden_layer_sizes=LAYERS,
        learning_rate_init=RATE,
        max_iter=EPOCHS,
        batch_size=min(BATCH, len(x)),
        random_state=SEED,
    )
    with warnings.catch_warnings():
        # Fifteen epochs are what the paper has.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(x, y)
    return Network(list(model.coefs_), list(model.intercepts_), "scikit-learn")


def truth_of(local: xr.Dataset) -> xr.Dataset:
    """The paper's truth: 80 equal-width bins on all training rows.

    Cells with one row or none have no estimate, and are interpolated along the axis.
    """
    truth = tools.quiet_rhale(local, EqualWidthBins(TRUE_BINS), centering="start", has_spread=False)
    cell = np.arange(TRUE_BINS)
    for name in ("effect", "heterogeneity"):
        rows = [
            np.interp(cell, cell[np.isfinite(r)], r[np.isfinite(r)]) for r in truth[name].values
        ]
        truth[name] = truth[name].copy(data=np.array(rows))
    return truth


def replicate(
    parameters: Mapping[str, Any], rng: np.random.Generator, context: Mapping[str, Any]
) -> dict[str, Any]:
    """1000 of the training rows, every rule on them."""
    feature = parameters["feature"]
    local = context["local"].sel(feature=[feature])
    truth = context["truth"].sel(feature=[feature])
    n = min(SAMPLE, local.sizes["obs"] // 2)
    chosen = np.sort(rng.choice(local.sizes["obs"], n, replace=False))
    scores = tools.scored_rules(local.isel(obs=chosen), lambda _effect: truth, context["rules"])
    full = tools.quiet_rhale(local, OptimalBins(), has_spread=False)
    of_bins = in_bins(full)
    edges = of_bins["edge_value"].values[0]
    at = np.linspace(edges[0], edges[-1], GRID)
    return {
        **scores,
        **context["facts"],
        "share_positive": float((local["local_effect"] > 0).mean()),
        "position": at,
        "curve": predict(full, at, feature).values,
        "spread": np.interp(at, edges, of_bins["curve_std_sum"].values[0]),
    }


def tables(results: xr.Dataset) -> list[tuple[str, pd.DataFrame]]:
    """Both kinds of metric, a table a feature; the model."""
    out = [
        (
            "RHALE against the best number of equal-width bins",
            tools.against_fixed(results, COMPARED),
        )
    ]
    for k, name in enumerate(results["scenario"].values):
        table = mean_table(results.isel(scenario=[k]), list(tools.SCORES), ["rule"])
        out.append((str(name), table.drop(columns="scenario")))
    facts = results[["test_mae", "n_training", "is_torch", "share_positive"]].isel(replicate=0)
    model = facts.to_dataframe()[list(facts.data_vars)]
    return [("The network, and the sign of its local effects", model), *out]


def findings(results: xr.Dataset) -> list[str]:
    """Does it hold."""
    one = results.isel(replicate=0)
    latitude, income = (float(one["share_positive"].sel(scenario=name)) for name in SHOWN)
    library = "PyTorch" if float(one["is_torch"].max()) else "scikit-learn"
    table = tools.against_fixed(results, COMPARED)
    words = []
    for name in results["scenario"].values:
        lines = table[table["scenario"] == name].set_index("score")
        words.append(
            f"{name}: "
            + ", ".join(
                f"{line['better']} of {line['compared']} in {score}"
                for score, line in lines.iterrows()
            )
        )
    theirs = table[table["scenario"].isin(SHOWN) & table["score"].isin(["L_mu", "L_sigma"])]
    # "(almost) any": all but a tenth.
    almost = (theirs["better"] <= theirs["compared"] / 10).all()
    return [
        f"{int(one['n_training'].max())} training rows; the network ({library}) has a mean "
        f"absolute test error of {float(one['test_mae'].max()):.0f} dollars (paper: 37,000).",
        f"{holds(latitude < 0.1 and income > 0.9)}: of the local effects of latitude "
        f"{1 - latitude:.1%} are negative, of those of median income {income:.1%} positive.",
        f"{holds(almost)}: that RHALE on 1000 rows is better than (almost) any number of bins, for "
        "the two features of the figures, in L_mu and L_sigma. Numbers of bins that are better "
        "than "
        "RHALE, of those with two rows or more in every bin of every run: "
        + "; ".join(words)
        + ".",
        "The truth is the estimate with 80 bins on all training rows, as in the paper: its noise "
        "affects all rules equally, but its bins are too wide to show the detail that narrower "
        "bins resolve.",
    ]


def figure(results: xr.Dataset) -> Figure:
    """Figure 9 on the left, Figure 10 beside it."""
    shown = [name for name in SHOWN if name in results["scenario"].values]
    fig, axes = tools.panels(len(shown), 1 + len(COMPARED))
    for row, name in zip(axes, shown, strict=True):
        one = results.sel(scenario=name)
        at, curve, spread = (
            one[what].isel(replicate=0).values for what in ("position", "curve", "spread")
        )
        row[0].fill_between(at, curve - spread, curve + spread, color="#c3ddec", linewidth=0)
        row[0].plot(at, curve, color="black", linewidth=1.2)
        row[0].set(xlabel=name, ylabel="effect on the price")
        for ax, score in zip(row[1:], COMPARED, strict=True):
            tools.draw_against_fixed(ax, one[score], "x")
    return fig
