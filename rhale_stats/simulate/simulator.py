"""The parts of a simulator: a model, a distribution of rows, and true effects."""

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
from rhale_stats.schema.padding import pad_features
from rhale_stats.schema.variables import software, variable
from rhale_stats.simulate.truth import CELLS, FloatArray, Marginal, truth_of


class Simulator:
    """A model and the distribution of its features; the examples are its subclasses.

    For a process of your own, write a subclass with the names of the columns and four methods. They
    get one array for each column:

    - ``_output(*x)``: the output of the model;
    - ``_derivatives(*x)``: its derivatives by every column, needed by ``jacobian`` alone;
    - ``_draw(n, rng)``: n values of every column;
    - ``_marginals()``: a `Marginal` for every feature whose truth is known, needed by ``truth``
      alone.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> class Growth(rs.simulate.Simulator):
    ...     columns = ("t", "u")
    ...
    ...     def _output(self, t, u):
    ...         return t**2 * (1 + u)
    ...
    ...     def _derivatives(self, t, u):
    ...         return 2 * t * (1 + u), t**2
    ...
    ...     def _draw(self, n, rng):
    ...         return rng.uniform(size=n), rng.normal(size=n)
    ...
    ...     def _marginals(self):
    ...         # Of dY/dt = 2 t (1 + u) at a value of t: mean, variance; distribution of t; ends.
    ...         mean, variance = lambda t: 2 * t, lambda t: (2 * t) ** 2
    ...         cdf, ends = lambda t: np.clip(t, 0, 1), np.array([0.0, 1.0])
    ...         return {"t": rs.simulate.Marginal(mean, variance, cdf, ends)}
    >>> growth = Growth()
    >>> X = growth.sample(500, rng=0)
    >>> local = rs.local_effects(growth.model, X, features="t")
    >>> effect = rs.rhale(local, bins=rs.GivenBins([0, 0.5, 1]))
    >>> growth.truth(effect)["effect"].values.round(3)
    array([[0.5, 1.5]])
    """

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
            Source of random numbers, or its seed. None gives new numbers in every call; the
            attribute ``seed`` of the table, given as ``rng``, reproduces them (-1 with a
            Generator).

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
        """Exact effects, heterogeneity, bin errors and curves on the bins of ``effect``.

        Parameters
        ----------
        effect : Dataset
            Result of `rhale` for rows of this simulator.

        Returns
        -------
        Dataset
            Over (feature, bin): ``effect`` mu(a, b), ``heterogeneity`` sigma(a, b) and
            ``bin_error`` of math [12], that is, averages along the axis. If the rule makes linear
            bins there is also ``slope``, and the bin error of a linear bin is the distance from the
            best line. Over (feature, edge): ``curve``, with the centring of ``effect`` (first edge,
            mean over the population, or mean over the axis), on the stretch where the curve of
            ``effect`` is known. Over (feature, cell), for 2000 equal cells along the axis:
            ``cell_effect`` and ``cell_heterogeneity``, which `mae` needs. ``cell_value`` (feature,
            cell_edge) are the edges of these cells. Coordinates are those of ``effect``.

        Raises
        ------
        KeyError
            A feature whose truth has no closed form. The message lists the features that have one.

        Notes
        -----
        ``heterogeneity`` of the truth is not what ``heterogeneity`` of `rhale` estimates in a wide
        bin of constant effect: the estimate contains the bin error (math [12]) and weighs by rows,
        the truth does neither. Compare it in narrow bins, or with ``heterogeneity_within`` of
        `check_unbiased` where rows are spread evenly.
        """
        result, effect = effect, check_effect(effect)
        marginals = self._marginals()
        rows = []
        for name in feature_names(effect):
            if name not in marginals:
                raise KeyError(
                    f"effect must hold features whose truth is known, for {type(self).__name__} "
                    f"{', '.join(map(repr, marginals))}; got {name!r}. Select them: "
                    f"effect.sel(feature=[...])."
                )
            row = one_feature(effect, name)
            centering = str(effect.attrs["centering"])
            linear = slopes(row) != 0 if "slope" in row else None
            curve = curve_of(row)
            where_known = curve.edges[np.isfinite(curve.values)]
            edges = result["edge_value"].sel(feature=name).values
            rows.append(
                truth_of(
                    marginals[name],
                    row["edge_value"].values,
                    linear,
                    where_known,
                    centering,
                    edges[np.isfinite(edges)],
                )
            )
        sizes = {"edge": result.sizes["edge"], "cell": CELLS, "cell_edge": CELLS + 1}
        arrays = pad_features(rows, effect.sizes["bin"], **sizes)
        cell_value = arrays.pop("cell_value")
        return xr.Dataset(
            {name: variable(name, array) for name, array in arrays.items()},
            {
                **result.drop_dims(
                    ["moment", "square_moment", "weight_product", "cell", "cell_edge"],
                    errors="ignore",
                ).coords,
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
        raise NotImplementedError(_missing(self, "_output"))

    def _derivatives(self, *x: FloatArray) -> tuple[ArrayLike, ...]:
        raise NotImplementedError(_missing(self, "_derivatives"))

    def _draw(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, ...]:
        raise NotImplementedError(_missing(self, "_draw"))

    def _marginals(self) -> dict[str, Marginal]:
        """Features whose truth is known in closed form."""
        raise NotImplementedError(_missing(self, "_marginals"))


def _missing(simulator: Simulator, method: str) -> str:
    """Which method a subclass lacks."""
    return (
        f"{type(simulator).__name__} must define the method {method}; it has none. See "
        f"help(rhale_stats.simulate.Simulator)."
    )
