"""What is not imported until it is used; by modules, as times depend on the machine."""

from __future__ import annotations

import subprocess
import sys
import types
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

import rhale_stats as rs

PACKAGE = Path(rs.__file__).parent

# Each takes from a tenth of a second to a second.
PLOTTING = ("matplotlib", "seaborn", "arviz")
SLOW = (*PLOTTING, "joblib", "patsy", "scipy.stats", "sklearn", "statsmodels", "threadpoolctl")
ONE_EFFECT = (
    "import numpy as np; X = np.random.default_rng(0).uniform(size=(50, 1))\n"
    "effect = rs.rhale(rs.local_effects(lambda X: X[:, 0], X, progress=False))"
)
# To its intervals and its printed table.
SHOWN = "effect = rs.confint(rs.std_error(effect)); str(rs.summary(effect)); str(rs.show(effect))"
EXPLAINED = "str(rs.explain(lambda X: X[:, 0], X, X[:, 0] ** 2, progress=False))"


def loaded_by(*steps):
    """Those of the modules that are there after each step, one after the other in one process."""
    code = "import sys\n"
    for step, among in steps:
        code += f"{step}\nprint(*(name for name in {among!r} if name in sys.modules))\n"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return [line.split() for line in found.stdout.splitlines()]


HELP = """
import contextlib, io
from rhale_stats.__main__ import run
sys.argv = ["rhale-stats", "--help"]
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    run()
"""


@pytest.mark.slow
def test_libraries_are_loaded_when_they_are_used():
    found = loaded_by(
        (HELP, SLOW),
        ("import rhale_stats as rs", (*SLOW, "scipy", "boost_histogram", "tqdm")),
        *[(f"rs.{name}", SLOW) for name in ("rhale", "local_effects", "std_error", "confint")],
        (ONE_EFFECT, (*SLOW, "polars")),
        (SHOWN, (*SLOW, "polars")),
        ("rs.plots, dir(rs.plots)", SLOW),
        (EXPLAINED, (*PLOTTING, "h5netcdf", "scipy.stats", "statsmodels", "polars")),
        ("rs.plots.effect", PLOTTING),
        ("rs.plot(effect)", ("matplotlib.pyplot", "scipy.stats")),
    )
    assert found[:-2] == [[]] * 10
    # What is looked for can be found. The statistics would come with seaborn.
    assert "matplotlib" in found[-2]
    assert found[-1] == ["matplotlib.pyplot"]
    assert all(find_spec(name) for name in SLOW)


def test_no_folder_bears_the_name_of_a_public_function():
    """lazy_loader would change the class of the package; cloudpickle then refuses closures with it.

    Such closures are what `bootstrap_refit` sends to processes.
    """
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir()}
    # A module of its own, whose names are public.
    assert folders & set(rs.__all__) == {"simulate"}
    assert type(rs) is types.ModuleType


def test_files_are_written_where_there_are_no_locks(monkeypatch):
    """Windows has no `fcntl`: an import of it at the top of the module failed there."""
    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setattr(sys, "platform", "win32")
    spec = spec_from_file_location("files_on_windows", PACKAGE / "files.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    assert not module.LOCKS
