"""The tree that `explain` returns, which prints its answer first."""

from __future__ import annotations

import os
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

from rhale_stats.answers.printed import Text, printed, summary, tidy
from rhale_stats.answers.sentences import answers_in, outputs_in
from rhale_stats.reporting.report import notebook_html, report
from rhale_stats.schema.dimensions import OUTPUT
from rhale_stats.schema.padding import filled, stack


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
    >>> found = rs.explain(lambda X: 3 * X[:, 0], X, progress=False)
    >>> found.answers["matters"].to_series().to_dict()
    {'x0': 'yes', 'x1': 'hardly'}
    >>> sorted(found.contents.children)
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
        from rhale_stats.drawing.overview import plot_summary

        if feature is None:
            return plot_summary(self, **options)
        draw = plot_outputs if outputs_in(self) else plot_effect
        return draw(self["effect"].to_dataset(), feature, **options)

    def report(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write it as one HTML file, as `rhale_stats.report`."""
        return report(self, path, **options)

    def __repr__(self) -> str:  # type: ignore[override]
        """The answer; of a group below it what xarray prints."""
        if self.attrs.get("method") != "explain":
            return super().__repr__()
        return printed(self)

    __str__ = __repr__

    def _repr_html_(self) -> str:
        """For notebooks: the answer with a picture and a table."""
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
    groups: dict[str, xr.Dataset | xr.DataTree] = {}
    effects, first = [], next(iter(parts.values()))
    for label, part in parts.items():
        name = label.replace("/", " ").strip() or "output"
        while name in groups or name == "effect":
            name = f"output {name}"
        groups[name] = part
        effects.append(part["effect"].to_dataset())
    for other in effects:
        effects = [filled(effect, other) for effect in effects]
    effect = stack(effects, OUTPUT).assign_coords({OUTPUT: (OUTPUT, list(parts))})
    tree = Explanation.from_dict({"/effect": effect})
    for name, group in groups.items():
        tree[name] = group
    names = ("matters", "level", "percentiles", "seed", "model", "n_rows", "software", "created")
    tree.attrs = {"method": "explain", "outputs": "\n".join(parts)}
    tree.attrs |= {name: first.attrs[name] for name in names if name in first.attrs}
    tree.attrs["seconds"] = round(sum(float(part.attrs["seconds"]) for part in parts.values()), 2)
    return tree
