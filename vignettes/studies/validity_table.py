"""The tables of the study of validity, and its page."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from studies.validity_words import CLAIMS, FACTORS, GROUPS, KEYS, Words

CONDITIONS = ("normal", "log-normal", "10:90", "t3", "clustered", "weighted")
CHOSEN = "chosen bins"
ROWS = (10, 30, 100)
SHOWN = 30
# Aims in per cent; more coverage and smaller sizes are conservative.
COVERAGE, SIZE = (93.0, 97.0), (3.0, 7.5)
# Head of the column that says how often a note warns.
SAID = "summary has a note"


# Not among the hard cases: claims that never failed there, or that have a line of the same kind,
# and what has a column.
LEFT_OUT = (
    "note",
    *("curve", "cell curve", "average effect", "equivalence_test"),
    *("wald_test zero, wald", "wald_test constant, wald"),
    *(name for name in GROUPS["Bootstrap"] if "index" not in name),
)


class Rate(NamedTuple):
    """A rate in per cent with its Monte-Carlo error."""

    percent: float
    error: float

    def holds(self, claim: str) -> bool:
        """Whether it is at most two Monte-Carlo errors on the wrong side of its aim."""
        if CLAIMS[claim].is_test:
            return bool(self.percent - 2 * self.error <= SIZE[1])
        return bool(self.percent + 2 * self.error >= COVERAGE[0])

    def text(self, claim: str) -> str:
        """For a table, in bold where the claim does not hold."""
        if np.isnan(self.percent):
            return ""
        said = f"{self.percent:.1f} ± {self.error:.1f}"
        return said if self.holds(claim) else f"**{said}**"


def rate_of(results: xr.Dataset, claim: str, chosen: Any) -> Rate:
    """Mean over scenarios of the claim, each over its replicates."""
    own = 100 * results["value"].sel(claim=claim).isel(scenario=chosen)
    values = own.transpose("scenario", "replicate").values
    n_runs = np.isfinite(values).sum(axis=1)
    if not n_runs.any():
        return Rate(np.nan, np.nan)
    # Where all runs agree, the error of a single miss.
    least = 100 / np.sum(n_runs * results["samples"].values[chosen])
    values, n_runs = values[n_runs > 0], n_runs[n_runs > 0]
    means = np.nanmean(values, axis=1)
    squares = np.nansum((values - means[:, None]) ** 2, axis=1)
    error = np.sqrt(np.sum(squares / np.maximum(n_runs - 1, 1) / n_runs)) / len(values)
    return Rate(float(np.mean(means)), float(error if error > 0 else least))


def at(results: xr.Dataset, **values: Any) -> Any:
    """Numbers of the scenarios with these parameters."""
    here = np.ones(results.sizes["scenario"], dtype=bool)
    for name, value in values.items():
        here &= results[name].values == value
    return np.flatnonzero(here)


def from_rows(results: xr.Dataset, claim: str, condition: str) -> str:
    """The least number of rows a bin from which on the claim holds in a condition."""
    least = ""
    for rows in ROWS[::-1]:
        rate = rate_of(results, claim, at(results, condition=condition, rows=rows))
        if np.isnan(rate.percent):
            continue
        if not rate.holds(claim):
            break
        least = str(rows)
    return least or f"> {ROWS[-1]}"


def validity_table(results: xr.Dataset, claims: dict[str, Words]) -> pd.DataFrame:
    """A line a claim: rates with 30 rows a bin by condition, and from how many rows they hold."""
    lines = []
    for name, words in claims.items():
        line: dict[str, Any] = {"claim": words.call, "target": words.target}
        holding: dict[str, list[str]] = {}
        fails = False
        for condition in CONDITIONS:
            rate = rate_of(results, name, at(results, condition=condition, rows=SHOWN))
            line[condition] = rate.text(name)
            if not np.isnan(rate.percent):
                holding.setdefault(from_rows(results, name, condition), []).append(condition)
                fails |= not rate.holds(name)
        rate = rate_of(results, name, at(results, condition=CHOSEN, rows=1000))
        line[CHOSEN] = rate.text(name)
        fails |= not np.isnan(rate.percent) and not rate.holds(name)
        line["holds from rows a bin"] = _joined(holding)
        line["assumes"] = words.assumes
        line["where it fails"] = words.instead if fails else ""
        lines.append(line)
    return pd.DataFrame(lines)


def _joined(holding: dict[str, list[str]]) -> str:
    if len(holding) == 1:
        return next(iter(holding))
    numbers = sorted(holding, key=lambda one: int(one.removeprefix("> ")) + one.startswith(">"))
    return "; ".join(f"{number}: {', '.join(holding[number])}" for number in numbers)


def chosen_table(results: xr.Dataset) -> pd.DataFrame:
    """Default settings: a line a density and shape of the effect."""
    lines = []
    for k in at(results, block="chosen"):
        one = results.isel(scenario=k)
        line: dict[str, Any] = {"scenario": str(one["scenario"].values).removeprefix("chosen, ")}
        for claim in ("effect", "cell curve", "heterogeneity", "effect band", "curve band"):
            line[claim.removeprefix("cell ")] = rate_of(results, claim, [k]).text(claim)
        lines.append(line)
    return pd.DataFrame(lines)


def drawn_table(results: xr.Dataset) -> pd.DataFrame:
    """A line a process that was drawn at random."""
    lines = []
    claims = (
        *("effect", "curve", "heterogeneity", "effect band", "curve band"),
        *("wald_test zero, box", "wald_test constant, box"),
    )
    names = results["condition"].values.astype(str)
    for name in dict.fromkeys(n for n in names if n.startswith("drawn")):
        chosen = at(results, condition=name)
        line: dict[str, Any] = {"process": name.removeprefix("drawn ")}
        for claim in claims:
            line[claim] = rate_of(results, claim, chosen).text(claim)
        line[SAID] = _said(results, chosen)
        lines.append(line)
    return pd.DataFrame(lines)


def _said(results: xr.Dataset, chosen: Any) -> str:
    """Share of the samples whose printed summary has a note on tails or weights."""
    share = rate_of(results, "note", chosen).percent
    return "" if np.isnan(share) else f"{share:.0f} %"


def hard_table(results: xr.Dataset) -> pd.DataFrame:
    """A line a case that used to fail, and claim."""
    lines = []
    for k in range(results.sizes["scenario"]):
        one = results.isel(scenario=k)
        if not str(one["case_number"].values):
            continue
        for claim in KEYS:
            rate = rate_of(results, claim, [k])
            if np.isnan(rate.percent) or claim in LEFT_OUT:
                continue
            own = {SAID: _said(results, [k])}
            line = {"case": str(one["case_number"].values), "scenario": str(one["scenario"].values)}
            if claim in FACTORS:
                factor, error = rate.percent / 100, rate.error / 100
                lines.append(
                    {
                        **line,
                        "what": FACTORS[claim],
                        "found": f"{factor:.2f} ± {error:.2f}",
                        "aim": "",
                        "instead": "",
                        **own,
                    }
                )
                continue
            low, high = SIZE if CLAIMS[claim].is_test else COVERAGE
            what = "rejected" if CLAIMS[claim].is_test else "covered"
            found = f"{rate.text(claim)} % {what}"
            instead = "" if rate.holds(claim) else CLAIMS[claim].instead
            words = {"what": CLAIMS[claim].call, "found": found, "instead": instead}
            lines.append({**line, **words, "aim": f"{low:g} to {high:g}", **own})
    columns = ["case", "scenario", "what", "found", "aim", "instead", SAID]
    table = pd.DataFrame(lines, columns=columns)
    order = np.argsort([int(case) for case in table["case"]], kind="stable")
    return table.iloc[order].reset_index(drop=True)


def markdown(table: pd.DataFrame) -> str:
    """A table in Markdown."""
    lines = [list(table.columns), ["---"] * len(table.columns)]
    lines += table.astype(str).to_numpy().tolist()
    return "\n".join("| " + " | ".join(one) + " |" for one in lines)


INTRODUCTION = """This page says how far each interval, band and test of the package can
be trusted, and where it cannot. The command at the end computed every number by simulation.

