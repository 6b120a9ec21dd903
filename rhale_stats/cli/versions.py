"""The command `version`: what is installed."""

from __future__ import annotations

import argparse
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from rhale_stats._version import __version__

# What results depend on, and the libraries of models.
LIBRARIES = ("numpy", "scipy", "pandas", "xarray", "statsmodels", "matplotlib")
OF_MODELS = (
    *("scikit-learn", "xgboost", "lightgbm", "catboost", "onnxruntime", "torch", "jax"),
    *("pygam", "pyarrow", "polars", "zarr", "dask"),
)


def version_job(_arguments: argparse.Namespace) -> dict[str, Any]:
    """Print the versions of the package, of Python and of the libraries."""
    versions: dict[str, str | None] = {
        "rhale-stats": __version__,
        "python": platform.python_version(),
    }
    versions |= {name: version_of(name) for name in LIBRARIES}
    versions |= {name: version_of(name) for name in OF_MODELS}
    width = max(map(len, versions))
    for name, number in versions.items():
        print(f"{name:<{width}}  {number or 'not installed'}")
    return {**versions, "system": platform.platform()}


def version_of(name: str) -> str | None:
    """The version of an installed library, or None."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None
