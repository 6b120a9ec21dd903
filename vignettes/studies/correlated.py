"""Regions with correlated features: PDP beside RHALE (RegionalRHALE, Figures 5 and 6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import NDArray

from rhale_stats.arrays.moments import FloatArray
from rhale_stats.bins.rules import OptimalBins
from rhale_stats.generics.values import predict
from rhale_stats.regional.comparisons import regional_ale, regional_pdp
from rhale_stats.regional.regions import regional_rhale, regions
from rhale_stats.schema.in_bins import in_bins
from rhale_stats.simulate import TwoRegimes
from studies import tools
from studies.report import mean_table
from studies.runner import Options, Output, Scenario, Study
from studies.tools import holds, pm, share

METHODS = ("PDP", "RHALE", "ALE")
ROWS = 500
# Inside the range of the rows of nearly every sample; effects beyond a sample's are not known.
GRID = np.linspace(-0.95, 0.95, 39)
SIDES = ("x3 ≤ 0", "x3 > 0")


def study(options: Options) -> Study:
    """The study for these options."""
    return Study(
        name="correlated",
        title="Regions with correlated features",
        source="RegionalRHALE, section 3.2, Figures 5 and 6 (math [53])",
        claim="y = 3 x1 1{x3 > 0} - 3 x1 1{x3 <= 0} + x3. With independent features both r-PDP and "
        "r-RHALE find a global effect of zero with high heterogeneity, and the regions x3 > 0 and "
        "x3 <= 0 with effects 3 x1 and -3 x1 and no heterogeneity. With x3 = x1 only r-RHALE finds "
        "the effect 3 x1 1{x1 > 0} - 3 x1 1{x1 <= 0}, without heterogeneity and without regions; "
        "r-PDP gives the same result as before.",
        scenarios=(
            Scenario("independent", {"correlated": 0}),
            Scenario("x3 = x1", {"correlated": 1}),
        ),
        coords={"kind": METHODS, "grid": GRID.tolist(), "side": SIDES},
        outputs={
            "split": Output(("kind",), "whether there are regions"),
            "true_split": Output(("kind",), "whether they are exactly x3 <= 0 and x3 > 0"),
            "root_loss": Output(("kind",), "loss of all rows (PDP: units of the output squared)"),
            "share_left": Output(("kind",), "loss of the tree over that of all rows"),
            "curve_error": Output(("kind",), "mean along the axis of |curve - truth|"),
            "curve": Output(("kind", "grid"), "global curve, 0 on average over the grid"),
            "spread": Output(("kind", "grid"), "its heterogeneity"),
            "regional": Output(("kind", "side", "grid"), "curves where the true regions found"),
        },
        replicate=replicate,
        n_replicates=4 if options.quick else 200,
        tables=tables,
        findings=findings,
        figure=figure,
    )


def truth(correlated: bool) -> FloatArray:
    """The effect of x1 on the grid, 0 on average."""
    curve = 3 * np.abs(GRID) * float(correlated)
    return np.asarray(curve - curve.mean())


def replicate(
    parameters: Mapping[str, Any], rng: np.random.Generator, _context: Any
) -> dict[str, Any]:
    """One sample, with every method."""
    example = TwoRegimes(correlated=bool(parameters["correlated"]))
    X = example.sample(ROWS, rng)
    local = tools.local_of(example, X)
    effect = tools.quiet_rhale(local, OptimalBins(), has_spread=False)
    trees = {
        "PDP": regional_pdp(example.model, X, "x1", test=None),
        "RHALE": regions(local, "x1", conditioning=X, test=None),
        "ALE": regional_ale(example.model, X, "x1", test=None),
    }
    positive = X["x3"].to_numpy() > 0
    found = []
    for method, tree in trees.items():
        region = tree["region_of_row"].values
        exact = tree.sizes["node"] == 3 and np.array_equal(region, positive.astype(int))
        leaves = tree["region"].values >= 0
        loss, weight = tree["loss"].values, tree["weight_share"].values
        curves = np.full((len(SIDES), len(GRID)), np.nan)
        if method == "RHALE":
            curve = _centred(predict(effect, GRID, "x1").values)
            of_bins = in_bins(effect)
            edges, std = (of_bins[name].values[0] for name in ("edge_value", "curve_std_sum"))
            spread = np.interp(GRID, edges, std)
            if exact:
                own = regional_rhale(local, tree, weighting="rows")
                for side in range(len(SIDES)):
                    curves[side] = predict(own.isel(region=side), GRID, "x1").values
        else:
            at = tree["grid_value"].values
            every = [np.interp(GRID, at, one) for one in tree["curve"].values]
            curve = _centred(every[0])
            spread = np.interp(GRID, at, tree["curve_std"].values[0])
            if exact:
                curves[:] = every[1:]
        found.append(
            {
                "split": float(tree.sizes["node"] > 1),
                "true_split": float(exact),
                "root_loss": loss[0],
                # Of a loss of nothing, all is left.
                "share_left": (loss * weight)[leaves].sum() / loss[0] if loss[0] > 0 else 1.0,
                "curve_error": np.abs(curve - truth(example.correlated)).mean(),
                "curve": curve,
                "spread": spread,
                "regional": curves,
            }
        )
    return tools.by_name(found)


def _centred(curve: NDArray[Any]) -> FloatArray:
    """Less its mean where it is known."""
    return np.asarray(curve - np.nanmean(curve))


def tables(results: xr.Dataset) -> list[tuple[str, pd.DataFrame]]:
    """Regions, losses and errors."""
    return [
        (
            "Regions: whether there are any, and whether they are the true ones",
            mean_table(results, ["split", "true_split", "share_left"], ["kind"]),
        ),
        (
            "Loss of all rows (each method's own), and error of the global curve",
            mean_table(results, ["root_loss", "curve_error"], ["kind"]),
        ),
    ]


def findings(results: xr.Dataset) -> list[str]:
    """Does it hold."""
    apart, together = (results.isel(scenario=k) for k in (0, 1))

    def of(one: xr.Dataset, name: str, method: str) -> xr.DataArray:
        return one[name].sel(kind=method)

    both = [of(apart, "true_split", method).mean() for method in ("PDP", "RHALE")]
    left = [float(of(apart, "share_left", method).max()) for method in ("PDP", "RHALE")]
    error = [of(together, "curve_error", method).mean() for method in METHODS]
    quiet = of(together, "split", "RHALE").mean()
    wrong = of(together, "split", "PDP").mean()
    slopes = {}
    for method in ("PDP", "RHALE"):
        curves = of(apart, "regional", method)
        ends = curves.isel(grid=-1) - curves.isel(grid=0)
        slopes[method] = (ends / (GRID[-1] - GRID[0])).mean("replicate").values
    said = ", ".join(f"r-{name}: {a:.3f} and {b:.3f}" for name, (a, b) in slopes.items())
    return [
        f"{holds(min(both) >= 0.95)}: with independent features the regions are exactly "
        f"x3 ≤ 0 and x3 > 0 in {share(of(apart, 'true_split', 'PDP'))} of samples by r-PDP and in "
        f"{share(of(apart, 'true_split', 'RHALE'))} by r-RHALE, with mean slopes {said} (truth: -3 "
        f"and 3). At most {left[0]:.1g} and {left[1]:.1g} of the loss of all rows are left. "
        "The global curve, 0 in truth, is off by "
        f"{pm(of(apart, 'curve_error', 'PDP'))} and {pm(of(apart, 'curve_error', 'RHALE'))} on "
        "average along the axis.",
        f"{holds(quiet <= 0.05 and error[1] < 0.1)}: with x3 = x1 r-RHALE makes regions in "
        f"{share(of(together, 'split', 'RHALE'))} of samples, and its curve is off by "
        f"{pm(of(together, 'curve_error', 'RHALE'))} from 3 |x1|.",
        f"{holds(wrong >= 0.95 and error[0] > 0.3)}: with x3 = x1 r-PDP makes the same regions "
        f"as before in {share(of(together, 'true_split', 'PDP'))} of samples, and its global curve "
        f"is off by {pm(of(together, 'curve_error', 'PDP'))}.",
        f"{holds(of(together, 'split', 'ALE').mean() > 0.05 or error[2] > 0.1)}: that only "
        f"r-RHALE is right. r-ALE, which the paper does not try, makes regions in "
        f"{share(of(together, 'split', 'ALE'))} of samples, and its curve is off by "
        f"{pm(of(together, 'curve_error', 'ALE'))}. What matters is that local effects are "
        "computed at the observed rows.",
    ]


def figure(results: xr.Dataset) -> Figure:
    """Figures 5 and 6, with the regions: curves of the first sample."""
    fig, axes = tools.panels(2, len(METHODS), sharey=True)
    for row, scenario in zip(axes, results["scenario"].values, strict=True):
        for ax, method in zip(row, METHODS, strict=True):
            one = results.sel(scenario=scenario, kind=method).isel(replicate=0)
            curve, spread = one["curve"].values, one["spread"].values
            ax.fill_between(GRID, curve - spread, curve + spread, color="#f3cfb3", linewidth=0)
            ax.plot(GRID, curve, color=tools.FIXED_COLOUR, linewidth=1.4, label="all rows")
            for side, own in zip(SIDES, one["regional"].values, strict=True):
                if np.isfinite(own).any():
                    ax.plot(GRID, own, color=tools.RHALE_COLOUR, linewidth=1.0, linestyle="--")
                    at = int(np.flatnonzero(np.isfinite(own))[-1])
                    up = side == SIDES[1]
                    ax.annotate(
                        side,
                        (GRID[at], own[at]),
                        (0, 4 if up else -4),
                        textcoords="offset points",
                        ha="right",
                        va="bottom" if up else "top",
                        fontsize="x-small",
                        color=tools.RHALE_COLOUR,
                    )
            true = truth(bool(results["correlated"].sel(scenario=scenario)))
            ax.plot(
                GRID, true, color=tools.TRUTH_COLOUR, linestyle=":", linewidth=1.4, label="truth"
            )
            ax.set(title=f"r-{method}, {scenario}", xlabel="x1")
        row[0].set_ylabel("effect ± heterogeneity\n(dashed: regions)")
    axes[0, 0].legend(frameon=False, fontsize="x-small", loc="lower center")
    return fig
