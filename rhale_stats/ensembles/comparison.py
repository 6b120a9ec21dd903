"""Differences of the curves of several models, or of several models and one effect."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from rhale_stats.arrays import intervals
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.effects.errors import with_std_error
from rhale_stats.effects.fit import Fit, curve_degrees, fit_of, interpolation
from rhale_stats.ensembles.errors import with_errors
from rhale_stats.ensembles.members import (
    Row,
    centre_of,
    check_ensemble,
    covariance_of,
    degrees_of,
    errors,
    mapped,
    names_of,
    one_row,
    origin_of,
    own_errors,
)
from rhale_stats.ensembles.variances import deviations, error_of
from rhale_stats.inference.results import (
    CONSTANT,
    Asked,
    Difference,
    difference_of,
    features_in_common,
    labelled_differences,
    no_difference,
)
from rhale_stats.profiles.data import check_profile, is_nominal, one_profile
from rhale_stats.profiles.inference import degrees_of as profile_degrees
from rhale_stats.schema.checks import check_effect
from rhale_stats.schema.curves import curve_of
from rhale_stats.schema.features import one_feature
from rhale_stats.schema.kinds import EFFECT, ENSEMBLE, PROFILE
from rhale_stats.schema.levels import is_categorical, level_names

NO_P = "members that are no refits have no p-value; see whether the band excludes 0"
NO_RANGE = "the two curves have no points in common"
PAIRED = "of the same members, paired"
APART = "independent"


def compare(a: xr.Dataset, b: xr.Dataset, asked: Asked) -> xr.Dataset:
    """`compare` of two results of several models, or of one with the effect of one model."""
    a, b = _side(a, "a"), _side(b, "b")
    if asked.groups is not None:
        raise ValueError("groups must be None for results of several models.")
    names = features_in_common(a, b)
    paired = _are_paired(a, b, asked)
    streams = np.random.default_rng(asked.rng).spawn(len(names))
    found = [
        _of_feature((_curve(a, name), _curve(b, name)), name, asked, stream, paired=paired)
        for name, stream in zip(names, streams, strict=True)
    ]
    origins = [origin_of(one) for one in (a, b) if ENSEMBLE.holds(one)]
    if not all(origin.is_tested for origin in origins):
        found = [one._replace(p_value=np.nan, reason=one.reason or NO_P) for one in found]
    source = f"{_source(a)} against {_source(b)}, {PAIRED if paired else APART}"
    out = labelled_differences(found, names_of(a), names_of(b), names, source, asked)
    kinds = [origin.interval for origin in origins if not origin.is_tested]
    for name in ("difference_ci", "difference_band"):
        out[name].attrs["ci_kind"] = kinds[0] if kinds else "confidence"
    return out


def _side(one: xr.Dataset, parameter: str) -> xr.Dataset:
    """One of the two results, checked."""
    if ENSEMBLE.holds(one):
        return with_errors(check_ensemble(one, parameter))
    if PROFILE.holds(one):
        return check_profile(one, parameter, needs=("curve_cov",))
    if EFFECT.holds(one):
        return with_std_error(check_effect(one, parameter))
    raise ValueError(
        f"{parameter} must be a result of several models, or the effect or profile of one model, "
        f"to be compared with such a result."
    )


def _source(one: xr.Dataset) -> str:
    """What the error of one of the two results is of."""
    if ENSEMBLE.holds(one):
        return origin_of(one).source
    return str(one["curve_se"].attrs.get("source", "rows"))


def _are_paired(a: xr.Dataset, b: xr.Dataset, asked: Asked) -> bool:
    """Whether the members of both are compared one by one."""
    both = ENSEMBLE.holds(a) and ENSEMBLE.holds(b)
    sizes = [tuple(one.sizes.get(dim, 0) for dim in ("chain", "draw")) for one in (a, b)]
    if asked.paired is not None:
        if not both or sizes[0] != sizes[1]:
            raise ValueError(
                f"paired must be left out unless a and b have the same members; they have (chain, "
                f"draw) {sizes[0]} and {sizes[1]}."
            )
        return True
    known = both and sizes[0] == sizes[1] and _identity(a) is not None
    return bool(known and _identity(a) == _identity(b))


def _identity(one: xr.Dataset) -> Any:
    """What is the same for results of the same members; None where nothing is known."""
    attrs = one.attrs
    if "members" in attrs:
        return attrs["members"]
    seed = attrs.get("seed", -1)
    # Refits of one table by one seed are of the same rows.
    facts = ("source", "scheme", "n_rows", "n_resamples")
    return None if seed == -1 else (seed, *(attrs.get(fact) for fact in facts))


class _Curve(NamedTuple):
    """A curve of one feature: where it is known, its levels, and how to read it off.

    ``of`` is a feature of several models, of an effect with its fit, or of a profile.
    """

    z: FloatArray
    levels: list[str]
    of: Row | tuple[xr.Dataset, Fit] | xr.Dataset | None

    @property
    def row(self) -> Row | None:
        """The feature of several models, if it is one."""
        return self.of if isinstance(self.of, Row) else None


def _curve(one: xr.Dataset, name: str) -> _Curve:
    """The curve of one feature."""
    if ENSEMBLE.holds(one):
        row = one_row(one, name)
        known = np.isfinite(centre_of(row.dataset, "curve")[0])
        known &= np.isfinite(errors(row.dataset, "curve")[0])
        return _Curve(row.z[known], row.levels, row)
    if PROFILE.holds(one):
        profile = one_profile(one, name)
        levels = [str(level) for level in profile["level"].values] if is_nominal(profile) else []
        return _Curve(profile["grid_value"].values, levels, profile)
    found = one_feature(one, name)
    if not found.sizes["bin"]:
        return _Curve(np.zeros(0), [], None)
    fit = fit_of(found)
    levels = level_names(found) if is_categorical(found) else []
    return _Curve(fit.pieces.edges, levels, (found, fit))


class _Values(NamedTuple):
    """Values of a curve at points, their covariance and degrees of freedom."""

    values: FloatArray
    covariance: FloatArray
    degrees: FloatArray


def _at(curve: _Curve, z: FloatArray) -> _Values:
    """A curve at points within its range."""
    if curve.row is not None:
        row = curve.row
        own = own_errors(row.dataset, "curve")[0], degrees_of(row.dataset, "curve")[0]
        se, degrees = (np.interp(z, row.z, values) for values in own)
        return _of_members(_on_points(row, z), se, degrees)
    if isinstance(curve.of, xr.Dataset):
        weight = interpolation(curve.z, z)
        covariance = weight @ curve.of["curve_cov"].values @ weight.T
        degrees = np.interp(z, curve.z, profile_degrees(curve.of))
        return _Values(weight @ curve.of["curve"].values, covariance, degrees)
    assert curve.of is not None, "a curve with points has a source"
    assert not isinstance(curve.of, Row), "results of several models are above"
    found, fit = curve.of
    values = np.interp(z, curve.z, fit.curve) if curve.levels else curve_of(found).at(z)
    return _Values(values, fit.covariance(z), curve_degrees(found, fit, z))


def _on_points(row: Row, z: FloatArray) -> xr.Dataset:
    """The curves of all members at these points."""
    return mapped(row, "curve", interpolation(row.z, z))


def _of_members(curves: xr.Dataset, se: FloatArray, degrees: FloatArray) -> _Values:
    """Estimate, covariance and degrees of one curve of several models."""
    covariance = covariance_of(deviations(curves, "curve")[:, 0], se)
    return _Values(centre_of(curves, "curve")[0], covariance, np.broadcast_to(degrees, se.shape))


def _less(a: xr.Dataset, b: xr.Dataset) -> xr.Dataset:
    """Differences of the curves of the same members."""
    names = [name for name in a.data_vars if name in b]
    return a.assign({name: (a[name].dims, a[name].values - b[name].values) for name in names})


def _points(sides: tuple[_Curve, _Curve]) -> FloatArray:
    """Points of the first of the two that has several models, within the range of both."""
    z = next(side.z for side in sides if side.row is not None)
    low, high = max(side.z[0] for side in sides), min(side.z[-1] for side in sides)
    slack = 1e-9 * (z[-1] - z[0])
    return np.asarray(np.clip(z[(z >= low - slack) & (z <= high + slack)], low, high))


def _of_feature(
    sides: tuple[_Curve, _Curve], name: str, asked: Asked, rng: np.random.Generator, *, paired: bool
) -> Difference:
    """The difference of the curves of one feature, at points of the grid that both reach."""
    if not all(len(side.z) for side in sides):
        return no_difference(CONSTANT)
    levels = [side.levels for side in sides]
    if levels[0] != levels[1]:
        texts = [", ".join(one) or "numbers" for one in levels]
        raise ValueError(
            f"a and b must have the same levels of feature {name!r}; got {' and '.join(texts)}."
        )
    z = _points(sides)
    if len(z) < 2:
        return no_difference(NO_RANGE)
    first, second = (_at(side, z) for side in sides)
    values = (first.values, second.values)
    rows = [side.row for side in sides]
    if paired and rows[0] is not None and rows[1] is not None:
        apart = _less(_on_points(rows[0], z), _on_points(rows[1], z))
        error = error_of(apart, "curve")
        both = _of_members(apart, np.sqrt(error.variance[0]), np.asarray(error.degrees)[0])
        return difference_of(z, values, both.covariance, both.degrees, asked, rng)
    variances = [np.diagonal(one.covariance) for one in (first, second)]
    degrees = intervals.welch(variances[0], variances[1], first.degrees, second.degrees)
    covariance = first.covariance + second.covariance
    return difference_of(z, values, covariance, degrees, asked, rng)
