"""Local effects of models of every library, given tables of every library."""

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

from rhale_stats.arrays.moments import FloatArray
from rhale_stats.local.local_effects import local_effects
from rhale_stats.models.outputs import ModelError
from studies.model_tables_kinds import KINDS, LEVELS, NUMBERS, Answer, Data, Kind
from studies.runner import Options, Output, Scenario, Study
from studies.tools import RHALE_COLOUR, holds, panels
from studies.validity_table import markdown

# The root mean square of the deviations from the reference, over that of the reference, that
# differences in double and in single precision may have.
AGREES, AGREES_SINGLE = 1e-5, 2e-3
# Step of the differences of the reference, in standard deviations: of order four, so that neither
# truncation nor rounding is above 1e-9.
STEP = 2e-3
# What may come of a model and a table.
SAME, DIFFERS, REFUSED, RAISED, LEFT_OUT = range(5)
METHODS = ("gradient", "central_difference", "finite_difference")
LETTERS = ("g", "d", "c")


class Form(NamedTuple):
    """How a table is made of one of pandas, by which library, and what becomes of its columns."""

    make: Callable[[pd.DataFrame], Any]
    library: str = "pandas"
    named: bool = True
    reordered: bool = False


def _structured(X: pd.DataFrame) -> Any:
    texts = X.select_dtypes(exclude="number").columns
    X = X.astype(dict.fromkeys(texts, str))
    widths = {name: f"U{X[name].str.len().max()}" for name in texts}
    return X.to_records(index=False, column_dtypes=widths).view(np.ndarray)


def _polars(X: pd.DataFrame) -> Any:
    return import_module("polars").from_pandas(X)


def _arrow(X: pd.DataFrame) -> Any:
    return import_module("pyarrow").Table.from_pandas(X, preserve_index=False)


TABLES: dict[str, Form] = {
    "pandas": Form(lambda X: X),
    "pandas, nullable": Form(lambda X: X.convert_dtypes()),
    "pandas, Arrow types": Form(lambda X: X.convert_dtypes(dtype_backend="pyarrow"), "pyarrow"),
    "pandas, other order": Form(lambda X: X[X.columns[::-1]], reordered=True),
    "NumPy": Form(lambda X: X.to_numpy(), "numpy", named=False),
    "polars": Form(_polars, "polars"),
    "Arrow": Form(_arrow, "pyarrow"),
    "dict": Form(lambda X: {name: X[name].to_numpy() for name in X.columns}),
    "xarray": Form(lambda X: xr.Dataset.from_dataframe(X), "xarray"),
    "structured array": Form(_structured, "numpy"),
}
QUICK = ("function", "PoissonRegressor, scaled", "random forest", "OLS, formula")


def study(options: Options) -> Study:
    """The study for these options."""
    chosen = QUICK if options.quick else tuple(KINDS)
    return Study(
        name="model-tables",
        title="Which models and tables are taken",
        source="acceptance of this package",
        claim="For every model and table, the local effects are those of differences of the "
        "model's own predictions, or an error says what does not fit.",
        scenarios=tuple(
            Scenario(name, {"model": name}) for name in chosen if _is_there(KINDS[name].library)
        ),
        coords={"table": [name for name, form in TABLES.items() if _is_there(form.library)]},
        outputs={
            "outcome": Output(("table",), "0 same, 1 differs, 2 refused, 3 raised, 4 left out"),
            "deviation": Output(("table",), "root mean square deviation, relative"),
            "method": Output(("table",), "0 gradient, 1 differences, 2 slopes across cells"),
        },
        replicate=replicate,
        n_replicates=1,
        tables=tables,
        findings=findings,
        figure=figure,
        page=page,
    )


def _is_there(library: str) -> bool:
    return find_spec(library) is not None


