"""Feature effects with uncertainty: what a model's output does as one feature moves.

Functions on data, labelled results::

    local = rs.local_effects(model, X)
    effect = rs.rhale(local)
    print(rs.summary(effect))
    rs.plot_effect(effect, "age", local)
"""

import lazy_loader

from rhale_stats._version import __version__ as __version__

# Every name is imported from its module when it is first used, as __init__.pyi says.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

from rhale_stats import accessor as _accessor  # noqa: E402  # registers Dataset.rhale

del _accessor


def load_ipython_extension(ipython: object) -> None:
    """Let IPython show results of this package by `show`: ``%load_ext rhale_stats``."""
    from rhale_stats.generics.show import load_ipython_extension as load

    load(ipython)


def unload_ipython_extension(ipython: object) -> None:
    """Show all Datasets as xarray does: ``%unload_ext rhale_stats``."""
    from rhale_stats.generics.show import unload_ipython_extension as unload

    unload(ipython)
