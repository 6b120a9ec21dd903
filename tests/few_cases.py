"""Fewer cases of parametrised tests: ``python3 -m pytest -p tests.few_cases --cases 1``.

For runs in which every test should be there, and no pair of its settings is looked for.
"""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cases", type=int, default=1, help="cases of a test, at most")
    parser.addoption(
        "--all-of", action="append", default=[], help="tests with all cases: how their names begin"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    whole = tuple(config.getoption("--all-of"))
    kept = {
        *(item for item in items if item.nodeid.startswith(whole)),
        *few_cases(items, config.getoption("--cases")),
    }
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


def few_cases(items: list[pytest.Item], most: int) -> list[pytest.Item]:
    """At most so many cases of every parametrised test, evenly spaced, the first among them."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        tests.setdefault(item.nodeid.split("[")[0], []).append(item)
    return [
        cases[number * len(cases) // min(most, len(cases))]
        for cases in tests.values()
        for number in range(min(most, len(cases)))
    ]
