"""What is timed beside other libraries is the same work: the numbers of both sides agree."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from tests.benchmarks.tasks import MODELS, TASKS
from tests.benchmarks.times import apart, silent

# Modules of the peers, and how far numbers may be apart, with the reason.
ROUNDING, SINGLE = 1e-12, 1e-6
CASES = {
    ("rhale", "effector"): ("effector", ROUNDING),
    ("regions", "effector"): ("effector", 0.0),
    # Edges by other definitions of a quantile: a row of 25 a bin more or less.
    ("ale", "PyALE"): ("PyALE", 0.01),
    ("ale", "alibi"): ("alibi", 0.01),
    # Its curve is given at the middles of bins, and drawn here at their left ends or means.
    ("ale", "scikit-explain"): ("skexplain", 0.02),
    ("ale-dalex", "dalex"): ("dalex", ROUNDING),
    ("pdp", "scikit-learn"): ("sklearn", ROUNDING),
    ("pdp", "scikit-explain"): ("skexplain", ROUNDING),
    ("pdp", "dalex"): ("dalex", ROUNDING),
    ("ice", "scikit-learn"): ("sklearn", ROUNDING),
    **{
        (f"{name}-{kind}", "scikit-learn"): ("sklearn", ROUNDING)
        for name in ("pdp", "ice")
        for kind in MODELS
    },
    # Edges by other definitions of a quantile, and curves that jump.
    **{(f"ale-{kind}", "PyALE"): ("PyALE", 0.05) for kind in MODELS},
    ("ice", "alibi"): ("alibi", ROUNDING),
    # shap keeps thresholds and values in single precision.
    ("shap", "shap"): ("shap", SINGLE),
    # Standard deviations of 48 resamples have an error of a tenth each, the curves' are correlated.
    ("bootstrap", "scikit-explain"): ("skexplain", 0.5),
    # marginaleffects takes forward or central differences with a step of 1e-4.
    ("slopes", "marginaleffects"): ("marginaleffects", 1e-3),
    ("h", "scikit-explain"): ("skexplain", ROUNDING),
}


def skip_without(library: str, extra: str) -> None:
    """Skip the test where a library is missing, naming the extra that has it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip(library, reason=f"{library} is not installed: extra {extra}")


def test_every_pair_has_a_case():
    skip_without("lightgbm", "models")
    made = {name: make(200, 0) for name, (make, _) in TASKS.items()}
    assert {(name, peer) for name, task in made.items() for peer in task.peers} == set(CASES)


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "peer"), CASES, ids="-".join)
def test_both_sides_compute_the_same(name, peer):
    module, tolerance = CASES[name, peer]
    skip_without(module, "peers")
    if name.endswith("lightgbm"):
        skip_without("lightgbm", "models")
    make, (rows, _) = TASKS[name]
    with silent():
        task = make(rows, 0)
        ours = task.ours.numbers(task.ours.run())
        side = task.peers[peer]()
        theirs = side.numbers(side.run())
    assert np.size(ours) > 0
    assert apart(ours, theirs) <= tolerance
