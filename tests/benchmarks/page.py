"""The page of cost and scale, written by ``python -m tests.benchmarks peers --scaling``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from studies.validity_table import markdown
from tests.benchmarks.scaling import BINS, COLUMNS, ROWS, Growth, exponents

# What other commands computed.
KEPT = re.compile("## Beside the authors' library.*?(?=^## How)", re.DOTALL | re.MULTILINE)


def page(
    tables: str,
    lines: Sequence[dict[str, Any]],
    times: Sequence[Growth],
    memory: Sequence[Growth],
    picture: str = "cost.png",
    before: str = "",
) -> str:
    """The page in Markdown, which shows a file in its folder; every number is computed.

    Of the page as it was ``before``, the tables beside the authors' library and of single steps
    are kept.
    """
    others = KEPT.search(before)
    timed = [line for line in lines if "ratio" in line]
    slower = [line for line in timed if line["faster"] == line["peer"]]
    worst = min(timed, key=lambda line: float(line["ratio"]))
    last = {one.name: (int(one.sizes[-1]), float(one.values[-1])) for one in memory}
    peaks = ", ".join(
        f"{name} {peak / 1e6:.0f} MB" for name, (_, peak) in last.items() if np.isfinite(peak)
    )
    rows = next(iter(last.values()))[0]
    return f"""# Cost and scale

How long the functions take beside other libraries, and how their cost grows. The command at the
end computed every number on this page, but for those beside the authors' library and of single
steps.

## Beside other libraries

In {len(slower)} of {len(timed)} comparisons the other library was faster in every round. The
smallest ratio is that of the task {worst["task"]} with {worst["rows"]:,} rows: {worst["peer"]}
takes {worst["ratio"]:.2g} times as long as this package.

{tables}
alibi 0.9.6 requires NumPy 1; this package requires NumPy 2.

{others[0] if others else ""}## How cost grows

Exponents are slopes of the last three points in logarithms: 1 is proportional, 0 is constant. An
exponent below 1 means that fixed costs still count at these sizes. What is not varied is {ROWS:,}
rows, {COLUMNS} features, {BINS} bins or points, and 100 resamples. The model is cheap. `pdp`,
`regions` and `bootstrap` are those of one feature. The bins of `rhale` are optimal bins.

{markdown(exponents(times, memory))}

![CPU time and memory against rows, features, bins and resamples]({picture})

## Memory

At {rows:,} rows and {COLUMNS} features Python and NumPy allocate, above the inputs: {peaks}. For
tables that do not fit, see [Larger than memory](larger-than-memory.md).

```sh
python3 -m pip install ".[test,peers]"
python -m tests.benchmarks peers --scaling --out docs/cost.md
```
"""
