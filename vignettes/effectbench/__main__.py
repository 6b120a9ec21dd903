"""Run the benchmark: ``python -m effectbench``, or with an adapter of your own.

    python -m effectbench [module:function ...] [--rows 1000] [--picture effectbench.png]

Prints one line a package: distances from the exact effects in standard deviations of these, the
share of places whose exact ALE is in the interval, and how often the column by which rows differ
was found, or none where they do not.
"""

from __future__ import annotations

import argparse
import importlib
import time
import warnings

import numpy as np
import pandas as pd
import xarray as xr

from effectbench.adapters import ADAPTERS, Adapter
from effectbench.processes import FILE, PROCESSES, Values

CURVES = ("ale", "pdp", "heterogeneity")


def distance(estimate: Values, truth: Values, name: str) -> float:
    """Root mean square distance; of curves about their means, in deviations of the truth."""
    if name == "heterogeneity":
        return float(np.sqrt(np.mean((estimate - truth) ** 2)))
    away = (estimate - estimate.mean()) - (truth - truth.mean())
    return float(np.sqrt(np.mean(away**2)) / np.std(truth))


def scores(adapter: Adapter, n_rows: int) -> pd.DataFrame:
    """A line a process: what an adapter does on rows that are the same for all adapters."""
    truths, lines = xr.load_dataset(FILE), []
    for number, process in enumerate(PROCESSES):
        truth = truths.isel(process=number)
        X = process.rows(n_rows, np.random.default_rng(number))
        begun = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = adapter(process, X, truth["x1"].values)
        line: dict[str, object] = {"process": process.name, "seconds": time.perf_counter() - begun}
        for name in CURVES:
            if name in found:
                line[name] = distance(np.asarray(found[name]), truth[name].values, name)
        if "interval" in found:
            low, high = np.asarray(found["interval"]) - np.mean(found["ale"])
            exact = truth["ale"].values - truth["ale"].values.mean()
            line["covered"] = float(np.mean((low <= exact) & (exact <= high)))
        if "split_by" in found:
            line["split"] = found["split_by"] == str(truth["split_by"].values)
        lines.append(line)
    return pd.DataFrame(lines)


def table(each: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """One line a package: medians of distances, means of shares, all seconds."""
    lines = {}
    for name, frame in each.items():
        line = {curve: frame[curve].median() for curve in CURVES if curve in frame}
        line |= {share: frame[share].mean() for share in ("covered", "split") if share in frame}
        lines[name] = line | {"seconds": frame["seconds"].sum()}
    return pd.DataFrame(lines).T.reindex(columns=[*CURVES, "covered", "split", "seconds"])


def draw(each: dict[str, pd.DataFrame], path: str) -> None:
    """Distances of all processes, one panel a curve, one line of dots a package."""
    import seaborn as sns

    frames = [frame.assign(package=name) for name, frame in each.items()]
    whole = pd.concat(frames).melt(["package"], list(CURVES), "curve", "distance").dropna()
    whole["distance"] = whole["distance"].clip(lower=1e-4)
    grid = sns.catplot(
        whole, x="distance", y="package", col="curve", kind="strip", height=2.4, aspect=1.3, s=3
    )
    grid.set(xscale="log").set_titles("{col_name}")
    grid.savefig(path, dpi=150)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="effectbench", description=__doc__)
    parser.add_argument("adapters", nargs="*", help="module:function of adapters beside ours")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--picture")
    chosen = parser.parse_args()
    adapters = dict(ADAPTERS)
    for text in chosen.adapters:
        module, _, function = text.partition(":")
        adapters[text] = getattr(importlib.import_module(module), function)
    each = {}
    for name, adapter in adapters.items():
        try:
            each[name] = scores(adapter, chosen.rows)
        except ImportError as error:
            print(f"{name}: not installed ({error.name})")
    print(table(each).round(3).to_string(na_rep=""))
    if chosen.picture:
        draw(each, chosen.picture)


if __name__ == "__main__":
    main()
