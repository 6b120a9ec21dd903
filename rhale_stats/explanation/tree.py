"""The tree that `explain` returns, which prints its answer first."""

from __future__ import annotations

import xarray as xr

from rhale_stats.answers.printed import printed
from rhale_stats.answers.sentences import answers_in
from rhale_stats.reporting.notebook import notebook_html


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
        return notebook_html(self, printed(self))
