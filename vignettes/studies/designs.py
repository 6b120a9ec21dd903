"""Coverage and size under designs, imputation, for places on the axis, and of monotone curves.

``python vignettes/studies designs 400`` prints the table of docs/validity.md, in per cent, from as
many samples a cell; further words choose some of the lines.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import statsmodels.formula.api as smf
import xarray as xr
from numpy.typing import NDArray

import rhale_stats as rs

N_STRATA, N_CLUSTERS, N_REPLICATES, N_IMPUTATIONS = 3, 60, 100, 5
Noise = Callable[[np.random.Generator, int], NDArray[Any]]
NOISES: dict[str, Noise] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "log-normal": lambda rng, n: np.asarray(rng.lognormal(size=n) - np.exp(0.5)),
    "10:90": lambda rng, n: ((rng.uniform(size=n) < 0.1) - 0.1) / 0.3,
}
Found = dict[str, bool]


def held(result: xr.Dataset, truth: dict[int, float]) -> list[bool]:
    """Whether the intervals of some lines of a table have their truth."""
    table = rs.tidy(result)
    return [
        bool(table["conf_low"][line] <= value <= table["conf_high"][line])
        for line, value in truth.items()
    ]


def population(noise: Noise, rng: np.random.Generator) -> pd.DataFrame:
    """Rows in clusters within strata, of which outcomes and sizes of clusters differ."""
    stratum = np.repeat(np.arange(N_STRATA), N_CLUSTERS)
    size = rng.integers(5, 25, len(stratum)) + 10 * stratum
    rows = pd.DataFrame({"stratum": stratum, "cluster": np.arange(len(stratum))})
    rows["level"] = 0.5 * noise(rng, len(rows)) + rows["stratum"]
    rows = rows.loc[rows.index.repeat(size)].reset_index(drop=True)
    rows["x"] = rng.normal(size=len(rows)) + 0.3 * rows["level"]
    rows["part"] = np.where(rng.uniform(size=len(rows)) < 0.3, "u", "v")
    rows["y"] = rows["x"] + rows["level"] + noise(rng, len(rows))
    return rows


def survey(noise: Noise, clusters: int, rng: np.random.Generator) -> Found:
    """Clusters drawn within strata at unequal rates; targets are those of the population."""
    rows = population(noise, rng)
    drawn, replicates = [], []
    for stratum in range(N_STRATA):
        numbers, m = rows["cluster"][rows["stratum"] == stratum].unique(), clusters + 2 * stratum
        chosen = rng.choice(numbers, m, replace=False)
        part = rows[rows["cluster"].isin(chosen)].assign(w=N_CLUSTERS / m)
        times = rng.multinomial(m - 1, np.full(m, 1 / m), N_REPLICATES).T * m / (m - 1)
        place = pd.Series(range(m), chosen)
        replicates.append(times[place[part["cluster"]].to_numpy()] * N_CLUSTERS / m)
        drawn.append(part)
    sample = pd.concat(drawn).reset_index(drop=True)
    fit = smf.wls("y ~ x * part", sample, weights=sample["w"]).fit()
    every = smf.ols("y ~ x * part", rows).fit()
    truth = rs.averages(every, rows, "x", uncertainty="rows")["average"].values
    parts = rs.averages(every, rows, "x", by="part", uncertainty="rows")["average"].values
    linearised = rs.SurveyDesign(sample["cluster"], sample["stratum"], fpc=N_CLUSTERS)
    weights: dict[str, Any] = {"weights": sample["w"], "weight_kind": "sampling"}
    claims: Found = {}
    for name, design in (
        ("linearised", linearised),
        ("replicate weights", rs.SurveyDesign(replicates=np.vstack(replicates), scale="bootstrap")),
        ("as if rows were independent", None),
    ):
        result = rs.averages(fit, sample, "x", groups=design, **weights)
        if name == "linearised":
            claims["survey, linearised: a note"] = "skewed" in str(rs.summary(result))
        claims |= dict(
            zip(
                (f"survey, {name}: average", f"survey, {name}: slope"),
                held(result, dict(enumerate(truth))),
                strict=True,
            )
        )
    result = rs.averages(fit, sample, "x", by="part", groups=linearised, **weights)
    [claims["survey, linearised: slope of a part"]] = held(result, {1: float(parts[1, 0])})
    return claims


def trial(noise: Noise, n: int, rng: np.random.Generator) -> Found:
    """Risks of two arms, randomised within strata, with a covariate that has this noise."""
    X = pd.DataFrame({"stratum": np.resize(["a", "b", "c"], n)})
    X["arm"] = np.resize(np.repeat(["0", "1"], 3), n)
    level = -0.4 + 0.5 * (X["stratum"] == "b")

    def risks(covariate: NDArray[Any], levels: Any) -> tuple[float, float]:
        logits = (levels - 0.3 * covariate + effect for effect in (0, 0.9))
        low, high = (float(np.mean(1 / (1 + np.exp(-logit)))) for logit in logits)
        return low, high

    X["z"] = noise(rng, n)
    p = 1 / (1 + np.exp(-level + 0.3 * X["z"] - 0.9 * (X["arm"] == "1")))
    X["y"] = (rng.uniform(size=n) < p).astype(int)
    fit = smf.logit("y ~ arm + stratum + z", X).fit(disp=0)
    many = noise(np.random.default_rng(0), 300_000)
    low, high = risks(many, np.resize(level, len(many)))
    design, claims = rs.SurveyDesign(strata=X["stratum"]), {}
    for name, truth in (("difference", high - low), ("ratio", high / low)):
        result = rs.averages(fit, X, "arm", comparison=name, groups=design)
        [claims[f"trial with strata: {name}"]] = held(result, {1: truth})
    result = rs.averages(fit, X, "arm", groups=design)[{"term": [1]}]
    test = rs.hypotheses(result, margin=high - low)
    claims["`hypotheses(margin=)` at the margin"] = bool(test["p_equivalence"][0] < 0.05)
    return claims


def imputed(noise: Noise, n: int, rng: np.random.Generator) -> Found:
    """A third of the outcomes missing at random by x; drawn from a regression with its errors."""
    x = rng.normal(size=n)
    y = x + noise(rng, n)
    gone = rng.uniform(size=n) < 0.6 / (1 + np.exp(-x))

    def tables(degree: int) -> Iterator[pd.DataFrame]:
        exog = x[:, None] ** np.arange(degree + 1)
        inverse = np.linalg.inv(exog[~gone].T @ exog[~gone])
        b = inverse @ exog[~gone].T @ y[~gone]
        residual, free = y[~gone] - exog[~gone] @ b, (~gone).sum() - degree - 1
        for _ in range(N_IMPUTATIONS):
            sigma = np.sqrt(residual @ residual / rng.chisquare(free))
            line = rng.multivariate_normal(b, sigma**2 * inverse)
            filled = np.where(gone, exog @ line + sigma * rng.normal(size=n), y)
            yield pd.DataFrame({"x": x, "y": filled})

    results = [rs.averages(smf.ols("y ~ x", data).fit(), data) for data in tables(1)]
    names = ("`pool`: average", "`pool`: slope")
    claims = dict(zip(names, held(rs.pool(results), {0: 0.0, 1: 1.0}), strict=True))
    effects = []
    for data in tables(2):
        fit, X = smf.ols("y ~ x + I(x**2)", data).fit(), data[["x"]]
        local = rs.local_effects(fit, X)
        effect = rs.rhale(local, bins=rs.GivenBins([-6, 0, 6]))
        effects.append(rs.std_error(effect, local, model=fit, X=X))
    low, high = rs.confint(rs.pool(effects))["effect_ci"].sel(feature="x").values[0]
    # Effects of the population are 1 everywhere.
    return claims | {"`pool`: effect in a bin": bool(low <= 1 <= high)}


def places(noise: Noise, n: int, rng: np.random.Generator) -> Found:
    """Places of the maximum and of a zero of a fitted parabola."""
    X = pd.DataFrame({"x": rng.uniform(-1, 2, n)})
    data = X.assign(y=-((X["x"] - 0.5) ** 2) + 0.5 * noise(rng, n))
    fit = smf.ols("y ~ x + I(x**2)", data).fit()
    profile = rs.pdp(fit, X, "x", grid={"x": np.linspace(-1, 2, 25)}, centering="start")
    local = rs.local_effects(fit, X)
    claims = {}
    for name, result in (
        ("`pdp`", rs.std_error(profile, model=fit, X=X)),
        ("`rhale`", rs.std_error(rs.rhale(local), local, model=fit, X=X)),
    ):
        try:
            place = rs.hypotheses(result, "maximum")
        except ValueError:  # the sample shows none
            continue
        [claims[f"`hypotheses`, {name}: maximum"]] = held(place, {0: 0.5})
    return claims


def monotone(noise: Noise, n: int, rng: np.random.Generator) -> Found:
    """Constant curves, the hypothesis that is nearest to others; rejected at 5 %."""
    x = rng.uniform(-1, 1, (n, 1))
    local = rs.local_effects(None, x, jacobian=noise(rng, n)[:, None], features=[0])
    effect = rs.std_error(rs.rhale(local, bins=rs.EqualWidthBins(4)))
    return {
        f'`wald_test(effect, "{null}")`': bool(rs.wald_test(effect, null)["p_value"][0] < 0.05)
        for null in ("increasing", "decreasing")
    }


SCENARIOS = {
    "survey, 15 clusters": partial(survey, clusters=3),
    "survey, 24 clusters": partial(survey, clusters=6),
    "survey, 126 clusters": partial(survey, clusters=40),
    "trial, 150 patients": partial(trial, n=150),
    "trial, 600 patients": partial(trial, n=600),
    "imputation, 50 rows": partial(imputed, n=50),
    "imputation, 300 rows": partial(imputed, n=300),
    "places, 60 rows": partial(places, n=60),
    "places, 300 rows": partial(places, n=300),
    "monotone, 30 rows a bin": partial(monotone, n=120),
    "monotone, 100 rows a bin": partial(monotone, n=400),
}


def main(n_samples: int, *chosen: str) -> None:
    """Print a line a scenario and claim, a column a noise."""
    print("| | claim |", " | ".join(NOISES), "|\n|---|---|" + "---|" * len(NOISES))
    for scenario, draw in SCENARIOS.items():
        if chosen and not any(word in scenario for word in chosen):
            continue
        cells: dict[str, list[str]] = {}
        for number, noise in enumerate(NOISES.values()):
            streams = np.random.default_rng(number).spawn(n_samples)
            claims = pd.DataFrame([draw(noise, rng=rng) for rng in streams])
            for claim, column in claims.items():
                share, n = column.mean(), column.notna().sum()
                error = np.sqrt(share * (1 - share) / n)
                cells.setdefault(str(claim), []).append(f"{100 * share:.1f} ± {100 * error:.1f}")
        for claim, texts in cells.items():
            print("|", scenario, "|", claim, "|", " | ".join(texts), "|", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
