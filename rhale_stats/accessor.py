"""Methods such as ``effect.rhale.summary()``: each calls the function of the same name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike

import rhale_stats as rs

if TYPE_CHECKING:
    from statsmodels.iolib.summary import Summary

    from rhale_stats.printing.pages import Answer


@xr.register_dataset_accessor("rhale")  # type: ignore[no-untyped-call]
class RhaleAccessor:
    """Functions of `rhale_stats` as methods of a Dataset of effects.

    ``effect.rhale`` alone displays the main numbers, as `rhale_stats.show` does.

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

    def __repr__(self) -> str:
        from rhale_stats.generics.show import text_of

        return text_of(self._dataset)

    def _repr_html_(self) -> str:
        from rhale_stats.generics.show import html_of

        return html_of(self._dataset)

    def show(self, *, max_features: int = 10) -> Answer:
        """See `rhale_stats.show`."""
        return rs.show(self._dataset, max_features=max_features)

    def std_error(
        self, local: xr.Dataset | None = None, *, groups: ArrayLike | None = None
    ) -> xr.Dataset:
        """See `rhale_stats.std_error`."""
        return rs.std_error(self._dataset, local, groups=groups)

    def vcov(self, feature: str | int | None = None, *, of: str = "curve") -> xr.DataArray:
        """See `rhale_stats.vcov`."""
        return rs.vcov(self._dataset, feature, of=of)

    def confint(
        self, boot: xr.Dataset | None = None, *, level: float = 0.95, method: str | None = None
    ) -> xr.Dataset:
        """See `rhale_stats.confint`."""
        return rs.confint(self._dataset, boot, level=level, method=method)

    def confband(
        self,
        *,
        level: float = 0.95,
        n_draws: int = 20_000,
        rng: np.random.Generator | int | None = None,
    ) -> xr.Dataset:
        """See `rhale_stats.confband`."""
        return rs.confband(self._dataset, level=level, n_draws=n_draws, rng=rng)

    def bootstrap(self, local: xr.Dataset, **options: Any) -> xr.Dataset:
        """See `rhale_stats.bootstrap`."""
        return rs.bootstrap(local, self._dataset, **options)

    def effect_sizes(
        self, boot: xr.Dataset | None = None, *, y: ArrayLike | None = None, level: float = 0.95
    ) -> xr.Dataset:
        """See `rhale_stats.effect_sizes`."""
        return rs.effect_sizes(self._dataset, boot, y=y, level=level)

    def wald_test(
        self,
        null: str = "zero",
        *,
        method: str = "box",
        adjust: str = "holm",
        local: xr.Dataset | None = None,
    ) -> xr.Dataset:
        """See `rhale_stats.wald_test`."""
        return rs.wald_test(self._dataset, null, method=method, adjust=adjust, local=local)

    def equivalence_test(self, delta: float, *, adjust: str = "holm") -> xr.Dataset:
        """See `rhale_stats.equivalence_test`."""
        return rs.equivalence_test(self._dataset, delta, adjust=adjust)

    def compare(
        self,
        b: xr.Dataset,
        *,
        paired: tuple[xr.Dataset, xr.Dataset] | None = None,
        groups: ArrayLike | None = None,
        level: float = 0.95,
        n_draws: int = 20_000,
        rng: np.random.Generator | int | None = None,
        adjust: str = "holm",
    ) -> xr.Dataset:
        """See `rhale_stats.compare`."""
        return rs.compare(
            self._dataset,
            b,
            paired=paired,
            groups=groups,
            level=level,
            n_draws=n_draws,
            rng=rng,
            adjust=adjust,
        )

    def check_unbiased(
        self,
        local: xr.Dataset,
        *,
        adjust: str = "holm",
        rng: np.random.Generator | int | None = None,
        significance: float = 0.05,
    ) -> xr.Dataset:
        """See `rhale_stats.check_unbiased`."""
        return rs.check_unbiased(
            local, self._dataset, adjust=adjust, rng=rng, significance=significance
        )

    def debias(self, check: xr.Dataset) -> xr.Dataset:
        """See `rhale_stats.debias`."""
        return rs.debias(self._dataset, check)

    def jump_check(
        self, model: Any, local: xr.Dataset, X: Any = None, *, adjust: str = "holm"
    ) -> xr.Dataset:
        """See `rhale_stats.jump_check`."""
        return rs.jump_check(model, local, self._dataset, X, adjust=adjust)

    def mae(self, truth: xr.Dataset) -> xr.Dataset:
        """See `rhale_stats.mae`."""
        return rs.mae(self._dataset, truth)

    def predict(
        self, x: Any, feature: str | int | None = None, what: str = "curve"
    ) -> xr.DataArray:
        """See `rhale_stats.predict`."""
        return rs.predict(self._dataset, x, feature, what)

    def summary(self, feature: str | int | None = None, *, level: float = 0.95) -> Summary:
        """See `rhale_stats.summary`."""
        return rs.summary(self._dataset, feature, level=level)

    def tidy(self, *, level: float = 0.95) -> pd.DataFrame:
        """See `rhale_stats.tidy`."""
        return rs.tidy(self._dataset, level=level)

    def glance(self, *, level: float = 0.95) -> pd.DataFrame:
        """See `rhale_stats.glance`."""
        return rs.glance(self._dataset, level=level)

    def augment(self, local: xr.Dataset) -> pd.DataFrame:
        """See `rhale_stats.augment`."""
        return rs.augment(local, self._dataset)

    def plot(self, feature: str | int, local: xr.Dataset | None = None, ax: Any = None) -> Any:
        """See `rhale_stats.plot_effect`."""
        return rs.plot_effect(self._dataset, feature, local, ax)

    def plot_bias(self, feature: str | int, ax: Any = None) -> Any:
        """See `rhale_stats.plot_bias`."""
        return rs.plot_bias(self._dataset, feature, ax)

    def plot_bins(self, local: xr.Dataset, feature: str | int, ax: Any = None) -> Any:
        """See `rhale_stats.plot_bins`."""
        return rs.plot_bins(self._dataset, local, feature, ax)

    def plot_all(
        self,
        features: Any = None,
        *,
        n_columns: int = 3,
        max_features: int = 24,
        axes: Any = None,
    ) -> Any:
        """See `rhale_stats.plot_effects`."""
        return rs.plot_effects(
            self._dataset, features, n_columns=n_columns, max_features=max_features, axes=axes
        )

    def plot_forest(
        self, what: str = "average_effect", *, level: float = 0.95, ax: Any = None
    ) -> Any:
        """See `rhale_stats.plot_forest`."""
        return rs.plot_forest(self._dataset, what, level=level, ax=ax)

    def plot_edges(self, feature: str | int, ax: Any = None) -> Any:
        """See `rhale_stats.plot_edges`."""
        return rs.plot_edges(self._dataset, feature, ax)

    def plot_compare(self, feature: str | int, ax: Any = None) -> Any:
        """See `rhale_stats.plot_compare`."""
        return rs.plot_compare(self._dataset, feature, ax)
