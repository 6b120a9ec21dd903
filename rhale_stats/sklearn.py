"""Displays in the manner of scikit-learn: ``from_estimator`` and ``plot``."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

import rhale_stats as rs
from rhale_stats.arguments.checks import check_choice

__all__ = ["EffectDisplay"]

# Kinds, those of scikit-learn first, and the functions that estimate them.
KINDS = {"average": "pdp", "individual": "ice", "both": "ice"}
KINDS |= {name: name for name in ("ale", "rhale", "pdp", "ice", "m_plot")}
SCALES = {"auto": "response", "predict_proba": "response", "decision_function": "decision"}


def __getattr__(name: str) -> Any:
    raise AttributeError(f"rhale_stats.sklearn has EffectDisplay alone, and no {name!r}.")


class EffectDisplay:
    """Effects of features as a display, as `sklearn.inspection.PartialDependenceDisplay` is one.

    Parameters
    ----------
    result : Dataset
        What `ale`, `rhale`, `pdp`, `ice` or `m_plot` returned.

    Attributes
    ----------
    result : Dataset
        The estimates with their errors, for `summary`, `tidy`, `confint` and all other functions.
    axes_ : ndarray of Axes
        Of the last `plot`.
    figure_ : Figure
        Of the last `plot`.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from sklearn.linear_model import LinearRegression
    >>> import rhale_stats as rs
    >>> X, y = make_friedman1(200, random_state=0)
    >>> fitted = LinearRegression().fit(X, y)
    >>> display = rs.sklearn.EffectDisplay.from_estimator(fitted, X, [0, 1], kind="ale")
    >>> [panel.get_title() for panel in display.axes_]
    ['x0', 'x1']
    """

    def __init__(self, result: xr.Dataset) -> None:
        self.result = result
        self.axes_: Any = None
        self.figure_: Any = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        features: Any = None,
        *,
        kind: str | None = None,
        percentiles: tuple[float, float] | None = None,
        grid_resolution: int | None = None,
        sample_weight: ArrayLike | None = None,
        target: Any = None,
        response_method: str = "auto",
        categorical_features: Any = None,
        centered: bool = False,
        n_cols: int = 3,
        ax: Any = None,
        **options: Any,
    ) -> EffectDisplay:
        """Estimate the effects of features and draw them.

        Parameters
        ----------
        estimator, X
            A fitted estimator and its rows, as in `ale`.
        features : name, number, or sequence of them, optional
            Of "average" and "individual" also pairs, as ``[("a", "b")]``. By default all.
        kind : str, optional
            "ale" (the default) and "rhale"; "average" ("pdp"; the default where there are pairs),
            "individual" and "both" ("ice"), "m_plot".
        percentiles : pair of float, optional
            Between which percentiles of the rows the axes reach, such as (0.05, 0.95).
        grid_resolution : int, optional
            Points of a grid, or number of bins.
        sample_weight : array_like of shape (n_rows,), optional
            Weights of the rows.
        target : label, optional
            Class or output; by default all, and the second of two classes.
        response_method : {"auto", "predict_proba", "decision_function"}, default "auto"
            What a classifier answers.
        categorical_features : names or numbers, optional
            Of ALE: columns of numbers whose values are levels.
        centered : bool, default False
            Curves begin at 0. Otherwise those of ALE have mean 0, partial dependence its values.
        n_cols : int, default 3
            Panels per line.
        ax : Axes, or sequence of them, optional
            By default those of a new figure.
        **options
            Any option of the function of the kind, such as ``by="group"``.

        Returns
        -------
        EffectDisplay

        Raises
        ------
        ValueError, KeyError, TypeError, ModelError
            As the function of the kind.
        """
        if kind is None:
            several = features if isinstance(features, list) else ()
            kind = "average" if any(isinstance(item, tuple | list) for item in several) else "ale"
        check_choice("kind", kind, tuple(KINDS))
        check_choice("response_method", response_method, tuple(SCALES))
        name, grid = KINDS[kind], "n_grid" if KINDS[kind] in ("pdp", "ice") else "bins"
        on_grid = {"n_grid": "start" if centered else "none", "bins": "start" if centered else None}
        chosen = {
            "percentiles": percentiles,
            grid: grid_resolution,
            "weights": sample_weight,
            "output": target,
            "categorical": categorical_features,
            "centering": None if name == "ice" else on_grid[grid],
            "kind": "centered" if name == "ice" and centered else None,
            "scale": None if response_method == "auto" else SCALES[response_method],
        }
        chosen = {key: value for key, value in chosen.items() if value is not None}
        result = getattr(rs, name)(estimator, X, features, **chosen, **options)
        # Features that are named are drawn in this order, and all features by their sizes.
        named = features is not None and result.sizes.get("feature", 1) > 1
        order = {"features": result["feature"].values.tolist()} if named else {}
        return cls(result).plot(ax=ax, n_cols=n_cols, **order)

    def plot(self, *, ax: Any = None, n_cols: int = 3, **options: Any) -> EffectDisplay:
        """Draw the effects, by default in a new figure.

        Parameters
        ----------
        ax : Axes, or sequence of them, optional
            One a feature, or one for all, which are then drawn within its bounds.
        n_cols : int, default 3
            Panels per line of a new figure.
        **options
            As in `rhale_stats.plot`.

        Returns
        -------
        EffectDisplay
            The display itself.
        """
        panels = rs.plot(self.result, ax=ax, n_columns=n_cols, **options)
        self.axes_ = np.asarray(panels, dtype=object)
        self.figure_ = np.ravel(self.axes_)[0].figure
        return self
