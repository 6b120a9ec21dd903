"""Every public function under random legal arguments, and under illegal ones.

The suite makes a few calls, the same each time. For more, at random::

    RHALE_STATS_FUZZ=5000 python -m pytest tests/fuzz -n auto

makes so many pipelines of calls, and all calls with an illegal argument. What failed is printed as
the calls that led to it; `engine` says what counts as a failure.
"""

from __future__ import annotations

import os
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz import engine

ASKED = int(os.environ.get("RHALE_STATS_FUZZ", "0"))
NAMES = sorted(engine.FUNCTIONS)
# A seed, not what hypothesis draws by itself: which calls follow depends on results, and those that
# draw anew (``rng=None``) differ from run to run.
SEEDS = st.integers(0, 2**32 - 1)
fuzzing = settings(
    deadline=None,
    derandomize=not ASKED,
    database=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)


def test_every_parameter_has_a_strategy():
    """A new function or parameter is called by the tests below."""
    for name, function in engine.FUNCTIONS.items():
        for parameter in engine.parameters_of(function):
            known = parameter in engine.OF_PARAMETER or (name, parameter) in engine.OF_FUNCTION
            assert known, f"OF_PARAMETER in engine needs {parameter}, of {name}"


def test_every_function_validates_its_arguments():
    """Arguments of every public function are checked by the table of `validate`."""
    for name, function in engine.FUNCTIONS.items():
        names = [function.__code__.co_name]
        while hasattr(function, "__wrapped__"):
            function = function.__wrapped__
            names.append(function.__code__.co_name)
        assert "validating" in names, f"{name} needs @validated"


@settings(fuzzing, max_examples=ASKED or 12)
@given(SEEDS)
def test_pipelines(seed):
    engine.pipeline(Random(seed))


@pytest.mark.parametrize("name", NAMES)
@settings(fuzzing, max_examples=max(1, ASKED // 50))
@given(seed=SEEDS)
def test_calls(name, seed):
    engine.one_call(name, Random(seed))


@pytest.mark.parametrize("name", [*NAMES, *sorted(engine.RULES)])
def test_illegal_arguments(name, tmp_path, monkeypatch):
    """Refused by the package with the parameter's name, or legal."""
    monkeypatch.chdir(tmp_path)  # "x" is a file that can be written
    cases = engine.illegal_cases(name)
    # Other ones of every function.
    some = cases if ASKED else cases[NAMES.index(name) % 7 if name in NAMES else 0 :: 37]
    for parameter, odd in some:
        engine.one_illegal(name, parameter, odd)