*What 95 % means here.* A process with a known truth is drawn many times. The coverage is the share
of the samples in which a nominal 95 % interval contains its target. For intervals at several
points it is the mean over the points; a band must contain its target at all points. The size of a
test is the share of the samples in which it rejects at 5 % although its hypothesis is true. The
number after ± is the Monte-Carlo standard error.

*Rows, model as given.* All of this is about the sampling of rows. The model is taken as it is, and
the target is its effect in the population of rows. If the model was fitted to data, such an
interval does not say how well the effect of the true process is known: see "Of a model that is
fitted", and `bootstrap_refit`.

*What holds.* Coverage should be between 93 and 97 %, and size between 3 and 7.5 %. A number in
**bold** is more than two Monte-Carlo errors below 93 %, or above 7.5 %. More coverage and smaller
sizes are conservative; they are not marked.

*Conditions.* The feature is uniform on (−1, 1). The mean effect is sin 2z + z/2, and the spread of
the local effects is 0.3 + 0.7 times the absolute value of z. There are 10 fixed bins of equal
width, and 16 cells of a surface. The columns differ in the noise: normal; centred log-normal(0, 1);
two values, one of them in 10 % of the rows; t with 3 degrees of freedom; normal in 40 groups with
an intraclass correlation of 0.5, of which the largest is ten times the smallest (with `groups=`
where the function has it); normal, with precision weights that are five times as large in rows
with large residuals, which were drawn less often in proportion. Numbers are for 30 rows a bin on
average. "Holds from" is the least of 10, 30 and 100 rows a bin from which on the claim holds. The
column "chosen bins" has bins that the default rule chose on the same 1,000 rows with normal noise:
the mean over four densities and three effects. Profiles and H-statistics have 10 times as many rows
as a bin, and the slope is that of one bin.
"""

# Rows a bin and bins of the conditions, and the share of the rare value in "10:90".
IN_BIN, N_BINS, RARE = 30, 10, 0.1
NO_RARE = (1 - RARE) ** IN_BIN
SOME_BIN = 1 - (1 - NO_RARE) ** N_BINS
KURTOSIS = np.exp(4) + 2 * np.exp(3) + 3 * np.exp(2) - 3
LIMITS = f"""## Why some lines are in bold, and what a user sees