def replicate(
    parameters: Mapping[str, Any], rng: np.random.Generator, _context: Any
) -> dict[str, Any]:
    """One model with every table."""
    kind = KINDS[parameters["model"]]
    data = Data.drawn(rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what libraries say of their own fits
        model, answer = kind.fit(data)
        X = data.numbers
        if kind.levels:
            X = data.mixed.astype({LEVELS: kind.levels})
        found = [
            cell(kind, model, answer, X, form)
            for form in TABLES.values()
            if _is_there(form.library)
        ]
    names = ("outcome", "deviation", "method")
    return {name: [one[k] for one in found] for k, name in enumerate(names)}


def cell(
    kind: Kind, model: Any, answer: Answer, X: pd.DataFrame, form: Form
) -> tuple[float, float, float]:
    """What came, by how much local effects deviate, and how they were taken."""
    if (not form.named and kind.levels) or (form.reordered and kind.numbered):
        # An array has no text beside numbers; where no names are known, the order counts.
        return LEFT_OUT, np.nan, np.nan
    features: list[Any] = ["width", "age"]
    if not form.named:
        features = [NUMBERS.index(name) for name in features]
    try:
        local = local_effects(model, form.make(X), features=features, progress=False)
    except ModelError:
        return RAISED, np.nan, np.nan
    except (TypeError, ValueError, KeyError):
        return REFUSED, np.nan, np.nan
    off = max(
        deviation(local.isel(feature=[k]), answer, X, name)
        for k, name in enumerate(("width", "age"))
    )
    taken = max(METHODS.index(str(one)) for one in local["local_effect_method"].values)
    most = AGREES_SINGLE if kind.single else AGREES
    return (SAME if off <= most else DIFFERS), off, taken


def deviation(local: xr.Dataset, answer: Answer, X: pd.DataFrame, name: str) -> float:
    """Of local effects of one feature from differences of the model's own predictions."""
    ours = local["local_effect"].isel(feature=0).transpose("obs", ...).values
    x = X[name].to_numpy()

    def at(values: FloatArray) -> FloatArray:
        found = np.asarray(answer(X.assign(**{name: values})), dtype=np.float64)
        return found if ours.ndim == 2 else found.reshape(len(X), -1)[:, -1]

    if str(local["local_effect_method"].values[0]) == "finite_difference":
        edges = local["cell_value"].values[0]
        edges = edges[np.isfinite(edges)]
        k = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, len(edges) - 2)
        change, width = at(edges[k + 1]) - at(edges[k]), edges[k + 1] - edges[k]
        reference = (change.T / width).T
    else:
        # Beyond their outermost knots splines have no value.
        inner = (x - 2 * STEP * x.std() >= x.min()) & (x + 2 * STEP * x.std() <= x.max())
        h = STEP * x.std() * inner
        near, far = at(x + h) - at(x - h), at(x + 2 * h) - at(x - 2 * h)
        ours, reference = ours[inner], (8 * near - far)[inner] / (12 * STEP * x.std())
    return float(np.sqrt(np.mean((ours - reference) ** 2) / np.mean(reference**2)))


# --- what is shown -------------------------------------------------------------------------------


def shown(results: xr.Dataset) -> pd.DataFrame:
    """A line a model, a column a table."""
    words = {REFUSED: "refused", RAISED: "the model raises", LEFT_OUT: ""}
    lines = []
    for scenario in results["scenario"].values:
        line = {"model": str(scenario)}
        for table in results["table"].values:
            one = results.sel(scenario=scenario, table=table)
            worst = int(one["outcome"].max())
            if worst in words:
                line[str(table)] = words[worst]
                continue
            off = float(one["deviation"].max())
            said = f"{f'{off:.0e}' if off else '0'} {LETTERS[int(one['method'].max())]}"
            line[str(table)] = f"**{said}**" if worst == DIFFERS else said
        lines.append(line)
    return pd.DataFrame(lines)


