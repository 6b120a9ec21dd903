"""Coverage with and without the correction for skewness, on the same samples (math [64]).

``python vignettes/studies skewed 20`` prints the tables of math [64], each rate from 20 times
15 samples. Numbers after the first choose some of the cases, 0 the surfaces and equivalence tests.
"""

from __future__ import annotations

import sys
from itertools import product
from typing import Any

import numpy as np

from rhale_stats.effects.fit import SKEWNESS
from rhale_stats.effects.hypotheses import equivalence_test
from rhale_stats.generics.uncertainty import confband, confint, std_error
from rhale_stats.surfaces.inference import SKEWNESS as OF_SURFACES
from studies.validity_claims import (
    BAND_DRAWS,
    SURFACE_BINS,
    at_delta,
    covered,
    fitted,
    held_by,
    product_surface,
    rejected,
)
from studies.validity_processes import Process, drawn_processes

SAMPLES = 15
CLAIMS = ("effect", "effect band", "curve", "curve band", "average effect")
NOISES = {
    "normal": ("normal", 0.0),
    "t3": ("t", 3.0),
    "log-normal(0, 0.5)": ("log-normal", 0.5),
    "log-normal(0, 1)": ("log-normal", 1.0),
    "10:90": ("two-point", 0.1),
}
# Groups, whether rows have weights, and rows, in 10 bins.
DEPENDENCES: dict[str, dict[str, Any]] = {
    "40 groups, 30 rows a bin": {"n_groups": 40, "n": 300},
    "40 groups, 100 rows a bin": {"n_groups": 40, "n": 1000},
    "150 groups, 150 rows a bin": {"n_groups": 150, "n": 1500},
    "weights, 30 rows a bin": {"weighted": 1, "n": 300},
    "weights, 100 rows a bin": {"weighted": 1, "n": 1000},
}


def cases() -> dict[str, Process]:
    """The ten processes of the study of validity, then noises with groups and with weights."""
    found = {f"process {k}": Process(**own) for k, own in enumerate(drawn_processes(), start=1)}
    for dependence, own in DEPENDENCES.items():
        for name, (noise, shape) in NOISES.items():
            found[f"{name}, {dependence}"] = Process(noise=noise, shape=shape, **own)
    return found


def coverage(process: Process, rng: np.random.Generator) -> dict[str, tuple[float, float]]:
    """Shares covered in `SAMPLES` samples by claim, without and with the correction.

    "width" has median widths of the intervals of effects.
    """
    _, effect = fitted(process, process.draw(rng, SAMPLES))
    seed, found = int(rng.integers(2**32)), []
    for one in (effect.drop_vars(SKEWNESS, errors="ignore"), effect):
        made = confint(one)
        held = held_by(process, made, confband(one, n_draws=BAND_DRAWS, rng=seed))
        shares = {claim: float(np.nanmean(held[claim])) for claim in CLAIMS}
        found.append({**shares, "width": float(made["effect_ci"].diff("ci_bound").median())})
    return {name: (found[0][name], found[1][name]) for name in found[0]}


def line(name: str, process: Process, n_replicates: int) -> str:
    """A line of the table: rates in per cent, with Monte-Carlo errors of those with correction."""
    found = [
        coverage(process, np.random.default_rng([1, number, process.n]))
        for number in range(n_replicates)
    ]
    cells = []
    for claim in CLAIMS:
        without, with_it = (100 * np.array([one[claim][k] for one in found]) for k in range(2))
        error = with_it.std(ddof=1) / np.sqrt(n_replicates)
        cells.append(f"{without.mean():.1f} → {with_it.mean():.1f} ± {error:.1f}")
    widths = np.array([one["width"] for one in found]).mean(axis=0)
    cells.append(f"{widths[1] / widths[0]:.3f}")
    return f"| {name} | {' | '.join(cells)} |"


def equivalence(process: Process, rng: np.random.Generator) -> tuple[float, float]:
    """Rejections of the equivalence test in per cent where one bin has an effect of delta."""
    effect = at_delta(process, process.draw(rng, SAMPLES))
    without = effect.drop_vars(SKEWNESS, errors="ignore")
    made = (rejected(equivalence_test(one, 1.0)) for one in (without, effect))
    before, after = (100 * float(one.mean()) for one in made)
    return before, after


def surface(process: Process, rng: np.random.Generator) -> tuple[float, float]:
    """Coverage of the cells of a surface in per cent; a cell has as many rows as a bin."""
    edges = np.linspace(-1, 1, SURFACE_BINS + 1)
    truth, hits = np.outer(np.diff(edges), np.diff(edges)).ravel(), []
    n = process.n // process.n_bins * SURFACE_BINS**2
    for _ in range(SAMPLES):
        x = rng.uniform(-1, 1, (n, 2))
        found = std_error(
            product_surface(edges, 1.0, X=np.column_stack([x, process.noises(rng, (n, 1))]))
        )
        both = found.drop_vars(OF_SURFACES, errors="ignore"), found
        ends = (confint(one)["second_effect_ci"][:-1, :-1].values.reshape(-1, 2) for one in both)
        hits.append([float(covered(one, truth)) for one in ends])
    without, with_it = 100 * np.mean(hits, axis=0)
    return float(without), float(with_it)


def others(n_replicates: int) -> None:
    """Print the table of surfaces and of equivalence tests, without and with the correction."""
    sys.stdout.write(
        "| | cells of a surface, covered | equivalence_test, rejected |\n|---|---|---|\n"
    )
    for name, rows in product(("log-normal(0, 1)", "10:90"), (30, 100)):
        noise, shape = NOISES[name]
        process = Process(noise=noise, shape=shape, n=10 * rows)
        cells = []
        for measured in (surface, equivalence):
            found = np.array(
                [measured(process, np.random.default_rng([2, k])) for k in range(n_replicates)]
            )
            errors = found.std(axis=0, ddof=1) / np.sqrt(n_replicates)
            ends = [f"{a:.1f} ± {b:.1f}" for a, b in zip(found.mean(axis=0), errors, strict=True)]
            cells.append(" → ".join(ends))
        sys.stdout.write(f"| {name}, {rows} rows | {' | '.join(cells)} |\n")
        sys.stdout.flush()


def main(arguments: list[str]) -> None:
    """Print the tables."""
    n_replicates, *chosen = (int(one) for one in arguments or ["20"])
    if not chosen or 0 in chosen:
        others(n_replicates)
    if chosen == [0]:
        return
    sys.stdout.write(f"| | {' | '.join(CLAIMS)} | width |\n{'|---' * (len(CLAIMS) + 2)}|\n")
    for number, (name, process) in enumerate(cases().items(), start=1):
        if not chosen or number in chosen:
            sys.stdout.write(f"{line(name, process, n_replicates)}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
