"""Calls of other packages and their counterparts: every row of the table of docs/peers.md runs."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from inspect import isfunction
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "peers.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| ([\w-]+) \| `(.+)` \| `(.+)` \|$", PAGE, re.MULTILINE)
ANSWERS = re.findall(r"^\| .+/(?:issues|pull)/\d+\).* \| `(.+)` \|$", PAGE, re.MULTILINE)
MODULES = {"scikit-learn": "sklearn.inspection", "scikit-explain": "skexplain"}
# What the page says before the table, and what belongs to the package.
HERE = "\n".join(re.findall(r"```python\n(.*?)```", PAGE.partition("\n| package")[0], re.DOTALL))
THERE = {
    "scikit-learn": "from sklearn.inspection import *",
    "effector": """
import effector
values, predict, names = X.to_numpy(), model.predict, {"feature_names": [*X.columns]}
effect = effector.RHALE(values, predict, schema=names)
ale = effector.ALE(values, predict, schema=names)
pdp = effector.PDP(values, predict, schema=names)
effect.fit(["bp", "bmi"])
""",
    "marginaleffects": "from marginaleffects import *",
    "hidimstat": "from hidimstat import *\nfrom hidimstat.visualization import *",
    "interpret": "from interpret.blackbox import *\nfrom interpret.glassbox import *",
    "econml": "from econml.dml import *",
    "doubleml": "from doubleml import *\nfrom sklearn.linear_model import LassoCV",
    "binsreg": "from binsreg import *",
    "PyALE": "import PyALE",
    "dalex": "import dalex",
    "scikit-explain": "import skexplain",
    "shap": "import shap",
}
# Those of which every function has a row.
COMPLETE = ("effector", "marginaleffects", "scikit-learn")
# Of requests that are answered.
GAPS = """
from sklearn.ensemble import HistGradientBoostingRegressor
gaps = X.copy()
gaps["bp"] = gaps["bp"].mask(gaps["bp"] > 110)
holes = HistGradientBoostingRegressor().fit(gaps, y)
"""
# Tools, and not answers to a question.
TOOLS = re.compile("fit_|get_|set_|autodiff|payload|from_dataframe|set_theme")

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]


@cache
def names(package):
    """Names that calls may use: those of the page, or those of a package."""
    found = {}
    exec(HERE + (GAPS if package == "requests" else THERE.get(package, "")), found)
    return found


def needed(package):
    """Skip a test without the package."""
    reason = f"{package} is not installed: extra peers"
    pytest.importorskip(MODULES.get(package, package), reason=reason)


@pytest.fixture(autouse=True)
def _no_pictures():
    yield
    plt.close("all")


# Takes seconds, and is in two calls.
EXPLAINED = "rs.explain(model, X)"


@cache
def explained():
    """What that call answers."""
    return eval(EXPLAINED, dict(names("rhale_stats")))


@pytest.mark.parametrize("call", sorted({ours for *_, ours in ROWS}))
def test_our_calls_run(call):
    call = call.replace(EXPLAINED, "explained()")
    assert eval(call, names("rhale_stats") | {"explained": explained}) is not None


@pytest.mark.parametrize("call", ANSWERS)
def test_requests_are_answered(call):
    assert eval(call, dict(names("requests"))) is not None


def test_a_dozen_requests_are_answered():
    assert len(ANSWERS) >= 12
    assert {row[0] for row in ROWS} == set(THERE)


@pytest.mark.parametrize(("package", "call"), [row[:2] for row in ROWS])
def test_their_calls_run(package, call):
    pytest.importorskip(
        MODULES.get(package, package), reason=f"{package} is not installed: extra peers"
    )
    eval(call, dict(names(package)))


@pytest.mark.parametrize("package", COMPLETE)
def test_each_of_their_functions_is_in_the_table(package):
    pytest.importorskip(
        MODULES.get(package, package), reason=f"{package} is not installed: extra peers"
    )
    module = import_module(MODULES.get(package, package))
    if package == "effector":
        public = [name for name in dir(module) if isfunction(getattr(module, name))]
        public += [name for name in dir(module.RHALE) if name.islower() and name[0] != "_"]
        public += [name for name in dir(module) if hasattr(getattr(module, name), "find_regions")]
    else:
        public = [name for name in module.__all__ if name != "MarginaleffectsResult"]
    calls = "\n".join(call for name, call, _ in ROWS if name == package)
    missing = [name for name in public if not re.search(rf"\b{name}\b", calls)]
    assert not [name for name in missing if not TOOLS.match(name)]
