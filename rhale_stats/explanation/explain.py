"""`explain`: the answer first, and the tree that it returns."""

from __future__ import annotations

import ast
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from functools import partial
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike

from rhale_stats.answers.printed import Text, printed, summary, tidy
from rhale_stats.answers.sentences import answers_in, outputs_in
from rhale_stats.arguments.progress import progress_bar
from rhale_stats.arguments.seeds import NO_SEED, number_of, source_of
from rhale_stats.arrays.answers import SHARES, Changes, changes_of_rows, round_step
from rhale_stats.arrays.binning import bin_index
from rhale_stats.explanation.curves import (
    FeatureCurves,
    Splits,
    curves_of,
    row_spread,
    splits_of,
    with_reliable,
)
from rhale_stats.explanation.described import described
from rhale_stats.explanation.facts import FactInputs, answers_of, sizes_of
from rhale_stats.explanation.outcome import examine, facts_in_data, observed_of, outcome_of
from rhale_stats.explanation.request import (
    Budget,
    ExplainOptions,
    ExplainRequest,
    SeveralOutputsError,
    request_of,
    seconds_of,
)
from rhale_stats.models.options import ModelOptions
from rhale_stats.models.outputs import Model
from rhale_stats.outcome.cross_fitting import name_of_outcome
from rhale_stats.parallel import one_blas_thread
from rhale_stats.schema.dimensions import OUTPUT
from rhale_stats.schema.features import feature_position
from rhale_stats.schema.padding import padded, stack
from rhale_stats.schema.validation import validated
from rhale_stats.schema.variables import dataset_of, software


