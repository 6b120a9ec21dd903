"""Feature effects with uncertainty: what a model's output does as one feature moves.

Functions on data, labelled results::

    local = rs.local_effects(model, X)
    effect = rs.rhale(local)
    print(rs.summary(effect))
    rs.plot(effect, "age", local)

Every function that may take time accepts ``progress=False``, ``n_jobs`` (at most so many threads or
processes) and ``rng``, also where it draws no random numbers.
"""

import lazy_loader

from rhale_stats._version import __version__ as __version__

# Every name is imported from its module when it is first used, as __init__.pyi says.
_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    """A public name; where there is none, the error says what to type."""
    try:
        return _load(name)
    except AttributeError:
        if name.startswith("_"):
            raise
        from rhale_stats.arguments.peers import other_name

        pictures = [f"plots.{picture}" for picture in _load("plots").__all__]
        advice = other_name(name, [*__all__, *pictures])
    # With the name Python adds no advice of its own.
    raise AttributeError(f"rhale_stats has no {name!r}. {advice}".rstrip(), name=name)


from rhale_stats import accessor as _accessor  # noqa: E402  # registers Dataset.rhale

del _accessor


def load_ipython_extension(ipython: object) -> None:
    """Let IPython show results of this package by `show`: ``%load_ext rhale_stats``."""
    from rhale_stats.generics.tables import load_ipython_extension as load

    load(ipython)


def unload_ipython_extension(ipython: object) -> None:
    """Show all Datasets as xarray does: ``%unload_ext rhale_stats``."""
    from rhale_stats.generics.tables import unload_ipython_extension as unload

    unload(ipython)
