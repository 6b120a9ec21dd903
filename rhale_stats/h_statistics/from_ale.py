"""H-statistics from accumulated local effects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from rhale_stats.arguments.checks import check_finite
from rhale_stats.arrays import h_statistics as arrays
from rhale_stats.arrays import second_order as kernel
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.bins.rule import BinRule
from rhale_stats.h_statistics.from_pdp import HELD_BYTES, codes, predictions
from rhale_stats.h_statistics.labelled import Found, centred, mean_square
from rhale_stats.models import differences
from rhale_stats.surfaces.ale2 import second_differences
from rhale_stats.surfaces.axes import FeatureAxis, Grid, Order, axis_of, order_of

# --- accumulated local effects --------------------------------------------------------------------


def from_ale(
    quotients: differences.DifferenceQuotients,
    positions: list[int],
    pairs: list[tuple[int, int]],
    w: FloatArray,
    rule: BinRule,
    order: Order,
    bar: tqdm[Any],
    *,
    frequency: bool,
) -> Found:
    """math [61], and [62] where the second differences of all pairs can be held."""
    table = quotients.table
    prediction, least = predictions(quotients)
    n_rows, n_outputs = prediction.shape
    axes: list[FeatureAxis | None] = []
    main, curves = [], []
    for position in positions:
        axis = None
        if codes(table, position).max() > 0:
            axis = axis_of(table, position, rule, order_of(order, table, position), w)
        axes.append(axis)
        at_rows, curve = _main_effect(quotients, position, axis, w, n_outputs)
        main.append(at_rows)
        curves.append(curve)
    interactions = np.zeros((len(positions), *prediction.shape))
    every = np.zeros(prediction.shape)
    pair, joint = [], []
    seconds: list[list[arrays.Pair]] = []
    n_sides = sum(
        len(a.axis.sides) * len(b.axis.sides)
        for a, b in ((axes[j], axes[k]) for j, k in pairs)
        if a is not None and b is not None
    )
    # With a difference there is the number of its cell.
    held = 2 * n_sides * n_rows * n_outputs * 8 <= HELD_BYTES
    for j, k in pairs:
        a, b = axes[j], axes[k]
        second = np.zeros(prediction.shape)
        seconds.append([])
        if a is not None and b is not None:
            delta, _ = second_differences(
                quotients, (positions[j], positions[k]), (a, b), progress=False
            )
            grid = Grid(a, b, w, frequency=frequency)
            for number in range(n_outputs):
                cells = grid.cells(delta[..., number])
                found = grid.surface(cells)
                second[:, number] = kernel.surface_at_values(
                    found.pure, a.place, b.place, a.fraction, b.fraction
                )
                if held:
                    fill = kernel.filling(cells.supported)
                    of = kernel.Influence(*grid.axes, fill, grid.table, found, cells, centred=True)
                    places = a.place, b.place
                    at = curves[j][0].at, curves[k][0].at
                    seconds[-1].append(arrays.Pair(of, *places, grid.cell, delta[..., number], *at))
            second = centred(second, w)
        pair.append(second)
        joint.append(centred(main[j] + main[k] + second, w))
        interactions[[j, k]] += second
        every += second
        bar.update()
    share = w / w.sum()
    whole = centred(prediction, w)
    influences = None
    if held:
        influences = [
            _ale_influences(
                _AtRows(
                    *(np.array(one)[..., number] for one in (every, interactions, pair, joint))
                ),
                whole[:, number],
                pairs,
                [curve[number] if curve else None for curve in curves],
                [second[number] if second else None for second in seconds],
                share,
                float(w.sum()),
            )
            for number in range(n_outputs)
        ]
    return Found(
        mean_square(every, w),
        np.array([mean_square(one, w) for one in interactions]),
        mean_square(whole, w),
        pairs,
        np.array([mean_square(one, w) for one in pair]),
        np.array([mean_square(one, w) for one in joint]),
        least,
        influences,
    )


class _AtRows(NamedTuple):
    """Values at the rows of what is squared: last axis rows."""

    every: FloatArray
    overall: FloatArray
    pair: FloatArray
    joint: FloatArray


def _ale_influences(
    at: _AtRows,
    whole: FloatArray,
    pairs: list[tuple[int, int]],
    curves: Sequence[arrays.Curve | None],
    seconds: Sequence[arrays.Pair | None],
    share: FloatArray,
    total_weight: float,
) -> arrays.Squares:
    """math [62] of one output: (..., row)."""
    moved = np.zeros(len(whole))
    moved_overall = np.zeros(at.overall.shape)
    of_pair, of_joint = [], []
    for (j, k), second, own, joint in zip(pairs, seconds, at.pair, at.joint, strict=True):
        by_pair, by_joint = np.zeros((2, len(whole)))
        if second is not None:
            e = np.stack([own, joint, at.overall[j], at.overall[k], at.every], axis=1)
            by_pair, by_joint, by_j, by_k, by_all = second.moved(share[:, None] * e).T
            moved_overall[j] += by_j
            moved_overall[k] += by_k
            moved += by_all
        for curve in (curves[j], curves[k]):
            by_joint = by_joint + (0.0 if curve is None else curve.moved(share * joint))
        # By a unit of weight; a share is that much of the total.
        of_pair.append(arrays.of_mean_square(own, total_weight * by_pair, share))
        of_joint.append(arrays.of_mean_square(joint, total_weight * by_joint, share))
    return arrays.Squares(
        arrays.of_mean_square(at.every, total_weight * moved, share),
        np.array(
            [
                arrays.of_mean_square(e, total_weight * by, share)
                for e, by in zip(at.overall, moved_overall, strict=True)
            ]
        ),
        arrays.of_mean_square(whole, np.zeros(len(whole)), share),
        np.array(of_pair),
        np.array(of_joint),
    )


def _main_effect(
    quotients: differences.DifferenceQuotients,
    position: int,
    axis: FeatureAxis | None,
    w: FloatArray,
    n_outputs: int,
) -> tuple[FloatArray, list[arrays.Curve]]:
    """First-order ALE at the rows, in the bins of the second order: (row, output).

    Beside it the curve of every output with its rows.
    """
    n = quotients.table.n_rows
    if axis is None:
        return np.zeros((n, n_outputs)), []
    along = axis.axis
    sums = np.zeros((along.n_bins, n_outputs))
    mass = np.zeros(along.n_bins)
    changes = []
    for number, side in enumerate(along.sides):
        lower, upper = axis.versions[number : number + 2]
        change, _ = quotients.between(position, lower, upper)
        check_finite(
            change.sum(axis=1), "Differences", axis.name, "See what the model returns there."
        )
        changes.append(change)
        step = axis.place + side
        inside = (step >= 0) & (step < along.n_bins)
        np.add.at(sums, step[inside], w[inside, None] * change[inside])
        mass += np.bincount(step[inside], w[inside], along.n_bins)
    steps = np.divide(sums, mass[:, None], out=np.zeros(sums.shape), where=mass[:, None] > 0)
    curve = kernel.from_zero(steps.T).T
    change, at = (
        np.stack(changes, axis=1),
        arrays.interpolation(along.n_edges, axis.place, axis.fraction),
    )
    curves = [
        arrays.Curve(along, axis.place, change[..., number], steps[:, number], mass, at)
        for number in range(n_outputs)
    ]
    return centred(kernel.at_values(curve, axis.place, axis.fraction), w), curves
