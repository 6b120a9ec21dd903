"""What is not imported until it is used; by modules, as times depend on the machine."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Each takes from a tenth of a second to a second.
PLOTTING = ("matplotlib", "seaborn", "arviz")
SLOW = (*PLOTTING, "joblib", "patsy", "scipy.stats", "sklearn", "statsmodels", "threadpoolctl")
PACKAGE = "import rhale_stats as rs\n"
ONE_EFFECT = (
    "import numpy as np; X = np.random.default_rng(0).uniform(size=(50, 1))\n"
    "rs.rhale(rs.local_effects(lambda X: X[:, 0], X, progress=False))"
)


def loaded_by(code, among):
    """Those of these modules that are there after the code, in a process of its own."""
    listed = f"\nimport sys; print(*(name for name in {among!r} if name in sys.modules))"
    found = subprocess.run(
        [sys.executable, "-c", code + listed], check=True, capture_output=True, text=True
    )
    return found.stdout.split()


def test_what_is_looked_for_can_be_found():
    assert loaded_by("import scipy.stats, statsmodels", SLOW) == ["scipy.stats", "statsmodels"]
    assert loaded_by(PACKAGE + "rs.plot_effect", ("matplotlib",)) == ["matplotlib"]


@pytest.mark.parametrize("name", ["", "rs.rhale", "rs.local_effects", "rs.std_error", "rs.confint"])
def test_names_load_no_library_that_they_do_not_use(name):
    assert loaded_by(PACKAGE + name, SLOW) == []


def test_the_package_alone_loads_only_pandas_and_xarray():
    assert loaded_by(PACKAGE, (*SLOW, "scipy", "boost_histogram", "tqdm")) == []


def test_an_effect_is_computed_without_libraries_of_plots_and_models():
    assert (
        loaded_by(PACKAGE + ONE_EFFECT, (*PLOTTING, "sklearn", "scipy.stats", "statsmodels")) == []
    )


def test_help_loads_no_library():
    code = (
        "import contextlib, io, sys\n"
        "from rhale_stats.__main__ import run\n"
        "sys.argv = ['rhale-stats', '--help']\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        "    run()"
    )
    assert loaded_by(code, SLOW) == []
