"""What a simulator is: a model, a distribution of rows, and true effects."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike

from rhale_stats.arguments.checks import check_count
from rhale_stats.arguments.seeds import source_of
from rhale_stats.schema.checks import check_effect
from rhale_stats.schema.curves import curve_of
from rhale_stats.schema.features import feature_names, one_feature, slopes
from rhale_stats.schema.stacking import stacked
from rhale_stats.schema.variables import software, variable
from rhale_stats.simulate.truth import CELLS, FloatArray, Marginal, truth_of


class Simulator:
    """A model and the distribution of its features; the examples are its subclasses."""

    columns: ClassVar[tuple[str, ...]]

    def model(self, X: Any) -> FloatArray:
        """Output of the model.

        Parameters
        ----------
        X : DataFrame or array_like of shape (n_rows, n_columns)
            All columns, in the order of ``columns``.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        return self._output(*np.asarray(X, dtype=np.float64).T)

    def jacobian(self, X: Any) -> FloatArray:
        """Derivatives of the output with respect to every column.

        Parameters
        ----------
        X : DataFrame or array_like of shape (n_rows, n_columns)
            All columns, in the order of ``columns``.

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
        """
        columns = np.asarray(X, dtype=np.float64).T
        derivatives = self._derivatives(*columns)
        return np.column_stack([np.broadcast_to(d, columns[0].shape) for d in derivatives])

    def sample(self, n: int, rng: np.random.Generator | int | None = None) -> pd.DataFrame:
        """``n`` independent rows.

        Parameters
        ----------
        n : int
            Number of rows, at least 1.
        rng : Generator, int or None
            Source of randomness, or its seed. None draws anew; ``attrs["seed"]`` of the table
            reproduces it (-1 with a Generator).

        Returns
        -------
        DataFrame
            One column a feature.

        Raises
        ------
        ValueError
            ``n`` below 1.
        """
        check_count("n", n, 1)
        generator, seed = source_of(rng)
        drawn = self._draw(n, generator)
        table = pd.DataFrame(dict(zip(self.columns, drawn, strict=True)))
        table.attrs["seed"] = seed
        return table

    def truth(self, effect: xr.Dataset) -> xr.Dataset:
        """Exact values of what ``effect`` estimates, on its own bins.

        Parameters
        ----------
        effect : Dataset
            What `rhale` made of rows of this simulator.

        Returns
        -------
        Dataset
            Over (feature, bin): ``effect`` mu(a, b), ``heterogeneity`` sigma(a, b) and
            ``bin_error``, math [12], for a feature that is uniform within the bin; where a rule
            makes linear bins ``slope``, and in these the bin error is that of the best line. Over
            (feature, edge): ``curve``, centred as that of ``effect`` is, over the stretch on
            which that is known: at its first edge, at its mean over the population in it, or at
            its mean over the axis. Over (feature, cell), 2000 equal cells along the axis:
            ``cell_effect`` and ``cell_heterogeneity``, between the ``cell_value`` of (feature,
            cell_edge), by which `mae` compares along the axis. Coordinates as in ``effect``.

        Raises
        ------
        KeyError
            A feature whose truth has no closed form; the message lists those that have.
        """
        effect = check_effect(effect)
        known = self._marginals()
        rows = []
        for name in feature_names(effect):
            if name not in known:
                raise KeyError(
                    f"effect must hold features whose truth is known, for {type(self).__name__} "
                    f"{', '.join(map(repr, known))}; got {name!r}. Select them: "
                    f"effect.sel(feature=[...])."
                )
            row = one_feature(effect, name)
            centering = str(effect.attrs["centering"])
            linear = slopes(row) != 0 if "slope" in row else None
            curve = curve_of(row)
            there = curve.edges[np.isfinite(curve.values)]
            rows.append(truth_of(known[name], row["edge_value"].values, linear, there, centering))
        arrays = stacked(rows, effect.sizes["bin"], cell=CELLS, cell_edge=CELLS + 1)
        cell_value = arrays.pop("cell_value")
        return xr.Dataset(
            {name: variable(name, array) for name, array in arrays.items()},
            {
                **effect.drop_dims(["line_moment", "cell", "cell_edge"], errors="ignore").coords,
                "cell_value": variable("cell_value", cell_value),
            },
            {
                "method": "truth",
                "simulator": repr(self),
                "centering": effect.attrs["centering"],
                "software": software(),
            },
        )

    def _output(self, *x: FloatArray) -> FloatArray:
        raise NotImplementedError

    def _derivatives(self, *x: FloatArray) -> tuple[ArrayLike, ...]:
        raise NotImplementedError

    def _draw(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, ...]:
        raise NotImplementedError

    def _marginals(self) -> dict[str, Marginal]:
        """Features whose truth is known in closed form."""
        raise NotImplementedError
