"""Bootstrap of results whose rows are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from rhale_stats.arguments.checks import check_choice
from rhale_stats.arguments.seeds import seeded
from rhale_stats.arguments.words import shown
from rhale_stats.arrays import leverage, resample
from rhale_stats.generics.dispatch import method
from rhale_stats.inference.draws import GRID, Resampling, chains_of, in_chains
from rhale_stats.schema.parts import over_outputs, over_row_sets
from rhale_stats.schema.validation import Options, validated
from rhale_stats.schema.variables import software


@dataclass(frozen=True)
class ResamplingOptions(Options):
    """How `bootstrap` draws replicates, and what it estimates in each.

    Parameters
    ----------
    scheme : {"multinomial", "bayesian", "poisson"}
        "multinomial": as many rows as there are, drawn with replacement (Efron 1979). "bayesian":
        exponential weights, with which no bin is ever empty (Rubin 1981). "poisson": every row a
        Poisson number of times.
    chains : int, default 4
        Independent streams, so that ArviZ can compare them: ``arviz.summary(boot)``,
        ``arviz.plot_forest(boot)``, ``arviz.hdi(boot)``.
    rebin : bool, default False
        Choose the edges again in every replicate, by the rule of ``effect``. Results are on a grid
        of ``n_grid`` points. The numbers of draws enter as precision weights, because two draws of
        one row are not independent observations; ``min_obs`` of the rule is scaled with the
        effective number of rows.
    n_grid : int, default 101
        Number of grid points with ``rebin``.
    studentize : bool, default False
        Also compute the standard errors of every replicate, for studentised intervals. Not
        available with ``rebin``, nor with linear bins and ``weighting="rows"``.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> local = rs.local_effects(lambda X: X[:, 0] * X[:, 1], X)
    >>> resampling = rs.ResamplingOptions(scheme="bayesian", chains=2)
    >>> boot = rs.bootstrap(rs.rhale(local), local, n_resamples=20, resampling=resampling, rng=0)
    >>> boot.sizes["chain"]
    2
    """

    scheme: str = "multinomial"
    chains: int = 4
    rebin: bool = False
    n_grid: int = GRID
    studentize: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("scheme", self.scheme, resample.SCHEMES)


@validated
@seeded
@over_outputs
@over_row_sets
def bootstrap(
    effect: xr.Dataset,
    local: xr.Dataset | None = None,
    *,
    n_resamples: int = 1000,
    groups: ArrayLike | None = None,
    strata: ArrayLike | None = None,
    resampling: ResamplingOptions = ResamplingOptions(),
    statistic: Callable[[xr.Dataset], xr.Dataset | xr.DataArray] | None = None,
    rng: np.random.Generator | int | None = None,
    progress: bool = True,
    **fields: Any,
) -> xr.Dataset:
    r"""Bootstrap replicates of all estimates, by resampling the rows with the model as given.

    Parameters
    ----------
    effect, local : Dataset
        The effect that `rhale` or `std_error` made, and the local effects that it was made from, in
        any order; or `pdp`, and what `ice` returned of the same rows on the same grid. Results that
        keep their rows are passed alone: `ice`, `m_plot`, `shap_dependence`, a surface of `ale2`,
        and H-statistics that were made
        with ``keep_answers=True``. With honest bins the rows on which the edges were chosen are
        left out. Local effects in chunks are read once, with ``scheme="poisson"`` and without
        groups, strata, rebin and studentize (math [100]).
    n_resamples : int, default 1000
        Replicates of all chains together. Where ``chains`` does not divide it, there are as many
        chains as do: 999 replicates are 3 chains of 333.
    groups : array_like of shape (n_rows,), optional
        Group of every row; rows of one group, which may depend on each other, are drawn together. A
        Series is aligned by its labels.
    strata : array_like of shape (n_rows,), optional
        Stratum of every row. From each stratum as many rows, or groups, are drawn as it has.
    resampling : ResamplingOptions, optional
        How replicates are drawn, and what is estimated in each. Its fields can be given directly,
        as in ``scheme="bayesian"``.
    statistic : callable, optional
        A function of the Dataset of all replicates, called once. What it returns, over (chain,
        draw) and any other dimensions, is added to the result.
    rng : Generator, int or None
        Source of the weights, or its seed. Every replicate has its own random stream: results do
        not depend on the number of threads or on the available memory. Several outputs get the same
        weights. None draws a new seed; ``seed`` in the attributes of the result reproduces it (-1
        with a Generator).
    %(progress)s

    Returns
    -------
    Dataset
        Over (chain, draw, feature, bin): ``effect``, ``heterogeneity`` and, with linear bins,
        ``slope``; over (chain, draw, feature, edge): ``curve``; over (chain, draw, feature):
        ``average_effect``,
        ``heterogeneity_index``, ``heterogeneity_output``, ``importance``, ``aled``, ``aler_min``,
        ``aler_max`` (see `effect_sizes`) and ``n_empty``, the number of bins without rows in a
        replicate, or of linear bins with rows at a single value. Their estimates are NaN and, with
        ``weighting="rows"``, the curve is NaN, too. A cell of the curve keeps its original estimate
        if none of its rows is drawn. With ``studentize`` also the standard errors ``effect_se``,
        ``heterogeneity_se``, ``curve_se`` and ``average_effect_se``. Coordinates as in ``effect``.
        With ``rebin``: ``effect``, ``heterogeneity`` and ``curve`` over (chain, draw, feature,
        grid) at ``grid_value``, ``n_bins`` of every replicate, and ``edge_frequency`` (feature,
        grid_cell): the share of replicates with an edge between two neighbouring grid points. For a
        surface: ``second_effect`` (chain, draw, bin_a, bin_b), NaN in cells without rows in the
        replicate; ``n_filled`` (chain, draw), the number of these cells; and ``surface`` (chain,
        draw, edge_a, edge_b), in which these cells are filled as by `ale2`. For H-statistics:
        ``h2``, ``h``, ``h2_overall`` and the others over (chain, draw, ...).

        For profiles: ``curve`` and ``curve_std`` over (chain, draw, feature, grid), centred anew in
        every replicate, ``heterogeneity_output`` and ``importance`` over (chain, draw, feature);
        for M-plots and SHAP dependence also ``n_empty``, the number of grid points without a curve
        in a replicate. Bins, and the smoothing parameter and knots of splines, are held fixed.

    Raises
    ------
    ValueError
        ``local`` is not what ``effect`` was made
        from; groups or strata have another length or are missing in some row; a group is in two
        strata; ``studentize`` where there are no standard errors; ``rebin`` with frequency weights.
    TypeError
        ``local`` or ``effect`` is not a Dataset.

    Notes
    -----
    The source of variance is the sampling of rows. An additive model has no heterogeneity, and the
    bootstrap intervals of its bin effects correctly have width 0. They do not include the
    uncertainty of the model itself: see `bootstrap_refit`.

    Simulated coverage by kind of process, and what to use where this fails: docs/validity.md.

    References
    ----------
    Efron (1979), *Annals of Statistics* 7, 1-26. Rubin (1981), *Annals of Statistics* 9, 130-134.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> local = rs.local_effects(lambda X: 2 * X[:, 0] + 4 * X[:, 0] * X[:, 1], X)
    >>> effect = rs.std_error(rs.rhale(local, bins=rs.EqualWidthBins(4)))
    >>> boot = rs.bootstrap(effect, local, n_resamples=400, rng=0)
    >>> boot["effect"].sel(feature="x0").std(("chain", "draw")).round(2).values
    array([0.23, 0.21, 0.2 , 0.19])
    >>> effect["effect_se"].sel(feature="x0").round(2).values
    array([0.23, 0.22, 0.19, 0.18])
    """
    seeds = np.random.default_rng(rng).spawn(n_resamples)
    settings = Resampling(
        resampling.scheme,
        groups,
        strata,
        seeds,
        resampling.rebin,
        resampling.studentize,
        resampling.n_grid,
        progress,
    )
    of_rows, result = (effect, None) if local is None else (local, effect)
    drawn = method("bootstrap", effect)(of_rows, result, settings)
    facts = {
        "method": "bootstrap",
        "scheme": resampling.scheme,
        "n_resamples": n_resamples,
        "n_units": drawn.units.n,
        "n_strata": len(drawn.units.strata),
        "source": "rows" if groups is None else "groups of rows",
        "model": "as given",
        **drawn.facts,
        "software": software(),
    }
    if drawn.units.unit is not None:
        # Of a mean over the rows, by the shares of the groups.
        rows = np.ones(len(drawn.units.unit))
        shares = leverage.of_mean(drawn.units.unit, rows, frequency=True)
        facts["units_df"] = leverage.mean_degrees(shares)
    out = in_chains(
        drawn.replicates.assign_attrs({**drawn.effect.attrs, **facts}),
        chains_of(n_resamples, resampling.chains),
    )
    if statistic is not None:
        out = out.merge(_named(statistic(out), out))
    return out


def _named(computed: xr.Dataset | xr.DataArray, replicates: xr.Dataset) -> xr.Dataset:
    """What a user's ``statistic`` returned, as a Dataset; an array keeps its name."""
    if not isinstance(computed, xr.Dataset | xr.DataArray):
        raise TypeError(
            f"statistic must return a Dataset or a DataArray of the replicates it is given; got "
            f"{shown(computed)}."
        )
    if isinstance(computed, xr.Dataset):
        return computed
    has_name = computed.name is not None and computed.name not in replicates
    return computed.to_dataset(name=computed.name if has_name else "statistic")