def by_model(results: xr.Dataset) -> pd.DataFrame:
    """A line a model: its largest deviation, how effects are taken, and which tables are not."""
    cells, lines = shown(results).set_index("model"), []
    for scenario, line in cells.iterrows():
        taken = results.sel(scenario=scenario).where(
            lambda one: one["outcome"].isin([SAME, DIFFERS])
        )
        off = float(taken["deviation"].max())
        letters = (
            taken["method"]
            .max("replicate")
            .to_series()
            .dropna()
            .astype(int)
            .map(LETTERS.__getitem__)
        )
        common = letters.mode()[0]
        other = [f"{letter} ({table})" for table, letter in letters.items() if letter != common]
        worst = bool((results["outcome"].sel(scenario=scenario) == DIFFERS).any())
        said = f"{off:.0e}" if off else "0"
        missing = [
            f"{word}: {', '.join(line.index[line == word])}"
            for word in ("refused", "the model raises")
            if (line == word).any()
        ]
        lines.append(
            {
                "model": str(scenario),
                "deviation": f"**{said}**" if worst else said,
                "effects": ", ".join([common, *other]),
                "not taken": "; ".join(missing),
            }
        )
    return pd.DataFrame(lines)


def tables(results: xr.Dataset) -> list[tuple[str, pd.DataFrame]]:
    """The matrix."""
    return [("Relative deviation of local effects, by model and table", shown(results))]


def findings(results: xr.Dataset) -> list[str]:
    """Does it hold."""
    outcome = results["outcome"]
    count = {code: int((outcome == code).sum()) for code in (SAME, DIFFERS, REFUSED, RAISED)}
    exact = int((results["method"].isel(table=0) == METHODS.index("gradient")).sum())
    return [
        f"{holds(count[DIFFERS] == 0)}: of {sum(count.values())} pairs of a model and a table, "
        f"{count[SAME]} have the local effects of the model's own predictions, and "
        f"{count[DIFFERS]} have other numbers{_where(results, DIFFERS)}.",
        f"{count[REFUSED]} pairs are refused. In {count[RAISED]} the model raises an error, which "
        f"is passed on.",
        f"{exact} of {results.sizes['scenario']} models have an exact gradient.",
    ]


def _where(results: xr.Dataset, code: int) -> str:
    """The pairs with an outcome, named."""
    said = [
        f"{scenario} with {table}"
        for scenario in results["scenario"].values
        for table in results["table"].values
        if (results["outcome"].sel(scenario=scenario, table=table) == code).any()
    ]
    return f" ({'; '.join(said)})" if said else ""


def figure(results: xr.Dataset) -> Figure:
    """Deviations, a point a model and table."""
    fig, axes = panels(1, 1)
    ax = axes[0, 0]
    for number, name in enumerate(("exact gradient", "differences", "slopes across cells")):
        own = results["deviation"].where(results["method"] == number).values.ravel()
        own = np.maximum(own[np.isfinite(own)], 1e-17)
        ax.scatter(own, np.full(len(own), name), s=8, color=RHALE_COLOUR, alpha=0.5)
    ax.set(xscale="log", xlabel="relative deviation (0 at the left end)")
    return fig


INTRODUCTION = """This page says which models can be passed as `model`, and which tables as `X`.
A small model of each kind was fitted, `local_effects` was called with ten kinds of tables (pandas,
also nullable, with Arrow types and in another order; NumPy, polars, Arrow, a dict, xarray, a
structured array), and its numbers were compared with differences of the predictions that the
library itself makes.

*Deviation* is relative: the root mean square of the difference over that of the reference, the
largest over two features and all tables. Models in double precision must stay below {double:g},
those in single precision below {single:g}; a number in **bold** does not. Slopes across cells ask
the model at the same points as the reference, so that 0 is expected of them.

*Effects* are taken: g by the exact gradient of the model, d by central
differences, c as slopes across cells, because the output jumps. Of two features the one further
down this list is named.

*Not taken.* Refused is a table that the package itself does not take with this model. *The model
raises* is an error of the model's own library with this table; the package passes it on as a
`ModelError`. A NumPy array has no column of text beside numbers, and functions of arrays and models
that were fitted without names know their columns by the order alone: these are no cases.

`rs.adapters()` lists the libraries. [Models and tables](tables-and-models.md) has examples.
"""


def page(results: xr.Dataset) -> str:
    """A line a model, for readers."""
    said = INTRODUCTION.strip().format(double=AGREES, single=AGREES_SINGLE)
    sentences = "\n".join(f"- {sentence}" for sentence in findings(results))
    return "\n\n".join([said, markdown(by_model(results)), "## What came out", sentences])
