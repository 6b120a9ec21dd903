"""Methods such as ``effect.rhale.summary()``: each calls the function of the same name."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from operator import attrgetter
from typing import Any, NoReturn

import xarray as xr

import rhale_stats as rs
from rhale_stats.arguments.peers import other_name, typed


class _Method:
    """A function of `rhale_stats` as a method, with the parameters and the words of the function.

    Parameters
    ----------
    name : str, optional
        Name of the function. By default that of the method.
    """

    def __init__(self, name: str = "") -> None:
        self._name = name

    def __set_name__(self, _owner: type, name: str) -> None:
        self._name = self._name or name

    def __get__(self, accessor: RhaleAccessor | None, _owner: type) -> Callable[..., Any]:
        # Only now: a function loads the modules that it needs.
        function: Callable[..., Any] = attrgetter(typed(self._name))(rs)
        if accessor is None:
            return function
        dataset, parameters = accessor._dataset, list(signature(function).parameters.values())

        @wraps(function)
        def method(*args: Any, **named: Any) -> Any:
            return function(dataset, *args, **named)

        without_dataset = signature(function).replace(parameters=parameters[1:])
        method.__signature__ = without_dataset  # type: ignore[attr-defined]
        return method


@xr.register_dataset_accessor("rhale")  # type: ignore[no-untyped-call]
class RhaleAccessor:
    """Functions of `rhale_stats` as methods of a Dataset of effects.

    ``effect.rhale`` alone displays the main numbers, as `rhale_stats.show` does.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> effect = rs.rhale(lambda X: X[:, 0] * X[:, 1], X).rhale.std_error()
    >>> effect.rhale.tidy().shape
    (2, 15)
    """

    def __init__(self, dataset: xr.Dataset) -> None:
        self._dataset = dataset

    def __repr__(self) -> str:
        from rhale_stats.generics.tables import text_of

        return text_of(self._dataset)

    def _repr_html_(self) -> str:
        from rhale_stats.generics.tables import html_of

        return html_of(self._dataset)

    def __getattr__(self, name: str) -> NoReturn:
        """Say what to type: only called where there is no such method."""
        if name.startswith("_"):
            raise AttributeError(name)
        from rhale_stats.schema.kinds import KINDS, kind_of

        advice = other_name(name, [each for each in vars(type(self)) if each[0] != "_"])
        name = typed(name)
        if name in rs.__all__ or name.removeprefix("plots.") in rs.plots.__all__:
            kind = kind_of(self._dataset)
            takers = [each.maker for each in KINDS if name in each.verbs]
            advice = f"See help(rs.{name})."
            if kind is not None and name in kind.verbs:
                advice = f"Call rhale_stats.{name}(effect, ...)."
            elif takers:
                advice = f"It is for what {' or '.join(takers)} returned: help(rs.{name})."
        raise AttributeError(f"effect.rhale has no method {name!r}. {advice}".rstrip())

    def at(self, x: Any = None, feature: str | int | None = None, **values: Any) -> xr.Dataset:
        """Curve, effect and heterogeneity at values of the features, as `rhale_stats.predict` has.

        Parameters
        ----------
        x : number, array_like, or mapping from features to these
            Values in the units of the feature: positions on its axis, not numbers of bins.
        feature : name or number, optional
            One feature. By default all that have an axis.
        **values
            Values by the names of features, as in ``at(age=40)``.

        Returns
        -------
        Dataset
            Over (feature), and (grid) where there are several values: ``curve``, and of effects in
            bins ``effect`` and ``heterogeneity``; NaN beyond the range of the rows.

        Examples
        --------
        >>> import numpy as np
        >>> import rhale_stats as rs
        >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
        >>> effect = rs.rhale(lambda X: 3 * X[:, 0] + X[:, 1], X)
        >>> effect.rhale.at(0.3)["effect"].round(6).values
        array([3., 1.])
        """
        from rhale_stats.generics.values import values_at

        if x is None and not values:
            raise TypeError("x must be given, as in effect.rhale.at(age=40).")
        return values_at(self._dataset, values if x is None else x, feature)

    def in_bins(self) -> xr.Dataset:
        """Effects as tables of their bins: all that follows from the moments in each.

        Over (feature, bin) also ``n_effective``, ``weight_share`` and ``x_mean``; over (feature,
        edge), which are here the edges of the bins, ``curve``, ``curve_std`` and ``curve_std_sum``
        (math [9]); over (feature) ``heterogeneity_index`` and ``curve_offset``. What is known of
        cells alone, as the ``moments`` and the ``spread``, is left out: it is to be read, and other
        functions take the effect itself.

        Examples
        --------
        >>> import numpy as np
        >>> import rhale_stats as rs
        >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
        >>> effect = rs.rhale(lambda X: 3 * X[:, 0] + X[:, 1], X)
        >>> effect.rhale.in_bins()["n_effective"].values
        array([[500.],
               [500.]])
        """
        from rhale_stats.schema.in_bins import in_bins
        from rhale_stats.schema.variables import in_order
        from rhale_stats.schema.whole import with_feature

        return in_bins(in_order(with_feature(self._dataset)))

    show = _Method()
    std_error = _Method()
    vcov = _Method()
    confint = _Method()
    confband = _Method()
    bootstrap = _Method()
    effect_sizes = _Method()
    wald_test = _Method()
    hypotheses = _Method()
    equivalence_test = _Method()
    compare = _Method()
    check_unbiased = _Method()
    debias = _Method()
    jump_check = _Method()
    mae = _Method("simulate.mae")
    predict = _Method()
    summary = _Method()
    tidy = _Method()
    to_dataframe = _Method("tidy")
    glance = _Method()
    augment = _Method()
    plot = _Method()
    plot_bias = _Method()
    plot_bins = _Method()
    plot_all = _Method("plots.effects")
    plot_forest = _Method()
    plot_edges = _Method()
    plot_compare = _Method()


@xr.register_dataarray_accessor("rhale")  # type: ignore[no-untyped-call]
class _OfVariable:
    """One variable of a result, which is not enough: it says so."""

    def __init__(self, array: xr.DataArray) -> None:
        self._of = array.name

    def __repr__(self) -> str:
        return (
            f"{self._of!r} is one variable of a result. Take the Dataset: effect.rhale, and not "
            f"effect[{self._of!r}].rhale."
        )

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(name if name.startswith("_") else repr(self))
