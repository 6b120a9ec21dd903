"""``effect.rhale.summary()`` and its like: every method is the function of the same name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike
from statsmodels.iolib.summary import Summary

from rhale_stats import effects, inference, plots, scoring, summaries, unbiasedness


@xr.register_dataset_accessor("rhale")  # type: ignore[no-untyped-call]
class RhaleAccessor:
    """Functions of `rhale_stats` as methods of a Dataset of effects.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> local = rs.local_effects(lambda X: X[:, 0] * X[:, 1], X)
    >>> effect = rs.rhale(local).rhale.std_error()
    >>> effect.rhale.tidy().shape
    (2, 13)
    """

    def __init__(self, dataset: xr.Dataset) -> None:
        self._dataset = dataset

    def std_error(self) -> xr.Dataset:
        """See `rhale_stats.std_error`."""
        return inference.std_error(self._dataset)

    def check_unbiased(
        self,
        local: xr.Dataset,
        *,
        adjust: str = "holm",
        rng: np.random.Generator | int | None = 0,
        significance: float = 0.05,
    ) -> xr.Dataset:
        """See `rhale_stats.check_unbiased`."""
        return unbiasedness.check_unbiased(
            local, self._dataset, adjust=adjust, rng=rng, significance=significance
        )

    def debias(self, check: xr.Dataset) -> xr.Dataset:
        """See `rhale_stats.debias`."""
        return unbiasedness.debias(self._dataset, check)

    def jump_check(
        self, model: Any, local: xr.Dataset, X: Any = None, *, adjust: str = "holm"
    ) -> xr.Dataset:
        """See `rhale_stats.jump_check`."""
        return unbiasedness.jump_check(model, local, self._dataset, X, adjust=adjust)

    def mae(self, truth: xr.Dataset) -> xr.Dataset:
        """See `rhale_stats.mae`."""
        return scoring.mae(self._dataset, truth)

    def predict(self, x: ArrayLike, feature: str | int) -> xr.DataArray:
        """See `rhale_stats.predict`."""
        return effects.predict(self._dataset, x, feature)

    def summary(self, feature: str | int | None = None, *, level: float = 0.95) -> Summary:
        """See `rhale_stats.summary`."""
        return summaries.summary(self._dataset, feature, level=level)

    def tidy(self, *, level: float = 0.95) -> pd.DataFrame:
        """See `rhale_stats.tidy`."""
        return summaries.tidy(self._dataset, level=level)

    def glance(self, *, level: float = 0.95) -> pd.DataFrame:
        """See `rhale_stats.glance`."""
        return summaries.glance(self._dataset, level=level)

    def augment(self, local: xr.Dataset) -> pd.DataFrame:
        """See `rhale_stats.augment`."""
        return summaries.augment(local, self._dataset)

    def plot(self, feature: str | int, local: xr.Dataset | None = None, ax: Any = None) -> Any:
        """See `rhale_stats.plot_effect`."""
        return plots.plot_effect(self._dataset, feature, local, ax)

    def plot_bias(self, feature: str | int, ax: Any = None) -> Any:
        """See `rhale_stats.plot_bias`."""
        return plots.plot_bias(self._dataset, feature, ax)

    def plot_bins(self, local: xr.Dataset, feature: str | int, ax: Any = None) -> Any:
        """See `rhale_stats.plot_bins`."""
        return plots.plot_bins(self._dataset, local, feature, ax)

    def plot_all(self, features: Any = None, *, n_columns: int = 3, axes: Any = None) -> Any:
        """See `rhale_stats.plot_effects`."""
        return plots.plot_effects(self._dataset, features, n_columns=n_columns, axes=axes)
