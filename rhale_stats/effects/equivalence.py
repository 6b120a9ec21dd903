"""Tests that effects are small (math [31])."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rhale_stats.arguments.checks import check_choice
from rhale_stats.arrays.intervals import unskewed
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.effects.anova_test import Wald
from rhale_stats.effects.errors import with_std_error
from rhale_stats.effects.fit import bin_degrees, noise_in_the_middle
from rhale_stats.effects.hypotheses import fields_of_tests
from rhale_stats.inference import meaning
from rhale_stats.inference.adjustment import ADJUSTMENTS
from rhale_stats.inference.results import CONSTANT, labelled_test
from rhale_stats.schema.checks import check_effect
from rhale_stats.schema.features import one_feature, resolution, slopes
from rhale_stats.schema.parts import over_outputs
from rhale_stats.schema.validation import validated


@validated
@over_outputs
def equivalence_test(effect: xr.Dataset, delta: float, *, adjust: str = "holm") -> xr.Dataset:
    r"""Equivalence test: whether the effect is smaller than ``delta`` in absolute value everywhere.

    Parameters
    ----------
    effect : Dataset
        What `rhale` or `std_error` returned.
    delta : float
        Equivalence margin, in units of the effect; positive.
    adjust : str, default "holm"
        Adjustment of the p-values over features.

    Returns
    -------
    Dataset
        Over (feature): ``statistic``, the smallest distance of an effect from -delta or delta in
        standard errors, corrected for skewness as intervals are; ``df``, the degrees of freedom of
        that bin; ``p_value`` of the null hypothesis that some effect is at least delta in absolute
        value; ``p_value_adjusted``. A small p-value is evidence that all effects are smaller.

    Raises
    ------
    ValueError
        ``delta`` is not positive.

    Notes
    -----
    Two one-sided tests (Schuirmann 1987) in every bin. Every bin must pass, so no adjustment over
    bins is needed. In a linear bin the effect is tested at both ends. Where `std_error` found the
    errors of effects skewed (``effect_skewness``), the tests allow for it as `confint` does.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> local = rs.local_effects(lambda X: 2 * X[:, 0] + 0.1 * X[:, 0] * X[:, 1], X)
    >>> effect = rs.rhale(local, bins=rs.EqualWidthBins(5))
    >>> rs.equivalence_test(effect, 0.1)["p_value"].round(3).values
    array([1., 0.])
    """
    effect = check_effect(effect)
    check_choice("adjust", adjust, ADJUSTMENTS)
    if not 0 < delta < np.inf:
        raise ValueError(f"delta must be positive and finite; got {delta!r}.")
    effect = with_std_error(effect)
    rows = []
    for number in range(effect.sizes["feature"]):
        row = one_feature(effect, number)
        rows.append(_small(row, delta) if row.sizes["bin"] else Wald(reason=CONSTANT))
    return labelled_test(
        effect,
        fields_of_tests(rows),
        adjust,
        null=f"some effect is {delta:g} or more, or -{delta:g} or less",
        source=str(effect["effect_se"].attrs["source"]),
        test=f"equivalence_test, delta {delta:g}",
    )


def _small(row: xr.Dataset, delta: float) -> Wald:
    """Statistic, degrees of freedom and p-value of the bin with the largest p-value."""
    from scipy import stats

    slope, half = slopes(row), np.diff(row["edge_value"].values) / 2
    linear = slope != 0
    effect, degrees = row["effect"].values, bin_degrees(row)
    n = row["n_effective"].values
    least = resolution(effect, float(row["local_effect_error"]))
    se = [row["effect_se"].values]
    values = [effect]
    if linear.any():
        noise = noise_in_the_middle(row)
        for end in (-half, half):
            values.append(effect + slope * end)
            se.append(np.sqrt(np.maximum(noise.variance_along(np.ones(len(n)), end * linear), 0.0)))
    value = np.array(values)
    # Ratios to an error near 0 stay within floating point, cubed as well.
    error = np.maximum(np.maximum(np.array(se), least), 1e-100 * (np.abs(value) + delta))
    skewness = _skewness(row, np.array(se))
    # What an effect of delta, or of -delta, would have as its error.
    above, below = (unskewed((value - end) / error, skewness) for end in (delta, -delta))
    distance = np.minimum(-above, below)
    pvalue = np.asarray(stats.t.sf(distance, np.broadcast_to(degrees, distance.shape)))
    if np.isnan(pvalue).all():
        return Wald(reason=meaning.NO_ROWS)
    # In a bin without a standard error nothing can be concluded.
    if np.isnan(pvalue).any():
        return Wald(p_value=1.0)
    place, k = np.unravel_index(int(np.argmax(pvalue)), pvalue.shape)
    return Wald(float(distance[place, k]), float(degrees[k]), float(pvalue[place, k]))


def _skewness(row: xr.Dataset, se: FloatArray) -> FloatArray:
    """Skewness of the errors of the effects, and at the ends of lines; slopes add none."""
    skewness = row["effect_skewness"].values if "effect_skewness" in row else np.zeros(se.shape[1])
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.nan_to_num(skewness * np.minimum(se[:1] / se, 1.0) ** 3))