class Explanation(xr.DataTree):  # type: ignore[no-untyped-call]
    """What `explain` returns: an `xarray.DataTree` that prints the answer before its contents.

    Its groups are listed in docs/datasets.md, section "Explanation". ``to_netcdf`` saves it, and
    `xarray.open_datatree` reads the same groups as a plain tree, which `summary`, `tidy` and
    `report` take as well.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> explanation = rs.explain(lambda X: 3 * X[:, 0], X, progress=False)
    >>> explanation.answers["matters"].to_series().to_dict()
    {'x0': 'yes', 'x1': 'hardly'}
    >>> sorted(explanation.contents.children)
    ['answers', 'check', 'effect', 'interactions', 'rows', 'spread']
    """

    __slots__ = ()

    @property
    def answers(self) -> xr.Dataset:
        """The facts, one value a feature, the feature that moves the predictions most first."""
        return answers_in(self)

    @property
    def contents(self) -> xr.DataTree:
        """The same as a plain tree, which prints as xarray does: dimensions and variables."""
        return xr.DataTree.from_dict({node.path: node.to_dataset() for node in self.subtree})

    def summary(self, feature: str | int | None = None) -> Text:
        """What it prints, or all sentences about one feature, as `rhale_stats.summary`."""
        return summary(self, feature, float(self.attrs["level"]))

    def tidy(self) -> pd.DataFrame:
        """The facts as a table, a line a feature, as `rhale_stats.tidy`."""
        return tidy(self, float(self.attrs["level"]))

    def plot(self, feature: str | int | None = None, **options: Any) -> Any:
        """The picture of one feature, as `plots.effect`; of all without one, as `plots.summary`."""
        # Only now: pictures load matplotlib.
        from rhale_stats.drawing.effects import plot_effect, plot_outputs
        from rhale_stats.drawing.estimates import plot_summary

        if feature is None:
            return plot_summary(self, **options)
        draw = plot_outputs if outputs_in(self) else plot_effect
        return draw(self["effect"].to_dataset(), feature, **options)

    def report(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write it as one HTML file, as `rhale_stats.report`."""
        from rhale_stats.reporting.report import report

        return report(self, path, **options)

    def __repr__(self) -> str:  # type: ignore[override]
        """The answer; of a group below it what xarray prints."""
        if self.attrs.get("method") != "explain":
            return super().__repr__()
        return printed(self)

    __str__ = __repr__

    def _repr_html_(self) -> str:
        """For notebooks: the answer with a picture and a table."""
        from rhale_stats.reporting.report import notebook_html

        if self.attrs.get("method") != "explain":
            return str(super()._repr_html_())  # type: ignore[no-untyped-call]
        if several := outputs_in(self):
            return "".join(
                f"<h3>{escape(label)}</h3>{notebook_html(part, printed(part))}"
                for label, part in several.items()
            )
        return notebook_html(self, printed(self))


def of_outputs(parts: Mapping[str, Explanation]) -> Explanation:
    """Explanations of several outputs as one, each in the group of its label."""
    first = next(iter(parts.values()))
    effects = [part["effect"].to_dataset() for part in parts.values()]
    effect = stack(effects, OUTPUT).assign_coords({OUTPUT: (OUTPUT, list(parts))})
    tree = Explanation.from_dict({"/effect": effect})
    for label, part in parts.items():
        name = label.replace("/", " ").strip() or "output"
        while name in tree.children:
            name = f"output {name}"
        tree[name] = part
    names = ("matters", "level", "percentiles", "seed", "model", "n_rows", "software", "created")
    tree.attrs = {"method": "explain", "outputs": "\n".join(parts)}
    tree.attrs |= {name: first.attrs[name] for name in names if name in first.attrs}
    tree.attrs["seconds"] = round(sum(float(part.attrs["seconds"]) for part in parts.values()), 2)
    return tree


# Features, of those whose rows differ, in which splits are looked for: those that move most.
MAX_TESTED = 12
STEPS = ("predictions", "average curves", "single rows", "splits", "outcomes", "refits", "facts")
VERSIONS = ("numpy", "scipy", "pandas", "xarray")


@validated
def explain(
    model: Model,
    X: Any,
    y: ArrayLike | None = None,
    *,
    features: str | int | Sequence[str | int] | None = None,
    categorical: str | int | Sequence[str | int] | None = None,
    groups: ArrayLike | None = None,
    level: float = 0.95,
    rng: np.random.Generator | int | None = None,
    settings: ExplainOptions = ExplainOptions(),
    options: ModelOptions = ModelOptions(),
    progress: bool = True,
    **fields: Any,
) -> Explanation:
    """What a model's output does as each feature moves, for whom, and how surely: in one call.

    Effects of all features with intervals and bands, the spread between the curves of single rows,
    splits of the rows by which effects differ, checks, and with ``y`` the fit along every feature.
    The result prints the answer first: features in the order of how much they move the output.

    Parameters
    ----------
    model, X
        As in `ale`. Of several outputs, as the classes of a classifier, each is explained;
        ``output=`` chooses some or one.
    y : array_like of shape (n_rows,), optional
        Observed outcomes of the rows, numbers or classes; a Series goes by the index of ``X``.
        Adds the performance of the model, observed and predicted averages along every feature, and
        permutation importance. A numeric output without a name gets that of a Series. Not with
        another ``scale`` than "response".
    features : name, number, or sequence of them, optional
        By default all columns that the model uses, but constants and identifiers.
    categorical : name, number, or sequence of them, optional
        Columns of numbers whose values are levels; besides those with at most 12 values, which are.
    groups : array_like of shape (n_rows,), optional
        Groups of rows that depend on each other: intervals and tests are by group.
    level : float, default 0.95
        Of intervals and bands.
    rng : Generator, int or None, default None
        Source of random numbers, or its seed, which the attribute ``seed`` keeps. None draws anew.
    settings : ExplainOptions, optional
        What is called to matter (``matters=0.05``, a share of the standard deviation of the
        outcome, or of the predictions without ``y``), whether to examine which effects are in the
        data (``outcome="auto"``), the time to keep to (``budget="60s"``), whether the rows were
        ``held_out`` from the fit, the ``percentiles`` between which curves count, and whether to
        keep the local effects. Its fields can be given directly.
    options : ModelOptions, optional
        Output and scale of the model, weights of the rows, missing values, and the size of batches.
        Its fields can be given directly, as in ``output="yes"``.
    %(progress)s

    Returns
    -------
    Explanation
        A tree whose groups are Datasets, listed in docs/datasets.md, section "Explanation":
        "answers" (the facts), "effect" (`ale` with errors, intervals and bands), "spread" (`ice`),
        "rows" (changes of single rows),
        "check" (`check_unbiased`), "interactions", "regions", with ``y`` "outcome", and where the
        model could be refitted "outcome_effect" (`outcome_effects`). Of several outputs there is
        such a tree in a group of the name of each, and "effect" has the effects on all of them.

    Raises
    ------
    ValueError
        ``matters``, ``budget`` or ``y`` cannot be used; ``y`` with several outputs that are no
        classes; no column that varies, or a feature without a value.
    KeyError, TypeError, ModelError
        As `ale`.

    Notes
    -----
    Features with an axis are explained by accumulated local effects in up to 40 bins of equal
    numbers of rows, at least 30 where there are so many; other features by the steps between their
    levels. The intervals refer to the sampling of the rows. With a model that `std_error` knows
    with the covariance of its parameters, such as results of statsmodels, those of curves and of
    differences between groups hold the parameters (math [80]); the spread between rows and the
    splits then have no interval and no P. Other models are taken as given:
    `bootstrap_refit` has their uncertainty. Features with an effect in the data come first, by the
    size of their change in the data. The order of the rest is that of ``movement``, the root of
    importance² + row_spread² (math [108]): a feature whose average curve is flat because rows
    differ in direction does not come last. ``row_spread`` asks the model also for combinations of
    values that do not occur, as ICE curves do. Splits are tested together at the level of 5 %
    (Bonferroni over the features tested); they are looked for in features whose rows differ, by the
    columns of the features, and not for levels without an order.

    References
    ----------
    Apley and Zhu (2020), Eq. 11, for the curves; Goldstein, Kapelner, Bleich and Pitkin (2015) for
    the curves of single rows; Gkolemis et al. (2023) for bias and heterogeneity; Herbinger, Bischl
    and Casalicchio (2022) for splits; Breiman (2001) for permutation importance.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (1000, 3))
    >>> def model(X):
    ...     return 2 * X[:, 0] + 4 * X[:, 1] * (X[:, 2] > 0)
    >>> found = rs.explain(model, X, rng=0, progress=False)
    >>> rs.tidy(found)[["term", "matters", "rows_differ", "split_by"]]
      term      matters rows_differ split_by
    0   x1          yes         yes       x2
    1   x0          yes      hardly
    2   x2  cannot tell         yes       x1
    >>> print(rs.summary(found, "x1"))  # doctest: +ELLIPSIS
    x1 matters, and differently from row to row...
    """
    columns = features, categorical
    explain_one = partial(_of_one, model, X, y, columns, groups, level, progress=progress)
    try:
        return explain_one(rng, settings, options)
    except SeveralOutputsError as several:
        if y is not None and not hasattr(model, "classes_"):
            raise
        labels = several.labels
    budget = seconds_of(settings.budget)
    share = budget / len(labels) if np.isfinite(budget) else None
    # The same random numbers, so that all outputs are explained by the same rows.
    seed = number_of(rng)
    parts: dict[str, Explanation] = {}
    for label in labels:
        part = explain_one(seed, replace(settings, budget=share), replace(options, output=label))
        part.attrs["output_label"] = str(label)
        parts[str(label)] = part
    return of_outputs(parts)


def _of_one(
    model: Model,
    X: Any,
    y: ArrayLike | None,
    columns: tuple[Any, Any],
    groups: ArrayLike | None,
    level: float,
    rng: np.random.Generator | int | None,
    settings: ExplainOptions,
    options: ModelOptions,
    *,
    progress: bool,
) -> Explanation:
    """`explain` of one output."""
    clock = Budget(seconds_of(settings.budget))
    generator, seed = source_of(rng)
    streams = generator.spawn(6)
    with (
        warnings.catch_warnings(record=True) as caught,
        progress_bar(len(STEPS), "explain", "step", progress=progress) as bar,
    ):
        warnings.simplefilter("always")
        request = request_of(model, X, y, columns, groups, options, clock, streams[0])
        deviation = request.deviation
        if y is not None:
            # Refused here, not after the long work.
            observed, kind = observed_of(request)
            mean = request.share @ observed
            deviation = float(np.sqrt(request.share @ (observed - mean) ** 2))
        bar.update()
        delta = settings.matters * deviation
        curves = curves_of(request, level, int(streams[1].integers(2**53)))
        bar.update()
        rows = row_spread(request, level, clock, streams[2])
        curves = with_reliable(curves, rows.profile, delta)
        bar.update()
        inputs = FactInputs(request, curves, rows, delta, level, settings.percentiles)
        sizes = sizes_of(inputs)
        differ = [
            request.features[position]
            for position in np.argsort(-sizes.movement, kind="stable")
            if sizes.rows_differ[position] != "hardly"
        ][:MAX_TESTED]
        splits = splits_of(request, curves, differ, level, clock, streams[3])
        bar.update()
        outcome = None if y is None else outcome_of(request, level, clock, streams[4])
        bar.update()
        data = examine(request, settings.outcome, level, streams[5])
        bar.update()
        inputs = inputs._replace(splits=splits, outcome=outcome)
        in_data = facts_in_data(data, sizes.rows_differ, request, delta)
        with one_blas_thread:
            answers = answers_of(inputs, sizes, streams[1], in_data)
        changes = row_changes(curves)
        bar.update()
    answers.attrs |= {
        "n_rows": request.table.n_rows,
        "matters": float(settings.matters),
        "matters_of": "predictions" if y is None else "outcome",
        "level": float(level),
        "examined": data.examined,
    }
    if data.fits is not None and data.skill is not None:
        answers.attrs |= {"n_fits": data.fits.n_folds * len(data.fits.models), **data.skill}
    answers.attrs |= _units(request, y is not None and kind == "class")
    each: dict[str, xr.Dataset | None] = {
        "answers": answers,
        "effect": curves.effect,
        "spread": rows.profile,
        "rows": changes,
        "check": curves.check,
        "interactions": splits.matrix,
        "outcome": outcome,
        "outcome_effect": data.effect,
        "local": curves.local if settings.keep_local else None,
        **_regions(splits),
    }
    groups_of = {name: group for name, group in each.items() if group is not None}
    # An output without a name has that of the outcome, in all groups.
    name = name_of_outcome(y, request.table.names)
    for group in groups_of.values() if name else ():
        if group.attrs.get("output_name") == "output" and not group.attrs.get("output_label"):
            group.attrs["output_name"] = name
    tree = Explanation.from_dict({f"/{name}": group for name, group in groups_of.items()})
    notes = "\n".join(dict.fromkeys(" ".join(str(warning.message).split()) for warning in caught))
    positional = ["model", "X", *(["y"] if y is not None else [])]
    columns_and_groups = {"categorical": columns[1], "groups": groups}
    arguments = {"features": request.features, "level": level}
    arguments |= {name: value for name, value in columns_and_groups.items() if value is not None}
    arguments["rng"] = rng if seed == NO_SEED else seed
    tree.attrs = {
        "method": "explain",
        "model": _model_name(model),
        "matters": float(settings.matters),
        "level": float(level),
        "percentiles": tuple(map(float, settings.percentiles)),
        "held_out": {None: "unknown", True: "yes", False: "no"}[settings.held_out],
        "seed": seed,
        "budget": "none" if settings.budget is None else str(settings.budget),
        "seconds": round(clock.used, 2),
        "cut": "\n".join(clock.cut),
        "notes": notes,
        "call": _call(positional, arguments, settings, options),
        "n_rows": request.table.n_rows,
        "n_rows_given": request.whole.n_rows,
        "ice_rows": rows.n_rows,
        "n_permutations": splits.n_permutations,
        "n_tested": len(splits.first),
        "groups": "no" if request.groups is None else "yes",
        "parameters": "yes" if curves.has_parameters else "no",
        "row_name": str(request.whole.attrs.get("row_name", "row")),
        "created": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "software": software(),
        "versions": ", ".join(f"{name} {import_module(name).__version__}" for name in VERSIONS),
        **answers.attrs,
    }
    return tree


def _units(request: ExplainRequest, is_class: bool) -> dict[str, Any]:
    """In which units numbers are shown: percentage points of a probability."""
    classes = bool(request.output_label) and hasattr(request.model, "classes_")
    inside = request.predicted.min() >= 0 and request.predicted.max() <= 1
    if request.options.scale == "response" and inside and (is_class or classes):
        return {"shown_times": 100.0, "shown_units": "percentage points"}
    return {}


def _regions(splits: Splits) -> dict[str, xr.Dataset]:
    out: dict[str, xr.Dataset] = {}
    for number, (name, split) in enumerate(splits.accepted.items()):
        about, path = xr.Dataset(attrs={"feature": name}), f"regions/{number}"
        out |= {path: about, f"{path}/tree": split.tree, f"{path}/effect": split.effect}
        if split.difference is not None:
            out[f"{path}/difference"] = split.difference
    return out


def _model_name(model: Model) -> str:
    if callable(model) and hasattr(model, "__name__"):
        return "a function" if "<" in model.__name__ else str(model.__name__)
    kind = type(getattr(model, "model", None)).__name__ if hasattr(model, "params") else ""
    return kind if kind and kind != "NoneType" else type(model).__name__


# Arguments with a value for every row.
OF_ROWS = ("groups", "weights")


def _call(
    positional: list[str], arguments: dict[str, Any], *options: ExplainOptions | ModelOptions
) -> str:
    """The call that makes these numbers again, with what is not as it is by default."""
    for group in options:
        for option in fields(group):
            value, default = getattr(group, option.name), option.default
            if not (isinstance(value, type(default)) and value == default):
                arguments[option.name] = value
    parts = [_written(name, value) for name, value in arguments.items()]
    return f"rs.explain({', '.join([*positional, *parts])})"


def _written(name: str, value: Any) -> str:
    """An argument as it is written in Python; arrays, functions and the like by their name."""
    text = repr(value.item() if isinstance(value, np.generic) else value)
    try:
        ast.literal_eval(text)
    except (SyntaxError, ValueError):
        text = name
    return f"{name}={name if name in OF_ROWS else text}"


def row_changes(curves: FeatureCurves) -> xr.Dataset | None:
    """The group ``rows``: of features with an axis or two levels; None where there are none."""
    changes: dict[str, tuple[float, Changes]] = {}
    local = curves.local.variables
    weight = local["weight"].values if "weight" in local else None
    columns = [local[name].transpose("feature", "obs").values for name in ("x", "local_effect")]
    for row, _ in curves.features:
        x, g = [values[feature_position(curves.local, row.name)] for values in columns]
        usable = np.isfinite(x) & np.isfinite(g)
        if not row.is_categorical and row.sizes["bin"]:
            edges = row.bin_edges
            usable &= (x >= edges[0]) & (x <= edges[-1])
            number, step = bin_index(edges, x[usable]), round_step(edges[-1] - edges[0])
        elif row.is_categorical and int(row["n_levels"]) == 2:
            # Both levels are one window.
            edges, number, step = np.array([0.0, 1.0]), np.zeros(usable.sum(), dtype=np.int64), 1.0
        else:
            continue
        weight_of_rows = None if weight is None else weight[usable]
        changes[row.name] = (step, changes_of_rows(edges, number, g[usable], weight_of_rows))
    if not changes:
        return None
    each, dims = changes.values(), ("feature", "window")
    # Windows side by side, NaN beyond those of a feature.
    n_obs = padded([change.n_rows for _, change in each])
    quantiles = padded([step * change.quantiles for step, change in each])
    variables = {
        "window_left": (dims, padded([change.left for _, change in each])),
        "window_right": (dims, padded([change.right for _, change in each])),
        "n_obs": (dims, np.nan_to_num(n_obs).astype(np.int64)),
        "change": ((*dims, "quantile"), quantiles),
        "change_mean": (dims, padded([step * change.mean for step, change in each])),
        "step": ("feature", [step for step, _ in each]),
    }
    coords = {"feature": ("feature", list(changes)), "quantile": ("quantile", list(SHARES))}
    return described(dataset_of(variables, coords, {"method": "changes of single rows"}))
