"""PDP, ICE and M-plots beside ALE and RHALE where features are correlated (RHALE, section 4.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from scipy.special import ndtr

from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.bins.rules import OptimalBins, QuantileBins
from rhale_stats.effects.ale import ale
from rhale_stats.generics.values import predict
from rhale_stats.profiles.dependence import m_plot
from rhale_stats.profiles.pdp import ice, pdp
from rhale_stats.schema.feature_result import one_feature
from rhale_stats.simulate import Ridge
from studies import tools
from studies.report import mean_table
from studies.runner import Options, Output, Scenario, Study
from studies.tools import holds, pm, share

FEATURES = ("x1", "x2", "x3")
METHODS = ("PDP", "M-plot", "ALE", "RHALE")
# An M-plot has no heterogeneity of effects.
SPREADS = ("ICE", "ALE", "RHALE")
ROWS, N_BINS, POINTS = 500, 20, 49
CORRELATION, NOISE = 0.99, 0.01
# Inside the range of the rows of every sample, where truths have their simple form.
RIDGE_GRID = {"x1": (0.02, 0.98), "x2": (0.02, 0.98), "x3": (-0.9, 0.9)}
PRODUCT_GRID = dict.fromkeys(FEATURES, (-1.5, 1.5))
CASES = {"Eq. 17, alpha = 0": 0.0, "Eq. 17, alpha = 1": 1.0}
PRODUCT = "x1 x2, correlation 0.99"


def study(options: Options) -> Study:
    """The study for these options."""
    return Study(
        name="pdp-ice",
        title="PDP and ICE with correlated features",
        source="RHALE, section 4.1, Figures 5 and 6 (math [50]); f = x1 x2 is this package's own",
        claim="With x2 almost equal to x1 a PDP misses the effects of both, and ICE shows "
        "heterogeneity that is not there; RHALE finds average and heterogeneity, and makes three "
        "bins for x1 without the interaction. PDP and ICE are right for x3, which is independent. "
        "For f = x1 x2 with correlation 0.99 a PDP is flat, an M-plot adds the effect of x2 to "
        "that of x1, and ALE and RHALE are right.",
        scenarios=(
            *(Scenario(name, {"alpha": alpha}) for name, alpha in CASES.items()),
            Scenario(PRODUCT, {"alpha": -1.0}),
        ),
        coords={
            "feature": FEATURES,
            "kind": METHODS,
            "spread_kind": SPREADS,
            "grid": list(range(POINTS)),
        },
        outputs={
            "curve_error": Output(("feature", "kind"), "mean along the axis of |curve - truth|"),
            "spread_error": Output(
                ("feature", "spread_kind"), "mean along the axis of |heterogeneity - truth|"
            ),
            "curve": Output(("feature", "kind", "grid"), "curve, 0 on average over the grid"),
            "spread": Output(("feature", "spread_kind", "grid"), "sd of the local effects"),
            "n_bins": Output(("feature",), "bins of RHALE", "bins"),
        },
        replicate=replicate,
        n_replicates=4 if options.quick else 200,
        tables=tables,
        findings=findings,
        figure=figure,
        rows={
            "Mean along": "feature == 'x1' or (feature == 'x3' and scenario.str.endswith('= 1'))",
            "Bins of RHALE": "feature == 'x1'",
        },
        printed_only=("Holds, Eq. 17, alpha = 1",),
    )


def grid_of(alpha: float, feature: str) -> FloatArray:
    """Where curves are compared."""
    ends = PRODUCT_GRID if alpha < 0 else RIDGE_GRID
    return np.linspace(*ends[feature], POINTS)


def truth(alpha: float, feature: str) -> tuple[FloatArray, FloatArray]:
    """Curve, 0 on average over the grid, and heterogeneity of the local effects."""
    z = grid_of(alpha, feature)
    if alpha < 0:
        curve = CORRELATION * z**2 / 2 * (feature != "x3")
        spread = np.full(POINTS, np.sqrt(1 - CORRELATION**2) * (feature != "x3"))
    elif feature == "x3":
        curve, spread = alpha * z / 2, np.full(POINTS, alpha / np.sqrt(12))
    else:
        fine = np.linspace(0, 1, 20_001)
        mean = 2 * ndtr((0.5 - 2 * fine) / NOISE) - ndtr((1 - 2 * fine) / NOISE)
        curve = np.interp(z, fine, np.append(0, np.cumsum((mean[1:] + mean[:-1]) / 2)) * fine[1])
        within = np.interp(z, fine, ndtr((1 - 2 * fine) / NOISE) - mean**2)
        spread = np.sqrt(within + alpha**2 / 4 * (feature == "x1"))
    return curve - curve.mean(), spread


class _Product:
    """f = x1 x2 of standard normal features with a correlation; x3 has no effect."""

    def sample(self, n: int, rng: np.random.Generator) -> pd.DataFrame:
        x1, noise, x3 = rng.normal(size=(3, n))
        x2 = CORRELATION * x1 + np.sqrt(1 - CORRELATION**2) * noise
        return pd.DataFrame({"x1": x1, "x2": x2, "x3": x3})

    def model(self, X: pd.DataFrame) -> FloatArray:
        return np.asarray(X["x1"] * X["x2"])

    def jacobian(self, X: pd.DataFrame) -> FloatArray:
        return np.column_stack([X["x2"], X["x1"], 0 * X["x3"]])


def example_of(alpha: float) -> Any:
    """The simulator of a scenario."""
    return _Product() if alpha < 0 else Ridge(alpha=alpha, noise=NOISE)


def replicate(
    parameters: Mapping[str, Any], rng: np.random.Generator, _context: Any
) -> dict[str, Any]:
    """One sample, with every method."""
    alpha = float(parameters["alpha"])
    example = example_of(alpha)
    X = example.sample(ROWS, rng)
    grids = {feature: grid_of(alpha, feature) for feature in FEATURES}
    dependence = pdp(example.model, X, grid=grids, progress=False)
    slopes = ice(example.model, X, kind="derivative", grid=grids, progress=False)
    marginal = m_plot(example.model, X, bins=QuantileBins(N_BINS))
    finite = ale(example.model, X, bins=QuantileBins(N_BINS), progress=False)
    effect = tools.quiet_rhale(tools.local_of(example, X, None), OptimalBins(), has_spread=False)
    found = []
    for feature, grid in grids.items():
        true_curve, true_spread = truth(alpha, feature)
        profile = marginal.sel(feature=feature)
        at, height = profile["grid_value"].values, profile["curve"].values
        known = np.isfinite(height)
        curves = np.array(
            [
                dependence["curve"].sel(feature=feature).values,
                np.interp(grid, at[known], height[known]),
                predict(finite, grid, feature).values,
                predict(effect, grid, feature).values,
            ]
        )
        curves -= np.nanmean(curves, axis=1, keepdims=True)
        spreads = np.array(
            [
                slopes["curve_std"].sel(feature=feature).values,
                *(spread_at(each, feature, grid) for each in (finite, effect)),
            ]
        )
        found.append(
            {
                "curve": curves,
                "spread": spreads,
                "curve_error": np.nanmean(np.abs(curves - true_curve), axis=1),
                "spread_error": np.nanmean(np.abs(spreads - true_spread), axis=1),
                "n_bins": float(effect["n_bins"].sel(feature=feature)),
            }
        )
    return tools.by_name(found)


def spread_at(effect: xr.Dataset, feature: str, grid: FloatArray) -> FloatArray:
    """Heterogeneity of the bins that the points of the grid lie in."""
    row = one_feature(effect, feature)
    return np.asarray(row["heterogeneity"].values[bin_index(row.bin_edges, grid)])


def tables(results: xr.Dataset) -> list[tuple[str, pd.DataFrame]]:
    """Errors of curves and spreads."""
    return [
        (
            "Mean along the axis of |curve - truth|, both 0 on average over the grid",
            mean_table(results, ["curve_error"], ["feature", "kind"]),
        ),
        (
            "Mean along the axis of |heterogeneity - truth|, of local effects",
            mean_table(results, ["spread_error"], ["feature", "spread_kind"]),
        ),
        (
            "Bins of RHALE",
            mean_table(results, ["n_bins"], ["feature"]),
        ),
    ]


def findings(results: xr.Dataset) -> list[str]:
    """Does it hold."""
    error, spread = results["curve_error"], results["spread_error"]

    def of(scenario: str, feature: str, kind: str) -> xr.DataArray:
        return error.sel(scenario=scenario, feature=feature, kind=kind)

    def apart(scenario: str, feature: str, kind: str) -> xr.DataArray:
        return spread.sel(scenario=scenario, feature=feature, spread_kind=kind)

    found = []
    for scenario in CASES:
        worse = min(
            float((of(scenario, f, "PDP") / of(scenario, f, "RHALE")).mean()) for f in ("x1", "x2")
        )
        found.append(
            f"{holds(worse > 2)}, {scenario}: a PDP misses the effects of x1 and x2. Its curves "
            f"are off by {pm(of(scenario, 'x1', 'PDP'))} and {pm(of(scenario, 'x2', 'PDP'))}, "
            f"RHALE's by {pm(of(scenario, 'x1', 'RHALE'))} and {pm(of(scenario, 'x2', 'RHALE'))}, "
            f"those of ALE with {N_BINS} bins by {pm(of(scenario, 'x1', 'ALE'))} and "
            f"{pm(of(scenario, 'x2', 'ALE'))}. The curves run over heights of 0.25."
        )
        ours, theirs = (apart(scenario, "x1", kind).mean() for kind in ("RHALE", "ICE"))
        found.append(
            f"{holds(theirs > 1.5 * ours)}, {scenario}: the heterogeneity of ICE is not there. For "
            f"x1 it is off by {pm(apart(scenario, 'x1', 'ICE'))}, RHALE's by "
            f"{pm(apart(scenario, 'x1', 'RHALE'))}."
        )
    with_interaction = list(CASES)[1]
    right = float(of(with_interaction, "x3", "PDP").mean())
    found.append(
        f"{holds(right < 0.05)}: PDP and ICE are right for x3. The curve is off by "
        f"{pm(of(with_interaction, 'x3', 'PDP'))}, the heterogeneity by "
        f"{pm(apart(with_interaction, 'x3', 'ICE'))}; RHALE's by "
        f"{pm(of(with_interaction, 'x3', 'RHALE'))} and "
        f"{pm(apart(with_interaction, 'x3', 'RHALE'))}."
    )
    bins = results["n_bins"].sel(scenario=next(iter(CASES)), feature="x1")
    found.append(
        f"{holds((bins == 3).mean() > 0.5)}: without the interaction RHALE makes three bins for "
        f"x1; it does in {share(bins == 3)} of samples, and {pm(bins)} bins on average."
    )
    good = max(float(of(PRODUCT, "x1", kind).mean()) for kind in ("ALE", "RHALE"))
    bad = min(float(of(PRODUCT, "x1", kind).mean()) for kind in ("PDP", "M-plot"))
    found.append(
        f"{holds(bad > 4 * good)}: for f = x1 x2 with correlation {CORRELATION} only ALE and RHALE "
        "are right. The curve of x1 is 0.495 x1² in truth, with a height of 1.1 here; "
        + ", ".join(f"{kind} is off by {pm(of(PRODUCT, 'x1', kind))}" for kind in METHODS)
        + ". The PDP is flat, the M-plot twice as high as it should be."
    )
    return found


def figure(results: xr.Dataset) -> Figure:
    """Figures 5 and 6, and the product: curves of the first sample."""
    colours = dict(
        zip(METHODS, ("#cc78bc", "#029e73", tools.FIXED_COLOUR, tools.RHALE_COLOUR), strict=True)
    )
    fig, axes = tools.panels(results.sizes["scenario"], len(FEATURES))
    for row, scenario in zip(axes, results["scenario"].values, strict=True):
        alpha = float(results["alpha"].sel(scenario=scenario))
        for ax, feature in zip(row, FEATURES, strict=True):
            one = results["curve"].sel(scenario=scenario, feature=feature).isel(replicate=0)
            grid = grid_of(alpha, feature)
            for kind in METHODS:
                ax.plot(grid, one.sel(kind=kind), color=colours[kind], linewidth=1.1, label=kind)
            true = truth(alpha, feature)[0]
            ax.plot(
                grid, true, color=tools.TRUTH_COLOUR, linestyle=":", linewidth=1.8, label="truth"
            )
            ax.set(xlabel=feature)
        row[0].set_ylabel(f"{scenario}\neffect")
    axes[0, 0].legend(frameon=False, fontsize="x-small")
    return fig