- *A rare value (10:90).* Of {IN_BIN} rows a bin has none with the rare value in
  {100 * NO_RARE:.1f} % of samples, and at least one of {N_BINS} bins has none in
  {100 * SOME_BIN:.0f} %. Such a bin shows a spread of 0, and nothing in it says that its effect is
  off. A band of all effects can hardly hold in these samples; the curve, whose cells share their
  errors, suffers less. With 100 rows a bin the lines hold. `summary` notes heavy tails.
- *Spread of log-normal effects.* The error of a variance follows from the kurtosis. That of the
  log-normal(0, 1) is {KURTOSIS:.0f}, and that of a sample of n rows is at most about n: {IN_BIN}
  rows cannot show it. Neighbouring bins share what they know of it (math [92]), which brings the
  interval nearer to its level. Only more rows do the rest.
- *Weights that follow the residuals.* Where few rows of large weight decide, a bin of {IN_BIN} rows
  knows as much as these few rows. In process 3 a rare value and unequal weights come together: no
  method here holds. `summary` says how many rows the weights are worth.
- *Groups and skewness.* With 25 groups an error has at most 24 degrees of freedom, and the skewness
  is that of sums over groups, which so few do not show: see the bands of processes 2, 5 and 7.
- *Spread at chosen edges.* Edges of the spread are chosen on the same rows, and its intervals are
  not corrected for the choice; neither are those of the heterogeneity in bins that were chosen for
  the effect. `summary` says so. `honest=True` chooses on other rows.
- *`rank_pvalue` and the spike.* Ranks assume a constant spread in the bin, so that a spread that
  changes is taken for bin error. The verdict of `check_unbiased` uses `bin_error_pvalue`, which is
  wrong too often only where a skewed spread is confined to a few rows.

Sizes below 3 % cost power only.
"""


def page(results: xr.Dataset) -> str:
    """The main tables, for readers."""
    parts = [INTRODUCTION.strip()]
    for group, claims in GROUPS.items():
        table = validity_table(results, claims)
        columns = [*CONDITIONS, CHOSEN]
        known = table[(table[columns] != "").any(axis=1)].drop(columns="assumes")
        if len(known):
            parts += [f"## {group}", markdown(known)]
    for title, said, table in sections(results):
        if len(table):
            parts += [f"## {title}", *([said] if said else []), markdown(table)]
    parts.append(LIMITS.strip())
    return "\n\n".join(parts)


def sections(results: xr.Dataset) -> list[tuple[str, str, pd.DataFrame]]:
    """Titles, words and tables beside that of the claims."""
    return [
        (
            "Bins chosen on the same rows",
            "Default settings of `rhale` (`AdaptiveBins`), normal noise of variance 1. Targets are "
            "those of the chosen bins; the curve is compared at the edges of its cells within the "
            "inner 99 % of the rows. Effects are smooth; the command prints stepped and flat ones "
            "as well.",
            chosen_table(results).query("scenario.str.contains('smooth')", engine="python"),
        ),
        (
            "Ten processes drawn at random",
            "From a family of noises, densities of the feature (beta), links, groups, weights, "
            "numbers of bins (quantiles of the population) and rows. With the log link the spread "
            "is proportional to the mean. The last column is the share of the samples whose "
            "printed summary has a note on heavy tails or on few rows of large weight.",
            drawn_table(results),
        ),
        (
            "Hard cases",
            "Processes that failed once: lines that do not hold, beside those above. *Instead* is "
            "what to use; the last column is the share of the samples whose "
            "printed summary has a note on heavy tails or on weights, of effects in "
            "bins.",
            hard_table(results)
            .query("found.str.contains('**', regex=False)", engine="python")
            .query("not scenario.str.contains('rows a bin')", engine="python")
            .drop(columns=["case", "aim"]),
        ),
    ]
