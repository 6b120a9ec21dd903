"""Values of a curve, a profile or a surface between its grid points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import xarray as xr

from rhale_stats.arguments.checks import check_choice
from rhale_stats.generics.dispatch import method
from rhale_stats.schema.features import feature_names, feature_position
from rhale_stats.schema.kinds import EFFECT, ENSEMBLE, kind_of
from rhale_stats.schema.levels import categorical_features
from rhale_stats.schema.parts import over_outputs
from rhale_stats.schema.validation import validated


def values_at(effect: xr.Dataset, x: Any, feature: str | int | None = None) -> xr.Dataset:
    """Curve, and of effects in bins effect and heterogeneity, of all features at a value of each.

    A number, or several of them, along ``grid``; with ``feature`` those of one feature. Features
    with levels are left out unless ``feature`` names one.
    """
    names = feature_names(effect)
    if feature is None:
        named = [] if not isinstance(x, Mapping) else list(x)
        levels = set(categorical_features(effect))
        names = named or [name for name in names if name not in levels]
    else:
        names = [names[feature_position(effect, feature)]]
    of_features = []
    for name in names:
        of_feature = x[name] if isinstance(x, Mapping) else x
        each = {"curve": predict(effect, of_feature, name)}
        if EFFECT.holds(effect) and name not in categorical_features(effect):
            each |= {
                what: predict(effect, of_feature, name, what)
                for what in ("effect", "heterogeneity")
            }
        of_features.append(xr.Dataset(each).expand_dims(feature=[name]))
    return xr.concat(
        of_features, "feature", coords="different", compat="equals", combine_attrs="drop_conflicts"
    )


@validated
@over_outputs
def predict(
    effect: xr.Dataset, x: Any, feature: str | int | None = None, what: str = "curve"
) -> xr.DataArray:
    """Values of the curve of one feature, or of a surface of two, at given points.

    Values outside the range of the rows are NaN. The curve is linear between the edges of the cells
    from which it is accumulated, math [7]. With ``weighting="rows"`` these cells are the bins, and
    the curve is a parabola in bins where the effect has a slope. A surface is bilinear in the cells
    of numeric features; a categorical feature takes the value of the level.

    Parameters
    ----------
    effect : Dataset
        What `rhale`, `pdp` or another profile returned, or `ale2`; or effects of several models,
        whose estimates are taken.
    x : array_like or DataArray
        Values of the feature, in its own units; for a categorical feature its levels. For a
        surface, values of both features: a tuple of two (DataArrays are combined by their dims), an
        array of two columns, or a DataFrame with both features.
    feature : str or int
        Name or number; leave it out for a surface.
    what : {"curve", "effect", "heterogeneity"}, default "curve"
        The curve, or for effects in bins of a numeric feature the effect at ``x`` (of the bin, in a
        linear bin of its line), or the standard deviation of the local effects at ``x``: the
        ``spread`` of its own bins (math [66]), or the ``heterogeneity`` of the bins of the effect
        where the result has no ``spread``.

    Returns
    -------
    DataArray
        The curve at ``x``, in units of the output, centred as ``effect`` is; effect and
        heterogeneity in output units per feature unit. One-dimensional
        ``x`` gets the dimension "grid" with coordinate ``x``; a DataArray keeps its dimensions.
        For a surface, the coordinates have the names of the features, and values in cells without
        rows are NaN.

    Raises
    ------
    KeyError
        Unknown feature; a DataFrame without one of the two features.
    TypeError
        No ``feature`` given for a result that is not a surface.
    ValueError
        Unknown level; for a surface, ``feature`` given or values of only one feature; ``what`` is
        not "curve" for a profile, a surface or a categorical feature.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(0, 1, (500, 1))
    >>> local = rs.local_effects(lambda X: 3 * X[:, 0], X, features=0)
    >>> effect = rs.rhale(local, centering="start")
    >>> curve = rs.predict(effect, [0.2, 0.7], "x0")
    >>> float((curve[1] - curve[0]).round(6))
    1.5
    >>> rs.predict(effect, [0.2, 0.7], "x0", what="effect").round(6).values
    array([3., 3.])
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> surface = rs.ale2(lambda X: X[:, 0] * X[:, 1], X, (0, 1))
    >>> rs.predict(surface, ([0.8, -0.8], [0.5, 0.5])).round(1).values
    array([ 0.4, -0.4])
    """
    result: Any = effect
    if not isinstance(result, xr.Dataset) and hasattr(result, "predict"):
        raise TypeError(
            "effect must be a result, such as rhale(model, X); got a model, whose predictions are "
            "model.predict(X)."
        )
    predictor = method("predict", effect)
    check_choice("what", what, ("curve", "effect", "heterogeneity"))
    if what == "curve":
        out: xr.DataArray = predictor(effect, x, feature)
        return out
    if not (EFFECT.holds(effect) or ENSEMBLE.holds(effect)):
        kind = kind_of(effect)
        raise ValueError(
            f"what must be 'curve' for {kind.name if kind else 'this result'}; got {what!r}. "
            f"Effects and heterogeneity at a value are of effects in bins: rhale(local)."
        )
    out = predictor(effect, x, feature, what)
    return out
