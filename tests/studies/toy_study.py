"""A study of the mean and quantiles of a few normal numbers, which fails in every way on demand."""

from __future__ import annotations

import os

import matplotlib.pyplot as plt
import numpy as np

from studies import Options, Output, Scenario, Study
from studies.report import mean_table

NAME = "toy"
LEVELS = (0.25, 0.5, 0.75)
SHIFT = 100.0
# Reaches spawned processes, too: the sample size whose replicates act as if Ctrl-C were pressed.
INTERRUPT = "TOY_INTERRUPT"
VARIANTS = (None, "failing", "wrong-names", "wrong-shape", "wrong-type", "text")
# Sample sizes of the replicates that were made in this process.
calls: list[int] = []


def study(options: Options) -> Study:
    if options.settings not in VARIANTS:
        raise ValueError(f"settings must be one of {VARIANTS}; got {options.settings!r}.")
    variant = options.settings or ""
    return Study(
        name=NAME,
        title="Means of normal numbers",
        source="Figure 1 of a textbook",
        claim="The mean is unbiased.",
        scenarios=(
            Scenario("few", {"n": 5, "sd": 1.0, "variant": variant, "only_here": 1}),
            Scenario("many", {"n": 50, "sd": 2, "variant": variant}),
        ),
        coords={"level": LEVELS},
        outputs={
            "mean": Output((), "mean", "cm"),
            "quantile": Output(("level",), "empirical quantile", "cm"),
        },
        replicate=replicate,
        n_replicates=4 if options.quick else 12,
        tables=lambda results: [
            ("Means", mean_table(results, ["mean"])),
            ("Quantiles", mean_table(results, ["quantile"], by=["level"])),
        ],
        findings=lambda results: [f"The mean is {float(results['mean'].mean()):.0f}."],
        figure=figure,
        prepare=prepare,
        takes=("settings", "data"),
    )


def prepare(options):
    if options.data is not None:
        raise ValueError("data must not be given; this study reads no file.")
    return {"shift": SHIFT}


def replicate(parameters, rng, context):
    calls.append(parameters["n"])
    if os.environ.get(INTERRUPT) == str(parameters["n"]):
        raise KeyboardInterrupt
    x = context["shift"] + parameters["sd"] * rng.normal(size=parameters["n"])
    out = {"mean": x.mean(), "quantile": np.quantile(x, LEVELS)}
    match parameters.pop("variant"):  # its own copy, which it may change
        case "failing" if x.mean() > SHIFT and len(x) == 5:
            raise ValueError("above\n the shift\0")
        case "wrong-names":
            return {"mean": 0.0, "median": 0.0}
        case "wrong-shape":
            return out | {"quantile": 0.0}
        case "wrong-type":
            return [1.0]
        case "text":
            return out | {"mean": "one"}
    return out


def figure(results):
    made, ax = plt.subplots(figsize=(2, 2))
    ax.plot(results["mean"].values.T)
    return made
