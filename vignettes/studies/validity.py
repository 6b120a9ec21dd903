"""How far every interval, band and test can be trusted: coverage and size, by kind of process."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from studies.runner import Options, Output, Scenario, Study
from studies.tools import holds, panels
from studies.validity_claims import BLOCKS
from studies.validity_processes import Process, drawn_processes
from studies.validity_rows import OWN_BLOCKS, SPREADS, UNBIASED
from studies.validity_table import (
    CHOSEN,
    CONDITIONS,
    COVERAGE,
    ROWS,
    SHOWN,
    SIZE,
    Rate,
    at,
    chosen_table,
    drawn_table,
    hard_table,
    page,
    rate_of,
    validity_table,
)
from studies.validity_words import CLAIMS, GROUPS, KEYS

NOISE = {"log-normal": ("log-normal", 1.0), "10:90": ("two-point", 0.1), "t3": ("t", 3.0)}
# Samples in a replicate, with 30 rows a bin and with others.
SAMPLES = {
    "effects": (40, 12),
    "tests": (40, 12),
    "comparisons": (16, 6),
    "bootstraps": (8, 3),
    "profiles": (6, 2),
    "surfaces": (8, 3),
    "h": (8, 3),
    "slope": (20, 20),
    "homogeneous": (10, 10),
}
# Cases that failed in earlier versions and are among the conditions: by condition, rows, blocks.
CASES = {
    ("log-normal", 30): (1, ("effects", "tests")),
    ("log-normal", 100): (1, ("effects",)),
    ("10:90", 30): (1, ("effects", "tests")),
    ("t3", 30): (1, ("effects",)),
    ("clustered", 30): (5, ("effects", "tests")),
    ("clustered", 100): (5, ("effects", "tests")),
    ("weighted", 30): (6, ("effects", "tests")),
    ("weighted", 100): (6, ("effects", "tests")),
    ("normal", 30): (7, ("bootstraps",)),
}
# Blocks that make errors by groups in fixed bins.
BY_GROUPS = ("effects", "tests", "comparisons", "bootstraps")
# Rows for one row a bin: that of a linear bin is alone, and a surface has 16 cells.
SCALE = {"slope": 1, "surfaces": 16}
TABLE_SHAPES = ("smooth", "stepped", "flat")
TABLE_PLACES = ("uniform", "normal", "exponential", "log-normal")
NOT_DRAWN = {"condition": "", "rows": 0, "place": "", "effect": "", "case": ""}


def study(options: Options) -> Study:
    """The study for these options."""
    # Positions are seeds.
    scenarios = [*_of_conditions(), *_of_chosen(), *_of_drawn(), *_of_cases()]
    if options.quick:
        scenarios = _few(scenarios)
    return Study(
        name="validity",
        title="How far intervals, bands and tests can be trusted",
        source="math [24] to [32], [39], [41] to [45], [59] and [62]; this package's own claims",
        claim="At a nominal 95 %, intervals and bands cover 93 to 97 %, and tests at 5 % reject 3 "
        "to 7.5 %, for skewed, clustered and weighted rows and for chosen bins as well.",
        scenarios=tuple(scenarios),
        coords={"claim": KEYS},
        outputs={
            "value": Output(("claim",), "share covered, share rejected, or a factor"),
        },
        replicate=replicate,
        n_replicates=2 if options.quick else 14,
        tables=tables,
        findings=findings,
        figure=figure,
        prepare=lambda given: 2 if given.quick else 10**6,
        page=page,
    )


def _few(scenarios: list[Scenario]) -> list[Scenario]:
    """One of every block, and a process drawn at random."""
    kept: dict[str, Scenario] = {}
    for one in scenarios:
        block, rows = str(one.parameters["block"]), one.parameters["rows"]
        if block not in BLOCKS or rows == SHOWN:
            kept.setdefault(block, one)
        if str(one.parameters["condition"]).startswith("drawn"):
            kept.setdefault("drawn", one)
    return list(kept.values())


def _scenario(name: str, block: str, samples: int, **own: Any) -> Scenario:
    process = {field: getattr(Process(), field) for field in Process.parameters()}
    number = {"case_number": str(own.pop("number", ""))}
    given = {**NOT_DRAWN, **process, **own, "block": block, "samples": samples, **number}
    return Scenario(name, given)


def _condition(condition: str) -> dict[str, Any]:
    if condition in NOISE:
        noise, shape = NOISE[condition]
        return {"noise": noise, "shape": shape}
    return {"clustered": {"n_groups": 40}, "weighted": {"weighted": 1}}.get(condition, {})


def _of_conditions() -> list[Scenario]:
    """The table of the page: every block in every condition, by rows a bin."""
    found = []
    for block, condition, rows in product(BLOCKS, CONDITIONS, ROWS):
        if block == "homogeneous" and condition != "normal":
            continue
        if block == "h" and condition in ("clustered", "weighted"):
            continue
        # A bin of ten rows may hold rows of one group alone, which has no error by groups.
        by_groups = condition == "clustered" and block in BY_GROUPS
        if rows == ROWS[0] and (by_groups or block == "slope"):
            continue
        samples = SAMPLES[block][rows != SHOWN]
        n = rows * SCALE.get(block, 10)
        own = _condition(condition) | {"condition": condition, "rows": rows, "n": n}
        number, blocks = CASES.get((condition, rows), (0, ()))
        if block in blocks:
            own["number"] = number
        found.append(_scenario(f"{block}, {condition}, {rows} rows a bin", block, samples, **own))
    return found


def _of_chosen() -> list[Scenario]:
    found = []
    for n, place, effect in product((300, 1000, 10_000), TABLE_PLACES, TABLE_SHAPES):
        own = {"condition": CHOSEN, "rows": n, "place": place, "effect": effect, "n": n}
        name = f"chosen, {place}, {effect}, N = {n}"
        found.append(_scenario(name, "chosen", 15 if n < 10_000 else 5, **own))
    return found


def _of_drawn() -> list[Scenario]:
    found = []
    for number, own in enumerate(drawn_processes(), start=1):
        words = ", ".join(
            [
                f"{own['noise']} ({own['shape']:g})",
                f"beta({own['a']:g}, {own['b']:g})",
                f"{own['link']} link",
                *([f"{own['n_groups']} groups"] if own["n_groups"] else []),
                *(["weights"] if own["weighted"] else []),
                f"N = {own['n']}, {own['n_bins']} bins",
            ]
        )
        condition = f"drawn {number}: {words}"
        for block in ("effects", "tests"):
            name = f"{condition}; {block}"
            found.append(_scenario(name, block, 15, **own, condition=condition))
    return found


def _of_cases() -> list[Scenario]:
    """Cases that failed in earlier versions, by number; those of `CASES` are made already."""
    skewed = _condition("log-normal")
    found = [
        *(
            _scenario(f"1: log-normal, N = {n}, {n_bins} bins; {block}", block, 15, number=1, **own)
            for n, n_bins, blocks in ((2000, 20, ("tests", "effects")), (200, 10, ("effects",)))
            for own in ({**skewed, "n": n, "n_bins": n_bins},)
            for block in blocks
        ),
        _scenario("2: least squares, refitted, N = 500", "refitted", 20, number=2, n=500),
        *(
            _scenario(f"3: {case}, N = {n}", "splits", 40, number=3, case=case, n=n)
            for case, n in (
                ("binary, sd 6 and 1, share .08", 300),
                ("binary, sd 6 and 1, share .15", 100),
                ("spread by exp(a), log-normal", 300),
                ("binary by z", 300),
                ("clustered, ICC .7", 100),
                ("clustered, ICC .2", 300),
            )
        ),
        *(
            _scenario(f"4: {case}, N = {n}", "spreads", 20, number=4, case=case, n=n)
            for case, n in product(SPREADS, (300, 3000))
        ),
        _scenario("8: no effect, N = 300, 10 bins", "sizes", 10, number=8, n=300),
        *(
            _scenario(
                f"9: {case}, {noise}, N = {n}",
                "unbiased",
                30,
                number=9,
                case=case,
                n=n,
                noise=noise,
            )
            for case, noise, n in product(UNBIASED, ("normal", "log-normal"), (200, 1000))
        ),
        *(
            _scenario(f"10: smooth model, exponential x, N = {n}", "jumps", 5, number=10, n=n)
            for n in (300, 1000)
        ),
        _scenario("11: exponential features, N = 150", "exponential h", 10, number=11, n=150),
        _scenario(
            "chosen, exponential, smooth, N = 300, log-normal noise",
            "chosen",
            15,
            condition="skewed",
            place="exponential",
            effect="smooth",
            n=300,
            noise="log-normal",
            rows=300,
        ),
    ]
    return found


def replicate(parameters: Mapping[str, Any], rng: np.random.Generator, most: int) -> dict[str, Any]:
    """Several samples of one scenario; claims that it does not have are NaN."""
    block, samples = str(parameters["block"]), min(int(parameters["samples"]), most)
    if block in OWN_BLOCKS:
        found = OWN_BLOCKS[block](parameters, rng, samples)
    else:
        found = BLOCKS[block](Process.of(parameters), rng, samples)
    value = np.full(len(KEYS), np.nan)
    for name, hits in found.items():
        known = hits[np.isfinite(hits)]
        if len(known):
            value[KEYS.index(name)] = known.mean()
    return {"value": value}


# What came out -----------------------------------------------------------------------------------


def tables(results: xr.Dataset) -> list[tuple[str, pd.DataFrame]]:
    """All tables of the page."""
    found = [(group, validity_table(results, claims)) for group, claims in GROUPS.items()]
    found += [
        ("Bins chosen on the same rows", chosen_table(results)),
        ("Ten processes drawn at random", drawn_table(results)),
        ("Hard cases", hard_table(results)),
    ]
    return [(title, table) for title, table in found if len(table)]


def rates(results: xr.Dataset) -> list[tuple[str, str, Rate]]:
    """Every rate that was measured: its scenario, its claim, and the rate."""
    found = []
    for k, scenario in enumerate(results["scenario"].values):
        for claim in CLAIMS:
            rate = rate_of(results, claim, [k])
            if not np.isnan(rate.percent):
                found.append((str(scenario), claim, rate))
    return found


def findings(results: xr.Dataset) -> list[str]:
    """How many of the rates are as claimed, by group of claims."""
    every, lines = rates(results), []
    for group, claims in GROUPS.items():
        own = [(claim, rate) for _, claim, rate in every if claim in claims]
        if not own:
            continue
        good = [rate.holds(claim) for claim, rate in own]
        lines.append(
            f"{holds(all(good))}: {group}: {sum(good)} of {len(good)} rates are at most two "
            f"Monte-Carlo errors below {COVERAGE[0]:g} % or, of tests, above {SIZE[1]:g} %."
        )
    return lines


def figure(results: xr.Dataset) -> Figure:
    """Rates with 30 rows a bin, by claim and condition."""
    fig, axes = panels(1, 2)
    for ax, is_test in zip(axes.flat, (False, True), strict=True):
        claims = [name for name, words in CLAIMS.items() if words.is_test == is_test]
        shown = []
        for name in claims:
            here = [
                rate_of(results, name, at(results, condition=c, rows=SHOWN)) for c in CONDITIONS
            ]
            if any(not np.isnan(rate.percent) for rate in here):
                shown.append((name, here))
        for number, condition in enumerate(CONDITIONS):
            percent = [here[number].percent for _, here in shown]
            ax.plot(percent, -np.arange(len(shown)), "o", markersize=3, label=condition)
        ax.set_yticks(-np.arange(len(shown)), [name for name, _ in shown])
        ax.axvspan(*(SIZE if is_test else COVERAGE), color="0.9", zorder=0)
        ax.set(xlabel="rejected, %" if is_test else "covered, %")
    axes[0, 0].legend(frameon=False, fontsize="x-small")
    fig.set_size_inches(12, 7)
    return fig
